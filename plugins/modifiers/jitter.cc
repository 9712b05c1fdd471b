// SPDX-License-Identifier: MIT
// Modifier jitter: random pauses in place of the recorded ones, to shake a replay: an order that is
// kept by chance only is kept no longer. Replay with pace think.
#include <cstddef>
#include <iterator>
#include <new>

#include "feign.h"

namespace {

struct Options {
  uint64_t max;
  uint64_t seed;
  double share;
};
constexpr feign_option kOptions[] = {
    {"max", FEIGN_OPT_DURATION, offsetof(Options, max), "200us", nullptr, 0, 0,
     "No pause is longer; any length up to it is as likely."},
    {"share", FEIGN_OPT_REAL, offsetof(Options, share), "1", nullptr, 0, 0,
     "Which share of activities, from 0 to 1, have a pause before them at all."},
    {"seed", FEIGN_OPT_UINT, offsetof(Options, seed), "1", nullptr, 0, 0,
     "The same seed gives the same pauses."},
};

struct Jitter {
  Options options;
  uint64_t state;
  uint64_t
  next() {  // Vigna, "An experimental exploration of Marsaglia's xorshift generators" (2016)
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 0x2545F4914F6CDD1D;
  }
  double fraction() { return static_cast<double>(next() >> 11) * 0x1p-53; }
};

feign_status create(const feign_host* host, const void* raw, void** self) noexcept {
  const auto& o = *static_cast<const Options*>(raw);
  if (!(o.share >= 0 && o.share <= 1))
    return host->fail(host, FEIGN_ERR_ARGUMENT, "share: want a number from 0 to 1");
  auto* j = new (std::nothrow) Jitter{o, (o.seed + 1) * 0x9E3779B97F4A7C15};
  if (j == nullptr) return host->fail(host, FEIGN_ERR_NOMEM, "out of memory");
  if (j->state == 0) j->state = 1;
  *self = j;
  return FEIGN_OK;
}

feign_status process(void* self, const feign_window* in, feign_sink* out) noexcept {
  auto& j = *static_cast<Jitter*>(self);
  for (size_t i = 0; i < in->due; ++i) {
    feign_activity* a = in->items[i];
    const bool pauses = j.fraction() < j.options.share;
    a->compute_ns =
        pauses ? static_cast<uint64_t>(j.fraction() * static_cast<double>(j.options.max)) : 0;
    a->sync_ns = 0;
    if (const feign_status s = out->emit(out, a); s < 0) return s;
  }
  return FEIGN_OK;
}

void destroy(void* self) noexcept { delete static_cast<Jitter*>(self); }

constexpr feign_modifier kApi = {sizeof kApi, 0, create, process, destroy, nullptr};
constexpr feign_component kComponent = {sizeof kComponent,
                                        FEIGN_MODIFIER,
                                        "jitter",
                                        "Random pauses in place of the recorded ones, to shake a "
                                        "replay (with pace think).",
                                        &kApi,
                                        kOptions,
                                        std::size(kOptions),
                                        sizeof(feign_option),
                                        sizeof(Options),
                                        0};
constexpr const feign_component* kComponents[] = {&kComponent, nullptr};

}  // namespace

FEIGN_ROLES(FEIGN_MODIFIER);
extern "C" const feign_plugin feign_plugin_v1 = {
    sizeof(feign_plugin), FEIGN_ABI_MINOR, "jitter", FEIGN_VERSION, "MIT", kComponents};
