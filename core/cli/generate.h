// SPDX-License-Identifier: MIT
// `feign generate`: runs the generator (layers/library.py) on a third party's annotated header.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace feign {

struct GenerateOptions {
  std::string header, output, name, library;
  std::vector<std::string> include;
  bool quiet = false;
};

// The generator's exit status; an Error where it cannot be run.
Result<int> generate_command(const GenerateOptions& options);

}  // namespace feign
