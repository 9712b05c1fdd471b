// SPDX-License-Identifier: MIT
#include "lab/html.h"

#include <cstdlib>
#include <map>

#include "base/input.h"
#include "base/log.h"
#include "lab/timeline.h"
#include "report_page.h"

namespace feign {
namespace {

// Where dygraphs is: $FEIGN_DYGRAPHS, or where Debian's libjs-dygraphs has it.
struct Charts {
  std::string script, style, licence;
};

std::string all_of(const std::string& path) {
  auto text = head_of(path, size_t{16} << 20);
  return text ? std::move(*text) : std::string();
}

Charts charts() {
  const char* set = getenv("FEIGN_DYGRAPHS");
  const std::string dir = set != nullptr && *set != '\0' ? set : "/usr/share/javascript/dygraphs";
  Charts c;
  c.script = all_of(dir + "/dygraph.min.js");
  if (c.script.empty()) return c;
  c.style = all_of(dir + "/dygraph.min.css");
  for (const std::string& file :
       {dir + "/LICENSE.txt", std::string("/usr/share/doc/libjs-dygraphs/copyright")})
    if (c.licence.empty()) c.licence = all_of(file);
  return c;
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '&')
      out += "&amp;";
    else
      out += c;
  }
  return out;
}

// What is known of an op over all runs of a configuration.
struct OpSum {
  uint64_t runs = 0, count = 0, bytes = 0, max = 0;
  double seconds = 0;
  std::map<uint64_t, uint64_t> histogram;
  uint64_t at(double share) const {
    uint64_t seen = 0;
    for (const auto& [ns, n] : histogram) {
      seen += n;
      if (static_cast<double>(seen) >= share * static_cast<double>(count)) return std::min(ns, max);
    }
    return max;
  }
};

using OpSums = std::map<std::string, OpSum>;

void add(OpSums& sums, const Json& run) {
  if (!run.contains("ops") || !run["ops"].is_object()) return;
  for (const auto& [name, op] : run["ops"].items()) {
    if (!op.is_object() || !op.contains("histogram") || !op["histogram"].is_array()) continue;
    OpSum& s = sums[name];
    ++s.runs;
    s.count += op.value("count", uint64_t{0});
    s.bytes += op.value("bytes", uint64_t{0});
    s.seconds += op.value("seconds", 0.0);
    s.max = std::max(s.max, op.value("max", uint64_t{0}));
    for (const Json& bucket : op["histogram"])
      if (bucket.is_array() && bucket.size() == 2 && bucket[0].is_number_unsigned() &&
          bucket[1].is_number_unsigned())
        s.histogram[bucket[0].get<uint64_t>()] += bucket[1].get<uint64_t>();
  }
}

Json row_json(const LabRow& r, const OpSums* sums) {
  Json row = {{"label", r.label},
              {"variant", r.variant},
              {"parameters", r.parameters},
              {"baseline", r.baseline},
              {"runs", Json::array()},
              {"median", r.samples.median},
              {"quartiles", {r.samples.low, r.samples.high}},
              {"failed", r.failed},
              {"failed_before", r.failed_before},
              {"why", r.why},
              {"calls", r.calls},
              {"bytes", r.bytes_read + r.bytes_written},
              {"fidelity", r.fidelity},
              {"more", resolve_text(r)},
              {"ops", Json::object()}};
  for (const auto& [repeat, seconds] : r.seconds) row["runs"].push_back({repeat, seconds});
  if (!r.baseline && r.comparison.pairs != 0) {
    row["ratio"] = r.comparison.ratio;
    row["interval"] = {r.comparison.low, r.comparison.high};
    row["verdict"] = verdict_text(r);
    row["verdict_name"] = verdict_name(r.comparison.verdict);
  }
  if (sums == nullptr) return row;
  for (const auto& [name, s] : *sums) {
    const auto runs = static_cast<double>(s.runs);
    Json histogram = Json::array();
    for (const auto& [ns, n] : s.histogram) histogram.push_back({ns, n});
    row["ops"][name] = {{"count", static_cast<double>(s.count) / runs},
                        {"bytes", static_cast<double>(s.bytes) / runs},
                        {"seconds", s.seconds / runs},
                        {"p50", s.at(0.5)},
                        {"p99", s.at(0.99)},
                        {"max", s.max},
                        {"histogram", std::move(histogram)}};
  }
  return row;
}

// As the lab wrote them: whoever edited them sees none.
Json curves_json(const Json& head) {
  Json out = Json::array();
  if (!head.contains("curves") || !head["curves"].is_array()) return out;
  for (const Json& c : head["curves"]) {
    bool good = c.is_object() && c.contains("points") && c["points"].is_array();
    for (const char* name : {"name", "variant", "parameter"})
      good = good && c.contains(name) && c[name].is_string();
    if (good)
      for (const Json& p : c["points"])
        good = good && p.is_array() && p.size() == 2 && p[0].is_string() && p[1].is_number();
    if (good) out.push_back(c);
  }
  return out;
}

}  // namespace

std::string lab_html(const LabSummary& summary, const Results& results, const HtmlTexts& texts) {
  std::map<std::string, OpSums> sums;  // by cell
  for (const Json& run : results.runs())
    if (run["status"] == "ok" && run["repeat"] != 0) add(sums[run["cell"].get<std::string>()], run);

  Json data;
  data["title"] = texts.title;
  data["about"] = texts.about;
  data["again"] = texts.again;
  data["no_timeline"] = texts.no_timeline;
  data["curves"] = curves_json(results.head());
  data["groups"] = Json::array();
  data["timelines"] = Json::array();
  for (const LabGroup& g : summary.groups) {
    Json rows = Json::array();
    const LabRow* best = g.best();
    for (const LabRow& r : g.rows) {
      const auto found = sums.find(r.cell);
      rows.push_back(row_json(r, found != sums.end() ? &found->second : nullptr));
      if (r.activities.empty()) continue;
      auto line = timeline(r.activities);
      if (!line) {
        log(FEIGN_LOG_WARN, "no timeline of " + r.label + ": " + line.error().text());
        continue;
      }
      (*line)["group"] = data["groups"].size();
      (*line)["label"] = r.label;
      data["timelines"].push_back(std::move(*line));
    }
    data["groups"].push_back({{"trace", g.trace},
                              {"root", g.root},
                              {"best", best != nullptr ? best - g.rows.data() : -1},
                              {"rows", std::move(rows)}});
  }
  // No text can end the element that it stands in.
  std::string json;
  for (const char c : json_line(data)) {
    if (c == '<')
      json += "\\u003c";
    else
      json += c;
  }

  const Charts c = charts();
  if (c.script.empty())
    log(FEIGN_LOG_WARN,
        "the report has tables, but no plots: the charting library dygraphs is not installed "
        "(Debian, Ubuntu: apt-get install libjs-dygraphs; elsewhere FEIGN_DYGRAPHS is the "
        "directory "
        "that has dygraph.min.js and dygraph.min.css)");
  const std::string licence =
      c.licence.empty() ? std::string()
                        : "<details><summary class=\"soft\">Charts are drawn by dygraphs; its "
                          "licence</summary><pre>" +
                              escaped(c.licence) + "</pre></details>";
  const std::pair<std::string_view, const std::string*> parts[] = {{"@CHARTS_CSS@", &c.style},
                                                                   {"@CHARTS_LICENCE@", &licence},
                                                                   {"@DATA@", &json},
                                                                   {"@CHARTS_JS@", &c.script}};
  std::string_view page(reinterpret_cast<const char*>(kReportPage), sizeof kReportPage);
  std::string out;
  for (const auto& [name, text] : parts) {  // in the order of the page
    const size_t at = page.find(name);
    out += page.substr(0, at);
    out += *text;
    page.remove_prefix(at + name.size());
  }
  out += page;
  return out;
}

}  // namespace feign
