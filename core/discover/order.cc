// SPDX-License-Identifier: MIT
#include "discover/order.h"

#include <algorithm>
#include <utility>

namespace feign::discover {

Order::Order(std::vector<uint64_t> calls, const std::vector<CallOrder>& waits)
    : calls_(std::move(calls)), waits_(calls_.size()), count_(waits.size()) {
  for (size_t i = 0; i < waits.size(); ++i)
    if (waits[i].call < calls_[waits[i].node]) waits_[waits[i].node].push_back({waits[i], i});
  for (auto& list : waits_)
    std::stable_sort(list.begin(), list.end(),
                     [](const Wait& a, const Wait& b) { return a.order.call < b.order.call; });
}

// Lets everybody run as far as he can, until nobody can go on: `pass` where a node passes a wait,
// `make` where it makes calls. False: some did not get to their ends.
bool Order::walk(const Pass& pass, const Make& make) const {
  std::vector<uint64_t> done(calls_.size(), 0);
  std::vector<size_t> next(calls_.size(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (uint32_t i = 0; i < calls_.size(); ++i) {
      const auto& waits = waits_[i];
      while (true) {
        if (next[i] < waits.size() && waits[next[i]].order.call == done[i]) {
          const Wait& w = waits[next[i]];
          if (done[w.order.on] <= w.order.on_call) break;
          pass(i, w);
          ++next[i];
          continue;
        }
        const uint64_t until = next[i] < waits.size() ? waits[next[i]].order.call : calls_[i];
        if (until == done[i]) break;
        make(i, done[i], until);
        done[i] = until;
        moved = true;
      }
    }
  }
  return done == calls_;
}

bool Order::circular() const {
  return !walk([](uint32_t, const Wait&) {}, [](uint32_t, uint64_t, uint64_t) {});
}

std::vector<bool> Order::needed() const {
  using Clock = std::vector<uint64_t>;  // by node: calls that have ended for sure
  struct Known {
    uint64_t call;  // from this one on
    Clock clock;
  };
  std::vector<std::vector<Known>> known(calls_.size(), {{0, Clock(calls_.size(), 0)}});
  std::vector<std::vector<const Wait*>> here(calls_.size());  // passed before the call at hand
  std::vector<bool> needed(count_, true);
  // What is known once a node has ended a call.
  const auto after = [&](uint32_t node, uint64_t call) -> const Clock& {
    const auto& list = known[node];
    const auto at = std::upper_bound(list.begin(), list.end(), call,
                                     [](uint64_t c, const Known& k) { return c < k.call; });
    return std::prev(at)->clock;
  };
  const auto settle = [&](uint32_t i, uint64_t call) {
    auto list = std::exchange(here[i], {});
    if (list.empty()) return;
    const Clock before = known[i].back().clock;
    Clock mine = before;
    for (const Wait* w : list) {
      const CallOrder& o = w->order;
      bool follows = before[o.on] > o.on_call;
      for (const Wait* other : list) {
        if (follows || other == w || !needed[other->number]) continue;
        const CallOrder& p = other->order;
        follows = p.on == o.on ? p.on_call >= o.on_call : after(p.on, p.on_call)[o.on] > o.on_call;
      }
      needed[w->number] = !follows;
      const Clock& theirs = after(o.on, o.on_call);
      for (size_t n = 0; n < mine.size(); ++n) mine[n] = std::max(mine[n], theirs[n]);
      mine[o.on] = std::max(mine[o.on], o.on_call + 1);
    }
    if (known[i].back().call == call)
      known[i].back().clock = std::move(mine);
    else
      known[i].push_back({call, std::move(mine)});
  };
  walk([&](uint32_t i, const Wait& w) { here[i].push_back(&w); },
       [&](uint32_t i, uint64_t from, uint64_t) { settle(i, from); });
  return needed;
}

std::vector<std::vector<Order::Times>> Order::play(const Duration& pause,
                                                   const Duration& takes) const {
  std::vector<std::vector<Times>> times(calls_.size());
  std::vector<uint64_t> ready(calls_.size(), 0);
  walk(
      [&](uint32_t i, const Wait& w) {
        ready[i] = std::max(ready[i], times[w.order.on][w.order.on_call].end);
      },
      [&](uint32_t i, uint64_t from, uint64_t to) {
        for (uint64_t c = from; c < to; ++c) {
          const uint64_t begun = c == 0 ? 0 : times[i][c - 1].end;
          const uint64_t start = std::max(begun + pause(i, c), std::exchange(ready[i], 0));
          times[i].push_back({start, start + takes(i, c)});
        }
      });
  return times;
}

}  // namespace feign::discover
