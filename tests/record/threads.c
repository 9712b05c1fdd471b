/* SPDX-License-Identifier: MIT */
/* Threads that open, write, read and close files of their own, and one that all share. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static int shared;

static void* work(void* number) {
  const long n = (long)number;
  char name[32], bytes[100] = {0};
  snprintf(name, sizeof name, "t%ld", n);
  for (int i = 0; i < 100; ++i) {
    const int fd = open(name, O_RDWR | O_CREAT, 0600);
    pwrite(fd, bytes, sizeof bytes, i * 100);
    pread(fd, bytes, 50, i * 10);
    pwrite(shared, bytes, 10, n * 1000 + i * 10);
    close(fd);
  }
  return NULL;
}

int main(void) {
  pthread_t threads[8];
  shared = open("shared", O_RDWR | O_CREAT, 0600);
  for (int round = 0; round < 2; ++round) {
    for (long i = 0; i < 8; ++i) pthread_create(&threads[i], NULL, work, (void*)i);
    for (int i = 0; i < 8; ++i) pthread_join(threads[i], NULL);
  }
  close(shared);
  return 0;
}
