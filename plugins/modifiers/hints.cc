// SPDX-License-Identifier: MIT
// Modifier hints: what one would tell the kernel about files, without touching the program: advice
// (posix_fadvise), room made before a file grows (fallocate), other flags at open, cheaper or no
// fsync, aligned requests, memory aligned in another way. Rules say for which files; several
// instances make several sets of rules.
//
// What a rule is about is a file *as it was opened*: its path, how large the file is and how it is
// used, as far as was seen until now and the window shows. A file that does not fit when it is
// opened is looked at again at each of its reads and writes, and treated from then on; only the
// flags of its open can no longer be changed. Nothing here changes bytes, sizes or results, but for
// align, which says so, and direct and buffer, where the device wants other requests.
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
#include <utility>
#include <vector>

#include "feign.hpp"
#include "modifiers/globs.h"
#include "trace/last.h"

namespace {

constexpr uint64_t kPage = 4096;

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
  uint64_t align, buffer;
  uint64_t window;
};
constexpr feign_option kOptions[] = {
    {"path", FEIGN_OPT_TEXTS, offsetof(Options, path), nullptr, nullptr, 0, 0,
     "Rule: globs of files: * within a component, ** across; given none: all."},
    {"min-size", FEIGN_OPT_SIZE, offsetof(Options, min_size), "0", nullptr, 0, 0,
     "Rule: files that are at least so long, as far as was seen or the window shows."},
    {"max-size", FEIGN_OPT_SIZE, offsetof(Options, max_size), "0", nullptr, 0, 0,
     "Rule: … and at most so long; 0: any."},
    {"pattern", FEIGN_OPT_ENUM, offsetof(Options, pattern), "any", kPatterns, 0, 0,
     "Rule: files that are mostly read or written where the last call ended, or mostly elsewhere."},
    {"advice", FEIGN_OPT_ENUM, offsetof(Options, advice), "none", kAdvices, 0, 0,
     "posix_fadvise for the whole file after it is opened; dontneed: before it is closed."},
    {"allocate", FEIGN_OPT_SIZE, offsetof(Options, allocate), "0", nullptr, 0, uint64_t{1} << 40,
     "fallocate (without changing the size) before a write that makes the file longer, so much at "
     "a time; 0: no."},
    {"direct", FEIGN_OPT_ENUM, offsetof(Options, direct), "keep", kChanges, 0, 0,
     "O_DIRECT at open. Where it is added, requests that are not aligned fail: see align."},
    {"sync", FEIGN_OPT_ENUM, offsetof(Options, sync), "keep", kChanges, 0, 0,
     "O_SYNC (and O_DSYNC) at open."},
    {"fsync", FEIGN_OPT_ENUM, offsetof(Options, fsync), "keep", kFsyncs, 0, 0,
     "fsync: dropped (fdatasync, too), or made fdatasync."},
    {"align", FEIGN_OPT_SIZE, offsetof(Options, align), "0", nullptr, 0, uint64_t{1} << 24,
     "Reads begin and end at multiples of this, which moves more bytes: their results are no "
     "longer "
     "compared; 0: no."},
    {"buffer", FEIGN_OPT_SIZE, offsetof(Options, buffer), "0", nullptr, 0, 4096,
     "The memory that reads and writes use lies at a multiple of this and of no more: 1 is odd, "
     "4096 "
     "a page, as the replay's is anyway; 0: no."},
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
    lseek_ = op("lseek");
  }

  feign_status start() const {
    const Options& o = options_;
    const auto fail = [&](const std::string& why) {
      return host_->fail(host_, FEIGN_ERR_ARGUMENT, why.c_str());
    };
    if (o.advice == kNoAdvice && o.allocate == 0 && o.direct == kKeep && o.sync == kKeep &&
        o.fsync == kFsyncKeep && o.align == 0 && o.buffer == 0)
      return fail(
          "there is nothing to do: want advice, allocate, direct, sync, fsync, align or buffer");
    for (const auto& [name, value] : {std::pair("align", o.align), std::pair("buffer", o.buffer)})
      if ((value & (value - 1)) != 0)
        return fail(std::string(name) + "=" + std::to_string(value) + ": want a power of two");
    if (o.max_size != 0 && o.max_size < o.min_size)
      return fail("max-size is less than min-size: no file fits");
    return FEIGN_OK;
  }
  feign_status process(const feign_window& in, feign_sink* out) {
    for (size_t i = 0; i < in.due; ++i) {
      // No farther than it said, even where more can be seen.
      for (; seen_ < in.count && seen_ <= i + lookahead(); ++seen_) look(*in.items[seen_]);
      feign_activity& a = *in.items[i];
      const uint32_t kind = kind_of(a.op);
      if (const feign_status s = one(a, kind, out); s < 0) return s;
    }
    seen_ -= in.due;
    path_fits_.end(in);
    return FEIGN_OK;
  }
  uint32_t lookahead() const { return by_use() ? static_cast<uint32_t>(options_.window) : 0; }

 private:
  // A file of a path that fits, as it was opened.
  struct Handle {
    // From the open's coming into view: how it is used, as far as the window shows.
    uint64_t end = 0, on = 0, elsewhere = 0;
    bool used = false;
    // From when the open is past: whether the rest of the rule fits, too.
    bool fits = false;
    uint64_t allocated = 0;  // up to there
  };

  // Whether the rule is about more than the path.
  bool by_use() const {
    return options_.min_size != 0 || options_.max_size != 0 || options_.pattern != kAny;
  }

  void look(const feign_activity& a) {
    if (!by_use() || (a.marks & FEIGN_NOT_A_FILE)) return;
    const uint32_t kind = kind_of(a.op);
    if (a.file != 0) sized(a, kind, sizes_ahead_[a.file]);
    if (a.handle == 0) return;
    if (kind == FEIGN_KIND_OPEN && a.result >= 0 && path_fits(a)) handles_[a.handle] = Handle{};
    if ((kind != FEIGN_KIND_READ && kind != FEIGN_KIND_WRITE) || a.result <= 0) return;
    const auto at = handles_.find(a.handle);
    if (at == handles_.end()) return;
    Handle& h = at->second;
    if (h.used) ++(a.offset == h.end ? h.on : h.elsewhere);
    h.used = true;
    h.end = a.offset + static_cast<uint64_t>(a.result);
  }

  feign_status one(feign_activity& a, uint32_t kind, feign_sink* out) {
    const bool file = !(a.marks & FEIGN_NOT_A_FILE);
    const uint32_t last = feign::last_of(a);
    if (file && a.handle != 0 && kind == FEIGN_KIND_OPEN && posix(a.op)) {
      if (const feign_status s = opened(a, out); s < 0) return s;
    } else {
      const auto at = file && a.handle != 0 ? handles_.find(a.handle) : handles_.end();
      const feign_status s =
          at != handles_.end() ? used(a, kind, at->second, out) : out->emit(out, &a);
      if (s < 0) return s;
    }
    if (last != 0) handles_.erase(last);
    if (options_.allocate != 0 && file && a.file != 0) sized(a, kind, sizes_[a.file]);
    return FEIGN_OK;
  }

  feign_status opened(feign_activity& a, feign_sink* out) {
    if (a.result < 0 || !path_fits(a)) return out->emit(out, &a);
    Handle& h = handles_[a.handle];
    h.fits = fits(h, a.file);
    if (h.fits) {
      if (options_.direct == kAdd) a.flags |= O_DIRECT;
      if (options_.direct == kRemove) a.flags &= ~uint32_t{O_DIRECT};
      if (options_.sync == kAdd) a.flags |= O_SYNC;
      if (options_.sync == kRemove) a.flags &= ~uint32_t{O_SYNC | O_DSYNC};
    }
    if (const feign_status s = out->emit(out, &a); s < 0) return s;
    if (!h.fits || FEIGN_DEPTH(a.marks) != 0 || (a.flags & O_PATH)) return FEIGN_OK;
    return advise(a, out);
  }

  feign_status used(feign_activity& a, uint32_t kind, Handle& h, feign_sink* out) {
    const bool outermost = FEIGN_DEPTH(a.marks) == 0;
    const bool data = (kind == FEIGN_KIND_READ || kind == FEIGN_KIND_WRITE) && a.handle2 == 0;
    if (!h.fits && data && outermost && fits(h, a.file)) {
      h.fits = true;
      if (const feign_status s = advise(a, out); s < 0) return s;
    }
    if (!h.fits) return out->emit(out, &a);
    if (kind == FEIGN_KIND_CLOSE && (a.marks & FEIGN_LAST)) {
      if (options_.advice == kDontNeed && outermost)
        if (const feign_status s = advise(a, out, true); s < 0) return s;
    } else if (kind == FEIGN_KIND_FLUSH && (a.op == fsync_ || a.op == fdatasync_)) {
      if (options_.fsync == kFsyncDrop) return FEIGN_OK;
      if (options_.fsync == kFsyncData) a.op = fdatasync_;
    } else if (data && posix(a.op)) {
      // Where in memory: see feign_activity.mode.
      if (options_.buffer != 0)
        a.mode = (a.mode & 1) | static_cast<uint32_t>(options_.buffer % kPage) << 1;
      if (kind == FEIGN_KIND_WRITE && options_.allocate != 0 && a.result > 0 && outermost)
        if (const feign_status s = allocate(a, h, out); s < 0) return s;
      if (kind == FEIGN_KIND_READ && options_.align != 0 && outermost) return align(a, out);
    }
    return out->emit(out, &a);
  }

  bool path_fits(const feign_activity& a) {
    if (a.marks & FEIGN_DIRECTORY) return false;
    return path_fits_.fit(a.path);
  }

  // The rest of the rule, as far as is seen by now.
  bool fits(const Handle& h, uint32_t file) {
    if (!by_use()) return true;
    const auto at = sizes_ahead_.find(file);
    const uint64_t size = at != sizes_ahead_.end() ? at->second : 0;
    if (size < options_.min_size || (options_.max_size != 0 && size > options_.max_size))
      return false;
    if (options_.pattern == kOnlySequential) return h.on > h.elsewhere;
    if (options_.pattern == kOnlyRandom) return h.elsewhere > h.on;
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

  // dontneed is for the end, all else for the beginning.
  feign_status advise(const feign_activity& by, feign_sink* out, bool at_end = false) {
    static constexpr int kKinds[] = {-1,
                                     POSIX_FADV_SEQUENTIAL,
                                     POSIX_FADV_RANDOM,
                                     POSIX_FADV_NOREUSE,
                                     POSIX_FADV_DONTNEED,
                                     POSIX_FADV_WILLNEED,
                                     POSIX_FADV_NORMAL};
    if (options_.advice == kNoAdvice || (options_.advice == kDontNeed) != at_end) return FEIGN_OK;
    feign_activity* a = injected(by, fadvise_, out);
    if (a == nullptr) return no_memory();
    a->flags = static_cast<uint32_t>(kKinds[options_.advice]);
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

  // A read at the handle's own position becomes one at a given position, and a seek to where it
  // would have got to.
  feign_status align(feign_activity& a, feign_sink* out) {
    const bool known = a.result > 0 && a.flags == 0 && a.length <= INT64_MAX &&
                       a.offset <= INT64_MAX - a.length &&
                       !(a.marks & (FEIGN_NO_RESULT | FEIGN_APPENDS));
    const Reads how = known ? reads_of(a) : kOtherwise;
    const uint64_t unit = options_.align, begin = a.offset / unit * unit,
                   end = (a.offset + a.length + unit - 1) / unit * unit;
    if (how == kOtherwise || end > INT64_MAX || (begin == a.offset && end == a.offset + a.length))
      return out->emit(out, &a);
    const uint64_t to = a.offset + static_cast<uint64_t>(a.result);
    feign_activity* seek = how == kAtPosition ? injected(a, lseek_, out) : nullptr;
    if (how == kAtPosition && seek == nullptr) return no_memory();
    if (a.value_count != 0)
      if (const feign_status s = host_->set_values(host_, &a, nullptr, 0); s < 0) return s;
    a.op = pread_;
    a.mode &= ~uint32_t{1};
    a.offset = begin;
    a.length = end - begin;
    // What there is to be read beyond is not known: not to be compared.
    a.result = static_cast<int64_t>(std::min(to - begin, a.length));
    a.marks |= FEIGN_INJECTED;
    if (const feign_status s = out->emit(out, &a); s < 0 || seek == nullptr) return s;
    seek->offset = to;
    seek->flags = SEEK_SET;
    return out->emit(out, seek);
  }
  enum Reads : uint8_t { kNotAsked, kOtherwise, kAtPosition, kGiven };
  Reads reads_of(const feign_activity& a) {
    if (a.op >= reads_.size()) reads_.resize(a.op + size_t{1});
    Reads& r = reads_[a.op];
    if (r == kNotAsked) {
      const std::string name = info_of(a.op)->name;
      r = name == "read" || name == "readv" || name == "preadv2" ? kAtPosition
          : name == "pread64" || name == "preadv"                ? kGiven
                                                                 : kOtherwise;
      if (name == "preadv2") preadv2_ = a.op;
    }
    return a.op == preadv2_ && !(a.mode & 1) ? kGiven : r;
  }

  // How long a file is, as far as it was seen.
  void sized(const feign_activity& a, uint32_t kind, uint64_t& size) {
    if (a.result < 0 || (a.marks & FEIGN_NO_RESULT)) return;
    const auto result = static_cast<uint64_t>(a.result);
    switch (kind) {
      case FEIGN_KIND_OPEN:
        if ((a.flags & O_TRUNC) || (a.marks & FEIGN_CREATES)) size = 0;
        return;
      case FEIGN_KIND_STAT:
        if (S_ISREG(a.mode)) size = a.length;
        return;
      case FEIGN_KIND_SEEK:
        if (a.flags == SEEK_END && a.offset == 0) size = result;
        return;
      case FEIGN_KIND_SIZE:
        if (strstr(info_of(a.op)->name, "truncate") != nullptr) size = a.length;
        return;
      case FEIGN_KIND_READ:
      case FEIGN_KIND_WRITE:
        if (a.offset <= INT64_MAX - result) size = std::max(size, a.offset + result);
        return;
      default:
        return;
    }
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
  uint32_t fadvise_, fallocate_, fsync_, fdatasync_, pread_, lseek_, preadv2_ = 0;
  size_t seen_ = 0;                                     // of the window, from its beginning
  std::unordered_map<uint32_t, Handle> handles_;        // open, or to be
  std::unordered_map<uint32_t, uint64_t> sizes_;        // by file, for allocate
  std::unordered_map<uint32_t, uint64_t> sizes_ahead_;  // … with what the window shows
  feign::Globs path_fits_{host_, options_.path};
  std::vector<Reads> reads_;  // by op
  std::vector<const feign_op_info*> infos_;
};

constexpr feign_modifier kApi = feign::modifier<Hints, Options>();
constexpr feign_component kComponent = feign::component<Options>(
    kApi, "hints",
    "Advice, allocation, open flags and fsync by rule: what one would tell the kernel.", kOptions);
constexpr const feign_component* kComponents[] = {&kComponent, nullptr};

}  // namespace

FEIGN_ROLES(FEIGN_MODIFIER);
extern "C" const feign_plugin feign_plugin_v1 = {
    sizeof(feign_plugin), FEIGN_ABI_MINOR, "hints", FEIGN_VERSION, "MIT", kComponents};
