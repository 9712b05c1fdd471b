// SPDX-License-Identifier: MIT
#include "replay/worker.h"

#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <new>
#include <span>

#include "base/clock.h"
#include "base/jail.h"
#include "plugin/crash.h"
#include "replay/run.h"

namespace feign {
namespace {

// A sleep ends late by what a processor takes to wake up. The next pauses are shorter for it, or a
// program with many short ones would seem slower than it is. More is no wake-up but a busy machine.
constexpr uint64_t kMostMadeUp_ns = 1'000'000;
// So many activities, over all workers and ranks, are read before the clock starts: of 240 bytes.
constexpr size_t kReadAhead = size_t{1} << 18;
constexpr size_t kReadyHeap = 96 << 10;  // less than what malloc() gives back at once
constexpr size_t kPage = 4096;

// This thread runs on one of them only.
void pin(uint32_t number) {
  const std::vector<int> list = processors();
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(list[number % list.size()], &set);
  (void)sched_setaffinity(0, sizeof set, &set);
}

}  // namespace

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
    if (status == FEIGN_OK) continue;
    while (i-- > 0) close(s, i);
    s.open = false;
    return replayer.not_ok("open_stream()", status);
  }
  // Getting ready is not the stream's time.
  now_ = run_.now();
  // A parent that is not replayed (filtered out), or that the trace shows later, is not waited for.
  if (info.parent < run_.places.size() && info.parent_id < a.id)
    wait_for(run_.places[info.parent].worker, info.parent, info.parent_id, run_.fork_rule, s, a);
  s.inside = run_.forks_inside.has(info.parent_id);
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
  std::string text = "stream " + std::to_string(busy_.stream.load(std::memory_order_relaxed)) +
                     " in " + (info != nullptr ? info->name : "?") + " at " +
                     tables.place(busy_.place.load(std::memory_order_relaxed));
  const uint32_t other = busy_.for_stream.load(std::memory_order_relaxed);
  if (other == 0) return text;
  return text + ", which comes after stream " + std::to_string(other) + " (of rank " +
         std::to_string(tables.streams.info(other).rank) + ", rule " +
         std::string(tables.strings.text(busy_.rule.load(std::memory_order_relaxed))) + "),";
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

// The message may be there already, or come soon; later the processor is left to others, for longer
// the longer it takes: threads that wait all the time for what another rank's end tells (a socket
// of mpirun's) would be felt by those that work. Sleeping adds about a sixtieth to a long wait.
void Worker::wait_for_rank(uint32_t stream, uint64_t id, uint32_t rule, Stream& s,
                           const feign_activity& a) {
  Ranks& ranks = run_.team->ranks;
  if (run_.plan->totals().by_stream[stream] == 0 || ranks.has_passed(stream, id)) return;
  const uint64_t from = now_;
  busy_.rule.store(rule, std::memory_order_relaxed);
  busy_.for_stream.store(stream, std::memory_order_relaxed);
  busy_.waits.store(true, std::memory_order_relaxed);
  for (uint32_t tries = 0; !ranks.has_passed(stream, id); ++tries) {
    if (run_.stopping.load(std::memory_order_relaxed)) break;
    if (tries % 64 == 63 || tries >= 2000) ranks.carry_on();
    if (tries < 1000) continue;
    if (tries < 2000) {
      sched_yield();
    } else {
      const uint64_t nap = std::clamp<uint64_t>((run_.now() - from) / 64, 20'000, 1'000'000);
      const timespec t{0, static_cast<long>(nap)};
      nanosleep(&t, nullptr);
    }
  }
  busy_.waits.store(false, std::memory_order_relaxed);
  busy_.for_stream.store(0, std::memory_order_relaxed);
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

// A call on a file that is not open here. If it was opened in a call that was done as a whole, it
// is used like one that was open before the trace began: a call of MPI-IO that was left out, or
// never ended as its rank was killed, leaves what was in it.
feign_status Worker::by_name(Stream& s, feign_activity a, feign_outcome& outcome) {
  if (run_.tables.ops.call(a.op) == nullptr || !run_.handles_inside.has(a.handle)) return FEIGN_OK;
  a.marks |= FEIGN_INHERITED;
  outcome = {sizeof outcome, FEIGN_DONE, 0, nullptr};
  const Run::Doer& doer = run_.doers[a.op];
  return doer.execute(doer.self, s.contexts[doer.slot], &a, &outcome);
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
  const bool waits = (a.marks & FEIGN_DEPENDS) != 0 || way.waits_in_order;
  if (way.timed || !waits) s.report.idle_ns += std::min(now_ - from, way.scaled(a.sync_ns));
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
  if (step.done_already) {
    const auto kind = run_.tables.ops.info(a.op)->kind;
    if (kind == FEIGN_KIND_PROCESS) [[unlikely]]
      run_.forks_inside.add(a.id);
    if (kind == FEIGN_KIND_OPEN && a.handle != 0 && a.result >= 0)
      run_.handles_inside.add(a.handle);
    if (kind == FEIGN_KIND_CLOSE && (a.marks & FEIGN_LAST)) run_.handles_inside.drop(a.handle);
  }
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

// The call, and what is known of it afterwards. Part of the loop: a call of its own would cost as
// much as a tenth of what is between two.
template <bool kPlain>
[[gnu::always_inline]] inline Result<void> Worker::make(const Way& way, Feed::Next& next,
                                                        const Step& step) {
  const feign_activity& a = next.a;
  Stream& s = *step.stream;
  feign_outcome& outcome = next.outcome;
  if (!kPlain && step.done_already) {
    outcome.doing = FEIGN_SKIPPED;
    outcome.why = "done by the call that it is part of";
  } else {
    const Run::Doer& doer = run_.doers[a.op];
    if (doer.umask != umask_ && doer.umask >= 0) [[unlikely]]
      set_umask(doer.umask);
    feign_status status = doer.execute(doer.self, s.contexts[doer.slot], &a, &outcome);
    if (outcome.result == -EBADF && a.result >= 0 && status == FEIGN_OK) [[unlikely]]
      status = by_name(s, a, outcome);
    // Left behind in that call: what it was part of is gone.
    while (run_.abandoned.load(std::memory_order_acquire)) [[unlikely]] pause();
    if (status != FEIGN_OK) [[unlikely]]
      return run_.replayers[doer.slot]
          ->not_ok("execute()", status)
          .within(run_.tables.place(a.place));
  }
  const uint64_t end = kPlain ? run_.counter.now() : run_.now();
  if (!way.alone) gate.open(a.id);
  --s.left;
  if (way.team) {
    tell_ranks(s, a.stream, s.left == 0 ? Gate::kAll : a.id);
    if (!kPlain) busy_.since.store(0, std::memory_order_relaxed);
  }
  if (!kPlain && way.in_turn) {
    Run::Turn& turn = run_.turns[(next.number + 1) % run_.turns.size()];
    turn.by.store(number_, std::memory_order_relaxed);
    turn.gate.open(next.number + 1);
  }
  const uint64_t begin = now_, latency = end - begin;
  now_ = last_ns_ = end;
  if (!kPlain) s.last_ns = end;
  last_stream_ = a.stream;
  next.latency_ns = latency;
  next.over = true;
  if (outcome.doing != FEIGN_SKIPPED) {
    call_ns_ += latency;
    if (activities_) [[unlikely]]
      activities_->add({begin, latency, a.offset, a.length, outcome.result, a.id, a.stream, a.op,
                        a.file, a.path});
    if (!kPlain && way.timed && outcome.doing != FEIGN_EMULATED)
      s.report.lateness.add(begin > step.due ? begin - step.due : 0);
    if (outcome.result < 0 && (outcome.result == -ENOSPC || outcome.result == -EDQUOT) &&
        a.result >= 0 && !(a.marks & (FEIGN_NO_RESULT | FEIGN_INJECTED))) [[unlikely]]
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
  const bool straight = !run_.sleeps() && !way.in_turn;
  Step step;
  while (Feed::Next* const next = feed.next()) {
    if (run_.stopping.load(std::memory_order_relaxed)) break;
    const feign_activity& a = next->a;
    // There may be ids between the last one and this: of what was dropped.
    if (!way.alone) gate.open(a.id - 1);
    if (straight && next->plain && !step.stream->inside) {
      if (way.team) {
        tell_ranks(*step.stream, a.stream, a.id - 1);
        watch(a);
      }
      if (auto done = make<true>(way, *next, step); !done) [[unlikely]]
        return done;
      continue;
    }
    auto going = come_to(way, *next, step);
    if (!going) return std::move(going.error());
    if (!*going) break;
    if (auto done = make<false>(way, *next, step); !done) [[unlikely]]
      return done;
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
  busy_.since.store(0, std::memory_order_relaxed);
  if (feed.failure()) return std::move(*feed.failure());
  return {};
}

void Worker::set_umask(int32_t to) {
  umask_ = to;
  if (own_umask_) umask(static_cast<mode_t>(to));
}

void Worker::main() {
  const CrashStack crashes;
  prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  // Nobody cancels this thread. Told so, libc does not get ready for it at each call that may wait
  // (two locked instructions where a process has threads).
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr);
  own_umask_ = unshare(CLONE_FS) == 0;
  set_umask(0);  // mostly
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
  if (run_.stopping.load()) run_.let_turns_go();
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

}  // namespace feign
