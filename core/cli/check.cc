// SPDX-License-Identifier: MIT
// `feign check PATH`: runs a plug-in's components against the rules of feign.h with made-up
// activities. The plug-in runs in a child process, so that one that crashes or hangs is a broken
// rule in words.
#include "cli/check.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <unordered_map>

#include "layers/posix_ops.h"
#include "plugin/object.h"
#include "plugin/options.h"
#include "plugin/plugin.h"
#include "trace/native.h"
#include "trace/record.h"
#include "window/pipeline.h"

namespace feign {
namespace {

constexpr unsigned kSecondsPerRule = 60;
constexpr size_t kActivities = 1000;
// What Instance::failure() says of a component that did not call host->fail().
constexpr const char* kSilent = "did not say why";
constexpr size_t kBatches[] = {1, 2, 3, 64};

// What came of a rule.
struct Verdict {
  enum Kind { kOk, kFail, kSkip } kind = kOk;
  std::string why;
};
Verdict ok() { return {}; }
Verdict fail(std::string why) { return {Verdict::kFail, std::move(why)}; }
Verdict skip(std::string why) { return {Verdict::kSkip, std::move(why)}; }

// --- from the child to its parent: a line each, whose first letter says what it is ---------------

constexpr char kBegin = '>', kGood = '+', kBad = '-', kSkipped = '~', kUnloadable = '!';

class Rules {
 public:
  explicit Rules(int fd) : fd_(fd) {}
  void run(const std::string& rule, const std::function<Verdict()>& test) {
    alarm(kSecondsPerRule);
    tell(kBegin, rule);
    const Verdict verdict = test();
    tell(verdict.kind == Verdict::kOk     ? kGood
         : verdict.kind == Verdict::kFail ? kBad
                                          : kSkipped,
         verdict.why);
  }
  void tell(char what, std::string text) {
    for (char& c : text)
      if (c == '\n') c = ' ';
    const std::string line = what + text + "\n";
    for (size_t at = 0; at < line.size();) {
      const ssize_t n = write(fd_, line.data() + at, line.size() - at);
      if (n <= 0) _exit(3);
      at += static_cast<size_t>(n);
    }
  }

 private:
  int fd_;
};

// --- what the components are run with ------------------------------------------------------------

// A directory of the check's own, and what host->extension() answers.
struct Place {
  std::string directory;
  std::vector<std::pair<std::string, std::string>> options;  // the user's
  feign_run run{.struct_size = sizeof(feign_run),
                .root_fd = -1,
                .max_length = 1 << 20,
                .content = "random",
                .ranks = 1};
  std::vector<Needed> needed;
  const Tables* tables = nullptr;

  static const void* extension(void* ctx, const char* id) {
    auto* self = static_cast<Place*>(ctx);
    if (std::strcmp(id, "feign.run/1") == 0) return &self->run;
    if (std::strcmp(id, "feign.needed/1") == 0) return &self->needed;
    if (std::strcmp(id, "feign.tables/1") == 0) return self->tables;
    return nullptr;
  }
};

using Options = std::vector<std::pair<std::string, std::string>>;

const feign_option* option_named(const Component& component, std::string_view name) {
  for (uint32_t i = 0; i < component.table->option_count; ++i)
    if (name == option_at(*component.table, i).name) return &option_at(*component.table, i);
  return nullptr;
}

// With the user's options, as far as the component has them, and `set` in place of what they say.
Result<std::unique_ptr<Instance>> create(const Component& component, Tables& tables, Place& place,
                                         const Options& set = {}) {
  PluginSpec spec;
  spec.name = component.table->name;
  spec.options = set;
  for (const auto& [key, value] : place.options)
    if (option_named(component, key) != nullptr && (set.empty() || set.front().first != key))
      spec.options.emplace_back(key, value);
  place.tables = &tables;
  return Instance::create(component, spec, tables, Place::extension, &place);
}

// Why a component cannot be created without more options; "" if it can.
std::string needs(const Component& component, Place& place) {
  Tables tables;
  auto instance = create(component, tables, place);
  if (instance || instance.error().code() != FEIGN_ERR_ARGUMENT) return "";
  const std::string& text = instance.error().text();
  return text.find(kSilent) != std::string::npos ? "" : text;
}

// Names of the options that have no fallback, but for `file`, and that the user did not give.
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

// Resolved activities of four streams, as a program that opens, reads, writes, renames and closes
// files would make them.
class Trace {
 public:
  explicit Trace(Tables& tables) : records_(new Record[kActivities]{}) {
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
  Record& operator[](size_t i) { return records_[i]; }

 private:
  static void step(Tables& tables, uint32_t s, uint32_t n, Record& r) {
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
  static void data(feign_activity& a, uint32_t op, uint64_t offset) {
    a.op = op;
    a.offset = offset;
    a.length = 4096;
    a.result = 4096;
  }

  std::unique_ptr<Record[]> records_;
};

// Everything that the next stage would see of an activity, comparable between two runs.
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

std::string shown(size_t batch) { return "at batch size " + std::to_string(batch); }

// --- modifiers -----------------------------------------------------------------------------------

// Takes what a modifier emits, and notes the first rule that it breaks.
class Judge {
 public:
  explicit Judge(Tables& tables) : tables_(tables) {
    sink_ = {sizeof(feign_sink), this, make, emit};
  }
  feign_sink* sink() { return &sink_; }
  void hand_out(feign_activity& a) {
    a.host = kMark;
    in_hand_.insert({&a, true});
  }
  // What was not emitted of a batch is dropped.
  void take_back(const feign_activity& a) { in_hand_.erase(&a); }

  size_t fail_emit_at = SIZE_MAX;  // count of emits that succeed before one fails
  bool fail_make = false;
  bool refused = false;  // a make() or emit() failed
  std::string broken;
  std::vector<std::string> out;
  size_t emits = 0, makes = 0;

 private:
  static constexpr uint32_t kMark = 0xFE16;

  static feign_activity* make(feign_sink* sink) noexcept {
    auto& j = *static_cast<Judge*>(sink->ctx);
    ++j.makes;
    if (j.fail_make) {
      j.refused = true;
      return nullptr;
    }
    Record& r = j.made_.emplace_back();
    j.hand_out(r.a);
    return &r.a;
  }

  static feign_status emit(feign_sink* sink, feign_activity* a) noexcept {
    auto& j = *static_cast<Judge*>(sink->ctx);
    if (a == nullptr) return j.breaks("emitted a null pointer");
    if (j.in_hand_.erase(a) == 0)
      return j.breaks("emitted an activity that was not its own: twice, or one that was not due");
    if (a->host != kMark) return j.breaks("changed feign_activity.host");
    if (a->id == 0) {
      a->id = j.last_id_ + 1;
      a->marks |= FEIGN_INJECTED;
    }
    if (a->id <= j.last_id_)
      return j.breaks("emitted activity " + std::to_string(a->id) + " after " +
                      std::to_string(j.last_id_) + ": activities keep their order");
    if (const std::string never = never_given(j.tables_, *a); !never.empty())
      return j.breaks(never);
    if (a->op == 0) return j.breaks("emitted an activity of op 0, which does not exist");
    j.last_id_ = a->id;
    if (j.emits++ >= j.fail_emit_at) {
      j.refused = true;
      return FEIGN_ERR_IO;
    }
    j.out.push_back(signature(j.tables_, *a));
    return FEIGN_OK;
  }

  feign_status breaks(const std::string& why) {
    if (broken.empty()) broken = why;
    return FEIGN_ERR_PLUGIN;
  }

  Tables& tables_;
  feign_sink sink_;
  std::unordered_map<const feign_activity*, bool> in_hand_;
  std::deque<Record> made_;
  uint64_t last_id_ = 0;
};

struct ModifierRun {
  std::string broken;                       // a rule
  std::string failure;                      // the component's own
  bool refused = false, passed_on = false;  // the sink failed; process() then did, too
  std::vector<std::string> out;
  size_t makes = 0;
};

ModifierRun run_modifier(const Component& component, Place& place, size_t batch,
                         size_t fail_emit_at = SIZE_MAX, bool fail_make = false) {
  ModifierRun run;
  Tables tables;
  Trace trace(tables);
  auto instance = create(component, tables, place);
  if (!instance) {
    run.failure = instance.error().text();
    return run;
  }
  const auto& api = (*instance)->api<feign_modifier>();
  void* self = (*instance)->self();
  size_t lookahead = api.lookahead;
  if (FEIGN_HAS(&api, lookahead_of) && api.lookahead_of != nullptr)
    lookahead = api.lookahead_of(self);
  Judge judge(tables);
  judge.fail_emit_at = fail_emit_at;
  judge.fail_make = fail_make;
  size_t at = 0;
  for (bool last = false; !last;) {
    last = at == kActivities;
    const size_t due = std::min(batch, kActivities - at);
    const size_t count = std::min(due + lookahead, kActivities - at);
    // Exactly the look-ahead that it declared, in a block of its own: a memory checker sees more.
    const std::unique_ptr<feign_activity*[]> items(new feign_activity*[count]);
    std::vector<std::string> ahead;
    for (size_t i = 0; i < count; ++i) {
      items[i] = &trace[at + i].a;
      if (i < due)
        judge.hand_out(*items[i]);
      else
        ahead.emplace_back(reinterpret_cast<const char*>(items[i]), sizeof(feign_activity));
    }
    const feign_window window{sizeof(feign_window), at + count == kActivities ? 1u : 0u,
                              items.get(), due, count};
    const feign_status status = api.process(self, &window, judge.sink());
    run.broken = judge.broken;
    if (run.broken.empty())
      for (size_t i = due; i < count; ++i)
        if (std::memcmp(items[i], ahead[i - due].data(), sizeof(feign_activity)) != 0)
          run.broken = "changed an activity that was not due, item " + std::to_string(i) +
                       " of a window with " + std::to_string(due) + " due";
    run.refused = judge.refused;
    run.passed_on = judge.refused && status < 0;
    if (!run.broken.empty() || run.refused) break;
    if (status > 0) {
      run.broken =
          "process() gave " + std::to_string(status) + ", which is no error: want FEIGN_OK";
      break;
    }
    if (status < 0) {
      run.failure = (*instance)->failure(status).text();
      break;
    }
    for (size_t i = 0; i < due; ++i) judge.take_back(*items[i]);
    at += due;
  }
  run.out = std::move(judge.out);
  run.makes = judge.makes;
  return run;
}

void check_modifier(const Component& component, Place& place, Rules& rules,
                    const std::string& name) {
  const std::string missing = needs(component, place);
  std::array<ModifierRun, std::size(kBatches)> runs;
  rules.run(name + ": keeps order, emits what is due, and once", [&] {
    if (!missing.empty()) return skip(missing);
    for (size_t i = 0; i < std::size(kBatches); ++i) {
      runs[i] = run_modifier(component, place, kBatches[i]);
      const std::string where = " (" + shown(kBatches[i]) + ")";
      if (!runs[i].failure.empty()) return fail(runs[i].failure + where);
      if (!runs[i].broken.empty()) return fail(runs[i].broken + where);
    }
    return ok();
  });
  rules.run(name + ": does the same at batch sizes 1, 2, 3 and 64", [&] {
    if (!missing.empty()) return skip(missing);
    for (size_t i = 1; i < std::size(kBatches); ++i) {
      if (runs[i].out == runs[0].out) continue;
      size_t at = 0;
      while (at < runs[i].out.size() && at < runs[0].out.size() &&
             runs[i].out[at] == runs[0].out[at])
        ++at;
      return fail("what it emits differs from its activity " + std::to_string(at + 1) + " on, " +
                  shown(kBatches[i]) + " (" + std::to_string(runs[i].out.size()) +
                  " activities) and " + shown(kBatches[0]) + " (" +
                  std::to_string(runs[0].out.size()) + ")");
    }
    return ok();
  });
  rules.run(name + ": passes on that emit() failed", [&] {
    if (!missing.empty()) return skip(missing);
    if (runs[0].out.empty()) return skip("it emits nothing");
    const ModifierRun run = run_modifier(component, place, 64, runs[0].out.size() / 2);
    if (!run.broken.empty()) return fail(run.broken);
    return run.passed_on ? ok() : fail("emit() returned FEIGN_ERR_IO, and process() success");
  });
  rules.run(name + ": passes on that make() found no memory", [&] {
    if (!missing.empty()) return skip(missing);
    if (runs[0].makes == 0) return skip("it injects nothing");
    const ModifierRun run = run_modifier(component, place, 64, SIZE_MAX, true);
    if (!run.broken.empty()) return fail(run.broken);
    return run.passed_on ? ok() : fail("make() returned NULL, and process() success");
  });
}

// --- providers -----------------------------------------------------------------------------------

struct ProviderSink {
  explicit ProviderSink(Tables& t) : tables(t) { sink = {sizeof(feign_sink), this, make, emit}; }
  static feign_activity* make(feign_sink* sink) noexcept {
    auto& s = *static_cast<ProviderSink*>(sink->ctx);
    return &(s.made = std::make_unique<Record>())->a;
  }
  static feign_status emit(feign_sink* sink, feign_activity* a) noexcept {
    auto& s = *static_cast<ProviderSink*>(sink->ctx);
    if (s.made == nullptr || a != &s.made->a)
      s.broken = "emitted an activity that was not its own";
    else if (a->op == 0)
      s.broken = "emitted an activity of op 0, which does not exist";
    else
      s.broken = never_given(s.tables, *a);
    if (!s.broken.empty()) return FEIGN_ERR_PLUGIN;
    s.out.push_back(signature(s.tables, *a));
    s.made.reset();
    return FEIGN_OK;
  }
  Tables& tables;
  feign_sink sink;
  std::unique_ptr<Record> made;
  std::vector<std::string> out;
  std::string broken;
};

// The first activities (at least kActivities, or all) asked for `want` at a time; what went wrong.
std::string run_provider(const Component& component, Place& place, size_t want,
                         std::vector<std::string>& out) {
  Tables tables;
  auto instance = create(component, tables, place);
  if (!instance) return instance.error().text();
  const auto& api = (*instance)->api<feign_provider>();
  ProviderSink sink(tables);
  while (sink.out.size() < kActivities) {
    const size_t before = sink.out.size();
    const feign_status status = api.next((*instance)->self(), want, &sink.sink);
    const size_t got = sink.out.size() - before;
    if (!sink.broken.empty()) return sink.broken;
    if (status < 0) return (*instance)->failure(status).text();
    if (got > want)
      return "emitted " + std::to_string(got) + " activities, asked for " + std::to_string(want);
    if (status == FEIGN_END) break;
    if (got == 0) return "next() returned FEIGN_OK without an activity";
  }
  out = std::move(sink.out);
  if (out.size() > kActivities) out.resize(kActivities);
  return "";
}

void check_provider(const Component& component, Place& place, Rules& rules,
                    const std::string& name) {
  const bool reads_files = option_named(component, "file") != nullptr;
  const std::string missing = required(component, place);
  const auto is_file = [](const auto& option) { return option.first == "file"; };
  const bool given_file = std::any_of(place.options.begin(), place.options.end(), is_file);
  rules.run(name + ": gives the same activities, never more than it is asked for", [&] {
    if (const std::string more = needs(component, place); !more.empty()) return skip(more);
    if (reads_files && !given_file) return skip("it reads files; PATH,file=FILE gives it one");
    std::vector<std::string> first;
    for (const size_t want : kBatches) {
      std::vector<std::string> out;
      const std::string why = run_provider(component, place, want, out);
      if (!why.empty()) return fail(why + " (asked for " + std::to_string(want) + " at once)");
      // A short form's state is that of the shared object: it cannot begin again.
      if (component.short_form) return ok();
      if (want == kBatches[0]) first = out;
      if (out != first)
        return fail("asked for " + std::to_string(want) + " at once, it gives other activities (" +
                    std::to_string(out.size()) + ") than one by one (" +
                    std::to_string(first.size()) + ")");
    }
    return ok();
  });
  rules.run(name + ": fails in words on a file that is not there", [&] {
    if (!reads_files) return skip("it reads no files");
    if (!missing.empty()) return skip("its options " + missing + " have no defaults");
    Tables tables;
    const std::string file = place.directory + "/not-there";
    auto instance = create(component, tables, place, {{"file", file}});
    std::string text;
    if (instance) {
      // It may open the file when it is first asked.
      ProviderSink sink(tables);
      const feign_status status =
          (*instance)->api<feign_provider>().next((*instance)->self(), 1, &sink.sink);
      if (status >= 0) return fail("it takes " + file + ", which does not exist, for a trace");
      text = (*instance)->failure(status).text();
    } else {
      text = instance.error().text();
    }
    if (text.find(kSilent) != std::string::npos) return fail(text);
    return text.find("not-there") != std::string::npos
               ? ok()
               : fail("its message does not name the file: " + text);
  });
  rules.run(name + ": probes anything without harm", [&] {
    const auto& api = *static_cast<const feign_provider*>(component.table->api);
    if (!FEIGN_HAS(&api, probe) || api.probe == nullptr) return skip("it has no probe()");
    std::string noise;
    uint32_t random = 1;
    for (size_t i = 0; i < 4096; ++i) {
      random = random * 1664525 + 1013904223;
      noise += static_cast<char>(random >> 24);
    }
    const std::string heads[] = {"",
                                 std::string("\0", 1),
                                 std::string(4096, '\0'),
                                 std::string(4096, ' '),
                                 std::string(4096, '9'),
                                 noise,
                                 "1 open(\"/x\", O_RDONLY) = 3",
                                 "{\"a\": [1, 2"};
    for (const std::string& head : heads) {
      // In a block of its own size: a memory checker sees what reads past its end.
      const std::unique_ptr<char[]> exact(new char[head.size() + (head.empty() ? 1 : 0)]);
      std::memcpy(exact.get(), head.data(), head.size());
      const int sure = api.probe("/a/file", exact.get(), head.size());
      if (sure < 0 || sure > 100)
        return fail("probe() returned " + std::to_string(sure) + ", want 0 to 100");
    }
    return ok();
  });
}

// --- replayers and writers -----------------------------------------------------------------------

void check_replayer(const Component& component, Place& place, Rules& rules,
                    const std::string& name) {
  rules.run(name + ": skips or refuses an op that it does not know", [&] {
    if (const std::string missing = needs(component, place); !missing.empty()) return skip(missing);
    Tables tables;
    auto instance = create(component, tables, place);
    if (!instance) return fail(instance.error().text());
    static constexpr feign_op_info kOp = {
        sizeof(feign_op_info), 0, "unheard-of",           "feign-check", FEIGN_KIND_OTHER,
        FEIGN_RESULT_EXACT,    0, sizeof(feign_arg_info), nullptr};
    static constexpr const feign_op_info* kOps[] = {&kOp};
    const feign_layer layer = {sizeof(feign_layer), 1, "feign-check", kOps};
    auto op = tables.ops.add(layer);
    if (!op) return fail(op.error().text());
    feign_stream_info info{};
    info.struct_size = sizeof info;
    info.rank = -1;
    info.process = info.thread = 1;
    info = tables.streams.info(tables.streams.find_or_add(info));
    const auto& api = (*instance)->api<feign_replayer>();
    void* stream = nullptr;
    feign_status status = api.open_stream((*instance)->self(), &info, &stream);
    if (status < 0) return fail((*instance)->failure(status).text());
    Record record{};
    record.a.id = 1;
    record.a.op = *op;
    record.a.stream = info.id;
    record.a.marks = FEIGN_RESOLVED;
    feign_outcome outcome{sizeof(feign_outcome), FEIGN_DONE, 0, nullptr};
    status = api.execute((*instance)->self(), stream, &record.a, &outcome);
    Verdict verdict = ok();
    if (status < 0) {
      const std::string text = (*instance)->failure(status).text();
      if (text.find(kSilent) != std::string::npos) verdict = fail(text);
    } else if (outcome.doing > FEIGN_SKIPPED) {
      verdict = fail("outcome.doing is " + std::to_string(outcome.doing) + ", want a feign_doing");
    } else if (outcome.doing == FEIGN_SKIPPED && (outcome.why == nullptr || *outcome.why == '\0')) {
      verdict = fail("it skipped the op, and outcome.why does not say why");
    } else if (outcome.doing != FEIGN_SKIPPED && api.layers != nullptr) {
      verdict = fail("it claims to have done an op of a layer that is not among its layers");
    }
    api.close_stream((*instance)->self(), stream);
    return verdict;
  });
}

void check_writer(const Component& component, Place& place, Rules& rules, const std::string& name) {
  const bool has_file = option_named(component, "file") != nullptr;
  const std::string missing = required(component, place);
  const auto& api = *static_cast<const feign_writer*>(component.table->api);
  const std::string suffix = FEIGN_HAS(&api, suffix) && api.suffix != nullptr ? api.suffix : ".out";
  // Writes activities to `file`; what went wrong.
  const auto write_to = [&](const std::string& file, bool finish) -> std::string {
    Tables tables;
    Trace trace(tables);
    auto instance = create(component, tables, place, {{"file", file}});
    if (!instance) return instance.error().text();
    std::vector<const feign_activity*> items;
    for (size_t i = 0; i < kActivities; ++i) items.push_back(&trace[i].a);
    feign_status status = FEIGN_OK;
    for (size_t at = 0; at < kActivities && status >= 0; at += 64)
      status =
          api.write((*instance)->self(), items.data() + at, std::min<size_t>(64, kActivities - at));
    if (status >= 0 && finish) status = api.finish((*instance)->self());
    return status < 0 ? (*instance)->failure(status).text() : "";
  };
  const auto can_run = [&] {
    if (!has_file) return skip("it has no option \"file\"");
    return missing.empty() ? ok() : skip("its options " + missing + " have no defaults");
  };
  struct stat st;
  rules.run(name + ": writes its file", [&] {
    if (const Verdict verdict = can_run(); verdict.kind != Verdict::kOk) return verdict;
    const std::string file = place.directory + "/written" + suffix;
    if (const std::string why = write_to(file, true); !why.empty()) return fail(why);
    return stat(file.c_str(), &st) == 0 && st.st_size > 0 ? ok() : fail("the file is not there");
  });
  rules.run(name + ": leaves nothing half-written after a failure", [&] {
    if (const Verdict verdict = can_run(); verdict.kind != Verdict::kOk) return verdict;
    const std::string file = place.directory + "/unfinished" + suffix;
    if (const std::string why = write_to(file, false); !why.empty()) return fail(why);
    return stat(file.c_str(), &st) != 0 ? ok() : fail("the file is there without finish()");
  });
  rules.run(name + ": fails in words where it cannot write", [&] {
    if (const Verdict verdict = can_run(); verdict.kind != Verdict::kOk) return verdict;
    const std::string why = write_to(place.directory + "/not-there/file" + suffix, true);
    if (why.empty()) return fail("it says that it wrote below a directory that is not there");
    return why.find("not-there") != std::string::npos
               ? ok()
               : fail("its message does not name the file: " + why);
  });
}

// --- rules for all -------------------------------------------------------------------------------

Verdict check_wrong_options(const feign_component& c) {
  const auto taken = [&](const std::string& key, const std::string& value) {
    return static_cast<bool>(OptionValues::parse(c, {{key, value}}));
  };
  if (taken("no-such-option", "1")) return fail("an unknown option is taken");
  for (uint32_t i = 0; i < c.option_count; ++i) {
    const feign_option& o = option_at(c, i);
    if (o.type == FEIGN_OPT_TEXT || o.type == FEIGN_OPT_TEXTS) continue;
    if (taken(o.name, "no-such-value"))
      return fail(std::string(o.name) + "=no-such-value is taken");
    if (o.type != FEIGN_OPT_ENUM && o.type != FEIGN_OPT_BOOL && taken(o.name, "1..2"))
      return fail(std::string(o.name) + "=1..2 is taken");
  }
  return ok();
}

Verdict check_create(const Component& component, Place& place) {
  const std::string missing = needs(component, place);
  if (!missing.empty()) return skip(missing);
  Tables tables;
  auto instance = create(component, tables, place);
  return instance ? ok() : fail(instance.error().text());
}

// The strong symbols that a shared object exports. Weak ones come from templates of the C++
// library.
Verdict check_symbols(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string file{std::istreambuf_iterator<char>(in), {}};
  const auto get = [&](auto& to, uint64_t offset) {
    if (offset > file.size() || sizeof to > file.size() - offset) return false;
    std::memcpy(&to, file.data() + offset, sizeof to);
    return true;
  };
  ElfW(Ehdr) head;
  if (!get(head, 0)) return skip("the file cannot be read");
  std::string others;
  bool found_table = false;
  for (unsigned i = 0; i < head.e_shnum; ++i) {
    ElfW(Shdr) table, names;
    if (!get(table, head.e_shoff + uint64_t{i} * sizeof table)) break;
    if (table.sh_type != SHT_DYNSYM) continue;
    if (!get(names, head.e_shoff + uint64_t{table.sh_link} * sizeof names)) break;
    found_table = true;
    for (uint64_t at = 0; at + sizeof(ElfW(Sym)) <= table.sh_size; at += sizeof(ElfW(Sym))) {
      ElfW(Sym) symbol;
      if (!get(symbol, table.sh_offset + at)) break;
      // The bind is in the same place in both classes.
      if (symbol.st_shndx == SHN_UNDEF || ELF64_ST_BIND(symbol.st_info) != STB_GLOBAL) continue;
      const uint64_t name_at = uint64_t{names.sh_offset} + symbol.st_name;
      if (name_at >= file.size()) continue;
      const std::string name = file.data() + name_at;
      if (name.starts_with("__odr_asan.")) continue;  // AddressSanitizer's own
      if (name != "feign_plugin_v1") others += (others.empty() ? "" : ", ") + name;
    }
  }
  if (!found_table) return skip("it has no section headers");
  if (others.size() > 200) others = others.substr(0, 200) + " …";
  return others.empty() ? ok() : fail("it exports more than feign_plugin_v1: " + others);
}

void check_all(const PluginSpec& spec, const std::string& directory, Rules& rules) {
  const std::string& path = spec.name;
  Place place;
  place.options = spec.options;
  std::vector<std::string> args;
  for (const auto& [key, value] : spec.options) args.push_back(key + "=" + value);
  place.directory = directory;
  place.run.root_fd = open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  place.run.root = place.directory.c_str();

  ShortFormNumbers numbers;
  Result<Object> object = Error(FEIGN_ERR_PLUGIN, "not loaded");
  bool valid = false;
  rules.run("loads", [&] {
    object = load_object(path, args, numbers);
    return ok();
  });
  if (!object) {
    rules.tell(kUnloadable, object.error().text());
    return;
  }
  const bool short_form = object->short_form != nullptr;
  rules.run("its tables are valid", [&] {
    auto checked = check_plugin(*object->plugin, object->path);
    valid = static_cast<bool>(checked);
    return valid ? ok() : fail(checked.error().text());
  });
  rules.run("exports one symbol", [&] {
    return short_form ? skip("it is of the short form") : check_symbols(object->path);
  });
  if (!valid) return;
  for (const auto& [key, value] : spec.options) {
    bool known = short_form;
    for (const feign_component* const* c = object->plugin->components; *c != nullptr; ++c)
      known |= option_named({*c, object->plugin, path, short_form}, key) != nullptr;
    if (known) continue;
    rules.tell(kUnloadable, path + ": nothing in it has an option \"" + key + "\"");
    return;
  }
  for (const feign_component* const* c = object->plugin->components; *c != nullptr; ++c) {
    const Component component{*c, object->plugin, object->path, short_form};
    const std::string name = role_name((*c)->role) + (" " + std::string((*c)->name));
    rules.run(name + ": options that are wrong are refused", [&] {
      return short_form ? skip("it is of the short form") : check_wrong_options(**c);
    });
    rules.run(name + ": can be created", [&] { return check_create(component, place); });
    switch ((*c)->role) {
      case FEIGN_PROVIDER:
        check_provider(component, place, rules, name);
        break;
      case FEIGN_MODIFIER:
        check_modifier(component, place, rules, name);
        break;
      case FEIGN_REPLAYER:
        check_replayer(component, place, rules, name);
        break;
      default:
        check_writer(component, place, rules, name);
    }
  }
  // finalize() of a short form
  rules.run("ends", [&] {
    object->short_form.reset();
    return ok();
  });
}

// --- the parent ----------------------------------------------------------------------------------

// How a child ended, if that was not of its own accord; "" if it was.
std::string ending(int status) {
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    if (signal == SIGALRM)
      return "did not come back within " + std::to_string(kSecondsPerRule) + " s";
    return "killed by signal " + std::to_string(signal) + " (" + strsignal(signal) + ")";
  }
  if (WEXITSTATUS(status) != 0)
    return "ended the process with exit status " + std::to_string(WEXITSTATUS(status));
  return "";
}

}  // namespace

Result<int> check_command(const std::string& given) {
  PluginSpec spec;
  spec.name = given;
  // A path may have commas of its own.
  if (access(given.c_str(), F_OK) != 0) {
    auto parsed = parse_plugin_spec(given, "");
    if (!parsed) return std::move(parsed.error());
    spec = std::move(*parsed);
  }
  const std::string& path = spec.name;
  const char* tmp = getenv("TMPDIR");
  std::string directory =
      std::string(tmp != nullptr && *tmp != '\0' ? tmp : "/tmp") + "/feign-check-XXXXXX";
  if (mkdtemp(directory.data()) == nullptr) return errno_error("make " + directory, errno);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return errno_error("make a pipe", errno);
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) return errno_error("fork", errno);
  if (child == 0) {
    close(ends[0]);
    dup2(STDERR_FILENO, STDOUT_FILENO);  // what the plug-in prints is none of the result
    signal(SIGALRM, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
    Rules rules(ends[1]);
    check_all(spec, directory, rules);
    _exit(0);
  }
  close(ends[1]);
  FILE* lines = fdopen(ends[0], "r");
  char* line = nullptr;
  size_t room = 0;
  std::string rule, unloadable;
  unsigned good = 0, bad = 0, skipped = 0;
  bool open = false;
  const auto failed = [&](const std::string& why) {
    std::printf("FAIL %s: %s\n", rule.c_str(), why.c_str());
    ++bad;
  };
  for (ssize_t n; lines != nullptr && (n = getline(&line, &room, lines)) > 0;) {
    const std::string text(line + 1, static_cast<size_t>(n) - (line[n - 1] == '\n' ? 2 : 1));
    open = line[0] == kBegin;
    switch (line[0]) {
      case kBegin:
        rule = text;
        break;
      case kGood:
        // Whether it loads is known with the next line only.
        if (rule == "loads") break;
        std::printf("ok   %s\n", rule.c_str());
        ++good;
        break;
      case kBad:
        failed(text);
        break;
      case kSkipped:
        std::printf("skip %s: %s\n", rule.c_str(), text.c_str());
        ++skipped;
        break;
      case kUnloadable:
        unloadable = text;
        break;
      default:
        break;
    }
    std::fflush(stdout);
  }
  free(line);
  if (lines != nullptr) fclose(lines);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  std::error_code ignored;
  std::filesystem::remove_all(directory, ignored);
  if (!unloadable.empty()) return Error(FEIGN_ERR_ARGUMENT, unloadable);
  if (const std::string how = ending(status); !how.empty())
    failed(how);
  else if (open)
    failed("ended the process");
  std::printf("%s: %u ok, %u failed, %u skipped\n", path.c_str(), good, bad, skipped);
  return bad == 0 ? 0 : 1;
}

}  // namespace feign
