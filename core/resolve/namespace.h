// SPDX-License-Identifier: MIT
// Which file has which name, followed through creations, renames, links and unlinks.
//
// A slot is a place for a name: one for every absolute path ever seen, for ever. A file is an
// identity that sits in slots; a rename moves it, and all below it, to other slots. What is first
// seen by a successful use was there before the trace began; what is first seen by its creation was
// not. resolve asks this for identities, prepare (on the activities as modifiers left them) for
// what must exist.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/path.h"
#include "feign.h"
#include "trace/call.h"
#include "trace/strings.h"

namespace feign {

class Namespace {
 public:
  enum class Type : uint8_t { kUnknown, kFile, kDirectory, kSymlink, kFifo, kOther };

  struct File {
    Type type = Type::kUnknown;
    bool created = false;   // by the trace
    bool certain = false;   // … surely: it cannot have been there before
    bool gone = false;      // its last name is gone
    bool followed = false;  // a call that follows links found it: of a link, its target, too
    bool nowhere = false;   // it was there, and a call that follows links found nothing
    bool supposed = false;  // a directory, since mkdir found it there: until a call tells its type
    bool entered = false;   // something was found or made in it
    bool leads = false;     // a directory, since a name below it was looked for: or a link to one
    bool linked = false;    // a call gave it one more name: it is no directory
    bool guessed = false;   // of what an ENOTDIR may say, this: until a call tells its type
    // The file that this turned out to be, by another name: a hard link where this one has an
    // initial_path, else by way of a symbolic link.
    uint32_t same = 0;
    uint32_t links = 0;
    uint32_t initial_path = 0;  // where it was when the trace began, if it was there; string id
    uint32_t target = 0;        // of a symbolic link, string id
    bool assumed = false;       // … which no call told
    bool by_open = false;       // … but where an open by way of it led
    uint32_t mode = 0;          // permission bits, if known
    uint64_t size = 0;          // as far as is known
    uint64_t below = 0;         // where the system's own appends ended, in calls above them
    bool sized = false;         // … and no longer
    bool whole = false;         // a directory: at one time, nothing but what was known was in it
    uint8_t listings = 0;       // … times that this was looked for
    // It was not there before the trace.
    bool surely_made() const { return created && certain; }
    void has(uint64_t bytes) {
      size = bytes;
      sized = true;
    }
  };

  explicit Namespace(Strings& strings) : strings_(strings) {
    slots_.emplace_back();
    files_.emplace_back();
  }

  struct Touched {
    uint32_t file = 0;  // the identity that the call named, 0 if none
    // The one that stood at rename's new name and went, or behind a link, or that was taken for
    // another file than the one that a stat tells it to be.
    uint32_t file2 = 0;
    bool created = false;  // the call made it
  };
  // What a call with a resolved path (and path2) does to names, by its recorded result.
  Touched apply(const feign_activity& a, Effect effect);
  // The same of a call whose path goes by no links.
  Touched apply_plain(const feign_activity& a, Effect effect) { return applied(a, effect); }

  // The identity of what has no name and is no file: a pipe.
  uint32_t nameless() { return new_file(Type::kFifo, true, true); }
  File& file(uint32_t id) { return files_[id]; }
  // What a link may lead to whose target was not told.
  uint32_t unknown_target(uint32_t link, size_t length = 20);
  // A link at a canonical path that an open told of leads there by way of another, `target`.
  void leads_by_another(uint32_t path, uint32_t target) { told(slot_of(path), target); }
  // The file that it turned out to be; itself, mostly.
  uint32_t same(uint32_t id) const {
    for (int hops = 0; files_[id].same != 0 && hops < 40; ++hops) id = files_[id].same;
    return id;
  }
  uint32_t file_count() const { return static_cast<uint32_t>(files_.size()); }
  // Every name ever seen: its path, its directory's (0 for "/"), and the file there now (0 if
  // none).
  template <typename Visit>
  void for_each_name(Visit&& visit) const {
    for (size_t i = 1; i < slots_.size(); ++i)
      visit(slots_[i].path, slots_[i].parent ? slots_[slots_[i].parent].path : 0, slots_[i].file);
  }
  // The names in a directory that were ever seen, with the file there now (0 if none).
  template <typename Visit>
  void for_each_child(uint32_t path, Visit&& visit) {
    for (uint32_t c = slots_[slot_of(path)].first_child; c != 0; c = slots_[c].next_sibling)
      visit(slots_[c].path, slots_[c].file);
  }
  // The file at a path (string id), 0 if there is none or it is not known.
  uint32_t at(uint32_t path) { return slots_[slot_of(path)].file; }
  // Whether anything there must be a directory, by what was told of names below it.
  bool is_above_names(uint32_t path) { return slots_[slot_of(path)].state == State::kNoFile; }
  // The directory of a canonical path, 0 of "/".
  uint32_t above(uint32_t path) { return slots_[slots_[slot_of(path)].parent].path; }
  // Nothing is in a directory but what is known by now.
  void nothing_else_in(uint32_t path);
  // Whether the trace told that nothing is there.
  bool missing(uint32_t path) {
    return slots_[slot_of(canonical(path, true))].state == State::kAbsent;
  }
  // … of a canonical path, or of a directory above it.
  bool absent_at(uint32_t path) { return at(path) == 0 && is_absent(slot_of(path)); }
  // … which is what a call finds that names it (ENOENT), and no file or circle of links above it.
  bool finds_nothing(uint32_t path);
  // The file at a path that something else than a call tells to be there.
  uint32_t found(uint32_t path, Type type) { return present(slot_of(canonical(path, true)), type); }

  // What is done with it shows that it is no directory.
  void is_file(uint32_t id) {
    File& f = files_[id];
    if (f.type == Type::kUnknown || f.supposed) f.type = Type::kFile;
    f.supposed = false;
  }

  // The file that found() took to be at a path was not.
  void never(uint32_t path);
  // A call told the file at a path by device and inode: if another name's has the same, both are
  // names of one file, which was there before the trace under both. That file.
  Touched identified(uint32_t path, uint64_t identity) {
    return identified_at(slot_of(canonical(path, true)), identity);
  }
  // One more name for a file that a descriptor tells.
  void link(uint32_t file, uint32_t path);
  // … which something had (EEXIST).
  void not_linked(uint32_t path) { (void)present(slot_of(canonical(path, false)), Type::kUnknown); }

  // The path with the symbolic links in it followed, as far as the trace told their targets; one at
  // its end only if `follow`. (path_resolution(7))
  uint32_t canonical(uint32_t path, bool follow);
  bool has_links() const { return links_ != 0; }

  // What it tells of links that an open of `path` found what is at `real`, a path without any: one
  // that no call told, in the form of feign_activity.path2. 0: nothing new.
  uint32_t link_between(uint32_t path, bool follow, uint32_t real);
  // The readlink that would have told of it; without a path if none can.
  feign_activity readlink_for(const feign_activity& open);
  // Whether an open since contradicted what others told: names that were of one file are of
  // several.
  bool took_back() { return std::exchange(took_back_, false); }
  // Takes it to be so, though no readlink told it.
  Touched assume(const feign_activity& readlink);
  // No part of the path is a link.
  void has_no_links(uint32_t path);
  // Whether that is told.
  bool is_without_links(uint32_t path) { return slots_[slot_of(canonical(path, true))].no_link; }
  // At the end of a trace: what was there before it was there by its own name, though it was met by
  // way of links that were there, too, and were told only later.
  void settle_initial_paths();
  // Where links lead whose targets begin with a slash: a process's root (chroot(2)); 0: "/".
  void links_lead_from(uint32_t root) { root_ = root; }

 private:
  // kNoFile: if anything is there, it is a directory.
  enum class State : uint8_t { kUnknown, kPresent, kAbsent, kNoFile };
  struct Slot {
    uint32_t path = 0;  // string id
    uint32_t parent = 0, first_child = 0, next_sibling = 0;
    uint32_t file = 0;
    State state = State::kUnknown;
    bool born = false;     // the trace made it, and it was not there before
    bool missed = false;   // a call that follows links found nothing
    bool no_link = false;  // what is there is none
  };

  // name_calls.cc: what calls tell by their results, of `slot` and `to`, which they name.
  Touched applied(const feign_activity& a, Effect effect);
  Touched opened(const feign_activity& a, uint32_t slot);
  Touched made(const feign_activity& a, Effect effect, uint32_t slot);
  Touched removed(const feign_activity& a, Effect effect, uint32_t slot);
  Touched renamed(const feign_activity& a, uint32_t slot, uint32_t to);
  Touched linked(const feign_activity& a, uint32_t slot, uint32_t to);
  Touched link_read(const feign_activity& a, uint32_t slot);
  Touched looked_at(const feign_activity& a, Effect effect, uint32_t slot);
  Touched used(const feign_activity& a, Effect effect, uint32_t slot);
  Touched failed(const feign_activity& a, Effect effect, uint32_t slot);
  void not_found(const feign_activity& a, Effect effect, uint32_t slot, uint32_t to);
  void first_found(Effect effect, uint32_t slot);

  uint32_t by_directory(uint32_t path, bool follow);
  // The path with links followed: what is at a name leads to target_of(name), 0 if it is none.
  template <typename TargetOf>
  uint32_t walked(uint32_t path, bool follow, TargetOf&& target_of);
  uint32_t slot_of(uint32_t path);
  uint32_t slot_of_text(std::string_view clean);
  uint32_t new_file(Type type, bool created, bool certain);
  void put(uint32_t slot, uint32_t file);
  void take(uint32_t slot);
  uint32_t present(uint32_t slot, Type type);  // it is there: make it known if it was not
  // A call tells that what was there as a socket is a file or directory: who is not traced put it
  // there.
  void no_socket(uint32_t file, Type type);
  uint32_t guess(uint32_t slot, Type type);  // … perhaps
  uint32_t create(uint32_t slot, Type type, bool certain);
  void absent(uint32_t slot);
  void no_file_above(uint32_t slot);
  void no_file(uint32_t slot);
  void leads_to(uint32_t slot, uint32_t target);
  void tell_behind(uint32_t slot, uint32_t behind);
  uint32_t initial_path_of(uint32_t slot);
  void no_directory(uint32_t slot);
  void forget(uint32_t slot);
  void forget_guesses(uint32_t above);
  uint32_t known_above(uint32_t slot) const;
  bool is_known(uint32_t slot) const;
  bool is_directory(uint32_t slot) const;
  bool is_absent(uint32_t slot) const;
  bool not_directory_above(uint32_t slot);
  bool may_be_directory(uint32_t slot) const;
  bool follows_slash(uint32_t path);
  bool below(uint32_t slot, uint32_t above) const;
  // kAlways: the other name is what was meant from the beginning (behind a link).
  enum class Moved : uint8_t { kNow, kAlways };
  void move(uint32_t from, uint32_t to, Moved how = Moved::kNow);
  void move_children(uint32_t from, uint32_t to);
  uint32_t link_found(uint32_t slot, uint32_t target);
  uint32_t no_file_nor_directory(uint32_t slot);
  uint32_t link_to_somewhere(uint32_t slot);
  uint32_t some_link(uint32_t slot);
  bool refuses_that_link(const feign_activity& a, uint32_t slot) const;
  void told(uint32_t slot, uint32_t target);
  bool may_be_link(uint32_t slot) const;
  bool circle(uint32_t slot);
  uint32_t explained(uint32_t path, bool follow, uint32_t real);
  uint32_t link_on_way(uint32_t path, bool told);
  uint32_t contradicted(uint32_t path, bool follow, uint32_t real);
  uint32_t link_above(uint32_t slot);
  uint32_t own_link(uint32_t slot, uint32_t path);
  void read_link(uint32_t slot, uint32_t target);
  void is_no_link(uint32_t slot);
  void is_its_own(uint32_t slot);
  uint32_t only_by(std::string_view path, std::string_view directory);
  void names_below(uint32_t slot, std::set<uint32_t>& names) const;
  void goes_by_links(uint32_t path);
  void is_same(uint32_t file, uint32_t slot);
  void leads_nowhere(uint32_t slot);
  uint32_t holds(uint32_t directory);
  bool is_told_name(uint32_t slot);
  uint32_t loses_told_name(uint32_t slot);
  void is_same_name(uint32_t slot, uint32_t own);
  uint32_t link_to_told(uint32_t slot, uint32_t target);
  uint32_t one_of_several(uint32_t slot, uint32_t known);
  Touched identified_at(uint32_t slot, uint64_t identity);
  void join_children(uint32_t from, uint32_t to);
  uint32_t slot_below(uint32_t directory, uint32_t child);
  void exchange(uint32_t a, uint32_t b);

  Strings& strings_;
  std::vector<Slot> slots_;                             // [0] is none
  std::vector<File> files_;                             // [0] is none
  std::vector<uint32_t> slot_by_path_;                  // by string id
  std::unordered_map<uint64_t, uint32_t> by_identity_;  // files of several names
  // What each of those was taken for when only one of its names was known, by that (a string id).
  std::unordered_map<uint32_t, uint32_t> names_told_;
  uint32_t links_ = 0;  // symbolic links whose target is known
  uint32_t root_ = 0;
  bool opens_told_ = false;  // of a link, ever
  bool took_back_ = false;
  bool guessing_ = false;  // what is present() now is only one of several that would explain it
  void links_changed() { canonical_.clear(); }
  std::unordered_map<uint32_t, std::set<uint32_t>> used_by_;  // names by way of links of by_open
  std::unordered_map<uint32_t, uint32_t> told_by_;  // … told by such a name, and met by none else
  uint32_t asked_by_ = 0;                           // the name that readlink_for() was asked by
  uint32_t real_ = 0;                               // where what was opened by it is
  std::unordered_map<uint64_t, uint32_t> canonical_;  // what canonical() said, of no other root
};

template <typename TargetOf>
uint32_t Namespace::walked(uint32_t path, bool follow, TargetOf&& target_of) {
  constexpr int kMostLinks = 40;  // as the kernel: then it is a circle
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
    if (last && !follow) continue;
    if (const uint32_t link = target_of(std::string_view(out)); link != 0) {
      if (++links > kMostLinks) return path;
      const std::string_view target = strings_.text(link);
      out.resize(above);
      if (target.starts_with('/')) out = root;
      text = std::string(target) + "/" + std::string(todo);
      todo = text;
      if (out.size() + todo.size() > kLongestPath) return path;
    }
  }
  return strings_.intern(out.empty() ? "/" : out);
}

}  // namespace feign
