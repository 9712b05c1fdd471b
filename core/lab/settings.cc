// SPDX-License-Identifier: MIT
#include "lab/settings.h"

#include <cstdlib>
#include <optional>

#include "cli/kinds.h"
#include "cli/line.h"
#include "cli/run.h"
#include "plugin/options.h"

namespace feign {
namespace {

constexpr Setting kSettings[] = {
    {"pace", "afap, think or timed, or think,scale=FACTOR"},
    {"order", "trace, depend or stream"},
    {"compute", kComputeForms},
    {"content", Content::kForms},
    {"streams-per-core", "a number from 1 to 4096"},
    {"max-bytes", "bytes, such as 500m or 2GiB"},
    {"pin", "yes or no"},
    {"replayer", "a replayer, such as posix or null"},
};

}  // namespace

const Setting* setting(const std::string& name) {
  for (const Setting& s : kSettings)
    if (name == s.name) return &s;
  return nullptr;
}

std::string setting_names() {
  std::string out;
  for (const Setting& s : kSettings) out += (out.empty() ? "" : ", ") + std::string(s.name);
  return out;
}

bool good_setting(const std::string& name, const std::string& value) {
  if (name == "pace") return static_cast<bool>(parse_pace(value));
  Order order;
  if (name == "order") return parse_order(value, order);
  std::optional<Compute> compute;
  if (name == "compute") return parse_compute(value, compute);
  if (name == "content") return Content::parse(value).has_value();
  if (name == "pin") return value == "yes" || value == "no";
  uint64_t n = 0;
  if (name == "max-bytes") return parse_size(value, n) && n != 0;
  if (name == "streams-per-core") {
    char* end = nullptr;
    const long cores = strtol(value.c_str(), &end, 10);
    return end != value.c_str() && *end == '\0' && cores >= 1 && cores <= 4096;
  }
  return !value.empty();
}

// A modifier's own opinion of its options counts, too.
bool fits(const PluginSpec& spec, uint32_t roles, Plugins& plugins, Error& why) {
  auto found = meant(spec, roles, plugins);
  if (!found) {
    why = std::move(found.error());
    return false;
  }
  const Component* const component = &found->front();
  if (component->short_form) return true;
  if (component->table->role != FEIGN_MODIFIER) {
    auto values = OptionValues::parse(*component->table, spec.options);
    if (!values) why = std::move(values.error()).within(spec.name);
    return static_cast<bool>(values);
  }
  Tables tables;
  auto instance = Instance::create(*component, spec, tables);
  if (!instance) why = std::move(instance.error());
  return static_cast<bool>(instance);
}

}  // namespace feign
