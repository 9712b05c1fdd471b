// SPDX-License-Identifier: MIT
// Modifier depend: gives each activity the dependencies that keep it right when streams run side by
// side: what it must come after, for which reason. docs/dependencies.md has the rules with a
// picture each.
//
// One pass, in the order of the trace. Each thing that calls can disagree about (a handle, a name,
// a range of bytes, a pipe) remembers its last accesses; a call gets an edge to each of them that
// it must not overtake, unless that follows from other edges (clocks.h). Edges lead to earlier ids
// only, so there is no cycle.
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <deque>
#include <iterator>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "base/input.h"
#include "feign.h"
#include "modifiers/depend/clocks.h"
#include "modifiers/depend/points.h"
#include "modifiers/depend/ranges.h"
#include "trace/record.h"
#include "trace/tables.h"

namespace {

using depend::Clocks;
using depend::Point;
using depend::Points;
using depend::Ranges;
using feign::Effect;

struct Options {
  const char* rules;
  uint64_t window;
  const char* edges;
  uint32_t reduce;
};
constexpr feign_option kOptions[] = {
    {"rules", FEIGN_OPT_TEXT, offsetof(Options, rules), "handle+path+file+process+channel+recorded",
     nullptr, 0, 0,
     "Which rules make dependencies: some of handle, path, file, process, channel, recorded, "
     "window, "
     "explicit, trace, with + between; or none."},
    {"window", FEIGN_OPT_DURATION, offsetof(Options, window), "0ns", nullptr, 0, 0,
     "Rule window: a call comes after all that had ended this much before it started. Turns it "
     "on."},
    {"edges", FEIGN_OPT_TEXT, offsetof(Options, edges), "", nullptr, 0, 0,
     "Rule explicit: a file with lines \"17 after 5\", numbers as feign convert OUT.txt prints "
     "them. Turns it on."},
    {"reduce", FEIGN_OPT_BOOL, offsetof(Options, reduce), "yes", nullptr, 0, 0,
     "Leave out what follows from other dependencies and the order within streams."},
};

enum Rule : uint32_t {
  kHandle,
  kPath,
  kFile,
  kProcess,
  kChannel,
  kRecorded,
  kWindow,
  kExplicit,
  kTrace,
  kRules
};
constexpr const char* kRuleNames[kRules] = {"handle",   "path",   "file",     "process", "channel",
                                            "recorded", "window", "explicit", "trace"};

// What one access at a time may change, and many may use.
struct Shared {
  Point change;
  Points uses;
};
// What two kinds of access contend for, each of which does no harm to its own kind.
struct TwoSided {
  Points sides[2];
};

// A name, by its absolute path.
struct Name {
  uint32_t parent = 0;                         // 0: that of "/"
  uint32_t first_child = 0, next_sibling = 0;  // of those in use
  uint32_t above = 0;                          // the nearest one up that is a barrier, 0 if none
  uint32_t above_valid = 0;                    // as long as this is barriers_
  bool in_use = false;
  bool barrier = false;  // a directory or link that the trace made, moved or removed
  Shared access;
  std::unique_ptr<TwoSided> entries;  // changes and listings of what is in the directory
};

struct File {
  Shared identity;  // under whatever name: made, removed, its rights changed; found
  // Its bytes: exact once several streams were at them.
  uint32_t only = 0;  // the stream that is alone at it
  bool several = false;
  Ranges bytes;
  // Its size: calls that set it, that extend the file, and those that saw where it ends.
  Point set;
  Points extends, ends;
  bool size_known = false, size_changed = false;
  uint64_t size = 0;
  uint64_t there = 0;  // so many bytes were there before any call changed the size
  uint32_t open = 0;   // handles
  bool made = false;   // by the trace: then all of its names are known
  uint32_t names = 0;
  bool ended() const { return made && names == 0 && open == 0; }
  std::unique_ptr<Ranges> locks;
};

struct Handle {
  Shared access;
  uint32_t file = 0;
  bool locked = false;
  uint64_t buffered = UINT64_MAX, buffered_end = 0;  // bytes that may not have left the process
};

// Bytes on their way from one process to another.
struct Queue {
  uint32_t writer = 0;  // handle; 0: any
  uint64_t written = 0, read = 0;
  std::deque<std::pair<uint64_t, Point>> writes;  // up to which byte
};
struct Channel {
  bool both_ways = false;  // a socketpair
  bool counter = false;    // an eventfd: a read takes all
  std::vector<Queue> queues;
  Points closes;
  // Who read what no write was seen to bring: the write ends later than the read.
  struct Wanted {
    uint32_t stream;
    uint32_t queue;
    uint64_t up_to;
  };
  std::vector<Wanted> wanted;
};

struct Futex {
  Point wake;
  uint64_t wake_end = 0;
  struct Waiter {
    uint32_t stream;
    uint64_t until;
  };
  std::vector<Waiter> early;  // woken by a wake that is seen later
};

// By number. What was used lately is found without hashing.
template <typename T>
class Table {
 public:
  T& operator[](uint32_t id) {
    Recent& r = recent_[id % std::size(recent_)];
    if (r.id != id || r.value == nullptr) r = {id, &all_[id]};
    return *r.value;
  }
  T* find(uint32_t id) {
    const Recent& r = recent_[id % std::size(recent_)];
    if (r.id == id && r.value != nullptr) return r.value;
    const auto at = all_.find(id);
    return at != all_.end() ? &at->second : nullptr;
  }
  void erase(uint32_t id) {
    recent_[id % std::size(recent_)] = {};
    all_.erase(id);
  }

 private:
  struct Recent {
    uint32_t id = 0;
    T* value = nullptr;
  };
  std::unordered_map<uint32_t, T> all_;  // whose elements stay where they are
  Recent recent_[64];
};

// Memory for what never ends is bounded by these; what is over is forgotten, oldest first.
constexpr size_t kMostQueued = 4096, kMostWanted = 64, kMostFutexes = size_t{1} << 16;
constexpr size_t kMostCalls = 1024;  // of a stream, for rule window

struct Edge {
  uint64_t number, after;
};

class Depend {
 public:
  Depend(const feign_host* host, const Options& options) : host_(host), options_(options) {
    names_.emplace_back();
  }
  feign_status start();
  feign_status process(const feign_window& in, feign_sink* out);

 private:
  struct Stream {
    bool begun = false;
    uint64_t may_begin = 0;   // id of the fork that it waits for in a replay
    uint64_t vfork = 0;       // id of its last one
    uint32_t vforked_by = 0;  // who goes on when this one has memory of its own
    uint64_t group = 0;       // its process
    int64_t thread = 0;
    std::vector<std::pair<Point, Rule>> owed;  // what its next activity must come after
    std::vector<std::pair<uint32_t, std::vector<uint64_t>>> aio;  // file, ranges under way
    std::deque<std::pair<uint64_t, uint64_t>> calls;              // end and id, for rule window
  };
  struct Process {
    std::vector<uint32_t> streams;
  };
  struct Wanted {
    Point p;
    const char* rule;
  };

  bool on(Rule rule) const { return (rules_ >> rule & 1) != 0; }
  feign_status fail(const std::string& text, feign_status code = FEIGN_ERR_ARGUMENT) {
    return host_->fail(host_, code, text.c_str());
  }
  feign_status read_edges();

  // ---- edges of the activity at hand
  void after(Point p, Rule rule) { after(p, kRuleNames[rule]); }
  void after(Point p, const char* rule);
  void after(const Points& points, Rule rule) {
    points.for_each([&](Point p) { after(p, rule); });
    if (points.anybody() != 0) [[unlikely]]
      for (const uint32_t s : clocks_.live())
        after({s, std::min(points.anybody(), clocks_.last(s))}, rule);
  }
  void use(Shared& s, Rule rule) {
    after(s.change, rule);
    s.uses.add(me_);
  }
  void change(Shared& s, Rule rule) {
    after(s.change, rule);
    after(s.uses, rule);
    s.change = me_;
    s.uses.clear();
  }
  void take_side(TwoSided& t, int side, Rule rule) {
    after(t.sides[1 - side], rule);
    t.sides[side].add(me_);
  }
  feign_status emit_edges(feign_activity& a);

  // ---- rules
  Effect effect_of(uint32_t op);
  Stream& stream_of(uint32_t number);
  void activity(feign_activity& a);
  void processes(const feign_activity& a, Effect effect);
  void handles(const feign_activity& a, Effect effect);
  void names(const feign_activity& a, Effect effect);
  void bytes(const feign_activity& a, Effect effect);
  void channels(const feign_activity& a, Effect effect);
  void futex(const feign_activity& a);
  void locks(const feign_activity& a, Effect effect);
  void window(const feign_activity& a);

  uint32_t name_of(uint32_t path);
  uint32_t barrier_above(uint32_t name);
  void in_use(uint32_t name);
  void use_name(uint32_t path);
  void change_name(uint32_t path, bool directory);
  void below(uint32_t name);
  TwoSided& entries(uint32_t name) {
    auto& e = names_[name].entries;
    if (!e) e = std::make_unique<TwoSided>();
    return *e;
  }
  void gone(uint64_t number);
  void all_of(uint64_t group, bool ended);
  bool reads(File& f, uint64_t begin, uint64_t length);
  void read(File& f, uint64_t begin, uint64_t asked, uint64_t got);
  void extend(File& f, uint64_t end);
  void write(File& f, uint64_t begin, uint64_t length, bool appends);
  void set_size(File& f, uint64_t size, uint64_t from);
  void sizes(File& f);
  void flushed(Handle& h);
  void sees_end(File& f);
  bool alone(File& f);
  void sent(Channel& c, uint32_t writer, uint64_t bytes);
  void received(Channel& c, uint32_t reader, uint64_t bytes);

  const feign_host* host_;
  Options options_;
  uint32_t rules_ = 0;
  // What calls do, of every layer, and the sign that records are the host's own: then the trace's
  // dependencies can be seen.
  const feign::Tables* tables_ = nullptr;

  feign_activity* a_ = nullptr;
  Point me_;
  uint64_t number_ = 0;
  std::vector<Wanted> wanted_;
  Clocks clocks_;
  struct Kind {
    bool known = false;
    Effect effect = Effect::kNone;
    bool buffered = false;  // what it writes leaves the process later
  };
  std::vector<Kind> effects_;  // by op
  std::vector<Stream> streams_;
  std::unordered_map<uint64_t, Process> processes_;
  std::map<std::tuple<uint32_t, int32_t, int64_t>, uint64_t> groups_;
  std::map<std::pair<uint64_t, int64_t>, uint32_t> threads_;  // by process and thread id
  std::vector<uint32_t> name_of_path_;                        // by string id
  std::vector<Name> names_;                                   // [0] is none
  uint32_t barriers_ = 1;  // grows whenever a name becomes a barrier, or is none any more
  Table<File> files_;
  Table<Handle> handles_;
  std::unordered_map<uint64_t, Channel> channels_;
  std::map<std::pair<uint64_t, uint64_t>, Futex> futexes_;
  std::unordered_map<uint64_t, Point> semaphores_;
  Point before_;  // the activity before this one, for rule trace
  std::vector<Edge> edges_;
  size_t next_edge_ = 0;
  std::unordered_map<uint64_t, Point> edge_ends_;
};

// ---- edges of the activity at hand
// ----------------------------------------------------------------

void Depend::after(Point p, const char* rule) {
  if (p.id == 0 || p.stream == me_.stream || p.id >= me_.id) return;
  if (options_.reduce && clocks_.known(me_.stream, p)) return;
  // One that begins later in a replay cannot be waited for.
  if (p.stream < streams_.size() && streams_[p.stream].may_begin >= me_.id) return;
  for (Wanted& w : wanted_)
    if (w.p.stream == p.stream && (options_.reduce || w.rule == rule)) {
      if (w.p.id < p.id) w = {p, rule};
      return;
    }
  wanted_.push_back({p, rule});
}

feign_status Depend::emit_edges(feign_activity& a) {
  // Latest first: an edge can follow from one to a later activity only.
  if (wanted_.size() > 1)
    std::sort(wanted_.begin(), wanted_.end(),
              [](const Wanted& x, const Wanted& y) { return x.p.id > y.p.id; });
  for (const Wanted& w : wanted_) {
    if (options_.reduce) {
      if (clocks_.known(me_.stream, w.p)) continue;
      clocks_.learn(me_, w.p);
    }
    if (const feign_status s = host_->depend(host_, &a, w.p.stream, w.p.id, w.rule); s < 0)
      return s;
  }
  wanted_.clear();
  return FEIGN_OK;
}

// ---- streams and processes
// ------------------------------------------------------------------------

Depend::Stream& Depend::stream_of(uint32_t number) {
  if (number >= streams_.size()) streams_.resize(number + size_t{1});
  Stream& s = streams_[number];
  if (s.begun) return s;
  s.begun = true;
  feign_stream_info info{};
  info.struct_size = sizeof info;
  if (host_->stream_info(host_, number, &info) < 0) return s;
  uint64_t& group = groups_[{info.host, info.rank, info.process}];
  if (group == 0) group = groups_.size();
  s.group = group;
  s.thread = info.thread;
  processes_[group].streams.push_back(number);
  threads_[{group, info.thread}] = number;
  if (info.parent != 0) {
    s.may_begin = info.parent_id;
    if (info.parent < streams_.size())
      s.may_begin = std::max(s.may_begin, streams_[info.parent].may_begin);
    if (info.parent < streams_.size() && streams_[info.parent].vfork == info.parent_id)
      s.vforked_by = info.parent;
    if (on(kProcess)) after({info.parent, info.parent_id}, kProcess);
  }
  return s;
}

// After the last activities of all of a process's streams.
void Depend::all_of(uint64_t group, bool ended) {
  const auto at = processes_.find(group);
  if (at == processes_.end()) return;
  for (const uint32_t s : at->second.streams) {
    if (s == me_.stream) continue;
    clocks_.ended(s);
    after({s, clocks_.last(s)}, kProcess);
  }
  const bool mine = std::find(at->second.streams.begin(), at->second.streams.end(), me_.stream) !=
                    at->second.streams.end();
  if (mine)
    at->second.streams.assign(1, me_.stream);
  else if (ended)
    processes_.erase(at);
}

void Depend::processes(const feign_activity& a, Effect effect) {
  const bool ok = a.result >= 0 && !(a.marks & FEIGN_NO_RESULT);
  Stream& s = streams_[a.stream];
  const auto release = [&] {  // a vfork ends when its child has memory of its own, or is gone
    if (s.vforked_by == 0) return;
    streams_[s.vforked_by].owed.push_back({me_, kProcess});
    s.vforked_by = 0;
  };
  switch (effect) {
    case Effect::kVfork:
      if (ok) s.vfork = a.id;
      return;
    case Effect::kClone:
      if (ok && (a.flags & CLONE_VFORK)) s.vfork = a.id;
      return;
    case Effect::kExec:
      if (!ok) return;
      all_of(s.group, false);
      return release();
    case Effect::kExit:
      clocks_.ended(a.stream);
      return release();
    case Effect::kExitGroup:
      if (const auto at = processes_.find(s.group); at != processes_.end())
        for (const uint32_t one : at->second.streams) clocks_.ended(one);
      return release();
    case Effect::kWait: {
      // waitid tells who it was beside its result.
      if (!ok) return;
      const int64_t pid = a.value_count > 0 ? static_cast<int64_t>(a.values[0]) : a.result;
      if (pid <= 0) return;
      feign_stream_info info{};
      info.struct_size = sizeof info;
      if (host_->stream_info(host_, a.stream, &info) < 0) return;
      const auto group = groups_.find({info.host, info.rank, pid});
      if (group != groups_.end() && group->second != s.group) all_of(group->second, true);
      return;
    }
    default:
      return;
  }
}

// ---- handles
// --------------------------------------------------------------------------------------

// A handle's last descriptor went.
void Depend::gone(uint64_t number) {
  const auto id = static_cast<uint32_t>(number);
  Handle* const h = handles_.find(id);
  if (h == nullptr) return;
  if (on(kHandle)) change(h->access, kHandle);
  if (on(kFile)) flushed(*h);
  if (File* const f = files_.find(h->file); f != nullptr) {
    if (h->locked && f->locks && on(kChannel))
      f->locks->write(0, UINT64_MAX, me_, [&](const Points& p) { after(p, kChannel); });
    if (f->open != 0 && --f->open == 0) f->bytes.shrink(8);
    if (f->ended()) files_.erase(h->file);
  }
  handles_.erase(id);
}

void Depend::handles(const feign_activity& a, Effect effect) {
  switch (effect) {
    case Effect::kExec:
    case Effect::kExit:
    case Effect::kExitGroup:
    case Effect::kCloseRange:
    case Effect::kUnmap:
      if (a.handle != 0 && on(kHandle)) use(handles_[a.handle].access, kHandle);
      for (uint32_t i = 0; i < a.value_count; ++i) gone(a.values[i]);
      return;
    default:
      break;
  }
  if (a.marks & FEIGN_NOT_A_FILE) return;
  const bool ok = a.result >= 0 && !(a.marks & FEIGN_NO_RESULT);
  const auto at_own_offset = [&](uint32_t i) {
    return a.value_count <= i || a.values[i] == FEIGN_NO_OFFSET;
  };
  bool moves = false, moves2 = false;  // the handle's offset
  switch (effect) {
    case Effect::kOpen:
    case Effect::kCreat:
    case Effect::kFopen:
    case Effect::kFreopen:
    case Effect::kTmpfile: {
      if (!ok || a.handle == 0) return;
      Handle& h = handles_[a.handle];
      h.file = a.file;
      h.access.change = me_;
      if (a.file != 0) ++files_[a.file].open;
      if (effect == Effect::kFreopen && a.handle2 != 0) break;
      return;
    }
    case Effect::kClose:
      if (a.handle == 0) return;
      if (a.marks & FEIGN_LAST) return gone(a.handle);
      break;
    case Effect::kRead:
    case Effect::kWrite:
    case Effect::kSeek:
    case Effect::kFseek:
    case Effect::kFtell:
    case Effect::kList:
      moves = true;
      break;
    case Effect::kPread2:
    case Effect::kPwrite2:
      moves = a.mode != 0;
      break;
    case Effect::kFcntl:
      moves = a.flags == F_SETFL;
      break;
    case Effect::kCopy:
      moves = at_own_offset(0);
      moves2 = at_own_offset(1);
      break;
    case Effect::kMap:
      if (ok && a.handle2 != 0) {
        Handle& mapping = handles_[a.handle2];
        mapping.file = a.file;
        mapping.access.change = me_;
        if (a.file != 0) ++files_[a.file].open;
      }
      break;
    default:
      break;
  }
  if (a.handle != 0) {
    Handle& h = handles_[a.handle];
    if (h.file == 0 && effect != Effect::kCopy) h.file = a.file;
    if (on(kHandle)) moves ? change(h.access, kHandle) : use(h.access, kHandle);
  }
  if (a.handle2 != 0 && effect != Effect::kMap) {
    const bool replaces = effect == Effect::kDup2 || effect == Effect::kFreopen;
    if (replaces && (a.marks & FEIGN_LAST)) return gone(a.handle2);
    if (on(kHandle)) {
      Handle& h = handles_[a.handle2];
      moves2 ? change(h.access, kHandle) : use(h.access, kHandle);
    }
  }
}

// ---- names
// ----------------------------------------------------------------------------------------

uint32_t Depend::name_of(uint32_t path) {
  if (path < name_of_path_.size() && name_of_path_[path] != 0) return name_of_path_[path];
  size_t length = 0;
  const char* text = host_->text(host_, path, &length);
  uint32_t parent = 0;
  if (length > 1) {
    const std::string_view all(text, length);
    const size_t slash = all.rfind('/');
    const std::string above(slash == 0 || slash == all.npos ? "/" : all.substr(0, slash));
    if (const uint32_t id = host_->intern(host_, above.data(), above.size()); id != path && id != 0)
      parent = name_of(id);
  }
  if (path >= name_of_path_.size())
    name_of_path_.resize(std::max<size_t>(path + size_t{1}, name_of_path_.size() * 3 / 2));
  names_.emplace_back();
  names_.back().parent = parent;
  return name_of_path_[path] = static_cast<uint32_t>(names_.size() - 1);
}

uint32_t Depend::barrier_above(uint32_t name) {
  Name& n = names_[name];
  if (n.above_valid == barriers_ || n.parent == 0) return n.above;
  n.above = names_[n.parent].barrier ? n.parent : barrier_above(n.parent);
  n.above_valid = barriers_;
  return n.above;
}

void Depend::in_use(uint32_t name) {
  while (name != 0 && !names_[name].in_use) {
    Name& n = names_[name];
    n.in_use = true;
    if (n.parent == 0) return;
    n.next_sibling = names_[n.parent].first_child;
    names_[n.parent].first_child = name;
    name = n.parent;
  }
}

void Depend::use_name(uint32_t path) {
  const uint32_t name = name_of(path);
  in_use(name);
  use(names_[name].access, kPath);
  if (const uint32_t above = barrier_above(name); above != 0)
    after(names_[above].access.change, kPath);
}

// What was at or below a name comes before it changes; then nothing below has to be remembered:
// whoever comes there comes by the changed name.
void Depend::below(uint32_t name) {
  uint32_t child = std::exchange(names_[name].first_child, 0);
  while (child != 0) {
    below(child);
    Name& n = names_[child];
    after(n.access.change, kPath);
    after(n.access.uses, kPath);
    if (n.entries)
      for (const Points& side : n.entries->sides) after(side, kPath);
    n.access = {};
    n.entries.reset();
    n.in_use = false;
    if (n.barrier) {
      n.barrier = false;
      ++barriers_;
    }
    child = std::exchange(n.next_sibling, 0);
  }
}

void Depend::change_name(uint32_t path, bool directory) {
  const uint32_t name = name_of(path);
  in_use(name);
  change(names_[name].access, kPath);
  if (const uint32_t above = barrier_above(name); above != 0)
    after(names_[above].access.change, kPath);
  if (const uint32_t parent = names_[name].parent; parent != 0)
    take_side(entries(parent), 0, kPath);
  if (!directory && names_[name].first_child == 0) return;
  below(name);
  if (auto& entries = names_[name].entries; entries) {
    for (const Points& side : entries->sides) after(side, kPath);
    entries.reset();
  }
  if (!names_[name].barrier) {
    names_[name].barrier = true;
    ++barriers_;
  }
}

void Depend::names(const feign_activity& a, Effect effect) {
  const bool ok = a.result >= 0 && !(a.marks & FEIGN_NO_RESULT);
  const bool as_directory = (a.marks & (FEIGN_DIRECTORY | FEIGN_SYMLINK)) != 0;
  const auto identity = [&](bool changes) {
    if (a.file == 0) return;
    Shared& s = files_[a.file].identity;
    changes ? change(s, kPath) : use(s, kPath);
  };
  const auto named = [&] {
    if (a.file == 0) return;
    File& f = files_[a.file];
    f.made = true;
    ++f.names;
  };
  switch (effect) {
    case Effect::kOpen:
    case Effect::kCreat:
    case Effect::kFopen:
    case Effect::kFreopen:
    case Effect::kTmpfile:
      if (a.path == 0) return;
      if (ok && (a.marks & FEIGN_CREATES)) {
        change_name(a.path, false);
        named();
        return identity(true);
      }
      break;
    case Effect::kUnlink:
    case Effect::kUnlinkat:
    case Effect::kRmdir: {
      if (a.path == 0) return;
      const bool rmdir =
          effect == Effect::kRmdir || (effect == Effect::kUnlinkat && (a.flags & AT_REMOVEDIR));
      if (rmdir) take_side(entries(name_of(a.path)), 1, kPath);
      if (!ok) break;
      change_name(a.path, rmdir || as_directory);
      identity(true);
      if (File* const f = files_.find(a.file); f != nullptr) {
        f->names -= f->names != 0;
        if (f->ended()) files_.erase(a.file);
      }
      return;
    }
    case Effect::kMkdir:
    case Effect::kMknod:
    case Effect::kBind:
    case Effect::kSymlink:
      if (a.path == 0) return;
      if (!ok) break;
      change_name(a.path, effect == Effect::kMkdir || effect == Effect::kSymlink);
      named();
      return identity(true);
    case Effect::kRename:
      if (a.path == 0 || a.path2 == 0) return;
      if (ok) {
        const bool directory = as_directory || (a.flags & RENAME_EXCHANGE) != 0;
        if (directory) take_side(entries(name_of(a.path2)), 1, kPath);
        change_name(a.path, directory);
        change_name(a.path2, directory);
        return identity(true);
      }
      take_side(entries(name_of(a.path2)), 1, kPath);  // ENOTEMPTY
      use_name(a.path2);
      break;
    case Effect::kLink:
      if (a.path2 != 0) ok ? change_name(a.path2, false) : use_name(a.path2);
      if (ok && a.file != 0) ++files_[a.file].names;
      break;
    case Effect::kChmod:  // what may be done with it and below it
      if (!ok) break;
      if (a.path != 0 && (a.marks & FEIGN_DIRECTORY))
        change_name(a.path, true);
      else if (a.path != 0 && a.handle == 0)
        use_name(a.path);
      return identity(true);
    case Effect::kSetXattr:
    case Effect::kRemoveXattr:
      if (!ok) break;
      if (a.path != 0 && a.handle == 0) use_name(a.path);
      return identity(true);
    case Effect::kGetXattr:
      if (a.handle != 0) return identity(false);
      break;
    case Effect::kList:
      if (a.path != 0) take_side(entries(name_of(a.path)), 1, kPath);
      return;
    case Effect::kStat:
    case Effect::kStatat:
    case Effect::kAccess:
    case Effect::kReadlink:
    case Effect::kAttr:
    case Effect::kTruncate:
      break;
    default:
      return;
  }
  if (a.path == 0 || (a.handle != 0 && !feign::opens(effect))) return;
  use_name(a.path);
  if (ok) identity(false);
}

// ---- bytes
// ----------------------------------------------------------------------------------------

// Whether no other stream was at the file's bytes so far.
bool Depend::alone(File& f) {
  if (f.several) return false;
  if (f.only == 0) f.only = me_.stream;
  if (f.only == me_.stream) return true;
  f.several = true;
  return false;
}

void Depend::sees_end(File& f) {
  after(f.set, kFile);
  after(f.extends, kFile);
  f.ends.add(me_);
}

// Whether all of the bytes are known to have been written by the trace.
bool Depend::reads(File& f, uint64_t begin, uint64_t length) {
  const uint64_t end = length > UINT64_MAX - begin ? UINT64_MAX : begin + length;
  if (!alone(f)) return f.bytes.read(begin, end, me_, [&](const Points& p) { after(p, kFile); });
  f.bytes.note(begin, end, me_, false);
  return false;
}

void Depend::read(File& f, uint64_t begin, uint64_t asked, uint64_t got) {
  const bool written = reads(f, begin, asked);
  if (!f.size_changed) f.there = std::max(f.there, begin + got);
  // It came to the end of the file, or to bytes that are there since somebody wrote behind them.
  if (got < asked || (!written && begin + got > f.there)) sees_end(f);
}

void Depend::write(File& f, uint64_t begin, uint64_t length, bool appends) {
  const uint64_t end = length > UINT64_MAX - begin ? UINT64_MAX : begin + length;
  if (alone(f))
    f.bytes.note(begin, end, me_, true);
  else
    f.bytes.write(begin, end, me_, [&](const Points& p) { after(p, kFile); });
  if (appends) {  // where, is up to those before it
    sizes(f);
    f.size = std::max(f.size, end);
  } else {
    extend(f, end);
  }
}

// Writers that extend a file do each other no harm.
void Depend::extend(File& f, uint64_t end) {
  if (end <= (f.size_known ? f.size : f.there)) return;
  after(f.set, kFile);
  after(f.ends, kFile);
  f.extends.add(me_);
  f.size = std::max(f.size, end);
  f.size_changed = true;
}

// A call that sets the size, or goes by it and changes it.
void Depend::sizes(File& f) {
  after(f.set, kFile);
  after(f.extends, kFile);
  after(f.ends, kFile);
  f.set = me_;
  f.extends.clear();
  f.ends.clear();
  f.size_changed = true;
}

// Bytes from `from` on are others after it.
void Depend::set_size(File& f, uint64_t size, uint64_t from) {
  sizes(f);
  if (alone(f))
    f.bytes.note(from, UINT64_MAX, me_, true);
  else
    f.bytes.write(from, UINT64_MAX, me_, [&](const Points& p) { after(p, kFile); });
  f.size = size;
  f.size_known = true;
  f.there = std::min(f.there, size);
}

// What libc wrote into memory is in the file now, at the latest.
void Depend::flushed(Handle& h) {
  if (h.buffered_end == 0 || h.file == 0) return;
  write(files_[h.file], h.buffered, h.buffered_end - h.buffered, false);
  h.buffered = UINT64_MAX;
  h.buffered_end = 0;
}

void Depend::bytes(const feign_activity& a, Effect effect) {
  if (a.file == 0 || a.result < 0 || (a.marks & (FEIGN_NO_RESULT | FEIGN_NOT_A_FILE))) return;
  const auto done = static_cast<uint64_t>(a.result);
  const auto file = [&]() -> File& { return files_[a.file]; };
  const bool appends = (a.marks & FEIGN_APPENDS) != 0;
  if (effects_[a.op].buffered && a.handle != 0) {
    if (Handle* const h = handles_.find(a.handle); h != nullptr) {
      if (effect != Effect::kWrite) {
        flushed(*h);
      } else {
        h->buffered = std::min(h->buffered, a.offset);
        h->buffered_end = std::max(h->buffered_end, a.offset + done);
      }
    }
  }
  switch (effect) {
    case Effect::kOpen:
    case Effect::kCreat:
    case Effect::kFopen:
    case Effect::kFreopen:
    case Effect::kTmpfile: {
      File& f = file();
      if (a.marks & FEIGN_CREATES) {
        f.size_known = f.size_changed = true;
        f.size = f.there = 0;
      } else if ((a.flags & O_TRUNC) && (a.flags & O_ACCMODE) != O_RDONLY) {
        set_size(f, 0, 0);
      }
      return;
    }
    case Effect::kRead:
    case Effect::kPread:
    case Effect::kPread2:
      return read(file(), a.offset, a.length, done);
    case Effect::kMap:
      (void)reads(file(), a.offset, a.length);
      return;
    case Effect::kWrite:
    case Effect::kPwrite:
    case Effect::kPwrite2:
      if (done != 0) write(file(), a.offset, done, appends);
      return;
    case Effect::kCopy: {
      if (a.handle != 0) read(file(), a.offset, a.length, done);
      if (a.handle2 == 0 || a.value_count < 4 || a.values[2] == 0 || done == 0) return;
      return write(files_[static_cast<uint32_t>(a.values[2])], a.values[3], done, appends);
    }
    case Effect::kIoctl:  // FICLONE
      if (const Handle* const from = handles_.find(a.handle2); from != nullptr && from->file != 0)
        read(files_[from->file], 0, UINT64_MAX, UINT64_MAX);
      return set_size(file(), file().size, 0);
    case Effect::kTruncate:
    case Effect::kFtruncate: {
      File& f = file();
      return set_size(f, a.length, std::min(a.length, f.size_known ? f.size : f.there));
    }
    case Effect::kFallocate: {
      constexpr uint32_t kMoves = FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_INSERT_RANGE;
      File& f = file();
      if (a.flags & kMoves) return set_size(f, std::max(f.size, a.offset + a.length), a.offset);
      if (a.flags & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE))
        return write(f, a.offset, a.length, false);
      if (!(a.flags & FALLOC_FL_KEEP_SIZE)) extend(f, a.offset + a.length);
      return;
    }
    case Effect::kSeek:
    case Effect::kFseek:
    case Effect::kFtell:
      if (appends || a.flags == SEEK_END || a.flags == SEEK_DATA || a.flags == SEEK_HOLE)
        sees_end(file());
      return;
    case Effect::kFstat:
    case Effect::kStat:
    case Effect::kStatat:
      if (S_ISREG(a.mode)) {
        File& f = file();
        if (!f.size_changed) f.there = std::max(f.there, a.length);
        if (!f.size_known) f.size = std::max(f.size, a.length);
        f.size_known = true;
      }
      return;
    case Effect::kFlush:
      if (File& f = file(); !alone(f)) f.bytes.writes([&](const Points& p) { after(p, kFile); });
      return;
    case Effect::kAio: {
      File& f = file();
      if (done == 0) return;
      if (a.flags == 0 || a.flags == 7) read(f, a.offset, a.length, a.length);
      if (a.flags != 1 && a.flags != 8) return;
      write(f, a.offset, a.length, appends);
      // It is there when the process was told so.
      auto& under_way = streams_[a.stream].aio;
      if (under_way.size() < kMostQueued) under_way.push_back({a.file, {a.offset, a.length}});
      return;
    }
    default:
      return;
  }
}

// ---- locks
// ----------------------------------------------------------------------------------------

void Depend::locks(const feign_activity& a, Effect effect) {
  if (a.file == 0 || a.handle == 0 || (a.marks & FEIGN_NOT_A_FILE)) return;
  bool exclusive, releases;
  uint64_t begin = 0, end = UINT64_MAX;
  if (effect == Effect::kFcntl) {
    if (a.flags != F_SETLK && a.flags != F_SETLKW && a.flags != F_OFD_SETLK &&
        a.flags != F_OFD_SETLKW && a.flags != F_GETLK && a.flags != F_OFD_GETLK)
      return;
    const auto value = [&](uint32_t i) { return i < a.value_count ? a.values[i] : 0; };
    const bool asks = a.flags == F_GETLK || a.flags == F_OFD_GETLK;
    exclusive = !asks && value(1) == F_WRLCK;
    releases = !asks && value(1) == F_UNLCK;
    if (value(2) == SEEK_SET && static_cast<int64_t>(value(3)) >= 0 &&
        static_cast<int64_t>(value(4)) >= 0) {
      begin = value(3);
      end = value(4) == 0 ? UINT64_MAX : begin + value(4);
    }
  } else {
    exclusive = (a.flags & LOCK_EX) != 0;
    releases = (a.flags & LOCK_UN) != 0;
  }
  File& f = files_[a.file];
  if (!f.locks) f.locks = std::make_unique<Ranges>();
  handles_[a.handle].locked = true;
  const auto come_after = [&](const Points& p) { after(p, kChannel); };
  const bool got = a.result >= 0;
  // Giving up what others may hold, too, is no change for them.
  if (got && (exclusive || (releases && f.locks->written_by(begin, end, a.stream))))
    f.locks->write(begin, end, me_, come_after);
  else
    f.locks->read(begin, end, me_, come_after);
}

// ---- channels
// -------------------------------------------------------------------------------------

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
    case Effect::kSocketpair:
      if (a.file != 0) channels_[a.file].both_ways = true;
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
    c = &channels_[a.file];
  } else if (const auto at = channels_.find(kByHandle | a.handle); at != channels_.end()) {
    c = &at->second;
  } else {
    return;
  }
  const auto bytes = static_cast<uint64_t>(std::max<int64_t>(a.result, 0));
  switch (effect) {
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
      c->closes.add(me_);
      if (a.file == 0) channels_.erase(kByHandle | a.handle);
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

// ---- time
// -----------------------------------------------------------------------------------------

void Depend::window(const feign_activity& a) {
  for (const uint32_t other : clocks_.live()) {
    if (other == a.stream) continue;
    const auto& calls = streams_[other].calls;
    // Of a stream, calls end in the order of their ids.
    const auto late = std::upper_bound(
        calls.begin(), calls.end(), a.start_ns,
        [&](uint64_t start, const auto& call) { return start < call.first + options_.window; });
    if (late != calls.begin()) after({other, std::prev(late)->second}, kWindow);
  }
  auto& own = streams_[a.stream].calls;
  const uint64_t end = a.start_ns + a.duration_ns;
  own.emplace_back(own.empty() ? end : std::max(end, own.back().first), a.id);
  if (own.size() > kMostCalls) own.pop_front();
}

// ---- all together
// ---------------------------------------------------------------------------------

Effect Depend::effect_of(uint32_t op) {
  if (op >= effects_.size()) effects_.resize(op + size_t{1});
  Kind& kind = effects_[op];
  if (!kind.known) {
    kind.known = true;
    const feign_op_info* info = host_->op_info(host_, op);
    if (info != nullptr && tables_ != nullptr)
      if (const feign::Call* call = tables_->ops.call(op); call != nullptr) {
        kind.effect = call->effect;
        kind.buffered = strcmp(info->layer, "stdio") == 0;
      }
  }
  return kind.effect;
}

void Depend::activity(feign_activity& a) {
  const Effect effect = effect_of(a.op);
  me_ = {a.stream, a.id};
  clocks_.begin(me_);
  Stream& s = stream_of(a.stream);
  for (const auto& [p, rule] : s.owed) after(p, rule);
  s.owed.clear();
  if (a.marks & FEIGN_DEPENDS) {
    auto& depends = feign::Record::of(&a)->depends;
    for (const feign::Dependency& d : depends) {
      const char* rule = d.rule != 0 ? host_->text(host_, d.rule, nullptr) : kRuleNames[kRecorded];
      if (on(kRecorded)) after({d.stream, d.id}, rule);
    }
    depends.clear();
    a.marks &= ~uint32_t{FEIGN_DEPENDS};
  }
  if (on(kProcess)) processes(a, effect);
  if (on(kHandle) || on(kFile) || on(kChannel)) handles(a, effect);
  const bool on_file = !(a.marks & FEIGN_NOT_A_FILE) || a.path != 0;
  if (on(kPath) && on_file) names(a, effect);
  if (on(kFile)) {
    bytes(a, effect);
    if (effect == Effect::kAioWait) {
      auto done = std::move(streams_[a.stream].aio);
      streams_[a.stream].aio.clear();
      for (const auto& [file, range] : done) write(files_[file], range[0], range[1], false);
    }
  }
  if (on(kChannel)) channels(a, effect);
  if (on(kTrace)) {
    after(before_, kTrace);
    before_ = me_;
  }
  if (on(kWindow)) window(a);
  if (on(kExplicit)) {
    for (; next_edge_ < edges_.size() && edges_[next_edge_].number == number_; ++next_edge_)
      after(edge_ends_[edges_[next_edge_].after], kExplicit);
    if (const auto at = edge_ends_.find(number_); at != edge_ends_.end()) at->second = me_;
  }
  ++number_;
}

feign_status Depend::process(const feign_window& in, feign_sink* out) {
  for (size_t i = 0; i < in.due; ++i) {
    feign_activity* a = in.items[i];
    activity(*a);
    if (const feign_status s = emit_edges(*a); s < 0) return s;
    if (const feign_status s = out->emit(out, a); s < 0) return s;
  }
  if (in.at_end && in.due == 0 && next_edge_ < edges_.size())
    return fail(std::string(options_.edges) + ": activity " +
                std::to_string(edges_[next_edge_].number) + " is not in the trace, which has " +
                std::to_string(number_));
  return FEIGN_OK;
}

// ---- options
// --------------------------------------------------------------------------------------

feign_status Depend::read_edges() {
  auto input = feign::Input::open(options_.edges);
  if (!input) return fail(input.error().text());
  feign::Lines lines(std::move(*input));
  std::string_view line;
  while (true) {
    auto more = lines.next(line);
    if (!more) return fail(more.error().text());
    if (!*more) break;
    if (const size_t comment = line.find('#'); comment != line.npos) line = line.substr(0, comment);
    std::vector<std::string_view> words;
    for (size_t i = 0; i < line.size();) {
      const size_t start = line.find_first_not_of(" \t\r", i);
      if (start == line.npos) break;
      i = std::min(line.find_first_of(" \t\r", start), line.size());
      words.push_back(line.substr(start, i - start));
    }
    if (words.empty()) continue;
    const std::string where =
        std::string(options_.edges) + ":" + std::to_string(lines.number()) + ": ";
    Edge e{};
    const auto number = [](std::string_view word, uint64_t& to) {
      const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), to);
      return error == std::errc{} && end == word.data() + word.size();
    };
    if (words.size() != 3 || words[1] != "after" || !number(words[0], e.number) ||
        !number(words[2], e.after))
      return fail(where + "\"" + std::string(line.substr(0, 60)) +
                  "\": want NUMBER after NUMBER, such as 17 after 5");
    if (e.after >= e.number)
      return fail(where + "activity " + std::to_string(e.number) + " after activity " +
                  std::to_string(e.after) +
                  ", which does not come before it: they would wait for each other for ever");
    edges_.push_back(e);
    edge_ends_[e.after] = {};
  }
  std::stable_sort(edges_.begin(), edges_.end(),
                   [](const Edge& x, const Edge& y) { return x.number < y.number; });
  return FEIGN_OK;
}

feign_status Depend::start() {
  tables_ = static_cast<const feign::Tables*>(host_->extension(host_, "feign.tables/1"));
  if (tables_ == nullptr)
    return fail("this host does not say what calls do (extension feign.tables/1)",
                FEIGN_ERR_UNSUPPORTED);
  const std::string_view all = options_.rules;
  for (size_t i = 0; all != "none" && i <= all.size();) {
    const size_t end = std::min(all.find('+', i), all.size());
    const std::string_view one = all.substr(i, end - i);
    const auto* at = std::find(std::begin(kRuleNames), std::end(kRuleNames), one);
    if (at == std::end(kRuleNames))
      return fail("rules=" + std::string(all) + ": no rule \"" + std::string(one) +
                  "\": want handle, path, file, process, channel, recorded, window, explicit, "
                  "trace, with + between, or none");
    rules_ |= 1u << (at - kRuleNames);
    i = end + 1;
  }
  if (options_.window != 0) rules_ |= 1u << kWindow;
  if (options_.edges[0] != '\0') rules_ |= 1u << kExplicit;
  if (on(kWindow) && options_.window == 0)
    return fail("rules=" + std::string(all) + ": rule window wants window=DURATION");
  if (on(kExplicit) && options_.edges[0] == '\0')
    return fail("rules=" + std::string(all) + ": rule explicit wants edges=FILE");
  return on(kExplicit) ? read_edges() : FEIGN_OK;
}

feign_status create(const feign_host* host, const void* options, void** self) noexcept {
  try {
    auto d = std::make_unique<Depend>(host, *static_cast<const Options*>(options));
    if (const feign_status s = d->start(); s < 0) return s;
    *self = d.release();
    return FEIGN_OK;
  } catch (const std::exception&) {
    return host->fail(host, FEIGN_ERR_NOMEM, "out of memory");
  }
}

feign_status process(void* self, const feign_window* in, feign_sink* out) noexcept {
  try {
    return static_cast<Depend*>(self)->process(*in, out);
  } catch (const std::exception&) {
    return FEIGN_ERR_NOMEM;
  }
}

void destroy(void* self) noexcept { delete static_cast<Depend*>(self); }

constexpr feign_modifier kApi = {sizeof kApi, 0, create, process, destroy, nullptr};
constexpr feign_component kComponent = {sizeof kComponent,
                                        FEIGN_MODIFIER,
                                        "depend",
                                        "Inserts dependencies, so that streams can run side by "
                                        "side and nothing overtakes what it needs.",
                                        &kApi,
                                        kOptions,
                                        std::size(kOptions),
                                        sizeof(feign_option),
                                        sizeof(Options),
                                        0};
constexpr const feign_component* kComponents[] = {&kComponent, nullptr};

}  // namespace

extern "C" const feign_plugin feign_plugin_v1 = {
    sizeof(feign_plugin), FEIGN_ABI_MINOR, "depend", FEIGN_VERSION, "MIT", kComponents};
