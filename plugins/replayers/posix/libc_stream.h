// SPDX-License-Identifier: MIT
// What a replay needs to know of the inside of libc's streams: the buffers that a fork copies, and
// which descriptor a stream is on. glibc's (struct _IO_FILE); with another libc there is no copy.
#pragma once

#include <stdio_ext.h>
#include <sys/types.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

namespace feign {

// Is on that descriptor from now on; false if that cannot be.
inline bool is_on(FILE* f, int fd) {
#ifdef __GLIBC__
  f->_fileno = fd;
  return true;
#else
  (void)f, (void)fd;
  return false;
#endif
}

// As if it never asked where its descriptor is: somebody else moves that.
inline void forgets_offset(FILE* f) {
#ifdef __GLIBC__
  f->_offset = -1;
#else
  (void)f;
#endif
}

// While it lives, no other thread is at the stream, and that has no lines, if it ended its writes
// by them: what a replay writes has them by chance, and such a stream is flushed where the trace
// says so.
class WithoutLines {
 public:
#ifdef __GLIBC__
  explicit WithoutLines(FILE* f) : f_(f) {
    ::flockfile(f_);
    had_ = f_->_flags & kByLine;
    f_->_flags &= ~kByLine;
  }
  ~WithoutLines() {
    f_->_flags |= had_;
    ::funlockfile(f_);
  }

 private:
  static constexpr int kByLine = 0x200;
  FILE* f_;
  int had_ = 0;

 public:
#else
  explicit WithoutLines(FILE*) {}
#endif
  WithoutLines(const WithoutLines&) = delete;
  WithoutLines& operator=(const WithoutLines&) = delete;
};

// Under its lock. What libc wrote by itself of a stream that lines end in, or that has no buffer:
// all but the last `stays` bytes. And it knows where in the file it is then. `room` bytes at
// `memory` are for what stays; nothing is done where that is more. As fflush(3).
inline int flush_but(FILE* f, uint64_t stays, char* memory, size_t room) {
#ifdef __GLIBC__
  constexpr int kAppends = 0x1000;
  const size_t bytes = ::__fpending(f);
  if (stays > room || stays >= bytes) return 0;
  const off_t at = f->_offset;
  const bool knows = at >= 0 && f->_IO_read_ptr == f->_IO_read_end && (f->_flags & kAppends) == 0;
  const ptrdiff_t back = f->_IO_write_base - f->_IO_read_end;  // libc goes there first
  f->_IO_write_ptr -= stays;
  std::memcpy(memory, f->_IO_write_ptr, stays);
  const int result = ::fflush(f);
  if (knows && result == 0) f->_offset = at + back + static_cast<off_t>(bytes - stays);
  return stays == 0 || ::fwrite(memory, 1, stays, f) == stays ? result : EOF;
#else
  (void)stays, (void)memory, (void)room;
  return ::fflush(f);
#endif
}

// As fread(3) of bytes, but the buffer is filled as calls fill it that look for a character: where
// fread() may read past it.
inline size_t read_by_characters(FILE* f, char* to, size_t bytes) {
  size_t done = 0;
  while (done < bytes) {
    const int next = std::getc(f);
    if (next == EOF) break;
    to[done++] = static_cast<char>(next);
#ifdef __GLIBC__
    const auto filled = static_cast<size_t>(f->_IO_read_end - f->_IO_read_ptr);
    if (const size_t more = std::min(bytes - done, filled); more != 0)
      done += ::fread(to + done, 1, more, f);
#endif
  }
  return done;
}

// The last character that was read, if it is still there.
inline int read_last(const FILE* f, int otherwise) {
#ifdef __GLIBC__
  if (f->_IO_read_ptr > f->_IO_read_base) return static_cast<unsigned char>(f->_IO_read_ptr[-1]);
#else
  (void)f;
#endif
  return otherwise;
}

// As setvbuf(3). What was given back in front of a buffer goes with that; libc forgets that it was
// in another one, and frees the wrong one when the stream is closed.
inline int set_buffer_of(FILE* f, char* buffer, int mode, size_t size) {
#ifdef __GLIBC__
  constexpr int kInBackup = 0x100;
  char* const apart = (f->_flags & kInBackup) != 0 ? f->_IO_read_base : nullptr;
  const int result = ::setvbuf(f, buffer, mode, size);
  if (apart != nullptr && f->_IO_read_base != apart) {
    std::free(apart);
    f->_flags &= ~kInBackup;
    f->_IO_save_base = f->_IO_backup_base = f->_IO_save_end = nullptr;
  }
  return result;
#else
  return ::setvbuf(f, buffer, mode, size);
#endif
}

// What a fork's child has of a stream: all but what is to be written.
class StreamCopy {
 public:
#ifdef __GLIBC__
  explicit StreamCopy(const FILE& f)
      : flags_(f._flags & (kFlags | kUnbuffered)),
        offset_(f._offset),
        size_(f._IO_buf_end - f._IO_buf_base) {
    const char* const from = f._IO_buf_base;
    // What was given back in front of a buffer is in another one.
    const bool apart = (f._flags & kInBackup) != 0;
    const char* const base = apart ? f._IO_save_base : f._IO_read_base;
    // A buffer that setvbuf(3) made, and that nothing was in yet, has no places.
    const auto place = [from](const char* at) { return at != nullptr ? at - from : 0; };
    read_base_ = place(base);
    read_ptr_ = place(apart ? base : f._IO_read_ptr);
    read_end_ = place(apart ? f._IO_save_end : f._IO_read_end);
    write_base_ = place(f._IO_write_base);
    write_end_ = place(f._IO_write_end);
    if (from != nullptr && read_end_ > 0) bytes_.assign(from, from + read_end_);
  }
  // With the buffer of the stream that is made of it.
  size_t memory() const {
    return sizeof *this + bytes_.size() + static_cast<size_t>(std::max<ptrdiff_t>(size_, 0));
  }

  // Makes a stream that has done nothing one that was copied. `buffer`, if it has one, is its own
  // from now on, to be freed behind it.
  void into(FILE& f, std::unique_ptr<char[]>& buffer) const {
    if (size_ > 0) {
      // One that could not write what it had, as it was to have no buffer, keeps the one that it
      // has.
      const bool none = (flags_ & kUnbuffered) != 0 && size_ == 1;
      if (!none) buffer = std::make_unique_for_overwrite<char[]>(static_cast<size_t>(size_));
      (void)::setvbuf(&f, buffer.get(), none ? _IONBF : _IOFBF, static_cast<size_t>(size_));
      char* const to = f._IO_buf_base;
      std::copy(bytes_.begin(), bytes_.end(), to);
      f._IO_read_base = to + read_base_;
      f._IO_read_ptr = to + read_ptr_;
      f._IO_read_end = to + read_end_;
      f._IO_write_base = f._IO_write_ptr = to + write_base_;
      f._IO_write_end = to + write_end_;
    }
    f._offset = offset_;  // setvbuf() forgets it
    f._flags = (f._flags & ~kFlags) | (flags_ & (kFlags | kUnbuffered));
  }

 private:
  // Without reading, writing, at its end, failed, by line, writing now, appending.
  static constexpr int kFlags = 0x4 | 0x8 | 0x10 | 0x20 | 0x200 | 0x800 | 0x1000;
  static constexpr int kUnbuffered = 0x2, kInBackup = 0x100;
  int flags_;
  off_t offset_;
  ptrdiff_t size_, read_base_, read_ptr_, read_end_, write_base_, write_end_;
  std::vector<char> bytes_;  // of the buffer, as far as it was filled
#else
  explicit StreamCopy(const FILE&) {}
  static size_t memory() { return 0; }
  void into(FILE&, std::unique_ptr<char[]>&) const {}
#endif
};

}  // namespace feign
