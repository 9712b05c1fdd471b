// SPDX-License-Identifier: MIT
// Memory to read into and write from.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>

namespace feign {

// Memory for calls of up to `size` bytes, for munmap(); null if there is none. More than `unit` of
// it is the same memory over and over: a trace that reads 2 GiB at once does not make this process
// as large. [any thread]
inline char* map_buffer(size_t size, size_t unit) {
  constexpr int kProtection = PROT_READ | PROT_WRITE;
  void* memory =
      mmap(nullptr, size, kProtection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  if (size <= unit) return static_cast<char*>(memory);
  const int fd = memfd_create("feign-buffer", MFD_CLOEXEC);
  bool good = fd >= 0 && ::ftruncate(fd, static_cast<off_t>(unit)) == 0;
  for (size_t at = 0; good && at < size; at += unit)
    good = mmap(static_cast<char*>(memory) + at, std::min(unit, size - at), kProtection,
                MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED;
  if (fd >= 0) ::close(fd);
  if (good) return static_cast<char*>(memory);
  munmap(memory, size);
  return nullptr;
}

}  // namespace feign
