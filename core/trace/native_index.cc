// SPDX-License-Identifier: MIT
// Each part is written by put_… and read by the member function of that name, one above the other,
// in the order of the file.
#include "trace/native_index.h"

#include <map>
#include <span>
#include <string>

namespace feign::native {

namespace {

// An op as the file describes it.
struct Described {
  std::string layer, name;
  uint32_t kind = 0, result_kind = 0;
  std::vector<OwnLayer::Arg> args;
  uint64_t count = 0;
};

// Each part says what is wrong with it; null if nothing is.
class Reader {
 public:
  Reader(Take bytes, uint64_t at, const std::string& name, Tables& tables)
      : x_(bytes), at_(at), name_(name), tables_(tables) {}

  Result<Index> read() {
    using Part = const char* (Reader::*)();
    static constexpr Part kParts[] = {&Reader::blocks,  &Reader::ops,      &Reader::streams,
                                      &Reader::sources, &Reader::left_out, &Reader::totals,
                                      &Reader::needed,  &Reader::names,    &Reader::notes};
    for (const Part part : kParts)
      if (const char* why = (this->*part)()) return bad(why);
    if (x_.bad() || x_.left() != 0) return bad("it ends in the wrong place");
    if (auto done = unknown_layers(); !done) return std::move(done.error()).within(name_);
    sum_up();
    return std::move(to_);
  }

 private:
  const char* blocks();
  const char* ops();
  const char* streams();
  const char* blocks_of_streams();
  const char* sources();
  const char* left_out();
  const char* totals();
  const char* needed();
  const char* names();
  const char* notes();
  Result<void> unknown_layers();
  void sum_up();
  Error bad(const char* why) const { return damaged(name_, at_, std::string("the index: ") + why); }
  // Of a part that may be missing at the end.
  uint64_t count_if_any(size_t least) { return !x_.bad() && x_.left() != 0 ? x_.count(least) : 0; }

  Take x_;
  const uint64_t at_;
  const std::string& name_;
  Tables& tables_;
  Index to_;
  std::vector<Described> described_;     // by the file's number of an op
  std::vector<uint64_t> stream_counts_;  // activities, by file stream
  uint64_t records_ = 0;                 // of all blocks
};

// ---- 1. blocks

void put_blocks(Bytes& x, const std::vector<Block>& blocks) {
  x.u64(blocks.size());
  for (const Block& b : blocks) {
    x.u64(b.offset);
    x.u64(b.stream);
    x.u64(b.records);
    x.u64(b.raw_size);
    x.u64(b.packed_size);
    x.u64(b.first_number);
    x.u64(b.last_number);
    x.u64(b.first_ns);
    x.u64(b.last_ns);
    x.raw(b.filter.bits, sizeof b.filter.bits);
  }
}

const char* Reader::blocks() {
  uint64_t end = sizeof(FileHeader);
  for (uint64_t n = x_.count(73); n != 0; --n) {
    Block b{};
    b.offset = x_.u64();
    b.stream = x_.u32();
    b.records = x_.u32();
    b.raw_size = x_.u32();
    b.packed_size = x_.u32();
    b.first_number = x_.u64();
    b.last_number = x_.u64();
    b.first_ns = x_.u64();
    b.last_ns = x_.u64();
    x_.raw(b.filter.bits, sizeof b.filter.bits);
    if (x_.bad() || b.offset != end || b.records == 0 || b.records > kMaxRecords ||
        b.raw_size > kMaxBlock || b.packed_size > at_ || b.offset > at_ - b.packed_size ||
        b.last_number < b.first_number)
      return "a block that cannot be";
    end = b.offset + sizeof(BlockHeader) + b.packed_size;
    if (end > at_) return "a block that cannot be";
    to_.blocks.push_back(b);
  }
  return nullptr;
}

// ---- 2. ops

// False if there is no such op.
bool put_op(Bytes& x, const feign_op_info* info, uint64_t count) {
  if (info == nullptr) return false;
  x.text(info->layer);
  x.text(info->name);
  x.u64(info->kind);
  x.u64(info->result_kind);
  x.u64(count);
  x.u64(info->arg_count);
  for (const feign_arg_info& arg : std::span(info->args, info->arg_count)) {
    x.text(arg.name != nullptr ? arg.name : "");
    x.u64(arg.type);
    x.u64(arg.slot);
    x.u64(arg.index);
  }
  return true;
}

const char* Reader::ops() {
  for (uint64_t n = x_.count(6); n != 0; --n) {
    Described d;
    d.layer = x_.text();
    d.name = x_.text();
    d.kind = x_.u32();
    d.result_kind = x_.u32();
    d.count = x_.u64();
    for (uint64_t args = x_.count(4); args != 0; --args) {
      std::string arg(x_.text());
      const uint32_t type = x_.u32(), slot = x_.u32(), index = x_.u32();
      d.args.push_back({std::move(arg), type, slot, index, {}});
    }
    if (x_.bad() || d.layer.empty() || d.name.empty() || d.layer.size() > 256 ||
        d.name.size() > 256 || described_.size() == kMaxOps)
      return "an op that cannot be";
    // A kind that a later version has says nothing to this one.
    if (d.kind > FEIGN_KIND_PROCESS) d.kind = FEIGN_KIND_OTHER;
    to_.ops.push_back({tables_.ops.find(d.layer, d.name), text_values(d.args),
                       d.kind == FEIGN_KIND_READ || d.kind == FEIGN_KIND_WRITE});
    described_.push_back(std::move(d));
  }
  return nullptr;
}

// Ops of one unknown layer stand together only by chance: they are gathered by its name.
Result<void> Reader::unknown_layers() {
  std::map<std::string, std::vector<size_t>> unknown;
  for (size_t i = 0; i < to_.ops.size(); ++i)
    if (to_.ops[i].id == 0) unknown[described_[i].layer].push_back(i);
  for (const auto& [layer, list] : unknown) {
    // An op that a newer description of a layer has and ours has not still gets a place of its own.
    auto own = std::make_unique<OwnLayer>(
        tables_.ops.find(layer, "read") != 0 || layer == "posix" ? layer + "+" : layer);
    uint32_t number = 0;
    for (const size_t i : list) {
      const Described& d = described_[i];
      own->add(++number, d.name, d.kind, d.result_kind, d.args);
    }
    auto id = tables_.ops.add(own->layer());
    if (!id) return std::move(id.error());
    for (size_t i = 0; i < list.size(); ++i) to_.ops[list[i]].id = *id + static_cast<uint32_t>(i);
    to_.layers.push_back(std::move(own));
  }
  return {};
}

// ---- 3. streams

void put_streams(Bytes& x, const Tables& tables, const NativeTotals& totals) {
  const uint32_t streams = tables.streams.size();
  x.u64(streams - 1);
  for (uint32_t s = 1; s < streams; ++s) {
    const feign_stream_info info = tables.streams.info(s);
    x.text(tables.strings.text(info.host));
    x.i64(info.rank);
    x.i64(info.process);
    x.i64(info.thread);
    x.u64(info.parent);
    x.u64(info.again);
    x.u64(info.parent_id);
    x.u64(s < totals.by_stream.size() ? totals.by_stream[s] : 0);
  }
}

const char* Reader::streams() {
  to_.streams.push_back(0);
  stream_counts_.push_back(0);
  const uint32_t first_stream = tables_.streams.size();
  for (uint64_t n = x_.count(8); n != 0; --n) {
    feign_stream_info info{};
    info.host = tables_.strings.intern(x_.text());
    info.rank = static_cast<int32_t>(x_.i64());
    info.process = x_.i64();
    info.thread = x_.i64();
    const uint32_t parent = x_.u32();
    info.again = x_.u32();
    info.parent_id = x_.u64();
    stream_counts_.push_back(x_.u64());
    if (x_.bad()) return "a stream that cannot be";
    if (parent >= to_.streams.size() + n) return "a stream whose parent is none";
    // Streams keep their order, so a parent's number shifts as all do.
    info.parent = parent != 0 ? parent + first_stream - 1 : 0;
    to_.streams.push_back(tables_.streams.add(info));
  }
  return blocks_of_streams();
}

const char* Reader::blocks_of_streams() {
  const std::vector<Block>& blocks = to_.blocks;
  to_.of_stream.resize(to_.streams.size());
  std::vector<uint64_t> in_blocks(to_.streams.size());
  for (uint32_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i].stream == 0 || blocks[i].stream >= to_.streams.size())
      return "a block of no stream";
    auto& list = to_.of_stream[blocks[i].stream];
    if (!list.empty() && blocks[list.back()].last_number >= blocks[i].first_number)
      return "blocks out of order";
    list.push_back(i);
    records_ += blocks[i].records;
    in_blocks[blocks[i].stream] += blocks[i].records;
  }
  return in_blocks != stream_counts_ ? "streams that do not have what it says" : nullptr;
}

// ---- 4. sources, 5. what was left out

void put_sources(Bytes& x, const std::vector<std::string>& sources) {
  x.u64(sources.size());
  for (const std::string& source : sources) x.text(source);
}

const char* Reader::sources() {
  for (uint64_t n = x_.count(1); n != 0; --n) tables_.sources.emplace_back(x_.text());
  return nullptr;
}

void put_left_out(Bytes& x, const Tables& tables) {
  x.u64(tables.left_out.size());
  for (const auto& [key, l] : tables.left_out) {
    x.text(key.first);
    x.text(key.second);
    x.u64(l.count);
    x.u64(l.duration_ns);
  }
}

const char* Reader::left_out() {
  for (uint64_t n = x_.count(4); n != 0; --n) {
    std::string call(x_.text()), why(x_.text());
    LeftOut& l = tables_.left_out[{std::move(call), std::move(why)}];
    l.count += x_.u64();
    l.duration_ns += x_.u64();
  }
  return nullptr;
}

// ---- 6. totals

void put_totals(Bytes& x, const NativeTotals& t) {
  for (const uint64_t v : {t.activities, t.first_ns, t.last_ns, t.max_length,
                           uint64_t{t.max_handle}, uint64_t{t.max_file}})
    x.u64(v);
}

const char* Reader::totals() {
  NativeTotals& t = to_.totals;
  t.activities = x_.u64();
  t.first_ns = x_.u64();
  t.last_ns = x_.u64();
  t.max_length = x_.u64();
  t.max_handle = x_.u32();
  t.max_file = x_.u32();
  return x_.bad() || t.activities != records_ ? "totals that do not add up" : nullptr;
}

// What blocks, streams and ops say of them.
void Reader::sum_up() {
  NativeTotals& t = to_.totals;
  t.by_stream.resize(tables_.streams.size());
  t.spans.resize(tables_.streams.size());
  for (size_t i = 1; i < to_.streams.size(); ++i) {
    t.by_stream[to_.streams[i]] = stream_counts_[i];
    const std::vector<uint32_t>& blocks = to_.of_stream[i];
    if (!blocks.empty())
      t.spans[to_.streams[i]] = {to_.blocks[blocks.front()].first_number,
                                 to_.blocks[blocks.back()].last_number};
  }
  t.by_op.resize(tables_.ops.size());
  for (size_t i = 0; i < to_.ops.size(); ++i) t.by_op[to_.ops[i].id] += described_[i].count;
}

// ---- 7. what must be there

void put_needed(Bytes& x, const std::vector<Needed>& needed) {
  x.u64(needed.size());
  for (const Needed& n : needed) {
    x.u64(n.type | (n.changed ? kNeededChanged : 0));
    x.u64(n.mode);
    x.u64(n.denied);
    x.u64(n.size);
    x.text(n.path);
    x.text(n.target);
    x.u64(n.data.size());
    for (const auto& [offset, length] : n.data) {
      x.u64(offset);
      x.u64(length);
    }
    x.u64(n.attributes.size());
    for (const auto& [name, length] : n.attributes) {
      x.text(name);
      x.u64(length);
    }
  }
}

const char* Reader::needed() {
  for (uint64_t n = x_.count(8); n != 0; --n) {
    Needed e;
    const uint32_t kind = x_.u32(), type = kind & ~kNeededChanged;
    e.changed = (kind & kNeededChanged) != 0;
    e.mode = x_.u32();
    e.denied = x_.u32();
    e.size = x_.u64();
    e.path = x_.text();
    e.target = x_.text();
    for (uint64_t i = x_.count(2); i != 0; --i) {
      const uint64_t offset = x_.u64(), length = x_.u64();
      e.data.emplace_back(offset, length);
    }
    for (uint64_t i = x_.count(2); i != 0; --i) {
      std::string name(x_.text());
      const uint64_t length = x_.u64();
      e.attributes.emplace_back(std::move(name), length);
    }
    if (x_.bad() || type < Needed::kFile || type > Needed::kSocket)
      return "a needed file that cannot be";
    e.type = static_cast<Needed::Type>(type);
    to_.needed.push_back(std::move(e));
  }
  return nullptr;
}

// ---- 8. names of flags, 9. notes: each there only if it or what follows has any

// Of layers that this program itself will not know when it reads the file.
void put_names(Bytes& x, const Tables& tables, const std::vector<uint32_t>& ops, bool notes) {
  Bytes names;
  uint64_t count = 0;
  for (size_t i = 0; i < ops.size(); ++i) {
    const feign_op_info* info = tables.ops.info(ops[i]);
    if (tables.ops.own(ops[i])) continue;
    for (uint32_t a = 0; a < info->arg_count; ++a)
      for (const feign_name& n : std::span(info->args[a].names, info->args[a].name_count)) {
        names.u64(i);
        names.u64(a);
        names.text(n.name);
        names.u64(n.value);
        ++count;
      }
  }
  if (count == 0 && !notes) return;
  x.u64(count);
  x.raw(names.data(), names.size());
}

const char* Reader::names() {
  for (uint64_t n = count_if_any(4); n != 0; --n) {
    const uint64_t op = x_.u64(), arg = x_.u64();
    std::string name(x_.text());
    const uint64_t value = x_.u64();
    if (x_.bad() || op >= described_.size() || arg >= described_[op].args.size())
      return "a name of nothing";
    described_[op].args[arg].names.emplace_back(std::move(name), value);
  }
  return nullptr;
}

void put_notes(Bytes& x, const Tables& tables) {
  const size_t said = tables.warnings.size() + tables.notes.size();
  if (said != 0) x.u64(said);
  for (const auto* list : {&tables.warnings, &tables.notes})
    for (const std::string& note : *list) x.text(note);
}

const char* Reader::notes() {
  for (uint64_t n = count_if_any(1); n != 0; --n) {
    const std::string_view note = x_.text();
    if (tables_.notes.size() < 2 * Tables::kMostNotes) tables_.notes.emplace_back(note);
  }
  return nullptr;
}

}  // namespace

Result<Bytes> put_index(const std::vector<Block>& blocks, const std::vector<uint32_t>& ops,
                        const NativeTotals& totals, const std::vector<Needed>& needed,
                        const Tables& tables) {
  Bytes x;
  put_blocks(x, blocks);
  x.u64(ops.size());
  for (const uint32_t op : ops)
    if (!put_op(x, tables.ops.info(op), op < totals.by_op.size() ? totals.by_op[op] : 0))
      return Error(FEIGN_ERR_PLUGIN, "there is no op " + std::to_string(op));
  put_streams(x, tables, totals);
  put_sources(x, tables.sources);
  put_left_out(x, tables);
  put_totals(x, totals);
  put_needed(x, needed);
  put_names(x, tables, ops, !tables.notes.empty() || !tables.warnings.empty());
  put_notes(x, tables);
  if (x.size() > kMaxIndex)
    return Error(FEIGN_ERR_UNSUPPORTED, "the index takes " + std::to_string(x.size()) +
                                            " bytes, want at most " + std::to_string(kMaxIndex));
  return x;
}

Result<Index> take_index(Take bytes, uint64_t at, const std::string& name, Tables& tables) {
  return Reader(bytes, at, name, tables).read();
}

}  // namespace feign::native
