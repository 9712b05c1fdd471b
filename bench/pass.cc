// SPDX-License-Identifier: MIT
// For bench/pipeline: a provider of made-up activities, and a modifier that lets everything pass.
#include <cstddef>

#include "feign.hpp"

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
class Maker {
 public:
  Maker(const feign_host* host, const CountOptions& o) : host_(host), options_(o), left_(o.count) {}

  feign_status start() {
    for (uint64_t s = 0; s < options_.streams; ++s) {
      feign_stream_info info{};
      info.struct_size = sizeof info;
      info.rank = -1;
      info.process = info.thread = static_cast<int64_t>(s) + 1;
      const uint32_t id = host_->stream(host_, &info);
      if (s == 0) first_ = id;
    }
    read_ = host_->op(host_, "posix", "pread64");
    write_ = host_->op(host_, "posix", "pwrite64");
    path_ = host_->intern(host_, "/data/file", 10);
    return FEIGN_OK;
  }

  feign_status next(size_t want, feign_sink* out) {
    for (size_t i = 0; i < want; ++i) {
      if (left_ == 0) return FEIGN_END;
      feign_activity* a = out->make(out);
      if (a == nullptr) return FEIGN_ERR_NOMEM;
      const uint64_t n = made_++;
      --left_;
      a->start_ns = n * 1000;
      a->duration_ns = 500;
      a->compute_ns = 500;
      a->offset = (options_.in_order ? n / options_.streams : n * 2654435761u % 16384) * 4096;
      a->length = 4096;
      a->result = 4096;
      a->op = options_.in_order || (n & 1) ? write_ : read_;
      a->stream = first_ + static_cast<uint32_t>(n % options_.streams);
      a->handle = a->file = options_.apart ? 1 + static_cast<uint32_t>(n % options_.streams) : 1;
      a->path = path_;
      a->place = FEIGN_PLACE(0, n + 1);
      a->marks = FEIGN_RESOLVED;
      if (const feign_status s = out->emit(out, a); s < 0) return s;
    }
    return FEIGN_OK;
  }

 private:
  const feign_host* host_;
  CountOptions options_;
  uint64_t left_, made_ = 0;
  uint32_t first_ = 0, read_ = 0, write_ = 0, path_ = 0;
};

struct PassOptions {
  uint64_t lookahead;
};
constexpr feign_option kPassOptions[] = {
    {"lookahead", FEIGN_OPT_UINT, offsetof(PassOptions, lookahead), "0", nullptr, 0, 1u << 24,
     "How far it looks."},
};
class Pass {
 public:
  Pass(const feign_host*, const PassOptions& options)
      : lookahead_(static_cast<uint32_t>(options.lookahead)) {}
  feign_status process(const feign_window& in, feign_sink* out) {
    for (size_t i = 0; i < in.due; ++i)
      if (const feign_status s = out->emit(out, in.items[i]); s < 0) return s;
    return FEIGN_OK;
  }
  uint32_t lookahead() const { return lookahead_; }

 private:
  uint32_t lookahead_;
};

constexpr feign_provider kMakeApi = feign::provider<Maker, CountOptions>(nullptr);
constexpr feign_component kMake =
    feign::component<CountOptions>(kMakeApi, "made-up", "Makes activities up.", kCountOptions);
constexpr feign_modifier kPassApi = feign::modifier<Pass, PassOptions>();
constexpr feign_component kPass =
    feign::component<PassOptions>(kPassApi, "pass", "Lets everything pass.", kPassOptions);
constexpr const feign_component* kComponents[] = {&kMake, &kPass, nullptr};

}  // namespace

extern "C" const feign_plugin feign_plugin_v1 = {
    sizeof(feign_plugin), FEIGN_ABI_MINOR, "pass", "1", "MIT", kComponents};
