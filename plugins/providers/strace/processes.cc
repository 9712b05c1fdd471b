// SPDX-License-Identifier: MIT
// Who made whom, and what processes have from their makers.
#include <sched.h>

#include <utility>

#include "providers/strace/source.h"

namespace feign::strace {
namespace {

bool shares_files(std::string_view clone) { return clone.find("CLONE_FILES") != clone.npos; }
bool says_flags(std::string_view clone) {  // by name, or it has none
  return clone.find("fork(") != clone.npos || clone.find("SIGCHLD") != clone.npos ||
         clone.find("CLONE_") != clone.npos;
}

// What strace calls the process that was made, where its maker was told another number (with
// --pidns-translation: "= 2 /* 77 in strace's PID NS */"); 0: it does not say.
int64_t number_of_strace(std::string_view clone) {
  const size_t end = clone.rfind(" in strace's PID NS */");
  const size_t begin = end != clone.npos ? clone.rfind("/* ", end) : clone.npos;
  int64_t number = 0;
  return begin != clone.npos && Scan(clone.substr(begin + 3)).number(number) ? number : 0;
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
    ++trace_.streams;
  }
  last_pid_ = pid;
  last_process_ = p.get();
  return *p;
}

// strace -z, which shows no call that failed, shows the call that made a process when it has ended:
// its place is before whatever the process did. Where one call that makes a process is under way,
// it is that.
void Source::begins(Process& p) {
  p.seen = true;
  const bool only = unborn_.empty();
  unborn_.erase(p.pid);
  if (processes_.size() == 1 || trace_.began_in.contains(p.pid) || p.pid == prefix_.pid()) return;
  if (making_.empty() && unborn_.size() == 1) unborn_.clear();  // this is that one
  if (making_.size() == 1 && says_flags(making_[0]->call.text)) {
    Begun& maker = making_[0]->call;
    maker.surely = maker.child == 0 && only;
    if (maker.child == 0) maker.child = p.pid;
    return inherits(*making_[0], p.pid, shares_files(maker.text));
  }
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

// A process, or a thread, which may have been seen to go on before this call ended. Whether it was,
// and waited for its maker: `call` may be elsewhere then.
bool Source::makes(Process& p, Held& call, std::string_view text) {
  // In a PID namespace of its own the maker is told another number.
  if (const int64_t number = number_of_strace(text); number > 0)
    call.a.result = number;
  else if (trace_.other_pids && p.call.surely && call.a.place == FEIGN_PLACE(number_, p.call.line))
    call.a.result = p.call.child;
  const feign_activity a = call.a;
  if (trace_.other_pids && !processes_.contains(a.result)) unborn_.insert(a.result);
  // Who follows threads has lines with numbers, or is told that strace attached.
  if (p.pid == prefix_.pid() && !terminal_.is_shared())
    trace_.threads |= text.find("CLONE_THREAD") != text.npos;
  inherits(p, a.result, shares_files(text) || (a.flags & static_cast<uint32_t>(CLONE_FILES)) != 0);
  const auto child = processes_.find(a.result);
  if (child == processes_.end() || child->second->maker == nullptr) return false;
  made_before(*child->second, call);
  return true;
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

// A thread that calls execve goes on under its process's id: where that is not known to be all the
// same, with the descriptors and in the directory that it has itself. (Its number is another's
// then, perhaps.)
void Source::goes_on_as(Process& caller, Process& first) {
  const uint32_t apart = std::exchange(caller.apart, 0) | std::exchange(first.apart, 0);
  if (apart != 0) {
    std::swap(caller.stream, first.stream);
    std::swap(descriptors(caller), descriptors(first));
  }
  if (apart & CLONE_FS) {
    (void)where(caller);
    std::swap(caller.cwd, first.cwd);
    std::swap(caller.moved, first.moved);
  }
  descriptors(caller).reset();
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

}  // namespace feign::strace
