// SPDX-License-Identifier: MIT
// `feign discover`: the dependencies between the nodes of a parallel application, found as //TRACE
// does (Mesnier et al., FAST 2007): run it, slow one node down at a time, see who gets stuck.
// docs/discover.md is for users; docs/decisions/0017-discover.md has the reasons.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cli/run.h"
#include "discover/frontier.h"
#include "discover/patterns.h"

namespace feign::discover {

enum class ComputeFrom { kThrottling, kBlocking };

struct DiscoverOptions {
  std::vector<std::string> command;
  std::string output;  // folder to be made
  std::string before;  // shell command before each run: puts things back
  std::string nodes;   // "": all; a number: so many; else a list such as 0,2-5
  bool per_process = false, tolerate = false, adaptive = false, show_output = false;
  bool mpi = false;  // look at MPI's calls, too; mpirun's like are known
  uint64_t sample_period = 1;
  uint32_t repeat = 1;
  ComputeFrom compute = ComputeFrom::kThrottling;
  std::vector<std::string> only, exclude;
  std::vector<std::string> hosts;  // others that the command runs on
  std::string reach = "ssh";       // how a command is started there
  uint64_t timeout_ns = 600'000'000'000, max_delay_ns = 10'000'000'000;
  uint64_t budget_ns = 0;  // adaptive: no new run is begun after this; 0: no limit
  double factor = 2;
  double accuracy = 1;  // adaptive: enough when this share of what was found is known to the call
};

struct NodeReport {
  std::string key;
  uint32_t number = 0;
  uint64_t calls = 0;
  bool throttled = false;
  uint32_t runs = 0;
  uint64_t held_at = 0;  // different calls that it was held before
  uint64_t unclear = 0;  // stretches within which somebody went on, it is not known where
  uint64_t by_throttling_ns = 0, by_blocking_ns = 0, call_ns = 0;  // sums over its calls
};

struct Edge {
  uint32_t on = 0;  // index of the node that is waited for
  Found found;      // .node: index of the node that waits
};

// What was known after a run.
struct Step {
  uint64_t ns = 0, delays = 0, found = 0;
};

struct DiscoverReport {
  std::vector<NodeReport> nodes;
  std::vector<Step> steps;  // by run
  std::vector<Edge> edges;
  std::vector<Pattern> patterns;
  uint64_t settled = 0;  // edges not known to the call whose order random delays did not change
  uint64_t kept = 0;     // after reduction
  uint64_t runs = 0, holds = 0, cut_short = 0, woke = 0, corrected = 0;
  uint64_t contradicted = 0;  // dependencies that the unthrottled run shows to be none
  uint64_t first_ns = 0, all_ns = 0, held_ns = 0, noise_ns = 0;
  int status = 0;  // of the command
  bool out_of_budget = false;
  std::string trace, text;  // the files made
};

// Runs the command as often as it takes and leaves `output` complete, or not at all. [main]
Result<DiscoverReport> discover(const DiscoverOptions& options, Plugins& plugins,
                                const Progress& progress);

// How a dependency is known: "throttling", "shown", "pattern" …
std::string means(const Found& found);
std::string discover_text(const DiscoverReport& report);
std::string discover_json(const DiscoverReport& report);

}  // namespace feign::discover
