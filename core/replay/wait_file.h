// SPDX-License-Identifier: MIT
// Every wait of a replay in a file (--waits): who, how long, for whom, by which rule.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "replay/path.h"
#include "trace/native.h"
#include "trace/tables.h"

namespace feign {

// `path` - is standard output. Times count from `begin_ns`. The plan is read once more, for what
// was waited for. Where workers waited more often than they keep, the first waits are missing, and
// a line says so.
Result<void> write_waits(const std::string& path, const std::shared_ptr<const NativeReader>& plan,
                         const Tables& tables, const std::vector<WorkerTime>& workers,
                         uint64_t begin_ns);

}  // namespace feign
