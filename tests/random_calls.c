/* SPDX-License-Identifier: MIT */
/*
 * Random calls on files, by several processes and threads that take turns, with the kernel's word
 * on each: what tests/property_test.py holds against what resolve makes of the trace.
 * usage: random-calls SEED COUNT LOGFILE FEATURES COMMAND...   in an empty directory
 *
 * COMMAND (strace and its options) is run with this program again, as the one that makes the calls.
 * The first process stays outside: asked over shared memory, it looks at /proc of whoever makes a
 * call, before and after, and writes a line of JSON for each. So the log opens no file in the
 * trace. No inode number comes twice, since the observer keeps a descriptor of every file that it
 * saw.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* What programs may do beyond the rest; tests/property_test.py has the same list. */
enum {
  LINK_MIDDLE = 1 << 0,  /* a symbolic link in the middle of a path */
  LINK_DOTDOT = 1 << 1,  /* ".." after one */
  COPY_OFFSETS = 1 << 2, /* sendfile, copy_file_range at given offsets */
  FALLOCATE_MODES = 1 << 3,
  RANGE_CLOEXEC = 1 << 4, /* close_range that only marks */
  LINK_END = 1 << 5,      /* a symbolic link at the end of a path, followed */
  SLASH_END = 1 << 6,     /* "name/" */
  ODD_NAMES = 1 << 7,     /* blanks, quotes, brackets, escapes in names */
  GONE_BASE = 1 << 8,     /* paths relative to a directory that was removed */
  SET_FLAGS = 1 << 9,     /* fcntl(F_SETFL, O_APPEND) */
  EXEC = 1 << 10,
  THREADS = 1 << 11,
  FORKS = 1 << 12,
  SHARED_FORKS = 1 << 13, /* processes with CLONE_FILES, CLONE_FS */
  TMPFILE = 1 << 14,
  EXCHANGE = 1 << 15,      /* renameat2 with flags */
  EMPTY_PATH = 1 << 16,    /* AT_EMPTY_PATH */
  PATH_ONLY = 1 << 17,     /* O_PATH */
  HOLES = 1 << 18,         /* SEEK_DATA, SEEK_HOLE */
  VECTORS2 = 1 << 19,      /* preadv2, pwritev2 with -1 and RWF_APPEND */
  RANGE_UNSHARE = 1 << 20, /* unshare, and close_range that makes the table one's own first */
  DOT_END = 1 << 21,       /* "." or ".." at the end of a path */
  DOT_MISSING = 1 << 22,   /* either after a name that is missing or no directory */
  BAD_BASE = 1 << 23,      /* paths relative to what is no directory, or no descriptor */
  BAD_ARGUMENTS = 1 << 24  /* O_CREAT|O_DIRECTORY, dup3 onto itself, link with two bad paths */
};

enum { MOST_ACTORS = 12, MOST_FDS = 256, MOST_TEXT = 1 << 16 };
enum { ASK_TABLE = 1, ASK_PATH, ASK_AFTER, ASK_LAST };
/* What the observer says of a path: the features that it uses, and these. */
enum { OUTSIDE = 1 << 29, NO_PARENT = 1 << 30 };

/* In place of an actor whose turn it is. */
#define NOBODY UINT32_MAX

/* The features that a path may turn out to use. */
enum {
  CHOSEN = LINK_MIDDLE | LINK_DOTDOT | LINK_END | SLASH_END | GONE_BASE | DOT_END | DOT_MISSING |
           BAD_BASE
};

struct actor {
  int alive, pid, process, parent; /* process: its main thread's actor; parent: of its process */
  int tid;                         /* a thread's, once it runs */
};

struct board {
  uint32_t ask, turn; /* futexes */
  uint64_t random;
  long count, made;
  uint32_t features;
  int reap, join; /* who gave up the turn for good: a process id, an actor */
  struct actor actors[MOST_ACTORS];
  char root[PATH_MAX];
  /* the question */
  int pid, tid, which, dir, follow;
  char path[2][PATH_MAX];
  struct {
    char name[32];
    int fd, fd2;
    long at, at2, flags, result;
  } call;
  /* the answer */
  int fds, path_flags;
  struct {
    int fd, type; /* S_IFREG, S_IFDIR */
  } fd[MOST_FDS];
};

static struct board *b;

static void sleep_on(uint32_t *word, uint32_t value) {
  const struct timespec most = {0, 10000000}; /* the end of the other comes without a call */
  syscall(SYS_futex, word, FUTEX_WAIT, value, &most, NULL, 0);
}

static void wake(uint32_t *word) { syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0); }

/* ---- the observer -----------------------------------------------------------------------------
 */

struct found {
  int flags, given;
  unsigned long file; /* its inode, 0 if there is none */
};

static FILE *to;
static unsigned long seen[1 << 14];

/* A descriptor of the file is kept open from when it is first seen, so its number stays its own. */
static void keep(unsigned long inode, const char *name) {
  for (size_t i = inode % (1 << 14);; i = (i + 1) % (1 << 14)) {
    if (seen[i] == inode) return;
    if (seen[i] != 0) continue;
    seen[i] = inode;
    (void)!open(name, O_PATH | O_CLOEXEC);
    return;
  }
}

static unsigned long inode_of(int fd) {
  char name[64];
  struct stat st;
  if (fstat(fd, &st) != 0) return 0;
  snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
  keep(st.st_ino, name);
  return st.st_ino;
}

static int outside(int fd) {
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t n = readlink(link, path, sizeof path - 1);
  const size_t root = strlen(b->root);
  if (n < 0) return OUTSIDE;
  path[n] = 0;
  return strncmp(path, b->root, root) == 0 && (path[root] == 0 || path[root] == '/') ? 0 : OUTSIDE;
}

/* Walks a path as the process would, one name at a time. */
static struct found walk(int tid, int dir, const char *path, int follow) {
  struct found f = {0, 1, 0};
  char rest[2 * PATH_MAX], name[PATH_MAX], link[64];
  struct stat st;
  int links = 0, next;
  if (dir == AT_FDCWD)
    snprintf(link, sizeof link, "/proc/%d/cwd", tid);
  else
    snprintf(link, sizeof link, "/proc/%d/fd/%d", tid, dir);
  int at = open(path[0] == '/' ? "/" : link, O_PATH | O_CLOEXEC);
  if (at < 0) {
    f.flags = NO_PARENT | BAD_BASE;
    return f;
  }
  if (path[0] != '/' && fstat(at, &st) == 0 && path[0] != 0) {
    if (!S_ISDIR(st.st_mode)) f.flags |= BAD_BASE;
    if (S_ISDIR(st.st_mode) && st.st_nlink == 0) f.flags |= GONE_BASE;
  }
  if (path[0] == 0) f.flags |= EMPTY_PATH;
  snprintf(rest, sizeof rest, "%s", path);
  for (char *p = rest;;) {
    while (*p == '/') ++p;
    if (*p == 0) { /* the path is "/", empty, or a link to such a one */
      f.flags |= outside(at);
      f.file = inode_of(at);
      break;
    }
    const size_t length = strcspn(p, "/");
    memcpy(name, p, length);
    name[length] = 0;
    p += length;
    const int slash = *p == '/';
    while (*p == '/') ++p;
    const int last = *p == 0;
    if (last && slash) f.flags |= SLASH_END;
    if (last && name[0] == '.') f.flags |= DOT_END;
    if (strcmp(name, "..") == 0 && links > 0) f.flags |= LINK_DOTDOT;
    if (last && strcmp(name, "..") != 0) f.flags |= outside(at);
    next = openat(at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (next < 0) {
      if (!last || (fstat(at, &st) == 0 && !S_ISDIR(st.st_mode))) f.flags |= NO_PARENT;
      if (name[0] == '.' || p[0] == '.' || strstr(p, "/.") != NULL) f.flags |= DOT_MISSING;
      if (!last) f.flags |= outside(at);
      break;
    }
    if (fstat(next, &st) == 0 && S_ISLNK(st.st_mode) && !(last && !slash && !follow)) {
      char target[PATH_MAX], tail[PATH_MAX];
      const ssize_t n = readlinkat(next, "", target, sizeof target - 1);
      f.flags |= last ? LINK_END : LINK_MIDDLE;
      close(next);
      if (++links > 40 || n < 0) break;
      target[n] = 0;
      snprintf(tail, sizeof tail, "%s", p);
      snprintf(rest, sizeof rest, "%s%s%s", target, slash ? "/" : "", tail);
      p = rest;
      if (target[0] == '/') {
        close(at);
        at = open("/", O_PATH | O_CLOEXEC);
      }
      continue;
    }
    close(at);
    at = next;
    if (last) {
      if (strcmp(name, "..") == 0) f.flags |= outside(at);
      f.file = inode_of(at);
      break;
    }
  }
  close(at);
  return f;
}

static size_t quote(char *out, size_t left, const char *text) {
  size_t n = 0;
  for (; *text && n + 8 < left; ++text) {
    const unsigned char c = (unsigned char)*text;
    if (c == '"' || c == '\\' || c < 0x20)
      n += (size_t)snprintf(out + n, left - n, "\\u%04x", c);
    else
      out[n++] = (char)c;
  }
  out[n] = 0;
  return n;
}

/* The files that a thread has open: its process's, unless it made the table its own: [fd, position,
 * flags, inode, size, links, path]. */
static void table(int tid, char *out, int whole) {
  char name[64], path[PATH_MAX], info[512];
  size_t n = 0;
  snprintf(name, sizeof name, "/proc/%d/fd", tid);
  DIR *d = opendir(name);
  const struct dirent *e;
  b->fds = 0;
  out[0] = 0;
  if (d == NULL) return;
  while ((e = readdir(d)) != NULL && b->fds < MOST_FDS && n < MOST_TEXT / 2) {
    if (e->d_name[0] == '.') continue;
    const int fd = atoi(e->d_name);
    struct stat st;
    snprintf(name, sizeof name, "/proc/%d/fd/%d", tid, fd);
    if (stat(name, &st) != 0 || !(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))) continue;
    keep(st.st_ino, name);
    path[0] = info[0] = 0;
    if (whole) { /* after the call it matters only which there are */
      const ssize_t length = readlink(name, path, sizeof path - 1);
      path[length > 0 ? length : 0] = 0;
      snprintf(name, sizeof name, "/proc/%d/fdinfo/%d", tid, fd);
      const int in = open(name, O_RDONLY | O_CLOEXEC);
      const ssize_t got = read(in, info, sizeof info - 1);
      close(in);
      info[got > 0 ? got : 0] = 0;
    }
    const char *position = strstr(info, "pos:"), *flags = strstr(info, "flags:");
    n += (size_t)snprintf(out + n, MOST_TEXT - n, "%s[%d,%lld,%llu,%lu,%lld,%lu,\"", n ? "," : "",
                          fd, position ? atoll(position + 4) : -1LL,
                          flags ? strtoull(flags + 6, NULL, 8) : 0ULL, (unsigned long)st.st_ino,
                          (long long)st.st_size, (unsigned long)st.st_nlink);
    n += quote(out + n, MOST_TEXT - n, path);
    n += (size_t)snprintf(out + n, MOST_TEXT - n, "\"]");
    b->fd[b->fds].fd = fd;
    b->fd[b->fds++].type = st.st_mode & S_IFMT;
  }
  closedir(d);
}

static void observe(int child, int *status) {
  static char before[MOST_TEXT], after[MOST_TEXT], cwd[2 * PATH_MAX];
  static struct found paths[2], plain[2];
  long number = 0;
  for (;;) {
    if (__atomic_load_n(&b->ask, __ATOMIC_ACQUIRE) == 0) {
      sleep_on(&b->ask, 0);
      if (__atomic_load_n(&b->ask, __ATOMIC_ACQUIRE) == 0 && waitpid(child, status, WNOHANG) != 0)
        return;
      continue;
    }
    const uint32_t ask = b->ask;
    const int w = b->which;
    if (ask == ASK_TABLE) {
      char name[64], path[PATH_MAX];
      table(b->tid, before, 1);
      memset(paths, 0, sizeof paths);
      snprintf(name, sizeof name, "/proc/%d/cwd", b->tid);
      const ssize_t n = readlink(name, path, sizeof path - 1);
      path[n > 0 ? n : 0] = 0;
      quote(cwd, sizeof cwd, path);
    } else if (ask == ASK_PATH) {
      paths[w] = walk(b->tid, b->dir, b->path[w], b->follow);
      plain[w] = b->follow ? walk(b->tid, b->dir, b->path[w], 0) : paths[w];
      b->path_flags = paths[w].flags;
    } else {
      after[0] = 0;
      if (ask == ASK_AFTER) table(b->tid, after, 0);
      fprintf(to,
              "{\"n\":%ld,\"pid\":%d,\"tid\":%d,\"call\":\"%s\",\"fd\":%d,\"fd2\":%d,\"at\":%ld,"
              "\"at2\":%ld,"
              "\"flags\":%ld,\"result\":%ld,\"cwd\":\"%s\",\"paths\":[",
              number++, b->pid, b->tid, b->call.name, b->call.fd, b->call.fd2, b->call.at,
              b->call.at2, b->call.flags, b->call.result, cwd);
      for (int i = 0; i < 2 && paths[i].given; ++i) {
        char text[2 * PATH_MAX];
        quote(text, sizeof text, b->path[i]);
        /* What is there now: for calls that make something. The base is the first path's. */
        const struct found now =
            ask == ASK_AFTER && i == 0 ? walk(b->tid, b->dir, b->path[i], 0) : plain[i];
        fprintf(to, "%s{\"path\":\"%s\",\"uses\":%d,\"file\":%lu,\"name\":%lu,\"now\":%lu}",
                i ? "," : "", text, paths[i].flags, paths[i].file, plain[i].file, now.file);
      }
      fprintf(to, "],\"before\":[%s],\"after\":[%s]}\n", before, after);
    }
    __atomic_store_n(&b->ask, 0, __ATOMIC_RELEASE);
    wake(&b->ask);
  }
}

/* ---- the program ------------------------------------------------------------------------------
 */

static int me;
static pthread_t handles[MOST_ACTORS];
static char data[1 << 14];
static char **self;

static void ask(uint32_t what) {
  __atomic_store_n(&b->ask, what, __ATOMIC_RELEASE);
  wake(&b->ask);
  while (__atomic_load_n(&b->ask, __ATOMIC_ACQUIRE) != 0) sleep_on(&b->ask, what);
}

static uint32_t below(uint32_t n) {
  b->random ^= b->random << 13;
  b->random ^= b->random >> 7;
  b->random ^= b->random << 17;
  return (uint32_t)((b->random >> 20) % n);
}

static int one_in(uint32_t n) { return below(n) == 0; }
static int may(uint32_t feature) { return (b->features & feature) != 0; }

/* Names the call that is about to be made. */
static void set(const char *name, int fd, int fd2, long at, long at2, long flags) {
  snprintf(b->call.name, sizeof b->call.name, "%s", name);
  b->call.fd = fd;
  b->call.fd2 = fd2;
  b->call.at = at;
  b->call.at2 = at2;
  b->call.flags = flags;
  b->call.result = 0;
}

static void did(long result) {
  b->call.result = result < 0 ? -errno : result;
  ask(ASK_AFTER);
}

static int some_fd(int type) {
  if (one_in(20)) return 3 + (int)below(20);
  for (int i = 0; i < 12 && b->fds > 0; ++i) {
    const uint32_t at = below((uint32_t)b->fds);
    if (type == 0 || b->fd[at].type == type || one_in(30)) return b->fd[at].fd;
  }
  return one_in(4) ? 3 + (int)below(20) : -1;
}

static const char *some_name(char type) {
  static const char *const odd[] = {"f x",  "f\"q", "f<3>", "f->g",      "f (deleted)",
                                    "d\ny", "d,(",  "l\\",  "d \xc3\xa9"};
  static char name[8];
  if (may(ODD_NAMES) && one_in(12)) return odd[below(9)];
  if (type == 0) type = "fffddl"[below(6)];
  snprintf(name, sizeof name, "%c%u", type, below(type == 'f' ? 5 : 3));
  return name;
}

static void some_path(char *out, char type) {
  size_t n = 0;
  out[0] = 0;
  if (one_in(5)) n += (size_t)sprintf(out + n, "%s/", b->root);
  for (uint32_t left = below(5) / 2; left > 0; --left) {
    const uint32_t what = below(16);
    n += (size_t)sprintf(out + n, "%s%s",
                         what < 9    ? some_name('d')
                         : what < 11 ? "."
                         : what < 13 ? ".."
                                     : some_name('l'),
                         one_in(12) ? "//" : "/");
  }
  n += (size_t)sprintf(out + n, "%s", one_in(24) ? (one_in(2) ? "." : "..") : some_name(type));
  if (one_in(16)) sprintf(out + n, "/");
}

/* A path for the call, with its base: one that uses only what it may, and mostly one whose
 * directory is there. */
static const char *path(int which, int *dir, char type, int follow) {
  const int given = dir != NULL;
  for (int tries = 0;; ++tries) {
    int base = AT_FDCWD;
    if (given && one_in(3)) base = some_fd(S_IFDIR);
    if (base == -1) base = AT_FDCWD;
    some_path(b->path[which], type);
    if (tries == 20) { /* the root's own */
      base = AT_FDCWD;
      snprintf(b->path[which], sizeof b->path[which], "%.*s/f0", PATH_MAX - 8, b->root);
      b->path_flags = 0;
    }
    b->which = which;
    b->dir = base;
    b->follow = follow;
    ask(ASK_PATH);
    if (given) *dir = base;
    const uint32_t uses = (uint32_t)b->path_flags;
    if (tries == 20) return b->path[which];
    if (uses & OUTSIDE) continue;
    if (uses & ~b->features & CHOSEN) continue;
    if ((uses & NO_PARENT) && tries < 6 && !one_in(6)) continue;
    return b->path[which];
  }
}

static size_t some_length(void) { return one_in(8) ? 0 : 1 + below(one_in(3) ? 9000 : 300); }
static off_t some_offset(void) { return one_in(5) ? 0 : (off_t)below(one_in(3) ? 30000 : 500); }

static int some_flags(void) {
  static const int access[] = {O_RDONLY, O_WRONLY, O_RDWR, O_RDWR};
  int flags = access[below(4)];
  if (!one_in(3)) flags |= O_CREAT;
  if (one_in(5)) flags |= O_TRUNC;
  if (one_in(4)) flags |= O_APPEND;
  if (one_in(6)) flags |= O_EXCL & (flags & O_CREAT ? ~0 : 0);
  if (one_in(4)) flags |= O_CLOEXEC;
  if (one_in(12)) flags |= O_NOFOLLOW;
  if (one_in(16) && (may(BAD_ARGUMENTS) || !(flags & O_CREAT))) flags |= O_DIRECTORY;
  if (one_in(4)) flags = O_RDONLY | O_DIRECTORY | (one_in(3) ? O_CLOEXEC : 0);
  if (may(PATH_ONLY) && one_in(16)) flags = O_PATH | (one_in(2) ? O_CLOEXEC : 0);
  return flags;
}

static int nofollow(int flags) {
  return (flags & O_NOFOLLOW) || (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL);
}

static char open_type(int flags) {
  return flags & O_DIRECTORY ? 'd' : one_in(8) ? 0 : one_in(6) ? 'l' : 'f';
}

static void opens(void) {
  int dir, flags = some_flags();
  const uint32_t how = below(8);
  if (may(TMPFILE) && one_in(10)) {
    const char *const p = path(0, &dir, 'd', 1);
    flags = O_TMPFILE | O_RDWR | (one_in(3) ? O_APPEND : 0);
    set("openat", -1, -1, -1, -1, flags);
    did(syscall(SYS_openat, dir, p, flags, 0600));
#ifdef SYS_open
  } else if (how == 0) {
    const char *const p = path(0, NULL, open_type(O_CREAT), 1);
    set("creat", -1, -1, -1, -1, O_CREAT | O_WRONLY | O_TRUNC);
    did(syscall(SYS_creat, p, 0644));
  } else if (how < 4) {
    const char *const p = path(0, NULL, open_type(flags), !nofollow(flags));
    set("open", -1, -1, -1, -1, flags);
    did(syscall(SYS_open, p, flags, 0644));
#endif
  } else {
    const char *const p = path(0, &dir, open_type(flags), !nofollow(flags));
    set("openat", -1, -1, -1, -1, flags);
    did(syscall(SYS_openat, dir, p, flags, 0644));
  }
}

static int vectors(struct iovec *v) {
  const int n = (int)below(4);
  for (int i = 0; i < n; ++i) v[i] = (struct iovec){data, some_length()};
  return n;
}

static void moves(void) {
  struct iovec v[4];
  const int fd = some_fd(S_IFREG);
  const off_t at = some_offset();
  switch (below(may(VECTORS2) ? 13 : 11)) {
    case 0:
    case 1:
      set("read", fd, -1, -1, -1, 0);
      did(syscall(SYS_read, fd, data, some_length()));
      break;
    case 2:
    case 3:
    case 4:
      set("write", fd, -1, -1, -1, 0);
      did(syscall(SYS_write, fd, data, some_length()));
      break;
    case 5:
      set("pread64", fd, -1, at, -1, 0);
      did(syscall(SYS_pread64, fd, data, some_length(), at));
      break;
    case 6:
      set("pwrite64", fd, -1, at, -1, 0);
      did(syscall(SYS_pwrite64, fd, data, some_length(), at));
      break;
    case 7:
      set("readv", fd, -1, -1, -1, 0);
      did(syscall(SYS_readv, fd, v, vectors(v)));
      break;
    case 8:
      set("writev", fd, -1, -1, -1, 0);
      did(syscall(SYS_writev, fd, v, vectors(v)));
      break;
    case 9:
      set("preadv", fd, -1, at, -1, 0);
      did(syscall(SYS_preadv, fd, v, vectors(v), at, 0));
      break;
    case 10:
      set("pwritev", fd, -1, at, -1, 0);
      did(syscall(SYS_pwritev, fd, v, vectors(v), at, 0));
      break;
    case 11: {
      const long where = one_in(2) ? -1 : at;
      set("preadv2", fd, -1, where, -1, 0);
      did(syscall(SYS_preadv2, fd, v, vectors(v), where, where < 0 ? -1L : 0L, 0));
      break;
    }
    default: {
      const long where = one_in(2) ? -1 : at;
      const int flags = one_in(2) ? RWF_APPEND : 0;
      set("pwritev2", fd, -1, where, -1, flags);
      did(syscall(SYS_pwritev2, fd, v, vectors(v), where, where < 0 ? -1L : 0L, flags));
    }
  }
}

static void copies(void) {
  const int from = some_fd(S_IFREG), where = some_fd(S_IFREG);
  loff_t in = some_offset(), out = some_offset();
  loff_t *const pin = may(COPY_OFFSETS) && one_in(2) ? &in : NULL;
  if (one_in(2)) {
    set("sendfile", from, where, pin ? in : -1, -1, 0);
    did(syscall(SYS_sendfile, where, from, pin, some_length()));
  } else {
    loff_t *const pout = may(COPY_OFFSETS) && one_in(2) ? &out : NULL;
    set("copy_file_range", from, where, pin ? in : -1, pout ? out : -1, 0);
    did(syscall(SYS_copy_file_range, from, pin, where, pout, some_length(), 0));
  }
}

static void seeks(void) {
  const int fd = some_fd(one_in(12) ? 0 : S_IFREG);
  const int whence = (int)below(may(HOLES) ? 5 : 3);
  const off_t at = whence == SEEK_SET || whence > 2 ? some_offset() : (off_t)below(600) - 200;
  set("lseek", fd, -1, -1, -1, whence);
  did(syscall(SYS_lseek, fd, at, whence));
}

static void descriptors(void) {
  static const uint32_t ranges[] = {0, 0, 4, 2, 6};
  const int fd = some_fd(0);
  int target = one_in(3) ? some_fd(0) : one_in(6) ? (int)below(3) : 3 + (int)below(20);
  if (target < 0) target = 7;
  switch (below(10)) {
    case 0:
      set("dup", fd, -1, -1, -1, 0);
      did(syscall(SYS_dup, fd));
      break;
#ifdef SYS_dup2
    case 1:
      set("dup2", fd, target, -1, -1, 0);
      did(syscall(SYS_dup2, fd, target));
      break;
#endif
    case 2: {
      const int flags = one_in(2) ? O_CLOEXEC : 0;
      if (target == fd && !may(BAD_ARGUMENTS)) target = fd + 1;
      set("dup3", fd, target, -1, -1, flags);
      did(syscall(SYS_dup3, fd, target, flags));
      break;
    }
    case 3: {
      const int what = one_in(2) ? F_DUPFD : F_DUPFD_CLOEXEC;
      set("fcntl", fd, -1, -1, -1, what);
      did(syscall(SYS_fcntl, fd, what, target));
      break;
    }
    case 4:
      set("fcntl", fd, -1, -1, -1, F_SETFD);
      did(syscall(SYS_fcntl, fd, F_SETFD, one_in(2) ? FD_CLOEXEC : 0));
      break;
    case 5:
      if (may(SET_FLAGS)) {
        const int flags = one_in(2) ? O_APPEND : 0;
        set("fcntl", fd, -1, -1, -1, F_SETFL);
        did(syscall(SYS_fcntl, fd, F_SETFL, flags));
        break;
      }
      __attribute__((fallthrough));
    case 6:
      if (may(RANGE_UNSHARE) && one_in(4)) {
        const int flags = (one_in(3) ? 0 : CLONE_FILES) | (one_in(3) ? 0 : CLONE_FS);
        set("unshare", -1, -1, -1, -1, flags);
        did(syscall(SYS_unshare, flags));
        break;
      }
      if (one_in(2)) {
        uint32_t flags = ranges[below(5)];
        if (!may(RANGE_CLOEXEC)) flags &= ~4u;
        if (!may(RANGE_UNSHARE)) flags &= ~2u;
        const uint32_t first = 3 + below(18), last = one_in(6) ? ~0u : first + below(4);
        set("close_range", -1, -1, first, last, flags);
        did(syscall(SYS_close_range, first, last, flags));
        break;
      }
      __attribute__((fallthrough));
    default:
      set("close", fd, -1, -1, -1, 0);
      did(syscall(SYS_close, fd));
  }
}

static void sizes(void) {
  static const int modes[] = {0, 0, 1, 3, 16, 17, 8, 32};
  const off_t length = (off_t)below(one_in(3) ? 30000 : 700);
  const int fd = some_fd(S_IFREG);
  switch (below(4)) {
    case 0: {
      const char *const p = path(0, NULL, 'f', 1);
      set("truncate", -1, -1, -1, -1, 0);
      did(syscall(SYS_truncate, p, length));
      break;
    }
    case 1:
      set("ftruncate", fd, -1, -1, -1, 0);
      did(syscall(SYS_ftruncate, fd, length));
      break;
    default: {
      const int mode = may(FALLOCATE_MODES) ? modes[below(8)] : 0;
      const int whole = mode == 8 || mode == 32; /* these want blocks */
      set("fallocate", fd, -1, -1, -1, mode);
      did(syscall(SYS_fallocate, fd, mode, whole ? 4096 * (off_t)below(3) : some_offset(),
                  whole ? 4096 : length));
    }
  }
}

static void names(void) {
  int dir, dir2, flags = 0;
  const char *p, *q;
  switch (below(12)) {
    case 0:
    case 1:
    case 2: { /* the base of the second path is looked at by the first's rules, then not logged */
      q = path(1, &dir2, 0, 0);
      p = path(0, &dir, one_in(3) ? 'd' : 0, 0);
#ifdef SYS_rename
      if (dir == AT_FDCWD && dir2 == AT_FDCWD && one_in(2)) {
        set("rename", -1, -1, -1, -1, 0);
        did(syscall(SYS_rename, p, q));
        break;
      }
#endif
      if (may(EXCHANGE)) flags = one_in(2) ? 0 : one_in(2) ? RENAME_EXCHANGE : RENAME_NOREPLACE;
      set("renameat2", -1, -1, -1, -1, flags);
      did(syscall(SYS_renameat2, dir, p, dir2, q, flags));
      break;
    }
    case 3: {
      const int empty = may(EMPTY_PATH) && one_in(3);
      do q = path(1, &dir2, 0, 0);
      while (!may(BAD_ARGUMENTS) && (b->path_flags & NO_PARENT));
      flags = one_in(3) ? AT_SYMLINK_FOLLOW : 0;
      p = path(0, &dir, 'f', flags != 0);
      if (empty) {
        flags = AT_EMPTY_PATH;
        dir = some_fd(S_IFREG);
        b->path[0][0] = 0;
        b->dir = dir;
        b->which = 0;
        ask(ASK_PATH);
      }
      set("linkat", empty ? dir : -1, -1, -1, -1, flags);
      did(syscall(SYS_linkat, dir, p, dir2, q, flags));
      break;
    }
    case 4:
    case 5: {
      char target[PATH_MAX];
      if (one_in(2))
        snprintf(target, sizeof target, "%s", some_name(one_in(3) ? 'f' : 'd'));
      else
        some_path(target, 0);
      p = path(0, &dir, 'l', 0);
      set("symlinkat", -1, -1, -1, -1, 0);
      did(syscall(SYS_symlinkat, target, dir, p));
      break;
    }
    case 6:
    case 7:
      flags = one_in(3) ? AT_REMOVEDIR : 0;
      p = path(0, &dir, flags ? 'd' : 0, 0);
#ifdef SYS_unlink
      if (dir == AT_FDCWD && one_in(2)) {
        set(flags ? "rmdir" : "unlink", -1, -1, -1, -1, 0);
        did(syscall(flags ? SYS_rmdir : SYS_unlink, p));
        break;
      }
#endif
      set("unlinkat", -1, -1, -1, -1, flags);
      did(syscall(SYS_unlinkat, dir, p, flags));
      break;
    case 8:
      if (one_in(2)) {
        const int fd = some_fd(S_IFDIR);
        set("fchdir", fd, -1, -1, -1, 0);
        did(syscall(SYS_fchdir, fd));
      } else {
        p = path(0, NULL, 'd', 1);
        set("chdir", -1, -1, -1, -1, 0);
        did(syscall(SYS_chdir, p));
      }
      break;
    default:
      p = path(0, &dir, 'd', 0);
      set("mkdirat", -1, -1, -1, -1, 0);
      did(syscall(SYS_mkdirat, dir, p, 0755));
  }
}

static void asks(void) {
  struct stat st;
  const char *p;
  int dir, flags;
  switch (below(6)) {
    case 0: {
      const int fd = some_fd(0);
      set("fstat", fd, -1, -1, -1, 0);
      did(syscall(SYS_fstat, fd, &st));
      break;
    }
#ifdef SYS_stat
    case 1:
      p = path(0, NULL, 0, 1);
      set("stat", -1, -1, -1, -1, 0);
      did(syscall(SYS_stat, p, &st));
      break;
    case 2:
      p = path(0, NULL, 0, 0);
      set("lstat", -1, -1, -1, -1, 0);
      did(syscall(SYS_lstat, p, &st));
      break;
#endif
    case 3:
      p = path(0, &dir, 0, 1);
      set("faccessat", -1, -1, -1, -1, 0);
      did(syscall(SYS_faccessat, dir, p, F_OK));
      break;
    case 4:
      p = path(0, &dir, 'l', 0);
      set("readlinkat", -1, -1, -1, -1, 0);
      did(syscall(SYS_readlinkat, dir, p, data, 4096));
      memset(data, 'x', 4096);
      break;
    default:
      if (may(EMPTY_PATH) && one_in(3)) {
        const int fd = some_fd(0);
        set("newfstatat", fd, -1, -1, -1, AT_EMPTY_PATH);
        did(syscall(SYS_newfstatat, fd, "", &st, AT_EMPTY_PATH));
        break;
      }
      flags = one_in(2) ? AT_SYMLINK_NOFOLLOW : 0;
      p = path(0, &dir, 0, !flags);
      set("newfstatat", -1, -1, -1, -1, flags);
      did(syscall(SYS_newfstatat, dir, p, &st, flags));
  }
}

/* ---- who calls --------------------------------------------------------------------------------
 */

static void act(void);

/* Each thread has its own number: `me` is its process's main thread's, or this. */
static __thread int mine = -1;
static int actor(void) { return mine >= 0 ? mine : me; }

static void *begin_thread(void *number) {
  mine = (int)(long)number;
  __atomic_store_n(&b->actors[mine].tid, (int)gettid(), __ATOMIC_RELEASE);
  act();
  return NULL;
}

static int free_actor(void) {
  for (int i = 0; i < MOST_ACTORS; ++i)
    if (!b->actors[i].alive && (b->actors[i].pid == 0)) return i;
  return -1;
}

static int has_children(int process) {
  for (int i = 0; i < MOST_ACTORS; ++i)
    if (b->actors[i].alive && b->actors[i].process == i && b->actors[i].parent == process) return 1;
  return 0;
}

static void give(int next) {
  __atomic_store_n(&b->turn, (uint32_t)next, __ATOMIC_RELEASE);
  wake(&b->turn);
}

static int may_end(int a) {
  return b->actors[a].alive && (b->actors[a].process != a || !has_children(a));
}

/* The end of this thread, or of its process if it is the main one. */
static void leave(void) {
  const int a = actor();
  if (b->actors[a].process == a) {
    for (int i = 0; i < MOST_ACTORS; ++i)
      if (b->actors[i].process == a) b->actors[i].alive = 0;
    set("exit_group", -1, -1, -1, -1, 0);
    ask(ASK_LAST);
    if (a != 0) {
      b->reap = (int)getpid();
      give(b->actors[a].parent);
    }
    syscall(SYS_exit_group, 0);
  }
  b->actors[a].alive = 0;
  set("exit", -1, -1, -1, -1, 0);
  ask(ASK_LAST);
  b->join = a;
  give(b->actors[a].process);
}

static int begins(void) {
  const int a = actor(), child = free_actor();
  if (child < 0) return 0;
  const uint32_t what = below(8);
  if (what < 3 && may(THREADS)) {
    b->actors[child] = (struct actor){1, b->pid, b->actors[a].process, 0, 0};
    set("clone", -1, -1, -1, -1, CLONE_THREAD | CLONE_FILES | CLONE_FS);
    if (pthread_create(&handles[child], NULL, begin_thread, (void *)(long)child) != 0) exit(3);
    while (__atomic_load_n(&b->actors[child].tid, __ATOMIC_ACQUIRE) == 0) sched_yield();
    did(b->actors[child].tid);
    return 1;
  }
  if (what < 7 && (may(FORKS) || may(SHARED_FORKS))) {
    long flags = may(SHARED_FORKS) ? (one_in(3) ? CLONE_FILES : 0) | (one_in(4) ? CLONE_FS : 0) : 0;
    b->actors[child] = (struct actor){1, 0, child, b->actors[a].process, 0};
    set("clone", -1, -1, -1, -1, flags);
    const long pid = flags == 0 ? fork() : syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
    if (pid == 0) {
      mine = -1;
      me = child;
      act();
      syscall(SYS_exit_group, 4);
    }
    b->actors[child].pid = (int)pid;
    did(pid);
    return 1;
  }
  if (may(EXEC)) {
    const int process = b->actors[a].process;
    char number[16];
    for (int i = 0; i < MOST_ACTORS; ++i)
      if (b->actors[i].process == process && i != process) b->actors[i].alive = 0;
    b->actors[process].alive = 1;
    snprintf(number, sizeof number, "%d", process);
    set("execve", -1, -1, -1, -1, 0);
    ask(ASK_LAST);
    /* Nobody's until the new program takes it: the old one's threads live on for a while. */
    __atomic_store_n(&b->turn, NOBODY, __ATOMIC_RELEASE);
    char *const args[] = {self[0], self[1], number, NULL};
    execve("/proc/self/exe", args, (char *const[]){NULL});
    exit(5);
  }
  return 0;
}

static void act(void) {
  const int a = actor();
  for (;;) {
    uint32_t turn = 0;
    while ((turn = __atomic_load_n(&b->turn, __ATOMIC_ACQUIRE)) != (uint32_t)a)
      sleep_on(&b->turn, turn);
    if (b->reap != 0) waitpid(b->reap, NULL, 0);
    if (b->join >= 0) pthread_join(handles[b->join], NULL);
    b->reap = 0;
    b->join = -1;
    b->pid = (int)getpid();
    b->tid = (int)gettid();
    ask(ASK_TABLE);
    if (b->made >= b->count) {
      int last = MOST_ACTORS - 1;
      while (!may_end(last)) --last;
      if (last == a) {
        leave();
        return;
      }
      give(last);
      continue;
    }
    ++b->made;
    const uint32_t what = below(100);
    if (what < 3 && a != 0 && may_end(a)) {
      leave();
      return;
    }
    if (what >= 3 && what < 7 && begins())
      ;
    else if (what < 22 || b->fds < 3)
      opens();
    else if (what < 45)
      moves();
    else if (what < 49)
      copies();
    else if (what < 54)
      seeks();
    else if (what < 66 || (b->fds > 8 && what < 72))
      descriptors();
    else if (what < 72)
      sizes();
    else if (what < 90)
      names();
    else
      asks();
    int next = a;
    if (one_in(2)) {
      do next = (int)below(MOST_ACTORS);
      while (!b->actors[next].alive);
    }
    give(next);
  }
}

int main(int argc, char **argv) {
  self = argv;
  memset(data, 'x', sizeof data);
  if (argc == 3) { /* the program itself: shared memory, actor */
    me = atoi(argv[2]);
    b = shmat(atoi(argv[1]), NULL, 0);
    if (b == (void *)-1) return 2;
    uint32_t nobody = NOBODY;
    __atomic_compare_exchange_n(&b->turn, &nobody, (uint32_t)me, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    act();
    return 0;
  }
  if (argc < 6) return 2;
  const int shared = shmget(IPC_PRIVATE, sizeof *b, IPC_CREAT | 0600);
  if (shared < 0) return 2;
  b = shmat(shared, NULL, 0);
  shmctl(shared, IPC_RMID, NULL);
  to = fopen(argv[3], "we");
  if (b == (void *)-1 || to == NULL || getcwd(b->root, sizeof b->root) == NULL) return 2;
  b->random = 88172645463325252u ^ (strtoull(argv[1], NULL, 0) * 0x9E3779B97F4A7C15u);
  b->count = atol(argv[2]);
  b->features = (uint32_t)strtoul(argv[4], NULL, 0);
  b->join = -1;
  b->actors[0] = (struct actor){1, 1, 0, -1, 0};
  struct rlimit most;
  getrlimit(RLIMIT_NOFILE, &most);
  for (int i = 0; i < 10; ++i) (void)below(2);
  const int child = (int)fork();
  if (child == 0) {
    char memory[16], **args = calloc((size_t)argc + 4, sizeof *args);
    int n = 0;
    for (int i = 5; i < argc; ++i) args[n++] = argv[i];
    snprintf(memory, sizeof memory, "%d", shared);
    char here[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", here, sizeof here - 1);
    if (length < 0) _exit(2);
    here[length] = 0;
    args[n++] = here;
    args[n++] = memory;
    args[n++] = "0";
    execvp(args[0], args);
    _exit(2);
  }
  most.rlim_cur = most.rlim_max;
  setrlimit(RLIMIT_NOFILE, &most);
  int status = 0;
  observe(child, &status);
  fclose(to);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
