/* SPDX-License-Identifier: MIT */
/* A provider of what no program does: a line a call, "RANK LAYER OP LENGTH VALUE…". A value that is no number is a text. */
#define FEIGN_NO_SHORT_FORM
#include <feign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kMost = 32 };

struct options {
  const char *const *files;
};
static const feign_option kOptions[] = {
    {"file", FEIGN_OPT_TEXTS, offsetof(struct options, files), NULL, NULL, 0, 0, "The calls."}};

struct calls {
  const feign_host *host;
  FILE *lines;
  uint64_t number;
};

static feign_status create(const feign_host *host, const void *options, void **self) {
  const char *const file = ((const struct options *)options)->files[0];
  struct calls *const c = calloc(1, sizeof *c);
  if (c == NULL) return host->fail(host, FEIGN_ERR_NOMEM, "out of memory");
  c->host = host;
  c->lines = file != NULL ? fopen(file, "r") : NULL;
  if (c->lines == NULL) {
    free(c);
    return host->fail(host, FEIGN_ERR_IO, file != NULL ? file : "want a file");
  }
  *self = c;
  return FEIGN_OK;
}

static feign_status next(void *self, size_t want, feign_sink *out) {
  struct calls *const c = self;
  const feign_host *const host = c->host;
  char line[1024], layer[32], op[64];
  unsigned long long length = 0;
  int read = 0;
  (void)want;
  if (fgets(line, sizeof line, c->lines) == NULL) return FEIGN_END;
  feign_stream_info info = {.struct_size = sizeof info};
  feign_activity *const a = out->make(out);
  if (a == NULL) return host->fail(host, FEIGN_ERR_NOMEM, "out of memory");
  if (sscanf(line, "%d %31s %63s %llu%n", &info.rank, layer, op, &length, &read) != 4 ||
      (a->op = host->op(host, layer, op)) == 0)
    return host->fail(host, FEIGN_ERR_ARGUMENT, line);
  info.process = info.thread = 100 + info.rank;
  a->stream = host->stream(host, &info);
  a->start_ns = ++c->number * 1000000;
  a->length = length;
  a->place = FEIGN_PLACE(0, c->number);
  a->marks = FEIGN_RESOLVED;
  uint64_t values[kMost];
  uint32_t count = 0;
  for (char *word = strtok(line + read, " \n"); word != NULL && count < kMost; word = strtok(NULL, " \n")) {
    char *end = NULL;
    values[count] = strtoull(word, &end, 0);
    if (*end != '\0') values[count] = host->intern(host, word, strlen(word));
    ++count;
  }
  if (host->set_values(host, a, values, count) != FEIGN_OK) return host->fail(host, FEIGN_ERR_NOMEM, "out of memory");
  return out->emit(out, a);
}

static void destroy(void *self) {
  fclose(((struct calls *)self)->lines);
  free(self);
}

static const feign_provider kApi = {sizeof kApi, 0, create, next, destroy, NULL};
static const feign_component kComponent = {
    sizeof kComponent, FEIGN_PROVIDER, "calls", "Calls of a list.", &kApi, kOptions, 1, sizeof(feign_option), sizeof(struct options), 0};
static const feign_component *const kComponents[] = {&kComponent, NULL};
FEIGN_EXPORT const feign_plugin feign_plugin_v1 = {sizeof(feign_plugin), FEIGN_ABI_MINOR, "calls", "1", "MIT", kComponents};
