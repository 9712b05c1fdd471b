// SPDX-License-Identifier: MIT
#include "prepare/prepare.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "base/jail.h"

namespace feign {
namespace {

constexpr const char* kMark = ".feign";

// A descriptor that is closed.
class Fd {
 public:
  explicit Fd(int fd = -1) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }
  bool ok() const { return fd_ >= 0; }

 private:
  int fd_;
};

class Maker {
 public:
  Maker(int root_fd, const std::string& root) : root_fd_(root_fd), root_(root) {}

  Result<void> begin();
  Result<void> make(const Needed& n);
  Result<void> remove(const Needed& n);
  Prepared done;

 private:
  Error failed(const std::string& what, const std::string& path, int e) {
    Error error = errno_error("prepare " + root_ + ": " + what + " " + path, e);
    if (e == ENOSPC || e == EDQUOT) done.full = error.text();
    return error;
  }
  // The directory that holds `path`, made if it is not there.
  Result<int> parent_of(const std::string& path);
  Result<void> directories(const std::string& path, int depth);
  Result<void> in_the_way(int parent, const std::string& name, const std::string& path);
  int remove_tree(int parent, const char* name, int depth);

  int root_fd_;
  std::string root_;
  bool ours_ = false;  // the root was empty when we first came
  std::string cached_path_;
  Fd cached_;
};

Result<void> Maker::begin() {
  if (faccessat(root_fd_, kMark, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
    ours_ = true;
    return {};
  }
  Fd dir(openat(root_fd_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!dir.ok()) return failed("open", root_, errno);
  const int copy = dup(dir.get());
  if (copy < 0) return failed("open", root_, errno);
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(fdopendir(copy), closedir);
  if (!stream) return failed("open", root_, errno);
  while (const dirent* e = readdir(stream.get())) {
    const std::string_view name = e->d_name;
    // A fresh file system is not quite empty.
    if (name != "." && name != ".." && name != "lost+found") return {};
  }
  const Fd mark(openat(root_fd_, kMark, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644));
  if (!mark.ok()) return failed("make", kMark, errno);
  static constexpr char kText[] =
      "This directory was empty when feign first replayed into it: feign may bring it back to the\n"
      "state that a replay starts from, and removes what a replay left.\n";
  if (write(mark.get(), kText, sizeof kText - 1) < 0) {
    const int e = errno;
    unlinkat(root_fd_, kMark, 0);
    return failed("write", kMark, e);
  }
  ours_ = true;
  return {};
}

Result<void> Maker::directories(const std::string& path, int depth) {
  if (depth > 300) return failed("make directory", path, ELOOP);
  const int there = open_in_root(root_fd_, path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
  if (there >= 0) {
    close(there);
    return {};
  }
  if (there != -ENOENT) return failed("make directory", path, -there);
  const size_t slash = path.rfind('/');
  const std::string above = slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
  const std::string name = path.substr(slash + 1);
  if (auto made = directories(above, depth + 1); !made) return made;
  const Fd parent(open_in_root(root_fd_, above.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC, 0));
  if (!parent.ok()) return failed("make directory", path, -parent.get());
  if (mkdirat(parent.get(), name.c_str(), 0755) == 0) {
    ++done.directories;
    return {};
  }
  if (errno != EEXIST) return failed("make directory", path, errno);
  char target[PATH_MAX];
  const ssize_t length = readlinkat(parent.get(), name.c_str(), target, sizeof target - 1);
  if (length < 0) return failed("make directory", path, EEXIST);
  target[length] = '\0';
  const std::string to = target[0] == '/' ? target : (above == "/" ? "" : above) + "/" + target;
  return directories(clean_path(to), depth + 1);
}

Result<int> Maker::parent_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string above = slash == 0 ? "/" : path.substr(0, slash);
  if (cached_.ok() && cached_path_ == above) return cached_.get();
  if (auto made = directories(above, 0); !made) return std::move(made.error());
  Fd parent(open_in_root(root_fd_, above.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0));
  if (!parent.ok()) return failed("open", above, -open_in_root(root_fd_, above.c_str(), O_PATH, 0));
  cached_ = std::move(parent);
  cached_path_ = above;
  return cached_.get();
}

int Maker::remove_tree(int parent, const char* name, int depth) {
  if (depth > 300) return ELOOP;
  if (unlinkat(parent, name, 0) == 0) return 0;
  if (errno != EISDIR && errno != EPERM) return errno;
  if (unlinkat(parent, name, AT_REMOVEDIR) == 0) return 0;
  if (errno != ENOTEMPTY && errno != EEXIST) return errno;
  const int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return errno;
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(fdopendir(fd), closedir);
  if (!stream) {
    close(fd);
    return ENOMEM;
  }
  while (const dirent* e = readdir(stream.get())) {
    const std::string_view entry = e->d_name;
    if (entry == "." || entry == "..") continue;
    if (const int error = remove_tree(fd, e->d_name, depth + 1); error != 0) return error;
  }
  return unlinkat(parent, name, AT_REMOVEDIR) == 0 ? 0 : errno;
}

Result<void> Maker::in_the_way(int parent, const std::string& name, const std::string& path) {
  if (!ours_)
    return Error(FEIGN_ERR_ARGUMENT,
                 "prepare " + root_ + ": " + path +
                     " is there and must not be, and the directory was not empty "
                     "when it was first used as a root: want an empty directory");
  if (const int e = remove_tree(parent, name.c_str(), 0); e != 0) return failed("remove", path, e);
  ++done.removed;
  cached_ = Fd();
  return {};
}

Result<void> Maker::remove(const Needed& n) {
  const size_t slash = n.path.rfind('/');
  const std::string above = slash == 0 ? "/" : n.path.substr(0, slash);
  const std::string name = n.path.substr(slash + 1);
  if (!cached_.ok() || cached_path_ != above) {
    Fd parent(open_in_root(root_fd_, above.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC, 0));
    if (!parent.ok()) return {};  // no directory, no entry
    cached_ = std::move(parent);
    cached_path_ = above;
  }
  struct stat st {};
  if (fstatat(cached_.get(), name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) return {};
  return in_the_way(cached_.get(), name, n.path);
}

Result<void> Maker::make(const Needed& n) {
  auto parent = parent_of(n.path);
  if (!parent) return std::move(parent.error());
  const std::string name = n.path.substr(n.path.rfind('/') + 1);
  struct stat st {};
  const bool there = fstatat(*parent, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0;
  const mode_t want = n.type == Needed::kFile        ? S_IFREG
                      : n.type == Needed::kDirectory ? S_IFDIR
                                                     : S_IFLNK;
  if (there && n.type == Needed::kDirectory && S_ISLNK(st.st_mode)) return directories(n.path, 0);
  bool fresh = !there;
  if (there && (st.st_mode & S_IFMT) != want) {
    if (auto removed = in_the_way(*parent, name, n.path); !removed) return removed;
    fresh = true;
    parent = parent_of(n.path);
    if (!parent) return std::move(parent.error());
  }
  switch (n.type) {
    case Needed::kDirectory:
      if (!fresh) return {};
      if (mkdirat(*parent, name.c_str(), 0755) != 0) return failed("make directory", n.path, errno);
      ++done.directories;
      return {};
    case Needed::kSymlink:
      if (!fresh) {
        char target[PATH_MAX];
        const ssize_t length = readlinkat(*parent, name.c_str(), target, sizeof target);
        if (length >= 0 && std::string_view(target, static_cast<size_t>(length)) == n.target)
          return {};
        if (auto removed = in_the_way(*parent, name, n.path); !removed) return removed;
        parent = parent_of(n.path);
        if (!parent) return std::move(parent.error());
      }
      if (symlinkat(n.target.c_str(), *parent, name.c_str()) != 0)
        return failed("make link", n.path, errno);
      ++done.links;
      return {};
    default:
      break;
  }
  // Whoever replays must be able to open it, whatever the recorded mode says.
  const mode_t mode = n.mode != 0 ? (n.mode & 0777) | 0600 : 0644;
  const bool good_mode = n.mode == 0 ? (st.st_mode & 0600) == 0600 : (st.st_mode & 0777) == mode;
  if (!fresh && static_cast<uint64_t>(st.st_size) == n.size && good_mode) return {};
  if (!fresh && !ours_)
    return Error(FEIGN_ERR_ARGUMENT,
                 "prepare " + root_ + ": " + n.path + " has " + std::to_string(st.st_size) +
                     " bytes, want " + std::to_string(n.size) +
                     ", and the directory was not empty when it was first used as a root");
  if (!fresh && st.st_nlink > 1) {  // a replay gave it a second name: that one keeps its content
    if (unlinkat(*parent, name.c_str(), 0) != 0) return failed("remove", n.path, errno);
  }
  const Fd file(openat(*parent, name.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, mode));
  if (!file.ok()) return failed("make", n.path, errno);
  if (n.size > static_cast<uint64_t>(INT64_MAX)) return failed("make", n.path, EFBIG);
  if (ftruncate(file.get(), static_cast<off_t>(n.size)) != 0) return failed("make", n.path, errno);
  if ((!fresh && !good_mode) || n.mode != 0)
    if (fchmod(file.get(), mode) != 0) return failed("chmod", n.path, errno);
  ++done.files;
  done.bytes += n.size;
  return {};
}

}  // namespace

Result<Prepared> prepare(int root_fd, const std::string& root, const std::vector<Needed>& needed,
                         const std::function<bool(uint64_t)>& go_on) {
  Maker maker(root_fd, root);
  if (auto begun = maker.begin(); !begun) return std::move(begun.error());
  // Links first: what lies behind one is then made behind it. Then the rest, parents before
  // children.
  using Step = Result<void> (Maker::*)(const Needed&);
  const auto pass = [&](auto wanted, Step step) -> Result<void> {
    uint64_t count = 0;
    for (const Needed& n : needed) {
      if (!wanted(n.type)) continue;
      if ((++count & 255) == 0 && !go_on(count)) return {};
      if (n.path.empty() || n.path[0] != '/' || n.path == "/" || clean_path(n.path) != n.path ||
          n.path.find('\0') != std::string::npos)
        return Error(FEIGN_ERR_ARGUMENT,
                     "prepare " + root + ": \"" + n.path + "\": want a clean absolute path");
      if (auto made = (maker.*step)(n); !made) return made;
    }
    return {};
  };
  auto made = pass([](auto t) { return t == Needed::kAbsent; }, &Maker::remove);
  if (made) made = pass([](auto t) { return t == Needed::kSymlink; }, &Maker::make);
  if (made)
    made = pass([](auto t) { return t == Needed::kFile || t == Needed::kDirectory; }, &Maker::make);
  if (!made && maker.done.full.empty()) return std::move(made.error());
  return maker.done;
}

}  // namespace feign
