// SPDX-License-Identifier: MIT
// feign lab.
#include "cli/command.h"
#include "cli/common.h"
#include "lab/command.h"

namespace feign {
namespace {

class LabCommand : public Command {
 public:
  using Command::Command;
  void takes(CLI::App& app) override {
    app.add_option("FILE", options_.files,
                   "The lab; or `report RESULTS.json`: what its results say, without a run")
        ->required()
        ->expected(1, -1)  // two at most, which it is told by lab_command()
        ->type_name("FILE.yaml");
    app.add_option("--results", options_.results,
                   "Where results are kept, and found again to go on [FILE.results.json]")
        ->type_name("FILE");
    app.add_option("--trace", options_.trace, "Instead of the file's trace")->type_name("TRACE");
    app.add_option("--root", options_.root, "Instead of the path of the file's root")
        ->type_name("DIR");
    app.add_option("--repeats", options_.repeats, "Instead of the file's `repeats`")
        ->type_name("N");
    app.add_option("--seed", options_.seed, "Instead of the file's `seed`: of the order of runs")
        ->type_name("N");
    app.add_option("--html", options_.html,
                   "Write a report with plots, one file; adds a run for each timeline in it")
        ->type_name("FILE");
    app.add_flag("--search", options_.search,
                 "Find a good configuration instead of measuring all: successive halving");
    app.add_option("--budget", options_.budget,
                   "What --search may take: a number of runs, or a time such as 10m")
        ->type_name("RUNS|TIME");
    app.add_flag("--serve", options_.serve,
                 "Let an optimiser outside choose: JSON lines in and out (docs/lab-format.md)");
    app.add_flag("--dry-run", options_.dry_run, "Say what would be run, and with which command");
    app.add_flag("--json", options_.json, "The summary as one JSON object (docs/lab-format.md)");
    app.add_option("-o,--output", options_.output,
                   "Where the summary goes, instead of standard output")
        ->type_name("FILE");
    c_.verbosity(app);
  }
  int run() override {
    options_.quiet = c_.quiet;
    return lab_command(options_);
  }

 private:
  LabOptions options_;
};

}  // namespace

std::unique_ptr<Command> make_lab(Common& common) { return std::make_unique<LabCommand>(common); }

}  // namespace feign
