// SPDX-License-Identifier: MIT
// A call as //TRACE's text has it: "write(3, 4096) = 4096". For writer tracetext, and for the raw
// traces of `feign discover`.
#pragma once

#include <fcntl.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "feign.h"

namespace feign {

inline void add_quoted(std::string& line, std::string_view text) {
  line += '"';
  for (const char byte : text) {
    const auto c = static_cast<unsigned char>(byte);
    if (c == '"' || c == '\\') {
      line += '\\';
      line += byte;
    } else if (c == '\n') {
      line += "\\n";
    } else if (c < 0x20 || c == 0x7F) {
      char hex[8];
      snprintf(hex, sizeof hex, "\\x%02x", c);
      line += hex;
    } else {
      line += byte;
    }
  }
  line += '"';
}

// `text(id)` is a string of the trace, `number(handle)` its descriptor; `result` is what the call
// came back with, in these numbers.
template <typename Text, typename Number>
void add_call(std::string& line, const feign_activity& a, const feign_op_info& info, int64_t result,
              Text&& text, Number&& number) {
  const auto has = [&](uint32_t slot) {
    for (uint32_t i = 0; i < info.arg_count; ++i)
      if (info.args[i].slot == slot) return true;
    return false;
  };
  const auto print = [&](const feign_arg_info& arg) {
    const auto at_value = arg.index < a.value_count ? a.values[arg.index] : 0;
    int64_t value = 0;
    switch (arg.slot) {
      case FEIGN_SLOT_PATH:
        return add_quoted(line, text(a.path));
      case FEIGN_SLOT_PATH2:
        return add_quoted(line, text(a.path2));
      case FEIGN_SLOT_OFFSET:
        value = static_cast<int64_t>(a.offset);
        break;
      case FEIGN_SLOT_LENGTH:
        value = static_cast<int64_t>(a.length);
        break;
      case FEIGN_SLOT_FLAGS:
        // A position is sought from one of these, by name; all other flags are numbers.
        if (info.kind == FEIGN_KIND_SEEK)
          for (uint32_t i = 0; i < arg.name_count; ++i)
            if (arg.names[i].value == a.flags) {
              line += arg.names[i].name;
              return;
            }
        value = a.flags;
        break;
      case FEIGN_SLOT_MODE:
        // Without O_CREAT there is none, and what was in its place is left from other calls.
        if (info.kind != FEIGN_KIND_OPEN || !has(FEIGN_SLOT_FLAGS) ||
            (a.flags & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY))) != 0)
          value = a.mode;
        break;
      case FEIGN_SLOT_VALUE:
        if (arg.type == FEIGN_ARG_LIST) {
          const bool data = info.kind == FEIGN_KIND_READ || info.kind == FEIGN_KIND_WRITE;
          if (data && a.value_count == 0) {  // only the sum is known
            value = static_cast<int64_t>(a.length);
            break;
          }
          line += '[';
          for (uint32_t i = arg.index; i < a.value_count; ++i)
            line += (i > arg.index ? ", " : "") + std::to_string(static_cast<int64_t>(a.values[i]));
          line += ']';
          return;
        }
        if (arg.type == FEIGN_ARG_STRING || arg.type == FEIGN_ARG_PATH)
          return add_quoted(line, text(static_cast<uint32_t>(at_value)));
        if (at_value == FEIGN_NO_OFFSET) {
          line += "NULL";
          return;
        }
        value = static_cast<int64_t>(at_value);
        break;
      default:
        break;
    }
    line += std::to_string(value);
  };
  line += info.name;
  line += '(';
  bool first = true;
  for (uint32_t i = 0; i < info.arg_count; ++i) {
    const feign_arg_info& arg = info.args[i];
    if (arg.slot == FEIGN_SLOT_NONE) continue;
    if (!first) line += ", ";
    first = false;
    // A directory's descriptor went into the absolute path.
    const bool second = arg.slot == FEIGN_SLOT_HANDLE2;
    if (arg.slot == FEIGN_SLOT_HANDLE || second) {
      const uint32_t handle = second ? a.handle2 : a.handle;
      const bool by_path = has(second ? FEIGN_SLOT_PATH2 : FEIGN_SLOT_PATH);
      if (by_path && (handle == 0 || info.kind == FEIGN_KIND_OPEN))
        line += "AT_FDCWD";
      else if (second && info.kind == FEIGN_KIND_DUP)
        line += std::to_string(result);
      else
        line += std::to_string(handle == 0 ? -1 : number(handle));
    } else if (arg.slot == FEIGN_SLOT_PATH && a.handle != 0 && info.kind != FEIGN_KIND_OPEN &&
               has(FEIGN_SLOT_HANDLE)) {
      line += "\"\"";  // of the descriptor's file
    } else {
      print(arg);
    }
  }
  line += ") = ";
  if (a.marks & FEIGN_NO_RESULT) {
    line += '?';
  } else if (a.result < 0 && a.result > -4096) {
    const char* name = strerrorname_np(static_cast<int>(-a.result));
    line += name != nullptr ? "-1 " + std::string(name) : std::to_string(a.result);
  } else {
    line += std::to_string(result);
  }
}

}  // namespace feign
