// SPDX-License-Identifier: MIT
// What siox-trace-reader prints: one line a record, names in place of numbers.
#include <algorithm>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <ctime>

#include "base/number.h"
#include "siox/records.h"

namespace siox {

using feign::Result;
using feign::to_number;

namespace {

// What is left of a line. Each part says what was wanted where it was not; null if it was there.
class Line {
 public:
  Line(std::string_view rest, Names& names) : rest_(rest), names_(names) {}
  bool empty() const { return rest_.empty(); }
  bool passes(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }

  // The fraction is a whole number of nanoseconds, with ten digits.
  const char* duration(uint64_t& ns) {
    const size_t dot = rest_.find('.'), blank = rest_.find(' ');
    uint64_t whole = 0, part = 0;
    if (dot == std::string_view::npos || blank == std::string_view::npos || dot > blank ||
        !to_number(rest_.substr(0, dot), whole) ||
        !to_number(rest_.substr(dot + 1, blank - dot - 1), part) || whole > 1'000'000'000 ||
        part > 10 * kSecond)
      return "want a duration, SECONDS.NANOSECONDS";
    ns = whole * kSecond + part;
    rest_ = rest_.substr(blank + 1);
    return nullptr;
  }

  // (((NODE,PID,TIME),COMPONENT),ID,THREAD)
  bool id(ActivityId& to) {
    if (!rest_.starts_with("(((")) return false;
    const size_t process = rest_.find(')', 3), component = behind(process, ')'),
                 all = behind(component, ')');
    if (all == std::string_view::npos) return false;
    const std::string_view c = rest_.substr(process + 1, component - process - 1);
    const std::string_view i = rest_.substr(component + 1, all - component - 1);
    const size_t comma = i.find(',', 1);
    uint64_t n[3]{};
    if (c.empty() || i.empty() || comma == std::string_view::npos ||
        !to_number(c.substr(1), n[0]) || !to_number(i.substr(1, comma - 1), n[1]) ||
        !to_number(i.substr(comma + 1), n[2]))
      return false;
    to.process = names_.process_of(rest_.substr(3, process - 3));
    to.component = static_cast<uint16_t>(n[0]);
    to.id = static_cast<uint32_t>(n[1]);
    to.thread = static_cast<uint32_t>(n[2]);
    rest_ = rest_.substr(all + 1);
    return true;
  }

  // INTERFACE IMPLEMENTATION NAME(
  const char* call(uint32_t& activity) {
    const size_t interface = rest_.find(' '), implementation = behind(interface, ' '),
                 open = behind(implementation, '(');
    if (open == std::string_view::npos) return "want INTERFACE IMPLEMENTATION NAME(…";
    activity = names_.activity_number(rest_.substr(0, interface),
                                      rest_.substr(interface + 1, implementation - interface - 1),
                                      rest_.substr(implementation + 1, open - implementation - 1));
    rest_ = rest_.substr(open + 1);
    return nullptr;
  }

  // ATTRIBUTE=VALUE, … ) =
  const char* attributes(Record& r, std::deque<std::string>& texts) {
    while (!rest_.starts_with(')')) {
      const size_t equals = rest_.find('=');
      if (equals == std::string_view::npos)
        return "want ATTRIBUTE=VALUE, or the closing parenthesis";
      Attribute& a = r.attributes.emplace_back();
      a.id = names_.attribute_number(rest_.substr(0, equals));
      rest_ = rest_.substr(equals + 1);
      if (const char* why = rest_.starts_with('"') ? quoted(a, texts) : value(a, texts)) return why;
      passes(", ");
    }
    return passes(") = ") ? nullptr : "want \") = ERROR\" after the attributes";
  }

  const char* error(uint32_t& code) {
    const size_t end = rest_.find(' ');
    uint64_t number = 0;
    if (!to_number(rest_.substr(0, end), number) || number > INT32_MAX)
      return "want the error's number after \" = \"";
    code = static_cast<uint32_t>(number);
    rest_ = end == std::string_view::npos ? std::string_view() : rest_.substr(end + 1);
    return nullptr;
  }

 private:
  // The next such character behind this place, if both are there.
  size_t behind(size_t at, char c) const {
    return at == std::string_view::npos ? at : rest_.find(c, at + 1);
  }

  // Quotes in a text are not escaped: it ends before what can follow it.
  const char* quoted(Attribute& a, std::deque<std::string>& texts) {
    size_t end = 1;
    for (; (end = rest_.find('"', end)) != std::string_view::npos; ++end) {
      const std::string_view after = rest_.substr(end + 1);
      if (after.starts_with(") = ") || (after.starts_with(", ") && after.find('=') != after.npos))
        break;
    }
    if (end == std::string_view::npos) return "a text that does not end";
    a.type = kString;
    a.text = texts.emplace_back(rest_.substr(1, end - 1));
    rest_ = rest_.substr(end + 1);
    return nullptr;
  }

  // A whole number of more than 64 bits is no real one: these are printed with an exponent.
  const char* value(Attribute& a, std::deque<std::string>& texts) {
    const size_t end = rest_.find_first_of(",)");
    if (end == std::string_view::npos) return "a value that does not end";
    const std::string_view text = rest_.substr(0, end);
    uint64_t positive = 0;
    int64_t negative = 0;
    if (text.empty()) {
      a.type = kNothing;
    } else if (to_number(text, positive)) {
      a.type = kUint64;
      a.number = positive;
    } else if (to_number(text, negative)) {
      a.type = kInt64;
      a.number = static_cast<uint64_t>(negative);
    } else if (text.find_first_of(".en") != text.npos && to_number(text, a.real)) {
      a.type = kDouble;
    } else {
      return texts
          .emplace_back("\"" + std::string(text.substr(0, 40)) +
                        "\": want a number of at most 64 bits, or a text in quotes")
          .c_str();
    }
    rest_ = rest_.substr(end);
    return nullptr;
  }

  std::string_view rest_;
  Names& names_;
};

}  // namespace

bool is_text_line(std::string_view line) {
  static constexpr std::string_view kShape = "dd:dd:dd.ddddddddd d";
  if (line.size() < kShape.size()) return false;
  for (size_t i = 0; i < kShape.size(); ++i)
    if (kShape[i] == 'd' ? line[i] < '0' || line[i] > '9' : line[i] != kShape[i]) return false;
  // Two digits compare as their numbers do; 60 is a leap second.
  return line.substr(0, 2) < "24" && line.substr(3, 2) < "60" && line.substr(6, 2) <= "60" &&
         line.find(" (((") != std::string_view::npos;
}

Result<bool> Records::text(Record& r) {
  std::string_view line;
  while (true) {
    auto more = lines_->next(line);
    if (!more) return more;
    if (!*more) return false;
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
    if (!line.empty() && line[0] != '#' && !line.starts_with("Initializing") &&
        !line.starts_with("Time ("))
      break;
  }
  if (const char* why = text_line(line, r))
    return bad(path_ + ":" + std::to_string(lines_->number()) + ": \"" +
               std::string(line.substr(0, 60)) + "\": " + why +
               (lines_->complete() ? "" : " (the last line, cut short?)"));
  return true;
}

const char* Records::text_line(std::string_view line, Record& r) {
  r.parents.clear();
  r.attributes.clear();
  texts_.clear();
  if (!is_text_line(line))
    return "want HH:MM:SS.NANO DURATION (((NODE,PID,TIME),COMPONENT),ID,THREAD) …";
  r.start = time_of_day(line);
  Line rest(line.substr(19), names_);
  uint64_t duration = 0;
  if (const char* why = rest.duration(duration)) return why;
  r.stop = r.start + duration;
  if (!rest.id(r.id) || !rest.passes(" ")) return "want an activity's id after the duration";
  if (const char* why = rest.call(r.activity)) return why;
  if (const char* why = rest.attributes(r, texts_)) return why;
  if (const char* why = rest.error(r.error)) return why;
  while (!rest.empty()) {
    if (!rest.id(r.parents.emplace_back())) return "want parents' ids at the end";
    rest.passes(", ");
  }
  return nullptr;
}

// HH:MM:SS.NNNNNNNNN, after as many midnights as have passed.
uint64_t Records::time_of_day(std::string_view line) {
  const auto two = [&](size_t at) {
    return static_cast<uint64_t>((line[at] - '0') * 10 + (line[at + 1] - '0'));
  };
  uint64_t ns = 0;
  (void)to_number(line.substr(9, 9), ns);
  uint64_t time = ((two(0) * 60 + two(3)) * 60 + two(6)) * kSecond + ns + day_;
  constexpr uint64_t kDay = 86400 * kSecond;
  if (time + kDay / 2 < last_) {
    time += kDay;
    day_ += kDay;
  }
  last_ = std::max(last_, time);
  return time;
}

std::string printed(const Record& r, const Names& names) {
  char text[128];
  const auto seconds = static_cast<time_t>(r.start / kSecond);
  struct tm when {};
  localtime_r(&seconds, &when);
  const uint64_t duration = r.stop - r.start;
  std::string line;
  snprintf(text, sizeof text, "%02d:%02d:%02d.%09" PRIu64 " %" PRIu64 ".%010" PRIu64 " ",
           when.tm_hour, when.tm_min, when.tm_sec, r.start % kSecond, duration / kSecond,
           duration % kSecond);
  line += text;
  const auto id = [&](const ActivityId& a) {
    snprintf(text, sizeof text, "(((%u,%u,%u),%u),%u,%u)", a.process.node, a.process.pid,
             a.process.time, a.component, a.id, a.thread);
    line += text;
  };
  id(r.id);
  if (const Names::Activity* a = names.activity(r.activity); a != nullptr)
    line += " " + a->interface + " " + a->implementation + " " + a->name + "(";
  else
    line += " ? ? " + std::to_string(r.activity) + "(";
  bool first = true;
  for (const Attribute& a : r.attributes) {
    if (!first) line += ", ";
    first = false;
    const std::string* name = names.attribute(a.id);
    line += name != nullptr ? *name : std::to_string(a.id);
    line += '=';
    switch (a.type) {
      case kString:
        line += '"';
        line += a.text;
        line += '"';
        break;
      case kInt64:
      case kInt32:
        line += std::to_string(static_cast<int64_t>(a.number));
        break;
      case kFloat:
      case kDouble:
        snprintf(text, sizeof text, "%g", a.real);
        line += text;
        break;
      case kNothing:
        break;
      default:
        line += std::to_string(a.number);
    }
  }
  line += ") = " + std::to_string(r.error);
  for (size_t i = 0; i < r.parents.size(); ++i) {
    line += i == 0 ? " " : ", ";
    id(r.parents[i]);
  }
  line += '\n';
  return line;
}

}  // namespace siox
