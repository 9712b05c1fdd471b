// SPDX-License-Identifier: MIT
#include "replay/replay.h"

#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "replay/path.h"
#include "replay/run.h"
#include "replay/wait_file.h"
#include "replay/worker.h"

namespace feign {
namespace {

// Where nobody says how many threads there may be.
constexpr size_t kMostWorkers = 256;
// A replay by several ranks gives a call, or a wait for another rank, at least this long.
constexpr uint64_t kPatience_ns = 60'000'000'000;
// How long a rank that has to end waits for its own calls under way.
constexpr uint64_t kGrace_ns = 2'000'000'000;

// What the others have to do with this rank's run. [main, about ten times a second]
class Watch {
 public:
  Watch(Run& run, uint64_t recorded_ns)
      : run_(run),
        ranks_(run.team->ranks),
        patience_ns_(std::max(kPatience_ns, run.options.patience_ns)) {
    // A call of MPI that moves much, on all ranks, shows nothing of its going on.
    const double scale = run.options.pace == Pace::kAfap ? 1 : std::max(1.0, run.options.scale);
    patience_ns_ += static_cast<uint64_t>(2 * scale * static_cast<double>(recorded_ns));
    if (run.options.patience_ns != 0) patience_ns_ = run.options.patience_ns;
  }
  void look() {
    const uint64_t now = now_ns();
    if (const std::string who = ranks_.stopped_by(); !who.empty() && !run_.stopping.load()) {
      ended_elsewhere_ = true;
      run_.stop(who);
    }
    uint64_t mine = 0;
    for (const auto& w : run_.workers) mine = std::max(mine, w->went_on_at(now));
    // Who waits for a rank that is slow waits for as long as that takes.
    const uint64_t all = ranks_.went_on(mine, now, patience_ns_ / 4);
    if (!run_.stopping.load() && now >= all + patience_ns_)
      for (const auto& w : run_.workers) {
        const uint64_t since = w->busy_since();
        if (since == 0 || now < since + patience_ns_) continue;
        run_.fail(Error(FEIGN_ERR_IO,
                        w->busy_with(run_.tables) + " has waited " +
                            std::to_string((now - since) / 1'000'000'000) +
                            " s for other ranks, and none went on: does the trace lack what it "
                            "waits for? (--patience gives more time)"));
        break;
      }
    if (!run_.stopping.load()) return;
    // Again and again: who was about to do something when it stopped may have overwritten what was
    // opened, and be in a call since that never returns.
    run_.let_go();
    if (stopped_ns_ != 0) return;
    stopped_ns_ = now;
    // Who is in a call that never returns shares MPI with this thread after the grace.
    ranks_.expect_several();
    if (!ended_elsewhere_) {
      const std::lock_guard lock(run_.mutex);
      ranks_.stop_all(run_.failure ? run_.failure->text() : run_.stopped_by);
    }
  }
  // Its own calls may wait for ever for those of a rank that is gone. Who is not in one needs what
  // this run has to come to its end, late as that may be.
  bool give_up() const {
    return stopped_ns_ != 0 && now_ns() - stopped_ns_ > kGrace_ns &&
           std::all_of(run_.workers.begin(), run_.workers.end(),
                       [](const auto& w) { return w->over() || w->in_call(); });
  }

 private:
  Run& run_;
  Ranks& ranks_;
  uint64_t patience_ns_, stopped_ns_ = 0;
  bool ended_elsewhere_ = false;
};

}  // namespace

void replay(std::shared_ptr<const NativeReader> plan, const ReplayOptions& options,
            const std::vector<Instance*>& replayers, int root_fd, Tables& tables, Report& report,
            const Progress& progress, ActivityLog* activities, const Team* team) {
  const uint64_t total = plan->totals().activities;
  const uint64_t recorded = plan->totals().last_ns - plan->totals().first_ns;
  // Threads that never come back from a call keep what they use.
  auto kept =
      std::make_unique<Run>(std::move(plan), options, replayers, root_fd, tables, activities, team);
  Run& run = *kept;
  if (options.compute && run.pause.doubt()[0] != '\0')
    log(FEIGN_LOG_WARN, std::string("replay: ") + run.pause.doubt());
  std::optional<Watch> watch;
  if (team != nullptr) watch.emplace(run, recorded);
  const uint64_t begin = now_ns();
  bool left_behind = false;
  if (total != 0) {
    const size_t most = options.streams_per_core != 0
                            ? options.streams_per_core * processors().size()
                            : kMostWorkers;
    run.share(options.one_thread() ? 1 : most);
    // A single one shares memory with this thread, which only waits: what planning used is there
    // already, where new memory takes a fault a page.
    if (run.workers.size() == 1) (void)mallopt(M_ARENA_MAX, 1);
    run.start();
    std::unique_lock lock(run.mutex);
    while (run.running != 0) {
      run.changed.wait_for(lock, std::chrono::milliseconds(team != nullptr ? 20 : 100));
      const bool all_done = run.running == 0;  // then there is nothing left to stop
      lock.unlock();
      if (const int signal = g_stop_signal.load(); signal != 0 && !all_done && !run.stopping.load())
        run.stop("interrupted by signal " + std::to_string(signal));
      if (const std::string who = run.waits->stuck(); !who.empty() && !run.stopping.load())
        run.fail(Error(FEIGN_ERR_ARGUMENT, "replay: " + who));
      if (watch) watch->look();
      progress("replay", run.done.load(std::memory_order_relaxed), total);
      lock.lock();
      left_behind = watch && watch->give_up();
      if (left_behind) break;
    }
  }
  if (left_behind) run.abandoned.store(true, std::memory_order_release);
  if (watch) {
    watch->look();
    team->ranks.one_thread(false);
  }
  const uint64_t over = now_ns();
  uint64_t first = over, last = begin;
  std::vector<WorkerTime> times;
  for (auto& worker : run.workers) {
    if (left_behind && !worker->over()) {
      worker->leave_behind();
      continue;
    }
    worker->join();
    worker->merge_into(report, tables);
    times.push_back(worker->time());
    first = std::min(first, times.back().first_ns);
    last = std::max(last, times.back().last_ns);
  }
  report.wall_ns = last > first ? last - first : 0;
  report.workers = run.workers.size();
  if (team != nullptr && team->ranks.rank() < report.ranks.size()) {
    RankReport& mine = report.ranks[team->ranks.rank()];
    if (last > first) {
      mine.first_ns = first - std::min(first, run.anchor_ns);
      mine.last_ns = last - std::min(last, run.anchor_ns);
    }
  } else if (run.workers.size() > 1) {
    report.path = critical_path(times, first);
    report.concurrency = concurrency(times, first, last);
  }
  std::sort(report.streams.begin(), report.streams.end(),
            [](const StreamReport& a, const StreamReport& b) { return a.stream < b.stream; });
  report.interrupted = run.stopping.load();
  report.stopped_by = run.stopped_by;
  if (run.failure) {
    report.failed = true;
    report.stopped_by = run.failure->text();
  }
  if (!options.waits.empty()) {
    const std::string name =
        options.waits + (team != nullptr ? "." + std::to_string(team->ranks.rank()) : "");
    if (auto done = write_waits(name, run.plan, tables, times, first); !done && !report.failed) {
      report.failed = true;
      report.stopped_by = done.error().text();
    }
  }
  if (activities != nullptr)
    if (auto done = activities->finish(tables, std::min(first, last), last);
        !done && !report.failed) {
      report.failed = true;
      report.stopped_by = done.error().text();
    }
  if (left_behind) {
    report.left_behind = true;
    (void)kept.release();
  }
}

}  // namespace feign
