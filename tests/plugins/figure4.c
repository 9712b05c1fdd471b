/* SPDX-License-Identifier: MIT */
/* The plug-in of the Feign paper's Figure 4, as a third party would type it: a provider and a
 * replayer in one, in C (figure4_cxx.cc compiles the same lines as C++). */
#include <feign.h>
#include <stdlib.h>

Plugin plugin = {.name = "Example-Provider-Replayer",
                 .version = NULL,
                 .intents = FEIGN_PROVIDER | FEIGN_REPLAYER};

/* The data source: five reads of 4 KiB by one process. */
static int next_item = 0;
int destroyed = 0;
int replayed = 0;

int init(int argc, char* argv[]) {
  (void)argc;
  (void)argv;
  next_item = 0;
  feign_register_plugin(&plugin);
  return 0;
}

Activity* provide(Activity* activity) {
  if (next_item == 5) return NULL;
  activity = (Activity*)calloc(1, sizeof(Activity));
  if (activity == NULL) return NULL;
  activity->op = feign_op("pread64");
  activity->fd = 3;
  activity->size = 4096;
  activity->position = 4096LL * next_item++;
  activity->result = 4096;
  activity->offset = 1000;
  activity->duration = 500;
  return activity;
}

Activity* destroy(Activity* activity) {
  if (activity->provider == plugin.id) {
    free(activity);
    ++destroyed;
  }
  return NULL;
}

Activity* replay(Activity* activity) {
  ++replayed;
  if (activity->result == 4096) activity->result = 4095;
  return activity;
}
