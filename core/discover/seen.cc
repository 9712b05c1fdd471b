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
#include <utility>

#include "discover/calls.h"
#include "trace/native.h"

namespace feign::discover {
namespace {

using Clock = std::vector<uint64_t>;  // by node: calls that had ended

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

  // A call of MPI that a stream is in.
  struct UnderWay {
    const char* name = nullptr;
    std::vector<Posted> received;
    std::string comm;
    size_t turn = 0;
    std::vector<uint64_t> with;  // ranks that it learns from
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
  void learn(const Clock& other, const char* by, uint32_t stream) {
    Clock& mine = clock(stream);
    bool more = false;
    for (size_t i = 0; i < mine.size(); ++i) more |= other[i] > mine[i];
    if (!more) return;
    for (size_t i = 0; i < mine.size(); ++i) mine[i] = std::max(mine[i], other[i]);
    if (stream >= by_.size()) by_.resize(stream + size_t{1});
    by_[stream] = by;
  }
  // Who has not been met where he sends, or comes to a collective, has done nothing since.
  void learn(const Clock* told, uint64_t rank, const char* by, uint32_t stream) {
    if (told == nullptr) told = of_rank(rank);
    if (told != nullptr) learn(Clock(*told), by, stream);
  }
  void begin(const feign_activity& a, const feign_op_info& info, uint64_t rank);
  void end(uint32_t stream);

  const Tables& tables_;
  const std::vector<uint32_t>& index_;
  size_t nodes_ = 0;
  std::vector<Clock> clocks_;        // by stream
  std::vector<UnderWay> under_way_;  // by stream
  std::vector<Clock> told_;          // by node: what orders say already
  std::vector<std::string> by_;      // by stream: what it learnt last by
  std::set<std::pair<uint32_t, uint64_t>> asked_;
  std::map<std::pair<uint32_t, uint64_t>, Clock> kept_;
  std::unordered_map<uint64_t, uint32_t> stream_of_;  // of a rank
  std::map<Channel, std::vector<Clock>> sent_;
  std::map<Channel, size_t> received_;
  std::map<std::pair<uint64_t, uint64_t>, Posted> posted_;   // rank, request
  std::map<std::pair<std::string, uint64_t>, size_t> turn_;  // communicator, rank: collectives
  std::map<std::tuple<std::string, size_t, uint64_t>, Clock> arrived_;
};

// What a call of MPI tells others it tells as it begins.
void Seen::begin(const feign_activity& a, const feign_op_info& info, uint64_t rank) {
  const Values values(a, info, tables_);
  const std::string comm = values.text("comm");
  const std::string_view name = info.name;
  const auto tag = [&](const char* of_two) {
    return values.number(values.has(of_two) ? of_two : "tag");
  };
  if (a.stream >= under_way_.size()) under_way_.resize(a.stream + size_t{1});
  UnderWay& mine = under_way_[a.stream];
  mine.name = info.name;
  if (values.has("dest"))
    sent_[{rank, values.number("dest"), tag("sendtag"), comm}].push_back(clock(a.stream));
  if (values.has("source") && name.find("robe") == std::string_view::npos) {
    const Channel channel{values.number("source"), rank, tag("recvtag"), comm};
    const Posted posted{channel, received_[channel]++};
    if (values.has("request"))
      posted_[{rank, values.number("request")}] = posted;
    else
      mine.received.push_back(posted);
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
      mine.received.push_back(at->second);
      posted_.erase(at);
    }
  }
  const Learns what = learns(name);
  if (what == Learns::kNone || comm.empty()) return;
  const uint64_t root = values.number("root");
  mine.comm = comm;
  mine.turn = turn_[{comm, rank}]++;
  arrived_[{comm, mine.turn, rank}] = clock(a.stream);
  if (what == Learns::kRootOfAll && rank != root) return;
  for (const int member : members(comm)) {
    const auto other = static_cast<uint64_t>(member);
    if (other != rank && (what != Learns::kAllOfRoot || other == root)) mine.with.push_back(other);
  }
}

// What it learns itself it has learnt when the stream goes on; its record may come before that.
void Seen::end(uint32_t stream) {
  if (stream >= under_way_.size() || under_way_[stream].name == nullptr) return;
  const UnderWay mine = std::exchange(under_way_[stream], {});
  for (const Posted& p : mine.received) {
    const auto& sent = sent_[p.channel];
    learn(p.number < sent.size() ? &sent[p.number] : nullptr, std::get<0>(p.channel), mine.name,
          stream);
  }
  for (const uint64_t other : mine.with) {
    const auto at = arrived_.find({mine.comm, mine.turn, other});
    learn(at != arrived_.end() ? &at->second : nullptr, other, mine.name, stream);
  }
}

void Seen::pass(const Record& r, const feign_op_info& info) {
  const feign_activity& a = r.a;
  if (FEIGN_DEPTH(a.marks) == 0) end(a.stream);
  for (const Dependency& d : r.depends)
    if (const auto at = kept_.find({d.stream, d.id}); at != kept_.end())
      learn(at->second, info.name, a.stream);
  const feign_stream_info stream = tables_.streams.info(a.stream);
  if (strcmp(info.layer, "mpi") == 0 && stream.rank >= 0 && FEIGN_DEPTH(a.marks) == 0) {
    stream_of_.try_emplace(static_cast<uint64_t>(stream.rank), a.stream);
    begin(a, info, static_cast<uint64_t>(stream.rank));
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
    told_[me] = mine;
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
