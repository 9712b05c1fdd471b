// SPDX-License-Identifier: MIT
// What the rules have in common: what came of one, and what components are run with.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plugin/plugin.h"
#include "trace/native.h"
#include "trace/record.h"

namespace feign::check {

constexpr unsigned kSecondsPerRule = 60;
constexpr size_t kActivities = 1000;
// What Instance::failure() says of a component that did not call host->fail().
constexpr const char* kSilent = "did not say why";
constexpr size_t kBatches[] = {1, 2, 3, 64};

// What came of a rule.
struct Verdict {
  enum Kind { kOk, kFail, kSkip } kind = kOk;
  std::string why;
};
inline Verdict ok() { return {}; }
inline Verdict fail(std::string why) { return {Verdict::kFail, std::move(why)}; }
inline Verdict skip(std::string why) { return {Verdict::kSkip, std::move(why)}; }

// From the child to its parent: a line each, whose first letter says what it is.
constexpr char kBegin = '>', kGood = '+', kBad = '-', kSkipped = '~', kUnloadable = '!';

class Rules {
 public:
  explicit Rules(int fd) : fd_(fd) {}
  void run(const std::string& rule, const std::function<Verdict()>& test);
  void tell(char what, std::string text);

 private:
  int fd_;
};

// A directory of the check's own, and what host->extension() answers.
struct Place {
  std::string directory;
  GivenOptions options;  // the user's
  feign_run run{.struct_size = sizeof(feign_run),
                .root_fd = -1,
                .max_length = 1 << 20,
                .content = "random",
                .ranks = 1};
  std::vector<Needed> needed;
  const Tables* tables = nullptr;

  static const void* extension(void* ctx, const char* id);
};

using Options = GivenOptions;

const feign_option* option_named(const Component& component, std::string_view name);
// With the user's options, as far as the component has them, and `set` in place of what they say.
Result<std::unique_ptr<Instance>> create(const Component& component, Tables& tables, Place& place,
                                         const Options& set = {});
// Names of the options that have no fallback, but for `file`, and that the user did not give.
std::string required(const Component& component, const Place& place);

// Resolved activities of four streams, as a program that opens, reads, writes, renames and closes
// files would make them.
class Trace {
 public:
  explicit Trace(Tables& tables);
  Record& operator[](size_t i) { return records_[i]; }

 private:
  std::unique_ptr<Record[]> records_;
};

// Everything that the next stage would see of an activity, comparable between two runs.
std::string signature(const Tables& tables, const feign_activity& a);

inline std::string shown(size_t batch) { return "at batch size " + std::to_string(batch); }

// The rules of each role; `name` is the component's, for the names of the rules. `lacks`: why it
// cannot be created with these options or on this machine, and what needs it is skipped; "" if it
// can.
void check_modifier(const Component& component, Place& place, Rules& rules, const std::string& name,
                    const std::string& lacks);
void check_provider(const Component& component, Place& place, Rules& rules, const std::string& name,
                    const std::string& lacks);
void check_replayer(const Component& component, Place& place, Rules& rules, const std::string& name,
                    const std::string& lacks);
void check_writer(const Component& component, Place& place, Rules& rules, const std::string& name);

}  // namespace feign::check
