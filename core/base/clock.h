// SPDX-License-Identifier: MIT
// The clock of the replay.
#pragma once

#include <time.h>

#include <cstdint>

namespace feign {

inline uint64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

}  // namespace feign
