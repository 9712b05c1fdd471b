// SPDX-License-Identifier: MIT
// Strings by number. The same bytes always get the same number; 0 is the empty string.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

namespace feign {

// intern() takes a lock; text() takes none and may run at the same time. The text lives as long as
// the table, so a trace costs memory for its distinct paths, not for its length.
class Strings {
 public:
  Strings();
  ~Strings();
  Strings(const Strings&) = delete;
  Strings& operator=(const Strings&) = delete;

  uint32_t intern(std::string_view text);      // [any thread]
  std::string_view text(uint32_t id) const;    // [any thread]; ended by a NUL; "" if unknown
  uint32_t find(std::string_view text) const;  // 0 if it is not there
  uint32_t size() const { return count_.load(std::memory_order_acquire); }

 private:
  struct Entry {
    const char* text;
    uint32_t length;
    uint32_t hash;
  };
  // Chunk k has room for 1024 << k entries, so that a small table is small and none is ever moved.
  static constexpr uint32_t kFirst = 1024, kChunks = 22;
  struct At {
    uint32_t chunk, index;
  };
  static At place_of(uint32_t id) {
    const uint64_t shifted = uint64_t{id} + kFirst;
    const auto chunk = static_cast<uint32_t>(std::bit_width(shifted)) - 11;
    return {chunk, static_cast<uint32_t>(shifted - (uint64_t{kFirst} << chunk))};
  }
  const Entry& entry(uint32_t id) const {
    const At where = place_of(id);
    return chunks_[where.chunk].load(std::memory_order_acquire)[where.index];
  }
  uint32_t* slot(std::string_view text, uint32_t hash) const;
  void grow();

  std::array<std::atomic<Entry*>, kChunks> chunks_{};
  std::atomic<uint32_t> count_{0};
  mutable std::mutex mutex_;
  mutable std::vector<uint32_t> table_;  // open addressing, ids; 0 is empty
  std::vector<std::unique_ptr<char[]>> arena_;
  size_t arena_used_ = 0, arena_size_ = 0;
};

}  // namespace feign
