// SPDX-License-Identifier: MIT
// The native trace format, which is also the plan: docs/native-format.md describes the bytes.
//
// A file is a row of blocks, each holding activities of one stream only, compressed with zstd and
// checksummed, complete in itself (strings included); then an index of the blocks, the tables (ops,
// streams, sources, what was left out), what must exist before the first call, and a trailer that
// says where the index is. So a worker of the replay reads its own stream's blocks and nothing
// else, and memory does not grow with the trace.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "trace/record.h"
#include "trace/tables.h"

namespace feign {

// Something that must exist (or must not) below the root before the first call.
struct Needed {
  enum Type : uint8_t {
    kFile = 1,
    kDirectory = 2,
    kSymlink = 3,
    kAbsent = 4,
    kFifo = 5,
    kSocket = 6
  };
  Type type = kFile;
  bool changed = false;  // by the trace: content, size, mode or name, if it goes as recorded
  uint32_t mode = 0;     // permission bits, 0: default
  uint32_t denied = 0;   // of them (user's), those that the trace showed not to be there
  uint64_t size = 0;     // files: bytes
  std::string path;      // absolute, as recorded
  std::string target;    // symlinks; files: the path of which this is one more name (a hard link)
  std::vector<std::pair<uint64_t, uint64_t>> data;  // offset and length; elsewhere may be holes
  std::vector<std::pair<std::string, uint64_t>> attributes;  // extended: name and length
};

// Sums over a trace, known without reading its blocks.
struct NativeTotals {
  uint64_t activities = 0;
  uint64_t first_ns = 0;    // least start
  uint64_t last_ns = 0;     // greatest end
  uint64_t max_length = 0;  // longest read or write asked for, bytes
  uint32_t max_handle = 0, max_file = 0;
  std::vector<uint64_t> by_op;      // by the reader's op id
  std::vector<uint64_t> by_stream;  // by stream number
  // By stream number: the numbers of its first and last activity; {0, 0} of one that has none.
  std::vector<std::pair<uint64_t, uint64_t>> spans;
};

class NativeWriter {
 public:
  struct Options {
    int level = 1;  // zstd
    // So many bytes at first are not compressed: of a file that is read again soon, and once.
    uint64_t plain = 0;
    // Activities buffered over all streams are written out before they take more than this.
    size_t memory = size_t{8} << 20;
  };

  // Writes to `fd`, which must be seekable at its current end only (it is never sought), and which
  // stays the caller's. `name` is for messages.
  NativeWriter(int fd, std::string name, const Tables& tables, Options options);
  ~NativeWriter();

  // Activities come in the order of the trace (ids grow strictly). Takes values and dependencies
  // too.
  Result<void> add(const Record& record);
  // Writes what is still buffered, index, tables and trailer. Nothing may be added after.
  Result<void> finish(const std::vector<Needed>& needed);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// One file, open for reading. Opening reads index and tables and registers what they name (ops,
// streams, sources) in `tables`; the blocks are read by cursors, of which any number may be used at
// the same time from different threads.
class NativeReader {
 public:
  // Takes ownership of `fd`. Every fault is an error that says file and offset: too short, not of
  // this format, of a newer version, checksum wrong, an impossible number. [main]
  static Result<std::shared_ptr<NativeReader>> open(int fd, std::string name, Tables& tables);
  // True if these first bytes are of this format.
  static bool recognises(const void* head, size_t size);
  ~NativeReader();

  const NativeTotals& totals() const;
  const std::vector<Needed>& needed() const;

  struct Range {  // what to read; all conditions must hold
    // Numbers of streams, merged in the order of the trace; empty: all.
    std::vector<uint32_t> streams;
    uint64_t from = 0;     // number of the first activity, counted over the whole trace from 0
    uint64_t from_ns = 0;  // start_ns at least
    std::string path;      // exactly this path or path2; "": any
    // Bytes of blocks, and of what is kept of ops, that may be there at the same time.
    size_t most_held = size_t{1} << 30;
  };

  // Reads activities in order; skips blocks that the index shows to be of no use.
  class Cursor {
   public:
    Cursor(std::shared_ptr<const NativeReader> reader, Range range);
    ~Cursor();
    Cursor(Cursor&&) noexcept;
    // The next activity into `out` (all of out.a, out.values, out.depends; a.host as it was), and
    // its number in the whole trace into `number`. False at the end.
    Result<bool> next(Record& out, uint64_t& number);

   private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
  };

 private:
  friend class Cursor;
  struct Impl;
  explicit NativeReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Whether a trace may be written to that name: an error where it would take the place of a file
// that is none.
Result<void> may_be_written(const std::string& path);

}  // namespace feign
