// SPDX-License-Identifier: MIT
// The command line, described once: parsing, help, man page and completion all come from it.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace feign {

// roff of the whole command, for man(1).
std::string man_page(const CLI::App& app);
// A bash script that completes subcommands, options, their values, and plug-in names.
std::string bash_completion(const CLI::App& app);

}  // namespace feign
