// SPDX-License-Identifier: MIT
// The modifiers rebase, filter and jitter, through the harness that third parties get, at several
// batch sizes.
#define FEIGN_NO_ENTRY
#include <fnmatch.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/path.h"
#include "harness.h"

namespace {

// What fnmatch(3) knows, it says the same of.
TEST(Glob, FitsWhatFnmatchFits) {
  std::mt19937 random(1);
  const auto text = [&](const char* signs, size_t most) {
    std::string out;
    for (size_t i = random() % (most + 1); i > 0; --i) out += signs[random() % strlen(signs)];
    return out;
  };
  int fits = 0;
  for (int i = 0; i < 50'000; ++i) {
    std::string glob = text("ab/*?[!-]", 8);
    while (glob.find("**") != std::string::npos) glob.erase(glob.find("**"), 1);
    // Sets that are not closed, or hold something else than letters, are not to be relied on.
    if (const size_t open = glob.find('['); open != std::string::npos) {
      const size_t from = glob.find_first_not_of('!', open + 1), close = glob.find(']', open);
      if (close == std::string::npos || from >= close || from > open + 2 ||
          glob.find_first_not_of("ab", from) != close ||
          glob.find('[', open + 1) != std::string::npos)
        continue;
    }
    const std::string path = text("ab/", 6);
    const bool want = fnmatch(glob.c_str(), path.c_str(), FNM_PATHNAME) == 0;
    EXPECT_EQ(feign::glob_fits(glob.c_str(), path.c_str()), want) << glob << " " << path;
    fits += want;
  }
  EXPECT_GT(fits, 500);
}

TEST(Glob, StarsGoAcross) {
  const auto fits = [](const char* glob, const std::string& path) {
    return feign::glob_fits(glob, path.c_str());
  };
  EXPECT_TRUE(fits("/a/**", "/a/b/c"));
  EXPECT_FALSE(fits("/a/**", "/ab"));
  EXPECT_TRUE(fits("**/*.so.*", "/usr/lib/x.so.1"));
  EXPECT_TRUE(fits("**/x/**/*.c", "/a/x/b/x/c/d.c"));
  EXPECT_FALSE(fits("**/x/*.c", "/a/x/b/d.c"));
  // Long ones, too, in no time: a trace may hold any path.
  std::string deep;
  while (deep.size() < 60'000) deep += "/x/ompi";
  EXPECT_FALSE(fits("**/x/**/ompi/**/*.nothing", deep));
}

using feign_test::act;
using feign_test::Act;
using feign_test::load_component;
using feign_test::ModifierHarness;
using feign_test::Options;

const feign_component* component(const std::string& name) {
  return load_component(std::string(FEIGN_PLUGINS_DIR) + "/" + name + ".so", name, FEIGN_MODIFIER);
}

class Batches : public ::testing::TestWithParam<size_t> {
 protected:
  std::vector<std::string> paths(const Options& options, const std::vector<std::string>& in) {
    ModifierHarness h(component("rebase"), options);
    std::vector<Act> acts;
    for (const std::string& p : in) acts.push_back(act("stat", 0, p));
    std::vector<std::string> out;
    for (const auto& o : h.run(acts, GetParam())) out.push_back(o.path);
    return out;
  }
  std::vector<std::string> kept(const Options& options, const std::vector<Act>& in) {
    ModifierHarness h(component("filter"), options);
    std::vector<std::string> out;
    for (const auto& o : h.run(in, GetParam())) out.push_back(o.op);
    EXPECT_EQ(out.size() + h.dropped, in.size());
    return out;
  }
};
using List = std::vector<std::string>;

TEST_P(Batches, RebaseTakesRulesAsPathsThatAreClean) {
  EXPECT_EQ(paths({{"map", "/a//b/.:/x/../../y//z/"}}, {"/a/b/c", "/a/b", "/a/c"}),
            (std::vector<std::string>{"/y/z/c", "/y/z", "/a/c"}));
  EXPECT_EQ(paths({{"map", "/a:/b/.."}}, {"/a", "/a/c"}), (std::vector<std::string>{"/", "/c"}));
}
TEST_P(Batches, RebaseMovesWhatIsBelowAndNothingElse) {
  EXPECT_EQ(paths({{"map", "/a/b:/x/y"}}, {"/a/b", "/a/b/c", "/a/bc", "/a", "/z/a/b"}),
            (List{"/x/y", "/x/y/c", "/a/bc", "/a", "/z/a/b"}));
}
TEST_P(Batches, RebaseKeepsASlashAtTheEnd) {  // as a link's target has it
  EXPECT_EQ(paths({{"map", "/a:/x/"}}, {"/a/", "/a/b/"}), (List{"/x/", "/x/b/"}));
  EXPECT_EQ(paths({{"map", "/:/x"}}, {"/", "/a/"}), (List{"/x", "/x/a/"}));
  EXPECT_EQ(paths({{"map", "/a:/"}}, {"/a/", "/a/b/"}), (List{"/", "/b/"}));
}
TEST_P(Batches, RebaseTakesTheLongestPrefix) {
  EXPECT_EQ(paths({{"map", "/a:/1"}, {"map", "/a/b/:/2/"}}, {"/a/b/c", "/a/c", "/a/b"}),
            (List{"/2/c", "/1/c", "/2"}));
}
TEST_P(Batches, RebaseOfTheRootMovesEverything) {
  EXPECT_EQ(paths({{"map", "/:/jail"}}, {"/", "/a"}), (List{"/jail", "/jail/a"}));
  EXPECT_EQ(paths({{"from", "/jail"}, {"to", "/"}}, {"/jail", "/jail/a"}), (List{"/", "/a"}));
}
TEST_P(Batches, RebaseMovesSecondPathsButNotRelativeTargets) {
  ModifierHarness h(component("rebase"), {{"map", "/a:/b"}});
  Act rename = act("rename", 0, "/a/1"), link = act("symlink", 0, "/a/l"),
      absolute = act("symlink", 0, "/a/m");
  rename.path2 = "/a/2";
  link.path2 = "a/1";
  absolute.path2 = "/a/1";

  const auto out = h.run({rename, link, absolute}, GetParam());

  EXPECT_EQ(out[0].path2, "/b/2");
  EXPECT_EQ(out[1].path2, "a/1");
  EXPECT_EQ(out[2].path2, "/b/1");
}
TEST_P(Batches, FilterByKindNeverDropsTheCallsThatCarryState) {
  const std::vector<Act> in = {act("open"),  act("write", 8), act("read", 8),
                               act("fstat"), act("close"),    act("fork")};
  EXPECT_EQ(kept({{"kind", "read"}}, in), (List{"open", "read", "close", "fork"}));
  EXPECT_EQ(kept({{"kind", "read"}, {"state", "drop"}}, in), (List{"read"}));
  EXPECT_EQ(kept({{"op", "read+fstat"}}, in), (List{"open", "read", "fstat", "close", "fork"}));
  EXPECT_EQ(kept({{"kind", "write"}, {"drop", "yes"}}, in),
            (List{"open", "read", "fstat", "close", "fork"}));
}
TEST_P(Batches, FilterByPathTakesAFileWhole) {
  const std::vector<Act> in = {act("open", 0, "/a/x.c"),    act("read", 8, "/a/x.c"),
                               act("close", 0, "/a/x.c"),   act("open", 0, "/a/b/y.h"),
                               act("close", 0, "/a/b/y.h"), act("exit_group", 0, "")};
  EXPECT_EQ(kept({{"path", "/a/*.c"}}, in), (List{"open", "read", "close", "exit_group"}));
  EXPECT_EQ(kept({{"path", "*.h"}}, in), (List{"open", "close", "exit_group"}));
  EXPECT_EQ(kept({{"path", "/a/**"}}, in).size(), 6u);
  EXPECT_EQ(kept({{"path", "/a/*"}}, in).size(), 4u);
  EXPECT_EQ(kept({{"path", "/a/**"}, {"drop", "yes"}}, in), (List{"exit_group"}));
}
TEST_P(Batches, FilterByStreamProcessAndRank) {
  const std::vector<Act> in = {act("read", 1, "/f", 1), act("write", 1, "/f", 2),
                               act("fstat", 0, "/f", 3), act("fsync", 0, "/f", 4)};
  EXPECT_EQ(kept({{"stream", "1+3-4"}}, in), (List{"read", "fstat", "fsync"}));
  EXPECT_EQ(kept({{"process", "102-103"}}, in), (List{"write", "fstat"}));
  EXPECT_EQ(kept({{"rank", "0"}}, in), (List{"read"}));
  EXPECT_EQ(kept({{"rank", "0"}, {"drop", "yes"}}, in), (List{"write", "fstat", "fsync"}));
}
TEST_P(Batches, FilterBySizeLooksAtDataOnly) {
  const std::vector<Act> in = {act("read", 10), act("write", 5000), act("fstat"),
                               act("read", 4096)};
  EXPECT_EQ(kept({{"min-size", "4k"}}, in), (List{"write", "fstat", "read"}));
  EXPECT_EQ(kept({{"max-size", "4k"}}, in), (List{"read", "fstat", "read"}));
}
TEST_P(Batches, FilterByTime) {
  std::vector<Act> in = {act("read"), act("write"), act("fstat")};
  in[0].start_ns = 1'000'000;
  in[1].start_ns = 2'000'000;
  in[2].start_ns = 3'000'000;
  EXPECT_EQ(kept({{"after", "2ms"}}, in), (List{"write", "fstat"}));
  EXPECT_EQ(kept({{"before", "2ms"}}, in), (List{"read"}));
}
TEST_P(Batches, WhatIsKeptAndWhatIsDroppedIsAllInOrder) {
  std::mt19937 random(static_cast<unsigned>(GetParam()));
  std::vector<Act> in;
  for (int i = 0; i < 500; ++i)
    in.push_back(act(std::vector<const char*>{"read", "write", "open", "fstat"}[random() % 4],
                     random() % 9000, "/d" + std::to_string(random() % 5), 1 + random() % 4));
  ModifierHarness keep(component("filter"), {{"kind", "read"}, {"path", "/d1"}, {"state", "drop"}});
  ModifierHarness drop(component("filter"),
                       {{"kind", "read"}, {"path", "/d1"}, {"state", "drop"}, {"drop", "yes"}});

  std::vector<uint64_t> ids;
  for (const auto& o : keep.run(in, GetParam())) ids.push_back(o.a.id);
  const size_t kept_count = ids.size();
  for (const auto& o : drop.run(in, GetParam())) ids.push_back(o.a.id);

  EXPECT_GT(kept_count, 0u);
  std::sort(ids.begin(), ids.end());
  ASSERT_EQ(ids.size(), in.size());
  for (size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(ids[i], (i + 1) << 16);
}
TEST_P(Batches, JitterMakesPausesOfItsOwnTheSameForTheSameSeed) {
  std::vector<Act> in(400, act("read", 8));
  for (Act& a : in) a.compute_ns = 123'456'789;
  const auto pauses = [&](const Options& options) {
    ModifierHarness h(component("jitter"), options);
    std::vector<uint64_t> out;
    for (const auto& o : h.run(in, GetParam())) {
      EXPECT_EQ(o.a.sync_ns, 0u);
      out.push_back(o.a.compute_ns);
    }
    return out;
  };
  const auto all = pauses({{"max", "1us"}, {"seed", "3"}});
  const auto some = pauses({{"max", "1us"}, {"seed", "3"}, {"share", "0.25"}});

  EXPECT_EQ(all, pauses({{"max", "1us"}, {"seed", "3"}}));
  EXPECT_NE(all, pauses({{"max", "1us"}, {"seed", "4"}}));
  EXPECT_LE(*std::max_element(all.begin(), all.end()), 1000u);
  EXPECT_GT(*std::max_element(all.begin(), all.end()), 900u);
  EXPECT_LT(*std::min_element(all.begin(), all.end()), 100u);
  const auto none = std::count(some.begin(), some.end(), 0u);
  EXPECT_GT(none, 250);
  EXPECT_LT(none, 350);
}
INSTANTIATE_TEST_SUITE_P(BatchSizes, Batches, ::testing::Values(1, 2, 3, 64));

TEST(Rebase, RefusesRulesThatAreNone) {
  for (const char* map : {"a:/b", "/a", "/a:b", ""}) {
    ModifierHarness h(component("rebase"), {{"map", map}});
    EXPECT_LT(h.created(), 0) << map;
    EXPECT_NE(h.host.failure.find("want"), std::string::npos) << h.host.failure;
  }
  ModifierHarness none(component("rebase"));
  EXPECT_LT(none.created(), 0);
  ModifierHarness twice(component("rebase"), {{"map", "/a:/b"}, {"map", "/a/:/c"}});
  EXPECT_LT(twice.created(), 0);
}
TEST(Filter, RefusesWhatItDoesNotKnow) {
  for (const Options& options :
       {Options{{"op", "raed"}}, Options{{"kind", "reed"}}, Options{{"stream", "1-"}},
        Options{{"rank", "x"}}, Options{{"drop", "yes"}}, Options{{"process", "5-3"}},
        Options{{"min-size", "10"}, {"max-size", "5"}},
        Options{{"after", "2s"}, {"before", "1s"}}}) {
    ModifierHarness h(component("filter"), options);
    EXPECT_LT(h.created(), 0) << options[0].first;
    EXPECT_FALSE(h.host.failure.empty());
  }
}
TEST(Jitter, RefusesAShareThatIsNone) {
  ModifierHarness h(component("jitter"), {{"share", "1.5"}});
  EXPECT_LT(h.created(), 0);
}
TEST(Null, GivesBackWhatWasRecorded) {
  feign_test::ReplayerHarness h(
      load_component(std::string(FEIGN_PLUGINS_DIR) + "/null.so", "null", FEIGN_REPLAYER));
  feign_activity a{};
  a.op = h.host.find_op("posix", "read");
  a.result = -5;
  EXPECT_EQ(h.execute(a).result, -5);
}

}  // namespace
