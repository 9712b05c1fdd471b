// SPDX-License-Identifier: MIT
// One file of a trace: its lines become calls, those whose text is interrupted are put together
// again, and each keeps its place in the order (the comment in provider.cc).
#pragma once

#include <cstdint>
#include <iterator>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/input.h"
#include "feign.h"
#include "providers/overlap.h"
#include "providers/strace/arguments.h"
#include "providers/strace/overhead.h"
#include "providers/strace/prefix.h"
#include "providers/strace/text.h"

namespace feign::strace {

struct Process;
class Family;

// What a call says of a socket, or of a pipe that it opens once more, besides its arguments.
struct Socket {
  uint32_t handle = 0;   // of who binds or listens, or which is opened
  uint32_t address = 0;  // that it is bound or connected to: a path's last name, or a port
  bool peeks = false;    // what is received stays there
};
Socket socket_of(Effect effect, std::string_view call, const feign_host* host);

// Signals since the call before: which processes they were sent to, who sent those that came, and
// who had ended by then.
struct Signals {
  std::vector<int64_t> sent, came, ended;
};

// A call that holds its place, or that is complete and waits behind one that does.
//
// queue_.add() gives it the last place. There it stays, complete at once or when its end is shown,
// until it is given out (fill() says which comes next, front or one of its rivals) or turns out to
// be none: then it is `gone`, and leaves when all before it have. Others point to it for so long:
// Begun::place and Process::ends, maker and doubtful of the process whose call it is (`by`), and
// calls that ended while one under way may have taken effect before them: that one has them as
// `early`, each of which counts it in `open`, and as `rivals` once it has ended. forget() takes all
// but the last of these away, and rivals have later places. Whoever gives up a place at once
// (pop_back()), or has it moved into another one, sees to that itself: the node is another call's
// next.
struct Held {
  void clear() {  // but for its memory
    std::vector<uint64_t> old_values = std::move(values);
    std::vector<Held*> old_rivals = std::move(rivals);
    *this = Held{};
    old_values.clear();
    old_rivals.clear();
    values = std::move(old_values);
    rivals = std::move(old_rivals);
  }

  feign_activity a{};
  std::vector<uint64_t> values;
  bool complete = true;
  bool from_start = false;  // it took effect when it started
  Claims claims;
  Shown shown;
  Socket socket;              // in files whose times do not tell the order,
  Signals signals;            // … too
  uint32_t open = 0;          // calls under way that may have taken effect before it
  std::vector<Held*> rivals;  // those that have ended since
  bool likely = false;        // its result is right, unless its thread was ended in it
  bool gone = false;          // it took effect before one that ended before it
  uint64_t names = 0;         // names_of(claims)
  bool order = false;         // it may matter which of it and others came first
  uint64_t until = 0;         // when it ended at the latest, if its times do not tell
  Process* child = nullptr;   // of a place that is kept for the call that made it
  Process* by = nullptr;      // whose call is not over, or has a doubtful result
  uint64_t ended() const { return until != 0 ? until : a.start_ns + a.duration_ns; }
};

// What is held, in the order of places, which are used again.
class Queue {
 public:
  bool empty() const { return held_.empty(); }
  size_t size() const { return held_.size(); }
  Held& front() { return held_.front(); }
  const Held& front() const { return held_.front(); }
  Held& back() { return held_.back(); }
  auto begin() { return held_.begin(); }
  auto end() { return held_.end(); }
  Held& add() {
    if (spare_.empty())
      spare_.emplace_back();
    else
      spare_.front().clear();
    held_.splice(held_.end(), spare_, spare_.begin());
    return held_.back();
  }
  void pop_front() { spare_.splice(spare_.begin(), held_, held_.begin()); }
  // What is no longer the last one; searched for from there.
  void to_back(const Held& h) {
    auto at = held_.end();
    while (&*--at != &h) {
    }
    held_.splice(held_.end(), held_, at);
  }
  // Puts the first one behind another one; what it passes, in order.
  std::vector<const Held*> first_behind(const Held& there) {
    std::vector<const Held*> passed;
    auto at = std::next(held_.begin());
    do passed.push_back(&*at);
    while (&*at++ != &there);
    held_.splice(at, held_, held_.begin());
    return passed;
  }
  void pop_back() { spare_.splice(spare_.begin(), held_, std::prev(held_.end())); }

 private:
  std::list<Held> held_, spare_;
};

// A call of which the text has shown the beginning only.
struct Begun {
  std::string text;  // "name(arguments so far"
  uint64_t start = 0, line = 0;
  Held* place = nullptr;     // that it holds, if it does
  uint64_t opens = 0;        // of the trace, by then
  bool took_over = false;    // execve of a thread that became the process: it was successful
  bool passed = false;       // its place was not waited for: it counts without its end
  int64_t child = 0;         // who began while it was the only one that makes processes
  bool surely = false;       // … and nobody else can be
  Claims about;              // the names that it is about
  std::vector<Held*> early;  // calls on them that ended since: `open` counts this one
};

struct Process {
  uint32_t stream = 0;
  uint64_t last_ns = UINT64_MAX;  // how long its last call took
  // The tracer's own time since the last call that became an activity: in the pauses before calls,
  // and in calls whose time is part of the pause.
  uint64_t overhead = 0;
  uint64_t ended = 0;  // that call
  uint64_t clock = 0;  // when the last one that was shown ended, or began
  int64_t pid = 0;
  uint32_t cwd = 0;                       // for names that calls are after; 0: not known
  bool moved = false;                     // it is not where it began
  uint32_t apart = 0;                     // what it gave up to share: CLONE_FILES, CLONE_FS
  bool narrow = false;                    // a program of 32 bits
  const Descriptors* ends_all = nullptr;  // who have these: its call under way
  bool dying = false;  // its last call ended while another's that ends all threads was under way
  std::shared_ptr<Descriptors>* descriptors = nullptr;  // the trace's
  bool begun = false;
  Begun call;
  Held* ends = nullptr;   // its exit, while it may still have locks
  bool seen = false;      // in a line of its own
  Held* maker = nullptr;  // the place of the call that made it, if that is shown later
  // Its last call, if its result is likely another stop's, until its next line tells.
  Held* doubtful = nullptr;
  Signals signals;  // that belong to its next call
};

// What the files of a trace share.
struct Trace {
  const feign_host* host;
  const bool keep_going;
  Arguments arguments{host};
  uint32_t cwd = 0;       // where the program was when it began
  bool cwd_told = false;  // … by the trace or an option
  Names there;
  Account shared;
  std::unordered_set<uint32_t> locked;             // files, ever
  std::unordered_map<int64_t, uint32_t> began_in;  // by process: its maker's directory
  std::unordered_map<int64_t, std::shared_ptr<Descriptors>> descriptors;  // … those that it has
  uint64_t opens = 0;                                                     // so far
  TracerTime tracer;
  bool estimated = false;   // … from the trace
  bool numbered = false;    // its lines have their numbers before them
  bool several = false;     // files
  bool other_pids = false;  // some processes may be in a PID namespace of their own
  bool guess_said = false;  // … of which the order is a guess
  // What tells, when all is read, that calls are missing.
  size_t streams = 0;                 // processes and threads that have lines
  bool threads = false;               // some were made, and lines do not tell whose they are
  bool known = false;                 // some call is
  std::string unknown;                // the name of the first one that is not
  bool succeeded = false;             // some call has
  const LeftOutCall* asks = nullptr;  // for what lines do not show
  uint64_t failed = 0;                // calls before it
  // When the trace began: taken off as lines are read if there is one file, else as they are
  // merged.
  uint64_t base = 0;
  bool first = true;  // no line has told it yet

  // A close is that only if somebody has locked the file.
  bool is_about_lock(const Lock& l) const {
    return l.what != Lock::kNone && (l.what != Lock::kClosed || locked.contains(l.file));
  }
};

// A call lasted at most so much longer than its times say (Source::ended_by).
constexpr uint64_t kLate = 10'000'000;

class Source {
 public:
  Source(Trace& trace, std::unique_ptr<Lines> lines, uint32_t number, int32_t rank, int64_t pid)
      : trace_(trace), lines_(std::move(lines)), number_(number), rank_(rank), prefix_(pid) {}

  void is_of_next_day() { prefix_.is_of_next_day(); }
  // Reads on until the front of the queue is complete, or the file is over.
  feign_status fill();
  bool empty() const { return next_ == nullptr; }
  void close() { lines_ = nullptr; }
  uint64_t pauses(uint64_t most_lines, TracerTime& out);
  void look_ahead(Family& family);
  // When the front took effect, by the clock of the trace.
  uint64_t when() const;
  // When the front was over for sure: strace tells when it saw a call begin, but counts how long it
  // took from when it has written that, which on a busy machine is some time later. What is known
  // is when the next line began. Reads on until then.
  feign_status ended_by(uint64_t& time);
  Held& front() { return *next_; }
  const Held& front() const { return *next_; }
  void pop();
  uint32_t number() const { return number_; }
  int64_t pid() const { return prefix_.pid(); }  // of lines that name none
  int32_t rank() const { return rank_; }
  bool is_dated() const { return prefix_.is_dated(); }
  bool is_exact() const { return prefix_.is_exact(); }
  const std::string& path() const { return lines_->path(); }

 private:
  Result<bool> next_line(std::string_view& text);
  feign_status read_line();
  feign_status line(std::string_view text);
  feign_status goes_on(std::string_view text);
  bool yields(const Held& refused);
  bool waits_for_others(const feign_activity& a) const;
  feign_status waited();
  feign_status gives_up();
  void never_returned();
  void gives_up_places();
  void settles(Process& p, std::string_view next);
  bool waits();
  feign_status unusual(std::string_view& text, std::string& memory);
  bool is_one_of_unordered() const { return trace_.several && !prefix_.is_exact(); }
  void signal_came(Process& p, std::string_view message);
  void check_clock(int64_t pid, uint64_t& time);
  feign_status requests(Held& first, int64_t accepted);
  size_t output_behind(std::string_view text) const;
  feign_status call(Process& p, uint64_t time, std::string_view text, uint64_t first_line,
                    Held* place);
  bool is_of_first(const Process& first, int64_t pid, std::string_view rest) const;
  feign_status message(int64_t pid, uint64_t time, std::string_view text);
  std::optional<feign_status> cut_off(int64_t pid, uint64_t time, std::string_view rest);
  feign_status unfinished(int64_t pid, uint64_t time, std::string_view text);
  feign_status resumed(int64_t pid, std::string_view text);
  bool is_rest_of_call(std::string_view text) const;
  feign_status bad(const std::string& what, uint64_t line = 0);
  void last_line_cut(const std::string& why);
  feign_status stray(std::string_view text, const char* want);
  void names(Process& p, const Call& call);
  bool has_lost(uint32_t said, uint32_t name) const;
  uint32_t where(Process& p);
  std::shared_ptr<Descriptors>& descriptors(Process& p);
  void goes_on_as(Process& caller, Process& first);
  Descriptor shows(Process& p, Held& h, Effect effect, uint64_t opens);
  bool makes(Process& p, Held& call, std::string_view text);
  void begins(Process& p);
  void inherits(Process& maker, int64_t child, bool shares);
  void nobody_made();
  void was_there_before(Held& place);
  void made_before(Process& child, Held& call);
  void overlaps(Process& p, Held& h, Effect effect, const Descriptor& own);
  void released(Held& h);
  void gives_up_locks(Process& p, Held& exit);
  bool closes_locked(Process& p, Held& exit);
  void has_ended(Process& p, uint64_t time);
  Process* ending(Process& thread);
  Known known(Process& p, std::string_view name);
  void ends_later(Process& thread);
  void forget(Held& h);
  void drop_gone();
  std::vector<Held*> no_longer_under_way(Process& p);
  feign_status never_ends(Process& p);
  feign_status ended(Process& p, std::string_view text);
  static constexpr int64_t kNothing = INT64_MIN;  // what told_ is after no result
  int64_t tells(std::string_view text, const Held* held);
  enum class Doubt { kNone, kMayBe, kCannotBe };
  Doubt doubt_of(const Process& p, const feign_activity& a, const Call& call, int64_t told) const;
  Process& process(int64_t pid);

  Trace& trace_;
  std::unique_ptr<Lines> lines_;
  uint32_t number_;
  int32_t rank_;
  Prefix prefix_;
  Terminal terminal_;
  Queue queue_;
  Held* next_ = nullptr;             // of the queue
  std::vector<Process*> under_way_;  // in calls about names
  std::vector<Process*> making_;     // … that make processes
  // … that end all who have these, of each one
  std::unordered_map<const Descriptors*, Process*> ending_;
  std::vector<Held*> releases_;  // of locks, that hold their places
  size_t doubtful_ = 0;          // processes with such a call
  int64_t told_ = kNothing;      // the result that strace was told of last
  std::unordered_map<int64_t, std::unique_ptr<Process>> processes_;
  int64_t last_pid_ = -1;
  Process* last_process_ = nullptr;
  struct Broken {  // a call's line that ends before the call does
    std::string text, why;
    const LeftOutCall* left_out = nullptr;  // if it is none that becomes an activity
    int64_t pid = 0;
    uint64_t time = 0, line = 0, lost = 0;
  };
  std::unique_ptr<Broken> broken_;
  Process* unfinished_ = nullptr;  // whose call the text showed the beginning of last
  std::set<int64_t> unborn_;       // whose first line is to come, if some have numbers of their own
  uint32_t jumps_ = 0;             // of the clock
  bool over_ = false, table_ = false, any_call_ = false, coloured_ = false;
  bool timed_ = false;  // some call has its duration
  bool fails_ = false;  // … or has failed
  bool ends_ = true;    // lines tell when processes have ended, as far as is known
};

}  // namespace feign::strace
