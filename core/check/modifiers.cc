// SPDX-License-Identifier: MIT
// Rules of modifiers.
#include <cstring>
#include <deque>
#include <unordered_map>

#include "check/rules.h"
#include "plugin/object.h"
#include "window/pipeline.h"

namespace feign::check {
namespace {

// Takes what a modifier emits, and notes the first rule that it breaks.
class Judge {
 public:
  explicit Judge(Tables& tables) : tables_(tables) {
    sink_ = {sizeof(feign_sink), this, make, emit};
  }
  feign_sink* sink() { return &sink_; }
  void hand_out(feign_activity& a) {
    a.host = kMark;
    in_hand_.insert({&a, true});
  }
  // What was not emitted of a batch is dropped.
  void take_back(const feign_activity& a) { in_hand_.erase(&a); }

  size_t fail_emit_at = SIZE_MAX;  // count of emits that succeed before one fails
  bool fail_make = false;
  bool refused = false;  // a make() or emit() failed
  std::string broken;
  std::vector<std::string> out;
  size_t emits = 0, makes = 0;

 private:
  static constexpr uint32_t kMark = 0xFE16;

  static feign_activity* make(feign_sink* sink) noexcept {
    auto& j = *static_cast<Judge*>(sink->ctx);
    ++j.makes;
    if (j.fail_make) {
      j.refused = true;
      return nullptr;
    }
    Record& r = j.made_.emplace_back();
    j.hand_out(r.a);
    return &r.a;
  }

  static feign_status emit(feign_sink* sink, feign_activity* a) noexcept {
    auto& j = *static_cast<Judge*>(sink->ctx);
    if (a == nullptr) return j.breaks("emitted a null pointer");
    if (j.in_hand_.erase(a) == 0)
      return j.breaks("emitted an activity that was not its own: twice, or one that was not due");
    if (a->host != kMark) return j.breaks("changed feign_activity.host");
    const std::vector<uint64_t>& own = Record::of(a)->values;
    if (a->value_count != own.size() || (a->value_count != 0 && a->values != own.data()))
      return j.breaks("emitted an activity with values that host->set_values() did not give it");
    if (a->id == 0) {
      a->id = j.last_id_ + 1;
      a->marks |= FEIGN_INJECTED;
    }
    if (a->id <= j.last_id_)
      return j.breaks("emitted activity " + std::to_string(a->id) + " after " +
                      std::to_string(j.last_id_) + ": activities keep their order");
    if (const std::string never = never_given(j.tables_, *a); !never.empty())
      return j.breaks(never);
    j.last_id_ = a->id;
    if (j.emits++ >= j.fail_emit_at) {
      j.refused = true;
      return FEIGN_ERR_IO;
    }
    j.out.push_back(signature(j.tables_, *a));
    return FEIGN_OK;
  }

  feign_status breaks(const std::string& why) {
    if (broken.empty()) broken = why;
    return FEIGN_ERR_PLUGIN;
  }

  Tables& tables_;
  feign_sink sink_;
  std::unordered_map<const feign_activity*, bool> in_hand_;
  std::deque<Record> made_;
  uint64_t last_id_ = 0;
};

struct ModifierRun {
  std::string broken;                       // a rule
  std::string failure;                      // the component's own
  bool refused = false, passed_on = false;  // the sink failed; process() then did, too
  std::vector<std::string> out;
  size_t makes = 0;
};

ModifierRun run_modifier(const Component& component, Place& place, size_t batch,
                         size_t fail_emit_at = SIZE_MAX, bool fail_make = false) {
  ModifierRun run;
  Tables tables;
  Trace trace(tables);
  auto instance = create(component, tables, place);
  if (!instance) {
    run.failure = instance.error().text();
    return run;
  }
  const auto& api = (*instance)->api<feign_modifier>();
  void* self = (*instance)->self();
  const size_t lookahead = (*instance)->lookahead();
  Judge judge(tables);
  judge.fail_emit_at = fail_emit_at;
  judge.fail_make = fail_make;
  (void)(*instance)->failure(FEIGN_ERR_PLUGIN);  // what create() failed at, and did without
  size_t at = 0;
  for (bool last = false; !last;) {
    last = at == kActivities;
    const size_t due = std::min(batch, kActivities - at);
    const size_t count = std::min(due + lookahead, kActivities - at);
    // Exactly the look-ahead that it declared, in a block of its own: a memory checker sees more.
    const std::unique_ptr<feign_activity*[]> items(new feign_activity*[count]);
    std::vector<std::string> ahead;
    for (size_t i = 0; i < count; ++i) {
      items[i] = &trace[at + i].a;
      if (i < due)
        judge.hand_out(*items[i]);
      else
        ahead.emplace_back(reinterpret_cast<const char*>(items[i]), sizeof(feign_activity));
    }
    const feign_window window{sizeof(feign_window), at + count == kActivities ? 1u : 0u,
                              items.get(), due, count};
    const feign_status status = api.process(self, &window, judge.sink());
    run.broken = judge.broken;
    if (run.broken.empty())
      for (size_t i = due; i < count; ++i)
        if (std::memcmp(items[i], ahead[i - due].data(), sizeof(feign_activity)) != 0)
          run.broken = "changed an activity that was not due, item " + std::to_string(i) +
                       " of a window with " + std::to_string(due) + " due";
    run.refused = judge.refused;
    run.passed_on = judge.refused && status < 0;
    if (!run.broken.empty() || run.refused) break;
    if (status > 0) {
      run.broken =
          "process() gave " + std::to_string(status) + ", which is no error: want FEIGN_OK";
      break;
    }
    if (status < 0) {
      run.failure = (*instance)->failure(status).text();
      break;
    }
    // depend() refused, say: a modifier that goes on all the same lost it.
    if (const std::string said = (*instance)->failure(FEIGN_ERR_PLUGIN).text();
        !said.ends_with(kSilent)) {
      run.broken = "process() gave FEIGN_OK, though this failed: " + said;
      break;
    }
    for (size_t i = 0; i < due; ++i) judge.take_back(*items[i]);
    at += due;
  }
  run.out = std::move(judge.out);
  run.makes = judge.makes;
  return run;
}

}  // namespace

void check_modifier(const Component& component, Place& place, Rules& rules, const std::string& name,
                    const std::string& lacks) {
  std::array<ModifierRun, std::size(kBatches)> runs;
  rules.run(name + ": keeps order, emits what is due, and once", [&] {
    if (!lacks.empty()) return skip(lacks);
    for (size_t i = 0; i < std::size(kBatches); ++i) {
      runs[i] = run_modifier(component, place, kBatches[i]);
      const std::string where = " (" + shown(kBatches[i]) + ")";
      if (!runs[i].failure.empty()) return fail(runs[i].failure + where);
      if (!runs[i].broken.empty()) return fail(runs[i].broken + where);
    }
    return ok();
  });
  rules.run(name + ": does the same at batch sizes 1, 2, 3 and 64", [&] {
    if (!lacks.empty()) return skip(lacks);
    for (size_t i = 1; i < std::size(kBatches); ++i) {
      if (runs[i].out == runs[0].out) continue;
      size_t at = 0;
      while (at < runs[i].out.size() && at < runs[0].out.size() &&
             runs[i].out[at] == runs[0].out[at])
        ++at;
      return fail("what it emits differs from its activity " + std::to_string(at + 1) + " on, " +
                  shown(kBatches[i]) + " (" + std::to_string(runs[i].out.size()) +
                  " activities) and " + shown(kBatches[0]) + " (" +
                  std::to_string(runs[0].out.size()) + ")");
    }
    return ok();
  });
  rules.run(name + ": passes on that emit() failed", [&] {
    if (!lacks.empty()) return skip(lacks);
    if (runs[0].out.empty()) return skip("it emits nothing");
    const ModifierRun run = run_modifier(component, place, 64, runs[0].out.size() / 2);
    if (!run.broken.empty()) return fail(run.broken);
    return run.passed_on ? ok() : fail("emit() returned FEIGN_ERR_IO, and process() success");
  });
  rules.run(name + ": passes on that make() found no memory", [&] {
    if (!lacks.empty()) return skip(lacks);
    if (runs[0].makes == 0) return skip("it injects nothing");
    const ModifierRun run = run_modifier(component, place, 64, SIZE_MAX, true);
    if (!run.broken.empty()) return fail(run.broken);
    return run.passed_on ? ok() : fail("make() returned NULL, and process() success");
  });
}

}  // namespace feign::check
