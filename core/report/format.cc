// SPDX-License-Identifier: MIT
#include "report/format.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <string_view>

namespace feign {

std::string format(const char* how, ...) {
  std::string text(512, '\0');
  const auto print = [&](va_list args) { return vsnprintf(text.data(), text.size(), how, args); };
  va_list args, again;
  va_start(args, how);
  va_copy(again, args);
  const int length = std::max(print(args), 0);
  va_end(args);
  if (static_cast<size_t>(length) >= text.size()) {
    text.resize(static_cast<size_t>(length) + 1);
    (void)print(again);
  }
  va_end(again);
  text.resize(static_cast<size_t>(length));
  return text;
}

// 1234567 as "1,234,567".
std::string format_count(uint64_t n) {
  std::string s = std::to_string(n);
  for (size_t i = s.size(); i > 3; i -= 3) s.insert(i - 3, ",");
  return s;
}

std::string format_count(uint64_t n, const char* one, const char* many) {
  return format_count(n) + " " + (n == 1 ? one : many);
}

std::string format_bytes(uint64_t n) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  if (n < 1024) return std::to_string(n) + " B";
  auto v = static_cast<double>(n);
  size_t unit = 0;
  while (v >= 1024 && unit + 1 < std::size(kUnits)) {
    v /= 1024;
    ++unit;
  }
  return format(v < 10 ? "%.2f %s" : v < 100 ? "%.1f %s" : "%.0f %s", v, kUnits[unit]);
}

std::string format_time(uint64_t ns) {
  const auto v = static_cast<double>(ns);
  if (ns < 1000) return std::to_string(ns) + " ns";
  if (ns < 1'000'000) return format("%.*f us", ns < 10'000 ? 2 : ns < 100'000 ? 1 : 0, v / 1e3);
  if (ns < 1'000'000'000)
    return format("%.*f ms", ns < 10'000'000 ? 2 : ns < 100'000'000 ? 1 : 0, v / 1e6);
  return format("%.3f s", v / 1e9);
}

std::string op_name(const Tables& tables, uint32_t id) {
  const feign_op_info* info = tables.ops.info(id);
  if (info == nullptr) return "?";
  return std::string_view(info->layer) == "posix" ? info->name
                                                  : std::string(info->layer) + ":" + info->name;
}

}  // namespace feign
