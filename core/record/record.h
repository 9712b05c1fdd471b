// SPDX-License-Identifier: MIT
// `feign record`: runs a command with the capture library in it, and keeps one trace of it all.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"

namespace feign {

struct RecordOptions {
  std::vector<std::string> command;
  std::string output = "trace.feign";
  std::string tracer = "feign";
  std::vector<std::string> include, exclude, layers;
  std::vector<std::string> with;  // capture libraries of third parties' libraries
  uint64_t max_bytes = 0;
  uint32_t sample = 1;
  bool mpi = false;  // wrappers of MPI's calls, too
  bool paused = false, keep_raw = false, quiet = false;
};

struct Recorded {
  int status = 0;   // the command's, as a shell tells it
  std::string raw;  // what is to be read: a raw folder, or strace's files
  std::vector<std::string> notes;
  bool anything = false;  // a process was recorded
};

// Runs the command. An Error is one of before it began.
Result<Recorded> record_command(const RecordOptions& options);
// Takes away what record_command() left behind.
void remove_raw(const std::string& raw);

}  // namespace feign
