// SPDX-License-Identifier: MIT
// Dependencies that need no throttling: those that synchronisation in the first run's trace shows.
// Messages and collectives of MPI, pipes, locks, futexes, forks and waits carry with them what the
// one who woke another had done by then: a vector clock (Fidge 1988, Mattern 1989) over the calls
// on files of each node. Where a call on files finds that its node's clock has moved on, it comes
// after those calls.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/run.h"
#include "discover/calls.h"

namespace feign::discover {

struct SeenOrder {
  uint32_t node = 0, on = 0;  // indices
  uint64_t call = 0, on_call = 0;
  std::string by;  // what the node learnt it by: MPI_Recv, read, futex …
};

// `trace`: the first run's; `work`: folder for files in between; `index`: of a node by its number,
// UINT32_MAX if it is none that counts.
Result<std::vector<SeenOrder>> seen_orders(const std::string& trace, const std::string& work,
                                           const Numbers& numbers,
                                           const std::vector<uint32_t>& index, Plugins& plugins);

}  // namespace feign::discover
