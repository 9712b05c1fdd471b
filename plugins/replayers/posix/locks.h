// SPDX-License-Identifier: MIT
// fcntl's record locks as the recorded processes had them: of a process and a file, whatever the
// descriptor, and gone when the process closes any descriptor of the file, or ends
// (fcntl_locking(2)). All recorded processes are one here, so that each has an open file
// description for each file it locks, to which the locks belong (F_OFD_SETLK).
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>

#include "replayers/posix/handles.h"

namespace feign {

class Locks {
 public:
  explicit Locks(const Descriptors& descriptors) : descriptors_(descriptors) {}
  Locks(const Locks&) = delete;
  Locks& operator=(const Locks&) = delete;
  ~Locks() { close_all(); }

  // F_OFD_SETLK or F_OFD_GETLK for a process, by one of its handles of the file, open as `fd`; 0 or
  // -errno. [any thread]
  int64_t call(int64_t process, uint32_t file, uint32_t handle, int fd, int command,
               struct flock& lock) {
    if (file == 0 || handle == 0) return result(::fcntl(fd, command, &lock));
    {
      const std::shared_lock shared(mutex_);
      const auto at = all_.find({process, file});
      if (at != all_.end())
        if (const int there = fd_of(at->second); there >= 0) return by(there, fd, command, lock);
    }
    const std::unique_lock alone(mutex_);
    const int own = take(process, file, handle, fd);
    return by(own >= 0 ? own : fd, fd, command, lock);
  }

  bool any() const { return count_.load(std::memory_order_acquire) != 0; }
  // The process closes a descriptor of the file; `goes`: with it the open file description that the
  // handle stands for. [any thread]
  void closes(int64_t process, uint32_t file, uint32_t handle, bool goes) {
    const std::unique_lock alone(mutex_);
    const auto at = all_.find({process, file});
    if (at != all_.end()) drop(at, goes && !at->second.own() && at->second.handle == handle);
  }
  // The process ends. [any thread]
  void ends(int64_t process) {
    const std::unique_lock alone(mutex_);
    for (auto at = all_.begin(); at != all_.end();)
      at = at->first.process == process ? drop(at, false) : std::next(at);
  }
  // What is left. [one thread, when no other is left]
  void close_all() {
    for (auto at = all_.begin(); at != all_.end();) at = drop(at, true);
  }

 private:
  struct Key {
    int64_t process;
    uint32_t file;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    size_t operator()(const Key& k) const {
      return std::hash<uint64_t>{}(static_cast<uint64_t>(k.process) * 0x9E3779B97F4A7C15u ^ k.file);
    }
  };
  // The description is that of a handle, or, where another process has its locks there, one made
  // for it.
  struct Entry {
    uint32_t handle;
    int fd;
    bool own() const { return fd >= 0; }
  };
  using All = std::unordered_map<Key, Entry, Hash>;

  static int64_t result(int value) { return value < 0 ? -errno : value; }
  int fd_of(const Entry& e) const { return e.own() ? e.fd : descriptors_.get(e.handle); }

  // By that description, if a lock of this type may be had by the descriptor that was named.
  int64_t by(int there, int fd, int command, struct flock& lock) const {
    if (there != fd && command == F_OFD_SETLK && lock.l_type != F_UNLCK) {
      const int refused = lock.l_type == F_WRLCK ? O_RDONLY : O_WRONLY;
      if ((::fcntl(fd, F_GETFL) & O_ACCMODE) == refused) return -EBADF;
      if ((::fcntl(there, F_GETFL) & O_ACCMODE) == refused) there = fd;
    }
    // From where the descriptor that was named is.
    if (there != fd && lock.l_whence == SEEK_CUR) {
      const off_t at = ::lseek(fd, 0, SEEK_CUR);
      if (at < 0) return -errno;
      lock.l_start += at;
      lock.l_whence = SEEK_SET;
    }
    return result(::fcntl(there, command, &lock));
  }

  // The process' first lock of the file, or the first since the handle went; -1: nothing is kept.
  int take(int64_t process, uint32_t file, uint32_t handle, int fd) {
    const auto [at, fresh] = all_.try_emplace({process, file}, Entry{handle, -1});
    if (!fresh) {
      if (const int there = fd_of(at->second); there >= 0) return there;
      at->second = {handle, -1};
    }
    count_.store(all_.size(), std::memory_order_release);
    const auto [of, first] = taken_.try_emplace(handle, process);
    if (first || of->second == process) return fd;
    const int flags = ::fcntl(fd, F_GETFL);
    // A thread may have descriptors of its own.
    const std::string name = "/proc/thread-self/fd/" + std::to_string(fd);
    for (const int access : {O_RDWR, flags & O_ACCMODE})
      if (at->second.fd < 0) at->second.fd = ::open(name.c_str(), access | O_CLOEXEC | O_NONBLOCK);
    if (at->second.own()) return at->second.fd;
    (void)drop(at, true);
    return -1;
  }

  All::iterator drop(All::iterator at, bool unlocked) {
    const Entry& e = at->second;
    if (e.own()) {
      ::close(e.fd);
    } else {
      struct flock all {};
      all.l_type = F_UNLCK;
      if (const int fd = unlocked ? -1 : descriptors_.get(e.handle); fd >= 0)
        (void)::fcntl(fd, F_OFD_SETLK, &all);
      const auto of = taken_.find(e.handle);
      if (of != taken_.end() && of->second == at->first.process) taken_.erase(of);
    }
    const auto next = all_.erase(at);
    count_.store(all_.size(), std::memory_order_release);
    return next;
  }

  const Descriptors& descriptors_;
  mutable std::shared_mutex mutex_;
  All all_;
  std::unordered_map<uint32_t, int64_t> taken_;  // whose locks a handle's description has
  std::atomic<size_t> count_{0};
};

}  // namespace feign
