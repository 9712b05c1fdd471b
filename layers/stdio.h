/* SPDX-License-Identifier: MIT */
/*
 * The stdio layer: libc's streams (stdio(3)), in the language of posix.h.
 *
 * A stream goes by the descriptor behind it, as fileno(3) tells it: `fd` is a FILE *. A tracer that
 * does not know descriptors makes numbers up, one for each open stream. Lengths and results of data
 * calls are bytes, not items; results are negative errno values for failures, as in every layer; and
 * where the end of the file was met without a byte, 0. A character has length 1; what is read or
 * written by format, or read up to some character, the length that it came to, and 1 for none.
 */
//@ layer stdio "libc's streams"

//@ names open O_WRONLY O_RDWR O_CREAT O_EXCL O_TRUNC O_APPEND O_CLOEXEC O_RDONLY=0
//@ names whence SEEK_SET SEEK_CUR SEEK_END
//@ names buffering _IOFBF=0 _IOLBF=1 _IONBF=2

// ---- open and close: flags are what the mode string means to open(2) ------------------------------

//@ op 1 fopen kind=open effect=fopen result=fd
//@ args path flags:open
//@ replay c.fopen(a)
FILE *fopen(const char *pathname, const char *mode);

//@ op 2 fdopen kind=other effect=use result=any
//@ args fd flags:open
//@ replay c.on_file(a, [](FILE*) { return 0; })
FILE *fdopen(int fd, const char *mode);

//@ op 3 freopen kind=open effect=freopen result=fd
//@ args path flags:open fd2
//@ replay c.freopen(a)
FILE *freopen(const char *pathname, const char *mode, FILE *stream);

//@ op 4 tmpfile kind=open effect=tmpfile result=fd
//@ args
//@ replay c.fopen(a)
FILE *tmpfile(void);

//@ op 5 fclose kind=close effect=close result=zero
//@ args fd
//@ replay c.close(a)
int fclose(FILE *stream);

// ---- data -----------------------------------------------------------------------------------------

//@ op 10 fread kind=read effect=read result=bytes
//@ args buf - length fd
//@ replay c.fread(a)
size_t fread(void *ptr, size_t size, size_t bytes, FILE *stream);

//@ op 11 fwrite kind=write effect=write result=bytes
//@ args buf - length fd
//@ replay c.fwrite(a)
size_t fwrite(const void *ptr, size_t size, size_t bytes, FILE *stream);

//@ op 12 fgetc kind=read effect=read result=bytes
//@ args fd
//@ replay c.gets(a)
int fgetc(FILE *stream);

//@ op 13 fgets kind=read effect=read result=bytes
//@ args buf - fd
//@ replay c.gets(a)
char *fgets(char *s, int size, FILE *stream);

//@ op 14 getline kind=read effect=read result=bytes
//@ args buf - fd
//@ replay c.gets(a)
ssize_t getline(char **lineptr, size_t *n, FILE *stream);

//@ op 15 fscanf kind=read effect=read result=bytes
//@ args fd - -
//@ replay c.gets(a)
int fscanf(FILE *stream, const char *format, ...);

//@ op 16 fputc kind=write effect=write result=bytes
//@ args - fd
//@ replay c.fwrite(a)
int fputc(int character, FILE *stream);

//@ op 17 fputs kind=write effect=write result=bytes
//@ args length fd
//@ replay c.fwrite(a)
int fputs(const char *s, FILE *stream);

//@ op 18 fprintf kind=write effect=write result=bytes
//@ args fd - length
//@ replay c.fwrite(a)
int fprintf(FILE *stream, const char *format, ...);

//@ op 19 ungetc kind=other effect=use result=any
//@ args - fd
//@ replay c.nothing(a)
int ungetc(int character, FILE *stream);

// ---- position, buffers, names -----------------------------------------------------------------------

//@ op 20 fseek kind=seek effect=fseek result=zero
//@ args fd offset flags:whence
//@ replay c.fseek(a)
int fseek(FILE *stream, long offset, int whence);

//@ op 21 ftell kind=seek effect=ftell result=position
//@ args fd
//@ replay c.on_file(a, ::ftello)
long ftell(FILE *stream);

//@ op 22 rewind kind=seek effect=fseek result=any
//@ args fd
//@ replay c.fseek(a)
void rewind(FILE *stream);

//@ op 23 fflush kind=flush effect=use result=zero
//@ args fd
//@ replay c.fflush(a)
int fflush(FILE *stream);

//@ op 24 setvbuf kind=other effect=use result=zero
//@ args fd - flags:buffering length
//@ replay c.setvbuf(a)
int setvbuf(FILE *stream, char *buf, int mode, size_t size);

//@ op 25 fileno kind=other effect=use result=any
//@ args fd
//@ replay c.on_file(a, ::fileno)
int fileno(FILE *stream);

//@ op 26 feof kind=other effect=use result=any
//@ args fd
//@ replay c.on_file(a, ::feof)
int feof(FILE *stream);

//@ op 27 ferror kind=other effect=use result=any
//@ args fd
//@ replay c.on_file(a, ::ferror)
int ferror(FILE *stream);

//@ op 28 clearerr kind=other effect=use result=any
//@ args fd
//@ replay c.on_file(a, [](FILE*) { return 0; })
void clearerr(FILE *stream);

//@ op 29 remove kind=change effect=unlink result=zero nofollow
//@ args path
//@ replay c.remove(a)
int remove(const char *pathname);

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
//@ alias fileno_unlocked fileno
//@ alias feof_unlocked feof
//@ alias ferror_unlocked ferror
