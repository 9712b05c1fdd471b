// SPDX-License-Identifier: MIT
// What can be said of repeated runs, and what cannot. Nothing here knows of files or processes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace feign {

// The value below which a share `p` of the sorted samples lies, linear between two of them.
double quantile(std::span<const double> sorted, double p);

struct Samples {
  size_t count = 0;
  double median = 0, low = 0, high = 0;  // low, high: quartiles
  double least = 0, most = 0;
};
Samples describe_samples(std::vector<double> values);

// A variant against the baseline. Run r of the one is paired with run r of the other: they lay next
// to each other in time, so that what drifts is in both and goes out in their ratio.
struct Comparison {
  enum Verdict { kTooFew, kSame, kFaster, kSlower } verdict = kTooFew;
  size_t pairs = 0;
  double ratio = 1;          // geometric mean of variant / baseline
  double low = 1, high = 1;  // 95 % bootstrap interval of it
  double resolves = 0;       // the smallest change, as a share, that so many pairs can tell
  // Pairs that would tell the ratio seen from 1 four times in five; 0: more than kMostRepeats.
  uint64_t needed = 0;
};
constexpr size_t kLeastPairs = 6;
constexpr uint64_t kMostRepeats = 10'000;
constexpr size_t kResamples = 10'000;

// Of log(variant / baseline) for each pair. The same numbers and seed give the same answer:
//  - resampling takes splitmix64(seed), an index being the high 64 bits of (number × count);
//  - the mean of each of kResamples resamples is sorted; the interval is between its quantiles q
//  and
//    1 - q, q = Phi(-t(0.975, n - 1) × sqrt(n / (n - 1))): with few pairs the plain 2.5 % and 97.5
//    % are too narrow (the "expanded percentile" bootstrap; Hesterberg 2015).
// Fewer than kLeastPairs cannot exclude chance at 95 %, however alike they are: kTooFew.
Comparison compare(std::span<const double> log_ratios, uint64_t seed);

const char* verdict_name(Comparison::Verdict verdict);

// splitmix64: the next number of a state.
inline uint64_t next_random(uint64_t& state) {
  uint64_t z = (state += 0x9E3779B97F4A7C15);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}
// One of 0 … n-1.
inline uint64_t random_below(uint64_t& state, uint64_t n) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>((Wide{next_random(state)} * n) >> 64);
}

// Student's t: the value that a share `p` > 0.5 lies below, for n degrees of freedom.
double t_quantile(double p, double n);

}  // namespace feign
