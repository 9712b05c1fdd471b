// SPDX-License-Identifier: MIT
#include "cli/dependencies.h"

#include <algorithm>

namespace feign {

void Chains::add(const Record& r) {
  const uint32_t stream = r.a.stream;
  if (stream >= streams_.size()) streams_.resize(stream + size_t{1});
  uint64_t level = streams_[stream].empty() ? 0 : streams_[stream].back().level + 1;
  for (const Dependency& d : r.depends) {
    if (d.stream >= streams_.size() || streams_[d.stream].empty()) continue;
    const auto& other = streams_[d.stream];
    auto at = std::upper_bound(other.begin(), other.end(), d.id,
                               [](uint64_t id, const At& x) { return id < x.id; });
    const bool exact = at != other.begin() && std::prev(at)->id == d.id;
    if (at == other.end() || exact || (!thinned_ && at != other.begin())) {
      if (at == other.begin()) continue;
      --at;
    } else if (!thinned_) {
      continue;  // on nothing
    }
    level = std::max(level, at->level + 1);
  }
  streams_[stream].push_back({r.a.id, level});
  if (level >= width_.size()) width_.resize(level + 1);
  ++width_[level];
  if (++kept_ > most_) thin();
}

// Of each stream, every other one of the older half goes.
void Chains::thin() {
  thinned_ = true;
  kept_ = 0;
  for (auto& s : streams_) {
    size_t to = 0;
    for (size_t i = 0; i < s.size(); ++i)
      if (i > s.size() / 2 || i % 2 != 0 || i + 1 == s.size()) s[to++] = s[i];
    s.resize(to);
    kept_ += to;
  }
}

uint64_t Chains::widest() const {
  return width_.empty() ? 0 : *std::max_element(width_.begin(), width_.end());
}

}  // namespace feign
