/* SPDX-License-Identifier: MIT */
/* Writes, then writes what is not to be recorded, then writes again. */
#include <fcntl.h>
#include <unistd.h>

#include "feign_record.h"

int main(void) {
  const int fd = open("a", O_WRONLY | O_CREAT, 0600);
  write(fd, "x", 1);
  feign_record_pause();
  write(fd, "abc", 3);
  const int late = open("late", O_WRONLY | O_CREAT, 0600);
  feign_record_resume();
  write(late, "yz", 2);
  return 0;
}
