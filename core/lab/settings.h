// SPDX-License-Identifier: MIT
// What a variant may say besides plug-ins: options of `feign replay`.
#pragma once

#include <string>

#include "lab/lab.h"
#include "plugin/plugin.h"
#include "replay/options.h"

namespace feign {

// Of a replay, or `replayer`; null: there is none of that name.
const Setting* setting(const std::string& name);
std::string setting_names();
// One that there is.
bool good_setting(const std::string& name, const std::string& value);

// Whether there is such a plug-in of one of these roles, and takes these options; if not, `why`.
bool fits(const PluginSpec& spec, uint32_t roles, Plugins& plugins, Error& why);

}  // namespace feign
