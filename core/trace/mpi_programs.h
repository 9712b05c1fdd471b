// SPDX-License-Identifier: MIT
// Programs of MPI that ran at a time, each by a launcher of its own: their ranks and communicators
// are called alike, and nothing in a trace tells one's messages from another's.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "feign.h"
#include "trace/mpi_args.h"

namespace feign::mpi {

constexpr const char* kAtOnce =
    "several programs of MPI ran at once, and their ranks are called alike";

class Programs {
 public:
  // A call of MPI or MPI-IO, in the order of the trace. Whether its process goes on as a rank that
  // another one was meanwhile.
  bool at_once(const feign_stream_info& of, Does does) {
    if (of.rank < 0 || of.process < 0) return false;
    const Process me{of.rank, of.host, of.process};
    const auto [at, first] = now_.try_emplace(of.rank, me);
    if (does == Does::kInit) before_.erase(me);  // a number that came back
    if (first || at->second == me) return false;
    before_.insert(at->second);
    at->second = me;
    return before_.contains(me);
  }

 private:
  using Process = std::tuple<int32_t, uint32_t, int64_t>;  // rank, host, number
  std::map<int32_t, Process> now_;                         // by rank
  std::set<Process> before_;
};

// The processes of one of them, as filter wants them: the first of each rank that the launcher of
// the first one started.
inline std::string one_program(const feign_host* host) {
  std::string list;
  std::set<int32_t> listed;
  feign_stream_info info{}, launcher{}, by{};
  info.struct_size = launcher.struct_size = by.struct_size = sizeof info;
  for (uint32_t s = 1; host->stream_info(host, s, &info) >= 0; ++s) {
    if (info.rank < 0 || info.process < 0 || info.parent == 0 ||
        host->stream_info(host, info.parent, &by) < 0 || by.rank >= 0)
      continue;
    if (list.empty()) launcher = by;
    if (by.process != launcher.process || by.host != launcher.host ||
        !listed.insert(info.rank).second)
      continue;
    list += (list.empty() ? "" : "+") + std::to_string(info.process);
  }
  return list.empty() ? "…" : list;
}

}  // namespace feign::mpi
