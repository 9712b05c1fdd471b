// SPDX-License-Identifier: MIT
// Provider strace: reads what strace(1) prints.
//
// A line is taken apart by a small tokenizer that knows strings, brackets and descriptor
// annotations (never by searching for ") = "); which argument means what comes from the call's
// description in layers/posix.h. Calls interrupted in the text (<unfinished ...>) are put together
// again. Activities leave in the order in which they took effect: a call that makes a process or
// gives up a descriptor holds its place from its start, every other from its end; of calls on one
// name that overlap, as their results tell (overlap.h).
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <deque>
#include <limits>
#include <memory>
#include <new>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/input.h"
#include "capture/acl.h"
#include "feign.hpp"
#include "layers/posix_ops.h"
#include "plugin/options.h"
#include "providers/overlap.h"
#include "providers/strace_overhead.h"

namespace {

using feign::Call;
using feign::CallArg;
using feign::Effect;
using feign::Form;
using feign::LeftOutCall;
using feign::Role;

struct Options {
  const char* const* file;
  const char* cwd;
  const char* overhead;
  uint32_t keep_going;
};
constexpr feign_option kOptions[] = {
    {"file", FEIGN_OPT_TEXTS, offsetof(Options, file), nullptr, nullptr, 0, 0,
     "Trace file, plain, .gz or .zst; several (one a process or rank) are one trace. The prefix of "
     "strace -ff stands for all of its files."},
    {"cwd", FEIGN_OPT_TEXT, offsetof(Options, cwd), "", nullptr, 0, 0,
     "Working directory of the program, where the trace does not tell it (by -y, chdir or getcwd). "
     "Else /."},
    {"overhead", FEIGN_OPT_TEXT, offsetof(Options, overhead), "auto", nullptr, 0, 0,
     "Time of the tracer itself in the pause before each call, taken off: auto (estimated), none, "
     "or a time such as 20us."},
    {"keep-going", FEIGN_OPT_BOOL, offsetof(Options, keep_going), "no", nullptr, 0, 0,
     "Count and skip lines that cannot be understood, instead of failing at the first."},
};

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kDay = 86400 * kSecond;
constexpr uint64_t kOldest =
    100'000'000;  // seconds: what is less is no date, but since the line before
// A call that holds its place in the order is waited for over at most this many later ones.
constexpr size_t kMaxHeld = size_t{1} << 18;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_';
}

// What strace prints for the call of a process that is gone when it asks.
constexpr std::string_view kNoName = "???";
constexpr const char* kNoEnd = "the arguments do not end: want CALL(…) = RESULT";
constexpr const char* kLostNewline = "more text behind its time: a lost newline?";
// … behind a call that lasts: others' lines come first; strace leaves the process.
constexpr std::string_view kUnfinished = "<unfinished ...>", kDetached = "<detached ...>";

// The name that a call begins with.
std::string_view name_of_call(std::string_view text) {
  if (text.starts_with(kNoName)) return kNoName;
  size_t length = 0;
  while (length < text.size() && is_name(text[length])) ++length;
  return text.substr(0, length);
}

// Reads along a piece of text.
struct Scan {
  const char* p;
  const char* end;

  explicit Scan(std::string_view text) : p(text.data()), end(text.data() + text.size()) {}
  bool done() const { return p == end; }
  char peek() const { return p == end ? '\0' : *p; }
  bool take(char c) {
    if (peek() != c || p == end) return false;
    ++p;
    return true;
  }
  [[gnu::always_inline]] bool take(std::string_view text) {
    if (p == end || *p != text[0]) return false;  // the usual case
    if (static_cast<size_t>(end - p) < text.size() || memcmp(p, text.data(), text.size()) != 0)
      return false;
    p += text.size();
    return true;
  }
  void blanks() {
    while (p != end && (*p == ' ' || *p == '\t')) ++p;
  }
  std::string_view rest() const { return {p, static_cast<size_t>(end - p)}; }
  // Decimal digits; false if there are none, or more than a time or an id can have.
  bool digits(uint64_t& value) {
    const char* const start = p;
    const char* at = p;
    uint64_t v = 0;
    for (; at != end && is_digit(*at); ++at) v = v * 10 + static_cast<uint64_t>(*at - '0');
    p = at;
    value = v;
    return at != start && at - start <= 18;
  }
  // The digits after a point, as nanoseconds; what is finer is left out.
  uint64_t nanoseconds() {
    constexpr uint64_t kUnits[] = {1'000'000'000, 100'000'000, 10'000'000, 1'000'000, 100'000,
                                   10'000,        1'000,       100,        10,        1};
    const char* const start = p;
    const char* const most = end - p > 9 ? p + 9 : end;
    const char* at = p;
    uint64_t v = 0;
    for (; at != most && is_digit(*at); ++at) v = v * 10 + static_cast<uint64_t>(*at - '0');
    v *= kUnits[at - start];
    while (at != end && is_digit(*at)) ++at;
    p = at;
    return v;
  }

  // A C number: decimal, octal (leading 0), hexadecimal, with a sign. False if there is none.
  bool number(int64_t& value) {
    const char* start = p;
    bool negative = false;
    if (peek() == '-') {
      negative = true;
      ++p;
    }
    if (!is_digit(peek())) {
      p = start;
      return false;
    }
    int base = 10;
    if (*p == '0' && p + 1 != end && (p[1] == 'x' || p[1] == 'X')) {
      base = 16;
      p += 2;
    } else if (*p == '0' && p + 1 != end && is_digit(p[1])) {
      base = 8;
      ++p;
    }
    uint64_t magnitude = 0;
    if (base == 10) {
      const char* digits = p;
      while (p != end && is_digit(*p))
        magnitude = magnitude * 10 + static_cast<uint64_t>(*p++ - '0');
      if (p - digits < 20) {  // the usual case: it cannot have overflowed
        value = static_cast<int64_t>(negative ? 0 - magnitude : magnitude);
        return true;
      }
      p = digits;
    }
    const auto [stop, error] = std::from_chars(p, end, magnitude, base);
    if (error != std::errc{}) {
      p = start;
      return false;
    }
    p = stop;
    value = static_cast<int64_t>(negative ? 0 - magnitude : magnitude);
    return true;
  }

  // Past "flags=": strace -N says what each argument is called, and always does of clone's.
  void skip_name() {
    if (p == end || *p < 'a' || *p > 'z') return;
    const char* at = p;
    while (at != end && is_name(*at)) ++at;
    if (at != end && *at == '=') p = at + 1;
  }

  // Past a string that starts here, quotes included; false if it does not end.
  bool skip_string() {
    ++p;
    while (p != end && *p != '"') p += *p == '\\' && p + 1 != end ? 2 : 1;
    if (p == end) return false;
    ++p;
    return true;
  }
  // Past <…> that starts here: nested; "->" is an arrow between brackets (a connection's ends,
  // whose names stand in quotes), and in a path if nothing follows that may follow one. (In a path,
  // newer strace writes "\76".)
  bool skip_angle() {
    const bool path = p != end && p + 1 != end && p[1] == '/';
    int depth = 0, brackets = 0;
    for (; p != end; ++p) {
      if (*p == '<') ++depth;
      if (!path) {
        brackets += *p == '[' ? 1 : *p == ']' ? -1 : 0;
        if (*p == '"' && brackets > 0) {
          if (!skip_string()) return false;
          --p;
        }
      }
      if (*p != '>') continue;
      if (p[-1] == '-' && (path ? !may_follow_path(p + 1) : brackets > 0)) continue;
      if (--depth == 0) {
        ++p;
        return true;
      }
    }
    return false;
  }
  bool may_follow_path(const char* at) const {
    return at == end || strchr(",) (]}", *at) != nullptr;
  }
  // To the comma or the closing parenthesis that ends this argument; false at the end of the text.
  bool skip_argument() {
    int depth = 0;
    while (p != end) {
      switch (*p) {
        case '"':
          if (!skip_string()) return false;
          continue;
        case '(':
        case '[':
        case '{':
          ++depth;
          break;
        case ')':
          if (depth == 0) return true;
          [[fallthrough]];
        case ']':
        case '}':
          --depth;
          break;
        case '<':
          // An annotation follows a descriptor; "a << b" and "<0.1>" do not occur in arguments.
          if (p + 1 != end && p[1] == '<') {
            ++p;
            break;
          }
          if (!skip_angle()) return false;
          continue;
        case '/':
          if (p + 1 != end && p[1] == '*') {
            const std::string_view left = rest();
            const size_t close = left.find("*/");
            if (close == std::string_view::npos) return false;
            p += close + 2;
            continue;
          }
          break;
        case ',':
          if (depth == 0) return true;
          break;
        default:
          break;
      }
      ++p;
    }
    return false;
  }
};

// Where what strace says of a process begins, which on a terminal may break a call's line:
// "strace: Process 8 attached", of old without "strace: ", with a path where it was called by
// one; npos if the line does not end so. `attached`: the process, if it joins.
size_t message_at(std::string_view text, int64_t& attached) {
  constexpr std::string_view kProcess = "Process ", kBy = "strace: ";
  size_t at = text.rfind(kProcess);
  if (at == std::string_view::npos) return at;
  Scan s(text.substr(at + kProcess.size()));
  int64_t pid = 0;
  if (!s.number(pid)) return std::string_view::npos;
  if (s.take(" attached"))
    attached = pid;
  else if (!s.take(" detached") && !s.take(" suspended") && !s.take(" resumed"))
    return std::string_view::npos;
  if (!s.done() && !s.take(" (") && !s.take(" with ") && !s.take(" - interrupt to quit"))
    return std::string_view::npos;
  if (text.substr(0, at).ends_with(kBy)) {
    at -= kBy.size();
    size_t path = at;
    while (path > 0 && (is_name(text[path - 1]) || strchr("/.-", text[path - 1]) != nullptr))
      --path;
    if (text.substr(0, path).ends_with('*')) ++path;  // the end of a comment before it
    at = std::min(at, text.find('/', path));
  }
  return at;
}

// The parenthesis of ") = RESULT" that ends the line of a call; npos if it does not end so.
size_t end_of_call(std::string_view text) {
  constexpr std::string_view kEquals = " = ";
  for (size_t at = text.rfind(kEquals); at != text.npos; at = text.rfind(kEquals, at - 1)) {
    const size_t close = text.find_last_not_of(' ', at);
    if (close == text.npos) break;
    const char result = at + kEquals.size() < text.size() ? text[at + kEquals.size()] : '\0';
    if (text[close] == ')' && (is_digit(result) || result == '-' || result == '?')) return close;
    if (at == 0) break;
  }
  return text.npos;
}

// The number in write(1, "text"..., 129; what the program wrote may follow it. Empty: there is
// none.
std::string_view count_of(std::string_view text) {
  Scan s(text);
  s.p += name_of_call(text).size();
  if (!s.take('(') || !s.skip_argument() || !s.take(',') || !s.skip_argument() || !s.take(','))
    return {};
  s.blanks();
  s.skip_name();
  const char* const from = s.p;
  while (is_digit(s.peek())) ++s.p;
  return {from, static_cast<size_t>(s.p - from)};
}

// The result behind end_of_call(), as it is printed.
std::string_view result_of(std::string_view end) {
  const std::string_view text = end.substr(end.find('=') + 2);
  return text.substr(0, text.find(' '));
}

// Such a line without what the program wrote, which may hold anything. Its digits and the number's
// cannot be told apart but by the result. Empty: it is no such line.
std::string without_output(std::string_view text) {
  const size_t close = end_of_call(text);
  std::string_view count = count_of(text);
  if (close == text.npos || count.empty()) return {};
  const std::string_view end = text.substr(close), result = result_of(end);
  std::string whole(text.data(), count.data());
  whole += count.starts_with(result) ? result : count;
  return whole += end;
}

std::string without_colours(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b' && i + 1 < text.size() && text[i + 1] == '[') {
      i += 2;
      while (i < text.size() && !((text[i] | 32) >= 'a' && (text[i] | 32) <= 'z')) ++i;
      continue;
    }
    plain += text[i];
  }
  return plain;
}

// "<0.000010>" at the end of a line: the call's duration.
bool duration_of(std::string_view text, uint64_t& ns) {
  if (text.empty() || text.back() != '>') return false;
  const size_t open = text.rfind('<');
  if (open == std::string_view::npos) return false;
  Scan d(text.substr(open + 1));
  uint64_t whole = 0;
  if (!d.digits(whole) || !d.take('.') || whole >= 1'000'000'000) return false;
  ns = whole * kSecond + d.nanoseconds();
  return true;
}

// Whether something follows the duration of a call, of which the scan stands behind the result.
bool ends_early(Scan& s) {
  if (s.peek() == '<' && !s.skip_angle()) return false;
  const std::string_view rest = s.rest();
  const size_t open = rest.find(" <");
  if (open == rest.npos) return false;
  Scan time(rest.substr(open + 2));
  uint64_t whole = 0;
  if (!time.digits(whole) || !time.take('.')) return false;
  (void)time.nanoseconds();
  if (!time.take('>')) return false;
  time.blanks();
  return !time.done();
}

// The permission bits that an attribute stands for, if it is an access control list; else 0.
uint32_t mode_of_acl(std::string_view list) {
  uint32_t version = 0;
  if (list.size() < FEIGN_ACL_LEAST) return 0;
  memcpy(&version, list.data(), sizeof version);
  if (version != FEIGN_ACL_VERSION) return 0;
  feign_acl_mode mode{};
  feign_acl_entry entry{};
  for (size_t at = 4; at + sizeof entry <= list.size(); at += sizeof entry) {
    memcpy(&entry, list.data() + at, sizeof entry);
    feign_acl_add(&mode, entry);
  }
  return feign_acl_st_mode(&mode);
}

// Undoes C escapes into `out`.
void unescape(std::string_view text, std::string& out) {
  out.clear();
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c != '\\' || i + 1 == text.size()) {
      out += c;
      continue;
    }
    c = text[++i];
    switch (c) {
      case 'n':
        out += '\n';
        break;
      case 't':
        out += '\t';
        break;
      case 'r':
        out += '\r';
        break;
      case 'v':
        out += '\v';
        break;
      case 'f':
        out += '\f';
        break;
      case 'x': {
        unsigned value = 0;
        size_t digits = 0;
        while (digits < 2 && i + 1 < text.size() &&
               isxdigit(static_cast<unsigned char>(text[i + 1]))) {
          const char h = text[++i];
          value = value * 16 + static_cast<unsigned>(is_digit(h) ? h - '0' : (h | 32) - 'a' + 10);
          ++digits;
        }
        out += static_cast<char>(value);
        break;
      }
      default:
        if (c >= '0' && c <= '7') {
          unsigned value = static_cast<unsigned>(c - '0');
          for (int digits = 1;
               digits < 3 && i + 1 < text.size() && text[i + 1] >= '0' && text[i + 1] <= '7';
               ++digits)
            value = value * 8 + static_cast<unsigned>(text[++i] - '0');
          out += static_cast<char>(value);
        } else {
          out += c;
        }
    }
  }
}

// Calls by name: a description, or a reason to leave it out.
struct Known {
  const Call* call = nullptr;
  const LeftOutCall* left_out = nullptr;
  bool narrow = false;  // of programs of 32 bits only
};

// A call that holds its place, or that is complete and waits behind one that does.
struct Held {
  feign_activity a{};
  std::vector<uint64_t> values;
  bool complete = true;
  bool from_start = false;  // it took effect when it started
  feign::Claims claims;
  feign::Shown shown;
  uint32_t open = 0;          // calls under way that may have taken effect before it
  std::vector<Held*> rivals;  // those that have ended since
  bool gone = false;          // it took effect before one that ended before it
  uint64_t ended() const { return a.start_ns + a.duration_ns; }
};

// A call of which the text has shown the beginning only.
struct Begun {
  std::string text;  // "name(arguments so far"
  uint64_t start = 0, line = 0;
  Held* place = nullptr;            // that it holds, if it does
  bool took_over = false;           // execve of a thread that became the process: it was successful
  std::array<uint32_t, 2> names{};  // that it is about
  std::vector<Held*> early;         // calls on them that ended since: `open` counts this one
};

struct Process {
  uint32_t stream = 0;
  uint64_t last_ns = UINT64_MAX;  // how long its last call took
  // The tracer's own time since the last call that became an activity: in the pauses before calls,
  // and in calls whose time is part of the pause.
  uint64_t overhead = 0;
  uint64_t ended = 0;  // that call
  int64_t pid = 0;
  uint32_t cwd = 0;     // for names that calls are after; 0: not known
  bool moved = false;   // it is not where it began
  bool narrow = false;  // a program of 32 bits
  bool begun = false;
  Begun call;
};

// Calls that take effect when they start, not when they end: those that make a process, give up a
// descriptor or a lock, or wake somebody, who may be seen to go on before the call is seen to end.
// `text` is the call with its arguments, as far as they are known.
bool at_start(const Call& call, std::string_view text) {
  switch (call.effect) {
    case Effect::kFork:
    case Effect::kVfork:
    case Effect::kClone:
    case Effect::kClose:
    case Effect::kConnect:
    case Effect::kSend:
      return true;
    case Effect::kFutex:
      return text.find("_WAKE") != text.npos || text.find("REQUEUE") != text.npos;
    case Effect::kFlock:
      return text.find("LOCK_UN") != text.npos;
    case Effect::kFcntl:
      return text.find("F_UNLCK") != text.npos && text.find("F_GETLK") == text.npos;
    case Effect::kWrite: {  // into a pipe or the like: write(4<pipe:[77]>, …
      Scan s(text.substr(text.find('(') + 1));
      s.skip_name();
      while (is_digit(s.peek())) ++s.p;
      return s.take('<') && s.peek() != '/';
    }
    default:
      return false;
  }
}

class Provider;

// One file of the trace.
class Source {
 public:
  Source(Provider& provider, std::unique_ptr<feign::Lines> lines, uint32_t number, int32_t rank,
         int64_t pid)
      : provider_(provider), lines_(std::move(lines)), number_(number), rank_(rank), pid_(pid) {}

  // Reads on until the front of the queue is complete, or the file is over.
  feign_status fill();
  bool empty() const { return next_ == nullptr; }
  uint64_t pauses(uint64_t most_lines, feign::TracerTime& out);
  // When the front took effect, by the clock of the trace.
  uint64_t when() const;
  Held& front() { return *next_; }
  void pop();
  uint32_t number() const { return number_; }

 private:
  feign_status line(std::string_view text);
  feign_status goes_on(std::string_view text);
  feign_status gives_up();
  feign_status unusual(std::string_view& text, std::string& memory);
  bool prefix(Scan& s, int64_t& pid, uint64_t& time);
  void on_terminal(std::string_view line, int64_t& pid);
  void check_clock(uint64_t& time);
  feign_status requests(Held& first, int64_t accepted);
  feign_status call(Process& p, uint64_t time, std::string_view text, uint64_t first_line,
                    Held* place);
  feign_status unfinished(int64_t pid, uint64_t time, std::string_view text);
  feign_status resumed(int64_t pid, std::string_view text);
  bool is_rest_of_call(std::string_view text) const;
  feign_status bad(const std::string& what, uint64_t line = 0);
  feign_status stray(std::string_view text, const char* want);
  void names(Begun& begun, const Call& call);
  uint32_t where(Process& p);
  void overlaps(Process& p, Held& h, Effect effect);
  void released(Held& h);
  void forget(Held& h);
  std::vector<Held*> no_longer_under_way(Process& p);
  feign_status ended(Process& p, std::string_view text);
  Process& process(int64_t pid);

  Provider& provider_;
  std::unique_ptr<feign::Lines> lines_;
  uint32_t number_;
  int32_t rank_;
  int64_t pid_;  // of lines that name none
  std::deque<Held> queue_;
  Held* next_ = nullptr;             // of the queue
  std::vector<Process*> under_way_;  // in calls about names
  std::vector<Held*> releases_;      // of locks, that hold their places
  std::unordered_map<int64_t, std::unique_ptr<Process>> processes_;
  int64_t last_pid_ = -1;
  Process* last_process_ = nullptr;
  std::string cut_;  // the beginning of a line that a message broke
  struct Broken {    // a call's line that ends before the call does
    std::string text, why;
    const LeftOutCall* left_out = nullptr;  // if it is none that becomes an activity
    int64_t pid = 0;
    uint64_t time = 0, line = 0, lost = 0;
  };
  std::unique_ptr<Broken> broken_;
  Process* unfinished_ = nullptr;  // whose call the text showed the beginning of last
  // On a terminal, lines name their process only while there are several. The first one's number is
  // seen late, and whoever is left in the end is not named.
  std::set<int64_t> live_, attached_;
  int64_t first_pid_ = 0;
  uint64_t clock_ = 0;  // of the last line
  uint64_t day_ = 0;    // added to times of day
  uint64_t shift_ = 0;  // added to all times since the clock was set back
  bool exact_ = false;  // a time of less than a second's grain, that is none since the line before
  bool seconds_ = false;  // times are whole seconds, and lines name no process
  uint32_t jumps_ = 0;
  bool over_ = false, table_ = false, any_call_ = false, coloured_ = false;
  bool timed_ = false;  // some call has its duration
};

class Provider {
 public:
  Provider(const feign_host* host, const Options& options);
  feign_status start();
  feign_status next(size_t want, feign_sink* out);

  friend class Source;

 private:
  Known known(std::string_view name);
  // Fills `a` from "arguments) = result <time>"; false with `error_` set.
  bool arguments(const Call& call, Scan& s, Held& held);
  bool argument(const CallArg& arg, Scan& s, Held& held, bool& is_cwd);
  uint32_t hint(int32_t fd, std::string_view annotation);
  uint32_t text_of(std::string_view quoted);
  void times(Scan s, Held& held);
  feign_status find_overhead(const std::vector<std::string>& files);
  void find_cwd(const std::string& file);
  bool flags(const CallArg& arg, Scan& s, uint64_t& value);
  bool wrong(const char* what) {
    error_ = what;
    return false;
  }

  const feign_host* host_;
  Options options_;
  std::vector<std::unique_ptr<Source>> sources_;
  std::unordered_map<std::string_view, Known> names_;
  std::unordered_map<std::string_view, int> errors_;
  // Calls without a description, as they turned up.
  struct Unknown {
    std::string name;
    LeftOutCall call;
  };
  std::vector<std::unique_ptr<Unknown>> unknown_;
  uint32_t cwd_ = 0;
  bool cwd_told_ = false, after_cwd_ = false;  // the call's name is after it
  feign::Names there_;
  feign::Account shared_;
  std::unordered_map<int64_t, uint32_t> began_in_;  // by process: its maker's directory
  uint32_t said_cwd_ = 0;                           // by the annotation of the call's AT_FDCWD
  feign::TracerTime tracer_;
  bool estimated_ = false;  // … from the trace
  std::string scratch_, error_;
  std::string requests_;       // io_submit's array
  int64_t true_result_ = -1;   // behind a pointer
  bool known_ = false;         // anything of the last flags()
  bool microseconds_ = false;  // what the call's times count in
  // What was said of descriptors: mostly the same as the last time.
  struct Hint {
    std::string text;
    uint32_t id = 0;
  };
  std::vector<Hint> hints_{1024};
  struct FlagText {
    const feign_name* names = nullptr;
    std::string text;
    uint64_t value = 0;
    bool known = false;  // any name or number of it
  };
  std::vector<FlagText> flag_texts_{256};
  // When the trace began: taken off as lines are read if there is one file, else as they are
  // merged.
  bool first_ = true, origin_known_ = false;
  bool several_ = false;  // files, of which nothing was said yet
  uint64_t base_ = 0, origin_ = 0;
};

// ---- a file
// ---------------------------------------------------------------------------------------

Process& Source::process(int64_t pid) {
  if (pid == last_pid_ && last_process_ != nullptr) return *last_process_;
  auto& p = processes_[pid];
  if (!p) {
    p = std::make_unique<Process>();
    p->pid = pid;
    feign_stream_info info{};
    info.struct_size = sizeof info;
    info.rank = rank_;
    info.process = pid;
    info.thread = pid;
    p->stream = provider_.host_->stream(provider_.host_, &info);
  }
  last_pid_ = pid;
  last_process_ = p.get();
  return *p;
}

// `line`: which, if it is not the one that was read last.
feign_status Source::bad(const std::string& what, uint64_t line) {
  if (provider_.options_.keep_going) {
    provider_.host_->left_out(provider_.host_, 0, "(line)", "not understood", 0, 0);
    return FEIGN_OK;
  }
  if (line == 0) line = lines_->number();
  const std::string text = lines_->path() + ":" + std::to_string(line) + ": " + what;
  // strace was killed, or its disk full; but for a text that is no trace at all.
  if (any_call_ && !lines_->complete() && line == lines_->number()) {
    provider_.host_->log(provider_.host_, FEIGN_LOG_WARN,
                         (text + " (the last line is cut short, and left out)").c_str());
    provider_.host_->left_out(provider_.host_, 0, "(line)", "the last line, cut short", 0, 0);
    return FEIGN_OK;
  }
  return provider_.host_->fail(provider_.host_, FEIGN_ERR_ARGUMENT,
                               (text + " (--keep-going leaves such lines out)").c_str());
}

// What is no line of a trace: what is written to the terminal by a process that is in write(), or
// an error.
feign_status Source::stray(std::string_view text, const char* want) {
  if (!any_call_ && text.find("strace") != text.npos) {  // "$ strace -f COMMAND"
    provider_.host_->left_out(provider_.host_, 0, "(line)", "the command that was typed", 0, 0);
    return FEIGN_OK;
  }
  if (std::none_of(processes_.begin(), processes_.end(), [](const auto& p) {
        return p.second->begun && p.second->call.text.starts_with("write");
      }))
    return bad("\"" + std::string(text.substr(0, 40)) + "\": " + want);
  const size_t at = text.rfind("[pid ");  // a trace's line behind it
  return at == text.npos || at == 0 ? FEIGN_OK : line(text.substr(at));
}

uint64_t Source::when() const {
  const Held& h = queue_.front();
  return h.from_start ? h.a.start_ns : h.ended();
}

void Source::pop() {
  next_->gone = true;
  next_ = nullptr;
  for (; !queue_.empty() && queue_.front().gone; queue_.pop_front()) forget(queue_.front());
}

// The call waits for nobody who is still under way.
void Source::forget(Held& h) {
  std::erase(releases_, &h);
  for (auto p = under_way_.begin(); h.open != 0 && p != under_way_.end(); ++p)
    h.open -= static_cast<uint32_t>(std::erase((*p)->call.early, &h));
}

feign_status Source::fill() {
  if (next_ != nullptr) return FEIGN_OK;
  while (!over_ && (queue_.empty() || ((!queue_.front().complete || queue_.front().open != 0) &&
                                       queue_.size() < kMaxHeld))) {
    std::string_view text;
    auto got = lines_->next(text);
    if (!got)
      return provider_.host_->fail(provider_.host_, got.error().code(), got.error().text().c_str());
    if (!*got) {
      over_ = true;
      if (broken_ != nullptr)
        if (const feign_status status = gives_up(); status < 0) return status;
      break;
    }
    if (const feign_status status = line(text); status < 0) return status;
  }
  if (over_) {  // what never returned keeps its place only if it matters for what follows
    for (Held& h : queue_)
      if (!h.complete) {
        h.complete = true;
        h.a.marks |= FEIGN_NO_RESULT;
      }
    for (auto& [pid, p] : processes_)
      if (p->begun) {
        p->begun = false;
        (void)no_longer_under_way(*p);
        if (p->call.place == nullptr)
          provider_.host_->left_out(provider_.host_, p->stream, "(call)", "did not return", 0, 0);
      }
  } else if (Held& h = queue_.front(); !h.complete || h.open != 0) {
    if (!h.complete) h.a.marks |= FEIGN_NO_RESULT;
    h.complete = true;
    forget(h);
  }
  if (queue_.empty()) return FEIGN_OK;
  next_ = &queue_.front();
  if (const std::vector<Held*>& rivals = next_->rivals; !rivals.empty())
    if (const size_t at = feign::first_of(
            rivals.size(), rivals.size(), provider_.there_,
            [&](size_t i) {
              Held* const h = i < rivals.size() ? rivals[i] : next_;
              return h->gone ? nullptr : &h->claims;
            },
            [&](size_t late, size_t early, bool by_claims) {
              const auto of = [&](size_t i) -> const feign::Shown& {
                return (i < rivals.size() ? rivals[i] : next_)->shown;
              };
              return provider_.shared_.overtakes(of(late), of(early), by_claims);
            });
        at < rivals.size())
      next_ = rivals[at];
  return FEIGN_OK;
}

// Linux gives processes numbers up to 2^22.
bool is_no_process(uint64_t number) { return number == 0 || number > uint64_t{1} << 22; }

// Reads "[pid N] ", "N ", times of every form, and what strace -n, -i, -Y put before the call.
bool Source::prefix(Scan& s, int64_t& pid, uint64_t& time) {
  pid = pid_;
  bool timed = false, named = false;
  time = clock_;
  s.blanks();
  if (s.take("[pid")) {
    named = true;
    s.blanks();
    if (!s.number(pid)) return false;
    if (s.peek() == '<' && !s.skip_angle()) return false;
    if (!s.take(']')) return false;
    s.blanks();
  }
  while (is_digit(s.peek()) || s.peek() == '(' || s.peek() == '[') {
    const char* start = s.p;
    if (s.peek() == '(') {  // "(+     0.000010)": the relative time beside the absolute one
      if (!s.take("(+")) return false;
      while (!s.done() && s.peek() != ')') ++s.p;
      if (!s.take(')')) return false;
      s.blanks();
      continue;
    }
    if (s.peek() == '[') {  // "[ 257]" or "[00007f...]"
      while (!s.done() && s.peek() != ']') ++s.p;
      if (!s.take(']')) return false;
      s.blanks();
      continue;
    }
    uint64_t whole = 0;
    if (!s.digits(whole)) return false;
    // Whole seconds: what stands where a process was named, or can be none.
    const bool seconds = s.peek() == ' ' && !timed && (named || seconds_ || is_no_process(whole));
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
      exact_ |= fine && (of_day || whole >= kOldest);
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
    } else if (!timed && (s.peek() == ' ' || s.peek() == '<')) {
      if (whole > static_cast<uint64_t>(std::numeric_limits<int32_t>::max())) return false;
      pid = static_cast<int64_t>(whole);
      named = true;
      if (s.peek() == '<' && !s.skip_angle()) return false;
    } else {
      s.p = start;
      return false;
    }
    if (s.peek() != ' ') return false;
    s.blanks();
  }
  return true;
}

void Source::on_terminal(std::string_view line, int64_t& pid) {
  if (line.starts_with("[pid")) {
    if (first_pid_ == 0 && !attached_.contains(pid)) first_pid_ = pid;
    live_.insert(pid);
  } else if (live_.size() == 1) {
    pid = *live_.begin();
  } else {
    return;
  }
  if (line.find("+++ ") != std::string_view::npos &&
      (line.find("+++ exited") != std::string_view::npos ||
       line.find("+++ killed") != std::string_view::npos))
    live_.erase(pid);
  if (pid == first_pid_) pid = pid_;
}

// A clock that was set back would make calls end before they began: what follows is moved on.
// Processes are stopped side by side, so that their lines may be a little out of order.
void Source::check_clock(uint64_t& time) {
  if (time + kSecond >= clock_) return;
  const uint64_t back = clock_ - time;
  shift_ += back;
  time = clock_;
  if (++jumps_ > 3) return;
  char text[64];
  snprintf(text, sizeof text, "the clock was set back by %.3f s",
           static_cast<double>(back) / static_cast<double>(kSecond));
  provider_.host_->log(
      provider_.host_, FEIGN_LOG_WARN,
      (lines_->path() + ":" + std::to_string(lines_->number()) + ": " + text +
       "; later times are moved on by as much" + (jumps_ == 3 ? " (no more is said of it)" : ""))
          .c_str());
}

// With -z and the like, strace writes the rest of a call with nothing before it.
bool Source::is_rest_of_call(std::string_view text) const {
  if (unfinished_ == nullptr || !unfinished_->begun || end_of_call(text) == text.npos) return false;
  const std::string_view whole = text;
  while (text.starts_with('[') && text.find(']') != text.npos)  // -n, -i: a call follows
    text = text.substr(std::min(text.find_first_not_of(' ', text.find(']') + 1), text.size()));
  const std::string_view name = name_of_call(text);
  return !whole.starts_with("[pid") && (name.empty() || !text.substr(name.size()).starts_with('('));
}

// What is no call, and calls whose text is broken: most lines begin with a number and are neither.
// Sets `text` to what is left to read, empty if there is nothing.
feign_status Source::unusual(std::string_view& text, std::string& memory) {
  const auto begins = [&](std::string_view with) { return text.starts_with(with); };
  // On a terminal, "strace: Process N attached" may break the line of the call that made it.
  if (!cut_.empty()) {
    memory = std::move(cut_) + std::string(text);
    cut_.clear();
    text = memory;
  }
  int64_t child = 0;
  if (const size_t at = message_at(text, child); at != text.npos) {
    if (child != 0 && !any_call_ && first_pid_ == 0)
      first_pid_ = child;  // -p: it was there before
    else if (child != 0)
      attached_.insert(child);
    cut_.assign(text.substr(0, at));
    text = {};
    return FEIGN_OK;
  }
  // Stacks (-k), data (-e read, -e write), and what strace says of itself.
  if (begins("strace: ") || begins("[ Process PID=") || begins(" > ") || begins(" | ") ||
      begins(" * ") ||
      text.substr(std::min(text.find_first_not_of(' '), text.size())) == kDetached) {
    text = {};
  } else if (begins("% time ")) {  // -C: a table of counts ends the trace
    if (!any_call_)
      return bad("this is strace -c's table of counts, and no trace: want strace without -c");
    table_ = true;
    text = {};
  } else if (is_rest_of_call(text)) {
    const std::string all = unfinished_->call.text + std::string(text);
    text = {};
    return ended(*unfinished_, all);
  } else if (coloured_) {
    memory = without_colours(text);
    text = memory;
  }
  return FEIGN_OK;
}

feign_status Source::line(std::string_view text) {
  while (!text.empty() && (text.back() == '\r' || text.back() == ' ')) text.remove_suffix(1);
  if (text.empty() || table_) return FEIGN_OK;
  if (broken_ != nullptr) return goes_on(text);
  constexpr uint64_t kLook = 100;  // lines that tell whether the trace is coloured
  if (lines_->number() <= kLook) coloured_ |= text.find('\x1b') != text.npos;
  std::string memory;
  if (!is_digit(text[0]) || text.back() == 'd' || !cut_.empty() || coloured_ ||
      text.ends_with(" parent)") || text.ends_with(" ready)")) {
    const feign_status status = unusual(text, memory);
    if (status < 0 || text.empty()) return status;
  }
  Scan s(text);
  int64_t pid;
  uint64_t time;
  if (!prefix(s, pid, time)) {
    if (text.find("[ Process PID=") != std::string_view::npos) return FEIGN_OK;  // … runs in 32 bit
    if (is_rest_of_call(text))
      return ended(*unfinished_, unfinished_->call.text + std::string(text));
    return stray(text, "want [PID] [TIME] CALL(…) = RESULT");
  }
  if (provider_.first_) {
    provider_.first_ = false;
    provider_.base_ = time;
  }
  if (provider_.several_ && !exact_) {
    provider_.several_ = false;
    provider_.host_->log(provider_.host_, FEIGN_LOG_INFO,
                         "several files without times of day to the microsecond: what came first "
                         "in different ones is a guess (strace -ff -ttt tells it)");
  }
  if (!attached_.empty()) on_terminal(text, pid);
  check_clock(time);
  clock_ = time;
  const std::string_view rest = s.rest();
  const char kind = rest.empty() ? '\0' : rest[0];
  if (kind == '+' && rest.starts_with("+++ ")) {
    Scan m(rest.substr(4));
    if (m.take("superseded by execve in pid ")) {
      // The thread that called execve goes on under the process's id.
      int64_t caller = 0;
      if (m.number(caller) && processes_.contains(caller) && process(caller).begun) {
        Process& from = process(caller);
        Process& to = process(pid);
        (void)no_longer_under_way(from);
        (void)no_longer_under_way(to);
        to.begun = true;
        to.call = std::move(from.call);
        to.call.took_over = true;
        from.begun = false;
      }
    } else if (const auto at = processes_.find(pid); at != processes_.end()) {
      (void)no_longer_under_way(*at->second);
      queue_.emplace_back();
      feign_activity& a = queue_.back().a;
      a.op = provider_.known("exit").call->op;
      a.stream = at->second->stream;
      a.start_ns = time - std::min(time, provider_.base_);
      a.place = FEIGN_PLACE(number_, lines_->number());
      a.marks = FEIGN_NO_RESULT | FEIGN_INJECTED;
    }
    return FEIGN_OK;
  }
  if (kind == '-' && rest.starts_with("--- ")) return FEIGN_OK;
  if (kind == '<' && rest.starts_with("<... ")) return resumed(pid, rest);
  if (rest.size() > 4 && rest[rest.size() - 2] == '.') {  // "… ...>", and few else
    constexpr std::string_view kChanged = "<pid changed to ";
    for (const std::string_view end : {kUnfinished, kDetached})
      if (rest.ends_with(end)) {
        const std::string_view begun = rest.substr(0, rest.size() - end.size());
        const size_t name = name_of_call(begun).size();
        if (name == 0 || !begun.substr(name).starts_with('('))
          return stray(rest, "want CALL(… <unfinished ...>");
        return unfinished(pid, time, begun);
      }
    // A thread that is not the first calls execve and goes on under the process's id.
    if (const size_t at = rest.rfind(kChanged); at != rest.npos) {
      int64_t now = 0;
      Scan number(rest.substr(at + kChanged.size()));
      if (number.number(now)) {
        const feign_status status = unfinished(now, time, rest.substr(0, at));
        process(now).call.took_over = true;
        return status;
      }
    }
  }
  return call(process(pid), time, rest, lines_->number(), nullptr);
}

// What a program writes to the terminal that it is traced on breaks the line of the call under way.
// `text` is the next line after such a beginning: more of what was written, or the call's end.
feign_status Source::goes_on(std::string_view text) {
  constexpr size_t kMost = size_t{1} << 20;
  Broken& b = *broken_;
  size_t close = end_of_call(text);
  // Another call's end, in what is written.
  if (close != text.npos && b.text.starts_with("write(") &&
      is_digit(result_of(text.substr(close))[0]) &&
      !count_of(b.text).starts_with(result_of(text.substr(close))))
    close = text.npos;
  for (const std::string_view end : {kUnfinished, kDetached})
    if (text.ends_with(end)) {
      const std::unique_ptr<Broken> begun = std::move(broken_);
      return unfinished(begun->pid, begun->time, begun->text);
    }
  Scan s(text);
  int64_t pid;
  uint64_t time;
  const uint64_t day = day_;
  // A line of its own: what was begun has no end.
  const bool own = prefix(s, pid, time) &&
                   (s.take("+++ ") || s.take("--- ") || s.take("<... ") ||
                    (close != text.npos && provider_.names_.contains(name_of_call(s.rest())) &&
                     s.rest().substr(name_of_call(s.rest()).size()).starts_with('(')));
  day_ = day;  // what is written may look like a time
  if (own || (close == text.npos && (b.lost += text.size()) > kMost)) {
    const feign_status status = gives_up();
    return status < 0 ? status : line(text);
  }
  if (close == text.npos) return FEIGN_OK;
  const std::unique_ptr<Broken> begun = std::move(broken_);
  begun->text += text;
  if (std::string plain;
      begun->text.starts_with("write(") && !(plain = without_output(begun->text)).empty())
    begun->text = std::move(plain);
  return call(process(begun->pid), begun->time, begun->text, begun->line, nullptr);
}

feign_status Source::gives_up() {
  const std::unique_ptr<Broken> begun = std::move(broken_);
  if (begun->left_out == nullptr) return bad(begun->why, begun->line);
  provider_.host_->left_out(provider_.host_, process(begun->pid).stream, begun->left_out->name,
                            "did not return", 0, begun->left_out->passed);
  return FEIGN_OK;
}

feign_status Source::unfinished(int64_t pid, uint64_t time, std::string_view text) {
  Process& p = process(pid);
  // What another process writes to the terminal may stand behind a number: "0666hello".
  const size_t end = text.find_last_not_of(' ') + 1;
  size_t last = end;
  while (last > 0 && is_name(text[last - 1])) --last;
  Scan token(text.substr(last, end - last));
  if (int64_t number = 0; token.number(number) && !token.done())
    text.remove_suffix(static_cast<size_t>(text.data() + text.size() - token.p));
  any_call_ = true;
  (void)no_longer_under_way(p);
  p.begun = true;
  unfinished_ = &p;
  p.call.text.assign(text);
  p.call.start = time;
  p.call.line = lines_->number();
  p.call.place = nullptr;
  p.call.took_over = false;
  const Known k = provider_.known(name_of_call(text));
  if (k.call == nullptr) return FEIGN_OK;
  const Effect e = k.call->effect;
  if (e == Effect::kExit || e == Effect::kExitGroup || at_start(*k.call, text)) {
    queue_.emplace_back();
    Held& h = queue_.back();
    h.complete = false;
    h.a = feign_activity{};
    h.a.op = k.call->op;
    h.a.start_ns = time - std::min(time, provider_.base_);
    h.a.stream = p.stream;
    h.a.place = FEIGN_PLACE(number_, p.call.line);
    p.call.place = &h;
    if (e == Effect::kFlock ||
        e == Effect::kFcntl) {  // whoever asks for the lock may be refused it
      names(p.call, *k.call);
      h.claims[0] = {std::exchange(p.call.names, {})[0], feign::There::kUnknown,
                     feign::There::kYes};
      releases_.push_back(&h);
    }
  } else {
    names(p.call, *k.call);
    if (p.call.names[0] != 0) under_way_.push_back(&p);
  }
  return FEIGN_OK;
}

// What the call is about, as far as its beginning tells.
void Source::names(Begun& begun, const Call& call) {
  const std::string_view text = begun.text;
  Scan s(text.substr(text.find('(') + 1));
  s.skip_name();
  begun.names = {};
  const bool locks = call.effect == Effect::kFlock ||
                     (call.effect == Effect::kFcntl && text.find("F_SETLK") != text.npos);
  const bool writes = call.effect == Effect::kWrite;
  if (call.effect == Effect::kRead || writes || locks) {
    int64_t fd = 0;
    if (!s.number(fd)) return;
    uint32_t file = 0;
    if (const char* start = s.p + 1; s.peek() == '<' && s.skip_angle())
      file =
          provider_.hint(static_cast<int32_t>(fd), {start, static_cast<size_t>(s.p - start) - 1});
    if (locks)
      begun.names[0] = file != 0 ? feign::lock_name(file) : 0;
    else if (!writes || file != 0)
      begun.names[0] = feign::stream_name(file, FEIGN_FD(fd));
    return;
  }
  const auto is_path = [](const CallArg& a) {
    return a.role == Role::kPath || a.role == Role::kPath2;
  };
  if (std::none_of(call.args, call.args + call.arg_count, is_path)) return;
  for (uint32_t& name : begun.names) {
    const size_t quote = s.rest().find('"');
    if (quote == std::string_view::npos) return;
    s.p += quote;
    const char* start = s.p + 1;
    if (!s.skip_string()) return;
    name = provider_.text_of({start, static_cast<size_t>(s.p - start) - 1});
  }
}

// The calls that ended while that of `p` was under way, and are about its names: they wait for it
// no longer.
std::vector<Held*> Source::no_longer_under_way(Process& p) {
  if (p.call.names[0] == 0) return {};
  p.call.names = {};
  std::erase(under_way_, &p);
  for (Held* h : p.call.early) --h->open;
  return std::exchange(p.call.early, {});
}

// The call of `p` that was under way has ended.
feign_status Source::ended(Process& p, std::string_view text) {
  p.begun = false;
  const size_t before = queue_.size();
  const std::vector<Held*> early = no_longer_under_way(p);
  if (const feign_status s = call(p, p.call.start, text, p.call.line, p.call.place); s < 0)
    return s;
  if (early.empty() || queue_.size() != before + 1) return FEIGN_OK;
  for (Held* const h : early) h->rivals.push_back(&queue_.back());
  return FEIGN_OK;
}

feign_status Source::resumed(int64_t pid, std::string_view text) {
  Process& p = process(pid);
  const size_t close = text.find(" resumed>");
  if (close == std::string_view::npos) return stray(text, "want <... CALL resumed>");
  if (!p.begun) {
    provider_.host_->left_out(provider_.host_, p.stream, "(call)", "began before the trace", 0, 0);
    return FEIGN_OK;
  }
  std::string_view rest = text.substr(close + strlen(" resumed>"));
  // Old strace prints a blank before what follows; after a comma there is one already.
  if (rest.starts_with(' ') && p.call.text.ends_with(' ')) rest.remove_prefix(1);
  std::string whole = p.call.text;
  if (p.call.took_over) {
    // strace shows what was left in a register for its result.
    whole += ") = 0";
    if (const size_t time = rest.rfind(" <"); time != std::string_view::npos)
      whole += rest.substr(time);
  } else {
    whole += rest;
  }
  return ended(p, whole);
}

feign_status Source::call(Process& p, uint64_t time, std::string_view text, uint64_t first_line,
                          Held* place) {
  const std::string_view name = name_of_call(text);
  Scan s(text);
  s.p += name.size();
  if (name.empty() || !s.take('(')) return stray(text, "want CALL(…) = RESULT");
  any_call_ = true;

  const feign_host* host = provider_.host_;
  const Known k = provider_.known(name);
  uint64_t duration = 0;
  const bool timed = duration_of(text, duration);
  timed_ |= timed;
  // Its result may be cut short, too: -1 of -1 ENOENT.
  const bool cut = timed_ && !timed && !lines_->complete() && !text.ends_with("= ?");
  // The line may end before the call does: goes_on().
  const auto breaks = [&](std::string why) {
    if (place != nullptr || first_line != lines_->number()) return bad(why, first_line);
    broken_ = std::make_unique<Broken>();
    broken_->text = text;
    broken_->why = std::move(why);
    broken_->left_out = k.left_out;
    broken_->pid = p.pid;
    broken_->time = time;
    broken_->line = first_line;
    return FEIGN_OK;
  };
  if (k.call == nullptr && end_of_call(text) == text.npos)
    return breaks(std::string(name) + "(): " + kNoEnd);
  if (k.call != nullptr && place == nullptr) queue_.emplace_back();
  Held* const held = k.call == nullptr ? nullptr : place != nullptr ? place : &queue_.back();
  provider_.said_cwd_ = 0;
  provider_.after_cwd_ = false;
  if (held != nullptr && (!provider_.arguments(*k.call, s, *held) || cut)) {
    if (cut) provider_.error_ = "there is no time behind its result, as there is elsewhere";
    std::string why = std::string(name) + "(): " + provider_.error_, without;
    if (k.call->effect == Effect::kWrite && place == nullptr && !cut &&
        provider_.error_ != kLostNewline)
      without = without_output(text);
    Scan again(without);
    if (!without.empty()) {
      again.p += name.size() + 1;
      held->a = feign_activity{};
    }
    if (without.empty() || !provider_.arguments(*k.call, again, *held)) {
      if (place != nullptr) {
        place->complete = true;
        place->a.marks |= FEIGN_NO_RESULT;
      } else {
        queue_.pop_back();
      }
      return end_of_call(text) == text.npos ? breaks(std::move(why))
                                            : bad(why, cut ? 0 : first_line);
    }
  }

  const uint64_t quicker = std::min(duration, std::exchange(p.last_ns, duration));
  p.overhead += provider_.tracer_.of(quicker);
  if (held == nullptr) {
    // The shortest calls take next to nothing without a tracer.
    if (k.left_out->passed != FEIGN_WAITED && provider_.estimated_)
      p.overhead += std::min(quicker, provider_.tracer_.of(quicker));
    host->left_out(host, p.stream, k.left_out->name, k.left_out->why, duration, k.left_out->passed);
    return FEIGN_OK;
  }

  Held& h = *held;
  if (provider_.after_cwd_ && !provider_.cwd_told_ && !p.moved) {
    provider_.cwd_told_ = true;
    host->log(host, FEIGN_LOG_INFO,
              "the trace does not tell the directory that names are relative to: / is taken "
              "(--cwd DIR says which)");
  }
  h.a.op = k.call->op;
  h.a.stream = p.stream;
  h.a.start_ns = time - std::min(time, provider_.base_);
  h.a.duration_ns = duration;
  h.a.place = FEIGN_PLACE(number_, first_line);
  h.from_start = at_start(*k.call, text);
  // Before 4.8 mmap2's offset is printed as the kernel is given it, in pages of 4 KiB.
  if (k.call->effect == Effect::kMap && name == "mmap2" && h.a.offset % 4096 != 0)
    h.a.offset *= 4096;
  // The tracer stopped the process before and after each of them.
  // An estimate is right on average: what is more than this pause is taken off the next ones.
  const uint64_t off = std::min(p.overhead, time - std::min(time, p.ended));
  h.a.compute_ns = off;
  const uint64_t left =
      provider_.estimated_ ? std::min(p.overhead - off, 20 * provider_.tracer_.mean_ns()) : 0;
  if (place == nullptr) {
    if ((h.a.marks & FEIGN_NO_RESULT) && k.call->effect != Effect::kExit &&
        k.call->effect != Effect::kExitGroup) {
      // Interrupted, to be restarted or never to return: the call that counts is another one.
      queue_.pop_back();
      host->left_out(host, p.stream, k.call->name, "interrupted", duration, FEIGN_WAITED);
      return FEIGN_OK;
    }
    p.overhead = left;
    p.ended = time + duration;
    if (k.call->effect == Effect::kAio) return requests(h, h.a.result);
    if (provider_.said_cwd_ != 0) p.cwd = provider_.said_cwd_;
    h.shown = feign::shown_by(k.call->effect, h.a, h.values, static_cast<uint64_t>(p.pid), host);
    overlaps(p, h, k.call->effect);
  } else {
    p.overhead = left;
    p.ended = time + duration;
    place->complete = true;
    released(h);
    h.shown = feign::shown_by(k.call->effect, h.a, h.values, static_cast<uint64_t>(p.pid), host);
  }
  const Effect e = k.call->effect;
  // Entries of a directory are shorter in 32 bits: how many bytes they took cannot be compared.
  p.narrow = e != Effect::kExec && (p.narrow || k.narrow);
  if (p.narrow && name == "getdents" && h.a.result >= 0) h.a.marks |= FEIGN_NO_RESULT;
  if ((e == Effect::kFork || e == Effect::kVfork || e == Effect::kClone) && h.a.result > 0)
    provider_.began_in_[h.a.result] = where(p);
  return FEIGN_OK;
}

// The directory that the process is in; 0: it is not known.
uint32_t Source::where(Process& p) {
  if (p.cwd == 0 && !p.moved) {
    auto& all = provider_.began_in_;
    if (all.empty()) all[p.pid] = provider_.cwd_;  // the first of all
    if (const auto at = all.find(p.pid); at != all.end()) p.cwd = at->second;
  }
  return p.cwd;
}

// Who is still at a lock that was given up by then may have been refused it before.
void Source::released(Held& h) {
  if (std::erase(releases_, &h) == 0 || h.claims[0].name == 0) return;
  for (Process* other : under_way_)
    if (other->call.names[0] == h.claims[0].name) {
      other->call.early.push_back(&h);
      ++h.open;
    }
}

// What a call that has ended says of its names, and who else may say something of them.
void Source::overlaps(Process& p, Held& h, Effect effect) {
  h.claims = feign::claims(effect, h.a);
  const feign::Lock& lock = h.shown.lock;
  if (lock.what != feign::Lock::kNone && lock.what != feign::Lock::kClosed)
    h.claims[0] = {feign::lock_name(lock.file), feign::There::kUnknown, feign::There::kYes};
  else if (h.shown.tail.what == feign::Tail::kAppend)
    h.claims[0].name = feign::stream_name(h.a.file, h.a.handle);
  for (Held* release : releases_)
    if (h.claims[0].name != 0 && release->claims[0].name == h.claims[0].name)
      release->rivals.push_back(&h);
  for (Process* other : under_way_)
    for (const feign::Claim& claim : h.claims)
      if ((claim.after != feign::There::kUnknown || h.shown.tail.what != feign::Tail::kNone) &&
          (claim.name == other->call.names[0] || claim.name == other->call.names[1])) {
        other->call.early.push_back(&h);
        ++h.open;
        break;
      }
  provider_.there_.below(where(p), h.claims, h.a, provider_.host_);
  p.cwd = provider_.there_.moves(p.cwd, effect, h.a, provider_.host_);
  p.moved |= effect == Effect::kChdir || effect == Effect::kFchdir || effect == Effect::kChroot;
}

// io_submit's array: each request that was accepted becomes an activity of its own.
feign_status Source::requests(Held& first, int64_t accepted) {
  const std::string_view all = provider_.requests_;
  const Held blank = first;
  int64_t count = 0;
  for (size_t at = all.find('{'); at != std::string_view::npos; ++count) {
    if (count != 0 && count >= accepted) break;
    Scan s(all.substr(at));
    if (!s.skip_argument() && !s.done()) return bad("io_submit(): a request that does not end");
    std::string_view one(all.substr(at, static_cast<size_t>(s.p - all.data()) - at));
    if (const size_t end = one.rfind('}'); end != std::string_view::npos) one = one.substr(0, end);
    const auto member = [&](std::string_view name, int64_t& value) {
      for (size_t p = one.find(name); p != std::string_view::npos; p = one.find(name, p + 1)) {
        Scan v(one.substr(p + name.size()));
        if ((v.take('=') || v.take(':')) && v.number(value)) return true;
      }
      return false;
    };
    int64_t fd = -1, bytes = 0, offset = 0, opcode = -1;
    if (!member("fildes", fd)) (void)member("filedes", fd);
    (void)member("nbytes", bytes);
    (void)member("offset", offset);
    (void)member("opcode", opcode);
    static constexpr std::pair<std::string_view, int> kOpcodes[] = {
        {"PREADV", 7}, {"PWRITEV", 8}, {"FDSYNC", 3}, {"FSYNC", 2},   {"POLL", 5},
        {"PREAD", 0},  {"PWRITE", 1},  {"preadv", 7}, {"pwritev", 8}, {"fdsync", 3},
        {"fsync", 2},  {"poll", 5},    {"pread", 0},  {"pwrite", 1}};
    for (const auto& [name, code] : kOpcodes)
      if (opcode < 0 && one.substr(0, 120).find(name) != std::string_view::npos) opcode = code;
    if (count != 0) queue_.push_back(blank);
    Held& h = count == 0 ? first : queue_.back();
    h.a.handle = FEIGN_FD(fd);
    if (const size_t p = one.find("fildes="); p != std::string_view::npos) {
      const std::string_view rest = one.substr(p);
      const size_t open = rest.find('<'), comma = rest.find(',');
      if (open < comma) {
        Scan angle(rest.substr(open));
        const char* start = angle.p + 1;
        if (angle.skip_angle())
          h.a.file = provider_.hint(static_cast<int32_t>(fd),
                                    {start, static_cast<size_t>(angle.p - start) - 1});
      }
    }
    h.a.offset = static_cast<uint64_t>(offset);
    h.a.length = static_cast<uint64_t>(std::max<int64_t>(bytes, 0));
    h.a.flags = static_cast<uint32_t>(opcode);
    h.a.result = accepted < 0 ? accepted : 1;
    if (opcode == 7 || opcode == 8) {  // vectors: nbytes is their number
      h.a.length = 0;
      std::string_view text = one;
      for (size_t p = text.find("iov_len="); p != std::string_view::npos;
           p = text.find("iov_len=")) {
        Scan len(text.substr(p + 8));
        int64_t n = 0;
        if (len.number(n) && n > 0) h.a.length += static_cast<uint64_t>(n);
        text = len.rest();
      }
    }
    at = all.find('{', at + one.size());
  }
  if (count == 0) {
    provider_.host_->left_out(
        provider_.host_, first.a.stream, "io_submit",
        accepted > 0 ? "its requests are not in the text (-s 32 or more)" : "no request",
        first.a.duration_ns, 0);
    queue_.pop_back();
  }
  return FEIGN_OK;
}

// ---- arguments
// ------------------------------------------------------------------------------------

Provider::Provider(const feign_host* host, const Options& options)
    : host_(host), options_(options) {
  for (const Call& call : feign::posix_calls())
    if (call.op != 0) names_[call.name].call = &call;
  for (const LeftOutCall& call : feign::posix_left_outs()) names_[call.name].left_out = &call;
  for (const feign::CallAlias& alias : feign::posix_aliases())
    names_[alias.name].call = &feign::posix_calls()[alias.op];
  for (const char* name : {"_llseek", "mmap2", "stat64", "lstat64", "fstat64", "fcntl64"})
    names_[name].narrow = true;
  for (int e = 1; e < 134; ++e)
    if (const char* name = strerrorname_np(e)) errors_[name] = e;
  errors_["EWOULDBLOCK"] = EAGAIN;
  errors_["EOPNOTSUPP"] = EOPNOTSUPP;
  errors_["EDEADLOCK"] = EDEADLK;
}

// Calls that are younger than strace 4.8, by number: those of x86-64, and from 424 on of every
// machine (asm/unistd_64.h). A strace that does not know a call prints "syscall_326(" or, since
// 4.21, "syscall_0x146(", and all arguments as numbers: its paths are lost.
constexpr std::string_view kFrom314 =
    "sched_setattr sched_getattr renameat2 seccomp getrandom memfd_create kexec_file_load "
    "bpf execveat userfaultfd membarrier mlock2 copy_file_range preadv2 pwritev2 "
    "pkey_mprotect pkey_alloc pkey_free statx io_pgetevents rseq";
constexpr std::string_view kFrom424 =
    "pidfd_send_signal io_uring_setup io_uring_enter io_uring_register open_tree move_mount "
    "fsopen fsconfig fsmount fspick pidfd_open clone3 close_range openat2 pidfd_getfd "
    "faccessat2 process_madvise epoll_pwait2 mount_setattr quotactl_fd "
    "landlock_create_ruleset landlock_add_rule landlock_restrict_self memfd_secret "
    "process_mrelease futex_waitv set_mempolicy_home_node cachestat fchmodat2 "
    "map_shadow_stack futex_wake futex_wait futex_requeue statmount listmount "
    "lsm_get_self_attr lsm_set_self_attr lsm_list_modules mseal setxattrat getxattrat "
    "listxattrat removexattrat open_tree_attr file_getattr file_setattr";

std::string_view by_number(std::string_view name) {
  Scan s(name);
  int64_t number = 0;
  if (!s.take("syscall_") || !s.number(number) || !s.done()) return {};
  std::string_view names = number < 424 ? kFrom314 : kFrom424;
  for (number -= number < 424 ? 314 : 424; number > 0 && !names.empty(); --number)
    names.remove_prefix(std::min(names.find(' '), names.size() - 1) + 1);
  return number < 0 ? std::string_view{} : names.substr(0, names.find(' '));
}

Known Provider::known(std::string_view name) {
  if (const auto at = names_.find(name); at != names_.end()) return at->second;
  if (const std::string_view called = by_number(name); !called.empty()) return known(called);
  // Before 4.10 names on MIPS begin with the calling convention's.
  for (const std::string_view convention : {"o32_", "n32_", "n64_"})
    if (name.starts_with(convention)) return known(name.substr(convention.size()));
  auto made = std::make_unique<Unknown>();
  made->name = name;
  made->call = {
      made->name.c_str(),
      name == kNoName ? "it was over before strace saw which" : "no description of this call",
      FEIGN_COMPUTED};
  Known k;
  k.left_out = &made->call;
  names_[made->name] = k;
  unknown_.push_back(std::move(made));
  return k;
}

uint32_t Provider::hint(int32_t fd, std::string_view annotation) {
  Hint& h = hints_[static_cast<uint32_t>(fd) % hints_.size()];
  if (h.id != 0 && h.text == annotation) return h.id;
  h.text.assign(annotation);
  std::string_view path = annotation;
  // "</dev/null<char 1:3>>": what the file is stands behind its name.
  if (path.ends_with('>'))
    if (const size_t nested = path.rfind('<'); nested != path.npos)
      if (const std::string_view what = path.substr(nested);
          what.starts_with("<char ") || what.starts_with("<block "))
        path = path.substr(0, nested);
  if (path.find('\\') != std::string_view::npos) {
    unescape(path, scratch_);
    path = scratch_;
  }
  constexpr size_t kLongest = size_t{16} << 10;  // no path is
  if (path.size() > kLongest) path = {};
  h.id = host_->intern(host_, path.data(), path.size());
  return h.id;
}

uint32_t Provider::text_of(std::string_view quoted) {
  if (quoted.find('\\') != std::string_view::npos) {
    unescape(quoted, scratch_);
    quoted = scratch_;
  }
  return host_->intern(host_, quoted.data(), quoted.size());
}

bool Provider::flags(const CallArg& arg, Scan& s, uint64_t& value) {
  const char* start = s.p;
  while (!s.done() && (is_name(*s.p) || *s.p == '|')) ++s.p;
  std::string_view text(start, static_cast<size_t>(s.p - start));
  // statx's in -X raw and verbose: "|0x900", "0 /* AT_STATX_SYNC_AS_STAT */|0x900 /* … */".
  std::string parts;
  for (Scan next = s; next.take(" /* ");) {
    while (!next.done() && !next.take(" */")) ++next.p;
    if (next.peek() != '|') break;
    start = next.p;
    while (!next.done() && (is_name(*next.p) || *next.p == '|')) ++next.p;
    if (parts.empty()) parts = text;
    parts.append(start, next.p);
    text = parts;
    s = next;
  }
  if (text.starts_with('|')) text.remove_prefix(1);
  if (text.empty()) return false;
  const size_t slot = (text.size() * 31 + static_cast<unsigned char>(text.back()) * 7 +
                       static_cast<unsigned char>(text[text.size() / 2])) %
                      flag_texts_.size();
  FlagText& cached = flag_texts_[slot];
  if (cached.names == arg.names && cached.text == text) {
    value = cached.value;
    known_ = cached.known;
    return true;
  }
  value = 0;
  known_ = false;
  Scan t(text);
  while (!t.done()) {
    int64_t number = 0;
    if (t.number(number)) {
      value |= static_cast<uint64_t>(number);
      known_ = true;
    } else {
      const char* from = t.p;
      while (is_name(t.peek())) ++t.p;
      const std::string_view name(from, static_cast<size_t>(t.p - from));
      const auto* end = arg.names + arg.name_count;
      const auto* at =
          std::find_if(arg.names, end, [&](const feign_name& n) { return name == n.name; });
      // A name that we do not know stands for bits that we cannot set; the call itself is known.
      if (at != end) {
        value |= at->value;
        known_ = true;
      }
      if (name.empty()) return false;
    }
    if (!t.done() && !t.take('|')) return false;
  }
  cached = {arg.names, std::string(text), value, known_};
  return true;
}

// Two times of whatever form: four values, s and ns of each. What is none of them leaves no values,
// which stands for the current time.
void Provider::times(Scan s, Held& held) {
  held.values.clear();
  Scan end = s;
  if (s.peek() == 'N' || !end.skip_argument()) return;
  bool micro = microseconds_, single = false;
  std::vector<uint64_t> all;
  char before = ' ';
  while (s.p != end.p) {
    int64_t number = 0;
    if (s.take("/*")) {
      while (s.p != end.p && !s.take("*/")) ++s.p;
    } else if (s.take("UTIME_NOW") || s.take("UTIME_OMIT")) {
      if (all.size() % 2 == 0) all.push_back(0);
      all.push_back(s.p[-1] == 'W' ? UTIME_NOW : UTIME_OMIT);
    } else if (s.take("tv_usec")) {
      micro = true;
    } else if (s.take("actime") || s.take("modtime")) {
      single = true;
    } else if ((is_digit(s.peek()) || s.peek() == '-') && !is_name(before) && s.number(number)) {
      all.push_back(static_cast<uint64_t>(number));
      if (single) all.push_back(0);
      before = '0';
      continue;
    } else {
      before = *s.p++;
      continue;
    }
    before = ' ';
  }
  if (all.size() != 4) return;
  if (micro)
    for (const size_t i : {1, 3})
      if (all[i] < 1'000'000) all[i] *= 1000;
  held.values = std::move(all);
}

// Moves to behind "member=" in the struct that starts here; false if it is not there.
bool find_member(Scan& s, std::string_view member) {
  Scan end = s;
  if (member.empty() || !end.skip_argument()) return false;
  const std::string_view text(s.p, static_cast<size_t>(end.p - s.p));
  for (size_t at = text.find(member); at != std::string_view::npos; at = text.find(member, at + 1))
    if (at != 0 && !is_name(text[at - 1]) && text.substr(at + member.size()).starts_with('=')) {
      s.p += at + member.size() + 1;
      return true;
    }
  return false;
}

// Sets what one argument says. The scan stands behind what was understood; the rest of the argument
// (annotations, comments) is skipped by the caller.
bool Provider::argument(const CallArg& arg, Scan& s, Held& held, bool& is_cwd) {
  feign_activity& a = held.a;
  int64_t number = 0;
  switch (arg.role) {
    case Role::kSkip:
    case Role::kBuffer:
      return true;
    case Role::kFd:
    case Role::kFd2:
    case Role::kDir:
    case Role::kDir2: {
      uint32_t& to = arg.role == Role::kFd || arg.role == Role::kDir ? a.handle : a.handle2;
      if (s.take("AT_FDCWD")) {
        to = FEIGN_CWD;
        is_cwd = arg.role == Role::kDir;
        number = -100;
      } else if (s.number(number)) {
        if (number < std::numeric_limits<int32_t>::min() || number > 0xFFFFFFFF)
          return wrong("a descriptor out of range");
        // Raw numbers are unsigned.
        if (number > std::numeric_limits<int32_t>::max()) number = static_cast<int32_t>(number);
        if (number == -100 && (arg.role == Role::kDir || arg.role == Role::kDir2)) {
          to = FEIGN_CWD;
          is_cwd = arg.role == Role::kDir;
        } else {
          to = FEIGN_FD(number);
        }
      } else {
        return wrong("want a descriptor");
      }
      if (Scan next = s; to == FEIGN_CWD && s.peek() == ' ') {  // -X verbose
        next.blanks();
        if (next.take("/* AT_FDCWD */")) s = next;
      }
      if (s.peek() == '<') {
        const char* start = s.p + 1;
        if (!s.skip_angle()) return wrong("a descriptor's annotation does not end");
        const std::string_view text(start, static_cast<size_t>(s.p - start) - 1);
        if (&to == &a.handle || (to == FEIGN_CWD && (a.handle == 0 || a.handle == FEIGN_CWD))) {
          a.file = hint(static_cast<int32_t>(number), text);
          // Another file may have the name of one that is gone.
          const bool gone = s.rest().starts_with("(deleted)") || text.ends_with(" (deleted)");
          if (!gone) a.marks |= FEIGN_TOLD;
        }
        if (to == FEIGN_CWD && a.file != 0 && (a.handle == 0 || a.handle == FEIGN_CWD))
          said_cwd_ = a.file;
      }
      return true;
    }
    case Role::kPath:
    case Role::kPath2:
    case Role::kText2:
    case Role::kReadback2: {
      if (s.peek() != '"') return true;  // NULL or an address: the call had no readable path
      const char* start = s.p + 1;
      if (!s.skip_string()) return wrong("a string that does not end");
      const std::string_view text(start, static_cast<size_t>(s.p - start) - 1);
      // Cut by -s: not the whole of it. Paths that a call is given are never cut.
      if ((arg.role == Role::kReadback2 || arg.role == Role::kText2) && s.take("...")) return true;
      (arg.role == Role::kPath ? a.path : a.path2) = text_of(text);
      return true;
    }
    case Role::kLength:
    case Role::kOffset:
      if (s.take("NULL")) return true;
      if (const bool inverted = s.take('~'); !s.number(number))
        return wrong("want a number");
      else if (inverted)
        number = static_cast<int64_t>(~static_cast<uint64_t>(number) & 0xFFFFFFFF);
      (arg.role == Role::kLength ? a.length : a.offset) = static_cast<uint64_t>(number);
      return true;
    case Role::kFlags:
    case Role::kMode: {
      uint64_t value = 0;
      if (!flags(arg, s, value)) {
        if (arg.role == Role::kFlags) return true;  // {…} or NULL: nothing to keep
        return wrong("want permission bits");
      }
      (arg.role == Role::kFlags ? a.flags : a.mode) = static_cast<uint32_t>(value);
      return true;
    }
    case Role::kValue:
    case Role::kAt: {
      if (arg.index > 15) return true;
      uint64_t value = 0;
      Scan inner = s;  // the caller skips "[…]" as a whole
      inner.take('[');
      if (arg.role == Role::kAt && s.peek() != '[')  // NULL, as a number or not; or an address
        value = FEIGN_NO_OFFSET;
      else if ((arg.names == nullptr || !flags(arg, inner, value)) && inner.number(number))
        value = static_cast<uint64_t>(number);
      if (held.values.size() <= arg.index) held.values.resize(arg.index + size_t{1});
      held.values[arg.index] = value;
      return true;
    }
    case Role::kResult:
      if (Scan inner = s; inner.take('[') && inner.number(number)) true_result_ = number;
      return true;
    case Role::kTimes:
      times(s, held);
      return true;
    case Role::kIocbs: {
      Scan inner = s;
      if (!inner.skip_argument()) return wrong("an array that does not end");
      requests_.assign(s.p, static_cast<size_t>(inner.p - s.p));
      return true;
    }
    case Role::kIov: {
      held.values.clear();
      if (s.peek() != '[') return true;
      Scan inner = s;
      if (!inner.skip_argument()) return wrong("an array that does not end");
      std::string_view text(s.p, static_cast<size_t>(inner.p - s.p));
      for (size_t at = text.find("iov_len="); at != std::string_view::npos;
           at = text.find("iov_len=")) {
        Scan len(text.substr(at + 8));
        if (!len.number(number)) return wrong("want iov_len=BYTES");
        number = std::max<int64_t>(number, 0);  // no length that any call takes: it failed
        held.values.push_back(static_cast<uint64_t>(number));
        a.length += static_cast<uint64_t>(number);
        text = len.rest();
      }
      if (text.ends_with("...]")) {  // cut by -s: the result is all that is left to tell
        held.values.clear();
        a.length = 0;
      }
      return true;
    }
    case Role::kAcl: {
      if (s.peek() != '"') return true;
      const char* start = s.p + 1;
      if (!s.skip_string()) return wrong("a string that does not end");
      unescape({start, static_cast<size_t>(s.p - start) - 1}, scratch_);
      if (!s.take("...")) a.mode = mode_of_acl(scratch_);
      return true;
    }
    case Role::kStat:
    case Role::kStatx: {
      if (s.peek() != '{') return true;
      Scan inner = s;
      if (!inner.skip_argument()) return wrong("a struct that does not end");
      const std::string_view text(s.p, static_cast<size_t>(inner.p - s.p));
      const bool x = arg.role == Role::kStatx;
      if (const size_t at = text.find(x ? "stx_mode=" : "st_mode="); at != std::string_view::npos) {
        static constexpr feign_name kTypes[] = {
            {"S_IFREG", 0100000}, {"S_IFDIR", 040000}, {"S_IFLNK", 0120000},  {"S_IFCHR", 020000},
            {"S_IFBLK", 060000},  {"S_IFIFO", 010000}, {"S_IFSOCK", 0140000}, {"S_ISUID", 04000},
            {"S_ISGID", 02000},   {"S_ISVTX", 01000}};
        static constexpr CallArg kMode = {"mode", Role::kMode,       Form::kPlain,
                                          0,      std::size(kTypes), kTypes};
        Scan mode(text.substr(at + (x ? 9 : 8)));
        uint64_t value = 0;
        if (flags(kMode, mode, value)) a.mode = static_cast<uint32_t>(value);
      }
      if (const size_t at = text.find(x ? "stx_size=" : "st_size="); at != std::string_view::npos) {
        Scan size(text.substr(at + (x ? 9 : 8)));
        if (size.number(number) && number >= 0) a.length = static_cast<uint64_t>(number);
      }
      return true;
    }
    case Role::kFds: {
      Scan inner = s;  // the caller skips the array as a whole
      if (!inner.take('[')) return true;
      held.values.clear();
      for (int i = 0; i < 2; ++i) {
        inner.blanks();
        if (!inner.number(number)) {
          held.values.clear();
          return true;  // "[...]" under -s 0
        }
        held.values.push_back(static_cast<uint64_t>(number));
        if (inner.peek() == '<' && !inner.skip_angle())
          return wrong("a descriptor's annotation does not end");
        inner.take(',');
      }
      return true;
    }
  }
  return true;
}

bool Provider::arguments(const Call& call, Scan& s, Held& held) {
  feign_activity& a = held.a;
  held.values.clear();
  true_result_ = -1;
  microseconds_ = call.op == FEIGN_POSIX_UTIMES || call.op == FEIGN_POSIX_FUTIMESAT;
  bool is_cwd = false;
  bool closed = false;
  unsigned next = 0;
  for (unsigned i = 0; !closed; ++i) {
    s.blanks();
    s.skip_name();
    if (s.peek() == ')') {
      ++s.p;
      break;
    }
    const CallArg* arg = next < call.arg_count ? &call.args[next++] : nullptr;
    if (arg != nullptr && arg->form == Form::kStruct) {
      const CallArg* const first = arg;
      while (next < call.arg_count && call.args[next].form == Form::kMember) ++next;
      for (arg = first; arg != call.args + next; ++arg) {
        Scan member = s;
        // Before 4.11 a lock's members have no "l_" in front.
        const std::string_view called = arg->member;
        if (s.peek() == '{'
                ? !find_member(member, called) &&
                      !(called.starts_with("l_") && find_member(member, called.substr(2)))
                : !called.empty())
          continue;
        if (!argument(*arg, member, held, is_cwd)) return false;
      }
    } else if (arg != nullptr) {
      if (!argument(*arg, s, held, is_cwd)) {
        const char* from = s.p;
        Scan shown = s;
        (void)shown.skip_argument();
        error_ = "argument " + std::to_string(i + 1) + " (" + arg->name + ") is \"" +
                 std::string(from, std::min<size_t>(static_cast<size_t>(shown.p - from), 40)) +
                 "\": " + error_;
        return false;
      }
      // A command of fcntl() that is not known is not that whose number is 0.
      if (call.effect == Effect::kFcntl && arg->role == Role::kFlags && !known_) a.flags = 1U << 31;
    }
    if (!s.skip_argument()) return wrong(kNoEnd);
    closed = s.take(')');
    if (!closed) ++s.p;  // the comma
  }
  if (a.path != 0 && a.file == 0 && (is_cwd || a.handle == 0)) {
    const auto relative = [&](uint32_t id) {
      size_t length = 0;
      const char* path = host_->text(host_, id, &length);
      return length != 0 && path[0] != '/';
    };
    const bool two = call.effect == Effect::kLink || call.effect == Effect::kRename;
    after_cwd_ = relative(a.path) ||
                 (two && (a.handle2 == 0 || a.handle2 == FEIGN_CWD) && relative(a.path2));
    if (after_cwd_) a.file = cwd_;
  }

  s.blanks();
  if (!s.take('=')) return wrong("there is no result: want \") = RESULT\"");
  s.blanks();
  if (s.take('?')) {
    a.marks |= FEIGN_NO_RESULT;
    return true;
  }
  int64_t result = 0;
  if (!s.number(result)) return wrong("the result is no number");
  if (result == -1) {
    s.blanks();
    const char* start = s.p;
    while (is_name(s.peek())) ++s.p;
    const std::string_view name(start, static_cast<size_t>(s.p - start));
    const auto at = errors_.find(name);
    if (at != errors_.end()) {
      result = -at->second;
    } else if (!name.empty()) {
      a.marks |= FEIGN_NO_RESULT;
    }
  }
  const bool opens = call.effect == Effect::kOpen || call.effect == Effect::kCreat;
  if ((opens || call.effect == Effect::kAccept) && s.peek() == '<') {  // what it is
    const char* start = s.p + 1;
    if (s.skip_angle())
      (opens ? a.path2 : a.file) =
          hint(static_cast<int32_t>(result), {start, static_cast<size_t>(s.p - start) - 1});
  }
  if (result == 0 && true_result_ >= 0) result = true_result_;
  a.result = result;
  if (Scan rest = s; ends_early(rest)) return wrong(kLostNewline);
  if (call.effect == Effect::kRead || call.effect == Effect::kWrite ||
      call.effect == Effect::kPread || call.effect == Effect::kPwrite ||
      call.effect == Effect::kPread2 || call.effect == Effect::kPwrite2) {
    // A vector whose lengths were cut: as many bytes as were moved.
    if (a.length == 0 && held.values.empty() && result > 0)
      a.length = static_cast<uint64_t>(result);
  }
  return true;
}

// ---- the provider
// ---------------------------------------------------------------------------------

feign_status Provider::start() {
  std::vector<std::string> files;
  for (const char* const* file = options_.file; *file != nullptr; ++file)
    for (std::string& one : feign::files_of(*file)) files.push_back(std::move(one));
  const size_t count = files.size();
  if (count == 0) return host_->fail(host_, FEIGN_ERR_ARGUMENT, "file: want a trace file");
  if (count > 60000) return host_->fail(host_, FEIGN_ERR_ARGUMENT, "file: more than 60,000 files");
  for (size_t i = 0; i < count; ++i) {
    const std::string& path = files[i];
    auto input = feign::Input::open(path);
    if (!input) return host_->fail(host_, input.error().code(), input.error().text().c_str());
    // PREFIX.PID, as -ff names them: the process of lines that name none.
    const auto number = feign::number_of(path);
    const auto pid = static_cast<int64_t>(number.value_or(i + 1));
    int32_t rank = -1;
    if (count > 1) {
      // Lines that name a process: each file is a rank's. Lines that name none: each is a
      // process's.
      auto head = feign::head_of(path, 4096);
      if (head) {
        Scan s(*head);
        s.blanks();
        uint64_t first = 0;
        const bool named = s.digits(first) && s.peek() == ' ' && !is_no_process(first);
        if (named || head->starts_with("[pid")) rank = static_cast<int32_t>(number.value_or(i));
      }
    }
    sources_.push_back(std::make_unique<Source>(*this,
                                                std::make_unique<feign::Lines>(std::move(*input)),
                                                static_cast<uint32_t>(i), rank, pid));
  }
  find_cwd(files.front());
  if (const feign_status status = find_overhead(files); status < 0) return status;
  several_ = count > 1;
  first_ = count == 1;  // several files have one clock: next() finds where it begins
  return FEIGN_OK;
}

// Which process a line of the text is of; empty: it does not say.
std::string_view process_at(std::string_view text, size_t at) {
  Scan s(text.substr(text.rfind('\n', at) + 1));
  s.blanks();
  s.take("[pid");
  s.blanks();
  const char* start = s.p;
  while (is_digit(s.peek())) ++s.p;
  const bool named = s.peek() == ' ' || s.peek() == ']';
  return {start, named ? static_cast<size_t>(s.p - start) : 0};
}

// Where the program was when it began: as the option says, or as the first getcwd or annotation of
// AT_FDCWD does, less where one process had moved by then.
void Provider::find_cwd(const std::string& file) {
  constexpr size_t kLooked = size_t{256} << 10;
  constexpr std::string_view kMarks[] = {"chdir(",    "chroot(", "getcwd",
                                         "AT_FDCWD<", "-100<",   "AT_FDCWD */<"};
  std::string cwd = options_.cwd;
  const auto head = feign::head_of(file, kLooked);
  const std::string_view text = head ? std::string_view(*head) : std::string_view();
  size_t places[std::size(kMarks)];
  for (size_t i = 0; i < std::size(kMarks); ++i) places[i] = text.find(kMarks[i]);
  std::string moved;
  std::string_view mover;
  while (cwd.empty()) {
    size_t* const next = std::min_element(std::begin(places), std::end(places));
    const size_t at = *next;
    if (at == text.npos) break;
    const std::string_view mark = kMarks[next - places];
    *next = text.find(mark, at + 1);
    const char before = at != 0 ? text[at - 1] : '\n';
    Scan s(text.substr(at + mark.size()));
    if (mark == "chroot(" || (mark == "chdir(" && before == 'f')) break;
    const bool annotation = mark.ends_with('<');
    if (annotation) {
      // As an argument; in what is written it could say anything.
      if (mark != "AT_FDCWD */<" && before != '(' && before != '=' &&
          !text.substr(0, at).ends_with(", "))
        continue;
      --s.p;
      const char* start = s.p + 1;
      if (!s.skip_angle()) continue;
      unescape({start, static_cast<size_t>(s.p - start) - 1}, scratch_);
    } else {
      if (mark == "getcwd" && !s.take('(') && !s.take(" resumed>")) continue;
      s.skip_name();
      if (s.peek() != '"') continue;
      const char* start = s.p + 1;
      if (!s.skip_string()) continue;
      unescape({start, static_cast<size_t>(s.p - start) - 1}, scratch_);
    }
    const std::string_view process = process_at(text, at);
    if (mark == "chdir(") {
      s.blanks();
      if (!s.take(')')) break;
      s.blanks();
      if (s.take("= -1")) continue;
      if (scratch_.starts_with('/') || scratch_.find("..") != scratch_.npos ||
          (!moved.empty() && process != mover))
        break;
      moved += "/" + scratch_;
      mover = process;
    } else if (scratch_.starts_with('/') && !scratch_.ends_with(" (deleted)")) {
      if (!scratch_.ends_with(moved) || (!moved.empty() && process != mover)) break;
      cwd = scratch_.substr(0, scratch_.size() - moved.size());
      if (cwd.empty()) cwd = "/";
    }
  }
  cwd_told_ = !cwd.empty();
  if (!cwd_told_) cwd = "/";
  cwd_ = host_->intern(host_, cwd.data(), cwd.size());
}

// strace's own time, from the first calls.
feign_status Provider::find_overhead(const std::vector<std::string>& files) {
  const std::string_view how = options_.overhead;
  if (how == "none") return FEIGN_OK;
  if (how != "auto") {
    uint64_t given = 0;
    const bool good = feign::parse_duration(how, given) && given <= kSecond;
    tracer_.set(given);
    if (good) return FEIGN_OK;
    return host_->fail(
        host_, FEIGN_ERR_ARGUMENT,
        ("overhead=" + std::string(how) + ": want auto, none or a time up to 1s, such as 20us")
            .c_str());
  }
  const auto* run = static_cast<const feign_run*>(host_->extension(host_, "feign.run/1"));
  if (run != nullptr && FEIGN_HAS(run, no_pauses) && run->no_pauses != 0) return FEIGN_OK;
  constexpr uint64_t kMostLines = 10'000;
  uint64_t lines = 0;
  for (const std::string& path : files) {
    if (!feign::can_be_read_again(path)) return FEIGN_OK;
    auto input = feign::Input::open(path);
    if (!input || lines >= kMostLines) break;
    Source source(*this, std::make_unique<feign::Lines>(std::move(*input)), 0, -1, 1);
    lines += source.pauses(kMostLines / std::min<size_t>(files.size(), 16), tracer_);
  }
  if (!tracer_.estimate()) return FEIGN_OK;
  estimated_ = true;
  char text[140];
  snprintf(text, sizeof text,
           "think times are without the tracer's own time, %.1f us a call on average (estimated; "
           "overhead= sets it)",
           static_cast<double>(tracer_.mean_ns()) / 1000);
  host_->log(host_, FEIGN_LOG_INFO, text);
  return FEIGN_OK;
}

// The pauses between calls that follow each other in a process, without anything in between. How
// many lines were looked at.
uint64_t Source::pauses(uint64_t most_lines, feign::TracerTime& out) {
  struct Last {
    uint64_t end, duration;
  };
  std::unordered_map<int64_t, Last> last_of;
  std::string_view text;
  uint64_t lines = 0;
  for (; lines < most_lines; ++lines) {
    auto got = lines_->next(text);
    if (!got || !*got) break;
    while (!text.empty() && (text.back() == '\r' || text.back() == ' ')) text.remove_suffix(1);
    Scan s(text);
    int64_t pid;
    uint64_t time, duration = 0;
    if (text.empty() || !prefix(s, pid, time)) continue;
    clock_ = time;
    const std::string_view rest = s.rest();
    if (rest.starts_with("<... ") || !duration_of(text, duration)) {
      last_of.erase(pid);
      continue;
    }
    const auto last = last_of.find(pid);
    if (last != last_of.end() && time > last->second.end && is_name(s.peek()))
      out.add(time - last->second.end, std::min(duration, last->second.duration));
    last_of[pid] = {time + duration, duration};
  }
  return lines;
}

feign_status Provider::next(size_t want, feign_sink* out) {
  size_t done = 0;
  while (done < want) {
    Source* best = nullptr;
    for (auto& source : sources_) {
      if (const feign_status status = source->fill(); status < 0) return status;
      if (source->empty()) continue;
      if (best == nullptr || source->when() < best->when()) best = source.get();
    }
    if (best == nullptr) return FEIGN_END;
    if (sources_.size() > 1) {
      const uint64_t by = best->front().ended();
      best = sources_[feign::first_of(
                          best->number(), sources_.size(), there_,
                          [&](size_t i) {
                            Source& s = *sources_[i];
                            const bool overlaps =
                                &s == best || (!s.empty() && s.front().a.start_ns <= by);
                            return overlaps ? &s.front().claims : nullptr;
                          },
                          [&](size_t late, size_t early, bool by_claims) {
                            return shared_.overtakes(sources_[late]->front().shown,
                                                     sources_[early]->front().shown, by_claims);
                          })]
                 .get();
    }
    const Held& next = best->front();
    there_.note(feign::posix_calls()[next.a.op].effect, next.claims, next.a, host_);
    shared_.note(next.shown);
    if (sources_.size() > 1 && !origin_known_) {  // the earliest of what all files begin with
      origin_known_ = true;
      origin_ = best->front().a.start_ns;
      for (auto& source : sources_)
        if (!source->empty()) origin_ = std::min(origin_, source->front().a.start_ns);
    }
    feign_activity* a = out->make(out);
    if (a == nullptr) return host_->fail(host_, FEIGN_ERR_NOMEM, "out of memory");
    const uint32_t mine = a->host;
    Held& h = best->front();
    *a = h.a;
    a->host = mine;
    a->start_ns -= std::min(a->start_ns, origin_);
    if (!h.values.empty())
      if (const feign_status status =
              host_->set_values(host_, a, h.values.data(), static_cast<uint32_t>(h.values.size()));
          status < 0)
        return status;
    best->pop();
    if (const feign_status status = out->emit(out, a); status < 0) return status;
    ++done;
  }
  return FEIGN_OK;
}

// ---- the table
// ------------------------------------------------------------------------------------

// A line of strace: an optional process, an optional time, then CALL(…, +++ or ---.
bool looks_like_strace(std::string_view line) {
  Scan s(line);
  s.blanks();
  if (s.take("strace: Process ") || s.take("% time ")) return true;
  if (s.take("[pid")) {
    while (!s.done() && s.peek() != ']') ++s.p;
    s.take(']');
    s.blanks();
  }
  for (int words = 0; words < 6; ++words) {
    if (s.peek() == '[' || s.peek() == '(') {
      while (!s.done() && s.peek() != ']' && s.peek() != ')') ++s.p;
      if (!s.done()) ++s.p;
    } else if (is_digit(s.peek())) {
      while (is_digit(s.peek()) || s.peek() == '.' || s.peek() == ':') ++s.p;
      if (s.peek() == '<' && !s.skip_angle()) return false;
    } else {
      break;
    }
    if (s.peek() != ' ') return false;
    s.blanks();
  }
  if (s.take("+++ ") || s.take("--- ") || s.take("<... ")) return true;
  const char* start = s.p;
  while (is_name(s.peek())) ++s.p;
  return s.p - start >= 3 && s.peek() == '(';
}

int probe(const char*, const void* head, size_t size) noexcept try {
  std::string_view text(static_cast<const char*>(head), size);
  if (text.find('\0') != std::string_view::npos) return 0;
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // as Lines does
  int good = 0, lines = 0;
  while (!text.empty() && lines < 10) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    if (line.empty()) continue;
    ++lines;
    good += looks_like_strace(line.find('\x1b') != line.npos ? without_colours(line)
                                                             : std::string(line));
  }
  return lines == 0 ? 0 : good * 90 / lines;
} catch (const std::exception&) {
  return 0;
}

constexpr feign_provider kApi = feign::provider<Provider, Options>(probe);
constexpr feign_component kComponent = feign::component<Options>(
    kApi, "strace", "Reads what strace prints (-f, -ff, -t…, -T, -y…).", kOptions);
constexpr const feign_component* kComponents[] = {&kComponent, nullptr};

}  // namespace

FEIGN_ROLES(FEIGN_PROVIDER);
extern "C" const feign_plugin feign_plugin_v1 = {
    sizeof(feign_plugin), FEIGN_ABI_MINOR, "strace", FEIGN_VERSION, "MIT", kComponents};
