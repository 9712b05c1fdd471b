/* SPDX-License-Identifier: MIT */
/*
 * The floor of bench/handover: two threads that take turns, each asleep on a futex until the other
 * wakes it. Each stays on one of the first two processors that it may have, or both on the only
 * one. usage: plain-handover TURNS   prints the seconds of a turn.
 */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static uint32_t word[2];
static long turns;

static void wake(uint32_t* w) {
  __atomic_store_n(w, 1, __ATOMIC_RELEASE);
  syscall(SYS_futex, w, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
static void await(uint32_t* w) {
  while (__atomic_load_n(w, __ATOMIC_ACQUIRE) == 0)
    syscall(SYS_futex, w, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
  __atomic_store_n(w, 0, __ATOMIC_RELAXED);
}
static cpu_set_t processors;
/* This thread stays on the first (0) or the second (1) of them, if there is one. */
static void stay_on(int which) {
  cpu_set_t mine;
  CPU_ZERO(&mine);
  for (int i = 0; i < CPU_SETSIZE && which >= 0; ++i)
    if (CPU_ISSET(i, &processors) && which-- == 0) CPU_SET(i, &mine);
  (void)sched_setaffinity(0, sizeof mine, &mine);
}
static void* other(void* nothing) {
  stay_on(1);
  for (long i = 0; i < turns; i += 2) {
    await(&word[1]);
    wake(&word[0]);
  }
  return nothing;
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  turns = atol(argv[1]);
  pthread_t t;
  if (sched_getaffinity(0, sizeof processors, &processors) != 0) return 1;
  struct timespec a, b;
  if (pthread_create(&t, NULL, other, NULL) != 0) return 1;
  stay_on(0);
  clock_gettime(CLOCK_MONOTONIC, &a);
  for (long i = 0; i < turns; i += 2) {
    wake(&word[1]);
    await(&word[0]);
  }
  clock_gettime(CLOCK_MONOTONIC, &b);
  pthread_join(t, NULL);
  printf("%.12f\n",
         ((double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9) / (double)turns);
  return 0;
}
