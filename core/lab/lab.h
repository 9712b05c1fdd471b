// SPDX-License-Identifier: MIT
// A lab: traces × configurations × roots × repeats, as a YAML file describes it (docs/lab.md).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "plugin/plugin.h"

namespace feign {

using Parameters = std::vector<std::pair<std::string, std::string>>;  // name, value; in order

struct LabTrace {
  std::string name;
  std::vector<std::string> files;
  std::vector<std::string> options;  // of `feign replay`: --provider …
  std::string checksum;              // of its content, roughly
};

struct LabRoot {
  std::string name, path;
  std::string setup, teardown;      // commands, "" if none
  std::string drop_caches = "all";  // "all", "files", "no", or a command
  std::string settle;               // a command
};

// One thing to try: what `feign replay` is told.
struct LabConfig {
  std::string variant;    // the variant's name in the file
  std::string label;      // with what varies: "prefetch distance=4"
  Parameters parameters;  // what varies, in the order of the file
  std::vector<PluginSpec> with;
  Parameters settings;  // "pace" -> "think": options of `feign replay`, without their dashes
};

// A value that an option or setting may take, as written: one text, or several of an option that
// may be given several times.
using LabValue = std::vector<std::string>;

struct LabVariant {
  struct Parameter {
    std::string
        name;  // "distance", or "prefetch.distance" where two plug-ins have one of that name
    size_t plugin = 0;  // in `with`; kSetting: a setting
    std::string option;
    std::vector<LabValue> values;  // to try
    std::string where;             // in the file
    static constexpr size_t kSetting = SIZE_MAX;
  };
  std::string name;
  std::vector<PluginSpec> with;  // without what varies
  Parameters settings;           // without what varies
  std::vector<Parameter> parameters;
  std::vector<std::vector<size_t>> points;  // a value's number for each parameter
};

// What was measured elsewhere, to be drawn beside a variant's parameter.
struct LabCurve {
  std::string name, variant, parameter;
  std::vector<std::pair<std::string, double>>
      points;  // value of the parameter, ratio to a baseline
};

struct Lab {
  std::string file;
  std::vector<LabTrace> traces;
  std::vector<LabRoot> roots;
  std::vector<LabVariant> variants;
  std::vector<LabConfig> configs;  // all points of all variants
  std::vector<LabCurve> curves;
  std::string baseline;  // the label of one of them
  uint64_t repeats = 10, seed = 1;
  uint64_t warm_up = 0;     // runs before the first that counts, of each trace and root
  std::string require;      // a share, "" if none
  uint64_t timeout_ns = 0;  // of a run, 0: none
  enum class Timeline { kNone, kBest, kAll } timeline = Timeline::kBest;

  const LabConfig* config(const std::string& label) const;
  std::string root_of(const LabTrace& trace, const LabRoot& root) const;  // the directory
};

// Errors name file, line and column, the value, and what was wanted. Nothing is run. `trace` and
// `root`, unless "", stand in for the file's (one of each).
Result<Lab> load_lab(const std::string& path, Plugins& plugins, const std::string& trace,
                     const std::string& root);

// A point of a variant with these values, whatever the file says they may be; checked like the
// file's own. Names that are not there take the variant's first value.
Result<LabConfig> make_config(const LabVariant& variant,
                              const std::map<std::string, LabValue>& values, Plugins& plugins);

// The arguments that `feign` gets for a run.
std::vector<std::string> replay_arguments(const Lab& lab, const LabTrace& trace,
                                          const LabRoot& root, const LabConfig& config);
// Short, and another one for anything that would be run differently.
std::string cell_id(const Lab& lab, const LabTrace& trace, const LabRoot& root,
                    const LabConfig& config);

}  // namespace feign
