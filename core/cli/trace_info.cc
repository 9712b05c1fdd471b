// SPDX-License-Identifier: MIT
#include "cli/trace_info.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/workload.h"
#include "cli/line.h"
#include "trace/last.h"
#include "trace/mpi_programs.h"
#include "window/pipeline.h"

namespace feign {

void TraceInfo::Access::add_size(uint64_t bytes) {
  constexpr size_t kMost = 4096;
  ++count;
  largest = std::max(largest, bytes);
  if (sizes.size() >= kMost && !sizes.contains(bytes)) bytes = std::bit_floor(bytes);
  ++sizes[bytes];
}

uint64_t TraceInfo::Access::size_at(double share) const {
  uint64_t seen = 0;
  for (const auto& [bytes, times] : sizes) {
    seen += times;
    if (static_cast<double>(seen) >= share * static_cast<double>(count)) return bytes;
  }
  return 0;
}

namespace {

// Splits time by layer: a call's own is what is left of it without the calls in it.
class ByLayer {
 public:
  ByLayer(const Tables& tables, TraceInfo& info) : tables_(tables), info_(info) {}
  void add(const feign_activity& a) {
    if (a.stream >= around_.size()) around_.resize(a.stream + size_t{1});
    auto& around = around_[a.stream];
    const uint32_t depth = FEIGN_DEPTH(a.marks);
    while (!around.empty() && around.back().first >= depth) around.pop_back();
    TraceInfo::Layer* const layer = layer_of(a.op);
    ++layer->activities;
    layer->own_ns += static_cast<int64_t>(a.duration_ns);
    if (!around.empty()) around.back().second->own_ns -= static_cast<int64_t>(a.duration_ns);
    if (std::none_of(around.begin(), around.end(),
                     [&](const auto& outer) { return outer.second == layer; }))
      layer->duration_ns += a.duration_ns;
    around.emplace_back(depth, layer);
  }

 private:
  TraceInfo::Layer* layer_of(uint32_t op) {
    if (op >= by_op_.size()) by_op_.resize(op + size_t{1});
    if (by_op_[op] == nullptr) {
      const feign_op_info* info = tables_.ops.info(op);
      by_op_[op] = &info_.layers[info != nullptr ? info->layer : "?"];
    }
    return by_op_[op];
  }
  const Tables& tables_;
  TraceInfo& info_;
  std::vector<TraceInfo::Layer*> by_op_;
  std::vector<std::vector<std::pair<uint32_t, TraceInfo::Layer*>>> around_;  // by stream: depth
};

// Where open files were read and written last, to tell how one call follows another.
class Patterns {
 public:
  void add(const feign_activity& a, uint64_t bytes, bool reads, TraceInfo::Access& to) {
    to.add_size(bytes);
    if (a.offset == FEIGN_NO_OFFSET) return;
    const auto [at, first] = last_.try_emplace({a.handle, reads});
    Last& last = at->second;
    const uint64_t stride = a.offset - last.start;
    if (!first) {
      if (a.offset == last.end)
        ++to.sequential;
      else if (stride != 0 && stride == last.stride)
        ++to.strided;
      else
        ++to.elsewhere;
    }
    last = {a.offset, a.offset + bytes, first ? 0 : stride};
  }
  void closed(uint32_t handle) {
    last_.erase({handle, true});
    last_.erase({handle, false});
  }

 private:
  struct Last {
    uint64_t start = 0, end = 0, stride = 0;
  };
  std::map<std::pair<uint32_t, bool>, Last> last_;  // by handle, of reads and of writes
};

}  // namespace

Result<TraceInfo> trace_info(const std::vector<PluginSpec>& specs, Plugins& plugins, Tables& tables,
                             const Progress& progress) {
  auto line = choose(specs, plugins);
  if (!line) return std::move(line.error());
  if (!line->replayers.empty() || !line->writers.empty())
    return Error(FEIGN_ERR_ARGUMENT, "info takes a provider and modifiers only");
  Extensions extensions;
  extensions.tables = &tables;
  auto left = make_left(*line, tables, extensions);
  if (!left) return std::move(left.error());

  TraceInfo info;
  info.provider = left->provider->name();
  info.first_ns = UINT64_MAX;
  // By file identity: no vector, for a damaged trace can name any number.
  std::unordered_map<uint32_t, TraceInfo::File> seen;
  std::vector<uint8_t> noisy;  // by path string: 0 not yet known, 1 no, 2 yes
  Patterns patterns;
  ByLayer by_layer(tables, info);
  mpi::Programs programs;
  bool at_once = false;
  const auto o_kind = [&](uint32_t id) {
    const feign_op_info* op = tables.ops.info(id);
    return op != nullptr ? op->kind : uint32_t{FEIGN_KIND_OTHER};
  };
  Pipeline pipeline(tables, *left->provider, left->in_order());
  const auto look = [&](feign_activity* const* items, size_t count) -> Result<void> {
    for (size_t i = 0; i < count; ++i) {
      const feign_activity& a = *items[i];
      ++info.activities;
      info.injected += (a.marks & FEIGN_INJECTED) != 0;
      by_layer.add(a);
      if (const Does does = mpi::does_of(a.op); does != Does::kNothing)
        at_once |= programs.at_once(tables.streams.info(a.stream), does);
      const uint64_t end = a.start_ns + a.duration_ns;
      info.first_ns = std::min(info.first_ns, a.start_ns);
      info.last_ns = std::max(info.last_ns, end);
      if (FEIGN_DEPTH(a.marks) == 0) {  // of what is in a call, the time is the call's
        info.compute_ns += a.compute_ns;
        info.sync_ns += a.sync_ns;
        const Call* const call = tables.ops.call(a.op);
        const bool waiting = call != nullptr && waits(call->effect);
        (waiting ? info.sync_ns : info.call_ns) += a.duration_ns;
      }
      if (a.op >= info.ops.size()) info.ops.resize(std::max(a.op + 1, tables.ops.size()));
      TraceInfo::Op& op = info.ops[a.op];
      ++op.count;
      op.duration_ns += a.duration_ns;
      if (a.result < 0) ++op.failed;
      if (a.marks & FEIGN_NOT_A_FILE) ++op.not_a_file;
      const bool process = o_kind(a.op) == FEIGN_KIND_PROCESS;
      if (!process && a.path != 0) {
        if (a.path >= noisy.size())
          noisy.resize(std::max<size_t>(a.path + 1, tables.strings.size()));
        uint8_t& answer = noisy[a.path];
        if (answer == 0) answer = is_noise(tables.strings.text(a.path).data()) ? 2 : 1;
        info.noise += answer == 2;
      } else if (!process && (a.marks & FEIGN_NOT_A_FILE)) {
        ++info.no_files;
      }
      const feign_op_info* o = tables.ops.info(a.op);
      const bool reads = o != nullptr && o->kind == FEIGN_KIND_READ;
      const bool writes = o != nullptr && o->kind == FEIGN_KIND_WRITE;
      const uint64_t bytes =
          (reads || writes) && a.result > 0 ? static_cast<uint64_t>(a.result) : 0;
      op.bytes += bytes;
      if (a.stream >= info.streams.size()) info.streams.resize(a.stream + size_t{1});
      TraceInfo::Stream& s = info.streams[a.stream];
      // Bytes that a call moved by way of calls in it count once, and so do those that a stream of
      // libc's keeps, whichever of its calls moves them on.
      if (FEIGN_DEPTH(a.marks) <= s.moved_depth) s.moved_depth = UINT32_MAX;
      const bool counts = s.moved_depth == UINT32_MAX;
      if (counts && (reads || writes || (o != nullptr && strcmp(o->layer, "stdio") == 0)))
        s.moved_depth = FEIGN_DEPTH(a.marks);
      const uint64_t counted = counts ? bytes : 0;
      if (counts && (reads || writes)) {
        if (reads) info.bytes_read += bytes;
        if (writes) info.bytes_written += bytes;
        if (bytes != 0 && a.handle != 0 && !(a.marks & FEIGN_NOT_A_FILE))
          patterns.add(a, bytes, reads, reads ? info.reads : info.writes);
      }
      if (const uint32_t last = last_of(a); last != 0) patterns.closed(last);
      if (s.activities++ == 0) s.first_ns = a.start_ns;
      s.last_ns = std::max(s.last_ns, end);
      if (a.file != 0 && (a.path != 0 || !(a.marks & FEIGN_NOT_A_FILE))) {
        TraceInfo::File& f = seen[a.file];
        if (f.calls++ == 0) f.path = tables.strings.text(a.path);
        // What a copy writes to is told by its values (core/resolve/calls.cc).
        const Call* const call = tables.ops.call(a.op);
        const bool copies = call != nullptr && call->effect == Effect::kCopy && a.value_count > 3;
        if (reads || (copies && a.handle != 0)) f.bytes_read += counted;
        if (writes && (!copies || a.handle == 0)) f.bytes_written += counted;
        if (copies && a.handle != 0 && a.values[2] != 0)
          seen[static_cast<uint32_t>(a.values[2])].bytes_written += counted;
      }
    }
    return {};
  };
  auto ran = pipeline.run(look, [&] {
    progress("info", info.activities, 0);
    return g_stop_signal.load(std::memory_order_relaxed) == 0;
  });
  if (!ran) return std::move(ran.error());
  if (const int signal = g_stop_signal.load(); signal != 0)
    return Error(FEIGN_ERR_IO, "interrupted by signal " + std::to_string(signal));
  if (at_once)
    tables.notes.push_back(std::string(mpi::kAtOnce) +
                           ": messages can be replayed of one alone (filter,process=…)");
  if (info.activities == 0) info.first_ns = 0;
  info.ops.resize(tables.ops.size());
  std::vector<TraceInfo::File> files;
  files.reserve(seen.size());
  for (auto& [file, f] : seen) files.push_back(std::move(f));
  info.file_count = files.size();
  const auto bytes = [](const TraceInfo::File& f) { return f.bytes_read + f.bytes_written; };
  const size_t top = std::min<size_t>(files.size(), 20);
  std::partial_sort(files.begin(), files.begin() + static_cast<ptrdiff_t>(top), files.end(),
                    [&](const auto& a, const auto& b) {
                      if (bytes(a) != bytes(b)) return bytes(a) > bytes(b);
                      return a.calls != b.calls ? a.calls > b.calls : a.path < b.path;
                    });
  files.resize(top);
  info.files = std::move(files);
  return info;
}

Result<DependencyInfo> dependency_info(const std::vector<PluginSpec>& specs, Plugins& plugins,
                                       const Progress& progress) {
  DependencyInfo info;
  // All of them first, then those that are left: a modifier has no other way to say numbers.
  for (const char* reduce : {"no", "yes"}) {
    const bool reduced = reduce[0] == 'y';
    auto line = choose(specs, plugins);
    if (!line) return std::move(line.error());
    if (auto added = add_depend(*line, {}, plugins); !added) return std::move(added.error());
    for (Chosen& c : line->modifiers)
      if (std::string_view(c.component.table->name) == "depend") {
        std::erase_if(c.spec.options, [](const auto& o) { return o.first == "reduce"; });
        c.spec.options.emplace_back("reduce", reduce);
      }
    Tables tables;
    Extensions extensions;
    auto left = make_left(*line, tables, extensions);
    if (!left) return std::move(left.error());
    Pipeline pipeline(tables, *left->provider, left->in_order());
    Chains chains;
    uint64_t passed = 0;
    auto ran = pipeline.run(
        [&](feign_activity* const* items, size_t count) -> Result<void> {
          for (size_t i = 0; i < count; ++i) {
            const Record& r = *Record::of(items[i]);
            for (const Dependency& d : r.depends) {
              const std::string_view name = tables.strings.text(d.rule);
              DependencyInfo::Rule& rule =
                  info.rules[name.empty() ? "recorded" : std::string(name)];
              ++(reduced ? rule.kept : rule.made);
            }
            if (reduced) chains.add(r);
          }
          passed += count;
          return {};
        },
        [&] {
          progress("dependencies", passed, info.activities);
          return g_stop_signal.load(std::memory_order_relaxed) == 0;
        });
    if (!ran) return std::move(ran.error());
    if (const int signal = g_stop_signal.load(); signal != 0)
      return Error(FEIGN_ERR_IO, "interrupted by signal " + std::to_string(signal));
    info.activities = passed;
    info.longest = chains.longest();
    info.widest = chains.widest();
  }
  return info;
}

}  // namespace feign
