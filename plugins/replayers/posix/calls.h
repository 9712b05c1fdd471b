// SPDX-License-Identifier: MIT
// How the calls of a stream are made below the root: by libc's own symbols, so that what interposes
// on them (a profiler, bench/stamp.c) sees a replay as it sees a program.
#pragma once

#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/fs.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/jail.h"
#include "base/path.h"
#include "base/room.h"
#include "feign.h"
#include "layers/posix_ops.h"
#include "replayers/posix/directories.h"
#include "replayers/posix/handles.h"
#include "replayers/posix/locks.h"
#include "replayers/posix/written.h"

namespace feign {

inline int64_t checked(int64_t result) { return result < 0 ? -errno : result; }

inline thread_local Directories t_directories;

enum Touch : uint32_t { kTouchSmall, kTouchNone, kTouchRead, kTouchProtection };
// The first access to a mapped file reads so much of it around that page, wherever it is.
constexpr uint64_t kReadAround = 128 << 10;

enum Lookup : uint32_t { kLookupAuto, kLookupNamed, kLookupNearest };

struct Options {
  uint32_t touch;
  uint32_t lookup;
  uint32_t verify;
  const char* content;
};

// What is mapped behind the buffers: data may lie as much as that past a page's beginning.
constexpr size_t kPage = 4096;

struct Context;

// What feign.hpp makes a component of.
struct Replayer {
  using Stream = Context;
  Replayer(const feign_host* h, const Options& o) : host(h), options(o) {}
  feign_status start();
  feign_status execute(Context& c, const feign_activity& a, feign_outcome& outcome);

  const feign_host* host;
  Options options;
  uint32_t stdio = 0;  // the id of the first op of layer stdio
  int root = -1;
  bool asks_again = false;  // names are looked up for each call, as far as the program named them
  bool alone = false;       // one thread does it all, and nothing else does any
  bool several = false;     // processes replay; each has what its own ranks opened
  bool in_memory = false;   // the root's file system: nothing there has to be fetched
  const bool is_root = ::geteuid() == 0;
  size_t buffer_size = 0;
  char* write_buffer = nullptr;  // shared: only read from
  int nowhere = -1;              // /dev/null, for what went into a pipe or socket
  Room room;
  uint64_t tell = 0;  // a stream says what it wrote when it is this much
  Descriptors descriptors;
  Locks locks{descriptors};
  Mappings mappings;
  feign::Written written;
  std::mutex open_mutex;             // opening what was open before the trace
  std::set<uint32_t> unplaced;       // … whose offset nobody moved or asked for yet: handles
  std::atomic<uint32_t> made_up{0};  // names
  std::mutex listings_mutex;
  std::map<uint32_t, int64_t> listings;  // bytes by which one lags behind: handles
  std::set<uint32_t> told_where;         // inherited handles of which a seek told it
  Names names;
  std::mutex aio_mutex;
  struct Aio {
    aio_context_t context = 0;
    std::atomic<int64_t> under_way{0};    // requests submitted, whose end nobody has got
    std::atomic<int64_t> got{0};          // ends that a full context made its submitter get
    std::atomic<int64_t> failed{0};       // -errno of one of these
    std::atomic<bool> incomplete{false};  // what others were to submit did not come
  };
  // By process and recorded context. Who waits there has it for as long as it waits.
  std::map<std::pair<int64_t, uint64_t>, std::shared_ptr<Aio>> aio;

  ~Replayer() {
    for (const auto& [key, one] : aio) syscall(SYS_io_destroy, one->context);
    if (write_buffer != nullptr) munmap(write_buffer, buffer_size + kPage);
    if (nowhere >= 0) ::close(nowhere);
  }
};

// Hosts number their processes each for itself.
inline int64_t process_on(uint32_t host, int64_t process) {
  return static_cast<int64_t>(host) << 32 | process;
}
// Less than 0 where the trace has no numbers: then ranks are processes, else streams.
inline int64_t process_of(const feign_stream_info& info) {
  if (info.process >= 0) return process_on(info.host, info.process);
  return info.rank >= 0 ? -1 - 2 * int64_t{info.rank} : -2 - 2 * int64_t{info.id};
}

// A stream, and how its calls are made.
struct Context {
  Replayer* r;
  Directories* directories = &t_directories;  // of the thread that opened the stream, and serves it
  feign_outcome* outcome = nullptr;
  char* read_buffer = nullptr;  // the thread's
  char* fill_buffer = nullptr;  // of its own, if what is written depends on where
  char* out_buffer = nullptr;   // what to write from
  int64_t process = 0;          // process_of()
  uint64_t bytes = 0;           // written since the last that the replayer knows of
  uint32_t closing = 0;         // a handle whose fclose() is left to the system calls in it
  std::vector<iovec> vectors;
  union {
    struct stat stat;
    struct statx statx;
    struct statfs statfs;
  } space;

  // Data that the next call moves begins so many bytes later in memory.
  void move_buffers(ptrdiff_t by) {
    read_buffer += by;
    out_buffer += by;
    if (fill_buffer != nullptr) fill_buffer += by;
  }

  Context(Replayer& of, const feign_stream_info& info);
  ~Context() {
    if (fill_buffer != nullptr) munmap(fill_buffer, r->buffer_size + kPage);
  }

  int descriptor(uint32_t handle) const { return handle != 0 ? r->descriptors.get(handle) : -1; }

  int64_t skip(const char* why) {
    outcome->doing = FEIGN_SKIPPED;
    outcome->why = why;
    return 0;
  }
  int64_t emulated(int64_t result) {
    outcome->doing = FEIGN_EMULATED;
    return result;
  }

  template <typename T>
  T* scratch() {
    return reinterpret_cast<T*>(&space);
  }
  // More than the buffers hold is never asked for: the kernel moves at most 2 GiB a call.
  size_t fit(uint64_t length) const { return std::min<uint64_t>(length, r->buffer_size); }

  const iovec* iov(const feign_activity& a, char* memory) {
    vectors.clear();
    size_t at = 0;  // one after the other, as far as there is memory
    size_t left = fit(a.length);
    for (uint32_t i = 0; i < a.value_count && i < IOV_MAX; ++i) {
      const size_t length = std::min(left, fit(a.values[i]));
      left -= length;
      if (length > r->buffer_size - at) at = 0;
      vectors.push_back({memory + at, length});
      at += length;
    }
    if (vectors.empty()) vectors.push_back({memory, fit(a.length)});
    return vectors.data();
  }
  int iov_count(const feign_activity& a) {
    return a.value_count == 0 ? 1 : static_cast<int>(std::min<uint32_t>(a.value_count, IOV_MAX));
  }
  static uint64_t value(const feign_activity& a, uint32_t i) {
    return i < a.value_count ? a.values[i] : 0;
  }
  // Without the hints that this file system does not know (tmpfs: RWF_DONTCACHE), and without
  // RWF_NOWAIT: what could be done at once then is waited for.
  int64_t vectors2(const feign_activity& a, int fd, char* memory,
                   ssize_t (*call)(int, const iovec*, int, off64_t, int)) {
    constexpr uint32_t kAtomic = 64, kDontCache = 128,
                       kNoSignal = 256;  // younger than some headers
    constexpr uint32_t kHints = RWF_HIPRI | kAtomic | kDontCache | kNoSignal;
    const auto with = [&](uint32_t flags) {
      return checked(call(fd, iov(a, memory), iov_count(a), offset2(a), static_cast<int>(flags)));
    };
    const uint32_t flags = a.flags & ~uint32_t{RWF_NOWAIT};
    const int64_t result = with(flags);
    return result == -EOPNOTSUPP && (flags & kHints) ? with(flags & ~kHints) : result;
  }
  off_t offset2(const feign_activity& a) {
    return (a.mode & 1) != 0 ? off_t{-1} : static_cast<off_t>(a.offset);
  }

  Where where(uint32_t path) { return directories->find(r->host, r->root, path, r->names, r); }
  // Both at once: finding one may close the directory that the other was found in.
  std::pair<Where, Where> where(uint32_t path, uint32_t path2) {
    for (;;) {
      const uint64_t before = directories->emptied();
      const std::pair<Where, Where> found{where(path), where(path2)};
      if (directories->emptied() == before) return found;
    }
  }
  // The names that the program's kernel looked up before the last one of each path.
  void look_up(const feign_activity& a) {
    const auto again = [&](uint32_t path, uint32_t components) {
      if (path != 0 && components > 1)
        directories->look_up(text(path), components, r->root, r->names, r);
    };
    again(a.path, FEIGN_NAMED_BY(a.marks));
    again(a.path2, FEIGN_NAMED_BY2(a.marks));
  }
  const char* text(uint32_t path) { return r->host->text(r->host, path, nullptr); }
  // The file behind a path, every link followed within the root, as an O_PATH descriptor or -errno.
  int target(uint32_t path, uint64_t flags = O_PATH) {
    return feign::open_in_root(r->root, text(path), flags | O_CLOEXEC, 0);
  }
  // A directory or link has this name no longer; `below`: but another one, and all in it, too.
  void name_changed(uint32_t path, const Where& where, bool below) {
    r->names.changed(where.plain ? text(path) : "", below);
    made();
  }
  void made() { r->names.common->made.fetch_add(1, std::memory_order_acq_rel); }
  // A call made this name, if it went well. (By a new link, other names are there, too.)
  int64_t made(uint32_t path, int64_t result) {
    const feign::Missing& missing = r->names.common->missing;
    if (result >= 0 && missing.any() && missing.may_have(text(path))) made();
    return result;
  }

  // ---- open files: descriptors, locks, bytes from one to another (files.cc) ---------------------

  int64_t open(const feign_activity& a);
  void goes_on(const feign_activity& a, int64_t fd, size_t left);
  int64_t open_again(const feign_activity& a);
  int64_t open_file(const feign_activity& a);
  int64_t close(const feign_activity& a);
  int64_t fclose(const feign_activity& a);
  size_t give_up(uint32_t handle, bool last);
  int64_t dup(const feign_activity& a, int fd);
  int64_t fcntl(const feign_activity& a, int fd);
  int64_t lock(const feign_activity& a, int fd, int command, uint32_t file);
  std::string a_name();
  int nameless(const feign_activity& a, int flags, mode_t mode);
  int64_t sync();
  static ssize_t send(int from, off64_t* at, int to, off64_t*, size_t length, unsigned);
  int64_t copy(const feign_activity& a, int fd, int fd2,
               ssize_t (*call)(int, off64_t*, int, off64_t*, size_t, unsigned));
  int64_t clone(const feign_activity& a, int fd);
  int inherited(uint32_t handle, uint32_t path);
  void place(const feign_activity& a, Effect effect, int fd);
  void is_elsewhere(const feign_activity& a, int fd, int64_t is);
  int64_t fallocate(const feign_activity& a, int fd);
  int64_t fadvise(const feign_activity& a, int fd);
  int64_t flock(const feign_activity& a, int fd);

  // ---- names and what they mean (names.cc) ------------------------------------------------------

  int64_t stat(const feign_activity& a, int fd);
  int64_t statx(const feign_activity& a, int fd);
  template <typename Call>
  int64_t at_target(uint32_t path, Call&& call);
  int64_t access(const feign_activity& a, int fd);
  int64_t readlink(const feign_activity& a);
  int64_t unlink(const feign_activity& a, int flags);
  int64_t rename(const feign_activity& a);
  int64_t rename_by_hand(const Where& from, const Where& to, uint32_t flags);
  int64_t mkdir(const feign_activity& a);
  int64_t link(const feign_activity& a);
  int64_t symlink(const feign_activity& a);
  const char* by_descriptor(int fd);
  static int64_t fchmodat2(int dir, const char* name, mode_t mode, int flags);
  int no_follow(uint32_t path);
  template <typename Call>
  int64_t at_file(const feign_activity& a, Call&& call);
  template <typename Call>
  int64_t at_name(const feign_activity& a, Call&& call);
  mode_t mode_of(const feign_activity& a) const;
  bool permit(const feign_activity& a, int fd);
  int64_t chmod(const feign_activity& a);
  int64_t chown(const feign_activity& a, int fd);
  int64_t mknod(const feign_activity& a);
  int64_t bind(const feign_activity& a);
  template <typename Call>
  int64_t attribute(const feign_activity& a, int fd, Call&& call);
  int64_t get_attribute(const feign_activity& a, int fd);
  int64_t list_attributes(const feign_activity& a, int fd);
  int64_t set_attribute(const feign_activity& a, int fd);
  int64_t remove_attribute(const feign_activity& a, int fd);
  int64_t get_flags(const feign_activity& a, int fd);
  bool of_user(const feign_activity& a);
  int64_t truncate(const feign_activity& a, int fd);
  int64_t utimens(const feign_activity& a, int fd);
  int64_t statfs(const feign_activity& a);
  int64_t entries(const feign_activity& a, int fd);
  int64_t getdents(const feign_activity& a, int fd);
  int64_t listed(const feign_activity& a, int fd, int64_t result);
  void lists_anew(const feign_activity& a);

  // ---- files in memory (memory.cc) --------------------------------------------------------------

  int64_t too_much();
  int64_t map(const feign_activity& a, int fd);
  int64_t unmap(const feign_activity& a);
  int64_t remap(const feign_activity& a);
  int64_t mapped(const feign_activity& a, int (*call)(void*, size_t, int));
  int64_t msync(const feign_activity& a);
  int64_t madvise(const feign_activity& a);

  // ---- asynchronous requests, io_submit(2) (aio.cc) ---------------------------------------------

  static constexpr uint64_t kMostRequests = 1024;
  std::shared_ptr<Replayer::Aio> aio(const feign_activity& a, uint64_t requests = kMostRequests);
  int64_t aio_setup(const feign_activity& a);
  int64_t aio_submit(const feign_activity& a, int fd);
  int64_t aio_wait(const feign_activity& a);
  int64_t aio_destroy(const feign_activity& a);

  // ---- layer stdio (stdio.cc) -------------------------------------------------------------------

  FILE* file(const feign_activity& a);
  // What a call on a stream says: bytes, or the error if there are none.
  template <typename Call>
  int64_t on_file(const feign_activity& a, Call&& call) {
    FILE* const f = file(a);
    if (f == nullptr) return -errno;
    if (::ferror(f)) ::clearerr(f);  // once at its end a stream stays there, until it is moved
    const WithoutLines whole(f);
    const auto result = static_cast<int64_t>(call(f));
    return result <= 0 && ::ferror(f) ? -errno : result;
  }
  void lose(const feign_activity& a, Effect effect);
  bool unwritten(const feign_activity& a) const;
  int64_t fopen(const feign_activity& a);
  int64_t open_stream(const feign_activity& a);
  static void to_end(const feign_activity& a, int fd);
  int64_t fdopen(const feign_activity& a);
  int64_t freopen(const feign_activity& a);
  template <typename Some>
  int64_t reads(const feign_activity& a, uint64_t length, Some&& some);
  int64_t fread(const feign_activity& a);
  int64_t gets(const feign_activity& a);
  int64_t ungetc(const feign_activity& a);
  int64_t fwrite(const feign_activity& a);
  int64_t fputc(const feign_activity& a);
  int64_t fflush(const feign_activity& a);
  int64_t fseek(const feign_activity& a);
  int64_t ftell(const feign_activity& a);
  int64_t setvbuf(const feign_activity& a);
  int64_t remove(const feign_activity& a);

  // ---- process structure ------------------------------------------------------------------------

  int64_t ends(const feign_activity& a);
  int64_t forks(const feign_activity& a);
  int64_t nothing(const feign_activity& a) { return emulated(a.result); }
  // What passes between processes is not made: dependencies keep its order, the pause its time.
  int64_t waits(const feign_activity&) { return skip("waits for others: its order is kept"); }
  int64_t wakes(const feign_activity&) { return skip("wakes others: its order is kept"); }
  int64_t chdir(const feign_activity& a) { return emulated(a.result); }
};

}  // namespace feign
