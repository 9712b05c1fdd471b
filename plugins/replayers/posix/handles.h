// SPDX-License-Identifier: MIT
// What stands here for the handles of a trace: descriptors, stdio's streams, mapped memory.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "replayers/posix/libc_stream.h"

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
//
// Any thread may call any of it, but where it says otherwise. fds_ is atomic by itself. All else
// (who has which stream, what dup made, copies of forks) changes under mutex_; counts beside it
// tell those who want nothing of it so without the lock, and stream() finds the first stream of a
// handle so. A FILE* that was found may therefore be closed by another thread at that moment:
// libc's own lock keeps each call on it whole, and its memory stays for a while (close_stream()).
// Nobody closes the last descriptor of a file or flushes a stream under mutex_: both may wait. (A
// fork does wait there for who is in a call on a stream that it copies, which asks for no mutex_.)
class Descriptors {
 public:
  bool ok() const { return fds_.ok() && streams_.ok(); }
  // ok(), and the first of them have room already.
  bool ready() { return ok() && fds_.make_room(0); }
  ~Descriptors() { close_all(); }

  [[gnu::always_inline]] int get(uint32_t handle) const { return fds_.get(handle) - 1; }
  // What is left. [one thread, when no other is left]
  void close_all() {
    if (!ok()) return;
    while (!all_.empty()) {
      const uint32_t handle = all_.begin()->first.second;
      FILE* const file = remove(*all_.begin()->second);
      if (file == nullptr) continue;
      if (::fileno(file) == get(handle)) (void)take(handle);  // goes with it
      (void)close_stream(file);
    }
    for (FILE*& file : closed_)
      if (FILE* const gone = std::exchange(file, nullptr); gone != nullptr) (void)::fclose(gone);
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
  // Closes it and the streams on it, whose buffers are lost, as where a process ends without a
  // flush, or closes the descriptor itself; -1 with errno set if that fails or there is none.
  // `goes_on`: that process's stream may be on another one next (take_left()).
  int close(uint32_t handle, int64_t process, bool goes_on = false) {
    const int fd = take(handle);
    if (fd < 0) {
      errno = EBADF;
      return -1;
    }
    if (streams_.get(handle) == nullptr) return ::close(fd);
    std::vector<FILE*> files;
    {
      const std::lock_guard lock(mutex_);
      while (Stream* const s = streams_.get(handle)) {
        const bool its = s->process == process;
        FILE* const file = remove(*s);
        if (file == nullptr) continue;
        if (const size_t left = goes_on && its ? ::__fpending(file) : 0; left != 0)
          left_.insert_or_assign(handle, left);
        files.push_back(file);
      }
    }
    int result = 0;
    bool closed = false;
    for (FILE* const file : files) {
      ::__fpurge(file);
      const bool on_it = ::fileno(file) == fd;
      if (const int done = close_stream(file); on_it) result = done;
      closed = closed || on_it;
    }
    return closed ? result : ::close(fd);
  }
  // As fclose(3). Without an order, another thread may just have found it: its memory stays for a
  // while, unless that is much.
  int close_stream(FILE* file) {
    ::flockfile(file);
    const int fd = ::fileno(file);
    int result = ::__fpending(file) != 0 ? ::fflush(file) : 0;
    const bool closed = is_on(file, -1);
    ::funlockfile(file);
    if (closed && fd >= 0 && ::close(fd) != 0) result = -1;
    const int error = errno;
    FILE* gone = nullptr;
    std::unique_ptr<char[]> buffer;
    {
      const std::lock_guard lock(mutex_);
      const bool much = buffer_count_ != 0 && buffers_.contains(file);
      gone = much || !closed ? file : std::exchange(closed_[closed_next_++ % kClosed], file);
      if (const auto at = much ? buffers_.find(file) : buffers_.end(); at != buffers_.end()) {
        buffer = std::move(at->second);
        buffers_.erase(at);
        buffer_count_.store(buffers_.size(), std::memory_order_release);
      }
    }
    if (gone != nullptr && ::fclose(gone) != 0 && !closed) return EOF;
    errno = error;
    return result;
  }
  // As setvbuf(3), with a buffer of that size; 0: libc's own, which has its size from the file.
  int set_buffer(FILE* file, int mode, uint64_t size) {
    std::unique_ptr<char[]> buffer;
    if (mode != _IONBF && size != 0) {
      size = std::min(size, kMaxStreamBuffer);
      buffer.reset(new (std::nothrow) char[size]);
    }
    const int result = set_buffer_of(file, buffer.get(), mode, buffer != nullptr ? size : 0);
    if (result != 0 || buffer == nullptr) return result;  // may go on with the one that it has
    const std::lock_guard lock(mutex_);
    buffers_.insert_or_assign(file, std::move(buffer));
    buffer_count_.store(buffers_.size(), std::memory_order_release);
    return 0;
  }

  // What that process's stream on it, if there is one, has to write. What was read stays in its
  // buffer.
  int flush(uint32_t handle, int64_t process) {
    FILE* const file = stream(handle, process, false);
    return file != nullptr && ::__fpending(file) != 0 ? ::fflush(file) : 0;
  }

  // As fflush(3): the descriptor goes back to what was taken of what was read, too.
  void sync(uint32_t handle, int64_t process) {
    if (FILE* const file = stream(handle, process); file != nullptr) (void)::fflush(file);
  }

  // That process's stream on it, with a descriptor of its own, since the handle's stays: one that
  // dup made in that process, else a new one. Null if there is none, or another stream is on it,
  // too.
  FILE* take_stream(uint32_t handle, int64_t process) {
    FILE* const file = stream(handle, process);
    if (file == nullptr) return nullptr;
    const std::lock_guard lock(mutex_);
    if (const auto two = shared_.find({process, handle}); two != shared_.end()) {
      shared_.erase(two);
      return nullptr;
    }
    const int before = ::fileno(file);
    const bool own = before != get(handle);
    const auto at = further_of(handle, process);
    const auto taken = all_.find({process, handle});
    if (taken == all_.end()) return nullptr;  // by another thread
    if (at != further_.end()) {
      if (!is_on(file, at->second.fd)) return nullptr;
      if (own) ::close(before);
      further_.erase(at);
      further_count_.store(further_.size(), std::memory_order_release);
    } else if (!own) {
      const int copy = ::fcntl(before, F_DUPFD_CLOEXEC, 0);
      if (copy < 0) return nullptr;
      if (!is_on(file, copy)) {
        ::close(copy);
        return nullptr;
      }
    }
    return remove(*taken->second);
  }
  // fdopen() makes a stream on it.
  void also_stream(uint32_t handle, int64_t process) {
    if (stream(handle, process) == nullptr) return;
    const std::lock_guard lock(mutex_);
    shared_.emplace(process, handle);
  }

  // A process has a copy of every stream of the one that it is a fork of, but for what is to be
  // written: where it writes that, too, the trace says so. It is made when it is first asked for.
  // Not where all would take too much memory: the child's begin anew.
  void forks(int64_t process, int64_t child) {
    if (stream_count_.load(std::memory_order_acquire) == 0) return;
    const std::lock_guard lock(mutex_);
    std::vector<std::pair<uint32_t, std::unique_ptr<StreamCopy>>> copies;
    size_t bytes = copied_;
    for (auto at = all_.lower_bound({process, 0}); at != all_.end() && at->first.first == process;
         ++at) {
      const Stream& s = *at->second;
      if (all_.contains({child, s.handle})) continue;
      FILE* const file = s.file.load(std::memory_order_acquire);
      std::unique_ptr<StreamCopy> copy;
      if (file != nullptr) {
        ::flockfile(file);  // another thread of the process may be at it
        copy = std::make_unique<StreamCopy>(*file);
        ::funlockfile(file);
      } else if (s.copy != nullptr) {
        copy = std::make_unique<StreamCopy>(*s.copy);
      }
      if (copy == nullptr) continue;
      bytes += sizeof(Stream) + copy->memory();
      if (bytes > kMostCopied) break;
      copies.emplace_back(s.handle, std::move(copy));
    }
    for (auto& [handle, copy] : copies) {
      Stream& s = add_stream(handle, child, nullptr);
      s.takes = sizeof(Stream) + copy->memory();
      s.copy = std::move(copy);
      copied_ += s.takes;
      const size_t further = shared_.count({process, handle});
      for (size_t n = 0; n < further; ++n) shared_.emplace(child, handle);
    }
  }
  // It runs another program, or none: its streams are gone, and with them what is in their buffers.
  void forget_streams(int64_t process) {
    if (stream_count_.load(std::memory_order_acquire) == 0) return;
    std::vector<FILE*> files;
    {
      const std::lock_guard lock(mutex_);
      for (auto at = all_.lower_bound({process, 0}); at != all_.end() && at->first.first == process;
           at = all_.lower_bound({process, 0})) {
        const uint32_t handle = at->second->handle;
        FILE* const file = remove(*at->second);
        if (file == nullptr) continue;
        ::__fpurge(file);
        if (::fileno(file) != get(handle) || is_on(file, -1))
          files.push_back(file);  // that stays open
      }
      std::erase_if(shared_, [&](const auto& two) { return two.first == process; });
    }
    for (FILE* const file : files) (void)close_stream(file);
  }

  // How many bytes of that process's stream are to be written.
  size_t unwritten(uint32_t handle, int64_t process) {
    FILE* const file = stream(handle, process, false);
    return file != nullptr ? ::__fpending(file) : 0;
  }

  // … or were when it was closed.
  size_t take_left(uint32_t handle, int64_t process) {
    if (const size_t left = unwritten(handle, process); left != 0) return left;
    const std::lock_guard lock(mutex_);
    const auto at = left_.find(handle);
    if (at == left_.end()) return 0;
    const size_t left = at->second;
    left_.erase(at);
    return left;
  }

  // The stream on it has an empty buffer, and is where its descriptor is.
  void lose(uint32_t handle, int64_t process) {
    FILE* const file = stream(handle, process);
    if (file == nullptr) return;
    ::__fpurge(file);
    forgets_offset(file);
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

  // That process's stream on a handle's descriptor, made when it is first asked for, with a mode
  // that appends or does not (the descriptor may, all the same); null, with errno set, if that
  // cannot be.
  FILE* file(uint32_t handle, int64_t process, bool appends = false) {
    if (FILE* file = stream(handle, process); file != nullptr) return file;
    const std::lock_guard lock(mutex_);
    if (const auto at = all_.find({process, handle}); at != all_.end()) {
      errno = EMFILE;  // a copy that cannot be made
      return at->second->file;
    }
    if (!streams_.make_room(handle)) return nullptr;
    FILE* const file = new_file(handle, appends);
    if (file != nullptr) add_stream(handle, process, file);
    return file;
  }

 private:
  // What is not there is looked for without writing.
  int take(uint32_t handle) { return fds_.get(handle) == 0 ? -1 : fds_.exchange(handle, 0) - 1; }

  // A process's stream on a handle's descriptor. Its memory stays when it is gone, since who looks
  // for another one may have found it.
  struct Stream {
    std::atomic<uint32_t> handle{0};
    std::atomic<int64_t> process{0};
    std::atomic<FILE*> file{nullptr};  // null: to be made from the copy
    std::unique_ptr<StreamCopy> copy;
    size_t takes = 0;        // bytes: the copy, or what was made of it
    Stream* next = nullptr;  // of the same handle
  };

  // That process's stream on it, or null; of a copy, which is made to be one if it is not yet and
  // `make`; where that cannot be (too many descriptors are open), another process's.
  FILE* stream(uint32_t handle, int64_t process, bool make = true) {
    const Stream* const first = streams_.get(handle);
    if (first == nullptr) return nullptr;
    FILE* file = first->file.load(std::memory_order_acquire);
    if (file != nullptr && first->process == process && first->handle == handle &&
        first->file.load(std::memory_order_acquire) == file)  // and was so meanwhile
      return file;
    const std::lock_guard lock(mutex_);
    const auto at = all_.find({process, handle});
    if (at == all_.end()) return nullptr;
    Stream& s = *at->second;
    if (s.file != nullptr || s.copy == nullptr || !make) return s.file;
    file = from_copy(handle, *s.copy);
    if (file == nullptr) {
      for (const Stream* other = streams_.get(handle); other != nullptr && file == nullptr;
           other = other->next)
        file = other->file;
      return file;
    }
    s.copy = nullptr;
    return s.file = file;
  }

  // ---- these have the lock

  Stream& add_stream(uint32_t handle, int64_t process, FILE* file) {
    if (free_.empty()) free_.push_back(&memory_.emplace_back());
    Stream& s = *free_.back();
    free_.pop_back();
    s.handle = handle;
    s.process = process;
    s.file.store(file, std::memory_order_release);
    s.next = streams_.get(handle);
    all_.insert_or_assign({process, handle}, &s);
    (void)streams_.exchange(handle, &s);
    stream_count_.store(all_.size(), std::memory_order_release);
    return s;
  }
  // Its stream, if that was made; it is nobody's from now on.
  FILE* remove(Stream& s) {
    const uint32_t handle = s.handle;
    if (Stream* at = streams_.get(handle); at == &s) {
      (void)streams_.exchange(handle, s.next);
    } else {
      while (at->next != &s) at = at->next;
      at->next = s.next;
    }
    all_.erase({s.process, handle});
    stream_count_.store(all_.size(), std::memory_order_release);
    s.copy = nullptr;
    copied_ -= std::exchange(s.takes, 0);
    s.handle = 0;
    free_.push_back(&s);
    return s.file.exchange(nullptr);
  }
  // On the handle's own descriptor, or where that has a stream, on a copy.
  FILE* new_file(uint32_t handle, bool appends) {
    int fd = get(handle);
    const int flags = ::fcntl(fd, F_GETFL);
    if (flags < 0) return nullptr;
    bool copy = false;
    for (const Stream* s = streams_.get(handle); s != nullptr; s = s->next)
      copy = copy || (s->file != nullptr && ::fileno(s->file) == fd);
    if (copy) fd = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
    const char* mode = appends ? "a" : "w";
    if ((flags & O_ACCMODE) == O_RDWR) mode = appends ? "a+" : "r+";
    if ((flags & O_ACCMODE) == O_RDONLY) mode = "r";
    FILE* const file = fd >= 0 ? ::fdopen(fd, mode) : nullptr;
    if (file == nullptr && copy && fd >= 0) ::close(fd);
    return file;
  }
  FILE* from_copy(uint32_t handle, const StreamCopy& copy) {
    FILE* const f = new_file(handle, false);
    if (f == nullptr) return nullptr;
    std::unique_ptr<char[]> buffer;
    copy.into(*f, buffer);
    if (buffer != nullptr) {
      buffers_.insert_or_assign(f, std::move(buffer));
      buffer_count_.store(buffers_.size(), std::memory_order_release);
    }
    return f;
  }

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

  ByHandle<int> fds_;                                    // plus 1
  ByHandle<Stream*> streams_;                            // the youngest
  std::map<std::pair<int64_t, uint32_t>, Stream*> all_;  // by process and handle
  std::deque<Stream> memory_;
  std::vector<Stream*> free_;
  std::atomic<size_t> stream_count_{0};
  static constexpr size_t kMostCopied = size_t{256} << 20;
  size_t copied_ = 0;  // bytes that copies take, and what was made of them
  std::mutex mutex_;
  std::unordered_multimap<uint32_t, Further> further_;
  std::unordered_map<uint32_t, size_t> left_;
  static constexpr uint64_t kMaxStreamBuffer = uint64_t{16} << 20;
  std::unordered_map<FILE*, std::unique_ptr<char[]>> buffers_;
  std::atomic<size_t> buffer_count_{0};
  static constexpr size_t kClosed = 64;
  std::array<FILE*, kClosed> closed_{};  // the last ones that were closed
  size_t closed_next_ = 0;
  // Processes and handles, once for each stream but the first.
  std::multiset<std::pair<int64_t, uint32_t>> shared_;
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
