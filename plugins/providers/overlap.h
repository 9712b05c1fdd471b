// SPDX-License-Identifier: MIT
// Of calls that overlap, the one that ended first need not have taken effect first. Where the
// results tell, they count: who finds a name made was after whoever made it, who does not was
// before, who found a directory with entries or without looked when it had them or had none, who
// found the end of a file or a pipe read after those who got something, who was refused a lock
// asked while somebody had it, and who opens a number of threads' descriptors found it free.
#pragma once

#include <linux/futex.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "feign.h"
#include "providers/overlap/ends.h"
#include "providers/overlap/files.h"
#include "providers/overlap/locks.h"
#include "providers/overlap/names.h"
#include "providers/overlap/numbers.h"
#include "trace/effects.h"

namespace feign {

inline bool makes_process(Effect e) {
  return e == Effect::kFork || e == Effect::kVfork || e == Effect::kClone;
}

// Calls that take effect when they start, not when they end, whatever their arguments: those that
// make a process, give up a descriptor, or reach somebody, who may be seen to go on before.
inline bool counts_from_start(Effect e) {
  return makes_process(e) || e == Effect::kClose || e == Effect::kConnect || e == Effect::kSend;
}

// Of futex(2), by its operation: the others are those that wait.
inline bool futex_counts_from_start(uint32_t operation) {
  const uint32_t command = operation & FUTEX_CMD_MASK;
  return command != FUTEX_WAIT && command != FUTEX_WAIT_BITSET && command != FUTEX_LOCK_PI;
}

// All that is told by more than names.
struct Shown {
  Lock lock;
  Tail tail;
  Number number;
};
// `of`: what the call's descriptor is, or of a call that opens, what it made.
inline Shown shown_by(Effect effect, const feign_activity& a, const std::vector<uint64_t>& values,
                      const Descriptor& of, uint64_t process, const feign_host* host) {
  const Shown shown = {lock_of(effect, a, values, of, process),
                       tail_of(effect, a, values, of, process, host)};
  if (of.open != nullptr) {
    move(*of.open, shown.tail);
    if (effect == Effect::kFcntl && a.flags == F_SETFL && a.result >= 0 && !values.empty())
      of.open->flags = (of.open->flags & ~O_APPEND) | (values[0] & O_APPEND);
  }
  return shown;
}
class Account {
 public:
  void note(const Shown& s) {
    locks_.note(s.lock);
    tails_.note(s.tail);
    numbers_.note(s.number);
  }
  // Whether `late` took effect before `early`, by these or by their claims.
  Overtakes overtakes(const Shown& late, const Shown& early, Overtakes by_claims) const {
    if (locks_.overtakes(late.lock, early.lock)) return Overtakes::kYes;
    if (numbers_.overtakes(late.number, early.number)) return Overtakes::kYes;
    if (tails_.knows(late.tail, early.tail)) by_claims = Overtakes::kNo;
    return std::max(by_claims, tails_.overtakes(late.tail, early.tail));
  }
  bool got_from(const Lock& l, const Lock& given_up) const { return locks_.got_from(l, given_up); }
  bool fits(const Lock& l) const { return locks_.fits(l); }
  bool is_taken(const Number& n) const { return numbers_.is_taken(n); }
  bool clash(const Number& a, const Number& b) const { return numbers_.clash(a, b); }

 private:
  Locks locks_;
  Tails tails_;
  Numbers numbers_;
};

// Which call took effect first: that numbered `first`, which ended first, or one of those below
// `count`. Of it and those that overlap it, `claims_of` gives the claims, of the others null;
// `overtakes` says of two what else is known, given what their claims say; and of several that may
// have, the one that ended first by `end_of` has.
template <typename ClaimsOf, typename Judge, typename EndOf>
size_t first_of(size_t first, size_t count, const Names& there, const ClaimsOf& claims_of,
                const Judge& overtakes, const EndOf& end_of) {
  for (int turns = 0; turns < 8; ++turns) {  // results of a damaged trace may go round in circles
    Claims& early = *claims_of(first, first);
    there.look_up(early);
    const size_t before = first;
    Overtakes best = Overtakes::kNo;
    for (size_t i = 0; i < count; ++i) {
      Claims* const late = i != before ? claims_of(i, before) : nullptr;
      if (late == nullptr) continue;
      there.look_up(*late);
      const Overtakes now = overtakes(i, before, took_effect_first(*late, early));
      if (now < best || now == Overtakes::kNo || (now == best && end_of(i) >= end_of(first)))
        continue;
      best = now;
      first = i;
    }
    if (first == before) break;
  }
  return first;
}

}  // namespace feign
