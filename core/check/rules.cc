// SPDX-License-Identifier: MIT
#include "check/rules.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/output.h"
#include "layers/posix_ops.h"
#include "plugin/options.h"

namespace feign::check {
namespace {

void data(feign_activity& a, uint32_t op, uint64_t offset) {
  a.op = op;
  a.offset = offset;
  a.length = 4096;
  a.result = 4096;
}

void step(Tables& tables, uint32_t s, uint32_t n, Record& r) {
  feign_activity& a = r.a;
  const uint32_t round = n / 8;
  const std::string path = "/data/" + std::to_string(s) + "/file" + std::to_string(round % 5);
  a.path = tables.strings.intern(path);
  a.file = 1 + s * 5 + round % 5;
  a.handle = 1 + s * 1000 + round;
  switch (n % 8) {
    case 0:
      a.op = FEIGN_POSIX_OPENAT;
      a.flags = O_RDWR | O_CREAT;
      a.mode = 0644;
      a.result = 3 + s;
      break;
    case 1:
    case 2:
      data(a, FEIGN_POSIX_READ, 4096 * (n % 8));
      break;
    case 3:
      data(a, FEIGN_POSIX_PREAD64, 65536);
      break;
    case 4:
      data(a, FEIGN_POSIX_PWRITE64, 1 << 20);
      break;
    case 5:
      data(a, FEIGN_POSIX_WRITE, 8192);
      break;
    case 6:
      a.op = FEIGN_POSIX_CLOSE;
      a.marks |= FEIGN_LAST;
      break;
    default:
      a.op = FEIGN_POSIX_RENAME;
      a.handle = 0;
      a.path2 = tables.strings.intern(path + ".old");
  }
}

}  // namespace

void Rules::run(const std::string& rule, const std::function<Verdict()>& test) {
  alarm(kSecondsPerRule);
  tell(kBegin, rule);
  const Verdict verdict = test();
  tell(verdict.kind == Verdict::kOk     ? kGood
       : verdict.kind == Verdict::kFail ? kBad
                                        : kSkipped,
       verdict.why);
}

void Rules::tell(char what, std::string text) {
  for (char& c : text)
    if (c == '\n') c = ' ';
  const std::string line = what + text + "\n";
  if (!write_all(fd_, line.data(), line.size())) _exit(3);
}

const void* Place::extension(void* ctx, const char* id) {
  auto* self = static_cast<Place*>(ctx);
  if (std::strcmp(id, "feign.run/1") == 0) return &self->run;
  if (std::strcmp(id, "feign.needed/1") == 0) return &self->needed;
  if (std::strcmp(id, "feign.tables/1") == 0) return self->tables;
  return nullptr;
}

const feign_option* option_named(const Component& component, std::string_view name) {
  for (uint32_t i = 0; i < component.table->option_count; ++i)
    if (name == option_at(*component.table, i).name) return &option_at(*component.table, i);
  return nullptr;
}

Result<std::unique_ptr<Instance>> create(const Component& component, Tables& tables, Place& place,
                                         const Options& set) {
  PluginSpec spec;
  spec.name = component.table->name;
  spec.options = set;
  for (const auto& [key, value] : place.options)
    if (option_named(component, key) != nullptr && (set.empty() || set.front().first != key))
      spec.options.emplace_back(key, value);
  place.tables = &tables;
  return Instance::create(component, spec, tables, Place::extension, &place);
}

std::string required(const Component& component, const Place& place) {
  std::string names;
  for (uint32_t i = 0; i < component.table->option_count; ++i) {
    const feign_option& o = option_at(*component.table, i);
    if (o.fallback != nullptr || o.type == FEIGN_OPT_TEXTS || std::strcmp(o.name, "file") == 0)
      continue;
    const auto given = [&](const auto& option) { return option.first == o.name; };
    if (std::any_of(place.options.begin(), place.options.end(), given)) continue;
    names += (names.empty() ? "" : ", ") + std::string(o.name);
  }
  return names;
}

Trace::Trace(Tables& tables) : records_(new Record[kActivities]{}) {
  constexpr uint32_t kStreams = 4;
  std::array<uint32_t, kStreams> streams, steps{};
  for (uint32_t i = 0; i < kStreams; ++i) {
    feign_stream_info info{};
    info.struct_size = sizeof info;
    info.rank = -1;
    info.process = 100;
    info.thread = 100 + i;
    streams[i] = tables.streams.find_or_add(info);
  }
  uint32_t random = 12345;
  for (size_t i = 0; i < kActivities; ++i) {
    random = random * 1664525 + 1013904223;
    const uint32_t s = (random >> 16) % kStreams;
    Record& r = records_[i];
    r.a.id = (i + 1) << 16;
    r.a.stream = streams[s];
    r.a.start_ns = i * 1000;
    r.a.duration_ns = 400 + (random >> 24);
    r.a.compute_ns = 100 + (random >> 28);
    r.a.marks = FEIGN_RESOLVED;
    r.a.place = FEIGN_PLACE(0, i + 1);
    step(tables, s, steps[s]++, r);
    if (i % 50 == 49) {
      r.depends.push_back({streams[(s + 1) % kStreams], 0, r.a.id - (1 << 16)});
      r.a.marks |= FEIGN_DEPENDS;
    }
  }
}

std::string signature(const Tables& tables, const feign_activity& a) {
  std::string text;
  const auto add = [&](uint64_t value) { text += std::to_string(value) + " "; };
  const auto add_text = [&](uint32_t id) { text += std::string(tables.strings.text(id)) + "| "; };
  add(a.marks & FEIGN_INJECTED ? 0 : a.id);
  for (const uint64_t value : {a.start_ns, a.duration_ns, a.offset, a.length,
                               static_cast<uint64_t>(a.result), a.compute_ns, a.sync_ns})
    add(value);
  for (const uint32_t value :
       {a.op, a.stream, a.handle, a.file, a.flags, a.handle2, a.mode, a.marks})
    add(value);
  add_text(a.path);
  add_text(a.path2);
  for (uint32_t i = 0; i < a.value_count; ++i) add(a.values[i]);
  for (const Dependency& d : Record::of(&a)->depends) {
    add(d.stream);
    add(d.id);
  }
  return text;
}

}  // namespace feign::check
