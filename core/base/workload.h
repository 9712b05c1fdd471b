// SPDX-License-Identifier: MIT
// What in a trace is the program's work, and what comes with starting any program: the loader,
// the C library, an interpreter's own modules, Open MPI and what it looks up. docs/fidelity.md has
// the rules for users.
#pragma once

#include <cstring>

#include "base/path.h"

namespace feign {

// Folders, all below included; then globs.
inline constexpr const char* kNoiseFolders[] = {"/bin",
                                                "/sbin",
                                                "/lib",
                                                "/lib32",
                                                "/lib64",
                                                "/libx32",
                                                "/usr/bin",
                                                "/usr/sbin",
                                                "/usr/lib",
                                                "/usr/lib32",
                                                "/usr/lib64",
                                                "/usr/libexec",
                                                "/usr/share",
                                                "/usr/local/bin",
                                                "/usr/local/sbin",
                                                "/usr/local/lib",
                                                "/usr/local/lib64",
                                                "/usr/local/share",
                                                "/etc",
                                                "/proc",
                                                "/sys",
                                                "/dev",
                                                "/run",
                                                "/var/run",
                                                "/var/cache/ldconfig"};
inline constexpr const char* kNoiseGlobs[] = {"**/*.so",
                                              "**/*.so.*",
                                              "**/site-packages/**",
                                              "**/dist-packages/**",
                                              "**/__pycache__/**",
                                              "**/openmpi/**",
                                              "**/openmpi-*/**",
                                              "**/.openmpi/**",
                                              "**/.pmix/**",
                                              "**/pmix-*/**",
                                              "**/ompi.*",
                                              "**/ompi.*/**",
                                              "**/pmix_dstor_*/**",
                                              "**/prte.*/**",
                                              "**/openmpi-sessions-*/**",
                                              "**/vader_segment.*",
                                              "**/mca-params.conf"};

inline bool is_noise(const char* path) {
  for (const char* folder : kNoiseFolders) {
    const size_t length = strlen(folder);
    if (strncmp(path, folder, length) == 0 && (path[length] == '/' || path[length] == '\0'))
      return true;
  }
  for (const char* glob : kNoiseGlobs)
    if (glob_fits(glob, path)) return true;
  return false;
}

}  // namespace feign
