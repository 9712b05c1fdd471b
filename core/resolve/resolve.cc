// SPDX-License-Identifier: MIT
#include "resolve/resolve.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/path.h"
#include "layers/posix_ops.h"
#include "resolve/path_rules.h"

namespace feign {

namespace {

bool maps(Effect effect) {
  return effect == Effect::kMap || effect == Effect::kUnmap || effect == Effect::kRemap ||
         effect == Effect::kMapped;
}

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
  running_.push_back(stream);
  if (const feign_stream_info info = tables_.streams.info(t.now); info.process > 0) {
    uint32_t& one = in_process_.try_emplace(process_of(info), stream).first->second;
    if (threads_[one].ended) one = stream;
  }
  return t;
}

// A thread whose making is not in the trace (of a recording without system calls) has what the
// process has that it says to be in. Whether it is one.
bool Resolve::joins(uint32_t stream) {
  Thread& t = begin(stream);
  const auto at = in_process_.find(process_of(tables_.streams.info(t.now)));
  if (at == in_process_.end() || at->second == stream) return false;
  const Thread& other = threads_[at->second];
  t.table = other.table;
  t.place = other.place;
  t.memory = other.memory;
  t.process = other.process;
  t.process->threads.push_back(stream);
  t.stranger = other.stranger;
  t.first_handle = other.first_handle;
  return true;
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

// A system call that lies in a call which is kept account of itself (fopen's open, fread's read):
// what it does is what that one did. It is told what it was on, and changes nothing. False: it is
// none of these. (As deep and before the end of a call is what that one called back: what comes
// next in the call does not lie in this.)
bool Resolve::part_of_tracked(Record& r, Thread& t, Effect effect) {
  feign_activity& a = r.a;
  const uint32_t depth = FEIGN_DEPTH(a.marks);
  bool inside = false;
  for (size_t i = 0; i < depth && i < t.tracked.size(); ++i)
    inside = inside || t.tracked[i] > a.start_ns;
  t.tracked.resize(depth + size_t{1});
  // A stream without a descriptor (fopencookie's) makes calls on whatever the program likes.
  const bool tracked =
      tables_.ops.call(a.op) != nullptr && (a.handle != 0 || !is_given(a.op, Role::kFd));
  t.tracked[depth] = tracked ? a.start_ns + a.duration_ns + 1 : 0;  // it may end where one begins
  if (!inside) return false;
  const auto fd = [&]() -> Description* {
    const auto at = t.table->map.find(FEIGN_FD_OF(a.handle));
    return at != t.table->map.end() ? at->second.description : nullptr;
  };
  const uint64_t done = a.result > 0 ? static_cast<uint64_t>(a.result) : 0;
  if (Description* d = fd(); d != nullptr) d->parts = true;
  switch (effect) {
    case Effect::kOpen:
    case Effect::kCreat: {
      const uint32_t path = absolute(t, a.handle, a.file, a.path);
      a.handle = a.result >= 0 ? FEIGN_FD(a.result) : 0;
      Description* d = fd();
      fill(a, d);
      a.path = path;
      if (d != nullptr) d->below = 0;
      if (d != nullptr && d->file != 0 && (d->flags & O_APPEND))
        d->below = names_.file(d->file).size;
      // What the call opens besides what it is asked for, it closes (some malloc looks at /proc as
      // it is first called).
      if (a.result >= 0 && t.closed.path != path)
        t.closed = {a.handle, a.file, path, a.marks & kWhat, 0};
      return true;
    }
    case Effect::kClose:
      a.handle = t.closed.handle;
      a.file = t.closed.file;
      a.path = t.closed.path;
      a.marks |= t.closed.marks;
      return true;
    case Effect::kRead:
    case Effect::kWrite:
      if (Description* d = fd(); d != nullptr) {
        fill(a, d);
        if (effect == Effect::kWrite && (d->flags & O_APPEND)) appends_below(a, *d, done);
        if (effect == Effect::kWrite) d->held -= std::min(d->held, done);
        a.offset = d->below;
        d->below += done;
      } else {
        closes(a, t);
        a.offset = t.closed.below;
        t.closed.below += done;
      }
      return true;
    case Effect::kSeek:
      if (Description* d = fd(); d != nullptr) {
        fill(a, d);
        if (a.result >= 0) d->below = done;
      } else {
        closes(a, t);
        if (a.result >= 0) t.closed.below = done;
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

// Goes where the file ends for the system: what streams have yet to write is in its size already.
void Resolve::appends_below(feign_activity& a, Description& d, uint64_t done) {
  a.marks |= FEIGN_APPENDS;
  if (d.file == 0) return;
  Namespace::File& f = names_.file(d.file);
  d.below = std::min(std::max(d.below, f.below), f.size - std::min(f.size, done));
  f.below = d.below + done;
}

// What a close of the stream flushes, before its descriptor is closed in it: where the call itself
// failed or is left out, it is all that is done of it.
void Resolve::closes(feign_activity& a, const Thread& t) {
  a.handle = t.closed.handle;
  a.file = t.closed.file;
  a.path = t.closed.path;
  a.marks |= t.closed.marks;
}

// ---- calls --------------------------------------------------------------------------------------

// The end of a thread where the trace has no call for it. False: it called one itself, or there is
// nobody to end.
bool Resolve::ends_unseen(feign_activity& a) {
  Thread& t = thread_of(a.stream);
  t.called = true;
  if (!t.known || t.ended) return false;
  a.marks &= ~FEIGN_INJECTED;
  // With the last thread the process is over.
  if (t.process->threads.size() == 1) a.op = FEIGN_POSIX_EXIT_GROUP;
  return true;
}

// A call of that stream: who was not seen before begins with it, and is made by somebody.
void Resolve::comes(const feign_activity& a, uint32_t stream, Effect effect) {
  const bool begins = !thread_of(stream).known || thread_of(stream).ended;
  constexpr size_t kMostStrangers = 256;  // at a time
  if (begins) std::erase_if(strangers_, [&](uint32_t one) { return threads_[one].ended; });
  const bool fresh = begins && !joins(stream);
  Thread& t = begin(stream);
  if (fresh && strangers_.size() < kMostStrangers) {
    t.stranger = true;
    t.first_handle = last_handle_;
    strangers_.push_back(stream);
  }
  t.called = true;
  if (!lacks_makers_) return;
  const bool on_memory = maps(effect) && (a.handle == 0 || FEIGN_FD_OF(a.handle) < 0);
  if (guesses_makers_ && (fresh || t.untold))
    made_by_somebody(stream, a, on_memory);
  else if (fresh)
    begins_where_the_last_is(stream);
  is_last(stream);
}

// Why a call is no activity; null if it is one. What it does about descriptors is kept account of.
const char* Resolve::no_activity(Record& r, Thread& t, Effect effect) {
  const feign_activity& a = r.a;
  if (maps(effect)) return memory_call(r, t, effect);
  binds_ |= effect == Effect::kBind;
  network_ |= on_sockets(effect);
  if (effect == Effect::kBind && a.path == 0) return "network";
  if (effect != Effect::kIoctl || a.flags == FICLONE || a.flags == FICLONERANGE) return nullptr;
  const auto at = t.table->map.find(FEIGN_FD_OF(a.handle));
  if (a.result == 0 && at != t.table->map.end() && (a.flags == FIOCLEX || a.flags == FIONCLEX))
    at->second.close_on_exec = a.flags == FIOCLEX;
  if (a.flags == FIDEDUPERANGE) return "FIDEDUPERANGE changes no file's bytes";
  return "requests that are not about storage";
}

// Another layer's: its handles are its own, its paths and files those of all.
void Resolve::other_layer(feign_activity& a, Thread& t) {
  a.path = absolute(t, FEIGN_CWD, 0, a.path);
  a.path2 = absolute(t, FEIGN_CWD, 0, a.path2);
  if (a.path != 0 && (a.marks & FEIGN_CREATES) && a.result >= 0) {
    feign_activity open = a;
    open.flags = O_CREAT;
    const uint32_t file = names_.apply(open, Effect::kOpen).file;
    t.made = file;
    t.made_depth = FEIGN_DEPTH(a.marks);
    t.made_end = a.start_ns + a.duration_ns;
    if (a.file == 0) a.file = file;
  } else if (a.file == 0 && a.path != 0 && tells_there(a.result)) {
    // Of one that failed otherwise, what lies in it tells.
    a.file = names_.found(a.path, Namespace::Type::kUnknown);
  }
}

const char* Resolve::apply(Record& r) {
  feign_activity& a = r.a;
  by_others_.clear();
  const uint32_t stream = a.stream;
  const Call* call = tables_.ops.call(a.op);
  const bool unseen =
      (a.marks & FEIGN_INJECTED) && call != nullptr && call->effect == Effect::kExit;
  if (unseen) {
    if (!ends_unseen(a)) return "";
    call = tables_.ops.call(a.op);
  }
  const Effect effect = call != nullptr ? call->effect : Effect::kUse;
  told_ = (a.marks & FEIGN_TOLD) != 0;
  tells_ |= told_;
  opened_ = false;
  a.marks &= ~FEIGN_TOLD;
  if (tables_.strings.text(a.file).size() > kLongestPath) a.file = 0;  // it tells no file
  looks_for_makers(a, effect);
  comes(a, stream, effect);
  Thread& t = threads_[stream];
  // An end that the input has (strace: "+++ killed") shows that all before it is there, too.
  if (!unseen || a.place != 0) t.starts = effect == Effect::kExec && a.result >= 0;
  names_.links_lead_from(t.place->root);
  recorded_ = stream;
  own_mounts_ = t.place->mounts;
  found_open_ = a.result != -EBADF;
  if (const char* why = no_activity(r, t, effect); why != nullptr) return why;
  a.stream = t.now;
  pause(a, t);
  a.marks |= FEIGN_RESOLVED;
  if (guesses_makers_) last_.front().id = a.id;
  // (What is as deep and begins before its end is done by a function that it called back.)
  if (FEIGN_DEPTH(a.marks) <= t.made_depth && a.start_ns >= t.made_end) t.made = 0;
  if (call == nullptr) {
    (void)part_of_tracked(r, t, effect);
    other_layer(a, t);
    return nullptr;
  }
  moves_seen_ |= effect == Effect::kChdir || effect == Effect::kFchdir;
  opens_seen_ |= effect == Effect::kOpen || effect == Effect::kCreat || effect == Effect::kFopen;
  calls_by_name(a, effect);
  // What starts a program and maps its libraries is in any trace whose calls were not chosen.
  tells_seeks_ |= effect == Effect::kSeek || effect == Effect::kExec || effect == Effect::kMap;
  reads_on_ = effect == Effect::kRead && succeeded(a) && a.result != 0;
  if (no_follow(*call, a)) a.marks |= FEIGN_NOFOLLOW;
  if (!part_of_tracked(r, t, effect)) called(r, t, *call, stream);
  return nullptr;
}

void Resolve::called(Record& r, Thread& t, const Call& call, uint32_t stream) {
  feign_activity& a = r.a;
  const Effect effect = call.effect;
  switch (effect) {
    // descriptor_calls.cc
    case Effect::kFreopen:
      return freopen_call(r, t);
    case Effect::kClose:
      return close_call(a, t, stream);
    case Effect::kDup:
    case Effect::kDup2:
      return dup_call(a, t, effect);
    case Effect::kFcntl:
      return fcntl_call(a, t);
    case Effect::kCloseRange:
      return close_range_call(r, t);
    case Effect::kPipe:
    case Effect::kSocketpair:
      return pipe_call(a, t, effect);
    case Effect::kAccept:
    case Effect::kChannel:
    case Effect::kPidfd:
    case Effect::kRuleset:
    case Effect::kEventfd:
      return channel_call(a, t, call);
    case Effect::kGetfd:
      return getfd_call(a, t);
    case Effect::kByHandle:
      return by_handle_call(a, t);
    case Effect::kFseek:
      return fseek_call(a, t);
    case Effect::kFtell:
    case Effect::kSeek:
      return seek_call(a, t, effect);
    case Effect::kAio:
      return aio_call(a, t);
    case Effect::kFstat:
      return fstat_call(r, t);
    case Effect::kFtruncate:
      return ftruncate_call(a, t);
    case Effect::kFallocate:
      return fallocate_call(a, t);
    case Effect::kIoctl:
      return clone_range_call(r, t);

    // processes.cc
    case Effect::kFork:
    case Effect::kVfork:
      if (succeeded(a) && a.result > 0) child(r, t, 0);
      return;
    case Effect::kClone:
      other_pids_ |= succeeded(a) && (a.flags & CLONE_NEWPID) != 0;
      other_mounts_ |= succeeded(a) && (a.flags & CLONE_NEWNS) != 0;
      if (succeeded(a) && a.result > 0) child(r, t, a.flags);
      return;
    case Effect::kExec:
      return exec_call(r, t, stream);
    case Effect::kExit:
    case Effect::kExitGroup:
      return exit_call(r, t, effect, stream);
    case Effect::kUnshare:
      return unshare_call(a, t);
    case Effect::kSetns:
      return setns_call(a, t);
    case Effect::kGetcwd:
      return getcwd_call(a, t);
    case Effect::kChdir:
      return chdir_call(r, t);
    case Effect::kFchdir:
      return fchdir_call(a, t);
    case Effect::kChroot:
      return chroot_call(r, t);
    case Effect::kUmask:
      a.handle = a.file = a.path = 0;
      t.place->umask = a.mode & 0777;
      return;

    // calls.cc
    case Effect::kOpen:
    case Effect::kCreat:
    case Effect::kFopen:
    case Effect::kTmpfile:
      return open(r, t, effect);
    case Effect::kRead:
    case Effect::kWrite:
    case Effect::kPread:
    case Effect::kPwrite:
    case Effect::kPread2:
    case Effect::kPwrite2: {
      Description* d = find(t, a.handle, a.file);
      if (d != nullptr && a.op >= posix_calls().size()) {
        d->streamed = true;
        if (effect == Effect::kWrite) {
          d->stream = FEIGN_FD_OF(a.handle);
          d->held += a.result > 0 ? static_cast<uint64_t>(a.result) : 0;
        }
      }
      fill(a, d);
      return data(a, d, effect);
    }
    case Effect::kCopy:
      return copy(r, t);
    case Effect::kBind:
      a.mode = S_IFSOCK | 0777;
      a.mode &= ~t.place->umask;
      a.handle = FEIGN_CWD;
      return path_call(r, t, effect);
    default:
      return path_call(r, t, effect);

    // What is not about storage, or changes nothing that is kept account of.
    case Effect::kMap:
    case Effect::kUnmap:
    case Effect::kRemap:
    case Effect::kMapped:
      return;
    case Effect::kWait:
      if (succeeded(a) && a.result > 0) waited_for(t, a.result, a.flags);
      [[fallthrough]];
    case Effect::kNone:
    case Effect::kAioContext:
    case Effect::kAioWait:
    case Effect::kFutex:
    case Effect::kSemaphore:
      a.handle = a.file = a.path = 0;
      return;
    case Effect::kConnect:
      fill(a, find(t, a.handle, succeeded(a) || a.result == -EINPROGRESS ? a.file : 0));
      return;
    case Effect::kSend:
    case Effect::kReceive:
      (void)on(a, t);
      if (succeeded(a) && a.value_count != 0) effect == Effect::kSend ? send(a, t) : receive(a, t);
      r.set_values({});
      return;
    case Effect::kFdopen:
      if (Description* d = on(a, t);
          succeeded(a) && d != nullptr && (a.flags & O_APPEND) && !(d->flags & O_APPEND))
        stream_appends(*d, a.flags);  // one that appends already stays where it is
      return;
    case Effect::kUngetc:
      if (Description* d = on(a, t); succeeded(a) && d != nullptr)
        d->offset -= std::min(d->offset, std::max<uint64_t>(a.length, 1));
      return;
    case Effect::kList:
      if (Description* d = on(a, t); succeeded(a) && d != nullptr) listed(a, *d);
      return;
    case Effect::kUse:
    case Effect::kFlush:
    case Effect::kFlock:
      (void)on(a, t);
      return;
  }
}

}  // namespace feign
