/* SPDX-License-Identifier: MIT */
/* io_uring: its requests are put into memory that program and kernel share, and so are their
 * results. This looks at the same memory whenever the program enters the kernel or goes through
 * liburing (where a thread of the kernel looks for requests, nobody need enter it for them): a
 * request that has come to its end is recorded as the system call that it stands for, from when it
 * was seen to be submitted to when its result was seen. Part of hook.c. */
#include <linux/io_uring.h>

enum { kRings = 16, kRequest = 1024, kMostRequests = 8192, kFixedFiles = 4096 };

/* A file that requests name by its place in the ring's table has a descriptor in the trace, which
 * no process can have. */
enum { kDirect = 1 << 30, kAnyPlace = -1 /* IORING_FILE_INDEX_ALLOC */ };

/* One under way, in a slot of kRequest bytes. */
struct request {
  uint64_t user_data, start;
  long a[6];
  uint16_t number; /* of the system call; 0: the slot is free, or the request is none */
  uint16_t used;   /* of what follows */
  uint8_t taken;
  uint8_t update; /* of the table, from place a[0], by a[2] descriptors at a[1] */
  int32_t place;  /* in the table, of the file that it opens or closes, and 1; 0: none */
  char kept[];    /* what arguments pointed to */
};

struct ring {
  int fd; /* and 1; 0: no ring */
  int busy;
  uint32_t flags, entries, requests;
  uint32_t first, end; /* slots in use lie between these, in the order of submission */
  uint32_t seen, done; /* of the queues */
  volatile uint32_t *head, *tail, *completed;
  const uint32_t* order; /* 0: entries are taken in order */
  uint32_t mask, completed_mask, entry_size, completion_size;
  const uint8_t *entry, *completion;
  uint8_t* slots;
  struct {
    long at, size;
  } map[4];
  uint8_t file[kFixedFiles]; /* whether there is one */
};

/* None, as long as the process makes none; a child of fork has none. */
static struct ring* rings;

static void forget(struct ring* r) {
  for (int i = 0; i < 4; ++i)
    if (r->map[i].size != 0) system_call(SYS_munmap, r->map[i].at, r->map[i].size, 0, 0, 0, 0);
  for (size_t i = 0; i < sizeof r->map / sizeof r->map[0]; ++i) r->map[i].size = 0;
  r->fd = 0;
}

static uint8_t* see(struct ring* r, int which, long size, long offset) {
  const int own = offset < 0; /* memory for this */
  const long at = system_call(SYS_mmap, 0, size, PROT_READ | (own ? PROT_WRITE : 0),
                              own ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED,
                              own ? -1 : r->fd - 1, own ? 0 : offset);
  if (at < 0 && at >= -4095) return 0;
  system_call(SYS_madvise, at, size, MADV_DONTFORK, 0, 0, 0);
  r->map[which].at = at;
  r->map[which].size = size;
  return (uint8_t*)at;
}

static struct ring* ring_of(long fd) {
  for (int i = 0; rings != 0 && i < kRings; ++i)
    if (rings[i].fd == fd + 1) return &rings[i];
  return 0;
}

static __attribute__((noinline)) void new_ring(long fd, const struct io_uring_params* p) {
  if (rings == 0) {
    const long at = system_call(SYS_mmap, 0, sizeof(struct ring) * kRings, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at < 0 && at >= -4095) return;
    rings = (struct ring*)at;
  }
  struct ring* r = ring_of(fd);
  if (r != 0) forget(r);
  r = ring_of(-1);
  if (r == 0) return;
  r->fd = (int)fd + 1;
  r->busy = 0;
  r->flags = p->flags;
  r->entries = p->sq_entries;
  r->first = r->end = 0;
  __builtin_memset(r->file, 0, sizeof r->file);
  r->entry_size = p->flags & IORING_SETUP_SQE128 ? 128 : 64;
  r->completion_size = p->flags & IORING_SETUP_CQE32 ? 32 : 16;
  const int in_order = (p->flags & 1u << 16 /* IORING_SETUP_NO_SQARRAY */) != 0;
  uint8_t *queue = 0, *completions = 0;
  if (p->flags & 1u << 14 /* IORING_SETUP_NO_MMAP: the program's own memory */) {
    completions = queue = (uint8_t*)p->cq_off.resv2;
    r->entry = (const uint8_t*)p->sq_off.resv2;
  } else {
    queue = see(r, 0, in_order ? 4096 : (long)(p->sq_off.array + p->sq_entries * 4),
                IORING_OFF_SQ_RING);
    completions = see(r, 1, (long)p->cq_off.cqes + (long)p->cq_entries * r->completion_size,
                      IORING_OFF_CQ_RING);
    r->entry = see(r, 2, (long)p->sq_entries * r->entry_size, IORING_OFF_SQES);
  }
  /* As many can be under way as the queue of completions has room for, and those in hand. */
  r->requests = p->cq_entries < kMostRequests / 2 ? p->cq_entries * 2 : kMostRequests;
  r->slots = see(r, 3, (long)r->requests * kRequest, -1);
  if (queue == 0 || completions == 0 || r->entry == 0 || r->slots == 0) {
    forget(r);
    return;
  }
  r->head = (volatile uint32_t*)(queue + p->sq_off.head);
  r->tail = (volatile uint32_t*)(queue + p->sq_off.tail);
  r->mask = *(const uint32_t*)(queue + p->sq_off.ring_mask);
  r->order = in_order ? 0 : (const uint32_t*)(queue + p->sq_off.array);
  r->completed = (volatile uint32_t*)(completions + p->cq_off.tail);
  r->completed_mask = *(const uint32_t*)(completions + p->cq_off.ring_mask);
  r->completion = completions + p->cq_off.cqes;
  r->seen = *r->head;
  r->done = *r->completed;
}

/* ---- requests ---------------------------------------------------------------------------------
 */

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

static int direct(const struct ring* r, uint32_t place) {
  return kDirect | (int)(r - rings) * kFixedFiles | (int)place;
}

/* The system call that a request stands for; none for what is not about files. */
static void translate(struct request* q, const struct io_uring_sqe* e, const struct ring* r) {
  q->number = 0;
  q->used = 0;
  q->update = 0;
  q->place = 0;
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
      be(q, off == -1 ? SYS_read : SYS_pread64, fd, addr, len, off, 0, 0);
      break;
    case IORING_OP_WRITE:
    case IORING_OP_WRITE_FIXED:
      be(q, off == -1 ? SYS_write : SYS_pwrite64, fd, addr, len, off, 0, 0);
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
      if (q->a[1] == 0) q->number = 0;
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
    case 54 /* IORING_OP_FIXED_FD_INSTALL */:
      be(q, SYS_fcntl, fd, flags & 1 ? F_DUPFD : F_DUPFD_CLOEXEC, 0, 0, 0, 0);
      break;
    case IORING_OP_STATX:
      be(q, SYS_statx, fd, addr, flags, len, 0, 0);
      keep(q, 1, 0, 1);
      break;
    case IORING_OP_RENAMEAT:
      be(q, SYS_renameat2, fd, addr, (int)len, off, flags, 0);
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
    case IORING_OP_LINKAT:
      be(q, SYS_linkat, fd, addr, (int)len, off, flags, 0);
      keep(q, 1, 0, 1);
      keep(q, 3, 0, 1);
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
    case IORING_OP_ACCEPT:
      be(q, SYS_accept4, fd, 0, 0, flags | by_place, 0, 0);
      q->place = (int32_t)e->file_index;
      break;
    default:
      break;
  }
}

static int say(struct thread* t, uint32_t number, const long* a, uint64_t start, uint64_t end,
               long result) {
  const struct described* const d = &kDescribed[number];
  if (number == 0 || d->fill == 0 || !recording(t, 0) ||
      (feign_capture.control->paused && !(d->flags & kState)))
    return 0;
  if ((d->flags & kData) && sampled_out(t)) return 0;
  const int splices = number == SYS_splice;
  const uint64_t before[2] = {splices ? (uint64_t)a[1] : UINT64_MAX,
                              splices ? (uint64_t)a[3] : UINT64_MAX};
  record(t, d, FEIGN_RECORD_CALL, a, start, end, result, before, kNoFlight,
         (uintptr_t)__builtin_frame_address(0), 0);
  return 1;
}

/* What was in a place of the table is there no longer. */
static void clear_place(struct thread* t, struct ring* r, uint32_t place, uint64_t now) {
  if (place >= kFixedFiles || !r->file[place]) return;
  const long a[6] = {direct(r, place)};
  (void)say(t, SYS_close, a, now, now, 0);
  r->file[place] = 0;
}

/* Places of the table get files that have descriptors; -1: none, -2: it keeps what it has. */
static void fill_places(struct thread* t, struct ring* r, uint32_t first, uint32_t count,
                        const int* fds) {
  const uint64_t now = ticks();
  for (uint32_t i = 0; i < count && first + i < kFixedFiles; ++i) {
    const int fd = fds != 0 ? fds[i] : -1;
    if (fd == -2) continue;
    clear_place(t, r, first + i, now);
    if (fd < 0) continue;
    r->file[first + i] = 1;
    const long to = direct(r, first + i), a[6] = {fd, F_DUPFD_CLOEXEC, to};
    (void)say(t, SYS_fcntl, a, now, now, to);
  }
}

static int ended(struct thread* t, struct ring* r, const struct request* q, uint64_t end,
                 long result) {
  if (q->update && q->a[0] != kAnyPlace && result > 0)
    fill_places(t, r, (uint32_t)q->a[0], (uint32_t)result, (const int*)q->a[1]);
  if (q->place == 0 || result < 0) return say(t, q->number, q->a, q->start, end, result);
  const uint32_t place = (uint32_t)(q->place == kAnyPlace ? result : q->place - 1);
  if (place >= kFixedFiles) return 0;
  const int opens = q->number != SYS_close;
  if (opens) {
    clear_place(t, r, place, end);
    result = direct(r, place);
  }
  r->file[place] = (uint8_t)opens;
  return say(t, q->number, q->a, q->start, end, result);
}

static struct request* slot(const struct ring* r, uint32_t number) {
  return (struct request*)(r->slots + (size_t)(number % r->requests) * kRequest);
}

/* What was submitted until now, and what has ended; how many records that made. */
static int look(struct ring* r, struct thread* t, uint64_t start) {
  int made = 0;
  /* A thread of the kernel takes them from the queue when it likes; until then they are there. */
  volatile uint32_t* const queue = r->flags & IORING_SETUP_SQPOLL ? r->tail : r->head;
  if (*queue == r->seen && *r->completed == r->done) return 0;
  if (__atomic_exchange_n(&r->busy, 1, __ATOMIC_ACQUIRE)) return 0; /* the next look sees it, too */
  const uint32_t submitted = __atomic_load_n(queue, __ATOMIC_ACQUIRE);
  const uint32_t behind = submitted - r->seen;
  if (behind > r->entries) { /* the program entered the kernel by itself */
    __atomic_fetch_add(&feign_capture.control->overlooked, behind - r->entries, __ATOMIC_RELAXED);
    r->seen = submitted - r->entries;
  }
  for (; r->seen != submitted; ++r->seen) {
    /* One that takes long goes behind those that came after it: its slot is the next one, too. */
    uint32_t kept = 0;
    for (; r->end - r->first == r->requests && slot(r, r->first)->taken && kept < r->requests;
         ++kept)
      ++r->first, ++r->end;
    if (kept == r->requests) /* they never ended */
      __atomic_fetch_add(&feign_capture.control->dropped, 1, __ATOMIC_RELAXED);
    if (r->end - r->first == r->requests) ++r->first;
    const uint32_t at = r->seen & r->mask;
    const uint32_t index = r->order != 0 ? r->order[at] & r->mask : at;
    struct request* const q = slot(r, r->end);
    const struct io_uring_sqe* const e =
        (const struct io_uring_sqe*)(r->entry + (size_t)index * r->entry_size);
    translate(q, e, r);
    q->start = start;
    if (e->flags & 1u << 6 /* IOSQE_CQE_SKIP_SUCCESS */) {
      const int data = (kDescribed[q->number].flags & kData) != 0;
      const long length = q->a[q->number == SYS_splice ? 4 : 2];
      made += ended(t, r, q, ticks(), data ? length : 0);
      continue;
    }
    q->taken = 1;
    ++r->end;
  }
  const uint32_t completed = __atomic_load_n(r->completed, __ATOMIC_ACQUIRE);
  if (completed - r->done > r->completed_mask + 1) r->done = completed - r->completed_mask - 1;
  if (r->done != completed) {
    const uint64_t now = ticks();
    for (; r->done != completed; ++r->done) {
      const struct io_uring_cqe* const c =
          (const struct io_uring_cqe*)(r->completion +
                                       (size_t)(r->done & r->completed_mask) * r->completion_size);
      for (uint32_t i = r->first; i != r->end; ++i) {
        struct request* const q = slot(r, i);
        if (!q->taken || q->user_data != c->user_data) continue;
        made += ended(t, r, q, now, c->res);
        if (!(c->flags & IORING_CQE_F_MORE)) q->taken = 0;
        break;
      }
      while (r->first != r->end && !slot(r, r->first)->taken) ++r->first;
    }
  }
  __atomic_store_n(&r->busy, 0, __ATOMIC_RELEASE);
  return made;
}

/* @p entered: for a ring; else one whose memory is the program's own may be gone. */
static __attribute__((noinline)) int look_at_rings(struct thread* t, uint64_t start, int entered) {
  if (feign_capture.control == 0 || feign_capture.off || t->quiet != 0) return 0;
  if (*feign_capture.token == 0) { /* a child, in which the memory is not */
    rings = 0;
    return 0;
  }
  int made = 0;
  for (int i = 0; i < kRings; ++i)
    if (rings[i].fd != 0 && (entered || rings[i].map[2].size != 0))
      made += look(&rings[i], t, start);
  return made;
}

/* The ring goes, and what has not ended on it may still be made, or not: nobody is told any more.
 * Reading would have changed nothing. */
static void leaves(struct ring* r) {
  uint32_t left = 0;
  for (uint32_t i = r->first; i != r->end; ++i) {
    struct request* const q = slot(r, i);
    if (q->taken && q->number != 0 && q->number != SYS_read && q->number != SYS_pread64 &&
        q->number != SYS_readv && q->number != SYS_preadv && q->number != SYS_preadv2 &&
        q->number != SYS_accept4 && q->number != SYS_statx)
      ++left;
    q->taken = 0;
  }
  if (left != 0) __atomic_fetch_add(&feign_capture.control->unended, left, __ATOMIC_RELAXED);
}

static void leaves_all(void) {
  for (int i = 0; i < kRings; ++i)
    if (rings[i].fd != 0 && !__atomic_exchange_n(&rings[i].busy, 1, __ATOMIC_ACQUIRE))
      leaves(&rings[i]);
}

static void closes_ring(struct thread* t, long fd) {
  struct ring* const r = ring_of(fd);
  if (r == 0) return;
  leaves(r);
  fill_places(t, r, 0, kFixedFiles, 0);
  forget(r); /* or it would live on in what is mapped here */
}

/* Files that requests name by their place in a table: io_uring_register(2). */
static void fixed_files(struct thread* t, const struct registers* x, long result) {
  struct ring* const r = ring_of(x->a[0]);
  if (r == 0 || result < 0) return;
  const void* const from = (const void*)x->a[2];
  switch (x->a[1]) {
    case IORING_UNREGISTER_FILES:
      fill_places(t, r, 0, kFixedFiles, 0);
      break;
    case IORING_REGISTER_FILES:
      fill_places(t, r, 0, (uint32_t)x->a[3], from);
      break;
    case IORING_REGISTER_FILES2: {
      const struct io_uring_rsrc_register* const f = from; /* no list: a table without files */
      if (f->data != 0) fill_places(t, r, 0, f->nr, (const int*)(uintptr_t)f->data);
      break;
    }
    case IORING_REGISTER_FILES_UPDATE: {
      const struct io_uring_files_update* const u = from;
      fill_places(t, r, u->offset, (uint32_t)x->a[3], (const int*)(uintptr_t)u->fds);
      break;
    }
    case IORING_REGISTER_FILES_UPDATE2: {
      const struct io_uring_rsrc_update2* const u = from;
      fill_places(t, r, u->offset, u->nr, (const int*)(uintptr_t)u->data);
      break;
    }
    default:
      break;
  }
}

/* io_uring_setup, _enter and _register. */
static __attribute__((noinline)) long uring_call(struct registers* x, struct thread* t) {
  const struct described* const d = &kDescribed[x->number];
  if (rings != 0) (void)look_at_rings(t, ticks(), 0);
  const uint64_t start = ticks();
  const long result = system_call(x->number, x->a[0], x->a[1], x->a[2], x->a[3], x->a[4], x->a[5]);
  const uint64_t end = ticks();
  if (feign_capture.control == 0 || feign_capture.off || t->quiet != 0) return result;
  if (x->number == SYS_io_uring_register && rings != 0) fixed_files(t, x, result);
  /* The time of what came to its end here is that of those calls. */
  const int said = x->number == SYS_io_uring_enter && rings != 0 && look_at_rings(t, start, 1) != 0;
  if (!said && d->fill != 0 && recording(t, 0) &&
      (!feign_capture.control->paused || (d->flags & kState)))
    record(t, d, FEIGN_RECORD_CALL, x->a, start, end, result, 0, kNoFlight, (uintptr_t)x, 0);
  if (x->number == SYS_io_uring_setup && result >= 0 && *feign_capture.token != 0)
    new_ring(result, (const struct io_uring_params*)x->a[1]);
  return result;
}

/* liburing's functions that submit or wait: with a thread of the kernel at work, a program need not
 * enter the kernel itself. */
#define THROUGH(name)                                                                      \
  __attribute__((visibility("default"))) long name(long a, long b, long c, long d, long e, \
                                                   long f);                                \
  long name(long a, long b, long c, long d, long e, long f) {                              \
    static long (*next)(long, long, long, long, long, long);                               \
    if (next == 0) *(void**)&next = dlsym(RTLD_NEXT, #name);                               \
    if (next == 0) return -ENOSYS;                                                         \
    const uint64_t start = ticks();                                                        \
    const long result = next(a, b, c, d, e, f);                                            \
    if (rings != 0) (void)look_at_rings(&feign_thread, start, 1);                          \
    return result;                                                                         \
  }
THROUGH(io_uring_submit)
THROUGH(io_uring_submit_and_wait)
THROUGH(io_uring_submit_and_wait_timeout)
THROUGH(io_uring_submit_and_get_events)
THROUGH(io_uring_wait_cqes)
THROUGH(io_uring_wait_cqe_timeout)
THROUGH(io_uring_peek_batch_cqe)
THROUGH(__io_uring_get_cqe)
