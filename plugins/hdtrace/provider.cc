// SPDX-License-Identifier: MIT
// Provider hdtrace: projects and traces of HDTrace, all three generations (docs/hdtrace.md).
//
// A trace has the calls inside another before that one, and a call where it ended. So each file is
// read one outermost call with all that is in it at a time, turned round, and the files are merged
// by when their next call started. What the tracer's numbers for files mean is worked out as calls
// are emitted, in that order.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "base/path.h"
#include "base/xml.h"
#include "feign.hpp"
#include "hdtrace/names.h"
#include "hdtrace/plugin.h"
#include "hdtrace/project.h"
#include "hdtrace/relation.h"
#include "hdtrace/statistics.h"
#include "layers/mpiio_ops.h"
#include "trace/tables.h"

namespace feign::hdtrace {
namespace {

// Calls in one outermost call, all levels together: they are in memory at the same time.
constexpr size_t kMostInside = size_t{1} << 18;
constexpr int64_t kNone = INT64_MIN;
constexpr int64_t kLargest = int64_t{1} << 60;  // of sizes and offsets
// Times of this many seconds and more count from 1970, not from the start of the trace.
constexpr int64_t kEpoch_ns = int64_t{100'000'000} * 1'000'000'000;

struct Options {
  const char* const* file;
  uint32_t keep_going, statistics;
  const char* cwd;
};
constexpr feign_option kOptions[] = {
    {"file", FEIGN_OPT_TEXTS, offsetof(Options, file), nullptr, nullptr, 0, 0,
     "PROJECT.proj, which finds its traces beside it; or traces alone."},
    {"keep-going", FEIGN_OPT_BOOL, offsetof(Options, keep_going), "no", nullptr, 0, 0,
     "Count and skip calls that cannot be understood."},
    {"statistics", FEIGN_OPT_BOOL, offsetof(Options, statistics), "no", nullptr, 0, 0,
     "Sum up the .stat files of the project, too, for feign info."},
    {"cwd", FEIGN_OPT_TEXT, offsetof(Options, cwd), "", nullptr, 0, 0,
     "Where names of files that are not absolute begin."},
};

struct Call {
  const feign_op_info* op = nullptr;  // nullptr: a state that is no call of these layers
  int64_t start = 0, end = 0;
  uint64_t line = 0;
  uint32_t depth = 0;
  uint32_t flags = 0;
  int64_t offset = kNone, fid = kNone, result = kNone;
  uint64_t length = 0;
  bool no_result = false;
  std::string name;              // of a file
  std::vector<uint64_t> values;  // as the op's arguments say
};

// What an attribute of a state is to the op that the state is.
struct Attribute {
  std::string name;
  enum class As {
    kDropped,
    kArgument,
    kOffset,
    kFile,
    kSourceFile,
    kSourceLine,
    kResult,
    kIgnored  // told otherwise
  } as;
  const feign_arg_info* arg;
  uint64_t dropped;  // how many were not kept
  enum class Text { kPlain, kCommunicator, kDatatype } text = Text::kPlain;
};
struct Tag {
  std::string name;
  const feign_op_info* op = nullptr;
  uint32_t id = 0;
  std::vector<Attribute> attributes;
};

struct Open {  // an MPI_File of a process
  uint32_t handle = 0, path = 0, file_system = 0;
  uint32_t marks = 0;
  int64_t view = 0;  // where the view starts
  int64_t unit = 1;  // bytes of its etype
};
using Files = std::map<int64_t, Open>;  // by fid

// One trace, of one thread.
struct Source {
  std::unique_ptr<Xml> xml;
  Node node;
  uint32_t stream = 0, number = 0;
  int64_t adjustment = 0;
  bool ours = false;  // written by our writer
  bool begun = false, ended = false;
  struct Frame {
    std::vector<Call> done;     // with what is in them behind them
    std::vector<Call> waiting;  // in the call that comes next
  };
  std::vector<Frame> frames;
  size_t held = 0;
  std::vector<Call> queue;  // ready, in order
  size_t at = 0;
  int64_t last_start = INT64_MIN;
  Files* files = nullptr;
  std::map<int64_t, uint32_t> communicators, types;  // string ids
  // What others wait for here, and what is waited for here, in order of time; up to where it is
  // settled; and the last activity's id.
  std::vector<Dependence*> waited_for, waits;
  size_t settled = 0, waited = 0;
  uint64_t last_id = 0;

  const Call* next() const { return at < queue.size() ? &queue[at] : nullptr; }
};

struct Provider {
  Provider(const feign_host* h, const Options& o)
      : host(h), options(o), keep_going(o.keep_going != 0), cwd(o.cwd) {}
  feign_status start();
  feign_status next(size_t want, feign_sink* out);
  Result<void> open_all();

  const feign_host* host;
  Options options;
  bool keep_going;
  std::string cwd;
  Project project;
  std::vector<std::unique_ptr<Source>> sources;
  std::vector<size_t> heap;  // sources, the one whose call is next on top
  std::map<std::string, Tag, std::less<>> tags;
  std::map<std::pair<std::string, int64_t>, Files> files;  // by host, and rank or stream
  std::map<std::string, uint64_t> sizes;                   // by clean path: what it held at first
  uint32_t last_handle = 0;
  int64_t base = 0;
  uint64_t no_data_columns = 0, untrusted = 0, before_begin = 0;
  std::vector<Dependence> dependences;  // of .rel files

  uint32_t intern(std::string_view text) { return host->intern(host, text.data(), text.size()); }

  // ---- states -> calls
  // ---------------------------------------------------------------------------

  Tag& tag_of(std::string_view name) {
    const auto known = tags.find(name);
    if (known != tags.end()) return known->second;
    if (tags.size() >= 10'000) {  // names out of a trace: not without end
      Tag& other = tags["(others)"];
      other.name = "(others)";
      return other;
    }
    Tag& tag = tags[std::string(name)];
    tag.name = name;
    std::string full = "MPI_" + tag.name;
    for (const CallAlias& alias : mpiio_aliases())
      if (full == alias.name) full = host->op_info(host, alias.op)->name;
    for (const char* layer : {"mpi", "mpiio"})
      if (const uint32_t op = host->op(host, layer, full.c_str()); op != 0) {
        tag.op = host->op_info(host, op);
        tag.id = op;
      }
    return tag;
  }

  static Attribute meaning(const Tag& tag, std::string_view name) {
    using As = Attribute::As;
    Attribute a{std::string(name), As::kDropped, nullptr, 0};
    const feign_op_info& op = *tag.op;
    if (name == "time" || name == "end") {
      a.as = As::kIgnored;
    } else if (name == "fid" || name == "file") {
      for (uint32_t i = 0; i < op.arg_count; ++i)
        if (op.args[i].type == FEIGN_ARG_FD) a.as = As::kFile;
      if (op.id == FEIGN_MPIIO_FILE_DELETE) a.as = As::kIgnored;  // its name says more
    } else if (name == "cFile") {
      a.as = As::kSourceFile;
    } else if (name == "cLine") {
      a.as = As::kSourceLine;
    } else if (name == "result") {
      a.as = As::kResult;
    } else if (name == "offset" && op.kind == FEIGN_KIND_SEEK) {
      // Where it came to, beside what was asked for.
      a.as = argument_of(op, "whence") != nullptr ? As::kResult : As::kOffset;
    } else if (const feign_arg_info* arg = argument_named(op, name)) {
      a.as = As::kArgument;
      a.arg = arg;
      if (strstr(arg->name, "type") != nullptr) a.text = Attribute::Text::kDatatype;
      if (strstr(arg->name, "comm") != nullptr) a.text = Attribute::Text::kCommunicator;
    } else if (name == "offset" && (op.kind == FEIGN_KIND_READ || op.kind == FEIGN_KIND_WRITE)) {
      a.as = As::kOffset;
    }
    return a;
  }

  Attribute& attribute(Tag& tag, std::string_view name, size_t expected) {
    // States of one kind have their attributes in the same order.
    if (expected < tag.attributes.size() && tag.attributes[expected].name == name)
      return tag.attributes[expected];
    for (Attribute& a : tag.attributes)
      if (a.name == name) return a;
    if (tag.attributes.size() >= 100) {
      static Attribute none{"(others)", Attribute::As::kDropped, nullptr, 0};
      return none;
    }
    tag.attributes.push_back(meaning(tag, name));
    return tag.attributes.back();
  }

  static void put(Call& c, uint32_t index, uint64_t value) {
    if (index >= c.values.size()) c.values.resize(index + size_t{1}, FEIGN_UNKNOWN);
    c.values[index] = value;
  }

  uint32_t communicator(Source& s, std::string_view text) {
    const auto cid = parse_number(text);
    if (cid)
      if (const auto known = s.communicators.find(*cid); known != s.communicators.end())
        return known->second;
    const std::string* found =
        cid ? project.communicator(s.node.rank, *cid) : project.communicator(text);
    const uint32_t id = intern(found != nullptr ? *found : text);
    if (cid) s.communicators[*cid] = id;
    return id;
  }

  uint32_t datatype(Source& s, std::string_view text) {
    const auto tid = parse_number(text);
    if (!tid) return intern(text);
    if (const auto known = s.types.find(*tid); known != s.types.end()) return known->second;
    return s.types[*tid] = intern(project.datatypes(s.node.rank, s.node.thread).text(*tid));
  }

  Error wrong(const Source& s, const Call& c, std::string_view tag, std::string_view name,
              std::string_view value, const char* want) {
    return Error(FEIGN_ERR_ARGUMENT, s.xml->path() + ":" + std::to_string(c.line) + ": <" +
                                         std::string(tag) + ">: " + std::string(name) + "=\"" +
                                         std::string(value.substr(0, 60)) + "\": want " + want);
  }

  Result<void> argument(Source& s, Call& c, const Tag& tag, const Attribute& a,
                        std::string_view value) {
    const feign_arg_info& arg = *a.arg;
    if (arg.slot == FEIGN_SLOT_PATH) {
      c.name = value;
      return {};
    }
    if (arg.type == FEIGN_ARG_STRING) {
      put(c, arg.index,
          a.text == Attribute::Text::kCommunicator ? communicator(s, value)
          : a.text == Attribute::Text::kDatatype   ? datatype(s, value)
                                                   : intern(value));
      return {};
    }
    if (arg.type == FEIGN_ARG_FLAGS)
      for (uint32_t i = 0; i < arg.name_count; ++i) {
        // The tracer's spelling of whence: "Set" is MPI_SEEK_SET.
        const std::string_view known = arg.names[i].name;
        const size_t last = known.rfind('_');
        if (value.size() == known.size() - last - 1 &&
            strncasecmp(known.data() + last + 1, value.data(), value.size()) == 0) {
          c.flags = static_cast<uint32_t>(arg.names[i].value);
          return {};
        }
      }
    const auto n = parse_number(value);
    if (!n) return wrong(s, c, tag.name, a.name, value, "a number");
    switch (arg.slot) {
      case FEIGN_SLOT_LENGTH:
        if (*n < 0 || *n > kLargest)
          return wrong(s, c, tag.name, a.name, value, "bytes, 0 to 2^60");
        c.length = static_cast<uint64_t>(*n);
        return {};
      case FEIGN_SLOT_OFFSET:
        if (*n > kLargest || *n < -kLargest)
          return wrong(s, c, tag.name, a.name, value, "a position in a file");
        c.offset = *n;
        return {};
      case FEIGN_SLOT_FLAGS:
        if (*n < 0 || *n > UINT32_MAX) return wrong(s, c, tag.name, a.name, value, "flags");
        c.flags = static_cast<uint32_t>(*n);
        return {};
      case FEIGN_SLOT_VALUE:
        put(c, arg.index, static_cast<uint64_t>(*n));
        return {};
      default:
        return {};
    }
  }

  Result<void> attributes(Source& s, Call& c, Tag& tag) {
    std::string source_file, source_line;
    size_t i = 0;
    // Of this call the tracer writes what lay on the stack, but for the first two attributes.
    const bool doubtful = tag.name == "File_iread_at" && !s.ours;
    for (const Xml::Attribute& x : s.xml->attributes()) {
      Attribute& a = attribute(tag, x.name, i++);
      using As = Attribute::As;
      if (doubtful && a.as != As::kIgnored && i > 2) {
        ++untrusted;
        continue;
      }
      switch (a.as) {
        case As::kIgnored:
          break;
        case As::kDropped:
          ++a.dropped;
          break;
        case As::kArgument:
          if (auto done = argument(s, c, tag, a, x.value); !done) return done;
          break;
        case As::kSourceFile:
          source_file = x.value;
          break;
        case As::kSourceLine:
          source_line = x.value;
          break;
        case As::kOffset:
        case As::kFile:
        case As::kResult: {
          if (a.as == As::kResult && x.value == "?") {
            c.no_result = true;
            break;
          }
          const auto n = parse_number(x.value);
          if (!n || *n > kLargest || *n < -kLargest || (a.as == As::kOffset && *n < 0))
            return wrong(s, c, tag.name, a.name, x.value, "a number, at most 2^60");
          (a.as == As::kOffset ? c.offset : a.as == As::kFile ? c.fid : c.result) = *n;
          break;
        }
      }
    }
    if (!source_file.empty())
      if (const feign_arg_info* site = argument_of(*tag.op, "site"))
        put(c, site->index, intern(source_file + ":" + source_line));
    return {};
  }

  // What is in a state: data, infos, requests.
  Result<void> elements(Source& s, Call& c, Tag* tag) {
    std::vector<uint64_t> list;
    std::string info;
    std::vector<std::pair<int64_t, uint64_t>> pieces;
    const feign_arg_info* list_arg = nullptr;
    bool requested = false;
    for (uint32_t i = 0; tag != nullptr && i < tag->op->arg_count; ++i)
      if (tag->op->args[i].type == FEIGN_ARG_LIST) list_arg = &tag->op->args[i];
    while (true) {
      auto token = s.xml->next();
      if (!token) return std::move(token.error());
      if (*token == Xml::Token::kClose) break;
      if (*token != Xml::Token::kOpen) continue;
      const std::string name(s.xml->name());
      if (tag == nullptr) {
        if (auto done = s.xml->skip(); !done) return done;
        continue;
      }
      const auto number = [&](std::string_view attribute, bool any = false) -> Result<int64_t> {
        const std::string_view* value = s.xml->find(attribute);
        if (value == nullptr) return kNone;
        const auto n = parse_number(*value);
        if (!n || (!any && (*n > kLargest || *n < -kLargest)))
          return s.xml->error("<" + name + ">: " + std::string(attribute) + "=\"" +
                              std::string(value->substr(0, 60)) + "\": want a number" +
                              (any ? "" : ", at most 2^60"));
        return *n;
      };
      if (name == "Data" &&
          (tag->op->kind == FEIGN_KIND_READ || tag->op->kind == FEIGN_KIND_WRITE)) {
        auto offset = number("offset"), size = number("size");
        if (!offset) return std::move(offset.error());
        if (!size) return std::move(size.error());
        if (*size < 0 || *offset == kNone)
          return s.xml->error("<Data>: want offset and size, not below 0");
        if (pieces.empty()) {  // what else it tells is taken for the whole call
          if (auto done = attributes(s, c, *tag); !done) return done;
        } else if (s.xml->attributes().size() > 2) {
          ++no_data_columns;
        }
        pieces.emplace_back(*offset, static_cast<uint64_t>(*size));
      } else if (name == "Info") {
        const std::string_view* key = s.xml->find("key");
        const std::string_view* value = s.xml->find("value");
        const auto add = [&](const std::string_view* text) {
          for (const char ch : text != nullptr ? *text : std::string_view()) {
            if (ch == '%' || ch == '=' || ch == ';') {
              char hex[4];
              snprintf(hex, sizeof hex, "%%%02X", static_cast<unsigned>(ch));
              info += hex;
            } else {
              info += ch;
            }
          }
        };
        if (!info.empty()) info += ';';
        add(key);
        if (key == nullptr || value != nullptr) info += '=';
        add(value);
      } else if (name == "For") {
        auto rid = number("rid", true);  // its high bits say what became of it
        if (!rid) return std::move(rid.error());
        const feign_arg_info* one = argument_of(*tag->op, "request");
        if (one != nullptr && !requested)
          put(c, one->index, static_cast<uint64_t>(*rid));
        else
          list.push_back(static_cast<uint64_t>(*rid));
        requested = true;
      } else if (list_arg != nullptr && (name == "Send" || name == "Recv")) {
        auto size = number("size"), count = number("count");
        if (!size) return std::move(size.error());
        if (!count) return std::move(count.error());
        if (*size > 0) c.length += static_cast<uint64_t>(*size);
        if (c.length > static_cast<uint64_t>(kLargest))
          return s.xml->error("<" + name + ">: more than 2^60 bytes in all");
        list.push_back(*count == kNone ? FEIGN_UNKNOWN : static_cast<uint64_t>(*count));
        if (list.size() == 1)
          for (const char* type : {name == "Send" ? "sendtype" : "recvtype", "datatype"})
            if (const feign_arg_info* arg = argument_of(*tag->op, type))
              if (const std::string_view* tid = s.xml->find("tid")) {
                put(c, arg->index, datatype(s, *tid));
                break;
              }
      } else {
        ++attribute(*tag, "<" + name + ">", 0).dropped;
      }
      if (list.size() > kMostInside) return s.xml->error("too many <" + name + "> in one call");
      if (auto done = s.xml->skip(); !done) return done;
    }
    if (tag == nullptr) return {};
    if (!info.empty()) {
      const feign_arg_info* arg = argument_of(*tag->op, "info");
      if (arg != nullptr && arg->type == FEIGN_ARG_STRING)
        put(c, arg->index, intern(info));
      else
        ++attribute(*tag, "<Info>", 0).dropped;
    }
    if (pieces.size() > 1) {
      c.length = 0;
      for (const auto& [offset, size] : pieces) {
        list.push_back(static_cast<uint64_t>(offset));
        list.push_back(size);
        c.length = std::min<uint64_t>(c.length + size, static_cast<uint64_t>(kLargest));
      }
      c.offset = pieces[0].first;
    }
    if (!list.empty() && list_arg != nullptr)
      for (size_t i = 0; i < list.size(); ++i)
        put(c, list_arg->index + static_cast<uint32_t>(i), list[i]);
    return {};
  }

  // The state whose tag was just read.
  Result<Call> state(Source& s) {
    Xml& x = *s.xml;
    Call c;
    c.line = x.line();
    Tag& tag = tag_of(x.name());
    const std::string name(x.name());
    const std::string_view* from = x.find("time");
    const std::string_view* to = x.find("end");
    const bool event = name == "Event";
    if (from == nullptr || (to == nullptr && !event))
      return x.error("<" + name + ">: want a call, which has time='…' and end='…'");
    const auto start = parse_time(*from), end = to != nullptr ? parse_time(*to) : start;
    if (!start) return wrong(s, c, name, "time", *from, "seconds, such as 12.345678");
    if (!end) return wrong(s, c, name, "end", *to, "seconds, such as 12.345678");
    c.start = *start + s.adjustment;
    c.end = *end + s.adjustment;
    if (c.end < c.start) return wrong(s, c, name, "end", *to, "no time before its start");
    if (c.start < 0) return wrong(s, c, name, "time", *from, "a time after 1970");
    if (tag.op != nullptr) {
      c.op = tag.op;
      if (auto done = attributes(s, c, tag); !done) return std::move(done.error());
    } else {
      host->left_out(host, s.stream, event ? "Event" : tag.name.c_str(),
                     event               ? "an instant, no call"
                     : name == "Compute" ? "computing"
                                         : "no description",
                     static_cast<uint64_t>(c.end - c.start), 0);
    }
    if (auto done = elements(s, c, tag.op != nullptr ? &tag : nullptr); !done)
      return std::move(done.error());
    return c;
  }

  // Calls next to each other in order of their starts, each with what is in it.
  static void sort(std::vector<Call>& calls) {
    const auto outer = [](const Call& c) { return c.depth == 0; };
    int64_t last = INT64_MIN;
    bool sorted = true;
    for (const Call& c : calls)
      if (outer(c)) {
        sorted = sorted && c.start >= last;
        last = c.start;
      }
    if (sorted) return;
    std::vector<std::vector<Call>> groups;
    for (Call& c : calls) {
      if (outer(c) || groups.empty()) groups.emplace_back();
      groups.back().push_back(std::move(c));
    }
    std::stable_sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) {
      return a.front().start < b.front().start;
    });
    calls.clear();
    for (auto& g : groups)
      for (Call& c : g) calls.push_back(std::move(c));
  }

  Result<void> begin(Source& s) {
    auto token = s.xml->next();
    if (!token) return std::move(token.error());
    if (*token != Xml::Token::kOpen || s.xml->name() != "Program")
      return s.xml->error("want <Program …>, the trace of one thread");
    if (const std::string_view* text = s.xml->find("timeAdjustment")) {
      const auto ns = parse_time(*text);
      if (!ns)
        return s.xml->error("<Program>: timeAdjustment=\"" + std::string(*text) +
                            "\": want seconds");
      s.adjustment = *ns;
    }
    s.ours = s.xml->find("writer") != nullptr;
    s.begun = true;
    s.frames.assign(1, {});
    return {};
  }

  // Fills the queue with the next outermost call, unless the trace is at its end.
  Result<void> fill(Source& s) {
    s.queue.clear();
    s.at = 0;
    while (s.queue.empty() && !s.ended) {
      auto token = s.xml->next();
      if (!token) return std::move(token.error());
      if (*token == Xml::Token::kText) continue;
      if (*token == Xml::Token::kOpen && s.xml->name() == "Nested") {
        s.frames.emplace_back();
        continue;
      }
      Source::Frame& frame = s.frames.back();
      if (*token == Xml::Token::kOpen) {
        auto call = state(s);
        if (!call) {
          if (!keep_going || s.xml->depth() <= s.frames.size()) return std::move(call.error());
          host->left_out(host, s.stream, "(call)", "not understood", 0, 0);
          while (s.xml->depth() > s.frames.size())
            if (auto done = s.xml->next(); !done) return std::move(done.error());
        }
        sort(frame.waiting);
        // What is in one that is none of these calls, or was not understood, is in what that is in.
        const bool kept = call && call->op != nullptr;
        if (kept) frame.done.push_back(std::move(*call));
        for (Call& inner : frame.waiting) {
          inner.depth += kept;
          if (inner.depth > 255)
            return s.xml->error("a call in 255 others: want fewer in each other");
          frame.done.push_back(std::move(inner));
        }
        frame.waiting.clear();
        s.held += kept;
        if (s.held > kMostInside)
          return s.xml->error("more than " + std::to_string(kMostInside) +
                              " calls in one: want fewer, they are held in memory");
      } else if (s.frames.size() > 1) {  // </Nested>
        Source::Frame inner = std::move(s.frames.back());
        s.frames.pop_back();
        std::vector<Call>& to = s.frames.back().waiting;
        for (auto* list : {&inner.done, &inner.waiting})
          for (Call& c : *list) to.push_back(std::move(c));
      } else {  // </Program>
        for (Call& c : frame.waiting) frame.done.push_back(std::move(c));
        s.ended = true;
        while (true) {
          auto rest = s.xml->next();
          if (!rest) return std::move(rest.error());
          if (*rest == Xml::Token::kEnd) break;
          return s.xml->error("want nothing behind </Program>");
        }
      }
      if (s.frames.size() == 1 && !s.frames[0].done.empty()) {
        s.queue.swap(s.frames[0].done);
        s.frames[0].done.clear();
        s.held = 0;
      }
    }
    return {};
  }

  // ---- calls -> activities
  // -----------------------------------------------------------------------

  // "pvfs2://pvfs2/x" is file system "pvfs2:", path "//pvfs2/x".
  std::pair<std::string, std::string> named(const std::string& name) const {
    size_t colon = 0;
    while (colon < name.size() && isalnum(static_cast<unsigned char>(name[colon]))) ++colon;
    const bool prefixed = colon > 1 && colon < name.size() && name[colon] == ':';
    std::string path = prefixed ? name.substr(colon + 1) : name;
    if (path.empty() || path[0] != '/') path = (cwd.empty() ? "/" : cwd + "/") + path;
    return {prefixed ? name.substr(0, colon + 1) : "", clean_path(path)};
  }

  Open& file_of(Source& s, int64_t fid) {
    Open& o = (*s.files)[fid];
    if (o.handle == 0) {  // open before the trace began
      o.handle = ++last_handle;
      o.marks = FEIGN_INHERITED;
      if (const std::string* name = project.file(s.node.rank, fid)) {
        const auto [file_system, path] = named(*name);
        o.path = intern(path);
      }
    }
    return o;
  }

  feign_status emit(Source& s, Call& c, feign_sink* out) {
    feign_activity* a = out->make(out);
    if (a == nullptr) return host->fail(host, FEIGN_ERR_NOMEM, "out of memory");
    const feign_op_info& op = *c.op;
    a->op = op.id;
    a->stream = s.stream;
    if (c.start < base) ++before_begin;
    a->start_ns = c.start > base ? static_cast<uint64_t>(c.start - base) : 0;
    a->duration_ns = static_cast<uint64_t>(c.end - c.start);
    a->marks = FEIGN_AT_DEPTH(c.depth) | (c.no_result ? uint32_t{FEIGN_NO_RESULT} : 0u);
    a->length = c.length;
    a->flags = c.flags;
    a->place = FEIGN_PLACE(s.number, c.line);
    const bool moves = op.kind == FEIGN_KIND_READ || op.kind == FEIGN_KIND_WRITE;
    const feign_arg_info* at = argument_of(op, "offset");
    if (c.offset != kNone)
      a->offset = static_cast<uint64_t>(c.offset);
    else if (moves)
      a->offset = FEIGN_NO_OFFSET;
    a->result = c.result != kNone ? c.result : moves ? static_cast<int64_t>(c.length) : 0;
    if (op.kind == FEIGN_KIND_SEEK && c.result == kNone && argument_of(op, "whence") != nullptr)
      a->marks |= FEIGN_NO_RESULT;

    if (op.id == FEIGN_MPIIO_FILE_OPEN || !c.name.empty()) {
      const auto [file_system, path] = named(c.name);
      a->path = intern(path);
      if (const feign_arg_info* arg = argument_of(op, "file_system"); arg && !file_system.empty())
        put(c, arg->index, intern(file_system));
      if (op.id == FEIGN_MPIIO_FILE_OPEN && a->result >= 0) {
        // The first open tells what was there.
        if (const auto size = sizes.find(path); size != sizes.end() && size->second != UINT64_MAX) {
          a->length = size->second;
          if ((c.flags & 1) && size->second == 0) a->marks |= FEIGN_CREATES;
          size->second = UINT64_MAX;
        } else if (size == sizes.end()) {
          if (c.flags & 1) a->marks |= FEIGN_CREATES;
          sizes[path] = UINT64_MAX;
        }
        Open& o = (*s.files)[c.fid == kNone ? -1 : c.fid];
        o = {++last_handle, a->path, 0, 0, 0, 1};
        a->handle = o.handle;
      }
    } else if (c.fid != kNone) {
      Open& o = file_of(s, c.fid);
      a->handle = o.handle;
      a->path = o.path;
      a->marks |= o.marks;
      if (op.id == FEIGN_MPIIO_FILE_SET_VIEW) {
        o.view = c.offset == kNone ? 0 : c.offset;
        const feign_arg_info* etype = argument_of(op, "etype");
        const uint64_t id = etype->index < c.values.size() ? c.values[etype->index] : 0;
        const auto size = datatype_size(host->text(host, static_cast<uint32_t>(id), nullptr));
        o.unit = size && *size < uint64_t{1} << 40 ? static_cast<int64_t>(*size) : 1;
      } else if (moves && at != nullptr && at->slot == FEIGN_SLOT_VALUE &&
                 at->index < c.values.size() && c.values[at->index] != FEIGN_UNKNOWN) {
        int64_t where = 0;
        if (!__builtin_mul_overflow(static_cast<int64_t>(c.values[at->index]), o.unit, &where) &&
            !__builtin_add_overflow(where, o.view, &where) && where >= 0)
          a->offset = static_cast<uint64_t>(where);
      }
      if (op.kind == FEIGN_KIND_CLOSE) {
        a->marks |= FEIGN_LAST;
        s.files->erase(c.fid);
      }
    }

    for (uint32_t i = 0; i < op.arg_count; ++i) {
      const feign_arg_info& arg = op.args[i];
      if (arg.type == FEIGN_ARG_STRING && arg.slot == FEIGN_SLOT_VALUE &&
          arg.index < c.values.size() && c.values[arg.index] == FEIGN_UNKNOWN)
        c.values[arg.index] = 0;
    }
    trim(op, c.values);
    if (!c.values.empty())
      if (const feign_status status =
              host->set_values(host, a, c.values.data(), static_cast<uint32_t>(c.values.size()));
          status < 0)
        return status;
    if (const feign_status status = depend(s, c, a); status < 0) return status;
    if (const feign_status status = out->emit(out, a); status < 0) return status;
    s.last_id = a->id;
    return FEIGN_OK;
  }

  feign_status depend(Source& s, const Call& c, feign_activity* a) {
    for (; s.settled < s.waited_for.size() && s.waited_for[s.settled]->time < c.end; ++s.settled) {
      s.waited_for[s.settled]->id = s.last_id;
      s.waited_for[s.settled]->settled = true;
    }
    for (; s.waited < s.waits.size() && s.waits[s.waited]->time <= c.start; ++s.waited) {
      const Dependence& d = *s.waits[s.waited];
      const Source& parent = *sources[d.parent];
      const uint64_t id = d.settled ? d.id : parent.last_id;
      if (id == 0) continue;
      if (const feign_status status = host->depend(host, a, parent.stream, id, "relation");
          status < 0)
        return status;
    }
    return FEIGN_OK;
  }

  // Without what is not known at the end.
  static void trim(const feign_op_info& op, std::vector<uint64_t>& values) {
    const auto is_text = [&](size_t index) {
      for (uint32_t i = 0; i < op.arg_count; ++i)
        if (op.args[i].slot == FEIGN_SLOT_VALUE && op.args[i].index == index)
          return op.args[i].type == FEIGN_ARG_STRING;
      return false;
    };
    while (!values.empty() &&
           (values.back() == FEIGN_UNKNOWN || (values.back() == 0 && is_text(values.size() - 1))))
      values.pop_back();
  }

  // ---- all together
  // ------------------------------------------------------------------------------

  bool later(size_t a, size_t b) const {
    const int64_t x = std::max(sources[a]->next()->start, sources[a]->last_start);
    const int64_t y = std::max(sources[b]->next()->start, sources[b]->last_start);
    return x != y ? x > y : a > b;
  }
  void push(size_t source) {
    heap.push_back(source);
    std::push_heap(heap.begin(), heap.end(), [this](size_t a, size_t b) { return later(a, b); });
  }

  // After the last call: what was in the trace and is not in the activities.
  void notes() {
    for (const auto& [name, tag] : tags)
      for (const Attribute& a : tag.attributes)
        if (a.dropped != 0)
          note(std::to_string(a.dropped) + " of " + name + ": " + a.name + " is not kept");
    if (no_data_columns != 0)
      note("of " + std::to_string(no_data_columns) +
           " further <Data>, offset and size are kept alone");
    if (untrusted != 0)
      note("File_iread_at: " + std::to_string(untrusted) +
           " attributes are not used: the tracer writes chance numbers there");
    if (before_begin != 0)
      note(std::to_string(before_begin) +
           " calls began before the first of the trace: taken for 0");
  }
  void note(const std::string& text) { host->log(host, FEIGN_LOG_INFO, text.c_str()); }
};

feign_status fail(const feign_host* host, const Error& error) {
  return host->fail(host, error.code(), error.text().c_str());
}

Result<bool> looks_like_project(const std::string& path) {
  auto input = Input::open(path);
  if (!input) return std::move(input.error());
  Xml xml(std::move(*input));
  auto token = xml.next();
  if (!token) return std::move(token.error());
  if (*token != Xml::Token::kOpen || (xml.name() != "Application" && xml.name() != "Program"))
    return xml.error("want <Application …>, a project, or <Program …>, a trace");
  return xml.name() == "Application";
}

bool is_statistics(const std::string& path) {
  return path.ends_with(".stat") || path.ends_with(".stat.gz");
}

Result<void> Provider::open_all() {
  const Options& o = options;
  auto* tables =
      const_cast<Tables*>(static_cast<const Tables*>(host->extension(host, "feign.tables/1")));
  std::vector<Node> nodes;
  std::vector<std::string> statistics;
  bool have_project = false;
  for (const char* const* f = o.file; *f != nullptr; ++f) {
    if (is_statistics(*f)) {
      statistics.push_back(*f);
      continue;
    }
    auto is_project = looks_like_project(*f);
    if (!is_project) return std::move(is_project.error());
    if (!*is_project) {
      auto node = lone_trace(*f);
      if (!node) return std::move(node.error());
      nodes.push_back(std::move(*node));
      continue;
    }
    if (have_project)
      return Error(FEIGN_ERR_ARGUMENT, std::string(*f) + ": a second project: want one");
    have_project = true;
    auto read = read_project(*f, keep_going);
    if (!read) return std::move(read.error());
    project = std::move(*read);
    for (const Node& n : project.nodes)
      if (!n.trace.empty()) nodes.push_back(n);
    for (const std::string& s : project.statistics) statistics.push_back(s);
    for (const std::string& not_read : project.not_read)
      host->log(host, FEIGN_LOG_WARN,
                (not_read + ": the topology does not have it; it is not read").c_str());
  }
  if (!have_project)
    for (const Node& n : nodes)
      if (!n.info.empty())
        if (auto read = read_info(n, project); !read) return read;
  for (const auto& [name, size] : project.initial_size) sizes[named(name).second] = size;

  // Streams in order of ranks, whatever the order of the topology.
  std::stable_sort(nodes.begin(), nodes.end(), [](const Node& a, const Node& b) {
    return std::pair(a.rank, a.thread) < std::pair(b.rank, b.thread);
  });
  for (const Node& n : nodes) {
    auto source = std::make_unique<Source>();
    source->node = n;
    auto input = Input::open(n.trace);
    if (!input) return std::move(input.error());
    source->xml = std::make_unique<Xml>(std::move(*input));
    source->number =
        static_cast<uint32_t>(tables != nullptr ? tables->sources.size() : sources.size());
    if (tables != nullptr) tables->sources.push_back(n.trace);
    feign_stream_info info{};
    info.struct_size = sizeof info;
    info.host = intern(n.host);
    info.rank = n.rank;
    info.process = -1;
    info.thread = n.thread;
    source->stream = host->stream(host, &info);
    if (source->stream == 0) return Error(FEIGN_ERR_NOMEM, "out of memory");
    source->files = &files[{n.host, n.rank >= 0 ? n.rank : -int64_t{source->stream}}];
    sources.push_back(std::move(source));
  }
  auto relations = read_relations(nodes);
  if (!relations) return std::move(relations.error());
  dependences = std::move(*relations);
  for (Dependence& d : dependences) {
    sources[d.parent]->waited_for.push_back(&d);
    sources[d.child]->waits.push_back(&d);
  }
  int64_t first = INT64_MAX;
  for (size_t i = 0; i < sources.size(); ++i) {
    Source& s = *sources[i];
    if (auto begun = begin(s); !begun) return begun;
    if (auto filled = fill(s); !filled) return filled;
    if (s.next() == nullptr) continue;
    first = std::min(first, s.next()->start);
    push(i);
  }
  if (first != INT64_MAX && first >= kEpoch_ns) base = first;
  if (o.statistics)
    for (const std::string& s : statistics)
      if (auto read = read_statistics(s, tables); !read) return read;
  return {};
}

feign_status Provider::start() {
  if (options.file[0] == nullptr)
    return host->fail(host, FEIGN_ERR_ARGUMENT, "file: want PROJECT.proj, or traces");
  if (!cwd.empty() && cwd[0] != '/')
    return host->fail(host, FEIGN_ERR_ARGUMENT, ("cwd=" + cwd + ": want an absolute path").c_str());
  auto opened = open_all();
  return opened ? FEIGN_OK : fail(host, opened.error());
}

feign_status Provider::next(size_t want, feign_sink* out) {
  for (size_t i = 0; i < want; ++i) {
    if (heap.empty()) {
      notes();
      return FEIGN_END;
    }
    std::pop_heap(heap.begin(), heap.end(), [&](size_t a, size_t b) { return later(a, b); });
    const size_t at = heap.back();
    heap.pop_back();
    Source& s = *sources[at];
    Call& c = s.queue[s.at];
    s.last_start = std::max(s.last_start, c.start);
    if (const feign_status status = emit(s, c, out); status < 0) return status;
    ++s.at;
    if (s.next() == nullptr)
      if (auto filled = fill(s); !filled) return fail(host, filled.error());
    if (s.next() != nullptr) push(at);
  }
  return FEIGN_OK;
}

int probe(const char* path, const void* head, size_t size) noexcept {
  std::string_view text(static_cast<const char*>(head), size);
  // Statistics: some digits, a newline, XML.
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  if (digits > 0 && digits < 7 && text.substr(digits).starts_with("\n<"))
    return std::string_view(path).find(".stat") != std::string_view::npos ? 90 : 40;
  while (true) {
    const size_t begin = text.find_first_not_of(" \t\r\n");
    if (begin == std::string_view::npos) return 0;
    text.remove_prefix(begin);
    const bool comment = text.starts_with("<!--");
    if (!comment && !text.starts_with("<?")) break;
    const size_t end = text.find(comment ? "-->" : "?>");
    if (end == std::string_view::npos) return 0;
    text.remove_prefix(end + (comment ? 3 : 2));
  }
  for (const std::string_view tag : {"<Application", "<Program"})
    if (text.starts_with(tag) && text.size() > tag.size() &&
        strchr(" \t\r\n>/", text[tag.size()]) != nullptr)
      return 90;
  return 0;
}

constexpr feign_provider kApi = feign::provider<Provider, Options>(probe);

}  // namespace

extern constexpr feign_component kProvider = feign::component<Options>(
    kApi, "hdtrace", "Reads HDTrace: MPI and MPI-IO calls of a project's traces.", kOptions);

}  // namespace feign::hdtrace
