// SPDX-License-Identifier: MIT
#include "replay/replay.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/jail.h"

namespace feign {
namespace {

// Of a pause, this much at the end is spent looking at the clock: a sleep ends late by less.
constexpr uint64_t kSpin_ns = 60'000;
// A pause is slept in pieces, so that a signal ends it.
constexpr uint64_t kNap_ns = 200'000'000;

class Run;

// Activities of one stream that lie in others (FEIGN_DEPTH): what a call that was done did is not
// done again, and the time of one that was skipped counts once, with what is in it or without.
class Nesting {
 public:
  // Whether a call around it was done. (One that ended when another began may lie in it.)
  bool done_already(const feign_activity& a) const {
    return FEIGN_DEPTH(a.marks) > done_depth_ && a.start_ns <= done_until_;
  }
  // Before an activity: `skipped` is the recorded time in skipped calls since the last that was
  // done.
  void before(const feign_activity& a, uint64_t& skipped) {
    const uint32_t depth = FEIGN_DEPTH(a.marks);
    for (; !around_.empty() && around_.back().depth >= depth; around_.pop_back()) {
      const Around& left = around_.back();
      if (left.entered && left.end > last_end_) skipped += left.end - last_end_;
      last_end_ = left.end;
    }
    if (around_.empty() || around_.back().entered) return;
    around_.back().entered = true;
    skipped -= std::min(skipped, around_.back().duration);
  }
  // The time of a skipped one that waits for somebody now was that waiting.
  void after(const feign_activity& a, bool was_skipped, bool waits, uint64_t& skipped) {
    const uint32_t depth = FEIGN_DEPTH(a.marks);
    const uint64_t end = a.start_ns + a.duration_ns;
    if (was_skipped) {
      const uint64_t counted = waits ? 0 : a.duration_ns;
      skipped += counted;
      around_.push_back({depth, false, counted, end});
    } else {
      done_depth_ = depth;
      done_until_ = end;
    }
    last_end_ = end;
  }

 private:
  struct Around {  // a skipped activity; others may lie in it
    uint32_t depth;
    bool entered;
    uint64_t duration, end;
  };
  uint32_t done_depth_ = UINT32_MAX;  // of the last that was done
  uint64_t done_until_ = 0, last_end_ = 0;
  std::vector<Around> around_;
};

// One thread of the replay, with statistics of its own.
class Worker {
 public:
  Worker(Run& run, uint32_t stream);  // 0: all streams, in the order of the trace
  void start() {
    thread_ = std::thread([this] { main(); });
  }
  void join() { thread_.join(); }
  void merge_into(Report& report);
  // When its first call began and its last one ended; none: far away, and 0.
  uint64_t first_ns() const { return first_ns_; }
  uint64_t last_ns() const { return last_ns_; }

 private:
  struct Stream {  // what the replayer knows of one
    void* context = nullptr;
    StreamReport report;
    Nesting nesting;
  };

  void main();
  Result<void> loop();
  Result<Stream*> stream(uint32_t number);
  void pause(uint64_t from, uint64_t length);
  void wrong(const Record& r, const feign_outcome& outcome);
  OpReport& op(uint32_t id) {
    if (id >= ops_.size()) ops_.resize(id + 1);
    if (!ops_[id]) ops_[id] = std::make_unique<OpReport>();
    return *ops_[id];
  }

  Run& run_;
  uint32_t only_;
  std::thread thread_;
  std::vector<Stream> streams_;
  std::vector<std::unique_ptr<OpReport>> ops_;
  std::map<MismatchKey, Mismatch> mismatches_;
  std::map<std::pair<uint32_t, const char*>, uint64_t> skips_;
  uint64_t first_ns_ = UINT64_MAX, last_ns_ = 0;
};

// What the workers share.
class Run {
 public:
  Run(std::shared_ptr<const NativeReader> plan, const ReplayOptions& options, Instance& replayer,
      int root_fd, Tables& tables)
      : plan(std::move(plan)),
        options(options),
        replayer(replayer),
        root_fd(root_fd),
        api(replayer.api<feign_replayer>()),
        tables(tables),
        progress(tables.streams.size()),
        children(tables.streams.size()) {}

  // Ends the replay: everybody who waits is woken.
  void stop(const std::string& why) {
    {
      const std::lock_guard lock(mutex);
      if (stopped_by.empty()) stopped_by = why;
    }
    stopping.store(true, std::memory_order_release);
    turn.store(UINT64_MAX, std::memory_order_release);
    turn.notify_all();
    for (auto& p : progress) {
      p.store(UINT64_MAX, std::memory_order_release);
      p.notify_all();
    }
  }
  void fail(Error error) {
    {
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::move(error);
    }
    stop("a failure");
  }
  void begin(uint32_t stream) {
    const std::lock_guard lock(mutex);
    workers.push_back(std::make_unique<Worker>(*this, stream));
    ++running;
    workers.back()->start();
  }
  void ended() {
    const std::lock_guard lock(mutex);
    if (--running == 0) all_ended.notify_all();
  }

  bool many = false;  // streams
  std::shared_ptr<const NativeReader> plan;
  const ReplayOptions& options;
  Instance& replayer;
  const int root_fd;  // -1: none
  const feign_replayer& api;
  Tables& tables;

  std::atomic<bool> stopping{false};
  std::atomic<uint64_t> done{0};  // activities, for the progress line
  std::atomic<uint64_t> turn{0};  // in recorded order: the number of the activity that may start
  // Every activity of the stream up to this id has ended.
  std::vector<std::atomic<uint64_t>> progress;
  struct Child {
    uint32_t stream;
    uint64_t id;  // of the fork or clone
  };
  std::vector<std::vector<Child>> children;  // by parent, in order of id

  std::mutex mutex;
  std::condition_variable all_ended;
  size_t running = 0;
  std::vector<std::unique_ptr<Worker>> workers;
  std::optional<Error> failure;
  std::string stopped_by;
};

Worker::Worker(Run& run, uint32_t stream) : run_(run), only_(stream) {}

Result<Worker::Stream*> Worker::stream(uint32_t number) {
  if (number >= streams_.size())
    streams_.resize(std::max<size_t>(number + 1, run_.tables.streams.size()));
  Stream& s = streams_[number];
  if (s.context != nullptr || s.report.stream != 0) return &s;
  s.report.stream = number;
  const feign_stream_info info = run_.tables.streams.info(number);
  if (run_.api.open_stream != nullptr) {
    const feign_status status = run_.api.open_stream(run_.replayer.self(), &info, &s.context);
    if (status < 0) return run_.replayer.failure(status);
  }
  return &s;
}

// Waits until `length` after `from`: asleep, then awake for the last stretch.
void Worker::pause(uint64_t from, uint64_t length) {
  const uint64_t until = from + length;
  while (!run_.stopping.load(std::memory_order_relaxed)) {
    const uint64_t now = now_ns();
    if (now >= until) return;
    const uint64_t left = until - now;
    if (left <= kSpin_ns) continue;
    const uint64_t nap = std::min(left - kSpin_ns, kNap_ns);
    const timespec t{static_cast<time_t>(nap / 1'000'000'000),
                     static_cast<long>(nap % 1'000'000'000)};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &t, nullptr);
  }
}

void Worker::wrong(const Record& r, const feign_outcome& outcome) {
  Mismatch& m = mismatches_[{r.a.op, r.a.result, outcome.result}];
  if (m.count++ == 0) {
    m.first_place = r.a.place;
    m.first_id = r.a.id;
    m.first_path = run_.tables.strings.text(r.a.path);
  }
  if (r.a.result >= 0 && (outcome.result == -ENOSPC || outcome.result == -EDQUOT)) {
    const feign_op_info* info = run_.tables.ops.info(r.a.op);
    run_.stop(std::string(outcome.why != nullptr      ? outcome.why
                          : outcome.result == -ENOSPC ? "no space left on device"
                                                      : "disk quota exceeded") +
              ": " + (info != nullptr ? info->name : "?") + " of " + m.first_path + ", " +
              run_.tables.place(r.a.place));
  }
}

Result<void> Worker::loop() {
  NativeReader::Range range;
  range.stream = only_;
  NativeReader::Cursor cursor(run_.plan, range);
  const bool thinks = run_.options.pace == Pace::kThink;
  const bool in_turn = run_.options.order == Order::kTrace && only_ != 0;
  const bool many = run_.many;
  const uint64_t rest = thinks ? 0 : 255;  // the progress line is told of this many more at once
  const double scale = run_.options.scale;
  std::vector<Run::Child>* children = only_ != 0 ? &run_.children[only_] : nullptr;
  size_t next_child = 0;
  std::vector<uint64_t> ends(only_ == 0 ? run_.tables.streams.size() : 0);

  Record r{};
  uint64_t number = 0;
  uint64_t skipped_ns = 0;  // recorded time in calls that are not made: part of the pause
  uint64_t done = 0;
  uint64_t last = now_ns();
  Stream* s = nullptr;
  bool started = false;
  while (true) {
    auto more = cursor.next(r, number);
    if (!more) return std::move(more.error());
    if (!*more) break;
    feign_activity& a = r.a;
    if (run_.stopping.load(std::memory_order_relaxed)) break;
    if (only_ != 0) {
      // What this stream's progress stands for: everything before this activity has ended.
      run_.progress[only_].store(a.id - 1, std::memory_order_release);
      run_.progress[only_].notify_all();
      while (next_child < children->size() && (*children)[next_child].id < a.id)
        run_.begin((*children)[next_child++].stream);
    }
    if (s == nullptr || s->report.stream != a.stream) {
      auto found = stream(a.stream);
      if (!found) return std::move(found.error());
      s = *found;
    }
    const feign_op_info* info = run_.tables.ops.info(a.op);
    if (info == nullptr) continue;
    if (!started) {  // what it took to get ready is not the replay's time
      started = true;
      first_ns_ = last = now_ns();
    }

    const bool done_already = s->nesting.done_already(a);
    if (!done_already) s->nesting.before(a, skipped_ns);
    if (thinks && !done_already) {
      // In recorded order a stream waits for the others as such, not for as long as it did then.
      // Nor if it waits for somebody now: that was what it waited for then.
      const uint64_t waiting =
          in_turn && many ? 0 : (r.depends.empty() ? a.sync_ns : 0) + skipped_ns;
      const auto length =
          static_cast<uint64_t>(static_cast<double>(a.compute_ns + waiting) * scale);
      skipped_ns = 0;
      if (length != 0) {
        pause(last, length);
        const uint64_t now = now_ns();
        s->report.pause_ns += now - last;
        last = now;
      }
    }
    bool waited = false;
    if (in_turn) {
      uint64_t turn;
      while ((turn = run_.turn.load(std::memory_order_acquire)) < number) {
        run_.turn.wait(turn, std::memory_order_acquire);
        waited = true;
      }
    }
    if (only_ != 0)
      for (const Dependency& d : r.depends) {
        if (d.stream >= run_.progress.size()) continue;
        auto& p = run_.progress[d.stream];
        uint64_t at;
        while ((at = p.load(std::memory_order_acquire)) < d.id) {
          p.wait(at, std::memory_order_acquire);
          waited = true;
        }
      }
    if (waited) {
      const uint64_t now = now_ns();
      s->report.wait_ns += now - last;
      last = now;
      if (run_.stopping.load(std::memory_order_relaxed)) break;
    }

    feign_outcome outcome{sizeof outcome, FEIGN_DONE, 0, nullptr};
    feign_status status = FEIGN_OK;
    if (done_already) {
      outcome.doing = FEIGN_SKIPPED;
      outcome.why = "done by the call that it is part of";
    } else {
      status = run_.api.execute(run_.replayer.self(), s->context, &a, &outcome);
    }
    if (status < 0) return run_.replayer.failure(status).within(run_.tables.place(a.place));
    const uint64_t end = now_ns();
    const uint64_t latency = end - last;
    last = end;
    if (in_turn) {
      run_.turn.store(number + 1, std::memory_order_release);
      run_.turn.notify_all();
      if (run_.stopping.load(std::memory_order_relaxed)) run_.stop("");
    }

    ++s->report.activities;
    OpReport& o = op(a.op);
    ++o.activities;
    if (outcome.doing == FEIGN_SKIPPED) {
      ++o.skipped;
      ++skips_[{a.op, outcome.why != nullptr ? outcome.why : "not said"}];
    } else {
      ++o.replayed;
      s->report.call_ns += latency;
      if (outcome.doing == FEIGN_EMULATED) {
        ++o.emulated;
      } else {
        o.latency.add(latency);
        o.recorded_latency.add(a.duration_ns);
      }
      if (outcome.result > 0 && info->kind == FEIGN_KIND_READ)
        o.bytes_read += static_cast<uint64_t>(outcome.result);
      if (outcome.result > 0 && info->kind == FEIGN_KIND_WRITE)
        o.bytes_written += static_cast<uint64_t>(outcome.result);
      if (!(a.marks & (FEIGN_NO_RESULT | FEIGN_INJECTED))) {
        if (a.result > 0 && info->kind == FEIGN_KIND_READ)
          o.recorded_bytes_read += static_cast<uint64_t>(a.result);
        if (a.result > 0 && info->kind == FEIGN_KIND_WRITE)
          o.recorded_bytes_written += static_cast<uint64_t>(a.result);
        const bool same =
            outcome.result == a.result ||
            (info->result_kind == FEIGN_RESULT_SUCCESS && outcome.result >= 0 && a.result >= 0);
        if (same) {
          ++o.matched;
        } else {
          ++o.mismatched;
          wrong(r, outcome);
        }
      }
    }
    if (!done_already) s->nesting.after(a, outcome.doing == FEIGN_SKIPPED, !r.depends.empty(), skipped_ns);
    if ((++done & rest) == 0) run_.done.fetch_add(rest + 1, std::memory_order_relaxed);
  }
  if (started) last_ns_ = last;
  if (children != nullptr && !run_.stopping.load(std::memory_order_relaxed))
    while (next_child < children->size()) run_.begin((*children)[next_child++].stream);
  return {};
}

void Worker::main() {
  prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  // Modes are as recorded, the recorded umask taken off.
  if (unshare(CLONE_FS) == 0) umask(0);
  // A second wall, where the kernel has one: no plug-in's fault lets a trace write elsewhere.
  if (run_.root_fd >= 0) (void)write_below_only(run_.root_fd);
  try {
    if (auto done = loop(); !done) run_.fail(std::move(done.error()));
  } catch (const std::bad_alloc&) {
    run_.fail(Error(FEIGN_ERR_NOMEM, "replay: out of memory"));
  }
  if (run_.api.close_stream != nullptr)
    for (Stream& s : streams_)
      if (s.report.stream != 0) run_.api.close_stream(run_.replayer.self(), s.context);
  if (only_ != 0) {
    run_.progress[only_].store(UINT64_MAX, std::memory_order_release);
    run_.progress[only_].notify_all();
  }
  run_.ended();
}

void Worker::merge_into(Report& report) {
  for (uint32_t id = 0; id < ops_.size(); ++id)
    if (ops_[id]) report.op(id).merge(*ops_[id]);
  for (const auto& [key, m] : mismatches_) {
    Mismatch& to = report.mismatches[key];
    to.count += m.count;
    if (m.first_id < to.first_id) {
      to.first_id = m.first_id;
      to.first_place = m.first_place;
      to.first_path = m.first_path;
    }
  }
  for (const auto& [key, count] : skips_) report.skips[{key.first, key.second}] += count;
  for (const Stream& s : streams_)
    if (s.report.stream != 0) report.streams.push_back(s.report);
}

}  // namespace

Result<void> replay(std::shared_ptr<const NativeReader> plan, const ReplayOptions& options,
                    Instance& replayer, int root_fd, Tables& tables, Report& report,
                    const Progress& progress) {
  Run run(plan, options, replayer, root_fd, tables);
  const uint64_t total = plan->totals().activities;
  const uint64_t begin = now_ns();
  if (total != 0) {
    if (options.pace == Pace::kAfap && options.order == Order::kTrace) {
      run.begin(0);
    } else {
      const auto& counts = plan->totals().by_stream;
      run.many = std::count_if(counts.begin(), counts.end(), [](uint64_t n) { return n != 0; }) > 1;
      for (uint32_t stream = 1; stream < tables.streams.size(); ++stream) {
        if (stream >= counts.size() || counts[stream] == 0) {
          run.progress[stream].store(UINT64_MAX);
          continue;
        }
        const feign_stream_info info = tables.streams.info(stream);
        // A parent that is not replayed (filtered out) or comes later starts nobody.
        if (info.parent != 0 && info.parent < stream && info.parent < counts.size() &&
            counts[info.parent] != 0)
          run.children[info.parent].push_back({stream, info.parent_id});
      }
      std::vector<bool> has_parent(tables.streams.size());
      for (auto& list : run.children) {
        std::sort(list.begin(), list.end(),
                  [](const auto& a, const auto& b) { return a.id < b.id; });
        for (const auto& child : list) has_parent[child.stream] = true;
      }
      for (uint32_t stream = 1; stream < tables.streams.size(); ++stream)
        if (stream < counts.size() && counts[stream] != 0 && !has_parent[stream]) run.begin(stream);
    }
    std::unique_lock lock(run.mutex);
    while (run.running != 0) {
      run.all_ended.wait_for(lock, std::chrono::milliseconds(100));
      lock.unlock();
      if (const int signal = g_stop_signal.load(); signal != 0 && !run.stopping.load())
        run.stop("signal " + std::to_string(signal));
      progress("replay", run.done.load(std::memory_order_relaxed), total);
      lock.lock();
    }
  }
  const uint64_t over = now_ns();
  uint64_t first = over, last = begin;
  for (auto& worker : run.workers) {
    worker->join();
    worker->merge_into(report);
    first = std::min(first, worker->first_ns());
    last = std::max(last, worker->last_ns());
  }
  report.wall_ns = last > first ? last - first : 0;
  std::sort(report.streams.begin(), report.streams.end(),
            [](const StreamReport& a, const StreamReport& b) { return a.stream < b.stream; });
  if (run.failure) return std::move(*run.failure);
  report.interrupted = run.stopping.load();
  report.stopped_by = run.stopped_by;
  return {};
}

}  // namespace feign
