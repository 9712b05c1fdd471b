// SPDX-License-Identifier: MIT
// Names, and what is done to what has them.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

#include "replayers/posix/calls.h"

namespace feign {

int64_t Context::stat(const feign_activity& a, int fd) {
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

int64_t Context::statx(const feign_activity& a, int fd) {
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
int64_t Context::at_target(uint32_t path, Call&& call) {
  const int at = target(path);
  if (at < 0) return at;
  const int64_t result = checked(call(at));
  ::close(at);
  return result;
}

int64_t Context::access(const feign_activity& a, int fd) {
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

int64_t Context::readlink(const feign_activity& a) {
  const Where w = a.handle != 0 ? Where{descriptor(a.handle), "", false} : where(a.path);
  if (w.dir < 0) return a.handle != 0 ? -EBADF : w.dir;
  if (w.name == nullptr) return -EINVAL;
  char link[PATH_MAX];
  return checked(::readlinkat(w.dir, w.name, link, std::min<size_t>(a.length, sizeof link)));
}

int64_t Context::unlink(const feign_activity& a, int flags) {
  const Where w = where(a.path);
  if (w.dir < 0) return w.dir;
  if (w.name == nullptr) return flags & AT_REMOVEDIR ? -EBUSY : -EISDIR;
  const int64_t result = checked(::unlinkat(w.dir, w.name, flags & AT_REMOVEDIR));
  if (result == 0 && ((flags & AT_REMOVEDIR) || (a.marks & (FEIGN_SYMLINK | FEIGN_DIRECTORY))))
    name_changed(a.path, w, false);
  return result;
}

int64_t Context::rename(const feign_activity& a) {
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
int64_t Context::rename_by_hand(const Where& from, const Where& to, uint32_t flags) {
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

int64_t Context::mkdir(const feign_activity& a) {
  const Where w = where(a.path);
  if (w.dir < 0) return w.dir;
  if (w.name == nullptr) return -EEXIST;
  return made(a.path, checked(::mkdirat(w.dir, w.name, mode_of(a))));
}

int64_t Context::link(const feign_activity& a) {
  if (a.handle != 0 && a.path2 != 0) {  // by descriptor
    const int fd = descriptor(a.handle);
    if (fd < 0) return -EBADF;
    const Where to = where(a.path2);
    if (to.dir < 0 || to.name == nullptr) return to.dir < 0 ? to.dir : -EEXIST;
    return made(a.path2,
                checked(::linkat(AT_FDCWD, by_descriptor(fd), to.dir, to.name, AT_SYMLINK_FOLLOW)));
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

int64_t Context::symlink(const feign_activity& a) {
  const Where w = where(a.path);
  if (w.dir < 0) return w.dir;
  if (w.name == nullptr) return -EEXIST;
  const int64_t result = checked(::symlinkat(text(a.path2), w.dir, w.name));
  if (result == 0) made();
  return result;
}

// An O_PATH descriptor as a path, for calls that take no descriptor of that kind. This magic link
// is ours, not the trace's.
const char* Context::by_descriptor(int fd) {
  static thread_local char path[48];
  snprintf(path, sizeof path, "/proc/thread-self/fd/%d", fd);
  return path;
}

// fchmodat2(2), of Linux 6.6; -ENOSYS before, and where a sandbox refuses what it does not know.
int64_t Context::fchmodat2(int dir, const char* name, mode_t mode, int flags) {
  constexpr long kCall = 452;  // on every architecture
  static const bool there = syscall(kCall, -1, "", 0, AT_EMPTY_PATH) != 0 && errno == EBADF;
  if (!there) return -ENOSYS;
  return checked(syscall(kCall, dir, name, mode, flags));
}

// A symbolic link itself, or another file without following one, as an O_PATH descriptor.
int Context::no_follow(uint32_t path) {
  const Where w = where(path);
  if (w.dir < 0 || w.name == nullptr) return w.dir < 0 ? w.dir : target(path);
  const int at = ::openat(w.dir, w.name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  return at < 0 ? -errno : at;
}

// The file that a call by path means, by its flags, as an O_PATH descriptor.
template <typename Call>
int64_t Context::at_file(const feign_activity& a, Call&& call) {
  if (a.path == 0) return skip("no path was recorded");
  const int at = (a.marks & FEIGN_NOFOLLOW) ? no_follow(a.path) : target(a.path);
  if (at < 0) return at;
  const int64_t result = checked(call(at));
  ::close(at);
  return result;
}

// The same by way of its name: call(directory, name, flags), which must not follow links.
template <typename Call>
int64_t Context::at_name(const feign_activity& a, Call&& call) {
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
mode_t Context::mode_of(const feign_activity& a) const {
  return (a.mode & 01777) | ((a.marks & FEIGN_DIRECTORY) && !r->is_root ? S_IRWXU : 0);
}

// Gives a file back to its owner, `fd` or by its name (-1), whose mode forbids what root did in
// the trace, who may execute what anybody may; false if it is not that.
bool Context::permit(const feign_activity& a, int fd) {
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

int64_t Context::chmod(const feign_activity& a) {
  const mode_t mode = mode_of(a);
  // Of a directory that nothing told to be one.
  const auto mode_at = [&](int at, const char* name, int flags) -> mode_t {
    if (r->is_root || (mode & S_IRWXU) == S_IRWXU) return mode;
    const bool folder = ::fstatat(at, name, &space.stat, flags) == 0 && S_ISDIR(space.stat.st_mode);
    return folder ? mode | S_IRWXU : mode;
  };
  if (a.handle != 0) {
    const int fd = descriptor(a.handle);
    if (fd < 0) return -EBADF;
    const mode_t now = mode_at(fd, "", AT_EMPTY_PATH);
    // By way of /proc only where it must be: what the trace opened with O_PATH, before Linux 6.6.
    const int64_t result = fchmodat2(fd, "", now, AT_EMPTY_PATH);
    if (result != -ENOSYS) return result;
    const int64_t plain = checked(::fchmod(fd, now));
    return plain != -EBADF ? plain : checked(::chmod(by_descriptor(fd), now));
  }
  if (a.path != 0 && !(a.marks & FEIGN_NOFOLLOW)) {
    if (const Where w = where(a.path); w.dir >= 0 && w.name != nullptr) {
      const int64_t result = fchmodat2(w.dir, w.name, mode_at(w.dir, w.name, AT_SYMLINK_NOFOLLOW),
                                       AT_SYMLINK_NOFOLLOW);
      if (result != -ENOSYS && result != -EOPNOTSUPP) return result;  // EOPNOTSUPP: a link
    }
  }
  return at_file(
      a, [&](int at) { return ::chmod(by_descriptor(at), mode_at(at, "", AT_EMPTY_PATH)); });
}

// No unprivileged user can, and no harm is done without.
int64_t Context::chown(const feign_activity& a, int fd) {
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

int64_t Context::mknod(const feign_activity& a) {
  mode_t type = a.mode & S_IFMT;
  // No device is ever made; but something has that name, which is renamed, listed and removed.
  if (type == S_IFCHR || type == S_IFBLK) type = S_IFSOCK;
  const Where w = where(a.path);
  if (w.dir < 0) return w.dir;
  if (w.name == nullptr) return -EEXIST;
  return made(a.path, checked(::mknodat(w.dir, w.name, type | (a.mode & 01777), 0)));
}

int64_t Context::bind(const feign_activity& a) {
  const int64_t result = mknod(a);
  return result == -EEXIST ? -EADDRINUSE : result;
}

// Extended attributes. Only those of users are set: security.capability is as good as a setuid
// bit.
template <typename Call>
int64_t Context::attribute(const feign_activity& a, int fd, Call&& call) {
  const size_t size = std::min<uint64_t>(a.length, std::min<size_t>(r->buffer_size, 65536));
  if (a.handle != 0) return fd < 0 ? -EBADF : checked(call(by_descriptor(fd), size));
  return at_file(a, [&](int at) { return call(by_descriptor(at), size); });
}

int64_t Context::get_attribute(const feign_activity& a, int fd) {
  if (a.path2 == 0) return skip("the attribute's name was not recorded");
  const int64_t result = attribute(a, fd, [&](const char* path, size_t size) {
    return ::getxattr(path, text(a.path2), read_buffer, size);
  });
  // What is never set is not there.
  const bool missing = result == -ENODATA && a.result >= 0 && !of_user(a);
  return missing ? emulated(a.result) : result;
}

int64_t Context::list_attributes(const feign_activity& a, int fd) {
  return attribute(
      a, fd, [&](const char* path, size_t size) { return ::listxattr(path, read_buffer, size); });
}

int64_t Context::set_attribute(const feign_activity& a, int fd) {
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

int64_t Context::remove_attribute(const feign_activity& a, int fd) {
  if (!of_user(a)) return skip("only user attributes are changed");
  return attribute(a, fd,
                   [&](const char* path, size_t) { return ::removexattr(path, text(a.path2)); });
}

// file_getattr(2), of Linux 6.17. Another file system, or an older kernel, has no flags.
int64_t Context::get_flags(const feign_activity& a, int fd) {
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

bool Context::of_user(const feign_activity& a) { return strncmp(text(a.path2), "user.", 5) == 0; }

int64_t Context::truncate(const feign_activity& a, int fd) {
  if (a.handle != 0)
    return fd < 0 ? -EBADF : checked(::truncate(by_descriptor(fd), static_cast<off_t>(a.length)));
  if (a.path == 0) return skip("no path was recorded");
  const int at = target(a.path, O_WRONLY | O_NOCTTY | O_NONBLOCK);
  if (at < 0) return at;
  const int64_t result = checked(::ftruncate(at, static_cast<off_t>(a.length)));
  ::close(at);
  return result;
}

int64_t Context::utimens(const feign_activity& a, int fd) {
  timespec times[2];
  for (uint32_t i = 0; i < 2 && a.value_count >= 4; ++i)
    times[i] = {static_cast<time_t>(a.values[2 * i]), static_cast<long>(a.values[2 * i + 1])};
  const timespec* const given = a.value_count >= 4 ? times : nullptr;
  if (a.handle != 0) {
    if (fd < 0) return -EBADF;
    const int64_t result = checked(::futimens(fd, given));
    return result != -EBADF ? result : checked(::utimensat(AT_FDCWD, by_descriptor(fd), given, 0));
  }
  return at_name(a, [&](int at, const char* name, int flags) {
    return flags == AT_EMPTY_PATH ? ::utimensat(AT_FDCWD, by_descriptor(at), given, 0)
                                  : ::utimensat(at, name, given, flags);
  });
}

int64_t Context::statfs(const feign_activity& a) {
  if (a.path == 0) return skip("no path was recorded");
  return at_target(a.path, [&](int at) { return ::fstatfs(at, &space.statfs); });
}

// Entries, as getdents64 gives them, without the root's mark.
int64_t Context::entries(const feign_activity& a, int fd) {
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

int64_t Context::getdents(const feign_activity& a, int fd) {
  const int64_t result = checked(entries(a, fd));
  const bool known = a.result >= 0 && a.result <= INT32_MAX && !(a.marks & FEIGN_NO_RESULT);
  return result < 0 || !known ? result : listed(a, fd, result);
}

// Which entry a buffer of a long listing ends with is the order of the file system; a signal ends
// a buffer early, and some file systems (FUSE) fill none: what lacks in the first of a short listing
// comes with the next ones. Of such a listing it is the sum that has to be right, at its end.
int64_t Context::listed(const feign_activity& a, int fd, int64_t result) {
  constexpr int64_t kLongestEntry = 280;  // getdents(2)
  const std::lock_guard lock(r->listings_mutex);
  const auto at = r->listings.find(a.handle);
  const bool begun = at != r->listings.end();
  if (!begun && result == a.result) return result;
  int64_t lacks = (begun ? at->second : 0) + a.result - result;
  const bool full = std::max(result, a.result) + kLongestEntry > static_cast<int64_t>(a.length);
  const bool reads_on = begun ? a.result == 0 : !full && result > 0;
  for (int64_t more = 1; reads_on && lacks > 0 && more > 0; lacks -= more)
    more = std::max<int64_t>(entries(a, fd), 0);
  const bool goes_on = lacks <= (begun || full ? kLongestEntry : 0) ||
                       (result > 0 && a.result > 0 && (begun || full));
  if (goes_on && (a.result != 0 || lacks == 0)) {
    if (lacks != 0) r->listings[a.handle] = lacks;
    if (lacks == 0 && begun) r->listings.erase(at);
    return a.result;
  }
  if (begun) r->listings.erase(at);
  if (result == a.result) return std::abs(lacks);
  return begun || !reads_on ? result : a.result - lacks;
}

void Context::lists_anew(const feign_activity& a) {
  const std::lock_guard lock(r->listings_mutex);
  r->listings.erase(a.handle);
}

}  // namespace feign
