// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <queue>

#include "trace/native.h"
#include "trace/native_bytes.h"
#include "trace/native_format.h"
#include "trace/native_index.h"

namespace feign {

using namespace native;

struct NativeReader::Impl {
  int fd = -1;
  std::string name;
  Tables* tables = nullptr;
  uint64_t size = 0;
  Index index;

  ~Impl() {
    if (fd >= 0) close(fd);
  }
  Error damaged(uint64_t at, const std::string& what) const {
    return native::damaged(name, at, what);
  }
  Result<void> read_at(void* to, size_t n, uint64_t at) const {
    auto* p = static_cast<char*>(to);
    while (n != 0) {
      const ssize_t got = pread(fd, p, n, static_cast<off_t>(at));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return errno_error("read " + name, errno);
      if (got == 0) return damaged(at, "the file ends here");
      p += got;
      at += static_cast<uint64_t>(got);
      n -= static_cast<size_t>(got);
    }
    return {};
  }
};

NativeReader::NativeReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
NativeReader::~NativeReader() = default;
const NativeTotals& NativeReader::totals() const { return impl_->index.totals; }
const std::vector<Needed>& NativeReader::needed() const { return impl_->index.needed; }

bool NativeReader::recognises(const void* head, size_t size) {
  return size >= sizeof kMagic && memcmp(head, kMagic, sizeof kMagic) == 0;
}

Result<std::shared_ptr<NativeReader>> NativeReader::open(int fd, std::string name, Tables& tables) {
  auto impl = std::make_unique<Impl>();
  impl->fd = fd;
  impl->name = std::move(name);
  impl->tables = &tables;
  struct stat st {};
  if (fstat(fd, &st) != 0) return errno_error("read " + impl->name, errno);
  if (!S_ISREG(st.st_mode))
    return Error(FEIGN_ERR_ARGUMENT,
                 impl->name + ": is no regular file, want a trace in the native format");
  impl->size = static_cast<uint64_t>(st.st_size);
  FileHeader header{};
  if (impl->size < sizeof header)
    return Error(FEIGN_ERR_ARGUMENT, impl->name + ": has " + std::to_string(impl->size) +
                                         " bytes, too few for a trace in the native format");
  if (auto r = impl->read_at(&header, sizeof header, 0); !r) return std::move(r.error());
  if (!recognises(&header, sizeof header))
    return Error(FEIGN_ERR_ARGUMENT,
                 impl->name + ": is not in the native format: it does not start with FEIGNTR");
  if (header.major != kMajor)
    return Error(FEIGN_ERR_ARGUMENT, impl->name + ": is format " + std::to_string(header.major) +
                                         "." + std::to_string(header.minor) +
                                         ", this feign reads " + std::to_string(kMajor) + ".x");
  Trailer trailer{};
  if (impl->size < sizeof header + sizeof trailer)
    return Error(
        FEIGN_ERR_ARGUMENT,
        impl->name +
            ": is incomplete: it ends before its index (cut short, or still being written)");
  if (auto r = impl->read_at(&trailer, sizeof trailer, impl->size - sizeof trailer); !r)
    return std::move(r.error());
  const uint64_t index_end = impl->size - sizeof trailer;
  if (trailer.magic != kTrailerMagic)
    return Error(
        FEIGN_ERR_ARGUMENT,
        impl->name +
            ": is incomplete: it ends without a trailer (cut short, or still being written)");
  if (trailer.index_offset < sizeof header || trailer.index_offset > index_end ||
      trailer.packed_size != index_end - trailer.index_offset || trailer.raw_size > kMaxIndex ||
      trailer.raw_size / 4096 > trailer.packed_size + uint64_t{1})
    return impl->damaged(index_end, "the trailer does not fit the file");
  std::vector<unsigned char> packed(trailer.packed_size);
  if (auto r = impl->read_at(packed.data(), packed.size(), trailer.index_offset); !r)
    return std::move(r.error());
  if (check_of(packed.data(), packed.size(), trailer.raw_size) != trailer.check)
    return impl->damaged(trailer.index_offset, "the index fails its checksum");
  std::vector<unsigned char> raw(trailer.raw_size);
  const size_t got = ZSTD_decompress(raw.data(), raw.size(), packed.data(), packed.size());
  if (ZSTD_isError(got) || got != raw.size())
    return impl->damaged(trailer.index_offset, "the index does not decompress");
  auto index = take_index(Take(raw.data(), raw.size()), trailer.index_offset, impl->name, tables);
  if (!index) return std::move(index.error());
  impl->index = std::move(*index);
  return std::shared_ptr<NativeReader>(new NativeReader(std::move(impl)));
}

// ---- cursors
// --------------------------------------------------------------------------------------

namespace {

// The values that an op had last: a loop's calls have the same again and again.
struct LastValues {
  const unsigned char* bytes = nullptr;  // in the block
  size_t size = 0;
  std::vector<uint64_t> values;
};
constexpr size_t kMostKept = 32;

// Reads the blocks of one stream, a record at a time.
struct StreamCursor {
  uint32_t stream = 0;           // of the file
  std::vector<uint32_t> blocks;  // still to be read, in order
  size_t next_block = 0;
  Take take;
  std::vector<unsigned char> raw;
  size_t held = 0;                // bytes of memory that the block takes
  std::vector<uint32_t> strings;  // of the block -> id
  std::vector<LikeOp> like;
  std::vector<LastValues> values;  // by op
  uint32_t left = 0;               // records in the block
  uint64_t block_offset = 0;
  struct {
    uint64_t id, offset, length, place;
    uint32_t handle, file, path;
  } before{};
  uint64_t before_end = 0, last_number = 0, end_number = 0;
  uint64_t last_id = 0;  // of all blocks
  uint32_t before_op = 0;
  bool first = false;
  uint32_t mask = 0;  // of the record to come
  uint64_t number = 0;
};

}  // namespace

struct NativeReader::Cursor::Impl {
  std::shared_ptr<const NativeReader> reader;
  Range range;
  uint64_t path_hash = 0;
  ZSTD_DCtx* zstd = ZSTD_createDCtx();
  std::vector<unsigned char> packed;
  std::vector<std::unique_ptr<StreamCursor>> active;
  StreamCursor* now = nullptr;
  // Streams that wait for their turn: those with a record at hand, and those not yet begun.
  using Waiting = std::pair<uint64_t, StreamCursor*>;
  std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> waiting;
  uint32_t path_id = 0;
  size_t held = 0;  // bytes that the streams' blocks take, decompressed, with what is kept of them

  ~Impl() { ZSTD_freeDCtx(zstd); }

  const NativeReader::Impl& file() const { return *reader->impl_; }
  bool wanted(const Block& b) const {
    if (b.last_number < range.from) return false;
    if (b.last_ns < range.from_ns) return false;
    return range.path.empty() || b.filter.may_have(path_hash);
  }
  // What is kept of each op that the file has, for a stream that has begun: a damaged file may have
  // many of both.
  size_t kept_of_ops() const {
    return file().index.ops.size() * (sizeof(LikeOp) + sizeof(LastValues));
  }
  // Gives back what a stream's block took.
  void drop(StreamCursor& s) {
    held -= s.held;
    s.held = 0;
    s.raw = {};
    s.strings = {};
    s.like = {};
    s.values = {};
  }
  Result<bool> load(StreamCursor& s);  // the next block; false: no more
  Result<bool> peek(StreamCursor& s);  // head() of the next record, if there is one
  // These say what is wrong with the block, null if nothing is.
  const char* head(StreamCursor& s);  // s.number and s.mask of the block's next record
  // Most records say nothing but times, place and values: kPlain asks for no more.
  template <bool kPlain>
  const char* decode(StreamCursor& s, Record& out);
};

NativeReader::Cursor::Cursor(std::shared_ptr<const NativeReader> reader, Range range)
    : impl_(std::make_unique<Impl>()) {
  Impl& c = *impl_;
  c.reader = std::move(reader);
  c.range = std::move(range);
  c.path_hash = PathFilter::hash(c.range.path);
  if (!c.range.path.empty()) c.path_id = c.file().tables->strings.intern(c.range.path);
  const auto& file = c.file();
  const auto add = [&](uint32_t stream) {
    std::vector<uint32_t> blocks;
    for (const uint32_t b : file.index.of_stream[stream])
      if (c.wanted(file.index.blocks[b])) blocks.push_back(b);
    if (blocks.empty()) return;
    auto s = std::make_unique<StreamCursor>();
    s->stream = stream;
    s->blocks = std::move(blocks);
    c.waiting.emplace(file.index.blocks[s->blocks.front()].first_number, s.get());
    c.active.push_back(std::move(s));
  };
  if (c.range.streams.empty())
    for (uint32_t stream = 1; stream < file.index.of_stream.size(); ++stream) add(stream);
  // The file's streams have numbers that grow, in the tables too.
  for (const uint32_t wanted : c.range.streams) {
    const auto at =
        std::lower_bound(file.index.streams.begin() + 1, file.index.streams.end(), wanted);
    if (at != file.index.streams.end() && *at == wanted)
      add(static_cast<uint32_t>(at - file.index.streams.begin()));
  }
}
NativeReader::Cursor::~Cursor() = default;
NativeReader::Cursor::Cursor(Cursor&&) noexcept = default;

Result<bool> NativeReader::Cursor::Impl::load(StreamCursor& s) {
  const auto& f = file();
  if (s.take.left() != 0) return f.damaged(s.block_offset, "a block has more than its records");
  if (s.next_block == s.blocks.size()) {
    drop(s);
    return false;
  }
  const Block& b = f.index.blocks[s.blocks[s.next_block++]];
  packed.resize(sizeof(BlockHeader) + b.packed_size);
  if (auto r = f.read_at(packed.data(), packed.size(), b.offset); !r) return std::move(r.error());
  BlockHeader h;
  memcpy(&h, packed.data(), sizeof h);
  const unsigned char* body = packed.data() + sizeof h;
  if (h.magic != kBlockMagic || h.stream != b.stream || h.records != b.records ||
      h.raw_size != b.raw_size || h.packed_size != b.packed_size ||
      h.first_number != b.first_number)
    return f.damaged(b.offset, "a block is not the one that the index says");
  if (check_block(h, body) != h.check) return f.damaged(b.offset, "a block fails its checksum");
  held -= s.held;
  s.held = b.raw_size + kept_of_ops();
  held += s.held;
  if (held > range.most_held)
    return Error(FEIGN_ERR_UNSUPPORTED,
                 f.name +
                     ": what is read of the streams that run at the same time takes more than " +
                     std::to_string(range.most_held >> 20) + " MiB");
  s.raw.resize(b.raw_size);
  const size_t got = ZSTD_decompressDCtx(zstd, s.raw.data(), s.raw.size(), body, b.packed_size);
  if (ZSTD_isError(got) || got != b.raw_size)
    return f.damaged(b.offset, "a block does not decompress");
  s.block_offset = b.offset;
  s.take = Take(s.raw.data(), s.raw.size());
  s.strings.assign(1, 0);
  for (uint64_t n = s.take.count(1); n != 0; --n)
    s.strings.push_back(f.tables->strings.intern(s.take.text()));
  if (s.take.bad()) return f.damaged(b.offset, "the strings of a block do not fit it");
  s.left = b.records;
  s.before = {};
  s.before_end = 0;
  s.last_number = b.first_number - 1;
  s.end_number = b.last_number;
  s.before_op = 0;
  s.first = true;
  s.like.assign(f.index.ops.size(), {});
  s.values.assign(f.index.ops.size(), {});
  return true;
}

inline const char* NativeReader::Cursor::Impl::head(StreamCursor& s) {
  s.mask = s.take.u32();
  const uint64_t passed = (s.mask & kNumber) ? s.take.u64() : 0;
  s.number = s.last_number + 1 + passed;
  const bool bad = s.take.bad() || (s.mask & ~kAllFields) ||
                   passed > s.end_number - s.last_number - 1 || s.last_number == s.end_number;
  return bad ? "a record that cannot be" : nullptr;
}

Result<bool> NativeReader::Cursor::Impl::peek(StreamCursor& s) {
  if (s.left == 0) {
    auto more = load(s);
    if (!more || !*more) return more;
  }
  if (const char* why = head(s)) return file().damaged(s.block_offset, why);
  return true;
}

template <bool kPlain>
const char* NativeReader::Cursor::Impl::decode(StreamCursor& s, Record& out) {
  const auto& f = file();
  Take x = s.take;  // in registers
  const uint32_t mask = s.mask;
  const auto has = [mask](uint32_t field) { return !kPlain && (mask & field) != 0; };
  feign_activity& a = out.a;
  auto& b = s.before;
  a.start_ns = s.before_end + static_cast<uint64_t>(x.i64());
  a.duration_ns = x.u64();
  const uint32_t op = has(kOp) ? x.u32() : s.before_op;
  if (op >= f.index.ops.size()) return "an op that the index does not have";
  const Index::Op& kind = f.index.ops[op];
  LikeOp& like = s.like[op];
  a.op = kind.id;
  const uint64_t id_predicted =
      s.first ? (s.number + 1) << 16 : b.id + ((s.number - s.last_number) << 16);
  a.id = id_predicted + (has(kId) ? static_cast<uint64_t>(x.i64()) : 0);
  a.offset = has(kOffset) ? b.offset + static_cast<uint64_t>(x.i64())
                          : b.offset + (kind.moves ? b.length : 0);
  a.length = has(kLength) ? x.u64() : like.length;
  a.result = has(kResult) ? x.i64() : kind.moves ? static_cast<int64_t>(a.length) : 0;
  a.handle = has(kHandle) ? x.u32() : b.handle;
  a.file = has(kFile) ? x.u32() : b.file;
  const auto text = [&](uint64_t local) -> uint32_t {
    if (local < s.strings.size()) return s.strings[local];
    x.spoil();
    return 0;
  };
  a.path = has(kPath) ? text(x.u64()) : b.path;
  a.flags = has(kFlags) ? x.u32() : like.flags;
  a.mode = has(kMode) ? x.u32() : like.mode;
  a.path2 = has(kPath2) ? text(x.u64()) : 0;
  a.handle2 = has(kHandle2) ? x.u32() : 0;
  a.sync_ns = has(kSync) ? x.u64() : 0;
  const uint64_t gap = a.start_ns > s.before_end ? a.start_ns - s.before_end : 0;
  a.compute_ns = has(kCompute) ? x.u64() : gap - std::min(gap, a.sync_ns);
  a.place = (mask & kPlace) ? b.place + static_cast<uint64_t>(x.i64()) : b.place + 1;
  a.marks = has(kMarks) ? x.u32() : like.marks;
  a.stream = f.index.streams[s.stream];
  if (mask & kValues) {
    LastValues& last = s.values[op];
    if (last.size != 0 && x.same(last.bytes, last.size)) {
      out.values.assign(last.values.begin(), last.values.end());
    } else {
      const unsigned char* const bytes = x.at();
      const uint64_t n = x.count(1);
      out.values.resize(n);
      for (uint64_t i = 0; i < n; ++i) {
        const uint64_t v = x.u64();
        out.values[i] = i < 32 && (kind.text_values >> i & 1) ? text(v) : v;
      }
      if (n <= kMostKept && !x.bad()) {
        last.bytes = bytes;
        last.size = static_cast<size_t>(x.at() - bytes);
        last.values.assign(out.values.begin(), out.values.end());
      }
    }
    a.values = out.values.data();
    a.value_count = static_cast<uint32_t>(out.values.size());
  } else {
    a.values = nullptr;
    a.value_count = 0;
  }
  if (!out.depends.empty()) out.depends.clear();
  if (has(kDepends)) {
    a.marks |= FEIGN_DEPENDS;
    for (uint64_t n = x.count(3); n != 0; --n) {
      Dependency d{};
      const uint32_t stream = x.u32();
      if (stream == 0 || stream >= f.index.streams.size()) return "a dependency on no stream";
      d.stream = f.index.streams[stream];
      d.rule = text(x.u64());
      d.id = x.u64();
      if (d.id >= a.id) return "a dependency on what does not come before";
      out.depends.push_back(d);
    }
  }
  if (x.bad()) return "a record does not fit its block";
  if (a.id <= s.last_id) return "ids that do not grow";
  if (!kPlain && (std::max(a.handle, a.handle2) > f.index.totals.max_handle ||
                  a.file > f.index.totals.max_file))
    return "a handle or file past the greatest";
  s.take = x;
  s.last_id = a.id;
  b.id = a.id;
  b.offset = a.offset;
  b.length = a.length;
  b.place = a.place;
  if (!kPlain) {
    b.handle = a.handle;
    b.file = a.file;
    b.path = a.path;
    s.before_op = op;
    like = {a.length, a.flags, a.mode, a.marks};
  }
  s.before_end = a.start_ns + a.duration_ns;
  s.last_number = s.number;
  s.first = false;
  --s.left;
  return nullptr;
}

Result<bool> NativeReader::Cursor::next(Record& out, uint64_t& number) {
  Impl& c = *impl_;
  while (true) {
    if (c.now == nullptr) {
      if (c.waiting.empty()) return false;
      c.now = c.waiting.top().second;
      c.waiting.pop();
      if (c.now->next_block == 0 || c.now->left == 0) {
        auto more = c.peek(*c.now);
        if (!more) return more;
        if (!*more) {
          c.now = nullptr;
          continue;
        }
      }
    }
    StreamCursor& s = *c.now;
    number = s.number;
    const bool plain = (s.mask & ~(kNumber | kPlace | kValues)) == 0;
    if (const char* why = plain ? c.decode<true>(s, out) : c.decode<false>(s, out))
      return c.file().damaged(s.block_offset, why);
    const feign_activity& a = out.a;
    // What comes next, and whose turn it is. A block not yet begun waits under its first number.
    if (s.left == 0 && s.next_block < s.blocks.size()) {
      const uint64_t first = c.file().index.blocks[s.blocks[s.next_block]].first_number;
      if (!c.waiting.empty() && c.waiting.top().first < first) {
        c.drop(s);
        c.waiting.emplace(first, &s);
        c.now = nullptr;
      } else {
        auto more = c.peek(s);
        if (!more) return more;
        if (!*more) c.now = nullptr;
      }
    } else if (s.left == 0) {
      if (auto over = c.load(s); !over) return over;
      c.now = nullptr;
    } else {
      if (const char* why = c.head(s)) return c.file().damaged(s.block_offset, why);
      if (!c.waiting.empty() && c.waiting.top().first < s.number) {
        c.waiting.emplace(s.number, &s);
        c.now = nullptr;
      }
    }
    if (number < c.range.from || a.start_ns < c.range.from_ns) continue;
    if (c.path_id != 0 && a.path != c.path_id && a.path2 != c.path_id) continue;
    return true;
  }
}

Result<void> may_be_written(const std::string& path) {
  char head[64];
  struct stat st {};
  if (::stat(path.c_str(), &st) != 0 || !S_ISREG(st.st_mode) || st.st_size == 0) return {};
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const ssize_t n = fd >= 0 ? ::read(fd, head, sizeof head) : 0;
  if (fd >= 0) ::close(fd);
  if (n > 0 && NativeReader::recognises(head, static_cast<size_t>(n))) return {};
  return Error(
      FEIGN_ERR_ARGUMENT,
      path + ": is a file that is no trace of this format; want another name, or remove it");
}

}  // namespace feign
