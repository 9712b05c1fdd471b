/* SPDX-License-Identifier: MIT */
/* uring [sqpoll]: files by io_uring's requests, through liburing. 77: the kernel lets nobody.
 * uring late: what came later, a file that is sent to another ring's table, and flags. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct io_uring ring;

static struct io_uring_sqe* entry;
static struct io_uring_sqe* next(void) {
  entry = io_uring_get_sqe(&ring);
  if (entry == NULL) abort();
  return entry;
}
static struct io_uring_sqe* last(void) { return entry; }

/* Submits all that is in the queue, and takes `count` results: the last one's. */
static int done(int count) {
  int result = 0;
  if (io_uring_submit(&ring) < 0) abort();
  for (int i = 0; i < count; ++i) {
    struct io_uring_cqe* c;
    if (io_uring_wait_cqe(&ring, &c) != 0) abort();
    result = c->res;
    io_uring_cqe_seen(&ring, c);
  }
  return result;
}

static int late(void) {
  static char data[4096];
  const int none[4] = {-1, -1, -1, -1};
  struct io_uring other;
  if (io_uring_queue_init(16, &ring, 0) != 0 || io_uring_queue_init(4, &other, 0) != 0) return 77;
  if (io_uring_register_files(&ring, none, 4) != 0) return 77;
  if (io_uring_register_files(&other, none, 4) != 0) return 77;
  io_uring_prep_openat_direct(next(), AT_FDCWD, "a", O_RDWR | O_CREAT, 0600, 1);
  if (done(1) != 0) return 77;
  /* Which has it in two places then, and later in one. */
  io_uring_prep_rw(IORING_OP_MSG_RING, next(), other.ring_fd, (void*)1 /* IORING_MSG_SEND_FD */, 0,
                   0);
  last()->addr3 = 1;
  last()->file_index = 3;
  if (done(1) != 0) return 77;
  io_uring_prep_close_direct(next(), 1);
  if (done(1) != 0) abort();
  io_uring_queue_exit(&ring);
  ring = other;
  struct io_uring_cqe* sent;
  if (io_uring_wait_cqe(&ring, &sent) != 0) abort();
  io_uring_cqe_seen(&ring, sent);
  for (int i = 0; i < 2; ++i) {
    io_uring_prep_write(next(), 2, data, 700, 0);
    last()->flags |= IOSQE_FIXED_FILE;
    last()->rw_flags = i == 0 ? 0 : RWF_APPEND;
    if (done(1) != 700) abort();
  }
  io_uring_prep_read(next(), 2, data, sizeof data, 0);
  last()->flags |= IOSQE_FIXED_FILE;
  last()->rw_flags = RWF_NOWAIT;
  if (done(1) != 1400) return 77;
  /* As often as there is something: of a regular file, never. */
  io_uring_prep_rw(49 /* IORING_OP_READ_MULTISHOT */, next(), 2, NULL, 0, 0);
  last()->flags |= IOSQE_BUFFER_SELECT | IOSQE_FIXED_FILE;
  last()->buf_group = 5;
  if (done(1) != -EBADFD) return 77;
  /* And of a FIFO. */
  const int fifo = mkfifo("f", 0600) == 0 ? open("f", O_RDWR) : -1;
  if (fifo < 0) abort();
  io_uring_prep_provide_buffers(next(), data, 2000, 2, 5, 0);
  if (done(1) != 0) abort();
  io_uring_prep_rw(49 /* IORING_OP_READ_MULTISHOT */, next(), fifo, NULL, 0, -1);
  last()->flags |= IOSQE_BUFFER_SELECT;
  last()->buf_group = 5;
  for (int i = 0; i < 2; ++i) {
    if (write(fifo, "12345", 5) != 5) abort();
    if (done(1) != 5) return 77;
  }
  io_uring_queue_exit(&ring);
  return 0;
}

int main(int argc, char** argv) {
  static char data[8][4096];
  if (argc > 1 && strcmp(argv[1], "late") == 0) return late();
  const int sqpoll = argc > 1 && strcmp(argv[1], "sqpoll") == 0;
  if (io_uring_queue_init(16, &ring, sqpoll ? IORING_SETUP_SQPOLL : 0) != 0) return 77;

  io_uring_prep_nop(next());
  io_uring_sqe_set_data64(last(), 0);
  io_uring_prep_openat(next(), AT_FDCWD, "a", O_RDWR | O_CREAT | O_TRUNC, 0644);
  io_uring_sqe_set_data64(last(), 7);
  int fd = -1;
  if (io_uring_submit(&ring) < 0) abort();
  for (int i = 0; i < 2; ++i) {
    struct io_uring_cqe* c;
    if (io_uring_wait_cqe(&ring, &c) != 0) abort();
    if (c->user_data == 7) fd = c->res;
    io_uring_cqe_seen(&ring, c);
  }
  if (fd < 0) abort();
  /* Eight at once, and one that is too short. */
  for (int i = 0; i < 8; ++i) {
    memset(data[i], 'a' + i, sizeof data[i]);
    io_uring_prep_write(next(), fd, data[i], sizeof data[i], (unsigned)i * sizeof data[i]);
    io_uring_sqe_set_data64(last(), 100 + (unsigned)i);
  }
  done(8);
  io_uring_prep_read(next(), fd, data[0], sizeof data[0], 8 * sizeof data[0] - 100);
  if (done(1) != 100) abort();
  struct iovec two[2] = {{data[0], 1000}, {data[1], 500}};
  io_uring_prep_writev(next(), fd, two, 2, 40000);
  if (done(1) != 1500) abort();
  io_uring_prep_readv(next(), fd, two, 2, 40000);
  if (done(1) != 1500) abort();
  /* More pieces than anybody keeps. */
  struct iovec many[1000];
  for (int i = 0; i < 1000; ++i) many[i] = (struct iovec){data[i % 8], 1 + (unsigned)i % 3};
  io_uring_prep_writev(next(), fd, many, 1000, 39000);
  if (done(1) != 1999) abort();
  io_uring_prep_readv(next(), fd, many, 1000, 39000);
  if (done(1) != 1999) abort();
  io_uring_prep_fsync(next(), fd, IORING_FSYNC_DATASYNC);
  if (done(1) != 0) abort();
  /* By its place in a table. */
  if (io_uring_register_files(&ring, &fd, 1) != 0) abort();
  io_uring_prep_read(next(), 0, data[0], 123, 0);
  last()->flags |= IOSQE_FIXED_FILE;
  if (done(1) != 123) abort();
  if (io_uring_unregister_files(&ring) != 0) abort();
  /* Files without a descriptor: by places in a table. */
  const int none[4] = {-1, -1, -1, -1};
  if (io_uring_register_files(&ring, none, 4) != 0) abort();
  io_uring_prep_openat_direct(next(), AT_FDCWD, "e", O_RDWR | O_CREAT, 0600, 2);
  if (done(1) != 0) abort();
  io_uring_prep_write(next(), 2, data[0], 700, 0);
  last()->flags |= IOSQE_FIXED_FILE;
  if (done(1) != 700) abort();
  if (io_uring_register_files_update(&ring, 1, &fd, 1) != 1) abort();
  io_uring_prep_read(next(), 1, data[0], 321, 0);
  last()->flags |= IOSQE_FIXED_FILE;
  if (done(1) != 321) abort();
  io_uring_prep_close_direct(next(), 2);
  if (done(1) != 0) abort();
  struct statx st;
  io_uring_prep_statx(next(), AT_FDCWD, "a", 0, STATX_SIZE, &st);
  if (done(1) != 0 || st.stx_size != 41500) abort();
  /* What depends on it is not made. */
  io_uring_prep_openat(next(), AT_FDCWD, "none", O_RDONLY, 0);
  last()->flags |= IOSQE_IO_LINK;
  io_uring_sqe_set_data64(last(), 1);
  io_uring_prep_write(next(), fd, data[0], 700, 1 << 20);
  io_uring_sqe_set_data64(last(), 2);
  if (done(2) != -ECANCELED) abort();
  /* Through a pipe into another file. */
  int through[2], to = open("f", O_RDWR | O_CREAT, 0600);
  if (to < 0 || pipe(through) != 0) abort();
  io_uring_prep_splice(next(), fd, 100, through[1], -1, 300, 0);
  if (done(1) != 300) abort();
  io_uring_prep_splice(next(), through[0], -1, to, 50, 300, 0);
  if (done(1) != 300) abort();
  io_uring_prep_fsetxattr(next(), to, "user.one", "1234", 0, 4);
  const int has_attributes = done(1) == 0;
  io_uring_prep_getxattr(next(), "user.one", data[0], "f", 100);
  if (done(1) != 4 && has_attributes) abort();
  close(through[0]);
  close(through[1]);
  close(to);
  io_uring_prep_close(next(), fd);
  if (done(1) != 0) abort();
  io_uring_prep_mkdirat(next(), AT_FDCWD, "d", 0755);
  if (done(1) != 0) abort();
  io_uring_prep_renameat(next(), AT_FDCWD, "a", AT_FDCWD, "d/b", 0);
  if (done(1) != 0) abort();
  fd = open("c", O_WRONLY | O_CREAT, 0600);
  io_uring_prep_fallocate(next(), fd, 0, 0, 5000);
  if (done(1) != 0) abort();
  close(fd);
  io_uring_prep_unlinkat(next(), AT_FDCWD, "c", 0);
  if (done(1) != 0) abort();
  /* Into a buffer that the kernel chooses, shorter than what is asked for; of its own length. */
  fd = open("d/b", O_RDONLY);
  io_uring_prep_provide_buffers(next(), data[0], 2000, 4, 5, 0);
  if (done(1) != 0) abort();
  for (int i = 0; i < 3; ++i) {
    struct iovec whole = {NULL, sizeof data[0]};
    if (i < 2)
      io_uring_prep_read(next(), fd, NULL, i == 0 ? 0 : sizeof data[0], 0);
    else
      io_uring_prep_readv(next(), fd, &whole, 1, 0);
    last()->flags |= IOSQE_BUFFER_SELECT;
    last()->buf_group = 5;
    if (done(1) != 2000) abort();
  }
  close(fd);
  io_uring_prep_rw(62 /* IORING_OP_PIPE */, next(), 0, through, 0, 0);
  if (done(1) != 0 && pipe2(through, 0) != 0) abort();
  close(through[0]);
  close(through[1]);
  io_uring_queue_exit(&ring);
  return 0;
}
