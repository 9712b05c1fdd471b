// SPDX-License-Identifier: MIT
// Paths that cannot lead out of a directory: openat2(2) with RESOLVE_IN_ROOT.
#pragma once

#include <cstdint>

namespace feign {

// Opens `path` (absolute or relative, `..`, absolute links and all) as if `root_fd` were `/`.
// Returns a descriptor or -errno. Magic links (/proc/self/fd/…) are not followed. [any thread]
int open_in_root(int root_fd, const char* path, uint64_t flags, uint64_t mode);

}  // namespace feign
