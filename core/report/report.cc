// SPDX-License-Identifier: MIT
#include "report/report.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "report/format.h"

namespace feign {
namespace {

std::string result(int64_t r) {
  if (r >= 0) return std::to_string(r);
  const char* name = r > -4096 ? strerrorname_np(static_cast<int>(-r)) : nullptr;
  return name != nullptr ? name : std::to_string(r);
}

double seconds(uint64_t ns) { return static_cast<double>(ns) / 1e9; }

// A name and its numbers, in a table whose names have this width.
std::string row(const std::string& name, const std::vector<std::string>& cells, int width = 14) {
  std::string out = format("  %-*s", width, name.c_str());
  for (const std::string& c : cells) out += format(" %9s", c.c_str());
  return out + "\n";
}

constexpr double kPercentiles[] = {0.5, 0.9, 0.99, 0.999};
// Rows of tables that could have thousands.
constexpr size_t kRows = 10;
// Where the rows of the lateness histogram end, ns; the last one has none.
constexpr uint64_t kLate[] = {1'000,   3'000,     10'000,     30'000,      100'000,
                              300'000, 1'000'000, 10'000'000, 100'000'000, 1'000'000'000};

std::string bar(double share) { return std::string(static_cast<size_t>(share * 40 + 0.5), '#'); }

std::string percent(uint64_t part, uint64_t whole) {
  return whole == 0
             ? "-"
             : format("%.0f %%", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

// A stream as a person knows it: its process, or its rank.
std::string stream_name(const Tables& tables, uint32_t number) {
  const feign_stream_info info = tables.streams.info(number);
  std::string name = "stream " + std::to_string(number);
  if (info.rank >= 0) return name + " (rank " + std::to_string(info.rank) + ")";
  if (info.thread > 0) return name + " (pid " + std::to_string(info.thread) + ")";
  return name;
}

// How many samples lie in each row of kLate, and past it.
std::vector<uint64_t> late_rows(const Histogram& h) {
  std::vector<uint64_t> rows;
  uint64_t before = 0;
  for (const uint64_t end : kLate) {
    const uint64_t seen = h.up_to(end - 1);
    rows.push_back(seen - before);
    before = seen;
  }
  rows.push_back(h.count() - before);
  return rows;
}

std::string lateness_text(const Histogram& h) {
  if (h.count() == 0) return {};
  std::string out = "\ncalls by how late they began\n";
  const std::vector<uint64_t> rows = late_rows(h);
  const uint64_t most = *std::max_element(rows.begin(), rows.end());
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] == 0) continue;
    const std::string name = i < std::size(kLate) ? "under " + format_time(kLate[i]) : "more";
    out += format("  %-14s %9s  ", name.c_str(), format_count(rows[i]).c_str()) +
           bar(static_cast<double>(rows[i]) / static_cast<double>(most)) + "\n";
  }
  return out;
}

// The streams that were longest in calls and in waiting.
std::string streams_text(const Report& r, const Tables& tables) {
  if (r.streams.size() < 2) return {};
  const bool timed = r.lateness().count() != 0;
  std::vector<const StreamReport*> list;
  for (const StreamReport& s : r.streams) list.push_back(&s);
  std::stable_sort(list.begin(), list.end(), [](const auto* a, const auto* b) {
    return a->call_ns + a->wait_ns > b->call_ns + b->wait_ns;
  });
  std::string out = "\nby stream\n" + format("  %-24s", "");
  for (const char* c : {"count", "calls", "pauses", "waiting"}) out += format(" %9s", c);
  if (timed) out += format(" %9s %9s", "late p50", "late p99");
  out += "\n";
  for (size_t i = 0; i < list.size() && i < kRows; ++i) {
    const StreamReport& s = *list[i];
    out += format("  %-24s %9s %9s %9s %9s", stream_name(tables, s.stream).c_str(),
                  format_count(s.activities).c_str(), format_time(s.call_ns).c_str(),
                  format_time(s.pause_ns).c_str(), format_time(s.wait_ns).c_str());
    if (timed)
      out += format(" %9s %9s", format_time(s.lateness.percentile(0.5)).c_str(),
                    format_time(s.lateness.percentile(0.99)).c_str());
    out += "\n";
  }
  if (list.size() > kRows)
    out += "  … and " + format_count(list.size() - kRows) + " more (--json has all)\n";
  return out;
}

// Time that a rank spends itself, not waiting for others in messages or dependencies.
uint64_t own_ns(const RankReport& r) { return r.io_ns + r.pause_ns; }

// The rank that has most to do itself, and by how much that is more than the mean.
const RankReport* slowest_rank(const Report& r, double& imbalance) {
  const RankReport* slowest = nullptr;
  double sum = 0;
  size_t busy = 0;
  for (const RankReport& one : r.ranks) {
    if (!one.there || one.streams == 0) continue;
    if (slowest == nullptr || own_ns(one) > own_ns(*slowest)) slowest = &one;
    sum += static_cast<double>(own_ns(one));
    ++busy;
  }
  imbalance =
      sum > 0 ? static_cast<double>(own_ns(*slowest)) * static_cast<double>(busy) / sum - 1 : 0;
  return slowest;
}

std::string ranks_text(const Report& r) {
  if (r.ranks.empty()) return {};
  std::string out = "\nby rank\n" + format("  %-24s", "");
  for (const char* c : {"streams", "count", "I/O", "messages", "pauses", "waiting", "ended at",
                        "ready in", "memory"})
    out += format(" %9s", c);
  out += "\n";
  constexpr size_t kMost = 32;
  double imbalance = 0;
  const RankReport* slowest = slowest_rank(r, imbalance);
  for (size_t i = 0; i < r.ranks.size(); ++i) {
    const RankReport& one = r.ranks[i];
    if (i >= kMost && &one != slowest) continue;
    out += format("  %-24s", (std::to_string(one.rank) + " on " + one.host).c_str());
    if (!one.there) {
      out += "  told nothing: it was still in a call, or is gone\n";
      continue;
    }
    for (const std::string& cell :
         {format_count(one.streams), format_count(one.activities), format_time(one.io_ns),
          format_time(one.communication_ns), format_time(one.pause_ns), format_time(one.wait_ns),
          format_time(one.last_ns), format_time(one.ready_ns), format_bytes(one.memory)})
      out += format(" %9s", cell.c_str());
    out += "\n";
  }
  if (r.ranks.size() > kMost)
    out += "  … " + format_count(r.ranks.size() - kMost) + " more (--json has all)\n";
  if (slowest != nullptr && own_ns(*slowest) != 0)
    out += "  rank " + std::to_string(slowest->rank) +
           " has most to do itself (I/O and pauses): " + format_time(own_ns(*slowest)) +
           format(", %.0f %% more than the mean\n", imbalance * 100);
  return out;
}

std::string concurrency_text(const Report& r) {
  const double most =
      r.concurrency.empty() ? 0 : *std::max_element(r.concurrency.begin(), r.concurrency.end());
  if (most <= 0) return {};
  std::string out = "\nstreams in calls at a time, by tenths of the run\n";
  for (size_t i = 0; i < r.concurrency.size(); ++i)
    out += format("  %3zu %%  %8.2f  ", i * 100 / r.concurrency.size(), r.concurrency[i]) +
           bar(r.concurrency[i] / most) + "\n";
  return out;
}

std::string rules_text(const Report& r) {
  if (r.rules.empty()) return {};
  std::string out =
      "\nstreams waited for each other\n" + row("by rule", {"count", "in all", "longest"});
  for (const auto& [rule, w] : r.rules)
    out += row(rule.empty() ? "not said" : rule,
               {format_count(w.count), format_time(w.wait_ns), format_time(w.longest_ns)});
  return out;
}

std::string path_text(const Report& r, const Tables& tables) {
  const CriticalPath& p = r.path;
  if (p.steps < 2) return {};
  const uint64_t length = p.to_ns - p.from_ns;
  const uint64_t known = std::min(length, p.call_ns + p.pause_ns);
  std::string out = "\ncritical path: " + format_time(length) + " in " + format_count(p.steps) +
                    " steps: calls " + percent(p.call_ns, length) + ", pauses " +
                    percent(p.pause_ns, length) + ", the rest (hand-over, bookkeeping) " +
                    percent(length - known, length) + "\n";
  if (p.steps > p.longest.size())
    out += "  its " + std::to_string(p.longest.size()) + " longest steps:\n";
  if (!p.complete)
    out += "  (before " + format_time(p.from_ns) + " the waits are no longer known)\n";
  for (const PathStep& s : p.longest) {
    out += format("  at %9s for %9s  ", format_time(s.from_ns).c_str(),
                  format_time(s.to_ns - s.from_ns).c_str()) +
           stream_name(tables, s.stream) + ": " + format_count(s.activities) +
           " activities, calls " + format_time(s.call_ns) + ", pauses " + format_time(s.pause_ns);
    if (s.op != 0)
      out += "; from " + op_name(tables, s.op) + " at " + tables.place(s.place) + ", which waited" +
             (s.waited_for != 0 ? " for stream " + std::to_string(s.waited_for) : std::string()) +
             " (" + std::string(tables.strings.text(s.rule)) + ")";
    out += "\n";
  }
  return out;
}

}  // namespace

void OpReport::merge(const OpReport& o) {
  activities += o.activities;
  replayed += o.replayed;
  emulated += o.emulated;
  matched += o.matched;
  mismatched += o.mismatched;
  skipped += o.skipped;
  bytes_read += o.bytes_read;
  bytes_written += o.bytes_written;
  recorded_bytes_read += o.recorded_bytes_read;
  recorded_bytes_written += o.recorded_bytes_written;
  latency.merge(o.latency);
  recorded_latency.merge(o.recorded_latency);
}

OpReport& Report::op(uint32_t id) {
  if (id >= ops.size()) ops.resize(id + size_t{1});
  if (!ops[id]) ops[id] = std::make_unique<OpReport>();
  return *ops[id];
}

Histogram Report::lateness() const {
  Histogram sum;
  for (const StreamReport& s : streams) sum.merge(s.lateness);
  return sum;
}

OpReport Report::total() const {
  OpReport sum;
  for (const auto& o : ops)
    if (o) sum.merge(*o);
  return sum;
}

double Report::fidelity() const {
  const OpReport sum = total();
  const uint64_t judged = sum.matched + sum.mismatched;
  return judged == 0 ? 1.0 : static_cast<double>(sum.matched) / static_cast<double>(judged);
}

std::string report_text(const Report& r, const Tables& tables) {
  const OpReport sum = r.total();
  std::string out;
  const auto line = [&](const char* name, const std::string& text) {
    out += format("%-10s ", name) + text + "\n";
  };
  line("trace", r.trace);
  if (!r.root.empty()) line("root", r.root);
  line("replay", r.replayer + ", pace " + r.pace);
  if (r.interrupted) line("ENDED", "before the plan did: " + r.stopped_by);
  line("wall", format_time(r.wall_ns) + "   recorded " + format_time(r.recorded_ns) +
                   (r.prepare_ns + r.plan_ns != 0 ? "   before it: plan " + format_time(r.plan_ns) +
                                                        ", prepare " + format_time(r.prepare_ns)
                                                  : ""));
  const double rate = r.wall_ns != 0 ? static_cast<double>(sum.replayed) / seconds(r.wall_ns) : 0;
  line("activities", format_count(sum.activities) + "   replayed " + format_count(sum.replayed) +
                         " (" + format_count(sum.emulated) + " as bookkeeping)   skipped " +
                         format_count(sum.skipped) + "   " +
                         format_count(static_cast<uint64_t>(rate)) + "/s");
  line("bytes", "read " + format_bytes(sum.bytes_read) + " of " +
                    format_bytes(sum.recorded_bytes_read) + "   written " +
                    format_bytes(sum.bytes_written) + " of " +
                    format_bytes(sum.recorded_bytes_written));
  // Not rounded up to 100 % while one differs.
  double share = r.fidelity() * 100;
  if (sum.mismatched != 0) share = std::min(share, 99.99);
  line("fidelity", format("%.2f %%   ", share) + format_count(sum.matched) + " of " +
                       format_count(sum.matched + sum.mismatched) + " came back as recorded");
  if (const Histogram late = r.lateness(); late.count() != 0)
    line("late", "p50 " + format_time(late.percentile(0.5)) + "   p90 " +
                     format_time(late.percentile(0.9)) + "   p99 " +
                     format_time(late.percentile(0.99)) + "   max " + format_time(late.max()));
  if (!r.ranks.empty())
    line("ranks", format_count(r.ranks.size()) +
                      (r.map.empty() ? ", recorded rank r on rank r" : ", map " + r.map));
  if (r.streams.size() > 1)
    line("streams", format_count(r.streams.size()) + " on " + format_count(r.workers) +
                        (r.workers == 1 ? " thread" : " threads"));
  if (r.dropped + r.injected != 0)
    line("modifiers",
         "dropped " + format_count(r.dropped) + "   injected " + format_count(r.injected));
  if (r.prepared_files + r.prepared_directories + r.prepared_links != 0)
    line("prepared",
         format_count(r.prepared_files) + " files (" + format_bytes(r.prepared_bytes) +
             (r.prepared_content == "sparse" && r.prepared_bytes != 0
                  ? ", sparse: reading them costs no storage; --content random writes them"
                  : "") +
             "), " + format_count(r.prepared_directories) + " directories, " +
             format_count(r.prepared_links) + " links");
  if (!r.caches.empty())
    line("caches",
         r.caches == "all" ? "dropped" : "dropped of " + r.caches + " below the root; names kept");
  for (const std::string& note : r.notes) line("note", note);

  std::vector<uint32_t> ids;
  for (uint32_t id = 0; id < r.ops.size(); ++id)
    if (r.ops[id]) ids.push_back(id);
  std::sort(ids.begin(), ids.end(),
            [&](uint32_t a, uint32_t b) { return r.ops[a]->activities > r.ops[b]->activities; });
  int names = 14;
  for (const uint32_t id : ids)
    names = std::max(names, static_cast<int>(op_name(tables, id).size()));
  out += "\nby op, replayed above, recorded below\n";
  out += row("", {"count", "bytes", "p50", "p90", "p99", "p99.9", "max"}, names);
  for (const uint32_t id : ids) {
    const OpReport& o = *r.ops[id];
    const auto cells = [&](uint64_t n, uint64_t moved, const Histogram& h) {
      std::vector<std::string> c{format_count(n), moved != 0 ? format_bytes(moved) : "-"};
      for (const double p : kPercentiles)
        c.push_back(h.count() != 0 ? format_time(h.percentile(p)) : "-");
      c.push_back(h.count() != 0 ? format_time(h.max()) : "-");
      return c;
    };
    out += row(op_name(tables, id), cells(o.activities, o.bytes_read + o.bytes_written, o.latency),
               names);
    if (o.latency.count() != 0) {
      auto recorded =
          cells(0, o.recorded_bytes_read + o.recorded_bytes_written, o.recorded_latency);
      recorded[0].clear();
      out += row("", recorded, names);
    }
  }

  out += lateness_text(r.lateness());
  out += ranks_text(r);
  out += streams_text(r, tables);
  out += concurrency_text(r);
  out += rules_text(r);
  out += path_text(r, tables);

  if (!r.mismatches.empty()) {
    out += "\ncame back otherwise\n";
    std::vector<std::pair<MismatchKey, Mismatch>> list(r.mismatches.begin(), r.mismatches.end());
    std::sort(list.begin(), list.end(),
              [](const auto& a, const auto& b) { return a.second.count > b.second.count; });
    for (size_t i = 0; i < list.size() && i < 20; ++i) {
      const auto& [key, m] = list[i];
      out += format("  %9s  %-12s recorded %s, replayed %s; first ", format_count(m.count).c_str(),
                    op_name(tables, std::get<0>(key)).c_str(), result(std::get<1>(key)).c_str(),
                    result(std::get<2>(key)).c_str());
      out += tables.place(m.first_place) + (m.first_path.empty() ? "" : " " + m.first_path) + "\n";
    }
    if (list.size() > 20)
      out += "  … and " + format_count(list.size() - 20) + " more kinds (--json has all)\n";
  }
  if (!r.skips.empty()) {
    int skipped = 12;
    for (const auto& [key, n] : r.skips)
      skipped = std::max(skipped, static_cast<int>(op_name(tables, key.first).size()));
    out += "\nskipped\n";
    for (const auto& [key, n] : r.skips)
      out += format("  %9s  %-*s ", format_count(n).c_str(), skipped,
                    op_name(tables, key.first).c_str()) +
             key.second + "\n";
  }
  if (!r.left_out.empty()) {
    out += "\nin the trace, but no activity\n";
    std::map<std::string, std::pair<uint64_t, std::string>> by_why;
    for (const auto& [key, l] : r.left_out) {
      auto& [n, calls] = by_why[key.second];
      n += l.count;
      calls += (calls.empty() ? "" : " ") + key.first;
    }
    for (const auto& [why, entry] : by_why) {
      std::string calls = entry.second;
      if (calls.size() > 60) calls = calls.substr(0, calls.rfind(' ', 57)) + " …";
      out += format("  %9s  ", format_count(entry.first).c_str()) + why + ": " + calls + "\n";
    }
  }
  return out;
}

std::string report_json(const Report& r, const Tables& tables) {
  using Json = nlohmann::ordered_json;
  const OpReport sum = r.total();
  const auto counts = [](Json& j, const OpReport& o) {
    j["activities"] = o.activities;
    j["replayed"] = o.replayed;
    j["emulated"] = o.emulated;
    j["matched"] = o.matched;
    j["mismatched"] = o.mismatched;
    j["skipped"] = o.skipped;
    j["bytes_read"] = o.bytes_read;
    j["bytes_written"] = o.bytes_written;
    j["recorded_bytes_read"] = o.recorded_bytes_read;
    j["recorded_bytes_written"] = o.recorded_bytes_written;
  };
  const auto latency = [](const Histogram& h) {
    return Json{{"count", h.count()},
                {"mean", h.count() != 0 ? h.sum() / h.count() : 0},
                {"p50", h.percentile(0.5)},
                {"p90", h.percentile(0.9)},
                {"p99", h.percentile(0.99)},
                {"p999", h.percentile(0.999)},
                {"max", h.max()}};
  };
  Json j;
  j["schema"] = "feign-report/1";
  j["version"] = FEIGN_VERSION;
  j["trace"] = r.trace;
  j["root"] = r.root;
  j["replayer"] = r.replayer;
  j["pace"] = r.pace;
  counts(j, sum);
  j["fidelity"] = r.fidelity();
  j["seconds"] = seconds(r.wall_ns);
  j["recorded_seconds"] = seconds(r.recorded_ns);
  j["plan_seconds"] = seconds(r.plan_ns);
  j["prepare_seconds"] = seconds(r.prepare_ns);
  j["interrupted"] = r.interrupted;
  j["stopped_by"] = r.stopped_by;
  j["dropped"] = r.dropped;
  j["injected"] = r.injected;
  j["prepared"] = {{"files", r.prepared_files},
                   {"directories", r.prepared_directories},
                   {"links", r.prepared_links},
                   {"bytes", r.prepared_bytes},
                   {"content", r.prepared_content}};
  j["caches"] = r.caches.empty() ? "kept" : r.caches;
  j["notes"] = r.notes;
  j["ops"] = Json::object();
  for (uint32_t id = 0; id < r.ops.size(); ++id) {
    if (!r.ops[id]) continue;
    const OpReport& o = *r.ops[id];
    Json& to = j["ops"][op_name(tables, id)];
    counts(to, o);
    to["seconds"] = seconds(o.latency.sum());
    to["recorded_seconds"] = seconds(o.recorded_latency.sum());
    to["latency"] = latency(o.latency);
    to["latency"]["histogram"] = o.latency.coarse();
    to["recorded_latency"] = latency(o.recorded_latency);
  }
  j["mismatches"] = Json::array();
  for (const auto& [key, m] : r.mismatches) {
    const uint32_t source = FEIGN_PLACE_SOURCE(m.first_place);
    j["mismatches"].push_back(
        {{"op", op_name(tables, std::get<0>(key))},
         {"recorded", std::get<1>(key)},
         {"replayed", std::get<2>(key)},
         {"count", m.count},
         {"first",
          {{"source", source < tables.sources.size() ? tables.sources[source] : ""},
           {"line", FEIGN_PLACE_LINE(m.first_place)},
           {"path", m.first_path}}}});
  }
  j["skips"] = Json::array();
  for (const auto& [key, n] : r.skips)
    j["skips"].push_back({{"op", op_name(tables, key.first)}, {"why", key.second}, {"count", n}});
  j["left_out"] = Json::array();
  for (const auto& [key, l] : r.left_out)
    j["left_out"].push_back({{"call", key.first},
                             {"why", key.second},
                             {"count", l.count},
                             {"seconds", seconds(l.duration_ns)}});
  const Histogram late = r.lateness();
  if (late.count() != 0) {
    j["lateness"] = latency(late);
    j["lateness"]["histogram"] = Json::array();
    const std::vector<uint64_t> rows = late_rows(late);
    for (size_t i = 0; i < rows.size(); ++i)
      j["lateness"]["histogram"].push_back(
          {{"below", i < std::size(kLate) ? Json(kLate[i]) : Json(nullptr)}, {"count", rows[i]}});
  }
  j["workers"] = r.workers;
  j["concurrency"] = r.concurrency;
  j["waits"] = Json::array();
  for (const auto& [rule, w] : r.rules)
    j["waits"].push_back({{"rule", rule},
                          {"count", w.count},
                          {"seconds", seconds(w.wait_ns)},
                          {"longest_seconds", seconds(w.longest_ns)}});
  const CriticalPath& path = r.path;
  j["critical_path"] = {{"complete", path.complete},
                        {"steps", path.steps},
                        {"seconds", seconds(path.to_ns - path.from_ns)},
                        {"call_seconds", seconds(path.call_ns)},
                        {"pause_seconds", seconds(path.pause_ns)},
                        {"longest", Json::array()}};
  for (const PathStep& s : path.longest)
    j["critical_path"]["longest"].push_back({{"stream", s.stream},
                                             {"from_seconds", seconds(s.from_ns)},
                                             {"to_seconds", seconds(s.to_ns)},
                                             {"call_seconds", seconds(s.call_ns)},
                                             {"pause_seconds", seconds(s.pause_ns)},
                                             {"activities", s.activities},
                                             {"op", s.op != 0 ? op_name(tables, s.op) : ""},
                                             {"place", s.op != 0 ? tables.place(s.place) : ""},
                                             {"waited_for", s.waited_for},
                                             {"rule", tables.strings.text(s.rule)}});
  if (!r.ranks.empty()) {
    double imbalance = 0;
    const RankReport* slowest = slowest_rank(r, imbalance);
    j["map"] = r.map;
    j["imbalance"] = imbalance;
    j["slowest_rank"] = slowest != nullptr ? Json(slowest->rank) : Json(nullptr);
  }
  j["ranks"] = Json::array();
  for (const RankReport& one : r.ranks)
    j["ranks"].push_back({{"rank", one.rank},
                          {"host", one.host},
                          {"there", one.there},
                          {"streams", one.streams},
                          {"activities", one.activities},
                          {"mismatched", one.mismatched},
                          {"bytes", one.bytes},
                          {"first_seconds", seconds(one.first_ns)},
                          {"last_seconds", seconds(one.last_ns)},
                          {"io_seconds", seconds(one.io_ns)},
                          {"communication_seconds", seconds(one.communication_ns)},
                          {"pause_seconds", seconds(one.pause_ns)},
                          {"wait_seconds", seconds(one.wait_ns)},
                          {"ready_seconds", seconds(one.ready_ns)},
                          {"memory", one.memory}});
  j["streams"] = Json::array();
  for (const StreamReport& s : r.streams) {
    const feign_stream_info info = tables.streams.info(s.stream);
    j["streams"].push_back({{"stream", s.stream},
                            {"process", info.process},
                            {"thread", info.thread},
                            {"rank", info.rank},
                            {"activities", s.activities},
                            {"call_seconds", seconds(s.call_ns)},
                            {"pause_seconds", seconds(s.pause_ns)},
                            {"wait_seconds", seconds(s.wait_ns)}});
    if (s.lateness.count() != 0) j["streams"].back()["lateness"] = latency(s.lateness);
  }
  // Paths are bytes: what is no UTF-8 is replaced.
  return j.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace feign
