// SPDX-License-Identifier: MIT
// Processes of a trace that has no calls which make them (strace -f -e trace=file,desc): who made
// them, and which are threads of one process. Where strace -y tells what descriptors are, that is
// not asked.
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/log.h"
#include "resolve/resolve.h"

namespace feign {

// Whether who made it is to be guessed, of all that is seen from now on: the trace began with the
// program, and up to now shows nobody who made anybody.
void Resolve::looks_for_makers(const feign_activity& a, Effect effect) {
  const bool ok = a.result >= 0;
  reads_ = ok && (effect == Effect::kRead || effect == Effect::kPread);
  writes_ = ok && (effect == Effect::kWrite || effect == Effect::kPwrite ||
                   effect == Effect::kFtruncate || effect == Effect::kFallocate);
  got_flags_ = ok && effect == Effect::kFcntl && a.flags == F_GETFL ? a.result : -1;
  switch (effect) {
    case Effect::kFstat:
    case Effect::kStatat:
      on_file_ = ok && (S_ISREG(a.mode) || S_ISDIR(a.mode));
      break;
    case Effect::kSeek:
    case Effect::kPread:
    case Effect::kPwrite:
    case Effect::kList:
    case Effect::kFlush:
    case Effect::kFtruncate:
    case Effect::kFallocate:
      on_file_ = ok;
      break;
    default:
      on_file_ = false;
  }
  if (std::exchange(first_, false)) lacks_makers_ = guesses_makers_ = effect == Effect::kExec && ok;
  if (effect == Effect::kFork || effect == Effect::kVfork || effect == Effect::kClone)
    lacks_makers_ = guesses_makers_ = false;
  if (told_) guesses_makers_ = false;
  if (!guesses_makers_) return;
  switch (effect) {
    case Effect::kClose:
      tells_descriptors_ |= kCloses;
      break;
    case Effect::kDup:
    case Effect::kDup2:
    case Effect::kFcntl:
    case Effect::kPipe:
      tells_descriptors_ |= kDuplicates;
      break;
    case Effect::kMap:  // a program's libraries: then calls were not chosen one by one, as to that
      if (a.handle != 0 && FEIGN_FD_OF(a.handle) >= 0) tells_descriptors_ |= kDuplicates;
      break;
    default:
      break;
  }
  const bool looks =
      effect == Effect::kFstat ||
      (effect == Effect::kStatat && tables_.strings.text(a.path).empty() && a.handle != FEIGN_CWD);
  on_pipe_ = (effect == Effect::kSeek && a.result == -ESPIPE) ||
             ((effect == Effect::kRead || effect == Effect::kWrite) && a.result == -EAGAIN) ||
             (looks && ok && (S_ISFIFO(a.mode) || S_ISSOCK(a.mode)));
}

Resolve::Has Resolve::has_as(const Table& table, int32_t fd, const Thread& t) const {
  const auto at = table.map.find(fd);
  if (at == table.map.end() || !may_be(*at->second.description, t)) return Has::kNothing;
  const uint32_t marks = at->second.description->marks & (FEIGN_NOT_A_FILE | FEIGN_INHERITED);
  return marks == FEIGN_NOT_A_FILE ? Has::kPipe : Has::kSomething;
}

void Resolve::is_last(uint32_t stream) {
  constexpr size_t kMost = 16;
  if (!last_.empty() && last_.front().stream == stream) return;
  const auto was =
      std::find_if(last_.begin(), last_.end(), [&](const Last& l) { return l.stream == stream; });
  if (was == last_.end()) {
    last_.insert(last_.begin(), {stream, 0});
    if (last_.size() > kMost) last_.pop_back();
  } else {
    std::rotate(last_.begin(), was, was + 1);
  }
}

// By whoever was seen last that has what its first call is on: mostly an end of a pipe, else what
// was opened last. What it did to memory alone tells less than what comes then.
void Resolve::made_by_somebody(uint32_t stream, const feign_activity& first, bool on_memory) {
  Thread& t = threads_[stream];
  const int32_t fd = FEIGN_FD_OF(first.handle);
  const bool on_descriptor =
      !on_memory && first.handle != 0 && first.handle != FEIGN_CWD && fd >= 0;
  const bool again = t.untold;
  t.untold = on_memory;
  if (again && (!on_descriptor || t.table.use_count() != 1)) return;
  if (!again) t.first_handle = last_handle_;
  const feign_stream_info mine = tables_.streams.info(t.now);
  const auto opened = [&](const Thread& it, Has has) {
    return has == Has::kSomething ? it.table->map[fd].description->handle : 0;
  };
  const Last* maker = nullptr;
  Has best = again ? has_as(*t.table, fd, t) : Has::kNothing;
  uint32_t newest = opened(t, best);
  for (const Last& l : last_) {
    if (best == Has::kPipe) break;
    const Thread& it = threads_[l.stream];
    const feign_stream_info its = tables_.streams.info(it.now);
    if (it.ended || l.stream == stream || its.rank != mine.rank || its.host != mine.host) continue;
    const Has has = on_descriptor ? has_as(*it.table, fd, t) : Has::kPipe;
    const uint32_t handle = opened(it, has);
    if ((maker != nullptr || again) && (has < best || (has == best && handle <= newest))) continue;
    maker = &l;
    best = has;
    newest = handle;
  }
  if (again && maker == nullptr) return;
  if (again)
    std::erase(t.kin->streams, stream);
  else
    t.kin = std::make_shared<Kin>();
  if (maker != nullptr && (again || mine.parent == 0)) {
    const Thread& it = threads_[maker->stream];
    for (auto& [number, had] : t.table->map) release(had.description, nullptr);
    t.table->map.clear();
    t.kin = it.kin;
    if (again && it.table->map[fd].description->handle > t.first_handle) {  // its thread
      t.kin->has_threads = true;
      t.place = it.place;
      share(it.table, t.table);
    } else {
      t.table = copy_of(*it.table);
      t.place = std::make_shared<Place>(*it.place);
    }
    if (maker->id != 0) tables_.streams.set_parent(t.now, it.now, maker->id);
    says_makers();
  }
  std::erase_if(t.kin->streams, [&](uint32_t other) { return threads_[other].ended; });
  t.kin->streams.push_back(stream);
}

void Resolve::says_makers() {
  if (std::exchange(said_makers_, true)) return;
  log(FEIGN_LOG_INFO, tables_.notes.emplace_back(
                          "the trace lacks calls that make processes: who made them, and has "
                          "what from whom, is a guess (strace: -e trace=file,desc,process "
                          "tells it)"));
}

// strace -y tells its directory, too, but not before its first call with AT_FDCWD: until then
// (`cd r; (cd s; …)`) it is where whoever was seen last is.
void Resolve::begins_where_the_last_is(uint32_t stream) {
  Thread& t = threads_[stream];
  const feign_stream_info mine = tables_.streams.info(t.now);
  if (mine.parent != 0) return;
  for (const Last& l : last_) {
    const Thread& it = threads_[l.stream];
    const feign_stream_info its = tables_.streams.info(it.now);
    if (it.ended || its.rank != mine.rank || its.host != mine.host) continue;
    t.place = std::make_shared<Place>(*it.place);
    t.place->guessed = true;
    says_makers();
    return;
  }
}

// Whether the call at hand can be on it, which was there before whoever calls: who made whom may be
// guessed wrong, and makers may have gone on before what they made was seen.
bool Resolve::may_be(const Description& d, const Thread& t) const {
  if (guesses_makers_ && got_flags_ >= 0) return has_flags(d);
  if (!guesses_makers_ || !(reads_ || writes_ || on_pipe_)) return true;
  const bool is_file = (d.marks & (FEIGN_NOT_A_FILE | FEIGN_INHERITED)) == 0;
  if (on_pipe_) return !is_file || d.handle > t.first_handle;  // its own may be a FIFO
  return !is_file || opened_for_it(d);
}

// Whether a file that was opened so can be read or written, where the call at hand does that.
bool Resolve::opened_for_it(const Description& d) const {
  if (!reads_ && !writes_) return true;
  return (d.marks & FEIGN_DIRECTORY) == 0 && (d.flags & O_PATH) == 0 &&
         (d.flags & O_ACCMODE) != (reads_ ? O_WRONLY : O_RDONLY);
}

// Whether fcntl(F_GETFL) can have told that of it: how it was opened, and that it was opened by a
// name, since then (or as a memfd, to read and write) the kernel notes that it may be large.
bool Resolve::has_flags(const Description& d) const {
  constexpr int64_t kLargeFile = 0100000 | 0400000;  // of x86 and of ARM
  const auto mode = static_cast<uint32_t>(got_flags_) & O_ACCMODE;
  if (d.marks & FEIGN_INHERITED) return true;
  if (d.path != 0) return (d.flags & O_PATH) != 0 || mode == (d.flags & O_ACCMODE);
  return (got_flags_ & kLargeFile) == 0 || mode == O_RDWR;
}

// A program of its own is nobody's thread.
void Resolve::leaves_kin(Thread& t, uint32_t stream) {
  if (t.kin == nullptr) return;
  std::erase(t.kin->streams, stream);
  t.kin = std::make_shared<Kin>();
  t.kin->streams.push_back(stream);
}

// Who uses what another one opened since it began did not inherit it: both are threads of one
// process, unless each has opened a file by one number. If there are descriptors that nothing tells
// it may be another one of those.
Resolve::Description* Resolve::threads_have(Thread& t, int32_t fd) {
  if (t.kin == nullptr || tells_descriptors_ != (kCloses | kDuplicates)) return nullptr;
  for (const uint32_t stream : t.kin->streams) {
    if (t.kin->lacks_some && !on_file_) break;
    const Thread& other = threads_[stream];
    if (other.ended || other.table == t.table) continue;
    const auto at = other.table->map.find(fd);
    if (at == other.table->map.end()) continue;
    Description* const d = at->second.description;
    const auto later = [&](const Descriptor& it) {
      return it.description->handle > std::max(t.first_handle, other.first_handle);
    };
    if (!may_be(*d, t)) continue;
    const auto& theirs = other.table->map;
    if (std::any_of(t.table->map.begin(), t.table->map.end(), [&](const auto& mine) {
          const auto its = theirs.find(mine.first);
          return its != theirs.end() && later(mine.second) && later(its->second) &&
                 its->second.description != mine.second.description;
        }))
      continue;
    if (d->handle > t.first_handle) t.kin->has_threads = true;
    if (t.kin->has_threads)
      share(other.table, t.table);
    else
      install(t, fd, d, false);  // what it has from somebody else than was guessed
    return d;
  }
  constexpr int32_t kStandard = 2;
  if (fd > kStandard) t.kin->lacks_some = true;
  return nullptr;
}

// A descriptor that a call returns, and that was not closed: another thread has, which had it when
// it began.
void Resolve::threads_closed(Thread& t, int32_t fd) {
  if (t.kin == nullptr || tells_descriptors_ != (kCloses | kDuplicates)) return;
  Description* const d = t.table->map[fd].description;
  for (const uint32_t stream : t.kin->streams) {
    const Thread& other = threads_[stream];
    if (other.ended || other.table == t.table || d->handle > other.first_handle ||
        other.table->map.contains(fd))
      continue;
    t.table->map.erase(fd);
    release(d, nullptr);
    return share(other.table, t.table);
  }
}

}  // namespace feign
