// SPDX-License-Identifier: MIT
// A modifier in C++17 by feign.hpp that throws, where and what its options say.
#include <new>
#include <stdexcept>

#include "feign.hpp"

namespace {

enum What : uint32_t { kNothing, kMemory, kError, kNumber };
struct Options {
  uint32_t create, start, process;
};
constexpr const char* kWhats[] = {"nothing", "memory", "error", "number", nullptr};
constexpr feign_option kOptions[] = {
    {"create", FEIGN_OPT_ENUM, offsetof(Options, create), "nothing", kWhats, 0, 0, "There."},
    {"start", FEIGN_OPT_ENUM, offsetof(Options, start), "nothing", kWhats, 0, 0, "There."},
    {"process", FEIGN_OPT_ENUM, offsetof(Options, process), "nothing", kWhats, 0, 0, "There."},
};

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
  uint32_t lookahead() const { return 7; }

 private:
  static void toss(uint32_t what) {
    if (what == kMemory) throw std::bad_alloc();
    if (what == kError) throw std::runtime_error("this went wrong");
    if (what == kNumber) throw 42;
  }
  Options options_;
};

constexpr feign_modifier kApi = feign::modifier<Throws, Options>();
constexpr feign_component kComponent =
    feign::component<Options>(kApi, "throws", "Throws.", kOptions);
constexpr const feign_component* kComponents[] = {&kComponent, nullptr};

}  // namespace

extern "C" FEIGN_EXPORT const feign_plugin feign_plugin_v1 = {
    sizeof(feign_plugin), FEIGN_ABI_MINOR, "throws", "1", "MIT", kComponents};
