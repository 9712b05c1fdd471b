// SPDX-License-Identifier: MIT
// For bench/handover and bench/threads: a modifier that makes activities depend on the one before
// them in the trace, where that is another stream's.
#include <cstddef>
#include <iterator>
#include <new>

#include "feign.h"

namespace {

struct Options {
  uint64_t every;
  uint32_t lone;
};
constexpr feign_option kOptions[] = {
    {"every", FEIGN_OPT_UINT, offsetof(Options, every), "1", nullptr, 1, 1u << 24,
     "One of this many activities."},
    {"lone", FEIGN_OPT_BOOL, offsetof(Options, lone), "no", nullptr, 0, 0,
     "Of every stream but the first, only one activity is kept, and nothing depends."},
};
struct Chain {
  const feign_host* host;
  uint64_t every;
  bool lone;
  uint64_t seen = 0;
  uint64_t before = 0;
  uint32_t stream = 0;
};

feign_status create(const feign_host* host, const void* raw, void** self) noexcept {
  const auto& o = *static_cast<const Options*>(raw);
  auto* c = new (std::nothrow) Chain{host, o.every, o.lone != 0};
  if (c == nullptr) return host->fail(host, FEIGN_ERR_NOMEM, "out of memory");
  *self = c;
  return FEIGN_OK;
}
feign_status process(void* self, const feign_window* in, feign_sink* out) noexcept {
  auto& c = *static_cast<Chain*>(self);
  for (size_t i = 0; i < in->due; ++i) {
    feign_activity* a = in->items[i];
    const uint64_t id = a->id;
    const uint32_t stream = a->stream;
    if (c.lone && stream != 1 && ++c.seen > 1) continue;
    if (!c.lone && ++c.seen % c.every == 0 && c.stream != 0 && c.stream != stream)
      if (const auto s = c.host->depend(c.host, a, c.stream, c.before, "chain"); s < 0) return s;
    c.before = id;
    c.stream = stream;
    if (const feign_status s = out->emit(out, a); s < 0) return s;
  }
  return FEIGN_OK;
}
void destroy(void* self) noexcept { delete static_cast<Chain*>(self); }

constexpr feign_modifier kApi = {sizeof kApi, 0, create, process, destroy, nullptr};
constexpr feign_component kComponent = {sizeof kComponent,
                                        FEIGN_MODIFIER,
                                        "chain",
                                        "Makes activities depend on the one before.",
                                        &kApi,
                                        kOptions,
                                        std::size(kOptions),
                                        sizeof(feign_option),
                                        sizeof(Options),
                                        0};
constexpr const feign_component* kComponents[] = {&kComponent, nullptr};

}  // namespace

extern "C" const feign_plugin feign_plugin_v1 = {
    sizeof(feign_plugin), FEIGN_ABI_MINOR, "chain", "1", "MIT", kComponents};
