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

/* What open(2) would be told. */
static uint32_t mode_flags(const char* mode) {
  const int plus = strchr(mode, '+') != NULL;
  uint32_t flags = (uint32_t)(plus ? O_RDWR : mode[0] == 'r' ? O_RDONLY : O_WRONLY);
  if (mode[0] == 'w') flags |= O_CREAT | O_TRUNC;
  if (mode[0] == 'a') flags |= O_CREAT | O_APPEND;
  if (strchr(mode, 'x') != NULL) flags |= O_EXCL;
  if (strchr(mode, 'e') != NULL) flags |= O_CLOEXEC;
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

/* ---- all streams: libc's own list
 * ------------------------------------------------------------------------------ */

struct iterator; /* _IO_ITER */
extern struct iterator* _IO_iter_begin(void);
extern struct iterator* _IO_iter_end(void);
extern struct iterator* _IO_iter_next(struct iterator*);
extern FILE* _IO_iter_file(struct iterator*);
extern void _IO_list_lock(void);
extern void _IO_list_unlock(void);

static void each_stream(void (*visit)(FILE*)) {
  int state;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state); /* with libc's lock */
  _IO_list_lock();
  struct iterator* const end = _IO_iter_end();
  for (struct iterator* i = _IO_iter_begin(); i != end; i = _IO_iter_next(i))
    visit(_IO_iter_file(i));
  _IO_list_unlock();
  pthread_setcancelstate(state, &state);
}

static void flush_one(FILE* stream) {
  if (__fpending(stream) != 0) fflush(stream);
}
/* One that a thread is reading from, or writing to, is left to libc, which waits for nobody then. */
static void flush_free_one(FILE* stream) {
  if (ftrylockfile(stream) != 0) return;
  flush_one(stream);
  funlockfile(stream);
}

/* What libc writes as a program ends. */
__attribute__((destructor)) static void end(void) { each_stream(flush_free_one); }

#include "stdio_wrappers.inc"
