// SPDX-License-Identifier: MIT
// Modifier jitter: random pauses in place of the recorded ones, to shake a replay: an order that is
// kept by chance only is kept no longer. Replay with pace think.
#include <cstddef>
#include <cstdio>

#include "feign.hpp"

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

class Jitter {
 public:
  Jitter(const feign_host* host, const Options& o)
      : host_(host), options_(o), state_((o.seed + 1) * 0x9E3779B97F4A7C15) {
    if (state_ == 0) state_ = 1;
  }
  feign_status start() const {
    if (options_.share >= 0 && options_.share <= 1) return FEIGN_OK;
    char text[64];
    std::snprintf(text, sizeof text, "share=%g: want a number from 0 to 1", options_.share);
    return host_->fail(host_, FEIGN_ERR_ARGUMENT, text);
  }
  feign_status process(const feign_window& in, feign_sink* out) {
    for (size_t i = 0; i < in.due; ++i) {
      feign_activity* a = in.items[i];
      const bool pauses = fraction() < options_.share;
      a->compute_ns =
          pauses ? static_cast<uint64_t>(fraction() * static_cast<double>(options_.max)) : 0;
      a->sync_ns = 0;
      if (const feign_status s = out->emit(out, a); s < 0) return s;
    }
    return FEIGN_OK;
  }

 private:
  // Vigna, "An experimental exploration of Marsaglia's xorshift generators" (2016).
  uint64_t next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545F4914F6CDD1D;
  }
  double fraction() { return static_cast<double>(next() >> 11) * 0x1p-53; }

  const feign_host* host_;
  Options options_;
  uint64_t state_;
};

constexpr feign_modifier kApi = feign::modifier<Jitter, Options>();
constexpr feign_component kComponent = feign::component<Options>(
    kApi, "jitter",
    "Random pauses in place of the recorded ones, to shake a replay (with pace think).", kOptions);
constexpr const feign_component* kComponents[] = {&kComponent, nullptr};

}  // namespace

FEIGN_ROLES(FEIGN_MODIFIER);
extern "C" const feign_plugin feign_plugin_v1 = {
    sizeof(feign_plugin), FEIGN_ABI_MINOR, "jitter", FEIGN_VERSION, "MIT", kComponents};
