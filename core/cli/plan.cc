// SPDX-License-Identifier: MIT
#include "cli/plan.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "prepare/prepare.h"
#include "replay/nesting.h"
#include "replay/replay.h"
#include "window/explain.h"
#include "window/pipeline.h"

namespace feign {

namespace {

std::string scratch_directory() {
  const char* set = getenv("TMPDIR");
  return set != nullptr && *set != '\0' ? set : "/tmp";
}

}  // namespace

Result<Fd> plan_file(std::string* keep) {
  const std::string dir = scratch_directory();
  int fd = keep != nullptr ? -1 : open(dir.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd >= 0) return Fd(fd);
  std::string name = dir + "/feign-plan-XXXXXX";
  fd = mkostemp(name.data(), O_CLOEXEC);
  if (fd < 0) return errno_error("make the plan in " + dir, errno);
  if (keep != nullptr)
    *keep = name;
  else
    unlink(name.c_str());
  return Fd(fd);
}

bool is_plan_already(const Line& line) {
  if (!line.modifiers.empty() || !line.writers.empty() || line.replayers.empty()) return false;
  const Chosen& provider = line.providers.front();
  if (provider.component.short_form || std::string_view(provider.component.table->name) != "feign")
    return false;
  const GivenOptions& given = provider.spec.options;
  return given.size() == 1 && given.front().first == "file" && given.front().second;
}

namespace {

// Whether a replayer makes the calls of an op.
bool taken(const Line& line, const feign_op_info& op) {
  const auto takes = [&](const Chosen& c) {
    return serves(*static_cast<const feign_replayer*>(c.component.table->api), op.layer);
  };
  return line.replayers.empty() || std::any_of(line.replayers.begin(), line.replayers.end(), takes);
}

// The calls that tell of names and files, and are nobody's.
std::vector<bool> not_made(const Line& line, const Ops& ops) {
  std::vector<bool> nobodys(ops.size());
  for (uint32_t op = 1; op < ops.size(); ++op)
    nobodys[op] = ops.call(op) != nullptr && !taken(line, *ops.info(op));
  return nobodys;
}

// What a replay makes of the tree: a call that no replayer takes makes nothing, unless it is part
// of one that is made.
class Makers {
 public:
  Makers(const Line& line, const Ops& ops) : line_(line), ops_(ops), nobodys_(not_made(line, ops)) {
    some_ = std::find(nobodys_.begin(), nobodys_.end(), true) != nobodys_.end();
  }
  bool makes(const feign_activity& a) {
    if (!some_) return true;
    if (a.stream >= streams_.size()) streams_.resize(a.stream + 1);
    Nesting& nesting = streams_[a.stream];
    if (nesting.done_already(a)) return true;
    uint64_t skipped = 0;
    nesting.before(a, skipped);
    const feign_op_info* op = ops_.info(a.op);
    nesting.after(a, op == nullptr || !taken(line_, *op), false, skipped);
    return a.op >= nobodys_.size() || !nobodys_[a.op];
  }

 private:
  const Line& line_;
  const Ops& ops_;
  std::vector<bool> nobodys_;
  bool some_;
  std::vector<Nesting> streams_;
};

}  // namespace

bool all_is_made(const Line& line) {
  Tables tables;
  const std::vector<bool> nobodys = not_made(line, tables.ops);
  if (std::find(nobodys.begin(), nobodys.end(), true) == nobodys.end()) return true;
  const std::string file = line.providers.front().spec.values("file").front();
  const int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  auto trace = fd >= 0 ? NativeReader::open(fd, file, tables) : Error(FEIGN_ERR_IO, "");
  if (!trace) return true;  // whoever reads it next says why
  const auto& counts = (*trace)->totals().by_op;
  for (uint32_t op = 0; op < nobodys.size() && op < counts.size(); ++op)
    if (nobodys[op] && counts[op] != 0) return false;
  return true;
}

bool has_messages(const NativeTotals& totals, const Tables& tables) {
  for (uint32_t op = 0; op < totals.by_op.size(); ++op)
    if (totals.by_op[op] != 0 && std::string_view(tables.ops.info(op)->layer) == "mpi") return true;
  return false;
}

std::string order_of_ranks(const Line& line, bool messages_alone) {
  const Chosen& provider = line.providers.front();
  const std::string_view name = provider.component.table->name;
  const std::vector<std::string> files = provider.spec.values("file");
  if (name != "feign" || files.empty())
    return name == "strace" || name == "tracetext" ? "" : "apart";  // those have no MPI
  Tables tables;
  const int fd = open(files[0].c_str(), O_RDONLY | O_CLOEXEC);
  auto trace = fd >= 0 ? NativeReader::open(fd, files[0], tables) : Error(FEIGN_ERR_IO, "");
  if (!trace) return "kept";  // whoever reads it next says why
  const NativeTotals& totals = (*trace)->totals();
  const bool messages = has_messages(totals, tables);
  bool alone = true;
  std::set<int32_t> ranks;
  for (uint32_t s = 1; s < totals.by_stream.size(); ++s)
    if (totals.by_stream[s] != 0) alone &= ranks.insert(tables.streams.info(s).rank).second;
  if (is_plan_already(line)) {
    if (messages && alone && messages_alone) return "kept";
    NativeReader::Cursor cursor(*trace, {});
    Record r{};
    uint64_t number = 0;
    while (true) {
      auto more = cursor.next(r, number);
      if (!more || (*more && !r.depends.empty())) return "kept";
      if (!*more) break;
    }
  }
  return messages ? "apart" : "";
}

namespace {

// What activities say where they are from. The raw folder of a recording goes: the trace stays.
std::string source_of(const std::string& provider, std::string file) {
  if (provider == "capture")
    for (const std::string_view end : {"/records", ".raw"})
      if (file.ends_with(end)) file.resize(file.size() - end.size());
  return file;
}

}  // namespace

Result<void> plan_and_write(const Line& line, int plan_fd, Extensions& extensions, uint64_t explain,
                            RunResult& result, Tables& tables, const Progress& progress) {
  auto left = make_left(line, tables, extensions);
  if (!left) return std::move(left.error());
  if (left->provider->name() != "feign")
    for (const std::string& file : line.providers.front().spec.values("file"))
      tables.sources.push_back(source_of(left->provider->name(), file));
  std::vector<std::unique_ptr<Instance>> writers;
  for (const Chosen& c : line.writers) {
    auto made = make(c, tables, extensions);
    if (!made) return std::move(made.error());
    writers.push_back(std::move(*made));
  }

  std::unique_ptr<NativeWriter> plan;
  if (plan_fd >= 0) {
    NativeWriter::Options how;
    how.plain = uint64_t{64} << 20;
    plan = std::make_unique<NativeWriter>(plan_fd, "plan in " + scratch_directory(), tables, how);
  }
  Needs needs(tables);
  Makers makers(line, tables.ops);
  const bool watch = plan != nullptr || !writers.empty();
  Pipeline pipeline(tables, *left->provider, left->in_order());
  Explain explained(tables, explain);
  if (explain != 0) pipeline.explain(&explained);
  Report& report = result.report;
  uint64_t first = UINT64_MAX, last = 0, passed = 0;
  auto ran = pipeline.run(
      [&](feign_activity* const* items, size_t count) -> Result<void> {
        for (size_t i = 0; i < count; ++i) {
          const feign_activity& a = *items[i];
          first = std::min(first, a.start_ns);
          last = std::max(last, a.start_ns + a.duration_ns);
          if (watch && (!writers.empty() || makers.makes(a))) needs.add(a);
          if (plan) {
            if (auto added = plan->add(*Record::of(items[i])); !added) return added;
          } else {
            ++report.op(a.op).activities;
          }
        }
        for (const auto& w : writers) {
          const feign_status status = w->api<feign_writer>().write(w->self(), items, count);
          if (status != FEIGN_OK) return w->not_ok("write()", status);
        }
        passed += count;
        return {};
      },
      [&] {
        progress("plan", passed, 0);
        return g_stop_signal.load(std::memory_order_relaxed) == 0;
      });
  if (!ran) return ran;
  if (explain != 0) result.explanation = explained.text();
  report.merged = std::min(pipeline.counts().merged, pipeline.counts().dropped);
  report.dropped = pipeline.counts().dropped - report.merged;
  report.injected = pipeline.counts().injected;
  if (first != UINT64_MAX) report.recorded_ns = last - first;
  if (const int signal = g_stop_signal.load(); signal != 0)
    return Error(FEIGN_ERR_IO, "interrupted by signal " + std::to_string(signal) +
                                   (plan ? " before the replay began" : " before it was done"));
  if (watch) extensions.needed = needs.finish();
  if (plan)
    if (auto finished = plan->finish(extensions.needed); !finished) return finished;
  for (size_t i = 0; i < writers.size(); ++i) {
    const feign_status status = writers[i]->api<feign_writer>().finish(writers[i]->self());
    if (status != FEIGN_OK) return writers[i]->not_ok("finish()", status);
    const std::vector<std::string> files = line.writers[i].spec.values("file");
    result.written.emplace_back(writers[i]->name(), files.empty() ? "" : files.back());
  }
  return {};
}

}  // namespace feign
