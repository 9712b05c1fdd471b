/* SPDX-License-Identifier: MIT */
/* fork, vfork, posix_spawn, exec with an empty environment, system, and clone with a stack of its
 * own. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

static void put(const char* name, const char* text) {
  const int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  write(fd, text, strlen(text));
  close(fd);
}

static int cloned(void* name) {
  put(name, "cloned");
  return 0;
}

int main(void) {
  static char stack[256 << 10];
  int status;
  put("first", "first");
  if (fork() == 0) {
    put("child", "child");
    if (fork() == 0) {
      put("grandchild", "grandchild");
      _exit(0);
    }
    wait(&status);
    _exit(3);
  }
  wait(&status);
  if (vfork() == 0) {
    put("vchild", "vchild");
    execl("/bin/cp", "cp", "child", "copy", NULL);
    _exit(4);
  }
  wait(&status);
  if (vfork() == 0) _exit(5);
  wait(&status);
  pid_t child;
  char* copy[] = {"cp", "child", "copy2", NULL};
  posix_spawnp(&child, "cp", NULL, NULL, copy, environ);
  waitpid(child, &status, 0);
  char* missing[] = {"missing", NULL};
  posix_spawn(&child, "/nowhere/missing", NULL, NULL, missing, environ);
  char *none[] = {NULL}, *list[] = {"cp", "copy", "copy3", NULL};
  if (fork() == 0) {
    execve("/bin/cp", list, none);
    _exit(6);
  }
  wait(&status);
  system("cat copy > copy4; echo done > status");
  clone(cloned, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, "cloned");
  wait(&status);
  FILE* p = popen("cat > piped", "w");
  fputs("through a pipe\n", p);
  pclose(p);
  put("last", "last");
  return 0;
}
