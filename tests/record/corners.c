/* SPDX-License-Identifier: MIT */
/* What a recording must not change: children with a stack but not the memory of their parent, calls
 * that are given no address, memory locked or limited, many threads and children. Prints what came
 * of each; mappings of records go to stderr. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int write_one(const char* name) {
  const int fd = open(name, O_CREAT | O_WRONLY | O_APPEND, 0600);
  return fd >= 0 && write(fd, "x", 1) == 1 && close(fd) == 0;
}

static int child(void* status) { return write_one("child") ? *(int*)status : 99; }

static void* thread(void* x) {
  if (!write_one("thread")) abort();
  return x;
}

static int ended(pid_t pid) {
  int status = 0;
  return pid > 0 && waitpid(pid, &status, 0) == pid ? WEXITSTATUS(status) : -1;
}

int main(void) {
  enum { kStack = 1 << 16 };
  char* const stack = malloc(kStack);
  char* const top = stack + kStack;
  int seven = 7;
  printf("clone %d\n", ended(clone(child, top, SIGCHLD, &seven)));
  printf("clone %d\n", ended(clone(child, top, SIGCHLD | CLONE_FS | CLONE_FILES, &seven)));
  printf("clone %d\n", ended(clone(child, top, SIGCHLD | CLONE_VM | CLONE_VFORK, &seven)));
  char *const nowhere = (char*)8, *arguments[] = {"/bin/true", NULL},
              *bad[] = {"A=1", nowhere, NULL};
  printf("clone3 %ld", syscall(SYS_clone3, nowhere, 88));
  printf(" %d\n", errno);
  printf("execve %d", execve(nowhere, arguments, arguments + 1));
  printf(" %d\n", errno);
  for (long small = 0; small < 8; small += 7) {
    printf("execve %d", execve((char*)small, arguments, arguments + 1));
    printf(" %d\n", errno);
    bad[1] = (char*)7;
    printf("execve %d", execve("/bin/true", arguments, small == 0 ? bad : (char**)small));
    printf(" %d\n", errno);
  }
  bad[1] = nowhere;
  printf("execve %d", execve("/bin/true", arguments, (char**)nowhere));
  printf(" %d\n", errno);
  printf("execve %d", execve("/bin/true", arguments, bad));
  printf(" %d\n", errno);
  fflush(stdout);
  for (int i = 0; i < 50; ++i) {
    pthread_t t;
    if (pthread_create(&t, NULL, thread, NULL) != 0 || pthread_join(t, NULL) != 0) return 3;
  }
  for (int i = 0; i < 20; ++i) {
    const pid_t pid = fork();
    if (pid == 0) {
      thread(NULL);
      const pid_t inner = vfork();
      if (inner == 0) _exit(3);
      _exit(ended(inner));
    }
    if (ended(pid) != 3) return 4;
  }
  FILE* const maps = fopen("/proc/self/maps", "r");
  int count = 0;
  for (char line[600]; fgets(line, sizeof line, maps) != NULL;)
    count += strstr(line, "/records") != NULL;
  fclose(maps);
  fprintf(stderr, "%d", count);
  printf("mlockall %d\n", mlockall(MCL_CURRENT));
  munlockall();
  const struct rlimit limit = {200 << 20, 200 << 20};
  printf("setrlimit %d\n", setrlimit(RLIMIT_AS, &limit));
  void* const memory = malloc(50 << 20);
  printf("malloc %d\n", memory != NULL);
  for (int i = 0; i < 3000; ++i) thread(NULL);
  puts("end");
  free(memory);
  free(stack);
  return 0;
}
