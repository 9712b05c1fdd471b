/* SPDX-License-Identifier: MIT */
/* What libc does inside other calls, and calls with arguments of every form. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

int main(void) {
  FILE* f = fopen("lines", "w");
  for (int i = 0; i < 5000; ++i) fprintf(f, "line %d\n", i);
  fseek(f, 100, SEEK_SET);
  fputs("xyz", f);
  fclose(f);
  const int a = open("lines", O_RDONLY), b = open("copy", O_RDWR | O_CREAT | O_TRUNC, 0640);
  off_t at = 10;
  sendfile(b, a, &at, 1000);
  off_t in = 20, out = 3000;
  copy_file_range(a, &in, b, &out, 500, 0);
  copy_file_range(a, NULL, b, NULL, 700, 0);
  struct iovec v[3] = {{"one", 3}, {"two", 3}, {"three", 5}};
  writev(b, v, 3);
  pwritev(b, v, 2, 77);
  pwritev2(b, v, 3, -1, 0);
  char bytes[64];
  struct iovec into[2] = {{bytes, 10}, {bytes + 10, 20}};
  preadv2(a, into, 2, 5, 0);
  readv(a, into, 2);
  lseek(b, 0, SEEK_END);
  ftruncate(b, 10000);
  fallocate(b, 0, 10000, 4096);
  posix_fadvise(a, 0, 100, POSIX_FADV_WILLNEED);
  char* m = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, b, 0);
  m[5] = 'x';
  msync(m, 8192, MS_SYNC);
  munmap(m, 8192);
  struct stat st;
  stat("lines", &st), lstat("lines", &st), fstat(a, &st), stat("missing", &st);
  struct statx stx;
  statx(AT_FDCWD, "copy", 0, STATX_ALL, &stx);
  struct timespec times[2] = {{1000, 5}, {2000, 7}};
  utimensat(AT_FDCWD, "copy", times, 0);
  struct timeval tv[2] = {{3000, 9}, {4000, 11}};
  utimes("copy", tv);
  mkdir("d", 0755), symlink("../lines", "d/link"), link("copy", "d/hard"),
      rename("d/hard", "d/soft");
  readlink("d/link", bytes, sizeof bytes);
  symlink("target", "d/way");
  strcpy(bytes, "d/way");
  readlink(bytes, bytes, sizeof bytes); /* over its own path */
  strcpy(bytes + 4, "d/way");
  readlinkat(AT_FDCWD, bytes + 4, bytes, sizeof bytes);
  setxattr("copy", "user.feign", "v", 1, 0), getxattr("copy", "user.feign", bytes, sizeof bytes);
  struct statvfs vfs;
  statvfs(".", &vfs);
  DIR* d = opendir("d");
  while (readdir(d) != NULL) {
  }
  closedir(d);
  glob_t found;
  if (glob("d/*", 0, NULL, &found) == 0) globfree(&found);
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 5, .l_len = 10};
  fcntl(b, F_SETLK, &lock);
  fcntl(b, F_SETFL, O_APPEND);
  const int c = fcntl(b, F_DUPFD_CLOEXEC, 50), e = dup2(a, 60);
  write(c, "append", 6);
  close(c), close(e), close(99);
  char name[] = "madeXXXXXX";
  close(mkstemp(name));
  unlink(name);
  FILE* t = tmpfile();
  fputs("temporary", t);
  fclose(t);
  void* library = dlopen("libm.so.6", RTLD_NOW);
  if (library != NULL) dlclose(library);
  char where[4096];
  getcwd(where, sizeof where);
  chdir("d");
  const int relative = open("link", O_RDONLY);
  read(relative, bytes, 10);
  close(relative);
  chdir("..");
  truncate("copy", 5000);
  access("copy", R_OK), chmod("copy", 0600), unlink("d/soft");
  open((const char*)1, O_RDONLY), syscall(SYS_openat, AT_FDCWD, (const char*)8, 0);
  fsync(b), fdatasync(b), close(a), close(b);
  remove("d/link"), rmdir("d");
  return 0;
}
