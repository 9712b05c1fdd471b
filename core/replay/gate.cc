// SPDX-License-Identifier: MIT
#include "replay/gate.h"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

namespace feign {

bool Gate::fences_ = true;

void Gate::prepare() {
  fences_ = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) != 0;
}

void Gate::wake() {
  // In this order: a sleeper that registers in between finds woken_ changed and looks again.
  wanted_.store(kAll, std::memory_order_seq_cst);
  woken_.fetch_add(1, std::memory_order_seq_cst);
  syscall(SYS_futex, &woken_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void Gate::sleep(uint64_t id) {
  while (!passed(id)) {
    const uint32_t before = woken_.load(std::memory_order_seq_cst);
    uint64_t least = wanted_.load(std::memory_order_relaxed);
    while (id < least && !wanted_.compare_exchange_weak(least, id, std::memory_order_seq_cst)) {
    }
    if (!fences_) syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
    if (passed(id)) return;
    syscall(SYS_futex, &woken_, FUTEX_WAIT_PRIVATE, before, nullptr, nullptr, 0);
  }
}

}  // namespace feign
