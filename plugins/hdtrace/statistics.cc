// SPDX-License-Identifier: MIT
#include "hdtrace/statistics.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "base/input.h"
#include "base/xml.h"

namespace feign::hdtrace {
namespace {

struct Value {
  enum class Type { kInt32, kInt64, kUint64, kFloat, kDouble } type;
  Statistic sum;
};

// Bytes of an input, all of the wanted or an error.
class Bytes {
 public:
  explicit Bytes(std::unique_ptr<Input> input) : input_(std::move(input)) {}
  // False at the end, if nothing of it is there.
  Result<bool> read(char* to, size_t size, const char* what) {
    for (size_t have = 0; have < size;) {
      if (at_ == end_) {
        auto got = input_->read(buffer_, sizeof buffer_);
        if (!got) return std::move(got.error());
        at_ = 0;
        end_ = *got;
        if (end_ == 0) {
          if (have == 0) return false;
          return error(std::string("the file ends within ") + what + ": want " +
                       std::to_string(size) + " bytes, it has " + std::to_string(have));
        }
      }
      const size_t some = std::min(size - have, end_ - at_);
      memcpy(to + have, buffer_ + at_, some);
      at_ += some;
      have += some;
      offset_ += some;
    }
    return true;
  }
  Error error(const std::string& what) const {
    return Error(FEIGN_ERR_ARGUMENT,
                 input_->path() + ": at byte " + std::to_string(offset_) + ": " + what);
  }
  const std::string& path() const { return input_->path(); }

 private:
  std::unique_ptr<Input> input_;
  char buffer_[size_t{64} << 10];
  size_t at_ = 0, end_ = 0;
  uint64_t offset_ = 0;
};

uint64_t big_endian(const char* p, size_t size) {
  uint64_t n = 0;
  for (size_t i = 0; i < size; ++i) n = n << 8 | static_cast<unsigned char>(p[i]);
  return n;
}

size_t size_of(Value::Type type) {
  return type == Value::Type::kInt32 || type == Value::Type::kFloat ? 4 : 8;
}

double number_of(Value::Type type, const char* p) {
  switch (type) {
    case Value::Type::kInt32:
      return static_cast<int32_t>(big_endian(p, 4));
    case Value::Type::kInt64:
      return static_cast<double>(static_cast<int64_t>(big_endian(p, 8)));
    case Value::Type::kUint64:
      return static_cast<double>(big_endian(p, 8));
    case Value::Type::kFloat:
      return std::bit_cast<float>(static_cast<uint32_t>(big_endian(p, 4)));
    default:
      return std::bit_cast<double>(big_endian(p, 8));
  }
}

Result<std::vector<Value>> header(Xml& xml) {
  std::vector<Value> out;
  std::string where, group;
  while (true) {
    auto token = xml.next();
    if (!token) return std::move(token.error());
    if (*token == Xml::Token::kEnd) break;
    if (*token != Xml::Token::kOpen) continue;
    const auto value = [&](std::string_view name) {
      const std::string_view* v = xml.find(name);
      return std::string(v != nullptr ? *v : std::string_view());
    };
    const std::string tag(xml.name());
    if (tag == "Label" || tag == "Node") {
      const std::string label = tag == "Label" ? value("value") : value("name");
      where += (where.empty() ? "" : " ") + label;
    } else if (tag == "Group") {
      group = value("name");
    } else if (tag == "Value" || (tag == "Statistics" && xml.find("type") != nullptr)) {
      const std::string type = value("type");
      constexpr std::pair<std::string_view, Value::Type> kTypes[] = {
          {"INT32", Value::Type::kInt32},
          {"INT64", Value::Type::kInt64},
          {"UINT64", Value::Type::kUint64},
          {"FLOAT", Value::Type::kFloat},
          {"DOUBLE", Value::Type::kDouble}};
      const auto* known = std::find_if(std::begin(kTypes), std::end(kTypes),
                                       [&](const auto& t) { return t.first == type; });
      if (known == std::end(kTypes))
        return xml.error("<" + tag + ">: type=\"" + type.substr(0, 60) +
                         "\": want INT32, INT64, UINT64, FLOAT or DOUBLE");
      Statistic s;
      s.where = where;
      s.group = group;
      s.name = value("name");
      s.unit = value("unit");
      out.push_back({known->second, std::move(s)});
    }
  }
  if (out.empty()) return xml.error("the header has no <Value>: want at least one");
  return out;
}

}  // namespace

Result<void> read_statistics(const std::string& path, Tables* tables) {
  auto input = Input::open(path);
  if (!input) return std::move(input.error());
  auto bytes = std::make_unique<Bytes>(std::move(*input));
  uint32_t length = 0;
  for (int digits = 0;; ++digits) {  // five with zeros before them, in older files fewer
    char c = 0;
    auto got = bytes->read(&c, 1, "the length of the header");
    if (!got) return std::move(got.error());
    if (*got && c == '\n' && digits > 0) break;
    if (!*got || c < '0' || c > '9' || digits == 6)
      return bytes->error("want the length of the header in digits, and a newline");
    length = length * 10 + static_cast<uint32_t>(c - '0');
  }
  std::string text(length, '\0');
  auto all = bytes->read(text.data(), length, "the header");
  if (!all) return std::move(all.error());
  if (!*all && length != 0)
    return bytes->error("the file ends before the header: want " + std::to_string(length) +
                        " bytes");
  Xml xml(std::move(text), path, 2);
  auto values = header(xml);
  if (!values) return std::move(values.error());

  size_t record = 8;
  for (const Value& v : *values) record += size_of(v.type);
  std::vector<char> buffer(record);
  auto start = bytes->read(buffer.data(), 8, "the time that it begins with");
  if (!start) return std::move(start.error());
  const auto seconds = [](const char* p) {
    return static_cast<double>(static_cast<int32_t>(big_endian(p, 4))) +
           static_cast<double>(static_cast<int32_t>(big_endian(p + 4, 4))) / 1e9;
  };
  double first = *start ? seconds(buffer.data()) : 0, last = first;
  while (true) {
    auto more = bytes->read(buffer.data(), record, "a record");
    if (!more) return std::move(more.error());
    if (!*more) break;
    const double now = seconds(buffer.data());
    if (static_cast<int32_t>(big_endian(buffer.data() + 4, 4)) < 0 ||
        big_endian(buffer.data() + 4, 4) >= 1'000'000'000)
      return bytes->error("a record's time has more than 999,999,999 ns");
    last = now;
    size_t at = 8;
    for (Value& v : *values) {
      const double n = number_of(v.type, buffer.data() + at);
      at += size_of(v.type);
      Statistic& s = v.sum;
      s.least = s.count == 0 ? n : std::min(s.least, n);
      s.greatest = s.count == 0 ? n : std::max(s.greatest, n);
      ++s.count;
      s.mean += (n - s.mean) / static_cast<double>(s.count);
    }
  }
  if (tables == nullptr) return {};
  // An older header does not say what node it is of: PROJECT_NODE_GROUP.stat does.
  std::string node = path.substr(path.rfind('/') + 1);
  node = node.substr(0, node.rfind('_')).substr(std::min(node.find('_') + 1, node.size()));
  for (Value& v : *values) {
    v.sum.seconds = last - first;
    if (v.sum.where.empty()) v.sum.where = node;
    tables->statistics.push_back(std::move(v.sum));
  }
  return {};
}

}  // namespace feign::hdtrace
