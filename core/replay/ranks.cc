// SPDX-License-Identifier: MIT
#include "replay/ranks.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "base/clock.h"
#include "base/input.h"
#include "base/log.h"
#include "base/number.h"
#include "base/progress.h"

namespace feign {
namespace {

constexpr uint64_t kForEver = UINT64_MAX;
constexpr uint64_t kFarewell_ns = 1'500'000'000;
// What rank 0 has under way when a signal asks for an end takes no longer, or not its own time.
constexpr uint64_t kLastWord_ns = 8'500'000'000;

void nap(uint64_t ns) {
  const timespec t{static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
  nanosleep(&t, nullptr);
}

// A process that is there, and no zombie.
bool lives(int64_t process) {
  FILE* file = fopen(("/proc/" + std::to_string(process) + "/stat").c_str(), "re");
  if (file == nullptr) return false;
  char text[512];
  const size_t n = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  text[n] = '\0';
  const char* state = strrchr(text, ')');
  return state != nullptr && state[1] == ' ' && state[2] != 'Z' && state[2] != 'X';
}

}  // namespace

Launched launched() {
  // Open MPI's mpirun; srun and others with PMIx or PMI.
  constexpr const char* kPairs[][2] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                       {"PMIX_RANK", "SLURM_STEP_NUM_TASKS"},
                                       {"PMI_RANK", "PMI_SIZE"}};
  for (const auto& pair : kPairs) {
    const char *rank = getenv(pair[0]), *size = getenv(pair[1]);
    Launched l;
    if (rank == nullptr || size == nullptr || !to_number(rank, l.rank) ||
        !to_number(size, l.size) || l.rank >= l.size)
      continue;
    l.by = pair[1];
    return l;
  }
  return {};
}

Ranks::Ranks(std::unique_ptr<Instance> instance)
    : instance_(std::move(instance)), api_(instance_->api<feign_ranks>()) {
  api_.who(instance_->self(), &rank_, &size_);
}

Result<std::unique_ptr<Ranks>> Ranks::join(const Launched& by, Plugins& plugins, Tables& tables,
                                           bool shared) {
  const auto within = [&](Error error) {
    return std::move(error).within("started as one of several (" + by.by + "=" +
                                   std::to_string(by.size) + "), which plug-in mpi would join");
  };
  // Who waits in Open MPI keeps the processor from the thread that it waits for.
  if (shared) setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
  auto found = plugins.find("mpi", FEIGN_RANKS);
  if (!found) return within(std::move(found.error()));
  auto instance = Instance::create(*found, {}, tables);
  if (!instance) return within(std::move(instance.error()));
  std::unique_ptr<Ranks> ranks(new Ranks(std::move(*instance)));

  char name[256] = "?";
  gethostname(name, sizeof name - 1);
  const std::string mine = std::string(name) + " " + std::to_string(getpid());
  std::string text;
  for (const std::string& who : ranks->all_say(mine)) text += who + "\n";
  auto told = ranks->tell_all(text);
  if (!told) return std::move(told.error());
  for (size_t at = 0; at < told->size();) {
    const size_t end = told->find('\n', at), space = told->find(' ', at);
    ranks->hosts_.push_back(told->substr(at, space - at));
    ranks->processes_.push_back(ranks->hosts_.back() == name ? atoll(told->c_str() + space + 1)
                                                             : 0);
    at = end + 1;
  }
  return ranks;
}

Result<void> Ranks::send(uint32_t rank, Channel channel, const std::string& data) {
  const feign_status status = api_.send(instance_->self(), rank, channel, data.data(), data.size());
  if (status != FEIGN_OK) return instance_->not_ok("send()", status);
  return {};
}

bool Ranks::receive(Channel channel, uint32_t& from, std::string& data, uint64_t patience_ns) {
  struct Got {
    uint32_t* from;
    std::string* data;
  } got{&from, &data};
  const auto take = [](void* ctx, uint32_t rank, const void* bytes, size_t size) noexcept {
    auto* g = static_cast<Got*>(ctx);
    *g->from = rank;
    g->data->assign(static_cast<const char*>(bytes), size);
  };
  const uint64_t begin = now_ns();
  // Seldom, the longer it takes: the others may be planning or preparing on these processors.
  for (uint64_t pause = 1'000; true; pause = std::min<uint64_t>(pause * 2, 2'000'000)) {
    if (api_.receive(instance_->self(), channel, take, &got) == FEIGN_OK) return true;
    if (now_ns() - begin >= patience_ns) return false;
    // mpirun asks all to end when one is gone: what it would have said does not come.
    if (patience_ns == kForEver && g_stop_signal.load(std::memory_order_relaxed) != 0) {
      patience_ns = now_ns() - begin + kFarewell_ns;
    }
    nap(pause);
  }
}

std::vector<std::string> Ranks::all_say(const std::string& mine) {
  std::vector<std::string> all(size_);
  uint32_t heard = 0;
  gather(mine, kForEver, [&](uint32_t rank, const std::string& said) {
    all[rank] = said;
    ++heard;
  });
  if (rank_ == 0 && heard != size_) end_without("others do not come to say what they have done");
  return all;
}

void Ranks::end_without(const char* what) {
  log(FEIGN_LOG_ERROR, "rank " + std::to_string(rank_) + ": interrupted by signal " +
                           std::to_string(g_stop_signal.load()) + ", and " + what);
  constexpr int kBad = 2;
  abort(kBad);
}

Result<void> Ranks::agree(Result<void> mine) {
  const std::string text = mine ? std::string() : mine.error().text();
  const std::vector<std::string> all = all_say(text);
  std::string verdict;
  // Where all say the same, it is no rank's own.
  const bool same = std::all_of(all.begin(), all.end(), [&](const auto& t) { return t == all[0]; });
  for (uint32_t r = 0; r < size_ && verdict.empty(); ++r)
    if (!all[r].empty())
      verdict = (r == 0 || same ? "" : "rank " + std::to_string(r) + ": ") + all[r];
  auto told = tell_all(verdict);
  if (!told) return std::move(told.error());
  if (told->empty()) return {};
  return Error(mine ? FEIGN_ERR_IO : mine.error().code(), *told);
}

Result<std::string> Ranks::tell_all(const std::string& text) {
  if (rank_ == 0) {
    for (uint32_t r = 1; r < size_; ++r)
      if (auto sent = send(r, kTell, text); !sent) return std::move(sent.error());
    return text;
  }
  uint32_t from = 0;
  std::string data;
  if (receive(kTell, from, data, kForEver) || receive(kTell, from, data, kLastWord_ns)) return data;
  end_without("rank 0 does not come to say what is to be done");
}

void Ranks::barrier() { (void)api_.barrier(instance_->self()); }

void Ranks::gather(const std::string& mine, uint64_t patience_ns,
                   const std::function<void(uint32_t, const std::string&)>& take) {
  if (rank_ != 0) {
    (void)send(0, kGather, mine);
    return;
  }
  take(0, mine);
  uint32_t left = size_ - 1;
  std::vector<bool> there(size_);
  const auto give = [&](uint32_t rank, const std::string& data) {
    there[rank] = true;
    --left;
    take(rank, data);
  };
  early_.resize(size_);
  for (uint32_t r = 1; r < size_; ++r) {
    if (early_[r].empty()) continue;
    give(r, early_[r].front());
    early_[r].erase(early_[r].begin());
  }
  const uint64_t begin = now_ns();
  while (left != 0) {
    const uint64_t gone = patience_ns == kForEver ? 0 : std::min(patience_ns, now_ns() - begin);
    uint32_t from = 0;
    std::string data;
    if (!receive(kGather, from, data, patience_ns - gone)) return;
    if (there[from])
      early_[from].push_back(std::move(data));
    else
      give(from, data);
  }
}

void Ranks::stop_all(const std::string& why) {
  if (stops_ != nullptr) {
    Stop& mine = stops_[rank_];
    if (mine.said.load(std::memory_order_relaxed) != 0) return;
    mine.why[why.copy(mine.why, sizeof mine.why - 1)] = '\0';
    mine.said.store(1, std::memory_order_release);
    return;
  }
  for (uint32_t r = 0; r < size_; ++r)
    if (r != rank_) (void)send(r, kStop, why);
}

std::string Ranks::stopped_by() {
  uint32_t from = 0;
  std::string data;
  for (uint32_t r = 0; r < size_ && stops_ != nullptr && stopped_by_.empty(); ++r)
    if (r != rank_ && stops_[r].said.load(std::memory_order_acquire) != 0)
      stopped_by_ = "rank " + std::to_string(r) + " (" + hosts_[r] + "): " + stops_[r].why;
  if (stops_ == nullptr && stopped_by_.empty() && receive(kStop, from, data, 0))
    stopped_by_ = "rank " + std::to_string(from) + " (" + hosts_[from] + "): " + data;
  return stopped_by_;
}

uint64_t Ranks::went_on(uint64_t mine, uint64_t now, uint64_t every_ns) {
  mine = latest_ns_ = std::max(latest_ns_, mine);  // who is over, or waits, went on until then
  if (stops_ != nullptr) {
    stops_[rank_].went_on.store(mine, std::memory_order_relaxed);
    for (uint32_t r = 0; r < size_; ++r)
      mine = std::max(mine, stops_[r].went_on.load(std::memory_order_relaxed));
    return mine;
  }
  if (mine > said_ns_ && now >= said_ns_ + every_ns) {
    said_ns_ = now;
    for (uint32_t r = 0; r < size_; ++r)
      if (r != rank_) (void)send(r, kWentOn, "");
  }
  uint32_t from = 0;
  std::string data;
  while (receive(kWentOn, from, data, 0)) heard_ns_ = now;
  return std::max(mine, heard_ns_);
}

std::string Ranks::lost() const {
  for (uint32_t r = 0; r < size_; ++r)
    if (processes_[r] != 0 && !lives(processes_[r]))
      return "rank " + std::to_string(r) + " (process " + std::to_string(processes_[r]) + " on " +
             hosts_[r] + ") is gone";
  return {};
}

void Ranks::abort(int status) {
  api_.abort(instance_->self(), status);
  _exit(status);
}

void Ranks::one_thread(bool one, bool alone) {
  tell_threads(one ? 0 : 1);
  others_ = !one || alone;
}

void Ranks::expect_several() { tell_threads(1); }

void Ranks::tell_threads(int several) {
  // Elsewhere the main thread must be able to hear that the others end.
  if (stops_ != nullptr && FEIGN_HAS(&api_, threads) && api_.threads != nullptr)
    api_.threads(instance_->self(), several);
}

// ---- dependencies -------------------------------------------------------------------------------

Result<void> Ranks::look_for_needs(const std::shared_ptr<const NativeReader>& plan,
                                   const std::vector<uint32_t>& mine,
                                   const std::vector<uint32_t>& rank_of, const Tables& tables,
                                   Needs& needs) {
  const auto& counts = plan->totals().by_stream;
  calls_mpi_.assign(rank_of.size(), 0);
  if (mine.empty()) return {};
  NativeReader::Range range;
  range.streams = mine;
  NativeReader::Cursor cursor(plan, range);
  Record r{};
  uint64_t number = 0;
  while (true) {
    auto more = cursor.next(r, number);
    if (!more) return std::move(more.error());
    if (!*more) return {};
    if (const feign_op_info* info = tables.ops.info(r.a.op); info != nullptr)
      calls_mpi_[r.a.stream] |= std::string_view(info->layer).starts_with("mpi");
    for (const Dependency& d : r.depends) {
      if (d.stream >= rank_of.size()) continue;
      if (rank_of[d.stream] == rank_)
        ordered_ = true;
      else if (counts[d.stream] != 0)
        needs[rank_of[d.stream]][d.stream].push_back(d.id);
    }
  }
}

Result<void> Ranks::link(const std::shared_ptr<const NativeReader>& plan,
                         const std::vector<uint32_t>& mine, const std::vector<uint32_t>& rank_of,
                         const Tables& tables) {
  struct Need {
    uint32_t stream, reserved;
    uint64_t id;
  };
  Needs needs(size_);
  // Others wait for what this one needs, whether it can be read or not.
  const Result<void> read = look_for_needs(plan, mine, rank_of, tables, needs);
  streams_ = static_cast<uint32_t>(rank_of.size());
  awaited_.assign(streams_, {});
  passed_ = std::make_unique<std::atomic<uint64_t>[]>(streams_);
  for (uint32_t r = 0; r < size_; ++r) {
    if (r == rank_) continue;
    std::string bytes;
    for (auto& [stream, ids] : needs[r]) {
      std::sort(ids.begin(), ids.end());
      ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
      for (const uint64_t id : ids) {
        const Need need{stream, 0, id};
        bytes.append(reinterpret_cast<const char*>(&need), sizeof need);
      }
    }
    if (auto sent = send(r, kLink, bytes); !sent) return sent;
  }
  for (uint32_t left = size_ - 1; left != 0; --left) {
    uint32_t from = 0;
    std::string bytes;
    if (!receive(kLink, from, bytes, kForEver)) break;
    for (size_t at = 0; at + sizeof(Need) <= bytes.size(); at += sizeof(Need)) {
      Need need;
      memcpy(&need, bytes.data() + at, sizeof need);
      if (need.stream < streams_) awaited_[need.stream].push_back({need.id, from});
    }
  }
  for (auto& list : awaited_)
    std::sort(list.begin(), list.end(),
              [](const Awaited& a, const Awaited& b) { return a.id < b.id; });
  near_.assign(streams_, 0);
  for (const std::string& h : hosts_) near_ranks_.push_back(h == hosts_[rank_]);
  for (uint32_t s = 1; s < streams_; ++s) near_[s] = near_ranks_[rank_of[s]];
  if (!FEIGN_HAS(&api_, share) || api_.share == nullptr) return read;
  const size_t stops = size_ * sizeof(Stop);
  const size_t uptos = streams_ * sizeof(Upto);
  auto* memory = static_cast<char*>(
      api_.share(instance_->self(), stops + uptos + FEIGN_RUN_COMMON + alignof(Stop)));
  if (memory == nullptr) return read;
  memory += -reinterpret_cast<uintptr_t>(memory) % alignof(Stop);
  upto_ = reinterpret_cast<Upto*>(memory + stops);
  common_ = memory + stops + uptos;
  if (std::all_of(hosts_.begin(), hosts_.end(), [&](const auto& h) { return h == hosts_[0]; }))
    stops_ = reinterpret_cast<Stop*>(memory);
  return read;
}

bool Ranks::race(const std::vector<uint32_t>& mine, const RankMap& map) const {
  const auto callers =
      std::count_if(mine.begin(), mine.end(), [&](uint32_t s) { return calls_mpi(s); });
  return !ordered_ && callers > std::count(map.by_recorded.begin(), map.by_recorded.end(), rank_);
}

namespace {
struct Passed {
  uint32_t stream, reserved;
  uint64_t id;
};
}  // namespace

void Ranks::carry_on() {
  if (!others_) return;
  (void)api_.receive(
      instance_->self(), kNothing, [](void*, uint32_t, const void*, size_t) noexcept {}, nullptr);
}

void Ranks::passed(uint32_t rank, uint32_t stream, uint64_t id) {
  if (upto_ != nullptr && near_ranks_[rank])
    return upto_[stream].id.store(id, std::memory_order_release);
  const Passed message{stream, 0, id};
  (void)api_.send(instance_->self(), rank, kPassed, &message, sizeof message);
}

bool Ranks::has_passed(uint32_t stream, uint64_t id) {
  if (stream >= streams_) return true;
  if (upto_ != nullptr && near_[stream])
    return upto_[stream].id.load(std::memory_order_acquire) >= id;
  if (passed_[stream].load(std::memory_order_acquire) >= id) return true;
  const auto take = [](void* ctx, uint32_t, const void* data, size_t size) noexcept {
    auto* self = static_cast<Ranks*>(ctx);
    Passed message;
    if (size != sizeof message) return;
    memcpy(&message, data, sizeof message);
    if (message.stream >= self->streams_) return;
    auto& upto = self->passed_[message.stream];
    uint64_t was = upto.load(std::memory_order_relaxed);
    while (was < message.id &&
           !upto.compare_exchange_weak(was, message.id, std::memory_order_acq_rel)) {
    }
  };
  while (api_.receive(instance_->self(), kPassed, take, this) == FEIGN_OK)
    if (passed_[stream].load(std::memory_order_acquire) >= id) return true;
  return false;
}

// ---- which rank does what -----------------------------------------------------------------------

namespace {

// "3" or "0-7".
bool parse_range(const std::string& text, uint32_t& first, uint32_t& last) {
  const size_t dash = text.find('-');
  if (!to_number(text.substr(0, dash), first)) return false;
  last = first;
  return dash == std::string::npos || (to_number(text.substr(dash + 1), last) && first <= last);
}

Result<std::vector<uint32_t>> map_of_file(const std::string& name, uint32_t recorded,
                                          uint32_t size) {
  auto input = Input::open(name);
  if (!input)
    return Error(input.error().code(),
                 "--map: " + input.error().text() +
                     ": want block, cyclic, or a file of lines RECORDED[-RECORDED] RANK");
  std::vector<uint32_t> map(recorded, UINT32_MAX);
  Lines lines(std::move(*input));
  std::string_view line;
  while (true) {
    auto more = lines.next(line);
    if (!more) return std::move(more.error()).within("--map");
    if (!*more) break;
    const std::string at = name + ":" + std::to_string(lines.number()) + ": ";
    std::string text(line.substr(0, line.find('#')));
    const size_t begin = text.find_first_not_of(" \t\r");
    if (begin == std::string::npos) continue;
    const size_t space = text.find_first_of(" \t", begin);
    const size_t second = text.find_first_not_of(" \t", std::min(space, text.size()));
    const size_t end = text.find_last_not_of(" \t\r");
    uint32_t first = 0, last = 0, to = 0;
    if (space == std::string::npos || second == std::string::npos ||
        !parse_range(text.substr(begin, space - begin), first, last) ||
        !to_number(text.substr(second, end + 1 - second), to))
      return Error(FEIGN_ERR_ARGUMENT,
                   at + "\"" + std::string(line) + "\": want RECORDED REPLAY, such as 0-3 0");
    if (last >= recorded)
      return Error(FEIGN_ERR_ARGUMENT, at + "recorded rank " + std::to_string(last) +
                                           ": the trace has 0 to " + std::to_string(recorded - 1));
    if (to >= size)
      return Error(FEIGN_ERR_ARGUMENT, at + "replay rank " + std::to_string(to) +
                                           ": there are 0 to " + std::to_string(size - 1));
    for (uint32_t r = first; r <= last; ++r) map[r] = to;
  }
  for (uint32_t r = 0; r < recorded; ++r)
    if (map[r] == UINT32_MAX)
      return Error(FEIGN_ERR_ARGUMENT,
                   name + ": says nothing of recorded rank " + std::to_string(r));
  return map;
}

}  // namespace

Result<RankMap> map_ranks(const std::string& how, const Tables& tables, uint32_t size) {
  const uint32_t streams = tables.streams.size();
  // Streams that fork or clone made belong to where the first of them does.
  std::vector<feign_stream_info> infos(streams);
  bool any = false;
  uint32_t recorded = 0;
  for (uint32_t s = 1; s < streams; ++s) {
    infos[s] = tables.streams.info(s);
    if (infos[s].rank < 0) continue;
    any = true;
    if (infos[s].rank >= 1 << 20)
      return Error(FEIGN_ERR_ARGUMENT,
                   "the trace has a rank " + std::to_string(infos[s].rank) + ": want fewer");
    recorded = std::max(recorded, static_cast<uint32_t>(infos[s].rank) + 1);
  }
  // Those above ranks, such as a shell that starts one, belong to it if there is but one.
  constexpr int32_t kNone = -1, kSeveral = -2;
  std::vector<int32_t> below(streams, kNone);
  for (uint32_t s = 1; s < streams; ++s)
    for (uint32_t at = s, steps = 0; infos[s].rank >= 0 && steps < streams; ++steps) {
      at = infos[at].parent;
      if (at == 0 || at >= streams || infos[at].rank >= 0 || below[at] == infos[s].rank) break;
      below[at] = below[at] == kNone ? infos[s].rank : kSeveral;
    }
  std::vector<uint32_t> unit(streams, 0);
  std::map<std::pair<uint32_t, int64_t>, uint32_t> processes;
  for (uint32_t s = 1; s < streams; ++s) {
    uint32_t at = s;
    for (uint32_t steps = 0; steps < streams; ++steps) {
      if (infos[at].rank >= 0 || below[at] >= 0 || infos[at].parent == 0 ||
          infos[at].parent >= streams)
        break;
      at = infos[at].parent;
    }
    if (const int32_t rank = std::max(infos[at].rank, below[at]); rank >= 0) {
      unit[s] = static_cast<uint32_t>(rank);
    } else if (!any) {
      const int64_t process = infos[at].process >= 0 ? infos[at].process : -int64_t{at};
      const auto next = static_cast<uint32_t>(processes.size());
      unit[s] = processes.try_emplace({infos[at].host, process}, next).first->second;
    }
  }
  if (!any) recorded = static_cast<uint32_t>(processes.size());

  RankMap map;
  map.by_recorded.resize(recorded);
  if (how.empty() && recorded > size)
    return Error(FEIGN_ERR_ARGUMENT,
                 "the trace has " + std::to_string(recorded) + (any ? " ranks" : " processes") +
                     ", and " + std::to_string(size) + " replay it: want mpirun -np " +
                     std::to_string(recorded) + ", or --map block, cyclic or FILE");
  if (how.empty()) {
    for (uint32_t r = 0; r < recorded; ++r) map.by_recorded[r] = r;
  } else if (how == "block") {
    for (uint32_t r = 0; r < recorded; ++r)
      map.by_recorded[r] = static_cast<uint32_t>(uint64_t{r} * size / recorded);
  } else if (how == "cyclic") {
    for (uint32_t r = 0; r < recorded; ++r) map.by_recorded[r] = r % size;
  } else {
    auto read = map_of_file(how, recorded, size);
    if (!read) return std::move(read.error());
    map.by_recorded = std::move(*read);
  }
  map.by_stream.resize(streams);
  for (uint32_t s = 1; s < streams; ++s) map.by_stream[s] = map.by_recorded[unit[s]];
  if (!any) map.by_recorded.clear();
  return map;
}

}  // namespace feign
