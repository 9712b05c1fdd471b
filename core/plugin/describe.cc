// SPDX-License-Identifier: MIT
// `feign inspect`: a component's help, made of its tables.
#include <nlohmann/json.hpp>

#include "plugin/object.h"
#include "plugin/options.h"
#include "plugin/plugin.h"

namespace feign {
namespace {

const char* type_name(uint32_t type) {
  constexpr const char* kNames[] = {"",     "bool", "uint",  "size",    "real",
                                    "text", "enum", "texts", "duration"};
  return type < std::size(kNames) ? kNames[type] : "";
}

// How many columns a text takes: bytes that do not continue a UTF-8 character.
size_t columns(const std::string& text) {
  size_t n = 0;
  for (const char c : text) n += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return n;
}

}  // namespace

std::string describe(const Component& component) {
  constexpr size_t kHelpColumn = 34;
  const feign_component& c = *component.table;
  std::string out = std::string(c.name) + " - " + c.summary + "\n";
  for (uint32_t i = 0; i < c.option_count; ++i) {
    const feign_option& o = option_at(c, i);
    std::string line = std::string("  ") + o.name + "=" + option_values(o);
    const size_t width = columns(line);
    line.append(width + 2 <= kHelpColumn ? kHelpColumn - width : 2, ' ');
    line += o.help;
    if (o.fallback != nullptr)
      line += std::string(" [") + o.fallback + "]";
    else
      line += o.type == FEIGN_OPT_TEXTS ? " [none]" : " [required]";
    out += line + "\n";
  }
  if (component.short_form) out += "  (short form: its init() gets every option as it is)\n";
  return out;
}

std::string describe_json(const Component& component) {
  const feign_component& c = *component.table;
  nlohmann::ordered_json json;
  json["name"] = c.name;
  json["role"] = role_name(c.role);
  json["summary"] = c.summary;
  json["plugin"] = component.plugin->name;
  json["version"] = component.plugin->version;
  json["license"] = component.plugin->license;
  json["abi"] = std::to_string(FEIGN_ABI_MAJOR) + "." + std::to_string(component.plugin->abi_minor);
  json["path"] = component.path;
  json["short_form"] = component.short_form;
  json["options"] = nlohmann::ordered_json::array();
  for (uint32_t i = 0; i < c.option_count; ++i) {
    const feign_option& o = option_at(c, i);
    nlohmann::ordered_json row;
    row["name"] = o.name;
    row["type"] = type_name(o.type);
    row["help"] = o.help;
    row["required"] = o.fallback == nullptr && o.type != FEIGN_OPT_TEXTS;
    if (o.fallback != nullptr) row["default"] = o.fallback;
    if (o.type == FEIGN_OPT_ENUM)
      for (const char* const* choice = o.choices; *choice != nullptr; ++choice)
        row["choices"].push_back(*choice);
    if (o.min != 0 || o.max != 0) {
      row["min"] = o.min;
      row["max"] = o.max;
    }
    json["options"].push_back(std::move(row));
  }
  // What is not UTF-8 in a plug-in's texts or the path is replaced, not refused.
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace feign
