// SPDX-License-Identifier: MIT
#include "discover/post.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>

#include "../capture/format.h"
#include "../capture/watch.h"
#include "base/clock.h"
#include "nlohmann/json.hpp"

namespace feign::discover {

using nlohmann::json;

void sleep_ns(uint64_t ns) {
  const timespec t{static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
  nanosleep(&t, nullptr);
}

bool read_small(const char* path, char* to, size_t size) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const ssize_t n = read(fd, to, size - 1);
  close(fd);
  if (n <= 0) return false;
  to[n] = 0;
  return true;
}

namespace {

// A node that keeps going in and out of calls that can wait is polling: judged by its longest
// pause.
constexpr uint32_t kPolls = 16;
constexpr uint64_t kStart_ns = 1'000'000'000;

template <typename T>
T load(const T& word) {
  return __atomic_load_n(&word, __ATOMIC_ACQUIRE);
}

// Of a process that has not begun there is the first thread only.
int32_t thread_of(const feign_watch_node& node) { return node.thread > 0 ? node.thread : node.pid; }

// What a node is doing, in words.
std::string doing(const feign_watch_node& node, uint32_t state) {
  static constexpr const char* kStates[] = {"",    "starting",     "computing", "in ",
                                            "in ", "held before ", "ended"};
  std::string text = kStates[std::min<uint32_t>(state, FEIGN_NODE_ENDED)];
  if (state == FEIGN_NODE_CALLING || state == FEIGN_NODE_WAITING || state == FEIGN_NODE_HELD)
    text += node.doing;
  return text + ", after " + std::to_string(node.calls) + " calls";
}

}  // namespace

// What the scheduler says of a thread.
Post::Cpu Post::cpu_of(int32_t pid, int32_t thread) {
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

Post::~Post() { close(); }

void Post::close() {
  if (watch_ != nullptr) {
    __atomic_store_n(&watch_->stop, 1, __ATOMIC_RELEASE);
    munmap(watch_, sizeof *watch_);
  }
  if (memory_ >= 0) ::close(memory_);
  watch_ = nullptr;
  memory_ = -1;
  raw_.reset();
  looks_.clear();
  died_.clear();
  epoch_ = UINT64_MAX;
}

uint32_t Post::count() const { return std::min<uint32_t>(load(watch_->nodes), FEIGN_WATCH_NODES); }

std::string Post::key(const feign_watch_node& node) const {
  const std::string key = node.key;
  return host_.empty() || key.starts_with("rank:") ? key : host_ + ":" + key;
}

Result<json> Post::begin(const json& question) {
  close();
  const json& plan = question.at("plan");
  limits_.clear();
  for (const auto& [key, l] : question.at("limits").items())
    limits_[key] = {l[0], l[1], l[2], l[3]};
  factor_ = plan.at("factor");
  floor_ns_ = plan.at("floor_ns");
  raw_path_ = plan.at("raw");
  memory_ = memfd_create("feign-discover", MFD_CLOEXEC);
  if (memory_ < 0 || ftruncate(memory_, sizeof(feign_watch)) != 0)
    return errno_error("make shared memory", errno);
  void* at = mmap(nullptr, sizeof(feign_watch), PROT_READ | PROT_WRITE, MAP_SHARED, memory_, 0);
  if (at == MAP_FAILED) return errno_error("map shared memory", errno);
  watch_ = static_cast<feign_watch*>(at);
  watch_->magic = FEIGN_WATCH_MAGIC;
  watch_->size = sizeof(feign_watch);
  watch_->owner = getpid();
  struct stat space {};
  if (stat("/proc/self/ns/pid", &space) == 0) watch_->pid_space = space.st_ino;
  watch_->per = plan.at("per_process").get<bool>() ? FEIGN_PER_PROCESS : FEIGN_PER_THREAD;
  for (int fd = 0; fd < 3; ++fd) {
    struct stat st {};
    if (fstat(fd, &st) != 0) continue;
    watch_->skip_dev[fd] = st.st_dev;
    watch_->skip_ino[fd] = st.st_ino;
  }
  snprintf(watch_->throttled, sizeof watch_->throttled, "%s",
           plan.at("throttled").get<std::string>().c_str());
  for (const std::string p : plan.at("only"))
    snprintf(watch_->only[watch_->only_count++], sizeof *watch_->only, "%s", p.c_str());
  for (const std::string p : plan.at("exclude"))
    snprintf(watch_->exclude[watch_->exclude_count++], sizeof *watch_->exclude, "%s", p.c_str());
  for (const uint64_t k : plan.at("holds"))
    if (k < FEIGN_WATCH_CALLS) watch_->holds[k / 64] |= uint64_t{1} << k % 64;
  RecordOptions record;
  record.mpi = plan.at("mpi");
  record.layers = {"posix", "mpi", "mpiio"};
  raw_ = std::make_unique<RawFolder>();
  if (auto made = raw_->open(raw_path_, record); !made) return std::move(made.error());
  snprintf(raw_->control->watch, sizeof raw_->control->watch, "/proc/%d/fd/%d", getpid(), memory_);
  return json{{"raw", raw_->path}, {"preload", raw_->preload}};
}

// A node whose thread is gone did not say so if it was killed.
bool Post::ended(feign_watch_node& node) {
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
  died_.push_back(key(node) + ": " + doing(node, state));
  __atomic_store_n(&node.state, FEIGN_NODE_ENDED, __ATOMIC_RELEASE);
  return true;
}

// Has not moved for longer than it ever needs, in time that it had the processor or did not want
// it.
bool Post::blocked(uint32_t index, uint64_t epoch, uint64_t now) {
  feign_watch_node& node = watch_->node[index];
  Look& look = looks_[index];
  const uint32_t state = load(node.state);
  const auto known = limits_.find(key(node));
  // Who makes neither I/O calls nor others is nobody whom they wait for.
  if (known == limits_.end() && state != FEIGN_NODE_STARTING) return true;
  const Limits limit = known != limits_.end() ? known->second : Limits{};
  const uint64_t since = load(node.since);
  const bool polls = look.epoch == epoch && node.waits - look.waits > kPolls;
  if (look.epoch != epoch || (!polls && (look.since != since || look.state != state))) {
    if (look.epoch != epoch) look.waits = node.waits;
    look.epoch = epoch;
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
  const uint64_t need = static_cast<uint64_t>(most) + floor_ns_;
  const uint64_t need_cpu = static_cast<uint64_t>(most_cpu) + floor_ns_;
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

Result<json> Post::look(const json& question) {
  if (raw_->control->unwatched != 0)
    return Error(FEIGN_ERR_UNSUPPORTED,
                 "a process of the command does not share this one's memory: it runs on another "
                 "host (--hosts) or in a container");
  if (raw_->control->dropped != 0)
    return Error(FEIGN_ERR_IO, "calls found no room in " + raw_->path + " (a full disk?)");
  if (load(watch_->nodes) > FEIGN_WATCH_NODES)
    return Error(FEIGN_ERR_UNSUPPORTED,
                 "the command has more than " + std::to_string(FEIGN_WATCH_NODES) +
                     " threads and processes; --per process has fewer nodes");
  const bool slowly = question.at("slowly");
  const uint32_t nodes = count();
  if (looks_.size() < nodes) looks_.resize(nodes);
  uint64_t moves = nodes, calls = 0;
  bool alive = false;
  const feign_watch_node* held = nullptr;
  for (uint32_t i = 0; i < nodes; ++i) {
    feign_watch_node& node = watch_->node[i];
    const uint32_t state = load(node.state);
    calls += node.calls;
    moves += node.steps + (state == FEIGN_NODE_ENDED);
    if (state == FEIGN_NODE_FREE || state == FEIGN_NODE_ENDED) continue;
    if (slowly && ended(node)) continue;
    alive = true;
    if (load(node.released) < load(node.held)) held = &node;
  }
  json out{{"moves", moves}, {"calls", calls}, {"alive", alive}, {"nodes", nodes}};
  if (const uint64_t k = held != nullptr ? load(held->held) : 0; k != 0) out["held"] = k - 1;
  if (!question.at("judge")) return out;
  // Somebody moved since the last look of another epoch: everybody gets time anew.
  if (const uint64_t epoch = question.at("epoch"); epoch != epoch_) {
    epoch_ = epoch;
    for (uint32_t i = 0; i < nodes; ++i) {
      const feign_watch_node& node = watch_->node[i];
      // … after all had been taken for blocked: who it was is patient longer from now on.
      const auto known = limits_.find(key(node));
      if (question.at("woke") && node.steps != looks_[i].steps && known != limits_.end())
        known->second.factor = std::min(factor_of(known->second) * 2, 64.0);
      looks_[i].steps = node.steps;
    }
  }
  bool all = true;
  const uint64_t now = now_ns();
  for (uint32_t i = 0; i < nodes; ++i) {
    const feign_watch_node& node = watch_->node[i];
    if (&node != held && load(node.state) != FEIGN_NODE_ENDED) all = blocked(i, epoch_, now) && all;
  }
  out["blocked"] = all;
  return out;
}

void Post::release(const json& question) {
  if (const auto later = question.find("later"); later != question.end()) {
    const uint64_t k = *later;
    if (k < FEIGN_WATCH_CALLS)
      __atomic_fetch_or(&watch_->holds[k / 64], uint64_t{1} << k % 64, __ATOMIC_RELEASE);
  }
  for (uint32_t i = 0; i < count(); ++i) {
    feign_watch_node& node = watch_->node[i];
    const uint64_t held = load(node.held);
    if (load(node.released) >= held) continue;
    __atomic_store_n(&node.released, held, __ATOMIC_RELEASE);
    syscall(SYS_futex, &node.released, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  }
}

json Post::nodes() {
  json out = json::array();
  const uint64_t now = now_ns();
  for (uint32_t i = 0; i < count(); ++i) {
    const feign_watch_node& node = watch_->node[i];
    const uint32_t state = load(node.state);
    json n{{"key", key(node)},
           {"rank", node.rank},
           {"calls", node.calls},
           {"alive", state != FEIGN_NODE_ENDED && state != FEIGN_NODE_FREE},
           {"held", load(node.released) < load(node.held)},
           {"makes", node.children + node.threads != 0},
           {"doing", doing(node, state)},
           {"for_ns", now - std::min<uint64_t>(now, node.since)},
           {"longest", {node.longest_gap, node.longest_cpu, node.longest_call}},
           {"longest_make", {node.longest_make, node.longest_make_cpu}}};
    if (state == FEIGN_NODE_WAITING || state == FEIGN_NODE_CALLING) n["in"] = node.doing;
    out.push_back(std::move(n));
  }
  return out;
}

json Post::end() {
  __atomic_store_n(&watch_->stop, 1, __ATOMIC_RELEASE);
  for (uint32_t i = 0; i < count(); ++i) (void)ended(watch_->node[i]);
  if (raw_->control != nullptr) raw_->ended();
  json factors = json::object();
  for (const auto& [key, l] : limits_) factors[key] = l.factor;
  return {{"died", died_}, {"factors", factors}, {"ranks", watch_->ranks}};
}

void Post::end_nodes() {
  if (watch_ == nullptr) return;
  __atomic_store_n(&watch_->stop, 1, __ATOMIC_RELEASE);
  for (uint32_t i = 0; i < count(); ++i)
    if (feign_watch_node& node = watch_->node[i]; node.pid > 0 && !ended(node))
      kill(node.pid, SIGKILL);
}

Result<json> Post::answer(const json& question) {
  const std::string ask = question.at("ask");
  if (ask == "begin") return begin(question);
  if (ask == "clock") return json{{"tick", record_ticks()}};
  if (watch_ == nullptr) return Error(FEIGN_ERR_IO, "no run has begun");
  if (ask == "look") return look(question);
  if (ask == "nodes") return nodes();
  if (ask == "end") return end();
  release(question);
  return json::object();
}

}  // namespace feign::discover
