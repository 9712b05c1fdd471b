// SPDX-License-Identifier: MIT
// Replayer null: does nothing, and says that every call came back as recorded. For measuring what
// the engine itself costs, and for looking at a plan without touching a file system.
#include "feign.hpp"

namespace {

struct Null {
  Null(const feign_host*, const feign::NoOptions&) {}

  struct Stream {
    Stream(Null&, const feign_stream_info&) {}
  };
  feign_status execute(Stream&, const feign_activity& a, feign_outcome& outcome) {
    outcome.result = a.result;
    return FEIGN_OK;
  }
};

constexpr feign_replayer kApi = feign::replayer<Null, feign::NoOptions>(nullptr, false);
constexpr feign_component kComponent =
    feign::component(kApi, "null", "Does nothing: every call comes back as recorded.");
constexpr const feign_component* kComponents[] = {&kComponent, nullptr};

}  // namespace

FEIGN_ROLES(FEIGN_REPLAYER);
extern "C" const feign_plugin feign_plugin_v1 = {
    sizeof(feign_plugin), FEIGN_ABI_MINOR, "null", FEIGN_VERSION, "MIT", kComponents};
