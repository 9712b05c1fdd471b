/* SPDX-License-Identifier: MIT */
/* A signal handler comes in after each single instruction of a call, of what records it too: by the
 * processor's trap flag. It writes; or it forks, and the child writes, or not, and goes on where
 * the handler came in. Where signals are blocked, none comes in. Says how often. steps
 * write|fork|forks CALL [fresh]: fresh: the call is the first one that a process makes. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

static const char *what, *call;
static int file, handled, at, wrong;
static volatile int step, child;
static volatile pid_t made, self;

static void handler(int number, siginfo_t* info, void* context) {
  (void)number, (void)info;
  if (getpid() != self) { /* vfork's child */
    ((ucontext_t*)context)->uc_mcontext.gregs[REG_EFL] &= ~0x100L;
    return;
  }
  if (++step < at || sigismember(&((ucontext_t*)context)->uc_sigmask, SIGUSR1)) return;
  ((ucontext_t*)context)->uc_mcontext.gregs[REG_EFL] &= ~0x100L;
  if (*what == 'f') made = fork();
  child = *what == 'f' && made == 0;
  if (strcmp(what, "forks") != 0) wrong |= pwrite(handled, "h", 1, 0) != 1;
}

static void ends(pid_t pid) {
  int status = 0;
  if (pid <= 0 || waitpid(pid, &status, 0) != pid || status != 0) {
    fprintf(stderr, "%s, step %d: %x\n", call, at, status);
    ++wrong;
  }
}

/* Whether there are further instructions. */
static int interrupted(void) {
  char byte;
  step = child = made = 0;
  pid_t pid = 0;
  self = getpid();
  __asm__ volatile("pushf\n orq $0x100, (%%rsp)\n popf" ::: "memory", "cc");
  if (*call == 'w') wrong |= pwrite(file, "x", 1, 0) != 1;
  if (*call == 'r') wrong |= pread(file, &byte, 1, 0) != 1;
  if (*call == 'o') wrong |= close(open("file", O_RDWR)) != 0;
  if (*call == 'v') pid = vfork();
  if (*call == 'v' && pid == 0) {
    _exit(pwrite(handled, "v", 1, 1) != 1);
  }
  __asm__ volatile("pushf\n andq $~0x100, (%%rsp)\n popf" ::: "memory", "cc");
  if (child && pid > 0) waitpid(pid, 0, 0); /* the other one's, if vfork had returned */
  if (*call == 'v' && !child) ends(pid);
  if (child) {
    for (int i = 0; i < 3; ++i) wrong |= pwrite(handled, "c", 1, i) != 1;
    _exit(wrong != 0);
  }
  if (made > 0) ends(made);
  return step >= at;
}

int main(int argc, char** argv) {
  what = argv[1];
  call = argv[2];
  const int fresh = argc > 3;
  file = open("file", O_RDWR | O_CREAT, 0600);
  handled = open("handled", O_RDWR | O_CREAT, 0600);
  wrong |= pwrite(file, "x", 1, 0) != 1;
  const struct sigaction on = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
  sigaction(SIGTRAP, &on, 0);
  int status = 0;
  at = 1;
  for (; !fresh && interrupted(); ++at) {
  }
  for (; fresh && status == 0; at += 3) { /* each third: time grows with the square */
    const pid_t pid = fork();
    if (pid == 0) {
      const int more = interrupted();
      _exit(wrong != 0 ? 2 : more ? 0 : 3);
    }
    waitpid(pid, &status, 0);
    if (status == 0 || status == 3 << 8) continue;
    fprintf(stderr, "%s, step %d: %x\n", call, at, status);
    ++wrong;
    status = 0;
  }
  printf("%d\n", at);
  return wrong != 0;
}
