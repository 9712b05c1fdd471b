// SPDX-License-Identifier: MIT
// Runs a plan: streams, workers, order, pace, clocks and statistics. A replayer only executes.
//
// As fast as possible and in the recorded order, one worker takes the whole plan, since order over
// all streams leaves nothing to do at once. Otherwise each stream has a worker, or shares one where
// there are very many, and begins where its parent made it; in recorded order a worker waits for
// its activity's number to come up.
#pragma once

#include <memory>

#include "base/error.h"
#include "cli/run.h"
#include "plugin/plugin.h"
#include "replay/activity_log.h"
#include "report/report.h"
#include "trace/native.h"

namespace feign {

// Replays all of `plan` and adds to `report` what came of it; also how it ended, where that was
// early: by g_stop_signal, for want of space, or because something failed (report.failed). Each
// activity that was replayed goes to `activities`, unless that is null. [main]
void replay(std::shared_ptr<const NativeReader> plan, const ReplayOptions& options,
            Instance& replayer, int root_fd, Tables& tables, Report& report,
            const Progress& progress, ActivityLog* activities = nullptr);

}  // namespace feign
