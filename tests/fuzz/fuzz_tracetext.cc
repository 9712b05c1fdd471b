// SPDX-License-Identifier: MIT
// Fuzzes what a //TRACE text goes through: provider tracetext and resolve. Whatever the bytes, an
// error or activities whose dependencies come before them, never a crash or an endless wait. The
// first byte chooses options; a byte 1 in the rest separates the files of nodes.
#include "fuzz/trace.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace feign;
  if (size == 0) return 0;
  set_log_level(-1);
  PluginSpec spec;
  spec.name = "tracetext";
  MemoryFiles files;
  std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  for (int nodes = 1;; ++nodes) {
    const size_t end = nodes == 4 ? rest.npos : rest.find('\1');
    spec.options.emplace_back("file", files.add(rest.substr(0, end)));
    if (end == rest.npos) break;
    rest.remove_prefix(end + 1);
  }
  if (data[0] & 1) spec.options.emplace_back("keep-going", "yes");
  if (data[0] & 2) spec.options.emplace_back("cwd", "/some/where");
  if (data[0] & 4) spec.options.emplace_back("reduce", "yes");
  (void)read_trace(spec);
  return 0;
}
