// SPDX-License-Identifier: MIT
// feign discover.
#include "discover/discover.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "../capture/watch.h"
#include "cli/command.h"
#include "cli/common.h"
#include "discover/hosts.h"
#include "discover/run.h"
#include "plugin/options.h"

namespace feign {
namespace {

volatile pid_t g_worker = 0;
void pass_on(int signal) { kill(g_worker, signal); }
void stop(int signal) { g_stop_signal.store(signal); }

// Does it in a process of its own. However this one ends, by a second Ctrl-C or SIGKILL too, that
// one is told, and puts away what it has started and made.
int apart(const std::function<int()>& work) {
  constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
  sigset_t all, before;
  sigemptyset(&all);
  for (const int s : kSignals) sigaddset(&all, s);
  sigprocmask(SIG_BLOCK, &all, &before);
  const pid_t self = getpid();
  g_worker = fork();
  if (g_worker == 0) {
    setpgid(0, 0);  // what ends the other's group is not to end this one
    for (const int s : kSignals) signal(s, stop);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != self) stop(SIGTERM);
    sigprocmask(SIG_SETMASK, &before, nullptr);
    exit(work());
  }
  if (g_worker < 0) {
    sigprocmask(SIG_SETMASK, &before, nullptr);
    return work();
  }
  for (const int s : kSignals) signal(s, pass_on);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  // What the worker leaves behind, if it is killed, comes to this one.
  prctl(PR_SET_CHILD_SUBREAPER, 1UL);
  int status = 0;
  while (waitpid(g_worker, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  discover::end_children({}, [] {
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
  });
  return failed(Error(FEIGN_ERR_IO, std::string("discover: was killed: ") +
                                        strsignal(WTERMSIG(status)) +
                                        "; the next with the same -o removes what it left"));
}

// As the capture library compares them.
Result<void> absolute(const std::string& option, std::vector<std::string>& folders) {
  if (folders.size() > FEIGN_WATCH_PREFIXES)
    return Error(FEIGN_ERR_ARGUMENT, option + ": given " + std::to_string(folders.size()) +
                                         " times, want at most " +
                                         std::to_string(FEIGN_WATCH_PREFIXES));
  for (std::string& folder : folders) {
    std::error_code e;
    std::string path = std::filesystem::absolute(folder, e).lexically_normal();
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    if (path.size() >= FEIGN_WATCH_PREFIX)
      return Error(FEIGN_ERR_ARGUMENT, option + " " + folder + ": want a directory of at most " +
                                           std::to_string(FEIGN_WATCH_PREFIX - 1) + " bytes");
    folder = path;
  }
  return {};
}

class DiscoverCommand : public Command {
 public:
  using Command::Command;
  void takes(CLI::App& app) override {
    app.add_option("COMMAND", options_.command, "The program, after --; it is run many times");
    app.add_option("-o,--output", options_.output,
                   "Directory to make: trace.feign, trace.tracetext.N, raw traces, report.json")
        ->type_name("DIR")
        ->required();
    nodes_ =
        app.add_option("--nodes", options_.nodes, "Slow down only so many nodes, or these [all]")
            ->type_name("N|0,2-5|none");
    app.add_option("--per", per_, "What a node is [thread]")
        ->type_name("thread|process")
        ->check(one_of({"thread", "process"}));
    app.add_option("--sample-period", options_.sample_period,
                   "Hold a node before every so many of its calls [1]")
        ->type_name("CALLS")
        ->check(between(uint64_t{1}, uint64_t{1} << 40));
    app.add_flag("--adaptive", options_.adaptive,
                 "Begin with few delays, and make more only where it is not clear who waits for "
                 "what");
    app.add_option("--budget", budget_, "With --adaptive: begin no run after this time")
        ->type_name("TIME");
    app.add_option("--accuracy", accuracy_,
                   "With --adaptive: enough when so many of the dependencies are known to the call "
                   "[100%]")
        ->type_name("PERCENT");
    app.add_option("--repeat", options_.repeat, "Throttle each node in so many runs [1]")
        ->type_name("RUNS")
        ->check(between(1, 1000));
    app.add_option("--factor", options_.factor,
                   "A node that does not move for so many times its longest pause is blocked [2]")
        ->type_name("F")
        ->check(between(1.0, 1000.0));
    app.add_option(
           "--compute-from", compute_from_,
           "Compute times: by throttling, or what is not in calls that can wait [throttling]")
        ->type_name("throttling|blocking")
        ->check(one_of({"throttling", "blocking"}));
    app.add_flag("--mpi", options_.mpi,
                 "Look at MPI's calls, too; done by itself if COMMAND is mpirun or the like");
    app.add_flag("--tolerate", options_.tolerate,
                 "Names, sizes and results may differ from run to run; the calls may not");
    app.add_option("--only", options_.only, "See only calls on what is below this directory")
        ->type_name("DIR")
        ->expected(1)
        ->allow_extra_args(false)
        ->take_all();
    app.add_option("--exclude", options_.exclude, "See no calls on what is below this directory")
        ->type_name("DIR")
        ->expected(1)
        ->allow_extra_args(false)
        ->take_all();
    app.add_option("--before", options_.before,
                   "Shell command before each run, to tidy up after the last")
        ->type_name("COMMAND");
    hosts_ = app.add_option("--hosts", options_.hosts,
                            "Other hosts that the command runs on; feign is there, too")
                 ->type_name("A,B")
                 ->delimiter(',');
    app.add_option("--reach", options_.reach,
                   "How a command is started there: gets a host and the command [ssh]")
        ->type_name("COMMAND");
    app.add_option("--timeout", timeout_, "End a run that takes longer, and fail [10m]")
        ->type_name("TIME");
    app.add_option("--max-delay", max_delay_, "Hold no call for longer [10s]")->type_name("TIME");
    app.add_flag("--show-output", options_.show_output,
                 "The first run's output, on standard error");
    app.add_flag("--json", c_.json, "The report as one JSON object");
    c_.verbosity(app);
  }
  int run() override {
    if (options_.command.empty())
      return failed(Error(FEIGN_ERR_ARGUMENT, "discover: no program: want -- COMMAND…"));
    const std::string& nodes = options_.nodes;
    if (nodes_->count() != 0 && nodes != "none" &&
        (nodes.find_first_not_of("0123456789,-") != std::string::npos ||
         nodes.find_first_of("0123456789") == std::string::npos))
      return failed(
          Error(FEIGN_ERR_ARGUMENT, "--nodes" + (nodes.empty() ? "" : " " + nodes) +
                                        ": want a number of nodes, a list such as 0,2-5, or none"));
    if (hosts_->count() != 0 &&
        (options_.hosts.empty() ||
         std::find(options_.hosts.begin(), options_.hosts.end(), "") != options_.hosts.end()))
      return failed(Error(FEIGN_ERR_ARGUMENT, "--hosts: want names of hosts, such as A,B"));
    const auto duration = [](const char* name, const std::string& text,
                             uint64_t& ns) -> Result<void> {
      if (text.empty() || (parse_duration(text, ns) && ns != 0)) return {};
      return Error(FEIGN_ERR_ARGUMENT,
                   name + (" " + text) + ": want a time, such as 500ms, 30s or 10m");
    };
    if (auto ok = duration("--timeout", timeout_, options_.timeout_ns); !ok)
      return failed(ok.error());
    if (auto ok = duration("--max-delay", max_delay_, options_.max_delay_ns); !ok)
      return failed(ok.error());
    if (auto ok = duration("--budget", budget_, options_.budget_ns); !ok) return failed(ok.error());
    for (const auto& [name, folders] :
         {std::pair{"--only", &options_.only}, std::pair{"--exclude", &options_.exclude}})
      if (auto ok = absolute(name, *folders); !ok) return failed(ok.error());
    if (!accuracy_.empty()) {
      char* end = nullptr;
      const double percent = strtod(accuracy_.c_str(), &end);
      if (end == accuracy_.c_str() || (*end != '\0' && std::string_view(end) != "%") ||
          !(percent >= 0 && percent <= 100))
        return failed(
            Error(FEIGN_ERR_ARGUMENT, "--accuracy " + accuracy_ + ": want a percentage, 0 to 100"));
      options_.accuracy = percent / 100;
    }
    for (const auto& [name, text] :
         {std::pair{"--budget", &budget_}, std::pair{"--accuracy", &accuracy_}})
      if (!text->empty() && !options_.adaptive)
        return failed(Error(FEIGN_ERR_ARGUMENT, std::string(name) + " " + *text +
                                                    ": without --adaptive all is looked at, "
                                                    "whatever it takes: want --adaptive with it"));
    for (const auto& [name, value] : {std::pair{"--repeat", uint64_t{options_.repeat}},
                                      std::pair{"--sample-period", options_.sample_period}})
      if (value != 1 && options_.adaptive)
        return failed(Error(FEIGN_ERR_ARGUMENT,
                            std::string(name) + " " + std::to_string(value) +
                                ": with --adaptive nodes are held where and as often as it "
                                "takes: want one of the two"));
    options_.per_process = per_ == "process";
    options_.compute = compute_from_ == "blocking" ? discover::ComputeFrom::kBlocking
                                                   : discover::ComputeFrom::kThrottling;
    return apart([this] { return find(); });
  }
  std::vector<std::string>* program() override { return &options_.command; }

 private:
  int find() {
    Plugins plugins;
    auto report = [&] {
      ProgressLine line(c_.quiet);
      return discover::discover(
          options_, plugins,
          [&](const char* stage, uint64_t done, uint64_t total) { line.show(stage, done, total); });
    }();
    if (!report) return failed(report.error());
    if (c_.quiet && !c_.json) return kDone;
    return put(c_.json ? discover::discover_json(*report) : discover::discover_text(*report), "");
  }

  discover::DiscoverOptions options_;
  CLI::Option *nodes_ = nullptr, *hosts_ = nullptr;
  // Before they are understood.
  std::string per_ = "thread", compute_from_ = "throttling", timeout_, max_delay_, budget_,
              accuracy_;
};

// What --hosts starts there.
class DiscoverPostCommand : public Command {
 public:
  using Command::Command;
  void takes(CLI::App& app) override {
    for (std::string& word : words_)
      app.add_option("WORD" + std::to_string(&word - words_.data()), word)->required();
  }
  int run() override {
    auto kept = discover::keep_post(words_[0], words_[1], words_[2]);
    return kept ? kDone : failed(kept.error());
  }

 private:
  std::array<std::string, 3> words_;
};

}  // namespace

std::unique_ptr<Command> make_discover(Common& common) {
  return std::make_unique<DiscoverCommand>(common);
}
std::unique_ptr<Command> make_discover_post(Common& common) {
  return std::make_unique<DiscoverPostCommand>(common);
}

}  // namespace feign
