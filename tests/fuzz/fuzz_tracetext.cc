// SPDX-License-Identifier: MIT
// Fuzzes what a //TRACE text goes through: provider tracetext and resolve. Whatever the bytes, an
// error or activities whose dependencies come before them, never a crash or an endless wait. The
// first byte chooses options; a byte 1 in the rest separates the files of nodes.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "base/log.h"
#include "plugin/plugin.h"
#include "prepare/prepare.h"
#include "window/pipeline.h"

extern "C" const feign_plugin feign_plugin_v1;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace feign;
  if (size == 0) return 0;
  set_log_level(-1);
  PluginSpec spec;
  spec.name = "tracetext";
  std::vector<int> files;
  std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  while (files.size() < 4) {
    const size_t end = files.size() == 3 ? rest.npos : rest.find('\1');
    const std::string_view text = rest.substr(0, end);
    const int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size())) abort();
    files.push_back(fd);
    spec.options.emplace_back("file", "/proc/self/fd/" + std::to_string(fd));
    if (end == rest.npos) break;
    rest.remove_prefix(end + 1);
  }
  if (data[0] & 1) spec.options.emplace_back("keep-going", "yes");
  if (data[0] & 2) spec.options.emplace_back("cwd", "/some/where");
  if (data[0] & 4) spec.options.emplace_back("reduce", "yes");

  const Component component{feign_plugin_v1.components[0], &feign_plugin_v1, "tracetext", false};
  Tables tables;
  auto provider = Instance::create(component, spec, tables);
  if (provider) {
    Needs needs(tables);
    Pipeline pipeline(tables, **provider, {});
    auto ran = pipeline.run(
        [&](feign_activity* const* items, size_t count) -> Result<void> {
          for (size_t i = 0; i < count; ++i) {
            const feign_activity& a = *items[i];
            if (!(a.marks & FEIGN_RESOLVED) || a.stream == 0 || a.stream >= tables.streams.size())
              abort();
            for (const Dependency& d : Record::of(&a)->depends)
              if (d.id >= a.id || d.stream == a.stream) abort();
            needs.add(a);
          }
          return {};
        },
        [] { return true; });
    if (!ran && ran.error().text().empty()) abort();
    (void)needs.finish();
  }
  for (const int fd : files) close(fd);
  return 0;
}
