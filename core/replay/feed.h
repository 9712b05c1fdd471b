// SPDX-License-Identifier: MIT
// What a worker of the replay is given to do.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "feign.h"
#include "trace/native.h"
#include "trace/record.h"

namespace feign {

// A worker's activities, in order. Reading one from the plan takes a tenth of what a short call
// takes, so that the first of them are read before the clock starts. These stay, with what came of
// them, to be counted when it has stopped.
class Feed {
 public:
  struct Next {
    feign_activity a;
    uint64_t number;  // in the whole trace
    std::span<const Dependency> depends;
    feign_outcome outcome;  // as the call finds it, then as it left it
    uint64_t latency_ns;
    bool over = false;  // and then these two tell what came of it
    // It comes after another of its stream, and before one that does not lie in it; it waits for
    // nobody. Then there is nothing to do around its call where there is no pause.
    bool plain = false;
  };
  Feed(std::shared_ptr<const NativeReader> plan, NativeReader::Range range)
      : cursor_(std::move(plan), std::move(range)) {}
  // Reads as many ahead, if there are.
  Result<void> read_ahead(size_t count) {
    ahead_.reserve(count);
    next_ahead_ = end_ahead_ = ahead_.data();
    // All of that memory at once: by a fault a page, it would take longer than reading does.
    const auto at = reinterpret_cast<uintptr_t>(ahead_.data()) & ~uintptr_t{4095};
    (void)madvise(reinterpret_cast<void*>(at), count * sizeof(Next), MADV_POPULATE_WRITE);
    while (ahead_.size() < count) {
      auto more = read(ahead_.emplace_back());
      if (!more) return std::move(more.error());
      if (!*more) {
        ahead_.pop_back();
        break;
      }
      Next& one = ahead_.back();
      one.a.values = values_.keep({one.a.values, one.a.value_count}).data();
      one.depends = depends_.keep(one.depends);
      if (ahead_.size() > 2) look_at(&one - 1);
    }
    end_ahead_ = next_ahead_ + ahead_.size();
    return {};
  }
  // The next one; null at the end, or where that failed. Valid until the next call.
  Next* next() {
    if (next_ahead_ != end_ahead_) {
      Next* const next = next_ahead_++;
      // The one after it comes into the cache while this call is made: three lines.
      __builtin_prefetch(&next[1].a);
      __builtin_prefetch(&next[1].a.id);
      __builtin_prefetch(&next[1].number);
      return next;
    }
    stays_ = false;
    auto more = read(next_);
    if (!more) failure_ = std::move(more.error());
    return more && *more ? &next_ : nullptr;
  }
  std::optional<Error>& failure() { return failure_; }
  // Whether the one that was given last stays.
  bool stays() const { return stays_; }
  // Those that were given and stay.
  std::span<const Next> given() const { return {ahead_.data(), next_ahead_}; }

 private:
  // Copies that stay where they are: of what is read ahead, all in a few pieces of memory.
  template <typename T>
  class Copies {
   public:
    std::span<const T> keep(std::span<const T> of) {
      if (of.empty()) return {};
      if (left_ < of.size()) {
        left_ = std::max(of.size(), kPiece);
        pieces_.push_back(std::make_unique_for_overwrite<T[]>(left_));
        next_ = pieces_.back().get();
      }
      T* const to = next_;
      std::copy(of.begin(), of.end(), to);
      next_ += of.size();
      left_ -= of.size();
      return {to, of.size()};
    }

   private:
    static constexpr size_t kPiece = 4096;
    std::vector<std::unique_ptr<T[]>> pieces_;
    T* next_ = nullptr;
    size_t left_ = 0;
  };

  static void look_at(Next* one) {
    const feign_activity &before = one[-1].a, &a = one->a, &after = one[1].a;
    one->plain = before.stream == a.stream && a.stream == after.stream &&
                 (a.marks & FEIGN_DEPENDS) == 0 && FEIGN_DEPTH(a.marks) == 0 &&
                 FEIGN_DEPTH(after.marks) == 0 && a.start_ns + a.duration_ns <= after.start_ns;
  }
  Result<bool> read(Next& to) {
    auto more = cursor_.next(record_, to.number);
    if (!more || !*more) return more;
    to.a = record_.a;
    to.depends = record_.depends;
    to.outcome = {sizeof to.outcome, FEIGN_DONE, 0, nullptr};
    return true;
  }

  NativeReader::Cursor cursor_;
  std::vector<Next> ahead_;
  Copies<uint64_t> values_;
  Copies<Dependency> depends_;
  Next *next_ahead_ = nullptr, *end_ahead_ = nullptr;
  bool stays_ = true;
  std::optional<Error> failure_;
  Record record_{};
  Next next_{};
};

}  // namespace feign
