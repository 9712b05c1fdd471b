// SPDX-License-Identifier: MIT
// Symbolic links that no call of the trace made: names that turn out to be some, what was learned
// of them before, and what only a tracer's word tells of them.
#include <algorithm>
#include <string>
#include <unordered_set>
#include <utility>

#include "base/path.h"
#include "resolve/namespace.h"

namespace feign {
namespace {

bool is_at_or_below(std::string_view path, std::string_view above) {
  return path.starts_with(above) && (path.size() == above.size() || path[above.size()] == '/');
}

}  // namespace

// A name turns out to be a link after it was used: what was learned is of the file behind it.
uint32_t Namespace::link_found(uint32_t slot, uint32_t target) {
  if (is_told_name(slot)) return link_to_told(slot, target);
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
  if (slots_[behind].parent != 0) (void)holds(slots_[behind].parent);
  if (slots_[behind].state == State::kNoFile && files_[old].type == Type::kUnknown)
    files_[old].type = Type::kDirectory;
  slots_[behind].file = old;
  slots_[behind].state = State::kPresent;
  files_[old].initial_path = slots_[behind].path;
  join_children(slot, behind);
  return link;
}

// A target of its own: others of that length are others. What lies there would be one name too many
// where the trace lists directories, so that it gets one that no trace knows. (A name has 255 bytes
// at most: slashes fill up the rest.)
uint32_t Namespace::unknown_target(uint32_t link, size_t length) {
  std::string target(length, 'x'), number;
  for (uint32_t n = link; number.empty() || n != 0; n /= 36)
    number.insert(number.begin(), "0123456789abcdefghijklmnopqrstuvwxyz"[n % 36]);
  if (number.size() < length) target.replace(length - number.size(), number.size(), number);
  for (const std::string_view place : {"/.links/", "/."})  // the second, if it must be short
    if (number.size() + place.size() <= length) {
      constexpr size_t kName = 200;
      if (length > place.size() + kName) target.replace(0, length - kName, length - kName, '/');
      target.replace(0, place.size(), place);
      break;
    }
  return strings_.intern(target);
}

// What is removed as a file, or refused to be removed as a directory, or has got a second name, and
// is a directory to calls that follow links: a link.
uint32_t Namespace::no_file_nor_directory(uint32_t slot) {
  const uint32_t file = slots_[slot].file;
  const File& f = files_[file];
  bool names = f.type == Type::kDirectory && (f.followed || f.leads) && may_be_link(slot);
  for (uint32_t c = slots_[slot].first_child; c != 0; c = slots_[c].next_sibling)
    names = names || (slots_[c].file != 0 && !files_[slots_[c].file].guessed);
  if (!names || f.created || f.target != 0) {
    no_directory(slot);
    return file;
  }
  return link_to_somewhere(slot);
}

// What is in that slot is a link; where it leads no call has told.
uint32_t Namespace::link_to_somewhere(uint32_t slot) {
  const uint32_t link = link_found(slot, unknown_target(slots_[slot].file));
  files_[link].assumed = true;
  return link;
}

// A call that follows no links refuses to open one: others may find by it what it leads to.
uint32_t Namespace::some_link(uint32_t slot) {
  const uint32_t file = present(slot, Type::kSymlink);
  const File& f = files_[file];
  return file == 0 || f.created || f.target != 0 ? file : link_to_somewhere(slot);
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
  if (slots_[was].file == 0 && slots_[was].first_child == 0) return;  // nothing was found there
  if (slots_[behind].file == 0) {
    if (slots_[behind].parent != 0) (void)holds(slots_[behind].parent);
    move(was, behind, Moved::kAlways);
  } else {
    is_same(slots_[was].file, behind);
    join_children(was, behind);
  }
}

// ---- links that only an open tells --------------------------------------------------------------
//
// Such a link (by_open) is a guess: an open came to a file that lies elsewhere, and nothing else
// tells why. It stands until a call or another open contradicts it. Then it is a directory
// (is_no_link()), and the names below it that were used by way of it (used_by_) are guessed to be
// links by themselves, which is why these functions call each other by way of read_link(). That
// ends: a guess is taken back by marking its name as none (no_link), and is not made again
// (may_be_link()) before something else comes to that name.

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

// A link, where an open by another name told that there is none: what led there is no link then,
// and this is one. Where it is.
uint32_t Namespace::own_link(uint32_t slot, uint32_t path) {
  if (!slots_[slot].no_link) return slot;
  uint32_t guess = 0;
  (void)walked(path, false, [&](std::string_view name) {
    const uint32_t at = slot_of_text(name);
    const File& f = files_[slots_[at].file];
    if (f.by_open && guess == 0) guess = at;
    return f.type == Type::kSymlink ? f.target : 0;
  });
  if (guess == 0) return slot;
  is_no_link(guess);
  return slot_of(canonical(path, false));
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
uint32_t Namespace::explained(uint32_t path, bool follow, uint32_t real) {
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

// The last directory on the way by a name that is a link by an open's word alone; where the name
// itself is one that only another name told of, on the way by that. 0 if there is none.
uint32_t Namespace::link_on_way(uint32_t path, bool told) {
  const std::string text(strings_.text(path));
  for (size_t end = text.rfind('/'); end != 0 && end != text.npos; end = text.rfind('/', end - 1)) {
    const uint32_t above = slot_of(canonical(strings_.intern(text.substr(0, end)), false));
    if (files_[slots_[above].file].by_open) return above;
  }
  const auto by = told_by_.find(slots_[slot_of(canonical(path, false))].file);
  return told || by == told_by_.end() ? 0 : link_on_way(by->second, true);
}

// An open found what no more links explain: there was something by that name before, elsewhere.
// Then what was taken for a link on the way to it is none, though names below it fitted. Its path.
uint32_t Namespace::contradicted(uint32_t path, bool follow, uint32_t real) {
  const uint32_t at = slot_of(canonical(path, follow)), file = slots_[at].file;
  if (at == slot_of(real) || file == 0 || slots_[at].born || files_[file].created ||
      explained(path, follow, real) != 0)
    return 0;
  const uint32_t slot = link_on_way(path, false);
  if (slot == 0) return 0;
  used_by_[slots_[slot].file].erase(path);  // where that leads, this open tells
  is_no_link(slot);
  is_its_own(slot_of(path));
  took_back_ = true;
  return slots_[slot].path;
}

uint32_t Namespace::link_between(uint32_t path, bool follow, uint32_t real) {
  for (uint32_t s = slot_of(real); s != 0; s = slots_[s].parent)
    if (files_[slots_[s].file].by_open)
      return strings_.intern("/." + std::string(strings_.text(real)));
  const uint32_t none = contradicted(path, follow, real);
  const uint32_t told = explained(path, follow, real);
  if (told != 0 || none == 0) return told;
  return strings_.intern("/." + std::string(strings_.text(none)));
}

feign_activity Namespace::readlink_for(const feign_activity& open) {
  feign_activity a{};
  const LinkTold told = link_told(strings_.text(open.path2));
  if (told.target.empty()) {
    const uint32_t real = slot_of_text(clean_path(told.rest));
    for (uint32_t s = real; s != 0; s = slots_[s].parent) {
      const File& f = files_[slots_[s].file];
      if (f.type != Type::kSymlink || f.by_open) slots_[s].no_link = true;  // nor is what was met
    }
    for (uint32_t s = real; s != 0; s = slots_[s].parent)
      if (files_[slots_[s].file].by_open) is_no_link(s);
    return a;
  }
  const bool follow = (open.marks & FEIGN_NOFOLLOW) == 0;
  const uint32_t real = strings_.intern(clean_path(std::string(told.target).append(told.rest)));
  if (told.target.starts_with('/')) (void)contradicted(open.path, follow, real);
  const std::string_view name = strings_.text(canonical(open.path, follow));
  if (!told.target.starts_with('/') || !name.ends_with(told.rest) ||
      told.rest.size() >= name.size())
    return a;
  const std::string link(name.substr(0, name.size() - told.rest.size())), target(told.target);
  a.path = strings_.intern(link);
  a.path2 = strings_.intern(clean_path(target));
  a.result = static_cast<int64_t>(target.size());
  a.marks = FEIGN_NOFOLLOW;
  real_ = real;
  asked_by_ = is_at_or_below(strings_.text(open.path), link) ? 0 : open.path;
  return a;
}

Namespace::Touched Namespace::assume(const feign_activity& readlink) {
  const uint32_t by = std::exchange(asked_by_, 0);
  const uint32_t real = std::exchange(real_, 0);
  std::set<uint32_t> names;
  names_below(slot_of(readlink.path), names);
  const Touched touched = apply(readlink, Effect::kReadlink);
  const uint32_t file = slots_[slot_of(readlink.path)].file;
  File& link = files_[file];
  if (link.type != Type::kSymlink || link.target != readlink.path2) return touched;
  link.assumed = link.by_open = opens_told_ = true;
  used_by_[file].merge(names);
  if (by != 0) told_by_[file] = by;
  if (real != 0) has_no_links(real);
  return touched;
}

// Those that something is known to be at.
void Namespace::names_below(uint32_t slot, std::set<uint32_t>& names) const {
  for (uint32_t c = slots_[slot].first_child; c != 0; c = slots_[c].next_sibling) {
    if (slots_[c].file != 0) names.insert(slots_[c].path);
    names_below(c, names);
  }
}

void Namespace::read_link(uint32_t slot, uint32_t target) {
  feign_activity a{};
  a.path = slots_[slot].path;
  a.path2 = target;
  a.marks = FEIGN_NOFOLLOW;
  (void)assume(a);
}

// A name by way of what an open told of.
void Namespace::goes_by_links(uint32_t path) {
  if (canonical(path, false) == path) {
    told_by_.erase(slots_[slot_of(path)].file);
    return;
  }
  const std::string text(strings_.text(path));
  for (size_t at = text.find('/', 1); at != text.npos; at = text.find('/', at + 1)) {
    const uint32_t above = canonical(strings_.intern(text.substr(0, at)), false);
    const uint32_t file = slots_[slot_of(above)].file;
    if (!files_[file].by_open) continue;
    if (text.compare(0, at, strings_.text(above)) == 0) told_by_.erase(file);  // by its own
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
    for (size_t end = directory.size(); end != text.size();) {
      end = std::min(text.find('/', end + 1), text.size());
      const uint32_t at = slot_of_text(std::string_view(text).substr(0, end));
      is_its_own(at);
      if (may_be_link(at)) {
        std::string to = target + text.substr(directory.size(), end - directory.size());
        for (size_t n = to.find('/', target.size() + 1);; n = to.find('/', n + 1)) {
          n = std::min(n, to.size());
          if (const uint32_t link = only_by(to.substr(0, n), directory); link != 0) {
            to.replace(0, n, strings_.text(files_[link].target));
            break;
          }
          if (n == to.size()) break;
        }
        read_link(at, strings_.intern(clean_path(to)));
      }
      const uint32_t there = slots_[at].file;
      if (files_[there].by_open && end != text.size()) used_by_[there].insert(name);
      if (!slots_[at].no_link || files_[there].created) break;
    }
  }
}

// The link at a path that only names below that directory told of: there is none. 0: there may be.
uint32_t Namespace::only_by(std::string_view path, std::string_view directory) {
  const uint32_t slot = slot_of_text(clean_path(path)), link = slots_[slot].file;
  const auto by = told_by_.find(link);
  if (by == told_by_.end() || !is_at_or_below(strings_.text(by->second), directory)) return 0;
  told_by_.erase(by);
  used_by_.erase(link);
  files_[link].by_open = files_[link].assumed = false;
  files_[link].initial_path = 0;
  slots_[slot].file = 0;
  slots_[slot].state = State::kUnknown;
  links_changed();
  return link;
}

// Another name does not lead to it after all.
void Namespace::is_its_own(uint32_t slot) {
  File& f = files_[slots_[slot].file];
  if (f.same == 0 || f.created || f.initial_path != 0) return;
  f.same = 0;
  f.initial_path = initial_path_of(slot);
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

// Whether a stat told a file of several names by this name, and the name is still that file's.
bool Namespace::is_told_name(uint32_t slot) {
  if (names_told_.empty()) return false;
  const auto at = names_told_.find(initial_path_of(slot));
  const uint32_t file = slots_[slot].file;
  return at != names_told_.end() && file != 0 && same(at->second) == file;
}

// Such a name is none of that file's. Where it was when the trace began.
uint32_t Namespace::loses_told_name(uint32_t slot) {
  const auto name = names_told_.extract(initial_path_of(slot));
  files_[name.mapped()].initial_path = 0;
  --files_[slots_[slot].file].links;
  return name.key();
}

// A name by way of a link, and the own one of what is there.
void Namespace::is_same_name(uint32_t slot, uint32_t own) {
  const uint32_t file = slots_[slot].file;
  if (!is_told_name(slot)) return is_same(file, own);
  (void)loses_told_name(slot);
  (void)one_of_several(own, file);
}

// A name by which a file of several was told is a link: what it leads to is a name of that file.
uint32_t Namespace::link_to_told(uint32_t slot, uint32_t target) {
  const uint32_t old = slots_[slot].file;
  const uint32_t name = loses_told_name(slot);
  const uint32_t link = new_file(Type::kSymlink, false, false);
  files_[link].target = target;
  files_[link].links = 1;
  files_[link].initial_path = target != 0 ? name : 0;
  slots_[slot].file = link;
  if (target == 0) return link;
  ++links_;
  links_changed();
  const uint32_t behind = slot_of(canonical(slots_[slot].path, true));
  if (behind == slot || below(behind, slot)) return link;
  const uint32_t there = present(behind, Type::kFile);
  if (there != old && there != 0) (void)one_of_several(behind, old);
  return link;
}

// What is in that slot is a file of several names, which has another number.
uint32_t Namespace::one_of_several(uint32_t slot, uint32_t known) {
  const uint32_t file = slots_[slot].file;
  File& f = files_[file];
  if (f.surely_made() || f.links != 1 || file == known) return 0;
  if (f.initial_path != 0) names_told_[f.initial_path] = file;
  f.same = known;
  f.created = files_[known].created = false;  // or they would not be one
  f.links = 0;
  slots_[slot].file = known;
  ++files_[known].links;
  return file;
}

// (What calls linked has one number already.)
Namespace::Touched Namespace::identified_at(uint32_t slot, uint64_t identity) {
  Touched t;
  t.file = slots_[slot].file;
  const File& f = files_[t.file];
  if (t.file == 0 || f.surely_made()) return t;
  uint32_t& known = by_identity_[identity];
  if (known == t.file) return t;
  if (known == 0 || files_[known].gone || f.links != 1) {
    known = t.file;
    return t;
  }
  if (files_[known].initial_path != 0) names_told_[files_[known].initial_path] = known;
  t.file2 = one_of_several(slot, known);
  t.file = known;
  return t;
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
      is_same_name(c, there);
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

// A link that is told moves the names below it, but not where what had left them by then was. Where
// a directory is known by the link's name alone, that is the name of what is in it, too. A link
// that is where something else was before came later.
void Namespace::settle_initial_paths() {
  std::unordered_map<std::string_view, uint32_t> targets;  // of links, by where they were
  std::unordered_set<uint32_t> there;
  for (const File& f : files_) {
    if (f.initial_path == 0 || f.created) continue;
    there.insert(f.initial_path);
    if (f.type == Type::kSymlink && f.target != 0)
      targets.emplace(strings_.text(f.initial_path), f.target);
  }
  if (targets.empty()) return;
  for (const File& f : files_)
    if (f.initial_path != 0 && f.type != Type::kSymlink)
      targets.erase(strings_.text(f.initial_path));
  const auto target_of = [&](std::string_view name) {
    const auto at = targets.find(name);
    return at != targets.end() ? at->second : 0;
  };
  const auto is_by_link = [&](std::string_view path) {
    for (size_t end = path.find('/', 1); end != path.npos; end = path.find('/', end + 1))
      if (target_of(path.substr(0, end)) != 0) return true;
    return false;
  };
  for (File& f : files_) {
    if (f.initial_path == 0 || !is_by_link(strings_.text(f.initial_path))) continue;
    const uint32_t own = walked(f.initial_path, false, target_of);
    const std::string_view path = strings_.text(own);
    if (there.contains(own) ||
        !there.contains(strings_.intern(path.substr(0, std::max<size_t>(path.rfind('/'), 1)))))
      continue;
    f.initial_path = own;
    if (!f.created) there.insert(own);
  }
}

}  // namespace feign
