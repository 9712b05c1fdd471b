/* SPDX-License-Identifier: MIT */
/* Programs whose threads and processes work hand in hand, for tests/depend_test.py:
 *   side-by-side pipe|turns|locks|offset|talk|apart
 * Each leaves files in the working directory; what is right depends on who was first. */
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(x) do { if (!(x)) { perror(#x); _exit(1); } } while (0)

static void put(const char *name, const char *text) {
  const int fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0644);
  CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
  close(fd);
}
static void get(const char *name) {
  char text[64];
  const int fd = open(name, O_RDONLY);
  CHECK(fd >= 0 && read(fd, text, sizeof text) > 0 && read(fd, text, sizeof text) == 0);
  close(fd);
}

/* A producer makes files and says so by a pipe; the consumer reads, renames and removes them. */
static void by_pipe(void) {
  int work[2], back[2];
  CHECK(pipe(work) == 0 && pipe(back) == 0);
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    close(work[1]);
    close(back[0]);
    char name[32], to[40];
    while (read(work[0], name, sizeof name) == (ssize_t)sizeof name) {
      get(name);
      snprintf(to, sizeof to, "%s.done", name);
      CHECK(rename(name, to) == 0);
      CHECK(write(back[1], "x", 1) == 1);
    }
    CHECK(mkdir("end", 0755) == 0);
    _exit(0);
  }
  close(work[0]);
  close(back[1]);
  for (int i = 0; i < 30; ++i) {
    char name[32] = {0}, token;
    snprintf(name, sizeof name, "job%d", i % 3);
    put(name, "some work to do");
    CHECK(write(work[1], name, sizeof name) == (ssize_t)sizeof name);
    CHECK(read(back[0], &token, 1) == 1);
    struct stat st;
    CHECK(stat(name, &st) != 0 && errno == ENOENT);
    strcat(name, ".done");
    CHECK(unlink(name) == 0);
  }
  close(work[1]);
  CHECK(waitpid(child, NULL, 0) == child);
  CHECK(rmdir("end") == 0);
}

/* Threads that take turns by a mutex and a condition. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static int turn, log_fd;
enum { kThreads = 4, kRounds = 8 };
static void *take_turns(void *arg) {
  const int me = (int)(intptr_t)arg;
  for (int round = 0; round < kRounds; ++round) {
    pthread_mutex_lock(&mutex);
    while (turn % kThreads != me) pthread_cond_wait(&turned, &mutex);
    CHECK(mkdir("here", 0755) == 0);
    put("here/note", "mine");
    CHECK(write(log_fd, "0123456789", 10) == 10);
    CHECK(lseek(log_fd, 0, SEEK_END) == 10 * (turn + 1));
    CHECK(unlink("here/note") == 0 && rmdir("here") == 0);
    ++turn;
    pthread_cond_broadcast(&turned);
    pthread_mutex_unlock(&mutex);
    usleep(100);
  }
  return NULL;
}
static void by_turns(void) {
  pthread_t threads[kThreads];
  log_fd = open("log", O_RDWR | O_CREAT | O_APPEND, 0644);
  for (int i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, take_turns, (void *)(intptr_t)i);
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  CHECK(rename("log", "log.old") == 0);
}

/* Processes that lock a file, read how long it is, and add to it. */
static void by_locks(void) {
  put("shared", "");
  for (int p = 0; p < 3; ++p)
    if (fork() == 0) {
      const int fd = open("shared", O_RDWR);
      char text[4096];
      for (int i = 0; i < 15; ++i) {
        if (p == 2) {
          struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 1000, .l_len = 1};
          CHECK(fcntl(fd, F_SETLKW, &l) == 0);
        }
        CHECK(flock(fd, LOCK_EX) == 0);
        const ssize_t n = pread(fd, text, sizeof text, 0);
        CHECK(n >= 0 && pwrite(fd, "0123456789", 10, n) == 10);
        CHECK(flock(fd, LOCK_UN) == 0);
        usleep(50);
      }
      _exit(0);
    }
  while (wait(NULL) > 0) {}
  CHECK(rename("shared", "result") == 0);
}

/* Children that read on where the one before them stopped. */
static void one_offset(void) {
  char text[1000];
  memset(text, 'x', sizeof text);
  const int fd = open("data", O_RDWR | O_CREAT | O_TRUNC, 0644);
  for (int i = 0; i < 13; ++i) CHECK(write(fd, text, 77 + i) == 77 + i);
  CHECK(lseek(fd, 0, SEEK_SET) == 0);
  for (int p = 0; p < 4; ++p)
    if (fork() == 0) {
      while (read(fd, text, 83) > 0) usleep(20); /* whole ones: which of two that overlap was short, no trace tells */
      CHECK(mkdir("seen-end", 0755) == 0 || errno == EEXIST);
      _exit(0);
    }
  while (wait(NULL) > 0) {}
  CHECK(rmdir("seen-end") == 0);
  close(fd);
}

/* A socketpair and an eventfd between processes. */
static void by_talk(void) {
  int ends[2];
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  const int ready = eventfd(0, 0);
  if (fork() == 0) {
    char word[16];
    uint64_t one = 1;
    for (int i = 0; i < 20; ++i) {
      CHECK(recv(ends[1], word, 4, MSG_WAITALL) == 4);
      get("told");
      CHECK(unlink("told") == 0);
      CHECK(i % 2 == 0 ? send(ends[1], "done", 4, 0) == 4 : write(ready, &one, 8) == 8);
    }
    _exit(0);
  }
  for (int i = 0; i < 20; ++i) {
    char word[16];
    uint64_t count;
    put("told", "tale");
    CHECK(send(ends[0], "look", 4, 0) == 4);
    CHECK(i % 2 == 0 ? recv(ends[0], word, 4, MSG_WAITALL) == 4 : read(ready, &count, 8) == 8);
  }
  while (wait(NULL) > 0) {}
}

/* Threads that have nothing to do with each other. */
static void *alone(void *arg) {
  char name[32], text[256] = {0};
  snprintf(name, sizeof name, "file%d", (int)(intptr_t)arg);
  const int fd = open(name, O_RDWR | O_CREAT, 0644);
  for (int i = 0; i < 100; ++i) {
    CHECK(pwrite(fd, text, sizeof text, i * 256) == 256);
    CHECK(pread(fd, text, sizeof text, (i / 2) * 256) == 256);
  }
  close(fd);
  return NULL;
}
static void apart(void) {
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, alone, (void *)(intptr_t)i);
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
}

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "";
  if (strcmp(what, "pipe") == 0) by_pipe();
  else if (strcmp(what, "turns") == 0) by_turns();
  else if (strcmp(what, "locks") == 0) by_locks();
  else if (strcmp(what, "offset") == 0) one_offset();
  else if (strcmp(what, "talk") == 0) by_talk();
  else if (strcmp(what, "apart") == 0) apart();
  else return 2;
  return 0;
}
