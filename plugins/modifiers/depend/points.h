// SPDX-License-Identifier: MIT
// What the rules remember of activities: which one of which stream it was.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace depend {

// "Every activity of this stream up to this id."
struct Point {
  uint32_t stream = 0;  // 0: none
  uint64_t id = 0;
};

// Some activities, of each stream the last. Where they are of more than kMost streams, it is
// remembered instead that they are somebody's, up to the last id: an order too many is no harm, and
// memory is bounded.
class Points {
 public:
  static constexpr size_t kMost = 64;

  void add(Point p) {
    if (first_.stream == p.stream) {
      first_.id = std::max(first_.id, p.id);
    } else if (empty()) {
      first_ = p;
    } else {
      add_further(p);
    }
  }
  void add(const Points& other) {
    other.for_each([&](Point p) { add(p); });
    if (const uint64_t id = other.anybody(); id != 0) {
      if (empty()) first_.id = id;
      everybody(id);
    }
  }
  void clear() {
    first_ = {};
    count_ = 0;
  }
  void only(Point p) {
    first_ = p;
    count_ = 0;
  }
  bool empty() const { return first_.id == 0; }
  template <typename Visit>
  void for_each(Visit&& visit) const {
    if (first_.stream == 0) return;
    visit(first_);
    for (uint32_t i = 0; i < count_; ++i) visit(more_[i]);
  }
  // Instead: whoever's it is up to this id; 0: nobody's.
  uint64_t anybody() const { return first_.stream == 0 ? first_.id : 0; }

 private:
  void add_further(Point p) {
    if (anybody() != 0) return everybody(p.id);
    for (uint32_t i = 0; i < count_; ++i)
      if (more_[i].stream == p.stream) {
        more_[i].id = std::max(more_[i].id, p.id);
        return;
      }
    if (count_ + 1 == kMost) return everybody(p.id);
    if (count_ == room_) {
      const uint32_t room = std::max(3u, room_ * 2);
      auto more = std::make_unique<Point[]>(room);
      std::copy(more_.get(), more_.get() + count_, more.get());
      more_ = std::move(more);
      room_ = room;
    }
    more_[count_++] = p;
  }
  void everybody(uint64_t id) {
    for (uint32_t i = 0; i < count_; ++i) id = std::max(id, more_[i].id);
    first_ = {0, std::max(id, first_.id)};
    more_.reset();
    count_ = room_ = 0;
  }

  Point first_;  // of stream 0: anybody's
  uint32_t count_ = 0, room_ = 0;
  std::unique_ptr<Point[]> more_;
};

}  // namespace depend
