/* SPDX-License-Identifier: MIT */
/* libc's streams: formatted, by character, by line, by block; positions, buffers, and what is
 * flushed at the end. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(void) {
  FILE* f = fopen("a", "w+");
  for (int i = 0; i < 3000; ++i) fprintf(f, "line %d\n", i);
  fputs("text", f), fputc('y', f), fflush(f);
  char bytes[100];
  rewind(f);
  if (fgets(bytes, sizeof bytes, f) == NULL || fread(bytes, 1, 50, f) != 50) return 1;
  fseek(f, 100, SEEK_SET);
  if (ftell(f) != 100) return 1;
  fgetc(f), fclose(f);
  f = fopen("a", "a");
  fwrite("append", 2, 3, f);
  f = freopen("b", "w", f);
  fwrite("zz", 1, 2, f);
  if (fopen("missing", "r") != NULL) return 1;
  char* line = NULL;
  size_t room = 0;
  FILE* g = fopen("a", "r");
  while (getline(&line, &room, g) > 0) {
  }
  fclose(g);
  FILE* t = tmpfile();
  fputs("t", t), fclose(t);
  remove("nothing");
  fputs("unflushed", f);
  return 0;
}
