// SPDX-License-Identifier: MIT
// What was found, as files: raw traces, the text and the trace that they make, dependencies.
#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/input.h"
#include "base/log.h"
#include "discover/discovery.h"

namespace feign::discover {

namespace fs = std::filesystem;

uint64_t Discovery::compute_of(const Node& node, size_t call) const {
  const IoCall& c = node.first.calls[call];
  const uint64_t blocking = c.gap_ns - c.waited_ns;
  if (options_.compute == ComputeFrom::kBlocking || node.least_gap.empty()) return blocking;
  return std::min(blocking, node.least_gap[call]);
}

// Raw traces "I.J": node I while J was throttled. I.I has its SIGNALs and COMPUTE, the others
// WAITs.
Result<void> Discovery::write_raw() {
  std::error_code e;
  fs::create_directory(folder_.path("raw"), e);
  for (uint32_t j = 0; j < nodes_.size(); ++j) {
    std::vector<const Found*> on_j;
    for (const Edge& edge : report_.edges)
      if (edge.on == j) on_j.push_back(&edge.found);
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      if (i != j && !report_.nodes[j].throttled &&
          std::none_of(on_j.begin(), on_j.end(), [&](const Found* f) { return f->node == i; }))
        continue;
      const std::string path = folder_.path("raw/trace." + std::to_string(report_.nodes[i].number) +
                                            "." + std::to_string(report_.nodes[j].number));
      FILE* file = fopen(path.c_str(), "we");
      if (file == nullptr) return errno_error("open " + path, errno);
      raw_files_.push_back(path);
      const auto& calls = nodes_[i].first.calls;
      fprintf(file, "/* node %u (%s)", report_.nodes[i].number, nodes_[i].key.c_str());
      if (i != j || report_.nodes[j].throttled)
        fprintf(file, " while node %u was throttled", report_.nodes[j].number);
      fprintf(file, " */\n");
      std::multimap<uint64_t, uint32_t> signals, waits;
      for (const Found* f : on_j) {
        if (i == j) signals.emplace(f->on_call, report_.nodes[f->node].number);
        if (f->node == i) waits.emplace(f->call, report_.nodes[j].number);
      }
      for (size_t c = 0; c < calls.size(); ++c) {
        if (i == j) {
          const uint64_t ns = compute_of(nodes_[i], c);
          if (ns != 0)
            fprintf(file, "COMPUTE(%" PRIu64 ".%09" PRIu64 ")\n", ns / 1000000000, ns % 1000000000);
        }
        for (auto [at, end] = waits.equal_range(c); at != end; ++at)
          fprintf(file, "WAIT(%u)\n", at->second);
        fprintf(file, "%s%s\n", calls[c].before.c_str(), calls[c].text.c_str());
        for (auto [at, end] = signals.equal_range(c); at != end; ++at)
          fprintf(file, "SIGNAL(%u)\n", at->second);
      }
      const bool good = ferror(file) == 0;
      if (fclose(file) != 0 || !good) return errno_error("write " + path, errno);
    }
  }
  return {};
}

Result<void> Discovery::merge() {
  PipelineOptions pipeline;
  PluginSpec provider, text;
  provider.name = "tracetext";
  provider.options = {{"merge", "yes"}, {"reduce", "yes"}};
  for (const std::string& file : raw_files_) provider.options.emplace_back("file", file);
  text.name = "tracetext";
  text.options = {{"file", folder_.path("trace.tracetext")}};
  pipeline.plugins = {provider, text};
  Tables tables;
  // What the text leaves out is nothing that it ever had.
  const int level = log_level();
  set_log_level(FEIGN_LOG_ERROR);
  auto result = run_pipeline(pipeline, plugins_, tables, progress_);
  set_log_level(level);
  if (!result) return std::move(result.error()).within("merge the raw traces");
  for (const auto& entry : fs::directory_iterator(folder_.path(""))) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("trace.tracetext")) continue;
    FILE* file = fopen(entry.path().c_str(), "re");
    char line[256];
    while (file != nullptr && fgets(line, sizeof line, file) != nullptr)
      report_.kept += strncmp(line, "WAIT(", 5) == 0;
    if (file != nullptr) fclose(file);
  }
  report_.trace = folder_.final_path("trace.feign");
  report_.text = folder_.final_path("trace.tracetext");
  TraceParts parts;
  parts.from = work("first.feign");
  parts.to = folder_.path("trace.feign");
  parts.work = folder_.path("work");
  parts.ranks = ranked_;
  parts.numbers = &numbers_;
  parts.index = index_;
  for (const Edge& e : report_.edges)
    parts.orders.push_back({e.found.node, e.on, e.found.call, e.found.on_call});
  parts.compute_ns = [this](uint32_t node, uint64_t call) {
    return call < nodes_[node].first.calls.size() ? compute_of(nodes_[node], call) : 0;
  };
  if (auto ok = write_trace(parts, plugins_, report_.contradicted); !ok)
    return std::move(ok.error()).within("make the trace");
  return {};
}

// All that were found, before reduction, and how sure each is.
Result<void> Discovery::write_dependencies() {
  const std::string path = folder_.path("dependencies");
  FILE* file = fopen(path.c_str(), "we");
  if (file == nullptr) return errno_error("open " + path, errno);
  fprintf(file, "# node call after node call  seen  means  what\n");
  for (const Edge& e : report_.edges) {
    const Found& f = e.found;
    const std::string& text = nodes_[f.node].first.calls[f.call].text;
    fprintf(file, "%u %" PRIu64 " after %u %" PRIu64 "  %u  %s", report_.nodes[f.node].number,
            f.call, report_.nodes[e.on].number, f.on_call, f.seen, means(f).c_str());
    if (f.latest != f.on_call) fprintf(file, " (up to %" PRIu64 ")", f.latest);
    if (!f.stuck_in.empty()) fprintf(file, " in %s", f.stuck_in.c_str());
    if (!f.shown_by.empty()) fprintf(file, " by %s", f.shown_by.c_str());
    fprintf(file, "  %s\n", text.c_str());
  }
  const bool good = ferror(file) == 0;
  if (fclose(file) != 0 || !good) return errno_error("write " + path, errno);
  return {};
}

}  // namespace feign::discover
