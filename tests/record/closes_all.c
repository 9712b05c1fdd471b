/* SPDX-License-Identifier: MIT */
/* A daemon's habits: every descriptor closed, one by one and all at once. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
  for (int fd = 3; fd < 64; ++fd) close(fd);
  closefrom(3);
  const int fd = open("a", O_WRONLY | O_CREAT, 0600);
  if (fd != 3) abort();
  write(fd, "a", 1);
  if (fork() == 0) {
    closefrom(0);
    const int own = open("b", O_WRONLY | O_CREAT, 0600);
    if (own != 0) abort();
    write(own, "b", 1);
    _exit(0);
  }
  int status;
  wait(&status);
  if (status != 0) abort();
  close_range(3, 100, 0);
  return 0;
}
