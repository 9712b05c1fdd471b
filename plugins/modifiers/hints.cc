// SPDX-License-Identifier: MIT
// Modifier hints: what one would tell the kernel about files, without touching the program: advice
// (posix_fadvise), room made before a file grows (fallocate), other flags at open, cheaper or no
// fsync, aligned requests. Rules say for which files; several instances make several sets of rules.
//
// What a rule is about is a file *as it was opened*: the handle is looked at once, when it is
// opened, by its path, by how large the file was seen to be, and by how the window shows it to be
// used. Nothing here changes bytes, sizes or results, but for align, which says so.
#include <fcntl.h>
#include <linux/fadvise.h>
#include <linux/falloc.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <memory>
#include <new>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/path.h"
#include "feign.h"

namespace {

enum Advice : uint32_t { kNoAdvice, kSequential, kRandom, kNoReuse, kDontNeed, kWillNeed, kNormal };
constexpr const char* kAdvices[] = {"none",     "sequential", "random", "noreuse",
                                    "dontneed", "willneed",   "normal", nullptr};
enum Change : uint32_t { kKeep, kAdd, kRemove };
constexpr const char* kChanges[] = {"keep", "add", "remove", nullptr};
enum Fsync : uint32_t { kFsyncKeep, kFsyncDrop, kFsyncData };
constexpr const char* kFsyncs[] = {"keep", "drop", "fdatasync", nullptr};
enum Pattern : uint32_t { kAny, kOnlySequential, kOnlyRandom };
constexpr const char* kPatterns[] = {"any", "sequential", "random", nullptr};

struct Options {
  const char* const* path;
  uint64_t min_size, max_size;
  uint32_t pattern;
  uint32_t advice;
  uint64_t allocate;
  uint32_t direct, sync, fsync;
  uint64_t align;
  uint64_t window;
};
constexpr feign_option kOptions[] = {
    {"path", FEIGN_OPT_TEXTS, offsetof(Options, path), nullptr, nullptr, 0, 0,
     "Rule: globs of files: * within a component, ** across; given none: all."},
    {"min-size", FEIGN_OPT_SIZE, offsetof(Options, min_size), "0", nullptr, 0, 0,
     "Rule: files of which the window shows at least so many bytes to be read or written."},
    {"max-size", FEIGN_OPT_SIZE, offsetof(Options, max_size), "0", nullptr, 0, 0,
     "Rule: … and at most so many; 0: any."},
    {"pattern", FEIGN_OPT_ENUM, offsetof(Options, pattern), "any", kPatterns, 0, 0,
     "Rule: files that are mostly read or written where the last call ended, or mostly elsewhere."},
    {"advice", FEIGN_OPT_ENUM, offsetof(Options, advice), "none", kAdvices, 0, 0,
     "posix_fadvise for the whole file after it is opened; dontneed: before it is closed."},
    {"allocate", FEIGN_OPT_SIZE, offsetof(Options, allocate), "0", nullptr, 0, uint64_t{1} << 40,
     "fallocate (without changing the size) before a write that makes the file longer, so much at "
     "a "
     "time; 0: no."},
    {"direct", FEIGN_OPT_ENUM, offsetof(Options, direct), "keep", kChanges, 0, 0,
     "O_DIRECT at open. Where it is added, requests that are not aligned fail: see align."},
    {"sync", FEIGN_OPT_ENUM, offsetof(Options, sync), "keep", kChanges, 0, 0,
     "O_SYNC (and O_DSYNC) at open."},
    {"fsync", FEIGN_OPT_ENUM, offsetof(Options, fsync), "keep", kFsyncs, 0, 0,
     "fsync: dropped (fdatasync, too), or made fdatasync."},
    {"align", FEIGN_OPT_SIZE, offsetof(Options, align), "0", nullptr, 0, uint64_t{1} << 24,
     "Reads at given positions begin and end at multiples of this, which moves more bytes: their "
     "results are no longer compared; 0: no."},
    {"window", FEIGN_OPT_UINT, offsetof(Options, window), "1024", nullptr, 1, 1u << 20,
     "How many activities it looks ahead, for min-size, max-size and pattern."},
};

class Hints {
 public:
  Hints(const feign_host* host, const Options& o) : host_(host), options_(o) {
    const auto op = [&](const char* name) { return host->op(host, "posix", name); };
    fadvise_ = op("fadvise64");
    fallocate_ = op("fallocate");
    fsync_ = op("fsync");
    fdatasync_ = op("fdatasync");
    pread_ = op("pread64");
  }

  feign_status process(const feign_window& in, feign_sink* out) {
    for (; seen_ < in.count; ++seen_) look(*in.items[seen_]);
    for (size_t i = 0; i < in.due; ++i, ++due_) {
      feign_activity& a = *in.items[i];
      const uint32_t kind = kind_of(a.op);
      if (const feign_status s = one(a, kind, out); s < 0) return s;
      sized(a, kind);
    }
    seen_ -= in.due;
    return FEIGN_OK;
  }
  uint32_t window() const { return looks_ahead() ? static_cast<uint32_t>(options_.window) : 0; }
  const feign_host* host() const { return host_; }

 private:
  // How a file, as it was opened, is used, as far as the window shows.
  struct Use {
    uint64_t bytes = 0, end = 0, on = 0, elsewhere = 0;
    uint64_t opened = 0;  // place in the trace
    bool first = true;
  };
  struct Handle {
    uint64_t allocated = 0;  // up to there
  };

  bool looks_ahead() const {
    return options_.min_size != 0 || options_.max_size != 0 || options_.pattern != kAny;
  }

  void look(const feign_activity& a) {
    const uint64_t place = looked_++;
    if (!looks_ahead() || a.handle == 0 || (a.marks & FEIGN_NOT_A_FILE)) return;
    const uint32_t kind = kind_of(a.op);
    if (kind == FEIGN_KIND_OPEN && a.result >= 0) {
      uses_[a.handle].opened = place;
      return;
    }
    if ((kind != FEIGN_KIND_READ && kind != FEIGN_KIND_WRITE) || a.result <= 0) return;
    const auto at = uses_.find(a.handle);
    if (at == uses_.end()) return;
    Use& u = at->second;
    if (place - u.opened > options_.window) return;
    u.bytes += static_cast<uint64_t>(a.result);
    if (!u.first) ++(a.offset == u.end ? u.on : u.elsewhere);
    u.first = false;
    u.end = a.offset + static_cast<uint64_t>(a.result);
  }

  feign_status one(feign_activity& a, uint32_t kind, feign_sink* out) {
    const bool file = a.handle != 0 && !(a.marks & FEIGN_NOT_A_FILE);
    if (kind == FEIGN_KIND_OPEN && file && posix(a.op)) return opened(a, out);
    if (!file) return out->emit(out, &a);
    const auto at = handles_.find(a.handle);
    if (at == handles_.end()) return out->emit(out, &a);
    Handle& h = at->second;
    const bool outermost = FEIGN_DEPTH(a.marks) == 0;
    const bool posix_write = kind == FEIGN_KIND_WRITE && posix(a.op) && a.handle2 == 0;
    if (kind == FEIGN_KIND_CLOSE && (a.marks & FEIGN_LAST)) {
      if (options_.advice == kDontNeed && outermost)
        if (const feign_status s = advise(a, POSIX_FADV_DONTNEED, out); s < 0) return s;
      handles_.erase(at);
    } else if (kind == FEIGN_KIND_FLUSH && (a.op == fsync_ || a.op == fdatasync_)) {
      if (options_.fsync == kFsyncDrop) return FEIGN_OK;
      if (options_.fsync == kFsyncData) a.op = fdatasync_;
    } else if (posix_write && options_.allocate != 0 && a.result > 0 && outermost) {
      if (const feign_status s = allocate(a, h, out); s < 0) return s;
    } else if (kind == FEIGN_KIND_READ && options_.align != 0) {
      align(a);
    }
    return out->emit(out, &a);
  }

  feign_status opened(feign_activity& a, feign_sink* out) {
    const bool ours = a.result >= 0 && fits(a);
    if (ours) {
      handles_[a.handle] = Handle{};
      if (options_.direct == kAdd) a.flags |= O_DIRECT;
      if (options_.direct == kRemove) a.flags &= ~uint32_t{O_DIRECT};
      if (options_.sync == kAdd) a.flags |= O_SYNC;
      if (options_.sync == kRemove) a.flags &= ~uint32_t{O_SYNC | O_DSYNC};
    }
    if (const feign_status s = out->emit(out, &a); s < 0) return s;
    static constexpr int kKinds[] = {
        0, POSIX_FADV_SEQUENTIAL, POSIX_FADV_RANDOM, POSIX_FADV_NOREUSE,
        0, POSIX_FADV_WILLNEED,   POSIX_FADV_NORMAL};
    const bool now = options_.advice != kNoAdvice && options_.advice != kDontNeed;
    if (!ours || !now || FEIGN_DEPTH(a.marks) != 0 || (a.flags & O_PATH)) return FEIGN_OK;
    return advise(a, kKinds[options_.advice], out);
  }

  bool fits(const feign_activity& a) {
    if (a.marks & FEIGN_DIRECTORY) return false;
    if (options_.path[0] != nullptr) {
      bool any = false;
      for (const char* const* glob = options_.path; *glob != nullptr && !any; ++glob)
        any = feign::glob_fits(*glob, host_->text(host_, a.path, nullptr));
      if (!any) return false;
    }
    if (!looks_ahead()) return true;
    const auto at = uses_.find(a.handle);
    const Use u = at != uses_.end() ? at->second : Use{};
    if (at != uses_.end()) uses_.erase(at);
    if (u.bytes < options_.min_size || (options_.max_size != 0 && u.bytes > options_.max_size))
      return false;
    if (options_.pattern == kOnlySequential) return u.on > u.elsewhere;
    if (options_.pattern == kOnlyRandom) return u.elsewhere > u.on;
    return true;
  }

  // A call on the activity's handle, next to it.
  feign_activity* injected(const feign_activity& by, uint32_t op, feign_sink* out) {
    feign_activity* a = out->make(out);
    if (a == nullptr) return nullptr;
    a->op = op;
    a->stream = by.stream;
    a->handle = by.handle;
    a->file = by.file;
    a->path = by.path;
    a->place = by.place;
    a->marks = by.marks & (FEIGN_INHERITED | FEIGN_NO_STORAGE);
    a->start_ns = by.start_ns;
    return a;
  }
  feign_status no_memory() { return host_->fail(host_, FEIGN_ERR_NOMEM, "out of memory"); }

  feign_status advise(const feign_activity& by, int advice, feign_sink* out) {
    feign_activity* a = injected(by, fadvise_, out);
    if (a == nullptr) return no_memory();
    a->flags = static_cast<uint32_t>(advice);
    if (kind_of(by.op) == FEIGN_KIND_OPEN) a->start_ns = by.start_ns + by.duration_ns;
    return out->emit(out, a);
  }

  feign_status allocate(const feign_activity& by, Handle& h, feign_sink* out) {
    const uint64_t end = by.offset + static_cast<uint64_t>(by.result);
    const bool grows = end > sizes_[by.file];
    if (!grows || by.offset > INT64_MAX / 2 || end <= h.allocated) return FEIGN_OK;
    feign_activity* a = injected(by, fallocate_, out);
    if (a == nullptr) return no_memory();
    a->flags = FALLOC_FL_KEEP_SIZE;
    a->offset = by.offset;
    a->length = std::max(options_.allocate, end - by.offset);
    h.allocated = by.offset + a->length;
    return out->emit(out, a);
  }

  void align(feign_activity& a) {
    if (a.op != pread_ || a.result < 0) return;
    const uint64_t unit = options_.align;
    const uint64_t begin = a.offset / unit * unit,
                   end = (a.offset + a.length + unit - 1) / unit * unit;
    if (end > INT64_MAX || (begin == a.offset && end == a.offset + a.length)) return;
    const uint64_t was = a.offset;
    a.offset = begin;
    a.length = end - begin;
    // What there is to be read beyond is not known: not to be compared.
    a.result = static_cast<int64_t>(
        std::min<uint64_t>(was + static_cast<uint64_t>(a.result) - begin, a.length));
    a.marks |= FEIGN_INJECTED;
  }

  // How long a file is, as far as it was seen.
  void sized(const feign_activity& a, uint32_t kind) {
    if (options_.allocate == 0 || a.file == 0 || a.result < 0) return;
    const bool data = kind == FEIGN_KIND_READ || kind == FEIGN_KIND_WRITE;
    uint64_t& size = sizes_[a.file];
    if (kind == FEIGN_KIND_OPEN && ((a.flags & O_TRUNC) || (a.marks & FEIGN_CREATES))) size = 0;
    if (kind == FEIGN_KIND_STAT && S_ISREG(a.mode)) size = a.length;
    if (data && a.offset != FEIGN_NO_OFFSET)
      size = std::max(size, a.offset + static_cast<uint64_t>(a.result));
  }

  uint32_t kind_of(uint32_t op) {
    const feign_op_info* info = info_of(op);
    return info != nullptr ? info->kind : uint32_t{FEIGN_KIND_OTHER};
  }
  bool posix(uint32_t op) {
    const feign_op_info* info = info_of(op);
    return info != nullptr && strcmp(info->layer, "posix") == 0;
  }
  const feign_op_info* info_of(uint32_t op) {
    if (op >= infos_.size()) infos_.resize(op + size_t{1});
    if (infos_[op] == nullptr) infos_[op] = host_->op_info(host_, op);
    return infos_[op];
  }

  const feign_host* host_;
  Options options_;
  uint32_t fadvise_, fallocate_, fsync_, fdatasync_, pread_;
  size_t seen_ = 0;                               // of the window, from its beginning
  uint64_t looked_ = 0, due_ = 0;                 // places in the trace
  std::unordered_map<uint32_t, Use> uses_;        // by handle, from its open's coming into view
  std::unordered_map<uint32_t, Handle> handles_;  // open, and the rule fits
  std::unordered_map<uint32_t, uint64_t> sizes_;  // by file, for allocate
  std::vector<const feign_op_info*> infos_;
};

feign_status create(const feign_host* host, const void* raw, void** self) noexcept {
  const auto& o = *static_cast<const Options*>(raw);
  if (o.advice == kNoAdvice && o.allocate == 0 && o.direct == kKeep && o.sync == kKeep &&
      o.fsync == kFsyncKeep && o.align == 0)
    return host->fail(
        host, FEIGN_ERR_ARGUMENT,
        "there is nothing to do: want advice, allocate, direct, sync, fsync or align");
  if (o.align != 0 && (o.align & (o.align - 1)) != 0)
    return host->fail(host, FEIGN_ERR_ARGUMENT,
                      ("align=" + std::to_string(o.align) + ": want a power of two").c_str());
  if (o.max_size != 0 && o.max_size < o.min_size)
    return host->fail(host, FEIGN_ERR_ARGUMENT, "max-size is less than min-size: no file fits");
  try {
    *self = new Hints(host, o);
    return FEIGN_OK;
  } catch (const std::bad_alloc&) {
    return host->fail(host, FEIGN_ERR_NOMEM, "out of memory");
  }
}

feign_status process(void* self, const feign_window* in, feign_sink* out) noexcept {
  auto& h = *static_cast<Hints*>(self);
  try {
    return h.process(*in, out);
  } catch (const std::bad_alloc&) {
    return h.host()->fail(h.host(), FEIGN_ERR_NOMEM, "out of memory");
  }
}

void destroy(void* self) noexcept { delete static_cast<Hints*>(self); }
uint32_t lookahead_of(void* self) noexcept { return static_cast<Hints*>(self)->window(); }

constexpr feign_modifier kApi = {sizeof kApi, 0, create, process, destroy, lookahead_of};
constexpr feign_component kComponent = {
    sizeof kComponent,
    FEIGN_MODIFIER,
    "hints",
    "Advice, allocation, open flags and fsync by rule: what one would tell the kernel.",
    &kApi,
    kOptions,
    std::size(kOptions),
    sizeof(feign_option),
    sizeof(Options),
    0};
constexpr const feign_component* kComponents[] = {&kComponent, nullptr};

}  // namespace

FEIGN_ROLES(FEIGN_MODIFIER);
extern "C" const feign_plugin feign_plugin_v1 = {
    sizeof(feign_plugin), FEIGN_ABI_MINOR, "hints", FEIGN_VERSION, "MIT", kComponents};
