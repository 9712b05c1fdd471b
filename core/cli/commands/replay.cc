// SPDX-License-Identifier: MIT
// Commands that send a trace through a pipeline: replay, run, convert, and the form without a name.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "base/log.h"
#include "base/output.h"
#include "cli/command.h"
#include "cli/common.h"
#include "cli/kinds.h"
#include "cli/yaml.h"
#include "lab/command.h"
#include "plugin/options.h"
#include "replay/ranks.h"

namespace feign {
namespace {

Result<void> replay_options(const Common& c, ReplayOptions& to) {
  for (const auto& [name, text] : c.settings)
    if (!text.empty())
      if (auto done = set(to, *replay_setting(name), text); !done)
        return std::move(done.error()).within("--" + name);
  if (!c.root.empty()) to.root = c.root;
  if (!c.map.empty()) to.map = c.map;
  if (!c.patience.empty() && (!parse_duration(c.patience, to.patience_ns) || to.patience_ns == 0))
    return Error(FEIGN_ERR_ARGUMENT,
                 "--patience " + c.patience + ": want a time, such as 90s or 10m");
  if (c.no_prepare) to.prepare = false;
  if (!c.drop_caches.empty()) (void)parse_drop_caches(c.drop_caches, to.drop_caches);
  to.before = c.before;
  to.waits = c.waits;
  // A page needs them: beside it, until it is written.
  to.activities = c.html.empty() || !c.activities.empty() ? c.activities : c.html + ".activities";
  return {};
}

Result<double> parse_share(const std::string& text) {
  char* end = nullptr;
  double share = strtod(text.c_str(), &end);
  if (end != text.c_str() && std::string(end) == "%") {
    share /= 100;
    ++end;
  }
  if (end == text.c_str() || *end != '\0' || !(share >= 0 && share <= 1))
    return Error(FEIGN_ERR_ARGUMENT, "--require " + text + ": want a share such as 0.995 or 99.5%");
  return share;
}

// Whether an activity came to anything that could be compared.
bool compared(const Report& report) {
  const OpCounts sum = report.total();
  return sum.matched + sum.mismatched != 0;
}

// 0, or 1 if the replay ended early or less came back as recorded than `require`; 2 if it failed.
int status_of(const Report& report, double require) {
  if (report.failed) return kBad;
  const bool enough = report.fidelity() >= require && (require == 0 || compared(report));
  return report.interrupted || !enough ? kShort : kDone;
}

int show(const RunResult& result, const Common& c, double require, const Tables& tables) {
  if (!result.replayed) {
    // Nowhere else is it said; with --verbose it was.
    if (!c.quiet && log_level() < FEIGN_LOG_INFO)
      for (const std::string& note : result.report.notes) log(FEIGN_LOG_WARN, "note: " + note);
    if (!c.quiet)
      for (const auto& [writer, file] : result.written)
        if (!file.empty() && file != "-") log(FEIGN_LOG_INFO, writer + ": wrote " + file);
    return kDone;
  }
  const Report& report = result.report;
  if (!c.quiet || !c.output.empty() || c.json) {
    const std::string text = c.json ? report_json(report, tables) : report_text(report, tables);
    if (const int failure = put(text, c.output); failure != kDone) {
      if (!c.output.empty()) (void)put(text, "");  // rather there than nowhere
      return failure;
    }
  }
  if (report.total().activities == 0 && !report.interrupted && !report.failed)
    log(FEIGN_LOG_WARN, "no activity was left to be replayed (--ranks, --with, an empty trace?)");
  if (std::any_of(report.mismatches.begin(), report.mismatches.end(), [](const auto& m) {
        const int64_t replayed = std::get<2>(m.first);
        return replayed == -EMFILE || replayed == -ENFILE;
      }))
    log(FEIGN_LOG_WARN,
        "files could not be opened, since this process may have no more: want a higher limit "
        "(ulimit -n)");
  const int status = status_of(report, require);
  if (report.failed) {
    log(FEIGN_LOG_ERROR, report.stopped_by);
  } else if (report.interrupted) {
    log(FEIGN_LOG_ERROR, "ended early: " + report.stopped_by);
  } else if (status != kDone && !compared(report)) {
    log(FEIGN_LOG_ERROR, "no activity came back that could be compared, and --require was given");
  } else if (status != kDone) {
    char text[80];
    snprintf(text, sizeof text, "fidelity is %.3f %%, required were %.3f %%",
             report.fidelity() * 100, require * 100);
    log(FEIGN_LOG_ERROR, text);
  }
  return status;
}

int run_it(PipelineOptions& options, Plugins& plugins, const Common& c) {
  options.explain = c.explain;
  options.outputs = {{"--output", c.output}, {"--html", c.html}};
  if (!c.file.empty()) options.inputs = {c.file};
  double require = 0;
  if (!c.require.empty()) {
    auto share = parse_share(c.require);
    if (!share) return failed(share.error());
    require = *share;
  }
  if (!c.output.empty() && c.output != "-" && launched().rank == 0 && !can_be_written(c.output))
    return failed(errno_error("write " + c.output, errno));
  if (!c.html.empty() && launched().size > 1)
    return failed(Error(FEIGN_ERR_ARGUMENT,
                        "--html " + c.html + ": want a replay by one process, without mpirun"));
  Tables tables;
  Result<RunResult> result = [&] {
    ProgressLine line(c.quiet);
    return run_pipeline(
        options, plugins, tables,
        [&](const char* stage, uint64_t done, uint64_t total) { line.show(stage, done, total); });
  }();
  if (!result) return failed(result.error());
  if (!result->explanation.empty()) {
    // Where the report is for a machine, it is left alone.
    if (c.json)
      std::cerr << result->explanation;
    else if (const int status = put(result->explanation + "\n", ""); status != kDone)
      return status;
  }
  Result<void> page;
  if (result->replayed && !c.html.empty()) {
    page = replay_page(report_json(result->report, tables), options.replay.activities, c.html);
    if (c.activities.empty()) unlink(options.replay.activities.c_str());
  }
  int status = result->silent ? status_of(result->report, 0) : show(*result, c, require, tables);
  if (!page) status = failed(page.error());
  if (result->end_all) result->end_all(status);
  return status;
}

// Those that were asked for; else posix, and mpi where it is one of several ranks.
Result<std::vector<PluginSpec>> replayers(const Common& c, Plugins& plugins) {
  if (!c.replayers.empty()) {
    if (!c.layer.empty())
      return Error(FEIGN_ERR_ARGUMENT, "--layer chooses replayers: want it or --replayer");
    return specs(c.replayers, "--replayer", FEIGN_REPLAYER);
  }
  std::vector<PluginSpec> list(1);
  list[0].name = "posix";
  if (!c.layer.empty() && c.layer != "posix" && c.layer != "mpiio") {  // a third party's
    auto other = parse_plugin_spec(c.layer, "--layer");
    if (!other) return std::move(other.error());
    if (other->name.find('/') == std::string::npos)
      if (auto found = plugins.find(other->name, FEIGN_REPLAYER); !found)
        return Error(
            FEIGN_ERR_ARGUMENT,
            "--layer " + c.layer +
                ": want posix (libc's streams, too), mpiio, the path of a replayer, or "
                "the name of one that is installed or in $FEIGN_PLUGIN_PATH (docs/layers.md)");
    other->roles = FEIGN_REPLAYER;
    list.push_back(std::move(*other));
  }
  if ((launched().size > 1 || c.layer == "mpiio") && list.back().name != "mpi") {
    auto mpi = plugins.find("mpi", FEIGN_REPLAYER);
    if (!mpi) return std::move(mpi.error());
    list.emplace_back().name = "mpi";
    if (c.layer == "posix") list.back().options = {{"io", "order"}};
  }
  return list;
}

int replay_it(PipelineOptions& options, Plugins& plugins, const Common& c) {
  if (auto ok = replay_options(c, options.replay); !ok) return failed(ok.error());
  return run_it(options, plugins, c);
}

class ReplayCommand : public Command {
 public:
  using Command::Command;
  void takes(CLI::App& app) override {
    app.add_option("TRACE", c_.traces, "Trace file; several (one a process or rank) are one trace")
        ->required();
    c_.reading(app);
    app.add_option(
           "--replayer", c_.replayers,
           "Who makes the calls; several, each for its layers [posix; under mpirun mpi, too]")
        ->type_name("NAME[,key=value...]")
        ->expected(1)
        ->allow_extra_args(false)
        ->take_all();
    app.add_option("--layer", c_.layer,
                   "Where calls of a library and the posix calls in them were both recorded: make "
                   "these: posix, mpiio (the others then only order them), or a third party's, by "
                   "the name or path of its replayer [mpiio under mpirun, else posix]")
        ->type_name("posix|mpiio|NAME");
    c_.replaying(app);
  }
  int run() override {
    Plugins plugins;
    PipelineOptions options;
    auto from = reading(c_, plugins);
    if (!from) return failed(from.error());
    options.plugins = std::move(*from);
    auto last = replayers(c_, plugins);
    if (!last) return failed(last.error());
    for (auto& spec : *last) options.plugins.push_back(std::move(spec));
    return replay_it(options, plugins, c_);
  }
};

// --plugin … --plugin …
class PipelineCommand : public Command {
 public:
  using Command::Command;
  void takes(CLI::App& app) override {
    app.add_option("-p,--plugin", c_.plugins,
                   "The pipeline, in order: a provider, modifiers, a replayer and writers")
        ->type_name("NAME-OR-PATH[,key=value...]")
        ->expected(1)
        ->allow_extra_args(false)
        ->take_all();
    c_.replaying(app);
  }
  int run() override {
    Plugins plugins;
    PipelineOptions options;
    auto list = specs(c_.plugins, "--plugin");
    if (!list) return failed(list.error());
    options.plugins = std::move(*list);
    return replay_it(options, plugins, c_);
  }
};

class RunCommand : public Command {
 public:
  using Command::Command;
  void takes(CLI::App& app) override {
    app.add_option("FILE", c_.file, "The pipeline")->required()->type_name("FILE.yaml");
    c_.replaying(app);
  }
  int run() override {
    Plugins plugins;
    auto options = load_pipeline(c_.file);
    if (!options) return failed(options.error());
    return replay_it(*options, plugins, c_);
  }
};

class ConvertCommand : public Command {
 public:
  using Command::Command;
  void takes(CLI::App& app) override {
    app.add_option("FILES", c_.traces,
                   "IN… OUT: traces to read, and the file to write (its ending says how)")
        ->required()
        ->expected(1, -1);
    c_.reading(app);
    app.add_option("--to", c_.to,
                   "Write with this writer, instead of the one that OUT's ending names")
        ->type_name("NAME[,key=value...]");
    c_.explaining(app);
    c_.verbosity(app);
  }
  int run() override {
    if (c_.traces.size() < 2)
      return failed(Error(FEIGN_ERR_ARGUMENT, "convert " + c_.traces.front() +
                                                  ": want IN… OUT: there is no file to write"));
    Plugins plugins;
    const std::string out = c_.traces.back();
    c_.traces.pop_back();
    PipelineOptions options;
    auto from = reading(c_, plugins);
    if (!from) return failed(from.error());
    options.plugins = std::move(*from);
    Result<PluginSpec> writer = PluginSpec{};
    if (c_.to.empty()) {
      writer = writer_for(out, plugins);
    } else {
      writer = parse_plugin_spec(c_.to, "--to");
      if (writer) writer->options.emplace_back("file", out);
    }
    if (!writer) return failed(writer.error());
    options.plugins.push_back(std::move(*writer));
    return run_it(options, plugins, c_);
  }
};

}  // namespace

std::unique_ptr<Command> make_replay(Common& common) {
  return std::make_unique<ReplayCommand>(common);
}
std::unique_ptr<Command> make_pipeline(Common& common) {
  return std::make_unique<PipelineCommand>(common);
}
std::unique_ptr<Command> make_run(Common& common) { return std::make_unique<RunCommand>(common); }
std::unique_ptr<Command> make_convert(Common& common) {
  return std::make_unique<ConvertCommand>(common);
}

}  // namespace feign
