/* SPDX-License-Identifier: MIT */
/* A replayer that fails at its hundredth activity. */
#define FEIGN_NO_SHORT_FORM
#include <feign.h>

static const feign_host* the_host;
static unsigned done;

static feign_status create(const feign_host* host, const void* options, void** self) {
  (void)options;
  the_host = host;
  *self = &done;
  return FEIGN_OK;
}
static feign_status execute(void* self, void* stream, const feign_activity* a,
                            feign_outcome* outcome) {
  (void)self, (void)stream;
  if (__atomic_add_fetch(&done, 1, __ATOMIC_RELAXED) == 100)
    return the_host->fail(the_host, FEIGN_ERR_IO, "the device is gone");
  outcome->result = a->result;
  return FEIGN_OK;
}
static feign_status open_stream(void* self, const feign_stream_info* info, void** stream) {
  (void)self, (void)info;
  *stream = NULL;
  return FEIGN_OK;
}
static void close_stream(void* self, void* stream) { (void)self, (void)stream; }
static void destroy(void* self) { (void)self; }

static const feign_replayer api = {sizeof api,  0,       NULL,         create,
                                   open_stream, execute, close_stream, destroy};
static const feign_component component = {sizeof component,
                                          FEIGN_REPLAYER,
                                          "fails-late",
                                          "Fails.",
                                          &api,
                                          NULL,
                                          0,
                                          sizeof(feign_option),
                                          0,
                                          0};
static const feign_component* const components[] = {&component, NULL};
FEIGN_EXPORT const feign_plugin feign_plugin_v1 = {
    sizeof feign_plugin_v1, FEIGN_ABI_MINOR, "fails-late", "1", "MIT", components};
