// SPDX-License-Identifier: MIT
#include "cli/kinds.h"

#include <dirent.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/input.h"
#include "base/ranges.h"
#include "feign.h"
#include "plugin/options.h"

namespace feign {

Result<PluginSpec> filter_of_ranks(std::string ranks) {
  const bool others = ranks.starts_with('^');
  if (others) ranks.erase(0, 1);
  if (ranks.find_first_not_of(",+") == std::string::npos)
    return Error(FEIGN_ERR_ARGUMENT, "want numbers, such as 0,3-5 or ^0");
  std::replace(ranks.begin(), ranks.end(), ',', '+');
  for (size_t at = 0; at < ranks.size();) {
    const size_t end = std::min(ranks.find('+', at), ranks.size());
    const std::string one = ranks.substr(at, end - at);
    if (!one.empty() && !range_of(one))
      return Error(FEIGN_ERR_ARGUMENT, (one == ranks ? "" : "\"" + one + "\": ") +
                                           "want numbers and ranges, such as 0,3-5 or ^0");
    at = end + 1;
  }
  PluginSpec filter;
  filter.name = "filter";
  filter.options = {{"rank", ranks}};
  if (others) filter.options.emplace_back("drop", "yes");
  return filter;
}

namespace {

int sureness(const Component& provider, const std::string& file, const std::string& head) {
  const auto& api = *static_cast<const feign_provider*>(provider.table->api);
  return api.probe != nullptr ? api.probe(file.c_str(), head.data(), head.size()) : 0;
}

// The provider that a file is called after (x.feign, x.strace.gz), if its content is plainly that:
// no other need be loaded then. "" if not.
std::string provider_by_name(const std::string& file, const std::string& head, Plugins& plugins) {
  std::string_view name = file;
  for (const std::string_view packed : {".gz", ".zst"})
    if (name.ends_with(packed)) name.remove_suffix(packed.size());
  name.remove_prefix(name.rfind('.') + 1);  // all of it, if it has no dot
  const std::string ending(name);
  if (!is_name(ending.c_str()) || !plugins.has_file(ending)) return {};
  constexpr int kPlainly = 90;
  auto found = plugins.find(ending, FEIGN_PROVIDER);
  if (!found) return {};
  return sureness(*found, file, head) >= kPlainly ? found->table->name : "";
}

// A file that is packed in a way that no provider unpacks: its first bytes, and what unpacks it.
constexpr struct {
  std::string_view magic, by;
} kPacked[] = {
    {"\xFD\x37zXZ", "xz -d"},
    {"BZh", "bzip2 -d"},
    {"\x04\x22\x4D\x18", "lz4 -d"},
    {"PK\x03\x04", "unzip"},
    {"7z\xBC\xAF", "7z x"},
    {"\x1F\x8B", "packed twice: gzip -d"},
    {"\x28\xB5\x2F\xFD", "packed twice: zstd -d"},
};

// Whether feign record was ended before its command began: a raw folder that has no more than hooks
// yet, or whose records do not have what is written into them last and stands first.
bool nothing_recorded(const std::string& file, const Result<std::string>& head) {
  constexpr std::string_view kRecords = ".raw/records";
  if (head)
    return file.ends_with(kRecords) && head->substr(0, 8).find_first_not_of('\0') == head->npos;
  if (!std::string_view(file).substr(0, file.find_last_not_of('/') + 1).ends_with(".raw"))
    return false;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(opendir(file.c_str()), closedir);
  while (const dirent* entry = entries ? readdir(entries.get()) : nullptr)
    if (const std::string_view name = entry->d_name; name != "." && name != ".." && name != "hooks")
      return false;
  return entries != nullptr;
}

Result<std::string> surest_provider(const std::string& file, const std::string& head,
                                    const std::vector<Component>& all) {
  int best = 0;
  std::string best_name, names;
  for (const Component& c : all) {
    if (c.table->role != FEIGN_PROVIDER) continue;
    names += (names.empty() ? "" : ", ") + std::string(c.table->name);
    if (const int sure = sureness(c, file, head); sure > best) {
      best = sure;
      best_name = c.table->name;
    }
  }
  if (best != 0) return best_name;
  for (const std::string_view mark : {"\xFF\xFE", "\xFE\xFF"})
    if (head.starts_with(mark))
      return Error(FEIGN_ERR_ARGUMENT,
                   file + ": is text in UTF-16: want UTF-8 (iconv -f UTF-16 -t UTF-8)");
  for (const auto& [magic, by] : kPacked)
    if (head.starts_with(magic))
      return Error(FEIGN_ERR_ARGUMENT, file + ": is packed (" + std::string(by) +
                                           "): want a trace as it is, or by gzip or zstd");
  return Error(FEIGN_ERR_ARGUMENT, file + ": no provider recognises it (there are: " + names +
                                       "); --provider NAME says which to use all the same");
}

}  // namespace

Result<PluginSpec> provider_for(const std::vector<std::string>& files, Plugins& plugins) {
  PluginSpec spec;
  std::optional<std::vector<Component>> all;
  std::vector<std::string> empty;
  for (const std::string& name : files)
    for (const std::string& file : files_of(name)) {
      auto head = head_of(file, size_t{64} << 10);
      if (nothing_recorded(file, head))
        return Error(FEIGN_ERR_ARGUMENT, name +
                                             ": nothing was recorded, since feign record was ended "
                                             "before its command began: remove it");
      if (!head) return std::move(head.error());
      spec.options.emplace_back("file", file);
      if (head->empty()) {
        empty.push_back(file);
        continue;
      }
      std::string best_name = provider_by_name(file, *head, plugins);
      if (best_name.empty()) {
        std::vector<Error> failures;
        if (!all) all = plugins.all(&failures, FEIGN_PROVIDER);
        auto surest = surest_provider(file, *head, *all);
        if (!surest) return std::move(surest.error());
        best_name = std::move(*surest);
      }
      if (!spec.name.empty() && spec.name != best_name)
        return Error(FEIGN_ERR_ARGUMENT, file + ": is of provider " + best_name +
                                             ", and the files before it of " + spec.name +
                                             ": want files of one kind");
      spec.name = best_name;
    }
  if (spec.options.empty()) return Error(FEIGN_ERR_ARGUMENT, "no trace: want a file");
  // Beside others, some providers have such files.
  for (const std::string& file : empty)
    if (auto found = plugins.find(spec.name, FEIGN_PROVIDER);
        !found || sureness(*found, file, {}) == 0)
      return Error(FEIGN_ERR_ARGUMENT, file + ": is empty, want a trace");
  return spec;
}

Result<PluginSpec> writer_for(const std::string& file, Plugins& plugins) {
  std::vector<Error> failures;
  std::string known;
  for (const Component& c : plugins.all(&failures, FEIGN_WRITER)) {
    if (c.table->role != FEIGN_WRITER) continue;
    const auto& api = *static_cast<const feign_writer*>(c.table->api);
    if (!FEIGN_HAS(&api, suffix) || api.suffix == nullptr) continue;
    if (file.ends_with(api.suffix)) {
      PluginSpec spec;
      spec.name = c.table->name;
      spec.options.emplace_back("file", file);
      return spec;
    }
    known += (known.empty() ? "" : ", ") + std::string(api.suffix) + " (" + c.table->name + ")";
  }
  return Error(FEIGN_ERR_ARGUMENT,
               file + ": no writer for a file of this name: want one that ends in " + known +
                   ", or --to WRITER");
}

}  // namespace feign
