// SPDX-License-Identifier: MIT
#include "plugin/crash.h"

#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <atomic>
#include <cstring>

namespace feign {
namespace {

struct Crash {
  int signal;
  const char* what;
};
constexpr Crash kCrashes[] = {{SIGSEGV, "segmentation fault"},
                              {SIGBUS, "bus error"},
                              {SIGFPE, "arithmetic exception"},
                              {SIGILL, "illegal instruction"},
                              {SIGABRT, "abort()"}};

constexpr size_t kMost = 256;
std::atomic<const char*> g_plugins[kMost];
std::atomic<size_t> g_plugin_count{0};

// The innermost plug-in among the frames of a stack.
_Unwind_Reason_Code look(_Unwind_Context* frame, void* found) {
  Dl_info info;
  // A return address may lie behind its function.
  if (dladdr(reinterpret_cast<void*>(_Unwind_GetIP(frame) - 1), &info) == 0 ||
      info.dli_fname == nullptr)
    return _URC_NO_REASON;
  const size_t count = std::min(g_plugin_count.load(), kMost);
  for (size_t i = 0; i < count; ++i) {
    const char* const plugin = g_plugins[i].load();
    if (plugin == nullptr || std::strcmp(plugin, info.dli_fname) != 0) continue;
    *static_cast<const char**>(found) = plugin;
    return _URC_NORMAL_STOP;
  }
  return _URC_NO_REASON;
}

// No memory is asked for: it may be what is broken.
void on_crash(int signal, siginfo_t* info, void*) {
  const char *plugin = nullptr, *what = "";
  (void)_Unwind_Backtrace(look, &plugin);
  for (const Crash& c : kCrashes)
    if (c.signal == signal) what = c.what;
  char text[1024] = "";
  const auto add = [&](const char* part) {
    std::strncat(text, part, sizeof text - std::strlen(text) - 1);
  };
  add("feign: ");
  add(plugin != nullptr ? plugin : "feign itself");
  add(" crashed: ");
  add(what);
  if (plugin != nullptr) add("; try: feign check ");
  add(plugin != nullptr ? plugin : "");
  add("\n");
  (void)!write(STDERR_FILENO, text, std::strlen(text));
  // The default acts now: as this returns to what was wrong, or at once on what was sent.
  if (info->si_code <= 0) (void)raise(signal);
}

}  // namespace

void tell_crashes() {
  for (const Crash& c : kCrashes) {
    struct sigaction action {};
    if (sigaction(c.signal, nullptr, &action) != 0 || (action.sa_flags & SA_SIGINFO) != 0 ||
        action.sa_handler != SIG_DFL)
      continue;
    action.sa_sigaction = on_crash;
    action.sa_flags = SA_SIGINFO | static_cast<int>(SA_RESETHAND);
    sigaction(c.signal, &action, nullptr);
  }
}

void crashes_may_be_of(const std::string& path) {
  const size_t at = g_plugin_count.fetch_add(1);
  if (at < kMost) g_plugins[at] = strdup(path.c_str());  // as long as the process lives
}

}  // namespace feign
