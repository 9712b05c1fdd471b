// SPDX-License-Identifier: MIT
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>

#include "base/output.h"
#include "trace/native.h"
#include "trace/native_bytes.h"
#include "trace/native_format.h"
#include "trace/native_index.h"

namespace feign {

using namespace native;

namespace {

// A stream's block in the making, and what its next record is predicted from.
struct Open {
  Bytes strings, records;
  uint32_t string_count = 0, record_count = 0;
  uint32_t epoch = 0;
  uint64_t first_number = 0, last_number = 0;
  uint64_t first_ns = UINT64_MAX, last_ns = 0;
  PathFilter filter;
  // Strings that streams use in turn: the writer's table knows the last stream's number only.
  struct Known {
    uint32_t id = 0, index = 0;
  };
  std::array<Known, 64> known{};  // by the id's last bits
  feign_activity before{};
  uint64_t before_end = 0;
  std::vector<LikeOp> before_of_op;  // by index in the file's ops
};

void count(NativeTotals& t, const feign_activity& a, bool moves) {
  ++t.activities;
  t.first_ns = std::min(t.first_ns, a.start_ns);
  t.last_ns = std::max(t.last_ns, a.start_ns + a.duration_ns);
  // What is copied between two files needs no memory, however much is asked for.
  const bool copies = a.value_count > 3 && (a.handle2 != 0 || a.handle == 0);
  if (moves)
    t.max_length =
        std::max(t.max_length,
                 copies ? std::min(a.length, static_cast<uint64_t>(std::max<int64_t>(a.result, 0)))
                        : a.length);
  t.max_handle = std::max({t.max_handle, a.handle, a.handle2});
  t.max_file = std::max(t.max_file, a.file);
  if (a.op >= t.by_op.size()) t.by_op.resize(a.op + size_t{1});
  ++t.by_op[a.op];
  if (a.stream >= t.by_stream.size()) t.by_stream.resize(a.stream + size_t{1});
  ++t.by_stream[a.stream];
}

}  // namespace

struct NativeWriter::Impl {
  int fd;
  std::string name;
  const Tables& tables;
  Options options;
  ZSTD_CCtx* zstd = ZSTD_createCCtx();
  uint64_t offset = 0;
  uint64_t next_number = 0, last_id = 0;
  std::vector<std::unique_ptr<Open>> open;  // by stream, null if it has none
  size_t held = 0;                          // bytes in open blocks
  std::vector<Block> blocks;
  std::vector<uint32_t> op_index;     // by op id, plus 1
  std::vector<uint32_t> ops;          // by index: op id
  std::vector<uint32_t> text_values;  // by index: bits of values that are strings
  struct Local {
    uint32_t epoch = 0, index = 0;
  };
  std::vector<Local> locals;  // by string id
  uint32_t last_epoch = 0;
  NativeTotals totals;
  std::vector<unsigned char> scratch, packed;

  Impl(int f, std::string n, const Tables& t, Options o)
      : fd(f), name(std::move(n)), tables(t), options(o) {
    totals.first_ns = UINT64_MAX;
  }
  ~Impl() { ZSTD_freeCCtx(zstd); }

  Result<void> put(const void* data, size_t size) {
    offset += size;
    if (!write_all(fd, data, size)) return errno_error("write " + name, errno);
    return {};
  }

  Result<size_t> pack(const void* data, size_t size) {
    packed.resize(ZSTD_compressBound(size));
    // The fastest of all levels finds next to nothing, and what it stores is read as fast as
    // copied.
    const int level = offset < options.plain ? ZSTD_minCLevel() : options.level;
    const size_t n = ZSTD_compressCCtx(zstd, packed.data(), packed.size(), data, size, level);
    if (ZSTD_isError(n))
      return Error(FEIGN_ERR_NOMEM, "write " + name + ": " + ZSTD_getErrorName(n));
    return n;
  }

  uint32_t op_of(uint32_t op) {
    if (op < op_index.size() && op_index[op] != 0) return op_index[op] - 1;
    if (op >= op_index.size()) op_index.resize(op + size_t{1});
    ops.push_back(op);
    const feign_op_info* info = tables.ops.info(op);
    text_values.push_back(
        info != nullptr ? native::text_values(std::span(info->args, info->arg_count)) : 0);
    op_index[op] = static_cast<uint32_t>(ops.size());
    return op_index[op] - 1;
  }

  // A string's number in this block: 0 is none.
  uint64_t local(Open& o, uint32_t id) {
    if (id == 0) return 0;
    if (id >= locals.size()) locals.resize(std::max<size_t>(id + size_t{1}, locals.size() * 2));
    Local& l = locals[id];
    if (l.epoch == o.epoch) return l.index;
    Open::Known& known = o.known[id % o.known.size()];
    if (known.id == id) {
      l = {o.epoch, known.index};
      return l.index;
    }
    const std::string_view text = tables.strings.text(id);
    o.strings.text(text);
    l = {o.epoch, ++o.string_count};
    known = {id, l.index};
    o.filter.add(PathFilter::hash(text));
    return l.index;
  }

  Result<void> flush(uint32_t stream) {
    if (open[stream] == nullptr || open[stream]->record_count == 0) return {};
    Open& o = *open[stream];
    Bytes head;
    head.u64(o.string_count);
    scratch.clear();
    scratch.insert(scratch.end(), head.data(), head.data() + head.size());
    scratch.insert(scratch.end(), o.strings.data(), o.strings.data() + o.strings.size());
    scratch.insert(scratch.end(), o.records.data(), o.records.data() + o.records.size());
    if (scratch.size() > kMaxBlock)
      return Error(FEIGN_ERR_UNSUPPORTED,
                   "write " + name + ": the arguments of one activity of stream " +
                       std::to_string(stream) + " take " + std::to_string(scratch.size()) +
                       " bytes, want less than " + std::to_string(kMaxBlock));
    auto size = pack(scratch.data(), scratch.size());
    if (!size) return std::move(size.error());
    BlockHeader h{kBlockMagic,
                  stream,
                  o.record_count,
                  static_cast<uint32_t>(scratch.size()),
                  static_cast<uint32_t>(*size),
                  0,
                  o.first_number};
    h.check = check_block(h, packed.data());
    blocks.push_back({offset, stream, o.record_count, h.raw_size, h.packed_size, o.first_number,
                      o.last_number, o.first_ns, o.last_ns, o.filter});
    if (auto done = put(&h, sizeof h); !done) return done;
    if (auto done = put(packed.data(), *size); !done) return done;
    held -= o.strings.size() + o.records.size();
    // With few streams the memory is kept for the next block.
    if (open.size() > 64) {
      open[stream] = nullptr;
      return {};
    }
    o.strings.clear();
    o.records.clear();
    o.record_count = o.string_count = 0;
    return {};
  }

  // The file's first bytes, if none are written yet.
  Result<void> head() {
    if (offset != 0) return {};
    FileHeader h{};
    memcpy(h.magic, kMagic, sizeof kMagic);
    h.major = kMajor;
    h.minor = kMinor;
    return put(&h, sizeof h);
  }

  // Ids grow, and dependencies lead back.
  Result<void> check(const Record& r) const {
    const feign_activity& a = r.a;
    if (a.id <= last_id)
      return Error(FEIGN_ERR_PLUGIN, "write " + name + ": activity " + std::to_string(a.id) +
                                         " after activity " + std::to_string(last_id) +
                                         ": ids must grow");
    if (a.marks & FEIGN_DEPENDS)
      for (const Dependency& d : r.depends)
        if (d.id >= a.id)
          return Error(FEIGN_ERR_PLUGIN, "write " + name + ": activity " + std::to_string(a.id) +
                                             " depends on activity " + std::to_string(d.id) +
                                             ", which is not before it");
    return {};
  }

  // The block that the stream's record of that number goes into.
  Open& block_of(uint32_t stream, uint64_t number) {
    if (stream >= open.size()) open.resize(stream + size_t{1});
    auto& slot = open[stream];
    if (slot == nullptr) slot = std::make_unique<Open>();
    Open& o = *slot;
    if (o.record_count != 0) return o;
    o.epoch = ++last_epoch;
    o.first_number = number;
    o.last_number = number - 1;
    o.first_ns = UINT64_MAX;
    o.last_ns = 0;
    o.filter = {};
    o.known = {};
    o.before = {};
    o.before_end = 0;
    o.before_of_op.clear();
    return o;
  }

  // One record: what the one before it does not tell. `moves`: it reads or writes.
  void encode(Open& o, const Record& r, uint64_t number, bool moves) {
    const feign_activity& a = r.a;
    const uint32_t op = op_of(a.op);
    if (op >= o.before_of_op.size()) o.before_of_op.resize(op + size_t{1});
    LikeOp& like = o.before_of_op[op];
    const feign_activity& b = o.before;
    const uint64_t end = a.start_ns + a.duration_ns;
    const uint64_t gap = a.start_ns > o.before_end ? a.start_ns - o.before_end : 0;
    const uint64_t id_predicted =
        o.record_count == 0 ? (number + 1) << 16 : b.id + ((number - o.last_number) << 16);

    uint32_t mask = 0;
    if (a.op != b.op || o.record_count == 0) mask |= kOp;
    if (number != o.last_number + 1) mask |= kNumber;
    if (a.id != id_predicted) mask |= kId;
    if (a.offset != b.offset + (moves ? b.length : 0)) mask |= kOffset;
    if (a.length != like.length) mask |= kLength;
    if (a.result != (moves ? static_cast<int64_t>(a.length) : 0)) mask |= kResult;
    if (a.handle != b.handle) mask |= kHandle;
    if (a.file != b.file) mask |= kFile;
    if (a.path != b.path) mask |= kPath;
    if (a.flags != like.flags) mask |= kFlags;
    if (a.mode != like.mode) mask |= kMode;
    if (a.path2 != 0) mask |= kPath2;
    if (a.handle2 != 0) mask |= kHandle2;
    if (a.sync_ns != 0) mask |= kSync;
    if (a.compute_ns != gap - std::min(gap, a.sync_ns)) mask |= kCompute;
    if (a.place != b.place + 1) mask |= kPlace;
    if (a.marks != like.marks) mask |= kMarks;
    if (a.value_count != 0) mask |= kValues;
    if ((a.marks & FEIGN_DEPENDS) && !r.depends.empty()) mask |= kDepends;

    Put to = o.records.room(22 * kMaxVarint);
    to.u64(mask);
    if (mask & kNumber) to.u64(number - o.last_number - 1);
    to.i64(static_cast<int64_t>(a.start_ns - o.before_end));
    to.u64(a.duration_ns);
    if (mask & kOp) to.u64(op);
    if (mask & kId) to.i64(static_cast<int64_t>(a.id - id_predicted));
    if (mask & kOffset) to.i64(static_cast<int64_t>(a.offset - b.offset));
    if (mask & kLength) to.u64(a.length);
    if (mask & kResult) to.i64(a.result);
    if (mask & kHandle) to.u64(a.handle);
    if (mask & kFile) to.u64(a.file);
    if (mask & kPath) to.u64(local(o, a.path));
    if (mask & kFlags) to.u64(a.flags);
    if (mask & kMode) to.u64(a.mode);
    if (mask & kPath2) to.u64(local(o, a.path2));
    if (mask & kHandle2) to.u64(a.handle2);
    if (mask & kSync) to.u64(a.sync_ns);
    if (mask & kCompute) to.u64(a.compute_ns);
    if (mask & kPlace) to.i64(static_cast<int64_t>(a.place - b.place));
    if (mask & kMarks) to.u64(a.marks);
    o.records.upto(to);
    if (mask & kValues) {
      const uint32_t texts = text_values[op];
      to = o.records.room((a.value_count + size_t{1}) * kMaxVarint);
      to.u64(a.value_count);
      for (uint32_t i = 0; i < a.value_count; ++i)
        to.u64(i < 32 && (texts >> i & 1) ? local(o, static_cast<uint32_t>(a.values[i]))
                                          : a.values[i]);
      o.records.upto(to);
    }
    if (mask & kDepends) {
      to = o.records.room((r.depends.size() * 3 + 1) * kMaxVarint);
      to.u64(r.depends.size());
      for (const Dependency& d : r.depends) {
        to.u64(d.stream);
        to.u64(local(o, d.rule));
        to.u64(d.id);
      }
      o.records.upto(to);
    }

    o.before = a;
    o.before_end = end;
    like = {a.length, a.flags, a.mode, a.marks};
    o.last_number = number;
    o.first_ns = std::min(o.first_ns, a.start_ns);
    o.last_ns = std::max(o.last_ns, a.start_ns);
    ++o.record_count;
  }
};

NativeWriter::NativeWriter(int fd, std::string name, const Tables& tables, Options options)
    : impl_(std::make_unique<Impl>(fd, std::move(name), tables, options)) {}
NativeWriter::~NativeWriter() = default;

Result<void> NativeWriter::add(const Record& r) {
  Impl& w = *impl_;
  const feign_activity& a = r.a;
  if (auto good = w.check(r); !good) return good;
  w.last_id = a.id;
  if (auto done = w.head(); !done) return done;
  const uint64_t number = w.next_number++;
  Open& o = w.block_of(a.stream, number);
  const size_t size_before = o.records.size() + o.strings.size();
  const feign_op_info* info = w.tables.ops.info(a.op);
  const bool moves =
      info != nullptr && (info->kind == FEIGN_KIND_READ || info->kind == FEIGN_KIND_WRITE);
  w.encode(o, r, number, moves);
  count(w.totals, a, moves);
  w.held += o.records.size() + o.strings.size() - size_before;
  if (o.record_count == kMaxRecords || o.records.size() + o.strings.size() >= kFullBlock)
    return w.flush(a.stream);
  if (w.held > w.options.memory)
    for (uint32_t s = 0; s < w.open.size(); ++s)
      if (auto done = w.flush(s); !done) return done;
  return {};
}

Result<void> NativeWriter::finish(const std::vector<Needed>& needed) {
  Impl& w = *impl_;
  if (w.offset == 0) w.totals.first_ns = 0;  // no activity: a file all the same
  if (auto done = w.head(); !done) return done;
  for (uint32_t s = 0; s < w.open.size(); ++s)
    if (auto done = w.flush(s); !done) return done;

  auto index = put_index(w.blocks, w.ops, w.totals, needed, w.tables);
  if (!index) return std::move(index.error()).within("write " + w.name);
  Trailer trailer{};
  trailer.index_offset = w.offset;
  trailer.raw_size = index->size();
  auto packed = w.pack(index->data(), index->size());
  if (!packed) return std::move(packed.error());
  trailer.packed_size = static_cast<uint32_t>(*packed);
  trailer.check = check_of(w.packed.data(), *packed, trailer.raw_size);
  trailer.magic = kTrailerMagic;
  if (auto done = w.put(w.packed.data(), *packed); !done) return done;
  return w.put(&trailer, sizeof trailer);
}

}  // namespace feign
