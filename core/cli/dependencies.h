// SPDX-License-Identifier: MIT
// What the dependencies of a trace come to: how many there are, and what they leave to do at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "trace/record.h"

namespace feign {

// Each activity's level: how many come before it, one after the other, in the longest chain that
// the order within streams and the dependencies make. Activities of one level wait for none of each
// other. Counts calls, not time.
class Chains {
 public:
  // `most`: how many levels are remembered at once; where they are more, older ones become coarser,
  // and levels can come out too high.
  explicit Chains(size_t most = size_t{1} << 22) : most_(most) {}

  void add(const Record& r);  // in the order of the trace
  uint64_t longest() const { return width_.size(); }
  uint64_t widest() const;

 private:
  struct At {
    uint64_t id, level;
  };
  void thin();

  size_t most_, kept_ = 0;
  bool thinned_ = false;
  std::vector<std::vector<At>> streams_;
  std::vector<uint32_t> width_;  // activities by level
};

struct DependencyInfo {
  struct Rule {
    uint64_t made = 0;  // without the reduction
    uint64_t kept = 0;
  };
  std::map<std::string, Rule> rules;
  uint64_t activities = 0;
  uint64_t longest = 0, widest = 0;  // as of Chains
};

}  // namespace feign
