// SPDX-License-Identifier: MIT
// What the workers keep of how their time went by, and what follows from it: how many streams were
// in calls at a time, and which chain of activities made the replay take as long as it did.
#pragma once

#include <cstdint>
#include <vector>

#include "report/report.h"

namespace feign {

// Sums over a worker's time, taken now and then: at most kMarks of them, evenly spaced, however
// long it runs. Between two marks each sum is taken to grow evenly.
class Timeline {
 public:
  struct Mark {
    uint64_t ns = 0, call_ns = 0, pause_ns = 0, activities = 0;
  };
  void begin(uint64_t ns) { add({ns, 0, 0, 0}); }
  bool due(uint64_t ns) const { return ns >= next_ns_; }
  void add(const Mark& mark);
  // The sums as they were at that time.
  Mark at(uint64_t ns) const;

 private:
  static constexpr size_t kMarks = 256;
  std::vector<Mark> marks_;
  uint64_t every_ns_ = 100'000, next_ns_ = 0;
};

// A wait of a worker for another.
struct Waited {
  uint64_t id;      // of the activity that waited
  uint64_t for_id;  // what had to end
  uint64_t place;
  uint64_t from_ns, to_ns;
  uint32_t stream, for_stream, for_worker, rule, op;
};

// The last of them, as many as there is room for.
class WaitLog {
 public:
  explicit WaitLog(size_t room) : room_(room) {}
  void add(const Waited& w) {
    if (list_.size() < room_)
      list_.push_back(w);
    else
      list_[added_ % room_] = w;
    ++added_;
  }
  // The last one of an activity up to this id; null if there is none.
  const Waited* last_up_to(uint64_t id) const;
  bool complete() const { return added_ <= room_; }
  template <typename F>
  void each(F&& f) const {
    for (size_t i = 0; i < list_.size(); ++i) f(nth(i));
  }

 private:
  const Waited& nth(size_t i) const { return list_[added_ <= room_ ? i : (added_ + i) % room_]; }
  size_t room_, added_ = 0;
  std::vector<Waited> list_;
};

// A worker's time. Streams that share a worker share this.
struct WorkerTime {
  uint64_t first_ns = UINT64_MAX, last_ns = 0;
  uint32_t last_stream = 0;
  const Timeline* timeline = nullptr;
  const WaitLog* waits = nullptr;
};

// From the worker that ended last back to the one that it last waited for, and so on, to the start.
CriticalPath critical_path(const std::vector<WorkerTime>& workers, uint64_t begin_ns);

// The mean number of workers in calls, for each tenth of the run.
std::vector<double> concurrency(const std::vector<WorkerTime>& workers, uint64_t begin_ns,
                                uint64_t end_ns);

}  // namespace feign
