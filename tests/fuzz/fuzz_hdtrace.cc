// SPDX-License-Identifier: MIT
// Fuzzes what an HDTrace project goes through: provider hdtrace, resolve, prepare, and the writer,
// whose files must be readable. The first byte chooses options; files are parted by bytes of 0, in
// the order trace, project, .info, .rel, .stat: one that is left out is made up.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "base/log.h"
#include "plugin/plugin.h"
#include "prepare/prepare.h"
#include "window/pipeline.h"

extern "C" const feign_plugin feign_plugin_v1;

namespace {

void put(const std::string& path, std::string_view text) {
  FILE* f = fopen(path.c_str(), "w");
  if (f == nullptr || fwrite(text.data(), 1, text.size(), f) != text.size() || fclose(f) != 0)
    abort();
}

// False: it is refused.
bool read(const feign::PluginSpec& spec, const std::string& written) {
  using namespace feign;
  Tables tables;
  const auto extension = [](void* ctx, const char* id) -> const void* {
    return std::string_view(id) == "feign.tables/1" ? ctx : nullptr;
  };
  const Component reads{feign_plugin_v1.components[0], &feign_plugin_v1, "hdtrace", false};
  const Component writes{feign_plugin_v1.components[1], &feign_plugin_v1, "hdtrace", false};
  auto provider = Instance::create(reads, spec, tables, extension, &tables);
  if (!provider) return false;
  std::unique_ptr<Instance> writer;
  if (!written.empty()) {
    PluginSpec to;
    to.name = "hdtrace";
    to.options = {{"file", written}};
    auto made = Instance::create(writes, to, tables, extension, &tables);
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
  if (!ran) {
    if (ran.error().text().empty()) abort();
    return false;
  }
  for (const Needed& n : needs.finish())
    if (n.path.empty() || n.path[0] != '/') abort();
  if (writer && writer->api<feign_writer>().finish(writer->self()) < 0) abort();
  return true;
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
  if (read(spec, folder + "/y.proj")) {
    spec.options = {{"file", folder + "/y.proj"}};
    if (!read(spec, "")) abort();
  }
  return 0;
}
