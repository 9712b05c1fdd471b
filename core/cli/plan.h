// SPDX-License-Identifier: MIT
// The left half of a run: a trace by way of provider and modifiers into the plan, which is a file
// in the native format, and into the writers.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "base/fd.h"
#include "cli/line.h"
#include "cli/run.h"
#include "trace/native.h"
#include "trace/tables.h"

namespace feign {

// A file for the plan: without a name, or, where `keep` is not null, with the one put there.
Result<Fd> plan_file(std::string* keep);

// Whether a trace in the native format can be replayed as it is.
bool is_plan_already(const Line& line);
// … and what it says must be there before it suits these replayers: it counts on all its calls.
bool all_is_made(const Line& line);

// Whether ranks of a trace send to each other.
bool has_messages(const NativeTotals& totals, const Tables& tables);

// How ranks that replay a trace are kept in order, if nobody says: "kept" by itself, in a plan that
// has dependencies (modifier depend was there before), or where each rank is one stream and sends
// messages; "apart", by messages, and dependencies within ranks; else by all dependencies.
// `messages_alone`: but for them there is nothing between ranks.
std::string order_of_ranks(const Line& line, bool messages_alone);

// `plan_fd`: where the plan goes, -1 if none is wanted; the caller's. `explain`: as PipelineOptions
// has it.
Result<void> plan_and_write(const Line& line, int plan_fd, Extensions& extensions, uint64_t explain,
                            RunResult& result, Tables& tables, const Progress& progress);

}  // namespace feign
