/* SPDX-License-Identifier: MIT */
/* The stdio layer: symbol wrappers of libc's streams, made from layers/stdio.h. The system calls
 * that a stream makes lie in its calls. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>
#include <wchar.h>

#include "capture.h"

#define EXPORT __attribute__((visibility("default")))
/* libc's own, looked up at the first call; whoever comes in between does the same. */
#define FIND(real, name)                              \
  do {                                                \
    if (__builtin_expect(real == NULL, 0)) {          \
      feign_capture_quiet(1);                         \
      *(void**)(void*)&real = dlsym(RTLD_NEXT, name); \
      feign_capture_quiet(0);                         \
    }                                                 \
  } while (0)

static int descriptor(FILE* stream) {
  if (stream == NULL) return -1;
  const int e = errno, fd = fileno(stream);
  errno = e;
  return fd;
}

/* What open(2) would be told. libc looks at so many characters: what follows is a character set. */
static uint32_t mode_flags(const char* mode) {
  enum { kLookedAt = 7 };
  const size_t length = strnlen(mode, kLookedAt);
  const int plus = memchr(mode, '+', length) != NULL;
  uint32_t flags = (uint32_t)(plus ? O_RDWR : mode[0] == 'r' ? O_RDONLY : O_WRONLY);
  if (mode[0] == 'w') flags |= O_CREAT | O_TRUNC;
  if (mode[0] == 'a') flags |= O_CREAT | O_APPEND;
  if (memchr(mode, 'x', length) != NULL) flags |= O_EXCL;
  if (memchr(mode, 'e', length) != NULL) flags |= O_CLOEXEC;
  return flags;
}

/* Where a stream is; asking is none of the program's calls. */
static int64_t position(FILE* stream) {
  static off_t (*real)(FILE*);
  FIND(real, "ftello");
  const int e = errno;
  feign_capture_quiet(1);
  const int64_t at = real(stream);
  feign_capture_quiet(0);
  errno = e;
  return at;
}

static int64_t moved(FILE* stream, int64_t before) {
  const int64_t at = position(stream);
  return before >= 0 && at > before ? at - before : 0;
}

/* Wide characters as the bytes that they are in a file. */
static int64_t character_bytes(wint_t character) {
  char bytes[MB_LEN_MAX];
  mbstate_t state = {0};
  const size_t count = wcrtomb(bytes, (wchar_t)character, &state);
  return count != (size_t)-1 ? (int64_t)count : 1;
}
static int64_t text_bytes(const wchar_t* text) {
  mbstate_t state = {0};
  const size_t count = wcsrtombs(NULL, &text, 0, &state);
  return count != (size_t)-1 ? (int64_t)count : 0;
}

enum { kUnbuffered = 2, kByLine = 0x200 }; /* _IO_UNBUFFERED, _IO_LINE_BUF */

/* The beginning of libc's: where wide characters are before they are bytes. */
struct _IO_wide_data {
  wchar_t *read_ptr, *read_end, *read_base, *write_base, *write_ptr;
};

static const struct _IO_wide_data* wide(const FILE* stream) {
  return stream->_mode > 0 ? stream->_wide_data : NULL;
}

enum { kAppends = 0x1000 }; /* _IO_IS_APPENDING */

/* Where what is written next will be: of a stream that appends with nothing to be written yet, the
 * file's end, which libc does not ask for before. */
static int64_t write_position(FILE* stream) {
  const int64_t at = position(stream);
  const struct _IO_wide_data* const w = wide(stream);
  const int waits =
      stream->_IO_write_ptr > stream->_IO_write_base || (w != NULL && w->write_ptr > w->write_base);
  if (at < 0 || (stream->_flags & kAppends) == 0 || waits) return at;
  struct stat s;
  const int e = errno;
  feign_capture_quiet(1);
  const int64_t end = fstat(fileno(stream), &s) == 0 ? s.st_size : at;
  feign_capture_quiet(0);
  errno = e;
  return end;
}

static size_t bytes_of(const wchar_t* from, const wchar_t* to) {
  size_t bytes = 0;
  for (; from < to; ++from) bytes += (size_t)character_bytes((wint_t)*from);
  return bytes;
}

/* ---- what programs do to a buffer themselves
 *
 * getc_unlocked, putc_unlocked and their like are macros, which call libc only where a buffer ends.
 * How far each stream's buffer was used is kept when a call on it ends; what the next call finds to
 * be used beyond that was read or written in between, and is recorded before it. */

struct seen {
  FILE* stream; /* NULL: nobody's */
  const char *read, *write;
};
enum { kSeen = 1024, kProbes = 8 };
static struct seen g_seen[kSeen];

/* NULL: there is no room, and of that stream only calls are seen. Whoever asks has its lock. */
static struct seen* seen_of(FILE* stream) {
  const uint64_t hash = (uint64_t)(uintptr_t)stream * 0x9E3779B97F4A7C15u >> 32;
  struct seen* free = NULL;
  for (uint32_t i = 0; i < kProbes; ++i) {
    struct seen* const s = &g_seen[(hash + i) % kSeen];
    FILE* const who = __atomic_load_n(&s->stream, __ATOMIC_RELAXED);
    if (who == stream) return s;
    if (who == NULL && free == NULL) free = s;
  }
  FILE* none = NULL;
  if (free == NULL || !__atomic_compare_exchange_n(&free->stream, &none, stream, 0,
                                                   __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    return NULL;
  /* Parts of libc may have written to it, or read from it, before (putpwent). */
  free->read = stream->_IO_read_base;
  free->write = stream->_IO_write_base;
  return free;
}

static void see(struct seen* s) {
  s->read = s->stream->_IO_read_ptr;
  s->write = s->stream->_IO_write_ptr;
}

/* A record of a call that the program did not make: of so many bytes, or but for so many, at this
 * time. */
enum what { kRead, kWritten, kFlushed };
static void record_bytes(FILE* stream, enum what, int64_t bytes);

/* What was read or written from @p seen on, or, where libc has filled or emptied the buffer by
 * itself, from its beginning. */
static void record_unseen(FILE* stream, enum what what, const char* base, const char* seen,
                          const char* at) {
  if (seen < base || seen > at) seen = base;
  if (seen != at) record_bytes(stream, what, at - seen);
}

static void catch_up(struct seen* s) {
  const FILE* const f = s->stream;
  if (f->_mode > 0) return; /* of wide characters: the buffers that a macro knows are not in use */
  record_unseen(s->stream, kRead, f->_IO_read_base, s->read, f->_IO_read_ptr);
  record_unseen(s->stream, kWritten, f->_IO_write_base, s->write, f->_IO_write_ptr);
  see(s);
}

/* A stream is one thread's for as long as a call on it is recorded, as libc has it within the call;
 * also where the thread is cancelled in it. What libc gives a conversion of the program's own
 * (register_printf_specifier) has no lock. */
struct held {
  FILE* stream; /* NULL: it is none with a descriptor */
  struct seen* seen;
  const char* end; /* of what was in its buffer to be read */
  int64_t offset;  /* of the end in the file; -1: libc has not asked */
  size_t pending;  /* bytes that were to be written */
  /* Where characters that are no bytes yet were to be written; NULL: of no wide ones. */
  const wchar_t *wide_base, *wide_end;
  int failed; /* its error indicator, where that is put aside */
};

static struct held hold(FILE* stream) {
  struct held h = {.offset = -1};
  if (descriptor(stream) < 0 || stream->_lock == NULL) return h;
  h.stream = stream;
  flockfile(stream);
  h.seen = seen_of(stream);
  h.end = stream->_IO_read_end;
  h.offset = stream->_offset;
  h.pending = (size_t)(stream->_IO_write_ptr - stream->_IO_write_base);
  if (wide(stream) != NULL) {
    h.wide_base = wide(stream)->write_base;
    h.wide_end = wide(stream)->write_ptr;
  }
  if (h.seen != NULL) catch_up(h.seen);
  return h;
}

static void let_go(struct held* h) {
  if (h->stream != NULL) h->stream->_flags |= h->failed;
  if (h->seen != NULL) see(h->seen);
  if (h->stream != NULL) funlockfile(h->stream);
}
#define HOLD(stream)                                                \
  struct held held __attribute__((cleanup(let_go))) = hold(stream); \
  (void)held

enum { kEnd = 0x10 }; /* _IO_EOF_SEEN */

/* Whether what was read up to some character ended because the file did. */
static int at_end(FILE* stream) { return feof(stream) != 0; }

/* What a call says that read nothing: 0 at the file's end (met once, it stays), else why not. Of a
 * stream that may not be read scanf() leaves no error behind; one that has met an error getline()
 * does not look at, and leaves errno as it was. */
static int64_t nothing_read(FILE* stream, int error) {
  return at_end(stream) ? 0 : error != 0 ? -error : -EIO;
}

static int64_t scanned(FILE* stream, int64_t before, int converted, int error) {
  const int64_t bytes = moved(stream, before);
  return bytes > 0 || converted != EOF ? bytes : nothing_read(stream, error);
}

/* fread() and fwrite() say how many items they moved, not how much of a last one, which libc moves
 * all the same: it is asked for bytes, and the program told of items. */
static size_t items(size_t moved, size_t size, size_t count) {
  if (moved == 0) return 0;
  return moved == size * count ? count : moved / size;
}
/* More than there is room for, where the bytes are more than a number can say: libc aborts. */
static size_t most(size_t size, size_t count) {
  size_t bytes;
  return __builtin_mul_overflow(size, count, &bytes) ? SIZE_MAX : bytes;
}

/* What fgets() read. A text may have zeros in it, which strlen() ends at; how far the buffer was
 * used tells of them, if libc knew where in the file it ends, or filled it at most once, or met the
 * end of the file, which left it as it was: as fills are whole buffers, the rest of the file. */
static int64_t line_bytes(const struct held* h, const char* line, int size) {
  const int64_t length = (int64_t)strlen(line);
  if (length == size - 1 || (length != 0 && line[length - 1] == '\n')) return length;
  if (h->seen == NULL) return length != 0 ? length : 1;
  const FILE* const f = h->stream;
  const int64_t had = h->end - h->seen->read, used = f->_IO_read_ptr - f->_IO_read_base;
  const int64_t at = (f->_flags & kEnd) != 0 ? position(h->stream) : f->_offset;
  const int64_t left = f->_IO_read_end - f->_IO_read_ptr;
  const int64_t may_be[] = {h->offset >= 0 && at >= 0 ? had + at - h->offset - left : 0,
                            f->_IO_read_end == h->end ? f->_IO_read_ptr - h->seen->read : 0,
                            had + used};
  for (size_t i = 0; i < sizeof may_be / sizeof *may_be; ++i)
    if (may_be[i] > 0 && may_be[i] >= length && may_be[i] < size && line[may_be[i]] == '\0')
      return may_be[i];
  const int64_t room = f->_IO_buf_end - f->_IO_buf_base;
  const int64_t last = (f->_flags & kEnd) != 0 && room != 0 && at > 0 ? (at - 1) % room + 1 : 0;
  if (last > 0 && had + last >= length && had + last < size && line[had + last] == '\0' &&
      memcmp(line + had, f->_IO_buf_base, (size_t)last) == 0)
    return had + last;
  return length != 0 ? length : 1;
}

/* Whether a call met an error, which not all say: fwrite() returns what it was told to write where
 * that filled the buffer, or ended a line, and the buffer is lost as it cannot be written. */
enum { kError = 0x20 }; /* _IO_ERR_SEEN */
static void no_error(struct held* h) {
  if (h->stream == NULL || (h->stream->_flags & kError) == 0) return;
  h->failed = kError;
  h->stream->_flags &= ~kError;
}
static int has_error(const struct held* h) {
  return h->stream != NULL && (h->stream->_flags & kError) != 0;
}

/* A stream without a buffer, or one that a line ends in, has been written, but for what comes after
 * its last line: a replay, which has neither lines nor such streams, writes it then. */
static void wrote(const struct held* h, FILE* stream, int64_t result) {
  if ((stream->_flags & (kUnbuffered | kByLine)) == 0 || descriptor(stream) < 0) return;
  size_t left = (size_t)(stream->_IO_write_ptr - stream->_IO_write_base);
  int some = result > 0;
  const struct _IO_wide_data* const w = wide(stream);
  if (w == NULL) {
    some = some && left < h->pending + (size_t)result;
  } else {
    /* All that came waits behind what waited. (Not all of it is looked at for each character.) */
    const wchar_t* const from = h->wide_base != NULL ? h->wide_end : w->write_base;
    const int moved = left != h->pending || w->write_ptr < from ||
                      (h->wide_base != NULL && h->wide_base != w->write_base);
    if (!moved && some && bytes_of(from, w->write_ptr) == (size_t)result) return;
    left += bytes_of(w->write_base, w->write_ptr);
  }
  if (left == 0 || some) record_bytes(stream, kFlushed, (int64_t)left);
}

/* It is about to be closed. */
static void leave(FILE* stream) {
  const struct held h = hold(stream);
  if (h.seen != NULL) __atomic_store_n(&h.seen->stream, NULL, __ATOMIC_RELAXED);
  if (h.stream != NULL) funlockfile(h.stream);
}

/* One that was opened: what was known of another one at its address is not its own. */
static void seen_now(FILE* stream) {
  struct seen* const s = stream != NULL ? seen_of(stream) : NULL;
  if (s != NULL) see(s);
}

/* ---- all streams: libc's own list
 * ------------------------------------------------------------------------------ */

struct iterator; /* _IO_ITER */
extern struct iterator* _IO_iter_begin(void);
extern struct iterator* _IO_iter_end(void);
extern struct iterator* _IO_iter_next(struct iterator*);
extern FILE* _IO_iter_file(struct iterator*);
extern void _IO_list_lock(void);
extern void _IO_list_unlock(void);

static int each_stream(int (*visit)(FILE*)) {
  int state, result = 0;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state); /* with libc's lock */
  _IO_list_lock();
  struct iterator* const end = _IO_iter_end();
  for (struct iterator* i = _IO_iter_begin(); i != end; i = _IO_iter_next(i))
    result |= visit(_IO_iter_file(i));
  _IO_list_unlock();
  pthread_setcancelstate(state, &state);
  return result;
}

/* As libc writes what a stream has: unlike fflush() it knows where in the file it is then. One that
 * is read from may be locked for long. */
static int flush_one(FILE* stream);

static int flush_lines_of(FILE* stream) {
  return (stream->_flags & kByLine) != 0 ? flush_one(stream) : 0;
}

/* Before libc fills the buffer of a stream that has none, or lines in it, it writes what standard
 * output has, if lines end that. */
static void lines_go_first(FILE* stream) {
  enum { kNoReads = 4 }; /* _IO_NO_READS */
  if ((stream->_flags & (kUnbuffered | kByLine)) == 0 ||
      (stream->_flags & (kEnd | kNoReads)) != 0 || stream->_mode > 0 ||
      stream->_IO_read_ptr != stream->_IO_read_end || stdout == NULL)
    return;
  const int e = errno;
  (void)flush_lines_of(stdout);
  errno = e;
}

/* fread() reads past a buffer that has no room for so much. */
static void lines_go_before(FILE* stream, size_t bytes) {
  const char* const base = stream->_IO_buf_base;
  if (bytes != 0 && bytes < (base != NULL ? (size_t)(stream->_IO_buf_end - base) : BUFSIZ))
    lines_go_first(stream);
}

/* One that a thread is reading from, or writing to, is left to libc, which waits for nobody. */
static int flush_free_one(FILE* stream) {
  if (ftrylockfile(stream) != 0) return 0;
  HOLD(stream); /* what was read from it by macros is recorded */
  funlockfile(stream);
  return flush_one(stream);
}

/* A fork's child has what was to be written, too, and writes it, too, if it comes to that. */
static int seen_by_child(FILE* stream) {
  struct seen* const s = seen_of(stream);
  if (s != NULL) s->write = stream->_IO_write_base;
  return 0;
}

static void child(void) { each_stream(seen_by_child); }
__attribute__((constructor)) static void start(void) { pthread_atfork(NULL, NULL, child); }
/* What libc writes as a program ends. */
__attribute__((destructor)) static void end(void) { each_stream(flush_free_one); }

#include "stdio_wrappers.inc"

/* As fread, fwrite and fflush are recorded. */
static void record_bytes(FILE* stream, enum what what, int64_t bytes) {
  static const unsigned char kOps[] = {OP_fread, OP_fwrite, OP_fflush};
  const int handle = descriptor(stream);
  struct feign_call call;
  struct feign_record record;
  feign_call_begin(&call);
  if (!feign_call_end(&call, &record, FEIGN_CAPTURE_OP(FEIGN_CAPTURE_STDIO, kOps[what]),
                      what != kFlushed ? bytes : 0, 0))
    return;
  if (bytes != 0) feign_put_length(&record, (uint64_t)bytes);
  if (what == kFlushed) feign_put_flags(&record, 1);
  feign_put_fd(&record, FEIGN_FIELD_HANDLE, handle);
  feign_record_end(&record);
}

static int flush_one(FILE* stream) {
  static int (*real)(FILE*, int);
  FIND(real, "__overflow");
  if (__fpending(stream) == 0) return 0;
  flockfile(stream); /* those without a descriptor, too, which HOLD() leaves */
  HOLD(stream);
  const int handle = descriptor(stream);
  struct feign_call call;
  struct feign_record record;
  feign_call_begin(&call);
  const int result = real(stream, EOF), e = errno;
  if (feign_call_end(&call, &record, FEIGN_CAPTURE_OP(FEIGN_CAPTURE_STDIO, OP_fflush),
                     result != EOF ? 0 : -e, 0)) {
    feign_put_flags(&record, 1);
    feign_put_fd(&record, FEIGN_FIELD_HANDLE, handle);
    feign_record_end(&record);
  }
  funlockfile(stream);
  errno = e;
  return result != EOF ? 0 : EOF;
}

/* Of a number's bytes; libc's own goes to a stream's buffer by no call that is seen. */
EXPORT int wrap_getw(FILE* stream) __asm__("getw");
int wrap_getw(FILE* stream) {
  int word;
  return wrap_fread(&word, sizeof word, 1, stream) == 1 ? word : EOF;
}
EXPORT int wrap_putw(int word, FILE* stream) __asm__("putw");
int wrap_putw(int word, FILE* stream) {
  return wrap_fwrite(&word, sizeof word, 1, stream) == 1 ? 0 : EOF;
}

/* error() and error_at_line() flush standard output by no call that is seen: it is flushed before.
 * Their arguments, which only they know how to find, stay where they are; nor is a thread cancelled
 * in them. */
__attribute__((used)) static void* before_error(int at_line) {
  static void* real[2];
  FIND(real[at_line], at_line ? "error_at_line" : "error");
  int state;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
  if (stdout != NULL) {
    HOLD(stdout);
    if (__fpending(stdout) != 0) (void)fflush(stdout);
  }
  pthread_setcancelstate(state, &state);
  return real[at_line];
}
#define FLUSHES_FIRST(name, at_line)                                 \
  __asm__(".text\n.globl " name "\n.type " name ", @function\n" name \
          ":\n"                                                      \
          "  .cfi_startproc\n  endbr64\n"                            \
          "  push %rax\n  push %rdi\n  push %rsi\n  push %rdx\n"     \
          "  push %rcx\n  push %r8\n  push %r9\n  sub $128, %rsp\n"  \
          "  .cfi_adjust_cfa_offset 184\n"                           \
          "  movups %xmm0, (%rsp)\n  movups %xmm1, 16(%rsp)\n"       \
          "  movups %xmm2, 32(%rsp)\n  movups %xmm3, 48(%rsp)\n"     \
          "  movups %xmm4, 64(%rsp)\n  movups %xmm5, 80(%rsp)\n"     \
          "  movups %xmm6, 96(%rsp)\n  movups %xmm7, 112(%rsp)\n"    \
          "  mov $" at_line                                          \
          ", %edi\n  call before_error\n  mov %rax, %r11\n"          \
          "  movups (%rsp), %xmm0\n  movups 16(%rsp), %xmm1\n"       \
          "  movups 32(%rsp), %xmm2\n  movups 48(%rsp), %xmm3\n"     \
          "  movups 64(%rsp), %xmm4\n  movups 80(%rsp), %xmm5\n"     \
          "  movups 96(%rsp), %xmm6\n  movups 112(%rsp), %xmm7\n"    \
          "  add $128, %rsp\n  pop %r9\n  pop %r8\n  pop %rcx\n"     \
          "  pop %rdx\n  pop %rsi\n  pop %rdi\n  pop %rax\n"         \
          "  .cfi_adjust_cfa_offset -184\n  jmp *%r11\n"             \
          "  .cfi_endproc\n.size " name ", . - " name "\n")
FLUSHES_FIRST("error", "0");
FLUSHES_FIRST("error_at_line", "1");

/* The rest of a stream that popen() made; no file. */
EXPORT int wrap_pclose(FILE* stream) __asm__("pclose");
int wrap_pclose(FILE* stream) {
  static int (*real)(FILE*);
  FIND(real, "pclose");
  leave(stream);
  return real(stream);
}
