// SPDX-License-Identifier: MIT
// Several files (strace -ff) without exact times: who made whom, who waited for whom and who told
// whom something (messages.h) tells which of their calls came first; of threads, who was joined.
// (Who woke whom at a futex would say more of them, but most of what they tell each other shows in
// no call: that made as much worse as better.)
#pragma once

#include <linux/futex.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "feign.h"
#include "providers/strace/messages.h"
#include "providers/strace/source.h"
#include "trace/effects.h"

namespace feign::strace {

class Family {
 public:
  // What the files tell when they are looked through: calls in them make that process, or a name
  // that was not there, as it is given.
  void will_make_process(int64_t process) { made_.insert(process); }
  void will_make(uint32_t name) { ++names_[name]; }
  Messages& messages() { return messages_; }
  bool tells_nothing() const {
    return made_.empty() && names_.empty() && !messages_.will_any_come();
  }

  // One file a process, which begins at once or when a call makes it.
  void expects(int64_t process) {
    members_[process];
    if (!is_made(process)) oldest_ = std::min(oldest_, process);
  }
  bool is_made(int64_t process) const { return made_.contains(process); }
  void begins(Source& process) {
    Member& m = members_[process.pid()];
    m.source = &process;
    if (!m.ends) m.ends = std::make_shared<Messages::Ends>();
  }
  // Processes are numbered as they are made, and from the first numbers on again some day.
  int64_t turn_of(int64_t process) const {
    constexpr int64_t kAll = int64_t{1} << 32;
    return process < oldest_ && process < kAll ? process + kAll : process;
  }

  // Its next call is the front: those before it have been made.
  void comes_to(Source& process) {
    Member& m = members_[process.pid()];
    const Signals& signals = process.front().signals;
    for (const int64_t to : signals.sent) ++signals_[members_.contains(to) ? to : 0];
    for (const int64_t from : signals.came) m.signals += members_.contains(from);
    m.ended.insert(signals.ended.begin(), signals.ended.end());
  }

  // Whether the next call of it comes after one of another process that is still to come; the
  // process whose turn it is to be made is `next_turn`. Who waits for a message, for its turn, for
  // a signal or a name, or as a lock is not what it was found to be, goes first where all wait: not
  // all is seen.
  enum class Wait : uint8_t { kNone, kMessage, kProcess, kLast };
  Wait waits(Source& process, const Account& shared, const Names& there, int64_t next_turn) {
    Member& m = members_[process.pid()];
    if (m.runs_in != 0 && !is_over(m.runs_in) && !members_[m.runs_in].left) return Wait::kProcess;
    if (ends_group(process.front()) && others_go_on(process, m.group)) return Wait::kProcess;
    const int64_t of = waited_for(process.front());
    if (of > 0 && of != process.pid() && !is_over(of)) return Wait::kProcess;
    const feign_activity& a = process.front().a;
    if (makes_process(posix_calls()[a.op].effect) && a.result > 0 && next_turn < turn_of(a.result))
      return Wait::kMessage;
    std::erase_if(m.ended, [&](int64_t child) { return is_over(child); });
    if (!m.ended.empty() || m.signals > sent_to(process.pid(), m)) return Wait::kMessage;
    const bool fits = shared.fits(process.front().shown.lock) &&
                      !finds_what_is_made_later(process.front().claims, there);
    return fits && !messages_.is_early(process.front(), *m.ends) ? Wait::kNone : Wait::kMessage;
  }

  // The next call of it comes now. Who is made by it, 0 if nobody is.
  int64_t goes_on(Source& process) {
    const feign_activity& a = process.front().a;
    Member& m = members_[process.pid()];
    m.runs_in = 0;
    const Effect e = posix_calls()[a.op].effect;
    if (e == Effect::kExec && a.result == 0) m.left = true;
    messages_.note(process.front(), *m.ends);
    for (const Claim& c : process.front().claims)
      if (c.before == There::kNo && c.after == There::kYes)
        if (const auto left = names_.find(as_given(c)); left != names_.end() && left->second != 0)
          --left->second;
    if (a.result <= 0 || !makes_process(e) || !members_.contains(a.result)) return 0;
    messages_.are_shared(*m.ends);
    members_[a.result].ends = (a.flags & static_cast<uint32_t>(CLONE_FILES)) != 0
                                  ? m.ends
                                  : std::make_shared<Messages::Ends>(*m.ends);
    if ((a.flags & static_cast<uint32_t>(CLONE_THREAD)) != 0) {
      if (m.group == 0) joins(m, process.pid());
      joins(members_[a.result], m.group);
    }
    if (e == Effect::kVfork || (a.flags & static_cast<uint32_t>(CLONE_VFORK)) != 0)
      m.runs_in = a.result;
    return a.result;
  }

 private:
  struct Member {
    Source* source = nullptr;
    std::shared_ptr<Messages::Ends> ends;
    bool left = false;                  // the memory of its maker: it called exec
    int64_t runs_in = 0;                // the process that has its memory until then (vfork)
    int64_t group = 0;                  // it is a thread of, if there are several
    size_t signals = 0;                 // of others of the trace, that came by its next call
    std::unordered_set<int64_t> ended;  // who had ended by then, as it was told
  };
  // Signals to it, to its process, and to groups of processes.
  size_t sent_to(int64_t process, const Member& m) const {
    const auto sent = [&](int64_t to) {
      const auto at = signals_.find(to);
      return at != signals_.end() ? at->second : 0;
    };
    return sent(process) + (m.group != 0 && m.group != process ? sent(m.group) : 0) + sent(0);
  }
  void joins(Member& m, int64_t group) {
    m.group = group;
    groups_[group].push_back(&m);
  }
  static bool ends_group(const Held& h) {
    return posix_calls()[h.a.op].effect == Effect::kExitGroup && (h.a.marks & FEIGN_INJECTED) == 0;
  }
  // exit_group() ends the others: what they have called was before.
  bool others_go_on(const Source& process, int64_t group) const {
    const auto threads = groups_.find(group);
    return threads != groups_.end() &&
           std::any_of(threads->second.begin(), threads->second.end(), [&](const Member* m) {
             if (m->group != group || m->source == &process || m->source == nullptr ||
                 m->source->empty())
               return false;
             const Effect next = posix_calls()[m->source->front().a.op].effect;
             return next != Effect::kExit && next != Effect::kExitGroup;
           });
  }
  static uint32_t as_given(const Claim& c) { return c.text != 0 ? c.text : c.name; }
  // Whether a call finds a name that is still to be made, or something in a directory that is
  // empty.
  bool finds_what_is_made_later(Claims claims, const Names& there) const {
    const auto later = [&](const Claim& c) {
      if (c.holds == Claim::kSomething) return true;
      const auto left = names_.find(as_given(c));
      return c.before == There::kYes && left != names_.end() && left->second != 0;
    };
    if (std::none_of(claims.begin(), claims.end(), later)) return false;
    there.look_up(claims);
    return std::any_of(claims.begin(), claims.end(), [&](const Claim& c) {
      return !c.finds(c.held) || (c.was != There::kYes && c.holds != Claim::kSomething && later(c));
    });
  }
  // Who is over when the call ends, 0 if it tells of nobody.
  static int64_t waited_for(const Held& h) {
    const Effect e = posix_calls()[h.a.op].effect;
    const int64_t value = h.values.empty() ? 0 : static_cast<int64_t>(h.values[0]);
    if (e == Effect::kWait) return h.a.result == 0 ? value : h.a.result;  // waitid, wait4
    if (e != Effect::kFutex || (h.a.result != 0 && h.a.result != -EAGAIN)) return 0;
    // A thread's number, which the kernel clears when that ends: pthread_join().
    const uint32_t what = h.a.flags & ~uint32_t{FUTEX_CLOCK_REALTIME};
    return what == FUTEX_WAIT || what == FUTEX_WAIT_BITSET ? value : 0;
  }
  bool is_over(int64_t pid) const {
    const auto at = members_.find(pid);
    return at == members_.end() || (at->second.source != nullptr && at->second.source->empty());
  }

  Messages messages_;
  std::unordered_map<int64_t, size_t> signals_;   // sent by now; 0: to whoever it may be
  std::unordered_set<int64_t> made_;              // by calls that some file has
  std::unordered_map<uint32_t, uint32_t> names_;  // that are to be made, how often
  int64_t oldest_ = INT64_MAX;                    // of who is not made
  std::unordered_map<int64_t, Member> members_;   // stay where they are
  std::unordered_map<int64_t, std::vector<const Member*>> groups_;
};

}  // namespace feign::strace
