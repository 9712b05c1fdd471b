/* SPDX-License-Identifier: MIT */
/* Calls every function of odd.h, in a directory. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "odd.h"

static void progress(void* of, int i) { (void)of, (void)i; }

int main(int argc, char** argv) {
  if (argc < 2 || chdir(argv[1]) != 0) return 1;
  const struct odd_options options = {ODD_BOTH, -7, "well"}, wrong = {0, 0, NULL};
  odd_thing *one = NULL, *two = NULL;
  char room[64], data[300];
  uint64_t position = 0;
  memset(data, 'x', sizeof data);
  if (odd_new("one", &wrong, &one) != -EINVAL) return 2;
  if (odd_new("no/one", &options, &one) != -ENOENT) return 3;
  if (odd_new("one", &options, &one) != 0 || odd_new("two", &options, &two) != 0) return 4;
  if (!odd_write(one, data, 300) || odd_write(one, data, 13) || errno != ENOTUNIQ) return 5;
  if (odd_log(two, "this has %d", 17) != 11) return 6;
  const int a = odd_cursor(one, 100), b = odd_cursor(two, 0);
  if (a != 0 || b != 1) return 7;
  if (odd_read(one, a, data, 10, 15, progress) != 150 || odd_read(one, a, data, 100, 1, NULL) != 50)
    return 8;
  if (odd_read(two, b, data, 3, 1, NULL) != 3 || odd_read(two, b, data, 0, 1, NULL) != -1) return 9;
  if (odd_cursor_close(a) != 0 || odd_cursor_close(-1) != -EBADF) return 10;
  if (strcmp(odd_name(one, room, 64), "a thing") != 0) return 11;
  if (odd_tell(one, &position) != 0 || position != 300) return 12;
  if (odd_skip(one, 20) != 0 || odd_skip(one, 2000) != -1) return 13;
  odd_tick(1);
  odd_tick64(1ull << 63);
  if (odd_version() != 4000000000u || odd_private(options) == NULL) return 14;
  if (odd_rename("two", "three", 0640, 16) != 0 || odd_rename("two", "x", 0640, 16) != ENOENT)
    return 15;
  if (odd_free(&one) != 0 || one != NULL) return 16;
  return 0; /* two and a cursor stay open */
}
