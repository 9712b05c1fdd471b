/* SPDX-License-Identifier: MIT */
/* record_start TIMES PROGRAM [ARGUMENTS…]: starts a program so many times, one after the other;
 * prints the microseconds that one took, from before its start to after its end: the median. */
#define _GNU_SOURCE
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

extern char** environ;

static int by_size(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const long times = atol(argv[1]);
  if (times < 1) return 2;
  double* const took = calloc((size_t)times, sizeof *took);
  if (took == NULL) return 1;
  for (long i = 0; i < times; ++i) {
    struct timespec from, to;
    pid_t child;
    int status;
    clock_gettime(CLOCK_MONOTONIC, &from);
    if (posix_spawnp(&child, argv[2], NULL, NULL, argv + 2, environ) != 0) return 1;
    if (waitpid(child, &status, 0) != child || status != 0) return 1;
    clock_gettime(CLOCK_MONOTONIC, &to);
    took[i] = (double)(to.tv_sec - from.tv_sec) * 1e6 + (double)(to.tv_nsec - from.tv_nsec) / 1e3;
  }
  qsort(took, (size_t)times, sizeof *took, by_size);
  printf("%.1f\n", took[times / 2]);
  free(took);
  return 0;
}
