// SPDX-License-Identifier: MIT
// Reads XML as a stream of tags and texts, in memory for one tag.
//
// For what tracers write, not for documents: no DTDs or namespaces, any number of elements at the
// top, names of any bytes, and an & that begins no entity stands for itself, since tracers put
// paths into attributes as they are.
#pragma once

#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/input.h"

namespace feign {

class Xml {
 public:
  enum class Token { kOpen, kClose, kText, kEnd };
  struct Attribute {
    std::string_view name, value;
  };

  explicit Xml(std::unique_ptr<Input> input) : input_(std::move(input)), path_(input_->path()) {}
  // Whole in memory, for parts of files that are not XML; `path` and `line` are for messages.
  Xml(std::string text, std::string path, uint64_t line);

  // The next token; views are good until the next call. <a/> is an opening and a closing. Blank
  // text is passed over, and long text comes in pieces. At the end of the input every element must
  // have been closed.
  Result<Token> next();
  std::string_view name() const { return name_; }  // of the tag
  std::span<const Attribute> attributes() const { return attributes_; }
  std::string_view text() const { return text_; }
  // The attribute's value, or nullptr.
  const std::string_view* find(std::string_view attribute) const;
  size_t depth() const { return open_.size(); }  // elements that are open, a just opened one, too

  uint64_t line() const { return token_line_; }  // where the token began
  const std::string& path() const { return path_; }
  // An error at the token: "FILE:LINE: what".
  Error error(const std::string& what) const { return error_at(token_line_, what); }

  // Passes over what is in the element that was just opened, and its end.
  Result<void> skip();

  static constexpr size_t kLongest = size_t{1} << 20;  // tag
  static constexpr size_t kDeepest = 1000;             // elements in each other

 private:
  Error error_at(uint64_t line, const std::string& what) const;
  Result<bool> more();  // false: the input is at its end
  Result<size_t> find_end(std::string_view end, size_t from);
  Result<Token> tag();
  Result<bool> text_token();
  std::string_view decoded(std::string_view raw);
  void pass(size_t bytes);

  std::unique_ptr<Input> input_;
  std::string path_;
  std::string buffer_;
  size_t at_ = 0;
  bool begun_ = false, at_end_ = false, close_next_ = false;
  uint64_t line_ = 1, token_line_ = 1;
  std::string_view name_, text_;
  std::vector<Attribute> attributes_;
  struct Open {
    std::string name;
    uint64_t line;
  };
  std::vector<Open> open_;
  std::string closed_;               // what name_ shows of a closing tag
  std::deque<std::string> decoded_;  // values that had entities in them
  size_t decoded_used_ = 0;
};

// The same text with & < > " ' as entities.
std::string xml_escaped(std::string_view text);

}  // namespace feign
