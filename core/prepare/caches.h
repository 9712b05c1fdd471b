// SPDX-License-Identifier: MIT
// A cold start: what the kernel holds in memory of the files below a root is given up.
#pragma once

#include <string>

#include "base/error.h"

namespace feign {

enum class DropCaches { kNo, kAll, kFiles };
// "all" or "files"; false if it is neither.
bool parse_drop_caches(const std::string& text, DropCaches& what);

// Writes back what is dirty below the root's file system; then kAll drops the whole machine's page,
// name and inode caches, where that is permitted; else, and for kFiles, the pages of every file
// below the root (names and inodes stay). The answer is what was done: "all", "files", or "some
// files" where some could not be opened.
Result<std::string> drop_caches(int root_fd, const std::string& root, DropCaches what);

}  // namespace feign
