/* SPDX-License-Identifier: MIT */
/* Threads that give up what they share: descriptors, the working directory. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/close_range.h>
#include <pthread.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int descriptor;
static pthread_barrier_t both;

/* Puts another file behind the same descriptor, which is its own. */
static void other_file(const char* name, const char* text, int length) {
  close(descriptor);
  (void)!open(name, O_RDWR | O_CREAT, 0644);
  pthread_barrier_wait(&both); /* the first thread writes */
  pthread_barrier_wait(&both);
  (void)!write(descriptor, text, length);
}

static void* by_unshare(void* unused) {
  unshare(CLONE_FILES);
  other_file("unshared", "1234", 4);
  return unused;
}
static void* by_close_range(void* unused) {
  syscall(SYS_close_range, descriptor, descriptor, CLOSE_RANGE_UNSHARE);
  other_file("ranged", "123456", 6);
  return unused;
}
static void* by_place(void* unused) {
  unshare(CLONE_FS);
  (void)!chdir("folder");
  other_file("of its own", "12345678", 8); /* of both: the table is shared */
  return unused;
}

int main(void) {
  static void* (*const ways[])(void*) = {by_unshare, by_close_range, by_place};
  static const char* const names[] = {"a", "b", "c"};
  mkdir("folder", 0755);
  pthread_barrier_init(&both, NULL, 2);
  for (int i = 0; i < 3; ++i) {
    pthread_t thread;
    descriptor = open("first", O_RDWR | O_CREAT | O_APPEND, 0644);
    pthread_create(&thread, NULL, ways[i], NULL);
    pthread_barrier_wait(&both);
    (void)!write(descriptor, "x", 1);
    close(open(names[i], O_RDWR | O_CREAT, 0644));
    pthread_barrier_wait(&both);
    pthread_join(thread, NULL);
    (void)!write(descriptor, "yy", 2);
    (void)!lseek(descriptor, 0, SEEK_END);
    close(descriptor);
  }
  return 0;
}
