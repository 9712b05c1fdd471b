/* SPDX-License-Identifier: MIT */
/* The heart of the capture library: records into chunks of a shared file, without locks, allocation
 * or anything else that a program could notice. format.h says what comes out. */
#include "core.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

struct capture feign_capture;
__thread struct thread feign_thread;

/* Most processes are small and many. */
enum { kFirstChunk = FEIGN_CAPTURE_UNIT, kSecondChunk = 16 << 10, kChunk = 64 << 10 };
enum { kSpare = 1024 }; /* what is left of a chunk, if it is to be another */

static void copy_text(char* to, const char* from, size_t size) {
  size_t i = 0;
  for (; i + 1 < size && from[i] != '\0'; ++i) to[i] = from[i];
  to[i] = '\0';
}

static char* append(char* to, const char* text) {
  while (*text != '\0') *to++ = *text++;
  *to = '\0';
  return to;
}

int32_t feign_own_number(void) {
  uintptr_t self;
  __asm__("mov %%fs:0, %0" : "=r"(self));
  if (feign_capture.sealed && feign_capture.own_id != 0)
    return *(const int32_t*)(self + (uintptr_t)feign_capture.own_id);
  return (int32_t)system_call(SYS_gettid, 0, 0, 0, 0, 0, 0);
}

void feign_process_begin(uint32_t forked) {
  struct capture* g = &feign_capture;
  const int32_t before = g->pid; /* of a fork's child: the process whose memory this is */
  if (g->sealed && g->own_id != 0) {
    const uint64_t now = ticks(), passed = now - g->began, rate = g->control->rate;
    if (rate == 0 || g->began_ns == 0)
      g->began_ns = 0;
    else
      g->began_ns += ((passed / rate) << 20) + ((passed % rate) << 20) / rate;
    g->began = now;
    g->parent = g->pid;
    g->pid = feign_own_number(); /* a fork's child has one thread */
  } else {
    struct {
      long s, ns;
    } clock = {0, 0};
    system_call(SYS_clock_gettime, 1 /* monotonic */, (long)&clock, 0, 0, 0, 0);
    g->began = ticks();
    g->began_ns = (uint64_t)clock.s * 1000000000u + (uint64_t)clock.ns;
    g->pid = (int32_t)system_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
    g->parent = (int32_t)system_call(SYS_getppid, 0, 0, 0, 0, 0, 0);
    /* Another one where that has ended (a daemon's child); 0 in a PID namespace of its own. */
    if (forked && g->parent != 0) g->parent = before;
  }
  g->lanes = 0;
  g->forked = forked;
  g->head = 0;
  *g->token = ++g->last_token;
  __atomic_fetch_add(&g->control->processes, 1, __ATOMIC_RELAXED);
}

/* All of the file, from its control page on. */
static uint8_t* map_all(void) {
  const struct feign_control* c = feign_capture.control;
  const long at = system_call(SYS_mremap, (long)c, 0, (long)c->size, MREMAP_MAYMOVE, 0, 0);
  return at < 0 && at >= -4095 ? 0 : (uint8_t*)at;
}

static void map_whole(void) {
  struct capture* g = &feign_capture;
  if (g->control != 0 && g->whole == 0) g->whole = map_all();
}

/* The kernel knows it as what it clears when the thread ends. */
static void find_own_id(void) {
  uintptr_t self, at = 0;
  __asm__("mov %%fs:0, %0" : "=r"(self));
  if (system_call(SYS_prctl, PR_GET_TID_ADDRESS, (long)&at, 0, 0, 0, 0) == 0 && at - self < 4096 &&
      *(const int32_t*)at == feign_own_number())
    feign_capture.own_id = (intptr_t)(at - self);
}

void feign_seal(void) {
  if (feign_capture.own_id == 0 && !feign_capture.sealed) find_own_id();
  map_whole();
  __atomic_fetch_add(&feign_capture.sealed, 1, __ATOMIC_SEQ_CST);
}

void feign_unseal(void) { __atomic_fetch_sub(&feign_capture.sealed, 1, __ATOMIC_SEQ_CST); }

static long records_fd = -1; /* open as the process starts only */
static void close_records(void) {
  if (records_fd >= 0) system_call(SYS_close, records_fd, 0, 0, 0, 0, 0);
  records_fd = -1;
}

/* That piece of the file. Its descriptor is gone, since programs may close all that they find: the
 * control page is mapped once more, and that mapping turned to another place of the file. All of it
 * at once would be 64 GiB of address space, which a program may limit (setrlimit), or want in
 * memory (mlockall). */
static uint8_t* map_piece(uint64_t at, uint32_t size) {
  struct capture* g = &feign_capture;
  if (records_fd >= 0) {
    const long to =
        system_call(SYS_mmap, 0, size, PROT_READ | PROT_WRITE, MAP_SHARED, records_fd, (long)at);
    return to < 0 && to >= -4095 ? 0 : (uint8_t*)to;
  }
  if (g->whole == 0) {
    const long to = system_call(SYS_mremap, (long)g->control, 0, size, MREMAP_MAYMOVE, 0, 0);
    if (to < 0 && to >= -4095) return 0;
    /* Not blocking: it would map all pages for reading, and writing then faulted once more in each.
     */
    if (system_call(SYS_remap_file_pages, to, size, 0, (long)(at / 4096), MAP_NONBLOCK, 0) == 0)
      return (uint8_t*)to;
    system_call(SYS_munmap, to, size, 0, 0, 0, 0);
    map_whole();
  }
  return g->whole != 0 ? g->whole + at : 0;
}

static uint8_t* take_bytes(uint32_t size) {
  struct capture* g = &feign_capture;
  struct feign_control* c = g->control;
  const uint64_t room = c->max_bytes + c->first;
  const uint64_t most = c->max_bytes != 0 && room < c->size ? room : c->size;
  if (__atomic_load_n(&c->bytes, __ATOMIC_RELAXED) + size > most) return 0;
  /* Before any is taken: who makes pages passes over what is taken by then. */
  const uint64_t made = __atomic_load_n(&c->ready, __ATOMIC_ACQUIRE);
  const uint64_t at = __atomic_fetch_add(&c->bytes, size, __ATOMIC_SEQ_CST);
  const uint64_t wake_at = __atomic_load_n(&c->wake_at, __ATOMIC_SEQ_CST);
  if (at <= wake_at && wake_at < at + size && !g->sealed) {
    __atomic_fetch_add(&c->woken, 1, __ATOMIC_SEQ_CST);
    system_call(SYS_futex, (long)&c->woken, 1 /* FUTEX_WAKE */, 1, 0, 0, 0);
  }
  if (at + size > most) return 0;
  uint8_t* const chunk = map_piece(at, size);
  if (chunk == 0) return 0;
  const int ready = at + size <= made;
  /* Sealed: a full disk ends the program here, which any other call might, too. */
  if ((ready && size <= kSecondChunk) || g->sealed) return chunk;
  /* No reading ahead: of a hole, that would be megabytes of zeros for the first byte written. */
  if (!ready && g->whole == 0) system_call(SYS_madvise, (long)chunk, size, MADV_RANDOM, 0, 0, 0);
  if (!ready && g->whole != 0 && !g->random) {
    g->random = 1;
    system_call(SYS_madvise, (long)g->whole, (long)c->size, MADV_RANDOM, 0, 0, 0);
  }
  /* What does not fit on the disk is an error here, and would be a SIGBUS later. */
  const long populated = system_call(SYS_madvise, (long)chunk, size, MADV_POPULATE_WRITE, 0, 0, 0);
  if (populated >= 0 || populated == -22) return chunk;
  if (g->whole == 0) system_call(SYS_munmap, (long)chunk, size, 0, 0, 0, 0);
  return 0;
}

static uint8_t* page_of(const void* bytes) {
  return (uint8_t*)((uintptr_t)bytes & ~(uintptr_t)(FEIGN_CAPTURE_UNIT - 1));
}

/* What is full, or nobody's any more, costs no memory. */
static void give_back(const struct lane* l) {
  struct capture* g = &feign_capture;
  /* A chunk may begin within its page, behind others that are nobody's any more. */
  uint8_t* const chunk = page_of(l->end - l->size);
  if (g->sealed) return;
  if (g->whole != 0 && chunk >= g->whole && chunk < g->whole + g->control->size) {
    if (l->size == kChunk) system_call(SYS_madvise, (long)chunk, kChunk, MADV_DONTNEED, 0, 0, 0);
  } else if (chunk != page_of(g->head)) { /* that of the process's first chunk stays (its rank) */
    system_call(SYS_munmap, (long)chunk, l->end - chunk, 0, 0, 0, 0);
  }
}

/* [signals are held] */
static void ends(struct lane* l) {
  struct lane old = *l;
  l->at = l->end = l->spare = 0;
  if (old.at == 0 && old.spare != 0) {
    old.end = page_of(old.spare) + kFirstChunk;
    old.size = kFirstChunk;
  }
  if (old.end != 0) give_back(&old);
}

void feign_lanes_end(struct thread* t) {
  const struct held held = hold_signals();
  for (struct lane* l = t->lanes; l != t->lanes + FEIGN_LANES; ++l) ends(l);
  let_signals(&held);
}

static int leaves_rest(struct lane* l) {
  uint8_t* const rest = (uint8_t*)(((uintptr_t)l->at + 7) & ~(uintptr_t)7);
  if (l->at == 0 && l->spare != 0) return 1; /* this child wrote nothing */
  if (l->end == 0 || l->size > kFirstChunk || feign_capture.whole != 0 || l->end - rest < kSpare ||
      *feign_capture.token == 0) /* a handler's fork: it is the other process's */
    return 0;
  *(uint32_t*)rest = 0; /* no chunk's magic */
  ((struct feign_chunk_head*)(l->end - l->size))->size = (uint32_t)(rest - (l->end - l->size));
  l->spare = rest;
  l->at = l->end = 0;
  return 1;
}

void feign_lane_leaves(struct lane* l) {
  const struct held held = hold_signals();
  if (!leaves_rest(l)) ends(l);
  let_signals(&held);
}

void feign_lane_is_of(struct lane* l, int32_t child) {
  if (l->end == 0) return;
  struct feign_chunk_head* const head = (struct feign_chunk_head*)(l->end - l->size);
  head->pid = head->thread = child;
}

static int next_chunk(struct lane* l, uint64_t start, uint32_t room) {
  struct capture* g = &feign_capture;
  if (*g->token == 0) return 0; /* a handler's fork: it is the other process's record */
  if (l->at == 0) {
    l->id = __atomic_add_fetch(&g->lanes, 1, __ATOMIC_RELAXED);
    l->number = 0;
    l->thread = feign_own_number();
    l->pid = g->sealed ? g->pid : (int32_t)system_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
  } else {
    const struct lane old = *l;
    l->end = 0; /* there is none if no other one can be had, or under seccomp a handler comes in */
    __asm__ volatile("" ::: "memory");
    if (old.end != 0) give_back(&old);
  }
  uint32_t size = l->number == 0 ? kFirstChunk : l->number == 1 ? kSecondChunk : kChunk;
  if (size < room + sizeof(struct feign_chunk_head))
    size = room + sizeof(struct feign_chunk_head) <= kSecondChunk ? kSecondChunk : kChunk;
  uint8_t* chunk = l->at == 0 ? l->spare : 0;
  if (chunk != 0 && room + sizeof(struct feign_chunk_head) <= kSpare) {
    l->spare = 0;
    size = (uint32_t)(page_of(chunk) + kFirstChunk - chunk);
  } else {
    if (chunk != 0) ends(l);
    chunk = take_bytes(size);
  }
  if (chunk == 0) {
    __atomic_fetch_add(&g->control->dropped, 1, __ATOMIC_RELAXED);
    return 0;
  }
  struct feign_chunk_head* head = (struct feign_chunk_head*)chunk;
  head->size = size;
  head->lane = l->id;
  head->pid = l->pid;
  head->thread = l->thread;
  head->number = l->number;
  head->tick = start;
  head->began = g->began;
  head->began_ns = g->began_ns;
  head->own_pid = g->pid;
  head->parent = g->parent;
  head->rank = g->rank;
  head->forked = g->forked;
  if (g->head == 0) g->head = head;
  *(feign_loose16*)(chunk + sizeof *head) = 0; /* the first record's length */
  __atomic_store_n(&head->magic, FEIGN_CAPTURE_CHUNK_MAGIC, __ATOMIC_RELEASE);
  ++l->number;
  l->at = chunk + sizeof *head;
  l->chunk = __atomic_add_fetch(&g->chunks, 1, __ATOMIC_RELAXED);
  l->size = size;
  l->last = start;
  __asm__ volatile("" ::: "memory");
  l->end = chunk + size;
  return 1;
}

int feign_next_chunk(struct lane* l, uint64_t start, uint32_t room) {
  const struct held held = hold_signals();
  const int there = next_chunk(l, start, room);
  let_signals(&held);
  return there;
}

static void snapshot(int followed);

int feign_set_up(struct thread* t) {
  const struct held held = hold_signals();
  if (t->token == *feign_capture.token && t->token != 0) { /* a handler that came in has done it */
    let_signals(&held);
    return 1;
  }
  const int began = *feign_capture.token == 0;
  if (began) feign_process_begin(1);
  t->token = *feign_capture.token;
  const uint32_t before = t->vforks, level = feign_own_level(t);
  t->vforks = before - level;
  for (uint32_t i = 0; feign_capture.sealed == 0 && i < t->vforks; ++i)
    t->vfork[i] = t->vfork[level + i];
  /* Of a thread that this one is a fork of. What that wrote when it was interrupted stays. */
  for (int i = 0; i < FEIGN_LANES; ++i) {
    if ((t->busy | before) != 0) t->lanes[i].end = 0;
    ends(&t->lanes[i]);
  }
  let_signals(&held);
  /* The first in a PID namespace: whose child it is nobody will know. */
  if (began && feign_capture.parent == 0 && !feign_capture.sealed) snapshot(0);
  return 1;
}

/* Whether that record was begun in a frame that a longjmp out of a signal handler left. Those that
 * live lie above, unless the handler has a stack of its own. */
static int was_left(const struct feign_record* r, const struct lane* lane, uintptr_t here) {
  enum { kNear = 1 << 20 };
  const uintptr_t at = (uintptr_t)r;
  if (feign_capture.sealed) return 0;
  if (at > here) return at - here < kNear && is_there(at) && r->lane != lane;
  stack_t own;
  if (system_call(SYS_sigaltstack, 0, (long)&own, 0, 0, 0, 0) != 0) return 0;
  return (own.ss_flags & SS_ONSTACK) == 0 || at - (uintptr_t)own.ss_sp < own.ss_size;
}

/* A signal handler of the parent may come in before the child is there, and before the parent goes
 * on: what it does is none of the child's. */
uint32_t feign_own_level(const struct thread* t) {
  uint32_t level = t->vforks;
  if (level == 0 || feign_capture.sealed) return level;
  const int32_t own = feign_own_number();
  while (level != 0 && t->vfork[level - 1].thread == own) --level;
  return level;
}

uint32_t feign_level(struct thread* t) {
  const uint32_t level = feign_own_level(t);
  struct vfork* const in = &t->vfork[level];
  if (level != t->vforks && !in->began) {
    struct feign_record r;
    in->began = 1;
    if (feign_record_begin(&r, t, FEIGN_RECORD_BEGIN, in->depth, 0, in->start, in->start, 0,
                           FEIGN_TOUCHED))
      feign_record_end(&r);
  }
  return level;
}

/* Two processes must not write to one chunk. */
void feign_forked_in_handler(struct thread* t, uint32_t level) {
  if (feign_capture.sealed) return;
  for (const struct lane* l = t->lanes; l != t->lanes + FEIGN_LANES; ++l) {
    if (t->busy == 0 || l->end == 0) continue;
    uint8_t* const chunk = page_of(l->end - l->size);
    system_call(SYS_mmap, (long)chunk, l->end - chunk, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  }
  if (level == t->vforks) return;
  for (const int32_t own = feign_own_number(); level < t->vforks; ++level)
    t->vfork[level].thread = own;
  feign_set_up(t); /* before a child of its own does, which has its storage */
}

uint32_t feign_writers(struct thread* t, uintptr_t here) {
  const uint32_t level = feign_own_level(t), parents = level != 0 ? t->vfork[level - 1].busy : 0;
  const struct lane* const lanes = &t->lanes[level * 2];
  while (t->busy > parents &&
         (t->busy > 2 || was_left(t->writing[t->busy - 1], &lanes[t->busy - 1], here)))
    --t->busy;
  return t->busy;
}

int feign_record_begin(struct feign_record* r, struct thread* t, unsigned kind, unsigned depth,
                       uint16_t op, uint64_t start, uint64_t end, int64_t result, uint32_t room) {
  return record_begin(r, t, kind, depth, op, start, end, result, room);
}

__attribute__((visibility("default"))) void feign_record_end(struct feign_record* r) {
  record_end(r);
}

__attribute__((visibility("default"))) uint64_t feign_record_chunk(const struct feign_record* r,
                                                                   const uint8_t** begin) {
  const struct lane* const l = r->lane;
  *begin = l->end - l->size;
  return l->chunk;
}

/* ---- calls in calls
 * -------------------------------------------------------------------------------- */

/* The beginnings of the first so many, outermost first. */
static void begin(struct thread* t, struct under_way* all, uint32_t count) {
  for (struct under_way* u = all; u != all + count; ++u) {
    if (u->began) continue;
    u->began = 1;
    struct feign_record r;
    if (feign_record_begin(&r, t, FEIGN_RECORD_BEGIN, u->depth, 0, u->start, u->start, 0,
                           FEIGN_TOUCHED))
      feign_record_end(&r);
  }
}

uint32_t feign_calls_around(struct thread* t, uintptr_t here) {
  struct nest *const calls = &t->calls, *const flights = &t->flights;
  calls->count = live(calls, here);
  const uint32_t count = t->busy == 0 ? live(flights, here) : 0;
  for (uint32_t i = 0, done = 0; i < count; ++i) {
    while (done < calls->count && calls->all[done].start < flights->all[i].start) ++done;
    begin(t, calls->all, done);
    begin(t, flights->all, i + 1);
  }
  begin(t, calls->all, calls->count);
  return calls->count != 0 ? calls->all[calls->count - 1].depth + 1 : 0;
}

__attribute__((visibility("default"))) void feign_call_begin(struct feign_call* call) {
  struct thread* const t = &feign_thread;
  struct nest* const n = &t->calls;
  const uint32_t level = live(n, (uintptr_t)call);
  call->waits = 0;
  call->level = level;
  call->start = ticks();
  comes_under_way(n, level, (uintptr_t)call, call->start,
                  level != 0 ? n->all[level - 1].depth + 1 : 0);
}

/* One that has begun, and of which those in it are not a level deeper. */
__attribute__((visibility("default"))) void feign_call_back_begin(struct feign_call* call) {
  struct nest* const n = &feign_thread.calls;
  call->level = live(n, (uintptr_t)call);
  if (call->level >= kUnderWay) return;
  n->all[call->level] = (struct under_way){(uintptr_t)call, ticks(), 1, UINT32_MAX};
  __asm__ volatile("" ::: "memory"); /* a signal handler looks at it */
  n->count = call->level + 1;
}

__attribute__((visibility("default"))) void feign_call_back_end(struct feign_call* call) {
  feign_thread.calls.count = call->level;
}

__attribute__((visibility("default"))) void feign_call_waits(struct feign_call* call,
                                                             const char* name) {
  if (feign_capture.watch == 0) return;
  call->waits = 1;
  feign_watch_waits(name);
}

__attribute__((visibility("default"))) int feign_call_end(struct feign_call* call,
                                                          struct feign_record* r, uint16_t op,
                                                          int64_t result, uint32_t room) {
  struct thread* const t = &feign_thread;
  const uint64_t end = ticks();
  const uint32_t began = goes_its_way(&t->calls, call->level, (uintptr_t)call);
  if (call->waits) feign_watch_goes_on();
  if (!recording(t, op >> 12) || (feign_capture.control->paused && !began)) return 0;
  uint32_t depth = 0;
  if (t->calls.count != 0 || t->flights.count != 0) depth = feign_calls_around(t, (uintptr_t)call);
  room = room != 0 ? room + FEIGN_TOUCHED : 12000;
  return feign_record_begin(r, t, began ? FEIGN_RECORD_BEGUN : FEIGN_RECORD_CALL, depth, op,
                            call->start, end, result,
                            room < FEIGN_MOST_ROOM ? room : FEIGN_MOST_ROOM);
}

__attribute__((visibility("default"))) void feign_capture_quiet(int quiet) {
  feign_thread.quiet += quiet ? 1 : -1u;
}

/* feign_record.h calls it. */
__attribute__((visibility("default"))) void feign_capture_pause(int paused);
__attribute__((visibility("default"))) void feign_capture_pause(int paused) {
  struct feign_control* const c = feign_capture.control;
  if (c != 0 && __atomic_exchange_n(&c->paused, paused != 0, __ATOMIC_RELAXED) == 0 && paused)
    __atomic_fetch_add(&c->pauses, 1, __ATOMIC_RELAXED);
}

/* Where the process works. */
static void note_directory(const char* text) {
  if (feign_capture.control == 0 || feign_capture.off) return;
  struct feign_record r;
  const uint64_t now = ticks();
  uint32_t length = 0;
  while (text[length] != '\0') ++length;
  if (!feign_record_begin(&r, &feign_thread, FEIGN_RECORD_CWD, 0, 0, now, now, 0,
                          FEIGN_TOUCHED + length))
    return;
  feign_put_path(&r, text, length);
  feign_record_end(&r);
}

__attribute__((visibility("default"))) void feign_capture_rank(int rank) {
  feign_capture.rank = (uint32_t)rank + 1;
  if (feign_capture.head != 0) feign_capture.head->rank = feign_capture.rank;
}

__attribute__((visibility("default"))) struct feign_control* feign_capture_control(void) {
  return feign_capture.control;
}

__attribute__((visibility("default"))) uint32_t feign_capture_layer(const char* name) {
  const struct feign_control* const c = feign_capture.control;
  for (uint32_t i = 0; c != 0 && i < sizeof c->third / sizeof c->third[0]; ++i) {
    size_t at = 0;
    while (name[at] != '\0' && at + 1 < sizeof c->third[0] && c->third[i][at] == name[at]) ++at;
    const uint32_t layer = FEIGN_CAPTURE_THIRD + i;
    if (at != 0 && name[at] == c->third[i][at]) return c->layers >> layer & 1 ? layer : 0;
  }
  return 0;
}

/* ---- the start
 * ---------------------------------------------------------------------------------------- */

void feign_note_descriptor(uint32_t fd) {
  char digits[10], name[32], *to = append(name, "/proc/self/fd/");
  uint32_t count = 0, left = fd;
  do digits[count++] = (char)('0' + left % 10);
  while ((left /= 10) != 0);
  while (count != 0) *to++ = digits[--count];
  *to = '\0';
  if (feign_capture.control == 0 || feign_capture.off) return;
  struct feign_record r;
  const uint64_t now = ticks();
  if (!feign_record_begin(&r, &feign_thread, FEIGN_RECORD_FD, 0, 0, now, now, 0,
                          FEIGN_TOUCHED + PATH_MAX))
    return;
  feign_put_number(&r, FEIGN_FIELD_HANDLE, fd + 1);
  /* Read to where it will be: stacks may be small. */
  const long length =
      system_call(SYS_readlinkat, AT_FDCWD, (long)name, (long)(r.at + 3), PATH_MAX - 1, 0, 0);
  if (length > 0) {
    r.at[0] = FEIGN_FIELD_PATH << 4;
    r.at[1] = (uint8_t)length;
    r.at[2] = (uint8_t)(length >> 8);
    r.at += 3 + length;
  }
  feign_record_end(&r);
}

/* What a process has that was not followed to here: where it works, and its descriptors. Those of
 * one that was are known. */
static void snapshot(int followed) {
  char text[4097];
  long n = system_call(SYS_getcwd, (long)text, sizeof text, 0, 0, 0, 0);
  if (n > 1) note_directory(text);
  if (followed) return;
  long folder;
  while ((folder = system_call(SYS_openat, AT_FDCWD, (long)"/proc/self/fd",
                               O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0, 0, 0)) == -EMFILE &&
         records_fd >= 0)
    close_records();
  if (folder < 0) return;
  struct entry {
    uint64_t inode, offset;
    uint16_t length;
    uint8_t type;
    char name[];
  };
  char entries[2048] __attribute__((aligned(8)));
  while ((n = system_call(SYS_getdents64, folder, (long)entries, sizeof entries, 0, 0, 0)) > 0)
    for (long at = 0; at < n; at += ((struct entry*)(entries + at))->length) {
      const char* name = ((struct entry*)(entries + at))->name;
      uint32_t fd = 0;
      if (name[0] < '0' || name[0] > '9') continue;
      for (const char* p = name; *p != '\0'; ++p) fd = fd * 10 + (uint32_t)(*p - '0');
      if ((long)fd != folder && (long)fd != records_fd) feign_note_descriptor(fd);
    }
  system_call(SYS_close, folder, 0, 0, 0, 0, 0);
}

extern int feign_hooks_install(long fd) HIDDEN;
extern char** environ;

static const char* variable(const char* name) {
  for (char** e = environ; e != 0 && *e != 0; ++e) {
    const char *a = *e, *b = name;
    while (*b != '\0' && *a == *b) ++a, ++b;
    if (*b == '\0' && *a == '=') return a + 1;
  }
  return 0;
}

/* The control page: the rest piece by piece, as it is written. */
static struct feign_control* map_control(long fd) {
  const long at =
      system_call(SYS_mmap, 0, FEIGN_CAPTURE_UNIT, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at < 0 && at >= -4095) return 0;
  struct feign_control* const control = (struct feign_control*)at;
  return control->magic == FEIGN_CAPTURE_MAGIC ? control : 0;
}

static int same_host(const char* a, const char* b) {
  size_t i = 0;
  while (i < 62 && a[i] != '\0' && a[i] == b[i]) ++i; /* as much as feign record keeps */
  return i == 62 || a[i] == b[i];
}

/* The records of this host, which is another one: memory is not shared with it. The first process
 * makes the file. */
static __attribute__((noinline)) struct feign_control* records_here(long main, const char* records,
                                                                    const char* host) {
  char path[sizeof feign_capture.folder + 96], making[sizeof path + 24];
  char* const name = append(append(path, records), ".");
  char* to = name;
  for (size_t i = 0; i < 63 && host[i] != '\0'; ++i) *to++ = host[i] == '/' ? '_' : host[i];
  *to = '\0';
  long fd = system_call(SYS_openat, AT_FDCWD, (long)path, O_RDWR | O_CLOEXEC, 0, 0, 0);
  if (fd == -ENOENT) {
    char* digit = append(append(append(making, feign_capture.folder), "/making."), name);
    *digit++ = '.';
    for (long n = system_call(SYS_getpid, 0, 0, 0, 0, 0, 0); n != 0; n /= 10)
      *digit++ = (char)('0' + n % 10);
    *digit = '\0';
    struct feign_control c;
    if (system_call(SYS_pread64, main, (long)&c, sizeof c, 0, 0, 0) != (long)sizeof c) return 0;
    struct {
      uint64_t soft, hard;
    } most = {UINT64_MAX, 0};
    system_call(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&most, 0, 0);
    if (most.soft < c.size) c.size = most.soft & ~(uint64_t)0xFFFF; /* beyond it a signal comes */
    if (c.size == 0) return 0;
    fd = system_call(SYS_openat, AT_FDCWD, (long)making, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC,
                     0666, 0, 0);
    if (fd < 0) return 0;
    copy_text(c.host, host, sizeof c.host - 1);
    c.first = c.bytes = FEIGN_CAPTURE_UNIT;
    /* What was counted, and who makes pages, is the other one's. */
    c.ready = c.wake_at = 0;
    c.dropped = c.overlooked = c.unended = 0;
    c.processes = c.unhooked = c.unwatched = c.strangers = c.silent = 0;
    c.pauses = c.paused;
    c.ended = 0;
    for (int i = 0; i < (int)FEIGN_CAPTURE_EXECS; ++i) c.execs[i] = 0;
    struct {
      long s, ns;
    } real = {0, 0}, now = {0, 0};
    system_call(SYS_clock_gettime, 0, (long)&real, 0, 0, 0, 0);
    system_call(SYS_clock_gettime, 1, (long)&now, 0, 0, 0, 0);
    c.tick_0 = ticks();
    c.ns_0 = (uint64_t)now.s * 1000000000u + (uint64_t)now.ns;
    c.real_ns = (uint64_t)real.s * 1000000000u + (uint64_t)real.ns;
    if (system_call(SYS_ftruncate, fd, (long)c.size, 0, 0, 0, 0) == 0 &&
        system_call(SYS_pwrite64, fd, (long)&c, sizeof c, 0, 0, 0) == (long)sizeof c)
      system_call(SYS_linkat, AT_FDCWD, (long)making, AT_FDCWD, (long)path, 0, 0);
    system_call(SYS_unlinkat, AT_FDCWD, (long)making, 0, 0, 0, 0);
    system_call(SYS_close, fd, 0, 0, 0, 0, 0);
    fd = system_call(SYS_openat, AT_FDCWD, (long)path, O_RDWR | O_CLOEXEC, 0, 0, 0);
  }
  if (fd < 0) return 0;
  struct feign_control* const control = map_control(fd);
  system_call(SYS_close, fd, 0, 0, 0, 0, 0);
  return control;
}

/* The file records, and what is hooked by what is in it. Its descriptor is closed before the
 * program begins, which may close all that it finds. */
static struct feign_control* map_records(int* hooked) {
  char path[sizeof feign_capture.folder + 16];
  append(append(path, feign_capture.folder), "/records");
  const long fd = system_call(SYS_openat, AT_FDCWD, (long)path, O_RDWR | O_CLOEXEC, 0, 0, 0);
  if (fd < 0) return 0;
  /* Before the records are mapped, which would take the stubs' place. */
  *hooked = feign_hooks_install(fd);
  struct feign_control* control = map_control(fd);
  struct utsname here;
  if (control != 0 && system_call(SYS_uname, (long)&here, 0, 0, 0, 0, 0) == 0 &&
      !same_host(control->host, here.nodename)) {
    system_call(SYS_munmap, (long)control, FEIGN_CAPTURE_UNIT, 0, 0, 0, 0);
    control = records_here(fd, path, here.nodename);
  } else if (control != 0) {
    records_fd = fd;
    return control;
  }
  system_call(SYS_close, fd, 0, 0, 0, 0, 0);
  return control;
}

/* Whether the program before this one in this process said that it was calling exec for it. */
static int was_followed(struct feign_control* c, int32_t pid) {
  const char* const file = (const char*)getauxval(AT_EXECFN);
  int32_t expected = feign_exec_mark(pid, file != 0 ? file : "", 1);
  return __atomic_compare_exchange_n(&c->execs[(uint32_t)pid % FEIGN_CAPTURE_EXECS], &expected, 0,
                                     0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* Behind all else, so that what comes before it fits into the page of the library's data; and in no
 * file, or the kernel would not wipe it. clang knows by the name, for gcc it is said to `as`. */
#ifdef __clang__
#define TOKEN_SECTION ".bss.token"
#else
#define TOKEN_SECTION ".token,\"aw\",@nobits#"
#endif
static volatile uint64_t token_page[512] __attribute__((aligned(4096), section(TOKEN_SECTION)));

/* Programs are started by the thousand: each system call and page here counts. */
static void start(int count, char** arguments, char** environment) {
  struct capture* g = &feign_capture;
  (void)count;
  (void)arguments;
  /* As libc does later; musl has, and gives no arguments. */
  if (environ == 0) environ = environment;
  const char* folder = variable("FEIGN_CAPTURE");
  if (folder == 0 || folder[0] != '/') return;
  copy_text(g->folder, folder, sizeof g->folder);
  g->token = token_page; /* looked at by hooks from here on */
  int hooked = 0;
  struct feign_control* const control = map_records(&hooked);
  if (control == 0) return;
  system_call(SYS_madvise, (long)token_page, sizeof token_page, MADV_WIPEONFORK, 0, 0, 0);
  g->long_pause = control->long_pause != 0 ? control->long_pause : UINT64_MAX;
  if (!hooked) __atomic_fetch_add(&control->unhooked, 1, __ATOMIC_RELAXED);
  g->control = control;
  feign_process_begin(0);
  /* Emulators make some calls of this library's their own way, and say so. */
  snapshot(was_followed(control, g->pid) || !hooked);
  close_records();
  if (control->watch[0] != '\0') feign_watch_begin(control->watch);
  if (control->watch[0] != '\0' && g->watch == 0)
    __atomic_fetch_add(&control->unwatched, 1, __ATOMIC_RELAXED);
}

/* Before other constructors (other libraries': -z initfirst); and all that is written at the start
 * in one page, which begins here. */
static void (*const first_of_all)(int, char**, char**)
    __attribute__((used, section(".init_array.00101"), aligned(4096))) = start;
