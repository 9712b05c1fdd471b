/* SPDX-License-Identifier: MIT */
/* The ten-line plug-in of feign.h: drops writes. */
#include <feign.h>
Plugin plugin = {.name = "no-writes", .version = "1", .intents = FEIGN_FILTER};
int init(int argc, char* argv[]) {
  (void)argc;
  (void)argv;
  feign_register_plugin(&plugin);
  return 0;
}
Activity* filter(Activity* a) { return a->kind == FEIGN_KIND_WRITE ? NULL : a; }
