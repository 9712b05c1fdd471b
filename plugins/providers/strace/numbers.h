// SPDX-License-Identifier: MIT
// Several files (strace -ff) with exact times: which numbers of descriptors processes have. Without
// -T an open seems to be over when it begins, and with it strace may see its end late: one that
// returns what its process has open comes after the close of that.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>

#include "feign.h"
#include "providers/strace/source.h"
#include "resolve/effects.h"

namespace feign::strace {

class Numbers {
 public:
  // Whether a close comes first that is still to come: none does where not all are told.
  bool waits(const Held& h) const {
    const uint32_t opened = opened_by(h);
    if (opened == 0 || h.until != 0 || !closes_ || lacks_) return false;
    const auto process = open_.find(h.process);
    return process != open_.end() && process->second.contains(opened);
  }

  // The call comes now. The number that is free since then; 0: none is.
  uint32_t note(const Held& h) {
    const feign_activity& a = h.a;
    const Effect e = posix_calls()[a.op].effect;
    lacks_ |= h.waits_for_close;
    if (e == Effect::kExitGroup || (e == Effect::kExec && a.result == 0)) open_.erase(h.process);
    if (e == Effect::kCloseRange && a.result >= 0) open_.erase(h.process);
    const Left left = left_by(e, a);
    if (left.handle == 0) return 0;
    if (e != Effect::kClose) {
      open_[h.process].insert(left.handle);
      return 0;
    }
    closes_ = true;
    if (const auto process = open_.find(h.process); process != open_.end())
      process->second.erase(left.handle);
    return left.handle;
  }

  // What the kernel chose; 0: it chose none.
  static uint32_t opened_by(const Held& h) {
    const Effect e = posix_calls()[h.a.op].effect;
    return e == Effect::kClose || e == Effect::kDup2 ? 0 : left_by(e, h.a).handle;
  }

 private:
  std::unordered_map<uint64_t, std::unordered_set<uint32_t>> open_;  // by process
  bool closes_ = false;                                              // some have come
  bool lacks_ = false;  // … and one that was waited for has not
};

}  // namespace feign::strace
