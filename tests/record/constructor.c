/* SPDX-License-Identifier: MIT */
/* A library that writes a file before the program's main. */
#include <stdio.h>

static void __attribute__((constructor)) start(void) {
  FILE* f = fopen("a", "w");
  if (f == 0) return;
  fputs("a", f);
  fclose(f);
}
