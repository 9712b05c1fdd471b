// SPDX-License-Identifier: MIT
// A YAML file as a tree of nodes that know their line and column.
#pragma once

#include <yaml.h>

#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/input.h"

namespace feign {

class Document {
 public:
  // `want`: what the file should hold, for messages.
  Document(std::string path, std::string want) : path_(std::move(path)), want_(std::move(want)) {}
  Document(const Document&) = delete;
  Document& operator=(const Document&) = delete;
  ~Document() {
    if (loaded_) yaml_document_delete(&document_);
  }

  Result<void> load() {
    // Through Input: directories and unreadable files are told as everywhere else.
    auto text = first_bytes(path_, size_t{4} << 20);
    if (!text) return std::move(text.error());
    if (text->size() == size_t{4} << 20)
      return Error(FEIGN_ERR_ARGUMENT, path_ + ": more than 4 MiB, want " + want_);
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser)) return Error(FEIGN_ERR_NOMEM, path_ + ": out of memory");
    const std::unique_ptr<yaml_parser_t, void (*)(yaml_parser_t*)> owner(&parser,
                                                                         yaml_parser_delete);
    yaml_parser_set_input_string(&parser, reinterpret_cast<const unsigned char*>(text->data()),
                                 text->size());
    if (!yaml_parser_load(&parser, &document_)) return broken(parser);
    loaded_ = true;
    if (yaml_document_get_root_node(&document_) == nullptr)
      return Error(FEIGN_ERR_ARGUMENT, path_ + ": is empty, want " + want_);
    yaml_document_t next;
    if (!yaml_parser_load(&parser, &next)) return broken(parser);
    const yaml_node_t* more = yaml_document_get_root_node(&next);
    const bool is_empty = more == nullptr || (more->type == YAML_SCALAR_NODE &&
                                              more->data.scalar.length == 0);  // behind "---"
    const std::string there = is_empty ? "" : at(next.start_mark);
    yaml_document_delete(&next);
    if (!there.empty())
      return Error(FEIGN_ERR_ARGUMENT, there + ": a second document begins here: want one");
    for (const yaml_node_t* n = document_.nodes.start; n < document_.nodes.top; ++n)
      if (n->type == YAML_SCALAR_NODE &&
          std::memchr(n->data.scalar.value, '\0', n->data.scalar.length) != nullptr)
        return error(*n, "a NUL byte, which neither a path nor an argument can hold: want text");
    return {};
  }

  Error broken(const yaml_parser_t& parser) const {
    const yaml_mark_t mark = parser.error == YAML_READER_ERROR ? parser.mark : parser.problem_mark;
    const std::string what = parser.problem != nullptr ? parser.problem : "cannot be read";
    return {FEIGN_ERR_ARGUMENT, at(mark) + ": " + what + ": want YAML"};
  }
  std::string at(const yaml_mark_t& m) const {
    return path_ + ":" + std::to_string(m.line + 1) + ":" + std::to_string(m.column + 1);
  }
  std::string at(const yaml_node_t& n) const { return at(n.start_mark); }
  Error error(const yaml_node_t& n, const std::string& what) const {
    return {FEIGN_ERR_ARGUMENT, at(n) + ": " + what};
  }
  yaml_node_t* root() { return yaml_document_get_root_node(&document_); }
  yaml_node_t* node(int index) { return yaml_document_get_node(&document_, index); }

  Result<std::string> scalar(const yaml_node_t& n, const std::string& want) const {
    if (n.type != YAML_SCALAR_NODE) return error(n, wanted(want));
    return std::string(reinterpret_cast<const char*>(n.data.scalar.value), n.data.scalar.length);
  }
  // Key and value of a map, each key once.
  using Pairs = std::vector<std::pair<std::string, yaml_node_t*>>;
  Result<Pairs> pairs(const yaml_node_t& n, const std::string& want) {
    if (n.type != YAML_MAPPING_NODE) return error(n, wanted(want));
    Pairs out;
    std::set<std::string> seen;
    for (auto* p = n.data.mapping.pairs.start; p < n.data.mapping.pairs.top; ++p) {
      yaml_node_t* key = node(p->key);
      auto name = scalar(*key, "a name as the key");
      if (!name) return std::move(name.error());
      if (!seen.insert(*name).second) return error(*key, "\"" + *name + "\" is there twice");
      out.emplace_back(*name, node(p->value));
    }
    return out;
  }
  // A list's items, or one item alone.
  template <typename Each>
  Result<void> each(yaml_node_t& n, Each each) {
    if (n.type != YAML_SEQUENCE_NODE) return each(n);
    for (auto* i = n.data.sequence.items.start; i < n.data.sequence.items.top; ++i)
      if (auto done = each(*node(*i)); !done) return done;
    return {};
  }
  // Where that map has that key, which it has: for messages.
  const yaml_node_t& key(const yaml_node_t& map, const std::string& name) {
    for (auto* p = map.data.mapping.pairs.start; p < map.data.mapping.pairs.top; ++p)
      if (auto text = scalar(*node(p->key), ""); text && *text == name) return *node(p->key);
    return map;
  }

 private:
  // "repeats: want a number" says so itself.
  static std::string wanted(const std::string& want) {
    return want.find("want ") != std::string::npos ? want : "want " + want;
  }

  std::string path_, want_;
  yaml_document_t document_{};
  bool loaded_ = false;
};

// yes/true/on, no/false/off.
Result<bool> truth(Document& d, const std::string& key, const yaml_node_t& n);

}  // namespace feign
