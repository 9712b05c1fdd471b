// SPDX-License-Identifier: MIT
// What a program's file tells of whether it can be recorded.
#pragma once

#include <string>

#include "base/error.h"

namespace feign {

// Where a command's program is, by $PATH if its name has no slash.
Result<std::string> program_of(const std::string& name);
// Why a program cannot be recorded by a library in it; empty if it can, or is not found.
std::string why_not_recorded(const std::string& name);

}  // namespace feign
