// SPDX-License-Identifier: MIT
#include "base/log.h"

#include <unistd.h>

#include <atomic>

#include "feign.h"

namespace feign {
namespace {
std::atomic<int> g_level{FEIGN_LOG_WARN};
}

void set_log_level(int level) { g_level.store(level, std::memory_order_relaxed); }
int log_level() { return g_level.load(std::memory_order_relaxed); }

void log(int level, const std::string& text) {
  if (level > log_level()) return;
  const std::string line = "feign: " + text + "\n";
  if (write(STDERR_FILENO, line.data(), line.size()) < 0) return;  // nowhere left to say it
}

}  // namespace feign
