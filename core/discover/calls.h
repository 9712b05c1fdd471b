// SPDX-License-Identifier: MIT
// What the nodes of a run did to files, read from what the capture library recorded; and the trace
// that is made of the first run.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/run.h"
#include "discover/run.h"
#include "trace/native.h"

namespace feign::discover {

// The nodes of a run. Each host numbers its own; here all are in one list, host by host.
struct Numbers {
  struct Part {
    std::string host;  // "": this one
    uint32_t first = 0, count = 0;
  };
  std::vector<std::string> keys;
  std::vector<Part> parts;

  void add(const std::string& host, const std::vector<std::string>& its_keys);
  // Which call of which node an activity is, from 0; false if it is none that counts.
  bool counted(const Tables& tables, const feign_activity& a, uint32_t& node, uint64_t& call) const;
};
Result<std::shared_ptr<NativeReader>> open_trace(const std::string& path, Tables& tables);
// All activities of a trace, in its order, with what their ops are; `what` may be null.
using Visit = std::function<Result<void>(Record& r, const feign_op_info& info, const Call* what)>;
Result<void> each_activity(const std::shared_ptr<NativeReader>& trace, const Tables& tables,
                           const Visit& visit);
// A pipeline without words of its own: what it could say is for traces that users know.
Result<void> quiet_pipeline(std::vector<PluginSpec> specs, Plugins& plugins);
PluginSpec spec(const char* name, GivenOptions options);

// Makes `trace`, of the native format, from a raw folder, and adds to `nodes` what they did.
Result<void> read_run(const std::string& raw, const std::string& trace, Plugins& plugins,
                      const Numbers& numbers, std::map<std::string, NodeLog>& nodes);

// "Call `call` of `node` may not start before call `on_call` of `on`": indices of nodes.
struct CallOrder {
  uint32_t node, on;
  uint64_t call, on_call;
};

struct TraceParts {
  std::string from, to;  // the first run's trace; the file to be made
  std::string work;      // folder for files in between
  const Numbers* numbers = nullptr;
  std::vector<uint32_t> index;  // by number; UINT32_MAX: none that counts
  bool ranks = false;           // other processes are no part of the program
  std::vector<CallOrder> orders;
  std::function<uint64_t(uint32_t node, uint64_t call)> compute_ns;
};
// The calls of the nodes, and what makes and ends processes, with those pauses and orders.
// `contradicted`: orders that the first run itself shows to be untrue; they are left out.
Result<void> write_trace(const TraceParts& parts, Plugins& plugins, uint64_t& contradicted);

}  // namespace feign::discover
