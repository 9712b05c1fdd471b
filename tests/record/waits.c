/* SPDX-License-Identifier: MIT */
/* waits: each wait that is no I/O, 20 ms of it: a mutex, a condition, a barrier, a semaphore, a
 * join, poll, select, epoll, a socket, a child. Between them it computes. */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t semaphore;
static int pair[2], told;

static void compute(void) { /* 20 ms, in which the other waits */
  struct timespec begin, now;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  do clock_gettime(CLOCK_MONOTONIC, &now);
  while ((now.tv_sec - begin.tv_sec) * 1000000000 + now.tv_nsec - begin.tv_nsec < 20000000);
}

static void* other(void* arg) {
  pthread_mutex_lock(&mutex);
  pthread_barrier_wait(&barrier); /* the lock is held */
  compute();
  pthread_mutex_unlock(&mutex);
  compute();
  pthread_mutex_lock(&mutex);
  told = 1;
  pthread_cond_signal(&condition);
  pthread_mutex_unlock(&mutex);
  compute();
  sem_post(&semaphore);
  for (int i = 0; i < 4; ++i) {
    compute();
    if (write(pair[1], "x", 1) != 1) abort();
    pthread_barrier_wait(&barrier);
  }
  compute();
  return arg;
}

int main(void) {
  pthread_t thread;
  char byte;
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) return 1;
  pthread_barrier_init(&barrier, NULL, 2);
  sem_init(&semaphore, 0, 0);
  pthread_create(&thread, NULL, other, NULL);
  pthread_barrier_wait(&barrier);
  pthread_mutex_lock(&mutex);
  while (!told) pthread_cond_wait(&condition, &mutex);
  pthread_mutex_unlock(&mutex);
  sem_wait(&semaphore);
  struct pollfd one = {pair[0], POLLIN, 0};
  if (poll(&one, 1, -1) != 1 || recv(pair[0], &byte, 1, 0) != 1) return 2;
  pthread_barrier_wait(&barrier);
  fd_set set;
  FD_ZERO(&set);
  FD_SET(pair[0], &set);
  if (select(pair[0] + 1, &set, NULL, NULL, NULL) != 1 || recv(pair[0], &byte, 1, 0) != 1) return 3;
  pthread_barrier_wait(&barrier);
  const int epoll = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN};
  epoll_ctl(epoll, EPOLL_CTL_ADD, pair[0], &event);
  if (epoll_wait(epoll, &event, 1, -1) != 1 || recv(pair[0], &byte, 1, 0) != 1) return 4;
  pthread_barrier_wait(&barrier);
  if (recv(pair[0], &byte, 1, 0) != 1) return 5;
  pthread_barrier_wait(&barrier);
  pthread_join(thread, NULL);
  const pid_t child = fork();
  if (child == 0) {
    compute();
    _exit(0);
  }
  waitpid(child, NULL, 0);
  return 0;
}
