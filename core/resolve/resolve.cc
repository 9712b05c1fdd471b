// SPDX-License-Identifier: MIT
#include "resolve/resolve.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/log.h"
#include "base/path.h"

namespace feign {
namespace {

constexpr uint32_t kFdDupfd = F_DUPFD, kFdDupfdCloexec = 1030, kFdSetfd = F_SETFD;

// Whether a symbolic link at the end of the path is used itself.
bool no_follow(const Call& call, const feign_activity& a) {
  switch (call.effect) {
    case Effect::kLink:
      return (a.flags & AT_SYMLINK_FOLLOW) == 0;
    case Effect::kStatat:
    case Effect::kAccess:
    case Effect::kChmod:
    case Effect::kAttr:
    case Effect::kGetXattr:
    case Effect::kSetXattr:
    case Effect::kRemoveXattr:
    case Effect::kExec:
      return call.nofollow || (a.flags & AT_SYMLINK_NOFOLLOW) != 0;
    case Effect::kOpen:
    case Effect::kFopen:
      return (a.flags & O_NOFOLLOW) != 0 || (a.flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL);
    default:
      return call.nofollow;
  }
}

// Whether the path leads on from a symbolic link at its end whatever the call says of links: a
// slash or dot is behind it (path_resolution(7)).
bool leads_on(const feign_activity& a, Effect effect, std::string_view path) {
  switch (effect) {
    case Effect::kOpen:
      if (a.flags & O_CREAT) return false;
      break;
    case Effect::kStat:
    case Effect::kStatat:
    case Effect::kAccess:
    case Effect::kChmod:
    case Effect::kAttr:
    case Effect::kReadlink:
    case Effect::kGetXattr:
    case Effect::kSetXattr:
    case Effect::kRemoveXattr:
      break;
    default:
      return false;
  }
  return (a.marks & FEIGN_NOFOLLOW) && (path.ends_with('/') || path.ends_with("/."));
}

// Of what a tracer says a descriptor is: a file's name, and no more.
bool is_path(std::string_view said) {
  return said.starts_with('/') && said.find('<') == said.npos && !said.ends_with(" (deleted)");
}

// Whether the path goes up, if at all, before it goes down.
bool ups_first(std::string_view path) {
  bool down = path.starts_with('/');
  for (std::string_view part; !(part = take_component(path)).empty();) {
    if (down && part == "..") return false;
    down = down || part != "..";
  }
  return true;
}

// A failure that comes from how the path was written, which its clean form does not tell any more:
// a slash or dot at the end, or ".." behind what is no directory or leads to none. Made with the
// clean path, such a call would succeed.
bool form_decides(const feign_activity& a, Effect effect, std::string_view path) {
  if (a.result >= 0) return false;
  const bool makes = effect == Effect::kMkdir || effect == Effect::kMknod ||
                     effect == Effect::kSymlink || effect == Effect::kLink ||
                     effect == Effect::kRename || (effect == Effect::kOpen && (a.flags & O_CREAT));
  const bool at_end =
      path.ends_with('/') || path.ends_with("/.") || path.ends_with("..") || path == ".";
  const bool up = path.find("..") != std::string_view::npos || path.find("/.") != path.npos;
  const bool loops = a.result == -ELOOP && (a.marks & FEIGN_NOFOLLOW) == 0;
  if (path == "/" || !(at_end || (up && (makes || a.result == -ENOTDIR || loops)))) return false;
  switch (-a.result) {
    case ENOENT:
    case ENOTDIR:
      return makes || at_end || a.result == -ENOTDIR;
    case EINVAL:
    case EBUSY:
    case EISDIR:
    case ENOTEMPTY:
      return true;
    case EEXIST:  // renameat2(…, "a/.", RENAME_NOREPLACE) has not looked for the other name yet
      while (path.ends_with('/')) path.remove_suffix(1);
      return effect == Effect::kRename &&
             (path == "." || path.ends_with("/.") || path == ".." || path.ends_with("/.."));
    case ELOOP:
      return up && loops;
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
  if (files) {
    t.table = table;
  } else {
    t.table = copy_of(*table);
  }
}

// A system call that lies in a call which is kept account of itself (fopen's open, fread's read):
// what it does is what that one did. It is told what it was on, and changes nothing. False: it is
// none of these.
bool Resolve::part_of_tracked(feign_activity& a, Thread& t, Effect effect) {
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
      } else {  // what a close of the stream flushes
        a.handle = 0;
        a.marks |= t.closed_marks;
      }
      return true;
    case Effect::kSeek:
      if (Description* d = fd(); d != nullptr) {
        fill(a, d);
        if (a.result >= 0) d->below = done;
      } else {  // what a close of the stream flushes
        a.handle = 0;
        a.marks |= t.closed_marks;
      }
      return true;
    case Effect::kDup:
    case Effect::kDup2:  // freopen's
      a.handle = std::exchange(a.handle2, 0);
      fill(a, fd());
      return true;
    case Effect::kStatat:
      if (a.path != 0) return false;
      [[fallthrough]];
    case Effect::kFstat:
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

// ---- descriptors --------------------------------------------------------------------------------

Resolve::Description* Resolve::describe(uint32_t marks, uint32_t path, uint32_t file,
                                        uint32_t flags) {
  if (free_.empty()) {
    pool_.push_back(std::make_unique<Description>());
    free_.push_back(pool_.back().get());
  }
  Description* d = free_.back();
  free_.pop_back();
  *d = Description{++last_handle_, file, path, flags, 0, marks};
  return d;
}

void Resolve::release(Description* d, std::vector<uint64_t>* ended) {
  if (--d->refs != 0) return;
  if (d->fd >= 0)
    if (const auto at = left_.find(d->file); at != left_.end() && at->second.found == d)
      at->second = {nullptr, d->offset, at->second.appends};
  if (ended != nullptr && (!(d->marks & FEIGN_NOT_A_FILE) || d->file != 0))
    ended->push_back(d->handle);
  free_.push_back(d);
}

void Resolve::install(Thread& t, int32_t fd, Description* d, bool close_on_exec) {
  ++d->refs;
  Descriptor& at = t.table->map[fd];
  if (at.description != nullptr) {
    if (at.description->refs == 1 && !(at.description->marks & FEIGN_NOT_A_FILE))
      t.table->unclosed.push_back(at.description->handle);
    if (!said_guess_ && at.description->said == 0) {
      said_guess_ = true;
      log(FEIGN_LOG_INFO,
          tables_.notes.emplace_back(
              "the trace lacks calls that close descriptors: what dup and fork made of them is not "
              "known where it lacks these, too (strace: -y tells it, or -e "
              "trace=file,desc,process)"));
    }
    release(at.description, nullptr);
  }
  at = {d, close_on_exec};
}

// Descriptors that a message brings to another process stand for the same open files there.
void Resolve::send(const feign_activity& a, Thread& t) {
  constexpr size_t kMost = 64;  // whoever gets them may not be traced
  Sent& s = sent_.emplace_back();
  s.file = a.file;
  s.by = a.handle;
  for (uint32_t i = 0; i < a.value_count; ++i) {
    if (a.values[i] == FEIGN_NO_OFFSET) continue;  // said of the message when it came
    const auto at = t.table->map.find(static_cast<int32_t>(a.values[i]));
    Description* const d = at != t.table->map.end() ? at->second.description : nullptr;
    if (d != nullptr) ++d->refs;
    s.descriptions.push_back(d);
  }
  if (sent_.size() <= kMost) return;
  for (Description* d : sent_.front().descriptions)
    if (d != nullptr) release(d, nullptr);
  sent_.pop_front();
}

// Which message it is, a pair of sockets tells: the other end was given it. Else it is the first
// that has as many. What was sent to somebody who was not traced is not what came from another one.
// FEIGN_NO_OFFSET at the end stands for those that there was no room for.
void Resolve::receive(const feign_activity& a, Thread& t) {
  const bool cut = a.values[a.value_count - 1] == FEIGN_NO_OFFSET;
  const size_t came = a.value_count - (cut ? 1 : 0);
  auto best = sent_.end();
  for (auto s = sent_.begin(); s != sent_.end(); ++s) {
    const bool known = a.file != 0 && s->file != 0, pair = known && s->file == a.file;
    const size_t sent = s->descriptions.size();
    if ((cut ? sent <= came : sent != came) || (known && !pair) ||
        (s->by != 0 && s->by == a.handle))
      continue;
    if (pair || best == sent_.end()) best = s;
    if (pair) break;
  }
  if (best == sent_.end()) return;
  for (size_t i = 0; i < best->descriptions.size(); ++i) {
    Description* const d = best->descriptions[i];
    if (d == nullptr) continue;
    if (i < came)
      install(t, static_cast<int32_t>(a.values[i]), d, (a.flags & MSG_CMSG_CLOEXEC) != 0);
    release(d, nullptr);
  }
  sent_.erase(best);
}

// The description behind a recorded descriptor. One whose opening was not seen is described by what
// the tracer says it is (`hint`), if it says anything.
Resolve::Description* Resolve::find(Thread& t, uint32_t handle, uint32_t hint) {
  const int32_t fd = FEIGN_FD_OF(handle);
  if (handle == 0 || handle == FEIGN_CWD || fd < 0) return nullptr;
  const auto at = t.table->map.find(fd);
  if (at != t.table->map.end()) {
    Description* const d = at->second.description;
    if (hint == 0) return d;
    if (d->file == 0 && (d->marks & FEIGN_NOT_A_FILE)) connected(*d, tables_.strings.text(hint));
    if (!told_ || d->path == hint || d->said == hint || !is_another(*d, hint)) return d;
  }
  if (!found_open_) return nullptr;  // the kernel said that it is none
  return found_open(t, fd, hint);
}

// Whether what the tracer says of a descriptor tells that it is not what it was known to be: a
// close, dup or the like is missing in the trace.
bool Resolve::is_another(const Description& d, uint32_t hint) {
  const bool is_file = (d.marks & FEIGN_NOT_A_FILE) == 0;
  if (is_file && d.said == 0 && !(d.marks & FEIGN_INHERITED)) return false;
  feign_activity device{};
  if (!tables_.strings.text(hint).starts_with('/') || no_storage(device, hint)) return is_file;
  if (d.path != 0 && names_.canonical(d.path, true) == names_.canonical(hint, true)) return false;
  const uint32_t file = names_.at(names_.canonical(hint, true));
  return file != 0 && file != d.file;
}

Resolve::Description* Resolve::found_open(Thread& t, int32_t fd, uint32_t hint) {
  constexpr int32_t kStandard = 2;  // processes inherit them from each other
  const std::string_view what = tables_.strings.text(hint);
  feign_activity device{};
  const bool file = names_storage(device, hint);
  uint32_t identity = 0;
  if (file) {
    identity = names_.found(hint, Namespace::Type::kUnknown);
  } else if (what.starts_with("pipe:[")) {  // the same number is the same pipe
    uint32_t& known = pipes_[hint];
    if (known == 0) known = names_.nameless();
    identity = known;
  }
  Left* const left = file && identity != 0 ? &left_[identity] : nullptr;
  // One behind standard output and standard error: "> log 2>&1".
  const int32_t before = left != nullptr && left->found != nullptr ? left->found->fd : -1;
  if (before >= 0 && before <= kStandard && fd <= kStandard && (before == fd || before * fd != 0)) {
    install(t, fd, left->found, false);
    return left->found;
  }
  Description* d =
      describe(FEIGN_INHERITED | device.marks | (file ? 0u : uint32_t{FEIGN_NOT_A_FILE}),
               what.empty() || what[0] != '/' ? 0 : hint, identity, 0);
  if (left != nullptr) {
    d->fd = fd;
    d->flags = left->appends ? O_APPEND : 0;
    d->offset = left->offset;
    left->found = d;
  }
  install(t, fd, d, false);
  if (identity == 0) connected(*d, what);
  return d;
}

// Which connection a socket is an end of, by what the tracer says (strace -yy, our own capture):
// "TCP:[10.0.0.1:40000->10.0.0.2:80]", "TCPv6:[[::1]:40000->[::1]:80]", or, by the numbers of both
// ends' sockets, "UNIX-STREAM:[12->34,"/run/name"]"; of one that nobody accepted yet, the first of
// them alone.
void Resolve::connected(Description& d, std::string_view what) {
  constexpr size_t kMostEnds = size_t{1} << 17;  // then all are forgotten
  const bool internet = what.starts_with("TCP");
  if (!internet && !what.starts_with("UNIX-STREAM:") && !what.starts_with("UNIX-SEQPACKET:"))
    return;
  const size_t begin = what.find(":["), end = what.rfind(']');
  if (begin == what.npos || end == what.npos || end <= begin + 2) return;
  what = what.substr(begin + 2, end - begin - 2);
  if (!internet) what = what.substr(0, what.find(','));
  const size_t arrow = what.find("->");
  if (internet && arrow == what.npos) return;  // it listens, or is not connected yet
  const auto name = [](std::string_view text) {
    constexpr std::string_view kMapped = "[::ffff:";  // the other end may be an IPv4 socket
    if (text.starts_with(kMapped) && text.find('.') != text.npos) {
      std::string plain(text.substr(kMapped.size()));
      if (const size_t bracket = plain.find(']'); bracket != plain.npos) plain.erase(bracket, 1);
      return plain;
    }
    return std::string(text);
  };
  std::string own = name(what.substr(0, arrow)), other;
  if (arrow != what.npos) {
    other = name(what.substr(arrow + 2));
    if (internet) {  // the same address may be an end of many
      const std::string both = own + '>' + other;
      other = other + '>' + own;
      own = both;
    }
  }
  if (ends_.size() > kMostEnds) ends_.clear();
  End& mine = ends_[own];
  if (mine.identity == 0 || (internet && mine.taken)) {  // new, or the addresses came again
    const auto theirs = internet || other.empty() ? ends_.end() : ends_.find(other);
    mine.identity = theirs != ends_.end() ? theirs->second.identity : names_.nameless();
    if (!other.empty() && theirs == ends_.end()) ends_[other] = {mine.identity, false};
  }
  mine.taken = true;
  d.file = mine.identity;
  d.marks |= FEIGN_BOTH_WAYS;
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

std::shared_ptr<Resolve::Table> Resolve::copy_of(const Table& table) {
  auto own = std::make_shared<Table>();
  own->map = table.map;
  for (auto& [fd, d] : own->map) ++d.description->refs;
  return own;
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
  ended->insert(ended->end(), table.unclosed.begin(), table.unclosed.end());
  table.unclosed.clear();
}

// ---- paths --------------------------------------------------------------------------------------

// Goes up from where links lead to, not from their names, but not beyond the first `floor` bytes of
// the base; for paths with "..".
std::string Resolve::physical(const Thread& t, std::string base, std::string_view text,
                              size_t floor) {
  for (std::string_view part; !(part = take_component(text)).empty();) {
    if (part != "..") {
      base += '/';
      base += part;
      continue;
    }
    base = clean_path(base);
    const uint32_t meant = behind_proc(t, base, nullptr);
    base = tables_.strings.text(
        names_.canonical(meant != 0 ? meant : tables_.strings.intern(base), true));
    if (base.size() != floor) base.resize(std::min(base.rfind('/'), base.size()));
  }
  return base;
}

// A thread of that id that has not ended, by the one that names it; null if the trace has none.
const Resolve::Thread* Resolve::running(const Thread& t, int64_t id) const {
  feign_stream_info info = tables_.streams.info(t.now);
  if (id == info.process || id == info.thread) return &t;
  info.thread = id;
  info.again = 0;  // as the provider numbers it
  const uint32_t stream = tables_.streams.find(info);
  if (stream >= threads_.size()) return nullptr;
  const Thread& found = threads_[stream];
  return found.known && !found.ended ? &found : nullptr;
}

// Names below /proc and /dev that stand for what a process has open, or for where it is: the name
// that is meant, 0 if it is none of these.
// Where it is a descriptor itself, `open` gets what is behind it.
uint32_t Resolve::behind_proc(const Thread& t, std::string_view text, Description** open) {
  if (text.size() < 8 || (text[1] != 'p' && text[1] != 'd')) return 0;
  std::string_view rest = text;
  const auto take = [&](std::string_view prefix) {
    if (!rest.starts_with(prefix)) return false;
    rest.remove_prefix(prefix.size());
    return true;
  };
  uint32_t base = 0;
  const Thread* of = &t;
  const auto number = [&]() -> int32_t {
    int32_t n = 0;
    size_t digits = 0;
    while (digits < rest.size() && digits < 9 && rest[digits] >= '0' && rest[digits] <= '9')
      n = n * 10 + (rest[digits++] - '0');
    rest.remove_prefix(digits);
    return digits != 0 ? n : -1;
  };
  const auto thread = [&] {
    const int32_t id = number();
    of = id >= 0 && take("/") ? running(t, id) : nullptr;
    return of != nullptr;
  };
  const auto descriptor = [&] {
    const auto at = of->table->map.find(number());
    if (at == of->table->map.end()) return;
    base = named(at->second.description->path, at->second.description->gone);
    if (rest.empty() && open != nullptr) *open = at->second.description;
  };
  if (take("/dev/fd/")) {
    descriptor();
  } else if (text == "/dev/stdin" || text == "/dev/stdout" || text == "/dev/stderr") {
    rest = text == "/dev/stdin" ? "0" : text == "/dev/stdout" ? "1" : "2";
    descriptor();
  } else if (take("/proc/") && (take("self/") || take("thread-self/") || thread()) &&
             (!take("task/") || thread())) {
    if (take("fd/"))
      descriptor();
    else if (take("cwd"))
      base = named(of->place->path, of->place->gone);
    else if (take("root"))
      base = of->place->root != 0 ? of->place->root : tables_.strings.intern("/");
  }
  if (base == 0 || (!rest.empty() && rest[0] != '/')) return 0;
  return rest.empty() ? base
                      : tables_.strings.intern(clean_path(std::string(tables_.strings.text(base)) +
                                                          std::string(rest)));
}

// What the tracer says of the working directory counts where no call tells it, what the provider
// takes for granted where nothing does.
void Resolve::moves(const Thread& t, uint32_t directory, bool gone) {
  t.place->path = directory;
  t.place->gone = gone;
}

void Resolve::works_in(Thread& t, uint32_t hint) {
  if (hint == 0) return;
  if (told_ && is_path(tables_.strings.text(hint))) names_.has_no_links(hint);
  if (hint == t.place->path) return;
  if (t.place->path == 0 || (told_ && !moves_seen_)) {
    t.place->path = hint;
    return;
  }
  if (!told_ || t.place->gone) return;
  // It went there by a link that no call told. (What an open found tells that, too.)
  const uint32_t named = names_.canonical(t.place->path, true);
  if (named != hint && !names_.is_without_links(named)) {
    if (!opened_) t.place->path = hint;
    return;
  }
  // In another directory than calls say, and not in the same under a name that it had: it left what
  // it shared with others, by a call that is missing (strace -e trace=%process has no unshare).
  const uint32_t there = names_.at(names_.canonical(hint, true));
  if (there == 0 || there == names_.at(named)) return;
  if (t.place.use_count() > 1) t.place = std::make_shared<Place>(*t.place);
  t.place->path = hint;
}

uint32_t Resolve::absolute(Thread& t, uint32_t base_handle, uint32_t hint, uint32_t path) {
  // Longer than any that a program got to: trees that deep are kept account of no more.
  constexpr size_t kLongest = size_t{16} << 10;
  const std::string_view text = tables_.strings.text(path);
  if (text.empty() || text.size() > kLongest) return 0;
  const bool by_links = names_.has_links() || t.place->root != 0 || text.starts_with("/proc/") ||
                        text.starts_with("/dev/");
  const bool up = by_links && text.find("..") != std::string_view::npos;
  if (text[0] == '/') {
    if (t.place->root != 0) {  // ".." does not lead out of it
      std::string whole(tables_.strings.text(t.place->root));
      whole += clean_path(text);
      return tables_.strings.intern(clean_path(whole));
    }
    if (up) return tables_.strings.intern(clean_path(physical(t, "", text)));
    if (path < cleaned_.size() && cleaned_[path] != 0) return cleaned_[path];
    const uint32_t clean = tables_.strings.intern(clean_path(text));
    if (path >= cleaned_.size()) cleaned_.resize(std::max<size_t>(path + 1, path * size_t{3} / 2));
    return cleaned_[path] = clean;
  }
  uint32_t base = 0;
  bool gone = false;
  if (base_handle == FEIGN_CWD || base_handle == 0) {
    works_in(t, hint);
    base = t.place->path;
    gone = t.place->gone;
  } else {
    const auto at = t.table->map.find(FEIGN_FD_OF(base_handle));
    const bool known = at != t.table->map.end();
    base = known ? at->second.description->path : hint;
    gone = known && at->second.description->gone;
    if (base == 0) return 0;  // of no directory at all, or of one that nothing tells
  }
  base = named(base, gone);
  if (up) {
    const size_t floor = t.place->root != 0 ? tables_.strings.text(t.place->root).size() : 0;
    return tables_.strings.intern(
        clean_path(physical(t, std::string(tables_.strings.text(base)), text, floor)));
  }
  uint32_t& joined = joined_[uint64_t{base} << 32 | path];
  if (joined == 0) {
    if (tables_.strings.text(base).size() + text.size() > kLongest) return 0;
    std::string whole(tables_.strings.text(base));
    whole += '/';
    whole += text;
    joined = tables_.strings.intern(clean_path(whole));
  }
  if (gone && joined == base) return 0;  // itself, which no name leads to
  return joined;
}

// How many names of a path the kernel looks up, as FEIGN_NAMED_BY has it.
static uint32_t components(std::string_view path) {
  if (path.starts_with('/')) return FEIGN_NAMED_WHOLE;
  uint32_t n = 0;
  while (!path.empty() && n < FEIGN_NAMED_WHOLE) {
    const std::string_view name = path.substr(0, path.find('/'));
    if (!name.empty() && name != "." && name != "..") ++n;
    path.remove_prefix(std::min(name.size() + 1, path.size()));
  }
  return n;
}

// Whether a directory descriptor is none: paths from it are refused, whatever they are.
bool Resolve::no_directory(Thread& t, uint32_t handle, uint32_t hint) {
  const Description* const d = find(t, handle, hint);
  if (d == nullptr) return false;
  if (d->marks & FEIGN_NOT_A_FILE) return true;
  const Namespace::Type type = names_.file(d->file).type;  // of none: unknown
  return type == Namespace::Type::kFile || type == Namespace::Type::kSymlink;
}

namespace {

bool is_disk(std::string_view path) {
  if (!path.starts_with("/dev/")) return false;
  const std::string_view name = path.substr(5);
  for (const std::string_view disk : {"sd", "hd", "vd", "xvd", "nvme", "mmcblk", "loop", "md",
                                      "dm-", "mapper/", "disk/", "nbd", "rbd", "ram", "zram"})
    if (name.starts_with(disk)) return !name.ends_with("control");  // mapper/control, loop-control
  return false;
}

}  // namespace

// Devices, and what the kernel makes up: not storage. (Disks are.)
bool Resolve::no_storage(feign_activity& a, uint32_t path) {
  const std::string_view text = tables_.strings.text(path);
  const auto below = [&](std::string_view folder) {
    return text.starts_with(folder) && (text.size() == folder.size() || text[folder.size()] == '/');
  };
  if (text.size() < 4 || (text[1] != 'p' && text[1] != 's' && text[1] != 'd')) return false;
  if (below("/dev")) {
    if (below("/dev/shm") || below("/dev/mqueue") || below("/dev/hugepages") || is_disk(text))
      return false;
  } else if (!below("/proc") && !below("/sys")) {
    return false;
  }
  a.marks |= FEIGN_NOT_A_FILE | FEIGN_NO_STORAGE;
  return true;
}

// Whether what a tracer says of a descriptor is a file's name, and that of storage.
bool Resolve::names_storage(feign_activity& a, uint32_t said) {
  const std::string_view text = tables_.strings.text(said);
  return text.starts_with('/') && !text.starts_with("/memfd:") && !no_storage(a, said);
}

// After a directory was renamed, what is open below it, and who works or has its root in it, is
// elsewhere by name.
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
  for (Thread& t : threads_) {
    if (!t.known || t.ended) continue;
    if (t.place->path != 0) t.place->path = moved(t.place->path);
    if (t.place->root != 0) t.place->root = moved(t.place->root);
  }
}

// Whoever is in a directory that goes, or has it open, is not in what may get its name later.
void Resolve::removed(uint32_t directory) {
  for (const auto& d : pool_)
    if (d->refs != 0 && d->path == directory) d->gone = true;
  for (Thread& t : threads_)
    if (t.known && !t.ended && t.place->path == directory) t.place->gone = true;
}

// What names in a directory begin with: in one that is gone, as the kernel shows it, so that they
// are missing, and ".." leads to where it was.
uint32_t Resolve::named(uint32_t directory, bool gone) {
  if (!gone) return directory;
  return tables_.strings.intern(std::string(tables_.strings.text(directory)) + " (deleted)");
}

// ---- files in memory ----------------------------------------------------------------------------

void Resolve::drop_piece(Memory& m, Mapping* mapping) {
  if (--mapping->pieces != 0) return;
  m.ended.push_back(mapping->handle);
  free_mappings_.push_back(mapping);
}

void Resolve::forget(Memory& m, std::vector<uint64_t>& ended) {
  for (auto& [address, piece] : m.pieces) drop_piece(m, piece.mapping);
  m.pieces.clear();
  ended.insert(ended.end(), m.ended.begin(), m.ended.end());
  m.ended.clear();
}

// What lies in the range goes; a piece that sticks out of it is cut.
void Resolve::unmap(Memory& m, uint64_t address, uint64_t length) {
  const uint64_t end = address + length;
  auto at = m.pieces.upper_bound(address);
  if (at != m.pieces.begin()) --at;
  while (at != m.pieces.end() && at->first < end) {
    const uint64_t start = at->first;
    const Piece piece = at->second;
    if (piece.end <= address) {
      ++at;
      continue;
    }
    at = m.pieces.erase(at);
    if (start < address) {
      m.pieces[start] = {address, piece.offset, piece.mapping};
      ++piece.mapping->pieces;
    }
    if (piece.end > end) {
      m.pieces[end] = {piece.end, piece.offset + (end - start), piece.mapping};
      ++piece.mapping->pieces;
    }
    drop_piece(m, piece.mapping);
    at = m.pieces.lower_bound(end);
  }
}

void Resolve::map(Memory& m, uint64_t address, uint64_t length, Mapping* mapping, uint64_t offset) {
  unmap(m, address, length);
  ++mapping->pieces;
  m.pieces[address] = {address + length, offset, mapping};
}

// mmap and what works on its addresses. Without a file it is memory, which is not ours.
const char* Resolve::memory_call(Record& r, Thread& t, Effect effect) {
  static constexpr const char* kMemory = "memory";
  feign_activity& a = r.a;
  Memory& m = *t.memory;
  const bool ok = (a.result >= 0 || a.result < -4095) && !(a.marks & FEIGN_NO_RESULT);
  const uint64_t result = static_cast<uint64_t>(a.result);
  constexpr uint64_t kMost = uint64_t{1} << 62;
  if (a.length > kMost || (ok && effect != Effect::kUnmap && result > kMost)) return kMemory;
  constexpr uint64_t kPage = 4096;
  const uint64_t length = (a.length + kPage - 1) / kPage * kPage;

  if (effect == Effect::kMap) {
    if (a.handle == 0 || FEIGN_FD_OF(a.handle) < 0 || (a.flags & MAP_ANONYMOUS)) {
      if (ok && (a.flags & MAP_FIXED)) unmap(m, result, length);
      return kMemory;
    }
    Description* d = find(t, a.handle, a.file);
    fill(a, d);
    a.handle2 = 0;
    if (!ok || d == nullptr) return nullptr;
    if (d->marks & FEIGN_NOT_A_FILE) {
      unmap(m, result, length);
      return nullptr;
    }
    if (free_mappings_.empty()) {
      mappings_.push_back(std::make_unique<Mapping>());
      free_mappings_.push_back(mappings_.back().get());
    }
    Mapping* mapping = free_mappings_.back();
    free_mappings_.pop_back();
    *mapping = {++last_handle_, d->file, d->path, 0};
    map(m, result, length, mapping, 0);
    a.handle2 = mapping->handle;
    return nullptr;
  }

  if (a.offset > kMost) return kMemory;
  const uint64_t address = a.offset;
  auto at = m.pieces.upper_bound(address);
  if (at != m.pieces.begin() && std::prev(at)->second.end > address) --at;
  const uint64_t span = effect == Effect::kRemap && a.value_count > 0
                            ? std::min<uint64_t>(a.values[0], kMost)
                            : length;
  if (at == m.pieces.end() || at->first >= address + span) return kMemory;
  const Piece piece = at->second;
  const uint64_t inside = address > at->first ? address - at->first : 0;
  a.handle = piece.mapping->handle;
  a.file = piece.mapping->file;
  a.path = piece.mapping->path;
  a.offset = piece.offset + inside;
  if (!ok) return nullptr;
  if (effect == Effect::kUnmap) {
    unmap(m, address, length);
    std::vector<uint64_t> ended = std::move(m.ended);
    m.ended.clear();
    r.set_values(ended);
  } else if (effect == Effect::kRemap) {
    ++piece.mapping->pieces;  // it stays, elsewhere
    unmap(m, address, span);
    map(m, result, length, piece.mapping, a.offset);
    --piece.mapping->pieces;
  }
  return nullptr;
}

// ---- calls --------------------------------------------------------------------------------------

void Resolve::open(Record& r, Thread& t, Effect effect) {
  feign_activity& a = r.a;
  const uint32_t hint = a.file, said = std::exchange(a.path2, 0);
  opened_ = a.result >= 0 && is_path(tables_.strings.text(said));
  if (a.handle == FEIGN_CWD || a.handle == 0) works_in(t, hint);
  if (effect == Effect::kCreat) a.flags = O_WRONLY | O_CREAT | O_TRUNC;
  if (effect == Effect::kFopen || effect == Effect::kFreopen) a.mode = 0666;  // fopen(3)
  if (effect == Effect::kTmpfile) {
    a.path = tables_.strings.intern("/tmp");
    a.flags = O_TMPFILE | O_RDWR | O_EXCL;
    a.mode = 0600;
  }
  a.mode &= ~t.place->umask;
  const std::string_view text = tables_.strings.text(a.path);
  uint32_t in_root = 0;
  if (a.value_count != 0 && (a.values[0] & RESOLVE_IN_ROOT))  // openat2: "/" is the directory
    in_root = absolute(t, a.handle, hint, tables_.strings.intern("."));
  if (in_root != 0) {
    in_root = names_.canonical(in_root, true);
    names_.links_lead_from(in_root);
    const std::string root(tables_.strings.text(in_root));
    in_root = tables_.strings.intern(clean_path(physical(t, root, text, root.size())));
  }
  const bool up = text.find("..") != std::string_view::npos;
  const bool odd = (a.result == -ENOTDIR && no_directory(t, a.handle, hint)) ||
                   form_decides(a, Effect::kOpen, text);
  a.marks |= FEIGN_AS_NAMED(components(text), 0);
  const bool on = leads_on(a, Effect::kOpen, text);
  a.path = odd ? 0 : in_root != 0 ? in_root : absolute(t, a.handle, hint, a.path);
  if (on && a.path != 0) a.path = names_.canonical(a.path, true);
  // ".." may be behind a link that nothing has told of yet, unless it leads up from where that is.
  const bool unnamed = (a.flags & O_TMPFILE) == O_TMPFILE;
  if (up && a.path != 0 && opened_ && !unnamed && !(ups_first(text) && hint != 0 && told_))
    a.path = said;
  if (up && a.path != 0 && a.result == -ENOENT && names_.at(a.path) != 0)
    a.path = 0;  // ".." behind a name that is not there
  a.handle = 0;
  a.file = 0;
  const bool follow = (a.marks & FEIGN_NOFOLLOW) == 0;
  const bool through = follow && (a.value_count == 0 ||
                                  !(a.values[0] & (RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS)));
  Description* open = nullptr;
  if (through && a.path != 0)
    if (const uint32_t path = behind_proc(t, tables_.strings.text(a.path), &open); path != 0)
      a.path = path;
  if (open != nullptr && !(open->marks & FEIGN_NOT_A_FILE) && open->file != 0 &&
      names_.at(names_.canonical(open->path, true)) != open->file)
    return open_again(a, t, *open);
  uint32_t path = a.path != 0 ? names_.canonical(a.path, follow) : 0;
  // A descriptor, executable or the like of a process, which only the tracer tells.
  if (feign_activity kernels{}, files{}; through && a.result >= 0 && path != 0 &&
                                         is_path(tables_.strings.text(said)) &&
                                         no_storage(kernels, path) && names_storage(files, said)) {
    path = a.path = said;
    a.flags &= ~uint32_t{O_CREAT};  // it was there
  }
  // Found elsewhere than its name says: a link that was there before.
  const bool found =
      through && opened_ && path != 0 && in_root == 0 && t.place->root == 0 && !unnamed;
  if (feign_activity one{}, other{};
      found && path != said && names_storage(one, path) && names_storage(other, said)) {
    a.path2 = names_.link_between(a.path, follow, said);
    if (a.path2 != 0) {
      if (const feign_activity link = names_.readlink_for(a); link.path != 0) {
        (void)names_.apply(link, Effect::kReadlink);
        names_.assume(link);
      }
      path = names_.canonical(a.path, follow);
    }
  }
  if (t.place->root != 0 || in_root != 0) a.path = path;
  if (path != 0 && is_disk(tables_.strings.text(path)))
    a.flags &= ~static_cast<uint32_t>(O_CREAT | O_TRUNC);  // a device stays as it is
  uint32_t marks = 0;
  if (path == 0 || no_storage(a, path)) {
    a.marks |= FEIGN_NOT_A_FILE;
    marks = a.marks & (FEIGN_NOT_A_FILE | FEIGN_NO_STORAGE);
  } else {
    const Namespace::Touched touched = names_.apply(a, Effect::kOpen);
    a.file = touched.file;
    if (found) names_.has_no_links(said);
    // What the call around it made, it made by this one.
    const bool for_outer = touched.file != 0 && touched.file == t.made && (a.flags & O_CREAT);
    if (touched.created || (for_outer && a.result >= 0)) a.marks |= FEIGN_CREATES;
    if (touched.file != 0 && a.result >= 0) {
      Namespace::File& f = names_.file(touched.file);
      if (f.type == Namespace::Type::kDirectory) marks |= FEIGN_DIRECTORY;
      if (f.type == Namespace::Type::kFifo || f.type == Namespace::Type::kOther)
        marks |= FEIGN_NOT_A_FILE;
      if (f.type == Namespace::Type::kUnknown) f.type = Namespace::Type::kFile;
    }
  }
  if (a.result < 0) return;
  Description* d = describe(marks, path, a.file, a.flags);
  d->said = said;
  const bool stdio = effect == Effect::kFopen || effect == Effect::kFreopen;
  if (stdio && (a.flags & O_APPEND) && !(a.flags & O_RDWR)) {  // mode "a" starts at the end
    d->at_end = true;
    d->offset = a.file != 0 ? names_.file(a.file).size : 0;
  }
  install(t, static_cast<int32_t>(a.result), d, (a.flags & O_CLOEXEC) != 0);
  const bool appends = (a.flags & O_APPEND) != 0;
  if (a.file != 0 && (appends || left_.contains(a.file))) {
    Left& left = left_[a.file];
    left.offset = 0;
    left.appends = appends;
  }
  a.handle = d->handle;
  a.marks |= marks;
  if (effect != Effect::kFreopen && !t.table->unclosed.empty()) {
    a.handle2 = t.table->unclosed.back();
    t.table->unclosed.pop_back();
  }
}

// By way of a descriptor (/proc/self/fd/N), of a file that has no name by now, or whose name
// another one has.
void Resolve::open_again(feign_activity& a, Thread& t, const Description& what) {
  a.handle2 = what.handle;
  a.file = what.file;
  a.path = 0;
  if (a.result < 0) return;
  if (a.flags & O_TRUNC) names_.file(a.file).size = 0;
  Description* const d =
      describe(what.marks & FEIGN_DIRECTORY, what.path, what.file, a.flags & ~uint32_t{O_CREAT});
  a.handle = d->handle;
  a.marks |= d->marks;
  install(t, static_cast<int32_t>(a.result), d, (a.flags & O_CLOEXEC) != 0);
}

void Resolve::path_call(Record& r, Thread& t, Effect effect) {
  feign_activity& a = r.a;
  const uint32_t hint = a.file;
  a.file = 0;
  // Of both names.
  if (a.handle == FEIGN_CWD || a.handle == 0) works_in(t, hint);
  if (a.path == 0) {  // AT_EMPTY_PATH, or no path at all: the descriptor's file
    if (effect == Effect::kLink) a.path2 = absolute(t, a.handle2, 0, a.path2);
    a.handle2 = 0;
    Description* d = find(t, a.handle, hint);
    fill(a, d);
    if (effect == Effect::kLink && a.result == -ENOTDIR && a.path2 != 0) {
      a.path2 = 0;
      return;
    }
    if (effect == Effect::kLink && a.result >= 0 && d != nullptr && d->file != 0 && a.path2 != 0)
      names_.link(d->file, a.path2);
    // A descriptor of the link itself (O_PATH): the link's name tells as much.
    if (effect == Effect::kReadlink && d != nullptr && a.path != 0 &&
        !(d->marks & FEIGN_NOT_A_FILE)) {
      a.handle = 0;
      a.file = names_.apply(a, effect).file;
    }
    return;
  }
  if (effect == Effect::kMkdir || effect == Effect::kMknod) a.mode &= ~t.place->umask;
  if ((a.result == -ENOTDIR &&
       (no_directory(t, a.handle, hint) || no_directory(t, a.handle2, 0))) ||
      form_decides(a, effect, tables_.strings.text(a.path)) ||
      (a.path2 != 0 && effect != Effect::kSymlink &&
       form_decides(a, effect, tables_.strings.text(a.path2)))) {
    a.path = a.handle = a.handle2 = 0;
    a.marks |= FEIGN_NOT_A_FILE;
    return;
  }
  const std::string_view text = tables_.strings.text(a.path);
  const bool up = text.find("..") != std::string_view::npos;
  const bool on = leads_on(a, effect, text);
  a.marks |= FEIGN_AS_NAMED(components(text), 0);
  if (effect == Effect::kLink || effect == Effect::kRename) {
    a.marks |= FEIGN_AS_NAMED(0, components(tables_.strings.text(a.path2)));
    a.path2 = absolute(t, a.handle2, 0, a.path2);
  }
  a.path = absolute(t, a.handle, hint, a.path);
  if (on && a.path != 0) a.path = names_.canonical(a.path, true);
  a.handle = a.handle2 = 0;
  const bool lost = a.path == 0 || ((effect == Effect::kLink || effect == Effect::kRename) &&
                                    a.path2 == 0);  // from a directory that nothing tells
  if (lost || (up && a.result == -ENOENT && names_.at(a.path) != 0)) {  // behind no name
    a.path = a.path2 = 0;
    a.marks |= FEIGN_NOT_A_FILE;
    return;
  }
  Description* open = nullptr;
  if (!(a.marks & FEIGN_NOFOLLOW) && a.path != 0)
    if (const uint32_t path = behind_proc(t, tables_.strings.text(a.path), &open); path != 0)
      a.path = path;
  // By way of its descriptor: the file may have no name, or another one by now.
  if (open != nullptr && !(open->marks & FEIGN_NOT_A_FILE) &&
      (effect == Effect::kLink || effect == Effect::kChmod || effect == Effect::kAttr ||
       effect == Effect::kStat || effect == Effect::kStatat || effect == Effect::kAccess ||
       effect == Effect::kTruncate || effect == Effect::kGetXattr || effect == Effect::kSetXattr ||
       effect == Effect::kRemoveXattr)) {
    fill(a, open);
    if (effect == Effect::kTruncate && a.result >= 0 && open->file != 0)
      names_.file(open->file).size = a.length;
    if (effect == Effect::kLink && a.result >= 0 && open->file != 0 && a.path2 != 0)
      names_.link(open->file, a.path2);
    return;
  }
  if (no_storage(a, a.path)) return;
  const uint32_t from = names_.canonical(a.path, false);
  const uint32_t to = a.path2 != 0 ? names_.canonical(a.path2, false) : 0;
  if (t.place->root != 0) {  // whoever replays has another root
    a.path = (a.marks & FEIGN_NOFOLLOW) ? from : names_.canonical(a.path, true);
    if (effect == Effect::kLink || effect == Effect::kRename) a.path2 = to;
  }
  const Namespace::Touched touched = names_.apply(a, effect);
  a.file = touched.file;
  if (touched.created) a.marks |= FEIGN_CREATES;
  if (touched.file == 0) return;
  const Namespace::Type type = names_.file(touched.file).type;
  if (type == Namespace::Type::kDirectory) a.marks |= FEIGN_DIRECTORY;
  // What was renamed onto a link ends what that led to.
  const bool replaces = effect == Effect::kRename && touched.file2 != 0 &&
                        names_.file(touched.file2).type == Namespace::Type::kSymlink;
  if (type == Namespace::Type::kSymlink || replaces) a.marks |= FEIGN_SYMLINK;
  const bool removes = effect == Effect::kRmdir || effect == Effect::kUnlinkat;
  if (removes && a.result >= 0 && type == Namespace::Type::kDirectory) removed(from);
  if (effect == Effect::kRename && a.result >= 0) {
    if (touched.file2 != 0 && touched.file2 != touched.file && !(a.flags & RENAME_EXCHANGE) &&
        names_.file(touched.file2).type == Namespace::Type::kDirectory)
      removed(to);
    if (a.flags & RENAME_EXCHANGE) {
      const uint32_t aside = tables_.strings.intern("//exchange");
      renamed(from, aside);
      renamed(to, from);
      renamed(aside, to);
    } else {
      renamed(from, to);
    }
  }
  if (effect == Effect::kTruncate && a.result >= 0) names_.file(a.file).size = a.length;
}

void Resolve::data(feign_activity& a, Description* d, Effect effect) {
  if (d == nullptr || (d->marks & FEIGN_NOT_A_FILE)) return;
  const uint64_t done = a.result > 0 ? static_cast<uint64_t>(a.result) : 0;
  const bool writes =
      effect == Effect::kWrite || effect == Effect::kPwrite || effect == Effect::kPwrite2;
  const bool second = effect == Effect::kPread2 || effect == Effect::kPwrite2;
  const bool positional = effect == Effect::kPread || effect == Effect::kPwrite ||
                          (second && a.offset != FEIGN_NO_OFFSET);
  if (second) a.mode = positional ? 0 : 1;  // for the replayer: at its own offset
  Namespace::File* f = d->file != 0 ? &names_.file(d->file) : nullptr;
  if (!positional && d->at_end) a.marks |= FEIGN_APPENDS;
  if (!positional && done != 0) d->at_end = d->at_end && writes;
  constexpr uint32_t kRwfAppend = 16, kRwfNoAppend = 32;
  const uint32_t flags = second ? a.flags : 0;
  const bool appends = (d->flags & O_APPEND) && (flags & kRwfNoAppend) == 0;
  if (writes && (appends || (flags & kRwfAppend))) {
    a.marks |= FEIGN_APPENDS;
    a.offset = f != nullptr ? f->size : d->offset;
    if (!positional && done != 0) {
      d->offset = a.offset + done;
      d->at_end = true;
    }
  } else if (!positional) {
    a.offset = d->offset;
    d->offset += done;
  }
  if (f != nullptr && done != 0) f->size = std::max(f->size, a.offset + done);
}

// Bytes from one descriptor to another; an end that is a pipe or socket is none of ours.
void Resolve::copy(Record& r, Thread& t) {
  feign_activity& a = r.a;
  const bool tells_offsets = a.value_count != 0;
  const uint64_t at_in = a.value_count > 0 ? a.values[0] : FEIGN_NO_OFFSET;
  const uint64_t at_out = a.value_count > 1 ? a.values[1] : FEIGN_NO_OFFSET;
  const uint64_t done = a.result > 0 ? static_cast<uint64_t>(a.result) : 0;
  const uint32_t hint = a.file;
  const auto file_only = [](Description* d) {
    return d != nullptr && !(d->marks & FEIGN_NOT_A_FILE) ? d : nullptr;
  };
  Description* from = file_only(find(t, a.handle, hint));
  Description* to = file_only(find(t, a.handle2, 0));
  fill(a, from != nullptr ? from : to);
  a.handle = from != nullptr ? from->handle : 0;
  a.handle2 = to != nullptr ? to->handle : 0;
  uint64_t in = 0, out = 0;
  if (from != nullptr) in = at_in != FEIGN_NO_OFFSET ? at_in : from->offset;
  if (to != nullptr) {
    Namespace::File* f = to->file != 0 ? &names_.file(to->file) : nullptr;
    out = at_out != FEIGN_NO_OFFSET ? at_out : to->offset;
    if ((to->flags & O_APPEND) && f != nullptr) out = f->size;
    if (at_out == FEIGN_NO_OFFSET && done != 0) to->offset = out + done;
    if (f != nullptr && done != 0) f->size = std::max(f->size, out + done);
  }
  if (from != nullptr && at_in == FEIGN_NO_OFFSET) from->offset = in + done;
  a.offset = from != nullptr ? in : out;
  if (tells_offsets || to != nullptr)
    r.set_values(std::array<uint64_t, 4>{at_in, at_out, to != nullptr ? to->file : 0, out});
}

const char* Resolve::apply(Record& r) {
  feign_activity& a = r.a;
  const uint32_t recorded_stream = a.stream;
  const Call* const call = tables_.ops.call(a.op);
  const Effect effect = call != nullptr ? call->effect : Effect::kUse;
  if ((a.marks & FEIGN_INJECTED) && effect == Effect::kExit) {  // it may have called it itself
    const Thread& t = thread_of(recorded_stream);
    if (!t.known || t.ended) return "";
    a.marks &= ~FEIGN_INJECTED;
  }
  told_ = (a.marks & FEIGN_TOLD) != 0;
  opened_ = false;
  a.marks &= ~FEIGN_TOLD;
  begin(recorded_stream);
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
  Thread& t = thread();
  if (FEIGN_DEPTH(a.marks) <= t.made_depth) t.made = 0;
  if (call == nullptr) {
    (void)part_of_tracked(a, t, effect);
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
  if (no_follow(*call, a)) a.marks |= FEIGN_NOFOLLOW;
  if (part_of_tracked(a, t, effect)) return nullptr;

  switch (effect) {
    case Effect::kFreopen: {  // what it takes the place of is closed, whether it can open or not
      const auto old = t.table->map.find(FEIGN_FD_OF(a.handle2));
      a.handle2 = 0;
      if (old != t.table->map.end()) {
        Description* gone = old->second.description;
        if (!(gone->marks & FEIGN_NOT_A_FILE)) {
          a.handle2 = gone->handle;
          if (gone->refs == 1) a.marks |= FEIGN_LAST;
        }
        t.table->map.erase(old);
        release(gone, nullptr);
      }
      open(r, t, effect);
      t.closed = 0;  // it opens one and duplicates that
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
      t.closed = a.handle;
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
      install(t, fd, d, effect == Effect::kDup2 && (a.flags & O_CLOEXEC));
      return nullptr;
    }
    case Effect::kFcntl: {
      Description* d = find(t, a.handle, hint);
      const int32_t fd = FEIGN_FD_OF(a.handle);
      fill(a, d);
      if (!ok || d == nullptr) return nullptr;
      if (a.flags == kFdDupfd || a.flags == kFdDupfdCloexec)
        install(t, static_cast<int32_t>(a.result), d, a.flags == kFdDupfdCloexec);
      if (a.flags == F_SETFL && a.value_count > 0) {
        constexpr uint32_t kSettable = O_APPEND | O_NONBLOCK | O_ASYNC | O_DIRECT | O_NOATIME;
        d->flags = (d->flags & ~kSettable) | (static_cast<uint32_t>(a.values[0]) & kSettable);
      }
      if (a.flags == kFdSetfd && a.value_count > 0)
        t.table->map[fd].close_on_exec = (a.values[0] & FD_CLOEXEC) != 0;
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
      d->offset = static_cast<uint64_t>(a.result);
      if (d->file != 0 && a.flags == SEEK_END && a.result >= static_cast<int64_t>(a.offset))
        names_.file(d->file).size = static_cast<uint64_t>(a.result) - a.offset;
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
      if (ok && d != nullptr && d->file != 0 && S_ISREG(a.mode))
        names_.file(d->file).size = a.length;
      if (ok && d != nullptr && (S_ISFIFO(a.mode) || S_ISSOCK(a.mode))) {
        d->marks |= FEIGN_NOT_A_FILE;
        a.marks |= FEIGN_NOT_A_FILE;
      }
      return nullptr;
    }
    case Effect::kFtruncate:
      fill(a, find(t, a.handle, hint));
      if (ok && a.file != 0) names_.file(a.file).size = a.length;
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
    case Effect::kNone:
    case Effect::kAioWait:
    case Effect::kWait:
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
    case Effect::kList:
      fill(a, find(t, a.handle, hint));
      return nullptr;
    case Effect::kFork:
    case Effect::kVfork:
      if (ok && a.result > 0) child(r, t, 0);
      return nullptr;
    case Effect::kClone:
      if (ok && a.result > 0) child(r, t, a.flags);
      return nullptr;
    case Effect::kUnshare:
      a.handle = a.file = a.path = 0;
      if (!ok) return nullptr;
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
      if (ok && a.path != 0) moves(t, a.path, false);
      return nullptr;
    }
    case Effect::kChdir:
      path_call(r, t, effect);
      if (ok && a.path != 0) moves(t, names_.canonical(a.path, true), false);
      return nullptr;
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
