/* SPDX-License-Identifier: MIT */
/*
 * The floor of bench/timing: a loop that looks at the clock all the time and makes each pwrite when
 * it is due. What it is late by, the machine is. usage: plain-schedule FILE < pairs of 64-bit
 * numbers: due in ns, offset
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int main(int argc, char** argv) {
  static uint64_t pairs[100000][2];
  static char out[4096];
  const int fd = argc > 1 ? open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0644) : -1;
  const size_t count = fread(pairs, sizeof pairs[0], 100000, stdin);
  if (fd < 0 || count == 0) return 2;
  const uint64_t begin = now() + 1000000 - pairs[0][0];
  for (size_t i = 0; i < count; ++i) {
    while (now() < begin + pairs[i][0]) {
    }
    if (pwrite(fd, out, sizeof out, (off_t)pairs[i][1]) != (ssize_t)sizeof out) return 1;
  }
  return 0;
}
