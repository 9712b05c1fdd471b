// SPDX-License-Identifier: MIT
// What in a trace is the program's work, and what comes with starting any program: the loader,
// the C library, an interpreter's own modules, Open MPI and what it looks up. docs/fidelity.md has
// the rules for users.
#pragma once

#include <cstring>
#include <string_view>

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
                                              "/dev/shm",
                                              "/dev/shm/open_mpi.*",
                                              "/dev/shm/sm_segment*",
                                              "/dev/shm/osc_*",
                                              "/dev/shm/sem.*",
                                              "/dev/shm/ucx_shm_*",
                                              "/dev/shm/mpich_*",
                                              "/dev/shm/Intel_MPI_*",
                                              "/dev/shm/PostgreSQL.*",
                                              "/dev/shm/psm_*",
                                              "/dev/shm/pym-*",
                                              "**/mca-params.conf"};

// Files here are storage as any, but for those that the globs name: memory that processes share.
inline constexpr std::string_view kSharedMemory = "/dev/shm";

inline bool is_noise(const char* path) {
  const bool storage = std::string_view(path).starts_with(kSharedMemory);
  for (const char* folder : kNoiseFolders) {
    const size_t length = strlen(folder);
    if (!storage && strncmp(path, folder, length) == 0 &&
        (path[length] == '/' || path[length] == '\0'))
      return true;
  }
  for (const char* glob : kNoiseGlobs)
    if (glob_fits(glob, path)) return true;
  return false;
}

}  // namespace feign
