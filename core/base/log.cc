// SPDX-License-Identifier: MIT
#include "base/log.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>

#include "feign.h"

namespace feign {
namespace {
std::atomic<int> g_level{FEIGN_LOG_WARN};
}

void set_log_level(int level) { g_level.store(level, std::memory_order_relaxed); }
int log_level() { return g_level.load(std::memory_order_relaxed); }

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char byte : text) {
    const auto c = static_cast<unsigned char>(byte);
    if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7F) {
      char hex[8];
      snprintf(hex, sizeof hex, "\\x%02x", c);
      out += hex;
    } else {
      out += byte;
    }
  }
  return out;
}

void log(int level, const std::string& text) {
  if (level > log_level()) return;
  // What provider feign says begins so already.
  const std::string line = (text.starts_with("feign: ") ? "" : "feign: ") + printable(text) + "\n";
  if (write(STDERR_FILENO, line.data(), line.size()) < 0) return;  // nowhere left to say it
}

}  // namespace feign
