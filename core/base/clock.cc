// SPDX-License-Identifier: MIT
#include "base/clock.h"

#include <fstream>
#include <string>

namespace feign {

// Both at once: of a few tries, the one that nothing came between.
Counter::Reading Counter::read() {
  Reading best;
#ifdef __x86_64__
  uint64_t least = UINT64_MAX;
  for (int i = 0; i < 5; ++i) {
    const uint64_t before = __builtin_ia32_rdtsc(), ns = now_ns(), after = __builtin_ia32_rdtsc();
    if (after - before >= least) continue;
    least = after - before;
    best = {ns, before + least / 2};
  }
#endif
  return best;
}

Counter::Counter() {
  // The kernel has found then that it counts evenly, and the same on all processors.
  std::ifstream source("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  std::string name;
  if (source >> name && name == "tsc") made_ = read();
}

void Counter::begin() {
  constexpr uint64_t kLeast_ns = 1'000'000;
  begin_ = read();
  const uint64_t ns = begin_.ns - made_.ns, ticks = begin_.ticks - made_.ticks;
  if (made_.ticks == 0 || ns < kLeast_ns || ticks == 0) return;
  ns_per_tick_ =
      static_cast<uint64_t>(static_cast<double>(ns) / static_cast<double>(ticks) * 0x1p32);
}

}  // namespace feign
