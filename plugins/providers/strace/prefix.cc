// SPDX-License-Identifier: MIT
#include "providers/strace/prefix.h"

#include <limits>
#include <utility>

namespace feign::strace {

// Seconds: what is less is no date, but since the line before.
constexpr uint64_t kOldest = 100'000'000;

bool Prefix::begins_at(std::string_view head, uint64_t& time) {
  Scan s(head);
  int64_t pid;
  return read(s, pid, time) && dated_;
}

bool Prefix::read(Scan& s, int64_t& pid, uint64_t& time) {
  pid = pid_;
  bool timed = false, named = false;
  time = clock_;
  in_brackets_ = false;
  s.blanks();
  while (is_digit(s.peek()) || s.peek() == '(' || s.peek() == '[') {
    const char* start = s.p;
    if (!named && s.take("[pid")) {  // or behind a time that is not strace's
      named = in_brackets_ = true;
      s.blanks();
      if (!s.number(pid)) return false;
      if (s.peek() == '<' && !s.skip_angle()) return false;
      if (!s.take(']')) return false;
      s.blanks();
      continue;
    }
    if (s.peek() == '(') {  // "(+     0.000010)": the relative time beside the absolute one
      if (!s.take("(+")) return false;
      while (!s.done() && s.peek() != ')') ++s.p;
      if (!s.take(')')) return false;
      s.blanks();
      continue;
    }
    if (s.peek() == '[') {  // "[ 257]" or "[00007f...]"
      if (s.rest().starts_with(kModeChanged)) break;
      while (!s.done() && s.peek() != ']') ++s.p;
      if (!s.take(']')) return false;
      s.blanks();
      continue;
    }
    uint64_t whole = 0;
    if (!s.digits(whole)) return false;
    // Whole seconds: what stands where a process was named, or can be none.
    const bool seconds = s.at_blank() && !timed && (named || seconds_ || is_no_process(whole));
    seconds_ |= seconds && !named;
    if (s.peek() == ':' || s.peek() == '.' || seconds) {
      uint64_t ns = 0;
      const bool of_day = s.peek() == ':';
      if (of_day) {
        for (int part = 0; part < 2; ++part) {
          uint64_t sixty = 0;
          if (!s.take(':') || !s.digits(sixty) || sixty > 60) return false;
          whole = whole * 60 + sixty;
        }
      }
      const bool fine = s.take('.');
      if (fine) ns = s.nanoseconds();
      dated_ |= of_day || whole >= kOldest;
      exact_ |= fine && dated_;
      if (whole > uint64_t{1} << 33) return false;
      uint64_t t = whole * kSecond + ns + shift_;
      if (of_day) {
        t += day_;
        if (t + kDay / 2 < clock_) {  // midnight has passed
          t += kDay;
          day_ += kDay;
        }
      } else if (whole < kOldest) {
        t += clock_ - shift_;  // -r: since the line before
      }
      time = t;
      timed = true;
    } else if (!timed && (s.at_blank() || s.peek() == '<')) {
      if (whole > static_cast<uint64_t>(std::numeric_limits<int32_t>::max())) return false;
      pid = static_cast<int64_t>(whole);
      named = true;
      if (s.peek() == '<' && !s.skip_angle()) return false;
    } else {
      s.p = start;
      return false;
    }
    if (!s.at_blank()) return false;
    s.blanks();
  }
  return true;
}

bool Terminal::breaks(std::string_view& text, std::string& memory, bool begun) {
  if (!cut_.empty()) {
    memory = std::move(cut_) + std::string(text);
    cut_.clear();
    text = memory;
  }
  int64_t child = 0;
  const size_t at = message_at(text, child);
  if (at == text.npos) return false;
  if (child != 0 && !begun && first_pid_ == 0)
    first_pid_ = child;  // -p: it was there before
  else if (child != 0)
    joined_.insert(child);
  cut_.assign(text.substr(0, at));
  text = {};
  return true;
}

void Terminal::names(std::string_view line, bool in_brackets, int64_t own, bool seen,
                     int64_t& pid) {
  if (in_brackets) {
    if (first_pid_ == 0 && !joined_.empty() && !joined_.contains(pid)) first_pid_ = pid;
    live_.insert(pid);
  } else if (live_.size() == 1 && (first_pid_ != 0 || !seen)) {
    pid = *live_.begin();
  } else {
    return;  // the first one, which had no number so far
  }
  // -qq tells no end but that of the call.
  if (line.ends_with("= ?") || (line.find("+++ ") != std::string_view::npos &&
                                (line.find("+++ exited") != std::string_view::npos ||
                                 line.find("+++ killed") != std::string_view::npos)))
    live_.erase(pid);
  if (pid == first_pid_) pid = own;
}

}  // namespace feign::strace
