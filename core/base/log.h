// SPDX-License-Identifier: MIT
// What is said on standard error. Never standard output: that is the report's.
#pragma once

#include <string>
#include <string_view>

namespace feign {

// The level from which on nothing is said: FEIGN_LOG_WARN by default. Set once, in main().
void set_log_level(int level);
int log_level();

// For a terminal, which obeys control characters: those of a file's name or a broken trace as
// "\x1b". Newlines and tabs stay.
std::string printable(std::string_view text);

// "feign: TEXT" on standard error, printable, in one write, if level <= log_level(). [any thread]
void log(int level, const std::string& text);

}  // namespace feign
