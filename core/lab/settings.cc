// SPDX-License-Identifier: MIT
#include "lab/settings.h"

#include "cli/kinds.h"
#include "cli/line.h"
#include "plugin/options.h"

namespace feign {
namespace {

constexpr Setting kReplayer = {
    "replayer", "a replayer, such as posix or null",
    [](const std::string& text, ReplayOptions&) { return !text.empty(); }};

}  // namespace

const Setting* setting(const std::string& name) {
  return name == kReplayer.name ? &kReplayer : replay_setting(name);
}

std::string setting_names() { return replay_setting_names() + ", " + kReplayer.name; }

bool good_setting(const std::string& name, const std::string& value) {
  ReplayOptions ignored;
  return setting(name)->set(value, ignored);
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
