// SPDX-License-Identifier: MIT
// What modifiers that rewrite paths do with the path that a call came back with: a link's target.
#pragma once

#include <cstddef>
#include <cstdint>

#include "feign.h"

namespace feign {

// Puts `now` in place of an activity's second path. Where the call told that path (readlink), its
// result is as much longer as the path is, and so is the buffer: what fitted fits, what was cut is.
inline void set_path2(const feign_host* host, feign_activity& a, uint32_t now) {
  const uint32_t before = a.path2;
  a.path2 = now;
  if (now == before || a.result <= 0) return;
  const feign_op_info* info = host->op_info(host, a.op);
  if (info == nullptr || info->kind != FEIGN_KIND_STAT) return;
  for (uint32_t i = 0; i < info->arg_count; ++i)
    if (info->args[i].slot == FEIGN_SLOT_PATH2 && info->args[i].type == FEIGN_ARG_PATH) {
      size_t old_length = 0, length = 0;
      (void)host->text(host, before, &old_length);
      (void)host->text(host, now, &length);
      const auto longer = static_cast<int64_t>(length) - static_cast<int64_t>(old_length);
      if (a.result + longer <= 0) return;
      a.result += longer;
      a.length += static_cast<uint64_t>(longer);
    }
}

}  // namespace feign
