// SPDX-License-Identifier: MIT
// Fuzzes what a SIOX trace goes through: its activity file in all forms, its side files, the
// provider and resolve. Whatever the bytes, an error or activities, never a crash. The first byte
// chooses: an activity file with good side files, or one of the side files.
#include <cstring>

#include "fuzz/trace.h"

namespace {

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
  MemoryFiles memory;
  for (int i = 0; i < 4; ++i) spec.options.emplace_back(kOptions[i], memory.add(files[i]));
  if (data[0] & 4) spec.options.emplace_back("layer", "posix");
  if (data[0] & 8) spec.options.emplace_back("print", "/dev/shm/feign-fuzz-siox");
  (void)read_trace(spec);
  return 0;
}
