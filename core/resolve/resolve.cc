// SPDX-License-Identifier: MIT
#include "resolve/resolve.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "layers/posix_ops.h"

namespace feign {
namespace {

constexpr uint32_t kFdDupfd = F_DUPFD, kFdDupfdCloexec = 1030, kFdSetfd = F_SETFD;

bool opens_nofollow(Effect effect, const feign_activity& a) {
  switch (effect) {
    case Effect::kLstat:
    case Effect::kReadlink:
    case Effect::kUnlink:
    case Effect::kUnlinkat:
    case Effect::kRmdir:
    case Effect::kRename:
    case Effect::kMkdir:
    case Effect::kSymlink:
      return true;
    case Effect::kLink:
      return (a.flags & AT_SYMLINK_FOLLOW) == 0;
    case Effect::kStatat:
    case Effect::kAccess:
      return (a.flags & AT_SYMLINK_NOFOLLOW) != 0;
    case Effect::kOpen:
      return (a.flags & O_NOFOLLOW) != 0 || (a.flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL);
    default:
      return false;
  }
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
  t.process = std::make_shared<Process>();
  t.process->threads.push_back(stream);
  return t;
}

void Resolve::waited(uint32_t stream, uint64_t ns) {
  if (Thread& t = thread_of(stream); t.known && !t.ended) t.waited += ns;
}

// The pause before a call: what of it was waiting (as far as calls that we saw tell), and the rest.
void Resolve::pause(feign_activity& a, Thread& t) {
  const uint64_t gap = a.start_ns > t.last_end ? a.start_ns - t.last_end : 0;
  a.sync_ns = std::min(gap, t.waited);
  a.compute_ns = gap - a.sync_ns;
  t.waited = 0;
  t.last_end = std::max(t.last_end, a.start_ns + a.duration_ns);
}

void Resolve::child(Record& r, const Thread& parent, bool files, bool place, bool process) {
  feign_stream_info info = tables_.streams.info(r.a.stream);
  info.thread = r.a.result;
  info.process = process ? info.process : r.a.result;
  const std::shared_ptr<Table> table = parent.table;
  const std::shared_ptr<Place> where = parent.place;
  const std::shared_ptr<Process> group = parent.process;
  const uint32_t stream = tables_.streams.find_or_add(info);
  if (stream == r.a.stream) return;  // a trace that says a thread made itself
  Thread& t = thread_of(stream);
  const bool seen_before = t.known && !t.ended;
  if (!seen_before) {
    begin(stream);
    t.last_end = r.a.start_ns;
  }
  tables_.streams.set_parent(t.now, r.a.stream, r.a.id);
  tables_.streams.set_process(t.now, info.process);
  if (seen_before) return;  // it ran before its parent's call was seen: it keeps what it has
  t.place = place ? where : std::make_shared<Place>(*where);
  if (process) {
    t.process = group;
    group->threads.push_back(stream);
  }
  if (files) {
    t.table = table;
  } else {
    *t.table = *table;
    for (auto& [fd, d] : t.table->map) ++d.description->refs;
  }
}

// ---- descriptors --------------------------------------------------------------------------------

Resolve::Description* Resolve::describe(uint32_t marks, uint32_t path, uint32_t file,
                                        uint32_t flags) {
  if (free_.empty()) {
    pool_.push_back(std::make_unique<Description>());
    free_.push_back(pool_.back().get());
  }
  Description* d = free_.back();
  free_.pop_back();
  *d = Description{++last_handle_, file, path, flags, 0, marks, 0};
  return d;
}

void Resolve::release(Description* d, std::vector<uint64_t>* ended) {
  if (--d->refs != 0) return;
  if (ended != nullptr && !(d->marks & FEIGN_NOT_A_FILE)) ended->push_back(d->handle);
  free_.push_back(d);
}

void Resolve::install(Thread& t, int32_t fd, Description* d, bool close_on_exec) {
  ++d->refs;
  Descriptor& at = t.table->map[fd];
  if (at.description != nullptr) release(at.description, nullptr);
  at = {d, close_on_exec};
}

// The description behind a recorded descriptor. One whose opening was not seen is described by what
// the tracer says it is (`hint`), if it says anything.
Resolve::Description* Resolve::find(Thread& t, uint32_t handle, uint32_t hint) {
  const int32_t fd = FEIGN_FD_OF(handle);
  if (handle == 0 || handle == FEIGN_CWD || fd < 0) return nullptr;
  const auto at = t.table->map.find(fd);
  if (at != t.table->map.end()) return at->second.description;
  if (!found_open_) return nullptr;  // the kernel said that it is none
  const std::string_view what = tables_.strings.text(hint);
  const bool file = !what.empty() && what[0] == '/' && !what.starts_with("/dev/") &&
                    !what.starts_with("/proc/") && !what.starts_with("/memfd:");
  Description* d = describe(FEIGN_INHERITED | (file ? 0u : uint32_t{FEIGN_NOT_A_FILE}),
                            file ? hint : 0, file ? names_.at(hint) : 0, 0);
  install(t, fd, d, false);
  return d;
}

void Resolve::fill(feign_activity& a, const Description* d) {
  a.handle = 0;
  a.file = 0;
  if (d == nullptr) {
    if (found_open_) a.marks |= FEIGN_NOT_A_FILE;
    return;
  }
  a.handle = d->handle;
  a.file = d->file;
  a.path = d->path;
  a.marks |= d->marks;
}

void Resolve::close_all(Table& table, bool only_on_exec, std::vector<uint64_t>* ended) {
  for (auto at = table.map.begin(); at != table.map.end();) {
    if (only_on_exec && !at->second.close_on_exec) {
      ++at;
      continue;
    }
    release(at->second.description, ended);
    at = table.map.erase(at);
  }
}

// ---- paths --------------------------------------------------------------------------------------

uint32_t Resolve::absolute(const Thread& t, uint32_t base_handle, uint32_t hint, uint32_t path) {
  const std::string_view text = tables_.strings.text(path);
  if (text.empty()) return 0;
  if (text[0] == '/') {
    if (path < cleaned_.size() && cleaned_[path] != 0) return cleaned_[path];
    const uint32_t clean = tables_.strings.intern(clean_path(text));
    if (path >= cleaned_.size()) cleaned_.resize(std::max<size_t>(path + 1, path * 3 / 2));
    return cleaned_[path] = clean;
  }
  uint32_t base = 0;
  if (base_handle == FEIGN_CWD || base_handle == 0) {
    if (t.place->path == 0 && hint != 0) t.place->path = hint;
    base = t.place->path;
  } else {
    const auto at = t.table->map.find(FEIGN_FD_OF(base_handle));
    base = at != t.table->map.end() ? at->second.description->path : hint;
  }
  uint32_t& joined = joined_[uint64_t{base} << 32 | path];
  if (joined == 0) {
    std::string whole(tables_.strings.text(base));
    whole += '/';
    whole += text;
    joined = tables_.strings.intern(clean_path(whole));
  }
  return joined;
}

// After a directory was renamed, what is open below it, and who works in it, is elsewhere by name.
void Resolve::renamed(uint32_t from, uint32_t to) {
  const std::string old(tables_.strings.text(from));
  const std::string target(tables_.strings.text(to));
  const auto moved = [&](uint32_t path) -> uint32_t {
    const std::string_view text = tables_.strings.text(path);
    if (!text.starts_with(old) || (text.size() > old.size() && text[old.size()] != '/'))
      return path;
    return tables_.strings.intern(target + std::string(text.substr(old.size())));
  };
  for (const auto& d : pool_)
    if (d->refs != 0 && d->path != 0) d->path = moved(d->path);
  for (Thread& t : threads_)
    if (t.known && !t.ended && t.place->path != 0) t.place->path = moved(t.place->path);
}

// ---- calls --------------------------------------------------------------------------------------

void Resolve::open(Record& r, Thread& t, Effect effect) {
  feign_activity& a = r.a;
  const uint32_t hint = a.file;
  if (effect == Effect::kCreat) a.flags = O_WRONLY | O_CREAT | O_TRUNC;
  a.path = absolute(t, a.handle, hint, a.path);
  a.handle = 0;
  const Namespace::Touched touched = names_.apply(a, effect);
  a.file = touched.file;
  if (touched.created) a.marks |= FEIGN_CREATES;
  if (a.result < 0) return;
  uint32_t marks = 0;
  if (touched.file != 0 && names_.file(touched.file).type == Namespace::Type::kDirectory)
    marks |= FEIGN_DIRECTORY;
  if (touched.file != 0 && names_.file(touched.file).type == Namespace::Type::kUnknown)
    names_.file(touched.file).type = Namespace::Type::kFile;
  Description* d = describe(marks, a.path, a.file, a.flags);
  install(t, static_cast<int32_t>(a.result), d, (a.flags & O_CLOEXEC) != 0);
  a.handle = d->handle;
  a.marks |= marks;
}

void Resolve::path_call(Record& r, Thread& t, Effect effect) {
  feign_activity& a = r.a;
  const uint32_t hint = a.file;
  a.file = 0;
  if (a.path == 0) {  // AT_EMPTY_PATH, or no path at all: the descriptor's file
    fill(a, find(t, a.handle, hint));
    return;
  }
  if (effect == Effect::kLink || effect == Effect::kRename)
    a.path2 = absolute(t, a.handle2, 0, a.path2);
  a.path = absolute(t, a.handle, hint, a.path);
  a.handle = a.handle2 = 0;
  const Namespace::Touched touched = names_.apply(a, effect);
  a.file = touched.file;
  if (touched.created) a.marks |= FEIGN_CREATES;
  if (touched.file == 0) return;
  const Namespace::Type type = names_.file(touched.file).type;
  if (type == Namespace::Type::kDirectory) a.marks |= FEIGN_DIRECTORY;
  if (type == Namespace::Type::kSymlink) a.marks |= FEIGN_SYMLINK;
  if (effect == Effect::kRename && a.result >= 0 && type == Namespace::Type::kDirectory)
    renamed(a.path, a.path2);
  if (effect == Effect::kTruncate && a.result >= 0) names_.file(a.file).size = a.length;
}

void Resolve::data(feign_activity& a, Description* d, Effect effect) {
  if (d == nullptr || (d->marks & FEIGN_NOT_A_FILE)) return;
  const uint64_t done = a.result > 0 ? static_cast<uint64_t>(a.result) : 0;
  const bool writes =
      effect == Effect::kWrite || effect == Effect::kPwrite || effect == Effect::kPwrite2;
  const bool positional =
      effect == Effect::kPread || effect == Effect::kPwrite ||
      ((effect == Effect::kPread2 || effect == Effect::kPwrite2) && a.offset != UINT64_MAX);
  Namespace::File* f = d->file != 0 ? &names_.file(d->file) : nullptr;
  if (writes && (d->flags & O_APPEND)) {
    a.offset = f != nullptr ? f->size : d->offset;
    if (!positional) d->offset = a.offset + done;
  } else if (!positional) {
    a.offset = d->offset;
    d->offset += done;
  }
  if (f != nullptr && writes) f->size = std::max(f->size, a.offset + done);
  if (f != nullptr && !writes) f->size = std::max(f->size, a.offset + done);
}

void Resolve::apply(Record& r) {
  feign_activity& a = r.a;
  const uint32_t recorded_stream = a.stream;
  begin(recorded_stream);
  // By index from here on: a child's begin() may move the vector.
  const auto thread = [&]() -> Thread& { return threads_[recorded_stream]; };
  a.stream = thread().now;
  pause(a, thread());
  a.marks |= FEIGN_RESOLVED;
  found_open_ = a.result != -EBADF;

  const std::span<const Call> calls = posix_calls();
  const Effect effect = a.op < calls.size() ? calls[a.op].effect : Effect::kUse;
  if (a.op >= calls.size()) return;  // a layer of somebody's own: its handles are its own
  Thread& t = thread();
  const uint32_t hint = a.file;
  const bool ok = a.result >= 0 && !(a.marks & FEIGN_NO_RESULT);
  if (opens_nofollow(effect, a)) a.marks |= FEIGN_NOFOLLOW;

  switch (effect) {
    case Effect::kOpen:
    case Effect::kCreat:
      open(r, t, effect);
      return;
    case Effect::kClose: {
      Description* d = find(t, a.handle, hint);
      const int32_t fd = FEIGN_FD_OF(a.handle);
      fill(a, d);
      // Linux gives the descriptor up even when close() fails, but not when it was none (EBADF).
      if (d == nullptr || a.result == -EBADF) return;
      if (d->refs == 1) a.marks |= FEIGN_LAST;
      t.table->map.erase(fd);
      release(d, nullptr);
      return;
    }
    case Effect::kDup:
    case Effect::kDup2: {
      const uint32_t target = effect == Effect::kDup2 ? a.handle2 : 0;
      Description* d = find(t, a.handle, hint);
      fill(a, d);
      a.handle2 = 0;
      if (!ok || d == nullptr) return;
      const auto fd = static_cast<int32_t>(a.result);
      if (target != 0) {
        const auto old = t.table->map.find(fd);
        if (old != t.table->map.end() && old->second.description == d) return;
        if (old != t.table->map.end()) {
          Description* gone = old->second.description;
          if (!(gone->marks & FEIGN_NOT_A_FILE)) {
            a.handle2 = gone->handle;  // dup2 closes it
            if (gone->refs == 1) a.marks |= FEIGN_LAST;
          }
        }
      }
      install(t, fd, d, effect == Effect::kDup2 && (a.flags & O_CLOEXEC));
      return;
    }
    case Effect::kFcntl: {
      Description* d = find(t, a.handle, hint);
      const int32_t fd = FEIGN_FD_OF(a.handle);
      fill(a, d);
      if (!ok || d == nullptr) return;
      if (a.flags == kFdDupfd || a.flags == kFdDupfdCloexec)
        install(t, static_cast<int32_t>(a.result), d, a.flags == kFdDupfdCloexec);
      if (a.flags == kFdSetfd && a.value_count > 0)
        t.table->map[fd].close_on_exec = (a.values[0] & FD_CLOEXEC) != 0;
      return;
    }
    case Effect::kSeek: {
      Description* d = find(t, a.handle, hint);
      fill(a, d);
      if (!ok || d == nullptr) return;
      d->offset = static_cast<uint64_t>(a.result);
      if (d->file != 0 && a.flags == SEEK_END && a.result >= static_cast<int64_t>(a.offset))
        names_.file(d->file).size = static_cast<uint64_t>(a.result) - a.offset;
      return;
    }
    case Effect::kRead:
    case Effect::kWrite:
    case Effect::kPread:
    case Effect::kPwrite:
    case Effect::kPread2:
    case Effect::kPwrite2: {
      Description* d = find(t, a.handle, hint);
      fill(a, d);
      data(a, d, effect);
      return;
    }
    case Effect::kCopy: {
      Description* from = find(t, a.handle, hint);
      Description* to = find(t, a.handle2, 0);
      fill(a, from);
      a.handle2 = to != nullptr ? to->handle : 0;
      if (to == nullptr || (to->marks & FEIGN_NOT_A_FILE)) a.marks |= FEIGN_NOT_A_FILE;
      const uint64_t done = ok ? static_cast<uint64_t>(a.result) : 0;
      if (from != nullptr) a.offset = std::exchange(from->offset, from->offset + done);
      if (to != nullptr) {
        to->offset += done;
        if (to->file != 0)
          names_.file(to->file).size = std::max(names_.file(to->file).size, to->offset);
      }
      return;
    }
    case Effect::kFstat: {
      Description* d = find(t, a.handle, hint);
      fill(a, d);
      if (ok && d != nullptr && d->file != 0 && S_ISREG(a.mode))
        names_.file(d->file).size = a.length;
      if (ok && d != nullptr && (S_ISFIFO(a.mode) || S_ISSOCK(a.mode))) {
        d->marks |= FEIGN_NOT_A_FILE;
        a.marks |= FEIGN_NOT_A_FILE;
      }
      return;
    }
    case Effect::kFtruncate:
      fill(a, find(t, a.handle, hint));
      if (ok && a.file != 0) names_.file(a.file).size = a.length;
      return;
    case Effect::kFallocate:
      fill(a, find(t, a.handle, hint));
      if (ok && a.file != 0 && a.flags == 0)
        names_.file(a.file).size = std::max(names_.file(a.file).size, a.offset + a.length);
      return;
    case Effect::kUse:
    case Effect::kList:
      fill(a, find(t, a.handle, hint));
      return;
    case Effect::kFork:
      if (ok && a.result > 0) child(r, t, false, false, false);
      return;
    case Effect::kClone:
      if (ok && a.result > 0)
        child(r, t, a.flags & CLONE_FILES, a.flags & CLONE_FS, a.flags & CLONE_THREAD);
      return;
    case Effect::kExec: {
      a.path = absolute(t, a.handle, hint, a.path);
      a.handle = a.file = 0;
      if (!ok) return;
      // exec gives up what was shared, then closes what was so marked.
      if (t.table.use_count() > 1 && t.process->threads.size() <= 1) {
        auto own = std::make_shared<Table>(*t.table);
        for (auto& [fd, d] : own->map) ++d.description->refs;
        t.table = own;
      }
      std::vector<uint64_t> ended;
      close_all(*t.table, true, &ended);
      r.set_values(ended);
      return;
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
        one.table.reset();
        one.place.reset();
        one.process.reset();
      }
      r.set_values(ended);
      return;
    }
    case Effect::kCloseRange: {
      const uint64_t first = a.value_count > 0 ? a.values[0] : 0;
      const uint64_t last = a.value_count > 1 ? a.values[1] : 0;
      std::vector<uint64_t> ended;
      if (ok && !(a.flags & 4 /* CLOSE_RANGE_CLOEXEC */)) {
        for (auto at = t.table->map.begin(); at != t.table->map.end();) {
          if (static_cast<uint64_t>(at->first) < first || static_cast<uint64_t>(at->first) > last) {
            ++at;
            continue;
          }
          release(at->second.description, &ended);
          at = t.table->map.erase(at);
        }
      }
      r.set_values(ended);
      return;
    }
    case Effect::kGetcwd:
      a.path = absolute(t, 0, 0, a.path);
      a.handle = a.file = 0;
      if (ok && a.path != 0) t.place->path = a.path;
      return;
    case Effect::kChdir:
      path_call(r, t, effect);
      if (ok && a.path != 0) t.place->path = a.path;
      return;
    case Effect::kFchdir: {
      Description* d = find(t, a.handle, hint);
      fill(a, d);
      if (ok && d != nullptr && d->path != 0) t.place->path = d->path;
      return;
    }
    case Effect::kPipe:
      a.handle = a.file = 0;
      a.marks |= FEIGN_NOT_A_FILE;
      if (!ok || a.value_count < 2) return;
      for (uint32_t i = 0; i < 2; ++i)
        install(t, static_cast<int32_t>(a.values[i]), describe(FEIGN_NOT_A_FILE, 0, 0, 0),
                (a.flags & O_CLOEXEC) != 0);
      return;
    case Effect::kChannel:
      a.handle = a.file = 0;
      a.marks |= FEIGN_NOT_A_FILE;
      if (ok)
        install(t, static_cast<int32_t>(a.result), describe(FEIGN_NOT_A_FILE, 0, 0, 0),
                (a.flags & O_CLOEXEC) != 0);
      return;
    default:
      path_call(r, t, effect);
      return;
  }
}

}  // namespace feign
