// SPDX-License-Identifier: MIT
// What SIOX recorded, record by record: the three forms of its activity files, and the side files
// that say what the numbers in them mean (docs/siox-format.md).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/input.h"

namespace siox {

// A process: node, process number, and when it began (seconds of its node's clock).
struct Process {
  uint32_t node = 0, pid = 0, time = 0;
  auto operator<=>(const Process&) const = default;
};

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

// The side files of one folder.
class Names {
 public:
  struct Activity {
    std::string interface, implementation, name;
  };
  // `ontology` and `system` must be there; `association` is "" if it is not.
  static feign::Result<std::unique_ptr<Names>> read(const std::string& ontology,
                                                    const std::string& system,
                                                    const std::string& association);
  const Activity* activity(uint32_t number) const;  // null if unknown
  const std::string* attribute(uint32_t id) const;  // "domain/name"
  const std::string* host(uint32_t node) const;
  int32_t rank(const Process& process) const;  // -1 if it is not told
  bool listed(const Process& process) const { return listed_.contains(process); }

  // For the text form, which has names and no numbers: one for each, made at first use.
  uint32_t activity_number(std::string_view interface, std::string_view implementation,
                           std::string_view name);
  uint32_t attribute_number(std::string_view name);
  Process process_of(std::string_view text);

 private:
  feign::Result<void> read_ontology(const std::string& path);
  feign::Result<void> read_system(const std::string& path);
  feign::Result<void> read_association(const std::string& path);

  std::vector<std::unique_ptr<Activity>> activities_;
  std::vector<std::unique_ptr<std::string>> attributes_;
  std::map<uint32_t, std::string> hosts_;
  std::map<Process, int32_t> ranks_;
  std::set<Process> listed_;  // of which association.dat says something
  std::map<std::string, uint32_t, std::less<>> by_text_;
  std::map<std::string, Process, std::less<>> processes_;
};

enum class Form : uint8_t { kNone, kBinary, kArchive, kText };
// What a file that starts so is.
Form form_of(std::string_view head);

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
  explicit Records(std::string path, Names& names) : path_(std::move(path)), names_(names) {}
  feign::Result<bool> binary(Record& record, bool skim);
  feign::Result<bool> archive(Record& record);
  feign::Result<bool> text(Record& record);
  feign::Result<bool> have(size_t size);  // in the buffer, unless the file ends before
  feign::Result<std::string_view> token();
  feign::Result<uint64_t> number_token(const char* what);
  feign::Result<ActivityId> id_tokens();
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
