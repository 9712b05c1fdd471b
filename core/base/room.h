// SPDX-License-Identifier: MIT
// How much a replay may write, and how much it has written.
#pragma once

#include <sys/statfs.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "feign.h"

namespace feign {

class Room {
 public:
  // Before the first call. [one thread]
  void limit(const feign_run& run) {
    root_ = run.root_fd;
    if (run.max_bytes != 0) most_ = run.max_bytes;
    of_disk_ = FEIGN_HAS(&run, room) && run.room != 0;
    if (of_disk_) free_ = left();
  }
  uint64_t most() const { return most_; }
  const char* why() const {
    return of_disk_ ? "more would be written than 95 % of what was free (--max-bytes allows more)"
                    : "more would be written than --max-bytes allows";
  }
  // Bytes that were written. [any thread]
  void add(uint64_t bytes) { written_.fetch_add(bytes, std::memory_order_relaxed); }
  // Whether `more`, of which none is told yet, is more than may be written. [any thread]
  bool full(uint64_t more) {
    const uint64_t written = written_.load(std::memory_order_relaxed);
    return (written > most_ || more > most_ - written) && !regained(more);
  }

 private:
  uint64_t left() const {
    struct statfs fs {};
    if (::fstatfs(root_, &fs) != 0) return 0;
    return static_cast<uint64_t>(fs.f_bavail) * static_cast<uint64_t>(fs.f_bsize);
  }
  // Where the limit is the room that there was: what was written over and over, or removed, takes
  // none, and from here on what is taken counts.
  bool regained(uint64_t more) {
    if (free_ == 0) return false;
    const uint64_t taken = free_ - std::min(free_, left());
    written_.store(taken, std::memory_order_relaxed);
    return taken <= most_ && more <= most_ - taken;
  }

  int root_ = -1;
  bool of_disk_ = false;  // the limit is what there was free
  uint64_t most_ = UINT64_MAX;
  uint64_t free_ = 0;                 // of the root's file system at first, if that is the limit
  std::atomic<uint64_t> written_{0};  // what streams have told
};

}  // namespace feign
