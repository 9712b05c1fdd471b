/* SPDX-License-Identifier: MIT */
/* For `feign discover`, part of hook.c: says in shared memory (watch.h) what each node is doing,
 * and holds the node that is throttled before the calls that were chosen. A node is a thread, or a
 * process with all its threads. What it does is recorded as ever; records of calls on files also
 * have the node's number and the call's among the node's (FEIGN_FIELD_NODE), by which runs can be
 * compared.
 *
 * Which calls count is decided anew at each, from what the kernel says of its descriptor: nothing
 * is kept that a fork, an exec or another thread could make untrue. */
#include "watch.h"

enum { kPath = 4400, kLevels = FEIGN_LANES / 2 };

/* What a thread knows of its node. */
struct watching {
  struct feign_watch_node* node;
  uint64_t from, cpu_from; /* the end of the last I/O call */
  uint64_t made, made_cpu; /* the last process or thread that it made */
  uint64_t waited;         /* since `from`, in calls that can wait */
  uint64_t wait_from;
  uint32_t waiting, begun, vforked;
};

/* A vfork's child runs on its parent's storage, a level up. */
struct watched {
  struct watching level[kLevels];
  struct feign_watch_node* child; /* made for the one that is being made */
  uint32_t busy;                  /* a signal handler in the middle of this is not watched */
};
static __thread struct watched g_watched __attribute__((tls_model("initial-exec")));

static uint64_t clock_ns(long clock) {
  struct timespec t = {0, 0};
  system_call(SYS_clock_gettime, clock, (long)&t, 0, 0, 0, 0);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
static uint64_t now_ns(void) { return clock_ns(CLOCK_MONOTONIC); }
static uint64_t cpu_ns(void) { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }

static void set_state(struct feign_watch_node* node, uint32_t state, uint64_t when) {
  __atomic_store_n(&node->since, when, __ATOMIC_RELAXED);
  __atomic_store_n(&node->state, state, __ATOMIC_RELEASE);
}

static void set_doing(struct feign_watch_node* node, const char* name) {
  size_t i = 0;
  for (; name[i] != '\0' && i + 1 < sizeof node->doing; ++i) node->doing[i] = name[i];
  node->doing[i] = '\0';
}

/* ---- nodes ------------------------------------------------------------------------------------
 */

static char* add_decimal(char* to, uint32_t number) {
  char digits[12];
  unsigned n = 0;
  do digits[n++] = (char)('0' + number % 10);
  while ((number /= 10) != 0);
  while (n != 0) *to++ = digits[--n];
  *to = '\0';
  return to;
}

static int same_text(const char* a, const char* b) {
  while (*a == *b && *a != '\0') ++a, ++b;
  return *a == *b;
}

/* A new one, called "KEY", or "KEY/NUMBER" and the like: the same in every run. */
static struct feign_watch_node* new_node(const char* key, char mark, uint32_t number, int rank) {
  struct feign_watch* const w = feign_capture.watch;
  const uint32_t index = __atomic_fetch_add(&w->nodes, 1, __ATOMIC_ACQ_REL);
  if (index >= FEIGN_WATCH_NODES) return 0;
  struct feign_watch_node* const node = &w->node[index];
  char* to = node->key;
  while (*key != '\0' && to < node->key + FEIGN_WATCH_KEY - 16) *to++ = *key++;
  if (mark != '\0') {
    *to++ = mark;
    add_decimal(to, number);
  }
  node->rank = rank;
  set_state(node, FEIGN_NODE_STARTING, now_ns());
  return node;
}

/* Whether process ids mean here what they mean to the watcher. */
static int in_pid_space(void) {
  struct stat st;
  return system_call(SYS_stat, (long)"/proc/self/ns/pid", (long)&st, 0, 0, 0, 0) == 0 &&
         (uint64_t)st.st_ino == feign_capture.watch->pid_space;
}

/* This thread is that node, from now on. */
static void be_node(struct watching* me, struct feign_watch_node* node) {
  if (node != 0 && !in_pid_space()) {
    set_state(node, FEIGN_NODE_ENDED, now_ns());
    node = 0;
  }
  me->node = node;
  me->begun = 1;
  me->waiting = 0;
  me->waited = 0;
  if (node == 0) return;
  const uint64_t now = now_ns();
  me->from = me->made = now;
  me->cpu_from = me->made_cpu = cpu_ns();
  const uint32_t state = __atomic_load_n(&node->state, __ATOMIC_ACQUIRE);
  if (feign_capture.watch->per == FEIGN_PER_PROCESS && state != FEIGN_NODE_STARTING) return;
  node->thread = (int32_t)system_call(SYS_gettid, 0, 0, 0, 0, 0, 0);
  node->pid = (int32_t)system_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
  set_state(node, FEIGN_NODE_COMPUTING, now);
}

static void longer(uint64_t* most, uint64_t value) {
  if (value > *most) *most = value;
}

/* A pause ends: before an I/O call, or with the node. */
static void pause_ends(struct watching* me, uint64_t now) {
  const uint64_t gap = now - me->from;
  longer(&me->node->longest_gap, gap > me->waited ? gap - me->waited : 0);
  longer(&me->node->longest_cpu, cpu_ns() - me->cpu_from);
}

/* A process or thread is about to be made: it is there for the watcher before it is for anybody. */
static void make_another(struct watched* w, struct watching* me, const struct registers* x) {
  struct feign_watch_node* const node = me->node;
  const uint64_t now = now_ns(), cpu = cpu_ns();
  longer(&node->longest_make, now - me->made);
  longer(&node->longest_make_cpu, cpu - me->made_cpu);
  me->made = now;
  me->made_cpu = cpu;
  uint64_t flags = 0, tls = 0;
  if (x->number == SYS_clone) {
    flags = (uint64_t)x->a[0];
    tls = (uint64_t)x->a[4];
  } else if (x->number == SYS_clone3 && x->a[0] != 0) {
    flags = ((const struct clone_args*)x->a[0])->flags;
    tls = ((const struct clone_args*)x->a[0])->tls;
  }
  const int thread = (flags & CLONE_THREAD) != 0;
  if (thread && feign_capture.watch->per == FEIGN_PER_PROCESS) {
    w->child = node;
  } else {
    uint32_t* const count = thread ? &node->threads : &node->children;
    w->child = new_node(node->key, thread ? '#' : '/',
                        __atomic_add_fetch(count, 1, __ATOMIC_RELAXED), node->rank);
    if (w->child != 0 && thread) {
      w->child->thread = -1; /* not known yet */
      w->child->pid = node->pid;
    }
  }
  if ((flags & CLONE_VM) != 0 && (flags & CLONE_SETTLS) != 0) {
    uintptr_t self;
    __asm__("mov %%fs:0, %0" : "=r"(self));
    struct watched* const theirs = (struct watched*)(tls + ((uintptr_t)w - self));
    theirs->level[0].node = w->child;
  }
}

static void wait_begins(struct watching* me, const char* name) {
  if (me->waiting++ != 0) return;
  me->wait_from = now_ns();
  set_doing(me->node, name);
  ++me->node->waits;
  set_state(me->node, FEIGN_NODE_WAITING, me->wait_from);
}

static void wait_ends(struct watching* me) {
  if (me->waiting == 0 || --me->waiting != 0) return;
  const uint64_t now = now_ns();
  me->waited += now - me->wait_from;
  set_state(me->node, FEIGN_NODE_COMPUTING, now);
}

/* In the parent, once the child is there (or, after a vfork, gone its own way). */
static void made_another(long result) {
  struct watching* const me = &g_watched.level[feign_thread.vforks];
  struct feign_watch_node* const child = g_watched.child;
  g_watched.child = 0;
  if (me->vforked) wait_ends(me);
  me->vforked = 0;
  if (child == 0 || child == me->node) return;
  if (result < 0)
    set_state(child, FEIGN_NODE_ENDED, now_ns());
  else if (child->thread == -1)
    child->thread = (int32_t)result;
  else if (child->pid == 0)
    child->pid = (int32_t)result;
}

static void end_process(void) {
  struct feign_watch* const w = feign_capture.watch;
  const int32_t pid = (int32_t)system_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
  const uint32_t nodes = w->nodes;
  for (uint32_t i = 0; i < nodes && i < FEIGN_WATCH_NODES; ++i)
    if (w->node[i].pid == pid) set_state(&w->node[i], FEIGN_NODE_ENDED, now_ns());
}

/* ---- which calls count ------------------------------------------------------------------------
 */

static int below(const char* path, const char* folder) {
  size_t n = 0;
  for (; folder[n] != '\0'; ++n)
    if (path[n] != folder[n]) return 0;
  return path[n] == '\0' || path[n] == '/' || (n != 0 && folder[n - 1] == '/');
}

static int path_counts(const char* path) {
  const struct feign_watch* const w = feign_capture.watch;
  /* Devices and what the kernel makes up, memory, and what Open MPI keeps for itself. */
  if ((below(path, "/dev") && !below(path, "/dev/shm")) || below(path, "/proc") ||
      below(path, "/sys") || same_start(path, "/memfd:") || same_start(path, "/tmp/ompi.") ||
      same_start(path, "/dev/shm/vader_segment") || same_start(path, "/dev/shm/psm") ||
      path[0] != '/')
    return 0;
  int only = w->only_count == 0;
  for (uint32_t i = 0; i < w->only_count; ++i) only |= below(path, w->only[i]);
  for (uint32_t i = 0; i < w->exclude_count; ++i)
    if (below(path, w->exclude[i])) return 0;
  return only;
}

/* The path of a descriptor that is a file's or a directory's; 0 if it is none that counts. */
static size_t path_of(int fd, char* path) {
  const struct feign_watch* const w = feign_capture.watch;
  struct stat st;
  if (system_call(SYS_fstat, fd, (long)&st, 0, 0, 0, 0) != 0) return 0;
  if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) return 0;
  for (int i = 0; i < 3; ++i)
    if (w->skip_ino[i] == (uint64_t)st.st_ino && w->skip_dev[i] == (uint64_t)st.st_dev) return 0;
  char link[32];
  char* to = link;
  for (const char* t = "/proc/self/fd/"; *t != '\0';) *to++ = *t++;
  add_decimal(to, (uint32_t)fd);
  const long n = system_call(SYS_readlinkat, AT_FDCWD, (long)link, (long)path, 4095, 0, 0);
  if (n <= 0) return 0;
  path[n] = '\0';
  return path_counts(path) ? (size_t)n : 0;
}

static int name_counts(int folder, long address) {
  char path[kPath];
  char given[4096];
  if (address == 0) return 0;
  size_t got = copy_safely(given, (const void*)address, sizeof given), length = 0;
  for (; got == 0 && denied && length < sizeof given; ++length)
    if ((given[length] = ((const char*)address)[length]) == '\0') break;
  if (length != 0) got = length + 1;
  length = 0;
  while (length < got && given[length] != '\0') ++length;
  if (length == got) return 0;
  if (given[0] == '/') return path_counts(given);
  size_t n = 0;
  if (folder == AT_FDCWD) {
    const long cwd = system_call(SYS_getcwd, (long)path, 4096, 0, 0, 0, 0); /* with its end */
    n = cwd > 1 ? (size_t)cwd - 1 : 0;
  } else {
    n = path_of(folder, path);
  }
  if (n == 0) return 0;
  if (length != 0 && path[n - 1] != '/') path[n++] = '/';
  for (size_t i = 0; i <= length && n < sizeof path - 1; ++i) path[n++] = given[i];
  path[n] = '\0';
  return path_counts(path);
}

static __attribute__((noinline)) int counts(const struct watched_call* d, const long* a) {
  if (!d->file) return 0;
  if (d->path != 0) {
    /* Without a name it is about the descriptor itself. */
    char first = '\0';
    const long address = a[d->path - 1];
    if (address != 0) (void)copy_safely(&first, (const void*)address, 1);
    if (first != '\0') return name_counts(d->dir != 0 ? (int)a[d->dir - 1] : AT_FDCWD, address);
    if (d->dir == 0) return 0;
  }
  const unsigned fd = d->fd != 0 ? d->fd : d->dir;
  char path[4096];
  return fd != 0 && path_of((int)a[fd - 1], path) != 0;
}

/* ---- calls ------------------------------------------------------------------------------------
 */

/* For wrappers of calls that can wait; what is in them is not looked at. */
void feign_watch_waits(const char* name) {
  struct watching* const me = &g_watched.level[feign_thread.vforks];
  if (!me->begun) be_node(me, me->node);
  if (me->node != 0) wait_begins(me, name);
}
void feign_watch_goes_on(void) {
  struct watching* const me = &g_watched.level[feign_thread.vforks];
  if (me->node != 0) wait_ends(me);
}

static void hold(struct feign_watch_node* node, uint64_t number) {
  const struct feign_watch* const w = feign_capture.watch;
  set_state(node, FEIGN_NODE_HELD, now_ns());
  /* Other threads of the node may say what they do, too, or be held as well: the last call counts,
   * with which those before it are released. */
  uint64_t held = __atomic_load_n(&node->held, __ATOMIC_RELAXED);
  while (held < number + 1 && !__atomic_compare_exchange_n(&node->held, &held, number + 1, 0,
                                                           __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
  }
  while (!__atomic_load_n(&w->stop, __ATOMIC_ACQUIRE)) {
    const uint64_t released = __atomic_load_n(&node->released, __ATOMIC_ACQUIRE);
    if (released > number || system_call(SYS_kill, w->owner, 0, 0, 0, 0, 0) == -ESRCH) break;
    const struct timespec nap = {0, 100000000};
    /* The low half of `released` changes whenever the watcher lets go. */
    system_call(SYS_futex, (long)&node->released, 0 /* FUTEX_WAIT */, (long)(uint32_t)released,
                (long)&nap, 0, 0);
  }
  held = number + 1;
  __atomic_compare_exchange_n(&node->held, &held, 0, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

static __attribute__((noinline)) struct outcome io_call(struct watching* me, struct registers* x,
                                                        const struct watched_call* d) {
  const struct feign_watch* const w = feign_capture.watch;
  struct feign_watch_node* const node = me->node;
  const uint64_t tick = ticks();
  pause_ends(me, now_ns());
  const uint64_t call = __atomic_fetch_add(&node->begun, 1, __ATOMIC_RELAXED);
  set_doing(node, d->name);
  if (call < FEIGN_WATCH_CALLS && (w->holds[call / 64] >> call % 64 & 1) != 0 &&
      same_text(w->throttled, node->key))
    hold(node, call);
  ++node->steps;
  const uint64_t begun = now_ns();
  set_state(node, FEIGN_NODE_CALLING, begun);
  const struct watched_number number = {(uint64_t)(node - w->node) << 32 | (call + 1),
                                        ticks() - tick};
  const struct outcome out = hooked(x, &number);
  me->from = now_ns();
  me->cpu_from = cpu_ns();
  me->waited = 0;
  longer(&node->longest_call, me->from - begun);
  __atomic_fetch_add(&node->calls, 1, __ATOMIC_RELAXED);
  ++node->steps;
  set_state(node, FEIGN_NODE_COMPUTING, me->from);
  return out;
}

/* exec, exit, and calls that make a process or thread. */
static __attribute__((noinline)) struct outcome process_call(struct watched* w, struct watching* me,
                                                             struct registers* x, int makes) {
  struct feign_watch_node* const node = me->node;
  w->busy = 0; /* it may not come back here */
  if (makes) {
    make_another(w, me, x);
    const struct outcome out = hooked(x, 0);
    if (out.special != kReturn) {
      struct watching* const up = &w->level[feign_thread.vforks];
      if (up != me) { /* where a vfork's child will be, while its parent waits */
        wait_begins(me, "vfork");
        me->vforked = 1;
        up->node = w->child;
        up->begun = 0;
      }
    } else if (out.result == 0) {
      if (*feign_capture.token == 0) feign_process_begin(1); /* paths are read by its process id */
      be_node(me, w->child);
    } else {
      made_another(out.result);
    }
    return out;
  }
  const uint64_t now = now_ns();
  if (x->number == SYS_execve || x->number == SYS_execveat) {
    /* The program that follows finds its node by this. */
    node->pid = (int32_t)system_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
    return hooked(x, 0);
  }
  pause_ends(me, now);
  if (x->number == SYS_exit_group)
    end_process();
  else if (feign_capture.watch->per != FEIGN_PER_PROCESS)
    set_state(node, FEIGN_NODE_ENDED, now);
  me->node = 0;
  return hooked(x, 0);
}

static __attribute__((noinline)) struct outcome hooked_and_watched(struct registers* x) {
  struct thread* const t = &feign_thread;
  struct watched* const w = &g_watched;
  struct watching* const me = &w->level[t->vforks];
  const unsigned long number = (unsigned long)x->number;
  if (w->busy || t->quiet || number >= sizeof kDescribed / sizeof *kDescribed) return hooked(x, 0);
  if (!me->begun) be_node(me, me->node);
  const struct described* const d = &kDescribed[number];
  if (me->node == 0 || d->fill == 0) return hooked(x, 0);
  if (number == SYS_ioctl && (uint32_t)x->a[1] != FICLONE && (uint32_t)x->a[1] != FICLONERANGE)
    return hooked(x, 0); /* isatty … */
  const int makes = (d->flags & kSpecial) != 0;
  w->busy = 1;
  struct outcome out;
  if (makes || (d->flags & kAlone)) {
    out = process_call(w, me, x, makes);
  } else if (me->waiting != 0 || number >= sizeof kWatched / sizeof *kWatched) {
    out = hooked(x, 0);
  } else {
    const struct watched_call* const call = &kWatched[number];
    const int waits = call->waits || (number == SYS_fcntl &&
                                      ((int)x->a[1] == F_SETLKW || (int)x->a[1] == F_OFD_SETLKW));
    if (!waits && counts(call, x->a)) {
      out = io_call(me, x, call);
    } else if (waits || (d->flags & kData)) { /* a pipe, a socket, a terminal */
      wait_begins(me, call->name);
      out = hooked(x, 0);
      wait_ends(me);
    } else {
      out = hooked(x, 0);
    }
  }
  w->busy = 0;
  return out;
}

/* ---- the start --------------------------------------------------------------------------------
 */

/* A number that a launcher put into the environment, under the first of these names; -1: none. */
static int number_given(const char (*names)[24]) {
  extern char** environ;
  for (; (*names)[0] != '\0'; ++names)
    for (char** e = environ; e != 0 && *e != 0; ++e) {
      if (!same_start(*e, *names)) continue;
      const char* p = *e;
      while (*p++ != '=') {
      }
      int number = 0;
      if (*p < '0' || *p > '9') continue;
      for (; *p >= '0' && *p <= '9'; ++p) number = number * 10 + (*p - '0');
      return number;
    }
  return -1;
}
static const char kRank[][24] = {"OMPI_COMM_WORLD_RANK=", "PMIX_RANK=", "PMI_RANK=", ""};
static const char kRanks[][24] = {"OMPI_COMM_WORLD_SIZE=", "PMI_SIZE=", ""};

void feign_watch_begin(const char* memory) {
  const long fd = system_call(SYS_openat, AT_FDCWD, (long)memory, O_RDWR | O_CLOEXEC, 0, 0, 0);
  if (fd < 0) return;
  const long at = system_call(SYS_mmap, 0, sizeof(struct feign_watch), PROT_READ | PROT_WRITE,
                              MAP_SHARED, fd, 0);
  system_call(SYS_close, fd, 0, 0, 0, 0, 0);
  if (at < 0 && at >= -4095) return;
  struct feign_watch* const w = (struct feign_watch*)at;
  if (w->magic != FEIGN_WATCH_MAGIC || w->size != sizeof *w) {
    system_call(SYS_munmap, at, sizeof *w, 0, 0, 0, 0);
    return;
  }
  feign_capture.watch = w;
  /* After an exec the node is who it was; otherwise a child of one, or the first. */
  const int32_t pid = feign_capture.pid, parent = feign_capture.parent;
  struct feign_watch_node *node = 0, *above = 0;
  const uint32_t nodes = w->nodes;
  for (uint32_t i = 0; i < nodes && i < FEIGN_WATCH_NODES; ++i) {
    struct feign_watch_node* const other = &w->node[i];
    if (other->state == FEIGN_NODE_ENDED || other->state == FEIGN_NODE_FREE) continue;
    if (other->pid == pid && (other->thread == pid || other->thread == 0) && node == 0)
      node = other;
    if (other->pid == parent && above == 0) above = other;
  }
  const int rank = number_given(kRank), ranks = number_given(kRanks);
  if (rank >= 0 && ranks > 0) w->ranks = (uint32_t)ranks;
  if (node != 0 && node->rank < 0 && rank >= 0) {
    /* A launcher's child becomes a rank with its exec. */
    set_state(node, FEIGN_NODE_ENDED, now_ns());
    node->pid = 0;
    node = 0;
  }
  if (node == 0) {
    if (rank >= 0 && (above == 0 || above->rank < 0))
      node = new_node("rank", ':', (uint32_t)rank, rank);
    else if (above != 0)
      node = new_node(above->key, '/', __atomic_add_fetch(&above->children, 1, __ATOMIC_RELAXED),
                      rank);
    else
      node = new_node("main", '\0', 0, rank);
  }
  be_node(&g_watched.level[0], node);
}
