// SPDX-License-Identifier: MIT
// Numbers and texts of the native format (docs/native-format.md) as bytes: written by Put and
// Bytes, read by Take.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace feign::native {

inline uint64_t zigzag(int64_t v) {
  return (static_cast<uint64_t>(v) << 1) ^ static_cast<uint64_t>(v >> 63);
}
inline int64_t unzigzag(uint64_t v) {
  return static_cast<int64_t>(v >> 1) ^ -static_cast<int64_t>(v & 1);
}

// Varints to where there is room for them.
struct Put {
  unsigned char* p;
  void u64(uint64_t v) {
    while (v >= 0x80) {
      *p++ = static_cast<unsigned char>(v) | 0x80;
      v >>= 7;
    }
    *p++ = static_cast<unsigned char>(v);
  }
  void i64(int64_t v) { u64(zigzag(v)); }
};
inline constexpr size_t kMaxVarint = 10;

class Bytes {
 public:
  // Where the next `n` bytes at most go; upto() says how many it became.
  Put room(size_t n) {
    if (size_ + n > data_.size()) data_.resize(std::max(size_ + n, data_.size() * 2));
    return {data_.data() + size_};
  }
  void upto(const Put& end) { size_ = static_cast<size_t>(end.p - data_.data()); }
  void u64(uint64_t v) {
    Put to = room(kMaxVarint);
    to.u64(v);
    upto(to);
  }
  void i64(int64_t v) { u64(zigzag(v)); }
  void raw(const void* p, size_t n) {
    const Put to = room(n);
    if (n != 0) memcpy(to.p, p, n);
    size_ += n;
  }
  void text(std::string_view s) {
    u64(s.size());
    raw(s.data(), s.size());
  }
  size_t size() const { return size_; }
  const unsigned char* data() const { return data_.data(); }
  void clear() { size_ = 0; }

 private:
  std::vector<unsigned char> data_;
  size_t size_ = 0;
};

// Numbers and texts from memory that cannot be trusted: past the end everything is 0 and bad() is
// true.
class Take {
 public:
  Take() = default;
  Take(const unsigned char* p, size_t n) : p_(p), end_(p + n) {}
  // Inlined, so that a copy of this lives in registers.
  [[gnu::always_inline]] uint64_t u64() {
    if (left() >= kLongest) [[likely]] {
      const unsigned char c = *p_;
      if (c < 0x80) {
        ++p_;
        return c;
      }
      const Number n = number(p_);
      if (n.size <= kLongest) [[likely]] {
        p_ += n.size;
        return n.value;
      }
    }
    uint64_t v = 0;
    for (unsigned shift = 0; p_ != end_ && shift < 64; shift += 7) {
      const unsigned char c = *p_++;
      v |= static_cast<uint64_t>(c & 0x7F) << shift;
      if (c < 0x80) return v;
    }
    bad_ = 1;
    p_ = end_;
    return 0;
  }
  [[gnu::always_inline]] int64_t i64() { return unzigzag(u64()); }
  [[gnu::always_inline]] uint32_t u32() {
    const uint64_t v = u64();
    if (v > UINT32_MAX) bad_ = 1;
    return static_cast<uint32_t>(v);
  }
  // A count of things that take at least `least` bytes each: more than can follow is bad.
  uint64_t count(size_t least) {
    const uint64_t n = u64();
    if (n > left() / least) {
      bad_ = 1;
      return 0;
    }
    return n;
  }
  std::string_view text() {
    const uint64_t n = u64();
    if (n > left()) {
      bad_ = 1;
      return {};
    }
    const std::string_view s(reinterpret_cast<const char*>(p_), n);
    p_ += n;
    return s;
  }
  void raw(void* to, size_t n) {
    if (n > left()) {
      bad_ = 1;
      memset(to, 0, n);
      return;
    }
    memcpy(to, p_, n);
    p_ += n;
  }
  // Passes over bytes that are these.
  bool same(const unsigned char* bytes, size_t n) {
    if (n > left() || memcmp(p_, bytes, n) != 0) return false;
    p_ += n;
    return true;
  }
  const unsigned char* at() const { return p_; }
  size_t left() const { return static_cast<size_t>(end_ - p_); }
  bool bad() const { return bad_ != 0; }
  void spoil() { bad_ = 1; }

 private:
  static constexpr size_t kLongest = 10;
  struct Number {
    uint64_t value, size;
  };
  // Seven bits of each byte, of all bytes at once: what the trace does not tell has ten of them.
  [[gnu::noinline, gnu::pure]] static Number number(const unsigned char* p) {
    constexpr uint64_t kMore = 0x8080808080808080;
    uint64_t v;
    memcpy(&v, p, sizeof v);
    const uint64_t ends = ~v & kMore;
    v &= (ends ^ (ends - 1)) & ~kMore;
    v = (v & 0x007F007F007F007F) | (v & 0x7F007F007F007F00) >> 1;
    v = (v & 0x00003FFF00003FFF) | (v & 0x3FFF00003FFF0000) >> 2;
    v = (v & 0x000000000FFFFFFF) | (v & 0x0FFFFFFF00000000) >> 4;
    if (ends != 0) return {v, static_cast<uint64_t>(std::countr_zero(ends)) / 8 + 1};
    v |= static_cast<uint64_t>(p[8] & 0x7F) << 56;
    if (p[8] < 0x80) return {v, 9};
    return {v | static_cast<uint64_t>(p[9]) << 63, p[9] < 0x80 ? kLongest : kLongest + 1};
  }

  const unsigned char *p_ = nullptr, *end_ = nullptr;
  uint64_t bad_ = 0;  // no bool: padding makes copies slow
};

}  // namespace feign::native
