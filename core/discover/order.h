// SPDX-License-Identifier: MIT
// What dependencies between nodes say together: whether they can be kept at all, which of them
// follow from others, and when calls happen in replays of which each takes other delays.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "discover/calls.h"

namespace feign::discover {

class Order {
 public:
  // `calls`: how many each node makes.
  Order(std::vector<uint64_t> calls, const std::vector<CallOrder>& waits);

  // Whether calls wait for each other.
  bool circular() const;

  // By wait: whether it does not follow from others and the order within nodes. [not circular]
  std::vector<bool> needed() const;

  struct Times {
    uint64_t start = 0, end = 0;
  };
  using Duration = std::function<uint64_t(uint32_t node, uint64_t call)>;
  // A replay as arithmetic: of each node its calls' times, as pauses, durations and waits make
  // them. [not circular]
  std::vector<std::vector<Times>> play(const Duration& pause, const Duration& takes) const;

 private:
  struct Wait {
    CallOrder order;
    size_t number;
  };
  using Pass = std::function<void(uint32_t node, const Wait& wait)>;
  using Make = std::function<void(uint32_t node, uint64_t from, uint64_t to)>;
  bool walk(const Pass& pass, const Make& make) const;

  std::vector<uint64_t> calls_;
  std::vector<std::vector<Wait>> waits_;  // by node, in the order of its calls
  size_t count_ = 0;
};

}  // namespace feign::discover
