// SPDX-License-Identifier: MIT
// Calls of the text as activities (docs/tracetext-format.md).
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "feign.h"

namespace tracetext {

// A call by its name.
struct Known {
  uint32_t op = 0;
  uint32_t kind = 0;
  std::vector<const feign_arg_info*> all, kept;
  const char* name = nullptr;
  const char* left_out = nullptr;  // why it is no activity
  int waits = 0;
};

class Calls {
 public:
  // `cwd`: the working directory, which paths that say no other start from.
  Calls(const feign_host* host, std::string_view cwd);
  const Known& known(std::string_view name);
  // Fills `a` from "name(arguments) = result"; false with error() set.
  bool parse(std::string_view text, const Known& call, feign_activity& a);
  const std::string& error() const { return error_; }
  // Of the call that was parsed last, for set_values().
  std::span<const uint64_t> values() const { return values_; }

 private:
  bool argument(const feign_arg_info& arg, std::string_view text, bool data, feign_activity& a);
  bool flags(const feign_arg_info& arg, std::string_view text, uint64_t& value);
  bool result(std::string_view text, feign_activity& a);
  bool wrong(std::string what) {
    error_ = std::move(what);
    return false;
  }

  const feign_host* host_;
  uint32_t cwd_;
  std::map<std::string, Known, std::less<>> names_;
  std::unordered_map<std::string_view, int> errors_;
  std::vector<uint64_t> values_;
  std::vector<std::string_view> arguments_;
  std::string error_;
};

}  // namespace tracetext
