/* SPDX-License-Identifier: MIT */
/* A FUSE file system that passes everything through to a directory, with a pause before each read,
 * write, open and look-up: a storage system at the other end of a network.
 *
 * usage: latency_fs MICROSECONDS DIRECTORY MOUNTPOINT [fuse options] */
#define FUSE_USE_VERSION 31
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse3/fuse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

static int base;
static struct timespec latency;

static const char *rel(const char *path) { return path[1] ? path + 1 : "."; }
static void far(void) { clock_nanosleep(CLOCK_MONOTONIC, 0, &latency, NULL); }
static int said(long result) { return result < 0 ? -errno : (int)result; }

static int fs_getattr(const char *path, struct stat *st, struct fuse_file_info *fi) {
  (void)fi;
  far();
  return said(fstatat(base, rel(path), st, AT_SYMLINK_NOFOLLOW));
}
static int fs_readlink(const char *path, char *buf, size_t size) {
  const ssize_t n = readlinkat(base, rel(path), buf, size - 1);
  if (n < 0) return -errno;
  buf[n] = '\0';
  return 0;
}
static int fs_mkdir(const char *path, mode_t mode) { far(); return said(mkdirat(base, rel(path), mode)); }
static int fs_mknod(const char *path, mode_t mode, dev_t dev) { far(); return said(mknodat(base, rel(path), mode, dev)); }
static int fs_unlink(const char *path) { far(); return said(unlinkat(base, rel(path), 0)); }
static int fs_rmdir(const char *path) { far(); return said(unlinkat(base, rel(path), AT_REMOVEDIR)); }
static int fs_symlink(const char *to, const char *path) { far(); return said(symlinkat(to, base, rel(path))); }
static int fs_rename(const char *from, const char *to, unsigned flags) {
  far();
  return said(renameat2(base, rel(from), base, rel(to), flags));
}
static int fs_link(const char *from, const char *to) { far(); return said(linkat(base, rel(from), base, rel(to), 0)); }
static int fs_chmod(const char *path, mode_t mode, struct fuse_file_info *fi) {
  (void)fi;
  return said(fchmodat(base, rel(path), mode, 0));
}
static int fs_chown(const char *path, uid_t uid, gid_t gid, struct fuse_file_info *fi) {
  (void)fi;
  return said(fchownat(base, rel(path), uid, gid, AT_SYMLINK_NOFOLLOW));
}
static int fs_utimens(const char *path, const struct timespec t[2], struct fuse_file_info *fi) {
  (void)fi;
  return said(utimensat(base, rel(path), t, AT_SYMLINK_NOFOLLOW));
}
static int fs_truncate(const char *path, off_t size, struct fuse_file_info *fi) {
  if (fi) return said(ftruncate((int)fi->fh, size));
  const int fd = openat(base, rel(path), O_WRONLY);
  if (fd < 0) return -errno;
  const int result = said(ftruncate(fd, size));
  close(fd);
  return result;
}
static int fs_open(const char *path, struct fuse_file_info *fi) {
  far();
  const int fd = openat(base, rel(path), fi->flags & ~O_NOFOLLOW);
  if (fd < 0) return -errno;
  fi->fh = (uint64_t)fd;
  return 0;
}
static int fs_create(const char *path, mode_t mode, struct fuse_file_info *fi) {
  far();
  const int fd = openat(base, rel(path), fi->flags, mode);
  if (fd < 0) return -errno;
  fi->fh = (uint64_t)fd;
  return 0;
}
static int fs_read(const char *path, char *buf, size_t size, off_t at, struct fuse_file_info *fi) {
  (void)path;
  far();
  return said(pread((int)fi->fh, buf, size, at));
}
static int fs_write(const char *path, const char *buf, size_t size, off_t at, struct fuse_file_info *fi) {
  (void)path;
  far();
  return said(pwrite((int)fi->fh, buf, size, at));
}
static int fs_release(const char *path, struct fuse_file_info *fi) {
  (void)path;
  close((int)fi->fh);
  return 0;
}
static int fs_fsync(const char *path, int data, struct fuse_file_info *fi) {
  (void)path;
  far();
  return said(data ? fdatasync((int)fi->fh) : fsync((int)fi->fh));
}
static int fs_statfs(const char *path, struct statvfs *st) {
  (void)path;
  return said(fstatvfs(base, st));
}
static int fs_readdir(const char *path, void *buf, fuse_fill_dir_t fill, off_t at, struct fuse_file_info *fi,
                      enum fuse_readdir_flags how) {
  (void)at, (void)fi, (void)how;
  far();
  const int fd = openat(base, rel(path), O_RDONLY | O_DIRECTORY);
  DIR *dir = fd < 0 ? NULL : fdopendir(fd);
  if (!dir) return -errno;
  for (struct dirent *e; (e = readdir(dir));) fill(buf, e->d_name, NULL, 0, 0);
  closedir(dir);
  return 0;
}
static void *fs_init(struct fuse_conn_info *conn, struct fuse_config *cfg) {
  (void)conn;
  cfg->use_ino = 0;
  return NULL;
}

int main(int argc, char **argv) {
  if (argc < 4) return fprintf(stderr, "usage: latency_fs MICROSECONDS DIRECTORY MOUNTPOINT [options]\n"), 2;
  const long us = atol(argv[1]);
  latency = (struct timespec){us / 1000000, us % 1000000 * 1000};
  base = open(argv[2], O_RDONLY | O_DIRECTORY);
  if (base < 0) return perror(argv[2]), 1;
  umask(0);
  static const struct fuse_operations ops = {
      .init = fs_init, .getattr = fs_getattr, .readlink = fs_readlink, .mkdir = fs_mkdir, .mknod = fs_mknod,
      .unlink = fs_unlink, .rmdir = fs_rmdir, .symlink = fs_symlink, .rename = fs_rename, .link = fs_link,
      .chmod = fs_chmod, .chown = fs_chown, .utimens = fs_utimens, .truncate = fs_truncate, .open = fs_open,
      .create = fs_create, .read = fs_read, .write = fs_write, .release = fs_release, .fsync = fs_fsync,
      .statfs = fs_statfs, .readdir = fs_readdir};
  argv[2] = argv[0];
  return fuse_main(argc - 2, argv + 2, &ops, NULL);
}
