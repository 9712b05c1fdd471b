/* SPDX-License-Identifier: MIT */
/* A modifier with options of every type that passes everything on: a good plug-in in C99. With
 * -DBREAK=n it breaks one rule of the contract: the numbers are below. */
#define FEIGN_NO_SHORT_FORM
#include <feign.h>
#include <stdio.h>
#include <stdlib.h>

#define LATER_MINOR 1  /* a later minor version of the ABI */
#define NO_PROCESS 2   /* a callback is missing */
#define OPTION_PAST 3  /* an option past the end of its struct */
#define BAD_FALLBACK 4 /* a fallback that does not parse */
#define BAD_NAME 5     /* a component's name with a capital */
#define TWICE 6        /* emits an activity twice */
#define CRASHES 7      /* is killed by a signal */
#define PEEKS 8        /* changes what is not due */
#define BATCHES 9      /* what it does depends on the batch size */
#define SWALLOWS 10    /* does not pass on that emit() failed */
#define EXITS 11       /* ends the process */
#define THIEF 12       /* emits what is not due */
#define SECOND_SYMBOL 13
#define BAD_CREATE 14 /* fails without a word */
#define WRONG_ROLES 15
#define NO_TEXT 16 /* a path that the host never gave */
#define ENDS 17    /* says FEIGN_END, which a provider says */
#define LOOKS_TOO_FAR 18
#define LOSES 19        /* goes on when depend() was refused */
#define PRINTS 20       /* on standard output */
#define DOES_WITHOUT 21 /* create() says what it failed at, and goes on: that is no fault */
#define VALUES 22       /* values of its own instead of set_values() */
#ifndef BREAK
#define BREAK 0
#endif

typedef struct Options {
  uint32_t flag;
  uint32_t choice;
  uint64_t count;
  uint64_t size;
  double ratio;
  const char* text;
  const char* const* list;
  uint64_t pause;
} Options;

static const char* const kChoices[] = {"reads", "writes", "both", NULL};

#define AT(field) offsetof(Options, field)
static const feign_option kOptions[] = {
    {"flag", FEIGN_OPT_BOOL, AT(flag), "no", NULL, 0, 0, "A flag."},
    {"choice", FEIGN_OPT_ENUM, AT(choice), BREAK == BAD_FALLBACK ? "some" : "both", kChoices, 0, 0,
     "One of several."},
    {"count", FEIGN_OPT_UINT, AT(count), "1", NULL, 1, 100, "A number."},
    {"size", FEIGN_OPT_SIZE, AT(size), "64k", NULL, 0, 0, "A size."},
    {"ratio", FEIGN_OPT_REAL, AT(ratio), "0.5", NULL, 0, 0, "A share."},
    {"text", FEIGN_OPT_TEXT, AT(text), "", NULL, 0, 0, "A text."},
    {"list", FEIGN_OPT_TEXTS, AT(list), NULL, NULL, 0, 0, "Some texts."},
    {"pause", FEIGN_OPT_DURATION, BREAK == OPTION_PAST ? sizeof(Options) : AT(pause), "10ms", NULL,
     0, 0, "A time."},
};

typedef struct Self {
  const feign_host* host;
  const Options* options;
} Self;

static feign_status create(const feign_host* host, const void* options, void** self) {
  Self* s;
#if BREAK == BAD_CREATE
  return FEIGN_ERR_ARGUMENT;
#endif
  s = (Self*)malloc(sizeof *s);
  if (s == NULL) return host->fail(host, FEIGN_ERR_NOMEM, "out of memory");
  s->host = host;
  s->options = (const Options*)options;
#if BREAK == DOES_WITHOUT
  (void)host->fail(host, FEIGN_ERR_IO, "no table: it does without");
#endif
  *self = s;
  return FEIGN_OK;
}

static feign_status process(void* self, const feign_window* in, feign_sink* out) {
  size_t i;
  (void)self;
#if BREAK == CRASHES
  if (in->due > 0) abort();
#elif BREAK == EXITS
  exit(7);
#elif BREAK == PEEKS
  if (in->count > in->due) in->items[in->due]->flags ^= 1;
#elif BREAK == BATCHES
  if (in->due > 2) in->items[2]->flags ^= 1;
#elif BREAK == NO_TEXT
  if (in->due > 0) in->items[0]->path = 0x7FFFFFFF;
#elif BREAK == VALUES
  static const uint64_t own = 1;
  if (in->due > 0) {
    in->items[0]->values = &own;
    in->items[0]->value_count = 1;
  }
#elif BREAK == LOSES
  if (in->due > 0) {
    const feign_host* host = ((Self*)self)->host;
    (void)host->depend(host, in->items[0], in->items[0]->stream, in->items[0]->id, "itself");
  }
#elif BREAK == PRINTS
  if (in->due == 0) puts("at the end");
#elif BREAK == THIEF
  if (in->count > in->due) return out->emit(out, in->items[in->due]);
#endif
  for (i = 0; i < in->due; ++i) {
    const feign_status status = out->emit(out, in->items[i]);
    if (status < 0 && BREAK != SWALLOWS) return status;
#if BREAK == TWICE
    if (i == 0) {
      const feign_status again = out->emit(out, in->items[i]);
      if (again < 0) return again;
    }
#endif
  }
  return BREAK == ENDS ? FEIGN_END : FEIGN_OK;
}

static void destroy(void* self) { free(self); }

#if BREAK == LOOKS_TOO_FAR
static uint32_t lookahead_of(void* self) {
  (void)self;
  return UINT32_MAX;
}
#else
#define lookahead_of NULL
#endif

static const feign_modifier kApi = {sizeof kApi, BREAK == PEEKS || BREAK == THIEF ? 3 : 0,
                                    create,      BREAK == NO_PROCESS ? NULL : process,
                                    destroy,     lookahead_of};
static const feign_component kComponent = {sizeof kComponent,
                                           FEIGN_MODIFIER,
                                           BREAK == BAD_NAME ? "Sample" : "sample",
                                           "Passes everything on.",
                                           &kApi,
                                           kOptions,
                                           sizeof kOptions / sizeof kOptions[0],
                                           sizeof(feign_option),
                                           sizeof(Options),
                                           0};
static const feign_component* const kComponents[] = {&kComponent, NULL};

#if BREAK == SECOND_SYMBOL
FEIGN_EXPORT int second_symbol(void);
int second_symbol(void) { return 0; }
#endif

FEIGN_ROLES(BREAK == WRONG_ROLES ? FEIGN_PROVIDER : FEIGN_MODIFIER);
const feign_plugin feign_plugin_v1 = {sizeof(feign_plugin),
                                      BREAK == LATER_MINOR ? FEIGN_ABI_MINOR + 5 : FEIGN_ABI_MINOR,
                                      "sample",
                                      "1.0",
                                      "MIT",
                                      kComponents};
