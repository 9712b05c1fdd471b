// SPDX-License-Identifier: MIT
// What must exist below the root before the first call, derived from the activities; and making it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/content.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/path.h"
#include "resolve/namespace.h"
#include "trace/native.h"
#include "trace/tables.h"

namespace feign {

// Watches the activities that will be replayed, in order, and infers the tree that they need: what
// a successful call found without the trace having made it, with the least size that its reads, its
// recorded sizes and its directory listings show.
class Needs {
 public:
  explicit Needs(Tables& tables)
      : ops_(tables.ops),
        stdio_(tables.ops.find("stdio", "fopen")),
        names_(tables.strings),
        strings_(tables.strings) {}
  void add(const feign_activity& a);
  std::vector<Needed> finish();

 private:
  struct Seen {              // of one file, by its number in names_
    uint64_t now = 0;        // bytes it has, as far as is known
    uint64_t initial = 0;    // bytes it must have had
    uint64_t added = 0;      // bytes that went behind it or into it, less those taken out
    bool exact = false;      // `now` is not only the least: what it grows by from here on is known
    bool directory = false;  // … and is a directory
    // Which could not be removed, though no name in it was known: how many files were known by
    // then.
    uint32_t not_empty = 0;
    bool changed = false;    // by the trace
    bool by_parts = false;   // what calls of stdio and MPI-IO moved, posix calls in them tell
    bool has_holes = false;  // data tells where it is not
    size_t link = 0;         // bytes of a link's target, as lstat tells
    uint32_t links = 0;      // calls that told of a link here, and no more …
    uint32_t calls = 0;      // … of all that name it
    uint32_t mode = 0;       // permission bits that results show
    bool own_mode = false;   // which the trace set since
    uint32_t denied = 0;     // bits of access(2)'s kind that results show not to be there
    std::vector<std::pair<uint64_t, uint64_t>> data;  // where it was seen, from and to
    uint64_t told = 0;           // up to where that is known from before the trace changed the file
    uint64_t hole = UINT64_MAX;  // where there was a hole then: what is data later, it wrote
    // An attribute that the trace set first, and one that was there, of no length that is told yet.
    static constexpr uint64_t kOwn = UINT64_MAX, kUntold = UINT64_MAX - 1;
    std::map<uint32_t, uint64_t> attributes;  // their lengths, by name (string id)
  };
  struct Clone {  // of all that a file has from there on; how much that is, only the copy may tell
    uint32_t source = 0;
    uint64_t from = 0, to = 0;
  };
  static constexpr size_t kListings = 24;
  struct Listing {  // of a directory, as it was read through
    uint32_t handle = 0;
    uint64_t bytes = 0;            // getdents64's results added up
    int64_t by_trace = 0;          // of them, those of entries that the trace had made
    std::vector<uint32_t> others;  // paths of these, of what it had removed, of what is not known
    uint32_t known = 0;            // files from this number on nobody had met by then
    bool over = false;
  };
  class Start;  // the tree that finish() finds out

  Seen& seen(uint32_t file);
  void grew(uint32_t file, uint64_t size);
  enum class Told : uint8_t { kByCall, kNot };  // kNot: of a link, taken to be so
  void by_name(const feign_activity& a, Effect effect, Told told = Told::kByCall);
  void by_descriptor(const feign_activity& a, Effect effect, uint32_t file);
  void not_empty(const feign_activity& a, Effect effect, const Namespace::Touched& touched);
  void is_link(const feign_activity& a, const Namespace::Touched& touched);
  void found(const feign_activity& a, Effect effect, const Namespace::Touched& touched);
  void read(const feign_activity& a, Effect effect, uint32_t file);
  void shows_mode(uint32_t file, uint32_t mode);
  void copied(const feign_activity& a, uint32_t file);
  void shared(const feign_activity& a, uint32_t file);
  void sought(const feign_activity& a, Effect effect, uint32_t file);
  void sought_data(const feign_activity& a, uint32_t file);
  void looked_at(const feign_activity& a, uint32_t file);
  void allocated(const feign_activity& a, uint32_t file);
  void is_directory(uint32_t file);
  void is_same(uint32_t other, uint32_t file);
  void sizes_by_names();
  uint32_t in_directory(const std::string& directory, uint32_t path);
  void wrote(const feign_activity& a, uint32_t file, uint64_t bytes);
  void listed(const feign_activity& a, uint32_t file);
  void named(const feign_activity& a, uint32_t file);
  void listed_from(const feign_activity& a, uint32_t file);
  int64_t unnamed(const Listing& l, int64_t entries,
                  const std::unordered_map<uint32_t, uint32_t>& by_path);
  std::vector<uint32_t> with_entries(const std::vector<uint32_t>& files, int64_t bytes);
  void only_named();
  void there_by_listings();
  void attribute(const feign_activity& a, Effect effect, uint32_t file);
  void denied(const feign_activity& a, Effect effect);
  void guess(const feign_activity& a);
  void changes(const feign_activity& a, Effect effect);
  void replaces(const feign_activity& a);
  uint32_t own(const feign_activity& a);
  void settle(const feign_activity& next);
  void all_came(uint64_t now_ns);
  void other_open(const feign_activity& a, uint32_t flags);
  void own_open(const feign_activity& a);
  void other_layer(const feign_activity& a);
  bool told_by_parts(const feign_activity& a, Effect effect, uint32_t file);

  const Ops& ops_;
  const uint32_t stdio_;  // the first op of that layer; those of posix come before it
  Namespace names_;
  Strings& strings_;
  std::unordered_map<uint32_t, uint32_t> own_;  // file of the activities -> file of names_
  std::unordered_map<uint32_t, feign_activity> waiting_;  // by stream: see settle()
  std::vector<feign_activity> meeting_;                   // see all_came()
  uint64_t met_ns_ = UINT64_MAX;                          // when the first of these was over
  std::unordered_map<uint32_t, uint64_t> told_sizes_;     // by the path that a stat was asked for
  uint64_t told_work_ = 300'000;  // so many of them may still be looked up again
  std::vector<Seen> seen_;
  std::map<uint32_t, std::vector<Listing>> listings_;
  std::vector<std::pair<uint32_t, char>> named_;  // paths that listings showed, with find's letter
  uint64_t listing_work_ = uint64_t{1} << 24;     // names to look at for more than the first ones
  std::unordered_set<uint32_t> elsewhere_;  // handles that list from another place than the start
  std::unordered_set<uint32_t> changed_;    // paths whose names or attributes the trace changes
  std::unordered_map<uint32_t, Clone> cloned_;  // by the copy
  std::unordered_set<uint32_t> guessed_;  // files that are there only because they were refused
  std::unordered_set<uint32_t> moved_;    // of these, directories that were renamed or removed
};

struct Prepared {
  uint64_t files = 0, directories = 0, links = 0, bytes = 0, removed = 0;
  uint64_t written = 0;   // of bytes, those that are no holes
  uint64_t checked = 0;   // of what is needed, how much was looked at: the rest cannot have changed
  std::string full;       // not empty: there was no more space, and this says where
  uint64_t left_out = 0;  // what cannot be there beside what else is needed
  std::string why;        // … of the first of these
  bool stopped = false;   // go_on() ended it before all was there
  Fd held;                // while it is open, nobody else prepares this root, if it is marked
};

struct PrepareOptions {
  Content content;         // of files
  uint64_t max_bytes = 0;  // to write, 0: no limit
  bool of_disk = false;    // the limit is most_of_what_is_free(): what goes first, makes room
};

// How many bytes may be written, so that the disk is not full for everybody; 0: not known.
uint64_t most_of_what_is_free(int root_fd);

// Makes it. `root_fd` is the open root, `root` its name for messages. What is there already as it
// should be is left alone. What is there but must not be is removed, if the root was empty when we
// first used it (it carries our mark, the file .feign); else it is an error. The mark remembers
// what was made: where the same is needed again, only what the trace changes is looked at; where
// something else is, what others left goes. Paths cannot lead out of the root, whatever links it
// holds. A root that another replay is going on in is an error. Now and then `go_on` is asked;
// false ends it early.
Result<Prepared> prepare(int root_fd, const std::string& root, const std::vector<Needed>& needed,
                         const PrepareOptions& options,
                         const std::function<bool(uint64_t done)>& go_on);

}  // namespace feign
