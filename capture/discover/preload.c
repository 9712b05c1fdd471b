/* SPDX-License-Identifier: MIT */
/*
 * libfeign-discover.so: preloaded into each process of a run of `feign discover`. It says in shared
 * memory what each node is doing (watch.h), holds the node that is throttled before the calls that
 * were chosen, and writes down what each node does to files, as //TRACE's text with times in front.
 *
 * The wrappers of I/O calls are made from layers/posix.h (generate.py). A node is a thread, or a
 * process. Descriptors are numbered anew for each node, lowest first, so that what another thread
 * opens does not make two runs differ; one that a node did not open itself is written down as
 * opened where the node first uses it.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "watch.h"

#define kFds 4096
#define kWindow (size_t)(256 << 10) /* of a log that is mapped at a time */
#define kLine 12288

struct node {
  struct feign_watch_node* slot;
  pthread_mutex_t lock; /* of a node that several threads share */
  int shared;
  uint64_t compute_from; /* ns: the end of the last call */
  uint64_t waited;       /* of the time since then, in calls that can wait */
  uint64_t wait_from;
  int waiting;
  uint64_t arrived, begun;
  uint64_t made_from, made_cpu; /* the moment of the last process or thread that it made */
  uint64_t cpu_from, cpu; /* processor time at the end of the last call; from then to this one */
  int log;
  char* window;
  uint64_t window_at;
  uint16_t known[kFds];  /* the generation of the file that the node knows this descriptor to be */
  uint16_t number[kFds]; /* what it is called in the log */
  uint64_t numbers[kFds / 64];
};

struct line {
  char *at, *end;
  int error;
  char text[kLine];
};

static struct feign_watch* watch;
static uint16_t
    generation[kFds]; /* of regular files and directories; 0: something else, or closed */
static uint16_t generations;
static struct node* process_node;
static __thread struct node* self __attribute__((tls_model("initial-exec")));
static __thread int inside __attribute__((tls_model("initial-exec")));
static pthread_key_t at_end;

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t cpu_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void set_state(struct feign_watch_node* slot, uint32_t state, uint64_t when) {
  __atomic_store_n(&slot->since, when, __ATOMIC_RELAXED);
  __atomic_store_n(&slot->state, state, __ATOMIC_RELEASE);
}

static void set_doing(struct feign_watch_node* slot, const char* name) {
  size_t i = 0;
  for (; name[i] != 0 && i + 1 < sizeof slot->doing; ++i) slot->doing[i] = name[i];
  slot->doing[i] = 0;
}

/* ---- nodes ------------------------------------------------------------------------------------
 */

static struct feign_watch_node* new_slot(const char* key, int rank) {
  const uint32_t index = __atomic_fetch_add(&watch->nodes, 1, __ATOMIC_ACQ_REL);
  if (index >= FEIGN_WATCH_NODES) return 0;
  struct feign_watch_node* slot = &watch->node[index];
  snprintf(slot->key, sizeof slot->key, "%s", key);
  slot->rank = rank;
  set_state(slot, FEIGN_NODE_STARTING, now());
  return slot;
}

static struct node* new_node(struct feign_watch_node* slot) {
  struct node* node =
      mmap(0, sizeof *node, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (node == MAP_FAILED) return 0;
  node->slot = slot;
  node->log = -1;
  node->shared = watch->per == FEIGN_PER_PROCESS;
  pthread_mutex_init(&node->lock, 0);
  slot->thread = (int32_t)syscall(SYS_gettid);
  slot->pid = getpid();
  node->compute_from = now();
  node->cpu_from = cpu_now();
  node->made_from = node->compute_from;
  node->made_cpu = node->cpu_from;
  set_state(slot, FEIGN_NODE_COMPUTING, node->compute_from);
  return node;
}

static void end_node(void* p) {
  struct node* node = p;
  self = 0;
  if (node->window != 0) munmap(node->window, kWindow);
  node->window = 0;
  if (node->log >= 0) syscall(SYS_close, node->log);
  node->log = -1;
  if (!node->shared) set_state(node->slot, FEIGN_NODE_ENDED, now());
}

static struct node* enter(void) {
  struct node* node = self;
  /* A child of vfork runs in our memory, and is somebody else. */
  if (node == 0 || inside != 0 || node->slot->pid != (int32_t)syscall(SYS_getpid)) return 0;
  ++inside;
  if (node->shared) pthread_mutex_lock(&node->lock);
  return node;
}

static void leave(struct node* node) {
  if (node->shared) pthread_mutex_unlock(&node->lock);
  --inside;
}

/* ---- the log ----------------------------------------------------------------------------------
 */

static void log_text(struct node* node, const char* text, size_t length) {
  struct feign_watch_node* slot = node->slot;
  while (length != 0) {
    const uint64_t at = slot->log_bytes & ~(uint64_t)(kWindow - 1);
    if (node->window == 0 || node->window_at != at) {
      if (node->window != 0) munmap(node->window, kWindow);
      node->window = 0;
      if (node->log < 0) {
        char path[sizeof watch->folder + 32];
        snprintf(path, sizeof path, "%s/%ld.log", watch->folder, (long)(slot - watch->node));
        int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (fd >= 0) { /* out of the way of the program's */
          const int high = (int)syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 900);
          if (high >= 0) {
            syscall(SYS_close, fd);
            fd = high;
          }
        }
        node->log = fd;
      }
      void* to = MAP_FAILED;
      if (node->log >= 0 && syscall(SYS_ftruncate, node->log, (long)(at + kWindow)) == 0)
        to = mmap(0, kWindow, PROT_READ | PROT_WRITE, MAP_SHARED, node->log, (off_t)at);
      if (to == MAP_FAILED) {
        watch->failed = (uint32_t)errno;
        return;
      }
      node->window = to;
      node->window_at = at;
    }
    const size_t offset = (size_t)(slot->log_bytes - at);
    const size_t part = length < kWindow - offset ? length : kWindow - offset;
    memcpy(node->window + offset, text, part);
    slot->log_bytes += part;
    text += part;
    length -= part;
  }
}

static void put(struct line* line, const char* text) {
  while (*text != 0 && line->at < line->end) *line->at++ = *text++;
}

static void put_number(struct line* line, long value) {
  char text[24];
  snprintf(text, sizeof text, "%ld", value);
  put(line, text);
}

static void put_quoted(struct line* line, const char* text) {
  if (text == 0) {
    put(line, "NULL");
    return;
  }
  put(line, "\"");
  for (; *text != 0; ++text) {
    const unsigned char c = (unsigned char)*text;
    char part[8];
    if (c == '"' || c == '\\')
      snprintf(part, sizeof part, "\\%c", c);
    else if (c < 0x20 || c == 0x7F)
      snprintf(part, sizeof part, "\\x%02x", c);
    else
      snprintf(part, sizeof part, "%c", c);
    put(line, part);
  }
  put(line, "\"");
}

static void put_path(struct line* line, int folder, const char* path) {
  char whole[PATH_MAX + 256];
  if (path != 0 && path[0] != '/' && path[0] != 0 && folder == AT_FDCWD) {
    const long n = syscall(SYS_getcwd, whole, sizeof whole - 256); /* with its end */
    if (n > 0) {
      snprintf(whole + n - 1, sizeof whole - (size_t)n, "%s%s", n == 2 ? "" : "/", path);
      path = whole;
    }
  }
  put_quoted(line, path);
}

static void put_parts(struct line* line, const struct iovec* parts, int count) {
  put(line, "[");
  for (int i = 0; parts != 0 && i < count && i < 256; ++i) {
    if (i != 0) put(line, ", ");
    put_number(line, (long)parts[i].iov_len);
  }
  put(line, "]");
}

static void put_at(struct line* line, const off_t* at) {
  if (at == 0)
    put(line, "NULL");
  else
    put_number(line, (long)*at);
}

/* ---- descriptors ------------------------------------------------------------------------------
 */

static int fits(int fd) { return fd >= 0 && fd < kFds; }

static uint16_t take_number(struct node* node) {
  for (unsigned i = 0; i < kFds / 64; ++i)
    if (~node->numbers[i] != 0) {
      const unsigned bit = (unsigned)__builtin_ctzll(~node->numbers[i]);
      node->numbers[i] |= (uint64_t)1 << bit;
      return (uint16_t)(i * 64 + bit + 3);
    }
  return 0;
}

static void forget(struct node* node, int fd) {
  if (node->known[fd] == 0) return;
  node->known[fd] = 0;
  const unsigned number = node->number[fd] - 3u;
  node->numbers[number / 64] &= ~((uint64_t)1 << number % 64);
}

/* What the node now knows the descriptor to be: what it is in this process. */
static void learn(struct node* node, int fd) {
  if (node->known[fd] == 0) node->number[fd] = take_number(node);
  node->known[fd] = generation[fd];
}

static void new_generation(int fd) {
  uint16_t next = __atomic_add_fetch(&generations, 1, __ATOMIC_RELAXED);
  if (next == 0) next = __atomic_add_fetch(&generations, 1, __ATOMIC_RELAXED);
  generation[fd] = next;
}

static int begins_with(const char* path, const char* prefix) {
  const size_t n = strlen(prefix);
  return strncmp(path, prefix, n) == 0 &&
         (path[n] == 0 || path[n] == '/' || (n != 0 && prefix[n - 1] == '/'));
}

static int path_wanted(const char* path) {
  /* Devices and what the kernel makes up; what launchers of MPI programs keep for themselves. */
  if ((begins_with(path, "/dev") && !begins_with(path, "/dev/shm")) || begins_with(path, "/proc") ||
      begins_with(path, "/sys") || strncmp(path, "/tmp/ompi.", 10) == 0)
    return 0;
  if (watch->only_count == 0 && watch->exclude_count == 0) return 1;
  char whole[PATH_MAX + 256];
  if (path[0] != '/') {
    const long n = syscall(SYS_getcwd, whole, sizeof whole - 256);
    if (n > 0) {
      snprintf(whole + n - 1, sizeof whole - (size_t)n, "%s%s", n == 2 ? "" : "/", path);
      path = whole;
    }
  }
  int only = watch->only_count == 0;
  for (uint32_t i = 0; i < watch->only_count; ++i) only |= begins_with(path, watch->only[i]);
  for (uint32_t i = 0; i < watch->exclude_count; ++i)
    if (begins_with(path, watch->exclude[i])) return 0;
  return only;
}

static void call_begin(struct line* line, struct node* node, const char* name);
static void call_now(struct node* node);
static void call_end(struct node* node, struct line* line, long result);
static void put_fd(struct line* line, struct node* node, int fd, int made);

/* Whether the descriptor is a file's; one that the node has not met yet is opened, in the log. */
static int known(struct node* node, int fd) {
  if (!fits(fd) || generation[fd] == 0) return 0;
  if (node->known[fd] == generation[fd]) return 1;
  char link[32], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t n = syscall(SYS_readlink, link, path, sizeof path - 1);
  const long flags = syscall(SYS_fcntl, fd, F_GETFL);
  const long position = syscall(SYS_lseek, fd, 0, SEEK_CUR);
  if (n <= 0 || flags < 0) return 0;
  path[n] = 0;
  if (!path_wanted(path)) {
    generation[fd] = 0;
    return 0;
  }
  forget(node, fd);
  learn(node, fd);
  struct line line;
  call_begin(&line, node, "open");
  put_quoted(&line, path);
  put(&line, ", ");
  put_number(&line, flags & ~(O_CREAT | O_EXCL | O_TRUNC));
  put(&line, ", 0");
  call_now(node);
  call_end(node, &line, node->number[fd]);
  if (position > 0) {
    call_begin(&line, node, "lseek");
    put_fd(&line, node, fd, 0);
    put(&line, ", ");
    put_number(&line, position);
    put(&line, ", 0");
    call_now(node);
    call_end(node, &line, position);
  }
  return 1;
}

static int wanted(struct node* node, int folder, const char* path) {
  if (path == 0) return 0;
  if (path[0] != '/' && folder != AT_FDCWD) return known(node, folder);
  return path_wanted(path);
}

static int is_file(int fd) {
  struct stat st;
  if (syscall(SYS_fstat, fd, &st) != 0) return 0;
  return S_ISREG(st.st_mode) || S_ISDIR(st.st_mode);
}

/* These give the number that the log has for the descriptor. */
static long opened(struct node* node, int fd) {
  const int error = errno;
  if (!fits(fd)) return fd;
  forget(node, fd);
  generation[fd] = 0;
  long shown = fd;
  if (is_file(fd)) {
    new_generation(fd);
    learn(node, fd);
    shown = node->number[fd];
  }
  errno = error;
  return shown;
}

static long duplicated(struct node* node, int fd, int target) {
  if (!fits(fd)) {
    if (fits(target) && node->known[target] == 0xFFFF) forget(node, target);
    return fd;
  }
  new_generation(fd);
  learn(node, fd);
  return node->number[fd];
}

static void closed(struct node* node, int fd) {
  forget(node, fd);
  generation[fd] = 0;
}

static void put_fd(struct line* line, struct node* node, int fd, int made) {
  if (!fits(fd)) {
    put_number(line, fd);
    return;
  }
  if (made && node->known[fd] == 0) { /* the number that dup2 is to give it */
    node->number[fd] = take_number(node);
    node->known[fd] = 0xFFFF;
  }
  put_number(line, node->known[fd] != 0 ? node->number[fd] : fd);
}

static void put_dir(struct line* line, struct node* node, int fd) {
  if (fd == AT_FDCWD || !fits(fd) || node->known[fd] == 0)
    put(line, "AT_FDCWD");
  else
    put_number(line, node->number[fd]);
}

/* ---- calls ------------------------------------------------------------------------------------
 */

static int held_here(const struct node* node) {
  const uint64_t call = node->slot->calls;
  return call < FEIGN_WATCH_CALLS && (watch->holds[call / 64] >> call % 64 & 1) != 0 &&
         strcmp(watch->throttled, node->slot->key) == 0;
}

static void hold(struct node* node) {
  struct feign_watch_node* slot = node->slot;
  set_state(slot, FEIGN_NODE_HELD, now());
  while (!__atomic_load_n(&watch->stop, __ATOMIC_ACQUIRE)) {
    const uint64_t released = __atomic_load_n(&slot->released, __ATOMIC_ACQUIRE);
    if (released > slot->calls || (kill(watch->owner, 0) != 0 && errno == ESRCH)) break;
    const struct timespec nap = {0, 100000000};
    /* The low half of `released` changes whenever the watcher lets go. */
    syscall(SYS_futex, &slot->released, 0 /* FUTEX_WAIT */, (uint32_t)released, &nap, 0, 0);
  }
}

static void call_begin(struct line* line, struct node* node, const char* name) {
  struct feign_watch_node* slot = node->slot;
  const int error = errno;
  set_doing(slot, name);
  node->arrived = now();
  node->cpu = cpu_now() - node->cpu_from;
  if (held_here(node)) hold(node);
  line->at = line->text;
  line->end = line->text + sizeof line->text - 128;
  line->error = 0;
  put(line, name);
  put(line, "(");
  errno = error;
}

static void call_now(struct node* node) {
  node->begun = now();
  ++node->slot->steps;
  set_state(node->slot, FEIGN_NODE_CALLING, node->begun);
}

static void call_end(struct node* node, struct line* line, long result) {
  const int error = errno;
  const uint64_t end = now();
  put(line, ") = ");
  line->end = line->text + sizeof line->text - 1;
  if (result < 0 && line->error != 0) {
    const char* name = strerrorname_np(line->error);
    put(line, "-1 ");
    put(line, name != 0 ? name : "?");
  } else {
    put_number(line, result);
  }
  put(line, "\n");
  char times[128];
  const int n = snprintf(times, sizeof times, "%llu %llu %llu %llu %llu ",
                         (unsigned long long)node->compute_from, (unsigned long long)node->arrived,
                         (unsigned long long)(end - node->begun), (unsigned long long)node->waited,
                         (unsigned long long)node->cpu);
  log_text(node, times, (size_t)n);
  log_text(node, line->text, (size_t)(line->at - line->text));
  node->waited = 0;
  node->cpu_from = cpu_now();
  node->compute_from = now();
  ++node->slot->calls;
  ++node->slot->steps;
  set_state(node->slot, node->waiting ? FEIGN_NODE_WAITING : FEIGN_NODE_COMPUTING,
            node->compute_from);
  errno = error;
}

/* A call that can wait for others begins. */
static void wait_begin(struct node* node, const char* name) {
  if (node->waiting++ != 0) return;
  node->wait_from = now();
  set_doing(node->slot, name);
  ++node->slot->waits;
  set_state(node->slot, FEIGN_NODE_WAITING, node->wait_from);
}

static void wait_end(struct node* node) {
  if (--node->waiting != 0) return;
  const uint64_t end = now();
  node->waited += end - node->wait_from;
  set_state(node->slot, FEIGN_NODE_COMPUTING, end);
}

#include "discover_calls.inc"

/* What fortified programs call. They end in the calls above. */
ssize_t __read_chk(int fd, void* buf, size_t count, size_t size);
ssize_t __read_chk(int fd, void* buf, size_t count, size_t size) {
  if (count > size) abort();
  return feign_read(fd, buf, count);
}
ssize_t __pread_chk(int fd, void* buf, size_t count, off_t offset, size_t size);
ssize_t __pread_chk(int fd, void* buf, size_t count, off_t offset, size_t size) {
  if (count > size) abort();
  return feign_pread64(fd, buf, count, offset);
}
ssize_t __pread64_chk(int fd, void* buf, size_t count, off_t offset, size_t size);
ssize_t __pread64_chk(int fd, void* buf, size_t count, off_t offset, size_t size) {
  return __pread_chk(fd, buf, count, offset, size);
}
int __open_2(const char* path, int flags);
int __open_2(const char* path, int flags) { return feign_open(path, flags, 0); }
int __open64_2(const char* path, int flags);
int __open64_2(const char* path, int flags) { return feign_open(path, flags, 0); }
int __openat_2(int folder, const char* path, int flags);
int __openat_2(int folder, const char* path, int flags) {
  return feign_openat(folder, path, flags, 0);
}
int __openat64_2(int folder, const char* path, int flags);
int __openat64_2(int folder, const char* path, int flags) {
  return feign_openat(folder, path, flags, 0);
}

/* ---- calls that can wait ----------------------------------------------------------------------
 */

/* Any call of up to 12 words, whatever they are: more are passed on than it has. What it does to
 * files in between is its own business, and no node's. */
#define WAITS(name)                                                                              \
  long feign_wait_##name(long a, long b, long c, long d, long e, long f, long g, long h, long i, \
                         long j, long k, long l) __asm__(#name);                                 \
  long feign_wait_##name(long a, long b, long c, long d, long e, long f, long g, long h, long i, \
                         long j, long k, long l) {                                               \
    static long (*real)(long, long, long, long, long, long, long, long, long, long, long, long); \
    if (real == 0) *(void**)&real = dlsym(RTLD_NEXT, #name);                                     \
    if (real == 0) {                                                                             \
      errno = ENOSYS;                                                                            \
      return -1;                                                                                 \
    }                                                                                            \
    struct node* node = self;                                                                    \
    if (node == 0 || inside != 0) return real(a, b, c, d, e, f, g, h, i, j, k, l);               \
    wait_begin(node, #name);                                                                     \
    ++inside;                                                                                    \
    const long result = real(a, b, c, d, e, f, g, h, i, j, k, l);                                \
    const int error = errno;                                                                     \
    --inside;                                                                                    \
    wait_end(node);                                                                              \
    errno = error;                                                                               \
    return result;                                                                               \
  }
WAITS(wait)
WAITS(waitpid)
WAITS(wait3)
WAITS(wait4)
WAITS(waitid)
WAITS(pthread_join)
WAITS(pthread_barrier_wait)
WAITS(sem_wait)
WAITS(poll)
WAITS(ppoll)
WAITS(select)
WAITS(pselect)
WAITS(epoll_wait)
WAITS(epoll_pwait)
WAITS(flock)
WAITS(accept)
WAITS(accept4)
WAITS(recv)
WAITS(recvfrom)
WAITS(recvmsg)
WAITS(msgrcv)
WAITS(semop)
WAITS(mq_receive)
WAITS(sigwait)
WAITS(sigwaitinfo)
WAITS(sigtimedwait)
WAITS(sigsuspend)
WAITS(pause)
WAITS(MPI_Init)
WAITS(MPI_Init_thread)
WAITS(MPI_Barrier)
WAITS(MPI_Recv)
WAITS(MPI_Send)
WAITS(MPI_Ssend)
WAITS(MPI_Sendrecv)
WAITS(MPI_Wait)
WAITS(MPI_Waitall)
WAITS(MPI_Waitany)
WAITS(MPI_Waitsome)
WAITS(MPI_Probe)
WAITS(MPI_Bcast)
WAITS(MPI_Reduce)
WAITS(MPI_Allreduce)
WAITS(MPI_Gather)
WAITS(MPI_Gatherv)
WAITS(MPI_Scatter)
WAITS(MPI_Scatterv)
WAITS(MPI_Allgather)
WAITS(MPI_Allgatherv)
WAITS(MPI_Alltoall)
WAITS(MPI_Alltoallv)
WAITS(MPI_Scan)
WAITS(MPI_Finalize)
WAITS(MPI_Win_fence)

/* ---- processes and threads --------------------------------------------------------------------
 */

/* A node may be what others wait for without any call on files: they do not exist yet. */
static void makes_another(struct node* node) {
  struct feign_watch_node* slot = node->slot;
  const uint64_t t = now(), cpu = cpu_now();
  if (t - node->made_from > slot->longest_gap) slot->longest_gap = t - node->made_from;
  if (cpu - node->made_cpu > slot->longest_cpu) slot->longest_cpu = cpu - node->made_cpu;
  node->made_from = t;
  node->made_cpu = cpu;
}

static struct feign_watch_node* child_slot(struct node* parent) {
  char key[FEIGN_WATCH_KEY];
  const uint32_t number = __atomic_add_fetch(&parent->slot->children, 1, __ATOMIC_RELAXED);
  snprintf(key, sizeof key, "%.90s/%u", parent->slot->key, number);
  return new_slot(key, parent->slot->rank);
}

pid_t feign_fork(void) __asm__("fork");
pid_t feign_fork(void) {
  static pid_t (*real)(void);
  if (real == 0) *(void**)&real = dlsym(RTLD_NEXT, "fork");
  struct node* node = self;
  if (node == 0) return real();
  makes_another(node);
  struct feign_watch_node* slot = child_slot(node);
  const pid_t pid = real();
  if (pid < 0 && slot != 0) set_state(slot, FEIGN_NODE_ENDED, now());
  if (pid > 0 && slot != 0) slot->pid = pid;
  if (pid == 0) {
    if (slot == 0) {
      self = 0;
      return 0;
    }
    if (node->window != 0) munmap(node->window, kWindow);
    if (node->log >= 0) syscall(SYS_close, node->log);
    munmap(node, sizeof *node);
    self = new_node(slot);
    process_node = self;
  }
  return pid;
}

struct start {
  void* (*function)(void*);
  void* argument;
  struct feign_watch_node* slot;
};

static void* thread_main(void* p) {
  const struct start start = *(struct start*)p;
  free(p);
  if (start.slot != 0) {
    self = new_node(start.slot);
    if (self != 0) pthread_setspecific(at_end, self);
  } else {
    self = process_node;
  }
  return start.function(start.argument);
}

int feign_pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                         void* (*function)(void*), void* argument) __asm__("pthread_create");
int feign_pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                         void* (*function)(void*), void* argument) {
  static int (*real)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  if (real == 0) *(void**)&real = dlsym(RTLD_NEXT, "pthread_create");
  struct node* node = self;
  struct start* start = node != 0 ? malloc(sizeof *start) : 0;
  if (start == 0) return real(thread, attributes, function, argument);
  start->function = function;
  start->argument = argument;
  start->slot = 0;
  if (!node->shared) {
    makes_another(node);
    char key[FEIGN_WATCH_KEY];
    snprintf(key, sizeof key, "%.90s#%u", node->slot->key,
             __atomic_add_fetch(&node->slot->threads, 1, __ATOMIC_RELAXED));
    start->slot = new_slot(key, node->slot->rank);
    if (start->slot != 0) {
      start->slot->thread = -1; /* not known yet */
      start->slot->pid = getpid();
    }
  }
  const int result = real(thread, attributes, thread_main, start);
  if (result != 0) {
    if (start->slot != 0) set_state(start->slot, FEIGN_NODE_ENDED, now());
    free(start);
  }
  return result;
}

static void end_process(void) {
  if (watch == 0) return;
  const int32_t pid = getpid();
  const uint32_t nodes = watch->nodes;
  for (uint32_t i = 0; i < nodes && i < FEIGN_WATCH_NODES; ++i)
    if (watch->node[i].pid == pid) set_state(&watch->node[i], FEIGN_NODE_ENDED, now());
}

#define EXITS(name)                                 \
  void feign_end_##name(int status) __asm__(#name); \
  void feign_end_##name(int status) {               \
    end_process();                                  \
    while (1) syscall(SYS_exit_group, status);      \
  }
EXITS(_exit)
EXITS(_Exit)

__attribute__((destructor)) static void at_exit(void) { end_process(); }

/* Files that are open already were opened by nobody whom the log knows. */
static void look_around(int root) {
  for (int fd = 0; fd < 256; ++fd) {
    struct stat st;
    if (syscall(SYS_fstat, fd, &st) != 0 || !(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))) continue;
    int skip = root && fd < 3;
    for (int i = 0; i < 3; ++i)
      skip |=
          watch->skip_dev[i] == (uint64_t)st.st_dev && watch->skip_ino[i] == (uint64_t)st.st_ino;
    if (!skip) new_generation(fd);
  }
}

/* The rank that a launcher gave this process; -1: none. */
static int rank_of_process(void) {
  static const char* const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};
  for (unsigned i = 0; i < sizeof names / sizeof *names; ++i) {
    const char* value = getenv(names[i]);
    if (value != 0 && value[0] >= '0' && value[0] <= '9') return atoi(value);
  }
  return -1;
}

__attribute__((constructor)) static void begin(void) {
  const char* path = getenv(FEIGN_WATCH_ENV);
  if (path == 0) return;
  const int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);
  if (fd < 0) return;
  void* memory = mmap(0, sizeof *watch, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  syscall(SYS_close, fd);
  if (memory == MAP_FAILED) return;
  struct feign_watch* w = memory;
  if (w->magic != FEIGN_WATCH_MAGIC || w->size != sizeof *w) {
    munmap(memory, sizeof *w);
    return;
  }
  watch = w;
  pthread_key_create(&at_end, end_node);
  /* After an exec the node is who it was; otherwise a child of one, or the first. */
  const int32_t pid = getpid(), parent = getppid();
  struct feign_watch_node *slot = 0, *above = 0;
  const uint32_t nodes = watch->nodes;
  for (uint32_t i = 0; i < nodes && i < FEIGN_WATCH_NODES; ++i) {
    struct feign_watch_node* other = &watch->node[i];
    if (other->state == FEIGN_NODE_ENDED || other->state == FEIGN_NODE_FREE) continue;
    if (other->pid == pid && other->thread == pid && slot == 0) slot = other;
    if (other->pid == parent && above == 0) above = other;
  }
  const int rank = rank_of_process();
  char key[FEIGN_WATCH_KEY];
  if (slot != 0 && slot->rank < 0 && rank >= 0) {
    /* A launcher's child becomes a rank with its exec. */
    set_state(slot, FEIGN_NODE_ENDED, now());
    slot->pid = 0;
    slot = 0;
  }
  if (slot == 0) {
    if (rank >= 0 && (above == 0 || above->rank < 0))
      snprintf(key, sizeof key, "rank:%d", rank);
    else if (above != 0)
      snprintf(key, sizeof key, "%.90s/%u", above->key,
               __atomic_add_fetch(&above->children, 1, __ATOMIC_RELAXED));
    else
      snprintf(key, sizeof key, "main");
    slot = new_slot(key, rank);
  }
  if (slot == 0) return;
  self = new_node(slot);
  process_node = self;
  look_around(above == 0 || rank >= 0);
}
