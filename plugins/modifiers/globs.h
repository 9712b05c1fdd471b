// SPDX-License-Identifier: MIT
// Which paths an option with globs means.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/path.h"
#include "feign.h"
#include "modifiers/table.h"

namespace feign {

class Globs {
 public:
  explicit Globs(const feign_host* host) : host_(host) {}
  Globs(const feign_host* host, const char* const* list) : host_(host) {
    for (; *list != nullptr; ++list) add(*list);
  }
  void add(std::string glob) { globs_.push_back(std::move(glob)); }
  bool empty() const { return globs_.empty(); }
  // Whether one of them fits a path; with none, all do.
  bool fit(uint32_t path) {
    if (globs_.empty()) return true;
    return answers_.of(path, [&] {
      const char* text = host_->text(host_, path, nullptr);
      for (const std::string& glob : globs_)
        if (glob_fits(glob.c_str(), text)) return met_ = true;
      return false;
    });
  }
  // Warns, once all has passed, if no path did: the name is misspelt, most often.
  void end(const feign_window& in) {
    if (globs_.empty() || met_ || !in.at_end || in.due != in.count) return;
    met_ = true;
    std::string text;
    for (const std::string& glob : globs_) text += (text.empty() ? "" : ", ") + glob;
    host_->log(host_, FEIGN_LOG_WARN, ("path=" + text + ": fits no file that it is for").c_str());
  }

 private:
  const feign_host* host_;
  std::vector<std::string> globs_;
  bool met_ = false;
  Answers answers_;  // by path
};

}  // namespace feign
