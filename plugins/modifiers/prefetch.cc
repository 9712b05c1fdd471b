// SPDX-License-Identifier: MIT
// Modifier prefetch: asks for the data of reads before they come, as a program would that knew
// them.
//
// It knows the future: the window shows the reads that come. That makes it an *oracle*, the
// baseline that no prefetcher on line can beat, and an example of how to write one
// (docs/what-if.md):
//  1. look() takes note of each read once, when it comes into view at the window's far end, in a
//     queue of its stream;
//  2. when an activity is due, advise() takes from its stream's queue what is near enough by now,
//     and injects a call before it: that is at the end of the stream's last call, with the think
//     time still to come;
//  3. what it may decide by is what lies within `window` activities, so that it comes to the same
//     however many are due at once.
// What a read finds in memory anyway is not asked for: what the trace itself read or wrote a short
// while ago (Fresh).
#include <fcntl.h>
#include <linux/fadvise.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <deque>
#include <iterator>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "feign.hpp"
#include "modifiers/globs.h"
#include "modifiers/table.h"
#include "trace/last.h"

namespace {

enum Form : uint32_t { kWindow, kPaper };
constexpr const char* kForms[] = {"window", "paper", nullptr};
enum How : uint32_t { kAdvise, kReadahead };
constexpr const char* kHows[] = {"fadvise", "readahead", nullptr};

struct Options {
  uint32_t form, call;
  uint64_t distance, lead, in_flight, budget, fresh, window;
  const char* const* path;
};
constexpr feign_option kOptions[] = {
    {"distance", FEIGN_OPT_UINT, offsetof(Options, distance), "2", nullptr, 0, 1u << 20,
     "Ask for the data of so many of the stream's reads ahead."},
    {"lead", FEIGN_OPT_DURATION, offsetof(Options, lead), "0", nullptr, 0, 0,
     "Ask for what is read within this much recorded think time, too, however many reads that is."},
    {"in-flight", FEIGN_OPT_UINT, offsetof(Options, in_flight), "64", nullptr, 1, 1u << 20,
     "Of each stream, no more reads than this are asked for and not yet done."},
    {"budget", FEIGN_OPT_SIZE, offsetof(Options, budget), "16m", nullptr, 1, uint64_t{1} << 62,
     "… and no more bytes."},
    {"fresh", FEIGN_OPT_SIZE, offsetof(Options, fresh), "256m", nullptr, 0, 0,
     "Do not ask for what the trace read, wrote or asked for within the last so many bytes; 0: ask "
     "all the same."},
    {"call", FEIGN_OPT_ENUM, offsetof(Options, call), "fadvise", kHows, 0, 0,
     "posix_fadvise(WILLNEED), which does not wait for the data on most file systems; or "
     "readahead."},
    {"form", FEIGN_OPT_ENUM, offsetof(Options, form), "window", kForms, 0, 0,
     "paper: the Feign paper's own rule, for reads that follow an lseek only, two ahead, without "
     "bounds; distance, lead, in-flight, budget and fresh are not looked at."},
    {"path", FEIGN_OPT_TEXTS, offsetof(Options, path), nullptr, nullptr, 0, 0,
     "Globs of files: * within a component, ** across; given none: all."},
    {"window", FEIGN_OPT_UINT, offsetof(Options, window), "1024", nullptr, 1, 1u << 20,
     "How many activities, of all streams, it sees ahead."},
};

// What is likely to be in memory: the blocks that went by last, in a table of fixed size in which
// newer ones take the place of older ones.
class Fresh {
 public:
  explicit Fresh(uint64_t bytes)
      : blocks_(static_cast<uint32_t>(
            std::min<uint64_t>(bytes / kBlock + (bytes % kBlock != 0), 1u << 30))),
        entries_(bytes != 0 ? kEntries : 0) {}

  void add(uint32_t file, uint64_t offset, uint64_t length) {
    if (blocks_ == 0 || length == 0) return;
    each(file, offset, length, [&](Entry& e, uint32_t at, uint16_t mask) {
      if (e.file != file || e.at != at || now() - e.when > blocks_) e = {file, at, 0, 0};
      e.mask |= mask;
      e.when = now();
      return true;
    });
    bytes_ += length;
  }
  void remove(uint32_t file, uint64_t offset, uint64_t length) {
    if (blocks_ == 0) return;
    if (length == 0 || length > kMost) {  // to the end of the file
      for (Entry& e : entries_)
        if (e.file == file && (uint64_t{e.at} + 1) * kBlock > offset) e = {};
      return;
    }
    each(file, offset, length, [&](Entry& e, uint32_t at, uint16_t mask) {
      if (e.file == file && e.at == at) e.mask &= static_cast<uint16_t>(~mask);
      return true;
    });
  }
  bool has(uint32_t file, uint64_t offset, uint64_t length) {
    if (blocks_ == 0 || length > kMost) return false;
    return each(file, offset, length, [&](const Entry& e, uint32_t at, uint16_t mask) {
      return e.file == file && e.at == at && now() - e.when <= blocks_ && (e.mask & mask) == mask;
    });
  }

 private:
  static constexpr uint64_t kPage = 4096, kBlock = 16 * kPage, kMost = uint64_t{64} << 20;
  static constexpr size_t kEntries = size_t{1} << 15;  // 2 GiB in all
  struct Entry {
    uint32_t file = 0, at = 0;  // which block of it
    uint32_t when = 0;          // how many blocks had gone by
    uint16_t mask = 0;          // which pages
  };
  // Calls what(entry, block, pages) for the blocks of a range until one says false.
  template <typename What>
  bool each(uint32_t file, uint64_t offset, uint64_t length, What&& what) {
    // Of a very long range, the end: the rest would be gone by then.
    if (length > kMost) offset += length - kMost, length = kMost;
    const uint64_t last = (offset + length - 1) / kPage;
    for (uint64_t page = offset / kPage; page <= last;) {
      const uint64_t block = page / 16, first = page % 16;
      const uint64_t n = std::min(16 - first, last - page + 1);
      const auto mask = static_cast<uint16_t>(((1u << n) - 1) << first);
      // Blocks that follow each other lie side by side.
      const size_t slot = (block + uint64_t{file} * 0x9E3779B1u) % kEntries;
      if (!what(entries_[slot], static_cast<uint32_t>(block), mask)) return false;
      page += n;
    }
    return true;
  }

  uint32_t now() const { return static_cast<uint32_t>(bytes_ / kBlock); }

  uint32_t blocks_;
  uint64_t bytes_ = 0;  // that have gone by
  std::vector<Entry> entries_;
};

class Prefetch {
 public:
  Prefetch(const feign_host* host, const Options& o)
      : host_(host), options_(o), fresh_(o.form == kPaper ? 0 : o.fresh) {
    if (options_.form == kPaper) {
      options_.distance = 2;
      options_.lead = 0;
      options_.in_flight = options_.budget = UINT64_MAX;
    }
    op_ = host->op(host, "posix", options_.call == kAdvise ? "fadvise64" : "readahead");
  }

  feign_status start() const {
    if (options_.form != kWindow || options_.distance != 0 || options_.lead != 0) return FEIGN_OK;
    return host_->fail(host_, FEIGN_ERR_ARGUMENT,
                       "distance=0 and no lead: there is nothing to ask for; want one of them");
  }
  feign_status process(const feign_window& in, feign_sink* out) {
    for (; seen_ < in.count; ++seen_) {
      if (seen_ + 6 < in.count) __builtin_prefetch(in.items[seen_ + 6]);
      look(*in.items[seen_]);
    }
    for (size_t i = 0; i < in.due; ++i, ++due_) {
      if (i + 6 < in.due) __builtin_prefetch(in.items[i + 6]);
      feign_activity* a = in.items[i];
      bool own = false;
      if (const feign_status s = advise(*a, own, out); s < 0) return s;
      if (!own) note(*a);
      if (const feign_status s = out->emit(out, a); s < 0) return s;
    }
    seen_ -= in.due;
    fits_.end(in);
    return FEIGN_OK;
  }
  uint32_t lookahead() const { return static_cast<uint32_t>(options_.window); }

 private:
  struct Read {
    uint64_t place;     // in the trace
    uint64_t think_ns;  // of the stream, up to it
    uint64_t offset, length, source;
    uint32_t handle, file, path, marks;
    bool asked = false;  // for, ahead
  };
  struct Stream {
    std::deque<Read> reads;  // that come, as far as the window shows them
    size_t settled = 0;      // how many of them are: asked for, or not worth it
    uint64_t in_flight = 0;  // asked for and not made yet, and their bytes
    uint64_t bytes = 0;
    uint64_t think_ns = 0;  // up to the window's far end
    uint64_t due_think_ns = 0;
    uint64_t sequential_end = 0;  // behind what was asked for last, and of which handle
    uint32_t sequential = 0;
    uint32_t sought = 0;  // the handle, if the stream's last activity in view was an lseek
  };
  enum class Call : uint8_t { kUnknown, kRead, kWrite, kSeek, kAdvice, kOpen, kOther };

  // ---- what comes into view

  void look(const feign_activity& a) {
    const uint64_t place = looked_++;
    Stream& s = stream_of(a.stream);
    s.think_ns += a.compute_ns + a.sync_ns;
    const Call call = call_of(a.op);
    const uint32_t sought = s.sought;
    s.sought = call == Call::kSeek ? a.handle : 0;
    if (call == Call::kOpen && a.handle != 0 && a.result >= 0) {
      opens_[a.handle] = (a.flags & O_DIRECT) != 0 ? kDirect : place;
      return;
    }
    if (call != Call::kRead || a.result <= 0 || a.handle == 0 || a.file == 0) return;
    if (a.marks & (FEIGN_NOT_A_FILE | FEIGN_APPENDS | FEIGN_DIRECTORY | FEIGN_NO_RESULT)) return;
    if (a.offset > INT64_MAX - static_cast<uint64_t>(a.result) || !fits_.fit(a.path)) return;
    if (options_.form == kPaper && sought != a.handle) return;
    s.reads.push_back({place, s.think_ns, a.offset, static_cast<uint64_t>(a.result), a.place,
                       a.handle, a.file, a.path, a.marks & (FEIGN_INHERITED | FEIGN_NO_STORAGE)});
  }

  // ---- what is due

  // Asks, before `a`, for the data of reads of its stream that are near by now.
  // `own`: it is one that was asked for.
  feign_status advise(const feign_activity& a, bool& own, feign_sink* out) {
    Stream& s = stream_of(a.stream);
    s.due_think_ns += a.compute_ns + a.sync_ns;
    // Its own read is not ahead of it.
    const bool reads = !s.reads.empty() && s.reads.front().place == due_;
    const size_t first = reads ? 1 : 0;
    s.settled = std::max(s.settled, first);
    // An activity that lies in another comes right after that.
    if (FEIGN_DEPTH(a.marks) == 0)
      for (Extent extent; next(s, first, extent);)
        if (const feign_status status = inject(a, extent, out); status < 0) return status;
    own = reads && s.reads.front().asked;
    if (own) {
      --s.in_flight;
      s.bytes -= s.reads.front().length;
    }
    if (reads) {
      s.reads.pop_front();
      --s.settled;
    }
    return FEIGN_OK;
  }

  struct Extent {
    Read read{};  // the first
    uint64_t end = 0;
  };
  // The next range to ask for: reads that follow each other become one. `first`: which of the
  // stream's reads counts as one ahead.
  bool next(Stream& s, size_t first, Extent& extent) {
    bool some = false;
    for (; s.settled < s.reads.size(); ++s.settled) {
      Read& r = s.reads[s.settled];
      const Turn turn = turn_of(s, r, s.settled - first);
      if (turn == Turn::kNever) continue;
      if (turn == Turn::kLater) break;
      if (some && (extent.read.handle != r.handle || extent.end != r.offset)) break;
      // What goes on where the last request ended is asked for in larger pieces.
      if (!some && s.sequential == r.handle && s.sequential_end == r.offset && half(s, first))
        break;
      if (!some) extent.read = r;
      some = true;
      extent.end = r.offset + r.length;
      fresh_.add(r.file, r.offset, r.length);
      ++s.in_flight;
      s.bytes += r.length;
      r.asked = true;
    }
    if (some) {
      s.sequential = extent.read.handle;
      s.sequential_end = extent.end;
    }
    return some;
  }

  // When a read with that many of its stream's before it is asked for.
  enum class Turn : uint8_t { kNow, kLater, kNever };
  Turn turn_of(const Stream& s, const Read& r, size_t before) {
    const bool near = before < options_.distance ||
                      (options_.lead != 0 && r.think_ns - s.due_think_ns <= options_.lead);
    if (!near || r.place - due_ > options_.window) return Turn::kLater;
    if (const uint64_t* open = opens_.find(r.handle); open != nullptr) {
      if (*open == kDirect) return Turn::kNever;
      if (*open >= due_) return Turn::kLater;  // it is not open yet
    }
    if (r.length > options_.budget || fresh_.has(r.file, r.offset, r.length)) return Turn::kNever;
    const bool room = s.in_flight < options_.in_flight && s.bytes + r.length <= options_.budget;
    return room ? Turn::kNow : Turn::kLater;
  }

  // Whether half of what may be under way of a stream still is. What is read now is no more ahead.
  bool half(const Stream& s, size_t first) const {
    if (s.settled <= first) return false;
    if (s.in_flight * 2 > options_.in_flight) return true;
    return s.in_flight * 2 > options_.distance &&
           (options_.lead == 0 ||
            s.reads[s.settled - 1].think_ns - s.due_think_ns > options_.lead / 2);
  }

  feign_status inject(const feign_activity& before, const Extent& extent, feign_sink* out) {
    feign_activity* a = out->make(out);
    if (a == nullptr) return host_->fail(host_, FEIGN_ERR_NOMEM, "out of memory");
    a->op = op_;
    a->stream = before.stream;
    a->start_ns = before.start_ns - std::min(before.start_ns, before.compute_ns + before.sync_ns);
    a->handle = extent.read.handle;
    a->file = extent.read.file;
    a->path = extent.read.path;
    a->marks = extent.read.marks;
    a->place = extent.read.source;
    a->offset = extent.read.offset;
    a->length = extent.end - extent.read.offset;
    if (options_.call == kAdvise) a->flags = POSIX_FADV_WILLNEED;
    return out->emit(out, a);
  }

  // Takes note of what the activity brings into memory, or takes out of it.
  void note(const feign_activity& a) {
    const Call call = call_of(a.op);
    if (const uint32_t last = feign::last_of(a); last != 0) opens_.erase(last);
    if (a.file == 0 || (a.marks & FEIGN_NOT_A_FILE)) return;
    if (call == Call::kAdvice && a.flags == POSIX_FADV_DONTNEED)
      fresh_.remove(a.file, a.offset, a.length);
    const bool data = call == Call::kRead || call == Call::kWrite;
    if (!data || a.result <= 0 || a.offset == FEIGN_NO_OFFSET) return;
    const uint64_t* open = opens_.find(a.handle);
    if (open != nullptr && *open == kDirect) return;
    fresh_.add(a.file, a.offset, static_cast<uint64_t>(a.result));
  }

  // ---- by number

  Call call_of(uint32_t op) {
    if (op >= calls_.size()) calls_.resize(op + size_t{1});
    if (calls_[op] != Call::kUnknown) [[likely]]
      return calls_[op];
    const feign_op_info* info = host_->op_info(host_, op);
    Call call = Call::kOther;
    if (info != nullptr && strcmp(info->layer, "posix") == 0) {
      if (info->kind == FEIGN_KIND_READ) call = Call::kRead;
      if (info->kind == FEIGN_KIND_WRITE && strstr(info->name, "write") != nullptr)
        call = Call::kWrite;
      if (info->kind == FEIGN_KIND_SEEK) call = Call::kSeek;
      if (info->kind == FEIGN_KIND_OPEN) call = Call::kOpen;
      if (strstr(info->name, "fadvise64") != nullptr) call = Call::kAdvice;
    }
    return calls_[op] = call;
  }
  Stream& stream_of(uint32_t stream) {
    if (stream >= streams_.size()) streams_.resize(stream + size_t{1});
    return streams_[stream];
  }

  // In place of where a handle was opened: past caches.
  static constexpr uint64_t kDirect = UINT64_MAX;

  const feign_host* host_;
  Options options_;
  Fresh fresh_;
  uint32_t op_ = 0;
  size_t seen_ = 0;                // of the window, from its beginning
  uint64_t looked_ = 0, due_ = 0;  // places in the trace: next to be looked at, next to be due
  std::vector<Stream> streams_;
  feign::Table<uint64_t> opens_;  // by handle: where in the trace it was opened
  std::vector<Call> calls_;       // by op
  feign::Globs fits_{host_, options_.path};
};

constexpr feign_modifier kApi = feign::modifier<Prefetch, Options>();
constexpr feign_component kComponent = feign::component<Options>(
    kApi, "prefetch", "Asks for the data of reads before they come (posix_fadvise): it knows them.",
    kOptions);
constexpr const feign_component* kComponents[] = {&kComponent, nullptr};

}  // namespace

FEIGN_ROLES(FEIGN_MODIFIER);
extern "C" const feign_plugin feign_plugin_v1 = {
    sizeof(feign_plugin), FEIGN_ABI_MINOR, "prefetch", FEIGN_VERSION, "MIT", kComponents};
