// SPDX-License-Identifier: MIT
#include "replay/options.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "base/number.h"
#include "plugin/options.h"

namespace feign {
namespace {

// Which of the names a text is; their number if it is none.
template <size_t N>
size_t which(const char* const (&names)[N], std::string_view text) {
  return static_cast<size_t>(std::find(std::begin(names), std::end(names), text) - names);
}

bool pace(const std::string& text, ReplayOptions& to) {
  static constexpr const char* kPaces[] = {"afap", "think", "timed"};
  const size_t comma = std::min(text.find(','), text.size());
  const size_t kind = which(kPaces, text.substr(0, comma));
  if (kind == std::size(kPaces)) return false;
  const auto pace = static_cast<Pace>(kind);
  double scale = 1;
  if (comma != text.size()) {
    constexpr std::string_view kScale = ",scale=";
    const std::string_view rest = std::string_view(text).substr(comma);
    if (pace == Pace::kAfap || !rest.starts_with(kScale)) return false;  // it has no pauses
    if (!to_number(rest.substr(kScale.size()), scale) || !(scale >= 0 && scale <= 1e9))
      return false;
  }
  to.pace = pace;
  to.scale = scale;
  return true;
}

bool order(const std::string& text, ReplayOptions& to) {
  static constexpr const char* kOrders[] = {"trace", "stream", "depend"};
  const size_t at = which(kOrders, text);
  if (at == std::size(kOrders)) return false;
  to.order = static_cast<Order>(at);
  to.order_given = true;
  return true;
}

bool compute(const std::string& text, ReplayOptions& to) {
  static constexpr const char* kComputes[] = {"hybrid", "sleep", "spin", "awake", "busy"};
  const size_t at = which(kComputes, text);
  if (at == std::size(kComputes)) return false;
  to.compute = static_cast<Compute>(at);
  return true;
}

bool content(const std::string& text, ReplayOptions& to) {
  const auto content = Content::parse(text);
  if (!content) return false;
  to.content = *content;
  to.content_text = text;
  return true;
}

bool streams_per_core(const std::string& text, ReplayOptions& to) {
  uint32_t streams = 0;
  if (!to_number(text, streams) || streams < 1 || streams > 4096) return false;
  to.streams_per_core = streams;
  return true;
}

bool max_bytes(const std::string& text, ReplayOptions& to) {
  return parse_size(text, to.max_bytes) && to.max_bytes != 0;
}

bool pin(const std::string& text, ReplayOptions& to) { return parse_truth(text, to.pin); }

constexpr Setting kSettings[] = {
    {"pace", "afap, think[,scale=FACTOR] or timed[,scale=FACTOR] (0 to 1e9)", pace},
    {"order", "trace, depend or stream", order},
    {"compute", "hybrid, sleep, spin, awake or busy", compute},
    {"content", Content::kForms, content},
    {"streams-per-core", "a number from 1 to 4096", streams_per_core},
    {"max-bytes", "bytes, such as 500m or 2GiB", max_bytes},
    {"pin", "yes or no", pin},
};

}  // namespace

const Setting* replay_setting(std::string_view name) {
  for (const Setting& s : kSettings)
    if (name == s.name) return &s;
  return nullptr;
}

std::string replay_setting_names() {
  std::string out;
  for (const Setting& s : kSettings) out += (out.empty() ? "" : ", ") + std::string(s.name);
  return out;
}

Result<void> set(ReplayOptions& to, const Setting& setting, const std::string& text) {
  if (setting.set(text, to)) return {};
  return Error(FEIGN_ERR_ARGUMENT, "\"" + text + "\": want " + setting.want);
}

}  // namespace feign
