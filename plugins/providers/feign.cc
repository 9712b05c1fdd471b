// SPDX-License-Identifier: MIT
// Provider and writer feign: the native format (docs/native-format.md).
//
// Both have tables of their own, as any plug-in would: what the host calls a string, an op or a
// stream is translated, once each.
#include "feign.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <string>
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

struct Provider {
  const feign_host* host;
  std::string name;
  feign::Tables tables;
  std::shared_ptr<feign::NativeReader> reader;
  std::unique_ptr<feign::NativeReader::Cursor> cursor;
  feign::Record record{};
  Translation strings, ops, streams;
  std::vector<uint32_t> texts;  // by op of ours
  std::vector<uint64_t> values;

  uint32_t string(uint32_t id) {
    // The file may not have taken for a string what is one here.
    if (id >= tables.strings.size()) return 0;
    return strings(id, [&] {
      const std::string_view text = tables.strings.text(id);
      return host->intern(host, text.data(), text.size());
    });
  }
  // A parent's number comes before its child's in the file, so this ends.
  uint32_t stream(uint32_t id, int depth = 0) {
    return streams(id, [&]() -> uint32_t {
      feign_stream_info info = tables.streams.info(id);
      info.host = string(info.host);
      info.parent = info.parent < id && depth < 100000 ? stream(info.parent, depth + 1) : 0;
      return host->stream(host, &info);
    });
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
};

feign_status provider_create(const feign_host* host, const void* raw, void** self) noexcept {
  const auto& o = *static_cast<const ProviderOptions*>(raw);
  if (o.file[0] == nullptr) return host->fail(host, FEIGN_ERR_ARGUMENT, "file: want a trace file");
  if (o.file[1] != nullptr)
    return host->fail(host, FEIGN_ERR_ARGUMENT,
                      (std::string("file=") + o.file[1] +
                       ": a second file: want one, a native trace holds all streams")
                          .c_str());
  try {
    auto p = std::make_unique<Provider>();
    p->host = host;
    p->name = o.file[0];
    const int fd = open(o.file[0], O_RDONLY | O_CLOEXEC);
    if (fd < 0) return fail(host, feign::errno_error(std::string("open ") + o.file[0], errno));
    auto reader = feign::NativeReader::open(fd, o.file[0], p->tables);
    if (!reader) return fail(host, reader.error());
    p->reader = *reader;
    // left_out() counts one call at a time, and the file may say any number.
    if (auto* tables = const_cast<feign::Tables*>(
            static_cast<const feign::Tables*>(host->extension(host, "feign.tables/1")))) {
      tables->sources = p->tables.sources;
      for (const auto& [key, l] : p->tables.left_out) {
        tables->left_out[key].count += l.count;
        tables->left_out[key].duration_ns += l.duration_ns;
      }
    } else {
      for (const auto& [key, l] : p->tables.left_out)
        host->left_out(host, 0, key.first.c_str(), key.second.c_str(), l.duration_ns, 0);
    }
    const auto& by_op = p->reader->totals().by_op;
    for (uint32_t op = 1; op < by_op.size(); ++op)
      if (by_op[op] != 0 && p->op(op) == 0) return p->no_op(op);
    feign::NativeReader::Range range;
    range.from = o.from;
    range.from_ns = o.from_time;
    if (o.stream != 0) {
      const bool there = o.stream < p->tables.streams.size();
      if (!there)
        return host->fail(host, FEIGN_ERR_ARGUMENT,
                          ("stream=" + std::to_string(o.stream) + ": the trace has streams 1 to " +
                           std::to_string(p->tables.streams.size() - 1))
                              .c_str());
      range.streams = {static_cast<uint32_t>(o.stream)};
    }
    range.path = o.path;
    // Streams in the order of the file, so that numbers in reports are the same.
    for (uint32_t s = 1; s < p->tables.streams.size(); ++s) (void)p->stream(s);
    p->cursor = std::make_unique<feign::NativeReader::Cursor>(p->reader, range);
    *self = p.release();
    return FEIGN_OK;
  } catch (const std::exception&) {
    return host->fail(host, FEIGN_ERR_NOMEM, "out of memory");
  }
}

feign_status provider_next(void* self, size_t want, feign_sink* out) noexcept {
  auto& p = *static_cast<Provider*>(self);
  try {
    for (size_t i = 0; i < want; ++i) {
      uint64_t number = 0;
      auto more = p.cursor->next(p.record, number);
      if (!more) return fail(p.host, more.error());
      if (!*more) return FEIGN_END;
      feign_activity* a = out->make(out);
      if (a == nullptr) return p.host->fail(p.host, FEIGN_ERR_NOMEM, "out of memory");
      const uint32_t mine = a->host;
      const feign_activity& from = p.record.a;
      *a = from;
      a->host = mine;
      a->values = nullptr;
      a->value_count = 0;
      a->op = p.op(from.op);
      if (a->op == 0) return p.no_op(from.op);
      a->stream = p.stream(from.stream);
      a->path = p.string(from.path);
      a->path2 = p.string(from.path2);
      if (from.value_count != 0) {
        if (from.op >= p.texts.size()) p.texts.resize(p.tables.ops.size());
        uint32_t& bits = p.texts[from.op];
        if (bits == 0) bits = text_values(p.tables.ops.info(from.op)) | 1u << 31;
        p.values.assign(from.values, from.values + from.value_count);
        for (uint32_t v = 0; v < from.value_count && v < 31; ++v)
          if (bits >> v & 1) p.values[v] = p.string(static_cast<uint32_t>(p.values[v]));
        if (const feign_status s = p.host->set_values(p.host, a, p.values.data(), from.value_count);
            s < 0)
          return s;
      }
      for (const feign::Dependency& d : p.record.depends)
        if (const feign_status s = p.host->depend(p.host, a, p.stream(d.stream), d.id,
                                                  p.tables.strings.text(d.rule).data());
            s < 0)
          return s;
      if (const feign_status s = out->emit(out, a); s < 0) return s;
    }
    return FEIGN_OK;
  } catch (const std::exception&) {
    return p.host->fail(p.host, FEIGN_ERR_NOMEM, "out of memory");
  }
}

void provider_destroy(void* self) noexcept { delete static_cast<Provider*>(self); }

int provider_probe(const char*, const void* head, size_t size) noexcept {
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

struct Writer {
  const feign_host* host;
  std::string name;
  feign::OutputFile file;
  feign::Tables tables;
  std::unique_ptr<feign::NativeWriter> to;
  feign::Record record{};
  Translation strings, ops, streams;
  uint32_t streams_known = 0;
  std::vector<uint32_t> texts;
  std::vector<uint64_t> values;
  std::vector<std::unique_ptr<feign::Tables>> layers;

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
};

feign_status writer_create(const feign_host* host, const void* raw, void** self) noexcept {
  const auto& o = *static_cast<const WriterOptions*>(raw);
  try {
    auto w = std::make_unique<Writer>();
    w->host = host;
    w->name = o.file;
    if (!w->file.open(w->name)) return fail(host, feign::errno_error("open " + w->name, errno));
    feign::NativeWriter::Options options;
    options.level = static_cast<int>(o.level);
    w->to = std::make_unique<feign::NativeWriter>(w->file.fd(), w->name, w->tables, options);
    *self = w.release();
    return FEIGN_OK;
  } catch (const std::exception&) {
    return host->fail(host, FEIGN_ERR_NOMEM, "out of memory");
  }
}

feign_status writer_write(void* self, const feign_activity* const* items, size_t count) noexcept {
  auto& w = *static_cast<Writer*>(self);
  try {
    for (size_t i = 0; i < count; ++i) {
      const feign_activity& from = *items[i];
      feign_activity& a = w.record.a;
      w.streams_up_to(from.stream);
      a = from;
      a.op = w.op(from.op);
      if (a.op == 0)
        return w.host->fail(
            w.host, FEIGN_ERR_PLUGIN,
            ("an activity of op " + std::to_string(from.op) + ", which is unknown").c_str());
      a.path = w.string(from.path);
      a.path2 = w.string(from.path2);
      w.values.assign(from.values, from.values + from.value_count);
      if (from.value_count != 0) {
        if (from.op >= w.texts.size()) w.texts.resize(from.op + size_t{1});
        uint32_t& bits = w.texts[from.op];
        if (bits == 0) bits = text_values(w.host->op_info(w.host, from.op)) | 1u << 31;
        for (uint32_t v = 0; v < from.value_count && v < 31; ++v)
          if (bits >> v & 1) w.values[v] = w.string(static_cast<uint32_t>(w.values[v]));
      }
      w.record.set_values(w.values);
      // Dependencies are the core's part of an activity; this plug-in comes with the core.
      w.record.depends.clear();
      if (from.marks & FEIGN_DEPENDS) w.record.depends = feign::Record::of(&from)->depends;
      for (feign::Dependency& d : w.record.depends) {
        w.streams_up_to(d.stream);
        d.rule = w.string(d.rule);
      }
      if (auto added = w.to->add(w.record); !added) return fail(w.host, added.error());
    }
    return FEIGN_OK;
  } catch (const std::exception&) {
    return w.host->fail(w.host, FEIGN_ERR_NOMEM, "out of memory");
  }
}

feign_status writer_finish(void* self) noexcept {
  auto& w = *static_cast<Writer*>(self);
  try {
    if (const auto* tables =
            static_cast<const feign::Tables*>(w.host->extension(w.host, "feign.tables/1"))) {
      w.tables.sources = tables->sources;
      w.tables.left_out = tables->left_out;
    }
    // What was not known of a stream when its first activity came: who made it, above all.
    for (uint32_t s = 1; s <= w.streams_known; ++s) {
      feign_stream_info info{};
      if (w.host->stream_info(w.host, s, &info) < 0) continue;
      w.streams_up_to(info.parent);
      w.tables.streams.set_parent(s, info.parent, info.parent_id);
      w.tables.streams.set_process(s, info.process);
    }
    static const std::vector<feign::Needed> kNone;
    const auto* needed =
        static_cast<const std::vector<feign::Needed>*>(w.host->extension(w.host, "feign.needed/1"));
    if (auto done = w.to->finish(needed != nullptr ? *needed : kNone); !done)
      return fail(w.host, done.error());
    if (!w.file.finish()) return fail(w.host, feign::errno_error("write " + w.name, errno));
    return FEIGN_OK;
  } catch (const std::exception&) {
    return w.host->fail(w.host, FEIGN_ERR_NOMEM, "out of memory");
  }
}

void writer_destroy(void* self) noexcept { delete static_cast<Writer*>(self); }

constexpr feign_provider kProviderApi = {
    sizeof kProviderApi, 0, provider_create, provider_next, provider_destroy, provider_probe};
constexpr feign_component kProvider = {sizeof kProvider,
                                       FEIGN_PROVIDER,
                                       "feign",
                                       "Reads the native format.",
                                       &kProviderApi,
                                       kProviderOptions,
                                       std::size(kProviderOptions),
                                       sizeof(feign_option),
                                       sizeof(ProviderOptions),
                                       0};
constexpr feign_writer kWriterApi = {
    sizeof kWriterApi, 0, writer_create, writer_write, writer_finish, writer_destroy, ".feign"};
constexpr feign_component kWriter = {sizeof kWriter,
                                     FEIGN_WRITER,
                                     "feign",
                                     "Writes the native format: compact, checked, with an index.",
                                     &kWriterApi,
                                     kWriterOptions,
                                     std::size(kWriterOptions),
                                     sizeof(feign_option),
                                     sizeof(WriterOptions),
                                     0};
constexpr const feign_component* kComponents[] = {&kProvider, &kWriter, nullptr};

}  // namespace

FEIGN_ROLES(FEIGN_PROVIDER | FEIGN_WRITER);
extern "C" const feign_plugin feign_plugin_v1 = {
    sizeof(feign_plugin), FEIGN_ABI_MINOR, "feign", FEIGN_VERSION, "MIT", kComponents};
