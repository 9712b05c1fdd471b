// SPDX-License-Identifier: MIT
// The window: drops, injections, order, think time, look-ahead, and components that break the
// rules.
#include "window/pipeline.h"

#include <gtest/gtest.h>

#include <functional>

namespace {

using namespace feign;

// A modifier made of a function, and a provider of numbered activities.
using Process = std::function<feign_status(const feign_host*, const feign_window*, feign_sink*)>;
struct Behaviour {
  Process process;
  uint32_t lookahead = 0;
  uint64_t count = 0;
  uint32_t streams = 1;
  uint64_t made = 0;
};
Behaviour* g_next = nullptr;  // what create() is for
struct Self {
  Behaviour* behaviour;
  const feign_host* host;
};

feign_status create(const feign_host* host, const void*, void** self) noexcept {
  *self = new Self{g_next, host};
  return FEIGN_OK;
}
void destroy(void* self) noexcept { delete static_cast<Self*>(self); }
feign_status process(void* self, const feign_window* in, feign_sink* out) noexcept {
  auto& s = *static_cast<Self*>(self);
  return s.behaviour->process(s.host, in, out);
}
feign_status next(void* self, size_t want, feign_sink* out) noexcept {
  auto& s = *static_cast<Self*>(self);
  Behaviour& b = *s.behaviour;
  for (size_t i = 0; i < want; ++i) {
    if (b.made == b.count) return FEIGN_END;
    feign_activity* a = out->make(out);
    feign_stream_info info{};
    info.struct_size = sizeof info;
    info.thread = static_cast<int64_t>(b.made % b.streams);
    a->stream = s.host->stream(s.host, &info);
    a->op = s.host->op(s.host, "posix", "read");
    a->start_ns = b.made * 100;
    a->duration_ns = 10;
    a->compute_ns = 90;
    a->offset = b.made++;
    a->marks = FEIGN_RESOLVED;
    if (const feign_status status = out->emit(out, a); status < 0) return status;
  }
  return FEIGN_OK;
}
uint32_t lookahead(void* self) noexcept { return static_cast<Self*>(self)->behaviour->lookahead; }

const feign_provider kProviderApi = {sizeof kProviderApi, 0, create, next, destroy, nullptr};
const feign_modifier kModifierApi = {sizeof kModifierApi, 0, create, process, destroy, lookahead};
const feign_component kProvider = {sizeof kProvider,
                                   FEIGN_PROVIDER,
                                   "made-up",
                                   "x",
                                   &kProviderApi,
                                   nullptr,
                                   0,
                                   sizeof(feign_option),
                                   0,
                                   0};
const feign_component kModifier = {sizeof kModifier,
                                   FEIGN_MODIFIER,
                                   "tried",
                                   "x",
                                   &kModifierApi,
                                   nullptr,
                                   0,
                                   sizeof(feign_option),
                                   0,
                                   0};
const feign_component* const kComponents[] = {&kProvider, &kModifier, nullptr};
const feign_plugin kPlugin = {sizeof kPlugin, 0, "t", "1", "MIT", kComponents};

feign_status pass(const feign_host*, const feign_window* in, feign_sink* out) {
  for (size_t i = 0; i < in->due; ++i)
    if (const feign_status s = out->emit(out, in->items[i]); s < 0) return s;
  return FEIGN_OK;
}

struct Ran {
  std::vector<feign_activity> out;
  Pipeline::Counts counts;
  std::string error;
};

Ran run(uint64_t count, size_t batch, std::vector<Behaviour> modifiers, uint32_t streams = 1) {
  Tables tables;
  Behaviour source;
  source.count = count;
  source.streams = streams;
  const auto make = [&](const feign_component& c, Behaviour& b) {
    g_next = &b;
    auto made = Instance::create({&c, &kPlugin, "", false}, {}, tables);
    EXPECT_TRUE(made);
    return std::move(*made);
  };
  auto provider = make(kProvider, source);
  std::vector<std::unique_ptr<Instance>> owned;
  std::vector<Instance*> chain;
  for (Behaviour& b : modifiers) {
    owned.push_back(make(kModifier, b));
    chain.push_back(owned.back().get());
  }
  Pipeline pipeline(tables, *provider, chain, batch);
  Ran ran;
  auto result = pipeline.run(
      [&](feign_activity* const* items, size_t n) -> Result<void> {
        for (size_t i = 0; i < n; ++i) ran.out.push_back(*items[i]);
        return {};
      },
      [] { return true; });
  if (!result) ran.error = result.error().text();
  ran.counts = pipeline.counts();
  return ran;
}

class Window : public ::testing::TestWithParam<size_t> {};

TEST_P(Window, EverythingComesThroughInOrder) {
  const Ran r = run(1000, GetParam(), {{pass}, {pass, 7}, {pass, 100}});
  ASSERT_EQ(r.error, "");
  ASSERT_EQ(r.out.size(), 1000u);
  for (size_t i = 0; i < r.out.size(); ++i) EXPECT_EQ(r.out[i].offset, i);
}

TEST_P(Window, AModifierSeesItsLookAheadUntilTheEnd) {
  bool short_of = false;
  size_t ends = 0;
  Behaviour b;
  b.lookahead = 50;
  b.process = [&](const feign_host* h, const feign_window* in, feign_sink* out) {
    if (!in->at_end && in->count - in->due < 50) short_of = true;
    if (in->at_end && in->due == 0) ++ends;
    for (size_t i = 1; i < in->count; ++i)
      if (in->items[i]->offset != in->items[i - 1]->offset + 1) short_of = true;
    return pass(h, in, out);
  };
  const Ran r = run(333, GetParam(), {b});
  EXPECT_EQ(r.out.size(), 333u);
  EXPECT_FALSE(short_of);
  EXPECT_EQ(ends, 1u);
}

TEST_P(Window, ADroppedActivityLosesNoNeighbourAndLeavesItsThinkTime) {
  Behaviour b;
  b.process = [](const feign_host*, const feign_window* in, feign_sink* out) {
    for (size_t i = 0; i < in->due; ++i)
      if (in->items[i]->offset % 3 == 0)
        if (const feign_status s = out->emit(out, in->items[i]); s < 0) return s;
    return FEIGN_OK;
  };
  const Ran r = run(300, GetParam(), {b, {pass}});
  ASSERT_EQ(r.out.size(), 100u);
  EXPECT_EQ(r.counts.dropped, 200u);
  EXPECT_EQ(r.out[0].compute_ns, 90u);
  for (size_t i = 1; i < r.out.size(); ++i) {
    EXPECT_EQ(r.out[i].offset, i * 3);
    EXPECT_EQ(r.out[i].compute_ns, 270u);  // its own and that of the two before it
  }
}

TEST_P(Window, APauseIsAsleepIfMostOfItIsWithWhatWasDropped) {
  Behaviour asleep, b;  // every third activity's pause is, of 90 ns as all are
  asleep.process = [](const feign_host* h, const feign_window* in, feign_sink* out) {
    for (size_t i = 0; i < in->due; ++i)
      if (in->items[i]->offset % 3 == 0) in->items[i]->marks |= FEIGN_ASLEEP;
    return pass(h, in, out);
  };
  b.process = [](const feign_host*, const feign_window* in, feign_sink* out) {
    for (size_t i = 0; i < in->due; ++i) {
      feign_activity* a = in->items[i];
      if (a->offset % 3 == 0) a->compute_ns = a->offset < 150 ? 1000 : 90;
      if (a->offset % 3 == 2)
        if (const feign_status s = out->emit(out, a); s < 0) return s;
    }
    return FEIGN_OK;
  };
  const Ran r = run(300, GetParam(), {asleep, b});
  ASSERT_EQ(r.out.size(), 100u);
  for (const feign_activity& a : r.out)
    EXPECT_EQ((a.marks & FEIGN_ASLEEP) != 0, a.offset < 150) << a.offset;
}

TEST_P(Window, ThinkTimeStaysInItsStream) {
  Behaviour b;
  b.process = [](const feign_host*, const feign_window* in, feign_sink* out) {
    for (size_t i = 0; i < in->due; ++i)
      if (in->items[i]->offset % 4 != 0)  // stream 1 has 0, 2, 4 …: every second of its own goes
        if (const feign_status s = out->emit(out, in->items[i]); s < 0) return s;
    return FEIGN_OK;
  };
  const Ran r = run(100, GetParam(), {b}, 2);
  for (const feign_activity& a : r.out)
    EXPECT_EQ(a.compute_ns, a.offset % 2 == 0 ? 180u : 90u) << a.offset;
}

TEST_P(Window, ADroppedActivityLeavesItsDependencies) {
  Behaviour depends, drops;
  depends.process = [](const feign_host* h, const feign_window* in, feign_sink* out) {
    for (size_t i = 0; i < in->due; ++i) {
      feign_activity* a = in->items[i];
      if (a->stream == 1 && a->offset % 20 == 10)  // on the one before it
        if (const feign_status s = h->depend(h, a, 2, a->id - 1, "test"); s < 0) return s;
      if (const feign_status s = out->emit(out, a); s < 0) return s;
    }
    return FEIGN_OK;
  };
  drops.process = [](const feign_host*, const feign_window* in, feign_sink* out) {
    for (size_t i = 0; i < in->due; ++i)
      if (in->items[i]->offset % 20 != 10)
        if (const feign_status s = out->emit(out, in->items[i]); s < 0) return s;
    return FEIGN_OK;
  };
  const Ran r = run(100, GetParam(), {depends, drops}, 2);
  for (const feign_activity& a : r.out)
    EXPECT_EQ((a.marks & FEIGN_DEPENDS) != 0, a.stream == 1 && a.offset % 20 == 12) << a.offset;
}

TEST_P(Window, InjectedActivitiesStandWhereTheyWereEmitted) {
  Behaviour b;
  b.process = [](const feign_host*, const feign_window* in, feign_sink* out) {
    for (size_t i = 0; i < in->due; ++i) {
      feign_activity* mine = out->make(out);
      mine->op = in->items[i]->op;
      mine->stream = in->items[i]->stream;
      mine->offset = 1'000'000 + in->items[i]->offset;
      if (const feign_status s = out->emit(out, mine); s < 0) return s;
      if (const feign_status s = out->emit(out, in->items[i]); s < 0) return s;
    }
    return FEIGN_OK;
  };
  const Ran r = run(100, GetParam(), {b, {pass, 3}});
  ASSERT_EQ(r.error, "");
  ASSERT_EQ(r.out.size(), 200u);
  EXPECT_EQ(r.counts.injected, 100u);
  for (size_t i = 0; i < 100; ++i) {
    EXPECT_EQ(r.out[2 * i].offset, 1'000'000 + i);
    EXPECT_TRUE(r.out[2 * i].marks & FEIGN_INJECTED);
    EXPECT_EQ(r.out[2 * i + 1].offset, i);
    EXPECT_LT(r.out[2 * i].id, r.out[2 * i + 1].id);
  }
}

std::string error_of(size_t batch, Process process, uint32_t ahead = 0) {
  Behaviour b;
  b.process = std::move(process);
  b.lookahead = ahead;
  return run(1000, batch, {b, {pass}}).error;
}

TEST_P(Window, RefusesWhatIsEmittedTwice) {
  EXPECT_NE(error_of(GetParam(),
                     [](const feign_host*, const feign_window* in, feign_sink* out) {
                       for (size_t i = 0; i < in->due; ++i) {
                         (void)out->emit(out, in->items[i]);
                         if (const feign_status s = out->emit(out, in->items[i]); s < 0) return s;
                       }
                       return FEIGN_OK;
                     })
                .find("tried: emitted"),
            std::string::npos);
}
TEST_P(Window, RefusesWhatWasNotDue) {
  EXPECT_NE(error_of(
                GetParam(),
                [](const feign_host*, const feign_window* in, feign_sink* out) {
                  return in->count > in->due ? out->emit(out, in->items[in->due]) : FEIGN_OK;
                },
                5)
                .find("not due"),
            std::string::npos);
}
TEST_P(Window, RefusesAnotherOrder) {
  const std::string error =
      error_of(GetParam(), [](const feign_host*, const feign_window* in, feign_sink* out) {
        for (size_t i = in->due; i-- > 0;)
          if (const feign_status s = out->emit(out, in->items[i]); s < 0) return s;
        return FEIGN_OK;
      });
  if (GetParam() > 1) {
    EXPECT_NE(error.find("keep their order"), std::string::npos);
  }
}
TEST_P(Window, RefusesWhatTheHostNeverGave) {
  const auto with = [&](auto change) {
    return error_of(GetParam(), [=](const feign_host*, const feign_window* in, feign_sink* out) {
      for (size_t i = 0; i < in->due; ++i) {
        change(*in->items[i]);
        if (const feign_status s = out->emit(out, in->items[i]); s < 0) return s;
      }
      return FEIGN_OK;
    });
  };
  EXPECT_EQ(with([](feign_activity& a) { a.path = 99999; }),
            "tried: emitted an activity of path 99999, which host->intern() never gave");
  EXPECT_EQ(with([](feign_activity& a) { a.path2 = UINT32_MAX; }),
            "tried: emitted an activity of path2 4294967295, which host->intern() never gave");
  EXPECT_EQ(with([](feign_activity& a) { a.stream = 99999; }),
            "tried: emitted an activity of stream 99999, which host->stream() never gave");
  EXPECT_EQ(with([](feign_activity& a) { a.op = 99999; }),
            "tried: emitted an activity of op 99999, which host->op() never gave");
}
TEST_P(Window, RefusesAModifierThatEnds) {
  EXPECT_EQ(error_of(GetParam(),
                     [](const feign_host*, const feign_window*, feign_sink*) { return FEIGN_END; }),
            "tried: process() gave 1: want FEIGN_OK or an error");
}
TEST_P(Window, AFailureIsSaidWithTheComponentsName) {
  EXPECT_EQ(error_of(GetParam(),
                     [](const feign_host* h, const feign_window*, feign_sink*) {
                       return h->fail(h, FEIGN_ERR_ARGUMENT, "x=3: want less");
                     }),
            "tried: x=3: want less");
}
INSTANTIATE_TEST_SUITE_P(BatchSizes, Window, ::testing::Values(1, 2, 3, 64, 256));

}  // namespace
