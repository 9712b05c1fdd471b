// SPDX-License-Identifier: MIT
// The short form of plug-ins, as an adapter over the real ABI: everything that makes it differ is
// in this file. A component of it has no options struct; the host hands its create() the
// component's own table instead, which is how an adapter finds the plug-in that it stands for.
#include "plugin/short_form.h"

#include <algorithm>
#include <climits>
#include <cstring>
#include <mutex>
#include <new>
#include <unordered_map>

#include "layers/posix_ops.h"
#include "plugin/object.h"
#include "plugin/options.h"

namespace feign {
namespace {

constexpr int kPosixLayer = 13;                 // the paper's implementation's number for it
constexpr int kFirstLayer = 100;                // of those that plug-ins register
constexpr const char* kNoLayer = "short-form";  // of activities that name neither op nor layer

using OnActivity = Activity* (*)(Activity*);

}  // namespace

struct ShortForm::Impl {
  // Each component starts with its table, whose address its create() is given.
  struct Part {
    feign_component table;
    Impl* owner;
  };

  std::string path;
  ShortFormNumbers* numbers = nullptr;
  std::vector<std::string> arg_texts;
  std::vector<char*> argv;
  Plugin* announced = nullptr;
  int number = 0;
  bool announced_twice = false;
  bool nameless = false;  // it announced what has no name
  int intents = 0;
  bool initialised = false;
  std::string name, version, summary;
  std::map<std::string, int> layers;  // that it registered
  int layer_intents = 0;              // an early form of the paper's example says them there

  OnActivity provide = nullptr, filter = nullptr, mutate = nullptr, replay = nullptr;
  OnActivity report = nullptr, destroy = nullptr;
  int (*finalize)() = nullptr;
  // Short-form callbacks run one at a time.
  std::mutex mutex;

  feign_plugin table{};
  std::vector<std::unique_ptr<Part>> parts;
  std::vector<const feign_component*> components;

  Result<void> find_callbacks(void* handle);
  void make_components();
};

namespace {

using Owner = ShortForm::Impl;

// The plug-in whose init() is running: feign_register_plugin() has no argument that could say so.
thread_local Owner* t_initialising = nullptr;

int op_number(const char* name) {
  const feign_layer& posix = posix_layer();
  for (uint32_t i = 0; i < posix.op_count; ++i)
    if (posix.ops[i] != nullptr && std::strcmp(posix.ops[i]->name, name) == 0)
      return static_cast<int>(i + 1);
  return 0;
}

int as_int(uint64_t value) { return value > INT_MAX ? INT_MAX : static_cast<int>(value); }

uint64_t not_negative(long long value) { return value > 0 ? static_cast<uint64_t>(value) : 0; }

bool same_text(const char* a, const char* b) {
  if (a == b) return true;
  return std::strcmp(a == nullptr ? "" : a, b == nullptr ? "" : b) == 0;
}

// Activities as a short-form plug-in sees them, for modifiers and the replayer.
class Views {
 public:
  Views(const feign_host* host, const Owner& owner) : host_(host), owner_(owner) {}

  Activity view(const feign_activity& a) {
    Activity v{};
    v.status = FEIGN_STATUS_READY;
    v.provider = -1;
    v.offset = static_cast<long long>(a.compute_ns);
    v.size = as_int(a.length);
    v.rank = rank(a.stream);
    if (const feign_op_info* op = host_->op_info(host_, a.op); op != nullptr) {
      v.layer = layer(op->layer);
      v.op = v.layer == kPosixLayer ? static_cast<int>(a.op) : 0;
      v.kind = static_cast<int>(op->kind);
    }
    v.path = a.path == 0 ? nullptr : host_->text(host_, a.path, nullptr);
    v.path2 = a.path2 == 0 ? nullptr : host_->text(host_, a.path2, nullptr);
    v.fd = static_cast<int>(a.handle);
    v.flags = a.flags;
    v.mode = a.mode;
    v.position = static_cast<long long>(a.offset);
    v.length = static_cast<long long>(a.length);
    v.result = a.result;
    v.start = static_cast<long long>(a.start_ns);
    v.duration = static_cast<long long>(a.duration_ns);
    return v;
  }

 private:
  int layer(const char* name) const {
    if (std::strcmp(name, "posix") == 0) return kPosixLayer;
    const auto known = owner_.numbers->layers.find(name);
    return known == owner_.numbers->layers.end() ? 0 : known->second;
  }

  int rank(uint32_t stream) {
    if (const auto known = ranks_.find(stream); known != ranks_.end()) return known->second;
    feign_stream_info info{};
    int rank = -1;
    if (host_->stream_info(host_, stream, &info) >= 0)
      rank = info.rank >= 0 ? info.rank : static_cast<int>(info.process);
    ranks_.emplace(stream, rank);
    return rank;
  }

  const feign_host* host_;
  const Owner& owner_;
  std::unordered_map<uint32_t, int> ranks_;
};

feign_status say(const feign_host* host, feign_status code, const std::string& text) {
  return host->fail(host, code, text.c_str());
}

// Runs `make` for a create(): what it throws for lack of memory becomes a status.
template <typename T, typename... Args>
feign_status make_self(const feign_host* host, const void* options, void** self, Args... args) {
  Owner& owner = *reinterpret_cast<const Owner::Part*>(options)->owner;
  try {
    *self = new T(host, owner, args...);
    return FEIGN_OK;
  } catch (const std::bad_alloc&) {
    return FEIGN_ERR_NOMEM;
  }
}

template <typename T>
void destroy_self(void* self) noexcept {
  delete static_cast<T*>(self);
}

// provide() as a provider.
class Provider {
 public:
  Provider(const feign_host* host, Owner& owner) : host_(host), owner_(owner) {}

  static feign_status create(const feign_host* host, const void* options, void** self) noexcept {
    return make_self<Provider>(host, options, self);
  }

  static feign_status next(void* self, size_t want, feign_sink* out) noexcept {
    auto& p = *static_cast<Provider*>(self);
    try {
      const std::lock_guard lock(p.owner_.mutex);
      for (size_t i = 0; i < want; ++i) {
        Activity* given = p.owner_.provide(nullptr);
        if (given == nullptr) return FEIGN_END;
        given->provider = p.owner_.number;
        const feign_status status = p.pass_on(*given, out);
        // It was copied: from here on it is the plug-in's alone.
        if (p.owner_.destroy != nullptr) p.owner_.destroy(given);
        if (status < 0) return status;
      }
      return FEIGN_OK;
    } catch (const std::bad_alloc&) {
      return FEIGN_ERR_NOMEM;
    }
  }

 private:
  feign_status pass_on(const Activity& given, feign_sink* out) {
    ++count_;
    feign_activity* a = out->make(out);
    if (a == nullptr) return FEIGN_ERR_NOMEM;
    if (const feign_status status = set_op(given, *a); status < 0) return status;
    a->stream = stream(given.rank);
    if (a->stream == 0) return FEIGN_ERR_NOMEM;
    if (given.path != nullptr) a->path = host_->intern(host_, given.path, std::strlen(given.path));
    if (given.path2 != nullptr)
      a->path2 = host_->intern(host_, given.path2, std::strlen(given.path2));
    a->flags = given.flags;
    a->mode = given.mode;
    a->offset = static_cast<uint64_t>(given.position);
    a->length = not_negative(given.length > 0 ? given.length : given.size);
    a->result = given.result;
    a->duration_ns = not_negative(given.duration);
    a->compute_ns = not_negative(given.offset);
    uint64_t& end = ends_[a->stream];
    a->start_ns = given.start > 0 ? not_negative(given.start) : end + a->compute_ns;
    end = a->start_ns + a->duration_ns;
    a->place = FEIGN_PLACE(0, count_);
    return out->emit(out, a);
  }

  feign_status set_op(const Activity& given, feign_activity& a) {
    if (given.op == 0) {
      a.op = event(given.layer);
      return a.op == 0 ? FEIGN_ERR_PLUGIN : FEIGN_OK;
    }
    const feign_op_info* op =
        given.op > 0 ? host_->op_info(host_, static_cast<uint32_t>(given.op)) : nullptr;
    if (op == nullptr)
      return say(host_, FEIGN_ERR_PLUGIN,
                 "activity " + std::to_string(count_) + ": op is " + std::to_string(given.op) +
                     ", want 0 or what feign_op() gives");
    a.op = static_cast<uint32_t>(given.op);
    bool handle = false, handle2 = false, path = false;
    for (uint32_t i = 0; i < op->arg_count; ++i) {
      handle |= op->args[i].slot == FEIGN_SLOT_HANDLE;
      handle2 |= op->args[i].slot == FEIGN_SLOT_HANDLE2;
      path |= op->args[i].slot == FEIGN_SLOT_PATH;
    }
    // Beside a path, the descriptor is the directory that the path starts at; who does not set `fd`
    // means the working directory.
    const bool working = path && given.path != nullptr && given.fd <= 0;
    if (handle) a.handle = working ? FEIGN_CWD : FEIGN_FD(given.fd);
    if (handle2) {
      const bool from_cwd = path && given.path2 != nullptr;
      a.handle2 = from_cwd ? FEIGN_CWD : given.result >= 0 ? FEIGN_FD(given.result) : 0;
    }
    return FEIGN_OK;
  }

  // The op of activities that are no call: the only one of the layer that they name.
  uint32_t event(int layer) {
    if (const auto known = events_.find(layer); known != events_.end()) return known->second;
    const char* name = kNoLayer;
    for (const auto& [layer_name, id] : owner_.layers)
      if (id == layer) name = layer_name.c_str();
    auto made = std::make_unique<EventLayer>();
    made->op = {
        sizeof(feign_op_info),  0,      "event", name, FEIGN_KIND_OTHER, FEIGN_RESULT_SUCCESS, 0,
        sizeof(feign_arg_info), nullptr};
    made->layer = {sizeof(feign_layer), 1, name, &made->ops};
    uint32_t first = 0;
    if (host_->register_layer(host_, &made->layer, &first) < 0) return 0;
    event_layers_.push_back(std::move(made));
    events_.emplace(layer, first);
    return first;
  }

  uint32_t stream(int rank) {
    if (const auto known = streams_.find(rank); known != streams_.end()) return known->second;
    feign_stream_info info{};
    info.struct_size = sizeof info;
    info.rank = rank;
    info.process = -1;  // the system's number is not known
    info.thread = rank;
    const uint32_t stream = host_->stream(host_, &info);
    if (stream != 0) streams_.emplace(rank, stream);
    return stream;
  }

  struct EventLayer {
    feign_op_info op;
    const feign_op_info* ops = &op;
    feign_layer layer;
  };

  const feign_host* host_;
  Owner& owner_;
  uint64_t count_ = 0;
  std::unordered_map<int, uint32_t> streams_;
  std::unordered_map<uint32_t, uint64_t> ends_;  // by stream: when its last activity ended
  std::map<int, uint32_t> events_;
  std::vector<std::unique_ptr<EventLayer>> event_layers_;
};

// filter(), mutate(), report() and destroy() as a modifier.
class Modifier {
 public:
  Modifier(const feign_host* host, Owner& owner)
      : host_(host), owner_(owner), views_(host, owner) {}

  static feign_status create(const feign_host* host, const void* options, void** self) noexcept {
    return make_self<Modifier>(host, options, self);
  }

  static feign_status process(void* self, const feign_window* in, feign_sink* out) noexcept {
    auto& m = *static_cast<Modifier*>(self);
    try {
      const std::lock_guard lock(m.owner_.mutex);
      for (size_t i = 0; i < in->due; ++i) {
        if (!m.keeps(*in->items[i])) continue;
        if (const feign_status status = out->emit(out, in->items[i]); status < 0) return status;
      }
      return FEIGN_OK;
    } catch (const std::bad_alloc&) {
      return FEIGN_ERR_NOMEM;
    }
  }

 private:
  bool keeps(feign_activity& a) {
    const Activity before = views_.view(a);
    Activity v = before;
    Activity* now = &v;
    if (owner_.filter != nullptr) now = call(owner_.filter, now);
    if (now != nullptr && owner_.mutate != nullptr) now = call(owner_.mutate, now);
    if (now != nullptr) {
      write_back(*now, before, a);
      if (owner_.report != nullptr) owner_.report(now);
    }
    if (owner_.destroy != nullptr && (owner_.intents & FEIGN_PROVIDER) == 0)
      owner_.destroy(now != nullptr ? now : &v);
    return now != nullptr;
  }

  static Activity* call(OnActivity callback, Activity* v) {
    Activity* now = callback(v);
    if (now == nullptr || now->status == FEIGN_STATUS_SKIP || now->status == FEIGN_STATUS_DROPPED)
      return nullptr;
    return now;
  }

  uint32_t changed(const char* text, const char* before, uint32_t id) {
    if (text == before || same_text(text, before)) return id;
    return text == nullptr ? 0 : host_->intern(host_, text, std::strlen(text));
  }

  // Only what was changed: the view cannot hold every value that an activity can.
  void write_back(const Activity& v, const Activity& before, feign_activity& a) {
    a.path = changed(v.path, before.path, a.path);
    a.path2 = changed(v.path2, before.path2, a.path2);
    a.flags = v.flags;
    a.mode = v.mode;
    if (v.position != before.position) a.offset = static_cast<uint64_t>(v.position);
    if (v.length != before.length)
      a.length = not_negative(v.length);
    else if (v.size != before.size)
      a.length = not_negative(v.size);
    if (v.offset != before.offset) a.compute_ns = not_negative(v.offset);
  }

  const feign_host* host_;
  Owner& owner_;
  Views views_;
};

// replay() as a replayer.
class Replayer {
 public:
  Replayer(const feign_host* host, Owner& owner) : owner_(owner), views_(host, owner) {}

  static feign_status create(const feign_host* host, const void* options, void** self) noexcept {
    return make_self<Replayer>(host, options, self);
  }

  static feign_status open_stream(void*, const feign_stream_info*, void** stream) noexcept {
    *stream = nullptr;
    return FEIGN_OK;
  }

  static feign_status execute(void* self, void*, const feign_activity* a,
                              feign_outcome* outcome) noexcept {
    auto& r = *static_cast<Replayer*>(self);
    try {
      const std::lock_guard lock(r.owner_.mutex);
      Activity v = r.views_.view(*a);
      Activity* now = r.owner_.replay(&v);
      if (now == nullptr) now = &v;
      outcome->doing = FEIGN_DONE;
      outcome->result = now->result;
      if (now->status == FEIGN_STATUS_SKIP || now->status == FEIGN_STATUS_DROPPED) {
        outcome->doing = FEIGN_SKIPPED;
        outcome->why = "replay() said so";
      }
      const bool others = (r.owner_.intents & FEIGN_PROVIDER) == 0;
      if (r.owner_.destroy != nullptr && others) r.owner_.destroy(now);
      return FEIGN_OK;
    } catch (const std::bad_alloc&) {
      return FEIGN_ERR_NOMEM;
    }
  }

  static void close_stream(void*, void*) noexcept {}

 private:
  Owner& owner_;
  Views views_;
};

constexpr feign_provider kProvider = {
    sizeof(feign_provider), 0, Provider::create, Provider::next, destroy_self<Provider>, nullptr};
constexpr feign_modifier kModifier = {sizeof(feign_modifier), 0,
                                      Modifier::create,       Modifier::process,
                                      destroy_self<Modifier>, nullptr};
constexpr feign_replayer kReplayer = {sizeof(feign_replayer),
                                      0,
                                      nullptr,
                                      Replayer::create,
                                      Replayer::open_stream,
                                      Replayer::execute,
                                      Replayer::close_stream,
                                      destroy_self<Replayer>};

// "Example-Provider-Replayer" becomes example-provider-replayer.
std::string component_name(const char* given) {
  std::string name;
  for (const char* c = given; *c != '\0'; ++c) {
    const bool upper = *c >= 'A' && *c <= 'Z';
    const bool fits = (*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9') || *c == '-';
    name += upper ? static_cast<char>(*c - 'A' + 'a') : fits ? *c : '-';
  }
  if (!is_name(name.c_str())) name.insert(0, "short-form-");
  return name;
}

Error refused(const std::string& why) { return Error(FEIGN_ERR_PLUGIN, why); }

}  // namespace

Result<void> ShortForm::Impl::find_callbacks(void* handle) {
  constexpr int kContexts = FEIGN_FILTER_CONTEXT | FEIGN_MUTATOR_CONTEXT;
  if (intents & kContexts)
    return refused(std::string(intents & FEIGN_FILTER_CONTEXT ? "FEIGN_FILTER_CONTEXT"
                                                              : "FEIGN_MUTATOR_CONTEXT") +
                   ": the short form has no context; a modifier of the real form sees what comes "
                   "next in its window (feign_modifier.lookahead)");
  if (intents & FEIGN_WRITER)
    return refused("FEIGN_WRITER: the short form has no writers; the real form has (feign_writer)");
  constexpr int kServed = FEIGN_PROVIDER | FEIGN_FILTER | FEIGN_MUTATOR | FEIGN_REPLAYER |
                          FEIGN_DESTROYER | FEIGN_REPORTER;
  if (const int unknown = intents & ~(kServed | FEIGN_PRECREATOR); unknown != 0)
    return refused("its intents hold " + std::to_string(unknown) +
                   ", which is none of the short form's");
  if ((intents & kServed) == 0)
    return refused(intents == 0
                       ? "it has no intents"
                       : "its only intent is FEIGN_PRECREATOR, and preparing is the host's "
                         "work");
  struct Wanted {
    int intent;
    const char* intent_name;
    const char* symbol;
    OnActivity* to;
  };
  for (const Wanted& w : {Wanted{FEIGN_PROVIDER, "FEIGN_PROVIDER", "provide", &provide},
                          Wanted{FEIGN_FILTER, "FEIGN_FILTER", "filter", &filter},
                          Wanted{FEIGN_MUTATOR, "FEIGN_MUTATOR", "mutate", &mutate},
                          Wanted{FEIGN_REPLAYER, "FEIGN_REPLAYER", "replay", &replay},
                          Wanted{FEIGN_REPORTER, "FEIGN_REPORTER", "report", &report},
                          Wanted{FEIGN_DESTROYER, "FEIGN_DESTROYER", "destroy", &destroy}}) {
    // A provider's destroy() is called whether or not it said FEIGN_DESTROYER, as the paper's does
    // not.
    const bool declared = (intents & w.intent) != 0;
    const bool offered = w.intent == FEIGN_DESTROYER && (intents & FEIGN_PROVIDER);
    if (!declared && !offered) continue;
    *w.to = reinterpret_cast<OnActivity>(own_symbol(handle, w.symbol));
    if (*w.to == nullptr && declared)
      return refused(std::string("it says ") + w.intent_name + " and exports no " + w.symbol +
                     "()");
  }
  return {};
}

void ShortForm::Impl::make_components() {
  const auto add = [&](uint32_t role, const void* api) {
    auto part = std::make_unique<Part>();
    part->owner = this;
    part->table = {sizeof(feign_component),
                   role,
                   name.c_str(),
                   summary.c_str(),
                   api,
                   nullptr,
                   0,
                   sizeof(feign_option),
                   0,
                   0};
    components.push_back(&part->table);
    parts.push_back(std::move(part));
  };
  constexpr int kModifies = FEIGN_FILTER | FEIGN_MUTATOR | FEIGN_REPORTER;
  const bool only_destroys =
      (intents & FEIGN_DESTROYER) && !(intents & (FEIGN_PROVIDER | FEIGN_REPLAYER));
  if (intents & FEIGN_PROVIDER) add(FEIGN_PROVIDER, &kProvider);
  if ((intents & kModifies) || only_destroys) add(FEIGN_MODIFIER, &kModifier);
  if (intents & FEIGN_REPLAYER) add(FEIGN_REPLAYER, &kReplayer);
  components.push_back(nullptr);
  table = {sizeof(feign_plugin), FEIGN_ABI_MINOR, name.c_str(),
           version.c_str(),      "not said",      components.data()};
}

ShortForm::ShortForm(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

ShortForm::~ShortForm() {
  if (impl_->initialised && impl_->finalize != nullptr) impl_->finalize();
}

const feign_plugin& ShortForm::plugin() const { return impl_->table; }

Result<std::unique_ptr<ShortForm>> ShortForm::load(void* handle, const std::string& path,
                                                   const std::vector<std::string>& args,
                                                   ShortFormNumbers& numbers) {
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  impl->numbers = &numbers;
  impl->arg_texts.push_back(path.substr(path.rfind('/') + 1));
  impl->arg_texts.insert(impl->arg_texts.end(), args.begin(), args.end());
  for (std::string& text : impl->arg_texts) impl->argv.push_back(text.data());
  impl->argv.push_back(nullptr);

  const auto init = reinterpret_cast<int (*)(int, char**)>(own_symbol(handle, "init"));
  impl->finalize = reinterpret_cast<int (*)()>(own_symbol(handle, "finalize"));
  t_initialising = impl.get();
  const int status = init(static_cast<int>(args.size() + 1), impl->argv.data());
  t_initialising = nullptr;
  std::unique_ptr<ShortForm> made(new ShortForm(std::move(impl)));
  Impl& self = *made->impl_;
  self.initialised = status == 0;
  // What it did wrong comes before its status, which may only say that it was refused.
  if (self.announced_twice) return refused("init() called feign_register_plugin() more than once");
  if (status != 0 && (self.announced != nullptr || !self.nameless))
    return refused("init() returned " + std::to_string(status));
  if (self.announced == nullptr)
    return refused("init() did not call feign_register_plugin() with a plug-in that has a name");
  self.intents = self.announced->intents | self.layer_intents;
  if (auto found = self.find_callbacks(handle); !found) return std::move(found.error());
  self.name = component_name(self.announced->name);
  const char* version = self.announced->version;
  self.version = version == nullptr || *version == '\0' ? "0" : version;
  self.summary = std::string(self.announced->name) + ", of the short form.";
  self.make_components();
  return made;
}

}  // namespace feign

extern "C" FEIGN_EXPORT int feign_register_plugin(Plugin* plugin) {
  feign::Owner* owner = feign::t_initialising;
  if (owner == nullptr) return -1;
  owner->nameless = plugin == nullptr || plugin->name == nullptr || *plugin->name == '\0';
  if (owner->nameless) return -1;
  if (owner->announced != nullptr) {
    owner->announced_twice = true;
    return -1;
  }
  owner->announced = plugin;
  owner->number = ++owner->numbers->plugins;
  plugin->id = plugin->instance_id = owner->number;
  return 0;
}

extern "C" FEIGN_EXPORT int feign_register_layer(Layer* layer) {
  feign::Owner* owner = feign::t_initialising;
  if (owner == nullptr || layer == nullptr || layer->name == nullptr || *layer->name == '\0')
    return -1;
  const std::string name = layer->name;
  if (name == "posix" || name == "POSIX") return layer->id = feign::kPosixLayer;
  auto& known = owner->numbers->layers;
  const int next = feign::kFirstLayer + static_cast<int>(known.size());
  layer->id = known.try_emplace(name, next).first->second;
  owner->layers.emplace(name, layer->id);
  owner->layer_intents |= layer->intents;
  return layer->id;
}

extern "C" FEIGN_EXPORT int feign_op(const char* name) {
  return name == nullptr ? 0 : feign::op_number(name);
}
