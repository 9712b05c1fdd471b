// SPDX-License-Identifier: MIT
// Fuzzes what a strace text goes through: provider strace, resolve, and what prepare infers.
// Whatever the bytes, an error or activities, never a crash. The first byte chooses options.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "base/log.h"
#include "plugin/plugin.h"
#include "prepare/prepare.h"
#include "window/pipeline.h"

extern "C" const feign_plugin feign_plugin_v1;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace feign;
  if (size == 0) return 0;
  set_log_level(-1);
  const int fd = memfd_create("fuzz", MFD_CLOEXEC);
  if (fd < 0 || write(fd, data + 1, size - 1) != static_cast<ssize_t>(size - 1)) abort();
  PluginSpec spec;
  spec.name = "strace";
  spec.options = {{"file", "/proc/self/fd/" + std::to_string(fd)}};
  if (data[0] & 1) spec.options.emplace_back("keep-going", "yes");
  if (data[0] & 2) spec.options.emplace_back("cwd", "/some/where");
  if (data[0] & 4) spec.options.emplace_back("overhead", "none");

  const Component component{feign_plugin_v1.components[0], &feign_plugin_v1, "strace", false};
  Tables tables;
  auto provider = Instance::create(component, spec, tables);
  if (provider) {
    Needs needs(tables);
    Pipeline pipeline(tables, **provider, {});
    auto ran = pipeline.run(
        [&](feign_activity* const* items, size_t count) -> Result<void> {
          for (size_t i = 0; i < count; ++i) {
            const feign_activity& a = *items[i];
            // What is promised of a resolved activity.
            if (!(a.marks & FEIGN_RESOLVED) || a.stream == 0 || a.stream >= tables.streams.size())
              abort();
            if (tables.ops.info(a.op) == nullptr) abort();
            const std::string_view path = tables.strings.text(a.path);
            if (!path.empty() && path[0] != '/') abort();
            needs.add(a);
          }
          return {};
        },
        [] { return true; });
    if (!ran && ran.error().text().empty()) abort();
    for (const Needed& n : needs.finish())
      if (n.path.empty() || n.path[0] != '/' || clean_path(n.path) != n.path) abort();
  }
  close(fd);
  return 0;
}
