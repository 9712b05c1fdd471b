// SPDX-License-Identifier: MIT
// What stands before a call: whose line it is, and when.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "feign.h"
#include "providers/strace/text.h"

namespace feign::strace {

constexpr uint64_t kDay = 86400 * kSecond;

// Linux gives processes numbers up to 2^22.
inline bool is_no_process(uint64_t number) { return number == 0 || number > uint64_t{1} << 22; }

// "[ Process PID=7 runs in 32 bit mode. ]" stands where a call would.
constexpr std::string_view kModeChanged = "[ Process PID=";

// Processes and times in all forms. A time may be told by the one before: a file has one of these.
class Prefix {
 public:
  // `pid`: of lines that name none.
  explicit Prefix(int64_t pid) : pid_(pid) {}

  // Reads "[pid N] ", "N ", times of every form, and what strace -n, -i, -Y put before the call,
  // at which the scan stands then; false: this is no line of a trace.
  bool read(Scan& s, int64_t& pid, uint64_t& time);
  // Whether a file that begins so tells when that is (is_exact: to the microsecond).
  bool begins_at(std::string_view head, uint64_t& time);
  // A line was written then.
  void at(uint64_t time) { clock_ = time; }
  uint64_t clock() const { return clock_; }
  void is_of_next_day() { day_ = kDay; }
  void set_back(uint64_t by) { shift_ += by; }
  int64_t pid() const { return pid_; }
  // Whether the last line that was read had "[pid N]".
  bool in_brackets() const { return in_brackets_; }
  bool is_dated() const { return dated_; }
  bool is_exact() const { return exact_; }

 private:
  int64_t pid_;
  uint64_t clock_ = 0;  // of the last line
  uint64_t day_ = 0;    // added to times of day
  uint64_t shift_ = 0;  // added to all times since the clock was set back
  bool in_brackets_ = false;
  bool dated_ = false;  // a time that is none since the line before
  bool exact_ = false;  // a time of less than a second's grain, that is none since the line before
  bool seconds_ = false;  // times are whole seconds, and lines name no process
};

// On a terminal, lines name their process only while there are several. The first one's number is
// seen late, and whoever is left in the end is not named.
class Terminal {
 public:
  // "strace: Process N attached" may break the line of the call that made it: takes it off, and
  // what was before it is put before the next line, in `memory`. Whether the line is over with it.
  // `begun`: there were calls before.
  bool breaks(std::string_view& text, std::string& memory, bool begun);
  bool has_cut() const { return !cut_.empty(); }
  // Whether processes have joined, as messages tell (-q has none) or lines with their numbers.
  bool is_shared() const { return !joined_.empty() || !live_.empty(); }
  // Whether anything tells which number the first one has.
  bool knows_first() const { return first_pid_ != 0 || !joined_.empty(); }
  void first_is(int64_t pid) { first_pid_ = pid; }
  // Whose line it is, where several share the terminal. `in_brackets`: it says so; `own`: the first
  // one's number here; `seen`: it has lines without one.
  void names(std::string_view line, bool in_brackets, int64_t own, bool seen, int64_t& pid);

 private:
  std::string cut_;  // the beginning of a line that a message broke
  std::set<int64_t> live_, joined_;
  int64_t first_pid_ = 0;
};

}  // namespace feign::strace
