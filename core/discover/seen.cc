// SPDX-License-Identifier: MIT
#include "discover/seen.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "discover/calls.h"
#include "trace/mpi_args.h"
#include "trace/native.h"

namespace feign::discover {
namespace {

using Clock = std::vector<uint64_t>;  // by node: calls that had ended

bool join(Clock& mine, const Clock& other) {
  bool more = false;
  if (mine.size() < other.size()) mine.resize(other.size());
  for (size_t i = 0; i < other.size(); ++i) {
    more |= other[i] > mine[i];
    mine[i] = std::max(mine[i], other[i]);
  }
  return more;
}

class Seen {
 public:
  Seen(const Tables& tables, const Numbers& numbers, const std::vector<uint32_t>& index)
      : tables_(tables), numbers_(numbers), index_(index) {
    for (const uint32_t i : index)
      if (i != UINT32_MAX) nodes_ = std::max<size_t>(nodes_, i + size_t{1});
    told_.resize(nodes_, Clock(nodes_));
  }
  // First of all activities: what of the others will be asked for.
  void ask(const Record& r) {
    for (const Dependency& d : r.depends) asked_.emplace(d.stream, d.id);
  }
  void pass(const Record& r, const feign_op_info& info);
  std::vector<SeenOrder> orders;

 private:
  struct Stream {
    Clock clock;
    std::string by;  // what it learnt last by
    // What it learns when the call of MPI that it is in is over: what that one does to files before
    // may come before that.
    Clock later;
    std::string later_by;
    const feign_op_info* last = nullptr;  // its last call, of those that are in no other
    uint64_t last_ns = 0;
  };
  Stream& of(uint32_t stream) {
    if (stream >= streams_.size()) streams_.resize(stream + size_t{1});
    Stream& s = streams_[stream];
    s.clock.resize(nodes_);
    return s;
  }
  static bool is_mpi(const feign_op_info& info) { return strncmp(info.layer, "mpi", 3) == 0; }
  // A message, or the end of one: of other calls of MPI all have to come before one goes on.
  static bool is_message(const feign_op_info& info) {
    const mpi::Args args = mpi::args_of_op(info);
    return args.tag != mpi::kAbsent || args.request != mpi::kAbsent || args.list != mpi::kAbsent;
  }
  // A dependency of rule mpi is one of the call before this, which waited; or of this one, where
  // it was the last to come to a collective call.
  static bool came_last(const Stream& s, const Record& r, const feign_op_info& info) {
    if (FEIGN_DEPTH(r.a.marks) != 0 || !is_mpi(info) || is_message(info)) return false;
    if (s.last == nullptr || !is_mpi(*s.last)) return true;
    return !is_message(*s.last) && r.a.duration_ns > s.last_ns;
  }

  const Tables& tables_;
  const Numbers& numbers_;
  const std::vector<uint32_t>& index_;
  size_t nodes_ = 0;
  std::vector<Stream> streams_;
  std::vector<Clock> told_;  // by node: what orders say already
  std::set<std::pair<uint32_t, uint64_t>> asked_;
  std::map<std::pair<uint32_t, uint64_t>, Clock> kept_;
};

void Seen::pass(const Record& r, const feign_op_info& info) {
  const feign_activity& a = r.a;
  const bool outermost = FEIGN_DEPTH(a.marks) == 0;
  Stream& mine = of(a.stream);
  if (outermost && !mine.later.empty()) {
    if (join(mine.clock, mine.later)) mine.by = mine.later_by;
    mine.later.clear();
  }
  for (const Dependency& d : r.depends) {
    const auto at = kept_.find({d.stream, d.id});
    if (at == kept_.end()) continue;
    const bool by_mpi = tables_.strings.text(d.rule) == "mpi";
    const bool last = by_mpi && came_last(mine, r, info);
    const char* by = by_mpi && !last && mine.last != nullptr ? mine.last->name : info.name;
    const bool now = !by_mpi || (outermost && !(last && strcmp(info.layer, "mpiio") == 0));
    if (join(now ? mine.clock : mine.later, at->second)) (now ? mine.by : mine.later_by) = by;
  }
  uint32_t node = 0;
  uint64_t call = 0;
  if (numbers_.counted(tables_, a, node, call) && index_[node] != UINT32_MAX) {
    const uint32_t me = index_[node];
    for (uint32_t i = 0; i < nodes_; ++i)
      if (i != me && mine.clock[i] > told_[me][i])
        orders.push_back({me, i, call, mine.clock[i] - 1, mine.by});
    told_[me] = mine.clock;
    mine.clock[me] = std::max(mine.clock[me], call + 1);
  }
  if (asked_.contains({a.stream, a.id})) {
    Clock& kept = kept_[{a.stream, a.id}] = mine.clock;
    join(kept, mine.later);
  }
  if (!outermost) return;
  mine.last = &info;
  mine.last_ns = a.duration_ns;
}

}  // namespace

Result<std::vector<SeenOrder>> seen_orders(const std::string& trace, const std::string& work,
                                           const Numbers& numbers,
                                           const std::vector<uint32_t>& index, Plugins& plugins) {
  const std::string ordered = work + "/seen.feign";
  if (auto made = quiet_pipeline(
          {spec("feign", {{"file", trace}}), spec("depend", {{"rules", "process+channel+mpi"}}),
           spec("feign", {{"file", ordered}})},
          plugins);
      !made)
    return std::move(made.error());
  Tables tables;
  auto reader = open_trace(ordered, tables);
  if (!reader) return std::move(reader.error());
  Seen seen(tables, numbers, index);
  for (const bool asking : {true, false})
    if (auto ok =
            each_activity(*reader, tables,
                          [&](Record& r, const feign_op_info& info, const Call*) -> Result<void> {
                            if (asking)
                              seen.ask(r);
                            else
                              seen.pass(r, info);
                            return {};
                          });
        !ok)
      return std::move(ok.error());
  return std::move(seen.orders);
}

}  // namespace feign::discover
