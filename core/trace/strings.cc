// SPDX-License-Identifier: MIT
#include "trace/strings.h"

#include <cstring>
#include <functional>
#include <new>

namespace feign {
namespace {
uint32_t hash_of(std::string_view text) {
  const uint64_t h = std::hash<std::string_view>{}(text);
  return static_cast<uint32_t>(h ^ (h >> 32));
}
}  // namespace

Strings::Strings() : table_(1024, 0) {
  auto* first = new Entry[kFirst];
  first[0] = {"", 0, 0};
  chunks_[0].store(first, std::memory_order_release);
  count_.store(1, std::memory_order_release);
}

Strings::~Strings() {
  for (auto& chunk : chunks_) delete[] chunk.load(std::memory_order_relaxed);
}

std::string_view Strings::text(uint32_t id) const {
  if (id >= size()) return {"", 0};
  const Entry& e = entry(id);
  return {e.text, e.length};
}

uint32_t* Strings::slot(std::string_view text, uint32_t hash) const {
  const size_t mask = table_.size() - 1;
  for (size_t i = hash & mask;; i = (i + 1) & mask) {
    uint32_t& id = table_[i];
    if (id == 0) return &id;
    const Entry& e = entry(id);
    if (e.hash == hash && e.length == text.size() && memcmp(e.text, text.data(), e.length) == 0)
      return &id;
  }
}

uint32_t Strings::find(std::string_view text) const {
  if (text.empty()) return 0;
  const std::lock_guard lock(mutex_);
  return *slot(text, hash_of(text));
}

uint32_t Strings::intern(std::string_view text) {
  if (text.empty()) return 0;
  const uint32_t hash = hash_of(text);
  const std::lock_guard lock(mutex_);
  uint32_t* at = slot(text, hash);
  if (*at != 0) return *at;

  const uint32_t id = count_.load(std::memory_order_relaxed);
  const At where = place_of(id);
  if (where.chunk >= kChunks) throw std::bad_alloc();
  if (arena_size_ - arena_used_ < text.size() + 1) {
    arena_size_ = std::max<size_t>(size_t{64} << 10, text.size() + 1);
    arena_.emplace_back(new char[arena_size_]);
    arena_used_ = 0;
  }
  char* copy = arena_.back().get() + arena_used_;
  memcpy(copy, text.data(), text.size());
  copy[text.size()] = '\0';
  arena_used_ += text.size() + 1;

  auto& chunk = chunks_[where.chunk];
  if (chunk.load(std::memory_order_relaxed) == nullptr)
    chunk.store(new Entry[size_t{kFirst} << where.chunk], std::memory_order_release);
  chunk.load(std::memory_order_relaxed)[where.index] = {copy, static_cast<uint32_t>(text.size()),
                                                        hash};
  count_.store(id + 1, std::memory_order_release);
  *at = id;
  if (size_t{id} * 2 > table_.size()) grow();
  return id;
}

void Strings::grow() {
  std::vector<uint32_t> bigger(table_.size() * 4, 0);
  const size_t mask = bigger.size() - 1;
  for (const uint32_t id : table_) {
    if (id == 0) continue;
    size_t i = entry(id).hash & mask;
    while (bigger[i] != 0) i = (i + 1) & mask;
    bigger[i] = id;
  }
  table_.swap(bigger);
}

}  // namespace feign
