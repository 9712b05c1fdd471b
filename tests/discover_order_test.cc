// SPDX-License-Identifier: MIT
// What dependencies say together, and the patterns in them.
#include <gtest/gtest.h>

#include "discover/order.h"
#include "discover/patterns.h"

namespace feign::discover {
namespace {

TEST(Order, CallsThatWaitForEachOtherAreCircular) {
  EXPECT_TRUE(Order({2, 2}, {{0, 1, 0, 1}, {1, 0, 0, 1}}).circular());
  EXPECT_FALSE(Order({2, 2}, {{0, 1, 1, 0}, {1, 0, 1, 0}}).circular());
}

TEST(Order, WhatFollowsFromOthersIsNotNeeded) {
  // 1 waits for 0, 2 for 1; so 2 waits for 0, and for what 0 did before.
  const Order order({3, 3, 3}, {{1, 0, 1, 1}, {2, 1, 1, 1}, {2, 0, 1, 1}, {2, 0, 2, 0}});

  EXPECT_EQ(order.needed(), (std::vector<bool>{true, true, false, false}));
}

TEST(Order, AReplayKeepsWhatWaits) {
  const Order order({2, 2}, {{1, 0, 1, 1}});

  const auto times = order.play([](uint32_t node, uint64_t) { return node == 0 ? 10 : 1; },
                                [](uint32_t, uint64_t) { return 5; });

  EXPECT_EQ(times[0][1].end, 30u);
  EXPECT_EQ(times[1][0].start, 1u);
  EXPECT_EQ(times[1][1].start, 30u);
}

struct Seen {
  std::string name;
  std::vector<uint32_t> nodes;
  uint64_t checked, assumed;
  bool operator==(const Seen&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Seen& s) {
  return out << s.name << " of " << s.nodes.size() << ": " << s.checked << "+" << s.assumed;
}
std::vector<Seen> seen(uint32_t nodes, const std::vector<CallOrder>& waits,
                       const std::vector<bool>& assumed) {
  std::vector<Seen> out;
  for (const Pattern& p : patterns(nodes, waits, assumed))
    out.push_back({p.name, p.nodes, p.checked, p.assumed});
  return out;
}

TEST(Patterns, ABarrierIsWhereAllWaitForAll) {
  std::vector<CallOrder> waits;
  std::vector<bool> assumed;
  for (uint64_t round = 1; round <= 3; ++round)
    for (uint32_t i = 0; i < 3; ++i)
      for (uint32_t j = 0; j < 3; ++j)
        if (i != j) {
          waits.push_back({i, j, round, round - 1});
          assumed.push_back(round == 3 && i == 0);
        }

  EXPECT_EQ(seen(3, waits, assumed), (std::vector<Seen>{{"barrier", {0, 1, 2}, 2, 1}}));
}

TEST(Patterns, NeighboursThatExchangeAreInLockStep) {
  const std::vector<CallOrder> waits{{0, 1, 1, 0}, {1, 0, 1, 0}, {1, 2, 1, 0}, {2, 1, 1, 0}};

  EXPECT_EQ(seen(3, waits, std::vector<bool>(4)),
            (std::vector<Seen>{{"lock-step", {0, 1, 2}, 1, 0}}));
}

TEST(Patterns, EachAfterTheOneBeforeItIsARing) {
  const std::vector<CallOrder> waits{{1, 0, 1, 4}, {2, 1, 1, 4}};

  EXPECT_EQ(seen(3, waits, {false, true}), (std::vector<Seen>{{"ring", {0, 1, 2}, 1, 1}}));
}

TEST(Patterns, AMasterHandsOutAndCollects) {
  const std::vector<CallOrder> waits{
      {0, 1, 0, 1}, {2, 1, 0, 2}, {0, 1, 3, 4}, {1, 0, 9, 3}, {1, 2, 10, 3}};

  EXPECT_EQ(seen(3, waits, std::vector<bool>(5)),
            (std::vector<Seen>{{"master/worker", {1, 0, 2}, 5, 0}}));
}

TEST(Patterns, WhatIsNoneHasNoName) {
  const std::vector<CallOrder> waits{{1, 0, 1, 0}, {2, 0, 1, 0}, {3, 1, 1, 1}, {3, 2, 1, 1}};

  EXPECT_TRUE(seen(4, waits, std::vector<bool>(4)).empty());
}

}  // namespace
}  // namespace feign::discover
