// SPDX-License-Identifier: MIT
// What the replay wrote where, so that reads of it can be verified: bytes that depend on the file
// and the position.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <unordered_map>

namespace feign {

// [any thread]
class Written {
 public:
  // What a write of `size` bytes at `offset` of a file has to be.
  static void fill(char* to, uint32_t file, uint64_t offset, uint64_t size) {
    for (uint64_t i = 0; i < size;) {
      const uint64_t position = offset + i;
      const uint64_t word = word_at(file, position / 8);
      const uint64_t skip = position % 8, n = std::min(8 - skip, size - i);
      memcpy(to + i, reinterpret_cast<const char*>(&word) + skip, n);
      i += n;
    }
  }
  void add(uint32_t file, uint64_t offset, uint64_t size) {
    const std::lock_guard lock(mutex_);
    Ranges& ranges = files_[file];
    uint64_t end = offset + size;
    cut(ranges, offset, end);
    // Joined with its neighbours, so that a file written in order is one range.
    auto next = ranges.lower_bound(offset);
    if (next != ranges.end() && next->first == end) {
      end = next->second;
      next = ranges.erase(next);
    }
    if (next != ranges.begin() && std::prev(next)->second == offset)
      std::prev(next)->second = end;
    else
      ranges.emplace_hint(next, offset, end);
  }
  // Something else is there now: from `offset` to `end`.
  void forget(uint32_t file, uint64_t offset, uint64_t end) {
    const std::lock_guard lock(mutex_);
    if (const auto at = files_.find(file); at != files_.end()) cut(at->second, offset, end);
  }
  // Whether what was read is what was written, as far as anything was.
  bool same(uint32_t file, uint64_t offset, const char* data, uint64_t size) {
    const std::lock_guard lock(mutex_);
    const auto at = files_.find(file);
    if (at == files_.end()) return true;
    auto range = at->second.upper_bound(offset);
    if (range != at->second.begin()) --range;
    for (; range != at->second.end() && range->first < offset + size; ++range) {
      const uint64_t from = std::max(range->first, offset);
      const uint64_t to = std::min(range->second, offset + size);
      for (uint64_t p = from; p < to;) {
        const uint64_t word = word_at(file, p / 8);
        const uint64_t skip = p % 8, n = std::min(8 - skip, to - p);
        if (memcmp(data + (p - offset), reinterpret_cast<const char*>(&word) + skip, n) != 0)
          return false;
        p += n;
      }
    }
    return true;
  }

 private:
  using Ranges = std::map<uint64_t, uint64_t>;  // start -> end

  // splitmix64's finish, of file and position
  static uint64_t word_at(uint32_t file, uint64_t index) {
    uint64_t x = index + (uint64_t{file} << 40) + 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
  }
  static void cut(Ranges& ranges, uint64_t from, uint64_t to) {
    auto at = ranges.upper_bound(from);
    if (at != ranges.begin() && std::prev(at)->second > from) --at;
    while (at != ranges.end() && at->first < to) {
      const auto [start, end] = *at;
      at = ranges.erase(at);
      if (start < from) ranges.emplace(start, from);
      if (end > to) ranges.emplace(to, end);
    }
  }

  std::mutex mutex_;
  std::unordered_map<uint32_t, Ranges> files_;
};

}  // namespace feign
