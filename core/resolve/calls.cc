// SPDX-License-Identifier: MIT
// What calls that open, name or copy files do.
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/openat2.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/log.h"
#include "base/path.h"
#include "resolve/path_rules.h"
#include "resolve/resolve.h"

namespace feign {

// What is asked for, as the kernel takes it.
void Resolve::as_asked(feign_activity& a, const Thread& t, Effect effect) {
  if (effect == Effect::kCreat) a.flags = O_WRONLY | O_CREAT | O_TRUNC;
  // open(2): with it, others mean nothing
  if (a.flags & O_PATH) a.flags &= O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  if (effect == Effect::kFopen || effect == Effect::kFreopen) a.mode = 0666;  // fopen(3)
  if (effect == Effect::kTmpfile) {
    a.path = tables_.strings.intern("/tmp");
    a.flags = O_TMPFILE | O_RDWR | O_EXCL;
    a.mode = 0600;
  }
  a.mode &= ~t.place->umask;
}

// Where the name of an open leads: becomes a.path, as it is to be replayed.
Resolve::Way Resolve::way_of(feign_activity& a, Thread& t, uint32_t hint, uint32_t said) {
  const std::string_view text = tables_.strings.text(a.path);
  uint32_t in_root = 0;
  // openat2: "/" is the directory
  if (!text.empty() && a.value_count != 0 && (a.values[0] & RESOLVE_IN_ROOT))
    in_root = absolute(t, a.handle, hint, tables_.strings.intern("."));
  if (in_root != 0) {
    in_root = names_.canonical(in_root, true);
    names_.links_lead_from(in_root);
    const std::string root(tables_.strings.text(in_root));
    in_root = tables_.strings.intern(clean_path(physical(t, root, text, root)));
  }
  const bool up = text.find("..") != std::string_view::npos;
  const bool odd = (a.result == -ENOTDIR && no_directory(t, a.handle, hint)) ||
                   form_decides(a, Effect::kOpen, text);
  a.marks |= FEIGN_AS_NAMED(components(text), 0);
  const bool on = leads_on(a, Effect::kOpen, text);
  const bool nothing = up && (a.result == -ENOENT || a.result == -ELOOP) && in_root == 0 &&
                       ups_from_nothing(t, a.handle, hint, text);
  a.path = odd ? 0 : in_root != 0 ? in_root : absolute(t, a.handle, hint, a.path);
  // ".." may be behind a link that nothing has told of yet, unless it leads up from where that is.
  const bool unnamed = (a.flags & O_TMPFILE) == O_TMPFILE;
  if (up && a.path != 0 && opened_ && !unnamed && !(ups_first(text) && hint != 0 && told_))
    a.path = said;
  if (up && a.path != 0 && a.result == -ENOENT &&
      (names_.at(a.path) != 0 || (nothing && !names_.finds_nothing(a.path))))
    a.path = 0;  // ".." behind a name that is not there
  if (up && a.path != 0 && a.result == -ELOOP && nothing) a.path = 0;  // … or a circle of links
  a.handle = 0;
  a.file = 0;
  const bool follow = on || !(a.marks & FEIGN_NOFOLLOW);
  const bool links =
      a.value_count == 0 || !(a.values[0] & (RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS));
  const bool through = follow && links;
  Description* open = nullptr;
  if (links && a.path != 0)
    if (const uint32_t path = behind_proc(t, tables_.strings.text(a.path), follow, &open); path)
      a.path = path;
  if (on && a.path != 0) a.path = names_.canonical(a.path, true);
  if (open != nullptr && has_lost_name(*open)) return {0, false, open};
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
      if (const feign_activity link = names_.readlink_for(a); link.path != 0)
        (void)names_.assume(link);
      path = names_.canonical(a.path, follow);
    }
  }
  if (t.place->root != 0 || in_root != 0) a.path = path;
  return {path, found, nullptr};
}

// The file that an open found or made, or did not; gives what its descriptor is marked by.
uint32_t Resolve::met_by_open(feign_activity& a, const Thread& t, const Way& way, uint32_t said) {
  const uint32_t path = way.path;
  if (path != 0 && is_disk(tables_.strings.text(path)))
    a.flags &= ~static_cast<uint32_t>(O_CREAT | O_TRUNC);  // a device stays as it is
  if (path == 0 || no_storage(a, path)) {
    a.marks |= FEIGN_NOT_A_FILE;
    return a.marks & (FEIGN_NOT_A_FILE | FEIGN_NO_STORAGE);
  }
  lacks_names(a, Effect::kOpen);
  if (tells_of_others()) by_others(a, Effect::kOpen);
  const Namespace::Touched touched = names_.apply(a, Effect::kOpen);
  a.file = touched.file;
  if (way.found) names_.has_no_links(said);
  // What the call around it made, it made by this one.
  const bool for_outer = touched.file != 0 && touched.file == t.made && (a.flags & O_CREAT);
  if (touched.created || (for_outer && a.result >= 0)) a.marks |= FEIGN_CREATES;
  if (touched.file == 0 || a.result < 0) return 0;
  Namespace::File& f = names_.file(touched.file);
  if (f.type == Namespace::Type::kUnknown) f.type = Namespace::Type::kFile;
  if (f.type == Namespace::Type::kDirectory) return FEIGN_DIRECTORY;
  const bool file = f.type != Namespace::Type::kFifo && f.type != Namespace::Type::kOther;
  return file ? 0 : FEIGN_NOT_A_FILE;
}

void Resolve::gets_descriptor(feign_activity& a, Thread& t, Effect effect, Description* d) {
  const bool stdio = effect == Effect::kFopen || effect == Effect::kFreopen;
  if (stdio && (a.flags & O_APPEND)) stream_appends(*d, a.flags);
  // Within a call that a sandbox traps, a handler of SIGSYS opens what it returns, or gets it from
  // another process: nobody closes it.
  const auto fd = static_cast<int32_t>(a.result);
  if (const auto had = t.table->map.find(fd); had != t.table->map.end() &&
                                              had->second.got.by == t.now &&
                                              had->second.got.since > a.start_ns)
    had->second.unsure = true;
  install(t, fd, d, (a.flags & O_CLOEXEC) != 0).got = {t.now, a.start_ns};
  const bool appends = (a.flags & O_APPEND) != 0;
  if (a.file != 0 && (appends || left_.contains(a.file))) {
    Left& left = left_[a.file];
    left.offset = 0;
    left.appends = appends;
  }
  a.handle = d->handle;
  a.marks |= d->marks;
  const uint32_t stream = stream_before(t, static_cast<int32_t>(a.result));
  if (effect != Effect::kFreopen && stream != 0 && a.path != 0) {
    a.handle2 = stream;
  } else if (effect != Effect::kFreopen && !t.table->unclosed.empty()) {
    a.handle2 = t.table->unclosed.back();
    t.table->unclosed.pop_back();
  }
}

void Resolve::open(Record& r, Thread& t, Effect effect) {
  feign_activity& a = r.a;
  const uint32_t hint = a.file, said = std::exchange(a.path2, 0);
  opened_ = a.result >= 0 && is_path(tables_.strings.text(said));
  if (a.handle == FEIGN_CWD || a.handle == 0) works_in(t, hint);
  as_asked(a, t, effect);
  const Way way = way_of(a, t, hint, said);
  if (way.open != nullptr) return open_again(a, t, *way.open);
  const uint32_t marks = met_by_open(a, t, way, said);
  if (a.result < 0) return;
  Description* d = describe(marks, way.path, a.file, a.flags);
  d->said = said;
  gets_descriptor(a, t, effect, d);
}

// Mode "a" starts at the end; "a+" does not.
void Resolve::stream_appends(Description& d, uint32_t flags) {
  d.flags |= O_APPEND;
  if (flags & O_RDWR) return;
  d.at_end = true;
  d.offset = d.file != 0 ? names_.file(d.file).size : 0;
}

// By way of a descriptor (/proc/self/fd/N), of a file that has no name by now, or whose name
// another one has.
void Resolve::open_again(feign_activity& a, Thread& t, const Description& what) {
  a.handle2 = what.handle;
  a.file = what.file;
  a.path = 0;
  a.marks |= what.marks & FEIGN_NOT_A_FILE;  // a FIFO
  if (a.result < 0) return;
  if (a.flags & O_TRUNC) names_.file(a.file).has(0);
  Description* const d = describe(what.marks & (FEIGN_DIRECTORY | FEIGN_NOT_A_FILE), what.path,
                                  what.file, a.flags & ~uint32_t{O_CREAT});
  a.handle = d->handle;
  a.marks |= d->marks;
  install(t, static_cast<int32_t>(a.result), d, (a.flags & O_CLOEXEC) != 0);
}

// AT_EMPTY_PATH, or no path at all: the descriptor's file.
void Resolve::at_descriptor(Record& r, Thread& t, Effect effect, uint32_t hint, uint32_t hint2) {
  feign_activity& a = r.a;
  if (effect == Effect::kLink) a.path2 = absolute(t, a.handle2, hint2, a.path2);
  a.handle2 = 0;
  Description* d = find(t, a.handle, hint);
  fill(a, d);
  if (effect == Effect::kStatat) {
    identified(r, d);
    if (a.result >= 0 && d != nullptr && d->file != 0 && S_ISREG(a.mode)) resized(a, *d, a.length);
  }
  if (effect == Effect::kLink && a.result == -ENOTDIR && a.path2 != 0) {
    a.path2 = 0;
    return;
  }
  if (effect == Effect::kLink && a.result >= 0 && d != nullptr && d->file != 0 && a.path2 != 0)
    names_.link(d->file, a.path2);
  // A descriptor of the link itself (O_PATH): the link's name tells as much, if it has that
  // still. (ENOENT: of no link.)
  if (effect == Effect::kReadlink && d != nullptr && a.path != 0 && a.result != -ENOENT &&
      !has_no_name(*d)) {
    a.handle = 0;
    a.file = names_.apply(a, effect).file;
  }
}

// By way of its descriptor (/proc/self/fd/N): the file may have no name, or another one by now.
void Resolve::by_descriptor(Record& r, Effect effect, Description* open) {
  feign_activity& a = r.a;
  fill(a, open);
  if (effect == Effect::kStat || effect == Effect::kStatat) identified(r, open);
  if (effect == Effect::kTruncate && a.result >= 0 && open->file != 0)
    names_.file(open->file).has(a.length);
  if (effect == Effect::kLink && a.result >= 0 && open->file != 0 && a.path2 != 0)
    names_.link(open->file, a.path2);
  if (effect == Effect::kLink && a.result == -EEXIST && a.path2 != 0) names_.not_linked(a.path2);
}

// What was open below a directory that is removed or has another name now.
void Resolve::moves_below(const feign_activity& a, Effect effect, const Namespace::Touched& touched,
                          uint32_t from, uint32_t to) {
  if (a.result < 0) return;
  const bool removes = effect == Effect::kRmdir || effect == Effect::kUnlinkat;
  if (removes && names_.file(touched.file).type == Namespace::Type::kDirectory) removed(from);
  if (effect != Effect::kRename) return;
  if (a.flags & RENAME_EXCHANGE) {
    const uint32_t aside = tables_.strings.intern("//exchange");
    renamed(from, aside);
    renamed(to, from);
    renamed(aside, to);
    return;
  }
  if (touched.file2 != 0 && touched.file2 != touched.file &&
      names_.file(touched.file2).type == Namespace::Type::kDirectory)
    removed(to);
  renamed(from, to);
}

void Resolve::path_call(Record& r, Thread& t, Effect effect) {
  feign_activity& a = r.a;
  const bool two = effect == Effect::kLink || effect == Effect::kRename;
  const uint32_t hint = a.file, said2 = two ? std::exchange(a.mode, 0) : 0;
  const uint32_t hint2 = a.handle2 != 0 && is_path(tables_.strings.text(said2)) ? said2 : 0;
  a.file = 0;
  // Of both names.
  if (a.handle == FEIGN_CWD || a.handle == 0) works_in(t, hint);
  if (a.path == 0) return at_descriptor(r, t, effect, hint, hint2);
  if (effect == Effect::kMkdir || effect == Effect::kMknod) a.mode &= ~t.place->umask;
  if ((a.result == -ENOTDIR &&
       (no_directory(t, a.handle, hint) || no_directory(t, a.handle2, hint2))) ||
      looks_at_no_path(a, effect) || form_decides(a, effect, tables_.strings.text(a.path)) ||
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
  if (two) {
    a.marks |= FEIGN_AS_NAMED(0, components(tables_.strings.text(a.path2)));
    a.path2 = absolute(t, a.handle2, hint2, a.path2);
  }
  const bool nothing = up && a.result == -ENOENT && ups_from_nothing(t, a.handle, hint, text);
  a.path = absolute(t, a.handle, hint, a.path);
  a.handle = a.handle2 = 0;
  // From a directory that nothing tells.
  const bool lost = a.path == 0 || (two && a.path2 == 0);
  if (lost || (up && a.result == -ENOENT &&  // behind no name
               (names_.at(a.path) != 0 || (nothing && !names_.finds_nothing(a.path))))) {
    a.path = a.path2 = 0;
    a.marks |= FEIGN_NOT_A_FILE;
    return;
  }
  Description* open = nullptr;
  const bool follow = on || !(a.marks & FEIGN_NOFOLLOW);
  if (a.path != 0)
    if (const uint32_t path = behind_proc(t, tables_.strings.text(a.path), follow, &open); path)
      a.path = path;
  if (on && a.path != 0) a.path = names_.canonical(a.path, true);
  if (two && a.path2 != 0)
    if (const uint32_t path = behind_proc(t, tables_.strings.text(a.path2), false, nullptr); path)
      a.path2 = path;
  if (open != nullptr && !(open->marks & FEIGN_NOT_A_FILE) &&
      (effect == Effect::kLink || effect == Effect::kChmod || effect == Effect::kAttr ||
       effect == Effect::kStat || effect == Effect::kStatat || effect == Effect::kAccess ||
       effect == Effect::kTruncate || effect == Effect::kGetXattr || effect == Effect::kSetXattr ||
       effect == Effect::kRemoveXattr))
    return by_descriptor(r, effect, open);
  if (open != nullptr && has_lost_name(*open)) {  // of a FIFO
    fill(a, open);
    a.path = a.path2 = 0;
    return;
  }
  if (no_storage(a, a.path)) return;
  const uint32_t from = names_.canonical(a.path, false);
  const uint32_t to = a.path2 != 0 ? names_.canonical(a.path2, false) : 0;
  if (t.place->root != 0) {  // whoever replays has another root
    a.path = (a.marks & FEIGN_NOFOLLOW) ? from : names_.canonical(a.path, true);
    if (effect == Effect::kLink || effect == Effect::kRename) a.path2 = to;
  }
  lacks_names(a, effect);
  lacks_binds(a, effect);
  if (tells_of_others()) by_others(a, effect);
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
  moves_below(a, effect, touched, from, to);
  if (effect == Effect::kTruncate && a.result >= 0) names_.file(a.file).has(a.length);
}

// Which file a descriptor's is, of those with several names; said no more if it lost the one that
// it was opened by.
void Resolve::identified(Record& r, Description* d) {
  feign_activity& a = r.a;
  if (a.value_count == 0) return;
  if (a.result < 0 || d == nullptr || d->file == 0 || d->path == 0 ||
      names_.at(names_.canonical(d->path, true)) != d->file)
    return r.set_values({});
  a.file = d->file = names_.identified(d->path, a.values[0]).file;
}

void Resolve::data(feign_activity& a, Description* d, Effect effect) {
  if (d == nullptr || (d->marks & FEIGN_NOT_A_FILE)) return;
  if (a.result == -ESPIPE) return is_pipe(a, d);
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
  if (!positional) d->met_end = !writes && a.result == 0 && a.length != 0;
  if (!positional && !tells_seeks_ && !said_seeks_ && f != nullptr) {
    const bool moved = reads_on_ && d->cut && f->size <= d->offset;
    d->cut = !writes && done < a.length;
    if (moved) {
      said_seeks_ = true;
      log(FEIGN_LOG_INFO,
          tables_.notes.emplace_back(
              "the trace lacks calls that move offsets: reads and writes are made where the last "
              "one ended (strace: -e trace=file,desc,process tells them)"));
    }
  }
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
    // Each process reads on where its stream's buffer is: not behind the end, at any rate.
    if (d->several && !writes && f != nullptr && done <= f->size)
      a.offset = std::min(a.offset, f->size - done);
  }
  if (tells_of_others() && f != nullptr && f->sized && !writes && a.result >= 0 && a.length != 0 &&
      (done != 0 ? a.offset + done > f->size : a.offset < f->size))
    resized(a, *d, a.offset + done);
  else if (f != nullptr && done != 0)
    f->size = std::max(f->size, a.offset + done);
}

// Bytes from one descriptor to another; an end that is a pipe or socket is none of ours.
void Resolve::copy(Record& r, Thread& t) {
  feign_activity& a = r.a;
  const bool tells_offsets = a.value_count != 0;
  const uint64_t at_in = a.value_count > 0 ? a.values[0] : FEIGN_NO_OFFSET;
  const uint64_t at_out = a.value_count > 1 ? a.values[1] : FEIGN_NO_OFFSET;
  const uint64_t done = a.result > 0 ? static_cast<uint64_t>(a.result) : 0;
  const uint32_t hint = a.file, hint2 = std::exchange(a.mode, 0);
  const auto file_only = [](Description* d) {
    return d != nullptr && !(d->marks & FEIGN_NOT_A_FILE) ? d : nullptr;
  };
  Description* from = file_only(find(t, a.handle, hint));
  Description* to = file_only(find(t, a.handle2, hint2));
  fill(a, from != nullptr ? from : to);
  if (to != nullptr && (to->marks & FEIGN_INHERITED)) {
    a.path2 = to->path;
    a.marks |= FEIGN_INHERITED;
  }
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

}  // namespace feign
