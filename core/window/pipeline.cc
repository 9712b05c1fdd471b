// SPDX-License-Identifier: MIT
#include "window/pipeline.h"

#include <algorithm>
#include <new>

namespace feign {
namespace {

// feign_activity.host of one that was just made: it is nobody's yet. Else it is the number of the
// stage whose window the activity waits in.
constexpr uint32_t kMade = 1u << 31;
// Ids leave room for what modifiers inject between two recorded activities.
constexpr uint64_t kIdStep = 1u << 16;
// A modifier that emits more than this from what is due to it does not end.
constexpr size_t kMostHeld = size_t{1} << 25;
// Merged activities of a stream that are remembered; of older ones, only how late the last was.
constexpr size_t kMergesKept = 256;

}  // namespace

void Pipeline::Stage::take(size_t n) {
  head += n;
  // What is left moves to the front at most once for every time that much was consumed.
  if (head > 1024 && head * 2 >= tail) {
    std::copy(first(), items.get() + tail, items.get());
    tail -= head;
    head = 0;
  }
}

void Pipeline::Stage::grow() {
  const size_t larger = std::max<size_t>(1024, capacity * 2);
  std::unique_ptr<feign_activity*[]> to(new feign_activity*[larger]);
  std::copy(first(), items.get() + tail, to.get());
  items = std::move(to);
  tail -= head;
  head = 0;
  capacity = larger;
}

Pipeline::Pipeline(Tables& tables, Instance& provider, std::vector<Instance*> modifiers,
                   size_t batch)
    : tables_(tables), provider_(provider), resolve_(tables), batch_(batch) {
  modifiers.push_back(nullptr);
  for (Instance* modifier : modifiers) {
    auto stage = std::make_unique<Stage>();
    stage->sink = {sizeof(feign_sink), stage.get(), make, emit};
    stage->pipeline = this;
    stage->modifier = modifier;
    stage->number = static_cast<uint32_t>(stages_.size());
    if (modifier != nullptr) {
      stage->lookahead = modifier->lookahead();
      modifier->set_merge_sink(
          [](void* ctx, const feign_activity& a, uint64_t into) {
            auto& from = *static_cast<Stage*>(ctx);
            try {
              from.note_merged(a.stream, a.id, into);
              ++from.pipeline->counts_.merged;
              if (Explain* explain = from.pipeline->explain_)
                explain->merged(from.number, a.id, into);
            } catch (const std::bad_alloc&) {
              (void)from.pipeline->refuse("merged activities, and memory ran out");
            }
          },
          stage.get());
    }
    stages_.push_back(std::move(stage));
  }
  provider_.set_wait_sink(
      [](void* ctx, uint32_t stream, uint64_t ns, feign_passed how) {
        static_cast<Pipeline*>(ctx)->resolve_.passed(stream, ns, how);
      },
      this);
}

Pipeline::~Pipeline() {
  provider_.set_wait_sink(nullptr, nullptr);
  for (const auto& stage : stages_)
    if (stage->modifier != nullptr) stage->modifier->set_merge_sink(nullptr, nullptr);
}

// What went into an earlier one is done when anybody may ask for it.
void Pipeline::Stage::note_merged(uint32_t stream, uint64_t from, uint64_t into) {
  if (into <= from) return;
  merges = true;
  if (stream >= merged.size()) merged.resize(stream + size_t{1});
  MergedOf& of = merged[stream];
  if (!of.latest.empty()) {  // mostly, several go into one after each other
    Merged& last = of.latest[(of.next + of.latest.size() - 1) % of.latest.size()];
    if (last.into == into) {
      last.from = std::min(last.from, from);
      return;
    }
  }
  if (of.latest.size() < kMergesKept) {
    of.latest.push_back({from, into});
    return;
  }
  Merged& oldest = of.latest[of.next];
  of.next = (of.next + 1) % kMergesKept;
  of.forgotten = std::max(of.forgotten, oldest.into);
  oldest = {from, into};
}

void Pipeline::Stage::redirect(Dependency& d, uint64_t id) const {
  if (d.stream >= merged.size()) return;
  const MergedOf& of = merged[d.stream];
  uint64_t to = d.id;
  if (of.forgotten > to && of.forgotten < id) to = of.forgotten;
  for (const Merged& m : of.latest)
    if (m.from <= d.id && m.into > to && m.into < id) to = m.into;
  d.id = to;
}

void Pipeline::put(Stage& stage, feign_activity* a) {
  if (stage.tail == stage.capacity) stage.grow();
  stage.last_id = a->id;
  a->host = stage.number;
  stage.items[stage.tail++] = a;
}

// What processes did that are not in the trace.
void Pipeline::put_before(Stage& first, const feign_activity& a,
                          const std::vector<feign_activity>& others) {
  uint64_t id = a.id - others.size();
  for (const feign_activity& other : others) {
    Record* r = pool_.make();
    r->a = other;
    r->a.id = id++;
    put(first, &r->a);
    ++counts_.injected;
    if (explain_ != nullptr) explain_->by_others(r->a);
  }
}

feign_activity* Pipeline::make(feign_sink* sink) noexcept {
  auto& stage = *static_cast<Stage*>(sink->ctx);
  try {
    Record* r = stage.pipeline->pool_.make();
    r->a.host = stage.number | kMade;
    return &r->a;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

[[gnu::cold, gnu::noinline]] feign_status Pipeline::refuse(const std::string& why) {
  if (broken_.empty()) broken_ = why;
  return FEIGN_ERR_PLUGIN;
}

std::string never_given(const Tables& tables, const feign_activity& a) {
  const auto never = [](const char* what, uint32_t number, const char* gives) {
    return "emitted an activity of " + std::string(what) + " " + std::to_string(number) +
           ", which host->" + gives + "() never gave";
  };
  const uint32_t texts = tables.strings.size();
  if (a.op == 0) return "emitted an activity of op 0, which does not exist";
  if (tables.ops.info(a.op) == nullptr) return never("op", a.op, "op");
  if (a.stream == 0 || a.stream >= tables.streams.size())
    return never("stream", a.stream, "stream");
  if (a.path >= texts) return never("path", a.path, "intern");
  return a.path2 >= texts ? never("path2", a.path2, "intern") : std::string();
}

feign_status Pipeline::check(const feign_activity& a) {
  const uint32_t texts = tables_.strings.size();
  if (a.stream != 0 && a.stream < tables_.streams.size() && tables_.ops.info(a.op) != nullptr &&
      a.path < texts && a.path2 < texts) [[likely]]
    return FEIGN_OK;
  return refuse(never_given(tables_, a));
}

feign_status Pipeline::provided(Stage& first, feign_activity* a) {
  if (const feign_status status = check(*a); status < 0) [[unlikely]]
    return status;
  if (emitted_now_ >= wanted_now_) [[unlikely]]
    return refuse("emitted more activities than it was asked for");
  ++emitted_now_;
  ++counts_.provided;
  const bool resolved = (a->marks & FEIGN_RESOLVED) != 0;
  if (!resolved || a->id == 0) a->id = counts_.provided * kIdStep;
  if (a->id <= first.last_id) [[unlikely]]
    return refuse("activity " + std::to_string(counts_.provided) + " has the id " +
                  std::to_string(a->id) + ", which does not grow");
  if (resolved) return FEIGN_OK;
  const char* why = resolve_.apply(*Record::of(a));
  if (const auto& others = resolve_.by_others(); !others.empty()) [[unlikely]]
    put_before(first, *a, others);
  if (why == nullptr) return FEIGN_OK;
  if (*why != '\0') {
    const feign_op_info* op = tables_.ops.info(a->op);
    LeftOut& l = tables_.left_out[{op != nullptr ? op->name : "?", why}];
    ++l.count;
    l.duration_ns += a->duration_ns;
  }
  --counts_.provided;
  a->id = 0;         // what is emitted next gets it
  return FEIGN_END;  // not for this stage
}

feign_status Pipeline::emit(feign_sink* sink, feign_activity* a) noexcept {
  auto& stage = *static_cast<Stage*>(sink->ctx);
  // One that was due, in order, with room for it: nothing more to do.
  if (a != nullptr && a->host + 1 == stage.number && a->id <= stage.due_id &&
      a->id > stage.last_id && stage.tail < stage.capacity) [[likely]] {
    ++stage.emitted;
    stage.last_id = a->id;
    a->host = stage.number;
    stage.items[stage.tail++] = a;
    return FEIGN_OK;
  }
  return stage.pipeline->emit_slowly(stage, a);
}

feign_status Pipeline::emit_slowly(Stage& stage, feign_activity* a) {
  try {
    if (a == nullptr) return refuse("emitted a null pointer");
    if (a->host == (stage.number | kMade)) {
      const feign_status status = stage.number == 0 ? provided(stage, a) : injected(stage, a);
      if (status < 0) return status;
      if (status == FEIGN_END) {
        pool_.recycle(Record::of(a));
        return FEIGN_OK;
      }
      if (stage.number == 0 && explain_ != nullptr) explain_->provided(*a);
    } else {
      // What is due is in the window before this stage, and not past the last due one.
      if (a->host + 1 != stage.number || a->id > stage.due_id)
        return refuse("emitted an activity that was not its own: twice, or one that was not due");
      if (a->id <= stage.last_id) {
        const bool only_injected = stage.last_injected == stage.last_id && a->id > stage.floor;
        if (!only_injected)
          return refuse("emitted activity " + std::to_string(a->id) + " after " +
                        std::to_string(stage.last_id) + ": activities keep their order");
        // There is no number left between: two modifiers injected at the same place.
        stage.floor = a->id;
        stages_[stage.number - 1]->note_merged(a->stream, a->id, stage.last_id + 1);
        a->id = stage.last_injected = stage.last_id + 1;
      }
      ++stage.emitted;
    }
    if (stage.tail == stage.capacity && stage.count() > stage.lookahead + kMostHeld)
      return refuse("emitted more than " + std::to_string(kMostHeld) + " activities at a time");
    put(stage, a);
    return FEIGN_OK;
  } catch (const std::bad_alloc&) {
    return FEIGN_ERR_NOMEM;
  }
}

feign_status Pipeline::injected(Stage& stage, feign_activity* a) {
  if (a->id != 0) return refuse("injected an activity with an id: ids are the host's");
  if (stage.last_injected != stage.last_id) stage.floor = stage.last_id;
  a->id = stage.last_injected = stage.last_id + 1;
  // A copy of what was recorded says so itself.
  if (!(a->marks & FEIGN_RESOLVED)) a->marks |= FEIGN_INJECTED | FEIGN_RESOLVED;
  ++counts_.injected;
  return FEIGN_OK;
}

namespace {

// Of two dependencies on a stream, the later one.
void join(std::vector<Dependency>& all, const Dependency& d) {
  for (Dependency& known : all)
    if (known.stream == d.stream) {
      if (d.id > known.id) known = d;
      return;
    }
  all.push_back(d);
}

}  // namespace

// After a modifier saw its due activities: what it did not emit is dropped.
void Pipeline::account(Stage& stage, Stage& next, size_t due) {
  if (stage.merges) [[unlikely]]
    for (size_t i = 0; i < due; ++i)
      if (feign_activity* a = stage.first()[i]; a->marks & FEIGN_DEPENDS)
        for (Dependency& d : Record::of(a)->depends) stage.redirect(d, a->id);
  if (next.emitted == due && !stage.carries) return;
  for (size_t i = 0; i < due; ++i) {
    feign_activity* a = stage.first()[i];
    const bool dropped = a->host == stage.number;
    if (!dropped && !stage.carries) continue;
    if (a->stream >= stage.carried.size()) stage.carried.resize(a->stream + 1);
    Stage::Carried& carried = stage.carried[a->stream];
    if (dropped) {
      carried.compute += a->compute_ns;
      if (a->marks & FEIGN_ASLEEP) carried.asleep += a->compute_ns;
      carried.sync += a->sync_ns;
      if (a->marks & FEIGN_DEPENDS)
        for (const Dependency& d : Record::of(a)->depends) join(carried.depends, d);
      stage.carries = true;
      ++counts_.dropped;
      pool_.recycle(Record::of(a));
    } else {
      if (a->marks & FEIGN_ASLEEP) carried.asleep += a->compute_ns;
      a->compute_ns += std::exchange(carried.compute, 0);
      set_asleep(*a, std::exchange(carried.asleep, 0));
      a->sync_ns += std::exchange(carried.sync, 0);
      if (carried.depends.empty()) continue;
      a->marks |= FEIGN_DEPENDS;
      for (const Dependency& d : carried.depends) join(Record::of(a)->depends, d);
      carried.depends.clear();
    }
  }
}

void Pipeline::account_and_explain(Stage& stage, Stage& next, size_t due, size_t out_before) {
  std::vector<bool> emitted(due);
  for (size_t i = 0; i < due; ++i) emitted[i] = stage.first()[i]->host != stage.number;
  account(stage, next, due);
  explain_->after(stage.number, stage.modifier->name(), stage.first(), emitted,
                  next.first() + out_before, next.count() - out_before);
}

Error Pipeline::error_of(Instance& instance, feign_status status) {
  if (!broken_.empty()) return Error(FEIGN_ERR_PLUGIN, instance.name() + ": " + broken_);
  return instance.failure(status);
}

// Lets the modifier behind a stage consume what is due.
Result<void> Pipeline::step(size_t index) {
  Stage& stage = *stages_[index];
  Stage& next = *stages_[index + 1];
  while (!stage.done) {
    const size_t count = stage.count();
    size_t due = stage.ended ? count : count > stage.lookahead ? count - stage.lookahead : 0;
    if (!stage.ended && due < batch_) return {};
    if (due > batch_) due = batch_;
    feign_activity* const* items = stage.first();
    next.due_id = due != 0 ? items[due - 1]->id : 0;
    next.emitted = 0;
    const feign_window window{sizeof(feign_window), stage.ended ? 1u : 0u, items, due, count};
    const auto& api = stage.modifier->api<feign_modifier>();
    const size_t out_before = next.count();
    if (explain_ != nullptr) explain_->before(stage.number, items, due);
    const feign_status status = api.process(stage.modifier->self(), &window, &next.sink);
    if (status == FEIGN_OK && broken_.empty())
      for (size_t i = out_before; i < next.count() && check(*next.first()[i]) == FEIGN_OK;) ++i;
    if (status > 0)
      (void)refuse("process() gave " + std::to_string(status) + ": want FEIGN_OK or an error");
    if (status < 0 || !broken_.empty()) return error_of(*stage.modifier, status);
    if (explain_ != nullptr)
      account_and_explain(stage, next, due, out_before);
    else
      account(stage, next, due);
    stage.take(due);
    if (stage.ended && due == 0) stage.done = next.ended = true;
  }
  return {};
}

Result<void> Pipeline::run(const Out& out, const std::function<bool()>& between) {
  Stage& first = *stages_.front();
  Stage& last = *stages_.back();
  const auto& provider = provider_.api<feign_provider>();
  while (!last.done) {
    if (!first.ended) {
      emitted_now_ = 0;
      wanted_now_ = batch_;
      const feign_status status = provider.next(provider_.self(), wanted_now_, &first.sink);
      if (status > FEIGN_END)
        (void)refuse("next() gave " + std::to_string(status) +
                     ": want FEIGN_OK, FEIGN_END or an error");
      if (status < 0 || !broken_.empty()) return error_of(provider_, status);
      if (status == FEIGN_OK && emitted_now_ == 0)
        return Error(FEIGN_ERR_PLUGIN, provider_.name() + ": next() gave nothing, and not the end");
      if (status == FEIGN_END) first.ended = true;
    }
    for (size_t i = 0; i + 1 < stages_.size(); ++i)
      if (auto stepped = step(i); !stepped) return stepped;
    if (const size_t count = last.count(); count != 0) {
      if (auto put = out(last.first(), count); !put) return put;
      for (size_t i = 0; i < count; ++i) pool_.recycle(Record::of(last.first()[i]));
      last.head = last.tail = 0;
    }
    if (last.ended) last.done = true;
    if (!between()) return {};
  }
  return {};
}

}  // namespace feign
