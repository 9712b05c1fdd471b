// SPDX-License-Identifier: MIT
// `feign lab`: what its options ask for, from the file to the summary.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace feign {

struct LabOptions {
  std::vector<std::string> files;  // FILE.yaml; RESULTS.json; or "report" RESULTS.json
  std::string results;             // "": FILE.results.json
  std::string html;                // "" if none
  std::string output;              // of the summary, "": standard output
  bool json = false, quiet = false, dry_run = false, search = false, serve = false;
  std::string budget, repeats, seed;
  std::string trace, root;  // in place of the file's; "" if not
};

// One replay as a page, from its report in JSON and its activities: what `feign replay --html`
// writes.
Result<void> replay_page(const std::string& report, const std::string& activities,
                         const std::string& output);

// The exit status: 0; 1 if a run failed or the lab was ended early; 2 for bad input.
int lab_command(const LabOptions& options);

}  // namespace feign
