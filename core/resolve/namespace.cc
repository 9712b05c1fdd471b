// SPDX-License-Identifier: MIT
#include "resolve/namespace.h"

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
  // Below a directory that the trace made, or told all of, nothing was before it.
  if (parent != 0) {
    const Slot& p = slots_[parent];
    if (p.state == State::kAbsent ||
        (p.file != 0 && (files_[p.file].surely_made() || files_[p.file].whole)))
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
  if (links_ == 0) return path;
  const uint64_t key = uint64_t{path} << 1 | (follow ? 1 : 0);
  const auto kept = [&](uint32_t known) {
    if (root_ == 0) canonical_[key] = known;
    return known;
  };
  if (const auto at = canonical_.find(key); root_ == 0 && at != canonical_.end()) return at->second;
  if (const uint32_t known = by_directory(path, follow); known != 0) return kept(known);
  return kept(walked(path, follow, [this](std::string_view name) {
    const File& f = files_[slots_[slot_of_text(name)].file];  // files_[0] is of no type
    return f.type == Type::kSymlink ? f.target : 0;
  }));
}

uint32_t Namespace::new_file(Type type, bool created, bool certain) {
  File f;
  f.type = type;
  f.created = created;
  f.certain = certain;
  f.sized = f.surely_made() && type == Type::kFile;
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
  if (slots_[to].parent != 0) (void)holds(slots_[to].parent);
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
  if (moved == "/") moved.clear();
  moved += path.substr(path.rfind('/'));
  return strings_.intern(moved);
}

uint32_t Namespace::present(uint32_t slot, Type type) {
  if (slots_[slot].file == 0) {
    if (const uint32_t parent = slots_[slot].parent; parent != 0) {
      if (holds(parent) == 0) return 0;
    }
    // A name that the trace made first was not there when it began, whatever comes later.
    const bool leads =
        slots_[slot].state == State::kNoFile && (type == Type::kUnknown || type == Type::kSymlink);
    if (leads) type = Type::kDirectory;  // or a link to one
    const uint32_t file = new_file(type, slots_[slot].born, true);
    files_[file].leads = leads;
    files_[file].initial_path = initial_path_of(slot);
    files_[file].nowhere = slots_[slot].missed;
    files_[file].guessed = guessing_;
    put(slot, file);
    return file;
  }
  File& f = files_[slots_[slot].file];
  if (f.type == Type::kUnknown || (type == Type::kDirectory && f.type == Type::kFile) ||
      (f.supposed && type != Type::kUnknown))
    f.type = type;
  f.supposed = f.supposed && type == Type::kUnknown;
  if (f.guessed && type == Type::kFile) no_directory(slot);
  if (f.guessed && !guessing_) {
    if (type == Type::kFile || type == Type::kDirectory) f.type = type;
    f.guessed = type == Type::kUnknown;
    if (slots_[slot].parent != 0) (void)holds(slots_[slot].parent);
  }
  return slots_[slot].file;
}

// Something was found or made in that directory.
uint32_t Namespace::holds(uint32_t directory) {
  const uint32_t file = present(directory, Type::kDirectory);
  files_[file].entered |= file != 0 && !guessing_;
  return file;
}

void Namespace::no_socket(uint32_t file, Type type) {
  File& f = files_[file];
  if (f.type == Type::kOther && !f.created && (type == Type::kFile || type == Type::kDirectory))
    f.type = type;
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
  if (const uint32_t parent = slots_[slot].parent; parent != 0) (void)holds(parent);
  const bool surely = certain || slots_[slot].state == State::kAbsent ||
                      (slots_[slot].state == State::kNoFile && type != Type::kDirectory);
  const uint32_t file = new_file(type, true, surely);
  files_[file].initial_path = initial_path_of(slot);  // if it turns out to have been there
  if (certain && (slots_[slot].state == State::kUnknown || slots_[slot].state == State::kNoFile))
    slots_[slot].born = true;
  put(slot, file);
  return file;
}

void Namespace::nothing_else_in(uint32_t path) {
  const Slot& directory = slots_[slot_of(path)];
  if (directory.file == 0) return;
  files_[directory.file].whole = true;
  for (uint32_t c = directory.first_child; c != 0; c = slots_[c].next_sibling)
    if (slots_[c].file == 0) slots_[c].state = State::kAbsent;
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
    f.leads |= unknown_link || f.type == Type::kUnknown;
    f.type = Type::kDirectory;
    f.guessed = false;
  }
}

// It is there, and not for calls that follow links: no directory, if nothing but names that were
// looked for below it, or mkdir, told that it is one.
void Namespace::leads_nowhere(uint32_t slot) {
  File& f = files_[slots_[slot].file];
  f.nowhere = true;
  if (f.followed || f.entered || !(f.leads || f.supposed)) return;
  // The place that link_to_somewhere() found behind a link: that stays, and leads to nothing.
  if (slots_[slot].path == unknown_target(slots_[slot].file)) return forget(slot);
  f.type = Type::kSymlink;
  f.leads = f.supposed = false;
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
  const bool supposed = above == parent && files_[slots_[above].file].supposed;
  if (is_directory(above) && above == parent && !supposed) return false;
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

bool Namespace::finds_nothing(uint32_t path) {
  const Type above = files_[slots_[known_above(slot_of(path))].file].type;
  return absent_at(path) && (above == Type::kDirectory || above == Type::kUnknown);
}

bool Namespace::below(uint32_t slot, uint32_t above) const {
  for (uint32_t s = slots_[slot].parent; s != 0; s = slots_[s].parent)
    if (s == above) return true;
  return false;
}

void Namespace::move(uint32_t from, uint32_t to, Moved how) {
  if (from == to) return;
  if (how == Moved::kAlways) {
    File& f = files_[slots_[from].file];
    if (f.initial_path == slots_[from].path) f.initial_path = slots_[to].path;
    if (auto told = names_told_.extract(slots_[from].path); !told.empty()) {
      told.key() = slots_[to].path;
      names_told_.insert(std::move(told));
    }
  }
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

}  // namespace feign
