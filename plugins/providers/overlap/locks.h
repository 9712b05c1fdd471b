// SPDX-License-Identifier: MIT
// Who had a lock, and who was refused it: which of two calls that overlap came first.
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <iterator>
#include <unordered_map>
#include <utility>
#include <vector>

#include "feign.h"
#include "providers/overlap/files.h"
#include "trace/effects.h"

namespace feign {

// What a call does to a lock, or was refused.
struct Lock {
  enum What : uint8_t { kNone, kGot, kRefused, kGivenUp, kClosed };
  What what = kNone;
  bool record = false;     // fcntl's, of processes and of descriptions; else flock's
  bool exclusive = false;  // what was asked for
  uint32_t file = 0;
  uint64_t owner = 0;              // the description, or of F_SETLK's the process
  uint64_t process = 0;            // who closes: this file, or all (0) as it ends
  bool last = false;               // … the description's last descriptor
  std::array<uint64_t, 4> ends{};  // … descriptions that nobody else has, as far as there is room
  uint64_t begin = 0, end = UINT64_MAX;
};
// Stands for a file's locks, among names (another number than stream_name's).
inline uint32_t lock_name(uint32_t file) { return UINT32_C(5) << 29 | file; }

// No description has that number.
inline uint64_t owned_by(uint64_t process) { return UINT64_C(1) << 62 | process; }

// Record locks, which a process gives up as it ends.
inline Lock records_of(uint64_t process) {
  return {.what = Lock::kClosed, .process = process, .last = true};
}

// What is given up with a descriptor of that number. (One of O_PATH has nothing to do with locks.)
inline Lock lock_at_close(const Descriptor& of, uint64_t process, uint32_t handle) {
  Lock l;
  if (of.file == 0 || (of.open != nullptr && (of.open->flags & O_PATH) != 0)) return l;
  l.file = of.file;
  l.owner = reader_of(of, process, handle);
  l.what = Lock::kClosed;
  l.process = process;
  l.last = of.last;
  return l;
}

// Of locks, but of those from the end of a file or from where nobody knows that its descriptor is,
// and of closes; of files that are known.
inline Lock lock_of(Effect effect, const feign_activity& a, const std::vector<uint64_t>& values,
                    const Descriptor& of, uint64_t process) {
  Lock l;
  if (of.file == 0 || (a.marks & FEIGN_NO_RESULT) != 0) return l;
  if (effect == Effect::kClose) return lock_at_close(of, process, a.handle);
  const bool refused = a.result == -EAGAIN || a.result == -EACCES;
  l.file = of.file;
  l.owner = reader_of(of, process, a.handle);
  if (effect == Effect::kFlock) {
    l.exclusive = (a.flags & LOCK_EX) != 0;
    l.what = refused                    ? Lock::kRefused
             : a.result < 0             ? Lock::kNone
             : (a.flags & LOCK_UN) != 0 ? Lock::kGivenUp
                                        : Lock::kGot;
  } else if (const bool of_process = a.flags == F_SETLK || a.flags == F_SETLKW;
             effect == Effect::kFcntl &&
             (of_process || a.flags == F_OFD_SETLK || a.flags == F_OFD_SETLKW)) {
    if (values.size() < 5 || (a.result < 0 && !refused)) return l;
    const bool from_here = values[2] == SEEK_CUR;  // as lockf(3) does
    if (from_here ? of.open == nullptr || of.open->at < 0 : values[2] != SEEK_SET) return l;
    l.record = true;
    if (of_process) l.owner = owned_by(process);
    l.exclusive = values[1] == F_WRLCK;
    l.begin = values[3] + (from_here ? static_cast<uint64_t>(of.open->at) : 0);
    l.end = values[4] == 0 ? UINT64_MAX : l.begin + values[4];
    if (values[4] >> 63 != 0) std::swap(l.begin, l.end);  // it ends there
    l.what = refused ? Lock::kRefused : values[1] == F_UNLCK ? Lock::kGivenUp : Lock::kGot;
  }
  return l;
}

// Who has locked what by now.
class Locks {
 public:
  void note(const Lock& l) {
    if (l.what == Lock::kNone) return;
    if (l.what != Lock::kClosed) return apply(held_[key(l)], l);
    const auto give_up = [&](auto at) {
      apply(at->second, on(l, at->first));
      return at->second.empty() ? held_.erase(at) : std::next(at);
    };
    if (l.file == 0)
      for (auto at = held_.begin(); at != held_.end();) at = give_up(at);
    else
      for (const bool record : {false, true})
        if (const auto at = held_.find(uint64_t{l.file} << 1 | record); at != held_.end())
          (void)give_up(at);
  }
  // Whether it can be had, or be refused, now.
  bool fits(const Lock& l) const {
    static const std::vector<Lock> kNobody;
    const auto at = held_.find(key(l));
    return fits(at != held_.end() ? at->second : kNobody, l);
  }
  // Whether `late`, which ended after `early`, took effect before it: only so could each be had, or
  // be refused.
  bool overtakes(const Lock& late, const Lock& early) const {
    if (late.what == Lock::kNone || early.what == Lock::kNone) return false;
    if (late.what == Lock::kClosed)
      return early.what != late.what && before(on(late, key(early)), early);
    return early.what == Lock::kClosed ? before(late, on(early, key(late))) : before(late, early);
  }
  // Whether somebody got what its owner gives up, and could not have it before, or is that owner.
  bool got_from(const Lock& l, const Lock& given_up) const {
    const auto at = held_.find(key(given_up));
    if (l.what != Lock::kGot || key(l) != key(given_up) || at == held_.end()) return false;
    return std::any_of(at->second.begin(), at->second.end(), [&](Lock h) {
      h.begin = std::max(h.begin, given_up.begin);
      h.end = std::min(h.end, given_up.end);
      if (h.owner != given_up.owner || h.begin >= h.end) return false;
      return l.owner == h.owner ? l.begin < h.end && h.begin < l.end : is_in_the_way(h, l);
    });
  }

 private:
  bool before(const Lock& late, const Lock& early) const {
    if (key(late) != key(early)) return false;
    static const std::vector<Lock> kNobody;
    const auto at = held_.find(key(early));
    const std::vector<Lock>& now = at != held_.end() ? at->second : kNobody;
    const auto both = [&](const Lock& first, const Lock& second) {
      if (!fits(now, first)) return false;
      std::vector<Lock> then = now;
      apply(then, first);
      return fits(then, second);
    };
    return !both(early, late) && both(late, early);
  }
  // What a close does to locks of that kind and file.
  static Lock on(const Lock& closed, uint64_t key) {
    Lock l = closed;
    l.record = (key & 1) != 0;
    if (l.file == 0) l.file = static_cast<uint32_t>(key >> 1);
    if (l.record) {
      if (closed.file != 0 && l.last) l.ends[0] = l.owner;
      l.owner = owned_by(l.process);
    } else if (!l.last) {
      l.begin = l.end;  // others have the description
    }
    return l;
  }
  static uint64_t key(const Lock& l) { return uint64_t{l.file} << 1 | l.record; }
  static bool fits(const std::vector<Lock>& held, const Lock& l) {
    if (l.what != Lock::kGot && l.what != Lock::kRefused) return true;
    return std::any_of(held.begin(), held.end(), [&](const Lock& h) {
             return is_in_the_way(h, l);
           }) == (l.what == Lock::kRefused);
  }
  static bool is_in_the_way(const Lock& held, const Lock& l) {
    return held.owner != l.owner && held.begin < l.end && l.begin < held.end &&
           (held.exclusive || l.exclusive);
  }
  static void apply(std::vector<Lock>& held, const Lock& l) {
    // flock(2): who is refused another kind of lock has lost the one he had.
    if (l.what == Lock::kRefused && l.record) return;
    const size_t count = held.size();
    // What the owner had of it is gone, or is as it is now; and what was in the way of who got it.
    for (size_t i = 0; i < count; ++i) {
      const bool gone = held[i].owner == l.owner ||
                        std::find(l.ends.begin(), l.ends.end(), held[i].owner) != l.ends.end() ||
                        (l.what == Lock::kGot && is_in_the_way(held[i], l));
      if (!gone || held[i].begin >= l.end || l.begin >= held[i].end) continue;
      Lock before = held[i], behind = held[i];
      before.end = l.begin;
      behind.begin = l.end;
      held[i].end = held[i].begin;
      if (before.begin < before.end) held.push_back(before);
      if (behind.begin < behind.end) held.push_back(behind);
    }
    std::erase_if(held, [](const Lock& h) { return h.begin == h.end; });
    if (l.what == Lock::kGot) held.push_back(l);
  }

  std::unordered_map<uint64_t, std::vector<Lock>> held_;
};

}  // namespace feign
