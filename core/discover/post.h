// SPDX-License-Identifier: MIT
// What watches the nodes of one host: has the memory that they share and the raw folder that they
// record into, says whether they move, and lets the one that is held go on. The watcher (run.cc)
// asks; its own host's post answers at once, those of others over TCP (hosts.h).
//
//   {"ask": "begin", "plan": …, "limits": …}   a run is about to start: the libraries to be loaded
//   {"ask": "look", "epoch": n, "judge": …, "woke": …, "slowly": …}   who moves, who is held
//   {"ask": "release", "later": k}             lets the held node go on; holds it again before call
//   k
//   {"ask": "nodes"}                           what each is doing
//   {"ask": "clock"}                           the counter by which times are recorded there
//   {"ask": "end"}                             the run is over: lets all go on; who was killed
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "nlohmann/json_fwd.hpp"
#include "record/record.h"

struct feign_watch;
struct feign_watch_node;

namespace feign::discover {

// How long a node may be in one state before it counts as blocked; found out as runs go by.
struct Limits {
  uint64_t gap_ns = 0, cpu_ns = 0, call_ns = 0;
  double factor = 0;  // 0: the run's
};

void sleep_ns(uint64_t ns);
// A file's text, if it is short; false if there is none.
bool read_small(const char* path, char* to, size_t size);

class Post {
 public:
  // `host`: stands before the names of nodes that are no ranks; "" on the watcher's own host.
  explicit Post(std::string host) : host_(std::move(host)) {}
  Post(const Post&) = delete;
  Post& operator=(const Post&) = delete;
  ~Post();

  Result<nlohmann::json> answer(const nlohmann::json& question);
  // Ends what is left of the nodes: for a host on which they are nobody's children.
  void end_nodes();
  const std::string& raw() const { return raw_path_; }

 private:
  // What is remembered of a node while another is held.
  struct Cpu {
    uint64_t ran_ns = 0, delayed_ns = 0;
    char state = 0;  // 'R', 'S' …; 0: it is gone
  };
  struct Look {
    uint64_t since = 0, steps = 0, from = 0;  // from: ns, since when it has not moved
    uint32_t state = 0, waits = 0;
    uint64_t epoch = UINT64_MAX;  // the time of stillness that `waits` counts from
    Cpu cpu;                      // then
  };

  Result<nlohmann::json> begin(const nlohmann::json& question);
  Result<nlohmann::json> look(const nlohmann::json& question);
  void release(const nlohmann::json& question);
  nlohmann::json nodes();
  nlohmann::json end();
  static Cpu cpu_of(int32_t pid, int32_t thread);
  bool ended(feign_watch_node& node);
  bool blocked(uint32_t index, uint64_t epoch, uint64_t now);
  std::string key(const feign_watch_node& node) const;
  uint32_t count() const;
  double factor_of(const Limits& l) const { return l.factor > 0 ? l.factor : factor_; }
  void close();

  std::string host_, raw_path_;
  feign_watch* watch_ = nullptr;
  int memory_ = -1;
  std::unique_ptr<RawFolder> raw_;
  std::map<std::string, Limits> limits_;
  double factor_ = 2;
  uint64_t floor_ns_ = 0;  // nothing counts as blocked for less
  std::vector<Look> looks_;
  uint64_t epoch_ = UINT64_MAX;
  std::vector<std::string> died_;
};

}  // namespace feign::discover
