// SPDX-License-Identifier: MIT
// Provider capture: reads what the capture library left in a raw folder (capture/format.h).
//
// Each lane is in the order in which its calls ended; lanes are merged by when their calls took
// effect; of calls on one name that overlap, as their results tell (overlap.h). A call that others
// are in comes before those: its beginning holds its place until its record, which ended after
// them, is met.
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <queue>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "capture/format.h"
#include "capture/hook_format.h"
#include "feign.hpp"
#include "layers/mpi_ops.h"
#include "layers/mpiio_ops.h"
#include "layers/posix_ops.h"
#include "layers/stdio_ops.h"
#include "providers/overlap.h"
#include "record/hook_image.h"
#include "record/program.h"
#include "trace/own_layer.h"

namespace {

using feign::Effect;

struct Options {
  const char* const* file;
};
constexpr feign_option kOptions[] = {
    {"file", FEIGN_OPT_TEXTS, offsetof(Options, file), nullptr, nullptr, 0, 0,
     "The raw folder's file \"records\"."},
};

constexpr size_t kMaxHeld = size_t{1} << 18;
constexpr uint64_t kUnit = FEIGN_CAPTURE_UNIT;
// Handles of third parties' layers are numbered apart from descriptors, whose numbers resolve
// gives.
constexpr uint32_t kFirstHandle = 1u << 24;

// A record, as far as it is an activity.
struct Item {
  feign_activity a{};
  std::vector<uint64_t> values;
  uint64_t start = 0, end = 0, own = 0;  // ticks; own: of the library, before it
  uint32_t kind = 0, depth = 0, code = 0;
  bool complete = true;
};

class Provider;

// Whatever a damaged file says.
int64_t whole(double value) {
  return value > -9e18 && value < 9e18 ? static_cast<int64_t>(value) : 0;
}

// One of the files records.
struct Host {
  feign_control control{};
  uint32_t name = 0;  // 0: there is but one
  // Moments by its counter in moments by that of the host that feign record ran on.
  uint64_t tick = 0, main_tick = 0;
  double ratio = 1;
  uint64_t best_tick = 0, best_ns = 0;  // the latest moment that is known by both its clocks
  bool begun = false;                   // there was a call

  uint64_t to_main(uint64_t t) const {
    if (name == 0 || (tick == main_tick && ratio == 1)) return t;
    const double away = t >= tick ? static_cast<double>(t - tick) : -static_cast<double>(tick - t);
    return main_tick + static_cast<uint64_t>(whole(away * ratio));
  }
  double ns_per_tick() const {
    const bool known = best_tick > control.tick_0 && best_ns > control.ns_0;
    return known ? static_cast<double>(best_ns - control.ns_0) /
                       static_cast<double>(best_tick - control.tick_0)
                 : 1;
  }
};

// What a process has that was not followed to there, and threads of it say no more.
using Pid = int64_t;                          // of all hosts: the host's place, and the number
using ProcessKey = std::pair<Pid, uint64_t>;  // and when it, or its exec, began
Pid pid_on(size_t host, int32_t pid) {
  return static_cast<Pid>(host) << 32 | static_cast<uint32_t>(pid);
}
struct Process {
  ProcessKey key;
  const Host* host = nullptr;
  Pid pid = 0, parent = 0;
  int32_t rank = -1;
  bool forked = false;  // else it is a program of its own
  bool fresh = false;   // a program that was started, and whose first call is still to come
  uint32_t cwd = 0;     // at first; 0: that of who made it
  std::optional<uint32_t> where;  // … and by now, for names that calls are after; 0: not known
  std::unordered_map<uint32_t, uint32_t> descriptors;     // handle -> what it is
  std::unordered_map<uint32_t, feign::Descriptor> files;  // … of what it was seen to open
  // Handles of third parties' layers: their number in the process -> the trace's.
  std::unordered_map<uint32_t, uint32_t> handles;
  Process* made_by = nullptr;  // the program that forked it, if that was recorded
};

class Lane {
 public:
  Lane(Provider& provider, Process& process) : provider_(provider), process_(process) {}
  void add(const uint8_t* chunk, const feign_chunk_head& head) { chunks_[head.number] = chunk; }
  // Reads on until the front is complete, or the lane is over.
  feign_status fill();
  bool empty() const { return queue_.empty(); }
  Item& front() { return queue_.front(); }
  const Item& front() const { return queue_.front(); }
  void pop() { queue_.pop_front(); }
  uint64_t when();
  const feign::Call* call() const;  // that the front is
  feign::Claims claims;             // of the front
  feign::Shown shown;
  feign::Descriptor opened;  // by the front
  Process& process() { return process_; }
  Pid pid() const { return pid_on(static_cast<size_t>(process_.pid >> 32), pid_); }
  uint32_t first_stream() const { return stream_of(pid_, pid_); }
  uint32_t stream_of(int32_t process, int32_t thread) const;

 private:
  bool next(Item& item, bool& any);
  void give_up(Item& item);

  Provider& provider_;
  Process& process_;
  std::map<uint32_t, const uint8_t*> chunks_;
  std::map<uint32_t, const uint8_t*>::const_iterator chunk_;
  const uint8_t *at_ = nullptr, *end_ = nullptr;
  int32_t pid_ = 0, thread_ = 0;
  uint32_t stream_ = 0;
  uint64_t last_ = 0, key_ = 0;
  std::unordered_map<uint64_t, uint32_t> texts_;  // among the chunk's values, by their places
  std::deque<Item> queue_;
  bool began_ = false, over_ = false;
};

class Provider {
 public:
  Provider(const feign_host* host, const Options& options) : host_(host), options_(options) {}
  ~Provider() {
    for (const auto& [data, size] : maps_) munmap(data, size);
  }
  feign_status start();
  feign_status next(size_t want, feign_sink* out);

 private:
  friend class Lane;
  feign_status fail(const std::string& what, feign_status code = FEIGN_ERR_ARGUMENT) const {
    return host_->fail(host_, code, what.c_str());
  }
  feign_status read_control(const std::string& path, feign_control& c) const;
  feign_status read_records(const std::string& path, size_t host);
  void align();
  uint64_t time(uint64_t tick) const {
    if (tick <= origin_) return 0;
    return ns(tick - origin_);
  }
  feign_status read_third(const std::string& path);
  uint64_t ns(uint64_t ticks) const {
    return static_cast<uint64_t>(static_cast<double>(ticks) * ns_per_tick_);
  }
  Process* started(const Process& before, Pid pid, uint64_t moment);
  int32_t rank_of(const Process& of, int32_t pid) const;
  uint32_t where(Process& process, int depth = 0);
  feign::Descriptor& descriptor(Process& process, uint32_t handle, int depth = 0);
  uint32_t file_of(Process& process, uint32_t handle) { return descriptor(process, handle).file; }
  uint32_t opened_by(Process& process, const feign_activity& a);
  void shows(Lane& lane, const feign::Call& call);
  void in_line(Lane* lane);
  Lane* first();
  uint32_t op(uint32_t code) const;
  void third(Process& process, feign_activity& a, const feign_op_info& info);
  uint32_t handle(Process& process, uint32_t number, bool made);
  void hints(Process& process, feign_activity& a);
  uint32_t hint(Process& process, uint32_t handle, int depth = 0);
  void was_started(Process& process, const feign_activity& a, bool recorded);
  void tell_what_is_missing();
  void tell_who_goes_on();
  bool reaps(Lane& lane);
  feign_status emit(feign_sink* out, Effect effect, uint32_t stream, uint64_t at, uint32_t mode);

  const feign_host* host_;
  Options options_;
  feign_control control_{};
  std::deque<Host> hosts_;  // the first: that of `feign record`
  double ns_per_tick_ = 1;
  uint64_t origin_ = UINT64_MAX;  // ticks: when the first process began
  std::vector<std::pair<void*, size_t>> maps_;
  std::map<ProcessKey, Process> processes_;
  std::unordered_map<Pid, Process*> by_pid_;  // the latest
  std::multimap<Pid, uint64_t> starts_;       // of programs, in ticks
  struct Aligned {
    const Host* host;
    std::string how;
    double bound;  // in ns
  };
  std::vector<Aligned> aligned_;
  std::map<std::pair<ProcessKey, uint32_t>, std::unique_ptr<Lane>> lanes_;
  // Programs that were started: how often, and how often nothing of them was recorded.
  struct Started {
    uint64_t count = 0, unseen = 0;
    uint32_t stream = 0;  // of one who did
  };
  std::map<std::string, Started> programs_;
  std::vector<Lane*> later_;  // those that have not begun, the next one last
  std::vector<std::pair<uint64_t, Lane*>> heap_;
  feign::Names there_;
  feign::Account shared_;
  uint64_t opens_ = 0;
  std::unordered_map<Pid, std::vector<uint32_t>> going_;  // streams of those not known to be over
  std::vector<uint32_t> ended_;                           // … of one that is, to be told
  uint64_t ended_at_ = 0;
  uint32_t firsts_[FEIGN_CAPTURE_LEFT_OUT] = {}, ops_[FEIGN_CAPTURE_LEFT_OUT] = {};
  std::vector<std::unique_ptr<feign::OwnLayer>> third_;  // layers of third parties
  uint32_t last_handle_ = kFirstHandle;
  std::unordered_map<uint32_t, uint32_t> paths_;  // of their handles
};

// ---- a lane ------------------------------------------------------------------------------------

template <typename T>
T load(const uint8_t* from) {
  T value;
  memcpy(&value, from, sizeof value);
  return value;
}

uint64_t load_bytes(const uint8_t* from, unsigned bytes) {
  uint64_t value = 0;
  memcpy(&value, from, bytes);
  return value;
}

uint32_t Lane::stream_of(int32_t process, int32_t thread) const {
  feign_stream_info info{};
  info.struct_size = sizeof info;
  info.host = process_.host->name;
  info.rank = provider_.rank_of(process_, process);
  info.process = process;
  info.thread = thread;
  return provider_.host_->stream(provider_.host_, &info);
}

// The next record that becomes an item. False at the end; `any`: whether one was read at all.
bool Lane::next(Item& item, bool& any) {
  any = false;
  while (at_ == nullptr || end_ - at_ < static_cast<ptrdiff_t>(sizeof(feign_record_head)) ||
         load<uint16_t>(at_) < sizeof(feign_record_head) || load<uint16_t>(at_) > end_ - at_) {
    if (!began_) {
      began_ = true;
      chunk_ = chunks_.begin();
    } else if (chunk_ != chunks_.end()) {
      ++chunk_;
    }
    if (chunk_ == chunks_.end()) return false;
    const auto head = load<feign_chunk_head>(chunk_->second);
    texts_.clear();
    at_ = chunk_->second + sizeof head;
    end_ = chunk_->second + head.size;
    last_ = head.tick;
    if (stream_ == 0 || pid_ != head.pid || thread_ != head.thread) {
      pid_ = head.pid;
      thread_ = head.thread;
      stream_ = stream_of(pid_, thread_);
    }
  }
  any = true;
  const auto head = load<feign_record_head>(at_);
  const uint8_t* p = at_ + sizeof head;
  const uint8_t* const end = at_ + head.length;
  at_ = end;
  const unsigned pause_bytes = head.times >> 4, duration_bytes = head.times & 15;
  if (pause_bytes > 8 || duration_bytes > 8 || end - p < pause_bytes + duration_bytes) return true;
  item.start = last_ + load_bytes(p, pause_bytes);
  item.end = item.start + load_bytes(p + pause_bytes, duration_bytes);
  if (item.end < item.start) item.end = item.start;
  last_ = item.end;
  item.start = process_.host->to_main(item.start);
  item.end = process_.host->to_main(item.end);
  p += pause_bytes + duration_bytes;
  item.kind = head.kind >> 4;
  item.depth = head.kind & 15;
  item.code = head.op;
  feign_activity& a = item.a;
  a.stream = stream_;
  const feign_host* host = provider_.host_;
  while (p < end) {
    const unsigned field = *p >> 4, bytes = *p & 15;
    ++p;
    const bool text = field == FEIGN_FIELD_PATH || field == FEIGN_FIELD_PATH2 ||
                      field == FEIGN_FIELD_TEXT_VALUE || field == FEIGN_FIELD_HINT;
    uint64_t value = 0;
    if (field == FEIGN_FIELD_TEXT_VALUE && bytes != 0) {
      if (bytes > 8 || end - p < bytes) break;
      const auto there = texts_.find(load_bytes(p, bytes));
      if (there == texts_.end()) break;
      value = there->second;
      p += bytes;
    } else if (text) {
      if (end - p < 2) break;
      const auto length = load<uint16_t>(p);
      if (end - p - 2 < length) break;
      value = host->intern(host, reinterpret_cast<const char*>(p + 2), length);
      if (field == FEIGN_FIELD_TEXT_VALUE)
        texts_[static_cast<uint64_t>(p - 1 - chunk_->second)] = static_cast<uint32_t>(value);
      p += 2 + length;
    } else {
      if (bytes > 8 || end - p < bytes) break;
      value = load_bytes(p, bytes);
      p += bytes;
    }
    const auto small = static_cast<uint32_t>(value);
    switch (field) {
      case FEIGN_FIELD_HANDLE:
        a.handle = small;
        break;
      case FEIGN_FIELD_HANDLE2:
        a.handle2 = small;
        break;
      case FEIGN_FIELD_PATH:
        a.path = small;
        break;
      case FEIGN_FIELD_PATH2:
        a.path2 = small;
        break;
      case FEIGN_FIELD_OFFSET:
        a.offset = value;
        break;
      case FEIGN_FIELD_LENGTH:
        a.length = value;
        break;
      case FEIGN_FIELD_FLAGS:
        a.flags = small;
        break;
      case FEIGN_FIELD_MODE:
        a.mode = small;
        break;
      case FEIGN_FIELD_VALUE:
      case FEIGN_FIELD_TEXT_VALUE:
      case FEIGN_FIELD_NOTHING:
        item.values.push_back(value);
        break;
      case FEIGN_FIELD_HINT:
        a.file = small;
        break;
      case FEIGN_FIELD_NODE:
        a.place = FEIGN_PLACE(0, value);
        break;
      case FEIGN_FIELD_TRACER:
        item.own = value;
        break;
      case FEIGN_FIELD_RESULT:
        a.result = static_cast<int64_t>(value);
        break;
      case FEIGN_FIELD_ERROR:
        a.result = -static_cast<int64_t>(value);
        break;
      default:
        break;
    }
  }
  return true;
}

// A call that was begun and never ended: what is in it counts one level less.
void Lane::give_up(Item& item) {
  const uint32_t depth = item.depth;
  bool behind = false;
  for (Item& other : queue_) {
    if (&other == &item) {
      behind = true;
      continue;
    }
    if (!behind) continue;
    if (other.depth <= depth) break;
    --other.depth;
  }
}

feign_status Lane::fill() {
  while (true) {
    while (!over_ && (queue_.empty() || (!queue_.front().complete && queue_.size() < kMaxHeld))) {
      Item item;
      bool any = false;
      if (!next(item, any)) {
        over_ = true;
        break;
      }
      if (item.kind == FEIGN_RECORD_CWD) {
        if (item.a.path != 0) process_.cwd = item.a.path;
      } else if (item.kind == FEIGN_RECORD_FD) {
        process_.descriptors[item.a.handle] = item.a.path;
      } else if (item.kind == FEIGN_RECORD_BEGIN || item.kind == FEIGN_RECORD_STARTED) {
        item.complete = false;
        queue_.push_back(std::move(item));
      } else if (item.kind == FEIGN_RECORD_BEGUN) {
        for (auto held = queue_.rbegin(); held != queue_.rend(); ++held)
          if (!held->complete && held->kind == FEIGN_RECORD_BEGIN && held->depth == item.depth) {
            *held = std::move(item);
            break;
          }
      } else if (item.kind == FEIGN_RECORD_CALL) {
        // An exec that came back failed.
        if (!queue_.empty() && queue_.back().kind == FEIGN_RECORD_STARTED &&
            queue_.back().code == item.code)
          queue_.pop_back();
        queue_.push_back(std::move(item));
      }
    }
    if (queue_.empty()) return FEIGN_OK;
    Item& front = queue_.front();
    if (front.complete) return FEIGN_OK;
    if (front.kind == FEIGN_RECORD_STARTED) {
      front.complete = true;
      return FEIGN_OK;
    }
    give_up(front);
    queue_.pop_front();
  }
}

const feign::Call* Lane::call() const {
  const Item& item = queue_.front();
  const uint32_t number = item.code & 0xFFF;
  if (item.kind != FEIGN_RECORD_CALL || item.code >> 12 != FEIGN_CAPTURE_POSIX ||
      number >= feign::posix_calls().size())
    return nullptr;
  return &feign::posix_calls()[number];
}

// When the front took effect, in ticks: calls that make a process, give up a descriptor, wake
// somebody or hand over bytes, and those that others are in, when they started.
uint64_t Lane::when() {
  const Item& item = queue_.front();
  uint64_t key = item.end;
  const uint32_t layer = item.code >> 12;
  const auto makes = [&] {
    const feign::Call* const call = this->call();
    return call != nullptr && (call->effect == Effect::kFork || call->effect == Effect::kVfork ||
                               call->effect == Effect::kClone);
  };
  if (item.kind != FEIGN_RECORD_CALL || item.depth != 0) {
    key = item.kind == FEIGN_RECORD_CALL && !makes() ? item.end : item.start;
  } else if (layer == FEIGN_CAPTURE_MPI || layer == FEIGN_CAPTURE_MPIIO) {
    key = item.start;  // what a rank sends, or that it has come, others may know before it ends
  } else if (const feign::Call* const call = this->call(); call != nullptr) {
    if (feign::counts_from_start(call->effect)) key = item.start;
    switch (call->effect) {
      case Effect::kWrite:  // into a file that others see only when it is over
        if (shown.tail.what == feign::Tail::kNone) key = item.start;
        break;
      case Effect::kFlock:
        if (item.a.flags & LOCK_UN) key = item.start;
        break;
      case Effect::kFcntl:
        if ((item.a.flags == F_SETLK || item.a.flags == F_OFD_SETLK) && item.values.size() > 1 &&
            item.values[1] == F_UNLCK)
          key = item.start;
        break;
      case Effect::kFutex:
        if (feign::futex_counts_from_start(item.a.flags)) key = item.start;
        break;
      default:
        break;
    }
  }
  return key_ = std::max(key_, key);
}

// ---- the folder
// ------------------------------------------------------------------------------------

feign_status Provider::read_records(const std::string& path, size_t number) {
  Host& host = hosts_[number];
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail("open " + path + ": " + strerror(errno), FEIGN_ERR_IO);
  struct stat st {};
  void* map = MAP_FAILED;
  if (fstat(fd, &st) == 0 && st.st_size > 0)
    map = mmap(nullptr, static_cast<size_t>(st.st_size), PROT_READ, MAP_PRIVATE | MAP_NORESERVE, fd,
               0);
  if (map == MAP_FAILED) {
    close(fd);
    return fail("map " + path + ": " + strerror(errno), FEIGN_ERR_IO);
  }
  const auto* const data = static_cast<const uint8_t*>(map);
  const auto size = static_cast<size_t>(st.st_size);
  maps_.emplace_back(map, size);
  // Holes are not read: what was never given out is no data.
  size_t at = 0;
  for (off_t from = lseek(fd, static_cast<off_t>(host.control.first), SEEK_DATA);
       from >= 0 && from < st.st_size;) {
    off_t to = lseek(fd, from, SEEK_HOLE);
    if (to < 0) to = st.st_size;
    for (at = std::max(at, static_cast<size_t>(from) / kUnit * kUnit);
         at + kUnit <= size && at < static_cast<size_t>(to);) {
      const auto chunk = load<feign_chunk_head>(data + at);
      if (chunk.magic != FEIGN_CAPTURE_CHUNK_MAGIC || chunk.size < kUnit ||
          chunk.size > size - at) {
        at += kUnit;
        continue;
      }
      const ProcessKey key = {pid_on(number, chunk.own_pid), chunk.began};
      Process& process = processes_[key];
      process.key = key;
      process.host = &host;
      process.pid = key.first;
      process.parent = pid_on(number, chunk.parent);
      process.forked = chunk.forked != 0;
      if (chunk.rank != 0) process.rank = static_cast<int32_t>(chunk.rank) - 1;
      auto& lane = lanes_[{key, chunk.lane}];
      if (!lane) {
        lane = std::make_unique<Lane>(*this, process);
        if (chunk.forked == 0 && chunk.lane == 1) starts_.emplace(key.first, chunk.began);
      }
      lane->add(data + at, chunk);
      if (chunk.began > host.best_tick) {
        host.best_tick = chunk.began;
        host.best_ns = chunk.began_ns;
      }
      at += (chunk.size + kUnit - 1) / kUnit * kUnit;
    }
    from = lseek(fd, to, SEEK_DATA);
  }
  close(fd);
  return FEIGN_OK;
}

// The counters of all hosts, by that of the first. Between hosts that no message went between, what
// they took the time of day for says more than nothing.
void Provider::align() {
  const Host& main = hosts_.front();
  ns_per_tick_ = main.ns_per_tick();
  const auto by_day = [&](const Host& h) {
    const double ns = static_cast<double>(static_cast<int64_t>(h.control.real_ns) -
                                          static_cast<int64_t>(main.control.real_ns));
    return main.control.tick_0 + static_cast<uint64_t>(whole(ns / ns_per_tick_));
  };
  const auto named = [&](const char* name) -> Host* {
    for (Host& h : hosts_)
      if (strncmp(h.control.host, name, sizeof h.control.host) == 0) return &h;
    return nullptr;
  };
  for (int round = 0; round < 2; ++round)  // references first
    for (size_t i = 1; i < hosts_.size(); ++i) {
      Host& h = hosts_[i];
      const auto& [first, last] = h.control.aligned;
      const Host* const reference =
          h.control.reference[0] != '\0' && first.tick != 0 ? named(h.control.reference) : nullptr;
      if ((reference != nullptr) != (round == 1)) continue;
      h.ratio = h.ns_per_tick() / ns_per_tick_;
      if (reference == nullptr || reference == &h) {
        h.tick = h.control.tick_0;
        h.main_tick = by_day(h);
        aligned_.push_back({&h, "by the time of day, nothing was measured", 0});
        continue;
      }
      const auto theirs = [&](uint64_t t) { return reference->to_main(t); };
      h.tick = first.tick;
      h.main_tick = theirs(first.theirs);
      const double apart =
          (static_cast<double>(h.control.real_ns) - static_cast<double>(main.control.real_ns)) -
          (static_cast<double>(h.to_main(h.control.tick_0)) -
           static_cast<double>(main.control.tick_0)) *
              ns_per_tick_;
      std::array<char, 200> text{};
      uint64_t bound = first.bound;
      const double span = static_cast<double>(last.tick > first.tick ? last.tick - first.tick : 0);
      // Of a shorter while its clocks say better how fast they are.
      if (span * h.ns_per_tick() > 50e6) {
        bound = std::max(bound, last.bound);
        const double all = static_cast<double>(theirs(last.theirs) - theirs(first.theirs));
        const double clocks = h.ratio;
        h.ratio = all / span;
        snprintf(text.data(), text.size(),
                 "measured at both ends: time of day %+.3f ms, drift %+.2f ppm, exact to %.1f us",
                 apart / 1e6, (h.ratio / clocks - 1) * 1e6,
                 static_cast<double>(bound) * ns_per_tick_ / 1e3);
      } else {
        snprintf(text.data(), text.size(),
                 "measured once: time of day %+.3f ms, exact to %.1f us when MPI began",
                 apart / 1e6, static_cast<double>(bound) * ns_per_tick_ / 1e3);
      }
      aligned_.push_back({&h, text.data(), static_cast<double>(bound) * ns_per_tick_});
    }
}

feign_status Provider::read_control(const std::string& file, feign_control& c) const {
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail("open " + file + ": " + strerror(errno), FEIGN_ERR_IO);
  const ssize_t size = read(fd, &c, sizeof c);
  close(fd);
  if (size != sizeof c || c.magic != FEIGN_CAPTURE_MAGIC)
    return fail(file + ": is not what feign record leaves behind");
  if (c.version != FEIGN_CAPTURE_VERSION)
    return fail(file + ": is of version " + std::to_string(c.version) + ", want " +
                std::to_string(FEIGN_CAPTURE_VERSION) +
                ": convert it with the feign that recorded it");
  c.host[sizeof c.host - 1] = c.reference[sizeof c.reference - 1] = '\0';
  return FEIGN_OK;
}

// A process that became a rank by its exec is that rank's before and after it too: its descriptors
// and its streams go on. By their keys, the programs of a process follow each other.
template <typename At>
void be_of_one_rank(At at, At end) {
  for (At next = at; at != end && ++next != end; at = next) {
    const Process& process = at->second;
    Process& other = next->second;
    if (process.pid == other.pid && other.rank < 0 &&
        !(process.key < other.key ? other.forked : process.forked))
      other.rank = process.rank;
  }
}

feign_status Provider::start() {
  if (options_.file[0] == nullptr) return fail("file: want the file \"records\" of a raw folder");
  if (options_.file[1] != nullptr)
    return fail(std::string(options_.file[1]) + ": a second folder: want one");
  const std::string file = options_.file[0];
  if (const feign_status s = read_control(file, control_); s < 0) return s;
  const struct {
    uint32_t number;
    const feign_layer& layer;
  } kLayers[] = {{FEIGN_CAPTURE_POSIX, feign::posix_layer()},
                 {FEIGN_CAPTURE_STDIO, feign::stdio_layer()},
                 {FEIGN_CAPTURE_MPI, feign::mpi_layer()},
                 {FEIGN_CAPTURE_MPIIO, feign::mpiio_layer()}};
  for (const auto& [number, layer] : kLayers) {
    ops_[number] = layer.op_count;
    if (const feign_status s = host_->register_layer(host_, &layer, &firsts_[number]); s < 0)
      return s;
  }
  const std::string records = options_.file[0];
  const std::string folder = records.substr(0, records.rfind('/') + 1);  // "" if it is here
  if (const feign_status s = read_third(folder + "layers"); s < 0) return s;
  hosts_.emplace_back().control = control_;
  std::vector<std::string> files = {records};
  if (DIR* d = opendir(folder.empty() ? "." : folder.c_str()); d != nullptr) {
    while (const dirent* e = readdir(d))
      if (strncmp(e->d_name, "records.", 8) == 0) files.push_back(folder + e->d_name);
    closedir(d);
  }
  std::sort(files.begin() + 1, files.end());
  for (size_t i = 1; i < files.size(); ++i)
    if (const feign_status s = read_control(files[i], hosts_.emplace_back().control); s < 0)
      return s;
  for (Host& h : hosts_) h.name = host_->intern(host_, h.control.host, strlen(h.control.host));
  for (size_t i = 0; i < files.size(); ++i)
    if (const feign_status s = read_records(files[i], i); s < 0) return s;
  be_of_one_rank(processes_.begin(), processes_.end());
  be_of_one_rank(processes_.rbegin(), processes_.rend());
  std::vector<Process*> by_age;
  for (auto& [key, process] : processes_) {
    by_pid_[key.first] = &process;
    by_age.push_back(&process);
  }
  std::stable_sort(by_age.begin(), by_age.end(), [](const Process* a, const Process* b) {
    return a->key.second < b->key.second;
  });
  for (Process* const process : by_age) {
    // The last program of the parent that had begun by then.
    auto at = processes_.lower_bound({process->parent, process->key.second});
    if (at == processes_.begin() || (--at)->first.first != process->parent) continue;
    if (process->forked) process->made_by = &at->second;
    // What a rank starts is that rank's, too.
    if (process->rank < 0) process->rank = at->second.rank;
  }
  for (Host& h : hosts_) {
    // A recording that was cut off did not say when it ended.
    if (h.control.ended || h.best_tick <= h.control.tick_0) {
      h.best_tick = h.control.tick_1;
      h.best_ns = h.control.ns_1;
    }
  }
  align();
  for (const auto& [key, process] : processes_)
    origin_ = std::min(origin_, process.host->to_main(key.second));
  for (auto& [key, lane] : lanes_) {
    if (const feign_status s = lane->fill(); s < 0) return s;
    if (!lane->empty()) later_.push_back(lane.get());
  }
  std::stable_sort(later_.begin(), later_.end(),
                   [](Lane* a, Lane* b) { return a->front().start > b->front().start; });
  return FEIGN_OK;
}

// What feign record wrote down of the layers of third parties, in the order of their numbers.
feign_status Provider::read_third(const std::string& path) {
  if (control_.third[0][0] == '\0') return FEIGN_OK;
  constexpr size_t kMost = size_t{16} << 20;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail("open " + path + ": " + strerror(errno), FEIGN_ERR_IO);
  std::string text;
  char buffer[65536];
  for (ssize_t n = 1; n > 0 && text.size() < kMost;) {
    n = read(fd, buffer, sizeof buffer);
    if (n > 0) text.append(buffer, static_cast<size_t>(n));
  }
  close(fd);
  auto layers = feign::read_layers(text, path);
  if (!layers) return fail(layers.error().text());
  third_ = std::move(*layers);
  for (size_t i = 0; i < third_.size() && i < std::size(control_.third); ++i) {
    const feign_layer& layer = third_[i]->layer();
    if (layer.op_count == 0 ||
        strncmp(layer.name, control_.third[i], sizeof control_.third[i]) != 0)
      return fail(path + ": layer " + layer.name + ": is not the one that was recorded");
    const size_t number = FEIGN_CAPTURE_THIRD + i;
    ops_[number] = layer.op_count;
    if (const feign_status s = host_->register_layer(host_, &layer, &firsts_[number]); s < 0)
      return s;
  }
  return FEIGN_OK;
}

uint32_t Provider::op(uint32_t code) const {
  const uint32_t layer = code >> 12, number = code & 0xFFF;
  return number != 0 && number <= ops_[layer] ? firsts_[layer] + number - 1 : 0;
}

// The trace's number of a handle of a third party's layer. A child goes on with what its parent
// had.
uint32_t Provider::handle(Process& process, uint32_t number, bool made) {
  if (number == 0) return 0;
  uint32_t& mine = process.handles[number];
  if (mine == 0 && !made) {
    const Process* from = process.made_by;
    for (int depth = 0; from != nullptr && mine == 0 && depth < 64; from = from->made_by, ++depth)
      if (const auto at = from->handles.find(number); at != from->handles.end()) mine = at->second;
  }
  if (mine == 0 || made) mine = ++last_handle_;
  return mine;
}

// A handle is of the process that made it, in the trace it is of them all; and a call on a handle
// is one on the path that it was made from.
void Provider::third(Process& process, feign_activity& a, const feign_op_info& info) {
  bool has_path = false, makes2 = false, has_offset = false;
  for (uint32_t i = 0; i < info.arg_count; ++i) {
    has_path |= info.args[i].slot == FEIGN_SLOT_PATH;
    has_offset |= info.args[i].slot == FEIGN_SLOT_OFFSET;
    makes2 |= info.args[i].slot == FEIGN_SLOT_HANDLE2;
  }
  const bool opens = info.kind == FEIGN_KIND_OPEN;
  // Where in the file, its own calls know.
  if (!has_offset && (info.kind == FEIGN_KIND_READ || info.kind == FEIGN_KIND_WRITE))
    a.offset = FEIGN_NO_OFFSET;
  const uint32_t own = a.handle;
  a.handle = handle(process, own, opens && !makes2);
  a.handle2 = handle(process, a.handle2, opens && makes2);
  if (const uint32_t fresh = makes2 ? a.handle2 : a.handle; opens && fresh != 0 && a.path != 0)
    paths_[fresh] = a.path;
  if (!has_path && a.handle != 0)
    if (const auto at = paths_.find(a.handle); at != paths_.end()) a.path = at->second;
  if (info.kind == FEIGN_KIND_CLOSE && a.result >= 0) paths_.erase(a.handle);
}

uint32_t Provider::hint(Process& process, uint32_t handle, int depth) {
  if (const auto at = process.descriptors.find(handle); at != process.descriptors.end())
    return at->second;
  // The program before this one in the process had said so, or else the process that made it.
  if (depth > 64) return 0;
  if (auto before = processes_.find(process.key); before != processes_.begin())
    if (--before; before->first.first == process.pid)
      return hint(before->second, handle, depth + 1);
  const auto parent = by_pid_.find(process.parent);
  if (parent == by_pid_.end() || parent->second == &process) return 0;
  return hint(*parent->second, handle, depth + 1);
}

// What the process had when it was met, for calls on what nobody was seen to open.
void Provider::hints(Process& process, feign_activity& a) {
  if (a.file != 0) return;
  if (a.path != 0 && (a.handle == 0 || a.handle == FEIGN_CWD)) {
    size_t length = 0;
    const char* path = host_->text(host_, a.path, &length);
    if (length == 0 || path[0] == '/') return;
    const Process* from = &process;  // or whoever forked it, if nobody moved since
    for (int i = 0; i < 64 && from->cwd == 0 && from->made_by != nullptr; ++i) from = from->made_by;
    a.file = from->cwd;
  } else if (a.handle != 0 && a.handle != FEIGN_CWD) {
    a.file = hint(process, a.handle);
  }
}

// The program that the process goes on as, after an exec at that moment; null: nothing of it was
// recorded.
Process* Provider::started(const Process& before, Pid pid, uint64_t moment) {
  const auto [from, to] = starts_.equal_range(pid);
  uint64_t first = UINT64_MAX;
  for (auto s = from; s != to; ++s)
    if (before.host->to_main(s->second) >= moment) first = std::min(first, s->second);
  const auto at = processes_.find({pid, first});
  return at != processes_.end() ? &at->second : nullptr;
}

// … of that process, or one that it made, on the same host.
int32_t Provider::rank_of(const Process& of, int32_t pid) const {
  const Pid whole_pid = pid_on(static_cast<size_t>(of.pid >> 32), pid);
  const auto at = whole_pid == of.pid ? by_pid_.end() : by_pid_.find(whole_pid);
  return at == by_pid_.end() || at->second->rank < 0 ? of.rank : at->second->rank;
}

uint32_t Provider::where(Process& process, int depth) {
  if (!process.where)
    process.where = process.cwd == 0 && process.made_by != nullptr && depth < 64
                        ? where(*process.made_by, depth + 1)
                        : process.cwd;
  return *process.where;
}

// What the process has there.
feign::Descriptor& Provider::descriptor(Process& process, uint32_t handle, int depth) {
  if (const auto at = process.files.find(handle); at != process.files.end()) return at->second;
  constexpr int kDeepest = 64;
  feign::Descriptor d;
  auto before = processes_.find(process.key);
  if (depth > kDeepest)
    ;
  else if (before != processes_.begin() && (--before)->first.first == process.pid)
    d = descriptor(before->second, handle, depth + 1);
  else if (process.made_by != nullptr)
    d = descriptor(*process.made_by, handle, depth + 1);
  return process.files[handle] = d;
}

// The file that a call opens, by its name from "/" on; 0: not known.
uint32_t Provider::opened_by(Process& process, const feign_activity& a) {
  const bool from_cwd = a.handle == 0 || a.handle == FEIGN_CWD;
  return there_.whole(from_cwd ? where(process) : file_of(process, a.handle), a.path, host_);
}

// What its next call tells besides names.
void Provider::shows(Lane& lane, const feign::Call& call) {
  const feign_activity& a = lane.front().a;
  feign::Descriptor of;
  switch (call.effect) {
    case Effect::kOpen:
    case Effect::kCreat:
      if (a.result < 0) return;
      lane.opened.file = opened_by(lane.process(), a);
      lane.opened.open = std::make_shared<feign::Description>(
          feign::Description{++opens_, (a.flags & O_APPEND) != 0});
      of = lane.opened;
      break;
    case Effect::kRead:
    case Effect::kWrite:
    case Effect::kPread:
    case Effect::kPwrite:
    case Effect::kPread2:
    case Effect::kPwrite2:
    case Effect::kCopy:
    case Effect::kSeek:
    case Effect::kFlock:
    case Effect::kFcntl:
    case Effect::kFtruncate:
    case Effect::kClose:
      of = descriptor(lane.process(), a.handle);
      of.last = of.open.use_count() <= 2;  // there, and here
      if (a.file != 0) of.file = a.file;
      break;
    default:
      return;
  }
  lane.shown = feign::shown_by(call.effect, a, lane.front().values, of,
                               static_cast<uint64_t>(lane.pid()), host_);
}

void Provider::in_line(Lane* lane) {
  const feign::Call* const call = lanes_.size() > 1 ? lane->call() : nullptr;
  lane->shown = {};
  lane->opened = {};
  if (call != nullptr) shows(*lane, *call);
  lane->claims = {};
  if (call != nullptr) {
    feign_activity a = lane->front().a;
    const bool below = a.handle != 0 && a.handle != FEIGN_CWD && a.path != 0;
    if (a.file == 0 && (below || call->effect == Effect::kList))
      a.file = file_of(lane->process(), a.handle);
    lane->claims = feign::claims(call->effect, a);
    // Of what is read, descriptors tell within a process only.
    if (uint32_t& name = lane->claims[0].name; name >> 31 != 0)
      name = UINT32_C(1) << 31 | static_cast<uint32_t>(lane->pid() * 4099 + name);
    else
      there_.below(where(lane->process()), a.file, static_cast<uint64_t>(lane->pid()), call->effect,
                   lane->claims, a, host_);
  }
  heap_.emplace_back(lane->when(), lane);
  std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
}

// Takes whose call is next out of the heap; null: nobody's.
Lane* Provider::first() {
  for (; !later_.empty() && (heap_.empty() || later_.back()->front().start <= heap_.front().first);
       later_.pop_back()) {
    going_[later_.back()->pid()].push_back(later_.back()->front().a.stream);
    in_line(later_.back());
  }
  if (heap_.empty()) return nullptr;
  const uint64_t by = heap_[0].second->front().end;
  const size_t at = feign::first_of(
      0, heap_.size(), there_,
      [&](size_t i) {
        Lane* const lane = heap_[i].second;
        return i == 0 || lane->front().start <= by ? &lane->claims : nullptr;
      },
      [&](size_t late, size_t early, feign::Overtakes by_claims) {
        return shared_.overtakes(heap_[late].second->shown, heap_[early].second->shown, by_claims);
      },
      [&](size_t i) { return heap_[i].second->front().end; });
  Lane* const lane = heap_[at].second;
  if (const feign::Call* const call = lane->call(); call != nullptr) {
    there_.note(call->effect, lane->claims, lane->front().a, host_);
    shared_.note(lane->shown);
    Process& process = lane->process();
    if (const feign::Left left = feign::left_by(call->effect, lane->front().a);
        lanes_.size() > 1 && left.handle != 0)
      process.files[left.handle] = left.what == feign::Left::kOwn
                                       ? descriptor(process, lane->front().a.handle)
                                       : std::exchange(lane->opened, {});
    process.where = there_.moves(where(process), call->effect, lane->front().a, host_);
  }
  if (at == 0) {
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    heap_.pop_back();
  } else {
    heap_[at] = heap_.back();
    heap_.pop_back();
    std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
  }
  return lane;
}

void Provider::was_started(Process& process, const feign_activity& a, bool recorded) {
  const uint32_t from =
      a.handle == 0 || a.handle == FEIGN_CWD ? where(process) : file_of(process, a.handle);
  uint32_t path = there_.whole(from, a.path, host_);
  if (path == 0) path = a.path != 0 ? a.path : from;  // from: fexecve(3)
  Started& program = programs_[path != 0 ? host_->text(host_, path, nullptr) : "a program"];
  ++program.count;
  program.unseen += recorded ? 0 : 1;
  program.stream = a.stream;
}

// Of programs that were started, those that no library could be put into, and those that make
// system calls by themselves: their files tell, if they are still there.
void Provider::tell_what_is_missing() {
  constexpr size_t kTold = 10;
  feign_hooks hooks{};
  if (const int fd = ::open(options_.file[0], O_RDONLY | O_CLOEXEC); fd >= 0) {
    if (pread(fd, &hooks, sizeof hooks, kUnit) != sizeof hooks || hooks.magic != FEIGN_HOOK_MAGIC)
      hooks.count = 0;
    close(fd);
  }
  const auto hooked = [&](const std::vector<uint8_t>& id) {
    return std::any_of(std::begin(hooks.all),
                       std::begin(hooks.all) + std::min<uint64_t>(hooks.count, FEIGN_HOOK_MOST),
                       [&](const feign_hook_head& h) {
                         return !id.empty() && h.id_size == id.size() &&
                                memcmp(h.id, id.data(), id.size()) == 0;
                       });
  };
  size_t told = 0;
  for (const auto& [path, program] : programs_) {
    std::string what;
    uint64_t count = program.unseen;
    if (count != 0) {
      const std::string why = feign::why_not_recorded(path);
      what =
          why.starts_with(path + " ") ? "not in the trace: " : "not in the trace: " + path + ": ";
      what += why.empty() ? "it ended at once, ran as another user or in another root, or the "
                            "system let no library into it"
                          : why;
    } else if (const feign::OwnCalls own = feign::own_system_calls(path);
               own.sites != 0 && !hooked(own.id)) {
      count = program.count;
      what = "not in the trace: system calls that " + path +
             " makes by itself, if any, and not through libc: ";
      if (!own.go && !own.id.empty())
        what += "name it in the command (feign record -- PROGRAM …), or ";
      what += "--tracer strace";
    }
    if (count == 0) continue;
    if (++told <= kTold)
      host_->log(
          host_, FEIGN_LOG_WARN,
          (what + " (started " + (count == 1 ? "once" : std::to_string(count) + " times") + ")")
              .c_str());
    for (uint64_t i = 0; i < count; ++i)
      host_->left_out(host_, program.stream, "(program)", what.c_str(), 0, FEIGN_COMPUTED);
  }
  if (told > kTold)
    host_->log(
        host_, FEIGN_LOG_WARN,
        ("… and " + std::to_string(told - kTold) + " more such programs; feign info names them all")
            .c_str());
  programs_.clear();
  // The first process of a namespace has no parent that it could name, and is number 1.
  for (const auto& [key, process] : processes_) {
    const auto number = static_cast<int32_t>(process.pid),
               parent = static_cast<int32_t>(process.parent);
    if (number != 1 || parent != 0) continue;
    constexpr const char* kWhat =
        "processes in a PID namespace of their own (unshare --pid, a container) have their numbers "
        "there: whose children they are, and where they are in what they inherited, is not known";
    host_->log(host_, FEIGN_LOG_WARN, kWhat);
    host_->left_out(host_, lanes_.begin()->second->first_stream(), "(namespace)", kWhat, 0,
                    FEIGN_COMPUTED);
    break;
  }
}

// Processes that outlive the command: what they do from now on nobody reads.
void Provider::tell_who_goes_on() {
  const std::string records = options_.file[0];
  char folder[PATH_MAX], here[sizeof control_.host] = "";
  gethostname(here, sizeof here - 1);
  if (strcmp(here, control_.host) != 0 ||
      realpath((records.substr(0, records.rfind('/') + 1) + ".").c_str(), folder) == nullptr)
    return;
  std::string who;
  uint32_t count = 0;
  for (const auto& [pid, process] : by_pid_) {
    if (process->host != &hosts_.front()) continue;
    const std::string proc = "/proc/" + std::to_string(pid);
    std::ifstream environment(proc + "/environ"), name(proc + "/comm");
    std::string one;
    while (std::getline(environment, one, '\0') && one != std::string("FEIGN_CAPTURE=") + folder) {
    }
    if (!environment || !std::getline(name, one)) continue;
    if (count++ < 3) who += (who.empty() ? "" : ", ") + one + " " + std::to_string(pid);
  }
  if (count != 0)
    host_->log(host_, FEIGN_LOG_WARN,
               (std::to_string(count) + (count == 1 ? " process goes" : " processes go") +
                " on after the command (" + who + (count > 3 ? ", …" : "") +
                "): what they do from now on is not in the trace")
                   .c_str());
}

// Of a process whose end another one is told at that call, and that did not call for it: a signal
// ended it. Whether there are exits to be put before the call.
bool Provider::reaps(Lane& lane) {
  const Item& item = lane.front();
  const feign::Call* const call = lane.call();
  if (call == nullptr || call->effect != Effect::kWait) return false;
  const int64_t told = item.a.result > 0     ? item.a.result
                       : item.values.empty() ? 0
                                             : static_cast<int64_t>(item.values[0]);
  // With these it may only have been stopped.
  if (item.a.result < 0 || told <= 0 || told > INT32_MAX ||
      (item.a.flags & (WUNTRACED | WCONTINUED)))
    return false;
  const auto who =
      going_.find(pid_on(static_cast<size_t>(lane.pid() >> 32), static_cast<int32_t>(told)));
  if (who == going_.end()) return false;
  // Whoever traces it (ptrace) is told whenever it stops: then it has calls yet to come.
  const auto goes_on = [&](Lane* one) {
    return one->pid() == who->first && one->front().end >= item.end;
  };
  if (std::any_of(later_.begin(), later_.end(), goes_on) ||
      std::any_of(heap_.begin(), heap_.end(),
                  [&](const auto& waiting) { return goes_on(waiting.second); }))
    return false;
  ended_ = std::move(who->second);
  ended_at_ = time(item.end);
  going_.erase(who);
  return true;
}

// A call that nobody recorded.
feign_status Provider::emit(feign_sink* out, Effect effect, uint32_t stream, uint64_t at,
                            uint32_t mode) {
  const auto& calls = feign::posix_calls();
  const auto call =
      std::find_if(calls.begin(), calls.end(), [&](const auto& c) { return c.effect == effect; });
  feign_activity* const a = out->make(out);
  if (a == nullptr) return fail("out of memory", FEIGN_ERR_NOMEM);
  a->op = firsts_[FEIGN_CAPTURE_POSIX] + static_cast<uint32_t>(call - calls.begin()) - 1;
  a->stream = stream;
  a->start_ns = at;
  a->mode = mode;
  a->marks = FEIGN_NO_RESULT | FEIGN_INJECTED;
  return out->emit(out, a);
}

feign_status Provider::next(size_t want, feign_sink* out) {
  for (size_t done = 0; done < want;) {
    if (!ended_.empty()) {
      const uint32_t stream = ended_.back();
      ended_.pop_back();
      if (const feign_status s = emit(out, Effect::kExit, stream, ended_at_, 0); s < 0) return s;
      ++done;
      continue;
    }
    Lane* const lane = first();
    if (lane == nullptr) {
      tell_what_is_missing();
      tell_who_goes_on();
      for (const auto& [host, how, bound] : aligned_)
        for (const auto& [key, lane] : lanes_)
          if (lane->process().host == host) {
            host_->left_out(host_, lane->first_stream(), "clock",
                            (std::string(host->control.host) + ": " + how).c_str(),
                            static_cast<uint64_t>(whole(bound)), 0);
            break;
          }
      aligned_.clear();
      return FEIGN_END;
    }
    if (reaps(*lane)) {
      in_line(lane);
      continue;
    }
    // The umask that the command began with.
    constexpr uint32_t kUsual = 022;
    if (Host& host = hosts_[static_cast<size_t>(lane->pid() >> 32)];
        !std::exchange(host.begun, true) && host.control.umask != 0 &&
        host.control.umask - 1 != kUsual) {
      const Item& first = lane->front();
      if (const feign_status s = emit(out, Effect::kUmask, first.a.stream, time(first.start),
                                      (host.control.umask - 1) & 0777);
          s < 0)
        return s;
      ++done;
    }
    Item item = std::move(lane->front());
    lane->pop();
    Process& process = lane->process();
    const uint64_t start = time(item.start), duration = time(item.end) - start;
    if (item.code == FEIGN_CAPTURE_OP(FEIGN_CAPTURE_LEFT_OUT, FEIGN_CAPTURE_IDLE)) {
      host_->left_out(host_, item.a.stream, "no call",
                      "waits for a processor or a page (feign record --cpu-time)", duration, 1);
    } else if (item.code >> 12 == FEIGN_CAPTURE_LEFT_OUT) {
      if (const auto all = feign::posix_left_outs(); (item.code & 0xFFF) < all.size()) {
        const feign::LeftOutCall& l = all[item.code & 0xFFF];
        host_->left_out(host_, item.a.stream, l.name, l.why, duration, l.passed);
      }
    } else if (const uint32_t op = this->op(item.code);
               op != 0 && host_->op_info(host_, op) != nullptr) {
      feign_activity* a = out->make(out);
      if (a == nullptr) return fail("out of memory", FEIGN_ERR_NOMEM);
      const uint32_t mine = a->host;
      *a = item.a;
      a->host = mine;
      a->op = op;
      a->start_ns = start;
      a->duration_ns = duration;
      a->compute_ns = ns(item.own);
      if (item.depth == 0 && std::exchange(process.fresh, false) && control_.start != 0) {
        a->compute_ns += ns(control_.start);
        host_->left_out(host_, a->stream, "start",
                        "of the library that records: not in the pause before the next call",
                        ns(control_.start), FEIGN_COMPUTED);
      }
      a->marks = FEIGN_AT_DEPTH(item.depth);
      // MPI_MODE_CREATE, and there was nothing.
      if (op == FEIGN_MPIIO_FILE_OPEN && (a->flags & 1) != 0 && a->length == 0 && a->result >= 0)
        a->marks |= FEIGN_CREATES;
      if (item.code >> 12 <= FEIGN_CAPTURE_STDIO) hints(process, *a);
      if (item.code >> 12 >= FEIGN_CAPTURE_THIRD) third(process, *a, *host_->op_info(host_, op));
      if (item.code >> 12 == FEIGN_CAPTURE_POSIX) {
        const Effect effect = feign::posix_calls()[item.code & 0xFFF].effect;
        if (effect == Effect::kExitGroup) going_.erase(lane->pid());
        if (effect == Effect::kClose) process.descriptors[a->handle] = 0;
        // Whichever thread calls exec, the process goes on under its own number.
        if (effect == Effect::kExec && a->result >= 0) {
          a->stream = lane->first_stream();
          Process* const next = started(process, lane->pid(), item.start);
          if (next != nullptr) next->fresh = true;
          was_started(process, *a, next != nullptr);
        }
        if (effect == Effect::kExit || effect == Effect::kExitGroup) a->marks |= FEIGN_NO_RESULT;
        // A launcher's child may be a rank: its stream is there when it is made.
        if ((effect == Effect::kFork || effect == Effect::kVfork || effect == Effect::kClone) &&
            process.rank < 0)
          if (const auto child = static_cast<int32_t>(a->result); rank_of(process, child) >= 0)
            lane->stream_of(child, child);
      }
      if (!item.values.empty())
        if (const feign_status s = host_->set_values(host_, a, item.values.data(),
                                                     static_cast<uint32_t>(item.values.size()));
            s < 0)
          return s;
      if (const feign_status s = out->emit(out, a); s < 0) return s;
      ++done;
    }
    if (const feign_status s = lane->fill(); s < 0) return s;
    if (!lane->empty()) in_line(lane);
  }
  return FEIGN_OK;
}

// ---- the table
// ------------------------------------------------------------------------------------

int probe(const char*, const void* head, size_t size) noexcept {
  constexpr uint64_t kMagic = FEIGN_CAPTURE_MAGIC;
  return size >= sizeof kMagic && memcmp(head, &kMagic, sizeof kMagic) == 0 ? 100 : 0;
}

constexpr feign_provider kApi = feign::provider<Provider, Options>(probe);
constexpr feign_component kComponent = feign::component<Options>(
    kApi, "capture", "Reads the raw folder that feign record leaves behind if it is cut off.",
    kOptions);
constexpr const feign_component* kComponents[] = {&kComponent, nullptr};

}  // namespace

FEIGN_ROLES(FEIGN_PROVIDER);
extern "C" const feign_plugin feign_plugin_v1 = {
    sizeof(feign_plugin), FEIGN_ABI_MINOR, "capture", FEIGN_VERSION, "MIT", kComponents};
