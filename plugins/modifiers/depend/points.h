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
    if (first_.stream == p.stream || first_.stream == 0) {
      first_.stream = p.stream;
      first_.id = std::max(first_.id, p.id);
      return;
    }
    add_further(p);
  }
  void add(const Points& other) {
    other.for_each([&](Point p) { add(p); });
    if (other.anybody() != 0) everything(other.anybody());
  }
  void clear() {
    first_ = {};
    more_.reset();
  }
  void only(Point p) {
    first_ = p;
    more_.reset();
  }
  bool empty() const { return first_.stream == 0 && more_ == nullptr; }
  // Whether it is this stream's alone.
  bool only_of(uint32_t stream) const { return first_.stream == stream && more_ == nullptr; }
  template <typename Visit>
  void for_each(Visit&& visit) const {
    if (first_.id != 0) visit(first_);
    if (more_ != nullptr)
      for (const Point& p : more_->points) visit(p);
  }
  // Besides, whoever's it is up to this id; 0: nobody's.
  uint64_t anybody() const { return more_ != nullptr ? more_->anybody : 0; }

 private:
  struct More {
    std::vector<Point> points;
    uint64_t anybody = 0;
  };
  void add_further(Point p) {
    if (more_ == nullptr) more_ = std::make_unique<More>();
    if (more_->anybody != 0) return everything(p.id);
    for (Point& known : more_->points)
      if (known.stream == p.stream) {
        known.id = std::max(known.id, p.id);
        return;
      }
    if (more_->points.size() + 1 == kMost) return everything(p.id);
    more_->points.push_back(p);
  }
  void everything(uint64_t id) {
    if (more_ == nullptr) more_ = std::make_unique<More>();
    uint64_t last = std::max({id, more_->anybody, first_.id});
    for (const Point& p : more_->points) last = std::max(last, p.id);
    more_->points = {};
    more_->anybody = last;
    first_ = {};
    first_.stream = UINT32_MAX;  // no stream is that one: all that comes goes to add_further()
    first_.id = 0;
  }

  Point first_;
  std::unique_ptr<More> more_;
};

}  // namespace depend
