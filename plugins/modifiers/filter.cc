// SPDX-License-Identifier: MIT
// Modifier filter: lets some activities pass and drops the rest.
//
// An activity passes if it meets every condition that is given (drop=yes turns that round). What it
// costs is array look-ups: names, globs and lists are looked at once for each distinct op, path and
// stream.
//
// Some activities carry state that others need: opens, closes, dups and process structure.
// Conditions on ops, sizes and times do not touch those, unless state=drop says so; conditions on
// paths, streams, processes and ranks take a file or a stream out whole, but for process structure.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/near.h"
#include "base/ranges.h"
#include "base/workload.h"
#include "feign.hpp"
#include "modifiers/globs.h"
#include "modifiers/table.h"

namespace {

enum State : uint32_t { kKeep, kDrop };
constexpr const char* kStates[] = {"keep", "drop", nullptr};
enum Preset : uint32_t { kNone, kWorkload };
constexpr const char* kPresets[] = {"none", "workload", nullptr};

struct Options {
  const char* const* op;
  const char* const* kind;
  const char* const* path;
  const char* const* stream;
  const char* const* process;
  const char* const* rank;
  uint64_t min_size, max_size, after, before;
  uint32_t drop, state, preset;
  const char* const* keep;
  const char* const* noise;
};
constexpr feign_option kOptions[] = {
    {"op", FEIGN_OPT_TEXTS, offsetof(Options, op), nullptr, nullptr, 0, 0,
     "Calls by name, with + between: op=read+write."},
    {"kind", FEIGN_OPT_TEXTS, offsetof(Options, kind), nullptr, nullptr, 0, 0,
     "Kinds of call: open close read write seek stat list change size flush dup process other."},
    {"path", FEIGN_OPT_TEXTS, offsetof(Options, path), nullptr, nullptr, 0, 0,
     "Globs of paths: * within a component, ** across; without a leading / at any depth."},
    {"stream", FEIGN_OPT_TEXTS, offsetof(Options, stream), nullptr, nullptr, 0, 0,
     "Streams by number: 1+3-5."},
    {"process", FEIGN_OPT_TEXTS, offsetof(Options, process), nullptr, nullptr, 0, 0,
     "Recorded process ids: 4943+4950-4960."},
    {"rank", FEIGN_OPT_TEXTS, offsetof(Options, rank), nullptr, nullptr, 0, 0, "MPI ranks: 0+3-5."},
    {"min-size", FEIGN_OPT_SIZE, offsetof(Options, min_size), "0", nullptr, 0, 0,
     "Reads and writes of at least this many bytes."},
    {"max-size", FEIGN_OPT_SIZE, offsetof(Options, max_size), "0", nullptr, 0, 0,
     "Reads and writes of at most this many bytes; 0: any."},
    {"after", FEIGN_OPT_DURATION, offsetof(Options, after), "0", nullptr, 0, 0,
     "Started no earlier than this since the trace began."},
    {"before", FEIGN_OPT_DURATION, offsetof(Options, before), "0", nullptr, 0, 0,
     "Started before this time since the trace began; 0: any."},
    {"drop", FEIGN_OPT_BOOL, offsetof(Options, drop), "no", nullptr, 0, 0,
     "Drop what meets the conditions, and keep the rest."},
    {"state", FEIGN_OPT_ENUM, offsetof(Options, state), "keep", kStates, 0, 0,
     "Whether opens, closes, dups and process structure pass conditions on ops, sizes and times."},
    {"preset", FEIGN_OPT_ENUM, offsetof(Options, preset), "none", kPresets, 0, 0,
     "workload: drops what comes with starting any program (loader, libraries, Open MPI, /proc, "
     "pipes), whatever else is said."},
    {"keep", FEIGN_OPT_TEXTS, offsetof(Options, keep), nullptr, nullptr, 0, 0,
     "Globs of paths that the preset must not drop."},
    {"noise", FEIGN_OPT_TEXTS, offsetof(Options, noise), nullptr, nullptr, 0, 0,
     "Globs of further paths that it is to drop."},
};

constexpr const char* kKinds[] = {"other", "open",   "close", "read",  "write", "seek",   "stat",
                                  "list",  "change", "size",  "flush", "dup",   "process"};

std::vector<std::string> words(const char* const* list) {
  std::vector<std::string> out;
  for (; *list != nullptr; ++list)
    for (const char* p = *list; *p != '\0';) {
      const size_t n = strcspn(p, "+");
      if (n != 0) out.emplace_back(p, n);
      p += n + (p[n] == '+');
    }
  return out;
}

constexpr uint64_t kAny = std::numeric_limits<uint64_t>::max();

class Filter {
 public:
  Filter(const feign_host* h, const Options& o) : host(h), options(o) {}

  feign_status start() {
    for (const auto step : {&Filter::refuse_empty, &Filter::take_ops, &Filter::take_kinds,
                            &Filter::take_globs, &Filter::take_ranges, &Filter::take_limits})
      if (const feign_status s = (this->*step)(); s < 0) return s;
    const bool whole = !globs.empty() || !streams.empty() || !processes.empty() || !ranks.empty();
    const bool single = !ops.empty() || kinds != 0 || options.min_size != 0 ||
                        options.max_size != kAny || options.after != 0 || options.before != kAny;
    by_paths = !globs.empty() || options.preset == kWorkload;
    only_single = !whole;
    only_whole = whole && !single;
    if (whole || single) return FEIGN_OK;
    if (options.drop)
      return wrong(
          "drop=yes without a condition would drop everything: want op, kind, path, stream, …");
    if (options.preset == kNone)
      host->log(host, FEIGN_LOG_WARN, "no condition was given: nothing is dropped");
    return FEIGN_OK;
  }

  feign_status process(const feign_window& in, feign_sink* out) {
    for (size_t i = 0; i < in.due; ++i) {
      feign_activity* a = in.items[i];
      if (by_paths && a->handle != 0 && kind(a->op) == FEIGN_KIND_OPEN)
        opened[a->handle] = {a->file, a->path, path_fits(a->path)};
      const bool whole = whole_fits(*a);
      if (a->marks & FEIGN_LAST) opened.erase(a->handle2 != 0 ? a->handle2 : a->handle);
      if (options.preset == kWorkload && leaves_out(*a)) {
        opens(*a, &Opened::noise);
        // A program takes its time to start, however it does it; at a pipe it waits for others.
        (a->marks & FEIGN_NOT_A_FILE ? a->sync_ns : a->compute_ns) += a->duration_ns;
        continue;
      }
      if (!keeps_an_end(*a) && !passes(*a, whole)) continue;  // not emitted is dropped
      opens(*a, &Opened::passed);
      if (const feign_status s = out->emit(out, a); s < 0) return s;
    }
    seen = seen || in.due != 0;
    if (in.at_end && in.due == in.count && seen && !std::exchange(met, true))
      host->log(host, FEIGN_LOG_WARN,
                options.drop ? "no activity meets the conditions: none is dropped"
                             : "no activity meets the conditions");
    return FEIGN_OK;
  }

 private:
  // ---- what is asked for ----

  feign_status wrong(const std::string& why) {
    return host->fail(host, FEIGN_ERR_ARGUMENT, why.c_str());
  }

  feign_status refuse_empty() {
    for (const auto& [name, list] :
         {std::pair{"op", options.op}, std::pair{"kind", options.kind},
          std::pair{"path", options.path}, std::pair{"stream", options.stream},
          std::pair{"process", options.process}, std::pair{"rank", options.rank},
          std::pair{"keep", options.keep}, std::pair{"noise", options.noise}})
      for (const char* const* p = list; *p != nullptr; ++p)
        if (**p == '\0')  // a script's variable that is not set
          return wrong(std::string(name) + "=: want a value, or leave it out");
    return FEIGN_OK;
  }

  feign_status take_ops() {
    ops = words(options.op);
    for (const std::string& name : ops) {
      const size_t colon = name.find(':');
      const std::string layer = colon == std::string::npos ? "posix" : name.substr(0, colon);
      const std::string call = colon == std::string::npos ? name : name.substr(colon + 1);
      if (host->op(host, layer.c_str(), call.c_str()) != 0) continue;
      if (name.find_first_of("|; ") != std::string::npos)
        return wrong("op=" + name + ": want several with + between: read+write");
      return wrong("op=" + name + ": there is no such call" + instead_of(name, layer));
    }
    return FEIGN_OK;
  }

  // What may be meant by a call's name that is none of that layer's.
  std::string instead_of(const std::string& name, const std::string& layer) {
    const auto each = [&](const auto& look) {
      for (uint32_t op = 1; op < 4096; ++op)
        if (const feign_op_info* info = host->op_info(host, op)) look(*info);
    };
    // Of the same name in another layer, or of one like it.
    std::string near;
    for (const bool same : {true, false}) {
      each([&](const feign_op_info& info) {
        const std::string its = info.name;
        if (same ? name != its : its.find(name.substr(0, 4)) == std::string::npos) return;
        const bool posix = strcmp(info.layer, "posix") == 0;
        near += (near.empty() ? "" : ", ") + (posix ? "" : std::string(info.layer) + ":") + its;
      });
      if (!near.empty()) return "; there are: " + near;
    }
    std::vector<std::string> names;
    const bool with_layer = name.find(':') != std::string::npos;
    each([&](const feign_op_info& info) {
      if (layer == info.layer) names.push_back((with_layer ? layer + ":" : "") + info.name);
    });
    return feign::did_you_mean(name, names);
  }

  feign_status take_kinds() {
    for (const std::string& name : words(options.kind)) {
      size_t k = 0;
      while (k < std::size(kKinds) && name != kKinds[k]) ++k;
      if (k == std::size(kKinds)) {
        std::string all;
        for (const char* kind : kKinds) all += (all.empty() ? "" : "|") + std::string(kind);
        return wrong("kind=" + name + ": want " + all + ", several with + between");
      }
      kinds |= 1u << k;
    }
    return FEIGN_OK;
  }

  feign_status take_globs() {
    for (const auto& [list, to] : {std::pair{options.path, &globs}, std::pair{options.keep, &kept},
                                   std::pair{options.noise, &noise}})
      for (const char* const* p = list; *p != nullptr; ++p)
        to->add(**p == '/' ? *p : "**/" + std::string(*p));
    if (options.preset == kNone && !(kept.empty() && noise.empty()))
      return wrong("keep and noise are of preset=workload");
    return FEIGN_OK;
  }

  feign_status take_ranges() {
    for (const auto& [name, list, to] : {std::tuple{"stream", options.stream, &streams},
                                         std::tuple{"process", options.process, &processes},
                                         std::tuple{"rank", options.rank, &ranks}})
      for (const std::string& word : words(list)) {
        const auto range = feign::range_of(word);
        if (!range)
          return wrong(std::string(name) + "=" + word + ": want numbers and ranges such as 0+3-5");
        to->push_back(*range);
      }
    return FEIGN_OK;
  }

  feign_status take_limits() {
    if (options.max_size == 0) options.max_size = kAny;
    if (options.before == 0) options.before = kAny;
    if (options.max_size < options.min_size)
      return wrong("max-size=" + std::to_string(options.max_size) +
                   " is less than min-size=" + std::to_string(options.min_size) + ": no call fits");
    if (options.before <= options.after)
      return wrong("before=" + std::to_string(options.before) + "ns is no later than after=" +
                   std::to_string(options.after) + "ns: no call fits");
    return FEIGN_OK;
  }

  // ---- open handles, and copies between two of them ----

  // What an open handle is of.
  struct Opened {
    uint32_t file;
    uint32_t path;
    bool fits;
    bool passed = false;
    bool noise = false;
  };
  const Opened* find(uint32_t handle) const {
    const auto at = opened.find(handle);
    return at != opened.end() ? &at->second : nullptr;
  }

  void opens(const feign_activity& a, bool Opened::*what) {
    if (kind(a.op) != FEIGN_KIND_OPEN) return;
    if (const auto at = opened.find(a.handle); at != opened.end()) at->second.*what = true;
  }

  // The path by which a copy's target is there; 0: none.
  uint32_t target(const feign_activity& a) const {
    const Opened* to = find(a.handle2);
    return to != nullptr && to->passed ? to->path : a.path2;
  }

  bool is_copy(const feign_activity& a) {
    return a.handle != 0 && a.handle2 != 0 && a.value_count >= 4 && kind(a.op) == FEIGN_KIND_WRITE;
  }
  static void only_to(feign_activity& a, uint32_t path) {
    a.handle = 0;
    a.path = path;
    a.file = static_cast<uint32_t>(a.values[2]);
    a.offset = a.values[3];
  }

  // Whether a call on an open file fits, by the path that it was opened by, whatever it is called
  // now; on what was open before, by its own.
  bool fits(uint32_t handle, uint32_t file, uint32_t path) {
    const Opened* at = handle != 0 && file != 0 ? find(handle) : nullptr;
    return at != nullptr && at->file == file ? at->fits : path_fits(path);
  }

  // A copy between two files, of which one is left out: that one is as a pipe is, from here on.
  // False: it is no copy, or both are left out, or none.
  bool keeps_an_end(feign_activity& a) {
    if (globs.empty() || (options.drop && !only_whole) || !is_copy(a)) return false;
    const bool from = fits(a.handle, a.file, a.path);
    const bool to = fits(a.handle2, static_cast<uint32_t>(a.values[2]), a.path2);
    if (from == to || !(stream_fits(a.stream) && single(a))) return false;
    if (to == (options.drop != 0))
      a.handle2 = a.path2 = 0;
    else
      only_to(a, target(a));
    return true;
  }

  // Whether the preset leaves it out. Of a copy with one end that it leaves out, the other stays.
  bool leaves_out(feign_activity& a) {
    const bool noise = is_noise(a);
    if (!is_copy(a)) return noise;
    const Opened* to = find(a.handle2);
    if (noise && a.path2 == 0 && (to == nullptr || !to->passed)) return true;
    if (noise)
      only_to(a, target(a));
    else if (to != nullptr && to->noise)
      a.handle2 = 0;
    return false;
  }

  // ---- conditions ----

  // By stream and path.
  bool whole_fits(const feign_activity& a) {
    const uint32_t k = kind(a.op);
    if (!stream_fits(a.stream)) return false;
    if (k == FEIGN_KIND_PROCESS) return true;
    if (k == FEIGN_KIND_OPEN && path_fits(a.path)) return true;
    // (What is copied from a pipe has the file that it goes to only.)
    const uint32_t handle = a.handle != 0 ? a.handle : a.handle2;
    if (k != FEIGN_KIND_OPEN && fits(handle, a.file, a.path)) return true;
    return a.path2 != 0 && k != FEIGN_KIND_LIST && path_fits(a.path2);
  }

  bool path_fits(uint32_t id) { return globs.empty() || (id != 0 && globs.fit(id)); }

  // Preset workload: what comes with starting any program, and what is no file at all.
  bool is_noise(const feign_activity& a) {
    if (kind(a.op) == FEIGN_KIND_PROCESS) return false;
    if (a.path == 0) return (a.marks & FEIGN_NOT_A_FILE) != 0;
    if (!kept.empty() && kept.fit(a.path)) return false;
    if (!noise.empty() && noise.fit(a.path)) return true;
    return is_start.of(a.path, [&] { return feign::is_noise(host->text(host, a.path, nullptr)); });
  }

  bool op_fits(uint32_t op) {
    if (ops.empty() && kinds == 0) return true;
    return by_op.of(op, [&] {
      const feign_op_info* info = host->op_info(host, op);
      const std::string name = info != nullptr ? info->name : "";
      bool yes = ops.empty();
      for (const std::string& o : ops)
        yes = yes || o == name || (info != nullptr && o == std::string(info->layer) + ":" + name);
      return yes && (kinds == 0 || (kinds >> kind(op) & 1) != 0);
    });
  }

  uint32_t kind(uint32_t op) {
    if (op >= kind_of.size()) kind_of.resize(op + size_t{1}, 255);
    if (kind_of[op] == 255) {
      const feign_op_info* info = host->op_info(host, op);
      kind_of[op] = info != nullptr ? static_cast<uint8_t>(info->kind) : 0;
    }
    return kind_of[op];
  }

  static bool in(const std::vector<feign::NumberRange>& list, int64_t n) {
    for (const feign::NumberRange& r : list)
      if (r.has(n)) return true;
    return list.empty();
  }
  bool stream_fits(uint32_t stream) {
    if (streams.empty() && processes.empty() && ranks.empty()) return true;
    return by_stream.of(stream, [&] {
      feign_stream_info info{};
      return host->stream_info(host, stream, &info) >= 0 && in(streams, stream) &&
             in(processes, info.process) && in(ranks, info.rank);
    });
  }

  bool single(const feign_activity& a) {
    const uint32_t k = kind(a.op);
    const bool moves = k == FEIGN_KIND_READ || k == FEIGN_KIND_WRITE;
    return op_fits(a.op) &&
           (!moves || (a.length >= options.min_size && a.length <= options.max_size)) &&
           a.start_ns >= options.after && a.start_ns < options.before;
  }

  bool passes(const feign_activity& a, bool whole) {
    const uint32_t k = kind(a.op);
    const bool carries = options.state == kKeep && (k == FEIGN_KIND_OPEN || k == FEIGN_KIND_CLOSE ||
                                                    k == FEIGN_KIND_DUP || k == FEIGN_KIND_PROCESS);
    const bool single = this->single(a);
    met = met || (whole && single && (k != FEIGN_KIND_PROCESS || globs.empty()));
    if (!options.drop) return whole && (single || carries);
    if (only_single) return !single || carries;
    if (only_whole) return !whole || (k == FEIGN_KIND_PROCESS && !globs.empty());
    return !(whole && single) || carries;
  }

  const feign_host* host;
  Options options;
  std::vector<std::string> ops;
  feign::Globs globs{host}, kept{host}, noise{host};
  uint32_t kinds = 0;  // bits; 0: any
  std::vector<feign::NumberRange> streams, processes, ranks;
  feign::Answers by_op, by_stream, is_start;    // the last by path
  std::vector<uint8_t> kind_of;                 // by op
  std::unordered_map<uint32_t, Opened> opened;  // where there are conditions on paths
  bool by_paths = false;
  // Which conditions there are, for drop=yes.
  bool only_single = false, only_whole = false;
  bool seen = false, met = false;  // any activity; one that meets them
};

constexpr feign_modifier kApi = feign::modifier<Filter, Options>();
constexpr feign_component kComponent = feign::component<Options>(
    kApi, "filter",
    "Lets activities pass by op, kind, path, stream, rank, size or time; drops the rest.",
    kOptions);
constexpr const feign_component* kComponents[] = {&kComponent, nullptr};

}  // namespace

FEIGN_ROLES(FEIGN_MODIFIER);
extern "C" const feign_plugin feign_plugin_v1 = {
    sizeof(feign_plugin), FEIGN_ABI_MINOR, "filter", FEIGN_VERSION, "MIT", kComponents};
