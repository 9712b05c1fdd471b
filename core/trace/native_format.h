// SPDX-License-Identifier: MIT
// What writer and reader of the native format agree on; docs/native-format.md is the description.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace feign::native {

constexpr char kMagic[8] = {'F', 'E', 'I', 'G', 'N', 'T', 'R', '\n'};
constexpr uint16_t kMajor = 1, kMinor = 0;
constexpr uint32_t kBlockMagic = 0x4B4C4246;    // "FBLK"
constexpr uint32_t kTrailerMagic = 0x444E4546;  // "FEND"

constexpr uint32_t kMaxRecords = 4096;           // in a block
constexpr size_t kFullBlock = size_t{48} << 10;  // a block is closed when it has this many bytes
constexpr size_t kMaxBlock = size_t{16} << 20;   // and never has more, decompressed
constexpr size_t kMaxIndex = size_t{1} << 30;    // nor the index, decompressed
constexpr size_t kMaxOps = size_t{1} << 16;
constexpr uint32_t kNeededChanged = 16;  // added to a needed file's type

struct FileHeader {
  char magic[8];
  uint16_t major, minor;
  uint32_t reserved;
};
static_assert(sizeof(FileHeader) == 16);

struct BlockHeader {
  uint32_t magic;
  uint32_t stream;
  uint32_t records;
  uint32_t raw_size;     // decompressed
  uint32_t packed_size;  // as it follows
  uint32_t check;        // of the fields above and the packed bytes
  uint64_t first_number;
};
static_assert(sizeof(BlockHeader) == 32);

struct Trailer {
  uint64_t index_offset;
  uint64_t raw_size;
  uint32_t packed_size;
  uint32_t check;  // of the packed index
  uint32_t reserved;
  uint32_t magic;
};
static_assert(sizeof(Trailer) == 32);

// Which fields of a record are not as predicted. In the order in which they follow.
enum Field : uint32_t {
  kOp = 1u << 0,        // index into the file's ops; predicted: as before
  kNumber = 1u << 1,    // predicted: one more than before
  kId = 1u << 2,        // predicted: number * 65536 + 65536
  kStart = 1u << 3,     // predicted: the end of the one before, plus think time
  kDuration = 1u << 4,  // predicted: as before
  kOffset = 1u << 5,    // predicted: end of the one before (offset + length)
  kLength = 1u << 6,    // predicted: as before
  kResult = 1u << 7,    // predicted: the length if it moved data, else 0
  kHandle = 1u << 8,    // predicted: as before (all of these)
  kFile = 1u << 9,
  kPath = 1u << 10,
  kFlags = 1u << 11,
  kMode = 1u << 12,
  kPath2 = 1u << 13,    // predicted: 0
  kHandle2 = 1u << 14,  // predicted: 0
  kCompute = 1u << 15,  // predicted: start less the end of the one before
  kSync = 1u << 16,     // predicted: 0
  kPlace = 1u << 17,    // predicted: one more than before
  kMarks = 1u << 18,    // predicted: as before
  kValues = 1u << 19,   // predicted: none
  kDepends = 1u << 20,  // predicted: none
};
constexpr uint32_t kAllFields = (1u << 21) - 1;

// FNV-1a over 8 bytes at a time: guards against damage, not against malice.
inline uint32_t check_of(const void* data, size_t size, uint64_t h = 0xcbf29ce484222325u) {
  const auto* p = static_cast<const unsigned char*>(data);
  for (; size >= 8; p += 8, size -= 8) {
    uint64_t w;
    memcpy(&w, p, 8);
    h = (h ^ w) * 0x100000001b3u;
    h ^= h >> 29;
  }
  for (; size > 0; ++p, --size) h = (h ^ *p) * 0x100000001b3u;
  h ^= h >> 32;
  return static_cast<uint32_t>(h * 0x9E3779B1u >> 0);
}
inline uint32_t check_block(const BlockHeader& h, const void* packed) {
  BlockHeader clean = h;
  clean.check = 0;
  return check_of(packed, h.packed_size, check_of(&clean, sizeof clean));
}

// A Bloom filter of a block's paths: 512 bits, three of them a path.
struct PathFilter {
  uint64_t bits[8] = {};
  static uint64_t hash(std::string_view path) {
    uint64_t h = 0xcbf29ce484222325u;
    for (const char c : path) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    return h ^ (h >> 31);
  }
  void add(uint64_t h) {
    for (int i = 0; i < 3; ++i, h >>= 9) bits[(h >> 6) & 7] |= uint64_t{1} << (h & 63);
  }
  bool may_have(uint64_t h) const {
    for (int i = 0; i < 3; ++i, h >>= 9)
      if (!(bits[(h >> 6) & 7] >> (h & 63) & 1)) return false;
    return true;
  }
};

// A block as the index has it.
struct Block {
  uint64_t offset;
  uint32_t stream, records, raw_size, packed_size;
  uint64_t first_number, last_number, first_ns, last_ns;
  PathFilter filter;
};

// What a record is predicted from besides the one before it: the last one of its op.
struct LikeOp {
  uint64_t length = 0;
  uint32_t flags = 0, mode = 0, marks = 0;
};

}  // namespace feign::native
