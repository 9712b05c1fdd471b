// SPDX-License-Identifier: MIT
#include "base/jail.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/landlock.h>
#include <linux/openat2.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

namespace feign {
namespace {

// What openat2 does with RESOLVE_IN_ROOT, by hand: each directory is opened from the one before
// without following links; a link's text takes its place; ".." is the directory before, which is
// known, so that nothing that is renamed meanwhile can lead out.
class Walk {
 public:
  explicit Walk(int root) : root_(root) {}
  ~Walk() {
    for (const int fd : open_) ::close(fd);
  }

  int open(const char* path, uint64_t flags, uint64_t mode, uint64_t resolve) {
    constexpr int kMostLinks = 40;
    std::string todo = path;
    if (todo.empty()) return -ENOENT;
    int links = 0;
    size_t i = 0;
    while (true) {
      while (i < todo.size() && todo[i] == '/') ++i;
      const size_t end = std::min(todo.find('/', i), todo.size());
      const std::string part = todo.substr(i, end - i);
      const bool slash = end < todo.size();
      const bool last = todo.find_first_not_of('/', end) == std::string::npos;
      i = end;
      if (part.empty() || part == "." || part == "..") {
        if (part == ".." && !open_.empty()) {
          ::close(open_.back());
          open_.pop_back();
        }
        if (!last) continue;
        return checked(::openat(here(), ".", static_cast<int>(flags & ~uint64_t{O_NOFOLLOW}),
                                static_cast<mode_t>(mode)));
      }
      // A link in the middle is always followed, one at the end unless the flags say otherwise.
      const bool keep = last && (((flags & O_NOFOLLOW) && !slash) ||
                                 (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL));
      char target[PATH_MAX];
      const ssize_t length =
          keep ? -1 : ::readlinkat(here(), part.c_str(), target, sizeof target - 1);
      if (length >= 0) {
        if (++links > kMostLinks || (resolve & RESOLVE_NO_SYMLINKS)) return -ELOOP;
        // /proc's links lead where their text does not say: never followed.
        struct statfs fs {};
        if (::fstatfs(here(), &fs) == 0 && fs.f_type == 0x9fa0) return -ELOOP;
        target[length] = '\0';
        todo = std::string(target, static_cast<size_t>(length)) + todo.substr(i);
        i = 0;
        if (todo.empty()) return -ENOENT;
        if (todo[0] == '/') {
          for (const int fd : open_) ::close(fd);
          open_.clear();
        }
        continue;
      }
      if (last) {
        const uint64_t how = flags | O_NOFOLLOW | (slash ? uint64_t{O_DIRECTORY} : 0);
        return checked(
            ::openat(here(), part.c_str(), static_cast<int>(how), static_cast<mode_t>(mode)));
      }
      const int next =
          ::openat(here(), part.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
      if (next < 0) return -errno;
      open_.push_back(next);
    }
  }

 private:
  static int checked(int fd) { return fd < 0 ? -errno : fd; }
  int here() const { return open_.empty() ? root_ : open_.back(); }
  int root_;
  std::vector<int> open_;  // the directories from the root to here
};

std::atomic<bool> g_has_openat2{true};

}  // namespace

int open_in_root(int root_fd, const char* path, uint64_t flags, uint64_t mode, uint64_t resolve) {
  // Unlike openat(2), openat2(2) refuses flags that it does not know or that mean nothing together.
  constexpr uint64_t kKnown = O_ACCMODE | O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC | O_APPEND |
                              O_NONBLOCK | O_SYNC | O_ASYNC | O_DIRECT | O_LARGEFILE | O_DIRECTORY |
                              O_NOFOLLOW | O_NOATIME | O_CLOEXEC | O_PATH | O_TMPFILE;
  flags &= (flags & O_PATH) ? uint64_t{O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC} : kKnown;
  // O_TMPFILE holds O_DIRECTORY: that alone makes nothing.
  const bool makes = (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
  mode = makes ? mode & 01777 : 0;
  // One component at a time also reaches what lies deeper than a path may be long.
  if (!g_has_openat2.load(std::memory_order_relaxed) || strlen(path) >= PATH_MAX)
    return Walk(root_fd).open(path, flags, mode, resolve);
  open_how how{};
  how.flags = flags;
  how.mode = mode;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | resolve;
  for (int tries = 0;; ++tries) {
    const long fd = syscall(SYS_openat2, root_fd, path, &how, sizeof how);
    if (fd >= 0) return static_cast<int>(fd);
    if (errno == ENOSYS || (errno == EPERM && tries == 0)) {
      // Before Linux 5.6, or forbidden by a sandbox that does not know it: then a call that cannot
      // be is refused in the same way.
      const int error = errno;
      if (error == EPERM && (syscall(SYS_openat2, -1, "", nullptr, size_t{0}), errno != EPERM))
        return -EPERM;
      g_has_openat2.store(false, std::memory_order_relaxed);
      return Walk(root_fd).open(path, flags, mode, resolve);
    }
    // EAGAIN: a rename elsewhere made it impossible to be sure; the kernel asks to try again.
    if (errno != EAGAIN || tries == 100) return -errno;
  }
}

bool write_below_only(int root_fd) {
  const long version =
      syscall(SYS_landlock_create_ruleset, nullptr, size_t{0}, LANDLOCK_CREATE_RULESET_VERSION);
  if (version < 1) return false;
  uint64_t rights = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |
                    LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR |
                    LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
                    LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |
                    LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM;
  constexpr uint64_t kRefer = 1u << 13, kTruncate = 1u << 14;  // of versions 2 and 3
  // Without REFER, a rename from one directory to another is always forbidden.
  if (version < 2) return false;
  rights |= kRefer;
  if (version >= 3) rights |= kTruncate;
  landlock_ruleset_attr attr{};
  attr.handled_access_fs = rights;
  const int rules = static_cast<int>(
      syscall(SYS_landlock_create_ruleset, &attr, sizeof attr.handled_access_fs, 0u));
  if (rules < 0) return false;
  landlock_path_beneath_attr below{};
  below.allowed_access = rights;
  below.parent_fd = root_fd;
  const bool good =
      syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &below, 0u) == 0 &&
      prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
      syscall(SYS_landlock_restrict_self, rules, 0u) == 0;
  ::close(rules);
  return good;
}

}  // namespace feign
