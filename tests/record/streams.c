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
  int number;
  fseek(g, 0, SEEK_SET);
  if (fscanf(g, "%d", &number) != 0 || fgetc(g) != 'l') return 1; /* it reads nothing */
  fseek(g, 0, SEEK_SET);
  for (int c; (c = fgetc(g)) != EOF;) /* what is put back is read once more */
    if (ungetc(c, g) != c || fread(bytes, 1, sizeof bytes, g) == 0) return 1;
  if (ftell(g) < 3000) return 1;
  fclose(g);
  FILE* none = fopen("/dev/null", "w"); /* no file, nor what it becomes */
  fputs("x", none), fclose(none);
  none = freopen("/dev/null", "r", fopen("b", "r"));
  fclose(none);
  none = popen("exit 3", "r");
  if (none == NULL || pclose(none) != 3 << 8) return 1;
  FILE* t = tmpfile();
  fputs("t", t), fclose(t);
  FILE* twice = fopen("c", "w"); /* its descriptor is left, the stream and its buffer are not */
  const int left = dup(fileno(twice));
  fputs("four", twice), fclose(twice);
  twice = fopen("c", "r");
  if (fread(bytes, 1, sizeof bytes, twice) != 4) return 1;
  fclose(twice), close(left);
  twice = fopen("d", "w"); /* the same file once more, without a buffer */
  fputs("five.", twice);
  twice = freopen(NULL, "a", twice);
  setbuf(twice, NULL), fputs("nine\n", twice);
  FILE* other = fopen("d", "r");
  if (fread(bytes, 1, sizeof bytes, other) != 10) return 1;
  fclose(other), fclose(twice);
  remove("nothing");
  fputs("unflushed", f);
  return 0;
}
