// SPDX-License-Identifier: MIT
// Fuzzes what an HDTrace project goes through: provider hdtrace, resolve, prepare, and the writer,
// whose files must be readable. The first byte chooses options; files are parted by bytes of 0, in
// the order trace, project, .info, .rel, .stat: one that is left out is made up.
#include <cstdio>
#include <filesystem>

#include "fuzz/trace.h"

namespace {

void put(const std::string& path, std::string_view text) {
  FILE* f = fopen(path.c_str(), "w");
  if (f == nullptr || fwrite(text.data(), 1, text.size(), f) != text.size() || fclose(f) != 0)
    abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace feign;
  namespace fs = std::filesystem;
  if (size == 0) return 0;
  set_log_level(-1);
  static char folder_name[] = "/dev/shm/feign-fuzz-XXXXXX";
  static const bool made = mkdtemp(folder_name) != nullptr && atexit([] {
                                                                std::error_code wrong;
                                                                fs::remove_all(folder_name, wrong);
                                                              }) == 0;
  if (!made) abort();
  const std::string folder = folder_name;
  for (const auto& entry : fs::directory_iterator(folder)) fs::remove(entry.path());
  std::string_view rest(reinterpret_cast<const char*>(data + 1), size - 1);
  std::string parts[5];
  for (std::string& part : parts) {
    const size_t end = std::min(rest.find('\0'), rest.size());
    part = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  const std::string stem = folder + "/x";
  put(stem + "_n_0_0.trc", parts[0]);
  put(stem + ".proj", !parts[1].empty()
                          ? parts[1]
                          : "<Application name='x'><Topology><Node name='n'><Node name='0'>"
                            "<Node name='0'/></Node></Node></Topology></Application>");
  if (!parts[2].empty()) put(stem + "_n_0_0.info", parts[2]);
  if (!parts[3].empty()) put(stem + "_n_0_0.rel", parts[3]);
  if (!parts[4].empty()) put(stem + "_n_Energy.stat", parts[4]);
  PluginSpec spec;
  spec.name = "hdtrace";
  spec.options = {{"file", data[0] & 8 ? stem + "_n_0_0.trc" : stem + ".proj"}};
  if (data[0] & 1) spec.options.emplace_back("keep-going", "yes");
  if (data[0] & 2) spec.options.emplace_back("statistics", "yes");
  if (data[0] & 4) spec.options.emplace_back("cwd", "/some/where");
  if (read_trace(spec, folder + "/y.proj")) {
    spec.options = {{"file", folder + "/y.proj"}};
    if (!read_trace(spec)) abort();
  }
  return 0;
}
