// SPDX-License-Identifier: MIT
// Calls on descriptors: what each does to the table, to where its description is, to a file's size.
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/falloc.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "layers/posix_ops.h"
#include "resolve/resolve.h"

namespace feign {
namespace {

constexpr uint32_t kFdDupfd = F_DUPFD, kFdDupfdCloexec = 1030, kFdSetfd = F_SETFD;

}  // namespace

// The description that a call is on, which its activity is told.
Resolve::Description* Resolve::on(feign_activity& a, Thread& t) {
  Description* d = find(t, a.handle, a.file);
  fill(a, d);
  return d;
}

// ---- what opens, duplicates and closes them -----------------------------------------------------

void Resolve::freopen_call(Record& r, Thread& t) {
  feign_activity& a = r.a;
  // What it takes the place of is closed, whether it can open or not.
  const auto old = t.table->map.find(FEIGN_FD_OF(a.handle2));
  a.handle2 = 0;
  // Without a name it is the same file once more.
  bool again = false;
  if (old != t.table->map.end()) {
    Description* gone = old->second.description;
    again = a.path == 0 && gone->file != 0 && !(gone->marks & FEIGN_NOT_A_FILE);
    t.table->map.erase(old);
    if (again) open_again(a, t, *gone);
    replaces(a, gone);
  }
  if (!again) open(r, t, Effect::kFreopen);
  t.closed = {0, a.file, a.path, a.marks & kWhat, 0};  // it opens one and duplicates that
}

// What had the number before is closed by the call.
void Resolve::replaces(feign_activity& a, Description* gone) {
  if (!(gone->marks & FEIGN_NOT_A_FILE)) {
    a.handle2 = gone->handle;
    if (gone->refs == 1) a.marks |= FEIGN_LAST;
  }
  release(gone, nullptr);
}

void Resolve::close_call(feign_activity& a, Thread& t, uint32_t stream) {
  const int32_t fd = FEIGN_FD_OF(a.handle);
  Description* d = on(a, t);
  // The stream is gone before anybody has its number.
  if (d == nullptr && a.op != FEIGN_POSIX_CLOSE) t.table->streams.erase(fd);
  // Linux gives the descriptor up even when close() fails, but not when it was none (EBADF).
  if (d == nullptr || (a.result == -EBADF && a.op == FEIGN_POSIX_CLOSE)) return;
  if (d->refs == 1) a.marks |= FEIGN_LAST;
  if (d->refs == 1 && d->stream == fd && a.op == FEIGN_POSIX_CLOSE)
    t.table->streams[fd] = d->handle;
  t.closed = {a.handle, a.file, a.path, a.marks & kWhat, d->below};
  gives_up(stream, fd, *d);
  if ((d->flags & O_PATH) == 0) t.process->locked.erase(d->file);
  closed_meanwhile(a, *t.table, fd, d);
  t.table->map.erase(fd);
  release(d, nullptr);
}

void Resolve::dup_call(feign_activity& a, Thread& t, Effect effect) {
  const bool closes_on_exec = effect == Effect::kDup2 && (a.flags & O_CLOEXEC) != 0;
  const bool takes_place = effect == Effect::kDup2 && a.handle2 != 0;
  const int32_t from = FEIGN_FD_OF(a.handle);
  Description* d = on(a, t);
  a.handle2 = 0;
  if (!succeeded(a) || d == nullptr) return;
  const auto fd = static_cast<int32_t>(a.result);
  if (takes_place) {
    const auto old = t.table->map.find(fd);
    if (old != t.table->map.end() && old->second.description == d) {
      if (fd == from) return;
      old->second.close_on_exec = (a.flags & O_CLOEXEC) != 0;
      if (!(d->marks & FEIGN_NOT_A_FILE)) a.handle2 = d->handle;  // closed, and made anew
      return;
    }
    if (old != t.table->map.end()) {
      Description* gone = old->second.description;
      t.table->map.erase(old);
      replaces(a, gone);
    }
  }
  duplicated(a, t, fd, d, closes_on_exec);
}

void Resolve::fcntl_call(feign_activity& a, Thread& t) {
  const int32_t fd = FEIGN_FD_OF(a.handle);
  Description* d = on(a, t);
  if (!succeeded(a) || d == nullptr) return;
  if (a.flags == kFdDupfd || a.flags == kFdDupfdCloexec)
    duplicated(a, t, static_cast<int32_t>(a.result), d, a.flags == kFdDupfdCloexec);
  if (a.flags == F_SETFL && a.value_count > 0) {
    constexpr uint32_t kSettable = O_APPEND | O_NONBLOCK | O_ASYNC | O_DIRECT | O_NOATIME;
    d->flags = (d->flags & ~kSettable) | (static_cast<uint32_t>(a.values[0]) & kSettable);
  }
  if (a.flags == kFdSetfd && a.value_count > 0)
    t.table->map[fd].close_on_exec = (a.values[0] & FD_CLOEXEC) != 0;
  if ((a.flags == F_SETLK || a.flags == F_SETLKW) && a.file != 0) t.process->locked.insert(a.file);
}

// The call is going to close a descriptor of `d`. It lists handles that end; of one that does not,
// a close before it tells that the process's record locks of the file are gone.
void Resolve::gives_up_locks(const feign_activity& call, Thread& t, const Description& d) {
  if ((d.flags & O_PATH) != 0 || t.process->locked.erase(d.file) == 0 || d.refs == 1 ||
      by_others_.size() >= kMostOthers)
    return;
  feign_activity& a = other(call, FEIGN_POSIX_CLOSE, d.path);
  a.handle = d.handle;
  a.file = d.file;
  a.marks = FEIGN_INJECTED | FEIGN_RESOLVED | d.marks;
}

void Resolve::close_range_call(Record& r, Thread& t) {
  const feign_activity& a = r.a;
  const uint64_t first = a.offset, last = a.length & 0xFFFFFFFF;
  std::vector<uint64_t> ended;
  if (succeeded(a)) {
    const bool on_exec = (a.flags & CLOSE_RANGE_CLOEXEC) != 0;
    if ((a.flags & CLOSE_RANGE_UNSHARE) && t.table.use_count() > 1) t.table = copy_of(*t.table);
    for (auto at = t.table->map.begin(); at != t.table->map.end();) {
      const auto fd = static_cast<uint64_t>(at->first);
      if (fd < first || fd > last || on_exec) {
        if (fd >= first && fd <= last) at->second.close_on_exec = true;
        ++at;
        continue;
      }
      gives_up_locks(a, t, *at->second.description);
      closed_meanwhile(a, *t.table, at->first, at->second.description);
      release(at->second.description, &ended);
      at = t.table->map.erase(at);
    }
  }
  r.set_values(ended);
}

void Resolve::pipe_call(feign_activity& a, Thread& t, Effect effect) {
  a.handle = a.file = 0;
  a.marks |= FEIGN_NOT_A_FILE;
  if (!succeeded(a) || a.value_count < 2) return;
  a.file = names_.nameless();  // both ends are of one thing
  if (effect == Effect::kSocketpair) a.marks |= FEIGN_BOTH_WAYS;
  for (uint32_t i = 0; i < 2; ++i)
    install(t, static_cast<int32_t>(a.values[i]),
            describe(a.marks & (FEIGN_NOT_A_FILE | FEIGN_BOTH_WAYS), 0, a.file, 0),
            (a.flags & O_CLOEXEC) != 0);
}

// A socket, an eventfd, a pidfd, …
void Resolve::channel_call(feign_activity& a, Thread& t, const Call& call) {
  const uint32_t said = a.file;
  const bool same = a.handle != 0 && FEIGN_FD_OF(a.handle) == a.result;
  if (same && succeeded(a)) {  // signalfd: what is there has other signals
    fill(a, find(t, a.handle, said));
    return;
  }
  a.handle = a.file = 0;
  a.marks |= FEIGN_NOT_A_FILE;
  if (!succeeded(a) || (call.effect == Effect::kRuleset && a.flags != 0)) return;
  Description* d = describe(FEIGN_NOT_A_FILE, 0, 0, 0);
  if (call.effect == Effect::kAccept) connected(*d, tables_.strings.text(said));
  if (call.effect == Effect::kPidfd && a.value_count != 0)
    d->process = static_cast<int64_t>(a.values[0]);
  const bool closes = call.cloexec == Call::kAlways || (a.flags & call.cloexec) != 0;
  install(t, static_cast<int32_t>(a.result), d, closes);
  a.handle = d->handle;
  a.file = d->file;
  a.marks |= d->marks;
}

// Another process's descriptor, by its pidfd.
void Resolve::getfd_call(feign_activity& a, Thread& t) {
  const Description* const pidfd = find(t, a.handle, a.file);
  a.handle = a.file = a.path = 0;
  if (!succeeded(a) || pidfd == nullptr || pidfd->process == 0 || a.value_count == 0) return;
  const Thread* const of = running(t, pidfd->process);
  if (of == nullptr) return;
  const auto at = of->table->map.find(static_cast<int32_t>(a.values[0]));
  if (at != of->table->map.end())
    install(t, static_cast<int32_t>(a.result), at->second.description, true);
}

// What it has opened, the tracer tells at the first call on it, if it does.
void Resolve::by_handle_call(feign_activity& a, Thread& t) {
  a.handle = a.file = a.path = 0;
  if (!succeeded(a)) return;
  Description* const d = describe(FEIGN_INHERITED | FEIGN_NOT_A_FILE, 0, 0, a.flags);
  d->anew = true;
  install(t, static_cast<int32_t>(a.result), d, (a.flags & O_CLOEXEC) != 0);
}

// ---- where they are -----------------------------------------------------------------------------

void Resolve::fseek_call(feign_activity& a, Thread& t) {
  Description* d = on(a, t);
  if (!succeeded(a) || d == nullptr) return;
  if (a.flags != SEEK_CUR) d->offset = 0;
  if (a.flags == SEEK_END && d->file != 0) d->offset = names_.file(d->file).size;
  d->offset += a.offset;
  d->at_end = a.offset == 0 && (a.flags == SEEK_END || (a.flags == SEEK_CUR && d->at_end));
}

void Resolve::seek_call(feign_activity& a, Thread& t, Effect effect) {
  Description* d = on(a, t);
  if (a.result == -ESPIPE) return is_pipe(a, d);
  if (!succeeded(a) || d == nullptr) return;
  const bool asks = effect == Effect::kFtell || (a.flags == SEEK_CUR && a.offset == 0);
  if (std::exchange(d->at_end, false) && asks) a.marks |= FEIGN_APPENDS;
  d->listed = 0;
  d->unlisted = a.result == 0;
  d->met_end = false;
  d->offset = static_cast<uint64_t>(a.result);
  if (d->file != 0 && a.flags == SEEK_END && a.result >= static_cast<int64_t>(a.offset))
    resized(a, *d, static_cast<uint64_t>(a.result) - a.offset);
}

// ---- what they are on ---------------------------------------------------------------------------

void Resolve::aio_call(feign_activity& a, Thread& t) {
  const Description* const d = on(a, t);
  const bool writes = a.flags == 1 || a.flags == 8;
  if (!succeeded(a) || d == nullptr || d->file == 0 || !writes) return;
  uint64_t& size = names_.file(d->file).size;
  const bool appends = (d->flags & O_APPEND) && (a.mode & kRwfNoAppend) == 0;
  if (appends || (a.mode & kRwfAppend)) {
    a.marks |= FEIGN_APPENDS;
    a.offset = size;
  }
  size = std::max(size, a.offset + a.length);
}

void Resolve::fstat_call(Record& r, Thread& t) {
  feign_activity& a = r.a;
  Description* d = on(a, t);
  identified(r, d);
  if (!succeeded(a) || d == nullptr) return;
  if (d->file != 0 && S_ISREG(a.mode)) resized(a, *d, a.length);
  if (S_ISFIFO(a.mode) || S_ISSOCK(a.mode)) is_pipe(a, d);
}

// Or a socket or terminal: a name that was opened may be that of a FIFO.
void Resolve::is_pipe(feign_activity& a, Description* d) {
  if (d != nullptr) d->marks |= FEIGN_NOT_A_FILE;
  a.marks |= FEIGN_NOT_A_FILE;
}

void Resolve::ftruncate_call(feign_activity& a, Thread& t) {
  (void)on(a, t);
  if (succeeded(a) && a.file != 0) names_.file(a.file).has(a.length);
}

void Resolve::fallocate_call(feign_activity& a, Thread& t) {
  Description* const d = on(a, t);
  if (a.result == -ESPIPE) return is_pipe(a, d);
  if (!succeeded(a) || a.file == 0) return;
  uint64_t& size = names_.file(a.file).size;
  if (a.flags & FALLOC_FL_COLLAPSE_RANGE)
    size -= std::min(size, a.length);
  else if (a.flags & FALLOC_FL_INSERT_RANGE)
    size += a.length;
  else if (!(a.flags & FALLOC_FL_KEEP_SIZE))
    size = std::max(size, a.offset + a.length);
}

// FICLONE and FICLONERANGE (ioctl_ficlonerange(2)). Values: the source's descriptor, its file (told
// here), where in it.
void Resolve::clone_range_call(Record& r, Thread& t) {
  feign_activity& a = r.a;
  if (a.value_count == 0) {  // the range could not be read
    (void)on(a, t);
    return;
  }
  const uint64_t fd = a.values[0], begin = a.value_count > 2 ? a.values[2] : 0;
  const Description* const from = find(t, FEIGN_FD(fd), 0);
  (void)on(a, t);
  a.handle2 = from != nullptr ? from->handle : 0;
  r.set_values(std::array<uint64_t, 3>{fd, from != nullptr ? from->file : 0, begin});
  if (!succeeded(a) || a.file == 0 || from == nullptr || from->file == 0) return;
  uint64_t& size = names_.file(a.file).size;
  const uint64_t whole = names_.file(from->file).size;  // no length: up to the end
  const uint64_t length = a.length != 0 ? a.length : whole - std::min(whole, begin);
  size = std::max(size, a.offset + length);
}

}  // namespace feign
