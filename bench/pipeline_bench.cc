// SPDX-License-Identifier: MIT
// What the core and modifiers cost an activity: pass-through ones, by look-ahead, and ours; beside
// system calls. usage: pipeline-bench PASS.SO PLUGINS/ [COUNT [ROWS]]: only rows in
// whose name that is.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/clock.h"
#include "plugin/plugin.h"
#include "window/pipeline.h"

namespace {

using namespace feign;

// ns an activity, from the provider's making it to the far end.
double once(Plugins& plugins, const std::string& so, const std::string& ours, uint64_t count,
            uint64_t streams, bool apart, bool in_order, size_t modifiers, uint64_t lookahead) {
  auto all = plugins.open(so);
  if (!all) {
    fprintf(stderr, "%s\n", all.error().text().c_str());
    exit(2);
  }
  Tables tables;
  const auto make = [&](size_t index, GivenOptions options) {
    PluginSpec spec;
    spec.name = so;
    spec.options = std::move(options);
    auto made = Instance::create((*all)[index], spec, tables);
    if (!made) exit(2);
    return std::move(*made);
  };
  auto provider = make(0, {{"count", std::to_string(count)},
                           {"streams", std::to_string(streams)},
                           {"apart", apart ? "yes" : "no"},
                           {"in-order", in_order ? "yes" : "no"}});
  std::vector<std::unique_ptr<Instance>> owned;
  std::vector<Instance*> chain;
  for (size_t i = 0; i < modifiers; ++i) {
    owned.push_back(make(1, {{"lookahead", std::to_string(lookahead)}}));
    chain.push_back(owned.back().get());
  }
  if (!ours.empty()) {
    auto found = plugins.open(ours);
    if (!found) exit(2);
    auto made = Instance::create(
        found->front(), {}, tables,
        [](void* ctx, const char* id) -> const void* {
          return std::string_view(id) == "feign.tables/1" ? ctx : nullptr;
        },
        &tables);
    if (!made) exit(2);
    owned.push_back(std::move(*made));
    chain.push_back(owned.back().get());
  }
  Pipeline pipeline(tables, *provider, chain);
  uint64_t sum = 0, bytes = 0;
  const uint64_t begin = now_ns();
  auto ran = pipeline.run(
      [&](feign_activity* const* items, size_t n) -> Result<void> {
        for (size_t i = 0; i < n; ++i) {
          sum += items[i]->offset;
          if (!(items[i]->marks & FEIGN_INJECTED)) bytes += items[i]->length;
        }
        return {};
      },
      [] { return true; });
  const uint64_t end = now_ns();
  if (!ran || bytes != count * 4096 || sum == 0) {
    fprintf(stderr, "the work was not done\n");
    exit(1);
  }
  return static_cast<double>(end - begin) / static_cast<double>(count);
}

// The provider's own work: making the same activities up for a sink that does nothing with them.
double provider_alone(Plugins& plugins, const std::string& so, uint64_t count) {
  auto all = plugins.open(so);
  Tables tables;
  PluginSpec spec;
  spec.name = so;
  spec.options = {{"count", std::to_string(count)}};
  auto provider = Instance::create((*all)[0], spec, tables);
  if (!provider) exit(2);
  struct Sink {
    feign_activity ring[64]{};
    size_t next = 0;
  } ring;
  feign_sink sink = {sizeof sink, &ring,
                     [](feign_sink* s) noexcept {
                       auto& r = *static_cast<Sink*>(s->ctx);
                       return &r.ring[r.next++ & 63];
                     },
                     [](feign_sink*, feign_activity*) noexcept { return FEIGN_OK; }};
  const auto& api = (*provider)->api<feign_provider>();
  const uint64_t begin = now_ns();
  while (api.next((*provider)->self(), 256, &sink) == FEIGN_OK) {
  }
  return static_cast<double>(now_ns() - begin) / static_cast<double>(count);
}

template <typename Call>
double cost(Call&& call) {
  double best = 1e9;
  for (int r = 0; r < 5; ++r) {
    constexpr int kTimes = 200000;
    const uint64_t begin = now_ns();
    for (int i = 0; i < kTimes; ++i) call();
    best = std::min(best, static_cast<double>(now_ns() - begin) / kTimes);
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const uint64_t count = argc > 3 ? strtoull(argv[3], nullptr, 10) : 2'000'000;
  Plugins plugins;
  const int fd = open("/proc/self/exe", O_RDONLY);
  struct stat st {};
  const double fstat_ns = cost([&] { fstat(fd, &st); });
  const double clock_ns = cost([] { (void)now_ns(); });
  printf(
      "fstat                                        %7.1f ns\nclock_gettime                        "
      "        %7.1f ns\n",
      fstat_ns, clock_ns);
  struct Row {
    const char* name;
    size_t modifiers;
    uint64_t lookahead;
    std::vector<double> runs;
    uint64_t streams = 1;
    bool apart = false;
    const char* ours = "";  // modifier
    bool in_order = false;
  };
  std::vector<Row> rows = {
      {"no modifier", 0, 0, {}},
      {"three modifiers, window 1024 (341 each)", 3, 341, {}},
      {"one modifier, look-ahead 2", 1, 2, {}},
      {"one modifier, look-ahead 100", 1, 100, {}},
      {"one modifier, look-ahead 1,000", 1, 1000, {}},
      {"one modifier, look-ahead 65,536", 1, 65536, {}},
      {"depend, one stream, random blocks", 0, 0, {}, 1, false, "depend"},
      {"depend, four streams, a file each", 0, 0, {}, 4, true, "depend"},
      {"depend, four streams, random blocks, one file", 0, 0, {}, 4, false, "depend"},
      {"prefetch, one stream, random blocks", 0, 0, {}, 1, false, "prefetch"},
      {"prefetch, four streams, a file each", 0, 0, {}, 4, true, "prefetch"},
      {"coalesce, one stream, random blocks", 0, 0, {}, 1, false, "coalesce"},
      {"coalesce, four streams, a file each", 0, 0, {}, 4, true, "coalesce"},
      {"coalesce, four streams, in order", 0, 0, {}, 4, true, "coalesce", true}};
  if (argc > 4)
    std::erase_if(rows, [&](const Row& row) {
      return std::string_view(row.name).find(argv[4]) == std::string_view::npos;
    });
  std::vector<double> alone;
  for (int r = 0; r < 7; ++r) {  // interleaved
    alone.push_back(provider_alone(plugins, argv[1], count));
    for (Row& row : rows)
      row.runs.push_back(once(plugins, argv[1],
                              *row.ours ? std::string(argv[2]) + row.ours + ".so" : "", count,
                              row.streams, row.apart, row.in_order, row.modifiers, row.lookahead));
  }
  std::sort(alone.begin(), alone.end());
  const double own = alone[alone.size() / 2];
  printf("the made-up provider alone                     %7.1f ns, taken off below\n", own);
  for (Row& row : rows) {
    std::sort(row.runs.begin(), row.runs.end());
    const double median = row.runs[row.runs.size() / 2] - own;
    printf("%-46s %7.1f ns an activity (best %.1f)   x%.2f of fstat\n", row.name, median,
           row.runs.front() - alone.front(), median / fstat_ns);
  }
  return 0;
}
