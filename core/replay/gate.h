// SPDX-License-Identifier: MIT
// How one thread of the replay waits for another: a counter that only its owner moves on, and on
// which any number of others wait.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>

namespace feign {

// "Everything up to this id has ended." Moving on costs a store, a load and a compare; the owner
// enters the kernel only when somebody sleeps who may go on.
//
// Store and load must not change places, or the owner misses a sleeper who missed the store. A
// fence at each open() would cost as much as all the rest, so the sleeper pays instead: it has the
// kernel pass a fence to every thread (membarrier(2)) before it looks for the last time.
class alignas(64) Gate {
 public:
  // Once, before there are threads: asks the kernel for that.
  static void prepare();

  // Everything up to `id` has ended; ids grow. [the owner; at the end of a run anybody]
  void open(uint64_t id) {
    upto_.store(id, std::memory_order_release);
    if (fences_) [[unlikely]]
      wanted_.fetch_add(0, std::memory_order_seq_cst);
    // The compiler may not swap them either.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (id >= wanted_.load(std::memory_order_relaxed)) [[unlikely]]
      wake(id);
  }
  bool passed(uint64_t id) const { return upto_.load(std::memory_order_acquire) >= id; }
  // Whether it passes within some rounds of looking. [any thread]
  bool passes_soon(uint64_t id, unsigned rounds) const {
    for (; rounds != 0; --rounds) {
      if (passed(id)) return true;
#if defined(__x86_64__) || defined(__i386__)
      __builtin_ia32_pause();
#endif
    }
    return false;
  }
  // Returns when passed(id). [any thread]
  void sleep(uint64_t id);

  static constexpr uint64_t kAll = UINT64_MAX;

 private:
  void wake(uint64_t id);

  static bool fences_;  // the kernel cannot: every open() has a fence of its own
  std::atomic<uint64_t> upto_{0};
  std::atomic<uint64_t> wanted_{kAll};  // the least id of a sleeper
  std::mutex mutex_;                    // of those below
  // By what they wait for: the word on which each sleeps until it is 1. So nobody is woken too
  // early: hundreds may wait for forks of one stream.
  std::multimap<uint64_t, std::atomic<uint32_t>*> sleepers_;
};

}  // namespace feign
