// SPDX-License-Identifier: MIT
// Replayer posix: makes the calls of layer posix below a root.
//
// No path may lead out of the root. A call by path is made relative to its directory, which is
// opened with openat2(RESOLVE_IN_ROOT) and kept; the last component is then used without following
// a link, and only if it is one the whole path is resolved again in the root. So the usual call
// costs what it cost the application: one system call. Which call is made how comes from
// layers/posix.h.
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/content.h"
#include "base/jail.h"
#include "feign.h"
#include "layers/posix_ops.h"
#include "replayers/written.h"

namespace {

using feign::Effect;

int64_t checked(int64_t result) { return result < 0 ? -errno : result; }

// Memory for calls of up to `size` bytes. More than `unit` of it is the same memory over and over:
// a trace that reads 2 GiB at once does not make this process as large.
char* map_buffer(size_t size, size_t unit) {
  constexpr int kProtection = PROT_READ | PROT_WRITE;
  void* memory =
      mmap(nullptr, size, kProtection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  if (size <= unit) return static_cast<char*>(memory);
  const int fd = memfd_create("feign-buffer", MFD_CLOEXEC);
  bool good = fd >= 0 && ::ftruncate(fd, static_cast<off_t>(unit)) == 0;
  for (size_t at = 0; good && at < size; at += unit)
    good = mmap(static_cast<char*>(memory) + at, std::min(unit, size - at), kProtection,
                MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED;
  if (fd >= 0) ::close(fd);
  if (good) return static_cast<char*>(memory);
  munmap(memory, size);
  return nullptr;
}

// The real descriptors of handles. A handle has one, and a further one for each dup; all of them
// stand for the same open file, so any will do.
class Descriptors {
 public:
  Descriptors()
      : pages_(static_cast<std::atomic<Page*>*>(mmap(nullptr, kPages * sizeof(Page*),
                                                     PROT_READ | PROT_WRITE,
                                                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {}
  bool ok() const { return pages_ != MAP_FAILED; }
  ~Descriptors() {
    if (!ok()) return;
    for (uint32_t i = 0; i < page_count_.load(std::memory_order_relaxed); ++i)
      if (Page* p = pages_[i].load(std::memory_order_relaxed)) {
        for (auto& fd : p->fds)
          if (const int f = fd.load(std::memory_order_relaxed) - 1; f >= 0) ::close(f);
        delete p;
      }
    for (const auto& [handle, fd] : further_) ::close(fd);
    munmap(pages_, kPages * sizeof(Page*));
  }

  [[gnu::always_inline]] int get(uint32_t handle) const {
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
      uint32_t count = page_count_.load();
      while (count <= handle / kPage &&
             !page_count_.compare_exchange_weak(count, handle / kPage + 1)) {
      }
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
  std::atomic<Page*>* pages_;  // from the kernel: memory that is not used takes none
  std::atomic<uint32_t> page_count_{0};
  std::mutex mutex_;
  std::unordered_multimap<uint32_t, int> further_;
  std::atomic<size_t> further_count_{0};
};

// A path as the last component of an open directory, or why that cannot be.
struct Where {
  int dir;           // or -errno
  const char* name;  // null: no last component to go by ("/"), the whole path has to be resolved
};

// Which names threads have found to be no directories, so that making one of them is noticed: a
// Bloom filter that nothing is taken from. [any thread]
class Missing {
 public:
  void add(std::string_view path) {
    any_.store(true, std::memory_order_release);
    const size_t h = std::hash<std::string_view>{}(path);
    bits_[h / 64 % kWords].fetch_or(uint64_t{1} << h % 64, std::memory_order_acq_rel);
  }
  bool any() const { return any_.load(std::memory_order_acquire); }
  bool may_have(std::string_view path) const {
    const size_t h = std::hash<std::string_view>{}(path);
    return (bits_[h / 64 % kWords].load(std::memory_order_acquire) >> h % 64 & 1) != 0;
  }

 private:
  static constexpr size_t kWords = 1024;
  std::atomic<uint64_t> bits_[kWords]{};
  std::atomic<bool> any_{false};
};

// The directories that a thread has open, by the path strings that lie in them.
class Directories {
 public:
  ~Directories() {
    clear();
    --users_;
  }
  // `generation` grows when a directory's or link's name changes, `made` when there is a new one.
  Where find(const feign_host* host, int root, uint32_t path, uint64_t generation, uint64_t made,
             Missing& missing, const void* owner) {
    if (generation != generation_ || owner != owner_) {
      clear();
      generation_ = generation;
      owner_ = owner;
    }
    if (made != made_) {
      for (const uint32_t one : without_) places_[one] = {};
      without_.clear();
      missing_.clear();
      made_ = made;
    }
    if (path < places_.size()) {
      const Place& p = places_[path];
      if (p.name != nullptr) return {fds_[p.dir], p.name};
      if (p.error != 0) return {p.error, nullptr};
    }
    const char* text = host->text(host, path, nullptr);
    const char* slash = strrchr(text, '/');
    if (slash == nullptr) return {-ENOENT, nullptr};
    const char* name = slash + 1;
    if (*name == '\0' || strcmp(name, "..") == 0 || strcmp(name, ".") == 0) return {0, nullptr};
    const std::string above = slash == text ? "/" : std::string(text, slash);
    uint32_t dir;
    if (const auto at = by_path_.find(above); at != by_path_.end()) {
      dir = at->second;
    } else if (missing_.contains(above)) {
      return is_missing(path);
    } else {
      if (fds_.size() >= most_) clear();
      const int fd = feign::open_in_root(root, above.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
      if (fd == -ENOENT && missing_.size() < 10'000) {
        missing.add(above);
        missing_.insert(above);
        return is_missing(path);
      }
      if (fd < 0) return {fd, nullptr};
      dir = static_cast<uint32_t>(fds_.size());
      fds_.push_back(fd);
      by_path_.emplace(above, dir);
    }
    place(path) = {name, dir, 0};
    return {fds_[dir], name};
  }

 private:
  // All threads together keep some thousands open.
  static inline std::atomic<size_t> users_{0};
  const size_t most_ = std::clamp<size_t>(4096 / (users_.fetch_add(1) + 1), 64, 2048);
  struct Place {
    const char* name = nullptr;
    uint32_t dir = 0;
    int error = 0;  // there is no directory
  };
  Place& place(uint32_t path) {
    if (path >= places_.size()) places_.resize(std::max<size_t>(path + 1, path * size_t{3} / 2));
    return places_[path];
  }
  Where is_missing(uint32_t path) {
    place(path).error = -ENOENT;
    without_.push_back(path);
    return {-ENOENT, nullptr};
  }
  void clear() {
    for (const int fd : fds_) ::close(fd);
    fds_.clear();
    by_path_.clear();
    missing_.clear();
    without_.clear();
    places_.clear();
  }
  std::vector<int> fds_;
  std::unordered_map<std::string, uint32_t> by_path_;
  std::vector<Place> places_;                // by path string id
  std::unordered_set<std::string> missing_;  // directories that are not there
  std::vector<uint32_t> without_;            // paths of places_ that have none
  uint64_t generation_ = 0, made_ = 0;
  const void* owner_ = nullptr;
};

thread_local Directories t_directories;

// What mmap made of files, by the handles of the mappings.
struct Mapping {
  char* memory = nullptr;
  size_t length = 0;
  bool shared = false;
};
class Mappings {
 public:
  ~Mappings() {
    for (const auto& [handle, m] : all_) munmap(m.memory, m.length);
  }
  // False if there are so many that the process itself could run short of them
  // (vm.max_map_count).
  bool set(uint32_t handle, const Mapping& m) {
    const std::lock_guard lock(mutex_);
    return all_.size() < kMost && all_.emplace(handle, m).second;
  }
  Mapping get(uint32_t handle) {
    const std::lock_guard lock(mutex_);
    const auto at = all_.find(handle);
    return at != all_.end() ? at->second : Mapping{};
  }
  Mapping take(uint32_t handle) {
    const std::lock_guard lock(mutex_);
    const auto at = all_.find(handle);
    if (at == all_.end()) return {};
    const Mapping m = at->second;
    all_.erase(at);
    return m;
  }

 private:
  static constexpr size_t kMost = 20'000;
  std::mutex mutex_;
  std::unordered_map<uint32_t, Mapping> all_;
};

enum Touch : uint32_t { kTouchNone, kTouchRead, kTouchProtection };

struct Options {
  uint32_t touch;
  uint32_t verify;
  const char* content;
};

struct Replayer {
  const feign_host* host = nullptr;
  Options options{};
  int root = -1;
  size_t buffer_size = 0;
  char* write_buffer = nullptr;  // shared: only read from
  int nowhere = -1;              // /dev/null, for what went into a pipe or socket
  uint64_t max_bytes = UINT64_MAX;
  uint64_t tell = 0;               // a stream says what it wrote when it is this much
  std::atomic<uint64_t> bytes{0};  // written, less what the streams have not yet said
  Descriptors descriptors;
  Mappings mappings;
  feign::Written written;
  std::mutex open_mutex;                // opening what was open before the trace
  std::atomic<uint64_t> generation{1};  // of directories: grows when a name of one changed
  std::atomic<uint64_t> made{1};        // grows when one that was missing may be there
  Missing missing;
  std::mutex aio_mutex;
  std::map<std::pair<int64_t, uint64_t>, aio_context_t> aio;  // by process and recorded context

  ~Replayer() {
    for (const auto& [key, context] : aio) syscall(SYS_io_destroy, context);
    if (write_buffer != nullptr) munmap(write_buffer, buffer_size);
    if (nowhere >= 0) ::close(nowhere);
  }
};

// A stream, and how its calls are made.
struct Context {
  Replayer* r = nullptr;
  feign_outcome* outcome = nullptr;
  char* read_buffer = nullptr;
  char* fill_buffer = nullptr;  // of its own, if what is written depends on where
  char* out_buffer = nullptr;   // what to write from
  int64_t process = 0;
  uint64_t bytes = 0;  // written since the last that the replayer knows of
  std::vector<iovec> vectors;
  union {
    struct stat stat;
    struct statx statx;
    struct statfs statfs;
  } space;

  ~Context() {
    if (read_buffer != nullptr) munmap(read_buffer, r->buffer_size);
    if (fill_buffer != nullptr) munmap(fill_buffer, r->buffer_size);
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
    size_t at = 0;  // one after the other, as far as there is memory
    size_t left = fit(a.length);
    for (uint32_t i = 0; i < a.value_count && i < IOV_MAX; ++i) {
      const size_t length = std::min(left, fit(a.values[i]));
      left -= length;
      if (length > r->buffer_size - at) at = 0;
      vectors.push_back({memory + at, length});
      at += length;
    }
    if (vectors.empty()) vectors.push_back({memory, fit(a.length)});
    return vectors.data();
  }
  int iov_count(const feign_activity& a) {
    return a.value_count == 0 ? 1 : static_cast<int>(std::min<uint32_t>(a.value_count, IOV_MAX));
  }
  static uint64_t value(const feign_activity& a, uint32_t i) {
    return i < a.value_count ? a.values[i] : 0;
  }
  off_t offset2(const feign_activity& a) {
    return a.mode != 0 ? off_t{-1} : static_cast<off_t>(a.offset);
  }

  Where where(uint32_t path) {
    return t_directories.find(r->host, r->root, path, r->generation.load(std::memory_order_acquire),
                              r->made.load(std::memory_order_acquire), r->missing, r);
  }
  const char* text(uint32_t path) { return r->host->text(r->host, path, nullptr); }
  // The file behind a path, every link followed within the root, as an O_PATH descriptor or -errno.
  int target(uint32_t path, uint64_t flags = O_PATH) {
    return feign::open_in_root(r->root, text(path), flags | O_CLOEXEC, 0);
  }
  void names_changed() {
    r->generation.fetch_add(1, std::memory_order_acq_rel);
    made();
  }
  void made() { r->made.fetch_add(1, std::memory_order_acq_rel); }
  // A call made this name, if it went well. (By a new link, other names are there, too.)
  int64_t made(uint32_t path, int64_t result) {
    if (result >= 0 && r->missing.any() && r->missing.may_have(text(path))) made();
    return result;
  }

  int64_t open(const feign_activity& a) {
    if (a.path == 0) return skip("no path was recorded");
    // The kernel looks at flags that exclude each other before it looks at the path.
    if (a.result == -EINVAL && (a.flags & O_CREAT) && (a.flags & O_DIRECTORY))
      return emulated(a.result);
    const uint64_t mode = a.mode & 01777;
    // Without waiting: whatever lies there, a FIFO that nobody writes to must not stop the replay.
    const int flags = static_cast<int>(a.flags) | O_CLOEXEC | O_NOCTTY |
                      ((a.flags & O_PATH) != 0 ? 0 : O_NONBLOCK);
    const uint64_t resolve =
        a.value_count != 0 ? a.values[0] & (RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV) : 0;
    int fd;
    const bool whole = ((flags & O_PATH) && !(flags & O_NOFOLLOW)) || resolve != 0;
    const Where w = whole ? Where{0, nullptr} : where(a.path);
    if (w.dir < 0) return w.dir;
    if (w.name != nullptr) {
      fd = ::openat(w.dir, w.name, flags | O_NOFOLLOW, static_cast<mode_t>(mode));
      if (fd < 0) fd = -errno;
      const bool link = fd == -ELOOP || ((flags & O_DIRECTORY) && fd == -ENOTDIR);
      if (link && !(a.flags & O_NOFOLLOW))
        fd = feign::open_in_root(r->root, text(a.path), static_cast<uint64_t>(flags), mode);
    } else {
      fd = feign::open_in_root(r->root, text(a.path), static_cast<uint64_t>(flags), mode, resolve);
    }
    if (fd < 0) return fd;
    if (a.flags & O_CREAT) (void)made(a.path, fd);
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
    if (a.result < 0) return emulated(a.result);  // about the recorded numbers, which are not ours
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
      case F_SETLK:
      case F_SETLKW:
      case F_OFD_SETLK:
      case F_OFD_SETLKW:
        return lock(a, fd, F_OFD_SETLK);
      case F_GETLK:
      case F_OFD_GETLK:
        return lock(a, fd, F_OFD_GETLK);
      case F_GETOWN:
      case F_GETSIG:
      case F_GETLEASE:
      case F_GETPIPE_SZ:
      case F_SETPIPE_SZ:
      case F_GET_SEALS:
      case F_ADD_SEALS:
        return checked(::fcntl(fd, static_cast<int>(a.flags), static_cast<int>(argument)));
      case F_GET_RW_HINT:
      case F_SET_RW_HINT:
      case F_GET_FILE_RW_HINT:
      case F_SET_FILE_RW_HINT: {
        uint64_t hint = argument;
        const bool sets = a.flags == F_SET_RW_HINT || a.flags == F_SET_FILE_RW_HINT;
        if (sets && hint > RWH_WRITE_LIFE_EXTREME) return skip("the hint was not recorded");
        return checked(::fcntl(fd, static_cast<int>(a.flags), &hint));
      }
      case F_SETOWN:
      case F_SETSIG:
        return emulated(a.result);  // signals would come to the replay
      case F_SETLEASE:
      case F_NOTIFY:
        return skip("leases and notifications would stop other streams");
      default:
        return skip("this fcntl command is not replayed");
    }
  }

  // All recorded processes are one here, and a process has no conflict with itself; so that locks
  // belong to open files instead (fcntl(2), open file description locks). Never waits: who has it
  // may be a stream that waits for this one.
  int64_t lock(const feign_activity& a, int fd, int command) {
    struct flock l {};
    const auto value = [&](uint32_t i) { return i < a.value_count ? a.values[i] : 0; };
    l.l_type = static_cast<short>(value(1));
    l.l_whence = static_cast<short>(value(2));
    l.l_start = static_cast<off_t>(value(3));
    l.l_len = static_cast<off_t>(value(4));
    const int64_t result = checked(::fcntl(fd, command, &l));
    const bool waited = a.flags == F_SETLKW || a.flags == F_OFD_SETLKW;
    if (waited && (result == -EAGAIN || result == -EACCES) && a.result == 0) return emulated(0);
    return result == -EAGAIN && a.result == -EACCES ? -EACCES : result;
  }

  int64_t stat(const feign_activity& a, int fd) {
    if (a.path == 0 || a.handle != 0) {
      if (fd < 0) return -EBADF;
      return checked(::fstat(fd, &space.stat));
    }
    const Where w = where(a.path);
    if (w.dir < 0) return w.dir;
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
    if (w.dir < 0) return w.dir;
    if (w.name != nullptr) {
      if (::statx(w.dir, w.name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, kMask, &space.statx) != 0)
        return -errno;
      if (!S_ISLNK(space.statx.stx_mode) || (a.marks & FEIGN_NOFOLLOW)) return 0;
    }
    return at_target(a.path,
                     [&](int at) { return ::statx(at, "", AT_EMPTY_PATH, kMask, &space.statx); });
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
    if (w.dir < 0) return w.dir;
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
    if (w.dir < 0) return w.dir;
    if (w.name == nullptr) return -EINVAL;
    char link[PATH_MAX];
    return checked(::readlinkat(w.dir, w.name, link, std::min<size_t>(a.length, sizeof link)));
  }

  int64_t unlink(const feign_activity& a, int flags) {
    const Where w = where(a.path);
    if (w.dir < 0) return w.dir;
    if (w.name == nullptr) return flags & AT_REMOVEDIR ? -EBUSY : -EISDIR;
    const int64_t result = checked(::unlinkat(w.dir, w.name, flags & AT_REMOVEDIR));
    if (result == 0 && ((flags & AT_REMOVEDIR) || (a.marks & (FEIGN_SYMLINK | FEIGN_DIRECTORY))))
      names_changed();
    return result;
  }

  int64_t rename(const feign_activity& a) {
    if (a.path == 0 || a.path2 == 0) return skip("no path was recorded");
    // Once more at the end: finding the second may have emptied a full cache.
    Where from = where(a.path);
    if (from.dir < 0 || from.name == nullptr) return from.dir < 0 ? from.dir : -EBUSY;
    const Where to = where(a.path2);
    if (to.dir < 0 || to.name == nullptr) return to.dir < 0 ? to.dir : -EBUSY;
    from = where(a.path);
    if (from.dir < 0) return from.dir;
    const int64_t result = checked(::renameat2(from.dir, from.name, to.dir, to.name, a.flags & 7));
    if (result == 0 && (a.marks & (FEIGN_DIRECTORY | FEIGN_SYMLINK))) names_changed();
    return made(a.path2, result);
  }

  int64_t mkdir(const feign_activity& a) {
    const Where w = where(a.path);
    if (w.dir < 0) return w.dir;
    if (w.name == nullptr) return -EEXIST;
    return made(a.path, checked(::mkdirat(w.dir, w.name, a.mode & 01777)));
  }

  int64_t link(const feign_activity& a) {
    if (a.handle != 0 && a.path2 != 0) {  // by descriptor
      const int fd = descriptor(a.handle);
      if (fd < 0) return -EBADF;
      const Where to = where(a.path2);
      if (to.dir < 0 || to.name == nullptr) return to.dir < 0 ? to.dir : -EEXIST;
      return checked(::linkat(AT_FDCWD, by_descriptor(fd), to.dir, to.name, AT_SYMLINK_FOLLOW));
    }
    if (a.path == 0 || a.path2 == 0) return skip("no path was recorded");
    const Where to = where(a.path2);
    if (to.dir < 0 || to.name == nullptr) {
      // The kernel looks for the file first: if that is missing, too, it says so.
      const int file = (a.flags & AT_SYMLINK_FOLLOW) ? target(a.path) : no_follow(a.path);
      if (file < 0) return file;
      ::close(file);
      return to.dir < 0 ? to.dir : -EEXIST;
    }
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
    if (w.dir < 0) return w.dir;
    if (w.name == nullptr) return -EEXIST;
    const int64_t result = checked(::symlinkat(text(a.path2), w.dir, w.name));
    if (result == 0) made();
    return result;
  }

  // An O_PATH descriptor as a path, for calls that take no descriptor of that kind. This magic link
  // is ours, not the trace's.
  const char* by_descriptor(int fd) {
    static thread_local char path[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return path;
  }

  // fchmodat2(2), of Linux 6.6; -ENOSYS before, and where a sandbox refuses what it does not know.
  static int64_t fchmodat2(int dir, const char* name, uint32_t mode, int flags) {
    constexpr long kCall = 452;  // on every architecture
    static const bool there = syscall(kCall, -1, "", 0, AT_EMPTY_PATH) != 0 && errno == EBADF;
    if (!there) return -ENOSYS;
    return checked(syscall(kCall, dir, name, mode & 01777, flags));
  }

  // A symbolic link itself, or another file without following one, as an O_PATH descriptor.
  int no_follow(uint32_t path) {
    const Where w = where(path);
    if (w.dir < 0 || w.name == nullptr) return w.dir < 0 ? w.dir : target(path);
    const int at = ::openat(w.dir, w.name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    return at < 0 ? -errno : at;
  }
  // The file that a call by path means, by its flags, as an O_PATH descriptor.
  template <typename Call>
  int64_t at_file(const feign_activity& a, Call&& call) {
    if (a.path == 0) return skip("no path was recorded");
    const int at = (a.marks & FEIGN_NOFOLLOW) ? no_follow(a.path) : target(a.path);
    if (at < 0) return at;
    const int64_t result = checked(call(at));
    ::close(at);
    return result;
  }

  int64_t chmod(const feign_activity& a) {
    if (a.handle != 0) {
      const int fd = descriptor(a.handle);
      if (fd < 0) return -EBADF;
      // By way of /proc only where it must be: what the trace opened with O_PATH, before Linux 6.6.
      const int64_t result = fchmodat2(fd, "", a.mode, AT_EMPTY_PATH);
      if (result != -ENOSYS) return result;
      const int64_t plain = checked(::fchmod(fd, a.mode & 01777));
      return plain != -EBADF ? plain : checked(::chmod(by_descriptor(fd), a.mode & 01777));
    }
    if (a.path != 0 && !(a.marks & FEIGN_NOFOLLOW)) {
      if (const Where w = where(a.path); w.dir >= 0 && w.name != nullptr) {
        const int64_t result = fchmodat2(w.dir, w.name, a.mode, AT_SYMLINK_NOFOLLOW);
        if (result != -ENOSYS && result != -EOPNOTSUPP) return result;  // EOPNOTSUPP: a link
      }
    }
    return at_file(a, [&](int at) { return ::chmod(by_descriptor(at), a.mode & 01777); });
  }
  // No unprivileged user can, and no harm is done without.
  int64_t chown(const feign_activity& a, int fd) {
    const auto owner = static_cast<uid_t>(value(a, 0));
    const auto group = static_cast<gid_t>(value(a, 1));
    const int64_t result =
        a.handle != 0
            ? (fd < 0 ? -EBADF : checked(::fchownat(fd, "", owner, group, AT_EMPTY_PATH)))
            : at_file(a, [&](int at) { return ::fchownat(at, "", owner, group, AT_EMPTY_PATH); });
    if (result == -EPERM && a.result == 0) return skip("not permitted to the user who replays");
    return result;
  }
  int64_t mknod(const feign_activity& a) {
    const mode_t type = a.mode & S_IFMT;
    if (type == S_IFCHR || type == S_IFBLK) return skip("devices are never made");
    const Where w = where(a.path);
    if (w.dir < 0) return w.dir;
    if (w.name == nullptr) return -EEXIST;
    return made(a.path, checked(::mknodat(w.dir, w.name, type | (a.mode & 01777), 0)));
  }
  int64_t bind(const feign_activity& a) {
    const int64_t result = mknod(a);
    return result == -EEXIST ? -EADDRINUSE : result;
  }
  // Of the file system that the root is on. Others are none of our business.
  int64_t sync() {
    const int at = ::openat(r->root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (at < 0) return -errno;
    const int64_t result = checked(::syncfs(at));
    ::close(at);
    return result;
  }

  // Extended attributes. Only those of users are set: security.capability is as good as a setuid
  // bit.
  template <typename Call>
  int64_t attribute(const feign_activity& a, int fd, Call&& call) {
    const size_t size = std::min<uint64_t>(a.length, std::min<size_t>(r->buffer_size, 65536));
    if (a.handle != 0) return fd < 0 ? -EBADF : checked(call(by_descriptor(fd), size));
    return at_file(a, [&](int at) { return call(by_descriptor(at), size); });
  }
  int64_t get_attribute(const feign_activity& a, int fd) {
    if (a.path2 == 0) return skip("the attribute's name was not recorded");
    return attribute(a, fd, [&](const char* path, size_t size) {
      return ::getxattr(path, text(a.path2), read_buffer, size);
    });
  }
  int64_t list_attributes(const feign_activity& a, int fd) {
    return attribute(
        a, fd, [&](const char* path, size_t size) { return ::listxattr(path, read_buffer, size); });
  }
  int64_t set_attribute(const feign_activity& a, int fd) {
    if (!of_user(a)) return skip("only user attributes are changed");
    return attribute(a, fd, [&](const char* path, size_t size) {
      return ::setxattr(path, text(a.path2), r->write_buffer, size, static_cast<int>(a.flags));
    });
  }
  int64_t remove_attribute(const feign_activity& a, int fd) {
    if (!of_user(a)) return skip("only user attributes are changed");
    return attribute(a, fd,
                     [&](const char* path, size_t) { return ::removexattr(path, text(a.path2)); });
  }
  bool of_user(const feign_activity& a) { return strncmp(text(a.path2), "user.", 5) == 0; }

  // sendfile with splice's arguments.
  static ssize_t send(int from, off64_t* at, int to, off64_t*, size_t length, unsigned) {
    return ::sendfile(to, from, at, length);
  }
  // Bytes from one open file to another. Where one end was a pipe or a socket, the other is what
  // storage had to do with.
  int64_t copy(const feign_activity& a, int fd, int fd2,
               ssize_t (*call)(int, off64_t*, int, off64_t*, size_t, unsigned)) {
    if ((a.handle != 0 && fd < 0) || (a.handle2 != 0 && fd2 < 0)) return -EBADF;
    if ((fd < 0 && fd2 < 0) || a.result == -EBADF) return -EBADF;
    const size_t length = std::min<uint64_t>(a.length, 0x7ffff000);
    off64_t in = static_cast<off64_t>(value(a, 0)), out = static_cast<off64_t>(value(a, 1));
    off64_t* const at_in = a.value_count > 0 && a.values[0] != FEIGN_NO_OFFSET ? &in : nullptr;
    off64_t* const at_out = a.value_count > 1 && a.values[1] != FEIGN_NO_OFFSET ? &out : nullptr;
    if (fd >= 0 && fd2 >= 0) return checked(call(fd, at_in, fd2, at_out, length, a.flags));
    // A pipe or socket takes as much as it has room for.
    const size_t moved = a.result > 0 ? static_cast<size_t>(a.result) : length;
    if (fd >= 0) return checked(::sendfile(r->nowhere, fd, at_in, moved));
    return checked(at_out != nullptr ? ::pwrite(fd2, r->write_buffer, fit(moved), out)
                                     : ::write(fd2, r->write_buffer, fit(moved)));
  }

  int64_t clone(const feign_activity& a, int fd) {
    const int from = descriptor(a.handle2);
    return from < 0 ? -EBADF : checked(::ioctl(fd, FICLONE, from));
  }

  // ---- files in memory --------------------------------------------------------------------------

  int64_t map(const feign_activity& a, int fd) {
    if (fd < 0) return -EBADF;
    const auto protection = static_cast<int>(value(a, 0)) & (PROT_READ | PROT_WRITE);
    const bool shared = (a.flags & MAP_SHARED) != 0;
    const int flags = static_cast<int>(a.flags & (MAP_TYPE | MAP_NONBLOCK)) | MAP_NORESERVE;
    void* memory = ::mmap(nullptr, a.length, protection, flags, fd, static_cast<off_t>(a.offset));
    if (memory == MAP_FAILED) return -errno;
    // Never by hand: what lies behind the end of the file cannot be touched (SIGBUS).
    const Touch touch = r->options.touch == kTouchNone && (a.flags & MAP_POPULATE)
                            ? kTouchRead
                            : static_cast<Touch>(r->options.touch);
    if (touch != kTouchNone && protection != 0) {
      const bool write = touch == kTouchProtection && shared && (protection & PROT_WRITE);
      (void)::madvise(memory, a.length, write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
    }
    if (a.handle2 == 0 ||
        !r->mappings.set(a.handle2, {static_cast<char*>(memory), a.length, shared}))
      ::munmap(memory, a.length);
    return static_cast<int64_t>(reinterpret_cast<uintptr_t>(memory));
  }
  int64_t unmap(const feign_activity& a) {
    if (a.value_count == 0) return emulated(a.result);  // a part of it, or others still have it
    int64_t result = 0;
    for (uint32_t i = 0; i < a.value_count; ++i)
      if (const Mapping m = r->mappings.take(static_cast<uint32_t>(a.values[i]));
          m.memory != nullptr)
        result = checked(::munmap(m.memory, m.length));
    return result;
  }
  int64_t remap(const feign_activity& a) {
    const Mapping m = r->mappings.get(a.handle);
    if (m.memory == nullptr || a.offset != 0 || value(a, 0) != m.length || a.result < 0)
      return emulated(a.result);
    void* memory = ::mremap(m.memory, m.length, a.length, MREMAP_MAYMOVE);
    if (memory == MAP_FAILED) return -errno;
    (void)r->mappings.take(a.handle);
    (void)r->mappings.set(a.handle, {static_cast<char*>(memory), a.length, m.shared});
    return static_cast<int64_t>(reinterpret_cast<uintptr_t>(memory));
  }
  int64_t mapped(const feign_activity& a, int (*call)(void*, size_t, int)) {
    const Mapping m = r->mappings.get(a.handle);
    if (m.memory == nullptr || a.offset >= m.length || a.offset % 4096 != 0)
      return emulated(a.result);
    const size_t length = std::min<uint64_t>(a.length, m.length - a.offset);
    return checked(call(m.memory + a.offset, length, static_cast<int>(a.flags)));
  }
  int64_t msync(const feign_activity& a) { return mapped(a, ::msync); }
  int64_t madvise(const feign_activity& a) {
    switch (a.flags) {
      case MADV_NORMAL:
      case MADV_RANDOM:
      case MADV_SEQUENTIAL:
      case MADV_WILLNEED:
      case MADV_DONTNEED:
      case MADV_REMOVE:
      case MADV_COLD:
      case MADV_PAGEOUT:
      case MADV_POPULATE_READ:
        return mapped(a, ::madvise);
      default:
        return emulated(a.result);  // about the process's memory, not the file
    }
  }

  // ---- asynchronous requests (io_submit(2)) -----------------------------------------------------

  aio_context_t aio_context(const feign_activity& a, unsigned events) {
    const std::lock_guard lock(r->aio_mutex);
    aio_context_t& context = r->aio[{process, value(a, 0)}];
    if (context == 0 && syscall(SYS_io_setup, events, &context) != 0) context = 0;
    return context;
  }
  int64_t aio_setup(const feign_activity& a) {
    if (a.result < 0) return emulated(a.result);
    errno = 0;
    return aio_context(a, 1024) != 0 ? 0 : -errno;
  }
  int64_t aio_submit(const feign_activity& a, int fd) {
    iocb request{};
    const bool writes = a.flags == IOCB_CMD_PWRITE || a.flags == IOCB_CMD_PWRITEV;
    const bool reads = a.flags == IOCB_CMD_PREAD || a.flags == IOCB_CMD_PREADV;
    if (!writes && !reads && a.flags != IOCB_CMD_FSYNC && a.flags != IOCB_CMD_FDSYNC)
      return skip("this kind of request is not replayed");
    const aio_context_t context = aio_context(a, 1024);
    if (context == 0) return -EAGAIN;
    request.aio_lio_opcode = static_cast<uint16_t>(a.flags);
    if (reads) request.aio_lio_opcode = IOCB_CMD_PREAD;
    if (writes) request.aio_lio_opcode = IOCB_CMD_PWRITE;
    request.aio_fildes = static_cast<uint32_t>(fd);
    if (reads || writes) {
      request.aio_buf = reinterpret_cast<uintptr_t>(reads ? read_buffer : r->write_buffer);
      request.aio_nbytes = fit(a.length);
      request.aio_offset = static_cast<int64_t>(a.offset);
    }
    iocb* requests = &request;
    return checked(syscall(SYS_io_submit, context, 1L, &requests));
  }
  // Waits for as many as came then, though not for ever: what was to come may have failed.
  int64_t aio_wait(const feign_activity& a) {
    if (a.result <= 0) return emulated(a.result);
    const aio_context_t context = aio_context(a, 1024);
    io_event events[64];
    timespec limit{10, 0};
    int64_t done = 0;
    while (done < a.result) {
      const long want = std::min<int64_t>(a.result - done, std::size(events));
      const long got = syscall(SYS_io_getevents, context, want, want, events, &limit);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return got < 0 ? -errno : done;
      for (long i = 0; i < got; ++i)
        if (events[i].res < 0) return events[i].res;
      done += got;
    }
    return done;
  }
  int64_t aio_destroy(const feign_activity& a) {
    const std::lock_guard lock(r->aio_mutex);
    const auto at = r->aio.find({process, value(a, 0)});
    if (at == r->aio.end()) return emulated(a.result);
    const int64_t result = checked(syscall(SYS_io_destroy, at->second));
    r->aio.erase(at);
    return result;
  }

  // A file that was open before the trace began, known by its name: opened when it is first used.
  int inherited(const feign_activity& a) {
    const std::lock_guard lock(r->open_mutex);
    int fd = r->descriptors.get(a.handle);
    if (fd >= 0) return fd;
    for (const int flags : {O_RDWR, O_RDONLY, O_WRONLY}) {
      fd = target(a.path, static_cast<uint64_t>(flags | O_NOCTTY | O_NONBLOCK));
      if (fd >= 0) break;
    }
    if (fd < 0) return fd;
    if (r->descriptors.set(a.handle, fd)) return fd;
    ::close(fd);
    return -EMFILE;
  }

  int64_t truncate(const feign_activity& a) {
    if (a.path == 0) return skip("no path was recorded");
    const int at = target(a.path, O_WRONLY | O_NOCTTY | O_NONBLOCK);
    if (at < 0) return at;
    const int64_t result = checked(::ftruncate(at, static_cast<off_t>(a.length)));
    ::close(at);
    return result;
  }
  int64_t utimens(const feign_activity& a, int fd) {
    timespec times[2];
    for (uint32_t i = 0; i < 2 && a.value_count >= 4; ++i)
      times[i] = {static_cast<time_t>(a.values[2 * i]), static_cast<long>(a.values[2 * i + 1])};
    const timespec* const given = a.value_count >= 4 ? times : nullptr;
    if (a.handle != 0) {
      if (fd < 0) return -EBADF;
      const int64_t result = checked(::futimens(fd, given));
      return result != -EBADF ? result
                              : checked(::utimensat(AT_FDCWD, by_descriptor(fd), given, 0));
    }
    if (a.marks & FEIGN_NOFOLLOW) {
      const Where w = where(a.path);
      if (w.dir < 0) return w.dir;
      if (w.name != nullptr) return checked(::utimensat(w.dir, w.name, given, AT_SYMLINK_NOFOLLOW));
    }
    return at_file(a, [&](int at) { return ::utimensat(AT_FDCWD, by_descriptor(at), given, 0); });
  }
  int64_t statfs(const feign_activity& a) {
    if (a.path == 0) return skip("no path was recorded");
    return at_target(a.path, [&](int at) { return ::fstatfs(at, &space.statfs); });
  }
  int64_t getdents(const feign_activity& a, int fd) {
    return checked(syscall(SYS_getdents64, fd, read_buffer, fit(a.length)));
  }
  int64_t fallocate(const feign_activity& a, int fd) {
    if (a.result == -EINVAL) return emulated(a.result);  // mostly about a size that is not known
    return checked(::fallocate(fd, static_cast<int>(a.flags), static_cast<off_t>(a.offset),
                               static_cast<off_t>(a.length)));
  }
  int64_t fadvise(const feign_activity& a, int fd) {
    return -::posix_fadvise(fd, static_cast<off_t>(a.offset), static_cast<off_t>(a.length),
                            static_cast<int>(a.flags));
  }
  // Never waits: who has the lock may be a stream that waits for this one.
  int64_t flock(const feign_activity& a, int fd) {
    const int64_t result = checked(::flock(fd, static_cast<int>(a.flags) | LOCK_NB));
    if (result == -EAGAIN && a.result == 0 && !(a.flags & LOCK_NB)) return emulated(0);
    return result;
  }

  // Process structure is the streams' here; what it closed is closed, what it unmapped is gone.
  int64_t ends(const feign_activity& a) {
    for (uint32_t i = 0; i < a.value_count; ++i) {
      const auto handle = static_cast<uint32_t>(a.values[i]);
      give_up(handle, true);
      if (const Mapping m = r->mappings.take(handle); m.memory != nullptr)
        ::munmap(m.memory, m.length);
    }
    return emulated(a.result);
  }
  int64_t nothing(const feign_activity& a) { return emulated(a.result); }
  int64_t chdir(const feign_activity& a) { return emulated(a.result); }
};

// How to do one op.
struct Doing {
  int64_t (*make)(Context& c, const feign_activity& a, int fd) = nullptr;
  feign_kind kind = FEIGN_KIND_OTHER;
  Effect effect = Effect::kUse;
  bool needs_descriptor = false;

  bool grows() const { return kind == FEIGN_KIND_WRITE || effect == Effect::kFallocate; }
};

// Memory behind a buffer; longer ones are the same over and over.
constexpr size_t kWriteMemory = size_t{1} << 22, kReadMemory = size_t{1} << 24;

#include "layers/posix_replay.inc"

feign_status create(const feign_host* host, const void* options, void** self) noexcept {
  const auto* run = static_cast<const feign_run*>(host->extension(host, "feign.run/1"));
  if (run == nullptr || run->root_fd < 0)
    return host->fail(host, FEIGN_ERR_ARGUMENT,
                      "there is no root to replay below: want --root DIR");
  auto r = std::unique_ptr<Replayer>(new (std::nothrow) Replayer);
  if (!r || !r->descriptors.ok()) return host->fail(host, FEIGN_ERR_NOMEM, "out of memory");
  r->host = host;
  r->options = *static_cast<const Options*>(options);
  const bool own = r->options.content[0] != '\0';
  auto content = feign::Content::parse(own ? r->options.content : run->content);
  // There is no writing of holes.
  if (!own && content && content->kind == feign::Content::kSparse)
    content->kind = feign::Content::kRandom;
  if (!content)
    return host->fail(
        host, FEIGN_ERR_ARGUMENT,
        (std::string("content=") + r->options.content + ": want " + feign::Content::kForms)
            .c_str());
  r->root = run->root_fd;
  r->max_bytes = run->max_bytes != 0 ? run->max_bytes : UINT64_MAX;
  r->tell = std::min<uint64_t>(uint64_t{1} << 20, r->max_bytes / 64);
  r->nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  // The kernel moves at most 0x7ffff000 bytes a call. Memory is only used where a call touches it.
  r->buffer_size =
      static_cast<size_t>(std::clamp<uint64_t>(run->max_length, size_t{64} << 10, 0x7ffff000));
  r->write_buffer = map_buffer(r->buffer_size, kWriteMemory);
  if (r->write_buffer == nullptr) return host->fail(host, FEIGN_ERR_NOMEM, "out of memory");
  // Not zeros: a storage system that compresses or deduplicates must not have it too easy.
  if (content->kind == feign::Content::kRandom)
    content->fill(r->write_buffer, std::min(r->buffer_size, kWriteMemory), 1);
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  // The kernel's table of descriptors grows now: once there are threads, that takes milliseconds.
  const int far = static_cast<int>(std::min<rlim_t>(limit.rlim_cur, 16384)) - 1;
  if (const int copy = ::fcntl(r->root, F_DUPFD_CLOEXEC, far); copy >= 0) ::close(copy);
  *self = r.release();
  return FEIGN_OK;
}

feign_status open_stream(void* self, const feign_stream_info* info, void** stream) noexcept {
  auto* r = static_cast<Replayer*>(self);
  auto c = std::unique_ptr<Context>(new (std::nothrow) Context);
  if (!c) return r->host->fail(r->host, FEIGN_ERR_NOMEM, "out of memory");
  c->r = r;
  if (info != nullptr) c->process = info->process;
  c->read_buffer = map_buffer(r->buffer_size, r->options.verify ? SIZE_MAX : kReadMemory);
  c->out_buffer = r->write_buffer;
  if (r->options.verify) c->out_buffer = c->fill_buffer = map_buffer(r->buffer_size, SIZE_MAX);
  if (c->read_buffer == nullptr || c->out_buffer == nullptr)
    return r->host->fail(r->host, FEIGN_ERR_NOMEM, "out of memory");
  *stream = c.release();
  return FEIGN_OK;
}

// With verify: what is written depends on file and position, and what is read is compared.
int64_t verified(Context& c, const feign_activity& a, int fd, const Doing& doing) {
  feign::Written& written = c.r->written;
  const bool known = a.file != 0 && !(a.marks & FEIGN_INHERITED);
  const bool from_buffer = doing.kind == FEIGN_KIND_WRITE && doing.effect != Effect::kCopy;
  if (known && from_buffer) feign::Written::fill(c.fill_buffer, a.file, a.offset, c.fit(a.length));
  const int64_t result = doing.make(c, a, fd);
  if (result < 0) return result;
  const auto moved = static_cast<uint64_t>(result);
  switch (doing.effect) {
    case Effect::kCopy:
      if (a.value_count > 3)
        written.forget(static_cast<uint32_t>(a.values[2]), a.values[3], a.values[3] + moved);
      return result;
    case Effect::kAio:
      if (a.flags == IOCB_CMD_PWRITE || a.flags == IOCB_CMD_PWRITEV)
        written.forget(a.file, a.offset, a.offset + a.length);
      return result;
    case Effect::kFallocate: {
      constexpr uint32_t kMoves = FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_INSERT_RANGE;
      if (a.flags & ~uint32_t{FALLOC_FL_KEEP_SIZE})
        written.forget(a.file, a.offset, a.flags & kMoves ? UINT64_MAX : a.offset + a.length);
      return result;
    }
    default:
      break;
  }
  if (doing.kind == FEIGN_KIND_OPEN && (a.flags & O_TRUNC)) written.forget(a.file, 0, UINT64_MAX);
  if (doing.kind == FEIGN_KIND_SIZE) written.forget(a.file, a.length, UINT64_MAX);
  if (!known) return result;
  if (from_buffer) written.add(a.file, a.offset, moved);
  if (doing.kind == FEIGN_KIND_READ && !written.same(a.file, a.offset, c.read_buffer, moved))
    return -EBADMSG;
  return result;
}

// Failed for a reason that lies in the process or the machine of then, not in the files: made again
// it would succeed, and change what did not change.
bool by_circumstance(int64_t result) {
  switch (-result) {
    case EFAULT:
    case EINTR:
    case EIO:
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
      return true;
    default:
      return -result >= 512;  // ERESTARTSYS and its like
  }
}

// Why a call is not made that has to do with no file below the root.
const char* why_not(const feign_activity& a) {
  if (!(a.marks & FEIGN_NOT_A_FILE))
    return "on a file that was open before the trace began, which the trace does not name";
  if (a.marks & FEIGN_NO_STORAGE) return "on /dev, /proc or /sys: no storage";
  if (a.path == 0 && a.handle == 0 && a.handle2 == 0 && a.value_count == 0)
    return "no path was recorded, or its form alone made the call fail";
  return "on a pipe, socket, terminal or the like";
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
  int fd = -1;
  if (a->handle != 0) fd = r.descriptors.get(a->handle);
  if (a->marks & (FEIGN_NOT_A_FILE | FEIGN_INHERITED)) {
    const bool process = doing.kind == FEIGN_KIND_PROCESS;
    if (!process && ((a->marks & FEIGN_NOT_A_FILE) || a->path == 0)) {
      c.skip(why_not(*a));
      return FEIGN_OK;
    }
    if (!process && fd < 0 && a->handle != 0 && !(a->marks & FEIGN_NOT_A_FILE)) {
      fd = c.inherited(*a);
      if (fd < 0) {
        outcome->result = fd;
        return FEIGN_OK;
      }
    }
  }
  if (doing.needs_descriptor && fd < 0) {
    outcome->result = -EBADF;
    return FEIGN_OK;
  }
  if (doing.grows() && r.bytes.load(std::memory_order_relaxed) + c.bytes >= r.max_bytes) {
    outcome->result = -EDQUOT;
    outcome->why = "as many bytes are written as --max-bytes allows";
    return FEIGN_OK;
  }
  if (a->result < 0 &&
      (by_circumstance(a->result) || (a->result == -EBADF && a->path == 0 && a->handle == 0))) {
    outcome->result = c.emulated(a->result);
    return FEIGN_OK;
  }
  const bool writes = doing.effect == Effect::kWrite || doing.effect == Effect::kPwrite ||
                      doing.effect == Effect::kPwrite2;
  if (writes && a->result >= 0 && a->result < static_cast<int64_t>(a->length)) {
    // A write that was cut short: as much as was written, or the rest would come twice.
    feign_activity less = *a;
    less.length = static_cast<uint64_t>(a->result);
    outcome->result = r.options.verify ? verified(c, less, fd, doing) : doing.make(c, less, fd);
    return FEIGN_OK;
  }
  outcome->result = r.options.verify ? verified(c, *a, fd, doing) : doing.make(c, *a, fd);
  if (doing.grows() && outcome->result >= 0) {
    // Told to the others now and then: a limit need not be kept to the byte.
    const bool allocates = doing.effect == Effect::kFallocate && !(a->flags & FALLOC_FL_PUNCH_HOLE);
    c.bytes += allocates ? a->length : static_cast<uint64_t>(outcome->result);
    if (c.bytes >= r.tell) r.bytes.fetch_add(std::exchange(c.bytes, 0), std::memory_order_relaxed);
  }
  return FEIGN_OK;
}

void close_stream(void*, void* stream) noexcept { delete static_cast<Context*>(stream); }
void destroy(void* self) noexcept { delete static_cast<Replayer*>(self); }

constexpr const char* kTouches[] = {"none", "read", "protection", nullptr};  // as enum Touch
constexpr feign_option kOptions[] = {
    {"touch", FEIGN_OPT_ENUM, offsetof(Options, touch), "none", kTouches, 0, 0,
     "Pages of mapped files, which no trace of system calls shows: none are touched, all are read, "
     "or all are read or written as the mapping's protection says."},
    {"content", FEIGN_OPT_TEXT, offsetof(Options, content), "", nullptr, 0, 0,
     "What is written: zeros, random or ratio=N (one part in N is random, to compress N:1). Else "
     "as "
     "prepared files are filled, and random where those are sparse."},
    {"verify", FEIGN_OPT_BOOL, offsetof(Options, verify), "no", nullptr, 0, 0,
     "Write bytes that depend on file and position, and compare them where they are read again; a "
     "read that gets others fails with EBADMSG."},
};
constexpr const char* kLayers[] = {"posix", nullptr};
constexpr feign_replayer kApi = {sizeof kApi, 1,       kLayers,      create,
                                 open_stream, execute, close_stream, destroy};
constexpr feign_component kComponent = {sizeof kComponent,
                                        FEIGN_REPLAYER,
                                        "posix",
                                        "Makes the recorded file system calls below the root.",
                                        &kApi,
                                        kOptions,
                                        std::size(kOptions),
                                        sizeof(feign_option),
                                        sizeof(Options),
                                        0};
constexpr const feign_component* kComponents[] = {&kComponent, nullptr};

}  // namespace

extern "C" const feign_plugin feign_plugin_v1 = {
    sizeof(feign_plugin), FEIGN_ABI_MINOR, "posix", FEIGN_VERSION, "MIT", kComponents};
