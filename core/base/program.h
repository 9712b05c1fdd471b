// SPDX-License-Identifier: MIT
// The running program.
#pragma once

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

}  // namespace feign
