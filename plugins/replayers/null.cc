// SPDX-License-Identifier: MIT
// Replayer null: does nothing, and says that every call came back as recorded. For measuring what
// the engine itself costs, and for looking at a plan without touching a file system.
#include <iterator>

#include "feign.h"

namespace {

feign_status create(const feign_host*, const void*, void** self) noexcept {
  static int nothing;
  *self = &nothing;
  return FEIGN_OK;
}
feign_status open_stream(void*, const feign_stream_info*, void** stream) noexcept {
  *stream = nullptr;
  return FEIGN_OK;
}
feign_status execute(void*, void*, const feign_activity* a, feign_outcome* outcome) noexcept {
  outcome->result = a->result;
  return FEIGN_OK;
}
void close_stream(void*, void*) noexcept {}
void destroy(void*) noexcept {}

constexpr feign_replayer kApi = {sizeof kApi, 0,       nullptr,      create,
                                 open_stream, execute, close_stream, destroy};
constexpr feign_component kComponent = {sizeof kComponent,
                                        FEIGN_REPLAYER,
                                        "null",
                                        "Does nothing: every call comes back as recorded.",
                                        &kApi,
                                        nullptr,
                                        0,
                                        sizeof(feign_option),
                                        0,
                                        0};
constexpr const feign_component* kComponents[] = {&kComponent, nullptr};

}  // namespace

FEIGN_ROLES(FEIGN_REPLAYER);
extern "C" const feign_plugin feign_plugin_v1 = {
    sizeof(feign_plugin), FEIGN_ABI_MINOR, "null", FEIGN_VERSION, "MIT", kComponents};
