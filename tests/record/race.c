// SPDX-License-Identifier: MIT
// Processes that are after the same names at once: each name comes or goes once, by whoever is
// first, or is found made by another. With "names", three names come, move and go all the time;
// with "directories", directories do, and what is in them, while others list and remove them.
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kProcesses = 4, kNames = 1500 };

static void make(const char* name, int flags) {
  const int fd = open(name, O_CREAT | O_WRONLY | flags, 0644);
  if (fd >= 0) close(fd);
}

static void come_and_go(unsigned seed) {
  char a[32], b[32], d[32];
  struct stat st;
  for (int i = 0; i < kNames; ++i) {
    snprintf(a, sizeof a, "file%d", rand_r(&seed) % 3);
    snprintf(b, sizeof b, "file%d", rand_r(&seed) % 3);
    snprintf(d, sizeof d, "directory%d", rand_r(&seed) % 3);
    switch (rand_r(&seed) % 8) {
      case 0:
        make(a, O_EXCL);
        break;
      case 1:
        make(a, 0);
        break;
      case 2:
        unlink(a);
        break;
      case 3:
        stat(a, &st);
        break;
      case 4:
        rename(a, b);
        break;
      case 5:
        mkdir(d, 0755);
        break;
      case 6:
        rmdir(d);
        break;
      default:
        access(d, F_OK);
    }
  }
}

static void fill_and_remove(unsigned seed) {
  static const char* const kFiles[] = {"a", "b", "a-long-name"};
  char d[32], file[64];
  for (int i = 0; i < kNames; ++i) {
    snprintf(d, sizeof d, "directory%d", rand_r(&seed) % 2);
    snprintf(file, sizeof file, "%s/%s", d, kFiles[rand_r(&seed) % 3]);
    switch (rand_r(&seed) % 8) {
      case 0:
      case 1:
        mkdir(d, 0755);
        break;
      case 2:
      case 3:
        rmdir(d);
        break;
      case 4:
        make(file, rand_r(&seed) % 2 ? O_EXCL : 0);
        break;
      case 5:
      case 6:
        unlink(file);
        break;
      default: {
        DIR* const all = opendir(d);
        while (all && readdir(all)) continue;
        if (all) closedir(all);
      }
    }
  }
}

int main(int argc, char** argv) {
  char made[32], file[40], old[32];
  struct stat st;
  /* Relative names tell something only with the directory that a process is in. */
  if (mkdir("below", 0755) != 0 || chdir("below") != 0) return 1;
  for (int i = 0; i < kNames; ++i) {
    snprintf(old, sizeof old, "old%d", i);
    make(old, 0);
  }
  for (int p = 0; p < kProcesses; ++p)
    if (fork() == 0) {
      if (argc > 1) {
        (argv[1][0] == 'd' ? fill_and_remove : come_and_go)((unsigned)p + 1);
        _exit(0);
      }
      for (int i = 0; i < kNames; ++i) {
        snprintf(made, sizeof made, "made%d", i);
        snprintf(file, sizeof file, "made%d/file", i);
        snprintf(old, sizeof old, "old%d", i);
        stat(made, &st);
        mkdir(made, 0755);
        make(file, O_EXCL);
        access(file, R_OK);
        snprintf(file, sizeof file, "made%d/first%d", i, i % 7);
        make(file, 0);
        snprintf(file, sizeof file, "made%d/first%d", (i + 1) % kNames, (i + 1) % 7);
        access(file, R_OK);
        stat(old, &st);
        unlink(old);
        access(old, F_OK);
      }
      _exit(0);
    }
  while (wait(NULL) > 0) continue;
  return 0;
}
