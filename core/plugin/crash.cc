// SPDX-License-Identifier: MIT
#include "plugin/crash.h"

#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

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

// The name of the object that an instruction lies in, as the dynamic linker was given it; null if
// in none. Where there is a way without locks, which the thread that crashed may hold, this is it.
const char* object_of(uintptr_t at) {
#if defined(DLFO_STRUCT_HAS_EH_DBASE)  // glibc 2.35
  dl_find_object found;
  if (_dl_find_object(reinterpret_cast<void*>(at), &found) != 0) return nullptr;
  return found.dlfo_link_map != nullptr ? found.dlfo_link_map->l_name : nullptr;
#else
  Dl_info info;
  return dladdr(reinterpret_cast<void*>(at), &info) != 0 ? info.dli_fname : nullptr;
#endif
}

// The plug-in that an instruction lies in; null if in none.
const char* plugin_of(uintptr_t at) {
  const char* const object = object_of(at);
  const size_t count = std::min(g_plugin_count.load(), kMost);
  for (size_t i = 0; object != nullptr && i < count; ++i)
    if (const char* const plugin = g_plugins[i].load();
        plugin != nullptr && std::strcmp(plugin, object) == 0)
      return plugin;
  return nullptr;
}

// The innermost plug-in among the frames of a stack.
_Unwind_Reason_Code look(_Unwind_Context* frame, void* found) {
  const auto plugin = plugin_of(_Unwind_GetIP(frame) - 1);  // behind the call
  if (plugin == nullptr) return _URC_NO_REASON;
  *static_cast<const char**>(found) = plugin;
  return _URC_NORMAL_STOP;
}

// Who called what is no code, such as a function that is null. The stack may be none, either.
const char* caller(const ucontext_t& at) {
#if defined(__x86_64__)
  uintptr_t back = 0;
  const iovec to{&back, sizeof back},
      from{reinterpret_cast<void*>(at.uc_mcontext.gregs[REG_RSP]), sizeof back};
  if (object_of(static_cast<uintptr_t>(at.uc_mcontext.gregs[REG_RIP])) == nullptr &&
      process_vm_readv(getpid(), &to, 1, &from, 1, 0) == sizeof back)
    return plugin_of(back - 1);
#endif
  (void)at;
  return nullptr;
}

// No memory is asked for: it may be what is broken.
void tell(int signal, const void* context) {
  // Should looking take a lock after all, which the thread that crashed has.
  constexpr unsigned kPatience_s = 2;
  ::signal(SIGALRM, SIG_DFL);
  (void)alarm(kPatience_s);
  const char *plugin = nullptr, *what = "";
  (void)_Unwind_Backtrace(look, &plugin);
  if (plugin == nullptr) plugin = caller(*static_cast<const ucontext_t*>(context));
  (void)alarm(0);
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
}

void on_crash(int signal, siginfo_t* info, void* context) {
  // Of threads that crash together the first one tells, and ends them all.
  static std::atomic<pid_t> teller{0};
  pid_t other = 0;
  const pid_t self = gettid();
  while (!teller.compare_exchange_strong(other, self) && other != self) {
    (void)pause();
    other = 0;
  }
  // Nobody's fault here if somebody else sent it. Telling may crash, too.
  if (other != self && (info->si_code > 0 || info->si_pid == getpid())) tell(signal, context);
  // The default acts now: as this returns to what was wrong, or at once on what was sent.
  ::signal(signal, SIG_DFL);
  if (info->si_code <= 0) (void)raise(signal);
}

}  // namespace

CrashStack::CrashStack() {
  stack_t there{};
  if (sigaltstack(nullptr, &there) != 0 || (there.ss_flags & SS_DISABLE) == 0) return;
  constexpr size_t kSize = size_t{1} << 16;
  room_.reset(new (std::nothrow) std::byte[kSize]);
  stack_t stack{};
  stack.ss_sp = room_.get();
  stack.ss_size = kSize;
  if (room_ != nullptr) (void)sigaltstack(&stack, nullptr);
}

CrashStack::~CrashStack() {
  stack_t none{};
  none.ss_flags = SS_DISABLE;
  if (room_ != nullptr) (void)sigaltstack(&none, nullptr);
}

void tell_crashes() {
  // As long as the process lives.
  [[maybe_unused]] static const auto* const here = new CrashStack;
  for (const Crash& c : kCrashes) {
    struct sigaction action {};
    if (sigaction(c.signal, nullptr, &action) != 0 || (action.sa_flags & SA_SIGINFO) != 0 ||
        action.sa_handler != SIG_DFL)
      continue;
    action.sa_sigaction = on_crash;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(c.signal, &action, nullptr);
  }
}

void crashes_may_be_of(const std::string& path) {
  const size_t at = g_plugin_count.fetch_add(1);
  if (at < kMost) g_plugins[at] = strdup(path.c_str());  // as long as the process lives
}

}  // namespace feign
