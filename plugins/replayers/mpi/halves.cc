// SPDX-License-Identifier: MIT
#include "replayers/mpi/halves.h"

#include <algorithm>
#include <functional>
#include <new>
#include <string_view>

#include "replayers/mpi/state.h"

namespace feign::mpi {

Halves::Way Halves::way(uint32_t comm, int64_t from, int64_t to, int64_t tag) const {
  return {std::hash<std::string_view>()(r_.text(comm)), from, to, tag};
}

const std::vector<uint32_t>& Halves::members(uint32_t comm) {
  const auto [at, first] = members_.try_emplace(comm);
  size_t first_group = 0;
  if (first && !parse_ranks(r_.text(comm), at->second, first_group)) at->second.clear();
  return at->second;
}

void Halves::sends(const Way& way, const feign_activity& a, uint64_t started) {
  const uint64_t number = sent_[way]++;
  if (lacks_ == nullptr || anybody_.contains({way.comm, 0, way.to, 0})) return;
  if (const auto all = all_taken_.find(way); all != all_taken_.end() && number < all->second)
    return;
  Lack& lack = (*lacks_)[a.id];
  if (started != 0)
    lack.started.push_back(started);
  else
    lack.send = true;
}

void Halves::receives(const Way& way, const feign_activity& a, uint64_t started) {
  // Who looks for a message does not take it, unless it is taken out.
  const Args& args = r_.args_of(a.op);
  const bool looks = does_of(a.op) == Does::kProbe && args.message == kAbsent;
  const uint64_t number = taken_[way];
  if (!looks) ++taken_[way];
  if (lacks_ == nullptr) return;
  if (const auto all = all_sent_.find(way); all != all_sent_.end() && number < all->second) return;
  Lack& lack = (*lacks_)[a.id];
  if (started != 0)
    lack.started.push_back(started);
  else
    lack.receive = true;
}

void Halves::comes(uint32_t comm, const feign_activity& a) {
  const std::vector<uint32_t>& all = members(comm);
  if (all.size() < 2) return;
  const uint64_t number = came_[way(comm, rank_, 0, 0)]++;
  if (lacks_ == nullptr) return;
  for (const uint32_t member : all)
    if (all_came_[way(comm, member, 0, 0)] <= number) {
      (*lacks_)[a.id].meeting = true;
      return;
    }
}

void Halves::look(const feign_activity& a) {
  const Does does = does_of(a.op);
  if (does == Does::kNothing) return;
  // (Calls on files that failed on some rank only are made by all.)
  if (a.result < 0 && a.op < r_.mpiio_first && !done_in_part(does, a.result)) return;
  if (a.stream != stream_) {
    feign_stream_info info{};
    info.struct_size = sizeof info;
    rank_ = r_.host->stream_info(r_.host, a.stream, &info) < 0 ? -1 : info.rank;
    stream_ = a.stream;
  }
  if (rank_ < 0) return;
  const Args& x = r_.args_of(a.op);
  if (a.op >= r_.mpiio_first && refused(a)) return;
  const auto value = [&](uint8_t at) { return value_of(a, at); };
  const auto text = [&](uint8_t at) { return text_of(a, at); };
  const uint32_t comm = text(x.comm);
  const auto to = [&](uint64_t peer, uint64_t tag) {
    return way(comm, rank_, number(peer), tag == FEIGN_UNKNOWN ? 0 : number(tag));
  };
  const auto from = [&](uint64_t peer, uint64_t tag) {
    const bool known = peer != FEIGN_UNKNOWN && tag != FEIGN_UNKNOWN;
    return way(comm, known ? number(peer) : -2, rank_, known ? number(tag) : -1);
  };
  const auto take = [&](const Way& w) {
    if (w.from >= 0 && w.tag >= 0) receives(w, a, 0);
    if (w.from == -2 || w.tag < 0) anybody_.insert({w.comm, 0, w.to, 0});
  };
  switch (does) {
    case Does::kSend:
    case Does::kSendReceive:
      if (value(x.rank) != FEIGN_UNKNOWN && number(value(x.rank)) >= 0)
        sends(to(value(x.rank), value(x.tag)), a, 0);
      if (does == Does::kSendReceive) take(from(value(x.rank2), value(x.tag2)));
      return;
    case Does::kReceive: {
      if (x.message != kAbsent) return;  // which a probe has taken out
      const std::pair me(rank_, value(x.request));
      if (x.request != kAbsent && r_.cancelled.contains(me)) return;
      Way w = from(value(x.rank), value(x.tag));
      const auto got = x.request != kAbsent ? r_.matched.find(me) : r_.matched.end();
      if (got != r_.matched.end()) {
        w.from = got->second.first;
        w.tag = got->second.second;
      }
      return take(w);
    }
    case Does::kProbe:
      if (x.flag != kAbsent && (value(x.flag) == 0 || value(x.flag) == FEIGN_UNKNOWN)) return;
      return take(from(value(x.rank), value(x.tag)));
    case Does::kKeepSend:
    case Does::kKeepReceive: {
      const bool out = does == Does::kKeepSend;
      const Way w = out ? to(value(x.rank), value(x.tag)) : from(value(x.rank), value(x.tag));
      kept_[{rank_, value(x.request)}] = {w, out, w.from >= 0 && w.to >= 0 && w.tag >= 0};
      if (!out && (w.from == -2 || w.tag < 0)) anybody_.insert({w.comm, 0, w.to, 0});
      return;
    }
    case Does::kStart: {
      const auto start = [&](uint64_t request) {
        const auto at = kept_.find({rank_, request});
        if (at == kept_.end() || !at->second.known) return;
        (at->second.sends ? sends(at->second.way, a, request)
                          : receives(at->second.way, a, request));
      };
      if (x.request != kAbsent) start(value(x.request));
      for (uint32_t i = x.list; x.list != kAbsent && i < a.value_count; ++i) start(a.values[i]);
      return;
    }
    case Does::kMakeWindow:
      windows_[{rank_, text(x.win)}] = comm;
      return comes(comm, a);
    case Does::kMeetWindow:
      if (const auto at = windows_.find({rank_, text(x.win)}); at != windows_.end())
        comes(at->second, a);
      return;
    case Does::kMeet:
    case Does::kFromRoot:
    case Does::kToRoot:
    case Does::kUpwards:
    case Does::kNeighbours:
    case Does::kMakeComm:
      if (comm != 0 && a.op >= r_.mpiio_first) files_[a.handle] = comm;
      if (comm != 0) return comes(comm, a);
      if (const auto at = files_.find(a.handle); a.op >= r_.mpiio_first && at != files_.end())
        comes(at->second, a);
      return;
    default:
      return;
  }
}

feign_status Halves::each(void* ctx, const feign_activity* a) noexcept {
  try {
    static_cast<Halves*>(ctx)->look(*a);
    return FEIGN_OK;
  } catch (const std::bad_alloc&) {
    return FEIGN_ERR_NOMEM;
  }
}

// The counts of all processes. False where they are too many.
bool Halves::exchange() {
  enum : uint64_t { kSent, kTaken, kCame, kAnybody };
  constexpr size_t kEach = 6;
  constexpr uint64_t kMost = uint64_t{12} << 20;  // 96 MiB
  std::vector<uint64_t> mine;
  const auto put = [&](uint64_t what, const Way& w, uint64_t count) {
    for (const int64_t n : {w.from, w.to, w.tag}) mine.push_back(static_cast<uint64_t>(n));
    for (const uint64_t n : {what, w.comm, count}) mine.push_back(n);
  };
  for (const auto& [w, count] : sent_) put(kSent, w, count);
  for (const auto& [w, count] : taken_) put(kTaken, w, count);
  for (const auto& [w, count] : came_) put(kCame, w, count);
  for (const Way& w : anybody_) put(kAnybody, w, 0);
  const MPI_Comm world = r_.world->world;
  const uint64_t size = mine.size();
  std::vector<uint64_t> sizes(static_cast<size_t>(r_.world->size));
  FEIGN_MUST(MPI_Allgather(&size, 1, MPI_UINT64_T, sizes.data(), 1, MPI_UINT64_T, world));
  uint64_t sum = 0;
  std::vector<int> counts, at;
  for (const uint64_t n : sizes) {
    at.push_back(static_cast<int>(sum));
    counts.push_back(static_cast<int>(n));
    if ((sum += n) > kMost) return false;
  }
  std::vector<uint64_t> all(sum);
  FEIGN_MUST(MPI_Allgatherv(mine.data(), static_cast<int>(size), MPI_UINT64_T, all.data(),
                            counts.data(), at.data(), MPI_UINT64_T, world));
  for (size_t i = 0; i < all.size(); i += kEach) {
    const Way w{all[i + 4], static_cast<int64_t>(all[i]), static_cast<int64_t>(all[i + 1]),
                static_cast<int64_t>(all[i + 2])};
    if (all[i + 3] == kAnybody)
      anybody_.insert(w);
    else
      (all[i + 3] == kSent    ? all_sent_
       : all[i + 3] == kTaken ? all_taken_
                              : all_came_)[w] += all[i + 5];
  }
  return true;
}

bool Halves::find(const feign_plan* plan, std::map<uint64_t, Lack>& lacks, uint64_t& count,
                  feign_status& looked) {
  looked = plan->each(plan, each, this);
  if (exchange()) {
    lacks_ = &lacks;
    stream_ = 0;
    for (Counts* counts : {&sent_, &taken_, &came_}) counts->clear();
    kept_.clear();
    windows_.clear();
    files_.clear();
    if (looked == FEIGN_OK) looked = plan->each(plan, each, this);
  } else if (r_.rank == 0) {
    r_.host->log(r_.host, FEIGN_LOG_WARN,
                 "not all ranks came to MPI_Finalize, and their messages are too many to find "
                 "those whose other half the trace lacks");
  }
  uint64_t told[] = {lacks.size(), looked < 0};
  FEIGN_MUST(MPI_Allreduce(MPI_IN_PLACE, told, 2, MPI_UINT64_T, MPI_SUM, r_.world->world));
  count = told[0];
  return told[1] == 0;
}

}  // namespace feign::mpi
