// SPDX-License-Identifier: MIT
// The processes that run one replay together, as mpirun starts them: what they do together is built
// here from a barrier and messages, which a plug-in (feign_ranks) carries. The core itself knows
// nothing of MPI. docs/decisions/0016-ranks.md says why.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "plugin/plugin.h"
#include "trace/native.h"
#include "trace/tables.h"

namespace feign {

// What the environment says of a launcher: which of how many processes this is.
struct Launched {
  std::string by;  // the variable that says so; "" if there is none
  uint32_t rank = 0, size = 1;
};
Launched launched();

// --map: which replay rank does the streams of which recorded rank. A recorded rank is an MPI rank,
// or, where the trace has none, a process with all that it made.
struct RankMap {
  std::vector<uint32_t> by_stream;    // replay rank
  std::vector<uint32_t> by_recorded;  // by recorded rank
};

class Ranks {
 public:
  // Joins the others by the plug-in of that role; `shared`: recorded ranks share processes. [main]
  static Result<std::unique_ptr<Ranks>> join(const Launched& by, Plugins& plugins, Tables& tables,
                                             bool shared);

  uint32_t rank() const { return rank_; }
  uint32_t size() const { return size_; }
  const std::vector<std::string>& hosts() const { return hosts_; }  // by rank

  // The first failure of any, on all of them, with the rank before it; all must call it. Where a
  // signal asks for an end and one of them does not call it, all end. [main]
  Result<void> agree(Result<void> mine);
  // The text of rank 0, on all, or the end of all in the same way. [main]
  Result<std::string> tell_all(const std::string& text);
  void barrier();  // [main]
  // Rank 0 gets what all the others give; those that have not after `patience_ns` are left out.
  void gather(const std::string& mine, uint64_t patience_ns,
              const std::function<void(uint32_t rank, const std::string&)>& take);  // [main]

  // Somebody ends the replay: all others are told why. [any thread]
  void stop_all(const std::string& why);
  // Who was it, and why; "" while nobody has. [main]
  std::string stopped_by();
  // When any rank went on last, by this one's clock, if this one did at `mine`. Other hosts hear of
  // it once in `every_ns`. [main, while it watches]
  uint64_t went_on(uint64_t mine, uint64_t now, uint64_t every_ns);
  // A rank of this host that is gone without a word; "" if there is none. [main]
  std::string lost() const;
  [[noreturn]] void abort(int status);
  // From here on one thread of this process is in the plug-in at a time, or no longer so. Nothing
  // below needs it meanwhile, but passed() and has_passed(). [main, while no other thread is in it,
  // or it was told to expect several for a while]
  // `alone`: it is the only one that calls carry_on().
  void one_thread(bool one, bool alone = true);
  // The plug-in is to expect several threads at a time, before one_thread(false). [main]
  void expect_several();

  // What this rank's streams need of other ranks', and the others of its. All must call it. [main]
  Result<void> link(const std::shared_ptr<const NativeReader>& plan,
                    const std::vector<uint32_t>& mine, const std::vector<uint32_t>& rank_of,
                    const Tables& tables);
  // feign_run.common, once they are linked; may be null. [main]
  void* common() const { return common_; }
  // Whether an activity of the stream is of MPI's layers.
  bool calls_mpi(uint32_t stream) const { return calls_mpi_[stream] != 0; }
  // Whether several threads of a recorded rank call MPI, and nothing orders them.
  bool race(const std::vector<uint32_t>& mine, const RankMap& map) const;
  // Others wait for these of a stream, ids growing.
  struct Awaited {
    uint64_t id;
    uint32_t rank;
  };
  const std::vector<Awaited>& awaited(uint32_t stream) const { return awaited_[stream]; }
  // Everything of the stream up to this id has ended. [the stream's worker]
  void passed(uint32_t rank, uint32_t stream, uint64_t id);
  // Whether it is known that another rank's stream has. Looks for news. [any thread]
  bool has_passed(uint32_t stream, uint64_t id);
  // Who waits lets long messages go on, which others may need. [any thread]
  void carry_on();

 private:
  void tell_threads(int several);
  // What is waited for of streams of others: by rank and stream, ids.
  using Needs = std::vector<std::map<uint32_t, std::vector<uint64_t>>>;
  Result<void> look_for_needs(const std::shared_ptr<const NativeReader>& plan,
                              const std::vector<uint32_t>& mine,
                              const std::vector<uint32_t>& rank_of, const Tables& tables,
                              Needs& needs);
  // In rank 0 what each of them gives, or the end of all.
  std::vector<std::string> all_say(const std::string& mine);
  [[noreturn]] void end_without(const char* what);
  enum Channel : uint32_t { kAgree, kTell, kGather, kStop, kLink, kPassed, kWentOn, kNothing };
  explicit Ranks(std::unique_ptr<Instance> instance);
  Result<void> send(uint32_t rank, Channel channel, const std::string& data);
  // One message; "" and false if none came within the time, or a signal asked for an end.
  bool receive(Channel channel, uint32_t& from, std::string& data, uint64_t patience_ns);

  std::unique_ptr<Instance> instance_;
  const feign_ranks& api_;
  uint32_t rank_ = 0, size_ = 1;
  // What ranks of one host tell each other by memory that they share: how far each stream is, each
  // in a line of the cache of its own, and who ends the replay.
  struct alignas(64) Upto {
    std::atomic<uint64_t> id;
  };
  struct alignas(64) Stop {
    std::atomic<uint64_t> went_on;  // ns, by the clock that a host's ranks share
    std::atomic<uint32_t> said;
    char why[1012];
  };
  Upto* upto_ = nullptr;   // by stream; null: there is no such memory
  Stop* stops_ = nullptr;  // by rank; null, too, if there are several hosts
  void* common_ = nullptr;
  std::vector<uint8_t> near_;        // by stream: its rank is of this host
  std::vector<uint8_t> near_ranks_;  // by rank
  std::vector<uint8_t> calls_mpi_;   // by stream
  bool ordered_ = false;             // some stream of this rank depends on another of it
  std::atomic<bool> others_{true};   // who waits may be in the plug-in
  std::vector<std::string> hosts_;
  std::vector<int64_t> processes_;                   // by rank; 0 on other hosts
  std::vector<std::vector<Awaited>> awaited_;        // by stream
  std::unique_ptr<std::atomic<uint64_t>[]> passed_;  // by stream of another rank
  uint32_t streams_ = 0;
  // Of rank 0: what others, who do not wait in gather(), gave for one that is still to come.
  std::vector<std::vector<std::string>> early_;
  std::string stopped_by_;
  uint64_t latest_ns_ = 0;               // when this one went on last
  uint64_t heard_ns_ = 0, said_ns_ = 0;  // of ranks on other hosts that they went on, and to them
};

// `how`, of --map: "" (rank r on rank r), "block", "cyclic", or a file of lines
// "RECORDED[-RECORDED] REPLAY".
Result<RankMap> map_ranks(const std::string& how, const Tables& tables, uint32_t size);

}  // namespace feign
