// SPDX-License-Identifier: MIT
#include "discover/frontier.h"

#include <algorithm>
#include <set>
#include <utility>

namespace feign::discover {

Frontier::Frontier(std::vector<uint64_t> calls, uint32_t throttled)
    : calls_(std::move(calls)), throttled_(throttled), shown_(calls_.size()) {}

void Frontier::know(uint32_t node, uint64_t call, uint64_t on_call, const std::string& shown_by) {
  shown_[node].push_back({call, on_call, shown_by});
}

// How far a node would get if it waited for nothing but what the trace shows.
uint64_t Frontier::expected(uint32_t node, uint64_t k) const {
  for (const Shown& s : shown_[node])
    if (s.on_call >= k) return s.call;
  return calls_[node];
}

std::vector<uint64_t> Frontier::held() const {
  std::vector<uint64_t> calls;
  for (const auto& [k, row] : seen_) calls.push_back(k);
  return calls;
}

void Frontier::add(uint64_t k, const std::vector<uint64_t>& reached,
                   const std::vector<std::string>& stuck_in) {
  auto [at, fresh] = seen_.try_emplace(k, calls_.size());
  for (size_t i = 0; i < calls_.size() && i < reached.size(); ++i) {
    Reach& r = at->second[i];
    const uint64_t calls = std::min(reached[i], calls_[i]);
    if (!fresh && calls != r.calls) ++corrected_;
    if (calls > r.calls) r = {calls, 0, {}};
    if (calls != r.calls) continue;
    ++r.seen;
    if (i < stuck_in.size()) r.stuck_in = stuck_in[i];
  }
}

namespace {

// Longer stretches are halved before one is looked at call by call.
constexpr uint64_t kLearn = 256;
// Who waited for none of so many calls in a row waits for none of the next, it is assumed.
constexpr uint64_t kNobody = 4;

// Dependencies that follow each other at equal distances, of one node on the throttled one.
struct Sequence {
  uint64_t call = 0, on_call = 0;       // the last one
  uint64_t call_step = 0, on_step = 0;  // from the one before it
  uint32_t equal = 0;                   // steps of that size in a row

  void add(uint64_t next_call, uint64_t next_on, bool first) {
    const uint64_t a = next_call - call, b = next_on - on_call;
    equal = first ? 0 : (equal != 0 && a == call_step && b == on_step) ? equal + 1 : 1;
    call = next_call;
    on_call = next_on;
    call_step = a;
    on_step = b;
  }
  // Three dependencies make two equal steps.
  bool foretells() const { return equal >= 2 && on_step != 0; }
};

}  // namespace

Frontier::Walk Frontier::walk(bool patterns) const {
  Walk out;
  const auto stuck = [](const Reach& r, bool lower) { return lower ? std::string() : r.stuck_in; };
  out.learnt = !patterns;
  for (auto at = seen_.begin(); at != seen_.end() && !out.learnt; ++at)
    out.learnt = std::next(at) != seen_.end() && std::next(at)->first == at->first + 1;
  out.foretold.resize(calls_.size());
  for (uint32_t i = 0; i < calls_.size(); ++i) {
    if (i == throttled_) continue;
    Sequence sequence;
    bool first = true;
    uint64_t best = 0, since = 0;  // since: the first call from which each was looked at
    for (auto at = seen_.begin(); at != seen_.end(); ++at) {
      const uint64_t k = at->first;
      const bool lower = at->second[i].calls < best;  // an earlier one saw more
      best = std::max(best, at->second[i].calls);
      const auto next = std::next(at);
      const bool last = next == seen_.end();
      if (last) {
        out.foretold[i] = sequence.foretells() || (!shown_[i].empty() && expected(i, k) == best);
        if (!out.foretold[i] && best < calls_[i] && (!first || k - std::min(since, k) < kNobody))
          out.foretells = false;
      }
      const uint64_t until = last ? calls_[throttled_] : next->first;
      const uint64_t after = last ? calls_[i] : std::max(best, next->second[i].calls);
      if (after <= best || k >= until) continue;
      const auto shown = [&](uint64_t call, uint64_t on_call) {
        for (const Shown& s : shown_[i])
          if (s.call == call && s.on_call >= on_call) return s.by;
        return std::string();
      };
      if (until == k + 1) {
        out.found.push_back({i, best, k, k, lower ? 0 : at->second[i].seen,
                             stuck(at->second[i], lower), false, shown(best, k)});
        sequence.add(best, k, first);
        first = false;
        continue;
      }
      // Somewhere in [k, until) the node went on, perhaps more than once. Where it was stuck at
      // both ends is where the trace says: then the trace says what is between, too.
      if (!shown_[i].empty() && expected(i, k) == best && expected(i, until) == after) {
        uint32_t seen = lower ? 0 : at->second[i].seen;
        for (const Shown& s : shown_[i])
          if (s.on_call >= k && s.on_call < until)
            out.found.push_back(
                {i, s.call, s.on_call, s.on_call, std::exchange(seen, 0), {}, false, s.by});
        first = true;
        sequence = {};
        since = until;
        continue;
      }
      // (Of one that ends in it, the last calls could be a step more, or wait for nothing.)
      if (patterns && sequence.foretells() && after != calls_[i]) {
        Sequence trial = sequence;
        std::vector<Found> foretold;
        uint64_t expected = trial.call + trial.call_step;
        bool agrees = expected == best && trial.on_call + trial.on_step >= k;
        while (agrees && trial.on_call + trial.on_step < until) {
          trial.call += trial.call_step;
          trial.on_call += trial.on_step;
          foretold.push_back({i, trial.call, trial.on_call, trial.on_call, 0, {}, true, {}});
          expected = trial.call + trial.call_step;
        }
        if (agrees && expected == after && !foretold.empty()) {
          if (foretold.front().on_call == k) foretold.front().seen = at->second[i].seen;
          out.found.insert(out.found.end(), foretold.begin(), foretold.end());
          sequence = trial;
          continue;
        }
      }
      out.found.push_back({i,
                           best,
                           k,
                           until - 1,
                           lower ? 0 : at->second[i].seen,
                           stuck(at->second[i], lower),
                           false,
                           {}});
      since = until;
      first = true;
      sequence = {};
    }
  }
  return out;
}

std::vector<uint64_t> Frontier::unclear(bool patterns, uint64_t pieces,
                                        const Matters& matters) const {
  const Walk now = walk(patterns);
  std::set<uint64_t> out;
  uint32_t learns = UINT32_MAX;  // the node whose first such stretch is looked at call by call
  for (const Found& f : now.found) {
    const uint64_t length = f.latest - f.on_call + 1;
    if (length == 1 || (matters && !matters(f))) continue;
    const bool learn = !now.learnt && length <= kLearn;
    if (learn && std::exchange(learns, f.node) == f.node) continue;
    const uint64_t parts = learn ? length : std::min(pieces, length);
    for (uint64_t i = 1; i < parts; ++i) out.insert(f.on_call + length * i / parts);
  }
  return {out.begin(), out.end()};
}

bool Frontier::all_ended() const {
  if (seen_.empty()) return false;
  for (uint32_t i = 0; i < calls_.size(); ++i)
    if (i != throttled_ && seen_.rbegin()->second[i].calls != calls_[i]) return false;
  return true;
}

}  // namespace feign::discover
