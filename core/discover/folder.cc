// SPDX-License-Identifier: MIT
#include "discover/folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/input.h"

namespace feign::discover {
namespace {

namespace fs = std::filesystem;

constexpr const char *kPart = ".part.", *kOwner = "owner";

// -1: somebody has it, or there is none.
int lock(const std::string& folder, int flags) {
  const int fd = open((folder + "/" + kOwner).c_str(), O_RDWR | O_CLOEXEC | flags, 0600);
  if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
  close(fd);
  return -1;
}

}  // namespace

Folder::~Folder() {
  std::error_code ignored;
  if (!part_.empty()) fs::remove_all(part_, ignored);
  if (lock_ >= 0) close(lock_);
}

Result<void> Folder::make(const std::string& name) {
  std::error_code e;
  const fs::path target = fs::absolute(name, e).lexically_normal();
  name_ = target.has_filename() ? target : target.parent_path();
  if (fs::exists(name_, e) && !(fs::is_directory(name_, e) && fs::is_empty(name_, e)))
    return Error(FEIGN_ERR_ARGUMENT,
                 "-o " + name + ": is there already, want a new or empty directory");
  for (const auto& there : fs::directory_iterator(name_.parent_path(), e)) {
    const std::string path = there.path();
    if (!path.starts_with(name_.string() + kPart) ||
        path.size() != name_.string().size() + strlen(kPart) + 6)
      continue;
    const int left = lock(path, 0);
    std::error_code ignored;
    if (left >= 0) fs::remove_all(path, ignored);
    if (left >= 0) close(left);
  }
  std::string part = name_.string() + kPart + "XXXXXX";
  if (mkdtemp(part.data()) == nullptr) return errno_error("make directory " + part, errno);
  part_ = part;
  lock_ = lock(part_, O_CREAT);
  fs::permissions(part_, fs::perms(0755), e);
  return {};
}

Result<void> Folder::finish() {
  unlink(path(kOwner).c_str());
  if (rename(part_.c_str(), name_.c_str()) != 0)
    return errno_error("rename " + part_.string() + " to " + name_.string(), errno);
  part_.clear();
  return {};
}

}  // namespace feign::discover
