// SPDX-License-Identifier: MIT
// How a trace is to be replayed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/content.h"
#include "base/error.h"
#include "prepare/caches.h"

namespace feign {

constexpr size_t kMostReplayers = 4;  // of one replay, each with layers of its own

enum class Pace { kAfap, kThink, kTimed };
// Recorded order over all streams; only within each stream, and what dependencies say; the same,
// with those that modifier `depend` inserts.
enum class Order { kTrace, kStream, kDepend };

// How pauses are passed: asleep but for the last stretch; asleep; looking at the clock; as the
// first, with processors that do not sleep deeply meanwhile; what was computing looking at the
// clock, on as many processors as there are, and the rest as the first.
enum class Compute { kHybrid, kSleep, kSpin, kAwake, kBusy };

struct ReplayOptions {
  std::string root;  // "" if none
  Pace pace = Pace::kAfap;
  Order order = Order::kTrace;
  bool order_given = false;        // several ranks have no recorded order over all streams
  double scale = 1.0;              // of think time; of start times
  std::optional<Compute> compute;  // none: busy at pace think, else hybrid
  uint32_t streams_per_core = 0;   // worker threads a processor, 0: up to 256 in all
  bool pin = false;                // each worker to one processor
  bool prepare = true;             // make what must exist
  Content content;                 // of what is prepared and written
  std::string content_text = "sparse";
  std::string map;           // recorded ranks to those that replay: "", "block", "cyclic", a file
  uint64_t patience_ns = 0;  // a call may wait this long for other ranks; 0: by the trace's length
  uint64_t max_bytes = 0;    // to write, prepared files included; 0: most of what is free
  DropCaches drop_caches = DropCaches::kNo;  // when all is prepared
  std::string before;      // a command for sh, after that, before the first call; "" if none
  std::string activities;  // file for what was done, activity by activity; "" if none
  std::string waits;       // file for who waited for whom; "" if none

  Compute passing() const {
    if (pace == Pace::kAfap) return Compute::kSleep;  // there is nothing to pass
    return compute.value_or(pace == Pace::kThink ? Compute::kBusy : Compute::kAwake);
  }
  // As fast as possible and in order, there is nothing to do at the same time.
  bool one_thread() const { return pace == Pace::kAfap && order == Order::kTrace; }
};

// What is said of a replay by name and text: as an option of `feign replay`, in a pipeline file,
// and of a lab's variant.
struct Setting {
  const char* name;
  const char* want;                                         // the texts that it takes
  bool (*set)(const std::string& text, ReplayOptions& to);  // false if it does not take it
};
// Null if there is none of that name.
const Setting* replay_setting(std::string_view name);
// "pace, order …": all names.
std::string replay_setting_names();
// Sets it, or says what it wants.
Result<void> set(ReplayOptions& to, const Setting& setting, const std::string& text);

}  // namespace feign
