// SPDX-License-Identifier: MIT
// Who waits for whom right now, so that a wait that can never end is told instead of kept.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "replay/gate.h"
#include "trace/tables.h"

namespace feign {

// A worker's wait for another to have ended everything up to an id.
struct Wait {
  const Gate* gate = nullptr;
  uint64_t id = 0;          // that must have ended
  uint32_t stream = 0;      // that waits
  uint64_t place = 0;       // of the activity that waits
  uint32_t for_stream = 0;  // 0: not known
  uint32_t for_worker = 0;  // who owns the gate
  uint32_t rule = 0;        // string id
};

class Waits {
 public:
  Waits(size_t workers, const Tables& tables) : tables_(tables), slots_(workers) {}

  // About the worker itself. [that worker]
  void begin(uint32_t worker, const Wait& wait);
  void end(uint32_t worker);
  void gone(uint32_t worker);

  // Empty, or, if every worker that is left has been in one and the same wait since the last call
  // and none of these has come to its end, who waits for whom. Nothing can end such waits: whoever
  // could is one of them. [one thread]
  std::string stuck();

 private:
  // What was waiting at two times without a change in between was waiting all the time between, so
  // there was a moment at which all of them were.
  struct Slot {
    std::mutex mutex;
    Wait wait;
    bool waits = false, gone = false;
    uint64_t changes = 0, seen = 0;
  };
  std::string describe(const Wait& wait) const;

  const Tables& tables_;
  std::vector<Slot> slots_;
};

}  // namespace feign
