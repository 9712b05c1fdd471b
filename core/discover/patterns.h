// SPDX-License-Identifier: MIT
// Ways of working together that the dependencies of a program show: barriers, lock-step, rings,
// master and workers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "discover/calls.h"

namespace feign::discover {

struct Pattern {
  std::string name;             // barrier, lock-step, ring, master/worker
  std::vector<uint32_t> nodes;  // indices; the master first
  uint64_t checked = 0;         // times that all its dependencies were seen or shown
  uint64_t assumed = 0;         // times that some follow from the times before
};

// `waits`: none that follows from others; `assumed`: by wait.
std::vector<Pattern> patterns(uint32_t nodes, const std::vector<CallOrder>& waits,
                              const std::vector<bool>& assumed);

}  // namespace feign::discover
