/* SPDX-License-Identifier: MIT */
/* What the parts of the capture library share. None of it may use vector registers or libc: it runs
 * in the place of system calls, wherever those are made. */
#ifndef FEIGN_CAPTURE_CORE_H
#define FEIGN_CAPTURE_CORE_H

#include "capture.h"

#define FEIGN_LANES 8     /* two for each level of vfork */
#define FEIGN_TOUCHED 640 /* bytes that any record without texts and lists fits into */
#define FEIGN_TEXTS 12000 /* … that any record of a system call fits into */
#define FEIGN_MOST_ROOM 50000
#define HIDDEN __attribute__((visibility("hidden")))

struct lane {
  uint8_t *at, *end;         /* of the chunk; both 0: none yet */
  uint64_t last;             /* ticks: end of the last record */
  uint64_t chunk;            /* no other that this memory has known is this one */
  uint32_t id, number, size; /* of the chunk */
  int32_t pid, thread;
};

struct vfork {
  uintptr_t back; /* where the parent goes on */
  uint64_t start;
  long number;
};

/* A call under way that took effect when it started: what a signal handler records meanwhile comes
 * after it. */
struct flight {
  uint64_t start;
  struct flight* outer;
  uint32_t began, depth;
};

struct thread {
  uint64_t token; /* the process's, when this was set up; another one after a fork */
  uint32_t busy;  /* records that are being written: 2 if a signal handler came in between */
  uint32_t quiet;
  uint32_t vforks;
  uint32_t skipped; /* data calls that sampling left out */
  uint64_t cpu;     /* ns that the thread had computed at the end of the last long pause */
  struct feign_call* inner;
  struct flight* flight;
  struct vfork vfork[FEIGN_LANES / 2];
  struct lane lanes[FEIGN_LANES];
};

struct capture {
  struct feign_control* control; /* 0: nothing is recorded */
  volatile uint64_t* token;      /* in a page that a fork wipes */
  uint64_t last_token;
  uint8_t* whole; /* the file records, where it is not mapped piece by piece (take_bytes) */
  uint64_t began, began_ns;
  uint64_t chunks;
  uint32_t lanes;
  int32_t pid, parent;
  uint32_t forked, off;
  uint32_t random;               /* all of it is mapped as not to be read ahead */
  uint32_t rank;                 /* and 1; 0: none */
  struct feign_chunk_head* head; /* of the first chunk */
  struct feign_watch* watch;     /* of `feign discover`; 0: nobody watches (watch.c) */
  uint64_t long_pause;           /* of feign_control; UINT64_MAX: not asked for */
  char folder[400];
};
extern struct capture feign_capture HIDDEN;
extern __thread struct thread feign_thread HIDDEN __attribute__((tls_model("initial-exec")));

static inline uint64_t ticks(void) {
#if defined(__x86_64__)
  uint32_t low, high;
  __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
  return (uint64_t)high << 32 | low;
#else
#error "the capture library is for x86-64"
#endif
}

static inline long system_call(long number, long a, long b, long c, long d, long e, long f) {
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}

/* Off the common way. */
int feign_set_up(struct thread* t) HIDDEN __attribute__((noinline));
int feign_next_chunk(struct lane* l, uint64_t start, uint32_t room) HIDDEN
    __attribute__((noinline));

/* Begins a record of at least @p room bytes; 0 if there is none, and the caller forgets it. */
int feign_record_begin(struct feign_record* r, struct thread* t, unsigned kind, unsigned depth,
                       uint16_t op, uint64_t start, uint64_t end, int64_t result,
                       uint32_t room) HIDDEN;
void feign_calls_around(struct thread* t, struct feign_call* call, struct flight* flight) HIDDEN;
void feign_process_begin(uint32_t forked) HIDDEN;
/* What follows may need calls that will be forbidden soon: no piece is mapped any more. */
void feign_map_whole(void) HIDDEN;
/* The thread writes no more: its memory is given back. */
void feign_lane_ends(struct lane* l) HIDDEN;

/* What watch.c does as programs begin, and in the wrappers of calls that can wait. */
void feign_watch_begin(const char* memory) HIDDEN;
void feign_watch_waits(const char* name) HIDDEN;
void feign_watch_goes_on(void) HIDDEN;

/* Whether a record may be written now. */
static inline int recording(const struct thread* t, uint32_t layer) {
  const struct feign_control* c = feign_capture.control;
  return c != 0 && !feign_capture.off && t->quiet == 0 && (c->layers >> layer & 1) != 0;
}

/* ---- the common way, inline where it counts (hook.c)
 * ---------------------------------------------------------------------- */

static inline unsigned bytes_of(uint64_t value) {
  return value == 0 ? 0 : (unsigned)(71 - __builtin_clzll(value)) / 8;
}

static inline __attribute__((always_inline)) int record_begin(struct feign_record* r,
                                                              struct thread* t, unsigned kind,
                                                              unsigned depth, uint16_t op,
                                                              uint64_t start, uint64_t end,
                                                              int64_t result, uint32_t room) {
  if (__builtin_expect(t->token != *feign_capture.token || t->token == 0, 0) && !feign_set_up(t))
    return 0;
  const uint32_t busy = t->busy;
  if (busy > 1) {
    __atomic_fetch_add(&feign_capture.control->dropped, 1, __ATOMIC_RELAXED);
    return 0;
  }
  t->busy = busy + 1;
  __asm__ volatile("" ::: "memory");
  struct lane* const l = &t->lanes[t->vforks * 2 + busy];
  if (__builtin_expect((size_t)(l->end - l->at) < room, 0) && !feign_next_chunk(l, start, room)) {
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
  r->end = (size_t)(l->end - l->at) < FEIGN_MOST_ROOM ? l->end - 32 : l->at + FEIGN_MOST_ROOM - 32;
  r->lane = l;
  r->ticks = end;
  r->values = 0;
  r->busy = busy;
  if (result != 0)
    feign_put_number(r, result > 0 || result < -4095 ? FEIGN_FIELD_RESULT : FEIGN_FIELD_ERROR,
                     result > 0 || result < -4095 ? (uint64_t)result : (uint64_t)-result);
  return 1;
}

static inline __attribute__((always_inline)) void record_end(struct feign_record* r) {
  struct lane* const l = r->lane;
  *(feign_loose16*)r->at = 0;        /* the next one's length */
  __asm__ volatile("" ::: "memory"); /* x86 stores in order */
  *(volatile feign_loose16*)r->start = (uint16_t)(r->at - r->start);
  l->at = r->at;
  l->last = r->ticks;
  __asm__ volatile("" ::: "memory");
  feign_thread.busy = r->busy;
}

#endif
