// SPDX-License-Identifier: MIT
// Provider siox: traces of SIOX (docs/siox-format.md).
//
// A record is written when its call has ended, so that a call inside another comes before it, and
// records of several processes come in an order of their own. Of each file so many records are kept
// back that both can be put right: a record that is inside another of the layers that are asked for
// is left out, and the others leave in the order in which they took effect.
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <deque>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/input.h"
#include "base/output.h"
#include "feign.hpp"
#include "layers/posix_ops.h"
#include "layers/stdio_ops.h"
#include "siox/plugin.h"
#include "siox/records.h"

namespace {

using feign::Effect;
using siox::ActivityId;
using siox::Process;

struct Options {
  const char* const* file;
  const char* const* layer;
  const char* ontology;
  const char* system;
  const char* association;
  const char* cwd;
  const char* print;
};
constexpr feign_option kOptions[] = {
    {"file", FEIGN_OPT_TEXTS, offsetof(Options, file), nullptr, nullptr, 0, 0,
     "Activity file, plain, .gz or .zst; several (one a process) are one trace."},
    {"layer", FEIGN_OPT_TEXTS, offsetof(Options, layer), nullptr, nullptr, 0, 0,
     "Only calls of this layer: posix, stdio, mpi …; several add up; none given: posix and stdio."},
    {"ontology", FEIGN_OPT_TEXT, offsetof(Options, ontology), "", nullptr, 0, 0,
     "File that names attributes, instead of ontology.dat beside the activity file."},
    {"system-info", FEIGN_OPT_TEXT, offsetof(Options, system), "", nullptr, 0, 0,
     "File that names calls and hosts, instead of system-info.dat beside the activity file."},
    {"association", FEIGN_OPT_TEXT, offsetof(Options, association), "", nullptr, 0, 0,
     "File that tells ranks, instead of association.dat beside the activity file, if there is "
     "one."},
    {"cwd", FEIGN_OPT_TEXT, offsetof(Options, cwd), "/", nullptr, 0, 0,
     "Working directory of the program, which this format does not tell."},
    {"print", FEIGN_OPT_TEXT, offsetof(Options, print), "", nullptr, 0, 0,
     "Also print all records to this file, as siox-trace-reader does."},
};

// Records that are kept back, over all files.
constexpr size_t kKeptBack = size_t{1} << 16, kLeastKept = 64, kMostKept = 4096;
// Calls that made a descriptor, which later ones name as their parents.
constexpr size_t kMostMade = size_t{1} << 20;
constexpr uint32_t kNoString = 0;
// Tracers recorded positions that were never set: addresses, and texts. No file is that long.
constexpr uint64_t kNoPosition = uint64_t{1} << 46;

// What an attribute says, by its name.
enum class Says : uint8_t {
  kNotRead,
  kNothing,
  kAsked,
  kMoved,
  kPosition,
  kExtent,
  kFlags,
  kAdvice,
  kName,
  kDescriptor
};
constexpr std::pair<std::string_view, Says> kSays[] = {
    {"quantity/BytesToRead", Says::kAsked}, {"quantity/BytesToWrite", Says::kAsked},
    {"quantity/BytesRead", Says::kMoved},   {"quantity/BytesWritten", Says::kMoved},
    {"file/position", Says::kPosition},     {"file/extent", Says::kExtent},
    {"hint/advise-extent", Says::kExtent},  {"hints/advise-extent", Says::kExtent},
    {"hints/openFlags", Says::kFlags},      {"hints/advise", Says::kAdvice},
    {"descriptor/filename", Says::kName},   {"descriptor/filehandle", Says::kDescriptor},
};

// What a record's attributes say.
struct Said {
  std::optional<uint64_t> asked, moved, extent, advice, first_position, last_position;
  uint64_t flags = 0;
  int descriptors = 0, names = 0;  // of which the first two are here
  int32_t fd[2] = {-1, -1};
  uint32_t name[2] = {kNoString, kNoString};
};

bool moves(uint32_t kind) { return kind == FEIGN_KIND_READ || kind == FEIGN_KIND_WRITE; }

// A call by its number in a file's names.
struct Known {
  bool read = false;
  uint32_t op = 0;
  const feign_op_info* info = nullptr;
  Effect effect = Effect::kUse;
  const char* name = "";
  const char* left_out = nullptr;  // why it is no activity
};

// The side files of one folder, and what was made of them.
struct Names {
  std::unique_ptr<siox::Names> names;
  std::deque<Known> calls;  // whose places stay
  std::vector<Says> attributes;
};

struct Stream {
  uint32_t number = 0;                             // the host's
  std::deque<std::pair<uint32_t, uint64_t>> open;  // records kept back: slot and which use of it
  uint64_t mapped = 0;  // where the next mmap() is put: addresses are not recorded
};

// A record that is kept back.
struct Held {
  uint64_t use = 0;  // counts the records that had this slot
  feign_activity a{};
  uint64_t begin = 0, end = 0;  // ns, as recorded
  ActivityId id;
  std::vector<ActivityId> parents;
  std::vector<uint64_t> values;
  const Known* call = nullptr;
  bool inside = false;      // another call
  bool descriptor = false;  // the record says which it is about; -1 is one that nothing had
};

struct Source {
  std::unique_ptr<siox::Records> records;
  Names* names = nullptr;
  uint32_t number = 0;
  bool over = false;
  // The records that are kept back, by when they took effect.
  using Due = std::tuple<uint64_t, uint64_t, uint32_t>;  // when, which record, slot
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due;
};

// A call that made a descriptor.
struct Made {
  uint32_t stream = 0;
  uint32_t path = kNoString;
  int32_t fd = -1;
  uint64_t id = 0;
};

class Provider {
 public:
  Provider(const feign_host* host, const Options& options) : host_(host), options_(options) {}
  ~Provider();
  feign_status start();
  feign_status next(size_t want, feign_sink* out);

 private:
  feign_status fail(const std::string& text) {
    return fail(feign::Error(FEIGN_ERR_ARGUMENT, text));
  }
  feign_status fail(const feign::Error& e) {
    return host_->fail(host_, e.code(), e.text().c_str());
  }
  feign_status names_of(const std::string& file, Names*& names);
  feign_status survey(const std::vector<std::string>& files);
  const Known& known(Names& names, uint32_t activity);
  Says says(Names& names, uint32_t attribute);
  Stream& stream_of(const ActivityId& id);
  feign_status fill(Source& source);
  feign_status queue(uint32_t index);
  feign_status finish();
  void keep(Source& source, const Known& call, const siox::Record& r);
  Said read(Names& names, const siox::Record& r);
  bool translate(Source& source, const Known& call, const siox::Record& r, Held& h);
  static void argument(const feign_arg_info& arg, uint32_t kind, const Said& said, Held& h);
  static bool map(Stream& stream, const Said& said, Held& h);
  static bool succeeded(const Known& call, const Said& said, feign_activity& a);
  feign_status emit(Held& h, feign_sink* out, bool& emitted);

  const feign_host* host_;
  const Options& options_;
  std::map<std::string, std::unique_ptr<Names>> folders_;
  std::vector<Source> sources_;
  // Kept back, of all sources: a thread's records may lie in several files.
  std::vector<Held> slots_;
  std::vector<uint32_t> free_;
  uint64_t uses_ = 0;
  // Which source has the next record, by when it took effect.
  using Turn = std::pair<uint64_t, uint32_t>;
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> turns_;
  bool begun_ = false;
  siox::Record record_;
  size_t kept_back_ = kMostKept;
  uint64_t origin_ = 0;
  uint32_t cwd_ = 0;
  struct Who {
    int32_t rank = -1;
    uint32_t host = 0, again = 0;
    bool listed = false;  // in association.dat
  };
  std::map<Process, Who> processes_;
  std::map<std::pair<Process, uint32_t>, Stream> streams_;
  std::pair<Process, uint32_t> last_key_{};
  Stream* last_stream_ = nullptr;
  std::unordered_map<ActivityId, Made, siox::HashId> made_;
  std::deque<ActivityId> made_order_;
  std::vector<std::string> layers_;
  std::string print_part_;
  FILE* print_ = nullptr;
  uint64_t unnamed_ = 0;  // files that the trace opens without saying which
};

Provider::~Provider() {
  if (print_ == nullptr) return;
  fclose(print_);
  unlink(print_part_.c_str());
}

// ---- names --------------------------------------------------------------------------------------

feign_status Provider::names_of(const std::string& file, Names*& names) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(file).parent_path();
  std::unique_ptr<Names>& entry = folders_[folder.string()];
  names = entry.get();
  if (names != nullptr) return FEIGN_OK;
  std::error_code ignored;
  const auto beside = [&](const char* given, std::initializer_list<const char*> usual) {
    if (*given != '\0') return std::string(given);
    for (const char* name : usual)
      for (const char* end : {"", ".gz", ".zst"})
        if (const fs::path path = folder / (std::string(name) + end); fs::exists(path, ignored))
          return path.string();
    return std::string();
  };
  auto head = feign::head_of(file, size_t{64} << 10);
  if (!head) return fail(head.error());
  std::string ontology, system;
  if (siox::form_of(*head) != siox::Form::kText) {  // which names everything itself
    ontology = beside(options_.ontology, {"ontology.dat"});
    system = beside(options_.system, {"system-info.dat", "systeminfo.dat"});
    const char* what = ontology.empty() ? "ontology.dat"
                       : system.empty() ? "system-info.dat"
                                        : nullptr;
    if (what != nullptr)
      return fail(file + ": there is no " + what +
                  " beside it, which says what its numbers mean: want it there, or as option " +
                  (ontology.empty() ? "ontology" : "system-info"));
  }
  auto read =
      siox::Names::read(ontology, system, beside(options_.association, {"association.dat"}));
  if (!read) return fail(read.error());
  entry = std::make_unique<Names>();
  entry->names = std::move(*read);
  names = entry.get();
  return FEIGN_OK;
}

const Known& Provider::known(Names& names, uint32_t activity) {
  const siox::Names::Activity* a = names.names->activity(activity);
  if (a == nullptr) {  // of any number, so that nothing is kept of it
    static const Known kUnknown = {.name = "(call)",
                                   .left_out = "has a number that system-info.dat does not name"};
    return kUnknown;
  }
  if (activity >= names.calls.size()) names.calls.resize(activity + size_t{1});
  Known& k = names.calls[activity];
  if (k.read) return k;
  k.read = true;
  k.name = a->name.c_str();
  const bool posix = a->interface == "POSIX", mpi = a->interface == "MPI";
  struct Layer {
    const char* name;
    std::span<const feign::Call> calls;
    std::span<const feign::CallAlias> aliases;
  };
  std::vector<Layer> layers;
  if (posix)
    layers = {{"posix", feign::posix_calls(), feign::posix_aliases()},
              {"stdio", feign::stdio_calls(), feign::stdio_aliases()}};
  if (mpi) layers = {{"mpi", {}, {}}, {"mpiio", {}, {}}};
  const auto wanted = [&](const Layer& layer) {
    return std::find(layers_.begin(), layers_.end(), layer.name) != layers_.end();
  };
  for (const Layer& layer : layers) {
    std::string name = a->name;
    for (const feign::CallAlias& alias : layer.aliases)
      if (name == alias.name) name = layer.calls[alias.op].name;
    k.op = host_->op(host_, layer.name, name.c_str());
    if (k.op == 0) continue;
    k.info = host_->op_info(host_, k.op);
    if (!wanted(layer)) k.left_out = "of a layer that is not asked for";
    for (const feign::Call& call : layer.calls)
      if (call.op != 0 && name == call.name) k.effect = call.effect;
    break;
  }
  if (k.op != 0) return k;
  k.left_out = "no description of this call";
  if (a->interface == "SIOX") k.left_out = "the tracer's own";
  if (a->interface == "POSIX_Network") k.left_out = "network";
  if (!posix && k.left_out[0] == 'n' && k.left_out[1] == 'o' &&
      std::none_of(layers.begin(), layers.end(), wanted))
    k.left_out = "of a layer that is not asked for";
  if (posix)
    for (const feign::LeftOutCall& call : feign::posix_left_outs())
      if (a->name == call.name) k.left_out = call.why;
  return k;
}

Says Provider::says(Names& names, uint32_t attribute) {
  if (attribute >= names.attributes.size()) {
    if (attribute >= 1u << 22) return Says::kNothing;
    names.attributes.resize(attribute + size_t{1});
  }
  Says& s = names.attributes[attribute];
  if (s != Says::kNotRead) return s;
  s = Says::kNothing;
  if (const std::string* name = names.names->attribute(attribute); name != nullptr) {
    const size_t slash = name->find('/');
    const std::string_view what =
        std::string_view(*name).substr(slash == std::string::npos ? 0 : slash + 1);
    for (const auto& [text, meaning] : kSays)
      if (what == text) s = meaning;
  }
  return s;
}

// ---- processes ----------------------------------------------------------------------------------

// Goes over all records once: when the trace begins, which processes there are, and in which order
// they called MPI_Init.
feign_status Provider::survey(const std::vector<std::string>& files) {
  std::map<Process, uint64_t> initialised;
  std::set<std::pair<Process, uint32_t>> threads;
  origin_ = UINT64_MAX;
  Process last;
  for (size_t i = 0; i < files.size(); ++i) {
    auto records = siox::Records::open(files[i], *sources_[i].names->names);
    if (!records) return fail(records.error());
    Names& names = *sources_[i].names;
    while (true) {
      auto more = (*records)->next(record_, true);
      if (!more) return fail(more.error());
      if (!*more) break;
      origin_ = std::min(origin_, record_.start);
      threads.emplace(record_.id.process, record_.id.thread);
      if (record_.id.process != last || processes_.empty()) {
        last = record_.id.process;
        Who& who = processes_[last];
        if (who.rank < 0) who.rank = names.names->rank(last);
        who.listed |= names.names->listed(last);
        if (const std::string* host = names.names->host(last.node); host != nullptr)
          who.host = host_->intern(host_, host->data(), host->size());
      }
      if (const siox::Names::Activity* a = names.names->activity(record_.activity);
          a != nullptr && a->interface == "MPI" &&
          (a->name == "MPI_Init" || a->name == "MPI_Init_thread" || a->name == "Init"))
        initialised.try_emplace(last, record_.start);
    }
  }
  if (origin_ == UINT64_MAX) origin_ = 0;
  // A process number that came back.
  const std::pair<const Process, Who>* before = nullptr;
  bool all = true;
  for (auto& one : processes_) {
    if (before != nullptr && before->first.node == one.first.node &&
        before->first.pid == one.first.pid)
      one.second.again = before->second.again + 1;
    before = &one;
    all &= one.second.rank >= 0 || one.second.listed;
  }
  // Ranks that are not told: by MPI_Init, or else by process number.
  const bool by_init = !initialised.empty();
  if (by_init)
    all = std::all_of(initialised.begin(), initialised.end(),
                      [&](const auto& p) { return processes_[p.first].rank >= 0; });
  if (!all && (by_init ? initialised.size() : processes_.size()) > 1) {
    std::vector<std::pair<uint64_t, Process>> order;
    for (auto& [process, who] : processes_) {
      who.rank = -1;
      if (!by_init)
        order.emplace_back(0, process);
      else if (initialised.contains(process))
        order.emplace_back(initialised[process], process);
    }
    std::sort(order.begin(), order.end());
    for (size_t i = 0; i < order.size(); ++i)
      processes_[order[i].second].rank = static_cast<int32_t>(i);
    host_->log(host_, FEIGN_LOG_INFO,
               by_init ? "ranks are guessed, by the order in which processes called MPI_Init"
                       : "ranks are guessed, by process numbers");
  }
  // Streams in the order of processes, whichever record comes first.
  for (const auto& [process, thread] : threads)
    (void)stream_of({.process = process, .thread = thread});
  return FEIGN_OK;
}

Stream& Provider::stream_of(const ActivityId& id) {
  const std::pair key(id.process, id.thread);
  if (last_stream_ != nullptr && key == last_key_) return *last_stream_;
  Stream& s = streams_[key];
  if (s.number == 0) {
    const Who& who = processes_[id.process];
    feign_stream_info info{};
    info.struct_size = sizeof info;
    info.host = who.host;
    info.rank = who.rank;
    info.process = id.process.pid;
    // Threads are counted in each process: the first has its number.
    info.thread =
        id.thread <= 1 ? int64_t{id.process.pid} : int64_t{id.process.pid} << 20 | id.thread;
    info.again = who.again;
    s.number = host_->stream(host_, &info);
    s.mapped = uint64_t{1} << 40;
  }
  last_key_ = key;
  last_stream_ = &s;
  return s;
}

feign_status Provider::start() {
  std::vector<std::string> files;
  for (const char* const* file = options_.file; *file != nullptr; ++file)
    for (std::string& one : feign::files_of(*file)) files.push_back(std::move(one));
  if (files.empty()) return fail("file: want an activity file");
  if (files.size() > 60000) return fail("file: more than 60,000 files");
  for (const char* const* layer = options_.layer; *layer != nullptr; ++layer) {
    if (**layer == '\0') return fail("layer=: want a layer's name, such as posix");
    layers_.emplace_back(*layer);
  }
  if (layers_.empty()) layers_ = {"posix", "stdio"};
  kept_back_ = std::clamp(kKeptBack / files.size(), kLeastKept, kMostKept);
  if (*options_.cwd != '\0' && *options_.cwd != '/')
    return fail("cwd=" + std::string(options_.cwd) + ": want an absolute path");
  cwd_ = host_->intern(host_, options_.cwd, strlen(options_.cwd));
  for (size_t i = 0; i < files.size(); ++i) {
    Source& source = sources_.emplace_back();
    source.number = static_cast<uint32_t>(i);
    if (const feign_status status = names_of(files[i], source.names); status < 0) return status;
    auto records = siox::Records::open(files[i], *source.names->names);
    if (!records) return fail(records.error());
    source.records = std::move(*records);
  }
  if (const feign_status status = survey(files); status < 0) return status;
  if (*options_.print != '\0') {
    print_ = feign::open_part_stream(options_.print, print_part_);
    if (print_ == nullptr || fputs(siox::kPrintedHead, print_) < 0)
      return host_->fail(host_, FEIGN_ERR_IO,
                         ("open " + std::string(options_.print) + ": " + strerror(errno)).c_str());
  }
  return FEIGN_OK;
}

// ---- records ------------------------------------------------------------------------------------

// Reads until enough records are kept back, or the file is over.
feign_status Provider::fill(Source& source) {
  while (!source.over && source.due.size() < kept_back_) {
    auto more = source.records->next(record_);
    if (!more) return fail(more.error());
    if (!*more) {
      source.over = true;
      break;
    }
    if (print_ != nullptr) {
      const std::string line = siox::printed(record_, *source.names->names);
      if (fwrite(line.data(), 1, line.size(), print_) != line.size())
        return host_->fail(host_, FEIGN_ERR_IO,
                           ("write " + print_part_ + ": " + strerror(errno)).c_str());
    }
    const Known& call = known(*source.names, record_.activity);
    if (call.left_out != nullptr)
      host_->left_out(host_, stream_of(record_.id).number, call.name, call.left_out,
                      record_.stop - record_.start, 0);
    else
      keep(source, call, record_);
  }
  return FEIGN_OK;
}

void Provider::keep(Source& source, const Known& call, const siox::Record& r) {
  Stream& stream = stream_of(r.id);
  const auto held = [&](const std::pair<uint32_t, uint64_t>& at) -> Held* {
    Held& h = slots_[at.first];
    return h.use == at.second ? &h : nullptr;
  };
  // What was made inside this call came right before it: it names this call as its parent, which
  // tracers tell even where clocks do not, or lies within its times.
  while (!stream.open.empty()) {
    if (Held* h = held(stream.open.back()); h != nullptr) {
      const bool named = std::find(h->parents.begin(), h->parents.end(), r.id) != h->parents.end();
      if (!named && !(h->begin > r.start && h->end < r.stop)) break;
      h->inside = true;
    }
    stream.open.pop_back();
  }
  while (!stream.open.empty() && held(stream.open.front()) == nullptr) stream.open.pop_front();

  if (free_.empty()) {
    free_.push_back(static_cast<uint32_t>(slots_.size()));
    slots_.emplace_back();
  }
  const uint32_t slot = free_.back();
  Held& h = slots_[slot];
  h.use = ++uses_;
  h.inside = false;
  h.id = r.id;
  h.begin = r.start;
  h.end = r.stop;
  h.call = &call;
  h.parents = r.parents;
  if (!translate(source, call, r, h)) {
    h.use = 0;
    host_->left_out(host_, stream.number, call.name, "does not say enough to do it again",
                    r.stop - r.start, 0);
    return;
  }
  free_.pop_back();
  stream.open.emplace_back(slot, h.use);
  const bool at_start = call.effect == Effect::kClose || call.effect == Effect::kFork ||
                        call.effect == Effect::kClone;
  source.due.emplace(at_start ? r.start : r.stop, h.use, slot);
}

Said Provider::read(Names& names, const siox::Record& r) {
  Said said;
  for (const siox::Attribute& a : r.attributes) {
    if (a.type == siox::kNothing) continue;
    switch (says(names, a.id)) {
      case Says::kAsked:
        said.asked = a.number;
        break;
      case Says::kMoved:
        said.moved = a.number;
        break;
      case Says::kPosition:
        if (!said.first_position) said.first_position = a.number;
        said.last_position = a.number;
        break;
      case Says::kExtent:
        said.extent = a.number;
        break;
      case Says::kFlags:
        said.flags = a.number;
        break;
      case Says::kAdvice:
        said.advice = a.number;
        break;
      case Says::kName:
        if (a.type == siox::kString && said.names < 2)
          said.name[said.names++] = host_->intern(host_, a.text.data(), a.text.size());
        break;
      case Says::kDescriptor:
        if (said.descriptors < 2) said.fd[said.descriptors++] = static_cast<int32_t>(a.number);
        break;
      default:
        break;
    }
  }
  return said;
}

// An activity from what the attributes say, by the call's description. False if that is not enough.
bool Provider::translate(Source& source, const Known& call, const siox::Record& r, Held& h) {
  Said said = read(*source.names, r);
  // A stream that was not opened anew: the descriptor is that of the one that was closed for it.
  if (call.effect == Effect::kFreopen && r.error != 0 && said.descriptors == 1) {
    said.fd[1] = said.fd[0];
    said.descriptors = 2;
  }
  feign_activity& a = h.a = feign_activity{};
  h.values.clear();
  h.descriptor = said.descriptors > 0;
  a.op = call.op;
  a.stream = stream_of(r.id).number;
  a.start_ns = r.start - std::min(r.start, origin_);
  a.duration_ns = r.stop - r.start;
  a.place = FEIGN_PLACE(source.number, source.records->number());
  for (uint32_t i = 0; i < call.info->arg_count; ++i)
    argument(call.info->args[i], call.info->kind, said, h);
  if (call.effect == Effect::kMap && !map(stream_of(r.id), said, h)) return false;
  if (call.info->kind == FEIGN_KIND_OPEN && r.error == 0 && a.path == 0) {
    // The tracer asked for the full name of what was only about to be created, and got none.
    char name[64];
    const int n = snprintf(name, sizeof name, "/unnamed/%u.%u", r.id.process.pid, r.id.id);
    a.path = host_->intern(host_, name, static_cast<size_t>(n));
    ++unnamed_;
  }
  if (r.error != 0)
    a.result = -static_cast<int64_t>(std::min<uint32_t>(r.error, 4095));
  else if (!succeeded(call, said, a))
    return false;
  if (a.path == 0 && said.names != 0 && said.descriptors != 0)
    a.file = said.name[0];  // of the descriptor
  if (a.path != 0) {
    const char* path = host_->text(host_, a.path, nullptr);
    if (path[0] != '/' && path[0] != '\0') a.file = cwd_;
  }
  return true;
}

void Provider::argument(const feign_arg_info& arg, uint32_t kind, const Said& said, Held& h) {
  feign_activity& a = h.a;
  switch (arg.slot) {
    case FEIGN_SLOT_HANDLE:
      if (kind != FEIGN_KIND_OPEN && said.descriptors > 0) a.handle = FEIGN_FD(said.fd[0]);
      break;
    case FEIGN_SLOT_HANDLE2:
      if (said.descriptors > 1) a.handle2 = FEIGN_FD(said.fd[1]);
      break;
    case FEIGN_SLOT_PATH:
      a.path = said.name[0];
      break;
    case FEIGN_SLOT_PATH2:
      a.path2 = said.name[1];
      break;
    case FEIGN_SLOT_OFFSET:
      a.offset = said.first_position.value_or(0);
      break;
    case FEIGN_SLOT_LENGTH:
      a.length = said.asked ? *said.asked : said.moved ? *said.moved : said.extent.value_or(0);
      break;
    case FEIGN_SLOT_FLAGS:
      a.flags = static_cast<uint32_t>(said.advice.value_or(said.flags));
      break;
    case FEIGN_SLOT_MODE:
      a.mode = 0666;  // not recorded
      break;
    case FEIGN_SLOT_VALUE:
      if (arg.type == FEIGN_ARG_LIST && moves(kind)) {  // one part stands for all
        a.length = said.asked ? *said.asked : said.moved.value_or(0);
        h.values = {a.length};
      }
      break;
    default:
      break;
  }
}

// Only what is mapped is recorded, not where to, nor for what.
bool Provider::map(Stream& stream, const Said& said, Held& h) {
  constexpr uint64_t kPage = 4096, kMost = uint64_t{1} << 40;
  if (!said.extent || *said.extent > kMost) return false;
  const bool file = said.fd[0] >= 0;
  h.values = {PROT_READ};
  h.a.flags = file ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
  h.a.result = static_cast<int64_t>(stream.mapped);
  if (file) stream.mapped += (*said.extent + kPage) / kPage * kPage;
  if (stream.mapped > kMost << 16) stream.mapped = kMost;
  return true;
}

// What a call that did not fail came back with.
bool Provider::succeeded(const Known& call, const Said& said, feign_activity& a) {
  const uint32_t kind = call.info->kind;
  if (kind == FEIGN_KIND_OPEN || call.effect == Effect::kChannel) {
    a.result = said.fd[0];
    return said.descriptors > 0;
  }
  if (kind == FEIGN_KIND_DUP) {
    a.result = said.fd[1];
    return said.descriptors > 1;
  }
  if (moves(kind)) {
    if (a.length == 0)  // stdio's do not ask
      a.length = said.asked ? *said.asked : said.moved.value_or(1);
    if (said.moved)
      a.result = static_cast<int64_t>(*said.moved);
    else
      a.marks |= FEIGN_NO_RESULT;
    return true;
  }
  if (call.effect == Effect::kFseek || kind == FEIGN_KIND_SEEK) {
    if (!said.last_position || *said.last_position >= kNoPosition) return false;
    a.flags = SEEK_SET;
    if (call.effect == Effect::kFseek) return true;
    // Where to and where it ended are the same number: it is sought from the start.
    a.offset = *said.last_position;
    a.result = static_cast<int64_t>(a.offset);
    return true;
  }
  return call.effect != Effect::kPipe && call.effect != Effect::kFork;
}

feign_status Provider::emit(Held& h, feign_sink* out, bool& emitted) {
  emitted = false;
  if (h.inside) {
    host_->left_out(host_, h.a.stream, h.call->name, "inside another call", h.end - h.begin, 0);
    return FEIGN_OK;
  }
  bool has_handle = false, has_path = false;
  for (uint32_t i = 0; i < h.call->info->arg_count; ++i) {
    has_handle |= h.call->info->args[i].slot == FEIGN_SLOT_HANDLE;
    has_path |= h.call->info->args[i].slot == FEIGN_SLOT_PATH;
  }
  const bool opens = h.call->info->kind == FEIGN_KIND_OPEN;
  const bool by_handle =
      has_handle && !opens && !has_path && h.call->effect != Effect::kMap;  // which may have none
  if (by_handle && !h.descriptor &&
      std::none_of(h.parents.begin(), h.parents.end(),
                   [&](const ActivityId& parent) { return made_.contains(parent); })) {
    host_->left_out(host_, h.a.stream, h.call->name, "does not say enough to do it again",
                    h.end - h.begin, 0);
    return FEIGN_OK;
  }
  feign_activity* a = out->make(out);
  if (a == nullptr) return host_->fail(host_, FEIGN_ERR_NOMEM, "out of memory");
  h.a.host = a->host;
  *a = h.a;
  // Which call made the descriptor that is used: it tells number and file where this one does not,
  // and is waited for if another process or thread did it.
  for (const ActivityId& parent : h.parents) {
    const auto at = made_.find(parent);
    if (at == made_.end()) continue;
    const Made& made = at->second;
    if (by_handle) {
      if (a->handle == 0) a->handle = FEIGN_FD(made.fd);
      if (a->file == 0) a->file = made.path;  // also of a duplicate, which has another number
    }
    if (made.stream == a->stream) continue;
    if (const feign_status status =
            host_->depend(host_, a, made.stream, made.id, "recorded parent");
        status < 0)
      return status;
  }
  if (!h.values.empty())
    if (const feign_status status =
            host_->set_values(host_, a, h.values.data(), static_cast<uint32_t>(h.values.size()));
        status < 0)
      return status;
  const Made made{a->stream, h.a.path, static_cast<int32_t>(h.a.result), 0};
  const bool makes = opens && h.a.result >= 0 && !(h.a.marks & FEIGN_NO_RESULT);
  if (const feign_status status = out->emit(out, a); status < 0) return status;
  emitted = true;
  if (!makes || a->id == 0) return FEIGN_OK;
  made_[h.id] = {made.stream, made.path, made.fd, a->id};
  if (made_order_.size() == kMostMade) {
    made_.erase(made_order_.front());
    made_order_.pop_front();
  }
  made_order_.push_back(h.id);
  return FEIGN_OK;
}

// The trace is over: says what was guessed, and completes what was printed.
feign_status Provider::finish() {
  if (const uint64_t n = std::exchange(unnamed_, 0); n != 0)
    host_->log(host_, FEIGN_LOG_INFO,
               (std::to_string(n) +
                " calls open a file that has no name in the trace: /unnamed/PROCESS.ID here")
                   .c_str());
  if (print_ == nullptr) return FEIGN_END;
  if (fclose(std::exchange(print_, nullptr)) == 0 &&
      rename(print_part_.c_str(), options_.print) == 0)
    return FEIGN_END;
  const int e = errno;
  unlink(print_part_.c_str());
  return host_->fail(host_, FEIGN_ERR_IO,
                     ("write " + std::string(options_.print) + ": " + strerror(e)).c_str());
}

// Reads on in a source, which then waits for its first record's turn.
feign_status Provider::queue(uint32_t index) {
  Source& source = sources_[index];
  if (const feign_status status = fill(source); status < 0) return status;
  if (!source.due.empty()) turns_.emplace(std::get<0>(source.due.top()), index);
  return FEIGN_OK;
}

feign_status Provider::next(size_t want, feign_sink* out) {
  if (!begun_) {
    begun_ = true;
    for (uint32_t i = 0; i < sources_.size(); ++i)
      if (const feign_status status = queue(i); status < 0) return status;
  }
  for (size_t done = 0; done < want;) {
    if (turns_.empty()) return finish();
    const uint32_t index = turns_.top().second;
    turns_.pop();
    Source& source = sources_[index];
    const uint32_t slot = std::get<2>(source.due.top());
    source.due.pop();
    Held& h = slots_[slot];
    bool emitted = false;
    if (const feign_status status = emit(h, out, emitted); status < 0) return status;
    done += emitted;
    h.use = 0;
    free_.push_back(slot);
    if (const feign_status status = queue(index); status < 0) return status;
  }
  return FEIGN_OK;
}

// ---- the table ----------------------------------------------------------------------------------

int probe(const char*, const void* head, size_t size) noexcept try {
  return siox::form_of({static_cast<const char*>(head), size}) == siox::Form::kNone ? 0 : 95;
} catch (const std::exception&) {
  return 0;
}

constexpr feign_provider kApi = feign::provider<Provider, Options>(probe);

}  // namespace

constexpr feign_component siox::kProvider = feign::component<Options>(
    kApi, "siox", "Reads traces of SIOX: binary, text archive, printed.", kOptions);
