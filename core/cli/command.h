// SPDX-License-Identifier: MIT
// A command of feign: what it takes, and what it does. Each is in a file of commands/; main.cc has
// the list.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

namespace feign {

struct Common;

class Command {
 public:
  // What several commands share outlives them.
  explicit Command(Common& common) : c_(common) {}
  virtual ~Command() = default;
  // Its options, which parsing sets; help, man page and completion come of these, too.
  virtual void takes(CLI::App& app) = 0;
  // Does it; the exit status.
  virtual int run() = 0;
  // Where the words after -- go, which are another program's; null: they are like any others.
  virtual std::vector<std::string>* program() { return nullptr; }

 protected:
  Common& c_;
};

using MakeCommand = std::unique_ptr<Command>(Common& common);
MakeCommand make_pipeline, make_replay, make_run, make_info, make_convert, make_discover,
    make_discover_post, make_inspect, make_record, make_generate, make_check, make_lab;

}  // namespace feign
