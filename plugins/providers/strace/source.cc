// SPDX-License-Identifier: MIT
// The lines: whose each is, when, and what: a call, a signal, an end, or a piece of one.
#include "providers/strace/source.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <utility>

#include "providers/strace/family.h"

namespace feign::strace {
namespace {

// A call that holds its place in the order is waited for over at most this many later ones.
constexpr size_t kMaxHeld = size_t{1} << 18;
// … the end of a process that gives up locks over so many: strace -qq does not tell it. A process
// that was there before the trace waits as long for the call that made it.
constexpr size_t kMaxEnding = size_t{1} << 12;
// What stands behind a call that lasts: others' lines come first; strace leaves the process.
constexpr std::string_view kUnfinished = "<unfinished ...>", kDetached = "<detached ...>";

// The end of a process that gives up locks.
bool ends_process(const Held& h) {
  return h.shown.lock.what == Lock::kClosed && h.shown.lock.file == 0;
}

}  // namespace

// `line`: which, if it is not the one that was read last.
feign_status Source::bad(const std::string& what, uint64_t line) {
  if (trace_.keep_going) {
    trace_.host->left_out(trace_.host, 0, "(line)", "not understood", 0, 0);
    return FEIGN_OK;
  }
  if (line == 0) line = lines_->number();
  std::string text = lines_->path() + ":" + std::to_string(line) + ": " + what;
  for (size_t at = 0; (at = text.find('\0', at)) != text.npos; ++at)  // which would end it
    text.replace(at, 1, "\\0");
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
  // "$ strace -f COMMAND"
  if (!any_call_ && text.find("strace") != text.npos && end_of_call(text) == text.npos) {
    trace_.host->left_out(trace_.host, 0, "(line)", "the command that was typed", 0, 0);
    return FEIGN_OK;
  }
  if (text.starts_with("Script started on ") || text.starts_with("Script done on ")) {
    trace_.host->left_out(trace_.host, 0, "(line)", "what script says of itself", 0, 0);
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
  const bool gives_up =
      (lock.what == Lock::kGivenUp || lock.what == Lock::kClosed) && trace_.is_about_lock(lock);
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
  if (h.by != nullptr && h.by->doubtful == &h) {
    h.by->doubtful = nullptr;
    --doubtful_;
  }
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

// Of a thread that SIGKILL, or another one's exit_group, ended at a call's end, strace shows for
// the result what the kernel told it of another stop before: a call's number, or its result. That
// is none. Of who goes on, it may be a kernel's that strace does not know, or the descriptor of who
// had closed that one.
void Source::settles(Process& p, std::string_view next) {
  if (p.doubtful == nullptr) return;
  Held& h = *std::exchange(p.doubtful, nullptr);
  --doubtful_;
  h.complete = true;
  const bool over = next.empty() && p.dying;  // strace -qq does not tell ends
  if (!over && !next.starts_with(p.dying ? "+++ " : "+++ killed")) return;
  trace_.host->left_out(trace_.host, p.stream, posix_calls()[h.a.op].name, "did not return",
                        h.a.duration_ns, FEIGN_WAITED);
  h.gone = true;
  drop_gone();
}

// The trace is over: what is under way keeps its place only if it matters for what follows.
void Source::never_returned() {
  nobody_made();
  for (auto& [pid, p] : processes_) settles(*p, {});
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

// A call that is waited for no longer takes effect when it ends.
void Source::gives_up_places() {
  for (drop_gone(); queue_.size() >= kMaxHeld && !queue_.front().complete; drop_gone()) {
    Held& front = queue_.front();
    Process* const p = front.by;
    if (p == nullptr || !p->begun || p->call.place != &front || ends_process(front)) return;
    p->call.place = nullptr;
    front.gone = true;
  }
}

// Whether what comes next is not known yet.
bool Source::waits() {
  gives_up_places();
  for (drop_gone(); queue_.size() >= kMaxEnding && queue_.front().child != nullptr; drop_gone())
    was_there_before(queue_.front());
  if (queue_.empty()) return true;
  const Held& h = queue_.front();
  const auto is_open = [](const Held* other) { return !other->gone && !other->complete; };
  return (!h.complete || h.open != 0 || std::any_of(h.rivals.begin(), h.rivals.end(), is_open)) &&
         queue_.size() < (ends_process(h) ? kMaxEnding : kMaxHeld);
}

Result<bool> Source::next_line(std::string_view& text) {
  auto got = lines_->next(text);
  if (got && *got && trace_.numbered) text = without_number(text);
  return got;
}

feign_status Source::read_line() {
  std::string_view text;
  auto got = next_line(text);
  if (got && *got) return line(text);
  if (!got && !(any_call_ && lines_->cut_short()))
    return trace_.host->fail(trace_.host, got.error().code(), got.error().text().c_str());
  over_ = true;
  if (!got) {
    last_line_cut(got.error().text());
    broken_ = nullptr;
  } else if (broken_ != nullptr) {
    if (const feign_status status = gives_up(); status < 0) return status;
  }
  never_returned();
  return FEIGN_OK;
}

feign_status Source::fill() {
  if (next_ != nullptr) return FEIGN_OK;
  while (!over_ && waits())
    if (const feign_status status = read_line(); status < 0) return status;
  drop_gone();
  if (queue_.empty()) return FEIGN_OK;
  next_ = &queue_.front();
  if (!next_->complete || next_->open != 0) {
    if (Process* const p = next_->by; !next_->complete) {
      // Who was not heard of since goes on, mostly.
      if (!next_->likely) next_->a.marks |= FEIGN_NO_RESULT;
      if (p != nullptr && p->begun && p->call.place == next_) p->call.passed = true;
    }
    next_->complete = true;
    forget(*next_);
  }
  // Each process's calls stay in their order: none comes before one that has to be behind this.
  std::vector<Held*> rivals;
  std::vector<uint32_t> behind;  // whose
  for (Held* const h : next_->rivals) {
    if (h->gone || std::find(behind.begin(), behind.end(), h->a.stream) != behind.end()) continue;
    if (trace_.shared.overtakes(next_->shown, h->shown, Overtakes::kNo) == Overtakes::kYes)
      behind.push_back(h->a.stream);
    else
      rivals.push_back(h);
  }
  if (!rivals.empty()) {
    const auto at_place = [&](size_t i) { return i < rivals.size() ? rivals[i] : next_; };
    const size_t at = first_of(
        rivals.size(), rivals.size(), trace_.there,
        [&](size_t i, size_t) { return &at_place(i)->claims; },
        [&](size_t late, size_t early, Overtakes by_claims) {
          return trace_.shared.overtakes(at_place(late)->shown, at_place(early)->shown, by_claims);
        },
        [&](size_t i) { return at_place(i)->ended(); });
    if (at != rivals.size() && yields(*rivals[at])) {
      next_ = nullptr;
      return fill();
    }
    const auto first = std::find_if(queue_.begin(), queue_.end(), [&](const Held& h) {
      return !h.gone && h.a.stream == at_place(at)->a.stream;
    });
    if (first->complete) next_ = &*first;
  }
  const Shown& shown = next_->shown;
  next_->names = ends_process(*next_) ? UINT64_MAX : names_of(next_->claims);
  next_->order = changes(next_->claims) || trace_.is_about_lock(shown.lock) ||
                 shown.tail.what == Tail::kRead || shown.tail.on_bytes() || shown.tail.cuts();
  return waited();
}

// A call that gives a lock up may take long, and end after somebody was refused that lock. What was
// over by then comes before the refusal, and so before the call: the call goes behind it, unless
// somebody got the lock in between, or who gives it up went on.
bool Source::yields(const Held& refused) {
  const Lock& lock = next_->shown.lock;
  if (lock.what != Lock::kGivenUp || refused.shown.lock.what != Lock::kRefused) return false;
  for (auto h = std::next(queue_.begin()); &*h != &refused; ++h)
    if (!h->gone && (h->a.stream == next_->a.stream || trace_.shared.got_from(h->shown.lock, lock)))
      return false;
  std::vector<const Held*> passed = queue_.first_behind(refused);
  std::sort(passed.begin(), passed.end(), std::less<>());
  std::erase_if(next_->rivals, [&](const Held* h) {
    return std::binary_search(passed.begin(), passed.end(), h, std::less<>());
  });
  return true;
}

// Whether a call takes effect when it ends, and waits until then for what others do: for a process,
// a message, bytes in what is no file.
bool Source::waits_for_others(const feign_activity& a) const {
  const Effect effect = posix_calls()[a.op].effect;
  if (effect == Effect::kFutex) return !futex_counts_from_start(a.flags);
  if (effect == Effect::kRead)
    return a.file != 0 && trace_.host->text(trace_.host, a.file, nullptr)[0] != '/';
  return feign::waits(effect) && !counts_from_start(effect);
}

// Who waited for others was waiting until they had done that. Without -T nothing else tells how
// long, nor when a call that opens a number of threads' descriptors was over, though before whoever
// is on that; with it the call may have been over later than its times say (ended_by), which
// matters of messages: the descriptors in them are those that were sent.
feign_status Source::waited() {
  const bool has_sent =
      posix_calls()[next_->a.op].effect == Effect::kReceive && !next_->values.empty();
  const bool opens = next_->shown.number.opens_one();
  if (!prefix_.is_exact() || !trace_.several || next_->until != 0 || processes_.size() != 1 ||
      !(timed_ ? has_sent : waits_for_others(next_->a) || opens))
    return FEIGN_OK;
  while (!over_ && queue_.size() == 1 && prefix_.clock() <= next_->a.start_ns)
    if (const feign_status status = read_line(); status < 0) return status;
  const uint64_t then =
      queue_.size() == 1 ? prefix_.clock() : std::next(queue_.begin())->a.start_ns;
  const uint64_t ended = next_->ended();
  next_->until = std::clamp(then, ended, timed_ || opens ? ended + kLate : UINT64_MAX);
  return FEIGN_OK;
}

feign_status Source::ended_by(uint64_t& time) {
  time = next_->ended();
  // What another thread opens then may have the number of a descriptor that this one closes.
  const bool only_its = processes_.size() == 1 && last_process_ != nullptr &&
                        last_process_->descriptors != nullptr &&
                        last_process_->descriptors->use_count() == 1;
  if (!prefix_.is_exact() || next_->until != 0 ||
      (next_->shown.lock.what == Lock::kClosed && !only_its))
    return FEIGN_OK;
  while (!over_ && prefix_.clock() <= next_->a.start_ns && queue_.size() < kMaxEnding)
    if (const feign_status status = read_line(); status < 0) return status;
  time = std::clamp(prefix_.clock(), time, time + kLate);
  return FEIGN_OK;
}

// A clock that was set back would make calls end before they began: what follows is moved on.
// Processes are stopped side by side, so that their lines may be a little out of order; strace -z
// shows a call when it has ended, by the time when it began.
void Source::check_clock(int64_t pid, uint64_t& time) {
  const uint64_t last = prefix_.clock();
  if (time + kSecond >= last) return;
  const auto p = processes_.find(pid);
  if (p == processes_.end() || time + kSecond >= p->second->clock) return;
  const uint64_t back = last - time;
  prefix_.set_back(back);
  time = last;
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
  if (terminal_.breaks(text, memory, any_call_)) return FEIGN_OK;
  // Stacks (-k), data (-e read, -e write), and what strace says of itself.
  if (is_of_strace(text) || begins(kFrame) || begins(" | ") || begins(" * ") ||
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
  }
  return FEIGN_OK;
}

feign_status Source::line(std::string_view text) {
  constexpr uint64_t kLook = 100;  // lines that tell whether the trace is coloured
  if (lines_->number() <= kLook) coloured_ |= text.find('\x1b') != text.npos;
  std::string plain;
  if (coloured_) text = plain = without_colours(text);
  while (!text.empty() && (text.back() == '\r' || text.back() == ' ' || text.back() == '\t'))
    text.remove_suffix(1);
  if (text.empty() || table_) return FEIGN_OK;
  if (broken_ != nullptr) return goes_on(text);
  // A terminal shows the keys that send signals: "^C--- SIGINT {…} ---".
  while (text.size() > 1 && text[0] == '^' && text[1] >= '@' && text[1] <= '_')
    text.remove_prefix(2);
  if (text.empty()) return FEIGN_OK;
  // Before a time (-r), or all of a text that somebody indented.
  if (text[0] == ' ' || text[0] == '\t')
    if (const size_t at = text.find_first_not_of(" \t");
        is_digit(text[at]) || text.substr(at).starts_with("[pid"))
      text.remove_prefix(at);
  if (!any_call_ && is_of_writer_text(text))
    return bad(
        "this is what writer text wrote, which nothing reads back: want the trace that it "
        "was made of");
  std::string memory;
  if (!is_digit(text[0]) || text.back() == 'd' || terminal_.has_cut() ||
      text.ends_with(" parent)") || text.ends_with(" ready)")) {
    const feign_status status = unusual(text, memory);
    if (status < 0 || text.empty()) return status;
  }
  Scan s(text);
  int64_t pid;
  uint64_t time;
  if (!prefix_.read(s, pid, time) || s.done()) {
    if (is_rest_of_call(text))
      return ended(*unfinished_, unfinished_->call.text + std::string(text));
    return stray(text, "want [PID] [TIME] CALL(…) = RESULT");
  }
  if (s.peek() == '[' && s.rest().starts_with(kModeChanged)) {
    prefix_.at(time);
    return FEIGN_OK;
  }
  if (trace_.first) {
    trace_.first = false;
    trace_.base = time;
  }
  if (trace_.several && !prefix_.is_exact() && !std::exchange(trace_.guess_said, true)) {
    trace_.host->log(trace_.host, FEIGN_LOG_INFO,
                     "several files without times of day to the microsecond: what came first "
                     "in different ones is a guess (strace -ff -ttt tells it)");
  }
  const std::string_view rest = s.rest();
  if (prefix_.in_brackets() || terminal_.is_shared()) {
    const auto first = processes_.find(prefix_.pid());
    const bool seen = first != processes_.end();
    if (seen && !terminal_.knows_first() && is_of_first(*first->second, pid, rest))
      terminal_.first_is(pid);
    terminal_.names(text, prefix_.in_brackets(), prefix_.pid(), seen, pid);
  }
  check_clock(pid, time);
  prefix_.at(time);
  const char kind = rest.empty() ? '\0' : rest[0];
  if (doubtful_ != 0)
    if (const auto at = processes_.find(pid); at != processes_.end()) settles(*at->second, rest);
  if ((kind == '+' || kind == '-') && is_message(rest)) {
    if (kind == '+') return message(pid, time, rest.substr(4));
    if (const auto p = processes_.find(pid); p != processes_.end() && is_one_of_unordered())
      signal_came(*p->second, rest);
    return FEIGN_OK;
  }
  if (kind == '<' && rest.starts_with("<... ")) return resumed(pid, rest);
  // "… ...>", " > … [0x…]", "… +++", and few else
  if (rest.size() > 4 && (rest[rest.size() - 2] == '.' || rest.back() == ']' || rest.back() == '+'))
    if (const auto status = cut_off(pid, time, rest)) return *status;
  Process& p = process(pid);
  if (!p.seen) begins(p);
  const size_t before = queue_.size();
  const feign_status status = call(p, time, rest, lines_->number(), nullptr);
  if (!ending_.empty() && queue_.size() > before) ends_later(p);
  return status;
}

// Whether a line with a number is of the process whose lines had none so far, on a terminal on
// which no message tells who joins (-q): the end of its call under way, or, where it has made
// others, a line of who is none of them.
bool Source::is_of_first(const Process& first, int64_t pid, std::string_view rest) const {
  if (pid == first.pid || trace_.began_in.contains(pid) || processes_.contains(pid)) return false;
  return first.begun ? rest.starts_with("<... ") : making_.empty() && trace_.began_in.size() > 1;
}

// "--- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED, si_pid=7, …} ---"
void Source::signal_came(Process& p, std::string_view message) {
  const auto says = [&](std::string_view what) { return message.find(what) != message.npos; };
  constexpr std::string_view kFrom = "si_pid=";
  Scan s(message.substr(std::min(message.find(kFrom), message.size())));
  int64_t from = 0;
  if (!s.take(kFrom) || !s.number(from)) return;
  if (says("CLD_EXITED") || says("CLD_KILLED") || says("CLD_DUMPED"))
    p.signals.ended.push_back(from);
  else if (says("SI_USER") || says("SI_TKILL") || says("SI_QUEUE"))
    p.signals.came.push_back(from);
}

// "+++ … +++": a process ended, or a thread of it took its place.
feign_status Source::message(int64_t pid, uint64_t time, std::string_view text) {
  Scan m(text);
  if (m.take("exited (status "))
    return bad("this is how ltrace tells that a process ended: want a trace of strace");
  if (m.take("superseded by execve in pid ")) {
    // The thread that called execve goes on under the process's id.
    int64_t caller = 0;
    if (m.number(caller) && processes_.contains(caller) && process(caller).begun) {
      Process& from = process(caller);
      Process& to = process(pid);
      (void)no_longer_under_way(from);
      if (const feign_status status = never_ends(to); status < 0) return status;
      goes_on_as(from, to);
      to.begun = true;
      to.call = std::move(from.call);
      to.call.took_over = true;
      if (to.call.place != nullptr) to.call.place->by = &to;
      from.begun = false;
    }
  } else if (processes_.contains(pid) || trace_.began_in.contains(pid)) {
    Process& p = process(pid);  // killed before its first call, if there is none yet
    ends_ = true;
    if (const feign_status status = never_ends(p); status < 0) return status;
    has_ended(p, time);
    Held& exit = queue_.add();
    exit.signals = std::exchange(p.signals, {});
    // Killed, it gave up nothing before. (Its last thread does, if it has several.)
    if (descriptors(p).use_count() == 1) (void)closes_locked(p, exit);
    descriptors(p).reset();
    feign_activity& a = exit.a;
    a.op = trace_.arguments.known("exit").call->op;
    a.stream = p.stream;
    a.start_ns = time - std::min(time, trace_.base);
    a.place = FEIGN_PLACE(number_, lines_->number());
    a.marks = FEIGN_NO_RESULT | FEIGN_INJECTED;
  }
  return FEIGN_OK;
}

// A line that ends where the call goes on; nothing if it only looks like one.
std::optional<feign_status> Source::cut_off(int64_t pid, uint64_t time, std::string_view rest) {
  constexpr std::string_view kChanged = "<pid changed to ", kOver = "+++ superseded by execve in ";
  for (const std::string_view end : {kUnfinished, kDetached})
    if (rest.ends_with(end)) {
      const std::string_view begun = rest.substr(0, rest.size() - end.size());
      const size_t name = name_of_call(begun).size();
      if (name == 0 || !begun.substr(name).starts_with('('))
        return stray(rest, "want CALL(… <unfinished ...>");
      return unfinished(pid, time, begun);
    }
  // With -k, the stack of another process's last call may be written over that end.
  if (const size_t at = rest.find(kFrame, rest.rfind('"') + 1);
      rest.back() == ']' && at != rest.npos && rest.find(" [0x", at) != rest.npos &&
      end_of_call(rest) == rest.npos)
    return unfinished(pid, time, rest.substr(0, at));
  // strace before 4.20 may not end the line of the first thread's call when another one calls
  // execve.
  if (size_t at = rest.rfind(kOver); at != rest.npos && end_of_call(rest) == rest.npos) {
    const std::string_view begun = rest.substr(0, at);
    const size_t number = begun.rfind(std::to_string(pid) + " ");  // none with -ff
    if (begun.find(',', number) == begun.npos) at = std::min(at, number);
    at = std::min(at, begun.rfind("[pid"));
    const feign_status status = unfinished(pid, time, rest.substr(0, at));
    return status < 0 ? status : line(rest.substr(at));
  }
  // A thread that is not the first calls execve and goes on under the process's id.
  if (const size_t at = rest.rfind(kChanged); at != rest.npos) {
    int64_t now = 0;
    Scan number(rest.substr(at + kChanged.size()));
    if (number.number(now)) {
      goes_on_as(process(pid), process(now));
      const feign_status status = unfinished(now, time, rest.substr(0, at));
      process(now).call.took_over = true;
      return status;
    }
  }
  return {};
}

// What a program writes to the terminal that it is traced on breaks the line of the call under way.
// `text` is the next line after such a beginning: more of what was written, or the call's end.
feign_status Source::goes_on(std::string_view text) {
  constexpr size_t kMost = size_t{1} << 20;
  Broken& b = *broken_;
  size_t close = end_of_call(text);
  if (close != text.npos && b.text.starts_with("write(") && !ends_write(b.text, text.substr(close)))
    close = text.npos;
  for (const std::string_view end : {kUnfinished, kDetached})
    if (text.ends_with(end)) {
      const std::unique_ptr<Broken> begun = std::move(broken_);
      return unfinished(begun->pid, begun->time, begun->text);
    }
  Scan s(text);
  int64_t pid;
  uint64_t time;
  // A line of its own: what was begun has no end.
  Prefix other = prefix_;  // what is written may look like a time
  const bool own = other.read(s, pid, time) &&
                   (is_message(s.rest()) || s.take("<... ") ||
                    (close != text.npos && trace_.arguments.is_known(name_of_call(s.rest())) &&
                     s.rest().substr(name_of_call(s.rest()).size()).starts_with('(')));
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
  const bool last = !lines_->complete() && begun->line == lines_->number();
  if (begun->left_out == nullptr || last) return bad(begun->why, begun->line);
  trace_.host->left_out(trace_.host, process(begun->pid).stream, begun->left_out->name,
                        "did not return", 0, begun->left_out->passed);
  return FEIGN_OK;
}

// What its calls make: processes, names, and sockets' addresses and connections.
void Source::look_ahead(Family& family) {
  constexpr std::string_view kAny[] = {"fork(",    "clone",  "bind(", "accept",
                                       "connect(", "O_EXCL", "mkdir"};
  std::string_view text;
  bool accepts = false;
  for (auto got = lines_->next(text); got && *got; got = lines_->next(text)) {
    if (std::none_of(std::begin(kAny), std::end(kAny),
                     [&](std::string_view name) { return text.find(name) != text.npos; }))
      continue;
    Scan s(text);
    int64_t pid, told = -1;
    uint64_t time;
    if (!prefix_.read(s, pid, time)) continue;
    const std::string_view rest = s.rest();
    const Known k = trace_.arguments.known(name_of_call(rest));
    const size_t end = end_of_call(rest);
    if (k.call == nullptr || end == rest.npos) continue;
    Scan result(result_of(rest.substr(end)));
    (void)result.number(told);
    switch (const Effect e = k.call->effect) {
      case Effect::kBind:
      case Effect::kConnect:
        if (told >= 0 || rest.find(" EINPROGRESS", end) != rest.npos)
          family.messages().will_come(e, socket_of(e, rest, trace_.host).address);
        break;
      case Effect::kAccept:
        if (told >= 0 && !std::exchange(accepts, true)) family.messages().one_will_accept();
        break;
      case Effect::kOpen:
      case Effect::kMkdir: {
        const size_t quote = rest.find('"');
        Scan name(quote != rest.npos ? rest.substr(quote) : "");
        if (e == Effect::kOpen && rest.find("O_EXCL") == rest.npos) break;
        if (const char* const start = name.p + 1; told >= 0 && !name.done() && name.skip_string())
          family.will_make(
              trace_.arguments.text_of({start, static_cast<size_t>(name.p - start) - 1}));
        break;
      }
      default:
        if (makes_process(e) && told > 0) family.will_make_process(told);
    }
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
    auto got = next_line(text);
    if (!got || !*got) break;
    while (!text.empty() && (text.back() == '\r' || text.back() == ' ')) text.remove_suffix(1);
    Scan s(text);
    int64_t pid;
    uint64_t time, duration = 0;
    if (text.empty() || !prefix_.read(s, pid, time)) continue;
    prefix_.at(time);
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
