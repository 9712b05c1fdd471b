// SPDX-License-Identifier: MIT
// The older form of SIOX's activity files: numbers with blanks between them, as boost's text
// archives have them.
#include <algorithm>
#include <optional>

#include "base/number.h"
#include "siox/records.h"

namespace siox {

using feign::Error;
using feign::Result;

Result<std::string_view> Records::token() {
  while (true) {
    auto there = have(1);
    if (!there) return std::move(there.error());
    if (!*there) return std::string_view();
    const char c = buffer_[begin_];
    if (c != ' ' && c != '\n' && c != '\r' && c != '\t') break;
    pass(1);
  }
  constexpr size_t kLongest = 24;  // digits of a number
  auto there = have(kLongest);
  if (!there) return std::move(there.error());
  size_t n = 0;
  while (n < std::min(kLongest, end_ - begin_) &&
         static_cast<unsigned char>(buffer_[begin_ + n]) > ' ')
    ++n;
  const std::string_view text(buffer_.data() + begin_, n);
  pass(n);
  return text;
}

// The parts of one record. Where one is not what it should be, it and all that follow are 0, and
// `error` says why.
struct Records::Archive {
  Records& from;
  std::optional<Error> error;

  bool good() const { return !error; }
  void spoil(Error why) {
    if (good()) error = std::move(why);
  }

  // What comes, a number of one of these types.
  template <typename... Types>
  void next(const char* what, Types&... values) {
    if (!good()) return;
    auto text = from.token();
    if (!text)
      spoil(std::move(text.error()));
    else if (!(feign::to_number(*text, values) || ...))
      spoil(text->empty() ? from.wrong(std::string("the file ends where ") + what + " is to come")
                          : from.wrong("\"" + std::string(*text) + "\": want " + what));
  }
  uint64_t number(const char* what) {
    uint64_t value = 0;
    int64_t negative = 0;
    next(what, value, negative);
    if (!good()) return 0;
    return negative < 0 ? static_cast<uint64_t>(negative) : value;
  }
  uint32_t short_number(const char* what) { return static_cast<uint32_t>(number(what)); }

  ActivityId id() {
    static constexpr const char* kPart = "part of an activity's id";
    ActivityId a;
    a.process.node = short_number(kPart);
    a.process.pid = short_number(kPart);
    a.process.time = short_number(kPart);
    a.component = static_cast<uint16_t>(number(kPart));
    a.id = short_number(kPart);
    a.thread = short_number(kPart);
    return a;
  }

  // How many there are in a vector. The first one of each kind begins with two numbers more.
  enum Kind : unsigned { kParents = 1, kRemoteCalls = 2, kAttributes = 4 };
  uint64_t count(Kind kind) {
    if (good() && !(from.first_vectors_ & kind)) {
      from.first_vectors_ |= kind;
      (void)number("a vector's class");
      (void)number("a vector's version");
    }
    const uint64_t n = number("how many there are");
    (void)number("a vector's item version");
    constexpr uint64_t kMost = 1 << 20;
    if (n > kMost)
      spoil(from.wrong(std::to_string(n) +
                       (kind == kParents       ? " parents"
                        : kind == kRemoteCalls ? " remote calls"
                                               : " attributes") +
                       ", want at most a million"));
    return good() ? n : 0;
  }

  Attribute attribute() {
    Attribute a;
    a.id = short_number("an attribute's id");
    const uint64_t type = number("an attribute's type");
    if (type > kNothing)
      spoil(
          from.wrong("an attribute of the unknown type " + std::to_string(type) + ", want 0 to 7"));
    a.type = static_cast<uint8_t>(type);
    if (!good() || type == kNothing) return a;
    if (type == kFloat || type == kDouble) {
      next("an attribute's value", a.real);
      return a;
    }
    a.number = number("an attribute's value");
    if (type == kString && good()) a.text = text(a.number);
    return a;
  }

  // So many bytes after a blank.
  std::string_view text(uint64_t size) {
    if (size > kLongestRecord) {
      spoil(from.wrong("a text of " + std::to_string(size) + " bytes, want at most 64 MiB"));
      return {};
    }
    auto enough = from.have(size + 1);
    if (!enough || !*enough) {
      spoil(enough ? from.wrong("the file ends in a text") : std::move(enough.error()));
      return {};
    }
    from.texts_.emplace_back(from.buffer_.data() + from.begin_ + 1, size);
    from.pass(size + 1);
    return from.texts_.back();
  }
};

Result<bool> Records::archive(Record& r) {
  auto first = token();  // an item's version
  if (!first) return std::move(first.error());
  if (first->empty()) return false;
  texts_.clear();
  r.parents.clear();
  r.attributes.clear();
  Archive x{*this, {}};
  r.activity = x.short_number("an activity's number");
  r.start = x.number("its start");
  r.stop = x.number("its end");
  r.id = x.id();
  if (r.stop < r.start) x.spoil(wrong("it ends before it starts"));
  for (uint64_t n = x.count(Archive::kParents); n > 0 && x.good(); --n) r.parents.push_back(x.id());
  for (uint64_t n = x.count(Archive::kRemoteCalls); n > 0 && x.good(); --n) {
    for (int i = 0; i < 3; ++i) (void)x.number("part of a remote call");
    for (uint64_t m = x.count(Archive::kAttributes); m > 0 && x.good(); --m) (void)x.attribute();
  }
  for (uint64_t n = x.count(Archive::kAttributes); n > 0 && x.good(); --n)
    r.attributes.push_back(x.attribute());
  if (x.number("its invoker") != UINT64_MAX)
    for (int i = 0; i < 3; ++i) (void)x.number("part of its invoker");
  r.error = x.short_number("its error");
  if (!x.good()) return std::move(*x.error);
  return true;
}

}  // namespace siox
