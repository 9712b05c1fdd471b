// SPDX-License-Identifier: MIT
// What the runs of a lab say: per trace and root, each configuration against the baseline.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lab/results.h"
#include "lab/statistics.h"

namespace feign {

struct LabRow {
  std::string cell, label, variant;
  Json parameters;
  bool baseline = false;
  std::map<uint64_t, double> seconds;  // of good runs, by repeat
  Samples samples;
  Comparison comparison;       // with the baseline; not of the baseline itself
  uint64_t failed = 0;         // repeats without a good run
  uint64_t failed_before = 0;  // failed runs of repeats that went well later
  std::string why;             // of the last that failed
  uint64_t calls = 0, bytes_read = 0, bytes_written = 0;  // of one run: the last good one
  double fidelity = 1;                                    // the least of all good runs
  std::string activities;                                 // file, "" if none
};

struct LabGroup {
  std::string trace, root;
  std::vector<LabRow> rows;    // the baseline first, then as in the lab's file
  const LabRow* best() const;  // the one with the least ratio; null if none was measured
};

struct LabSummary {
  std::string file;  // of the results
  uint64_t seed = 1, repeats = 0, runs = 0, wanted = 0, failed = 0;
  std::vector<LabGroup> groups;
  // Runs whose cell is no longer in the lab's file, by label: not in `groups`.
  std::map<std::string, uint64_t> others;
};

LabSummary summarize(const Results& results);
std::string summary_text(const LabSummary& summary);
std::string summary_json(const LabSummary& summary);
Json comparison_json(const Comparison& comparison);
// What is to be said of a row: in a few words, and what more repeats could tell ("" if nothing).
std::string verdict_text(const LabRow& row);
std::string resolve_text(const LabRow& row);

}  // namespace feign
