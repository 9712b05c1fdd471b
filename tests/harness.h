// SPDX-License-Identifier: MIT
// A host to test plug-ins with, in one header: installed as <feign/harness.h>, it needs feign.h and
// the C++17 standard library. It keeps the contract strictly, so that a plug-in that passes here
// behaves in Feign.
//
//   #define FEIGN_NO_ENTRY                       // a test is no plug-in
//   #include <feign/harness.h>
//
//   feign_test::ModifierHarness h(component, {{"min-length", "4k"}});
//   auto out = h.run({feign_test::act("write", 8), feign_test::act("read", 8192)}, /*batch=*/3);
#pragma once

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "feign.h"

namespace feign_test {

// What a test made wrong, or the plug-in: the message says which rule.
struct Broken : std::runtime_error {
  using std::runtime_error::runtime_error;
};

using Options = std::vector<std::pair<std::string, std::string>>;

// A component of a shared object, by name and role; kept loaded.
inline const feign_component* load_component(const std::string& path, const std::string& name,
                                             uint32_t role) {
  void* object = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (object == nullptr) throw Broken(dlerror());
  const auto* plugin = static_cast<const feign_plugin*>(dlsym(object, "feign_plugin_v1"));
  if (plugin == nullptr) throw Broken(path + " exports no feign_plugin_v1");
  for (size_t i = 0; plugin->components[i] != nullptr; ++i)
    if (plugin->components[i]->role == role && name == plugin->components[i]->name)
      return plugin->components[i];
  throw Broken(path + " has no such component: " + name);
}

// A fake host. Ops: the usual calls of layer posix, by name; others are made as they are asked for.
class Host {
 public:
  Host() {
    table_.struct_size = sizeof table_;
    table_.abi_minor = FEIGN_ABI_MINOR;
    table_.ctx = this;
    table_.log = [](const feign_host* h, int, const char* text) noexcept {
      of(h).logged.push_back(text);
    };
    table_.fail = [](const feign_host* h, feign_status code, const char* text) noexcept {
      of(h).failure += (of(h).failure.empty() ? "" : "; ") + std::string(text);
      return code;
    };
    table_.extension = [](const feign_host* h, const char* id) noexcept -> const void* {
      const auto at = of(h).extensions.find(id);
      return at == of(h).extensions.end() ? nullptr : at->second;
    };
    table_.intern = [](const feign_host* h, const char* text, size_t length) noexcept {
      return of(h).string(std::string(text, length));
    };
    table_.text = [](const feign_host* h, uint32_t id, size_t* length) noexcept -> const char* {
      const std::string& s = of(h).strings_[id < of(h).strings_.size() ? id : 0];
      if (length != nullptr) *length = s.size();
      return s.c_str();
    };
    table_.set_values = [](const feign_host* h, feign_activity* a, const uint64_t* values,
                           uint32_t count) noexcept {
      of(h).values_.emplace_back(values, values + count);
      a->values = count != 0 ? of(h).values_.back().data() : nullptr;
      a->value_count = count;
      return FEIGN_OK;
    };
    table_.op = [](const feign_host* h, const char* layer, const char* name) noexcept {
      return of(h).find_op(layer, name);
    };
    table_.op_info = [](const feign_host* h, uint32_t op) noexcept -> const feign_op_info* {
      return op != 0 && op <= of(h).ops_.size() ? &of(h).ops_[op - 1] : nullptr;
    };
    table_.register_layer = [](const feign_host* h, const feign_layer* layer,
                               uint32_t* first) noexcept {
      *first = static_cast<uint32_t>(of(h).ops_.size()) + 1;
      for (uint32_t i = 0; i < layer->op_count; ++i)
        of(h).add_op(layer->ops[i]->layer, layer->ops[i]->name, layer->ops[i]->kind);
      return FEIGN_OK;
    };
    table_.stream = [](const feign_host* h, const feign_stream_info* info) noexcept {
      of(h).streams_.push_back(*info);
      of(h).streams_.back().id = static_cast<uint32_t>(of(h).streams_.size());
      return of(h).streams_.back().id;
    };
    table_.stream_info = [](const feign_host* h, uint32_t stream,
                            feign_stream_info* info) noexcept {
      if (stream == 0 || stream > of(h).streams_.size()) return FEIGN_ERR_ARGUMENT;
      *info = of(h).streams_[stream - 1];
      return FEIGN_OK;
    };
    table_.depend = [](const feign_host* h, feign_activity* a, uint32_t stream, uint64_t id,
                       const char* rule) noexcept {
      if (a->id != 0 && id >= a->id) return FEIGN_ERR_PLUGIN;
      of(h).dependencies.push_back({a->id, stream, id, rule});
      return FEIGN_OK;
    };
    table_.left_out = [](const feign_host* h, uint32_t, const char* call, const char* why, uint64_t,
                         int) noexcept {
      ++of(h).left_out[{call, why}];
    };
    table_.merged = [](const feign_host* h, const feign_activity* a, uint64_t into) noexcept {
      of(h).merges.emplace_back(a->id, into);
    };
    static constexpr std::pair<const char*, uint32_t> kUsual[] = {
        {"open", FEIGN_KIND_OPEN},          {"openat", FEIGN_KIND_OPEN},
        {"close", FEIGN_KIND_CLOSE},        {"read", FEIGN_KIND_READ},
        {"write", FEIGN_KIND_WRITE},        {"pread64", FEIGN_KIND_READ},
        {"pwrite64", FEIGN_KIND_WRITE},     {"lseek", FEIGN_KIND_SEEK},
        {"stat", FEIGN_KIND_STAT},          {"fstat", FEIGN_KIND_STAT},
        {"rename", FEIGN_KIND_CHANGE},      {"unlink", FEIGN_KIND_CHANGE},
        {"mkdir", FEIGN_KIND_CHANGE},       {"symlink", FEIGN_KIND_CHANGE},
        {"fsync", FEIGN_KIND_FLUSH},        {"dup", FEIGN_KIND_DUP},
        {"ftruncate", FEIGN_KIND_SIZE},     {"fork", FEIGN_KIND_PROCESS},
        {"exit_group", FEIGN_KIND_PROCESS}, {"readv", FEIGN_KIND_READ},
        {"writev", FEIGN_KIND_WRITE},       {"preadv", FEIGN_KIND_READ},
        {"pwritev", FEIGN_KIND_WRITE},      {"fdatasync", FEIGN_KIND_FLUSH},
        {"fallocate", FEIGN_KIND_SIZE},     {"fadvise64", FEIGN_KIND_OTHER},
        {"readahead", FEIGN_KIND_OTHER},    {"sync", FEIGN_KIND_FLUSH}};
    for (const auto& [name, kind] : kUsual) add_op("posix", name, kind);
    for (int i = 1; i <= 4; ++i) {  // streams 1 to 4: processes 101 to 104, ranks 0 to 3
      feign_stream_info info{};
      info.struct_size = sizeof info;
      info.process = info.thread = 100 + i;
      info.rank = i - 1;
      table_.stream(&table_, &info);
    }
  }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  const feign_host* table() const { return &table_; }
  uint32_t string(const std::string& text) {
    if (text.empty()) return 0;
    const auto [at, fresh] = ids_.try_emplace(text, static_cast<uint32_t>(strings_.size()));
    if (fresh) strings_.push_back(text);
    return at->second;
  }
  const std::string& text(uint32_t id) const { return strings_.at(id); }
  uint32_t find_op(const std::string& layer, const std::string& name) const {
    for (const feign_op_info& op : ops_)
      if (layer == op.layer && name == op.name) return op.id;
    return 0;
  }
  uint32_t add_op(const std::string& layer, const std::string& name, uint32_t kind) {
    feign_op_info info{};
    info.struct_size = sizeof info;
    info.id = static_cast<uint32_t>(ops_.size()) + 1;
    names_.push_back(name);
    info.name = names_.back().c_str();
    names_.push_back(layer);
    info.layer = names_.back().c_str();
    info.kind = kind;
    info.arg_stride = sizeof(feign_arg_info);
    ops_.push_back(info);
    return info.id;
  }

  struct Dependency {
    uint64_t of;
    uint32_t stream;
    uint64_t id;
    std::string rule;
  };
  std::string failure;  // what fail() was told
  std::vector<std::string> logged;
  std::vector<Dependency> dependencies;
  std::vector<std::pair<uint64_t, uint64_t>> merges;  // which id went into which
  std::map<std::pair<std::string, std::string>, uint64_t> left_out;
  std::map<std::string, const void*> extensions;  // what extension() answers

 private:
  static Host& of(const feign_host* h) { return *static_cast<Host*>(h->ctx); }
  feign_host table_{};
  std::deque<std::string> strings_{""}, names_;
  std::map<std::string, uint32_t> ids_;
  std::deque<feign_op_info> ops_;
  std::deque<feign_stream_info> streams_;
  std::deque<std::vector<uint64_t>> values_;
};

// An options struct filled from text, as the host would.
class Values {
 public:
  Values(const feign_component& c, const Options& given) : memory_(c.options_size / 8 + 1) {
    auto* base = reinterpret_cast<char*>(memory_.data());
    Options left = given;
    for (uint32_t i = 0; i < c.option_count; ++i) {
      const auto& o = *reinterpret_cast<const feign_option*>(
          reinterpret_cast<const char*>(c.options) + size_t{i} * c.option_stride);
      std::vector<std::string> values;
      for (auto at = left.begin(); at != left.end();) {
        if (at->first != o.name) {
          ++at;
          continue;
        }
        values.push_back(at->second);
        at = left.erase(at);
      }
      if (values.empty() && o.fallback != nullptr) values.push_back(o.fallback);
      if (o.type == FEIGN_OPT_TEXTS) {
        lists_.emplace_back();
        for (const std::string& v : values) lists_.back().push_back(keep(v));
        lists_.back().push_back(nullptr);
        const char* const* list = lists_.back().data();
        memcpy(base + o.offset, &list, sizeof list);
        continue;
      }
      if (values.empty()) throw Broken(std::string("option is missing: ") + o.name);
      set(base + o.offset, o, values.front());
    }
    if (!left.empty()) throw Broken("unknown option: " + left.front().first);
  }
  const void* data() const { return memory_.data(); }

 private:
  const char* keep(const std::string& text) {
    texts_.push_back(text);
    return texts_.back().c_str();
  }
  void set(char* to, const feign_option& o, const std::string& v) {
    const auto put = [&](auto value) { memcpy(to, &value, sizeof value); };
    const auto wrong = [&] {
      return Broken(std::string(o.name) + "=" + v + ": not of the option's type");
    };
    char* end = nullptr;
    switch (o.type) {
      case FEIGN_OPT_BOOL:
        if (v != "yes" && v != "no" && v != "on" && v != "off" && v != "true" && v != "false" &&
            v != "1" && v != "0")
          throw wrong();
        return put(static_cast<uint32_t>(v == "yes" || v == "on" || v == "true" || v == "1"));
      case FEIGN_OPT_ENUM:
        for (uint32_t i = 0; o.choices[i] != nullptr; ++i)
          if (v == o.choices[i]) return put(i);
        throw wrong();
      case FEIGN_OPT_REAL:
        return put(strtod(v.c_str(), nullptr));
      case FEIGN_OPT_TEXT:
        return put(keep(v));
      default: {
        const double number = strtod(v.c_str(), &end);
        const std::string unit = end;
        static const std::map<std::string, double> kUnits = {
            {"", 1}, {"k", 1024}, {"m", 1048576}, {"g", 1073741824}, {"t", 1099511627776.0}};
        static const std::map<std::string, double> kTimes = {
            {"", 1}, {"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 6e10}, {"h", 3.6e12}};
        const auto& units = o.type == FEIGN_OPT_DURATION ? kTimes : kUnits;
        if (end == v.c_str() || units.find(unit) == units.end()) throw wrong();
        return put(static_cast<uint64_t>(number * units.at(unit)));
      }
    }
  }
  std::vector<uint64_t> memory_;
  std::deque<std::string> texts_;
  std::deque<std::vector<const char*>> lists_;
};

// An activity in words, for the harness to make.
struct Act {
  std::string op;
  uint64_t length = 0, offset = 0;
  int64_t result = 0;
  uint32_t stream = 1, handle = 0, file = 0, flags = 0;
  std::string path, path2;
  uint64_t start_ns = 0, duration_ns = 100, compute_ns = 0;
  uint32_t marks = 0;  // beside FEIGN_RESOLVED
  std::vector<uint64_t> values;
  uint32_t mode = 0, handle2 = 0;
};
inline Act act(std::string op, uint64_t length = 0, std::string path = "/f", uint32_t stream = 1) {
  Act a;
  a.op = std::move(op);
  a.length = length;
  a.result = static_cast<int64_t>(length);
  a.path = std::move(path);
  a.stream = stream;
  a.handle = a.file = 1;
  return a;
}

// What an activity came to: a copy, with what is text as text.
struct Out {
  feign_activity a;
  std::string op, path, path2;
};

// Runs a modifier over activities, showing it exactly the look-ahead that it asked for.
class ModifierHarness {
 public:
  explicit ModifierHarness(const feign_component* component, const Options& options = {})
      : api_(*static_cast<const feign_modifier*>(component->api)), values_(*component, options) {
    status_ = api_.create(host.table(), values_.data(), &self_);
  }
  ~ModifierHarness() {
    if (status_ >= 0) api_.destroy(self_);
  }
  feign_status created() const { return status_; }

  std::vector<Out> run(const std::vector<Act>& in, size_t batch) {
    if (status_ < 0) throw Broken("create() failed: " + host.failure);
    std::deque<feign_activity> records;
    std::vector<feign_activity*> items;
    uint64_t clock = 0;
    for (const Act& x : in) {
      feign_activity a{};
      a.op = host.find_op("posix", x.op);
      if (a.op == 0) throw Broken("the harness knows no op " + x.op);
      a.start_ns = x.start_ns != 0 ? x.start_ns : clock;
      clock = a.start_ns + x.duration_ns + 1;
      a.duration_ns = x.duration_ns;
      a.compute_ns = x.compute_ns;
      a.length = x.length;
      a.offset = x.offset;
      a.result = x.result;
      a.stream = x.stream;
      a.handle = x.handle;
      a.file = x.file;
      a.flags = x.flags;
      a.mode = x.mode;
      a.handle2 = x.handle2;
      a.path = host.string(x.path);
      a.path2 = host.string(x.path2);
      a.marks = FEIGN_RESOLVED | x.marks;
      if (!x.values.empty())
        host.table()->set_values(host.table(), &a, x.values.data(),
                                 static_cast<uint32_t>(x.values.size()));
      a.id = (records.size() + 1) << 16;
      records.push_back(a);
      items.push_back(&records.back());
    }
    uint32_t lookahead = api_.lookahead;
    if (FEIGN_HAS(&api_, lookahead_of) && api_.lookahead_of != nullptr)
      lookahead = api_.lookahead_of(self_);

    Sink sink;
    sink.host = &host;
    size_t done = 0;
    while (true) {
      const size_t left = items.size() - done;
      const bool at_end = left <= batch + lookahead;
      const size_t due = left < batch ? left : batch;
      const size_t count = at_end ? left : due + lookahead;
      const std::vector<feign_activity> beyond = copies(items, done + due, done + count);
      sink.due.assign(items.begin() + static_cast<ptrdiff_t>(done),
                      items.begin() + static_cast<ptrdiff_t>(done + due));
      const feign_window window{sizeof window, at_end ? 1u : 0u, items.data() + done, due, count};
      const feign_status status = api_.process(self_, &window, &sink.table);
      if (!sink.broken.empty()) throw Broken(sink.broken);
      if (status < 0) throw Broken("process() failed: " + host.failure);
      if (memcmp_of(beyond, copies(items, done + due, done + count)) != 0)
        throw Broken("changed an activity that was not due");
      done += due;
      if (at_end && due == 0) break;
    }
    dropped = items.size() - (sink.out.size() - sink.made);
    injected = sink.made;
    std::vector<Out> out;
    for (const feign_activity& a : sink.out)
      out.push_back({a, host.table()->op_info(host.table(), a.op)->name, host.text(a.path),
                     host.text(a.path2)});
    return out;
  }

  Host host;
  size_t dropped = 0, injected = 0;  // by the last run()

 private:
  struct Sink {
    feign_sink table{sizeof(feign_sink), this, make, emit};
    Host* host = nullptr;
    std::vector<feign_activity*> due;
    std::deque<feign_activity> fresh;
    std::vector<feign_activity> out;
    size_t made = 0;
    uint64_t last = 0;
    std::string broken;

    static feign_activity* make(feign_sink* s) noexcept {
      auto& self = *static_cast<Sink*>(s->ctx);
      self.fresh.emplace_back();
      self.fresh.back() = feign_activity{};
      return &self.fresh.back();
    }
    static feign_status emit(feign_sink* s, feign_activity* a) noexcept {
      auto& self = *static_cast<Sink*>(s->ctx);
      bool known = false;
      for (auto& d : self.due)
        if (d == a) {
          known = true;
          d = nullptr;
        }
      for (auto& f : self.fresh)
        if (&f == a && a->id == 0) {
          known = true;
          a->id = self.last + 1;
          if (!(a->marks & FEIGN_RESOLVED)) a->marks |= FEIGN_INJECTED | FEIGN_RESOLVED;
          ++self.made;
        }
      if (!known)
        self.broken = "emitted an activity that was not its own: twice, or one that was not due";
      else if (a->id <= self.last)
        self.broken = "emitted out of order";
      if (!self.broken.empty()) return FEIGN_ERR_PLUGIN;
      self.last = a->id;
      self.out.push_back(*a);
      return FEIGN_OK;
    }
  };
  static std::vector<feign_activity> copies(const std::vector<feign_activity*>& items, size_t from,
                                            size_t to) {
    std::vector<feign_activity> out;
    for (size_t i = from; i < to; ++i) out.push_back(*items[i]);
    return out;
  }
  static int memcmp_of(const std::vector<feign_activity>& a, const std::vector<feign_activity>& b) {
    return a.empty() ? 0 : memcmp(a.data(), b.data(), a.size() * sizeof a[0]);
  }

  const feign_modifier& api_;
  Values values_;
  void* self_ = nullptr;
  feign_status status_;
};

// Executes single activities.
class ReplayerHarness {
 public:
  explicit ReplayerHarness(const feign_component* component, const Options& options = {},
                           const feign_run* run = nullptr)
      : api_(*static_cast<const feign_replayer*>(component->api)), values_(*component, options) {
    host.extensions["feign.run/1"] = run;
    status_ = api_.create(host.table(), values_.data(), &self_);
    if (status_ < 0) return;
    feign_stream_info info{};
    host.table()->stream_info(host.table(), 1, &info);
    status_ = api_.open_stream(self_, &info, &stream_);
  }
  ~ReplayerHarness() {
    if (status_ < 0) return;
    api_.close_stream(self_, stream_);
    api_.destroy(self_);
  }
  feign_status created() const { return status_; }
  feign_outcome execute(const feign_activity& a) {
    feign_outcome outcome{sizeof outcome, FEIGN_DONE, 0, nullptr};
    if (api_.execute(self_, stream_, &a, &outcome) < 0)
      throw Broken("execute() failed: " + host.failure);
    return outcome;
  }
  Host host;

 private:
  const feign_replayer& api_;
  Values values_;
  void *self_ = nullptr, *stream_ = nullptr;
  feign_status status_;
};

}  // namespace feign_test
