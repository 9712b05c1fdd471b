// SPDX-License-Identifier: MIT
#pragma once

#include <sys/stat.h>

namespace feign {

// That of this process: the system tells it in no other way. [while no other thread makes files]
inline mode_t umask_now() {
  const mode_t mask = umask(022);
  umask(mask);
  return mask;
}

}  // namespace feign
