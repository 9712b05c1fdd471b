/* SPDX-License-Identifier: MIT */
/* What macros and libc itself do to the buffers of streams, without a call; and what a fork's child
 * has in its own. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
  char bytes[100];
  FILE* f = fopen("a", "w+");
  for (int i = 0; i < 10000; ++i) putc_unlocked('a' + i % 26, f);
  fputs("by a call", f);
  for (int i = 0; i < 10; ++i) putc_unlocked('x', f);
  fseek(f, 5, SEEK_SET);
  for (int i = 0; i < 5000; ++i)
    if (getc_unlocked(f) != 'a' + (i + 5) % 26) return 1;
  if (ftell(f) != 5005 || fread(bytes, 1, 10, f) != 10 || bytes[0] != 'a' + 5005 % 26) return 1;
  for (int i = 0; i < 3; ++i)
    if (getc_unlocked(f) == EOF) return 1;
  ungetc('!', f);
  if (getc_unlocked(f) != '!') return 1;
  fseek(f, 0, SEEK_CUR); /* from reading to writing */
  for (int i = 0; i < 3; ++i) putc_unlocked('y', f);
  fclose(f);
  f = fopen("a", "r");
  FILE* g = fopen("b", "w");
  for (int c; (c = getc_unlocked(f)) != EOF;) putc_unlocked(c, g);
  fclose(f);
  f = fopen("left", "w"); /* written with all others */
  putc_unlocked('1', f), putc_unlocked('2', f);
  freopen("shown", "w", stdout);
  printf("shown"); /* by one that was told no call of its own yet */
  putchar_unlocked('\n');
  freopen("said", "w", stderr); /* by libc itself; it has a buffer now */
  perror("a");
  fflush(NULL);
  f = fopen("both", "w");
  fputs("of both ", f), putc_unlocked('.', f);
  if (fork() == 0) fputs("the child's", f), exit(0);
  wait(NULL);
  fputs("the parent's", f), fclose(f);
  f = fopen("before", "w"); /* its buffer goes to what is on its descriptor then */
  fputs("early", f);
  const int other = open("after", O_CREAT | O_WRONLY, 0600);
  dup2(other, fileno(f)), close(other), fputs("late", f), fclose(f);
  freopen("unbuffered", "w", stderr), setbuf(stderr, NULL);
  fputs("kept", stderr), fputc('.', stderr);
  f = fopen("lines", "w");
  setlinebuf(f), fputs("one\n", f), putc_unlocked('\n', f), fputs("lost", f);
  if (fork() == 0) { /* what a process has in its buffers when it ends otherwise is lost */
    f = fopen("killed", "w");
    fputs("lost", f), raise(SIGKILL);
  }
  wait(NULL);
  f = fopen("kept", "w");
  fputs("kept", f), fflush(f), fputs("lost", f);
  close(fileno(f));
  f = fopen("empty", "w");
  fputs("lost", f), _exit(0);
}
