// SPDX-License-Identifier: MIT
// The modifiers that ask "what if": coalesce, prefetch, hints, scale and replicate, each at several
// batch sizes.
#define FEIGN_NO_ENTRY
#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "harness.h"

namespace {

using feign_test::act;
using feign_test::Act;
using feign_test::load_component;
using feign_test::ModifierHarness;
using feign_test::Options;
using feign_test::Out;
using List = std::vector<std::string>;

const feign_component* component(const std::string& name) {
  return load_component(std::string(FEIGN_PLUGINS_DIR) + "/" + name + ".so", name, FEIGN_MODIFIER);
}

// "write 0+30": the call, where and how much.
std::string brief(const Out& o) {
  return o.op + " " + std::to_string(o.a.offset) + "+" + std::to_string(o.a.length);
}
Act data(const std::string& op, uint64_t offset, uint64_t length, uint32_t handle = 1,
         uint32_t stream = 1, uint32_t file = 1) {
  Act a = act(op, length, "/f", stream);
  a.offset = offset;
  a.handle = handle;
  a.file = file;
  return a;
}
Act seek(uint64_t to) {
  Act a = data("lseek", to, 0);
  a.result = static_cast<int64_t>(to);
  return a;
}
Act other(const std::string& op, uint32_t handle = 1, uint32_t stream = 1) {
  return data(op, 0, 0, handle, stream);
}

class WhatIf : public ::testing::TestWithParam<size_t> {
 protected:
  List run(const std::string& modifier, const Options& options, const std::vector<Act>& in) {
    ModifierHarness h(component(modifier), options);
    List out;
    last = h.run(in, GetParam());
    for (const Out& o : last) out.push_back(brief(o));
    merges = h.host.merges.size();
    return out;
  }
  std::string refused(const std::string& modifier, const Options& options) {
    ModifierHarness h(component(modifier), options);
    EXPECT_LT(h.created(), 0);
    return h.host.failure;
  }
  std::vector<Out> last;
  size_t merges = 0;
};

// ---- coalesce

TEST_P(WhatIf, CoalesceMergesWritesIntoTheLastAndReadsIntoTheFirst) {
  EXPECT_EQ(
      run("coalesce", {}, {data("write", 0, 10), data("writev", 10, 5), data("write", 15, 5)}),
      (List{"write 0+20"}));
  EXPECT_EQ(last[0].a.id, 3u << 16);
  EXPECT_EQ(last[0].a.result, 20);
  EXPECT_EQ(merges, 2u);
  EXPECT_EQ(
      run("coalesce", {}, {data("pread64", 0, 10), data("preadv", 10, 5), data("pread64", 15, 5)}),
      (List{"pread64 0+20"}));
  EXPECT_EQ(last[0].a.id, 1u << 16);
  EXPECT_EQ(last[0].a.result, 20);
}
TEST_P(WhatIf, CoalesceKeepsToItsBuffer) {
  const std::vector<Act> in = {data("write", 0, 10), data("write", 10, 10), data("write", 20, 10)};
  EXPECT_EQ(run("coalesce", {{"max", "20"}}, in), (List{"write 0+20", "write 20+10"}));
  EXPECT_EQ(run("coalesce", {{"max", "1"}}, in),
            (List{"write 0+10", "write 10+10", "write 20+10"}));
  EXPECT_EQ(run("coalesce", {{"window", "1"}}, in), (List{"write 0+20", "write 20+10"}));
  EXPECT_EQ(run("coalesce", {{"what", "reads"}}, in),
            (List{"write 0+10", "write 10+10", "write 20+10"}));
  EXPECT_EQ(run("coalesce", {{"path", "/g"}}, in),
            (List{"write 0+10", "write 10+10", "write 20+10"}));
}
TEST_P(WhatIf, CoalesceTakesSeeksToWhereItIsAndNoOthers) {
  EXPECT_EQ(run("coalesce", {}, {data("write", 0, 10), seek(10), data("write", 10, 10), seek(20)}),
            (List{"write 0+20", "lseek 20+0"}));
  EXPECT_EQ(run("coalesce", {}, {data("write", 0, 10), seek(0), seek(10), data("write", 10, 10)}),
            (List{"write 0+10", "lseek 0+0", "lseek 10+0", "write 10+10"}));
}
TEST_P(WhatIf, CoalesceEndsAtWhatCouldTellTheDifference) {
  Act by_name = other("stat", 0), through_another = data("read", 5, 10, 2),
      renames = other("rename", 0);
  Act forks = other("fork", 0), depends = data("read", 0, 1, 9, 2, 9);
  forks.file = 0;
  depends.marks = FEIGN_DEPENDS;
  for (const Act& between :
       {other("fsync"), other("close"), other("fstat"), other("ftruncate"), by_name, renames,
        through_another, other("dup"), forks, depends, data("write", 3, 2, 2, 2)}) {
    const auto out =
        run("coalesce", {}, {data("pwrite64", 0, 10), between, data("pwrite64", 10, 10)});
    EXPECT_EQ(out.size(), 3u) << between.op << " of handle " << between.handle;
  }
}
TEST_P(WhatIf, CoalesceIsNotStoppedByWhatHasNothingToDoWithIt) {
  for (const Act& between : {data("write", 0, 10, 2, 1, 2), data("pwrite64", 500, 10, 2, 2),
                             other("fadvise64"), data("pread64", 100, 5, 2, 2)}) {
    const auto out =
        run("coalesce", {}, {data("pwrite64", 0, 10), between, data("pwrite64", 10, 10)});
    EXPECT_EQ(out.size(), 2u) << between.op << " of handle " << between.handle;
  }
  EXPECT_EQ(run("coalesce", {}, {data("pread64", 0, 10), other("fstat"), data("pread64", 10, 10)}),
            (List{"pread64 0+20", "fstat 0+0"}));
}
TEST_P(WhatIf, CoalesceReadsNothingAheadOfAWrite) {
  EXPECT_EQ(run("coalesce", {},
                {data("pread64", 0, 10), data("pwrite64", 12, 2, 2, 2), data("pread64", 10, 10)})
                .size(),
            3u);
}
TEST_P(WhatIf, CoalesceLeavesAloneWhatIsNotWholeOrNotSafe) {
  Act short_one = data("write", 10, 10), durable = data("open", 0, 0);
  short_one.result = 5;
  durable.flags = O_WRONLY | O_DSYNC;
  EXPECT_EQ(run("coalesce", {}, {data("write", 0, 10), short_one, data("write", 15, 5)}).size(),
            3u);
  EXPECT_EQ(run("coalesce", {}, {durable, data("write", 0, 10), data("write", 10, 10)}).size(), 3u);
  Act duplicate = other("dup");  // in the place of another one
  duplicate.handle2 = 7;
  duplicate.marks = FEIGN_LAST;
  EXPECT_EQ(run("coalesce", {}, {durable, duplicate, data("write", 0, 10), data("write", 10, 10)})
                .size(),
            4u);
  Act inside = data("write", 0, 10), inside2 = data("write", 10, 10);
  inside.marks = inside2.marks = FEIGN_AT_DEPTH(1);
  EXPECT_EQ(run("coalesce", {}, {inside, inside2}).size(), 2u);
}

// ---- prefetch

std::vector<Act> strided(int n, uint64_t think = 10'000'000) {
  Act open = data("open", 0, 0);
  std::vector<Act> in = {open};
  for (int i = 0; i < n; ++i) {
    in.push_back(seek(static_cast<uint64_t>(i) * 1'000'000));
    in.back().compute_ns = think;
    in.push_back(data("read", static_cast<uint64_t>(i) * 1'000'000, 1024));
  }
  return in;
}

TEST_P(WhatIf, PrefetchAsksTwoAheadAndForEachOnce) {
  EXPECT_EQ(run("prefetch", {}, strided(4)),
            (List{"open 0+0", "fadvise64 0+1024", "fadvise64 1000000+1024", "lseek 0+0",
                  "fadvise64 2000000+1024", "read 0+1024", "lseek 1000000+0",
                  "fadvise64 3000000+1024", "read 1000000+1024", "lseek 2000000+0",
                  "read 2000000+1024", "lseek 3000000+0", "read 3000000+1024"}));
  for (const Out& o : last)
    if (o.op == "fadvise64") {
      EXPECT_EQ(o.a.flags, static_cast<uint32_t>(POSIX_FADV_WILLNEED));
      EXPECT_EQ(o.a.handle, 1u);
      EXPECT_EQ(o.path, "/f");
      EXPECT_TRUE(o.a.marks & FEIGN_INJECTED);
    }
}
TEST_P(WhatIf, PrefetchLooksAheadByThinkTime) {
  const auto out = run("prefetch", {{"distance", "0"}, {"lead", "25ms"}}, strided(9));
  // When the first lseek is due, the reads 0, 10 and 20 ms away are near.
  EXPECT_EQ(std::count(out.begin(), std::find(out.begin(), out.end(), "lseek 0+0"),
                       "fadvise64 2000000+1024"),
            1);
  EXPECT_EQ(std::count(out.begin(), std::find(out.begin(), out.end(), "lseek 0+0"),
                       "fadvise64 3000000+1024"),
            0);
}
TEST_P(WhatIf, PrefetchKeepsToItsBounds) {
  auto asked = [&](const Options& o) {
    const auto out = run("prefetch", o, strided(9));
    return std::count_if(out.begin(), std::find(out.begin(), out.end(), "read 0+1024"),
                         [](const std::string& s) { return s.starts_with("fadvise64"); });
  };
  EXPECT_EQ(asked({{"distance", "9"}}), 9);
  EXPECT_EQ(asked({{"distance", "9"}, {"in-flight", "3"}}), 3);
  EXPECT_EQ(asked({{"distance", "9"}, {"budget", "4k"}}), 4);
}
TEST_P(WhatIf, PrefetchJoinsWhatIsAdjacent) {
  std::vector<Act> in = {data("open", 0, 0)};
  for (uint64_t i = 0; i < 4; ++i) in.push_back(data("read", i * 4096, 4096));
  const auto out = run("prefetch", {{"distance", "4"}}, in);
  EXPECT_EQ(out[1], "fadvise64 4096+12288");
}
TEST_P(WhatIf, PrefetchOfASequenceMissesNoRead) {
  std::vector<Act> in = {data("open", 0, 0)};
  for (uint64_t i = 0; i < 12; ++i) {
    in.push_back(data("read", i * 4096, 4096));
    in.back().compute_ns = 10'000'000;
  }

  // When one is read, so many that follow have been asked for.
  const auto ahead = [&](const Options& o, uint64_t least) {
    run("prefetch", o, in);
    uint64_t asked = 4096;
    for (const Out& one : last) {
      if (one.op == "fadvise64") {
        EXPECT_EQ(one.a.offset, asked);
        asked += one.a.length;
      } else if (one.op == "read") {
        EXPECT_GE(asked, std::min<uint64_t>(one.a.offset + (1 + least) * 4096, 12 * 4096));
      }
    }
    EXPECT_EQ(asked, 12u * 4096);
  };
  ahead({{"distance", "1"}}, 1);
  for (const char* distance : {"0", "1", "2"})  // half of 45 ms, at least
    ahead({{"distance", distance}, {"lead", "45ms"}}, 2);
}
TEST_P(WhatIf, PrefetchDoesNotAskForWhatIsThere) {
  const std::vector<Act> in = {
      data("open", 0, 0), data("pwrite64", 0, 8192),  data("pread64", 1'000'000, 100),
      other("fstat"),     data("pread64", 4096, 100), data("pread64", 1'000'000, 100)};
  auto asked = [&](const Options& o) {
    const auto out = run("prefetch", o, in);
    return std::count_if(out.begin(), out.end(),
                         [](const std::string& s) { return s.starts_with("fadvise64"); });
  };
  EXPECT_EQ(asked({{"distance", "1"}}), 1);
  EXPECT_EQ(asked({{"distance", "1"}, {"fresh", "18446744073709549568"}}), 1);
  EXPECT_EQ(asked({{"distance", "1"}, {"fresh", "0"}}), 3);
}
TEST_P(WhatIf, PrefetchAsksForNothingBeforeItIsOpenOrPastTheCache) {
  Act direct = data("open", 0, 0);
  direct.flags = O_DIRECT;
  EXPECT_EQ(
      run("prefetch", {}, {direct, other("fstat"), data("read", 0, 4096), data("read", 4096, 4096)})
          .size(),
      4u);
  EXPECT_EQ(
      run("prefetch", {}, {other("fstat", 2), data("open", 0, 0), data("read", 0, 100)}).size(),
      3u);
}
TEST_P(WhatIf, PrefetchInThePapersForm) {
  std::vector<Act> in = strided(3);
  const auto sought = run("prefetch", {{"form", "paper"}}, in);
  EXPECT_EQ(std::count_if(sought.begin(), sought.end(),
                          [](const auto& s) { return s.starts_with("fadvise64"); }),
            3);
  std::erase_if(in, [](const Act& a) { return a.op == "lseek"; });
  EXPECT_EQ(run("prefetch", {{"form", "paper"}}, in).size(), in.size());
}
TEST_P(WhatIf, PrefetchWantsSomethingToDo) {
  EXPECT_NE(refused("prefetch", {{"distance", "0"}}).find("distance=0"), std::string::npos);
}

// ---- hints

TEST_P(WhatIf, HintsAdviseWhenAFileIsOpenedOrBeforeItIsClosed) {
  Act close = other("close");
  close.marks = FEIGN_LAST;
  const std::vector<Act> in = {data("open", 0, 0), data("read", 0, 10), close};
  EXPECT_EQ(run("hints", {{"advice", "random"}}, in),
            (List{"open 0+0", "fadvise64 0+0", "read 0+10", "close 0+0"}));
  EXPECT_EQ(last[1].a.flags, static_cast<uint32_t>(POSIX_FADV_RANDOM));
  EXPECT_EQ(run("hints", {{"advice", "dontneed"}}, in),
            (List{"open 0+0", "read 0+10", "fadvise64 0+0", "close 0+0"}));
  EXPECT_EQ(run("hints", {{"advice", "random"}, {"path", "/other"}}, in).size(), 3u);
  EXPECT_EQ(run("hints", {{"advice", "random"}, {"min-size", "11"}}, in).size(), 3u);
  EXPECT_EQ(run("hints", {{"advice", "random"}, {"min-size", "10"}}, in).size(), 4u);
}
TEST_P(WhatIf, HintsMakeRoomBeforeAFileGrows) {
  EXPECT_EQ(run("hints", {{"allocate", "1k"}},
                {data("open", 0, 0), data("pwrite64", 0, 100), data("pwrite64", 100, 100),
                 data("pwrite64", 0, 50), data("pwrite64", 1000, 100)}),
            (List{"open 0+0", "fallocate 0+1024", "pwrite64 0+100", "pwrite64 100+100",
                  "pwrite64 0+50", "fallocate 1000+1024", "pwrite64 1000+100"}));
  EXPECT_EQ(last[1].a.flags, 1u);  // FALLOC_FL_KEEP_SIZE
}
TEST_P(WhatIf, HintsChangeFlagsAndFsync) {
  run("hints", {{"direct", "add"}, {"sync", "add"}, {"fsync", "fdatasync"}},
      {data("open", 0, 0), other("fsync")});
  EXPECT_EQ(last[0].a.flags, static_cast<uint32_t>(O_DIRECT | O_SYNC));
  EXPECT_EQ(last[1].op, "fdatasync");
  EXPECT_EQ(
      run("hints", {{"fsync", "drop"}}, {data("open", 0, 0), other("fsync"), other("fdatasync")})
          .size(),
      1u);
}
TEST_P(WhatIf, HintsGoByPattern) {
  std::vector<Act> in = {data("open", 0, 0), data("read", 0, 10), data("read", 10, 10),
                         data("read", 20, 10)};
  EXPECT_EQ(run("hints", {{"advice", "sequential"}, {"pattern", "sequential"}}, in).size(), 5u);
  EXPECT_EQ(run("hints", {{"advice", "random"}, {"pattern", "random"}}, in).size(), 4u);
}
TEST_P(WhatIf, HintsGoByHowLongAFileIs) {
  // By what was said of it before, and by what comes.
  Act said = other("fstat", 0);
  said.length = 5000;
  said.mode = 0100644;
  const std::vector<Act> in = {said, data("open", 0, 0), data("read", 0, 10)};
  EXPECT_EQ(run("hints", {{"advice", "random"}, {"min-size", "5000"}}, in).size(), 4u);
  EXPECT_EQ(run("hints", {{"advice", "random"}, {"min-size", "5001"}}, in).size(), 3u);
  EXPECT_EQ(run("hints", {{"advice", "random"}, {"max-size", "4999"}}, in).size(), 3u);
  EXPECT_EQ(run("hints", {{"advice", "random"}, {"min-size", "9000"}},
                {data("open", 0, 0), data("pread64", 9000, 10)})
                .size(),
            3u);
}
TEST_P(WhatIf, HintsTreatAFileFromWhenItIsSeenToFit) {
  // What the window does not show at the open, it shows later; O_SYNC comes too late by then.
  EXPECT_EQ(
      run("hints",
          {{"advice", "sequential"},
           {"fsync", "drop"},
           {"sync", "add"},
           {"min-size", "30"},
           {"window", "1"}},
          {data("open", 0, 0), data("write", 0, 10), other("fsync"), data("write", 10, 10),
           data("write", 20, 10), other("fsync")}),
      (List{"open 0+0", "write 0+10", "fsync 0+0", "fadvise64 0+0", "write 10+10", "write 20+10"}));
  EXPECT_EQ(last[0].a.flags, 0u);
  EXPECT_EQ(run("hints", {{"advice", "random"}, {"pattern", "random"}, {"window", "1"}},
                {data("open", 0, 0), data("read", 0, 10), data("read", 10, 10),
                 data("read", 500, 10), data("read", 300, 10), data("read", 100, 10)}),
            (List{"open 0+0", "read 0+10", "read 10+10", "fadvise64 0+0", "read 500+10",
                  "read 300+10", "read 100+10"}));
}
TEST_P(WhatIf, HintsAlignReads) {
  EXPECT_EQ(run("hints", {{"align", "4k"}},
                {data("open", 0, 0), data("pread64", 5000, 10), data("preadv", 8192, 4096),
                 data("preadv", 8190, 4), data("read", 100, 10), data("read", 4096, 8192),
                 data("pwrite64", 100, 10)}),
            (List{"open 0+0", "pread64 4096+4096", "preadv 8192+4096", "pread64 4096+8192",
                  "pread64 0+4096", "lseek 110+0", "read 4096+8192", "pwrite64 100+10"}));
  EXPECT_EQ(last[1].a.result, 914);
  // What met the end of the file says nothing of how far it goes: prepare goes by that.
  Act nothing = data("pread64", 5000, 10);
  nothing.result = 0;
  EXPECT_TRUE(last[1].a.marks & FEIGN_INJECTED);
  EXPECT_EQ(run("hints", {{"align", "4k"}}, {data("open", 0, 0), nothing}),
            (List{"open 0+0", "pread64 5000+10"}));
  // Longer than a file can be, as a damaged trace has it.
  Act damaged = data("read", 100, UINT64_MAX);
  damaged.result = 5;
  run("hints", {{"align", "4k"}}, {data("open", 0, 0), damaged});
  ASSERT_EQ(last.size(), 2u);
  EXPECT_EQ(last[1].a.length, UINT64_MAX);
}
TEST_P(WhatIf, HintsSayWhereInMemory) {
  run("hints", {{"buffer", "512"}}, {data("open", 0, 0), data("read", 0, 10), other("fsync")});
  EXPECT_EQ(last[0].a.mode, 0u);
  EXPECT_EQ(last[1].a.mode, 1024u);
  EXPECT_EQ(last[2].a.mode, 0u);
}
TEST_P(WhatIf, HintsWantSomethingToDo) {
  EXPECT_NE(refused("hints", {}).find("nothing to do"), std::string::npos);
  EXPECT_NE(refused("hints", {{"buffer", "3"}}).find("power of two"), std::string::npos);
  EXPECT_NE(refused("hints", {{"align", "1000"}}).find("power of two"), std::string::npos);
}

// ---- scale

TEST_P(WhatIf, ScaleStretchesFilesWithoutSeams) {
  const auto out = run("scale", {{"size", "1.5"}},
                       {data("write", 0, 3), data("write", 3, 5), seek(8), data("write", 8, 1)});
  EXPECT_EQ(out, (List{"write 0+4", "write 4+8", "lseek 12+0", "write 12+1"}));
  EXPECT_EQ(last[1].a.result, 8);
  EXPECT_EQ(last[2].a.result, 12);
}
TEST_P(WhatIf, ScaleTakesAnySeek) {
  Act before = seek(0);
  before.result = -EINVAL;
  for (const auto& [by, scaled] :
       {std::pair(INT64_MIN, -(int64_t{1} << 62)), std::pair(int64_t{-7}, int64_t{-14})}) {
    before.offset = static_cast<uint64_t>(by);
    run("scale", {{"size", "2"}}, {before});
    EXPECT_EQ(static_cast<int64_t>(last[0].a.offset), scaled);
    EXPECT_EQ(last[0].a.result, -EINVAL);
  }
  // From where no file begins, as a damaged trace has it.
  Act damaged = seek(10);
  damaged.offset = static_cast<uint64_t>(INT64_MIN);
  run("scale", {{"size", "2"}}, {damaged});
  EXPECT_EQ(last[0].a.result, 20);
}
TEST_P(WhatIf, ScaleStretchesPauses) {
  Act a = data("read", 0, 10);
  a.compute_ns = 1000;
  run("scale", {{"think", "2.5"}}, {a});
  EXPECT_EQ(last[0].a.compute_ns, 2500u);
  EXPECT_EQ(last[0].a.length, 10u);
  EXPECT_NE(refused("scale", {{"think", "-1"}}).find("think"), std::string::npos);
  EXPECT_NE(refused("scale", {{"size", "0"}}).find("size"), std::string::npos);
}

// ---- replicate

TEST_P(WhatIf, ReplicateGivesEachCopyItsOwn) {
  Act a = data("read", 5, 10, 3, 1, 2);
  const auto out = run("replicate", {{"copies", "3"}, {"offset", "1ms"}, {"ranks", "4"}}, {a, a});
  ASSERT_EQ(out.size(), 6u);
  for (size_t i = 0; i < 6; ++i) {
    const Out& o = last[i];
    EXPECT_EQ(o.path, "/copy-" + std::to_string(i % 3) + "/f");
    EXPECT_EQ(o.a.handle, 9 + i % 3);
    EXPECT_EQ(o.a.file, 6 + i % 3);
    EXPECT_EQ(o.a.result, 10);
    EXPECT_EQ(o.a.compute_ns, i < 3 ? i * 1'000'000 : 0);
    EXPECT_EQ(o.a.stream, last[i % 3].a.stream);
  }
  EXPECT_NE(last[0].a.stream, last[1].a.stream);
  EXPECT_NE(last[1].a.stream, last[2].a.stream);
}
TEST_P(WhatIf, ReplicateRefusesWhatItCannotCopy) {
  Act a = data("read", 5, 10);
  a.marks = FEIGN_DEPENDS;
  ModifierHarness h(component("replicate"), {{"copies", "2"}});
  EXPECT_THROW(h.run({a}, GetParam()), feign_test::Broken);
  EXPECT_NE(h.host.failure.find("before depend"), std::string::npos);
  EXPECT_NE(refused("replicate", {{"copies", "2"}, {"into", "there"}}).find("absolute"),
            std::string::npos);
  EXPECT_NE(refused("replicate", {{"copies", "300"}, {"ranks", "16777216"}}).find("no numbers"),
            std::string::npos);
  // Stream 3 is rank 2: as one of two it would be copy 1's rank 0.
  ModifierHarness few(component("replicate"), {{"copies", "2"}, {"ranks", "2"}});
  EXPECT_THROW(few.run({data("read", 0, 1, 1, 3)}, GetParam()), feign_test::Broken);
  EXPECT_NE(few.host.failure.find("ranks=2: the trace has rank 2"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(BatchSizes, WhatIf, ::testing::Values(1, 2, 3, 64));

}  // namespace
