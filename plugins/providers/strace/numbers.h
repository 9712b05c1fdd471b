// SPDX-License-Identifier: MIT
// Several files (strace -ff) with exact times: which numbers of descriptors processes have. Without
// -T an open seems to be over when it begins, and with it strace may see its end late: one that
// returns what its process has open comes after the close of that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <unordered_set>

#include "feign.h"
#include "providers/strace/source.h"
#include "resolve/effects.h"

namespace feign::strace {

class Numbers {
 public:
  // Whether it waits: for the close, and for others that have the number until its thread goes on.
  // Not where closes are not told.
  bool begins_to_wait(const Held& h) const {
    const uint32_t opened = opened_by(h);
    return opened != 0 && h.until == 0 && closes_ && !lacks_ && has(h.process, opened);
  }
  void waits(Held& h, uint64_t until) {
    h.until = until;
    h.waits = until > h.a.start_ns + h.a.duration_ns;
    if (h.waits) ++waiting_;
  }
  // Whether some wait that a call on a number which nobody has would be on.
  bool may_be_on_one(const Held& call) const {
    return waiting_ != 0 && call.a.handle != 0 && call.a.handle != FEIGN_CWD &&
           !has(call.process, call.a.handle);
  }

  // The call comes now.
  void note(const Held& h) {
    const feign_activity& a = h.a;
    const Effect e = posix_calls()[a.op].effect;
    if (h.waits) --waiting_;
    lacks_ |= h.waits && has(h.process, opened_by(h));
    const bool some =
        e == Effect::kCloseRange ? a.result >= 0 : e == Effect::kExec && a.result == 0;
    if (some || e == Effect::kExitGroup) open_.erase(h.process);
    const Left left = left_by(e, a);
    if (left.handle == 0) return;
    closes_ |= e == Effect::kClose;
    if (e != Effect::kClose)
      open_[h.process].insert(left.handle);
    else if (const auto process = open_.find(h.process); process != open_.end())
      process->second.erase(left.handle);
  }

  // What the kernel chose; 0: it chose none.
  static uint32_t opened_by(const Held& h) {
    const Effect e = posix_calls()[h.a.op].effect;
    return e == Effect::kClose || e == Effect::kDup2 ? 0 : left_by(e, h.a).handle;
  }

 private:
  bool has(uint64_t process, uint32_t number) const {
    const auto all = open_.find(process);
    return all != open_.end() && all->second.contains(number);
  }

  std::unordered_map<uint64_t, std::unordered_set<uint32_t>> open_;  // by process
  bool closes_ = false;                                              // some have come
  bool lacks_ = false;  // … and one that was waited for has not
  size_t waiting_ = 0;
};

}  // namespace feign::strace
