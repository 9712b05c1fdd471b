// SPDX-License-Identifier: MIT
// Who read and wrote which bytes of a file (or locked them).
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "modifiers/depend/points.h"

namespace depend {

// A sorted list of segments. Up to kMost are kept apart; then neighbours are put together, which
// orders more than need be, and memory is bounded.
class Ranges {
 public:
  static constexpr size_t kMost = 256;

  // `visit(points)` gets what a read of [begin, end) must come after. Returns whether all of the
  // range was written.
  template <typename Visit>
  bool read(uint64_t begin, uint64_t end, Point me, Visit&& visit) {
    if (begin >= end) return true;
    bool whole = true;
    size_t i = cut(begin);
    uint64_t at = begin;
    while (at < end) {
      if (i == segments_.size() || segments_[i].begin > at) {  // nobody was here
        const uint64_t stop = i == segments_.size() ? end : std::min(end, segments_[i].begin);
        segments_.insert(segments_.begin() + static_cast<ptrdiff_t>(i),
                         Segment{at, stop, false, {}, {}});
      } else if (segments_[i].end > end) {
        split(i, end);
      }
      Segment& s = segments_[i++];
      whole &= s.whole;
      visit(s.writes);
      s.reads.add(me);
      at = s.end;
    }
    tidy();
    return whole;
  }

  // … a write of it must come after.
  template <typename Visit>
  void write(uint64_t begin, uint64_t end, Point me, Visit&& visit) {
    if (begin >= end) return;
    const size_t first = cut(begin);
    size_t last = first;
    while (last < segments_.size() && segments_[last].begin < end) {
      if (segments_[last].end > end) split(last, end);
      visit(segments_[last].writes);
      visit(segments_[last].reads);
      ++last;
    }
    if (first == last) {
      segments_.insert(segments_.begin() + static_cast<ptrdiff_t>(first), Segment{});
    } else {
      segments_.erase(segments_.begin() + static_cast<ptrdiff_t>(first) + 1,
                      segments_.begin() + static_cast<ptrdiff_t>(last));
    }
    Segment& s = segments_[first];
    s.begin = begin;
    s.end = end;
    s.whole = true;
    s.writes.only(me);
    s.reads.clear();
    tidy();
  }

  // Of a file that one stream alone uses: no more than where, and up to when.
  void note(uint64_t begin, uint64_t end, Point me, bool writes) {
    if (begin >= end) return;
    if (segments_.empty()) segments_.push_back({begin, end, writes, {}, {}});
    Segment& s = segments_.front();
    s.whole =
        s.whole && (writes ? begin <= s.end && end >= s.begin : begin >= s.begin && end <= s.end);
    s.begin = std::min(s.begin, begin);
    s.end = std::max(s.end, end);
    (writes ? s.writes : s.reads).add(me);
  }

  // What flush must come after: all writes.
  template <typename Visit>
  void writes(Visit&& visit) const {
    for (const Segment& s : segments_) visit(s.writes);
  }
  // Whether the last to write into the range was this stream alone.
  bool written_by(uint64_t begin, uint64_t end, uint32_t stream) const {
    bool any = false;
    for (const Segment& s : segments_)
      if (s.begin < end && s.end > begin && !s.writes.empty()) {
        if (!s.writes.only_of(stream)) return false;
        any = true;
      }
    return any;
  }
  void shrink(size_t most) {
    while (segments_.size() > most) halve();
    segments_.shrink_to_fit();
  }
  size_t size() const { return segments_.size(); }

 private:
  struct Segment {
    uint64_t begin = 0, end = 0;
    bool whole = false;  // all of it was written
    Points writes, reads;
  };

  static Points copy(const Points& from) {
    Points to;
    to.add(from);
    return to;
  }
  // Makes a segment begin at `at` if one holds it; the first that does not end before it.
  size_t cut(uint64_t at) {
    const auto i = static_cast<size_t>(
        std::lower_bound(segments_.begin(), segments_.end(), at,
                         [](const Segment& s, uint64_t wanted) { return s.end <= wanted; }) -
        segments_.begin());
    if (i == segments_.size() || segments_[i].begin >= at) return i;
    split(i, at);
    return i + 1;
  }
  void split(size_t i, uint64_t at) {
    Segment& s = segments_[i];
    Segment left{s.begin, at, s.whole, copy(s.writes), copy(s.reads)};
    s.begin = at;
    segments_.insert(segments_.begin() + static_cast<ptrdiff_t>(i), std::move(left));
  }
  void tidy() {
    if (segments_.size() > kMost) halve();
  }
  void halve() {
    size_t to = 0;
    for (size_t i = 0; i < segments_.size(); i += 2) {
      Segment s = std::move(segments_[i]);
      if (i + 1 < segments_.size()) {
        const Segment& next = segments_[i + 1];
        s.whole = s.whole && next.whole && s.end == next.begin;
        s.end = next.end;
        s.writes.add(next.writes);
        s.reads.add(next.reads);
      }
      segments_[to++] = std::move(s);
    }
    segments_.resize(to);
  }

  std::vector<Segment> segments_;
};

}  // namespace depend
