// SPDX-License-Identifier: MIT
// What is in a trace, for `feign info`.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/dependencies.h"
#include "cli/run.h"
#include "plugin/plugin.h"
#include "trace/tables.h"

namespace feign {

struct TraceInfo {
  std::string provider;
  uint64_t activities = 0, injected = 0;  // injected: of these, what was not recorded
  uint64_t bytes_read = 0, bytes_written = 0;
  uint64_t first_ns = 0, last_ns = 0, compute_ns = 0, sync_ns = 0, call_ns = 0;
  struct Op {
    uint64_t count = 0, failed = 0, bytes = 0, duration_ns = 0, not_a_file = 0;
  };
  std::vector<Op> ops;  // by op id
  // Calls of one layer: all; the time in those that lie in no other of it, and what of that is not
  // in calls of other layers in them.
  struct Layer {
    uint64_t activities = 0, duration_ns = 0;
    int64_t own_ns = 0;
  };
  std::map<std::string, Layer, std::less<>> layers;
  struct Stream {
    uint64_t activities = 0, first_ns = 0, last_ns = 0;
    uint32_t moved_depth = UINT32_MAX;  // FEIGN_DEPTH of the call whose bytes were counted last
  };
  std::vector<Stream> streams;  // by number
  struct File {
    std::string path;
    uint64_t calls = 0, bytes_read = 0, bytes_written = 0;
  };
  std::vector<File> files;  // those with the most bytes, then calls; at most 20
  // How files are read, or written: which sizes, and from where in an open file compared with the
  // time before. The first time counts as none of them.
  struct Access {
    std::map<uint64_t, uint64_t> sizes;  // bytes moved -> how often; see add_size()
    uint64_t count = 0, largest = 0, sequential = 0, strided = 0, elsewhere = 0;
    // Of very many different sizes, only the power of two below each is kept apart.
    void add_size(uint64_t bytes);
    uint64_t size_at(double share) const;  // that this share is no larger than
  };
  Access reads, writes;
  uint64_t file_count = 0;
  // What comes with starting any program (base/workload.h), and what is on no file.
  uint64_t noise = 0, no_files = 0;
};
Result<TraceInfo> trace_info(const std::vector<PluginSpec>& plugins, Plugins& registry,
                             Tables& tables, const Progress& progress);

// What the dependencies that modifier `depend` inserts come to; with its default rules unless it is
// among the plug-ins. Reads the trace twice.
Result<DependencyInfo> dependency_info(const std::vector<PluginSpec>& plugins, Plugins& registry,
                                       const Progress& progress);

}  // namespace feign
