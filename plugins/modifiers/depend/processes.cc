// SPDX-License-Identifier: MIT
// Rule process: what begins with a fork, and what waits for an end.
#include <sched.h>

#include "modifiers/depend/depend.h"

namespace depend {

Depend::Stream& Depend::stream_of(uint32_t number) {
  if (number >= streams_.size()) streams_.resize(number + size_t{1});
  Stream& s = streams_[number];
  if (s.begun) return s;
  s.begun = true;
  feign_stream_info info{};
  info.struct_size = sizeof info;
  if (host_->stream_info(host_, number, &info) < 0) return s;
  uint64_t& group = groups_[{info.host, info.rank, info.process}];
  if (group == 0) group = groups_.size();
  s.group = group;
  s.thread = info.thread;
  s.rank = info.rank;
  processes_[group].streams.push_back(number);
  threads_[{group, info.thread}] = number;
  s.parent = info.parent;
  uint32_t up = info.parent;
  for (int i = 0; s.rank >= 0 && i < kMostUp && up != 0 && up < streams_.size(); ++i) {
    Stream& above = streams_[up];
    if (above.rank >= 0) break;
    above.below = above.below == -1 || above.below == s.rank ? s.rank : kSeveral;
    up = above.parent;
  }
  if (info.parent != 0) {
    if (info.parent < streams_.size() && streams_[info.parent].rank != info.rank)
      became_ranks_[{streams_[info.parent].group, info.process}] = group;
    s.may_begin = info.parent_id;
    begins_to_help(number, {info.parent, info.parent_id});
    if (info.parent < streams_.size())
      s.may_begin = std::max(s.may_begin, streams_[info.parent].may_begin);
    if (info.parent < streams_.size() && streams_[info.parent].vfork == info.parent_id)
      s.vforked_by = info.parent;
    if (on(kProcess)) after({info.parent, info.parent_id}, kProcess);
  }
  return s;
}

// The rank that a stream belongs to, as map_ranks (core/replay/ranks.h) has it; -1: none of its
// own.
int32_t Depend::unit_of(uint32_t stream) const {
  for (int i = 0; i < kMostUp && stream != 0 && stream < streams_.size(); ++i) {
    const Stream& s = streams_[stream];
    if (s.rank >= 0) return s.rank;
    if (s.below != -1) return std::max(s.below, -1);
    stream = s.parent;
  }
  return -1;
}

// After the last activities of all of a process's streams.
void Depend::all_of(uint64_t group, bool ended) {
  const auto at = processes_.find(group);
  if (at == processes_.end()) return;
  for (const uint32_t s : at->second.streams) {
    if (s == me_.stream) continue;
    group_end_ = std::max(group_end_, streams_[s].last_end);
    clocks_.ended(s);
    after({s, clocks_.last(s)}, kProcess);
  }
  const bool mine = std::find(at->second.streams.begin(), at->second.streams.end(), me_.stream) !=
                    at->second.streams.end();
  if (mine)
    at->second.streams.assign(1, me_.stream);
  else if (ended)
    processes_.erase(at);
}

void Depend::processes(const feign_activity& a, Effect effect) {
  const bool ok = a.result >= 0 && !(a.marks & FEIGN_NO_RESULT);
  Stream& s = streams_[a.stream];
  const auto release = [&] {  // a vfork ends when its child has memory of its own, or is gone
    if (s.vforked_by == 0) return;
    streams_[s.vforked_by].owed.push_back({me_, kProcess});
    s.vforked_by = 0;
  };
  switch (effect) {
    case Effect::kVfork:
      if (ok) s.vfork = a.id;
      return;
    case Effect::kClone:
      if (ok && (a.flags & CLONE_VFORK)) s.vfork = a.id;
      return;
    case Effect::kExec:
      if (!ok) return;
      all_of(s.group, false);
      return release();
    case Effect::kExit:
      clocks_.ended(a.stream);
      return release();
    case Effect::kExitGroup:
      left_mpi(s.group);
      if (const auto at = processes_.find(s.group); at != processes_.end())
        for (const uint32_t one : at->second.streams) clocks_.ended(one);
      return release();
    case Effect::kWait: {
      // waitid tells who it was beside its result.
      if (!ok) return;
      const int64_t pid = a.value_count > 0 ? static_cast<int64_t>(a.values[0]) : a.result;
      if (pid <= 0) return;
      feign_stream_info info{};
      info.struct_size = sizeof info;
      if (host_->stream_info(host_, a.stream, &info) < 0) return;
      const auto found = groups_.find({info.host, info.rank, pid});
      const auto rank = became_ranks_.find({s.group, pid});
      const uint64_t group = found != groups_.end()        ? found->second
                             : rank != became_ranks_.end() ? rank->second
                                                           : s.group;
      if (group == s.group) return;
      left_mpi(group);
      group_end_ = 0;
      all_of(group, true);
      // What passed after the last call of the process was no waiting for anybody who is replayed:
      // its memory was given back, its parent woken.
      if (const uint64_t end = a.start_ns + a.duration_ns; FEIGN_DEPTH(a.marks) == 0)
        after_end_ = end - std::min(end, std::max(a.start_ns, group_end_));
      return;
    }
    default:
      return;
  }
}

}  // namespace depend
