// SPDX-License-Identifier: MIT
// Commands that look at something: info at a trace, inspect and check at plug-ins.
#include <optional>
#include <set>

#include "base/log.h"
#include "base/output.h"
#include "check/check.h"
#include "cli/command.h"
#include "cli/common.h"
#include "cli/dependencies.h"
#include "cli/info.h"
#include "cli/trace_info.h"
#include "plugin/options.h"

namespace feign {
namespace {

class InfoCommand : public Command {
 public:
  using Command::Command;
  void takes(CLI::App& app) override {
    app.add_option("TRACE", c_.traces, "Trace file, or several that are one trace")->required();
    c_.reading(app);
    app.add_flag(
        "--dependencies", c_.dependencies,
        "Say, too, what must wait for what when streams run side by side, and how much that "
        "leaves to do at once (docs/dependencies.md)");
    app.add_flag("--json", c_.json, "As one JSON object");
    app.add_flag("--statistics", c_.statistics,
                 "Sum up what was measured beside the trace, too (hdtrace: .stat files)");
    app.add_option("-o,--output", c_.output, "Where it goes, instead of standard output")
        ->type_name("FILE");
    c_.verbosity(app);
  }
  int run() override {
    Plugins plugins;
    auto list = reading(c_, plugins);
    if (!list) return failed(list.error());
    if (auto ok = none_overwritten(list->front().values("file"), {{"--output", c_.output}}); !ok)
      return failed(ok.error());
    Tables tables;
    Result<TraceInfo> info = [&] {
      ProgressLine line(c_.quiet);
      return trace_info(
          *list, plugins, tables,
          [&](const char* stage, uint64_t done, uint64_t total) { line.show(stage, done, total); });
    }();
    if (!info) return failed(info.error());
    std::optional<DependencyInfo> dependencies;
    if (c_.dependencies) {
      ProgressLine line(c_.quiet);
      auto found = dependency_info(
          *list, plugins,
          [&](const char* stage, uint64_t done, uint64_t total) { line.show(stage, done, total); });
      if (!found) return failed(found.error());
      dependencies = std::move(*found);
    }
    const DependencyInfo* d = dependencies ? &*dependencies : nullptr;
    return put(c_.json ? info_json(*info, tables, d) : info_text(*info, tables, d), c_.output);
  }
};

class InspectCommand : public Command {
 public:
  using Command::Command;
  void takes(CLI::App& app) override {
    app.add_option("NAME", c_.name,
                   "A plug-in's name, or the path of a shared object; left out: all");
    app.add_flag("--json", c_.json, "As a JSON array");
    app.add_flag("--names", c_.names, "Names only, each once, one a line");
  }
  int run() override {
    Plugins plugins;
    std::vector<Component> list;
    std::vector<Error> failures;
    if (c_.name.empty()) {
      list = plugins.all(&failures);
    } else if (c_.name.find('/') != std::string::npos) {
      auto opened = plugins.open(c_.name);
      if (!opened) return failed(opened.error());
      list = std::move(*opened);
    } else {
      for (const Component& one : plugins.all(&failures))
        if (c_.name == one.table->name) list.push_back(one);
      if (list.empty()) {
        auto found = plugins.find(
            c_.name, FEIGN_PROVIDER | FEIGN_MODIFIER | FEIGN_REPLAYER | FEIGN_WRITER | FEIGN_RANKS);
        if (!found) return failed(found.error());
        list.push_back(*found);
      }
    }
    for (const Error& e : failures) log(FEIGN_LOG_WARN, e.text());
    std::string out;
    if (c_.json) {
      out = "[";
      for (size_t i = 0; i < list.size(); ++i) out += (i ? ",\n" : "") + describe_json(list[i]);
      out += "]\n";
    } else if (c_.names) {
      std::set<std::string> names;
      for (const Component& one : list) names.insert(one.table->name);
      for (const std::string& name : names) out += name + "\n";
    } else {
      uint32_t role = 0;
      for (size_t i = 0; i < list.size(); ++i) {
        if (c_.name.empty() && list[i].table->role != role) {
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
      if (const std::string left_out = left_out_plugins(); c_.name.empty() && !left_out.empty())
        out += "\nNOT HERE\n\n" + left_out + "\n";
    }
    return put(out, c_.output);
  }
};

class CheckCommand : public Command {
 public:
  using Command::Command;
  void takes(CLI::App& app) override {
    app.add_option("PATH", c_.file, "The shared object, with options for it if it wants some")
        ->type_name("FILE.so[,key=value...]")
        ->required();
  }
  int run() override {
    auto status = check_command(c_.file);
    return status ? *status : failed(status.error());
  }
};

}  // namespace

std::unique_ptr<Command> make_info(Common& common) { return std::make_unique<InfoCommand>(common); }
std::unique_ptr<Command> make_inspect(Common& common) {
  return std::make_unique<InspectCommand>(common);
}
std::unique_ptr<Command> make_check(Common& common) {
  return std::make_unique<CheckCommand>(common);
}

}  // namespace feign
