// SPDX-License-Identifier: MIT
// Files in memory: how mappings are made again.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "replayers/posix/calls.h"

namespace feign {
namespace {

// Into the page cache, not into the mapping: a program's own faults are in its pauses.
void fetch(int fd, uint64_t offset, uint64_t length) {
  char one;
  const auto first = static_cast<off_t>(offset);
  (void)::readahead(fd, first, length);
  (void)!::pread(fd, &one, 1, first);
  if (length > 4096) (void)!::pread(fd, &one, 1, first + static_cast<off_t>(length) - 1);
}

}  // namespace

int64_t Context::too_much() {
  outcome->why = r->room.why();
  return -EDQUOT;
}

int64_t Context::map(const feign_activity& a, int fd) {
  if (fd < 0) return -EBADF;
  const auto protection = static_cast<int>(value(a, 0)) & (PROT_READ | PROT_WRITE);
  const bool shared = (a.flags & MAP_SHARED) != 0;
  const int flags = static_cast<int>(a.flags & (MAP_TYPE | MAP_NONBLOCK)) | MAP_NORESERVE;
  void* memory = ::mmap(nullptr, a.length, protection, flags, fd, static_cast<off_t>(a.offset));
  if (memory == MAP_FAILED) return -errno;
  auto touch = static_cast<Touch>(r->options.touch);
  if (touch == kTouchSmall && a.length <= kReadAround && !r->in_memory)
    fetch(fd, a.offset, a.length);
  if (touch <= kTouchNone && (a.flags & MAP_POPULATE)) touch = kTouchRead;
  // Never by hand: what lies behind the end of the file cannot be touched (SIGBUS).
  if (touch > kTouchNone && protection != 0) {
    const bool write = touch == kTouchProtection && shared && (protection & PROT_WRITE);
    if (write && r->room.full(bytes + a.length)) {
      ::munmap(memory, a.length);
      return too_much();
    }
    if (write) bytes += a.length;
    // More than fits into memory is there only for a moment.
    static const uint64_t kMemory =
        static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(kPage);
    (void)::madvise(memory, std::min(a.length, kMemory),
                    write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
  }
  if (a.handle2 == 0 || !r->mappings.set(a.handle2, {static_cast<char*>(memory), a.length, shared}))
    ::munmap(memory, a.length);
  return static_cast<int64_t>(reinterpret_cast<uintptr_t>(memory));
}

int64_t Context::unmap(const feign_activity& a) {
  if (a.value_count == 0) return emulated(a.result);  // a part of it, or others still have it
  int64_t result = 0;
  for (uint32_t i = 0; i < a.value_count; ++i)
    if (const Mapping m = r->mappings.take(static_cast<uint32_t>(a.values[i])); m.memory != nullptr)
      result = checked(::munmap(m.memory, m.length));
  return result;
}

int64_t Context::remap(const feign_activity& a) {
  const Mapping m = r->mappings.get(a.handle);
  if (m.memory == nullptr || a.offset != 0 || value(a, 0) != m.length || a.result < 0)
    return emulated(a.result);
  void* memory = ::mremap(m.memory, m.length, a.length, MREMAP_MAYMOVE);
  if (memory == MAP_FAILED) return -errno;
  (void)r->mappings.take(a.handle);
  (void)r->mappings.set(a.handle, {static_cast<char*>(memory), a.length, m.shared});
  return static_cast<int64_t>(reinterpret_cast<uintptr_t>(memory));
}

int64_t Context::mapped(const feign_activity& a, int (*call)(void*, size_t, int)) {
  const Mapping m = r->mappings.get(a.handle);
  if (m.memory == nullptr || a.offset >= m.length || a.offset % 4096 != 0)
    return emulated(a.result);
  const size_t length = std::min<uint64_t>(a.length, m.length - a.offset);
  return checked(call(m.memory + a.offset, length, static_cast<int>(a.flags)));
}

int64_t Context::msync(const feign_activity& a) { return mapped(a, ::msync); }

int64_t Context::madvise(const feign_activity& a) {
  switch (a.flags) {
    case MADV_NORMAL:
    case MADV_RANDOM:
    case MADV_SEQUENTIAL:
    case MADV_WILLNEED:
    case MADV_DONTNEED:
    case MADV_REMOVE:
    case MADV_COLD:
    case MADV_PAGEOUT:
    case MADV_POPULATE_READ:
      return mapped(a, ::madvise);
    default:
      return emulated(a.result);  // about the process's memory, not the file
  }
}

}  // namespace feign
