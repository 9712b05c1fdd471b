// SPDX-License-Identifier: MIT
// Writer hdtrace: PROJECT.proj, and a trace a stream beside it (docs/hdtrace.md says what HDTrace
// cannot express; it is counted, and said at the end).
//
// HDTrace has the calls inside another before that one. So a call is held until the next one that
// does not lie in it.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <new>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/output.h"
#include "base/xml.h"
#include "feign.hpp"
#include "hdtrace/names.h"
#include "hdtrace/plugin.h"
#include "hdtrace/project.h"
#include "layers/mpi_does.h"
#include "layers/mpiio_ops.h"

namespace feign::hdtrace {
namespace {

struct WriterOptions {
  const char* file;
};
constexpr feign_option kWriterOptions[] = {
    {"file", FEIGN_OPT_TEXT, offsetof(WriterOptions, file), nullptr, nullptr, 0, 0,
     "PROJECT.proj to write; the traces go beside it, as PROJECT_HOST_RANK_THREAD.trc."},
};

// The ranks that a communicator's or the like text names: "3,0-1". Nothing if it names none, or too
// many to be listed.
std::vector<int64_t> ranks_of(std::string_view text) {
  constexpr size_t kMost = 1'000'000;
  std::vector<int64_t> out;
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    const std::string_view part = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t dash = part.find('-', 1);
    const auto first = parse_rank(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_rank(part.substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first ||
        static_cast<uint64_t>(*last - *first) >= kMost - std::min(out.size(), kMost))
      return {};
    for (int64_t r = *first; r <= *last; ++r) out.push_back(r);
  }
  return out;
}

// A type's text taken apart: COMBINER(integers;addresses;types).
struct TypeText {
  std::string combiner;
  std::vector<std::string> integers, addresses, types;
};
bool take_apart(std::string_view text, TypeText& out) {
  const size_t open = text.find('(');
  if (open == std::string_view::npos || text.back() != ')') return false;
  out.combiner = text.substr(0, open);
  std::vector<std::string>* lists[] = {&out.integers, &out.addresses, &out.types};
  size_t list = 0, begin = open + 1, deep = 0;
  for (size_t i = begin; i < text.size(); ++i) {
    const char c = text[i];
    const bool end = i + 1 == text.size();
    if (deep == 0 && (c == ',' || c == ';' || end)) {
      if (i > begin) lists[list]->emplace_back(text.substr(begin, i - begin));
      if (c == ';' && ++list > 2) return false;
      begin = i + 1;
    }
    if (c == '(') ++deep;
    if (c == ')' && !end && deep-- == 0) return false;
  }
  return list == 2 && deep == 0;
}

// One of the streams, as a file.
struct Out {
  std::string name;
  OutputFile file;
  FILE* to = nullptr;
  std::string host;
  int64_t rank = 0, thread = 0;
  struct Held {
    uint32_t depth;
    uint64_t end;
    std::string self, inside;
  };
  std::vector<Held> held;  // calls in each other, the outermost first
  std::set<uint32_t> types;
  ~Out() {
    if (to != nullptr) fclose(to);
  }
};

struct Writer {
  const feign_host* host;
  std::string name, stem, project;
  OutputFile file;                                                 // the project
  std::vector<std::unique_ptr<Out>> outs;                          // by stream
  std::set<std::string> used;                                      // names of files
  std::map<std::string, std::map<std::string, uint64_t>> foreign;  // calls by layer and op
  std::map<std::string, uint64_t> lost;                            // by what it is

  struct Communicator {
    uint32_t id;
    std::string text;
    std::vector<int64_t> members;
    std::set<int64_t> others;  // that use it, if the members are not known
  };
  std::map<uint32_t, Communicator> communicators;  // by string id
  std::map<uint32_t, uint32_t> types;              // string id -> tid
  std::vector<std::string> type_texts;             // by tid
  std::map<std::string, uint32_t, std::less<>> type_ids;
  std::vector<std::pair<std::string, uint64_t>> files;  // name, size at first
  std::map<uint32_t, size_t> file_of_path;
  std::map<uint32_t, std::pair<int64_t, int64_t>> views;  // by handle: where it starts, unit
  std::vector<std::vector<const char*>> attribute_names;  // by op
  std::string attributes, children;

  std::string_view text(uint64_t id) const {
    size_t length = 0;
    const char* t = host->text(host, static_cast<uint32_t>(id), &length);
    return {t, length};
  }

  void add(std::string_view attribute, std::string_view value) {
    attributes += ' ';
    attributes += attribute;
    attributes += "='";
    attributes += xml_escaped(value);
    attributes += '\'';
  }
  void add(std::string_view attribute, int64_t value) {
    attributes += ' ';
    attributes += attribute;
    attributes += "='";
    attributes += std::to_string(value);
    attributes += '\'';
  }

  // What its arguments are written as, in their order.
  const std::vector<const char*>& names_of(const feign_op_info& op) {
    if (op.id >= attribute_names.size()) attribute_names.resize(op.id + size_t{1});
    std::vector<const char*>& names = attribute_names[op.id];
    if (names.empty())
      for (uint32_t i = 0; i < op.arg_count; ++i) names.push_back(attribute_named(op, op.args[i]));
    return names;
  }

  // ---- what is told in the project --------------------------------------------------------------

  uint32_t communicator(uint64_t id, const Out& out) {
    auto [at, is_new] = communicators.try_emplace(static_cast<uint32_t>(id));
    Communicator& c = at->second;
    if (is_new) {
      c.id = static_cast<uint32_t>(communicators.size() - 1);
      c.text = text(id);
      const size_t open = c.text.find('{');
      if (open != std::string::npos && c.text.back() == '}')
        c.members = ranks_of(std::string_view(c.text).substr(open + 1, c.text.size() - open - 2));
    }
    if (c.members.empty()) {
      c.others.insert(out.rank);
    } else if (std::find(c.members.begin(), c.members.end(), out.rank) == c.members.end()) {
      ++lost["communicators that the caller is not in"];
    }
    return c.id;
  }

  uint32_t type(std::string_view type_text) {
    const auto known = type_ids.find(type_text);
    if (known != type_ids.end()) return known->second;
    const auto id = static_cast<uint32_t>(type_texts.size());
    type_ids.emplace(type_text, id);
    type_texts.emplace_back(type_text);
    return id;
  }
  uint32_t datatype(uint64_t id, Out& out) {
    auto [at, is_new] = types.try_emplace(static_cast<uint32_t>(id));
    if (is_new) at->second = type(text(id));
    out.types.insert(at->second);
    return at->second;
  }

  // ---- activities -> states
  // ----------------------------------------------------------------------

  static std::string time(uint64_t ns) {
    char out[40];
    if (ns % 1000 == 0)
      snprintf(out, sizeof out, "%" PRIu64 ".%06" PRIu64, ns / 1000000000, ns / 1000 % 1000000);
    else
      snprintf(out, sizeof out, "%" PRIu64 ".%09" PRIu64, ns / 1000000000, ns % 1000000000);
    return out;
  }

  static bool is(const feign_arg_info& arg, const char* what) {
    return strstr(arg.name, what) != nullptr;
  }

  void info(std::string_view list) {
    const auto decoded = [](std::string_view text) {
      std::string out;
      for (size_t i = 0; i < text.size(); ++i) {
        if (text.substr(i, 3) == "%25" || text.substr(i, 3) == "%3D" ||
            text.substr(i, 3) == "%3B") {
          out += text[i + 1] == '2' ? '%' : text[i + 2] == 'D' ? '=' : ';';
          i += 2;
        } else {
          out += text[i];
        }
      }
      return out;
    };
    while (!list.empty()) {
      const size_t end = std::min(list.find(';'), list.size());
      const std::string_view one = list.substr(0, end);
      list.remove_prefix(std::min(end + 1, list.size()));
      const size_t equals = one.find('=');
      children += "<Info";
      if (equals != 0) children += " key='" + xml_escaped(decoded(one.substr(0, equals))) + "'";
      if (equals != std::string_view::npos)
        children += " value='" + xml_escaped(decoded(one.substr(equals + 1))) + "'";
      children += "/>\n";
    }
  }

  // The counts of a collective call with one for each rank.
  void counts(const feign_activity& a, const feign_arg_info& arg, bool sends, uint64_t type_id,
              Out& out) {
    const std::string_view type_text = text(type_id);
    const uint64_t unit = type_text.empty() ? 0 : datatype_size(type_text).value_or(0);
    uint64_t sum = 0;
    for (uint32_t i = arg.index; i < a.value_count; ++i)
      if (a.values[i] != FEIGN_UNKNOWN) sum += a.values[i] * unit;
    for (uint32_t i = arg.index; i < a.value_count; ++i) {
      const bool known = a.values[i] != FEIGN_UNKNOWN;
      // Where sizes do not follow from counts, their sum is the first one's.
      const uint64_t size = sum == a.length  ? (known ? a.values[i] * unit : 0)
                            : i == arg.index ? a.length
                                             : 0;
      children += sends ? "<Send" : "<Recv";
      children +=
          " rank='" + std::to_string(i - arg.index) + "' size='" + std::to_string(size) + "'";
      if (known) children += " count='" + std::to_string(static_cast<int64_t>(a.values[i])) + "'";
      if (type_id != 0) children += " tid='" + std::to_string(datatype(type_id, out)) + "'";
      children += "/>\n";
    }
  }

  std::string file_name(const feign_activity& a, const feign_op_info& op) const {
    const feign_arg_info* system = argument_of(op, "file_system");
    std::string file(system != nullptr && system->index < a.value_count
                         ? text(a.values[system->index])
                         : std::string_view());
    return file += text(a.path);
  }

  void file_opened(const feign_activity& a, const std::string& file) {
    bool creates = false;
    const auto [at, is_new] = file_of_path.try_emplace(a.path, files.size());
    if (is_new) {
      files.emplace_back(file, a.result >= 0 ? a.length : 0);
      creates = (a.flags & 1) != 0 && a.length == 0 && a.result >= 0;
    } else if (a.length != 0) {
      ++lost["sizes of files at later opens"];
    }
    if (creates != ((a.marks & FEIGN_CREATES) != 0)) ++lost["marks of who made a file"];
  }

  void call(const feign_activity& a, const feign_op_info& op, Out& out) {
    attributes.clear();
    children.clear();
    const std::vector<const char*>& names = names_of(op);
    const bool moves = op.kind == FEIGN_KIND_READ || op.kind == FEIGN_KIND_WRITE;
    const bool seeks = argument_of(op, "whence") != nullptr;
    const bool opens = op.id == FEIGN_MPIIO_FILE_OPEN;
    const Does does = mpi_does(op.id);
    const bool waits = does == Does::kEnd || does == Does::kEndSome;
    const auto value = [&](const feign_arg_info& arg) {
      return arg.index < a.value_count ? a.values[arg.index] : FEIGN_UNKNOWN;
    };
    const feign_arg_info* list = nullptr;
    for (uint32_t i = 0; i < op.arg_count; ++i)
      if (op.args[i].type == FEIGN_ARG_LIST && op.args[i].index < a.value_count) list = &op.args[i];
    const bool pieces = list != nullptr && strcmp(list->name, "pieces") == 0;
    const bool sends = list != nullptr && strcmp(list->name, "sendcounts") == 0;
    const bool receives = list != nullptr && strcmp(list->name, "recvcounts") == 0;
    const feign_arg_info* list_type = nullptr;
    if (sends || receives) {
      list_type = argument_of(op, sends ? "sendtype" : "recvtype");
      if (list_type == nullptr) list_type = argument_of(op, "datatype");
    }

    if (const feign_arg_info* site = argument_of(op, "site"))
      if (const uint64_t id = value(*site); id != FEIGN_UNKNOWN && id != 0) {
        const std::string_view where = text(id);
        const size_t colon = std::min(where.rfind(':'), where.size());
        add("cFile", where.substr(0, colon));
        add("cLine", where.substr(std::min(colon + 1, where.size())));
      }
    if (argument_of(op, "filename") != nullptr && a.path != 0) {
      const std::string file = file_name(a, op);
      add("name", file);
      if (opens) file_opened(a, file);
    }
    if (a.handle != 0) add("fid", a.handle);

    for (uint32_t i = 0; i < op.arg_count; ++i) {
      const feign_arg_info& arg = op.args[i];
      const char* attribute = names[i];
      switch (arg.slot) {
        case FEIGN_SLOT_OFFSET:
          if (a.offset != FEIGN_NO_OFFSET) add(attribute, static_cast<int64_t>(a.offset));
          break;
        case FEIGN_SLOT_LENGTH:
          if (opens || pieces || sends || receives) break;
          if (a.length != 0 || moves || argument_of(op, "dest") != nullptr)
            add(attribute, static_cast<int64_t>(a.length));
          break;
        case FEIGN_SLOT_FLAGS: {
          if (!seeks) {
            add(attribute, a.flags);
            break;
          }
          std::string_view name;
          for (uint32_t k = 0; k < arg.name_count; ++k)
            if (arg.names[k].value == a.flags) name = arg.names[k].name;
          if (name.empty()) {
            add(attribute, a.flags);
          } else {  // MPI_SEEK_SET is "Set"
            std::string word(name.substr(name.rfind('_') + 1));
            for (size_t k = 1; k < word.size(); ++k)
              word[k] = static_cast<char>(word[k] - 'A' + 'a');
            add(attribute, word);
          }
          break;
        }
        case FEIGN_SLOT_VALUE: {
          const uint64_t v = value(arg);
          if (&arg == list || v == FEIGN_UNKNOWN || arg.type == FEIGN_ARG_LIST) break;
          if (arg.type != FEIGN_ARG_STRING) {
            if (waits && is(arg, "request"))
              children += "<For rid='" + std::to_string(static_cast<int64_t>(v)) + "'/>\n";
            else
              add(attribute, static_cast<int64_t>(v));
            break;
          }
          if (v == 0 || &arg == list_type || strcmp(arg.name, "site") == 0 ||
              strcmp(arg.name, "file_system") == 0)
            break;
          if (is(arg, "comm"))
            add(attribute, communicator(v, out));
          else if (is(arg, "type"))
            add(attribute, datatype(v, out));
          else if (strcmp(arg.name, "info") == 0)
            info(text(v));
          else
            add(attribute, text(v));
          break;
        }
        default:
          break;
      }
    }
    if (moves && argument_of(op, "offset") == nullptr && a.offset != FEIGN_NO_OFFSET && !pieces)
      add("offset", static_cast<int64_t>(a.offset));
    if (pieces)
      for (uint32_t i = list->index; i + 1 < a.value_count; i += 2)
        children += "<Data offset='" + std::to_string(static_cast<int64_t>(a.values[i])) +
                    "' size='" + std::to_string(a.values[i + 1]) + "'/>\n";
    else if (sends || receives)
      counts(a, *list, sends,
             list_type != nullptr && value(*list_type) != FEIGN_UNKNOWN ? value(*list_type) : 0,
             out);
    else if (list != nullptr)
      for (uint32_t i = list->index; i < a.value_count; ++i)
        children += "<For rid='" + std::to_string(static_cast<int64_t>(a.values[i])) + "'/>\n";

    if (a.marks & FEIGN_NO_RESULT) {
      if (!seeks) add("result", "?");
    } else if (seeks) {
      add("offset", a.result);
    } else if (a.result != (moves ? static_cast<int64_t>(a.length) : 0)) {
      add("result", a.result);
    }

    // What would be read is not what is here.
    if (op.id == FEIGN_MPIIO_FILE_SET_VIEW) {
      const feign_arg_info* etype = argument_of(op, "etype");
      const uint64_t id = value(*etype);
      const auto unit = id != FEIGN_UNKNOWN ? datatype_size(text(id)) : std::nullopt;
      views[a.handle] = {static_cast<int64_t>(a.offset), unit ? static_cast<int64_t>(*unit) : 1};
    }
    if (op.kind == FEIGN_KIND_CLOSE) views.erase(a.handle);
    if (const feign_arg_info* at = argument_of(op, "offset");
        moves && at != nullptr && at->slot == FEIGN_SLOT_VALUE && value(*at) != FEIGN_UNKNOWN) {
      const auto view = views.find(a.handle);
      const auto [start, unit] =
          view != views.end() ? view->second : std::pair<int64_t, int64_t>{0, 1};
      int64_t where = 0;
      if (__builtin_mul_overflow(static_cast<int64_t>(value(*at)), unit, &where) ||
          __builtin_add_overflow(where, start, &where) || where != static_cast<int64_t>(a.offset))
        ++lost["offsets that do not follow from the view"];
    }
  }

  bool close_call(Out& out) {
    Out::Held top = std::move(out.held.back());
    out.held.pop_back();
    const std::string indent(out.held.size() * 2, ' ');
    std::string whole;
    if (!top.inside.empty()) whole = indent + "<Nested>\n" + top.inside + indent + "</Nested>\n";
    whole += top.self;
    if (!out.held.empty()) {
      out.held.back().inside += whole;
      return true;
    }
    return fwrite(whole.data(), 1, whole.size(), out.to) == whole.size();
  }

  Writer(const feign_host* h, const WriterOptions& o) : host(h), name(o.file) {}

  feign_status start() {
    stem = name.ends_with(".proj") ? name.substr(0, name.size() - 5) : name;
    project = stem.substr(stem.rfind('/') + 1);
    if (project.empty() || project.find('_') != std::string::npos)
      return host->fail(host, FEIGN_ERR_ARGUMENT,
                        ("file=" + name +
                         ": want a name without \"_\", which ends the project's "
                         "name in the names of its traces")
                            .c_str());
    return file.open(name) ? FEIGN_OK : io_error("open", name);
  }

  feign_status finish() {
    // A project of nothing would pass for a trace of a program that did nothing.
    if (outs.empty() && !foreign.empty())
      return host->fail(host, FEIGN_ERR_UNSUPPORTED,
                        (name + ": HDTrace has calls of MPI and MPI-IO alone, of which there are " +
                         "none: nothing is written")
                            .c_str());
    for (auto& out : outs) {
      if (!out) continue;
      while (!out->held.empty())
        if (!close_call(*out)) return io_error("write", out->name);
      const bool good = fputs("</Program>\n", out->to) >= 0;
      if (fclose(std::exchange(out->to, nullptr)) != 0 || !good)
        return io_error("write", out->name);
    }
    const std::string text = project_text();
    if (!write_all(file.fd(), text.data(), text.size())) return io_error("write", name);
    // The project last: it names the others.
    for (auto& out : outs)
      if (out && !out->file.finish()) return io_error("write", out->name);
    if (!file.finish()) return io_error("write", name);
    say_what_is_lost();
    return FEIGN_OK;
  }

  feign_status write(const feign_activity& a) {
    const feign_op_info* op = host->op_info(host, a.op);
    if (op == nullptr || (strcmp(op->layer, "mpi") != 0 && strcmp(op->layer, "mpiio") != 0)) {
      ++foreign[op != nullptr ? op->layer : "?"][op != nullptr ? op->name : "?"];
      return FEIGN_OK;
    }
    if (a.stream >= outs.size()) outs.resize(a.stream + size_t{1});
    if (!outs[a.stream])
      if (const feign_status s = begin(a.stream); s < 0) return s;
    Out& out = *outs[a.stream];
    if (a.marks & FEIGN_DEPENDS) ++lost["dependencies"];
    if (a.marks & FEIGN_INJECTED) ++lost["marks of injected calls"];
    if (a.sync_ns != 0) ++lost["pauses known to be waiting"];
    uint32_t depth = FEIGN_DEPTH(a.marks);
    while (!out.held.empty() &&
           (out.held.back().depth >= depth || a.start_ns > out.held.back().end))
      if (!close_call(out)) return io_error("write", out.name);
    if (depth != 0 && (out.held.empty() || out.held.back().depth + 1 != depth))
      ++lost["calls whose outer call is not there"];
    call(a, *op, out);
    const std::string indent(out.held.size() * 2, ' ');
    std::string self = indent + "<" + (op->name + 4) + attributes + "  time='" + time(a.start_ns) +
                       "' end='" + time(a.start_ns + a.duration_ns) + "'";
    if (children.empty()) {
      self += "/>\n";
    } else {
      self += ">\n";
      for (size_t at = 0; at < children.size();) {
        const size_t end = children.find('\n', at) + 1;
        self += indent + "  " + children.substr(at, end - at);
        at = end;
      }
      self += indent + "</" + (op->name + 4) + ">\n";
    }
    out.held.push_back({depth, a.start_ns + a.duration_ns, std::move(self), {}});
    return FEIGN_OK;
  }

  // ---- files
  // -------------------------------------------------------------------------------------

  feign_status io_error(const char* what, const std::string& file) const {
    const int e = errno;
    return host->fail(host, FEIGN_ERR_IO,
                      (std::string(what) + " " + file + ": " + strerror(e)).c_str());
  }

  static std::string label(std::string_view text) {
    std::string out;
    for (const char c : text)
      if (isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-') out += c;
    return out;
  }

  feign_status begin(uint32_t stream) {
    feign_stream_info info{};
    if (host->stream_info(host, stream, &info) < 0) info.rank = -1;
    auto out = std::make_unique<Out>();
    out->host = text(info.host);
    if (out->host.empty()) {
      out->host = "host";
      ++lost["names of hosts, which are not known: \"host\""];
    }
    out->rank = info.rank;
    if (info.rank < 0) {
      out->rank = stream - 1;
      ++lost["ranks, which are not known: the number of the stream"];
    }
    out->thread = std::max<int64_t>(info.thread, 0);
    if (info.process >= 0) ++lost["process ids"];
    if (info.parent != 0) ++lost["parents of streams"];
    while (true) {
      out->name = stem + "_" + label(out->host) + "_" + std::to_string(out->rank) + "_" +
                  std::to_string(out->thread) + ".trc";
      if (used.insert(out->name).second) break;
      ++out->thread;
      ++lost["numbers of threads that came back"];
    }
    if (!out->file.open(out->name) || (out->to = fdopen(out->file.fd(), "w")) == nullptr)
      return io_error("open", out->name);
    (void)out->file.keep_fd();
    if (fputs("<Program timeAdjustment='0' writer='feign " FEIGN_VERSION "'>\n", out->to) < 0)
      return io_error("write", out->name);
    outs[stream] = std::move(out);
    return FEIGN_OK;
  }

  // A datatype as an element of the project. One that has no element of its own is named by its
  // text.
  std::string type_element(uint32_t id) {
    const std::string& whole = type_texts[id];
    const auto element = [&](std::string_view tag, const std::string& more,
                             const std::string& rows) {
      std::string out = "   <" + std::string(tag) + " id=\"" + std::to_string(id) + "\"" + more;
      return out + (rows.empty() ? "/>\n" : ">\n" + rows + "   </" + std::string(tag) + ">\n");
    };
    const std::string by_name = element("NAMED", " name=\"" + xml_escaped(whole) + "\"", "");
    TypeText t;
    if (!take_apart(whole, t)) return by_name;
    for (const auto* list : {&t.integers, &t.addresses})
      for (const std::string& n : *list)
        if (n.find_first_of("'\"<>&") != std::string::npos) return by_name;
    std::string tag = t.combiner;
    for (char& c : tag) c = static_cast<char>(toupper(static_cast<unsigned char>(c)));
    const auto attribute = [](const char* n, const std::string& v) {
      return " " + std::string(n) + "=\"" + v + "\"";
    };
    const auto types_are = [&](size_t n) { return t.types.size() == n; };
    const std::string old =
        t.types.empty() ? "" : attribute("oldType", std::to_string(type(t.types[0])));
    const std::string& c = t.combiner;
    const size_t n = t.integers.size(), m = t.addresses.size();
    // Columns of numbers as rows of attributes.
    const auto rows = [&](size_t count, const char* row, const std::vector<const char*>& names,
                          const std::vector<const std::string*>& columns) {
      std::string out;
      for (size_t i = 0; i < count; ++i) {
        out += "    <" + std::string(row);
        for (size_t k = 0; k < names.size(); ++k) out += attribute(names[k], columns[k][i]);
        out += "/>\n";
      }
      return out;
    };
    const auto count = n != 0 ? parse_number(t.integers[0]) : std::nullopt;
    const bool counted = count && *count >= 0 && *count <= 1'000'000;
    const size_t rows_of = counted ? static_cast<size_t>(*count) : 0;
    const std::string* ints = t.integers.data();
    const std::string* adds = t.addresses.data();
    if (c == "contiguous" && n == 1 && m == 0 && types_are(1))
      return element(tag, attribute("count", ints[0]) + old, "");
    if (c == "vector" && n == 3 && m == 0 && types_are(1))
      return element(tag,
                     attribute("count", ints[0]) + attribute("blocklength", ints[1]) +
                         attribute("stride", ints[2]) + old,
                     "");
    if (c == "hvector" && n == 2 && m == 1 && types_are(1))
      return element(tag,
                     attribute("count", ints[0]) + attribute("blocklength", ints[1]) +
                         attribute("stride", adds[0]) + old,
                     "");
    if (c == "indexed" && counted && n == 1 + 2 * rows_of && m == 0 && types_are(1))
      return element(tag, attribute("count", ints[0]) + old,
                     rows(rows_of, "Block", {"len", "index"}, {ints + 1, ints + 1 + rows_of}));
    if (c == "hindexed" && counted && n == 1 + rows_of && m == rows_of && types_are(1))
      return element(tag, attribute("count", ints[0]) + old,
                     rows(rows_of, "Block", {"len", "index"}, {ints + 1, adds}));
    if (c == "indexed_block" && counted && n == 2 + rows_of && m == 0 && types_are(1))
      return element(tag, attribute("count", ints[0]) + attribute("blockLength", ints[1]) + old,
                     rows(rows_of, "Block", {"displacement"}, {ints + 2}));
    if (c == "hindexed_block" && counted && n == 2 && m == rows_of && types_are(1))
      return element(tag, attribute("count", ints[0]) + attribute("blockLength", ints[1]) + old,
                     rows(rows_of, "Block", {"displacement"}, {adds}));
    if (c == "struct" && counted && n == 1 + rows_of && m == rows_of && types_are(rows_of)) {
      std::vector<std::string> ids;
      for (const std::string& one : t.types) ids.push_back(std::to_string(type(one)));
      return element(
          tag, attribute("name", "") + attribute("count", ints[0]),
          rows(rows_of, "Type", {"id", "displacement", "blocklen"}, {ids.data(), adds, ints + 1}));
    }
    if (c == "subarray" && counted && n == 2 + 3 * rows_of && m == 0 && types_are(1))
      return element(tag, attribute("ndims", ints[0]) + attribute("order", ints[n - 1]) + old,
                     rows(rows_of, "Dimension", {"size", "subsize", "start"},
                          {ints + 1, ints + 1 + rows_of, ints + 1 + 2 * rows_of}));
    if (c == "darray" && n >= 4 && m == 0 && types_are(1)) {
      const auto dims = parse_number(ints[2]);
      if (dims && *dims >= 0 && *dims <= 1000 && n == 4 + 4 * static_cast<size_t>(*dims)) {
        const auto d = static_cast<size_t>(*dims);
        return element(tag,
                       attribute("size", ints[0]) + attribute("rank", ints[1]) +
                           attribute("dims", ints[2]) + attribute("order", ints[n - 1]) + old,
                       rows(d, "Dimension", {"gsize", "distrib", "darg", "psize"},
                            {ints + 3, ints + 3 + d, ints + 3 + 2 * d, ints + 3 + 3 * d}));
      }
    }
    if (c == "resized" && n == 0 && m == 2 && types_are(1))
      return element(tag, attribute("lowerBound", adds[0]) + attribute("extent", adds[1]) + old,
                     "");
    if (c == "dup" && n == 0 && m == 0 && types_are(1)) return element(tag, old, "");
    return by_name;
  }

  std::string project_text() {
    std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Application name=\"" +
                      xml_escaped(project) + "\">\n<Description></Description>\n <FileList>\n";
    for (const auto& [file, size] : files)
      out += "  <File name=\"" + xml_escaped(file) + "\">\n   <InitialSize>" +
             std::to_string(size) + "</InitialSize>\n  </File>\n";
    out +=
        " </FileList>\n\n <Topology>\n  <Level type=\"Hostname\">\n   <Level type=\"Rank\">\n    "
        "<Level type=\"Thread\">\n    </Level>\n   </Level>\n  </Level>\n\n";
    std::vector<std::string> hosts;
    std::map<std::string, std::map<int64_t, std::vector<const Out*>>> by_host;
    for (const auto& o : outs) {
      if (!o) continue;
      if (!by_host.contains(o->host)) hosts.push_back(o->host);
      by_host[o->host][o->rank].push_back(o.get());
    }
    for (const std::string& h : hosts) {
      out += "  <Node name=\"" + xml_escaped(h) + "\">\n";
      for (const auto& [rank, threads] : by_host[h]) {
        out += "   <Node name=\"" + std::to_string(rank) + "\">\n";
        for (const Out* o : threads)
          out += "    <Node name=\"" + std::to_string(o->thread) + "\"/>\n";
        out += "   </Node>\n";
      }
      out += "  </Node>\n";
    }
    out += " </Topology>\n\n <CommunicatorList>\n";
    std::vector<const Communicator*> in_order(communicators.size());
    std::set<std::string> names;
    for (const auto& [id, c] : communicators) in_order[c.id] = &c;
    for (const Communicator* c : in_order) {
      const std::string label = c->members.empty() ? c->text : c->text.substr(0, c->text.find('{'));
      if (!names.insert(label).second) ++lost["communicators of one name"];
      out += "  <Communicator name=\"" + xml_escaped(label) + "\">\n";
      const std::string cid = "\" cid=\"" + std::to_string(c->id) + "\"/>\n";
      for (size_t i = 0; i < c->members.size(); ++i)
        out += "   <Rank global=\"" + std::to_string(c->members[i]) + "\" local=\"" +
               std::to_string(i) + cid;
      for (const int64_t rank : c->others) out += "   <Rank global=\"" + std::to_string(rank) + cid;
      out += "  </Communicator>\n";
    }
    out += " </CommunicatorList>\n\n <Datatypes>\n";
    for (const auto& o : outs) {
      if (!o || o->types.empty()) continue;
      out += "  <Rank name=\"" + std::to_string(o->rank) + "\" thread=\"" +
             std::to_string(o->thread) + "\">\n";
      // With those that they are made of.
      std::set<uint32_t> all = o->types;
      std::vector<uint32_t> next(all.begin(), all.end());
      while (!next.empty()) {
        const uint32_t id = next.back();
        next.pop_back();
        TypeText t;
        if (!take_apart(type_texts[id], t)) continue;
        for (const std::string& one : t.types)
          if (const uint32_t inner = type(one); all.insert(inner).second) next.push_back(inner);
      }
      for (const uint32_t id : all) out += type_element(id);
      out += "  </Rank>\n";
    }
    return out + " </Datatypes>\n</Application>\n";
  }

  void say_what_is_lost() const {
    for (const auto& [layer, ops] : foreign) {
      uint64_t all = 0;
      std::string names;
      for (const auto& [op, count] : ops) {
        all += count;
        names += (names.empty() ? "" : ", ") + std::to_string(count) + " " + op;
      }
      warn(std::to_string(all) + " calls of layer " + layer + " are not written: " + names);
    }
    for (const auto& [what, count] : lost)
      warn(std::to_string(count) + " " + what + ": HDTrace has no place for that");
  }
  void warn(const std::string& text) const { host->log(host, FEIGN_LOG_WARN, text.c_str()); }
};

constexpr feign_writer kWriterApi = feign::writer<Writer, WriterOptions>(".proj");

}  // namespace

extern constexpr feign_component kWriter = feign::component<WriterOptions>(
    kWriterApi, "hdtrace",
    "Writes HDTrace: a project, and a trace of MPI and MPI-IO calls a stream.", kWriterOptions);

}  // namespace feign::hdtrace
