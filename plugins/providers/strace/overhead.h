// SPDX-License-Identifier: MIT
// How much of the pauses in a trace of strace is strace's own time: it stops a program before and
// after every call.
//
// No line says so, but two things betray it. Programs make calls one after the other with next to
// nothing in between, so pauses crowd where only the tracer's time passes. And how long that is
// shows in the calls: one that takes a microsecond took as long as two stops. It is not the same
// throughout a trace (a tenth as much where program and tracer share a processor, more where
// processors fall asleep between stops), but calls and the pauses beside them are slow together.
// So: by how long the quicker of the two calls around a pause took, where pauses crowd. Where no
// two calls follow each other closely, pauses crowd where the program computes: hence the limit by
// what the calls took.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

namespace feign {

class TracerTime {
 public:
  // It is this long.
  void set(uint64_t ns) { by_class_.fill(ns); }

  // A pause, and how long the quicker of the calls before and after it took.
  void add(uint64_t pause_ns, uint64_t call_ns) { seen_[class_of(call_ns)].push_back(pause_ns); }
  // From what was added; false if that is too little. The samples are given up.
  bool estimate() {
    size_t all = 0;
    for (const auto& pauses : seen_) all += pauses.size();
    if (all < kLeast) return false;
    std::array<bool, kClasses> known{};
    uint64_t sum = 0;
    for (size_t c = 0; c < kClasses; ++c) {
      auto& pauses = seen_[c];
      if (pauses.size() < std::max(kLeast / 2, all / 50)) continue;
      known[c] = true;
      by_class_[c] = std::min(crowded(pauses), limit(c));
    }
    for (size_t c = 0; c < kClasses; ++c)
      if (!known[c]) by_class_[c] = by_nearest(known, c);
    for (size_t c = 0; c < kClasses; ++c) {
      for (const uint64_t pause : seen_[c]) sum += std::min(pause, by_class_[c]);
      seen_[c] = {};
    }
    mean_ns_ = sum / all;
    return true;
  }
  // Of a pause beside such a call.
  uint64_t of(uint64_t call_ns) const { return by_class_[class_of(call_ns)]; }
  // Of those that were added.
  uint64_t mean_ns() const { return mean_ns_; }

 private:
  static constexpr size_t kClasses = 48, kLeast = 50;
  // Two classes for each doubling, from 1 us on.
  static size_t class_of(uint64_t call_ns) {
    const uint64_t n = call_ns / 512;
    if (n < 2) return n;
    const auto log = static_cast<size_t>(std::bit_width(n)) - 1;
    return std::min(2 * log + (n >> (log - 1) & 1), kClasses - 1);
  }
  // Between two calls a tracer does somewhat more than in one: it prints the line. (Measured where
  // nothing was computed: 27 us beside calls of 10, 95 beside calls of 66.) No tracer takes more
  // than 200 us a call.
  static uint64_t limit(size_t c) {
    const uint64_t call_ns = c < 2 ? 1000 : (512 * (2 + (c & 1)) + 256) << (c / 2 - 1);
    return std::min<uint64_t>(call_ns, 200'000) * 3 / 2 + 15'000;
  }
  // Where they lie most densely: the middle of the shortest range that holds a fifth of them. Of
  // those that are not far above it the mean, which, times their number, is what they all took.
  static uint64_t crowded(std::vector<uint64_t>& pauses) {
    std::sort(pauses.begin(), pauses.end());
    const size_t n = pauses.size() / 5;
    size_t best = 0;
    for (size_t i = 0; i + n < pauses.size(); ++i)
      if (pauses[i + n] - pauses[i] < pauses[best + n] - pauses[best]) best = i;
    const uint64_t middle = pauses[best + n / 2];
    uint64_t sum = 0, count = 0;
    for (const uint64_t p : pauses)
      if (p <= middle || p - middle <= middle / 2) sum += p, ++count;
    return sum / count;
  }
  // Of a class with too few samples: as in the nearest that has enough.
  uint64_t by_nearest(const std::array<bool, kClasses>& known, size_t c) const {
    for (size_t d = 1; d < kClasses; ++d) {
      if (c >= d && known[c - d]) return by_class_[c - d];
      if (c + d < kClasses && known[c + d]) return by_class_[c + d];
    }
    return 0;
  }

  std::array<std::vector<uint64_t>, kClasses> seen_;
  std::array<uint64_t, kClasses> by_class_{};
  uint64_t mean_ns_ = 0;
};

}  // namespace feign
