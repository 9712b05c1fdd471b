/* SPDX-License-Identifier: MIT */
/*
 * For bench/timing: preloaded into a program, notes when each of its pwrite calls begins, so that
 * nobody has to believe what the program says of itself. STAMPS names the file that gets pairs of
 * numbers: the offset written to, and CLOCK_MONOTONIC in ns.
 */
#undef _FILE_OFFSET_BITS /* pwrite and pwrite64 are two names here */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define MOST 100000

static struct { uint64_t offset, ns; } * stamps;
static unsigned used;
static ssize_t (*real)(int, const void*, size_t, off64_t);

__attribute__((constructor)) static void begin(void) {
  *(void**)&real = dlsym(RTLD_NEXT, "pwrite64");
  const char* name = getenv("STAMPS");
  const int fd = name ? open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
  if (fd < 0 || ftruncate(fd, MOST * sizeof *stamps) != 0) return;
  void* at =
      mmap(NULL, MOST * sizeof *stamps, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
  if (at != MAP_FAILED) stamps = at;
  close(fd);
}

__attribute__((visibility("default"))) ssize_t pwrite64(int fd, const void* data, size_t size,
                                                        off64_t offset) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  if (stamps) {
    const unsigned i = __atomic_fetch_add(&used, 1, __ATOMIC_RELAXED);
    if (i < MOST) {
      stamps[i].offset = (uint64_t)offset;
      stamps[i].ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
    }
  }
  return real(fd, data, size, offset);
}

__attribute__((visibility("default"))) ssize_t pwrite(int fd, const void* data, size_t size,
                                                      off_t offset) {
  return pwrite64(fd, data, size, offset);
}
