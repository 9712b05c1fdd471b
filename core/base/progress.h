// SPDX-License-Identifier: MIT
// What takes long says how far it is, and ends when it is told to.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

namespace feign {

// How far it is; called about ten times a second. `done` of `total` (0: not known) activities.
using Progress = std::function<void(const char* stage, uint64_t done, uint64_t total)>;

// Set by a signal handler: end as soon as the calls under way are done, and report.
inline std::atomic<int> g_stop_signal{0};

// When the last one came that was passed on to a command instead (now_ns; 0: none was).
inline std::atomic<uint64_t> g_passed_on_ns{0};

}  // namespace feign
