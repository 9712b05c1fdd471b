// SPDX-License-Identifier: MIT
// What stands here for the handles of a trace: descriptors, stdio's streams, mapped memory.
#pragma once

#include <fcntl.h>
#include <stdio_ext.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <mutex>
#include <new>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace feign {

// One atomic value for each handle, zero at first. [any thread]
template <typename T>
class ByHandle {
 public:
  ByHandle()
      : pages_(static_cast<std::atomic<Page*>*>(mmap(nullptr, kPages * sizeof(Page*),
                                                     PROT_READ | PROT_WRITE,
                                                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {}
  ~ByHandle() {
    if (!ok()) return;
    for (uint32_t i = 0; i < page_count_.load(std::memory_order_relaxed); ++i)
      delete pages_[i].load(std::memory_order_relaxed);
    munmap(pages_, kPages * sizeof(Page*));
  }
  bool ok() const { return pages_ != MAP_FAILED; }

  [[gnu::always_inline]] T get(uint32_t handle) const {
    const Page* p = page_of(handle);
    return p == nullptr ? T{} : p->values[handle % kPage].load(std::memory_order_acquire);
  }
  T exchange(uint32_t handle, T value) {
    Page* p = page_of(handle);
    return p == nullptr ? T{}
                        : p->values[handle % kPage].exchange(value, std::memory_order_acq_rel);
  }
  // So that exchange() finds room for it; false if there can be none.
  bool make_room(uint32_t handle) {
    if (handle / kPage >= kPages) return false;
    auto& page = pages_[handle / kPage];
    if (page.load(std::memory_order_acquire) != nullptr) return true;
    auto fresh = std::make_unique<Page>();
    Page* none = nullptr;
    if (page.compare_exchange_strong(none, fresh.get(), std::memory_order_acq_rel))
      (void)fresh.release();
    uint32_t count = page_count_.load();
    while (count <= handle / kPage &&
           !page_count_.compare_exchange_weak(count, handle / kPage + 1)) {
    }
    return true;
  }
  // Takes every value that is not zero. [one thread, when no other is left]
  template <typename Visit>
  void take_all(Visit&& visit) {
    if (!ok()) return;
    for (uint32_t i = 0; i < page_count_.load(std::memory_order_relaxed); ++i)
      if (Page* p = pages_[i].load(std::memory_order_relaxed))
        for (uint32_t at = 0; at < kPage; ++at)
          if (const T v = p->values[at].exchange(T{}, std::memory_order_relaxed); v != T{})
            visit(i * kPage + at, v);
  }

 private:
  static constexpr uint32_t kPage = 8192, kPages = 1u << 17;
  struct Page {
    std::atomic<T> values[kPage]{};
  };
  Page* page_of(uint32_t handle) const {
    return handle / kPage < kPages ? pages_[handle / kPage].load(std::memory_order_acquire)
                                   : nullptr;
  }
  std::atomic<Page*>* pages_;  // from the kernel: memory that is not used takes none
  std::atomic<uint32_t> page_count_{0};
};

// The real descriptors of handles, and the streams of stdio on them. A handle has one, and a
// further descriptor for each dup, which its process closes; all of them stand for the same open
// file, so any of the process's will do.
class Descriptors {
 public:
  bool ok() const { return fds_.ok() && files_.ok(); }
  // ok(), and the first of them have room already.
  bool ready() { return ok() && fds_.make_room(0); }
  ~Descriptors() { close_all(); }

  [[gnu::always_inline]] int get(uint32_t handle) const { return fds_.get(handle) - 1; }
  // What is left. [one thread, when no other is left]
  void close_all() {
    if (!ok()) return;
    files_.take_all([this](uint32_t handle, FILE* file) {
      (void)take(handle);  // goes with it
      (void)close_stream(file);
    });
    fds_.take_all([](uint32_t, int fd) { ::close(fd - 1); });
    for (const auto& [handle, further] : further_) ::close(further.fd);
    further_.clear();
  }
  // Takes the descriptor over; false if there is no room.
  bool set(uint32_t handle, int fd) {
    if (!fds_.make_room(handle)) return false;
    if (const int old = fds_.exchange(handle, fd + 1) - 1; old >= 0) ::close(old);
    return true;
  }
  // Closes it, or the stream on it, whose buffer is lost, as where a process ends without a flush,
  // or closes the descriptor itself; -1 with errno set if that fails or there is none. `goes_on`:
  // the stream may be on another one next (take_left()).
  int close(uint32_t handle, bool goes_on = false) {
    const int fd = take(handle);
    if (fd < 0) {
      errno = EBADF;
      return -1;
    }
    FILE* const file = files_.exchange(handle, nullptr);
    if (file == nullptr) return ::close(fd);
    if (const size_t left = goes_on ? ::__fpending(file) : 0; left != 0) {
      const std::lock_guard lock(mutex_);
      left_.emplace(handle, left);
    }
    ::__fpurge(file);
    return close_stream(file);
  }
  // As fclose(3), and its buffer goes, too.
  int close_stream(FILE* file) {
    std::unique_ptr<char[]> buffer;
    if (buffer_count_.load(std::memory_order_acquire) != 0) {
      const std::lock_guard lock(mutex_);
      if (const auto at = buffers_.find(file); at != buffers_.end()) {
        buffer = std::move(at->second);
        buffers_.erase(at);
      }
      buffer_count_.store(buffers_.size(), std::memory_order_release);
    }
    return ::fclose(file);
  }
  // As setvbuf(3), with a buffer of that size; 0: libc's own, which has its size from the file.
  int set_buffer(FILE* file, int mode, uint64_t size) {
    std::unique_ptr<char[]> buffer;
    if (mode != _IONBF && size != 0) {
      size = std::min(size, kMaxStreamBuffer);
      buffer.reset(new (std::nothrow) char[size]);
    }
    const int result = ::setvbuf(file, buffer.get(), mode, buffer != nullptr ? size : 0);
    if (result != 0 || buffer == nullptr) return result;  // may go on with the one that it has
    const std::lock_guard lock(mutex_);
    buffers_.insert_or_assign(file, std::move(buffer));
    buffer_count_.store(buffers_.size(), std::memory_order_release);
    return 0;
  }

  // What the stream on it, if there is one, has to write. What was read stays in its buffer.
  int flush(uint32_t handle) {
    FILE* const file = files_.get(handle);
    return file != nullptr && ::__fpending(file) != 0 ? ::fflush(file) : 0;
  }

  // The stream on it, with a descriptor that dup made in that process, where that is what stays
  // when the stream is closed; null if it is not so, or another stream is on it, too.
  FILE* take_stream(uint32_t handle, int64_t process) {
#ifdef __GLIBC__
    if (further_count_.load(std::memory_order_acquire) == 0 || files_.get(handle) == nullptr)
      return nullptr;
    const std::lock_guard lock(mutex_);
    const auto at = further_of(handle, process);
    if (at == further_.end()) return nullptr;
    if (const auto two = shared_.find(handle); two != shared_.end()) {
      shared_.erase(two);
      return nullptr;
    }
    FILE* const file = files_.exchange(handle, nullptr);
    if (file == nullptr) return nullptr;
    file->_fileno = at->second.fd;
    further_.erase(at);
    further_count_.store(further_.size(), std::memory_order_release);
    return file;
#else
    (void)handle, (void)process;
    return nullptr;
#endif
  }
  // fdopen() makes a stream on it.
  void also_stream(uint32_t handle) {
    const std::lock_guard lock(mutex_);
    if (files_.get(handle) != nullptr) shared_.insert(handle);
  }

  // How many bytes of that are to be written.
  size_t unwritten(uint32_t handle) const {
    FILE* const file = files_.get(handle);
    return file != nullptr ? ::__fpending(file) : 0;
  }

  // … or were when it was closed.
  size_t take_left(uint32_t handle) {
    if (const size_t left = unwritten(handle); left != 0) return left;
    const std::lock_guard lock(mutex_);
    const auto at = left_.find(handle);
    if (at == left_.end()) return 0;
    const size_t left = at->second;
    left_.erase(at);
    return left;
  }

  // The stream on it has an empty buffer, and is where its descriptor is.
  void lose(uint32_t handle) {
    FILE* const file = files_.get(handle);
    if (file == nullptr) return;
    ::__fpurge(file);
#ifdef __GLIBC__
    file->_offset = -1;  // as if never asked: somebody else moves the descriptor
#endif
  }

  void add(uint32_t handle, int fd, int64_t process) {
    const std::lock_guard lock(mutex_);
    further_.emplace(handle, Further{fd, process});
    further_count_.store(further_.size(), std::memory_order_release);
  }
  // One that dup made, in that process if there is one of it (a table of descriptors may be
  // shared); else -1.
  int take_further(uint32_t handle, int64_t process) {
    if (further_count_.load(std::memory_order_acquire) == 0) return -1;
    const std::lock_guard lock(mutex_);
    auto at = further_of(handle, process);
    if (at == further_.end()) at = further_.find(handle);
    if (at == further_.end()) return -1;
    const int fd = at->second.fd;
    further_.erase(at);
    further_count_.store(further_.size(), std::memory_order_release);
    return fd;
  }
  // All that dup made of it.
  void close_further(uint32_t handle) {
    if (further_count_.load(std::memory_order_acquire) == 0) return;
    std::vector<int> fds;  // to close them may take its time
    {
      const std::lock_guard lock(mutex_);
      const auto [from, to] = further_.equal_range(handle);
      for (auto at = from; at != to; ++at) fds.push_back(at->second.fd);
      further_.erase(from, to);
      further_count_.store(further_.size(), std::memory_order_release);
    }
    for (const int fd : fds) ::close(fd);
  }
  // All that dup made in that process.
  void ends(int64_t process) {
    if (further_count_.load(std::memory_order_acquire) == 0) return;
    std::vector<int> fds;
    {
      const std::lock_guard lock(mutex_);
      std::erase_if(further_, [&](const auto& further) {
        const bool its = further.second.process == process;
        if (its) fds.push_back(further.second.fd);
        return its;
      });
      further_count_.store(further_.size(), std::memory_order_release);
    }
    for (const int fd : fds) ::close(fd);
  }

  // The stream on a handle's descriptor, made when it is first asked for, with a mode that appends
  // or does not (the descriptor may, all the same); null, with errno set, if that cannot be.
  FILE* file(uint32_t handle, bool appends = false) {
    if (FILE* file = files_.get(handle); file != nullptr) return file;
    const std::lock_guard lock(mutex_);
    if (FILE* file = files_.get(handle); file != nullptr) return file;
    if (!files_.make_room(handle)) return nullptr;
    const int fd = get(handle), flags = ::fcntl(fd, F_GETFL);
    if (flags < 0) return nullptr;
    const char* mode = appends ? "a" : "w";
    if ((flags & O_ACCMODE) == O_RDWR) mode = appends ? "a+" : "r+";
    if ((flags & O_ACCMODE) == O_RDONLY) mode = "r";
    FILE* file = ::fdopen(fd, mode);
    if (file != nullptr) (void)files_.exchange(handle, file);
    return file;
  }

 private:
  // What is not there is looked for without writing.
  int take(uint32_t handle) { return fds_.get(handle) == 0 ? -1 : fds_.exchange(handle, 0) - 1; }

  struct Further {
    int fd;
    int64_t process;
  };
  std::unordered_multimap<uint32_t, Further>::iterator further_of(uint32_t handle,
                                                                  int64_t process) {
    const auto [from, to] = further_.equal_range(handle);
    const auto at = std::find_if(
        from, to, [process](const auto& further) { return further.second.process == process; });
    return at != to ? at : further_.end();
  }

  ByHandle<int> fds_;  // plus 1
  ByHandle<FILE*> files_;
  std::mutex mutex_;
  std::unordered_multimap<uint32_t, Further> further_;
  std::unordered_map<uint32_t, size_t> left_;
  static constexpr uint64_t kMaxStreamBuffer = uint64_t{16} << 20;
  std::unordered_map<FILE*, std::unique_ptr<char[]>> buffers_;
  std::atomic<size_t> buffer_count_{0};
  std::unordered_multiset<uint32_t> shared_;  // once for each stream but the first
  std::atomic<size_t> further_count_{0};
};

// What mmap made of files, by the handles of the mappings.
struct Mapping {
  char* memory = nullptr;
  size_t length = 0;
  bool shared = false;
};
class Mappings {
 public:
  ~Mappings() {
    for (const auto& [handle, m] : all_) munmap(m.memory, m.length);
  }
  // False if there are so many that the process itself could run short of them
  // (vm.max_map_count).
  bool set(uint32_t handle, const Mapping& m) {
    const std::lock_guard lock(mutex_);
    return all_.size() < kMost && all_.emplace(handle, m).second;
  }
  Mapping get(uint32_t handle) {
    const std::lock_guard lock(mutex_);
    const auto at = all_.find(handle);
    return at != all_.end() ? at->second : Mapping{};
  }
  Mapping take(uint32_t handle) {
    const std::lock_guard lock(mutex_);
    const auto at = all_.find(handle);
    if (at == all_.end()) return {};
    const Mapping m = at->second;
    all_.erase(at);
    return m;
  }

 private:
  static constexpr size_t kMost = 20'000;
  std::mutex mutex_;
  std::unordered_map<uint32_t, Mapping> all_;
};

}  // namespace feign
