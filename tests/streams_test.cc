// SPDX-License-Identifier: MIT
// The engine: order, dependencies, pace, threads, and how a replay ends. Plans are made here, and
// the replayer is one that looks at the clock and at what has ended.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <unordered_map>

#include "base/clock.h"
#include "layers/posix_ops.h"
#include "replay/gate.h"
#include "replay/path.h"
#include "replay/replay.h"
#include "replay/waits.h"

namespace {

using namespace feign;

constexpr uint64_t id_of(uint64_t number) { return (number + 1) << 16; }

// A trace, an activity at a time.
class Plan {
 public:
  Tables tables;

  uint32_t stream(uint32_t parent = 0, uint64_t parent_id = 0) {
    feign_stream_info info{};
    info.struct_size = sizeof info;
    info.rank = -1;
    info.process = info.thread = 100 + tables.streams.size();
    info.parent = parent;
    info.parent_id = parent_id;
    return tables.streams.add(info);
  }
  Record& add(uint32_t stream, uint64_t start_ns = 0) {
    records_.push_back(std::make_unique<Record>());
    Record& r = *records_.back();
    r.a = kBlankActivity;
    r.a.id = id_of(records_.size() - 1);
    r.a.op = FEIGN_POSIX_FSTAT;
    r.a.stream = stream;
    r.a.start_ns = start_ns;
    r.a.place = FEIGN_PLACE(0, records_.size());
    r.a.marks = FEIGN_RESOLVED;
    return r;
  }
  void depend(Record& r, uint32_t stream, uint64_t id, const char* rule = "file") {
    r.depends.push_back({stream, tables.strings.intern(rule), id});
    r.a.marks |= FEIGN_DEPENDS;
  }
  uint64_t size() const { return records_.size(); }
  Record& at(uint64_t number) { return *records_[number]; }

  std::shared_ptr<NativeReader> open(Tables& to) {
    tables.sources = {"t.strace"};
    const int fd = memfd_create("plan", MFD_CLOEXEC);
    NativeWriter writer(fd, "plan", tables, {});
    for (const auto& r : records_) {
      auto added = writer.add(*r);
      EXPECT_TRUE(added) << added.error().text();
    }
    EXPECT_TRUE(writer.finish({}));
    auto reader = NativeReader::open(fd, "plan", to);
    EXPECT_TRUE(reader) << reader.error().text();
    return *reader;
  }

 private:
  std::vector<std::unique_ptr<Record>> records_;
};

// What the replayer was asked to do.
struct Seen {
  std::mutex mutex;
  std::unordered_map<uint64_t, uint64_t> start_ns;  // by id
  std::set<uint64_t> ended;
  std::vector<uint64_t> order;
  std::set<uint32_t> open;
  size_t most_open = 0, most_threads = 0;
  uint64_t fail_at = 0, sleep_at = 0, sleep_ns = 0, skip_at = 0;
};
Seen* g_seen;  // of the test that runs

size_t threads() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word)
    if (word == "Threads:") {
      size_t n = 0;
      status >> n;
      return n;
    }
  return 0;
}

const feign_host* g_host;
feign_status create(const feign_host* host, const void*, void** self) noexcept {
  static int nothing;
  g_host = host;
  *self = &nothing;
  return FEIGN_OK;
}
feign_status open_stream(void*, const feign_stream_info* info, void**) noexcept {
  const std::lock_guard lock(g_seen->mutex);
  g_seen->open.insert(info->id);
  g_seen->most_open = std::max(g_seen->most_open, g_seen->open.size());
  if (info->id % 256 == 1) g_seen->most_threads = std::max(g_seen->most_threads, threads());
  return FEIGN_OK;
}
feign_status execute(void*, void*, const feign_activity* a, feign_outcome* outcome) noexcept {
  const uint64_t now = now_ns();
  Seen& s = *g_seen;
  {
    const std::lock_guard lock(s.mutex);
    s.start_ns[a->id] = now;
    s.order.push_back(a->id);
  }
  if (a->id == s.fail_at) return g_host->fail(g_host, FEIGN_ERR_IO, "the device is gone");
  if (a->id == s.sleep_at) std::this_thread::sleep_for(std::chrono::nanoseconds(s.sleep_ns));
  outcome->result = a->result;
  if (a->id == s.skip_at) outcome->doing = FEIGN_SKIPPED;
  const std::lock_guard lock(s.mutex);
  s.ended.insert(a->id);
  return FEIGN_OK;
}
void close_stream(void*, void*) noexcept {
  const std::lock_guard lock(g_seen->mutex);
  if (!g_seen->open.empty()) g_seen->open.erase(g_seen->open.begin());
}
void destroy(void*) noexcept {}

constexpr feign_replayer kApi = {sizeof kApi, 0,       nullptr,      create,
                                 open_stream, execute, close_stream, destroy};
constexpr feign_component kTable = {sizeof kTable,
                                    FEIGN_REPLAYER,
                                    "seen",
                                    "Notes what it is asked to do.",
                                    &kApi,
                                    nullptr,
                                    0,
                                    sizeof(feign_option),
                                    0,
                                    0};

Report run(Plan& plan, const ReplayOptions& options, Seen& seen) {
  g_seen = &seen;
  Tables tables;
  const auto reader = plan.open(tables);
  PluginSpec spec;
  spec.name = "seen";
  auto instance = Instance::create(Component{&kTable, nullptr, "", false}, spec, tables);
  EXPECT_TRUE(instance) << instance.error().text();
  Report report;
  replay(reader, options, {instance->get()}, -1, tables, report,
         [](const char*, uint64_t, uint64_t) {});
  return report;
}

ReplayOptions how(Pace pace, Order order = Order::kStream, uint32_t streams_per_core = 0) {
  ReplayOptions o;
  o.pace = pace;
  o.order = order;
  o.streams_per_core = streams_per_core;
  return o;
}

// Processes that fork others, and activities that depend on earlier ones of other streams.
void make_random(Plan& plan, unsigned seed, size_t count) {
  std::mt19937_64 random(seed);
  std::vector<uint32_t> streams{plan.stream()};
  std::vector<uint64_t> last{0};
  uint64_t now = 0;
  for (size_t i = 0; i < count; ++i) {
    if (random() % 20 == 0 && plan.size() != 0) {
      const auto& parent = plan.at(random() % plan.size()).a;
      streams.push_back(plan.stream(parent.stream, parent.id));
    }
    now += random() % 2000;
    Record& r = plan.add(streams[random() % streams.size()], now);
    r.a.compute_ns = random() % 3000;
    for (uint64_t n = random() % 4; n != 0 && i != 0; --n) {
      const auto& on = plan.at(i - 1 - random() % std::min<uint64_t>(i, 50)).a;
      // Sometimes on an id between: of an activity that was dropped.
      plan.depend(r, on.stream, std::min(r.a.id - 1, on.id + random() % 3));
    }
  }
}

class Streams : public ::testing::TestWithParam<std::tuple<unsigned, Pace, uint32_t>> {};

TEST_P(Streams, NothingStartsBeforeWhatItDependsOnHasEnded) {
  const auto [seed, pace, per_core] = GetParam();
  Plan plan;
  make_random(plan, seed, 3000);
  Seen seen;

  const Report report = run(plan, how(pace, Order::kStream, per_core), seen);

  ASSERT_FALSE(report.failed) << report.stopped_by;
  ASSERT_EQ(seen.order.size(), plan.size());
  std::unordered_map<uint64_t, size_t> place;
  for (size_t i = 0; i < seen.order.size(); ++i) place[seen.order[i]] = i;
  std::unordered_map<uint32_t, uint64_t> before;
  for (uint64_t n = 0; n < plan.size(); ++n) {
    const Record& r = plan.at(n);
    for (const Dependency& d : r.depends) {
      // The last activity of that stream up to that id.
      for (uint64_t m = d.id / 65536; m-- > 0;)
        if (plan.at(m).a.stream == d.stream) {
          ASSERT_LT(place[plan.at(m).a.id], place[r.a.id]);
          break;
        }
    }
    auto [it, first] = before.try_emplace(r.a.stream, r.a.id);
    if (first) {
      const feign_stream_info info = plan.tables.streams.info(r.a.stream);
      if (info.parent != 0) {
        ASSERT_LT(place[info.parent_id], place[r.a.id]) << "before its fork";
      }
    } else {
      ASSERT_LT(place[it->second], place[r.a.id]) << "not in the stream's order";
      it->second = r.a.id;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Plans, Streams,
                         ::testing::Combine(::testing::Values(1u, 2u),
                                            ::testing::Values(Pace::kAfap, Pace::kThink,
                                                              Pace::kTimed),
                                            ::testing::Values(0u, 1u, 3u)));

TEST(Inside, WhatAThreadThatACallMadeDoesIsDoneByThatCallUnlessThatWasSkipped) {
  for (const uint32_t per_core : {0u, 1u})
    for (const bool skipped : {false, true}) {
      Plan plan;
      const uint32_t a = plan.stream(), b = plan.stream(a, id_of(2)), c = plan.stream(b, id_of(4));
      const auto fork = [](Record& r) {
        r.a.op = FEIGN_POSIX_CLONE;
        return &r;
      };
      plan.add(a);
      plan.add(a, 100).a.duration_ns = 1000;
      fork(plan.add(a, 200))->a.marks |= FEIGN_AT_DEPTH(1);
      plan.add(a, 2000);
      fork(plan.add(b, 250));
      plan.add(b, 5000);
      plan.add(c, 6000);
      Seen seen;
      if (skipped) seen.skip_at = id_of(1);

      const Report report = run(plan, how(Pace::kAfap, Order::kStream, per_core), seen);

      EXPECT_FALSE(report.failed) << report.stopped_by;
      const std::set<uint64_t> outer{id_of(0), id_of(1), id_of(3)};
      if (skipped)
        EXPECT_EQ(seen.ended.size(), plan.size());
      else
        EXPECT_EQ(seen.ended, outer);
    }
}

TEST(Order, TraceIsKeptOverAllStreamsAtEveryPace) {
  for (const Pace pace : {Pace::kAfap, Pace::kThink, Pace::kTimed}) {
    Plan plan;
    make_random(plan, 7, 2000);
    Seen seen;

    const Report report = run(plan, how(pace, Order::kTrace), seen);

    EXPECT_FALSE(report.failed) << report.stopped_by;
    ASSERT_EQ(seen.order.size(), plan.size());
    EXPECT_TRUE(std::is_sorted(seen.order.begin(), seen.order.end()));
  }
}

TEST(Timed, NothingStartsBeforeItsTimeAndLatenessIsOfEveryCall) {
  for (const Compute compute : {Compute::kHybrid, Compute::kSleep, Compute::kSpin}) {
    Plan plan;
    const uint32_t a = plan.stream(), b = plan.stream();
    for (uint64_t i = 0; i < 100; ++i) plan.add(i & 1 ? a : b, 5'000'000'000 + i * 300'000);
    Seen seen;
    ReplayOptions o = how(Pace::kTimed);
    o.compute = compute;

    const uint64_t before = now_ns();
    const Report report = run(plan, o, seen);

    for (uint64_t i = 0; i < 100; ++i) EXPECT_GE(seen.start_ns[id_of(i)], before + i * 300'000);
    EXPECT_EQ(report.lateness().count(), 100u);
  }
}

TEST(Timed, ScaleZeroWaitsForNoTime) {
  Plan plan;
  const uint32_t a = plan.stream();
  for (uint64_t i = 0; i < 10; ++i) plan.add(a, i * 3'600'000'000'000);
  Seen seen;
  ReplayOptions o = how(Pace::kTimed);
  o.scale = 0;

  const Report report = run(plan, o, seen);

  EXPECT_EQ(seen.order.size(), 10u);
  EXPECT_EQ(report.streams.front().lateness.count(), 10u);
}

TEST(Think, WhatADependencyWaitsForIsNotSleptToo) {
  Plan plan;
  const uint32_t a = plan.stream(), b = plan.stream();
  const uint64_t id = plan.add(a).a.id;
  Record& r = plan.add(b);
  r.a.sync_ns = 30'000'000'000;
  plan.depend(r, a, id);
  Seen seen;

  const Report report = run(plan, how(Pace::kThink), seen);

  EXPECT_LT(report.streams[1].pause_ns, 1'000'000'000u);
}

TEST(Ends, WhenAReplayerFailsWithAReportAndNobodyIsLeftWaiting) {
  for (const uint32_t per_core : {0u, 1u}) {
    Plan plan;
    std::vector<uint32_t> streams;
    for (int i = 0; i < 20; ++i) streams.push_back(plan.stream());
    // A ring: each waits for the one before it.
    for (uint64_t n = 0; n < 2000; ++n) {
      Record& r = plan.add(streams[n % 20]);
      if (n != 0) plan.depend(r, streams[(n - 1) % 20], id_of(n - 1));
    }
    Seen seen;
    seen.fail_at = id_of(1007);

    const Report report = run(plan, how(Pace::kAfap, Order::kStream, per_core), seen);

    EXPECT_TRUE(report.failed);
    EXPECT_NE(report.stopped_by.find("the device is gone"), std::string::npos) << report.stopped_by;
    EXPECT_NE(report.stopped_by.find("t.strace:1008"), std::string::npos) << report.stopped_by;
    EXPECT_EQ(seen.ended.size(), 1007u);
    EXPECT_TRUE(seen.open.empty());
  }
}

TEST(Threads, ManyStreamsThatAllLiveShareABoundedNumber) {
  Plan plan;
  std::vector<uint32_t> streams;
  for (int i = 0; i < 4096; ++i) streams.push_back(plan.stream());
  for (uint64_t n = 0; n < 3 * 4096; ++n) {
    Record& r = plan.add(streams[n * 2654435761 % 4096]);
    // On the last one of another stream, wherever it is served.
    if (n != 0) plan.depend(r, plan.at(n - 1).a.stream, id_of(n - 1));
  }
  Seen seen;

  const Report report = run(plan, how(Pace::kAfap), seen);

  EXPECT_FALSE(report.failed) << report.stopped_by;
  EXPECT_EQ(seen.ended.size(), plan.size());
  EXPECT_TRUE(std::is_sorted(seen.order.begin(), seen.order.end()));
  EXPECT_EQ(report.workers, 256u);
  EXPECT_LE(seen.most_threads, 256u + 8);
  EXPECT_EQ(report.streams.size(), 4096u);
}

TEST(Threads, ShortProcessesLeaveNothingBehind) {
  Plan plan;
  const uint32_t make = plan.stream();
  uint32_t child = 0;
  for (int i = 0; i < 10'000; ++i) {
    const uint64_t fork = plan.add(make).a.id;
    child = plan.stream(make, fork);
    const uint64_t last = plan.add(child).a.id;
    plan.depend(plan.add(make), child, last, "process");
  }
  Seen seen;

  const Report report = run(plan, how(Pace::kAfap), seen);

  EXPECT_FALSE(report.failed) << report.stopped_by;
  EXPECT_EQ(seen.ended.size(), 30'000u);
  EXPECT_LE(seen.most_open, 300u) << "a stream is closed when it is over";
}

TEST(Report, TheCriticalPathLeadsFromTheEndToWhatWasWaitedFor) {
  Plan plan;
  const uint32_t a = plan.stream(), b = plan.stream();
  const uint64_t slow = plan.add(a).a.id;
  plan.add(b);
  plan.depend(plan.add(b), a, slow, "path");
  Seen seen;
  seen.sleep_at = slow;
  seen.sleep_ns = 100'000'000;

  const Report report = run(plan, how(Pace::kAfap), seen);

  ASSERT_EQ(report.path.steps, 2u);
  EXPECT_TRUE(report.path.complete);
  EXPECT_EQ(report.path.longest[0].stream, a);
  EXPECT_GE(report.path.longest[0].call_ns, 90'000'000u);
  EXPECT_EQ(report.path.longest[1].stream, b);
  EXPECT_EQ(report.path.longest[1].waited_for, a);
  EXPECT_EQ(FEIGN_PLACE_LINE(report.path.longest[1].place), 3u);
  ASSERT_EQ(report.rules.count("path"), 1u);
  EXPECT_EQ(report.rules.at("path").count, 1u);
  EXPECT_GT(report.streams[1].wait_ns, 0u);
  EXPECT_EQ(report.streams[0].wait_ns, 0u);
}

TEST(CriticalPath, SaysHowFarBackItIsKnown) {
  Timeline timeline;
  timeline.begin(0);
  WaitLog waits(4), none(4);
  for (uint64_t i = 0; i < 10; ++i)
    waits.add({id_of(2 * i + 1), id_of(2 * i), 0, 100 * i, 100 * i + 50, 1, 1, 0, 0, 0});

  const CriticalPath path = critical_path({{0, 1000, 1, &timeline, &waits}}, 0);

  EXPECT_FALSE(path.complete);
  EXPECT_EQ(path.steps, 4u);
  EXPECT_EQ(path.from_ns, 650u);
}

// Where the kernel has another clock, both are that one.
TEST(Counter, GoesAsTheClockDoes) {
  using std::chrono::milliseconds;
  Counter counter;
  std::this_thread::sleep_for(milliseconds(20));
  counter.begin();
  const uint64_t begin = now_ns();
  uint64_t last = counter.now();
  for (int i = 0; i < 100'000; ++i) {
    const uint64_t now = counter.now();
    ASSERT_GE(now, last) << i;
    last = now;
  }
  std::this_thread::sleep_for(milliseconds(50));
  const uint64_t before = now_ns(), now = counter.now_after(), after = now_ns();
  const auto off = static_cast<double>(after - begin) * 1e-3;  // twenty times what is promised
  EXPECT_GE(static_cast<double>(now), static_cast<double>(before) - off);
  EXPECT_LE(static_cast<double>(now), static_cast<double>(after) + off);
}

TEST(Timeline, KeepsSumsHoweverLongItGoesOn) {
  Timeline t;
  t.begin(0);
  for (uint64_t i = 1; i <= 100'000; ++i)
    if (t.due(i * 1'000'000)) t.add({i * 1'000'000, i * 500'000, i * 250'000, i});

  const Timeline::Mark m = t.at(50'000'000'000);
  EXPECT_NEAR(static_cast<double>(m.call_ns), 25e9, 1e7);
  EXPECT_NEAR(static_cast<double>(m.pause_ns), 12.5e9, 1e7);
  EXPECT_NEAR(static_cast<double>(m.activities), 50'000, 10);
}

TEST(Gates, WakeEverybodyWhoseTimeHasCome) {
  Gate ping, pong, all;
  std::atomic<uint64_t> through{0};
  std::vector<std::thread> others;
  for (int i = 0; i < 4; ++i)
    others.emplace_back([&, i] {
      for (uint64_t n = 1; n <= 2000; ++n) {
        all.sleep(n * static_cast<uint64_t>(i + 1));
        ++through;
      }
    });
  std::thread other([&] {
    for (uint64_t n = 1; n <= 20'000; ++n) {
      ping.sleep(n);
      pong.open(n);
    }
  });

  for (uint64_t n = 1; n <= 20'000; ++n) {
    all.open(n);
    ping.open(n);
    pong.sleep(n);
  }
  other.join();
  for (auto& o : others) o.join();

  EXPECT_EQ(through.load(), 8000u);
}

TEST(Waits, ACircleIsToldWithItsMembersAndWhoOnlyWaitsIsNot) {
  Tables tables;
  tables.sources = {"t.strace"};
  const uint32_t file = tables.strings.intern("file"), path = tables.strings.intern("path");
  Gate a, b, c;
  Waits waits(3, tables);
  waits.begin(0, {&b, 5, 1, FEIGN_PLACE(0, 11), 2, 1, file});
  waits.begin(1, {&a, 4, 2, FEIGN_PLACE(0, 12), 1, 0, path});
  EXPECT_EQ(waits.stuck(), "");  // the third may let them go on
  EXPECT_EQ(waits.stuck(), "");
  waits.begin(2, {&a, 4, 3, FEIGN_PLACE(0, 13), 1, 0, file});
  EXPECT_EQ(waits.stuck(), "");  // it only just began to wait

  const std::string text = waits.stuck();

  EXPECT_EQ(text,
            "these wait for each other: stream 1 at t.strace:11 waits for stream 2 (rule file); "
            "stream 2 at t.strace:12 waits for stream 1 (rule path)");
  b.open(5);
  EXPECT_EQ(waits.stuck(), "") << "the first may go on, it only has not yet";
}

}  // namespace
