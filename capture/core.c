/* SPDX-License-Identifier: MIT */
/* The heart of the capture library: records into chunks of a shared file, without locks, allocation
 * or anything else that a program could notice. format.h says what comes out. */
#include "core.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

struct capture feign_capture;
__thread struct thread feign_thread;

enum { kFirstChunk = FEIGN_CAPTURE_UNIT, kSecondChunk = 16 << 10, kChunk = 64 << 10 };

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

void feign_process_begin(uint32_t forked) {
  struct capture* g = &feign_capture;
  struct {
    long s, ns;
  } clock = {0, 0};
  system_call(SYS_clock_gettime, 1 /* monotonic */, (long)&clock, 0, 0, 0, 0);
  g->began = ticks();
  g->began_ns = (uint64_t)clock.s * 1000000000u + (uint64_t)clock.ns;
  g->pid = (int32_t)system_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
  g->parent = (int32_t)system_call(SYS_getppid, 0, 0, 0, 0, 0, 0);
  g->lanes = 0;
  g->forked = forked;
  g->head = 0;
  *g->token = ++g->last_token;
  __atomic_fetch_add(&g->control->processes, 1, __ATOMIC_RELAXED);
}

static uint8_t* take_bytes(uint32_t size) {
  struct capture* g = &feign_capture;
  struct feign_control* c = g->control;
  const uint64_t most = c->max_bytes != 0 && c->max_bytes < c->size ? c->max_bytes : c->size;
  if (__atomic_load_n(&c->bytes, __ATOMIC_RELAXED) + size > most) return 0;
  const uint64_t at = __atomic_fetch_add(&c->bytes, size, __ATOMIC_RELAXED);
  if (at + size > most) return 0;
  /* What does not fit on the disk is an error here, and would be a SIGBUS later. */
  const long populated =
      system_call(SYS_madvise, (long)(g->region + at), size, MADV_POPULATE_WRITE, 0, 0, 0);
  return populated < 0 && populated != -22 ? 0 : g->region + at;
}

static int next_chunk(struct lane* l, uint64_t start) {
  struct capture* g = &feign_capture;
  if (l->at == 0) {
    l->id = __atomic_add_fetch(&g->lanes, 1, __ATOMIC_RELAXED);
    l->number = 0;
    l->thread = (int32_t)system_call(SYS_gettid, 0, 0, 0, 0, 0, 0);
    l->pid = (int32_t)system_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
  } else if (l->number > 2) { /* what is full costs no memory any more */
    system_call(SYS_madvise, (long)(l->end - kChunk), kChunk, MADV_DONTNEED, 0, 0, 0);
  }
  const uint32_t size = l->number == 0 ? kFirstChunk : l->number == 1 ? kSecondChunk : kChunk;
  uint8_t* const chunk = take_bytes(size);
  if (chunk == 0) return 0;
  struct feign_chunk_head* head = (struct feign_chunk_head*)chunk;
  head->size = size;
  head->lane = l->id;
  head->pid = l->pid;
  head->thread = l->thread;
  head->number = l->number++;
  head->tick = start;
  head->began = g->began;
  head->began_ns = g->began_ns;
  head->own_pid = g->pid;
  head->parent = g->parent;
  head->rank = g->rank;
  head->forked = g->forked;
  if (g->head == 0) g->head = head;
  __atomic_store_n(&head->magic, FEIGN_CAPTURE_CHUNK_MAGIC, __ATOMIC_RELEASE);
  l->at = chunk + sizeof *head;
  l->end = chunk + size;
  l->last = start;
  return 1;
}

static __attribute__((noinline)) int set_up(struct thread* t) {
  if (*feign_capture.token == 0) feign_process_begin(1);
  t->token = *feign_capture.token;
  t->vforks = 0;
  for (int i = 0; i < FEIGN_LANES; ++i) t->lanes[i].at = t->lanes[i].end = 0;
  return 1;
}

static inline unsigned bytes_of(uint64_t value) {
  return value == 0 ? 0 : (unsigned)(71 - __builtin_clzll(value)) / 8;
}

int feign_record_begin(struct feign_record* r, struct thread* t, unsigned kind, unsigned depth,
                       uint16_t op, uint64_t start, uint64_t end, int64_t result, uint32_t room) {
  if (__builtin_expect(t->token != *feign_capture.token || t->token == 0, 0) && !set_up(t))
    return 0;
  const uint32_t busy = t->busy;
  if (busy > 1) {
    __atomic_fetch_add(&feign_capture.control->dropped, 1, __ATOMIC_RELAXED);
    return 0;
  }
  t->busy = busy + 1;
  __asm__ volatile("" ::: "memory");
  struct lane* const l = &t->lanes[t->vforks * 2 + busy];
  if (__builtin_expect((size_t)(l->end - l->at) < room, 0) && !next_chunk(l, start)) {
    t->busy = busy;
    __atomic_fetch_add(&feign_capture.control->dropped, 1, __ATOMIC_RELAXED);
    return 0;
  }
  struct feign_record_head* const head = (struct feign_record_head*)l->at;
  const uint64_t pause = start - l->last, duration = end - start;
  const unsigned pause_bytes = bytes_of(pause), duration_bytes = bytes_of(duration);
  head->op = op;
  head->kind = (uint8_t)(kind << 4 | (depth < 15 ? depth : 15));
  head->times = (uint8_t)(pause_bytes << 4 | duration_bytes);
  uint8_t* at = l->at + sizeof *head;
  *(feign_loose64*)at = pause;
  at += pause_bytes;
  *(feign_loose64*)at = duration;
  at += duration_bytes;
  r->start = l->at;
  r->at = at;
  r->end = l->at + room - 32;
  r->lane = l;
  r->ticks = end;
  r->values = 0;
  r->busy = busy;
  if (result != 0)
    feign_put_number(r, result > 0 || result < -4095 ? FEIGN_FIELD_RESULT : FEIGN_FIELD_ERROR,
                     result > 0 || result < -4095 ? (uint64_t)result : (uint64_t)-result);
  return 1;
}

__attribute__((visibility("default"))) void feign_record_end(struct feign_record* r) {
  struct lane* const l = r->lane;
  *(feign_loose16*)r->at = 0;        /* the next one's length */
  __asm__ volatile("" ::: "memory"); /* x86 stores in order */
  *(volatile feign_loose16*)r->start = (uint16_t)(r->at - r->start);
  l->at = r->at;
  l->last = r->ticks;
  __asm__ volatile("" ::: "memory");
  feign_thread.busy = r->busy;
}

/* ---- calls in calls
 * -------------------------------------------------------------------------------- */

static void flights_around(struct thread* t, struct flight* f) {
  if (f == 0 || f->began) return;
  f->began = 1;
  flights_around(t, f->outer);
  struct feign_record r;
  if (feign_record_begin(&r, t, FEIGN_RECORD_BEGIN, f->depth, 0, f->start, f->start, 0,
                         FEIGN_TOUCHED))
    feign_record_end(&r);
}

/* Something is about to be recorded in these calls: their beginnings, outermost first. */
void feign_calls_around(struct thread* t, struct feign_call* call, struct flight* flight) {
  if (flight != 0 && t->busy == 0) flights_around(t, flight);
  if (call == 0 || call->began) return;
  call->began = 1;
  feign_calls_around(t, call->outer, 0);
  struct feign_record r;
  if (feign_record_begin(&r, t, FEIGN_RECORD_BEGIN, call->depth, 0, call->start, call->start, 0,
                         FEIGN_TOUCHED))
    feign_record_end(&r);
}

__attribute__((visibility("default"))) void feign_call_begin(struct feign_call* call) {
  struct thread* const t = &feign_thread;
  struct feign_call* outer = t->inner;
  /* What was left by longjmp lies below, or where this one lies. */
  while (outer != 0 && (uintptr_t)outer <= (uintptr_t)call) outer = outer->outer;
  call->outer = outer;
  call->depth = outer != 0 ? outer->depth + 1 : 0;
  call->began = 0;
  call->waits = 0;
  t->inner = call;
  call->start = ticks();
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
  t->inner = call->outer;
  if (call->waits) feign_watch_goes_on();
  if (!recording(t, op >> 12) || (feign_capture.control->paused && !call->began)) return 0;
  feign_calls_around(t, call->outer, t->flight);
  if (room < 12000) room = 12000;
  return feign_record_begin(r, t, call->began ? FEIGN_RECORD_BEGUN : FEIGN_RECORD_CALL, call->depth,
                            op, call->start, end, result, room < 50000 ? room : 50000);
}

__attribute__((visibility("default"))) void feign_capture_quiet(int quiet) {
  feign_thread.quiet += quiet ? 1 : -1u;
}

/* feign_record.h calls it. */
__attribute__((visibility("default"))) void feign_capture_pause(int paused);
__attribute__((visibility("default"))) void feign_capture_pause(int paused) {
  if (feign_capture.control != 0) feign_capture.control->paused = paused != 0;
}

static void note(unsigned kind, uint16_t op, unsigned field, uint64_t number, const char* text) {
  struct thread* const t = &feign_thread;
  if (feign_capture.control == 0 || feign_capture.off) return;
  struct feign_record r;
  const uint64_t now = ticks();
  if (!feign_record_begin(&r, t, kind, 0, op, now, now, 0, 5000)) return;
  if (field != 0) feign_put_number(&r, field, number);
  if (text != 0) {
    size_t length = 0;
    while (text[length] != '\0') ++length;
    feign_put_path(&r, text, length);
  }
  feign_record_end(&r);
}

__attribute__((visibility("default"))) void feign_capture_rank(int rank) {
  feign_capture.rank = (uint32_t)rank + 1;
  if (feign_capture.head != 0) feign_capture.head->rank = feign_capture.rank;
}

__attribute__((visibility("default"))) uint32_t feign_capture_layer(const char* name) {
  const uint32_t layer =
      FEIGN_CAPTURE_THIRD + __atomic_fetch_add(&feign_capture.layers, 1, __ATOMIC_RELAXED);
  if (layer < FEIGN_CAPTURE_LEFT_OUT)
    note(FEIGN_RECORD_LAYER, FEIGN_CAPTURE_OP(layer, 0), 0, 0, name);
  return layer;
}

/* ---- the start
 * ---------------------------------------------------------------------------------------- */

/* What a process has that was not followed to here: where it works, and its descriptors. */
static void snapshot(void) {
  char path[64], text[4097];
  long n = system_call(SYS_getcwd, (long)text, sizeof text, 0, 0, 0, 0);
  if (n > 1) note(FEIGN_RECORD_CWD, 0, 0, 0, text);
  const long folder = system_call(SYS_openat, AT_FDCWD, (long)"/proc/self/fd",
                                  O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0, 0, 0);
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
      if ((long)fd == folder) continue;
      append(append(path, "/proc/self/fd/"), name);
      const long length =
          system_call(SYS_readlinkat, AT_FDCWD, (long)path, (long)text, sizeof text - 1, 0, 0);
      if (length <= 0) continue;
      text[length] = '\0';
      note(FEIGN_RECORD_FD, 0, FEIGN_FIELD_HANDLE, fd + 1, text);
    }
  system_call(SYS_close, folder, 0, 0, 0, 0, 0);
}

extern int feign_hooks_install(void) HIDDEN;
extern char** environ;

static const char* variable(const char* name) {
  for (char** e = environ; e != 0 && *e != 0; ++e) {
    const char *a = *e, *b = name;
    while (*b != '\0' && *a == *b) ++a, ++b;
    if (*b == '\0' && *a == '=') return a + 1;
  }
  return 0;
}

/* A file of the raw folder. Its descriptor is closed at once: programs may close all that they
 * find. */
static void* map_file(const char* name, uint64_t size) {
  char path[sizeof feign_capture.folder + 16];
  append(append(path, feign_capture.folder), name);
  const long fd = system_call(SYS_openat, AT_FDCWD, (long)path, O_RDWR | O_CLOEXEC, 0, 0, 0);
  if (fd < 0) return 0;
  const long at = system_call(SYS_mmap, 0, (long)size, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_NORESERVE, fd, 0);
  system_call(SYS_close, fd, 0, 0, 0, 0, 0);
  return at < 0 && at >= -4095 ? 0 : (void*)at;
}

__attribute__((constructor(101))) static void start(void) {
  struct capture* g = &feign_capture;
  const char* folder = variable("FEIGN_CAPTURE");
  if (folder == 0 || folder[0] != '/') return;
  copy_text(g->folder, folder, sizeof g->folder);
  struct feign_control* const control = map_file("/control", 4096);
  if (control == 0 || control->magic != FEIGN_CAPTURE_MAGIC) return;
  /* Before the records are mapped, which would take the stubs' place. */
  const int hooked = feign_hooks_install();
  const long page =
      system_call(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  g->region = map_file("/records", control->size);
  if (g->region == 0 || (page < 0 && page >= -4095)) {
    __atomic_fetch_add(&control->dropped, 1, __ATOMIC_RELAXED);
    return;
  }
  system_call(SYS_madvise, page, 4096, MADV_WIPEONFORK, 0, 0, 0);
  g->token = (volatile uint64_t*)page;
  /* No reading ahead: of a hole, that would be megabytes of zeros for the first byte written. */
  system_call(SYS_madvise, (long)g->region, (long)control->size, MADV_RANDOM, 0, 0, 0);
  system_call(SYS_madvise, (long)g->region, (long)control->size, MADV_DONTDUMP, 0, 0, 0);
  if (!hooked) __atomic_fetch_add(&control->unhooked, 1, __ATOMIC_RELAXED);
  g->control = control;
  feign_process_begin(0);
  snapshot();
  if (control->watch[0] != '\0') feign_watch_begin(control->watch);
  if (control->watch[0] != '\0' && g->watch == 0)
    __atomic_fetch_add(&control->unwatched, 1, __ATOMIC_RELAXED);
}
