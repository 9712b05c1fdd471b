/* SPDX-License-Identifier: MIT */
/* Short-form plug-ins that break one rule each, which the build chooses with -DBREAK=n. */
#include <feign.h>

#define NO_SYMBOL 1
#define CONTEXT 2
#define TWICE 3
#define SILENT 4
#define NO_INTENT 5
#define FAILS 6
#define NO_NAME 7

static Plugin plugin = {
#if BREAK == NO_NAME
    .name = "",
#else
    .name = "bad-short",
#endif
    .version = "1",
#if BREAK == CONTEXT
    .intents = FEIGN_FILTER_CONTEXT,
#elif BREAK == NO_INTENT
    .intents = 0,
#else
    .intents = FEIGN_MUTATOR,
#endif
};

int init(int argc, char* argv[]) {
  (void)argc;
  (void)argv;
  (void)plugin;
#if BREAK == TWICE
  feign_register_plugin(&plugin);
#endif
#if BREAK == SILENT
  return 0;
#elif BREAK == FAILS
  feign_register_plugin(&plugin);
  (void)feign_register_plugin(NULL); /* nor is what comes then forgotten */
  return 42;
#else
  return feign_register_plugin(&plugin);
#endif
}

#if BREAK != NO_SYMBOL
Activity* mutate(Activity* a) { return a; }
#endif
