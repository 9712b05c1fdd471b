// SPDX-License-Identifier: MIT
// Provenance: what each modifier made of the first activities of a trace, for --explain. Asked for,
// it compares every activity before and after each modifier; else the pipeline has no such thing.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "trace/record.h"
#include "trace/tables.h"

namespace feign {

class Explain {
 public:
  Explain(const Tables& tables, uint64_t count) : tables_(tables), count_(count) {}

  // An activity as it comes out of resolve.
  void provided(const feign_activity& a);
  void by_others(const feign_activity& a);
  // What the modifier behind a stage is given.
  void before(uint32_t stage, feign_activity* const* items, size_t due);
  // It said that the one went into the other.
  void merged(uint32_t stage, uint64_t from, uint64_t into);
  // What it made of it: `items` as given to before(), which of them it emitted, and, in order, all
  // that it emitted.
  void after(uint32_t stage, const std::string& modifier, feign_activity* const* items,
             const std::vector<bool>& emitted, feign_activity* const* out, size_t out_count);

  // For people.
  std::string text() const;

 private:
  // An activity that outlives its record.
  struct Copy {
    Copy() = default;
    explicit Copy(const feign_activity& from);
    feign_activity a{};
    std::vector<uint64_t> values;
    std::vector<Dependency> depends;
  };
  struct Event {
    std::string modifier, what;
  };
  // A stage and an id in it. Where much is injected, what comes behind gets another id, which in
  // the stage before is still another activity's.
  using Place = std::pair<uint32_t, uint64_t>;
  struct Entry {
    Place place;  // where it came to
    Copy first;   // as recorded, or as injected
    int64_t number = -1;
    std::vector<Event> events;
    uint64_t took_in = 0;
  };
  Entry* find(uint32_t stage, uint64_t id) const;
  Entry& add(uint32_t stage, const feign_activity& a, int64_t number = -1);
  void comes_to(uint32_t stage, uint64_t id, Entry& e);
  bool wants(uint32_t stage, uint64_t id) const;
  std::string number_of(uint32_t stage, uint64_t id) const;
  std::string stream(uint32_t id) const;
  std::string argument(const feign_activity& a, const feign_arg_info& arg) const;
  std::string call(const feign_activity& a) const;
  std::string changes(uint32_t stage, const Copy& from, const Copy& to) const;

  const Tables& tables_;
  static constexpr uint32_t kNeverCame = UINT32_MAX;  // the stages behind one that dropped it
  uint64_t count_, provided_ = 0;
  std::deque<Entry> entries_;
  std::map<Place, Entry*> places_;       // wherever they were
  std::map<uint32_t, uint64_t> last_;    // by stage: the last one's id
  std::map<uint64_t, uint64_t> merged_;  // by what the modifier at work said
  std::vector<std::pair<size_t, Copy>> before_;
  uint64_t changed_ = 0, injected_ = 0, merges_ = 0, dropped_ = 0;
};

}  // namespace feign
