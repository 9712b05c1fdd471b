/* SPDX-License-Identifier: MIT */
/* A conversion of the program's own, which libc gives streams without a lock. */
#include <printf.h>
#include <stdio.h>

static int prints(FILE* f, const struct printf_info* how, const void* const* args) {
  (void)how;
  return fprintf(f, "<%d>", *(const int*)args[0]);
}
static int takes(const struct printf_info* how, size_t count, int* types, int* sizes) {
  (void)how;
  if (count > 0) types[0] = PA_INT, sizes[0] = sizeof(int);
  return 1;
}

int main(void) {
  char text[20];
  register_printf_specifier('W', prints, takes);
  snprintf(text, sizeof text, "%W and %W", 1, 2);
  FILE* f = fopen("printed", "w");
  fprintf(f, "%s %W\n", text, 3);
  setbuf(f, NULL), fprintf(f, "%W\n", 4);
  fclose(f);
  return 0;
}
