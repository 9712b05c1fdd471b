// SPDX-License-Identifier: MIT
// Which numbers of descriptors threads have open: a call that opens one came after whoever closed
// what had that number, and before whoever uses it.
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
#include "trace/effects.h"

namespace feign {

// What a call does to the numbers of a process. They are handles; 0: none.
struct Number {
  uint64_t process = 0;
  bool shared = false;              // by threads
  std::array<uint32_t, 2> opens{};  // they were free then
  uint32_t uses = 0, closes = 0;    // it was open
  bool forgets = false;             // which are open afterwards is not known
  bool opens_one() const { return shared && opens[0] != 0; }
};
// Whether one opens a number that the other is about, too.
inline bool about_one(const Number& a, const Number& b) {
  const auto meets = [](const Number& open, const Number& other) {
    return std::any_of(open.opens.begin(), open.opens.end(), [&](uint32_t handle) {
      return handle != 0 && (handle == other.uses || handle == other.closes ||
                             handle == other.opens[0] || handle == other.opens[1]);
    });
  };
  return a.shared && b.shared && a.process == b.process && (meets(a, b) || meets(b, a));
}

inline Number number_of(Effect effect, const feign_activity& a, const std::vector<uint64_t>& values,
                        uint64_t process, bool shared) {
  Number n = {.process = process, .shared = shared};
  if (effect == Effect::kClose) {  // one that fails, or does not return, has closed it all the same
    if (a.result != -EBADF) n.closes = a.handle;
    return n;
  }
  if (a.result < 0 || (a.marks & FEIGN_NO_RESULT) != 0) return n;
  if (FEIGN_FD_OF(a.handle) >= 0) n.uses = a.handle;
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
    if (n.closes == 0 && n.opens[0] == 0) return;
    std::unordered_set<uint32_t>& open = open_[n.process];
    open.erase(n.closes);
    for (const uint32_t handle : n.opens)
      if (handle != 0) open.insert(handle);
  }
  // Whether a call opens what is open still. (In a trace without closes, all are.)
  bool is_taken(const Number& n) const {
    return closes_ && n.shared && std::any_of(n.opens.begin(), n.opens.end(), [&](uint32_t handle) {
             return is_open(n.process, handle);
           });
  }
  // Whether two open the same number: neither came right after the other.
  bool clash(const Number& a, const Number& b) const {
    return closes_ && a.shared && b.shared && a.process == b.process &&
           std::any_of(a.opens.begin(), a.opens.end(),
                       [&](uint32_t handle) { return handle != 0 && opens(b, handle); });
  }
  // Whether `late`, which ended after `early`, closed what that opened, or opened what that is on.
  bool overtakes(const Number& late, const Number& early) const {
    if (!late.shared || late.process != early.process) return false;
    if (late.closes != 0 && opens(early, late.closes)) return is_taken(early);
    const uint32_t on = early.closes != 0 ? early.closes : early.uses;
    return on != 0 && opens(late, on) && !is_open(early.process, on);
  }

 private:
  bool is_open(uint64_t process, uint32_t handle) const {
    const auto at = open_.find(process);
    return at != open_.end() && at->second.contains(handle);
  }
  static bool opens(const Number& n, uint32_t handle) {
    return std::find(n.opens.begin(), n.opens.end(), handle) != n.opens.end();
  }
  std::unordered_map<uint64_t, std::unordered_set<uint32_t>> open_;  // by process
  bool closes_ = false;
};

}  // namespace feign
