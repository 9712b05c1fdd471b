// SPDX-License-Identifier: MIT
// Calls that nobody recorded and that somebody must have made: of processes and threads that are
// there, or are over; and the umask that the command began with.
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <functional>

#include "layers/posix_ops.h"
#include "providers/capture/provider.h"
#include "record/gaps.h"

namespace feign::capture {

// When the process of that number began that was made after that moment; UINT64_MAX if none was, it
// was a program that the one before it went on as, or there was none before it.
uint64_t Provider::made_after(Pid pid, uint64_t moment) const {
  const auto first = processes_.lower_bound({pid, 0});
  for (auto at = first; at != processes_.end() && at->first.first == pid; ++at)
    if (at->second.host->to_main(at->first.second) >= moment)
      return at->second.forked && at != first ? at->first.second : UINT64_MAX;
  return UINT64_MAX;
}

// Of a process whose end another one is told at that call, or whose number the one has that it
// makes, and that did not call for its end: a signal ended it, or the first of its PID namespace
// did. Whether there are exits to be put before the call.
bool Provider::reaps(Lane& lane) {
  const Item& item = lane.front();
  const Call* const call = lane.call();
  if (call == nullptr) return false;
  const bool makes = makes_process(call->effect) && (item.a.flags & CLONE_THREAD) == 0;
  if (!makes && call->effect != Effect::kWait) return false;
  const int64_t told = item.a.result > 0              ? item.a.result
                       : makes || item.values.empty() ? 0
                                                      : static_cast<int64_t>(item.values[0]);
  // With these it may only have been stopped.
  if (item.a.result < 0 || told <= 0 || told > INT32_MAX ||
      (!makes && (item.a.flags & (WUNTRACED | WCONTINUED))))
    return false;
  const auto who =
      going_.find(pid_on(static_cast<size_t>(lane.pid() >> 32), static_cast<int32_t>(told)));
  if (who == going_.end()) return false;
  const uint64_t made = makes ? made_after(who->first, item.start) : UINT64_MAX;
  if (makes && made == UINT64_MAX) return false;
  // Whoever traces it (ptrace) is told whenever it stops: then it has calls yet to come.
  const auto goes_on = [&](Lane* one) {
    return one->pid() == who->first && one->front().end >= item.end &&
           one->process().key.second < made;
  };
  if (std::any_of(later_.begin(), later_.end(), goes_on) ||
      std::any_of(heap_.begin(), heap_.end(),
                  [&](const Waiting& waiting) { return goes_on(waiting.lane); }))
    return false;
  shared_.note({records_of(static_cast<uint64_t>(who->first)), {}});
  ended_ = std::move(who->second);
  told_at_ = time(item.end);
  Process* last = nullptr;
  for (auto at = processes_.lower_bound({who->first, 0});
       at != processes_.end() && at->first.first == who->first &&
       at->second.host->to_main(at->first.second) <= item.end;
       ++at)
    last = &at->second;
  if (last != nullptr) makes_children(*last);
  going_.erase(who);
  return true;
}

// Those that a signal ended, and nobody was told: when all calls were, for what they had open. (Of
// a recording that was cut off, paused, or has no system calls, nobody knows.) Whether there are
// such.
bool Provider::all_end() {
  if (std::exchange(all_ended_, true)) return false;
  tell_who_goes_on();
  const bool told = std::all_of(hosts_.begin(), hosts_.end(), [](const auto& host) {
    return host.control.dropped == 0 && host.control.pauses == 0 &&
           (host.control.layers & 1u << FEIGN_CAPTURE_POSIX) != 0;
  });
  if (control_.ended == 0 || !told) return false;
  for (const auto& [pid, streams] : going_)
    if (recorded_.contains(pid)) ended_.insert(ended_.end(), streams.begin(), streams.end());
  std::sort(ended_.begin(), ended_.end(), std::greater<>());
  going_.clear();
  told_at_ = last_start_;
  return !ended_.empty();
}

// That process was made. If nothing of it was recorded it made no calls, unless some are said to be
// missing, or it has another number where it is: it is over when somebody is told so.
// So is a thread, with its process.
void Provider::is_made(const Lane& lane, int32_t child, bool thread) {
  const auto host = static_cast<size_t>(lane.pid() >> 32);
  if (thread) {
    if (!threads_.contains(pid_on(host, child)))
      going_[lane.pid()].push_back(lane.stream_of(static_cast<int32_t>(lane.pid()), child));
    return;
  }
  for (auto at = processes_.lower_bound({pid_on(host, child), 0});
       at != processes_.end() && at->first.first == pid_on(host, child); ++at)
    if (at->second.forked && !std::exchange(at->second.made, true)) break;
  if (!recorded_.contains(pid_on(host, child)) && !recorded_.contains(pid_on(host, 1)) &&
      gaps_of(hosts_[host].control).empty())
    going_[pid_on(host, child)] = {lane.stream_of(child, child)};
}

// The making of a process has no record where a signal, or another thread's exec or exit, ended who
// was to make it: it is told before that end, and before the process's first call.
bool Provider::makes(Process& child) {
  if (child.made_by == nullptr || (control_.layers & 1) == 0 || std::exchange(child.made, true))
    return false;
  unmade_.push_back(&child);
  return true;
}

bool Provider::makes_children(Process& maker) {
  bool any = false;
  for (Process* const child : maker.children) any |= makes(*child);
  return any;
}

bool Provider::makes_before(Lane& lane) {
  Process& process = lane.process();
  if (lane.pid() != process.pid) return false;  // a vfork's child
  const uint32_t number = lane.front().code & 0xFFF;
  const bool alone = lane.front().kind == FEIGN_RECORD_STARTED && number < posix_calls().size();
  const Effect effect = alone ? posix_calls()[number].effect : Effect::kNone;
  const bool ends = effect == Effect::kExec || effect == Effect::kExitGroup;
  const bool others = ends && makes_children(process);
  return makes(process) || others;  // the last one is told first
}

// A call that nobody recorded.
feign_status Provider::emit(feign_sink* out, Effect effect, feign_activity call) {
  const auto& calls = posix_calls();
  const auto described =
      std::find_if(calls.begin(), calls.end(), [&](const auto& c) { return c.effect == effect; });
  feign_activity* const a = out->make(out);
  if (a == nullptr) return fail("out of memory", FEIGN_ERR_NOMEM);
  call.op = firsts_[FEIGN_CAPTURE_POSIX] + static_cast<uint32_t>(described - calls.begin()) - 1;
  call.stream = goes_on_as(call.stream);
  call.host = a->host;
  call.marks |= FEIGN_INJECTED;
  *a = call;
  return out->emit(out, a);
}

// Makings and ends that are to be told by now.
feign_status Provider::emit_owed(feign_sink* out, bool& emitted) {
  feign_activity call{};
  call.start_ns = told_at_;
  if (!unmade_.empty()) {
    const Process& child = *unmade_.back();
    const auto maker = static_cast<int32_t>(child.parent);
    unmade_.pop_back();
    call.stream = stream_of(*child.made_by, maker, maker);
    call.flags = SIGCHLD;
    call.result = static_cast<int32_t>(child.pid);
    emitted = true;
    return emit(out, Effect::kClone, call);
  }
  if (!ended_.empty()) {
    call.stream = ended_.back();
    ended_.pop_back();
    call.marks = FEIGN_NO_RESULT;
    emitted = true;
    return emit(out, Effect::kExit, call);
  }
  return FEIGN_OK;
}

// What comes before the lane's front, which is taken_ then.
feign_status Provider::emit_before(Lane& lane, feign_sink* out, bool& emitted) {
  Process& process = lane.process();
  feign_activity call{};
  call.start_ns = time(lane.front().start);
  // The umask that the command began with.
  if (Host& host = hosts_[static_cast<size_t>(lane.pid() >> 32)];
      !std::exchange(host.begun, true) && host.control.umask != 0 &&
      host.control.umask - 1 != kUsualUmask) {
    call.stream = lane.front().a.stream;
    call.mode = (host.control.umask - 1) & 0777;
    call.marks = FEIGN_NO_RESULT;
    taken_ = &lane;
    emitted = true;
    return emit(out, Effect::kUmask, call);
  }
  if (makes_before(lane)) {
    told_at_ = call.start_ns;
    taken_ = &lane;
    return FEIGN_OK;
  }
  // Another thread's exec ended the one that made it, before that call was over.
  if (lane.thread() != static_cast<int32_t>(lane.pid()) &&
      process.threads.insert(lane.thread()).second && (control_.layers & 1) != 0) {
    call.stream = lane.first_stream();
    call.flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD;
    call.result = lane.thread();
    taken_ = &lane;
    emitted = true;
    return emit(out, Effect::kClone, call);
  }
  return FEIGN_OK;
}

}  // namespace feign::capture
