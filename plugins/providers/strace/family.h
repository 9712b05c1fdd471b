// SPDX-License-Identifier: MIT
// Several files (strace -ff) without exact times: who made whom and who waited for whom tells which
// of their calls came first. (Who woke whom at a futex would say it of threads, but most of what
// they tell each other shows in no call: that made as much worse as better.)
#pragma once

#include <sched.h>

#include <cstdint>
#include <unordered_map>
#include <unordered_set>

#include "feign.h"
#include "providers/strace/source.h"
#include "resolve/effects.h"

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
    const Held& h = process.front();
    if (posix_calls()[h.a.op].effect != Effect::kWait) return false;
    const auto of = h.a.result == 0 && !h.values.empty() ? static_cast<int64_t>(h.values[0])
                                                         : h.a.result;  // waitid, wait4
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
    if (e == Effect::kVfork || (a.flags & static_cast<uint32_t>(CLONE_VFORK)) != 0)
      m.runs_in = a.result;
  }

 private:
  struct Member {
    Source* source = nullptr;
    bool begun = false;
    bool left = false;    // the memory of its maker: it called exec
    int64_t runs_in = 0;  // the process that has its memory until then (vfork)
  };
  bool is_over(int64_t pid) const {
    const auto at = members_.find(pid);
    return at == members_.end() || at->second.source->empty();
  }

  std::unordered_map<int64_t, Member> members_;
};

}  // namespace feign::strace
