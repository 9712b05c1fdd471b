// SPDX-License-Identifier: MIT
// Who waits for whom, found by runs in which one node is slow: the runs (discover.cc), where a node
// is held (search.cc), and what is written of it (files.cc).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "discover/calls.h"
#include "discover/discover.h"
#include "discover/folder.h"
#include "discover/frontier.h"
#include "discover/hosts.h"
#include "discover/order.h"
#include "discover/post.h"
#include "discover/run.h"
#include "discover/seen.h"
#include "nlohmann/json.hpp"

namespace feign::discover {

class Discovery {
 public:
  Discovery(const DiscoverOptions& options, Plugins& plugins, const Progress& progress)
      : options_(options), plugins_(plugins), progress_(progress) {}
  ~Discovery() {
    if (hosts_.size() != 0 && !plan_.raw.empty()) remove_raw(plan_.raw);
  }
  Result<DiscoverReport> run();

 private:
  struct Node {
    std::string key;
    NodeLog first;                    // the unthrottled run
    std::vector<uint64_t> least_gap;  // of each call, over the runs in which it was throttled
    std::unique_ptr<Frontier> frontier;
    std::vector<Order::Times> last;  // of its calls in the last run
    uint64_t usual_gap = 0;          // before a call, in the unthrottled run: the median
  };

  Result<RunOutcome> one_run(const std::string& throttled, const std::vector<uint64_t>& holds);
  void note_step(uint64_t found) {
    report_.steps.push_back({now_ns() - begin_, report_.holds, found});
  }
  Error failure(const RunOutcome& outcome, const std::string& throttled) const;
  Result<void> first_run();
  Result<void> choose_nodes();
  void held(uint32_t index, const Hold& hold);
  Result<void> once(uint32_t index, const std::vector<uint64_t>& holds);
  std::set<uint64_t> likely(uint32_t index, bool found) const;
  std::pair<uint64_t, uint64_t> likely_wait(uint32_t index, uint32_t other, uint64_t call) const;
  Result<void> explore(uint32_t index);
  Result<void> refine(uint32_t index, const std::vector<uint64_t>& holds);
  std::set<std::pair<uint32_t, uint64_t>> moved_by_delays(uint32_t index);
  bool accurate(const Frontier& frontier, const Frontier::Matters& matters) const;
  Result<void> throttle(uint32_t index);
  void conclude();
  Order order() const;
  void find_patterns();
  Result<void> compare(const RunOutcome& outcome, const std::string& throttled);
  Result<void> write_raw();
  Result<void> merge();
  Result<void> write_dependencies();
  uint64_t compute_of(const Node& node, size_t call) const;
  std::string work(const std::string& name) const { return folder_.path("work/" + name); }
  bool time_left() const {
    return options_.budget_ns == 0 || now_ns() - begin_ < options_.budget_ns;
  }

  const DiscoverOptions& options_;
  Plugins& plugins_;
  const Progress& progress_;
  DiscoverReport report_;
  Folder folder_;
  Post post_{""};
  Hosts hosts_;
  RunPlan plan_;
  std::map<std::string, Limits> limits_;
  std::vector<Node> nodes_;
  uint64_t begin_ = 0;
  std::vector<std::string> raw_files_;
  std::vector<SeenOrder> shown_;  // dependencies that the first run's trace shows
  Numbers numbers_;               // of the first run
  std::vector<uint32_t> index_;   // of nodes, by these
  bool ranked_ = false;           // nodes are ranks
};

}  // namespace feign::discover
