// SPDX-License-Identifier: MIT
// Which numbers of descriptors threads have open: a call that opens one came after whoever closed
// what had that number.
#pragma once

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "feign.h"
#include "providers/overlap/files.h"
#include "providers/overlap/names.h"
#include "trace/effects.h"

namespace feign {

// What a call does to the numbers that threads share.
struct Number {
  uint64_t process = 0;             // whose they are; 0: nobody shares them
  std::array<uint32_t, 2> opens{};  // handles that were free then; 0: none
  uint32_t closes = 0;
  bool forgets = false;  // which of them are open afterwards is not known
  bool opens_one() const { return process != 0 && opens[0] != 0; }
};
// Two that share no bit of these are about other numbers.
inline uint64_t bits_of(const Number& n) {
  return n.process != 0 ? bit_of(n.opens[0]) | bit_of(n.opens[1]) | bit_of(n.closes) : 0;
}

inline Number number_of(Effect effect, const feign_activity& a, const std::vector<uint64_t>& values,
                        uint64_t process) {
  Number n = {.process = process};
  if (effect == Effect::kClose) {  // one that fails, or does not return, has closed it all the same
    if (a.result != -EBADF) n.closes = a.handle;
    return n;
  }
  if (a.result < 0 || (a.marks & FEIGN_NO_RESULT) != 0) return n;
  switch (effect) {
    case Effect::kPipe:
    case Effect::kSocketpair:
      for (size_t i = 0; i < std::min(values.size(), n.opens.size()); ++i)
        n.opens[i] = FEIGN_FD(values[i]);
      break;
    case Effect::kCloseRange:
    case Effect::kExec:
    case Effect::kExitGroup:
      n.forgets = true;
      break;
    case Effect::kDup2:  // whether that number is free or not
      break;
    default:
      n.opens[0] = left_by(effect, a).handle;
  }
  return n;
}

// Those that are open, as far as calls told.
class Numbers {
 public:
  void note(const Number& n) {
    closes_ |= n.closes != 0;
    if (n.forgets) open_.erase(n.process);
    if (n.process == 0 || (n.closes == 0 && n.opens[0] == 0)) return;
    std::unordered_set<uint32_t>& open = open_[n.process];
    open.erase(n.closes);
    for (const uint32_t handle : n.opens)
      if (handle != 0) open.insert(handle);
  }
  // Whether a call opens what is open still. (In a trace without closes, all are.)
  bool is_taken(const Number& n) const {
    const auto at = closes_ ? open_.find(n.process) : open_.end();
    return at != open_.end() && std::any_of(n.opens.begin(), n.opens.end(), [&](uint32_t handle) {
             return at->second.contains(handle);
           });
  }
  // Whether two open the same number: neither came right after the other.
  bool clash(const Number& a, const Number& b) const {
    return closes_ && a.process == b.process &&
           std::any_of(a.opens.begin(), a.opens.end(),
                       [&](uint32_t handle) { return handle != 0 && opens(b, handle); });
  }
  // Whether `late`, which ended after `early`, closed what that opened.
  bool overtakes(const Number& late, const Number& early) const {
    return late.closes != 0 && late.process == early.process && opens(early, late.closes) &&
           is_taken(early);
  }

 private:
  static bool opens(const Number& n, uint32_t handle) {
    return std::find(n.opens.begin(), n.opens.end(), handle) != n.opens.end();
  }
  std::unordered_map<uint64_t, std::unordered_set<uint32_t>> open_;  // by process
  bool closes_ = false;
};

}  // namespace feign
