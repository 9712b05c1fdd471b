/* SPDX-License-Identifier: MIT */
/* What the names of one file have alike, as one number: a stat's first value where a file has
 * several names (feign_activity.values), in C and C++. */
#ifndef FEIGN_CAPTURE_IDENTITY_H
#define FEIGN_CAPTURE_IDENTITY_H

#include <stdint.h>

/* As stat(2) has it. */
static inline uint64_t feign_device(uint64_t major, uint64_t minor) {
  return (major & 0xFFF) << 8 | (major & 0xFFFFF000) << 32 | (minor & 0xFF) |
         (minor & 0xFFFFFF00) << 12;
}
static inline uint64_t feign_identity(uint64_t device, uint64_t inode) {
  return inode ^ device * 0x9E3779B97F4A7C15u;
}

#endif
