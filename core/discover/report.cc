// SPDX-License-Identifier: MIT
// What `feign discover` prints when it is done.
#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "discover/discover.h"
#include "nlohmann/json.hpp"
#include "report/format.h"

namespace feign::discover {
namespace {

double seconds(uint64_t ns) { return static_cast<double>(ns) / 1e9; }

std::string nodes_text(const DiscoverReport& r) {
  std::string out = format("%-20s %8s %6s %8s %9s  %s\n", "node", "calls", "runs", "held at",
                           "waits for", "compute by throttling / by blocking calls");
  for (size_t i = 0; i < r.nodes.size(); ++i) {
    const NodeReport& n = r.nodes[i];
    uint64_t waits = 0;
    for (const Edge& e : r.edges) waits += e.found.node == i;
    const std::string by = n.throttled ? format("%.4f s", seconds(n.by_throttling_ns)) : "-";
    out += format("%3u %-16s %8" PRIu64 " %6u %8" PRIu64 " %9" PRIu64 "  %s / %.4f s\n", n.number,
                  n.key.c_str(), n.calls, n.runs, n.held_at, waits, by.c_str(),
                  seconds(n.by_blocking_ns));
  }
  return out;
}

// Names with commas between, as many as fit into a line.
void add_name(std::string& names, const std::string& name) {
  if (names.size() < 60) names += (names.empty() ? "" : ", ") + name;
}

// The dependencies, and how it is known that they are.
std::string edges_text(const DiscoverReport& r) {
  uint64_t assumed = 0, unclear = 0, shown = 0, only_shown = 0;
  std::set<std::string> by;
  for (const Edge& e : r.edges) {
    assumed += e.found.assumed;
    shown += !e.found.shown_by.empty();
    only_shown += !e.found.shown_by.empty() && e.found.seen == 0;
    if (!e.found.shown_by.empty()) by.insert(e.found.shown_by);
    unclear += e.found.latest != e.found.on_call;
  }
  std::string out =
      format("\n%s found, %" PRIu64 " left after those that follow from others are gone\n",
             format_count(r.edges.size(), "dependency", "dependencies").c_str(), r.kept);
  if (shown != 0) {
    std::string names;
    for (const std::string& name : by) add_name(names, name);
    out += format("  %s shown by calls that synchronise (%s), %" PRIu64
                  " of them without throttling\n",
                  format_count(shown, "is", "are").c_str(), names.c_str(), only_shown);
  }
  if (assumed != 0)
    out += format("  %s from a repeating pattern, not seen one by one\n",
                  format_count(assumed, "follows", "follow").c_str());
  if (unclear != 0)
    out += format("  %" PRIu64
                  " are known to within a sampling period only: they may name too early a call\n",
                  unclear);
  if (unclear != 0 && r.settled != 0)
    out += format("    %" PRIu64
                  " of these came in the same order in all replays under random delays\n",
                  r.settled);
  return out;
}

std::string patterns_text(const DiscoverReport& r) {
  std::string out;
  for (const Pattern& p : r.patterns) {
    std::string who;
    for (const uint32_t n : p.nodes) add_name(who, std::to_string(r.nodes[n].number));
    out +=
        format("  %s of %zu nodes (%s): %s, %" PRIu64 " of them checked, %" PRIu64 " assumed\n",
               p.name.c_str(), p.nodes.size(), who.c_str(),
               format_count(p.checked + p.assumed, "time", "times").c_str(), p.checked, p.assumed);
  }
  if (r.woke + r.corrected + r.cut_short + r.contradicted != 0)
    out += format("  doubtful: %" PRIu64
                  " times a node taken for blocked went on (it was waited for), %" PRIu64
                  " looks were corrected by others, %" PRIu64 " delays met their bound, %" PRIu64
                  " dependencies were seen to be none\n",
                  r.woke, r.corrected, r.cut_short, r.contradicted);
  return out;
}

// What it took.
std::string runs_text(const DiscoverReport& r) {
  std::string out = format(
      "%s in %.2f s (%.1f times one unthrottled run of %.3f s), %s of %.1f ms on average; "
      "noise %.2f ms\n",
      format_count(r.runs, "run", "runs").c_str(), seconds(r.all_ns),
      r.first_ns != 0 ? seconds(r.all_ns) / seconds(r.first_ns) : 0.0, seconds(r.first_ns),
      format_count(r.holds, "delay", "delays").c_str(),
      r.holds != 0 ? seconds(r.held_ns) * 1e3 / static_cast<double>(r.holds) : 0.0,
      static_cast<double>(r.noise_ns) / 1e6);
  if (r.steps.size() > 1) {
    out += "found after";
    // At most eight of them, the last among these.
    const size_t every = (r.steps.size() + 7) / 8;
    for (size_t i = (r.steps.size() - 1) % every; i < r.steps.size(); i += every)
      out += format("%s %.2f s: %" PRIu64, i < every ? "" : ",", seconds(r.steps[i].ns),
                    r.steps[i].found);
    out += "\n";
  }
  if (r.out_of_budget) out += "the time allowed (--budget) ran out before everything was clear\n";
  return out;
}

}  // namespace

std::string means(const Found& f) {
  std::string out = f.assumed ? "pattern" : f.seen != 0 ? "throttling" : "";
  if (!f.shown_by.empty()) out += out.empty() ? "shown" : "+shown";
  return out.empty() ? "throttling" : out;  // a look that others corrected
}

std::string discover_text(const DiscoverReport& r) {
  return nodes_text(r) + edges_text(r) + patterns_text(r) + runs_text(r) + "wrote " + r.trace +
         "\nreplay with: feign replay " + r.trace + " --root DIR --order stream --pace think\n";
}

std::string discover_json(const DiscoverReport& r) {
  nlohmann::ordered_json j;
  j["runs"] = r.runs;
  j["delays"] = r.holds;
  j["delays_cut_short"] = r.cut_short;
  j["judged_too_early"] = r.woke;
  j["corrected"] = r.corrected;
  j["contradicted"] = r.contradicted;
  j["first_run_s"] = seconds(r.first_ns);
  j["all_runs_s"] = seconds(r.all_ns);
  j["held_s"] = seconds(r.held_ns);
  j["noise_s"] = seconds(r.noise_ns);
  j["out_of_budget"] = r.out_of_budget;
  j["dependencies_found"] = r.edges.size();
  j["dependencies_kept"] = r.kept;
  j["nodes"] = nlohmann::ordered_json::array();
  for (const NodeReport& n : r.nodes)
    j["nodes"].push_back({{"node", n.number},
                          {"name", n.key},
                          {"calls", n.calls},
                          {"throttled", n.throttled},
                          {"runs", n.runs},
                          {"held_at", n.held_at},
                          {"unclear", n.unclear},
                          {"compute_by_throttling_s", seconds(n.by_throttling_ns)},
                          {"compute_by_blocking_s", seconds(n.by_blocking_ns)},
                          {"calls_s", seconds(n.call_ns)}});
  j["dependencies"] = nlohmann::ordered_json::array();
  for (const Edge& e : r.edges) {
    nlohmann::ordered_json d = {{"node", r.nodes[e.found.node].number},
                                {"call", e.found.call},
                                {"on_node", r.nodes[e.on].number},
                                {"on_call", e.found.on_call},
                                {"seen", e.found.seen},
                                {"means", means(e.found)}};
    if (!e.found.shown_by.empty()) d["shown_by"] = e.found.shown_by;
    if (e.found.latest != e.found.on_call) d["latest"] = e.found.latest;
    if (!e.found.stuck_in.empty()) d["stuck_in"] = e.found.stuck_in;
    j["dependencies"].push_back(std::move(d));
  }
  j["unchanged_by_delays"] = r.settled;
  j["patterns"] = nlohmann::ordered_json::array();
  for (const Pattern& p : r.patterns) {
    nlohmann::ordered_json nodes = nlohmann::ordered_json::array();
    for (const uint32_t n : p.nodes) nodes.push_back(r.nodes[n].number);
    j["patterns"].push_back(
        {{"pattern", p.name}, {"nodes", nodes}, {"checked", p.checked}, {"assumed", p.assumed}});
  }
  j["steps"] = nlohmann::ordered_json::array();
  for (const Step& s : r.steps)
    j["steps"].push_back(
        {{"seconds", seconds(s.ns)}, {"delays", s.delays}, {"dependencies", s.found}});
  j["trace"] = r.trace;
  return j.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace feign::discover
