// SPDX-License-Identifier: MIT
// A shared object, loaded, before its tables are judged. For the loader and for `feign check`.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "feign.h"
#include "plugin/short_form.h"

namespace feign {

// Stays loaded until the process ends: ops, names and rules that a plug-in handed out are borrowed
// by tables that may outlive the run.
struct Object {
  void* handle = nullptr;
  std::string path;
  const feign_plugin* plugin = nullptr;   // the exported one, or the short form's
  std::unique_ptr<ShortForm> short_form;  // null if it is not one
  uint32_t roles_said = 0;                // by FEIGN_ROLES(); 0 if it does not say
};

// Loads the shared object `path`, and calls init() if it is of the short form. What is no plug-in
// is an error that says why. The plug-in's tables have not been looked at, but for the ABI's
// version.
Result<Object> load_object(const std::string& path, const std::vector<std::string>& args,
                           ShortFormNumbers& numbers);

// Its tables by check_plugin(), and what FEIGN_ROLES() says of them.
Result<void> check_object(const Object& object);

// Where the shared object itself, not one that it is linked with, defines `name`; null if nowhere.
void* own_symbol(void* handle, const char* name);

const char* role_name(uint32_t role);

}  // namespace feign
