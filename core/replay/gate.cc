// SPDX-License-Identifier: MIT
#include "replay/gate.h"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace feign {

Gate::Gate() {
  // Where the kernel cannot do it for one, every open() has its fence from the start.
  static const bool can =
      syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
  fence_.store(!can, std::memory_order_relaxed);
  fenced_.store(!can, std::memory_order_relaxed);
}

void Gate::wake(uint64_t id) {
  const std::lock_guard lock(mutex_);
  while (!sleepers_.empty() && sleepers_.begin()->first <= id) {
    Sleeper* const sleeper = sleepers_.begin()->second;
    sleepers_.erase(sleepers_.begin());
    if (sleeper->first) woken_.fetch_add(1, std::memory_order_relaxed);
    sleeper->awake.store(1, std::memory_order_release);
    // It may have gone by now: then this wakes nobody.
    syscall(SYS_futex, &sleeper->awake, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }
  wanted_.store(sleepers_.empty() ? kAll : sleepers_.begin()->first, std::memory_order_seq_cst);
}

void Gate::sleep(uint64_t id, bool first) {
  if (passed(id)) return;
  if (!fenced_.load(std::memory_order_acquire)) {
    fence_.store(true, std::memory_order_seq_cst);
    syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
    fenced_.store(true, std::memory_order_release);
  }
  Sleeper self{.first = first};
  std::unique_lock lock(mutex_);
  const auto at = sleepers_.emplace(id, &self);
  wanted_.store(sleepers_.begin()->first, std::memory_order_seq_cst);
  lock.unlock();
  fence();
  if (passed(id)) {
    lock.lock();
    if (self.awake.load(std::memory_order_relaxed) == 0) {
      sleepers_.erase(at);
      return;
    }
  }
  while (self.awake.load(std::memory_order_acquire) == 0)
    syscall(SYS_futex, &self.awake, FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0);
  if (first) woken_.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace feign
