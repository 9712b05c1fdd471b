// SPDX-License-Identifier: MIT
#include "base/output.h"

#include <filesystem>
#include <map>

#include "base/input.h"

namespace feign {
namespace {

namespace fs = std::filesystem;

// The file that a name leads to, as one path; "" of standard output, a device, a FIFO. (An output
// takes the place of a name: another hard link of its file stays as it is.)
std::string place_of(const std::string& name) {
  struct stat st {};
  if (name.empty() || name == "-") return "";
  const bool there = ::stat(name.c_str(), &st) == 0;
  if (there && !S_ISREG(st.st_mode)) return "";
  std::string leads_to = name;
  if (!there) (void)follow_links(leads_to);
  std::error_code e;
  const fs::path whole = fs::absolute(leads_to, e);
  const fs::path path = e ? whole : fs::weakly_canonical(whole, e);
  return e ? name : path.string();
}

// A trace's files: NAME.N as well (files_of), and of a project of HDTrace those that it consists
// of.
std::vector<std::string> all_of(const std::string& name) {
  std::vector<std::string> files = files_of(name);
  constexpr std::string_view kProject = ".proj";
  if (!name.ends_with(kProject)) return files;
  const fs::path project = name;
  const std::string stem = project.stem().string() + "_";
  std::error_code e;
  for (const auto& entry :
       fs::directory_iterator(project.has_parent_path() ? project.parent_path() : fs::path("."), e))
    if (entry.path().filename().string().starts_with(stem)) files.push_back(entry.path().string());
  files.push_back(name);
  return files;
}

}  // namespace

Result<void> none_overwritten(const std::vector<std::string>& read,
                              const std::vector<Written>& written) {
  std::map<std::string, std::string> taken;  // place -> who writes there, "" if it is read
  for (const Written& output : written) {
    if (output.file.empty()) continue;
    if (taken.empty())
      for (const std::string& input : read)
        for (const std::string& file : all_of(input)) taken.emplace(place_of(file), "");
    for (const std::string& file : output.trace ? all_of(output.file) : std::vector{output.file}) {
      const std::string place = place_of(file);
      const auto [at, fresh] = taken.emplace(place, output.by);
      if (place.empty() || fresh || at->second == output.by) continue;
      return Error(FEIGN_ERR_ARGUMENT,
                   output.by + " " + file +
                       (at->second.empty() ? ": is read here, and would be overwritten"
                                           : ": is where " + at->second + " is written") +
                       ": want another file");
    }
  }
  return {};
}

}  // namespace feign
