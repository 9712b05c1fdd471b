// SPDX-License-Identifier: MIT
// Descriptor numbers for text that has these, where activities have handles: one table a process.
// Numbers are as recorded where they are free, else the lowest that is; or always the lowest, which
// does not depend on what others do meanwhile.
#pragma once

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "feign.h"
#include "trace/effects.h"
#include "trace/lost.h"

namespace feign {

class Descriptors {
 public:
  explicit Descriptors(bool as_recorded = true) : as_recorded_(as_recorded) {}

  // A number for a handle; one that this process did not open gets one all the same.
  int of(uint32_t handle, Lost& lost) {
    if (const auto at = by_handle_.find(handle); at != by_handle_.end()) return at->second.front();
    lost.count("descriptors that another process or nobody opened (their files)");
    return add(handle, kUnseen);  // out of the way of recorded ones
  }
  bool has(uint32_t handle) const { return by_handle_.contains(handle); }
  // One that is opened without an activity of its own.
  int open(uint32_t handle) { return add(handle, -1); }

  // The number of the stream that a freopen closes; it is free from then on.
  int reopened(const feign_activity& a, Lost& lost) {
    const int fd = of(a.handle2, lost);
    remove(a.handle2, fd);
    return fd;
  }

  // The result to write for a call: that of one that makes a descriptor is its number here.
  int64_t result(const feign_activity& a, uint32_t kind, Effect effect, Lost& lost) {
    if (a.result < 0 || (a.marks & FEIGN_NO_RESULT) || a.handle == 0) return a.result;
    if (kind == FEIGN_KIND_OPEN) return add(a.handle, a.result);
    const bool dup2 = effect == Effect::kDup2;
    const bool dups =
        dup2 || effect == Effect::kDup ||
        (effect == Effect::kFcntl && (a.flags == F_DUPFD || a.flags == F_DUPFD_CLOEXEC));
    if (!dups) return a.result;
    (void)of(a.handle, lost);
    const auto number = static_cast<uint64_t>(a.result);
    if (dup2 && a.handle2 != 0 && has(a.handle2)) {  // which is closed by it
      const std::vector<int>& all = by_handle_[a.handle2];
      const bool there = std::find(all.begin(), all.end(), a.result) != all.end();
      const int fd = there ? static_cast<int>(a.result) : all.front();
      remove(a.handle2, fd);
      return add(a.handle, fd);
    }
    if (dup2 && as_recorded_ && number < by_number_.size() && by_number_[number] == a.handle)
      return a.result;
    return add(a.handle, a.result);
  }
  // After a call was written: it may have closed its descriptor.
  void closed(const feign_activity& a, Effect effect, Lost& lost) {
    if (effect == Effect::kClose && a.handle != 0 && a.result != -EBADF)
      remove(a.handle, of(a.handle, lost));
  }
  // Before a call that ends the process or its image, or closes many: resolve says which handles.
  void ended(const feign_activity& a, Effect effect) {
    if (effect != Effect::kExec && effect != Effect::kExit && effect != Effect::kExitGroup &&
        effect != Effect::kCloseRange)
      return;
    for (uint32_t i = 0; i < a.value_count; ++i)
      while (has(static_cast<uint32_t>(a.values[i]))) {
        const auto handle = static_cast<uint32_t>(a.values[i]);
        remove(handle, by_handle_[handle].front());
      }
  }

 private:
  static constexpr size_t kFirst = 3, kUnseen = 1000, kMost = 1 << 20;

  int add(uint32_t handle, int64_t wanted) {
    const auto taken = [&](size_t fd) { return fd < by_number_.size() && by_number_[fd] != 0; };
    if (!as_recorded_) wanted = -1;
    size_t fd =
        wanted >= 0 && static_cast<size_t>(wanted) < kMost ? static_cast<size_t>(wanted) : kFirst;
    if (taken(fd) && wanted != kUnseen) fd = kFirst;
    while (taken(fd)) ++fd;
    if (fd >= by_number_.size()) by_number_.resize(fd + 1);
    by_number_[fd] = handle;
    by_handle_[handle].push_back(static_cast<int>(fd));
    return static_cast<int>(fd);
  }
  void remove(uint32_t handle, int fd) {
    by_number_[static_cast<size_t>(fd)] = 0;
    std::vector<int>& list = by_handle_[handle];
    std::erase(list, fd);
    if (list.empty()) by_handle_.erase(handle);
  }

  bool as_recorded_;
  std::unordered_map<uint32_t, std::vector<int>> by_handle_;
  std::vector<uint32_t> by_number_;  // handles; 0: free
};

}  // namespace feign
