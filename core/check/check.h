// SPDX-License-Identifier: MIT
// `feign check PATH`: whether a plug-in keeps the contract of feign.h, for its author.
#pragma once

#include <string>

#include "base/error.h"

namespace feign {

// `given` is the path of a shared object, with options if its components need any to do something:
// PATH[,key=value…]. Prints one line a rule ("ok   rule", "skip rule: why", "FAIL rule: why") and a
// last line that counts them. The exit status: 0, or 1 if a rule is broken. What cannot be loaded
// at all is an error. [main]
Result<int> check_command(const std::string& given);

}  // namespace feign
