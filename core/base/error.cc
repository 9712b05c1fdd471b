// SPDX-License-Identifier: MIT
#include "base/error.h"

#include <cstring>

namespace feign {

Error errno_error(const std::string& doing, int errno_value) {
  char buffer[128];
  // The GNU strerror_r returns the text, which need not be in the buffer.
  return {FEIGN_ERR_IO, doing + ": " + strerror_r(errno_value, buffer, sizeof buffer)};
}

}  // namespace feign
