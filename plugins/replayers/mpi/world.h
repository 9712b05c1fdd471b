// SPDX-License-Identifier: MIT
// MPI as this process has joined it: initialised once, for the ranks and for the replayer.
#pragma once

#include <mpi.h>

#include <memory>

#include "feign.h"

namespace feign::mpi {

struct World {
  int rank = 0, size = 1;
  MPI_Comm messages = MPI_COMM_NULL;  // the host's
  MPI_Comm world = MPI_COMM_NULL;     // the replay's
  World();
  ~World();
  bool ok = false;
};

// Says why, and ends all processes. [any thread]
[[noreturn]] void end_all(const char* why, const char* more = "") noexcept;
// The replay needs this call for itself, and others wait for what it does: where it failed, all
// end. (Not of what MPI is only asked for in this process: sizes, ranks, datatypes.)
[[noreturn]] void failed(int status, const char* call) noexcept;
inline void must(int status, const char* call) noexcept {
  if (status != MPI_SUCCESS) failed(status, call);
}
#define FEIGN_MUST(call) ::feign::mpi::must((call), #call)

// MPI can be joined once in a process: whoever is first joins, who is last leaves. Null, with the
// reason in `why`, if it cannot be.
std::shared_ptr<World> join(const char*& why);

// What the program told MPI, as far as that is safe here.
void initialised_for(bool several);

extern const feign_component kRanksComponent;
extern const feign_component kReplayerComponent;

}  // namespace feign::mpi
