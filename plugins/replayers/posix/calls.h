// SPDX-License-Identifier: MIT
// How the calls of a stream are made below the root: by libc's own symbols, so that what interposes
// on them (a profiler, bench/stamp.c) sees a replay as it sees a program.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
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
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "base/jail.h"
#include "base/path.h"
#include "base/room.h"
#include "feign.h"
#include "replayers/posix/directories.h"
#include "replayers/posix/handles.h"
#include "replayers/posix/locks.h"
#include "replayers/posix/written.h"

namespace feign {

inline int64_t checked(int64_t result) { return result < 0 ? -errno : result; }

thread_local Directories t_directories;

enum Touch : uint32_t { kTouchSmall, kTouchNone, kTouchRead, kTouchProtection };
// The first access to a mapped file reads so much of it around that page, wherever it is.
constexpr uint64_t kReadAround = 128 << 10;

enum Lookup : uint32_t { kLookupAuto, kLookupNamed, kLookupNearest };

struct Options {
  uint32_t touch;
  uint32_t lookup;
  uint32_t verify;
  const char* content;
};

// What is mapped behind the buffers: data may lie as much as that past a page's beginning.
constexpr size_t kPage = 4096;

struct Context;

// What feign.hpp makes a component of.
struct Replayer {
  using Stream = Context;
  Replayer(const feign_host* h, const Options& o) : host(h), options(o) {}
  feign_status start();
  feign_status execute(Context& c, const feign_activity& a, feign_outcome& outcome);

  const feign_host* host;
  Options options;
  uint32_t stdio = 0;  // the id of the first op of layer stdio
  int root = -1;
  bool asks_again = false;  // names are looked up for each call, as far as the program named them
  bool alone = false;       // one thread does it all, and nothing else does any
  bool several = false;     // processes replay; each has what its own ranks opened
  bool in_memory = false;   // the root's file system: nothing there has to be fetched
  const bool is_root = ::geteuid() == 0;
  size_t buffer_size = 0;
  char* write_buffer = nullptr;  // shared: only read from
  int nowhere = -1;              // /dev/null, for what went into a pipe or socket
  Room room;
  uint64_t tell = 0;  // a stream says what it wrote when it is this much
  Descriptors descriptors;
  Locks locks{descriptors};
  Mappings mappings;
  feign::Written written;
  std::mutex open_mutex;             // opening what was open before the trace
  std::set<uint32_t> unplaced;       // … whose offset nobody moved or asked for yet: handles
  std::atomic<uint32_t> made_up{0};  // names
  std::mutex listings_mutex;
  std::map<uint32_t, int64_t> listings;  // bytes by which one lags behind: handles
  Names names;
  std::mutex aio_mutex;
  struct Aio {
    aio_context_t context = 0;
    std::atomic<int64_t> under_way{0};    // requests submitted, whose end nobody has got
    std::atomic<int64_t> got{0};          // ends that a full context made its submitter get
    std::atomic<int64_t> failed{0};       // -errno of one of these
    std::atomic<bool> incomplete{false};  // what others were to submit did not come
  };
  std::map<std::pair<int64_t, uint64_t>, Aio> aio;  // by process and recorded context

  ~Replayer() {
    for (const auto& [key, one] : aio) syscall(SYS_io_destroy, one.context);
    if (write_buffer != nullptr) munmap(write_buffer, buffer_size + kPage);
    if (nowhere >= 0) ::close(nowhere);
  }
};

// Hosts number their processes each for itself.
inline int64_t process_on(uint32_t host, int64_t process) {
  return static_cast<int64_t>(host) << 32 | process;
}
// Less than 0 where the trace has no numbers: then ranks are processes, else streams.
inline int64_t process_of(const feign_stream_info& info) {
  if (info.process >= 0) return process_on(info.host, info.process);
  return info.rank >= 0 ? -1 - 2 * int64_t{info.rank} : -2 - 2 * int64_t{info.id};
}

// A stream, and how its calls are made.
struct Context {
  Replayer* r;
  Directories* directories = &t_directories;  // of the thread that opened the stream, and serves it
  feign_outcome* outcome = nullptr;
  char* read_buffer = nullptr;  // the thread's
  char* fill_buffer = nullptr;  // of its own, if what is written depends on where
  char* out_buffer = nullptr;   // what to write from
  int64_t process = 0;          // process_of()
  uint64_t bytes = 0;           // written since the last that the replayer knows of
  uint32_t closing = 0;         // a handle whose fclose() is left to the system calls in it
  std::vector<iovec> vectors;
  union {
    struct stat stat;
    struct statx statx;
    struct statfs statfs;
  } space;

  // Data that the next call moves begins so many bytes later in memory.
  void move_buffers(ptrdiff_t by) {
    read_buffer += by;
    out_buffer += by;
    if (fill_buffer != nullptr) fill_buffer += by;
  }

  Context(Replayer& of, const feign_stream_info& info);
  ~Context() {
    if (fill_buffer != nullptr) munmap(fill_buffer, r->buffer_size + kPage);
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
  // Without the hints that this file system does not know (tmpfs: RWF_NOWAIT).
  int64_t vectors2(const feign_activity& a, int fd, char* memory,
                   ssize_t (*call)(int, const iovec*, int, off64_t, int)) {
    constexpr uint32_t kAtomic = 64, kDontCache = 128,
                       kNoSignal = 256;  // younger than some headers
    constexpr uint32_t kHints = RWF_NOWAIT | RWF_HIPRI | kAtomic | kDontCache | kNoSignal;
    const auto with = [&](uint32_t flags) {
      return checked(call(fd, iov(a, memory), iov_count(a), offset2(a), static_cast<int>(flags)));
    };
    const int64_t result = with(a.flags);
    return result == -EOPNOTSUPP && (a.flags & kHints) ? with(a.flags & ~kHints) : result;
  }
  off_t offset2(const feign_activity& a) {
    return (a.mode & 1) != 0 ? off_t{-1} : static_cast<off_t>(a.offset);
  }

  Where where(uint32_t path) { return directories->find(r->host, r->root, path, r->names, r); }
  // Both at once: finding one may close the directory that the other was found in.
  std::pair<Where, Where> where(uint32_t path, uint32_t path2) {
    for (;;) {
      const uint64_t before = directories->emptied();
      const std::pair<Where, Where> found{where(path), where(path2)};
      if (directories->emptied() == before) return found;
    }
  }
  // The names that the program's kernel looked up before the last one of each path.
  void look_up(const feign_activity& a) {
    const auto again = [&](uint32_t path, uint32_t components) {
      if (path != 0 && components > 1)
        directories->look_up(text(path), components, r->root, r->names, r);
    };
    again(a.path, FEIGN_NAMED_BY(a.marks));
    again(a.path2, FEIGN_NAMED_BY2(a.marks));
  }
  const char* text(uint32_t path) { return r->host->text(r->host, path, nullptr); }
  // The file behind a path, every link followed within the root, as an O_PATH descriptor or -errno.
  int target(uint32_t path, uint64_t flags = O_PATH) {
    return feign::open_in_root(r->root, text(path), flags | O_CLOEXEC, 0);
  }
  // A directory or link has this name no longer; `below`: but another one, and all in it, too.
  void name_changed(uint32_t path, const Where& where, bool below) {
    r->names.changed(where.plain ? text(path) : "", below);
    made();
  }
  void made() { r->names.common->made.fetch_add(1, std::memory_order_acq_rel); }
  // A call made this name, if it went well. (By a new link, other names are there, too.)
  int64_t made(uint32_t path, int64_t result) {
    const feign::Missing& missing = r->names.common->missing;
    if (result >= 0 && missing.any() && missing.may_have(text(path))) made();
    return result;
  }

  int64_t open(const feign_activity& a) {
    if (a.handle2 == 0 || a.path == 0) return open_file(a);
    const size_t left = give_up(a.handle2, true);
    const int64_t fd = open_file(a);
    goes_on(a, fd, left);
    return fd;
  }
  // The stream that was on another one is on this one now, with what is in its buffer.
  void goes_on(const feign_activity& a, int64_t fd, size_t left) {
    if (FILE* const f = fd >= 0 && a.handle != 0 && left != 0 ? file(a) : nullptr; f != nullptr)
      (void)::fwrite(out_buffer, 1, fit(left), f);
  }
  // What a descriptor of ours is, once more.
  int64_t open_again(const feign_activity& a) {
    const int of = r->descriptors.get(a.handle2);
    if (of < 0) return -EBADF;
    if ((a.flags & O_CREAT) && (a.flags & O_EXCL)) return -EEXIST;  // its link is there
    char link[48];
    snprintf(link, sizeof link, "/proc/thread-self/fd/%d", of);
    constexpr uint32_t kNot = O_CREAT | O_EXCL | O_NOFOLLOW;
    const int fd =
        ::open(link, static_cast<int>(a.flags & ~kNot) | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) return -errno;
    if (a.handle == 0 || a.result < 0 || !r->descriptors.set(a.handle, fd)) ::close(fd);
    return fd;
  }
  int64_t open_file(const feign_activity& a) {
    if (a.path == 0) return a.handle2 != 0 ? open_again(a) : skip("no path was recorded");
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
    const Where w = whole ? Where{0, nullptr, false} : where(a.path);
    if (w.dir < 0) return w.dir;
    bool last = w.name != nullptr;  // the last name is that of the file, and not a link's
    if (last) {
      fd = ::openat(w.dir, w.name, flags | O_NOFOLLOW, static_cast<mode_t>(mode));
      if (fd < 0) fd = -errno;
      const bool link = fd == -ELOOP || ((flags & O_DIRECTORY) && fd == -ENOTDIR);
      if (link && !(a.flags & O_NOFOLLOW)) {
        fd = feign::open_in_root(r->root, text(a.path), static_cast<uint64_t>(flags), mode);
        last = false;
      }
    } else {
      fd = feign::open_in_root(r->root, text(a.path), static_cast<uint64_t>(flags), mode, resolve);
    }
    if (fd == -EOPNOTSUPP && a.result >= 0 && (a.flags & O_TMPFILE) == O_TMPFILE)
      fd = nameless(a, flags, static_cast<mode_t>(mode));
    if (fd < 0) return fd;
    if (a.flags & O_CREAT) last ? (void)made(a.path, fd) : made();
    if (a.handle == 0 || a.result < 0 || !r->descriptors.set(a.handle, fd)) ::close(fd);
    return fd;
  }

  int64_t close(const feign_activity& a) {
    const bool last = (a.marks & FEIGN_LAST) != 0;
    if (last) r->descriptors.close_further(a.handle);
    const int further = last ? -1 : r->descriptors.take_further(a.handle, process);
    if (r->locks.any()) r->locks.closes(process, descriptor(a.handle));
    if (last && r->locks.any()) r->locks.closes(a.handle);
    if (further >= 0) return checked(::close(further));
    if (r->several && a.result >= 0 && r->descriptors.get(a.handle) < 0)
      return skip("opened by another rank");
    if (last || (a.handle != 0 && a.handle == closing))
      return checked(r->descriptors.close(a.handle, process, true));
    // A copy that fork made in the recorded process: here there is one process, and no copy.
    return r->descriptors.get(a.handle) < 0 ? -EBADF : emulated(0);
  }

  // A stream goes, and with it what is in its buffer; a duplicate of its descriptor may stay.
  int64_t fclose(const feign_activity& a) {
    const bool stays = a.handle != 0 && (a.marks & FEIGN_LAST) == 0;
    if (FILE* const f = stays ? r->descriptors.take_stream(a.handle, process) : nullptr;
        f != nullptr) {
      if (r->locks.any()) r->locks.closes(process, descriptor(a.handle));
      return checked(r->descriptors.close_stream(f));
    }
    const int64_t flushed = a.handle != 0 ? checked(r->descriptors.flush(a.handle, process)) : 0;
    const int64_t result = close(a);
    return flushed < 0 ? flushed : result;
  }

  // How much was left to be written in the buffer of a stream that was on it.
  size_t give_up(uint32_t handle, bool last) {
    if (r->locks.any()) r->locks.closes(process, descriptor(handle));
    if (!last) {
      const int further = r->descriptors.take_further(handle, process);
      if (further >= 0) ::close(further);
      return 0;
    }
    if (r->locks.any()) r->locks.closes(handle);
    r->descriptors.close_further(handle);
    const size_t left = r->descriptors.take_left(handle, process);
    (void)r->descriptors.close(handle, process);
    return left;
  }

  int64_t dup(const feign_activity& a, int fd) {
    if (a.result < 0) return emulated(a.result);  // about the recorded numbers, which are not ours
    const int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (copy < 0) return -errno;
    if (a.handle2 != 0) {
      const size_t left = give_up(a.handle2, (a.marks & FEIGN_LAST) != 0);
      goes_on(a, copy, left);
    }
    if (a.result < 0 || static_cast<int>(a.result) < 0) {
      ::close(copy);
    } else {
      r->descriptors.add(a.handle, copy, process);
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
        return lock(a, fd, F_OFD_SETLK, a.file);
      case F_GETLK:
        return lock(a, fd, F_OFD_GETLK, a.file);
      case F_OFD_SETLK:
      case F_OFD_SETLKW:
        return lock(a, fd, F_OFD_SETLK, 0);
      case F_OFD_GETLK:
        return lock(a, fd, F_OFD_GETLK, 0);
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

  // A lock of the process on that file, or, without, of the open file. Never waits: who has it may
  // be a stream that waits for this one.
  int64_t lock(const feign_activity& a, int fd, int command, uint32_t file) {
    struct flock l {};
    const auto value = [&](uint32_t i) { return i < a.value_count ? a.values[i] : 0; };
    l.l_type = static_cast<short>(value(1));
    l.l_whence = static_cast<short>(value(2));
    l.l_start = static_cast<off_t>(value(3));
    l.l_len = static_cast<off_t>(value(4));
    const int64_t result = r->locks.call(process, file, a.handle, fd, command, l);
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

  int64_t access(const feign_activity& a, int fd) {
    const int mode = static_cast<int>(a.mode & 7);
    if (a.handle != 0)
      return fd < 0 ? -EBADF : checked(::faccessat(AT_FDCWD, by_descriptor(fd), mode, 0));
    if (a.path == 0) return skip("no path was recorded");
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
    const Where w = a.handle != 0 ? Where{descriptor(a.handle), "", false} : where(a.path);
    if (w.dir < 0) return a.handle != 0 ? -EBADF : w.dir;
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
      name_changed(a.path, w, false);
    return result;
  }

  int64_t rename(const feign_activity& a) {
    if (a.path == 0 || a.path2 == 0) return skip("no path was recorded");
    const auto [from, to] = where(a.path, a.path2);
    if (from.dir < 0 || from.name == nullptr) return from.dir < 0 ? from.dir : -EBUSY;
    if (to.dir < 0 || to.name == nullptr) return to.dir < 0 ? to.dir : -EBUSY;
    int64_t result = checked(::renameat2(from.dir, from.name, to.dir, to.name, a.flags & 7));
    if (result == -EINVAL && a.flags != 0 && a.result != -EINVAL)
      result = rename_by_hand(from, to, a.flags);
    // What changes places with it may be a directory.
    const bool other = (a.flags & RENAME_EXCHANGE) != 0;
    if (result == 0 && (other || (a.marks & (FEIGN_DIRECTORY | FEIGN_SYMLINK)))) {
      name_changed(a.path, from, true);
      name_changed(a.path2, to, true);
    }
    return made(a.path2, result);
  }

  // On a file system that knows no flags (FUSE, NFS): what they do, though not at once.
  int64_t rename_by_hand(const Where& from, const Where& to, uint32_t flags) {
    if (flags == RENAME_NOREPLACE) {
      struct stat there {};
      if (::fstatat(to.dir, to.name, &there, AT_SYMLINK_NOFOLLOW) == 0) return -EEXIST;
      return checked(::renameat(from.dir, from.name, to.dir, to.name));
    }
    if (flags != RENAME_EXCHANGE) return -EINVAL;
    const std::string aside = a_name();
    if (::renameat(to.dir, to.name, to.dir, aside.c_str()) != 0) return -errno;
    if (::renameat(from.dir, from.name, to.dir, to.name) == 0)
      return checked(::renameat(to.dir, aside.c_str(), from.dir, from.name));
    const int error = errno;
    (void)::renameat(to.dir, aside.c_str(), to.dir, to.name);
    return -error;
  }
  // That nothing has.
  std::string a_name() {
    return ".feign-" + std::to_string(::getpid()) + "-" + std::to_string(r->made_up.fetch_add(1));
  }
  // O_TMPFILE where the file system has none: a file whose name goes at once.
  int nameless(const feign_activity& a, int flags, mode_t mode) {
    const int folder =
        feign::open_in_root(r->root, text(a.path), O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (folder < 0) return folder;
    const std::string name = a_name();
    int fd =
        ::openat(folder, name.c_str(), (flags & ~O_TMPFILE) | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
    if (fd < 0) fd = -errno;
    if (fd >= 0) (void)::unlinkat(folder, name.c_str(), 0);
    ::close(folder);
    return fd;
  }

  int64_t mkdir(const feign_activity& a) {
    const Where w = where(a.path);
    if (w.dir < 0) return w.dir;
    if (w.name == nullptr) return -EEXIST;
    return made(a.path, checked(::mkdirat(w.dir, w.name, mode_of(a))));
  }

  int64_t link(const feign_activity& a) {
    if (a.handle != 0 && a.path2 != 0) {  // by descriptor
      const int fd = descriptor(a.handle);
      if (fd < 0) return -EBADF;
      const Where to = where(a.path2);
      if (to.dir < 0 || to.name == nullptr) return to.dir < 0 ? to.dir : -EEXIST;
      return made(a.path2, checked(::linkat(AT_FDCWD, by_descriptor(fd), to.dir, to.name,
                                            AT_SYMLINK_FOLLOW)));
    }
    if (a.path == 0 || a.path2 == 0) return skip("no path was recorded");
    const auto [from, to] = where(a.path, a.path2);
    if (to.dir < 0 || to.name == nullptr) {
      // The kernel looks for the file first: if that is missing, too, it says so.
      const int file = (a.flags & AT_SYMLINK_FOLLOW) ? target(a.path) : no_follow(a.path);
      if (file < 0) return file;
      ::close(file);
      return to.dir < 0 ? to.dir : -EEXIST;
    }
    if (a.flags & AT_SYMLINK_FOLLOW) {
      const Where& there = to;
      const int64_t result = at_target(a.path, [&](int at) {
        return ::linkat(AT_FDCWD, by_descriptor(at), there.dir, there.name, AT_SYMLINK_FOLLOW);
      });
      return made(a.path2, result);
    }
    if (from.dir < 0 || from.name == nullptr) return from.dir < 0 ? from.dir : -EPERM;
    return made(a.path2, checked(::linkat(from.dir, from.name, to.dir, to.name, 0)));
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
    static thread_local char path[48];
    snprintf(path, sizeof path, "/proc/thread-self/fd/%d", fd);
    return path;
  }

  // fchmodat2(2), of Linux 6.6; -ENOSYS before, and where a sandbox refuses what it does not know.
  static int64_t fchmodat2(int dir, const char* name, mode_t mode, int flags) {
    constexpr long kCall = 452;  // on every architecture
    static const bool there = syscall(kCall, -1, "", 0, AT_EMPTY_PATH) != 0 && errno == EBADF;
    if (!there) return -ENOSYS;
    return checked(syscall(kCall, dir, name, mode, flags));
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

  // The same by way of its name: call(directory, name, flags), which must not follow links.
  template <typename Call>
  int64_t at_name(const feign_activity& a, Call&& call) {
    if (a.path == 0) return skip("no path was recorded");
    const Where w = where(a.path);
    if (w.dir < 0) return w.dir;
    if (w.name != nullptr) {
      bool link = false;
      if (!(a.marks & FEIGN_NOFOLLOW)) {
        if (::fstatat(w.dir, w.name, &space.stat, AT_SYMLINK_NOFOLLOW) != 0) return -errno;
        link = S_ISLNK(space.stat.st_mode);
      }
      if (!link) return checked(call(w.dir, w.name, AT_SYMLINK_NOFOLLOW));
    }
    return at_file(a, [&](int at) { return call(at, "", AT_EMPTY_PATH); });
  }

  // As asked for, but for the owner's rights to a directory, without which nothing in it could be
  // replayed, nor prepared anew. (Root needs none.)
  mode_t mode_of(const feign_activity& a) const {
    return (a.mode & 01777) | ((a.marks & FEIGN_DIRECTORY) && !r->is_root ? S_IRWXU : 0);
  }
  // Gives a file back to its owner, `fd` or by its name (-1), whose mode forbids what root did in
  // the trace, who may execute what anybody may; false if it is not that.
  bool permit(const feign_activity& a, int fd) {
    if (r->is_root || (fd < 0 && a.path == 0)) return false;
    const int at = fd < 0 ? target(a.path) : fd;
    if (at < 0) return false;
    const mode_t mode = ::fstat(at, &space.stat) == 0 ? space.stat.st_mode : S_IFDIR;
    const mode_t more =
        (mode & 07777) | S_IRUSR | S_IWUSR | ((mode & 0111) != 0 ? S_IXUSR : mode_t{0});
    const bool good =
        S_ISREG(mode) && more != (mode & 07777) && ::chmod(by_descriptor(at), more) == 0;
    if (fd < 0) ::close(at);
    return good;
  }
  int64_t chmod(const feign_activity& a) {
    const mode_t mode = mode_of(a);
    if (a.handle != 0) {
      const int fd = descriptor(a.handle);
      if (fd < 0) return -EBADF;
      // By way of /proc only where it must be: what the trace opened with O_PATH, before Linux 6.6.
      const int64_t result = fchmodat2(fd, "", mode, AT_EMPTY_PATH);
      if (result != -ENOSYS) return result;
      const int64_t plain = checked(::fchmod(fd, mode));
      return plain != -EBADF ? plain : checked(::chmod(by_descriptor(fd), mode));
    }
    if (a.path != 0 && !(a.marks & FEIGN_NOFOLLOW)) {
      if (const Where w = where(a.path); w.dir >= 0 && w.name != nullptr) {
        const int64_t result = fchmodat2(w.dir, w.name, mode, AT_SYMLINK_NOFOLLOW);
        if (result != -ENOSYS && result != -EOPNOTSUPP) return result;  // EOPNOTSUPP: a link
      }
    }
    return at_file(a, [&](int at) { return ::chmod(by_descriptor(at), mode); });
  }
  // No unprivileged user can, and no harm is done without.
  int64_t chown(const feign_activity& a, int fd) {
    const auto owner = static_cast<uid_t>(value(a, 0));
    const auto group = static_cast<gid_t>(value(a, 1));
    const auto call = [&](int at, const char* name, int flags) {
      return ::fchownat(at, name, owner, group, flags);
    };
    int64_t result = -EBADF;
    if (a.handle == 0)
      result = at_name(a, call);
    else if (fd >= 0)
      result = checked(call(fd, "", AT_EMPTY_PATH));
    if (result == -EPERM && a.result == 0) return skip("not permitted to the user who replays");
    return result;
  }
  int64_t mknod(const feign_activity& a) {
    mode_t type = a.mode & S_IFMT;
    // No device is ever made; but something has that name, which is renamed, listed and removed.
    if (type == S_IFCHR || type == S_IFBLK) type = S_IFSOCK;
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
    const int64_t result = attribute(a, fd, [&](const char* path, size_t size) {
      return ::getxattr(path, text(a.path2), read_buffer, size);
    });
    // What is never set is not there.
    const bool missing = result == -ENODATA && a.result >= 0 && !of_user(a);
    return missing ? emulated(a.result) : result;
  }
  int64_t list_attributes(const feign_activity& a, int fd) {
    return attribute(
        a, fd, [&](const char* path, size_t size) { return ::listxattr(path, read_buffer, size); });
  }
  int64_t set_attribute(const feign_activity& a, int fd) {
    // An access control list: what it says of owner, group and others is made (cp -p does that
    // instead of chmod).
    if (a.mode != 0 && strcmp(text(a.path2), "system.posix_acl_access") == 0) {
      feign_activity made = a;
      made.mode &= 0777;
      return chmod(made);
    }
    if (!of_user(a)) return skip("only user attributes are changed");
    // setxattrat's flags are two.
    const auto how = static_cast<int>(a.value_count > 0 ? a.values[0] : a.flags);
    return attribute(a, fd, [&](const char* path, size_t size) {
      return ::setxattr(path, text(a.path2), r->write_buffer, size, how);
    });
  }
  int64_t remove_attribute(const feign_activity& a, int fd) {
    if (!of_user(a)) return skip("only user attributes are changed");
    return attribute(a, fd,
                     [&](const char* path, size_t) { return ::removexattr(path, text(a.path2)); });
  }
  // file_getattr(2), of Linux 6.17. Another file system, or an older kernel, has no flags.
  int64_t get_flags(const feign_activity& a, int fd) {
    constexpr long kFileGetattr = 468;  // of every machine
    constexpr size_t kSize = 24;
    const auto call = [&](int at) {
      return ::syscall(kFileGetattr, AT_FDCWD, by_descriptor(at), read_buffer, kSize, 0);
    };
    if (a.handle != 0 && fd < 0) return -EBADF;
    const int64_t result = a.handle != 0 ? checked(call(fd)) : at_file(a, call);
    const auto none = [](int64_t e) {
      return e == -ENOSYS || e == -EOPNOTSUPP || e == -ENOTTY || e == -EINVAL;
    };
    return none(result) || none(a.result) ? emulated(a.result) : result;
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
    // A pipe or socket takes, or gives, as much as it did then; if that was nothing, no file moved.
    if (a.result < 0 || (a.result == 0 && (fd < 0 || length == 0))) return emulated(a.result);
    const size_t moved = a.result > 0 ? static_cast<size_t>(a.result) : length;
    if (fd >= 0) return checked(::sendfile(r->nowhere, fd, at_in, moved));
    return checked(at_out != nullptr ? ::pwrite(fd2, r->write_buffer, fit(moved), out)
                                     : ::write(fd2, r->write_buffer, fit(moved)));
  }

  int64_t clone(const feign_activity& a, int fd) {
    const int from = descriptor(a.handle2);
    if (from < 0) return -EBADF;
    if (a.flags == FICLONE) return checked(::ioctl(fd, FICLONE, from));
    file_clone_range range{from, value(a, 2), a.length, a.offset};
    return checked(::ioctl(fd, FICLONERANGE, &range));
  }

  // ---- files in memory --------------------------------------------------------------------------

  // Into the page cache, not into the mapping: a program's own faults are in its pauses.
  static void fetch(int fd, uint64_t offset, uint64_t length) {
    char one;
    const auto first = static_cast<off_t>(offset);
    (void)::readahead(fd, first, length);
    (void)!::pread(fd, &one, 1, first);
    if (length > 4096) (void)!::pread(fd, &one, 1, first + static_cast<off_t>(length) - 1);
  }
  int64_t too_much() {
    outcome->why = r->room.why();
    return -EDQUOT;
  }
  int64_t map(const feign_activity& a, int fd) {
    if (fd < 0) return -EBADF;
    const auto protection = static_cast<int>(value(a, 0)) & (PROT_READ | PROT_WRITE);
    const bool shared = (a.flags & MAP_SHARED) != 0;
    const int flags = static_cast<int>(a.flags & (MAP_TYPE | MAP_NONBLOCK)) | MAP_NORESERVE;
    void* memory = ::mmap(nullptr, a.length, protection, flags, fd, static_cast<off_t>(a.offset));
    if (memory == MAP_FAILED) return -errno;
    auto touch = static_cast<Touch>(r->options.touch);
    if (touch == kTouchSmall && a.length <= kReadAround && !r->in_memory)
      fetch(fd, a.offset, a.length);
    if (touch <= kTouchNone && (a.flags & MAP_POPULATE)) touch = kTouchRead;
    // Never by hand: what lies behind the end of the file cannot be touched (SIGBUS).
    if (touch > kTouchNone && protection != 0) {
      const bool write = touch == kTouchProtection && shared && (protection & PROT_WRITE);
      if (write && r->room.full(bytes + a.length)) {
        ::munmap(memory, a.length);
        return too_much();
      }
      if (write) bytes += a.length;
      // More than fits into memory is there only for a moment.
      static const uint64_t kMemory =
          static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(kPage);
      (void)::madvise(memory, std::min(a.length, kMemory),
                      write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
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

  static constexpr uint64_t kMostRequests = 1024;
  Replayer::Aio& aio(const feign_activity& a, uint64_t requests = kMostRequests) {
    const std::lock_guard lock(r->aio_mutex);
    Replayer::Aio& one = r->aio[{process, value(a, 0)}];
    if (one.context == 0 && syscall(SYS_io_setup, requests, &one.context) != 0) one.context = 0;
    return one;
  }
  // No larger than the recorded one: all contexts of a system share a limit (aio-max-nr).
  int64_t aio_setup(const feign_activity& a) {
    if (a.result < 0) return emulated(a.result);
    errno = 0;
    const uint64_t requests = value(a, 1);
    const Replayer::Aio& one = requests != 0 ? aio(a, std::min(requests, kMostRequests)) : aio(a);
    return one.context != 0 ? 0 : -errno;
  }
  // A context that is full, as a replay may be ahead of the thread that gets the ends, gives up one
  // end for each request: what is left fills it, so that nobody who waits lacks any.
  int64_t aio_submit(const feign_activity& a, int fd) {
    iocb request{};
    const bool writes = a.flags == IOCB_CMD_PWRITE || a.flags == IOCB_CMD_PWRITEV;
    const bool reads = a.flags == IOCB_CMD_PREAD || a.flags == IOCB_CMD_PREADV;
    if (!writes && !reads && a.flags != IOCB_CMD_FSYNC && a.flags != IOCB_CMD_FDSYNC)
      return skip("this kind of request is not replayed");
    Replayer::Aio& to = aio(a);
    if (to.context == 0) return -EAGAIN;
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
    to.under_way.fetch_add(1);
    int64_t result = checked(syscall(SYS_io_submit, to.context, 1L, &requests));
    // Who waits may take all ends before this thread comes to take one: it looks for a moment only,
    // and tries again.
    for (int tries = 0; result == -EAGAIN && a.result > 0 && tries < 60'000; ++tries) {
      io_event event{};
      timespec limit{0, 1'000'000};
      if (syscall(SYS_io_getevents, to.context, 1L, 1L, &event, &limit) == 1) {
        if (event.res < 0) to.failed = event.res;
        to.under_way.fetch_sub(1);
        to.got.fetch_add(1);
      }
      result = checked(syscall(SYS_io_submit, to.context, 1L, &requests));
    }
    if (result < 1) to.under_way.fetch_sub(1);
    return result;
  }
  // Waits for as many as came then. What is not under way another thread will submit, but for
  // requests that failed or that the trace does not tell: for these it waits once, longer than the
  // recorded call, and from then on for what is under way.
  int64_t aio_wait(const feign_activity& a) {
    if (a.result <= 0) return emulated(a.result);
    Replayer::Aio& from = aio(a);
    constexpr uint64_t kSecond = 1'000'000'000, kLook = kSecond / 10;
    io_event events[64];
    int64_t done = 0;
    for (uint64_t waited = 0;;) {
      // While this thread waits, a submitter may have got what it waits for.
      int64_t there = from.got.load();
      while (!from.got.compare_exchange_weak(there, there - std::min(there, a.result - done)))
        continue;
      there = std::min(there, a.result - done);
      if (const int64_t failed = there != 0 ? from.failed.exchange(0) : 0; failed < 0)
        return failed;
      done += there;
      const int64_t under_way = from.under_way.load();
      int64_t want = std::min<int64_t>(a.result - done, std::size(events));
      if (from.incomplete.load()) want = std::min(want, under_way);
      if (want <= 0) break;
      const uint64_t patience = under_way >= want ? 60 * kSecond : kSecond + 2 * a.duration_ns;
      timespec limit{0, static_cast<long>(kLook)};
      const long got = syscall(SYS_io_getevents, from.context, want, want, events, &limit);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return -errno;
      from.under_way.fetch_sub(got);
      for (long i = 0; i < got; ++i)
        if (events[i].res < 0) return events[i].res;
      done += got;
      waited = got != 0 ? 0 : waited + kLook;
      if (waited >= patience) from.incomplete = true;
    }
    return done == a.result ? done : emulated(a.result);  // the rest was said of io_submit
  }
  int64_t aio_destroy(const feign_activity& a) {
    const std::lock_guard lock(r->aio_mutex);
    const auto at = r->aio.find({process, value(a, 0)});
    if (at == r->aio.end()) return emulated(a.result);
    const int64_t result = checked(syscall(SYS_io_destroy, at->second.context));
    r->aio.erase(at);
    return result;
  }

  // A file that was open before the trace began, known by its name: opened when it is first used.
  int inherited(uint32_t handle, uint32_t path) {
    const std::lock_guard lock(r->open_mutex);
    int fd = r->descriptors.get(handle);
    if (fd >= 0) return fd;
    for (const int flags : {O_RDWR, O_RDONLY, O_WRONLY}) {
      fd = target(path, static_cast<uint64_t>(flags | O_NOCTTY | O_NONBLOCK));
      if (fd >= 0) break;
    }
    if (fd < 0) return fd;
    if (r->descriptors.set(handle, fd)) {
      r->unplaced.insert(handle);
      return fd;
    }
    ::close(fd);
    return -EMFILE;
  }
  // Who asks such a file's offset before anybody moved it tells where it was; who reads or writes,
  // if that was known.
  void place(const feign_activity& a, Effect effect, int fd) {
    const bool tells = effect == Effect::kFtell && a.result >= 0;
    const bool asks = tells || (effect == Effect::kSeek && a.flags == SEEK_CUR && a.result >= 0);
    if (!asks && effect != Effect::kSeek && effect != Effect::kRead && effect != Effect::kWrite)
      return;
    const std::lock_guard lock(r->open_mutex);
    if (r->unplaced.erase(a.handle) == 0) return;
    if (a.marks & FEIGN_APPENDS) (void)::fcntl(fd, F_SETFL, O_APPEND);
    if (asks)
      (void)::lseek(fd, a.result - (tells ? 0 : static_cast<int64_t>(a.offset)), SEEK_SET);
    else if (effect != Effect::kSeek && a.offset != 0)
      (void)::lseek(fd, static_cast<off_t>(a.offset), SEEK_SET);
  }

  int64_t truncate(const feign_activity& a, int fd) {
    if (a.handle != 0)
      return fd < 0 ? -EBADF : checked(::truncate(by_descriptor(fd), static_cast<off_t>(a.length)));
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
    return at_name(a, [&](int at, const char* name, int flags) {
      return flags == AT_EMPTY_PATH ? ::utimensat(AT_FDCWD, by_descriptor(at), given, 0)
                                    : ::utimensat(at, name, given, flags);
    });
  }
  int64_t statfs(const feign_activity& a) {
    if (a.path == 0) return skip("no path was recorded");
    return at_target(a.path, [&](int at) { return ::fstatfs(at, &space.statfs); });
  }
  // Entries, as getdents64 gives them, without the root's mark.
  int64_t entries(const feign_activity& a, int fd) {
    const auto read = [&] {
      return static_cast<int64_t>(syscall(SYS_getdents64, fd, read_buffer, fit(a.length)));
    };
    const int64_t result = read();
    const char* const path = text(a.path);  // of 0: empty
    if (path[0] != '/' || path[1] != '\0') return result;
    for (int64_t at = 0; at < result;) {
      const auto& entry = *reinterpret_cast<const dirent64*>(read_buffer + at);
      if (strcmp(entry.d_name, feign::kRootMark) == 0)
        return result == entry.d_reclen ? read() : result - entry.d_reclen;
      at += entry.d_reclen;
    }
    return result;
  }
  int64_t getdents(const feign_activity& a, int fd) {
    const int64_t result = checked(entries(a, fd));
    const bool known = a.result >= 0 && a.result <= INT32_MAX && !(a.marks & FEIGN_NO_RESULT);
    return result < 0 || !known ? result : listed(a, fd, result);
  }
  // Which entry a buffer of a long listing ends with is the order of the file system; a signal ends
  // a buffer early, and some file systems (FUSE) fill none. Of such a listing it is the sum that
  // has to be right, at its end.
  int64_t listed(const feign_activity& a, int fd, int64_t result) {
    constexpr int64_t kLongestEntry = 280;  // getdents(2)
    const std::lock_guard lock(r->listings_mutex);
    const auto at = r->listings.find(a.handle);
    const bool begun = at != r->listings.end();
    if (!begun && result == a.result) return result;
    int64_t lacks = (begun ? at->second : 0) + a.result - result;
    for (int64_t more = 1; begun && a.result == 0 && lacks > 0 && more > 0; lacks -= more)
      more = std::max<int64_t>(entries(a, fd), 0);
    const bool full = std::max(result, a.result) + kLongestEntry > static_cast<int64_t>(a.length);
    const bool goes_on = lacks <= (begun || full ? kLongestEntry : 0) ||
                         (result > 0 && a.result > 0 && (begun || full));
    if (goes_on && (a.result != 0 || lacks == 0)) {
      if (lacks != 0) r->listings[a.handle] = lacks;
      if (lacks == 0 && begun) r->listings.erase(at);
      return a.result;
    }
    if (begun) r->listings.erase(at);
    return result == a.result ? std::abs(lacks) : result;
  }
  void lists_anew(const feign_activity& a) {
    const std::lock_guard lock(r->listings_mutex);
    r->listings.erase(a.handle);
  }
  int64_t fallocate(const feign_activity& a, int fd) {
    if (a.result == -EINVAL) return emulated(a.result);  // mostly about a size that is not known
    const int64_t result = checked(::fallocate(
        fd, static_cast<int>(a.flags), static_cast<off_t>(a.offset), static_cast<off_t>(a.length)));
    // Not on this file system; but the file's size is what later calls go by.
    if (result != -EOPNOTSUPP || a.result != 0 || ::fstat(fd, &space.stat) != 0 ||
        !S_ISREG(space.stat.st_mode))
      return result;
    const auto before = static_cast<uint64_t>(space.stat.st_size);
    uint64_t size = before;
    if (a.flags &
        (FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE))  // the second never without the first
      return result;
    if (a.flags & FALLOC_FL_COLLAPSE_RANGE)
      size -= std::min(size, a.length);
    else if (a.flags & FALLOC_FL_INSERT_RANGE)
      size += a.length;
    else
      size = std::max(size, a.offset + a.length);
    if (size != before) (void)::ftruncate(fd, static_cast<off_t>(size));
    return result;
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

  // ---- stdio ------------------------------------------------------------------------------------

  FILE* file(const feign_activity& a) { return r->descriptors.file(a.handle, process); }
  // What a call on a stream says: bytes, or the error if there are none.
  template <typename Call>
  int64_t on_file(const feign_activity& a, Call&& call) {
    FILE* const f = file(a);
    if (f == nullptr) return -errno;
    if (::ferror(f)) ::clearerr(f);  // once at its end a stream stays there, until it is moved
    const WithoutLines whole(f);
    const auto result = static_cast<int64_t>(call(f));
    return result <= 0 && ::ferror(f) ? -errno : result;
  }
  // A call on a stream whose bytes did not all go where they should: libc has given up the stream's
  // buffer then. How much of it was written say the system calls in the call, which are made if it
  // is left out.
  void lose(const feign_activity& a, Effect effect) {
    r->descriptors.lose(a.handle, process);
    if (effect == Effect::kClose && (a.marks & FEIGN_LAST)) {
      (void)r->descriptors.close(closing, process);  // still there if the trace has no system calls
      closing = a.handle;
    }
    (void)skip("failed with bytes of its stream's buffer: the system calls in it are made");
  }
  bool unwritten(const feign_activity& a) const {
    return r->descriptors.unwritten(a.handle, process) != 0;
  }
  int64_t fopen(const feign_activity& a) {
    const size_t left = a.handle2 != 0 ? give_up(a.handle2, true) : 0;
    const int64_t fd = open_stream(a);
    goes_on(a, fd, left);
    return fd;
  }
  int64_t open_stream(const feign_activity& a) {
    const int64_t fd = open_file(a);
    if (fd < 0 || a.handle == 0) return fd;
    to_end(a, static_cast<int>(fd));
    return r->descriptors.file(a.handle, process, (a.flags & O_APPEND) != 0) != nullptr ? fd
                                                                                        : -errno;
  }
  static void to_end(const feign_activity& a, int fd) {  // mode "a" starts there; "a+" does not
    if ((a.flags & O_APPEND) && !(a.flags & O_RDWR)) ::lseek(fd, 0, SEEK_END);
  }
  int64_t fdopen(const feign_activity& a) {
    if (a.result < 0) return emulated(a.result);
    const int fd = r->descriptors.get(a.handle);
    r->descriptors.also_stream(a.handle, process);
    if (a.flags & O_APPEND) {
      ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_APPEND);
      to_end(a, fd);
    }
    return r->descriptors.file(a.handle, process, (a.flags & O_APPEND) != 0) != nullptr ? 0
                                                                                        : -errno;
  }
  int64_t freopen(const feign_activity& a) {
    if (a.handle2 == 0) return open_stream(a);
    (void)r->descriptors.flush(a.handle2, process);
    if (a.path != 0) give_up(a.handle2, (a.marks & FEIGN_LAST) != 0);
    const int64_t fd = open_stream(a);
    if (a.path == 0) give_up(a.handle2, (a.marks & FEIGN_LAST) != 0);
    return fd;
  }
  // As `some(f, to, bytes)` reads. clearerr(3) is not in the trace: a stream that is at its end
  // here was not if bytes were read.
  template <typename Some>
  int64_t reads(const feign_activity& a, uint64_t length, Some&& some) {
    return on_file(a, [&](FILE* f) {
      const size_t most = fit(length), done = some(f, read_buffer, most);
      if (a.result <= 0 || done >= std::min(most, static_cast<size_t>(a.result))) return done;
      ::clearerr(f);
      return done + some(f, read_buffer, most - done);
    });
  }
  int64_t fread(const feign_activity& a) {
    return reads(a, a.length,
                 [](FILE* f, char* to, size_t bytes) { return ::fread(to, 1, bytes, f); });
  }
  // Calls that stop at some character read as much as they did then: what they looked for is not in
  // the files here. They fill the stream's buffer where fread() may read past it.
  int64_t gets(const feign_activity& a) {
    if (a.result < 0) return emulated(a.result);
    const auto look = [](FILE* f) {
      if (const int next = std::getc(f); next != EOF) std::ungetc(next, f);
      return 0;
    };
    if (a.length == 0) return on_file(a, look);  // fscanf found something else there
    if (a.result == 0) return on_file(a, [](FILE* f) { return std::getc(f) != EOF; });
    const int64_t result = reads(a, static_cast<uint64_t>(a.result), read_by_characters);
    if (a.length > static_cast<uint64_t>(a.result) && result == a.result)
      (void)on_file(a, look);  // and met the end
    return result;
  }
  int64_t ungetc(const feign_activity& a) {
    if (a.result < 0) return emulated(a.result);
    return on_file(a, [&](FILE* f) {
      // What a program gives back is mostly what it read, which was another byte than here. Any
      // other one libc keeps apart, and frees what it has not allocated when setvbuf follows.
      // A wide character is several bytes.
      for (uint64_t i = 0; i < std::clamp<uint64_t>(a.length, 1, MB_LEN_MAX); ++i)
        if (std::ungetc(read_last(f, static_cast<unsigned char>(a.result)), f) == EOF)
          return int64_t{EOF};
      return a.result;
    });
  }
  int64_t fwrite(const feign_activity& a) {
    return on_file(a, [&](FILE* f) { return ::fwrite(out_buffer, 1, fit(a.length), f); });
  }
  // fwrite() keeps nothing in a small buffer.
  int64_t fputc(const feign_activity& a) {
    if (a.length != 1) return fwrite(a);
    return on_file(a, [&](FILE* f) { return std::putc(*out_buffer, f) != EOF; });
  }
  int64_t fflush(const feign_activity& a) {
    if (a.handle == 0) return emulated(a.result);  // all that the process had open
    return on_file(a, [&](FILE* f) {
      return a.flags != 0 ? flush_but(f, a.length, read_buffer, fit(a.length)) : ::fflush(f);
    });
  }
  int64_t fseek(const feign_activity& a) {
    return on_file(a, [&](FILE* f) {
      const int done = ::fseeko(f, static_cast<off_t>(a.offset), static_cast<int>(a.flags));
      return done < 0 ? -errno : 0;
    });
  }
  int64_t ftell(const feign_activity& a) {
    return on_file(a, [](FILE* f) { return checked(::ftello(f)); });
  }
  int64_t setvbuf(const feign_activity& a) {
    FILE* const f = file(a);
    if (f == nullptr) return -errno;
    return r->descriptors.set_buffer(f, static_cast<int>(a.flags), a.length);
  }
  // unlink(2) or rmdir(2), as libc does it.
  int64_t remove(const feign_activity& a) {
    const int64_t result = unlink(a, 0);
    return result == -EISDIR ? unlink(a, AT_REMOVEDIR) : result;
  }

  // Process structure is the streams' here; what it closed is closed, what it unmapped is gone.
  // What libc flushes as a process ends, the trace has.
  int64_t ends(const feign_activity& a) {
    if (a.op == FEIGN_POSIX_EXIT_GROUP) {
      if (r->locks.any()) r->locks.ends(process);
      r->descriptors.ends(process);
    }
    for (uint32_t i = 0; i < a.value_count; ++i) {
      const auto handle = static_cast<uint32_t>(a.values[i]);
      give_up(handle, true);
      if (const Mapping m = r->mappings.take(handle); m.memory != nullptr)
        ::munmap(m.memory, m.length);
    }
    if (a.op == FEIGN_POSIX_EXIT_GROUP || (a.op != FEIGN_POSIX_EXIT && a.result >= 0))
      r->descriptors.forget_streams(process);
    return emulated(a.result);
  }
  int64_t forks(const feign_activity& a) {
    if (a.result > 0 && process >= 0 && !(a.flags & CLONE_VM))
      r->descriptors.forks(process, process_on(static_cast<uint32_t>(process >> 32), a.result));
    return emulated(a.result);
  }
  int64_t nothing(const feign_activity& a) { return emulated(a.result); }
  // What passes between processes is not made: dependencies keep its order, the pause its time.
  int64_t waits(const feign_activity&) { return skip("waits for others: its order is kept"); }
  int64_t wakes(const feign_activity&) { return skip("wakes others: its order is kept"); }
  int64_t chdir(const feign_activity& a) { return emulated(a.result); }
};

}  // namespace feign
