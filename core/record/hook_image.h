// SPDX-License-Identifier: MIT
// Copies of libraries' texts in which each system call is a jump (capture/install.c maps them).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "capture/hook_format.h"

namespace feign {

struct HookImage {
  uint32_t sites = 0, hooked = 0;
};

// What a program has of instructions that enter the kernel, in its own text, not in libraries.
struct OwnCalls {
  uint32_t sites = 0;  // those that a call's number is loaded for close before
  bool go = false;
  std::vector<uint8_t> id;  // its build id; empty: none
};
OwnCalls own_system_calls(const std::string& program);

// The file hooks of a raw folder.
class HookImages {
 public:
  // FEIGN_ERR_UNSUPPORTED: the library has no build id, or this feign was built without a
  // disassembler. Data may lie between the code of a program, and look like it: of one, only calls
  // whose number is loaded close before (`by_number`).
  Result<HookImage> add(const std::string& library, bool by_number);
  Result<void> write(const std::string& path);

 private:
  std::vector<uint8_t> bytes_;
  std::vector<feign_hook_head> heads_;
};

}  // namespace feign
