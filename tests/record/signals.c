/* SPDX-License-Identifier: MIT */
/* A signal handler that does I/O, at any moment, and one that jumps out. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static sigjmp_buf out;
static volatile int count;

static void writes(int number) {
  (void)number;
  const int fd = open("handler", O_WRONLY | O_CREAT | O_APPEND, 0600);
  write(fd, "h", 1);
  close(fd);
  ++count;
}

static void jumps(int number) {
  writes(number);
  siglongjmp(out, 1);
}

int main(void) {
  struct itimerval timer = {{0, 700}, {0, 700}};
  signal(SIGALRM, writes);
  setitimer(ITIMER_REAL, &timer, NULL);
  for (int i = 0; i < 300 || count < 10; ++i) {
    char bytes[64] = {0};
    const int fd = open("main", O_RDWR | O_CREAT, 0600);
    write(fd, bytes, sizeof bytes);
    pread(fd, bytes, 10, 0);
    close(fd);
  }
  memset(&timer, 0, sizeof timer);
  setitimer(ITIMER_REAL, &timer, NULL);
  signal(SIGUSR1, jumps);
  for (volatile int i = 0; i < 20; ++i)
    if (sigsetjmp(out, 1) == 0) raise(SIGUSR1);
  const int fd = open("end", O_WRONLY | O_CREAT, 0600);
  write(fd, "end", 3);
  close(fd);
  return 0;
}
