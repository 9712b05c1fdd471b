// SPDX-License-Identifier: MIT
// `feign info`, printed.
#pragma once

#include <string>

#include "cli/trace_info.h"

namespace feign {

// `dependencies`: null if they were not asked for.
std::string info_text(const TraceInfo& info, const Tables& tables,
                      const DependencyInfo* dependencies = nullptr);
std::string info_json(const TraceInfo& info, const Tables& tables,
                      const DependencyInfo* dependencies = nullptr);

}  // namespace feign
