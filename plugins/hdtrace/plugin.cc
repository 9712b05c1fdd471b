// SPDX-License-Identifier: MIT
#include "feign.h"
#include "hdtrace/plugin.h"

namespace {
constexpr const feign_component* kComponents[] = {&feign::hdtrace::kProvider,
                                                  &feign::hdtrace::kWriter, nullptr};
}

FEIGN_ROLES(FEIGN_PROVIDER | FEIGN_WRITER);
extern "C" const feign_plugin feign_plugin_v1 = {
    sizeof(feign_plugin), FEIGN_ABI_MINOR, "hdtrace", FEIGN_VERSION, "MIT", kComponents};
