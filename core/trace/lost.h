// SPDX-License-Identifier: MIT
// What a format cannot express, counted by name as it turns up, and said once at the end.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "feign.h"

namespace feign {

class Lost {
 public:
  void count(std::string_view what, uint64_t n = 1) {
    if (const auto at = counts_.find(what); at != counts_.end())
      at->second += n;
    else
      counts_.emplace(what, n);
  }
  // "4 durations of calls, 1 fork"; nothing if all could be expressed.
  void say(const feign_host* host, const char* format) const {
    std::string text;
    for (const auto& [what, n] : counts_)
      text += (text.empty() ? "" : ", ") + std::to_string(n) + " " + what;
    if (!text.empty())
      host->log(host, FEIGN_LOG_WARN,
                ("not expressed in " + std::string(format) + ": " + text).c_str());
  }

 private:
  std::map<std::string, uint64_t, std::less<>> counts_;
};

}  // namespace feign
