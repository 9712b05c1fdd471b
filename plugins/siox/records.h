// SPDX-License-Identifier: MIT
// What SIOX recorded, record by record: the three forms of its activity files
// (docs/siox-format.md).
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/input.h"
#include "siox/names.h"

namespace siox {

struct ActivityId {
  Process process;
  uint16_t component = 0;
  uint32_t id = 0, thread = 0;
  bool operator==(const ActivityId&) const = default;
};
struct HashId {
  size_t operator()(const ActivityId& a) const {
    uint64_t h = (uint64_t{a.process.node} << 32 | a.process.pid) * 0x9E3779B97F4A7C15;
    h ^= (uint64_t{a.id} << 32 | a.thread << 16 | a.component) * 0xC2B2AE3D27D4EB4F;
    return h ^ h >> 29 ^ a.process.time;
  }
};

// Types of attributes, as the files number them.
enum Type : uint8_t { kInt64, kUint64, kInt32, kUint32, kFloat, kDouble, kString, kNothing };

struct Attribute {
  uint32_t id = 0;
  uint8_t type = kNothing;
  uint64_t number = 0;    // integers by their bits, sign-extended
  double real = 0;        // floats and doubles
  std::string_view text;  // good until the next record
};

struct Record {
  uint32_t activity = 0;         // the call's number (ucaid): Names says which call
  uint64_t start = 0, stop = 0;  // ns, CLOCK_REALTIME; in text, since midnight
  ActivityId id;
  std::vector<ActivityId> parents;
  std::vector<Attribute> attributes;
  uint32_t error = 0;  // errno, 0 if it succeeded
};

constexpr uint64_t kSecond = 1'000'000'000;
// No record is longer: a path has 4 KiB, an environment 128 KiB.
constexpr uint64_t kLongestRecord = uint64_t{64} << 20;

enum class Form : uint8_t { kNone, kBinary, kArchive, kText };
// What a file that starts so is.
Form form_of(std::string_view head);
// A line of siox-trace-reader: "14:51:40.826088407 0.0000020331 (((".
bool is_text_line(std::string_view line);

// The records of one file, in its order. Memory: one record.
class Records {
 public:
  // `names` gets what the text form names, and must outlive this.
  static feign::Result<std::unique_ptr<Records>> open(const std::string& path, Names& names);
  // False at the end. With `skim` only activity, start, stop and id are filled in.
  feign::Result<bool> next(Record& record, bool skim = false);
  uint64_t number() const { return number_; }  // of the record last returned, from 1
  const std::string& path() const { return path_; }

 private:
  struct Archive;
  explicit Records(std::string path, Names& names) : path_(std::move(path)), names_(names) {}
  feign::Result<bool> binary(Record& record, bool skim);
  feign::Result<bool> archive(Record& record);
  feign::Result<bool> text(Record& record);
  feign::Result<bool> have(size_t size);  // in the buffer, unless the file ends before
  feign::Result<std::string_view> token();
  void pass(size_t size) {
    begin_ += size;
    offset_ += size;
  }
  const char* text_line(std::string_view line, Record& record);  // what is wrong with it, or null
  uint64_t time_of_day(std::string_view line);
  feign::Error wrong(const std::string& what) const;

  std::string path_;
  Names& names_;
  Form form_ = Form::kNone;
  std::unique_ptr<feign::Input> input_;  // binary and archive
  std::unique_ptr<feign::Lines> lines_;  // text
  std::vector<char> buffer_;
  size_t begin_ = 0, end_ = 0;
  uint64_t offset_ = 0;  // of buffer_[begin_] in the file
  uint64_t number_ = 0;
  bool over_ = false;
  unsigned first_vectors_ = 0;     // archive: which kinds of vectors there were already
  std::deque<std::string> texts_;  // of the archive's strings
  uint64_t day_ = 0, last_ = 0;    // text: midnights that passed
};

// A record as siox-trace-reader prints it, with a newline. The time of day is `TZ`'s.
std::string printed(const Record& record, const Names& names);
constexpr const char* kPrintedHead =
    "Initializing file ontology using ontology.dat\n"
    "Time (HH:MM:SS.NANO)\tDuration\tID\tComponent\tActivity(Attributes)\tParents = ReturnCode\n";

}  // namespace siox
