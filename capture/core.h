/* SPDX-License-Identifier: MIT */
/* What the parts of the capture library share. None of it may use vector registers or libc: it runs
 * in the place of system calls, wherever those are made. */
#ifndef FEIGN_CAPTURE_CORE_H
#define FEIGN_CAPTURE_CORE_H

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <sys/syscall.h>

/* Calls that are younger than the headers may be; the library is for x86-64 only. */
#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif
#ifndef SYS_landlock_restrict_self
#define SYS_landlock_restrict_self 446
#endif
#ifndef SYS_setxattrat
#define SYS_setxattrat 463
#define SYS_getxattrat 464
#define SYS_listxattrat 465
#define SYS_removexattrat 466
#endif
#ifndef SYS_file_getattr
#define SYS_file_getattr 468
#define SYS_file_setattr 469
#endif

#include "capture.h"

#define FEIGN_LANES 8     /* two for each level of vfork */
#define FEIGN_TOUCHED 640 /* bytes that any record without texts and lists fits into */
#define FEIGN_TEXTS 12000 /* … that any record of a system call fits into */
#define FEIGN_MOST_ROOM 50000
#define HIDDEN __attribute__((visibility("hidden")))

struct lane {
  uint8_t *at, *end; /* of the chunk; both 0: none yet; end 0: it is being changed */
  uint64_t last;     /* ticks: end of the last record */
  union {
    uint64_t chunk; /* no other that this memory has known is this one */
    uint8_t* spare; /* without a chunk: room for one, from here to the end of its page; or 0 */
  };
  uint32_t id, number, size; /* of the chunk */
  int32_t pid, thread;
};

struct vfork {
  uintptr_t back;  /* where the parent goes on */
  uintptr_t frame; /* a place in its frame */
  uint64_t start;
  long number;
  int32_t thread; /* the parent */
  uint16_t began; /* what came in it was recorded: its beginning, too */
  uint16_t busy;  /* the parent's records that it came in: they stay as they are meanwhile */
  uint32_t depth;
  int32_t shares; /* the child that has the thread's storage, too, for as long as it lives; or 0 */
};

/* A call under way that others may come in: a wrapper's, or one that took effect when it started,
 * which a signal handler may come in. It is kept by the thread, not in the call's frame, which
 * longjmp, an exception or cancellation may leave: what lies there then is the program's. */
struct under_way {
  uintptr_t frame; /* a place in it */
  uint64_t start;
  uint32_t began; /* what is in it was recorded: its beginning, too */
  uint32_t depth;
};
enum { kUnderWay = 8 };
struct nest {
  uint32_t count;
  struct under_way all[kUnderWay]; /* innermost last */
};

struct thread {
  uint64_t token; /* the process's, when this was set up; another one after a fork */
  uint32_t busy;  /* records that are being written: 2 if a signal handler came in between */
  uint32_t quiet;
  uint32_t vforks;
  uint32_t chance; /* of sampling */
  uint64_t cpu;    /* ns that the thread had computed at the end of the last long pause */
  const struct feign_record* writing[2]; /* the records that `busy` counts */
  char** room;                           /* that exec_with() has, and its bytes */
  size_t room_size;
  struct nest calls, flights;
  struct vfork vfork[FEIGN_LANES / 2];
  struct lane lanes[FEIGN_LANES];
};
/* Where the loader is audited (LD_AUDIT) it has 1,664 bytes for the storage of all libraries. */
_Static_assert(sizeof(struct thread) <= 1104, "too large beside an auditing library");

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
  uint32_t sealed;           /* system calls may be forbidden: none that is not needed; a count */
  uint32_t moved;            /* paths may lead elsewhere than as it began, or nowhere */
  uint32_t harsh;            /* what starts from here on may not make this library's calls */
  intptr_t own_id;           /* where libc keeps a thread's number, from its storage on; or 0 */
  struct feign_watch* watch; /* of `feign discover`; 0: nobody watches (watch.c) */
  uint64_t long_pause;       /* of feign_control; UINT64_MAX: not asked for */
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

/* Whether that may be read. The kernel copies the set of signals before it looks at what is to be
 * done with it (unless there is none: a null pointer); this costs a tenth of what process_vm_readv
 * does. */
static inline int is_there(uintptr_t address) {
  return address >= 8 && (feign_capture.sealed ||
                          system_call(SYS_rt_sigprocmask, -1, (long)(address & ~(uintptr_t)7), 0, 8,
                                      0, 0) != -EFAULT);
}

/* What stands in feign_control.execs while a process calls exec with that file. One that is not
 * recorded may follow, and start another: that was started with another name. @p sure: that the
 * name can be read. */
static inline int32_t feign_exec_mark(int32_t pid, const char* file, int sure) {
  uint32_t sum = 0;
  for (const char* at = file; at - file < PATH_MAX; ++at) {
    if (!sure && (at == file || ((uintptr_t)at & 4095) == 0) && !is_there((uintptr_t)at)) break;
    if (*at == '\0') break;
    sum = sum * 31 + (uint8_t)*at;
  }
  return (int32_t)((uint32_t)pid ^ sum);
}

/* Of those under way, how many the frame at @p here can be in: they lie above it. */
static inline uint32_t live(const struct nest* n, uintptr_t here) {
  uint32_t count = n->count;
  while (count != 0 && n->all[count - 1].frame <= here) --count;
  return count;
}

/* A call is under way in @p level others. What is too deep is not kept. */
static inline void comes_under_way(struct nest* n, uint32_t level, uintptr_t frame, uint64_t start,
                                   uint32_t depth) {
  if (level >= kUnderWay) return;
  n->all[level] = (struct under_way){frame, start, 0, depth};
  __asm__ volatile("" ::: "memory"); /* a signal handler looks at it */
  n->count = level + 1;
}

/* It is over; whether it had begun. */
static inline uint32_t goes_its_way(struct nest* n, uint32_t level, uintptr_t frame) {
  const int kept = level < kUnderWay && n->all[level].frame == frame;
  const uint32_t began = kept ? n->all[level].began : 0;
  n->count = level;
  return began;
}

/* Off the common way. */
int feign_set_up(struct thread* t) HIDDEN __attribute__((noinline));
int feign_next_chunk(struct lane* l, uint64_t start, uint32_t room) HIDDEN
    __attribute__((noinline));

/* Begins a record of at least @p room bytes; 0 if there is none, and the caller forgets it. */
int feign_record_begin(struct feign_record* r, struct thread* t, unsigned kind, unsigned depth,
                       uint16_t op, uint64_t start, uint64_t end, int64_t result,
                       uint32_t room) HIDDEN;
/* Something is about to be recorded in a frame at @p here: the calls that it is in begin, and those
 * that were left end. The depth that it has. */
uint32_t feign_calls_around(struct thread* t, uintptr_t here) HIDDEN __attribute__((noinline));
void feign_process_begin(uint32_t forked) HIDDEN;
/* Calls that are needed from here on may be forbidden soon (seccomp): they are made now, or done
 * without. */
void feign_seal(void) HIDDEN;
/* They were not restricted after all. */
void feign_unseal(void) HIDDEN;
/* The vforks that the thread itself is in the midst of come after so many of those that it is the
 * child of. */
uint32_t feign_own_level(const struct thread* t) HIDDEN __attribute__((noinline));
/* In a fork's child, which a signal handler made: what the handler came in goes on here, too. */
void feign_forked_in_handler(struct thread* t, uint32_t level) HIDDEN __attribute__((noinline));
/* How many records are being written, without those that a longjmp left. */
uint32_t feign_writers(struct thread* t, uintptr_t here) HIDDEN __attribute__((noinline));
/* What a descriptor is that nobody was seen to open. */
void feign_note_descriptor(uint32_t fd) HIDDEN __attribute__((noinline));
/* How many vforks deep the thread is that is about to record, which may have another's storage. */
uint32_t feign_level(struct thread* t) HIDDEN __attribute__((noinline));
/* The thread's number. Where a system call may be forbidden, libc knows it, too. */
int32_t feign_own_number(void) HIDDEN;
/* The thread writes no more: its memory is given back. */
void feign_lanes_end(struct thread* t) HIDDEN;
/* A vfork's child writes no more: what it has left of a page is for the next one. */
void feign_lane_leaves(struct lane* l) HIDDEN;
/* A vfork's child wrote it, whose number nobody could ask for. Its last chunk tells. */
void feign_lane_is_of(struct lane* l, int32_t child) HIDDEN;

/* What watch.c does as programs begin, and in the wrappers of calls that can wait. */
void feign_watch_begin(const char* memory) HIDDEN;
void feign_watch_waits(const char* name) HIDDEN;
void feign_watch_goes_on(void) HIDDEN;

/* Whether a record may be written now. */
static inline int recording(const struct thread* t, uint32_t layer) {
  const struct feign_control* c = feign_capture.control;
  return c != 0 && !feign_capture.off && t->quiet == 0 && (c->layers >> layer & 1) != 0;
}

/* From here on no signal handler comes in, nothing jumps out, and the thread is not cancelled. (But
 * for those that an instruction of its own brings: they end a program that has them blocked.) Under
 * seccomp signals may not be blocked. For let_signals(). */
struct held {
  uint64_t signals;
  int held;
};
static inline struct held hold_signals(void) {
#define BIT(signal) (UINT64_C(1) << ((signal)-1))
  const uint64_t most =
      ~(BIT(SIGILL) | BIT(SIGTRAP) | BIT(SIGBUS) | BIT(SIGFPE) | BIT(SIGSEGV) | BIT(SIGSYS));
#undef BIT
  struct held h = {0, !feign_capture.sealed};
  if (h.held) system_call(SYS_rt_sigprocmask, SIG_BLOCK, (long)&most, (long)&h.signals, 8, 0, 0);
  return h;
}
static inline void let_signals(const struct held* h) {
  if (h->held) system_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&h->signals, 0, 8, 0, 0);
}

/* ---- the common way, inline where it counts (hook.c)
 * ---------------------------------------------------------------------- */

static inline unsigned bytes_of(uint64_t value) { /* no branch: 0 has one, too */
  return (unsigned)(71 - __builtin_clzll(value | 1)) / 8;
}

/* A result that is not 0, by the fewest bytes: an error as a positive number. */
static inline unsigned result_field(int64_t result) {
  return result > 0 || result < -4095 ? FEIGN_FIELD_RESULT : FEIGN_FIELD_ERROR;
}
static inline uint64_t result_value(int64_t result) {
  return result > 0 || result < -4095 ? (uint64_t)result : (uint64_t)-result;
}

/* What each record has; the place behind it. */
static inline __attribute__((always_inline)) uint8_t* put_head(uint8_t* begin, uint64_t last,
                                                               unsigned kind, unsigned depth,
                                                               uint16_t op, uint64_t start,
                                                               uint64_t end) {
  struct feign_record_head* const head = (struct feign_record_head*)begin;
  const uint64_t pause = start - last, duration = end - start;
  const unsigned pause_bytes = bytes_of(pause), duration_bytes = bytes_of(duration);
  head->op = op;
  head->kind = (uint8_t)(kind << 4 | (depth < 15 ? depth : 15));
  head->times = (uint8_t)(pause_bytes << 4 | duration_bytes);
  uint8_t* at = begin + sizeof *head;
  *(feign_loose64*)at = pause;
  at += pause_bytes;
  *(feign_loose64*)at = duration;
  return at + duration_bytes;
}

/* The record from @p begin to @p at is there, and says when its call ended. It is none of the
 * lane's any more if that was taken for left; or in the child of a handler's fork, which set it up
 * anew. */
static inline void commit(struct lane* l, uint8_t* begin, uint8_t* at, uint64_t end) {
  if (__builtin_expect(l->at != begin, 0)) return;
  *(feign_loose16*)at = 0;                                  /* the next one's length */
  __asm__ volatile("" ::: "memory");                        /* x86 stores in order */
  *(volatile feign_loose16*)begin = (uint16_t)(at - begin); /* of its own memory, in that child */
  __asm__ volatile("cmpxchgq %2, %0"                        /* of one thread: no lock */
                   : "+m"(l->at), "+a"(begin)
                   : "r"(at)
                   : "memory", "cc");
  l->last = end;
  __asm__ volatile("" ::: "memory");
}

static inline __attribute__((always_inline)) int record_begin(struct feign_record* r,
                                                              struct thread* t, unsigned kind,
                                                              unsigned depth, uint16_t op,
                                                              uint64_t start, uint64_t end,
                                                              int64_t result, uint32_t room) {
  if (__builtin_expect(t->token != *feign_capture.token || t->token == 0, 0) && !feign_set_up(t))
    return 0;
  uint32_t busy = t->busy;
  if (__builtin_expect(busy != 0, 0) && (busy = feign_writers(t, (uintptr_t)r)) > 1) {
    __atomic_fetch_add(&feign_capture.control->dropped, 1, __ATOMIC_RELAXED);
    return 0;
  }
  const uint32_t level = __builtin_expect(t->vforks != 0, 0) ? feign_level(t) : 0;
  struct lane* const l = &t->lanes[level * 2 + busy];
  r->lane = l;
  t->writing[busy] = r;
  __asm__ volatile("" ::: "memory");
  t->busy = busy + 1;
  __asm__ volatile("" ::: "memory");
  if (__builtin_expect(t->token != *feign_capture.token, 0)) { /* a handler's fork's child by now */
    t->busy = busy;
    return 0;
  }
  uint8_t *begin, *chunk_end;
  for (;;) { /* read once: see commit() */
    begin = l->at;
    __asm__ volatile("" : "+r"(begin)::"memory");
    chunk_end = l->end;
    __asm__ volatile("" : "+r"(chunk_end)::"memory");
    if (__builtin_expect((uintptr_t)chunk_end >= (uintptr_t)begin + room, 1)) break;
    if (!feign_next_chunk(l, start, room)) {
      t->busy = busy;
      return 0;
    }
  }
  uint8_t* const at = put_head(begin, l->last, kind, depth, op, start, end);
  r->start = begin;
  r->at = at;
  r->end =
      (size_t)(chunk_end - begin) < FEIGN_MOST_ROOM ? chunk_end - 32 : begin + FEIGN_MOST_ROOM - 32;
  r->ticks = end;
  r->values = 0;
  r->busy = busy;
  if (result != 0) feign_put_number(r, result_field(result), result_value(result));
  return 1;
}

static inline __attribute__((always_inline)) void record_end(struct feign_record* r) {
  commit(r->lane, r->start, r->at, r->ticks);
  feign_thread.busy = r->busy;
}

#endif
