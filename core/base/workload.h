// SPDX-License-Identifier: MIT
// What in a trace is the program's work, and what comes with starting any program: the loader,
// the C library, an interpreter's own modules, Open MPI and what it looks up. docs/fidelity.md has
// the rules for users.
#pragma once

#include <fnmatch.h>

#include <cstring>
#include <iterator>
#include <string>

namespace feign {

// Whether a path is one of a glob's: * within a component, ** across.
inline bool glob_fits(const std::string& glob, const char* path) {
  const size_t stars = glob.find("**");
  if (stars == std::string::npos) return fnmatch(glob.c_str(), path, FNM_PATHNAME) == 0;
  // fnmatch() knows no **: it is taken apart here.
  const std::string before = glob.substr(0, stars), after = glob.substr(stars + 2);
  const size_t length = strlen(path);
  for (size_t split = 0; split <= length; ++split) {
    const std::string head(path, split);
    if (fnmatch(before.c_str(), head.c_str(), FNM_PATHNAME) != 0) continue;
    for (size_t rest = split; rest <= length; ++rest)
      if (glob_fits(after, path + rest)) return true;
    return false;
  }
  return false;
}

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
