/* SPDX-License-Identifier: MIT */
/* Calls that are left in other ways than by their return, and little room to record them in.
 * left cancel|jump|vfork|spawn|seal prints how many calls came back of those that the test looks
 * for. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static void check(int good, const char* what) {
  if (good) return;
  dprintf(2, "%s: errno %d\n", what, errno);
  _exit(1);
}

/* ---- cancel: threads that end within a call ---- */

static int pipe_ends[2];
static void* writes(void* blocks) {
  static char much[65536];
  const int fd = open("file", O_RDWR | O_CREAT, 0600);
  while (blocks == NULL) {
    pwrite(fd, "x", 1, 0);
    pread(fd, &(char){0}, 1, 0);
  }
  while (1) write(pipe_ends[1], much, sizeof much);
  return NULL;
}
static void cancel(void) {
  check(pipe(pipe_ends) == 0, "pipe");
  for (int i = 0; i < 300; ++i) {
    pthread_t t;
    void* end;
    check(pthread_create(&t, NULL, writes, i % 10 == 0 ? &t : NULL) == 0, "pthread_create");
    usleep(i % 10 == 0 ? 2000 : 200);
    pthread_cancel(t);
    pthread_join(t, &end);
    check(end == PTHREAD_CANCELED, "cancelled");
    const int fd = open("main", O_WRONLY | O_CREAT | O_APPEND, 0600);
    check(write(fd, "m", 1) == 1 && close(fd) == 0, "main");
  }
  printf("300\n");
}

/* ---- jump: a signal handler that leaves the call it came in ---- */

static sigjmp_buf out;
static volatile sig_atomic_t armed, jumps;
static void handler(int number) {
  (void)number;
  const int fd = open("handler", O_WRONLY | O_CREAT | O_APPEND, 0600);
  write(fd, "h", 1);
  close(fd);
  if (!armed) return;
  armed = 0;
  ++jumps;
  siglongjmp(out, 1);
}
/* Deeper in the stack than what was left, and over it. */
static __attribute__((noinline)) long deep(int fd, int depth) {
  volatile char room[600];
  memset((char*)room, 0x41, sizeof room);
  const long n = depth != 0 ? deep(fd, depth - 1) : pwrite(fd, "d", 1, 0);
  return n + room[5] - 0x41;
}
static void jump(void) {
  static char block[100000];
  volatile long back = 0;
  struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
  sigaction(SIGALRM, &action, NULL);
  const struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
  const int fd = open("file", O_RDWR | O_CREAT, 0600);
  check(write(fd, block, sizeof block) == sizeof block, "write");
  setitimer(ITIMER_REAL, &often, NULL);
  for (volatile int i = 0; i < 40000 || jumps < 100; ++i) {
    if (sigsetjmp(out, 1) == 0) armed = 1;
    pread(fd, block, sizeof block, 0);
    pwrite(fd, block, 100, 0);
    armed = 0;
    back += deep(fd, i % 7);
  }
  setitimer(ITIMER_REAL, &never, NULL);
  printf("%ld\n", back);
}

/* ---- vfork: the same, of one in which the signal waited for the parent ---- */

static void leaves_vfork(void) {
  const pid_t self = getpid();
  volatile int left = 0;
  signal(SIGALRM, handler);
  for (volatile int i = 0; i < 50; ++i) {
    armed = 1;
    if (sigsetjmp(out, 1) == 0) {
      const pid_t pid = vfork();
      if (pid == 0) {
        kill(self, SIGALRM);
        _exit(0);
      }
      check(pid > 0, "vfork");
    } else {
      ++left;
    }
    while (waitpid(-1, NULL, 0) > 0) {
    }
    const int fd = open("file", O_WRONLY | O_CREAT | O_APPEND, 0600);
    check(write(fd, "x", 1) == 1, "write");
    close(fd);
  }
  check(left == 50, "left");
  printf("%d\n", left);
}

/* ---- spawn: a small stack, and an environment without the library ---- */

static void* execs(void* unused) {
  char *arguments[] = {"true", NULL}, *environment[] = {"A=b", NULL};
  int status = -1;
  const pid_t pid = fork();
  if (pid == 0) {
    execve("/bin/true", arguments, environment);
    _exit(9);
  }
  waitpid(pid, &status, 0);
  return (void*)(long)status;
}
static void spawn(void) {
  enum { kPage = 4096, kPages = 64, kStack = 9 }; /* glibc gives posix_spawn's child 36 KiB */
  char *arguments[] = {"true", NULL}, *environment[] = {"A=b", NULL};
  /* The highest hole that a stack of that size fits into has a pattern below it. */
  for (int i = 0; i < kPages; ++i)
    mmap(NULL, kStack * kPage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  char* const room =
      mmap(NULL, kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memset(room, 0x5a, kPages * kPage);
  munmap(room + (kPages - kStack) * kPage, kStack * kPage);
  for (int i = 0; i < 3; ++i) {
    pid_t pid;
    int status;
    check(posix_spawn(&pid, "/bin/true", NULL, NULL, arguments, environment) == 0, "posix_spawn");
    check(waitpid(pid, &status, 0) == pid && status == 0, "spawned");
  }
  for (int i = 0; i < (kPages - kStack) * kPage; ++i) check(room[i] == 0x5a, "the parent's memory");
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, PTHREAD_STACK_MIN);
  pthread_t t;
  void* status = NULL;
  check(pthread_create(&t, &small, execs, NULL) == 0, "pthread_create");
  pthread_join(t, &status);
  check(status == NULL, "exec on a small stack");
  printf("4\n");
}

/* ---- seal: no other system calls than these ---- */

#define ALLOW(n) \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, n, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
static atomic_int done;
static void* some(void* fd) {
  for (int i = 0; i < 1000; ++i) write((int)(long)fd, "t", 1);
  done = 1;
  while (1) { /* to end, a thread makes calls that are not allowed */
  }
  return NULL;
}
static void seal(void) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      ALLOW(SYS_write),
      ALLOW(SYS_openat),
      ALLOW(SYS_exit_group),
      ALLOW(SYS_clone),
      ALLOW(SYS_clone3),
      ALLOW(SYS_wait4),
      ALLOW(SYS_mmap),
      ALLOW(SYS_mprotect),
      ALLOW(SYS_rt_sigaction),
      ALLOW(SYS_rt_sigprocmask),
      ALLOW(SYS_rseq),
      ALLOW(SYS_set_robust_list),
      ALLOW(SYS_getrandom),
      ALLOW(SYS_brk),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
  const struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  const int fd = open("file", O_WRONLY | O_CREAT | O_APPEND, 0600);
  check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
            prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0,
        "seccomp");
  for (int i = 0; i < 30000; ++i) {
    write(fd, "x", 1);
    if (i % 100 == 0) open("/nowhere", O_RDONLY);
    if (i % 100 == 1) open((const char*)8, O_RDONLY);
  }
  const pid_t pid = fork();
  if (pid == 0) {
    for (int i = 0; i < 30000; ++i) write(fd, "c", 1);
    _exit(0);
  }
  int status;
  check(waitpid(pid, &status, 0) == pid && status == 0, "child");
  pthread_t t;
  check(pthread_create(&t, NULL, some, (void*)(long)fd) == 0, "pthread_create");
  while (!done) {
  }
  write(1, "61000\n", 6);
  _exit(0);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  if (strcmp(argv[1], "cancel") == 0) cancel();
  if (strcmp(argv[1], "jump") == 0) jump();
  if (strcmp(argv[1], "vfork") == 0) leaves_vfork();
  if (strcmp(argv[1], "spawn") == 0) spawn();
  if (strcmp(argv[1], "seal") == 0) seal();
  return 0;
}
