// SPDX-License-Identifier: MIT
// Which open file an activity ends.
#pragma once

#include <cstdint>

#include "feign.h"

namespace feign {

// The handle whose last descriptor goes with it; 0: none does. A second one is that which a dup2
// or freopen takes the place of, and not the one that it goes on with.
inline uint32_t last_of(const feign_activity& a) {
  if ((a.marks & FEIGN_LAST) == 0) return 0;
  return a.handle2 != 0 ? a.handle2 : a.handle;
}

}  // namespace feign
