// SPDX-License-Identifier: MIT
// What the workers of a replay share.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "replay/gate.h"
#include "replay/pause.h"
#include "replay/replay.h"
#include "replay/waits.h"
#include "replay/worker.h"

namespace feign {

// The processors that this process may use.
std::vector<int> processors();

// Ids that one worker comes to and others ask for. [any thread]
template <typename Id>
class KnownToAll {
 public:
  void add(Id id) {
    const std::lock_guard lock(mutex_);
    ids_.insert(id);
  }
  void drop(Id id) {
    const std::lock_guard lock(mutex_);
    ids_.erase(id);
  }
  bool has(Id id) {
    const std::lock_guard lock(mutex_);
    return ids_.contains(id);
  }

 private:
  std::mutex mutex_;
  std::set<Id> ids_;
};

class Run {
 public:
  Run(std::shared_ptr<const NativeReader> plan, const ReplayOptions& options,
      const std::vector<Instance*>& replayers, int root_fd, Tables& tables, ActivityLog* activities,
      const Team* team);

  // Who does an op: the first replayer that serves its layer; what no one serves is skipped.
  struct Doer {
    decltype(feign_replayer::execute) execute;
    void* self;
    uint32_t slot;
    int32_t umask;  // that the call wants; -1: any
  };
  Doer doer_of(const feign_op_info* info) const;
  // Its part of the plan.
  bool mine(uint32_t stream) const {
    return team == nullptr || team->map.by_stream[stream] == team->ranks.rank();
  }

  // Whether a call may wait for other ranks for as long as these like: calls of MPI, but those that
  // only move a rank's own data.
  bool may_wait_for_ranks(uint32_t op) const;

  bool makes_mpi() const;

  // What workers go by: who never sleeps needs no clock to sleep by.
  uint64_t now() const { return sleeps() ? now_ns() : counter.now(); }
  uint64_t now_after() const { return sleeps() ? now_ns() : counter.now_after(); }
  bool sleeps() const { return options.pace != Pace::kAfap; }

  // Ends the replay: everybody who waits is woken.
  void stop(const std::string& why) {
    {
      const std::lock_guard lock(mutex);
      if (stopped_by.empty()) stopped_by = why;
    }
    stopping.store(true, std::memory_order_release);
    let_go();
  }
  void let_go() {
    let_turns_go();
    for (auto& w : workers) w->gate.open(Gate::kAll);
  }
  // Whoever has overwritten this does it again at his end, when he has seen `stopping`.
  void let_turns_go() {
    for (auto& t : turns) t.gate.open(Gate::kAll);
  }
  void fail(Error error) {
    {
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::move(error);
    }
    stop("a failure");
  }
  void share(size_t most);
  void start();
  // A worker is ready; returns when all are.
  void ready() {
    {
      const std::lock_guard lock(mutex);
      if (--getting_ready == 0) changed.notify_all();
    }
    started.sleep(1);
  }
  void ended(uint32_t worker) {
    waits->gone(worker);
    const std::lock_guard lock(mutex);
    if (--running == 0) changed.notify_all();
  }

  std::shared_ptr<const NativeReader> plan;
  const ReplayOptions& options;
  const std::vector<Instance*>& replayers;
  std::vector<Doer> doers;  // by op
  const int root_fd;        // -1: none
  bool second_wall = false;
  Tables& tables;
  const Team* const team;  // null: alone
  Pause pause;
  Counter counter;

  // Where a stream is served: by which worker, and which of its streams it is.
  struct Place {
    uint32_t worker = kNobody, slot = 0;
  };
  std::vector<Place> places;
  std::vector<std::unique_ptr<Worker>> workers;
  bool many = false;     // streams
  bool in_turn = false;  // each activity waits until its number comes up
  // The activity `number` waits at turns[number % size], so that nobody else is woken for it.
  struct Turn {
    Gate gate;
    std::atomic<uint32_t> by{kNobody};  // the worker that came before
  };
  std::array<Turn, 256> turns;
  ActivityLog* const activities;  // may be null
  const uint32_t fork_rule, process_rule, turn_rule;

  Gate started;
  uint64_t anchor_ns = 0;  // what start times count from
  std::atomic<bool> stopping{false};
  std::atomic<bool> abandoned{false};  // threads that have not come back from their calls by now
  std::atomic<uint64_t> done{0};       // activities, for the progress line
  std::optional<Waits> waits;

  std::mutex mutex;
  std::condition_variable changed;
  size_t running = 0, getting_ready = 0;
  std::optional<Error> failure;
  std::string stopped_by;
  // What lies in a call that was done as a whole was not made. A library may have threads of its
  // own, which a fork in such a call made; what was opened in one is not open here, and may be used
  // after it.
  KnownToAll<uint64_t> forks_inside;
  KnownToAll<uint32_t> handles_inside;
};

}  // namespace feign
