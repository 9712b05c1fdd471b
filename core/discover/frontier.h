// SPDX-License-Identifier: MIT
// What throttling one node tells: how far each other node gets while the throttled one is held.
//
// reach(i, k) is how many calls node i has ended when the throttled node is held before its call k
// and nobody moves any more. It depends on the program only, never falls as k grows, and is all
// that i can do without call k. Where it grows from k to k+1, the first call that i could not make
// before waits for call k (or for what the throttled node did between it and the next one): a
// dependency.
//
// Watching can only err in one way: it can stop looking too early, and see less than i's reach. So
// the largest number seen for a call, or for one before it, is the best.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace feign::discover {

// "Call `call` of `node` may not start before call `on_call` of the throttled node has ended."
struct Found {
  uint32_t node = 0;
  uint64_t call = 0, on_call = 0;
  uint64_t latest = 0;   // the call waited for is `on_call`, or one after it up to this
  uint32_t seen = 0;     // how often the node was seen to be stuck there
  std::string stuck_in;  // the call that it waited in, if that can be seen
  bool assumed = false;  // follows from a pattern, and was not seen itself
  std::string shown_by;  // the call by which the trace itself shows it: MPI_Recv, futex …
};

class Frontier {
 public:
  // `calls`: how many each node makes, by number; `throttled`: which of them this is about.
  Frontier(std::vector<uint64_t> calls, uint32_t throttled);

  // The throttled node was held before its call `k`; `reached` has the calls that each node had
  // ended by then, and `stuck_in` the calls that they are waiting in, or nothing.
  void add(uint64_t k, const std::vector<uint64_t>& reached,
           const std::vector<std::string>& stuck_in = {});

  // A dependency that the trace itself shows. By node, in the order of its calls.
  void know(uint32_t node, uint64_t call, uint64_t on_call, const std::string& shown_by);

  // What is known: dependencies by node and call. With `patterns`, those also that arithmetic
  // sequences of dependencies foretell, as long as what was seen agrees with them.
  std::vector<Found> found(bool patterns) const { return walk(patterns).found; }
  // Calls to be held at next, to find out where within a stretch a node went on; at most `pieces`
  // are made of a stretch, but for one to learn a pattern from. `matters`: whether it is worth it.
  using Matters = std::function<bool(const Found&)>;
  std::vector<uint64_t> unclear(bool patterns, uint64_t pieces = 2,
                                const Matters& matters = {}) const;

  // Whether, at the last call it was held before, it could be foretold how all others go on: by
  // patterns, or by what the trace shows; or nobody was seen to wait for a while.
  bool foretells() const { return walk(true).foretells; }
  // By node: whether patterns or the trace foretell where it goes on.
  std::vector<bool> foretold() const { return walk(true).foretold; }
  // Whether every other node had made all of its calls then.
  bool all_ended() const;

  uint64_t calls() const { return calls_[throttled_]; }
  // The calls that it was held before.
  std::vector<uint64_t> held() const;
  // Observations that fell short of what another one showed to be possible.
  uint64_t corrected() const { return corrected_; }

 private:
  struct Reach {
    uint64_t calls = 0;
    uint32_t seen = 0;
    std::string stuck_in;
  };
  struct Walk {
    std::vector<Found> found;
    bool foretells = true;
    std::vector<bool> foretold;  // by node
    bool learnt = true;          // there is a stretch that was looked at call by call
  };
  struct Shown {
    uint64_t call, on_call;
    std::string by;
  };
  Walk walk(bool patterns) const;
  uint64_t expected(uint32_t node, uint64_t k) const;

  std::vector<uint64_t> calls_;
  uint32_t throttled_;
  std::map<uint64_t, std::vector<Reach>> seen_;
  std::vector<std::vector<Shown>> shown_;  // by node
  uint64_t corrected_ = 0;
};

}  // namespace feign::discover
