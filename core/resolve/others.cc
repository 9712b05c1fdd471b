// SPDX-License-Identifier: MIT
// What processes did to files that are not in the trace (strace without -f), as far as a later call
// tells: a name that was not there is, one that was there is not, a file has another length. It is
// done before that call.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <span>
#include <utility>

#include "base/log.h"
#include "base/path.h"
#include "layers/posix_ops.h"
#include "resolve/resolve.h"

namespace feign {

// A process ended, mostly. (That it was made is no sign: its first call may come later.)
void Resolve::waited_for(const Thread& t, int64_t process, uint32_t flags) {
  if (others_ || other_pids_ || (flags & __WALL)) return;  // a tracer is told of stops
  feign_stream_info info = tables_.streams.info(t.now);
  if (info.process < 0) return;  // the trace has no numbers of the system's
  info.thread = process;
  info.again = 0;  // as the provider numbers it
  const uint32_t stream = tables_.streams.find(info);
  const bool called = stream != 0 && stream < threads_.size() && threads_[stream].called;
  others_ = !called || threads_[stream].starts;
  // With these, and as a tracer is told of whom others made, it may only have been stopped, before
  // any call of its own, if the trace has calls of what others made.
  const uint32_t maker = stream != 0 ? tables_.streams.info(stream).parent : 0;
  const bool by_tracer = maker != 0 && tables_.streams.info(maker).process != info.process;
  if (others_ && (by_tracer || (!called && (flags & (WUNTRACED | WCONTINUED)) != 0)))
    others_ = std::none_of(threads_.begin(), threads_.end(),
                           [](const Thread& one) { return one.called && !one.stranger; });
  if (others_)
    log(FEIGN_LOG_INFO,
        tables_.notes.emplace_back(
            "processes are not in the trace, or not to their end, that others in it waited for "
            "(strace: -f has them): "
            "what they made, removed or wrote is made, removed or given its length before the call "
            "that tells of it, if one does"));
}

// Calls that a directory's descriptor is given are among those on descriptors (strace -e
// trace=desc), and so are opens: only other calls on names show that all such calls are traced.
bool Resolve::is_given(uint32_t op, Role role) const {
  const Call& call = *tables_.ops.call(op);
  const std::span args(call.args, call.arg_count);
  return std::any_of(args.begin(), args.end(),
                     [role](const CallArg& arg) { return arg.role == role; });
}

void Resolve::calls_by_name(const feign_activity& a, Effect effect) {
  calls_by_name_ = calls_by_name_ || (a.path != 0 && effect != Effect::kOpen &&
                                      effect != Effect::kCreat && effect != Effect::kBind &&
                                      is_given(a.op, Role::kPath) && !is_given(a.op, Role::kDir));
}

// A trace whose calls were chosen (strace -e trace=openat,read,write) may lack those that make,
// move and remove names: then a call finds what cannot be after the last one on that name. It can
// only be told of calls that had an order, and where all have the same mounts: one may hide names.
void Resolve::lacks_names(const feign_activity& a, Effect effect) {
  if (changes_names(effect)) (is_given(a.op, Role::kDir) ? tells_names_at_ : tells_names_) = true;
  if (others_ || other_mounts_ || tells_names_ || (tells_names_at_ && calls_by_name_) ||
      a.path == 0 || (a.marks & FEIGN_NO_RESULT))
    return;
  const bool follow = (a.marks & FEIGN_NOFOLLOW) == 0;
  const uint32_t path = names_.canonical(a.path, follow);
  const bool ok = a.result >= 0;
  // By the same words: a link that is told later explains nothing of these.
  const auto changed = [&](uint32_t name, Told is, bool links) {
    if (is == Told::kNotSaid && !ok) return false;
    const Named now{recorded_, ok || is != Told::kNothing};
    const auto [last, first] = named_.try_emplace((uint64_t{name} << 1) + links, now);
    const Named before = std::exchange(last->second, now);
    return !first && is != Told::kNotSaid && before.there != (is != Told::kNothing) &&
           (before.stream == recorded_ || threads_[before.stream].ended);
  };
  const auto cannot_be = [&](uint32_t name, Told is) {
    const uint32_t file = names_.at(name);
    if (is == Told::kNothing) return file != 0 && is_another(a, names_.file(file), is, follow);
    return is != Told::kNotSaid && names_.absent_at(name);
  };
  const Told is = told(a, effect);
  const std::string_view text = tables_.strings.text(a.path);
  const uint32_t said = tables_.strings.intern(text.substr(0, text.rfind('/')));
  const Told above = ok                             ? Told::kDirectory
                     : makes_nowhere(a, effect, is) ? Told::kNothing
                                                    : Told::kNotSaid;
  // An open that follows no links opens none, but with O_PATH.
  const bool link = !follow && !(effect == Effect::kOpen && (a.flags & O_PATH) == 0);
  const bool moved = changed(said, above, false);
  bool other = changed(a.path, is, link);
  // What is found behind links has the name that it was asked for by, be that a link.
  if (link ? is == Told::kNothing : ok) other |= changed(a.path, is, !link);
  others_ = (moved && cannot_be(names_.above(path), above)) || (other && cannot_be(path, is));
  if (others_)
    log(FEIGN_LOG_INFO,
        tables_.notes.emplace_back(
            "names are found otherwise than the trace's calls leave them, of which none but opens "
            "makes, moves or removes any (strace: -f -e trace=file,desc,process has such calls): "
            "what must have been done is done before the call that tells of it"));
}

// Whether it does with a name what is done with one that a bind has made, and does not tell what
// that is.
static bool is_done_with_bound(const feign_activity& a, Effect effect) {
  return a.result >= 0 && (effect == Effect::kChmod || effect == Effect::kAttr ||
                           effect == Effect::kRename || effect == Effect::kUnlink ||
                           (effect == Effect::kUnlinkat && (a.flags & AT_REMOVEDIR) == 0));
}

// Sockets get names by bind alone, which strace -e trace=file,desc lacks: where the trace has none,
// a socket that is found where nothing is was bound since. So was, where the trace has sockets that
// no call of it made, what a thread changes or takes away, unless another one was last to find
// nothing there or to take the name away: as nothing tells what that is, a file stands for it.
void Resolve::lacks_binds(const feign_activity& a, Effect effect) {
  if (binds_ || others_ || other_mounts_ || a.path == 0 || (a.marks & FEIGN_NO_RESULT)) return;
  const bool follow = (a.marks & FEIGN_NOFOLLOW) == 0, ok = a.result >= 0;
  const Told is = told(a, effect);
  bool bound = is == Told::kSpecial && S_ISSOCK(a.mode);
  if (network_ && !bound) return;
  const uint32_t path = names_.canonical(a.path, follow);
  if (!network_) {
    const auto at = lacked_.find(path);
    const bool nobody_else = at == lacked_.end() || at->second == recorded_;
    bound |= nobody_else && untold_sockets_ && is == Told::kAny && is_done_with_bound(a, effect) &&
             !names_.absent_at(names_.above(path));
    const bool removed = ok && (effect == Effect::kUnlink || effect == Effect::kUnlinkat ||
                                effect == Effect::kRename);
    if (removed || (is == Told::kNothing && a.result == -ENOENT))
      lacked_[path] = recorded_;
    else if (ok && at != lacked_.end())
      lacked_.erase(at);
  }
  if (bound && names_.absent_at(path)) there_is(a, is, path, follow);
  if (by_others_.empty() || std::exchange(binds_said_, true)) return;
  log(FEIGN_LOG_INFO,
      tables_.notes.emplace_back(
          "names are found that nothing had, and the trace has no bind (strace: "
          "-e trace=file,desc,process,network has it): they are made before the call that tells of "
          "them"));
}

feign_activity& Resolve::other(const feign_activity& before, uint32_t op, uint32_t path) {
  feign_activity& a = by_others_.emplace_back(kBlankActivity);
  a.op = op;
  a.stream = before.stream;
  a.start_ns = before.start_ns;
  a.place = before.place;
  a.path = path;
  a.marks = FEIGN_INJECTED | FEIGN_RESOLVED;
  if (op != FEIGN_POSIX_TRUNCATE) a.marks |= FEIGN_NOFOLLOW;
  return a;
}

void Resolve::does(feign_activity& other) {
  const Namespace::Touched touched = names_.apply_plain(other, tables_.ops.call(other.op)->effect);
  other.file = touched.file;
  if (touched.created) other.marks |= FEIGN_CREATES;
  if (other.op == FEIGN_POSIX_RMDIR) {
    other.marks |= FEIGN_DIRECTORY;
    removed(other.path);
  }
  if (other.op == FEIGN_POSIX_TRUNCATE && other.file != 0)
    names_.file(other.file).has(other.length);
}

// What a call tells of the name that it is given: what is there before it.
Resolve::Told Resolve::told(const feign_activity& a, Effect effect) {
  const bool ok = a.result >= 0;
  const Told made = ok ? Told::kNothing : a.result == -EEXIST ? Told::kAny : Told::kNotSaid;
  switch (effect) {
    case Effect::kOpen:
      if (a.result == -EISDIR) return Told::kDirectory;
      if ((a.flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL)) return made;
      if (a.flags & O_CREAT) return Told::kNotSaid;
      if (a.result == -ENOTDIR && (a.flags & O_DIRECTORY)) return Told::kFile;
      if (ok && (a.flags & O_DIRECTORY)) return Told::kDirectory;  // O_TMPFILE, too
      if (ok && (a.flags & O_ACCMODE) != O_RDONLY) return Told::kFile;
      break;
    case Effect::kMkdir:
    case Effect::kMknod:
    case Effect::kSymlink:
    case Effect::kBind:
      return made;
    case Effect::kStat:
    case Effect::kStatat:
      if (ok && S_ISDIR(a.mode)) return Told::kDirectory;
      if (ok && S_ISREG(a.mode)) return Told::kFile;
      if (ok && S_ISLNK(a.mode)) return Told::kLink;
      if (ok && (S_ISFIFO(a.mode) || S_ISSOCK(a.mode))) return Told::kSpecial;
      if (ok && (a.mode & S_IFMT) != 0) return Told::kNotSaid;
      break;
    case Effect::kUnlink:
    case Effect::kUnlinkat:
      if (a.result == -EISDIR) return Told::kDirectory;
      if (effect == Effect::kUnlink || (a.flags & AT_REMOVEDIR) == 0) break;
      [[fallthrough]];
    case Effect::kRmdir:
    case Effect::kChdir:
      if (ok || a.result == -ENOTEMPTY) return Told::kDirectory;
      if (a.result == -ENOTDIR) return Told::kFile;
      break;
    case Effect::kReadlink:
      if (ok) return a.path2 != 0 ? Told::kLink : Told::kNotSaid;
      if (a.result == -EINVAL) return Told::kAny;
      break;
    case Effect::kRename:
    case Effect::kLink:
      if (!ok) return Told::kNotSaid;
      break;
    case Effect::kGetXattr:
      if (a.result == -ENODATA || a.result == -ERANGE) return Told::kAny;
      break;
    default:
      break;
  }
  return ok ? Told::kAny : a.result == -ENOENT ? Told::kNothing : Told::kNotSaid;
}

// Whether the call would make something, and there is no directory for it. (Of two names it may be
// the other that is missing; of a symbolic link, what it leads to.)
bool Resolve::makes_nowhere(const feign_activity& a, Effect effect, Told is) {
  return a.result == -ENOENT && is == Told::kNotSaid && effect != Effect::kRename &&
         effect != Effect::kLink && effect != Effect::kSymlink;
}

// Whether what is known to be at a name cannot be what the call found there.
bool Resolve::is_another(const feign_activity& a, const Namespace::File& f, Told is, bool follow) {
  if (f.guessed) return false;
  const bool link = f.type == Namespace::Type::kSymlink;
  const bool directory = f.type == Namespace::Type::kDirectory;
  const bool special = f.type == Namespace::Type::kFifo || f.type == Namespace::Type::kOther;
  const bool file = f.type == Namespace::Type::kFile && f.sized;
  switch (is) {
    case Told::kNothing:
      return !f.nowhere && !(link && follow);
    case Told::kFile:  // (what is refused as no directory may be a link)
      return directory || (special && S_ISREG(a.mode)) ||
             (link && !follow && a.result != -ENOTDIR);
    case Told::kDirectory:  // (what was opened for reading is taken to be a file)
      return file || special || (link && !follow);
    case Told::kSpecial:  // (what opens show of a FIFO is what they show of a file)
      return directory || (link && !follow);
    case Told::kLink:
      return link && a.path2 != 0 && f.target != 0 && f.target != a.path2 && !f.assumed;
    default:
      return false;
  }
}

// What a call that names a file tells, before it is done.
void Resolve::by_others(const feign_activity& a, Effect effect) {
  if (a.path == 0 || (a.marks & FEIGN_NO_RESULT)) return;
  const bool follow = (a.marks & FEIGN_NOFOLLOW) == 0, ok = a.result >= 0;
  const bool rename = effect == Effect::kRename, two = rename || effect == Effect::kLink;
  const uint32_t path = names_.canonical(a.path, follow), above = names_.above(path);
  const auto is_directory = [&](uint32_t name) {
    return names_.file(names_.at(name)).type == Namespace::Type::kDirectory;
  };
  Told is = told(a, effect);
  if (effect == Effect::kOpen && is == Told::kNotSaid && ok && names_.at(path) != 0)
    is = Told::kFile;  // which O_CREAT found
  if (ok) there_is(a, Told::kDirectory, above, true);
  if (makes_nowhere(a, effect, is) ||
      (a.result == -ENOENT && is != Told::kNotSaid &&
       is_another(a, names_.file(names_.at(above)), Told::kDirectory, true)))
    there_is(a, Told::kNothing, above, true);
  if (a.result == -ENOTDIR && !two && is == Told::kNotSaid) {
    uint32_t there = above;
    while (there != 0 && names_.at(there) == 0) there = names_.above(there);
    if (there == 0 || there == above || is_directory(there)) there_is(a, Told::kFile, above, true);
  }
  if (ok && is == Told::kDirectory && (effect == Effect::kRmdir || effect == Effect::kUnlinkat))
    (void)emptied_by_others(a, path);
  if (two && ok && a.path2 != 0) {
    const uint32_t to = names_.canonical(a.path2, false);
    there_is(a, Told::kDirectory, names_.above(to), true);
    if (!rename || (a.flags & RENAME_NOREPLACE)) there_is(a, Told::kNothing, to, false);
    if (rename && (a.flags & RENAME_EXCHANGE) == 0 && is_directory(to)) {
      is = Told::kDirectory;
      (void)emptied_by_others(a, to);
    }
  }
  there_is(a, is, path, follow);
}

// At a canonical path, below directories; what cannot be there as well goes.
void Resolve::there_is(const feign_activity& a, Told is, uint32_t path, bool follow) {
  const uint32_t above = path != 0 ? names_.above(path) : 0;
  if (above == 0 || is == Told::kNotSaid) return;  // "/" stays
  if (const uint32_t file = names_.at(path);
      file != 0 && is_another(a, names_.file(file), is, follow))
    removed_by_others(a, path);
  if (is == Told::kNothing || !names_.absent_at(path)) return;
  there_is(a, Told::kDirectory, above, true);
  less_unnamed(a, above, entry_bytes(name_of(tables_.strings.text(path))));
  const bool directory = is == Told::kDirectory, link = is == Told::kLink;
  const bool special = is == Told::kSpecial;
  const uint32_t type = directory ? 0 : special ? a.mode & S_IFMT : S_IFREG;
  feign_activity& made = other(a,
                               directory ? FEIGN_POSIX_MKDIR
                               : link    ? FEIGN_POSIX_SYMLINK
                                         : FEIGN_POSIX_MKNOD,
                               path);
  constexpr uint32_t kUsualMode = 0755;
  const bool known = path == names_.canonical(a.path, (a.marks & FEIGN_NOFOLLOW) == 0);
  const bool stat = known && (is == Told::kFile || directory || special) && (a.mode & S_IFMT) != 0;
  if (link)
    made.path2 = a.path2 != 0
                     ? a.path2
                     : names_.unknown_target(0, std::clamp<size_t>(a.length, 1, PATH_MAX - 1));
  else
    made.mode = (stat ? a.mode & 07777 : kUsualMode) | type;
  does(made);
  if (!stat || is != Told::kFile || a.length == 0) return;
  feign_activity& grown = other(a, FEIGN_POSIX_TRUNCATE, path);
  grown.length = a.length;
  does(grown);
}

// All that is known to be below a name; false if that is nothing.
bool Resolve::emptied_by_others(const feign_activity& a, uint32_t path) {
  std::vector<uint32_t> below;
  names_.for_each_child(path, [&](uint32_t child, uint32_t file) {
    if (file != 0) below.push_back(child);
    if (others_work_ != 0) --others_work_;
  });
  for (const uint32_t child : below) removed_by_others(a, child);
  return !below.empty();
}

void Resolve::removed_by_others(const feign_activity& a, uint32_t path) {
  if (others_work_ == 0 || by_others_.size() >= kMostOthers) return;
  const bool directory = emptied_by_others(a, path) ||
                         names_.file(names_.at(path)).type == Namespace::Type::kDirectory;
  does(other(a, directory ? FEIGN_POSIX_RMDIR : FEIGN_POSIX_UNLINK, path));
}

// The file that a descriptor is of has that length.
void Resolve::resized(const feign_activity& a, const Description& d, uint64_t size) {
  Namespace::File& f = names_.file(d.file);
  if ((d.marks & FEIGN_DIRECTORY) || f.type == Namespace::Type::kDirectory) return;
  if (tells_of_others() && f.sized && f.size != size && d.path != 0 &&
      names_.at(names_.canonical(d.path, true)) == d.file) {
    feign_activity& other = this->other(a, FEIGN_POSIX_TRUNCATE, d.path);
    other.length = size;
    does(other);
  }
  names_.file(d.file).has(size);
}

// A listing that fits into one buffer. If it shows nothing, nothing is there. What else it shows is
// a file under a name of its own until a call tells the name: in a directory of which all else is
// known.
void Resolve::shows_others(const feign_activity& a, const Description& d) {
  // Where the buffer had room left, the listing is over.
  const int64_t room = static_cast<int64_t>(a.length) - a.result;
  if (a.length > INT32_MAX || room < entry_bytes(size_t{NAME_MAX})) return;
  const Namespace::File& f = names_.file(d.file);
  const bool all_known = f.whole || f.surely_made();
  const uint32_t path = d.path != 0 ? names_.canonical(d.path, true) : 0;
  if (path == 0 || names_.above(path) == 0 || names_.at(path) != d.file) return;
  if (a.result == kNoEntries) (void)emptied_by_others(a, path);
  if (!all_known) return;
  const int64_t known = entries(path);
  std::vector<uint32_t>& unnamed = unnamed_[d.file];
  if (known == kNoEntries) unnamed.clear();
  int64_t more = a.result - known;
  if (more < 0) {  // some are gone
    for (int64_t one = 0; !unnamed.empty(); more += one) {
      one = entry_bytes(tables_.strings.text(unnamed.back()));
      if (more + one > 0) break;
      removed_by_others(a, in(path, unnamed.back()));
      unnamed.pop_back();
    }
    if (more < 0) less_unnamed(a, path, -more);
  }
  for (; more >= kLeastEntry && more % 8 == 0; more -= unnamed_entry_bytes(more)) {
    const uint32_t name = another_in(a, path, unnamed_entry_bytes(more));
    if (name == 0) break;
    unnamed.push_back(name);
  }
}

// The name of a new file whose entry is that long; 0 if there are too many.
uint32_t Resolve::another_in(const feign_activity& a, uint32_t directory, int64_t bytes) {
  constexpr uint32_t kMost = 1000;  // so that the shortest names tell them apart
  for (auto n = static_cast<uint32_t>(unnamed_[names_.at(directory)].size()); n < kMost; ++n) {
    const uint32_t name = tables_.strings.intern(unnamed_entry(n, bytes));
    if (names_.at(in(directory, name)) != 0) continue;
    feign_activity& made = other(a, FEIGN_POSIX_MKNOD, in(directory, name));
    made.mode = S_IFREG | 0644;
    does(made);
    return name;
  }
  return 0;
}

// An entry so long of those that a listing showed is gone, or has a name.
void Resolve::less_unnamed(const feign_activity& a, uint32_t directory, int64_t bytes) {
  const auto all = unnamed_.find(names_.at(directory));
  if (all == unnamed_.end()) return;
  for (uint32_t& name : all->second) {
    const int64_t rest = entry_bytes(tables_.strings.text(name)) - bytes;
    if (rest != 0 && rest < kLeastEntry) continue;
    removed_by_others(a, in(directory, name));
    name = rest != 0 ? another_in(a, directory, rest) : 0;
    if (name == 0) all->second.erase(all->second.begin() + (&name - all->second.data()));
    return;
  }
}

uint32_t Resolve::in(uint32_t directory, uint32_t name) {
  std::string path(tables_.strings.text(directory));
  path.append("/").append(tables_.strings.text(name));
  return tables_.strings.intern(path);
}

// The bytes that all that is known to be in a directory has in a listing.
int64_t Resolve::entries(uint32_t directory) {
  int64_t known = kNoEntries;
  names_.for_each_child(directory, [&](uint32_t child, uint32_t file) {
    if (file != 0) known += entry_bytes(name_of(tables_.strings.text(child)));
    if (others_work_ != 0) --others_work_;
  });
  return known;
}

// A listing that showed what is known to be there, by its length: then nothing else was.
void Resolve::listed(const feign_activity& a, Description& d) {
  if (a.op == FEIGN_POSIX_READDIR) return;
  const bool begins = std::exchange(d.unlisted, false);
  if (begins && tells_of_others() && a.op == FEIGN_POSIX_GETDENTS64 && a.result > 0 &&
      others_work_ != 0)
    shows_others(a, d);
  d.listed += static_cast<uint64_t>(a.result);
  if (a.result != 0) return;
  const uint64_t shown = std::exchange(d.listed, 0);
  if (d.path == 0 || d.file == 0) return;
  constexpr uint8_t kMost = 16;  // it takes all of the directory's names each time
  Namespace::File& f = names_.file(d.file);
  if (f.whole || f.listings == kMost) return;
  ++f.listings;
  const uint32_t path = names_.canonical(d.path, true);
  if (static_cast<int64_t>(shown) == entries(path) && names_.at(path) == d.file)
    names_.nothing_else_in(path);
}

}  // namespace feign
