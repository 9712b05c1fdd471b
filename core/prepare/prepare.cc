// SPDX-License-Identifier: MIT
#include "prepare/prepare.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cinttypes>
#include <climits>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

#include "base/jail.h"
#include "base/path.h"
#include "base/umask.h"

namespace feign {
namespace {

constexpr char kMarkText[] =
    "This directory was empty when feign first replayed into it: feign may bring it back to the\n"
    "state that a replay starts from, and removes what a replay left. What that may be:\n";

// What the mark calls what a replay may leave: see Maker::remove_left().
constexpr char kLeftTree = 't', kLeftDirectory = 'd', kLeftFile = 'f';

// What a root's mark says of its state, for a list of what is needed: a line of one length. Behind
// it come the paths that were prepared or that a replay may have made, one "TYPE PATH" each, with a
// NUL behind it (decision 5).
constexpr size_t kStateLength = 48, kListAt = sizeof kMarkText - 1 + kStateLength;
std::string state_of(const std::vector<Needed>& needed, const PrepareOptions& options) {
  uint64_t h = 0xcbf29ce484222325u;
  const auto mix = [&](const void* p, size_t n) {
    for (size_t i = 0; i < n; ++i)
      h = (h ^ static_cast<const unsigned char*>(p)[i]) * 0x100000001b3u;
  };
  const auto number = [&](uint64_t v) { mix(&v, sizeof v); };
  const auto text = [&](const std::string& t) {
    number(t.size());
    mix(t.data(), t.size());
  };
  number(options.content.kind);
  number(options.content.ratio);
  for (const Needed& n : needed) {
    for (const uint64_t v : {uint64_t{n.type}, uint64_t{n.changed}, uint64_t{n.mode},
                             uint64_t{n.denied}, n.size, uint64_t{n.data.size()}})
      number(v);
    text(n.path);
    text(n.target);
    for (const auto& [offset, length] : n.data) {
      number(offset);
      number(length);
    }
    for (const auto& [name, length] : n.attributes) {
      text(name);
      number(length);
    }
  }
  char out[kStateLength + 1];
  snprintf(out, sizeof out, "prepared %20zu %016" PRIx64 " \n", needed.size(), h);
  return out;
}

// What the state of a root is called that is none: a replay is being prepared.
std::string no_state() { return std::string(kStateLength - 1, ' ') + "\n"; }

constexpr int kNewFile = O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;

constexpr mode_t kUsualFile = 0644, kUsualDirectory = 0755;

class Maker {
 public:
  Maker(int root_fd, const std::string& root, const PrepareOptions& options)
      : root_fd_(root_fd), root_(root), options_(options) {}
  // Another one of the same root, for another thread.
  Maker also() const {
    Maker m(root_fd_, root_, options_);
    m.ours_ = ours_;
    m.known_ = known_;
    m.empty_ = empty_;
    m.umask_ = umask_;
    return m;
  }

  Result<void> begin();
  bool ours() const { return ours_; }
  // Whether the root was brought to this state, and only a replay of the same happened since.
  bool was_in(const std::string& state) const;
  void trust() { known_ = true; }
  bool seems_whole(const std::vector<Needed>& needed) const;
  Result<void> set_state(const std::string& state);
  // Removes what other replays left that is not needed now, and notes what this one may leave.
  Result<void> succeed(const std::vector<Needed>& needed);
  Result<void> make(const Needed& n);
  Result<void> link(const Needed& n);
  Result<void> remove(const Needed& n);
  // One of these. A trace does not tell all, and may ask for a file here and for what lies below it
  // there: in a root that is ours that is left out, and counted.
  Result<void> attempt(Result<void> (Maker::*step)(const Needed&), const Needed& n) {
    impossible_ = false;
    auto result = (this->*step)(n);
    if (result || !impossible_ || !ours_) return result;
    if (done.left_out++ == 0) done.why = result.error().text();
    cached_ = Fd();
    return {};
  }
  Prepared done;

 private:
  std::string mark_text() const;
  // Whoever replays must be able to open it, whatever the recorded mode says, unless that decided a
  // result.
  mode_t mode_of(const Needed& n) const {
    const bool directory = n.type == Needed::kDirectory;
    const mode_t least = directory ? 0700 : 0600, told = n.mode & 0777;
    const bool made_so = n.denied == 0 && (directory || n.type == Needed::kFile);
    const mode_t usual = (directory ? kUsualDirectory : kUsualFile) & ~(made_so ? umask_ : 0);
    return ((told != 0 ? told : usual) | least) & ~(directory ? 0 : (n.denied & 7) * 0111);
  }
  Result<bool> is_empty(std::string_view but_for) const;
  Result<void> lock_mark();
  Error failed(const std::string& what, const std::string& path, int e) {
    Error error = errno_error("prepare " + root_ + ": " + what + " " + path, e);
    if (e == ENOSPC || e == EDQUOT) done.full = error.text();
    // The last two: what is below a name that is to be a file, made by another thread meanwhile.
    impossible_ = e == ENOTDIR || e == EISDIR || e == EEXIST || e == ELOOP || e == ENAMETOOLONG ||
                  e == EFBIG || e == ENOTEMPTY || e == ENOENT;
    return error;
  }
  // The directory that holds `path`, made if it is not there.
  Result<int> parent_of(const std::string& path);
  Result<Fd> directories(const std::string& path, int depth);
  Result<void> in_the_way(int parent, const std::string& name, const std::string& path);
  // Where something is to be made, and what has the name now: nothing, if it is to be fresh.
  struct Place {
    int parent;
    std::string name;
    struct stat st;
    bool fresh;
    const char* c_str() const { return name.c_str(); }
  };
  Result<void> clear(Place& at, const Needed& n);
  Result<void> make_link(Place& at, const Needed& n);
  Result<bool> make_special(Place& at, const Needed& n, mode_t type, mode_t mode);
  Result<void> make_file(const Place& at, const Needed& n, Fd file, mode_t mode);
  Result<std::string> left() const;
  Result<void> remove_left(char type, const std::string& path);
  Result<void> content(int fd, const Needed& n);
  void directory(const Place& at, const Needed& n) const;

  int root_fd_;
  std::string root_;
  PrepareOptions options_;
  bool known_ = false;  // the mark says that all is as we made it, but for what the trace changes
  std::vector<char> buffer_;
  bool ours_ = false;   // the root was empty when we first came
  bool empty_ = false;  // it was empty just now: what is there was made since
  mode_t umask_ = 0;
  bool impossible_ = false;  // why the last step failed
  std::string cached_path_;
  Fd cached_;
  std::string gone_;  // a directory that is not there
};

// Whether nothing is in the root, but for one name.
Result<bool> Maker::is_empty(std::string_view but_for) const {
  const int dir = openat(root_fd_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(dir < 0 ? nullptr : fdopendir(dir), closedir);
  if (!stream) return errno_error("prepare " + root_ + ": open " + root_, errno);
  while (const dirent* e = readdir(stream.get())) {
    const std::string_view name = e->d_name;
    // A fresh file system is not quite empty.
    if (name != "." && name != ".." && name != "lost+found" && name != but_for) return false;
  }
  return true;
}

// Whoever else is at this root has its mark locked: what one replay makes, another would remove.
// Where a file system has no locks, nothing tells. (The mark is read and written by this descriptor
// alone: a lock may keep others from both; flock(2), CIFS.)
Result<void> Maker::lock_mark() {
  if (flock(done.held.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return {};
  return Error(FEIGN_ERR_ARGUMENT, "prepare " + root_ +
                                       ": another replay is going on in it, whose files this one "
                                       "would remove: want a directory of its own");
}

Result<void> Maker::begin() {
  umask_ = umask_now();
  constexpr int kHow = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  Fd& mark = done.held;
  mark = Fd(openat(root_fd_, kRootMark, kHow));
  const bool there = mark.ok();
  if (!there && (errno == EACCES || errno == EROFS)) return failed("open", kRootMark, errno);
  if (there)
    if (auto locked = lock_mark(); !locked) return locked;
  // By what it says: a trace may make a file of that name, too, in somebody else's directory.
  const std::string text = mark_text();
  ours_ = text.starts_with(kMarkText);
  if (ours_) return {};
  // Where it says nothing, somebody is about to write it, or died at that.
  auto empty = is_empty(there && text.empty() ? kRootMark : "");
  if (!empty) return std::move(empty.error());
  empty_ = *empty;
  if (!empty_) {
    mark = Fd();
    return {};
  }
  if (!there) {
    mark = Fd(openat(root_fd_, kRootMark, kHow | O_CREAT, 0644));
    if (!mark.ok()) return failed("make", kRootMark, errno);
    if (auto locked = lock_mark(); !locked) return locked;
  }
  if (pwrite(mark.get(), kMarkText, sizeof kMarkText - 1, 0) < 0) {
    const int e = errno;
    if (!there) unlinkat(root_fd_, kRootMark, 0);
    return failed("write", kRootMark, e);
  }
  ours_ = true;
  return {};
}

bool Maker::was_in(const std::string& state) const {
  return ours_ && mark_text() == kMarkText + state;
}

// The mark's text up to its list; empty if there is none, or something else has its name.
std::string Maker::mark_text() const {
  char text[kListAt];
  const ssize_t length = pread(done.held.get(), text, sizeof text, 0);
  return {text, static_cast<size_t>(std::max<ssize_t>(length, 0))};
}

// Whether what the mark says seems to be true: somebody may have emptied the root but for the mark.
// Looks at what lies in the root itself, and at some of the rest.
bool Maker::seems_whole(const std::vector<Needed>& needed) const {
  constexpr size_t kLooks = 100;
  const size_t step = needed.size() / kLooks + 1;
  for (size_t i = 0; i < needed.size(); ++i) {
    const Needed& n = needed[i];
    if (n.changed || n.type == Needed::kAbsent) continue;
    if (i % step != 0 && n.path.find('/', 1) != std::string::npos) continue;
    const Fd at(open_in_root(root_fd_, n.path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC, 0));
    struct stat st {};
    if (!at.ok() || fstat(at.get(), &st) != 0) return false;
    if (n.type == Needed::kFile &&
        (!S_ISREG(st.st_mode) || static_cast<uint64_t>(st.st_size) != n.size))
      return false;
  }
  return true;
}

Result<void> Maker::set_state(const std::string& state) {
  if (!ours_) return {};
  const auto start = static_cast<off_t>(sizeof kMarkText - 1);
  const ssize_t n = pwrite(done.held.get(), state.data(), state.size(), start);
  if (n != static_cast<ssize_t>(state.size()))
    return failed("write", kRootMark, n < 0 ? errno : EIO);
  return {};
}

// The mark's list of what was prepared or may have been made.
Result<std::string> Maker::left() const {
  std::string list;
  char part[1 << 13];
  off_t at = kListAt;
  ssize_t n = -1;
  while ((n = pread(done.held.get(), part, sizeof part, at)) > 0) {
    list.append(part, static_cast<size_t>(n));
    at += n;
  }
  if (n < 0) return errno_error("prepare " + root_ + ": read " + kRootMark, errno);
  return list;
}

// Removes a name. A directory that is not empty stays: ENOTEMPTY.
int remove_name(int parent, const char* name) {
  if (unlinkat(parent, name, 0) == 0) return 0;
  if (errno != EISDIR && errno != EPERM) return errno;
  if (unlinkat(parent, name, AT_REMOVEDIR) == 0) return 0;
  return errno == EEXIST ? ENOTEMPTY : errno;
}

// However deep it is: only the directory that is being emptied is open, and ".." leads back.
int remove_tree(int top, const char* name) {
  struct Level {
    std::string name;
    struct stat above;                // the directory that it is in
    std::vector<std::string> within;  // directories that are not empty
  };
  std::vector<Level> levels;
  Fd here;  // the last of them
  const auto enter = [&](int parent, std::string directory) -> int {
    Level level{std::move(directory), {}, {}};
    if (fstat(parent, &level.above) != 0) return errno;
    Fd fd(openat(parent, level.name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!fd.ok()) return errno;
    const int copy = dup(fd.get());
    if (copy < 0) return errno;
    const std::unique_ptr<DIR, int (*)(DIR*)> stream(fdopendir(copy), closedir);
    if (!stream) {
      close(copy);
      return ENOMEM;
    }
    while (const dirent* e = readdir(stream.get())) {
      const std::string_view entry = e->d_name;
      if (entry == "." || entry == "..") continue;
      const int error = remove_name(fd.get(), e->d_name);
      if (error == ENOTEMPTY)
        level.within.emplace_back(entry);
      else if (error != 0)
        return error;
    }
    levels.push_back(std::move(level));
    here = std::move(fd);
    return 0;
  };

  int error = remove_name(top, name);
  if (error == ENOTEMPTY) error = enter(top, name);
  while (error == 0 && !levels.empty()) {
    Level& last = levels.back();
    if (!last.within.empty()) {
      const std::string next = std::move(last.within.back());
      last.within.pop_back();
      error = enter(here.get(), next);
      continue;
    }
    Fd above(levels.size() == 1 ? dup(top)
                                : openat(here.get(), "..", O_PATH | O_DIRECTORY | O_CLOEXEC));
    struct stat st;
    if (!above.ok() || fstat(above.get(), &st) != 0) return errno;
    if (st.st_dev != last.above.st_dev || st.st_ino != last.above.st_ino)
      return EBUSY;  // somebody moved it meanwhile
    if (unlinkat(above.get(), last.name.c_str(), AT_REMOVEDIR) != 0) return errno;
    here = std::move(above);
    levels.pop_back();
  }
  return error;
}

// What a replay made goes with all that is in it; a directory that was prepared goes if nothing is
// in it that nobody here knows of.
Result<void> Maker::remove_left(char type, const std::string& path) {
  if (path.size() < 2 || path[0] != '/' || clean_path(path) != path) return {};
  const size_t slash = path.rfind('/');
  const std::string above = slash == 0 ? "/" : path.substr(0, slash), name = path.substr(slash + 1);
  const Fd parent(open_in_root(root_fd_, above.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC, 0));
  if (!parent.ok() || (slash == 0 && name == kRootMark)) return {};
  int e = 0;
  if (type == kLeftTree)
    e = remove_tree(parent.get(), name.c_str());
  else if (unlinkat(parent.get(), name.c_str(), type == kLeftDirectory ? AT_REMOVEDIR : 0) != 0)
    e = errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR || errno == EISDIR ||
                errno == EPERM || errno == EBUSY
            ? ENOENT
            : errno;
  if (e == 0) ++done.removed;
  // (What is too long to be removed could not be made, either.)
  const bool gone = e == 0 || e == ENOENT || e == ENAMETOOLONG;
  return gone ? Result<void>() : failed("remove", path, e);
}

Result<void> Maker::succeed(const std::vector<Needed>& needed) {
  if (!ours_) return {};
  std::map<std::string_view, char> now;  // with the directories above
  for (const Needed& n : needed) {
    const bool made = n.type == Needed::kAbsent || (n.changed && n.type != Needed::kDirectory);
    now[n.path] = made ? kLeftTree : n.type == Needed::kDirectory ? kLeftDirectory : kLeftFile;
    for (std::string_view above = n.path; n.type != Needed::kAbsent;) {
      above = above.substr(0, above.rfind('/'));
      if (above.empty() || !now.try_emplace(above, kLeftDirectory).second) break;
    }
  }
  auto list = left();
  if (!list) return std::move(list.error());
  // Names sort before what is below them: the last first, so that directories are empty by then.
  for (size_t end = list->rfind('\0'); end != std::string::npos && end != 0;) {
    const size_t before = list->rfind('\0', end - 1);
    const size_t from = before == std::string::npos ? 0 : before + 1;
    const std::string path = list->substr(std::min(from + 2, end), end - std::min(from + 2, end));
    char was = (*list)[from];
    const auto at = now.find(path);
    // In a directory that a replay made lies what nobody has listed. Of what was prepared, another
    // thing may have the name by now: a link, which may lead anywhere.
    const bool directory = at != now.end() && at->second == kLeftDirectory;
    if (directory && was == kLeftDirectory) was = kLeftFile;
    if (at == now.end() || directory)
      if (auto removed = remove_left(was, path); !removed) return removed;
    end = before;
  }
  std::string text;
  for (const auto& [path, type] : now) {
    text += type;
    text += ' ';
    text += path;
    text += '\0';
  }
  const int mark = done.held.get();
  const auto put = [mark](const std::string& entries) {
    if (ftruncate(mark, kListAt) != 0) return errno;
    for (size_t at = 0; at < entries.size();) {
      const ssize_t n =
          pwrite(mark, entries.data() + at, entries.size() - at, static_cast<off_t>(kListAt + at));
      if (n <= 0) return n < 0 ? errno : EIO;
      at += static_cast<size_t>(n);
    }
    return 0;
  };
  const int e = put(text);
  if (e == 0) return {};
  (void)put(*list);  // for which there was room before
  return failed("write", kRootMark, e);
}

// Takes the attributes away that a replay set.
void no_attributes(int fd) {
  const ssize_t most = flistxattr(fd, nullptr, 0);
  if (most <= 0) return;
  std::string names(static_cast<size_t>(most), '\0');
  const ssize_t size = flistxattr(fd, names.data(), names.size());
  for (ssize_t at = 0; at < size;) {
    const char* const name = names.c_str() + at;
    if (strncmp(name, "user.", 5) == 0) (void)fremovexattr(fd, name);
    at += static_cast<ssize_t>(strlen(name)) + 1;
  }
}

// Not every file system has them; then the replay will show it.
void attributes(int fd, const Needed& n) {
  for (const auto& [name, length] : n.attributes) {
    const std::string value(static_cast<size_t>(std::min<uint64_t>(length, 65536)), 'x');
    (void)fsetxattr(fd, name.c_str(), value.data(), value.size(), 0);
  }
}

// What is written of a file: of one of which the trace tells where it has holes, all but these.
uint64_t bytes_to_write(const Needed& n, const Content& content) {
  if (n.type != Needed::kFile || !n.target.empty()) return 0;
  if (n.data.empty()) return content.kind != Content::kSparse ? n.size : 0;
  uint64_t bytes = 0;
  for (const auto& [offset, length] : n.data)
    if (__builtin_add_overflow(bytes, std::min(length, n.size - std::min(offset, n.size)), &bytes))
      return UINT64_MAX;
  return bytes;
}

// Fills a file that is as long as it has to be, and a hole.
Result<void> Maker::content(int fd, const Needed& n) {
  std::vector<std::pair<uint64_t, uint64_t>> ranges = n.data;
  if (ranges.empty() && options_.content.kind != Content::kSparse) ranges.emplace_back(0, n.size);
  constexpr size_t kChunk = size_t{1} << 20;
  uint64_t seed = std::hash<std::string>{}(n.path) | 1;
  for (const auto& [offset, length] : ranges) {
    uint64_t at = std::min(offset, n.size);
    const uint64_t end = at + std::min(length, n.size - at);
    if (buffer_.empty() && at < end) buffer_.resize(kChunk);
    while (at < end) {
      const size_t want = static_cast<size_t>(std::min<uint64_t>(kChunk, end - at));
      options_.content.fill(buffer_.data(), want, seed++);
      const ssize_t wrote = pwrite(fd, buffer_.data(), want, static_cast<off_t>(at));
      if (wrote <= 0) return failed("write", n.path, wrote < 0 ? errno : EIO);
      at += static_cast<uint64_t>(wrote);
    }
  }
  attributes(fd, n);
  return {};
}

// Gives a directory that is there the attributes that it had, and no others if a replay set some.
void Maker::directory(const Place& at, const Needed& n) const {
  if (!at.fresh && !ours_) return;
  const bool stale = !at.fresh && (n.changed || !known_);
  const mode_t was = at.fresh ? kUsualDirectory & ~umask_ : at.st.st_mode & 0777;
  const mode_t mode = mode_of(n);
  const bool other_mode = mode != was && n.path != "/";
  if (!stale && !other_mode && n.attributes.empty()) return;
  const Fd made(openat(at.parent, at.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!made.ok()) return;  // one that may not be read
  if (stale) no_attributes(made.get());
  struct stat st;
  if (other_mode && fstat(made.get(), &st) == 0)  // a group that what is made in it has is kept
    (void)fchmod(made.get(), (st.st_mode & 07000) | mode);
  attributes(made.get(), n);
}

// Opens a directory; makes it, and those above it, if they are not there.
Result<Fd> Maker::directories(const std::string& path, int depth) {
  if (depth > 300) return failed("make directory", path, ELOOP);
  Fd there(open_in_root(root_fd_, path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC, 0));
  if (there.ok()) return there;
  if (there.get() != -ENOENT) return failed("make directory", path, -there.get());
  const size_t slash = path.rfind('/');
  const std::string above = slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
  const std::string name = path.substr(slash + 1);
  auto parent = directories(above, depth + 1);
  if (!parent) return parent;
  const bool fresh = mkdirat(parent->get(), name.c_str(), kUsualDirectory) == 0;
  if (!fresh && errno != EEXIST) return failed("make directory", path, errno);
  if (fresh) ++done.directories;
  // (Another thread may have made it.)
  Fd made(openat(parent->get(), name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (made.ok()) return made;
  if (fresh) return failed("open", path, errno);
  char target[PATH_MAX];
  const ssize_t length = readlinkat(parent->get(), name.c_str(), target, sizeof target - 1);
  if (length < 0) return failed("make directory", path, EEXIST);
  // What ".." leads up from has to be there, too.
  std::string_view text(target, static_cast<size_t>(length));
  std::string to = text.starts_with('/') || above == "/" ? "" : above;
  for (std::string_view part; !(part = take_component(text)).empty();) {
    if (part == "..") {
      if (!to.empty())
        if (auto made = directories(to, depth + 1); !made) return made;
      to.resize(std::min(to.rfind('/'), to.size()));
    } else {
      to += '/';
      to += part;
    }
  }
  return directories(to.empty() ? "/" : to, depth + 1);
}

Result<int> Maker::parent_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string above = slash == 0 ? "/" : path.substr(0, slash);
  if (cached_.ok() && cached_path_ == above) return cached_.get();
  // Mostly it lies in the last one: what is deep is not looked up from the root again for each.
  const size_t last = above.rfind('/');
  if (cached_.ok() && last != 0 && above.compare(0, last, cached_path_) == 0 &&
      above.size() > last + 1) {
    Fd below(openat(cached_.get(), above.c_str() + last + 1,
                    O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (below.ok()) {
      cached_ = std::move(below);
      cached_path_ = above;
      return cached_.get();
    }
  }
  auto parent = directories(above, 0);
  if (!parent) return std::move(parent.error());
  cached_ = std::move(*parent);
  cached_path_ = above;
  return cached_.get();
}

Result<void> Maker::in_the_way(int parent, const std::string& name, const std::string& path) {
  if (!ours_)
    return Error(FEIGN_ERR_ARGUMENT,
                 "prepare " + root_ + ": " + path +
                     " is there and must not be, and the directory was not empty "
                     "when it was first used as a root: want an empty directory");
  if (const int e = remove_tree(parent, name.c_str()); e != 0) return failed("remove", path, e);
  ++done.removed;
  cached_ = Fd();
  return {};
}

Result<void> Maker::remove(const Needed& n) {
  if (empty_) return {};
  const size_t slash = n.path.rfind('/');
  const std::string above = slash == 0 ? "/" : n.path.substr(0, slash);
  const std::string name = n.path.substr(slash + 1);
  if (!cached_.ok() || cached_path_ != above) {
    if (!gone_.empty() && (above == gone_ || above.starts_with(gone_ + "/"))) return {};
    Fd parent(open_in_root(root_fd_, above.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC, 0));
    if (!parent.ok()) {  // no directory, no entry
      if (parent.get() == -ENOENT) gone_ = above;
      return {};
    }
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
  Place at{*parent, std::string(n.path == "/" ? "." : name_of(n.path)), {}, true};
  if (empty_ && n.type == Needed::kDirectory &&
      mkdirat(at.parent, at.c_str(), kUsualDirectory) == 0) {
    ++done.directories;
    directory(at, n);
    return {};
  }
  const mode_t mode = mode_of(n);
  Fd file;
  if (empty_ && n.type == Needed::kFile)
    file = Fd(openat(at.parent, at.c_str(), kNewFile | O_EXCL, mode | 0600));
  at.fresh = file.ok() || fstatat(at.parent, at.c_str(), &at.st, AT_SYMLINK_NOFOLLOW) != 0;
  const mode_t want = n.type == Needed::kFile        ? S_IFREG
                      : n.type == Needed::kDirectory ? S_IFDIR
                      : n.type == Needed::kFifo      ? S_IFIFO
                      : n.type == Needed::kSocket    ? S_IFSOCK
                                                     : S_IFLNK;
  if (!at.fresh && !ours_ && n.type == Needed::kDirectory && S_ISLNK(at.st.st_mode)) {
    if (auto made = directories(n.path, 0); !made) return std::move(made.error());
    return {};
  }
  if (!at.fresh && (at.st.st_mode & S_IFMT) != want)
    if (auto cleared = clear(at, n); !cleared) return cleared;
  switch (n.type) {
    case Needed::kDirectory:
      if (at.fresh) {
        if (mkdirat(at.parent, at.c_str(), kUsualDirectory) != 0)
          return failed("make directory", n.path, errno);
        ++done.directories;
      }
      directory(at, n);
      return {};
    case Needed::kSymlink:
      return make_link(at, n);
    case Needed::kFifo:
    case Needed::kSocket: {  // that nobody listens to
      auto made = make_special(at, n, want, mode);
      if (!made) return std::move(made.error());
      if (*made) return {};
      break;  // a file has the name, then
    }
    default:
      break;
  }
  return make_file(at, n, std::move(file), mode);
}

// Nothing has the name any more.
Result<void> Maker::clear(Place& at, const Needed& n) {
  if (auto removed = in_the_way(at.parent, at.name, n.path); !removed) return removed;
  auto parent = parent_of(n.path);
  if (!parent) return std::move(parent.error());
  at.parent = *parent;
  at.fresh = true;
  return {};
}

Result<void> Maker::make_link(Place& at, const Needed& n) {
  if (!at.fresh) {
    char target[PATH_MAX];
    const ssize_t length = readlinkat(at.parent, at.c_str(), target, sizeof target);
    if (length >= 0 && std::string_view(target, static_cast<size_t>(length)) == n.target) return {};
    if (auto cleared = clear(at, n); !cleared) return cleared;
  }
  if (symlinkat(n.target.c_str(), at.parent, at.c_str()) != 0)
    return failed("make link", n.path, errno);
  ++done.links;
  return {};
}

// A FIFO or socket; false where the file system has none.
Result<bool> Maker::make_special(Place& at, const Needed& n, mode_t type, mode_t mode) {
  if (!at.fresh && ours_ && at.st.st_nlink > 1) {  // a replay gave it a second name
    if (unlinkat(at.parent, at.c_str(), 0) != 0) return failed("remove", n.path, errno);
    at.fresh = true;
  }
  if (at.fresh && mknodat(at.parent, at.c_str(), type | 0600, 0) != 0) {
    if (n.type == Needed::kSocket && (errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS))
      return false;
    return failed(n.type == Needed::kFifo ? "make FIFO" : "make socket", n.path, errno);
  }
  if ((at.fresh || (ours_ && (at.st.st_mode & 0777) != mode)) &&
      fchmodat(at.parent, at.c_str(), mode, 0) != 0)
    return failed("chmod", n.path, errno);
  return true;
}

Result<void> Maker::make_file(const Place& at, const Needed& n, Fd file, mode_t mode) {
  const struct stat& st = at.st;
  const mode_t has = st.st_mode & 0777;
  const bool any = n.mode == 0 && n.denied == 0 && !ours_;
  const bool good_mode = any ? (has & 0600) == 0600 : has == mode;
  // The bytes of a file that was written to are not those that it began with, and those of one that
  // was made for something else may be others.
  const bool stale = (n.changed || !known_) && ours_;
  if (!at.fresh && static_cast<uint64_t>(st.st_size) == n.size && good_mode && !stale) return {};
  if (!at.fresh && !ours_)
    return Error(FEIGN_ERR_ARGUMENT,
                 "prepare " + root_ + ": " + n.path + " has " + std::to_string(st.st_size) +
                     " bytes, want " + std::to_string(n.size) +
                     ", and the directory was not empty when it was first used as a root");
  if (!at.fresh && st.st_nlink > 1) {  // a replay gave it a second name: that one keeps its content
    if (unlinkat(at.parent, at.c_str(), 0) != 0) return failed("remove", n.path, errno);
  }
  if (!at.fresh && (st.st_mode & 0200) == 0) (void)fchmodat(at.parent, at.c_str(), 0600, 0);
  if (!file.ok()) file = Fd(openat(at.parent, at.c_str(), kNewFile, mode | 0600));
  if (!file.ok()) return failed("make", n.path, errno);
  if (n.size > static_cast<uint64_t>(INT64_MAX)) return failed("make", n.path, EFBIG);
  if (!at.fresh && ftruncate(file.get(), 0) != 0) return failed("truncate", n.path, errno);
  if (n.size != 0 && ftruncate(file.get(), static_cast<off_t>(n.size)) != 0)
    return failed("make", n.path, errno);
  if (!at.fresh) no_attributes(file.get());
  if (auto filled = content(file.get(), n); !filled) return filled;
  if ((!at.fresh && !good_mode) || n.mode != 0 || n.denied != 0)
    if (fchmod(file.get(), mode) != 0) return failed("chmod", n.path, errno);
  ++done.files;
  done.bytes += n.size;
  done.written += bytes_to_write(n, options_.content);
  return {};
}

// One more name of a file that was made.
Result<void> Maker::link(const Needed& n) {
  auto parent = parent_of(n.path);
  if (!parent) return std::move(parent.error());
  const std::string name(name_of(n.path));
  const size_t slash = n.target.rfind('/');
  const std::string above = slash == 0 ? "/" : n.target.substr(0, slash);
  const std::string other = n.target.substr(slash + 1);
  const Fd from(open_in_root(root_fd_, above.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC, 0));
  struct stat st {
  }, want{};
  if (!from.ok()) return failed("open", above, -from.get());
  if (fstatat(from.get(), other.c_str(), &want, AT_SYMLINK_NOFOLLOW) != 0)
    return failed("look for", n.target, errno);
  if (fstatat(*parent, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0) {
    if (st.st_dev == want.st_dev && st.st_ino == want.st_ino) return {};
    if (auto removed = in_the_way(*parent, name, n.path); !removed) return removed;
    parent = parent_of(n.path);
    if (!parent) return std::move(parent.error());
  }
  if (linkat(from.get(), other.c_str(), *parent, name.c_str(), 0) == 0) {
    ++done.links;
    return {};
  }
  // A file system without hard links, or with fewer.
  if (errno == EPERM || errno == EOPNOTSUPP || errno == EMLINK) return make(n);
  return failed("make link", n.path, errno);
}

// Files side by side: their directories are there.
Result<void> make_files(const Maker& maker, const std::vector<const Needed*>& files, Prepared& done,
                        const std::function<bool(uint64_t)>& go_on) {
  uint64_t bytes = 0;
  for (const Needed* n : files) bytes += n->size;
  const unsigned most = std::clamp(std::thread::hardware_concurrency(), 1u, 16u);
  const bool few = files.size() < 512 && bytes < (uint64_t{64} << 20);
  const unsigned threads = few ? 1 : most;
  std::atomic<size_t> next{0};
  std::atomic<bool> stop{false};
  std::mutex mutex;
  Result<void> result;
  const auto work = [&](bool first) {
    Maker mine = maker.also();
    constexpr size_t kBatch = 16;  // mostly of one directory
    while (!stop.load(std::memory_order_relaxed)) {
      const size_t from = next.fetch_add(kBatch);
      if (from >= files.size()) break;
      if (first && !go_on(from)) break;
      for (size_t i = from; i < std::min(from + kBatch, files.size()); ++i) {
        auto made = mine.attempt(&Maker::make, *files[i]);
        if (made) continue;
        const std::lock_guard lock(mutex);
        if (result) result = std::move(made);
        stop = true;
        break;
      }
    }
    if (first) stop = true;
    const std::lock_guard lock(mutex);
    done.files += mine.done.files;
    done.directories += mine.done.directories;
    done.bytes += mine.done.bytes;
    done.written += mine.done.written;
    done.removed += mine.done.removed;
    done.left_out += mine.done.left_out;
    if (done.full.empty()) done.full = mine.done.full;
    if (done.why.empty()) done.why = mine.done.why;
  };
  std::vector<std::thread> others;
  try {
    for (unsigned i = 1; i < threads; ++i) others.emplace_back(work, false);
  } catch (const std::system_error&) {
    // Those that are to be had do it all.
  }
  work(true);
  for (std::thread& t : others) t.join();
  return result;
}

Error too_much(const std::string& root, uint64_t to_write, const PrepareOptions& options) {
  return Error(FEIGN_ERR_ARGUMENT,
               "prepare " + root + ": the files that the trace starts from have " +
                   std::to_string(to_write) + " bytes, and " +
                   (options.of_disk ? "95 % of what is free are " : "--max-bytes allows ") +
                   std::to_string(options.max_bytes) +
                   (options.of_disk ? " (--max-bytes allows more)" : "") +
                   (options.content.kind != Content::kSparse
                        ? "; --content sparse makes them without writing"
                        : ", of which the trace tells that they are no holes"));
}

// Bytes that these files have already on storage: to write them anew takes no more room.
uint64_t bytes_there(int root_fd, const std::vector<const Needed*>& files, const Content& content) {
  uint64_t bytes = 0;
  for (const Needed* n : files) {
    const Fd at(open_in_root(root_fd, n->path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC, 0));
    struct stat st {};
    if (at.ok() && fstat(at.get(), &st) == 0 && S_ISREG(st.st_mode))
      bytes += std::min(bytes_to_write(*n, content), static_cast<uint64_t>(st.st_blocks) * 512);
  }
  return bytes;
}

}  // namespace

uint64_t most_of_what_is_free(int root_fd) {
  struct statvfs fs {};
  if (fstatvfs(root_fd, &fs) != 0) return 0;
  return std::max<uint64_t>(1, fs.f_bavail * fs.f_frsize / 20 * 19);
}

Result<Prepared> prepare(int root_fd, const std::string& root, const std::vector<Needed>& needed,
                         const PrepareOptions& options,
                         const std::function<bool(uint64_t)>& go_on) {
  uint64_t to_write = 0;
  for (const Needed& n : needed) {
    if (n.path.empty() || n.path[0] != '/' || clean_path(n.path) != n.path ||
        (n.path == "/" && n.type != Needed::kDirectory) || n.path.find('\0') != std::string::npos)
      return Error(FEIGN_ERR_ARGUMENT,
                   "prepare " + root + ": \"" + n.path + "\": want a clean absolute path");
    to_write += std::min(bytes_to_write(n, options.content), UINT64_MAX - to_write);
  }
  const bool much = options.max_bytes != 0 && to_write > options.max_bytes;
  if (much && !options.of_disk) return too_much(root, to_write, options);
  Maker maker(root_fd, root, options);
  if (auto begun = maker.begin(); !begun) return std::move(begun.error());
  if (much && !maker.ours()) return too_much(root, to_write, options);
  const std::string state = state_of(needed, options);
  const bool again = maker.was_in(state) && maker.seems_whole(needed);
  if (again) maker.trust();
  if (auto set = maker.set_state(no_state()); !set) return std::move(set.error());
  if (!again)
    if (auto done = maker.succeed(needed); !done) {
      // Nothing is made that would be in no list.
      if (maker.done.full.empty()) return std::move(done.error());
      return std::move(maker.done);
    }
  // Links first: what lies behind one is then made behind it. Then the rest, parents before
  // children.
  using Step = Result<void> (Maker::*)(const Needed&);
  uint64_t looked = 0;
  bool stopped = false;
  std::vector<const Needed*> files, links;
  const auto pass = [&](auto wanted, Step step) -> Result<void> {
    for (const Needed& n : needed) {
      if (!wanted(n.type) || (again && !n.changed)) continue;
      if ((++looked & 255) == 0 && !go_on(looked)) {
        stopped = true;
        return {};
      }
      if (n.type == Needed::kFile) {
        (n.target.empty() ? files : links).push_back(&n);
        continue;
      }
      if (auto made = maker.attempt(step, n); !made) return made;
    }
    return {};
  };
  auto made = pass([](auto t) { return t == Needed::kAbsent; }, &Maker::remove);
  if (made) made = pass([](auto t) { return t == Needed::kFile; }, nullptr);
  if (made && much) {  // now that what others left is gone
    PrepareOptions now = options;
    now.max_bytes = most_of_what_is_free(root_fd);
    to_write = 0;
    for (const Needed* n : files)
      to_write += std::min(bytes_to_write(*n, now.content), UINT64_MAX - to_write);
    if (to_write > now.max_bytes &&
        to_write - now.max_bytes > bytes_there(root_fd, files, now.content))
      return too_much(root, to_write, now);
  }
  if (made) made = pass([](auto t) { return t == Needed::kSymlink; }, &Maker::make);
  if (made)
    made = pass(
        [](auto t) {
          return t == Needed::kDirectory || t == Needed::kFifo || t == Needed::kSocket;
        },
        &Maker::make);
  if (made && !stopped)
    made = make_files(maker, files, maker.done, [&](uint64_t done) {
      stopped = !go_on(done);
      return !stopped;
    });
  for (const Needed* n : links)
    if (made && !stopped) made = maker.attempt(&Maker::link, *n);
  if (!made && maker.done.full.empty()) return std::move(made.error());
  maker.done.checked = looked;
  if (made && !stopped && maker.done.full.empty())
    if (auto set = maker.set_state(state); !set) return std::move(set.error());
  maker.done.stopped = stopped;
  return std::move(maker.done);
}

}  // namespace feign
