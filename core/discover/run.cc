// SPDX-License-Identifier: MIT
#include "discover/run.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

#include "../capture/format.h"
#include "../capture/watch.h"
#include "base/clock.h"
#include "base/input.h"
#include "cli/run.h"
#include "record/record.h"
#include "report/format.h"

extern char** environ;

namespace feign::discover {
namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kPoll_ns = 200'000;
// A node that keeps going in and out of calls that can wait is polling: judged by its longest
// pause.
constexpr uint32_t kPolls = 16;
constexpr uint64_t kStart_ns = 1'000'000'000;

void sleep_ns(uint64_t ns) {
  const timespec t{static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
  nanosleep(&t, nullptr);
}

template <typename T>
T load(const T& word) {
  return __atomic_load_n(&word, __ATOMIC_ACQUIRE);
}

// What the scheduler says of a thread.
struct Cpu {
  uint64_t ran_ns = 0, delayed_ns = 0;
  char state = 0;  // 'R', 'S' …; 0: it is gone
};

bool read_small(const char* path, char* to, size_t size) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const ssize_t n = read(fd, to, size - 1);
  close(fd);
  if (n <= 0) return false;
  to[n] = 0;
  return true;
}

Cpu cpu_of(int32_t pid, int32_t thread) {
  Cpu cpu;
  char path[96], text[512];
  snprintf(path, sizeof path, "/proc/%d/task/%d/stat", pid, thread);
  if (!read_small(path, text, sizeof text)) return cpu;
  const char* end = strrchr(text, ')');
  if (end == nullptr || end[1] == 0) return cpu;
  cpu.state = end[2];
  snprintf(path, sizeof path, "/proc/%d/task/%d/schedstat", pid, thread);
  unsigned long long ran = 0, delayed = 0;
  if (read_small(path, text, sizeof text) && sscanf(text, "%llu %llu", &ran, &delayed) == 2) {
    cpu.ran_ns = ran;
    cpu.delayed_ns = delayed;
  }
  return cpu;
}

// Of a process that has not begun there is the first thread only.
int32_t thread_of(const feign_watch_node& node) { return node.thread > 0 ? node.thread : node.pid; }

// What the watcher remembers of a node while another is held.
struct Look {
  uint64_t since = 0, steps = 0, from = 0;  // from: ns, since when it has not moved
  uint32_t state = FEIGN_NODE_FREE, waits = 0;
  uint64_t quiet = 0;  // the moment of stillness that `waits` counts from
  Cpu cpu;             // then
};

class Watcher {
 public:
  Watcher(const RunPlan& plan, std::map<std::string, Limits>& limits)
      : plan_(plan), limits_(limits) {}
  ~Watcher();
  Result<RunOutcome> run(const std::function<void(uint64_t)>& progress);

 private:
  Result<void> share();
  Result<void> start();
  bool ended(feign_watch_node& node);
  void look_at_hold(feign_watch_node& held);
  bool blocked(uint32_t index, uint64_t now);
  void release(feign_watch_node& held);
  void reap();
  void end_all();
  Error stuck(const std::string& what);
  void collect(RunOutcome& out);
  uint32_t count() const { return std::min<uint32_t>(load(watch_->nodes), FEIGN_WATCH_NODES); }
  double factor_of(const Limits& l) const { return l.factor > 0 ? l.factor : plan_.factor; }

  const RunPlan& plan_;
  std::map<std::string, Limits>& limits_;
  feign_watch* watch_ = nullptr;
  int memory_ = -1;
  RawFolder raw_;
  pid_t child_ = -1;
  bool child_ended_ = false;
  RunOutcome out_;
  // The hold at hand.
  uint64_t holding_ = UINT64_MAX, hold_begin_ = 0, quiet_ = 0, still_ = 0, sum_ = 0;
  std::vector<Look> looks_;
};

Watcher::~Watcher() {
  end_all();
  if (watch_ != nullptr) munmap(watch_, sizeof *watch_);
  if (memory_ >= 0) close(memory_);
}

Result<void> Watcher::share() {
  memory_ = memfd_create("feign-discover", MFD_CLOEXEC);
  if (memory_ < 0 || ftruncate(memory_, sizeof(feign_watch)) != 0)
    return errno_error("make shared memory", errno);
  void* at = mmap(nullptr, sizeof(feign_watch), PROT_READ | PROT_WRITE, MAP_SHARED, memory_, 0);
  if (at == MAP_FAILED) return errno_error("map shared memory", errno);
  watch_ = static_cast<feign_watch*>(at);
  watch_->magic = FEIGN_WATCH_MAGIC;
  watch_->size = sizeof(feign_watch);
  watch_->owner = getpid();
  watch_->per = plan_.per_process ? FEIGN_PER_PROCESS : FEIGN_PER_THREAD;
  for (int fd = 0; fd < 3; ++fd) {
    struct stat st {};
    if (fstat(fd, &st) != 0) continue;
    watch_->skip_dev[fd] = st.st_dev;
    watch_->skip_ino[fd] = st.st_ino;
  }
  snprintf(watch_->throttled, sizeof watch_->throttled, "%s", plan_.throttled.c_str());
  for (const std::string& p : plan_.only)
    snprintf(watch_->only[watch_->only_count++], sizeof *watch_->only, "%s", p.c_str());
  for (const std::string& p : plan_.exclude)
    snprintf(watch_->exclude[watch_->exclude_count++], sizeof *watch_->exclude, "%s", p.c_str());
  for (const uint64_t k : plan_.holds)
    if (k < FEIGN_WATCH_CALLS) watch_->holds[k / 64] |= uint64_t{1} << k % 64;
  RecordOptions record;
  record.mpi = plan_.mpi;
  record.layers = {"posix", "mpi", "mpiio"};
  if (auto made = raw_.open(plan_.raw, record); !made) return made;
  snprintf(raw_.control->watch, sizeof raw_.control->watch, "/proc/%d/fd/%d", getpid(), memory_);
  return {};
}

Result<void> Watcher::start() {
  // Whoever loses his parent becomes our child, so that nobody is left behind.
  prctl(PR_SET_CHILD_SUBREAPER, 1UL);
  std::string shared = "FEIGN_CAPTURE=" + raw_.path, preload = "LD_PRELOAD=" + raw_.preload;
  std::vector<char*> env, args;
  for (char** e = environ; *e != nullptr; ++e)
    if (!std::string_view(*e).starts_with("LD_PRELOAD=") &&
        !std::string_view(*e).starts_with("FEIGN_CAPTURE="))
      env.push_back(*e);
  env.push_back(shared.data());
  env.push_back(preload.data());
  env.push_back(nullptr);
  for (const std::string& word : plan_.command) args.push_back(const_cast<char*>(word.c_str()));
  args.push_back(nullptr);

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
  if (watch_ != nullptr) __atomic_store_n(&watch_->stop, 1, __ATOMIC_RELEASE);
  if (child_ <= 0) return;
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
      kill(static_cast<pid_t>(pid), SIGKILL);
      any = true;
    }
    reap();
    if (!any) break;
    sleep_ns(kMs);
  }
  child_ = -1;
}

// What a node is doing, in words.
std::string doing(const feign_watch_node& node, uint32_t state) {
  static constexpr const char* kStates[] = {"",    "starting",     "computing", "in ",
                                            "in ", "held before ", "ended"};
  std::string text = kStates[std::min<uint32_t>(state, FEIGN_NODE_ENDED)];
  if (state == FEIGN_NODE_CALLING || state == FEIGN_NODE_WAITING || state == FEIGN_NODE_HELD)
    text += node.doing;
  return text + ", after " + std::to_string(node.calls) + " calls";
}

// A node whose thread is gone did not say so if it was killed.
bool Watcher::ended(feign_watch_node& node) {
  const uint32_t state = load(node.state);
  if (state == FEIGN_NODE_ENDED || state == FEIGN_NODE_FREE) return true;
  if (state == FEIGN_NODE_STARTING && node.thread <= 0) {
    if (node.pid != 0 && kill(node.pid, 0) != 0 && errno == ESRCH) {
      __atomic_store_n(&node.state, FEIGN_NODE_ENDED, __ATOMIC_RELEASE);
      return true;
    }
    return false;
  }
  const Cpu cpu = cpu_of(node.pid, node.thread);
  if (cpu.state != 0 && cpu.state != 'Z' && cpu.state != 'X') return false;
  out_.died.push_back(std::string(node.key) + ": " + doing(node, state));
  __atomic_store_n(&node.state, FEIGN_NODE_ENDED, __ATOMIC_RELEASE);
  return true;
}

// Has not moved for longer than it ever needs, in time that it had the processor or did not want
// it.
bool Watcher::blocked(uint32_t index, uint64_t now) {
  feign_watch_node& node = watch_->node[index];
  Look& look = looks_[index];
  const uint32_t state = load(node.state);
  const auto known = limits_.find(node.key);
  // Who makes neither I/O calls nor others is nobody whom they wait for.
  if (known == limits_.end() && state != FEIGN_NODE_STARTING) return true;
  const Limits limit = known != limits_.end() ? known->second : Limits{};
  const uint64_t since = load(node.since);
  const bool polls = look.quiet == quiet_ && node.waits - look.waits > kPolls;
  if (look.quiet != quiet_ || (!polls && (look.since != since || look.state != state))) {
    if (look.quiet != quiet_) look.waits = node.waits;
    look.quiet = quiet_;
    look.since = since;
    look.state = state;
    look.from = now;
    look.cpu = cpu_of(node.pid, thread_of(node));
    return false;
  }
  // Who wants the processor, a node that spins too, has to have had it for longer than ever before.
  double most = 0, most_cpu = 0;
  if (state == FEIGN_NODE_CALLING)
    most = most_cpu = static_cast<double>(limit.call_ns) * factor_of(limit);
  else if (state != FEIGN_NODE_WAITING || polls)
    most = static_cast<double>(limit.gap_ns) * factor_of(limit),
    most_cpu = static_cast<double>(limit.cpu_ns) * factor_of(limit);
  const uint64_t need = static_cast<uint64_t>(most) + plan_.floor_ns;
  const uint64_t need_cpu = static_cast<uint64_t>(most_cpu) + plan_.floor_ns;
  // Starting: its maker is in fork() still; or it has not run, or will never say so.
  if (node.pid == 0 || node.thread < 0) return now - look.from > kStart_ns;
  const Cpu cpu = cpu_of(node.pid, thread_of(node));
  if (cpu.state == 0) return ended(node);
  if (cpu.state == 'D' && state != FEIGN_NODE_WAITING) {
    // A device keeps it, not another node: that time does not count.
    look.from = now;
    look.cpu = cpu;
    return false;
  }
  if (now - look.from < std::min(need, need_cpu)) return false;
  const uint64_t delayed = cpu.delayed_ns - std::min(cpu.delayed_ns, look.cpu.delayed_ns);
  const uint64_t ran = cpu.ran_ns - std::min(cpu.ran_ns, look.cpu.ran_ns);
  if (cpu.state == 'R') return ran >= need_cpu;
  return now - look.from - std::min(delayed, now - look.from) >= need;
}

void Watcher::release(feign_watch_node& held) {
  __atomic_store_n(&held.released, holding_ + 1, __ATOMIC_RELEASE);
  syscall(SYS_futex, &held.released, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  holding_ = UINT64_MAX;
  still_ = 0;
}

void Watcher::look_at_hold(feign_watch_node& held) {
  const uint64_t now = now_ns(), k = load(held.held) - 1;
  if (k == UINT64_MAX) return;
  const uint32_t nodes = count();
  if (looks_.size() < nodes) looks_.resize(nodes);
  uint64_t sum = nodes;
  for (uint32_t i = 0; i < nodes; ++i)
    sum += watch_->node[i].steps + (load(watch_->node[i].state) == FEIGN_NODE_ENDED);
  if (holding_ != k || sum != sum_) {
    // Somebody moved: everybody gets time anew.
    if (holding_ != k) {
      hold_begin_ = now;
    } else if (still_ != 0) {
      // … after all had been taken for blocked: who it was is patient longer from now on.
      ++out_.woke;
      for (uint32_t i = 0; i < nodes; ++i)
        if (watch_->node[i].steps != looks_[i].steps) {
          const auto known = limits_.find(watch_->node[i].key);
          if (known != limits_.end())
            known->second.factor = std::min(factor_of(known->second) * 2, 64.0);
        }
    }
    holding_ = k;
    sum_ = sum;
    quiet_ = now;
    still_ = 0;
    for (uint32_t i = 0; i < nodes; ++i) looks_[i].steps = watch_->node[i].steps;
  }
  bool all = true;
  for (uint32_t i = 0; i < nodes; ++i) {
    feign_watch_node& node = watch_->node[i];
    if (&node == &held || load(node.state) == FEIGN_NODE_ENDED) continue;
    all = blocked(i, now) && all;
  }
  if (!all) still_ = 0;
  if (all && still_ == 0) still_ = now;
  // A second look: a quarter of the time longer.
  const bool sure = all && now - still_ >= plan_.floor_ns / 2 + (still_ - quiet_) / 4;
  if (!sure && now - hold_begin_ < plan_.max_delay_ns) return;
  out_.held_ns += now - hold_begin_;
  Hold hold;
  hold.k = k;
  if (sure) {
    hold.delay_ns = now - hold_begin_;
    for (uint32_t i = 0; i < nodes; ++i)
      if (feign_watch_node& node = watch_->node[i]; &node != &held) {
        hold.reach[node.key] = node.calls;
        const uint32_t state = load(node.state);
        if (state == FEIGN_NODE_WAITING || state == FEIGN_NODE_CALLING)
          hold.stuck_in[node.key] = node.doing;
      }
    out_.holds.push_back(hold);
  } else {
    ++out_.cut_short;
  }
  if (plan_.next)
    if (const uint64_t later = plan_.next(hold, sure); later > k && later < FEIGN_WATCH_CALLS)
      __atomic_fetch_or(&watch_->holds[later / 64], uint64_t{1} << later % 64, __ATOMIC_RELEASE);
  release(held);
}

Error Watcher::stuck(const std::string& what) {
  std::string text = what;
  const uint64_t now = now_ns();
  uint32_t shown = 0;
  for (uint32_t i = 0; i < count(); ++i) {
    const feign_watch_node& node = watch_->node[i];
    const uint32_t state = load(node.state);
    if (state == FEIGN_NODE_ENDED || state == FEIGN_NODE_FREE) continue;
    if (++shown > 16) continue;
    char line[256];
    snprintf(line, sizeof line, "%s %s: %s, for %.1f s", shown == 1 ? "; nodes:" : ",", node.key,
             doing(node, state).c_str(),
             static_cast<double>(now - std::min<uint64_t>(now, node.since)) / 1e9);
    text += line;
  }
  if (shown > 16) text += " and " + std::to_string(shown - 16) + " more";
  return Error(FEIGN_ERR_IO, text);
}

void Watcher::collect(RunOutcome& out) {
  out.ranks = watch_->ranks;
  for (uint32_t i = 0; i < count(); ++i) {
    const feign_watch_node& node = watch_->node[i];
    out.keys.emplace_back(node.key);
    if (node.calls == 0 && node.children + node.threads != 0)
      out.makers[node.key] = {node.longest_make, node.longest_make_cpu, 0, 0};
    if (node.calls == 0) continue;
    NodeLog& log = out.nodes[node.key];
    log.rank = node.rank;
    log.longest_gap_ns = node.longest_gap;
    log.longest_cpu_ns = node.longest_cpu;
    log.longest_call_ns = node.longest_call;
  }
}

Result<RunOutcome> Watcher::run(const std::function<void(uint64_t)>& progress) {
  if (auto ok = share(); !ok) return std::move(ok.error());
  const uint64_t begin = now_ns();
  if (auto ok = start(); !ok) return std::move(ok.error());
  uint64_t looked = begin, over = 0;
  while (true) {
    const uint64_t now = now_ns();
    if (const int signal = g_stop_signal.load(); signal != 0)
      return Error(FEIGN_ERR_IO, "interrupted by signal " + std::to_string(signal));
    if (raw_.control->unwatched != 0)
      return Error(FEIGN_ERR_UNSUPPORTED,
                   "a process of the command does not share this one's memory: it runs on another "
                   "host or in a container; all of it must run on this machine");
    if (raw_.control->dropped != 0)
      return Error(FEIGN_ERR_IO, "calls found no room in " + raw_.path + " (a full disk?)");
    if (load(watch_->nodes) > FEIGN_WATCH_NODES)
      return Error(FEIGN_ERR_UNSUPPORTED,
                   "the command has more than " + std::to_string(FEIGN_WATCH_NODES) +
                       " threads and processes; --per process has fewer nodes");
    feign_watch_node* held = nullptr;
    bool alive = false;
    const uint32_t nodes = count();
    const bool slowly = now - looked > 20 * kMs;
    for (uint32_t i = 0; i < nodes; ++i) {
      feign_watch_node& node = watch_->node[i];
      const uint32_t state = load(node.state);
      if (state == FEIGN_NODE_FREE || state == FEIGN_NODE_ENDED) continue;
      if (slowly && ended(node)) continue;
      alive = true;
      if (load(node.released) < load(node.held)) held = &node;
    }
    if (slowly) {
      looked = now;
      uint64_t calls = 0;
      for (uint32_t i = 0; i < nodes; ++i) calls += watch_->node[i].calls;
      progress(calls);
    }
    reap();
    if (child_ended_) {
      // What it left running may go on for a while, if it is a node.
      if (over == 0) over = now;
      if (!alive) break;
    }
    if (held != nullptr) look_at_hold(*held);
    if (now - begin > plan_.timeout_ns)
      return stuck("the run did not end within " +
                   std::to_string(plan_.timeout_ns / 1'000'000'000) + " s (--timeout)");
    // Seldom, the longer it takes: looking takes time of the nodes'.
    sleep_ns(held != nullptr ? std::clamp((now - hold_begin_) / 16, kPoll_ns / 2, 10 * kPoll_ns)
             : !plan_.throttled.empty() ? kPoll_ns
                                        : kMs);
  }
  out_.wall_ns = now_ns() - begin;
  for (uint32_t i = 0; i < count(); ++i) (void)ended(watch_->node[i]);
  end_all();
  raw_.ended();
  collect(out_);
  return std::move(out_);
}

}  // namespace

Result<RunOutcome> run_watched(const RunPlan& plan, std::map<std::string, Limits>& limits,
                               const std::function<void(uint64_t)>& progress) {
  Watcher watcher(plan, limits);
  return watcher.run(progress);
}

uint64_t measure_noise() {
  uint64_t worst = 0;
  for (int i = 0; i < 30; ++i) {
    const uint64_t from = now_ns();
    sleep_ns(kMs);
    worst = std::max(worst, now_ns() - from - std::min(now_ns() - from, kMs));
  }
  return worst;
}

}  // namespace feign::discover
