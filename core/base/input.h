// SPDX-License-Identifier: MIT
// Reading text that may be large, compressed, cut short or not text at all.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace feign {

// A file's bytes, decompressed if it is gzip or zstd (told by its first bytes).
class Input {
 public:
  // Directories and what cannot be opened are errors that name the file.
  static Result<std::unique_ptr<Input>> open(const std::string& path);
  ~Input();
  // Up to `size` bytes; 0 at the end. A damaged compressed stream is an error.
  Result<size_t> read(char* to, size_t size);
  // read() failed since a compressed stream ends in the middle: all before it is good.
  bool cut_short() const;
  const std::string& path() const;

 private:
  struct Impl;
  explicit Input(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The lines of an input. Memory: one line, and what is read at once.
class Lines {
 public:
  explicit Lines(std::unique_ptr<Input> input) : input_(std::move(input)) {}
  // The next line without its newline (and the first without a byte order mark), good until the
  // next call; false at the end. A line of more than kLongest bytes is an error. If input's
  // cut_short(), all whole lines were returned before.
  Result<bool> next(std::string_view& line);
  uint64_t number() const { return number_; }  // of the line last returned, from 1
  bool complete() const { return complete_; }  // it ended in a newline
  bool cut_short() const { return input_->cut_short(); }
  const std::string& path() const { return input_->path(); }

  static constexpr size_t kLongest = size_t{256} << 20;

 private:
  Result<bool> one(std::string_view& line);

  static constexpr size_t kChunk = size_t{128} << 10;
  std::unique_ptr<Input> input_;
  // Not zeroed first: of a short file few of its pages are touched.
  std::unique_ptr<char[]> buffer_ = std::make_unique_for_overwrite<char[]>(kChunk);
  size_t size_ = kChunk;
  size_t begin_ = 0, end_ = 0;
  uint64_t number_ = 0;
  bool complete_ = true, at_end_ = false;
};

// False of a pipe and the like: what was read of it is gone.
bool can_be_read_again(const std::string& path);
// The first bytes of a file, decompressed, for telling what it is; without a mark that it is UTF-8,
// as Lines has it. Refuses what cannot be read again.
Result<std::string> head_of(const std::string& path, size_t size);
// The same of what is read only once, and may be a pipe.
Result<std::string> first_bytes(const std::string& path, size_t size);

// The number of a file that is named PREFIX.NUMBER, compressed or not; none if it is not.
std::optional<uint64_t> number_of(std::string_view file);

// The files that a name stands for: itself, or, where there is none of that name, all NAME.NUMBER
// (compressed or not), as strace -ff -o NAME writes them, in order; of a raw folder of feign
// record, its file "records".
std::vector<std::string> files_of(const std::string& name);

}  // namespace feign
