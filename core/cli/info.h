// SPDX-License-Identifier: MIT
// `feign info`, printed.
#pragma once

#include <string>

#include "cli/run.h"

namespace feign {

std::string info_text(const TraceInfo& info, const Tables& tables);
std::string info_json(const TraceInfo& info, const Tables& tables);

}  // namespace feign
