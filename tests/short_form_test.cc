// SPDX-License-Identifier: MIT
// The short form: the paper's plug-ins become components like any other.
// TEST_PLUGINS is the directory of the plug-ins built from tests/plugins/.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <deque>

#include "layers/posix_ops.h"
#include "plugin/plugin.h"
#include "trace/record.h"

namespace feign {
namespace {

std::string test_plugin(const std::string& name) {
  return std::string(TEST_PLUGINS) + "/" + name + ".so";
}

// Takes everything that is emitted.
struct Taker {
  Taker() { sink = {sizeof(feign_sink), this, make, emit}; }
  static feign_activity* make(feign_sink* sink) noexcept {
    return &static_cast<Taker*>(sink->ctx)->made.emplace_back().a;
  }
  static feign_status emit(feign_sink* sink, feign_activity* a) noexcept {
    static_cast<Taker*>(sink->ctx)->out.push_back(a);
    return FEIGN_OK;
  }
  feign_sink sink;
  std::deque<Record> made;
  std::vector<feign_activity*> out;
};

class ShortFormTest : public ::testing::Test {
 protected:
  Component component(const std::string& name, uint32_t role,
                      const std::vector<std::string>& args = {}) {
    auto found = plugins_.find(test_plugin(name), role, args);
    EXPECT_TRUE(found) << found.error().text();
    return *found;
  }
  std::unique_ptr<Instance> create(const std::string& name, uint32_t role,
                                   const std::vector<std::string>& args = {}) {
    PluginSpec spec;
    for (const std::string& a : args)
      spec.options.emplace_back(a.substr(0, a.find('=')), a.substr(a.find('=') + 1));
    auto made = Instance::create(component(name, role, args), spec, tables_);
    EXPECT_TRUE(made) << made.error().text();
    return std::move(*made);
  }
  std::string refusal(const std::string& name, const std::vector<std::string>& args = {}) {
    auto opened = plugins_.open(test_plugin(name), args);
    if (opened) return "";
    const std::string path = test_plugin(name) + ": ";
    const std::string& text = opened.error().text();
    EXPECT_TRUE(text.starts_with(path)) << text;
    return text.substr(path.size());
  }
  feign_activity* recorded(uint32_t op, uint64_t length, const std::string& path = "") {
    feign_stream_info info{};
    info.struct_size = sizeof info;
    info.rank = 3;
    info.thread = 1;
    Record& r = records_.emplace_back();
    r.a.id = records_.size();
    r.a.op = op;
    r.a.length = length;
    r.a.stream = tables_.streams.find_or_add(info);
    r.a.path = tables_.strings.intern(path);
    return &r.a;
  }
  // What a modifier lets pass.
  std::vector<feign_activity*> process(Instance& modifier, std::vector<feign_activity*> items) {
    Taker taker;
    const feign_window window{sizeof window, 1, items.data(), items.size(), items.size()};
    EXPECT_EQ(modifier.api<feign_modifier>().process(modifier.self(), &window, &taker.sink),
              FEIGN_OK);
    return taker.out;
  }
  // A variable of a plug-in.
  int variable(const std::string& plugin, const char* name) {
    void* handle = dlopen(test_plugin(plugin).c_str(), RTLD_NOW | RTLD_NOLOAD);
    auto* at = static_cast<int*>(dlsym(handle, name));
    return at == nullptr ? -1 : *at;
  }

  Plugins plugins_;
  Tables tables_;
  std::deque<Record> records_;
};

class Figure4 : public ShortFormTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(Figure4, IsAProviderAndAReplayer) {
  auto opened = plugins_.open(test_plugin(GetParam()));

  ASSERT_TRUE(opened) << opened.error().text();
  ASSERT_EQ(opened->size(), 2u);
  EXPECT_EQ((*opened)[0].table->role, uint32_t{FEIGN_PROVIDER});
  EXPECT_EQ((*opened)[1].table->role, uint32_t{FEIGN_REPLAYER});
  EXPECT_STREQ((*opened)[0].table->name, "example-provider-replayer");
  EXPECT_STREQ((*opened)[0].plugin->version, "0");
  EXPECT_TRUE((*opened)[0].short_form);
}

TEST_P(Figure4, ProvidesItsActivities) {
  auto provider = create(GetParam(), FEIGN_PROVIDER);
  Taker taker;
  const auto& api = provider->api<feign_provider>();

  EXPECT_EQ(api.next(provider->self(), 3, &taker.sink), FEIGN_OK);
  ASSERT_EQ(taker.out.size(), 3u);
  EXPECT_EQ(api.next(provider->self(), 3, &taker.sink), FEIGN_END);
  ASSERT_EQ(taker.out.size(), 5u);

  const feign_activity& second = *taker.out[1];
  EXPECT_EQ(second.op, uint32_t{FEIGN_POSIX_PREAD64});
  EXPECT_EQ(second.handle, FEIGN_FD(3));
  EXPECT_EQ(second.length, 4096u);
  EXPECT_EQ(second.offset, 4096u);
  EXPECT_EQ(second.result, 4096);
  EXPECT_EQ(second.compute_ns, 1000u);
  EXPECT_EQ(second.duration_ns, 500u);
  EXPECT_EQ(second.start_ns, 2500u);  // after the first, which ended at 1500, and the pause
  EXPECT_NE(second.stream, 0u);
}

TEST_P(Figure4, ReplaysWithItsOwnResult) {
  auto replayer = create(GetParam(), FEIGN_REPLAYER);
  const auto& api = replayer->api<feign_replayer>();
  feign_activity* a = recorded(FEIGN_POSIX_PREAD64, 4096);
  a->result = 4096;
  feign_outcome outcome{sizeof outcome, FEIGN_DONE, 0, nullptr};
  void* stream = nullptr;

  ASSERT_EQ(api.open_stream(replayer->self(), nullptr, &stream), FEIGN_OK);
  ASSERT_EQ(api.execute(replayer->self(), stream, a, &outcome), FEIGN_OK);
  api.close_stream(replayer->self(), stream);

  EXPECT_EQ(outcome.doing, uint32_t{FEIGN_DONE});
  EXPECT_EQ(outcome.result, 4095);
}

INSTANTIATE_TEST_SUITE_P(Languages, Figure4, ::testing::Values("figure4", "figure4-cxx"));

TEST_F(ShortFormTest, DestroyGetsEveryActivityThatWasProvided) {
  auto provider = create("figure4", FEIGN_PROVIDER);
  const int before = variable("figure4", "destroyed");
  Taker taker;

  provider->api<feign_provider>().next(provider->self(), 100, &taker.sink);

  EXPECT_EQ(variable("figure4", "destroyed") - before, 5);
}

TEST_F(ShortFormTest, InitRunsOnceForAllRoles) {
  auto first = plugins_.open(test_plugin("figure4"));
  auto second = plugins_.open(test_plugin("figure4"));

  ASSERT_TRUE(first && second);
  EXPECT_EQ((*first)[0].table, (*second)[0].table);
}

TEST_F(ShortFormTest, AFilterDropsWhatItReturnsNullFor) {
  auto filter = create("short-filter", FEIGN_MODIFIER);
  feign_activity* read = recorded(FEIGN_POSIX_READ, 8);
  feign_activity* write = recorded(FEIGN_POSIX_WRITE, 8);

  const auto out = process(*filter, {read, write, read});

  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0], read);
}

TEST_F(ShortFormTest, AMutatorsChangesAreWrittenBack) {
  auto mutator = create("short-mutator", FEIGN_MODIFIER);
  feign_activity* a = recorded(FEIGN_POSIX_PREAD64, 100, "/a");
  a->offset = 5;
  a->sync_ns = 9;

  const auto out = process(*mutator, {a});

  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(tables_.strings.text(a->path), "/mutated");
  EXPECT_EQ(a->offset, 15u);
  EXPECT_EQ(a->length, 200u);
  EXPECT_EQ(a->compute_ns, 77u);
  EXPECT_EQ(a->sync_ns, 9u);
  EXPECT_EQ(a->flags, 1u);
  EXPECT_EQ(a->mode, 0600u);
}

TEST_F(ShortFormTest, WhatIsNotChangedIsKeptBitForBit) {
  auto filter = create("short-filter", FEIGN_MODIFIER);
  feign_activity* a = recorded(FEIGN_POSIX_PREAD64, UINT64_MAX - 1, "/a");
  a->offset = UINT64_MAX;
  a->compute_ns = UINT64_MAX;
  const feign_activity before = *a;

  process(*filter, {a});

  EXPECT_EQ(memcmp(&before, a, sizeof before), 0);
}

TEST_F(ShortFormTest, FilterComesBeforeMutateAndSkipDrops) {
  auto mutator = create("short-mutator", FEIGN_MODIFIER);

  const auto out = process(*mutator, {recorded(FEIGN_POSIX_READ, 1), recorded(FEIGN_POSIX_READ, 2),
                                      recorded(FEIGN_POSIX_READ, 3)});

  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0]->length, 6u);
}

TEST_F(ShortFormTest, InitGetsTheOptions) {
  auto mutator = create("short-mutator", FEIGN_MODIFIER, {"path=/elsewhere"});
  feign_activity* a = recorded(FEIGN_POSIX_READ, 100, "/a");

  process(*mutator, {a});

  EXPECT_EQ(tables_.strings.text(a->path), "/elsewhere");
}

TEST_F(ShortFormTest, ALayerOfItsOwnGetsAnOp) {
  auto provider = create("short-layer", FEIGN_PROVIDER);
  Taker taker;

  ASSERT_EQ(provider->api<feign_provider>().next(provider->self(), 64, &taker.sink), FEIGN_END)
      << provider->failure(FEIGN_ERR_PLUGIN).text();

  ASSERT_EQ(taker.out.size(), 4u);
  const feign_op_info* own = tables_.ops.info(taker.out[0]->op);
  ASSERT_NE(own, nullptr);
  EXPECT_STREQ(own->layer, "weather");
  EXPECT_STREQ(own->name, "event");
  EXPECT_STREQ(tables_.ops.info(taker.out[3]->op)->layer, "short-form");
}

TEST_F(ShortFormTest, ProvidedCallsAreWhatTheRecordedOnesWouldBe) {
  auto provider = create("short-layer", FEIGN_PROVIDER);
  Taker taker;

  provider->api<feign_provider>().next(provider->self(), 64, &taker.sink);

  ASSERT_EQ(taker.out.size(), 4u);
  const feign_activity& open = *taker.out[1];
  EXPECT_EQ(open.op, uint32_t{FEIGN_POSIX_OPENAT});
  EXPECT_EQ(open.handle, FEIGN_CWD);
  EXPECT_EQ(open.result, 5);
  EXPECT_EQ(tables_.strings.text(open.path), "/etc/hosts");
  const feign_activity& read = *taker.out[2];
  EXPECT_EQ(read.handle, FEIGN_FD(5));
  EXPECT_EQ(read.length, 64u);
  EXPECT_EQ(read.start_ns, 5000u);
  EXPECT_NE(open.stream, read.stream);  // two ranks
  EXPECT_EQ(tables_.streams.info(open.stream).rank, 1);
}

TEST_F(ShortFormTest, WhatBreaksARuleIsRefusedInWords) {
  EXPECT_EQ(refusal("bad-short-no-symbol"), "it says FEIGN_MUTATOR and exports no mutate()");
  EXPECT_EQ(refusal("bad-short-context"),
            "FEIGN_FILTER_CONTEXT: the short form has no context; a modifier of the real form sees "
            "what comes next in its window (feign_modifier.lookahead)");
  EXPECT_EQ(refusal("bad-short-twice"), "init() called feign_register_plugin() more than once");
  EXPECT_EQ(refusal("bad-short-silent"),
            "init() did not call feign_register_plugin() with a plug-in that has a name");
  EXPECT_EQ(refusal("bad-short-no-intent"), "it has no intents");
  EXPECT_EQ(refusal("bad-short-fails"), "init() returned 42");
  EXPECT_EQ(refusal("bad-short-no-name"),
            "init() did not call feign_register_plugin() with a plug-in that has a name");
}

TEST_F(ShortFormTest, AnInitThatRefusesItsOptionsIsAnError) {
  EXPECT_EQ(refusal("short-mutator", {"fail=yes"}), "init() returned 3");
}

TEST_F(ShortFormTest, RegisteringOutsideInitIsRefused) {
  Plugin plugin{};
  plugin.name = "late";
  Layer layer{};
  layer.name = "late";

  EXPECT_EQ(feign_register_plugin(&plugin), -1);
  EXPECT_EQ(feign_register_layer(&layer), -1);
}

TEST_F(ShortFormTest, OpsAreThoseOfThePosixLayer) {
  EXPECT_EQ(feign_op("pread64"), FEIGN_POSIX_PREAD64);
  EXPECT_EQ(feign_op("open"), FEIGN_POSIX_OPEN);
  EXPECT_EQ(feign_op("no-such-call"), 0);
  EXPECT_EQ(feign_op(nullptr), 0);
}

}  // namespace
}  // namespace feign
