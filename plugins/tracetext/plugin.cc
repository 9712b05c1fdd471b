// SPDX-License-Identifier: MIT
#include "tracetext/plugin.h"

namespace {
constexpr const feign_component* kComponents[] = {&tracetext::kProvider, &tracetext::kWriter,
                                                  nullptr};
}  // namespace

FEIGN_ROLES(FEIGN_PROVIDER | FEIGN_WRITER);
extern "C" const feign_plugin feign_plugin_v1 = {
    sizeof(feign_plugin), FEIGN_ABI_MINOR, "tracetext", FEIGN_VERSION, "MIT", kComponents};
