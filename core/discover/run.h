// SPDX-License-Identifier: MIT
// One run of the application under the eyes of `feign discover`: starts it with the capture
// library, watches its nodes in shared memory, and holds the throttled one before the calls that
// were asked for until nobody else moves. Ends within a bound, whatever the application does, and
// leaves no process behind. What the nodes did is in the raw folder afterwards (calls.h reads it).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "discover/post.h"
#include "nlohmann/json_fwd.hpp"

namespace feign::discover {

// One I/O call of a node.
struct IoCall {
  std::string text;    // as in //TRACE's text: "write(3, 4096) = 4096"
  std::string before;  // lines before it: opens a file that the node did not open itself
  uint64_t start_ns = 0;
  uint64_t gap_ns = 0;     // since the node's call before it
  uint64_t waited_ns = 0;  // of that, in calls that can wait for others
  uint64_t call_ns = 0;
};

struct NodeLog {
  int rank = -1;
  std::vector<IoCall> calls;
  uint64_t longest_gap_ns = 0;  // without what it waited
  uint64_t longest_cpu_ns = 0;  // of the processor's in a gap
  uint64_t longest_call_ns = 0;
};

struct Hold {
  uint64_t k = 0;                               // the throttled node's call
  std::map<std::string, uint64_t> reach;        // calls that each other node had ended
  std::map<std::string, std::string> stuck_in;  // the calls that nodes were waiting in, if any
  uint64_t delay_ns = 0;
};

// What a host's post answers (post.h).
using Ask = std::function<Result<nlohmann::json>(const nlohmann::json& question)>;

struct RunPlan {
  std::vector<Ask> posts;     // this host's first
  std::vector<pid_t> spared;  // processes of ours that are no part of a run
  std::vector<std::string> command;
  std::string raw;   // folder to record into, on each host
  bool mpi = false;  // with wrappers of MPI's calls
  bool per_process = false;
  std::vector<std::string> only, exclude;
  bool show_output = false;
  uint64_t timeout_ns = 0, max_delay_ns = 0;
  double factor = 2;
  uint64_t floor_ns = 0;        // nothing counts as blocked for less
  std::string throttled;        // key; "": nobody is
  std::vector<uint64_t> holds;  // calls before which it is held
  // After each hold: a later call to hold it at in this run, or UINT64_MAX. `sure`: it is known how
  // far the others got.
  std::function<uint64_t(const Hold& hold, bool sure)> next;
};

struct RunOutcome {
  // By host: of all nodes, by their numbers in this run.
  std::vector<std::vector<std::string>> keys;
  std::map<std::string, NodeLog>
      nodes;  // by key: those that made I/O calls; calls are not read yet
  std::map<std::string, Limits> makers;  // those that made none, but processes or threads
  std::vector<Hold> holds;
  uint64_t cut_short = 0;  // holds that met the bound of a delay: nothing is known of them
  uint64_t woke = 0;       // times a node that was taken for blocked went on
  uint64_t wall_ns = 0, held_ns = 0;
  uint32_t ranks = 0;             // of MPI that there were, as their launcher says; 0: none
  int status = 0;                 // the command's exit status; 128+N: signal N
  std::vector<std::string> died;  // what nodes were doing that were killed: "rank:1: in write, …"
};

// `limits` by key: what is known of other runs; factors grow where a node was judged too early.
// `progress`: the number of calls ended so far. [main]
Result<RunOutcome> run_watched(const RunPlan& plan, std::map<std::string, Limits>& limits,
                               const std::function<void(uint64_t)>& progress);

// Kills all children of this process but the spared ones, and their children as they come to it (it
// is their subreaper). `reap` waits for those that have ended.
void end_children(const std::vector<pid_t>& spared, const std::function<void()>& reap);

// How late this machine is: what a sleep of 1 ms takes more, at worst.
uint64_t measure_noise();

}  // namespace feign::discover
