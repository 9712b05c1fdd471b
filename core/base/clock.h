// SPDX-License-Identifier: MIT
// The clocks of the replay.
#pragma once

#include <time.h>

#include <cstdint>

namespace feign {

inline uint64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

// The same time for calls that follow each other without a pause, at half the price: where the
// kernel itself keeps time by the processor's counter, that is read without the kernel's care for
// its order. Right to some 1/20,000 of what passed since it was made, so that nobody should sleep
// by it. [threads: now() and now_after() by any; the rest before]
class Counter {
 public:
  // A millisecond or more before it is wanted: how fast it counts is measured until then.
  Counter();
  void begin();
  uint64_t now() const {
#ifdef __x86_64__
    if (ns_per_tick_ != 0) {
      __extension__ using Wide = unsigned __int128;
      const Wide passed = Wide{__builtin_ia32_rdtsc() - begin_.ticks} * ns_per_tick_;
      return begin_.ns + static_cast<uint64_t>(passed >> 32);
    }
#endif
    return now_ns();
  }
  // Not before what this thread has read of others.
  uint64_t now_after() const {
#ifdef __x86_64__
    __builtin_ia32_lfence();
#endif
    return now();
  }

 private:
  struct Reading {
    uint64_t ns = 0, ticks = 0;
  };
  static Reading read();
  Reading made_, begin_;
  uint64_t ns_per_tick_ = 0;  // in units of 2^-32; 0: by now_ns()
};

}  // namespace feign
