/* SPDX-License-Identifier: MIT */
/* libc's streams whose bytes do not go where they should: files that may have 1000 bytes, a device
 * that is full; and what else loses a buffer. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <wchar.h>

static void may_have(rlim_t most) {
  const struct rlimit limit = {most, 1000000};
  setrlimit(RLIMIT_FSIZE, &limit);
}

static FILE* with(const char* name, int bytes) {
  FILE* const f = fopen(name, "w+");
  for (; bytes > 0; bytes -= 10) fputs("0123456789", f);
  return f;
}

int main(void) {
  static char bytes[10000];
  const char* const volatile nothing = "";
  signal(SIGXFSZ, SIG_IGN);
  may_have(1000);
  FILE* f = with("flush", 3000);
  if (fflush(f) != EOF || errno != EFBIG || ftell(f) != 1000 || !ferror(f) || fclose(f) != 0)
    return 1;
  f = with("all", 3000);
  if (fflush(NULL) != EOF || errno != EFBIG || fflush(NULL) != 0 || fclose(f) != 0) return 2;
  f = with("close", 3000);
  if (fclose(f) != EOF || errno != EFBIG) return 3;
  fclose(with("more than a buffer", 9000));
  f = with("full buffer", 0);
  for (int i = 0; i < 9; ++i) (void)!fwrite(bytes, 1, 1024, f);
  fclose(f);
  f = with("no buffer", 0), setbuf(f, NULL);
  for (int i = 0; i < 300; ++i) fprintf(f, "%d\n", i);
  fclose(f);
  f = with("lines", 0), setlinebuf(f); /* fwrite() says that it wrote them */
  for (int i = 0; i < 300; ++i)
    if (fwrite("012345678\n", 1, 10, f) != 10) return 4;
  fclose(f);
  f = with("long", 30), fwrite(bytes, 1, sizeof bytes, f), fprintf(f, "%d", 5), fclose(f);
  f = with("seek", 2000);
  if (fseek(f, 0, SEEK_SET) == 0) return 5;
  fputs("front", f), fclose(f);
  f = with("rewind", 2000), rewind(f), fputs("front", f), fclose(f);
  f = with("read", 2000);
  if (fgetc(f) != EOF) return 6;
  fclose(f);
  f = with("set", 2000), setbuf(f, bytes), fclose(f);
  f = freopen("anew", "w", with("before", 2000)), fputs("text", f), fclose(f);
  f = with("told", 30); /* libc knows where it is, and goes on from there */
  if (ftell(f) != 30) return 7;
  fwrite(bytes, 1, 2000, f), fflush(f);
  fseek(f, -5, SEEK_CUR);
  if (ftell(f) != 995) return 8;
  fputs("end", f), fclose(f);
  f = with("nothing", 100), fprintf(f, "%s%s", nothing, nothing), fclose(f); /* is lost by it */
  f = with("room", 2000), fflush(f);
  may_have(1000000), fputs("again", f), fclose(f);
  if (fread(bytes, 1, sizeof bytes, f = fopen("room", "r")) != 1005) return 9;
  fclose(f);
  f = fopen("/dev/full", "w");
  if (fputs("x", f) < 0 || fclose(f) != EOF || errno != ENOSPC) return 10;
  f = with("purge", 100), __fpurge(f), fputs("kept", f), fclose(f);
  f = fopen("conversion", "w");
  if (fprintf(f, "some%lc", (wint_t)0x20ac) >= 0) return 11; /* of what was written before it */
  fputs("more", f), fclose(f);
  f = with("too many", 100);
  const struct rlimit few = {3, 100};
  setrlimit(RLIMIT_NOFILE, &few);
  if (freopen("not made", "w", f) != NULL) return 12;
  return 0;
}
