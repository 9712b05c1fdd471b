// SPDX-License-Identifier: MIT
// Fuzzes the reader of the native format: whatever the bytes, an error or activities, never a
// crash. Run by tests/fuzz/run. The first byte says what the rest is. Even: a file as it stands.
// Odd: what is behind compression and checksums, which a fuzzer does not get past: how many
// records, the size of a block, the block, then the index from the ops on; a file with two of that
// block is made of them.
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "trace/native.h"
#include "trace/native_format.h"

namespace {

using namespace feign;
using namespace feign::native;

std::string packed(const std::string& raw) {
  std::string to(ZSTD_compressBound(raw.size()), '\0');
  to.resize(ZSTD_compress(to.data(), to.size(), raw.data(), raw.size(), 1));
  return to;
}

void varint(std::string& to, uint64_t v) {
  for (; v >= 0x80; v >>= 7) to += static_cast<char>(v | 0x80);
  to += static_cast<char>(v);
}

template <typename T>
void append(std::string& to, const T& layout) {
  to.append(reinterpret_cast<const char*>(&layout), sizeof layout);
}

std::string file_of(const uint8_t* data, size_t size) {
  if (size < 3) return "";
  const uint32_t records = data[0] + 1u;
  const size_t block_size = std::min<size_t>(data[1] | data[2] << 8, size - 3);
  const std::string block(reinterpret_cast<const char*>(data) + 3, block_size);
  const std::string rest(reinterpret_cast<const char*>(data) + 3 + block_size,
                         size - 3 - block_size);

  FileHeader header{};
  memcpy(header.magic, kMagic, sizeof kMagic);
  header.major = kMajor;
  std::string file, index;
  append(file, header);
  const std::string body = packed(block);
  varint(index, 2);
  for (uint32_t i = 0; i < 2; ++i) {
    BlockHeader h{kBlockMagic,
                  1 + i,
                  records,
                  static_cast<uint32_t>(block.size()),
                  static_cast<uint32_t>(body.size()),
                  0,
                  0};
    h.check = check_block(h, body.data());
    for (const uint64_t v :
         {uint64_t{file.size()}, uint64_t{h.stream}, uint64_t{records}, uint64_t{h.raw_size},
          uint64_t{h.packed_size}, uint64_t{0}, uint64_t{2} * records, uint64_t{0}, UINT64_MAX})
      varint(index, v);
    PathFilter all;
    std::fill(std::begin(all.bits), std::end(all.bits), UINT64_MAX);
    append(index, all);
    append(file, h);
    file += body;
  }
  index += rest;

  const std::string packed_index = packed(index);
  Trailer trailer{};
  trailer.index_offset = file.size();
  trailer.raw_size = index.size();
  trailer.packed_size = static_cast<uint32_t>(packed_index.size());
  trailer.check = check_of(packed_index.data(), packed_index.size(), trailer.raw_size);
  trailer.magic = kTrailerMagic;
  file += packed_index;
  append(file, trailer);
  return file;
}

void read_all(const std::shared_ptr<NativeReader>& reader, NativeReader::Range range,
              const Tables& tables) {
  NativeReader::Cursor cursor(reader, std::move(range));
  Record r{};
  uint64_t number = 0;
  for (uint64_t count = 0;; ++count) {
    auto more = cursor.next(r, number);
    if (!more && more.error().text().empty()) abort();
    if (!more || !*more) return;
    // What the reader promises to whoever sizes tables by its totals.
    if (r.a.stream == 0 || r.a.stream >= tables.streams.size()) abort();
    if (tables.ops.info(r.a.op) == nullptr) abort();
    if (std::max(r.a.handle, r.a.handle2) > reader->totals().max_handle) abort();
    if (count >= reader->totals().activities) abort();
    if (std::max(r.a.path, r.a.path2) >= tables.strings.size()) abort();
    for (const Dependency& d : r.depends)
      if (d.stream == 0 || d.stream >= tables.streams.size() || d.id >= r.a.id) abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string file = data[0] & 1
                               ? file_of(data + 1, size - 1)
                               : std::string(reinterpret_cast<const char*>(data) + 1, size - 1);
  const int fd = memfd_create("fuzz", MFD_CLOEXEC);
  if (fd < 0 || write(fd, file.data(), file.size()) != static_cast<ssize_t>(file.size())) abort();
  Tables tables;
  auto reader = NativeReader::open(fd, "fuzz", tables);  // the descriptor is its own now
  if (!reader) return 0;
  read_all(*reader, {}, tables);
  NativeReader::Range range;
  range.streams = {1};
  range.from = 1;
  range.path = "/a";
  read_all(*reader, range, tables);
  return 0;
}
