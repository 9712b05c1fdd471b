// SPDX-License-Identifier: MIT
// Which plug-in it was that crashed.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace feign {

// What a crash of this thread is told on, while this lives: its own stack may be used up. A thread
// that has one already keeps that. Made and ended by the thread. [one thread]
class CrashStack {
 public:
  CrashStack();
  ~CrashStack();
  CrashStack(const CrashStack&) = delete;
  CrashStack& operator=(const CrashStack&) = delete;

 private:
  std::unique_ptr<std::byte[]> room_;
};

// From here on, a signal that the process's own code brings about (SIGSEGV, SIGBUS, SIGFPE, SIGILL,
// SIGABRT) is told on standard error with the plug-in in which it was, and ends the process as it
// would have. Where somebody has a handler already, that one stays. The calling thread has a
// CrashStack from then on. [any]
void tell_crashes();
// The shared object `path`, as the dynamic linker is given it, is a plug-in. [any]
void crashes_may_be_of(const std::string& path);

}  // namespace feign
