// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/path.h"
#include "layers/mpiio_ops.h"
#include "layers/posix_ops.h"
#include "prepare/prepare.h"

namespace feign {
namespace {

constexpr uint32_t kMpiExclusive = 64;  // MPI_MODE_EXCL
constexpr uint64_t kLeastBlock = 512;   // ranges end at blocks' ends, or at the file's
// A link's target that leads where `target` does, of that many bytes; `target` if there is none.
std::string as_long(std::string_view link, std::string_view target, size_t bytes) {
  if (target.size() <= bytes) return std::string(bytes - target.size(), '/').append(target);
  std::string_view from = link.substr(0, link.rfind('/') + 1), to = target;
  for (size_t end = from.find('/', 1);
       end != from.npos && to.size() > end + 1 && from.substr(0, end + 1) == to.substr(0, end + 1);
       end = from.find('/', 1)) {
    from.remove_prefix(end);
    to.remove_prefix(end);
  }
  std::string up;
  for (size_t i = std::count(from.begin(), from.end(), '/'); i > 1; --i) up += "../";
  up += to.substr(1);
  if (up.size() == bytes) return up;
  if (up.size() + 2 > bytes) return std::string(target);
  return "." + std::string(bytes - up.size() - 1, '/') + up;
}

}  // namespace

Needs::Seen& Needs::seen(uint32_t file) {
  if (file >= seen_.size()) seen_.resize(names_.file_count());
  return seen_[file];
}

// The file was seen to hold at least `size` bytes: those that the trace did not write were there.
void Needs::grew(uint32_t file, uint64_t size) {
  Seen& s = seen(file);
  if (size <= s.now) return;
  s.now = size;
  Namespace::File& f = names_.file(file);
  const bool all_added = static_cast<int64_t>(s.added) >= 0 && size <= s.added;
  if ((s.exact && s.changed) || all_added || f.surely_made()) {
    // Not there before the trace: it had come from another file.
    const auto at = cloned_.find(file);
    if (at == cloned_.end() || size <= at->second.to) return;
    const Clone clone = at->second;
    cloned_.erase(at);
    return grew(clone.source, clone.from + (size - clone.to));
  }
  f.created = false;  // O_CREAT found it there
  s.initial = std::max(s.initial, size - s.added);
}

// The file, or what it is a link to.
void Needs::is_directory(uint32_t file) {
  seen(file).directory = true;
  Namespace::Type& type = names_.file(file).type;
  if (type != Namespace::Type::kSymlink) type = Namespace::Type::kDirectory;
  names_.file(file).guessed = false;
}

// What was learned of a file by another name.
void Needs::is_same(uint32_t other, uint32_t file) {
  const Seen was = seen(other);
  Seen& s = seen(file);
  s.directory |= was.directory || names_.file(other).type == Namespace::Type::kDirectory;
  s.initial = std::max(s.initial, was.initial);
  s.now = std::max(s.now, was.now);
  s.mode |= was.mode;
  s.own_mode |= was.own_mode;
  s.changed |= was.changed;
  names_.file(file).followed |= names_.file(other).followed;
  for (const auto& [name, length] : was.attributes) {
    uint64_t& mine = s.attributes.try_emplace(name, length).first->second;
    if (mine == Seen::kUntold && length != Seen::kOwn) mine = length;
  }
  if (const auto l = listings_.find(other); l != listings_.end())
    listings_.try_emplace(file, l->second);
}

// What was taken for one file by several names is not: each has the size that it was told by.
void Needs::sizes_by_names() {
  if (told_sizes_.size() > told_work_) return;
  told_work_ -= told_sizes_.size();
  std::unordered_map<uint32_t, uint64_t> by_file;
  std::set<uint64_t> all;
  for (const auto& [name, size] : told_sizes_) {
    uint64_t& most = by_file[names_.same(names_.at(names_.canonical(name, true)))];
    most = std::max(most, size);
    all.insert(size);
  }
  for (const auto& [file, size] : by_file)
    if (Seen& s = seen(file);
        file != 0 && s.initial > size && !s.changed && all.contains(s.initial))
      s.initial = s.now = size;
}

// The name that a path ends with, in another directory.
uint32_t Needs::in_directory(const std::string& directory, uint32_t path) {
  return strings_.intern((directory == "/" ? "" : directory) + "/" +
                         std::string(name_of(strings_.text(path))));
}

void Needs::listed(const feign_activity& a, uint32_t file) {
  if (a.result < 0) return;
  std::vector<Listing>& all = listings_[file];
  auto at = std::find_if(all.begin(), all.end(),
                         [&](const Listing& l) { return !l.over && l.handle == a.handle; });
  if (at == all.end()) {
    if (a.result == 0 || elsewhere_.contains(a.handle)) return;
    // The first ones, and the last that was read through: that has what came between.
    if (all.size() >= kListings) {
      if (listing_work_ == 0) return;
      if (!all.back().over) elsewhere_.insert(all.back().handle);
      if (!all.back().over || all.size() > kListings) all.pop_back();
    }
    at = all.insert(all.end(), Listing{});
    at->handle = a.handle;
  }
  Listing& l = *at;
  if (a.result > 0 && l.bytes == 0) {
    // How the trace's own doings changed what a listing shows, compared with the beginning.
    l.known = names_.file_count();
    const std::string before(strings_.text(names_.file(file).initial_path));  // where it was then
    const bool moved = before != strings_.text(a.path);
    names_.for_each_child(a.path, [&](uint32_t path, uint32_t at) {
      if (listing_work_ != 0) --listing_work_;
      const uint32_t then = moved ? in_directory(before, path) : path;
      const uint32_t initial = names_.file(at).initial_path;  // perhaps by way of a link
      const bool was = at != 0 && !names_.file(at).created && initial != 0 &&
                       names_.canonical(initial, false) == names_.canonical(then, false);
      if (was) return;
      if (at != 0) l.by_trace += entry_bytes(name_of(strings_.text(path)));
      l.others.push_back(then);
    });
  }
  l.bytes += static_cast<uint64_t>(a.result);
  l.over = a.result == 0;
  if (a.path2 != 0 && a.path != 0) named(a, file);
  if (l.over && all.size() > kListings && &l == &all.back()) all.erase(all.end() - 2);
}

// The entries that a directory's first listing showed by name (Role::kNames). Of those that no call
// names in all of the trace it is taken that they were there.
void Needs::named(const feign_activity& a, uint32_t file) {
  if (names_.file(file).initial_path != a.path || listings_[file].size() != 1) return;
  const std::string directory(strings_.text(a.path)), all(strings_.text(a.path2));
  for (size_t at = 0, end = 0; end != all.npos && at < all.size(); at = end + 1) {
    end = all.find('/', at);
    const std::string name = "/" + all.substr(at + 1, end - std::min(at + 1, end));
    const uint32_t path = strings_.intern(directory == "/" ? name : directory + name);
    named_.emplace_back(path, all[at]);
  }
}

// A listing that begins anew counts from there; of one that goes on elsewhere it is not known how
// much was shown twice.
void Needs::listed_from(const feign_activity& a, uint32_t file) {
  const auto all = listings_.find(file);
  if (all == listings_.end() || a.result < 0 || (a.flags == SEEK_CUR && a.offset == 0)) return;
  if (a.result != 0)
    elsewhere_.insert(a.handle);
  else
    elsewhere_.erase(a.handle);
  for (Listing& l : all->second) {
    if (l.over || l.handle != a.handle) continue;
    l.bytes = 0;
    l.by_trace = 0;
    l.others.clear();
    l.over = a.result != 0;
  }
}

void Needs::wrote(const feign_activity& a, uint32_t file, uint64_t bytes) {
  Seen& s = seen(file);
  if (a.marks & FEIGN_APPENDS)
    s.now += bytes;
  else
    s.now = std::max(s.now, a.offset + bytes);
  if ((a.marks & FEIGN_APPENDS) && !s.exact) s.added += bytes;
  s.changed = true;
}

void Needs::read(const feign_activity& a, Effect effect, uint32_t file) {
  const uint64_t done = a.result > 0 ? static_cast<uint64_t>(a.result) : 0;
  if (a.result == -EISDIR) is_directory(file);
  if (a.result >= 0) names_.is_file(file);
  if (a.marks & FEIGN_APPENDS) return;
  if (done != 0) grew(file, a.offset + done);
  // The end was met: that is how long it is. (What a modifier made longer met nothing, nor did what
  // reads no more than there is in memory.)
  const bool nowait = effect == Effect::kPread2 && (a.flags & RWF_NOWAIT) != 0 && done != 0;
  if (a.result >= 0 && done < a.length && !(a.marks & (FEIGN_INHERITED | FEIGN_INJECTED)) &&
      !nowait && (done != 0 || seen(file).now == a.offset))
    seen(file).exact = true;
}

// sendfile, copy_file_range, splice: what is read is what must be there.
void Needs::copied(const feign_activity& a, uint32_t file) {
  const uint64_t done = a.result > 0 ? static_cast<uint64_t>(a.result) : 0;
  const bool reads = a.handle != 0, writes = a.handle2 != 0 && a.value_count >= 4;
  if (writes && a.path2 != 0)  // open before the trace began: it was there
    if (uint32_t& there = own_[static_cast<uint32_t>(a.values[2])]; there == 0)
      there = names_.found(a.path2, Namespace::Type::kUnknown);
  const auto to = writes ? own_.find(static_cast<uint32_t>(a.values[2])) : own_.end();
  // Of what it copies to a place behind in the same file it may have read what it wrote, but by
  // copy_file_range, which asks first how long that is.
  const bool itself = to != own_.end() && to->second == file && a.values[3] > a.offset &&
                      a.op != FEIGN_POSIX_COPY_FILE_RANGE;
  if (reads && done != 0) grew(file, a.offset + (itself ? 1 : done));
  if (to == own_.end() || done == 0) return;
  Seen& s = seen(to->second);
  s.now = std::max(s.now, a.values[3] + done);
  s.changed = true;
}

// FICLONE, FICLONERANGE: so much of the source must be there.
void Needs::shared(const feign_activity& a, uint32_t file) {
  if (a.result < 0 || a.value_count < 3) return;
  const auto from = own_.find(static_cast<uint32_t>(a.values[1]));
  if (from == own_.end()) return;
  const uint64_t begin = a.values[2], end = begin + a.length;
  grew(from->second, end);
  if (a.length != 0 && end % kLeastBlock != 0) seen(from->second).exact = true;
  const uint64_t length = a.length != 0 ? a.length : seen(from->second).now - begin;
  Seen& s = seen(file);
  s.now = std::max(s.now, a.offset + length);
  s.changed = true;
  if (a.length == 0 && from->second != file) cloned_[file] = {from->second, begin, a.offset};
}

// SEEK_DATA, SEEK_HOLE.
void Needs::sought_data(const feign_activity& a, uint32_t file) {
  const bool hole = a.flags == SEEK_HOLE;
  Seen& s = seen(file);
  uint64_t at = UINT64_MAX;  // no data from there on
  if (a.result >= 0) {
    at = static_cast<uint64_t>(a.result);
    grew(file, hole ? at : at + 1);
    const uint64_t from = std::max(hole ? a.offset : at, s.told);
    const uint64_t to = hole ? at : at + 1;
    // Behind a hole that was seen it is what was written since.
    if (from < to && !(s.changed && from == s.hole)) s.data.emplace_back(from, to);
  } else if (a.result != -ENXIO || hole) {
    return;
  }
  s.has_holes |= !hole && at > a.offset;
  if (!s.changed && a.offset <= s.told) {
    if (hole && at == a.offset) s.hole = at;
    s.told = std::max(s.told, at);
  }
}

void Needs::sought(const feign_activity& a, Effect effect, uint32_t file) {
  if ((a.marks & FEIGN_APPENDS) && a.result >= 0) {  // the end, wherever that was
    grew(file, static_cast<uint64_t>(a.result));
    seen(file).exact = true;
    return;
  }
  if (effect == Effect::kFtell) return;
  listed_from(a, file);
  if (a.flags == SEEK_DATA || a.flags == SEEK_HOLE) return sought_data(a, file);
  if (a.flags == SEEK_END && a.result >= 0 && static_cast<int64_t>(a.offset) <= a.result) {
    // Of a directory of ext4 nothing is behind its end.
    const bool unknown = names_.file(file).type == Namespace::Type::kUnknown;
    if (a.result == INT64_MAX && unknown && !seen(file).changed) return is_directory(file);
    grew(file, static_cast<uint64_t>(a.result) - a.offset);
    seen(file).exact = true;
  }
}

void Needs::shows_mode(uint32_t file, uint32_t mode) {
  if (Seen& s = seen(file); !s.own_mode) s.mode |= mode & 0777;
}

void Needs::looked_at(const feign_activity& a, uint32_t file) {
  if (a.result >= 0 && S_ISREG(a.mode)) {
    if (a.value_count != 0 && a.path != 0) {  // it may be that of another name
      const Namespace::Touched t = names_.identified(a.path, a.values[0]);
      if (t.file2 != 0) is_same(t.file2, t.file);
      if (t.file != 0) own_[a.file] = file = t.file;
    }
    grew(file, a.length);
    seen(file).exact = true;
    shows_mode(file, a.mode);
  }
  if (a.result < 0 || !S_ISDIR(a.mode)) return;
  is_directory(file);
  shows_mode(file, a.mode);
}

void Needs::allocated(const feign_activity& a, uint32_t file) {
  if (a.result < 0) return;
  Seen& s = seen(file);
  s.changed = true;
  if (a.flags & FALLOC_FL_COLLAPSE_RANGE) {  // it must have reached further
    grew(file, a.offset + a.length + 1);
    s.now -= std::min(s.now, a.length);
    if (!s.exact) s.added -= a.length;
  } else if (a.flags & FALLOC_FL_INSERT_RANGE) {
    grew(file, a.offset + 1);
    s.now += a.length;
    if (!s.exact) s.added += a.length;
  } else if (!(a.flags & FALLOC_FL_KEEP_SIZE)) {
    s.now = std::max(s.now, a.offset + a.length);
  }
}

void Needs::by_descriptor(const feign_activity& a, Effect effect, uint32_t file) {
  switch (effect) {
    case Effect::kRead:
    case Effect::kPread:
    case Effect::kPread2:
      return read(a, effect, file);
    case Effect::kCopy:
      return copied(a, file);
    case Effect::kIoctl:
      return shared(a, file);
    case Effect::kMap:
      if (a.result >= 0) names_.is_file(file);
      return;
    case Effect::kAio:
      if (a.result <= 0) return;
      if (a.flags == 1 || a.flags == 8) wrote(a, file, a.length);
      if (a.flags == 0 || a.flags == 7) grew(file, a.offset + a.length);
      return;
    case Effect::kWrite:
    case Effect::kPwrite:
    case Effect::kPwrite2:
      if (a.result > 0) wrote(a, file, static_cast<uint64_t>(a.result));
      return;
    case Effect::kFtell:
    case Effect::kSeek:
      return sought(a, effect, file);
    case Effect::kFstat:
    case Effect::kStatat:
      return looked_at(a, file);
    case Effect::kTruncate:  // by its name below /proc/self/fd
    case Effect::kFtruncate:
      if (a.result < 0) return;
      cloned_.erase(file);
      seen(file).changed = true;
      seen(file).exact = true;
      seen(file).now = a.length;
      return;
    case Effect::kFallocate:
      return allocated(a, file);
    case Effect::kList:
      if (a.result == -ENOTDIR || a.result == -EBADF) return;
      is_directory(file);
      listed(a, file);
      return;
    case Effect::kChmod:
      seen(file).changed = true;
      seen(file).own_mode |= a.result >= 0;
      return;
    case Effect::kGetXattr:
    case Effect::kSetXattr:
    case Effect::kRemoveXattr:
      attribute(a, effect, file);
      return;
    case Effect::kFchdir:
      if (a.result != -ENOTDIR && a.result != -EBADF) is_directory(file);
      return;
    case Effect::kLink:
      if (a.result >= 0 && a.path2 != 0) {
        names_.link(file, a.path2);
        changed_.insert(names_.canonical(a.path2, false));
      }
      if (a.result == -EEXIST && a.path2 != 0) names_.not_linked(a.path2);
      return;
    default:
      return;
  }
}

// Extended attributes that were there without the trace having set them.
void Needs::attribute(const feign_activity& a, Effect effect, uint32_t file) {
  const bool gets = effect == Effect::kGetXattr, sets = effect == Effect::kSetXattr;
  if (a.path2 == 0 || (!gets && !sets && effect != Effect::kRemoveXattr)) return;
  Seen& s = seen(file);
  s.changed |= !gets;
  const bool there = a.result >= 0 || (sets && a.result == -EEXIST);
  if (!there || !strings_.text(a.path2).starts_with("user.")) return;
  const uint64_t how = a.value_count > 0 ? a.values[0] : a.flags;  // setxattrat's flags are two
  const bool own = sets && a.result >= 0 && (how & XATTR_REPLACE) == 0;
  const auto at = s.attributes.try_emplace(a.path2, own ? Seen::kOwn : Seen::kUntold).first;
  if (gets && at->second == Seen::kUntold) at->second = static_cast<uint64_t>(a.result);
}

// What a refusal says of a file: that it is there, and of its permission bits.
void Needs::denied(const feign_activity& a, Effect effect) {
  if (names_.missing(a.path)) return;
  uint32_t bits = 0;
  switch (effect) {
    case Effect::kAccess:
      bits = a.mode & 7;
      if (bits == 0) return;
      break;
    case Effect::kTruncate:
      bits = W_OK;
      break;
    case Effect::kOpen: {
      const uint32_t how = a.flags & O_ACCMODE;
      if ((a.flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL)) return;
      bits = how == O_RDONLY ? R_OK : W_OK;
      break;
    }
    case Effect::kExec:
      bits = X_OK;
      break;
    case Effect::kUnlink:
    case Effect::kUnlinkat:
    case Effect::kRmdir:
    case Effect::kRename:
    case Effect::kLink:
      break;
    default:
      return;  // a directory that may not be searched, or in which nothing may be made
  }
  const bool known = names_.at(names_.canonical(a.path, true)) != 0;
  const uint32_t file = names_.found(a.path, Namespace::Type::kUnknown);
  if (file == 0) return;
  if (!known) guessed_.insert(file);
  seen(file).denied |= bits;
}

// What was refused may not have been there: a later call tells.
void Needs::guess(const feign_activity& a) {
  const auto at = guessed_.find(names_.at(names_.canonical(a.path, true)));
  if (at == guessed_.end() || (a.result < 0 && a.result != -ENOENT)) return;
  if (a.result == -ENOENT) names_.never(a.path);
  guessed_.erase(at);
}

// Notes what the trace may change, whether the call went well or not.
void Needs::changes(const feign_activity& a, Effect effect) {
  bool name = false, directory = false;
  switch (effect) {
    case Effect::kOpen:
      name = (a.flags & (O_CREAT | O_TRUNC)) != 0;
      break;
    case Effect::kRename:
    case Effect::kRmdir:
    case Effect::kUnlinkat:
      name = directory = true;
      break;
    case Effect::kUnlink:
    case Effect::kMkdir:
    case Effect::kMknod:
    case Effect::kBind:
    case Effect::kLink:
    case Effect::kSymlink:
    case Effect::kTruncate:
    case Effect::kChmod:
      name = true;
      break;
    default:
      break;
  }
  if (!name) return;
  const bool follow = (a.marks & FEIGN_NOFOLLOW) == 0;
  const bool two = effect == Effect::kRename || effect == Effect::kLink;
  for (const uint32_t path : {a.path, two ? a.path2 : 0}) {
    if (path == 0) continue;
    for (const uint32_t one : {names_.canonical(path, follow), names_.canonical(path, false)}) {
      changed_.insert(one);
      if (directory) moved_.insert(one);
    }
  }
}

// A rename to a name that nothing told of may have taken away a file: as one that an open with
// O_CREAT may have made.
void Needs::replaces(const feign_activity& a) {
  if (a.result < 0 || a.path2 == 0 || (a.flags & (RENAME_EXCHANGE | RENAME_NOREPLACE))) return;
  const uint32_t from = names_.canonical(a.path, false), to = names_.canonical(a.path2, false);
  if (from == to || names_.at(to) != 0 || names_.missing(a.path2) ||
      names_.file(names_.at(from)).type == Namespace::Type::kDirectory)
    return;
  feign_activity open = a;
  open.path = a.path2;
  open.flags = O_CREAT;
  open.marks |= FEIGN_NOFOLLOW;
  (void)names_.apply(open, Effect::kOpen);
}

// Our number for the activity's file, 0 if it has none.
uint32_t Needs::own(const feign_activity& a) {
  if (const auto at = own_.find(a.file); at != own_.end())
    return names_.file(at->second).initial_path != 0 ? names_.same(at->second) : at->second;
  if (!(a.marks & FEIGN_INHERITED) || a.file == 0 || a.path == 0) return 0;
  // Open before the trace began: it was there.
  return own_[a.file] = names_.found(a.path, Namespace::Type::kUnknown);
}

// The last open of a third party's layer, unless the system calls in it tell what it needs.
void Needs::settle(const feign_activity& next) {
  const auto at = waiting_.find(next.stream);
  if (at == waiting_.end()) return;
  const feign_activity open = at->second;
  waiting_.erase(at);
  if (FEIGN_DEPTH(next.marks) <= FEIGN_DEPTH(open.marks) || ops_.call(next.op) == nullptr)
    other_open(open, O_CREAT | O_RDWR);
}

void Needs::other_open(const feign_activity& a, uint32_t flags) {
  feign_activity open = a;
  open.flags = flags;
  const uint32_t file = names_.apply(open, Effect::kOpen).file;
  if (file == 0) return;
  own_[a.file] = file;
}

// An open of MPI's finds what is there when all ranks have come to it: what is not known to be
// there when it began, another rank may make before it comes. When one of them is over, all had
// come.
void Needs::all_came(uint64_t now_ns) {
  std::unordered_set<uint32_t> over;  // by path
  for (const feign_activity& a : meeting_)
    if (a.start_ns + a.duration_ns <= now_ns) over.insert(a.path);
  met_ns_ = UINT64_MAX;
  for (const feign_activity& a : std::exchange(meeting_, {})) {
    if (over.contains(a.path)) {
      own_open(a);
      continue;
    }
    meeting_.push_back(a);
    met_ns_ = std::min(met_ns_, a.start_ns + a.duration_ns);
  }
}

void Needs::own_open(const feign_activity& a) {
  feign_activity open = a;
  open.flags = (a.marks & FEIGN_CREATES) != 0 ? O_CREAT | O_RDWR : O_RDWR;
  // Whatever reads tell: MPI may say of one of an empty file that it got all that it asked for.
  // All ranks open it, one of them makes it.
  if (a.op == FEIGN_MPIIO_FILE_OPEN && (a.flags & kMpiExclusive) != 0 &&
      names_.at(names_.canonical(a.path, true)) == 0)
    open.flags |= O_CREAT | O_EXCL;
  changes(open, Effect::kOpen);
  other_open(open, open.flags);
  if (a.length != 0 && own(a) != 0) grew(own(a), a.length);
}

// A call of another layer than posix, by its kind. An open tells in `length` what the file held.
// What a third party's library keeps in its files nobody knows: a directory is all that an open
// needs, and a file has as many bytes as calls with an offset say.
void Needs::other_layer(const feign_activity& a) {
  const feign_op_info* op = ops_.info(a.op);
  if (op == nullptr || a.path == 0 || a.result < 0 || (a.marks & FEIGN_NO_RESULT)) return;
  const bool third = !ops_.own(a.op);
  if (third && op->kind == FEIGN_KIND_OPEN) {
    waiting_[a.stream] = a;
    return;
  }
  if (third && std::none_of(op->args, op->args + op->arg_count, [](const feign_arg_info& arg) {
        return arg.slot == FEIGN_SLOT_OFFSET;
      }))
    return;
  if (op->kind == FEIGN_KIND_OPEN) {
    if (a.op != FEIGN_MPIIO_FILE_OPEN || (a.marks & FEIGN_CREATES) != 0 ||
        (a.flags & kMpiExclusive) != 0 || names_.at(names_.canonical(a.path, true)) != 0)
      return own_open(a);
    meeting_.push_back(a);
    met_ns_ = std::min(met_ns_, a.start_ns + a.duration_ns);
    return;
  }
  if (!third && (op->kind == FEIGN_KIND_CHANGE || op->kind == FEIGN_KIND_SIZE))
    changes(a, Effect::kTruncate);
  if (a.offset == FEIGN_NO_OFFSET) return;
  const uint32_t file = own(a);
  if (file == 0) return;
  // MPI may say that all that was asked for was read, wherever the file ends; and of a view with
  // holes nobody knows where a part of it ends.
  if (!third && seen(file).by_parts) return;
  if (op->kind == FEIGN_KIND_READ) by_descriptor(a, Effect::kPread, file);
  if (op->kind == FEIGN_KIND_WRITE) by_descriptor(a, Effect::kPwrite, file);
}

// A stream holds back what is written to it: when that comes to its file, and how long the file is
// by then, tell the system calls in its calls, if they are in the trace.
bool Needs::told_by_parts(const feign_activity& a, Effect effect, uint32_t file) {
  if (a.op >= stdio_) return effect != Effect::kRead && seen(file).by_parts;
  seen(file).by_parts |= FEIGN_DEPTH(a.marks) != 0;
  return false;
}

void Needs::add(const feign_activity& a) {
  const Call* const call = ops_.call(a.op);
  if (!waiting_.empty()) settle(a);
  if (a.start_ns >= met_ns_) all_came(a.start_ns);
  if (call == nullptr) return other_layer(a);
  if ((a.marks & (FEIGN_NOT_A_FILE | FEIGN_NO_RESULT))) return;
  const Effect effect = opens(call->effect) ? Effect::kOpen : call->effect;
  if ((a.handle != 0 || a.handle2 != 0) && effect != Effect::kOpen) {
    if (const uint32_t file = own(a); file != 0 && !told_by_parts(a, effect, file))
      by_descriptor(a, effect, file);
    return;
  }
  if (effect == Effect::kOpen && a.path == 0 && (a.flags & O_TRUNC) && a.result >= 0)
    if (const uint32_t file = own(a); file != 0) by_descriptor(a, Effect::kFtruncate, file);
  if (effect == Effect::kExec || a.path == 0) return;
  if ((effect == Effect::kOpen || effect == Effect::kGetcwd) && a.path2 != 0) {
    if (const feign_activity link = names_.readlink_for(a); link.path != 0)
      by_name(link, Effect::kReadlink, Told::kNot);
    if (names_.took_back()) sizes_by_names();
  }
  if (effect == Effect::kGetcwd) return;
  // A removal that is part of another call finds that the name is gone: that call took it.
  const bool removes =
      effect == Effect::kUnlink || effect == Effect::kUnlinkat || effect == Effect::kRmdir;
  if (removes && FEIGN_DEPTH(a.marks) != 0 && names_.absent_at(names_.canonical(a.path, false)))
    return;
  by_name(a, effect);
}

void Needs::by_name(const feign_activity& a, Effect effect, Told told) {
  changes(a, effect);
  if (!guessed_.empty()) guess(a);
  if (a.result == -EACCES) denied(a, effect);
  if (effect == Effect::kRename) replaces(a);
  const Namespace::Touched touched =
      told == Told::kNot ? names_.assume(a) : names_.apply(a, effect);
  uint32_t itself = touched.file;
  if (itself == 0 && a.result != -ENOENT) itself = names_.at(names_.canonical(a.path, false));
  if (itself != 0) ++seen(itself).calls;
  if (touched.file == 0) return;
  const bool two = effect == Effect::kRename || effect == Effect::kLink;
  if (touched.created || (two && a.result >= 0)) {  // what it is in is one, or leads to one
    const uint32_t name = names_.canonical(two ? a.path2 : a.path, false);
    const bool nameless = effect == Effect::kOpen && (a.flags & O_TMPFILE) == O_TMPFILE;
    const uint32_t in = names_.at(nameless ? name : names_.above(name));
    if (names_.file(in).type == Namespace::Type::kSymlink) seen(in).directory = true;
  }
  if (a.result == -ENOTEMPTY) not_empty(a, effect, touched);
  if (a.file != 0) own_[a.file] = touched.file;
  if (effect == Effect::kReadlink && touched.file2 != 0) is_link(a, touched);
  attribute(a, effect, touched.file);
  if (a.result == -ENOTDIR && effect == Effect::kOpen && !(a.marks & FEIGN_NOFOLLOW))
    names_.file(touched.file).followed = true;  // up to a file
  if (a.result >= 0) found(a, effect, touched);
}

// A directory in which the trace shows nothing had something in it.
void Needs::not_empty(const feign_activity& a, Effect effect, const Namespace::Touched& touched) {
  const bool to = effect == Effect::kRename;
  bool any = false;
  names_.for_each_child(names_.canonical(to ? a.path2 : a.path, false),
                        [&](uint32_t, uint32_t at) { any = any || at != 0; });
  if (!any) seen(to ? touched.file2 : touched.file).not_empty = names_.file_count();
}

// The name was used before it turned out to be a link: what is known is of what lies behind it.
void Needs::is_link(const feign_activity& a, const Namespace::Touched& touched) {
  names_.file(touched.file).followed = names_.file(touched.file2).followed;
  const uint32_t behind = names_.at(names_.canonical(a.path, true));
  // (Behind it is the link itself, if its target was not shown.)
  if (behind != 0 && behind != touched.file2) is_same(touched.file2, behind);
  // A listing there showed what the trace had made by the other name.
  const auto l = listings_.find(behind);
  if (behind == 0 || l == listings_.end()) return;
  const std::string before(strings_.text(names_.file(behind).initial_path));
  for (Listing& one : l->second)
    names_.for_each_child(names_.canonical(a.path, true), [&](uint32_t path, uint32_t at) {
      if (at == 0 || at >= one.known || !names_.file(at).created) return;
      const uint32_t then = in_directory(before, path);
      auto& others = one.others;
      if (std::find(others.begin(), others.end(), then) != others.end()) return;
      one.by_trace += entry_bytes(name_of(strings_.text(path)));
      others.push_back(then);
    });
}

// What a call that succeeded tells of what has the name.
void Needs::found(const feign_activity& a, Effect effect, const Namespace::Touched& touched) {
  switch (effect) {
    case Effect::kAccess:
      if (a.mode & X_OK) shows_mode(touched.file, 0111);
      return;
    case Effect::kChmod:
      seen(touched.file).own_mode = true;
      return;
    case Effect::kChdir:
      seen(touched.file).directory = true;
      return;
    case Effect::kOpen: {
      Seen& file = seen(touched.file);
      const uint32_t how = a.flags & O_ACCMODE;  // what was possible was not denied
      file.denied &= ~(how == O_RDONLY ? R_OK : how == O_WRONLY ? W_OK : R_OK | W_OK);
      file.by_parts |= FEIGN_DEPTH(a.marks) != 0 && a.op < stdio_;
      if (a.flags & O_DIRECTORY) file.directory = true;
      if (a.flags & O_TRUNC) {
        file.exact = file.changed = true;
        file.now = 0;
      }
      return;
    }
    case Effect::kTruncate:
      seen(touched.file).exact = seen(touched.file).changed = true;
      seen(touched.file).now = a.length;
      return;
    case Effect::kStat:
    case Effect::kStatat:
      if (S_ISREG(a.mode)) {
        if (touched.file2 != 0) is_same(touched.file2, touched.file);
        grew(touched.file, a.length);
        seen(touched.file).exact = true;
        shows_mode(touched.file, a.mode);
        if (names_.has_links() && !seen(touched.file).changed) told_sizes_[a.path] = a.length;
      }
      if (S_ISDIR(a.mode)) {
        seen(touched.file).directory = true;
        shows_mode(touched.file, a.mode);
      }
      if (S_ISLNK(a.mode) && a.length < 4096) {
        seen(touched.file).link = a.length;
        ++seen(touched.file).links;
      }
      return;
    case Effect::kReadlink:
      // A link whose target the trace does not show still has the length that was read.
      // (Of several, with buffers that grew, the longest.)
      if (const uint32_t target = names_.file(touched.file).target;
          a.result > 0 && a.result < 4096 &&
          (target == 0 ||
           (a.path2 == 0 && strings_.text(target).size() < static_cast<size_t>(a.result) &&
            target == names_.unknown_target(touched.file, strings_.text(target).size())))) {
        names_.file(touched.file).target =
            names_.unknown_target(touched.file, static_cast<size_t>(a.result));
      } else if (names_.file(touched.file).by_open && a.path2 == 0 && a.result < 4096) {
        const uint32_t name = names_.canonical(a.path, false);
        const uint32_t target = names_.file(touched.file).target;
        const auto length = static_cast<size_t>(a.result);
        const std::string same = as_long(strings_.text(name), strings_.text(target), length);
        if (same.size() == length)
          names_.file(touched.file).target = strings_.intern(same);
        else
          names_.leads_by_another(name, names_.unknown_target(touched.file, length));
      }
      return;
    default:
      return;
  }
}

}  // namespace feign
