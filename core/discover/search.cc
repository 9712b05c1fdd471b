// SPDX-License-Identifier: MIT
// Where a node is held, and what that tells of the others.
#include <algorithm>
#include <cinttypes>
#include <random>

#include "base/log.h"
#include "discover/discovery.h"
#include "report/format.h"

namespace feign::discover {
namespace {

// With --adaptive, no stretch without a look is longer than this share of a node's calls.
constexpr uint64_t kStretches = 4;
// Where more than this share of a node's calls are likely places, patterns say more.
constexpr uint64_t kEverywhere = 8;
// Replays under random delays show whether it matters where in a stretch a node went on: so many,
// in each of which a node is late by so many runs.
constexpr size_t kReplays = 256;
constexpr uint64_t kLate = 100;
// Of the pauses in the unthrottled run, so many of a node's longest may have been waits.
constexpr size_t kLongest = 2;
// When nobody has gone on at so many places in a row, it leaps to where somebody is likely to.
constexpr uint64_t kStays = 2;
// A place that is known to so many calls is looked at call by call.
constexpr int64_t kNear = 4;

}  // namespace

// What one hold has told.
void Discovery::held(uint32_t index, const Hold& hold) {
  std::vector<uint64_t> reach(nodes_.size(), 0);
  std::vector<std::string> stuck_in(nodes_.size());
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (const auto at = hold.reach.find(nodes_[i].key); at != hold.reach.end())
      reach[i] = at->second;
    if (const auto at = hold.stuck_in.find(nodes_[i].key); at != hold.stuck_in.end())
      stuck_in[i] = at->second;
  }
  nodes_[index].frontier->add(hold.k, reach, stuck_in);
  if (log_level() < FEIGN_LOG_DEBUG) return;
  std::string text = format(
      "discover: held: node=%u call=%" PRIu64 " ms=%.1f reached=", report_.nodes[index].number,
      hold.k, static_cast<double>(hold.delay_ns) / 1e6);
  for (const uint64_t r : reach) text += std::to_string(r) + " ";
  log(FEIGN_LOG_DEBUG, text);
}

// One more run with a node held before these calls.
Result<void> Discovery::once(uint32_t index, const std::vector<uint64_t>& holds) {
  Node& node = nodes_[index];
  const uint64_t calls = node.first.calls.size();
  auto outcome = one_run(node.key, holds);
  if (!outcome) return std::move(outcome.error());
  if (auto ok = compare(*outcome, node.key); !ok) return ok;
  ++report_.nodes[index].runs;
  if (!plan_.next)
    for (const Hold& hold : outcome->holds) held(index, hold);
  for (auto& [key, log] : outcome->nodes) {
    // No run shows less than a node needs, and most show more: it waited for others.
    Limits& limit = limits_[key];
    limit.gap_ns = std::min(limit.gap_ns, log.longest_gap_ns);
    limit.cpu_ns = std::min(limit.cpu_ns, log.longest_cpu_ns);
    limit.call_ns = std::max(limit.call_ns, log.longest_call_ns);
  }
  uint64_t found = 0;
  for (const Node& n : nodes_) found += n.frontier->found(options_.adaptive).size();
  note_step(std::max<uint64_t>(found, shown_.size()));
  for (Node& n : nodes_) {
    n.last.clear();
    for (const IoCall& c : outcome->nodes[n.key].calls)
      n.last.push_back({c.start_ns, c.start_ns + c.call_ns});
  }
  const auto& log = outcome->nodes[node.key];
  node.least_gap.resize(calls, UINT64_MAX);
  for (size_t i = 0; i < calls; ++i)
    node.least_gap[i] = std::min(node.least_gap[i], log.calls[i].gap_ns - log.calls[i].waited_ns);
  return {};
}

// Places where it may be worth to hold a node, and the next: where somebody waits, as the runs of
// other nodes found, for the throttled one waits there, too, or does what they do; or where nodes
// paused for long in the unthrottled run.
std::set<uint64_t> Discovery::likely(uint32_t index, bool found) const {
  std::set<uint64_t> out;
  const uint64_t calls = nodes_[index].frontier->calls();
  const auto between = [&](uint64_t call) {  // this call and the one before it
    if (call != 0 && call < calls) out.insert({call - 1, call});
  };
  for (uint32_t i = 0; i < nodes_.size() && found; ++i)
    for (const Found& f : nodes_[i].frontier->found(true)) {
      if (i == index || f.latest != f.on_call) continue;
      if (f.node == index) between(f.call);
      between(f.on_call + 1);
    }
  for (uint32_t i = 0; i < nodes_.size() && !found; ++i) {
    const auto& log = nodes_[i].first.calls;
    std::vector<size_t> longest;
    for (size_t c = 1; c < log.size(); ++c) longest.push_back(c);
    const size_t n = std::min(kLongest, longest.size());
    std::partial_sort(longest.begin(), longest.begin() + static_cast<ptrdiff_t>(n), longest.end(),
                      [&](size_t a, size_t b) { return log[a].gap_ns > log[b].gap_ns; });
    const auto& own = nodes_[index].first.calls;
    for (size_t l = 0; l < n; ++l)
      between(static_cast<uint64_t>(std::partition_point(own.begin(), own.end(),
                                                         [&](const IoCall& c) {
                                                           return c.start_ns + c.call_ns <=
                                                                  log[longest[l]].start_ns;
                                                         }) -
                                    own.begin()));
  }
  if (out.size() > calls / kEverywhere) out.clear();
  return out;
}

// What a node's call waits for had ended when it was made, in any run: the last call of the
// throttled node for which that holds is the latest that it can be. It waited before it computed:
// the last that had ended by then is the earliest that is likely.
std::pair<uint64_t, uint64_t> Discovery::likely_wait(uint32_t index, uint32_t other,
                                                     uint64_t call) const {
  const Node &own = nodes_[index], &theirs = nodes_[other];
  if (call >= theirs.first.calls.size()) return {UINT64_MAX, UINT64_MAX};
  const IoCall& c = theirs.first.calls[call];
  const auto ended_by = [&](uint64_t when) {
    return std::partition_point(
               own.first.calls.begin(), own.first.calls.end(),
               [&](const IoCall& mine) { return mine.start_ns + mine.call_ns <= when; }) -
           own.first.calls.begin();
  };
  auto from = ended_by(c.start_ns - std::min({c.gap_ns, theirs.usual_gap, c.start_ns}));
  auto to = ended_by(c.start_ns);
  if (report_.nodes[index].runs != 0) {  // in which it was late, and most waited for it
    const auto ended = [&](uint64_t when) {
      return std::partition_point(own.last.begin(), own.last.end(),
                                  [&](const Order::Times& t) { return t.end <= when; }) -
             own.last.begin();
    };
    const uint64_t start = theirs.last[call].start;
    from = ended(start - std::min(theirs.usual_gap, start));
    to = std::min(to, ended(start));
  }
  from = std::min(from, to);
  if (to - from > kNear) from = to;
  return {static_cast<uint64_t>(from) - 1, static_cast<uint64_t>(to) - 1};
}

// A run that looks call by call until it can be foretold how the others go on, then from ever
// further away, and closely again where that was wrong, and towards the end. Where others' runs
// say where to look, it looks there first.
Result<void> Discovery::explore(uint32_t index) {
  Frontier& frontier = *nodes_[index].frontier;
  const uint64_t calls = frontier.calls();
  const std::set<uint64_t> found = likely(index, true), paused = likely(index, false);
  uint64_t before = 0, stride = 1, stays = 0;  // stays: looks in a row at which all were as before
  bool leaps = true;                           // unless it was wrong to
  std::map<std::string, uint64_t> reached;
  plan_.next = [&](const Hold& hold, bool sure) -> uint64_t {
    const uint64_t k = hold.k;
    if (sure) {
      held(index, hold);
      if (frontier.all_ended()) return UINT64_MAX;
      const auto unclear = frontier.unclear(true);
      const bool wrong = std::any_of(unclear.begin(), unclear.end(),
                                     [&](uint64_t u) { return u > before && u < k; });
      leaps = leaps && !wrong;
      stays = hold.reach == reached ? stays + 1 : 0;
      reached = hold.reach;
      stride = wrong || (stride == 1 && !frontier.foretells())
                   ? 1
                   : std::min(stride * 2, std::max(uint64_t{1}, calls / kStretches));
    } else {
      stride = std::max(uint64_t{1}, calls / kStretches);
    }
    before = k;
    if (k + 1 >= calls || !time_left()) return UINT64_MAX;
    if (const auto next = found.upper_bound(k); next != found.end()) return *next;
    const auto unclear = frontier.unclear(true);
    uint64_t next = k + stride;
    if (!unclear.empty() && unclear.back() >= k)  // what the trace shows goes to the end
      next = k + std::min(stride, std::max(uint64_t{1}, (calls - 1 - k) / 2));
    // Where the first goes on of those of whom it is not foretold.
    const std::vector<bool> foretold = frontier.foretold();
    uint64_t first = UINT64_MAX;
    for (uint32_t i = 0; i < nodes_.size() && sure; ++i)
      if (const auto at = hold.reach.find(nodes_[i].key); at != hold.reach.end() && !foretold[i])
        if (const auto [from, to] = likely_wait(index, i, at->second); to + 1 > k && to + 1 != 0)
          first = std::min(first, from + 1 > k + 1 ? from : k + 1);
    const bool all_open = std::find(foretold.begin(), foretold.end(), true) == foretold.end();
    if (first != UINT64_MAX && stays >= kStays && leaps && all_open) return first;
    next = std::min(next, first);
    // Long pauses say nothing where it is known how all go on.
    const bool known = std::all_of(hold.reach.begin(), hold.reach.end(), [&](const auto& r) {
      for (uint32_t i = 0; i < nodes_.size(); ++i)
        if (nodes_[i].key == r.first)
          return foretold[i] || r.second == nodes_[i].first.calls.size();
      return true;
    });
    const auto pause = paused.upper_bound(k);
    return pause != paused.end() && !(sure && known) ? std::min(next, *pause) : next;
  };
  auto ok = once(index, {0});
  plan_.next = nullptr;
  return ok;
}

// A run with holds at those of these calls that can tell something still when they come.
Result<void> Discovery::refine(uint32_t index, const std::vector<uint64_t>& holds) {
  const Frontier& frontier = *nodes_[index].frontier;
  plan_.next = [&](const Hold& hold, bool sure) -> uint64_t {
    if (sure) held(index, hold);
    const auto found = frontier.found(true);
    for (const uint64_t k : holds)
      if (k > hold.k && std::any_of(found.begin(), found.end(),
                                    [&](const Found& f) { return k > f.on_call && k <= f.latest; }))
        return k;
    return UINT64_MAX;
  };
  auto ok = once(index, {holds.front()});
  plan_.next = nullptr;
  return ok;
}

// Of the dependencies on a node that are not known to the call, those (by node and call) that do
// not come after all of the stretch in some replay under random delays. For each there is a replay,
// in which the node is late by more than a whole run just there.
std::set<std::pair<uint32_t, uint64_t>> Discovery::moved_by_delays(uint32_t index) {
  std::set<std::pair<uint32_t, uint64_t>> moved;
  std::vector<Found> vague;
  for (const Found& f : nodes_[index].frontier->found(true))
    if (f.latest != f.on_call && f.call < nodes_[f.node].first.calls.size()) vague.push_back(f);
  if (vague.empty()) return moved;
  conclude();
  const Order known = order();
  const bool circular = known.circular();  // nothing is sure then
  std::mt19937_64 random(1);
  for (size_t replay = 0; replay < vague.size(); ++replay) {
    if (circular || replay >= kReplays) {
      moved.emplace(vague[replay].node, vague[replay].call);
      continue;
    }
    const auto times = known.play(
        [&](uint32_t node, uint64_t call) {
          const uint64_t most = limits_[nodes_[node].key].gap_ns;
          const bool late = node == index && call == vague[replay].latest;
          return compute_of(nodes_[node], call) + random() % (most + 1) +
                 (late ? kLate * report_.first_ns : 0);
        },
        [&](uint32_t node, uint64_t call) { return nodes_[node].first.calls[call].call_ns; });
    for (const Found& f : vague)
      if (times[f.node][f.call].start < times[index][f.latest].end) moved.emplace(f.node, f.call);
  }
  return moved;
}

Result<void> Discovery::throttle(uint32_t index) {
  Node& node = nodes_[index];
  Frontier& frontier = *node.frontier;
  const uint64_t calls = node.first.calls.size();
  if (!options_.adaptive) {
    std::vector<uint64_t> holds;
    for (uint64_t k = 0; k < calls; k += options_.sample_period) holds.push_back(k);
    for (uint32_t r = 0; r < options_.repeat; ++r)
      if (auto ok = once(index, holds); !ok) return ok;
    return {};
  }
  if (auto ok = explore(index); !ok) return ok;
  while (true) {
    const auto moved = moved_by_delays(index);
    const auto matters = [&](const Found& f) { return moved.contains({f.node, f.call}); };
    // As many delays in a run as take as long as one more run would.
    const uint64_t delay =
        report_.holds != 0 ? std::max<uint64_t>(1, report_.held_ns / report_.holds) : 1;
    const uint64_t pieces = 1 + std::clamp<uint64_t>(report_.first_ns / delay, 1, 64);
    auto next = frontier.unclear(true, pieces, matters);
    for (const Found& f : frontier.found(true))
      if (f.latest != f.on_call && !next.empty() && matters(f))
        for (auto [k, to] = likely_wait(index, f.node, f.call); k + 1 <= to + 2; ++k)
          if (k > f.on_call && k <= f.latest) next.push_back(k);
    std::sort(next.begin(), next.end());
    if (next.empty() || accurate(frontier, matters)) break;
    if (!time_left()) {
      report_.out_of_budget = true;
      break;
    }
    const size_t before = frontier.held().size();
    if (auto ok = refine(index, next); !ok) return ok;
    if (frontier.held().size() == before) break;  // delays met their bound: no more to be learnt
  }
  return {};
}

// Whether enough of what was found is known to the call, or as closely as matters.
bool Discovery::accurate(const Frontier& frontier, const Frontier::Matters& matters) const {
  const auto found = frontier.found(true);
  const auto vague = std::count_if(found.begin(), found.end(), [&](const Found& f) {
    return f.latest != f.on_call && matters(f);
  });
  return static_cast<double>(vague) <= (1 - options_.accuracy) * static_cast<double>(found.size());
}

}  // namespace feign::discover
