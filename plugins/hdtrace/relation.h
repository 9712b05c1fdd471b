// SPDX-License-Identifier: MIT
// Causal relations between processes, from .rel files: a token of one process has its parent in
// another. What the child's process does from then on waits for what the parent's had ended by
// then.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "hdtrace/project.h"

namespace feign::hdtrace {

struct Dependence {
  size_t parent = 0, child = 0;  // places in the list of nodes
  int64_t time = 0;              // ns since 1970
  bool settled = false;          // id is
  uint64_t id = 0;               // the parent's last activity that had ended then, 0 if none
};

// Of all nodes that have a .rel file, in order of time. Held in memory.
Result<std::vector<Dependence>> read_relations(const std::vector<Node>& nodes);

}  // namespace feign::hdtrace
