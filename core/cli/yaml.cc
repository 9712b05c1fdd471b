// SPDX-License-Identifier: MIT
// The pipeline of a YAML file (docs/pipeline-file.md).
#include "cli/yaml.h"

#include <cstdio>

#include "cli/run.h"
#include "plugin/options.h"

namespace feign {
namespace {

Result<PluginSpec> plugin(Document& d, yaml_node_t& n) {
  if (n.type == YAML_SCALAR_NODE) {
    auto text = d.scalar(n, "");
    return parse_plugin_spec(*text, d.at(n));
  }
  auto item = d.pairs(n, "NAME, or NAME: {option: value}");
  if (!item) return std::move(item.error());
  if (item->size() != 1) return d.error(n, "want one NAME: {option: value} an item");
  auto& [name, options] = item->front();
  PluginSpec spec;
  spec.name = name;
  spec.where = d.at(n);
  if (name.empty()) return d.error(n, "want a plug-in's name");
  // "NAME:" with nothing behind it has no options.
  if (options->type == YAML_SCALAR_NODE && options->data.scalar.length == 0) return spec;
  auto list = d.pairs(*options, "a map of options for " + name);
  if (!list) return std::move(list.error());
  for (auto& [key, value] : *list) {
    if (value->type == YAML_SEQUENCE_NODE) {
      for (auto* i = value->data.sequence.items.start; i < value->data.sequence.items.top; ++i) {
        auto text = d.scalar(*d.node(*i), "a value of " + key);
        if (!text) return std::move(text.error());
        spec.options.emplace_back(key, *text);
      }
      continue;
    }
    auto text = d.scalar(*value, "a value or a list of values of " + key);
    if (!text) return std::move(text.error());
    spec.options.emplace_back(key, *text);
  }
  return spec;
}

// What stands for a setting; of pace also {kind: think, scale: 2}.
Result<std::string> setting_text(Document& d, const std::string& key, yaml_node_t& n,
                                 const char* want) {
  if (key != "pace" || n.type != YAML_MAPPING_NODE) return d.scalar(n, want);
  auto parts = d.pairs(n, "");
  if (!parts) return std::move(parts.error());
  std::string kind, scale;
  for (auto& [name, part] : *parts) {
    auto text = d.scalar(*part, "a value");
    if (!text) return std::move(text.error());
    if (name == "kind")
      kind = *text;
    else if (name == "scale")
      scale = ",scale=" + *text;
    else
      return d.error(d.key(n, name), "pace: unknown key \"" + name + "\": want kind and scale");
  }
  if (kind.empty())
    return d.error(n, "pace: there is no `kind`: want {kind: think, scale: FACTOR}");
  return kind + scale;
}

}  // namespace

Result<bool> truth(Document& d, const std::string& key, const yaml_node_t& n) {
  auto text = d.scalar(n, key + ": want yes or no");
  if (!text) return std::move(text.error());
  bool yes = false;
  if (!parse_truth(*text, yes)) return d.error(n, key + ": \"" + *text + "\": want yes or no");
  return yes;
}

Result<PipelineOptions> load_pipeline(const std::string& path) {
  Document d(path, "a map with `plugins`");
  if (auto loaded = d.load(); !loaded) return std::move(loaded.error());
  PipelineOptions out;
  out.file = path;
  auto top = d.pairs(*d.root(), "a map with `plugins`");
  if (!top) return std::move(top.error());
  bool has_plugins = false;
  for (auto& [key, value] : *top) {
    if (key == "plugins") {
      has_plugins = true;
      if (value->type != YAML_SEQUENCE_NODE) return d.error(*value, "plugins: want a list");
      for (auto* i = value->data.sequence.items.start; i < value->data.sequence.items.top; ++i) {
        auto spec = plugin(d, *d.node(*i));
        if (!spec) return std::move(spec.error());
        out.plugins.push_back(std::move(*spec));
      }
    } else if (key == "root") {
      auto text = d.scalar(*value, "a directory");
      if (!text) return std::move(text.error());
      out.replay.root = *text;
    } else if (key == "prepare") {
      auto yes = truth(d, key, *value);
      if (!yes) return std::move(yes.error());
      out.replay.prepare = *yes;
    } else if (const Setting* const setting = replay_setting(key); setting != nullptr) {
      auto text = setting_text(d, key, *value, setting->want);
      if (!text) return std::move(text.error());
      if (auto done = set(out.replay, *setting, *text); !done)
        return d.error(*value, key + ": " + done.error().text());
    } else {
      return d.error(
          d.key(*d.root(), key),
          "unknown key \"" + key + "\": want plugins, root, prepare, " + replay_setting_names());
    }
  }
  if (!has_plugins) return d.error(*d.root(), "there is no `plugins`");
  return out;
}

}  // namespace feign
