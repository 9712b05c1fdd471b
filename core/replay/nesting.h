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
class Nesting {
 public:
  // Whether a call around it was done. (One that ended when another began may lie in it.)
  bool done_already(const feign_activity& a) const {
    return FEIGN_DEPTH(a.marks) > done_depth_ && a.start_ns <= done_until_;
  }
  // Before an activity: `skipped` is the recorded time in skipped calls since the last that was
  // done.
  void before(const feign_activity& a, uint64_t& skipped) {
    const uint32_t depth = FEIGN_DEPTH(a.marks);
    for (; !around_.empty() && around_.back().depth >= depth; around_.pop_back()) {
      const Around& left = around_.back();
      if (left.entered && left.end > last_end_) skipped += left.end - last_end_;
      last_end_ = left.end;
    }
    if (around_.empty() || around_.back().entered) return;
    around_.back().entered = true;
    skipped -= std::min(skipped, around_.back().duration);
  }
  // The time of a skipped one that waits for somebody now was that waiting.
  void after(const feign_activity& a, bool was_skipped, bool waits, uint64_t& skipped) {
    const uint32_t depth = FEIGN_DEPTH(a.marks);
    const uint64_t end = a.start_ns + a.duration_ns;
    if (was_skipped) {
      const uint64_t counted = waits ? 0 : a.duration_ns;
      skipped += counted;
      around_.push_back({depth, false, counted, end});
    } else {
      done_depth_ = depth;
      done_until_ = end;
    }
    last_end_ = end;
  }

 private:
  struct Around {  // a skipped activity; others may lie in it
    uint32_t depth;
    bool entered;
    uint64_t duration, end;
  };
  uint32_t done_depth_ = UINT32_MAX;  // of the last that was done
  uint64_t done_until_ = 0, last_end_ = 0;
  std::vector<Around> around_;
};

}  // namespace feign
