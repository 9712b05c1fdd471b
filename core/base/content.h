// SPDX-License-Identifier: MIT
// What the bytes of prepared and written files are.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/number.h"

namespace feign {

struct Content {
  enum Kind : uint8_t { kSparse, kZeros, kRandom };
  Kind kind = kSparse;
  uint32_t ratio = 1;  // of a random block of 4 KiB, one part in `ratio` is random, the rest zeros

  // "sparse", "zeros", "random", "ratio=N"
  static std::optional<Content> parse(std::string_view text) {
    if (text == "sparse") return Content{kSparse, 1};
    if (text == "zeros") return Content{kZeros, 1};
    if (text == "random") return Content{kRandom, 1};
    if (!text.starts_with("ratio=")) return std::nullopt;
    text.remove_prefix(6);
    Content c{kRandom, 0};
    if (!to_number(text, c.ratio) || c.ratio < 1 || c.ratio > 4096) return std::nullopt;
    return c;
  }
  static constexpr const char* kForms = "sparse, zeros, random or ratio=N (1 to 4096)";

  // Fills memory. A seed gives the same bytes always; other seeds give others.
  void fill(char* to, size_t size, uint64_t seed) const {
    constexpr size_t kBlock = 4096;
    if (kind != kRandom) {
      memset(to, 0, size);
      return;
    }
    uint64_t x = seed * 0x9E3779B97F4A7C15u + 0x2545F4914F6CDD1Du;
    for (size_t block = 0; block < size; block += kBlock) {
      const size_t length = std::min(kBlock, size - block), random = length / ratio;
      const auto next = [&x] {
        x ^= x << 13;
        x ^= x >> 7;
        return x ^= x << 17;
      };
      size_t i = 0;
      for (; i + 8 <= random; i += 8) {
        const uint64_t word = next();
        memcpy(to + block + i, &word, 8);
      }
      if (i < random) {
        const uint64_t word = next();
        memcpy(to + block + i, &word, std::min<size_t>(8, length - i));
      }
      if (random < length) {
        const size_t from = std::min(length, (random + 7) / 8 * 8);
        memset(to + block + from, 0, length - from);
      }
    }
  }
};

}  // namespace feign
