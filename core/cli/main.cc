// SPDX-License-Identifier: MIT
// The command: what the user typed into what cli/run.h offers.
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/log.h"
#include "base/output.h"
#include "cli/check.h"
#include "cli/cli.h"
#include "cli/generate.h"
#include "cli/info.h"
#include "cli/run.h"
#include "discover/discover.h"
#include "discover/hosts.h"
#include "lab/command.h"
#include "plugin/options.h"
#include "record/record.h"
#include "replay/ranks.h"

namespace feign {
namespace {

constexpr int kDone = 0, kShort = 1, kBad = 2;

void on_signal(int signal) {
  // The first asks for an end with a report, the second does not ask.
  if (g_stop_signal.exchange(signal) != 0) _exit(128 + signal);
}

// One line on a terminal, once something takes more than a second.
class ProgressLine {
 public:
  explicit ProgressLine(bool quiet) : on_(!quiet && isatty(STDERR_FILENO)) {}
  ~ProgressLine() { erase(); }
  void show(const char* stage, uint64_t done, uint64_t total) {
    if (!on_) return;
    const uint64_t now = now_ns();
    if (now - begin_ < 1'000'000'000 || now - last_ < 100'000'000) return;
    last_ = now;
    if (stage != stage_) {
      stage_ = stage;
      stage_begin_ = now;
    }
    char line[160];
    int n = snprintf(line, sizeof line, "\r%s  %llu", stage, static_cast<unsigned long long>(done));
    if (total != 0 && done <= total) {
      const double share = static_cast<double>(done) / static_cast<double>(total);
      n += snprintf(line + n, sizeof line - static_cast<size_t>(n), " of %llu  %.0f %%",
                    static_cast<unsigned long long>(total), share * 100);
      if (done != 0 && now > stage_begin_ + 500'000'000) {
        const double left = static_cast<double>(now - stage_begin_) / 1e9 * (1 - share) / share;
        n += snprintf(line + n, sizeof line - static_cast<size_t>(n), "  %d:%02d left",
                      static_cast<int>(left) / 60, static_cast<int>(left) % 60);
      }
    }
    n += snprintf(line + n, sizeof line - static_cast<size_t>(n), "\033[K");
    if (write(STDERR_FILENO, line, static_cast<size_t>(n)) < 0) on_ = false;
    shown_ = true;
  }
  void erase() {
    if (shown_ && write(STDERR_FILENO, "\r\033[K", 4) < 0) on_ = false;
    shown_ = false;
  }

 private:
  bool on_, shown_ = false;
  const char* stage_ = nullptr;
  uint64_t begin_ = now_ns(), stage_begin_ = begin_, last_ = 0;
};

int failed(const Error& error) {
  if (launched().rank != 0) return kBad;  // rank 0 says it
  log(FEIGN_LOG_ERROR, error.text());
  return kBad;
}

// What several commands share.
struct Common {
  std::vector<std::string> plugins, traces, with;
  std::vector<std::string> replayers;
  std::string provider, root, pace, order, output, require, to, file, name, shell;
  bool no_prepare = false, json = false, quiet = false, dependencies = false, keep_going = false,
       names = false, statistics = false;
  std::string cwd, content, max_bytes, ranks, map, layer, patience;
  int verbose = 0;
  std::string compute;
  uint64_t explain = 0;
  uint32_t streams_per_core = 0;
  bool pin = false;
  std::string drop_caches, before, activities, waits, html;
};

Result<std::vector<PluginSpec>> specs(const std::vector<std::string>& texts, const char* where) {
  std::vector<PluginSpec> out;
  for (const std::string& text : texts) {
    auto spec = parse_plugin_spec(text, where);
    if (!spec) return std::move(spec.error());
    out.push_back(std::move(*spec));
  }
  return out;
}

// What stands between the trace and what is done with it: --ranks, then --with in its order.
Result<std::vector<PluginSpec>> modifiers(const Common& c) {
  auto list = specs(c.with, "--with");
  if (!list || c.ranks.empty()) return list;
  auto filter = filter_of_ranks(c.ranks);
  if (!filter) return std::move(filter.error()).within("--ranks " + c.ranks);
  filter->where = "--ranks " + c.ranks;
  list->insert(list->begin(), std::move(*filter));
  return list;
}

Result<PluginSpec> provider(const Common& c, Plugins& plugins) {
  Result<PluginSpec> spec = PluginSpec{};
  if (c.provider.empty()) {
    spec = provider_for(c.traces, plugins);
  } else {
    spec = parse_plugin_spec(c.provider, "--provider");
    if (spec)
      for (const std::string& trace : c.traces) spec->options.emplace_back("file", trace);
  }
  if (!spec) return spec;
  if (c.keep_going) spec->options.emplace_back("keep-going", "yes");
  if (c.statistics) spec->options.emplace_back("statistics", "yes");
  if (!c.cwd.empty()) spec->options.emplace_back("cwd", c.cwd);
  return spec;
}

Result<void> replay_options(const Common& c, ReplayOptions& to) {
  if (!c.root.empty()) to.root = c.root;
  if (!c.pace.empty()) {
    auto pace = parse_pace(c.pace);
    if (!pace) return std::move(pace.error()).within("--pace");
    to.pace = pace->first;
    to.scale = pace->second;
  }
  if (!c.order.empty()) {
    (void)parse_order(c.order, to.order);
    to.order_given = true;
  }
  if (!c.map.empty()) to.map = c.map;
  if (!c.patience.empty() && (!parse_duration(c.patience, to.patience_ns) || to.patience_ns == 0))
    return Error(FEIGN_ERR_ARGUMENT,
                 "--patience " + c.patience + ": want a time, such as 90s or 10m");
  if (c.no_prepare) to.prepare = false;
  if (!c.compute.empty()) (void)parse_compute(c.compute, to.compute);
  if (c.streams_per_core != 0) to.streams_per_core = c.streams_per_core;
  if (c.pin) to.pin = true;
  if (!c.drop_caches.empty()) (void)parse_drop_caches(c.drop_caches, to.drop_caches);
  to.before = c.before;
  to.waits = c.waits;
  // A page needs them: beside it, until it is written.
  to.activities = c.html.empty() || !c.activities.empty() ? c.activities : c.html + ".activities";
  if (!c.content.empty()) {
    const auto content = Content::parse(c.content);
    if (!content)
      return Error(FEIGN_ERR_ARGUMENT, "--content " + c.content + ": want " + Content::kForms);
    to.content = *content;
    to.content_text = c.content;
  }
  if (!c.max_bytes.empty())
    if (!parse_size(c.max_bytes, to.max_bytes) || to.max_bytes == 0)
      return Error(FEIGN_ERR_ARGUMENT,
                   "--max-bytes " + c.max_bytes + ": want bytes, such as 500m or 2GiB");
  return {};
}

int put(const std::string& text, const std::string& output) {
  auto done = put_text(text, output);
  return done ? kDone : failed(done.error());
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

// 0, or 1 if the replay ended early or less came back as recorded than `require`; 2 if it failed.
int status_of(const Report& report, double require) {
  if (report.failed) return kBad;
  return report.interrupted || report.fidelity() < require ? kShort : kDone;
}

int show(const RunResult& result, const Common& c, double require, const Tables& tables) {
  if (!result.replayed) {
    if (!c.quiet)
      for (const auto& [writer, file] : result.written)
        if (!file.empty() && file != "-") log(FEIGN_LOG_INFO, writer + ": wrote " + file);
    return kDone;
  }
  const Report& report = result.report;
  if (!c.quiet || !c.output.empty() || c.json)
    if (const int status =
            put(c.json ? report_json(report, tables) : report_text(report, tables), c.output);
        status != kDone)
      return status;
  const int status = status_of(report, require);
  if (report.failed) {
    log(FEIGN_LOG_ERROR, report.stopped_by);
  } else if (report.interrupted) {
    log(FEIGN_LOG_ERROR, "ended early: " + report.stopped_by);
  } else if (status != kDone) {
    char text[80];
    snprintf(text, sizeof text, "fidelity is %.3f %%, required were %.3f %%",
             report.fidelity() * 100, require * 100);
    log(FEIGN_LOG_ERROR, text);
  }
  return status;
}

int run(PipelineOptions& options, Plugins& plugins, const Common& c) {
  options.explain = c.explain;
  double require = 0;
  if (!c.require.empty()) {
    auto share = parse_share(c.require);
    if (!share) return failed(share.error());
    require = *share;
  }
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
  if (result->replayed && !c.html.empty()) {
    auto done = replay_page(report_json(result->report, tables), options.replay.activities, c.html);
    if (c.activities.empty()) unlink(options.replay.activities.c_str());
    if (!done) return failed(done.error());
  }
  const int status =
      result->silent ? status_of(result->report, require) : show(*result, c, require, tables);
  if (result->end_all) result->end_all(status);
  return status;
}

// Those that were asked for; else posix, and mpi where it is one of several ranks.
Result<std::vector<PluginSpec>> replayers(const Common& c, Plugins& plugins) {
  if (!c.replayers.empty()) {
    if (!c.layer.empty())
      return Error(FEIGN_ERR_ARGUMENT, "--layer chooses replayers: want it or --replayer");
    return specs(c.replayers, "--replayer");
  }
  std::vector<PluginSpec> list(1);
  list[0].name = "posix";
  if (!c.layer.empty() && c.layer != "posix" && c.layer != "mpiio") {  // a third party's
    auto other = parse_plugin_spec(c.layer, "--layer");
    if (!other) return std::move(other.error());
    if (other->name.find('/') == std::string::npos)
      if (auto found = plugins.find(other->name, FEIGN_REPLAYER); !found)
        return Error(FEIGN_ERR_ARGUMENT,
                     "--layer " + c.layer +
                         ": want posix, mpiio, the path of a replayer, or the "
                         "name of one that is installed or in $FEIGN_PLUGIN_PATH (docs/layers.md)");
    list.push_back(std::move(*other));
  }
  if (launched().size > 1 || c.layer == "mpiio") {
    auto mpi = plugins.find("mpi", FEIGN_REPLAYER);
    if (!mpi) return std::move(mpi.error());
    list.emplace_back().name = "mpi";
    if (c.layer == "posix") list.back().options = {{"io", "order"}};
  }
  return list;
}

int replay_command(const Common& c) {
  Plugins plugins;
  PipelineOptions options;
  auto first = provider(c, plugins);
  if (!first) return failed(first.error());
  options.plugins.push_back(std::move(*first));
  auto with = modifiers(c);
  if (!with) return failed(with.error());
  for (auto& spec : *with) options.plugins.push_back(std::move(spec));
  auto last = replayers(c, plugins);
  if (!last) return failed(last.error());
  for (auto& spec : *last) options.plugins.push_back(std::move(spec));
  if (auto ok = replay_options(c, options.replay); !ok) return failed(ok.error());
  return run(options, plugins, c);
}

int pipeline_command(const Common& c) {
  Plugins plugins;
  PipelineOptions options;
  auto list = specs(c.plugins, "--plugin");
  if (!list) return failed(list.error());
  options.plugins = std::move(*list);
  if (auto ok = replay_options(c, options.replay); !ok) return failed(ok.error());
  return run(options, plugins, c);
}

int run_command(const Common& c) {
  Plugins plugins;
  auto options = load_pipeline(c.file);
  if (!options) return failed(options.error());
  if (auto ok = replay_options(c, options->replay); !ok) return failed(ok.error());
  return run(*options, plugins, c);
}

int info_command(const Common& c) {
  Plugins plugins;
  std::vector<PluginSpec> list;
  auto first = provider(c, plugins);
  if (!first) return failed(first.error());
  list.push_back(std::move(*first));
  auto with = modifiers(c);
  if (!with) return failed(with.error());
  for (auto& spec : *with) list.push_back(std::move(spec));
  Tables tables;
  Result<TraceInfo> info = [&] {
    ProgressLine line(c.quiet);
    return trace_info(list, plugins, tables, [&](const char* stage, uint64_t done, uint64_t total) {
      line.show(stage, done, total);
    });
  }();
  if (!info) return failed(info.error());
  std::optional<DependencyInfo> dependencies;
  if (c.dependencies) {
    ProgressLine line(c.quiet);
    auto found = dependency_info(
        list, plugins,
        [&](const char* stage, uint64_t done, uint64_t total) { line.show(stage, done, total); });
    if (!found) return failed(found.error());
    dependencies = std::move(*found);
  }
  const DependencyInfo* d = dependencies ? &*dependencies : nullptr;
  return put(c.json ? info_json(*info, tables, d) : info_text(*info, tables, d), c.output);
}

int convert_command(Common& c) {
  if (c.traces.size() < 2) return failed(Error(FEIGN_ERR_ARGUMENT, "convert: want IN… OUT"));
  Plugins plugins;
  const std::string out = c.traces.back();
  c.traces.pop_back();
  PipelineOptions options;
  auto first = provider(c, plugins);
  if (!first) return failed(first.error());
  options.plugins.push_back(std::move(*first));
  auto with = modifiers(c);
  if (!with) return failed(with.error());
  for (auto& spec : *with) options.plugins.push_back(std::move(spec));
  Result<PluginSpec> writer = PluginSpec{};
  if (c.to.empty()) {
    writer = writer_for(out, plugins);
  } else {
    writer = parse_plugin_spec(c.to, "--to");
    if (writer) writer->options.emplace_back("file", out);
  }
  if (!writer) return failed(writer.error());
  options.plugins.push_back(std::move(*writer));
  return run(options, plugins, c);
}

// Runs a command and keeps a trace of it. The status is the command's.
int record(const RecordOptions& options) {
  auto recorded = record_command(options);
  if (!recorded) return failed(std::move(recorded.error()).within("record"));
  for (const std::string& note : recorded->notes) log(FEIGN_LOG_WARN, "record: " + note);
  if (!recorded->anything) {
    remove_raw(recorded->raw);
    log(FEIGN_LOG_ERROR, "record: nothing was recorded");
    return recorded->status != 0 ? recorded->status : kBad;
  }
  Plugins plugins;
  PipelineOptions pipeline;
  auto first = provider_for({recorded->raw}, plugins);
  if (!first) return failed(first.error());
  pipeline.plugins.push_back(std::move(*first));
  for (const auto* globs : {&options.include, &options.exclude}) {
    if (globs->empty()) continue;
    PluginSpec filter;
    filter.name = "filter";
    filter.where = globs == &options.include ? "--include" : "--exclude";
    for (const std::string& glob : *globs) filter.options.emplace_back("path", glob);
    if (globs == &options.exclude) filter.options.emplace_back("drop", "yes");
    pipeline.plugins.push_back(std::move(filter));
  }
  PluginSpec writer;
  writer.name = "feign";
  writer.where = "-o " + options.output;
  writer.options = {{"file", options.output}};
  pipeline.plugins.push_back(std::move(writer));
  Tables tables;
  auto result = run_pipeline(pipeline, plugins, tables, [](const char*, uint64_t, uint64_t) {});
  if (!result) {
    log(FEIGN_LOG_ERROR, "record: what was recorded is kept in " + recorded->raw);
    return failed(result.error());
  }
  if (!options.keep_raw) remove_raw(recorded->raw);
  return recorded->status;
}

// What `feign discover` takes, before durations are understood.
struct DiscoverCommon {
  discover::DiscoverOptions options;
  std::string per = "thread", compute_from = "throttling", timeout, max_delay, budget, accuracy;
};

int discover_command(DiscoverCommon& d, const Common& c) {
  if (d.options.command.empty())
    return failed(Error(FEIGN_ERR_ARGUMENT, "discover: no program: want -- COMMAND…"));
  const auto duration = [](const char* name, const std::string& text,
                           uint64_t& ns) -> Result<void> {
    if (text.empty() || (parse_duration(text, ns) && ns != 0)) return {};
    return Error(FEIGN_ERR_ARGUMENT,
                 name + (" " + text) + ": want a time, such as 500ms, 30s or 10m");
  };
  if (auto ok = duration("--timeout", d.timeout, d.options.timeout_ns); !ok)
    return failed(ok.error());
  if (auto ok = duration("--max-delay", d.max_delay, d.options.max_delay_ns); !ok)
    return failed(ok.error());
  if (auto ok = duration("--budget", d.budget, d.options.budget_ns); !ok) return failed(ok.error());
  if (!d.accuracy.empty()) {
    char* end = nullptr;
    const double percent = strtod(d.accuracy.c_str(), &end);
    if (end == d.accuracy.c_str() || (*end != '\0' && std::string_view(end) != "%") ||
        !(percent >= 0 && percent <= 100))
      return failed(
          Error(FEIGN_ERR_ARGUMENT, "--accuracy " + d.accuracy + ": want a percentage, 0 to 100"));
    d.options.accuracy = percent / 100;
  }
  d.options.per_process = d.per == "process";
  d.options.compute = d.compute_from == "blocking" ? discover::ComputeFrom::kBlocking
                                                   : discover::ComputeFrom::kThrottling;
  Plugins plugins;
  auto report = [&] {
    ProgressLine line(c.quiet);
    return discover::discover(
        d.options, plugins,
        [&](const char* stage, uint64_t done, uint64_t total) { line.show(stage, done, total); });
  }();
  if (!report) return failed(report.error());
  if (c.quiet && !c.json) return kDone;
  return put(c.json ? discover::discover_json(*report) : discover::discover_text(*report), "");
}

int inspect_command(const Common& c) {
  Plugins plugins;
  std::vector<Component> list;
  std::vector<Error> failures;
  if (c.name.empty()) {
    list = plugins.all(&failures);
  } else if (c.name.find('/') != std::string::npos) {
    auto opened = plugins.open(c.name);
    if (!opened) return failed(opened.error());
    list = std::move(*opened);
  } else {
    for (const Component& one : plugins.all(&failures))
      if (c.name == one.table->name) list.push_back(one);
    if (list.empty()) {
      auto found = plugins.find(
          c.name, FEIGN_PROVIDER | FEIGN_MODIFIER | FEIGN_REPLAYER | FEIGN_WRITER | FEIGN_RANKS);
      if (!found) return failed(found.error());
      list.push_back(*found);
    }
  }
  for (const Error& e : failures) log(FEIGN_LOG_WARN, e.text());
  std::string out;
  if (c.json) {
    out = "[";
    for (size_t i = 0; i < list.size(); ++i) out += (i ? ",\n" : "") + describe_json(list[i]);
    out += "]\n";
  } else if (c.names) {
    for (const Component& one : list) out += std::string(one.table->name) + "\n";
  } else {
    uint32_t role = 0;
    for (size_t i = 0; i < list.size(); ++i) {
      if (c.name.empty() && list[i].table->role != role) {
        role = list[i].table->role;
        out += std::string(i ? "\n" : "") +
               (role == FEIGN_PROVIDER   ? "PROVIDERS"
                : role == FEIGN_WRITER   ? "WRITERS"
                : role == FEIGN_REPLAYER ? "REPLAYERS"
                : role == FEIGN_RANKS    ? "RANKS"
                                         : "MODIFIERS") +
               "\n";
      }
      out += (i ? "\n" : "") + describe(list[i]);
    }
    if (const std::string left_out = left_out_plugins(); c.name.empty() && !left_out.empty())
      out += "\nNOT HERE\n\n" + left_out + "\n";
  }
  return put(out, c.output);
}

int main(int argc, char** argv) {
  Common c;
  CLI::App app(
      "Takes a trace of what an application did to storage, lets plug-ins change it, and does it "
      "again somewhere else.",
      "feign");
  app.set_version_flag("--version",
                       "feign " FEIGN_VERSION " (plug-in ABI " + std::to_string(FEIGN_ABI_MAJOR) +
                           "." + std::to_string(FEIGN_ABI_MINOR) + ")",
                       "Print the version and exit");
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.require_subcommand(0, 1);
  app.footer(
      "Each command has its own --help. First steps:\n"
      "  feign record -o app.feign -- COMMAND            record\n"
      "  feign info app.feign                            look at it\n"
      "  feign replay app.feign --root /mnt/other        do it again below another directory");

  const auto verbosity = [&](CLI::App* a) {
    a->add_flag("-q,--quiet", c.quiet, "No progress line, no report unless it is asked for");
    a->add_flag("-v,--verbose", c.verbose, "Say more; twice: still more");
  };
  const auto report = [&](CLI::App* a) {
    a->add_flag("--json", c.json, "Print the report as one JSON object (docs/report.md)");
    a->add_option("-o,--output", c.output, "Where the report goes, instead of standard output")
        ->type_name("FILE");
    a->add_option(
         "--require", c.require,
         "Exit with 1 if a smaller share of activities came back as recorded (0.995, 99.5%)")
        ->type_name("SHARE");
    verbosity(a);
  };
  const auto explaining = [&](CLI::App* a) {
    a->add_option("--explain", c.explain,
                  "Say, for the first N activities [20], which modifier changed, injected, merged "
                  "or dropped what")
        ->type_name("[N]")
        ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 32))
        ->expected(1);
  };
  const auto replaying = [&](CLI::App* a) {
    a->add_option("--root", c.root, "Directory that stands for / ; nothing outside it is touched")
        ->type_name("DIR");
    a->add_option(
         "--pace", c.pace,
         "afap: as fast as possible; think[,scale=F]: with the recorded pauses; timed[,scale=F]: "
         "each activity at its recorded time [afap]")
        ->type_name("PACE");
    a->add_option(
         "--order", c.order,
         "trace: as recorded over all streams; depend: side by side, but nothing overtakes "
         "what it needs; stream: side by side, only each stream's own order [trace]")
        ->type_name("ORDER")
        ->check(CLI::IsMember({"trace", "depend", "stream"}));
    a->add_option(
        "--content", c.content,
        "What prepared and written files hold: sparse (the default; no bytes), zeros, random "
        "or ratio=N (to compress N:1)");
    a->add_option(
        "--max-bytes", c.max_bytes,
        "Write no more than this, prepared files included (default: 95 % of what is free)");
    a->add_option(
         "--compute", c.compute,
         "How pauses are passed: hybrid (asleep, but for the last stretch), sleep, spin, or "
         "awake (hybrid, on processors kept from sleeping deeply) [hybrid]")
        ->check(CLI::IsMember({"hybrid", "sleep", "spin", "awake"}));
    a->add_option("--streams-per-core", c.streams_per_core,
                  "Threads a processor; more streams than that share them [256 threads in all]")
        ->check(CLI::Range(1, 4096));
    a->add_flag("--pin", c.pin, "Keep each thread on one processor");
    a->add_option(
         "--map", c.map,
         "Under mpirun: which rank replays which recorded ones: block, cyclic, or a file of "
         "lines RECORDED[-RECORDED] RANK [rank r replays r]")
        ->type_name("block|cyclic|FILE");
    a->add_option("--patience", c.patience,
                  "Under mpirun: how long a call may wait for other ranks before all is ended [a "
                  "minute and twice the trace's length]")
        ->type_name("TIME");
    a->add_flag("--no-prepare", c.no_prepare, "Do not make what must exist before the first call");
    explaining(a);
    a->add_option("--drop-caches", c.drop_caches,
                  "When all is prepared, start cold: all (the machine's caches, where that is "
                  "permitted) or files (those below the root)")
        ->check(CLI::IsMember({"all", "files"}));
    a->add_option("--before", c.before,
                  "A command for sh, after that and before the first call (FEIGN_ROOT is the root)")
        ->type_name("COMMAND");
    a->add_option("--waits", c.waits,
                  "Write down every wait: who, how long, for whom, by which rule")
        ->type_name("FILE");
    a->add_option("--activities", c.activities,
                  "Write down what was done when, a record an activity (docs/lab-format.md)")
        ->type_name("FILE");
    a->add_option("--html", c.html, "The report as a page with plots and timelines (docs/lab.md)")
        ->type_name("FILE");
    report(a);
  };
  const auto reading = [&](CLI::App* a) {
    a->add_option("--provider", c.provider,
                  "Read with this provider, instead of the one that recognises the file")
        ->type_name("NAME[,key=value…]");
    a->add_option("--with", c.with, "Put this modifier in; several in the order given")
        ->type_name("NAME[,key=value…]")
        ->expected(1)
        ->take_all();
    a->add_option("--ranks", c.ranks, "Only these MPI ranks; with ^ in front, all but these")
        ->type_name("0,3-5");
    a->add_flag("--keep-going", c.keep_going, "Count and skip lines that cannot be understood");
    a->add_option("--cwd", c.cwd,
                  "The program's working directory, where the trace does not tell it")
        ->type_name("DIR");
  };

  app.add_option("-p,--plugin", c.plugins,
                 "The pipeline, in order: a provider, modifiers, a replayer and writers")
      ->type_name("NAME-OR-PATH[,key=value…]")
      ->expected(1)
      ->take_all();
  replaying(&app);

  CLI::App* replay = app.add_subcommand("replay", "Replay a trace below another directory");
  replay->add_option("TRACE", c.traces, "Trace file; several (one a process or rank) are one trace")
      ->required();
  reading(replay);
  replay
      ->add_option(
          "--replayer", c.replayers,
          "Who makes the calls; several, each for its layers [posix; under mpirun mpi, too]")
      ->type_name("NAME[,key=value…]")
      ->expected(1)
      ->take_all();
  replay
      ->add_option("--layer", c.layer,
                   "Where calls of a library and the posix calls in them were both recorded: make "
                   "these: posix, mpiio (the others then only order them), or a third party's, by "
                   "the name or path of its replayer [mpiio under mpirun, else posix]")
      ->type_name("posix|mpiio|NAME");
  replaying(replay);

  CLI::App* run =
      app.add_subcommand("run", "Run the pipeline of a YAML file (docs/pipeline-file.md)");
  run->add_option("FILE", c.file, "The pipeline")->required()->type_name("FILE.yaml");
  replaying(run);

  CLI::App* info = app.add_subcommand("info", "What is in a trace");
  info->add_option("TRACE", c.traces, "Trace file, or several that are one trace")->required();
  reading(info);
  info->add_flag(
      "--dependencies", c.dependencies,
      "Say, too, what must wait for what when streams run side by side, and how much that "
      "leaves to do at once (docs/dependencies.md)");
  info->add_flag("--json", c.json, "As one JSON object");
  info->add_flag("--statistics", c.statistics,
                 "Sum up what was measured beside the trace, too (hdtrace: .stat files)");
  info->add_option("-o,--output", c.output, "Where it goes, instead of standard output")
      ->type_name("FILE");
  verbosity(info);

  CLI::App* convert = app.add_subcommand("convert", "Write a trace in another format");
  convert
      ->add_option("FILES", c.traces,
                   "IN… OUT: traces to read, and the file to write (its ending says how)")
      ->required()
      ->expected(2, -1);
  reading(convert);
  convert
      ->add_option("--to", c.to,
                   "Write with this writer, instead of the one that OUT's ending names")
      ->type_name("NAME[,key=value…]");
  explaining(convert);
  verbosity(convert);

  DiscoverCommon d;
  CLI::App* discover = app.add_subcommand(
      "discover", "Trace a parallel program with who waits for whom, found by slowing nodes down");
  discover->add_option("COMMAND", d.options.command, "The program, after --; it is run many times");
  discover
      ->add_option("-o,--output", d.options.output,
                   "Directory to make: trace.feign, trace.tracetext.N, raw traces, report.json")
      ->type_name("DIR")
      ->required();
  discover->add_option("--nodes", d.options.nodes, "Slow down only so many nodes, or these [all]")
      ->type_name("N|0,2-5|none");
  discover->add_option("--per", d.per, "What a node is [thread]")
      ->type_name("thread|process")
      ->check(CLI::IsMember({"thread", "process"}));
  discover
      ->add_option("--sample-period", d.options.sample_period,
                   "Hold a node before every so many of its calls [1]")
      ->type_name("CALLS")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 40));
  discover->add_flag(
      "--adaptive", d.options.adaptive,
      "Begin with few delays, and make more only where it is not clear who waits for "
      "what");
  discover->add_option("--budget", d.budget, "With --adaptive: begin no run after this time")
      ->type_name("TIME");
  discover
      ->add_option("--accuracy", d.accuracy,
                   "With --adaptive: enough when so many of the dependencies are known to the call "
                   "[100%]")
      ->type_name("PERCENT");
  discover->add_option("--repeat", d.options.repeat, "Throttle each node in so many runs [1]")
      ->type_name("RUNS")
      ->check(CLI::Range(1, 1000));
  discover
      ->add_option("--factor", d.options.factor,
                   "A node that does not move for so many times its longest pause is blocked [2]")
      ->type_name("F")
      ->check(CLI::Range(1.0, 1000.0));
  discover
      ->add_option(
          "--compute-from", d.compute_from,
          "Compute times: by throttling, or what is not in calls that can wait [throttling]")
      ->type_name("throttling|blocking")
      ->check(CLI::IsMember({"throttling", "blocking"}));
  discover->add_flag("--mpi", d.options.mpi,
                     "Look at MPI's calls, too; done by itself if COMMAND is mpirun or the like");
  discover->add_flag("--tolerate", d.options.tolerate,
                     "Names, sizes and results may differ from run to run; the calls may not");
  discover->add_option("--only", d.options.only, "See only calls on what is below this directory")
      ->type_name("DIR")
      ->expected(1)
      ->take_all();
  discover
      ->add_option("--exclude", d.options.exclude, "See no calls on what is below this directory")
      ->type_name("DIR")
      ->expected(1)
      ->take_all();
  discover
      ->add_option("--before", d.options.before,
                   "Shell command before each run, to tidy up after the last")
      ->type_name("COMMAND");
  discover
      ->add_option("--hosts", d.options.hosts,
                   "Other hosts that the command runs on; feign is there, too")
      ->type_name("A,B…")
      ->delimiter(',');
  discover
      ->add_option("--reach", d.options.reach,
                   "How a command is started there: gets a host and the command [ssh]")
      ->type_name("COMMAND");
  discover->add_option("--timeout", d.timeout, "End a run that takes longer, and fail [10m]")
      ->type_name("TIME");
  discover->add_option("--max-delay", d.max_delay, "Hold no call for longer [10s]")
      ->type_name("TIME");
  discover->add_flag("--show-output", d.options.show_output,
                     "The first run's output, on standard error");
  discover->add_flag("--json", c.json, "The report as one JSON object");
  verbosity(discover);

  // What --hosts starts.
  std::array<std::string, 3> post;
  CLI::App* keeps_post = app.add_subcommand("discover-post", "")->group("");
  for (std::string& word : post)
    keeps_post->add_option("WORD" + std::to_string(&word - post.data()), word)->required();

  CLI::App* inspect = app.add_subcommand("inspect", "What plug-ins there are, and what they offer");
  inspect->add_option("NAME", c.name,
                      "A plug-in's name, or the path of a shared object; left out: all");
  inspect->add_flag("--json", c.json, "As a JSON array");
  inspect->add_flag("--names", c.names, "Names only, one a line");

  RecordOptions r;
  std::string max_size;
  CLI::App* recording = app.add_subcommand(
      "record",
      "Run a command and keep a trace of it (docs/record.md); the status is the command's");
  recording->add_option("-o,--output", r.output, "The trace")
      ->type_name("FILE.feign")
      ->capture_default_str();
  recording
      ->add_option("--tracer", r.tracer,
                   "feign: a library in the program; strace: for what takes none [feign]")
      ->type_name("NAME")
      ->check(CLI::IsMember({"feign", "strace"}));
  recording
      ->add_option("--include", r.include, "Keep only calls on paths that fit this glob; several")
      ->type_name("GLOB")
      ->expected(1)
      ->take_all();
  recording
      ->add_option("--exclude", r.exclude, "Leave out calls on paths that fit this glob; several")
      ->type_name("GLOB")
      ->expected(1)
      ->take_all();
  recording
      ->add_option("--layer", r.layers,
                   "Record these layers: posix, stdio, mpi, mpiio, those of --with; several "
                   "[posix, and those of --with]")
      ->type_name("NAME")
      ->expected(1)
      ->take_all();
  recording
      ->add_option("--with", r.with,
                   "A library's calls, too: the capture library that feign generate made the "
                   "source of; several (docs/layers.md)")
      ->type_name("LIBRARY.so")
      ->expected(1)
      ->take_all();
  recording->add_option("--sample", r.sample, "Record one read or write of so many [1]")
      ->type_name("N")
      ->check(CLI::Range(1, 1000000));
  recording
      ->add_option("--max-size", max_size,
                   "Stop at this many bytes of records, before they are compressed")
      ->type_name("SIZE");
  recording->add_flag("--mpi", r.mpi, "MPI's calls, too: feign record --mpi -- mpirun -np 8 ./app");
  recording->add_flag("--paused", r.paused, "Begin paused, until SIGUSR1 or feign_record_resume()");
  recording->add_flag("--keep-raw", r.keep_raw,
                      "Keep FILE.feign.raw, from which the trace is made");
  recording->add_option("COMMAND", r.command, "What to run, after --");
  recording->positionals_at_end();
  verbosity(recording);

  GenerateOptions g;
  CLI::App* generate = app.add_subcommand(
      "generate",
      "Make capture library, replayer and reference page of a library's annotated header "
      "(docs/layers.md)");
  generate->add_option("HEADER", g.header, "The header, annotated")
      ->required()
      ->type_name("FILE.h");
  generate->add_option("-o,--output", g.output, "Where to [feign-NAME]")->type_name("DIR");
  generate->add_option("--name", g.name, "The layer's name, instead of the header's")
      ->type_name("NAME");
  generate
      ->add_option("--library", g.library, "The library itself, for the replayer to link [-lNAME]")
      ->type_name("FILE.so|-lNAME");
  generate->add_option("--include", g.include, "Where headers are that HEADER includes; several")
      ->type_name("DIR")
      ->expected(1)
      ->take_all();
  verbosity(generate);

  CLI::App* check =
      app.add_subcommand("check", "Prove a plug-in against the contract, in a process of its own");
  check->add_option("PATH", c.file, "The shared object")->required();

  LabOptions lab_options;
  CLI::App* lab = app.add_subcommand(
      "lab", "Measure variants against a baseline, as a YAML file says (docs/lab.md)");
  lab->add_option("FILE", lab_options.files,
                  "The lab; or `report RESULTS.json`: what its results say, without a run")
      ->required()
      ->expected(1, 2)
      ->type_name("FILE.yaml");
  lab->add_option("--results", lab_options.results,
                  "Where results are kept, and found again to go on [FILE.results.json]")
      ->type_name("FILE");
  lab->add_option("--trace", lab_options.trace, "Instead of the file's trace")->type_name("TRACE");
  lab->add_option("--root", lab_options.root, "Instead of the path of the file's root")
      ->type_name("DIR");
  lab->add_option("--repeats", lab_options.repeats, "Instead of the file's `repeats`")
      ->type_name("N");
  lab->add_option("--seed", lab_options.seed, "Instead of the file's `seed`: of the order of runs")
      ->type_name("N");
  lab->add_option("--html", lab_options.html,
                  "Write a report with plots, one file; adds a run for each timeline in it")
      ->type_name("FILE");
  lab->add_flag("--search", lab_options.search,
                "Find a good configuration instead of measuring all: successive halving");
  lab->add_option("--budget", lab_options.budget,
                  "What --search may take: a number of runs, or a time such as 10m")
      ->type_name("RUNS|TIME");
  lab->add_flag("--serve", lab_options.serve,
                "Let an optimiser outside choose: JSON lines in and out (docs/lab-format.md)");
  lab->add_flag("--dry-run", lab_options.dry_run, "Say what would be run, and with which command");
  lab->add_flag("--json", lab_options.json, "The summary as one JSON object (docs/lab-format.md)");
  lab->add_option("-o,--output", lab_options.output,
                  "Where the summary goes, instead of standard output")
      ->type_name("FILE");
  verbosity(lab);

  CLI::App* completion = app.add_subcommand("completion", "Print a shell completion script");
  completion->add_option("SHELL", c.shell, "bash")->required()->check(CLI::IsMember({"bash"}));
  CLI::App* man = app.add_subcommand("man", "Print the manual page (roff)");

  std::vector<std::string> words(argv, argv + argc), command;
  // What stands after -- is another program's, whatever it looks like.
  if (argc > 1 && (words[1] == "record" || words[1] == "discover")) {
    const auto at = std::find(words.begin(), words.end(), "--");
    if (at != words.end()) {
      command.assign(at + 1, words.end());
      words.erase(at, words.end());
    }
  }
  // --explain alone is --explain 20, and does not take a file's name for its number.
  for (size_t i = 1; i < words.size(); ++i)
    if (words[i] == "--explain" &&
        (i + 1 == words.size() ||
         words[i + 1].find_first_not_of("0123456789") != std::string::npos))
      words[i] = "--explain=20";
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  try {
    app.parse(static_cast<int>(pointers.size()), pointers.data());
  } catch (const CLI::Success& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    std::string sub;
    for (const CLI::App* s : app.get_subcommands()) sub = " " + s->get_name();
    log(FEIGN_LOG_ERROR, std::string(e.what()));
    log(FEIGN_LOG_ERROR, "try: feign" + sub + " --help");
    return kBad;
  }

  set_log_level(c.verbose >= 2   ? FEIGN_LOG_DEBUG
                : c.verbose == 1 ? FEIGN_LOG_INFO
                                 : FEIGN_LOG_WARN);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);  // a file that grows past the limit is EFBIG, not the end
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);

  if (*replay) return replay_command(c);
  if (*run) return run_command(c);
  if (*info) return info_command(c);
  if (*convert) return convert_command(c);
  if (!command.empty()) {
    std::vector<std::string>& whole = *recording ? r.command : d.options.command;
    if (!whole.empty())
      return failed(Error(FEIGN_ERR_ARGUMENT, whole.front() + ": want the whole command after --"));
    whole = std::move(command);
  }
  if (*recording) {
    if (r.command.empty())
      return failed(Error(FEIGN_ERR_ARGUMENT, "record: no program: want -- COMMAND…"));
    if (!max_size.empty() && (!parse_size(max_size, r.max_bytes) || r.max_bytes == 0))
      return failed(Error(FEIGN_ERR_ARGUMENT,
                          "--max-size " + max_size + ": want bytes, such as 500m or 2GiB"));
    return record(r);
  }
  if (*discover) return discover_command(d, c);
  if (*keeps_post) {
    auto kept = discover::keep_post(post[0], post[1], post[2]);
    return kept ? kDone : failed(kept.error());
  }
  if (*generate) {
    g.quiet = c.quiet;
    auto status = generate_command(g);
    return status ? *status : failed(status.error());
  }
  if (*inspect) return inspect_command(c);
  if (*lab) {
    lab_options.quiet = c.quiet;
    return lab_command(lab_options);
  }
  if (*check) {
    auto status = check_command(c.file);
    return status ? *status : failed(status.error());
  }
  if (*completion) return put(bash_completion(app), "");
  if (*man) return put(man_page(app), "");
  if (!c.plugins.empty()) return pipeline_command(c);
  std::cerr << app.help();
  return kBad;
}

}  // namespace
}  // namespace feign

int main(int argc, char** argv) {
  try {
    return feign::main(argc, argv);
  } catch (const std::bad_alloc&) {
    feign::log(FEIGN_LOG_ERROR, "out of memory");
  } catch (const std::exception& e) {
    feign::log(FEIGN_LOG_ERROR, std::string("a fault of feign's own: ") + e.what());
  }
  return 2;
}
