// SPDX-License-Identifier: MIT
// What a point of a variant is run as.
#include <algorithm>
#include <cstdio>

#include "cli/line.h"
#include "lab/lab.h"
#include "lab/settings.h"
#include "lab/values.h"
#include "plugin/options.h"

namespace feign {

const LabConfig* Lab::config(const std::string& label) const {
  for (const LabConfig& c : configs)
    if (c.label == label) return &c;
  return nullptr;
}

// Several traces do not share a directory: each would remove what the other needs.
std::string Lab::root_of(const LabTrace& trace, const LabRoot& root) const {
  return traces.size() == 1 ? root.path : root.path + "/" + trace.name;
}

Result<LabConfig> make_config(const LabVariant& variant,
                              const std::map<std::string, LabValue>& values, Plugins& plugins) {
  LabConfig c;
  c.variant = c.label = variant.name;
  c.with = variant.with;
  c.settings = variant.settings;
  for (const LabVariant::Parameter& p : variant.parameters) {
    const auto given = values.find(p.name);
    const LabValue& value = given != values.end() ? given->second : p.values.front();
    c.parameters.emplace_back(p.name, joined(value));
    c.label += " " + p.name + "=" + joined(value);
    if (p.plugin != LabVariant::Parameter::kSetting) {
      for (const std::string& text : value) c.with[p.plugin].options.emplace_back(p.option, text);
      c.with[p.plugin].where = p.where;
    } else if (value.size() == 1 && good_setting(p.option, value[0])) {
      c.settings.emplace_back(p.option, value[0]);
    } else {
      return Error(FEIGN_ERR_ARGUMENT, p.where + ": " + p.option + ": \"" + joined(value) +
                                           "\": want " + setting(p.option)->want);
    }
  }
  for (const auto& [name, value] : values)
    if (std::none_of(variant.parameters.begin(), variant.parameters.end(),
                     [&name = name](const auto& p) { return p.name == name; })) {
      std::string known;
      for (const auto& p : variant.parameters) known += (known.empty() ? "" : ", ") + p.name;
      return Error(FEIGN_ERR_ARGUMENT, "variant " + variant.name + " has no parameter \"" + name +
                                           "\"; it has " + (known.empty() ? "none" : known));
    }
  for (const PluginSpec& spec : c.with) {
    Error why(FEIGN_OK, "");
    if (!fits(spec, kWith, plugins, why)) return std::move(why).within(spec.where);
  }
  return c;
}

std::vector<std::string> replay_arguments(const Lab& lab, const LabTrace& trace,
                                          const LabRoot& root, const LabConfig& config) {
  std::vector<std::string> args{"replay"};
  args.insert(args.end(), trace.files.begin(), trace.files.end());
  args.insert(args.end(), {"--root", lab.root_of(trace, root)});
  args.insert(args.end(), trace.options.begin(), trace.options.end());
  const auto escaped = [](const std::string& text) {
    std::string out;
    for (const char c : text) {
      if (c == ',' || c == '\\') out += '\\';
      out += c;
    }
    return out;
  };
  for (const PluginSpec& spec : config.with) {
    std::string text = escaped(spec.name);
    for (const auto& [key, value] : spec.options)
      text += "," + key + "=" + escaped(value.value_or("yes"));  // what a name alone means
    args.insert(args.end(), {"--with", text});
  }
  for (const auto& [name, value] : config.settings) {
    if (name == "pin") {
      if (bool pin = false; parse_truth(value, pin) && pin) args.push_back("--pin");
      continue;
    }
    args.insert(args.end(), {"--" + name, value});
  }
  std::string before;
  if (root.drop_caches == "all" || root.drop_caches == "files")
    args.insert(args.end(), {"--drop-caches", root.drop_caches});
  else if (root.drop_caches != "no")
    before = "{ " + root.drop_caches + "\n}";
  if (!root.settle.empty()) before += (before.empty() ? "" : " && ") + ("{ " + root.settle) + "\n}";
  if (!before.empty()) args.insert(args.end(), {"--before", before});
  if (!lab.require.empty()) args.insert(args.end(), {"--require", lab.require});
  return args;
}

std::string cell_id(const Lab& lab, const LabTrace& trace, const LabRoot& root,
                    const LabConfig& config) {
  uint64_t h = 0xcbf29ce484222325;
  const auto add = [&](const std::string& text) {
    for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    h = (h ^ 0xff) * 0x100000001b3;
  };
  for (const std::string& arg : replay_arguments(lab, trace, root, config)) add(arg);
  add(trace.name);
  add(trace.checksum);
  add(root.name);
  add(root.setup);
  add(config.label);
  char text[20];
  snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(h));
  return text;
}

}  // namespace feign
