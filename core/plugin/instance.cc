// SPDX-License-Identifier: MIT
// One created component, and what the host offers to it. Every function that a plug-in can call is
// noexcept: what goes wrong inside becomes the answer that feign.h names for it.
#include <array>
#include <cstring>
#include <exception>
#include <functional>
#include <mutex>
#include <new>
#include <span>

#include "base/log.h"
#include "plugin/options.h"
#include "plugin/plugin.h"
#include "trace/record.h"

namespace feign {
namespace {

// Names of calls come out of the trace: past this many, they are counted together.
constexpr size_t kMaxLeftOut = 4096;
constexpr uint32_t kMaxOps = 1u << 16;
constexpr uint32_t kMaxArgs = 256;

const char* status_name(feign_status status) {
  switch (status) {
    case FEIGN_ERR_ARGUMENT:
      return "FEIGN_ERR_ARGUMENT";
    case FEIGN_ERR_IO:
      return "FEIGN_ERR_IO";
    case FEIGN_ERR_NOMEM:
      return "FEIGN_ERR_NOMEM";
    case FEIGN_ERR_UNSUPPORTED:
      return "FEIGN_ERR_UNSUPPORTED";
    case FEIGN_ERR_PLUGIN:
      return "FEIGN_ERR_PLUGIN";
    default:
      return nullptr;
  }
}

// What is wrong with a layer that a plug-in wants to add; "" if nothing.
std::string fault_of(const feign_layer* layer) {
  if (layer == nullptr) return "layer is null";
  if (layer->struct_size < sizeof(feign_layer))
    return "struct_size of the layer is " + std::to_string(layer->struct_size) + ", want " +
           std::to_string(sizeof(feign_layer));
  if (layer->name == nullptr || *layer->name == '\0') return "the layer has no name";
  const std::string name = "layer " + std::string(layer->name);
  if (layer->op_count == 0 || layer->op_count > kMaxOps)
    return name + " has " + std::to_string(layer->op_count) + " ops, want 1 to " +
           std::to_string(kMaxOps);
  if (layer->ops == nullptr) return name + ": ops is null";
  for (uint32_t i = 0; i < layer->op_count; ++i) {
    const feign_op_info* op = layer->ops[i];
    if (op == nullptr) continue;
    const std::string which = name + ": op " + std::to_string(i);
    if (op->struct_size < sizeof(feign_op_info))
      return which + ": struct_size is " + std::to_string(op->struct_size) + ", want " +
             std::to_string(sizeof(feign_op_info));
    if (op->name == nullptr || *op->name == '\0') return which + " has no name";
    if (op->layer == nullptr || std::strcmp(op->layer, layer->name) != 0)
      return which + " (" + op->name + ") does not say that it is of this layer";
    if (op->kind > FEIGN_KIND_PROCESS)
      return which + " (" + op->name + ") has kind " + std::to_string(op->kind) +
             ", want a feign_kind";
    if (op->arg_count > kMaxArgs)
      return which + " (" + op->name + ") has " + std::to_string(op->arg_count) +
             " arguments, want at most " + std::to_string(kMaxArgs);
    if (op->arg_count != 0 && (op->args == nullptr || op->arg_stride != sizeof(feign_arg_info)))
      return which + " (" + op->name + "): args is null, or arg_stride is not " +
             std::to_string(sizeof(feign_arg_info));
  }
  return "";
}

}  // namespace

struct Instance::Impl {
  Impl(const Component& from, Tables& shared)
      : component(from), name(from.table->name), tables(shared) {}

  Component component;
  std::string name;
  Tables& tables;
  feign_host host{};
  std::unique_ptr<OptionValues> options;
  void* self = nullptr;
  bool created = false;
  const void* (*extension)(void* ctx, const char* id) = nullptr;
  void* extension_ctx = nullptr;
  void (*wait_sink)(void* ctx, uint32_t stream, uint64_t ns, feign_passed how) = nullptr;
  void* wait_ctx = nullptr;
  void (*merge_sink)(void* ctx, const feign_activity& a, uint64_t into) = nullptr;
  void* merge_ctx = nullptr;

  std::mutex failure_mutex;
  std::string failure_text;

  // left_out() is called for about every second line of a trace; entries of a std::map stay where
  // they are, so the last ones used are found again by the addresses of their texts.
  struct LeftOutEntry {
    const char* call = nullptr;
    const char* why = nullptr;
    LeftOuts::value_type* at = nullptr;
  };
  std::array<LeftOutEntry, 256> left_out_cache{};

  static Impl& of(const feign_host* host) { return *static_cast<Impl*>(host->ctx); }

  LeftOut& left_out_entry(const char* call, const char* why) {
    const size_t hash =
        (reinterpret_cast<uintptr_t>(call) >> 3) * 31 + (reinterpret_cast<uintptr_t>(why) >> 3);
    LeftOutEntry& cached = left_out_cache[hash % left_out_cache.size()];
    // The text behind an address may have changed: it does not have to be a constant.
    if (cached.at != nullptr && cached.call == call && cached.why == why &&
        cached.at->first.first == call && cached.at->first.second == why)
      return cached.at->second;
    LeftOuts& all = tables.left_out;
    auto found = all.find({call, why});
    if (found == all.end()) {
      const bool full = all.size() >= kMaxLeftOut;
      found = full ? all.try_emplace({"(others)", "too many names to tell apart"}).first
                   : all.try_emplace({call, why}).first;
      if (full) return found->second;
    }
    cached = {call, why, &*found};
    return found->second;
  }

  static void log(const feign_host* host, int level, const char* text) noexcept {
    if (text == nullptr) return;
    try {
      if (level == FEIGN_LOG_INFO || level == FEIGN_LOG_WARN) {
        Impl& self = of(host);
        const std::lock_guard lock(self.tables.notes_mutex);
        auto& said = level == FEIGN_LOG_INFO ? self.tables.notes : self.tables.warnings;
        if (said.size() < Tables::kMostNotes) said.push_back(self.name + ": " + text);
      }
      if (level > log_level()) return;
      feign::log(level, of(host).name + ": " + text);
    } catch (const std::exception&) {
      // Without memory for a message there is nobody to tell.
    }
  }

  static feign_status fail(const feign_host* host, feign_status code, const char* text) noexcept {
    Impl& self = of(host);
    try {
      const std::lock_guard lock(self.failure_mutex);
      self.failure_text = text == nullptr ? "" : text;
    } catch (const std::exception&) {
      // The code alone then has to do.
    }
    return code;
  }

  static const void* find_extension(const feign_host* host, const char* id) noexcept {
    const Impl& self = of(host);
    if (id == nullptr || self.extension == nullptr) return nullptr;
    return self.extension(self.extension_ctx, id);
  }

  static uint32_t intern(const feign_host* host, const char* text, size_t length) noexcept {
    if (text == nullptr || length == 0) return 0;
    try {
      return of(host).tables.strings.intern({text, length});
    } catch (const std::exception&) {
      return 0;
    }
  }

  static const char* text(const feign_host* host, uint32_t id, size_t* length) noexcept {
    const std::string_view found = of(host).tables.strings.text(id);
    if (length != nullptr) *length = found.size();
    return found.data() == nullptr ? "" : found.data();
  }

  static feign_status set_values(const feign_host* host, feign_activity* a, const uint64_t* values,
                                 uint32_t count) noexcept {
    if (a == nullptr || (values == nullptr && count != 0))
      return fail(host, FEIGN_ERR_PLUGIN, "set_values(): a null pointer");
    try {
      // The values given may be the activity's own.
      if (values != nullptr && values == a->values) {
        const std::vector<uint64_t> copy(values, values + count);
        Record::of(a)->set_values(copy);
      } else {
        Record::of(a)->set_values({values, count});
      }
      return FEIGN_OK;
    } catch (const std::exception&) {
      return FEIGN_ERR_NOMEM;
    }
  }

  static uint32_t op(const feign_host* host, const char* layer, const char* name) noexcept {
    if (layer == nullptr || name == nullptr) return 0;
    return of(host).tables.ops.find(layer, name);
  }

  static const feign_op_info* op_info(const feign_host* host, uint32_t op) noexcept {
    return of(host).tables.ops.info(op);
  }

  static feign_status register_layer(const feign_host* host, const feign_layer* layer,
                                     uint32_t* first) noexcept {
    try {
      if (const std::string fault = fault_of(layer); !fault.empty())
        return fail(host, FEIGN_ERR_PLUGIN, ("register_layer(): " + fault).c_str());
      auto added = of(host).tables.ops.add(*layer);
      if (!added) return fail(host, added.error().code(), added.error().text().c_str());
      if (first != nullptr) *first = *added;
      return FEIGN_OK;
    } catch (const std::exception&) {
      return FEIGN_ERR_NOMEM;
    }
  }

  static uint32_t stream(const feign_host* host, const feign_stream_info* info) noexcept {
    if (info == nullptr) return 0;
    try {
      return of(host).tables.streams.find_or_add(*info);
    } catch (const std::exception&) {
      return 0;
    }
  }

  static feign_status stream_info(const feign_host* host, uint32_t stream,
                                  feign_stream_info* info) noexcept {
    const Streams& streams = of(host).tables.streams;
    if (info == nullptr || stream == 0 || stream >= streams.size()) return FEIGN_ERR_ARGUMENT;
    *info = streams.info(stream);
    return FEIGN_OK;
  }

  static feign_status depend(const feign_host* host, feign_activity* a, uint32_t stream,
                             uint64_t id, const char* rule) noexcept {
    try {
      if (a == nullptr) return fail(host, FEIGN_ERR_PLUGIN, "depend(): the activity is null");
      Tables& tables = of(host).tables;
      if (stream == 0 || stream >= tables.streams.size())
        return fail(
            host, FEIGN_ERR_PLUGIN,
            ("depend(): on stream " + std::to_string(stream) + ", which does not exist").c_str());
      if (a->id != 0 && id >= a->id)
        return fail(host, FEIGN_ERR_PLUGIN,
                    ("depend(): activity " + std::to_string(a->id) + " on activity " +
                     std::to_string(id) + ", which is not before it")
                        .c_str());
      const uint32_t why = rule == nullptr ? 0 : tables.strings.intern(rule);
      Record::of(a)->depends.push_back({stream, why, id});
      a->marks |= FEIGN_DEPENDS;
      return FEIGN_OK;
    } catch (const std::exception&) {
      return FEIGN_ERR_NOMEM;
    }
  }

  static void left_out(const feign_host* host, uint32_t stream, const char* call, const char* why,
                       uint64_t duration_ns, int passed) noexcept {
    Impl& self = of(host);
    try {
      LeftOut& entry = self.left_out_entry(call == nullptr ? "" : call, why == nullptr ? "" : why);
      ++entry.count;
      entry.duration_ns += duration_ns;
      if (passed != FEIGN_COMPUTED && self.wait_sink != nullptr)
        self.wait_sink(self.wait_ctx, stream, duration_ns,
                       passed == FEIGN_SLEPT ? FEIGN_SLEPT : FEIGN_WAITED);
    } catch (const std::exception&) {
      // Not counted: there is no memory to count in.
    }
  }

  static void merged(const feign_host* host, const feign_activity* a, uint64_t into) noexcept {
    Impl& self = of(host);
    if (a != nullptr && self.merge_sink != nullptr) self.merge_sink(self.merge_ctx, *a, into);
  }

  feign_status call_create(const void* values) {
    const void* api = component.table->api;
    switch (component.table->role) {
      case FEIGN_PROVIDER:
        return static_cast<const feign_provider*>(api)->create(&host, values, &self);
      case FEIGN_MODIFIER:
        return static_cast<const feign_modifier*>(api)->create(&host, values, &self);
      case FEIGN_REPLAYER:
        return static_cast<const feign_replayer*>(api)->create(&host, values, &self);
      case FEIGN_RANKS:
        return static_cast<const feign_ranks*>(api)->create(&host, values, &self);
      default:
        return static_cast<const feign_writer*>(api)->create(&host, values, &self);
    }
  }

  void call_destroy() {
    const void* api = component.table->api;
    switch (component.table->role) {
      case FEIGN_PROVIDER:
        return static_cast<const feign_provider*>(api)->destroy(self);
      case FEIGN_MODIFIER:
        return static_cast<const feign_modifier*>(api)->destroy(self);
      case FEIGN_REPLAYER:
        return static_cast<const feign_replayer*>(api)->destroy(self);
      case FEIGN_RANKS:
        return static_cast<const feign_ranks*>(api)->destroy(self);
      default:
        return static_cast<const feign_writer*>(api)->destroy(self);
    }
  }
};

Result<std::unique_ptr<Instance>> Instance::create(
    const Component& component, const PluginSpec& spec, Tables& tables,
    const void* (*extension)(void* ctx, const char* id), void* extension_ctx) {
  std::unique_ptr<Instance> instance(new Instance(std::make_unique<Impl>(component, tables)));
  Impl& impl = *instance->impl_;
  impl.extension = extension;
  impl.extension_ctx = extension_ctx;
  impl.host = {
      sizeof(feign_host),   FEIGN_ABI_MINOR,      &impl,        Impl::log,         Impl::fail,
      Impl::find_extension, Impl::intern,         Impl::text,   Impl::set_values,  Impl::op,
      Impl::op_info,        Impl::register_layer, Impl::stream, Impl::stream_info, Impl::depend,
      Impl::left_out,       Impl::merged};
  // A short-form plug-in's init() had the options; its adapter finds itself by its table.
  const void* values = component.table;
  if (!component.short_form) {
    auto parsed = OptionValues::parse(*component.table, spec.options);
    if (!parsed) return std::move(parsed.error()).within(impl.name);
    impl.options = std::make_unique<OptionValues>(std::move(*parsed));
    values = impl.options->data();
  }
  const feign_status status = impl.call_create(values);
  impl.created = status >= 0;
  if (status != FEIGN_OK) return instance->not_ok("create()", status);
  if (component.table->role == FEIGN_MODIFIER)
    if (auto fits = check_lookahead(instance->lookahead()); !fits)
      return std::move(fits.error()).within(impl.name);
  return instance;
}

Instance::Instance(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Instance::~Instance() {
  if (impl_->created) impl_->call_destroy();
}

const feign_component& Instance::component() const { return *impl_->component.table; }
const std::string& Instance::name() const { return impl_->name; }
void* Instance::self() const { return impl_->self; }
uint32_t Instance::lookahead() const {
  const auto& modifier = api<feign_modifier>();
  return FEIGN_HAS(&modifier, lookahead_of) && modifier.lookahead_of != nullptr
             ? modifier.lookahead_of(self())
             : modifier.lookahead;
}
const feign_host& Instance::host() const { return impl_->host; }

Error Instance::failure(feign_status status) {
  std::string text;
  {
    const std::lock_guard lock(impl_->failure_mutex);
    text.swap(impl_->failure_text);
  }
  const char* known = status_name(status);
  if (text.empty())
    text = known != nullptr ? "failed with " + std::string(known) + " and did not say why"
                            : "returned " + std::to_string(static_cast<int>(status)) +
                                  ", which is no failure that feign.h names";
  const feign_status code = known != nullptr ? status : FEIGN_ERR_PLUGIN;
  // A component may have put its name before the text itself.
  if (text.starts_with(impl_->name + ": ")) return Error(code, text);
  return Error(code, text).within(impl_->name);
}

Error Instance::not_ok(const char* call, feign_status status) {
  if (status < 0) return failure(status);
  return Error(FEIGN_ERR_PLUGIN, impl_->name + ": " + call + " gave " + std::to_string(status) +
                                     ": want FEIGN_OK or an error");
}

void Instance::set_wait_sink(void (*sink)(void* ctx, uint32_t stream, uint64_t ns,
                                          feign_passed how),
                             void* ctx) {
  impl_->wait_sink = sink;
  impl_->wait_ctx = ctx;
}

void Instance::set_merge_sink(void (*sink)(void* ctx, const feign_activity& a, uint64_t into),
                              void* ctx) {
  impl_->merge_sink = sink;
  impl_->merge_ctx = ctx;
}

}  // namespace feign
