// SPDX-License-Identifier: MIT
// Open files: how they are opened and closed, their descriptors and locks, and bytes that go from
// one to another.
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <mutex>
#include <string>

#include "replayers/posix/calls.h"

namespace feign {

int64_t Context::open(const feign_activity& a) {
  if (a.handle2 == 0 || a.path == 0) return open_file(a);
  const size_t left = give_up(a.handle2, true);
  const int64_t fd = open_file(a);
  goes_on(a, fd, left);
  return fd;
}

// The stream that was on another one is on this one now, with what is in its buffer.
void Context::goes_on(const feign_activity& a, int64_t fd, size_t left) {
  if (FILE* const f = fd >= 0 && a.handle != 0 && left != 0 ? file(a) : nullptr; f != nullptr)
    (void)::fwrite(out_buffer, 1, fit(left), f);
}

// What a descriptor of ours is, once more.
int64_t Context::open_again(const feign_activity& a) {
  const int of = r->descriptors.get(a.handle2);
  if (of < 0) return -EBADF;
  if ((a.flags & O_CREAT) && (a.flags & O_EXCL)) return -EEXIST;  // its link is there
  constexpr uint32_t kNot = O_CREAT | O_EXCL | O_NOFOLLOW;
  const int fd = ::open(by_descriptor(of),
                        static_cast<int>(a.flags & ~kNot) | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (fd < 0) return -errno;
  if (a.handle == 0 || a.result < 0 || !r->descriptors.set(a.handle, fd)) ::close(fd);
  return fd;
}

int64_t Context::open_file(const feign_activity& a) {
  if (a.path == 0) return a.handle2 != 0 ? open_again(a) : skip("no path was recorded");
  // The kernel looks at flags that exclude each other before it looks at the path.
  if (a.result == -EINVAL && (a.flags & O_CREAT) && (a.flags & O_DIRECTORY))
    return emulated(a.result);
  const uint64_t mode = a.mode & 01777;
  // Without waiting: whatever lies there, a FIFO that nobody writes to must not stop the replay.
  const int flags =
      static_cast<int>(a.flags) | O_CLOEXEC | O_NOCTTY | ((a.flags & O_PATH) != 0 ? 0 : O_NONBLOCK);
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

int64_t Context::close(const feign_activity& a) {
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
int64_t Context::fclose(const feign_activity& a) {
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
size_t Context::give_up(uint32_t handle, bool last) {
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

int64_t Context::dup(const feign_activity& a, int fd) {
  if (a.result < 0) return emulated(a.result);  // about the recorded numbers, which are not ours
  const int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return -errno;
  if (a.handle2 != 0) {
    const size_t left = give_up(a.handle2, (a.marks & FEIGN_LAST) != 0);
    goes_on(a, copy, left);
  }
  if (static_cast<int>(a.result) < 0) {
    ::close(copy);
  } else {
    r->descriptors.add(a.handle, copy, process);
  }
  return copy;
}

int64_t Context::fcntl(const feign_activity& a, int fd) {
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
int64_t Context::lock(const feign_activity& a, int fd, int command, uint32_t file) {
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

// That nothing has.
std::string Context::a_name() {
  return ".feign-" + std::to_string(::getpid()) + "-" + std::to_string(r->made_up.fetch_add(1));
}

// O_TMPFILE where the file system has none: a file whose name goes at once.
int Context::nameless(const feign_activity& a, int flags, mode_t mode) {
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

// Of the file system that the root is on. Others are none of our business.
int64_t Context::sync() {
  const int at = ::openat(r->root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (at < 0) return -errno;
  const int64_t result = checked(::syncfs(at));
  ::close(at);
  return result;
}

// sendfile with splice's arguments.
ssize_t Context::send(int from, off64_t* at, int to, off64_t*, size_t length, unsigned) {
  return ::sendfile(to, from, at, length);
}

// Bytes from one open file to another. Where one end was a pipe or a socket, the other is what
// storage had to do with.
int64_t Context::copy(const feign_activity& a, int fd, int fd2,
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

int64_t Context::clone(const feign_activity& a, int fd) {
  const int from = descriptor(a.handle2);
  if (from < 0) return -EBADF;
  if (a.flags == FICLONE) return checked(::ioctl(fd, FICLONE, from));
  file_clone_range range{from, value(a, 2), a.length, a.offset};
  return checked(::ioctl(fd, FICLONERANGE, &range));
}

// A file that was open before the trace began, known by its name: opened when it is first used.
int Context::inherited(uint32_t handle, uint32_t path) {
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
void Context::place(const feign_activity& a, Effect effect, int fd) {
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

// It had been moved before that was told, by the first seek that asks: from here on it is where it
// was then.
void Context::is_elsewhere(const feign_activity& a, int fd, int64_t is) {
  if (a.flags != SEEK_CUR || a.result < 0 || is < 0) return;
  const std::lock_guard lock(r->listings_mutex);
  if (r->told_where.insert(a.handle).second && is != a.result)
    (void)::lseek(fd, a.result, SEEK_SET);
}

int64_t Context::fallocate(const feign_activity& a, int fd) {
  if (a.result == -EINVAL) return emulated(a.result);  // mostly about a size that is not known
  const int64_t result = checked(::fallocate(
      fd, static_cast<int>(a.flags), static_cast<off_t>(a.offset), static_cast<off_t>(a.length)));
  // Not on this file system; but the file's size is what later calls go by.
  if (result != -EOPNOTSUPP || a.result != 0 || ::fstat(fd, &space.stat) != 0 ||
      !S_ISREG(space.stat.st_mode))
    return result;
  const auto before = static_cast<uint64_t>(space.stat.st_size);
  uint64_t size = before;
  if (a.flags & (FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE))  // the second never without the first
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

int64_t Context::fadvise(const feign_activity& a, int fd) {
  return -::posix_fadvise(fd, static_cast<off_t>(a.offset), static_cast<off_t>(a.length),
                          static_cast<int>(a.flags));
}

// Never waits: who has the lock may be a stream that waits for this one.
int64_t Context::flock(const feign_activity& a, int fd) {
  const int64_t result = checked(::flock(fd, static_cast<int>(a.flags) | LOCK_NB));
  if (result == -EAGAIN && a.result == 0 && !(a.flags & LOCK_NB)) return emulated(0);
  return result;
}

// Process structure is the streams' here; what it closed is closed, what it unmapped is gone.
// What libc flushes as a process ends, the trace has.
int64_t Context::ends(const feign_activity& a) {
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

int64_t Context::forks(const feign_activity& a) {
  if (a.result > 0 && process >= 0 && !(a.flags & CLONE_VM))
    r->descriptors.forks(process, process_on(static_cast<uint32_t>(process >> 32), a.result));
  return emulated(a.result);
}

}  // namespace feign
