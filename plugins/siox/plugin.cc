// SPDX-License-Identifier: MIT
#include "siox/plugin.h"

namespace {
constexpr const feign_component* kComponents[] = {&siox::kProvider, &siox::kWriter, nullptr};
}  // namespace

FEIGN_ROLES(FEIGN_PROVIDER | FEIGN_WRITER);
extern "C" const feign_plugin feign_plugin_v1 = {
    sizeof(feign_plugin), FEIGN_ABI_MINOR, "siox", FEIGN_VERSION, "MIT", kComponents};
