/* SPDX-License-Identifier: MIT */
/* Part of hook.c: reading what a call's arguments point to, and what is kept of those that have a
 * form of their own. */
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <linux/xattr.h>
#include <netinet/in.h>
#include <sys/un.h>
#include <utime.h>

#include "acl.h"
#include "identity.h"

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
    case EADDRINUSE:
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

/* Of two texts: that the second one is not there shows only if nothing is wrong with the first. Where
 * nobody can ask whether it is there, it is. */
static inline long of_second(long result) {
  switch (-result) {
    case ENOENT:
    case EACCES:
    case ENOTDIR:
    case ELOOP:
    case ENAMETOOLONG:
      return feign_capture.sealed ? result : -EFAULT;
    default:
      return result;
  }
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

/* ---- of some forms: the generated functions call these ---- */

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

/* Resolve knows by the last value that there was no room for all. */
static void put_rights(struct feign_record* r, long address, long flags, long result) {
  enum { kMost = 253 }; /* SCM_MAX_FD; a socket that passes none takes any number */
  if (result < 0) return;
  const struct msghdr* const m = (const struct msghdr*)address;
  for (const struct cmsghdr* c = 0; (c = next_rights(m, c)) != 0;) {
    const size_t count = rights_in(c);
    if (r->values + count > kMost || !has_room(r, 9 * count)) return;
    for (size_t i = 0; i < count; ++i) feign_put_value(r, ((const uint32_t*)(c + 1))[i]);
  }
  if (r->values == 0) return;
  const uint32_t told = (uint32_t)flags & (MSG_CMSG_CLOEXEC | MSG_PEEK);
  if (told != 0) feign_put_flags(r, told);
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
    case F_GET_RW_HINT:
    case F_SET_RW_HINT:
    case F_GET_FILE_RW_HINT:
    case F_SET_FILE_RW_HINT: {
      STRUCT(hint, uint64_t, a[2]);
      if (hint != 0) feign_put_value(r, *hint);
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

static int text_ends(const char* text, size_t length, const char* with, size_t size) {
  while (size != 0 && length != 0 && text[length - 1] == with[size - 1]) --length, --size;
  return size == 0;
}

/* Which executable was opened by its name below /proc, a link that leads to what nothing else
 * tells. Of one that has no name any more the kernel says what it was, with more behind it. */
static void put_opened(struct feign_record* r, long path, long result) {
  static const char kProc[] = "/proc/", kExe[] = "/exe", kGone[] = " (deleted)";
  const char* const name = (const char*)path;
  size_t size = 0;
  if (result < 0 || name == 0 || feign_capture.sealed) return;
  for (; name[size] != '\0'; ++size)
    if (size < sizeof kProc - 1 && name[size] != kProc[size]) return;
  if (!text_ends(name, size, kExe, sizeof kExe - 1) || !has_room(r, PATH_MAX)) return;
  char link[40], *const to = (char*)r->at + 3;
  *put_decimal(put_start(link, "/proc/thread-self/fd/"), (uint32_t)result) = '\0';
  const long length =
      system_call(SYS_readlinkat, AT_FDCWD, (long)link, (long)to, PATH_MAX - 3, 0, 0);
  if (length <= 0 || text_ends(to, (size_t)length, kGone, sizeof kGone - 1)) return;
  r->at[0] = FEIGN_FIELD_PATH2 << 4;
  r->at[1] = (uint8_t)length;
  r->at[2] = (uint8_t)(length >> 8);
  r->at += 3 + length;
}

static void put_connect(struct feign_record* r, const long* a, long result) {
  if (result == 0 || result == -EINPROGRESS) put_end(r, a[0], (const union any_address*)a[1]);
}

static void put_accept(struct feign_record* r, const long* a, long result) {
  (void)a;
  if (result >= 0) put_end(r, result, 0);
}
