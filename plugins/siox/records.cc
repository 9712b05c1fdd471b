// SPDX-License-Identifier: MIT
#include "siox/records.h"

#include <algorithm>
#include <cstring>

#include "base/number.h"

namespace siox {
namespace {

using feign::Error;
using feign::Result;

constexpr size_t kLeastRecord = 4 + 16 + 22 + 4 + 4 + 4 + 1 + 4;

// Bytes of one record.
struct Cursor {
  const char* p;
  const char* end;
  bool good = true;

  template <typename T>
  T take() {
    T value{};
    if (static_cast<size_t>(end - p) < sizeof value) {
      good = false;
      return value;
    }
    memcpy(&value, p, sizeof value);
    p += sizeof value;
    return value;
  }
  ActivityId id() {
    ActivityId a;
    a.process.node = take<uint32_t>();
    a.process.pid = take<uint32_t>();
    a.process.time = take<uint32_t>();
    a.component = take<uint16_t>();
    a.id = take<uint32_t>();
    a.thread = take<uint32_t>();
    return a;
  }
  // How many of at least `least` bytes each follow; more than there is room for is none.
  uint32_t count(size_t least) {
    const auto n = take<uint32_t>();
    if (n > static_cast<size_t>(end - p) / least) good = false;
    return good ? n : 0;
  }
  Attribute attribute() {
    Attribute a;
    a.id = take<uint32_t>();
    a.type = take<uint8_t>();
    switch (a.type) {
      case kInt64:
      case kUint64:
        a.number = take<uint64_t>();
        break;
      case kInt32:
        a.number = static_cast<uint64_t>(int64_t{take<int32_t>()});
        break;
      case kUint32:
        a.number = take<uint32_t>();
        break;
      case kFloat:
        a.real = static_cast<double>(take<float>());
        break;
      case kDouble:
        a.real = take<double>();
        break;
      case kString: {
        const uint32_t n = count(1);
        a.text = {p, n};
        p += n;
        break;
      }
      case kNothing:
        break;
      default:
        good = false;
    }
    return a;
  }
};

// What is wrong with the bytes of a record; nullptr if it is good. Fills `r` unless `skim`.
const char* parse_binary(Cursor c, Record& r, bool skim) {
  r.activity = c.take<uint32_t>();
  r.start = c.take<uint64_t>();
  r.stop = c.take<uint64_t>();
  r.id = c.id();
  r.parents.clear();
  r.attributes.clear();
  if (r.stop < r.start) return "it ends before it starts";
  if (skim) return nullptr;
  for (uint32_t n = c.count(22); n > 0; --n) r.parents.push_back(c.id());
  if (!c.good) return "its parents are more than it has room for";
  for (uint32_t n = c.count(16); n > 0 && c.good; --n) {  // remote calls
    for (int i = 0; i < 3; ++i) (void)c.take<uint32_t>();
    for (uint32_t m = c.count(5); m > 0 && c.good; --m) (void)c.attribute();
  }
  if (!c.good) return "its remote calls are more than it has room for";
  for (uint32_t n = c.count(5); n > 0; --n) {
    r.attributes.push_back(c.attribute());
    if (r.attributes.back().type > kNothing) return "an attribute of an unknown type, want 0 to 7";
    if (!c.good) return "an attribute is longer than it has room for";
  }
  if (!c.good) return "its attributes are more than it has room for";
  if (c.take<uint8_t>() != 0)
    for (int i = 0; i < 3; ++i) (void)c.take<uint32_t>();
  r.error = c.take<uint32_t>();
  if (!c.good) return "it is shorter than its parts";
  if (c.p != c.end) return "it is longer than its parts";
  return nullptr;
}

}  // namespace

Form form_of(std::string_view head) {
  uint64_t size = 0;
  if (head.size() >= 8 + kLeastRecord) {
    memcpy(&size, head.data(), sizeof size);
    if (size >= kLeastRecord && size <= head.size() - 8) {
      Record r;
      const char* const p = head.data() + 8;
      if (parse_binary({p, p + size}, r, false) == nullptr) return Form::kBinary;
    }
  }
  if (head.find('\0') != std::string_view::npos) return Form::kNone;
  if (head.starts_with("Initializing file ontology") || head.starts_with("Time (HH:MM:SS") ||
      is_text_line(head.substr(0, head.find('\n'))))
    return Form::kText;
  // Numbers only, the third and fourth of which are times; up to the fifteenth no text can come.
  size_t i = 0;
  uint64_t numbers[13]{};
  for (uint64_t& number : numbers) {
    const size_t blank = head.find(' ', i);
    if (blank == std::string_view::npos || !feign::to_number(head.substr(i, blank - i), number))
      return Form::kNone;
    i = blank + 1;
  }
  return numbers[2] > 1'000'000 * kSecond && numbers[3] >= numbers[2] ? Form::kArchive
                                                                      : Form::kNone;
}

Result<std::unique_ptr<Records>> Records::open(const std::string& path, Names& names) {
  auto head = feign::head_of(path, size_t{64} << 10);
  if (!head) return std::move(head.error());
  std::unique_ptr<Records> r(new Records(path, names));
  r->form_ = form_of(*head);
  if (r->form_ == Form::kNone)
    return bad(path + ": record 1 at byte 0: want a SIOX activity file, binary or text");
  auto input = feign::Input::open(path);
  if (!input) return std::move(input.error());
  if (r->form_ == Form::kText) {
    r->lines_ = std::make_unique<feign::Lines>(std::move(*input));
  } else {
    r->input_ = std::move(*input);
    r->buffer_.resize(size_t{256} << 10);
  }
  return r;
}

Error Records::wrong(const std::string& what) const {
  return bad(path_ + ": record " + std::to_string(number_ + 1) + " at byte " +
             std::to_string(offset_) + ": " + what);
}

Result<bool> Records::have(size_t size) {
  while (end_ - begin_ < size && !over_) {
    if (begin_ != 0) {
      memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    }
    if (size > buffer_.size()) buffer_.resize(std::max(size, buffer_.size() * 2));
    auto got = input_->read(buffer_.data() + end_, buffer_.size() - end_);
    if (!got) return std::move(got.error());
    end_ += *got;
    over_ = *got == 0;
  }
  return end_ - begin_ >= size;
}

Result<bool> Records::next(Record& record, bool skim) {
  auto more = form_ == Form::kBinary    ? binary(record, skim)
              : form_ == Form::kArchive ? archive(record)
                                        : text(record);
  if (more && *more) ++number_;
  return more;
}

Result<bool> Records::binary(Record& record, bool skim) {
  auto there = have(8);
  if (!there) return there;
  if (!*there) {
    if (begin_ == end_) return false;
    return wrong("the file ends in the middle of its size");
  }
  uint64_t size = 0;
  memcpy(&size, buffer_.data() + begin_, sizeof size);
  if (size < kLeastRecord || size > kLongestRecord)
    return wrong("a size of " + std::to_string(size) + " bytes, want " +
                 std::to_string(kLeastRecord) + " to 64 MiB");
  there = have(8 + static_cast<size_t>(size));
  if (!there) return there;
  if (!*there)
    return wrong("the file ends " + std::to_string(8 + size - (end_ - begin_)) +
                 " bytes before it does");
  const char* const p = buffer_.data() + begin_ + 8;
  if (const char* why = parse_binary({p, p + size}, record, skim); why != nullptr)
    return wrong(why);
  pass(8 + static_cast<size_t>(size));
  return true;
}

}  // namespace siox
