// SPDX-License-Identifier: MIT
#include "lab/command.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/log.h"
#include "base/output.h"
#include "base/shell.h"
#include "cli/run.h"
#include "lab/html.h"
#include "lab/search.h"
#include "lab/session.h"
#include "lab/summary.h"
#include "report/format.h"

namespace feign {
namespace {

constexpr int kDone = 0, kShort = 1, kBad = 2;

int failed(const Error& error) {
  log(FEIGN_LOG_ERROR, error.text());
  return kBad;
}

Result<void> number(const std::string& option, const std::string& text, uint64_t least,
                    uint64_t& to) {
  if (text.empty()) return {};
  errno = 0;
  const unsigned long long v = strtoull(text.c_str(), nullptr, 10);
  if (text.find_first_not_of("0123456789") != std::string::npos || errno != 0 || v < least ||
      v > 1'000'000'000)
    return Error(FEIGN_ERR_ARGUMENT,
                 option + " " + text + ": want a number, at least " + std::to_string(least));
  to = v;
  return {};
}

// What is said of runs that are in the results, and not in the lab's file.
void tell_others(const LabSummary& summary) {
  for (const auto& [label, runs] : summary.others)
    log(FEIGN_LOG_WARN, summary.file + ": " + std::to_string(runs) +
                            (runs == 1 ? " run" : " runs") + " of \"" + label +
                            "\" no longer belong to the lab (it was changed): kept, not counted");
}

HtmlTexts html_texts(const Results& results, const LabSummary& summary) {
  HtmlTexts t;
  const Json& head = results.head();
  const auto text = [&](const Json& of, const char* name) {
    return of.contains(name) && of[name].is_string() ? of[name].get<std::string>() : std::string();
  };
  const std::string file = text(head, "file");
  t.title = "Feign lab: " + file;
  const Json machine = head.contains("machine") ? head["machine"] : Json::object();
  t.about = format_count(summary.runs, "run", "runs") + ", " + format_count(summary.failed) +
            " failed; in random order (seed " + std::to_string(summary.seed) + "); on " +
            text(machine, "host") + ", " + text(machine, "system");
  if (!results.runs().empty())
    t.about += "; " + text(results.runs().front(), "started") + " to " +
               text(results.runs().back(), "started");
  t.again = "feign lab report " + results.path() + " --html REPORT.html";
  t.no_timeline = "No timeline was recorded: `feign lab " + file +
                  " --html REPORT.html` does (unless the lab says `timeline: none`).";
  return t;
}

// A run of its own for each timeline: of the baseline and the best of each trace and root, or all.
Result<bool> run_timelines(const Lab& lab, Session& session, const Results& results) {
  std::string dir = results.path();
  if (dir.ends_with(".json")) dir.resize(dir.size() - 5);
  dir += ".activities";
  if (mkdir(dir.c_str(), 0777) != 0 && errno != EEXIST) return errno_error("make " + dir, errno);
  std::vector<std::pair<Cell, std::string>> wanted;
  const LabSummary summary = summarize(results);
  for (const Cell& cell : session.cells(lab.configs))
    for (const LabGroup& g : summary.groups)
      for (const LabRow& row : g.rows) {
        if (row.cell != cell.id || row.seconds.empty()) continue;
        if (lab.timeline != Lab::Timeline::kAll && !row.baseline && &row != g.best()) continue;
        const std::string file = dir + "/" + cell.id;
        if (access(file.c_str(), R_OK) != 0) session.forget(cell, 0);
        if (!session.has(cell, 0)) wanted.emplace_back(cell, file);
      }
  session.expect(wanted.size());
  for (const auto& [cell, file] : wanted) {
    auto ran = session.run(cell, 0, "timeline", file);
    if (!ran || !*ran) return ran;
  }
  return true;
}

Result<void> page(const Results& results, const LabSummary& summary, const LabOptions& o) {
  if (o.html.empty()) return {};
  return put_text(lab_html(summary, results, html_texts(results, summary)), o.html);
}

int finish(const Results& results, const LabOptions& o) {
  const LabSummary summary = summarize(results);
  tell_others(summary);
  if (auto done = page(results, summary, o); !done) return failed(done.error());
  if (!o.quiet || !o.output.empty() || o.json)
    if (auto done = put_text(o.json ? summary_json(summary) : summary_text(summary), o.output);
        !done)
      return failed(done.error());
  return summary.failed != 0 ? kShort : kDone;
}

std::vector<Written> outputs(const LabOptions& o) {
  return {{"--output", o.output}, {"--html", o.html}};
}

// Without running anything.
int report(const std::string& path, const LabOptions& o) {
  if (auto ok = none_overwritten({path}, outputs(o)); !ok) return failed(ok.error());
  auto results = Results::load(path);
  if (!results) return failed(results.error());
  return finish(*results, o);
}

void print_plan(const Lab& lab, const Session& session) {
  std::string text;
  uint64_t left = 0;
  const std::vector<Cell> cells = session.cells(lab.configs);
  for (const Cell& cell : cells) {
    uint64_t done = 0;
    for (uint64_t r = 1; r <= lab.repeats; ++r) done += session.has(cell, r);
    left += lab.repeats - done;
    text += cell.config.label + ", " + cell.trace->name + " on " + cell.root->name + ": " +
            std::to_string(done) + " of " + std::to_string(lab.repeats) + " done\n  feign";
    for (const std::string& arg : replay_arguments(lab, *cell.trace, *cell.root, cell.config))
      text += arg.find_first_not_of(
                  "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                  "_-+=,./:%@") == std::string::npos &&
                      !arg.empty()
                  ? " " + arg
                  : " " + quoted(arg);
    text += "\n";
  }
  text += std::to_string(left) + " runs to do, in random order (seed " + std::to_string(lab.seed) +
          ")\n";
  (void)put_text(text, "");
}

}  // namespace

Result<void> replay_page(const std::string& report_text, const std::string& activities,
                         const std::string& output) {
  const Json report = Json::parse(report_text);
  const std::string trace = report["trace"], root = report["root"];
  Json run = {{"cell", "replay"}, {"trace", trace}, {"root", root},  {"label", "the replay"},
              {"repeat", 1U},     {"by", "lab"},    {"status", "ok"}};
  take(report, run);
  Json line = {{"cell", "replay"},      {"trace", trace}, {"root", root},
               {"label", "the replay"}, {"repeat", 0U},   {"by", "timeline"},
               {"status", "ok"},        {"seconds", 0},   {"activities", activities}};
  Json head = {{"seed", 1U}, {"repeats", 1U}, {"baseline", "the replay"}};
  head["cells"] = Json::array();
  head["cells"].push_back(
      {{"cell", "replay"}, {"trace", trace}, {"root", root}, {"label", "the replay"}});
  const Results results = Results::of(std::move(head), {std::move(run), std::move(line)});
  const std::string pace = report["pace"], recorded = format_time(static_cast<uint64_t>(
                                               report["recorded_seconds"].get<double>() * 1e9));
  return put_text(
      lab_html(summarize(results), results,
               {"Feign replay: " + trace, "pace " + pace + "; recorded in " + recorded,
                "feign replay " + trace + " … --html " + output, "There is no timeline."}),
      output);
}

static int run_lab(const LabOptions& o) {
  std::string file = o.files.front();
  if (file == "report") {
    if (o.files.size() != 2)
      return failed(Error(FEIGN_ERR_ARGUMENT, "lab report: want RESULTS.json"));
    return report(o.files[1], o);
  }
  if (o.files.size() != 1)
    return failed(Error(FEIGN_ERR_ARGUMENT, "lab: \"" + o.files[1] + "\": want one FILE.yaml"));
  if (file.ends_with(".json")) return report(file, o);

  Plugins plugins;
  Budget budget;
  if (o.search && o.serve)
    return failed(Error(FEIGN_ERR_ARGUMENT, "lab: --search and --serve: want one of them"));
  if (!o.budget.empty()) {
    if (!o.search) return failed(Error(FEIGN_ERR_ARGUMENT, "--budget: is for --search"));
    auto parsed = parse_budget(o.budget);
    if (!parsed) return failed(parsed.error());
    budget = *parsed;
  }
  auto lab = load_lab(file, plugins, o.trace, o.root);
  if (!lab) return failed(lab.error());
  if (auto ok = number("--repeats", o.repeats, 1, lab->repeats); !ok) return failed(ok.error());
  if (auto ok = number("--seed", o.seed, 0, lab->seed); !ok) return failed(ok.error());
  std::string path = o.results;
  if (path.empty()) {
    path = file;
    for (const char* ending : {".yaml", ".yml"})
      if (path.ends_with(ending)) path.resize(path.size() - std::string(ending).size());
    path += ".results.json";
  }
  std::vector<std::string> read = {file, path};
  for (const LabTrace& trace : lab->traces)
    read.insert(read.end(), trace.files.begin(), trace.files.end());
  if (auto ok = none_overwritten(read, outputs(o)); !ok) return failed(ok.error());
  for (const Written& w : outputs(o))
    if (!w.file.empty() && w.file != "-" && !can_be_written(w.file))
      return failed(errno_error("write " + w.file, errno));
  const Json head = Session::head(*lab);
  auto results = o.dry_run ? Results::look(path, head) : Results::open(path, head);
  if (!results) return failed(results.error());
  Session session(*lab, *results, o.quiet);
  if (o.dry_run) {
    print_plan(*lab, session);
    return kDone;
  }
  if (!results->runs().empty())
    log(FEIGN_LOG_WARN, path + ": goes on from the " + std::to_string(results->runs().size()) +
                            " runs that are there");
  if (!o.quiet && isatty(STDERR_FILENO))
    log(FEIGN_LOG_WARN,
        "runs in random order (seed " + std::to_string(lab->seed) + "), results in " + path);
  std::string found;
  Result<bool> ran = o.serve ? serve(*lab, session, *results, plugins)
                     : o.search
                         ? search(*lab, session, *results, budget, o.json, found)
                         : session.run_all(session.cells(lab->configs), 1, lab->repeats, "lab");
  if (ran && *ran && !o.html.empty() && lab->timeline != Lab::Timeline::kNone)
    ran = run_timelines(*lab, session, *results);
  if (!ran) return failed(ran.error());
  const auto ended = session.end();
  const int status = o.serve || (o.search && *ran) ? kDone : finish(*results, o);
  if (o.search && *ran) {
    if (auto done = page(*results, summarize(*results), o); !done) return failed(done.error());
    if (auto done = put_text(found, o.output); !done) return failed(done.error());
  }
  if (!ended) return failed(ended.error());
  if (!*ran) {
    log(FEIGN_LOG_ERROR, "ended early by signal " + std::to_string(g_stop_signal.load()) +
                             ": the same command goes on from here");
    return kShort;
  }
  return status;
}

int lab_command(const LabOptions& o) {
  try {
    return run_lab(o);
  } catch (const Json::exception& e) {
    // Results that somebody edited: the line is known, what is in it has the wrong type.
    return failed(
        Error(FEIGN_ERR_ARGUMENT, o.files.back() +
                                      ": results hold a value of another kind than `feign lab` "
                                      "writes: " +
                                      e.what()));
  }
}

}  // namespace feign
