/* SPDX-License-Identifier: MIT */
/* Attributes by calls that are younger than libc; prints their results, or "none": the kernel has
 * none. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kSet = 463, kGet = 464, kList = 465, kRemove = 466, kGetFlags = 468 };
struct how {
  uint64_t value;
  uint32_t size, flags;
};

int main(void) {
  char text[64];
  struct how four = {(uintptr_t) "four", 4, 1}, room = {(uintptr_t)text, sizeof text, 0};
  mkdir("d", 0755);
  const int file = open("d/file", O_RDWR | O_CREAT, 0644), folder = open("d", O_RDONLY);
  (void)!symlink("file", "d/link");
  if (syscall(kList, AT_FDCWD, "d/file", 0, text, sizeof text) < 0 && errno == ENOSYS)
    return puts("none") < 0;
  int64_t flags[3];
  const long each[] = {
      syscall(kSet, folder, "link", 0, "user.followed", &four, sizeof four),
      syscall(kSet, folder, "link", AT_SYMLINK_NOFOLLOW, "user.refused", &four, sizeof four),
      syscall(kSet, file, "", AT_EMPTY_PATH, "user.opened", &four, sizeof four),
      syscall(kSet, AT_FDCWD, "d/file", 0, "user.opened", &four, sizeof four), /* XATTR_CREATE */
      syscall(kGet, AT_FDCWD, "d/link", 0, "user.followed", &room, sizeof room),
      syscall(kGet, file, "", AT_EMPTY_PATH, "user.none", &room, sizeof room),
      syscall(kList, AT_FDCWD, "d/file", 0, text, sizeof text),
      syscall(kRemove, folder, "file", 0, "user.opened"),
      syscall(kRemove, folder, "file", 0, "user.opened"),
      syscall(kSet, folder, "missing", 0, "user.a", &four, sizeof four),
      syscall(kGetFlags, folder, "file", flags, sizeof flags, 0),
      syscall(kGetFlags, folder, "missing", flags, sizeof flags, 0),
  };
  for (unsigned i = 0; i < sizeof each / sizeof *each; ++i) printf("%ld ", each[i]);
  return 0;
}
