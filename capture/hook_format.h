/* SPDX-License-Identifier: MIT */
/* The file hooks of the raw folder: libraries' texts with jumps in place of their system calls, and
 * the stubs that those lead to. Its first page says of which. Made by core/record/hook_image.cc,
 * mapped by capture/install.c. */
#ifndef FEIGN_CAPTURE_HOOK_FORMAT_H
#define FEIGN_CAPTURE_HOOK_FORMAT_H

#include <stdint.h>

#define FEIGN_HOOK_MAGIC 0x344b4f4f484e4745ull
#define FEIGN_HOOK_MOST 16u /* libraries */

struct feign_hook_head {
  uint8_t id[20]; /* the library's build id, or its beginning */
  uint32_t id_size;
  uint32_t sites, hooked;          /* system calls in it, and those that a jump took the place of */
  uint64_t text_address;           /* in the library, page-aligned */
  uint64_t text_offset, text_size; /* in this file; no size: nothing is hooked */
  uint64_t stubs_offset,
      stubs_size;    /* in this file; in memory their last 8 bytes are the hook's address */
  uint64_t distance; /* the stubs lie this far below the text, or above it: modulo 2^64 */
};

struct feign_hooks {
  uint64_t magic;
  uint64_t count;
  struct feign_hook_head all[FEIGN_HOOK_MOST];
};

#endif
