/* SPDX-License-Identifier: MIT */
/* The posix layer: libc's system calls, which jump here in place of entering the kernel.
 *
 * `feign record` makes, once, a copy of libc's text in which each system call instruction is a jump
 * (core/record/hook_image.cc). A process maps that copy over libc's text as it starts: one mmap,
 * pages that all processes share. Each jump leads to a stub that knows the way back and jumps on to
 * feign_hook_entry: in the place of an instruction, so that registers, vectors, the red zone and
 * errno are as a system call leaves them. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/fs.h>
#include <linux/futex.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "core.h"
#include "hook_format.h"

struct registers {
  long a[6]; /* rdi rsi rdx r10 r8 r9 */
  long number;
  uintptr_t back;
};

#include "arguments.c"

/* ---- the table
 * ---------------------------------------------------------------------------------------------- */

enum {
  kState = 1, /* recorded while paused, too: later calls mean nothing without it */
  kData = 2,  /* sampling may leave it out */
  kTexts = 4, /* or lists: longer than FEIGN_TOUCHED */
  kAlone = 8, /* exec, exit: recorded before it is made */
  kAio = 16,
  kAtStart = 32,     /* took effect when it started */
  kSpecial = 64,     /* clone and its like */
  kGetsFd = 128,     /* its result is another process's descriptor */
  kGetsFds = 256,    /* such may come in its message, the second argument */
  kNumbers = 512,    /* what is kept: a descriptor (its first argument), a length (the third) … */
  kAndOffset = 1024, /* … and an offset (the fourth) */
  /* Took effect before a signal handler came in: those wait until it is over. But one of SIGSYS
   * may do what a filter keeps the program from doing. */
  kAtOnce = 2048,
  kMakesFd = 4096,   /* its result is a descriptor; of fcntl, where it duplicates one */
  kDuplicates = 8192 /* … and what its first argument is */
};

enum { kOverPath = 8 };

struct described {
  uint16_t fill; /* place in fill_table; 0: no such call */
  uint16_t op;
  uint16_t flags;
  /* Arguments that point to positions, from 1. kOverPath and more: a path, and a buffer behind it
   * that may be where the path is. */
  uint8_t at[2];
};

/* For `feign discover` (watch.c): a call on files, one that others may keep waiting, and where it
 * says of which file it is (arguments from 1). */
struct watched_call {
  uint8_t file, waits, fd, dir, path;
  char name[24];
};

#include "posix_capture.inc"

/* Puts the kept arguments of a call. `before` is what at_of() found. */
typedef void fill_function(struct feign_record* r, const long* a, long result,
                           const uint64_t* before);
extern const int32_t fill_table[] HIDDEN;
static inline void fill(const struct described* d, struct feign_record* r, const long* a,
                        long result, const uint64_t* before) {
  if (d->fill <= kFills)
    ((fill_function*)((uintptr_t)fill_table + (uintptr_t)(intptr_t)fill_table[d->fill]))(
        r, a, result, before);
}

#include "exec.c"

/* ---- io_submit: each request is a call of its own
 * -------------------------------------------------------------- */

static void submitted(struct thread* t, const struct described* d, const long* a, uint64_t start,
                      uint64_t end, long result, uint32_t depth) {
  struct iocb* const* all = (struct iocb* const*)a[2];
  if (unsure(result)) return;
  for (long i = 0; i < a[1] && (i == 0 || i < result); ++i) {
    const struct iocb* one = all[i];
    struct feign_record r;
    if (!feign_record_begin(&r, t, FEIGN_RECORD_CALL, depth, d->op, start, end,
                            result < 0 ? result : 1, FEIGN_TOUCHED))
      return;
    uint64_t bytes = one->aio_nbytes;
    if (one->aio_lio_opcode == 7 || one->aio_lio_opcode == 8) {
      const struct iovec* v = (const struct iovec*)one->aio_buf;
      uint64_t sum = 0;
      for (uint64_t k = 0; k < bytes && k < 1024; ++k) sum += v[k].iov_len;
      bytes = sum;
    }
    feign_put_fd(&r, FEIGN_FIELD_HANDLE, (int)one->aio_fildes);
    feign_put_offset(&r, (uint64_t)one->aio_offset);
    feign_put_length(&r, bytes);
    feign_put_flags(&r, one->aio_lio_opcode);
    feign_put_mode(&r, (uint32_t)one->aio_rw_flags);
    feign_put_value(&r, (uint64_t)a[0]);
    feign_record_end(&r);
    start = end;
  }
}

/* ---- the hook
 * --------------------------------------------------------------------------------------------------
 */

/* What `feign discover` wants to know of a call again. */
struct watched_number {
  uint64_t number, own;
};

/* Of a long pause, what the thread was not on a processor for: at least as long as it lasted, less
 * all that the thread computed since the last such pause. Calls and short pauses in between count
 * as computing, so that no clock has to be read as they begin and end. */
static __attribute__((noinline)) void idle(struct thread* t, uint64_t pause, uint64_t start) {
  struct {
    uint64_t s, ns;
  } clock = {0, 0};
  system_call(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, (long)&clock, 0, 0, 0, 0);
  const uint64_t cpu = clock.s * 1000000000u + clock.ns, before = t->cpu;
  t->cpu = cpu;
  if (before == 0 || cpu < before) return; /* the first, or of another process now */
  const uint64_t ns = cpu - before, rate = feign_capture.control->rate, low = (1 << 20) - 1;
  const uint64_t used = (ns >> 20) * rate + ((ns & low) * rate >> 20); /* of hours, too */
  if (used >= pause) return;
  struct feign_record r;
  if (record_begin(&r, t, FEIGN_RECORD_CALL, 0,
                   FEIGN_CAPTURE_OP(FEIGN_CAPTURE_LEFT_OUT, FEIGN_CAPTURE_IDLE),
                   start - (pause - used), start, 0, FEIGN_TOUCHED))
    record_end(&r);
}

/* Of a flight: how many others it is in. */
#define kNoFlight UINT32_MAX

/* Whether that flight has begun; from here on it is none. */
static inline uint32_t lands(struct thread* t, uint32_t flight, uintptr_t here) {
  return flight != kNoFlight ? goes_its_way(&t->flights, flight, here) : 0;
}

/* @p here: a place in the frame of the call, above those of what it called. */
static inline __attribute__((always_inline)) void record(
    struct thread* t, const struct described* d, unsigned kind, const long* a, uint64_t start,
    uint64_t end, long result, const uint64_t* before, uint32_t flight, uintptr_t here,
    const struct watched_number* watched) {
  uint32_t depth = 0;
  if (t->calls.count != 0 || t->flights.count != (flight != kNoFlight ? flight + 1 : 0) ||
      (flight != kNoFlight && flight != 0))
    depth = feign_calls_around(t, here);
  if (d->flags & kAio) {
    submitted(t, d, a, start, end, result, depth);
    return;
  }
  const struct lane* const lane = &t->lanes[t->vforks * 2];
  if (__builtin_expect(start - lane->last > feign_capture.long_pause, 0) && start > lane->last &&
      lane->at != 0 && t->busy == 0 && t->token == *feign_capture.token &&
      kind == FEIGN_RECORD_CALL)
    idle(t, start - lane->last, start);
  struct feign_record r;
  for (uint32_t room = FEIGN_TOUCHED;; room = FEIGN_TEXTS) {
    const int room_for_it = record_begin(&r, t, kind, depth, d->op, start, end, result, room);
    /* A handler from here on has a lane of its own. */
    const uint32_t began = lands(t, flight, here);
    if (!room_for_it) return;
    if (began)
      ((struct feign_record_head*)r.start)->kind =
          (uint8_t)(FEIGN_RECORD_BEGUN << 4 | (depth < 15 ? depth : 15));
    if (watched != 0) {
      feign_put_number(&r, FEIGN_FIELD_NODE, watched->number);
      feign_put_number(&r, FEIGN_FIELD_TRACER, watched->own);
    }
    fill(d, &r, a, kind == FEIGN_RECORD_STARTED ? NOT_MADE : result, before);
    if (__builtin_expect(r.at < r.end || room == FEIGN_TEXTS, 1)) break;
    t->busy = r.busy; /* texts that the chunk's rest has no room for: once more in the next */
  }
  record_end(&r);
}

static inline uint8_t* put_number(uint8_t* at, unsigned field, uint64_t value) {
  const unsigned bytes = bytes_of(value);
  at[0] = (uint8_t)(field << 4 | bytes);
  *(feign_loose64*)(at + 1) = value;
  return at + 1 + bytes;
}

/* The most frequent record by the shortest way: of a call with kNumbers by a thread that is in
 * nothing else, whose chunk has room. Whether it was made; if not, record() makes it. */
static inline __attribute__((always_inline)) int record_numbers(struct thread* t,
                                                                const struct described* d,
                                                                const long* a, uint64_t start,
                                                                uint64_t end, long result,
                                                                uint32_t flight) {
  struct lane* const l = &t->lanes[0];
  const uint32_t flights = flight != kNoFlight;
  if ((d->flags & kNumbers) == 0 ||
      (t->busy | t->vforks | t->calls.count | (t->flights.count ^ flights)) != 0)
    return 0;
  struct feign_record r; /* no more of it is needed: a handler looks at it */
  r.lane = l;
  t->writing[0] = &r;
  __asm__ volatile("" ::: "memory");
  t->busy = 1;
  __asm__ volatile("" ::: "memory");
  uint8_t* begin = l->at;
  __asm__ volatile("" : "+r"(begin)::"memory"); /* once */
  if (t->token != *feign_capture.token || t->token == 0 ||
      (uintptr_t)l->end < (uintptr_t)begin + FEIGN_TOUCHED ||
      start - l->last > feign_capture.long_pause) {
    t->busy = 0;
    return 0;
  }
  const int began = flights != 0 && t->flights.all[0].began;
  t->flights.count = 0;
  uint8_t* at = put_head(begin, l->last, began ? FEIGN_RECORD_BEGUN : FEIGN_RECORD_CALL, 0, d->op,
                         start, end);
  if (result != 0) at = put_number(at, result_field(result), result_value(result));
  at = put_number(at, FEIGN_FIELD_HANDLE, (uint32_t)a[0] + 1u);
  at = put_number(at, FEIGN_FIELD_LENGTH, (uint64_t)a[2]);
  if (d->flags & kAndOffset) at = put_number(at, FEIGN_FIELD_OFFSET, (uint64_t)a[3]);
  commit(l, begin, at, end);
  t->busy = 0;
  return 1;
}

/* Where a child goes on: read by feign_hook_entry, written by the parent, into the child's own
 * storage where the call gives it one. */
__thread uintptr_t feign_child_back
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

static void made_another(long result);

struct outcome {
  long result, special;
};

enum { kReturn, kMakeIt };

enum { kShares = 1u << 16, kForGood = 1u << 17, kNotMadeYet = -1 };
static void fall_silent(struct thread* t, uint32_t how) {
  if (feign_capture.control != 0 && t->quiet < kShares)
    __atomic_fetch_add(&feign_capture.control->silent, 1, __ATOMIC_RELAXED);
  t->quiet |= how;
}
/* The storage is the thread's own again: who shared it has ended, or was never made. */
static void shares_no_more(struct thread* t, struct vfork* in) {
  in->shares = 0;
  t->quiet &= ~(uint32_t)kShares;
}
/* Who is traced may only have been stopped. */
static void waited_for(struct thread* t, long child) {
  struct vfork* const in = &t->vfork[t->vforks];
  if (in->shares == child && !feign_capture.sealed &&
      system_call(SYS_kill, child, 0, 0, 0, 0, 0) == -ESRCH)
    shares_no_more(t, in);
}

/* clone, clone3 and vfork, where the child has another stack, or this memory: it must not come back
 * through this frame, which with vfork it would write over. */
static int child_in_memory(struct registers* x) {
  uint64_t flags, tls = 0, stack = 0, id = 0;
  uintptr_t self;
  __asm__("mov %%fs:0, %0" : "=r"(self));
  switch (x->number) {
    case SYS_vfork:
      flags = CLONE_VM | CLONE_VFORK;
      break;
    case SYS_clone:
      flags = (uint64_t)x->a[0];
      stack = (uint64_t)x->a[1];
      tls = (uint64_t)x->a[4];
      id = (uint64_t)(flags & CLONE_CHILD_SETTID ? x->a[3] : x->a[2]);
      break;
    default: {
      const struct clone_args* const given = (const struct clone_args*)x->a[0];
      enum { FIRST = 64 }; /* bytes: what the first kernels with it had */
      if (given == 0 || x->a[1] < FIRST || !is_there((uintptr_t)given) ||
          !is_there((uintptr_t)given + FIRST - 1))
        return 0;
      flags = given->flags;
      stack = given->stack;
      tls = given->tls;
      id = flags & CLONE_CHILD_SETTID ? given->child_tid : given->parent_tid;
    }
  }
  /* Of a thread that is made, and of what a fork makes, in its storage. */
  if ((flags & CLONE_SETTLS) ? (flags & CLONE_PARENT_SETTID) : (flags & CLONE_CHILD_SETTID))
    feign_capture.own_id = (intptr_t)(id - ((flags & CLONE_SETTLS) ? tls : self));
  if ((flags & CLONE_VM) == 0 && stack == 0) return 0;
  struct thread* const t = &feign_thread;
  if (t->token !=
      *feign_capture.token) { /* set up by a record; there is always one for this call */
    struct feign_record r;
    const uint64_t now = ticks();
    if (recording(t, 0) &&
        feign_record_begin(&r, t, FEIGN_RECORD_CWD, 0, 0, now, now, 0, FEIGN_TOUCHED))
      feign_record_end(&r);
  }
  const uint64_t token = t->token;
  uint32_t level = t->vforks;
  if (level + 1 >= FEIGN_LANES / 2 && !feign_capture.sealed) {
    /* Those that a signal handler jumped out of. */
    const int32_t own = feign_own_number();
    while (level != 0 && t->vfork[level - 1].thread == own &&
           t->vfork[level - 1].frame <= (uintptr_t)x)
      --level;
    t->vforks = level;
  }
  if (level + 1 >= FEIGN_LANES / 2) return -1;
  struct vfork* const in = &t->vfork[level];
  if ((flags & CLONE_SETTLS) == 0) {
    /* Those that it comes in begin here, or the child would be the first to say so, as of its own.
     */
    if ((t->calls.count | t->flights.count) != 0 && recording(t, 0))
      (void)feign_calls_around(t, (uintptr_t)x);
    /* Before all else: a signal handler may come in from here on, and call vfork, too. */
    in->thread = feign_own_number();
    in->frame = (uintptr_t)x;
    in->began = 1;
    in->busy = (uint16_t)(t->busy != 0 ? feign_writers(t, (uintptr_t)x) : 0);
    __asm__ volatile("" ::: "memory");
    t->vforks = level + 1;
    __asm__ volatile("" ::: "memory");
  }
  const uint32_t calls = live(&t->calls, (uintptr_t)x);
  in->depth = calls != 0 ? t->calls.all[calls - 1].depth + 1 : 0;
  in->number = x->number;
  in->back = x->back;
  in->start = ticks();
  in->began = 0;
  if (flags & CLONE_SETTLS) {
    const uintptr_t here = (uintptr_t)&feign_child_back;
    *(uintptr_t*)(tls + (here - self)) = x->back;
    in->back |= (uintptr_t)1 << 63; /* its own storage: not a vfork */
  } else {
    feign_child_back = x->back;
    /* Two threads with one storage: neither is recorded. */
    if ((flags & (CLONE_VM | CLONE_VFORK)) == CLONE_VM) {
      if ((t->quiet & kShares) == 0) in->shares = kNotMadeYet;
      fall_silent(t, (t->quiet & kShares) != 0 ? kForGood : kShares);
    }
    struct lane* const l = &t->lanes[level * 2 + 2];
    feign_lane_leaves(l); /* of the child before */
    feign_lane_leaves(l + 1);
    if (*feign_capture.token != token) { /* a handler's fork's child by now, which makes it, too */
      l[0].at = l[0].end = l[0].spare = l[1].at = l[1].end = l[1].spare = 0;
      in->thread = feign_own_number();
      if (t->token != *feign_capture.token) feign_set_up(t);
    }
  }
  return 1;
}

/* In the parent, whose frame is gone by now: where to go on. */
__attribute__((used, visibility("hidden"))) uintptr_t feign_hook_after(struct registers* x,
                                                                       long result) {
  struct thread* const t = &feign_thread;
  const uint64_t end = ticks();
  struct vfork* in = &t->vfork[t->vforks];
  const int vforked = in->back >> 63 == 0;
  if (vforked && feign_capture.sealed && result > 0)
    for (int i = 0; i < 2; ++i)
      feign_lane_is_of(&t->lanes[t->vforks * 2 + (uint32_t)i], (int32_t)result);
  if (vforked) --in;
  const struct vfork was = *in;
  if (vforked) t->busy = was.busy; /* the child may have been killed in one of its own */
  in->back = 0;
  __asm__ volatile("" ::: "memory"); /* from here on a signal handler may use it */
  if (vforked) --t->vforks;
  if (vforked && in->shares == kNotMadeYet) {
    in->shares = (int32_t)result;
    if (result < 0) shares_no_more(t, in);
  }
  /* Of a handler, which came in before another one's child was there. */
  if (vforked && t->vforks != 0) feign_child_back = t->vfork[t->vforks - 1].back;
  const uintptr_t back = was.back & ~((uintptr_t)1 << 63);
  const struct described* const d = &kDescribed[was.number];
  if (recording(t, 0))
    record(t, d, was.began ? FEIGN_RECORD_BEGUN : FEIGN_RECORD_CALL, x->a, was.start, end, result,
           0, kNoFlight, (uintptr_t)x, 0);
  if (feign_capture.watch != 0) made_another(result);
  return back;
}

/* Descriptors of another process that came by that call: what they are. */
static __attribute__((noinline)) void gets_fds(const struct described* d, const long* a,
                                               long result) {
  if (result < 0 || feign_capture.sealed) return;
  if (d->flags & kGetsFd) {
    feign_note_descriptor((uint32_t)result);
    return;
  }
  const struct msghdr* const m = (const struct msghdr*)a[1];
  for (const struct cmsghdr* c = 0; (c = next_rights(m, c)) != 0;)
    for (size_t i = 0; i < rights_in(c); ++i) feign_note_descriptor(((const uint32_t*)(c + 1))[i]);
}

static inline int makes_fd(const struct described* d, const long* a, long result) {
  return (d->flags & kMakesFd) != 0 && result >= 0 &&
         (d != &kDescribed[SYS_fcntl] || (int)a[1] == F_DUPFD || (int)a[1] == F_DUPFD_CLOEXEC);
}

/* By chance (a linear congruential generator that time is mixed into): of a program that reads and
 * writes in turn, one in an even number would be all reads. */
static inline int sampled_out(struct thread* t) {
  const uint32_t one_in = feign_capture.control->sample;
  if (one_in <= 1) return 0;
  t->chance = (t->chance + (uint32_t)ticks()) * 1664525u + 1013904223u;
  return (uint64_t)t->chance * one_in >> 32 != 0;
}

#include "filter.c"
#include "uring.c"

static struct outcome with_path_in_room(const struct registers* x, const struct thread* t, int path,
                                        const struct watched_number* watched);

/* readlink(name, name, size): the path is gone once it was read. Whether it was put elsewhere. (Of
 * a size that is all of memory it is over the path wherever that is.) */
static __attribute__((noinline)) int is_over_path(struct thread* t, const long* a, int path) {
  if ((unsigned long)(a[path] - a[path + 1]) >= (unsigned long)a[path + 2] ||
      a[path] == (long)t->room || feign_capture.sealed)
    return 0;
  char* const copy = (char*)room_for(t, PATH_MAX);
  const size_t size = copy == 0 ? 0 : copy_safely(copy, (const char*)a[path], PATH_MAX);
  for (size_t i = 0; i < size; ++i)
    if (copy[i] == '\0') return 1;
  return 0;
}

/* mlockall(2). What is mapped of the records is 64 GiB where calls are restricted: of that no more
 * than is met is locked. All others are made of the control page, which is therefore not. */
static __attribute__((noinline)) long lock_all(long flags) {
  struct capture* const g = &feign_capture;
  const long result =
      system_call(SYS_mlockall, g->whole != 0 ? flags | MCL_ONFAULT : flags, 0, 0, 0, 0, 0);
  if (result == 0 && g->control != 0 && !g->sealed)
    system_call(SYS_munlock, (long)g->control, FEIGN_CAPTURE_UNIT, 0, 0, 0, 0);
  return result;
}

static inline __attribute__((always_inline)) struct outcome hooked(
    struct registers* x, const struct watched_number* watched) {
  const long number = x->number;
  long* const a = x->a;
  struct outcome out = {0, kReturn};
  const struct described* d = 0;
  struct thread* const t = &feign_thread;
  if ((unsigned long)number < sizeof kDescribed / sizeof *kDescribed &&
      kDescribed[number].fill != 0)
    d = &kDescribed[number];
  if (d != 0 && (d->flags & kSpecial)) {
    const int in_memory = child_in_memory(x);
    if (in_memory != 0) {
      out.special = kMakeIt;
      if (in_memory > 0) return out;
      out.special = kReturn; /* vforks in vforks in vforks: no program goes that deep */
      out.result = -EAGAIN;
      return out;
    }
  }
  if (__builtin_expect((unsigned long)(number - SYS_io_uring_setup) <= 2, 0)) {
    out.result = uring_call(x, t);
    return out;
  }
  if (__builtin_expect(rings != 0, 0)) {
    (void)look_at_rings(t, 0);
    /* A vfork's child has the memory of its parent, whose rings they are. */
    if (number == SYS_close && t->vforks == 0) closes(t, a[0]);
    if (number == SYS_close_range && t->vforks == 0) closes_range(t, a);
    if (number == SYS_exit && t->vforks == 0 && rings != 0) leaves_places(t);
    if (number == SYS_exit_group && t->vforks == 0 && rings != 0) leaves_all(t);
  }
  const int on =
      d != 0 && recording(t, 0) && (!feign_capture.control->paused || (d->flags & kState));
  if (!on) {
    const int filters = (number == SYS_seccomp && (unsigned long)a[0] <= SECCOMP_SET_MODE_FILTER) ||
                        (number == SYS_prctl && a[0] == PR_SET_SECCOMP);
    if (filters) feign_seal();
    out.result = number == SYS_mlockall ? lock_all(a[0]) : make_call(x);
    if (filters && out.result < 0)
      feign_unseal();
    else if (filters && is_harsh(x))
      feign_capture.harsh = 1;
    /* Where the processor's counter may not be read any more, nothing can be recorded. */
    if (out.result == 0 &&
        ((number == SYS_prctl && a[0] == PR_SET_SECCOMP && a[1] == SECCOMP_MODE_STRICT) ||
         (number == SYS_seccomp && a[0] == SECCOMP_SET_MODE_STRICT) ||
         (number == SYS_prctl && a[0] == PR_SET_TSC && a[1] == PR_TSC_SIGSEGV)))
      fall_silent(t, kForGood);
    if (number == SYS_wait4 && out.result > 0) waited_for(t, out.result);
    return out;
  }
  uint64_t before[2];
  if (__builtin_expect(d->at[0] != 0, 0)) {
    const int path = d->at[0] - kOverPath - 1;
    if (path < 0) {
      before[0] = at_of(a[d->at[0] - 1]);
      before[1] = d->at[1] != 0 ? at_of(a[d->at[1] - 1]) : 0;
    } else if (is_over_path(t, a, path)) {
      return with_path_in_room(x, t, path, watched);
    }
  }
  if (d->flags & kAlone) {
    const int fails = (number == SYS_execve || number == SYS_execveat) && will_fail(x);
    const uint64_t now = ticks();
    if (!fails)
      record(t, d, FEIGN_RECORD_STARTED, a, now, now, 0, before, kNoFlight, (uintptr_t)x, watched);
    if (number == SYS_exit && t->vforks == 0) {
      t->token = 0; /* its storage may become another thread's */
      if (t->room != 0) system_call(SYS_munmap, (long)t->room, (long)t->room_size, 0, 0, 0, 0);
      t->room_size = 0;
      feign_lanes_end(t);
    }
    const uint64_t start = ticks();
    out.result = fails ? system_call(number, a[0], a[1], a[2], a[3], a[4], a[5]) : make_call(x);
    record(t, d, FEIGN_RECORD_CALL, a, start, ticks(), out.result, before, kNoFlight, (uintptr_t)x,
           watched); /* it came back: it failed */
    return out;
  }
  if ((d->flags & kAtStart) || ((d->flags & kAtOnce) && !feign_capture.sealed)) {
    uint32_t level = live(&t->flights, (uintptr_t)x);
    const uint32_t calls = live(&t->calls, (uintptr_t)x);
    const uint32_t own =
        __builtin_expect(d->flags & kSpecial, 0) && t->vforks != 0 ? feign_own_level(t) : 0;
    const uint64_t started = ticks();
    comes_under_way(&t->flights, level, (uintptr_t)x, started,
                    calls != 0 ? t->calls.all[calls - 1].depth + 1 : 0);
    out.result = system_call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    const uint64_t end = ticks();
    if (__builtin_expect(d->flags & kSpecial, 0) && out.result == 0) { /* the child of a fork */
      lands(t, level, (uintptr_t)x);
      if ((t->busy | t->vforks) != 0) feign_forked_in_handler(t, own);
      return out;
    }
    const int began = level < kUnderWay && t->flights.all[level].began;
    if (__builtin_expect(rings != 0, 0) && makes_fd(d, a, out.result)) {
      if (!began) {
        lands(t, level, (uintptr_t)x); /* or what is said now would come behind it */
        level = kNoFlight;
      }
      rings_see_new(t, d, a, out.result);
    }
    if ((d->flags & kData) && !began && sampled_out(t))
      lands(t, level, (uintptr_t)x);
    else if (watched != 0 || !record_numbers(t, d, a, started, end, out.result, level))
      record(t, d, FEIGN_RECORD_CALL, a, started, end, out.result, before, level, (uintptr_t)x,
             watched);
    return out;
  }
  const uint64_t start = ticks();
  out.result = system_call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  const uint64_t end = ticks();
  if (__builtin_expect(rings != 0, 0) && makes_fd(d, a, out.result))
    rings_see_new(t, d, a, out.result);
  if ((d->flags & kData) && sampled_out(t)) return out;
  if (watched == 0 && record_numbers(t, d, a, start, end, out.result, kNoFlight)) return out;
  record(t, d, FEIGN_RECORD_CALL, a, start, end, out.result, before, kNoFlight, (uintptr_t)x,
         watched);
  if (__builtin_expect(d->flags & (kGetsFd | kGetsFds), 0)) gets_fds(d, a, out.result);
  return out;
}

static __attribute__((noinline)) struct outcome with_path_in_room(
    const struct registers* x, const struct thread* t, int path,
    const struct watched_number* watched) {
  struct registers other = *x;
  other.a[path] = (long)t->room;
  return hooked(&other, watched);
}

#include "watch.c"

/* After a system call the processor has forgotten where functions return to, and guesses wrong:
 * feign_hook leaves by a jump, which it remembers. */
#if defined(__GNUC__) && !defined(__clang__)
#define LEAVES_BY_JUMP __attribute__((function_return("thunk-extern")))
#else
#define LEAVES_BY_JUMP
#endif

static void maps_code(uintptr_t at, uint64_t size);

__attribute__((used, visibility("hidden"))) LEAVES_BY_JUMP struct outcome feign_hook(
    struct registers* x) {
  const struct outcome out =
      __builtin_expect(feign_capture.watch != 0, 0) ? hooked_and_watched(x) : hooked(x, 0);
  if (__builtin_expect(x->number == SYS_mmap, 0) && (x->a[2] & PROT_EXEC) != 0 &&
      (x->a[3] & MAP_ANONYMOUS) == 0 && (out.result >= 0 || out.result < -4095))
    maps_code((uintptr_t)out.result, (uint64_t)x->a[1]);
  if (__builtin_expect(x->number >= SYS_pivot_root, 0) && out.result == 0 &&
      (x->number == SYS_chroot || x->number == SYS_pivot_root || x->number == SYS_setns ||
       x->number == SYS_unshare || x->number == SYS_landlock_restrict_self))
    feign_capture.moved = 1;
  return out;
}

/* From a stub: all registers are the program's but rcx, which a system call overwrites anyway, and
 * which says where to go on. A thread may be cancelled between any two instructions, and its stack
 * is unwound from there. */
#define PUSH(register) "  push %" register "\n.cfi_adjust_cfa_offset 8\n"
#define POP(register) "  pop %" register "\n.cfi_adjust_cfa_offset -8\n"
__asm__(
    ".text\n"
    ".globl feign_hook_entry\n"
    ".hidden feign_hook_entry\n"
    ".type feign_hook_entry, @function\n"
    "feign_hook_entry:\n"
    ".cfi_startproc\n"
    ".cfi_def_cfa %rsp, 0\n"
    ".cfi_register %rip, %r11\n"
    "  lea -128(%rsp), %rsp\n" /* past the red zone */
    ".cfi_adjust_cfa_offset 128\n"
    "  push %r11\n" /* in libc: for unwinders only (cancellation, exceptions) */
    ".cfi_adjust_cfa_offset 8\n"
    ".cfi_offset %rip, -136\n" PUSH("rcx") PUSH("rax") PUSH("r9") PUSH("r8") PUSH("r10")
        PUSH("rdx") PUSH("rsi") PUSH("rdi") PUSH("rbp")
    ".cfi_offset %rbp, -208\n"
    "  mov %rsp, %rbp\n"
    ".cfi_def_cfa_register %rbp\n"
    "  lea 8(%rsp), %rdi\n"
    "  and $-16, %rsp\n"
    "  lea 3f(%rip), %rcx\n"
    "  push %rcx\n"
    "  jmp feign_hook\n"
    "3:\n"
    "  mov %rbp, %rsp\n"
    ".cfi_def_cfa_register %rsp\n" POP("rbp")
    ".cfi_same_value %rbp\n"
    "  test %edx, %edx\n" POP("rdi") POP("rsi") POP("rdx") POP("r10") POP("r8") POP("r9")
    "  jnz 1f\n" POP("rcx") /* the number */
        POP("rcx") POP("r11")
    ".cfi_register %rip, %r11\n"
    "  lea 128(%rsp), %rsp\n"
    ".cfi_adjust_cfa_offset -128\n"
    "  jmp *%rcx\n"
    ".cfi_endproc\n"
    "1:\n"
    "  pop %rax\n"
    "  lea 144(%rsp), %rsp\n"
    "  syscall\n"
    "  test %rax, %rax\n"
    "  jnz 2f\n"
    "  mov feign_child_back@gottpoff(%rip), %rcx\n"
    "  mov %fs:(%rcx), %rcx\n"
    "  jmp *%rcx\n"
    "2:\n"
    "  lea -128(%rsp), %rsp\n"
    "  push %rcx\n"
    "  push %rax\n  push %r9\n  push %r8\n  push %r10\n  push %rdx\n  push %rsi\n  push %rdi\n"
    "  push %rbp\n"
    "  mov %rsp, %rbp\n"
    "  lea 8(%rsp), %rdi\n"
    "  mov %rax, %rsi\n"
    "  and $-16, %rsp\n"
    "  call feign_hook_after\n"
    "  mov %rax, %rcx\n"
    "  mov %rbp, %rsp\n"
    "  pop %rbp\n"
    "  pop %rdi\n  pop %rsi\n  pop %rdx\n  pop %r10\n  pop %r8\n  pop %r9\n"
    "  pop %rax\n"
    "  lea 136(%rsp), %rsp\n"
    "  jmp *%rcx\n"
    ".size feign_hook_entry, . - feign_hook_entry\n"
    ".globl __x86_return_thunk\n"
    ".hidden __x86_return_thunk\n"
    ".type __x86_return_thunk, @function\n"
    "__x86_return_thunk:\n"
    ".cfi_startproc\n" POP("rcx")
    ".cfi_register %rip, %rcx\n"
    "  jmp *%rcx\n"
    ".cfi_endproc\n"
    ".size __x86_return_thunk, . - __x86_return_thunk\n");
extern char feign_hook_entry[] HIDDEN;

#include "install.c"
