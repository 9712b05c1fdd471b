// SPDX-License-Identifier: MIT
#include "replay/options.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string_view>

namespace feign {

Result<std::pair<Pace, double>> parse_pace(const std::string& text) {
  const auto wrong = [&] {
    return Error(FEIGN_ERR_ARGUMENT,
                 "\"" + text + "\": want afap or think or timed, or think,scale=FACTOR (0 to 1e9)");
  };
  const size_t comma = text.find(',');
  const std::string kind = text.substr(0, comma);
  double scale = 1;
  if (comma != std::string::npos) {
    const std::string rest = text.substr(comma + 1);
    if (!rest.starts_with("scale=")) return wrong();
    char* end = nullptr;
    scale = strtod(rest.c_str() + 6, &end);
    if (rest.size() == 6 || *end != '\0' || !(scale >= 0) || scale > 1e9) return wrong();
  }
  if (kind == "afap" && comma != std::string::npos)
    return Error(
        FEIGN_ERR_ARGUMENT,
        "\"" + text + "\": afap has no pauses that could be scaled: want think,scale=FACTOR");
  if (kind == "afap") return std::pair{Pace::kAfap, scale};
  if (kind == "think") return std::pair{Pace::kThink, scale};
  if (kind == "timed") return std::pair{Pace::kTimed, scale};
  return wrong();
}

bool parse_compute(const std::string& text, std::optional<Compute>& compute) {
  const auto* at = std::find(std::begin(kComputes), std::end(kComputes), text);
  if (at == std::end(kComputes)) return false;
  compute = static_cast<Compute>(at - kComputes);
  return true;
}

bool parse_order(const std::string& text, Order& order) {
  static constexpr std::pair<std::string_view, Order> kOrders[] = {
      {"trace", Order::kTrace}, {"stream", Order::kStream}, {"depend", Order::kDepend}};
  for (const auto& [name, value] : kOrders)
    if (name == text) {
      order = value;
      return true;
    }
  return false;
}

}  // namespace feign
