/* SPDX-License-Identifier: MIT */
/* Is recorded only from where it has a shelf open. usage: late FILE */
#include <feign_record.h>

#include "shelf.h"

int main(int argc, char** argv) {
  if (argc < 2) return 1;
  shelf* s = shelf_open(argv[1], SHELF_CREATE);
  feign_record_resume();
  return s == NULL || shelf_append(s, "x", 1, NULL) != 1 || shelf_close(s) != 0;
}
