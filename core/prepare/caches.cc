// SPDX-License-Identifier: MIT
#include "prepare/caches.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

namespace feign {
namespace {

bool drop_all() {
  const int fd = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool good = write(fd, "3", 1) == 1;
  close(fd);
  return good;
}

// The pages of all files below an open directory, which is closed. Links are not followed. Whether
// all of them could be opened.
bool drop_files(int top) {
  // As names from the top, not as descriptors: a tree may be deep.
  std::vector<std::string> folders{"."};
  bool all = true;
  while (!folders.empty()) {
    const std::string folder = std::move(folders.back());
    folders.pop_back();
    const int fd = openat(top, folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR* dir = fd >= 0 ? fdopendir(fd) : nullptr;
    if (dir == nullptr) {
      if (fd >= 0) close(fd);
      all = false;
      continue;
    }
    while (const dirent* entry = readdir(dir)) {
      if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
      const std::string name = folder + "/" + entry->d_name;
      struct stat st {};
      if (fstatat(top, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) continue;
      if (S_ISDIR(st.st_mode)) folders.push_back(name);
      if (!S_ISREG(st.st_mode)) continue;
      const int file = openat(top, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
      if (file < 0 || posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED) != 0) all = false;
      if (file >= 0) close(file);
    }
    closedir(dir);
  }
  close(top);
  return all;
}

}  // namespace

bool parse_drop_caches(const std::string& text, DropCaches& what) {
  if (text != "all" && text != "files") return false;
  what = text == "all" ? DropCaches::kAll : DropCaches::kFiles;
  return true;
}

Result<std::string> drop_caches(int root_fd, const std::string& root, DropCaches what) {
  const int top = openat(root_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (top < 0) return errno_error("open " + root, errno);
  if (syncfs(top) != 0) {  // what is dirty cannot be dropped
    const int e = errno;
    close(top);
    return errno_error("sync " + root, e);
  }
  if (what == DropCaches::kAll && drop_all()) {
    close(top);
    return std::string("all");
  }
  return std::string(drop_files(top) ? "files" : "some files");
}

}  // namespace feign
