/* SPDX-License-Identifier: MIT */
/* Calls that were refused: for arguments that a trace may not have, for what the process was not
 * allowed, for an end that is no file. Made again in good faith they would succeed, and change
 * what did not change. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

static char data[65536];

/* One end is a pipe or a socket that has nothing, takes nothing, or is at its end. */
static void ends(int file) {
  int sockets[2], pipes[2];
  const int a = open("a", O_CREAT | O_RDWR, 0600);
  if (write(a, data, sizeof data) != sizeof data || lseek(a, 0, SEEK_SET) != 0) return;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sockets) != 0) return;
  while (write(sockets[0], data, sizeof data) > 0) {
  }
  sendfile(sockets[0], a, NULL, 1024);
  lseek(a, 0, SEEK_CUR);
  if (pipe2(pipes, O_NONBLOCK) != 0) return;
  splice(pipes[0], NULL, file, NULL, 1024, 0);
  close(pipes[1]);
  splice(pipes[0], NULL, file, NULL, 1024, 0);
}

static void arguments(int file) {
  struct open_how how = {O_CREAT | O_RDWR, 0600, 1 << 24};
  const struct iovec parts[2] = {{data, (size_t)-1}, {data, 1}};
  renameat2(-1, "f", AT_FDCWD, "g", 0);
  unlinkat(-1, "f", 0);
  linkat(-1, "f", AT_FDCWD, "l", 0);
  mkdirat(-1, "m", 0755);
  openat(-1, "o", O_CREAT | O_RDWR, 0600);
  linkat(AT_FDCWD, "f", AT_FDCWD, "l", 1);
  renameat2(AT_FDCWD, "f", AT_FDCWD, "g", 1 << 30);
  syscall(SYS_openat2, AT_FDCWD, "o", &how, sizeof how);
  readv(file, parts, 2);
  writev(file, parts, 2);
  setxattr("f", "user.x", data, sizeof data + 1, 0);
  void* const memory = mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0);
  mmap(memory, 4096, PROT_READ, MAP_SHARED | MAP_FIXED_NOREPLACE, file, 0);
  munmap(memory, 4096);
}

static void permissions(void) {
  mkdir("d", 0755);
  close(open("d/f", O_CREAT | O_RDWR, 0644));
  if (seteuid(65534) == 0) {
    open("d/new", O_CREAT | O_RDWR, 0600);
    mkdir("d/dir", 0700);
    rename("d/f", "d/g");
    unlink("d/f");
    (void)!truncate("d/f", 10);
    chmod("d/f", 0600);
    link("d/f", "d/h");
    (void)!symlink("x", "d/s");
    if (seteuid(0) != 0) return;
  }
  unlink("d/f");
  rmdir("d");
}

int main(void) {
  struct stat st;
  const int file = open("f", O_CREAT | O_RDWR, 0600);
  if (write(file, "0123456789", 10) != 10) return 1;
  ends(file);
  arguments(file);
  permissions();
  /* A device: as root only. */
  mknod("c", S_IFCHR | 0600, 0x103);
  rename("c", "c2");
  stat("c2", &st);
  unlink("c2");
  return fstat(file, &st) == 0 && st.st_size == 10 ? 0 : 1;
}
