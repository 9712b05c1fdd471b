// SPDX-License-Identifier: MIT
// Values that the lab's file has of an option: one, a list, or a range.
#pragma once

#include <string>
#include <vector>

#include "cli/yaml.h"
#include "lab/lab.h"

namespace feign {

std::string number_text(double v);
std::string joined(const LabValue& value);  // several, with + between

class Values {
 public:
  Values(Document& document, Plugins& plugins) : d_(document), plugins_(plugins) {}

  // One value, a list of values (of which one may be a list itself), or a range.
  Result<std::vector<LabValue>> of(const std::string& name, yaml_node_t& n);
  // The same of a setting, which has to be good.
  Result<std::vector<LabValue>> of_setting(const std::string& name, yaml_node_t& n);

 private:
  Result<std::vector<LabValue>> range(const std::string& name, yaml_node_t& n);

  Document& d_;
  Plugins& plugins_;
};

}  // namespace feign
