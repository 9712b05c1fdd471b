// SPDX-License-Identifier: MIT
#include "replay/run.h"

#include <sched.h>

#include <algorithm>
#include <string_view>
#include <system_error>

#include "trace/effects.h"
#include "trace/mpi_args.h"

namespace feign {
namespace {

// What pace timed gives everybody to get ready.
constexpr uint64_t kLead_ns = 1'000'000;
// Waits that are kept for the critical path, over all workers.
constexpr size_t kWaitsKept = size_t{1} << 18;

// Processors that are not other ranks': how many.
uint32_t own_processors(const Team* team) {
  size_t ranks = 1;
  if (team != nullptr) {
    const auto& hosts = team->ranks.hosts();
    ranks = static_cast<size_t>(std::count(hosts.begin(), hosts.end(), hosts[team->ranks.rank()]));
  }
  return static_cast<uint32_t>(processors().size() / ranks);
}

bool names(const feign_replayer& api, const char* layer) {
  for (const char* const* l = api.layers; l != nullptr && *l != nullptr; ++l)
    if (std::string_view(*l) == layer) return true;
  return false;
}
// Modes of system calls are as recorded, with the recorded umask taken off. A library's call makes
// files by itself, and leaves the rest to the umask: by the usual one, none is everybody's to
// write. MPI's messages make none.
int32_t umask_for(const feign_op_info* info) {
  const std::string_view layer = info != nullptr ? info->layer : "mpi";
  return layer == "posix" || layer == "stdio" ? 0 : layer == "mpi" ? -1 : int32_t{kUsualUmask};
}

feign_status skip(void*, void*, const feign_activity*, feign_outcome* outcome) noexcept {
  outcome->doing = FEIGN_SKIPPED;
  outcome->why = "of a layer that no replayer serves";
  return FEIGN_OK;
}

}  // namespace

bool serves(const feign_replayer& api, const char* layer) {
  return api.layers == nullptr || names(api, layer);
}

std::vector<int> processors() {
  cpu_set_t set;
  std::vector<int> list;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int i = 0; i < CPU_SETSIZE; ++i)
      if (CPU_ISSET(i, &set)) list.push_back(i);
  if (list.empty()) list.push_back(0);
  return list;
}

Run::Run(std::shared_ptr<const NativeReader> plan, const ReplayOptions& options,
         const std::vector<Instance*>& replayers, int root_fd, Tables& tables,
         ActivityLog* activities, const Team* team)
    : plan(std::move(plan)),
      options(options),
      replayers(replayers),
      root_fd(root_fd),
      tables(tables),
      team(team),
      pause(options.passing(), own_processors(team)),
      places(tables.streams.size()),
      activities(activities),
      fork_rule(tables.strings.intern("fork")),
      process_rule(tables.strings.intern("process")),
      turn_rule(tables.strings.intern("trace")) {
  // MPI's own files lie elsewhere, and its ranks read each other's memory, which the wall
  // forbids.
  second_wall = root_fd >= 0;
  for (const Instance* r : replayers)
    if (names(r->api<feign_replayer>(), "mpiio")) second_wall = false;
  doers.resize(tables.ops.size());
  const char* layer = nullptr;  // of the op before: mostly the same
  for (uint32_t op = 0; op < doers.size(); ++op) {
    const feign_op_info* const info = tables.ops.info(op);
    const bool same = info != nullptr && info->layer == layer;
    doers[op] = same ? doers[op - 1] : doer_of(info);
    layer = info != nullptr ? info->layer : nullptr;
  }
}

Run::Doer Run::doer_of(const feign_op_info* info) const {
  for (uint32_t slot = 0; info != nullptr && slot < replayers.size(); ++slot)
    if (const auto& api = replayers[slot]->api<feign_replayer>(); serves(api, info->layer))
      return {api.execute, replayers[slot]->self(), slot, umask_for(info)};
  return {skip, nullptr, 0, -1};
}

bool Run::may_wait_for_ranks(uint32_t op) const {
  const feign_op_info* info = tables.ops.info(op);
  const std::string_view layer = info != nullptr ? info->layer : "";
  if (layer == "mpiio") return mpi::does_of(op) != Does::kNothing;
  return layer != "posix" && layer != "stdio";
}

bool Run::makes_mpi() const {
  return team != nullptr && std::any_of(replayers.begin(), replayers.end(), [](const Instance* r) {
           return names(r->api<feign_replayer>(), "mpi");
         });
}

// A stream gets a worker of its own while there may be more of them. Then it goes to the one whose
// streams have been over for longest when it begins, or, if none is free, to the one with the
// fewest activities. One that calls MPI shares its worker with nobody: it may wait there for a rank
// that waits for another stream of this one.
void Run::share(size_t most) {
  const auto& counts = plan->totals().by_stream;
  const auto& spans = plan->totals().spans;
  std::vector<uint32_t> streams;
  for (uint32_t s = 1; s < counts.size(); ++s)
    if (counts[s] != 0 && mine(s)) streams.push_back(s);
  many = streams.size() > 1;
  std::sort(streams.begin(), streams.end(),
            [&](uint32_t a, uint32_t b) { return spans[a].first < spans[b].first; });
  struct Share {
    std::vector<uint32_t> streams;
    uint64_t end = 0, activities = 0;
    bool calls_mpi = false;
  };
  std::vector<Share> shares;
  bool shared = false;  // some worker may get more streams
  for (const uint32_t s : streams) {
    size_t to = shares.size();
    const bool alone = makes_mpi() && team->ranks.calls_mpi(s);
    if (to >= most && !alone && shared) {
      const auto better = [&](const Share& a, const Share& b) {
        if (a.calls_mpi != b.calls_mpi) return b.calls_mpi;
        const bool a_free = a.end < spans[s].first, b_free = b.end < spans[s].first;
        if (a_free != b_free) return a_free;
        return a_free ? a.end < b.end : a.activities < b.activities;
      };
      to = static_cast<size_t>(std::min_element(shares.begin(), shares.end(), better) -
                               shares.begin());
    } else {
      shares.emplace_back();
      shared |= !alone;
    }
    Share& share = shares[to];
    share.calls_mpi = alone;
    places[s] = {static_cast<uint32_t>(to), static_cast<uint32_t>(share.streams.size())};
    share.streams.push_back(s);
    share.end = std::max(share.end, spans[s].second);
    share.activities += counts[s];
  }
  for (Share& share : shares) {
    const auto number = static_cast<uint32_t>(workers.size());
    const size_t kept = std::max<size_t>(kWaitsKept / shares.size(), 64);
    workers.push_back(std::make_unique<Worker>(*this, number, std::move(share.streams), kept));
  }
  in_turn = options.order == Order::kTrace && workers.size() > 1;
  waits.emplace(workers.size(), tables);
}

// Starts the workers, and the clock when all are ready. Where no more threads are to be had, that
// is the run's failure.
void Run::start() {
  {
    const std::lock_guard lock(mutex);
    running = getting_ready = workers.size();
  }
  for (size_t i = 0; i < workers.size(); ++i) {
    try {
      workers[i]->start();
    } catch (const std::system_error& e) {
      fail(Error(FEIGN_ERR_IO, "start thread " + std::to_string(i + 1) + " of " +
                                   std::to_string(workers.size()) + ": " + e.code().message() +
                                   "; --streams-per-core 1 wants fewer"));
      const std::lock_guard lock(mutex);
      running -= workers.size() - i;
      getting_ready -= workers.size() - i;
      break;
    }
  }
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return getting_ready == 0; });
  if (team != nullptr) {
    team->ranks.barrier();
    // Locks cost more than a short message.
    size_t callers = 0;
    for (const auto& w : workers) callers += w->calls_mpi();
    if (callers <= 1) team->ranks.one_thread(true, workers.size() == 1);
  }
  counter.begin();
  anchor_ns = now_ns() + (options.pace == Pace::kTimed ? kLead_ns : 0);
  started.open(1);
}

}  // namespace feign
