// SPDX-License-Identifier: MIT
// Text to number.
#pragma once

#include <charconv>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace feign {

// True if the whole text is a number of that type: digits, for signed ones a minus before them; no
// blanks, no plus.
template <typename T>
bool to_number(std::string_view text, T& value, [[maybe_unused]] int base = 10) {
  const char* const end = text.data() + text.size();
  std::from_chars_result got{};
  if constexpr (std::is_floating_point_v<T>)
    got = std::from_chars(text.data(), end, value);
  else
    got = std::from_chars(text.data(), end, value, base);
  return got.ec == std::errc{} && got.ptr == end;
}

}  // namespace feign
