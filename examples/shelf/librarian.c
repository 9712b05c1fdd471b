/* SPDX-License-Identifier: MIT */
/* A program that uses libshelf: fills a shelf, reads it, copies it; two threads with shelves of
 * their own; and some calls that fail. usage: librarian DIRECTORY */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shelf.h"

#define WANT(what)                                                    \
  do {                                                                \
    if (!(what)) {                                                    \
      fprintf(stderr, "librarian: %s: %s\n", #what, strerror(errno)); \
      exit(1);                                                        \
    }                                                                 \
  } while (0)

static char data[10000];

static void* work(void* name) {
  shelf* s = shelf_open(name, SHELF_CREATE | SHELF_EMPTY);
  WANT(s != NULL);
  for (int i = 0; i < 50; ++i) WANT(shelf_append(s, data, 100 + (size_t)i, NULL) >= 0);
  char page[64];
  for (uint64_t i = 0; i < 50; i += 7) WANT(shelf_read(s, i, page, sizeof page) == sizeof page);
  WANT(shelf_close(s) == 0);
  return NULL;
}

int main(int argc, char** argv) {
  WANT(argc == 2 && chdir(argv[1]) == 0);
  for (size_t i = 0; i < sizeof data; ++i) data[i] = (char)('a' + i % 23);
  WANT(mkdir("books", 0755) == 0);

  shelf* s = shelf_open("books/novels", SHELF_CREATE | SHELF_EXCLUSIVE | SHELF_SYNC);
  WANT(s != NULL);
  WANT(shelf_label(s, "novels") == 0);
  WANT(shelf_label(s, "a label that is by far too long for it") == ENAMETOOLONG);
  uint64_t number = 0, count = 0;
  for (size_t size = 1; size < sizeof data; size = size * 3 + 1)
    WANT(shelf_append(s, data, size, &number) == (ssize_t)size);
  WANT(shelf_append(s, data, 0, NULL) == 0);
  char* page = malloc(sizeof data);
  WANT(page != NULL);
  for (uint64_t i = 0; i <= number; ++i) WANT(shelf_read(s, i, page, sizeof data) > 0);
  WANT(shelf_read(s, 1000, page, 10) < 0 && errno == ENOENT);
  WANT(shelf_count(s, SHELF_RECORDS, &count) == 0 && count == number + 2);
  WANT(shelf_count(s, SHELF_BYTES, &count) == 0);
  shelf* copy = shelf_copy(s, "books/copy", SHELF_CREATE | SHELF_EMPTY);
  WANT(copy != NULL);
  WANT(shelf_append(copy, "more", 4, NULL) == 4);
  WANT(shelf_close(copy) == 0);
  WANT(shelf_flush(s) == 0);
  WANT(shelf_close(s) == 0);
  WANT(shelf_open("books/novels", SHELF_CREATE | SHELF_EXCLUSIVE) == NULL && errno == EEXIST);
  WANT(shelf_open("no/such/shelf", 0) == NULL && errno == ENOENT);

  s = shelf_open("books/novels", SHELF_READ_ONLY);
  WANT(s != NULL && shelf_count(s, SHELF_RECORDS, &count) == 0 && count == number + 2);
  WANT(shelf_read(s, number, page, sizeof data) > 0);
  pthread_t threads[2];
  char* names[] = {"books/one", "books/two"};
  for (int i = 0; i < 2; ++i) WANT(pthread_create(&threads[i], NULL, work, names[i]) == 0);
  for (int i = 0; i < 2; ++i) WANT(pthread_join(threads[i], NULL) == 0);

  /* A child goes on with what its parent opened, and has shelves of its own. */
  const pid_t child = fork();
  WANT(child >= 0);
  if (child == 0) {
    WANT(shelf_read(s, 0, page, 100) == 1);
    shelf* own = shelf_open("books/child", SHELF_CREATE);
    WANT(own != NULL && shelf_append(own, data, 500, NULL) == 500 && shelf_close(own) == 0);
    _exit(0);
  }
  int status = 0;
  WANT(waitpid(child, &status, 0) == child && status == 0);
  WANT(shelf_close(s) == 0);

  /* Beside the library, on its files and others. */
  WANT(shelf_remove("books/two") == 0);
  const int fd = open("catalogue", O_WRONLY | O_CREAT | O_TRUNC, 0644);
  WANT(fd >= 0 && write(fd, data, 3000) == 3000 && close(fd) == 0);
  WANT(rename("catalogue", "books/catalogue") == 0);
  free(page);
  return 0;
}
