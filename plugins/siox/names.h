// SPDX-License-Identifier: MIT
// The side files of SIOX's traces, which say what the numbers in them mean (docs/siox-format.md).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace siox {

inline feign::Error bad(const std::string& text) { return {FEIGN_ERR_ARGUMENT, text}; }

// A process: node, process number, and when it began (seconds of its node's clock).
struct Process {
  uint32_t node = 0, pid = 0, time = 0;
  auto operator<=>(const Process&) const = default;
};

// The side files of one folder.
class Names {
 public:
  struct Activity {
    std::string interface, implementation, name;
  };
  // `ontology` and `system` must be there; `association` is "" if it is not.
  static feign::Result<std::unique_ptr<Names>> read(const std::string& ontology,
                                                    const std::string& system,
                                                    const std::string& association);
  const Activity* activity(uint32_t number) const;  // null if unknown
  const std::string* attribute(uint32_t id) const;  // "domain/name"
  const std::string* host(uint32_t node) const;
  int32_t rank(const Process& process) const;  // -1 if it is not told
  bool listed(const Process& process) const { return listed_.contains(process); }

  // For the text form, which has names and no numbers: one for each, made at first use.
  uint32_t activity_number(std::string_view interface, std::string_view implementation,
                           std::string_view name);
  uint32_t attribute_number(std::string_view name);
  Process process_of(std::string_view text);

 private:
  feign::Result<void> read_ontology(const std::string& path);
  feign::Result<void> read_system(const std::string& path);
  feign::Result<void> read_association(const std::string& path);

  std::vector<std::unique_ptr<Activity>> activities_;
  std::vector<std::unique_ptr<std::string>> attributes_;
  std::map<uint32_t, std::string> hosts_;
  std::map<Process, int32_t> ranks_;
  std::set<Process> listed_;  // of which association.dat says something
  std::map<std::string, uint32_t, std::less<>> by_text_;
  std::map<std::string, Process, std::less<>> processes_;
};

}  // namespace siox
