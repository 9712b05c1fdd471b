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
