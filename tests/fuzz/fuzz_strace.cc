// SPDX-License-Identifier: MIT
// Fuzzes what a strace text goes through: provider strace, resolve, and what prepare infers.
// Whatever the bytes, an error or activities, never a crash. The first byte chooses options.
#include "fuzz/trace.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace feign;
  if (size == 0) return 0;
  set_log_level(-1);
  MemoryFiles files;
  PluginSpec spec;
  spec.name = "strace";
  spec.options = {{"file", files.add({reinterpret_cast<const char*>(data) + 1, size - 1})}};
  if (data[0] & 1) spec.options.emplace_back("keep-going", "yes");
  if (data[0] & 2) spec.options.emplace_back("cwd", "/some/where");
  if (data[0] & 4) spec.options.emplace_back("overhead", "none");
  (void)read_trace(spec);
  return 0;
}
