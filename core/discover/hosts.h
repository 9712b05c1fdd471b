// SPDX-License-Identifier: MIT
// Watch posts on other hosts: `feign discover-post` there, started as mpirun starts its own there,
// answers over TCP what this host's post answers itself (post.h). What nodes recorded there comes
// over the same connection.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "nlohmann/json_fwd.hpp"

namespace feign::discover {

class Hosts {
 public:
  Hosts() = default;
  Hosts(const Hosts&) = delete;
  Hosts& operator=(const Hosts&) = delete;
  ~Hosts();

  // Starts a post on each. `reach` is a command like ssh: it gets a host and a command for its
  // shell.
  Result<void> open(const std::vector<std::string>& names, const std::string& reach);
  size_t size() const { return far_.size(); }
  const std::string& name(size_t i) const { return far_[i].name; }
  Result<nlohmann::json> ask(size_t i, const nlohmann::json& question);
  // The same moment by the counters of both hosts; once as a run begins, and once when it is over.
  Result<void> read_clock(size_t i, bool over);
  // Brings what was recorded there into this host's raw folder, as that host's part of it.
  Result<void> fetch(size_t i, const std::string& raw);
  // Processes of this host that keep the others' posts.
  std::vector<pid_t> processes() const;

 private:
  struct Far {
    std::string name, buffer;
    pid_t process = -1;
    int socket = -1;
    struct {
      uint64_t tick = 0, ours = 0, bound = 0;  // give or take `bound`
    } clock[2];                                // as a run begins, and when it is over
  };
  std::vector<Far> far_;
};

// `feign discover-post ADDRESSES PORT NAME`: answers the discover at one of these addresses, until
// that is gone; its first line of input shows that it was called. [main]
Result<void> keep_post(const std::string& addresses, const std::string& port,
                       const std::string& name);

}  // namespace feign::discover
