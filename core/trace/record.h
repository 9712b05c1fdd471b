// SPDX-License-Identifier: MIT
// An activity as the core holds it, and the pool that they come from.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "feign.h"

namespace feign {

// "May not start before every activity of `stream` up to `id` has ended."
struct Dependency {
  uint32_t stream;
  uint32_t rule;  // string id
  uint64_t id;
};

// The plug-in sees the first member only; the third cache line is touched for rare things.
struct alignas(64) Record {
  feign_activity a;
  std::vector<uint64_t> values;  // what a.values points to
  std::vector<Dependency> depends;

  static Record* of(feign_activity* a) { return reinterpret_cast<Record*>(a); }
  static const Record* of(const feign_activity* a) { return reinterpret_cast<const Record*>(a); }
  void set_values(std::span<const uint64_t> v) {
    values.assign(v.begin(), v.end());
    a.values = values.empty() ? nullptr : values.data();
    a.value_count = static_cast<uint32_t>(values.size());
  }
};
static_assert(offsetof(Record, a) == 0);
static_assert(sizeof(Record) == 192);

// So much of its compute_ns was slept.
inline void set_asleep(feign_activity& a, uint64_t ns) {
  a.marks &= ~uint32_t{FEIGN_ASLEEP};
  if (ns > a.compute_ns / 2) a.marks |= FEIGN_ASLEEP;
}

// What a new activity starts as. Copied from memory, since compilers make a slow `rep stos` of
// zeroing.
extern const feign_activity kBlankActivity;

// Records are reused last in, first out, so that the hottest line is the next one. [stream]
class RecordPool {
 public:
  Record* make() {
    if (free_.empty()) [[unlikely]]
      grow();
    Record* r = free_.back();
    free_.pop_back();
    r->a = kBlankActivity;
    return r;
  }
  void recycle(Record* r) {
    // The third line is touched only where something is in it.
    if (r->a.value_count != 0) r->values.clear();
    if (r->a.marks & FEIGN_DEPENDS) r->depends.clear();
    free_.push_back(r);
  }

 private:
  [[gnu::noinline]] void grow() {
    slabs_.emplace_back(new Record[kSlab]{});
    for (size_t i = kSlab; i-- > 0;) free_.push_back(&slabs_.back()[i]);
  }
  static constexpr size_t kSlab = 256;
  std::vector<std::unique_ptr<Record[]>> slabs_;
  std::vector<Record*> free_;
};

}  // namespace feign
