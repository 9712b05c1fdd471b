// SPDX-License-Identifier: MIT
#include "discover/discover.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>

#include "base/clock.h"
#include "base/input.h"
#include "base/log.h"
#include "base/output.h"
#include "base/ranges.h"
#include "discover/discovery.h"
#include "discover/patterns.h"
#include "record/program.h"
#include "record/record.h"
#include "report/format.h"

namespace feign::discover {
namespace {

namespace fs = std::filesystem;

// How often all is looked at anew when what was found cannot be.
constexpr int kAgain = 3;
// Beyond so much work patterns are not looked for.
constexpr uint64_t kMostPatterns = uint64_t{1} << 24;
// Nothing counts as blocked for less: some looks, and some ticks by which the kernel counts.
constexpr uint64_t kFloor = 4'000'000;

// "main/10" comes after "main/9".
bool natural_less(const std::string& a, const std::string& b) {
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (isdigit(static_cast<unsigned char>(a[i])) && isdigit(static_cast<unsigned char>(b[j]))) {
      char *end_a = nullptr, *end_b = nullptr;
      const unsigned long long x = strtoull(a.c_str() + i, &end_a, 10);
      const unsigned long long y = strtoull(b.c_str() + j, &end_b, 10);
      if (x != y) return x < y;
      i = static_cast<size_t>(end_a - a.c_str());
      j = static_cast<size_t>(end_b - b.c_str());
    } else if (a[i] != b[j]) {
      return a[i] < b[j];
    } else {
      ++i, ++j;
    }
  }
  return a.size() - i < b.size() - j;
}

// What two runs must agree in: with `tolerate`, not in texts and results.
std::string essence(const std::string& text, bool tolerate) {
  if (!tolerate) return text;
  return text.substr(0, text.find('('));
}

// Launchers of MPI programs, whose calls are not looked into.
bool launches_mpi(const std::string& program) {
  const std::string name = fs::path(program).filename();
  for (const char* known : {"mpirun", "mpiexec", "orterun", "prterun", "srun", "oshrun"})
    if (name == known) return true;
  return false;
}

}  // namespace

Result<RunOutcome> Discovery::one_run(const std::string& throttled,
                                      const std::vector<uint64_t>& holds) {
  if (!options_.before.empty()) {
    const int status = system(options_.before.c_str());
    if (status != 0)
      return Error(
          FEIGN_ERR_ARGUMENT,
          "--before " + options_.before + ": ended with status " +
              std::to_string(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status)));
  }
  plan_.throttled = throttled;
  plan_.holds = holds;
  uint64_t total = 0;
  for (const Node& n : nodes_) total += n.first.calls.size();
  const std::string stage = throttled.empty() ? "run"
                                              : "run " + std::to_string(report_.runs + 1) + ", " +
                                                    throttled + " throttled";
  for (size_t h = 0; h < hosts_.size(); ++h)
    if (auto ok = hosts_.read_clock(h, false); !ok) return std::move(ok.error());
  auto outcome =
      run_watched(plan_, limits_, [&](uint64_t done) { progress_(stage.c_str(), done, total); });
  if (!outcome)
    return throttled.empty()
               ? std::move(outcome.error()).within("unthrottled run")
               : std::move(outcome.error()).within("run with " + throttled + " throttled");
  if (outcome->status != 0) return failure(*outcome, throttled);
  Numbers numbers;
  for (size_t h = 0; h < outcome->keys.size(); ++h)
    numbers.add(h == 0 ? "" : hosts_.name(h - 1), outcome->keys[h]);
  for (size_t h = 0; h < hosts_.size(); ++h) {
    if (auto ok = hosts_.read_clock(h, true); !ok) return std::move(ok.error());
    if (auto ok = hosts_.fetch(h, plan_.raw); !ok) return std::move(ok.error());
  }
  const std::string trace = work(throttled.empty() ? "first.feign" : "run.feign");
  if (auto ok = read_run(plan_.raw, trace, plugins_, numbers, outcome->nodes); !ok)
    return std::move(ok.error()).within("read what was recorded");
  if (throttled.empty()) numbers_ = std::move(numbers);
  remove_raw(plan_.raw, true);
  ++report_.runs;
  report_.holds += outcome->holds.size();
  report_.cut_short += outcome->cut_short;
  report_.woke += outcome->woke;
  report_.held_ns += outcome->held_ns;
  std::set<std::string_view> ranks;
  for (const auto& keys : outcome->keys)
    for (const std::string& key : keys)
      if (key.starts_with("rank:"))
        ranks.insert(std::string_view(key).substr(0, key.find_first_of("/#")));
  if (outcome->ranks > ranks.size())
    return Error(
        FEIGN_ERR_UNSUPPORTED,
        format("of %u ranks %zu were seen: the others run on other hosts (--hosts), or are "
               "statically linked",
               outcome->ranks, ranks.size()));
  // MPI programs: the launcher is no part of the application.
  const auto is_rank = [](const auto& n) { return n.second.rank >= 0; };
  ranked_ = std::any_of(outcome->nodes.begin(), outcome->nodes.end(), is_rank);
  if (ranked_) std::erase_if(outcome->nodes, [&](const auto& n) { return !is_rank(n); });
  return outcome;
}

// A run that did not end well, and where those of its nodes were that were killed.
Error Discovery::failure(const RunOutcome& outcome, const std::string& throttled) const {
  const int status = outcome.status;
  std::string text = throttled.empty() ? "" : "run with " + throttled + " throttled: ";
  text += "the command ended with status " + std::to_string(status);
  if (status == 127) text += " (not found?)";
  if (status > 128 && status < 128 + 65)
    text += std::string(" (signal: ") + strsignal(status - 128) + ")";
  text += throttled.empty() ? "; its output: --show-output" : ", and with 0 when nobody was";
  for (size_t i = 0; i < outcome.died.size() && i < 16; ++i)
    text += (i == 0 ? "; nodes that were killed: " : ", ") + outcome.died[i];
  return Error(FEIGN_ERR_ARGUMENT, text);
}

Result<void> Discovery::first_run() {
  plan_.show_output = options_.show_output;
  auto outcome = one_run("", {});
  if (!outcome) return std::move(outcome.error());
  plan_.show_output = false;
  report_.first_ns = outcome->wall_ns;
  report_.status = outcome->status;
  if (outcome->nodes.empty())
    return Error(FEIGN_ERR_ARGUMENT,
                 "the command made no calls on files that could be seen: is it linked statically, "
                 "or do --only and --exclude leave nothing?");
  limits_ = outcome->makers;
  for (auto& [key, log] : outcome->nodes) {
    Node node;
    node.key = key;
    node.first = std::move(log);
    std::vector<uint64_t> gaps;
    for (const IoCall& c : node.first.calls) gaps.push_back(c.gap_ns);
    std::nth_element(gaps.begin(), gaps.begin() + static_cast<ptrdiff_t>(gaps.size() / 2),
                     gaps.end());
    if (!gaps.empty()) node.usual_gap = gaps[gaps.size() / 2];
    limits_[key] = {node.first.longest_gap_ns, node.first.longest_cpu_ns,
                    node.first.longest_call_ns, 0};
    nodes_.push_back(std::move(node));
  }
  std::sort(nodes_.begin(), nodes_.end(), [](const Node& a, const Node& b) {
    if (a.first.rank != b.first.rank) return a.first.rank < b.first.rank;
    return natural_less(a.key, b.key);
  });
  std::set<int> ranks;
  for (const Node& n : nodes_) ranks.insert(n.first.rank);
  const bool ranked = *ranks.begin() >= 0 && ranks.size() == nodes_.size();
  std::vector<uint64_t> calls;
  for (const Node& n : nodes_) calls.push_back(n.first.calls.size());
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    NodeReport r;
    r.key = nodes_[i].key;
    r.number = ranked ? static_cast<uint32_t>(nodes_[i].first.rank) : i;
    r.calls = calls[i];
    report_.nodes.push_back(r);
    nodes_[i].frontier = std::make_unique<Frontier>(calls, i);
  }
  for (const std::string& key : numbers_.keys) {
    const auto at =
        std::find_if(nodes_.begin(), nodes_.end(), [&](const Node& n) { return n.key == key; });
    index_.push_back(at != nodes_.end() ? static_cast<uint32_t>(at - nodes_.begin()) : UINT32_MAX);
  }
  note_step(0);
  auto shown = seen_orders(work("first.feign"), work(""), numbers_, index_, plugins_);
  if (!shown) return std::move(shown.error()).within("read what was recorded");
  shown_ = std::move(*shown);
  report_.steps.back().found = shown_.size();
  for (const SeenOrder& s : shown_) nodes_[s.on].frontier->know(s.node, s.call, s.on_call, s.by);
  return {};
}

// "3" is three of them, spread evenly; "0,2-5" names them.
Result<void> Discovery::choose_nodes() {
  const std::string& text = options_.nodes;
  const auto wrong = [&](const std::string& what) {
    std::string known;
    for (const NodeReport& n : report_.nodes)
      if (known.size() < 200)
        known += (known.empty() ? "" : ", ") + std::to_string(n.number) + " (" + n.key + ")";
    return Error(FEIGN_ERR_ARGUMENT, "--nodes " + text + ": " + what + "; there are: " + known);
  };
  if (text.empty()) {
    for (NodeReport& n : report_.nodes) n.throttled = true;
    return {};
  }
  if (text == "none") return {};
  if (text.find_first_of(",-") == std::string::npos) {
    const unsigned long long n = strtoull(text.c_str(), nullptr, 10);
    const size_t all = report_.nodes.size();
    if (n == 0 || n > all) return wrong("want 1 to " + std::to_string(all));
    for (size_t i = 0; i < n; ++i) report_.nodes[i * all / n].throttled = true;
    return {};
  }
  for (size_t at = 0; at < text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    const std::string part = text.substr(at, comma - at);
    at = comma + 1;
    if (part.empty()) continue;
    const auto range = range_of(part);
    if (!range) return wrong("\"" + part + "\" is no number or range");
    bool any = false, beyond = true;
    for (NodeReport& n : report_.nodes) {
      if (range->has(n.number)) any = n.throttled = true;
      beyond = beyond && n.number < range->last;
    }
    if (!any) return wrong("no node has number " + part);
    if (beyond) return wrong("no node has number " + std::to_string(range->last));
  }
  return {};
}

Result<void> Discovery::compare(const RunOutcome& outcome, const std::string& throttled) {
  const std::string with = " in the run with " + throttled + " throttled";
  const std::string attempt = "attempt to trace a non-deterministic application: ";
  const std::string hint =
      options_.tolerate ? "" : "; if only names or sizes differ, --tolerate goes on";
  for (const auto& there : outcome.nodes)
    if (std::none_of(nodes_.begin(), nodes_.end(),
                     [&](const Node& n) { return n.key == there.first; }))
      return Error(FEIGN_ERR_ARGUMENT, attempt + "node " + there.first + " is there only" + with);
  for (const Node& node : nodes_) {
    const auto at = outcome.nodes.find(node.key);
    if (at == outcome.nodes.end())
      return Error(FEIGN_ERR_ARGUMENT, attempt + "node " + node.key + " is not there" + with);
    const auto& a = node.first.calls;
    const auto& b = at->second.calls;
    for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
      const bool same =
          i < a.size() && i < b.size() &&
          essence(a[i].text, options_.tolerate) == essence(b[i].text, options_.tolerate);
      if (same) continue;
      const auto shown = [&](const std::vector<IoCall>& c) {
        return i < c.size() ? "\"" + c[i].text + "\"" : std::string("the end");
      };
      return Error(FEIGN_ERR_ARGUMENT, attempt + "call " + std::to_string(i) + " of node " +
                                           node.key + " is " + shown(a) + " at first, and " +
                                           shown(b) + with + hint);
    }
  }
  return {};
}

void Discovery::conclude() {
  report_.edges.clear();
  report_.corrected = 0;
  for (uint32_t j = 0; j < nodes_.size(); ++j) {
    NodeReport& report = report_.nodes[j];
    if (!report.throttled) continue;
    const Frontier& frontier = *nodes_[j].frontier;
    report.held_at = frontier.held().size();
    report.unclear = frontier.unclear(options_.adaptive).size();
    report_.corrected += frontier.corrected();
    for (const Found& f : frontier.found(options_.adaptive))
      if (f.call < nodes_[f.node].first.calls.size()) report_.edges.push_back({j, f});
  }
  // What the trace shows, and throttling did not get to see.
  std::vector<Edge> more;
  std::map<std::pair<uint32_t, uint32_t>, std::vector<const Found*>> found;  // by who, on whom
  for (const Edge& e : report_.edges) found[{e.found.node, e.on}].push_back(&e.found);
  for (const SeenOrder& s : shown_) {
    // In the order of their calls, both.
    const auto& list = found[{s.node, s.on}];
    auto last = std::upper_bound(list.begin(), list.end(), s.call,
                                 [](uint64_t call, const Found* f) { return call < f->call; });
    const bool there = last != list.begin() && (*std::prev(last))->on_call >= s.on_call;
    if (!there) more.push_back({s.on, {s.node, s.call, s.on_call, s.on_call, 0, {}, false, s.by}});
  }
  report_.edges.insert(report_.edges.end(), more.begin(), more.end());
}

Order Discovery::order() const {
  std::vector<uint64_t> calls;
  for (const Node& n : nodes_) calls.push_back(n.first.calls.size());
  std::vector<CallOrder> waits;
  for (const Edge& e : report_.edges)
    waits.push_back({e.found.node, e.on, e.found.call, e.found.on_call});
  return Order(calls, waits);
}

void Discovery::find_patterns() {
  if (report_.edges.size() * nodes_.size() > kMostPatterns) return;
  const std::vector<bool> needed = order().needed();
  std::vector<CallOrder> waits;
  std::vector<bool> assumed;
  for (size_t i = 0; i < needed.size(); ++i) {
    const Edge& e = report_.edges[i];
    if (!needed[i] || e.found.latest != e.found.on_call) continue;
    waits.push_back({e.found.node, e.on, e.found.call, e.found.on_call});
    assumed.push_back(e.found.assumed && e.found.seen == 0);
  }
  report_.patterns = patterns(static_cast<uint32_t>(nodes_.size()), waits, assumed);
}

Result<DiscoverReport> Discovery::run() {
  if (const std::string why = why_not_recorded(options_.command[0]); !why.empty())
    return Error(FEIGN_ERR_UNSUPPORTED, why.substr(0, why.find("; --tracer")));
  if (auto ok = folder_.make(options_.output); !ok) return std::move(ok.error());
  begin_ = now_ns();
  report_.noise_ns = measure_noise();
  plan_.command = options_.command;
  plan_.raw = work("raw");
  plan_.posts.push_back([this](const nlohmann::json& q) { return post_.answer(q); });
  if (!options_.hosts.empty()) {
    if (auto ok = hosts_.open(options_.hosts, options_.reach); !ok) return std::move(ok.error());
    for (size_t h = 0; h < hosts_.size(); ++h)
      plan_.posts.push_back([this, h](const nlohmann::json& q) { return hosts_.ask(h, q); });
  }
  if (hosts_.size() != 0) {
    plan_.spared = hosts_.processes();
    // One name on all hosts, and on each a folder of its own.
    const char* tmp = getenv("TMPDIR");
    plan_.raw =
        format("%s/feign-discover.%d.%" PRIx64, tmp != nullptr ? tmp : "/tmp", getpid(), begin_);
  }
  plan_.mpi = options_.mpi || launches_mpi(options_.command[0]);
  plan_.per_process = options_.per_process;
  plan_.only = options_.only;
  plan_.exclude = options_.exclude;
  plan_.timeout_ns = options_.timeout_ns;
  plan_.max_delay_ns = options_.max_delay_ns;
  plan_.factor = options_.factor;
  plan_.floor_ns = kFloor;
  if (mkdir(work("").c_str(), 0700) != 0) return errno_error("make directory " + work(""), errno);

  if (auto ok = first_run(); !ok) return std::move(ok.error());
  if (auto ok = choose_nodes(); !ok) return std::move(ok.error());
  for (uint32_t i = 0; i < nodes_.size(); ++i)
    if (report_.nodes[i].throttled)
      if (auto ok = throttle(i); !ok) return std::move(ok.error());
  conclude();
  for (int again = 0; order().circular(); ++again) {
    for (const Edge& e : report_.edges)
      if (log_level() >= FEIGN_LOG_DEBUG)
        log(FEIGN_LOG_DEBUG,
            format("circular: node %u call %" PRIu64 " after node %u call %" PRIu64 "%s",
                   report_.nodes[e.found.node].number, e.found.call, report_.nodes[e.on].number,
                   e.found.on_call, e.found.assumed ? " (pattern)" : ""));
    if (again == kAgain)
      return Error(
          FEIGN_ERR_IO,
          "calls were found to wait for each other: nodes were taken for blocked too early, "
          "again and again; a larger --factor helps on a machine that is busy otherwise");
    for (auto& [key, limit] : limits_) limit.factor = plan_.factor * (2 << again);
    for (uint32_t i = 0; i < nodes_.size(); ++i)
      if (report_.nodes[i].throttled)
        if (auto ok = once(i, nodes_[i].frontier->held()); !ok) return std::move(ok.error());
    conclude();
  }

  find_patterns();
  for (uint32_t i = 0; i < nodes_.size() && options_.adaptive; ++i) {
    const auto moved = moved_by_delays(i);
    for (const Found& f : nodes_[i].frontier->found(true))
      report_.settled += f.latest != f.on_call && !moved.contains({f.node, f.call});
  }
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    NodeReport& r = report_.nodes[i];
    for (size_t c = 0; c < nodes_[i].first.calls.size(); ++c) {
      const IoCall& call = nodes_[i].first.calls[c];
      r.by_blocking_ns += call.gap_ns - call.waited_ns;
      r.call_ns += call.call_ns;
      if (!nodes_[i].least_gap.empty()) r.by_throttling_ns += nodes_[i].least_gap[c];
    }
  }
  if (auto ok = write_raw(); !ok) return std::move(ok.error());
  if (auto ok = merge(); !ok) return std::move(ok.error());
  if (auto ok = write_dependencies(); !ok) return std::move(ok.error());
  report_.all_ns = now_ns() - begin_;
  std::error_code e;
  fs::remove_all(work(""), e);
  OutputFile json;
  const std::string text = discover_json(report_);
  if (!json.open(folder_.path("report.json")) ||
      write(json.fd(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      !json.finish())
    return errno_error("write " + folder_.path("report.json"), errno);
  if (auto ok = folder_.finish(); !ok) return std::move(ok.error());
  return std::move(report_);
}

Result<DiscoverReport> discover(const DiscoverOptions& options, Plugins& plugins,
                                const Progress& progress) {
  try {
    Discovery discovery(options, plugins, progress);
    return discovery.run();
  } catch (const fs::filesystem_error& e) {
    return Error(FEIGN_ERR_IO, e.what());
  }
}

}  // namespace feign::discover
