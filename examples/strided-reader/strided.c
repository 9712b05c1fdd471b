/* SPDX-License-Identifier: MIT */
/* The strided reader of the Feign paper (Figure 6): reads 1 KiB every 1000 KiB of a file, and computes
 * for 10 ms between. With -a it asks for the data of that many reads ahead by posix_fadvise: what one
 * would write into the program to find out whether that helps, and what modifier prefetch tries without.
 *
 * usage: strided [-a AHEAD] [-n READS] [-s STRIDE] [-r BYTES] [-c MICROSECONDS] FILE */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void compute(long us) {
  struct timespec begin, now;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  do clock_gettime(CLOCK_MONOTONIC, &now);
  while ((now.tv_sec - begin.tv_sec) * 1000000 + (now.tv_nsec - begin.tv_nsec) / 1000 < us);
}

int main(int argc, char **argv) {
  long ahead = 0, reads = 100, stride = 1000 * 1024, bytes = 1024, us = 10000;
  for (int option; (option = getopt(argc, argv, "a:n:s:r:c:")) != -1;) {
    long *const value = option == 'a' ? &ahead : option == 'n' ? &reads : option == 's' ? &stride
                        : option == 'r' ? &bytes : option == 'c' ? &us : NULL;
    if (!value) return 2;
    char *end;
    *value = strtol(optarg, &end, 10);
    if (*end || *value < 0) return fprintf(stderr, "strided: -%c %s: want a number\n", option, optarg), 2;
  }
  if (optind + 1 != argc)
    return fprintf(stderr, "usage: strided [-a AHEAD] [-n READS] [-s STRIDE] [-r BYTES] [-c MICROSECONDS] FILE\n"), 2;
  char *const data = malloc((size_t)bytes + 1);
  const int fd = open(argv[optind], O_RDONLY);
  if (fd < 0 || !data) return perror(argv[optind]), 1;
  for (long i = 0; ahead && i < ahead && i < reads; i++)
    posix_fadvise(fd, i * stride, bytes, POSIX_FADV_WILLNEED);
  for (long i = 0; i < reads; i++) {
    if (ahead && i + ahead < reads) posix_fadvise(fd, (i + ahead) * stride, bytes, POSIX_FADV_WILLNEED);
    lseek(fd, i * stride, SEEK_SET);
    if (read(fd, data, (size_t)bytes) != bytes)
      return fprintf(stderr, "strided: %s ends before %ld\n", argv[optind], i * stride + bytes), 1;
    compute(us);
  }
  close(fd);
  free(data);
  return 0;
}
