// SPDX-License-Identifier: MIT
#include "lab/summary.h"

#include <algorithm>
#include <cmath>

#include "report/format.h"

namespace feign {
namespace {

std::string time_of(double seconds) { return format_time(static_cast<uint64_t>(seconds * 1e9)); }

std::string percent(double share) {
  const double p = share * 100;
  return format(p < 1 ? "%.2f %%" : p < 10 ? "%.1f %%" : "%.0f %%", p);
}

uint64_t number(const Json& run, const char* name) {
  return run.contains(name) && run[name].is_number_unsigned() ? run[name].get<uint64_t>() : 0;
}

// Of one repeat.
struct Tries {
  uint64_t failed = 0;
  bool good = false;
};

void add_run(LabRow& row, std::map<uint64_t, Tries>& repeats, const Json& run) {
  const uint64_t repeat = run["repeat"];
  if (repeat == 0) {  // the timeline's run is not measured
    if (run["status"] == "ok" && run.contains("activities") && run["activities"].is_string())
      row.activities = run["activities"];
    return;
  }
  Tries& tries = repeats[repeat];
  if (run["status"] != "ok") {
    ++tries.failed;
    row.why = run.value("why", "not said");
  } else {
    tries.good = true;
    row.seconds[repeat] = run["seconds"];
    row.calls =
        number(run, "replayed") - std::min(number(run, "emulated"), number(run, "replayed"));
    row.bytes_read = number(run, "bytes_read");
    row.bytes_written = number(run, "bytes_written");
    if (run.contains("fidelity") && run["fidelity"].is_number())
      row.fidelity = std::min(row.fidelity, run["fidelity"].get<double>());
  }
}

}  // namespace

const LabRow* LabGroup::best() const {
  const LabRow* best = nullptr;
  for (const LabRow& row : rows)
    if (!row.baseline && row.comparison.pairs != 0 &&
        (best == nullptr || row.comparison.ratio < best->comparison.ratio))
      best = &row;
  return best;
}

LabSummary summarize(const Results& results) {
  LabSummary s;
  const Json& head = results.head();
  s.file = results.path();
  s.seed = head["seed"];
  s.repeats = number(head, "repeats");
  const std::string baseline = head["baseline"];
  std::map<std::string, std::pair<size_t, size_t>> places;  // cell -> group, row
  std::map<std::pair<std::string, std::string>, size_t> groups;
  const auto add_cell = [&](const Json& cell) {
    const auto trace = cell["trace"].get<std::string>(), root = cell["root"].get<std::string>();
    const auto [at, fresh] = groups.try_emplace(std::pair(trace, root), s.groups.size());
    if (fresh) s.groups.push_back({trace, root, {}});
    LabGroup& group = s.groups[at->second];
    LabRow row;
    row.cell = cell["cell"];
    row.label = cell["label"];
    row.variant = cell.value("variant", row.label);
    row.parameters = cell.contains("parameters") ? cell["parameters"] : Json::object();
    row.baseline = row.label == baseline;
    places[row.cell] = {at->second, group.rows.size()};
    group.rows.push_back(std::move(row));
  };
  for (const Json& cell : head["cells"]) add_cell(cell);
  std::map<std::string, std::map<uint64_t, Tries>> repeats;  // by cell and repeat
  for (const Json& run : results.runs()) {
    const std::string cell = run["cell"];
    if (!places.contains(cell)) {
      // What an outside optimiser asked for is in no file.
      if (run["by"] != "serve") {
        ++s.others[run["label"]];
        continue;
      }
      add_cell(run);
    }
    const auto [g, r] = places[cell];
    add_run(s.groups[g].rows[r], repeats[cell], run);
    if (run["repeat"] != 0) ++s.runs;
  }
  s.wanted = s.repeats * head["cells"].size();
  for (LabGroup& group : s.groups) {
    std::stable_sort(group.rows.begin(), group.rows.end(),
                     [](const LabRow& a, const LabRow& b) { return a.baseline > b.baseline; });
    const LabRow* base =
        !group.rows.empty() && group.rows.front().baseline ? &group.rows.front() : nullptr;
    for (LabRow& row : group.rows) {
      for (const auto& [repeat, tries] : repeats[row.cell]) {
        row.failed += !tries.good;
        if (tries.good) row.failed_before += tries.failed;
      }
      s.failed += row.failed;
      std::vector<double> values, logs;
      for (const auto& [repeat, seconds] : row.seconds) {
        values.push_back(seconds);
        if (base == nullptr || row.baseline || !(seconds > 0)) continue;
        const auto other = base->seconds.find(repeat);
        if (other != base->seconds.end() && other->second > 0)
          logs.push_back(std::log(seconds / other->second));
      }
      row.samples = describe_samples(values);
      if (!row.baseline) row.comparison = compare(logs, s.seed);
    }
  }
  return s;
}

Json comparison_json(const Comparison& c) {
  return {{"pairs", c.pairs},
          {"ratio", c.ratio},
          {"interval", {c.low, c.high}},
          {"verdict", verdict_name(c.verdict)},
          {"resolves", c.pairs > 1 ? Json(c.resolves) : Json(nullptr)},
          {"repeats_needed", c.needed != 0 ? Json(c.needed) : Json(nullptr)}};
}

std::string verdict_text(const LabRow& row) {
  const Comparison& c = row.comparison;
  if (row.baseline || c.pairs == 0) return {};
  if (c.verdict == Comparison::kFaster) return percent(1 - c.ratio) + " less time";
  if (c.verdict == Comparison::kSlower) return percent(c.ratio - 1) + " more time";
  return verdict_name(c.verdict);
}

std::string resolve_text(const LabRow& row) {
  const Comparison& c = row.comparison;
  if (row.baseline || c.pairs == 0) return {};
  const std::string pairs = std::to_string(c.pairs) + (c.pairs == 1 ? " repeat" : " repeats");
  if (c.verdict == Comparison::kTooFew)
    return pairs +
           " cannot exclude chance: " + std::to_string(std::max<uint64_t>(kLeastPairs, c.needed)) +
           " may";
  if (c.verdict != Comparison::kSame) return {};
  return "with " + pairs + ", differences under " + percent(c.resolves) + " cannot be told; " +
         (std::abs(c.ratio - 1) < 5e-5 ? std::string("none was seen")
          : c.needed == 0
              ? "the " + percent(std::abs(c.ratio - 1)) + " seen would take more than " +
                    format_count(kMostRepeats)
              : "the " + percent(std::abs(c.ratio - 1)) + " seen would take about " +
                    format_count(std::max<uint64_t>(c.needed, c.pairs + 1)) + " repeats");
}

std::string summary_text(const LabSummary& s) {
  std::string out;
  size_t width = 12;
  for (const LabGroup& g : s.groups)
    for (const LabRow& r : g.rows) width = std::max(width, std::min<size_t>(r.label.size(), 48));
  for (const LabGroup& g : s.groups) {
    out += (out.empty() ? "" : "\n") + g.trace + " on " + g.root + "\n";
    out += format("  %-*s %4s %9s %21s %9s %9s %7s  %-15s\n", static_cast<int>(width), "", "runs",
                  "median", "half of them within", "calls", "bytes", "ratio", "95 % interval");
    for (const LabRow& r : g.rows) {
      out += format("  %-*s %4zu", static_cast<int>(width), r.label.c_str(), r.samples.count);
      if (r.samples.count != 0)
        out += format(" %9s %9s … %9s %9s %9s", time_of(r.samples.median).c_str(),
                      time_of(r.samples.low).c_str(), time_of(r.samples.high).c_str(),
                      format_count(r.calls).c_str(),
                      format_bytes(r.bytes_read + r.bytes_written).c_str());
      if (r.baseline) {
        out += "  (baseline)";
      } else if (r.comparison.pairs != 0) {
        out += format(" %7.3f  %.3f … %.3f  ", r.comparison.ratio, r.comparison.low,
                      r.comparison.high) +
               verdict_text(r);
      }
      out += "\n";
      if (const std::string more = resolve_text(r); !more.empty())
        out += format("  %-*s      ", static_cast<int>(width), "") + more + "\n";
      if (r.failed != 0)
        out += format("  %-*s      %s of its runs failed, not counted: ", static_cast<int>(width),
                      "", format_count(r.failed).c_str()) +
               r.why + "\n";
      if (r.failed_before != 0)
        out += format("  %-*s      %s failed at first, and went well when done again: ",
                      static_cast<int>(width), "", format_count(r.failed_before).c_str()) +
               r.why + "\n";
      if (r.fidelity < 1)
        out += format("  %-*s      fidelity %.2f %% at the least: not all came back as recorded\n",
                      static_cast<int>(width), "", std::min(r.fidelity * 100, 99.99));
    }
  }
  return out;
}

std::string summary_json(const LabSummary& s) {
  Json j;
  j["schema"] = "feign-lab-summary/1";
  j["results"] = s.file;
  j["seed"] = s.seed;
  j["repeats"] = s.repeats;
  j["runs"] = s.runs;
  j["failed"] = s.failed;
  j["groups"] = Json::array();
  for (const LabGroup& g : s.groups) {
    Json rows = Json::array();
    for (const LabRow& r : g.rows) {
      Json row = {{"cell", r.cell},
                  {"label", r.label},
                  {"variant", r.variant},
                  {"parameters", r.parameters},
                  {"baseline", r.baseline},
                  {"runs", r.samples.count},
                  {"failed", r.failed},
                  {"failed_before", r.failed_before},
                  {"why", r.why},
                  {"median", r.samples.median},
                  {"quartiles", {r.samples.low, r.samples.high}},
                  {"least", r.samples.least},
                  {"most", r.samples.most},
                  {"calls", r.calls},
                  {"bytes_read", r.bytes_read},
                  {"bytes_written", r.bytes_written},
                  {"fidelity", r.fidelity}};
      if (!r.baseline && r.comparison.pairs != 0)
        row["comparison"] = comparison_json(r.comparison);
      rows.push_back(std::move(row));
    }
    j["groups"].push_back({{"trace", g.trace}, {"root", g.root}, {"rows", std::move(rows)}});
  }
  j["no_longer_in_the_lab"] = Json::object();
  for (const auto& [label, runs] : s.others) j["no_longer_in_the_lab"][label] = runs;
  return j.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace feign
