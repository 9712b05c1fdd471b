/* SPDX-License-Identifier: MIT */
/* Wide characters in streams, and calls that are seldom made. */
#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <wchar.h>

int main(void) {
  if (setlocale(LC_ALL, "C.UTF-8") == NULL) return 77;
  FILE* f = fopen("wide", "w+");
  for (int i = 0; i < 3000; ++i) fputwc(L'\u00e4', f);
  fputws(L"\u20ac and more\n", f);
  fwprintf(f, L"%ls %d\n", L"\u20ac", 12345);
  fseek(f, 0, SEEK_SET);
  for (int i = 0; i < 3000; ++i)
    if (fgetwc(f) != L'\u00e4') return 1;
  if (ungetwc(L'\u00e4', f) != L'\u00e4' || ftell(f) != 5998 || fgetwc(f) != L'\u00e4') return 1;
  wchar_t line[100];
  int number = 0;
  if (fgetws(line, 100, f) == NULL || fwscanf(f, L"%ls %d", line, &number) != 2 || number != 12345)
    return 1;
  fclose(f);

  fpos_t middle;
  f = fopen("twice", "w");
  fputs("01234", f), fgetpos(f, &middle), fputs("56789", f);
  fsetpos(f, &middle), fputs("5", f); /* shorter by what follows it */
  fflush(f);
  fseek(f, 0, SEEK_END), fputs("end", f);
  fsetpos(f, &middle), fputs("and more than that", f);
  fclose(f);
  if (freopen("twice", "r", stdin) == NULL || scanf("%5d", &number) != 1 || number != 1234)
    return 1;
  if (freopen("shown", "w", stdout) == NULL) return 1;
  for (int c; (c = getchar()) != EOF;) putchar(c);

  const int plain = open("appended", O_CREAT | O_RDWR, 0600); /* by what fdopen does */
  if (write(plain, "before", 6) != 6 || lseek(plain, 2, SEEK_SET) != 2) return 1;
  if (fdopen(1234, "a") != NULL || (f = fdopen(plain, "a")) == NULL) return 1;
  fputs("after", f), fclose(f);

  static const char kZeros[] = "ab\0cd\n\0\0ef\ng\n\0";
  f = fopen("zeros", "w+");
  for (int i = 0; i < 1000; ++i) fwrite(kZeros, 1, sizeof kZeros, f);
  rewind(f);
  for (char zeros[64]; fgets(zeros, sizeof zeros, f) != NULL;) {
  }
  fclose(f);

  static const size_t kBefore[] = {0, 4093, 4096}; /* what comes before the last line */
  for (int i = 0; i < 3; ++i) {
    char last[64] = "";
    f = fopen("last", "w+");
    for (size_t j = 1; j < kBefore[i]; ++j) fputc('-', f);
    if (kBefore[i] != 0) fputc('\n', f);
    fwrite("la\0st", 1, 5, f);
    fclose(f);
    f = fopen("last", "r");
    for (char all[5000]; kBefore[i] != 0 && fgets(all, sizeof all, f) != NULL;) break;
    if (fgets(last, sizeof last, f) == NULL || ftell(f) != (long)kBefore[i] + 5) return 1;
    fseek(f, -4, SEEK_CUR); /* so that a fill is no whole buffer */
    if (fgets(last, sizeof last, f) == NULL || ftell(f) != (long)kBefore[i] + 5) return 1;
    fclose(f);
  }
  return 0;
}
