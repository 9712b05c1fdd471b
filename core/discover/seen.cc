// SPDX-License-Identifier: MIT
#include "discover/seen.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "discover/calls.h"
#include "trace/native.h"

namespace feign::discover {
namespace {

using Clock = std::vector<uint64_t>;  // by node: calls that had ended

void join(Clock& to, const Clock& from) {
  for (size_t i = 0; i < to.size(); ++i) to[i] = std::max(to[i], from[i]);
}

// What a call of MPI has among its values, by the names of its parameters.
class Values {
 public:
  Values(const feign_activity& a, const feign_op_info& info, const Tables& tables)
      : a_(a), info_(info), tables_(tables) {}
  bool has(std::string_view name) const { return find(name) != nullptr; }
  uint64_t number(std::string_view name) const {
    const feign_arg_info* arg = find(name);
    return arg != nullptr && arg->index < a_.value_count ? a_.values[arg->index] : FEIGN_UNKNOWN;
  }
  std::string text(std::string_view name) const {
    const feign_arg_info* arg = find(name);
    if (arg == nullptr || arg->index >= a_.value_count) return {};
    return std::string(tables_.strings.text(static_cast<uint32_t>(a_.values[arg->index])));
  }
  // The numbers of a list, which is all values that are left.
  std::vector<uint64_t> list(std::string_view name) const {
    std::vector<uint64_t> out;
    const feign_arg_info* arg = find(name);
    for (uint32_t i = arg != nullptr ? arg->index : a_.value_count; i < a_.value_count; ++i)
      out.push_back(a_.values[i]);
    return out;
  }

 private:
  const feign_arg_info* find(std::string_view name) const {
    for (uint32_t i = 0; i < info_.arg_count; ++i)
      if (info_.args[i].slot == FEIGN_SLOT_VALUE && name == info_.args[i].name)
        return &info_.args[i];
    return nullptr;
  }
  const feign_activity& a_;
  const feign_op_info& info_;
  const Tables& tables_;
};

// Who learns what from whom in a collective call.
enum class Learns { kNone, kAllOfAll, kAllOfRoot, kRootOfAll };

Learns learns(std::string_view name) {
  static constexpr std::pair<std::string_view, Learns> kCollectives[] = {
      {"MPI_Barrier", Learns::kAllOfAll},    {"MPI_Allreduce", Learns::kAllOfAll},
      {"MPI_Allgather", Learns::kAllOfAll},  {"MPI_Allgatherv", Learns::kAllOfAll},
      {"MPI_Alltoall", Learns::kAllOfAll},   {"MPI_Alltoallv", Learns::kAllOfAll},
      {"MPI_Alltoallw", Learns::kAllOfAll},  {"MPI_Reduce_scatter", Learns::kAllOfAll},
      {"MPI_Bcast", Learns::kAllOfRoot},     {"MPI_Scatter", Learns::kAllOfRoot},
      {"MPI_Scatterv", Learns::kAllOfRoot},  {"MPI_Reduce", Learns::kRootOfAll},
      {"MPI_Gather", Learns::kRootOfAll},    {"MPI_Gatherv", Learns::kRootOfAll},
      {"MPI_Comm_split", Learns::kAllOfAll}, {"MPI_Comm_dup", Learns::kAllOfAll}};
  for (const auto& [known, what] : kCollectives)
    if (known == name) return what;
  return Learns::kNone;
}

// "WORLD{0-2,5}": the ranks of a communicator.
std::vector<int> members(const std::string& comm) {
  std::vector<int> out;
  const size_t open = comm.find('{');
  if (open == std::string::npos) return out;
  const char* p = comm.c_str() + open + 1;
  while (*p >= '0' && *p <= '9') {
    char* end = nullptr;
    const long first = strtol(p, &end, 10);
    const long last = *end == '-' ? strtol(end + 1, &end, 10) : first;
    for (long r = first; r <= last && out.size() < 100'000; ++r) out.push_back(static_cast<int>(r));
    p = *end == ',' ? end + 1 : end;
  }
  return out;
}

class Seen {
 public:
  Seen(const Tables& tables, const std::vector<uint32_t>& index) : tables_(tables), index_(index) {
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
  // From, to, tag, communicator: messages of these do not overtake each other.
  using Channel = std::tuple<uint64_t, uint64_t, uint64_t, std::string>;
  struct Posted {
    Channel channel;
    size_t number;
  };

  Clock& clock(uint32_t stream) {
    if (stream >= clocks_.size()) clocks_.resize(stream + size_t{1});
    if (clocks_[stream].empty()) clocks_[stream].resize(nodes_);
    return clocks_[stream];
  }
  const Clock* of_rank(uint64_t rank) {
    const auto at = stream_of_.find(rank);
    return at != stream_of_.end() ? &clock(at->second) : nullptr;
  }
  void learn(Clock& mine, const Clock& other, const feign_op_info& info, uint32_t stream) {
    bool more = false;
    for (size_t i = 0; i < mine.size(); ++i) more |= other[i] > mine[i];
    if (!more) return;
    join(mine, other);
    if (stream >= by_.size()) by_.resize(stream + size_t{1});
    by_[stream] = info.name;
  }
  void received(Clock& mine, const Posted& p, const feign_op_info& info, uint32_t stream) {
    const auto& sent = sent_[p.channel];
    // A send that comes later in the trace had begun by now: its rank has done nothing since.
    if (p.number < sent.size())
      learn(mine, sent[p.number], info, stream);
    else if (const Clock* now = of_rank(std::get<0>(p.channel)))
      learn(mine, Clock(*now), info, stream);
  }
  void mpi(const feign_activity& a, const feign_op_info& info, uint64_t rank, Clock& mine);

  const Tables& tables_;
  const std::vector<uint32_t>& index_;
  size_t nodes_ = 0;
  std::vector<Clock> clocks_;    // by stream
  std::vector<Clock> told_;      // by node: what orders say already
  std::vector<std::string> by_;  // by stream: what it learnt last by
  std::set<std::pair<uint32_t, uint64_t>> asked_;
  std::map<std::pair<uint32_t, uint64_t>, Clock> kept_;
  std::unordered_map<uint64_t, uint32_t> stream_of_;  // of a rank
  std::map<Channel, std::vector<Clock>> sent_;
  std::map<Channel, size_t> received_;
  std::map<std::pair<uint64_t, uint64_t>, Posted> posted_;   // rank, request
  std::map<std::pair<std::string, uint64_t>, size_t> turn_;  // communicator, rank: collectives
  std::map<std::tuple<std::string, size_t, uint64_t>, Clock> arrived_;
};

void Seen::mpi(const feign_activity& a, const feign_op_info& info, uint64_t rank, Clock& mine) {
  const Values values(a, info, tables_);
  const std::string comm = values.text("comm");
  const bool later = values.has("request");
  const std::string_view name = info.name;
  const auto tag = [&](const char* of_two) {
    return values.number(values.has(of_two) ? of_two : "tag");
  };
  const Clock before = mine;
  if (values.has("dest"))
    sent_[{rank, values.number("dest"), tag("sendtag"), comm}].push_back(before);
  if (values.has("source") && name.find("robe") == std::string_view::npos) {
    const Channel channel{values.number("source"), rank, tag("recvtag"), comm};
    const Posted posted{channel, received_[channel]++};
    if (later)
      posted_[{rank, values.number("request")}] = posted;
    else
      received(mine, posted, info, a.stream);
  }
  if (name.starts_with("MPI_Wait")) {
    std::vector<uint64_t> requests = values.list("array_of_requests");
    if (values.has("request")) requests.push_back(values.number("request"));
    const bool some = name != "MPI_Wait" && name != "MPI_Waitall";
    for (const uint64_t request : requests) {
      constexpr uint64_t kDone = uint64_t{1} << 62;  // by those that wait for some only
      if (some && (request & kDone) == 0) continue;
      const auto at = posted_.find({rank, request & ~kDone});
      if (at == posted_.end()) continue;
      received(mine, at->second, info, a.stream);
      posted_.erase(at);
    }
  }
  const Learns what = learns(name);
  if (what == Learns::kNone || comm.empty()) return;
  const size_t turn = turn_[{comm, rank}]++;
  const uint64_t root = values.number("root");
  arrived_[{comm, turn, rank}] = before;
  const std::vector<int> all = members(comm);
  const bool from_root = what == Learns::kAllOfRoot;
  if (what == Learns::kRootOfAll && rank != root) return;
  for (const int member : all) {
    const auto other = static_cast<uint64_t>(member);
    if (other == rank || (from_root && other != root)) continue;
    if (const auto at = arrived_.find({comm, turn, other}); at != arrived_.end())
      learn(mine, at->second, info, a.stream);
    else if (const Clock* now = of_rank(other))
      learn(mine, Clock(*now), info, a.stream);  // it is in it, too, and its record comes later
  }
}

void Seen::pass(const Record& r, const feign_op_info& info) {
  const feign_activity& a = r.a;
  for (const Dependency& d : r.depends)
    if (const auto at = kept_.find({d.stream, d.id}); at != kept_.end())
      learn(clock(a.stream), at->second, info, a.stream);
  const feign_stream_info stream = tables_.streams.info(a.stream);
  if (strcmp(info.layer, "mpi") == 0 && stream.rank >= 0) {
    const auto rank = static_cast<uint64_t>(stream.rank);
    stream_of_.try_emplace(rank, a.stream);
    Clock mine = clock(a.stream);
    mpi(a, info, rank, mine);
    clock(a.stream) = std::move(mine);
  }
  uint32_t node = 0;
  uint64_t call = 0;
  if (counted(a, node, call) && node < index_.size() && index_[node] != UINT32_MAX) {
    const uint32_t me = index_[node];
    Clock& mine = clock(a.stream);
    for (uint32_t i = 0; i < nodes_; ++i) {
      if (i == me || mine[i] <= told_[me][i]) continue;
      orders.push_back(
          {me, i, call, mine[i] - 1, a.stream < by_.size() ? by_[a.stream] : std::string()});
    }
    join(told_[me], mine);
    mine[me] = std::max(mine[me], call + 1);
  }
  if (asked_.contains({a.stream, a.id})) kept_[{a.stream, a.id}] = clock(a.stream);
}

}  // namespace

Result<std::vector<SeenOrder>> seen_orders(const std::string& trace, const std::string& work,
                                           const std::vector<uint32_t>& index, Plugins& plugins) {
  const std::string ordered = work + "/seen.feign";
  if (auto made = quiet_pipeline(
          {spec("feign", {{"file", trace}}), spec("depend", {{"rules", "process+channel"}}),
           spec("feign", {{"file", ordered}})},
          plugins);
      !made)
    return std::move(made.error());
  Tables tables;
  auto reader = open_trace(ordered, tables);
  if (!reader) return std::move(reader.error());
  Seen seen(tables, index);
  for (const bool asking : {true, false}) {
    NativeReader::Cursor cursor(*reader, {});
    Record r;
    uint64_t number = 0;
    while (true) {
      auto more = cursor.next(r, number);
      if (!more) return std::move(more.error());
      if (!*more) break;
      const feign_op_info* info = tables.ops.info(r.a.op);
      if (info == nullptr) continue;
      if (asking)
        seen.ask(r);
      else
        seen.pass(r, *info);
    }
  }
  return std::move(seen.orders);
}

}  // namespace feign::discover
