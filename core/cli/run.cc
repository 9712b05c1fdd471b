// SPDX-License-Identifier: MIT
#include "cli/run.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <set>

#include "base/clock.h"
#include "base/output.h"
#include "cli/line.h"
#include "plugin/options.h"
#include "prepare/prepare.h"
#include "replay/ranks.h"
#include "replay/replay.h"
#include "report/format.h"
#include "trace/native.h"
#include "window/pipeline.h"

namespace feign {

std::atomic<int> g_stop_signal{0};

namespace {

class File {
 public:
  explicit File(int fd = -1) : fd_(fd) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { reset(-1); }
  void reset(int fd) {
    if (fd_ >= 0) close(fd_);
    fd_ = fd;
  }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

// A file for the plan: without a name, or, where `keep` asks for one, with.
Result<int> scratch_file(std::string* keep = nullptr) {
  const char* set = getenv("TMPDIR");
  const std::string dir = set != nullptr && *set != '\0' ? set : "/tmp";
  int fd = keep != nullptr ? -1 : open(dir.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd >= 0) return fd;
  std::string name = dir + "/feign-plan-XXXXXX";
  fd = mkostemp(name.data(), O_CLOEXEC);
  if (fd < 0) return errno_error("make the plan in " + dir, errno);
  if (keep != nullptr)
    *keep = name;
  else
    unlink(name.c_str());
  return fd;
}

// Whether a trace in the native format can be replayed as it is.
bool is_plan_already(const Line& line) {
  if (!line.modifiers.empty() || !line.writers.empty() || line.replayers.empty()) return false;
  const Chosen& provider = line.providers.front();
  if (provider.component.short_form || std::string_view(provider.component.table->name) != "feign")
    return false;
  return provider.spec.options.size() == 1 && provider.spec.options.front().first == "file";
}

// Whether ranks of a trace send to each other.
bool has_messages(const NativeTotals& totals, const Tables& tables) {
  for (uint32_t op = 0; op < totals.by_op.size(); ++op)
    if (totals.by_op[op] != 0 && std::string_view(tables.ops.info(op)->layer) == "mpi") return true;
  return false;
}

// How ranks that replay a trace are kept in order, if nobody says: "kept" by itself, in a plan that
// has dependencies (modifier depend was there before), or where each rank is one stream and sends
// messages; "apart", by messages, and dependencies within ranks; else by all dependencies.
// `messages_alone`: but for them there is nothing between ranks.
std::string order_of_ranks(const Line& line, bool messages_alone) {
  const Chosen& provider = line.providers.front();
  const std::string_view name = provider.component.table->name;
  const auto& given = provider.spec.options;
  const auto file = std::find_if(given.begin(), given.end(),
                                 [](const auto& option) { return option.first == "file"; });
  if (name != "feign" || file == given.end())
    return name == "strace" || name == "tracetext" ? "" : "apart";  // those have no MPI
  Tables tables;
  const int fd = open(file->second.c_str(), O_RDONLY | O_CLOEXEC);
  auto trace = fd >= 0 ? NativeReader::open(fd, file->second, tables) : Error(FEIGN_ERR_IO, "");
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

Result<int> open_root(const std::string& root) {
  if (root.empty())
    return Error(FEIGN_ERR_ARGUMENT, "there is no root to replay below: want --root DIR");
  const int fd = open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0)
    return Error(FEIGN_ERR_ARGUMENT,
                 errno_error("root " + root, errno).text() + ": want a directory to replay below");
  if (faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) != 0) {
    const int e = errno;
    close(fd);
    return Error(FEIGN_ERR_ARGUMENT, errno_error("root " + root + ": not writable", e).text());
  }
  return fd;
}

// What activities say where they are from. The raw folder of a recording goes: the trace stays.
std::string source_of(const std::string& provider, std::string file) {
  if (provider == "capture")
    for (const std::string_view end : {"/records", ".raw"})
      if (file.ends_with(end)) file.resize(file.size() - end.size());
  return file;
}

// The left half: provider, modifiers, then into the plan and the writers.
Result<void> plan_and_write(const Line& line, int plan_fd, Extensions& extensions, uint64_t explain,
                            RunResult& result, Tables& tables, const Progress& progress) {
  auto left = make_left(line, tables, extensions);
  if (!left) return std::move(left.error());
  for (const auto& [key, value] : line.providers.front().spec.options)
    if (key == "file" && left->provider->name() != "feign")
      tables.sources.push_back(source_of(left->provider->name(), value));
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
    plan = std::make_unique<NativeWriter>(plan_fd, "plan", tables, how);
  }
  Needs needs(tables);
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
          if (watch) needs.add(a);
          if (plan) {
            if (auto added = plan->add(*Record::of(items[i])); !added) return added;
          } else {
            ++report.op(a.op).activities;
          }
        }
        for (const auto& w : writers) {
          const feign_status status = w->api<feign_writer>().write(w->self(), items, count);
          if (status < 0) return w->failure(status);
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
  report.dropped = pipeline.counts().dropped;
  report.injected = pipeline.counts().injected;
  if (first != UINT64_MAX) report.recorded_ns = last - first;
  if (const int signal = g_stop_signal.load(); signal != 0)
    return Error(FEIGN_ERR_IO,
                 "interrupted by signal " + std::to_string(signal) + " before the replay began");
  if (watch) extensions.needed = needs.finish();
  if (plan)
    if (auto finished = plan->finish(extensions.needed); !finished) return finished;
  for (size_t i = 0; i < writers.size(); ++i) {
    const feign_status status = writers[i]->api<feign_writer>().finish(writers[i]->self());
    if (status < 0) return writers[i]->failure(status);
    std::string file;
    for (const auto& [key, value] : line.writers[i].spec.options)
      if (key == "file") file = value;
    result.written.emplace_back(writers[i]->name(), file);
  }
  return {};
}

// What comes between preparing and the first call.
Result<void> last_steps(const ReplayOptions& options, int root_fd, Report& report) {
  if (options.drop_caches != DropCaches::kNo && root_fd >= 0) {
    auto dropped = drop_caches(root_fd, options.root, options.drop_caches);
    if (!dropped) return std::move(dropped.error()).within("drop caches");
    report.caches = *dropped;
  }
  if (options.before.empty()) return {};
  setenv("FEIGN_ROOT", options.root.c_str(), 1);
  // Standard output is the report's.
  const int status = system(("exec 1>&2; " + options.before).c_str());
  if (status != 0)
    return Error(FEIGN_ERR_IO,
                 "--before \"" + options.before + "\": " +
                     (status < 0          ? strerror(errno)
                      : WIFEXITED(status) ? "exit status " + std::to_string(WEXITSTATUS(status))
                                          : "signal " + std::to_string(WTERMSIG(status))));
  return {};
}

}  // namespace

bool parse_compute(const std::string& text, std::optional<Compute>& compute) {
  const auto* at = std::find(std::begin(kComputes), std::end(kComputes), text);
  if (at == std::end(kComputes)) return false;
  compute = static_cast<Compute>(at - kComputes);
  return true;
}

bool parse_order(const std::string& text, Order& order) {
  static constexpr std::pair<std::string_view, Order> kOrders[] = {
      {"trace", Order::kTrace}, {"stream", Order::kStream}, {"depend", Order::kDepend}};
  for (const auto& [name, value] : kOrders)
    if (name == text) {
      order = value;
      return true;
    }
  return false;
}

namespace {

// What a replayer is about to do, shown to it before it starts.
struct Preview {
  std::shared_ptr<const NativeReader> plan;
  const std::vector<uint32_t>* streams;
  const Tables* tables;
  const feign_replayer* api;
  Result<void> failure;

  static feign_status each(const feign_plan* plan,
                           feign_status (*look)(void* ctx, const feign_activity* a) noexcept,
                           void* ctx) noexcept {
    auto& self = *static_cast<Preview*>(plan->ctx);
    if (self.streams->empty()) return FEIGN_OK;
    try {
      const Ops& ops = self.tables->ops;
      std::vector<bool> wanted(ops.size(), self.api->layers == nullptr);
      bool any = false;
      for (uint32_t op = 0; op < ops.size(); ++op) {
        const feign_op_info* info = ops.info(op);
        for (const char* const* l = self.api->layers; info != nullptr && l != nullptr && *l; ++l)
          if (std::string_view(info->layer) == *l) wanted[op] = true;
        const auto& counts = self.plan->totals().by_op;
        any |= wanted[op] && op < counts.size() && counts[op] != 0;
      }
      if (!any) return FEIGN_OK;
      NativeReader::Range range;
      range.streams = *self.streams;
      NativeReader::Cursor cursor(self.plan, range);
      Record r{};
      uint64_t number = 0;
      while (true) {
        auto more = cursor.next(r, number);
        if (!more) {
          self.failure = std::move(more.error());
          return FEIGN_ERR_IO;
        }
        if (!*more) return FEIGN_OK;
        if (!wanted[r.a.op]) continue;
        if (const feign_status status = look(ctx, &r.a); status != FEIGN_OK) return status;
      }
    } catch (const std::bad_alloc&) {
      return FEIGN_ERR_NOMEM;
    }
  }
};

Result<void> set_up_root(const Line& line, const ReplayOptions& options, Extensions& extensions,
                         File& root, Report& report) {
  bool needs_root = !options.root.empty();
  for (const Chosen& c : line.replayers) {
    report.replayer += (report.replayer.empty() ? "" : ", ") + std::string(c.component.table->name);
    needs_root |= static_cast<const feign_replayer*>(c.component.table->api)->needs_root != 0;
  }
  if (line.replayers.empty() || !needs_root) return {};
  auto opened = open_root(options.root);
  if (!opened) return std::move(opened.error());
  root.reset(*opened);
  report.root = options.root;
  feign_run& run = extensions.run;
  run.root_fd = root.get();
  run.content = options.content_text.c_str();
  run.max_bytes = options.max_bytes;
  if (run.max_bytes == 0) {
    // A trace that writes and writes must not fill the disk for everybody.
    struct statvfs fs {};
    run.room = 1;
    if (fstatvfs(root.get(), &fs) == 0)
      run.max_bytes = std::max<uint64_t>(1, fs.f_bavail * fs.f_frsize / 20 * 19);
  }
  run.root = report.root.c_str();
  return {};
}

// Makes what must be below the root; `report` says so if there was no room.
Result<void> prepare_root(const ReplayOptions& options, const std::vector<Needed>& needed,
                          File& root, feign_run& run, Report& report, const Progress& progress) {
  if (root.get() < 0 || !options.prepare) return {};
  const uint64_t begin = now_ns();
  const PrepareOptions how{options.content, run.max_bytes};
  auto prepared = prepare(root.get(), report.root, needed, how, [&](uint64_t done) {
    progress("prepare", done, needed.size());
    return g_stop_signal.load(std::memory_order_relaxed) == 0;
  });
  if (!prepared) return std::move(prepared.error());
  report.prepare_ns = now_ns() - begin;
  report.prepared_files = prepared->files;
  report.prepared_directories = prepared->directories;
  report.prepared_links = prepared->links;
  report.prepared_bytes = prepared->bytes;
  report.prepared_content = options.content_text;
  if (prepared->left_out != 0)
    report.notes.push_back(
        std::to_string(prepared->left_out) +
        " of what the trace starts from cannot be there, or not beside the rest, and is "
        "not made; the first: " +
        prepared->why);
  const bool writes = options.content.kind != Content::kSparse;
  if (writes && run.max_bytes != 0) run.max_bytes -= std::min(run.max_bytes - 1, prepared->bytes);
  if (!prepared->full.empty() || prepared->stopped) {
    report.interrupted = true;
    report.stopped_by = prepared->stopped ? "signal " + std::to_string(g_stop_signal.load()) +
                                                " while the root was prepared"
                                          : prepared->full;
  }
  return {};
}

// The sums of this rank's row of the report.
void sum_up(Report& report, const Tables& tables, uint64_t ready_ns, RankReport& to) {
  to.there = true;
  to.failed = report.failed;
  to.stopped_by = report.interrupted ? report.stopped_by : std::string();
  to.ready_ns = ready_ns;
  for (uint32_t id = 0; id < report.ops.size(); ++id) {
    if (!report.ops[id]) continue;
    const OpReport& op = *report.ops[id];
    const feign_op_info* info = tables.ops.info(id);
    const bool message = info != nullptr && std::string_view(info->layer) == "mpi";
    (message ? to.communication_ns : to.io_ns) += op.latency.sum();
    to.activities += op.activities;
    to.mismatched += op.mismatched;
    to.bytes += op.bytes_read + op.bytes_written;
  }
  to.streams = report.streams.size();
  for (const StreamReport& s : report.streams) {
    to.pause_ns += s.pause_ns;
    to.wait_ns += s.wait_ns;
  }
  struct rusage used {};
  if (getrusage(RUSAGE_SELF, &used) == 0) to.memory = static_cast<uint64_t>(used.ru_maxrss) * 1024;
}

// Rank 0 gets what came of all; of one that ended early, what the others still can tell.
void gather_reports(Ranks& ranks, Report& report) {
  constexpr uint64_t kWait_ns = 4'000'000'000;
  if (ranks.rank() != 0) {
    ranks.gather(packed(report), UINT64_MAX, [](uint32_t, const std::string&) {});
    return;
  }
  ranks.gather({}, report.interrupted ? kWait_ns : UINT64_MAX,
               [&](uint32_t rank, const std::string& bytes) {
                 if (rank != 0) (void)add_packed(bytes, report);
               });
  // Who ended it: not those that were told of it.
  for (const RankReport& r : report.ranks) {
    if (r.rank == 0 || r.stopped_by.empty() || r.stopped_by.starts_with("rank ")) continue;
    if (report.interrupted && !report.stopped_by.starts_with("rank ")) break;
    report.interrupted = true;
    report.failed |= r.failed;
    report.stopped_by = "rank " + std::to_string(r.rank) + " (" + r.host + "): " + r.stopped_by;
    break;
  }
  const auto silent = std::find_if(report.ranks.begin(), report.ranks.end(),
                                   [](const RankReport& r) { return !r.there; });
  if (!report.interrupted && silent != report.ranks.end()) {
    report.interrupted = true;
    report.stopped_by = "signal " + std::to_string(g_stop_signal.load()) + ", and rank " +
                        std::to_string(silent->rank) + " told nothing";
  }
  std::sort(report.streams.begin(), report.streams.end(),
            [](const StreamReport& a, const StreamReport& b) { return a.stream < b.stream; });
  uint64_t first = UINT64_MAX, last = 0;
  for (const RankReport& r : report.ranks) {
    if (r.last_ns == 0) continue;
    first = std::min(first, r.first_ns);
    last = std::max(last, r.last_ns);
  }
  if (last != 0) report.wall_ns = last - first;
}

// Whether a name was there and now is not, or the other way.
bool names_differ(const Report& report) {
  return std::any_of(report.mismatches.begin(), report.mismatches.end(), [](const auto& m) {
    const auto& [op, recorded, replayed] = m.first;
    return recorded == -ENOENT || recorded == -EEXIST || replayed == -ENOENT || replayed == -EEXIST;
  });
}

}  // namespace

Result<RunResult> run_pipeline(const PipelineOptions& given, Plugins& plugins, Tables& tables,
                               const Progress& progress) {
  PipelineOptions options = given;
  RunResult result;
  Report& report = result.report;
  const uint64_t begin = now_ns();
  auto line = choose(options.plugins, plugins);
  if (!line) return std::move(line.error());
  if (line->replayers.empty() && line->writers.empty())
    return Error(
        FEIGN_ERR_ARGUMENT,
        "nothing to do with the trace: want a replayer (posix, null) or a writer (feign, text)");

  const Launched by = launched();
  const bool several = !line->replayers.empty() && by.size > 1;
  if (several) {
    if (options.replay.order == Order::kTrace && options.replay.order_given)
      return Error(FEIGN_ERR_ARGUMENT,
                   "--order trace: several ranks have no order over all streams; want depend or "
                   "stream");
    if (options.replay.order == Order::kTrace) options.replay.order = Order::kStream;
  } else if (!options.replay.map.empty()) {
    return Error(FEIGN_ERR_ARGUMENT,
                 "--map " + options.replay.map +
                     ": one process replays all: want mpirun -np N feign …, N at least 2");
  }
  if (options.replay.order == Order::kDepend)
    if (auto added = add_depend(*line, depend_for(*line, several), plugins); !added)
      return std::move(added.error());

  std::vector<std::string> files;
  for (const auto& [key, value] : line->providers.front().spec.options)
    if (key == "file") files.push_back(value);
  std::vector<Written> written = options.outputs;
  written.push_back({"--waits", options.replay.waits});
  written.push_back({"--activities", options.replay.activities});
  for (const Chosen& c : line->writers)
    for (const auto& [key, value] : c.spec.options)
      if (key == "file") written.push_back({c.component.table->name, value});
  if (auto ok = apart(files, written); !ok) return std::move(ok.error());
  constexpr size_t kNamed = 4;  // a trace may have a file a process
  if (files.empty())
    report.trace = line->providers.front().component.table->name;
  else if (files.size() > kNamed)
    report.trace =
        files.front() + " … " + files.back() + " (" + format_count(files.size()) + " files)";
  else
    for (const std::string& file : files) report.trace += (report.trace.empty() ? "" : ", ") + file;
  report.pace = options.replay.pace == Pace::kThink   ? "think"
                : options.replay.pace == Pace::kTimed ? "timed"
                                                      : "afap";
  report.map = options.replay.map;

  // From here on all ranks go the same way, and none ends without the others.
  std::unique_ptr<Ranks> ranks;
  if (several) {
    const uint64_t join_begin = now_ns();
    auto joined = Ranks::join(by, plugins, tables, !options.replay.map.empty());
    if (!joined) return std::move(joined.error());
    ranks = std::move(*joined);
    report.join_ns = now_ns() - join_begin;
    result.silent = ranks->rank() != 0;
    report.ranks.resize(ranks->size());
    for (uint32_t r = 0; r < ranks->size(); ++r) {
      report.ranks[r].rank = r;
      report.ranks[r].host = ranks->hosts()[r];
    }
  }
  const auto together = [&](Result<void> mine) {
    return ranks ? ranks->agree(std::move(mine)) : std::move(mine);
  };
  const bool first = !ranks || ranks->rank() == 0;
  bool apart = false;  // ranks are ordered by messages
  if (ranks && options.replay.order == Order::kStream && !options.replay.order_given) {
    PluginSpec spec = depend_for(*line, several);
    const bool inside = std::any_of(spec.options.begin(), spec.options.end(),
                                    [](const auto& option) { return option.first == "io"; });
    auto told = ranks->tell_all(first ? order_of_ranks(*line, !inside) : "");
    if (!told) return std::move(told.error());
    if (*told != "kept") {
      options.replay.order = Order::kDepend;
      apart = *told == "apart";
      for (const Chosen& c : line->replayers)
        if (apart && std::string_view(c.component.table->name) == "mpi")
          spec.options.emplace_back("ranks", "apart");
      if (auto added = together(add_depend(*line, std::move(spec), plugins)); !added)
        return std::move(added.error());
    }
  }

  Extensions extensions;
  File root;
  if (auto done = together(set_up_root(*line, options.replay, extensions, root, report)); !done)
    return std::move(done.error());

  extensions.run.no_pauses = options.replay.pace == Pace::kAfap && options.explain == 0 &&
                             !line->replayers.empty() && line->modifiers.empty() &&
                             line->writers.empty();

  // The plan: of one process without a name; else rank 0 makes it, and the others read their parts.
  File plan_file;
  std::string plan_name = "plan", scratch_name;
  const bool ready_made = options.explain == 0 && is_plan_already(*line);
  const auto make_plan = [&]() -> Result<void> {
    if (ready_made) {
      plan_name = line->providers.front().spec.options.front().second;
      plan_file.reset(open(plan_name.c_str(), O_RDONLY | O_CLOEXEC));
      if (plan_file.get() < 0) return errno_error("provider feign: open " + plan_name, errno);
      return {};
    }
    if (!first) return {};
    if (!line->replayers.empty()) {
      auto scratch = scratch_file(ranks ? &scratch_name : nullptr);
      if (!scratch) return std::move(scratch.error());
      plan_file.reset(*scratch);
    }
    // The right half gets tables of its own: what only the left half needed is given back.
    auto source = std::make_unique<Tables>();
    if (auto planned = plan_and_write(*line, plan_file.get(), extensions, options.explain, result,
                                      *source, progress);
        !planned)
      return planned;
    report.notes = source->notes;
    if (line->replayers.empty()) {
      tables.left_out = source->left_out;
      report.left_out = source->left_out;
    }
    return {};
  };
  Result<void> made = together(make_plan());
  if (made && ranks && !ready_made) {
    auto told = ranks->tell_all(scratch_name);
    if (!told) return std::move(told.error());
    if (!first) {
      plan_file.reset(open(told->c_str(), O_RDONLY | O_CLOEXEC));
      if (plan_file.get() < 0)
        made = Error(FEIGN_ERR_IO,
                     errno_error("open the plan " + *told, errno).text() +
                         ": want a TMPDIR that all hosts share, or a trace in Feign's own format "
                         "(feign convert)");
    }
    made = together(std::move(made));
  }
  if (!scratch_name.empty()) unlink(scratch_name.c_str());
  if (!made) return std::move(made.error());
  if (line->replayers.empty()) {
    report.plan_ns = now_ns() - begin - report.join_ns;
    return result;
  }

  const uint64_t ready_begin = now_ns();
  auto plan = NativeReader::open(plan_file.release(), plan_name, tables);
  if (auto done = together(plan ? Result<void>{} : Result<void>(plan.error())); !done)
    return std::move(done.error());
  const NativeTotals& totals = (*plan)->totals();
  report.left_out = tables.left_out;
  if (ready_made) report.notes = tables.notes;
  report.recorded_ns = totals.last_ns > totals.first_ns ? totals.last_ns - totals.first_ns : 0;
  extensions.run.max_length = totals.max_length;
  extensions.run.alone = options.replay.one_thread() && !ranks && line->replayers.size() == 1;
  report.plan_ns = now_ns() - begin - report.join_ns;

  // Which streams are this rank's.
  RankMap map;
  std::vector<uint32_t> mine;
  const auto share_out = [&]() -> Result<void> {
    if (ranks) {
      auto mapped = map_ranks(options.replay.map, tables, ranks->size());
      if (!mapped) return std::move(mapped.error());
      map = std::move(*mapped);
      extensions.run.rank = ranks->rank();
      extensions.run.ranks = ranks->size();
      extensions.run.rank_of = map.by_recorded.data();
      extensions.run.recorded_ranks = static_cast<uint32_t>(map.by_recorded.size());
    }
    for (uint32_t s = 1; s < totals.by_stream.size(); ++s)
      if (totals.by_stream[s] != 0 && (!ranks || map.by_stream[s] == ranks->rank()))
        mine.push_back(s);
    return {};
  };
  if (auto done = together(share_out()); !done) return std::move(done.error());
  if (ranks) {
    if (auto done = together(ranks->link(*plan, mine, map.by_stream, tables)); !done)
      return std::move(done.error());
    extensions.run.common = ranks->common();
  }
  if (ranks && options.replay.order == Order::kStream) {
    if (!has_messages(totals, tables))
      report.notes.push_back(
          "the trace has no MPI calls: ranks wait for each other only where it says so; --order "
          "depend makes them wait, too, where calls touch the same files");
    uint32_t racing = UINT32_MAX;
    ranks->gather(ranks->race(mine, map) ? "1" : "", UINT64_MAX,
                  [&](uint32_t rank, const std::string& race) {
                    if (!race.empty()) racing = std::min(racing, rank);
                  });
    if (racing != UINT32_MAX)
      report.notes.push_back(
          "several threads of a rank call MPI (rank " + std::to_string(racing) +
          "): only --order depend keeps them as recorded; without it they may wait for ever");
  }

  if (first)
    made = prepare_root(options.replay, (*plan)->needed(), root, extensions.run, report, progress);
  if (auto done = together(std::move(made)); !done) return std::move(done.error());
  if (ranks) {
    auto told = ranks->tell_all(report.interrupted ? report.stopped_by : std::string());
    if (!told) return std::move(told.error());
    report.interrupted = !told->empty();
  }
  if (report.interrupted) {
    result.replayed = true;
    return result;
  }

  if (auto ready =
          together(first ? last_steps(options.replay, root.get(), report) : Result<void>());
      !ready)
    return std::move(ready.error());
  std::unique_ptr<ActivityLog> activities;
  const auto log_activities = [&]() -> Result<void> {
    if (!options.replay.waits.empty()) {  // written at the end: whether it can be is told now
      OutputFile file;
      if (!file.open(options.replay.waits + (ranks ? "." + std::to_string(ranks->rank()) : "")))
        return errno_error("write " + options.replay.waits, errno);
    }
    if (options.replay.activities.empty()) return {};
    auto created = ActivityLog::create(options.replay.activities +
                                       (ranks ? "." + std::to_string(ranks->rank()) : ""));
    if (!created) return std::move(created.error());
    activities = std::move(*created);
    return {};
  };
  if (auto done = together(log_activities()); !done) return std::move(done.error());

  std::vector<std::unique_ptr<Instance>> replayers;
  std::vector<Instance*> in_order;
  const size_t noted = tables.notes.size();
  const auto make_replayers = [&]() -> Result<void> {
    for (const Chosen& c : line->replayers) {
      Preview preview{
          *plan, &mine, &tables, static_cast<const feign_replayer*>(c.component.table->api), {}};
      extensions.plan = {sizeof(feign_plan), 0, &preview, Preview::each};
      auto instance = make(c, tables, extensions);
      extensions.plan.each = nullptr;
      if (!preview.failure) return std::move(preview.failure);
      if (!instance) return std::move(instance.error());
      replayers.push_back(std::move(*instance));
      in_order.push_back(replayers.back().get());
    }
    return {};
  };
  if (auto done = together(make_replayers()); !done) return std::move(done.error());
  const uint64_t ready_ns = now_ns() - ready_begin;
  std::optional<Team> team;
  if (ranks) team.emplace(Team{*ranks, map});
  replay(*plan, options.replay, in_order, root.get(), tables, report, progress, activities.get(),
         team ? &*team : nullptr);
  report.notes.insert(report.notes.end(), tables.notes.begin() + static_cast<ptrdiff_t>(noted),
                      tables.notes.end());
  if (ranks) {
    sum_up(report, tables, ready_ns, report.ranks[ranks->rank()]);
    gather_reports(*ranks, report);
    if (apart && names_differ(report))
      report.notes.push_back(
          "no message orders the ranks' calls on one name, it seems: --order depend keeps the "
          "recorded order between ranks, too");
    if (report.interrupted && first) {
      if (const std::string lost = ranks->lost(); !lost.empty())
        report.stopped_by = lost + "; then " + report.stopped_by;
    }
    if (report.interrupted) {
      // Calls of others may wait for ever for this one's: there is no orderly end. Rank 0 has the
      // last word, unless it is rank 0 that is lost.
      result.end_all = [ranks = std::shared_ptr<Ranks>(std::move(ranks))](int status) {
        if (ranks->rank() != 0) sleep(20);
        ranks->abort(status);
      };
      for (auto& r : replayers) (void)r.release();
    }
  }
  result.replayed = true;
  return result;
}

}  // namespace feign
