// SPDX-License-Identifier: MIT
// Good parameters without trying all of them: successive halving, and a protocol for an optimiser
// outside (docs/lab-format.md).
#pragma once

#include <string>

#include "base/error.h"
#include "lab/session.h"

namespace feign {

struct Budget {
  uint64_t runs = 0;     // 0: not limited so
  uint64_t time_ns = 0;  // 0: not limited so
};
// "60" runs, "10m".
Result<Budget> parse_budget(const std::string& text);

// Measures all configurations a few times, keeps the better third (by the mean ratio to the
// baseline over all traces and roots), measures those three times as often, and so on until one is
// left. `text`: what was done, round by round, and what was found. False if a signal ended it.
Result<bool> search(const Lab& lab, Session& session, const Results& results, const Budget& budget,
                    bool json, std::string& text);

// Answers requests on standard input, a line each, until it ends.
Result<bool> serve(const Lab& lab, Session& session, const Results& results, Plugins& plugins);

}  // namespace feign
