// SPDX-License-Identifier: MIT
// A thread of the replay: makes the calls of its streams when they are due, and counts them.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "feign.h"
#include "replay/activity_log.h"
#include "replay/feed.h"
#include "replay/gate.h"
#include "replay/nesting.h"
#include "replay/options.h"
#include "replay/path.h"
#include "replay/pause.h"
#include "replay/waits.h"
#include "report/report.h"
#include "trace/tables.h"

namespace feign {

class Run;

constexpr uint32_t kNobody = UINT32_MAX;  // no worker

// One thread of the replay, with statistics of its own. It takes the activities of its streams in
// the order of the trace.
//
// That no two of them can wait for each other: whatever an activity waits for (a dependency, the
// fork that made its stream, its turn) comes before it in the trace, and each worker takes the
// first activity left of its streams. So the first of all that are left waits for nothing, and the
// worker whose it is has taken it. (Numbers in a damaged plan may say otherwise: see Waits.)
class Worker {
 public:
  Worker(Run& run, uint32_t number, std::vector<uint32_t> streams, size_t waits_kept)
      : run_(run), number_(number), numbers_(std::move(streams)), waited_(waits_kept) {}
  void start() {
    thread_ = std::thread([this] { main(); });
  }
  void join() {
    if (thread_.joinable()) thread_.join();
  }
  void merge_into(Report& report, const Tables& tables);
  // Since when, by the clock, it has been at one activity, and which; 0: between two.
  uint64_t busy_since() const { return busy_.since.load(std::memory_order_relaxed); }
  // When it last did what is no waiting for others, as far as can be told: it is between two calls,
  // or in one that needs nobody else.
  uint64_t went_on_at(uint64_t now) const;
  std::string busy_with(const Tables& tables) const;
  bool calls_mpi() const;
  // Whether it has ended, or could not be started. [main]
  bool over() const { return !thread_.joinable() || over_.load(std::memory_order_acquire); }
  // Whether it is in a call that may never return; all else comes to its end once the run stops.
  bool in_call() const { return busy_since() != 0 && !busy_.waits.load(std::memory_order_relaxed); }
  void leave_behind() { thread_.detach(); }
  WorkerTime time() const { return {first_ns_, last_ns_, last_stream_, &timeline_, &waited_}; }

  // Every activity of its streams up to this id has ended.
  Gate gate;

 private:
  struct Stream {
    std::array<void*, kMostReplayers> contexts{};
    bool open = false;
    bool inside = false;            // made by a call that was done: all of it is done by that
    size_t told = 0;                // of what other ranks wait for …
    uint64_t to_tell = UINT64_MAX;  // … and the id of the first that is left
    uint64_t left = 0;              // activities
    uint64_t last_ns = 0;           // the end of its last activity
    uint64_t skipped_ns = 0;    // recorded time in calls that are not made: part of the next pause
    uint64_t overslept_ns = 0;  // by which pauses were too long: the next ones make up for it
    Nesting nesting;
    StreamReport report;
  };

  void main();
  // What replays of one kind have in common.
  struct Way {
    bool timed, paced, busy, in_turn, alone, team;
    bool waits_in_order;  // for the others as such, not for as long as it did then
    uint64_t rest;        // the progress line is told of this many more at once
    uint64_t trace_begin_ns;
    double scale;
    uint64_t scaled(uint64_t ns) const {
      return static_cast<uint64_t>(static_cast<double>(ns) * scale);
    }
  };
  // The activity at hand.
  struct Step {
    Stream* stream = nullptr;
    bool done_already = false;  // by the call that it is part of
    uint64_t due = 0;
  };
  Way way() const;
  Result<void> loop(Feed& feed);
  Result<bool> come_to(const Way& way, const Feed::Next& next, Step& step);
  void sleep_until_due(const Way& way, const feign_activity& a, Step& step);
  // Plain: that and those beside it are `plain`, and nobody sleeps or waits for a turn.
  template <bool kPlain>
  Result<void> make(const Way& way, Feed::Next& next, const Step& step);
  Result<void> open(Stream& s, const feign_activity& a);
  void close(Stream& s);
  void close(Stream& s, size_t replayer);
  void wait_for(uint32_t worker, uint32_t stream, uint64_t id, uint32_t rule, Stream& s,
                const feign_activity& a);
  void wait_for_others(const Feed::Next& next, Stream& s);
  void wait_for_turn(uint64_t number, Stream& s, const feign_activity& a);
  void wait_for_rank(uint32_t stream, uint64_t id, uint32_t rule, Stream& s,
                     const feign_activity& a);
  void tell_ranks(Stream& s, uint32_t stream, uint64_t upto);
  void wait(Gate& gate, uint64_t until, Wait wait, Stream& s, const feign_activity& a);
  void get_ready();
  void set_umask(int32_t to);
  // The main thread may look at what it does.
  void watch(const feign_activity& a) {
    busy_.op.store(a.op, std::memory_order_relaxed);
    busy_.stream.store(a.stream, std::memory_order_relaxed);
    busy_.place.store(a.place, std::memory_order_relaxed);
    busy_.since.store(now_, std::memory_order_relaxed);
  }
  void mark(uint64_t now) {
    if (timeline_.due(now)) timeline_.add({now, call_ns_, pause_ns_, done_});
  }
  void count(const Feed::Next& over);
  void wrong(const feign_activity& a, const feign_outcome& outcome);
  void full(const feign_activity& a, const feign_outcome& outcome);
  feign_status by_name(Stream& s, feign_activity a, feign_outcome& outcome);
  OpReport& op(uint32_t id) {
    if (id >= ops_.size()) ops_.resize(id + 1);
    if (!ops_[id]) ops_[id] = std::make_unique<OpReport>();
    return *ops_[id];
  }

  Run& run_;
  const uint32_t number_;
  const std::vector<uint32_t> numbers_;  // of its streams
  std::thread thread_;
  std::vector<Stream> streams_;
  std::vector<std::unique_ptr<OpReport>> ops_;
  std::map<MismatchKey, Mismatch> mismatches_;
  std::map<std::pair<uint32_t, const char*>, uint64_t> skips_;
  std::map<uint32_t, RuleReport> rules_;
  // Sums over its streams.
  uint64_t call_ns_ = 0, pause_ns_ = 0, done_ = 0;
  uint64_t first_ns_ = UINT64_MAX, last_ns_ = 0;  // when its first call began, its last one ended
  uint32_t last_stream_ = 0;
  uint64_t now_ = 0;  // the clock when it was last read
  Pause::Learnt sleeps_;
  bool ready_ = false, own_umask_ = false;
  int32_t umask_ = -1;
  Timeline timeline_;
  WaitLog waited_;
  std::optional<ActivityLog::Part> activities_;
  // For the main thread to look at.
  struct {
    std::atomic<uint64_t> since{0}, place{0};
    std::atomic<uint32_t> op{0}, stream{0};
    std::atomic<uint32_t> for_stream{0}, rule{0};  // another rank's, if it waits for one
    std::atomic<bool> waits{false};  // for another worker, or rank, before it makes its call
  } busy_;
  std::atomic<bool> over_{false};
};

}  // namespace feign
