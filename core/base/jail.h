// SPDX-License-Identifier: MIT
// Opening by path below a root, from which nothing leads out; and forbidding this thread to write
// anywhere else.
#pragma once

#include <cstdint>

namespace feign {

// openat2(2) with RESOLVE_IN_ROOT, or, where the kernel does not have it, the same by opening one
// component after the other. `flags` are open(2)'s; flags that openat2 would refuse are dropped.
// `resolve` may hold RESOLVE_NO_SYMLINKS and RESOLVE_NO_XDEV, of which the second is openat2's
// alone. A descriptor, or -errno. [any thread]
int open_in_root(int root_fd, const char* path, uint64_t flags, uint64_t mode,
                 uint64_t resolve = 0);

// From now on this thread can make, change and remove files below the root only (landlock(7)). It
// is the second wall: nothing else in the program relies on it. False where the kernel cannot.
// [the thread that is meant]
bool write_below_only(int root_fd);

}  // namespace feign
