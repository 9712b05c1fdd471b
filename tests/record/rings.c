/* SPDX-License-Identifier: MIT */
/* rings HOW: requests of io_uring, of which it says how many writes there were. 77: the kernel lets
 * nobody.
 *   own: threads each make rings, write by them and close them, while others do
 *   shared: threads submit to one ring, and others read and take the results
 *   many: one thread has so many
 *   late: nobody takes results before all is submitted, most of which the kernel keeps
 *   places: threads know their rings by places in a table, and have closed the descriptors
 *   vforks: a child of vfork closes something when a request has ended that nobody has looked at
 *   left: signal handlers jump out of whatever comes, and threads are cancelled there */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kThreads = 4 };

struct ring {
  int fd;
  uint32_t entered; /* flags, for each time */
  char* queues;
  size_t size;
  struct io_uring_sqe* entries;
  struct io_uring_params p;
};

static uint32_t* at(const struct ring* r, uint32_t offset) {
  return (uint32_t*)(void*)(r->queues + offset);
}

static struct ring make(uint32_t entries) {
  struct ring r = {0};
  r.fd = (int)syscall(SYS_io_uring_setup, entries, &r.p);
  if (r.fd < 0) exit(77);
  r.size = r.p.sq_off.array + r.p.sq_entries * sizeof(uint32_t);
  if (r.size < r.p.cq_off.cqes + r.p.cq_entries * sizeof(struct io_uring_cqe))
    r.size = r.p.cq_off.cqes + r.p.cq_entries * sizeof(struct io_uring_cqe);
  r.queues = mmap(0, r.size, PROT_READ | PROT_WRITE, MAP_SHARED, r.fd, IORING_OFF_SQ_RING);
  r.entries = mmap(0, r.p.sq_entries * sizeof *r.entries, PROT_READ | PROT_WRITE, MAP_SHARED, r.fd,
                   IORING_OFF_SQES);
  if (r.queues == MAP_FAILED || r.entries == MAP_FAILED) exit(77);
  for (uint32_t i = 0; i < r.p.sq_entries; ++i) at(&r, r.p.sq_off.array)[i] = i;
  return r;
}

static void unmap(struct ring* r) {
  munmap(r->queues, r->size);
  munmap(r->entries, r->p.sq_entries * sizeof *r->entries);
}

/* As many results are taken as there are. */
static uint32_t takes(const struct ring* r) {
  const uint32_t tail = __atomic_load_n(at(r, r->p.cq_off.tail), __ATOMIC_ACQUIRE);
  return tail - __atomic_exchange_n(at(r, r->p.cq_off.head), tail, __ATOMIC_ACQ_REL);
}

/* Of the results that are there, those of requests that were given up: their thread had ended. */
static uint32_t given_up(const struct ring* r) {
  const struct io_uring_cqe* const results = (const void*)at(r, r->p.cq_off.cqes);
  const uint32_t tail = __atomic_load_n(at(r, r->p.cq_off.tail), __ATOMIC_ACQUIRE);
  uint32_t count = 0;
  for (uint32_t i = *at(r, r->p.cq_off.head); i != tail; ++i)
    count += results[i & (r->p.cq_entries - 1)].res == -ECANCELED;
  return count;
}

static void submits(const struct ring* r, struct io_uring_sqe request, uint32_t wanted) {
  uint32_t* const tail = at(r, r->p.sq_off.tail);
  r->entries[*tail & (r->p.sq_entries - 1)] = request;
  __atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
  const uint32_t all =
      *tail -
      *at(r, r->p.sq_off.head); /* more than one where one was left before it was submitted */
  if (syscall(SYS_io_uring_enter, r->fd, all, wanted,
              r->entered | (wanted ? IORING_ENTER_GETEVENTS : 0), NULL, 8) < 0 &&
      wanted)
    exit(1);
}

static void writes(const struct ring* r, int file, uint64_t offset, uint32_t wanted) {
  submits(r,
          (struct io_uring_sqe){.opcode = IORING_OP_WRITE,
                                .fd = file,
                                .addr = (uintptr_t) "12345",
                                .len = 5,
                                .off = offset,
                                .user_data = offset},
          wanted);
}

/* Until there is room for the results of all that is under way, and more. */
static void waits(const struct ring* r) {
  while (*at(r, r->p.sq_off.head) - __atomic_load_n(at(r, r->p.cq_off.tail), __ATOMIC_ACQUIRE) >
         r->p.cq_entries / 4) {
    takes(r);
    syscall(SYS_io_uring_enter, r->fd, 0, 1, r->entered | IORING_ENTER_GETEVENTS, NULL, 8);
  }
}

static char names[kThreads][2] = {"a", "b", "c", "d"};

static void* own(void* name) {
  for (uint64_t i = 0; i < 300; ++i) {
    struct ring r = make(1);
    const int file = open(name, O_CREAT | O_RDWR, 0600);
    writes(&r, file, 5 * i, 1);
    unmap(&r);
    close(file);
    close(r.fd);
  }
  return NULL;
}

static struct ring common;
static pthread_mutex_t one_submits = PTHREAD_MUTEX_INITIALIZER;
static uint32_t submitted, taken;
static void takes_all(void) { __atomic_fetch_add(&taken, takes(&common), __ATOMIC_ACQ_REL); }
enum { kEach = 3000 };

static void* shares(void* name) {
  const int file = open(name, O_CREAT | O_RDWR, 0600);
  for (uint64_t i = 0; i < kEach; ++i) {
    pthread_mutex_lock(&one_submits);
    while (submitted - __atomic_load_n(&taken, __ATOMIC_ACQUIRE) >= 8) {
      syscall(SYS_io_uring_enter, common.fd, 0, 0, IORING_ENTER_GETEVENTS, NULL, 8);
      takes_all();
    }
    writes(&common, file, 5 * i, 0);
    ++submitted;
    pthread_mutex_unlock(&one_submits);
    takes_all();
  }
  while (__atomic_load_n(&taken, __ATOMIC_ACQUIRE) != kThreads * kEach) { /* the last ones close */
    char byte;
    pread(file, &byte, 1, 0);
    syscall(SYS_io_uring_enter, common.fd, 0, 0, IORING_ENTER_GETEVENTS, NULL, 8);
    takes_all();
  }
  close(file);
  return NULL;
}

static void* by_place(void* name) {
  struct ring r = make(2);
  const int file = open(name, O_CREAT | O_RDWR, 0600);
  struct io_uring_rsrc_update place = {.offset = UINT32_MAX, .data = (uint64_t)r.fd};
  if (syscall(SYS_io_uring_register, r.fd, 20 /* IORING_REGISTER_RING_FDS */, &place, 1) != 1)
    exit(77);
  close(r.fd);
  r.fd = (int)place.offset;
  r.entered = 16; /* IORING_ENTER_REGISTERED_RING */
  for (uint64_t i = 0; i < 300; ++i) {
    writes(&r, file, 5 * i, 1);
    takes(&r);
  }
  close(file);
  return NULL;
}

static sigjmp_buf back;
static void jumps(int number) {
  (void)number;
  getppid();
  siglongjmp(back, 1);
}

static void* goes_on(void* file) {
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
  for (uint64_t i = 0;; ++i) {
    writes(&common, *(int*)file, 5 * (i % 1000), 0);
    waits(&common);
  }
  return NULL;
}

static uint32_t late(void) {
  const int file = open("a", O_CREAT | O_RDWR, 0600);
  const struct ring r = make(1);
  for (uint64_t i = 0; i < 300; ++i) {
    writes(&r, file, 5 * i, 0);
    char name[] = "late"; /* is not looked at again */
    if (i == 10)
      submits(&r,
              (struct io_uring_sqe){.opcode = IORING_OP_OPENAT,
                                    .fd = AT_FDCWD,
                                    .addr = (uintptr_t)name,
                                    .len = 0600,
                                    .open_flags = O_CREAT,
                                    .user_data = 1},
              0);
    memset(name, 0, sizeof name);
  }
  if (*at(&r, r.p.sq_off.head) != 301) exit(77); /* kernels before 5.19 refuse */
  while (__atomic_load_n(at(&r, r.p.cq_off.tail), __ATOMIC_ACQUIRE) != 301) {
    takes(&r);
    syscall(SYS_io_uring_enter, r.fd, 0, 1, IORING_ENTER_GETEVENTS, NULL, 8);
  }
  takes(&r);
  return 300;
}

static uint32_t vforks(void) {
  const struct ring r = make(1);
  submits(&r,
          (struct io_uring_sqe){.opcode = IORING_OP_OPENAT,
                                .flags = IOSQE_ASYNC,
                                .fd = AT_FDCWD,
                                .addr = (uintptr_t) "a",
                                .len = 0600,
                                .open_flags = O_CREAT | O_RDWR},
          0);
  while (__atomic_load_n(at(&r, r.p.cq_off.tail), __ATOMIC_ACQUIRE) == 0) continue;
  const int file = ((struct io_uring_cqe*)(void*)at(&r, r.p.cq_off.cqes))->res;
  takes(&r);
  const pid_t child = vfork();
  if (child == 0) {
    close(file);
    _exit(0);
  }
  waitpid(child, NULL, 0);
  writes(&r, file, 0, 1);
  return 1;
}

static uint32_t left(void) {
  int file = open("left", O_CREAT | O_RDWR, 0600);
  common = make(64);
  signal(SIGALRM, jumps);
  volatile int jumped = 0;
  const struct itimerval soon = {{0, 300}, {0, 300}}, never = {0};
  setitimer(ITIMER_REAL, &soon, NULL);
  if (sigsetjmp(back, 1) != 0) ++jumped;
  while (jumped < 300) {
    writes(&common, file, 5, 0);
    waits(&common);
  }
  setitimer(ITIMER_REAL, &never, NULL);
  uint32_t never_made = 0;
  for (int i = 0; i < 100; ++i) {
    pthread_t one;
    pthread_create(&one, NULL, goes_on, &file);
    usleep(200);
    pthread_cancel(one);
    pthread_join(one, NULL);
    never_made += given_up(&common);
    takes(&common);
  }
  for (int i = 0; i < 100; ++i) {
    writes(&common, file, 5, 0);
    waits(&common);
  }
  while (__atomic_load_n(at(&common, common.p.cq_off.tail), __ATOMIC_ACQUIRE) !=
         *at(&common, common.p.sq_off.head)) {
    takes(&common);
    syscall(SYS_io_uring_enter, common.fd, 0, 1, IORING_ENTER_GETEVENTS, NULL, 8);
  }
  takes(&common);
  return *at(&common, common.p.sq_off.head) - never_made;
}

int main(int argc, char** argv) {
  const char* const how = argc > 1 ? argv[1] : "own";
  if (strcmp(how, "late") == 0) return printf("%u\n", late()) < 0;
  if (strcmp(how, "vforks") == 0) return printf("%u\n", vforks()) < 0;
  if (strcmp(how, "left") == 0) return printf("%u\n", left()) < 0;
  const int many = strcmp(how, "many") == 0 && argc > 2 ? atoi(argv[2]) : 0;
  if (many != 0) {
    struct ring* const all = calloc((size_t)many, sizeof *all);
    for (int i = 0; i < many; ++i) all[i] = make(1);
    const int file = open("a", O_CREAT | O_RDWR, 0600);
    for (int i = 0; i < many; ++i) writes(&all[i], file, 5 * (uint64_t)i, 1);
    return printf("%d\n", many) < 0;
  }
  common = make(8);
  void* (*const work)(void*) = strcmp(how, "own") == 0      ? own
                               : strcmp(how, "shared") == 0 ? shares
                                                            : by_place;
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, work, names[i]);
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  return printf("%d\n", kThreads * (work == shares ? kEach : 300)) < 0;
}
