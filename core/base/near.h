// SPDX-License-Identifier: MIT
// Which name was meant by a word that is none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace feign {

// How many letters must be put in, taken out, changed, or exchanged with the next one.
inline size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before, last, row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    before = std::move(last);
    last = row;
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      row[j + 1] = std::min({last[j] + (a[i] == b[j] ? 0 : 1), row[j] + 1, last[j + 1] + 1});
      if (i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j])
        row[j + 1] = std::min(row[j + 1], before[j - 1] + 1);
    }
  }
  return row[b.size()];
}

// "; did you mean strace?", or nothing if no name is near.
inline std::string did_you_mean(std::string_view word, const std::vector<std::string>& names) {
  constexpr size_t kLongest = 64;
  if (word.size() > kLongest) return "";
  const std::string* best = nullptr;
  size_t best_distance = 3;
  for (const std::string& name : names) {
    if (name.size() > kLongest) continue;
    const size_t d = distance(word, name);
    // No more letters than half of the shorter one's.
    if (d >= best_distance || d * 2 > std::min(word.size(), name.size())) continue;
    best = &name;
    best_distance = d;
  }
  return best == nullptr ? "" : "; did you mean " + *best + "?";
}

}  // namespace feign
