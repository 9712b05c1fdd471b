/* SPDX-License-Identifier: MIT */
/*
 * The calls of bench/make_trace.py, in a plain loop: the floor that a replay is measured against.
 * usage: plain-loop FILE CALLS [MEBIBYTES]   prints the seconds of the loop.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  const long calls = atol(argv[2]);
  const long blocks = (argc > 3 ? atol(argv[3]) : 64) * 256;
  off_t *offsets = malloc((size_t)calls * sizeof *offsets);
  static char out[4096], in[4096];
  uint64_t x = 88172645463325252u;
  if (!offsets) return 2;
  memset(out, 'x', sizeof out);
  for (long i = 0; i < calls; ++i) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    offsets[i] = (off_t)(x % (uint64_t)blocks) * 4096;
  }
  const double begin = now();
  const int fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0644);
  if (fd < 0 || ftruncate(fd, blocks * 4096) != 0) return 2;
  long good = 0;
  for (long i = 0; i < calls; ++i) {
    const ssize_t n = i & 1 ? pread(fd, in, 4096, offsets[i]) : pwrite(fd, out, 4096, offsets[i]);
    good += n == 4096;
  }
  close(fd);
  const double end = now();
  if (good != calls) return 1;
  printf("%.9f\n", end - begin);
  free(offsets);
  return 0;
}
