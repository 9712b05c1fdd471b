// SPDX-License-Identifier: MIT
// What stands at a native trace's end: where its blocks are, and what the tables hold
// (docs/native-format.md, Index).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "trace/native.h"
#include "trace/native_bytes.h"
#include "trace/native_format.h"
#include "trace/own_layer.h"
#include "trace/tables.h"

namespace feign::native {

// An index as it was read.
struct Index {
  struct Op {
    uint32_t id;           // in the tables
    uint32_t text_values;  // bits of values that are strings
    bool moves;            // data
  };
  std::vector<Block> blocks;
  std::vector<std::vector<uint32_t>> of_stream;  // blocks, by file stream
  std::vector<uint32_t> streams;                 // file stream -> stream of the tables
  std::vector<Op> ops;                           // by the number that the file's records have
  NativeTotals totals;
  std::vector<Needed> needed;
  std::vector<std::unique_ptr<OwnLayer>> layers;  // that only the file describes
};

// Which values of an op are strings: in a file they are the block's.
template <class Args>
uint32_t text_values(const Args& args) {
  uint32_t bits = 0;
  for (const auto& a : args)
    if (a.slot == FEIGN_SLOT_VALUE && a.index < 32 &&
        (a.type == FEIGN_ARG_STRING || a.type == FEIGN_ARG_PATH))
      bits |= 1u << a.index;
  return bits;
}

// The index of a file with these blocks, whose records have these ops (ids, by their number in the
// file).
Result<Bytes> put_index(const std::vector<Block>& blocks, const std::vector<uint32_t>& ops,
                        const NativeTotals& totals, const std::vector<Needed>& needed,
                        const Tables& tables);

// Reads the index of the file `name`, which stands `at` this byte (no block goes further), and
// registers what it names in `tables`. Every number is checked against what is left before it is
// believed. [main]
Result<Index> take_index(Take bytes, uint64_t at, const std::string& name, Tables& tables);

inline Error damaged(const std::string& name, uint64_t at, const std::string& what) {
  return {FEIGN_ERR_ARGUMENT, name + ": damaged at byte " + std::to_string(at) + ": " + what};
}

}  // namespace feign::native
