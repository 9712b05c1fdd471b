// SPDX-License-Identifier: MIT
// Files in memory: which addresses are which file's, and which part of it.
#include <sys/mman.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "resolve/resolve.h"

namespace feign {

void Resolve::drop_piece(Memory& m, Mapping* mapping) {
  if (--mapping->pieces != 0) return;
  m.ended.push_back(mapping->handle);
  free_mappings_.push_back(mapping);
}

void Resolve::forget(Memory& m, std::vector<uint64_t>& ended) {
  for (auto& [address, piece] : m.pieces) drop_piece(m, piece.mapping);
  m.pieces.clear();
  ended.insert(ended.end(), m.ended.begin(), m.ended.end());
  m.ended.clear();
}

// What lies in the range goes; a piece that sticks out of it is cut.
void Resolve::unmap(Memory& m, uint64_t address, uint64_t length) {
  const uint64_t end = address + length;
  auto at = m.pieces.upper_bound(address);
  if (at != m.pieces.begin()) --at;
  while (at != m.pieces.end() && at->first < end) {
    const uint64_t start = at->first;
    const Piece piece = at->second;
    if (piece.end <= address) {
      ++at;
      continue;
    }
    at = m.pieces.erase(at);
    if (start < address) {
      m.pieces[start] = {address, piece.offset, piece.mapping};
      ++piece.mapping->pieces;
    }
    if (piece.end > end) {
      m.pieces[end] = {piece.end, piece.offset + (end - start), piece.mapping};
      ++piece.mapping->pieces;
    }
    drop_piece(m, piece.mapping);
    at = m.pieces.lower_bound(end);
  }
}

void Resolve::map(Memory& m, uint64_t address, uint64_t length, Mapping* mapping, uint64_t offset) {
  unmap(m, address, length);
  ++mapping->pieces;
  m.pieces[address] = {address + length, offset, mapping};
}

// mmap and what works on its addresses. Without a file it is memory, which is not ours.
const char* Resolve::memory_call(Record& r, Thread& t, Effect effect) {
  static constexpr const char* kMemory = "memory";
  feign_activity& a = r.a;
  Memory& m = *t.memory;
  const bool ok = (a.result >= 0 || a.result < -4095) && !(a.marks & FEIGN_NO_RESULT);
  const uint64_t result = static_cast<uint64_t>(a.result);
  constexpr uint64_t kMost = uint64_t{1} << 62;
  if (a.length > kMost || (ok && effect != Effect::kUnmap && result > kMost)) return kMemory;
  constexpr uint64_t kPage = 4096;
  const uint64_t length = (a.length + kPage - 1) / kPage * kPage;

  if (effect == Effect::kMap) {
    if (a.handle == 0 || FEIGN_FD_OF(a.handle) < 0 || (a.flags & MAP_ANONYMOUS)) {
      if (ok && (a.flags & MAP_FIXED)) unmap(m, result, length);
      return kMemory;
    }
    Description* d = find(t, a.handle, a.file);
    fill(a, d);
    a.handle2 = 0;
    if (!ok || d == nullptr) return nullptr;
    if (d->marks & FEIGN_NOT_A_FILE) {
      unmap(m, result, length);
      return nullptr;
    }
    if (free_mappings_.empty()) {
      mappings_.push_back(std::make_unique<Mapping>());
      free_mappings_.push_back(mappings_.back().get());
    }
    Mapping* mapping = free_mappings_.back();
    free_mappings_.pop_back();
    *mapping = {++last_handle_, d->file, d->path, 0};
    map(m, result, length, mapping, 0);
    a.handle2 = mapping->handle;
    return nullptr;
  }

  if (a.offset > kMost) return kMemory;
  const uint64_t address = a.offset;
  auto at = m.pieces.upper_bound(address);
  if (at != m.pieces.begin() && std::prev(at)->second.end > address) --at;
  const uint64_t span = effect == Effect::kRemap && a.value_count > 0
                            ? std::min<uint64_t>(a.values[0], kMost)
                            : length;
  if (at == m.pieces.end() || at->first >= address + span) return kMemory;
  const Piece piece = at->second;
  const uint64_t inside = address > at->first ? address - at->first : 0;
  a.handle = piece.mapping->handle;
  a.file = piece.mapping->file;
  a.path = piece.mapping->path;
  a.offset = piece.offset + inside;
  if (!ok) return nullptr;
  if (effect == Effect::kUnmap) {
    unmap(m, address, length);
    std::vector<uint64_t> ended = std::move(m.ended);
    m.ended.clear();
    r.set_values(ended);
  } else if (effect == Effect::kRemap) {
    ++piece.mapping->pieces;  // it stays, elsewhere
    unmap(m, address, span);
    map(m, result, length, piece.mapping, a.offset);
    --piece.mapping->pieces;
  }
  return nullptr;
}

}  // namespace feign
