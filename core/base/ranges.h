// SPDX-License-Identifier: MIT
// Numbers that a user names.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

namespace feign {

struct NumberRange {
  int64_t first, last;
  bool has(int64_t n) const { return first <= n && n <= last; }
};

// "3" or "0-5"; none if it is neither.
inline std::optional<NumberRange> range_of(std::string_view text) {
  NumberRange r{};
  const char* const end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, r.first);
  r.last = r.first;
  if (error == std::errc{} && stop != end && *stop == '-') {
    const auto [behind, wrong] = std::from_chars(stop + 1, end, r.last);
    stop = behind;
    error = wrong;
  }
  if (error != std::errc{} || stop != end || r.last < r.first) return std::nullopt;
  return r;
}

}  // namespace feign
