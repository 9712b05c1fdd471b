// SPDX-License-Identifier: MIT
// What provider capture is made of: the lanes of a raw folder (lane.cc), the folder (folder.cc),
// the order of their calls (provider.cc), and calls without a record (unrecorded.cc).
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "capture/format.h"
#include "feign.hpp"
#include "providers/overlap.h"
#include "trace/call.h"
#include "trace/own_layer.h"

namespace feign::capture {

struct Options {
  const char* const* file;
};
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

// Whatever a damaged file says.
inline int64_t whole(double value) {
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
inline Pid pid_on(size_t host, int32_t pid) {
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
  std::unordered_map<uint32_t, uint32_t> descriptors;  // handle -> what it is
  std::unordered_map<uint32_t, Descriptor> files;      // … of what it was seen to open
  // Handles of third parties' layers: their number in the process -> the trace's.
  std::unordered_map<uint32_t, uint32_t> handles;
  Process* made_by = nullptr;           // the program that forked it, if that was recorded
  std::vector<Process*> children;       // that this one forked
  bool made = false;                    // the call that did was met
  std::unordered_set<int32_t> threads;  // that it is known to have made
  std::unordered_set<int32_t> apart;    // that gave up to share descriptors, or the directory
};

class Provider;

// The records of one thread.
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
  uint64_t ends() const;     // when its last call did
  const Call* call() const;  // that the front is
  // What the next call of the thread on that name says of it, if it is near, and when it ended.
  std::pair<Claim, uint64_t> next_on(const Claim& name);
  Claims claims;  // of the front
  Shown shown;
  // Two of which these share no bit tell nothing of what is one's as well as the other's.
  uint64_t about() const;
  bool shares(const Lane& other) const;
  Descriptor opened;        // by the front
  std::deque<Item> around;  // what the front is within, and is told before it
  Process& process() const { return process_; }
  Pid pid() const { return pid_on(static_cast<size_t>(process_.pid >> 32), pid_); }
  int32_t thread() const { return thread_; }
  uint32_t first_stream() const { return stream_of(pid_, pid_); }
  uint32_t stream_of(int32_t process, int32_t thread) const;

 private:
  static const Call* call_of(const Item& item);
  static uint32_t made_by(const Item& item);
  size_t named_within() const;
  bool has_more() const;
  bool next_chunk();
  bool value_of(unsigned field, unsigned bytes, const uint8_t*& p, const uint8_t* end,
                uint64_t& value);
  bool next(Item& item);
  void give_up(Item& item);
  void look_ahead(Item& held);
  void after_handler(std::deque<Item>::iterator held);

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
    constexpr double kMost = 9e18;  // whatever a damaged file says
    return static_cast<uint64_t>(std::min(static_cast<double>(ticks) * ns_per_tick_, kMost));
  }
  Process* started(const Process& before, Pid pid, uint64_t moment);
  static bool goes_apart(Effect effect, const feign_activity& a);
  void takes_over(const Lane& lane);
  uint32_t goes_on_as(uint32_t stream) const;
  uint64_t others_end(const Lane& lane) const;
  int32_t rank_of(const Process& of, int32_t pid) const;
  uint32_t stream_of(const Process& of, int32_t process, int32_t thread) const;
  uint32_t where(Process& process, int depth = 0);
  Descriptor& descriptor(Process& process, uint32_t handle, int depth = 0);
  uint32_t file_of(Process& process, uint32_t handle) { return descriptor(process, handle).file; }
  uint32_t opened_by(Process& process, const feign_activity& a);
  void shows(Lane& lane, const Call& call);
  uint64_t reader(Lane& lane);
  void in_line(Lane* lane);
  bool loses_to(Lane& late, const Lane& early);
  static bool found_next(Lane& early, const Lane& late);
  Lane* first();
  uint32_t op(uint32_t code) const;
  void third(Process& process, feign_activity& a, const feign_op_info& info);
  uint32_t handle(Process& process, uint32_t number, bool made);
  void hints(Process& process, feign_activity& a);
  uint32_t hint(Process& process, uint32_t handle, int depth = 0);
  void was_started(Process& process, const feign_activity& a, bool recorded);
  void tell_what_is_missing();
  void tell_who_goes_on();
  uint64_t made_after(Pid pid, uint64_t moment) const;
  bool reaps(Lane& lane);
  bool all_end();
  void is_made(const Lane& lane, int32_t child, bool thread);
  bool makes(Process& child);
  bool makes_children(Process& maker);
  bool makes_before(Lane& lane);
  feign_status emit(feign_sink* out, Effect effect, feign_activity call);
  feign_status emit_owed(feign_sink* out, bool& emitted);
  feign_status emit_before(Lane& lane, feign_sink* out, bool& emitted);
  feign_status take(Lane& lane, feign_sink* out, bool& emitted);
  feign_status tell(const Lane& lane, Item item, feign_sink* out, bool& emitted);
  feign_status emit(const Lane& lane, const Item& item, uint32_t op, feign_sink* out);
  void keep_account(const Lane& lane, const Item& item, Effect effect, feign_activity& a);
  feign_status ended();

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
  struct Waiting {
    uint64_t when;
    Lane* lane;
    uint64_t about;
    bool operator>(const Waiting& other) const {
      return when != other.when ? when > other.when : lane > other.lane;
    }
  };
  std::vector<Waiting> heap_;
  Names there_;
  Account shared_;
  uint64_t opens_ = 0;
  std::unordered_set<Pid> recorded_, threads_;            // of which there are records
  std::unordered_map<Pid, std::vector<uint32_t>> going_;  // streams of those not known to be over
  std::vector<uint32_t> ended_;                           // … of one that is, to be told
  std::vector<Process*> unmade_;                          // to be told, too: see makes()
  std::unordered_map<uint32_t, uint32_t> streams_;        // those that go on as others
  uint64_t told_at_ = 0, last_start_ = 0;
  bool all_ended_ = false;
  Lane* taken_ = nullptr;  // first(), and still to come after what was put in before its call
  uint32_t firsts_[FEIGN_CAPTURE_LEFT_OUT] = {}, ops_[FEIGN_CAPTURE_LEFT_OUT] = {};
  std::vector<std::unique_ptr<OwnLayer>> third_;  // layers of third parties
  uint32_t last_handle_ = kFirstHandle;
  std::unordered_map<uint32_t, uint32_t> paths_;  // of their handles
};

template <typename T>
T load(const uint8_t* from) {
  T value;
  memcpy(&value, from, sizeof value);
  return value;
}

}  // namespace feign::capture
