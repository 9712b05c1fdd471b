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

}  // namespace

Result<bool> truth(Document& d, const yaml_node_t& n) {
  auto text = d.scalar(n, "yes or no");
  if (!text) return std::move(text.error());
  for (const char* yes : {"yes", "true", "on"})
    if (*text == yes) return true;
  for (const char* no : {"no", "false", "off"})
    if (*text == no) return false;
  return d.error(n, "\"" + *text + "\": want yes or no");
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
    } else if (key == "pace") {
      std::string text;
      if (value->type == YAML_MAPPING_NODE) {
        auto parts = d.pairs(*value, "");
        if (!parts) return std::move(parts.error());
        std::string kind, scale;
        for (auto& [name, part] : *parts) {
          auto v = d.scalar(*part, "a value");
          if (!v) return std::move(v.error());
          if (name == "kind")
            kind = *v;
          else if (name == "scale")
            scale = ",scale=" + *v;
          else
            return d.error(d.key(*value, name),
                           "pace: unknown key \"" + name + "\": want kind and scale");
        }
        if (kind.empty())
          return d.error(*value, "pace: there is no `kind`: want {kind: think, scale: FACTOR}");
        text = kind + scale;
      } else {
        auto v = d.scalar(*value, "afap, think or timed");
        if (!v) return std::move(v.error());
        text = *v;
      }
      auto pace = parse_pace(text);
      if (!pace) return d.error(*value, "pace: " + pace.error().text());
      out.replay.pace = pace->first;
      out.replay.scale = pace->second;
    } else if (key == "order") {
      auto text = d.scalar(*value, "trace, depend or stream");
      if (!text) return std::move(text.error());
      out.replay.order_given = true;
      if (!parse_order(*text, out.replay.order))
        return d.error(*value, "order: \"" + *text + "\": want trace, depend or stream");
    } else if (key == "prepare") {
      auto yes = truth(d, *value);
      if (!yes) return std::move(yes.error());
      out.replay.prepare = *yes;
    } else if (key == "compute") {
      auto text = d.scalar(*value, kComputeForms);
      if (!text) return std::move(text.error());
      if (!parse_compute(*text, out.replay.compute))
        return d.error(*value, "compute: \"" + *text + "\": want " + kComputeForms);
    } else if (key == "streams-per-core") {
      auto text = d.scalar(*value, "a number from 1 to 4096");
      if (!text) return std::move(text.error());
      char* end = nullptr;
      const long n = strtol(text->c_str(), &end, 10);
      if (end == text->c_str() || *end != '\0' || n < 1 || n > 4096)
        return d.error(*value, "streams-per-core: \"" + *text + "\": want a number from 1 to 4096");
      out.replay.streams_per_core = static_cast<uint32_t>(n);
    } else if (key == "pin") {
      auto yes = truth(d, *value);
      if (!yes) return std::move(yes.error());
      out.replay.pin = *yes;
    } else if (key == "content") {
      auto text = d.scalar(*value, Content::kForms);
      if (!text) return std::move(text.error());
      const auto content = Content::parse(*text);
      if (!content) return d.error(*value, "content: \"" + *text + "\": want " + Content::kForms);
      out.replay.content = *content;
      out.replay.content_text = *text;
    } else if (key == "max-bytes") {
      auto text = d.scalar(*value, "bytes");
      if (!text) return std::move(text.error());
      if (!parse_size(*text, out.replay.max_bytes) || out.replay.max_bytes == 0)
        return d.error(*value, "max-bytes: \"" + *text + "\": want bytes, such as 500m or 2GiB");
    } else {
      return d.error(d.key(*d.root(), key),
                     "unknown key \"" + key +
                         "\": want plugins, root, pace, order, compute, streams-per-core, pin, "
                         "prepare, content or max-bytes");
    }
  }
  if (!has_plugins) return d.error(*d.root(), "there is no `plugins`");
  return out;
}

}  // namespace feign
