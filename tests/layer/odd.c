/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "odd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct odd_thing {
  int fd;
  char name[64];
};
static int64_t cursors[16];
static char used[16];

int odd_new(const char* path, const struct odd_options* o, odd_thing** result) {
  if (o->flags != ODD_BOTH || o->depth != -7 || strcmp(o->comment, "well") != 0) return -EINVAL;
  const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return -errno;
  *result = calloc(1, sizeof **result);
  (*result)->fd = fd;
  strcpy((*result)->name, "a thing");
  return 0;
}
int odd_free(odd_thing** a) {
  close((*a)->fd);
  free(*a);
  *a = NULL;
  return 0;
}
int odd_cursor(odd_thing* c, int64_t from) {
  (void)c;
  for (int i = 0; i < 16; ++i)
    if (!used[i]) {
      used[i] = 1;
      cursors[i] = from;
      return i;
    }
  return -EMFILE;
}
int odd_cursor_close(int cursor) {
  if (cursor < 0 || !used[cursor]) return -EBADF;
  used[cursor] = 0;
  return 0;
}
long odd_read(odd_thing* r, int cursor, void* data, size_t size, size_t count,
              void (*progress)(void*, int)) {
  if (progress != NULL) progress(NULL, 1);
  if (size == 0) {
    errno = EDOM;
    return -1;
  }
  const ssize_t n = pread(r->fd, data, size * count, cursors[cursor]);
  if (n > 0) cursors[cursor] += n;
  return n;
}
_Bool odd_write(odd_thing* call, const char data[], unsigned e) {
  if (e == 13) {
    errno = ENOTUNIQ;
    return 0;
  }
  return write(call->fd, data, e) == (ssize_t)e;
}
int odd_vlog(odd_thing* self, const char* format, va_list list) {
  return vdprintf(self->fd, format, list);
}
int odd_log(odd_thing* self, const char* format, ...) {
  va_list list;
  va_start(list, format);
  const int n = odd_vlog(self, format, list);
  va_end(list);
  return n;
}
int odd_rename(const char* from, const char* to, unsigned short mode, unsigned flags) {
  if (mode != 0640 || flags != 16) return EINVAL;
  return rename(from, to) == 0 ? 0 : errno;
}
const char* odd_name(const odd_thing* self, char room[64], size_t length) {
  (void)length;
  return strcpy(room, self->name);
}
int odd_tell(odd_thing* self, uint64_t* position) {
  *position = (uint64_t)lseek(self->fd, 0, SEEK_CUR);
  return 0;
}
void odd_tick(unsigned long long layer) { (void)layer; }
void odd_tick64(unsigned long long layer) { (void)layer; }
unsigned odd_version(void) { return 4000000000u; }
void* odd_private(struct odd_options options) { return options.flags != 0 ? cursors : NULL; }
long odd_where(odd_thing* self) { return lseek(self->fd, 0, SEEK_CUR); }
int odd_skip(odd_thing* self, long by) {
  if (by > 1000) {
    errno = ERANGE;
    return -1;
  }
  return lseek(self->fd, by, SEEK_CUR) < 0 ? -1 : 0;
}
