// SPDX-License-Identifier: MIT
#include "base/output.h"

#include <algorithm>
#include <filesystem>
#include <map>

namespace feign {
namespace {

// Which file a name stands for, whatever else it is called; "" of standard output, a device, a
// FIFO.
std::string identity(const std::string& name) {
  struct stat st {};
  if (name.empty() || name == "-") return "";
  if (::stat(name.c_str(), &st) == 0)
    return S_ISREG(st.st_mode) ? std::to_string(st.st_dev) + ":" + std::to_string(st.st_ino) : "";
  std::error_code e;
  const auto path = std::filesystem::weakly_canonical(std::filesystem::absolute(name), e);
  return e ? name : path.string();
}

}  // namespace

Result<void> apart(const std::vector<std::string>& read, const std::vector<Written>& written) {
  if (std::all_of(written.begin(), written.end(), [](const auto& w) { return w.file.empty(); }))
    return {};
  std::map<std::string, std::string> taken;  // by whom
  for (const std::string& name : read) taken.emplace(identity(name), "");
  for (const auto& [by, name] : written) {
    const std::string id = identity(name);
    const auto [at, fresh] = taken.emplace(id, by);
    if (id.empty() || fresh) continue;
    const std::string& other = at->second;
    return Error(FEIGN_ERR_ARGUMENT, by + " " + name +
                                         (other.empty() ? ": is read here, and would be overwritten"
                                                        : ": is where " + other + " is written") +
                                         ": want another file");
  }
  return {};
}

}  // namespace feign
