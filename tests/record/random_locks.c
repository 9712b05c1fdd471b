/* SPDX-License-Identifier: MIT */
/* random_locks SEED: three processes, and children of theirs, that take turns to open two files, to
 * lock them by fcntl (of processes, of open files) and flock, and to copy and close descriptors. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kProcesses = 3, kSteps = 100, kMost = 12 };

static uint32_t state;
static uint32_t any_of(uint32_t count) {
  state = state * 1103515245 + 12345;
  return (state >> 16) % count;
}

static int open_ones[kMost], count;
static void add(int fd) {
  if (fd >= 0 && count < kMost) open_ones[count++] = fd;
}
static int one(void) { return open_ones[any_of((uint32_t)count)]; }

static void step(void) {
  static const short kTypes[] = {F_RDLCK, F_WRLCK, F_UNLCK};
  static const int kModes[] = {O_RDWR, O_RDWR, O_RDONLY, O_WRONLY, O_PATH};
  const char* const name = any_of(2) ? "a" : "b";
  struct flock l = {.l_type = kTypes[any_of(3)],
                    .l_whence = SEEK_SET,
                    .l_start = 10 * any_of(4),
                    .l_len = 10 * any_of(3)};
  switch (count < 2 ? 0 : any_of(16)) {
    case 0:
      return add(open(name, kModes[any_of(5)]));
    case 1:
      return add(dup(one()));
    case 2:
      (void)dup2(one(), one());
      return;
    case 3: {
      int* const closed = &open_ones[any_of((uint32_t)count)];
      if (any_of(2))
        close(*closed);
      else
        (void)syscall(SYS_close_range, *closed, *closed, 0);
      *closed = open_ones[--count];
      return;
    }
    case 4: {
      const pid_t child = fork();
      for (int i = 0; child == 0 && i < 6; ++i) step();
      if (child == 0) _exit(0);
      waitpid(child, NULL, 0);
      return;
    }
    case 5:
      close(open(name, O_RDONLY));
      return;
    case 6:
    case 7:
      flock(one(), (int[]){LOCK_SH, LOCK_EX, LOCK_UN}[any_of(3)] | LOCK_NB);
      return;
    case 8:
      fcntl(one(), any_of(2) ? F_GETLK : F_OFD_GETLK, &l);
      return;
    default:
      fcntl(one(), any_of(2) ? F_SETLK : F_OFD_SETLK, &l);
      return;
  }
}

int main(int argc, char** argv) {
  const uint32_t seed = argc > 1 ? (uint32_t)atoi(argv[1]) : 1;
  volatile int* const turn =
      mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (turn == MAP_FAILED) return 1;
  add(open("a", O_CREAT | O_RDWR, 0600));
  add(open("b", O_CREAT | O_RDWR, 0600));
  for (int p = 0; p < kProcesses; ++p) {
    const pid_t child = fork();
    if (child < 0) abort();
    if (child != 0) continue;
    alarm(100); /* if another one has died */
    state = seed * kProcesses + (uint32_t)p;
    for (int i = 0; i < kSteps; ++i) {
      while (*turn % kProcesses != p) usleep(50);
      step();
      ++*turn;
    }
    while (*turn != kProcesses * kSteps) usleep(50); /* what it has locked is in others' way */
    _exit(0);
  }
  while (wait(NULL) > 0) continue;
  return 0;
}
