// SPDX-License-Identifier: MIT
// Provider and writer feign: the native format (docs/native-format.md).
//
// Both have tables of their own, as any plug-in would: what the host calls a string, an op or a
// stream is translated, once each.
#include "feign.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/output.h"
#include "trace/native.h"

namespace {

// The second number of a thing, looked up once.
class Translation {
 public:
  template <typename Make>
  uint32_t operator()(uint32_t from, Make&& make) {
    if (from == 0) return 0;
    if (from >= to_.size()) to_.resize(std::max<size_t>(from + size_t{1}, to_.size() * 3 / 2));
    if (to_[from] == 0) to_[from] = make();
    return to_[from];
  }
  bool has(uint32_t from) const { return from < to_.size() && to_[from] != 0; }

 private:
  std::vector<uint32_t> to_;
};

// Which values of an op are strings, as bits.
uint32_t text_values(const feign_op_info* info) {
  uint32_t bits = 0;
  for (uint32_t i = 0; info != nullptr && i < info->arg_count; ++i) {
    const feign_arg_info& a = info->args[i];
    if (a.slot == FEIGN_SLOT_VALUE && a.index < 32 &&
        (a.type == FEIGN_ARG_STRING || a.type == FEIGN_ARG_PATH))
      bits |= 1u << a.index;
  }
  return bits;
}

feign_status fail(const feign_host* host, const feign::Error& error) {
  return host->fail(host, error.code(), error.text().c_str());
}

// ---- provider
// -------------------------------------------------------------------------------------

struct ProviderOptions {
  const char* const* file;
  uint64_t from, from_time, stream;
  const char* path;
};
constexpr feign_option kProviderOptions[] = {
    {"file", FEIGN_OPT_TEXTS, offsetof(ProviderOptions, file), nullptr, nullptr, 0, 0,
     "Trace file."},
    {"from", FEIGN_OPT_UINT, offsetof(ProviderOptions, from), "0", nullptr, 0, 0,
     "Begin with the activity of this number, counted from 0."},
    {"from-time", FEIGN_OPT_DURATION, offsetof(ProviderOptions, from_time), "0", nullptr, 0, 0,
     "Leave out what started before this time since the trace began."},
    {"stream", FEIGN_OPT_UINT, offsetof(ProviderOptions, stream), "0", nullptr, 0, UINT32_MAX,
     "Only this stream, by number; 0: all."},
    {"path", FEIGN_OPT_TEXT, offsetof(ProviderOptions, path), "", nullptr, 0, 0,
     "Only activities on exactly this path; found by the file's index."},
};

class Provider {
 public:
  Provider(const feign_host* h, const ProviderOptions& o) : host(h), options(o) {}

  feign_status start() {
    if (options.file[0] == nullptr)
      return host->fail(host, FEIGN_ERR_ARGUMENT, "file: want a trace file");
    if (options.file[1] != nullptr)
      return host->fail(host, FEIGN_ERR_ARGUMENT,
                        (std::string("file=") + options.file[1] +
                         ": a second file: want one, a native trace holds all streams")
                            .c_str());
    name = options.file[0];
    const int fd = open(options.file[0], O_RDONLY | O_CLOEXEC);
    if (fd < 0)
      return fail(host, feign::errno_error(std::string("open ") + options.file[0], errno));
    auto opened = feign::NativeReader::open(fd, options.file[0], tables);
    if (!opened) return fail(host, opened.error());
    reader = *opened;
    // left_out() counts one call at a time, and the file may say any number.
    if (auto* all = const_cast<feign::Tables*>(
            static_cast<const feign::Tables*>(host->extension(host, "feign.tables/1")))) {
      all->sources = tables.sources;
      all->notes.insert(all->notes.end(), tables.notes.begin(), tables.notes.end());
      for (const auto& [key, l] : tables.left_out) {
        all->left_out[key].count += l.count;
        all->left_out[key].duration_ns += l.duration_ns;
      }
    } else {
      for (const auto& [key, l] : tables.left_out)
        host->left_out(host, 0, key.first.c_str(), key.second.c_str(), l.duration_ns, 0);
    }
    const auto& by_op = reader->totals().by_op;
    for (uint32_t id = 1; id < by_op.size(); ++id)
      if (by_op[id] != 0 && op(id) == 0) return no_op(id);
    feign::NativeReader::Range range;
    range.from = options.from;
    range.from_ns = options.from_time;
    if (options.stream != 0) {
      const bool there = options.stream < tables.streams.size();
      if (!there)
        return host->fail(
            host, FEIGN_ERR_ARGUMENT,
            ("stream=" + std::to_string(options.stream) + ": the trace has streams 1 to " +
             std::to_string(tables.streams.size() - 1))
                .c_str());
      range.streams = {static_cast<uint32_t>(options.stream)};
    }
    range.path = options.path;
    // Streams in the order of the file, so that numbers in reports are the same.
    for (uint32_t s = 1; s < tables.streams.size(); ++s) (void)stream(s);
    cursor = std::make_unique<feign::NativeReader::Cursor>(reader, range);
    return FEIGN_OK;
  }

  feign_status next(size_t want, feign_sink* out) {
    for (size_t i = 0; i < want; ++i) {
      uint64_t number = 0;
      auto more = cursor->next(record, number);
      if (!more) return fail(host, more.error());
      if (!*more) return FEIGN_END;
      feign_activity* a = out->make(out);
      if (a == nullptr) return host->fail(host, FEIGN_ERR_NOMEM, "out of memory");
      const uint32_t mine = a->host;
      const feign_activity& from = record.a;
      *a = from;
      a->host = mine;
      a->values = nullptr;
      a->value_count = 0;
      a->op = op(from.op);
      if (a->op == 0) return no_op(from.op);
      a->stream = stream(from.stream);
      a->path = string(from.path);
      a->path2 = string(from.path2);
      if (from.value_count != 0) {
        if (from.op >= texts.size()) texts.resize(tables.ops.size());
        uint32_t& bits = texts[from.op];
        if (bits == 0) bits = text_values(tables.ops.info(from.op)) | 1u << 31;
        values.assign(from.values, from.values + from.value_count);
        for (uint32_t v = 0; v < from.value_count && v < 31; ++v)
          if (bits >> v & 1) values[v] = string(static_cast<uint32_t>(values[v]));
        if (const feign_status s = host->set_values(host, a, values.data(), from.value_count);
            s < 0)
          return s;
      }
      for (const feign::Dependency& d : record.depends)
        if (const feign_status s =
                host->depend(host, a, stream(d.stream), d.id, tables.strings.text(d.rule).data());
            s < 0)
          return s;
      if (const feign_status s = out->emit(out, a); s < 0) return s;
    }
    return FEIGN_OK;
  }

 private:
  uint32_t string(uint32_t id) {
    // The file may not have taken for a string what is one here.
    if (id >= tables.strings.size()) return 0;
    return strings(id, [&] {
      const std::string_view text = tables.strings.text(id);
      return host->intern(host, text.data(), text.size());
    });
  }
  // After its parents, whatever their numbers: a system's process numbers begin anew at some time.
  uint32_t stream(uint32_t id) {
    std::vector<uint32_t> line;
    std::unordered_set<uint32_t> seen;  // no file that we wrote has a circle
    for (uint32_t at = id; at != 0 && !streams.has(at) && seen.insert(at).second;) {
      line.push_back(at);
      at = tables.streams.info(at).parent;
      if (at >= tables.streams.size()) break;
    }
    for (; !line.empty(); line.pop_back())
      streams(line.back(), [&] {
        feign_stream_info info = tables.streams.info(line.back());
        info.host = string(info.host);
        info.parent = streams.has(info.parent) ? streams(info.parent, [] { return 0u; }) : 0;
        return host->stream(host, &info);
      });
    return streams(id, [] { return 0u; });
  }
  uint32_t op(uint32_t id) {
    return ops(id, [&]() -> uint32_t {
      const feign_op_info* info = tables.ops.info(id);
      if (const uint32_t known = host->op(host, info->layer, info->name); known != 0) return known;
      // A layer that the host has not: hand it over as it is here.
      std::vector<const feign_op_info*> all;
      uint32_t first = id;
      while (first > 1 && tables.ops.info(first - 1) != nullptr &&
             strcmp(tables.ops.info(first - 1)->layer, info->layer) == 0)
        --first;
      for (uint32_t o = first; o < tables.ops.size() && tables.ops.info(o) != nullptr &&
                               strcmp(tables.ops.info(o)->layer, info->layer) == 0;
           ++o)
        all.push_back(tables.ops.info(o));
      const feign_layer layer = {sizeof layer, static_cast<uint32_t>(all.size()), info->layer,
                                 all.data()};
      uint32_t given = 0;
      return host->register_layer(host, &layer, &given) < 0 ? 0 : given + (id - first);
    });
  }
  feign_status no_op(uint32_t id) {
    const feign_op_info* info = tables.ops.info(id);
    return host->fail(host, FEIGN_ERR_UNSUPPORTED,
                      (name + ": has calls of " + info->layer + ":" + info->name +
                       ", which the layer of that name here does not have")
                          .c_str());
  }

  const feign_host* host;
  ProviderOptions options;
  std::string name;
  feign::Tables tables;
  std::shared_ptr<feign::NativeReader> reader;
  std::unique_ptr<feign::NativeReader::Cursor> cursor;
  feign::Record record{};
  Translation strings, ops, streams;
  std::vector<uint32_t> texts;  // by op of ours
  std::vector<uint64_t> values;
};

int probe(const char*, const void* head, size_t size) noexcept {
  return feign::NativeReader::recognises(head, size) ? 100 : 0;
}

// ---- writer
// ---------------------------------------------------------------------------------------

struct WriterOptions {
  const char* file;
  uint64_t level;
};
constexpr feign_option kWriterOptions[] = {
    {"file", FEIGN_OPT_TEXT, offsetof(WriterOptions, file), nullptr, nullptr, 0, 0,
     "File to write."},
    {"level", FEIGN_OPT_UINT, offsetof(WriterOptions, level), "3", nullptr, 1, 19,
     "How hard zstd tries."},
};

class Writer {
 public:
  Writer(const feign_host* h, const WriterOptions& o) : host(h), options(o), name(o.file) {}

  feign_status start() {
    if (auto may = feign::may_be_written(name); !may) return fail(host, may.error());
    if (!file.open(name)) return fail(host, feign::errno_error("open " + name, errno));
    feign::NativeWriter::Options how;
    how.level = static_cast<int>(options.level);
    to = std::make_unique<feign::NativeWriter>(file.fd(), name, tables, how);
    return FEIGN_OK;
  }

  feign_status write(const feign_activity& from) {
    feign_activity& a = record.a;
    streams_up_to(from.stream);
    a = from;
    a.op = op(from.op);
    if (a.op == 0)
      return host->fail(
          host, FEIGN_ERR_PLUGIN,
          ("an activity of op " + std::to_string(from.op) + ", which is unknown").c_str());
    a.path = string(from.path);
    a.path2 = string(from.path2);
    values.assign(from.values, from.values + from.value_count);
    if (from.value_count != 0) {
      if (from.op >= texts.size()) texts.resize(from.op + size_t{1});
      uint32_t& bits = texts[from.op];
      if (bits == 0) bits = text_values(host->op_info(host, from.op)) | 1u << 31;
      for (uint32_t v = 0; v < from.value_count && v < 31; ++v)
        if (bits >> v & 1) values[v] = string(static_cast<uint32_t>(values[v]));
    }
    record.set_values(values);
    // Dependencies are the core's part of an activity; this plug-in comes with the core.
    record.depends.clear();
    if (from.marks & FEIGN_DEPENDS) record.depends = feign::Record::of(&from)->depends;
    for (feign::Dependency& d : record.depends) {
      streams_up_to(d.stream);
      d.rule = string(d.rule);
    }
    if (auto added = to->add(record); !added) return fail(host, added.error());
    return FEIGN_OK;
  }

  feign_status finish() {
    if (const auto* all =
            static_cast<const feign::Tables*>(host->extension(host, "feign.tables/1"))) {
      tables.sources = all->sources;
      tables.left_out = all->left_out;
      tables.notes = all->notes;
      tables.warnings = all->warnings;
    }
    // What was not known of a stream when its first activity came: who made it, above all.
    for (uint32_t s = 1; s <= streams_known; ++s) {
      feign_stream_info info{};
      if (host->stream_info(host, s, &info) < 0) continue;
      streams_up_to(info.parent);
      tables.streams.set_parent(s, info.parent, info.parent_id);
      tables.streams.set_process(s, info.process);
    }
    static const std::vector<feign::Needed> kNone;
    const auto* needed =
        static_cast<const std::vector<feign::Needed>*>(host->extension(host, "feign.needed/1"));
    if (auto done = to->finish(needed != nullptr ? *needed : kNone); !done)
      return fail(host, done.error());
    if (!file.finish()) return fail(host, feign::errno_error("write " + name, errno));
    return FEIGN_OK;
  }

 private:
  uint32_t string(uint32_t id) {
    return strings(id, [&] {
      size_t length = 0;
      const char* text = host->text(host, id, &length);
      return tables.strings.intern({text, length});
    });
  }
  uint32_t op(uint32_t id) {
    return ops(id, [&]() -> uint32_t {
      const feign_op_info* info = host->op_info(host, id);
      if (info == nullptr) return 0;
      if (const uint32_t known = tables.ops.find(info->layer, info->name); known != 0) return known;
      std::vector<const feign_op_info*> all;
      uint32_t first = id;
      // The others of its layer, with numbers between them that are not in use.
      const auto each = [&](int step, auto&& take) {
        constexpr uint32_t kMostUnused = 4096;
        for (uint32_t o = id, unused = 0; o != 0 && unused < kMostUnused;
             o += static_cast<uint32_t>(step)) {
          const feign_op_info* const i = host->op_info(host, o);
          if (i != nullptr && strcmp(i->layer, info->layer) != 0) return;
          unused = i != nullptr ? 0 : unused + 1;
          if (i != nullptr) take(o, i);
        }
      };
      each(-1, [&](uint32_t o, const feign_op_info*) { first = o; });
      const auto place = [&](uint32_t o, const feign_op_info* i) {
        if (all.size() <= o - first) all.resize(o - first + 1);
        all[o - first] = i;
      };
      each(-1, place);
      each(1, place);
      const feign_layer layer = {sizeof layer, static_cast<uint32_t>(all.size()), info->layer,
                                 all.data()};
      auto added = tables.ops.add(layer);
      return added ? *added + (id - first) : 0;
    });
  }
  // Streams keep the host's numbers: all up to this one are taken over, in order.
  void streams_up_to(uint32_t id) {
    while (streams_known < id) {
      feign_stream_info info{};
      ++streams_known;
      if (host->stream_info(host, streams_known, &info) < 0) info = {};
      info.host = string(info.host);
      (void)tables.streams.add(info);
    }
  }

  const feign_host* host;
  WriterOptions options;
  std::string name;
  feign::OutputFile file;
  feign::Tables tables;
  std::unique_ptr<feign::NativeWriter> to;
  feign::Record record{};
  Translation strings, ops;
  uint32_t streams_known = 0;
  std::vector<uint32_t> texts;
  std::vector<uint64_t> values;
};

constexpr feign_provider kProviderApi = feign::provider<Provider, ProviderOptions>(probe);
constexpr feign_component kProvider = feign::component<ProviderOptions>(
    kProviderApi, "feign", "Reads the native format.", kProviderOptions);
constexpr feign_writer kWriterApi = feign::writer<Writer, WriterOptions>(".feign");
constexpr feign_component kWriter = feign::component<WriterOptions>(
    kWriterApi, "feign", "Writes the native format: compact, checked, with an index.",
    kWriterOptions);
constexpr const feign_component* kComponents[] = {&kProvider, &kWriter, nullptr};

}  // namespace

FEIGN_ROLES(FEIGN_PROVIDER | FEIGN_WRITER);
extern "C" const feign_plugin feign_plugin_v1 = {
    sizeof(feign_plugin), FEIGN_ABI_MINOR, "feign", FEIGN_VERSION, "MIT", kComponents};
