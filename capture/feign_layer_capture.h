/* SPDX-License-Identifier: MIT */
/**
 * @file feign_layer_capture.h
 * What the capture libraries that `feign generate` makes have in common. Such a library has a
 * function of each name that a third party's library has; it is preloaded before that one, passes
 * the call on to it, and records it (capture.h). It links nothing: what records is brought by
 * `feign record`, and without that calls are passed on and no more.
 */
#ifndef FEIGN_LAYER_CAPTURE_H
#define FEIGN_LAYER_CAPTURE_H

#ifndef FEIGN_NO_SHORT_FORM
#define FEIGN_NO_SHORT_FORM
#endif
#include <dlfcn.h>
#include <errno.h>
#include <feign.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture.h"

extern __typeof__(feign_call_begin) feign_call_begin __attribute__((weak));
extern __typeof__(feign_call_end) feign_call_end __attribute__((weak));
extern __typeof__(feign_record_end) feign_record_end __attribute__((weak));
extern __typeof__(feign_capture_quiet) feign_capture_quiet __attribute__((weak));
extern __typeof__(feign_capture_layer) feign_capture_layer __attribute__((weak));

/** What `feign record` reads of it: the layer's ops and their arguments. */
extern FEIGN_EXPORT const feign_layer feign_capture_layer_v1;

/** Whether what was returned is a failure, where errno says why: NULL, or a number below 0. */
#define FEIGN_LAYER_FAILED(r) \
  (__builtin_classify_type(r) == 5 /* a pointer */ ? (uintptr_t)(r) == 0 : (int64_t)(r) < 0)
/** For results: what a call failed with, and EIO where that is not told. */
#define FEIGN_FAILED(error) (-((int64_t)(error) > 0 ? (int64_t)(error) : (int64_t)EIO))

/** A handle as a number that is 0 for none. */
#define FEIGN_LAYER_KEY(handle) \
  (FEIGN_LAYER_FAILED(handle) ? 0 : (uintptr_t)(handle) + (__builtin_classify_type(handle) != 5))

/** The layer's number, 0 where it is not recorded. */
static inline uint32_t feign_layer_on(void) {
  static uint32_t number;
  if (__builtin_expect(number == 0, 0) && feign_capture_layer)
    number = feign_capture_layer(feign_capture_layer_v1.name);
  return number;
}

static inline void feign_layer_quiet(int quiet) {
  if (feign_capture_quiet) feign_capture_quiet(quiet);
}

/** The library's own function. */
static inline void* feign_layer_next(const char* name) {
  const int e = errno;
  feign_layer_quiet(1);
  void* const next = dlsym(RTLD_NEXT, name);
  feign_layer_quiet(0);
  if (next == NULL) {
    fprintf(stderr, "feign: capture of %s: no library that is loaded has %s\n",
            feign_capture_layer_v1.name, name);
    abort();
  }
  errno = e;
  return next;
}
#define FEIGN_LAYER_NEXT(real, name) \
  if (__builtin_expect((real) == NULL, 0)) *(void**)(void*)&(real) = feign_layer_next(name)

/* ---- handles: numbers for the process's life, whatever comes back at the same address -----------
 */

struct feign_layer_handle {
  struct feign_layer_handle* next;
  uintptr_t key;
  uint32_t number; /* 0: closed */
};
struct feign_layer_handles {
  struct feign_layer_handle* buckets[1024];
};
static uint32_t feign_layer_last_handle;

/** Its entry, made when it is first seen; NULL when out of memory. Entries are never freed, and no
 *  lock is taken: a fork may come at any time. */
static inline struct feign_layer_handle* feign_layer_entry(struct feign_layer_handles* all,
                                                           uintptr_t key) {
  struct feign_layer_handle** const bucket = &all->buckets[(key ^ key >> 10) / 16 % 1024];
  struct feign_layer_handle* const first = __atomic_load_n(bucket, __ATOMIC_ACQUIRE);
  for (struct feign_layer_handle* h = first; h != NULL; h = h->next)
    if (h->key == key) return h;
  struct feign_layer_handle* const mine = malloc(sizeof *mine);
  if (mine == NULL) return NULL;
  mine->key = key;
  mine->number = 0;
  mine->next = first;
  while (!__atomic_compare_exchange_n(bucket, &mine->next, mine, 0, __ATOMIC_ACQ_REL,
                                      __ATOMIC_ACQUIRE))
    for (struct feign_layer_handle* h = mine->next; h != NULL; h = h->next)
      if (h->key == key) {
        free(mine);
        return h;
      }
  return mine;
}

/** One that a call made: a new number. @p key: an address, or a number and 1; 0 is none. */
static inline uint32_t feign_layer_made(struct feign_layer_handles* all, uintptr_t key) {
  struct feign_layer_handle* const h = key != 0 ? feign_layer_entry(all, key) : NULL;
  if (h == NULL) return 0;
  const uint32_t number = __atomic_add_fetch(&feign_layer_last_handle, 1, __ATOMIC_RELAXED);
  __atomic_store_n(&h->number, number, __ATOMIC_RELEASE);
  return number;
}

/** One that a call uses. What was made when nothing was recorded gets a number now. */
static inline uint32_t feign_layer_used(struct feign_layer_handles* all, uintptr_t key) {
  struct feign_layer_handle* const h = key != 0 ? feign_layer_entry(all, key) : NULL;
  const uint32_t number = h != NULL ? __atomic_load_n(&h->number, __ATOMIC_ACQUIRE) : 0;
  return number != 0 || h == NULL ? number : feign_layer_made(all, key);
}

/** One that a call is about to close: from here on another may be made at its address … */
static inline uint32_t feign_layer_take(struct feign_layer_handles* all, uintptr_t key) {
  struct feign_layer_handle* const h = key != 0 ? feign_layer_entry(all, key) : NULL;
  if (h == NULL) return 0;
  const uint32_t number = __atomic_exchange_n(&h->number, 0, __ATOMIC_ACQ_REL);
  return number != 0 ? number : __atomic_add_fetch(&feign_layer_last_handle, 1, __ATOMIC_RELAXED);
}

/** … and the call failed. */
static inline void feign_layer_keep(struct feign_layer_handles* all, uintptr_t key,
                                    uint32_t number) {
  struct feign_layer_handle* const h = key != 0 ? feign_layer_entry(all, key) : NULL;
  uint32_t none = 0;
  if (h != NULL)
    (void)__atomic_compare_exchange_n(&h->number, &none, number, 0, __ATOMIC_ACQ_REL,
                                      __ATOMIC_RELAXED);
}

/* ---- texts --------------------------------------------------------------------------------------
 */

enum { FEIGN_LAYER_PATH = 4096 };

/** The path from `/`, in @p room if need be: what the working directory was is not told later. */
static inline const char* feign_layer_absolute(const char* path, char* room) {
  if (path == NULL || path[0] == '/' || path[0] == '\0') return path;
  const int e = errno;
  feign_layer_quiet(1);
  const char* const folder = getcwd(room, FEIGN_LAYER_PATH);
  feign_layer_quiet(0);
  errno = e;
  if (folder == NULL) return path;
  const size_t length = strlen(room), more = strlen(path);
  if (length + 1 + more >= FEIGN_LAYER_PATH) return path;
  room[length] = '/';
  memcpy(room + length + 1, path, more + 1);
  return room;
}

static inline void feign_layer_put_path(struct feign_record* r, const char* path) {
  if (path != NULL) feign_put_path(r, path, strlen(path));
}
static inline void feign_layer_put_path2(struct feign_record* r, const char* path) {
  if (path != NULL) feign_put_path2(r, path, strlen(path));
}
static inline void feign_layer_put_text(struct feign_record* r, const char* text) {
  feign_put_text_value(r, text != NULL ? text : "", text != NULL ? strlen(text) : 0);
}

#endif
