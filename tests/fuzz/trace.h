// SPDX-License-Identifier: MIT
// What all fuzzers of providers do: a trace through the provider, resolve, and what prepare infers.
// Whatever the bytes, an error or activities that keep what is promised of them, never a crash.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "base/path.h"
#include "plugin/plugin.h"
#include "prepare/prepare.h"
#include "window/pipeline.h"

extern "C" const feign_plugin feign_plugin_v1;

namespace feign {

// Files in memory, by name, as long as this is there.
class MemoryFiles {
 public:
  ~MemoryFiles() {
    for (const int fd : fds_) close(fd);
  }
  std::string add(std::string_view text) {
    const int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size())) abort();
    fds_.push_back(fd);
    return "/proc/self/fd/" + std::to_string(fd);
  }

 private:
  std::vector<int> fds_;
};

// False: it is refused. What it gives is also written to the file `written`, by the plug-in's
// second component, if that is a name.
inline bool read_trace(const PluginSpec& spec, const std::string& written = {}) {
  Tables tables;
  const auto extension = [](void* ctx, const char* id) -> const void* {
    return std::string_view(id) == "feign.tables/1" ? ctx : nullptr;
  };
  const auto make = [&](int component, const PluginSpec& of) {
    const Component one{feign_plugin_v1.components[component], &feign_plugin_v1, spec.name, false};
    return Instance::create(one, of, tables, extension, &tables);
  };
  auto provider = make(0, spec);
  if (!provider) return false;
  std::unique_ptr<Instance> writer;
  if (!written.empty()) {
    PluginSpec to;
    to.name = spec.name;
    to.options = {{"file", written}};
    auto made = make(1, to);
    if (!made) abort();
    writer = std::move(*made);
  }
  Needs needs(tables);
  Pipeline pipeline(tables, **provider, {});
  auto ran = pipeline.run(
      [&](feign_activity* const* items, size_t count) -> Result<void> {
        for (size_t i = 0; i < count; ++i) {
          const feign_activity& a = *items[i];
          if (!(a.marks & FEIGN_RESOLVED) || a.stream == 0 || a.stream >= tables.streams.size())
            abort();
          if (tables.ops.info(a.op) == nullptr) abort();
          const std::string_view path = tables.strings.text(a.path);
          if (!path.empty() && path[0] != '/') abort();
          for (const Dependency& d : Record::of(&a)->depends)
            if (d.id >= a.id) abort();
          needs.add(a);
        }
        if (writer)
          if (const feign_status s =
                  writer->api<feign_writer>().write(writer->self(), items, count);
              s < 0)
            return writer->failure(s);
        return {};
      },
      [] { return true; });
  if (!ran && ran.error().text().empty()) abort();
  for (const Needed& n : needs.finish())
    if (n.path.empty() || n.path[0] != '/' || clean_path(n.path) != n.path) abort();
  if (!ran) return false;
  if (writer && writer->api<feign_writer>().finish(writer->self()) < 0) abort();
  return true;
}

}  // namespace feign
