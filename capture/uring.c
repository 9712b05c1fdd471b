/* SPDX-License-Identifier: MIT */
/* io_uring: its requests are put into memory that program and kernel share, and so are their
 * results. This looks at the same memory whenever the program enters the kernel or goes through
 * liburing (where a thread of the kernel looks for requests, nobody need enter it for them): a
 * request that has come to its end is recorded as the system call that it stands for, from when it
 * was seen to be submitted to when its result was seen. Part of hook.c. */
#include <linux/io_uring.h>

enum {
  kRings = 256,
  kRequest = 1024,
  kRequests = 128,
  kMostRequests = 65536,
  kFixedFiles = 4096,
  kPage = 4096
};

/* Of a place for a ring: closed is one that whoever holds it has still to give up. */
enum { kNone, kThere, kClosed };

/* A file that requests name by its place in the ring's table has a descriptor in the trace, which
 * no process can have. */
enum { kDirect = 1 << 30, kAnyPlace = -1 /* IORING_FILE_INDEX_ALLOC */ };

/* One under way, in a slot of kRequest bytes. */
enum { kNoCall = 0xFFFF }; /* what it stands for is none about files */
enum { kLinks = 1, kHard };
struct request {
  uint64_t user_data, start;
  long a[6];
  uint16_t number; /* of the system call, or kNoCall */
  uint16_t used;   /* of what follows */
  uint8_t taken;
  uint8_t update;  /* of the table, from place a[0], by a[2] descriptors at a[1] */
  uint8_t selects; /* a buffer among those that the kernel was given */
  uint8_t silent;  /* it says no more than that it failed, or fell short */
  uint8_t noted;   /* of the descriptor that it closes, which is of no other under way */
  uint8_t links; /* the next one waits for it: kLinks, kHard (which makes it also if this fails) */
  int32_t place; /* in the table, of the file that it opens or closes, and 1; 0: none */
  struct ring* table;
  uint32_t next;           /* of those under way that are called alike: its slot, and 1; 0: none */
  _Alignas(8) char kept[]; /* what arguments pointed to */
};

/* Requests under way that are called alike (user_data; or share a list with such by chance): the
 * slots of the oldest and of the newest, and 1; 0: none. */
struct alike {
  uint32_t first, last;
};

struct ring {
  uintptr_t holder; /* whose feign_thread is there; and 1: somebody else wanted it, too; 0: free */
  int state;
  int fd;            /* and 1; 0: none (any more) */
  int duplicate;     /* a descriptor that was made of it, likewise */
  struct thread* by; /* who has it in a table of its own, in that place: IORING_REGISTER_RING_FDS */
  uint32_t place;
  /* From here on changed by who holds it alone, but looked at by all. */
  int own_memory;      /* the program's: it may be gone unless it enters the kernel for this ring */
  uint32_t seen, done; /* of the queues */
  volatile uint32_t *queue, *completed;
  uint32_t flags, entries, requests;
  uint32_t first, end; /* slots in use lie between these, in the order of submission */
  uint32_t under_way;  /* as many of them are taken */
  uint32_t silent;     /* as many of them at most say nothing when they succeed */
  uint32_t closes;     /* as many of them close a file in a place of the table */
  /* A thread is in the kernel to submit until there, since then; 0: none is. */
  uint32_t entering_to;
  uint64_t entering;
  volatile uint32_t *head, *tail;
  struct held held;      /* its holder's signals */
  const uint32_t* order; /* 0: entries are taken in order */
  uint32_t mask, completed_mask, entry_size, completion_size;
  const uint8_t *entry, *completion;
  uint8_t* slots; /* and behind them as many lists */
  struct mapped {
    long at, size;
  } map[3];                  /* queues, entries, slots */
  uint8_t file[kFixedFiles]; /* whether there is one */
};

/* None, as long as the process makes none; a child of fork has none. */
static struct ring* rings;
static uint32_t ring_places;    /* that have ever been taken */
static uint64_t rings_of_token; /* the process that has them */

/* What is known of each descriptor since there are rings: that it was got, and nobody has closed
 * it; or when a close by a request that is under way, and in no record yet, was submitted (with
 * kGot if it had been got before). */
enum { kGot = 1, kDescriptors = 1 << 16 };

/* What this thread has entered the kernel for, and which of the requests it has submitted there. */
struct entered {
  struct ring* ring;
  uint64_t start;
  uint32_t from, count;
};

/* All look at the heads and tails of a ring's queues, whoever may close it at that moment: the page
 * that they are in (a ring cannot be mapped to an address of choice) stays one that can be read,
 * without memory behind it, until so many more rings have been closed. */
static void leave_page(long at) {
  static long left[4096];
  static uint32_t count;
  system_call(SYS_mmap, at, kPage, PROT_READ,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  const uint32_t place =
      __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED) % (sizeof left / sizeof left[0]);
  const long old = __atomic_exchange_n(&left[place], at, __ATOMIC_ACQ_REL);
  if (old != 0) system_call(SYS_munmap, old, kPage, 0, 0, 0, 0);
}

/* @p count of a ring's maps. */
static void unmap(const struct mapped* map, int count) {
  for (int i = 0; i < count; ++i) {
    if (map[i].size == 0) continue;
    long at = map[i].at, size = map[i].size;
    if (i == 0) {
      leave_page(at);
      at += kPage;
      size -= kPage;
    }
    if (size > 0) system_call(SYS_munmap, at, size, 0, 0, 0, 0);
  }
}

static void forget(struct ring* r) {
  unmap(r->map, 3);
  for (int i = 0; i < 3; ++i) r->map[i].size = 0;
  r->fd = r->duplicate = 0;
  r->by = 0;
  r->first = r->end = r->silent = 0;
  __atomic_store_n(&r->state, kNone, __ATOMIC_RELEASE);
}

static uint8_t* see(struct ring* r, int which, long size, long fd, long offset) {
  const int own = fd < 0; /* memory for this */
  const long at =
      system_call(SYS_mmap, 0, size, PROT_READ | (own ? PROT_WRITE : 0),
                  own ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED, fd, offset);
  if (at < 0 && at >= -4095) return 0;
  system_call(SYS_madvise, at, size, MADV_DONTFORK, 0, 0, 0);
  r->map[which].at = at;
  r->map[which].size = size;
  return (uint8_t*)at;
}

/* In a child of fork the memory is not there. */
static int has_rings(void) {
  if (rings != 0 && *feign_capture.token != rings_of_token) {
    ring_places = 0;
    rings = 0;
  }
  return rings != 0;
}

static struct ring* ring_of(long fd) {
  for (uint32_t i = 0; fd >= 0 && i < ring_places; ++i)
    if (rings[i].state == kThere &&
        (rings[i].fd == (int)fd + 1 || rings[i].duplicate == (int)fd + 1))
      return &rings[i];
  return 0;
}

static struct ring* ring_at(const struct thread* t, uint32_t place) {
  for (uint32_t i = 0; i < ring_places; ++i)
    if (rings[i].state == kThere && rings[i].by == t && rings[i].place == place) return &rings[i];
  return 0;
}

/* Whoever looks at a ring, or changes it, holds it. Meanwhile it has all signals blocked, so that
 * no handler comes in between, nothing jumps out of it, and its thread is not cancelled: it goes on
 * as soon as it has a processor, and @p patient may wait for it (a tenth of a second at most). Who
 * is not lets the holder look once more. Under seccomp signals may not be blocked, and nobody
 * waits. */
static int take(struct ring* r, struct thread* t, int patient) {
  const struct held held = hold_signals();
  const uintptr_t self = (uintptr_t)t;
  for (int waits = 0;;) {
    uintptr_t was = 0;
    /* Held by itself: by a child of vfork that was killed. */
    if (__atomic_compare_exchange_n(&r->holder, &was, self, 0, __ATOMIC_ACQUIRE,
                                    __ATOMIC_RELAXED) ||
        (held.held && (was & ~(uintptr_t)1) == self)) {
      r->held = held;
      return 1;
    }
    if ((was & 1) == 0 && !__atomic_compare_exchange_n(&r->holder, &was, was | 1, 0,
                                                       __ATOMIC_RELEASE, __ATOMIC_RELAXED))
      continue;
    if (!patient || !held.held || waits++ == 10) break;
    const struct timespec most = {0, 10000000};
    system_call(SYS_futex, (long)&r->holder, FUTEX_WAIT_PRIVATE, (uint32_t)(was | 1), (long)&most,
                0, 0);
  }
  let_signals(&held);
  return 0;
}

static void let_go(struct ring* r, struct thread* t, uint64_t now);

static struct ring* free_place(struct thread* t) {
  if (!has_rings()) {
    rings_of_token = *feign_capture.token;
    const long size = (long)sizeof(struct ring) * kRings + (long)sizeof(uint64_t) * kDescriptors;
    const long at = system_call(SYS_mmap, 0, size, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at < 0 && at >= -4095) return 0;
    struct ring* none = 0;
    if (!__atomic_compare_exchange_n(&rings, &none, (struct ring*)at, 0, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
      system_call(SYS_munmap, at, size, 0, 0, 0, 0); /* another thread was faster */
  }
  for (uint32_t i = 0; i < kRings; ++i) {
    struct ring* const r = &rings[i];
    if (r->state != kNone || r->holder != 0 || !take(r, t, 0)) continue;
    if (r->state == kNone) {
      uint32_t places = ring_places;
      while (places <= i && !__atomic_compare_exchange_n(&ring_places, &places, i + 1, 0,
                                                         __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
      }
      return r;
    }
    let_go(r, t, ticks());
  }
  return 0;
}

/* What the kernel says of the queues' memory, @p fd: by which it is mapped. */
static int see_queues(struct ring* r, long fd, const struct io_uring_params* p) {
  const int in_order = (r->flags & 1u << 16 /* IORING_SETUP_NO_SQARRAY */) != 0;
  uint8_t *queues, *entry;
  if (!in_order && p->sq_off.array == 0) return 0; /* of one that is resized nobody is told */
  if (r->own_memory) {
    queues = (uint8_t*)p->cq_off.resv2;
    entry = (uint8_t*)p->sq_off.resv2;
  } else {
    const long end = (long)p->cq_off.cqes + (long)p->cq_entries * r->completion_size;
    const long order = in_order ? 0 : (long)p->sq_off.array + (long)p->sq_entries * 4;
    if (fd < 0) return 0;
    queues = see(r, 0, end > order ? end : order, fd, IORING_OFF_SQ_RING);
    entry = see(r, 1, (long)p->sq_entries * r->entry_size, fd, IORING_OFF_SQES);
  }
  if (queues == 0 || entry == 0) return 0;
  r->entries = p->sq_entries;
  r->entry = entry;
  r->head = (volatile uint32_t*)(queues + p->sq_off.head);
  r->tail = (volatile uint32_t*)(queues + p->sq_off.tail);
  r->completed = (volatile uint32_t*)(queues + p->cq_off.tail);
  r->mask = *(const uint32_t*)(queues + p->sq_off.ring_mask);
  r->completed_mask = *(const uint32_t*)(queues + p->cq_off.ring_mask);
  r->order = in_order ? 0 : (const uint32_t*)(queues + p->sq_off.array);
  r->completion = queues + p->cq_off.cqes;
  /* A thread of the kernel takes them from the queue when it likes; until then they are there. */
  r->queue = r->flags & IORING_SETUP_SQPOLL ? r->tail : r->head;
  return 1;
}

static int see_ring(struct ring* r, long fd, const struct io_uring_params* p) {
  r->flags = p->flags;
  r->first = r->end = r->under_way = r->silent = r->closes = 0;
  r->entering = 0;
  __builtin_memset(r->file, 0, sizeof r->file);
  r->entry_size = p->flags & IORING_SETUP_SQE128 ? 128 : 64;
  r->completion_size = p->flags & IORING_SETUP_CQE32 ? 32 : 16;
  r->own_memory = (p->flags & 1u << 14 /* IORING_SETUP_NO_MMAP */) != 0;
  if (!r->own_memory && (p->features & IORING_FEAT_SINGLE_MMAP) == 0) return 0;
  r->requests = kRequests; /* more may be under way: room_for_more() */
  r->slots = see(r, 2, (long)r->requests * (long)(kRequest + sizeof(struct alike)), -1, 0);
  if (r->slots == 0 || !see_queues(r, fd, p)) return 0;
  r->seen = *r->head;
  r->done = *r->completed;
  return 1;
}

/* The queues are in other memory, with what was in them. Where that cannot be seen, what is
 * submitted from now on is counted. */
static void resized(struct ring* r, const struct io_uring_params* p) {
  const struct mapped was[2] = {r->map[0], r->map[1]};
  if (!feign_capture.sealed && see_queues(r, r->fd - 1, p)) {
    if (!r->own_memory) unmap(was, 2);
    return;
  }
  r->map[0] = was[0], r->map[1] = was[1];
  r->state = kClosed; /* or what is mapped here keeps it */
}

#include "uring_request.c"

static int say(struct thread* t, uint32_t number, const long* a, uint64_t start, uint64_t end,
               long result) {
  if (number == kNoCall) return 0;
  const struct described* const d = &kDescribed[number];
  if (d->fill == 0 || !recording(t, 0) || (feign_capture.control->paused && !(d->flags & kState)))
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

/* How long the buffer was that the kernel chose nobody is told; as long as what was read into it.
 */
static void reads_selected(struct request* q, long result) {
  if (q->number == SYS_read || q->number == SYS_pread64)
    q->a[2] = result;
  else if (q->number == SYS_readv || q->number == SYS_preadv || q->number == SYS_preadv2)
    ((struct iovec*)q->a[1])->iov_len = (size_t)result;
}

static struct request* slot(const struct ring* r, uint32_t number) {
  return (struct request*)(r->slots + (size_t)(number % r->requests) * kRequest);
}

static uint64_t* state_of(long fd) {
  uint64_t* const all = (uint64_t*)(void*)(rings + kRings);
  return fd >= 0 && fd < kDescriptors ? &all[fd] : 0;
}

/* A close of a descriptor is under way. */
static void will_close(struct request* q) {
  uint64_t* const state = q->number == SYS_close && q->place == 0 ? state_of(q->a[0]) : 0;
  uint64_t was = state != 0 ? __atomic_load_n(state, __ATOMIC_ACQUIRE) : 0;
  q->noted = state != 0 && was <= kGot &&
             __atomic_compare_exchange_n(state, &was, (q->start & ~(uint64_t)kGot) | was, 0,
                                         __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* It is under way no more. Whether it is no close that was recorded already. */
static int is_to_say(const struct request* q, int closed) {
  if (!q->noted) return 1;
  uint64_t* const state = state_of(q->a[0]);
  uint64_t was = __atomic_load_n(state, __ATOMIC_ACQUIRE);
  return (was | kGot) == (q->start | kGot) &&
         __atomic_compare_exchange_n(state, &was, closed ? 0 : was & kGot, 0, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED);
}

/* Descriptor @p fd was got: a close that was under way before that is over, though the kernel says
 * so later. (One that is seen at the same moment may have come after it, unless it had been got
 * before.) */
static void got(struct thread* t, long fd, uint64_t end) {
  uint64_t* const state = state_of(fd);
  if (state == 0) return;
  uint64_t was = __atomic_load_n(state, __ATOMIC_ACQUIRE);
  int later;
  do later = was > kGot && (was & kGot) == 0 && was >= end;
  while (!__atomic_compare_exchange_n(state, &was, later ? was | kGot : kGot, 0, __ATOMIC_ACQ_REL,
                                      __ATOMIC_ACQUIRE));
  if (was <= kGot || later) return;
  const long a[6] = {fd};
  (void)say(t, SYS_close, a, was, end > was ? end : was, 0);
}

/* The same of a place in the table. */
static void gives_way(struct thread* t, struct ring* r, long fd, uint64_t end) {
  for (uint32_t i = r->first; r->closes != 0 && i != r->end; ++i) {
    struct request* const q = slot(r, i);
    if (!q->taken || q->number != SYS_close || q->a[0] != fd || q->start >= end) continue;
    r->file[q->place - 1] = 0;
    (void)say(t, SYS_close, q->a, q->start, end, 0);
    q->number = kNoCall;
    q->place = 0;
    --r->closes;
    break;
  }
}

static int ended(struct thread* t, struct ring* r, struct request* q, uint64_t end, long result) {
  /* Not made: one that it was linked behind failed, the program took it back, or there was no
   * buffer to choose. */
  if (!is_to_say(q, result >= 0)) return 0;
  if (result == -ECANCELED || (q->selects && result == -ENOBUFS)) return 0;
  if (q->selects && result > 0) reads_selected(q, result);
  if (q->number == SYS_pipe2) {
    if (result == 0) keep(q, 0, 2 * sizeof(int), 0);
    if (result != 0 || q->a[0] == 0) return 0;
  }
  if (q->update && q->a[0] != kAnyPlace && result > 0)
    fill_places(t, r, (uint32_t)q->a[0], (uint32_t)result, (const int*)q->a[1]);
  const int opens = q->number != kNoCall && makes_fd(&kDescribed[q->number], q->a, result);
  if (opens && q->place == 0) got(t, result, end);
  if (q->place == 0 || result < 0) return say(t, q->number, q->a, q->start, end, result);
  const uint32_t place = (uint32_t)(q->place == kAnyPlace ? result : q->place - 1);
  if (place >= kFixedFiles) return 0;
  if (opens) {
    result = direct(q->table, place);
    gives_way(t, r, result, end);
    clear_place(t, q->table, place, end);
  }
  q->table->file[place] = (uint8_t)opens;
  return say(t, q->number, q->a, q->start, end, result);
}

static struct request* at_slot(const struct ring* r, uint32_t which) {
  return (struct request*)(r->slots + (size_t)(which - 1) * kRequest);
}

static struct alike* list_of(const struct ring* r, uint64_t user_data) {
  const uint64_t spread = user_data * 0x9E3779B97F4A7C15u >> 32;
  return (struct alike*)(r->slots + (size_t)r->requests * kRequest) + (spread & (r->requests - 1));
}

/* A server's may be many thousands, each of which is looked for as it says something. */
static void is_under_way(struct ring* r, struct request* q) {
  struct alike* const list = list_of(r, q->user_data);
  const uint32_t which = (uint32_t)(((uint8_t*)q - r->slots) / kRequest) + 1;
  q->taken = 1;
  ++r->under_way;
  r->closes += q->number == SYS_close && q->place != 0;
  q->next = 0;
  if (list->first == 0)
    list->first = which;
  else
    at_slot(r, list->last)->next = which;
  list->last = which;
}

static void is_over(struct ring* r, struct request* q) {
  if (!q->taken) return;
  struct alike* const list = list_of(r, q->user_data);
  uint32_t before = 0, which = list->first;
  while (at_slot(r, which) != q) before = which, which = at_slot(r, which)->next;
  if (before == 0)
    list->first = q->next;
  else
    at_slot(r, before)->next = q->next;
  if (q->next == 0) list->last = before;
  q->taken = 0;
  --r->under_way;
  r->closes -= q->number == SYS_close && q->place != 0;
  (void)is_to_say(q, 0); /* of one that nothing was said of, and that was not made */
}

/* Most slots are of requests under way: twice as many are made. */
static int room_for_more(struct ring* r) {
  if (feign_capture.sealed) return 0; /* to be given memory may be forbidden by now */
  const long was = r->map[2].at, size = r->map[2].size;
  if (r->requests >= kMostRequests || see(r, 2, size * 2, -1, 0) == 0) return 0;
  r->slots = (uint8_t*)r->map[2].at;
  r->requests *= 2;
  r->under_way = r->closes = 0;
  for (uint32_t i = r->first; i != r->end; ++i) {
    const long at = was + (long)(i % (r->requests / 2)) * kRequest;
    const struct request* const from = (const struct request*)at;
    struct request* const to = slot(r, i);
    __builtin_memcpy(to, from, offsetof(struct request, kept) + from->used);
    for (int k = 0; k < 6; ++k) /* what points to what is kept */
      if ((uint64_t)(from->a[k] - at) < kRequest) to->a[k] += (long)to - at;
    if (to->taken) is_under_way(r, to);
  }
  system_call(SYS_munmap, was, size, 0, 0, 0, 0);
  return 1;
}

/* What was submitted until then. */
static void takes_in(struct ring* r, const struct entered* e, uint32_t submitted) {
  const int32_t behind = (int32_t)(submitted - r->seen);
  if (behind <= 0) return;
  const uint64_t now = ticks();
  if ((uint32_t)behind > r->entries) { /* the program entered the kernel by itself */
    __atomic_fetch_add(&feign_capture.control->overlooked, (uint32_t)behind - r->entries,
                       __ATOMIC_RELAXED);
    r->seen = submitted - r->entries;
  }
  for (; r->seen != submitted; ++r->seen) {
    if (r->first == r->end) r->first = r->end = 0; /* no more memory than is needed at once */
    if (r->under_way >= r->requests - r->requests / 8 && !room_for_more(r)) { /* they never end */
      while (!slot(r, r->first)->taken) ++r->first;
      struct request* const oldest = slot(r, r->first);
      if (oldest->number != kNoCall)
        __atomic_fetch_add(&feign_capture.control->dropped, 1, __ATOMIC_RELAXED);
      is_over(r, oldest);
    }
    /* One that takes long goes behind those that came after it: its slot is the next one, too. Of
     * every eight one is free, or that would take long itself. */
    while (r->end - r->first == r->requests && slot(r, r->first)->taken) ++r->first, ++r->end;
    if (r->end - r->first == r->requests) ++r->first;
    const uint32_t at = r->seen & r->mask;
    const uint32_t index = r->order != 0 ? r->order[at] & r->mask : at;
    struct request* const q = slot(r, r->end);
    const struct io_uring_sqe* const s =
        (const struct io_uring_sqe*)(r->entry + (size_t)index * r->entry_size);
    translate(q, s, r);
    const int own = e != 0 && r == e->ring && r->seen - e->from < e->count;
    q->start = own ? e->start : r->entering != 0 ? r->entering : now;
    will_close(q);
    is_under_way(r, q);
    r->silent += q->silent;
    ++r->end;
  }
  if (r->first != r->end) slot(r, r->end - 1)->links = 0; /* no chain is longer than a submission */
}

/* Several may be called the same: then the first that failed, and of others one that says all. */
static struct request* request_of(const struct ring* r, uint64_t user_data, int failed) {
  struct request* silent = 0;
  for (uint32_t i = list_of(r, user_data)->first; i != 0; i = at_slot(r, i)->next) {
    struct request* const q = at_slot(r, i);
    if (q->user_data != user_data) continue;
    if (failed || !q->silent) return q;
    if (silent == 0) silent = q;
  }
  return silent;
}

/* What it comes to if all that was asked for is done. */
static long in_full(const struct request* q) {
  if (q->update) return q->a[2];
  if (q->number == kNoCall || (kDescribed[q->number].flags & kData) == 0) return 0;
  const int vector = q->number == SYS_readv || q->number == SYS_writev || q->number == SYS_preadv ||
                     q->number == SYS_pwritev || q->number == SYS_preadv2 ||
                     q->number == SYS_pwritev2;
  if (!vector) return q->a[q->number == SYS_splice ? 4 : 2];
  const struct iovec* const piece = (const struct iovec*)q->a[1];
  size_t length = 0;
  for (long i = 0; piece != 0 && i < q->a[2]; ++i) length += piece[i].iov_len;
  return (long)length;
}

/* Whether a chain goes on from there to @p end, or, if that is none, to one that is under way and
 * says when it is over. */
static int leads_to(const struct ring* r, uint32_t i, const struct request* end) {
  while (slot(r, i)->links && ++i != r->end) {
    const struct request* const q = slot(r, i);
    if (end != 0 ? q == end : q->taken && !q->silent) return 1;
  }
  return 0;
}

/* Of those that say nothing when they succeed: the ones that lead to @p end, which is over; if that
 * is none, all that are in no chain with one under way. They would have failed by now. */
static int succeeded(struct ring* r, struct thread* t, const struct request* end, uint64_t now) {
  if (r->silent == 0) return 0;
  int made = 0, waits = 0;
  uint32_t left = 0;
  for (uint32_t i = r->first; i != r->end && slot(r, i) != end; ++i) {
    struct request* const q = slot(r, i);
    const int silent = q->taken && q->silent;
    if (silent && !waits && leads_to(r, i, end) == (end != 0)) {
      made += ended(t, r, q, now > q->start ? now : q->start, in_full(q));
      is_over(r, q);
    } else if (silent) {
      ++left;
    }
    waits = q->taken && q->links;
  }
  if (end == 0) r->silent = left;
  while (r->first != r->end && !slot(r, r->first)->taken) ++r->first;
  return made;
}

/* One that says no more than that it failed says it for those behind it, too. */
static void fails(struct ring* r, const struct request* q) {
  uint32_t i = r->first;
  while (slot(r, i) != q) ++i;
  for (int linked = q->links == kLinks; linked && ++i != r->end;) {
    linked = slot(r, i)->links != 0;
    is_over(r, slot(r, i));
  }
}

/* What was submitted until now, and what has ended; how many records that made. @p now: from before
 * it was held. Who found it held, and goes on to close the file, does so later. */
static int look_at(struct ring* r, struct thread* t, const struct entered* e, uint64_t now) {
  int made = 0;
  /* Of two sizes: a longer result has two places, side by side, and one before these stays free. */
  const int mixed = (r->flags & 1u << 18 /* IORING_SETUP_CQE_MIXED */) != 0;
  takes_in(r, e, __atomic_load_n(r->queue, __ATOMIC_ACQUIRE));
  const uint32_t completed = __atomic_load_n(r->completed, __ATOMIC_ACQUIRE);
  if ((int32_t)(completed - r->done) > (int32_t)r->completed_mask + 1)
    r->done = completed - r->completed_mask - 1;
  for (; (int32_t)(completed - r->done) > 0; ++r->done) {
    const struct io_uring_cqe* const c =
        (const struct io_uring_cqe*)(r->completion +
                                     (size_t)(r->done & r->completed_mask) * r->completion_size);
    if (mixed && (c->flags & 1u << 5 /* IORING_CQE_F_SKIP */)) continue;
    if (mixed && (c->flags & 1u << 15 /* IORING_CQE_F_32 */)) ++r->done;
    struct request* q = request_of(r, c->user_data, c->res < 0);
    if (q == 0) { /* the kernel says what it has taken after it has made it */
      takes_in(r, e, __atomic_load_n(r->tail, __ATOMIC_ACQUIRE));
      q = request_of(r, c->user_data, c->res < 0);
    }
    if (q == 0) continue;
    made += succeeded(r, t, q, now);
    if (q->silent && c->res != -ECANCELED) fails(r, q);
    made += ended(t, r, q, now > q->start ? now : q->start, c->res);
    if (!(c->flags & IORING_CQE_F_MORE)) is_over(r, q);
    while (r->first != r->end && !slot(r, r->first)->taken) ++r->first;
  }
  return made + succeeded(r, t, 0, now);
}

/* A vfork's child has the memory of its parent, whose rings they are. */
static int may_look(const struct thread* t) {
  return has_rings() && feign_capture.control != 0 && !feign_capture.off && t->quiet == 0 &&
         t->vforks == 0;
}

/* What others are in the kernel to submit, which says what it has taken after it has made it. */
static void sees_submissions(struct thread* t, const struct ring* own) {
  if (!may_look(t)) return;
  for (struct ring* r = rings; r != rings + ring_places; ++r) {
    if (r == own || __atomic_load_n(&r->entering, __ATOMIC_ACQUIRE) == 0 ||
        (int32_t)(r->entering_to - r->seen) <= 0 || r->state != kThere || r->own_memory ||
        !take(r, t, 1))
      continue;
    if (r->state == kThere && r->entering != 0) {
      const uint32_t tail = __atomic_load_n(r->tail, __ATOMIC_ACQUIRE);
      takes_in(r, 0, (int32_t)(tail - r->entering_to) < 0 ? tail : r->entering_to);
    }
    let_go(r, t, ticks());
  }
}

static int look_at_ring(struct ring* r, struct thread* t, const struct entered* e) {
  const int entered = e != 0 && r == e->ring;
  if (__atomic_load_n(&r->state, __ATOMIC_ACQUIRE) != kThere || (r->own_memory && !entered) ||
      ((int32_t)(*r->queue - r->seen) <= 0 && *r->completed == r->done))
    return 0;
  const uint64_t now = ticks();
  /* The program may write over what it has submitted as soon as this returns: on the ring that it
   * entered the kernel for, and on one of which a thread of the kernel takes the requests. */
  const int polled = (r->flags & IORING_SETUP_SQPOLL) && (int32_t)(*r->queue - r->seen) > 0;
  if (!take(r, t, entered || polled)) return 0;
  const int made = r->state == kThere ? look_at(r, t, e, now) : 0;
  let_go(r, t, now);
  return made;
}

/* @p e: what this thread has just entered the kernel for, or nothing. That ring is the first: what
 * others have opened since may have descriptors that were closed there. */
static __attribute__((noinline)) int look_at_rings(struct thread* t, const struct entered* e) {
  if (!may_look(t)) return 0;
  struct ring* const own = e != 0 ? e->ring : 0;
  int made = own != 0 ? look_at_ring(own, t, e) : 0;
  for (struct ring* r = rings; r != rings + ring_places; ++r)
    if (r != own) made += look_at_ring(r, t, e);
  return made;
}

/* The ring goes, and what has not ended on it may still be made, or not: nobody is told any more.
 * Reading would have changed nothing. */
static void leaves(struct ring* r) {
  uint32_t left = 0;
  for (uint32_t i = r->first; i != r->end; ++i) {
    struct request* const q = slot(r, i);
    if (q->taken && is_to_say(q, 0) && q->number != kNoCall && q->number != SYS_read &&
        q->number != SYS_pread64 && q->number != SYS_readv && q->number != SYS_preadv &&
        q->number != SYS_preadv2 && q->number != SYS_accept4 && q->number != SYS_statx)
      ++left;
    is_over(r, q);
  }
  if (left != 0) __atomic_fetch_add(&feign_capture.control->unended, left, __ATOMIC_RELAXED);
}

static void give_up(struct ring* r, struct thread* t, uint64_t now) {
  if (!r->own_memory) (void)look_at(r, t, 0, now);
  leaves(r);
  fill_places(t, r, 0, kFixedFiles, 0);
  forget(r); /* or it would live on in what is mapped here */
}

static void let_go(struct ring* r, struct thread* t, uint64_t now) {
  const struct held held = r->held;
  for (int again = 0;; ++again) {
    if (r->state == kClosed) give_up(r, t, now);
    if ((__atomic_exchange_n(&r->holder, 0, __ATOMIC_ACQ_REL) & 1) == 0) break;
    if (held.held) system_call(SYS_futex, (long)&r->holder, FUTEX_WAKE_PRIVATE, INT_MAX, 0, 0, 0);
    uintptr_t none = 0;
    if ((again > 3 && r->state != kClosed) ||
        !__atomic_compare_exchange_n(&r->holder, &none, (uintptr_t)t, 0, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED))
      break; /* whoever holds it now sees all that, too */
    if (r->state == kThere && !r->own_memory) (void)look_at(r, t, 0, now);
  }
  let_signals(&held);
}

/* A system call has got it. */
static __attribute__((noinline)) void rings_give_way(struct thread* t, long fd) {
  sees_submissions(t, 0);
  (void)look_at_rings(t, 0);
  if (has_rings() && t->vforks == 0) got(t, fd, ticks());
}

static void leaves_all(struct thread* t) {
  for (struct ring* r = rings; r != rings + ring_places; ++r) {
    if (r->state != kThere || !take(r, t, 1)) continue;
    if (r->state == kThere) leaves(r);
    let_go(r, t, ticks());
  }
}

/* Neither a descriptor nor a place in a thread's table leads to it. */
static void ends_unless_used(struct ring* r, struct thread* t) {
  if (r->fd != 0 || r->duplicate != 0 || r->by != 0) return;
  int there = kThere; /* once: another thread may find the same */
  if (__atomic_compare_exchange_n(&r->state, &there, kClosed, 0, __ATOMIC_ACQ_REL,
                                  __ATOMIC_RELAXED) &&
      take(r, t, 1))
    let_go(r, t, ticks());
}

static void closes_ring(struct thread* t, long fd) {
  struct ring* const r = ring_of(fd);
  if (r == 0) return;
  if (r->fd == (int)fd + 1) r->fd = r->duplicate;
  r->duplicate = 0;
  ends_unless_used(r, t);
}

/* A system call has made it; where it duplicates another, it closes what had that number. */
static __attribute__((noinline)) void rings_see_new(struct thread* t, const struct described* d,
                                                    const long* a, long fd) {
  rings_give_way(t, fd);
  if ((d->flags & kDuplicates) == 0 || a[0] == fd || !has_rings() || t->vforks != 0) return;
  closes_ring(t, fd);
  struct ring* const r = ring_of(a[0]);
  if (r != 0 && r->duplicate == 0) r->duplicate = (int)fd + 1;
}

/* By a system call. */
static void closes(struct thread* t, long fd) {
  uint64_t* const state = has_rings() ? state_of(fd) : 0;
  if (state != 0) __atomic_store_n(state, 0, __ATOMIC_RELEASE);
  closes_ring(t, fd);
}

/* By close_range(2); with a flag it closes none, or none of those that other threads have. */
static __attribute__((noinline)) void closes_range(struct thread* t, const long* a) {
  const uint32_t first = (uint32_t)a[0], last = (uint32_t)a[1];
  for (struct ring* r = rings; a[2] == 0 && r != rings + ring_places; ++r) {
    const int fds[] = {r->duplicate, r->fd};
    for (int i = 0; i < 2 && r->state == kThere; ++i)
      if (fds[i] != 0 && (uint32_t)fds[i] - 1 >= first && (uint32_t)fds[i] - 1 <= last)
        closes_ring(t, fds[i] - 1);
  }
}

static int only_by_place(const struct io_uring_params* p) {
  return (p->flags & 1u << 15 /* IORING_SETUP_REGISTERED_FD_ONLY */) != 0;
}

static __attribute__((noinline)) void new_ring(struct thread* t, long result,
                                               const struct io_uring_params* p) {
  const int only_place = only_by_place(p);
  if (!only_place) closes_ring(t, result); /* dup2 may have closed the one that had it */
  struct ring* const r = free_place(t);
  if (r == 0) return;
  if (see_ring(r, only_place ? -1 : result, p)) {
    r->fd = only_place ? 0 : (int)result + 1;
    r->by = only_place ? t : 0;
    r->place = (uint32_t)result;
    __atomic_store_n(&r->state, kThere, __ATOMIC_RELEASE);
  } else {
    forget(r);
  }
  let_go(r, t, ticks());
}

/* The thread ends, and its table of rings with it. */
static void leaves_places(struct thread* t) {
  for (struct ring* r = rings; r != rings + ring_places; ++r)
    if (r->state == kThere && r->by == t) {
      r->by = 0;
      ends_unless_used(r, t);
    }
}

/* io_uring_register(2): rings in places of the thread's table. */
static void ring_places_of(struct thread* t, const struct registers* x, long result) {
  const struct io_uring_rsrc_update* const u = (const struct io_uring_rsrc_update*)x->a[2];
  for (long i = 0; i < result; ++i) {
    const int registers = (uint32_t)x->a[1] == 20 /* IORING_REGISTER_RING_FDS */;
    struct ring* const r = registers ? ring_of((int)u[i].data) : ring_at(t, u[i].offset);
    if (r == 0) continue;
    r->place = u[i].offset;
    r->by = registers ? t : 0;
    ends_unless_used(r, t);
  }
}

static const uint32_t kByPlace = 1u << 31; /* IORING_REGISTER_USE_REGISTERED_RING */

/* Files that requests name by their place in a table: io_uring_register(2). */
static void fixed_files(struct thread* t, struct ring* r, const struct registers* x) {
  const void* const from = (const void*)x->a[2];
  switch ((uint32_t)x->a[1] & ~kByPlace) {
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

/* What a call that is about to be made will have submitted, which only its result will tell; but
 * where a thread of the kernel takes requests that is all that nobody has seen. */
static struct entered enters(struct ring* r, uint64_t start) {
  struct entered e = {r, start, 0, 0};
  if (r == 0) return e;
  const int polled = (r->flags & IORING_SETUP_SQPOLL) != 0;
  e.from = polled ? r->seen : *r->head;
  e.count = polled ? UINT32_MAX : 0;
  return e;
}

/* io_uring_setup, _enter and _register. */
/* The place may be another ring's by now, or another thread be in the kernel for this one. */
static void has_submitted(struct ring* r, uint64_t since) {
  __atomic_compare_exchange_n(&r->entering, &since, 0, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static __attribute__((noinline)) long uring_call(struct registers* x, struct thread* t) {
  const struct described* const d = &kDescribed[x->number];
  if (rings != 0) (void)look_at_rings(t, 0);
  const int enter = x->number == SYS_io_uring_enter;
  const uint32_t by_place = enter ? (uint32_t)x->a[3] & 16 /* IORING_ENTER_REGISTERED_RING */
                                  : (uint32_t)x->a[1] & kByPlace;
  struct ring* r = 0;
  if (x->number != SYS_io_uring_setup)
    r = by_place ? ring_at(t, (uint32_t)x->a[0]) : ring_of(x->a[0]);
  struct entered e = enters(enter ? r : 0, ticks());
  const int submits = e.ring != 0 && e.count == 0 && x->a[1] != 0 && may_look(t);
  if (submits) {
    r->entering_to = e.from + (uint32_t)x->a[1];
    __atomic_store_n(&r->entering, e.start, __ATOMIC_RELEASE);
  }
  const long result = system_call(x->number, x->a[0], x->a[1], x->a[2], x->a[3], x->a[4], x->a[5]);
  const uint64_t end = ticks();
  if (feign_capture.control == 0 || feign_capture.off || t->quiet != 0 || t->vforks != 0) {
    if (submits) has_submitted(r, e.start);
    return result;
  }
  const struct io_uring_params* const p = (const struct io_uring_params*)x->a[1];
  if (x->number == SYS_io_uring_setup && result >= 0 && rings != 0 && !only_by_place(p))
    rings_give_way(t, result);
  if (x->number == SYS_io_uring_register && result >= 0 && rings != 0) {
    if (((uint32_t)x->a[1] & ~kByPlace) - 20 < 2) {
      ring_places_of(t, x, result);
    } else if (r != 0 && take(r, t, 1)) {
      const int resizes = ((uint32_t)x->a[1] & ~kByPlace) == 33; /* IORING_REGISTER_RESIZE_RINGS */
      if (r->state == kThere && resizes) resized(r, (const struct io_uring_params*)x->a[2]);
      if (r->state == kThere && !resizes) fixed_files(t, r, x);
      let_go(r, t, end);
    }
  }
  if (enter && r == 0 && result > 0 && x->a[1] != 0) /* one too many, or another process made it */
    __atomic_fetch_add(&feign_capture.control->overlooked, result, __ATOMIC_RELAXED);
  if (e.count == 0 && result > 0) e.count = (uint32_t)result;
  if (enter && rings != 0) sees_submissions(t, r);
  /* The time of what came to its end here is that of those calls. */
  const int said = enter && rings != 0 && look_at_rings(t, &e) != 0;
  if (submits) has_submitted(r, e.start);
  if (!said && d->fill != 0 && recording(t, 0) &&
      (!feign_capture.control->paused || (d->flags & kState)))
    record(t, d, FEIGN_RECORD_CALL, x->a, e.start, end, result, 0, kNoFlight, (uintptr_t)x, 0);
  if (x->number == SYS_io_uring_setup && result >= 0 && *feign_capture.token != 0)
    new_ring(t, result, p);
  return result;
}

/* The descriptor in a struct io_uring, which is the same in all versions of liburing: its functions
 * that are inline know it, too. */
enum { kRingFd = 196 / sizeof(int) };

/* liburing's functions that submit or wait: with a thread of the kernel at work, a program need not
 * enter the kernel itself. */
#define THROUGH(name)                                                                      \
  __attribute__((visibility("default"))) long name(long a, long b, long c, long d, long e, \
                                                   long f);                                \
  long name(long a, long b, long c, long d, long e, long f) {                              \
    static long (*next)(long, long, long, long, long, long);                               \
    if (next == 0) *(void**)&next = dlsym(RTLD_NEXT, #name);                               \
    if (next == 0) return -ENOSYS;                                                         \
    if (!has_rings()) return next(a, b, c, d, e, f);                                       \
    struct entered to = enters(ring_of(((const int*)a)[kRingFd]), ticks());                \
    const long result = next(a, b, c, d, e, f);                                            \
    (void)look_at_rings(&feign_thread, &to);                                               \
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
