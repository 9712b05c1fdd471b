// SPDX-License-Identifier: MIT
// What must exist below the root before the first call, derived from the activities; and making it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "resolve/namespace.h"
#include "trace/native.h"
#include "trace/tables.h"

namespace feign {

// Watches the activities that will be replayed, in order, and infers the tree that they need: what
// a successful call found without the trace having made it, with the least size that its reads, its
// recorded sizes and its directory listings show.
class Needs {
 public:
  explicit Needs(Tables& tables) : names_(tables.strings), strings_(tables.strings) {}
  void add(const feign_activity& a);
  std::vector<Needed> finish();

 private:
  struct Seen {              // of one file, by its number in names_
    uint64_t now = 0;        // bytes it has, as far as is known
    uint64_t initial = 0;    // bytes it must have had
    bool cut = false;        // it was truncated: what it had before cannot be seen any more
    bool followed = false;   // used by a call that follows links: a link's target is there, too
    bool directory = false;  // … and is a directory
    uint32_t mode = 0;       // permission bits that results show
  };
  struct Listing {  // of a directory, the first time it was read through
    uint32_t handle = 0;
    uint64_t bytes = 0;    // getdents64's results added up
    int64_t by_trace = 0;  // bytes that entries made by the trace added, less those of removed ones
    bool over = false;
  };
  Seen& seen(uint32_t file);
  void grew(uint32_t file, uint64_t size);
  void by_descriptor(const feign_activity& a, Effect effect, uint32_t file);
  void listed(const feign_activity& a, uint32_t file);

  Namespace names_;
  Strings& strings_;
  std::unordered_map<uint32_t, uint32_t> own_;  // file of the activities -> file of names_
  std::vector<Seen> seen_;
  std::map<uint32_t, Listing> listings_;
};

struct Prepared {
  uint64_t files = 0, directories = 0, links = 0, bytes = 0, removed = 0;
  std::string full;  // not empty: there was no more space, and this says where
};

// Makes it. `root_fd` is the open root, `root` its name for messages. What is there already as it
// should be is left alone. What is there but must not be is removed, if the root was empty when we
// first used it (it carries our mark, the file .feign); else it is an error. Paths cannot lead out
// of the root, whatever links it holds. Now and then `go_on` is asked; false ends it early.
Result<Prepared> prepare(int root_fd, const std::string& root, const std::vector<Needed>& needed,
                         const std::function<bool(uint64_t done)>& go_on);

}  // namespace feign
