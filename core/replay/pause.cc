// SPDX-License-Identifier: MIT
#include "replay/pause.h"

#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <array>

#include "base/clock.h"

namespace feign {
namespace {

// A pause is slept in pieces, so that a signal ends it.
constexpr uint64_t kNap_ns = 200'000'000;

void sleep_until(uint64_t due) {
  const timespec t{static_cast<time_t>(due / 1'000'000'000),
                   static_cast<long>(due % 1'000'000'000)};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr);
}

// How late nearly all sleeps of a usual length end. More than the limit would burn a processor for
// the few that a busy machine wakes late: 50 us before every call, 300 us apart, are a sixth of it.
uint64_t how_late() {
  constexpr uint64_t kLength_ns = 200'000, kLeast_ns = 5'000, kMost_ns = 50'000;
  const int slack = prctl(PR_GET_TIMERSLACK);
  prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  std::array<uint64_t, 100> late{};
  for (uint64_t& l : late) {
    const uint64_t due = now_ns() + kLength_ns;
    sleep_until(due);
    const uint64_t now = now_ns();
    l = now > due ? now - due : 0;
  }
  if (slack > 0) prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(slack), 0UL, 0UL, 0UL);
  std::sort(late.begin(), late.end());
  return std::clamp(late[late.size() * 98 / 100], kLeast_ns, kMost_ns);
}

}  // namespace

Pause::Pause(Compute how)
    : awake_ns_(how == Compute::kSpin    ? UINT64_MAX
                : how == Compute::kSleep ? 0
                                         : how_late()) {}

uint64_t Pause::until(uint64_t due, const std::atomic<bool>& stop) const {
  while (true) {
    const uint64_t now = now_ns();
    if (now >= due || stop.load(std::memory_order_relaxed)) return now;
    if (due - now > awake_ns_) sleep_until(std::min(due - awake_ns_, now + kNap_ns));
  }
}

}  // namespace feign
