// SPDX-License-Identifier: MIT
#include "discover/run.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

#include "base/clock.h"
#include "base/input.h"
#include "cli/run.h"
#include "nlohmann/json.hpp"
#include "report/format.h"

extern char** environ;

namespace feign::discover {
namespace {

using nlohmann::json;

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kPoll_ns = 200'000;

class Watcher {
 public:
  Watcher(const RunPlan& plan, std::map<std::string, Limits>& limits)
      : plan_(plan), limits_(limits) {}
  ~Watcher();
  Result<RunOutcome> run(const std::function<void(uint64_t)>& progress);

 private:
  Result<json> ask_all(const json& question);
  Result<void> begin();
  Result<void> start();
  Result<bool> look(bool slowly, uint64_t& calls);
  Result<void> let_go(bool sure, uint64_t now);
  void reap();
  void end_all();
  Error stuck(const std::string& what);
  Result<void> collect();

  const RunPlan& plan_;
  std::map<std::string, Limits>& limits_;
  std::string raw_, preload_;
  pid_t child_ = -1;
  bool child_ended_ = false;
  RunOutcome out_;
  // The hold at hand. A new epoch begins whenever somebody moved.
  uint64_t holding_ = UINT64_MAX, hold_begin_ = 0, quiet_ = 0, still_ = 0, moves_ = 0, epoch_ = 0;
  bool woke_ = false;
};

Watcher::~Watcher() { end_all(); }

Result<void> Watcher::start() {
  // Whoever loses his parent becomes our child, so that nobody is left behind.
  prctl(PR_SET_CHILD_SUBREAPER, 1UL);
  std::string shared = "FEIGN_CAPTURE=" + raw_, preload = "LD_PRELOAD=" + preload_;
  // Open MPI hands these on to ranks on other hosts.
  std::string ompi = "OMPI_MCA_mca_base_env_list=" + preload + ";" + shared;
  std::vector<char*> env, args;
  for (char** e = environ; *e != nullptr; ++e)
    if (!std::string_view(*e).starts_with("LD_PRELOAD=") &&
        !std::string_view(*e).starts_with("FEIGN_CAPTURE=") &&
        (plan_.posts.size() == 1 ||
         !std::string_view(*e).starts_with("OMPI_MCA_mca_base_env_list=")))
      env.push_back(*e);
  if (plan_.posts.size() > 1) env.push_back(ompi.data());
  env.push_back(shared.data());
  env.push_back(preload.data());
  env.push_back(nullptr);
  for (const std::string& word : plan_.command) args.push_back(const_cast<char*>(word.c_str()));
  args.push_back(nullptr);
  // It does one way or the other: where the command says it by -x, so must this.
  std::vector<std::string> handed{"-x", "LD_PRELOAD", "-x", "FEIGN_CAPTURE"};
  if (plan_.posts.size() > 1 &&
      std::find(plan_.command.begin(), plan_.command.end(), "-x") != plan_.command.end()) {
    std::erase(env, ompi.data());
    size_t at = 1;
    for (std::string& word : handed)
      args.insert(args.begin() + static_cast<ptrdiff_t>(at++), word.data());
  }

  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0) return errno_error("make a pipe", errno);
  const pid_t self = getpid();
  child_ = fork();
  if (child_ == 0) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != self) _exit(127);
    for (const int signal : {SIGINT, SIGTERM, SIGPIPE, SIGXFSZ}) ::signal(signal, SIG_DFL);
    const int null = open("/dev/null", O_RDWR);
    dup2(null, STDIN_FILENO);
    dup2(plan_.show_output ? STDERR_FILENO : null, STDOUT_FILENO);
    if (!plan_.show_output) dup2(null, STDERR_FILENO);
    if (null > 2) close(null);
    execvpe(args[0], args.data(), env.data());
    const int why = errno;
    (void)!write(report[1], &why, sizeof why);
    _exit(127);
  }
  const int why_fork = errno;
  close(report[1]);
  if (child_ < 0) {
    close(report[0]);
    return errno_error("start a process", why_fork);
  }
  int why = 0;
  const ssize_t n = read(report[0], &why, sizeof why);
  close(report[0]);
  if (n == static_cast<ssize_t>(sizeof why)) {
    reap();
    return Error(FEIGN_ERR_ARGUMENT, plan_.command[0] + ": " + strerror(why));
  }
  return {};
}

void Watcher::reap() {
  int status = 0;
  for (pid_t pid = 0; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
    if (pid == child_) {
      child_ended_ = true;
      out_.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
}

// Ends whatever is left of the run: asks first, for launchers that have something to put away.
void Watcher::end_all() {
  if (child_ <= 0) return;
  if (!child_ended_) (void)ask_all({{"ask", "end"}});  // nobody is held any more
  reap();
  if (!child_ended_) {
    kill(-child_, SIGTERM);
    // mpirun gives its ranks a second, and removes their shared memory then.
    for (int i = 0; i < 2500 && !child_ended_; ++i) {
      sleep_ns(2 * kMs);
      reap();
    }
  }
  kill(-child_, SIGKILL);
  end_children(plan_.spared, [&] { reap(); });
  child_ = -1;
}

// What all posts say.
Result<json> Watcher::ask_all(const json& question) {
  json out = json::array();
  for (const Ask& ask : plan_.posts) {
    auto answer = ask(question);
    if (!answer) return std::move(answer.error());
    out.push_back(std::move(*answer));
  }
  return out;
}

Result<void> Watcher::begin() {
  json limits = json::object();
  for (const auto& [key, l] : limits_) limits[key] = {l.gap_ns, l.cpu_ns, l.call_ns, l.factor};
  auto begun = ask_all({{"ask", "begin"},
                        {"limits", limits},
                        {"plan",
                         {{"raw", plan_.raw},
                          {"mpi", plan_.mpi},
                          {"per_process", plan_.per_process},
                          {"only", plan_.only},
                          {"exclude", plan_.exclude},
                          {"throttled", plan_.throttled},
                          {"holds", plan_.holds},
                          {"factor", plan_.factor},
                          {"floor_ns", plan_.floor_ns}}}});
  if (!begun) return std::move(begun.error());
  raw_ = begun->at(0).at("raw");
  preload_ = begun->at(0).at("preload");
  return {};
}

// One look at everybody. False: no node is alive.
Result<bool> Watcher::look(bool slowly, uint64_t& calls) {
  const uint64_t now = now_ns();
  auto looks = ask_all({{"ask", "look"},
                        {"epoch", epoch_},
                        {"judge", holding_ != UINT64_MAX},
                        {"woke", woke_},
                        {"slowly", slowly}});
  if (!looks) return std::move(looks.error());
  woke_ = false;
  uint64_t moves = 0, held = UINT64_MAX;
  bool alive = false, all = true;
  calls = 0;
  for (const json& l : *looks) {
    moves += l.at("moves").get<uint64_t>();
    calls += l.at("calls").get<uint64_t>();
    alive |= l.at("alive").get<bool>();
    all &= l.value("blocked", false);
    if (l.contains("held")) held = l.at("held");
  }
  if (held == UINT64_MAX) {
    holding_ = UINT64_MAX;
    return alive;
  }
  if (holding_ != held || moves != moves_) {
    // Somebody moved: everybody gets time anew.
    if (holding_ != held) {
      hold_begin_ = now;
    } else if (still_ != 0) {
      ++out_.woke;  // after all had been taken for blocked
      woke_ = true;
    }
    holding_ = held;
    moves_ = moves;
    quiet_ = now;
    still_ = 0;
    ++epoch_;
    return alive;
  }
  if (!all) still_ = 0;
  if (all && still_ == 0) still_ = now;
  // A second look: a quarter of the time longer.
  const bool sure = all && now - still_ >= plan_.floor_ns / 2 + (still_ - quiet_) / 4;
  if (!sure && now - hold_begin_ < plan_.max_delay_ns) return alive;
  if (auto ok = let_go(sure, now); !ok) return std::move(ok.error());
  return alive;
}

// The hold at hand is over: what it has told.
Result<void> Watcher::let_go(bool sure, uint64_t now) {
  out_.held_ns += now - hold_begin_;
  Hold hold;
  hold.k = holding_;
  if (sure) {
    hold.delay_ns = now - hold_begin_;
    auto posts = ask_all({{"ask", "nodes"}});
    if (!posts) return std::move(posts.error());
    for (const json& nodes : *posts)
      for (const json& n : nodes) {
        if (n.at("held")) continue;
        const std::string key = n.at("key");
        hold.reach[key] = n.at("calls");
        if (n.contains("in")) hold.stuck_in[key] = n.at("in");
      }
    out_.holds.push_back(hold);
  } else {
    ++out_.cut_short;
  }
  json release{{"ask", "release"}};
  if (plan_.next)
    if (const uint64_t later = plan_.next(hold, sure); later > hold.k && later != UINT64_MAX)
      release["later"] = later;
  if (auto ok = ask_all(release); !ok) return std::move(ok.error());
  holding_ = UINT64_MAX;
  still_ = 0;
  ++epoch_;
  return {};
}

Error Watcher::stuck(const std::string& what) {
  std::string text = what;
  uint32_t shown = 0;
  const auto posts = ask_all({{"ask", "nodes"}});
  for (const json& nodes : posts ? *posts : json::array())
    for (const json& n : nodes) {
      if (!n.at("alive") || ++shown > 16) continue;
      text += (shown == 1 ? "; nodes: " : ", ") + n.at("key").get<std::string>() + ": " +
              n.at("doing").get<std::string>() +
              format(", for %.1f s", static_cast<double>(n.at("for_ns").get<uint64_t>()) / 1e9);
    }
  if (shown > 16) text += " and " + std::to_string(shown - 16) + " more";
  return Error(FEIGN_ERR_IO, text);
}

Result<void> Watcher::collect() {
  auto ends = ask_all({{"ask", "end"}});
  if (!ends) return std::move(ends.error());
  for (const json& end : *ends) {
    for (const json& died : end.at("died")) out_.died.push_back(died);
    out_.ranks = std::max<uint32_t>(out_.ranks, end.at("ranks"));
    for (const auto& [key, factor] : end.at("factors").items())
      if (const auto at = limits_.find(key); at != limits_.end())
        at->second.factor = std::max(at->second.factor, factor.get<double>());
  }
  auto posts = ask_all({{"ask", "nodes"}});
  if (!posts) return std::move(posts.error());
  for (const json& nodes : *posts) {
    out_.keys.emplace_back();
    for (const json& n : nodes) {
      const std::string key = n.at("key");
      out_.keys.back().push_back(key);
      const json &longest = n.at("longest"), &make = n.at("longest_make");
      const bool calls = n.at("calls") != 0;
      if (!calls && n.at("makes")) out_.makers[key] = {make[0], make[1], 0, 0};
      if (!calls) continue;
      NodeLog& log = out_.nodes[key];
      log.rank = n.at("rank");
      log.longest_gap_ns = longest[0];
      log.longest_cpu_ns = longest[1];
      log.longest_call_ns = longest[2];
    }
  }
  return {};
}

Result<RunOutcome> Watcher::run(const std::function<void(uint64_t)>& progress) {
  if (auto ok = begin(); !ok) return std::move(ok.error());
  const uint64_t begin = now_ns();
  if (auto ok = start(); !ok) return std::move(ok.error());
  uint64_t looked = begin;
  while (true) {
    const uint64_t now = now_ns();
    if (const int signal = g_stop_signal.load(); signal != 0)
      return Error(FEIGN_ERR_IO, "interrupted by signal " + std::to_string(signal));
    const bool slowly = now - looked > 20 * kMs;
    uint64_t calls = 0;
    reap();
    const bool over = child_ended_;
    auto alive = look(slowly, calls);
    if (!alive) return std::move(alive.error());
    if (slowly) {
      looked = now;
      progress(calls);
    }
    // What it left running may go on for a while, if it is a node.
    if (over && !*alive) break;
    if (now - begin > plan_.timeout_ns)
      return stuck("the run did not end within " + format_time(plan_.timeout_ns) + " (--timeout)");
    // Seldom, the longer it takes: looking takes time of the nodes'.
    sleep_ns(holding_ != UINT64_MAX
                 ? std::clamp((now - std::min(now, hold_begin_)) / 16, kPoll_ns / 2, 10 * kPoll_ns)
             : !plan_.throttled.empty() ? kPoll_ns
                                        : kMs);
  }
  out_.wall_ns = now_ns() - begin;
  end_all();
  if (auto ok = collect(); !ok) return std::move(ok.error());
  return std::move(out_);
}

}  // namespace

void end_children(const std::vector<pid_t>& spared, const std::function<void()>& reap) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/task/%d/children", getpid());
  for (int i = 0; i < 500; ++i) {
    std::string children(1 << 16, '\0');
    if (!read_small(path, children.data(), children.size())) break;
    const char* at = children.c_str();
    bool any = false;
    for (char* end = nullptr;; at = end) {
      const long pid = strtol(at, &end, 10);
      if (end == at || pid <= 0) break;
      if (std::find(spared.begin(), spared.end(), static_cast<pid_t>(pid)) != spared.end())
        continue;
      kill(static_cast<pid_t>(pid), SIGKILL);
      any = true;
    }
    reap();
    if (!any) break;
    sleep_ns(kMs);
  }
}

Result<RunOutcome> run_watched(const RunPlan& plan, std::map<std::string, Limits>& limits,
                               const std::function<void(uint64_t)>& progress) {
  Watcher watcher(plan, limits);
  return watcher.run(progress);
}

uint64_t measure_noise() {
  uint64_t worst = 0;
  for (int i = 0; i < 10; ++i) {
    const uint64_t from = now_ns();
    sleep_ns(kMs);
    worst = std::max(worst, now_ns() - from - std::min(now_ns() - from, kMs));
  }
  return worst;
}

}  // namespace feign::discover
