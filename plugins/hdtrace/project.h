// SPDX-License-Identifier: MIT
// What an HDTrace project knows beside its traces: files, who is who, communicators, datatypes
// (docs/hdtrace.md). From FILE.proj, or from the .info files that the tracer left beside its
// traces.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/xml.h"

namespace feign::hdtrace {

// "0.463608" as ns, exactly; no number, or one beyond 140 years, so that a sum of two is none too
// large: nothing. May be negative.
std::optional<int64_t> parse_time(std::string_view text);
std::optional<int64_t> parse_number(std::string_view text);
std::optional<int64_t> parse_rank(std::string_view text);  // of 32 bits
// "64K": bytes; K, M, G and P are powers of 1024.
std::optional<uint64_t> parse_size(std::string_view text);

// The datatypes of one rank, as MPI_Type_get_contents() tells them, by the tracer's ids.
class Datatypes {
 public:
  struct Type {
    std::string combiner;  // in lower case: "named", "vector" …
    std::string name;      // of a named one
    std::vector<std::string> integers, addresses;
    std::vector<int64_t> types;
  };
  void add(int64_t id, Type type) { types_[id] = {std::move(type), {}}; }
  bool has(int64_t id) const { return types_.contains(id); }
  // What layers/mpi.h says of a datatype's text: MPI_INT, vector(809,1,810;;MPI_DOUBLE); the bare
  // id if there is none, or if its text would be longer than kLongest.
  const std::string& text(int64_t id);

  static constexpr size_t kLongest = size_t{64} << 10;

 private:
  struct Entry {
    Type type;
    std::string text;
    bool busy = false;
  };
  std::map<int64_t, Entry> types_;
  std::map<int64_t, std::string> unknown_;
  int depth_ = 0;
};

// How many bytes of data one of a datatype's text holds; nothing if that is not known.
std::optional<uint64_t> datatype_size(std::string_view text, int depth = 0);

// Ranks as "0-3,7", and back.
std::string ranks_text(const std::vector<int64_t>& ranks);

struct Node {  // of the topology, with the files that bear its name
  std::vector<std::string> labels;
  uint64_t line = 0;  // of the project
  std::string host;
  int32_t rank = -1;
  int64_t thread = 0;
  bool leaf = false;
  std::string trace, info, relation;  // paths, empty: there is none
};

struct Project {
  std::string path;  // of the .proj
  std::string stem;  // what the names of its files begin with, folder and all
  std::vector<Node> nodes;
  std::vector<std::string> statistics;           // paths
  std::map<std::string, uint64_t> initial_size;  // by name as in FileList
  std::vector<std::string> not_read;             // traces beside it that the topology does not have

  // The communicator's text as layers/mpi.h describes it, by a rank's id or by name.
  const std::string* communicator(int32_t rank, int64_t cid) const;
  const std::string* communicator(std::string_view name) const;
  Datatypes& datatypes(int32_t rank, int64_t thread);
  // The name of a file by a rank's id, or nullptr.
  const std::string* file(int32_t rank, int64_t fid) const;

  std::map<std::pair<int32_t, int64_t>, std::string> communicators;  // by rank and cid
  std::map<std::string, std::string, std::less<>> by_name;
  std::map<std::pair<int32_t, int64_t>, Datatypes> types;    // by rank and thread
  std::map<std::pair<int32_t, int64_t>, std::string> files;  // by rank and fid
};

// Reads FILE.proj and finds what belongs to it beside it. `keep_going`: elements that are not known
// are passed over.
Result<Project> read_project(const std::string& path, bool keep_going);
// A trace on its own: who it is from its name (PROJECT_HOST_RANK_THREAD.trc), the rest from its
// .info.
Result<Node> lone_trace(const std::string& path);
// Adds what FILE.info tells of one rank, as far as the project does not say it.
Result<void> read_info(const Node& node, Project& project);

}  // namespace feign::hdtrace
