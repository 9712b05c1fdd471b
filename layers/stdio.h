/* SPDX-License-Identifier: MIT */
/*
 * The stdio layer: libc's streams (stdio(3)), in the language of posix.h.
 *
 * A stream goes by the descriptor behind it, as fileno(3) tells it: `fd` is a FILE *. A tracer that
 * does not know descriptors makes numbers up, one for each open stream. Lengths and results of data
 * calls are bytes, not items; results are negative errno values for failures, as in every layer; and
 * where the end of the file was met without a byte, 0. A character has length 1; what is read or
 * written by format, or read up to some character, the length that it came to, and 1 for none; and
 * one more where that was the end of the file. An fflush with a flag is what libc wrote by itself,
 * where a stream has no buffer, or a line ends in it, or it writes all; its length is what stays to
 * be written.
 *
 * For the capture library (made by layers/captures.py):
 *   //@ capture KEY=EXPRESSION …   what a wrapper keeps that is not a parameter: fd, fd2, length, flags, offset, path;
 *                                  result (r is what was returned, e is errno then), call (of a variadic one);
 *                                  stream: of a call that has no FILE * among its parameters;
 *                                  before: what a number of that name is; first: what is done before it begins;
 *                                  return: what the program gets, if not r; arguments: what the library's own is given,
 *                                  if not what the program gave
 *   //@ capture none               no wrapper: it does no I/O
 *   //@ variant PROTOTYPE | KEY=EXPRESSION …   the same under another prototype, with the op's own expressions where it
 *                                  has none; behind the op's own
 */
//@ layer stdio "libc's streams"

//@ names open O_WRONLY O_RDWR O_CREAT O_EXCL O_TRUNC O_APPEND O_CLOEXEC O_RDONLY=0
//@ names whence SEEK_SET SEEK_CUR SEEK_END
//@ names buffering _IOFBF=0 _IOLBF=1 _IONBF=2

// ---- open and close: flags are what the mode string means to open(2) ------------------------------

//@ op 1 fopen kind=open effect=fopen result=fd
//@ args path flags:open
//@ replay c.fopen(a)
//@ capture flags=mode_flags(mode) result="r != NULL ? fileno(r) : -e"
FILE *fopen(const char *pathname, const char *mode);

//@ op 2 fdopen kind=other effect=fdopen result=any
//@ args fd flags:open
//@ replay c.fdopen(a)
//@ capture flags=mode_flags(mode) result="r != NULL ? 0 : -e"
FILE *fdopen(int fd, const char *mode);

//@ op 3 freopen kind=open effect=freopen result=fd
//@ args path flags:open fd2
//@ replay c.freopen(a)
//@ capture first="flush_one(stream)" flags=mode_flags(mode) result="r != NULL ? fileno(r) : -e"
FILE *freopen(const char *pathname, const char *mode, FILE *stream);

//@ op 4 tmpfile kind=open effect=tmpfile result=fd
//@ args
//@ replay c.fopen(a)
//@ capture result="r != NULL ? fileno(r) : -e"
FILE *tmpfile(void);

//@ op 5 fclose kind=close effect=close result=zero
//@ args fd
//@ replay c.fclose(a)
//@ capture result="r == 0 ? 0 : -e"
int fclose(FILE *stream);

// ---- data -----------------------------------------------------------------------------------------

//@ op 10 fread kind=read effect=read result=bytes
//@ args buf - length fd
//@ replay c.fread(a)
//@ capture arguments="ptr, 1, size * bytes, stream" first="lines_go_before(stream, size * bytes)" length="size * bytes" result="r != 0 || !ferror(stream) ? r : -e" return="items(r, size, bytes)"
size_t fread(void *ptr, size_t size, size_t bytes, FILE *stream);
//@ variant size_t __fread_chk(void *ptr, size_t room, size_t size, size_t bytes, FILE *stream) | arguments="ptr, room, 1, most(size, bytes), stream"
//@ variant size_t __fread_unlocked_chk(void *ptr, size_t room, size_t size, size_t bytes, FILE *stream) | arguments="ptr, room, 1, most(size, bytes), stream"

//@ op 11 fwrite kind=write effect=write result=bytes
//@ args buf - length fd
//@ replay c.fwrite(a)
//@ capture arguments="ptr, 1, size * bytes, stream" length="size * bytes" result="r != 0 || size * bytes == 0 ? r : -e" return="items(r, size, bytes)"
size_t fwrite(const void *ptr, size_t size, size_t bytes, FILE *stream);

//@ op 12 fgetc kind=read effect=read result=bytes
//@ args fd
//@ replay c.gets(a)
//@ capture first="lines_go_first(stream)" length=1 result="r != EOF ? 1 : ferror(stream) ? -e : 0"
int fgetc(FILE *stream);
//@ variant int __uflow(FILE *stream)
//@ variant int _IO_getc(FILE *stream)
//@ variant int getchar(void) | stream=stdin
//@ variant int getchar_unlocked(void) | stream=stdin
//@ variant wint_t fgetwc(FILE *stream) | result="r != WEOF ? character_bytes(r) : ferror(stream) ? -e : 0" length="result > 0 ? result : 1"
//@ variant wint_t fgetwc_unlocked(FILE *stream) | result="r != WEOF ? character_bytes(r) : ferror(stream) ? -e : 0" length="result > 0 ? result : 1"
//@ variant wint_t getwc(FILE *stream) | result="r != WEOF ? character_bytes(r) : ferror(stream) ? -e : 0" length="result > 0 ? result : 1"
//@ variant wint_t getwc_unlocked(FILE *stream) | result="r != WEOF ? character_bytes(r) : ferror(stream) ? -e : 0" length="result > 0 ? result : 1"
//@ variant wint_t getwchar(void) | stream=stdin result="r != WEOF ? character_bytes(r) : ferror(stream) ? -e : 0" length="result > 0 ? result : 1"
//@ variant wint_t getwchar_unlocked(void) | stream=stdin result="r != WEOF ? character_bytes(r) : ferror(stream) ? -e : 0" length="result > 0 ? result : 1"

//@ op 13 fgets kind=read effect=read result=bytes
//@ args buf - fd
//@ replay c.gets(a)
//@ capture first="lines_go_first(stream)" length="result > 0 ? result + at_end(stream) : r == NULL && size > 0" result="r != NULL ? line_bytes(&held, r, size) : ferror(stream) ? -e : 0"
char *fgets(char *s, int size, FILE *stream);
//@ variant char *__fgets_chk(char *s, size_t room, int size, FILE *stream)
//@ variant char *__fgets_unlocked_chk(char *s, size_t room, int size, FILE *stream)
//@ variant wchar_t *fgetws(wchar_t *s, int size, FILE *stream) | result="r != NULL ? text_bytes(r) : ferror(stream) ? -e : 0" length="result > 0 ? result + at_end(stream) : r == NULL && size > 0"
//@ variant wchar_t *fgetws_unlocked(wchar_t *s, int size, FILE *stream) | result="r != NULL ? text_bytes(r) : ferror(stream) ? -e : 0" length="result > 0 ? result + at_end(stream) : r == NULL && size > 0"
//@ variant wchar_t *__fgetws_chk(wchar_t *s, size_t room, int size, FILE *stream) | result="r != NULL ? text_bytes(r) : ferror(stream) ? -e : 0" length="result > 0 ? result + at_end(stream) : r == NULL && size > 0"
//@ variant wchar_t *__fgetws_unlocked_chk(wchar_t *s, size_t room, int size, FILE *stream) | result="r != NULL ? text_bytes(r) : ferror(stream) ? -e : 0" length="result > 0 ? result + at_end(stream) : r == NULL && size > 0"

//@ op 14 getline kind=read effect=read result=bytes
//@ args buf - fd
//@ replay c.gets(a)
//@ capture first="lines_go_first(stream)" length="r > 0 ? r + at_end(stream) : 1" result="r > 0 ? r : nothing_read(stream, e)"
ssize_t getline(char **lineptr, size_t *n, FILE *stream);
//@ variant ssize_t getdelim(char **lineptr, size_t *n, int delimiter, FILE *stream)
//@ variant ssize_t __getdelim(char **lineptr, size_t *n, int delimiter, FILE *stream)

//@ op 15 fscanf kind=read effect=read result=bytes
//@ args fd - -
//@ replay c.gets(a)
//@ capture first="lines_go_first(stream)" before=position(stream) result="scanned(stream, before, r, e)" length="result > 0 ? result + at_end(stream) : at_end(stream)" call="vfscanf(stream, format, list)"
int fscanf(FILE *stream, const char *format, ...);
//@ variant int __isoc99_fscanf(FILE *stream, const char *format, ...) | call="__isoc99_vfscanf(stream, format, list)"
//@ variant int vfscanf(FILE *stream, const char *format, va_list list)
//@ variant int __isoc99_vfscanf(FILE *stream, const char *format, va_list list)
//@ variant int __isoc23_fscanf(FILE *stream, const char *format, ...) | call="__isoc23_vfscanf(stream, format, list)"
//@ variant int __isoc23_vfscanf(FILE *stream, const char *format, va_list list)
//@ variant int scanf(const char *format, ...) | stream=stdin call="vscanf(format, list)"
//@ variant int vscanf(const char *format, va_list list) | stream=stdin
//@ variant int __isoc99_scanf(const char *format, ...) | stream=stdin call="__isoc99_vscanf(format, list)"
//@ variant int __isoc99_vscanf(const char *format, va_list list) | stream=stdin
//@ variant int __isoc23_scanf(const char *format, ...) | stream=stdin call="__isoc23_vscanf(format, list)"
//@ variant int __isoc23_vscanf(const char *format, va_list list) | stream=stdin
//@ variant int fwscanf(FILE *stream, const wchar_t *format, ...) | call="vfwscanf(stream, format, list)"
//@ variant int vfwscanf(FILE *stream, const wchar_t *format, va_list list)
//@ variant int wscanf(const wchar_t *format, ...) | stream=stdin call="vwscanf(format, list)"
//@ variant int vwscanf(const wchar_t *format, va_list list) | stream=stdin
//@ variant int __isoc99_fwscanf(FILE *stream, const wchar_t *format, ...) | call="__isoc99_vfwscanf(stream, format, list)"
//@ variant int __isoc99_vfwscanf(FILE *stream, const wchar_t *format, va_list list)
//@ variant int __isoc99_wscanf(const wchar_t *format, ...) | stream=stdin call="__isoc99_vwscanf(format, list)"
//@ variant int __isoc99_vwscanf(const wchar_t *format, va_list list) | stream=stdin
//@ variant int __isoc23_fwscanf(FILE *stream, const wchar_t *format, ...) | call="__isoc23_vfwscanf(stream, format, list)"
//@ variant int __isoc23_vfwscanf(FILE *stream, const wchar_t *format, va_list list)
//@ variant int __isoc23_wscanf(const wchar_t *format, ...) | stream=stdin call="__isoc23_vwscanf(format, list)"
//@ variant int __isoc23_vwscanf(const wchar_t *format, va_list list) | stream=stdin
//@ variant void *fgetpwent(FILE *stream) | result="scanned(stream, before, r != NULL ? 1 : EOF, e)"
//@ variant int fgetpwent_r(FILE *stream, void *entry, char *buf, size_t size, void **found) | result="scanned(stream, before, r == 0 ? 1 : EOF, r)"
//@ variant void *fgetgrent(FILE *stream) | result="scanned(stream, before, r != NULL ? 1 : EOF, e)"
//@ variant int fgetgrent_r(FILE *stream, void *entry, char *buf, size_t size, void **found) | result="scanned(stream, before, r == 0 ? 1 : EOF, r)"
//@ variant void *fgetspent(FILE *stream) | result="scanned(stream, before, r != NULL ? 1 : EOF, e)"
//@ variant int fgetspent_r(FILE *stream, void *entry, char *buf, size_t size, void **found) | result="scanned(stream, before, r == 0 ? 1 : EOF, r)"

//@ op 16 fputc kind=write effect=write result=bytes
//@ args - fd
//@ replay c.fputc(a)
//@ capture length=1 result="r != EOF ? 1 : -e"
int fputc(int character, FILE *stream);
//@ variant int __overflow(FILE *stream, int character)
//@ variant int _IO_putc(int character, FILE *stream)
//@ variant int putchar(int character) | stream=stdout
//@ variant int putchar_unlocked(int character) | stream=stdout
//@ variant wint_t fputwc(wchar_t character, FILE *stream) | length=character_bytes(character) result="r != WEOF ? character_bytes(character) : -e"
//@ variant wint_t fputwc_unlocked(wchar_t character, FILE *stream) | length=character_bytes(character) result="r != WEOF ? character_bytes(character) : -e"
//@ variant wint_t putwc(wchar_t character, FILE *stream) | length=character_bytes(character) result="r != WEOF ? character_bytes(character) : -e"
//@ variant wint_t putwc_unlocked(wchar_t character, FILE *stream) | length=character_bytes(character) result="r != WEOF ? character_bytes(character) : -e"
//@ variant wint_t putwchar(wchar_t character) | stream=stdout length=character_bytes(character) result="r != WEOF ? character_bytes(character) : -e"
//@ variant wint_t putwchar_unlocked(wchar_t character) | stream=stdout length=character_bytes(character) result="r != WEOF ? character_bytes(character) : -e"

//@ op 17 fputs kind=write effect=write result=bytes
//@ args length fd
//@ replay c.fwrite(a)
//@ capture length=strlen(s) result="r >= 0 ? strlen(s) : -e"
int fputs(const char *s, FILE *stream);
//@ variant int puts(const char *s) | stream=stdout length="strlen(s) + 1" result="r >= 0 ? strlen(s) + 1 : -e"
//@ variant int fputws(const wchar_t *s, FILE *stream) | length=text_bytes(s) result="r >= 0 ? text_bytes(s) : -e"
//@ variant int fputws_unlocked(const wchar_t *s, FILE *stream) | length=text_bytes(s) result="r >= 0 ? text_bytes(s) : -e"

//@ op 18 fprintf kind=write effect=write result=bytes
//@ args fd - length
//@ replay c.fwrite(a)
//@ capture length="r > 0 ? r : 1" result="r >= 0 ? r : -e" call="vfprintf(stream, format, list)"
int fprintf(FILE *stream, const char *format, ...);
//@ variant int vfprintf(FILE *stream, const char *format, va_list list)
//@ variant int printf(const char *format, ...) | stream=stdout call="vprintf(format, list)"
//@ variant int vprintf(const char *format, va_list list) | stream=stdout
//@ variant int __fprintf_chk(FILE *stream, int flag, const char *format, ...) | call="__vfprintf_chk(stream, flag, format, list)"
//@ variant int __vfprintf_chk(FILE *stream, int flag, const char *format, va_list list)
//@ variant int __printf_chk(int flag, const char *format, ...) | stream=stdout call="__vprintf_chk(flag, format, list)"
//@ variant int __vprintf_chk(int flag, const char *format, va_list list) | stream=stdout
//@ variant int fwprintf(FILE *stream, const wchar_t *format, ...) | before=write_position(stream) result="r < 0 ? -e : before < 0 ? r : moved(stream, before)" length="result > 0 ? result : 1" call="vfwprintf(stream, format, list)"
//@ variant int vfwprintf(FILE *stream, const wchar_t *format, va_list list) | before=write_position(stream) result="r < 0 ? -e : before < 0 ? r : moved(stream, before)" length="result > 0 ? result : 1"
//@ variant int wprintf(const wchar_t *format, ...) | stream=stdout before=write_position(stream) result="r < 0 ? -e : before < 0 ? r : moved(stream, before)" length="result > 0 ? result : 1" call="vwprintf(format, list)"
//@ variant int vwprintf(const wchar_t *format, va_list list) | stream=stdout before=write_position(stream) result="r < 0 ? -e : before < 0 ? r : moved(stream, before)" length="result > 0 ? result : 1"
//@ variant int __fwprintf_chk(FILE *stream, int flag, const wchar_t *format, ...) | before=write_position(stream) result="r < 0 ? -e : before < 0 ? r : moved(stream, before)" length="result > 0 ? result : 1" call="__vfwprintf_chk(stream, flag, format, list)"
//@ variant int __vfwprintf_chk(FILE *stream, int flag, const wchar_t *format, va_list list) | before=write_position(stream) result="r < 0 ? -e : before < 0 ? r : moved(stream, before)" length="result > 0 ? result : 1"
//@ variant int __wprintf_chk(int flag, const wchar_t *format, ...) | stream=stdout before=write_position(stream) result="r < 0 ? -e : before < 0 ? r : moved(stream, before)" length="result > 0 ? result : 1" call="__vwprintf_chk(flag, format, list)"
//@ variant int __vwprintf_chk(int flag, const wchar_t *format, va_list list) | stream=stdout before=write_position(stream) result="r < 0 ? -e : before < 0 ? r : moved(stream, before)" length="result > 0 ? result : 1"

//@ op 19 ungetc kind=other effect=ungetc result=any
//@ args - fd
//@ replay c.ungetc(a)
//@ capture length=1 result="r"
int ungetc(int character, FILE *stream);
//@ variant wint_t ungetwc(wint_t character, FILE *stream) | length=character_bytes(character) result="r != WEOF ? r : -1"

// ---- position, buffers, names -----------------------------------------------------------------------

//@ op 20 fseek kind=seek effect=fseek result=zero
//@ args fd offset flags:whence
//@ replay c.fseek(a)
//@ capture result="r == 0 ? 0 : -e"
int fseek(FILE *stream, long offset, int whence);
//@ variant int fseeko(FILE *stream, off_t offset, int whence)
//@ variant int fseeko64(FILE *stream, off_t offset, int whence)
//@ variant int fsetpos(FILE *stream, const fpos_t *pos) | offset=pos->__pos flags=SEEK_SET
//@ variant int fsetpos64(FILE *stream, const fpos_t *pos) | offset=pos->__pos flags=SEEK_SET

//@ op 21 ftell kind=seek effect=ftell result=position
//@ args fd
//@ replay c.ftell(a)
//@ capture result="r >= 0 ? r : -e"
long ftell(FILE *stream);
//@ variant off_t ftello(FILE *stream)
//@ variant off_t ftello64(FILE *stream)
//@ variant int fgetpos(FILE *stream, fpos_t *pos) | result="r == 0 ? pos->__pos : -e"
//@ variant int fgetpos64(FILE *stream, fpos_t *pos) | result="r == 0 ? pos->__pos : -e"

//@ op 22 rewind kind=seek effect=fseek result=any
//@ args fd
//@ replay c.fseek(a)
//@ capture first="flush_one(stream)" result=0
void rewind(FILE *stream);

//@ op 23 fflush kind=flush effect=use result=zero
//@ args fd
//@ replay c.fflush(a)
//@ capture first="const int failed = stream == NULL && each_stream(flush_one) != 0" result="r == 0 && !failed ? 0 : -e" return="failed ? EOF : r"
int fflush(FILE *stream);
//@ variant int fcloseall(void) | stream=NULL
//@ variant void _flushlbf(void) | stream=NULL first="each_stream(flush_lines_of)" result=0

//@ op 24 setvbuf kind=other effect=use result=zero
//@ args fd - flags:buffering length
//@ replay c.setvbuf(a)
//@ capture length="buf != NULL ? size : 0" result="r == 0 ? 0 : -e"
int setvbuf(FILE *stream, char *buf, int mode, size_t size);
//@ variant void setbuf(FILE *stream, char *buf) | first="flush_one(stream)" flags="buf != NULL ? _IOFBF : _IONBF" length="buf != NULL ? BUFSIZ : 0" result=0
//@ variant void setbuffer(FILE *stream, char *buf, size_t size) | first="flush_one(stream)" flags="buf != NULL ? _IOFBF : _IONBF" length=size result=0
//@ variant void setlinebuf(FILE *stream) | flags=_IOLBF length=0 result=0

//@ op 25 fileno kind=other effect=use result=any
//@ args fd
//@ replay c.on_file(a, ::fileno)
//@ capture none
int fileno(FILE *stream);

//@ op 26 feof kind=other effect=use result=any
//@ args fd
//@ replay c.on_file(a, ::feof)
//@ capture none
int feof(FILE *stream);

//@ op 27 ferror kind=other effect=use result=any
//@ args fd
//@ replay c.on_file(a, ::ferror)
//@ capture none
int ferror(FILE *stream);

//@ op 28 clearerr kind=other effect=use result=any
//@ args fd
//@ replay c.on_file(a, [](FILE*) { return 0; })
//@ capture none
void clearerr(FILE *stream);

//@ op 29 remove kind=change effect=unlink result=zero nofollow
//@ args path
//@ replay c.remove(a)
//@ capture result="r == 0 ? 0 : -e"
int remove(const char *pathname);

//@ op 30 __fpurge kind=other effect=use result=any
//@ args fd
//@ replay c.on_file(a, [](FILE* f) { ::__fpurge(f); return 0; })
//@ capture result=0
void __fpurge(FILE *stream);

//@ alias fopen64 fopen
//@ alias freopen64 freopen
//@ alias tmpfile64 tmpfile
//@ alias fread_unlocked fread
//@ alias fwrite_unlocked fwrite
//@ alias getc fgetc
//@ alias fgetc_unlocked fgetc
//@ alias getc_unlocked fgetc
//@ alias fgets_unlocked fgets
//@ alias getdelim getline
//@ alias vfscanf fscanf
//@ alias putc fputc
//@ alias fputc_unlocked fputc
//@ alias putc_unlocked fputc
//@ alias fputs_unlocked fputs
//@ alias vfprintf fprintf
//@ alias fseeko fseek
//@ alias fseeko64 fseek
//@ alias ftello ftell
//@ alias ftello64 ftell
//@ alias fflush_unlocked fflush
//@ alias setbuf setvbuf
//@ alias setbuffer setvbuf
//@ alias setlinebuf setvbuf
//@ alias fileno_unlocked fileno
//@ alias feof_unlocked feof
//@ alias ferror_unlocked ferror
