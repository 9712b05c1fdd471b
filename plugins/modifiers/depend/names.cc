// SPDX-License-Identifier: MIT
// Rule path: names that come, go and move, and who looks for them.
#include <fcntl.h>
#include <linux/fs.h>

#include <cerrno>
#include <string_view>

#include "base/path.h"
#include "modifiers/depend/depend.h"

namespace depend {
namespace {

bool removes_directory(const feign_activity& a, Effect effect) {
  return effect == Effect::kRmdir || (effect == Effect::kUnlinkat && (a.flags & AT_REMOVEDIR) != 0);
}

}  // namespace

uint32_t Depend::name_of(uint32_t path) {
  if (path < name_of_path_.size() && name_of_path_[path] != 0) return name_of_path_[path];
  size_t length = 0;
  const char* text = host_->text(host_, path, &length);
  uint32_t parent = 0;
  if (length > 1) {
    const std::string_view all(text, length);
    const size_t slash = all.rfind('/');
    const std::string above(slash == 0 || slash == all.npos ? "/" : all.substr(0, slash));
    if (const uint32_t id = host_->intern(host_, above.data(), above.size()); id != path && id != 0)
      parent = name_of(id);
  }
  if (path >= name_of_path_.size())
    name_of_path_.resize(std::max<size_t>(path + size_t{1}, name_of_path_.size() * 3 / 2));
  names_.emplace_back();
  names_.back().parent = parent;
  return name_of_path_[path] = static_cast<uint32_t>(names_.size() - 1);
}

uint32_t Depend::barrier_above(uint32_t name) {
  Name& n = names_[name];
  if (n.above_valid == barriers_ || n.parent == 0) return n.above;
  n.above = names_[n.parent].barrier ? n.parent : barrier_above(n.parent);
  n.above_valid = barriers_;
  return n.above;
}

void Depend::in_use(uint32_t name) {
  while (name != 0 && !names_[name].in_use) {
    Name& n = names_[name];
    n.in_use = true;
    if (n.parent == 0) return;
    n.next_sibling = names_[n.parent].first_child;
    names_[n.parent].first_child = name;
    name = n.parent;
  }
}

void Depend::use_name(uint32_t path) {
  const uint32_t name = name_of(path);
  in_use(name);
  use(names_[name].access, kPath);
  if (const uint32_t above = barrier_above(name); above != 0)
    after(names_[above].access.change, kPath);
}

// A lookup that failed tells of every name on the way: a file may have been there, or gone.
void Depend::missed(const feign_activity& a, uint32_t path) {
  if (path == 0 || (a.result != -ENOENT && a.result != -ENOTDIR)) return;
  for (uint32_t up = names_[name_of(path)].parent; up != 0; up = names_[up].parent)
    after(names_[up].access.change, kPath);
}

// What was at or below a name comes before it changes; then nothing below has to be remembered:
// whoever comes there comes by the changed name. But for links, unless they are gone.
void Depend::below(uint32_t name, bool gone) {
  uint32_t child = std::exchange(names_[name].first_child, 0);
  while (child != 0) {
    below(child, gone);
    Name& n = names_[child];
    after(n.access.change, kPath);
    after(n.access.uses, kPath);
    if (n.entries)
      for (const Points& side : n.entries->sides) after(side, kPath);
    n.access = {};
    n.entries.reset();
    n.file = 0;
    if (gone || links_kept_ == 0) n.target = 0;
    if (n.target != 0) --links_kept_;
    if (n.barrier) {
      n.barrier = false;
      ++barriers_;
    }
    const uint32_t next = std::exchange(n.next_sibling, 0);
    n.in_use = n.target != 0 || n.first_child != 0;
    if (n.in_use) n.next_sibling = std::exchange(names_[name].first_child, child);
    child = next;
  }
}

void Depend::change_name(uint32_t path, bool directory, bool gone) {
  const uint32_t name = name_of(path);
  in_use(name);
  change(names_[name].access, kPath);
  if (const uint32_t above = barrier_above(name); above != 0)
    after(names_[above].access.change, kPath);
  if (const uint32_t parent = names_[name].parent; parent != 0)
    take_side(entries(parent), 0, kPath);
  if (!directory && names_[name].first_child == 0) return;
  below(name, gone);
  if (auto& entries = names_[name].entries; entries) {
    for (const Points& side : entries->sides) after(side, kPath);
    entries.reset();
  }
  if (!names_[name].barrier) {
    names_[name].barrier = true;
    ++barriers_;
  }
}

// The name that this one is, through links on its way, which are used; one at its end only if
// `follow`.
uint32_t Depend::led_to(uint32_t path, bool follow) {
  constexpr int kMostLinks = 40;                 // as the kernel
  constexpr size_t kLongest = size_t{16} << 10;  // no path is that long
  for (int links = 0; links < kMostLinks; ++links) {
    const uint32_t name = name_of(path);
    size_t rest = 0, behind = 0;  // components behind the first link
    uint32_t target = 0;
    for (uint32_t up = follow ? name : names_[name].parent, n = follow ? 0 : 1; up != 0;
         up = names_[up].parent, ++n)
      if (names_[up].target != 0) {
        target = names_[up].target;
        behind = n;
      }
    if (target == 0) break;
    use_name(path);
    size_t length = 0;
    const char* text = host_->text(host_, path, &length);
    const std::string_view all(text, length);
    for (rest = length; behind != 0; --behind) rest = all.rfind('/', rest - 1);
    text = host_->text(host_, target, &length);
    std::string to(text, length);
    if (!to.starts_with('/')) to.insert(0, all.substr(0, all.rfind('/', rest - 1) + 1));
    to = feign::clean_path(to.append(all.substr(rest)));
    if (to.size() > kLongest) break;
    path = host_->intern(host_, to.data(), to.size());
  }
  return path;
}

// Of an open or chdir that went by a link that no call tells: the name of that leads elsewhere.
void Depend::link_told(const feign_activity& a) {
  size_t length = 0;
  const char* text = host_->text(host_, a.path2, &length);
  const auto [target, rest] = feign::link_told({text, length});
  text = host_->text(host_, led_to(a.path, (a.marks & FEIGN_NOFOLLOW) == 0), &length);
  const std::string_view path(text, length);
  if (target.empty() || !path.ends_with(rest) || rest.size() >= path.size()) return;
  const std::string to(target);
  const std::string_view link = path.substr(0, path.size() - rest.size());
  const uint32_t id = host_->intern(host_, link.data(), link.size());
  is_link(id, host_->intern(host_, to.data(), to.size()));
}

// That a name is a link, and was before this: who went by it until now was elsewhere, where this
// may change something.
void Depend::is_link(uint32_t path, uint32_t target) {
  if (target == 0) return;
  if (names_[name_of(path)].target == 0) change_name(path, true);
  names_[name_of(path)].target = target;
  links_ = true;
}

void Depend::names(const feign_activity& a, Effect effect) {
  if (a.path2 != 0 && a.path != 0 && (feign::opens(effect) || effect == Effect::kGetcwd))
    link_told(a);
  if (!links_) return names_led_to(a, effect);
  const bool two = effect == Effect::kRename || effect == Effect::kLink;
  feign_activity led = a;
  const bool follow = (a.marks & FEIGN_NOFOLLOW) == 0 && effect != Effect::kUnlink;
  if (a.path != 0) led.path = led_to(a.path, follow);
  if (two && a.path2 != 0) led.path2 = led_to(a.path2, false);
  names_led_to(led, effect);
}

void Depend::names_led_to(const feign_activity& a, Effect effect) {
  // Of a file that was open before the trace: a replay opens it by its name when it is first used.
  if ((a.marks & FEIGN_INHERITED) && a.handle != 0 && a.path != 0 && !feign::opens(effect))
    use_name(a.path);
  if (effect == Effect::kCopy && a.path2 != 0) use_name(a.path2);
  const bool ok = a.result >= 0 && !(a.marks & FEIGN_NO_RESULT);
  if (!ok || !changed_names(a, effect)) used_names(a, effect, ok);
}

// What an activity does to the file that its names led to: change it, or look at it.
void Depend::identity(const feign_activity& a, bool changes) {
  if (a.file == 0) return;
  Shared& s = files_[a.file].identity;
  changes ? change(s, kPath) : use(s, kPath);
}

void Depend::named(const feign_activity& a) {
  if (a.file == 0) return;
  names_[name_of(a.path)].file = a.file;
  File& f = files_[a.file];
  f.made = true;
  ++f.names;
}

// A call that was successful. False: what names it used besides is to be told by used_names().
bool Depend::changed_names(const feign_activity& a, Effect effect) {
  const bool as_directory = (a.marks & (FEIGN_DIRECTORY | FEIGN_SYMLINK)) != 0;
  switch (effect) {
    case Effect::kOpen:
    case Effect::kCreat:
    case Effect::kFopen:
    case Effect::kFreopen:
    case Effect::kTmpfile:
      if (a.path == 0) return false;
      if ((a.flags & O_TMPFILE) == O_TMPFILE) {  // it has no name, in that directory
        use_name(a.path);
        if (a.file != 0) files_[a.file].made = true;
      } else if (a.marks & FEIGN_CREATES) {
        change_name(a.path, false);
        named(a);
      } else {
        return false;
      }
      break;
    case Effect::kUnlink:
    case Effect::kUnlinkat:
    case Effect::kRmdir: {
      if (a.path == 0) return false;
      const bool rmdir = removes_directory(a, effect);
      if (rmdir) take_side(entries(name_of(a.path)), 1, kPath);
      change_name(a.path, rmdir || as_directory);
      names_[name_of(a.path)].file = 0;
      names_[name_of(a.path)].target = 0;
      identity(a, true);
      if (File* const f = files_.find(a.file); f != nullptr) {
        f->names -= f->names != 0;
        if (f->ended()) files_.erase(a.file);
      }
      return true;
    }
    case Effect::kMkdir:
    case Effect::kMknod:
    case Effect::kBind:
    case Effect::kSymlink:
      if (a.path == 0) return false;
      change_name(a.path, effect == Effect::kMkdir || effect == Effect::kSymlink);
      if (effect == Effect::kSymlink) {
        names_[name_of(a.path)].target = a.path2;
        links_ = links_ || a.path2 != 0;
      }
      named(a);
      break;
    case Effect::kRename:
      if (a.path == 0 || a.path2 == 0) return false;
      renamed(a, as_directory || (a.flags & RENAME_EXCHANGE) != 0);
      break;
    case Effect::kLink:
      if (a.path2 != 0) {  // which may be another name of a symbolic link
        const uint32_t target = a.path != 0 && a.handle == 0 ? names_[name_of(a.path)].target : 0;
        change_name(a.path2, target != 0);
        names_[name_of(a.path2)].target = target;
      }
      if (a.file != 0) {
        ++files_[a.file].names;
        if (a.path2 != 0) names_[name_of(a.path2)].file = a.file;
      }
      return false;       // the name that was there
    case Effect::kChmod:  // what may be done with it and below it
      if (a.path != 0 && (a.marks & FEIGN_DIRECTORY))
        change_name(a.path, true, false);
      else if (a.path != 0 && a.handle == 0)
        use_name(a.path);
      break;
    case Effect::kSetXattr:
    case Effect::kRemoveXattr:
      if (a.path != 0 && a.handle == 0) use_name(a.path);
      break;
    default:
      return false;
  }
  identity(a, true);
  return true;
}

void Depend::renamed(const feign_activity& a, bool directory) {
  const bool exchanged = (a.flags & RENAME_EXCHANGE) != 0;
  if (directory) take_side(entries(name_of(a.path2)), 1, kPath);
  change_name(a.path, directory);
  change_name(a.path2, directory);
  // Some may have found what lay there by other names, through links.
  Name &old = names_[name_of(a.path)], &now = names_[name_of(a.path2)];
  if (now.file != a.file && files_.find(now.file) != nullptr)
    change(files_[now.file].identity, kPath);
  old.file = exchanged ? now.file : 0;
  now.file = a.file;
  std::swap(now.target, old.target);
  if (!exchanged) old.target = 0;
}

// A call that changed no name, or was refused.
void Depend::used_names(const feign_activity& a, Effect effect, bool ok) {
  switch (effect) {
    case Effect::kUnlink:
    case Effect::kUnlinkat:
    case Effect::kRmdir:
      if (a.path != 0 && removes_directory(a, effect))
        take_side(entries(name_of(a.path)), 1, kPath);
      break;
    case Effect::kRename:
      if (a.path == 0 || a.path2 == 0) return;
      take_side(entries(name_of(a.path2)), 1, kPath);  // ENOTEMPTY
      use_name(a.path2);
      break;
    case Effect::kLink:
      if (!ok && a.path2 != 0) use_name(a.path2);
      break;
    case Effect::kSetXattr:
    case Effect::kRemoveXattr:
    case Effect::kGetXattr:
      if (a.handle != 0) return identity(a, false);
      break;
    case Effect::kList:
      // What changed in it before it was moved, it did by another name.
      if (ok && a.path != 0) use_name(a.path);
      if (a.path != 0) take_side(entries(name_of(a.path)), 1, kPath);
      if (!ok) identity(a, false);  // ENOENT: the directory is removed by now
      return;
    case Effect::kReadlink:
      if (ok && a.path != 0 && a.handle == 0) is_link(a.path, a.path2);
      break;
    case Effect::kOpen:
    case Effect::kCreat:
    case Effect::kFopen:
    case Effect::kFreopen:
    case Effect::kTmpfile:
    case Effect::kMkdir:
    case Effect::kMknod:
    case Effect::kBind:
    case Effect::kSymlink:
    case Effect::kChmod:
    case Effect::kStat:
    case Effect::kStatat:
    case Effect::kAccess:
    case Effect::kAttr:
    case Effect::kTruncate:
      break;
    default:
      return;
  }
  if (a.path == 0 || (a.handle != 0 && !feign::opens(effect))) return;
  use_name(a.path);
  missed(a, a.path);
  if (effect == Effect::kRename || effect == Effect::kLink) missed(a, a.path2);
  if (ok) names_[name_of(a.path)].file = a.file;
  // Through links another name may have made what was in the way, or removed what is missing.
  identity(a, false);
  if (!ok && a.file == 0)
    if (File* const was = files_.find(names_[name_of(a.path)].file); was != nullptr)
      use(was->identity, kPath);
}

}  // namespace depend
