// SPDX-License-Identifier: MIT
#include "discover/calls.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <map>
#include <memory>
#include <unordered_map>

#include "base/log.h"
#include "trace/call_text.h"
#include "trace/descriptors.h"
#include "trace/effects.h"
#include "trace/native.h"

namespace feign::discover {
namespace {

// A call during which its node could have been kept waiting by others.
bool can_wait(const feign_activity& a, const feign_op_info& info, const Call* call) {
  if (strcmp(info.layer, "mpi") == 0) return true;
  if ((a.marks & FEIGN_NOT_A_FILE) != 0 &&
      (info.kind == FEIGN_KIND_READ || info.kind == FEIGN_KIND_WRITE))
    return true;
  switch (call != nullptr ? call->effect : Effect::kUse) {
    case Effect::kWait:
    case Effect::kFutex:
    case Effect::kConnect:
    case Effect::kAccept:
    case Effect::kReceive:
    case Effect::kSend:
    case Effect::kSemaphore:
    case Effect::kFlock:
    case Effect::kAioWait:
      return true;
    default:
      return false;
  }
}

// The pause before a call on files, over the calls of other kinds that come before it.
class Pauses {
 public:
  struct Pause {
    uint64_t compute_ns = 0, waited_ns = 0;
  };
  // Adds an activity that does not count.
  void add(const feign_activity& a, const feign_op_info& info, const Call* call) {
    Stream& s = of(a.stream);
    if (!visible(s, a)) return;
    s.pause.compute_ns += a.compute_ns;
    s.pause.waited_ns += a.sync_ns;
    if (can_wait(a, info, call)) {
      s.pause.waited_ns += a.duration_ns;
      s.hidden_below = FEIGN_DEPTH(a.marks);
    } else if (strcmp(info.layer, "posix") == 0) {
      s.pause.compute_ns += a.duration_ns;  // of other layers: what is in them counts
    }
  }
  // That before an activity that counts, or is kept.
  Pause take(const feign_activity& a) {
    Stream& s = of(a.stream);
    (void)visible(s, a);
    Pause out = std::exchange(s.pause, {});
    out.compute_ns += a.compute_ns;
    out.waited_ns += a.sync_ns;
    return out;
  }

 private:
  struct Stream {
    Pause pause;
    uint32_t hidden_below = UINT32_MAX;  // what lies in a call that can wait is part of it
  };
  Stream& of(uint32_t stream) {
    if (stream >= streams_.size()) streams_.resize(stream + size_t{1});
    return streams_[stream];
  }
  static bool visible(Stream& s, const feign_activity& a) {
    if (s.hidden_below != UINT32_MAX && FEIGN_DEPTH(a.marks) > s.hidden_below) return false;
    s.hidden_below = UINT32_MAX;
    return true;
  }
  std::vector<Stream> streams_;
};

// A node's calls as text; a file that another node opened is opened before its first use.
class Texts {
 public:
  explicit Texts(const Tables& tables) : tables_(tables) {}

  // Any activity: how files were opened.
  void see(const feign_activity& a, const feign_op_info& info) {
    if (info.kind == FEIGN_KIND_OPEN && a.handle != 0 && a.result >= 0)
      flags_[a.handle] = a.flags & ~static_cast<uint32_t>(O_CREAT | O_EXCL | O_TRUNC);
  }

  void put(uint32_t node, const feign_activity& a, const feign_op_info& info, Effect effect,
           std::string& before, std::string& text) {
    while (node >= descriptors_.size()) descriptors_.emplace_back(false);
    Descriptors& fds = descriptors_[node];
    if (info.kind != FEIGN_KIND_OPEN && a.handle != 0) meet(fds, a, info, before);
    fds.ended(a, effect);
    const int64_t result = fds.result(a, info.kind, effect, lost_);
    add_call(
        text, a, info, result, [&](uint32_t id) { return tables_.strings.text(id); },
        [&](uint32_t handle) { return fds.of(handle, lost_); });
    fds.closed(a, effect, lost_);
  }

 private:
  void meet(Descriptors& fds, const feign_activity& a, const feign_op_info& info,
            std::string& before) {
    bool by_fd = false;
    for (uint32_t i = 0; i < info.arg_count; ++i) by_fd |= info.args[i].slot == FEIGN_SLOT_HANDLE;
    if (!by_fd || fds.has(a.handle)) return;
    const auto known = flags_.find(a.handle);
    const uint32_t flags = known != flags_.end()              ? known->second
                           : (a.marks & FEIGN_DIRECTORY) != 0 ? O_RDONLY | O_DIRECTORY
                           : info.kind == FEIGN_KIND_READ     ? O_RDONLY
                                                              : O_RDWR;
    const int fd = fds.open(a.handle);
    before += "open(";
    add_quoted(before, tables_.strings.text(a.path));
    before += ", " + std::to_string(flags) + ", 0) = " + std::to_string(fd) + "\n";
    const bool moves = info.kind == FEIGN_KIND_READ || info.kind == FEIGN_KIND_WRITE;
    if (moves && a.offset != 0 && a.offset != FEIGN_NO_OFFSET)
      before += "lseek(" + std::to_string(fd) + ", " + std::to_string(a.offset) +
                ", SEEK_SET) = " + std::to_string(a.offset) + "\n";
  }

  const Tables& tables_;
  std::vector<Descriptors> descriptors_;  // by node
  Lost lost_;                             // nothing is: all are met
  std::unordered_map<uint32_t, uint32_t> flags_;
};

struct File {
  int fd = -1;
  ~File() {
    if (fd >= 0) close(fd);
  }
};

Effect effect_of(const Call* call) { return call != nullptr ? call->effect : Effect::kUse; }

}  // namespace

void Numbers::add(const std::string& host, const std::vector<std::string>& its_keys) {
  parts.push_back(
      {host, static_cast<uint32_t>(keys.size()), static_cast<uint32_t>(its_keys.size())});
  keys.insert(keys.end(), its_keys.begin(), its_keys.end());
}

bool Numbers::counted(const Tables& tables, const feign_activity& a, uint32_t& node,
                      uint64_t& call) const {
  const uint64_t number = FEIGN_PLACE_LINE(a.place);
  if (number == 0 || parts.empty()) return false;
  const Part* part = &parts[0];
  if (parts.size() > 1) {
    // As the recording calls them, which has no room for long ones.
    const std::string_view host = tables.strings.text(tables.streams.info(a.stream).host);
    for (const Part& p : parts)
      if (!p.host.empty() && !host.empty() && p.host.starts_with(host)) part = &p;
  }
  const uint64_t own = number >> 32;
  if (own >= part->count) return false;
  node = part->first + static_cast<uint32_t>(own);
  call = (number & UINT32_MAX) - 1;
  return true;
}

Result<std::shared_ptr<NativeReader>> open_trace(const std::string& path, Tables& tables) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno_error("open " + path, errno);
  return NativeReader::open(fd, path, tables);
}

Result<void> each_activity(const std::shared_ptr<NativeReader>& trace, const Tables& tables,
                           const Visit& visit) {
  NativeReader::Cursor cursor(trace, {});
  Record r;
  uint64_t number = 0;
  while (true) {
    auto more = cursor.next(r, number);
    if (!more) return std::move(more.error());
    if (!*more) return {};
    const feign_op_info* info = tables.ops.info(r.a.op);
    if (info == nullptr) continue;
    if (auto ok = visit(r, *info, tables.ops.call(r.a.op)); !ok) return ok;
  }
}

// A pipeline without words of its own: what it could say is for traces that users know.
Result<void> quiet_pipeline(std::vector<PluginSpec> specs, Plugins& plugins) {
  PipelineOptions pipeline;
  pipeline.plugins = std::move(specs);
  Tables tables;
  const int level = log_level();
  set_log_level(FEIGN_LOG_ERROR);
  auto result = run_pipeline(pipeline, plugins, tables, [](const char*, uint64_t, uint64_t) {});
  set_log_level(level);
  if (!result) return std::move(result.error());
  return {};
}

PluginSpec spec(const char* name, GivenOptions options) {
  PluginSpec s;
  s.name = name;
  s.options = std::move(options);
  return s;
}

Result<void> read_run(const std::string& raw, const std::string& trace, Plugins& plugins,
                      const Numbers& numbers, std::map<std::string, NodeLog>& nodes) {
  if (auto made = quiet_pipeline(
          {spec("capture", {{"file", raw + "/records"}}), spec("feign", {{"file", trace}})},
          plugins);
      !made)
    return made;
  Tables tables;
  auto reader = open_trace(trace, tables);
  if (!reader) return std::move(reader.error());
  Pauses pauses;
  Texts texts(tables);
  const auto read = [&](Record& r, const feign_op_info& info, const Call* what) -> Result<void> {
    texts.see(r.a, info);
    uint32_t node = 0;
    uint64_t place = 0;
    if (!numbers.counted(tables, r.a, node, place)) {
      pauses.add(r.a, info, what);
      return {};
    }
    NodeLog& log = nodes[numbers.keys[node]];
    IoCall call;
    const auto pause = pauses.take(r.a);
    call.gap_ns = pause.compute_ns + pause.waited_ns;
    call.waited_ns = pause.waited_ns;
    call.start_ns = r.a.start_ns;
    call.call_ns = r.a.duration_ns;
    texts.put(node, r.a, info, effect_of(what), call.before, call.text);
    log.calls.push_back(std::move(call));
    return {};
  };
  return each_activity(*reader, tables, read);
}

Result<void> write_trace(const TraceParts& parts, Plugins& plugins, uint64_t& contradicted) {
  const std::string kept = parts.work + "/kept.feign", edges = parts.work + "/edges";
  std::vector<std::vector<uint64_t>> places(parts.index.size());  // of each node's calls in `kept`
  {
    Tables tables;
    auto reader = open_trace(parts.from, tables);
    if (!reader) return std::move(reader.error());
    File file;
    file.fd = open(kept.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file.fd < 0) return errno_error("open " + kept, errno);
    NativeWriter writer(file.fd, kept, tables, {});
    uint64_t written = 0;
    Pauses pauses;
    const auto keep = [&](Record& r, const feign_op_info& info, const Call* what) -> Result<void> {
      uint32_t node = 0;
      uint64_t call = 0;
      const bool counts =
          parts.numbers->counted(tables, r.a, node, call) && parts.index[node] != UINT32_MAX;
      const bool process = !counts && info.kind == FEIGN_KIND_PROCESS &&
                           FEIGN_DEPTH(r.a.marks) == 0 &&
                           (!parts.ranks || tables.streams.info(r.a.stream).rank >= 0) &&
                           (effect_of(what) == Effect::kFork || effect_of(what) == Effect::kVfork ||
                            effect_of(what) == Effect::kClone || effect_of(what) == Effect::kWait ||
                            effect_of(what) == Effect::kExec || effect_of(what) == Effect::kExit ||
                            effect_of(what) == Effect::kExitGroup);
      if (!counts && !process) {
        pauses.add(r.a, info, what);
        return {};
      }
      const auto pause = pauses.take(r.a);
      r.a.compute_ns = pause.compute_ns;
      r.a.sync_ns = pause.waited_ns;
      r.a.marks &= ~FEIGN_AT_DEPTH(255u);
      r.a.place = 0;
      if (counts) {
        const uint32_t index = parts.index[node];
        r.a.compute_ns = std::min(r.a.compute_ns, parts.compute_ns(index, call));
        if (places[index].size() <= call) places[index].resize(call + 1, UINT64_MAX);
        places[index][call] = written;
      }
      if (auto ok = writer.add(r); !ok) return ok;
      ++written;
      return {};
    };
    if (auto ok = each_activity(*reader, tables, keep); !ok) return ok;
    if (auto ok = writer.finish({}); !ok) return ok;
  }
  FILE* file = fopen(edges.c_str(), "we");
  if (file == nullptr) return errno_error("open " + edges, errno);
  const auto place = [&](uint32_t node, uint64_t call) {
    return node < places.size() && call < places[node].size() ? places[node][call] : UINT64_MAX;
  };
  fprintf(file, "# call after call\n");
  for (const CallOrder& o : parts.orders) {
    const uint64_t call = place(o.node, o.call), on = place(o.on, o.on_call);
    if (call == UINT64_MAX || on == UINT64_MAX) continue;
    if (on >= call)
      ++contradicted;
    else
      fprintf(file, "%" PRIu64 " after %" PRIu64 "\n", call, on);
  }
  if (fclose(file) != 0) return errno_error("write " + edges, errno);
  return quiet_pipeline(
      {spec("feign", {{"file", kept}}), spec("depend", {{"rules", "process"}, {"edges", edges}}),
       spec("feign", {{"file", parts.to}})},
      plugins);
}

}  // namespace feign::discover
