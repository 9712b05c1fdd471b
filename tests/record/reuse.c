/* SPDX-License-Identifier: MIT */
/* reuse [sqpoll | threads | cut]: requests of io_uring that close a file, open the next one, and
 * read: the open gets the descriptor that the close has given up, and is over while the reads go
 * on; the kernel says that both have ended in the other order, now and then. Or a thread of the
 * kernel closes and reads, and the open is a system call. Or threads open and close by rings of
 * their own, and by system calls. Or a close is cut off, since what it waits for fails. 77: the
 * kernel lets nobody. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <liburing.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kRounds = 60, kReads = 14, kBytes = 1 << 20 };
static char data[kBytes];

static int opens(const char* name) { return open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600); }

enum { kThreads = 8, kTurns = 200, kFiles = 4 };

static void submits(struct io_uring* ring, int* opened) {
  if (io_uring_submit_and_wait(ring, kFiles) != kFiles) abort();
  for (int k = 0; k < kFiles; ++k) {
    struct io_uring_cqe* c;
    if (io_uring_wait_cqe(ring, &c) != 0 || c->res < 0) abort();
    if (opened != NULL) opened[c->user_data] = c->res;
    io_uring_cqe_seen(ring, c);
  }
}

static void* opens_and_closes(void* which) {
  const intptr_t self = (intptr_t)which;
  struct io_uring ring;
  if (io_uring_queue_init(kFiles, &ring, 0) != 0) exit(77);
  for (int i = 0; i < kTurns; ++i) {
    char name[kFiles][32];
    int fd[kFiles];
    const int calls_open = (self + i) % 2 == 1, calls_close = (self + i) % 4 / 2 == 1;
    for (int k = 0; k < kFiles; ++k) {
      snprintf(name[k], sizeof name[k], "%d.%d.%d", (int)self, i, k);
      if (calls_open) {
        fd[k] = opens(name[k]);
        continue;
      }
      struct io_uring_sqe* const e = io_uring_get_sqe(&ring);
      io_uring_prep_openat(e, AT_FDCWD, name[k], O_WRONLY | O_CREAT | O_TRUNC, 0600);
      e->user_data = (uint64_t)k;
    }
    if (!calls_open) submits(&ring, fd);
    for (int k = 0; k < kFiles; ++k)
      if (write(fd[k], name[k], (size_t)k + 5) != k + 5) abort();
    for (int k = 0; k < kFiles; ++k) {
      if (!calls_close)
        io_uring_prep_close(io_uring_get_sqe(&ring), fd[k]);
      else if (close(fd[k]) != 0)
        abort();
    }
    if (!calls_close) submits(&ring, NULL);
  }
  io_uring_queue_exit(&ring);
  return NULL;
}

static int in_threads(void) {
  pthread_t thread[kThreads];
  for (intptr_t i = 0; i < kThreads; ++i)
    if (pthread_create(&thread[i], NULL, opens_and_closes, (void*)i) != 0) abort();
  for (int i = 0; i < kThreads; ++i) pthread_join(thread[i], NULL);
  return 0;
}

static int cut_off(struct io_uring* ring) {
  struct io_uring_cqe* c;
  const int fd = open("one", O_RDWR | O_CREAT, 0600);
  struct io_uring_sqe* const fails = io_uring_get_sqe(ring);
  io_uring_prep_read(fails, -1, data, 8, 0);
  fails->flags |= IOSQE_IO_LINK | 1 << 6 /* IOSQE_CQE_SKIP_SUCCESS */;
  io_uring_prep_close(io_uring_get_sqe(ring), fd);
  if (io_uring_submit_and_wait(ring, 1) != 2) abort();
  usleep(10000);
  while (io_uring_peek_cqe(ring, &c) == 0) io_uring_cqe_seen(ring, c);
  if (write(fd, "abc", 3) != 3) abort();
  io_uring_prep_close(io_uring_get_sqe(ring), fd);
  if (io_uring_submit_and_wait(ring, 1) != 1 || io_uring_wait_cqe(ring, &c) != 0 || c->res != 0)
    abort();
  io_uring_cqe_seen(ring, c);
  return opens("two") == fd && write(fd, "defg", 4) == 4 ? 0 : 1;
}

int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "threads") == 0) return in_threads();
  const int sqpoll = argc > 1 && strcmp(argv[1], "sqpoll") == 0;
  struct io_uring ring;
  if (io_uring_queue_init(16, &ring, sqpoll ? IORING_SETUP_SQPOLL : 0) != 0) return 77;
  if (argc > 1 && strcmp(argv[1], "cut") == 0) return cut_off(&ring);
  const int big = open("big", O_RDWR | O_CREAT, 0600);
  int fd = open("first", O_RDWR | O_CREAT, 0600);
  if (big < 0 || fd < 0 || write(big, data, kBytes) != kBytes) abort();
  for (int i = 0; i < kRounds; ++i) {
    char name[16];
    snprintf(name, sizeof name, "%d", i);
    struct io_uring_sqe* const closes = io_uring_get_sqe(&ring);
    io_uring_prep_close(closes, fd);
    closes->user_data = 3;
    int under_way = 1 + kReads;
    if (!sqpoll) {
      struct io_uring_sqe* const e = io_uring_get_sqe(&ring);
      io_uring_prep_openat(e, AT_FDCWD, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
      e->user_data = 1;
      ++under_way;
    }
    for (int k = 0; k < kReads; ++k) {
      struct io_uring_sqe* const reads = io_uring_get_sqe(&ring);
      io_uring_prep_read(reads, big, data, kBytes, 0);
      reads->user_data = 2;
    }
    if (io_uring_submit(&ring) < 0) abort();
    for (int other; sqpoll && (other = opens(name)) != fd;)
      if (close(other) != 0) abort();
    for (; under_way > 0; --under_way) {
      struct io_uring_cqe* c;
      if (io_uring_wait_cqe(&ring, &c) != 0 || c->res < 0) abort();
      if (c->user_data == 1) fd = c->res;
      io_uring_cqe_seen(&ring, c);
    }
    if (write(fd, name, strlen(name)) < 1) abort();
  }
  return 0;
}
