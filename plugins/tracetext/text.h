// SPDX-License-Identifier: MIT
// The text of //TRACE as lines, names and numbers (docs/tracetext-format.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/input.h"
#include "feign.h"

namespace tracetext {

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
inline bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_';
}
inline bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

std::string_view trimmed(std::string_view text);
std::string_view first_name(std::string_view text);

// A C number, all of `text`: decimal, octal (leading 0) or hexadecimal, with a sign.
bool number_of(std::string_view text, int64_t& value);

// Undoes C escapes.
std::string unescaped(std::string_view text);

// Past the string, bracket or plain byte that starts at text[i].
size_t past(std::string_view text, size_t i);

// Takes C comments out of lines; a comment may go over several.
struct Comments {
  bool inside = false;
  std::string plain_;

  std::string_view without(std::string_view line);
};

// What stands in a node's file.
struct Event {
  enum Kind : uint8_t { kCall, kWait, kSignal, kCompute, kEnd } kind = kEnd;
  uint64_t value = 0;     // a node's number, or ns
  std::string_view text;  // of a call, without comments; good until the next event
};

// One file: its lines without comments.
class File {
 public:
  File(std::unique_ptr<feign::Lines> lines, uint32_t source)
      : lines_(std::move(lines)), source_(source) {}

  // The next event; an error says what is wrong with its line.
  feign::Result<Event> next();
  const std::string& path() const { return lines_->path(); }
  std::string where() const { return path() + ":" + std::to_string(lines_->number()); }
  uint64_t place() const { return FEIGN_PLACE(source_, lines_->number()); }
  bool complete() const { return lines_->complete(); }
  bool unreadable() const { return unreadable_; }  // the error was not in a line

 private:
  std::unique_ptr<feign::Lines> lines_;
  uint32_t source_;
  Comments comments_;
  bool unreadable_ = false;
  bool cut_ = false;
};

}  // namespace tracetext
