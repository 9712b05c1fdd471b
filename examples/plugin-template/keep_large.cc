// SPDX-License-Identifier: MIT
// keep-large: drops reads and writes of fewer bytes than it is told.
#include <feign.h>

#include <cstddef>
#include <iterator>
#include <new>

namespace {

struct Options {
  uint64_t min_length;
};
constexpr feign_option kOptions[] = {
    {"min-length", FEIGN_OPT_SIZE, offsetof(Options, min_length), "4k", nullptr, 0, 0,
     "Drop reads and writes of fewer bytes than this."},
};

struct KeepLarge {
  const feign_host* host;
  Options options;

  bool passes(const feign_activity& a) const {
    const feign_op_info* op = host->op_info(host, a.op);
    const bool data =
        op != nullptr && (op->kind == FEIGN_KIND_READ || op->kind == FEIGN_KIND_WRITE);
    return !data || a.length >= options.min_length;
  }
};

feign_status create(const feign_host* host, const void* options, void** self) noexcept {
  auto* k = new (std::nothrow) KeepLarge{host, *static_cast<const Options*>(options)};
  if (k == nullptr) return host->fail(host, FEIGN_ERR_NOMEM, "out of memory");
  *self = k;
  return FEIGN_OK;
}

feign_status process(void* self, const feign_window* in, feign_sink* out) noexcept {
  const auto& k = *static_cast<KeepLarge*>(self);
  for (size_t i = 0; i < in->due; ++i) {
    if (!k.passes(*in->items[i])) continue;  // not emitted is dropped
    if (const feign_status s = out->emit(out, in->items[i]); s < 0) return s;
  }
  return FEIGN_OK;
}

void destroy(void* self) noexcept { delete static_cast<KeepLarge*>(self); }

constexpr feign_modifier kApi = {sizeof kApi, /*lookahead=*/0, create, process, destroy, nullptr};
constexpr feign_component kComponent = {sizeof kComponent,
                                        FEIGN_MODIFIER,
                                        "keep-large",
                                        "Drops small reads and writes.",
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
    sizeof(feign_plugin), FEIGN_ABI_MINOR, "keep-large", "1.0.0", "MIT", kComponents};
