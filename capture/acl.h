/* SPDX-License-Identifier: MIT */
/* Access control lists as the kernel hands them over (its posix_acl_xattr.h; acl(5)), in C and C++:
 * a version, then entries of a tag, permissions and an id. */
#ifndef FEIGN_CAPTURE_ACL_H
#define FEIGN_CAPTURE_ACL_H

#include <stdint.h>

struct feign_acl_entry {
  uint16_t tag, bits;
  uint32_t id;
};
enum { FEIGN_ACL_VERSION = 2, FEIGN_ACL_LEAST = 4 + 3 * 8 }; /* bytes: of owner, group, others */

/* The permission bits that a list stands for, with those of one more entry; 0 at first. A mask is
 * what counts for the group, wherever it stands. */
struct feign_acl_mode {
  uint32_t user, group, other;
  int masked;
};
static inline void feign_acl_add(struct feign_acl_mode* m, struct feign_acl_entry e) {
  const uint32_t bits = e.bits & 7u;
  if (e.tag == 1) m->user = bits;
  if (e.tag == 32) m->other = bits;
  if (e.tag == 16 || (e.tag == 4 && !m->masked)) m->group = bits;
  m->masked |= e.tag == 16;
}
/* As st_mode of a regular file. */
static inline uint32_t feign_acl_st_mode(const struct feign_acl_mode* m) {
  return 0100000u | m->user << 6 | m->group << 3 | m->other;
}

#endif
