/* SPDX-License-Identifier: MIT */
/* The system call that a request of io_uring stands for, with what its arguments pointed to when it
 * was submitted. Part of uring.c. */

/* What an argument points to, kept for as long as the request is under way. */
static void keep(struct request* q, int which, size_t size, int text) {
  const size_t room = kRequest - offsetof(struct request, kept) - q->used;
  char* const to = q->kept + q->used;
  size_t got = copy_safely(to, (const void*)q->a[which], text || size > room ? room : size);
  q->a[which] = 0;
  if (text) {
    size_t length = 0;
    while (length < got && to[length] != '\0') ++length;
    if (length == got) return;
    size = length + 1;
  }
  if (got < size) return;
  q->a[which] = (long)to;
  q->used = (uint16_t)(q->used + ((size + 7) & ~(size_t)7));
}

/* Its pieces; of more than there is room for, one that is as long as all. */
static void keep_vector(struct request* q, long count) {
  const size_t room = kRequest - offsetof(struct request, kept) - q->used;
  struct iovec* const kept = (struct iovec*)(void*)(q->kept + q->used);
  const struct iovec* const from = (const struct iovec*)q->a[1];
  const long most = (long)(room / sizeof *kept) - 1;
  if (count > most && count <= 1024) {
    size_t length = 0;
    for (long done = 0; done < count;) {
      const long some = count - done < most ? count - done : most;
      const size_t size = (size_t)some * sizeof *kept;
      if (copy_safely(kept + 1, from + done, size) < size) break;
      for (long i = 1; i <= some; ++i) length += kept[i].iov_len;
      done += some;
      if (done == count) q->a[2] = 1;
    }
    kept[0] = (struct iovec){0, length};
    q->a[1] = q->a[2] == 1 ? (long)kept : 0;
    q->used = (uint16_t)(q->used + sizeof *kept);
    return;
  }
  keep(q, 1, (size_t)count * sizeof *kept, 0);
}

static void be(struct request* q, long number, long a, long b, long c, long d, long e, long f) {
  q->number = (uint16_t)number;
  q->a[0] = a, q->a[1] = b, q->a[2] = c, q->a[3] = d, q->a[4] = e, q->a[5] = f;
}

/* Of one buffer: a vector of one piece, where there are flags, which other calls have no place for.
 */
static void be_with_flags(struct request* q, int writes, long flags) {
  struct iovec* const piece = (struct iovec*)(void*)(q->kept + q->used);
  if (flags == 0) return;
  *piece = (struct iovec){(void*)q->a[1], (size_t)q->a[2]};
  q->used = (uint16_t)(q->used + sizeof *piece);
  be(q, writes ? SYS_pwritev2 : SYS_preadv2, q->a[0], (long)piece, 1, q->a[3], 0, flags);
}

static int direct(const struct ring* r, uint32_t place) {
  return kDirect | (int)(r - rings) * kFixedFiles | (int)place;
}

/* The system call that a request stands for; none for what is not about files. */
static void translate(struct request* q, const struct io_uring_sqe* e, struct ring* r) {
  q->number = kNoCall;
  q->used = 0;
  q->update = 0;
  q->selects = (e->flags & IOSQE_BUFFER_SELECT) != 0;
  q->silent = (e->flags & 1u << 6 /* IOSQE_CQE_SKIP_SUCCESS */) != 0;
  q->links = e->flags & IOSQE_IO_HARDLINK ? kHard : e->flags & IOSQE_IO_LINK ? kLinks : 0;
  q->place = 0;
  q->table = r;
  q->user_data = e->user_data;
  const long off = (long)e->off, addr = (long)e->addr, len = (long)e->len;
  const long flags = (long)(uint32_t)e->rw_flags;
  long fd = e->fd;
  if (e->flags & IOSQE_FIXED_FILE) {
    if ((uint32_t)fd >= kFixedFiles) return;
    fd = direct(r, (uint32_t)fd);
  }
  /* Which do not survive an exec. */
  const int by_place = e->file_index != 0 ? O_CLOEXEC : 0;
  switch (e->opcode) {
    case IORING_OP_READ:
    case IORING_OP_READ_FIXED:
    case 49 /* IORING_OP_READ_MULTISHOT */:
      be(q, off == -1 ? SYS_read : SYS_pread64, fd, addr, len, off, 0, 0);
      be_with_flags(q, 0, flags);
      break;
    case IORING_OP_WRITE:
    case IORING_OP_WRITE_FIXED:
      be(q, off == -1 ? SYS_write : SYS_pwrite64, fd, addr, len, off, 0, 0);
      be_with_flags(q, 1, flags);
      break;
    case 60 /* IORING_OP_READV_FIXED */:
    case 61 /* IORING_OP_WRITEV_FIXED */:
    case IORING_OP_READV:
    case IORING_OP_WRITEV: {
      const int writes = e->opcode != IORING_OP_READV && e->opcode != 60;
      be(q, writes ? SYS_pwritev2 : SYS_preadv2, fd, addr, len, off, 0, flags);
      if (flags == 0) q->number = writes ? SYS_pwritev : SYS_preadv;
      if (flags == 0 && off == -1) q->number = writes ? SYS_writev : SYS_readv;
      keep_vector(q, len);
      if (q->a[1] == 0) q->number = kNoCall;
      break;
    }
    case IORING_OP_FSYNC:
      be(q, flags & IORING_FSYNC_DATASYNC ? SYS_fdatasync : SYS_fsync, fd, 0, 0, 0, 0, 0);
      break;
    case IORING_OP_SYNC_FILE_RANGE:
      be(q, SYS_sync_file_range, fd, off, len, flags, 0, 0);
      break;
    case IORING_OP_SPLICE: { /* with positions in the place of pointers to them (say) */
      long from = e->splice_fd_in;
      if (flags & (long)SPLICE_F_FD_IN_FIXED) {
        if ((uint32_t)from >= kFixedFiles) return;
        from = direct(r, (uint32_t)from);
      }
      be(q, SYS_splice, from, addr, fd, off, len, flags & ~(long)SPLICE_F_FD_IN_FIXED);
      break;
    }
    case IORING_OP_FALLOCATE:
      be(q, SYS_fallocate, fd, len, off, addr, 0, 0);
      break;
    case IORING_OP_FADVISE:
      be(q, SYS_fadvise64, fd, off, len, flags, 0, 0);
      break;
    case IORING_OP_OPENAT:
      be(q, SYS_openat, fd, addr, flags | by_place, len, 0, 0);
      keep(q, 1, 0, 1);
      q->place = (int32_t)e->file_index;
      break;
    case IORING_OP_OPENAT2:
      be(q, SYS_openat2, fd, addr, off, len, 0, 0);
      keep(q, 2, sizeof(struct open_how), 0);
      if (q->a[2] != 0) ((struct open_how*)q->a[2])->flags |= (uint64_t)by_place;
      keep(q, 1, 0, 1);
      q->place = (int32_t)e->file_index;
      break;
    case IORING_OP_CLOSE:
      if (e->file_index > kFixedFiles) break;
      be(q, SYS_close, by_place ? direct(r, e->file_index - 1) : fd, 0, 0, 0, 0, 0);
      q->place = (int32_t)e->file_index;
      break;
    case IORING_OP_FILES_UPDATE:
      q->a[0] = off, q->a[1] = addr, q->a[2] = len;
      keep(q, 1, (size_t)len * sizeof(int), 0);
      q->update = q->a[1] != 0;
      break;
    case IORING_OP_MSG_RING: /* a file of this table gets a place in another ring's, too */
      q->table = addr == 1 /* IORING_MSG_SEND_FD */ ? ring_of(fd) : 0;
      if (q->table == 0 || e->addr3 >= kFixedFiles) break;
      be(q, SYS_fcntl, direct(r, (uint32_t)e->addr3), F_DUPFD_CLOEXEC, 0, 0, 0, 0);
      q->place = (int32_t)e->file_index;
      break;
    case 54 /* IORING_OP_FIXED_FD_INSTALL */:
      be(q, SYS_fcntl, fd, flags & 1 ? F_DUPFD : F_DUPFD_CLOEXEC, 0, 0, 0, 0);
      break;
    case IORING_OP_STATX:
      be(q, SYS_statx, fd, addr, flags, len, 0, 0);
      keep(q, 1, 0, 1);
      break;
    case IORING_OP_RENAMEAT:
    case IORING_OP_LINKAT:
      be(q, e->opcode == IORING_OP_RENAMEAT ? SYS_renameat2 : SYS_linkat, fd, addr, (int)len, off,
         flags, 0);
      keep(q, 1, 0, 1);
      keep(q, 3, 0, 1);
      break;
    case IORING_OP_UNLINKAT:
      be(q, SYS_unlinkat, fd, addr, flags, 0, 0, 0);
      keep(q, 1, 0, 1);
      break;
    case IORING_OP_MKDIRAT:
      be(q, SYS_mkdirat, fd, addr, len, 0, 0, 0);
      keep(q, 1, 0, 1);
      break;
    case IORING_OP_SYMLINKAT:
      be(q, SYS_symlinkat, addr, fd, off, 0, 0, 0);
      keep(q, 0, 0, 1);
      keep(q, 2, 0, 1);
      break;
    case IORING_OP_FSETXATTR:
    case IORING_OP_FGETXATTR:
    case IORING_OP_SETXATTR:
    case IORING_OP_GETXATTR: {
      const int sets = e->opcode == IORING_OP_FSETXATTR || e->opcode == IORING_OP_SETXATTR;
      if (e->opcode == IORING_OP_FSETXATTR || e->opcode == IORING_OP_FGETXATTR) {
        be(q, sets ? SYS_fsetxattr : SYS_fgetxattr, fd, addr, off, len, flags, 0);
      } else {
        be(q, sets ? SYS_setxattr : SYS_getxattr, (long)e->addr3, addr, off, len, flags, 0);
        keep(q, 0, 0, 1);
      }
      keep(q, 1, 0, 1);
      if (sets) keep(q, 2, (size_t)len, 0);
      break;
    }
    case 55 /* IORING_OP_FTRUNCATE */:
      be(q, SYS_ftruncate, fd, off, 0, 0, 0, 0);
      break;
    case 62 /* IORING_OP_PIPE */:
      if (e->file_index == 0) be(q, SYS_pipe2, addr, flags, 0, 0, 0, 0);
      break;
    case IORING_OP_ACCEPT:
      be(q, SYS_accept4, fd, 0, 0, flags | by_place, 0, 0);
      q->place = (int32_t)e->file_index;
      break;
    default:
      break;
  }
}
