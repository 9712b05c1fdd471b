// SPDX-License-Identifier: MIT
// What descriptors are, for what has to be known before core/resolve sees a call: the order of
// calls that overlap.
#pragma once

#include <fcntl.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "feign.h"
#include "trace/effects.h"

namespace feign {

// An open file description: whoever has it shares its offset and flock(2)'s locks.
struct Description {
  uint64_t number = 0;  // of those that were seen to be opened, from 1 on
  uint32_t flags = 0;   // of the open; O_APPEND as it is by now
  int64_t at = 0;       // where it reads and writes next; -1: not known
};
struct Descriptor {
  uint32_t file = 0;                  // by its name from "/" on; 0: not known
  std::shared_ptr<Description> open;  // null: nobody saw that
  bool last = true;                   // no other is known that shares it
  bool pipe = false;                  // an end of a pipe, or of a pair of sockets
};

// Names who reads there: the description, or where nobody saw its open, the descriptor.
inline uint64_t reader_of(const Descriptor& d, uint64_t process, uint32_t handle) {
  return d.open != nullptr ? d.open->number
                           : UINT64_C(1) << 63 | process << 20 | (handle & 0xFFFFF);
}

// A process's, or one that threads share.
class Descriptors {
 public:
  explicit Descriptors(uint64_t process) : process_(process) {}
  // The same files for a process that was forked.
  Descriptors(const Descriptors& of, uint64_t process)
      : process_(process), known_(of.known_), all_(of.all_) {}
  uint64_t process() const { return process_; }
  Descriptor at(uint32_t handle) const {
    if (place(handle) >= all_.size()) return {};
    Descriptor d = all_[place(handle)];
    d.last = d.open.use_count() <= 2;  // and this one
    return d;
  }
  void set(uint32_t handle, Descriptor d) {
    const size_t i = place(handle);
    if (i >= kMost) return;
    if (i >= all_.size()) {
      all_.resize(i + 1);
      known_.resize(i + 1);
    }
    all_[i] = std::move(d);
    known_[i] = true;
  }
  void close(uint64_t first, uint64_t last) {
    for (uint64_t fd = first; fd <= last && fd < all_.size(); ++fd) set(FEIGN_FD(fd), {});
  }
  // Each, and whether nobody else has its description.
  template <typename Visit>
  void for_each(const Visit& visit) const {
    for (const Descriptor& d : all_) {
      if (d.file == 0) continue;
      visit(d, [&] {
        return d.open != nullptr &&
               d.open.use_count() <= std::count_if(all_.begin(), all_.end(),
                                                   [&](const auto& o) { return o.open == d.open; });
      });
    }
  }
  // What others had; what is known here is newer, or is not.
  void add(const Descriptors& others, bool newer) {
    for (size_t i = 0; i < others.all_.size(); ++i)
      if (others.known_[i] && (!newer || i >= known_.size() || !known_[i]))
        set(FEIGN_FD(i), others.all_[i]);
  }

 private:
  static constexpr size_t kMost = 1 << 16;
  static size_t place(uint32_t handle) { return size_t{handle} - FEIGN_FD(0); }  // 0 is none
  uint64_t process_;
  std::vector<bool> known_;
  std::vector<Descriptor> all_;
};

// The descriptor that a call on another one closes, if there is one; 0: none.
inline uint32_t closed_by(Effect effect, const feign_activity& a) {
  const uint32_t there = FEIGN_FD(a.result);
  return effect == Effect::kDup2 && a.result >= 0 && there != a.handle ? there : 0;
}

// What a call leaves at a descriptor (0: at none): what its own one is, what it opened, or nothing
// that is known.
struct Left {
  enum What : uint8_t { kNothing, kOwn, kOpened };
  uint32_t handle = 0;
  What what = kNothing;
};
inline Left left_by(Effect effect, const feign_activity& a) {
  if (a.result < 0 || (a.marks & FEIGN_NO_RESULT) != 0) return {};
  const uint32_t result = FEIGN_FD(a.result);
  switch (effect) {
    case Effect::kOpen:
    case Effect::kCreat:
      return {result, Left::kOpened};
    case Effect::kFcntl:
      if (a.flags != F_DUPFD && a.flags != F_DUPFD_CLOEXEC) return {};
      return {result, Left::kOwn};
    case Effect::kDup:
    case Effect::kDup2:
      return {result, Left::kOwn};
    case Effect::kClose:
      return {a.handle};
    case Effect::kChannel:
    case Effect::kPidfd:
    case Effect::kGetfd:
    case Effect::kByHandle:
    case Effect::kEventfd:
    case Effect::kAccept:
      return {a.handle != result ? result : 0};  // signalfd may change one that is there
    case Effect::kRuleset:
      return {a.flags == 0 ? result : 0};
    default:
      return {};
  }
}

}  // namespace feign
