/* SPDX-License-Identifier: MIT */
/**
 * @file feign_layer_replayer.h
 * What a replayer of a third party's library needs beside the calls themselves: handles, buffers,
 * paths below the root, and the plug-in around it (feign.h). `feign generate` makes the calls, one
 * function each; a hand-written replayer of one layer may include this as well. C11, with
 * _GNU_SOURCE defined before all else; one file of a plug-in includes it.
 *
 *   static int64_t make_shelf_read(struct feign_layer_stream *c, const feign_activity *a) {
 *     shelf *s = (shelf *)feign_layer_handle(c, a->handle, 0);
 *     void *data = feign_layer_room(c, a->length);
 *     if (c->why != NULL || c->error != 0) return c->error;
 *     return shelf_read(s, feign_layer_value(a, 0), data, a->length);
 *   }
 *   static const struct feign_layer_op kOps[] = {{"shelf_read", "1:1:0 …", make_shelf_read}, …};
 *   FEIGN_LAYER_REPLAYER("shelf", "Makes the calls of layer shelf.", kOps)
 */
#ifndef FEIGN_LAYER_REPLAYER_H
#define FEIGN_LAYER_REPLAYER_H

#if !defined(_GNU_SOURCE) || defined(__cplusplus)
#error "feign_layer_replayer.h is for C11, with _GNU_SOURCE defined before the first #include"
#endif
#ifndef FEIGN_NO_SHORT_FORM
#define FEIGN_NO_SHORT_FORM
#endif
#include <errno.h>
#include <fcntl.h>
#include <feign.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/** Whether what was returned is a failure, where errno says why: NULL, or a number below 0. */
#define FEIGN_LAYER_FAILED(r) \
  (__builtin_classify_type(r) == 5 /* a pointer */ ? (uintptr_t)(r) == 0 : (int64_t)(r) < 0)
/** For results: what a call failed with, and EIO where that is not told. */
#define FEIGN_FAILED(error) (-((int64_t)(error) > 0 ? (int64_t)(error) : (int64_t)EIO))

enum {
  FEIGN_LAYER_PATH = 8192,
  FEIGN_LAYER_BUCKETS = 1024,
};
/** No call gets a larger buffer: a trace may say any number. */
#define FEIGN_LAYER_MOST ((uint64_t)1 << 30)

struct feign_layer_stream;

/** One op: its name, its arguments as a trace has to describe them ("TYPE:SLOT:INDEX …"), and how
 *  it is made: the result that the layer's description promises; NULL: not at all. */
struct feign_layer_op {
  const char *name, *args;
  int64_t (*make)(struct feign_layer_stream* c, const feign_activity* a);
};

/** What stands here for a handle of the trace. */
struct feign_layer_handle {
  struct feign_layer_handle* next;
  uint32_t number;
  int there; /* 0: the call that was to make it failed */
  int type;  /* which of the library's types of handles it is */
  uintptr_t handle;
  void (*give_up)(uintptr_t handle);
};

struct feign_layer_replayer {
  const feign_host* host;
  const feign_run* run;
  char root[FEIGN_LAYER_PATH];
  const struct feign_layer_op** by_id; /* from first_id */
  uint32_t first_id, ids;
  pthread_mutex_t mutex; /* of the handles */
  struct feign_layer_handle* handles[FEIGN_LAYER_BUCKETS];
  uint64_t written;
};

struct feign_layer_stream {
  struct feign_layer_replayer* r;
  const char* why; /* the call is skipped, for this reason … */
  int64_t error;   /* … or fails with this, without being made */
  char* buffers[2];
  uint64_t sizes[2];
  char paths[2][FEIGN_LAYER_PATH];
};

/** values[index]; 0 if the trace has fewer. */
static inline uint64_t feign_layer_value(const feign_activity* a, uint32_t index) {
  return index < a->value_count ? a->values[index] : 0;
}
static inline const char* feign_layer_text(struct feign_layer_stream* c, uint64_t id) {
  return c->r->host->text(c->r->host, (uint32_t)id, NULL);
}

/* ---- handles ------------------------------------------------------------------------------------
 */

/** What stands for a handle that a call uses; else the call is not made. */
static inline uintptr_t feign_layer_handle(struct feign_layer_stream* c, uint32_t number,
                                           int type) {
  struct feign_layer_replayer* const r = c->r;
  uintptr_t handle = 0;
  pthread_mutex_lock(&r->mutex);
  const struct feign_layer_handle* h = r->handles[number % FEIGN_LAYER_BUCKETS];
  while (h != NULL && h->number != number) h = h->next;
  if (number == 0)
    c->why = "on no handle";
  else if (h == NULL)
    c->why = "on a handle that was made before the trace began";
  else if (h->type != type)
    c->why = "on a handle of another type";
  else if (!h->there)
    c->error = -EBADF;
  else
    handle = h->handle;
  pthread_mutex_unlock(&r->mutex);
  return handle;
}

/** A call was to make a handle, and did, or did not. */
static inline void feign_layer_made(struct feign_layer_stream* c, uint32_t number, int type,
                                    int there, uintptr_t handle,
                                    void (*give_up)(uintptr_t handle)) {
  if (number == 0) { /* it was not to succeed */
    if (there && give_up != NULL) give_up(handle);
    return;
  }
  struct feign_layer_replayer* const r = c->r;
  struct feign_layer_handle* const h = malloc(sizeof *h);
  if (h == NULL) return;
  pthread_mutex_lock(&r->mutex);
  struct feign_layer_handle** const bucket = &r->handles[number % FEIGN_LAYER_BUCKETS];
  *h = (struct feign_layer_handle){*bucket, number, there, type, handle, give_up};
  *bucket = h;
  pthread_mutex_unlock(&r->mutex);
}

/** A call closed it. */
static inline void feign_layer_gone(struct feign_layer_stream* c, uint32_t number) {
  struct feign_layer_replayer* const r = c->r;
  pthread_mutex_lock(&r->mutex);
  struct feign_layer_handle** at = &r->handles[number % FEIGN_LAYER_BUCKETS];
  while (*at != NULL && (*at)->number != number) at = &(*at)->next;
  struct feign_layer_handle* const h = *at;
  if (h != NULL) *at = h->next;
  pthread_mutex_unlock(&r->mutex);
  free(h);
}

/* ---- buffers ------------------------------------------------------------------------------------
 */

static inline void* feign_layer_buffer(struct feign_layer_stream* c, int which, uint64_t size) {
  if (size > FEIGN_LAYER_MOST) {
    c->why = "it needs a buffer of more than 1 GiB";
    return NULL;
  }
  if (size > c->sizes[which] || c->buffers[which] == NULL) {
    const uint64_t more = size < 65536 ? 65536 : size;
    char* const fresh = realloc(c->buffers[which], more);
    if (fresh == NULL) {
      c->why = "no memory for its buffer";
      return NULL;
    }
    const char* const content = c->r->run->content;
    uint64_t x = 0x9E3779B97F4A7C15u;
    const int zeros = which == 0 || (content != NULL && strcmp(content, "zeros") == 0);
    for (uint64_t i = 0; i < more; ++i) {
      x ^= x << 13, x ^= x >> 7, x ^= x << 17;
      fresh[i] = zeros ? 0 : (char)(x >> 32);
    }
    c->buffers[which] = fresh;
    c->sizes[which] = more;
  }
  return c->buffers[which];
}
/** Where a call puts what it reads. */
static inline void* feign_layer_room(struct feign_layer_stream* c, uint64_t size) {
  return feign_layer_buffer(c, 0, size);
}
/** What a call writes: random bytes, or zeros where --content says so. */
static inline void* feign_layer_content(struct feign_layer_stream* c, uint64_t size) {
  return feign_layer_buffer(c, 1, size);
}

/* ---- paths: whatever the trace says, what a library is given lies below the root ----------------
 */

/** What `path` leads to from the root, links and all, as the system names it; -errno. */
static inline int feign_layer_resolve(const struct feign_layer_replayer* r, const char* path,
                                      char* to) {
  struct open_how how;
  memset(&how, 0, sizeof how);
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT;
  const long fd = syscall(SYS_openat2, r->run->root_fd, path, &how, sizeof how);
  if (fd < 0) return -errno;
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%ld", fd);
  const ssize_t length = readlink(link, to, FEIGN_LAYER_PATH - 1);
  const int e = errno;
  close((int)fd);
  if (length < 0) return -e;
  to[length] = '\0';
  const size_t root = strlen(r->root);
  return strncmp(to, r->root, root) == 0 && (to[root] == '/' || to[root] == '\0' || root == 1)
             ? 0
             : -EXDEV;
}

static inline const char* feign_layer_path(struct feign_layer_stream* c, int which, uint32_t id) {
  size_t length = 0;
  const char* const path = c->r->host->text(c->r->host, id, &length);
  char* const to = c->paths[which];
  if (length == 0 || path[0] != '/') {
    c->why = "no path was recorded";
    return NULL;
  }
  int found = feign_layer_resolve(c->r, path, to);
  if (found == 0) return to;
  const char* const name = strrchr(path, '/') + 1;
  char folder[FEIGN_LAYER_PATH];
  if (found == -ENOENT && *name != '\0' && strcmp(name, "..") != 0 && strcmp(name, ".") != 0 &&
      (size_t)(name - path) < sizeof folder) {
    memcpy(folder, path, (size_t)(name - path));
    folder[name - path] = '\0';
    found = feign_layer_resolve(c->r, folder, to);
    const size_t at = found == 0 ? strlen(to) : 0;
    if (found == 0 && at + 1 + strlen(name) < FEIGN_LAYER_PATH) {
      snprintf(to + at, FEIGN_LAYER_PATH - at, "/%s", name);
      char target[2];
      if (readlink(to, target, sizeof target) >= 0)
        c->why = "its path is a link to what is not there";
      return to;
    }
    /* Without the directory it fails, wherever below the root. */
    if (found == -ENOENT && strstr(path, "..") == NULL &&
        snprintf(to, FEIGN_LAYER_PATH, "%s%s", c->r->root, path) < FEIGN_LAYER_PATH)
      return to;
  }
  c->why = found == -ENOSYS ? "no openat2(2) here, to keep paths below the root"
                            : "its path does not lead anywhere below the root";
  return NULL;
}

/* ---- the plug-in around it ----------------------------------------------------------------------
 */

/** Whether a trace describes an op's arguments as the plug-in knows them. */
static inline int feign_layer_same_args(const feign_op_info* info, const char* args) {
  char text[4096] = "";
  size_t at = 0;
  const char* row = (const char*)info->args;
  for (uint32_t i = 0; i < info->arg_count && at < sizeof text; ++i, row += info->arg_stride) {
    const feign_arg_info* const arg = (const feign_arg_info*)(const void*)row;
    at += (size_t)snprintf(text + at, sizeof text - at, "%s%u:%u:%u", i != 0 ? " " : "", arg->type,
                           arg->slot, arg->index);
  }
  return strcmp(text, args) == 0;
}

static inline feign_status feign_layer_create(const feign_host* host, const char* layer,
                                              const struct feign_layer_op* ops, size_t count,
                                              void** self) {
  struct feign_layer_replayer* const r = calloc(1, sizeof *r);
  if (r == NULL) return host->fail(host, FEIGN_ERR_NOMEM, "out of memory");
  char text[8192];
  pthread_mutex_init(&r->mutex, NULL);
  r->host = host;
  r->run = (const feign_run*)host->extension(host, "feign.run/1");
  char link[64] = "";
  ssize_t length = -1;
  if (r->run != NULL && r->run->root_fd >= 0) {
    snprintf(link, sizeof link, "/proc/self/fd/%d", r->run->root_fd);
    length = readlink(link, r->root, sizeof r->root - 1);
  }
  if (length < 0) {
    free(r);
    return host->fail(host, FEIGN_ERR_ARGUMENT, "there is no root to replay below");
  }
  if (length == 1) r->root[0] = '\0'; /* "/" */
  uint32_t last = 0;
  for (size_t i = 0; i < count; ++i) {
    const uint32_t id = host->op(host, layer, ops[i].name);
    if (id == 0) continue; /* not in the trace */
    if (r->first_id == 0 || id < r->first_id) r->first_id = id;
    if (id > last) last = id;
  }
  r->ids = r->first_id != 0 ? last - r->first_id + 1 : 0;
  r->by_id = calloc(r->ids != 0 ? r->ids : 1, sizeof *r->by_id);
  if (r->by_id == NULL) {
    free(r);
    return host->fail(host, FEIGN_ERR_NOMEM, "out of memory");
  }
  for (size_t i = 0; i < count; ++i) {
    const uint32_t id = host->op(host, layer, ops[i].name);
    if (id == 0) continue;
    if (!feign_layer_same_args(host->op_info(host, id), ops[i].args)) {
      snprintf(text, sizeof text,
               "%s: the trace's has other arguments than this plug-in's: want one description for "
               "recording and replaying it",
               ops[i].name);
      free(r->by_id);
      free(r);
      return host->fail(host, FEIGN_ERR_ARGUMENT, text);
    }
    r->by_id[id - r->first_id] = &ops[i];
  }
  *self = r;
  return FEIGN_OK;
}

static inline feign_status feign_layer_open_stream(void* self, const feign_stream_info* info,
                                                   void** stream) {
  struct feign_layer_replayer* const r = self;
  struct feign_layer_stream* const c = calloc(1, sizeof *c);
  (void)info;
  if (c == NULL) return r->host->fail(r->host, FEIGN_ERR_NOMEM, "out of memory");
  c->r = r;
  *stream = c;
  return FEIGN_OK;
}

static inline feign_status feign_layer_execute(void* self, void* stream, const feign_activity* a,
                                               feign_outcome* outcome) {
  struct feign_layer_replayer* const r = self;
  struct feign_layer_stream* const c = stream;
  const struct feign_layer_op* const op =
      a->op - r->first_id < r->ids ? r->by_id[a->op - r->first_id] : NULL;
  outcome->doing = FEIGN_SKIPPED;
  if (op == NULL) {
    outcome->why = "not a call of its layer";
    return FEIGN_OK;
  }
  if (op->make == NULL) {
    outcome->why = "its description says not to replay it";
    return FEIGN_OK;
  }
  const feign_op_info* const info = r->host->op_info(r->host, a->op);
  const int writes = info->kind == FEIGN_KIND_WRITE;
  c->why = NULL;
  c->error = 0;
  if (writes && r->run->max_bytes != 0 &&
      __atomic_load_n(&r->written, __ATOMIC_RELAXED) >= r->run->max_bytes) {
    outcome->doing = FEIGN_DONE;
    outcome->result = -EDQUOT;
    return FEIGN_OK;
  }
  const int64_t result = op->make(c, a);
  if (c->why != NULL) {
    outcome->why = c->why;
    return FEIGN_OK;
  }
  outcome->doing = FEIGN_DONE;
  outcome->result = result;
  if (writes && result > 0) __atomic_fetch_add(&r->written, (uint64_t)result, __ATOMIC_RELAXED);
  return FEIGN_OK;
}

static inline void feign_layer_close_stream(void* self, void* stream) {
  struct feign_layer_stream* const c = stream;
  (void)self;
  if (c == NULL) return;
  free(c->buffers[0]);
  free(c->buffers[1]);
  free(c);
}

static inline void feign_layer_destroy(void* self) {
  struct feign_layer_replayer* const r = self;
  for (size_t i = 0; i < FEIGN_LAYER_BUCKETS; ++i)
    while (r->handles[i] != NULL) {
      struct feign_layer_handle* const h = r->handles[i];
      if (h->there && h->give_up != NULL) h->give_up(h->handle);
      r->handles[i] = h->next;
      free(h);
    }
  pthread_mutex_destroy(&r->mutex);
  free(r->by_id);
  free(r);
}

/** The plug-in: @p layer is its name, too. */
#define FEIGN_LAYER_REPLAYER(layer, summary, ops)                                                \
  static feign_status feign_layer_create_this(const feign_host* host, const void* options,       \
                                              void** self) {                                     \
    (void)options;                                                                               \
    return feign_layer_create(host, layer, ops, sizeof(ops) / sizeof(ops)[0], self);             \
  }                                                                                              \
  static const char* const feign_layer_names[] = {layer, NULL};                                  \
  static const feign_replayer feign_layer_api = {                                                \
      sizeof(feign_replayer),   1,                                                               \
      feign_layer_names,        feign_layer_create_this,                                         \
      feign_layer_open_stream,  feign_layer_execute,                                             \
      feign_layer_close_stream, feign_layer_destroy};                                            \
  static const feign_component feign_layer_component = {sizeof(feign_component),                 \
                                                        FEIGN_REPLAYER,                          \
                                                        layer,                                   \
                                                        summary,                                 \
                                                        &feign_layer_api,                        \
                                                        NULL,                                    \
                                                        0,                                       \
                                                        sizeof(feign_option),                    \
                                                        0,                                       \
                                                        0};                                      \
  static const feign_component* const feign_layer_components[] = {&feign_layer_component, NULL}; \
  const feign_plugin feign_plugin_v1 = {sizeof(feign_plugin), FEIGN_ABI_MINOR,       layer, "1", \
                                        "not stated",         feign_layer_components};

#endif
