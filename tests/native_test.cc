// SPDX-License-Identifier: MIT
// The native format: what goes in comes out, from anywhere, and damage is told.
#include "trace/native.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <random>

#include "layers/posix_ops.h"

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
  NativeWriter::Options options;
  options.memory = memory;
  NativeWriter writer(w->file.fd, "test", w->tables, options);
  uint64_t id = 0, clock = 0;
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
      for (uint64_t v = below(40); v != 0; --v) values.push_back(random());
      r->set_values(values);
    }
    if (below(10) == 0 && id > 1) {
      a.marks |= FEIGN_DEPENDS;
      r->depends.push_back(
          {1 + static_cast<uint32_t>(below(streams)), w->tables.strings.intern("rule"), id - 1});
    }
    EXPECT_TRUE(writer.add(*r));
    w->records.push_back(std::move(r));
  }
  w->needed = {{Needed::kFile, 0644, 123, "/a", ""},
               {Needed::kSymlink, 0, 0, "/l", "a"},
               {Needed::kAbsent, 0, 0, "/x", ""}};
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
  EXPECT_EQ((*reader)->needed().size(), 3u);
  EXPECT_EQ((*reader)->needed()[1].target, "a");
  EXPECT_EQ((tables.left_out[{"futex", "waits"}].count), 7u);
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
  range.stream = streams;
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

}  // namespace
