// SPDX-License-Identifier: MIT
#include "resolve/resolve.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "layers/posix_ops.h"
#include "resolve/path_rules.h"

namespace feign {
namespace {

constexpr uint32_t kFdDupfd = F_DUPFD, kFdDupfdCloexec = 1030, kFdSetfd = F_SETFD;

}  // namespace

Resolve::Resolve(Tables& tables) : tables_(tables), names_(tables.strings) {}

// ---- streams ------------------------------------------------------------------------------------

Resolve::Thread& Resolve::thread_of(uint32_t stream) {
  if (stream >= threads_.size()) threads_.resize(stream + 1);
  return threads_[stream];
}

Resolve::Thread& Resolve::begin(uint32_t stream) {
  Thread& t = thread_of(stream);
  if (t.known && !t.ended) return t;
  const bool again = t.known;
  t = Thread{};
  t.known = true;
  t.now = again ? tables_.streams.add_again(stream) : stream;
  t.table = std::make_shared<Table>();
  t.place = std::make_shared<Place>();
  t.memory = std::make_shared<Memory>();
  t.process = std::make_shared<Process>();
  t.process->threads.push_back(stream);
  return t;
}

void Resolve::passed(uint32_t stream, uint64_t ns, feign_passed how) {
  if (Thread& t = thread_of(stream); t.known && !t.ended)
    (how == FEIGN_SLEPT ? t.slept : t.waited) += ns;
}

// The pause before a call: what of it was waiting (as far as calls that we saw tell), and the rest.
void Resolve::pause(feign_activity& a, Thread& t) {
  if (const uint32_t depth = FEIGN_DEPTH(a.marks); depth != 0) return pause_inside(a, t, depth);
  t.begun = a.start_ns;
  if (!t.inside.empty()) t.inside.clear();
  uint64_t gap = a.start_ns > t.last_end ? a.start_ns - t.last_end : 0;
  gap -= std::min(gap, a.compute_ns);  // the tracer's own, as the provider says
  a.sync_ns = std::min(gap, t.waited);
  a.compute_ns = gap - a.sync_ns;
  t.waited = 0;
  set_asleep(a, std::exchange(t.slept, 0));
  t.last_end = std::max(t.last_end, a.start_ns + a.duration_ns);
}

// The same of one that lies in others: from the start of the one around it, or the end of the last
// that lay in that, too.
void Resolve::pause_inside(feign_activity& a, Thread& t, uint32_t depth) {
  const size_t at = depth - 1;
  if (t.inside.size() <= at) t.inside.resize(at + 1, t.inside.empty() ? t.begun : t.inside.back());
  t.inside.resize(at + 1);
  a.compute_ns = a.start_ns > t.inside[at] ? a.start_ns - t.inside[at] : 0;
  a.sync_ns = 0;
  t.inside[at] = std::max(t.inside[at], a.start_ns + a.duration_ns);
  t.inside.push_back(a.start_ns);
}

void Resolve::child(Record& r, const Thread& parent, uint64_t shared) {
  const bool files = (shared & CLONE_FILES) != 0, place = (shared & CLONE_FS) != 0;
  const bool process = (shared & CLONE_THREAD) != 0, memory = (shared & CLONE_VM) != 0;
  feign_stream_info info = tables_.streams.info(r.a.stream);
  info.thread = r.a.result;
  info.again = 0;  // as the provider numbers it; begin() looks whether there was one before
  info.process = process ? info.process : r.a.result;
  const std::shared_ptr<Table> table = parent.table;
  const std::shared_ptr<Place> where = parent.place;
  const std::shared_ptr<Process> group = parent.process;
  const std::shared_ptr<Memory> space = parent.memory;
  const bool stranger = parent.stranger;
  const uint32_t first_handle = parent.first_handle;
  const uint32_t stream = tables_.streams.find_or_add_child(info);
  if (stream == r.a.stream) return;  // a trace that says a thread made itself
  Thread& t = thread_of(stream);
  const bool seen_before = t.known && !t.ended;
  if (!seen_before) {
    begin(stream);
    t.last_end = r.a.start_ns;
  }
  tables_.streams.set_process(t.now, info.process);
  // It ran before its parent's call was seen: it keeps what it has, and waits for nobody to begin.
  if (seen_before) return;
  tables_.streams.set_parent(t.now, r.a.stream, r.a.id);
  t.place = place ? where : std::make_shared<Place>(*where);
  if (memory) {
    t.memory = space;
  } else {
    t.memory->pieces = space->pieces;
    for (auto& [address, piece] : t.memory->pieces) ++piece.mapping->pieces;
  }
  if (process) {
    t.process = group;
    group->threads.push_back(stream);
  }
  if (files) {  // what it finds open, its maker may have from others
    t.table = table;
    t.stranger = stranger;
    t.first_handle = first_handle;
  } else {
    t.table = copy_of(*table);
  }
}

// A system call that lies in a call which is kept account of itself (fopen's open, fread's read):
// what it does is what that one did. It is told what it was on, and changes nothing. False: it is
// none of these.
bool Resolve::part_of_tracked(Record& r, Thread& t, Effect effect) {
  feign_activity& a = r.a;
  const uint32_t depth = FEIGN_DEPTH(a.marks);
  bool inside = false;
  for (size_t i = 0; i < depth && i < t.tracked.size(); ++i) inside = inside || t.tracked[i];
  t.tracked.resize(depth + size_t{1});
  t.tracked[depth] = tables_.ops.call(a.op) != nullptr;
  if (!inside) return false;
  const auto fd = [&]() -> Description* {
    const auto at = t.table->map.find(FEIGN_FD_OF(a.handle));
    return at != t.table->map.end() ? at->second.description : nullptr;
  };
  const uint64_t done = a.result > 0 ? static_cast<uint64_t>(a.result) : 0;
  switch (effect) {
    case Effect::kOpen:
    case Effect::kCreat: {
      const uint32_t path = absolute(t, a.handle, a.file, a.path);
      a.handle = a.result >= 0 ? FEIGN_FD(a.result) : 0;
      Description* d = fd();
      fill(a, d);
      a.path = path;
      if (d != nullptr) d->below = 0;
      return true;
    }
    case Effect::kClose:
      a.handle = t.closed;
      a.file = t.closed_file;
      a.marks |= t.closed_marks;
      return true;
    case Effect::kRead:
    case Effect::kWrite:
      if (Description* d = fd(); d != nullptr) {
        fill(a, d);
        a.offset = d->below;
        d->below += done;
      } else {
        closes(a, t);
      }
      return true;
    case Effect::kSeek:
      if (Description* d = fd(); d != nullptr) {
        fill(a, d);
        if (a.result >= 0) d->below = done;
      } else {
        closes(a, t);
      }
      return true;
    case Effect::kDup:
    case Effect::kDup2:  // freopen's, of the file that it opened
      a.handle = std::exchange(a.handle2, 0);
      if (Description* d = fd(); d != nullptr) d->below = 0;
      fill(a, fd());
      return true;
    case Effect::kStatat:
      if (a.path != 0) return false;
      [[fallthrough]];
    case Effect::kFstat:
      fill(a, fd());
      identified(r, fd());
      return true;
    case Effect::kUse:
    case Effect::kFlush:
    case Effect::kPread:
    case Effect::kPwrite:
    case Effect::kFcntl:
      fill(a, fd());
      return true;
    case Effect::kUnlink:
    case Effect::kRmdir:
    case Effect::kUnlinkat:
      a.path = absolute(t, a.handle, a.file, a.path);
      a.handle = a.file = 0;
      return true;
    default:
      return false;
  }
}

// What a close of the stream flushes; if that failed, it may be all that is done of it.
void Resolve::closes(feign_activity& a, const Thread& t) {
  a.handle = t.close_failed ? t.closed : 0;
  a.marks |= t.closed_marks;
}

// ---- calls --------------------------------------------------------------------------------------

const char* Resolve::apply(Record& r) {
  feign_activity& a = r.a;
  by_others_.clear();
  const uint32_t recorded_stream = a.stream;
  const Call* call = tables_.ops.call(a.op);
  if ((a.marks & FEIGN_INJECTED) && call != nullptr && call->effect == Effect::kExit) {
    Thread& t = thread_of(recorded_stream);
    t.called = true;
    if (!t.known || t.ended) return "";  // it called it itself
    a.marks &= ~FEIGN_INJECTED;
    if (t.process->threads.size() == 1) {  // with the last thread the process is over
      a.op = FEIGN_POSIX_EXIT_GROUP;
      call = tables_.ops.call(a.op);
    }
  }
  const Effect effect = call != nullptr ? call->effect : Effect::kUse;
  told_ = (a.marks & FEIGN_TOLD) != 0;
  opened_ = false;
  a.marks &= ~FEIGN_TOLD;
  looks_for_makers(a, effect);
  const bool fresh = !thread_of(recorded_stream).known || thread_of(recorded_stream).ended;
  constexpr size_t kMostStrangers = 256;
  if (!thread_of(recorded_stream).known && strangers_.size() < kMostStrangers) {
    Thread& stranger = begin(recorded_stream);
    stranger.stranger = true;
    stranger.first_handle = last_handle_;
    strangers_.push_back(recorded_stream);
  }
  begin(recorded_stream).called = true;
  if (lacks_makers_) {
    if (fresh && guesses_makers_)
      made_by_somebody(recorded_stream, a);
    else if (fresh)
      begins_where_the_last_is(recorded_stream);
    is_last(recorded_stream);
  }
  // By index from here on: a child's begin() may move the vector.
  const auto thread = [&]() -> Thread& { return threads_[recorded_stream]; };
  names_.links_lead_from(thread().place->root);
  found_open_ = a.result != -EBADF;
  if (effect == Effect::kMap || effect == Effect::kUnmap || effect == Effect::kRemap ||
      effect == Effect::kMapped)
    if (const char* why = memory_call(r, thread(), effect); why != nullptr) return why;
  if (effect == Effect::kBind && a.path == 0) return "network";
  if (effect == Effect::kIoctl && a.flags != FICLONE && a.flags != FICLONERANGE) {
    auto& descriptors = thread().table->map;
    const auto at = descriptors.find(FEIGN_FD_OF(a.handle));
    if (a.result == 0 && at != descriptors.end() && (a.flags == FIOCLEX || a.flags == FIONCLEX))
      at->second.close_on_exec = a.flags == FIOCLEX;
    if (a.flags == FIDEDUPERANGE) return "FIDEDUPERANGE changes no file's bytes";
    return "requests that are not about storage";
  }
  a.stream = thread().now;
  pause(a, thread());
  a.marks |= FEIGN_RESOLVED;
  if (guesses_makers_) last_.front().id = a.id;
  Thread& t = thread();
  if (FEIGN_DEPTH(a.marks) <= t.made_depth) t.made = 0;
  if (call == nullptr) {
    (void)part_of_tracked(r, t, effect);
    // Another layer: its handles are its own, its paths and files those of all.
    a.path = absolute(t, FEIGN_CWD, 0, a.path);
    a.path2 = absolute(t, FEIGN_CWD, 0, a.path2);
    if (a.path != 0 && (a.marks & FEIGN_CREATES) && a.result >= 0) {
      feign_activity open = a;
      open.flags = O_CREAT;
      const uint32_t file = names_.apply(open, Effect::kOpen).file;
      t.made = file;
      t.made_depth = FEIGN_DEPTH(a.marks);
      if (a.file == 0) a.file = file;
    } else if (a.file == 0 && a.path != 0) {
      a.file = names_.found(a.path, Namespace::Type::kUnknown);
    }
    return nullptr;
  }
  const uint32_t hint = a.file;
  const bool ok = a.result >= 0 && !(a.marks & FEIGN_NO_RESULT);
  moves_seen_ |= effect == Effect::kChdir || effect == Effect::kFchdir;
  opens_seen_ |= effect == Effect::kOpen || effect == Effect::kCreat || effect == Effect::kFopen;
  // What starts a program and maps its libraries is in any trace whose calls were not chosen.
  tells_seeks_ |= effect == Effect::kSeek || effect == Effect::kExec || effect == Effect::kMap;
  reads_on_ = effect == Effect::kRead && ok && a.result != 0;
  if (no_follow(*call, a)) a.marks |= FEIGN_NOFOLLOW;
  if (part_of_tracked(r, t, effect)) return nullptr;

  switch (effect) {
    case Effect::kFreopen: {  // what it takes the place of is closed, whether it can open or not
      const auto old = t.table->map.find(FEIGN_FD_OF(a.handle2));
      a.handle2 = 0;
      // Without a name it is the same file once more.
      bool again = false;
      if (old != t.table->map.end()) {
        Description* gone = old->second.description;
        again = a.path == 0 && gone->file != 0 && !(gone->marks & FEIGN_NOT_A_FILE);
        t.table->map.erase(old);
        if (again) open_again(a, t, *gone);
        if (!(gone->marks & FEIGN_NOT_A_FILE)) {
          a.handle2 = gone->handle;
          if (gone->refs == 1) a.marks |= FEIGN_LAST;
        }
        release(gone, nullptr);
      }
      if (!again) open(r, t, effect);
      t.closed = 0;  // it opens one and duplicates that
      t.close_failed = false;
      t.closed_file = a.file;
      t.closed_marks = a.marks & (FEIGN_NOT_A_FILE | FEIGN_NO_STORAGE);
      return nullptr;
    }
    case Effect::kOpen:
    case Effect::kCreat:
    case Effect::kFopen:
    case Effect::kTmpfile:
      open(r, t, effect);
      return nullptr;
    case Effect::kClose: {
      Description* d = find(t, a.handle, hint);
      const int32_t fd = FEIGN_FD_OF(a.handle);
      fill(a, d);
      // Linux gives the descriptor up even when close() fails, but not when it was none (EBADF).
      if (d == nullptr || a.result == -EBADF) return nullptr;
      if (d->refs == 1) a.marks |= FEIGN_LAST;
      if (d->refs == 1 && d->stream == fd && a.op == FEIGN_POSIX_CLOSE)
        t.table->streams[fd] = d->handle;
      t.closed = a.handle;
      t.close_failed = a.result < 0;
      t.closed_file = a.file;
      t.closed_marks = a.marks & (FEIGN_NOT_A_FILE | FEIGN_NO_STORAGE);
      t.table->map.erase(fd);
      release(d, nullptr);
      return nullptr;
    }
    case Effect::kDup:
    case Effect::kDup2: {
      const uint32_t target = effect == Effect::kDup2 ? a.handle2 : 0, recorded = a.handle;
      Description* d = find(t, a.handle, hint);
      fill(a, d);
      a.handle2 = 0;
      if (!ok || d == nullptr) return nullptr;
      const auto fd = static_cast<int32_t>(a.result);
      if (target != 0) {
        const auto old = t.table->map.find(fd);
        if (old != t.table->map.end() && old->second.description == d) {
          if (fd != FEIGN_FD_OF(recorded)) old->second.close_on_exec = (a.flags & O_CLOEXEC) != 0;
          return nullptr;
        }
        if (old != t.table->map.end()) {
          Description* gone = old->second.description;
          if (!(gone->marks & FEIGN_NOT_A_FILE)) {
            a.handle2 = gone->handle;  // dup2 closes it
            if (gone->refs == 1) a.marks |= FEIGN_LAST;
          }
          t.table->map.erase(old);
          release(gone, nullptr);
        }
      }
      duplicated(a, t, fd, d, effect == Effect::kDup2 && (a.flags & O_CLOEXEC));
      return nullptr;
    }
    case Effect::kFcntl: {
      Description* d = find(t, a.handle, hint);
      const int32_t fd = FEIGN_FD_OF(a.handle);
      fill(a, d);
      if (!ok || d == nullptr) return nullptr;
      if (a.flags == kFdDupfd || a.flags == kFdDupfdCloexec)
        duplicated(a, t, static_cast<int32_t>(a.result), d, a.flags == kFdDupfdCloexec);
      if (a.flags == F_SETFL && a.value_count > 0) {
        constexpr uint32_t kSettable = O_APPEND | O_NONBLOCK | O_ASYNC | O_DIRECT | O_NOATIME;
        d->flags = (d->flags & ~kSettable) | (static_cast<uint32_t>(a.values[0]) & kSettable);
      }
      if (a.flags == kFdSetfd && a.value_count > 0)
        t.table->map[fd].close_on_exec = (a.values[0] & FD_CLOEXEC) != 0;
      return nullptr;
    }
    case Effect::kFdopen: {
      Description* d = find(t, a.handle, hint);
      fill(a, d);
      if (ok && d != nullptr && (a.flags & O_APPEND)) stream_appends(*d, a.flags);
      return nullptr;
    }
    case Effect::kFseek: {
      Description* d = find(t, a.handle, hint);
      fill(a, d);
      if (!ok || d == nullptr) return nullptr;
      if (a.flags != SEEK_CUR) d->offset = 0;
      if (a.flags == SEEK_END && d->file != 0) d->offset = names_.file(d->file).size;
      d->offset += a.offset;
      d->at_end = a.offset == 0 && (a.flags == SEEK_END || (a.flags == SEEK_CUR && d->at_end));
      return nullptr;
    }
    case Effect::kFtell:
    case Effect::kSeek: {
      Description* d = find(t, a.handle, hint);
      fill(a, d);
      if (!ok || d == nullptr) return nullptr;
      const bool asks = effect == Effect::kFtell || (a.flags == SEEK_CUR && a.offset == 0);
      if (std::exchange(d->at_end, false) && asks) a.marks |= FEIGN_APPENDS;
      d->listed = 0;
      d->unlisted = a.result == 0;
      d->met_end = false;
      d->offset = static_cast<uint64_t>(a.result);
      if (d->file != 0 && a.flags == SEEK_END && a.result >= static_cast<int64_t>(a.offset))
        resized(a, *d, static_cast<uint64_t>(a.result) - a.offset);
      return nullptr;
    }
    case Effect::kUngetc: {
      Description* d = find(t, a.handle, hint);
      fill(a, d);
      if (ok && d != nullptr && d->offset != 0) --d->offset;
      return nullptr;
    }
    case Effect::kRead:
    case Effect::kWrite:
    case Effect::kPread:
    case Effect::kPwrite:
    case Effect::kPread2:
    case Effect::kPwrite2: {
      Description* d = find(t, a.handle, hint);
      if (d != nullptr && effect == Effect::kWrite && a.op >= posix_calls().size())
        d->stream = FEIGN_FD_OF(a.handle);
      fill(a, d);
      data(a, d, effect);
      return nullptr;
    }
    case Effect::kCopy:
      copy(r, t);
      return nullptr;
    case Effect::kAio: {
      Description* d = find(t, a.handle, hint);
      fill(a, d);
      if (ok && d != nullptr && d->file != 0 && (a.flags == 1 || a.flags == 8)) {
        uint64_t& size = names_.file(d->file).size;
        if (d->flags & O_APPEND) {
          a.marks |= FEIGN_APPENDS;
          a.offset = size;
        }
        size = std::max(size, a.offset + a.length);
      }
      return nullptr;
    }
    case Effect::kMap:
    case Effect::kUnmap:
    case Effect::kRemap:
    case Effect::kMapped:
      return nullptr;
    case Effect::kFstat: {
      Description* d = find(t, a.handle, hint);
      fill(a, d);
      identified(r, d);
      if (ok && d != nullptr && d->file != 0 && S_ISREG(a.mode)) resized(a, *d, a.length);
      if (ok && d != nullptr && (S_ISFIFO(a.mode) || S_ISSOCK(a.mode))) {
        d->marks |= FEIGN_NOT_A_FILE;
        a.marks |= FEIGN_NOT_A_FILE;
      }
      return nullptr;
    }
    case Effect::kFtruncate:
      fill(a, find(t, a.handle, hint));
      if (ok && a.file != 0) names_.file(a.file).has(a.length);
      return nullptr;
    case Effect::kFallocate:
      fill(a, find(t, a.handle, hint));
      if (ok && a.file != 0) {
        uint64_t& size = names_.file(a.file).size;
        if (a.flags & FALLOC_FL_COLLAPSE_RANGE)
          size -= std::min(size, a.length);
        else if (a.flags & FALLOC_FL_INSERT_RANGE)
          size += a.length;
        else if (!(a.flags & FALLOC_FL_KEEP_SIZE))
          size = std::max(size, a.offset + a.length);
      }
      return nullptr;
    case Effect::kWait:
      if (ok && a.result > 0) waited_for(t, a.result);
      [[fallthrough]];
    case Effect::kNone:
    case Effect::kAioWait:
    case Effect::kFutex:
    case Effect::kSemaphore:
      a.handle = a.file = a.path = 0;
      return nullptr;
    case Effect::kSend:
    case Effect::kReceive:
      fill(a, find(t, a.handle, hint));
      if (ok && a.value_count != 0) effect == Effect::kSend ? send(a, t) : receive(a, t);
      r.set_values({});
      return nullptr;
    case Effect::kGetfd: {
      const Description* const pidfd = find(t, a.handle, hint);
      a.handle = a.file = a.path = 0;
      if (!ok || pidfd == nullptr || pidfd->process == 0 || a.value_count == 0) return nullptr;
      if (const Thread* const of = running(t, pidfd->process); of != nullptr) {
        const auto at = of->table->map.find(static_cast<int32_t>(a.values[0]));
        if (at != of->table->map.end())
          install(t, static_cast<int32_t>(a.result), at->second.description, true);
      }
      return nullptr;
    }
    case Effect::kUse:
    case Effect::kFlush:
    case Effect::kFlock:
      fill(a, find(t, a.handle, hint));
      return nullptr;
    case Effect::kList: {
      Description* d = find(t, a.handle, hint);
      fill(a, d);
      if (ok && d != nullptr) listed(a, *d);
      return nullptr;
    }
    case Effect::kFork:
    case Effect::kVfork:
      if (ok && a.result > 0) child(r, t, 0);
      return nullptr;
    case Effect::kClone:
      other_pids_ |= ok && (a.flags & CLONE_NEWPID) != 0;
      if (ok && a.result > 0) child(r, t, a.flags);
      return nullptr;
    case Effect::kUnshare:
      a.handle = a.file = a.path = 0;
      if (!ok) return nullptr;
      other_pids_ |= (a.flags & CLONE_NEWPID) != 0;
      if ((a.flags & CLONE_FILES) && t.table.use_count() > 1) t.table = copy_of(*t.table);
      // In another mount or user namespace it cannot but have a directory of its own.
      if (a.flags & (CLONE_FS | CLONE_NEWNS | CLONE_NEWUSER))
        t.place = std::make_shared<Place>(*t.place);
      return nullptr;
    case Effect::kSetns:
      a.handle = a.file = a.path = 0;
      if (!ok || (a.flags & CLONE_NEWNS) == 0) return nullptr;
      t.place = std::make_shared<Place>(*t.place);
      moves(t, tables_.strings.intern("/"), false);
      t.place->root = 0;
      return nullptr;
    case Effect::kExec: {
      a.path = a.path != 0 ? absolute(t, a.handle, hint, a.path) : 0;
      a.handle = a.file = 0;
      if (!ok) return nullptr;
      leaves_kin(t, recorded_stream);
      // exec ends the process's other threads, gives up what is shared, then closes what was so
      // marked.
      for (const uint32_t stream : std::vector<uint32_t>(t.process->threads)) {
        Thread& other = threads_[stream];
        if (stream == recorded_stream || other.ended) continue;
        other.ended = true;
        std::erase(t.process->threads, stream);
        other.table.reset();
        other.place.reset();
        other.memory.reset();
        other.process.reset();
      }
      if (t.table.use_count() > 1) {
        t.table = copy_of(*t.table);
      }
      std::vector<uint64_t> ended;
      close_all(*t.table, true, &ended);
      if (t.memory.use_count() == 1) forget(*t.memory, ended);
      t.memory = std::make_shared<Memory>();
      r.set_values(ended);
      return nullptr;
    }
    case Effect::kExit:
    case Effect::kExitGroup: {
      std::vector<uint64_t> ended;
      std::vector<uint32_t> going;
      if (effect == Effect::kExit)
        going.push_back(recorded_stream);
      else
        going = t.process->threads;
      for (const uint32_t stream : going) {
        Thread& one = threads_[stream];
        if (one.ended) continue;
        one.ended = true;
        std::erase(one.process->threads, stream);
        if (one.table.use_count() == 1) close_all(*one.table, false, &ended);
        if (one.memory.use_count() == 1) forget(*one.memory, ended);
        one.table.reset();
        one.memory.reset();
        one.place.reset();
        one.process.reset();
      }
      r.set_values(ended);
      return nullptr;
    }
    case Effect::kCloseRange: {
      const uint64_t first = a.offset, last = a.length & 0xFFFFFFFF;
      std::vector<uint64_t> ended;
      if (ok) {
        const bool on_exec = (a.flags & CLOSE_RANGE_CLOEXEC) != 0;
        if ((a.flags & CLOSE_RANGE_UNSHARE) && t.table.use_count() > 1) {
          t.table = copy_of(*t.table);
        }
        for (auto at = t.table->map.begin(); at != t.table->map.end();) {
          const auto fd = static_cast<uint64_t>(at->first);
          if (fd < first || fd > last || on_exec) {
            if (fd >= first && fd <= last) at->second.close_on_exec = true;
            ++at;
            continue;
          }
          release(at->second.description, &ended);
          at = t.table->map.erase(at);
        }
      }
      r.set_values(ended);
      return nullptr;
    }
    case Effect::kGetcwd: {
      // Outside what is now its root: "(unreachable)/…" (getcwd(3)).
      const bool name = a.path != 0 && tables_.strings.text(a.path).starts_with('/');
      a.path = name ? absolute(t, 0, 0, a.path) : 0;
      a.handle = a.file = 0;
      if (!ok || a.path == 0) return nullptr;
      const uint32_t where = a.path;
      tells_link(a, *t.place);
      moves(t, where, false);
      t.place->told = true;
      return nullptr;
    }
    case Effect::kChdir: {
      const bool told = t.place->told || tables_.strings.text(a.path).starts_with('/');
      path_call(r, t, effect);
      if (!ok || a.path == 0) return nullptr;
      moves(t, names_.canonical(a.path, true), false);
      t.place->told = told;
      return nullptr;
    }
    case Effect::kUmask:
      a.handle = a.file = a.path = 0;
      t.place->umask = a.mode & 0777;
      return nullptr;
    case Effect::kBind:
      a.mode = S_IFSOCK | 0777;
      a.mode &= ~t.place->umask;
      a.handle = FEIGN_CWD;
      a.file = 0;
      path_call(r, t, effect);
      return nullptr;
    case Effect::kIoctl: {
      if (a.value_count == 0) {  // the range could not be read
        fill(a, find(t, a.handle, hint));
        return nullptr;
      }
      const uint64_t fd = a.values[0], begin = a.value_count > 2 ? a.values[2] : 0;
      Description* from = find(t, FEIGN_FD(fd), 0);
      fill(a, find(t, a.handle, hint));
      a.handle2 = from != nullptr ? from->handle : 0;
      r.set_values(std::array<uint64_t, 3>{fd, from != nullptr ? from->file : 0, begin});
      if (ok && a.file != 0 && from != nullptr && from->file != 0) {
        uint64_t& size = names_.file(a.file).size;
        const uint64_t whole = names_.file(from->file).size;  // no length: up to the end
        const uint64_t length = a.length != 0 ? a.length : whole - std::min(whole, begin);
        size = std::max(size, a.offset + length);
      }
      return nullptr;
    }
    case Effect::kChroot:
      path_call(r, t, effect);
      if (!ok || a.path == 0) return nullptr;
      t.place->root = names_.canonical(a.path, true);
      if (tables_.strings.text(t.place->root) == "/") t.place->root = 0;
      return nullptr;
    case Effect::kFchdir: {
      Description* d = find(t, a.handle, hint);
      fill(a, d);
      if (ok && d != nullptr && d->path != 0) moves(t, d->path, d->gone);
      return nullptr;
    }
    case Effect::kPipe:
    case Effect::kSocketpair:
      a.handle = a.file = 0;
      a.marks |= FEIGN_NOT_A_FILE;
      if (!ok || a.value_count < 2) return nullptr;
      a.file = names_.nameless();  // both ends are of one thing
      if (effect == Effect::kSocketpair) a.marks |= FEIGN_BOTH_WAYS;
      for (uint32_t i = 0; i < 2; ++i)
        install(t, static_cast<int32_t>(a.values[i]),
                describe(a.marks & (FEIGN_NOT_A_FILE | FEIGN_BOTH_WAYS), 0, a.file, 0),
                (a.flags & O_CLOEXEC) != 0);
      return nullptr;
    case Effect::kConnect:
      fill(a, find(t, a.handle, ok || a.result == -EINPROGRESS ? hint : 0));
      return nullptr;
    case Effect::kAccept:
    case Effect::kChannel:
    case Effect::kPidfd:
    case Effect::kEventfd:
      a.handle = a.file = 0;
      a.marks |= FEIGN_NOT_A_FILE;
      if (ok) {
        Description* d = describe(FEIGN_NOT_A_FILE, 0, 0, 0);
        if (effect == Effect::kAccept) connected(*d, tables_.strings.text(hint));
        if (effect == Effect::kPidfd && a.value_count != 0)
          d->process = static_cast<int64_t>(a.values[0]);
        const bool closes = call->cloexec == Call::kAlways || (a.flags & call->cloexec) != 0;
        install(t, static_cast<int32_t>(a.result), d, closes);
        a.handle = d->handle;
        a.file = d->file;
        a.marks |= d->marks;
      }
      return nullptr;
    default:
      path_call(r, t, effect);
      return nullptr;
  }
}

}  // namespace feign
