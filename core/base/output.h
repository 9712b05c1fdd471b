// SPDX-License-Identifier: MIT
// A file that is written in full or not at all.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/log.h"

namespace feign {

// Whatever a signal or a pipe makes of it, all of it. False, with errno, if that cannot be.
inline bool write_all(int fd, const void* data, size_t size) {
  const auto* at = static_cast<const char*>(data);
  while (size != 0) {
    const ssize_t n = ::write(fd, at, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

// A new file beside `name`, for what will be put in its place: NAME.N.part, which nobody else has,
// and no link leads elsewhere; less of the name where that would be longer than one may be. A
// descriptor for reading and writing, or -1 with errno.
inline int open_part(const std::string& name, std::string& part) {
  for (uint64_t n = static_cast<uint64_t>(::getpid());; ++n) {
    const std::string end = "." + std::to_string(n) + ".part";
    const size_t own = name.rfind('/') + 1;
    part = name.substr(0, own) + name.substr(own, NAME_MAX - end.size()) + end;
    const int fd = ::open(part.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
}

// The same as a stream, or null with errno and without a part.
inline FILE* open_part_stream(const std::string& name, std::string& part) {
  const int fd = open_part(name, part);
  FILE* const stream = fd >= 0 ? ::fdopen(fd, "w") : nullptr;
  if (stream != nullptr) return stream;
  const int e = errno;
  if (fd >= 0) {
    ::close(fd);
    ::unlink(part.c_str());
  }
  part.clear();
  errno = e;
  return nullptr;
}

// The name that links lead to, though nothing need be there yet; false, with errno, where they lead
// to each other.
inline bool follow_links(std::string& name) {
  constexpr int kMostLinks = 40;
  std::string to(PATH_MAX, '\0');
  for (int links = 0; links < kMostLinks; ++links) {
    const ssize_t length = ::readlink(name.c_str(), to.data(), to.size());
    if (length <= 0) return true;
    name.erase(to[0] == '/' ? 0 : name.rfind('/') + 1);
    name.append(to, 0, static_cast<size_t>(length));
  }
  return errno = ELOOP, false;
}

// Written beside its name (open_part) and put in its place by finish(). What is no regular file (a
// device, a FIFO) is written to directly, and a symbolic link stays one. Failures are in errno.
class OutputFile {
 public:
  ~OutputFile() {
    if (fd_ >= 0) ::close(fd_);
    if (!part_.empty()) ::unlink(part_.c_str());
  }
  bool open(const std::string& name) {
    struct stat st {};
    const bool there = ::stat(name.c_str(), &st) == 0;
    name_ = name;
    if (char* real = there ? ::realpath(name.c_str(), nullptr) : nullptr; real != nullptr) {
      name_ = real;
      ::free(real);
    }
    if (!there && !follow_links(name_)) return false;
    if (there && S_ISDIR(st.st_mode)) return errno = EISDIR, false;
    const bool direct = there && !S_ISREG(st.st_mode);
    fd_ = direct ? ::open(name_.c_str(), O_WRONLY | O_CLOEXEC) : open_part(name_, part_);
    if (fd_ < 0) part_.clear();
    return fd_ >= 0;
  }
  int fd() const { return fd_; }
  // Closes it and puts it in its place. What keep_fd() gave away has been closed before.
  bool finish() {
    if (fd_ >= 0 && ::close(std::exchange(fd_, -1)) != 0) return false;
    if (part_.empty()) return true;
    if (::rename(part_.c_str(), name_.c_str()) != 0) return false;
    part_.clear();
    return true;
  }
  // For fdopen(3) and the like: closing it is the caller's from here on.
  int keep_fd() { return std::exchange(fd_, -1); }

 private:
  std::string name_, part_;
  int fd_ = -1;
};

// Whether a file that is written at the end could be opened now; if not, errno. (What is no regular
// file is not opened for that: who reads from a FIFO would take it for the end.)
inline bool can_be_written(const std::string& name) {
  struct stat st {};
  if (::stat(name.c_str(), &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
    return ::access(name.c_str(), W_OK) == 0;
  return OutputFile().open(name);
}

// To standard output ("" or "-"; printable if that is a terminal), or to a file that appears when
// it is complete.
inline Result<void> put_text(const std::string& text, const std::string& output) {
  if (output.empty() || output == "-") {
    errno = 0;
    const std::string shown = isatty(STDOUT_FILENO) != 0 ? printable(text) : text;
    const bool good = ::fflush(stdout) == 0 && write_all(STDOUT_FILENO, shown.data(), shown.size());
    if (good || errno == EPIPE) return {};  // a reader that has seen enough, as head does
    return errno_error("write standard output", errno);
  }
  OutputFile file;
  if (!file.open(output) || !write_all(file.fd(), text.data(), text.size()) || !file.finish())
    return errno_error("write " + output, errno);
  return {};
}

// What is to be written: the option that says so, and the file that it names.
struct Written {
  std::string by, file;
  bool trace = false;  // a trace, which may have more files than the one that is named
};

// An error if an output would take the place of a file that is read, or of another output. Before
// anything is done: at the end it would be too late for the trace.
Result<void> none_overwritten(const std::vector<std::string>& read,
                              const std::vector<Written>& written);

}  // namespace feign
