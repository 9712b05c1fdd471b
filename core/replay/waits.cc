// SPDX-License-Identifier: MIT
#include "replay/waits.h"

#include <algorithm>

namespace feign {

void Waits::begin(uint32_t worker, const Wait& wait) {
  Slot& s = slots_[worker];
  const std::lock_guard lock(s.mutex);
  s.wait = wait;
  s.waits = true;
  ++s.changes;
}

void Waits::end(uint32_t worker) {
  Slot& s = slots_[worker];
  const std::lock_guard lock(s.mutex);
  s.waits = false;
  ++s.changes;
}

void Waits::gone(uint32_t worker) {
  Slot& s = slots_[worker];
  const std::lock_guard lock(s.mutex);
  s.gone = true;
}

std::string Waits::describe(const Wait& wait) const {
  std::string text =
      "stream " + std::to_string(wait.stream) + " at " + tables_.place(wait.place) + " waits for ";
  text += wait.for_stream != 0 ? "stream " + std::to_string(wait.for_stream) : "its turn";
  const std::string rule(tables_.strings.text(wait.rule));
  return rule.empty() ? text : text + " (rule " + rule + ")";
}

std::string Waits::stuck() {
  std::vector<Wait> all(slots_.size());
  std::vector<uint32_t> left;
  bool moved = false;
  for (uint32_t i = 0; i < slots_.size(); ++i) {
    Slot& s = slots_[i];
    const std::lock_guard lock(s.mutex);
    if (s.gone) continue;
    left.push_back(i);
    if (!s.waits || s.changes != s.seen || s.wait.gate->passed(s.wait.id)) moved = true;
    s.seen = s.changes;
    all[i] = s.wait;
  }
  if (moved || left.empty()) return {};
  // From anyone, for whom, for whom …: somebody comes up twice, and from there it is a circle.
  std::vector<uint32_t> chain;
  uint32_t at = left.front();
  while (std::find(chain.begin(), chain.end(), at) == chain.end()) {
    if (at >= all.size() || all[at].gate == nullptr) break;
    chain.push_back(at);
    at = all[at].for_worker;
  }
  const auto first = std::find(chain.begin(), chain.end(), at);
  if (first != chain.end()) chain.erase(chain.begin(), first);
  std::string text = first != chain.end() ? "these wait for each other" : "these wait for ever";
  constexpr size_t kShown = 8;
  for (size_t i = 0; i < chain.size() && i < kShown; ++i)
    text += (i == 0 ? ": " : "; ") + describe(all[chain[i]]);
  if (chain.size() > kShown) text += "; and " + std::to_string(chain.size() - kShown) + " more";
  return text;
}

}  // namespace feign
