// SPDX-License-Identifier: MIT
// feign record, and feign generate, which makes what it takes for more libraries than it knows.
#include "record/record.h"

#include "base/log.h"
#include "cli/command.h"
#include "cli/common.h"
#include "cli/generate.h"
#include "cli/kinds.h"
#include "plugin/options.h"

namespace feign {
namespace {

// Runs a command and keeps a trace of it. The status is the command's.
int record(const RecordOptions& options) {
  auto recorded = record_command(options);
  if (!recorded) return failed(std::move(recorded.error()).within("record"));
  const auto say_gaps = [&] {
    for (const Gap& gap : recorded->gaps) log(FEIGN_LOG_WARN, "record: " + gap.text);
  };
  for (const std::string& note : recorded->notes) log(FEIGN_LOG_WARN, "record: " + note);
  if (!recorded->anything) {
    say_gaps();
    remove_raw(recorded->raw);
    log(FEIGN_LOG_ERROR, "record: nothing was recorded");
    return recorded->status != 0 ? recorded->status : kBad;
  }
  Plugins plugins;
  PipelineOptions pipeline;
  auto first = provider_for({recorded->raw}, plugins);
  if (!first) return failed(first.error());
  pipeline.plugins.push_back(std::move(*first));
  // The trace says what was left out of it.
  for (const auto* globs : {&options.exclude, &options.include}) {
    if (globs->empty()) continue;
    const bool drop = globs == &options.exclude;
    PluginSpec filter;
    filter.name = "filter";
    filter.where = drop ? "--exclude" : "--include";
    std::string said = drop ? "not in it: calls on" : "not in it: calls on all paths but";
    for (const std::string& glob : *globs) {
      filter.options.emplace_back("path", glob);
      said += " " + glob;
    }
    pipeline.notes.push_back(said + " (" + filter.where + ")");
    if (drop) filter.options.emplace_back("drop", "yes");
    pipeline.plugins.push_back(std::move(filter));
  }
  if (!options.sizes.empty()) {
    PluginSpec filter;
    filter.name = "filter";
    filter.where = "--sizes";
    pipeline.notes.push_back("not in it: reads and writes of other sizes than " + options.sizes +
                             " bytes (--sizes)");
    const size_t dash = options.sizes.find('-');
    if (dash != 0) filter.options.emplace_back("min-size", options.sizes.substr(0, dash));
    if (dash + 1 != options.sizes.size())
      filter.options.emplace_back("max-size", options.sizes.substr(dash + 1));
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
    say_gaps();
    log(FEIGN_LOG_ERROR, "record: what was recorded is kept in " + recorded->raw);
    return failed(result.error());
  }
  if (!options.keep_raw) remove_raw(recorded->raw);
  return recorded->status;
}

// "MIN-MAX", either of which may be left out; or nothing.
Result<void> check_sizes(const std::string& text) {
  if (text.empty()) return {};
  const size_t dash = text.find('-');
  uint64_t least = 0, most = UINT64_MAX;
  const std::string low = text.substr(0, dash);
  const std::string high = dash == std::string::npos ? "" : text.substr(dash + 1);
  if (dash == std::string::npos || (low.empty() && high.empty()) ||
      (!low.empty() && !parse_size(low, least)) ||
      (!high.empty() && (!parse_size(high, most) || most == 0)) || least > most)
    return Error(FEIGN_ERR_ARGUMENT,
                 "--sizes " + text + ": want MIN-MAX, bytes such as 4k-1m, 64k- or -512");
  return {};
}

class RecordCommand : public Command {
 public:
  using Command::Command;
  void takes(CLI::App& app) override {
    app.add_option("-o,--output", options_.output, "The trace [trace.feign]")
        ->type_name("FILE.feign");
    app.add_option("--tracer", options_.tracer,
                   "feign: a library in the program; strace: for what takes none [feign]")
        ->type_name("feign|strace")
        ->check(one_of({"feign", "strace"}));
    app.add_option("--include", options_.include,
                   "Keep only calls on paths that fit this glob; several")
        ->type_name("GLOB")
        ->expected(1)
        ->allow_extra_args(false)
        ->take_all();
    app.add_option("--exclude", options_.exclude,
                   "Leave out calls on paths that fit this glob; several")
        ->type_name("GLOB")
        ->expected(1)
        ->allow_extra_args(false)
        ->take_all();
    app.add_option("--sizes", options_.sizes,
                   "Keep only reads and writes of so many bytes: 4k-1m, 64k-, -512; what is no "
                   "read or write stays")
        ->type_name("MIN-MAX");
    app.add_option("--layer", options_.layers,
                   "Record these layers: posix, stdio, mpi, mpiio, those of --with; several "
                   "[posix, and those of --with]")
        ->type_name("posix|stdio|mpi|mpiio|NAME")
        ->expected(1)
        ->allow_extra_args(false)
        ->take_all();
    app.add_option("--with", options_.with,
                   "A library's calls, too: the capture library that feign generate made the "
                   "source of; several (docs/layers.md)")
        ->type_name("LIBRARY.so")
        ->expected(1)
        ->allow_extra_args(false)
        ->take_all();
    app.add_option("--sample", options_.sample, "Record one read or write of so many [1]")
        ->type_name("N")
        ->check(between(1, 1000000));
    app.add_option("--max-size", max_size_,
                   "Stop at this many bytes of records, before they are compressed")
        ->type_name("SIZE");
    app.add_flag("--mpi", options_.mpi,
                 "MPI's calls, too: feign record --mpi -- mpirun -np 8 ./app");
    app.add_flag(
        "--all-users", options_.all_users,
        "Record programs that a daemon or su starts as another user, too: while it runs, every "
        "user of this machine may write into the recording.");
    app.add_flag("--cpu-time", options_.cpu_time,
                 "Tell computing from waiting within pauses longer than 100 us, too");
    app.add_flag("--paused", options_.paused,
                 "Begin paused, until SIGUSR1 or feign_record_resume()");
    app.add_flag("--keep-raw", options_.keep_raw,
                 "Keep FILE.feign.raw, from which the trace is made");
    app.add_option("COMMAND", options_.command, "What to run, after --");
    app.positionals_at_end();
    c_.verbosity(app);
  }
  int run() override {
    if (options_.command.empty())
      return failed(Error(FEIGN_ERR_ARGUMENT, "record: no program: want -- COMMAND…"));
    if (!max_size_.empty() &&
        (!parse_size(max_size_, options_.max_bytes) || options_.max_bytes == 0))
      return failed(Error(FEIGN_ERR_ARGUMENT,
                          "--max-size " + max_size_ + ": want bytes, such as 500m or 2GiB"));
    if (auto ok = check_sizes(options_.sizes); !ok) return failed(ok.error());
    return record(options_);
  }
  std::vector<std::string>* program() override { return &options_.command; }

 private:
  RecordOptions options_;
  std::string max_size_;
};

class GenerateCommand : public Command {
 public:
  using Command::Command;
  void takes(CLI::App& app) override {
    app.add_option("HEADER", options_.header, "The header, annotated")
        ->required()
        ->type_name("FILE.h");
    app.add_option("-o,--output", options_.output, "Where to [feign-NAME]")->type_name("DIR");
    app.add_option("--name", options_.name, "The layer's name, instead of the header's")
        ->type_name("NAME");
    app.add_option("--library", options_.library,
                   "The library itself, for the replayer to link [-lNAME]")
        ->type_name("FILE.so|-lNAME");
    app.add_option("--include", options_.include, "Where headers are that HEADER includes; several")
        ->type_name("DIR")
        ->expected(1)
        ->allow_extra_args(false)
        ->take_all();
    c_.verbosity(app);
  }
  int run() override {
    options_.quiet = c_.quiet;
    auto status = generate_command(options_);
    return status ? *status : failed(status.error());
  }

 private:
  GenerateOptions options_;
};

}  // namespace

std::unique_ptr<Command> make_record(Common& common) {
  return std::make_unique<RecordCommand>(common);
}
std::unique_ptr<Command> make_generate(Common& common) {
  return std::make_unique<GenerateCommand>(common);
}

}  // namespace feign
