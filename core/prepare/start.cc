// SPDX-License-Identifier: MIT
// What there was before the first call, when all calls have been seen.
#include <fcntl.h>

#include <algorithm>
#include <utility>

#include "base/path.h"
#include "prepare/prepare.h"

namespace feign {

// Bytes of entries that a listing showed and that no call names. `entries`: bytes of those that
// were there when the trace began, `by_path`: the files of these.
int64_t Needs::unnamed(const Listing& l, int64_t entries,
                       const std::unordered_map<uint32_t, uint32_t>& by_path) {
  int64_t bytes = static_cast<int64_t>(l.bytes - kNoEntries) - entries - l.by_trace;
  for (const uint32_t other : l.others)
    if (const auto was = by_path.find(other); was != by_path.end() && was->second < l.known)
      bytes += entry_bytes(name_of(strings_.text(other)));
  return bytes;
}

// Which of these files have `bytes` of entries in a listing; none if nothing fits.
std::vector<uint32_t> Needs::with_entries(const std::vector<uint32_t>& files, int64_t bytes) {
  constexpr size_t kMostSteps = size_t{1} << 22;
  std::vector<int64_t> each;
  int64_t all = 0;
  for (const uint32_t file : files)
    all += each.emplace_back(entry_bytes(name_of(strings_.text(names_.file(file).initial_path))));
  if (bytes == all) return files;
  if (bytes <= 0 || bytes > all || bytes % 8 != 0) return {};
  const auto want = static_cast<size_t>(bytes / 8);
  if (want * files.size() > kMostSteps) return {};
  std::vector<size_t> last(want + 1, SIZE_MAX);  // the file that made so many bytes of it
  last[0] = files.size();
  for (size_t i = 0; i < files.size(); ++i)
    for (size_t at = want, step = static_cast<size_t>(each[i] / 8); at >= step && at != 0; --at)
      if (last[at] == SIZE_MAX && last[at - step] != SIZE_MAX) last[at] = i;
  std::vector<uint32_t> found;
  if (last[want] == SIZE_MAX) return found;
  for (size_t at = want; at != 0; at -= static_cast<size_t>(each[last[at]] / 8))
    found.push_back(files[last[at]]);
  return found;
}

// Of what listings showed by name there remains what no call names, once each.
void Needs::only_named() {
  if (named_.empty()) return;
  std::unordered_set<uint32_t> known;
  names_.for_each_name([&](uint32_t path, uint32_t, uint32_t) { known.insert(path); });
  std::erase_if(named_, [&](const auto& entry) { return !known.insert(entry.first).second; });
}

// Whether files were there that an open with O_CREAT made otherwise, that a rename may have taken
// away, or that were refused: listings of their directory tell.
void Needs::there_by_listings() {
  // By path of the directory:
  std::unordered_map<uint32_t, std::vector<uint32_t>> guesses, refused;
  for (const auto& [directory, all] : listings_)
    guesses.try_emplace(names_.file(directory).initial_path);
  std::unordered_map<uint32_t, int64_t> entries;
  std::unordered_map<uint32_t, uint32_t> by_path;
  if (guesses.empty()) return;
  const auto directory_of = [&](uint32_t path) {
    const std::string_view text = strings_.text(path);
    return strings_.intern(text.substr(0, std::max<size_t>(text.rfind('/'), 1)));
  };
  for (uint32_t id = 1; id < names_.file_count(); ++id) {
    const Namespace::File& f = names_.file(id);
    if (f.initial_path == 0 || f.surely_made()) continue;
    const std::string_view path = strings_.text(f.initial_path);
    const uint32_t parent = directory_of(f.initial_path);
    const auto in = guesses.find(parent);
    if (in == guesses.end() || path.size() == 1) continue;
    if (f.created)
      in->second.push_back(id);
    else if (by_path.emplace(f.initial_path, id).second)
      entries[parent] += entry_bytes(name_of(path));
    if (!f.created && guessed_.contains(id)) refused[parent].push_back(id);
  }
  for (const auto& [path, type] : named_)
    if (!by_path.contains(path))
      entries[directory_of(path)] += entry_bytes(name_of(strings_.text(path)));
  for (const auto& [directory, all] : listings_) {
    const uint32_t path = names_.file(directory).initial_path;
    const std::vector<uint32_t>& ids = guesses[path];
    std::vector<const Listing*> whole;
    for (const Listing& l : all)
      if (l.over && l.bytes >= kNoEntries) whole.push_back(&l);
    if (whole.empty()) continue;
    if (const int64_t fewer = -unnamed(*whole[0], entries[path], by_path); fewer > 0)
      for (const uint32_t id : with_entries(refused[path], fewer)) {
        const uint32_t name = std::exchange(names_.file(id).initial_path, 0);
        by_path.erase(name);
        entries[path] -= entry_bytes(name_of(strings_.text(name)));
      }
    if (ids.empty()) continue;
    std::vector<int64_t> missing;
    for (const Listing* l : whole) missing.push_back(unnamed(*l, entries[path], by_path));
    for (size_t i = 0; i < whole.size(); ++i) {
      const bool last = i + 1 == whole.size();
      std::vector<uint32_t> met;  // after this listing, and before the next one
      for (const uint32_t id : ids)
        if (id >= whole[i]->known && (last || id < whole[i + 1]->known)) met.push_back(id);
      // Of those after the last it is only told if they are all that it showed.
      const int64_t fewer = last ? missing[i] : missing[i] - missing[i + 1];
      std::vector<uint32_t> found = with_entries(met, fewer);
      if (found.empty() || (last && found.size() != met.size())) continue;
      // Each listing before it had them, too.
      if (std::any_of(missing.begin(), missing.begin() + static_cast<ptrdiff_t>(i) + 1,
                      [&](int64_t m) { return m < fewer; }))
        continue;
      for (size_t j = 0; j <= i; ++j) missing[j] -= fewer;
      for (const uint32_t id : found) names_.file(id).created = false;
    }
  }
}

// Paths are string ids, as they were before the first call.
class Needs::Start {
 public:
  explicit Start(Needs& needs) : needs_(needs), names_(needs.names_), strings_(needs.strings_) {}
  std::vector<Needed> tree();

 private:
  uint32_t parent_of(uint32_t path);
  bool is_root(uint32_t path) const { return strings_.text(path) == "/"; }
  bool reachable(uint32_t path);
  bool touched(uint32_t path);
  bool behind_known_link(uint32_t path);
  void follow_links(std::unordered_set<uint32_t>& paths);
  void collect();
  void need_named();
  bool only_told(uint32_t id);
  void add_entry(uint32_t path);
  void behind_link(uint32_t id);
  void need_unmet_target(uint32_t path, const Seen& from, bool directory);
  void fill_up(uint32_t id, uint32_t path);
  void need(uint32_t id);
  void need_absent();

  Needs& needs_;
  Namespace& names_;
  Strings& strings_;
  std::vector<Needed> out_;
  std::vector<uint32_t> files_;  // that were there, by number
  std::unordered_set<uint32_t> there_, with_children_;
  std::unordered_map<uint32_t, uint32_t> parents_;
  std::unordered_map<uint32_t, uint32_t> by_path_;     // of files_
  std::unordered_map<uint32_t, uint32_t> last_child_;  // of a path, that became known
  std::unordered_map<uint32_t, int64_t> entries_;      // directory -> bytes of its first entries
  std::unordered_map<uint32_t, std::vector<uint32_t>> by_link_;  // paths that begin with a link's
  std::unordered_map<uint32_t, size_t> made_;                    // by path: of out_
  std::unordered_map<uint32_t, std::vector<size_t>> of_file_;    // its names, of out_
};

// The directory of a path, 0 of "/". (What is in a directory that moved had another name before.)
uint32_t Needs::Start::parent_of(uint32_t path) {
  const auto [at, unknown] = parents_.try_emplace(path, 0);
  const std::string_view text = strings_.text(path);
  if (unknown && text.size() > 1)
    at->second = strings_.intern(text.substr(0, std::max<size_t>(text.rfind('/'), 1)));
  return at->second;
}

// What lies in a directory that was not there cannot have been there either.
bool Needs::Start::reachable(uint32_t path) {
  for (uint32_t p = parent_of(path); p != 0; p = parent_of(p))
    if (!there_.contains(p) && !is_root(p)) return false;
  return true;
}

// Whether a path, or a directory above it, may have been changed by name.
bool Needs::Start::touched(uint32_t path) {
  if (needs_.changed_.contains(path)) return true;
  for (uint32_t p = parent_of(path); p != 0; p = parent_of(p))
    if (needs_.moved_.contains(p)) return true;
  return false;
}

// Whether it is a name by way of a link, of what has one of its own: that tells what was there.
bool Needs::Start::behind_known_link(uint32_t path) {
  if (by_link_.empty()) return false;
  for (uint32_t p = parent_of(path); p != 0; p = parent_of(p))
    if (by_link_.contains(p) && names_.file(by_path_.at(p)).target != 0) return true;
  return false;
}

// What was changed by way of a link that later calls told of was changed by its own name, too.
void Needs::Start::follow_links(std::unordered_set<uint32_t>& paths) {
  std::vector<uint32_t> own;
  for (const uint32_t path : paths)
    if (behind_known_link(path)) own.push_back(names_.canonical(path, false));
  paths.insert(own.begin(), own.end());
}

void Needs::Start::add_entry(uint32_t path) {
  const uint32_t parent = parent_of(path);
  if (parent == 0) return;
  with_children_.insert(parent);
  entries_[parent] += entry_bytes(name_of(strings_.text(path)));
}

// What calls tell of.
void Needs::Start::collect() {
  for (uint32_t id = 1; id < names_.file_count(); ++id) {
    const Namespace::File& f = names_.file(id);
    if (f.created || f.initial_path == 0) continue;
    last_child_[parent_of(f.initial_path)] = id;
    if (there_.insert(f.initial_path).second) files_.push_back(id);
  }
  for (const uint32_t path : there_) add_entry(path);
  for (const uint32_t id : files_) {
    const Namespace::File& f = names_.file(id);
    by_path_[f.initial_path] = id;
    if (f.type == Namespace::Type::kSymlink) by_link_.try_emplace(f.initial_path);
  }
  if (by_link_.empty()) return;
  for (const uint32_t path : there_)
    if (const auto link = by_link_.find(parent_of(path)); link != by_link_.end())
      link->second.push_back(path);
}

// What is known of a link's target under the link's name is known of the target, which is there
// if the link was followed.
void Needs::Start::behind_link(uint32_t id) {
  const Namespace::File& link = names_.file(id);
  if (link.type != Namespace::Type::kSymlink || link.target == 0) return;
  const Seen from = needs_.seen(id);
  const bool directory = from.directory || with_children_.contains(link.initial_path);
  if (!(link.followed || directory)) return;
  uint32_t behind = link.initial_path, last = id;
  for (int hops = 0; hops < 40 && last != 0; ++hops) {
    const Namespace::File& f = names_.file(last);
    if (f.type != Namespace::Type::kSymlink || f.target == 0) break;
    const std::string_view path = strings_.text(behind), target = strings_.text(f.target);
    std::string to(target);
    if (to[0] != '/') to = std::string(path.substr(0, path.rfind('/') + 1)) + to;
    behind = names_.canonical(strings_.intern(clean_path(to)), false);
    const auto next = by_path_.find(behind);
    last = next != by_path_.end() ? next->second : 0;
  }
  if (last == 0) return need_unmet_target(behind, from, directory);
  Seen& to = needs_.seen(last);
  to.mode |= from.mode;
  to.initial = std::max(to.initial, from.initial);
  to.directory |= directory;
  const uint32_t real = names_.file(last).initial_path;
  if (directory) with_children_.insert(real);
  // What is in it by the link's name is in it, too, unless its own has it.
  for (const uint32_t path : by_link_[link.initial_path]) {
    const std::string name = std::string(name_of(strings_.text(path)));
    if (there_.insert(strings_.intern(std::string(strings_.text(real)) + "/" + name)).second)
      entries_[real] += entry_bytes(name);
  }
}

// What a link leads to, where no call names it.
void Needs::Start::need_unmet_target(uint32_t path, const Seen& from, bool directory) {
  const uint32_t known = names_.at(path);
  if ((known != 0 && names_.file(known).created) || is_root(path)) return;
  auto at = made_.find(path);
  if (at == made_.end()) {
    if (!there_.insert(path).second) return;
    add_entry(path);
    // With the directories above, which are entries, too.
    for (uint32_t p = parent_of(path); !is_root(p) && there_.insert(p).second; p = parent_of(p))
      add_entry(p);
    at = made_.emplace(path, out_.size()).first;
    out_.emplace_back().type = Needed::kFile;
  }
  Needed& n = out_[at->second];
  if (directory || names_.is_above_names(path)) n.type = Needed::kDirectory;
  n.changed = true;  // what happens to it is not known
  n.mode |= from.mode;
  n.size = std::max(n.size, from.initial);
  n.path = strings_.text(path);
}

// Entries that nothing else in the trace names, so that a listing is as long as it was.
void Needs::Start::fill_up(uint32_t id, uint32_t path) {
  const auto all = needs_.listings_.find(id);
  if (all == needs_.listings_.end()) {
    const uint32_t not_empty = needs_.seen(id).not_empty;
    const auto last = last_child_.find(path);
    const bool left = last != last_child_.end() ? last->second < not_empty  // they had left
                                                : !with_children_.contains(path);
    if (not_empty != 0 && left) out_.emplace_back().path = std::string(strings_.text(path)) + "/~";
    return;
  }
  const bool any_over = std::any_of(all->second.begin(), all->second.end(), [](const Listing& l) {
    return l.over && l.bytes >= kNoEntries;
  });
  std::vector<int64_t> said;
  for (const Listing& l : all->second)
    if (l.bytes >= kNoEntries && (l.over || !any_over))
      said.push_back(needs_.unnamed(l, entries_[path], by_path_));
  if (said.empty()) return;
  // Some of several may have met with what others made or removed at that time: what most say.
  int64_t missing = said[0];
  if (said.size() > 2) {
    std::sort(said.begin(), said.end());
    ptrdiff_t most = 0;
    for (auto from = said.begin(), to = from; from != said.end(); from = to) {
      to = std::upper_bound(from, said.end(), *from);
      if (to - from > most) missing = *from;
      most = std::max(most, to - from);
    }
  }
  for (uint32_t i = 0; missing >= kLeastEntry && missing % 8 == 0 && i < 100'000; ++i) {
    const int64_t bytes = unnamed_entry_bytes(missing);
    out_.emplace_back().path =
        std::string(is_root(path) ? "" : strings_.text(path)) + "/" + unnamed_entry(i, bytes);
    missing -= bytes;
  }
}

// Whether it is a link that nobody did anything with but lstat.
bool Needs::Start::only_told(uint32_t id) {
  const Namespace::File& f = names_.file(id);
  const Seen& s = needs_.seen(id);
  bool above = false;
  names_.for_each_child(f.initial_path, [&](uint32_t, uint32_t) { above = true; });
  return f.type == Namespace::Type::kSymlink && s.link != 0 && s.links == s.calls && !above;
}

// One of files_.
void Needs::Start::need(uint32_t id) {
  const Namespace::File& f = names_.file(id);
  if (!reachable(f.initial_path)) return;
  fill_up(id, f.initial_path);
  const bool root = is_root(f.initial_path);
  if (root && needs_.seen(id).attributes.empty()) return;
  Needed n;
  n.path = strings_.text(f.initial_path);
  n.changed = needs_.seen(id).changed || touched(f.initial_path);
  const uint32_t same = names_.same(id);
  // A link whose target nobody asked for is made as what it leads to.
  if (root || f.type == Namespace::Type::kDirectory ||
      (f.target == 0 && (with_children_.contains(f.initial_path) || needs_.seen(id).directory))) {
    n.type = Needed::kDirectory;
    n.mode = needs_.seen(id).mode;
  } else if (f.type == Namespace::Type::kSymlink && f.target != 0) {
    n.type = Needed::kSymlink;
    n.target = strings_.text(f.target);
  } else if (f.nowhere && !f.followed &&
             (f.type == Namespace::Type::kSymlink || f.type == Namespace::Type::kUnknown)) {
    // It is there, and not for those who follow links: one that leads nowhere.
    n.type = Needed::kSymlink;
    n.target = strings_.text(names_.unknown_target(id));
  } else if (only_told(id)) {
    n.type = Needed::kSymlink;
    n.target = strings_.text(names_.unknown_target(id, needs_.seen(id).link));
  } else if (f.type == Namespace::Type::kFifo || f.type == Namespace::Type::kOther) {
    n.type = f.type == Namespace::Type::kFifo ? Needed::kFifo : Needed::kSocket;  // no device
    n.mode = needs_.seen(same).mode;
    n.denied = needs_.seen(same).denied;
  } else {
    const Seen& s = needs_.seen(same);
    n.type = Needed::kFile;
    of_file_[same].push_back(out_.size());
    n.size = s.initial;
    n.mode = s.mode;
    n.denied = s.denied;
    if (s.has_holes) {
      n.data = s.data;
      if (n.data.empty() && n.size != 0) n.data.emplace_back(0, 0);  // nothing but a hole
      for (auto& [from, to] : n.data) to -= from;
    } else if (!s.data.empty()) {
      n.data.emplace_back(0, n.size);
    }
  }
  if (n.type == Needed::kFile || n.type == Needed::kDirectory)
    for (const auto& [name, length] : needs_.seen(same).attributes)
      if (length != Seen::kOwn)
        n.attributes.emplace_back(strings_.text(name), length != Seen::kUntold ? length : 0);
  out_.push_back(std::move(n));
}

// What calls asked for and did not find, where it could have been.
void Needs::Start::need_absent() {
  names_.for_each_name([&](uint32_t path, uint32_t parent, uint32_t) {
    if (parent == 0 || there_.contains(path)) return;
    if (!there_.contains(parent) && !is_root(parent)) return;
    if (behind_known_link(path)) return;
    Needed n;
    n.type = Needed::kAbsent;
    n.changed = touched(path);
    n.path = strings_.text(path);
    out_.push_back(std::move(n));
  });
}

// What listings showed and no call names.
void Needs::Start::need_named() {
  for (const auto& [path, type] : needs_.named_) {
    if (touched(path) || !reachable(path) || !there_.insert(path).second) continue;
    add_entry(path);
    Needed& n = out_.emplace_back();
    n.path = strings_.text(path);
    n.type = type == 'd'   ? Needed::kDirectory
             : type == 'p' ? Needed::kFifo
             : type == 's' ? Needed::kSocket
                           : Needed::kFile;
    if (type != 'l') continue;
    n.type = Needed::kSymlink;
    n.target = strings_.text(names_.unknown_target(path));
  }
}

std::vector<Needed> Needs::Start::tree() {
  collect();
  need_named();
  follow_links(needs_.changed_);
  follow_links(needs_.moved_);
  for (const uint32_t id : files_) behind_link(id);
  for (const uint32_t id : files_) need(id);
  for (const auto& [file, places] : of_file_) {
    bool changed = needs_.seen(file).changed;
    for (const size_t at : places) changed = changed || out_[at].changed;
    for (const size_t at : places) {
      out_[at].changed = changed;
      if (at != places[0]) out_[at].target = out_[places[0]].path;
    }
  }
  need_absent();
  std::sort(out_.begin(), out_.end(),
            [](const Needed& a, const Needed& b) { return a.path < b.path; });
  return std::move(out_);
}

std::vector<Needed> Needs::finish() {
  for (const auto& [stream, open] : waiting_) other_open(open, O_CREAT | O_RDWR);
  all_came(UINT64_MAX);
  for (uint32_t id = 1; id < names_.file_count(); ++id)
    if (const uint32_t same = names_.same(id); same != id) is_same(id, same);
  names_.settle_initial_paths();
  only_named();
  there_by_listings();
  return Start(*this).tree();
}

}  // namespace feign
