// SPDX-License-Identifier: MIT
// Which plug-in it was that crashed.
#pragma once

#include <string>

namespace feign {

// From here on, a signal that the process's own code brings about (SIGSEGV, SIGBUS, SIGFPE, SIGILL,
// SIGABRT) is told on standard error with the plug-in in which it was, and ends the process as it
// would have. Where somebody has a handler already, that one stays. [any]
void tell_crashes();
// The shared object `path`, as the dynamic linker is given it, is a plug-in. [any]
void crashes_may_be_of(const std::string& path);

}  // namespace feign
