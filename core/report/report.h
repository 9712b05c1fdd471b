// SPDX-License-Identifier: MIT
// What came of a replay, in numbers; printed as text or JSON (docs/report.md has the schema).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "base/histogram.h"
#include "trace/tables.h"

namespace feign {

struct OpCounts {
  uint64_t activities = 0;  // that the plan had
  uint64_t replayed = 0;    // done or emulated
  uint64_t emulated = 0;    // of these, those whose effect was brought about without the call
  uint64_t matched = 0, mismatched = 0;  // of the replayed; what has no recorded result is neither
  uint64_t skipped = 0;
  uint64_t bytes_read = 0, bytes_written = 0;  // as replayed
  uint64_t recorded_bytes_read = 0, recorded_bytes_written = 0;
  void add(const OpCounts& other);
};

struct OpReport : OpCounts {
  Histogram latency;           // as replayed, ns, of calls that were made
  Histogram recorded_latency;  // of the same calls, as recorded
  void merge(const OpReport& other);
};

// Activities of one op that came back with one wrong result.
struct Mismatch {
  uint64_t count = 0;
  uint64_t first_place = 0;  // FEIGN_PLACE
  uint64_t first_id = UINT64_MAX;
  std::string first_path;
};
using MismatchKey = std::tuple<uint32_t, int64_t, int64_t>;  // op, recorded, replayed
using SkipKey = std::pair<uint32_t, std::string>;            // op, why

struct StreamReport {
  uint32_t stream = 0;
  uint64_t activities = 0;
  uint64_t call_ns = 0, pause_ns = 0, wait_ns = 0;  // in calls, in pauses, for dependencies
  uint64_t idle_ns = 0;  // of the pauses, what the recorded one waited for others
  Histogram lateness;    // pace timed: how long after its time each call that was made began
};

// What was waited for, by rule.
struct RuleReport {
  uint64_t count = 0, wait_ns = 0, longest_ns = 0;
};

// A stretch of one stream's time, from the end of its wait for another (or its start) to where a
// third waited for it in turn (or the end). Times count from the start of the replay.
struct PathStep {
  uint32_t stream = 0;
  uint64_t from_ns = 0, to_ns = 0;
  uint64_t call_ns = 0, pause_ns = 0, activities = 0;
  uint32_t waited_for = 0;  // the stream whose step comes before this one; 0: none, or not known
  uint32_t rule = 0;        // string id: why it waited
  uint32_t op = 0;          // of the activity that waited
  uint64_t place = 0;       // of it
};

// The chain of steps, each begun when the one before it let it go on, that ends with the replay:
// had any of them been shorter, the replay had been.
struct CriticalPath {
  bool complete = false;            // it goes back to the start
  uint64_t steps = 0;               // all of them
  uint64_t from_ns = 0, to_ns = 0;  // what it covers
  uint64_t call_ns = 0, pause_ns = 0;
  std::vector<PathStep> longest;  // by time
};

// One of the processes that replayed together. Times are sums over its streams.
struct RankReport {
  uint32_t rank = 0;
  std::string host;
  bool there = false;  // it told what follows
  bool failed = false;
  std::string stopped_by;  // why it ended early, if it did
  uint64_t streams = 0, activities = 0, mismatched = 0;
  uint64_t first_ns = 0, last_ns = 0;  // of its calls, from the common start
  uint64_t io_ns = 0;                  // in calls of all layers but mpi
  uint64_t communication_ns = 0;       // in those of layer mpi
  uint64_t pause_ns = 0, wait_ns = 0;  // computing; for others
  uint64_t bytes = 0;                  // read and written
  uint64_t ready_ns = 0;               // from reading the plan to the start
  uint64_t memory = 0;                 // the most that it took, bytes
};

struct Report {
  std::string trace;         // as the user named it
  std::string root;          // "" if none
  std::string pace;          // "afap", "think", "timed"
  std::string replayer;      // its name
  uint64_t wall_ns = 0;      // of the replay itself, first call to last
  uint64_t recorded_ns = 0;  // first start to last end in the trace
  uint64_t prepare_ns = 0, plan_ns = 0;
  uint64_t join_ns = 0;  // under mpirun: until MPI was there
  uint64_t prepared_files = 0, prepared_directories = 0, prepared_links = 0, prepared_bytes = 0;
  std::string prepared_content;    // "sparse" …
  std::string caches;              // what was dropped: "all", "files"; "" if nothing
  std::vector<std::string> notes;  // what plug-ins had to say, once a run
  uint64_t dropped = 0, merged = 0, injected = 0;  // by modifiers
  bool interrupted = false;                        // ended before the plan did
  bool failed = false;       // … for the replayer failed, or the plan is damaged
  bool left_behind = false;  // … with threads in calls that do not return
  std::string stopped_by;    // why, if it did ("interrupted by signal 2", "no space left …")

  std::vector<std::unique_ptr<OpReport>> ops;  // by op id; null if there was none
  std::map<MismatchKey, Mismatch> mismatches;
  std::map<SkipKey, uint64_t> skips;
  LeftOuts left_out;  // by the provider
  std::vector<StreamReport> streams;
  uint64_t workers = 0;                     // threads that the streams were spread over
  std::map<std::string, RuleReport> rules;  // that were waited for
  std::vector<double> concurrency;          // streams in calls, mean of each tenth of the run
  CriticalPath path;
  std::vector<RankReport> ranks;  // empty: one process
  std::string map;                // as the user said it

  Histogram lateness() const;  // over all streams
  OpReport& op(uint32_t id);
  OpCounts total() const;   // over all ops
  double fidelity() const;  // matched / (matched + mismatched), 1 if none
};

// A report of one process as bytes for another, which adds it to its own. Streams and ops are those
// of one plan. False if the bytes are none.
std::string packed(const Report& report);
bool add_packed(const std::string& bytes, Report& to);

std::string report_text(const Report& report, const Tables& tables);
std::string report_json(const Report& report, const Tables& tables);

}  // namespace feign
