// SPDX-License-Identifier: MIT
// Several files (strace -ff) without exact times: who made whom and who waited for whom tells which
// of their calls came first; of threads, who was joined. (Who woke whom at a futex would say more
// of them, but most of what they tell each other shows in no call: that made as much worse as
// better.)
#pragma once

#include <linux/futex.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "feign.h"
#include "providers/strace/source.h"
#include "trace/effects.h"

namespace feign::strace {

class Family {
 public:
  // One file a process; `made`: those that a call in the trace makes.
  void add(Source& process, bool made) { members_[process.pid()] = {&process, !made}; }

  // Whether the next call of it comes after one of another process that is still to come.
  bool waits(Source& process) {
    const Member& m = members_[process.pid()];
    if (!m.begun || (m.runs_in != 0 && !is_over(m.runs_in) && !members_[m.runs_in].left))
      return true;
    if (ends_group(process.front()) && others_go_on(process, m.group)) return true;
    const int64_t of = waited_for(process.front());
    return of > 0 && of != process.pid() && !is_over(of);
  }

  // The next call of it comes now.
  void goes_on(Source& process) {
    const feign_activity& a = process.front().a;
    Member& m = members_[process.pid()];
    m.begun = true;
    m.runs_in = 0;
    const Effect e = posix_calls()[a.op].effect;
    if (e == Effect::kExec && a.result == 0) m.left = true;
    if (a.result <= 0 || !makes_process(e) || !members_.contains(a.result)) return;
    members_[a.result].begun = true;
    if ((a.flags & static_cast<uint32_t>(CLONE_THREAD)) != 0) {
      if (m.group == 0) joins(m, process.pid());
      joins(members_[a.result], m.group);
    }
    if (e == Effect::kVfork || (a.flags & static_cast<uint32_t>(CLONE_VFORK)) != 0)
      m.runs_in = a.result;
  }

 private:
  struct Member {
    Source* source = nullptr;
    bool begun = false;
    bool left = false;    // the memory of its maker: it called exec
    int64_t runs_in = 0;  // the process that has its memory until then (vfork)
    int64_t group = 0;    // it is a thread of, if there are several
  };
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
    return at == members_.end() || at->second.source->empty();
  }

  std::unordered_map<int64_t, Member> members_;  // stay where they are
  std::unordered_map<int64_t, std::vector<const Member*>> groups_;
};

}  // namespace feign::strace
