// SPDX-License-Identifier: MIT
// What modifiers remember of files and handles, by their numbers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <unordered_map>
#include <vector>

namespace feign {

// By number. What was used lately is found without hashing.
template <typename T>
class Table {
 public:
  T& operator[](uint32_t id) {
    Recent& r = recent_[id % std::size(recent_)];
    if (r.id != id || r.value == nullptr) r = {id, &all_[id]};
    return *r.value;
  }
  T* find(uint32_t id) {
    Recent& r = recent_[id % std::size(recent_)];
    if (r.id == id && r.value != nullptr) return r.value;
    if (all_.empty()) return nullptr;
    const auto at = all_.find(id);
    if (at == all_.end()) return nullptr;
    r = {id, &at->second};
    return r.value;
  }
  void erase(uint32_t id) {
    recent_[id % std::size(recent_)] = {};
    all_.erase(id);
  }
  template <typename Which>
  void erase_if(Which&& which) {
    for (Recent& r : recent_) r = {};
    std::erase_if(all_, [&](const auto& one) { return which(one.second); });
  }

 private:
  struct Recent {
    uint32_t id = 0;
    T* value = nullptr;
  };
  std::unordered_map<uint32_t, T> all_;  // whose elements stay where they are
  Recent recent_[64];
};

// A yes or no by number, asked once each.
class Answers {
 public:
  template <typename Ask>
  bool of(uint32_t id, Ask&& ask) {
    if (id >= known_.size()) known_.resize(std::max<size_t>(id + size_t{1}, known_.size() * 3 / 2));
    if (known_[id] == 0) {
      const bool yes = ask();  // which may ask for others
      known_[id] = yes ? 2 : 1;
    }
    return known_[id] == 2;
  }

 private:
  std::vector<uint8_t> known_;  // 0 not yet asked, 1 no, 2 yes
};

}  // namespace feign
