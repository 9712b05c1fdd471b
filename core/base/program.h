// SPDX-License-Identifier: MIT
// The running program.
#pragma once

#include <signal.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstdlib>
#include <string>

namespace feign {

// Its file. Where there is no /proc, as the command named it; empty if that leads nowhere.
inline std::string own_program() {
  std::array<char, PATH_MAX> path{};
  if (readlink("/proc/self/exe", path.data(), path.size() - 1) > 0) return path.data();
  const auto* const named = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  return named != nullptr && realpath(named, path.data()) != nullptr ? path.data() : "";
}

// Whether who started it ignores the end of children, whose status would be lost here: from the
// first time on that this is asked, they are heeded.
inline bool children_were_ignored() {
  static const bool ignored = [] {
    struct sigaction action {};
    if (sigaction(SIGCHLD, nullptr, &action) != 0 || action.sa_handler != SIG_IGN) return false;
    signal(SIGCHLD, SIG_DFL);
    return true;
  }();
  return ignored;
}

}  // namespace feign
