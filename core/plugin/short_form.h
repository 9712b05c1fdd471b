// SPDX-License-Identifier: MIT
// The short form of plug-ins (the last section of feign.h), as an adapter: a shared object with
// init() and callbacks found by name becomes a feign_plugin with components like any other.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "feign.h"

namespace feign {

// The numbers that short-form plug-ins are given, over all of a run.
struct ShortFormNumbers {
  int plugins = 0;
  std::map<std::string, int> layers;  // by name
};

class ShortForm {
 public:
  // Calls init() with the file's name and `args`, and makes the components that its intents ask
  // for.
  static Result<std::unique_ptr<ShortForm>> load(void* handle, const std::string& path,
                                                 const std::vector<std::string>& args,
                                                 ShortFormNumbers& numbers);
  ~ShortForm();  // calls finalize()

  const feign_plugin& plugin() const;

  struct Impl;

 private:
  explicit ShortForm(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace feign
