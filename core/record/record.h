// SPDX-License-Identifier: MIT
// `feign record`: runs a command with the capture library in it, and keeps one trace of it all.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "record/gaps.h"

namespace feign {

class RecordsFile;

struct RecordOptions {
  std::vector<std::string> command;
  std::string output = "trace.feign";
  std::string tracer = "feign";
  std::vector<std::string> include, exclude, layers;
  std::vector<std::string> with;  // capture libraries of third parties' libraries
  std::string sizes;              // of reads and writes to keep: MIN-MAX, one of them may lack
  uint64_t max_bytes = 0;
  uint32_t sample = 1;
  bool mpi = false;        // wrappers of MPI's calls, too
  bool cpu_time = false;   // of long pauses, how long the thread computed
  bool all_users = false;  // processes of every user may write into the recording
  bool paused = false, keep_raw = false, quiet = false;
};

struct Recorded {
  int status = 0;   // the command's, as a shell tells it
  std::string raw;  // what is to be read: a raw folder, or strace's files
  std::vector<std::string> notes;
  std::vector<Gap> gaps;  // the trace that is made of it says them itself
  bool anything = false;  // a process was recorded
};

// A raw folder that is ready for programs to be recorded into (capture/format.h): those that have
// this LD_PRELOAD, and FEIGN_CAPTURE=path, in their environment.
struct RawFolder {
  std::string path, preload;
  feign_control* control = nullptr;
  std::vector<std::string> notes;  // of what will not be in it

  RawFolder();
  RawFolder(const RawFolder&) = delete;
  RawFolder& operator=(const RawFolder&) = delete;
  ~RawFolder();
  // Makes the folder of this name; or uses it again, after remove_raw(name, true).
  Result<void> open(const std::string& name, const RecordOptions& options);
  // A thread makes the pages of its file before they are needed, until ended(). Blocks no signals.
  void make_pages_ahead();
  void ended();  // says when, for its reader
  // Where the command removed the folder (rm -r *, git clean): it is there again. Whether it was
  // so.
  Result<bool> put_back();
  void close();  // the folder remains

 private:
  std::unique_ptr<RecordsFile> file_;
};
// The counter by which a raw folder's times are.
uint64_t record_ticks();

// Runs the command. An Error is one of before it began.
Result<Recorded> record_command(const RecordOptions& options);
// Takes away what record_command() left behind.
void remove_raw(const std::string& raw, bool for_use_again = false);

}  // namespace feign
