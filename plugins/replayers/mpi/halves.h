// SPDX-License-Identifier: MIT
// Ranks that were killed leave a trace in which the last calls of others have no other half: a
// receive whose send was under way, a barrier to which not all have come. They cannot be made.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "feign.h"
#include "trace/mpi_args.h"

namespace feign::mpi {

struct Replayer;

// What of a call has no other half in the trace.
struct Lack {
  bool send = false, receive = false, meeting = false;
  std::vector<uint64_t> started;  // of persistent requests, these
  // Whether nothing of a call that does this is left.
  bool all(Does does) const {
    return meeting || (does == Does::kSendReceive ? send && receive : send || receive);
  }
};

// The n-th message between two ranks under one tag belongs to the n-th receive of such, and the
// n-th calls of a communicator's members belong together, as for rule mpi of modifier depend.
class Halves {
 public:
  explicit Halves(Replayer& of) : r_(of) {}
  // Called by all processes, which tell each other what they are to replay: so it is known to which
  // messages and meetings all will come. How many calls lack something, of all processes. False if
  // some process could not read its part; what this one's reading came to is in `looked`.
  bool find(const feign_plan* plan, std::map<uint64_t, Lack>& lacks, uint64_t& count,
            feign_status& looked);

 private:
  struct Way {
    uint64_t comm;  // a number for its text, the same in all processes
    int64_t from, to, tag;
    auto operator<=>(const Way&) const = default;
  };
  struct Kept {  // a persistent request
    Way way;
    bool sends, known;
  };
  using Counts = std::map<Way, uint64_t>;

  static feign_status each(void* ctx, const feign_activity* a) noexcept;
  void look(const feign_activity& a);
  void sends(const Way& way, const feign_activity& a, uint64_t started);
  void receives(const Way& way, const feign_activity& a, uint64_t started);
  void comes(uint32_t comm, const feign_activity& a);
  Way way(uint32_t comm, int64_t from, int64_t to, int64_t tag) const;
  const std::vector<uint32_t>& members(uint32_t comm);
  bool exchange();

  Replayer& r_;
  std::map<uint64_t, Lack>* lacks_ = nullptr;  // null: they are counted so far
  uint32_t stream_ = 0;
  int64_t rank_ = -1;           // recorded, the stream's
  Counts sent_, taken_, came_;  // by this process so far; came: `from` alone
  Counts all_sent_, all_taken_, all_came_;
  std::set<Way> anybody_;  // `to` receives from whom the trace does not tell
  std::map<std::pair<int64_t, uint64_t>, Kept> kept_;         // by rank and request
  std::map<std::pair<int64_t, uint64_t>, uint32_t> windows_;  // their communicators
  std::map<uint32_t, uint32_t> files_;                        // by handle: the same
  std::map<uint32_t, std::vector<uint32_t>> members_;         // by communicator
};

}  // namespace feign::mpi
