// SPDX-License-Identifier: MIT
// Runs of a lab: which there are to do, doing one, and writing down what came of it.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "lab/lab.h"
#include "lab/results.h"

namespace feign {

// What a child process came to.
struct Child {
  int status = -1;  // as of waitpid()
  bool timed_out = false;
  std::string out, err;
};
// Runs argv[0] and waits, while `tick` is called some ten times a second; g_stop_signal is handed
// on to it, unless it may not be interrupted. It does not outlive this process.
Result<Child> run_child(const std::vector<std::string>& argv, uint64_t timeout_ns,
                        bool interruptible, const std::function<void()>& tick);

// Puts into a record what it keeps of a replay's report.
void take(const Json& report, Json& run);

// One thing to measure.
struct Cell {
  const LabTrace* trace;
  const LabRoot* root;
  LabConfig config;
  std::string id;
};

class Session {
 public:
  // `results` outlives it.
  Session(const Lab& lab, Results& results, bool quiet);
  // Roots that were set up are torn down.
  ~Session();

  // All cells, traces first, then roots, then configurations.
  std::vector<Cell> cells(const std::vector<LabConfig>& configs) const;
  // The head of the results for this lab.
  static Json head(const Lab& lab);

  // Tear-down commands, if there was a run to set up for; the first failure.
  Result<void> end();

  // Whether a good run is there already.
  bool has(const Cell& cell, uint64_t repeat) const { return good_.contains({cell.id, repeat}); }
  // As if there were none.
  void forget(const Cell& cell, uint64_t repeat) { good_.erase({cell.id, repeat}); }
  // Does it, unless it is there. `by` says what for: "lab", "search", "serve", "timeline". False if
  // a signal ended it: nothing is written down then. A failed run is a run. The first one sets up
  // the roots.
  Result<bool> run(const Cell& cell, uint64_t repeat, const std::string& by,
                   const std::string& activities = "");
  // Each cell `repeats` times, all of them once in a random order before any is done again.
  Result<bool> run_all(const std::vector<Cell>& cells, uint64_t from, uint64_t to,
                       const std::string& by);
  // For the time left: runs that are still to come after this one.
  void expect(uint64_t runs) { expected_ = done_ + runs; }
  uint64_t failed() const { return failed_; }
  uint64_t done() const { return done_; }

 private:
  // Before the first run: set-up commands of all roots.
  Result<void> begin();
  // Before the first run of a trace on a root. False if a signal ended it.
  Result<bool> warm_up(const LabTrace& trace, const LabRoot& root);
  void progress(const Cell& cell, uint64_t began_ns);
  double seconds_left(uint64_t began_ns) const;

  const Lab& lab_;
  Results& results_;
  const bool shows_;
  const std::string program_;
  std::set<std::pair<std::string, uint64_t>> good_;
  bool begun_ = false;
  std::vector<const LabRoot*> set_up_;
  std::set<std::pair<const LabTrace*, const LabRoot*>> warm_;
  std::set<std::string> told_;  // what was said once
  uint64_t done_ = 0, expected_ = 0, failed_ = 0;
  uint64_t spent_ns_ = 0;  // on the runs that were done
};

}  // namespace feign
