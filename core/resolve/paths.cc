// SPDX-License-Identifier: MIT
// Names as calls give them, made absolute: working directories, /proc/self/fd/N, chroot.
#include <algorithm>
#include <string>

#include "base/path.h"
#include "resolve/path_rules.h"
#include "resolve/resolve.h"

namespace feign {

// Goes up from where links lead to, not from their names, but not from `root`; for paths with "..".
std::string Resolve::physical(const Thread& t, std::string base, std::string_view text,
                              std::string_view root) {
  for (std::string_view part; !(part = take_component(text)).empty();) {
    if (part != "..") {
      base += '/';
      base += part;
      continue;
    }
    base = clean_path(base);
    const uint32_t meant = behind_proc(t, base, nullptr);
    base = tables_.strings.text(
        names_.canonical(meant != 0 ? meant : tables_.strings.intern(base), true));
    if (base != root) base.resize(std::min(base.rfind('/'), base.size()));
  }
  return base;
}

// A thread of that id that has not ended, by the one that names it; null if the trace has none.
const Resolve::Thread* Resolve::running(const Thread& t, int64_t id) const {
  feign_stream_info info = tables_.streams.info(t.now);
  if (id == info.process || id == info.thread) return &t;
  info.thread = id;
  info.again = 0;  // as the provider numbers it
  const uint32_t stream = tables_.streams.find(info);
  if (stream >= threads_.size()) return nullptr;
  const Thread& found = threads_[stream];
  return found.known && !found.ended ? &found : nullptr;
}

// Names below /proc and /dev that stand for what a process has open, or for where it is: the name
// that is meant, 0 if it is none of these.
// Where it is a descriptor itself, `open` gets what is behind it.
uint32_t Resolve::behind_proc(const Thread& t, std::string_view text, Description** open) {
  if (text.size() < 8 || (text[1] != 'p' && text[1] != 'd')) return 0;
  std::string_view rest = text;
  const auto take = [&](std::string_view prefix) {
    if (!rest.starts_with(prefix)) return false;
    rest.remove_prefix(prefix.size());
    return true;
  };
  uint32_t base = 0;
  const Thread* of = &t;
  const auto number = [&]() -> int32_t {
    int32_t n = 0;
    size_t digits = 0;
    while (digits < rest.size() && digits < 9 && rest[digits] >= '0' && rest[digits] <= '9')
      n = n * 10 + (rest[digits++] - '0');
    rest.remove_prefix(digits);
    return digits != 0 ? n : -1;
  };
  const auto thread = [&] {
    const int32_t id = number();
    of = id >= 0 && take("/") ? running(t, id) : nullptr;
    return of != nullptr;
  };
  const auto descriptor = [&] {
    const auto at = of->table->map.find(number());
    if (at == of->table->map.end()) return;
    if (!rest.empty() && has_no_name(*at->second.description)) return;
    base = named(at->second.description->path, at->second.description->gone && !rest.empty());
    if (rest.empty() && open != nullptr) *open = at->second.description;
  };
  if (take("/dev/fd/")) {
    descriptor();
  } else if (text == "/dev/stdin" || text == "/dev/stdout" || text == "/dev/stderr") {
    rest = text == "/dev/stdin" ? "0" : text == "/dev/stdout" ? "1" : "2";
    descriptor();
  } else if (take("/proc/") && (take("self/") || take("thread-self/") || thread()) &&
             (!take("task/") || thread())) {
    if (take("fd/"))
      descriptor();
    else if (take("cwd"))
      base = named(of->place->path, of->place->gone);
    else if (take("root"))
      base = of->place->root != 0 ? of->place->root : tables_.strings.intern("/");
  }
  if (base == 0 || (!rest.empty() && rest[0] != '/')) return 0;
  return rest.empty() ? base
                      : tables_.strings.intern(clean_path(std::string(tables_.strings.text(base)) +
                                                          std::string(rest)));
}

// The same for a name whose last part is used itself, even if it is a link.
uint32_t Resolve::behind_proc(const Thread& t, std::string_view text, bool follow,
                              Description** open) {
  if (follow) return behind_proc(t, text, open);
  const std::string_view last = text.substr(std::min(text.rfind('/'), text.size()));
  Description* directory = nullptr;
  const uint32_t above = behind_proc(t, text.substr(0, text.size() - last.size()), &directory);
  if (above == 0 || (directory != nullptr && has_no_name(*directory))) return 0;
  return tables_.strings.intern(clean_path(std::string(tables_.strings.text(above)).append(last)));
}

// What the tracer says of the working directory counts where no call tells it, what the provider
// takes for granted where nothing does.
void Resolve::moves(const Thread& t, uint32_t directory, bool gone) {
  t.place->path = directory;
  t.place->gone = gone;
  t.place->told = t.place->guessed = false;
}

// Where a process is, if that is elsewhere than it went: by way of a link that was there before.
void Resolve::tells_link(feign_activity& getcwd, const Place& place) {
  if (!place.told || place.gone || place.root != 0) return;
  feign_activity link = getcwd;
  link.path = place.path;
  link.path2 = names_.link_between(link.path, true, getcwd.path);
  if (link.path2 != 0) {
    getcwd = link;
    if (link = names_.readlink_for(getcwd); link.path != 0) (void)names_.assume(link);
  }
}

void Resolve::works_in(Thread& t, uint32_t hint) {
  if (hint == 0) return;
  if (told_ && is_path(tables_.strings.text(hint))) names_.has_no_links(hint);
  const bool guessed = told_ && std::exchange(t.place->guessed, false);
  if (hint == t.place->path) return;
  if (t.place->path == 0 || guessed || (told_ && !moves_seen_)) {
    t.place->path = hint;
    t.place->gone = false;
    t.place->told = tables_.strings.text(hint) != "/";  // which is taken where nothing tells it
    return;
  }
  if (!told_ || t.place->gone) return;
  // It went there by a link that no call told. (What an open found tells that, too.)
  const uint32_t named = names_.canonical(t.place->path, true);
  if (named != hint && !names_.is_without_links(named)) {
    if (!opened_) t.place->path = hint;
    return;
  }
  // By way of what was taken for a link, which need not be one: names go by what the tracer says.
  const uint32_t real = names_.canonical(hint, true);
  if (real != hint && real == named) {
    t.place->path = hint;
    return;
  }
  // In another directory than calls say, and not in the same under a name that it had: it left what
  // it shared with others, by a call that is missing (strace -e trace=%process has no unshare).
  const uint32_t there = names_.at(real);
  if (there == 0 || there == names_.at(named)) return;
  if (t.place.use_count() > 1) t.place = std::make_shared<Place>(*t.place);
  t.place->path = hint;
}

uint32_t Resolve::absolute(Thread& t, uint32_t base_handle, uint32_t hint, uint32_t path) {
  const std::string_view text = tables_.strings.text(path);
  if (text.empty() || text.size() > kLongestPath) return 0;
  const bool by_links = names_.has_links() || t.place->root != 0 || text.starts_with("/proc/") ||
                        text.starts_with("/dev/");
  const bool up = by_links && text.find("..") != std::string_view::npos;
  std::string root;  // ".." does not lead out of it
  if (t.place->root != 0) root = tables_.strings.text(t.place->root);
  if (text[0] == '/') {
    if (up) return tables_.strings.intern(clean_path(physical(t, root, text, root)));
    if (!root.empty()) return tables_.strings.intern(clean_path(root + std::string(text)));
    if (path < cleaned_.size() && cleaned_[path] != 0) return cleaned_[path];
    const uint32_t clean = tables_.strings.intern(clean_path(text));
    if (path >= cleaned_.size()) cleaned_.resize(std::max<size_t>(path + 1, path * size_t{3} / 2));
    return cleaned_[path] = clean;
  }
  uint32_t base = 0;
  bool gone = false;
  if (base_handle == FEIGN_CWD || base_handle == 0) {
    works_in(t, hint);
    base = t.place->path;
    gone = t.place->gone;
  } else {
    const auto at = t.table->map.find(FEIGN_FD_OF(base_handle));
    const Description* const d = at != t.table->map.end() ? at->second.description : nullptr;
    const bool another = d != nullptr && told_ && hint != 0 && d->path != hint && d->said != hint &&
                         is_another(*d, hint);
    const bool known = d != nullptr && !another;
    base = known ? d->path : hint;
    gone = known && d->gone;
    if (base == 0) return 0;  // of no directory at all, or of one that nothing tells
  }
  base = named(base, gone);
  if (up)
    return tables_.strings.intern(
        clean_path(physical(t, std::string(tables_.strings.text(base)), text, root)));
  uint32_t& joined = joined_[uint64_t{base} << 32 | path];
  if (joined == 0) {
    if (tables_.strings.text(base).size() + text.size() > kLongestPath) return 0;
    std::string whole(tables_.strings.text(base));
    whole += '/';
    whole += text;
    joined = tables_.strings.intern(clean_path(whole));
  }
  if (gone && joined == base) return 0;  // itself, which no name leads to
  return joined;
}

// Whether ".." is behind a name that is missing, or behind a link that leads to itself: what the
// path would lead to may be there.
bool Resolve::ups_from_nothing(Thread& t, uint32_t base_handle, uint32_t hint,
                               std::string_view text) {
  constexpr std::string_view kUp = "/..";
  constexpr int kMost = 40;  // of a text that somebody made up
  int ups = 0;
  for (size_t at = text.find(kUp, 1); at != text.npos; at = text.find(kUp, at + 1)) {
    const size_t behind = at + kUp.size();
    if (behind < text.size() && text[behind] != '/') continue;
    if (++ups > kMost) return false;
    if (text.substr(0, at).ends_with("/..")) continue;  // said of what is below it
    const uint32_t from =
        absolute(t, base_handle, hint, tables_.strings.intern(text.substr(0, at)));
    if (from == 0) continue;
    const uint32_t at_last = names_.canonical(from, true);
    const Namespace::File& f = names_.file(names_.at(at_last));
    if (names_.absent_at(at_last) || (f.type == Namespace::Type::kSymlink && f.target != 0))
      return true;
  }
  return false;
}

// Whether a directory descriptor is none: paths from it are refused, whatever they are.
bool Resolve::no_directory(Thread& t, uint32_t handle, uint32_t hint) {
  const Description* const d = find(t, handle, hint);
  if (d == nullptr) return false;
  if (d->marks & FEIGN_NOT_A_FILE) return true;
  const Namespace::Type type = names_.file(d->file).type;  // of none: unknown
  return type == Namespace::Type::kFile || type == Namespace::Type::kSymlink;
}

// Whether what is open is no file, or one that its path does not lead to (O_TMPFILE).
bool Resolve::has_no_name(const Description& d) {
  return (d.marks & FEIGN_NOT_A_FILE) ||
         (!d.gone && d.file != 0 && names_.at(names_.canonical(d.path, true)) != d.file &&
          names_.at(names_.canonical(d.path, false)) != d.file);  // O_PATH: a link itself
}

// Whether the name that it was opened by leads elsewhere, or nowhere. (Pipes never had one.)
bool Resolve::has_lost_name(const Description& d) {
  return d.file != 0 && (d.path != 0 || !(d.marks & FEIGN_NOT_A_FILE)) &&
         names_.at(names_.canonical(d.path, true)) != d.file;
}

// Devices, and what the kernel makes up: not storage. (Disks are.)
bool Resolve::no_storage(feign_activity& a, uint32_t path) {
  const std::string_view text = tables_.strings.text(path);
  const auto below = [&](std::string_view folder) {
    return text.starts_with(folder) && (text.size() == folder.size() || text[folder.size()] == '/');
  };
  if (text.size() < 4 || (text[1] != 'p' && text[1] != 's' && text[1] != 'd')) return false;
  if (below("/dev")) {
    if (below("/dev/shm") || below("/dev/mqueue") || below("/dev/hugepages") || is_disk(text))
      return false;
  } else if (!below("/proc") && !below("/sys")) {
    return false;
  }
  a.marks |= FEIGN_NOT_A_FILE | FEIGN_NO_STORAGE;
  return true;
}

// Whether what a tracer says of a descriptor is a file's name, and that of storage.
bool Resolve::names_storage(feign_activity& a, uint32_t said) {
  const std::string_view text = tables_.strings.text(said);
  return text.starts_with('/') && !text.starts_with("/memfd:") && !no_storage(a, said);
}

// After a directory was renamed, what is open below it, and who works or has its root in it, is
// elsewhere by name.
void Resolve::renamed(uint32_t from, uint32_t to) {
  const std::string old(tables_.strings.text(from));
  const std::string target(tables_.strings.text(to));
  const auto moved = [&](uint32_t path) -> uint32_t {
    const std::string_view text = tables_.strings.text(path);
    if (!text.starts_with(old) || (text.size() > old.size() && text[old.size()] != '/'))
      return path;
    return tables_.strings.intern(target + std::string(text.substr(old.size())));
  };
  for (const auto& d : pool_)
    if (d->refs != 0 && d->path != 0) d->path = moved(d->path);
  for (const uint32_t one : running_) {
    Place& place = *threads_[one].place;
    if (place.path != 0) place.path = moved(place.path);
    if (place.root != 0) place.root = moved(place.root);
  }
}

// Whoever is in a directory that goes, or has it open, is not in what may get its name later.
void Resolve::removed(uint32_t directory) {
  for (const auto& d : pool_)
    if (d->refs != 0 && d->path == directory) d->gone = true;
  for (const uint32_t one : running_)
    if (Place& place = *threads_[one].place; place.path == directory) place.gone = true;
}

// What names in a directory begin with: in one that is gone, as the kernel shows it, so that they
// are missing, and ".." leads to where it was.
uint32_t Resolve::named(uint32_t directory, bool gone) {
  if (!gone) return directory;
  return tables_.strings.intern(std::string(tables_.strings.text(directory)).append(kGone));
}

}  // namespace feign
