// SPDX-License-Identifier: MIT
// The results of a lab: one JSON document (docs/lab-format.md), valid after each run, that grows by
// a line a run. What a crash or a power failure can take is the run under way.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"

namespace feign {

using Json = nlohmann::ordered_json;

class Results {
 public:
  // For reading only.
  static Result<Results> load(const std::string& path);
  // The same, or none where there is no such file.
  static Result<Results> look(const std::string& path, const Json& head);
  // In memory only.
  static Results of(Json head, std::vector<Json> runs);
  // For adding: made with this head if it is not there, and locked against a second lab. The head
  // of one that is there is replaced.
  static Result<Results> open(const std::string& path, const Json& head);
  Results(Results&&) noexcept;
  Results& operator=(Results&&) = delete;
  ~Results();

  const std::string& path() const { return path_; }
  const Json& head() const { return head_; }
  const std::vector<Json>& runs() const { return runs_; }
  // On disk when this returns.
  Result<void> add(Json run);

 private:
  explicit Results(std::string path) : path_(std::move(path)) {}
  Result<void> parse(const std::string& text);
  Result<void> write_all();

  std::string path_;
  Json head_;
  std::vector<Json> runs_;
  int fd_ = -1, lock_ = -1;
  bool torn_ = false;
};

// One line, whatever bytes it has.
std::string json_line(const Json& value);

}  // namespace feign
