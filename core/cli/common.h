// SPDX-License-Identifier: MIT
// What commands share: options that several have, errors, exit states, the progress line.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cli/run.h"

namespace feign {

constexpr int kDone = 0, kShort = 1, kBad = 2;

// What an option may be, of which help says no more than its type: thread|process.
inline CLI::Validator one_of(const std::vector<std::string>& words) {
  return CLI::IsMember(words).description("");
}
template <typename Number>
CLI::Validator between(Number least, Number most) {
  return CLI::Range(least, most).description("");
}

// One line on a terminal, once something takes more than a second.
class ProgressLine {
 public:
  explicit ProgressLine(bool quiet);
  ~ProgressLine() { erase(); }
  void show(const char* stage, uint64_t done, uint64_t total);
  void erase();

 private:
  bool on_, shown_ = false;
  const char* stage_ = nullptr;
  uint64_t begin_ = now_ns(), stage_begin_ = begin_, last_ = 0;
};

// Says what is wrong; the exit status.
int failed(const Error& error);
// Puts a text into a file, or on standard output; the exit status.
int put(const std::string& text, const std::string& output);

struct Common {
  // Options of these, added to a command.
  void verbosity(CLI::App& a);
  void report(CLI::App& a);
  void explaining(CLI::App& a);
  void replaying(CLI::App& a);
  void reading(CLI::App& a);

  std::map<std::string, std::string> settings;  // of a replay, by name; "" if it was not given
  std::vector<std::string> plugins, traces, with;
  std::vector<std::string> replayers;
  std::string provider, root, output, require, to, file, name, shell;
  bool no_prepare = false, json = false, quiet = false, dependencies = false, keep_going = false,
       names = false, statistics = false;
  std::string cwd, ranks, map, layer, patience;
  int verbose = 0;
  uint64_t explain = 0;
  std::string drop_caches, before, activities, waits, html;
};

Result<std::vector<PluginSpec>> specs(const std::vector<std::string>& texts, const char* where,
                                      uint32_t roles = 0);
// What stands before what is done with the traces that were named: their provider, --ranks, --with.
Result<std::vector<PluginSpec>> reading(const Common& c, Plugins& plugins);

}  // namespace feign
