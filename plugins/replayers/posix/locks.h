// SPDX-License-Identifier: MIT
// fcntl's record locks as the recorded processes had them: of a process and a file, whatever the
// descriptor, and gone when the process closes any descriptor of the file, or ends
// (fcntl_locking(2)). All recorded processes are one here, so that each has an open file
// description for each file it locks, to which the locks belong (F_OFD_SETLK). Those that belonged
// to an open file description then conflict with the process's, and have one of their own.
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "replayers/posix/handles.h"

namespace feign {

class Locks {
 public:
  explicit Locks(const Descriptors& descriptors) : descriptors_(descriptors) {}

  // F_OFD_SETLK or F_OFD_GETLK for a process, by one of its handles of the file, open as `fd`; 0 or
  // -errno. Without a file: of that open file itself. [any thread]
  int64_t call(int64_t process, uint32_t file, uint32_t handle, int fd, int command,
               struct flock& lock) {
    if (handle == 0) return result(::fcntl(fd, command, &lock));
    const Key owner = file != 0 ? Key{process, file} : Key{kOpenFile, handle};
    const Entry e = take(owner, handle, fd);
    int there = e.fd(descriptors_);
    if (there < 0 || there == fd) return result(::fcntl(fd, command, &lock));
    // By that description, if such a lock may be had by the descriptor that was named.
    const int named = ::fcntl(fd, F_GETFL);
    if (named < 0 || (named & O_PATH) != 0) return -EBADF;
    if (command == F_OFD_SETLK && lock.l_type != F_UNLCK) {
      const int refused = lock.l_type == F_WRLCK ? O_RDONLY : O_WRONLY;
      if ((named & O_ACCMODE) == refused) return -EBADF;
      if ((::fcntl(there, F_GETFL) & O_ACCMODE) == refused) there = fd;
    }
    // From where the descriptor that was named is.
    if (lock.l_whence == SEEK_CUR) {
      const off_t at = ::lseek(fd, 0, SEEK_CUR);
      if (at < 0) return -errno;
      lock.l_start += at;
      lock.l_whence = SEEK_SET;
    }
    return result(::fcntl(there, command, &lock));
  }

  bool any() const { return count_.load(std::memory_order_acquire) != 0; }
  // The process closes a descriptor, `fd` here; one of O_PATH leaves it its locks. What is mapped
  // keeps the open file description. [any thread]
  void closes(int64_t process, int fd) {
    if (!has_any(process)) return;
    const int flags = ::fcntl(fd, F_GETFL);
    struct stat closed {};
    if (flags < 0 || (flags & O_PATH) != 0 || ::fstat(fd, &closed) != 0) return;
    drop(process, [&](const Entry& e) { return e.dev == closed.st_dev && e.ino == closed.st_ino; });
  }
  // Nobody has the handle any more. [any thread]
  void closes(uint32_t handle) {
    const std::lock_guard guard(mutex_);
    if (const auto at = all_.find({kOpenFile, handle}); at != all_.end()) (void)drop(at);
  }
  // The process ends. [any thread]
  void ends(int64_t process) {
    drop(process, [](const Entry&) { return true; });
  }
  // What is left. [one thread, when no other is left]
  void close_all() { all_.clear(); }

 private:
  static constexpr int64_t kOpenFile = INT64_MIN;  // no process's
  using Key = std::pair<int64_t, uint32_t>;        // process, file; kOpenFile, handle
  struct Own {
    explicit Own(int number) : fd(number) {}
    Own(const Own&) = delete;
    Own& operator=(const Own&) = delete;
    ~Own() { ::close(fd); }
    const int fd;
  };
  // The description is that of a handle, or, where another owner has its locks there, one made for
  // it.
  struct Entry {
    uint32_t handle = 0;
    std::shared_ptr<const Own> own;
    dev_t dev = 0;
    ino_t ino = 0;
    bool spare = false;  // its own, though the handle's was free
    int fd(const Descriptors& descriptors) const {
      return own ? own->fd : handle != 0 ? descriptors.get(handle) : -1;
    }
  };

  using All = std::map<Key, Entry>;

  bool has_any(int64_t process) {
    const std::lock_guard guard(mutex_);
    const auto at = all_.lower_bound({process, 0});
    return at != all_.end() && at->first.first == process;
  }
  template <typename Which>
  void drop(int64_t process, const Which& which) {
    const std::lock_guard guard(mutex_);
    for (auto at = all_.lower_bound({process, 0}); at != all_.end() && at->first.first == process;)
      at = which(at->second) ? drop(at) : std::next(at);
  }

  // A quarter of what may be open.
  static size_t most_spare() {
    rlimit limit{};
    return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur / 4 : 0;
  }

  static int64_t result(int value) { return value < 0 ? -errno : value; }

  // Made with the owner's first lock of the file, or the first since the handle went. A process may
  // lock for reading by one descriptor, and for writing by another: its description allows both, if
  // it may, and there are not many such.
  Entry take(const Key& owner, uint32_t handle, int fd) {
    const std::lock_guard guard(mutex_);
    Entry& e = all_[owner];
    if (e.fd(descriptors_) >= 0) return e;
    const int flags = ::fcntl(fd, F_GETFL), access = flags & O_ACCMODE;
    if (flags < 0 || (flags & O_PATH) != 0) {
      all_.erase(owner);
      count_.store(all_.size(), std::memory_order_release);
      return {};
    }
    struct stat is {};
    (void)::fstat(fd, &is);
    e = {.handle = handle, .dev = is.st_dev, .ino = is.st_ino};
    count_.store(all_.size(), std::memory_order_release);
    const auto of = taken_.find(handle);
    const bool free = of == taken_.end() || of->second == owner.first;
    const bool will_do =
        free && (access == O_RDWR || owner.first == kOpenFile || spare_ >= most_spare());
    // A thread may have descriptors of its own.
    const std::string name = "/proc/thread-self/fd/" + std::to_string(fd);
    int own = will_do ? -1 : ::open(name.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (own < 0 && !free) own = ::open(name.c_str(), access | O_CLOEXEC | O_NONBLOCK);
    e.spare = free && own >= 0;
    if (e.spare) ++spare_;
    if (own >= 0)
      e.own = std::make_shared<const Own>(own);
    else if (free)
      taken_[handle] = owner.first;
    else
      e.handle = 0;  // then locks belong to the open file
    return e;
  }

  // With it go a process's locks, before anybody else may have them by the handle's description;
  // what a description of its own has goes with that.
  All::iterator drop(All::iterator at) {
    const auto& [owner, e] = *at;
    const auto of = taken_.find(e.handle);
    if (of != taken_.end() && of->second == owner.first) taken_.erase(of);
    struct flock all {};
    all.l_type = F_UNLCK;
    const int fd = e.own || owner.first == kOpenFile ? -1 : e.fd(descriptors_);
    if (fd >= 0) (void)::fcntl(fd, F_OFD_SETLK, &all);
    if (e.spare) --spare_;
    const auto next = all_.erase(at);
    count_.store(all_.size(), std::memory_order_release);
    return next;
  }

  const Descriptors& descriptors_;
  std::mutex mutex_;
  All all_;
  size_t spare_ = 0;                             // descriptors
  std::unordered_map<uint32_t, int64_t> taken_;  // whose locks a handle's description has
  std::atomic<size_t> count_{0};
};

}  // namespace feign
