// SPDX-License-Identifier: MIT
// What a replayer that makes calls on files has to know before all else.
#pragma once

#include "feign.h"

// The replay that is asked for, if it has a root; null if not, and `status` is what to give back.
inline const feign_run* run_below_root(const feign_host* host, feign_status& status) {
  const auto* run = static_cast<const feign_run*>(host->extension(host, "feign.run/1"));
  if (run != nullptr && run->root_fd >= 0) return run;
  status =
      host->fail(host, FEIGN_ERR_ARGUMENT, "there is no root to replay below: want --root DIR");
  return nullptr;
}
