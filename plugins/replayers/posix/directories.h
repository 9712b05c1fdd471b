// SPDX-License-Identifier: MIT
// The directories below the root that a thread has open.
#pragma once

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/jail.h"
#include "feign.h"

namespace feign {

// A path as the last component of an open directory, or why that cannot be.
struct Where {
  int dir;           // or -errno
  const char* name;  // null: no last component to go by ("/"), the whole path has to be resolved
  bool plain;        // no link and no ".." leads to that directory: its path is its name
};

// Which names threads have found to lead to no directory, so that making one of them is noticed: a
// Bloom filter that nothing is taken from. By the components alone: the ones before may lead there
// by other names. [any thread]
class Missing {
 public:
  void add(std::string_view path) {
    any_.store(true, std::memory_order_release);
    while (!path.empty()) {
      const size_t h = hash(path);
      bits_[h / 64 % kWords].fetch_or(uint64_t{1} << h % 64, std::memory_order_acq_rel);
      path = path.substr(0, path.rfind('/'));
    }
  }
  bool any() const { return any_.load(std::memory_order_acquire); }
  bool may_have(std::string_view path) const {
    const size_t h = hash(path);
    return (bits_[h / 64 % kWords].load(std::memory_order_acquire) >> h % 64 & 1) != 0;
  }

 private:
  static size_t hash(std::string_view path) {
    return std::hash<std::string_view>{}(path.substr(path.rfind('/') + 1));
  }
  static constexpr size_t kWords = 1024;
  std::atomic<uint64_t> bits_[kWords]{};
  std::atomic<bool> any_{false};
};

// What all processes of a replay on one host have in common (feign_run.common), or what one has
// that is alone: zeros in the beginning.
struct Common {
  Missing missing;
  std::atomic<uint64_t> made;     // grows when a name that was missing may be there
  std::atomic<uint64_t> changes;  // of all processes
};
static_assert(sizeof(Common) <= FEIGN_RUN_COMMON && std::atomic<uint64_t>::is_always_lock_free);

// The names of directories and links that calls changed, so that each thread closes what it has
// open by them. [any thread]
class Changes {
 public:
  struct Change {
    std::string path;  // empty: not known, it may be any
    bool below;        // what lies below it has another name, too
  };
  void add(std::string_view path, bool below) {
    const std::lock_guard lock(mutex_);
    const uint64_t count = count_.load(std::memory_order_relaxed);
    last_[count % kKept] = {std::string(path), below};
    count_.store(count + 1, std::memory_order_release);
  }
  uint64_t count() const { return count_.load(std::memory_order_acquire); }
  // Visits those from the `from`th on; false if not all of them are known any more. `now` is how
  // many there are.
  template <typename Visit>
  bool since(uint64_t from, uint64_t& now, Visit&& visit) {
    const std::lock_guard lock(mutex_);
    now = count();
    if (now - from > kKept) return false;
    for (; from != now; ++from) visit(last_[from % kKept]);
    return true;
  }

 private:
  static constexpr size_t kKept = 64;
  std::mutex mutex_;
  std::array<Change, kKept> last_;
  std::atomic<uint64_t> count_{0};
};

// What threads tell each other of names.
struct Names {
  Changes changes;
  Common own{};
  Common* common = &own;
  void changed(std::string_view path, bool below) {
    changes.add(path, below);
    if (common == &own) return;
    mine_.fetch_add(1, std::memory_order_acq_rel);
    common->changes.fetch_add(1, std::memory_order_acq_rel);
  }
  // How many changes are other processes', which do not say what they changed. (Or one less, for a
  // moment.)
  uint64_t foreign() const {
    if (common == &own) [[likely]]
      return 0;
    const uint64_t all = common->changes.load(std::memory_order_acquire);
    return all - mine_.load(std::memory_order_acquire);
  }

 private:
  std::atomic<uint64_t> mine_{0};
};

// The directories that a thread has open, by the path strings that lie in them.
class Directories {
 public:
  Directories() { ++users_; }
  Directories(const Directories&) = delete;
  Directories& operator=(const Directories&) = delete;
  ~Directories() {
    clear();
    --users_;
  }
  Where find(const feign_host* host, int root, uint32_t path, Names& names, const void* owner) {
    of(names, owner);
    if (const uint64_t made = names.common->made.load(std::memory_order_acquire); made != made_) {
      for (const uint32_t one : without_) place(one) = {};
      without_.clear();
      missing_.clear();
      made_ = made;
    }
    if (path / kPage < pages_.size() && pages_[path / kPage] != nullptr) {
      const Place& p = pages_[path / kPage][path % kPage];
      if (p.name != nullptr && dirs_[p.dir].fd >= 0) return at(p.dir, p.name);
      if (p.error != 0) return {p.error, nullptr, false};
    }
    const char* text = host->text(host, path, nullptr);
    const char* slash = strrchr(text, '/');
    if (slash == nullptr) return {-ENOENT, nullptr, false};
    const char* name = slash + 1;
    if (*name == '\0' || strcmp(name, "..") == 0 || strcmp(name, ".") == 0)
      return {0, nullptr, false};
    const std::string_view above = slash == text ? "/" : std::string_view(text, slash);
    uint32_t dir;
    if (const auto found = by_path_.find(above); found != by_path_.end()) {
      dir = found->second;
    } else if (missing_.contains(above)) {
      return is_missing(path);
    } else {
      const Dir opened = open(root, above);
      // What is missing is so under its own name: behind a link, who makes it may call it
      // otherwise.
      if (opened.fd == -ENOENT && opened.plain && missing_.size() < 10'000) {
        names.common->missing.add(above);
        missing_.emplace(above);
        return is_missing(path);
      }
      if (opened.fd < 0) return {opened.fd, nullptr, false};
      dir = keep(above, opened);
    }
    place(path) = {name, dir, 0};
    return at(dir, name);
  }

  // How often what find() told was closed.
  uint64_t emptied() const { return emptied_; }

  // Looks up the directories again that a program names which names a file by that many components
  // (FEIGN_NAMED_BY). What comes of it, the call itself will find.
  void look_up(std::string_view path, uint32_t components, int root, Names& names,
               const void* owner) {
    of(names, owner);
    const std::string_view above = path.substr(0, path.rfind('/'));
    std::string_view from = components < FEIGN_NAMED_WHOLE ? above : "";
    for (uint32_t i = 1; i < components && !from.empty(); ++i)
      from = from.substr(0, from.rfind('/'));
    if (from.size() == above.size()) return;
    Dir start{root, true};
    if (!from.empty()) {
      const auto found = by_path_.find(from);
      start = found != by_path_.end() ? dirs_[found->second] : open(root, from);
      if (start.fd < 0) return;
      if (found == by_path_.end()) keep(from, start);
    }
    const std::string rest(above.substr(from.size() + 1));
    const int fd = open_in_root(start.fd, rest.c_str(), kHow, 0, RESOLVE_NO_SYMLINKS);
    if (fd < 0) return;
    if (by_path_.contains(above))
      ::close(fd);
    else
      keep(above, {fd, start.plain && is_straight(rest)});
  }

 private:
  static constexpr int kHow = O_PATH | O_DIRECTORY | O_CLOEXEC;
  struct Dir {
    int fd;      // or -errno; of those that are kept, -1: closed
    bool plain;  // as Where's, whether it could be opened or not
  };
  Where at(uint32_t dir, const char* name) const { return {dirs_[dir].fd, name, dirs_[dir].plain}; }
  void of(Names& names, const void* owner) {
    Changes& changes = names.changes;
    const uint64_t foreign = names.foreign();
    if (changes.count() == seen_ && foreign == foreign_ && owner == owner_) [[likely]]
      return;
    const bool others = std::exchange(foreign_, foreign) != foreign;
    if (owner != owner_ || others ||
        !changes.since(seen_, seen_, [this](const Changes::Change& c) { forget(c); })) {
      clear();
      seen_ = changes.count();
    }
    owner_ = owner;
  }
  // What lies behind links may be any of it.
  void forget(const Changes::Change& c) {
    const auto lost = [&](std::string_view path, const Dir& dir) {
      if (c.path.empty() || !dir.plain || path == c.path) return true;
      return c.below && path.size() > c.path.size() && path.starts_with(c.path) &&
             path[c.path.size()] == '/';
    };
    const auto drop = [&](uint32_t at) {
      ++emptied_;
      links_ -= !dirs_[at].plain;
      ::close(std::exchange(dirs_[at].fd, -1));
    };
    if (c.path.empty() || c.below || links_ != 0) {
      std::erase_if(by_path_, [&](const auto& one) {
        const bool gone = lost(one.first, dirs_[one.second]);
        if (gone) drop(one.second);
        return gone;
      });
    } else if (const auto one = by_path_.find(c.path); one != by_path_.end()) {
      drop(one->second);
      by_path_.erase(one);
    }
  }
  // Places of what is closed are not used again, so that no path string leads to another's.
  uint32_t keep(std::string_view path, Dir dir) {
    if (dirs_.size() >= most()) clear();
    const auto at = static_cast<uint32_t>(dirs_.size());
    dirs_.push_back(dir);
    links_ += !dir.plain;
    by_path_.emplace(path, at);
    return at;
  }
  // From the directory that it lies in, if that is open and it is no link; else from the root.
  Dir open(int root, std::string_view path) {
    const size_t slash = path.rfind('/');
    const std::string_view last = path.substr(slash + 1);
    const auto above = by_path_.find(slash == 0 ? "/" : path.substr(0, slash));
    if (above != by_path_.end() && !last.empty()) {
      const Dir in = dirs_[above->second];
      const int fd = ::openat(in.fd, std::string(last).c_str(), kHow | O_NOFOLLOW);
      if (fd >= 0 || (errno != ELOOP && errno != ENOTDIR))
        return {fd >= 0 ? fd : -errno, in.plain && is_straight(last)};
    }
    const std::string whole(path);
    const int fd = open_in_root(root, whole.c_str(), kHow, 0, RESOLVE_NO_SYMLINKS);
    if (fd != -ELOOP) return {fd, is_straight(path)};
    return {open_in_root(root, whole.c_str(), kHow, 0), false};
  }
  // Whether each component of a path is a name.
  static bool is_straight(std::string_view path) {
    if (path == "/") return true;
    if (path.starts_with('/')) path.remove_prefix(1);
    while (true) {
      const std::string_view one = path.substr(0, path.find('/'));
      if (one.empty() || one == "." || one == "..") return false;
      if (one.size() == path.size()) return true;
      path.remove_prefix(one.size() + 1);
    }
  }
  // All threads together keep some thousands open, and leave most descriptors to the trace.
  static size_t most() {
    static const size_t all = [] {
      rlimit limit{};
      if (getrlimit(RLIMIT_NOFILE, &limit) != 0) limit.rlim_cur = 1024;
      return std::clamp<rlim_t>(limit.rlim_cur / 4, 16, 8192);
    }();
    return std::clamp<size_t>(all / std::max<size_t>(users_.load(std::memory_order_relaxed), 1), 16,
                              2048);
  }
  static inline std::atomic<size_t> users_{0};
  struct Place {
    const char* name = nullptr;
    uint32_t dir = 0;
    int error = 0;  // there is no directory
  };
  Place& place(uint32_t path) {
    const size_t page = path / kPage;
    if (page >= pages_.size()) pages_.resize(std::max(page + 1, page * 3 / 2));
    if (pages_[page] == nullptr) pages_[page] = std::make_unique<Place[]>(kPage);
    return pages_[page][path % kPage];
  }
  Where is_missing(uint32_t path) {
    place(path).error = -ENOENT;
    without_.push_back(path);
    return {-ENOENT, nullptr, false};
  }
  void clear() {
    ++emptied_;
    for (const Dir& dir : dirs_)
      if (dir.fd >= 0) ::close(dir.fd);
    dirs_.clear();
    links_ = 0;
    by_path_.clear();
    missing_.clear();
    without_.clear();
    pages_.clear();
  }
  std::vector<Dir> dirs_;
  size_t links_ = 0;  // of them, those that are not plain
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::unordered_map<std::string, uint32_t, Hash, std::equal_to<>> by_path_;
  // By path string id. The paths that a thread uses lie together in the table of all, which would
  // be far more than it needs.
  static constexpr uint32_t kPage = 64;
  std::vector<std::unique_ptr<Place[]>> pages_;
  std::unordered_set<std::string, Hash, std::equal_to<>>
      missing_;                                               // directories that are not there
  std::vector<uint32_t> without_;                             // paths whose places have none
  uint64_t seen_ = 0, foreign_ = 0, made_ = 0, emptied_ = 0;  // seen_: changes
  const void* owner_ = nullptr;
};

}  // namespace feign
