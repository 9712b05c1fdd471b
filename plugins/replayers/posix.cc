// SPDX-License-Identifier: MIT
// Replayer posix: makes the calls of layer posix below a root.
//
// No path may lead out of the root. A call by path is made relative to its directory, which is
// opened with openat2(RESOLVE_IN_ROOT) and kept; the last component is then used without following
// a link, and only if it is one the whole path is resolved again in the root. So the usual call
// costs what it cost the application: one system call. Which call is made how comes from
// layers/posix.h.
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/jail.h"
#include "feign.h"

namespace {

int64_t checked(int64_t result) { return result < 0 ? -errno : result; }

// The real descriptors of handles. A handle has one, and a further one for each dup; all of them
// stand for the same open file, so any will do.
class Descriptors {
 public:
  ~Descriptors() {
    for (uint32_t i = 0; i < kPages; ++i)
      if (Page* p = pages_[i].load(std::memory_order_relaxed)) {
        for (auto& fd : p->fds)
          if (const int f = fd.load(std::memory_order_relaxed) - 1; f >= 0) ::close(f);
        delete p;
      }
    for (const auto& [handle, fd] : further_) ::close(fd);
  }

  int get(uint32_t handle) const {
    const Page* p = page_of(handle);
    return p == nullptr ? -1 : p->fds[handle % kPage].load(std::memory_order_acquire) - 1;
  }
  // Takes the descriptor over; false if there is no room.
  bool set(uint32_t handle, int fd) {
    if (handle / kPage >= kPages) return false;
    auto& page = pages_[handle / kPage];
    Page* p = page.load(std::memory_order_acquire);
    if (p == nullptr) {
      auto fresh = std::make_unique<Page>();
      if (page.compare_exchange_strong(p, fresh.get(), std::memory_order_acq_rel))
        p = fresh.release();
    }
    const int old = p->fds[handle % kPage].exchange(fd + 1, std::memory_order_acq_rel) - 1;
    if (old >= 0) ::close(old);
    return true;
  }
  void add(uint32_t handle, int fd) {
    const std::lock_guard lock(mutex_);
    further_.emplace(handle, fd);
    further_count_.store(further_.size(), std::memory_order_release);
  }
  // One that dup made, if there is one; else -1.
  int take_further(uint32_t handle) {
    if (further_count_.load(std::memory_order_acquire) == 0) return -1;
    const std::lock_guard lock(mutex_);
    const auto at = further_.find(handle);
    if (at == further_.end()) return -1;
    const int fd = at->second;
    further_.erase(at);
    further_count_.store(further_.size(), std::memory_order_release);
    return fd;
  }
  int take(uint32_t handle) {
    Page* p = page_of(handle);
    return p == nullptr ? -1 : p->fds[handle % kPage].exchange(0, std::memory_order_acq_rel) - 1;
  }

 private:
  static constexpr uint32_t kPage = 8192, kPages = 1u << 17;
  struct Page {
    std::atomic<int> fds[kPage]{};  // plus 1; 0: none
  };
  Page* page_of(uint32_t handle) const {
    return handle / kPage < kPages ? pages_[handle / kPage].load(std::memory_order_acquire)
                                   : nullptr;
  }
  std::unique_ptr<std::atomic<Page*>[]> pages_ { new std::atomic<Page*>[kPages] {} };
  std::mutex mutex_;
  std::unordered_multimap<uint32_t, int> further_;
  std::atomic<size_t> further_count_{0};
};

// A path as the last component of an open directory, or why that cannot be.
struct Where {
  int dir;           // or -errno
  const char* name;  // null: no last component to go by ("/"): the whole path has to be resolved
};

// The directories that a thread has open, by the path strings that lie in them.
class Directories {
 public:
  ~Directories() { clear(); }
  Where find(const feign_host* host, int root, uint32_t path, uint64_t generation,
             const void* owner) {
    if (generation != generation_ || owner != owner_) {
      clear();
      generation_ = generation;
      owner_ = owner;
    }
    if (path < names_.size() && names_[path].name != nullptr)
      return {dirs_[names_[path].dir].fd, names_[path].name};
    const char* text = host->text(host, path, nullptr);
    const char* slash = strrchr(text, '/');
    if (slash == nullptr || slash[1] == '\0') return {-ENOENT, nullptr};
    const char* name = slash + 1;
    if (strcmp(name, "..") == 0 || strcmp(name, ".") == 0) return {0, nullptr};
    const std::string above = slash == text ? "/" : std::string(text, slash);
    uint32_t dir;
    if (const auto at = by_path_.find(above); at != by_path_.end()) {
      dir = at->second;
    } else {
      if (dirs_.size() >= kMost) {
        clear();
      }
      const int fd = feign::open_in_root(root, above.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
      if (fd < 0) return {fd, nullptr};
      dir = static_cast<uint32_t>(dirs_.size());
      dirs_.push_back({fd});
      by_path_.emplace(above, dir);
    }
    if (path >= names_.size()) names_.resize(std::max<size_t>(path + 1, path * size_t{3} / 2));
    names_[path] = {name, dir};
    return {dirs_[dir].fd, name};
  }

 private:
  static constexpr size_t kMost = 256;
  void clear() {
    for (const Dir& d : dirs_) ::close(d.fd);
    dirs_.clear();
    by_path_.clear();
    names_.clear();
  }
  struct Dir {
    int fd;
  };
  struct Name {
    const char* name = nullptr;
    uint32_t dir = 0;
  };
  std::vector<Dir> dirs_;
  std::unordered_map<std::string, uint32_t> by_path_;
  std::vector<Name> names_;  // by path string id
  uint64_t generation_ = 0;
  const void* owner_ = nullptr;
};

thread_local Directories t_directories;

struct Replayer {
  const feign_host* host = nullptr;
  int root = -1;
  size_t buffer_size = 0;
  char* write_buffer = nullptr;  // shared: only read from
  Descriptors descriptors;
  std::atomic<uint64_t> generation{1};  // of directories: grows when a name of one changed

  ~Replayer() {
    if (write_buffer != nullptr) munmap(write_buffer, buffer_size);
  }
};

// A stream, and how its calls are made.
struct Context {
  Replayer* r = nullptr;
  feign_outcome* outcome = nullptr;
  char* read_buffer = nullptr;
  std::vector<iovec> vectors;
  union {
    struct stat stat;
    struct statx statx;
    struct statfs statfs;
  } space;

  ~Context() {
    if (read_buffer != nullptr) munmap(read_buffer, r->buffer_size);
  }

  int descriptor(uint32_t handle) const { return handle != 0 ? r->descriptors.get(handle) : -1; }

  int64_t skip(const char* why) {
    outcome->doing = FEIGN_SKIPPED;
    outcome->why = why;
    return 0;
  }
  int64_t emulated(int64_t result) {
    outcome->doing = FEIGN_EMULATED;
    return result;
  }

  template <typename T>
  T* scratch() {
    return reinterpret_cast<T*>(&space);
  }
  // More than the buffers hold is never asked for: the kernel moves at most 2 GiB a call.
  size_t fit(uint64_t length) const { return std::min<uint64_t>(length, r->buffer_size); }

  const iovec* iov(const feign_activity& a, char* memory) {
    vectors.clear();
    for (uint32_t i = 0; i < a.value_count && i < IOV_MAX; ++i)
      vectors.push_back({memory, fit(a.values[i])});
    if (vectors.empty()) vectors.push_back({memory, fit(a.length)});
    return vectors.data();
  }
  int iov_count(const feign_activity& a) {
    return a.value_count == 0 ? 1 : static_cast<int>(std::min<uint32_t>(a.value_count, IOV_MAX));
  }
  off_t offset2(const feign_activity& a) { return static_cast<off_t>(a.offset); }

  Where where(uint32_t path) {
    return t_directories.find(r->host, r->root, path, r->generation.load(std::memory_order_acquire),
                              r);
  }
  const char* text(uint32_t path) { return r->host->text(r->host, path, nullptr); }
  // The file behind a path, every link followed within the root, as an O_PATH descriptor or -errno.
  int target(uint32_t path, uint64_t flags = O_PATH) {
    return feign::open_in_root(r->root, text(path), flags | O_CLOEXEC, 0);
  }
  void names_changed() { r->generation.fetch_add(1, std::memory_order_acq_rel); }

  int64_t open(const feign_activity& a) {
    if (a.path == 0) return skip("no path was recorded");
    const uint64_t mode = a.mode & 01777;
    const int flags = static_cast<int>(a.flags) | O_CLOEXEC | O_NOCTTY;
    int fd;
    const Where w = (flags & O_PATH) && !(flags & O_NOFOLLOW) ? Where{0, nullptr} : where(a.path);
    if (w.dir < 0 && w.dir != -ENOENT) return w.dir;
    if (w.name != nullptr) {
      fd = ::openat(w.dir, w.name, flags | O_NOFOLLOW, static_cast<mode_t>(mode));
      if (fd < 0) fd = -errno;
      const bool link = fd == -ELOOP || ((flags & O_DIRECTORY) && fd == -ENOTDIR);
      if (link && !(a.flags & O_NOFOLLOW))
        fd = feign::open_in_root(r->root, text(a.path), static_cast<uint64_t>(flags), mode);
    } else if (w.dir < 0) {
      return w.dir;
    } else {
      fd = feign::open_in_root(r->root, text(a.path), static_cast<uint64_t>(flags), mode);
    }
    if (fd < 0) return fd;
    if (a.handle == 0 || a.result < 0 || !r->descriptors.set(a.handle, fd)) ::close(fd);
    return fd;
  }

  int64_t close(const feign_activity& a) {
    if (const int further = r->descriptors.take_further(a.handle); further >= 0)
      return checked(::close(further));
    if (a.marks & FEIGN_LAST) return checked(::close(r->descriptors.take(a.handle)));
    // A copy that fork made in the recorded process: here there is one process, and no copy.
    return r->descriptors.get(a.handle) < 0 ? -EBADF : emulated(0);
  }

  void give_up(uint32_t handle, bool last) {
    const int further = r->descriptors.take_further(handle);
    if (further >= 0) ::close(further);
    if (!last) return;
    for (int fd; (fd = r->descriptors.take_further(handle)) >= 0;) ::close(fd);
    if (const int fd = r->descriptors.take(handle); fd >= 0) ::close(fd);
  }

  int64_t dup(const feign_activity& a, int fd) {
    const int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (copy < 0) return -errno;
    if (a.handle2 != 0) give_up(a.handle2, (a.marks & FEIGN_LAST) != 0);
    if (a.result < 0 || static_cast<int>(a.result) < 0) {
      ::close(copy);
    } else {
      r->descriptors.add(a.handle, copy);
    }
    return copy;
  }

  int64_t fcntl(const feign_activity& a, int fd) {
    const uint64_t argument = a.value_count > 0 ? a.values[0] : 0;
    switch (a.flags) {
      case F_DUPFD:
      case F_DUPFD_CLOEXEC:
        return dup(a, fd);
      case F_GETFD:
      case F_GETFL:
        return checked(::fcntl(fd, static_cast<int>(a.flags)));
      case F_SETFD:
        return checked(::fcntl(fd, F_SETFD, static_cast<int>(argument)));
      case F_SETFL:
        return checked(
            ::fcntl(fd, F_SETFL,
                    static_cast<int>(argument & (O_APPEND | O_NONBLOCK | O_NOATIME | O_DIRECT))));
      default:
        return skip("this fcntl command is not replayed");
    }
  }

  int64_t stat(const feign_activity& a, int fd) {
    if (a.path == 0 || a.handle != 0) {
      if (fd < 0) return -EBADF;
      return checked(::fstat(fd, &space.stat));
    }
    const Where w = where(a.path);
    if (w.dir < 0) return at_root(a, w) ? checked(::fstat(r->root, &space.stat)) : w.dir;
    if (w.name != nullptr) {
      if (::fstatat(w.dir, w.name, &space.stat, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) != 0)
        return -errno;
      if (!S_ISLNK(space.stat.st_mode) || (a.marks & FEIGN_NOFOLLOW)) return 0;
    }
    return at_target(a.path, [&](int at) { return ::fstat(at, &space.stat); });
  }

  int64_t statx(const feign_activity& a, int fd) {
    constexpr unsigned kMask = STATX_BASIC_STATS;
    if (a.path == 0 || a.handle != 0) {
      if (fd < 0) return -EBADF;
      return checked(::statx(fd, "", AT_EMPTY_PATH, kMask, &space.statx));
    }
    const Where w = where(a.path);
    if (w.dir < 0)
      return at_root(a, w) ? checked(::statx(r->root, "", AT_EMPTY_PATH, kMask, &space.statx))
                           : w.dir;
    if (w.name != nullptr) {
      if (::statx(w.dir, w.name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, kMask, &space.statx) != 0)
        return -errno;
      if (!S_ISLNK(space.statx.stx_mode) || (a.marks & FEIGN_NOFOLLOW)) return 0;
    }
    return at_target(a.path,
                     [&](int at) { return ::statx(at, "", AT_EMPTY_PATH, kMask, &space.statx); });
  }

  // "/" itself: the only path that has no last component.
  bool at_root(const feign_activity& a, const Where& w) {
    return w.name == nullptr && strcmp(text(a.path), "/") == 0;
  }
  template <typename Call>
  int64_t at_target(uint32_t path, Call&& call) {
    const int at = target(path);
    if (at < 0) return at;
    const int64_t result = checked(call(at));
    ::close(at);
    return result;
  }

  int64_t access(const feign_activity& a) {
    if (a.path == 0) return skip("no path was recorded");
    const int mode = static_cast<int>(a.mode & 7);
    const Where w = where(a.path);
    if (w.dir < 0 && !at_root(a, w)) return w.dir;
    if (w.name != nullptr) {
      if (::faccessat(w.dir, w.name, mode, AT_SYMLINK_NOFOLLOW) != 0 && errno != EINVAL)
        return -errno;
      if (a.marks & FEIGN_NOFOLLOW) return 0;
      if (::fstatat(w.dir, w.name, &space.stat, AT_SYMLINK_NOFOLLOW) != 0) return -errno;
      if (!S_ISLNK(space.stat.st_mode)) return 0;
    }
    return at_target(a.path,
                     [&](int at) { return syscall(SYS_faccessat2, at, "", mode, AT_EMPTY_PATH); });
  }

  int64_t readlink(const feign_activity& a) {
    const Where w = where(a.path);
    if (w.dir < 0) return at_root(a, w) ? -EINVAL : w.dir;
    if (w.name == nullptr) return -EINVAL;
    char link[PATH_MAX];
    return checked(::readlinkat(w.dir, w.name, link, std::min<size_t>(a.length, sizeof link)));
  }

  int64_t unlink(const feign_activity& a, int flags) {
    const Where w = where(a.path);
    if (w.dir < 0) return at_root(a, w) ? -EBUSY : w.dir;
    if (w.name == nullptr) return -EINVAL;
    const int64_t result = checked(::unlinkat(w.dir, w.name, flags & AT_REMOVEDIR));
    if (result == 0 && ((flags & AT_REMOVEDIR) || (a.marks & (FEIGN_SYMLINK | FEIGN_DIRECTORY))))
      names_changed();
    return result;
  }

  int64_t rename(const feign_activity& a) {
    if (a.path == 0 || a.path2 == 0) return skip("no path was recorded");
    // Once more at the end: finding the second may have emptied a full cache.
    Where from = where(a.path);
    if (from.dir < 0 || from.name == nullptr) return at_root(a, from) ? -EBUSY : from.dir;
    const Where to = where(a.path2);
    if (to.dir < 0 || to.name == nullptr) return to.dir < 0 ? to.dir : -EBUSY;
    from = where(a.path);
    if (from.dir < 0) return from.dir;
    const int64_t result = checked(::renameat2(from.dir, from.name, to.dir, to.name, a.flags & 7));
    if (result == 0 && (a.marks & (FEIGN_DIRECTORY | FEIGN_SYMLINK))) names_changed();
    return result;
  }

  int64_t mkdir(const feign_activity& a) {
    const Where w = where(a.path);
    if (w.dir < 0) return at_root(a, w) ? -EEXIST : w.dir;
    if (w.name == nullptr) return -EEXIST;
    return checked(::mkdirat(w.dir, w.name, a.mode & 01777));
  }

  int64_t link(const feign_activity& a) {
    if (a.path == 0 || a.path2 == 0) return skip("no path was recorded");
    const Where to = where(a.path2);
    if (to.dir < 0 || to.name == nullptr) return to.dir < 0 ? to.dir : -EEXIST;
    if (a.flags & AT_SYMLINK_FOLLOW) {
      return at_target(a.path, [&](int at) {
        return ::linkat(AT_FDCWD, by_descriptor(at), to.dir, to.name, AT_SYMLINK_FOLLOW);
      });
    }
    const Where from = where(a.path);
    if (from.dir < 0 || from.name == nullptr) return from.dir < 0 ? from.dir : -EPERM;
    const Where again = where(a.path2);
    if (again.dir < 0) return again.dir;
    return checked(::linkat(from.dir, from.name, again.dir, again.name, 0));
  }

  int64_t symlink(const feign_activity& a) {
    const Where w = where(a.path);
    if (w.dir < 0) return at_root(a, w) ? -EEXIST : w.dir;
    if (w.name == nullptr) return -EEXIST;
    return checked(::symlinkat(text(a.path2), w.dir, w.name));
  }

  // An O_PATH descriptor as a path, for calls that take no descriptor of that kind. This magic link
  // is ours, not the trace's.
  const char* by_descriptor(int fd) {
    static thread_local char path[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return path;
  }

  int64_t chmod(const feign_activity& a) {
    if (a.path == 0) return skip("no path was recorded");
    return at_target(a.path, [&](int at) { return ::chmod(by_descriptor(at), a.mode & 01777); });
  }
  int64_t truncate(const feign_activity& a) {
    if (a.path == 0) return skip("no path was recorded");
    const int at = target(a.path, O_WRONLY | O_NOCTTY);
    if (at < 0) return at;
    const int64_t result = checked(::ftruncate(at, static_cast<off_t>(a.length)));
    ::close(at);
    return result;
  }
  int64_t utimens(const feign_activity& a, int fd) {
    if (a.path == 0 || a.handle != 0) return fd < 0 ? -EBADF : checked(::futimens(fd, nullptr));
    if (a.marks & FEIGN_NOFOLLOW) {
      const Where w = where(a.path);
      if (w.dir < 0) return w.dir;
      if (w.name != nullptr)
        return checked(::utimensat(w.dir, w.name, nullptr, AT_SYMLINK_NOFOLLOW));
    }
    return at_target(a.path,
                     [&](int at) { return ::utimensat(AT_FDCWD, by_descriptor(at), nullptr, 0); });
  }
  int64_t statfs(const feign_activity& a) {
    if (a.path == 0) return skip("no path was recorded");
    return at_target(a.path, [&](int at) { return ::fstatfs(at, &space.statfs); });
  }
  int64_t getdents(const feign_activity& a, int fd) {
    return checked(syscall(SYS_getdents64, fd, read_buffer, fit(a.length)));
  }
  int64_t fadvise(const feign_activity& a, int fd) {
    return -::posix_fadvise(fd, static_cast<off_t>(a.offset), static_cast<off_t>(a.length),
                            static_cast<int>(a.flags));
  }
  // Never waits: who has the lock may be a stream that waits for this one.
  int64_t flock(const feign_activity& a, int fd) {
    return checked(::flock(fd, static_cast<int>(a.flags) | LOCK_NB));
  }

  // Process structure is the streams' here; what it closed is closed.
  int64_t ends(const feign_activity& a) {
    for (uint32_t i = 0; i < a.value_count; ++i) give_up(static_cast<uint32_t>(a.values[i]), true);
    return emulated(a.result);
  }
  int64_t nothing(const feign_activity& a) { return emulated(a.result); }
  int64_t chdir(const feign_activity& a) { return emulated(a.result); }
};

struct Doing {
  int64_t (*make)(Context& c, const feign_activity& a, int fd);
  bool needs_descriptor;
};

#include "layers/posix_replay.inc"

struct Options {
  uint32_t unused;
};

char* map_buffer(size_t size) {
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<char*>(memory);
}

feign_status create(const feign_host* host, const void*, void** self) noexcept {
  const auto* run = static_cast<const feign_run*>(host->extension(host, "feign.run/1"));
  if (run == nullptr || run->root_fd < 0)
    return host->fail(host, FEIGN_ERR_ARGUMENT,
                      "there is no root to replay below: want --root DIR");
  auto r = std::unique_ptr<Replayer>(new (std::nothrow) Replayer);
  if (!r) return host->fail(host, FEIGN_ERR_NOMEM, "out of memory");
  r->host = host;
  r->root = run->root_fd;
  // The kernel moves at most 0x7ffff000 bytes a call. Memory is only used where a call touches it.
  r->buffer_size =
      static_cast<size_t>(std::clamp<uint64_t>(run->max_length, size_t{64} << 10, 0x7ffff000));
  r->write_buffer = map_buffer(r->buffer_size);
  if (r->write_buffer == nullptr) return host->fail(host, FEIGN_ERR_NOMEM, "out of memory");
  // Not zeros: a storage system that compresses or deduplicates must not have it too easy.
  uint64_t x = 0x9E3779B97F4A7C15u;
  for (size_t i = 0; i + 8 <= std::min(r->buffer_size, size_t{1} << 20); i += 8) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    memcpy(r->write_buffer + i, &x, 8);
  }
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  *self = r.release();
  return FEIGN_OK;
}

feign_status open_stream(void* self, const feign_stream_info*, void** stream) noexcept {
  auto* r = static_cast<Replayer*>(self);
  auto c = std::unique_ptr<Context>(new (std::nothrow) Context);
  if (!c) return r->host->fail(r->host, FEIGN_ERR_NOMEM, "out of memory");
  c->r = r;
  c->read_buffer = map_buffer(r->buffer_size);
  if (c->read_buffer == nullptr) return r->host->fail(r->host, FEIGN_ERR_NOMEM, "out of memory");
  *stream = c.release();
  return FEIGN_OK;
}

feign_status execute(void* self, void* stream, const feign_activity* a,
                     feign_outcome* outcome) noexcept {
  auto& r = *static_cast<Replayer*>(self);
  auto& c = *static_cast<Context*>(stream);
  c.outcome = outcome;
  if (a->op >= std::size(kDoings) || kDoings[a->op].make == nullptr) {
    c.skip("not a call of layer posix");
    return FEIGN_OK;
  }
  const Doing& doing = kDoings[a->op];
  if (a->marks & (FEIGN_NOT_A_FILE | FEIGN_INHERITED)) {
    const feign_op_info* info = r.host->op_info(r.host, a->op);
    if (info->kind != FEIGN_KIND_PROCESS) {
      c.skip(a->marks & FEIGN_NOT_A_FILE ? "on a pipe, socket, terminal or the like"
                                         : "on a file that was opened before the trace began");
      return FEIGN_OK;
    }
  }
  int fd = -1;
  if (a->handle != 0) fd = r.descriptors.get(a->handle);
  if (doing.needs_descriptor && fd < 0) {
    outcome->result = -EBADF;
    return FEIGN_OK;
  }
  outcome->result = doing.make(c, *a, fd);
  return FEIGN_OK;
}

void close_stream(void*, void* stream) noexcept { delete static_cast<Context*>(stream); }
void destroy(void* self) noexcept { delete static_cast<Replayer*>(self); }

constexpr const char* kLayers[] = {"posix", nullptr};
constexpr feign_replayer kApi = {sizeof kApi, 1,       kLayers,      create,
                                 open_stream, execute, close_stream, destroy};
constexpr feign_component kComponent = {sizeof kComponent,
                                        FEIGN_REPLAYER,
                                        "posix",
                                        "Makes the recorded file system calls below the root.",
                                        &kApi,
                                        nullptr,
                                        0,
                                        sizeof(feign_option),
                                        sizeof(Options),
                                        0};
constexpr const feign_component* kComponents[] = {&kComponent, nullptr};

}  // namespace

extern "C" const feign_plugin feign_plugin_v1 = {
    sizeof(feign_plugin), FEIGN_ABI_MINOR, "posix", FEIGN_VERSION, "MIT", kComponents};
