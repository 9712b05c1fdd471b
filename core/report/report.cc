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

std::string row(const std::string& name, const std::vector<std::string>& cells) {
  std::string out = format("  %-14s", name.c_str());
  for (const std::string& c : cells) out += format(" %9s", c.c_str());
  return out + "\n";
}

constexpr double kPercentiles[] = {0.5, 0.9, 0.99, 0.999};

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
  for (const std::string& note : r.notes) line("note", note);

  std::vector<uint32_t> ids;
  for (uint32_t id = 0; id < r.ops.size(); ++id)
    if (r.ops[id]) ids.push_back(id);
  std::sort(ids.begin(), ids.end(),
            [&](uint32_t a, uint32_t b) { return r.ops[a]->activities > r.ops[b]->activities; });
  out += "\nby op, replayed above, recorded below\n";
  out += row("", {"count", "bytes", "p50", "p90", "p99", "p99.9", "max"});
  for (const uint32_t id : ids) {
    const OpReport& o = *r.ops[id];
    const auto cells = [&](uint64_t n, uint64_t moved, const Histogram& h) {
      std::vector<std::string> c{format_count(n), moved != 0 ? format_bytes(moved) : "-"};
      for (const double p : kPercentiles)
        c.push_back(h.count() != 0 ? format_time(h.percentile(p)) : "-");
      c.push_back(h.count() != 0 ? format_time(h.max()) : "-");
      return c;
    };
    out += row(op_name(tables, id), cells(o.activities, o.bytes_read + o.bytes_written, o.latency));
    if (o.latency.count() != 0) {
      auto recorded =
          cells(0, o.recorded_bytes_read + o.recorded_bytes_written, o.recorded_latency);
      recorded[0].clear();
      out += row("", recorded);
    }
  }

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
    out += "\nskipped\n";
    for (const auto& [key, n] : r.skips)
      out += format("  %9s  %-12s ", format_count(n).c_str(), op_name(tables, key.first).c_str()) +
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
  }
  // Paths are bytes: what is no UTF-8 is replaced.
  return j.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace feign
