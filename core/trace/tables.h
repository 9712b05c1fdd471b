// SPDX-License-Identifier: MIT
// What all stages of one run share: strings, ops, streams, and the account of what was left out.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "feign.h"
#include "trace/call.h"
#include "trace/strings.h"

namespace feign {

// All ops of all layers, by id. Those of layers/*.h come first, at the ids of their FEIGN_…
// constants, with room between them; ids of others count on in order of registration.
// [main]
class Ops {
 public:
  Ops();
  Result<uint32_t> add(const feign_layer& layer);  // the first op's id
  const feign_op_info* info(uint32_t op) const { return op < ops_.size() ? ops_[op] : nullptr; }
  // What resolve and prepare know of an op; null for layers that are not ours.
  const Call* call(uint32_t op) const { return op < calls_.size() ? calls_[op] : nullptr; }
  uint32_t find(std::string_view layer, std::string_view name) const;  // 0 if unknown
  uint32_t size() const { return static_cast<uint32_t>(ops_.size()); }
  // Whether it is of layers/*.h; all others are a plug-in's or a file's.
  bool own(uint32_t op) const { return op < others_; }

 private:
  // A plug-in's description is copied in full: reports outlive the run that it was part of.
  struct Copy {
    std::string name, layer;
    std::vector<std::string> arg_names;
    std::vector<feign_arg_info> args;
    std::vector<std::string> texts;  // of names
    std::vector<feign_name> names;
    explicit Copy(const feign_op_info& from);
  };
  uint32_t append(const feign_layer& layer, bool copied);
  void add_own(const feign_layer& layer, std::span<const Call> calls = {});

  std::vector<const feign_op_info*> ops_;                // [0] is null
  std::vector<std::unique_ptr<feign_op_info[]>> infos_;  // of each layer
  std::vector<std::unique_ptr<Copy>> copies_;
  std::vector<const Call*> calls_;
  uint32_t others_ = 0;  // the first op that is not ours
  std::map<std::string, std::pair<uint32_t, uint32_t>, std::less<>> layers_;  // first, count
};

// The recorded threads of control. A stream's number never changes. [any thread]
class Streams {
 public:
  // The stream of these recorded ids (host, rank, thread, again), made at first use. A parent is
  // noted.
  uint32_t find_or_add(const feign_stream_info& info);
  // 0: there is none. A launcher is no rank, and what it made may be one: of no rank, any.
  uint32_t find(const feign_stream_info& info) const;
  // The same of one that a stream makes.
  uint32_t find_or_add_child(const feign_stream_info& info);
  // A further stream of the same recorded ids: a thread id came back after its thread had ended.
  uint32_t add_again(uint32_t stream);
  // Appends a stream as it stands, parent and all (the native format, whose file lists them in
  // order).
  uint32_t add(const feign_stream_info& info);
  feign_stream_info info(uint32_t stream) const;  // zeroed with id 0 if unknown
  void set_parent(uint32_t stream, uint32_t parent, uint64_t parent_id);
  void set_process(uint32_t stream, int64_t process);
  uint32_t size() const {  // one more than the greatest number
    return count_.load(std::memory_order_acquire);
  }

 private:
  struct Key {
    uint32_t host;
    int64_t thread;
    uint32_t again;
    int32_t rank;
    auto operator<=>(const Key&) const = default;
  };
  uint32_t append(const feign_stream_info& info);

  mutable std::mutex mutex_;
  std::atomic<uint32_t> count_{1};
  std::vector<feign_stream_info> infos_{feign_stream_info{}};
  static Key key_of(const feign_stream_info& i) { return {i.host, i.thread, i.again, i.rank}; }
  std::map<Key, uint32_t> by_key_;
};

// Calls of the trace that did not become activities, by name and reason.
struct LeftOut {
  uint64_t count = 0;
  uint64_t duration_ns = 0;
};
using LeftOuts = std::map<std::pair<std::string, std::string>, LeftOut>;

// A value that was measured beside a trace, over all of its records.
struct Statistic {
  std::string where, group, name, unit;
  uint64_t count = 0;
  double least = 0, mean = 0, greatest = 0;
  double seconds = 0;  // from the first record to the last
};

struct Tables {
  Strings strings;
  Ops ops;
  Streams streams;
  LeftOuts left_out;
  std::vector<Statistic> statistics;
  static constexpr size_t kMostNotes = 100;  // of each sort
  std::mutex notes_mutex;                    // instances may speak while others do
  std::vector<std::string> notes;            // what plug-ins said once a run (FEIGN_LOG_INFO)
  std::vector<std::string> warnings;         // … what they warned of; said already
  std::vector<std::string> sources;          // input files, as FEIGN_PLACE_SOURCE counts them

  // "file:line", for messages; "activity" text if the source is unknown.
  std::string place(uint64_t place) const;
};

}  // namespace feign
