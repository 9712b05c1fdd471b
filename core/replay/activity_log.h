// SPDX-License-Identifier: MIT
// What a replay did, activity by activity, in a file: for timelines and for whoever wants to look
// for himself (docs/lab-format.md describes it). Off unless asked for; a record is 64 bytes copied
// into a worker's own buffer, which is written when it is full.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/output.h"
#include "trace/tables.h"

namespace feign {

// One activity that was replayed. A layout of the file.
struct DoneActivity {
  uint64_t start_ns;  // CLOCK_MONOTONIC; the header has the replay's begin
  uint64_t duration_ns;
  uint64_t offset;  // as feign_activity has it
  uint64_t length;
  int64_t result;  // as replayed
  uint64_t id;
  uint32_t stream, op, file, path;
};
static_assert(sizeof(DoneActivity) == 64);

struct ActivityLogHeader {
  char magic[8];  // "FEIGNACT"
  uint32_t version, record_size;
  uint64_t count;             // records; in no order over all streams
  uint64_t names_at;          // where a JSON object with the names begins; it ends with the file
  uint64_t begin_ns, end_ns;  // of the replay
};
static_assert(sizeof(ActivityLogHeader) == 48);

class ActivityLog {
 public:
  // A worker's part. [one thread]
  class Part {
   public:
    explicit Part(ActivityLog& log) : log_(log) { buffer_.reserve(kBuffered); }
    void add(const DoneActivity& a) {
      buffer_.push_back(a);
      if (buffer_.size() == kBuffered) [[unlikely]]
        flush();
    }
    void flush() {
      log_.write(buffer_);
      buffer_.clear();
    }

   private:
    static constexpr size_t kBuffered = 1024;
    ActivityLog& log_;
    std::vector<DoneActivity> buffer_;
  };

  static Result<std::unique_ptr<ActivityLog>> create(const std::string& path);
  // Adds the names and puts the file in its place; all parts have been flushed.
  Result<void> finish(const Tables& tables, uint64_t begin_ns, uint64_t end_ns);

 private:
  explicit ActivityLog(std::string path) : path_(std::move(path)) {}
  void write(const std::vector<DoneActivity>& records);  // [any thread]
  bool put(const void* data, size_t size);

  const std::string path_;
  OutputFile file_;
  std::mutex mutex_;
  uint64_t count_ = 0;
  int errno_ = 0;                            // of the first failed write
  std::vector<bool> ops_, paths_, streams_;  // that were seen
};

}  // namespace feign
