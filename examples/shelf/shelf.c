/* SPDX-License-Identifier: MIT */
/* libshelf over POSIX: a file of records, each 8 bytes of size and its bytes. Where they begin is
 * found out as a shelf is opened. One thread at a time uses a shelf. */
#define _GNU_SOURCE
#include "shelf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct shelf {
  int fd, sync;
  uint64_t end, bytes, count, room;
  uint64_t* places; /* of the records */
  char label[32];
};

static int placed(shelf* s, uint64_t size) {
  if (s->count == s->room) {
    const uint64_t room = s->room != 0 ? 2 * s->room : 64;
    uint64_t* more = realloc(s->places, room * sizeof *more);
    if (more == NULL) return -1;
    s->places = more;
    s->room = room;
  }
  s->places[s->count++] = s->end;
  s->bytes += size;
  s->end += sizeof size + size;
  return 0;
}

static shelf* failed(shelf* s) {
  const int e = errno;
  if (s != NULL) {
    if (s->fd >= 0) close(s->fd);
    free(s->places);
    free(s);
  }
  errno = e;
  return NULL;
}

shelf* shelf_open(const char* path, int flags) {
  shelf* s = calloc(1, sizeof *s);
  if (s == NULL) return NULL;
  s->sync = (flags & SHELF_SYNC) != 0;
  s->fd = open(path,
               O_CLOEXEC | ((flags & SHELF_READ_ONLY) ? O_RDONLY : O_RDWR) |
                   ((flags & SHELF_CREATE) ? O_CREAT : 0) | ((flags & SHELF_EMPTY) ? O_TRUNC : 0) |
                   ((flags & SHELF_EXCLUSIVE) ? O_EXCL : 0),
               0644);
  if (s->fd < 0) return failed(s);
  uint64_t size;
  ssize_t n;
  while ((n = pread(s->fd, &size, sizeof size, (off_t)s->end)) == sizeof size)
    if (placed(s, size) != 0) return failed(s);
  return n < 0 ? failed(s) : s;
}

int shelf_close(shelf* s) {
  const int result = close(s->fd);
  free(s->places);
  free(s);
  return result;
}

ssize_t shelf_append(shelf* s, const void* data, size_t size, uint64_t* number) {
  const uint64_t head = size;
  if (pwrite(s->fd, &head, sizeof head, (off_t)s->end) != sizeof head) return -1;
  if (pwrite(s->fd, data, size, (off_t)(s->end + sizeof head)) != (ssize_t)size) return -1;
  if (s->sync && fdatasync(s->fd) != 0) return -1;
  if (placed(s, size) != 0) return -1;
  if (number != NULL) *number = s->count - 1;
  return (ssize_t)size;
}

ssize_t shelf_read(shelf* s, uint64_t number, void* data, size_t room) {
  if (number >= s->count) {
    errno = ENOENT;
    return -1;
  }
  const uint64_t next = number + 1 < s->count ? s->places[number + 1] : s->end;
  const uint64_t at = s->places[number] + sizeof next, size = next - at;
  return pread(s->fd, data, size < room ? size : room, (off_t)at);
}

int shelf_count(shelf* s, enum shelf_what what, uint64_t* count) {
  *count = what == SHELF_BYTES ? s->bytes : s->count;
  return 0;
}

int shelf_label(shelf* s, const char* label) {
  if (strlen(label) >= sizeof s->label) return ENAMETOOLONG;
  strcpy(s->label, label);
  return 0;
}

const char* shelf_label_of(const shelf* s) { return s->label; }

int shelf_flush(shelf* s) { return fsync(s->fd); }

shelf* shelf_copy(shelf* s, const char* path, int flags) {
  shelf* to = shelf_open(path, flags);
  char* data = NULL;
  for (uint64_t i = 0; to != NULL && i < s->count; ++i) {
    const uint64_t next = i + 1 < s->count ? s->places[i + 1] : s->end;
    const size_t size = (size_t)(next - s->places[i] - sizeof next);
    char* more = realloc(data, size != 0 ? size : 1);
    if (more != NULL) data = more;
    if (more == NULL || shelf_read(s, i, data, size) < 0 || shelf_append(to, data, size, NULL) < 0)
      to = failed(to);
  }
  free(data);
  return to;
}

int shelf_remove(const char* path) { return unlink(path); }
