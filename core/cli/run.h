// SPDX-License-Identifier: MIT
// One run of the engine: the stages put together. The commands are thin layers above this.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/output.h"
#include "base/progress.h"
#include "plugin/plugin.h"
#include "replay/options.h"
#include "report/report.h"
#include "trace/tables.h"

namespace feign {

struct PipelineOptions {
  std::vector<PluginSpec>
      plugins;  // in order: one provider, modifiers, then a replayer and/or writers
  ReplayOptions replay;
  std::string file;      // where the pipeline is written; empty: on the command line
  uint64_t explain = 0;  // say what modifiers made of so many activities; 0: do not
  // What the caller has read, and what it writes when it is done: that is not over what is read.
  std::vector<std::string> inputs;
  std::vector<Written> outputs;
  std::vector<std::string> notes;  // what else the traces that it writes, and the report, say
};

struct RunResult {
  bool replayed = false;  // report is that of a replay; else only its counts are
  bool silent = false;    // another rank of the replay prints it
  // Ends all ranks of a replay that ended early, when the report is out; empty otherwise.
  std::function<void(int status)> end_all;
  Report report;
  std::vector<std::pair<std::string, std::string>> written;  // writer, file
  std::string explanation;                                   // if it was asked for
};

// Runs a pipeline. A replay that ran but was cut short is a result; anything else that fails is an
// Error and leaves nothing half-written. [main]
Result<RunResult> run_pipeline(const PipelineOptions& options, Plugins& plugins, Tables& tables,
                               const Progress& progress);

// The pipeline of a YAML file; errors name file, line and column.
Result<PipelineOptions> load_pipeline(const std::string& path);

}  // namespace feign
