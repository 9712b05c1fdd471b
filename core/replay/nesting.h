// SPDX-License-Identifier: MIT
// Calls in calls (FEIGN_DEPTH; docs/decisions/0011-calls-in-calls.md).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "feign.h"

namespace feign {

// Activities of one stream that lie in others (FEIGN_DEPTH): what a call that was done did is not
// done again, and the time of one that was skipped counts once, with what is in it or without.
// What a function does that a call calls back is as deep as that call, and comes before its end.
class Nesting {
 public:
  // Whether the call around it was done. (One that ended when another began may lie in it.)
  bool done_already(const feign_activity& a) const {
    const uint32_t depth = FEIGN_DEPTH(a.marks);
    for (auto outer = around_.rbegin(); outer != around_.rend() && depth != 0; ++outer)
      if (outer->depth < depth && outer->end >= a.start_ns) return outer->done;
    return false;
  }
  // Before an activity: `skipped` is the recorded time in skipped calls since the last that was
  // done.
  void before(const feign_activity& a, uint64_t& skipped) {
    const uint32_t depth = FEIGN_DEPTH(a.marks);
    for (; !around_.empty() && around_.back().depth >= depth; around_.pop_back()) {
      const Around& left = around_.back();
      if (left.done && left.depth == depth && left.end > a.start_ns) break;
      if (left.done) continue;
      if (left.entered && left.end > last_end_) skipped += left.end - last_end_;
      last_end_ = left.end;
    }
    if (around_.empty() || around_.back().done || around_.back().entered) return;
    around_.back().entered = true;
    skipped -= std::min(skipped, around_.back().duration);
  }
  // The time of a skipped one that waits for somebody now was that waiting.
  void after(const feign_activity& a, bool was_skipped, bool waits, uint64_t& skipped) {
    const uint32_t depth = FEIGN_DEPTH(a.marks);
    const uint64_t end = a.start_ns + a.duration_ns;
    const uint64_t counted = waits || !was_skipped ? 0 : a.duration_ns;
    skipped += counted;
    if (!was_skipped && !around_.empty() && around_.back().depth == depth)
      around_.back().end = std::max(around_.back().end, end);  // it was done as well
    else
      around_.push_back({depth, !was_skipped, false, counted, end});
    last_end_ = end;
  }

 private:
  struct Around {  // others may lie in it; of one depth one that was done at most, and one above it
    uint32_t depth;
    bool done, entered;
    uint64_t duration, end;
  };
  uint64_t last_end_ = 0;
  std::vector<Around> around_;
};

}  // namespace feign
