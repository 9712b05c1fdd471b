// SPDX-License-Identifier: MIT
// What is concluded from how far nodes get while one is held.
#include <gtest/gtest.h>

#include <tuple>

#include "discover/frontier.h"

namespace feign::discover {
namespace {

using Edges = std::vector<std::tuple<uint32_t, uint64_t, uint64_t>>;

Edges edges(const Frontier& f, bool patterns = false) {
  Edges out;
  for (const Found& d : f.found(patterns)) out.emplace_back(d.node, d.call, d.on_call);
  return out;
}

// A program in which node 1's call c waits for node 0's call c * step - 1, and so on to the end.
uint64_t lock_step(uint64_t k, uint64_t step, uint64_t calls) {
  return std::min(k / step + 1, calls);
}

TEST(Frontier, WhereTheOtherNodeGoesOnIsADependency) {
  Frontier f({3, 4}, 0);

  f.add(0, {0, 1});
  f.add(1, {1, 1});
  f.add(2, {2, 3});

  EXPECT_EQ(edges(f), (Edges{{1, 1, 1}, {1, 3, 2}}));
}

TEST(Frontier, WhoHasEndedWaitsForNothing) {
  Frontier f({2, 2}, 0);

  f.add(0, {0, 2});
  f.add(1, {1, 2});

  EXPECT_TRUE(f.found(false).empty());
}

TEST(Frontier, WhatWasSeenToBePossibleCorrectsALookThatWasTooShort) {
  Frontier f({3, 5}, 0);
  f.add(0, {0, 0});
  f.add(1, {1, 5});
  f.add(2, {2, 3});  // 5 were possible before

  EXPECT_EQ(edges(f), (Edges{{1, 0, 0}}));

  f.add(0, {0, 5});
  EXPECT_TRUE(edges(f).empty());
  EXPECT_EQ(f.corrected(), 1u);
}

TEST(Frontier, APatternForetellsWhereItsNodeGoesOnAndAStuckOneIsNotForetold) {
  Frontier f({40, 20, 20}, 0);

  for (uint64_t k = 0; k < 7; ++k) f.add(k, {k, lock_step(k, 2, 20), 7});

  EXPECT_EQ(f.foretold(), (std::vector<bool>{false, true, false}));
}

TEST(Frontier, RepeatedSightingsAreCounted) {
  Frontier f({1, 2}, 0);

  f.add(0, {0, 1});
  f.add(0, {0, 1});

  ASSERT_EQ(f.found(false).size(), 1u);
  EXPECT_EQ(f.found(false)[0].seen, 2u);
}

TEST(Frontier, BetweenSamplesTheEarliestCallIsNamedAndTheRangeSaid) {
  Frontier f({10, 2}, 0);

  f.add(0, {0, 0});
  f.add(5, {5, 1});

  const auto found = f.found(false);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].on_call, 0u);
  EXPECT_EQ(found[0].latest, 4u);
  EXPECT_EQ(f.unclear(false), (std::vector<uint64_t>{2, 7}));
}

TEST(Frontier, HalvingFindsEveryStep) {
  constexpr uint64_t kCalls = 100;
  const auto reach = [](uint64_t k) { return k < 13 ? 1u : k < 14 ? 2u : k < 77 ? 5u : 9u; };
  Frontier f({kCalls, 9}, 0);
  f.add(0, {0, reach(0)});
  int looks = 1;

  for (auto next = f.unclear(false); !next.empty(); next = f.unclear(false))
    for (const uint64_t k : next) f.add(k, {k, reach(k)}), ++looks;

  EXPECT_EQ(edges(f), (Edges{{1, 1, 12}, {1, 2, 13}, {1, 5, 76}}));
  EXPECT_LT(looks, 25);
}

TEST(Frontier, WhatTheTraceShowsNeedsNoLookInBetween) {
  Frontier f({100, 12}, 0);
  for (const uint64_t step : {10u, 40u, 45u, 90u}) f.know(1, step / 10, step, "MPI_Recv");
  f.add(0, {0, 1});
  f.add(50, {50, 9});

  const auto found = f.found(true);
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(edges(f, true), (Edges{{1, 1, 10}, {1, 4, 40}, {1, 4, 45}, {1, 9, 90}}));
  EXPECT_EQ(found[1].shown_by, "MPI_Recv");
  EXPECT_TRUE(f.unclear(true).empty());
}

TEST(Frontier, WhereANodeIsStuckElsewhereThanShownThrottlingGoesOn) {
  Frontier f({100, 12}, 0);
  f.know(1, 3, 30, "MPI_Recv");
  f.add(0, {0, 2});

  EXPECT_FALSE(f.unclear(true).empty());
}

TEST(Frontier, APatternForetellsWhatSamplesAgreeWith) {
  constexpr uint64_t kCalls = 400, kOthers = 101;
  const auto reach = [](uint64_t k) { return lock_step(k, 4, kOthers); };
  Frontier f({kCalls, kOthers}, 0);
  for (uint64_t k = 0; k < kCalls; k += 50) f.add(k, {k, reach(k)});
  int looks = 8;

  for (auto next = f.unclear(true); !next.empty() && looks < 1000; next = f.unclear(true))
    for (const uint64_t k : next) f.add(k, {k, reach(k)}), ++looks;

  Edges want;
  for (uint64_t c = 1; c < kOthers; ++c) want.emplace_back(1, c, c * 4 - 1);
  EXPECT_EQ(edges(f, true), want);
  EXPECT_LT(looks, 80);
  EXPECT_TRUE(f.found(true).back().assumed || f.found(true)[50].assumed);
}

TEST(Frontier, APatternDoesNotGoOnToTheEndOfItsNode) {
  // 20 steps of two calls; the last two calls of all wait for nothing.
  constexpr uint64_t kCalls = 128, kOthers = 42;
  const auto reach = [](uint64_t k) { return k / 3 >= 20 ? kOthers : k / 3 * 2; };
  Frontier f({kCalls, kOthers}, 0);
  for (uint64_t k = 0; k < kCalls; k += 16) f.add(k, {k, reach(k)});

  for (auto next = f.unclear(true); !next.empty(); next = f.unclear(true))
    for (const uint64_t k : next) f.add(k, {k, reach(k)});

  Edges want;
  for (uint64_t n = 1; n <= 20; ++n) want.emplace_back(1, (n - 1) * 2, n * 3 - 1);
  EXPECT_EQ(edges(f, true), want);
}

TEST(Frontier, APatternThatEndsIsNotCarriedOn) {
  constexpr uint64_t kCalls = 64;
  const auto reach = [](uint64_t k) { return k < 32 ? k / 2 : 16 + (k - 32) / 3; };
  Frontier f({kCalls, 40}, 0);
  for (uint64_t k = 0; k < kCalls; k += 8) f.add(k, {k, reach(k)});

  for (auto next = f.unclear(true); !next.empty(); next = f.unclear(true))
    for (const uint64_t k : next) f.add(k, {k, reach(k)});

  for (const Found& d : f.found(true)) {
    if (d.on_call + 1 >= kCalls) continue;
    EXPECT_EQ(reach(d.on_call), d.call);
    EXPECT_GT(reach(d.on_call + 1), d.call);
  }
}

}  // namespace
}  // namespace feign::discover
