// SPDX-License-Identifier: MIT
// Rules of providers.
#include <cstring>
#include <unordered_map>

#include "check/rules.h"
#include "window/pipeline.h"

namespace feign::check {
namespace {

struct ProviderSink {
  explicit ProviderSink(Tables& t) : tables(t) { sink = {sizeof(feign_sink), this, make, emit}; }
  static feign_activity* make(feign_sink* sink) noexcept {
    auto& s = *static_cast<ProviderSink*>(sink->ctx);
    s.last.reset();
    auto record = std::make_unique<Record>();
    feign_activity* const a = &record->a;
    s.made.emplace(a, std::move(record));
    return a;
  }
  static feign_status emit(feign_sink* sink, feign_activity* a) noexcept {
    auto& s = *static_cast<ProviderSink*>(sink->ctx);
    auto own = s.made.extract(a);
    s.broken = own.empty() ? "emitted an activity that was not its own" : never_given(s.tables, *a);
    if (!s.broken.empty()) return FEIGN_ERR_PLUGIN;
    s.out.push_back(signature(s.tables, *a));
    if (a->id == 0) a->id = uint64_t{s.out.size()} << 16;
    s.last = std::move(own.mapped());
    return FEIGN_OK;
  }
  Tables& tables;
  feign_sink sink;
  std::unordered_map<const feign_activity*, std::unique_ptr<Record>> made;
  std::unique_ptr<Record> last;  // whose id may be read until the next is made
  std::vector<std::string> out;
  std::string broken;
};

// The first activities (at least kActivities, or all) asked for `want` at a time; what went wrong.
std::string run_provider(const Component& component, Place& place, size_t want,
                         std::vector<std::string>& out) {
  Tables tables;
  auto instance = create(component, tables, place);
  if (!instance) return instance.error().text();
  const auto& api = (*instance)->api<feign_provider>();
  ProviderSink sink(tables);
  while (sink.out.size() < kActivities) {
    const size_t before = sink.out.size();
    const feign_status status = api.next((*instance)->self(), want, &sink.sink);
    const size_t got = sink.out.size() - before;
    if (!sink.broken.empty()) return sink.broken;
    if (status < 0) return (*instance)->failure(status).text();
    if (status > FEIGN_END)
      return "next() gave " + std::to_string(status) + ": want FEIGN_OK, FEIGN_END or an error";
    if (got > want)
      return "emitted " + std::to_string(got) + " activities, asked for " + std::to_string(want);
    if (status == FEIGN_END) break;
    if (got == 0) return "next() returned FEIGN_OK without an activity";
  }
  out = std::move(sink.out);
  if (out.size() > kActivities) out.resize(kActivities);
  return "";
}

}  // namespace

void check_provider(const Component& component, Place& place, Rules& rules, const std::string& name,
                    const std::string& lacks) {
  const bool reads_files = option_named(component, "file") != nullptr;
  const std::string missing = required(component, place);
  const auto is_file = [](const auto& option) { return option.first == "file"; };
  const bool given_file = std::any_of(place.options.begin(), place.options.end(), is_file);
  rules.run(name + ": gives the same activities, never more than it is asked for", [&] {
    if (!lacks.empty()) return skip(lacks);
    if (reads_files && !given_file) return skip("it reads files; PATH,file=FILE gives it one");
    std::vector<std::string> first;
    for (const size_t want : kBatches) {
      std::vector<std::string> out;
      const std::string why = run_provider(component, place, want, out);
      if (!why.empty()) return fail(why + " (asked for " + std::to_string(want) + " at once)");
      // A short form's state is that of the shared object: it cannot begin again.
      if (component.short_form) return ok();
      if (want == kBatches[0]) first = out;
      if (out != first)
        return fail("asked for " + std::to_string(want) + " at once, it gives other activities (" +
                    std::to_string(out.size()) + ") than one by one (" +
                    std::to_string(first.size()) + ")");
    }
    return ok();
  });
  rules.run(name + ": fails in words on a file that is not there", [&] {
    if (!reads_files) return skip("it reads no files");
    if (!missing.empty()) return skip("its options " + missing + " have no defaults");
    Tables tables;
    const std::string file = place.directory + "/not-there";
    auto instance = create(component, tables, place, {{"file", file}});
    std::string text;
    if (instance) {
      // It may open the file when it is first asked.
      ProviderSink sink(tables);
      const feign_status status =
          (*instance)->api<feign_provider>().next((*instance)->self(), 1, &sink.sink);
      if (status >= 0) return fail("it takes " + file + ", which does not exist, for a trace");
      text = (*instance)->failure(status).text();
    } else {
      text = instance.error().text();
    }
    if (text.find(kSilent) != std::string::npos) return fail(text);
    return text.find("not-there") != std::string::npos
               ? ok()
               : fail("its message does not name the file: " + text);
  });
  rules.run(name + ": probes anything without harm", [&] {
    const auto& api = *static_cast<const feign_provider*>(component.table->api);
    if (!FEIGN_HAS(&api, probe) || api.probe == nullptr) return skip("it has no probe()");
    std::string noise;
    uint32_t random = 1;
    for (size_t i = 0; i < 4096; ++i) {
      random = random * 1664525 + 1013904223;
      noise += static_cast<char>(random >> 24);
    }
    const std::string heads[] = {"",
                                 std::string("\0", 1),
                                 std::string(4096, '\0'),
                                 std::string(4096, ' '),
                                 std::string(4096, '9'),
                                 noise,
                                 "1 open(\"/x\", O_RDONLY) = 3",
                                 "{\"a\": [1, 2"};
    for (const std::string& head : heads) {
      // In a block of its own size: a memory checker sees what reads past its end.
      const std::unique_ptr<char[]> exact(new char[head.size() + (head.empty() ? 1 : 0)]);
      std::memcpy(exact.get(), head.data(), head.size());
      const int sure = api.probe("/a/file", exact.get(), head.size());
      if (sure < 0 || sure > 100)
        return fail("probe() returned " + std::to_string(sure) + ", want 0 to 100");
    }
    return ok();
  });
}

}  // namespace feign::check
