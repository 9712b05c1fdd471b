// SPDX-License-Identifier: MIT
#include "report/report.h"

#include <algorithm>
#include <cstring>

#include "report/format.h"
#include "report/json_writer.h"

namespace feign {
namespace {

std::string result(int64_t r) {
  if (r >= 0) return std::to_string(r);
  const char* name = r > -4096 ? strerrorname_np(static_cast<int>(-r)) : nullptr;
  return name != nullptr ? name : std::to_string(r);
}

double seconds(uint64_t ns) { return static_cast<double>(ns) / 1e9; }

// A name and its numbers, in a table whose names have this width.
std::string row(const std::string& name, const std::vector<std::string>& cells, int width = 14) {
  std::string out = format("  %-*s", width, name.c_str());
  for (const std::string& c : cells) out += format(" %9s", c.c_str());
  return out + "\n";
}

constexpr double kPercentiles[] = {0.5, 0.9, 0.99, 0.999};
// Rows of tables that could have thousands.
constexpr size_t kRows = 10;
// Where the rows of the lateness histogram end, ns; the last one has none.
constexpr uint64_t kLate[] = {1'000,   3'000,     10'000,     30'000,      100'000,
                              300'000, 1'000'000, 10'000'000, 100'000'000, 1'000'000'000};

std::string bar(double share) { return std::string(static_cast<size_t>(share * 40 + 0.5), '#'); }

std::string percent(uint64_t part, uint64_t whole) {
  return whole == 0
             ? "-"
             : format("%.0f %%", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

// A stream as a person knows it: its process, or its rank.
std::string stream_name(const Tables& tables, uint32_t number) {
  const feign_stream_info info = tables.streams.info(number);
  std::string name = "stream " + std::to_string(number);
  if (info.rank >= 0) return name + " (rank " + std::to_string(info.rank) + ")";
  if (info.thread > 0) return name + " (pid " + std::to_string(info.thread) + ")";
  return name;
}

// How many samples lie in each row of kLate, and past it.
std::vector<uint64_t> late_rows(const Histogram& h) {
  std::vector<uint64_t> rows;
  uint64_t before = 0;
  for (const uint64_t end : kLate) {
    const uint64_t seen = h.up_to(end - 1);
    rows.push_back(seen - before);
    before = seen;
  }
  rows.push_back(h.count() - before);
  return rows;
}

std::string lateness_text(const Histogram& h) {
  if (h.count() == 0) return {};
  std::string out = "\ncalls by how late they began\n";
  const std::vector<uint64_t> rows = late_rows(h);
  const uint64_t most = *std::max_element(rows.begin(), rows.end());
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] == 0) continue;
    const std::string name = i < std::size(kLate) ? "under " + format_time(kLate[i]) : "more";
    out += format("  %-14s %9s  ", name.c_str(), format_count(rows[i]).c_str()) +
           bar(static_cast<double>(rows[i]) / static_cast<double>(most)) + "\n";
  }
  return out;
}

// The streams that were longest in calls and in waiting.
std::string streams_text(const Report& r, const Tables& tables) {
  if (r.streams.size() < 2) return {};
  const bool timed = r.lateness().count() != 0;
  std::vector<const StreamReport*> list;
  for (const StreamReport& s : r.streams) list.push_back(&s);
  std::stable_sort(list.begin(), list.end(), [](const auto* a, const auto* b) {
    return a->call_ns + a->wait_ns > b->call_ns + b->wait_ns;
  });
  std::string out = "\nby stream\n" + format("  %-24s", "");
  for (const char* c : {"count", "calls", "pauses", "waiting"}) out += format(" %9s", c);
  if (timed) out += format(" %9s %9s", "late p50", "late p99");
  out += "\n";
  for (size_t i = 0; i < list.size() && i < kRows; ++i) {
    const StreamReport& s = *list[i];
    out += format("  %-24s %9s %9s %9s %9s", stream_name(tables, s.stream).c_str(),
                  format_count(s.activities).c_str(), format_time(s.call_ns).c_str(),
                  format_time(s.pause_ns).c_str(), format_time(s.wait_ns).c_str());
    if (timed)
      out += format(" %9s %9s", format_time(s.lateness.percentile(0.5)).c_str(),
                    format_time(s.lateness.percentile(0.99)).c_str());
    out += "\n";
  }
  if (list.size() > kRows)
    out += "  … and " + format_count(list.size() - kRows) + " more (--json has all)\n";
  return out;
}

// Time that a rank spends itself, not waiting for others in messages or dependencies.
uint64_t own_ns(const RankReport& r) { return r.io_ns + r.pause_ns; }

// The rank that has most to do itself, and by how much that is more than the mean.
const RankReport* slowest_rank(const Report& r, double& imbalance) {
  const RankReport* slowest = nullptr;
  double sum = 0;
  size_t busy = 0;
  for (const RankReport& one : r.ranks) {
    if (!one.there || one.streams == 0) continue;
    if (slowest == nullptr || own_ns(one) > own_ns(*slowest)) slowest = &one;
    sum += static_cast<double>(own_ns(one));
    ++busy;
  }
  imbalance =
      sum > 0 ? static_cast<double>(own_ns(*slowest)) * static_cast<double>(busy) / sum - 1 : 0;
  return slowest;
}

std::string ranks_text(const Report& r) {
  if (r.ranks.empty()) return {};
  std::string out = "\nby rank\n" + format("  %-24s", "");
  for (const char* c : {"streams", "count", "I/O", "messages", "pauses", "waiting", "ended at",
                        "ready in", "memory"})
    out += format(" %9s", c);
  out += "\n";
  constexpr size_t kMost = 32;
  double imbalance = 0;
  const RankReport* slowest = slowest_rank(r, imbalance);
  for (size_t i = 0; i < r.ranks.size(); ++i) {
    const RankReport& one = r.ranks[i];
    if (i >= kMost && &one != slowest) continue;
    out += format("  %-24s", (std::to_string(one.rank) + " on " + one.host).c_str());
    if (!one.there) {
      out += "  told nothing: it was still in a call, or is gone\n";
      continue;
    }
    for (const std::string& cell :
         {format_count(one.streams), format_count(one.activities), format_time(one.io_ns),
          format_time(one.communication_ns), format_time(one.pause_ns), format_time(one.wait_ns),
          format_time(one.last_ns), format_time(one.ready_ns), format_bytes(one.memory)})
      out += format(" %9s", cell.c_str());
    out += "\n";
  }
  if (r.ranks.size() > kMost)
    out += "  … " + format_count(r.ranks.size() - kMost) + " more (--json has all)\n";
  if (slowest != nullptr && own_ns(*slowest) != 0)
    out += "  rank " + std::to_string(slowest->rank) +
           " has most to do itself (I/O and pauses): " + format_time(own_ns(*slowest)) +
           format(", %.0f %% more than the mean\n", imbalance * 100);
  return out;
}

std::string concurrency_text(const Report& r) {
  const double most =
      r.concurrency.empty() ? 0 : *std::max_element(r.concurrency.begin(), r.concurrency.end());
  if (most <= 0) return {};
  std::string out = "\nstreams in calls at a time, by tenths of the run\n";
  for (size_t i = 0; i < r.concurrency.size(); ++i)
    out += format("  %3zu %%  %8.2f  ", i * 100 / r.concurrency.size(), r.concurrency[i]) +
           bar(r.concurrency[i] / most) + "\n";
  return out;
}

std::string rules_text(const Report& r) {
  if (r.rules.empty()) return {};
  std::string out =
      "\nstreams waited for each other\n" + row("by rule", {"count", "in all", "longest"});
  for (const auto& [rule, w] : r.rules)
    out += row(rule.empty() ? "not said" : rule,
               {format_count(w.count), format_time(w.wait_ns), format_time(w.longest_ns)});
  return out;
}

std::string path_text(const Report& r, const Tables& tables) {
  const CriticalPath& p = r.path;
  if (p.steps < 2) return {};
  const uint64_t length = p.to_ns - p.from_ns;
  const uint64_t known = std::min(length, p.call_ns + p.pause_ns);
  std::string out = "\ncritical path: " + format_time(length) + " in " + format_count(p.steps) +
                    " steps: calls " + percent(p.call_ns, length) + ", pauses " +
                    percent(p.pause_ns, length) + ", the rest (hand-over, bookkeeping) " +
                    percent(length - known, length) + "\n";
  if (p.steps > p.longest.size())
    out += "  its " + std::to_string(p.longest.size()) + " longest steps:\n";
  if (!p.complete)
    out += "  (before " + format_time(p.from_ns) + " the waits are no longer known)\n";
  for (const PathStep& s : p.longest) {
    out += format("  at %9s for %9s  ", format_time(s.from_ns).c_str(),
                  format_time(s.to_ns - s.from_ns).c_str()) +
           stream_name(tables, s.stream) + ": " + format_count(s.activities) +
           " activities, calls " + format_time(s.call_ns) + ", pauses " + format_time(s.pause_ns);
    if (s.op != 0)
      out += "; from " + op_name(tables, s.op) + " at " + tables.place(s.place) + ", which waited" +
             (s.waited_for != 0 ? " for stream " + std::to_string(s.waited_for) : std::string()) +
             " (" + std::string(tables.strings.text(s.rule)) + ")";
    out += "\n";
  }
  return out;
}

}  // namespace

void OpCounts::add(const OpCounts& o) {
  activities += o.activities;
  replayed += o.replayed;
  emulated += o.emulated;
  matched += o.matched;
  mismatched += o.mismatched;
  skipped += o.skipped;
  bytes_read += o.bytes_read;
  bytes_written += o.bytes_written;
  recorded_bytes_read += o.recorded_bytes_read;
  recorded_bytes_written += o.recorded_bytes_written;
}

void OpReport::merge(const OpReport& o) {
  add(o);
  latency.merge(o.latency);
  recorded_latency.merge(o.recorded_latency);
}

OpReport& Report::op(uint32_t id) {
  if (id >= ops.size()) ops.resize(id + size_t{1});
  if (!ops[id]) ops[id] = std::make_unique<OpReport>();
  return *ops[id];
}

Histogram Report::lateness() const {
  Histogram sum;
  for (const StreamReport& s : streams) sum.merge(s.lateness);
  return sum;
}

OpCounts Report::total() const {
  OpCounts sum;
  for (const auto& o : ops)
    if (o) sum.add(*o);
  return sum;
}

double Report::fidelity() const {
  const OpCounts sum = total();
  const uint64_t judged = sum.matched + sum.mismatched;
  return judged == 0 ? 1.0 : static_cast<double>(sum.matched) / static_cast<double>(judged);
}

namespace {

// What was replayed and how it went, a line each.
std::string summary_text(const Report& r) {
  const OpCounts sum = r.total();
  std::string out;
  const auto line = [&](const char* name, const std::string& text) {
    out += format("%-10s ", name) + text + "\n";
  };
  line("trace", r.trace);
  if (!r.root.empty()) line("root", r.root);
  line("replay", r.replayer + ", pace " + r.pace);
  if (r.interrupted) line("ENDED", "before the plan did: " + r.stopped_by);
  std::string before;
  if (r.prepare_ns + r.plan_ns != 0)
    before = "   before it: " + (r.join_ns != 0 ? "MPI " + format_time(r.join_ns) + ", " : "") +
             "plan " + format_time(r.plan_ns) + ", prepare " + format_time(r.prepare_ns);
  line("wall", format_time(r.wall_ns) + "   recorded " + format_time(r.recorded_ns) + before);
  const double rate = r.wall_ns != 0 ? static_cast<double>(sum.replayed) / seconds(r.wall_ns) : 0;
  line("activities", format_count(sum.activities) + "   replayed " + format_count(sum.replayed) +
                         " (" + format_count(sum.emulated) + " as bookkeeping)   skipped " +
                         format_count(sum.skipped) + "   " +
                         format_count(static_cast<uint64_t>(rate)) + "/s");
  line("bytes", "read " + format_bytes(sum.bytes_read) + " of " +
                    format_bytes(sum.recorded_bytes_read) + "   written " +
                    format_bytes(sum.bytes_written) + " of " +
                    format_bytes(sum.recorded_bytes_written));
  // Not rounded up to 100 % while one differs.
  double share = r.fidelity() * 100;
  if (sum.mismatched != 0) share = std::min(share, 99.99);
  const uint64_t compared = sum.matched + sum.mismatched;
  line("fidelity", compared == 0 ? "nothing came back that could be compared"
                                 : format("%.2f %%   ", share) + format_count(sum.matched) +
                                       " of " + format_count(compared) + " came back as recorded");
  if (const Histogram late = r.lateness(); late.count() != 0)
    line("late", "p50 " + format_time(late.percentile(0.5)) + "   p90 " +
                     format_time(late.percentile(0.9)) + "   p99 " +
                     format_time(late.percentile(0.99)) + "   max " + format_time(late.max()));
  if (!r.ranks.empty())
    line("ranks", format_count(r.ranks.size()) +
                      (r.map.empty() ? ", recorded rank r on rank r" : ", map " + r.map));
  if (r.streams.size() > 1)
    line("streams",
         format_count(r.streams.size()) + " on " + format_count(r.workers, "thread", "threads"));
  if (r.dropped + r.merged + r.injected != 0)
    line("modifiers", "dropped " + format_count(r.dropped) +
                          (r.merged == 0 ? "" : "   merged " + format_count(r.merged)) +
                          "   injected " + format_count(r.injected));
  if (r.prepared_files + r.prepared_directories + r.prepared_links != 0)
    line("prepared",
         format_count(r.prepared_files, "file", "files") + " (" + format_bytes(r.prepared_bytes) +
             (r.prepared_content == "sparse" && r.prepared_bytes != 0
                  ? ", sparse: reading them costs no storage; --content random writes them"
                  : "") +
             "), " + format_count(r.prepared_directories, "directory", "directories") + ", " +
             format_count(r.prepared_links, "link", "links"));
  if (!r.caches.empty())
    line("caches",
         r.caches == "all" ? "dropped" : "dropped of " + r.caches + " below the root; names kept");
  for (const std::string& note : r.notes) line("note", note);
  return out;
}

}  // namespace

// A terminal shows the end of it: there stands what matters most.
std::string report_text(const Report& r, const Tables& tables) {
  std::string out;
  std::vector<uint32_t> ids;
  for (uint32_t id = 0; id < r.ops.size(); ++id)
    if (r.ops[id]) ids.push_back(id);
  std::sort(ids.begin(), ids.end(),
            [&](uint32_t a, uint32_t b) { return r.ops[a]->activities > r.ops[b]->activities; });
  int names = 14;
  for (const uint32_t id : ids)
    names = std::max(names, static_cast<int>(op_name(tables, id).size()));
  out += "by op, replayed above, recorded below\n";
  out += row("", {"count", "bytes", "p50", "p90", "p99", "p99.9", "max"}, names);
  for (const uint32_t id : ids) {
    const OpReport& o = *r.ops[id];
    const auto cells = [&](uint64_t n, uint64_t moved, const Histogram& h) {
      std::vector<std::string> c{format_count(n), moved != 0 ? format_bytes(moved) : "-"};
      for (const uint64_t ns : h.percentiles(kPercentiles))
        c.push_back(h.count() != 0 ? format_time(ns) : "-");
      c.push_back(h.count() != 0 ? format_time(h.max()) : "-");
      return c;
    };
    out += row(op_name(tables, id), cells(o.activities, o.bytes_read + o.bytes_written, o.latency),
               names);
    if (o.latency.count() != 0) {
      auto recorded =
          cells(0, o.recorded_bytes_read + o.recorded_bytes_written, o.recorded_latency);
      recorded[0].clear();
      out += row("", recorded, names);
    }
  }

  out += lateness_text(r.lateness());
  out += ranks_text(r);
  out += streams_text(r, tables);
  out += concurrency_text(r);
  out += rules_text(r);
  out += path_text(r, tables);

  if (!r.skips.empty()) {
    int skipped = 12;
    for (const auto& [key, n] : r.skips)
      skipped = std::max(skipped, static_cast<int>(op_name(tables, key.first).size()));
    out += "\nskipped\n";
    for (const auto& [key, n] : r.skips)
      out += format("  %9s  %-*s ", format_count(n).c_str(), skipped,
                    op_name(tables, key.first).c_str()) +
             key.second + "\n";
  }
  if (!r.left_out.empty()) {
    out += "\nin the trace, but no activity\n";
    std::map<std::string, std::pair<uint64_t, std::string>> by_why;
    for (const auto& [key, l] : r.left_out) {
      auto& [n, calls] = by_why[key.second];
      n += l.count;
      calls += (calls.empty() ? "" : " ") + key.first;
    }
    for (const auto& [why, entry] : by_why) {
      std::string calls = entry.second;
      if (calls.size() > 60) calls = calls.substr(0, calls.rfind(' ', 57)) + " …";
      out += format("  %9s  ", format_count(entry.first).c_str()) + why + ": " + calls + "\n";
    }
  }
  if (!r.mismatches.empty()) {
    out += "\ncame back otherwise\n";
    std::vector<std::pair<MismatchKey, Mismatch>> list(r.mismatches.begin(), r.mismatches.end());
    std::sort(list.begin(), list.end(),
              [](const auto& a, const auto& b) { return a.second.count > b.second.count; });
    for (size_t i = 0; i < list.size() && i < 20; ++i) {
      const auto& [key, m] = list[i];
      out += format("  %9s  %-12s recorded %s, replayed %s; first ", format_count(m.count).c_str(),
                    op_name(tables, std::get<0>(key)).c_str(), result(std::get<1>(key)).c_str(),
                    result(std::get<2>(key)).c_str());
      out += tables.place(m.first_place) + (m.first_path.empty() ? "" : " " + m.first_path) + "\n";
    }
    if (list.size() > 20)
      out += "  … and " + format_count(list.size() - 20) + " more kinds (--json has all)\n";
  }
  return out + "\n" + summary_text(r);
}

namespace {

void add_counts(JsonWriter& j, const OpCounts& o) {
  j.add("activities", o.activities);
  j.add("replayed", o.replayed);
  j.add("emulated", o.emulated);
  j.add("matched", o.matched);
  j.add("mismatched", o.mismatched);
  j.add("skipped", o.skipped);
  j.add("bytes_read", o.bytes_read);
  j.add("bytes_written", o.bytes_written);
  j.add("recorded_bytes_read", o.recorded_bytes_read);
  j.add("recorded_bytes_written", o.recorded_bytes_written);
}

void add_latency(JsonWriter& j, const Histogram& h) {
  const auto at = h.percentiles(kPercentiles);
  j.add("count", h.count());
  j.add("mean", h.count() != 0 ? h.sum() / h.count() : 0);
  j.add("p50", at[0]);
  j.add("p90", at[1]);
  j.add("p99", at[2]);
  j.add("p999", at[3]);
  j.add("max", h.max());
}

void add_ops(JsonWriter& j, const Report& r, const Tables& tables) {
  j.object("ops", [&] {
    for (uint32_t id = 0; id < r.ops.size(); ++id) {
      if (!r.ops[id]) continue;
      const OpReport& o = *r.ops[id];
      j.object(op_name(tables, id), [&] {
        add_counts(j, o);
        j.add("seconds", seconds(o.latency.sum()));
        j.add("recorded_seconds", seconds(o.recorded_latency.sum()));
        j.object("latency", [&] {
          add_latency(j, o.latency);
          j.array("histogram", [&] {
            for (const auto& [upper, count] : o.latency.coarse()) j.row(upper, count);
          });
        });
        j.object("recorded_latency", [&] { add_latency(j, o.recorded_latency); });
      });
    }
  });
}

void add_otherwise(JsonWriter& j, const Report& r, const Tables& tables) {
  j.array("mismatches", [&] {
    for (const auto& one : r.mismatches)
      j.object([&] {
        const auto& [op, recorded, replayed] = one.first;
        const Mismatch& m = one.second;
        const uint32_t source = FEIGN_PLACE_SOURCE(m.first_place);
        j.add("op", op_name(tables, op));
        j.add("recorded", recorded);
        j.add("replayed", replayed);
        j.add("count", m.count);
        j.object("first", [&] {
          j.add("source", source < tables.sources.size() ? tables.sources[source] : "");
          j.add("line", FEIGN_PLACE_LINE(m.first_place));
          j.add("path", m.first_path);
        });
      });
  });
  j.array("skips", [&] {
    for (const auto& one : r.skips)
      j.object([&] {
        const auto& [key, n] = one;
        j.add("op", op_name(tables, key.first));
        j.add("why", key.second);
        j.add("count", n);
      });
  });
  j.array("left_out", [&] {
    for (const auto& one : r.left_out)
      j.object([&] {
        const auto& [key, l] = one;
        j.add("call", key.first);
        j.add("why", key.second);
        j.add("count", l.count);
        j.add("seconds", seconds(l.duration_ns));
      });
  });
}

void add_lateness(JsonWriter& j, const Histogram& late) {
  if (late.count() == 0) return;
  j.object("lateness", [&] {
    add_latency(j, late);
    j.array("histogram", [&] {
      const std::vector<uint64_t> rows = late_rows(late);
      for (size_t i = 0; i < rows.size(); ++i)
        j.object([&] {
          if (i < std::size(kLate))
            j.add("below", kLate[i]);
          else
            j.add("below", nullptr);
          j.add("count", rows[i]);
        });
    });
  });
}

void add_waits(JsonWriter& j, const Report& r, const Tables& tables) {
  j.add("workers", r.workers);
  j.array("concurrency", [&] {
    for (const double streams : r.concurrency) j.add(streams);
  });
  j.array("waits", [&] {
    for (const auto& one : r.rules)
      j.object([&] {
        const auto& [rule, w] = one;
        j.add("rule", rule);
        j.add("count", w.count);
        j.add("seconds", seconds(w.wait_ns));
        j.add("longest_seconds", seconds(w.longest_ns));
      });
  });
  const CriticalPath& path = r.path;
  j.object("critical_path", [&] {
    j.add("complete", path.complete);
    j.add("steps", path.steps);
    j.add("seconds", seconds(path.to_ns - path.from_ns));
    j.add("call_seconds", seconds(path.call_ns));
    j.add("pause_seconds", seconds(path.pause_ns));
    j.array("longest", [&] {
      for (const PathStep& s : path.longest)
        j.object([&] {
          j.add("stream", s.stream);
          j.add("from_seconds", seconds(s.from_ns));
          j.add("to_seconds", seconds(s.to_ns));
          j.add("call_seconds", seconds(s.call_ns));
          j.add("pause_seconds", seconds(s.pause_ns));
          j.add("activities", s.activities);
          j.add("op", s.op != 0 ? op_name(tables, s.op) : "");
          j.add("place", s.op != 0 ? tables.place(s.place) : "");
          j.add("waited_for", s.waited_for);
          j.add("rule", tables.strings.text(s.rule));
        });
    });
  });
}

void add_ranks(JsonWriter& j, const Report& r) {
  if (!r.ranks.empty()) {
    double imbalance = 0;
    const RankReport* slowest = slowest_rank(r, imbalance);
    j.add("map", r.map);
    j.add("imbalance", imbalance);
    if (slowest != nullptr)
      j.add("slowest_rank", slowest->rank);
    else
      j.add("slowest_rank", nullptr);
  }
  j.array("ranks", [&] {
    for (const RankReport& one : r.ranks)
      j.object([&] {
        j.add("rank", one.rank);
        j.add("host", one.host);
        j.add("there", one.there);
        j.add("streams", one.streams);
        j.add("activities", one.activities);
        j.add("mismatched", one.mismatched);
        j.add("bytes", one.bytes);
        j.add("first_seconds", seconds(one.first_ns));
        j.add("last_seconds", seconds(one.last_ns));
        j.add("io_seconds", seconds(one.io_ns));
        j.add("communication_seconds", seconds(one.communication_ns));
        j.add("pause_seconds", seconds(one.pause_ns));
        j.add("wait_seconds", seconds(one.wait_ns));
        j.add("ready_seconds", seconds(one.ready_ns));
        j.add("memory", one.memory);
      });
  });
}

void add_streams(JsonWriter& j, const Report& r, const Tables& tables) {
  j.array("streams", [&] {
    for (const StreamReport& s : r.streams)
      j.object([&] {
        const feign_stream_info info = tables.streams.info(s.stream);
        j.add("stream", s.stream);
        j.add("process", info.process);
        j.add("thread", info.thread);
        j.add("rank", info.rank);
        j.add("activities", s.activities);
        j.add("call_seconds", seconds(s.call_ns));
        j.add("pause_seconds", seconds(s.pause_ns));
        j.add("wait_seconds", seconds(s.wait_ns));
        if (s.lateness.count() != 0) j.object("lateness", [&] { add_latency(j, s.lateness); });
      });
  });
}

}  // namespace

std::string report_json(const Report& r, const Tables& tables) {
  JsonWriter j;
  j.object([&] {
    j.add("schema", "feign-report/1");
    j.add("version", FEIGN_VERSION);
    j.add("trace", r.trace);
    j.add("root", r.root);
    j.add("replayer", r.replayer);
    j.add("pace", r.pace);
    add_counts(j, r.total());
    j.add("fidelity", r.fidelity());
    j.add("seconds", seconds(r.wall_ns));
    j.add("recorded_seconds", seconds(r.recorded_ns));
    if (r.join_ns != 0) j.add("mpi_seconds", seconds(r.join_ns));
    j.add("plan_seconds", seconds(r.plan_ns));
    j.add("prepare_seconds", seconds(r.prepare_ns));
    j.add("interrupted", r.interrupted);
    j.add("stopped_by", r.stopped_by);
    j.add("dropped", r.dropped);
    j.add("merged", r.merged);
    j.add("injected", r.injected);
    j.object("prepared", [&] {
      j.add("files", r.prepared_files);
      j.add("directories", r.prepared_directories);
      j.add("links", r.prepared_links);
      j.add("bytes", r.prepared_bytes);
      j.add("content", r.prepared_content);
    });
    j.add("caches", r.caches.empty() ? "kept" : r.caches);
    j.array("notes", [&] {
      for (const std::string& note : r.notes) j.add(note);
    });
    add_ops(j, r, tables);
    add_otherwise(j, r, tables);
    add_lateness(j, r.lateness());
    add_waits(j, r, tables);
    add_ranks(j, r);
    add_streams(j, r, tables);
  });
  return j.take() + "\n";
}

}  // namespace feign
