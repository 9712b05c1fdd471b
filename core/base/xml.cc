// SPDX-License-Identifier: MIT
#include "base/xml.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

namespace feign {
namespace {

constexpr size_t kChunk = size_t{64} << 10;
constexpr std::string_view kMark = "\xEF\xBB\xBF";

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool ends_name(char c) { return is_blank(c) || c == '=' || c == '>' || c == '/' || c == '<'; }

std::string shown(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, 60))
    out += static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? '?' : c;
  return text.size() > 60 ? out + "…" : out;
}

}  // namespace

Xml::Xml(std::string text, std::string path, uint64_t line)
    : path_(std::move(path)), buffer_(std::move(text)), at_end_(true), line_(line) {}

Error Xml::error_at(uint64_t line, const std::string& what) const {
  return Error(FEIGN_ERR_ARGUMENT, path_ + ":" + std::to_string(line) + ": " + what);
}

Result<bool> Xml::more() {
  if (at_end_) return false;
  if (at_ > 0) {
    buffer_.erase(0, at_);
    at_ = 0;
  }
  const size_t had = buffer_.size();
  buffer_.resize(had + kChunk);
  auto got = input_->read(buffer_.data() + had, kChunk);
  if (!got) return std::move(got.error());
  buffer_.resize(had + *got);
  if (*got == 0) at_end_ = true;
  return *got != 0;
}

void Xml::pass(size_t bytes) {
  line_ +=
      static_cast<uint64_t>(std::count(buffer_.data() + at_, buffer_.data() + at_ + bytes, '\n'));
  at_ += bytes;
}

// How far from at_ it is to behind `end`, which begins no earlier than `from`.
Result<size_t> Xml::find_end(std::string_view end, size_t from) {
  while (true) {
    const size_t found = buffer_.find(end, at_ + from);
    if (found != std::string::npos) return found + end.size() - at_;
    if (buffer_.size() - at_ > kLongest)
      return error_at(token_line_, "no \"" + std::string(end) + "\" in a MiB from here");
    const size_t seen = buffer_.size() - at_;
    from = std::max(from, seen >= end.size() ? seen - end.size() + 1 : 0);
    auto got = more();
    if (!got) return std::move(got.error());
    if (!*got)
      return error_at(token_line_,
                      "the file ends within what begins here: want \"" + std::string(end) + "\"");
  }
}

const std::string_view* Xml::find(std::string_view attribute) const {
  for (const Attribute& a : attributes_)
    if (a.name == attribute) return &a.value;
  return nullptr;
}

// Entities replaced; what looks like none stays.
std::string_view Xml::decoded(std::string_view raw) {
  if (raw.find('&') == std::string_view::npos) return raw;
  if (decoded_used_ == decoded_.size()) decoded_.emplace_back();
  std::string& out = decoded_[decoded_used_++];
  out.clear();
  for (size_t i = 0; i < raw.size();) {
    const size_t end = raw[i] == '&' ? raw.find(';', i) : std::string_view::npos;
    if (end == std::string_view::npos || end - i > 10) {
      out += raw[i++];
      continue;
    }
    const std::string_view entity = raw.substr(i + 1, end - i - 1);
    const size_t before = out.size();
    if (entity == "amp") out += '&';
    if (entity == "lt") out += '<';
    if (entity == "gt") out += '>';
    if (entity == "quot") out += '"';
    if (entity == "apos") out += '\'';
    if (entity.size() > 1 && entity[0] == '#') {
      const bool hex = entity[1] == 'x';
      const char* first = entity.data() + (hex ? 2 : 1);
      const char* last = entity.data() + entity.size();
      uint32_t c = 0;
      const auto [stop, wrong] = std::from_chars(first, last, c, hex ? 16 : 10);
      if (wrong == std::errc{} && stop == last && c != 0 && c < 0x110000) {
        if (c < 0x80) {
          out += static_cast<char>(c);
        } else {
          const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
          constexpr unsigned char kLead[] = {0, 0xC0, 0xE0, 0xF0};
          out += static_cast<char>(kLead[more] | c >> (6 * more));
          for (int k = more - 1; k >= 0; --k)
            out += static_cast<char>(0x80 | (c >> (6 * k) & 0x3F));
        }
      }
    }
    if (out.size() == before) {
      out += '&';
      ++i;
    } else {
      i = end + 1;
    }
  }
  return out;
}

// What stands between two tags. False if it was blank.
Result<bool> Xml::text_token() {
  size_t length = 0;
  bool blank = true;
  while (true) {
    const char* begin = buffer_.data() + at_;
    const size_t have = buffer_.size() - at_;
    const void* tag = have > length ? memchr(begin + length, '<', have - length) : nullptr;
    const size_t end =
        tag != nullptr ? static_cast<size_t>(static_cast<const char*>(tag) - begin) : have;
    for (; blank && length < end; ++length) blank = is_blank(begin[length]);
    length = end;
    if (tag != nullptr || (!blank && length >= kChunk)) break;
    if (blank) {
      pass(length);
      length = 0;
    }
    auto got = more();
    if (!got) return std::move(got.error());
    if (!*got) break;
  }
  token_line_ = line_;
  if (!blank) text_ = std::string_view(buffer_).substr(at_, length);
  const std::string_view raw = text_;
  pass(length);
  if (!blank) text_ = decoded(raw);
  return !blank;
}

Result<Xml::Token> Xml::tag() {
  token_line_ = line_;
  // Quotes may hold a '>'.
  size_t length = 1;
  char quote = 0;
  while (true) {
    const size_t have = buffer_.size() - at_;
    const char* p = buffer_.data() + at_;
    bool complete = false;
    for (; length < have; ++length) {
      const char c = p[length];
      if (quote != 0) {
        if (c == quote) quote = 0;
      } else if (c == '"' || c == '\'') {
        quote = c;
      } else if (c == '>') {
        complete = true;
        break;
      } else if (c == '<') {
        return error("\"" + shown({p, length}) + "\" is cut short by another \"<\": want \">\"");
      }
    }
    if (complete) break;
    if (have > kLongest) return error("a tag of more than a MiB");
    auto got = more();
    if (!got) return std::move(got.error());
    if (!*got)
      return error("the file ends within \"" + shown({buffer_.data() + at_, buffer_.size() - at_}) +
                   "\": want \">\"");
  }
  const std::string_view whole = std::string_view(buffer_).substr(at_, length + 1);
  pass(length + 1);

  if (whole[1] == '/') {
    size_t end = 2;
    while (end < length && !ends_name(whole[end])) ++end;
    closed_ = whole.substr(2, end - 2);
    if (open_.empty() || open_.back().name != closed_)
      return error("</" + shown(closed_) + "> ends " +
                   (open_.empty() ? std::string("nothing")
                                  : "<" + shown(open_.back().name) + "> of line " +
                                        std::to_string(open_.back().line)));
    name_ = closed_;
    open_.pop_back();
    return Token::kClose;
  }

  size_t i = 1;
  while (!ends_name(whole[i])) ++i;
  name_ = whole.substr(1, i - 1);
  if (name_.empty()) return error("\"" + shown(whole) + "\": want a name behind \"<\"");
  if (open_.size() >= kDeepest)
    return error("<" + shown(name_) + "> is in " + std::to_string(kDeepest) +
                 " others: want fewer");
  while (true) {
    while (is_blank(whole[i])) ++i;
    if (i >= length) break;
    if (whole[i] == '/' && i + 1 == length) {
      close_next_ = true;
      break;
    }
    const size_t begin = i;
    while (!ends_name(whole[i])) ++i;
    const std::string_view attribute = whole.substr(begin, i - begin);
    while (is_blank(whole[i])) ++i;
    if (attribute.empty() || whole[i] != '=')
      return error("<" + shown(name_) + ">: \"" + shown(whole.substr(begin, length - begin)) +
                   "\": want ATTRIBUTE='VALUE'");
    ++i;
    while (is_blank(whole[i])) ++i;
    const char q = whole[i];
    const size_t end = q == '"' || q == '\'' ? whole.find(q, i + 1) : std::string_view::npos;
    if (end == std::string_view::npos)
      return error("<" + shown(name_) + ">: " + shown(attribute) + "=" +
                   shown(whole.substr(i, length - i)) + ": want the value in quotes");
    attributes_.push_back({attribute, decoded(whole.substr(i + 1, end - i - 1))});
    i = end + 1;
  }
  open_.push_back({std::string(name_), token_line_});
  return Token::kOpen;
}

Result<Xml::Token> Xml::next() {
  if (close_next_) {
    close_next_ = false;
    closed_ = std::move(open_.back().name);
    name_ = closed_;
    open_.pop_back();
    return Token::kClose;
  }
  attributes_.clear();
  decoded_used_ = 0;
  if (!std::exchange(begun_, true)) {  // a byte order mark is no text
    for (bool more_comes = true; more_comes && buffer_.size() < kMark.size();) {
      auto got = more();
      if (!got) return std::move(got.error());
      more_comes = *got;
    }
    if (buffer_.starts_with(kMark)) at_ = kMark.size();
  }
  while (true) {
    auto text = text_token();
    if (!text) return std::move(text.error());
    if (*text) return Token::kText;
    // Enough to tell a comment from a tag.
    while (buffer_.size() - at_ < 9) {
      auto got = more();
      if (!got) return std::move(got.error());
      if (!*got) break;
    }
    const std::string_view rest = std::string_view(buffer_).substr(at_);
    token_line_ = line_;
    if (rest.empty()) {
      if (open_.empty()) return Token::kEnd;
      return error("the file ends within <" + shown(open_.back().name) + "> of line " +
                   std::to_string(open_.back().line) + ": want </" + shown(open_.back().name) +
                   ">");
    }
    const bool comment = rest.starts_with("<!--");
    if (comment || rest.starts_with("<?")) {
      auto end = find_end(comment ? "-->" : "?>", 2);
      if (!end) return std::move(end.error());
      pass(*end);
      continue;
    }
    if (rest.starts_with("<![CDATA[")) {
      auto end = find_end("]]>", 9);
      if (!end) return std::move(end.error());
      text_ = std::string_view(buffer_).substr(at_ + 9, *end - 12);
      pass(*end);
      return Token::kText;
    }
    if (rest.starts_with("<!DOCTYPE")) {
      auto end = find_end(">", 9);
      if (!end) return std::move(end.error());
      if (buffer_.find('[', at_) < at_ + *end)
        return error("a document type with definitions of its own: want none");
      pass(*end);
      continue;
    }
    return tag();
  }
}

Result<void> Xml::skip() {
  for (size_t until = depth() - 1;;) {
    auto token = next();
    if (!token) return std::move(token.error());
    if (*token == Token::kClose && depth() == until) return {};
  }
}

std::string xml_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto u = static_cast<unsigned char>(c);
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&apos;";
        break;
      default:
        if (u < 0x20)
          out += "&#" + std::to_string(u) + ";";
        else
          out += c;
    }
  }
  return out;
}

}  // namespace feign
