// SPDX-License-Identifier: MIT
#include "lab/statistics.h"

#include <algorithm>
#include <cmath>

namespace feign {
namespace {

double phi(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

// The share of Student's t below x > 0: its density summed up by Simpson's rule, over an angle so
// that the heavy tail of few degrees is finite.
double t_below(double x, double n) {
  const double c = std::exp(std::lgamma((n + 1) / 2) - std::lgamma(n / 2)) / std::sqrt(M_PI);
  const double end = std::atan(x / std::sqrt(n));
  constexpr int kSteps = 400;
  double sum = 0;
  for (int i = 0; i <= kSteps; ++i) {
    const double weight = i == 0 || i == kSteps ? 1 : i % 2 == 1 ? 4 : 2;
    sum += weight * std::pow(std::cos(end * i / kSteps), n - 1);
  }
  return 0.5 + c * sum * end / kSteps / 3;
}

}  // namespace

double quantile(std::span<const double> sorted, double p) {
  if (sorted.empty()) return 0;
  const double at = p * static_cast<double>(sorted.size() - 1);
  const auto i = static_cast<size_t>(at);
  if (i + 1 >= sorted.size()) return sorted.back();
  return sorted[i] + (at - static_cast<double>(i)) * (sorted[i + 1] - sorted[i]);
}

Samples describe_samples(std::vector<double> values) {
  Samples s;
  s.count = values.size();
  if (values.empty()) return s;
  std::sort(values.begin(), values.end());
  s.median = quantile(values, 0.5);
  s.low = quantile(values, 0.25);
  s.high = quantile(values, 0.75);
  s.least = values.front();
  s.most = values.back();
  return s;
}

double t_quantile(double p, double n) {
  double low = 0, high = 1;
  while (t_below(high, n) < p && high < 1e6) high *= 2;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (t_below(middle, n) < p ? low : high) = middle;
  }
  return (low + high) / 2;
}

Comparison compare(std::span<const double> logs, uint64_t seed) {
  Comparison c;
  c.pairs = logs.size();
  if (logs.empty()) return c;
  const auto n = static_cast<double>(logs.size());
  double sum = 0;
  for (const double v : logs) sum += v;
  const double mean = sum / n;
  c.ratio = c.low = c.high = std::exp(mean);
  if (logs.size() < 2) return c;
  double squares = 0;
  for (const double v : logs) squares += (v - mean) * (v - mean);
  const double deviation = std::sqrt(squares / (n - 1));
  const double t = t_quantile(0.975, n - 1);

  std::vector<double> means(kResamples);
  uint64_t state = seed;
  for (double& m : means) {
    double total = 0;
    for (size_t i = 0; i < logs.size(); ++i) total += logs[random_below(state, logs.size())];
    m = total / n;
  }
  std::sort(means.begin(), means.end());
  const double q = phi(-t * std::sqrt(n / (n - 1)));
  const double low = quantile(means, q), high = quantile(means, 1 - q);
  c.low = std::exp(low);
  c.high = std::exp(high);
  c.resolves = std::exp(t * deviation / std::sqrt(n)) - 1;
  if (logs.size() >= kLeastPairs)
    c.verdict = high < 0 ? Comparison::kFaster : low > 0 ? Comparison::kSlower : Comparison::kSame;

  // Of n pairs, the interval is t s / sqrt(n) to each side, and the mean is off by less than
  // 0.84 s / sqrt(n) to the wrong one four times in five.
  constexpr double kPower = 0.8416;
  const auto tells = [&](uint64_t pairs) {
    const auto k = static_cast<double>(pairs);
    const double of = pairs < 100 ? t_quantile(0.975, k - 1) : 1.96;
    return std::abs(mean) >= (of + kPower) * deviation / std::sqrt(k);
  };
  if (tells(kMostRepeats)) {
    uint64_t few = kLeastPairs - 1, enough = kMostRepeats;
    while (enough - few > 1) {
      const uint64_t middle = (few + enough) / 2;
      (tells(middle) ? enough : few) = middle;
    }
    c.needed = enough;
  }
  return c;
}

const char* verdict_name(Comparison::Verdict v) {
  switch (v) {
    case Comparison::kFaster:
      return "faster";
    case Comparison::kSlower:
      return "slower";
    case Comparison::kSame:
      return "no difference measurable";
    case Comparison::kTooFew:
      break;
  }
  return "too few repeats";
}

}  // namespace feign
