// SPDX-License-Identifier: MIT
#include "cli/info.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "report/format.h"

namespace feign {
namespace {
std::string known(int64_t number) { return number >= 0 ? std::to_string(number) : "-"; }
}  // namespace

namespace {

// How files are read, or written.
std::string access_text(const TraceInfo::Access& a) {
  const auto share = [&](uint64_t n) {
    return 100 * static_cast<double>(n) / static_cast<double>(a.count);
  };
  return format_count(a.count) + " of " + format_bytes(a.size_at(0.5)) + " in the middle, " +
         format_bytes(a.size_at(0.9)) + " at 90 %, " + format_bytes(a.largest) +
         format(" at most; %.0f %% where the last one ended, %.0f %% strided, %.0f %% elsewhere",
                share(a.sequential), share(a.strided), share(a.elsewhere));
}

// What becomes of such calls there, if they are on files.
const char* in_a_replay(const Tables& tables, uint32_t op) {
  if (const Call* const call = tables.ops.call(op); call != nullptr) return call->in_a_replay;
  const feign_op_info* const info = tables.ops.info(op);
  const bool of_mpi = info != nullptr && std::string_view(info->layer).starts_with("mpi");
  return of_mpi ? "made, by mpirun" : "by its layer's replayer";
}

std::string dependencies_text(const DependencyInfo& d) {
  std::string out =
      "\n" + format("  %-16s %10s %10s %10s\n", "dependencies", "found", "redundant", "kept");
  const auto row = [&](const std::string& name, const DependencyInfo::Rule& r) {
    out += format("  %-16s %10s %10s %10s\n", name.c_str(), format_count(r.made).c_str(),
                  format_count(r.made - std::min(r.made, r.kept)).c_str(),
                  format_count(r.kept).c_str());
  };
  DependencyInfo::Rule all;
  for (const auto& [name, r] : d.rules) {
    row(name, r);
    all.made += r.made;
    all.kept += r.kept;
  }
  if (d.rules.size() != 1) row("all", all);
  const double at_once =
      d.longest != 0 ? static_cast<double>(d.activities) / static_cast<double>(d.longest) : 0;
  out += "  longest chain: " + format_count(d.longest) + " of " + format_count(d.activities) +
         " calls" + format(", %.2f at a time if all took as long; at most ", at_once) +
         format_count(d.widest) + "\n";
  return out;
}

}  // namespace

std::string info_text(const TraceInfo& t, const Tables& tables,
                      const DependencyInfo* dependencies) {
  std::string out;
  const auto line = [&](const char* name, const std::string& text) {
    out += format("%-12s ", name) + text + "\n";
  };
  size_t streams = 0;
  for (const auto& s : t.streams) streams += s.activities != 0;
  const uint64_t span = t.last_ns - t.first_ns;
  line("read by", t.provider);
  line("activities", format_count(t.activities) + " in " +
                         format_count(streams, "stream", "streams") + " over " + format_time(span) +
                         (t.injected != 0 ? ", " + format_count(t.injected) + " of them injected"
                                          : std::string()));
  line("bytes",
       "read " + format_bytes(t.bytes_read) + ", written " + format_bytes(t.bytes_written));
  line("files", format_count(t.file_count));
  const double all = t.activities != 0 ? static_cast<double>(t.activities) / 100 : 1;
  line("noise", format("%.0f %% start-up of programs, loader, MPI; %.0f %% pipes and the like; the "
                       "rest is the workload (filter,preset=workload keeps only that)",
                       static_cast<double>(t.noise) / all, static_cast<double>(t.no_files) / all));
  for (const std::string& note : tables.notes) line("note", note);
  line("time", "in calls " + format_time(t.call_ns) + ", computing " + format_time(t.compute_ns) +
                   ", waiting " + format_time(t.sync_ns));

  if (span != 0)
    line("at once", format("%.2f streams in calls, on average",
                           static_cast<double>(t.call_ns) / static_cast<double>(span)));
  for (const auto& [name, access] : {std::pair{"reads", &t.reads}, std::pair{"writes", &t.writes}})
    if (access->count != 0) line(name, access_text(*access));

  for (const Statistic& s : tables.statistics)
    line("measured",
         s.where + " " + s.group + " " + s.name +
             format(": %s records in %.1f s, %.6g to %.6g, mean %.6g ",
                    format_count(s.count).c_str(), s.seconds, s.least, s.greatest, s.mean) +
             s.unit);

  if (t.layers.size() > 1) {
    out +=
        "\n" + format("  %-16s %10s %11s  %s\n", "layer", "calls", "time", "not in calls in them");
    for (const auto& [name, l] : t.layers)
      out += format("  %-16s %10s %11s  %s\n", name.c_str(), format_count(l.activities).c_str(),
                    format_time(l.duration_ns).c_str(),
                    format_time(static_cast<uint64_t>(std::max<int64_t>(l.own_ns, 0))).c_str());
  }
  std::vector<uint32_t> ids;
  for (uint32_t id = 0; id < t.ops.size(); ++id)
    if (t.ops[id].count != 0) ids.push_back(id);
  std::stable_sort(ids.begin(), ids.end(),
                   [&](uint32_t a, uint32_t b) { return t.ops[a].count > t.ops[b].count; });
  int wide = 16;
  for (const uint32_t id : ids) wide = std::max(wide, static_cast<int>(op_name(tables, id).size()));
  out += "\n" + format("  %-*s %10s %9s %9s %11s %12s  %s\n", wide, "op", "count", "failed",
                       "bytes", "time", "not a file", "in a replay");
  for (const uint32_t id : ids) {
    const TraceInfo::Op& o = t.ops[id];
    out += format("  %-*s %10s %9s %9s %11s %12s  %s\n", wide, op_name(tables, id).c_str(),
                  format_count(o.count).c_str(), o.failed ? format_count(o.failed).c_str() : "-",
                  o.bytes ? format_bytes(o.bytes).c_str() : "-", format_time(o.duration_ns).c_str(),
                  o.not_a_file ? format_count(o.not_a_file).c_str() : "-", in_a_replay(tables, id));
  }
  if (!t.files.empty()) {
    out += "\n" + format("  %9s %9s %9s  %s\n", "calls", "read", "written", "file");
    for (const auto& f : t.files)
      out += format("  %9s %9s %9s  ", format_count(f.calls).c_str(),
                    f.bytes_read ? format_bytes(f.bytes_read).c_str() : "-",
                    f.bytes_written ? format_bytes(f.bytes_written).c_str() : "-") +
             f.path + "\n";
    if (t.file_count > t.files.size())
      out += "  … and " + format_count(t.file_count - t.files.size(), "more file", "more files") +
             "\n";
  }
  out += "\n" + format("  %-8s %-12s %-6s %-10s %-10s %10s %12s\n", "stream", "host", "rank",
                       "process", "thread", "activities", "span");
  size_t shown = 0;
  for (uint32_t s = 1; s < t.streams.size(); ++s) {
    if (t.streams[s].activities == 0) continue;
    if (++shown > 20) continue;
    const feign_stream_info info = tables.streams.info(s);
    out +=
        format("  %-8u %-12s %-6s %-10s %-10lld %10s %12s\n", s,
               info.host != 0 ? std::string(tables.strings.text(info.host)).c_str() : "-",
               known(info.rank).c_str(), known(info.process).c_str(),
               static_cast<long long>(info.thread), format_count(t.streams[s].activities).c_str(),
               format_time(t.streams[s].last_ns - t.streams[s].first_ns).c_str());
  }
  if (shown > 20)
    out += "  … and " + format_count(shown - 20, "more stream", "more streams") + "\n";
  if (dependencies != nullptr) out += dependencies_text(*dependencies);
  if (!tables.left_out.empty()) {
    int longest = 20;
    for (const auto& left : tables.left_out)
      longest = std::max(longest, static_cast<int>(left.first.first.size()));
    out += "\nin the trace, but no activity\n" +
           format("  %-*s %10s %11s  %s\n", longest, "call", "count", "time", "why");
    std::vector<std::pair<std::pair<std::string, std::string>, LeftOut>> list(
        tables.left_out.begin(), tables.left_out.end());
    std::stable_sort(list.begin(), list.end(),
                     [](const auto& a, const auto& b) { return a.second.count > b.second.count; });
    for (const auto& [key, l] : list)
      out += format("  %-*s %10s %11s  ", longest, key.first.c_str(), format_count(l.count).c_str(),
                    format_time(l.duration_ns).c_str()) +
             key.second + "\n";
  }
  return out;
}

std::string info_json(const TraceInfo& t, const Tables& tables,
                      const DependencyInfo* dependencies) {
  using Json = nlohmann::ordered_json;
  const auto seconds = [](uint64_t ns) { return static_cast<double>(ns) / 1e9; };
  Json j;
  j["schema"] = "feign-info/1";
  j["version"] = FEIGN_VERSION;
  j["provider"] = t.provider;
  j["activities"] = t.activities;
  j["injected"] = t.injected;
  j["recorded_seconds"] = seconds(t.last_ns - t.first_ns);
  j["bytes_read"] = t.bytes_read;
  j["bytes_written"] = t.bytes_written;
  j["call_seconds"] = seconds(t.call_ns);
  j["compute_seconds"] = seconds(t.compute_ns);
  j["sync_seconds"] = seconds(t.sync_ns);
  j["in_calls_at_once"] =
      t.last_ns > t.first_ns ? seconds(t.call_ns) / seconds(t.last_ns - t.first_ns) : 0;
  for (const auto& [name, a] : {std::pair{"reads", &t.reads}, std::pair{"writes", &t.writes}})
    j[name] = {{"count", a->count},           {"size_p50", a->size_at(0.5)},
               {"size_p90", a->size_at(0.9)}, {"size_max", a->largest},
               {"sequential", a->sequential}, {"strided", a->strided},
               {"elsewhere", a->elsewhere}};
  j["file_count"] = t.file_count;
  j["noise"] = t.noise;
  j["no_files"] = t.no_files;
  j["notes"] = tables.notes;
  for (const Statistic& s : tables.statistics)
    j["statistics"].push_back({{"where", s.where},
                               {"group", s.group},
                               {"name", s.name},
                               {"unit", s.unit},
                               {"records", s.count},
                               {"seconds", s.seconds},
                               {"least", s.least},
                               {"mean", s.mean},
                               {"greatest", s.greatest}});
  j["layers"] = Json::object();
  for (const auto& [name, l] : t.layers)
    j["layers"][name] = {
        {"activities", l.activities},
        {"seconds", seconds(l.duration_ns)},
        {"own_seconds", seconds(static_cast<uint64_t>(std::max<int64_t>(l.own_ns, 0)))}};
  j["ops"] = Json::object();
  for (uint32_t id = 0; id < t.ops.size(); ++id) {
    const TraceInfo::Op& o = t.ops[id];
    if (o.count == 0) continue;
    j["ops"][op_name(tables, id)] = {
        {"count", o.count},           {"failed", o.failed},
        {"bytes", o.bytes},           {"seconds", seconds(o.duration_ns)},
        {"not_a_file", o.not_a_file}, {"in_a_replay", in_a_replay(tables, id)}};
  }
  j["files"] = Json::array();
  for (const auto& f : t.files)
    j["files"].push_back({{"path", f.path},
                          {"calls", f.calls},
                          {"bytes_read", f.bytes_read},
                          {"bytes_written", f.bytes_written}});
  j["streams"] = Json::array();
  for (uint32_t s = 1; s < t.streams.size(); ++s) {
    if (t.streams[s].activities == 0) continue;
    const feign_stream_info info = tables.streams.info(s);
    j["streams"].push_back({{"stream", s},
                            {"process", info.process},
                            {"thread", info.thread},
                            {"rank", info.rank},
                            {"host", std::string(tables.strings.text(info.host))},
                            {"parent", info.parent},
                            {"activities", t.streams[s].activities},
                            {"first_seconds", seconds(t.streams[s].first_ns)},
                            {"last_seconds", seconds(t.streams[s].last_ns)}});
  }
  if (dependencies != nullptr) {
    Json& d = j["dependencies"];
    d["rules"] = Json::object();
    for (const auto& [name, r] : dependencies->rules)
      d["rules"][name] = {
          {"found", r.made}, {"redundant", r.made - std::min(r.made, r.kept)}, {"kept", r.kept}};
    d["longest_chain"] = dependencies->longest;
    d["widest"] = dependencies->widest;
  }
  j["left_out"] = Json::array();
  for (const auto& [key, l] : tables.left_out)
    j["left_out"].push_back({{"call", key.first},
                             {"why", key.second},
                             {"count", l.count},
                             {"seconds", seconds(l.duration_ns)}});
  return j.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace feign
