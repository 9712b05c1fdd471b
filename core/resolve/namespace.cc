// SPDX-License-Identifier: MIT
#include "resolve/namespace.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>

#include <cerrno>
#include <climits>
#include <utility>

#include "base/path.h"

namespace feign {

uint32_t Namespace::slot_of(uint32_t path) {
  if (path < slot_by_path_.size() && slot_by_path_[path] != 0) return slot_by_path_[path];
  const uint32_t slot = slot_of_text(clean_path(strings_.text(path)));
  if (path >= slot_by_path_.size()) slot_by_path_.resize(std::max<size_t>(path + 1, path * 3 / 2));
  slot_by_path_[path] = slot;
  return slot;
}

uint32_t Namespace::slot_of_text(std::string_view clean) {
  const uint32_t path = strings_.intern(clean);
  if (path < slot_by_path_.size() && slot_by_path_[path] != 0) return slot_by_path_[path];
  uint32_t parent = 0;
  if (clean.size() > 1) {
    const size_t slash = clean.rfind('/');
    parent = slot_of_text(slash == 0 ? std::string_view("/") : clean.substr(0, slash));
  }
  const auto slot = static_cast<uint32_t>(slots_.size());
  slots_.push_back({path, parent, 0, parent ? slots_[parent].first_child : 0, 0, State::kUnknown});
  if (parent != 0) slots_[parent].first_child = slot;
  if (path >= slot_by_path_.size()) slot_by_path_.resize(std::max<size_t>(path + 1, path * 3 / 2));
  slot_by_path_[path] = slot;
  // Below a directory that the trace made, nothing was before it.
  if (parent != 0) {
    const Slot& p = slots_[parent];
    if (p.state == State::kAbsent ||
        (p.file != 0 && files_[p.file].created && files_[p.file].certain))
      slots_[slot].state = State::kAbsent;
  }
  return slot;
}

// canonical() by way of the directory, whose own is mostly known; 0 if the name in it is a link to
// follow, or none to go by.
uint32_t Namespace::by_directory(uint32_t path, bool follow) {
  const std::string_view text = strings_.text(path);
  const size_t slash = text.rfind('/');
  if (slash == 0 || slash == text.npos || text.size() > PATH_MAX) return 0;
  const std::string_view name = text.substr(slash + 1);
  if (name.empty() || name == "." || name == "..") return 0;
  const uint32_t above = strings_.intern(text.substr(0, slash)), there = canonical(above, true);
  uint32_t found = path;
  if (there != above) {
    const std::string_view directory = strings_.text(there);
    std::string moved(directory == "/" ? std::string_view() : directory);
    moved.append("/").append(name);
    found = strings_.intern(moved);
  }
  const File& f = files_[slots_[slot_of(found)].file];
  return f.type == Type::kSymlink && f.target != 0 && follow ? 0 : found;
}

uint32_t Namespace::canonical(uint32_t path, bool follow) {
  constexpr int kMostLinks = 40;  // as the kernel: then it is a circle
  if (links_ == 0) return path;
  const uint64_t key = uint64_t{path} << 1 | (follow ? 1 : 0);
  const auto kept = [&](uint32_t known) {
    if (root_ == 0) canonical_[key] = known;
    return known;
  };
  if (const auto at = canonical_.find(key); root_ == 0 && at != canonical_.end()) return at->second;
  if (const uint32_t known = by_directory(path, follow); known != 0) return kept(known);
  const std::string_view root = root_ != 0 ? strings_.text(root_) : std::string_view();
  std::string out, text(strings_.text(path));
  int links = 0;
  std::string_view todo = text;
  for (std::string_view part; !(part = take_component(todo)).empty();) {
    if (part == "..") {
      const size_t slash = out.rfind('/');
      if (root.empty() || out != root) out.resize(slash == std::string::npos ? 0 : slash);
      continue;
    }
    const size_t above = out.size();
    out += '/';
    out += part;
    const bool last = todo.find_first_not_of('/') == std::string_view::npos;
    const File& f = files_[slots_[slot_of_text(out)].file];  // files_[0] is of no type
    if (f.type == Type::kSymlink && f.target != 0 && (follow || !last)) {
      if (++links > kMostLinks) break;
      const std::string_view target = strings_.text(f.target);
      out.resize(above);
      if (target.starts_with('/')) out = root;
      text = std::string(target) + "/" + std::string(todo);
      todo = text;
      if (out.size() + todo.size() > (size_t{16} << 10)) return path;  // no path is that long
    }
  }
  return kept(links > kMostLinks ? path : strings_.intern(out.empty() ? "/" : out));
}

uint32_t Namespace::new_file(Type type, bool created, bool certain) {
  File f;
  f.type = type;
  f.created = created;
  f.certain = certain;
  files_.push_back(f);
  return static_cast<uint32_t>(files_.size() - 1);
}

void Namespace::put(uint32_t slot, uint32_t file) {
  if (files_[file].type == Type::kSymlink) links_changed();
  slots_[slot].file = file;
  slots_[slot].state = State::kPresent;
  slots_[slot].missed = false;
  ++files_[file].links;
  files_[file].gone = false;
}

void Namespace::take(uint32_t slot) {
  const uint32_t file = slots_[slot].file;
  slots_[slot].file = 0;
  slots_[slot].state = State::kAbsent;
  slots_[slot].no_link = false;
  if (file == 0) return;
  if (files_[file].type == Type::kSymlink) links_changed();
  if (files_[file].links > 0 && --files_[file].links == 0) files_[file].gone = true;
}

void Namespace::link(uint32_t file, uint32_t path) {
  const uint32_t to = slot_of(canonical(path, false));
  if (slots_[to].parent != 0) (void)present(slots_[to].parent, Type::kDirectory);
  take(to);
  put(to, file);
}

uint32_t Namespace::initial_path_of(uint32_t slot) {
  const uint32_t parent = slots_[slot].parent;
  if (parent == 0) return slots_[slot].path;
  const uint32_t directory = slots_[parent].file;
  // The directory may have been elsewhere when the trace began: then so was what is in it.
  if (directory == 0 || files_[directory].created || files_[directory].initial_path == 0 ||
      files_[directory].initial_path == slots_[parent].path)
    return slots_[slot].path;
  const std::string_view path = strings_.text(slots_[slot].path);
  std::string moved(strings_.text(files_[directory].initial_path));
  moved += path.substr(path.rfind('/'));
  return strings_.intern(moved);
}

uint32_t Namespace::present(uint32_t slot, Type type) {
  if (slots_[slot].file == 0) {
    if (const uint32_t parent = slots_[slot].parent; parent != 0) {
      if (present(parent, Type::kDirectory) == 0) return 0;
    }
    // A name that the trace made first was not there when it began, whatever comes later.
    if (slots_[slot].state == State::kNoFile && (type == Type::kUnknown || type == Type::kSymlink))
      type = Type::kDirectory;  // or a link to one
    const uint32_t file = new_file(type, slots_[slot].born, true);
    files_[file].initial_path = initial_path_of(slot);
    files_[file].nowhere = slots_[slot].missed;
    files_[file].guessed = guessing_;
    put(slot, file);
    return file;
  }
  File& f = files_[slots_[slot].file];
  if (f.type == Type::kUnknown || (type == Type::kDirectory && f.type == Type::kFile))
    f.type = type;
  if (f.guessed && type == Type::kFile) no_directory(slot);
  if (f.guessed && !guessing_) {
    if (type == Type::kFile || type == Type::kDirectory) f.type = type;
    f.guessed = type == Type::kUnknown;
    if (slots_[slot].parent != 0) (void)present(slots_[slot].parent, Type::kDirectory);
  }
  return slots_[slot].file;
}

uint32_t Namespace::guess(uint32_t slot, Type type) {
  guessing_ = true;
  const uint32_t file = present(slot, type);
  guessing_ = false;
  return file;
}

// What was taken to be there was not; nor were others that were guessed below it.
void Namespace::forget(uint32_t slot) {
  forget_guesses(slot);
  files_[slots_[slot].file].initial_path = 0;
  slots_[slot].file = 0;
  slots_[slot].state = State::kAbsent;
}

void Namespace::forget_guesses(uint32_t above) {
  for (uint32_t c = slots_[above].first_child; c != 0; c = slots_[c].next_sibling)
    if (files_[slots_[c].file].guessed) forget(c);
}

uint32_t Namespace::create(uint32_t slot, Type type, bool certain) {
  if (const uint32_t parent = slots_[slot].parent; parent != 0)
    (void)present(parent, Type::kDirectory);
  const bool surely = certain || slots_[slot].state == State::kAbsent ||
                      (slots_[slot].state == State::kNoFile && type != Type::kDirectory);
  const uint32_t file = new_file(type, true, surely);
  files_[file].initial_path = initial_path_of(slot);  // if it turns out to have been there
  if (certain && (slots_[slot].state == State::kUnknown || slots_[slot].state == State::kNoFile))
    slots_[slot].born = true;
  put(slot, file);
  return file;
}

void Namespace::never(uint32_t path) { forget(slot_of(canonical(path, true))); }

// What is above it is no file, or that would have been ENOTDIR.
void Namespace::no_file_above(uint32_t slot) {
  for (uint32_t above = slots_[slot].parent; above != 0; above = slots_[above].parent) {
    if (slots_[above].file == 0) {
      if (slots_[above].state == State::kUnknown) slots_[above].state = State::kNoFile;
      continue;
    }
    File& f = files_[slots_[above].file];
    // (Of a link of unknown target, what it leads to.)
    const bool unknown_link = f.type == Type::kSymlink && f.target == 0 && !f.nowhere;
    if (f.type != Type::kUnknown && f.type != Type::kFile && !unknown_link) break;
    f.type = Type::kDirectory;
    f.guessed = false;
  }
}

void Namespace::absent(uint32_t slot) {
  no_file_above(slot);
  if (files_[slots_[slot].file].guessed) forget(slot);
  if (slots_[slot].file == 0) slots_[slot].state = State::kAbsent;
}

// If anything is there, it is a directory.
void Namespace::no_file(uint32_t slot) {
  Slot& s = slots_[slot];
  if (s.file == 0 && s.state == State::kUnknown) s.state = State::kNoFile;
  if (s.file != 0 && files_[s.file].type == Type::kUnknown) files_[s.file].type = Type::kDirectory;
}

// The target of a link that was known without it.
void Namespace::leads_to(uint32_t slot, uint32_t target) {
  const uint32_t link = slots_[slot].file;
  files_[link].target = target;
  ++links_;
  links_changed();
  const uint32_t behind = slot_of(canonical(slots_[slot].path, true));
  if (behind != slot && !below(behind, slot)) tell_behind(slot, behind);
}

// What the name of a link told of what is behind it.
void Namespace::tell_behind(uint32_t slot, uint32_t behind) {
  if (files_[slots_[slot].file].nowhere) {
    if (slots_[behind].file != 0) files_[slots_[behind].file].nowhere = true;
    absent(behind);
  }
  if (slots_[behind].state == State::kAbsent) return;
  for (uint32_t c = slots_[slot].first_child; c != 0; c = slots_[c].next_sibling)
    if (slots_[c].file != 0) (void)present(behind, Type::kDirectory);
  join_children(slot, behind);
}

// A call that it refused told of a directory; what came later shows that it is none.
void Namespace::no_directory(uint32_t slot) {
  File& f = files_[slots_[slot].file];
  if (f.type == Type::kDirectory) f.type = Type::kFile;
  forget_guesses(slot);
}

uint32_t Namespace::known_above(uint32_t slot) const {
  uint32_t above = slots_[slot].parent;
  while (above != 0 && slots_[above].file == 0) above = slots_[above].parent;
  return above;
}

// Something above is a file: what is there and may be one, or what is right above. False if all of
// it was told to be directories.
bool Namespace::not_directory_above(uint32_t slot) {
  const uint32_t parent = slots_[slot].parent, above = known_above(slot);
  if (is_directory(above) && above == parent) return false;
  const bool known = above != 0 && files_[slots_[above].file].type != Type::kDirectory;
  const uint32_t file = known ? above : parent;
  if (slots_[file].parent == 0) return false;
  (void)guess(file, Type::kFile);
  return true;
}

// Whether names below it can be: ENOTDIR would be of a file above the name, else.
bool Namespace::may_be_directory(uint32_t slot) const {
  for (uint32_t s = slot; s != 0; s = slots_[s].parent)
    if (const Type type = files_[slots_[s].file].type;
        slots_[s].state == State::kAbsent || type == Type::kFile || type == Type::kFifo)
      return false;
  return true;
}

// Whether the name is a link whose target ends with a slash.
bool Namespace::follows_slash(uint32_t path) {
  const File& link = files_[slots_[slot_of(canonical(path, false))].file];
  return link.type == Type::kSymlink && strings_.text(link.target).ends_with('/');
}

// Told by more than a guess.
bool Namespace::is_known(uint32_t slot) const {
  return slots_[slot].file != 0 && !files_[slots_[slot].file].guessed;
}

bool Namespace::is_directory(uint32_t slot) const {
  return is_known(slot) && files_[slots_[slot].file].type == Type::kDirectory;
}

bool Namespace::is_absent(uint32_t slot) const {
  for (uint32_t s = slot; s != 0; s = slots_[s].parent)
    if (slots_[s].state == State::kAbsent) return true;
  return false;
}

bool Namespace::below(uint32_t slot, uint32_t above) const {
  for (uint32_t s = slots_[slot].parent; s != 0; s = slots_[s].parent)
    if (s == above) return true;
  return false;
}

void Namespace::move(uint32_t from, uint32_t to, Moved how) {
  if (from == to) return;
  if (File& f = files_[slots_[from].file];
      how == Moved::kAlways && f.initial_path == slots_[from].path)
    f.initial_path = slots_[to].path;
  if (files_[slots_[from].file].type != Type::kFile) links_changed();
  take(to);
  slots_[to].file = slots_[from].file;
  slots_[to].state = slots_[from].state;
  slots_[from].file = 0;
  slots_[to].no_link = std::exchange(slots_[from].no_link, false);
  // Behind a link nobody comes to that name again.
  slots_[from].state = how == Moved::kAlways ? State::kUnknown : State::kAbsent;
  if (how == Moved::kAlways)
    join_children(from, to);
  else
    move_children(from, to);
}

// The name that a child has below another directory.
uint32_t Namespace::slot_below(uint32_t directory, uint32_t child) {
  const std::string_view path = strings_.text(slots_[child].path);
  std::string other(strings_.text(slots_[directory].path));
  if (other == "/") other.clear();
  return slot_of_text(other.append(path.substr(path.rfind('/'))));
}

// What was below the target went with it (it was empty); what is below the source moves along.
void Namespace::move_children(uint32_t from, uint32_t to) {
  for (uint32_t c = slots_[from].first_child; c != 0; c = slots_[c].next_sibling) {
    if (slots_[c].file != 0)
      move(c, slot_below(to, c), Moved::kNow);
    else if (slots_[c].state == State::kAbsent)  // and all below it, which needs no telling
      take(slot_below(to, c));
  }
}

void Namespace::exchange(uint32_t a, uint32_t b) {
  // A name that no path can be: it is not below anything.
  const uint32_t aside = strings_.intern("//exchange");
  if (aside >= slot_by_path_.size()) slot_by_path_.resize(aside + size_t{1});
  uint32_t between = slot_by_path_[aside];
  if (between == 0) {
    between = static_cast<uint32_t>(slots_.size());
    slots_.push_back({aside, 0, 0, 0, 0, State::kUnknown});
    slot_by_path_[aside] = between;
  }
  move(a, between);
  move(b, a);
  move(between, b);
}

// A name turns out to be a link after it was used: what was learned is of the file behind it.
uint32_t Namespace::link_found(uint32_t slot, uint32_t target) {
  const uint32_t old = slots_[slot].file;
  // An open with O_CREAT made what is behind it, if anything.
  const bool made = files_[old].created && slots_[slot].born;
  const uint32_t link = new_file(Type::kSymlink, made, made);
  files_[link].target = target;
  files_[link].initial_path = files_[old].initial_path;
  files_[link].links = 1;
  slots_[slot].file = link;
  if (target == 0) {  // where it leads is not known
    files_[old].initial_path = 0;
    return link;
  }
  ++links_;
  links_changed();
  const uint32_t behind = slot_of(canonical(slots_[slot].path, true));
  const bool circle = behind == slot || below(behind, slot);
  if (circle || slots_[behind].file != 0) {
    is_same(old, circle ? 0 : behind);
    if (!circle) join_children(slot, behind);
    return link;
  }
  const Type type = files_[old].type;
  if (type == Type::kSymlink || (type == Type::kUnknown && !files_[old].followed)) {
    // What was met is the link.
    files_[link].nowhere = files_[old].nowhere;
    files_[link].followed = files_[old].followed;
    is_same(old, slot);
    tell_behind(slot, behind);
    return link;
  }
  if (slots_[behind].parent != 0) (void)present(slots_[behind].parent, Type::kDirectory);
  if (slots_[behind].state == State::kNoFile && files_[old].type == Type::kUnknown)
    files_[old].type = Type::kDirectory;
  slots_[behind].file = old;
  slots_[behind].state = State::kPresent;
  files_[old].initial_path = slots_[behind].path;
  join_children(slot, behind);
  return link;
}

// A target of its own: others of that length are others. What lies there would be one name too many
// where the trace lists directories, so that it gets one that no trace knows.
uint32_t Namespace::unknown_target(uint32_t link, size_t length) {
  std::string target(length, 'x'), number;
  for (uint32_t n = link; number.empty() || n != 0; n /= 36)
    number.insert(number.begin(), "0123456789abcdefghijklmnopqrstuvwxyz"[n % 36]);
  if (number.size() < length) target.replace(length - number.size(), number.size(), number);
  for (const std::string_view place : {"/.links/", "/."})  // the second, if it must be short
    if (number.size() + place.size() <= length) {
      target.replace(0, place.size(), place);
      break;
    }
  return strings_.intern(target);
}

// What is removed as a file, or refused to be removed as a directory, and is a directory to calls
// that follow links: a link.
uint32_t Namespace::no_file_nor_directory(uint32_t slot) {
  const uint32_t file = slots_[slot].file;
  const File& f = files_[file];
  bool names = f.type == Type::kDirectory && f.followed && may_be_link(slot);
  for (uint32_t c = slots_[slot].first_child; c != 0; c = slots_[c].next_sibling)
    names = names || (slots_[c].file != 0 && !files_[slots_[c].file].guessed);
  if (!names || f.created) {
    no_directory(slot);
    return file;
  }
  const uint32_t link = link_found(slot, unknown_target(file));
  files_[link].assumed = true;
  return link;
}

// Where a link leads whose target was assumed.
void Namespace::told(uint32_t slot, uint32_t target) {
  files_[slots_[slot].file].assumed = false;
  const uint32_t was = slot_of(canonical(slots_[slot].path, true));
  leads_to(slot, target);
  const uint32_t behind = slot_of(canonical(slots_[slot].path, true));
  if (was == slot) {  // of a circle: then the other is in it
    if (behind != slot) (void)circle(behind);
    return;
  }
  if (std::exchange(files_[slots_[slot].file].by_open, false)) {  // then what it leads to is a link
    if (was != behind && may_be_link(behind) && !below(was, behind) && !below(slot, behind))
      read_link(behind, slots_[was].path);
    return;
  }
  if (was == behind || below(behind, was) || below(was, behind)) return;
  if (slots_[behind].file == 0) {
    if (slots_[behind].parent != 0) (void)present(slots_[behind].parent, Type::kDirectory);
    move(was, behind, Moved::kAlways);
  } else {
    is_same(slots_[was].file, behind);
    join_children(was, behind);
  }
}

// ---- links that only an open tells --------------------------------------------------------------

// Whether it may be one that was there before, as far as calls tell.
bool Namespace::may_be_link(uint32_t slot) const {
  const Slot& s = slots_[slot];
  const File& f = files_[s.file];
  if (s.parent == 0 || s.no_link || s.born || (s.file == 0 && s.state == State::kAbsent))
    return false;
  return !f.created && f.type != Type::kFifo && (f.type != Type::kSymlink || f.target == 0);
}

// What an open told to be a link is none: then a directory that it is in is, if the names are the
// same. Where it is.
uint32_t Namespace::link_above(uint32_t slot) {
  const uint32_t file = slots_[slot].file, parent = slots_[slot].parent;
  if (!files_[file].by_open || files_[file].type == Type::kDirectory) return slot;
  const std::string_view name = strings_.text(slots_[slot].path);
  const std::string target(strings_.text(files_[file].target));
  const size_t slash = target.rfind('/');
  if (slash == target.npos || name.substr(name.rfind('/')) != target.substr(slash) ||
      !may_be_link(parent)) {
    is_no_link(slot);
    files_[file].type = Type::kUnknown;
    return slot;
  }
  files_[file].initial_path = 0;
  used_by_.erase(file);
  slots_[slot].file = 0;
  slots_[slot].state = State::kUnknown;
  links_changed();
  read_link(parent, strings_.intern(slash == 0 ? "/" : target.substr(0, slash)));
  return slot_of(canonical(slots_[slot].path, false));
}

// A link that leads to itself: the last name that nothing is known of, up from this one. False if
// there is none, or if a circle is known already.
bool Namespace::circle(uint32_t slot) {
  uint32_t found = 0;
  for (uint32_t s = slot; s != 0; s = slots_[s].parent) {
    const File& f = files_[slots_[s].file];
    if (f.type == Type::kSymlink && f.target != 0) return true;
    const bool unknown =
        slots_[s].file == 0 ? slots_[s].state == State::kUnknown
                            : f.type == Type::kSymlink || (f.type == Type::kUnknown && !f.followed);
    if (found == 0 && unknown && may_be_link(s)) found = s;
  }
  if (found == 0) return false;
  const std::string_view path = strings_.text(slots_[found].path);
  const uint32_t name = strings_.intern(std::string(path.substr(path.rfind('/') + 1)));
  read_link(found, name);
  files_[slots_[found].file].by_open = false;
  return true;
}

// Of the names that may be links the first behind which both paths are the same: folders are links
// more often than all that is in them.
uint32_t Namespace::link_between(uint32_t path, bool follow, uint32_t real) {
  for (uint32_t s = slot_of(real); s != 0; s = slots_[s].parent)
    if (files_[slots_[s].file].by_open)
      return strings_.intern("/." + std::string(strings_.text(real)));
  const std::string name(strings_.text(canonical(path, follow)));
  const std::string there(strings_.text(slots_[slot_of(real)].path));
  if (name == there) return 0;
  std::string told;
  for (size_t n = name.size(), r = there == "/" ? 0 : there.size(); n > 1;) {
    const std::string_view link(name.data(), n), target(there.data(), r);
    const bool itself = target.starts_with(link) && (r == n || there[n] == '/');
    if ((follow || n != name.size()) && !itself && may_be_link(slot_of_text(link))) {
      told = r != 0 ? target : "/";
      told += "/.";
      told += name.substr(n);
    }
    const size_t slash = name.rfind('/', n - 1);
    const size_t slash2 = r != 0 ? there.rfind('/', r - 1) : there.npos;
    if (slash2 == there.npos || link.substr(slash) != target.substr(slash2)) break;
    n = slash;
    r = slash2;
  }
  return told.empty() ? 0 : strings_.intern(told);
}

feign_activity Namespace::readlink_for(const feign_activity& open) {
  feign_activity a{};
  const LinkTold told = link_told(strings_.text(open.path2));
  if (told.target.empty()) {
    for (uint32_t s = slot_of_text(clean_path(told.rest)); s != 0; s = slots_[s].parent)
      if (files_[slots_[s].file].by_open) is_no_link(s);
    return a;
  }
  const std::string_view name =
      strings_.text(canonical(open.path, (open.marks & FEIGN_NOFOLLOW) == 0));
  if (!told.target.starts_with('/') || !name.ends_with(told.rest) ||
      told.rest.size() >= name.size())
    return a;
  const std::string link(name.substr(0, name.size() - told.rest.size())), target(told.target);
  a.path = strings_.intern(link);
  a.path2 = strings_.intern(clean_path(target));
  a.result = static_cast<int64_t>(target.size());
  a.marks = FEIGN_NOFOLLOW;
  return a;
}

void Namespace::assume(const feign_activity& readlink) {
  File& link = files_[slots_[slot_of(readlink.path)].file];
  if (link.type == Type::kSymlink && link.target == readlink.path2)
    link.assumed = link.by_open = opens_told_ = true;
}

void Namespace::read_link(uint32_t slot, uint32_t target) {
  feign_activity a{};
  a.path = slots_[slot].path;
  a.path2 = target;
  a.marks = FEIGN_NOFOLLOW;
  (void)applied(a, Effect::kReadlink);
  assume(a);
}

// A name by way of what an open told of.
void Namespace::goes_by_links(uint32_t path) {
  if (canonical(path, false) == path) return;
  const std::string text(strings_.text(path));
  for (size_t at = text.find('/', 1); at != text.npos; at = text.find('/', at + 1)) {
    const uint32_t above = canonical(strings_.intern(text.substr(0, at)), false);
    const uint32_t file = slots_[slot_of(above)].file;
    if (!files_[file].by_open) continue;
    used_by_[file].insert(strings_.intern(std::string(strings_.text(above)) + text.substr(at)));
  }
}

// It is a directory: the names in it by which something else was found are links, then.
void Namespace::is_no_link(uint32_t slot) {
  const uint32_t file = slots_[slot].file;
  const std::string directory(strings_.text(slots_[slot].path));
  const std::string target(strings_.text(files_[file].target));
  files_[file].type = Type::kDirectory;
  files_[file].target = 0;
  files_[file].assumed = files_[file].by_open = false;
  slots_[slot].no_link = true;
  links_changed();
  const auto used = used_by_.find(file);
  if (used == used_by_.end()) return;
  const std::set<uint32_t> names = std::move(used->second);
  used_by_.erase(used);
  for (const uint32_t name : names) {
    const std::string text(strings_.text(name));
    if (!text.starts_with(directory + "/")) continue;  // it was renamed since
    const size_t end = std::min(text.find('/', directory.size() + 1), text.size());
    const uint32_t link = slot_of_text(std::string_view(text).substr(0, end));
    const std::string to = target + text.substr(directory.size(), end - directory.size());
    if (may_be_link(link)) read_link(link, strings_.intern(clean_path(to)));
    if (files_[slots_[link].file].by_open && end != text.size())
      used_by_[slots_[link].file].insert(name);
  }
}

void Namespace::has_no_links(uint32_t path) {
  if (canonical(path, true) != path) return;
  for (uint32_t s = slot_of(path); s != 0 && !slots_[s].no_link; s = slots_[s].parent)
    slots_[s].no_link = true;
}

// It is what is in that slot, and known under its name.
void Namespace::is_same(uint32_t file, uint32_t slot) {
  if (file == 0 || file == slots_[slot].file) return;
  files_[file].initial_path = 0;
  files_[file].same = slots_[slot].file;
}

// Two names of one directory: what was learned of names below the one is of those below the other.
void Namespace::join_children(uint32_t from, uint32_t to) {
  for (uint32_t c = slots_[from].first_child; c != 0; c = slots_[c].next_sibling) {
    if (slots_[c].file == 0 && slots_[c].state == State::kUnknown) continue;  // nothing is known
    const uint32_t there = slot_below(to, c), file = slots_[c].file, other = slots_[there].file;
    const uint32_t target = files_[file].target, other_target = files_[other].target;
    if (slots_[c].state == State::kNoFile) no_file(there);
    if (there == from) {  // a link to the directory that it is in
      is_same(file, there);
      join_children(c, to);
    } else if (other != 0) {
      if (target != 0 && other_target == 0) (void)link_found(there, target);
      if (file != 0 && target == 0 && other_target != 0) (void)link_found(c, other_target);
      is_same(slots_[c].file, there);
      if (target == 0 && other_target == 0) join_children(c, there);
    } else if (file != 0 && (slots_[there].state != State::kAbsent || slots_[there].missed ||
                             files_[file].created)) {
      if (slots_[there].state == State::kNoFile && files_[file].type == Type::kUnknown)
        files_[file].type = Type::kDirectory;
      slots_[there].born = slots_[c].born;
      files_[file].nowhere |= slots_[there].missed;
      move(c, there, Moved::kAlways);
    } else {
      if (slots_[c].state == State::kAbsent && slots_[there].state != State::kAbsent) {
        slots_[there].state = State::kAbsent;
        slots_[there].missed = slots_[c].missed;
      }
      if (slots_[c].state != State::kAbsent) join_children(c, there);
    }
  }
}

Namespace::Touched Namespace::apply(const feign_activity& a, Effect effect) {
  const Touched t = applied(a, effect);
  if (a.result >= 0 && t.file != 0 && !(a.marks & FEIGN_NOFOLLOW)) files_[t.file].followed = true;
  if (opens_told_ && a.result >= 0 && a.path != 0) goes_by_links(a.path);
  return t;
}

Namespace::Touched Namespace::applied(const feign_activity& a, Effect effect) {
  Touched t;
  if (a.path == 0 || (a.marks & FEIGN_NO_RESULT)) return t;
  const uint32_t slot = slot_of(canonical(a.path, !(a.marks & FEIGN_NOFOLLOW)));
  const auto second = [&] { return slot_of(canonical(a.path2, false)); };
  const bool ok = a.result >= 0;
  const bool two = (effect == Effect::kRename || effect == Effect::kLink) && a.path2 != 0;
  const auto failed = [&] {
    if (a.result == -ENOENT) {
      const bool makes = effect == Effect::kOpen && (a.flags & O_CREAT) != 0;
      if (!makes && !(a.marks & FEIGN_NOFOLLOW)) {
        if (slots_[slot].file != 0)
          files_[slots_[slot].file].nowhere = true;
        else
          slots_[slot].missed = true;
      }
      if (!two) {
        absent(slot);
      } else {  // the second, or its directory, if the first is there
        const uint32_t to = second(), first = slots_[slot].file;
        const bool exchange = effect == Effect::kRename && (a.flags & RENAME_EXCHANGE) != 0;
        const uint32_t other = exchange ? to : slots_[to].parent;
        if (is_known(effect == Effect::kLink ? slot : slots_[slot].parent)) no_file_above(to);
        if (is_known(slot) || (first != 0 && slots_[other].file == 0))
          absent(other);
        else if (!is_absent(other))
          absent(slot);
      }
    } else if (a.result == -ELOOP) {
      const bool any = effect == Effect::kOpen && a.value_count != 0 &&
                       (a.values[0] & (RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)) != 0;
      const bool follow = (a.marks & FEIGN_NOFOLLOW) == 0;
      if (!any && !circle(follow ? slot : slots_[slot].parent) && two)
        (void)circle(slots_[second()].parent);
    } else if (a.result == -ENOTDIR) {
      // Of two names, the one in the directory of the other first.
      const uint32_t to = two ? second() : slot;
      const bool may_be_second = two && !is_absent(slots_[to].parent);
      const bool told = !may_be_directory(slots_[slot].parent) ||
                        (may_be_second && !may_be_directory(slots_[to].parent));
      const bool swap = may_be_second && below(to, slots_[slot].parent);
      if (!told && !not_directory_above(swap ? to : slot) && may_be_second)
        (void)not_directory_above(swap ? slot : to);
      // The second is looked for when the first, of a rename its directory, has been found.
      if (two && may_be_directory(slots_[slot].parent)) {
        if (effect == Effect::kLink)
          (void)guess(slot, Type::kUnknown);
        else
          (void)guess(slots_[slot].parent, Type::kDirectory);
      }
    }
    t.file = slots_[slot].file;
    return t;
  };

  switch (effect) {
    case Effect::kOpen: {
      const bool creates = (a.flags & O_CREAT) != 0;
      const bool exclusive = (a.flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL);
      if (!ok) {
        if (a.result == -EEXIST && exclusive)
          t.file = present(slot, Type::kUnknown);
        else if (a.result == -EISDIR && creates && follows_slash(a.path))
          t.file = slots_[slot].file;  // a directory, or nothing at all
        else if (a.result == -EISDIR)
          t.file = present(slot, Type::kDirectory);
        else if (a.result == -ENOTDIR && (a.flags & O_DIRECTORY) &&
                 may_be_directory(slots_[slot].parent))
          t.file = guess(slot, Type::kFile);
        else if (a.result == -ELOOP && (a.flags & O_NOFOLLOW))
          t.file = present(slot, Type::kSymlink);
        else
          return failed();
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
      }
      if (t.file != 0 && (a.flags & O_TRUNC))  // even if it is opened for reading
        files_[t.file].size = 0;
      if (creates || ((a.flags & O_ACCMODE) != O_RDONLY && (a.flags & O_PATH) == 0)) {
        no_directory(slot);
        if (files_[t.file].type == Type::kUnknown) files_[t.file].type = Type::kFile;
      }
      return t;
    }
    case Effect::kMkdir:
      if (a.result == -EEXIST) {
        // Known not to be there: a call that has not come back yet is making it.
        if (slots_[slot].state == State::kAbsent) return t;
        const bool file = files_[slots_[slot].file].type == Type::kFile;
        t.file = present(slot, file ? Type::kFile : Type::kDirectory);
        return t;
      }
      if (!ok) return failed();
      t.file = create(slot, Type::kDirectory, true);
      t.created = true;
      return t;
    case Effect::kBind:
    case Effect::kMknod:
      if (a.result == -EEXIST || a.result == -EADDRINUSE) {
        t.file = present(slot, Type::kUnknown);
        return t;
      }
      if (!ok) return failed();
      t.file = create(slot,
                      S_ISFIFO(a.mode)                                         ? Type::kFifo
                      : S_ISSOCK(a.mode) || S_ISCHR(a.mode) || S_ISBLK(a.mode) ? Type::kOther
                                                                               : Type::kFile,
                      true);
      t.created = true;
      return t;
    case Effect::kSymlink:
      if (a.result == -EEXIST) {
        t.file = present(slot, Type::kUnknown);
        return t;
      }
      if (!ok) return failed();
      t.file = create(slot, Type::kSymlink, true);
      files_[t.file].target = a.path2;
      ++links_;
      links_changed();
      t.created = true;
      return t;
    case Effect::kUnlink:
    case Effect::kUnlinkat:
    case Effect::kRmdir: {
      const bool directory =
          effect == Effect::kRmdir || (effect == Effect::kUnlinkat && (a.flags & AT_REMOVEDIR));
      if (!ok) {
        if (a.result == -EISDIR || a.result == -ENOTEMPTY) {
          t.file = present(slot, Type::kDirectory);
        } else if (a.result == -ENOTDIR && directory && may_be_directory(slots_[slot].parent)) {
          const bool lost = slots_[slot].missed || files_[slots_[slot].file].nowhere;
          (void)guess(slot, lost ? Type::kUnknown : Type::kFile);
          t.file = no_file_nor_directory(slot);
        } else {
          return failed();
        }
        return t;
      }
      t.file = present(slot, directory ? Type::kDirectory : Type::kUnknown);
      if (!directory) t.file = no_file_nor_directory(slot);
      take(slot);
      return t;
    }
    case Effect::kRename: {
      if (a.path2 == 0) return t;
      const uint32_t to = second();
      // What refused it was there, if it was not something above it.
      const bool refuses = (a.flags & (RENAME_EXCHANGE | RENAME_NOREPLACE)) == 0;
      const bool above = !refuses || !may_be_directory(slots_[slot].parent) ||
                         !may_be_directory(slots_[to].parent) || below(to, slot) ||
                         below(slot, to) || slots_[slot].state == State::kAbsent ||
                         slots_[to].state == State::kAbsent;
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
        t.file = present(slot, Type::kDirectory);
        t.file2 = present(to, Type::kDirectory);
        return t;
      }
      if (!ok) return failed();
      t.file = present(slot, Type::kUnknown);
      if (below(to, slot) || below(slot, to)) return t;  // the kernel would not have done it
      if (a.flags & RENAME_EXCHANGE) {
        (void)present(to, Type::kUnknown);
        exchange(slot, to);
        return t;
      }
      if (slots_[to].parent != 0) (void)present(slots_[to].parent, Type::kDirectory);
      t.file2 = slots_[to].file;
      if (t.file2 == t.file) {  // two names of one file: rename does nothing
        t.file2 = 0;
        return t;
      }
      // Nothing but a directory takes the place of one.
      const Type moved = files_[t.file].type;
      if (t.file2 != 0 &&
          (moved == Type::kSymlink || moved == Type::kOther || !may_be_directory(slot)))
        t.file2 = no_file_nor_directory(to);
      move(slot, to);
      return t;
    }
    case Effect::kLink: {
      if (a.path2 == 0) return t;
      const uint32_t to = second();
      if (a.result == -EEXIST) {
        t.file = present(slot, Type::kUnknown);
        (void)present(to, Type::kUnknown);
        return t;
      }
      if (!ok) return failed();
      t.file = present(slot, Type::kUnknown);
      no_directory(slot);
      if (slots_[to].parent != 0) (void)present(slots_[to].parent, Type::kDirectory);
      take(to);
      put(to, t.file);
      return t;
    }
    case Effect::kReadlink: {
      if (a.result == -EINVAL) {  // no link: a file or a directory
        const uint32_t itself = link_above(slot);
        t.file = present(itself, Type::kUnknown);
        files_[t.file].nowhere = false;
        slots_[itself].no_link = true;
        return t;
      }
      if (!ok) return failed();
      const bool met = slots_[slot].file != 0;
      t.file = present(slot, Type::kSymlink);
      if (!met) files_[t.file].type = Type::kSymlink;
      if (files_[t.file].type != Type::kSymlink) {
        t.file2 = t.file;
        t.file = link_found(slot, a.path2);
        return t;
      }
      if (files_[t.file].target == 0 && a.path2 != 0) leads_to(slot, a.path2);
      if (files_[t.file].assumed && a.path2 != 0) told(slot, a.path2);
      return t;
    }
    case Effect::kStat:
    case Effect::kStatat: {
      if (!ok) return failed();
      Type type = Type::kUnknown;
      if (S_ISDIR(a.mode)) type = Type::kDirectory;
      if (S_ISREG(a.mode)) type = Type::kFile;
      if (S_ISLNK(a.mode)) type = Type::kSymlink;
      if (S_ISFIFO(a.mode)) type = Type::kFifo;
      const bool no_link = type != Type::kSymlink && (a.marks & FEIGN_NOFOLLOW) != 0;
      const uint32_t itself = no_link ? link_above(slot) : slot;
      t.file = present(itself, type);
      if (no_link) slots_[itself].no_link = true;
      return t;
    }
    case Effect::kChdir:
      if (!ok) return failed();
      t.file = present(slot, Type::kDirectory);
      return t;
    case Effect::kAccess:
    case Effect::kChmod:
    case Effect::kAttr:
    case Effect::kGetXattr:
    case Effect::kSetXattr:
    case Effect::kRemoveXattr:
    case Effect::kChroot:
    case Effect::kTruncate:
      if (a.result == -EISDIR) t.file = present(slot, Type::kDirectory);
      if (!ok) return failed();
      t.file = present(slot, Type::kUnknown);
      if (effect == Effect::kTruncate) no_directory(slot);
      return t;
    default:
      t.file = slots_[slot].file;
      return t;
  }
}

}  // namespace feign
