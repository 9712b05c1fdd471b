// SPDX-License-Identifier: MIT
// Modifier replicate: the trace several times at once, each copy in a directory of its own: from
// one rank, or one client, to many.
//
// Of each activity, the copies follow at once. A copy has streams, handles and files of its own:
// their numbers are multiplied by the number of copies, and the copy's added, so that none meets
// another's. Recorded process and thread ids get the copy's number in front.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/path.h"
#include "feign.hpp"
#include "layers/posix_ops.h"
#include "modifiers/link_target.h"
#include "trace/record.h"

namespace {

struct Options {
  uint64_t copies, offset, ranks;
  const char* into;
};
constexpr feign_option kOptions[] = {
    {"copies", FEIGN_OPT_UINT, offsetof(Options, copies), nullptr, nullptr, 1, 100'000,
     "How many there are in all."},
    {"offset", FEIGN_OPT_DURATION, offsetof(Options, offset), "0", nullptr, 0, 0,
     "Each copy starts this much later than the one before it."},
    {"into", FEIGN_OPT_TEXT, offsetof(Options, into), "/copy-", nullptr, 0, 0,
     "Where copies go: this and the copy's number, from 0, before each path."},
    {"ranks", FEIGN_OPT_UINT, offsetof(Options, ranks), "0", nullptr, 0, 1u << 24,
     "MPI ranks of one copy: rank R of copy N becomes N times this, plus R; 0: ranks stay."},
};
constexpr int64_t kIds = 10'000'000;  // recorded ids are less: a copy's number goes before them

class Replicate {
 public:
  Replicate(const feign_host* host, const Options& o) : host_(host), options_(o) {}

  feign_status start() const {
    if (options_.copies * options_.ranks > INT32_MAX)
      return host_->fail(host_, FEIGN_ERR_ARGUMENT,
                         ("copies=" + std::to_string(options_.copies) + " of ranks=" +
                          std::to_string(options_.ranks) + ": there are no numbers for so many")
                             .c_str());
    if (options_.into[0] == '/' && strstr(options_.into, "/../") == nullptr) return FEIGN_OK;
    return host_->fail(
        host_, FEIGN_ERR_ARGUMENT,
        (std::string("into=") + options_.into + ": want an absolute path without \"..\"").c_str());
  }
  feign_status process(const feign_window& in, feign_sink* out) {
    for (size_t i = 0; i < in.due; ++i) {
      feign_activity* a = in.items[i];
      const feign_activity original = *a;
      values_.assign(a->values, a->values + a->value_count);
      if ((a->marks & FEIGN_DEPENDS) && !sees_dependencies_)
        return host_->fail(host_, FEIGN_ERR_ARGUMENT,
                           "the trace has dependencies already, which cannot be seen here: put "
                           "replicate before depend");
      for (uint32_t copy = 0; copy < options_.copies; ++copy) {
        if (copy != 0) {
          a = out->make(out);
          if (a == nullptr) return no_memory();
        }
        if (const feign_status s = fill(*a, original, copy); s < 0) return s;
        if (copy != 0 && (original.marks & FEIGN_DEPENDS))
          if (const feign_status s = depend(*a, *in.items[i], copy); s < 0) return s;
        if (const feign_status s = out->emit(out, a); s < 0) return s;
        // The copy of a fork is what the copy of the child waits for.
        if (copy != 0 && kind_of(original.op) == FEIGN_KIND_PROCESS)
          forks_[{original.id, copy}] = a->id;
      }
    }
    if (options_.ranks != 0 && in.at_end && in.due == in.count && !std::exchange(ranked_, true))
      host_->log(
          host_, FEIGN_LOG_WARN,
          ("ranks=" + std::to_string(options_.ranks) + ": the trace has no MPI ranks").c_str());
    return FEIGN_OK;
  }
  feign_status no_memory() const { return host_->fail(host_, FEIGN_ERR_NOMEM, "out of memory"); }

 private:
  feign_status fill(feign_activity& a, const feign_activity& from, uint32_t copy) {
    const uint64_t most =
        std::max({uint64_t{from.handle}, uint64_t{from.handle2}, uint64_t{from.file}});
    if (most > UINT32_MAX / options_.copies - 1)
      return host_->fail(
          host_, FEIGN_ERR_ARGUMENT,
          ("copies=" + std::to_string(options_.copies) + " of a trace with " +
           std::to_string(most) + " files or handles: there are no numbers for so many")
              .c_str());
    bool first = false;
    if (const feign_status s = stream(from.stream, copy, a.stream, first); s < 0) return s;
    a.start_ns = from.start_ns + copy * options_.offset;
    a.duration_ns = from.duration_ns;
    a.offset = from.offset;
    a.length = from.length;
    a.result =
        from.result > 0 && is_fork(effect_of(from.op)) ? copy * kIds + from.result : from.result;
    a.op = from.op;
    a.handle = number(from.handle, copy);
    a.handle2 = number(from.handle2, copy);
    a.file = number(from.file, copy);
    a.path = path(from.path, copy);
    a.path2 = from.path2;
    feign::set_path2(host_, a, path(from.path2, copy));
    a.flags = from.flags;
    a.mode = from.mode;
    a.place = from.place;
    a.marks = copy != 0 ? from.marks & ~uint32_t{FEIGN_DEPENDS} : from.marks;
    a.sync_ns = from.sync_ns;
    a.compute_ns = from.compute_ns;
    // Of streams that no other made: who was made starts when that one gets there.
    if (first) a.compute_ns += copy * options_.offset;
    if (values_.empty()) return FEIGN_OK;
    mapped_ = values_;
    map_values(from, copy);
    return host_->set_values(host_, &a, mapped_.data(), static_cast<uint32_t>(mapped_.size()));
  }

  // The copy depends on the copies of what the original does, which came right behind the
  // originals.
  feign_status depend(feign_activity& a, const feign_activity& original, uint32_t copy) {
    for (const feign::Dependency& d : feign::Record::of(&original)->depends) {
      bool first = false;
      uint32_t on = 0;
      if (const feign_status s = stream(d.stream, copy, on, first); s < 0) return s;
      const char* rule = host_->text(host_, d.rule, nullptr);
      if (const feign_status s = host_->depend(host_, &a, on, d.id + copy, rule); s < 0) return s;
    }
    return FEIGN_OK;
  }

  static feign::Effect effect_of(uint32_t op) {
    const auto calls = feign::posix_calls();
    return op < calls.size() ? calls[op].effect : feign::Effect::kNone;
  }
  static bool is_fork(feign::Effect effect) {  // its result is a process
    return effect == feign::Effect::kFork || effect == feign::Effect::kVfork ||
           effect == feign::Effect::kClone;
  }

  uint32_t number(uint32_t n, uint32_t copy) const {
    return n == 0 ? 0 : n * static_cast<uint32_t>(options_.copies) + copy;
  }

  // Handles, files and paths among the values.
  void map_values(const feign_activity& a, uint32_t copy) {
    const feign_op_info* info = host_->op_info(host_, a.op);
    if (info == nullptr) return;
    for (uint32_t i = 0; i < info->arg_count; ++i) {
      const feign_arg_info& arg = info->args[i];
      if (arg.slot == FEIGN_SLOT_VALUE && arg.type == FEIGN_ARG_PATH && arg.index < mapped_.size())
        mapped_[arg.index] = path(static_cast<uint32_t>(mapped_[arg.index]), copy);
    }
    const auto renumber = [&](size_t at) {
      if (mapped_.size() > at) mapped_[at] = number(static_cast<uint32_t>(mapped_[at]), copy);
    };
    switch (effect_of(a.op)) {
      case feign::Effect::kExec:
      case feign::Effect::kExit:
      case feign::Effect::kExitGroup:
      case feign::Effect::kCloseRange:
      case feign::Effect::kUnmap:  // handles that end
        for (size_t at = 0; at < mapped_.size(); ++at) renumber(at);
        break;
      case feign::Effect::kCopy:
        renumber(2);  // the other file
        break;
      case feign::Effect::kIoctl:
        renumber(1);
        break;
      default:
        break;
    }
  }

  uint32_t path(uint32_t id, uint32_t copy) {
    if (id == 0) return 0;
    size_t length = 0;
    const char* text = host_->text(host_, id, &length);
    if (length == 0 || text[0] != '/') return id;  // a relative link's target, an attribute's name
    uint32_t& known = paths_[{id, copy}];
    if (known == 0) {
      std::string whole = feign::clean_path(options_.into + std::to_string(copy));
      if (length > 1) whole.append(text, length);
      known = host_->intern(host_, whole.data(), whole.size());
    }
    return known;
  }

  // `its`: the stream of a copy; `first`: that no other made it, and this is its first activity.
  feign_status stream(uint32_t id, uint32_t copy, uint32_t& its, bool& first) {
    uint32_t& known = streams_[{id, copy}];
    its = known;
    if (known != 0) return FEIGN_OK;
    feign_stream_info info{};
    if (host_->stream_info(host_, id, &info) < 0) return no_memory();
    first = info.parent == 0;
    ranked_ = ranked_ || info.rank >= 0;
    if (options_.ranks != 0 && info.rank >= static_cast<int64_t>(options_.ranks))
      return host_->fail(host_, FEIGN_ERR_ARGUMENT,
                         ("ranks=" + std::to_string(options_.ranks) + ": the trace has rank " +
                          std::to_string(info.rank) + ": want more than that")
                             .c_str());
    if (copy == 0) {
      its = known = id;
      return FEIGN_OK;
    }
    const int64_t front = copy * kIds;
    info.struct_size = sizeof info;
    if (info.process >= 0) info.process += front;
    info.thread += front;
    if (info.rank >= 0) info.rank += static_cast<int32_t>(copy * options_.ranks);
    if (info.parent != 0) {
      const auto fork = forks_.find({info.parent_id, copy});
      bool ignored = false;
      uint32_t parent = 0;
      if (fork != forks_.end())
        if (const feign_status s = stream(info.parent, copy, parent, ignored); s < 0) return s;
      info.parent = parent;
      info.parent_id = fork != forks_.end() ? fork->second : 0;
    }
    its = known = host_->stream(host_, &info);
    return its != 0 ? FEIGN_OK : no_memory();
  }

  uint32_t kind_of(uint32_t op) const {
    const feign_op_info* info = host_->op_info(host_, op);
    return info != nullptr ? info->kind : uint32_t{FEIGN_KIND_OTHER};
  }

  struct Key {
    uint64_t id;
    uint32_t copy;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    size_t operator()(const Key& k) const {
      return (k.id * 0x9E3779B97F4A7C15u) ^ (uint64_t{k.copy} * 0xBF58476D1CE4E5B9u);
    }
  };

  const feign_host* host_;
  Options options_;
  // The sign that records are the host's own, as for depend.
  const bool sees_dependencies_ = host_->extension(host_, "feign.tables/1") != nullptr;
  std::unordered_map<Key, uint32_t, Hash> paths_, streams_;
  std::unordered_map<Key, uint64_t, Hash> forks_;
  std::vector<uint64_t> values_, mapped_;
  bool ranked_ = false;
};

constexpr feign_modifier kApi = feign::modifier<Replicate, Options>();
constexpr feign_component kComponent = feign::component<Options>(
    kApi, "replicate",
    "The trace several times at once, each copy in a directory of its own (with order depend).",
    kOptions);
constexpr const feign_component* kComponents[] = {&kComponent, nullptr};

}  // namespace

FEIGN_ROLES(FEIGN_MODIFIER);
extern "C" const feign_plugin feign_plugin_v1 = {
    sizeof(feign_plugin), FEIGN_ABI_MINOR, "replicate", FEIGN_VERSION, "MIT", kComponents};
