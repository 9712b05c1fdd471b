// SPDX-License-Identifier: MIT
// What an activity says, in words: for writer text, and for --explain.
#pragma once

#include <cinttypes>
#include <cstdio>
#include <string>

#include "feign.h"

namespace feign {

// What an activity's field holds of an argument; false if it is not kept.
inline bool value_of(const feign_activity& a, const feign_arg_info& arg, uint64_t& value) {
  switch (arg.slot) {
    case FEIGN_SLOT_HANDLE:
      value = a.handle;
      return true;
    case FEIGN_SLOT_HANDLE2:
      value = a.handle2;
      return true;
    case FEIGN_SLOT_PATH:
      value = a.path;
      return true;
    case FEIGN_SLOT_PATH2:
      value = a.path2;
      return true;
    case FEIGN_SLOT_OFFSET:
      value = a.offset;
      return true;
    case FEIGN_SLOT_LENGTH:
      value = a.length;
      return true;
    case FEIGN_SLOT_FLAGS:
      value = a.flags;
      return true;
    case FEIGN_SLOT_MODE:
      value = a.mode;
      return true;
    case FEIGN_SLOT_VALUE:
      value = arg.index < a.value_count ? a.values[arg.index] : 0;
      return true;
    default:
      return false;
  }
}

// "2 rank 1 4711/4712": number, rank if it has one, process and thread.
inline std::string stream_in_words(uint32_t id, const feign_stream_info& info) {
  std::string text = std::to_string(id);
  if (info.rank >= 0) text += " rank " + std::to_string(info.rank);
  return text + " " + std::to_string(info.process) + "/" + std::to_string(info.thread);
}

// A flags argument, O_RDWR|O_CREAT: names for as many bits as have one: those of several bits
// first, as they are listed.
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
