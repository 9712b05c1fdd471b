// SPDX-License-Identifier: MIT
// One component of each role, three of the same name: what a plug-in with several looks like in
// C++, and what `feign check` sees of providers, replayers and writers. With -DBREAK=n, one of them
// is bad.
#define FEIGN_NO_SHORT_FORM
#include <feign.h>

#include <cstdio>
#include <iterator>
#include <new>
#include <string>

#define TOO_MANY 1      // the provider gives more than it was asked for
#define HALF_WRITTEN 2  // the writer leaves a file without finish()
#define CLAIMS 3        // the replayer says that it did an op that it does not know
#define NEXT 4          // this gives a status that is neither an answer nor an error; so does
#define OPENS 5         // open_stream
#define EXECUTES 6
#define WRITES 7
#define FINISHES 8
#define NO_OP 9     // the provider's activities are of no op
#define OF_NONE 10  // the replayer is for a layer that there is not
#ifndef BREAK
#define BREAK 0
#endif

namespace {

feign_status status_of(int call) { return BREAK == call ? feign_status(99) : FEIGN_OK; }

struct Provider {
  const feign_host* host;
  uint32_t stream, op;
  int left = 100;
};

feign_status provider_create(const feign_host* host, const void*, void** self) noexcept {
  feign_stream_info info{};
  info.struct_size = sizeof info;
  info.rank = -1;
  info.process = info.thread = 1;
  *self = new (std::nothrow)
      Provider{host, host->stream(host, &info), host->op(host, "posix", "close")};
  return *self != nullptr ? FEIGN_OK : FEIGN_ERR_NOMEM;
}

feign_status next(void* self, size_t want, feign_sink* out) noexcept {
  auto& p = *static_cast<Provider*>(self);
  if (BREAK == TOO_MANY) ++want;
  if (BREAK == NEXT && p.left > 0) {
    p.left = 0;
    return status_of(NEXT);
  }
  for (size_t i = 0; i < want; ++i) {
    if (p.left == 0) return FEIGN_END;
    feign_activity* a = out->make(out);
    if (a == nullptr) return FEIGN_ERR_NOMEM;
    a->stream = p.stream;
    a->op = BREAK == NO_OP ? 0 : p.op;
    a->handle = FEIGN_FD(p.left--);
    if (const feign_status status = out->emit(out, a); status < 0) return status;
  }
  return FEIGN_OK;
}

int probe(const char*, const void* head, size_t size) noexcept {
  return size >= 5 && std::string(static_cast<const char*>(head), 5) == "roles" ? 90 : 0;
}

struct WriterOptions {
  const char* file;
};
constexpr feign_option kWriterOptions[] = {
    {"file", FEIGN_OPT_TEXT, offsetof(WriterOptions, file), nullptr, nullptr, 0, 0, "Where to."}};

struct Writer {
  const feign_host* host;
  std::string name, text;
};

feign_status save(const Writer& w) {
  FILE* file = std::fopen(w.name.c_str(), "w");
  if (file == nullptr)
    return w.host->fail(w.host, FEIGN_ERR_IO, ("open " + w.name + " failed").c_str());
  std::fputs(w.text.c_str(), file);
  std::fclose(file);
  return FEIGN_OK;
}

feign_status writer_create(const feign_host* host, const void* options, void** self) noexcept {
  *self = new (std::nothrow) Writer{host, static_cast<const WriterOptions*>(options)->file, ""};
  return *self != nullptr ? FEIGN_OK : FEIGN_ERR_NOMEM;
}

feign_status write(void* self, const feign_activity* const* items, size_t count) noexcept {
  auto& w = *static_cast<Writer*>(self);
  for (size_t i = 0; i < count; ++i) w.text += std::to_string(items[i]->id) + "\n";
  return BREAK == HALF_WRITTEN ? save(w) : status_of(WRITES);
}

feign_status finish(void* self) noexcept {
  const feign_status saved = save(*static_cast<Writer*>(self));
  return saved != FEIGN_OK ? saved : status_of(FINISHES);
}

feign_status replayer_create(const feign_host* host, const void*, void** self) noexcept {
  *self = const_cast<feign_host*>(host);
  return FEIGN_OK;
}

feign_status open_stream(void*, const feign_stream_info*, void**) noexcept {
  return status_of(OPENS);
}
feign_status execute(void*, void*, const feign_activity*, feign_outcome* outcome) noexcept {
  if (BREAK == CLAIMS || BREAK == OF_NONE) return FEIGN_OK;
  outcome->doing = FEIGN_SKIPPED;
  outcome->why = "replays nothing";
  return status_of(EXECUTES);
}
void close_stream(void*, void*) noexcept {}
void replayer_destroy(void* self) noexcept {
  const auto* host = static_cast<const feign_host*>(self);
  host->log(host, FEIGN_LOG_INFO, "ended");
}

template <typename T>
void destroy(void* self) noexcept {
  delete static_cast<T*>(self);
}

constexpr const char* kLayers[] = {BREAK == OF_NONE ? "nothing" : "posix", nullptr};
constexpr feign_provider kProvider = {sizeof kProvider,  0,    provider_create, next,
                                      destroy<Provider>, probe};
constexpr feign_writer kWriter = {sizeof kWriter,  0,       writer_create, write, finish,
                                  destroy<Writer>, ".roles"};
constexpr feign_replayer kReplayer = {sizeof kReplayer, 0,       kLayers,      replayer_create,
                                      open_stream,      execute, close_stream, replayer_destroy};
constexpr feign_component kParts[] = {
    {sizeof(feign_component), FEIGN_PROVIDER, "roles", "Gives a hundred closes.", &kProvider,
     nullptr, 0, sizeof(feign_option), 0, 0},
    {sizeof(feign_component), FEIGN_WRITER, "roles", "Writes ids.", &kWriter, kWriterOptions,
     std::size(kWriterOptions), sizeof(feign_option), sizeof(WriterOptions), 0},
    {sizeof(feign_component), FEIGN_REPLAYER, "idle", "Replays nothing.", &kReplayer, nullptr, 0,
     sizeof(feign_option), 0, 0},
};
constexpr const feign_component* kComponents[] = {&kParts[0], &kParts[1], &kParts[2], nullptr};

}  // namespace

extern "C" const feign_plugin feign_plugin_v1 = {
    sizeof(feign_plugin), FEIGN_ABI_MINOR, "roles", "1.0", "MIT", kComponents};
