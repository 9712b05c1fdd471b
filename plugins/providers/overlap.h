// SPDX-License-Identifier: MIT
// Of calls that overlap, the one that ended first need not have taken effect first. Where the
// results tell, they count: who finds a name made was after whoever made it, who does not was
// before, who found the end of a file or a pipe read after those who got something, and who was
// refused a lock asked while somebody had it.
#pragma once

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/file.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/path.h"
#include "feign.h"
#include "resolve/effects.h"

namespace feign {

enum class There : uint8_t { kUnknown, kNo, kYes };

// What a call's result says of one name: whether it was there before and is there after the call.
struct Claim {
  uint32_t name = 0;  // none
  There before = There::kUnknown, after = There::kUnknown;
  There was = There::kUnknown;  // by what the calls before it said
  uint32_t text = 0;            // the name as it was given, if that is another one (Names::below)
  bool same(const Claim& other) const {
    if (name == 0 || other.name == 0) return false;
    // Whose directory is not known may be in the other's.
    return name == other.name || text == other.name || other.text == name;
  }
};
using Claims = std::array<Claim, 2>;

// Stands for what is read through a descriptor, among names: bytes are there or not.
inline uint32_t stream_name(uint32_t file, uint32_t handle) {
  return UINT32_C(1) << 31 | (file != 0 ? file : UINT32_C(1) << 30 | handle);
}

inline Claims claims(Effect effect, const feign_activity& a) {
  using enum There;
  const bool ok = a.result >= 0;
  const bool exists = a.result == -EEXIST || a.result == -EADDRINUSE;
  if ((a.marks & FEIGN_NO_RESULT) != 0) return {};
  if (effect == Effect::kRead && ok && a.length != 0) {
    const uint32_t name = stream_name(a.file, a.handle);
    return {{{name, a.result != 0 ? kYes : kNo, a.result != 0 ? kUnknown : kNo}, {}}};
  }
  if (a.path == 0 || (!ok && !exists && a.result != -ENOENT)) return {};
  const Claim there = {a.path, kYes, kYes}, gone = {a.path, kYes, kNo},
              missing = {a.path, kNo, kNo}, made = {a.path, kNo, kYes};
  switch (effect) {
    case Effect::kOpen:
      if ((a.flags & O_TMPFILE) == O_TMPFILE) return {};
      if (!ok || (a.flags & O_CREAT) == 0) break;
      return {{(a.flags & O_EXCL) != 0 ? made : Claim{a.path, kUnknown, kYes}, {}}};
    case Effect::kCreat:
      if (!ok) break;
      return {{{a.path, kUnknown, kYes}, {}}};
    case Effect::kMkdir:
    case Effect::kMknod:
    case Effect::kBind:
    case Effect::kSymlink:
      if (!ok) break;
      return {{made, {}}};
    case Effect::kUnlink:
    case Effect::kUnlinkat:
    case Effect::kRmdir:
      if (!ok) break;
      return {{gone, {}}};
    case Effect::kRename: {
      const bool exchange = (a.flags & RENAME_EXCHANGE) != 0;
      const There before = exchange ? kYes : (a.flags & RENAME_NOREPLACE) != 0 ? kNo : kUnknown;
      if (ok && a.path != a.path2) return {{exchange ? there : gone, {a.path2, before, kYes}}};
      if (!exists) break;
      return {{{a.path2, kYes, kYes}, {}}};
    }
    case Effect::kLink:
      if (ok) return {{there, {a.path2, kNo, kYes}}};
      if (!exists) break;
      return {{{a.path2, kYes, kYes}, {}}};
    case Effect::kStat:
    case Effect::kStatat:
    case Effect::kAccess:
    case Effect::kReadlink:
    case Effect::kChmod:
    case Effect::kAttr:
    case Effect::kGetXattr:
    case Effect::kSetXattr:
    case Effect::kRemoveXattr:
    case Effect::kChdir:
    case Effect::kChroot:
    case Effect::kTruncate:
    case Effect::kExec:
      break;
    default:
      return {};
  }
  return {{ok || exists ? there : missing, {}}};
}

// Which names are there, by what calls say, in the order in which they are met.
class Names {
 public:
  void look_up(Claims& claims) const {
    for (Claim& c : claims)
      if (c.name < there_.size()) c.was = there_[c.name];
  }
  // Relative names are those below the directory that the process is in (0: it is not known).
  void below(uint32_t cwd, Claims& claims, const feign_activity& a, const feign_host* host) {
    for (Claim& c : claims) {
      const uint32_t handle = c.name == a.path ? a.handle : a.handle2;
      if (cwd == 0 || c.name == 0 || c.name >> 31 != 0 || (handle != 0 && handle != FEIGN_CWD))
        continue;
      c.text = c.name;
      if (const uint32_t name = whole(cwd, c.name, host); name != 0) c.name = name;
    }
  }
  // Where the process is after that call.
  uint32_t moves(uint32_t cwd, Effect effect, const feign_activity& a, const feign_host* host) {
    if (a.result < 0) return cwd;
    if (effect == Effect::kFchdir || effect == Effect::kChroot) return 0;
    return effect == Effect::kChdir ? whole(cwd, a.path, host) : cwd;
  }
  // Not of names below directories that are given as descriptors, nor of relative ones once
  // somebody has moved to another directory: those are names in many places.
  void note(Effect effect, const Claims& claims, const feign_activity& a, const feign_host* host) {
    if (!moved_ && a.result >= 0 &&
        (effect == Effect::kChdir || effect == Effect::kFchdir || effect == Effect::kChroot)) {
      moved_ = true;
      there_.clear();
    }
    if ((a.handle != 0 && a.handle != FEIGN_CWD) || (a.handle2 != 0 && a.handle2 != FEIGN_CWD))
      return;
    for (const Claim& c : claims) {
      if (c.name == 0 || c.name >> 31 != 0) continue;
      if (moved_ && host->text(host, c.name, nullptr)[0] != '/') continue;
      if (c.name >= there_.size()) there_.resize(c.name + c.name / 2 + size_t{64});
      there_[c.name] = c.after;
    }
  }

  // The name from "/" on; 0: that is not known.
  uint32_t whole(uint32_t cwd, uint32_t name, const feign_host* host) {
    size_t length = 0;
    const char* const text = name != 0 ? host->text(host, name, &length) : "";
    if (text[0] == '/' || cwd == 0) return text[0] == '/' ? name : 0;
    uint32_t& known = whole_[uint64_t{cwd} << 32 | name];
    if (known == 0) {
      std::string path = host->text(host, cwd, nullptr);
      constexpr size_t kLongest = size_t{16} << 10;  // no path is
      if (path.size() + length > kLongest) return 0;
      path = clean_path(path.append(1, '/').append(text, length));
      known = host->intern(host, path.data(), path.size());
    }
    return known;
  }

 private:
  std::vector<There> there_;                      // by name
  std::unordered_map<uint64_t, uint32_t> whole_;  // by directory and name
  bool moved_ = false;
};

// Whether `late`, which began before `early` had ended and ended after it, took effect before it:
// only so do both fit what they say.
inline bool took_effect_first(const Claims& late, const Claims& early) {
  const auto fits = [](There is, There wanted) {
    return is == There::kUnknown || wanted == There::kUnknown || is == wanted;
  };
  for (const Claim& e : early)
    for (const Claim& l : late) {
      if (!e.same(l)) continue;
      const bool as_ended = fits(e.was, e.before) && fits(e.after, l.before);
      if (!as_ended && fits(e.was, l.before) && fits(l.after, e.before)) return true;
    }
  return false;
}

// ---- locks -------------------------------------------------------------------------------------

// What a call does to a lock, or was refused.
struct Lock {
  enum What : uint8_t { kNone, kGot, kRefused, kGivenUp, kClosed };
  What what = kNone;
  bool record = false;     // fcntl's; else flock's
  bool exclusive = false;  // what was asked for
  uint32_t file = 0;
  uint64_t owner = 0;  // of flock's the descriptor, of fcntl's the process
  uint64_t begin = 0, end = UINT64_MAX;
};
// Stands for a file's locks, among names (another number than stream_name's).
inline uint32_t lock_name(uint32_t file) { return UINT32_C(5) << 29 | file; }

// Of locks by whole files or from the beginning of the file, and of closes; of files that are
// known.
inline Lock lock_of(Effect effect, const feign_activity& a, const std::vector<uint64_t>& values,
                    uint64_t process) {
  Lock l;
  if (a.file == 0 || (a.marks & FEIGN_NO_RESULT) != 0) return l;
  const bool refused = a.result == -EAGAIN || a.result == -EACCES;
  l.file = a.file;
  l.owner = process << 20 | (a.handle & 0xFFFFF);
  if (effect == Effect::kClose) {
    l.what = Lock::kClosed;
  } else if (effect == Effect::kFlock) {
    l.exclusive = (a.flags & LOCK_EX) != 0;
    l.what = refused                    ? Lock::kRefused
             : a.result < 0             ? Lock::kNone
             : (a.flags & LOCK_UN) != 0 ? Lock::kGivenUp
                                        : Lock::kGot;
  } else if (effect == Effect::kFcntl && (a.flags == F_SETLK || a.flags == F_SETLKW)) {
    if (values.size() < 5 || values[2] != SEEK_SET || (a.result < 0 && !refused)) return l;
    l.record = true;
    l.owner = process;
    l.exclusive = values[1] == F_WRLCK;
    l.begin = values[3];
    l.end = values[4] == 0 ? UINT64_MAX : l.begin + values[4];
    l.what = refused ? Lock::kRefused : values[1] == F_UNLCK ? Lock::kGivenUp : Lock::kGot;
  }
  return l;
}

// Who has locked what by now.
class Locks {
 public:
  void note(const Lock& l) {
    if (l.what == Lock::kNone) return;
    if (l.what != Lock::kClosed) return apply(held_[key(l)], l);
    for (const bool record : {false, true}) {
      Lock of = l;
      of.record = record;
      if (record) of.owner >>= 20;
      const auto at = held_.find(key(of));
      if (at == held_.end()) continue;
      apply(at->second, of);
      if (at->second.empty()) held_.erase(at);
    }
  }
  // Whether `late`, which ended after `early`, took effect before it: only so could each be had, or
  // be refused.
  bool overtakes(const Lock& late, const Lock& early) const {
    if (late.what == Lock::kNone || early.what == Lock::kNone || key(late) != key(early))
      return false;
    static const std::vector<Lock> kNobody;
    const auto at = held_.find(key(early));
    const std::vector<Lock>& now = at != held_.end() ? at->second : kNobody;
    const auto both = [&](const Lock& first, const Lock& second) {
      if (!fits(now, first)) return false;
      std::vector<Lock> then = now;
      apply(then, first);
      return fits(then, second);
    };
    return !both(early, late) && both(late, early);
  }

 private:
  static uint64_t key(const Lock& l) { return uint64_t{l.file} << 1 | l.record; }
  static bool fits(const std::vector<Lock>& held, const Lock& l) {
    if (l.what != Lock::kGot && l.what != Lock::kRefused) return true;
    bool in_the_way = false;
    for (const Lock& h : held)
      in_the_way |=
          h.owner != l.owner && h.begin < l.end && l.begin < h.end && (h.exclusive || l.exclusive);
    return in_the_way == (l.what == Lock::kRefused);
  }
  static void apply(std::vector<Lock>& held, const Lock& l) {
    // flock(2): who is refused another kind of lock has lost the one he had.
    if (l.what == Lock::kRefused && l.record) return;
    const size_t count = held.size();
    for (size_t i = 0; i < count; ++i) {  // what the owner had of it is gone, or is as it is now
      if (held[i].owner != l.owner || held[i].begin >= l.end || l.begin >= held[i].end) continue;
      Lock before = held[i], behind = held[i];
      before.end = l.begin;
      behind.begin = l.end;
      held[i].end = held[i].begin;
      if (before.begin < before.end) held.push_back(before);
      if (behind.begin < behind.end) held.push_back(behind);
    }
    std::erase_if(held, [](const Lock& h) { return h.begin == h.end; });
    if (l.what == Lock::kGot) held.push_back(l);
  }

  std::unordered_map<uint64_t, std::vector<Lock>> held_;
};

enum class Overtakes : uint8_t { kNo, kMay, kYes };

// ---- the ends of files -------------------------------------------------------------------------

// What a call on a file shows of its end: a write makes it longer, or so it seems; a read of less
// than was asked for met it.
struct Tail {
  enum What : uint8_t { kNone, kRead, kAppend, kMoved };
  What what = kNone;
  uint32_t file = 0;
  uint64_t reader = 0;  // by its descriptor
  uint64_t bytes = 0, asked = 0;
};
inline Tail tail_of(Effect effect, const feign_activity& a, uint64_t process,
                    const feign_host* host) {
  Tail t;
  if (a.file == 0 || a.result < 0 || (a.marks & FEIGN_NO_RESULT) != 0) return t;
  t.file = a.file;
  t.reader = process << 20 | (a.handle & 0xFFFFF);
  t.bytes = static_cast<uint64_t>(a.result);
  t.asked = a.length;
  if (effect == Effect::kRead)
    t.what = a.length != 0 ? Tail::kRead : Tail::kNone;
  else if (effect == Effect::kWrite)
    t.what = a.result != 0 ? Tail::kAppend : Tail::kNone;
  else if (effect == Effect::kClose || effect == Effect::kSeek)
    t.what = Tail::kMoved;
  if ((t.what == Tail::kRead || t.what == Tail::kAppend) &&
      host->text(host, a.file, nullptr)[0] != '/')
    t.what = Tail::kNone;  // a pipe
  return t;
}

// How many bytes there are behind what each reader has read: known from the first time on that it
// met the end, of files that grow.
class Tails {
 public:
  void note(const Tail& t) {
    if (t.what == Tail::kNone) return;
    const auto at = files_.find(t.file);
    if (t.what == Tail::kAppend) {
      files_[t.file].written += t.bytes;
    } else if (at != files_.end() && t.what == Tail::kMoved) {
      at->second.read.erase(t.reader);
    } else if (at != files_.end()) {
      const auto known = at->second.read.find(t.reader);
      if (t.bytes < t.asked)
        at->second.read[t.reader] = at->second.written;
      else if (known != at->second.read.end())
        known->second += t.bytes;
    }
  }
  // Of two readers it is known what each met, and need not be guessed from what the other met.
  bool knows(const Tail& a, const Tail& b) const {
    if (a.what != Tail::kRead || b.what != Tail::kRead || a.file != b.file) return false;
    const auto file = files_.find(a.file);
    return file != files_.end() && file->second.read.contains(a.reader) &&
           file->second.read.contains(b.reader);
  }
  // Whether `late`, which ended after `early`, took effect before it: only so did each read get
  // what it got. Of several writes, each of which may be what was read, one that is just as long.
  Overtakes overtakes(const Tail& late, const Tail& early) const {
    const bool reads = early.what == Tail::kRead && late.what == Tail::kAppend;
    if (late.file != early.file ||
        !(reads || (early.what == Tail::kAppend && late.what == Tail::kRead)))
      return Overtakes::kNo;
    const auto file = files_.find(early.file);
    if (file == files_.end()) return Overtakes::kNo;
    const Tail &read = reads ? early : late, &append = reads ? late : early;
    const auto known = file->second.read.find(read.reader);
    if (known == file->second.read.end()) return Overtakes::kNo;
    const uint64_t left = file->second.written - known->second;
    const bool met_end = read.bytes < read.asked;
    if (!reads) return met_end && left == read.bytes ? Overtakes::kYes : Overtakes::kNo;
    if (left >= read.bytes || (met_end && left + append.bytes > read.bytes)) return Overtakes::kNo;
    return left + append.bytes == read.bytes ? Overtakes::kYes : Overtakes::kMay;
  }

 private:
  struct File {
    uint64_t written = 0;
    std::unordered_map<uint64_t, uint64_t> read;  // of what was written, by reader
  };
  std::unordered_map<uint32_t, File> files_;
};

// ---- all that is told by more than names -------------------------------------------------------

struct Shown {
  Lock lock;
  Tail tail;
};
inline Shown shown_by(Effect effect, const feign_activity& a, const std::vector<uint64_t>& values,
                      uint64_t process, const feign_host* host) {
  return {lock_of(effect, a, values, process), tail_of(effect, a, process, host)};
}
class Account {
 public:
  void note(const Shown& s) {
    locks_.note(s.lock);
    tails_.note(s.tail);
  }
  // Whether `late` took effect before `early`, by these or by their claims.
  Overtakes overtakes(const Shown& late, const Shown& early, bool by_claims) const {
    if ((by_claims && !tails_.knows(late.tail, early.tail)) ||
        locks_.overtakes(late.lock, early.lock))
      return Overtakes::kYes;
    return tails_.overtakes(late.tail, early.tail);
  }

 private:
  Locks locks_;
  Tails tails_;
};

// Which call took effect first: that numbered `first`, which ended first, or one of those below
// `count`. Of those that overlap it, `claims_of` gives the claims, of the others null; and
// `overtakes` says of two what else is known, given what their claims say.
template <typename ClaimsOf, typename Judge>
size_t first_of(size_t first, size_t count, const Names& there, const ClaimsOf& claims_of,
                const Judge& overtakes) {
  for (int turns = 0; turns < 8; ++turns) {  // results of a damaged trace may go round in circles
    Claims& early = *claims_of(first);
    there.look_up(early);
    const size_t before = first;
    Overtakes best = Overtakes::kNo;
    for (size_t i = 0; i < count && best != Overtakes::kYes; ++i) {
      const Claims* const late = i != before ? claims_of(i) : nullptr;
      if (late == nullptr) continue;
      const Overtakes now = overtakes(i, before, took_effect_first(*late, early));
      if (now > best) {
        best = now;
        first = i;
      }
    }
    if (first == before) break;
  }
  return first;
}

}  // namespace feign
