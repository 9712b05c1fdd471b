// SPDX-License-Identifier: MIT
// Copies of a library's text in which each system call is a jump (capture/hook.c maps them).
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"

namespace feign {

struct HookImage {
  std::string build_id;  // in hexadecimal
  uint32_t sites = 0, hooked = 0;
};

// Writes FOLDER/hook.BUILD-ID for this library. FEIGN_ERR_UNSUPPORTED: it has no build id, or this
// feign was built without a disassembler.
Result<HookImage> make_hook_image(const std::string& library, const std::string& folder);

}  // namespace feign
