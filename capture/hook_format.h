/* SPDX-License-Identifier: MIT */
/* A file hook.BUILD-ID of the raw folder: a library's text with jumps in place of its system calls,
 * and the stubs that they lead to. Made by core/record/hook_image.cc, mapped by capture/hook.c. */
#ifndef FEIGN_CAPTURE_HOOK_FORMAT_H
#define FEIGN_CAPTURE_HOOK_FORMAT_H

#include <stdint.h>

#define FEIGN_HOOK_MAGIC 0x314b4f4f484e4745ull

struct feign_hook_head {
  uint64_t magic;
  uint64_t text_address;           /* in the library, page-aligned */
  uint64_t text_offset, text_size; /* in this file */
  uint64_t stubs_offset,
      stubs_size;    /* in this file; a page with the hook's address follows them in memory */
  uint64_t distance; /* the stubs lie this far below the text */
};

#endif
