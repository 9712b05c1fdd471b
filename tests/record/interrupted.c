/* SPDX-License-Identifier: MIT */
/* A thread makes processes by vfork while signals come that are handled: before the child is there,
 * and as soon as the parent goes on. What the handler does is the parent's. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int over;

static void touch(const char* name) {
  const int fd = open(name, O_CREAT | O_WRONLY | O_APPEND, 0600);
  (void)!write(fd, "x", 1);
  close(fd);
}

static void on_signal(int number) {
  const int was = errno;
  (void)number;
  touch("handled");
  errno = was;
}

static void* sends(void* thread) {
  while (!over) {
    pthread_kill(*(pthread_t*)thread, SIGUSR1);
    usleep(200);
  }
  return NULL;
}

int main(void) {
  pthread_t self = pthread_self(), sender;
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
  sigset_t signals;
  sigaction(SIGUSR1, &action, NULL);
  sigemptyset(&signals);
  sigaddset(&signals, SIGUSR1);
  if (pthread_create(&sender, NULL, sends, &self) != 0) return 1;
  for (int i = 0; i < 200; ++i) {
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
