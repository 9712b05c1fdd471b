// SPDX-License-Identifier: MIT
#include "replay/pause.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/clock.h"
#include "replay/gate.h"

namespace feign {
namespace {

// A pause is slept in pieces, so that a signal ends it.
constexpr uint64_t kNap_ns = 200'000'000;
// What is spent awake of a pause: no less than a sleep costs, no more than makes sense; and, of
// what is measured to begin with, no more than would burn a sixth of a processor at 300 us a pause.
constexpr uint64_t kLeast_ns = 5'000, kMost_ns = 500'000, kFirst_ns = 50'000;
// Where more than that is needed, looking at the clock may take this share of a worker's time.
constexpr double kShare = 0.12;
// Who has a processor and looks at the clock sees a moment pass within this.
constexpr uint64_t kPrompt_ns = 3'000;

void sleep_until(uint64_t due) {
  const timespec t{static_cast<time_t>(due / 1'000'000'000),
                   static_cast<long>(due % 1'000'000'000)};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr);
}

// How late nearly all sleeps of a usual length end: to begin with.
uint64_t how_late() {
  constexpr uint64_t kLength_ns = 200'000;
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
  return std::clamp(late[late.size() * 98 / 100], kLeast_ns, kFirst_ns);
}

// One sleep in a hundred may end later than `awake_ns` allows for: each that does moves it up a
// step, each that does not a hundredth of a step down. (A sleep that ends very late, on a busy
// machine, counts no more than any other.) More than to begin with only while that takes little
// time.
void learn(Pause::Learnt& l, uint64_t least_ns, bool slept, uint64_t late, uint64_t looked,
           uint64_t end) {
  constexpr double kForget = 1.0 / 64;
  constexpr uint64_t kStep_ns = 2'000;
  const uint64_t period = end - l.last_ns;
  const bool first = l.last_ns == 0;
  l.last_ns = end;
  if (first) return;
  l.period_ns += (static_cast<double>(period) - l.period_ns) * kForget;
  l.looking_ns += (static_cast<double>(looked) - l.looking_ns) * kForget;
  if (l.looking_ns > kShare * l.period_ns)
    l.awake_ns = std::max(l.awake_ns - kStep_ns / 4, std::min(l.awake_ns, least_ns));
  else if (slept)
    l.awake_ns =
        std::min(late > l.awake_ns ? l.awake_ns + kStep_ns : l.awake_ns - kStep_ns / 100, kMost_ns);
  l.awake_ns = std::max(l.awake_ns, kLeast_ns);
}

}  // namespace

Pause::Pause(Compute how, uint32_t busy)
    : learns_(how == Compute::kHybrid || how == Compute::kAwake || how == Compute::kBusy),
      busy_(how == Compute::kBusy ? busy : 0),
      awake_ns_(how == Compute::kSpin ? UINT64_MAX : 0) {
  if (how == Compute::kAwake) {
    // The kernel keeps the wish as long as the file is open.
    latency_ = open("/dev/cpu_dma_latency", O_WRONLY | O_CLOEXEC);
    constexpr int32_t kNone_us = 0;
    if (latency_ < 0 || write(latency_, &kNone_us, sizeof kNone_us) != sizeof kNone_us)
      doubt_ = "processors may sleep deeply: /dev/cpu_dma_latency cannot be written";
  }
  if (learns_) awake_ns_ = how_late();
}

Pause::~Pause() {
  if (latency_ >= 0) close(latency_);
}

uint64_t Pause::compute(uint64_t due, const std::atomic<bool>& stop, Learnt& learnt) {
  const auto mine = std::find_if(busy_.begin(), busy_.end(), [due](Busy& b) {
    uint64_t nobody = 0;
    return b.due.load(std::memory_order_relaxed) == 0 &&
           b.due.compare_exchange_strong(nobody, due, std::memory_order_relaxed);
  });
  if (mine == busy_.end()) return until(due, stop, learnt);
  uint64_t now = now_ns();
  // The kernel may let a thread wait for milliseconds behind one that computes. Not if it was woken
  // to begin, or since its child has ended, or if it is to compute no longer: then the others leave
  // their processors.
  for (; now < due && !stop.load(std::memory_order_relaxed); now = now_ns())
    if (Gate::first_woken() || overdue(now)) sched_yield();
  mine->due.store(0, std::memory_order_relaxed);
  learnt.last_ns = now;
  return now;
}

bool Pause::overdue(uint64_t now) const {
  return std::any_of(busy_.begin(), busy_.end(), [now](const Busy& b) {
    const uint64_t due = b.due.load(std::memory_order_relaxed);
    return due != 0 && due + kPrompt_ns < now;
  });
}

uint64_t Pause::until(uint64_t due, const std::atomic<bool>& stop, Learnt& learnt) const {
  uint64_t now = now_ns();
  const uint64_t look = std::max(now, due - std::min(due, learnt.awake_ns));
  const bool sleeps = look > now;
  while (now < look && !stop.load(std::memory_order_relaxed)) {
    sleep_until(std::min(look, now + kNap_ns));
    now = now_ns();
  }
  const uint64_t woke = now;
  while (now < due && !stop.load(std::memory_order_relaxed)) now = now_ns();
  if (learns_) learn(learnt, awake_ns_, sleeps, woke - std::min(woke, look), now - woke, now);
  return now;
}

}  // namespace feign
