// SPDX-License-Identifier: MIT
#include "providers/strace/source.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>
#include <utility>

namespace feign::strace {
namespace {

constexpr uint64_t kDay = 86400 * kSecond;
constexpr uint64_t kOldest =
    100'000'000;  // seconds: what is less is no date, but since the line before
// A call that holds its place in the order is waited for over at most this many later ones.
constexpr size_t kMaxHeld = size_t{1} << 18;
// … the end of a process that gives up locks over so many: strace -qq does not tell it. A process
// that was there before the trace waits as long for the call that made it.
constexpr size_t kMaxEnding = size_t{1} << 12;
// Of calls on one name that overlap, so many are compared: a trace may have any number.
constexpr size_t kMaxRivals = 256;
// … behind a call that lasts: others' lines come first; strace leaves the process.
constexpr std::string_view kUnfinished = "<unfinished ...>", kDetached = "<detached ...>";

// An argument of a call, by its number, that stands there as one (strace -X raw); -1 if it does
// not.
int64_t raw_number(std::string_view text, size_t argument) {
  Scan s(text.substr(text.find('(') + 1));
  s.skip_name();
  for (; argument != 0; --argument) {
    if (!s.skip_argument() || !s.take(',')) return -1;
    s.blanks();
    s.skip_name();
  }
  int64_t number = -1;
  return s.number(number) ? number : -1;
}

// fcntl64 of 32 bits has numbers of its own for locks, in place of F_GETLK and the two behind it.
constexpr uint32_t kGetLock64 = 12;
constexpr uint32_t lock_command(uint32_t fcntl) {
  return fcntl >= kGetLock64 && fcntl < kGetLock64 + 3 ? fcntl - kGetLock64 + F_GETLK : fcntl;
}

// What calls are about, by names of flags or by numbers.
bool says_unlock(std::string_view text) {
  if (text.find("LOCK_UN") != text.npos) return true;
  const int64_t how = raw_number(text, 1);
  return how >= 0 && (how & LOCK_UN) != 0;
}
bool says_lock(std::string_view text) {
  if (text.find("F_SETLK") != text.npos) return true;
  const uint32_t command = lock_command(static_cast<uint32_t>(raw_number(text, 1)));
  return command == F_SETLK || command == F_SETLKW;
}
bool says_end(std::string_view text) {
  return text.find("SEEK_END") != text.npos || raw_number(text, 2) == SEEK_END;
}
bool says_truncate(const Call& call, std::string_view text) {
  if (text.find("O_TRUNC") != text.npos) return true;
  const auto* const flags = std::find_if(call.args, call.args + call.arg_count,
                                         [](const CallArg& a) { return a.role == Role::kFlags; });
  const int64_t number = raw_number(text, static_cast<size_t>(flags - call.args));
  return number >= 0 && (number & O_TRUNC) != 0;
}
bool shares_files(std::string_view clone) { return clone.find("CLONE_FILES") != clone.npos; }
bool says_flags(std::string_view clone) {  // by name, or it has none
  return clone.find("fork(") != clone.npos || clone.find("SIGCHLD") != clone.npos ||
         clone.find("CLONE_") != clone.npos;
}
bool says_wake(std::string_view text) {
  if (text.find("_WAKE") != text.npos || text.find("REQUEUE") != text.npos) return true;
  const int64_t operation = raw_number(text, 1);
  return operation >= 0 && futex_counts_from_start(static_cast<uint32_t>(operation));
}

// Calls that take effect when they start: those, and by their arguments those that give up a lock
// or wake somebody. `text` is the call with its arguments, as far as they are known.
bool at_start(const Call& call, std::string_view text) {
  if (counts_from_start(call.effect)) return true;
  switch (call.effect) {
    case Effect::kFutex:
      return says_wake(text);
    case Effect::kFlock:
      return says_unlock(text);
    case Effect::kFcntl:
      return (text.find("F_UNLCK") != text.npos && text.find("F_GETLK") == text.npos) ||
             (text.find("l_type=0x2,") != text.npos &&
              lock_command(static_cast<uint32_t>(raw_number(text, 1))) != F_GETLK);
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

// Whether a call is about a lock that is given up.
bool about_lock(const Claims& given_up, const Claims& call) {
  return call[0].name != 0 && std::any_of(given_up.begin(), given_up.end(),
                                          [&](const Claim& c) { return c.name == call[0].name; });
}

// The end of a process that gives up locks.
bool ends_process(const Held& h) {
  return h.shown.lock.what == Lock::kClosed && h.shown.lock.file == 0;
}

}  // namespace

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
    p->stream = trace_.host->stream(trace_.host, &info);
  }
  last_pid_ = pid;
  last_process_ = p.get();
  return *p;
}

// `line`: which, if it is not the one that was read last.
feign_status Source::bad(const std::string& what, uint64_t line) {
  if (trace_.keep_going) {
    trace_.host->left_out(trace_.host, 0, "(line)", "not understood", 0, 0);
    return FEIGN_OK;
  }
  if (line == 0) line = lines_->number();
  const std::string text = lines_->path() + ":" + std::to_string(line) + ": " + what;
  // But for a text that is no trace at all.
  if (any_call_ && !lines_->complete() && line == lines_->number()) {
    last_line_cut(text);
    return FEIGN_OK;
  }
  return trace_.host->fail(trace_.host, FEIGN_ERR_ARGUMENT,
                           (text + " (--keep-going leaves such lines out)").c_str());
}

// strace was killed, or what compressed its text, or the disk was full.
void Source::last_line_cut(const std::string& why) {
  trace_.host->log(trace_.host, FEIGN_LOG_WARN,
                   (why + " (the last line is cut short, and left out)").c_str());
  trace_.host->left_out(trace_.host, 0, "(line)", "the last line, cut short", 0, 0);
}

// What is no line of a trace: what is written to the terminal by a process that is in write(), or
// an error.
feign_status Source::stray(std::string_view text, const char* want) {
  if (!any_call_ && text.find("strace") != text.npos) {  // "$ strace -f COMMAND"
    trace_.host->left_out(trace_.host, 0, "(line)", "the command that was typed", 0, 0);
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
  // A lock may be had until the call that gives it up is over: whoever has it before then tells.
  const Lock& lock = h.shown.lock;
  const bool gives_up = lock.what == Lock::kGivenUp ||
                        (lock.what == Lock::kClosed && trace_.locked.contains(lock.file));
  return h.from_start && !gives_up ? h.a.start_ns : h.ended();
}

void Source::pop() {
  next_->gone = true;
  next_ = nullptr;
  drop_gone();
}

void Source::drop_gone() {
  for (; !queue_.empty() && queue_.front().gone; queue_.pop_front()) forget(queue_.front());
}

// The call waits for nobody who is still under way.
void Source::forget(Held& h) {
  std::erase(releases_, &h);
  if (h.open != 0 && ends_process(h))
    for (auto& [pid, p] : processes_)
      if (p->ends == &h) {
        p->ends = nullptr;
        --h.open;
        ends_ = false;
      }
  for (auto p = under_way_.begin(); h.open != 0 && p != under_way_.end(); ++p)
    h.open -= static_cast<uint32_t>(std::erase((*p)->call.early, &h));
}

// The trace is over: what is under way keeps its place only if it matters for what follows.
void Source::never_returned() {
  nobody_made();
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
        trace_.host->left_out(trace_.host, p->stream, "(call)", "did not return", 0, 0);
    }
}

// Whether what comes next is not known yet.
bool Source::waits() {
  for (drop_gone(); queue_.size() >= kMaxEnding && queue_.front().child != nullptr; drop_gone())
    was_there_before(queue_.front());
  if (queue_.empty()) return true;
  const Held& h = queue_.front();
  return (!h.complete || h.open != 0) && queue_.size() < (ends_process(h) ? kMaxEnding : kMaxHeld);
}

feign_status Source::fill() {
  if (next_ != nullptr) return FEIGN_OK;
  while (!over_ && waits()) {
    std::string_view text;
    auto got = lines_->next(text);
    if (!got && any_call_ && lines_->cut_short()) {
      last_line_cut(got.error().text());
      broken_ = nullptr;
      over_ = true;
      never_returned();
      break;
    }
    if (!got) return trace_.host->fail(trace_.host, got.error().code(), got.error().text().c_str());
    if (!*got) {
      over_ = true;
      if (broken_ != nullptr)
        if (const feign_status status = gives_up(); status < 0) return status;
      never_returned();
      break;
    }
    if (const feign_status status = line(text); status < 0) return status;
  }
  drop_gone();
  if (queue_.empty()) return FEIGN_OK;
  next_ = &queue_.front();
  if (!next_->complete || next_->open != 0) {
    if (!next_->complete) next_->a.marks |= FEIGN_NO_RESULT;
    next_->complete = true;
    forget(*next_);
  }
  if (const std::vector<Held*>& rivals = next_->rivals; !rivals.empty())
    if (const size_t at = first_of(
            rivals.size(), rivals.size(), trace_.there,
            [&](size_t i) {
              Held* const h = i < rivals.size() ? rivals[i] : next_;
              return h->gone ? nullptr : &h->claims;
            },
            [&](size_t late, size_t early, Overtakes by_claims) {
              const auto of = [&](size_t i) -> const Shown& {
                return (i < rivals.size() ? rivals[i] : next_)->shown;
              };
              return trace_.shared.overtakes(of(late), of(early), by_claims);
            },
            [&](size_t i) { return (i < rivals.size() ? rivals[i] : next_)->ended(); });
        at < rivals.size())
      next_ = rivals[at];
  return FEIGN_OK;
}

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
// Processes are stopped side by side, so that their lines may be a little out of order; strace -z
// shows a call when it has ended, by the time when it began.
void Source::check_clock(int64_t pid, uint64_t& time) {
  if (time + kSecond >= clock_) return;
  const auto p = processes_.find(pid);
  if (p == processes_.end() || time + kSecond >= p->second->clock) return;
  const uint64_t back = clock_ - time;
  shift_ += back;
  time = clock_;
  if (++jumps_ > 3) return;
  char text[64];
  snprintf(text, sizeof text, "the clock was set back by %.3f s",
           static_cast<double>(back) / static_cast<double>(kSecond));
  trace_.host->log(
      trace_.host, FEIGN_LOG_WARN,
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
  } else if (is_head_of_counts(text)) {  // -C: a table of counts ends the trace
    if (!any_call_)
      return bad("this is strace -c's table of counts, and no trace: want strace without -c");
    table_ = true;
    text = {};
  } else if (!is_digit(text[0]) && is_rest_of_call(text)) {  // else the prefix is looked at first
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
  if (trace_.first) {
    trace_.first = false;
    trace_.base = time;
  }
  if (trace_.several && !exact_) {
    trace_.several = false;
    trace_.host->log(trace_.host, FEIGN_LOG_INFO,
                     "several files without times of day to the microsecond: what came first "
                     "in different ones is a guess (strace -ff -ttt tells it)");
  }
  if (!attached_.empty()) on_terminal(text, pid);
  check_clock(pid, time);
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
      ends_ = true;
      (void)no_longer_under_way(*at->second);
      has_ended(*at->second, time);
      if (at->second->descriptors != nullptr) at->second->descriptors->reset();
      feign_activity& a = queue_.add().a;
      a.op = trace_.arguments.known("exit").call->op;
      a.stream = at->second->stream;
      a.start_ns = time - std::min(time, trace_.base);
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
  Process& p = process(pid);
  if (!p.seen) begins(p);
  return call(p, time, rest, lines_->number(), nullptr);
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
                    (close != text.npos && trace_.arguments.is_known(name_of_call(s.rest())) &&
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
  trace_.host->left_out(trace_.host, process(begun->pid).stream, begun->left_out->name,
                        "did not return", 0, begun->left_out->passed);
  return FEIGN_OK;
}

feign_status Source::unfinished(int64_t pid, uint64_t time, std::string_view text) {
  Process& p = process(pid);
  if (!p.seen) begins(p);
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
  p.call.start = p.clock = time;
  p.call.line = lines_->number();
  p.call.place = nullptr;
  p.call.opens = trace_.opens;
  p.call.took_over = false;
  const Known k = trace_.arguments.known(name_of_call(text));
  if (k.call == nullptr) return FEIGN_OK;
  const Effect e = k.call->effect;
  if (e == Effect::kExit || e == Effect::kExitGroup || at_start(*k.call, text)) {
    Held& h = queue_.add();
    h.complete = false;
    h.a = feign_activity{};
    h.a.op = k.call->op;
    h.a.start_ns = time - std::min(time, trace_.base);
    h.a.stream = p.stream;
    h.a.place = FEIGN_PLACE(number_, p.call.line);
    p.call.place = &h;
    if (makes_process(e)) making_.push_back(&p);
    // Whoever asks for the lock may be refused it.
    if (e == Effect::kExitGroup) {
      gives_up_locks(p, h);
    } else if (e == Effect::kFlock || e == Effect::kFcntl ||
               (e == Effect::kClose && !trace_.locked.empty())) {
      names(p, *k.call);
      h.claims[0] = {std::exchange(p.call.about, {})[0].name, There::kUnknown, There::kYes};
      if (h.claims[0].name != 0 && releases_.size() < kMaxRivals) releases_.push_back(&h);
    }
  } else {
    names(p, *k.call);
    if (p.call.about[0].name != 0) under_way_.push_back(&p);
  }
  return FEIGN_OK;
}

// What the call is about, as far as its beginning tells.
void Source::names(Process& p, const Call& call) {
  const std::string_view text = p.call.text;
  Claims& about = p.call.about;
  about = {};
  Scan s(text.substr(text.find('(') + 1));
  s.skip_name();
  // A descriptor, and what it is.
  const auto descriptor = [&](int64_t& fd) -> uint32_t {
    if (!s.take("AT_FDCWD") && !s.number(fd)) return 0;
    const char* const start = s.p + 1;
    if (s.peek() != '<' || !s.skip_angle())
      return fd != AT_FDCWD ? descriptors(p)->at(FEIGN_FD(fd)).file : 0;
    return trace_.arguments.hint(static_cast<int32_t>(fd),
                                 {start, static_cast<size_t>(s.p - start) - 1});
  };
  const bool closes = call.effect == Effect::kClose;
  const bool locks =
      closes || call.effect == Effect::kFlock || (call.effect == Effect::kFcntl && says_lock(text));
  const bool reads = call.effect == Effect::kRead;
  const bool finds_end = call.effect == Effect::kSeek && says_end(text);
  int64_t fd = AT_FDCWD;
  const bool moves_bytes = call.effect == Effect::kWrite || call.effect == Effect::kPread ||
                           call.effect == Effect::kPwrite || call.effect == Effect::kPread2 ||
                           call.effect == Effect::kPwrite2 || call.effect == Effect::kCopy ||
                           call.effect == Effect::kFtruncate;
  if (reads || locks || finds_end || moves_bytes || call.effect == Effect::kList) {
    const uint32_t file = descriptor(fd);
    if (closes && !trace_.locked.contains(file)) return;
    if (file != 0 || (reads && fd != AT_FDCWD))
      about[0].name = locks                          ? lock_name(file)
                      : call.effect == Effect::kList ? file
                                                     : stream_name(file, FEIGN_FD(fd));
    if (call.effect == Effect::kCopy && s.take(',')) {  // sendfile's source stands behind
      s.blanks();
      if (const uint32_t second = descriptor(fd); second != 0)
        about[about[0].name != 0].name = stream_name(second, 0);
    }
    return;
  }
  const auto is_path = [](const CallArg& a) {
    return a.role == Role::kPath || a.role == Role::kPath2;
  };
  if (std::none_of(call.args, call.args + call.arg_count, is_path)) return;
  for (size_t i = 0; i < kNames; ++i, fd = AT_FDCWD) {
    uint32_t from = descriptor(fd);
    if (from == 0 && fd == AT_FDCWD) from = where(p);
    const size_t quote = s.rest().find('"');
    if (quote == std::string_view::npos) return;
    s.p += quote;
    const char* start = s.p + 1;
    if (!s.skip_string()) return;
    about[i].name = trace_.arguments.text_of({start, static_cast<size_t>(s.p - start) - 1});
    trace_.there.put_below(from, about[i], trace_.host);
    if (call.effect == Effect::kOpen && says_truncate(call, text))  // and its bytes
      about[i + 1].name = stream_name(about[i].name, 0);
    if (makes_or_removes(call.effect))
      about[i + kNames] = trace_.there.directory(about[i], trace_.host);
    if (!s.take(',') || call.effect == Effect::kOpen) return;
    s.blanks();
  }
}

// The calls that ended while that of `p` was under way, and are about its names: they wait for it
// no longer.
std::vector<Held*> Source::no_longer_under_way(Process& p) {
  std::erase(making_, &p);
  if (p.call.about[0].name == 0) return {};
  p.call.about = {};
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
    trace_.host->left_out(trace_.host, p.stream, "(call)", "began before the trace", 0, 0);
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

  const feign_host* host = trace_.host;
  const Known k = trace_.arguments.known(name);
  uint64_t duration = 0;
  const bool timed = duration_of(text, duration);
  timed_ |= timed;
  if (const size_t end = fails_ ? text.npos : end_of_call(text);
      end != text.npos && result_of(text.substr(end)) == "-1") {
    fails_ = true;
    nobody_made();
  }
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
  Held* const held = k.call == nullptr ? nullptr : place != nullptr ? place : &queue_.add();
  Arguments& arguments = trace_.arguments;
  if (held != nullptr && (!arguments.read(*k.call, s, held->a, held->values) || cut)) {
    std::string why = std::string(name) + "(): ", without;
    why += cut ? "there is no time behind its result, as there is elsewhere" : arguments.error();
    if (k.call->effect == Effect::kWrite && place == nullptr && !cut &&
        arguments.error() != kLostNewline)
      without = without_output(text);
    Scan again(without);
    if (!without.empty()) {
      again.p += name.size() + 1;
      held->a = feign_activity{};
    }
    if (without.empty() || !arguments.read(*k.call, again, held->a, held->values)) {
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

  p.clock = std::max(p.clock, time + duration);
  const uint64_t quicker = std::min(duration, std::exchange(p.last_ns, duration));
  p.overhead += trace_.tracer.of(quicker);
  if (held == nullptr) {
    // The shortest calls take next to nothing without a tracer.
    if (k.left_out->passed != FEIGN_WAITED && trace_.estimated)
      p.overhead += std::min(quicker, trace_.tracer.of(quicker));
    host->left_out(host, p.stream, k.left_out->name, k.left_out->why, duration, k.left_out->passed);
    return FEIGN_OK;
  }

  Held& h = *held;
  if (arguments.made_up()) {
    host->left_out(host, p.stream, k.call->name, "strace made up its result (-e inject)", duration,
                   FEIGN_COMPUTED);
    h.gone = true;
    if (place == nullptr)
      queue_.pop_back();
    else
      drop_gone();
    return FEIGN_OK;
  }
  if (arguments.after_cwd()) h.a.file = trace_.cwd;
  if (arguments.after_cwd() && !trace_.cwd_told && !p.moved) {
    trace_.cwd_told = true;
    const std::string taken = host->text(host, trace_.cwd, nullptr);
    host->log(host, FEIGN_LOG_INFO,
              ("the trace does not tell the directory that names are relative to: " + taken +
               " is taken (--cwd DIR says which)")
                  .c_str());
  }
  h.a.op = k.call->op;
  h.a.stream = p.stream;
  h.a.start_ns = time - std::min(time, trace_.base);
  h.a.duration_ns = duration;
  h.a.place = FEIGN_PLACE(number_, first_line);
  h.from_start = at_start(*k.call, text);
  // Before 4.8 mmap2's offset is printed as the kernel is given it, in pages of 4 KiB.
  if (k.call->effect == Effect::kMap && name == "mmap2" && h.a.offset % 4096 != 0)
    h.a.offset *= 4096;
  if (k.call->effect == Effect::kFcntl) h.a.flags = lock_command(h.a.flags);
  const Effect e = k.call->effect;
  // Entries of a directory are shorter in 32 bits: how many bytes they took cannot be compared.
  p.narrow = e != Effect::kExec && (p.narrow || k.narrow);
  if (p.narrow && name == "getdents" && h.a.result >= 0) h.a.marks |= FEIGN_NO_RESULT;
  // The tracer stopped the process before and after each of them.
  // An estimate is right on average: what is more than this pause is taken off the next ones.
  const uint64_t off = std::min(p.overhead, time - std::min(time, p.ended));
  h.a.compute_ns = off;
  const uint64_t left =
      trace_.estimated ? std::min(p.overhead - off, 20 * trace_.tracer.mean_ns()) : 0;
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
    if (arguments.said_cwd() != 0) p.cwd = arguments.said_cwd();
    if (e == Effect::kExitGroup) {
      gives_up_locks(p, h);
      (void)shows(p, h, e, trace_.opens);
    } else {
      overlaps(p, h, e, shows(p, h, e, trace_.opens));
    }
  } else {
    p.overhead = left;
    p.ended = time + duration;
    place->complete = true;
    if (p.ends != &h) released(h);
    (void)shows(p, h, e, p.call.opens);
  }
  if (makes_process(e) && h.a.result > 0) makes(p, h, text);
  return FEIGN_OK;
}

// strace -z, which shows no call that failed, shows the call that made a process when it has ended:
// its place is before whatever the process did. Where one call that makes a process is under way,
// it is that.
void Source::begins(Process& p) {
  p.seen = true;
  if (processes_.size() == 1 || trace_.began_in.contains(p.pid) || p.pid == pid_) return;
  if (making_.size() == 1 && says_flags(making_[0]->call.text))
    return inherits(*making_[0], p.pid, shares_files(making_[0]->call.text));
  if (fails_) return;
  Held& h = queue_.add();
  h.complete = false;
  h.child = &p;
  p.maker = &h;
}

// … who is still waited for.
void Source::nobody_made() {
  for (auto& [pid, p] : processes_)
    if (p->maker != nullptr) was_there_before(*p->maker);
}

void Source::was_there_before(Held& place) {
  std::exchange(place.child, nullptr)->maker = nullptr;
  place.gone = true;
}

// `call` has made it: it takes the place that was kept, if it has none of its own.
void Source::made_before(Process& child, Held& call) {
  Held& place = *child.maker;
  if (&call != &queue_.back()) return was_there_before(place);
  child.maker = nullptr;
  place = std::move(call);
  queue_.pop_back();
}

// A process, or a thread, which may have been seen to go on before this call ended.
void Source::makes(Process& p, Held& call, std::string_view text) {
  const feign_activity a = call.a;
  if (const auto child = processes_.find(a.result);
      child != processes_.end() && child->second->maker != nullptr)
    made_before(*child->second, call);
  inherits(p, a.result, shares_files(text) || (a.flags & static_cast<uint32_t>(CLONE_FILES)) != 0);
}

// Its maker's directory and descriptors, or those that are not known to be others by then.
void Source::inherits(Process& maker, int64_t child, bool shares) {
  trace_.began_in[child] = where(maker);
  const std::shared_ptr<Descriptors> mine = descriptors(maker);
  std::shared_ptr<Descriptors>& its = trace_.descriptors[child];
  if (its && shares)
    mine->add(*its, false);
  else if (its)
    its->add(*mine, true);
  else if (!shares)
    its = std::make_shared<Descriptors>(*mine, static_cast<uint64_t>(child));
  if (shares) its = mine;
}

std::shared_ptr<Descriptors>& Source::descriptors(Process& p) {
  if (p.descriptors == nullptr) p.descriptors = &trace_.descriptors[p.pid];
  if (!*p.descriptors) *p.descriptors = std::make_shared<Descriptors>(p.pid);
  return *p.descriptors;
}

// What a call tells besides names, and what it does to descriptors; the file that its own one is.
// `opens`: of the trace, when it took effect.
uint32_t Source::shows(Process& p, Held& h, Effect effect, uint64_t opens) {
  const feign_activity& a = h.a;
  Descriptors& table = *descriptors(p);
  const bool cwd = a.handle == 0 || a.handle == FEIGN_CWD;
  Descriptor own = cwd ? Descriptor{a.file != 0 ? a.file : where(p), nullptr} : table.at(a.handle);
  // Somebody else has opened another one there since a close began.
  const bool reused = own.open && own.open->number > opens;
  if (reused || (!cwd && a.file != 0 && a.file != own.file)) own = {a.file, nullptr};
  Descriptor opened;
  if ((effect == Effect::kOpen || effect == Effect::kCreat) && a.result >= 0) {
    opened.file = a.path2 != 0 ? a.path2 : trace_.there.whole(own.file, a.path, trace_.host);
    opened.open = std::make_shared<Description>(
        Description{++trace_.opens, (a.flags & static_cast<uint32_t>(O_APPEND)) != 0});
  }
  if (p.ends != &h)
    h.shown =
        shown_by(effect, a, h.values, opened.open ? opened : own, table.process(), trace_.host);
  if (h.shown.lock.what == Lock::kGot) trace_.locked.insert(h.shown.lock.file);
  if (const Left left = left_by(effect, a); left.handle != 0 && !reused)
    table.set(left.handle, left.what == Left::kOwn ? own : opened);
  if (effect == Effect::kCloseRange && (a.flags & CLOSE_RANGE_CLOEXEC) == 0 && a.result >= 0)
    table.close(a.offset, a.length);
  if (effect == Effect::kExit || effect == Effect::kExitGroup) p.descriptors->reset();
  return cwd ? a.file : own.file;
}

// The directory that the process is in; 0: it is not known.
uint32_t Source::where(Process& p) {
  if (p.cwd == 0 && !p.moved) {
    auto& all = trace_.began_in;
    if (all.empty()) all[p.pid] = trace_.cwd;  // the first of all
    if (const auto at = all.find(p.pid); at != all.end()) p.cwd = at->second;
  }
  return p.cwd;
}

// Who is still at a lock that was given up by then may have been refused it before.
void Source::released(Held& h) {
  if (std::erase(releases_, &h) == 0) return;
  for (Process* other : under_way_)
    if (h.open < kMaxRivals && about_lock(h.claims, other->call.about)) {
      other->call.early.push_back(&h);
      ++h.open;
    }
}

// A process that ends has its locks until then, not until it says so.
void Source::gives_up_locks(Process& p, Held& exit) {
  has_ended(p, clock_);  // in a damaged trace it may end twice
  if (trace_.locked.empty() || !ends_ || releases_.size() >= kMaxRivals) return;
  const Descriptors& table = *descriptors(p);
  Lock closed{.what = Lock::kClosed, .process = table.process(), .last = true};
  size_t names = 0, ends = 0;
  table.for_each([&](const Descriptor& d, const auto& only_here) {
    if (!trace_.locked.contains(d.file)) return;
    const Claim lock = {lock_name(d.file), There::kUnknown, There::kYes};
    if (names < exit.claims.size() && !about_lock(exit.claims, {lock})) exit.claims[names++] = lock;
    if (ends < closed.ends.size() && only_here()) closed.ends[ends++] = d.open->number;
  });
  if (names == 0) return;
  exit.shown.lock = closed;
  p.ends = &exit;
  ++exit.open;
  releases_.push_back(&exit);
}

void Source::has_ended(Process& p, uint64_t time) {
  if (p.ends == nullptr) return;
  Held& exit = *std::exchange(p.ends, nullptr);
  --exit.open;
  exit.until = time - std::min(time, trace_.base);
  released(exit);
}

// What a call that has ended says of its names, and who else may say something of them.
void Source::overlaps(Process& p, Held& h, Effect effect, uint32_t own) {
  feign_activity a = h.a;
  a.file = own;
  h.claims = claims(effect, a);
  const Lock& lock = h.shown.lock;
  if (lock.what != Lock::kNone && (lock.what != Lock::kClosed || trace_.locked.contains(lock.file)))
    h.claims[0] = {lock_name(lock.file), There::kUnknown, There::kYes};
  else if (h.shown.tail.on_bytes())
    h.claims[0].name = stream_name(own, a.handle);
  else if (h.shown.tail.cuts())
    h.claims[1].name = stream_name(h.shown.tail.file, 0);
  for (Held* release : releases_)
    if (about_lock(release->claims, h.claims)) release->rivals.push_back(&h);
  trace_.there.below(where(p), own, static_cast<uint64_t>(p.pid), effect, h.claims, a, trace_.host);
  const auto tells = [&](const Claim& claim, const Claim& name) {
    return (claim.tells() || h.shown.tail.what != Tail::kNone) && claim.same(name);
  };
  for (Process* other : under_way_)
    if (h.open < kMaxRivals && any_two(h.claims, other->call.about, tells)) {
      other->call.early.push_back(&h);
      ++h.open;
    }
  p.cwd = trace_.there.moves(p.cwd, effect, h.a, trace_.host);
  p.moved |= effect == Effect::kChdir || effect == Effect::kFchdir || effect == Effect::kChroot;
}

// io_submit's array: each request that was accepted becomes an activity of its own.
feign_status Source::requests(Held& first, int64_t accepted) {
  const std::string_view all = trace_.arguments.requests();
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
    Held& h = count == 0 ? first : queue_.add();
    if (count != 0) h = blank;
    h.a.handle = FEIGN_FD(fd);
    if (const size_t p = one.find("fildes="); p != std::string_view::npos) {
      const std::string_view rest = one.substr(p);
      const size_t open = rest.find('<'), comma = rest.find(',');
      if (open < comma) {
        Scan angle(rest.substr(open));
        const char* start = angle.p + 1;
        if (angle.skip_angle())
          h.a.file = trace_.arguments.hint(static_cast<int32_t>(fd),
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
    trace_.host->left_out(
        trace_.host, first.a.stream, "io_submit",
        accepted > 0 ? "its requests are not in the text (-s 32 or more)" : "no request",
        first.a.duration_ns, 0);
    queue_.pop_back();
  }
  return FEIGN_OK;
}

// The processes that its calls make.
void Source::children(std::unordered_set<int64_t>& out) {
  std::string_view text;
  for (auto got = lines_->next(text); got && *got; got = lines_->next(text)) {
    if (text.find("fork(") == text.npos && text.find("clone") == text.npos) continue;
    Scan s(text);
    int64_t pid, child;
    uint64_t time;
    if (!prefix(s, pid, time)) continue;
    const std::string_view rest = s.rest();
    const Known k = trace_.arguments.known(name_of_call(rest));
    const size_t end = end_of_call(rest);
    if (k.call == nullptr || !makes_process(k.call->effect) || end == rest.npos) continue;
    if (Scan result(result_of(rest.substr(end))); result.number(child)) out.insert(child);
  }
}

// The pauses between calls that follow each other in a process, without anything in between. How
// many lines were looked at.
uint64_t Source::pauses(uint64_t most_lines, TracerTime& out) {
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

}  // namespace feign::strace
