// SPDX-License-Identifier: MIT
// For bench/pipeline: a provider of made-up activities, and a modifier that lets everything pass.
#include <cstddef>
#include <iterator>
#include <new>

#include "feign.h"

namespace {

struct CountOptions {
  uint64_t count;
  uint64_t streams;
  uint32_t apart;
  uint32_t in_order;
};
constexpr feign_option kCountOptions[] = {
    {"count", FEIGN_OPT_UINT, offsetof(CountOptions, count), "1000000", nullptr, 0, 0, "How many."},
    {"streams", FEIGN_OPT_UINT, offsetof(CountOptions, streams), "1", nullptr, 1, 100000,
     "Of how many streams."},
    {"apart", FEIGN_OPT_BOOL, offsetof(CountOptions, apart), "no", nullptr, 0, 0,
     "Each stream has a file of its own."},
    {"in-order", FEIGN_OPT_BOOL, offsetof(CountOptions, in_order), "no", nullptr, 0, 0,
     "Each stream writes its blocks in order, in place of random ones, read and written."},
};
struct Maker {
  const feign_host* host;
  uint64_t left, made = 0;
  uint64_t streams;
  bool apart, in_order;
  uint32_t first = 0, read = 0, write = 0, path = 0;
};

feign_status make_create(const feign_host* host, const void* raw, void** self) noexcept {
  const auto& o = *static_cast<const CountOptions*>(raw);
  auto* m = new (std::nothrow) Maker{host, o.count, 0, o.streams, o.apart != 0, o.in_order != 0};
  if (m == nullptr) return host->fail(host, FEIGN_ERR_NOMEM, "out of memory");
  for (uint64_t s = 0; s < o.streams; ++s) {
    feign_stream_info info{};
    info.struct_size = sizeof info;
    info.rank = -1;
    info.process = info.thread = static_cast<int64_t>(s) + 1;
    const uint32_t id = host->stream(host, &info);
    if (s == 0) m->first = id;
  }
  m->read = host->op(host, "posix", "pread64");
  m->write = host->op(host, "posix", "pwrite64");
  m->path = host->intern(host, "/data/file", 10);
  *self = m;
  return FEIGN_OK;
}

feign_status make_next(void* self, size_t want, feign_sink* out) noexcept {
  auto& m = *static_cast<Maker*>(self);
  for (size_t i = 0; i < want; ++i) {
    if (m.left == 0) return FEIGN_END;
    feign_activity* a = out->make(out);
    if (a == nullptr) return FEIGN_ERR_NOMEM;
    const uint64_t n = m.made++;
    --m.left;
    a->start_ns = n * 1000;
    a->duration_ns = 500;
    a->compute_ns = 500;
    a->offset = (m.in_order ? n / m.streams : n * 2654435761u % 16384) * 4096;
    a->length = 4096;
    a->result = 4096;
    a->op = m.in_order || (n & 1) ? m.write : m.read;
    a->stream = m.first + static_cast<uint32_t>(n % m.streams);
    a->handle = a->file = m.apart ? 1 + static_cast<uint32_t>(n % m.streams) : 1;
    a->path = m.path;
    a->place = FEIGN_PLACE(0, n + 1);
    a->marks = FEIGN_RESOLVED;
    if (const feign_status s = out->emit(out, a); s < 0) return s;
  }
  return FEIGN_OK;
}
void make_destroy(void* self) noexcept { delete static_cast<Maker*>(self); }

struct PassOptions {
  uint64_t lookahead;
};
constexpr feign_option kPassOptions[] = {
    {"lookahead", FEIGN_OPT_UINT, offsetof(PassOptions, lookahead), "0", nullptr, 0, 1u << 24,
     "How far it looks."},
};
feign_status pass_create(const feign_host* host, const void* raw, void** self) noexcept {
  auto* p = new (std::nothrow) PassOptions(*static_cast<const PassOptions*>(raw));
  if (p == nullptr) return host->fail(host, FEIGN_ERR_NOMEM, "out of memory");
  *self = p;
  return FEIGN_OK;
}
feign_status pass(void*, const feign_window* in, feign_sink* out) noexcept {
  for (size_t i = 0; i < in->due; ++i)
    if (const feign_status s = out->emit(out, in->items[i]); s < 0) return s;
  return FEIGN_OK;
}
void pass_destroy(void* self) noexcept { delete static_cast<PassOptions*>(self); }
uint32_t pass_lookahead(void* self) noexcept {
  return static_cast<uint32_t>(static_cast<PassOptions*>(self)->lookahead);
}

constexpr feign_provider kMakeApi = {sizeof kMakeApi, 0,      make_create, make_next,
                                     make_destroy,    nullptr};
constexpr feign_component kMake = {sizeof kMake,
                                   FEIGN_PROVIDER,
                                   "made-up",
                                   "Makes activities up.",
                                   &kMakeApi,
                                   kCountOptions,
                                   std::size(kCountOptions),
                                   sizeof(feign_option),
                                   sizeof(CountOptions),
                                   0};
constexpr feign_modifier kPassApi = {sizeof kPassApi, 0, pass_create, pass, pass_destroy,
                                     pass_lookahead};
constexpr feign_component kPass = {sizeof kPass,
                                   FEIGN_MODIFIER,
                                   "pass",
                                   "Lets everything pass.",
                                   &kPassApi,
                                   kPassOptions,
                                   std::size(kPassOptions),
                                   sizeof(feign_option),
                                   sizeof(PassOptions),
                                   0};
constexpr const feign_component* kComponents[] = {&kMake, &kPass, nullptr};

}  // namespace

extern "C" const feign_plugin feign_plugin_v1 = {
    sizeof(feign_plugin), FEIGN_ABI_MINOR, "pass", "1", "MIT", kComponents};
