/* SPDX-License-Identifier: MIT */
/* A short-form provider with a layer of its own, activities of which are no calls. */
#include <feign.h>
#include <string.h>

static Plugin plugin = {
    .name = "layered", .version = "1", .intents = FEIGN_PROVIDER | FEIGN_PRECREATOR};
static Layer layer = {.name = "weather", .intents = 0, .id = 0};
static Activity item;
static int count;

int init(int argc, char* argv[]) {
  (void)argc;
  (void)argv;
  count = 0;
  if (feign_register_plugin(&plugin) != 0) return 1;
  return feign_register_layer(&layer) < 0;
}

/* One event of the layer, an open, a read through a descriptor, and an event without a layer. */
Activity* provide(Activity* activity) {
  (void)activity;
  memset(&item, 0, sizeof item);
  item.rank = count % 2;
  item.offset = 100;
  item.duration = 10;
  switch (count++) {
    case 0:
      item.layer = layer.id;
      return &item;
    case 1:
      item.op = feign_op("openat");
      item.path = "/etc/hosts";
      item.result = 5;
      return &item;
    case 2:
      item.op = feign_op("read");
      item.fd = 5;
      item.length = 64;
      item.result = 64;
      item.start = 5000;
      return &item;
    case 3:
      return &item;
    default:
      return NULL;
  }
}
