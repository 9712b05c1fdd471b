// SPDX-License-Identifier: MIT
// A run's activities (replay/activity_log.h), made small enough for a page.
#pragma once

#include <string>

#include "base/error.h"
#include "lab/results.h"

namespace feign {

// Streams, what each did when, and the reads and writes of the files with the most bytes, as
// report_page.html takes them. Neighbours are drawn as one where there are very many.
Result<Json> timeline(const std::string& path);

}  // namespace feign
