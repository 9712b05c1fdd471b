/* SPDX-License-Identifier: MIT */
/* Ends by SIGSEGV, with a child that SIGKILL ends. */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
  const int fd = open("a", O_RDWR | O_CREAT, 0600);
  if (fork() == 0) {
    for (int i = 0; i < 5; ++i) write(fd, "child", 5);
    kill(getpid(), SIGKILL);
  }
  wait(NULL);
  for (int i = 0; i < 10; ++i) write(fd, "parent", 6);
  *(volatile int*)0 = 0;
  return 0;
}
