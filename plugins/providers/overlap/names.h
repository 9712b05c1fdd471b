// SPDX-License-Identifier: MIT
// What calls say of names and directories, and which of two that overlap took effect first by it.
#pragma once

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/path.h"
#include "feign.h"
#include "trace/effects.h"

namespace feign {

enum class There : uint8_t { kUnknown, kNo, kYes };

// What a call's result says of one name: whether it was there before and is there after the call,
// and of a directory what is in it.
struct Claim {
  enum Holds : uint8_t { kAnything, kSomething, kBytes, kChange, kUnknownChange };
  uint32_t name = 0;  // none
  There before = There::kUnknown, after = There::kUnknown;
  There was = There::kUnknown;  // by what the calls before it said
  There in = There::kUnknown;   // whether the directory that the name is in is there
  Holds holds = kAnything;
  uint32_t text = 0;             // the name as it was given, if that is another one (Names::below)
  int32_t bytes = 0;             // that it holds, or more of them
  int32_t entry = 0;             // of the name that was made or removed in it, or found
  int32_t held = -1;             // by what the calls before it said; less than 0: not known
  bool full = false;             // of a directory: a name is in it afterwards
  bool replaces = false;         // a directory that was there had nothing in it (rename(2))
  bool missed = false;           // of a directory: it, or the name in it, was not found
  bool waits = false;            // an open that waits for the other end, if that is a FIFO
  There fifo = There::kUnknown;  // whether that is one, by what the call says
  bool same(const Claim& other) const {
    if (name == 0 || other.name == 0) return false;
    // Whose directory is not known may be in the other's.
    return name == other.name || text == other.name || other.text == name;
  }
  bool tells() const { return after != There::kUnknown || holds != kAnything || missed; }
  // Whether the call may have found so much in the directory.
  bool finds(int64_t now) const {
    if (now < 0) return true;
    return holds == kSomething ? now > kNoEntries : holds != kBytes || now == bytes;
  }
  // What is in it afterwards.
  int64_t leaves(int64_t now) const {
    if (holds == kBytes) return bytes;
    if (holds == kUnknownChange) return -1;
    return holds == kChange && now >= 0 ? now + bytes : now;
  }
};
// Of up to two names, and of the directories that these are in (Names::below).
constexpr size_t kNames = 2;
using Claims = std::array<Claim, 2 * kNames>;

// Stands for what is read through a descriptor, among names: bytes are there or not.
inline uint32_t stream_name(uint32_t file, uint32_t handle) {
  return UINT32_C(1) << 31 | (file != 0 ? file : UINT32_C(1) << 30 | handle);
}

// Whether a call that fails finds something at its name all the same.
inline bool is_there(Effect effect, const feign_activity& a, const feign_host* host) {
  const bool creates =
      effect == Effect::kCreat || (effect == Effect::kOpen && (a.flags & O_CREAT) != 0);
  switch (a.result) {
    case -EEXIST:
    case -EADDRINUSE:
      return true;
    case -EISDIR:
      return !creates;  // that "new/" would be one, too
    case -EINVAL:
      return effect == Effect::kReadlink;
    case -ENODATA:
      return effect == Effect::kGetXattr || effect == Effect::kRemoveXattr;
    case -ERANGE:
      return effect == Effect::kGetXattr;
    case -ENXIO:  // a FIFO that nobody reads
      return effect == Effect::kOpen;
    case -ENOTDIR: {  // of a name below others, any of these may be no directory
      const bool of_itself = effect == Effect::kRmdir || effect == Effect::kChdir ||
                             (effect == Effect::kUnlinkat && (a.flags & AT_REMOVEDIR) != 0) ||
                             (effect == Effect::kOpen && (a.flags & O_DIRECTORY) != 0);
      const bool from_cwd = a.handle == 0 || a.handle == FEIGN_CWD;
      return of_itself && !creates && from_cwd && a.path != 0 &&
             std::string_view(host->text(host, a.path, nullptr)).find('/') == std::string::npos;
    }
    default:
      return false;
  }
}

inline Claim opened(Claim c, uint32_t flags) {
  c.waits = (flags & (O_NONBLOCK | O_EXCL)) == 0 && (flags & O_ACCMODE) != O_RDWR;
  return c;
}

inline Claims claims(Effect effect, const feign_activity& a, const feign_host* host) {
  using enum There;
  const bool ok = a.result >= 0;
  const bool exists = is_there(effect, a, host);
  if ((a.marks & FEIGN_NO_RESULT) != 0) return {};
  if (effect == Effect::kRead && ok && a.length != 0) {
    const uint32_t name = stream_name(a.file, a.handle);
    return {{{name, a.result != 0 ? kYes : kNo, a.result != 0 ? kUnknown : kNo}}};
  }
  if (effect == Effect::kList && ok && a.file != 0) {
    Claim listed = {a.file, kYes, kYes};  // of one that was removed nothing is listed
    // The buffer had room left: these are all. (Names::below knows whether they are the first.)
    if (a.result > 0 && a.result <= INT32_MAX &&
        static_cast<uint64_t>(a.result + entry_bytes(size_t{NAME_MAX})) <= a.length) {
      listed.holds = Claim::kBytes;
      listed.bytes = static_cast<int32_t>(a.result);
    }
    return {{listed}};
  }
  if (effect == Effect::kList && a.result == -ENOENT && a.file != 0)
    return {{{a.file, kNo, kNo}}};  // it was removed
  if (a.result == -ENOTEMPTY) {
    Claim full = {effect == Effect::kRename ? a.path2 : a.path, kYes, kYes};
    full.holds = Claim::kSomething;
    return {{full}};
  }
  if (a.path == 0 || (!ok && !exists && a.result != -ENOENT)) return {};
  // What makes or removes a name finds the directory that it is in, or does not.
  const Claim there = {a.path, kYes, kYes}, gone = {a.path, kYes, kNo, kUnknown, kYes},
              missing = {a.path, kNo, kNo}, found = {a.path, kYes, kYes, kUnknown, kYes},
              nowhere = {a.path, kNo, kNo, kUnknown, kNo};
  const auto made = [](uint32_t name, There before) {
    return Claim{name, before, kYes, kUnknown, kYes};
  };
  switch (effect) {
    case Effect::kOpen:
      if ((a.flags & O_TMPFILE) == O_TMPFILE) return {};
      if ((a.flags & O_CREAT) == 0 || exists) break;
      if (!ok) return {{nowhere}};
      return {{opened(made(a.path, (a.flags & O_EXCL) != 0 ? kNo : kUnknown), a.flags)}};
    case Effect::kCreat:
      if (exists) break;
      return {{ok ? made(a.path, kUnknown) : nowhere}};
    case Effect::kMkdir:
    case Effect::kMknod:
    case Effect::kBind:
    case Effect::kSymlink: {
      if (exists) break;
      Claim one = ok ? made(a.path, kNo) : nowhere;
      one.holds = ok && effect == Effect::kMkdir ? Claim::kBytes : Claim::kAnything;
      one.bytes = kNoEntries;
      if (effect == Effect::kMknod) one.fifo = S_ISFIFO(a.mode) ? kYes : kNo;
      return {{one}};
    }
    case Effect::kUnlink:
    case Effect::kUnlinkat:
    case Effect::kRmdir: {
      if (!ok) break;
      Claim one = gone;
      if (effect == Effect::kRmdir || (a.flags & AT_REMOVEDIR) != 0) one.holds = Claim::kBytes;
      one.bytes = kNoEntries;
      return {{one}};
    }
    case Effect::kRename: {
      const bool exchange = (a.flags & RENAME_EXCHANGE) != 0;
      const bool stays = exchange || (a.flags & RENAME_WHITEOUT) != 0;
      const There before = exchange ? kYes : (a.flags & RENAME_NOREPLACE) != 0 ? kNo : kUnknown;
      if (ok && (a.path != a.path2 || a.handle != a.handle2)) {
        Claim from = stays ? there : gone, to = made(a.path2, before);
        from.holds = to.holds = Claim::kUnknownChange;  // directories bring what is in them
        to.replaces = !exchange;
        return {{from, to}};
      }
      if (!exists) break;
      return {{{a.path2, kYes, kYes}}};
    }
    case Effect::kLink:
      if (ok) return {{there, made(a.path2, kNo)}};
      if (!exists) break;
      return {{{a.path2, kYes, kYes}}};
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
  Claim one = ok || exists ? found : missing;
  if (ok && (effect == Effect::kStat || effect == Effect::kStatat) && (a.mode & S_IFMT) != 0)
    one.fifo = S_ISFIFO(a.mode) ? kYes : kNo;
  return {{one}};
}

template <typename Says>
bool any_two(const Claims& a, const Claims& b, const Says& says) {
  return std::any_of(a.begin(), a.end(), [&](const Claim& one) {
    return std::any_of(b.begin(), b.end(), [&](const Claim& other) { return says(one, other); });
  });
}

// Whether a call may change what is in the directory of its name.
inline bool makes_or_removes(Effect e) {
  return changes_names(e) || e == Effect::kOpen || e == Effect::kCreat || e == Effect::kBind;
}

// Which names are there, and what is in directories, by what calls say, in the order in which they
// are met.
class Names {
 public:
  void look_up(Claims& claims) const {
    for (Claim& c : claims) {
      if (c.name < there_.size()) c.was = there_[c.name];
      // It found that, whenever the other end came.
      if (c.waits && c.before == There::kUnknown && is_fifo(c.name)) c.before = There::kYes;
      const auto at = c.holds != Claim::kAnything ? held_.find(c.name) : held_.end();
      c.held = at != held_.end() ? at->second.bytes : -1;
    }
    for (size_t i = 0; i < kNames; ++i) {
      Claim& c = claims[i];
      Claim& in = claims[i + kNames];
      if (c.name != 0 && c.was == There::kUnknown && is_told_of(in.name)) c.was = There::kNo;
      // What was in there is with its directory, wherever that is now.
      if (in.missed) in.before = in.after = c.was == There::kYes ? There::kNo : There::kUnknown;
      if (in.entry == 0) continue;
      // A rename to a name that nothing told of may have replaced another; an open mostly made it.
      There before = c.before != There::kUnknown ? c.before : c.was;
      if (before == There::kUnknown && c.holds == Claim::kAnything) before = There::kNo;
      in.holds = before == There::kUnknown ? Claim::kUnknownChange : Claim::kChange;
      in.bytes = before == c.after ? 0 : c.after == There::kYes ? in.entry : -in.entry;
    }
    // A rename within a directory changes that once.
    static_assert(kNames == 2);
    Claim &one = claims[kNames], &other = claims[kNames + 1];
    if (one.name == other.name && one.entry != 0 && other.entry != 0) {
      if (other.holds == Claim::kUnknownChange) one.holds = Claim::kUnknownChange;
      one.bytes += other.bytes;
      if (claims[0].name == claims[1].name) one.bytes = 0;  // as it is spelt
      other.holds = Claim::kAnything;
      other.held = -1;
    }
  }
  // Relative names are those below the directory that the process is in, or `folder`, which the
  // call's descriptor is (0: it is not known), which `reader` names (reader_of). Of the calls of
  // one process in their order.
  void below(uint32_t cwd, uint32_t folder, uint64_t reader, Effect effect, Claims& claims,
             const feign_activity& a, const feign_host* host) {
    if (effect == Effect::kClose || effect == Effect::kSeek ||
        (effect == Effect::kList && a.result == 0))
      listing_.erase(reader);
    else if (effect == Effect::kList && a.result > 0 && !listing_.insert(reader).second)
      claims[0].holds = Claim::kAnything;  // goes on with a listing
    if (effect == Effect::kList) return;
    for (size_t i = 0; i < kNames; ++i) {
      Claim& c = claims[i];
      if (c.name == 0 || c.name >> 31 != 0) continue;
      // Both may be the same text, below two directories; and the second may stand alone.
      const bool alone = (effect == Effect::kRename || effect == Effect::kLink) && a.result < 0 &&
                         a.result != -ENOENT;
      const bool second = i != 0 || alone || c.name != a.path;
      const uint32_t handle = second ? a.handle2 : a.handle;
      const uint32_t from = handle == 0 || handle == FEIGN_CWD ? cwd
                            : handle == a.handle               ? folder
                                                               : 0;
      put_below(from, c, host);
      const bool nowhere = c.before == There::kNo && c.after == There::kNo;
      if (is_of_process(c.name, host) || (nowhere && goes_back(c.text, host))) {
        c = {};
        continue;
      }
      const bool missed = c.in == There::kUnknown && c.before == There::kNo;
      if (c.in == There::kUnknown && !missed) continue;
      Claim& in = claims[i + kNames];
      in = directory(c, host);
      in.before = in.after = c.in;
      in.missed = missed;
      in.full = c.after == There::kYes;
      if (c.in == There::kYes && c.before != c.after)
        in.entry = entry_bytes(base_name(c.name, host).size());
      if (in.entry != 0) in.holds = Claim::kUnknownChange;
    }
  }
  // The name as it is below that directory, if it is relative.
  void put_below(uint32_t from, Claim& c, const feign_host* host) {
    const uint32_t name = from != 0 ? whole(from, c.name, host) : 0;
    if (name == 0 || name == c.name) return;
    c.text = std::exchange(c.name, name);
  }
  // The directory that the name is in.
  Claim directory(const Claim& c, const feign_host* host) {
    Claim in = {directory_of(c.name, host)};
    if (c.text != 0) in.text = directory_of(c.text, host);
    return in;
  }
  // Where the process is after that call; `folder` as for below().
  uint32_t moves(uint32_t cwd, uint32_t folder, Effect effect, const feign_activity& a,
                 const feign_host* host) {
    if (a.result < 0) return cwd;
    if (effect == Effect::kFchdir) return folder;
    if (effect == Effect::kChroot) return 0;
    return effect == Effect::kChdir ? whole(cwd, a.path, host) : cwd;
  }
  // Not of relative names below descriptors, nor of others once somebody has moved to another
  // directory: those are names in many places.
  void note(Effect effect, Claims& claims, const feign_activity& a, const feign_host* host) {
    if (!moved_ && a.result >= 0 &&
        (effect == Effect::kChdir || effect == Effect::kFchdir || effect == Effect::kChroot)) {
      moved_ = true;
      const auto relative = [&](uint32_t name) {
        return effect == Effect::kChroot || host->text(host, name, nullptr)[0] != '/';
      };
      for (uint32_t name = 1; name < there_.size(); ++name)
        if (there_[name] != There::kUnknown && relative(name)) there_[name] = There::kUnknown;
      std::erase_if(held_, [&](const auto& held) { return relative(held.first); });
    }
    look_up(claims);
    const bool from_cwd =
        (a.handle == 0 || a.handle == FEIGN_CWD) && (a.handle2 == 0 || a.handle2 == FEIGN_CWD);
    const std::array<There, kNames> told = fifos(effect, claims);
    for (size_t i = 0; i < claims.size(); ++i) {
      const Claim& c = claims[i];
      if (c.name >> 31 != 0 || c.missed) continue;
      // In a directory that is elsewhere it may be as it was.
      if (i < kNames && claims[i + kNames].missed && is_gone(claims[i + kNames].name)) continue;
      if (c.name == 0 || ((moved_ || !from_cwd) && host->text(host, c.name, nullptr)[0] != '/')) {
        if (c.entry != 0) held_.clear();  // it may be in any directory
        continue;
      }
      const int64_t now = c.leaves(c.held);
      if (effect == Effect::kList && c.held >= 0 && now >= 0 &&
          !held_[c.name].disagrees(static_cast<int32_t>(now)))
        continue;
      if (c.holds == Claim::kUnknownChange || c.after == There::kNo || now > INT32_MAX)
        held_.erase(c.name);
      else if (now >= 0)
        held_[c.name].changes(static_cast<int32_t>(now), effect, i < kNames);
      if (effect == Effect::kList) continue;  // the directory may have another name by now
      if (c.name >= there_.size()) there_.resize(c.name + c.name / 2 + size_t{64});
      there_[c.name] = c.after;
      if (i < kNames && told[i] != There::kUnknown) {
        if (told[i] == There::kYes)
          fifos_.insert(c.name);
        else
          fifos_.erase(c.name);
      }
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
  bool is_told_of(uint32_t directory) const {
    const auto at = directory != 0 ? held_.find(directory) : held_.end();
    return at != held_.end() && at->second.made;
  }
  // Whether each process has another one by that name, which comes and goes with no call on it.
  static bool is_of_process(uint32_t name, const feign_host* host) {
    const std::string_view text = host->text(host, name, nullptr);
    return text.starts_with("/proc/") || text.starts_with("/dev/fd/");
  }
  // Whether it is the name before a ".." that may be missing.
  static bool goes_back(uint32_t name, const feign_host* host) {
    std::string_view text = name != 0 ? host->text(host, name, nullptr) : "";
    while (text.starts_with("./") || text.starts_with("../"))
      text.remove_prefix(text.find('/') + 1);
    return text.find("/../") != text.npos || text.ends_with("/..");
  }
  bool is_fifo(uint32_t name) const { return fifos_.contains(name); }
  // Which names that the call is about are FIFOs afterwards.
  std::array<There, kNames> fifos(Effect effect, const Claims& claims) const {
    std::array<There, kNames> now{};
    const bool two = (effect == Effect::kRename || effect == Effect::kLink) && claims[1].name != 0;
    for (size_t i = 0; i < kNames; ++i) {
      now[i] = claims[i].after == There::kNo ? There::kNo : claims[i].fifo;
      if (two && now[i] == There::kUnknown && (i == 1 || effect == Effect::kRename))
        now[i] = is_fifo(claims[1 - i].name) ? There::kYes : There::kNo;
    }
    return now;
  }
  bool is_gone(uint32_t name) const { return name < there_.size() && there_[name] == There::kNo; }
  static std::string_view base_name(uint32_t name, const feign_host* host) {
    size_t length = 0;
    const char* const text = host->text(host, name, &length);
    std::string_view base(text, length);
    while (base.ends_with('/')) base.remove_suffix(1);
    return base.substr(base.rfind('/') + 1);
  }
  // 0: of a name without a slash it is not known.
  uint32_t directory_of(uint32_t name, const feign_host* host) {
    if (name >= directory_.size()) directory_.resize(name + name / 2 + size_t{64});
    if (directory_[name] == 0) {
      size_t length = 0;
      const char* const text = host->text(host, name, &length);
      const std::string_view all(text, length);
      const size_t base = base_name(name, host).data() - text;
      size_t end = base;
      while (end > 1 && all[end - 1] == '/') --end;
      directory_[name] = base != 0 ? host->intern(host, text, end) : name;
    }
    return directory_[name] != name ? directory_[name] : 0;
  }

  // Bytes of entries. One listing that shows others may have been taken in another order than it
  // was; if several show the same difference, somebody unseen made it.
  struct Held {
    int32_t bytes = 0, off = 0;
    uint32_t times = 0;
    bool made = false;  // empty, and all names that came to it since were told of
    void changes(int32_t now, Effect by, bool itself) {
      bytes = now;
      made = by == Effect::kList ? false : made || (by == Effect::kMkdir && itself);
    }
    bool disagrees(int32_t shown) {
      constexpr uint32_t kMost = 8;
      times = shown - bytes == off ? times + 1 : 1;
      off = shown - bytes;
      return off != 0 && times >= kMost;
    }
  };
  std::vector<There> there_;                      // by name
  std::unordered_set<uint32_t> fifos_;            // names of such
  std::vector<uint32_t> directory_;               // by name; itself: it has none
  std::unordered_map<uint32_t, Held> held_;       // by directory
  std::unordered_set<uint64_t> listing_;          // who has read a part of a directory
  std::unordered_map<uint64_t, uint32_t> whole_;  // by directory and name
  bool moved_ = false;
};

inline bool fits(There is, There wanted) {
  return is == There::kUnknown || wanted == There::kUnknown || is == wanted;
}
// Whether it is all as the call found it, by what the calls before said.
inline bool fits(const Claims& claims) {
  return std::all_of(claims.begin(), claims.end(),
                     [](const Claim& c) { return fits(c.was, c.before); });
}
// Two that share no bit of these are about other names.
inline uint64_t names_of(const Claims& claims) {
  uint64_t all = 0;
  for (const Claim& c : claims)
    for (const uint32_t name : {c.name, c.text})
      if (name != 0) all |= UINT64_C(1) << (name * UINT32_C(0x9E3779B1) >> 26);
  return all;
}
// Whether the call leaves something otherwise than it found it, or counts what there is.
inline bool changes(const Claims& claims) {
  return std::any_of(claims.begin(), claims.end(), [](const Claim& c) {
    return c.name != 0 && (c.before != c.after || c.holds != Claim::kAnything);
  });
}
// Whether neither of two can have come right after the other.
inline bool clash(const Claims& a, const Claims& b) {
  return any_two(a, b, [](const Claim& one, const Claim& other) {
    return one.same(other) && !fits(one.after, other.before) && !fits(other.after, one.before);
  });
}

// Whether one is about a name of the other's, and both fit what they say if it came first.
inline bool may_be_before(const Claims& first, const Claims& then) {
  bool same = false;
  for (size_t i = 0; i < kNames; ++i)
    for (size_t k = 0; k < kNames; ++k) {
      const Claim &f = first[i], &t = then[k];
      if (!f.same(t)) continue;
      if (!fits(t.was, f.before) || !fits(f.after, t.before)) return false;
      same = true;
    }
  return same;
}

enum class Overtakes : uint8_t { kNo, kMay, kYes, kSurely };  // surely: before others that do, too

// Whether `late`, which began before `early` had ended and ended after it, took effect before it:
// only so do both fit what they say. (Where what a directory held is but nearer then to what one
// found, that may wait for a third.)
inline Overtakes took_effect_first(const Claims& late, const Claims& early) {
  Overtakes told = Overtakes::kNo;
  for (const Claim& e : early)
    for (const Claim& l : late) {
      if (!e.same(l)) continue;
      const bool as_ended =
          fits(e.was, e.before) && fits(e.after, l.before) && !(e.full && l.replaces);
      const bool other_way =
          fits(e.was, l.before) && fits(l.after, e.before) && !(l.full && e.replaces);
      if (as_ended && !other_way) return Overtakes::kNo;
      if (!other_way) continue;
      if (!as_ended) told = Overtakes::kYes;
      const int64_t held = std::max(e.held, l.held);
      if (!(e.finds(held) && l.finds(e.leaves(held))) && l.finds(held) && e.finds(l.leaves(held)))
        told = Overtakes::kYes;
    }
  return told;
}

}  // namespace feign
