// SPDX-License-Identifier: MIT
// What is said on standard error. Never standard output: that is the report's.
#pragma once

#include <string>

namespace feign {

// The level from which on nothing is said: FEIGN_LOG_WARN by default. Set once, in main().
void set_log_level(int level);
int log_level();

// "feign: TEXT" on standard error, in one write, if level <= log_level(). [any thread]
void log(int level, const std::string& text);

}  // namespace feign
