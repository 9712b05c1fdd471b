// SPDX-License-Identifier: MIT
// What lines tell of calls: those that are complete, those that are under way in between, and which
// of those that overlap came first.
#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "providers/strace/source.h"

namespace feign::strace {
namespace {

// Of calls on one name that overlap, so many are compared: a trace may have any number.
constexpr size_t kMaxRivals = 256;

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
  if (text.find("F_SETLK") != text.npos || text.find("F_OFD_SETLK") != text.npos) return true;
  const uint32_t command = lock_command(static_cast<uint32_t>(raw_number(text, 1)));
  return command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK ||
         command == F_OFD_SETLKW;
}
bool seeks_from_somewhere(std::string_view text) {
  const int64_t whence = raw_number(text, 2);
  return text.find("SEEK_END") != text.npos || text.find("SEEK_CUR") != text.npos ||
         whence == SEEK_END || whence == SEEK_CUR;
}
bool says_truncate(const Call& call, std::string_view text) {
  if (text.find("O_TRUNC") != text.npos) return true;
  const auto* const flags = std::find_if(call.args, call.args + call.arg_count,
                                         [](const CallArg& a) { return a.role == Role::kFlags; });
  const int64_t number = raw_number(text, static_cast<size_t>(flags - call.args));
  return number >= 0 && (number & O_TRUNC) != 0;
}
bool says_wake(std::string_view text) {
  if (text.find("_WAKE") != text.npos || text.find("REQUEUE") != text.npos) return true;
  const int64_t operation = raw_number(text, 1);
  return operation >= 0 && futex_counts_from_start(static_cast<uint32_t>(operation));
}

// Whether something in brackets is behind the result, as it is of all that failed: "(No such
// file)".
bool says_why(std::string_view text) {
  const size_t end = text.ends_with('>') ? text.rfind('<') : text.size() + 1;
  return end != text.npos && end > 1 && text[end - 2] == ')';
}

// Calls that take effect when they start: those, and by their arguments those that give up a lock
// or wake somebody. `text` is the call with its arguments, as far as they are known; `table`, its
// process's descriptors.
bool at_start(const Call& call, std::string_view text, const Descriptors& table) {
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
      const char* const start = s.p;
      int64_t fd = 0;
      while (is_digit(s.peek())) ++s.p;
      if (s.take('<')) return s.peek() != '/';
      s.p = start;
      return s.number(fd) && table.at(FEIGN_FD(fd)).pipe;
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

}  // namespace

Socket socket_of(Effect effect, std::string_view call, const feign_host* host) {
  constexpr std::string_view kAddresses[] = {"sun_path=", "sin_port=", "sin6_port="};
  constexpr std::string_view kOwn[] = {"\"/dev/fd/", "\"/proc/self/fd/"};
  Socket socket;
  if (effect == Effect::kOpen)
    for (const std::string_view own : kOwn)
      if (const size_t at = call.find(own); at != call.npos) {
        Scan number(call.substr(at + own.size()));
        if (int64_t fd = 0; number.number(fd)) socket.handle = FEIGN_FD(fd);
      }
  if (effect == Effect::kReceive) socket.peeks = call.find("MSG_PEEK") != call.npos;
  if (effect != Effect::kBind && effect != Effect::kConnect && effect != Effect::kAccept)
    return socket;
  if (const int64_t fd = raw_number(call, 0); fd >= 0) socket.handle = FEIGN_FD(fd);
  if (effect == Effect::kAccept) return socket;
  for (const std::string_view kind : kAddresses)
    if (const size_t at = call.find(kind); at != call.npos) {
      std::string_view address = call.substr(at + kind.size());
      address = address.substr(0, address.find_first_of(",}"));
      if (kind == kAddresses[0] && address.find('/') != address.npos)
        address.remove_prefix(address.rfind('/') + 1);  // from wherever it is
      else if (address.starts_with('"'))
        address.remove_prefix(1);
      socket.address = host->intern(host, address.data(), address.size());
    }
  return socket;
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
  p.call.took_over = p.call.passed = false;
  p.call.child = 0;
  p.call.surely = false;
  told_ = kNothing;
  const Known k = known(p, name_of_call(text));
  if (k.call == nullptr) return FEIGN_OK;
  const Effect e = k.call->effect;
  const bool ends_all = e == Effect::kExitGroup || e == Effect::kExec;
  if (const auto& all = descriptors(p); ends_all && all.use_count() > 1)
    if (ending_.try_emplace(all.get(), &p).second) p.ends_all = all.get();
  if (e == Effect::kExit || e == Effect::kExitGroup || at_start(*k.call, text, *descriptors(p))) {
    Held& h = queue_.add();
    h.complete = false;
    h.a = feign_activity{};
    h.a.op = k.call->op;
    h.a.start_ns = time - std::min(time, trace_.base);
    h.a.stream = p.stream;
    h.a.place = FEIGN_PLACE(number_, p.call.line);
    h.by = &p;
    p.call.place = &h;
    if (makes_process(e)) making_.push_back(&p);
    if (!ending_.empty()) ends_later(p);
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
    const uint32_t said = trace_.arguments.hint(static_cast<int32_t>(fd),
                                                {start, static_cast<size_t>(s.p - start) - 1});
    const uint32_t known = fd != AT_FDCWD ? descriptors(p)->at(FEIGN_FD(fd)).file : 0;
    return has_lost(said, known) ? known : said;
  };
  const bool closes = call.effect == Effect::kClose;
  const bool locks =
      closes || call.effect == Effect::kFlock || (call.effect == Effect::kFcntl && says_lock(text));
  const bool reads = call.effect == Effect::kRead;
  const bool finds = call.effect == Effect::kSeek && seeks_from_somewhere(text);
  int64_t fd = AT_FDCWD;
  const bool moves_bytes = call.effect == Effect::kWrite || call.effect == Effect::kPread ||
                           call.effect == Effect::kPwrite || call.effect == Effect::kPread2 ||
                           call.effect == Effect::kPwrite2 || call.effect == Effect::kCopy ||
                           call.effect == Effect::kFtruncate;
  // Of a descriptor: newfstatat(3, "", …
  const bool stats =
      call.effect == Effect::kFstat ||
      (call.effect == Effect::kStatat && text.find(", \"\",") != text.npos && is_digit(s.peek()));
  if (reads || locks || finds || moves_bytes || stats || call.effect == Effect::kList) {
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
  if (p.ends_all != nullptr) ending_.erase(std::exchange(p.ends_all, nullptr));
  if (p.call.about[0].name == 0) return {};
  p.call.about = {};
  std::erase(under_way_, &p);
  for (Held* h : p.call.early) --h->open;
  return std::exchange(p.call.early, {});
}

// The call of `p` that was under way, if one was, shows no end: its process is over, or became
// another. It may have made a process all the same. Where it holds a place, that is all there is.
feign_status Source::never_ends(Process& p) {
  if (p.begun && p.call.child != 0)
    return ended(p, p.call.text + ") = " + std::to_string(p.call.child));
  (void)no_longer_under_way(p);
  if (!p.begun || p.call.passed || p.call.place == nullptr) return FEIGN_OK;
  p.begun = false;
  p.call.place->complete = true;
  p.call.place->a.marks |= FEIGN_NO_RESULT;
  return FEIGN_OK;
}

// The call of `p` that was under way has ended.
feign_status Source::ended(Process& p, std::string_view text) {
  p.begun = false;
  const size_t before = queue_.size();
  const std::vector<Held*> early = no_longer_under_way(p);
  if (p.call.passed) {  // its exit
    descriptors(p).reset();
    return FEIGN_OK;
  }
  if (const feign_status s = call(p, p.call.start, text, p.call.line, p.call.place); s < 0)
    return s;
  if (queue_.size() == before + 1)
    for (Held* const h : early) h->rivals.push_back(&queue_.back());
  if (!ending_.empty() && queue_.size() > before) ends_later(p);
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
  } else if (p.call.child != 0 && rest.ends_with("= ?")) {
    return never_ends(p);
  } else {
    whole += rest;
  }
  return ended(p, whole);
}

// How much of what others write to the terminal, in calls that are under way, ends the line, which
// then ended with a line of theirs.
size_t Source::output_behind(std::string_view text) const {
  size_t longest = 0;
  for (const auto& [pid, p] : processes_) {
    const std::string_view write = p->call.text;
    if (!p->begun || !write.starts_with("write(")) continue;
    const std::string_view output = first_of_write(write);
    if (output.size() <= longest || !text.ends_with(output)) continue;
    const auto end = static_cast<size_t>(output.data() + output.size() - write.data());
    if (write.substr(end).starts_with("\\n")) longest = output.size();
  }
  return longest;
}

feign_status Source::call(Process& p, uint64_t time, std::string_view text, uint64_t first_line,
                          Held* place) {
  const std::string_view name = name_of_call(text);
  Scan s(text);
  s.p += name.size();
  if (name.empty() || !s.take('(')) return stray(text, "want CALL(…) = RESULT");
  any_call_ = true;

  const feign_host* host = trace_.host;
  const Known k = known(p, name);
  trace_.known |= !k.unknown;
  if (k.unknown && trace_.unknown.empty()) trace_.unknown = name;
  uint64_t duration = 0;
  const bool timed = duration_of(text, duration);
  timed_ |= timed;
  if (const size_t end = fails_ || !says_why(text) ? text.npos : end_of_call(text);
      end != text.npos && result_of(text.substr(end)) == "-1") {
    fails_ = true;
    nobody_made();
  }
  if (!trace_.succeeded) {
    const size_t end = end_of_call(text);
    const std::string_view result = end != text.npos ? result_of(text.substr(end)) : "";
    trace_.succeeded = !result.empty() && is_digit(result[0]);
    trace_.failed += result == "-1";
  }
  // Its result may be cut short, too: -1 of -1 ENOENT.
  const bool cut = timed_ && !timed && !lines_->complete() && !text.ends_with("= ?");
  // The line may end before the call does: goes_on().
  const auto breaks = [&](std::string why) {
    if (place != nullptr || first_line != lines_->number()) return bad(why, first_line);
    broken_ = std::make_unique<Broken>();
    broken_->text = text.substr(0, text.size() - output_behind(text));
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
    size_t end = end_of_call(text);
    if (end != text.npos && name == "write" && !ends_write(text, text.substr(end))) end = text.npos;
    if (k.call->effect == Effect::kWrite && place == nullptr && !cut && end != text.npos &&
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
      return end == text.npos ? breaks(std::move(why)) : bad(why, cut ? 0 : first_line);
    }
  }

  if (first_line == lines_->number()) told_ = kNothing;  // strace saw it begin just before
  const int64_t told = std::exchange(told_, tells(text, held));
  p.clock = std::max(p.clock, time + duration);
  const uint64_t quicker = std::min(duration, std::exchange(p.last_ns, duration));
  p.overhead += trace_.tracer.of(quicker);
  if (held == nullptr) {
    if (k.left_out->asks && text.rfind(") = -") == text.npos) trace_.asks = k.left_out;
    // The shortest calls take next to nothing without a tracer.
    if (k.left_out->passed != FEIGN_WAITED && trace_.estimated)
      p.overhead += std::min(quicker, trace_.tracer.of(quicker));
    if (k.left_out->why == std::string_view("signals") && is_one_of_unordered() &&
        result_of(text.substr(end_of_call(text))) == "0")
      for (const size_t argument : {1, 0})  // tgkill(7, 8, …, kill(8, …
        if (const int64_t to = raw_number(text, argument); to != -1 && (argument == 0 || to > 0)) {
          p.signals.sent.push_back(to);
          break;
        }
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
  h.from_start = at_start(*k.call, text, *descriptors(p));
  // Before 4.8 mmap2's offset is printed as the kernel is given it, in pages of 4 KiB.
  if (k.call->effect == Effect::kMap && name == "mmap2" && h.a.offset % 4096 != 0)
    h.a.offset *= 4096;
  if (k.call->effect == Effect::kFcntl) h.a.flags = lock_command(h.a.flags);
  const Effect e = k.call->effect;
  if (is_one_of_unordered()) h.socket = socket_of(e, text, host);
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
  h.signals = std::exchange(p.signals, {});
  if (e == Effect::kClone || e == Effect::kUnshare || e == Effect::kSetns)
    trace_.other_pids |= h.a.result >= 0 && (h.a.flags & CLONE_NEWPID) != 0;
  if (e == Effect::kUnshare && h.a.result >= 0) {
    p.apart |= h.a.flags & (CLONE_FILES | CLONE_FS);
    if (h.a.flags & (CLONE_NEWNS | CLONE_NEWUSER)) p.apart |= CLONE_FS;  // unshare(2)
  }
  if (e == Effect::kCloseRange && h.a.result >= 0 && (h.a.flags & CLOSE_RANGE_UNSHARE) != 0)
    p.apart |= CLONE_FILES;
  p.dying = !ending_.empty() && ending(p) != nullptr;
  if (makes_process(e) && h.a.result > 0 && makes(p, h, text)) return FEIGN_OK;  // no doubt of that
  if (const Doubt doubt = doubt_of(p, h.a, *k.call, told); doubt != Doubt::kNone) {
    h.complete = false;
    h.likely = doubt == Doubt::kMayBe;
    h.by = &p;
    p.doubtful = &h;
    ++doubtful_;
  }
  return FEIGN_OK;
}

// What strace was told as a call ended: its result, or, if it was told nothing, the last one still.
int64_t Source::tells(std::string_view text, const Held* held) {
  if (held != nullptr) return held->a.marks & FEIGN_NO_RESULT ? told_ : held->a.result;
  const size_t end = end_of_call(text);
  int64_t result = kNothing;
  if (end == text.npos || !Scan(result_of(text.substr(end))).number(result)) return told_;
  return result >= 0 ? result : kNothing;
}

// What settles() is about: nothing is above 0 but success, 0 is opened by who had closed it, and no
// more is done than was asked for; what the stop before told, and the numbers of the calls that end
// others, are results of few. `told`: before it.
Source::Doubt Source::doubt_of(const Process& p, const feign_activity& a, const Call& call,
                               int64_t told) const {
  if (a.marks & FEIGN_NO_RESULT) return Doubt::kNone;
  if (call.zero && a.result >= 0) return a.result > 0 ? Doubt::kCannotBe : Doubt::kNone;
  const bool opens = call.effect == Effect::kOpen || call.effect == Effect::kCreat;
  const bool others = a.result == told || a.result == SYS_kill ||
                      (p.dying && a.result == SYS_exit_group) || (opens && a.result == 0);
  const bool more = !opens && a.result > 0 && static_cast<uint64_t>(a.result) > a.length;
  if (!others && !more) return Doubt::kNone;
  const uint32_t kind = trace_.host->op_info(trace_.host, a.op)->kind;
  if (more && (kind == FEIGN_KIND_READ || kind == FEIGN_KIND_WRITE)) return Doubt::kCannotBe;
  const bool made = kind == FEIGN_KIND_WRITE && a.result > 0;  // most likely
  return others && !made ? Doubt::kMayBe : Doubt::kNone;
}

// Whether what a descriptor is said to be is that file, which has lost its name since.
bool Source::has_lost(uint32_t said, uint32_t name) const {
  if (said == 0 || name == 0 || said == name) return false;
  const std::string_view text = trace_.host->text(trace_.host, said, nullptr);
  return is_gone(text) && text.substr(0, text.size() - kGone.size()) ==
                              trace_.host->text(trace_.host, name, nullptr);
}

// What a call tells besides names, and what it does to descriptors; what its own one is. `opens`:
// of the trace, when it took effect.
Descriptor Source::shows(Process& p, Held& h, Effect effect, uint64_t opens) {
  const feign_activity& a = h.a;
  Descriptors& table = *descriptors(p);
  const bool cwd = a.handle == 0 || a.handle == FEIGN_CWD;
  // (What is taken for it where nothing tells it is where the trace began.)
  const bool there = (a.marks & FEIGN_TOLD) == 0 && (where(p) != 0 || p.moved);
  Descriptor own =
      cwd ? Descriptor{a.file == 0 || there ? where(p) : a.file, nullptr} : table.at(a.handle);
  // Somebody else has opened another one there since a close began.
  const bool reused = own.open && own.open->number > opens;
  const bool same = a.file == own.file || (a.path == 0 && has_lost(a.file, own.file));
  if (reused || (!cwd && a.file != 0 && !same)) own = {a.file, nullptr};
  Descriptor opened;
  if ((effect == Effect::kOpen || effect == Effect::kCreat) && a.result >= 0) {
    opened.file = a.path2 != 0 ? a.path2 : trace_.there.whole(own.file, a.path, trace_.host);
    opened.open = std::make_shared<Description>(Description{++trace_.opens, a.flags});
  }
  if (p.ends != &h)
    h.shown =
        shown_by(effect, a, h.values, opened.open ? opened : own, table.process(), trace_.host);
  if (const uint32_t closed = closed_by(effect, a); closed != 0)
    h.shown.lock = lock_at_close(table.at(closed), table.process(), closed);
  if (trace_.several) {
    const bool shared = p.descriptors->use_count() > 1 && (p.apart & CLONE_FILES) == 0;
    h.shown.number = number_of(effect, a, h.values, table.process(), shared);
  }
  if (h.shown.lock.what == Lock::kGot) trace_.locked.insert(h.shown.lock.file);
  if (const Left left = left_by(effect, a); left.handle != 0 && !reused)
    table.set(left.handle, left.what == Left::kOwn ? own : opened);
  if ((effect == Effect::kPipe || effect == Effect::kSocketpair) && a.result >= 0)
    for (const uint64_t end : h.values) table.set(FEIGN_FD(end), {.pipe = true});
  if (effect == Effect::kCloseRange && (a.flags & CLOSE_RANGE_CLOEXEC) == 0 && a.result >= 0)
    table.close(a.offset, a.length);
  if (effect == Effect::kExit || effect == Effect::kExitGroup) p.descriptors->reset();
  if (cwd) own.file = a.file;
  return own;
}

// What a call that has ended says of its names, and who else may say something of them.
void Source::overlaps(Process& p, Held& h, Effect effect, const Descriptor& own) {
  feign_activity a = h.a;
  a.file = own.file;
  h.claims = claims(effect, a, trace_.host);
  const Lock& lock = h.shown.lock;
  if (trace_.is_about_lock(lock))
    h.claims[0] = {lock_name(lock.file), There::kUnknown, There::kYes};
  else if (h.shown.tail.on_bytes())
    h.claims[0].name = stream_name(own.file, a.handle);
  else if (h.shown.tail.cuts())
    h.claims[1].name = stream_name(h.shown.tail.file, 0);
  for (Held* release : releases_)
    if (about_lock(release->claims, h.claims)) release->rivals.push_back(&h);
  trace_.there.below(where(p), own.file, reader_of(own, static_cast<uint64_t>(p.pid), a.handle),
                     effect, h.claims, a, trace_.host);
  const auto tells = [&](const Claim& claim, const Claim& name) {
    return (claim.tells() || h.shown.tail.what != Tail::kNone) && claim.same(name);
  };
  for (Process* other : under_way_)
    if (h.open < kMaxRivals && any_two(h.claims, other->call.about, tells)) {
      other->call.early.push_back(&h);
      ++h.open;
    }
  p.cwd = trace_.there.moves(p.cwd, own.file, effect, h.a, trace_.host);
  p.moved |= effect == Effect::kChdir || effect == Effect::kFchdir || effect == Effect::kChroot;
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
  has_ended(p, prefix_.clock());  // in a damaged trace it may end twice
  if (!ends_ || releases_.size() >= kMaxRivals || !closes_locked(p, exit)) return;
  p.ends = &exit;
  ++exit.open;
  releases_.push_back(&exit);
}

// Whether it has files that somebody had locks of: the exit gives up what it has.
bool Source::closes_locked(Process& p, Held& exit) {
  if (trace_.locked.empty()) return false;
  const Descriptors& table = *descriptors(p);
  Lock closed{.what = Lock::kClosed, .process = table.process(), .last = true};
  size_t names = 0, ends = 0;
  table.for_each([&](const Descriptor& d, const auto& only_here) {
    if (!trace_.locked.contains(d.file)) return;
    const Claim lock = {lock_name(d.file), There::kUnknown, There::kYes};
    if (names < exit.claims.size() && !about_lock(exit.claims, {lock})) exit.claims[names++] = lock;
    if (ends < closed.ends.size() && only_here()) closed.ends[ends++] = d.open->number;
  });
  if (names != 0) exit.shown.lock = closed;
  return names != 0;
}

void Source::has_ended(Process& p, uint64_t time) {
  if (p.ends == nullptr) return;
  Held& exit = *std::exchange(p.ends, nullptr);
  --exit.open;
  exit.until = time - std::min(time, trace_.base);
  released(exit);
}

// Whose exit_group, or exec, is under way that ends this thread.
Process* Source::ending(Process& thread) {
  const auto at = ending_.find(descriptors(thread).get());
  return at != ending_.end() ? at->second : nullptr;
}

// Who says exit_group while another one's is under way ends itself alone. (Most have not called it:
// what strace shows is what the kernel told it of the other one's.)
Known Source::known(Process& p, std::string_view name) {
  const Known k = trace_.arguments.known(name);
  if (ending_.empty() || k.call == nullptr || k.call->effect != Effect::kExitGroup) return k;
  const Process* const first = ending(p);
  return first != nullptr && first->call.place != nullptr ? trace_.arguments.known("exit") : k;
}

// What a thread calls while another one's exit_group is under way comes before that.
void Source::ends_later(Process& thread) {
  const Process* const p = ending(thread);
  if (p == nullptr || p->call.place == nullptr || p->call.passed) return;
  p->call.place->rivals.clear();  // they are before it now
  queue_.to_back(*p->call.place);
}

// io_submit's array: each request that was accepted becomes an activity of its own.
feign_status Source::requests(Held& first, int64_t accepted) {
  constexpr std::string_view kHow = "aio_rw_flags=";
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
    if (const size_t p = one.find(kHow); p != std::string_view::npos) {
      const Call& same = posix_calls()[FEIGN_POSIX_PWRITEV2];
      const std::string_view how = one.substr(p + kHow.size());
      h.a.mode =
          static_cast<uint32_t>(trace_.arguments.flags_at(same.args[same.arg_count - 1], how));
    }
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
  } else if (count < accepted) {
    trace_.host->left_out(trace_.host, first.a.stream, "io_submit",
                          "some of its requests are not in the text (-s as many or more)", 0, 0);
  }
  return FEIGN_OK;
}

}  // namespace feign::strace
