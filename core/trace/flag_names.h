// SPDX-License-Identifier: MIT
// A flags argument in words: O_RDWR|O_CREAT.
#pragma once

#include <cinttypes>
#include <cstdio>
#include <string>

#include "feign.h"

namespace feign {

// Names for as many bits as have one: those of several bits first, as they are listed.
inline void add_flag_names(std::string& to, const feign_arg_info& arg, uint64_t value) {
  uint64_t left = value;
  bool any = false;
  const auto name = [&](const char* text) {
    to += any ? "|" : "";
    to += text;
    any = true;
  };
  if (value == 0) {
    for (uint32_t i = 0; i < arg.name_count; ++i)
      if (arg.names[i].value == 0) return name(arg.names[i].name);
    to += '0';
    return;
  }
  for (int wanted = 63; wanted >= 1; --wanted)
    for (uint32_t i = 0; i < arg.name_count; ++i) {
      const uint64_t bits = arg.names[i].value;
      if (bits == 0 || __builtin_popcountll(bits) != wanted || (left & bits) != bits) continue;
      name(arg.names[i].name);
      left &= ~bits;
    }
  if (left != 0) {
    char number[24];
    snprintf(number, sizeof number, "0x%" PRIx64, left);
    name(number);
  }
}

}  // namespace feign
