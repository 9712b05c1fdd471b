// SPDX-License-Identifier: MIT
#include "replay/replay.h"

#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <system_error>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/jail.h"
#include "base/log.h"
#include "replay/gate.h"
#include "replay/nesting.h"
#include "replay/path.h"
#include "replay/pause.h"
#include "replay/wait_file.h"
#include "replay/waits.h"
#include "trace/mpi_args.h"

namespace feign {
namespace {

// Where nobody says how many threads there may be.
constexpr size_t kMostWorkers = 256;
// What pace timed gives everybody to get ready.
constexpr uint64_t kLead_ns = 1'000'000;
// Waits that are kept for the critical path, over all workers.
constexpr size_t kWaitsKept = size_t{1} << 18;
constexpr uint32_t kNobody = UINT32_MAX;
// A sleep ends late by what a processor takes to wake up. The next pauses are shorter for it, or a
// program with many short ones would seem slower than it is. More is no wake-up but a busy machine.
constexpr uint64_t kMostMadeUp_ns = 1'000'000;
// A replay by several ranks gives a call, or a wait for another rank, at least this long.
constexpr uint64_t kPatience_ns = 60'000'000'000;
// So many activities, over all workers and ranks, are read before the clock starts: of 240 bytes.
constexpr size_t kReadAhead = size_t{1} << 18;
constexpr size_t kPage = 4096;
constexpr size_t kReadyHeap = 96 << 10;  // less than what malloc() gives back at once
// How long a rank that has to end waits for its own calls under way.
constexpr uint64_t kGrace_ns = 2'000'000'000;

// The processors that this process may use.
std::vector<int> processors() {
  cpu_set_t set;
  std::vector<int> list;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int i = 0; i < CPU_SETSIZE; ++i)
      if (CPU_ISSET(i, &set)) list.push_back(i);
  if (list.empty()) list.push_back(0);
  return list;
}

// … and which are not other ranks': how many.
uint32_t own_processors(const Team* team) {
  size_t ranks = 1;
  if (team != nullptr) {
    const auto& hosts = team->ranks.hosts();
    ranks = static_cast<size_t>(std::count(hosts.begin(), hosts.end(), hosts[team->ranks.rank()]));
  }
  return static_cast<uint32_t>(processors().size() / ranks);
}

// This thread runs on one of them only.
void pin(uint32_t number) {
  const std::vector<int> list = processors();
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(list[number % list.size()], &set);
  (void)sched_setaffinity(0, sizeof set, &set);
}

class Run;

constexpr size_t kMostReplayers = 4;

bool names(const feign_replayer& api, const char* layer) {
  for (const char* const* l = api.layers; l != nullptr && *l != nullptr; ++l)
    if (std::string_view(*l) == layer) return true;
  return false;
}
// Who names none serves all.
bool serves(const feign_replayer& api, const char* layer) {
  return api.layers == nullptr || names(api, layer);
}

// A worker's activities, in order. Reading one from the plan takes a tenth of what a short call
// takes, so that the first of them are read before the clock starts. These stay, with what came of
// them, to be counted when it has stopped.
class Feed {
 public:
  struct Next {
    feign_activity a;
    uint64_t number;  // in the whole trace
    std::span<const Dependency> depends;
    feign_outcome outcome;
    uint64_t latency_ns;
    bool over = false;  // and then these two tell what came of it
    // It comes after another of its stream, and before one that does not lie in it; it waits for
    // nobody. Then there is nothing to do around its call where there is no pause.
    bool plain = false;
  };
  Feed(std::shared_ptr<const NativeReader> plan, NativeReader::Range range)
      : cursor_(std::move(plan), std::move(range)) {}
  // Reads as many ahead, if there are.
  Result<void> read_ahead(size_t count) {
    ahead_.reserve(count);
    // All of that memory at once: by a fault a page, it would take longer than reading does.
    const auto at = reinterpret_cast<uintptr_t>(ahead_.data()) & ~uintptr_t{kPage - 1};
    (void)madvise(reinterpret_cast<void*>(at), count * sizeof(Next), MADV_POPULATE_WRITE);
    while (ahead_.size() < count) {
      auto more = read(ahead_.emplace_back());
      if (!more) return std::move(more.error());
      if (!*more) {
        ahead_.pop_back();
        break;
      }
      Next& one = ahead_.back();
      one.a.values = values_.keep({one.a.values, one.a.value_count}).data();
      one.depends = depends_.keep(one.depends);
      if (ahead_.size() > 2) look_at(&one - 1);
    }
    next_ahead_ = ahead_.data();
    end_ahead_ = next_ahead_ + ahead_.size();
    return {};
  }
  // The next one; null at the end, or where that failed. Valid until the next call.
  Next* next() {
    if (next_ahead_ != end_ahead_) {
      Next* const next = next_ahead_++;
      // The one after it comes into the cache while this call is made.
      __builtin_prefetch(&next[1].a);
      __builtin_prefetch(&next[1].a.id);
      return next;
    }
    stays_ = false;
    auto more = read(next_);
    if (!more) failure_ = std::move(more.error());
    return more && *more ? &next_ : nullptr;
  }
  std::optional<Error>& failure() { return failure_; }
  // Whether the one that was given last stays.
  bool stays() const { return stays_; }
  // Those that were given and stay.
  std::span<const Next> given() const { return {ahead_.data(), next_ahead_}; }

 private:
  // Copies that stay where they are: of what is read ahead, all in a few pieces of memory.
  template <typename T>
  class Copies {
   public:
    std::span<const T> keep(std::span<const T> of) {
      if (of.empty()) return {};
      if (left_ < of.size()) {
        left_ = std::max(of.size(), kPiece);
        pieces_.push_back(std::make_unique_for_overwrite<T[]>(left_));
        next_ = pieces_.back().get();
      }
      T* const to = next_;
      std::copy(of.begin(), of.end(), to);
      next_ += of.size();
      left_ -= of.size();
      return {to, of.size()};
    }

   private:
    static constexpr size_t kPiece = 4096;
    std::vector<std::unique_ptr<T[]>> pieces_;
    T* next_ = nullptr;
    size_t left_ = 0;
  };

  static void look_at(Next* one) {
    const feign_activity &before = one[-1].a, &a = one->a, &after = one[1].a;
    one->plain = before.stream == a.stream && a.stream == after.stream &&
                 (a.marks & FEIGN_DEPENDS) == 0 && FEIGN_DEPTH(a.marks) == 0 &&
                 FEIGN_DEPTH(after.marks) == 0 && a.start_ns + a.duration_ns <= after.start_ns;
  }
  Result<bool> read(Next& to) {
    auto more = cursor_.next(record_, to.number);
    if (!more || !*more) return more;
    to.a = record_.a;
    to.depends = record_.depends;
    return true;
  }

  NativeReader::Cursor cursor_;
  std::vector<Next> ahead_;
  Copies<uint64_t> values_;
  Copies<Dependency> depends_;
  Next *next_ahead_ = nullptr, *end_ahead_ = nullptr;
  bool stays_ = true;
  std::optional<Error> failure_;
  Record record_{};
  Next next_{};
};

// One thread of the replay, with statistics of its own. It takes the activities of its streams in
// the order of the trace.
//
// That no two of them can wait for each other: whatever an activity waits for (a dependency, the
// fork that made its stream, its turn) comes before it in the trace, and each worker takes the
// first activity left of its streams. So the first of all that are left waits for nothing, and the
// worker whose it is has taken it. (Numbers in a damaged plan may say otherwise: see Waits.)
class Worker {
 public:
  Worker(Run& run, uint32_t number, std::vector<uint32_t> streams, size_t waits_kept)
      : run_(run), number_(number), numbers_(std::move(streams)), waited_(waits_kept) {}
  void start() {
    thread_ = std::thread([this] { main(); });
  }
  void join() {
    if (thread_.joinable()) thread_.join();
  }
  void merge_into(Report& report, const Tables& tables);
  // Since when, by the clock, it has been at one activity, and which; 0: between two.
  uint64_t busy_since() const { return busy_.since.load(std::memory_order_relaxed); }
  // When it last did what is no waiting for others, as far as can be told: it is between two calls,
  // or in one that needs nobody else.
  uint64_t went_on_at(uint64_t now) const;
  std::string busy_with(const Tables& tables) const;
  bool calls_mpi() const;
  bool over() const { return over_.load(std::memory_order_acquire); }
  void leave_behind() { thread_.detach(); }
  WorkerTime time() const { return {first_ns_, last_ns_, last_stream_, &timeline_, &waited_}; }

  // Every activity of its streams up to this id has ended.
  Gate gate;

 private:
  struct Stream {
    std::array<void*, kMostReplayers> contexts{};
    bool open = false;
    bool inside = false;            // made by a call that was done: all of it is done by that
    size_t told = 0;                // of what other ranks wait for …
    uint64_t to_tell = UINT64_MAX;  // … and the id of the first that is left
    uint64_t left = 0;              // activities
    uint64_t last_ns = 0;           // the end of its last activity
    uint64_t skipped_ns = 0;    // recorded time in calls that are not made: part of the next pause
    uint64_t overslept_ns = 0;  // by which pauses were too long: the next ones make up for it
    Nesting nesting;
    StreamReport report;
  };

  void main();
  // What replays of one kind have in common.
  struct Way {
    bool timed, paced, busy, in_turn, alone, team;
    bool waits_in_order;  // for the others as such, not for as long as it did then
    uint64_t rest;        // the progress line is told of this many more at once
    uint64_t trace_begin_ns;
    double scale;
    uint64_t scaled(uint64_t ns) const {
      return static_cast<uint64_t>(static_cast<double>(ns) * scale);
    }
  };
  // The activity at hand.
  struct Step {
    Stream* stream = nullptr;
    bool done_already = false;  // by the call that it is part of
    uint64_t due = 0;
  };
  Way way() const;
  Result<void> loop(Feed& feed);
  Result<bool> come_to(const Way& way, const Feed::Next& next, Step& step);
  void sleep_until_due(const Way& way, const feign_activity& a, Step& step);
  Result<void> make(const Way& way, Feed::Next& next, const Step& step);
  Result<void> open(Stream& s, const feign_activity& a);
  void close(Stream& s);
  void close(Stream& s, size_t replayer);
  void wait_for(uint32_t worker, uint32_t stream, uint64_t id, uint32_t rule, Stream& s,
                const feign_activity& a);
  void wait_for_others(const Feed::Next& next, Stream& s);
  void wait_for_turn(uint64_t number, Stream& s, const feign_activity& a);
  void wait_for_rank(uint32_t stream, uint64_t id, uint32_t rule, Stream& s,
                     const feign_activity& a);
  void tell_ranks(Stream& s, uint32_t stream, uint64_t upto);
  void wait(Gate& gate, uint64_t until, Wait wait, Stream& s, const feign_activity& a);
  void get_ready();
  // The main thread may look at what it does.
  void watch(const feign_activity& a) {
    busy_.op.store(a.op, std::memory_order_relaxed);
    busy_.stream.store(a.stream, std::memory_order_relaxed);
    busy_.place.store(a.place, std::memory_order_relaxed);
    busy_.since.store(now_, std::memory_order_relaxed);
  }
  void mark(uint64_t now) {
    if (timeline_.due(now)) timeline_.add({now, call_ns_, pause_ns_, done_});
  }
  void count(const Feed::Next& over);
  void wrong(const feign_activity& a, const feign_outcome& outcome);
  void full(const feign_activity& a, const feign_outcome& outcome);
  OpReport& op(uint32_t id) {
    if (id >= ops_.size()) ops_.resize(id + 1);
    if (!ops_[id]) ops_[id] = std::make_unique<OpReport>();
    return *ops_[id];
  }

  Run& run_;
  const uint32_t number_;
  const std::vector<uint32_t> numbers_;  // of its streams
  std::thread thread_;
  std::vector<Stream> streams_;
  std::vector<std::unique_ptr<OpReport>> ops_;
  std::map<MismatchKey, Mismatch> mismatches_;
  std::map<std::pair<uint32_t, const char*>, uint64_t> skips_;
  std::map<uint32_t, RuleReport> rules_;
  // Sums over its streams.
  uint64_t call_ns_ = 0, pause_ns_ = 0, done_ = 0;
  uint64_t first_ns_ = UINT64_MAX, last_ns_ = 0;  // when its first call began, its last one ended
  uint32_t last_stream_ = 0;
  uint64_t now_ = 0;  // the clock when it was last read
  Pause::Learnt sleeps_;
  bool ready_ = false;
  Timeline timeline_;
  WaitLog waited_;
  std::optional<ActivityLog::Part> activities_;
  // For the main thread to look at.
  struct {
    std::atomic<uint64_t> since{0}, place{0};
    std::atomic<uint32_t> op{0}, stream{0};
    std::atomic<bool> waits{false};  // for another worker, or rank, before it makes its call
  } busy_;
  std::atomic<bool> over_{false};
};

// What the workers share.
class Run {
 public:
  Run(std::shared_ptr<const NativeReader> plan, const ReplayOptions& options,
      const std::vector<Instance*>& replayers, int root_fd, Tables& tables, ActivityLog* activities,
      const Team* team)
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

  // Who does an op: the first replayer that serves its layer; what no one serves, the first skips.
  struct Doer {
    decltype(feign_replayer::execute) execute;
    void* self;
    uint32_t slot;
  };
  Doer doer_of(const feign_op_info* info) const {
    uint32_t slot = 0;
    for (uint32_t i = static_cast<uint32_t>(replayers.size()); info != nullptr && i-- > 0;)
      if (serves(replayers[i]->api<feign_replayer>(), info->layer)) slot = i;
    return {replayers[slot]->api<feign_replayer>().execute, replayers[slot]->self(), slot};
  }
  // Its part of the plan.
  bool mine(uint32_t stream) const {
    return team == nullptr || team->map.by_stream[stream] == team->ranks.rank();
  }

  // Whether a call may wait for other ranks for as long as these like: calls of MPI, but those that
  // only move a rank's own data.
  bool may_wait_for_ranks(uint32_t op) const {
    const feign_op_info* info = tables.ops.info(op);
    const std::string_view layer = info != nullptr ? info->layer : "";
    if (layer == "mpiio") return mpi::does_of(op) != Does::kNothing;
    return layer != "posix" && layer != "stdio";
  }

  bool makes_mpi() const {
    return team != nullptr &&
           std::any_of(replayers.begin(), replayers.end(),
                       [](const Instance* r) { return names(r->api<feign_replayer>(), "mpi"); });
  }

  // What workers go by: who never sleeps needs no clock to sleep by.
  uint64_t now() const { return sleeps() ? now_ns() : counter.now(); }
  uint64_t now_after() const { return sleeps() ? now_ns() : counter.now_after(); }
  bool sleeps() const { return options.pace != Pace::kAfap; }

  // Ends the replay: everybody who waits is woken.
  void stop(const std::string& why) {
    {
      const std::lock_guard lock(mutex);
      if (stopped_by.empty()) stopped_by = why;
    }
    stopping.store(true, std::memory_order_release);
    let_go();
  }
  // Whoever has overwritten this does it again at his end, when he has seen `stopping`.
  void let_go() {
    for (auto& t : turns) t.gate.open(Gate::kAll);
    for (auto& w : workers) w->gate.open(Gate::kAll);
  }
  void fail(Error error) {
    {
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::move(error);
    }
    stop("a failure");
  }
  // A library may have threads of its own: the fork that made them lies in a call that was done.
  void makes_inside(uint64_t fork) {
    const std::lock_guard lock(mutex);
    forks_inside.insert(fork);
  }
  bool made_inside(uint64_t fork) {
    const std::lock_guard lock(mutex);
    return forks_inside.contains(fork);
  }
  void share(size_t most);
  void start();
  // A worker is ready; returns when all are.
  void ready() {
    {
      const std::lock_guard lock(mutex);
      if (--getting_ready == 0) changed.notify_all();
    }
    started.sleep(1);
  }
  void ended(uint32_t worker) {
    waits->gone(worker);
    const std::lock_guard lock(mutex);
    if (--running == 0) changed.notify_all();
  }

  std::shared_ptr<const NativeReader> plan;
  const ReplayOptions& options;
  const std::vector<Instance*>& replayers;
  std::vector<Doer> doers;  // by op
  const int root_fd;        // -1: none
  bool second_wall = false;
  Tables& tables;
  const Team* const team;  // null: alone
  Pause pause;
  Counter counter;

  // Where a stream is served: by which worker, and which of its streams it is.
  struct Place {
    uint32_t worker = kNobody, slot = 0;
  };
  std::vector<Place> places;
  std::vector<std::unique_ptr<Worker>> workers;
  bool many = false;     // streams
  bool in_turn = false;  // each activity waits until its number comes up
  // The activity `number` waits at turns[number % size], so that nobody else is woken for it.
  struct Turn {
    Gate gate;
    std::atomic<uint32_t> by{kNobody};  // the worker that came before
  };
  std::array<Turn, 256> turns;
  ActivityLog* const activities;  // may be null
  const uint32_t fork_rule, process_rule, turn_rule;

  Gate started;
  uint64_t anchor_ns = 0;  // what start times count from
  std::atomic<bool> stopping{false};
  std::atomic<bool> abandoned{false};  // threads that have not come back from their calls by now
  std::atomic<uint64_t> done{0};       // activities, for the progress line
  std::optional<Waits> waits;

  std::mutex mutex;
  std::condition_variable changed;
  size_t running = 0, getting_ready = 0;
  std::optional<Error> failure;
  std::string stopped_by;
  std::set<uint64_t> forks_inside;
};

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

void Worker::get_ready() {
  ready_ = true;
  // What statistics will need of the heap: a fault for each new page would be in the calls' time.
  if (auto* const room = static_cast<volatile char*>(malloc(kReadyHeap)); room != nullptr) {
    for (size_t at = 0; at < kReadyHeap; at += kPage) room[at] = 0;
    free(const_cast<char*>(room));
  }
  run_.ready();
}

// The stream begins, where its parent had made it.
Result<void> Worker::open(Stream& s, const feign_activity& a) {
  s.open = true;
  s.report.stream = a.stream;
  s.left = run_.plan->totals().by_stream[a.stream];
  if (run_.team != nullptr) s.to_tell = 0;
  const feign_stream_info info = run_.tables.streams.info(a.stream);
  for (size_t i = 0; i < run_.replayers.size(); ++i) {
    Instance& replayer = *run_.replayers[i];
    const auto& api = replayer.api<feign_replayer>();
    if (api.open_stream == nullptr) continue;
    const feign_status status = api.open_stream(replayer.self(), &info, &s.contexts[i]);
    if (status >= 0) continue;
    while (i-- > 0) close(s, i);
    s.open = false;
    return replayer.failure(status);
  }
  // Getting ready is not the stream's time.
  now_ = run_.now();
  // A parent that is not replayed (filtered out), or that the trace shows later, is not waited for.
  if (info.parent < run_.places.size() && info.parent_id < a.id)
    wait_for(run_.places[info.parent].worker, info.parent, info.parent_id, run_.fork_rule, s, a);
  s.inside = run_.made_inside(info.parent_id);
  s.last_ns = now_;
  if (first_ns_ == UINT64_MAX) {
    first_ns_ = now_;
    timeline_.begin(now_);
  }
  mark(now_);
  return {};
}

void Worker::close(Stream& s) {
  s.open = false;
  for (size_t i = 0; i < run_.replayers.size(); ++i) close(s, i);
}

void Worker::close(Stream& s, size_t replayer) {
  const auto& api = run_.replayers[replayer]->api<feign_replayer>();
  if (api.close_stream != nullptr)
    api.close_stream(run_.replayers[replayer]->self(), s.contexts[replayer]);
}

std::string Worker::busy_with(const Tables& tables) const {
  const feign_op_info* info = tables.ops.info(busy_.op.load(std::memory_order_relaxed));
  return "stream " + std::to_string(busy_.stream.load(std::memory_order_relaxed)) + " in " +
         (info != nullptr ? info->name : "?") + " at " +
         tables.place(busy_.place.load(std::memory_order_relaxed));
}

uint64_t Worker::went_on_at(uint64_t now) const {
  if (over()) return 0;
  const uint64_t since = busy_since();
  if (busy_.waits.load(std::memory_order_relaxed)) return since;
  const uint32_t op = busy_.op.load(std::memory_order_relaxed);
  return since == 0 || !run_.may_wait_for_ranks(op) ? now : since;
}

bool Worker::calls_mpi() const {
  return std::any_of(numbers_.begin(), numbers_.end(),
                     [&](uint32_t s) { return run_.team->ranks.calls_mpi(s); });
}

// Another rank waits for some of what has ended.
inline void Worker::tell_ranks(Stream& s, uint32_t stream, uint64_t upto) {
  if (upto < s.to_tell) [[likely]]
    return;
  const auto& awaited = run_.team->ranks.awaited(stream);
  for (; s.told < awaited.size() && awaited[s.told].id <= upto; ++s.told)
    run_.team->ranks.passed(awaited[s.told].rank, stream, awaited[s.told].id);
  s.to_tell = s.told < awaited.size() ? awaited[s.told].id : UINT64_MAX;
}

// The message may be there already, or come soon; later the processor is left to others.
void Worker::wait_for_rank(uint32_t stream, uint64_t id, uint32_t rule, Stream& s,
                           const feign_activity& a) {
  Ranks& ranks = run_.team->ranks;
  if (run_.plan->totals().by_stream[stream] == 0 || ranks.has_passed(stream, id)) return;
  const uint64_t from = now_;
  busy_.waits.store(true, std::memory_order_relaxed);
  for (uint32_t tries = 0; !ranks.has_passed(stream, id); ++tries) {
    if (run_.stopping.load(std::memory_order_relaxed)) break;
    if (tries % 64 == 63) ranks.carry_on();
    if (tries < 1000) continue;
    if (tries < 2000) {
      sched_yield();
    } else {
      const timespec nap{0, 20'000};
      nanosleep(&nap, nullptr);
    }
  }
  busy_.waits.store(false, std::memory_order_relaxed);
  now_ = run_.now();
  s.report.wait_ns += now_ - from;
  RuleReport& r = rules_[rule];
  ++r.count;
  r.wait_ns += now_ - from;
  r.longest_ns = std::max(r.longest_ns, now_ - from);
  waited_.add({a.id, id, a.place, from, now_, a.stream, stream, kNobody, rule, a.op});
  mark(now_);
}

void Worker::wait(Gate& gate, uint64_t until, Wait wait, Stream& s, const feign_activity& a) {
  const uint64_t from = now_;
  wait.gate = &gate;
  wait.id = until;
  wait.stream = a.stream;
  wait.place = a.place;
  run_.waits->begin(number_, wait);
  // It is not others' ranks that this one waits for: whoever it waits for may, and is watched.
  busy_.waits.store(true, std::memory_order_relaxed);
  const bool watched = busy_.since.exchange(0, std::memory_order_relaxed) != 0;
  gate.sleep(until, wait.rule == run_.fork_rule || wait.rule == run_.process_rule);
  run_.waits->end(number_);
  now_ = run_.now();
  if (watched) busy_.since.store(now_, std::memory_order_relaxed);
  busy_.waits.store(false, std::memory_order_relaxed);
  // Before its fork there was no stream that could have waited.
  if (wait.rule == run_.fork_rule) return;
  s.report.wait_ns += now_ - from;
  RuleReport& rule = rules_[wait.rule];
  ++rule.count;
  rule.wait_ns += now_ - from;
  rule.longest_ns = std::max(rule.longest_ns, now_ - from);
}

// Waits until `stream`, which `worker` serves, has ended everything up to `id`.
inline void Worker::wait_for(uint32_t worker, uint32_t stream, uint64_t id, uint32_t rule,
                             Stream& s, const feign_activity& a) {
  // What is served by nobody is over, and what is served here comes before anyway.
  if (worker == kNobody || worker == number_) return;
  Gate& other = run_.workers[worker]->gate;
  if (other.passed(id)) [[likely]]
    return;
  const uint64_t from = now_;
  wait(other, id, {.for_stream = stream, .for_worker = worker, .rule = rule}, s, a);
  waited_.add({a.id, id, a.place, from, now_, a.stream, stream, worker, rule, a.op});
  mark(now_);
}

inline void Worker::wait_for_others(const Feed::Next& next, Stream& s) {
  for (const Dependency& d : next.depends) {
    if (d.stream >= run_.places.size()) continue;
    if (run_.mine(d.stream))
      wait_for(run_.places[d.stream].worker, d.stream, d.id, d.rule, s, next.a);
    else
      wait_for_rank(d.stream, d.id, d.rule, s, next.a);
  }
}

// Waits until everything before `number`, over all streams, has ended.
void Worker::wait_for_turn(uint64_t number, Stream& s, const feign_activity& a) {
  Run::Turn& turn = run_.turns[number % run_.turns.size()];
  if (turn.gate.passed(number)) return;
  const uint64_t from = now_;
  wait(turn.gate, number, {.for_worker = kNobody, .rule = run_.turn_rule}, s, a);
  const uint32_t by = turn.by.load(std::memory_order_relaxed);
  waited_.add({a.id, a.id - 1, a.place, from, now_, a.stream, 0, by, run_.turn_rule, a.op});
  mark(now_);
}

void Worker::wrong(const feign_activity& a, const feign_outcome& outcome) {
  Mismatch& m = mismatches_[{a.op, a.result, outcome.result}];
  if (m.count++ == 0) {
    m.first_place = a.place;
    m.first_id = a.id;
    m.first_path = run_.tables.strings.text(a.path);
  }
}

// Nobody wants a replay that goes on without room.
void Worker::full(const feign_activity& a, const feign_outcome& outcome) {
  const feign_op_info* info = run_.tables.ops.info(a.op);
  run_.stop(std::string(outcome.why != nullptr      ? outcome.why
                        : outcome.result == -ENOSPC ? "no space left on device"
                                                    : "disk quota exceeded") +
            ": " + (info != nullptr ? info->name : "?") + " of " +
            std::string(run_.tables.strings.text(a.path)) + ", " + run_.tables.place(a.place));
}

// What the report says of one that is over.
void Worker::count(const Feed::Next& over) {
  const feign_activity& a = over.a;
  const feign_outcome& outcome = over.outcome;
  const feign_op_info* info = run_.tables.ops.info(a.op);
  StreamReport& stream = streams_[run_.places[a.stream].slot].report;
  OpReport& o = op(a.op);
  ++stream.activities;
  ++o.activities;
  if (outcome.doing == FEIGN_SKIPPED) {
    ++o.skipped;
    ++skips_[{a.op, outcome.why != nullptr ? outcome.why : "not said"}];
    return;
  }
  ++o.replayed;
  stream.call_ns += over.latency_ns;
  if (outcome.doing == FEIGN_EMULATED) {
    ++o.emulated;
  } else {
    o.latency.add(over.latency_ns);
    o.recorded_latency.add(a.duration_ns);
  }
  if (outcome.result > 0 && info->kind == FEIGN_KIND_READ)
    o.bytes_read += static_cast<uint64_t>(outcome.result);
  if (outcome.result > 0 && info->kind == FEIGN_KIND_WRITE)
    o.bytes_written += static_cast<uint64_t>(outcome.result);
  if (a.marks & (FEIGN_NO_RESULT | FEIGN_INJECTED)) return;
  if (a.result > 0 && info->kind == FEIGN_KIND_READ)
    o.recorded_bytes_read += static_cast<uint64_t>(a.result);
  if (a.result > 0 && info->kind == FEIGN_KIND_WRITE)
    o.recorded_bytes_written += static_cast<uint64_t>(a.result);
  // Places in a directory are numbers of the file system's own.
  const bool any = info->result_kind == FEIGN_RESULT_SUCCESS ||
                   (info->kind == FEIGN_KIND_SEEK && (a.marks & FEIGN_DIRECTORY) != 0);
  if (outcome.result == a.result || (any && outcome.result >= 0 && a.result >= 0)) {
    ++o.matched;
  } else {
    ++o.mismatched;
    wrong(a, outcome);
  }
}

Worker::Way Worker::way() const {
  const ReplayOptions& options = run_.options;
  const bool timed = options.pace == Pace::kTimed, paced = timed || options.pace == Pace::kThink;
  return {.timed = timed,
          .paced = paced,
          .busy = options.passing() == Compute::kBusy,
          .in_turn = run_.in_turn,
          .alone = run_.workers.size() == 1,
          .team = run_.team != nullptr,
          .waits_in_order = options.order == Order::kTrace && run_.many,
          .rest = paced ? 0u : 255u,
          .trace_begin_ns = run_.plan->totals().first_ns,
          .scale = options.scale};
}

// When an activity is due, and the pause until then.
void Worker::sleep_until_due(const Way& way, const feign_activity& a, Step& step) {
  Stream& s = *step.stream;
  if (way.timed) {
    const uint64_t begin = std::min(a.start_ns, way.trace_begin_ns);
    step.due = run_.anchor_ns + way.scaled(a.start_ns - begin);
  } else {
    // What it waits for now is not waited for a second time as it was then.
    const bool waits = (a.marks & FEIGN_DEPENDS) != 0 || way.waits_in_order;
    const uint64_t before = a.compute_ns + (waits ? 0 : a.sync_ns);
    step.due = s.last_ns + way.scaled(before + (way.waits_in_order ? 0 : s.skipped_ns));
    s.skipped_ns = 0;
    if (step.due > now_) {
      const uint64_t less = std::min(s.overslept_ns, step.due - now_);
      step.due -= less;
      s.overslept_ns -= less;
    }
  }
  if (step.due <= now_) return;
  const uint64_t from = now_;
  const uint64_t computes = (a.marks & FEIGN_ASLEEP) ? 0 : way.scaled(a.compute_ns);
  if (!way.busy || step.due - now_ > computes)
    now_ = run_.pause.until(way.busy ? step.due - computes : step.due, run_.stopping, sleeps_);
  if (now_ < step.due) now_ = run_.pause.compute(step.due, run_.stopping, sleeps_);
  if (now_ > step.due)
    s.overslept_ns = std::min(s.overslept_ns + (now_ - step.due), kMostMadeUp_ns);
  s.report.pause_ns += now_ - from;
  pause_ns_ += now_ - from;
  mark(now_);
}

// All that comes before an activity's call: its stream begins, pauses, waits for others. False: the
// replay ends.
Result<bool> Worker::come_to(const Way& way, const Feed::Next& next, Step& step) {
  const feign_activity& a = next.a;
  if (step.stream == nullptr || a.stream != step.stream->report.stream) {
    step.stream = &streams_[run_.places[a.stream].slot];
    if (!step.stream->open)
      if (auto done = open(*step.stream, a); !done) return std::move(done.error());
  }
  Stream& s = *step.stream;
  if (way.team) tell_ranks(s, a.stream, a.id - 1);
  const bool depends = (a.marks & FEIGN_DEPENDS) != 0;
  step.done_already = s.inside || s.nesting.done_already(a);
  if (step.done_already && run_.tables.ops.info(a.op)->kind == FEIGN_KIND_PROCESS) [[unlikely]]
    run_.makes_inside(a.id);
  step.due = 0;
  if (!step.done_already) {
    s.nesting.before(a, s.skipped_ns);
    if (way.paced) sleep_until_due(way, a, step);
  }
  if (way.team) watch(a);
  if (way.in_turn) wait_for_turn(next.number, s, a);
  if (depends) wait_for_others(next, s);
  if (run_.stopping.load(std::memory_order_relaxed)) return false;
  // In the log no call starts before what it waits for ended, though that was in between the
  // clock's last reading and the look at it.
  if (activities_ && depends) [[unlikely]]
    now_ = run_.now_after();
  return true;
}

// The call, and what is known of it afterwards.
inline Result<void> Worker::make(const Way& way, Feed::Next& next, const Step& step) {
  const feign_activity& a = next.a;
  Stream& s = *step.stream;
  feign_outcome& outcome = next.outcome;
  outcome = {sizeof outcome, FEIGN_DONE, 0, nullptr};
  if (step.done_already) {
    outcome.doing = FEIGN_SKIPPED;
    outcome.why = "done by the call that it is part of";
  } else {
    const Run::Doer& doer = run_.doers[a.op];
    const feign_status status = doer.execute(doer.self, s.contexts[doer.slot], &a, &outcome);
    // Left behind in that call: what it was part of is gone.
    while (run_.abandoned.load(std::memory_order_acquire)) [[unlikely]] pause();
    if (status < 0) [[unlikely]]
      return run_.replayers[doer.slot]->failure(status).within(run_.tables.place(a.place));
  }
  const uint64_t end = run_.now();
  if (!way.alone) gate.open(a.id);
  --s.left;
  if (way.team) {
    tell_ranks(s, a.stream, s.left == 0 ? Gate::kAll : a.id);
    busy_.since.store(0, std::memory_order_relaxed);
  }
  if (way.in_turn) {
    Run::Turn& turn = run_.turns[(next.number + 1) % run_.turns.size()];
    turn.by.store(number_, std::memory_order_relaxed);
    turn.gate.open(next.number + 1);
  }
  const uint64_t begin = now_, latency = end - begin;
  now_ = s.last_ns = last_ns_ = end;
  last_stream_ = a.stream;
  next.latency_ns = latency;
  next.over = true;
  if (outcome.doing != FEIGN_SKIPPED) {
    call_ns_ += latency;
    if (activities_) [[unlikely]]
      activities_->add({begin, latency, a.offset, a.length, outcome.result, a.id, a.stream, a.op,
                        a.file, a.path});
    if (way.timed && outcome.doing != FEIGN_EMULATED)
      s.report.lateness.add(begin > step.due ? begin - step.due : 0);
    if ((outcome.result == -ENOSPC || outcome.result == -EDQUOT) && a.result >= 0 &&
        !(a.marks & (FEIGN_NO_RESULT | FEIGN_INJECTED))) [[unlikely]]
      full(a, outcome);
  }
  ++done_;
  if ((done_ & way.rest) == 0) run_.done.fetch_add(way.rest + 1, std::memory_order_relaxed);
  mark(end);
  return {};
}

Result<void> Worker::loop(Feed& feed) {
  const Way way = this->way();
  uint64_t mine = 0;
  for (const uint32_t stream : numbers_) mine += run_.plan->totals().by_stream[stream];
  const size_t readers = run_.workers.size() * (way.team ? run_.team->ranks.size() : 1);
  if (auto done = feed.read_ahead(std::min(mine, kReadAhead / readers + 1)); !done) return done;
  get_ready();
  now_ = run_.now();
  const bool straight = !way.paced && !way.in_turn;
  Step step;
  while (Feed::Next* const next = feed.next()) {
    if (run_.stopping.load(std::memory_order_relaxed)) break;
    const feign_activity& a = next->a;
    // There may be ids between the last one and this: of what was dropped.
    if (!way.alone) gate.open(a.id - 1);
    const bool plain = straight && next->plain && !step.stream->inside;
    if (plain) {
      step.done_already = false;
      if (way.team) {
        tell_ranks(*step.stream, a.stream, a.id - 1);
        watch(a);
      }
    } else {
      auto going = come_to(way, *next, step);
      if (!going) return std::move(going.error());
      if (!*going) break;
    }
    if (auto done = make(way, *next, step); !done) [[unlikely]]
      return done;
    if (plain) continue;
    if (!feed.stays()) count(*next);
    Stream& s = *step.stream;
    if (!step.done_already)
      s.nesting.after(a, next->outcome.doing == FEIGN_SKIPPED, (a.marks & FEIGN_DEPENDS) != 0,
                      s.skipped_ns);
    if (s.left == 0) {
      close(s);
      now_ = run_.now();
    }
  }
  if (feed.failure()) return std::move(*feed.failure());
  return {};
}

void Worker::main() {
  prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  // Nobody cancels this thread. Told so, libc does not get ready for it at each call that may wait
  // (two locked instructions where a process has threads).
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr);
  // Modes are as recorded, the recorded umask taken off.
  if (unshare(CLONE_FS) == 0) umask(0);
  // A second wall, where the kernel has one: no plug-in's fault lets a trace write elsewhere.
  if (run_.second_wall) (void)write_below_only(run_.root_fd);
  if (run_.options.pin) pin(number_);
  sleeps_ = run_.pause.begin();
  std::optional<Feed> feed;
  try {
    NativeReader::Range range;
    range.streams = numbers_;
    feed.emplace(run_.plan, std::move(range));
    streams_.resize(numbers_.size());
    if (run_.activities != nullptr) activities_.emplace(*run_.activities);
    if (auto done = loop(*feed); !done) run_.fail(std::move(done.error()));
  } catch (const std::bad_alloc&) {
    run_.fail(Error(FEIGN_ERR_NOMEM, "replay: out of memory"));
  }
  if (!ready_) get_ready();
  for (Stream& s : streams_)
    if (s.open) close(s);
  if (activities_) activities_->flush();
  gate.open(Gate::kAll);
  if (run_.stopping.load()) run_.let_go();
  // Nobody waits for this any more.
  try {
    if (feed)
      for (const Feed::Next& one : feed->given())
        if (one.over) count(one);
  } catch (const std::bad_alloc&) {
    run_.fail(Error(FEIGN_ERR_NOMEM, "replay: out of memory"));
  }
  over_.store(true, std::memory_order_release);
  run_.ended(number_);
}

void Worker::merge_into(Report& report, const Tables& tables) {
  for (uint32_t id = 0; id < ops_.size(); ++id)
    if (ops_[id]) report.op(id).merge(*ops_[id]);
  for (const auto& [key, m] : mismatches_) {
    Mismatch& to = report.mismatches[key];
    to.count += m.count;
    if (m.first_id < to.first_id) {
      to.first_id = m.first_id;
      to.first_place = m.first_place;
      to.first_path = m.first_path;
    }
  }
  for (const auto& [key, count] : skips_) report.skips[{key.first, key.second}] += count;
  for (const auto& [id, rule] : rules_) {
    RuleReport& to = report.rules[std::string(tables.strings.text(id))];
    to.count += rule.count;
    to.wait_ns += rule.wait_ns;
    to.longest_ns = std::max(to.longest_ns, rule.longest_ns);
  }
  for (Stream& s : streams_)
    if (s.report.stream != 0) report.streams.push_back(std::move(s.report));
}

}  // namespace

namespace {

// What the others have to do with this rank's run. [main, about ten times a second]
class Watch {
 public:
  Watch(Run& run, uint64_t recorded_ns)
      : run_(run),
        ranks_(run.team->ranks),
        patience_ns_(std::max(kPatience_ns, run.options.patience_ns)) {
    // A call of MPI that moves much, on all ranks, shows nothing of its going on.
    const double scale = run.options.pace == Pace::kAfap ? 1 : std::max(1.0, run.options.scale);
    patience_ns_ += static_cast<uint64_t>(2 * scale * static_cast<double>(recorded_ns));
    if (run.options.patience_ns != 0) patience_ns_ = run.options.patience_ns;
  }
  void look() {
    const uint64_t now = now_ns();
    if (const std::string who = ranks_.stopped_by(); !who.empty() && !run_.stopping.load()) {
      ended_elsewhere_ = true;
      run_.stop(who);
    }
    uint64_t mine = 0;
    for (const auto& w : run_.workers) mine = std::max(mine, w->went_on_at(now));
    // Who waits for a rank that is slow waits for as long as that takes.
    const uint64_t all = ranks_.went_on(mine, now, patience_ns_ / 4);
    if (!run_.stopping.load() && now >= all + patience_ns_)
      for (const auto& w : run_.workers) {
        const uint64_t since = w->busy_since();
        if (since == 0 || now < since + patience_ns_) continue;
        run_.fail(Error(FEIGN_ERR_IO,
                        w->busy_with(run_.tables) + " has waited " +
                            std::to_string((now - since) / 1'000'000'000) +
                            " s for other ranks, and none went on: does the trace lack what it "
                            "waits for? (--patience gives more time)"));
        break;
      }
    if (run_.stopping.load() && stopped_ns_ == 0) {
      stopped_ns_ = now;
      if (!ended_elsewhere_) {
        const std::lock_guard lock(run_.mutex);
        ranks_.stop_all(run_.failure ? run_.failure->text() : run_.stopped_by);
      }
    }
  }
  // Its own calls may wait for ever for those of a rank that is gone.
  bool give_up() const { return stopped_ns_ != 0 && now_ns() - stopped_ns_ > kGrace_ns; }

 private:
  Run& run_;
  Ranks& ranks_;
  uint64_t patience_ns_, stopped_ns_ = 0;
  bool ended_elsewhere_ = false;
};

}  // namespace

void replay(std::shared_ptr<const NativeReader> plan, const ReplayOptions& options,
            const std::vector<Instance*>& replayers, int root_fd, Tables& tables, Report& report,
            const Progress& progress, ActivityLog* activities, const Team* team) {
  const uint64_t total = plan->totals().activities;
  const uint64_t recorded = plan->totals().last_ns - plan->totals().first_ns;
  // Threads that never come back from a call keep what they use.
  auto kept =
      std::make_unique<Run>(std::move(plan), options, replayers, root_fd, tables, activities, team);
  Run& run = *kept;
  if (options.compute && run.pause.doubt()[0] != '\0')
    log(FEIGN_LOG_WARN, std::string("replay: ") + run.pause.doubt());
  std::optional<Watch> watch;
  if (team != nullptr) watch.emplace(run, recorded);
  const uint64_t begin = now_ns();
  bool left_behind = false;
  if (total != 0) {
    const size_t most = options.streams_per_core != 0
                            ? options.streams_per_core * processors().size()
                            : kMostWorkers;
    run.share(options.one_thread() ? 1 : most);
    // A single one shares memory with this thread, which only waits: what planning used is there
    // already, where new memory takes a fault a page.
    if (run.workers.size() == 1) (void)mallopt(M_ARENA_MAX, 1);
    run.start();
    std::unique_lock lock(run.mutex);
    while (run.running != 0) {
      run.changed.wait_for(lock, std::chrono::milliseconds(team != nullptr ? 20 : 100));
      lock.unlock();
      if (const int signal = g_stop_signal.load(); signal != 0 && !run.stopping.load())
        run.stop("signal " + std::to_string(signal));
      if (const std::string who = run.waits->stuck(); !who.empty() && !run.stopping.load())
        run.fail(Error(FEIGN_ERR_ARGUMENT, "replay: " + who));
      if (watch) watch->look();
      progress("replay", run.done.load(std::memory_order_relaxed), total);
      lock.lock();
      left_behind = watch && watch->give_up();
      if (left_behind) break;
    }
  }
  if (left_behind) run.abandoned.store(true, std::memory_order_release);
  if (watch) {
    watch->look();
    team->ranks.one_thread(false);
  }
  const uint64_t over = now_ns();
  uint64_t first = over, last = begin;
  std::vector<WorkerTime> times;
  for (auto& worker : run.workers) {
    if (left_behind && !worker->over()) {
      worker->leave_behind();
      continue;
    }
    worker->join();
    worker->merge_into(report, tables);
    times.push_back(worker->time());
    first = std::min(first, times.back().first_ns);
    last = std::max(last, times.back().last_ns);
  }
  report.wall_ns = last > first ? last - first : 0;
  report.workers = run.workers.size();
  if (team != nullptr && team->ranks.rank() < report.ranks.size()) {
    RankReport& mine = report.ranks[team->ranks.rank()];
    if (last > first) {
      mine.first_ns = first - std::min(first, run.anchor_ns);
      mine.last_ns = last - std::min(last, run.anchor_ns);
    }
  } else if (run.workers.size() > 1) {
    report.path = critical_path(times, first);
    report.concurrency = concurrency(times, first, last);
  }
  std::sort(report.streams.begin(), report.streams.end(),
            [](const StreamReport& a, const StreamReport& b) { return a.stream < b.stream; });
  report.interrupted = run.stopping.load();
  report.stopped_by = run.stopped_by;
  if (run.failure) {
    report.failed = true;
    report.stopped_by = run.failure->text();
  }
  if (!options.waits.empty()) {
    const std::string name =
        options.waits + (team != nullptr ? "." + std::to_string(team->ranks.rank()) : "");
    if (auto done = write_waits(name, run.plan, tables, times, first); !done && !report.failed) {
      report.failed = true;
      report.stopped_by = done.error().text();
    }
  }
  if (activities != nullptr)
    if (auto done = activities->finish(tables, std::min(first, last), last);
        !done && !report.failed) {
      report.failed = true;
      report.stopped_by = done.error().text();
    }
  if (left_behind) {
    report.left_behind = true;
    (void)kept.release();
  }
}

}  // namespace feign
