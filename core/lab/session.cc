// SPDX-License-Identifier: MIT
#include "lab/session.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "cli/run.h"
#include "lab/statistics.h"
#include "report/format.h"

namespace feign {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

std::string read_back(int fd) {
  std::string text;
  char part[1 << 13];
  off_t at = 0;
  ssize_t n = 0;
  while ((n = pread(fd, part, sizeof part, at)) > 0) {
    text.append(part, static_cast<size_t>(n));
    at += n;
  }
  return text;
}

// "2026-11-21T14:03:09Z".
std::string now_text() {
  const time_t now = time(nullptr);
  tm t{};
  gmtime_r(&now, &t);
  char text[32];
  strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &t);
  return text;
}

// What was said last: a line, or all of an error of ours, which may quote a command of several.
std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  size_t begin = text.rfind("\nfeign: ") + 1;  // 0 if there is none
  if (begin == 0 && !text.starts_with("feign: ")) begin = text.rfind('\n') + 1;
  text.erase(0, begin);
  std::replace(text.begin(), text.end(), '\n', ' ');
  if (text.starts_with("feign: ")) text = text.substr(7);
  return text.substr(0, 500);
}

std::string ended(const Child& child) {
  if (child.timed_out) return "took longer than `timeout`";
  if (WIFSIGNALED(child.status)) return "ended by signal " + std::to_string(WTERMSIG(child.status));
  return "exit status " + std::to_string(WEXITSTATUS(child.status));
}

}  // namespace

void take(const Json& report, Json& run) {
  for (const char* name :
       {"seconds", "recorded_seconds", "plan_seconds", "prepare_seconds", "fidelity", "activities",
        "replayed", "emulated", "skipped", "mismatched", "bytes_read", "bytes_written", "dropped",
        "merged", "injected", "caches"})
    if (report.contains(name)) run[name] = report[name];
  run["ops"] = Json::object();
  if (!report.contains("ops")) return;
  for (const auto& [name, op] : report["ops"].items()) {
    const Json& latency = op["latency"];
    if (latency["count"] == 0) continue;
    run["ops"][name] = {
        {"count", latency["count"]},
        {"bytes", op["bytes_read"].get<uint64_t>() + op["bytes_written"].get<uint64_t>()},
        {"seconds", op["seconds"]},
        {"p50", latency["p50"]},
        {"p99", latency["p99"]},
        {"max", latency["max"]},
        {"histogram", latency["histogram"]}};
  }
}

Result<Child> run_child(const std::vector<std::string>& argv, uint64_t timeout_ns,
                        bool interruptible, const std::function<void()>& tick) {
  struct Files {
    int out = memfd_create("out", MFD_CLOEXEC), err = memfd_create("err", MFD_CLOEXEC);
    ~Files() {
      if (out >= 0) close(out);
      if (err >= 0) close(err);
    }
  } files;
  if (files.out < 0 || files.err < 0) return errno_error("memfd_create", errno);
  std::vector<char*> args;
  for (const std::string& arg : argv) args.push_back(const_cast<char*>(arg.c_str()));
  args.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return errno_error("fork", errno);
  if (pid == 0) {
    // A group of its own: Ctrl-C is for the lab, which hands it on once.
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    const int nothing = open("/dev/null", O_RDONLY);
    if (nothing >= 0) dup2(nothing, STDIN_FILENO);
    dup2(files.out, STDOUT_FILENO);
    dup2(files.err, STDERR_FILENO);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    execv(args[0], args.data());
    _exit(127);
  }
  setpgid(pid, pid);
  const int handle = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  Child child;
  const uint64_t begin = now_ns();
  bool told = false;
  uint64_t told_at = 0;
  while (true) {
    const pid_t done = waitpid(pid, &child.status, WNOHANG);
    if (done == pid || (done < 0 && errno != EINTR)) break;
    const uint64_t now = now_ns();
    if (interruptible && g_stop_signal.load() != 0 && !told) {
      kill(-pid, SIGINT);
      told = true;
      told_at = now;
    }
    if (timeout_ns != 0 && now - begin > timeout_ns && !child.timed_out) {
      child.timed_out = true;
      kill(-pid, SIGKILL);
    }
    if (told && now - told_at > 10 * kSecond) kill(-pid, SIGKILL);
    if (handle >= 0) {
      pollfd p{handle, POLLIN, 0};
      (void)poll(&p, 1, 100);
    } else {
      const timespec pause{0, 5'000'000};
      nanosleep(&pause, nullptr);
    }
    if (tick) tick();
  }
  if (handle >= 0) close(handle);
  child.out = read_back(files.out);
  child.err = read_back(files.err);
  return child;
}

Session::Session(const Lab& lab, Results& results, bool quiet)
    : lab_(lab),
      results_(results),
      shows_(!quiet && isatty(STDERR_FILENO)),
      program_("/proc/self/exe") {
  for (const Json& run : results.runs())
    if (run["status"] == "ok")
      good_.emplace(run["cell"].get<std::string>(), run["repeat"].get<uint64_t>());
}

Session::~Session() { (void)end(); }

std::vector<Cell> Session::cells(const std::vector<LabConfig>& configs) const {
  std::vector<Cell> out;
  for (const LabTrace& trace : lab_.traces)
    for (const LabRoot& root : lab_.roots)
      for (const LabConfig& config : configs)
        out.push_back({&trace, &root, config, cell_id(lab_, trace, root, config)});
  return out;
}

Json Session::head(const Lab& lab) {
  Json head;
  head["version"] = FEIGN_VERSION;
  head["file"] = lab.file;
  head["seed"] = lab.seed;
  head["repeats"] = lab.repeats;
  head["baseline"] = lab.baseline;
  utsname u{};
  uname(&u);
  head["machine"] = {{"system", std::string(u.sysname) + " " + u.release},
                     {"host", u.nodename},
                     {"processors", std::thread::hardware_concurrency()}};
  head["curves"] = Json::array();
  for (const LabCurve& c : lab.curves)
    head["curves"].push_back({{"name", c.name},
                              {"variant", c.variant},
                              {"parameter", c.parameter},
                              {"points", c.points}});
  head["cells"] = Json::array();
  for (const LabTrace& trace : lab.traces)
    for (const LabRoot& root : lab.roots)
      for (const LabConfig& config : lab.configs) {
        Json parameters = Json::object();
        for (const auto& [name, value] : config.parameters) parameters[name] = value;
        head["cells"].push_back({{"cell", cell_id(lab, trace, root, config)},
                                 {"trace", trace.name},
                                 {"root", root.name},
                                 {"variant", config.variant},
                                 {"label", config.label},
                                 {"parameters", parameters}});
      }
  return head;
}

Result<void> Session::begin() {
  if (std::exchange(begun_, true)) return {};
  for (const LabRoot& root : lab_.roots) {
    if (!root.setup.empty()) {
      setenv("FEIGN_ROOT", root.path.c_str(), 1);
      // From here on there is something to tear down.
      set_up_.push_back(&root);
      auto child = run_child({"/bin/sh", "-c", root.setup}, 0, true, {});
      if (!child) return std::move(child.error());
      if (child->status != 0)
        return Error(FEIGN_ERR_IO, "setup of root " + root.name + ": \"" + root.setup +
                                       "\": " + ended(*child) + ": " + last_line(child->err));
    } else if (!root.teardown.empty()) {
      set_up_.push_back(&root);
    }
    for (const LabTrace& trace : lab_.traces) {
      const std::string path = lab_.root_of(trace, root);
      if (path != root.path && mkdir(path.c_str(), 0777) != 0 && errno != EEXIST)
        return errno_error("make " + path, errno);
      struct stat st {};
      if (stat(path.c_str(), &st) != 0)
        return errno_error("root " + path + (root.setup.empty() ? "" : " after its setup"), errno);
    }
  }
  return {};
}

Result<void> Session::end() {
  Result<void> result;
  while (!set_up_.empty()) {
    const LabRoot& root = *set_up_.back();
    set_up_.pop_back();
    if (root.teardown.empty()) continue;
    setenv("FEIGN_ROOT", root.path.c_str(), 1);
    auto child = run_child({"/bin/sh", "-c", root.teardown}, 0, false, {});
    if (child && child->status == 0) continue;
    if (result)
      result =
          Error(FEIGN_ERR_IO,
                "teardown of root " + root.name + ": \"" + root.teardown + "\": " +
                    (child ? ended(*child) + ": " + last_line(child->err) : child.error().text()));
  }
  return result;
}

double Session::seconds_left(uint64_t began_ns) const {
  if (done_ == 0 || expected_ <= done_) return -1;
  const double each = static_cast<double>(spent_ns_) / 1e9 / static_cast<double>(done_);
  const double now = static_cast<double>(now_ns() - began_ns) / 1e9;
  return std::max(0.0, each * static_cast<double>(expected_ - done_) - std::min(now, each));
}

void Session::progress(const Cell& cell, uint64_t began_ns) {
  if (!shows_) return;
  std::string line = "\rrun " + std::to_string(done_ + 1);
  if (expected_ > done_) line += " of " + std::to_string(expected_);
  if (const double left = seconds_left(began_ns); left >= 0) {
    const auto s = static_cast<uint64_t>(left + 0.5);
    line += s >= 3600
                ? format("  %d:%02d:%02d left", static_cast<int>(s / 3600),
                         static_cast<int>(s / 60 % 60), static_cast<int>(s % 60))
                : format("  %d:%02d left", static_cast<int>(s / 60), static_cast<int>(s % 60));
  }
  if (failed_ != 0) line += "  " + std::to_string(failed_) + " failed";
  line += "  " + cell.config.label.substr(0, 60) + "\033[K";
  (void)!write(STDERR_FILENO, line.data(), line.size());
}

Result<bool> Session::run(const Cell& cell, uint64_t repeat, const std::string& by,
                          const std::string& activities) {
  if (has(cell, repeat)) return true;
  if (g_stop_signal.load() != 0) return false;
  if (auto begun = begin(); !begun) return std::move(begun.error());
  std::vector<std::string> args = replay_arguments(lab_, *cell.trace, *cell.root, cell.config);
  std::vector<std::string> argv{program_};
  argv.insert(argv.end(), args.begin(), args.end());
  argv.insert(argv.end(), {"--json", "--quiet"});
  if (!activities.empty()) argv.insert(argv.end(), {"--activities", activities});

  if (auto warm = warm_up(*cell.trace, *cell.root); !warm || !*warm) return warm;

  Json run;
  run["cell"] = cell.id;
  run["trace"] = cell.trace->name;
  run["root"] = cell.root->name;
  run["variant"] = cell.config.variant;
  run["label"] = cell.config.label;
  run["parameters"] = Json::object();
  for (const auto& [name, value] : cell.config.parameters) run["parameters"][name] = value;
  run["repeat"] = repeat;
  run["by"] = by;
  run["started"] = now_text();

  const uint64_t begin = now_ns();
  progress(cell, begin);
  auto child = run_child(argv, lab_.timeout_ns, true, [&] { progress(cell, begin); });
  if (shows_) (void)!write(STDERR_FILENO, "\r\033[K", 4);
  if (!child) return std::move(child.error());
  // Also a run that was just done: it may have been told to end.
  if (g_stop_signal.load() != 0) return false;

  const Json report = Json::parse(child->out, nullptr, false);
  const bool reported = report.is_object() && report.contains("seconds");
  const bool good = WIFEXITED(child->status) && WEXITSTATUS(child->status) == 0 && reported;
  run["status"] = good ? "ok" : "failed";
  run["exit"] = WIFEXITED(child->status) ? WEXITSTATUS(child->status) : -1;
  if (!good) {
    const std::string said = last_line(child->err);
    run["why"] = said.empty() || child->timed_out ? ended(*child) : said;
    ++failed_;
    if (told_.insert(cell.config.label + run["why"].get<std::string>()).second)
      log(FEIGN_LOG_WARN, "run failed: " + cell.config.label + " on " + cell.root->name + ": " +
                              run["why"].get<std::string>());
  }
  if (reported) take(report, run);
  if (reported && cell.root->drop_caches == "all" && run.contains("caches") &&
      run["caches"] != "all" && told_.insert("caches").second)
    log(FEIGN_LOG_WARN,
        "caches: the machine's could not be dropped (/proc/sys/vm/drop_caches is not permitted "
        "here); those of the files below the root were: names and inodes stay warm");
  run["command"] = args;
  if (!activities.empty()) run["activities"] = activities;
  if (good) good_.insert({cell.id, repeat});
  ++done_;
  spent_ns_ += now_ns() - begin;
  log(FEIGN_LOG_INFO,
      "run " + std::to_string(done_) + ": " + cell.config.label + ": " +
          (good ? format_time(static_cast<uint64_t>(run["seconds"].get<double>() * 1e9))
                : "failed"));
  if (auto added = results_.add(std::move(run)); !added) return std::move(added.error());
  return true;
}

Result<bool> Session::warm_up(const LabTrace& trace, const LabRoot& root) {
  if (!warm_.emplace(&trace, &root).second) return true;
  std::vector<std::string> argv = replay_arguments(lab_, trace, root, *lab_.config(lab_.baseline));
  argv.insert(argv.begin(), program_);
  argv.push_back("--quiet");
  for (uint64_t i = 0; i < lab_.warm_up && g_stop_signal.load() == 0; ++i) {
    log(FEIGN_LOG_INFO, "warm-up, not counted: " + trace.name + " on " + root.name);
    // Whatever comes of it: a run that counts says so.
    if (shows_) {
      const std::string line =
          "\rwarm-up, not counted: " + trace.name + " on " + root.name + "\033[K";
      (void)!write(STDERR_FILENO, line.data(), line.size());
    }
    if (auto child = run_child(argv, lab_.timeout_ns, true, {}); !child)
      return std::move(child.error());
  }
  return g_stop_signal.load() == 0;
}

Result<bool> Session::run_all(const std::vector<Cell>& cells, uint64_t from, uint64_t to,
                              const std::string& by) {
  uint64_t left = 0;
  for (uint64_t repeat = from; repeat <= to; ++repeat)
    for (const Cell& cell : cells) left += !has(cell, repeat);
  expect(left);
  for (uint64_t repeat = from; repeat <= to; ++repeat) {
    std::vector<const Cell*> order;
    for (const Cell& cell : cells) order.push_back(&cell);
    // The same order when it is resumed.
    uint64_t state = lab_.seed * 0x9E3779B97F4A7C15 + repeat;
    for (size_t i = order.size(); i > 1; --i)
      std::swap(order[i - 1], order[random_below(state, i)]);
    for (const Cell* cell : order) {
      auto ran = run(*cell, repeat, by);
      if (!ran || !*ran) return ran;
    }
  }
  return true;
}

}  // namespace feign
