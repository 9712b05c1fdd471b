/* SPDX-License-Identifier: MIT */
/* record_loop FILE CALLS THREADS [streams]: 1-byte pwrites and preads, or fwrites and freads of 16
 * bytes; prints ns a call, of processor time and of wall time, and the memory that the process had
 * at most, in KiB. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static const char* file;
static long calls;

static double now(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void* work(void* number) {
  char name[4096], byte = 'x';
  long sum = 0;
  snprintf(name, sizeof name, "%s.%ld", file, (long)number);
  const int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
  if (fd < 0) abort();
  for (long i = 0; i < calls / 2; ++i)
    sum += pwrite(fd, &byte, 1, i & 4095) + pread(fd, &byte, 1, i & 4095);
  if (sum != calls / 2 * 2) abort(); /* the work was done */
  close(fd);
  unlink(name);
  return NULL;
}

static void* work_by_streams(void* number) {
  char name[4096], bytes[16] = "fifteen letters";
  size_t sum = 0;
  snprintf(name, sizeof name, "%s.%ld", file, (long)number);
  FILE* const stream = fopen(name, "w+");
  if (stream == NULL) abort();
  for (long i = 0; i < calls / 2; ++i) sum += fwrite(bytes, 1, sizeof bytes, stream);
  rewind(stream);
  for (long i = 0; i < calls / 2; ++i) sum += fread(bytes, 1, sizeof bytes, stream);
  if (sum != (size_t)(calls / 2 * 2) * sizeof bytes) abort();
  fclose(stream);
  unlink(name);
  return NULL;
}

int main(int argc, char** argv) {
  if (argc != 4 && argc != 5) return 2;
  pthread_t threads[64];
  file = argv[1];
  calls = atol(argv[2]);
  const long count = atol(argv[3]);
  const double cpu = now(CLOCK_PROCESS_CPUTIME_ID), wall = now(CLOCK_MONOTONIC);
  for (long i = 0; i < count; ++i)
    pthread_create(&threads[i], NULL, argc == 5 ? work_by_streams : work, (void*)i);
  for (long i = 0; i < count; ++i) pthread_join(threads[i], NULL);
  const double all = (double)calls * (double)count;
  const double cpu_ns = (now(CLOCK_PROCESS_CPUTIME_ID) - cpu) / all,
               wall_ns = (now(CLOCK_MONOTONIC) - wall) / all;
  long most = 0;
  char line[256];
  FILE* status = fopen("/proc/self/status", "r");
  while (status != NULL && fgets(line, sizeof line, status) != NULL)
    (void)sscanf(line, "VmHWM: %ld", &most);
  if (status != NULL) fclose(status);
  printf("%.2f %.2f %ld\n", cpu_ns, wall_ns, most);
  return 0;
}
