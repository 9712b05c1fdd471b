// SPDX-License-Identifier: MIT
// What calls tell of names by their recorded results: what was there, what was not, what is now.
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>

#include <cerrno>

#include "resolve/namespace.h"
#include "resolve/path_rules.h"

namespace feign {

Namespace::Touched Namespace::apply(const feign_activity& a, Effect effect) {
  const Touched t = applied(a, effect);
  if (a.result >= 0 && t.file != 0 && !(a.marks & FEIGN_NOFOLLOW)) files_[t.file].followed = true;
  if (opens_told_ && a.result >= 0 && a.path != 0) goes_by_links(a.path);
  return t;
}

Namespace::Touched Namespace::applied(const feign_activity& a, Effect effect) {
  if (a.path == 0 || (a.marks & FEIGN_NO_RESULT)) return {};
  const uint32_t slot = slot_of(canonical(a.path, !(a.marks & FEIGN_NOFOLLOW)));
  switch (effect) {
    case Effect::kOpen:
      return opened(a, slot);
    case Effect::kMkdir:
    case Effect::kBind:
    case Effect::kMknod:
    case Effect::kSymlink:
      return made(a, effect, slot);
    case Effect::kUnlink:
    case Effect::kUnlinkat:
    case Effect::kRmdir:
      return removed(a, effect, slot);
    case Effect::kRename:
      return a.path2 != 0 ? renamed(a, slot, slot_of(canonical(a.path2, false))) : Touched{};
    case Effect::kLink:
      return a.path2 != 0 ? linked(a, slot, slot_of(canonical(a.path2, false))) : Touched{};
    case Effect::kReadlink:
      return link_read(a, slot);
    case Effect::kStat:
    case Effect::kStatat:
      return looked_at(a, effect, slot);
    case Effect::kChdir:
      if (a.result < 0) return failed(a, effect, slot);
      return {present(slot, Type::kDirectory)};
    case Effect::kAccess:
    case Effect::kChmod:
    case Effect::kAttr:
    case Effect::kGetXattr:
    case Effect::kSetXattr:
    case Effect::kRemoveXattr:
    case Effect::kChroot:
    case Effect::kTruncate:
      return used(a, effect, slot);
    default:
      return {slots_[slot].file};
  }
}

// ---- one effect each ----------------------------------------------------------------------------

// Whether openat2 goes by no links at all.
static bool goes_by_no_links(const feign_activity& a) {
  return a.value_count != 0 && (a.values[0] & (RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)) != 0;
}

// Whether an open failed since its last name is a link. (With O_DIRECTORY that is ENOTDIR, and with
// O_PATH no failure: then one above leads to itself.)
bool Namespace::refuses_that_link(const feign_activity& a, uint32_t slot) const {
  const bool nofollow = (a.flags & O_NOFOLLOW) != 0;
  if (a.result != -ELOOP || (nofollow && (a.flags & (O_DIRECTORY | O_PATH)))) return false;
  if (!goes_by_no_links(a)) return nofollow;
  // Where openat2 refuses all links, it is the last name if all those above it that were named (0:
  // how many is not known) are directories, and can be nothing else.
  const bool any = (a.values[0] & RESOLVE_NO_SYMLINKS) != 0 && a.path == slots_[slot].path &&
                   (a.flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL);
  uint32_t above = slots_[slot].parent, more = FEIGN_NAMED_BY(a.marks);
  for (; more > 1 && above != 0; --more, above = slots_[above].parent)
    if (may_be_link(above) || files_[slots_[above].file].type != Type::kDirectory) return false;
  return any && more != 0;
}

Namespace::Touched Namespace::opened(const feign_activity& a, uint32_t slot) {
  Touched t;
  const bool creates = (a.flags & O_CREAT) != 0;
  const bool exclusive = (a.flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL);
  if (a.result < 0) {
    if (a.result == -EISDIR && creates && follows_slash(a.path))
      t.file = slots_[slot].file;  // a directory, or nothing at all
    else if (a.result == -EISDIR)
      t.file = present(slot, Type::kDirectory);
    else if (a.result == -ENOTDIR && (a.flags & O_DIRECTORY) &&
             may_be_directory(slots_[slot].parent))
      t.file = guess(slot, Type::kFile);
    else if (a.result == -ENXIO && (a.flags & O_NONBLOCK) && (a.flags & O_ACCMODE) == O_WRONLY)
      t.file = present(slot, Type::kFifo);  // which nobody reads
    else if (a.result == -ENXIO)
      t.file = present(slot, Type::kOther);
    else if (refuses_that_link(a, slot) && slots_[slot].state == State::kAbsent &&
             !slots_[slot].missed)
      return t;  // known not to be there: a call that has not come back yet is making it
    else if (refuses_that_link(a, slot) && (slots_[slot].file == 0 || may_be_link(slot)))
      t.file = some_link(slot);
    else if (tells_there(a.result))
      t.file = present(slot, Type::kUnknown);
    else
      return failed(a, Effect::kOpen, slot);
    return t;
  }
  if ((a.flags & O_TMPFILE) == O_TMPFILE) {
    (void)present(slot, Type::kDirectory);
    t.file = new_file(Type::kFile, true, true);
    t.created = true;
    return t;
  }
  if (creates && slots_[slot].file == 0) {
    t.file = create(slot, Type::kFile, exclusive);
    t.created = true;
  } else {
    t.file = present(slot, (a.flags & O_DIRECTORY) ? Type::kDirectory : Type::kUnknown);
    if (!(a.flags & O_PATH))
      no_socket(t.file, (a.flags & O_DIRECTORY) ? Type::kDirectory : Type::kFile);
  }
  if (t.file != 0 && (a.flags & O_TRUNC))  // even if it is opened for reading
    files_[t.file].has(0);
  const bool changes = (a.flags & O_ACCMODE) != O_RDONLY || (a.flags & O_TRUNC) != 0;
  if (creates || (changes && (a.flags & O_PATH) == 0)) {
    no_directory(slot);
    if (files_[t.file].type == Type::kUnknown) files_[t.file].type = Type::kFile;
  }
  return t;
}

// A directory, a socket, a device or a fifo, a link.
Namespace::Touched Namespace::made(const feign_activity& a, Effect effect, uint32_t slot) {
  if (a.result == -EEXIST && effect == Effect::kMkdir) {
    // Known not to be there: a call that has not come back yet is making it.
    if (slots_[slot].state == State::kAbsent) return {};
    const File& f = files_[slots_[slot].file];
    if (f.type == Type::kFile || f.linked) return {present(slot, Type::kFile)};
    const bool known = f.type != Type::kUnknown;
    const uint32_t file = present(slot, Type::kDirectory);
    files_[file].supposed |= !known;
    return {file};
  }
  if (a.result == -EEXIST || (a.result == -EADDRINUSE && effect == Effect::kBind))
    return {present(slot, Type::kUnknown)};
  if (a.result < 0) return failed(a, effect, slot);
  Type type = Type::kFile;
  if (effect == Effect::kMkdir) type = Type::kDirectory;
  if (effect == Effect::kSymlink) type = Type::kSymlink;
  if (effect == Effect::kMknod || effect == Effect::kBind) {
    if (S_ISFIFO(a.mode)) type = Type::kFifo;
    if (S_ISSOCK(a.mode) || S_ISCHR(a.mode) || S_ISBLK(a.mode)) type = Type::kOther;
  }
  const uint32_t file = create(slot, type, true);
  if (type == Type::kSymlink) {
    files_[file].target = a.path2;
    ++links_;
    links_changed();
  }
  return {.file = file, .created = true};
}

Namespace::Touched Namespace::removed(const feign_activity& a, Effect effect, uint32_t slot) {
  Touched t;
  const bool directory =
      effect == Effect::kRmdir || (effect == Effect::kUnlinkat && (a.flags & AT_REMOVEDIR));
  if (a.result < 0) {
    if (a.result == -EISDIR || a.result == -ENOTEMPTY) {
      t.file = present(slot, Type::kDirectory);
    } else if (a.result == -ENOTDIR && directory && may_be_directory(slots_[slot].parent)) {
      const bool lost = slots_[slot].missed || files_[slots_[slot].file].nowhere;
      (void)guess(slot, lost ? Type::kUnknown : Type::kFile);
      t.file = no_file_nor_directory(slot);
    } else {
      return failed(a, effect, slot);
    }
    return t;
  }
  t.file = present(slot, directory ? Type::kDirectory : Type::kUnknown);
  if (!directory) t.file = no_file_nor_directory(slot);
  take(slot);
  return t;
}

Namespace::Touched Namespace::renamed(const feign_activity& a, uint32_t slot, uint32_t to) {
  Touched t;
  // What refused it was there, if it was not something above it.
  const bool refuses = (a.flags & (RENAME_EXCHANGE | RENAME_NOREPLACE)) == 0;
  const bool above = !refuses || !may_be_directory(slots_[slot].parent) ||
                     !may_be_directory(slots_[to].parent) || below(to, slot) || below(slot, to) ||
                     slots_[slot].state == State::kAbsent || slots_[to].state == State::kAbsent;
  if (a.result == -EISDIR) {
    t.file = present(slot, Type::kUnknown);
    no_directory(slot);
    (void)present(to, Type::kDirectory);
    return t;
  }
  const auto known = [&](uint32_t s) {
    const uint32_t file = slots_[known_above(s)].file;
    return file == 0 || files_[file].type != Type::kUnknown;
  };
  if (a.result == -ENOTDIR && !above && may_be_directory(slot) && !is_directory(to) &&
      known(slot) && known(to)) {
    t.file = guess(slot, Type::kDirectory);
    (void)guess(to, Type::kFile);
    return t;
  }
  if (a.result == -EEXIST && (a.flags & RENAME_NOREPLACE)) {
    t.file = present(slot, Type::kUnknown);
    (void)present(to, Type::kUnknown);
    return t;
  }
  if (a.result == -ENOTEMPTY) {
    // (A directory that it is in is not empty, whatever is to take its place.)
    t.file = present(slot, below(slot, to) ? Type::kUnknown : Type::kDirectory);
    t.file2 = present(to, Type::kDirectory);
    return t;
  }
  if (a.result < 0) return failed(a, Effect::kRename, slot);
  // Nothing but a directory takes the place of one.
  const bool directory = (a.flags & RENAME_EXCHANGE) == 0 && is_directory(to) && !may_be_link(to);
  t.file = present(slot, directory ? Type::kDirectory : Type::kUnknown);
  if (below(to, slot) || below(slot, to)) return t;  // the kernel would not have done it
  if (a.flags & RENAME_EXCHANGE) {
    (void)present(to, Type::kUnknown);
    exchange(slot, to);
    return t;
  }
  if (slots_[to].parent != 0) (void)holds(slots_[to].parent);
  t.file2 = slots_[to].file;
  if (t.file2 == t.file) {  // two names of one file: rename does nothing
    t.file2 = 0;
    return t;
  }
  // Nor does one take the place of anything else.
  const Type went = files_[t.file2].type;
  if (files_[t.file].supposed && went != Type::kUnknown && went != Type::kDirectory)
    no_directory(slot);
  const Type moved = files_[t.file].type;
  const bool supposed = files_[t.file2].supposed && moved != Type::kDirectory;
  if (t.file2 != 0 &&
      (moved == Type::kSymlink || moved == Type::kOther || supposed || !may_be_directory(slot)))
    t.file2 = no_file_nor_directory(to);
  move(slot, to);
  if (a.flags & RENAME_WHITEOUT) (void)create(slot, Type::kOther, true);
  return t;
}

Namespace::Touched Namespace::linked(const feign_activity& a, uint32_t slot, uint32_t to) {
  Touched t;
  if (a.result == -EEXIST) {
    t.file = present(slot, Type::kUnknown);
    (void)present(to, Type::kUnknown);
    return t;
  }
  if (a.result < 0) return failed(a, Effect::kLink, slot);
  (void)present(slot, Type::kUnknown);
  t.file = no_file_nor_directory(slot);
  files_[t.file].linked = true;
  if (slots_[to].parent != 0) (void)holds(slots_[to].parent);
  take(to);
  put(to, t.file);
  return t;
}

Namespace::Touched Namespace::link_read(const feign_activity& a, uint32_t slot) {
  Touched t;
  if (a.result == -EINVAL) {  // no link: a file or a directory
    const uint32_t itself = link_above(slot);
    t.file = present(itself, Type::kUnknown);
    files_[t.file].nowhere = false;
    slots_[itself].no_link = true;
    return t;
  }
  if (a.result < 0) return failed(a, Effect::kReadlink, slot);
  slot = own_link(slot, a.path);
  const bool met = slots_[slot].file != 0;
  t.file = present(slot, Type::kSymlink);
  if (!met) files_[t.file].type = Type::kSymlink;
  if (files_[t.file].type != Type::kSymlink) {
    t.file2 = t.file;
    t.file = link_found(slot, a.path2);
    return t;
  }
  // A link stays what it is: where more is read, the buffer held only its beginning before.
  const std::string_view target = strings_.text(files_[t.file].target),
                         read = strings_.text(a.path2);
  if (target.size() < read.size() && read.starts_with(target) && !files_[t.file].assumed)
    leads_to(slot, a.path2);
  if (files_[t.file].assumed && a.path2 != 0) told(slot, a.path2);
  return t;
}

Namespace::Touched Namespace::looked_at(const feign_activity& a, Effect effect, uint32_t slot) {
  if (a.result < 0) return failed(a, effect, slot);
  Type type = Type::kUnknown;
  if (S_ISDIR(a.mode)) type = Type::kDirectory;
  if (S_ISREG(a.mode)) type = Type::kFile;
  if (S_ISLNK(a.mode)) type = Type::kSymlink;
  if (S_ISFIFO(a.mode)) type = Type::kFifo;
  if (S_ISSOCK(a.mode)) type = Type::kOther;  // (a device may be opened: it is taken for a file)
  const bool nofollow = (a.marks & FEIGN_NOFOLLOW) != 0;
  const bool no_link = type != Type::kSymlink && nofollow;
  const uint32_t itself = no_link ? link_above(slot) : nofollow ? own_link(slot, a.path) : slot;
  const uint32_t file = present(itself, type);
  no_socket(file, type);
  if (no_link) slots_[itself].no_link = true;
  if (a.value_count != 0 && type == Type::kFile) return identified_at(itself, a.values[0]);
  return {file};
}

// What says of a name that it is there, and no more.
Namespace::Touched Namespace::used(const feign_activity& a, Effect effect, uint32_t slot) {
  if (a.result == -EISDIR) (void)present(slot, Type::kDirectory);
  // What has no such attribute, has it already, or a longer one.
  if (a.result < 0 && a.result != -ENODATA && a.result != -EEXIST && a.result != -ERANGE)
    return failed(a, effect, slot);
  const uint32_t file = present(slot, Type::kUnknown);
  if (effect == Effect::kTruncate) {
    no_directory(slot);
    if (files_[file].type == Type::kUnknown) files_[file].type = Type::kFile;
  }
  return {file};
}

// ---- calls that failed --------------------------------------------------------------------------

Namespace::Touched Namespace::failed(const feign_activity& a, Effect effect, uint32_t slot) {
  const bool two = effect == Effect::kRename || effect == Effect::kLink;
  const uint32_t to = two ? slot_of(canonical(a.path2, false)) : 0;
  if (a.result == -ENOENT) {
    not_found(a, effect, slot, to);
  } else if (a.result == -ELOOP) {
    const bool any = effect == Effect::kOpen && goes_by_no_links(a);
    const bool follow = (a.marks & FEIGN_NOFOLLOW) == 0;
    if (!any && !circle(follow ? slot : slots_[slot].parent) && two && circle(slots_[to].parent))
      first_found(effect, slot);
  } else if (a.result == -ENOTDIR && (effect == Effect::kChdir || effect == Effect::kChroot) &&
             may_be_directory(slots_[slot].parent)) {
    return {guess(slot, Type::kFile)};
  } else if (a.result == -ENOTDIR) {
    // Of two names, the one in the directory of the other first.
    const bool may_be_second = two && !is_absent(slots_[to].parent);
    const bool told = !may_be_directory(slots_[slot].parent) ||
                      (may_be_second && !may_be_directory(slots_[to].parent));
    const bool swap = may_be_second && below(to, slots_[slot].parent);
    if (!told && !not_directory_above(swap ? to : slot) && may_be_second)
      (void)not_directory_above(swap ? slot : to);
    if (two) first_found(effect, slot);
  }
  return {slots_[slot].file};
}

// The second name is looked for when the first, of a rename its directory, has been found.
void Namespace::first_found(Effect effect, uint32_t slot) {
  if (!may_be_directory(slots_[slot].parent)) return;
  if (effect == Effect::kLink)
    (void)guess(slot, Type::kUnknown);
  else
    (void)guess(slots_[slot].parent, Type::kDirectory);
}

// ENOENT, of `slot` or of `to`: the second name, 0 if the call has one.
void Namespace::not_found(const feign_activity& a, Effect effect, uint32_t slot, uint32_t to) {
  const bool makes = effect == Effect::kOpen && (a.flags & O_CREAT) != 0;
  const bool no_directory =
      makes || effect == Effect::kMkdir || effect == Effect::kMknod || effect == Effect::kBind;
  const uint32_t above = slots_[slot].parent;
  if (no_directory && slots_[slot].file == 0 && slots_[above].file == 0) {
    slots_[above].missed = true;
    absent(above);
  } else if (no_directory && slots_[slot].file == 0) {
    const File& f = files_[slots_[above].file];
    const bool link = f.type == Type::kSymlink && f.target == 0;
    if (!f.followed && (link || f.leads || f.supposed)) leads_nowhere(above);
  }
  if (!makes && !(a.marks & FEIGN_NOFOLLOW)) {
    if (slots_[slot].file != 0)
      leads_nowhere(slot);
    else
      slots_[slot].missed = true;
  }
  if (to == 0) {
    absent(slot);
    return;
  }
  // The second, or its directory, if the first is there.
  const uint32_t first = slots_[slot].file;
  const bool exchange = effect == Effect::kRename && (a.flags & RENAME_EXCHANGE) != 0;
  const uint32_t other = exchange ? to : slots_[to].parent;
  if (is_known(effect == Effect::kLink ? slot : slots_[slot].parent)) no_file_above(to);
  if (is_known(slot) || (first != 0 && slots_[other].file == 0))
    absent(other);
  else if (exchange && first == 0 && slots_[to].file == 0)
    no_file_above(slot);  // either may be missing
  else if (!is_absent(other))
    absent(slot);
}

}  // namespace feign
