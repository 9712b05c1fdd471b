// SPDX-License-Identifier: MIT
// A modifier and a replayer in C++17 by feign.hpp that throw, where and what their options say.
#include <new>
#include <stdexcept>

#include "feign.hpp"

namespace {

enum What : uint32_t { kNothing, kMemory, kError, kNumber };
struct Options {
  uint32_t create, start, lookahead, process;
};
constexpr const char* kWhats[] = {"nothing", "memory", "error", "number", nullptr};
constexpr feign_option kOptions[] = {
    {"create", FEIGN_OPT_ENUM, offsetof(Options, create), "nothing", kWhats, 0, 0, "There."},
    {"start", FEIGN_OPT_ENUM, offsetof(Options, start), "nothing", kWhats, 0, 0, "There."},
    {"lookahead", FEIGN_OPT_ENUM, offsetof(Options, lookahead), "nothing", kWhats, 0, 0, "There."},
    {"process", FEIGN_OPT_ENUM, offsetof(Options, process), "nothing", kWhats, 0, 0, "There."},
};

void toss(uint32_t what) {
  if (what == kMemory) throw std::bad_alloc();
  if (what == kError) throw std::runtime_error("this went wrong");
  if (what == kNumber) throw 42;
}

class Throws {
 public:
  Throws(const feign_host*, const Options& options) : options_(options) { toss(options.create); }
  feign_status start() {
    toss(options_.start);
    return FEIGN_OK;
  }
  feign_status process(const feign_window& in, feign_sink* out) {
    toss(options_.process);
    for (size_t i = 0; i < in.due; ++i)
      if (const feign_status s = out->emit(out, in.items[i]); s < 0) return s;
    return FEIGN_OK;
  }
  uint32_t lookahead() const {
    toss(options_.lookahead);
    return 7;
  }

 private:
  Options options_;
};

constexpr feign_modifier kApi = feign::modifier<Throws, Options>();
constexpr feign_component kComponent =
    feign::component<Options>(kApi, "throws", "Throws.", kOptions);
struct ReplayerOptions {
  uint32_t create, stream, execute;
};
constexpr feign_option kReplayerOptions[] = {
    {"create", FEIGN_OPT_ENUM, offsetof(ReplayerOptions, create), "nothing", kWhats, 0, 0,
     "There."},
    {"stream", FEIGN_OPT_ENUM, offsetof(ReplayerOptions, stream), "nothing", kWhats, 0, 0,
     "There."},
    {"execute", FEIGN_OPT_ENUM, offsetof(ReplayerOptions, execute), "nothing", kWhats, 0, 0,
     "There."},
};

class ThrowingReplayer {
 public:
  ThrowingReplayer(const feign_host*, const ReplayerOptions& options) : options_(options) {
    toss(options.create);
  }
  struct Stream {
    Stream(ThrowingReplayer& of, const feign_stream_info& info) : thread(info.thread) {
      toss(of.options_.stream);
    }
    int64_t thread, calls = 0;
  };
  feign_status execute(Stream& stream, const feign_activity& a, feign_outcome& outcome) {
    if (++stream.calls == 2) toss(options_.execute);
    outcome.result = a.result + (stream.thread != 1);
    return FEIGN_OK;
  }

 private:
  ReplayerOptions options_;
};

constexpr feign_replayer kReplayerApi =
    feign::replayer<ThrowingReplayer, ReplayerOptions>(nullptr, false);
constexpr feign_component kReplayerComponent =
    feign::component<ReplayerOptions>(kReplayerApi, "throws", "Throws.", kReplayerOptions);
constexpr const feign_component* kComponents[] = {&kComponent, &kReplayerComponent, nullptr};

}  // namespace

extern "C" FEIGN_EXPORT const feign_plugin feign_plugin_v1 = {
    sizeof(feign_plugin), FEIGN_ABI_MINOR, "throws", "1", "MIT", kComponents};
