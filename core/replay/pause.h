// SPDX-License-Identifier: MIT
// Letting time pass until a given moment.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "replay/options.h"

namespace feign {

// How workers pass the time until a moment. A sleep ends late: by the time that the processor takes
// to wake up, tens of microseconds. So `hybrid` sleeps until that much before the moment, and looks
// at the clock for the rest. How much that is, each worker learns from its own sleeps.
class Pause {
 public:
  // `hybrid` measures here how late sleeps end on this machine, which takes some milliseconds.
  // `awake` does, too, and keeps processors from sleeping deeply as long as this lives.
  // `busy`: how many threads may compute() at a time, for as many processors as are theirs.
  Pause(Compute how, uint32_t busy);
  ~Pause();
  Pause(const Pause&) = delete;
  Pause& operator=(const Pause&) = delete;

  // What a worker knows of its sleeps.
  struct Learnt {
    uint64_t awake_ns = 0;  // of a pause, this much at its end is spent awake
    uint64_t last_ns = 0;   // when the last pause ended
    // Of the last pauses, older ones counting less: how long each was, with the calls before it,
    // and how much of that was spent looking at the clock.
    double period_ns = 0, looking_ns = 0;
  };
  Learnt begin() const {
    Learnt l;
    l.awake_ns = awake_ns_;
    return l;
  }

  // Lets time pass until the clock shows `due` or `stop` is set; what the clock shows then.
  // [any thread]
  uint64_t until(uint64_t due, const std::atomic<bool>& stop, Learnt& learnt) const;

  // The same of time that was spent computing: it keeps a processor busy, unless as many do
  // already. [any thread]
  uint64_t compute(uint64_t due, const std::atomic<bool>& stop, Learnt& learnt);

  // What is not as was asked for; empty if all is.
  const char* doubt() const { return doubt_; }

 private:
  // Whether a thread that computes should have seen its moment pass, and has no processor to see
  // it.
  bool overdue(uint64_t now) const;

  bool learns_;
  struct alignas(64) Busy {
    std::atomic<uint64_t> due{0};  // 0: nobody computes here
  };
  std::vector<Busy> busy_;
  uint64_t awake_ns_;
  int latency_ = -1;  // /dev/cpu_dma_latency, as long as it counts
  const char* doubt_ = "";
};

}  // namespace feign
