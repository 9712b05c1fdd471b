// SPDX-License-Identifier: MIT
// The .stat files of HDTrace: values measured on a node over time, summed up.
#pragma once

#include <string>

#include "base/error.h"
#include "trace/tables.h"

namespace feign::hdtrace {

// Adds a Statistic for every value of the file to tables (which may be null: then it is only
// checked).
Result<void> read_statistics(const std::string& path, Tables* tables);

}  // namespace feign::hdtrace
