// SPDX-License-Identifier: MIT
// Modifier depend: which edges each rule makes and which it must not make, on small sequences; and
// the reduction, proven against the closure of all edges on random ones.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/falloc.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <deque>
#include <random>
#include <set>

#include "cli/dependencies.h"
#include "plugin/plugin.h"
#include "trace/record.h"

namespace {

using namespace feign;

using Options = GivenOptions;

constexpr uint64_t kWorld = 0xC0111;  // among values: a communicator of two ranks

// A call, as resolve leaves it.
struct Call {
  uint32_t stream;
  const char* op;
  const char* path = "";
  uint32_t handle = 0, file = 0;
  uint64_t offset = 0, length = 0;
  int64_t result = 0;
  uint32_t flags = 0, marks = 0;
  const char* path2 = "";
  std::vector<uint64_t> values = {};
  uint32_t handle2 = 0, mode = 0;
  uint64_t start_ns = 0, duration_ns = 10;
  std::vector<Dependency> depends = {};
  const char* layer = "posix";
};

// The modifier's edges over a sequence, and what follows from them and the order within streams.
class Ran {
 public:
  struct Edge {
    size_t after;
    std::string rule;
    auto operator<=>(const Edge&) const = default;
    friend void PrintTo(const Edge& e, std::ostream* out) { *out << e.after << " by " << e.rule; }
  };

  Ran(const std::vector<Call>& calls, const Options& options = {}, size_t batch = 64,
      const std::vector<feign_stream_info>& streams = {}) {
    for (uint32_t i = 1; i <= 8; ++i) {
      feign_stream_info info{};
      info.struct_size = sizeof info;
      info.rank = -1;
      info.process = info.thread = 100 + i;
      if (i <= streams.size()) {
        info.parent = streams[i - 1].parent;
        info.parent_id = streams[i - 1].parent_id;
        if (streams[i - 1].process != 0) info.process = streams[i - 1].process;
        if (streams[i - 1].rank != 0) info.rank = streams[i - 1].rank;
      }
      tables_.streams.add(info);
    }
    Plugins plugins;
    auto component = plugins.open(std::string(FEIGN_PLUGINS_DIR) + "/depend.so");
    EXPECT_TRUE(component);
    PluginSpec spec;
    spec.name = "depend";
    spec.options = options;
    const auto extension = [](void* ctx, const char* id) -> const void* {
      return std::string_view(id) == "feign.tables/1" ? ctx : nullptr;
    };
    auto made = Instance::create(component->front(), spec, tables_, extension, &tables_);
    if (!made) {
      error = made.error().text();
      return;
    }
    for (const Call& c : calls) add(c);
    process(**made, batch);
  }

  // The edges of a call.
  std::set<Edge> of(size_t i) const {
    std::set<Edge> out;
    for (const Dependency& d : records_[i].depends)
      out.insert({(d.id >> 16) - 1, std::string(tables_.strings.text(d.rule))});
    return out;
  }
  uint64_t compute(size_t i) const { return records_[i].a.compute_ns; }
  size_t edges() const {
    size_t n = 0;
    for (const Record& r : records_) n += r.depends.size();
    return n;
  }
  // closure()[j] holds i: j never starts before i has ended.
  std::vector<std::vector<bool>> closure(size_t without = SIZE_MAX) const {
    const size_t n = records_.size();
    std::vector<std::vector<bool>> before(n, std::vector<bool>(n));
    std::map<uint32_t, size_t> last;
    size_t edge = 0;
    for (size_t j = 0; j < n; ++j) {
      const auto take = [&](size_t i) {
        before[j][i] = true;
        for (size_t k = 0; k < i; ++k)
          if (before[i][k]) before[j][k] = true;
      };
      if (const auto at = last.find(records_[j].a.stream); at != last.end()) take(at->second);
      for (const Dependency& d : records_[j].depends) {
        if (edge++ == without) continue;
        for (size_t i = j; i-- > 0;)  // the last of that stream up to the id
          if (records_[i].a.stream == d.stream && records_[i].a.id <= d.id) {
            take(i);
            break;
          }
      }
      last[records_[j].a.stream] = j;
    }
    return before;
  }
  bool ordered(size_t i, size_t j) const { return closure()[j][i]; }

  std::string error;

 private:
  void add(const Call& c) {
    records_.emplace_back();
    Record& r = records_.back();
    r.a = feign_activity{};
    feign_activity& a = r.a;
    a.op = tables_.ops.find(c.layer, c.op);
    EXPECT_NE(a.op, 0u) << c.op;
    a.stream = c.stream;
    a.path = tables_.strings.intern(c.path);
    a.path2 = tables_.strings.intern(c.path2);
    a.handle = c.handle;
    a.handle2 = c.handle2;
    a.file = c.file;
    a.offset = c.offset;
    a.length = c.length;
    a.result = c.result;
    a.flags = c.flags;
    a.mode = c.mode;
    a.marks = c.marks | FEIGN_RESOLVED;
    a.id = records_.size() << 16;
    a.start_ns = c.start_ns != 0 ? c.start_ns : records_.size() * 100;
    a.duration_ns = c.duration_ns;
    std::vector<uint64_t> values = c.values;
    std::replace(values.begin(), values.end(), kWorld,
                 uint64_t{tables_.strings.intern("WORLD{0-1}")});
    r.set_values(values);
    for (const Dependency& d : c.depends) {
      r.depends.push_back(d);
      a.marks |= FEIGN_DEPENDS;
    }
  }
  void process(Instance& instance, size_t batch) {
    std::vector<feign_activity*> items;
    for (Record& r : records_) items.push_back(&r.a);
    feign_sink sink = {sizeof sink, nullptr,
                       [](feign_sink*) noexcept -> feign_activity* { return nullptr; },
                       [](feign_sink*, feign_activity*) noexcept { return FEIGN_OK; }};
    const auto& api = instance.api<feign_modifier>();
    for (size_t done = 0;; done += batch) {
      const size_t left = items.size() - std::min(done, items.size());
      const size_t due = std::min(left, batch);
      const feign_window window{sizeof window, left <= batch, items.data() + done, due, left};
      const feign_status status = api.process(instance.self(), &window, &sink);
      if (status < 0) {
        error = instance.failure(status).text();
        return;
      }
      if (due == 0) return;
    }
  }

  Tables tables_;
  std::deque<Record> records_;
};
using Edges = std::set<Ran::Edge>;

Call open_call(uint32_t stream, uint32_t handle, uint32_t file, const char* path,
               uint32_t flags = O_RDWR, bool creates = false) {
  return {.stream = stream,
          .op = "openat",
          .path = path,
          .handle = handle,
          .file = file,
          .result = 3,
          .flags = flags,
          .marks = creates ? uint32_t{FEIGN_CREATES} : 0u};
}
Call data(uint32_t stream, const char* op, uint32_t handle, uint32_t file, uint64_t offset,
          uint64_t length, int64_t result = -1) {
  return {.stream = stream,
          .op = op,
          .handle = handle,
          .file = file,
          .offset = offset,
          .length = length,
          .result = result < 0 ? static_cast<int64_t>(length) : result};
}
Call on_path(uint32_t stream, const char* op, const char* path, int64_t result = 0,
             uint32_t file = 0, uint32_t marks = 0) {
  return {.stream = stream, .op = op, .path = path, .file = file, .result = result, .marks = marks};
}
Call pipe_end(uint32_t stream, const char* op, uint32_t handle, int64_t bytes, uint32_t file = 9) {
  return {.stream = stream,
          .op = op,
          .handle = handle,
          .file = file,
          .length = static_cast<uint64_t>(bytes),
          .result = bytes,
          .marks = FEIGN_NOT_A_FILE};
}
Call close_call(uint32_t stream, uint32_t handle, uint32_t file, bool last) {
  return {.stream = stream,
          .op = "close",
          .handle = handle,
          .file = file,
          .marks = last ? uint32_t{FEIGN_LAST} : 0u};
}
const Options only(const char* rules) { return {{"rules", rules}}; }

// ---- handle ------------------------------------------------------------------------------------

TEST(Handle, UseComesAfterOpenAndCloseAfterUse) {
  const Ran r({open_call(1, 1, 1, "/f"), data(2, "pread64", 1, 1, 0, 8),
               data(3, "pread64", 1, 1, 0, 8), close_call(1, 1, 1, true)},
              only("handle"));

  EXPECT_EQ(r.of(1), (Edges{{0, "handle"}}));
  EXPECT_EQ(r.of(2), (Edges{{0, "handle"}}));
  EXPECT_EQ(r.of(3), (Edges{{1, "handle"}, {2, "handle"}}));
}
TEST(Handle, CallsAtTheSharedOffsetKeepTheirOrderAndPositionalOnesDoNot) {
  const Ran shared({open_call(1, 1, 1, "/f"), data(2, "read", 1, 1, 0, 8),
                    data(3, "read", 1, 1, 8, 8), data(2, "read", 1, 1, 16, 8)},
                   only("handle"));
  const Ran positional(
      {open_call(1, 1, 1, "/f"), data(2, "pread64", 1, 1, 0, 8), data(3, "pwrite64", 1, 1, 0, 8)},
      only("handle"));

  EXPECT_EQ(shared.of(2), (Edges{{1, "handle"}}));
  EXPECT_EQ(shared.of(3), (Edges{{2, "handle"}}));
  EXPECT_FALSE(positional.ordered(1, 2));
}
Call by_context(uint32_t stream, const char* op, uint64_t context, int64_t result) {
  return {.stream = stream, .op = op, .result = result, .values = {context}};
}
std::vector<feign_stream_info> in_processes(const std::vector<int64_t>& processes) {
  std::vector<feign_stream_info> streams(processes.size());
  for (size_t i = 0; i < streams.size(); ++i) streams[i].process = processes[i];
  return streams;
}
TEST(Handle, AContextOfRequestsIsUsedAfterItsSetupAndDestroyedAfterItsUses) {
  const Ran r(
      {by_context(1, "io_setup", 0x7f00, 0), by_context(2, "io_submit", 0x7f00, 1),
       by_context(3, "io_getevents", 0x7f00, 1), by_context(3, "io_destroy", 0x7f80, -EINVAL),
       by_context(1, "io_destroy", 0x7f00, 0), by_context(2, "io_getevents", 0x7f00, -EINVAL),
       by_context(3, "io_setup", 0x7f00, 0)},
      only("handle"), 64, in_processes({101, 101, 101}));

  EXPECT_EQ(r.of(1), (Edges{{0, "handle"}}));
  EXPECT_EQ(r.of(2), (Edges{{0, "handle"}}));  // and not after the submit
  EXPECT_EQ(r.of(3), (Edges{}));
  EXPECT_EQ(r.of(4), (Edges{{1, "handle"}, {2, "handle"}}));
  EXPECT_EQ(r.of(5), (Edges{{4, "handle"}}));
  EXPECT_EQ(r.of(6), (Edges{{5, "handle"}}));
}
TEST(Handle, AnAddressOfAnotherProcessIsAnotherContext) {
  const std::vector<Call> calls = {by_context(1, "io_setup", 0x7f00, 0),
                                   by_context(2, "io_getevents", 0x7f00, 1)};
  const auto in = [&](int64_t process) {
    return Ran(calls, only("handle"), 64, in_processes({101, process})).ordered(0, 1);
  };

  EXPECT_TRUE(in(101));
  EXPECT_FALSE(in(102));
}
TEST(Handle, ACopyThatIsClosedWaitsForNobodyTheLastOneForAll) {
  const Ran r({open_call(1, 1, 1, "/f"), data(1, "pread64", 1, 1, 0, 8), close_call(2, 1, 1, false),
               close_call(3, 1, 1, true)},
              only("handle"));

  EXPECT_EQ(r.of(2), (Edges{{0, "handle"}}));
  EXPECT_EQ(r.of(3), (Edges{{1, "handle"}, {2, "handle"}}));
}
TEST(Handle, AnOpenThatFindsOneClosedComesAfterItsUses) {
  Call open = open_call(1, 2, 2, "/g");
  open.handle2 = 1;
  const Ran r({open_call(1, 1, 1, "/f"), data(2, "pread64", 1, 1, 0, 8), open}, only("handle"));

  EXPECT_EQ(r.of(2), (Edges{{1, "handle"}}));
}
TEST(Handle, WhatEndsWithAProcessIsClosed) {
  Call exit{.stream = 2, .op = "exit_group", .values = {1}};
  const Ran r({open_call(1, 1, 1, "/f"), data(3, "pread64", 1, 1, 0, 8), exit}, only("handle"));

  EXPECT_EQ(r.of(2), (Edges{{1, "handle"}}));
}
TEST(Handle, OthersHandlesAreNoneOfItsBusiness) {
  const Ran r({open_call(1, 1, 1, "/f"), open_call(2, 2, 1, "/f"), data(1, "read", 1, 1, 0, 8),
               data(2, "read", 2, 1, 0, 8), close_call(1, 1, 1, true), close_call(2, 2, 1, true)},
              only("handle"));

  EXPECT_EQ(r.edges(), 0u);
}

// ---- path --------------------------------------------------------------------------------------

TEST(Path, FailedLookupsComeBeforeTheCreationAndFoundOnesAfter) {
  const Ran r({on_path(1, "stat", "/f", -ENOENT), open_call(2, 1, 1, "/f", O_CREAT, true),
               on_path(3, "stat", "/f", 0, 1), on_path(1, "mkdir", "/f", -EEXIST),
               on_path(4, "unlink", "/f", 0, 1), on_path(3, "stat", "/f", -ENOENT)},
              only("path"));

  EXPECT_EQ(r.of(1), (Edges{{0, "path"}}));
  EXPECT_EQ(r.of(2), (Edges{{1, "path"}}));
  EXPECT_EQ(r.of(3), (Edges{{1, "path"}}));
  EXPECT_EQ(r.of(4), (Edges{{2, "path"}, {3, "path"}}));
  EXPECT_EQ(r.of(5), (Edges{{4, "path"}}));
}
TEST(Path, WhatIsBelowADirectoryComesAfterItAndBeforeItsEnd) {
  const Ran r({on_path(1, "stat", "/d/x/y", -ENOENT), on_path(2, "mkdir", "/d", 0, 5),
               on_path(3, "stat", "/d/x/y", -ENOENT), on_path(4, "rmdir", "/d", 0, 5),
               on_path(1, "stat", "/d/x", -ENOENT)},
              only("path"));

  EXPECT_EQ(r.of(1), (Edges{{0, "path"}}));
  EXPECT_EQ(r.of(2), (Edges{{1, "path"}}));
  EXPECT_EQ(r.of(3), (Edges{{2, "path"}}));
  EXPECT_EQ(r.of(4), (Edges{{3, "path"}}));
}
TEST(Path, ARenamedDirectoryTakesItsNamesWithIt) {
  Call rename = on_path(2, "rename", "/a", 0, 5, FEIGN_DIRECTORY);
  rename.path2 = "/b";
  const Ran r(
      {on_path(1, "stat", "/a/deep/f", 0, 1), on_path(3, "stat", "/b/deep/f", -ENOENT), rename,
       on_path(1, "stat", "/b/deep/f", 0, 1), on_path(3, "stat", "/a/deep/f", -ENOENT)},
      only("path"));

  EXPECT_EQ(r.of(2), (Edges{{0, "path"}, {1, "path"}}));
  EXPECT_EQ(r.of(3), (Edges{{2, "path"}}));
  EXPECT_EQ(r.of(4), (Edges{{2, "path"}}));
}
TEST(Path, ListingsAndChangesOfADirectoryStayInOrder) {
  Call list{.stream = 2, .op = "getdents64", .path = "/d", .handle = 1, .file = 5, .result = 48};
  const Ran r({open_call(1, 2, 1, "/d/a", O_CREAT, true), list,
               open_call(3, 3, 2, "/d/b", O_CREAT, true), on_path(4, "rmdir", "/d", -ENOTEMPTY, 5)},
              only("path"));

  EXPECT_EQ(r.of(1), (Edges{{0, "path"}}));
  EXPECT_EQ(r.of(2), (Edges{{1, "path"}}));
  EXPECT_TRUE(r.ordered(2, 3));
}
TEST(Path, AListingThatFindsItsDirectoryRemovedComesAfterThat) {
  Call list{.stream = 2, .op = "getdents64", .path = "/d", .handle = 1, .file = 5, .result = 48};
  Call nothing = list;
  nothing.result = -ENOENT;
  const Ran r({list, on_path(1, "rmdir", "/d", 0, 5), nothing}, only("path"));

  EXPECT_EQ(r.of(1), (Edges{{0, "path"}}));
  EXPECT_EQ(r.of(2), (Edges{{1, "path"}}));
}
TEST(Path, AListingOfADirectoryThatWasMovedComesAfterWhatChangedInItBefore) {
  Call list{.stream = 3, .op = "getdents64", .path = "/to", .handle = 1, .file = 5, .result = 48};
  Call move = on_path(1, "rename", "/from", 0, 5);
  move.path2 = "/to";
  move.marks = FEIGN_DIRECTORY;
  const Ran r({on_path(2, "rmdir", "/from/d", 0, 6), move, list}, only("path"));

  EXPECT_TRUE(r.ordered(0, 1));
  EXPECT_TRUE(r.ordered(1, 2));
}
TEST(Path, WhoWentByALinkBeforeItWasToldComesBeforeWhatThatMakes) {
  Call open = open_call(2, 1, 7, "/l", O_CREAT, true);
  open.path2 = "/d/f/.";
  const Ran r({on_path(1, "stat", "/l", -ENOENT), open}, only("path"));
  EXPECT_EQ(r.of(1), (Edges{{0, "path"}}));

  Call readlink = on_path(2, "readlink", "/l", 2, 8);
  readlink.path2 = "/d";
  const Ran told(
      {on_path(1, "stat", "/l/f", -ENOENT), readlink, open_call(2, 1, 7, "/d/f", O_CREAT, true)},
      only("path"));
  EXPECT_TRUE(told.ordered(0, 2));
}
TEST(Path, ALinkInADirectoryIsOneStillOnceItsPermissionsHaveChanged) {
  Call link = on_path(1, "symlink", "/d/l", 0, 8, FEIGN_SYMLINK);
  link.path2 = "f";
  const Ran r({link, on_path(1, "chmod", "/d", 0, 5, FEIGN_DIRECTORY),
               on_path(2, "stat", "/d/l", -ENOENT), open_call(1, 1, 7, "/d/f", O_CREAT, true)},
              only("path"));

  EXPECT_EQ(r.of(2), (Edges{{1, "path"}}));
  EXPECT_EQ(r.of(3), (Edges{{2, "path"}}));
}
TEST(Path, AnotherNameOfALinkIsOneToo) {
  Call link = on_path(1, "symlink", "/l", 0, 8, FEIGN_SYMLINK);
  link.path2 = "/f";
  Call another = on_path(1, "link", "/l", 0, 8, FEIGN_SYMLINK | FEIGN_NOFOLLOW);
  another.path2 = "/d/m";
  const Ran r(
      {link, another, on_path(2, "stat", "/d/m", -ENOENT), open_call(1, 1, 7, "/f", O_CREAT, true)},
      only("path"));

  EXPECT_EQ(r.of(2), (Edges{{1, "path"}}));
  EXPECT_EQ(r.of(3), (Edges{{2, "path"}}));
}
TEST(Path, AFileWithoutANameMakesNoneInItsDirectory) {
  Call link = on_path(1, "symlink", "/d/l", 0, 8, FEIGN_SYMLINK);
  link.path2 = "f";
  const Ran r(
      {link, on_path(2, "stat", "/d/g", 0, 9), open_call(3, 3, 10, "/d", O_RDWR | O_TMPFILE, true),
       on_path(4, "stat", "/d/f", -ENOENT), open_call(5, 5, 11, "/d/l", O_RDWR | O_CREAT, true)},
      only("path"));

  EXPECT_EQ(r.of(2), Edges{});
  EXPECT_EQ(r.of(4), (Edges{{0, "path"}, {3, "path"}}));
}
TEST(Path, WhoMissesAnAttributeByADescriptorComesAfterItsRemovalByAName) {
  const Call gone{.stream = 2,
                  .op = "fremovexattr",
                  .path = "/f",
                  .handle = 1,
                  .file = 7,
                  .result = -ENODATA,
                  .path2 = "user.a"};
  const Ran r({on_path(1, "removexattr", "/f", 0, 7), gone, on_path(1, "setxattr", "/f", 0, 7)},
              only("path"));

  EXPECT_EQ(r.of(1), (Edges{{0, "path"}}));
  EXPECT_EQ(r.of(2), (Edges{{1, "path"}}));
}
TEST(Path, AnotherNameOfTheSameFileIsOrderedByTheFile) {
  const Ran r({open_call(1, 1, 7, "/d/f", O_CREAT, true), on_path(2, "stat", "/link/f", 0, 7),
               on_path(3, "unlink", "/d/f", 0, 7)},
              only("path"));

  EXPECT_EQ(r.of(1), (Edges{{0, "path"}}));
  EXPECT_EQ(r.of(2), (Edges{{1, "path"}}));
}
TEST(Path, WhatARenameTakesAwayMayHaveBeenFoundByAnotherName) {
  Call rename = on_path(3, "rename", "/d/new", 0, 8);
  rename.path2 = "/d/f";
  const Ran r(
      {open_call(1, 1, 7, "/d/f", O_CREAT, true), on_path(2, "stat", "/link/f", 0, 7),
       open_call(3, 2, 8, "/d/new", O_CREAT, true), rename, on_path(2, "stat", "/link/f", 0, 8)},
      only("path"));

  EXPECT_EQ(r.of(1), (Edges{{0, "path"}}));
  EXPECT_EQ(r.of(3), (Edges{{1, "path"}}));
  EXPECT_EQ(r.of(4), (Edges{{3, "path"}}));
}
TEST(Path, WhatIsInTheWayOrMissingMayBeAnotherNamesDoing) {
  Call rename = on_path(2, "rename", "/d/f", 0, 7);
  rename.path2 = "/d/g";
  const Ran r({open_call(1, 1, 7, "/link", O_CREAT, true), on_path(2, "mkdir", "/d/f", -EEXIST, 7),
               rename, on_path(3, "stat", "/link", -ENOENT)},
              only("path"));

  EXPECT_EQ(r.of(1), (Edges{{0, "path"}}));
  EXPECT_EQ(r.of(3), (Edges{{2, "path"}}));
}
TEST(Path, WhatFailsBelowANameComesAfterTheFileThatWasThereOrWent) {
  const Ran r({open_call(1, 1, 7, "/f", O_CREAT, true), on_path(2, "stat", "/f/x/y", -ENOTDIR),
               on_path(1, "unlink", "/f", 0, 7), on_path(2, "stat", "/f/x", -ENOENT),
               open_call(1, 2, 8, "/f", O_CREAT, true)},
              only("path"));

  for (size_t i = 1; i < 5; ++i) EXPECT_EQ(r.of(i), (Edges{{i - 1, "path"}})) << i;
}
TEST(Path, UsesAndOtherNamesAreNotOrdered) {
  const Ran r(
      {on_path(1, "mkdir", "/d/1", 0, 1), on_path(2, "mkdir", "/d/2", 0, 2),
       open_call(1, 1, 3, "/d/1/f", O_CREAT, true), open_call(2, 2, 4, "/d/2/f", O_CREAT, true),
       on_path(3, "stat", "/d/3", 0, 9), on_path(4, "stat", "/d/3", 0, 9),
       on_path(1, "unlink", "/d/1/f", 0, 3), on_path(2, "unlink", "/d/2/f", 0, 4)},
      only("path"));

  EXPECT_EQ(r.edges(), 0u);
}

// ---- file --------------------------------------------------------------------------------------

TEST(File, ReadsComeAfterTheWritesTheySawAndBeforeThoseTheyDidNot) {
  const Ran r({data(1, "pwrite64", 1, 1, 0, 100), data(2, "pread64", 2, 1, 50, 10),
               data(3, "pwrite64", 3, 1, 55, 10), data(4, "pread64", 4, 1, 0, 10)},
              only("file"));

  EXPECT_EQ(r.of(1), (Edges{{0, "file"}}));
  EXPECT_EQ(r.of(2), (Edges{{1, "file"}}));
  EXPECT_EQ(r.of(3), (Edges{{0, "file"}}));
}
TEST(File, ReadsAndOtherBytesAreNotOrdered) {
  const Ran r({data(1, "pwrite64", 1, 1, 0, 10), data(2, "pwrite64", 2, 1, 10, 10),
               data(3, "pwrite64", 3, 1, 30, 10), data(1, "pread64", 1, 1, 0, 10),
               data(2, "pread64", 2, 1, 10, 10), data(3, "pread64", 3, 1, 30, 10),
               data(1, "pwrite64", 1, 1, 100, 5), data(2, "pwrite64", 2, 1, 90, 5)},
              only("file"));
  EXPECT_EQ(r.edges(), 0u);

  std::vector<Call> reads;
  for (uint32_t i = 0; i < 40; ++i)
    reads.push_back(data(1 + i % 4, "pread64", 1, 1, i % 3 * 8, 16));
  EXPECT_EQ(Ran(reads, only("file")).edges(), 0u);
}
TEST(File, AppendsAndSizesStayInOrder) {
  const auto append = [](uint32_t stream, uint64_t at) {
    Call c = data(stream, "write", stream, 1, at, 10);
    c.marks = FEIGN_APPENDS;
    return c;
  };
  Call truncate{.stream = 3, .op = "ftruncate", .handle = 3, .file = 1, .length = 4};
  Call seek{.stream = 4, .op = "lseek", .handle = 4, .file = 1, .result = 4, .flags = SEEK_END};
  const Ran r({open_call(1, 1, 1, "/f", O_WRONLY | O_APPEND | O_CREAT, true),
               open_call(2, 2, 1, "/f", O_WRONLY | O_APPEND), append(1, 0), append(2, 10), truncate,
               seek, append(1, 4)},
              only("file"));

  EXPECT_EQ(r.of(3), (Edges{{2, "file"}}));
  EXPECT_EQ(r.of(4), (Edges{{3, "file"}}));
  EXPECT_EQ(r.of(5), (Edges{{4, "file"}}));
  EXPECT_EQ(r.of(6), (Edges{{5, "file"}}));
}
TEST(File, AReadThatMetTheEndComesBeforeTheFileGrows) {
  const Ran r({data(1, "pread64", 1, 1, 0, 100, 60), data(2, "pwrite64", 2, 1, 200, 10),
               data(3, "pread64", 3, 1, 60, 100, 100)},
              only("file"));

  EXPECT_EQ(r.of(1), (Edges{{0, "file"}}));  // it would have seen zeros
  EXPECT_EQ(r.of(2), (Edges{{1, "file"}}));
}
TEST(File, WhoSawTheEndComesBeforeAllThatGoBeyondIt) {
  Call seek{.stream = 1, .op = "lseek", .handle = 1, .file = 1, .result = 60, .flags = SEEK_END};
  const Ran r({open_call(1, 1, 1, "/f", O_RDWR | O_CREAT, true), data(1, "pwrite64", 1, 1, 0, 60),
               seek, data(2, "pwrite64", 2, 1, 200, 10), data(3, "pwrite64", 3, 1, 150, 10),
               data(4, "pwrite64", 4, 1, 50, 10)},
              only("file"));

  EXPECT_EQ(r.of(3), (Edges{{2, "file"}}));
  EXPECT_EQ(r.of(4), (Edges{{2, "file"}}));  // though the file was as long already
  EXPECT_EQ(r.of(5), (Edges{{1, "file"}}));  // it came to that end before, too
}
TEST(File, WhatFailedAtTheEndComesAfterWhatCutTheFileAndBeforeItGrows) {
  const Call truncate{.stream = 2, .op = "ftruncate", .handle = 2, .file = 1, .length = 10};
  const Call seek{.stream = 1,
                  .op = "lseek",
                  .handle = 1,
                  .file = 1,
                  .offset = -uint64_t{22},
                  .result = -EINVAL,
                  .flags = SEEK_END};
  const Call collapse{.stream = 1,
                      .op = "fallocate",
                      .handle = 1,
                      .file = 1,
                      .length = 4096,
                      .result = -EINVAL,
                      .flags = FALLOC_FL_COLLAPSE_RANGE};
  for (const Call& failed : {seek, collapse}) {
    const Ran r({data(1, "pwrite64", 1, 1, 0, 100), truncate, failed,
                 data(2, "pwrite64", 2, 1, 0, 5), data(3, "pwrite64", 3, 1, 20, 10)},
                only("file"));

    EXPECT_EQ(r.of(2), (Edges{{1, "file"}}));
    EXPECT_TRUE(r.ordered(2, 4));
  }
}
TEST(File, AReadOfAHoleComesAfterTheWriteBehindIt) {
  Call truncate{.stream = 2, .op = "ftruncate", .handle = 2, .file = 1, .length = 10};
  const Ran r({data(1, "pwrite64", 1, 1, 0, 100), truncate, data(3, "pwrite64", 3, 1, 200, 10),
               data(4, "pread64", 4, 1, 50, 20), data(4, "pread64", 4, 1, 0, 10)},
              only("file"));

  EXPECT_TRUE(r.ordered(2, 3));  // without it the file would end at 10
  EXPECT_TRUE(r.ordered(1, 2));
}
TEST(File, WhoLooksForDataComesAfterTheWritesSoFarAndBeforeTheOthers) {
  for (const int64_t result : {int64_t{40}, -int64_t{ENXIO}}) {
    const Call seek{.stream = 2,
                    .op = "lseek",
                    .handle = 2,
                    .file = 1,
                    .offset = 40,
                    .result = result,
                    .flags = SEEK_DATA};
    const Ran r({open_call(1, 1, 1, "/f", O_RDWR | O_CREAT, true), data(1, "pwrite64", 1, 1, 90, 9),
                 data(1, "pwrite64", 1, 1, 10, 10), seek, data(1, "pwrite64", 1, 1, 60, 10)},
                only("file"));

    EXPECT_EQ(r.of(3), (Edges{{2, "file"}})) << result;
    EXPECT_EQ(r.of(4), (Edges{{3, "file"}})) << result;
  }
}
TEST(File, FlushesComeAfterTheWritesAndKeepNobodyWaiting) {
  Call fsync{.stream = 2, .op = "fsync", .handle = 2, .file = 1};
  const Ran r({data(1, "pwrite64", 1, 1, 0, 10), data(2, "pread64", 2, 1, 500, 1, 0), fsync,
               data(3, "pwrite64", 3, 1, 0, 10)},
              only("file"));

  EXPECT_TRUE(r.ordered(0, 2));
  EXPECT_FALSE(r.ordered(2, 3));
}
TEST(File, ManyPiecesAreForgottenOnlyToTheSafeSide) {
  std::vector<Call> calls = {data(1, "pwrite64", 1, 1, 0, 1), data(2, "pwrite64", 1, 1, 1, 1)};
  std::mt19937 random(7);
  for (int i = 0; i < 3000; ++i)
    calls.push_back(data(1 + random() % 4, random() % 2 ? "pwrite64" : "pread64", 1, 1,
                         random() % 2000 * 10, 1 + random() % 12));
  const Ran r(calls, only("file"));
  const auto before = r.closure();

  for (size_t j = 0; j < calls.size(); ++j)
    for (size_t i = 0; i < j; ++i) {
      const Call &x = calls[i], &y = calls[j];
      const bool apart = x.offset + x.length <= y.offset || y.offset + y.length <= x.offset;
      const bool reads = x.op[1] == 'r' && y.op[1] == 'r';
      if (!apart && !reads) {
        ASSERT_TRUE(before[j][i]) << i << " " << j;
      }
    }
}

TEST(File, WhatLibcHasInMemoryIsThereWhenItIsFlushed) {
  const auto stdio = [](const char* op, uint64_t length, uint32_t marks = 0) {
    return Call{.stream = 1,
                .op = op,
                .handle = 1,
                .file = 1,
                .length = length,
                .result = static_cast<int64_t>(length),
                .marks = marks,
                .layer = "stdio"};
  };
  Call opened = stdio("fopen", 0, FEIGN_CREATES);
  opened.path = "/f";
  opened.flags = O_WRONLY | O_CREAT | O_TRUNC;
  const Ran r({opened, data(2, "pread64", 2, 1, 0, 10, 0), stdio("fwrite", 10),
               stdio("fclose", 0, FEIGN_LAST), data(2, "pread64", 2, 1, 0, 10)},
              only("file+handle"));

  EXPECT_EQ(r.of(4), (Edges{{3, "file"}}));
}

TEST(File, WhatWouldHaveMovedTheEndComesAfterAnAppend) {
  Call append = data(1, "write", 1, 1, 194, 220);
  append.marks = FEIGN_APPENDS;
  Call allocate{.stream = 2, .op = "fallocate", .handle = 2, .file = 1, .length = 227};
  allocate.offset = 0;
  const Ran r(
      {open_call(1, 1, 1, "/f", O_WRONLY | O_APPEND | O_CREAT, true),
       open_call(2, 2, 1, "/f", O_RDWR), data(2, "pwrite64", 2, 1, 0, 194), append, allocate},
      only("file"));

  EXPECT_EQ(r.of(4), (Edges{{3, "file"}}));
}
TEST(File, WhatWouldMakeACutFileLongerComesBeforeTheCut) {
  Call allocate{.stream = 2, .op = "fallocate", .handle = 2, .file = 1, .length = 637};
  allocate.offset = 309;
  const Call cut{.stream = 1, .op = "ftruncate", .handle = 1, .file = 1, .length = 95};
  const Ran r({open_call(1, 1, 1, "/f", O_RDWR | O_CREAT, true), open_call(2, 2, 1, "/f", O_RDWR),
               data(1, "pwrite64", 1, 1, 0, 8670), allocate, cut},
              only("file"));

  EXPECT_EQ(r.of(4), (Edges{{3, "file"}}));
}
TEST(File, AnOpenForReadingMayCutTheFile) {
  const Call seek{
      .stream = 2, .op = "lseek", .handle = 2, .file = 1, .result = 0, .flags = SEEK_END};
  const Ran r({data(1, "pwrite64", 1, 1, 0, 100), open_call(2, 2, 1, "/f", O_RDONLY),
               open_call(1, 3, 1, "/f", O_RDONLY | O_TRUNC), seek},
              only("file"));

  EXPECT_EQ(r.of(3), (Edges{{2, "file"}}));
}

TEST(Handle, AStreamIsNotClosedWhileAnotherProcessIsInACallOnIt) {
  const auto stdio = [](uint32_t stream, const char* op) {
    return Call{.stream = stream, .op = op, .handle = 1, .file = 1, .layer = "stdio"};
  };
  Call opened = stdio(1, "fopen");
  opened.path = "/f";
  const Ran r({opened, stdio(1, "fflush"), stdio(2, "fclose"), stdio(1, "fflush")}, only("handle"));

  EXPECT_EQ(r.of(2), (Edges{{1, "handle"}}));
  EXPECT_EQ(r.of(3), (Edges{{2, "handle"}}));
}

// ---- process -----------------------------------------------------------------------------------

TEST(Process, AChildComesAfterItsForkAndAWaitAfterItsEnd) {
  std::vector<feign_stream_info> streams(2);
  streams[1].parent = 1;
  streams[1].parent_id = 1 << 16;
  const Ran r({{.stream = 1, .op = "fork", .result = 102},
               on_path(2, "stat", "/a"),
               on_path(1, "stat", "/b"),
               {.stream = 2, .op = "exit_group"},
               {.stream = 1, .op = "wait4", .result = 102}},
              only("process"), 64, streams);

  EXPECT_EQ(r.of(1), (Edges{{0, "process"}}));
  EXPECT_EQ(r.of(2), Edges{});
  EXPECT_EQ(r.of(4), (Edges{{3, "process"}}));
}
TEST(Process, WhatAnEndTakesIsAPauseOfWhoWaitedForIt) {
  std::vector<feign_stream_info> streams(2);
  streams[1].parent = 1;
  streams[1].parent_id = 1 << 16;
  const std::vector<Call> calls = {
      {.stream = 1, .op = "fork", .result = 102, .start_ns = 100},
      {.stream = 2, .op = "exit_group", .start_ns = 1000, .duration_ns = 0},
      {.stream = 1, .op = "wait4", .result = 102, .start_ns = 200, .duration_ns = 5000},
      on_path(1, "stat", "/a"),
      on_path(1, "stat", "/b")};

  const Ran waits(calls, only("process"), 64, streams);
  const Ran does_not(calls, only("none"), 64, streams);

  EXPECT_EQ(waits.compute(3), 5200u - 1000u);
  EXPECT_EQ(waits.compute(4), 0u);
  EXPECT_EQ(does_not.compute(3), 0u);
}
TEST(Process, AfterAVforkTheParentWaitsForTheChildsExec) {
  std::vector<feign_stream_info> streams(2);
  streams[1].parent = 1;
  streams[1].parent_id = 1 << 16;
  const Ran r({{.stream = 1, .op = "clone", .result = 102, .flags = CLONE_VM | CLONE_VFORK},
               on_path(2, "stat", "/a"),
               {.stream = 2, .op = "execve", .path = "/bin/x"},
               on_path(2, "stat", "/c"),
               on_path(1, "stat", "/b")},
              only("process"), 64, streams);

  EXPECT_EQ(r.of(4), (Edges{{2, "process"}}));
}
TEST(Process, NobodyWaitsForAStreamThatBeginsLater) {
  // A broken trace: the child's call is before its parent's fork.
  std::vector<feign_stream_info> streams(3);
  streams[1].parent = 1;
  streams[1].parent_id = 3 << 16;
  const Ran r({data(2, "pwrite64", 2, 1, 0, 10),
               data(1, "pread64", 1, 1, 0, 10),
               {.stream = 1, .op = "fork", .result = 102},
               data(3, "pread64", 3, 1, 0, 10)},
              {}, 64, streams);

  EXPECT_EQ(r.of(1), Edges{});  // else the fork would wait for its child
  EXPECT_EQ(r.of(3), (Edges{{0, "file"}}));
}

// ---- channel -----------------------------------------------------------------------------------

TEST(Channel, AReadComesAfterTheWritesWhoseBytesItGot) {
  const Ran r({pipe_end(1, "write", 1, 10), pipe_end(2, "write", 1, 10), pipe_end(3, "read", 2, 5),
               pipe_end(4, "read", 2, 10), pipe_end(3, "read", 2, 5)},
              only("channel"));

  EXPECT_EQ(r.of(2), (Edges{{0, "channel"}}));
  EXPECT_EQ(r.of(3), (Edges{{0, "channel"}, {1, "channel"}}));
  EXPECT_EQ(r.of(4), (Edges{{1, "channel"}}));
}
TEST(Channel, AReadSeenToEndBeforeItsWriteMakesTheNextCallWait) {
  const Ran r({pipe_end(2, "read", 2, 10), pipe_end(1, "write", 1, 10), on_path(2, "stat", "/a"),
               on_path(2, "stat", "/b")},
              only("channel"));

  EXPECT_EQ(r.of(0), Edges{});
  EXPECT_EQ(r.of(2), (Edges{{1, "channel"}}));
  EXPECT_EQ(r.of(3), Edges{});
}
TEST(Channel, TheEndOfAPipeComesAfterTheCloseOfItsOtherEnd) {
  Call close = close_call(1, 1, 9, true);
  close.marks |= FEIGN_NOT_A_FILE;
  Call end = pipe_end(2, "read", 2, 0);
  end.length = 10;
  const Ran r({pipe_end(2, "read", 2, 0), close, end}, only("channel"));

  EXPECT_EQ(r.of(2), (Edges{{1, "channel"}}));
}
TEST(Channel, WhoEndsClosesItsEnd) {
  Call exit{.stream = 1, .op = "exit_group", .values = {1}};
  Call end = pipe_end(2, "read", 2, 0);
  end.length = 10;
  const Ran r({pipe_end(1, "write", 1, 5), pipe_end(2, "read", 2, 5), exit, end}, only("channel"));

  EXPECT_EQ(r.of(1), (Edges{{0, "channel"}}));
  EXPECT_EQ(r.of(3), (Edges{{2, "channel"}}));
}
Call socket_end(uint32_t stream, const char* op, uint32_t handle, int64_t bytes) {
  Call c = pipe_end(stream, op, handle, bytes);
  c.marks |= FEIGN_BOTH_WAYS;
  return c;
}
TEST(Channel, AConnectionHasTwoWays) {
  const Ran r({socket_end(1, "sendto", 1, 10), socket_end(2, "sendto", 2, 10),
               socket_end(1, "recvfrom", 1, 10), socket_end(2, "recvfrom", 2, 10)},
              only("channel"));

  EXPECT_EQ(r.of(2), (Edges{{1, "channel"}}));
  EXPECT_EQ(r.of(3), (Edges{{0, "channel"}}));
}
TEST(Channel, WhoAcceptsComesAfterWhoConnects) {
  const Ran r({socket_end(1, "connect", 1, 0), socket_end(2, "accept4", 2, 7)}, only("channel"));

  EXPECT_EQ(r.of(1), (Edges{{0, "channel"}}));
}
TEST(Channel, AnEventfdIsReadAsAWhole) {
  Call made{.stream = 1, .op = "eventfd2", .handle = 5, .marks = FEIGN_NOT_A_FILE};
  const Ran r({made, pipe_end(1, "write", 5, 8, 0), pipe_end(2, "write", 5, 8, 0),
               pipe_end(3, "read", 5, 8, 0), pipe_end(4, "read", 5, 8, 0)},
              only("channel"));

  EXPECT_EQ(r.of(3), (Edges{{1, "channel"}, {2, "channel"}}));
  EXPECT_EQ(r.of(4), Edges{});
}
Call futex(uint32_t stream, uint32_t op, uint64_t start, uint64_t duration, int64_t result) {
  return {.stream = stream,
          .op = "futex",
          .offset = 64,  // the address
          .result = result,
          .flags = op,
          .values = {1},
          .start_ns = start,
          .duration_ns = duration};
}
TEST(Channel, AFutexWaitComesAfterTheWakeThatEndsIt) {
  // Streams are of processes of their own: shared futexes.
  const Ran r({futex(1, 1, 1000, 10, 1), futex(2, 0, 900, 200, 0), futex(3, 0, 2000, 500, 0),
               futex(1, 1, 2400, 200, 1), on_path(3, "stat", "/a"),
               futex(4, 0, 5000, 10, -ETIMEDOUT), futex(4, 128, 900, 4000, 0)},
              only("channel"));

  EXPECT_EQ(r.of(1), (Edges{{0, "channel"}}));
  EXPECT_EQ(r.of(2), Edges{});                  // the wake before it was another one's
  EXPECT_EQ(r.of(4), (Edges{{3, "channel"}}));  // its own was seen late
  EXPECT_EQ(r.of(5), Edges{});
  EXPECT_EQ(r.of(6), Edges{});  // private: of another process
}
TEST(Channel, WhatMpiDoesToLetItsThreadsGoOnIsItsOwn) {
  const Call made{.stream = 1, .op = "MPI_Comm_dup", .layer = "mpi"};
  Call wake = futex(1, 1, 1000, 10, 1), again = wake;
  wake.marks = FEIGN_AT_DEPTH(1);
  const Ran inside({made, wake, futex(2, 0, 900, 200, 0)}, only("channel"));
  const Ran behind({made, again, futex(2, 0, 900, 200, 0)}, only("channel"));

  EXPECT_EQ(inside.of(2), Edges{});
  EXPECT_EQ(behind.of(2), (Edges{{1, "channel"}}));
}
TEST(Channel, ALockIsHandedOverAndSharedOnesAreShared) {
  const auto flock = [](uint32_t stream, uint32_t how, int64_t result = 0) {
    return Call{.stream = stream,
                .op = "flock",
                .handle = stream,
                .file = 1,
                .result = result,
                .flags = how};
  };
  const Ran r({flock(1, LOCK_EX), flock(2, LOCK_EX | LOCK_NB, -EAGAIN), flock(1, LOCK_UN),
               flock(3, LOCK_SH), flock(4, LOCK_SH), flock(4, LOCK_UN), flock(2, LOCK_EX)},
              only("channel"));

  EXPECT_EQ(r.of(1), (Edges{{0, "channel"}}));
  EXPECT_EQ(r.of(2), (Edges{{1, "channel"}}));
  EXPECT_EQ(r.of(3), (Edges{{2, "channel"}}));
  EXPECT_EQ(r.of(4), (Edges{{2, "channel"}}));
  EXPECT_EQ(r.of(5), Edges{});
  EXPECT_EQ(r.of(6), (Edges{{3, "channel"}, {5, "channel"}}));
}
Call lock(uint32_t stream, uint64_t type, uint64_t start, int64_t result = 0) {
  return {.stream = stream,
          .op = "fcntl",
          .handle = stream,
          .file = 1,
          .result = result,
          .flags = F_SETLK,
          .values = {0, type, SEEK_SET, start, 10}};
}
TEST(Channel, WhoSharesWhatItHeldAloneComesBeforeThoseThatShareIt) {
  const Ran r({lock(1, F_WRLCK, 0), lock(1, F_RDLCK, 0), lock(2, F_RDLCK, 0), lock(3, F_RDLCK, 0),
               lock(2, F_UNLCK, 0), lock(1, F_WRLCK, 0)},
              only("channel"));

  EXPECT_EQ(r.of(2), (Edges{{1, "channel"}}));
  EXPECT_EQ(r.of(3), (Edges{{1, "channel"}}));
  EXPECT_EQ(r.of(4), Edges{});
  EXPECT_EQ(r.of(5), (Edges{{3, "channel"}, {4, "channel"}}));
}
TEST(Channel, WhoIsRefusedALockComesBeforeThoseThatShareItGiveItUp) {
  const Ran r(
      {lock(1, F_RDLCK, 0), lock(2, F_WRLCK, 0, -EAGAIN), lock(1, F_UNLCK, 0), lock(2, F_WRLCK, 0)},
      only("channel"));

  EXPECT_EQ(r.of(1), (Edges{{0, "channel"}}));
  EXPECT_EQ(r.of(2), (Edges{{1, "channel"}}));
  EXPECT_EQ(r.of(3), (Edges{{2, "channel"}}));
}
TEST(Channel, WhoIsRefusedALockDoesNotTakeItFromWhoHoldsItAlone) {
  for (const uint64_t then : {F_RDLCK, F_UNLCK}) {
    const Ran r({lock(1, F_WRLCK, 0), lock(2, F_WRLCK, 5, -EAGAIN), lock(1, then, 0),
                 lock(3, F_RDLCK, 0), lock(4, F_RDLCK, 5)},
                only("channel"));

    EXPECT_EQ(r.of(1), (Edges{{0, "channel"}}));
    EXPECT_EQ(r.of(2), (Edges{{1, "channel"}}));
    EXPECT_EQ(r.of(3), (Edges{{2, "channel"}}));
    EXPECT_EQ(r.of(4), (Edges{{2, "channel"}}));
  }
}
TEST(Channel, ALockMayBeGivenUpByAnotherThreadOfTheProcess) {
  std::vector<feign_stream_info> threads(2);
  threads[0].process = threads[1].process = 77;
  const Ran r({lock(1, F_WRLCK, 0), lock(2, F_UNLCK, 0), lock(3, F_RDLCK, 0)}, only("channel"), 64,
              threads);

  EXPECT_EQ(r.of(1), (Edges{{0, "channel"}}));
  EXPECT_EQ(r.of(2), (Edges{{1, "channel"}}));
}
TEST(Channel, WhoGivesUpWhatHeDoesNotHoldLeavesItToWhoDoes) {
  const Ran r({lock(1, F_WRLCK, 0), lock(2, F_UNLCK, 0), lock(1, F_UNLCK, 0), lock(3, F_RDLCK, 0)},
              only("channel"));

  EXPECT_EQ(r.of(3), (Edges{{2, "channel"}}));
}
TEST(Channel, AnOpenFilesLockIsGivenUpByWhoeverHasItAndGoesWithItsLastDescriptor) {
  const auto own = [](uint32_t stream, uint64_t type, uint64_t start) {
    Call call = lock(stream, type, start);
    call.flags = F_OFD_SETLK;
    return call;
  };
  const Call close{.stream = 1, .op = "close", .handle = 1, .file = 1, .marks = FEIGN_LAST};
  Call gives_up = own(5, F_UNLCK, 0);
  gives_up.handle = 1;
  for (const uint64_t type : {F_WRLCK, F_RDLCK}) {
    const Ran r(
        {own(1, type, 0), own(2, F_WRLCK, 20), close, own(3, F_WRLCK, 0), own(4, F_RDLCK, 20)},
        only("channel"));

    EXPECT_EQ(r.of(3), (Edges{{2, "channel"}}));
    EXPECT_EQ(r.of(4), (Edges{{1, "channel"}}));
  }
  const Ran r({own(1, F_WRLCK, 0), gives_up, own(3, F_RDLCK, 0)}, only("channel"));

  EXPECT_EQ(r.of(2), (Edges{{1, "channel"}}));

  // What it gave up it has no more at its close, also where nobody was seen to hold it then.
  Call whole = lock(1, F_WRLCK, 0), shut = close;
  whole.handle = shut.handle = 9;
  const Ran again({own(1, F_WRLCK, 20), whole, shut, own(1, F_UNLCK, 20), own(2, F_WRLCK, 20),
                   close, own(2, F_UNLCK, 20), own(3, F_RDLCK, 20)},
                  only("channel"));
  EXPECT_EQ(again.of(7), (Edges{{6, "channel"}}));
}
TEST(Channel, AProcesssLocksGoWithADescriptorThatAnotherCallCloses) {
  const Call calls[] = {
      {.stream = 1, .op = "dup2", .handle = 9, .file = 9, .marks = FEIGN_LAST, .handle2 = 1},
      {.stream = 1, .op = "dup2", .handle = 1, .file = 1, .handle2 = 1},
      {.stream = 1, .op = "open", .path = "/g", .handle = 9, .file = 9, .handle2 = 1},
      {.stream = 1, .op = "close_range", .values = {1}},
      {.stream = 1, .op = "execve", .path = "/x", .values = {1}}};
  for (const Call& call : calls) {
    const Ran r({lock(1, F_WRLCK, 0), call, lock(3, F_RDLCK, 0)}, only("channel"));

    EXPECT_EQ(r.of(2), (Edges{{1, "channel"}})) << call.op;
  }
}
TEST(Channel, WhatSomebodyHasLockedIsAsTheLastCallOnItLeftIt) {
  Call shared = lock(1, F_RDLCK, 0), gives_up = lock(2, F_UNLCK, 0);
  std::vector<feign_stream_info> threads(2);
  threads[0].process = threads[1].process = 77;

  EXPECT_EQ(Ran({shared, gives_up}, only("channel"), 64, threads).of(1), (Edges{{0, "channel"}}));
  EXPECT_EQ(Ran({shared, gives_up}, only("channel")).of(1), Edges{});
  shared.flags = gives_up.flags = F_OFD_SETLK;
  EXPECT_EQ(Ran({shared, gives_up}, only("channel")).of(1), Edges{});
  gives_up.handle = 1;
  EXPECT_EQ(Ran({shared, gives_up}, only("channel")).of(1), (Edges{{0, "channel"}}));

  // Of the same bytes; and closes, of which none gives up what one before it has, are in no order.
  const auto closed = [](uint32_t stream) {
    return Call{.stream = stream, .op = "close", .handle = 10 + stream, .file = 1};
  };
  const Ran r({lock(1, F_RDLCK, 0), lock(2, F_RDLCK, 100), closed(1), closed(2), closed(1),
               lock(2, F_RDLCK, 0)},
              only("channel"), 64, threads);
  EXPECT_EQ(r.of(1), Edges{});
  EXPECT_EQ(r.of(2), (Edges{{1, "channel"}}));
  EXPECT_EQ(r.of(3), (Edges{{2, "channel"}}));
  EXPECT_EQ(r.of(4), Edges{});
  EXPECT_EQ(r.of(5), (Edges{{4, "channel"}}));
}
TEST(Channel, AProcessDoesNotGiveUpWhatAnOpenFileOfItsHasLocked) {
  Call of_file = lock(1, F_WRLCK, 0), gives_up = lock(1, F_UNLCK, 0);
  of_file.flags = gives_up.flags = F_OFD_SETLK;
  const Ran r({of_file, lock(1, F_UNLCK, 0), gives_up, lock(2, F_RDLCK, 0)}, only("channel"));

  EXPECT_EQ(r.of(3), (Edges{{2, "channel"}}));
}
TEST(Channel, ADescriptorThatIsForNamesAloneGivesUpNoLocks) {
  const Call open{.stream = 1, .op = "open", .path = "/f", .handle = 5, .file = 1, .flags = O_PATH};
  const Call close{.stream = 1, .op = "close", .handle = 5, .file = 1, .marks = FEIGN_LAST};
  const Ran r({open, lock(1, F_WRLCK, 0), close, lock(1, F_UNLCK, 0), lock(2, F_RDLCK, 0)},
              only("channel"));

  EXPECT_EQ(r.of(4), (Edges{{3, "channel"}}));
}
TEST(Channel, LocksOfBothKindsAreApart) {
  const Call flock{.stream = 2, .op = "flock", .handle = 2, .file = 1, .flags = LOCK_EX};
  const Ran r({lock(1, F_WRLCK, 0), flock, lock(1, F_UNLCK, 0), lock(3, F_WRLCK, 0)},
              only("channel"));

  EXPECT_EQ(r.of(1), Edges{});
  EXPECT_EQ(r.of(2), Edges{});
  EXPECT_EQ(r.of(3), (Edges{{2, "channel"}}));
}
TEST(Channel, RecordLocksOfOtherBytesAreApart) {
  const Ran r({lock(1, F_WRLCK, 0), lock(2, F_WRLCK, 10), lock(1, F_UNLCK, 0), lock(3, F_WRLCK, 5)},
              only("channel"));

  EXPECT_EQ(r.of(1), Edges{});
  EXPECT_EQ(r.of(3), (Edges{{1, "channel"}, {2, "channel"}}));
}

TEST(Channel, OfManyLocksInAFileEachIsGivenUpByItself) {
  std::vector<Call> calls;
  for (uint64_t i = 0; i < 600; ++i) calls.push_back(lock(1, F_WRLCK, 20 * i));
  calls.push_back(lock(1, F_UNLCK, 0));
  calls.push_back(lock(2, F_RDLCK, 0));
  const Ran r(calls, only("channel"));

  EXPECT_EQ(r.of(601), (Edges{{600, "channel"}}));
}

// ---- the others --------------------------------------------------------------------------------

Call mpi(uint32_t stream, const char* op, std::vector<uint64_t> values) {
  return {.stream = stream, .op = op, .values = std::move(values), .layer = "mpi"};
}
std::vector<feign_stream_info> two_ranks() {
  std::vector<feign_stream_info> ranks(2);
  ranks[0].rank = 1;  // rank 0 is taken for none here
  ranks[1].rank = 2;
  return ranks;
}
TEST(Mpi, WhoWaitsForARequestBeforeWhatItWaitsForHasComeWaitsForThat) {
  for (const char* by : {"MPI_Irecv", "MPI_Recv_init", "MPI_Ibarrier"})
    for (const bool early : {false, true}) {
      const bool meets = std::string_view(by) == "MPI_Ibarrier";
      std::vector<Call> calls{on_path(2, "stat", "/a")};
      if (meets)
        calls.push_back(mpi(1, by, {kWorld, 7}));
      else
        calls.push_back(mpi(1, by, {1, 0, 2, 5, kWorld, 7}));
      if (std::string_view(by) == "MPI_Recv_init") calls.push_back(mpi(1, "MPI_Start", {7}));
      const Call waits = mpi(1, "MPI_Wait", {7});
      if (early) calls.push_back(waits);
      calls.push_back(meets ? mpi(2, by, {kWorld, 9}) : mpi(2, "MPI_Send", {1, 0, 1, 5, kWorld}));
      if (!early) calls.push_back(waits);
      calls.push_back(on_path(1, "stat", "/b"));

      const Ran r(calls, only("mpi"), 64, two_ranks());

      EXPECT_TRUE(r.ordered(0, calls.size() - 1)) << by << (early ? ", early" : "");
    }
}
TEST(Others, RanksThatAreApartWaitForNoOther) {
  std::vector<feign_stream_info> streams(5);
  streams[0].rank = 1;
  streams[1].rank = 2;
  streams[2].rank = 1;
  streams[3].rank = -1;  // a shell above rank 3
  streams[4].rank = 3;
  streams[4].parent = 4;
  std::vector<Call> calls = {mpi(1, "MPI_Barrier", {kWorld}), mpi(2, "MPI_Barrier", {kWorld}),
                             mpi(5, "MPI_Barrier", {kWorld}), on_path(1, "mkdir", "/c"),
                             on_path(2, "stat", "/c"),        on_path(3, "stat", "/c"),
                             on_path(5, "mkdir", "/d"),       on_path(4, "stat", "/d"),
                             on_path(4, "stat", "/c")};
  calls[4].depends = {{1, 0, 4 << 16}};
  Options options = only("path+recorded");

  const Ran together(calls, options, 64, streams);
  EXPECT_EQ(together.of(5), (Edges{{3, "path"}}));
  EXPECT_EQ(together.of(8), (Edges{{3, "path"}}));
  options.emplace_back("ranks", "apart");
  const Ran apart(calls, options, 64, streams);
  EXPECT_EQ(apart.of(4), (Edges{{3, "recorded"}}));
  EXPECT_EQ(apart.of(5), (Edges{{3, "path"}}));
  EXPECT_EQ(apart.of(7), (Edges{{6, "path"}}));
  EXPECT_EQ(apart.of(8), Edges{});
}
// Nobody can wait for a message there.
TEST(Others, RanksThatAreApartHaveTheirOrderBeforeTheirMessagesAndAfterAllOfThem) {
  const auto in_call = [](Call c) {
    c.marks = 1u << 24;
    return c;
  };
  const auto whole = [](uint32_t stream, const char* op) {
    Call c = mpi(stream, op, {});
    c.duration_ns = 5000;
    return c;
  };
  const std::vector<Call> calls = {
      on_path(1, "mkdir", "/a"),
      whole(1, "MPI_Init"),
      in_call(on_path(1, "mkdir", "/b")),
      whole(2, "MPI_Init"),
      in_call(on_path(2, "stat", "/a")),
      in_call(on_path(2, "stat", "/b")),
      mpi(1, "MPI_Barrier", {kWorld}),
      on_path(1, "mkdir", "/c"),
      mpi(2, "MPI_Barrier", {kWorld}),
      on_path(2, "stat", "/c"),  // may be made while 1 waits for a message of 2
      on_path(2, "rmdir", "/b"),
      whole(1, "MPI_Finalize"),
      in_call(on_path(1, "stat", "/b")),  // 2 may still call MPI
      whole(2, "MPI_Finalize"),
      in_call(on_path(1, "rmdir", "/b")),
      in_call(on_path(2, "stat", "/c"))};
  Options options = only("path");
  options.emplace_back("ranks", "apart");

  const Ran r(calls, options, 64, two_ranks());

  EXPECT_EQ(r.of(4), (Edges{{0, "path"}}));
  EXPECT_EQ(r.of(5), (Edges{{2, "path"}}));
  EXPECT_EQ(r.of(9), Edges{});
  EXPECT_EQ(r.of(10), Edges{});
  EXPECT_EQ(r.of(12), Edges{});
  EXPECT_EQ(r.of(14), (Edges{{10, "path"}}));
  EXPECT_EQ(r.of(15), (Edges{{7, "path"}}));
}
TEST(Others, WhatLiesInCollectiveCallsOnFilesComesInItsOrderOnceBothHaveComeThere) {
  const auto mpiio = [](uint32_t stream, const char* op, std::vector<uint64_t> values) {
    return Call{.stream = stream,
                .op = op,
                .handle = 10 + stream,
                .values = std::move(values),
                .duration_ns = 5000,
                .layer = "mpiio"};
  };
  const auto in_call = [](uint32_t stream, const char* op) {
    Call c = on_path(stream, op, "/c");
    c.marks = 1u << 24;
    return c;
  };
  const std::vector<Call> calls = {
      mpiio(1, "MPI_File_open", {kWorld}),
      in_call(1, "mkdir"),
      mpiio(2, "MPI_File_open", {kWorld}),
      in_call(2, "stat"),
      mpiio(1, "MPI_File_close", {}),
      in_call(1, "rmdir"),
      in_call(2, "stat"),  // the other has not come to what that lies in
      mpiio(2, "MPI_File_close", {}),
      in_call(2, "stat")};
  for (const char* ranks : {"apart", "together"}) {
    Options options = only("path+threads");
    options.emplace_back("ranks", ranks);

    EXPECT_EQ(Ran(calls, options, 64, two_ranks()).edges(), 0u);
    options.emplace_back("io", "order");
    const Ran r(calls, options, 64, two_ranks());

    EXPECT_EQ(r.of(3), (Edges{{1, "path"}}));
    EXPECT_FALSE(r.ordered(5, 6));
    EXPECT_EQ(r.of(8), (Edges{{5, "path"}}));
  }
}
TEST(Others, WhatComesAfterACollectiveCallOnAFileIsNotWaitedForBeforeAllHaveComeThere) {
  const auto mpiio = [](uint32_t stream, const char* op, std::vector<uint64_t> values) {
    return Call{.stream = stream,
                .op = op,
                .handle = 10 + stream,
                .values = std::move(values),
                .layer = "mpiio"};
  };
  const std::vector<Call> calls = {mpiio(1, "MPI_File_open", {kWorld}),
                                   mpiio(2, "MPI_File_open", {kWorld}),
                                   on_path(1, "mkdir", "/a"),
                                   on_path(1, "mkdir", "/c"),
                                   mpiio(1, "MPI_File_iread_all", {8, 0, 7}),
                                   mpi(1, "MPI_Wait", {7}),  // all had its data
                                   on_path(1, "mkdir", "/b"),
                                   on_path(1, "rmdir", "/c"),
                                   on_path(2, "stat", "/a"),
                                   on_path(2, "stat", "/c"),  // it is there, or no more
                                   on_path(2, "stat", "/b"),
                                   mpiio(2, "MPI_File_iread_all", {8, 0, 7}),
                                   on_path(2, "stat", "/b")};
  Options options = only("path+threads");

  EXPECT_EQ(Ran(calls, options, 64, two_ranks()).of(9), (Edges{{7, "path"}}));
  options.emplace_back("io", "order");
  const Ran r(calls, options, 64, two_ranks());

  EXPECT_EQ(r.of(8), (Edges{{2, "path"}}));
  EXPECT_EQ(r.of(9), (Edges{{3, "path"}}));
  EXPECT_EQ(r.of(10), Edges{});
  EXPECT_EQ(r.of(12), (Edges{{6, "path"}}));
}
TEST(Others, WhatAThreadDoesForCallsOnFilesComesAfterTheseAndBeforeWhoWaitedForThem) {
  std::vector<feign_stream_info> streams(2);
  for (feign_stream_info& s : streams) {
    s.rank = 1;
    s.process = 101;
  }
  streams[1].parent = 1;
  streams[1].parent_id = 2 << 16;
  const auto at = [](Call c, uint64_t start_ns, uint64_t duration_ns = 10) {
    c.start_ns = start_ns;
    c.duration_ns = duration_ns;
    return c;
  };
  const auto mpiio = [&](const char* op, uint64_t start_ns) {
    return at({.stream = 1, .op = op, .handle = 10, .layer = "mpiio"}, start_ns, 50);
  };
  const std::vector<Call> calls = {
      mpiio("MPI_File_iwrite_at", 1000),
      at({.stream = 1, .op = "clone", .result = 102, .marks = 1u << 24}, 1010),
      at(on_path(2, "stat", "/a"), 1100),
      at(on_path(1, "stat", "/a"), 1200),  // need not wait for it
      at(mpi(1, "MPI_Wait", {7}), 1300),
      at(on_path(1, "stat", "/b"), 1400),
      mpiio("MPI_File_write_at", 1500),
      at(on_path(2, "stat", "/c"), 1510),
      at(on_path(1, "stat", "/d"), 1600)};
  Options options = only("threads");
  options.emplace_back("ranks", "apart");

  EXPECT_EQ(Ran(calls, options, 64, streams).edges(), 0u);
  options.emplace_back("io", "order");
  const Ran r(calls, options, 64, streams);

  EXPECT_EQ(r.of(2), (Edges{{0, "threads"}}));
  EXPECT_EQ(r.of(3), Edges{});
  EXPECT_EQ(r.of(5), (Edges{{2, "threads"}}));
  EXPECT_EQ(r.of(7), (Edges{{6, "threads"}}));
  EXPECT_EQ(r.of(8), (Edges{{7, "threads"}}));
}
// Ranks that share a process, or make the posix calls in it, come together on that communicator.
TEST(Others, CollectiveCallsOnAFileAreInOrderWithThoseOfItsCommunicatorUnlessTheyOverlapped) {
  std::vector<feign_stream_info> streams(2);
  for (feign_stream_info& s : streams) {
    s.rank = 1;
    s.process = 101;
  }
  const auto at = [](Call c, uint64_t start_ns) {
    c.start_ns = start_ns;
    c.duration_ns = 50;
    return c;
  };
  const auto mpiio = [&](const char* op, uint64_t start_ns, std::vector<uint64_t> values = {}) {
    const Call c{.stream = 1, .op = op, .handle = 10, .values = std::move(values), .layer = "mpiio"};
    return at(c, start_ns);
  };
  const std::vector<Call> calls = {mpiio("MPI_File_open", 1000, {kWorld}),
                                   at(mpi(2, "MPI_Barrier", {kWorld}), 1100),
                                   mpiio("MPI_File_sync", 1200),
                                   at(mpi(2, "MPI_Barrier", {kWorld}), 1300),
                                   mpiio("MPI_File_sync", 1340),  // they do not wait for each other
                                   at(mpi(2, "MPI_Barrier", {kWorld}), 1400),
                                   mpiio("MPI_File_close", 1500)};
  Options options = only("threads");
  options.emplace_back("ranks", "apart");

  const Ran r(calls, options, 64, streams);

  EXPECT_EQ(r.of(1), (Edges{{0, "threads"}}));
  EXPECT_EQ(r.of(2), (Edges{{1, "threads"}}));
  EXPECT_EQ(r.of(3), (Edges{{2, "threads"}}));
  EXPECT_EQ(r.of(4), Edges{});
  EXPECT_EQ(r.of(5), (Edges{{4, "threads"}}));
  EXPECT_EQ(r.of(6), (Edges{{5, "threads"}}));
}
TEST(Others, RecordedEdgesAreKeptUnlessTheyFollow) {
  Call third = on_path(3, "stat", "/c");
  third.depends = {{1, 0, 1 << 16}, {2, 0, 2 << 16}};
  Call second = on_path(2, "stat", "/b");
  second.depends = {{1, 0, 1 << 16}};
  const std::vector<Call> calls = {on_path(1, "stat", "/a"), second, third};

  EXPECT_EQ(Ran(calls).of(2), (Edges{{1, "recorded"}}));
  EXPECT_EQ(Ran(calls, {{"reduce", "no"}}).of(2), (Edges{{0, "recorded"}, {1, "recorded"}}));
  EXPECT_EQ(Ran(calls, only("handle")).edges(), 0u);
}
TEST(Others, TraceIsATotalOrderAndNoneIsNone) {
  std::vector<Call> calls;
  for (uint32_t i = 0; i < 12; ++i) calls.push_back(on_path(1 + i % 3, "stat", "/a"));
  const Ran total(calls, only("trace"));

  EXPECT_TRUE(total.ordered(0, 11));
  EXPECT_EQ(total.edges(), 11u);
  EXPECT_EQ(Ran(calls, only("none")).edges(), 0u);
}
TEST(Others, WindowGoesByTime) {
  const auto call = [](uint32_t stream, uint64_t start) {
    return Call{
        .stream = stream, .op = "stat", .path = "/a", .start_ns = start, .duration_ns = 100};
  };
  const Ran r({call(1, 1000), call(1, 2000), call(2, 2150), call(3, 3100)},
              {{"rules", "none"}, {"window", "1us"}});

  EXPECT_EQ(r.of(2), (Edges{{0, "window"}}));
  EXPECT_EQ(r.of(3), (Edges{{1, "window"}}));
}

std::string edge_file(const std::string& text) {
  const std::string path = ::testing::TempDir() + "/feign-edges.txt";
  FILE* f = fopen(path.c_str(), "w");
  fputs(text.c_str(), f);
  fclose(f);
  return path;
}
TEST(Others, ExplicitEdgesComeFromAFile) {
  const std::vector<Call> calls = {on_path(1, "stat", "/a"), on_path(2, "stat", "/a"),
                                   on_path(3, "stat", "/a")};
  const std::string path = edge_file("# later after earlier\n\n2 after 0  # why\n2 after 1\n");

  EXPECT_EQ(Ran(calls, {{"rules", "none"}, {"edges", path}}).of(2),
            (Edges{{0, "explicit"}, {1, "explicit"}}));
}
TEST(Others, BadEdgesAreRefusedWithFileAndLine) {
  const std::vector<Call> calls = {on_path(1, "stat", "/a"), on_path(2, "stat", "/a")};
  const auto error = [&](const std::string& text) {
    return Ran(calls, {{"edges", edge_file(text)}}).error;
  };

  EXPECT_NE(error("1 after 0\n1 before 0\n").find("feign-edges.txt:2: \"1 before 0\": want"),
            std::string::npos);
  EXPECT_NE(error("0 after 1\n").find(":1: activity 0 after activity 1"), std::string::npos);
  EXPECT_NE(error("1 after 1\n").find("wait for each other"), std::string::npos);
  EXPECT_NE(error("9 after 1\n").find("activity 9 is not in the trace, which has 2"),
            std::string::npos);
  EXPECT_NE(Ran({}, {{"edges", "/no/such"}}).error.find("/no/such"), std::string::npos);
  EXPECT_NE(Ran({}, {{"rules", "handle+fil"}}).error.find("no rule \"fil\": want handle"),
            std::string::npos);
  EXPECT_NE(Ran({}, {{"rules", "window"}}).error.find("window=DURATION"), std::string::npos);
}

TEST(Chains, TellTheLongestAndTheWidest) {
  const std::vector<std::tuple<uint32_t, uint64_t, std::vector<Dependency>>> calls = {
      {1, 10, {}}, {2, 20, {{1, 0, 10}}}, {1, 30, {}},          {2, 40, {}},
      {1, 50, {}}, {1, 60, {{2, 0, 45}}}, {3, 70, {{2, 0, 15}}}};
  const auto of = [&](size_t most) {
    Chains chains(most);
    for (const auto& [stream, id, depends] : calls) {
      Record r{};
      r.a.stream = stream;
      r.a.id = id;
      r.depends = depends;
      chains.add(r);
    }
    return std::pair(chains.longest(), chains.widest());
  };

  EXPECT_EQ(of(1000), (std::pair<uint64_t, uint64_t>(4, 2)));
  EXPECT_GE(of(3).first, 4u);  // coarse, never too low
}

// ---- reduction ---------------------------------------------------------------------------------

std::vector<Call> random_calls(unsigned seed, size_t count, uint32_t streams) {
  std::mt19937 random(seed);
  const char* const paths[] = {"/a", "/d", "/d/a", "/d/b", "/d/e/f"};
  std::vector<Call> calls;
  for (size_t i = 0; i < count; ++i) {
    const uint32_t s = 1 + random() % streams, f = 1 + random() % 3;
    const char* path = paths[random() % 5];
    switch (random() % 9) {
      case 0:
        calls.push_back(data(s, "pread64", f, f, random() % 8, 1 + random() % 4));
        break;
      case 1:
        calls.push_back(data(s, "pwrite64", f, f, random() % 8, 1 + random() % 4));
        break;
      case 2:
        calls.push_back(data(s, "read", f, f, random() % 8, 2));
        break;
      case 3:
        calls.push_back(on_path(s, "stat", path, -ENOENT));
        break;
      case 4:
        calls.push_back(on_path(s, "mkdir", path, 0, 10 + random() % 3));
        break;
      case 5:
        calls.push_back(on_path(s, "rmdir", path, 0, 10 + random() % 3));
        break;
      case 6:
        calls.push_back(pipe_end(s, "write", 8, 1 + random() % 9));
        break;
      case 7:
        calls.push_back(pipe_end(s, "read", 9, 1 + random() % 9));
        break;
      default:
        calls.push_back(close_call(s, f, f, random() % 2 != 0));
    }
  }
  return calls;
}

class Reduction : public ::testing::TestWithParam<unsigned> {};

TEST_P(Reduction, KeepsTheClosureAndNoEdgeTooMany) {
  for (const uint32_t streams : {2, 3, 8}) {
    const auto calls = random_calls(GetParam(), 120, streams);
    const Ran all(calls, {{"reduce", "no"}}), reduced(calls);
    const auto closure = reduced.closure();

    ASSERT_EQ(closure, all.closure());
    ASSERT_LE(reduced.edges(), all.edges());
    ASSERT_GT(reduced.edges(), 0u);
    for (size_t e = 0; e < reduced.edges(); ++e) ASSERT_NE(reduced.closure(e), closure) << e;
  }
}
TEST_P(Reduction, IsTheSameAtEveryBatchSize) {
  const auto calls = random_calls(GetParam(), 200, 4);
  const Ran one(calls, {}, 1);
  for (const size_t batch : {2, 3, 64}) {
    const Ran other(calls, {}, batch);
    for (size_t i = 0; i < calls.size(); ++i) ASSERT_EQ(one.of(i), other.of(i));
  }
}
INSTANTIATE_TEST_SUITE_P(Seeds, Reduction, ::testing::Range(1u, 21u));

}  // namespace
