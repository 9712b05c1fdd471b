/* SPDX-License-Identifier: MIT */
/* The posix layer: libc's system calls, which jump here in place of entering the kernel.
 *
 * `feign record` makes, once, a copy of libc's text in which each system call instruction is a jump
 * (core/record/hook_image.cc). A process maps that copy over libc's text as it starts: one mmap,
 * pages that all processes share. Each jump leads to a stub that knows the way back and jumps on to
 * feign_hook_entry: in the place of an instruction, so that registers, vectors, the red zone and
 * errno are as a system call leaves them. */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/aio_abi.h>
#include <linux/fs.h>
#include <linux/netlink.h>
#include <linux/openat2.h>
#include <linux/rtnetlink.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <linux/xattr.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include <utime.h>

#include "acl.h"
#include "core.h"
#include "hook_format.h"
#include "identity.h"

struct registers {
  long a[6]; /* rdi rsi rdx r10 r8 r9 */
  long number;
  uintptr_t back;
};

/* ---- reading what arguments point to
 * -------------------------------------------------------------------- */

typedef const uint64_t __attribute__((may_alias)) feign_word64;

/* A call that failed may have been given any address; but with these the kernel had read what it
 * was given. Asking first takes a system call, and programs fail often: each path is made sure of
 * by a readlink for each directory in it. */
static int unsure(long result) {
  if (result >= 0 || result < -4095) return 0;
  switch (-result) {
    case ENOENT:
    case EEXIST:
    case EAGAIN:
    case EACCES:
    case ENOTDIR:
    case ENODATA:
    case ECHILD:
    case ELOOP:
    case ENAMETOOLONG:
    case ENOTEMPTY:
    case EISDIR:
    case EXDEV:
    case EOPNOTSUPP:
      return 0;
    default:
      return 1;
  }
}

/* EINVAL is what is said of a file that is no link; of a size it is said before the path is read.
 */
static inline long of_readlink(long result, long size) {
  return result == -EINVAL && (int)size > 0 ? -ENOENT : result;
}

static int denied; /* a process may not even look into itself here */

static size_t copy_safely(void* to, const void* from, size_t size) {
  size_t done = 0;
  if (feign_capture.sealed) {
    denied = 1;
    return 0;
  }
  /* The child of a fork may have recorded nothing yet. */
  const long pid =
      *feign_capture.token != 0 ? feign_capture.pid : system_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
  while (done < size) { /* a page at a time: what is before a hole is there */
    size_t piece = 4096 - ((uintptr_t)from + done) % 4096;
    if (piece > size - done) piece = size - done;
    struct iovec ours = {(char*)to + done, piece}, theirs = {(char*)(uintptr_t)from + done, piece};
    const long n = system_call(SYS_process_vm_readv, pid, (long)&ours, 1, (long)&theirs, 1, 0);
    if (n <= 0) {
      if (n == -EPERM || n == -ENOSYS) denied = 1;
      break;
    }
    done += (size_t)n;
  }
  return done;
}

/* A struct behind a pointer: there, or copied if it may not be; 0 if it is not. */
static const void* behind(long address, long result, void* copy, size_t size) {
  if (address == 0) return 0;
  if (!unsure(result)) return (const void*)address;
  return copy_safely(copy, (const void*)address, size) == size ? copy : 0;
}
#define STRUCT(name, type, address) \
  type name##_copy;                 \
  const type* const name = behind(address, result, &name##_copy, sizeof name##_copy)

/* A record that has no room for it is told by its end, and made again where there is. */
static inline int has_room(struct feign_record* r, size_t length) {
  if (r->at < r->end && (size_t)(r->end - r->at) >= length) return 1;
  r->at = r->end;
  return 0;
}

/* Copied to where it will be: stacks may be small. */
static __attribute__((noinline)) void put_unsure_text(struct feign_record* r, unsigned field,
                                                      long address) {
  if (!has_room(r, 8)) return;
  uint8_t* const to = r->at + 3;
  const size_t most = r->end - r->at < 4096 ? (size_t)(r->end - r->at) : 4096;
  size_t got = 0, length = 0;
  while (length == got && got < most) {
    const size_t piece = most - got < 256 ? most - got : 256;
    const size_t more = copy_safely(to + got, (const char*)address + got, piece);
    got += more;
    while (length < got && to[length] != '\0') ++length;
    if (more < piece) break;
  }
  if (length == most && most < 4096) {
    r->at = r->end;
    return;
  }
  if (got == 0) return;
  r->at[0] = (uint8_t)(field << 4);
  r->at[1] = (uint8_t)length;
  r->at[2] = (uint8_t)(length >> 8);
  r->at = to + length;
}

/* For a result: the call is yet to be made, and may be refused for what it is given. */
enum { NOT_MADE = -4095 };

static inline void put_string(struct feign_record* r, unsigned field, long address, long result) {
  if (address == 0) return;
  /* A path reaches into one page more at most. */
  const int there =
      result == NOT_MADE && is_there((uintptr_t)address) && is_there((uintptr_t)address + 4095);
  if (!there && unsure(result)) {
    put_unsure_text(r, field, address);
    if (result != NOT_MADE || !denied) return;
  }
  /* Words as wide as are aligned: none of them reaches into a page where the text is not. */
  const char* text = (const char*)address;
  if (!has_room(r, 8)) return;
  const size_t most = r->end - r->at < 4096 ? (size_t)(r->end - r->at) : 4096;
  uint8_t* const to = r->at + 3;
  size_t length = 0;
  for (; ((uintptr_t)(text + length) & 7) != 0; ++length) {
    to[length] = (uint8_t)text[length];
    if (text[length] == '\0') goto ended;
  }
  for (; length < most; length += 8) {
    const uint64_t word = *(const feign_word64*)(text + length);
    *(feign_loose64*)(to + length) = word;
    const uint64_t zeros = (word - 0x0101010101010101u) & ~word & 0x8080808080808080u;
    if (zeros != 0) {
      length += (size_t)__builtin_ctzll(zeros) / 8;
      break;
    }
  }
  if (length >= most) {
    if (most < 4096) {
      r->at = r->end;
      return;
    }
    length = 4096;
  }
ended:
  r->at[0] = (uint8_t)(field << 4);
  r->at[1] = (uint8_t)length;
  r->at[2] = (uint8_t)(length >> 8);
  r->at = to + length;
}

static inline void put_output(struct feign_record* r, unsigned field, long address, long length) {
  if (address != 0 && length > 0 && length <= 4096 && has_room(r, (size_t)length))
    feign_put_text(r, field, (const char*)address, (size_t)length);
}

/* ---- arguments of some forms: the generated functions call these
 * ------------------------------------------ */

static void put_iov(struct feign_record* r, long address, long count, long result) {
  if (count < 0 || count > 1024 || address == 0 || unsure(result)) return;
  if (!has_room(r, 9 * (size_t)count)) return;
  const struct iovec* v = (const struct iovec*)address;
  uint64_t sum = 0;
  for (long i = 0; i < count; ++i) {
    feign_put_value(r, v[i].iov_len);
    sum += v[i].iov_len;
  }
  feign_put_length(r, sum);
}

static inline void put_stat(struct feign_record* r, long address, long result) {
  if (result != 0 || address == 0) return;
  const struct stat* s = (const struct stat*)address;
  feign_put_mode(r, s->st_mode);
  feign_put_length(r, (uint64_t)s->st_size);
  if (s->st_nlink > 1 && S_ISREG(s->st_mode))
    feign_put_value(r, feign_identity(s->st_dev, s->st_ino));
}

static inline void put_statx(struct feign_record* r, long address, long result) {
  if (result != 0 || address == 0) return;
  const struct statx* s = (const struct statx*)address;
  feign_put_mode(r, s->stx_mode);
  feign_put_length(r, s->stx_size);
  if (s->stx_nlink > 1 && S_ISREG(s->stx_mode))
    feign_put_value(r,
                    feign_identity(feign_device(s->stx_dev_major, s->stx_dev_minor), s->stx_ino));
}

#ifndef XATTR_ARGS_SIZE_VER0 /* before Linux 6.13 */
struct xattr_args {
  uint64_t value;
  uint32_t size, flags;
};
#endif

/* An access control list, if an attribute is one: the permission bits that it stands for. */
static void put_acl(struct feign_record* r, long address, long size, long result) {
  if (size < FEIGN_ACL_LEAST || size > 4096) return;
  STRUCT(version, uint32_t, address);
  if (version == 0 || *version != FEIGN_ACL_VERSION) return;
  struct feign_acl_mode mode = {0, 0, 0, 0};
  const long entry = (long)sizeof(struct feign_acl_entry);
  for (long at = 4; at + entry <= size; at += entry) {
    STRUCT(e, struct feign_acl_entry, address + at);
    if (e == 0) return;
    feign_acl_add(&mode, *e);
  }
  feign_put_mode(r, feign_acl_st_mode(&mode));
}

static inline void put_fds(struct feign_record* r, long address, long result) {
  if (result != 0 || address == 0) return;
  feign_put_value(r, (uint64_t)((const int*)address)[0]);
  feign_put_value(r, (uint64_t)((const int*)address)[1]);
}

/* What brings descriptors in a message, behind @p c or first. As many bytes as the message has of
 * such, the kernel has read, or written. */
static const struct cmsghdr* next_rights(const struct msghdr* m, const struct cmsghdr* c) {
  const size_t align = sizeof(size_t) - 1;
  const uint8_t* at = m->msg_control;
  if (at == 0) return 0;
  const uint8_t* const end = at + m->msg_controllen;
  if (c != 0) at = (const uint8_t*)c;
  for (int passed = c == 0;; passed = 1) {
    if ((size_t)(end - at) < sizeof *c) return 0;
    c = (const struct cmsghdr*)at;
    if (c->cmsg_len < sizeof *c || c->cmsg_len > (size_t)(end - at)) return 0;
    if (passed && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) return c;
    const size_t whole = (c->cmsg_len + align) & ~align;
    if (whole > (size_t)(end - at)) return 0;
    at += whole;
  }
}

static inline size_t rights_in(const struct cmsghdr* c) {
  return (c->cmsg_len - sizeof *c) / sizeof(int);
}

/* What was only looked at is brought once more. Resolve knows by the last value that there was no
 * room for all. */
static void put_rights(struct feign_record* r, long address, long flags, long result) {
  enum { kMost = 253 }; /* SCM_MAX_FD; a socket that passes none takes any number */
  if (result < 0 || (flags & MSG_PEEK)) return;
  const struct msghdr* const m = (const struct msghdr*)address;
  for (const struct cmsghdr* c = 0; (c = next_rights(m, c)) != 0;) {
    const size_t count = rights_in(c);
    if (r->values + count > kMost || !has_room(r, 9 * count)) return;
    for (size_t i = 0; i < count; ++i) feign_put_value(r, ((const uint32_t*)(c + 1))[i]);
  }
  if (r->values == 0) return;
  if (flags & MSG_CMSG_CLOEXEC) feign_put_flags(r, MSG_CMSG_CLOEXEC);
  if (m->msg_flags & MSG_CTRUNC) feign_put_value(r, UINT64_MAX);
}

static void put_times(struct feign_record* r, long address, long result, int form) {
  if (form == 2) { /* struct utimbuf */
    STRUCT(t, struct utimbuf, address);
    if (t == 0) return;
    feign_put_value(r, (uint64_t)t->actime);
    feign_put_value(r, 0);
    feign_put_value(r, (uint64_t)t->modtime);
    feign_put_value(r, 0);
    return;
  }
  struct two {
    int64_t v[4];
  };
  STRUCT(t, struct two, address);
  if (t == 0) return;
  for (int i = 0; i < 4; ++i)
    feign_put_value(
        r, (uint64_t)(form == 1 && i % 2 == 1 && t->v[i] < 1000000 ? t->v[i] * 1000 : t->v[i]));
}

/* A position behind a pointer, as it was before the call. */
static inline uint64_t at_of(long address) {
  int64_t at = 0;
  if (address == 0) return UINT64_MAX;
  if (copy_safely(&at, (const void*)address, sizeof at) == sizeof at) return (uint64_t)at;
  return denied ? (uint64_t) * (const int64_t*)address : UINT64_MAX;
}

static void put_fcntl(struct feign_record* r, const long* a, long result) {
  switch ((int)a[1]) {
    case F_GETLK:
    case F_SETLK:
    case F_SETLKW:
    case F_OFD_GETLK:
    case F_OFD_SETLK:
    case F_OFD_SETLKW: {
      STRUCT(lock, struct flock, a[2]);
      if (lock == 0) return;
      feign_put_value(r, 0);
      feign_put_value(r, (uint64_t)lock->l_type);
      feign_put_value(r, (uint64_t)lock->l_whence);
      feign_put_value(r, (uint64_t)lock->l_start);
      feign_put_value(r, (uint64_t)lock->l_len);
      return;
    }
    case F_GETFD:
    case F_GETFL:
    case F_GETOWN:
    case F_GETSIG:
    case F_GETLEASE:
    case F_GETPIPE_SZ:
    case F_GET_SEALS:
      return;
    default:
      feign_put_value(r, (uint64_t)a[2]);
  }
}

static void put_ioctl(struct feign_record* r, const long* a, long result) {
  if ((uint32_t)a[1] != FICLONERANGE) {
    feign_put_value(r, (uint64_t)a[2]);
    return;
  }
  STRUCT(range, struct file_clone_range, a[2]);
  if (range == 0) return;
  feign_put_value(r, (uint64_t)range->src_fd);
  feign_put_value_at(r, 2, range->src_offset);
  feign_put_length(r, range->src_length);
  feign_put_offset(r, range->dest_offset);
}

static void put_bind(struct feign_record* r, const long* a, long result) {
  const struct sockaddr_un* address = (const struct sockaddr_un*)a[1];
  if (unsure(result) || address == 0 || a[2] <= (long)offsetof(struct sockaddr_un, sun_path) ||
      address->sun_family != AF_UNIX || address->sun_path[0] == '\0')
    return;
  size_t length = 0;
  const size_t most = (size_t)a[2] - offsetof(struct sockaddr_un, sun_path);
  while (length < most && length < sizeof address->sun_path && address->sun_path[length] != '\0')
    ++length;
  feign_put_path(r, address->sun_path, length);
}

/* Which connection a socket is an end of: told as strace -yy tells it, as resolve reads it. */

static char* put_decimal(char* to, uint32_t n) {
  char digits[10];
  int count = 0;
  do {
    digits[count++] = (char)('0' + n % 10);
    n /= 10;
  } while (n != 0);
  while (count > 0) *to++ = digits[--count];
  return to;
}

union any_address {
  struct sockaddr any;
  struct sockaddr_in v4;
  struct sockaddr_in6 v6;
};

static char* put_address(char* to, const union any_address* at) {
  static const char kHex[] = "0123456789abcdef";
  uint16_t port;
  if (at->any.sa_family == AF_INET) {
    const uint8_t* b = (const uint8_t*)&at->v4.sin_addr;
    for (int i = 0; i < 4; ++i) {
      if (i != 0) *to++ = '.';
      to = put_decimal(to, b[i]);
    }
    port = at->v4.sin_port;
  } else {
    const uint8_t* b = at->v6.sin6_addr.s6_addr;
    *to++ = '[';
    for (int i = 0; i < 16; ++i) {
      if (i != 0 && i % 2 == 0) *to++ = ':';
      *to++ = kHex[b[i] >> 4];
      *to++ = kHex[b[i] & 15];
    }
    *to++ = ']';
    port = at->v6.sin6_port;
  }
  *to++ = ':';
  return put_decimal(to, (uint32_t)(port >> 8 | (port & 255) << 8));
}

/* An IPv4 address that IPv6 is used for: the other end may not know. */
static void plain_address(union any_address* at) {
  static const uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255};
  if (at->any.sa_family != AF_INET6) return;
  for (int i = 0; i < 12; ++i)
    if (at->v6.sin6_addr.s6_addr[i] != kMapped[i]) return;
  uint32_t v4;
  __builtin_memcpy(&v4, at->v6.sin6_addr.s6_addr + 12, sizeof v4);
  const uint16_t port = at->v6.sin6_port;
  at->v4.sin_family = AF_INET;
  at->v4.sin_addr.s_addr = v4;
  at->v4.sin_port = port;
}

/* The number of the socket that a UNIX socket is connected to: sock_diag(7). 0: not to be had. */
static uint32_t other_end(uint32_t number) {
  struct {
    struct nlmsghdr head;
    struct unix_diag_req what;
  } ask = {{sizeof ask, SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST, 0, 0},
           {AF_UNIX, 0, 0, ~0u, number, UDIAG_SHOW_PEER, {~0u, ~0u}}};
  struct {
    struct nlmsghdr head;
    struct unix_diag_msg what;
    struct rtattr peer;
    uint32_t number;
    char more[64];
  } told;
  const long s =
      system_call(SYS_socket, AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG, 0, 0, 0);
  if (s < 0) return 0;
  long got = system_call(SYS_sendto, s, (long)&ask, sizeof ask, 0, 0, 0);
  if (got == (long)sizeof ask)
    got = system_call(SYS_recvfrom, s, (long)&told, sizeof told, MSG_DONTWAIT, 0, 0);
  (void)system_call(SYS_close, s, 0, 0, 0, 0, 0);
  if (got < (long)offsetof(__typeof__(told), more) || told.head.nlmsg_type != SOCK_DIAG_BY_FAMILY ||
      told.peer.rta_type != UNIX_DIAG_PEER)
    return 0;
  return told.number;
}

static char* put_start(char* to, const char* text) {
  while (*text != '\0') *to++ = *text++;
  return to;
}

/* @p wanted: the address that a connect, which may still go on, was given. */
static void put_end(struct feign_record* r, long fd, const union any_address* wanted) {
  char text[128], *to = text;
  union any_address own, other;
  int size = sizeof own, type = 0, type_size = sizeof type;
  if (feign_capture.sealed) return;
  if (system_call(SYS_getsockopt, fd, SOL_SOCKET, SO_TYPE, (long)&type, (long)&type_size, 0) != 0 ||
      (type != SOCK_STREAM && type != SOCK_SEQPACKET) ||
      system_call(SYS_getsockname, fd, (long)&own, (long)&size, 0, 0, 0) != 0)
    return;
  if (own.any.sa_family == AF_UNIX) {
    struct stat s;
    if (system_call(SYS_fstat, fd, (long)&s, 0, 0, 0, 0) != 0) return;
    const uint32_t peer = wanted == 0 ? other_end((uint32_t)s.st_ino) : 0;
    if (wanted == 0 && peer == 0) return;
    to = put_decimal(put_start(to, "UNIX-STREAM:["), (uint32_t)s.st_ino);
    if (peer != 0) to = put_decimal(put_start(to, "->"), peer);
  } else if (type == SOCK_STREAM &&
             (own.any.sa_family == AF_INET || own.any.sa_family == AF_INET6)) {
    size = sizeof other;
    if (system_call(SYS_getpeername, fd, (long)&other, (long)&size, 0, 0, 0) != 0) {
      if (wanted == 0 || wanted->any.sa_family != own.any.sa_family) return;
      if (own.any.sa_family == AF_INET)
        other.v4 = wanted->v4;
      else
        other.v6 = wanted->v6;
    }
    plain_address(&own);
    plain_address(&other);
    to = put_address(put_start(put_address(put_start(to, "TCP:["), &own), "->"), &other);
  } else {
    return;
  }
  *to++ = ']';
  if (has_room(r, (size_t)(to - text)))
    feign_put_text(r, FEIGN_FIELD_HINT, text, (size_t)(to - text));
}

static void put_connect(struct feign_record* r, const long* a, long result) {
  if (result == 0 || result == -EINPROGRESS) put_end(r, a[0], (const union any_address*)a[1]);
}

static void put_accept(struct feign_record* r, const long* a, long result) {
  (void)a;
  if (result >= 0) put_end(r, result, 0);
}

/* ---- the table
 * ---------------------------------------------------------------------------------------------- */

enum {
  kState = 1, /* recorded while paused, too: later calls mean nothing without it */
  kData = 2,  /* sampling may leave it out */
  kTexts = 4, /* or lists: longer than FEIGN_TOUCHED */
  kAlone = 8, /* exec, exit: recorded before it is made */
  kAio = 16,
  kAtStart = 32, /* took effect when it started */
  kSpecial = 64, /* clone and its like */
  kGetsFd = 128, /* its result is another process's descriptor */
  kGetsFds = 256 /* such may come in its message, the second argument */
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

/* ---- exec: the library goes with it
 * -------------------------------------------------------------------------- */

static int same_start(const char* text, const char* start) {
  while (*start != '\0')
    if (*text++ != *start++) return 0;
  return 1;
}

static int contains(const char* text, const char* part) {
  for (; *text != '\0'; ++text)
    if (same_start(text, part)) return 1;
  return 0;
}

extern char feign_capture_library[];
static const char* library_path; /* of the former, with its directory */

/* LD_PRELOAD without what is of this recording: from another root directory it is not to be had,
 * and the loader would say so to the program's user. */
static char* put_others(char* to, const char* end, const char* given) {
  const char* const begin = to;
  while (*given != '\0' && to < end) {
    const char* next = given;
    while (*next != '\0' && *next != ':' && *next != ' ') ++next;
    if (*next != '\0') ++next;
    int ours = 0;
    for (const char* text = given; text < next; ++text)
      ours |= same_start(text, "libfeign-capture");
    for (; given < next; ++given)
      if (!ours && to < end) *to++ = *given;
  }
  if (to > begin && to[-1] == ':') --to;
  return to;
}

/* Memory of the thread's. Not on the stack, which may be small (posix_spawn's child has 36 KiB). */
static char** room_for(struct thread* t, size_t size) {
  if (t->room_size >= size) return t->room;
  const long at = system_call(SYS_mmap, 0, (long)size, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at < 0 && at >= -4095) return 0;
  if (t->room != 0) system_call(SYS_munmap, (long)t->room, (long)t->room_size, 0, 0, 0, 0);
  t->room = (char**)at;
  t->room_size = size;
  return t->room;
}

/* The environment with what brings this library into the next program, for programs that took it
 * out. */
static __attribute__((noinline)) long exec_with(const struct registers* x, int which, int folder,
                                                int library, int reachable) {
  enum { kPreload = 8192, kPage = 4096 };
  char* const* given = (char* const*)x->a[which];
  static char asan[] = "ASAN_OPTIONS=" FEIGN_CAPTURE_ASAN;
  size_t count = 4, n = 0;
  int sanitizer = 0;
  for (; given != 0 && given[count - 4] != 0; ++count) {
  }
  struct thread* const t = &feign_thread;
  const size_t size = (count * sizeof(char*) + kPreload + kPage - 1) & ~(size_t)(kPage - 1);
  char** const room = room_for(t, size);
  if (room == 0)
    return system_call(x->number, x->a[0], x->a[1], x->a[2], x->a[3], x->a[4], x->a[5]);
  char* const preload = (char*)(room + count);
  char* p = preload;
  for (const char* text = "LD_PRELOAD="; *text != '\0';) *p++ = *text++;
  /* Not what else this program was preloaded with: the next one may be meant to be without it. */
  for (const char* text = reachable ? feign_capture.control->preload : ""; *text != '\0';)
    *p++ = *text++;
  for (; given != 0 && *given != 0; ++given) {
    if (same_start(*given, "LD_PRELOAD=") && !reachable) {
      p = put_others(p, preload + kPreload - 1, *given + 11);
      continue;
    }
    if (same_start(*given, "LD_PRELOAD=") && !library) {
      *p++ = ':';
      for (const char* text = *given + 11; *text != '\0' && p < preload + kPreload - 1;)
        *p++ = *text++;
      continue;
    }
    if (same_start(*given, "ASAN_OPTIONS=")) sanitizer = 1;
    room[n++] = *given;
  }
  if (!sanitizer && reachable) room[n++] = asan;
  *p = '\0';
  if (reachable ? !library : p[-1] != '=') room[n++] = preload;
  static char variable[sizeof feign_capture.folder + 16];
  if (!folder) {
    char* to = variable;
    for (const char* text = "FEIGN_CAPTURE="; *text != '\0';) *to++ = *text++;
    for (const char* text = feign_capture.folder; *text != '\0';) *to++ = *text++;
    *to = '\0';
    room[n++] = variable;
  }
  room[n] = 0;
  long a[6];
  for (int i = 0; i < 6; ++i) a[i] = i == which ? (long)room : x->a[i];
  return system_call(x->number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* Whether these are texts that can be read, as far as their first bytes tell. */
static int readable(char* const* texts) {
  uintptr_t list = UINTPTR_MAX, text = UINTPTR_MAX; /* pages that were looked at last */
  for (; texts != 0; ++texts) {
    if ((uintptr_t)texts >> 12 != list && !is_there((uintptr_t)texts)) return 0;
    list = (uintptr_t)texts >> 12;
    if (*texts == 0) return 1;
    if ((uintptr_t)*texts >> 12 != text && !is_there((uintptr_t)*texts)) return 0;
    text = (uintptr_t)*texts >> 12;
  }
  return 1;
}

/* It may be elsewhere in another root; and what Landlock forbids, access() does not say. */
static int can_be_loaded(void) {
  if (library_path == 0) return 1;
  const long fd =
      system_call(SYS_openat, AT_FDCWD, (long)library_path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
  if (fd >= 0) system_call(SYS_close, fd, 0, 0, 0, 0, 0);
  return fd >= 0 || fd == -EMFILE || fd == -ENFILE;
}

static long make_call(const struct registers* x) {
  if ((x->number == SYS_execve && readable((char* const*)x->a[2])) ||
      (x->number == SYS_execveat && readable((char* const*)x->a[3]))) {
    const int which = x->number == SYS_execve ? 2 : 3;
    int folder = 0, library = 0;
    for (char* const* e = (char* const*)x->a[which]; e != 0 && *e != 0; ++e) {
      if (same_start(*e, "FEIGN_CAPTURE=")) folder = 1;
      if (same_start(*e, "LD_PRELOAD=") && contains(*e, feign_capture_library)) library = 1;
    }
    struct feign_control* const c = feign_capture.control;
    if (c != 0) {
      const int32_t pid = feign_capture.sealed ? feign_capture.pid
                                               : (int32_t)system_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
      int32_t* const mark = &c->execs[(uint32_t)pid % FEIGN_CAPTURE_EXECS];
      __atomic_store_n(mark, feign_exec_mark(pid, (const char*)x->a[which - 2], 0),
                       __ATOMIC_RELAXED);
      const uint32_t user = c->owner != 0 && !feign_capture.sealed
                                ? (uint32_t)system_call(SYS_geteuid, 0, 0, 0, 0, 0, 0)
                                : 0;
      const int stranger = user != 0 && user + 1 != c->owner;
      if (stranger) __atomic_fetch_add(&c->strangers, 1, __ATOMIC_RELAXED);
      const int reachable =
          !feign_capture.harsh && (!feign_capture.moved || feign_capture.sealed || can_be_loaded());
      const long failed =
          folder && library && reachable
              ? system_call(x->number, x->a[0], x->a[1], x->a[2], x->a[3], x->a[4], x->a[5])
              : exec_with(x, which, folder, library, reachable);
      __atomic_store_n(mark, 0, __ATOMIC_RELAXED);
      if (stranger) __atomic_fetch_sub(&c->strangers, 1, __ATOMIC_RELAXED);
      return failed;
    }
  }
  return system_call(x->number, x->a[0], x->a[1], x->a[2], x->a[3], x->a[4], x->a[5]);
}

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
  const uint64_t used = (cpu - before) * feign_capture.control->rate >> 20;
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

/* Where a child goes on: read by feign_hook_entry, written by the parent, into the child's own
 * storage where the call gives it one. */
__thread uintptr_t feign_child_back
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

static void made_another(long result);

struct outcome {
  long result, special;
};

enum { kReturn, kMakeIt };

static void fall_silent(struct thread* t) {
  if (feign_capture.control != 0 && t->quiet < 1u << 16)
    __atomic_fetch_add(&feign_capture.control->silent, 1, __ATOMIC_RELAXED);
  t->quiet |= 1u << 16;
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
    /* Before all else: a signal handler may come in from here on, and call vfork, too. */
    in->thread = feign_own_number();
    in->frame = (uintptr_t)x;
    in->began = 1;
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
    if ((flags & (CLONE_VM | CLONE_VFORK)) == CLONE_VM) fall_silent(t);
    feign_lane_ends(&t->lanes[level * 2 + 2]); /* of the child before */
    feign_lane_ends(&t->lanes[level * 2 + 3]);
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
  if (vforked) --in;
  const struct vfork was = *in;
  in->back = 0;
  __asm__ volatile("" ::: "memory"); /* from here on a signal handler may use it */
  if (vforked) --t->vforks;
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

static inline int sampled_out(struct thread* t) {
  const uint32_t one_in = feign_capture.control->sample;
  return one_in > 1 && t->skipped++ % one_in != 0;
}

#include "filter.c"
#include "uring.c"

static struct outcome with_path_in_room(const struct registers* x, const struct thread* t,
                                        int path);

/* readlink(name, name, size): the path is gone once it was read. Whether it was put elsewhere. */
static __attribute__((noinline)) int is_over_path(struct thread* t, const long* a, int path) {
  if ((unsigned long)(a[path] - a[path + 1]) >= (unsigned long)a[path + 2] || feign_capture.sealed)
    return 0;
  char* const copy = (char*)room_for(t, PATH_MAX);
  const size_t size = copy == 0 ? 0 : copy_safely(copy, (const char*)a[path], PATH_MAX);
  for (size_t i = 0; i < size; ++i)
    if (copy[i] == '\0') return 1;
  return 0;
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
    (void)look_at_rings(t, ticks(), 0);
    /* A vfork's child has the memory of its parent, whose rings they are. */
    if (number == SYS_close && t->vforks == 0) closes_ring(t, a[0]);
    if (number == SYS_exit_group && t->vforks == 0 && rings != 0) leaves_all();
  }
  const int on =
      d != 0 && recording(t, 0) && (!feign_capture.control->paused || (d->flags & kState));
  if (!on) {
    const int filters = number == SYS_seccomp || (number == SYS_prctl && a[0] == PR_SET_SECCOMP);
    if (filters) feign_seal();
    out.result = make_call(x);
    if (filters && out.result >= 0 && is_harsh(x)) feign_capture.harsh = 1;
    /* Where the processor's counter may not be read any more, nothing can be recorded. */
    if (out.result == 0 &&
        ((number == SYS_prctl && a[0] == PR_SET_SECCOMP && a[1] == SECCOMP_MODE_STRICT) ||
         (number == SYS_seccomp && a[0] == SECCOMP_SET_MODE_STRICT) ||
         (number == SYS_prctl && a[0] == PR_SET_TSC && a[1] == PR_TSC_SIGSEGV)))
      fall_silent(t);
    return out;
  }
  uint64_t before[2];
  if (__builtin_expect(d->at[0] != 0, 0)) {
    const int path = d->at[0] - kOverPath - 1;
    if (path < 0) {
      before[0] = at_of(a[d->at[0] - 1]);
      before[1] = d->at[1] != 0 ? at_of(a[d->at[1] - 1]) : 0;
    } else if (is_over_path(t, a, path)) {
      return with_path_in_room(x, t, path);
    }
  }
  if (d->flags & kAlone) {
    const uint64_t now = ticks();
    record(t, d, FEIGN_RECORD_STARTED, a, now, now, 0, before, kNoFlight, (uintptr_t)x, watched);
    if (number == SYS_exit && t->vforks == 0) {
      t->token = 0; /* its storage may become another thread's */
      if (t->room != 0) system_call(SYS_munmap, (long)t->room, (long)t->room_size, 0, 0, 0, 0);
      t->room_size = 0;
      feign_lane_ends(&t->lanes[0]);
      feign_lane_ends(&t->lanes[1]);
    }
    const uint64_t start = ticks();
    out.result = make_call(x);
    record(t, d, FEIGN_RECORD_CALL, a, start, ticks(), out.result, before, kNoFlight, (uintptr_t)x,
           watched); /* it came back: it failed */
    return out;
  }
  if (d->flags & kAtStart) {
    const uint32_t level = live(&t->flights, (uintptr_t)x), calls = live(&t->calls, (uintptr_t)x);
    const uint64_t started = ticks();
    comes_under_way(&t->flights, level, (uintptr_t)x, started,
                    calls != 0 ? t->calls.all[calls - 1].depth + 1 : 0);
    out.result = system_call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    const uint64_t end = ticks();
    const int began = level < kUnderWay && t->flights.all[level].began;
    if ((d->flags & kData) && !began && sampled_out(t))
      lands(t, level, (uintptr_t)x);
    else
      record(t, d, FEIGN_RECORD_CALL, a, started, end, out.result, before, level, (uintptr_t)x,
             watched);
    return out;
  }
  const uint64_t start = ticks();
  out.result = system_call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  const uint64_t end = ticks();
  if ((d->flags & kData) && sampled_out(t)) return out;
  if ((d->flags & kSpecial) && out.result == 0) return out; /* the child of a fork */
  record(t, d, FEIGN_RECORD_CALL, a, start, end, out.result, before, kNoFlight, (uintptr_t)x,
         watched);
  if (__builtin_expect(d->flags & (kGetsFd | kGetsFds), 0)) gets_fds(d, a, out.result);
  return out;
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

static __attribute__((noinline)) struct outcome with_path_in_room(const struct registers* x,
                                                                  const struct thread* t,
                                                                  int path) {
  struct registers other = *x;
  other.a[path] = (long)t->room;
  return feign_hook(&other);
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

/* ---- the mapping
 * ------------------------------------------------------------------------------------------------
 */

char feign_capture_library[512];

/* Whether these stubs lie there already: a library was unloaded, and is loaded once more. */
static int has_stubs(uintptr_t address, uint64_t size, long fd, uint64_t offset) {
  const uint64_t words = size / sizeof(uint64_t) - 1; /* and the hook's address */
  const long other = system_call(SYS_mmap, 0, (long)size, PROT_READ, MAP_PRIVATE, fd, (long)offset);
  if (other < 0 && other >= -4095) return 0;
  const uint64_t *const here = (const uint64_t*)address, *const there = (const uint64_t*)other;
  uint64_t same = 0;
  while (same < words && (same % 512 != 0 || is_there(address + same * sizeof(uint64_t))) &&
         here[same] == there[same])
    ++same;
  system_call(SYS_munmap, other, (long)size, 0, 0, 0, 0);
  return same == words && here[words] == (uintptr_t)feign_hook_entry;
}

/* A piece of the file at an address; stubs get the hook's address into their last bytes. Where the
 * file may not be run from (a file system without exec), its bytes are copied. */
static int map_code(uintptr_t address, uint64_t size, int stubs, long fd, uint64_t offset) {
  const long code = PROT_READ | PROT_EXEC, data = PROT_READ | PROT_WRITE;
  const uint64_t slot = size - sizeof(uintptr_t);
  long at = system_call(SYS_mmap, (long)address, (long)size, stubs ? data : code,
                        MAP_PRIVATE | (stubs ? MAP_FIXED_NOREPLACE : MAP_FIXED), fd, (long)offset);
  if (at == (long)address) {
    if (!stubs) return 1;
    *(uintptr_t*)(address + slot) = (uintptr_t)feign_hook_entry;
    if (system_call(SYS_mprotect, at, (long)size, code, 0, 0, 0) == 0) return 1;
  } else if (stubs || (at != -EPERM && at != -EACCES)) {
    return stubs && at == -EEXIST && has_stubs(address, size, fd, offset);
  }
  at = system_call(SYS_mmap, 0, (long)size, data, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at < 0 && at >= -4095) return 0;
  for (uint64_t done = 0; done < size;) {
    const long n = system_call(SYS_pread64, fd, at + (long)done, (long)(size - done),
                               (long)(offset + done), 0, 0);
    if (n <= 0) return 0;
    done += (uint64_t)n;
  }
  if (stubs) *(uintptr_t*)((uintptr_t)at + slot) = (uintptr_t)feign_hook_entry;
  return system_call(SYS_mprotect, at, (long)size, code, 0, 0, 0) == 0 &&
         system_call(SYS_mremap, at, (long)size, (long)size, 3 /* MAYMOVE, FIXED */, (long)address,
                     0) == (long)address;
}

static int install(uintptr_t base, const struct feign_hook_head* head, long fd) {
  const uintptr_t text = base + head->text_address;
  return map_code(text - head->distance, head->stubs_size, 1, fd,
                  FEIGN_CAPTURE_UNIT + head->stubs_offset) &&
         map_code(text, head->text_size, 0, fd, FEIGN_CAPTURE_UNIT + head->text_offset);
}

struct search {
  struct feign_hooks hooks;
  long fd;
  int libc;
  const char* self; /* this library's path */
};

static const uint8_t* build_id(const struct dl_phdr_info* info, size_t* size) {
  const uint8_t* id = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)* h = &info->dlpi_phdr[i];
    const uintptr_t from = info->dlpi_addr + h->p_vaddr;
    if (h->p_type != PT_NOTE) continue;
    for (uintptr_t at = from; at + 12 < from + h->p_filesz;) {
      const ElfW(Nhdr)* n = (const ElfW(Nhdr)*)at;
      if (n->n_type == NT_GNU_BUILD_ID && n->n_namesz == 4) {
        id = (const uint8_t*)(at + 16);
        *size = n->n_descsz < 20 ? n->n_descsz : 20;
      }
      at += 12 + ((n->n_namesz + 3) & ~3u) + ((n->n_descsz + 3) & ~3u);
    }
  }
  return id;
}

static int object(struct dl_phdr_info* info, size_t size, void* data) {
  (void)size;
  struct search* const s = data;
  if (info->dlpi_name == 0) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i)
    if (info->dlpi_phdr[i].p_type == PT_LOAD &&
        (uintptr_t)feign_hook_entry - (info->dlpi_addr + info->dlpi_phdr[i].p_vaddr) <
            info->dlpi_phdr[i].p_memsz)
      s->self = info->dlpi_name;
  size_t id_size = 0;
  const uint8_t* const id = build_id(info, &id_size);
  for (uint64_t i = 0; id != 0 && i < s->hooks.count; ++i) {
    const struct feign_hook_head* const head = &s->hooks.all[i];
    size_t same = 0;
    while (same < id_size && head->id[same] == id[same]) ++same;
    if (same != id_size || head->id_size != id_size) continue;
    if (install(info->dlpi_addr, head, s->fd) && contains(info->dlpi_name, "/libc.so.6"))
      s->libc = 1;
  }
  return 0;
}

/* @p fd: of the file records. */
static void read_hooks(struct search* s, long fd) {
  s->libc = 0;
  s->self = 0;
  s->fd = fd;
  if (system_call(SYS_pread64, fd, (long)&s->hooks, sizeof s->hooks, FEIGN_CAPTURE_UNIT, 0, 0) !=
          (long)sizeof s->hooks ||
      s->hooks.magic != FEIGN_HOOK_MAGIC || s->hooks.count > FEIGN_HOOK_MOST)
    s->hooks.count = 0;
}

/* What is hooked, as far as a text that is mapped is compared with it. */
static struct {
  uint64_t text, size; /* in the library; 0: no more */
  uint64_t id;         /* the first bytes of its build id */
} hookable[FEIGN_HOOK_MOST];

/* Whether the headers of a library lie there, and what they say of its notes. */
static int has_headers(uintptr_t base) {
  const ElfW(Ehdr)* const e = (const ElfW(Ehdr)*)base;
  if (!is_there(base) || *(const uint32_t*)base != 0x464c457f /* ELF */ || e->e_phoff > 2048 ||
      e->e_phnum > 2048 / sizeof(ElfW(Phdr)))
    return 0;
  const ElfW(Phdr)* const all = (const ElfW(Phdr)*)(base + e->e_phoff);
  for (int i = 0; i < e->e_phnum; ++i)
    if (all[i].p_type == PT_NOTE &&
        (all[i].p_memsz > 4096 || all[i].p_filesz > all[i].p_memsz ||
         !is_there(base + all[i].p_vaddr) || !is_there(base + all[i].p_vaddr + all[i].p_memsz)))
      return 0;
  return 1;
}

/* The loader maps a library's text, for dlopen, or a second libc's for dlmopen: its headers, which
 * it maps first, say which it is. */
static __attribute__((noinline)) void maps_code(uintptr_t at, uint64_t size) {
  const struct capture* const g = &feign_capture;
  struct dl_phdr_info info = {.dlpi_name = ""};
  uint32_t i = 0;
  /* Where no call may be made, nothing tells whether memory is there. */
  if (g->control == 0 || g->off || g->sealed || feign_thread.quiet != 0 || feign_thread.vforks != 0)
    return;
  for (; i < FEIGN_HOOK_MOST; ++i) {
    const uintptr_t base = at - hookable[i].text;
    if (hookable[i].size != ((size + 4095) & ~(uint64_t)4095) || base > at || !has_headers(base))
      continue;
    info.dlpi_addr = base;
    info.dlpi_phdr = (const ElfW(Phdr)*)(base + ((const ElfW(Ehdr)*)base)->e_phoff);
    info.dlpi_phnum = ((const ElfW(Ehdr)*)base)->e_phnum;
    size_t id_size = 0;
    const uint8_t* const id = build_id(&info, &id_size);
    if (id_size >= 8 && *(const feign_loose64*)id == hookable[i].id) break;
  }
  if (i == FEIGN_HOOK_MOST) return;
  char path[sizeof g->folder + 16], *to = path;
  for (const char* text = g->folder; *text != '\0';) *to++ = *text++;
  for (const char* text = "/records"; *text != '\0';) *to++ = *text++;
  *to = '\0';
  const long fd = system_call(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
  if (fd < 0) return;
  struct search s;
  read_hooks(&s, fd);
  (void)object(&info, sizeof info, &s);
  system_call(SYS_close, fd, 0, 0, 0, 0, 0);
}

__attribute__((visibility("hidden"))) int feign_hooks_install(long fd) {
  struct search s;
  read_hooks(&s, fd);
  for (uint64_t i = 0; i < s.hooks.count; ++i) {
    hookable[i].text = s.hooks.all[i].text_address;
    hookable[i].size = s.hooks.all[i].text_size;
    hookable[i].id = *(const feign_loose64*)s.hooks.all[i].id;
  }
  /* libc's: a sanitizer has one of its own in the program, which is not to be called so early. */
  int (*iterate)(int (*)(struct dl_phdr_info*, size_t, void*), void*);
  *(void**)&iterate = dlsym(RTLD_NEXT, "dl_iterate_phdr");
  if (iterate != 0) iterate(object, &s);
  if (s.self == 0) return 0;
  library_path = s.self;
  const char* name = s.self;
  for (const char* t = name; *t != '\0'; ++t)
    if (*t == '/') name = t + 1;
  char* to = feign_capture_library;
  for (size_t i = 0; name[i] != '\0' && i + 1 < sizeof feign_capture_library; ++i) *to++ = name[i];
  return s.libc;
}
