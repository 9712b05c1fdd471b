// SPDX-License-Identifier: MIT
// Rule channel: pipes and the like, futexes, locks.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "modifiers/depend/depend.h"

namespace depend {

void Depend::locks(const feign_activity& a, Effect effect) {
  if (a.file == 0 || a.handle == 0 || (a.marks & FEIGN_NOT_A_FILE)) return;
  bool exclusive, asks = false;
  uint64_t begin = 0, end = UINT64_MAX;
  if (effect == Effect::kFcntl) {
    if (a.flags != F_SETLK && a.flags != F_SETLKW && a.flags != F_OFD_SETLK &&
        a.flags != F_OFD_SETLKW && a.flags != F_GETLK && a.flags != F_OFD_GETLK)
      return;
    const auto value = [&](uint32_t i) { return i < a.value_count ? a.values[i] : 0; };
    asks = a.flags == F_GETLK || a.flags == F_OFD_GETLK;
    exclusive = value(1) == F_WRLCK;
    if (value(2) == SEEK_SET && static_cast<int64_t>(value(3)) >= 0 &&
        static_cast<int64_t>(value(4)) >= 0) {
      begin = value(3);
      end = value(4) == 0 ? UINT64_MAX : begin + value(4);
    }
  } else {
    exclusive = (a.flags & LOCK_EX) != 0;
  }
  File& f = files_[a.file];
  std::unique_ptr<Ranges>& all = effect == Effect::kFlock ? f.locks : f.records;
  if (!all) all = std::make_unique<Ranges>(kMostLocked);
  const auto come_after = [&](const Points& p) { after(p, kChannel); };
  const bool got = a.result >= 0 && !asks;
  const bool of_process = effect == Effect::kFcntl && (a.flags == F_SETLK || a.flags == F_SETLKW);
  Records* own = nullptr;
  if (got && of_process) {
    own = &records_[{streams_[a.stream].group, a.file}];
  } else if (got && effect == Effect::kFcntl) {
    std::unique_ptr<Records>& its = handles_[a.handle].own;
    if (!its) its = std::make_unique<Records>();
    own = its.get();
  }
  const bool alone = all->written(begin, end);  // somebody holds some of it alone
  // A change for others: to hold it alone; to give it up, or to share it from now on. (To give up
  // what others may hold, too, is none.)
  if (got && exclusive) {
    all->write(begin, end, me_, come_after);
    if (effect == Effect::kFlock) f.alone = static_cast<uint32_t>(a.handle);
  } else if (!asks && exclusive) {
    refused(*all, begin, end);
  } else if (got && alone && effect == Effect::kFcntl) {
    share(*all, begin, end, *own);
  } else if (got && alone && f.alone == a.handle) {
    f.alone = 0;
    all->write(begin, end, me_, come_after, true);
  } else {
    all->read(begin, end, me_, come_after);
  }
  if (own != nullptr) {
    own->calls.write(begin, end, me_, come_after, !exclusive);
    own->some = true;
  } else if (got) {
    after(std::exchange(handles_[a.handle].flock, me_), kChannel);
  }
}

// To hold it alone: before those that keep it give it up. Who holds some of it alone still does.
void Depend::refused(Ranges& locks, uint64_t begin, uint64_t end) {
  const auto come_after = [&](const Points& p) { after(p, kChannel); };
  std::vector<std::pair<uint64_t, uint64_t>> alone;
  locks.whole(begin, end,
              [&](uint64_t from, uint64_t to, const Points&) { alone.emplace_back(from, to); });
  for (const auto& [from, to] : alone) {
    locks.write(begin, from, me_, come_after, true);
    locks.read(from, to, me_, come_after);
    begin = to;
  }
  locks.write(begin, end, me_, come_after, true);
}

// From here on that owner has none of it alone. Others may, of the rest.
void Depend::share(Ranges& locks, uint64_t begin, uint64_t end, Records& own) {
  const auto come_after = [&](const Points& p) { after(p, kChannel); };
  locks.read(begin, end, me_, come_after);
  own.calls.whole(begin, end, [&](uint64_t from, uint64_t to, const Points&) {
    locks.write(from, to, me_, come_after, true);
  });
}

// The process closed a descriptor of the file, whichever: its record locks of it are gone
// (fcntl_locking(2)).
void Depend::unlocked(uint32_t file) {
  const auto mine = records_.find({streams_[me_.stream].group, file});
  if (mine == records_.end()) return;
  const auto come_after = [&](const Points& p) { after(p, kChannel); };
  Records& own = mine->second;
  if (!std::exchange(own.some, false)) {  // only before the locks that come
    own.calls.read(0, UINT64_MAX, me_, come_after);
    return;
  }
  if (File* const f = files_.find(file); f != nullptr && f->records)
    share(*f->records, 0, UINT64_MAX, own);
  own.calls.write(0, UINT64_MAX, me_, come_after, true);
}

// … the last of an open file: so is that lock.
void Depend::unlock(File& f, uint32_t handle) {
  if (!f.locks) return;
  const auto come_after = [&](const Points& p) { after(p, kChannel); };
  if (std::exchange(f.alone, f.alone == handle ? 0 : f.alone) == handle)
    f.locks->write(0, UINT64_MAX, me_, come_after, true);
  else
    f.locks->read(0, UINT64_MAX, me_, come_after);
}

void Depend::sent(Channel& c, uint32_t writer, uint64_t bytes) {
  if (!c.both_ways) writer = 0;
  size_t i = 0;
  while (i < c.queues.size() && c.queues[i].writer != writer) ++i;
  if (i == c.queues.size()) {
    if (c.queues.size() == 2) return;
    c.queues.push_back({writer, 0, 0, {}});
  }
  Queue& q = c.queues[i];
  q.written += bytes;
  if (q.written > q.read) q.writes.emplace_back(q.written, me_);
  if (q.writes.size() > kMostQueued) q.writes.pop_front();
  std::erase_if(c.wanted, [&](const Channel::Wanted& w) {
    if (w.queue != i) return false;
    if (w.stream != me_.stream) streams_[w.stream].owed.push_back({me_, kChannel});
    return w.up_to <= q.written;
  });
}

void Depend::received(Channel& c, uint32_t reader, uint64_t bytes) {
  // Of a socketpair, what the other end wrote.
  size_t i = 0;
  while (i < c.queues.size() && c.both_ways && c.queues[i].writer == reader) ++i;
  if (i == c.queues.size()) {
    if (c.both_ways) return;
    c.queues.push_back({0, 0, 0, {}});
  }
  Queue& q = c.queues[i];
  q.read = c.counter ? q.written : q.read + bytes;
  while (!q.writes.empty()) {
    const auto [end, write] = q.writes.front();
    after(write, kChannel);
    if (end <= q.read) q.writes.pop_front();
    if (end >= q.read) break;
  }
  if (q.read > q.written && !c.counter && c.wanted.size() < kMostWanted)
    c.wanted.push_back({me_.stream, static_cast<uint32_t>(i), q.read});
}

void Depend::closed(Ends::iterator end) {
  const auto [file, fifo] = end->second;
  ends_.erase(end);
  const auto c = channels_.find(file);
  if (c == channels_.end()) return;
  c->second.closes.add(me_);
  if (++c->second.closed == 2 && !fifo) channels_.erase(c);  // a FIFO may be opened again
}

void Depend::channels(const feign_activity& a, Effect effect) {
  constexpr uint64_t kByHandle = uint64_t{1} << 32;
  switch (effect) {
    case Effect::kFutex:
      return futex(a);
    case Effect::kSemaphore:
      if (a.result < 0 || a.value_count == 0) return;
      after(semaphores_[a.values[0]], kChannel);
      semaphores_[a.values[0]] = me_;
      return;
    case Effect::kFcntl:
    case Effect::kFlock:
      return locks(a, effect);
    case Effect::kExitGroup:
      for (auto at = records_.lower_bound({streams_[a.stream].group, 0});
           at != records_.end() && at->first.first == streams_[a.stream].group;
           at = records_.erase(at))
        unlocked(at->first.second);
      [[fallthrough]];
    case Effect::kExec:
    case Effect::kExit:
    case Effect::kCloseRange:
      for (uint32_t i = 0; i < a.value_count; ++i)
        if (const auto at = ends_.find(a.values[i]); at != ends_.end()) closed(at);
      return;
    case Effect::kEventfd:
      if (a.handle != 0) channels_[kByHandle | a.handle].counter = true;
      return;
    default:
      break;
  }
  if (!(a.marks & FEIGN_NOT_A_FILE) || a.handle == 0) return;

  Channel* c = nullptr;
  if (a.file != 0) {
    if (channels_.size() > kMostChannels) {
      channels_.clear();
      ends_.clear();
    }
    c = &channels_[a.file];
    ends_[a.handle] = {a.file, a.path != 0};
  } else if (const auto at = channels_.find(kByHandle | a.handle); at != channels_.end()) {
    c = &at->second;
  } else {
    return;
  }
  if (a.marks & FEIGN_BOTH_WAYS) c->both_ways = true;
  const auto bytes = static_cast<uint64_t>(std::max<int64_t>(a.result, 0));
  switch (effect) {
    case Effect::kConnect:
      c->connect = me_;
      return;
    case Effect::kAccept:
      return after(c->connect, kChannel);
    case Effect::kWrite:
    case Effect::kSend:
      if (bytes != 0) sent(*c, a.handle, bytes);
      if (a.result == -EPIPE) after(c->closes, kChannel);
      return;
    case Effect::kRead:
    case Effect::kReceive:
      if (a.result < 0 || (a.marks & FEIGN_NO_RESULT)) return;
      if (bytes != 0) return received(*c, a.handle, bytes);
      if (a.length == 0 && effect == Effect::kRead) return;
      after(c->closes, kChannel);  // the end: nobody writes any more
      for (const Queue& q : c->queues)
        if (!q.writes.empty() && q.writer != a.handle) after(q.writes.back().second, kChannel);
      return;
    case Effect::kClose:
      if (!(a.marks & FEIGN_LAST)) return;
      if (a.file == 0)
        channels_.erase(kByHandle | a.handle);
      else
        closed(ends_.find(a.handle));
      return;
    default:
      return;
  }
}

void Depend::futex(const feign_activity& a) {
  constexpr uint32_t kCommand = 127, kPrivate = 128;
  const uint32_t command = a.flags & kCommand;
  const uint64_t group = a.flags & kPrivate ? streams_[a.stream].group : 0;
  const auto value = [&](uint32_t i) { return i < a.value_count ? a.values[i] : 0; };
  const auto wake = [&](uint64_t address) {
    Futex& f = futexes_[{group, address}];
    f.wake = me_;
    f.wake_end = a.start_ns + a.duration_ns;
    std::erase_if(f.early, [&](const Futex::Waiter& w) {
      if (a.start_ns > w.until) return true;
      if (w.stream != me_.stream) streams_[w.stream].owed.push_back({me_, kChannel});
      return false;
    });
    if (futexes_.size() > kMostFutexes) futexes_.clear();
  };
  switch (command) {
    case 1:   // WAKE
    case 7:   // UNLOCK_PI
    case 10:  // WAKE_BITSET
      if (a.result >= 0) wake(a.offset);
      return;
    case 3:   // REQUEUE
    case 4:   // CMP_REQUEUE
    case 5:   // WAKE_OP
    case 12:  // CMP_REQUEUE_PI
      if (a.result < 0) return;
      wake(a.offset);
      return wake(value(1));
    case 0:     // WAIT
    case 6:     // LOCK_PI
    case 9:     // WAIT_BITSET
    case 11:    // WAIT_REQUEUE_PI
    case 13: {  // LOCK_PI2
      if (a.result < 0 && a.result != -EAGAIN) return;
      // Of a thread that ends, the kernel clears the word with its number, and wakes: pthread_join.
      if (group == 0) {
        const auto thread =
            threads_.find({streams_[a.stream].group, static_cast<int64_t>(value(0))});
        if (thread != threads_.end() && clocks_.has_ended(thread->second))
          return after({thread->second, clocks_.last(thread->second)}, kChannel);
      }
      if (a.result != 0) return;
      Futex& f = futexes_[{group, a.offset}];
      if (f.wake.id != 0 && f.wake_end >= a.start_ns) return after(f.wake, kChannel);
      if (f.early.size() < kMostWanted) f.early.push_back({a.stream, a.start_ns + a.duration_ns});
      return;
    }
    default:
      return;
  }
}

}  // namespace depend
