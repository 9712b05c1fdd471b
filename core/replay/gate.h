// SPDX-License-Identifier: MIT
// How one thread of the replay waits for another: a counter that only its owner moves on, and on
// which any number of others wait.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>

namespace feign {

// "Everything up to this id has ended." Moving on costs a store, two loads and a compare; the owner
// enters the kernel only when somebody sleeps who may go on.
//
// Store and load must not change places, or the owner misses a sleeper who missed the store. A
// fence at each open() would cost more than all the rest, so there is none until somebody sleeps
// here; the first who does has the kernel pass a fence to every thread (membarrier(2)).
class alignas(64) Gate {
 public:
  Gate();
  // Everything up to `id` has ended; ids grow. [the owner; at the end of a run anybody]
  void open(uint64_t id) {
    upto_.store(id, std::memory_order_release);
    // The compiler may not swap them either.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (fence_.load(std::memory_order_relaxed)) fence();
    if (id >= wanted_.load(std::memory_order_relaxed)) [[unlikely]]
      wake(id);
  }
  bool passed(uint64_t id) const { return upto_.load(std::memory_order_acquire) >= id; }
  // Returns when passed(id); as `first`, it gets a processor before those that only look at the
  // clock (first_woken). [any thread]
  void sleep(uint64_t id, bool first = false);

  static constexpr uint64_t kAll = UINT64_MAX;
  // Whether such a thread was woken, over all gates, and has no processor yet.
  static bool first_woken() { return woken_.load(std::memory_order_relaxed) != 0; }

 private:
  static void fence() {
#ifdef __SANITIZE_THREAD__  // knows no fences
    static std::atomic<int> any;
    any.fetch_add(1, std::memory_order_seq_cst);
#else
    std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
  }
  void wake(uint64_t id);

  struct Sleeper {
    std::atomic<uint32_t> awake{0};  // the word on which it sleeps until it is 1
    bool first;
  };
  static inline std::atomic<uint32_t> woken_{0};
  std::atomic<uint64_t> upto_{0};
  std::atomic<uint64_t> wanted_{kAll};  // the least id of a sleeper
  std::atomic<bool> fence_;             // open() has a fence …
  std::atomic<bool> fenced_;            // … every one that is under way
  std::mutex mutex_;                    // of those below
  // By what they wait for. So nobody is woken too early: hundreds may wait for forks of one stream.
  std::multimap<uint64_t, Sleeper*> sleepers_;
};

}  // namespace feign
