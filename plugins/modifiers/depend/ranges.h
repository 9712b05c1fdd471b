// SPDX-License-Identifier: MIT
// Who read and wrote which bytes of a file (or locked them).
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "modifiers/depend/points.h"

namespace depend {

// A sorted list of segments. Up to `most` are kept apart; then neighbours are put together, which
// orders more than need be, and memory is bounded.
class Ranges {
 public:
  explicit Ranges(size_t most = 256) : most_(most) {}

  // `visit(points)` gets what a read of [begin, end) must come after. Returns whether all of the
  // range was written.
  template <typename Visit>
  bool read(uint64_t begin, uint64_t end, Point me, Visit&& visit) {
    if (begin >= end) return true;
    bool whole = true;
    size_t i = cut(begin);
    for (uint64_t at = begin; at < end; ++i) {
      if (i == keys_.size() || keys_[i].begin > at) {  // nobody was here
        const uint64_t stop = i == keys_.size() ? end : std::min(end, keys_[i].begin);
        insert(i, at).end = stop;
      } else if (segment(i).end > end) {
        split(i, end);
      }
      Segment& s = segment(i);
      whole &= s.whole;
      visit(s.writes);
      s.reads.add(me);
      at = s.end;
    }
    if (keys_.size() > most_) halve();
    return whole;
  }

  // … a write of it must come after. A change of the size (`cuts`) leaves no bytes: what is read
  // there is there since somebody wrote behind it.
  template <typename Visit>
  void write(uint64_t begin, uint64_t end, Point me, Visit&& visit, bool cuts = false) {
    if (begin >= end) return;
    const size_t first = cut(begin);
    size_t last = first;
    for (; last < keys_.size() && keys_[last].begin < end; ++last) {
      if (segment(last).end > end) split(last, end);
      visit(segment(last).writes);
      visit(segment(last).reads);
    }
    if (first == last)
      insert(first, begin);
    else
      erase(first + 1, last);
    keys_[first].begin = begin;
    Segment& s = segment(first);
    s.end = end;
    s.whole = !cuts;
    s.writes.only(me);
    s.reads.clear();
    if (keys_.size() > most_) halve();
  }

  // Of a file that one stream alone uses: no more than where, and up to when.
  void note(uint64_t begin, uint64_t end, Point me, bool writes, bool cuts = false) {
    if (begin >= end) return;
    if (keys_.empty()) {
      Segment& s = insert(0, begin);
      s.end = end;
      s.whole = writes;
    }
    Segment& s = segment(0);
    uint64_t& from = keys_[0].begin;
    s.whole = s.whole && !cuts &&
              (writes ? begin <= s.end && end >= from : begin >= from && end <= s.end);
    from = std::min(from, begin);
    s.end = std::max(s.end, end);
    (writes ? s.writes : s.reads).add(me);
  }

  // All writes.
  template <typename Visit>
  void writes(Visit&& visit) {
    for (size_t i = 0; i < keys_.size(); ++i) visit(segment(i).writes);
  }
  // Whether some of the range was written, and not cut since.
  bool written(uint64_t begin, uint64_t end) {
    for (size_t i = 0; i < keys_.size() && keys_[i].begin < end; ++i)
      if (segment(i).end > begin && segment(i).whole) return true;
    return false;
  }
  // What of the range that is, and by whose writes.
  template <typename Visit>
  void whole(uint64_t begin, uint64_t end, Visit&& visit) {
    for (size_t i = 0; i < keys_.size() && keys_[i].begin < end; ++i)
      if (const Segment& s = segment(i); s.end > begin && s.whole)
        visit(std::max(begin, keys_[i].begin), std::min(end, s.end), s.writes);
  }
  void shrink(size_t most) {
    if (keys_.size() <= most) return;
    while (keys_.size() > most) halve();
    std::vector<Segment> left;
    for (Key& k : keys_) {
      left.push_back(std::move(slots_[k.slot]));
      k.slot = static_cast<uint32_t>(left.size() - 1);
    }
    slots_ = std::move(left);
    slots_.shrink_to_fit();
    keys_.shrink_to_fit();
    free_ = {};
  }

 private:
  struct Segment {
    uint64_t end = 0;
    bool whole = false;  // all of it was written
    Points writes, reads;
  };
  struct Key {  // apart, so that little is moved where one is put in
    uint64_t begin;
    uint32_t slot;
  };

  Segment& segment(size_t i) { return slots_[keys_[i].slot]; }
  // A new one before the i-th, of nobody.
  Segment& insert(size_t i, uint64_t begin) {
    uint32_t slot = static_cast<uint32_t>(slots_.size());
    if (free_.empty()) {
      slots_.emplace_back();
    } else {
      slot = free_.back();
      free_.pop_back();
    }
    keys_.insert(keys_.begin() + static_cast<ptrdiff_t>(i), {begin, slot});
    Segment& s = slots_[slot];
    s.whole = false;
    s.writes.clear();
    s.reads.clear();
    return s;
  }
  void erase(size_t from, size_t to) {
    for (size_t i = from; i < to; ++i) free_.push_back(keys_[i].slot);
    keys_.erase(keys_.begin() + static_cast<ptrdiff_t>(from),
                keys_.begin() + static_cast<ptrdiff_t>(to));
  }
  // Makes a segment begin at `at` if one holds it; the first that does not end before it.
  size_t cut(uint64_t at) {
    const auto after =
        std::upper_bound(keys_.begin(), keys_.end(), at,
                         [](uint64_t wanted, const Key& k) { return wanted < k.begin; });
    const auto i = static_cast<size_t>(after - keys_.begin());
    if (i == 0 || segment(i - 1).end <= at) return i;
    if (keys_[i - 1].begin == at) return i - 1;
    split(i - 1, at);
    return i;
  }
  // Into [begin, at) and [at, end).
  void split(size_t i, uint64_t at) {
    Segment& right = insert(i + 1, at);
    Segment& left = segment(i);
    right.end = left.end;
    right.whole = left.whole;
    right.writes.add(left.writes);
    right.reads.add(left.reads);
    left.end = at;
  }
  void halve() {
    size_t to = 0;
    for (size_t i = 0; i < keys_.size(); i += 2) {
      if (i + 1 < keys_.size()) {
        Segment& s = segment(i);
        const Segment& next = segment(i + 1);
        s.whole = s.whole && next.whole && s.end == keys_[i + 1].begin;
        s.end = next.end;
        s.writes.add(next.writes);
        s.reads.add(next.reads);
        free_.push_back(keys_[i + 1].slot);
      }
      keys_[to++] = keys_[i];
    }
    keys_.resize(to);
  }

  size_t most_;
  std::vector<Key> keys_;  // in order
  std::vector<Segment> slots_;
  std::vector<uint32_t> free_;
};

}  // namespace depend
