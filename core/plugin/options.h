// SPDX-License-Identifier: MIT
// Options: what a user typed becomes a component's options struct, by the component's table.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/near.h"
#include "feign.h"

namespace feign {

// What a user typed: names and values, in order. A name without a value says yes.
using GivenOptions = std::vector<std::pair<std::string, std::optional<std::string>>>;
// "name=value" of each, as a plug-in of the short form gets them.
std::vector<std::string> as_arguments(const GivenOptions& given);

// A filled options struct and the texts that it points to.
class OptionValues {
 public:
  // The table must have passed check_options().
  static Result<OptionValues> parse(const feign_component& component, const GivenOptions& given);
  // An error, if it does not take this value.
  static Result<void> takes(const feign_component& component, const feign_option& option,
                            const std::optional<std::string>& value);
  // Good for the life of this object, also after it was moved.
  const void* data() const { return values_.get(); }

 private:
  explicit OptionValues(const feign_component& component);
  Result<void> set(const feign_option& option, const std::optional<std::string>& given);

  std::unique_ptr<std::byte[]> values_;
  std::deque<std::string> texts_;
  std::deque<std::vector<const char*>> lists_;
};

// Whether a component's option table keeps the contract: rows inside the struct, fallbacks that
// parse.
Result<void> check_options(const feign_component& component);

// Row `i` of a component's option table, whose rows may be longer than this header's.
const feign_option& option_at(const feign_component& component, uint32_t i);

// What a user may type for it: "SIZE", "reads|writes|both".
std::string option_values(const feign_option& option);

// "4096", "64k", "64KB", "64KiB": bytes.
bool parse_size(std::string_view text, uint64_t& value);
// "10ms", "1.5s", "0": nanoseconds. False if it is no such thing, or a number without a unit.
bool parse_duration(std::string_view text, uint64_t& value);
// yes, on, true, 1, or no, off, false, 0.
bool parse_truth(std::string_view text, bool& value);

// Whether this is a name as the ABI wants it: [a-z][a-z0-9-]*.
bool is_name(const char* text);

}  // namespace feign
