// SPDX-License-Identifier: MIT
// The look-ahead buffers between the components, and what moves activities through them.
//
//   provider ─► resolve ─► [window] ─► modifier ─► [window] ─► modifier ─► … ─► out
//
// A window holds pointers to records from one pool, in order; a modifier is shown what is due and
// what comes after, and emits what is to go on. Cost does not depend on how much a window holds.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/error.h"
#include "plugin/plugin.h"
#include "resolve/resolve.h"
#include "trace/record.h"
#include "trace/tables.h"
#include "window/explain.h"

namespace feign {

// Which of an activity's numbers is none that the host gave, as a sentence; "" if all are.
std::string never_given(const Tables& tables, const feign_activity& a);

class Pipeline {
 public:
  // `batch`: how many activities a modifier is given at once when there are enough.
  Pipeline(Tables& tables, Instance& provider, std::vector<Instance*> modifiers,
           size_t batch = 256);
  ~Pipeline();

  // Gets everything from the provider, through the modifiers, to `out` (in order, in batches, the
  // records stay the pipeline's). `between` is called once a batch; false ends it early. [stream]
  using Out = std::function<Result<void>(feign_activity* const* items, size_t count)>;
  Result<void> run(const Out& out, const std::function<bool()>& between);

  // Says what it does to each activity; null, as at first: nobody asks.
  void explain(Explain* explain) { explain_ = explain; }

  struct Counts {
    uint64_t provided = 0;
    uint64_t dropped = 0;  // not emitted: `merged` of these
    uint64_t merged = 0;   // into others, by what modifiers said
    uint64_t injected = 0;
  };
  const Counts& counts() const { return counts_; }

 private:
  // A sink and, but for the last, the window before the component that consumes it.
  //
  // Ids grow along each window. Provided activities are far apart; what is injected gets the number
  // behind the last one that was emitted. An activity that was in the window before may be emitted
  // if it was due (up to due_id), is that window's still (its `host` is the number of the window
  // that it waits in), and comes behind the last one. Where two modifiers injected so much at one
  // place that no number is left, the activity that was there gets the next one all the same, and
  // what depends on it is told (note_merged).
  struct Stage {
    feign_sink sink;  // what the component before writes to; ctx is this
    Pipeline* pipeline;
    Instance* modifier;  // that reads the window; null for the last
    uint32_t number;     // 0: the provider's sink
    uint32_t lookahead = 0;
    uint64_t last_id = 0;  // of what was emitted into it
    // Ids of what was due and comes next are above `floor`, even where so much was injected before
    // that they are no longer above last_id: then they get another.
    uint64_t floor = 0, last_injected = 0;
    uint64_t due_id = 0;  // the last that the component before it may emit
    size_t emitted = 0;   // of what was due to that component, this time
    bool ended = false;   // no more comes in
    bool done = false;    // and all went out
    struct Carried {      // of dropped activities, for their stream's next
      uint64_t compute = 0, sync = 0;
      uint64_t asleep = 0;  // of compute
      std::vector<Dependency> depends;
    };
    // What the modifier merged into a later activity, by stream: what depends on the one depends on
    // the other.
    struct Merged {
      uint64_t from, into;
    };
    struct MergedOf {
      std::vector<Merged> latest;  // a ring
      size_t next = 0;
      uint64_t forgotten = 0;  // the last that any of those went into that are no longer there
    };
    bool merges = false;
    std::vector<MergedOf> merged;
    bool carries = false;          // there is some
    std::vector<Carried> carried;  // by stream
    // The window: items[head..tail).
    std::unique_ptr<feign_activity*[]> items;
    size_t head = 0, tail = 0, capacity = 0;
    size_t count() const { return tail - head; }
    feign_activity** first() { return items.get() + head; }
    void grow();
    void take(size_t n);
    void note_merged(uint32_t stream, uint64_t from, uint64_t into);
    void redirect(Dependency& d, uint64_t id) const;
  };

  static feign_activity* make(feign_sink* sink) noexcept;
  static feign_status emit(feign_sink* sink, feign_activity* a) noexcept;
  feign_status emit_slowly(Stage& stage, feign_activity* a);
  feign_status provided(Stage& first, feign_activity* a);
  feign_status injected(Stage& stage, feign_activity* a);
  static void put(Stage& stage, feign_activity* a);
  void put_before(Stage& first, const feign_activity& a, const std::vector<feign_activity>& others);
  feign_status check(const feign_activity& a);
  feign_status refuse(const std::string& why);
  Result<void> step(size_t stage);
  void account(Stage& stage, Stage& next, size_t due);
  void account_and_explain(Stage& stage, Stage& next, size_t due, size_t out_before);
  Error error_of(Instance& instance, feign_status status);

  Tables& tables_;
  Instance& provider_;
  Resolve resolve_;
  RecordPool pool_;
  size_t batch_;
  size_t emitted_now_ = 0, wanted_now_ = 0;
  std::vector<std::unique_ptr<Stage>> stages_;  // [i] feeds modifier i; the last feeds `out`
  Counts counts_;
  Explain* explain_ = nullptr;
  std::string broken_;  // a rule that a component broke
};

}  // namespace feign
