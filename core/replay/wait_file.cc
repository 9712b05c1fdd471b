// SPDX-License-Identifier: MIT
#include "replay/wait_file.h"

#include <algorithm>
#include <cinttypes>

#include "base/output.h"
#include "report/format.h"

namespace feign {
namespace {

struct Call {
  uint64_t number = 0, place = 0;
  uint32_t op = 0, path = 0;
};
struct Line {
  const Waited* wait;
  Call waits, awaited;
};

std::string text_of(const Call& c, const Tables& tables) {
  if (c.op == 0) return "-";
  std::string out = std::to_string(c.number) + " " + op_name(tables, c.op);
  if (c.path != 0) out += " " + std::string(tables.strings.text(c.path));
  std::replace_if(
      out.begin(), out.end(), [](unsigned char x) { return x < ' '; }, '?');
  return out;
}

// What is looked for, in the order of the trace: the activity that waited, and the last of the
// other stream that it waited for.
Result<void> find(const std::shared_ptr<const NativeReader>& plan, std::vector<Line>& lines) {
  std::vector<size_t> waits(lines.size());
  for (size_t i = 0; i < waits.size(); ++i) waits[i] = i;
  std::vector<size_t> awaited = waits;
  const auto sort_by = [&](std::vector<size_t>& order, uint64_t Waited::*id) {
    std::sort(order.begin(), order.end(),
              [&](size_t a, size_t b) { return lines[a].wait->*id < lines[b].wait->*id; });
  };
  sort_by(waits, &Waited::id);
  sort_by(awaited, &Waited::for_id);
  std::vector<Call> last;  // by stream
  Call before;             // over all streams
  NativeReader::Cursor cursor(plan, {});
  Record r{};
  uint64_t number = 0;
  size_t w = 0, f = 0;
  while (w < waits.size() || f < awaited.size()) {
    auto more = cursor.next(r, number);
    if (!more) return std::move(more.error());
    const uint64_t id = *more ? r.a.id : UINT64_MAX;
    for (; f < awaited.size() && lines[awaited[f]].wait->for_id < id; ++f) {
      Line& line = lines[awaited[f]];
      const uint32_t stream = line.wait->for_stream;
      if (stream == 0)
        line.awaited = before;
      else if (stream < last.size())
        line.awaited = last[stream];
    }
    if (!*more) return {};
    const Call call{number, r.a.place, r.a.op, r.a.path};
    for (; w < waits.size() && lines[waits[w]].wait->id <= id; ++w) lines[waits[w]].waits = call;
    if (r.a.stream >= last.size()) last.resize(r.a.stream + size_t{1});
    last[r.a.stream] = before = call;
  }
  return {};
}

}  // namespace

Result<void> write_waits(const std::string& path, const std::shared_ptr<const NativeReader>& plan,
                         const Tables& tables, const std::vector<WorkerTime>& workers,
                         uint64_t begin_ns) {
  std::vector<Line> lines;
  bool complete = true;
  for (const WorkerTime& w : workers) {
    w.waits->each([&](const Waited& one) {  // a stream that has not begun waits for nobody
      if (tables.strings.text(one.rule) != "fork") lines.push_back({&one, {}, {}});
    });
    complete = complete && w.waits->complete();
  }
  if (auto done = find(plan, lines); !done) return done;
  std::sort(lines.begin(), lines.end(),
            [](const Line& a, const Line& b) { return a.wait->from_ns < b.wait->from_ns; });
  std::string text =
      "since_us\twaited_us\tstream\tcall\tfor_stream\tfor_call\trule\tplace\tfor_place\n";
  if (!complete) text += "# the first waits are missing: there were more than are kept\n";
  for (const Line& l : lines) {
    const Waited& w = *l.wait;
    text +=
        format("%.3f\t%.3f\t%" PRIu32 "\t%s\t%" PRIu32 "\t%s\t%s\t%s\t%s\n",
               static_cast<double>(w.from_ns - std::min(begin_ns, w.from_ns)) / 1000,
               static_cast<double>(w.to_ns - std::min(w.from_ns, w.to_ns)) / 1000, w.stream,
               text_of(l.waits, tables).c_str(), w.for_stream, text_of(l.awaited, tables).c_str(),
               std::string(tables.strings.text(w.rule)).c_str(), tables.place(w.place).c_str(),
               l.awaited.op != 0 ? tables.place(l.awaited.place).c_str() : "-");
  }
  return put_text(text, path);
}

}  // namespace feign
