// SPDX-License-Identifier: MIT
// Which plug-in is meant where only a file, or a short form, is given.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "plugin/plugin.h"

namespace feign {

// The provider that is surest of this file, by probe; an error that lists what there is if none is.
Result<PluginSpec> provider_for(const std::vector<std::string>& files, Plugins& plugins);
// The modifier that "0,3-5", or "^0" for all others, means.
Result<PluginSpec> filter_of_ranks(std::string ranks);
// The writer for a file name, by suffix.
Result<PluginSpec> writer_for(const std::string& file, Plugins& plugins);

}  // namespace feign
