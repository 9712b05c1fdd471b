// SPDX-License-Identifier: MIT
// What a recording lacks, as far as its own counts tell.
#pragma once

#include <string>
#include <vector>

#include "capture/format.h"

namespace feign {

// A sentence for each reason why calls are not in what was recorded below this page, none if all
// are. (Which programs could not be recorded, their calls tell: provider capture.)
std::vector<std::string> gaps_of(const feign_control& c);

}  // namespace feign
