// SPDX-License-Identifier: MIT
// The directories below the root that a thread has open.
#pragma once

#include <fcntl.h>
#include <linux/openat2.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/jail.h"
#include "feign.h"

namespace feign {

// A path as the last component of an open directory, or why that cannot be.
struct Where {
  int dir;           // or -errno
  const char* name;  // null: no last component to go by ("/"), the whole path has to be resolved
};

// Which names threads have found to be no directories, so that making one of them is noticed: a
// Bloom filter that nothing is taken from. By the last component: the ones before it may lead there
// by other names. [any thread]
class Missing {
 public:
  void add(std::string_view path) {
    any_.store(true, std::memory_order_release);
    const size_t h = hash(path);
    bits_[h / 64 % kWords].fetch_or(uint64_t{1} << h % 64, std::memory_order_acq_rel);
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

// The directories that a thread has open, by the path strings that lie in them.
class Directories {
 public:
  ~Directories() {
    clear();
    --users_;
  }
  // `generation` grows when a directory's or link's name changes, `made` when there is a new one.
  Where find(const feign_host* host, int root, uint32_t path, uint64_t generation, uint64_t made,
             Missing& missing, const void* owner) {
    of(generation, owner);
    if (made != made_) {
      for (const uint32_t one : without_) places_[one] = {};
      without_.clear();
      missing_.clear();
      made_ = made;
    }
    if (path < places_.size()) {
      const Place& p = places_[path];
      if (p.name != nullptr) return {fds_[p.dir], p.name};
      if (p.error != 0) return {p.error, nullptr};
    }
    const char* text = host->text(host, path, nullptr);
    const char* slash = strrchr(text, '/');
    if (slash == nullptr) return {-ENOENT, nullptr};
    const char* name = slash + 1;
    if (*name == '\0' || strcmp(name, "..") == 0 || strcmp(name, ".") == 0) return {0, nullptr};
    const std::string_view above = slash == text ? "/" : std::string_view(text, slash);
    uint32_t dir;
    if (const auto at = by_path_.find(above); at != by_path_.end()) {
      dir = at->second;
    } else if (missing_.contains(above)) {
      return is_missing(path);
    } else {
      const int fd = open(root, above);
      if (fd == -ENOENT && missing_.size() < 10'000 && is_by_name(root, above)) {
        missing.add(above);
        missing_.emplace(above);
        return is_missing(path);
      }
      if (fd < 0) return {fd, nullptr};
      dir = keep(above, fd);
    }
    place(path) = {name, dir, 0};
    return {fds_[dir], name};
  }

  // How often what find() told was closed.
  uint64_t emptied() const { return emptied_; }

  // Looks up the directories again that a program names which names a file by that many components
  // (FEIGN_NAMED_BY). What comes of it, the call itself will find.
  void look_up(std::string_view path, uint32_t components, int root, uint64_t generation,
               const void* owner) {
    of(generation, owner);
    const std::string_view above = path.substr(0, path.rfind('/'));
    std::string_view from = components < FEIGN_NAMED_WHOLE ? above : "";
    for (uint32_t i = 1; i < components && !from.empty(); ++i)
      from = from.substr(0, from.rfind('/'));
    if (from.size() == above.size()) return;
    int start = root;
    if (!from.empty()) {
      const auto at = by_path_.find(from);
      start = at != by_path_.end() ? fds_[at->second] : open(root, from);
      if (start < 0) return;
      if (at == by_path_.end()) keep(from, start);
    }
    const int fd = open_in_root(start, std::string(above.substr(from.size() + 1)).c_str(), kHow, 0,
                                RESOLVE_NO_SYMLINKS);
    if (fd < 0) return;
    if (by_path_.contains(above))
      ::close(fd);
    else
      keep(above, fd);
  }

 private:
  static constexpr int kHow = O_PATH | O_DIRECTORY | O_CLOEXEC;
  void of(uint64_t generation, const void* owner) {
    if (generation == generation_ && owner == owner_) return;
    clear();
    generation_ = generation;
    owner_ = owner;
  }
  uint32_t keep(std::string_view path, int fd) {
    if (fds_.size() >= most_) clear();
    const auto at = static_cast<uint32_t>(fds_.size());
    fds_.push_back(fd);
    by_path_.emplace(path, at);
    return at;
  }
  // From the directory that it lies in, if that is open and it is no link; else from the root.
  int open(int root, std::string_view path) {
    const size_t slash = path.rfind('/');
    const auto above = by_path_.find(slash == 0 ? "/" : path.substr(0, slash));
    if (above != by_path_.end() && slash + 1 < path.size()) {
      const int fd = ::openat(fds_[above->second], std::string(path.substr(slash + 1)).c_str(),
                              kHow | O_NOFOLLOW);
      if (fd >= 0 || (errno != ELOOP && errno != ENOTDIR)) return fd >= 0 ? fd : -errno;
    }
    return open_in_root(root, std::string(path).c_str(), kHow, 0);
  }
  // What is missing is so under its own name: behind a link, who makes it may call it otherwise.
  static bool is_by_name(int root, std::string_view path) {
    const int fd = open_in_root(root, std::string(path).c_str(), kHow, 0, RESOLVE_NO_SYMLINKS);
    if (fd >= 0) ::close(fd);
    return fd == -ENOENT;
  }
  // All threads together keep some thousands open.
  static inline std::atomic<size_t> users_{0};
  const size_t most_ = std::clamp<size_t>(4096 / (users_.fetch_add(1) + 1), 64, 2048);
  struct Place {
    const char* name = nullptr;
    uint32_t dir = 0;
    int error = 0;  // there is no directory
  };
  Place& place(uint32_t path) {
    if (path >= places_.size()) places_.resize(std::max<size_t>(path + 1, path * size_t{3} / 2));
    return places_[path];
  }
  Where is_missing(uint32_t path) {
    place(path).error = -ENOENT;
    without_.push_back(path);
    return {-ENOENT, nullptr};
  }
  void clear() {
    ++emptied_;
    for (const int fd : fds_) ::close(fd);
    fds_.clear();
    by_path_.clear();
    missing_.clear();
    without_.clear();
    places_.clear();
  }
  std::vector<int> fds_;
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::unordered_map<std::string, uint32_t, Hash, std::equal_to<>> by_path_;
  std::vector<Place> places_;  // by path string id
  std::unordered_set<std::string, Hash, std::equal_to<>>
      missing_;                    // directories that are not there
  std::vector<uint32_t> without_;  // paths of places_ that have none
  uint64_t generation_ = 0, made_ = 0, emptied_ = 0;
  const void* owner_ = nullptr;
};

}  // namespace feign
