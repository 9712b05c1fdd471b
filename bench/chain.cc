// SPDX-License-Identifier: MIT
// For bench/handover and bench/threads: a modifier that makes activities depend on the one before
// them in the trace, where that is another stream's.
#include <cstddef>

#include "feign.hpp"

namespace {

struct Options {
  uint64_t every, others;
};
constexpr uint64_t kAll = uint64_t{1} << 62;
constexpr feign_option kOptions[] = {
    {"every", FEIGN_OPT_UINT, offsetof(Options, every), "1", nullptr, 1, 1u << 24,
     "One of this many activities."},
    {"others", FEIGN_OPT_UINT, offsetof(Options, others), "4611686018427387904", nullptr, 0, kAll,
     "Of the streams but the first so many activities are kept; if not all, nothing depends."},
};
class Chain {
 public:
  Chain(const feign_host* host, const Options& options) : host_(host), options_(options) {}

  feign_status process(const feign_window& in, feign_sink* out) {
    for (size_t i = 0; i < in.due; ++i) {
      feign_activity* a = in.items[i];
      const uint64_t id = a->id;
      const uint32_t stream = a->stream;
      const bool all = options_.others == kAll;
      if (!all && stream != 1 && ++seen_ > options_.others) continue;
      if (all && ++seen_ % options_.every == 0 && stream_ != 0 && stream_ != stream)
        if (const auto s = host_->depend(host_, a, stream_, before_, "chain"); s < 0) return s;
      before_ = id;
      stream_ = stream;
      if (const feign_status s = out->emit(out, a); s < 0) return s;
    }
    return FEIGN_OK;
  }

 private:
  const feign_host* host_;
  Options options_;
  uint64_t seen_ = 0, before_ = 0;
  uint32_t stream_ = 0;
};

constexpr feign_modifier kApi = feign::modifier<Chain, Options>();
constexpr feign_component kComponent = feign::component<Options>(
    kApi, "chain", "Makes activities depend on the one before.", kOptions);
constexpr const feign_component* kComponents[] = {&kComponent, nullptr};

}  // namespace

extern "C" const feign_plugin feign_plugin_v1 = {
    sizeof(feign_plugin), FEIGN_ABI_MINOR, "chain", "1", "MIT", kComponents};
