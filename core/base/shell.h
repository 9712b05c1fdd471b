// SPDX-License-Identifier: MIT
// Lines that a shell reads.
#pragma once

#include <string>

namespace feign {

// A text as one word, whatever is in it.
inline std::string quoted(const std::string& word) {
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace feign
