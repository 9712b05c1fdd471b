/* SPDX-License-Identifier: MIT */
/* Reads and writes by the thousand, which a signal handler comes in between any two instructions:
 * it calls vfork, or fork, whose child goes on where the handler came in. Says how often. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kTimes = 20000, kMade = 300 };
static int file, handled, vforks, left;
static volatile sig_atomic_t signals, made, child;

static void handler(int number) {
  (void)number;
  if (++signals % 4 != 0 || made == kMade || child) return;
  ++made;
  const pid_t pid = vforks ? vfork() : fork();
  if (pid > 0 && vforks) waitpid(pid, 0, 0);
  if (pid != 0) return;
  if (vforks) _exit(pwrite(handled, "12", 2, 0) != 2 || pwrite(handled, "3", 1, 5) != 1);
  left = 20;
  child = 1;
}

int main(int argc, char** argv) {
  vforks = argc > 1 && strcmp(argv[1], "vfork") == 0;
  file = open("file", O_RDWR | O_CREAT, 0600);
  handled = open("handled", O_RDWR | O_CREAT, 0600);
  const struct sigaction on = {.sa_handler = handler, .sa_flags = SA_RESTART};
  sigaction(SIGALRM, &on, 0);
  const struct itimerval often = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &often, 0);
  char byte;
  for (int i = 0; i < kTimes; ++i) {
    if (pwrite(file, "x", 1, i % 100) != 1 || pread(file, &byte, 1, i % 100) != 1) return 1;
    if (child && --left == 0) _exit(3);
    if (child) continue;
    if (child || i % 50 != 0) continue;
    const pid_t pid = vfork(); /* fork's child may come out of this one, too */
    if (pid == 0) _exit(pwrite(handled, "4", 1, 7) != 1);
    if (!child) waitpid(pid, 0, 0);
  }
  setitimer(ITIMER_REAL, &never, 0);
  int status, wrong = 0;
  while (wait(&status) > 0)
    if (status != 0 && status != 3 << 8) ++wrong, fprintf(stderr, "%x\n", status);
  printf("%d\n", kTimes);
  return wrong;
}
