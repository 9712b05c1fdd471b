/* SPDX-License-Identifier: MIT */
/* A thread makes processes by vfork while signals come that are handled: before the child is there,
 * and as soon as the parent goes on. What the handler does is the parent's. With an argument it
 * makes a process of its own, from elsewhere in libc. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int over, nested;

static void touch(const char* name) {
  const int fd = open(name, O_CREAT | O_WRONLY | O_APPEND, 0600);
  (void)!write(fd, "x", 1);
  close(fd);
}

static void on_signal(int number) {
  const int was = errno;
  (void)number;
  if (nested) {
    const pid_t child = vfork();
    if (child == 0) _exit(3);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {
    }
  } else {
    touch("handled");
  }
  errno = was;
}

static void* sends(void* thread) {
  while (!over) {
    pthread_kill(*(pthread_t*)thread, SIGUSR1);
    if (!nested) usleep(200);
    for (volatile int i = 0; i < 20000; ++i) {
    }
  }
  return NULL;
}

static int child_of_clone(void* unused) {
  (void)unused;
  _exit(5);
}

static int by_clone(void) {
  static char stack[1 << 16] __attribute__((aligned(16)));
  for (int i = 0; i < 3000; ++i) {
    int status = 0;
    const pid_t child =
        clone(child_of_clone, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 5) return 1;
  }
  return 0;
}

int main(int argc, char** argv) {
  (void)argv;
  nested = argc > 1;
  pthread_t self = pthread_self(), sender;
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
  sigset_t signals;
  sigaction(SIGUSR1, &action, NULL);
  sigemptyset(&signals);
  sigaddset(&signals, SIGUSR1);
  if (pthread_create(&sender, NULL, sends, &self) != 0) return 1;
  if (nested && by_clone() != 0) return 1;
  for (int i = 0; i < 200 && !nested; ++i) {
    const pid_t child = vfork();
    if (child == 0) {
      touch("made");
      usleep(1000); /* signals wait for the parent */
      touch("made");
      _exit(0);
    }
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {
    }
    touch("own");
  }
  over = 1;
  pthread_join(sender, NULL);
  return 0;
}
