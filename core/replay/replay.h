// SPDX-License-Identifier: MIT
// Runs a plan: streams, workers, order, pace, clocks and statistics. A replayer only executes.
//
// As fast as possible and in the recorded order, one worker takes the whole plan, since order over
// all streams leaves nothing to do at once. Otherwise each stream has a worker, or shares one where
// there are very many, and begins where its parent made it; in recorded order a worker waits for
// its activity's number to come up.
#pragma once

#include <memory>
#include <vector>

#include "base/error.h"
#include "base/progress.h"
#include "plugin/plugin.h"
#include "replay/activity_log.h"
#include "replay/options.h"
#include "replay/ranks.h"
#include "report/report.h"
#include "trace/native.h"

namespace feign {

// The others that replay the same plan, and which streams are whose.
struct Team {
  Ranks& ranks;
  const RankMap& map;
};

// Whether a replayer takes the calls of a layer: who names none serves all.
bool serves(const feign_replayer& api, const char* layer);

// Replays all of `plan`, or this rank's part of it, and adds to `report` what came of it; also how
// it ended, where that was early: by g_stop_signal, for want of space, because something failed
// (report.failed), here or in another rank. Each activity goes to the first of `replayers` that
// serves its layer, and once it was replayed to `activities`, unless that is null. [main]
void replay(std::shared_ptr<const NativeReader> plan, const ReplayOptions& options,
            const std::vector<Instance*>& replayers, int root_fd, Tables& tables, Report& report,
            const Progress& progress, ActivityLog* activities = nullptr,
            const Team* team = nullptr);

}  // namespace feign
