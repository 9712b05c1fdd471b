// SPDX-License-Identifier: MIT
#pragma once

#include <unistd.h>

#include <utility>

namespace feign {

// A file descriptor, closed by whoever has it last; -1 if there is none.
class Fd {
 public:
  explicit Fd(int fd = -1) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }
  bool ok() const { return fd_ >= 0; }
  // The caller closes it from here on.
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

}  // namespace feign
