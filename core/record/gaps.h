// SPDX-License-Identifier: MIT
// What a recording lacks, as far as its own counts tell.
#pragma once

#include <string>
#include <vector>

#include "capture/format.h"

namespace feign {

struct Gap {
  std::string text;
  bool asked_for;  // by an option, or a signal
};

// One for each reason why calls are not in what was recorded with this page, none if all are.
// (Which programs could not be recorded, their calls tell: provider capture.)
std::vector<Gap> gaps_of(const feign_control& c);

}  // namespace feign
