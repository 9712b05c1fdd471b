// SPDX-License-Identifier: MIT
// Rule threads, where MPI's calls are made: ranks then wait for each other by themselves, but
// several threads of one rank may be at one thing of MPI's. They come to it in the order that they
// had, as to a handle: a request is begun before another thread waits for it, a window is used
// while it is there and its epoch open, a file while it is open, collective calls on one
// communicator keep their order, and messages of one kind (communicator, other rank, tag) go out
// and come in by the threads that they went out and came in by.
#include "layers/mpi_ops.h"
#include "modifiers/depend/depend.h"

namespace depend {

using feign::Does;
using feign::mpi::kAbsent;
using feign::mpi::kCompleted;
using feign::mpi::kWildcard;
using feign::mpi::number;

Depend::Thing& Depend::thing(ThingKind kind, uint64_t which, uint64_t part) {
  return things_[{streams_[me_.stream].rank, kind, which, part}];
}

// Messages of one kind. Two threads that wait for such at the same time get theirs in the order in
// which they asked; so the second asks when the first has its own. It had it first then, too.
void Depend::next_message(const feign_activity& a, bool sends, uint32_t comm, int peer, int tag) {
  if (peer < 0 || tag < 0) return;
  Thing& t = thing(sends ? kSent : kReceived, comm,
                   static_cast<uint64_t>(peer) << 32 | static_cast<uint32_t>(tag));
  // One that asked before the other and got it after that cannot be made to ask first.
  if (t.start_ns <= a.start_ns) want(t.access.change, kRuleNames[kThreads]);
  t.access.change = me_;
  t.start_ns = a.start_ns;
}

// One-sided calls come after what opens their epoch and before what ends it, to each target.
void Depend::in_window(const feign_activity& a, const Message& m, uint32_t window) {
  enum : uint64_t { kWhole, kStarted, kPosted, kTarget };
  const auto change_of = [&](uint64_t part) {
    if (part != kWhole) use(thing(kWindowOf, window, kWhole).access, kThreads);
    change(thing(kWindowOf, window, part).access, kThreads);
  };
  const uint64_t target = m.args.rank < a.value_count ? a.values[m.args.rank] : FEIGN_UNKNOWN;
  const uint64_t part = target == FEIGN_UNKNOWN ? uint64_t{kWhole} : kTarget + target;
  switch (a.op) {
    case FEIGN_MPI_WIN_LOCK:
    case FEIGN_MPI_WIN_UNLOCK:
      return change_of(part);
    case FEIGN_MPI_WIN_START:
    case FEIGN_MPI_WIN_COMPLETE:
      return change_of(kStarted);
    case FEIGN_MPI_WIN_POST:
    case FEIGN_MPI_WIN_WAIT:
    case FEIGN_MPI_WIN_TEST:
      return change_of(kPosted);
    case FEIGN_MPI_WIN_LOCK_ALL:
    case FEIGN_MPI_WIN_UNLOCK_ALL:
      return change_of(kWhole);
    default:
      break;
  }
  if (m.does != Does::kWindow) return change_of(kWhole);  // made, freed, fenced
  use(thing(kWindowOf, window, kWhole).access, kThreads);
  use(thing(kWindowOf, window, kStarted).access, kThreads);
  if (part != kWhole) use(thing(kWindowOf, window, part).access, kThreads);
}

// A read or write at an offset of its own needs a file that is open; other calls move its pointers,
// change what is seen through it, or open or close it.
void Depend::in_file(const feign_activity& a, const Message& m) {
  Shared& s = thing(kFileOf, a.handle).access;
  if (m.args.offset != kAbsent && m.meets == Does::kNothing)
    use(s, kThreads);
  else
    change(s, kThreads);
}

void Depend::in_order(ThingKind kind, uint64_t which) {
  Shared& s = thing(kind, which).access;
  after(s.change, kThreads);
  s.change = me_;
}

// A file has a communicator of its own in MPI: collective calls on it may be under way beside those
// of the communicator that it was opened on. In a replay all may come together on that one: one
// keeps its order with the last of the others, if that was over.
void Depend::meets_on(const feign_activity& a, uint32_t comm, bool file) {
  Thing& own = thing(file ? kFilesOn : kCommOf, comm);
  Thing& other = thing(file ? kCommOf : kFilesOn, comm);
  if (!file || own.end_ns <= a.start_ns) after(own.access.change, kThreads);
  if (other.end_ns <= a.start_ns) after(other.access.change, kThreads);
  own.access.change = me_;
  own.end_ns = a.start_ns + a.duration_ns;
}

void Depend::ends(uint64_t request) {
  const auto at = things_.find({streams_[me_.stream].rank, kRequestOf, request, 0});
  if (at == things_.end()) return;
  after(at->second.access.change, kThreads);
  at->second.access.change = me_;
  if (at->second.file != 0) use(thing(kFileOf, at->second.file).access, kThreads);
  if (!at->second.keeps) things_.erase(at);
}

void Depend::threads(const feign_activity& a) {
  const Message& m = message_of(a.op);
  if (streams_[a.stream].rank < 0) return;
  if (a.result < 0 && !feign::mpi::done_in_part(m.does, a.result)) return;
  const feign::mpi::Args& x = m.args;
  const auto value = [&](uint8_t at) { return feign::mpi::value_of(a, at); };
  const auto text = [&](uint8_t at) { return feign::mpi::text_of(a, at); };
  const uint64_t request = value(x.request);
  if (m.starts || m.ends || m.does == Does::kRequest) {
    if (x.flag != kAbsent && value(x.flag) == 0) return;
    if (request != FEIGN_UNKNOWN) ends(request);
    for (uint32_t i = x.list; x.list != kAbsent && i < a.value_count; ++i) {
      const uint64_t n = a.values[i];
      if ((n & (kWildcard | FEIGN_UNKNOWN)) == kWildcard) break;
      if (!(n & FEIGN_UNKNOWN) && (!feign::mpi::ends_some(m.does, a.result) || n & kCompleted))
        ends(n & ~kCompleted);
    }
    return;
  }
  // A probe takes its message out, or only looks; what was taken out is received by its name.
  const bool named = x.message != kAbsent && text(x.message) != 0;
  if (named) in_order(kMessageOf, text(x.message));
  if (named && m.receives) things_.erase({streams_[a.stream].rank, kMessageOf, text(x.message), 0});
  if (m.sends && !m.keeps)
    next_message(a, true, text(x.comm), number(value(x.rank)), number(value(x.tag)));
  if (m.receives ? !m.keeps && x.message == kAbsent : m.does == Does::kProbe && named)
    next_message(a, false, text(x.comm), number(value(m.sends ? x.rank2 : x.rank)),
                 number(value(m.sends ? x.tag2 : x.tag)));
  if ((m.meets != Does::kNothing || m.does == Does::kNeighbours) && text(x.comm) != 0)
    meets_on(a, text(x.comm), false);
  if (m.file && m.meets != Does::kNothing)
    if (const uint32_t comm = comm_of_file(a, m);
        !m.opens && comm != 0 && comm_of(comm).members > 1)
      meets_on(a, comm, true);
  if (m.file && a.handle != 0) in_file(a, m);
  if (text(x.win) != 0) in_window(a, m, text(x.win));
  if (m.begins && request != FEIGN_UNKNOWN) {
    in_order(kRequestOf, request);
    Thing& t = thing(kRequestOf, request);
    t.keeps = m.keeps;
    t.file = m.file ? a.handle : 0;
  }
}

}  // namespace depend
