// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <string>

#include "base/error.h"

namespace feign::discover {

// A folder that is complete under its name, or gone. What one leaves behind whose owner was killed,
// the next of the same name takes away: nobody has its lock.
class Folder {
 public:
  Folder() = default;
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder();

  Result<void> make(const std::string& name);
  Result<void> finish();
  std::string path(const std::string& name) const { return part_.string() + "/" + name; }
  std::string final_path(const std::string& name) const { return name_.string() + "/" + name; }

 private:
  std::filesystem::path name_, part_;
  int lock_ = -1;
};

}  // namespace feign::discover
