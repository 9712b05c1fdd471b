/* SPDX-License-Identifier: MIT */
/* The stdio layer: symbol wrappers of libc's streams, made from layers/stdio.h. The system calls
 * that a stream makes lie in its calls. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
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

#include "stdio_wrappers.inc"

/* What libc writes as a program ends is what a replay writes when it gives the streams up. */
__attribute__((destructor)) static void flush(void) { fflush(NULL); }
