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

struct OpReport {
  uint64_t activities = 0;  // that the plan had
  uint64_t replayed = 0;    // done or emulated
  uint64_t emulated = 0;    // of these, those whose effect was brought about without the call
  uint64_t matched = 0, mismatched = 0;  // of the replayed; what has no recorded result is neither
  uint64_t skipped = 0;
  uint64_t bytes_read = 0, bytes_written = 0;  // as replayed
  uint64_t recorded_bytes_read = 0, recorded_bytes_written = 0;
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
  uint64_t call_ns = 0, pause_ns = 0, wait_ns = 0;  // in calls, in think time, for dependencies
};

struct Report {
  std::string trace;         // as the user named it
  std::string root;          // "" if none
  std::string pace;          // "afap", "think"
  std::string replayer;      // its name
  uint64_t wall_ns = 0;      // of the replay itself, first call to last
  uint64_t recorded_ns = 0;  // first start to last end in the trace
  uint64_t prepare_ns = 0, plan_ns = 0;
  uint64_t prepared_files = 0, prepared_directories = 0, prepared_links = 0, prepared_bytes = 0;
  std::string prepared_content;        // "sparse" …
  std::vector<std::string> notes;      // what plug-ins had to say, once a run
  uint64_t dropped = 0, injected = 0;  // by modifiers
  bool interrupted = false;            // ended before the plan did
  std::string stopped_by;              // why, if it did ("signal 2", "no space left on device …")

  std::vector<std::unique_ptr<OpReport>> ops;  // by op id; null if there was none
  std::map<MismatchKey, Mismatch> mismatches;
  std::map<SkipKey, uint64_t> skips;
  LeftOuts left_out;  // by the provider
  std::vector<StreamReport> streams;

  OpReport& op(uint32_t id);
  OpReport total() const;   // over all ops
  double fidelity() const;  // matched / (matched + mismatched), 1 if none
};

std::string report_text(const Report& report, const Tables& tables);
std::string report_json(const Report& report, const Tables& tables);

}  // namespace feign
