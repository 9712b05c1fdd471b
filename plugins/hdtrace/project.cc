// SPDX-License-Identifier: MIT
#include "hdtrace/project.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <set>

#include "base/number.h"

namespace feign::hdtrace {
namespace {

namespace fs = std::filesystem;

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(tolower(static_cast<unsigned char>(c)));
  return out;
}

// Labels in files' names have letters, digits, dots and dashes alone.
std::string plain(std::string_view text) {
  std::string out;
  for (const char c : lower(text))
    if (isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-' || c == '_') out += c;
  return out;
}

std::string joined(const std::vector<std::string>& list) {
  std::string out;
  for (const std::string& s : list) out += (out.empty() ? "" : ",") + s;
  return out;
}

std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const size_t end = std::min(text.find(at), text.size());
    if (end != 0) out.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

constexpr std::string_view kTraceEndings[] = {".trc",    ".xml",     ".trc.gz",
                                              ".xml.gz", ".trc.zst", ".xml.zst"};

std::string without_ending(const std::string& path) {
  for (const std::string_view end : kTraceEndings)
    if (path.ends_with(end)) return path.substr(0, path.size() - end.size());
  return path;
}

}  // namespace

// ---- numbers ------------------------------------------------------------------------------------

std::optional<int64_t> parse_number(std::string_view text) {
  int64_t n = 0;
  if (!feign::to_number(text, n)) return std::nullopt;
  return n;
}

std::optional<int64_t> parse_rank(std::string_view text) {
  const auto n = parse_number(text);
  return n && *n >= INT32_MIN && *n <= INT32_MAX ? n : std::nullopt;
}

std::optional<int64_t> parse_time(std::string_view text) {
  constexpr int64_t kMost_s = 4'500'000'000;
  const bool negative = !text.empty() && text[0] == '-';
  if (negative) text.remove_prefix(1);
  const size_t dot = std::min(text.find('.'), text.size());
  const std::string_view fraction = text.substr(std::min(dot + 1, text.size()));
  uint64_t seconds = 0;
  if (!feign::to_number(text.substr(0, dot), seconds) || seconds > kMost_s) return std::nullopt;
  if (dot + 1 == text.size()) return std::nullopt;
  int64_t ns = 0, scale = 100'000'000;
  for (const char c : fraction) {
    if (c < '0' || c > '9') return std::nullopt;
    ns += (c - '0') * scale;
    scale /= 10;
  }
  ns += static_cast<int64_t>(seconds) * 1'000'000'000;
  return negative ? -ns : ns;
}

std::optional<uint64_t> parse_size(std::string_view text) {
  uint64_t n = 0;
  const char* end = text.data() + text.size();
  const auto [stop, wrong] = std::from_chars(text.data(), end, n);
  if (wrong != std::errc{} || stop == text.data()) return std::nullopt;
  int shift = 0;
  if (stop != end) {
    const size_t unit = std::string_view("KMGTP").find(
        static_cast<char>(toupper(static_cast<unsigned char>(*stop))));
    if (unit == std::string_view::npos || stop + 1 != end) return std::nullopt;
    shift = 10 * (static_cast<int>(unit) + 1);
  }
  if (n > (uint64_t{1} << 62) >> shift) return std::nullopt;
  return n << shift;
}

std::string ranks_text(const std::vector<int64_t>& ranks) {
  std::string out;
  for (size_t i = 0; i < ranks.size();) {
    size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    out += (out.empty() ? "" : ",") + std::to_string(ranks[i]);
    if (last != i) out += "-" + std::to_string(ranks[last]);
    i = last + 1;
  }
  return out;
}

// ---- datatypes ----------------------------------------------------------------------------------

const std::string& Datatypes::text(int64_t id) {
  const auto known = types_.find(id);
  if (known != types_.end() && !known->second.text.empty()) return known->second.text;
  const auto bare = [&]() -> const std::string& {
    std::string& text = unknown_[id];
    if (text.empty()) text = std::to_string(id);
    return text;
  };
  // In itself, or in too many others: no such thing.
  if (known == types_.end() || known->second.busy || depth_ >= 100) return bare();
  Entry& e = known->second;
  if (e.type.combiner == "named") {
    e.text = e.type.name.empty() ? bare() : e.type.name;
    return e.text;
  }
  e.busy = true;
  ++depth_;
  std::string text =
      e.type.combiner + "(" + joined(e.type.integers) + ";" + joined(e.type.addresses) + ";";
  for (size_t i = 0; i < e.type.types.size() && text.size() <= kLongest; ++i)
    text += (i == 0 ? "" : ",") + this->text(e.type.types[i]);
  e.busy = false;
  --depth_;
  e.text = text.size() > kLongest ? bare() : text + ")";
  return e.text;
}

namespace {

struct Named {
  std::string_view name;
  uint64_t size;
};
// The sizes of C's types on 64-bit Linux.
constexpr Named kNamed[] = {
    {"MPI_CHAR", 1},
    {"MPI_SIGNED_CHAR", 1},
    {"MPI_UNSIGNED_CHAR", 1},
    {"MPI_BYTE", 1},
    {"MPI_PACKED", 1},
    {"MPI_SHORT", 2},
    {"MPI_UNSIGNED_SHORT", 2},
    {"MPI_INT", 4},
    {"MPI_UNSIGNED", 4},
    {"MPI_LONG", 8},
    {"MPI_UNSIGNED_LONG", 8},
    {"MPI_LONG_LONG", 8},
    {"MPI_LONG_LONG_INT", 8},
    {"MPI_FLOAT", 4},
    {"MPI_DOUBLE", 8},
    {"MPI_LONG_DOUBLE", 16},
    {"MPI_INTEGER", 4},
    {"MPI_REAL", 4},
    {"MPI_DOUBLE_PRECISION", 8},
    {"MPI_LB", 0},
    {"MPI_UB", 0},
    {"MPI_INT8_T", 1},
    {"MPI_INT16_T", 2},
    {"MPI_INT32_T", 4},
    {"MPI_INT64_T", 8},
    {"MPI_UINT8_T", 1},
    {"MPI_UINT16_T", 2},
    {"MPI_UINT32_T", 4},
    {"MPI_UINT64_T", 8},
    {"MPI_OFFSET", 8},
    {"MPI_AINT", 8},
    {"MPI_2INT", 8},
    {"MPI_DOUBLE_INT", 12},
    {"MPI_FLOAT_INT", 8},
    {"MPI_CHARACTER", 1},
    {"MPI_LOGICAL", 4},
};

// The sizes of what a derived type is made of: types stand between commas outside of parentheses.
std::vector<std::optional<uint64_t>> sizes_of(std::string_view types, int depth) {
  std::vector<std::optional<uint64_t>> of;
  for (size_t begin = 0, i = 0, deep = 0; i <= types.size(); ++i) {
    if (i < types.size() && types[i] == '(') ++deep;
    if (i < types.size() && types[i] == ')') --deep;
    if (i == types.size() || (types[i] == ',' && deep == 0)) {
      of.push_back(datatype_size(types.substr(begin, i - begin), depth));
      begin = i + 1;
    }
  }
  return of;
}

// So many of each type, behind their count.
std::optional<uint64_t> struct_size(const std::vector<uint64_t>& n,
                                    const std::vector<std::optional<uint64_t>>& of) {
  constexpr uint64_t kMost = uint64_t{1} << 62;
  uint64_t sum = 0;
  for (size_t i = 0; i < of.size(); ++i) {
    if (!of[i] || i + 1 >= n.size()) return std::nullopt;
    if (n[i + 1] != 0 && *of[i] > kMost / n[i + 1]) return std::nullopt;
    sum += n[i + 1] * *of[i];
    if (sum > kMost) return std::nullopt;
  }
  return sum;
}

}  // namespace

std::optional<uint64_t> datatype_size(std::string_view text, int depth) {
  if (depth > 100) return std::nullopt;
  const size_t open = text.find('(');
  if (open == std::string_view::npos) {
    for (const Named& n : kNamed)
      if (n.name == text) return n.size;
    return std::nullopt;
  }
  const std::string_view combiner = text.substr(0, open);
  const size_t first = text.find(';'), second = text.find(';', first + 1);
  if (first == std::string_view::npos || second == std::string_view::npos || text.back() != ')')
    return std::nullopt;
  const std::vector<std::string> words = split(text.substr(open + 1, first - open - 1), ',');
  std::vector<uint64_t> n;
  for (const std::string& w : words) {
    const auto number = parse_number(w);
    if (!number || *number < 0) break;
    n.push_back(static_cast<uint64_t>(*number));
  }
  const std::vector<std::optional<uint64_t>> of =
      sizes_of(text.substr(second + 1, text.size() - second - 2), depth + 1);
  if (combiner == "struct") return struct_size(n, of);
  if (of.size() != 1 || !of[0]) return std::nullopt;
  uint64_t blocks = 1;
  const auto times = [&](uint64_t by) {
    if (by != 0 && blocks > UINT64_MAX / by) return false;
    blocks *= by;
    return true;
  };
  if (combiner == "contiguous") {
    if (n.empty() || !times(n[0])) return std::nullopt;
  } else if (combiner == "vector" || combiner == "hvector" || combiner == "indexed_block" ||
             combiner == "hindexed_block") {
    if (n.size() < 2 || !times(n[0]) || !times(n[1])) return std::nullopt;
  } else if (combiner == "indexed" || combiner == "hindexed") {
    if (n.empty() || n.size() < 1 + n[0]) return std::nullopt;
    blocks = 0;
    for (size_t i = 0; i < n[0]; ++i) blocks += n[i + 1];
  } else if (combiner == "subarray") {
    if (n.empty() || n.size() < 1 + 2 * n[0]) return std::nullopt;
    for (size_t i = 0; i < n[0]; ++i)
      if (!times(n[1 + n[0] + i])) return std::nullopt;
  } else if (combiner != "dup" && combiner != "resized") {
    return std::nullopt;
  }
  if (!times(*of[0])) return std::nullopt;
  return blocks;
}

// ---- what is known of ranks ---------------------------------------------------------------------

const std::string* Project::communicator(int32_t rank, int64_t cid) const {
  const auto at = communicators.find({rank, cid});
  return at != communicators.end() ? &at->second : nullptr;
}

const std::string* Project::communicator(std::string_view name) const {
  const auto at = by_name.find(name);
  return at != by_name.end() ? &at->second : nullptr;
}

Datatypes& Project::datatypes(int32_t rank, int64_t thread) {
  const auto own = types.find({rank, thread});
  if (own != types.end()) return own->second;
  const auto of_rank = types.lower_bound({rank, INT64_MIN});
  if (of_rank != types.end() && of_rank->first.first == rank) return of_rank->second;
  return types[{rank, thread}];
}

const std::string* Project::file(int32_t rank, int64_t fid) const {
  const auto at = files.find({rank, fid});
  return at != files.end() ? &at->second : nullptr;
}

namespace {

// ---- .proj --------------------------------------------------------------------------------------

class ProjectReader {
 public:
  ProjectReader(Xml& xml, Project& project, bool keep_going)
      : xml_(xml), project_(project), keep_going_(keep_going) {}

  Result<void> read() {
    auto token = xml_.next();
    if (!token) return std::move(token.error());
    if (*token != Xml::Token::kOpen || xml_.name() != "Application")
      return xml_.error("want <Application name='…'>, the description of an HDTrace project");
    return children("Application",
                    {"Description", "FileList", "Topology", "CommunicatorList", "Datatypes",
                     "ExternalStatistics"},
                    [&](std::string_view name) -> Result<void> {
                      if (name == "FileList") return files();
                      if (name == "Topology") return topology();
                      if (name == "CommunicatorList") return communicators();
                      if (name == "Datatypes") return datatypes();
                      return xml_.skip();
                    });
  }

 private:
  // Calls `child` for each element within the one that was just opened; it reads up to its end.
  template <typename Child>
  Result<void> children(const std::string& parent, const std::vector<std::string_view>& known,
                        Child&& child) {
    while (true) {
      auto token = xml_.next();
      if (!token) return std::move(token.error());
      if (*token == Xml::Token::kClose) return {};
      if (*token != Xml::Token::kOpen) continue;
      const std::string name(xml_.name());
      if (!known.empty() && std::find(known.begin(), known.end(), name) == known.end()) {
        if (!keep_going_) {
          std::string all;
          for (const std::string_view k : known) all += (all.empty() ? "" : ", ") + std::string(k);
          return xml_.error("<" + name + "> in <" + parent + ">: want one of " + all);
        }
        if (auto done = xml_.skip(); !done) return done;
        continue;
      }
      if (auto done = child(name); !done) return done;
    }
  }

  Result<std::string> text() {  // of the element that was just opened
    std::string out;
    while (true) {
      auto token = xml_.next();
      if (!token) return std::move(token.error());
      if (*token == Xml::Token::kClose) break;
      if (*token == Xml::Token::kText) out += xml_.text();
      if (*token == Xml::Token::kOpen)
        if (auto done = xml_.skip(); !done) return std::move(done.error());
    }
    const size_t begin = out.find_first_not_of(" \t\r\n"), end = out.find_last_not_of(" \t\r\n");
    return begin == std::string::npos ? std::string() : out.substr(begin, end - begin + 1);
  }

  Result<std::string> attribute(std::string_view name) {
    const std::string_view* value = xml_.find(name);
    if (value == nullptr)
      return xml_.error("<" + std::string(xml_.name()) + ">: want the attribute " +
                        std::string(name));
    return std::string(*value);
  }
  Result<int64_t> number(std::string_view name) {
    auto value = attribute(name);
    if (!value) return std::move(value.error());
    return of(name, *value, parse_number(*value), "a number");
  }
  Result<int64_t> rank(std::string_view name) {
    auto value = attribute(name);
    if (!value) return std::move(value.error());
    return of(name, *value, parse_rank(*value), "a rank");
  }
  Result<int64_t> of(std::string_view name, const std::string& value, std::optional<int64_t> n,
                     const char* want) {
    if (n) return *n;
    return xml_.error("<" + std::string(xml_.name()) + ">: " + std::string(name) + "=\"" + value +
                      "\": want " + want);
  }

  Result<void> files() {
    return children("FileList", {"File"}, [&](std::string_view) -> Result<void> {
      auto name = attribute("name");
      if (!name) return std::move(name.error());
      return children("File", {"InitialSize", "Distribution", "ChunkSize"},
                      [&](std::string_view what) -> Result<void> {
                        if (what != "InitialSize") return xml_.skip();
                        const Error at = xml_.error("");
                        auto size = text();
                        if (!size) return std::move(size.error());
                        const auto bytes = parse_size(*size);
                        if (!bytes)
                          return Error(at.code(), at.text() + "InitialSize of " + *name + " is \"" +
                                                      *size + "\": want bytes");
                        project_.initial_size[*name] = *bytes;
                        return {};
                      });
    });
  }

  Result<void> topology() {
    return children("Topology", {"Level", "Node", "Label"},
                    [&](std::string_view what) -> Result<void> {
                      return what == "Level" ? level() : node({});
                    });
  }
  Result<void> level() {
    const std::string_view* type = xml_.find("type");
    if (type == nullptr) type = xml_.find("name");
    levels_.push_back(type != nullptr ? lower(*type) : "");
    return children("Level", {"Level"}, [&](std::string_view) { return level(); });
  }
  Result<void> node(std::vector<std::string> labels) {
    auto label = attribute(xml_.name() == "Label" ? "value" : "name");
    if (!label) return std::move(label.error());
    labels.push_back(std::move(*label));
    Node n;
    n.labels = labels;
    n.line = xml_.line();
    n.leaf = true;
    const size_t at = project_.nodes.size();
    project_.nodes.push_back(std::move(n));
    return children("Node", {"Node", "Label"}, [&](std::string_view) {
      project_.nodes[at].leaf = false;
      return node(labels);
    });
  }

 public:
  // What the labels of a node mean.
  void identify(Node& n) const {
    const auto meaning = [&](size_t level) -> std::string_view {
      if (level < levels_.size()) return levels_[level];
      constexpr std::string_view kUsual[] = {"hostname", "rank", "thread"};
      return levels_.empty() && level < 3 ? kUsual[level] : "";
    };
    bool thread = false;
    for (size_t i = 0; i < n.labels.size(); ++i) {
      const std::string_view what = meaning(i);
      const auto number = parse_number(n.labels[i]);
      if (what.starts_with("host") || (i == 0 && what != "rank")) {
        n.host = n.labels[i];
      } else if (what == "rank" && number && *number >= 0 && *number <= INT32_MAX) {
        n.rank = static_cast<int32_t>(*number);
      } else if (what == "thread" && number && *number >= 0) {
        n.thread = *number;
        thread = true;
      }
    }
    if (!thread) n.thread = -1;
  }

 private:
  Result<void> communicators() {
    size_t position = 0;
    return children("CommunicatorList", {"Communicator"}, [&](std::string_view) -> Result<void> {
      const std::string_view* given = xml_.find("name");
      std::string name(given != nullptr ? *given : "");
      const std::string place = "#" + std::to_string(position++);
      struct Member {
        int64_t local, global, cid;
      };
      std::vector<Member> members;
      bool all_known = true;
      auto done = children("Communicator", {"Rank"}, [&](std::string_view) -> Result<void> {
        Member m{};
        if (xml_.find("global") != nullptr) {
          auto global = rank("global"), cid = number("cid");
          if (!global) return std::move(global.error());
          if (!cid) return std::move(cid.error());
          m = {0, *global, *cid};
          if (xml_.find("local") == nullptr) {
            all_known = false;
          } else {
            auto local = rank("local");
            if (!local) return std::move(local.error());
            m.local = *local;
          }
        } else {
          // The first generation: cid is the rank in the communicator, whose id is its place.
          auto global = rank("name"), local = rank("cid");
          if (!global) return std::move(global.error());
          if (!local) return std::move(local.error());
          m = {*local, *global, static_cast<int64_t>(position) - 1};
        }
        members.push_back(m);
        return xml_.skip();
      });
      if (!done) return done;
      if (name.empty()) name = place;
      std::string text = name;
      if (project_.by_name.contains(name)) text += place;  // another of the same name
      if (all_known && !members.empty()) {
        std::stable_sort(members.begin(), members.end(),
                         [](const Member& a, const Member& b) { return a.local < b.local; });
        std::vector<int64_t> ranks;
        for (const Member& m : members) ranks.push_back(m.global);
        text += "{" + ranks_text(ranks) + "}";
      }
      project_.by_name.emplace(name, text);
      for (const Member& m : members)
        project_.communicators[{static_cast<int32_t>(m.global), m.cid}] = text;
      return {};
    });
  }

  Result<void> datatypes() {
    return children("Datatypes", {"Rank"}, [&](std::string_view) -> Result<void> {
      auto of_rank = rank("name");
      if (!of_rank) return std::move(of_rank.error());
      int64_t thread = 0;
      if (const std::string_view* t = xml_.find("thread"))
        if (const auto n = parse_number(*t)) thread = *n;
      Datatypes& to = project_.types[{static_cast<int32_t>(*of_rank), thread}];
      return children("Datatypes", {}, [&](std::string_view) { return datatype(to); });
    });
  }

  Result<void> datatype(Datatypes& to) {
    Datatypes::Type type;
    type.combiner = lower(xml_.name());
    auto id = number("id");
    if (!id) return std::move(id.error());
    bool missing = false;
    std::string missing_name;
    const auto take = [&](std::string_view name, std::vector<std::string>& list) {
      if (const std::string_view* value = xml_.find(name)) {
        list.emplace_back(*value);
      } else if (!missing) {
        missing = true;
        missing_name = name;
      }
    };
    const auto old_type = [&] {
      std::vector<std::string> one;
      take("oldType", one);
      if (one.empty()) return;
      if (const auto n = parse_number(one[0])) type.types.push_back(*n);
    };
    // Children that give one number each, in columns: first all of the one, then all of the other.
    std::vector<std::string> columns[4];
    std::vector<std::string_view> names;
    const std::string& c = type.combiner;
    bool count_rows = false;  // the first integer is how many children there are
    const Error at = xml_.error("<" + std::string(xml_.name()) + ">: ");
    if (c == "named") {
      const std::string_view* name = xml_.find("name");
      type.name = name != nullptr ? *name : "";
    } else if (c == "contiguous") {
      take("count", type.integers);
      old_type();
    } else if (c == "vector" || c == "hvector") {
      take("count", type.integers);
      take("blocklength", type.integers);
      take("stride", c == "vector" ? type.integers : type.addresses);
      old_type();
    } else if (c == "indexed" || c == "hindexed") {
      names = {"len", "index"};
      count_rows = true;
      old_type();
    } else if (c == "indexed_block" || c == "hindexed_block") {
      names = {"displacement"};
      count_rows = true;
      old_type();
    } else if (c == "struct") {
      names = {"blocklen", "displacement", "id"};
      count_rows = true;
    } else if (c == "subarray") {
      names = {"size", "subsize", "start"};
      count_rows = true;
      old_type();
    } else if (c == "darray") {
      take("size", type.integers);
      take("rank", type.integers);
      names = {"gsize", "distrib", "darg", "psize"};
      count_rows = true;
      old_type();
    } else if (c == "resized") {
      take("lowerBound", type.addresses);
      take("extent", type.addresses);
      old_type();
    } else if (c == "dup") {
      old_type();
    }
    std::string block_length, order;
    if (c.ends_with("indexed_block")) {
      std::vector<std::string> one;
      take("blockLength", one);
      if (!one.empty()) block_length = one[0];
    }
    if (c == "subarray" || c == "darray") {
      std::vector<std::string> one;
      take("order", one);
      if (!one.empty()) order = one[0];
    }
    if (missing) return Error(at.code(), at.text() + "want the attribute " + missing_name);

    size_t rows = 0;
    auto done = children(c, {}, [&](std::string_view what) -> Result<void> {
      ++rows;
      if (names.empty()) {  // of another combiner: spelled out
        const std::string_view* value = xml_.find("value");
        const std::string text(value != nullptr ? *value : "");
        if (what == "Integer") type.integers.push_back(text);
        if (what == "Address") type.addresses.push_back(text);
        if (what == "Type")
          if (const auto n = parse_number(text)) type.types.push_back(*n);
        return xml_.skip();
      }
      for (size_t k = 0; k < names.size(); ++k) {
        auto value = attribute(names[k]);
        if (!value) return std::move(value.error());
        columns[k].push_back(std::move(*value));
      }
      return xml_.skip();
    });
    if (!done) return done;
    const auto append = [](std::vector<std::string>& to, const std::vector<std::string>& from) {
      to.insert(to.end(), from.begin(), from.end());
    };
    if (count_rows) type.integers.push_back(std::to_string(rows));
    if (!block_length.empty()) type.integers.push_back(block_length);
    if (c == "struct") {
      append(type.integers, columns[0]);
      append(type.addresses, columns[1]);
      for (const std::string& t : columns[2]) {
        const auto n = parse_number(t);
        if (!n) return Error(at.code(), at.text() + "id=\"" + t + "\": want a number");
        type.types.push_back(*n);
      }
    } else if (c == "hindexed" || c == "hindexed_block") {
      for (size_t k = 0; k + 1 < names.size(); ++k) append(type.integers, columns[k]);
      append(type.addresses, columns[names.size() - 1]);
    } else {
      for (size_t k = 0; k < names.size(); ++k) append(type.integers, columns[k]);
    }
    if (!order.empty()) type.integers.push_back(order);
    to.add(*id, std::move(type));
    return {};
  }

  Xml& xml_;
  Project& project_;
  bool keep_going_;
  std::vector<std::string> levels_;
};

}  // namespace

Result<Project> read_project(const std::string& path, bool keep_going) {
  auto input = Input::open(path);
  if (!input) return std::move(input.error());
  Xml xml(std::move(*input));
  Project project;
  project.path = path;
  project.stem = path;
  for (const std::string_view end : {".gz", ".zst", ".proj", ".xml"})
    if (project.stem.ends_with(end)) project.stem.resize(project.stem.size() - end.size());
  ProjectReader reader(xml, project, keep_going);
  if (auto read = reader.read(); !read) return std::move(read.error());

  // What is beside it, by plain name.
  std::map<std::string, std::string> beside;
  const fs::path folder = fs::path(path).parent_path();
  const std::string prefix = fs::path(project.stem).filename().string() + "_";
  std::error_code wrong;
  for (fs::directory_iterator it(folder.empty() ? "." : folder, wrong), end; !wrong && it != end;
       it.increment(wrong)) {
    const std::string name = it->path().filename().string();
    if (name.starts_with(prefix)) beside[plain(name)] = (folder / name).string();
  }
  const auto find = [&](const std::string& name) {
    const auto at = beside.find(plain(name));
    return at != beside.end() ? at->second : std::string();
  };
  std::set<std::string> used;
  size_t number = 0;
  for (Node& n : project.nodes) {
    std::string name = prefix.substr(0, prefix.size() - 1);
    for (const std::string& label : n.labels) name += "_" + label;
    reader.identify(n);
    if (n.thread < 0) n.thread = static_cast<int64_t>(number);
    ++number;
    for (const std::string_view end : kTraceEndings)
      if (n.trace.empty()) n.trace = find(name + std::string(end));
    n.info = find(name + ".info");
    n.relation = find(name + ".rel");
    used.insert(n.trace);
    if (n.trace.empty() && n.leaf)
      return Error(FEIGN_ERR_ARGUMENT, path + ":" + std::to_string(n.line) +
                                           ": the trace of this node is missing: want " +
                                           (folder / (name + ".trc")).string());
  }
  for (const auto& [name, file] : beside) {
    if (name.ends_with(".stat") || name.ends_with(".stat.gz")) project.statistics.push_back(file);
    if (name.ends_with(".trc") && !used.contains(file)) project.not_read.push_back(file);
  }
  for (const Node& n : project.nodes)
    if (!n.info.empty())
      if (auto read = read_info(n, project); !read) return std::move(read.error());
  return project;
}

Result<Node> lone_trace(const std::string& path) {
  Node n;
  n.leaf = true;
  n.trace = path;
  const std::string stem = without_ending(path);
  std::vector<std::string> labels = split(fs::path(stem).filename().string(), '_');
  if (labels.size() >= 4) {
    const auto rank = parse_number(labels[labels.size() - 2]), thread = parse_number(labels.back());
    n.host = labels[1];
    if (rank && *rank >= 0 && *rank <= INT32_MAX) n.rank = static_cast<int32_t>(*rank);
    if (thread && *thread >= 0) n.thread = *thread;
    labels.erase(labels.begin());
  }
  if (n.rank < 0) {  // the first generation says it in the file, too
    auto input = Input::open(path);
    if (!input) return std::move(input.error());
    Xml xml(std::move(*input));
    auto token = xml.next();
    if (!token) return std::move(token.error());
    const auto number = [&](std::string_view name, int32_t otherwise) {
      const std::string_view* value = xml.find(name);
      const auto found = value != nullptr ? parse_number(*value) : std::nullopt;
      return found && *found >= 0 && *found <= INT32_MAX ? static_cast<int32_t>(*found) : otherwise;
    };
    n.rank = number("rank", -1);
    n.thread = number("thread", 0);
  }
  n.labels = std::move(labels);
  std::error_code wrong;
  if (fs::exists(stem + ".info", wrong)) n.info = stem + ".info";
  return n;
}

// ---- .info --------------------------------------------------------------------------------------

namespace {

// One line: a word, then NAME=VALUE, the value in single or double quotes if it is to hold blanks.
bool info_line(std::string_view line, std::string& what,
               std::map<std::string, std::string>& values) {
  const auto word = [&](std::string_view ends) {
    const size_t begin = std::min(line.find_first_not_of(" \t\r"), line.size());
    line.remove_prefix(begin);
    const size_t end = std::min(line.find_first_of(ends), line.size());
    const std::string_view out = line.substr(0, end);
    line.remove_prefix(end);
    return std::string(out);
  };
  what = word(" \t\r");
  while (line.find_first_not_of(" \t\r") != std::string_view::npos) {
    const std::string name = word("= \t\r");
    if (name.empty() || line.empty() || line[0] != '=') return false;
    line.remove_prefix(1);
    std::string& value = values[name];
    if (!line.empty() && (line[0] == '\'' || line[0] == '"')) {
      const size_t end = line.find(line[0], 1);
      if (end == std::string_view::npos) return false;
      value = line.substr(1, end - 1);
      line.remove_prefix(end + 1);
    } else {
      value = word(" \t\r");
    }
  }
  return !what.empty();
}

}  // namespace

Result<void> read_info(const Node& node, Project& project) {
  auto input = Input::open(node.info);
  if (!input) return std::move(input.error());
  Lines lines(std::move(*input));
  Datatypes& types = project.datatypes(node.rank, node.thread);
  while (true) {
    std::string_view line;
    auto more = lines.next(line);
    if (!more) return std::move(more.error());
    if (!*more) return {};
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const auto wrong = [&](const std::string& why) {
      return Error(FEIGN_ERR_ARGUMENT,
                   lines.path() + ":" + std::to_string(lines.number()) + ": " + why);
    };
    std::map<std::string, std::string> values;
    std::string what;
    if (!info_line(line, what, values)) return wrong("want WORD NAME=VALUE … or NAME='VALUE'");
    if (what != "File" && what != "Comm" && what != "Type")
      return wrong("\"" + what + "\": want File, Comm or Type");
    const auto value = [&](const char* name) { return values[name]; };
    const auto id = parse_number(value("id"));
    if (!id) return wrong(what + ": id='" + value("id") + "': want a number");
    if (what == "File") {
      project.files.emplace(std::pair{node.rank, *id}, value("name"));
    } else if (what == "Comm") {
      std::vector<std::pair<int64_t, int64_t>> members;  // local, world
      for (const std::string& pair : split(value("map"), ';')) {
        const size_t arrow = pair.find("->");
        const auto world = parse_rank(pair.substr(0, std::min(arrow, pair.size())));
        const auto local =
            arrow == std::string::npos ? std::nullopt : parse_rank(pair.substr(arrow + 2));
        if (!world || !local) return wrong("Comm: map has \"" + pair + "\": want WORLD->LOCAL");
        members.emplace_back(*local, *world);
      }
      std::sort(members.begin(), members.end());
      std::vector<int64_t> ranks;
      for (const auto& [local, world] : members) ranks.push_back(world);
      const std::string name = value("name").empty() ? "#" + std::to_string(*id) : value("name");
      project.communicators.emplace(std::pair{node.rank, *id},
                                    name + "{" + ranks_text(ranks) + "}");
    } else if (!types.has(*id)) {
      Datatypes::Type type;
      type.combiner = lower(value("combiner"));
      if (type.combiner.starts_with("mpi_combiner_")) type.combiner.erase(0, 13);
      type.name = value("name");
      type.integers = split(value("integers"), ';');
      type.addresses = split(value("addresses"), ';');
      for (const std::string& t : split(value("types"), ';')) {
        const auto n = parse_number(t);
        if (!n) return wrong("Type: types has \"" + t + "\": want numbers");
        type.types.push_back(*n);
      }
      types.add(*id, std::move(type));
    }
  }
}

}  // namespace feign::hdtrace
