// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <unordered_set>

#include "layers/posix_ops.h"
#include "prepare/prepare.h"

namespace feign {
namespace {

// What an entry of this name adds to getdents64's result (getdents(2)).
uint64_t entry_bytes(std::string_view name) { return (19 + name.size() + 1 + 7) / 8 * 8; }
std::string_view name_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

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
  if (s.cut) return;
  Namespace::File& f = names_.file(file);
  if (f.created && f.certain) return;
  f.created = false;  // O_CREAT found it there
  s.initial = std::max(s.initial, size);
}

void Needs::listed(const feign_activity& a, uint32_t file) {
  if (a.result < 0) return;
  Listing& l = listings_[file];
  if (l.handle == 0) l.handle = a.handle;
  if (l.over || l.handle != a.handle) return;  // others may read it at the same time
  if (a.result > 0 && l.bytes == 0) {
    // How the trace's own doings changed what a listing shows, compared with the beginning.
    names_.for_each_child(a.path, [&](uint32_t path, uint32_t at) {
      const uint64_t bytes = entry_bytes(name_of(strings_.text(path)));
      const bool was = at != 0 && !names_.file(at).created && names_.file(at).initial_path == path;
      if (at != 0 && !was) l.by_trace += static_cast<int64_t>(bytes);
    });
  }
  l.bytes += static_cast<uint64_t>(a.result);
  l.over = a.result == 0;
}

void Needs::by_descriptor(const feign_activity& a, Effect effect, uint32_t file) {
  const uint64_t done = a.result > 0 ? static_cast<uint64_t>(a.result) : 0;
  switch (effect) {
    case Effect::kRead:
    case Effect::kPread:
    case Effect::kPread2:
    case Effect::kCopy:  // what is read is what must be there
      if (done != 0) grew(file, a.offset + done);
      return;
    case Effect::kWrite:
    case Effect::kPwrite:
    case Effect::kPwrite2: {
      Seen& s = seen(file);
      s.now = std::max(s.now, a.offset + done);
      return;
    }
    case Effect::kSeek:
      if (a.flags == SEEK_END && a.result >= 0 && static_cast<int64_t>(a.offset) <= a.result)
        grew(file, static_cast<uint64_t>(a.result) - a.offset);
      return;
    case Effect::kFstat:
    case Effect::kStatat:
      if (a.result >= 0 && S_ISREG(a.mode)) {
        grew(file, a.length);
        seen(file).mode |= a.mode & 0777;
      }
      if (a.result >= 0 && S_ISDIR(a.mode)) names_.file(file).type = Namespace::Type::kDirectory;
      return;
    case Effect::kFtruncate:
      if (a.result < 0) return;
      if (a.length < seen(file).now) seen(file).cut = true;
      seen(file).now = a.length;
      return;
    case Effect::kFallocate:
      if (a.result >= 0 && a.flags == 0)
        seen(file).now = std::max(seen(file).now, a.offset + a.length);
      return;
    case Effect::kList:
      names_.file(file).type = Namespace::Type::kDirectory;
      listed(a, file);
      return;
    default:
      return;
  }
}

void Needs::add(const feign_activity& a) {
  const std::span<const Call> calls = posix_calls();
  if (a.op >= calls.size() || (a.marks & (FEIGN_NOT_A_FILE | FEIGN_NO_RESULT))) return;
  const Effect effect = calls[a.op].effect;
  const bool opens = effect == Effect::kOpen || effect == Effect::kCreat;
  if (a.handle != 0 && !opens) {
    const auto own = own_.find(a.file);
    if (own != own_.end()) by_descriptor(a, effect, own->second);
    return;
  }
  if (effect == Effect::kExec || effect == Effect::kGetcwd || a.path == 0) return;
  const Namespace::Touched touched = names_.apply(a, effect);
  if (touched.file == 0) return;
  if (a.file != 0) own_[a.file] = touched.file;
  if (a.result < 0) return;
  if (!(a.marks & FEIGN_NOFOLLOW)) seen(touched.file).followed = true;
  if (a.flags & O_DIRECTORY && effect == Effect::kOpen) seen(touched.file).directory = true;
  switch (effect) {
    case Effect::kAccess:
      if (a.mode & X_OK) seen(touched.file).mode |= 0111;
      return;
    case Effect::kChdir:
      seen(touched.file).directory = true;
      return;
    case Effect::kOpen:
    case Effect::kCreat:
      if ((a.flags & O_TRUNC) && (a.flags & O_ACCMODE) != O_RDONLY) {
        seen(touched.file).cut = true;
        seen(touched.file).now = 0;
      }
      return;
    case Effect::kTruncate:
      if (a.length < seen(touched.file).now) seen(touched.file).cut = true;
      seen(touched.file).now = a.length;
      return;
    case Effect::kStat:
    case Effect::kLstat:
    case Effect::kStatat:
      if (S_ISREG(a.mode)) {
        grew(touched.file, a.length);
        seen(touched.file).mode |= a.mode & 0777;
      }
      if (S_ISDIR(a.mode)) seen(touched.file).directory = true;
      return;
    case Effect::kReadlink:
      // A link whose target the trace does not show still has the length that was read.
      if (names_.file(touched.file).target == 0 && a.result > 0 && a.result < 4096)
        names_.file(touched.file).target =
            strings_.intern(std::string(static_cast<size_t>(a.result), 'x'));
      return;
    default:
      return;
  }
}

std::vector<Needed> Needs::finish() {
  std::vector<Needed> out;
  std::unordered_set<uint32_t> there, with_children;  // paths
  std::unordered_map<uint32_t, uint32_t> parents;
  names_.for_each_name([&](uint32_t path, uint32_t parent, uint32_t) { parents[path] = parent; });
  std::vector<uint32_t> files;
  for (uint32_t id = 1; id < names_.file_count(); ++id) {
    const Namespace::File& f = names_.file(id);
    if (f.created || f.initial_path == 0) continue;
    if (there.insert(f.initial_path).second) files.push_back(id);
  }
  // What lies in a directory that was not there cannot have been there either.
  const auto reachable = [&](uint32_t path) {
    for (uint32_t p = parents.contains(path) ? parents[path] : 0; p != 0; p = parents[p])
      if (!there.contains(p) && strings_.text(p) != "/") return false;
    return true;
  };
  std::unordered_map<uint32_t, uint64_t> entries;  // directory -> bytes of its first entries
  for (const uint32_t path : there)
    if (const uint32_t parent = parents.contains(path) ? parents[path] : 0; parent != 0) {
      with_children.insert(parent);
      entries[parent] += entry_bytes(name_of(strings_.text(path)));
    }
  for (const uint32_t id : files) {
    const Namespace::File& f = names_.file(id);
    if (!reachable(f.initial_path)) continue;
    Needed n;
    n.path = strings_.text(f.initial_path);
    if (n.path == "/") continue;
    const bool has_children = with_children.contains(f.initial_path);
    if (f.type == Namespace::Type::kDirectory || (has_children && f.target == 0)) {
      n.type = Needed::kDirectory;
    } else if (f.type == Namespace::Type::kSymlink && f.target != 0) {
      n.type = Needed::kSymlink;
      n.target = strings_.text(f.target);
      // What lies behind it, if nothing else says so.
      const std::string to =
          n.target[0] == '/' ? n.target : n.path.substr(0, n.path.rfind('/') + 1) + n.target;
      const uint32_t behind = strings_.intern(clean_path(to));
      const uint32_t known = names_.at(behind);
      if ((seen(id).followed || has_children) && !there.contains(behind) &&
          (known == 0 || !names_.file(known).created)) {
        there.insert(behind);
        out.push_back({seen(id).directory || has_children ? Needed::kDirectory : Needed::kFile,
                       seen(id).mode, seen(id).initial, std::string(strings_.text(behind)), ""});
      }
    } else {
      n.type = Needed::kFile;
      n.size = seen(id).initial;
      n.mode = seen(id).mode;
    }
    out.push_back(std::move(n));

    // Entries that nothing else in the trace names, so that a listing is as long as it was.
    const auto l = listings_.find(id);
    if (l == listings_.end() || l->second.bytes < 48) continue;
    int64_t missing = static_cast<int64_t>(l->second.bytes) - 48 -
                      static_cast<int64_t>(entries[f.initial_path]) - l->second.by_trace;
    for (int i = 0; missing >= 24 && missing % 8 == 0 && i < 100'000; ++i) {
      const int64_t bytes = missing > 272 ? 32 : missing;  // 272: a name of 252 bytes
      std::string name = "~" + std::to_string(i);
      name.resize(static_cast<size_t>(bytes) - 20, '~');
      Needed filler;
      filler.path = std::string(strings_.text(f.initial_path)) + "/" + name;
      out.push_back(std::move(filler));
      missing -= bytes;
    }
  }
  names_.for_each_name([&](uint32_t path, uint32_t parent, uint32_t) {
    if (parent == 0 || there.contains(path)) return;
    if (!there.contains(parent) && strings_.text(parent) != "/") return;
    Needed n;
    n.type = Needed::kAbsent;
    n.path = strings_.text(path);
    out.push_back(std::move(n));
  });
  std::sort(out.begin(), out.end(),
            [](const Needed& a, const Needed& b) { return a.path < b.path; });
  return out;
}

}  // namespace feign
