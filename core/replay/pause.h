// SPDX-License-Identifier: MIT
// Letting time pass until a given moment.
#pragma once

#include <atomic>
#include <cstdint>

#include "cli/run.h"

namespace feign {

// How a worker passes the time until a moment. A sleep ends late: by the time that the processor
// takes to wake up, tens of microseconds. So `hybrid` sleeps until that much before the moment, and
// looks at the clock for the rest.
class Pause {
 public:
  // `hybrid` measures here how late sleeps end on this machine, which takes some milliseconds.
  explicit Pause(Compute how);

  // Lets time pass until the clock shows `due` or `stop` is set; what the clock shows then.
  // [any thread]
  uint64_t until(uint64_t due, const std::atomic<bool>& stop) const;
  // Of a pause, this much at its end is spent awake.
  uint64_t awake_ns() const { return awake_ns_; }

 private:
  uint64_t awake_ns_;
};

}  // namespace feign
