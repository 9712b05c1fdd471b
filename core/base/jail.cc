// SPDX-License-Identifier: MIT
#include "base/jail.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace feign {

int open_in_root(int root_fd, const char* path, uint64_t flags, uint64_t mode) {
  open_how how{};
  // Unlike openat(2), openat2(2) refuses flags that it does not know or that mean nothing together.
  constexpr uint64_t kKnown = O_ACCMODE | O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC | O_APPEND |
                              O_NONBLOCK | O_SYNC | O_ASYNC | O_DIRECT | O_LARGEFILE | O_DIRECTORY |
                              O_NOFOLLOW | O_NOATIME | O_CLOEXEC | O_PATH | O_TMPFILE;
  flags &= (flags & O_PATH) ? uint64_t{O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC} : kKnown;
  how.flags = flags;
  how.mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? mode & 01777 : 0;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  for (int tries = 0;; ++tries) {
    const long fd = syscall(SYS_openat2, root_fd, path, &how, sizeof how);
    if (fd >= 0) return static_cast<int>(fd);
    // EAGAIN: a rename elsewhere made it impossible to be sure; the kernel asks to try again.
    if (errno != EAGAIN || tries == 100) return -errno;
  }
}

}  // namespace feign
