// SPDX-License-Identifier: MIT
// The native format: what goes in comes out, from anywhere, and damage is told.
#include "trace/native.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <random>

#include "layers/posix_ops.h"
#include "plugin/plugin.h"
#include "trace/native_format.h"
#include "window/pipeline.h"

namespace {

using namespace feign;

struct File {
  int fd = memfd_create("native", MFD_CLOEXEC);
  ~File() { close(fd); }
  std::string bytes() const {
    std::string s(static_cast<size_t>(lseek(fd, 0, SEEK_END)), '\0');
    EXPECT_EQ(pread(fd, s.data(), s.size(), 0), static_cast<ssize_t>(s.size()));
    return s;
  }
};
int copy_of(const std::string& bytes) {
  const int fd = memfd_create("copy", MFD_CLOEXEC);
  EXPECT_EQ(write(fd, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  return fd;
}

struct Written {
  Tables tables;
  std::vector<std::unique_ptr<Record>> records;
  std::vector<Needed> needed;
  File file;
};

std::unique_ptr<Written> random_trace(unsigned seed, size_t count, uint32_t streams,
                                      size_t memory = size_t{8} << 20) {
  auto w = std::make_unique<Written>();
  std::mt19937_64 random(seed);
  const auto below = [&](uint64_t n) { return random() % n; };
  for (uint32_t s = 0; s < streams; ++s) {
    feign_stream_info info{};
    info.struct_size = sizeof info;
    info.rank = s % 3 == 0 ? static_cast<int32_t>(s) : -1;
    info.process = info.thread = 1000 + s;
    info.parent = s;
    info.parent_id = s;
    (void)w->tables.streams.add(info);
  }
  w->tables.sources = {"a.strace", "b.strace"};
  w->tables.left_out[{"futex", "waits"}] = {7, 99};
  w->tables.notes = {"taken for granted"};
  w->tables.warnings = {"doubtful"};
  NativeWriter::Options options;
  options.memory = memory;
  NativeWriter writer(w->file.fd, "test", w->tables, options);
  uint64_t id = 0, clock = 0;
  std::map<uint32_t, std::vector<uint64_t>> last_values;
  const uint32_t ops[] = {FEIGN_POSIX_READ,   FEIGN_POSIX_WRITE, FEIGN_POSIX_OPENAT,
                          FEIGN_POSIX_RENAME, FEIGN_POSIX_READV, FEIGN_POSIX_CLOSE};
  for (size_t i = 0; i < count; ++i) {
    auto r = std::make_unique<Record>();
    feign_activity& a = r->a;
    a.id = id += below(4) == 0 ? below(1u << 20) + 1 : 1u << 16;
    a.stream = 1 + static_cast<uint32_t>(below(streams));
    clock += below(1000);
    a.start_ns = clock - std::min<uint64_t>(clock, below(500));
    a.duration_ns = below(3) == 0 ? below(UINT32_MAX) : 100;
    a.offset = below(3) == 0 ? random() : i * 4096;
    a.length = below(3) == 0 ? random() : 4096;
    a.result =
        below(4) == 0 ? -static_cast<int64_t>(below(133)) : static_cast<int64_t>(a.length >> 1);
    a.op = ops[below(6)];
    a.handle = static_cast<uint32_t>(below(5));
    a.file = static_cast<uint32_t>(below(5));
    a.path = w->tables.strings.intern("/dir/file" + std::to_string(below(50)));
    if (a.op == FEIGN_POSIX_RENAME)
      a.path2 = w->tables.strings.intern(std::string("/new\n\0x", 7) + std::to_string(below(9)));
    a.flags = below(2) ? 0 : static_cast<uint32_t>(random());
    a.mode = below(2) ? 0644 : 0;
    a.handle2 = below(5) ? 0 : 9;
    a.compute_ns = below(3) ? below(1000) : 0;
    a.sync_ns = below(5) ? 0 : below(1000);
    a.place = FEIGN_PLACE(below(2), i + 1);
    a.marks = FEIGN_RESOLVED | (below(9) ? 0u : uint32_t{FEIGN_INJECTED});
    if (a.op == FEIGN_POSIX_READV) {
      std::vector<uint64_t> values;
      // Of any length; and every other time those that the op had last.
      for (uint64_t v = below(40); v != 0; --v) values.push_back(random() >> below(64));
      std::vector<uint64_t>& last = last_values[a.op];
      if (below(2) == 0 && !last.empty()) values = last;
      r->set_values(values);
      last = values;
    }
    if (below(10) == 0 && id > 1) {
      a.marks |= FEIGN_DEPENDS;
      r->depends.push_back(
          {1 + static_cast<uint32_t>(below(streams)), w->tables.strings.intern("rule"), id - 1});
    }
    EXPECT_TRUE(writer.add(*r));
    w->records.push_back(std::move(r));
  }
  w->needed.resize(4);
  w->needed[0].mode = 0644;
  w->needed[0].denied = 2;
  w->needed[0].size = 123;
  w->needed[0].path = "/a";
  w->needed[0].data = {{5, 6}, {100, 20}};
  w->needed[0].attributes = {{"user.one", 9}};
  w->needed[1].type = Needed::kSymlink;
  w->needed[1].path = "/l";
  w->needed[1].target = "a";
  w->needed[2].type = Needed::kAbsent;
  w->needed[2].changed = true;
  w->needed[2].path = "/x";
  w->needed[3].type = Needed::kFifo;
  w->needed[3].path = "/y";
  EXPECT_TRUE(writer.finish(w->needed));
  return w;
}

// All fields that the format keeps, with strings as text, so that two tables can be compared.
std::string words(const Record& r, const Tables& t, uint32_t stream_shift = 0) {
  const feign_activity& a = r.a;
  std::string s;
  for (const uint64_t v :
       {a.id, a.start_ns, a.duration_ns, a.offset, a.length, static_cast<uint64_t>(a.result),
        uint64_t{a.op}, uint64_t{a.stream - stream_shift}, uint64_t{a.handle}, uint64_t{a.file},
        uint64_t{a.flags}, a.compute_ns, a.sync_ns, uint64_t{a.handle2}, uint64_t{a.mode}, a.place,
        uint64_t{a.marks}})
    s += std::to_string(v) + " ";
  s += t.strings.text(a.path);
  s += '|';
  s += t.strings.text(a.path2);
  for (uint32_t i = 0; i < a.value_count; ++i) s += " v" + std::to_string(a.values[i]);
  for (const Dependency& d : r.depends)
    s += " d" + std::to_string(d.stream) + ":" + std::to_string(d.id) + ":" +
         std::string(t.strings.text(d.rule));
  return s;
}

std::vector<std::pair<uint64_t, std::string>> read(const std::shared_ptr<NativeReader>& reader,
                                                   const Tables& tables,
                                                   NativeReader::Range range) {
  NativeReader::Cursor cursor(reader, std::move(range));
  std::vector<std::pair<uint64_t, std::string>> out;
  Record r{};
  uint64_t number = 0;
  while (true) {
    auto more = cursor.next(r, number);
    EXPECT_TRUE(more) << more.error().text();
    if (!more || !*more) return out;
    out.emplace_back(number, words(r, tables));
  }
}

class RoundTrip : public ::testing::TestWithParam<std::tuple<unsigned, size_t, uint32_t, size_t>> {
};

TEST_P(RoundTrip, EveryFieldOfEveryActivityComesBack) {
  const unsigned seed =
      std::get<0>(GetParam());  // names of their own: lambdas may not take bindings
  const size_t count = std::get<1>(GetParam()), memory = std::get<3>(GetParam());
  const uint32_t streams = std::get<2>(GetParam());
  const auto w = random_trace(seed, count, streams, memory);
  Tables tables;
  auto reader = NativeReader::open(dup(w->file.fd), "test", tables);
  ASSERT_TRUE(reader) << reader.error().text();
  EXPECT_EQ((*reader)->totals().activities, count);
  EXPECT_EQ(tables.sources, w->tables.sources);
  ASSERT_EQ((*reader)->needed().size(), 4u);
  EXPECT_EQ((*reader)->needed()[0].denied, 2u);
  EXPECT_EQ((*reader)->needed()[0].data, w->needed[0].data);
  EXPECT_EQ((*reader)->needed()[0].attributes, w->needed[0].attributes);
  EXPECT_TRUE((*reader)->needed()[2].changed && !(*reader)->needed()[0].changed);
  EXPECT_EQ((*reader)->needed()[3].type, Needed::kFifo);
  EXPECT_EQ((*reader)->needed()[1].target, "a");
  EXPECT_EQ((tables.left_out[{"futex", "waits"}].count), 7u);
  EXPECT_EQ(tables.notes, (std::vector<std::string>{"doubtful", "taken for granted"}));
  EXPECT_EQ(tables.streams.info(streams).thread, 1000 + streams - 1);
  EXPECT_EQ(tables.streams.info(streams).parent, streams - 1);

  std::vector<std::pair<uint64_t, std::string>> want;
  for (size_t i = 0; i < count; ++i) want.emplace_back(i, words(*w->records[i], w->tables));
  EXPECT_EQ(read(*reader, tables, {}), want);

  // By stream, from a number, from a time, by path.
  const auto where = [&](auto keep) {
    std::vector<std::pair<uint64_t, std::string>> out;
    for (size_t i = 0; i < count; ++i)
      if (keep(i, w->records[i]->a)) out.push_back(want[i]);
    return out;
  };
  NativeReader::Range range;
  range.streams = {streams};
  EXPECT_EQ(read(*reader, tables, range),
            where([&](size_t, const feign_activity& a) { return a.stream == streams; }));
  range = {};
  range.from = count / 2;
  EXPECT_EQ(read(*reader, tables, range),
            where([&](size_t i, const feign_activity&) { return i >= count / 2; }));
  range = {};
  range.from_ns = count != 0 ? w->records[count / 2]->a.start_ns : 0;
  EXPECT_EQ(read(*reader, tables, range),
            where([&](size_t, const feign_activity& a) { return a.start_ns >= range.from_ns; }));
  range = {};
  range.path = "/dir/file7";
  EXPECT_EQ(read(*reader, tables, range), where([&](size_t, const feign_activity& a) {
              return w->tables.strings.text(a.path) == "/dir/file7";
            }));
}
INSTANTIATE_TEST_SUITE_P(Traces, RoundTrip,
                         ::testing::Values(std::tuple{1u, size_t{20000}, 1u, size_t{8} << 20},
                                           std::tuple{2u, size_t{20000}, 7u, size_t{8} << 20},
                                           std::tuple{3u, size_t{5000}, 300u, size_t{4096}},
                                           std::tuple{4u, size_t{1}, 1u, size_t{1}},
                                           std::tuple{5u, size_t{9000}, 4096u, size_t{1} << 16}));

TEST(Native, AnEmptyTraceIsATrace) {
  const auto w = random_trace(1, 0, 1);
  Tables tables;
  auto reader = NativeReader::open(dup(w->file.fd), "test", tables);
  ASSERT_TRUE(reader);
  EXPECT_TRUE(read(*reader, tables, {}).empty());
}

TEST(Native, EveryLengthTooShortIsAnError) {
  const auto w = random_trace(2, 60, 3);
  const std::string good = w->file.bytes();
  for (size_t cut = 0; cut < good.size(); ++cut) {
    Tables tables;
    auto reader = NativeReader::open(copy_of(good.substr(0, cut)), "cut", tables);
    ASSERT_FALSE(reader) << cut;
    EXPECT_NE(reader.error().text().find("cut: "), std::string::npos);
  }
}

TEST(Native, EveryChangedByteIsToldOrChangesNothing) {
  const auto w = random_trace(3, 60, 3);
  const std::string good = w->file.bytes();
  Tables first;
  auto reference = NativeReader::open(copy_of(good), "good", first);
  ASSERT_TRUE(reference);
  const auto want = read(*reference, first, {});
  size_t told = 0;
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x5A);
    Tables tables;
    auto reader = NativeReader::open(copy_of(bad), "bad", tables);
    if (!reader) {
      ++told;
      continue;
    }
    NativeReader::Cursor cursor(*reader, {});
    Record r{};
    uint64_t number = 0;
    std::vector<std::pair<uint64_t, std::string>> got;
    bool error = false;
    while (true) {
      auto more = cursor.next(r, number);
      if (!more) error = true;
      if (!more || !*more) break;
      got.emplace_back(number, words(r, tables));
    }
    told += error;
    if (!error) {
      EXPECT_EQ(got, want) << at;
    }
  }
  EXPECT_GT(told, good.size() * 9 / 10);
}

TEST(Native, ALayerThatIsNotKnownComesAsItIsDescribed) {
  Written w;
  static constexpr feign_arg_info kArgs[] = {
      {"name", FEIGN_ARG_STRING, FEIGN_SLOT_VALUE, 0, 0, nullptr}};
  static constexpr feign_op_info kOne = {sizeof kOne,
                                         0,
                                         "put",
                                         "house",
                                         FEIGN_KIND_WRITE,
                                         FEIGN_RESULT_EXACT,
                                         1,
                                         sizeof(feign_arg_info),
                                         kArgs};
  static constexpr feign_op_info kTwo = {sizeof kTwo,
                                         0,
                                         "get",
                                         "house",
                                         FEIGN_KIND_READ,
                                         FEIGN_RESULT_SUCCESS,
                                         0,
                                         sizeof(feign_arg_info),
                                         nullptr};
  static constexpr const feign_op_info* kOps[] = {&kOne, &kTwo};
  auto first = w.tables.ops.add({sizeof(feign_layer), 2, "house", kOps});
  ASSERT_TRUE(first);
  feign_stream_info info{};
  info.struct_size = sizeof info;
  (void)w.tables.streams.add(info);
  NativeWriter writer(w.file.fd, "test", w.tables, {});
  Record r{};
  r.a.id = 65536;
  r.a.stream = 1;
  r.a.op = *first;
  const uint64_t name = w.tables.strings.intern("what it is called");
  r.set_values({&name, 1});
  ASSERT_TRUE(writer.add(r));
  ASSERT_TRUE(writer.finish({}));

  Tables tables;
  auto reader = NativeReader::open(dup(w.file.fd), "test", tables);
  ASSERT_TRUE(reader) << reader.error().text();
  NativeReader::Cursor cursor(*reader, {});
  Record got{};
  uint64_t number = 0;
  auto more = cursor.next(got, number);
  ASSERT_TRUE(more && *more);
  EXPECT_STREQ(tables.ops.info(got.a.op)->name, "put");
  EXPECT_STREQ(tables.ops.info(got.a.op)->layer, "house");
  ASSERT_EQ(got.a.value_count, 1u);
  EXPECT_EQ(tables.strings.text(static_cast<uint32_t>(got.a.values[0])), "what it is called");
}

// What is kept of each op, in every stream that has begun, is memory as blocks are.
TEST(Native, StreamsOfATraceOfVeryManyOpsTakeNoMoreMemoryThanIsAllowed) {
  Written w;
  constexpr uint32_t kOps = 2'000, kStreams = 100;
  const feign_op_info one = {sizeof one,
                             0,
                             "get",
                             "house",
                             FEIGN_KIND_OTHER,
                             FEIGN_RESULT_SUCCESS,
                             0,
                             sizeof(feign_arg_info),
                             nullptr};
  const std::vector<const feign_op_info*> ops(kOps, &one);
  auto first = w.tables.ops.add({sizeof(feign_layer), kOps, "house", ops.data()});
  ASSERT_TRUE(first);
  feign_stream_info info{};
  info.struct_size = sizeof info;
  for (info.thread = 0; info.thread < kStreams; ++info.thread) (void)w.tables.streams.add(info);
  NativeWriter writer(w.file.fd, "test", w.tables, {});
  Record r{};
  const auto add = [&](uint32_t stream, uint32_t op) {
    r.a.id += 65536;
    r.a.stream = stream;
    r.a.op = *first + op;
    ASSERT_TRUE(writer.add(r));
  };
  for (uint32_t op = 0; op < kOps; ++op) add(1, op);
  for (int round = 0; round < 2; ++round)
    for (uint32_t stream = 1; stream <= kStreams; ++stream) add(stream, 0);
  ASSERT_TRUE(writer.finish({}));

  Tables tables;
  auto reader = NativeReader::open(dup(w.file.fd), "test", tables);
  ASSERT_TRUE(reader) << reader.error().text();
  const auto read = [&](size_t most) {
    NativeReader::Range range;
    range.most_held = most;
    NativeReader::Cursor cursor(*reader, range);
    Record got{};
    uint64_t number = 0;
    auto more = cursor.next(got, number);
    while (more && *more) more = cursor.next(got, number);
    return more ? std::string() : more.error().text();
  };
  EXPECT_NE(read(size_t{8} << 20).find("takes more than 8 MiB"), std::string::npos);
  EXPECT_EQ(read(size_t{64} << 20), "");
}

std::string error_of(const std::string& bytes) {
  Tables tables;
  auto reader = NativeReader::open(copy_of(bytes), "x.feign", tables);
  return reader ? "" : reader.error().text();
}

TEST(Native, WhatIsNotOneSaysWhatItIs) {
  const auto w = random_trace(4, 10, 1);
  const std::string good = w->file.bytes();
  std::string newer = good;
  newer[8] = 2;
  newer[10] = 7;

  EXPECT_EQ(error_of(newer), "x.feign: is format 2.7, this feign reads 1.x");
  EXPECT_NE(error_of(std::string(100, 'x')).find("is not in the native format"), std::string::npos);
  EXPECT_NE(error_of("").find("has 0 bytes"), std::string::npos);
  EXPECT_NE(error_of(good.substr(0, good.size() - 1)).find("is incomplete"), std::string::npos);
}

// A trace of one stream with as many activities as `fill` is called for.
std::string one_stream(Tables& tables, size_t count,
                       const std::function<void(Record&, size_t)>& fill) {
  File file;
  feign_stream_info info{};
  info.struct_size = sizeof info;
  (void)tables.streams.add(info);
  NativeWriter writer(file.fd, "test", tables, {});
  for (size_t i = 0; i < count; ++i) {
    Record r{};
    r.a.id = (i + 1) << 16;
    r.a.stream = 1;
    r.a.op = FEIGN_POSIX_READ;
    r.a.marks = FEIGN_RESOLVED;
    fill(r, i);
    auto added = writer.add(r);
    EXPECT_TRUE(added) << added.error().text();
  }
  EXPECT_TRUE(writer.finish({}));
  return file.bytes();
}

TEST(Native, APathIsFoundAlsoWhereItsTextFirstNamedARule) {
  Tables from;
  const std::string bytes = one_stream(from, 2, [&](Record& r, size_t i) {
    const uint32_t text = from.strings.intern("/text");
    if (i == 0) {
      r.a.marks |= FEIGN_DEPENDS;
      r.depends.push_back({1, text, 1});
    } else {
      r.a.path = text;
    }
  });

  Tables tables;
  auto reader = NativeReader::open(copy_of(bytes), "test", tables);
  ASSERT_TRUE(reader) << reader.error().text();
  NativeReader::Range range;
  range.path = "/text";
  EXPECT_EQ(read(*reader, tables, range).size(), 1u);
}

TEST(Native, StreamsThatTakeTurnsOnTheSamePathsStoreEachOnceABlock) {
  Written w;
  for (int s = 0; s < 4; ++s) {
    feign_stream_info info{};
    info.struct_size = sizeof info;
    info.thread = s;
    (void)w.tables.streams.add(info);
  }
  NativeWriter writer(w.file.fd, "test", w.tables, {});
  std::mt19937_64 random(1);
  for (size_t i = 0; i < 8000; ++i) {
    Record r{};
    r.a.id = (i + 1) << 16;
    r.a.stream = 1 + static_cast<uint32_t>(i % 4);
    r.a.op = FEIGN_POSIX_READ;
    r.a.path = w.tables.strings.intern(std::string(200, 'p') + std::to_string(random() % 4));
    ASSERT_TRUE(writer.add(r));
  }
  ASSERT_TRUE(writer.finish({}));

  native::BlockHeader first;
  ASSERT_EQ(pread(w.file.fd, &first, sizeof first, sizeof(native::FileHeader)),
            static_cast<ssize_t>(sizeof first));
  EXPECT_EQ(first.records, 2000u);
  EXPECT_LT(first.raw_size, 40000u);
}

TEST(Native, TheWriterRefusesWhatNoReaderWouldTake) {
  File file;
  Tables tables;
  feign_stream_info info{};
  info.struct_size = sizeof info;
  (void)tables.streams.add(info);
  NativeWriter writer(file.fd, "out", tables, {});
  Record r{};
  r.a.id = 5;
  r.a.stream = 1;
  r.a.op = FEIGN_POSIX_READV;
  ASSERT_TRUE(writer.add(r));

  auto same_id = writer.add(r);
  r.a.id = 6;
  r.a.marks = FEIGN_DEPENDS;
  r.depends.push_back({1, 0, 6});
  auto on_itself = writer.add(r);
  r.depends.clear();
  r.set_values(std::vector<uint64_t>(3u << 20, UINT64_MAX));
  auto too_long = writer.add(r);

  ASSERT_FALSE(same_id);
  EXPECT_EQ(same_id.error().text(), "write out: activity 5 after activity 5: ids must grow");
  ASSERT_FALSE(on_itself);
  EXPECT_EQ(on_itself.error().text(),
            "write out: activity 6 depends on activity 6, which is not before it");
  ASSERT_FALSE(too_long);
  EXPECT_NE(too_long.error().text().find("bytes, want less than 16777216"), std::string::npos);
}

// ---- the plug-in

struct Host {
  Plugins plugins;
  Tables tables;
  std::vector<Needed> needed = [] {
    Needed n;
    n.mode = 0600;
    n.size = 9;
    n.path = "/needed";
    return std::vector<Needed>{n};
  }();
  static const void* extension(void* self, const char* id) {
    auto& host = *static_cast<Host*>(self);
    if (std::string_view(id) == "feign.tables/1") return &host.tables;
    if (std::string_view(id) == "feign.needed/1") return &host.needed;
    return nullptr;
  }
  Result<std::unique_ptr<Instance>> make(uint32_t role, GivenOptions options) {
    auto found = plugins.find(PLUGIN_DIR "/feign.so", role);
    if (!found) return std::move(found.error());
    PluginSpec spec;
    spec.name = "feign";
    spec.options = std::move(options);
    return Instance::create(*found, spec, tables, extension, this);
  }
};
std::string path_of(int fd) { return "/proc/self/fd/" + std::to_string(fd); }

TEST(NativePlugin, ReadsAndWritesAllOfATrace) {
  const auto w = random_trace(6, 5000, 5);
  char dir[] = "/tmp/feign-native-XXXXXX";
  ASSERT_NE(mkdtemp(dir), nullptr);
  const std::string out = std::string(dir) + "/out.feign";
  Host host;
  auto provider = host.make(FEIGN_PROVIDER, {{"file", path_of(w->file.fd)}});
  ASSERT_TRUE(provider) << provider.error().text();
  {
    auto writer = host.make(FEIGN_WRITER, {{"file", out}});
    ASSERT_TRUE(writer) << writer.error().text();
    Pipeline pipeline(host.tables, **provider, {});
    auto ran = pipeline.run(
        [&](feign_activity* const* items, size_t count) -> Result<void> {
          const auto& api = (*writer)->api<feign_writer>();
          if (const feign_status s = api.write((*writer)->self(), items, count); s < 0)
            return (*writer)->failure(s);
          return {};
        },
        [] { return true; });
    ASSERT_TRUE(ran) << ran.error().text();
    EXPECT_NE(access(out.c_str(), F_OK), 0);
    EXPECT_EQ((*writer)->api<feign_writer>().finish((*writer)->self()), FEIGN_OK);
  }

  Tables tables;
  auto reader = NativeReader::open(open(out.c_str(), O_RDONLY), "out", tables);
  ASSERT_TRUE(reader) << reader.error().text();
  std::vector<std::pair<uint64_t, std::string>> want;
  for (size_t i = 0; i < w->records.size(); ++i)
    want.emplace_back(i, words(*w->records[i], w->tables));
  EXPECT_EQ(read(*reader, tables, {}), want);
  EXPECT_EQ(tables.sources, w->tables.sources);
  EXPECT_EQ((tables.left_out[{"futex", "waits"}].count), 7u);
  EXPECT_EQ(tables.streams.info(5).parent, 4u);
  ASSERT_EQ((*reader)->needed().size(), 1u);
  EXPECT_EQ((*reader)->needed()[0].path, "/needed");
  unlink(out.c_str());
  EXPECT_EQ(rmdir(dir), 0);  // no .part is left
}

TEST(NativePlugin, AWriterThatDoesNotFinishLeavesNothing) {
  char dir[] = "/tmp/feign-native-XXXXXX";
  ASSERT_NE(mkdtemp(dir), nullptr);
  {
    Host host;
    auto writer = host.make(FEIGN_WRITER, {{"file", std::string(dir) + "/out.feign"}});
    ASSERT_TRUE(writer) << writer.error().text();
  }
  EXPECT_EQ(rmdir(dir), 0);
}

TEST(NativePlugin, AnyNumberOfCallsLeftOutIsTakenAtOnce) {
  Tables from;
  from.left_out[{"futex", "waits"}] = {uint64_t{1} << 60, 5};
  File file;
  const std::string bytes = one_stream(from, 1, [](Record&, size_t) {});
  ASSERT_EQ(write(file.fd, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  Host host;

  auto provider = host.make(FEIGN_PROVIDER, {{"file", path_of(file.fd)}});

  ASSERT_TRUE(provider) << provider.error().text();
  EXPECT_EQ((host.tables.left_out[{"futex", "waits"}].count), uint64_t{1} << 60);
}

TEST(NativePlugin, WantsOneFileAndAStreamThatIsThere) {
  const auto w = random_trace(7, 10, 2);
  const std::string file = path_of(w->file.fd);
  Host host;

  auto none = host.make(FEIGN_PROVIDER, {});
  auto two = host.make(FEIGN_PROVIDER, {{"file", file}, {"file", file}});
  auto third = host.make(FEIGN_PROVIDER, {{"file", file}, {"stream", "3"}});

  ASSERT_FALSE(none);
  ASSERT_FALSE(two);
  EXPECT_NE(two.error().text().find("a second file: want one"), std::string::npos);
  ASSERT_FALSE(third);
  EXPECT_NE(third.error().text().find("stream=3: the trace has streams 1 to 2"), std::string::npos);
}

}  // namespace
