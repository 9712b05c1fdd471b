// SPDX-License-Identifier: MIT
#include "cli/run.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/output.h"
#include "cli/line.h"
#include "cli/plan.h"
#include "prepare/prepare.h"
#include "replay/ranks.h"
#include "replay/replay.h"
#include "report/format.h"
#include "trace/native.h"

namespace feign {

namespace {

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
                         Fd& root, Report& report) {
  bool needs_root = !options.root.empty();
  for (const Chosen& c : line.replayers) {
    report.replayer += (report.replayer.empty() ? "" : ", ") + std::string(c.component.table->name);
    needs_root |= static_cast<const feign_replayer*>(c.component.table->api)->needs_root != 0;
  }
  if (line.replayers.empty() || !needs_root) return {};
  auto opened = open_root(options.root);
  if (!opened) return std::move(opened.error());
  root = Fd(*opened);
  report.root = options.root;
  feign_run& run = extensions.run;
  run.root_fd = root.get();
  run.content = options.content_text.c_str();
  run.max_bytes = options.max_bytes;
  if (run.max_bytes == 0) {
    // A trace that writes and writes must not fill the disk.
    run.room = 1;
    run.max_bytes = most_of_what_is_free(root.get());
  }
  run.root = report.root.c_str();
  return {};
}

// Makes what must be below the root; `report` says so if there was no room.
Result<void> prepare_root(const ReplayOptions& options, const std::vector<Needed>& needed, Fd& root,
                          feign_run& run, Report& report, const Progress& progress, Fd& held) {
  if (root.get() < 0 || !options.prepare) return {};
  const uint64_t begin = now_ns();
  const PrepareOptions how{options.content, run.max_bytes, run.room != 0};
  auto prepared = prepare(root.get(), report.root, needed, how, [&](uint64_t done) {
    progress("prepare", done, needed.size());
    return g_stop_signal.load(std::memory_order_relaxed) == 0;
  });
  if (!prepared) return std::move(prepared.error());
  held = std::move(prepared->held);
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
  if (run.room == 0 && run.max_bytes != 0)
    run.max_bytes -= std::min(run.max_bytes - 1, prepared->written);
  if (!prepared->full.empty() || prepared->stopped) {
    report.interrupted = true;
    report.stopped_by = prepared->stopped
                            ? "interrupted by signal " + std::to_string(g_stop_signal.load()) +
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
    to.pause_ns += s.pause_ns - s.idle_ns;
    to.wait_ns += s.wait_ns + s.idle_ns;
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
    report.stopped_by = "interrupted by signal " + std::to_string(g_stop_signal.load()) +
                        ", and rank " + std::to_string(silent->rank) + " told nothing";
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

// A run, stage after stage. Of several ranks all go the same way from join() on, and none ends
// without the others: what only one of them does, all learn the end of (together()).
class Run {
 public:
  Run(const PipelineOptions& options, Plugins& plugins, Tables& tables, const Progress& progress,
      RunResult& result)
      : options_(options),
        plugins_(plugins),
        tables_(tables),
        progress_(progress),
        result_(result),
        report_(result.report) {}
  Result<void> all();

 private:
  Result<void> choose_plugins();
  Result<void> name_files();
  Result<void> join();
  Result<void> choose_order();
  Result<void> make_plan();
  Result<void> open_plan();
  void look_for_idle();
  Result<void> share_out();
  Result<void> prepare();
  Result<void> open_logs();
  Result<void> make_replayers();
  void gather();

  Result<void> together(Result<void> mine) {
    return ranks_ ? ranks_->agree(std::move(mine)) : std::move(mine);
  }
  // What a pipeline lacks is nowhere in its file; what is wrong there is told with its place.
  Result<void> in_file(Result<void> wrong) const {
    if (options_.file.empty() || wrong.error().text().starts_with(options_.file + ":"))
      return wrong;
    return std::move(wrong.error()).within(options_.file);
  }
  uint32_t rank() const { return ranks_ ? ranks_->rank() : 0; }
  bool first() const { return rank() == 0; }
  // A file that each rank has its own of.
  std::string of_rank(const std::string& file, uint32_t rank) const {
    return several_ && !file.empty() ? file + "." + std::to_string(rank) : file;
  }

  PipelineOptions options_;
  Plugins& plugins_;
  Tables& tables_;
  const Progress& progress_;
  RunResult& result_;
  Report& report_;
  const uint64_t begin_ = now_ns();

  Line line_;
  bool several_ = false;      // ranks, to replay
  bool by_messages_ = false;  // ranks are kept in order by them
  std::unique_ptr<Ranks> ranks_;
  Extensions extensions_;
  Fd root_, plan_fd_;
  Fd held_;                  // the root, until the end
  bool ready_made_ = false;  // the trace is the plan
  std::string plan_name_ = "plan";
  std::shared_ptr<NativeReader> plan_;
  RankMap map_;
  std::vector<uint32_t> mine_;  // streams
  std::unique_ptr<ActivityLog> activities_;
  std::vector<std::unique_ptr<Instance>> replayers_;
};

Result<void> Run::choose_plugins() {
  auto line = choose(options_.plugins, plugins_);
  if (!line) return std::move(line.error());
  line_ = std::move(*line);
  if (line_.replayers.empty() && line_.writers.empty())
    return Error(
        FEIGN_ERR_ARGUMENT,
        "nothing to do with the trace: want a replayer (posix, null) or a writer (feign, text)");
  several_ = !line_.replayers.empty() && launched().size > 1;
  ReplayOptions& replay = options_.replay;
  report_.pace = replay.pace == Pace::kThink   ? "think"
                 : replay.pace == Pace::kTimed ? "timed"
                                               : "afap";
  report_.map = replay.map;
  if (several_) {
    if (replay.order == Order::kTrace && replay.order_given)
      return Error(FEIGN_ERR_ARGUMENT,
                   "--order trace: several ranks have no order over all streams; want depend or "
                   "stream");
    if (replay.order == Order::kTrace) replay.order = Order::kStream;
  } else if (!replay.map.empty()) {
    return Error(FEIGN_ERR_ARGUMENT,
                 "--map " + replay.map +
                     ": one process replays all: want mpirun -np N feign …, N at least 2");
  } else if (replay.patience_ns != 0) {
    return Error(FEIGN_ERR_ARGUMENT,
                 "--patience: one process replays all, and no call waits for other ranks: want "
                 "mpirun -np N feign …, N at least 2");
  }
  if (replay.order == Order::kDepend)
    return add_depend(line_, depend_for(line_, several_), plugins_);
  return {};
}

// What is read, for the report; what is written must be something else.
Result<void> Run::name_files() {
  const std::vector<std::string> files = line_.providers.front().spec.values("file");
  std::vector<std::string> read = options_.inputs;
  read.insert(read.end(), files.begin(), files.end());
  read.push_back(options_.replay.map);
  for (const Chosen& c : line_.modifiers)
    for (const std::string& file : c.spec.values("edges")) read.push_back(file);
  std::vector<Written> written = options_.outputs;
  for (uint32_t rank = 0; rank < (several_ ? launched().size : 1); ++rank) {
    written.push_back({"--waits", of_rank(options_.replay.waits, rank)});
    written.push_back({"--activities", of_rank(options_.replay.activities, rank)});
  }
  for (const Chosen& c : line_.writers)
    for (const std::string& file : c.spec.values("file"))
      written.push_back({c.component.table->name, file, true});
  if (auto ok = none_overwritten(read, written); !ok) return ok;

  constexpr size_t kNamed = 4;  // a trace may have a file a process
  if (files.empty())
    report_.trace = line_.providers.front().component.table->name;
  else if (files.size() > kNamed)
    report_.trace =
        files.front() + " … " + files.back() + " (" + format_count(files.size()) + " files)";
  else
    for (const std::string& file : files)
      report_.trace += (report_.trace.empty() ? "" : ", ") + file;
  return {};
}

Result<void> Run::join() {
  if (!several_) return {};
  const uint64_t begin = now_ns();
  auto joined = Ranks::join(launched(), plugins_, tables_, !options_.replay.map.empty());
  if (!joined) return std::move(joined.error());
  ranks_ = std::move(*joined);
  report_.join_ns = now_ns() - begin;
  result_.silent = ranks_->rank() != 0;
  report_.ranks.resize(ranks_->size());
  for (uint32_t r = 0; r < ranks_->size(); ++r) {
    report_.ranks[r].rank = r;
    report_.ranks[r].host = ranks_->hosts()[r];
  }
  return {};
}

// Of several ranks, where nobody said it.
Result<void> Run::choose_order() {
  if (!ranks_ || options_.replay.order != Order::kStream || options_.replay.order_given) return {};
  PluginSpec spec = depend_for(line_, several_);
  const auto has = [&](std::string_view name) {
    return std::any_of(spec.options.begin(), spec.options.end(),
                       [&](const auto& option) { return option.first == name; });
  };
  const bool made = has("rules");  // messages: they are not left to rule mpi
  auto told = ranks_->tell_all(first() ? order_of_ranks(line_, made && !has("io")) : "");
  if (!told) return std::move(told.error());
  if (*told == "kept") return {};
  options_.replay.order = Order::kDepend;
  by_messages_ = made && *told == "apart";
  if (by_messages_) spec.options.emplace_back("ranks", "apart");
  return together(add_depend(line_, std::move(spec), plugins_));
}

// Of one process it has no name; else rank 0 makes it, and the others read their parts.
Result<void> Run::make_plan() {
  extensions_.run.no_pauses = options_.replay.pace == Pace::kAfap && options_.explain == 0 &&
                              !line_.replayers.empty() && line_.modifiers.empty() &&
                              line_.writers.empty();
  ready_made_ = options_.explain == 0 && is_plan_already(line_) && all_is_made(line_);
  std::string scratch_name;
  const auto make = [&]() -> Result<void> {
    if (ready_made_) {
      plan_name_ = line_.providers.front().spec.values("file").front();
      plan_fd_ = Fd(open(plan_name_.c_str(), O_RDONLY | O_CLOEXEC));
      if (!plan_fd_.ok()) return errno_error("provider feign: open " + plan_name_, errno);
      return {};
    }
    if (!first()) return {};
    if (!line_.replayers.empty()) {
      auto scratch = plan_file(ranks_ ? &scratch_name : nullptr);
      if (!scratch) return std::move(scratch.error());
      plan_fd_ = std::move(*scratch);
    }
    // The right half gets tables of its own: what only the left half needed is given back.
    auto source = std::make_unique<Tables>();
    source->notes = options_.notes;
    auto planned = plan_and_write(line_, plan_fd_.get(), extensions_, options_.explain, result_,
                                  *source, progress_);
    if (!planned) return planned;
    if (!line_.replayers.empty()) report_.notes = source->warnings;  // else there is no report
    report_.notes.insert(report_.notes.end(), source->notes.begin(), source->notes.end());
    if (line_.replayers.empty()) {
      tables_.left_out = source->left_out;
      report_.left_out = source->left_out;
    }
    return {};
  };
  Result<void> made = together(make());
  if (made && ranks_ && !ready_made_) {
    auto told = ranks_->tell_all(scratch_name);
    if (!told) {
      made = std::move(told.error());
    } else if (!first()) {
      plan_fd_ = Fd(open(told->c_str(), O_RDONLY | O_CLOEXEC));
      if (!plan_fd_.ok())
        made = Error(FEIGN_ERR_IO,
                     errno_error("open the plan " + *told, errno).text() +
                         ": want a TMPDIR that all hosts share, or a trace in Feign's own format "
                         "(feign convert)");
    }
    made = together(std::move(made));
  }
  if (!scratch_name.empty()) unlink(scratch_name.c_str());
  return made;
}

Result<void> Run::open_plan() {
  auto plan = NativeReader::open(plan_fd_.release(), plan_name_, tables_);
  if (auto done = together(plan ? Result<void>{} : Result<void>(plan.error())); !done) return done;
  plan_ = std::move(*plan);
  const NativeTotals& totals = plan_->totals();
  report_.left_out = tables_.left_out;
  if (ready_made_) report_.notes = tables_.notes;
  report_.recorded_ns = totals.last_ns > totals.first_ns ? totals.last_ns - totals.first_ns : 0;
  extensions_.run.max_length = totals.max_length;
  extensions_.run.alone = options_.replay.one_thread() && !ranks_ && line_.replayers.size() == 1;
  return {};
}

// Replayers that the trace has no calls for. (Several ranks have one to meet by.)
void Run::look_for_idle() {
  if (several_) return;
  std::vector<std::string> has;
  const auto& counts = plan_->totals().by_op;
  for (uint32_t op = 0; op < counts.size(); ++op) {
    if (counts[op] == 0) continue;
    const std::string layer = tables_.ops.info(op)->layer;
    if (std::find(has.begin(), has.end(), layer) == has.end()) has.push_back(layer);
  }
  const auto listed = [](const std::vector<std::string>& layers) {
    std::string list;
    for (const std::string& layer : layers) list += (list.empty() ? "" : ", ") + layer;
    return list;
  };
  if (has.empty()) return;
  for (const Chosen& c : line_.replayers) {
    const char* const* layers = static_cast<const feign_replayer*>(c.component.table->api)->layers;
    if (layers == nullptr) continue;
    std::vector<std::string> serves;
    for (; *layers != nullptr; ++layers) serves.emplace_back(*layers);
    if (std::find_first_of(serves.begin(), serves.end(), has.begin(), has.end()) == serves.end())
      report_.notes.push_back("replayer " + std::string(c.component.table->name) +
                              " has nothing to do: it is for " + listed(serves) +
                              ", and what is replayed has calls of " + listed(has));
  }
}

// Which streams are this rank's.
Result<void> Run::share_out() {
  const NativeTotals& totals = plan_->totals();
  const auto share = [&]() -> Result<void> {
    if (ranks_) {
      auto mapped = map_ranks(options_.replay.map, tables_, ranks_->size());
      if (!mapped) return std::move(mapped.error());
      map_ = std::move(*mapped);
      extensions_.run.rank = ranks_->rank();
      extensions_.run.ranks = ranks_->size();
      extensions_.run.rank_of = map_.by_recorded.data();
      extensions_.run.recorded_ranks = static_cast<uint32_t>(map_.by_recorded.size());
    }
    for (uint32_t s = 1; s < totals.by_stream.size(); ++s)
      if (totals.by_stream[s] != 0 && (!ranks_ || map_.by_stream[s] == ranks_->rank()))
        mine_.push_back(s);
    return {};
  };
  if (auto done = together(share()); !done || !ranks_) return done;
  if (auto done = together(ranks_->link(plan_, mine_, map_.by_stream, tables_)); !done) return done;
  extensions_.run.common = ranks_->common();
  if (options_.replay.order != Order::kStream) return {};
  if (!has_messages(totals, tables_))
    report_.notes.push_back(
        "the trace has no MPI calls: ranks wait for each other only where it says so; --order "
        "depend makes them wait, too, where calls touch the same files");
  uint32_t racing = UINT32_MAX;
  ranks_->gather(ranks_->race(mine_, map_) ? "1" : "", UINT64_MAX,
                 [&](uint32_t rank, const std::string& race) {
                   if (!race.empty()) racing = std::min(racing, rank);
                 });
  if (racing != UINT32_MAX)
    report_.notes.push_back(
        "several threads of a rank call MPI (rank " + std::to_string(racing) +
        "): only --order depend keeps them as recorded; without it they may wait for ever");
  return {};
}

// The root, and what else comes before the first call; report_.interrupted if it came to an end.
Result<void> Run::prepare() {
  Result<void> made;
  if (first())
    made = prepare_root(options_.replay, plan_->needed(), root_, extensions_.run, report_,
                        progress_, held_);
  if (auto done = together(std::move(made)); !done) return done;
  if (ranks_) {
    auto told = ranks_->tell_all(report_.interrupted ? report_.stopped_by : std::string());
    if (!told) return std::move(told.error());
    report_.interrupted = !told->empty();
  }
  if (report_.interrupted) return {};
  // What an earlier replay had written is gone, and what was prepared is there.
  feign_run& run = extensions_.run;
  if (run.room != 0) run.max_bytes = most_of_what_is_free(root_.get());
  return together(first() ? last_steps(options_.replay, root_.get(), report_) : Result<void>());
}

Result<void> Run::open_logs() {
  const std::string waits = of_rank(options_.replay.waits, rank());
  if (!waits.empty() && waits != "-" && !can_be_written(waits))
    return errno_error("write " + options_.replay.waits, errno);
  if (options_.replay.activities.empty()) return {};
  auto created = ActivityLog::create(of_rank(options_.replay.activities, rank()));
  if (!created) return std::move(created.error());
  activities_ = std::move(*created);
  return {};
}

Result<void> Run::make_replayers() {
  for (const Chosen& c : line_.replayers) {
    Preview preview{
        plan_, &mine_, &tables_, static_cast<const feign_replayer*>(c.component.table->api), {}};
    extensions_.plan = {sizeof(feign_plan), 0, &preview, Preview::each};
    auto instance = make(c, tables_, extensions_);
    extensions_.plan.each = nullptr;
    if (!preview.failure) return std::move(preview.failure);
    if (!instance) return std::move(instance.error());
    replayers_.push_back(std::move(*instance));
  }
  return {};
}

// All ranks' reports in rank 0's.
void Run::gather() {
  gather_reports(*ranks_, report_);
  if (by_messages_ && names_differ(report_))
    report_.notes.push_back(
        "no message orders the ranks' calls on one name, it seems: --order depend keeps the "
        "recorded order between ranks, too");
  if (!report_.interrupted) return;
  if (const std::string lost = first() ? ranks_->lost() : ""; !lost.empty())
    report_.stopped_by = lost + "; then " + report_.stopped_by;
  // Calls of others may wait for ever for this one's: there is no orderly end. Rank 0 has the
  // last word, unless it is rank 0 that is lost.
  result_.end_all = [ranks = std::shared_ptr<Ranks>(std::move(ranks_))](int status) {
    if (ranks->rank() != 0) sleep(20);
    ranks->abort(status);
  };
  for (auto& r : replayers_) (void)r.release();
}

Result<void> Run::all() {
  if (auto done = choose_plugins(); !done) return in_file(std::move(done));
  if (auto done = name_files(); !done) return done;
  if (auto done = join(); !done) return done;
  if (auto done = choose_order(); !done) return done;
  if (auto done = together(set_up_root(line_, options_.replay, extensions_, root_, report_)); !done)
    return in_file(std::move(done));
  if (auto done = make_plan(); !done) return done;
  const uint64_t planned = now_ns();
  report_.plan_ns = planned - begin_ - report_.join_ns;
  if (line_.replayers.empty()) return {};
  if (auto done = open_plan(); !done) return done;
  report_.plan_ns = now_ns() - begin_ - report_.join_ns;
  look_for_idle();
  if (auto done = share_out(); !done) return done;
  if (auto done = prepare(); !done) return done;
  result_.replayed = true;
  if (report_.interrupted) return {};
  if (auto done = together(open_logs()); !done) return done;
  const size_t noted = tables_.notes.size();
  if (auto done = together(make_replayers()); !done) return done;
  const uint64_t ready_ns = now_ns() - planned;

  std::vector<Instance*> in_order;
  for (const auto& r : replayers_) in_order.push_back(r.get());
  std::optional<Team> team;
  if (ranks_) team.emplace(Team{*ranks_, map_});
  replay(plan_, options_.replay, in_order, root_.get(), tables_, report_, progress_,
         activities_.get(), team ? &*team : nullptr);
  if (!ranks_) replayers_.clear();  // for the notes of their destroy(); several end together, later
  report_.notes.insert(report_.notes.end(), tables_.notes.begin() + static_cast<ptrdiff_t>(noted),
                       tables_.notes.end());
  if (!ranks_) return {};
  sum_up(report_, tables_, ready_ns, report_.ranks[ranks_->rank()]);
  gather();
  return {};
}

}  // namespace

Result<RunResult> run_pipeline(const PipelineOptions& options, Plugins& plugins, Tables& tables,
                               const Progress& progress) {
  RunResult result;
  auto done = Run(options, plugins, tables, progress, result).all();
  if (!done) return std::move(done.error());
  return result;
}

}  // namespace feign
