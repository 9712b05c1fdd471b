// SPDX-License-Identifier: MIT
// Fuzzes what a SIOX trace goes through: its activity file in all forms, its side files, the
// provider and resolve. Whatever the bytes, an error or activities, never a crash. The first byte
// chooses: an activity file with good side files, or one of the side files.
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "base/log.h"
#include "plugin/plugin.h"
#include "window/pipeline.h"

extern "C" const feign_plugin feign_plugin_v1;

namespace {

int memory_file(std::string_view text) {
  const int fd = memfd_create("fuzz", MFD_CLOEXEC);
  if (fd < 0 || write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size())) abort();
  return fd;
}

std::string ontology() {
  static const char* const kNames[] = {"quantity/BytesToRead", "quantity/BytesToWrite",
                                       "quantity/BytesRead",   "quantity/BytesWritten",
                                       "file/position",        "hints/openFlags",
                                       "descriptor/filename",  "descriptor/filehandle"};
  std::string text = "<map>";
  int id = 0;
  for (const char* name : kNames)
    text += "<item><second><attribute><id>" + std::to_string(++id) + "</id><name>" + name +
            "</name><domain>POSIX</domain></attribute></second></item>";
  return text + "</map>";
}

std::string system_info() {
  static const char* const kNames[] = {"open",  "close", "read",   "write",  "lseek", "mmap",
                                       "fopen", "fgets", "fclose", "pwrite", "dup2",  "fileno"};
  std::string text =
      "<interfaceImplStrMap><item><first>1</first><second><first>POSIX</first><second></second>"
      "</second></item></interfaceImplStrMap><activityMap>";
  int id = 0;
  for (const char* name : kNames)
    text += "<item><first><first>1</first><second>" + std::string(name) +
            "</second></first><second>" + std::to_string(++id) + "</second></item>";
  return text + "</activityMap>";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace feign;
  if (size == 0) return 0;
  set_log_level(-1);
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  static constexpr std::string_view kRecord =
      "12:00:00.000000001 0.0000000001 (((1,2,3),4),5,6) POSIX  close(a=1) = 0\n";
  const unsigned which = data[0] % 4;
  std::string files[4] = {std::string(kRecord), ontology(), system_info(),
                          "<ProcessMap></ProcessMap>"};
  files[which] = bytes;
  if (which != 0) files[0] = std::string(63, '\0');  // binary, so that the side files are read
  if (which != 0) {
    const uint64_t record_size = 59;
    memcpy(files[0].data(), &record_size, 8);
    files[0].resize(8 + 59);
    files[0][8] = 1;
  }
  PluginSpec spec;
  spec.name = "siox";
  static constexpr const char* kOptions[] = {"file", "ontology", "system-info", "association"};
  int fds[4];
  for (int i = 0; i < 4; ++i) {
    fds[i] = memory_file(files[i]);
    spec.options.emplace_back(kOptions[i], "/proc/self/fd/" + std::to_string(fds[i]));
  }
  if (data[0] & 4) spec.options.emplace_back("layer", "posix");
  if (data[0] & 8) spec.options.emplace_back("print", "/dev/shm/feign-fuzz-siox");

  const Component component{feign_plugin_v1.components[0], &feign_plugin_v1, "siox", false};
  Tables tables;
  if (auto provider = Instance::create(component, spec, tables)) {
    Pipeline pipeline(tables, **provider, {});
    auto ran = pipeline.run(
        [&](feign_activity* const* items, size_t count) -> Result<void> {
          for (size_t i = 0; i < count; ++i) {
            const feign_activity& a = *items[i];
            if (!(a.marks & FEIGN_RESOLVED) || a.stream == 0 || a.stream >= tables.streams.size())
              abort();
            for (const Dependency& d : Record::of(&a)->depends)
              if (d.id >= a.id) abort();
          }
          return {};
        },
        [] { return true; });
    if (!ran && ran.error().text().empty()) abort();
  }
  for (const int fd : fds) close(fd);
  return 0;
}
