/* SPDX-License-Identifier: MIT */
/* Makes every call of layer posix that works on storage, in the current directory. What a file system
 * does not have fails, and is recorded as failing. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

static char block[65536];
#define BLOCK (sizeof block)

static void lock(int fd, int command, int type, long start, long length) {
  struct flock l = {.l_type = (short)type, .l_whence = SEEK_SET, .l_start = start, .l_len = length};
  fcntl(fd, command, &l);
}

static void descriptors(void) {
  int fd = open("a", O_RDWR | O_CREAT, 0644);
  write(fd, block, 1000);
  int two = dup(fd);
  int high = dup2(fd, 100);
  dup3(fd, 101, O_CLOEXEC);
  fcntl(fd, F_DUPFD, 50);
  fcntl(fd, F_DUPFD_CLOEXEC, 60);
  fcntl(two, F_SETFL, O_APPEND);
  write(high, block, 10);
  fcntl(two, F_SETFL, 0);
  fcntl(fd, F_GETFL);
  fcntl(fd, F_GETFD);
  uint64_t hint = 2;
  fcntl(fd, F_SET_RW_HINT, &hint);
  fcntl(fd, F_GET_RW_HINT, &hint);
  syscall(SYS_close_range, 50, 200, 0);
  struct open_how how = {.flags = O_RDONLY, .resolve = RESOLVE_NO_SYMLINKS};
  int again = (int)syscall(SYS_openat2, AT_FDCWD, "a", &how, sizeof how);
  symlink("a", "a-link");
  syscall(SYS_openat2, AT_FDCWD, "a-link", &how, sizeof how);
  close(again);
  close(two);
  close(fd);
  close(creat("b", 0600));
  int unnamed = open(".", O_TMPFILE | O_RDWR, 0644);
  write(unnamed, block, 77);
  char name[64];
  snprintf(name, sizeof name, "/proc/self/fd/%d", unnamed);
  linkat(AT_FDCWD, name, AT_FDCWD, "named", AT_SYMLINK_FOLLOW);
  close(unnamed);
}

static void data(void) {
  int fd = open("data", O_RDWR | O_CREAT | O_TRUNC, 0644);
  struct iovec v[3] = {{block, 100}, {block, 200}, {block, 300}};
  writev(fd, v, 3);
  pwritev(fd, v, 3, 5000);
  pwritev2(fd, v, 3, 9000, 0);
  pwritev2(fd, v, 2, -1, 0);
  pwritev2(fd, v, 2, 0, RWF_APPEND);
  pwrite(fd, block, 100, 20000);
  lseek(fd, 0, SEEK_SET);
  readv(fd, v, 3);
  preadv(fd, v, 3, 5000);
  preadv2(fd, v, 3, 9000, 0);
  preadv2(fd, v, 2, -1, 0);
  pread(fd, block, 100, 20000);
  lseek(fd, -10, SEEK_END);
  lseek(fd, 5, SEEK_CUR);
  read(fd, block, 100);
  int out = open("out", O_RDWR | O_CREAT, 0644);
  off_t in_at = 5000, out_at = 100;
  sendfile(out, fd, &in_at, 500);
  lseek(fd, 0, SEEK_SET);
  sendfile(out, fd, NULL, 300);
  loff_t in_long = 100, out_long = 4000;
  copy_file_range(fd, &in_long, out, &out_long, 700, 0);
  copy_file_range(fd, NULL, out, NULL, 50, 0);
  int pipes[2];
  pipe(pipes);
  in_long = 200;
  splice(fd, &in_long, pipes[1], NULL, 600, 0);
  out_long = 9000;
  splice(pipes[0], NULL, out, &out_long, 600, 0);
  sendfile(pipes[1], fd, &in_at, 100);
  splice(pipes[0], NULL, out, NULL, 100, 0);
  (void)out_at;
  posix_fadvise(fd, 0, 4096, POSIX_FADV_WILLNEED);
  readahead(fd, 0, 8192);
  fsync(fd);
  fdatasync(out);
  sync_file_range(fd, 0, 4096, SYNC_FILE_RANGE_WRITE);
  syncfs(fd);
  sync();
  ioctl(out, FICLONE, fd);
  int copy = open("clone", O_RDWR | O_CREAT, 0644);
  ioctl(copy, FICLONE, fd);
  close(copy);
  close(fd);
  close(out);
}

static void sizes(void) {
  int fd = open("sizes", O_RDWR | O_CREAT, 0644);
  for (int i = 0; i < 4; ++i) write(fd, block, BLOCK);
  fallocate(fd, 0, 0, 300000);
  fallocate(fd, FALLOC_FL_KEEP_SIZE, 300000, 100000);
  fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 65536, 65536);
  lseek(fd, 0, SEEK_HOLE);
  lseek(fd, 65536, SEEK_DATA);
  fallocate(fd, FALLOC_FL_ZERO_RANGE, 0, 4096);
  fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 0, 65536);
  fallocate(fd, FALLOC_FL_INSERT_RANGE, 65536, 65536);
  ftruncate(fd, 200000);
  truncate("sizes", 150000);
  lseek(fd, 0, SEEK_END);
  close(fd);
}

static void names(void) {
  struct stat st;
  struct statx stx;
  struct statfs sf;
  mkdir("d", 0755);
  mkdir("d/e", 0700);
  int d = open("d", O_RDONLY | O_DIRECTORY);
  mkdirat(d, "f", 0711);
  mknod("fifo", S_IFIFO | 0644, 0);
  mknodat(d, "regular", S_IFREG | 0640, 0);
  link("a", "d/hard");
  linkat(AT_FDCWD, "a", d, "hard2", 0);
  symlinkat("../a", d, "soft");
  char buffer[5000];
  readlink("a-link", buffer, sizeof buffer);
  readlinkat(d, "soft", buffer, 3);
  readlink("a", buffer, sizeof buffer);
  rename("d/hard", "d/harder");
  renameat(d, "hard2", AT_FDCWD, "up");
  renameat2(AT_FDCWD, "up", AT_FDCWD, "a", RENAME_NOREPLACE);
  renameat2(d, "e", d, "f", RENAME_EXCHANGE);
  fstatat(d, "soft", &st, 0);
  fstatat(d, "soft", &st, AT_SYMLINK_NOFOLLOW);
  fstatat(d, "", &st, AT_EMPTY_PATH);
  statx(d, "soft", AT_SYMLINK_NOFOLLOW, STATX_ALL, &stx);
  stat("d/soft/not", &st);
  statfs("d", &sf);
  fstatfs(d, &sf);
  access("a", R_OK);
  access("none", F_OK);
  faccessat(d, "regular", W_OK, 0);
  syscall(SYS_faccessat2, d, "soft", F_OK, AT_SYMLINK_NOFOLLOW);
  while (syscall(SYS_getdents64, d, buffer, sizeof buffer) > 0)
    ;
  unlinkat(d, "f", AT_REMOVEDIR);
  unlink("d/harder");
  rmdir("d/e");
  rmdir("d");
  chdir("d");
  stat("../a", &st);
  fchdir(d);
  open("..", O_PATH);
  chdir("..");
  int s = socket(AF_UNIX, SOCK_STREAM, 0);
  struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "socket"};
  bind(s, (struct sockaddr *)&address, sizeof address);
  bind(s, (struct sockaddr *)&address, sizeof address);
  close(s);
  close(d);
}

static void attributes(void) {
  int fd = open("attributes", O_RDWR | O_CREAT, 0644);
  struct timespec times[2] = {{1000, 5}, {2000, UTIME_OMIT}};
  struct timeval old[2] = {{1, 2}, {3, 4}};
  struct utimbuf oldest = {5, 6};
  char value[100];
  chmod("attributes", 0640);
  fchmod(fd, 0600);
  fchmodat(AT_FDCWD, "attributes", 0644, 0);
  fchown(fd, getuid(), getgid());
  chown("attributes", (uid_t)-1, getgid());
  lchown("a-link", getuid(), (gid_t)-1);
  fchownat(AT_FDCWD, "attributes", getuid(), getgid(), 0);
  utimensat(AT_FDCWD, "attributes", times, 0);
  futimens(fd, NULL);
  syscall(SYS_utimes, "attributes", old);
  syscall(SYS_utime, "attributes", &oldest);
  syscall(SYS_futimesat, AT_FDCWD, "attributes", old);
  setxattr("attributes", "user.one", "12345", 5, XATTR_CREATE);
  setxattr("attributes", "user.one", "12345", 5, XATTR_CREATE);
  fsetxattr(fd, "user.two", "123", 3, 0);
  lsetxattr("a-link", "user.three", "123", 3, 0);
  getxattr("attributes", "user.one", value, sizeof value);
  fgetxattr(fd, "user.two", value, sizeof value);
  lgetxattr("attributes", "user.none", value, sizeof value);
  listxattr("attributes", value, sizeof value);
  removexattr("attributes", "user.one");
  fremovexattr(fd, "user.none");
  flock(fd, LOCK_EX);
  flock(fd, LOCK_UN);
  lock(fd, F_SETLK, F_WRLCK, 0, 100);
  int other = open("attributes", O_RDWR);
  lock(other, F_OFD_SETLK, F_WRLCK, 50, 10);
  pid_t child = fork();
  if (child == 0) {
    lock(fd, F_GETLK, F_WRLCK, 0, 10);
    _exit(0);
  }
  waitpid(child, NULL, 0);
  lock(fd, F_SETLKW, F_UNLCK, 0, 0);
  lock(other, F_OFD_SETLKW, F_RDLCK, 50, 10);
  umask(077);
  close(open("masked", O_WRONLY | O_CREAT, 0666));
  mkdir("masked-directory", 0777);
  umask(022);
  close(other);
  close(fd);
}

static void memory(void) {
  int fd = open("mapped", O_RDWR | O_CREAT, 0644);
  ftruncate(fd, 1 << 20);
  char *m = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  memset(m, 1, 100);
  madvise(m, 1 << 20, MADV_SEQUENTIAL);
  madvise(m + 4096, 8192, MADV_WILLNEED);
  msync(m, 4096, MS_SYNC);
  m = mremap(m, 1 << 20, 1 << 19, MREMAP_MAYMOVE);
  munmap(m, 65536);
  munmap(m + 65536, (1 << 19) - 65536);
  void *none = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  madvise(none, 4096, MADV_DONTNEED);
  munmap(none, 4096);
}

static void requests(void) {
  aio_context_t context = 0;
  if (syscall(SYS_io_setup, 16, &context) != 0) return;
  int fd = open("requests", O_RDWR | O_CREAT, 0644);
  struct iocb one = {.aio_lio_opcode = IOCB_CMD_PWRITE, .aio_fildes = (unsigned)fd, .aio_buf = (uintptr_t)block, .aio_nbytes = 4096, .aio_offset = 4096};
  struct iocb two = one;
  two.aio_offset = 0;
  struct iocb *list[2] = {&one, &two};
  struct io_event events[2];
  syscall(SYS_io_submit, context, 2L, list);
  syscall(SYS_io_getevents, context, 2L, 2L, events, NULL);
  one.aio_lio_opcode = IOCB_CMD_PREAD;
  syscall(SYS_io_submit, context, 1L, list);
  syscall(SYS_io_getevents, context, 1L, 2L, events, NULL);
  syscall(SYS_io_destroy, context);
  close(fd);
}

static void processes(void) {
  pid_t child = fork();
  if (child == 0) {
    mkdir("jail", 0755);
    if (chroot("jail") == 0) {
      mkdir("/inside", 0755);
      close(open("../../../file", O_WRONLY | O_CREAT, 0644));
    }
    _exit(0);
  }
  waitpid(child, NULL, 0);
  int fd = open("shared-offset", O_RDWR | O_CREAT, 0644);
  child = fork();
  if (child == 0) {
    write(fd, block, 10);
    _exit(0);
  }
  waitpid(child, NULL, 0);
  write(fd, block, 10);
  close(fd);
}

int main(void) {
  memset(block, 'x', sizeof block);
  descriptors();
  data();
  sizes();
  names();
  attributes();
  memory();
  requests();
  processes();
  return 0;
}
