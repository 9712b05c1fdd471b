// SPDX-License-Identifier: MIT
// JSON, written as it comes: a report is printed once, and a tree of it in memory took longer to
// make and to print than many a replay. Reading JSON is nlohmann-json's, as everywhere.
#pragma once

#include <charconv>
#include <cmath>
#include <concepts>
#include <string>
#include <string_view>

namespace feign {

class JsonWriter {
 public:
  // In an array: a value. In an object: a member.
  void add(const auto& v) {
    next();
    value(v);
  }
  void add(std::string_view name, const auto& v) {
    this->name(name);
    value(v);
  }
  void array(std::string_view name, const auto& elements) {
    this->name(name);
    nested('[', ']', elements);
  }
  void object(std::string_view name, const auto& members) {
    this->name(name);
    nested('{', '}', members);
  }
  void object(const auto& members) {
    if (depth_ != 0) next();
    nested('{', '}', members);
  }
  void row(const auto&... values) {  // an array in an array
    next();
    nested('[', ']', [&] { (add(values), ...); });
  }
  std::string take() { return std::move(out_); }

 private:
  void next() {
    if (!first_) out_ += ',';
    first_ = false;
    out_ += '\n';
    out_.append(2 * depth_, ' ');
  }
  void name(std::string_view name) {
    next();
    value(name);
    out_ += ": ";
  }
  void nested(char open, char close, const auto& inner) {
    out_ += open;
    ++depth_;
    first_ = true;
    inner();
    --depth_;
    if (!first_) {
      out_ += '\n';
      out_.append(2 * depth_, ' ');
    }
    first_ = false;
    out_ += close;
  }

  void value(std::nullptr_t) { out_ += "null"; }
  void value(std::same_as<bool> auto v) { out_ += v ? "true" : "false"; }
  template <std::integral T>
  requires(!std::same_as<T, bool>) void value(T v) { number(v); }
  void value(double v) {
    if (!std::isfinite(v)) return value(nullptr);
    const size_t from = out_.size();
    number(v);
    if (out_.find_first_of(".e", from) == std::string::npos) out_ += ".0";
  }
  // Text is bytes: what is no UTF-8 is replaced.
  void value(std::string_view text) {
    for (const char c : text)
      if (c < ' ' || c > '~' || c == '"' || c == '\\') {
        out_ += escaped(text);
        return;
      }
    out_ += '"';
    out_ += text;
    out_ += '"';
  }
  static std::string escaped(std::string_view text);
  void value(const std::string& text) { value(std::string_view(text)); }
  void value(const char* text) { value(std::string_view(text)); }

  void number(auto v) {
    char text[32];
    out_.append(text, std::to_chars(text, text + sizeof text, v).ptr);
  }

  std::string out_;
  size_t depth_ = 0;
  bool first_ = true;  // of the array or object that is open
};

}  // namespace feign
