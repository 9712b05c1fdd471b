// SPDX-License-Identifier: MIT
// Modifier coalesce: calls that go on where the last one ended become one call, as if the program
// had a buffer.
//
// A *run* is the calls of one stream on one handle that go on where the one before ended: reads or
// writes, at the handle's own position or at given ones. What comes into view of the window joins a
// run, ends it, or has nothing to do with it. So when the first call of a run is due, the run is
// known whole:
//  - writes become one call in place of the last: as late as a buffer that is flushed when needed;
//  - reads become one call in place of the first: as early as the window proves that nothing
//    between can change what they get.
// A run ends at whatever could tell the difference: ends() has the list. The other calls of a run
// are dropped, and the core gives their think time to the stream's next activity. Seeks to where
// the run is anyway go with it.
//
// Nothing is kept for longer than the window: no run is longer than it, and what is decided does
// not depend on how many activities are due at once.
#include <fcntl.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <memory>
#include <new>
#include <unordered_set>
#include <vector>

#include "feign.hpp"
#include "modifiers/globs.h"
#include "modifiers/table.h"
#include "trace/last.h"

namespace {

enum What : uint32_t { kReads, kWrites, kBoth };
constexpr const char* kWhats[] = {"reads", "writes", "both", nullptr};

struct Options {
  uint64_t max;
  uint64_t window;
  uint32_t what;
  const char* const* path;
};
constexpr feign_option kOptions[] = {
    {"max", FEIGN_OPT_SIZE, offsetof(Options, max), "1m", nullptr, 1, uint64_t{1} << 30,
     "No call gets longer than this: the buffer's size."},
    {"what", FEIGN_OPT_ENUM, offsetof(Options, what), "both", kWhats, 0, 0, "Which calls."},
    {"path", FEIGN_OPT_TEXTS, offsetof(Options, path), nullptr, nullptr, 0, 0,
     "Globs of files: * within a component, ** across; given none: all."},
    {"window", FEIGN_OPT_UINT, offsetof(Options, window), "1024", nullptr, 1, 1u << 20,
     "How many activities, of all streams, a run may span: the look-ahead."},
};

// What a call means to runs.
enum class Call : uint8_t {
  kUnknown,
  kRead,    // at the handle's position
  kWrite,   // …
  kPread,   // at a given one
  kPwrite,  // …
  kPread2,  // one or the other: see call_of()
  kPwrite2,
  kSeek,
  kAdvice,   // changes nothing
  kAsks,     // about a file
  kFlush,    // makes what was written durable
  kOpen,     // tells a handle's flags
  kProcess,  // the stream makes others, or waits for them
  kAll,      // may touch any file, or any handle
  kOther,    // may change the file that it is on
};
bool reads(Call c) { return c == Call::kRead || c == Call::kPread; }
bool writes(Call c) { return c == Call::kWrite || c == Call::kPwrite; }

struct Run {
  Call call = Call::kUnknown;  // of its members
  bool appends = false;
  uint32_t stream = 0, handle = 0, members = 0;
  uint32_t references = 0;             // by what waits in the window
  uint64_t begin = 0, end = 0;         // in the file
  uint64_t first = 0, last = 0;        // places in the trace, of reads or writes
  uint64_t first_id = 0, last_id = 0;  // activity's
  uint64_t of_all = 0, of_stream = 0;  // what counted then: see Coalesce::open()
};

// The runs on one file that may still grow.
struct File {
  std::vector<uint32_t> runs;
};

class Coalesce {
 public:
  Coalesce(const feign_host* host, const Options& o) : host_(host), options_(o) {
    runs_.emplace_back();
  }

  feign_status process(const feign_window& in, feign_sink* out) {
    for (; seen_ < in.count; ++seen_) {
      if (seen_ + 6 < in.count) __builtin_prefetch(in.items[seen_ + 6]);
      look(*in.items[seen_]);
    }
    for (size_t i = 0; i < in.due; ++i, ++due_) {
      if (i + 6 < in.due) __builtin_prefetch(in.items[i + 6]);
      if (const feign_status s = pass(in.items[i], out); s < 0) return s;
    }
    seen_ -= in.due;
    fits_.end(in);
    return FEIGN_OK;
  }
  uint32_t lookahead() const { return static_cast<uint32_t>(options_.window); }

 private:
  // ---- what comes into view

  // Notes what the activity at the far end of the window is to runs: a member, an end, or nothing.
  void look(const feign_activity& a) {
    const uint64_t place = looked_++;
    if (place - due_ >= plan_.size()) grow();
    uint32_t& plan = plan_[place & (plan_.size() - 1)];
    plan = 0;
    if (a.marks & FEIGN_DEPENDS) ++of_all_;  // on which others: not told
    const Call call = call_of(a);
    if (call == Call::kProcess) {
      ++of_stream(a.stream);
      return;
    }
    if (call == Call::kAll || a.handle2 != 0) ++of_all_;
    if (call == Call::kOpen && a.handle != 0 && (a.flags & O_DSYNC)) synced_.insert(a.handle);
    if (!synced_.empty()) synced_.erase(feign::last_of(a));
    if (a.file == 0 || (a.marks & FEIGN_NOT_A_FILE) || call == Call::kAdvice) return;
    File* file = files_.find(a.file);
    const bool data = reads(call) || writes(call);
    const bool can = data && mergeable(a, call);
    if (file == nullptr && !can) return;
    if (file == nullptr) file = &files_[a.file];
    uint32_t joined = 0;
    for (size_t i = file->runs.size(); i-- > 0;) {
      const uint32_t number = file->runs[i];
      Run& run = runs_[number];
      const bool is_open = open(run, place);
      if (is_open && can && joins(run, a, call))
        joined = number;
      else if (is_open && stays(run, a, call))
        plan = number;  // dropped, if the run goes on behind it
      else if (!is_open || (can && follows(run, a, call)) || ends(run, a, call))
        file->runs.erase(file->runs.begin() + static_cast<ptrdiff_t>(i));
    }
    if (joined == 0 && can) joined = begin(a, call, place, *file);
    if (joined != 0) {
      Run& run = runs_[joined];
      run.end += a.length;
      ++run.members;
      run.last = place;
      run.last_id = a.id;
      plan = joined;
    }
    if (plan != 0) ++runs_[plan].references;
  }

  bool mergeable(const feign_activity& a, Call call) {
    constexpr uint32_t kNever =
        FEIGN_NOT_A_FILE | FEIGN_INHERITED | FEIGN_NO_RESULT | FEIGN_DIRECTORY;
    if ((a.marks & kNever) || FEIGN_DEPTH(a.marks) != 0 || a.handle == 0) return false;
    if (a.result <= 0 || static_cast<uint64_t>(a.result) != a.length) return false;
    if (a.length >= options_.max || a.offset > INT64_MAX - a.length) return false;
    if (options_.what == (reads(call) ? kWrites : kReads)) return false;
    if (reads(call) && (a.marks & FEIGN_APPENDS)) return false;
    // preadv2 and pwritev2 with flags of their own.
    if (a.flags != 0) return false;
    if (!synced_.empty() && synced_.contains(a.handle)) return false;
    return fits_.fit(a.path);
  }

  // Whether it still counts: it began within the window, and nothing that ends all runs, or those
  // of its stream, came since.
  bool open(const Run& run, uint64_t place) {
    return place - run.first <= options_.window && run.of_all == of_all_ &&
           run.of_stream == of_stream(run.stream);
  }

  bool joins(const Run& run, const feign_activity& a, Call call) const {
    return run.call == call && run.handle == a.handle && run.stream == a.stream &&
           a.offset == run.end && run.end - run.begin + a.length <= options_.max &&
           run.appends == ((a.marks & FEIGN_APPENDS) != 0);
  }

  // Of the same kind, elsewhere: a run of its own takes the place of this one.
  static bool follows(const Run& run, const feign_activity& a, Call call) {
    return run.call == call && run.handle == a.handle && run.stream == a.stream;
  }

  // A seek to where the run is anyway.
  static bool stays(const Run& run, const feign_activity& a, Call call) {
    return call == Call::kSeek && run.handle == a.handle && run.stream == a.stream &&
           (run.call == Call::kRead || run.call == Call::kWrite) && !run.appends && a.result >= 0 &&
           !(a.marks & (FEIGN_INHERITED | FEIGN_NO_RESULT | FEIGN_APPENDS)) &&
           FEIGN_DEPTH(a.marks) == 0 && static_cast<uint64_t>(a.result) == run.end;
  }

  // Whether a call on the run's file that does not join it must find done what the run is about
  // (writes), or could change what it gets (reads).
  static bool ends(const Run& run, const feign_activity& a, Call call) {
    const bool at_position = run.call == Call::kRead || run.call == Call::kWrite;
    const bool same_handle = run.handle == a.handle;
    const bool moves = call == Call::kRead || call == Call::kWrite || call == Call::kSeek;
    if (at_position && same_handle && moves) return true;
    if (call == Call::kSeek) {  // asks for the size, or does not
      const bool plain = a.flags == SEEK_SET || a.flags == SEEK_CUR;
      return writes(run.call) && (!plain || (a.marks & FEIGN_APPENDS));
    }
    if (reads(run.call)) return !reads(call) && call != Call::kAsks && call != Call::kFlush;
    // Writes elsewhere in the file meet with nothing of the run, as long as neither appends: and
    // reads behind it do not find out how long it made the file.
    const bool appends = run.appends || (a.marks & FEIGN_APPENDS);
    if (appends || a.result < 0 || (a.marks & FEIGN_NO_RESULT)) return true;
    if (writes(call)) return a.offset < run.end && a.offset + a.length > run.begin;
    if (reads(call)) return a.offset < run.end;
    return true;
  }

  uint32_t begin(const feign_activity& a, Call call, uint64_t place, File& file) {
    if (free_.empty()) {
      free_.push_back(static_cast<uint32_t>(runs_.size()));
      runs_.emplace_back();
    }
    const uint32_t number = free_.back();
    free_.pop_back();
    Run& run = runs_[number];  // field by field: zeroing it first takes longer than the rest
    run.call = call;
    run.appends = (a.marks & FEIGN_APPENDS) != 0;
    run.stream = a.stream;
    run.handle = a.handle;
    run.members = run.references = 0;
    run.begin = run.end = a.offset;
    run.first = run.last = place;
    run.first_id = run.last_id = a.id;
    run.of_all = of_all_;
    run.of_stream = of_stream(a.stream);
    file.runs.push_back(number);
    return number;
  }

  // ---- what is due

  feign_status pass(feign_activity* a, feign_sink* out) {
    const uint32_t number = plan_[due_ & (plan_.size() - 1)];
    if (number == 0) return out->emit(out, a);
    Run& run = runs_[number];
    bool drop = false;
    if (due_ == run.first) closed(number, a->file);
    if (run.members > 1) {
      const bool here = due_ == (writes(run.call) ? run.last : run.first);
      drop = !here && due_ <= run.last;
      if (here)
        if (const feign_status s = merge(*a, run); s < 0) return s;
    }
    if (drop && call_of(*a) == run.call && FEIGN_HAS(host_, merged))
      host_->merged(host_, a, writes(run.call) ? run.last_id : run.first_id);
    if (--run.references == 0) free_.push_back(number);
    return drop ? FEIGN_OK : out->emit(out, a);
  }

  // Nothing joins a run any more once its first call is due.
  void closed(uint32_t number, uint32_t of_file) {
    File* file = files_.find(of_file);
    if (file == nullptr) return;
    std::erase(file->runs, number);
    if (file->runs.empty() && ++empty_ > kKeepEmpty) forget();
  }
  // Files without runs go, now and then.
  void forget() {
    empty_ = 0;
    files_.erase_if([](const File& f) { return f.runs.empty(); });
  }

  feign_status merge(feign_activity& a, const Run& run) {
    const uint32_t plain = run.call == Call::kRead    ? read_
                           : run.call == Call::kWrite ? write_
                           : run.call == Call::kPread ? pread_
                                                      : pwrite_;
    a.op = plain;
    a.offset = run.begin;
    a.length = run.end - run.begin;
    a.result = static_cast<int64_t>(a.length);
    a.mode &= ~uint32_t{1};  // which was of preadv2 and pwritev2
    return a.value_count != 0 ? host_->set_values(host_, &a, nullptr, 0) : FEIGN_OK;
  }

  // ---- by number

  Call call_of(const feign_activity& a) {
    if (a.op >= calls_.size()) calls_.resize(a.op + size_t{1});
    if (calls_[a.op] == Call::kUnknown) [[unlikely]]
      calls_[a.op] = classify(a.op);
    const Call call = calls_[a.op];
    // Of preadv2 and pwritev2, mode says so (layers/posix.h).
    if (call == Call::kPread2) return (a.mode & 1) != 0 ? Call::kRead : Call::kPread;
    if (call == Call::kPwrite2) return (a.mode & 1) != 0 ? Call::kWrite : Call::kPwrite;
    return call;
  }
  Call classify(uint32_t op) {
    const feign_op_info* info = host_->op_info(host_, op);
    if (info == nullptr) return Call::kOther;
    if (strcmp(info->layer, "posix") != 0)
      return info->kind == FEIGN_KIND_PROCESS ? Call::kProcess : Call::kOther;
    static constexpr struct {
      const char* name;
      Call call;
    } kByName[] = {{"read", Call::kRead},           {"readv", Call::kRead},
                   {"write", Call::kWrite},         {"writev", Call::kWrite},
                   {"pread64", Call::kPread},       {"preadv", Call::kPread},
                   {"pwrite64", Call::kPwrite},     {"pwritev", Call::kPwrite},
                   {"preadv2", Call::kPread2},      {"pwritev2", Call::kPwrite2},
                   {"fadvise64", Call::kAdvice},    {"arm_fadvise64_64", Call::kAdvice},
                   {"readahead", Call::kAdvice},    {"sync", Call::kAll},
                   {"syncfs", Call::kAll},          {"close_range", Call::kAll},
                   {"copy_file_range", Call::kAll}, {"sendfile", Call::kAll},
                   {"splice", Call::kAll},          {"ioctl", Call::kAll}};
    for (const auto& row : kByName)
      if (strcmp(info->name, row.name) == 0) return row.call;
    switch (info->kind) {
      case FEIGN_KIND_SEEK:
        return Call::kSeek;
      case FEIGN_KIND_STAT:
        return Call::kAsks;
      case FEIGN_KIND_FLUSH:
        return Call::kFlush;
      case FEIGN_KIND_OPEN:
        return Call::kOpen;
      case FEIGN_KIND_PROCESS:
        return Call::kProcess;
      default:
        return Call::kOther;
    }
  }

  uint64_t& of_stream(uint32_t stream) {
    if (stream >= of_stream_.size()) of_stream_.resize(stream + size_t{1});
    return of_stream_[stream];
  }

  void grow() {
    std::vector<uint32_t> larger(std::max<size_t>(1024, plan_.size() * 2));
    for (uint64_t at = due_; at + 1 < looked_; ++at)
      larger[at & (larger.size() - 1)] = plan_[at & (plan_.size() - 1)];
    plan_ = std::move(larger);
  }

  static constexpr size_t kKeepEmpty = 4096;

  const feign_host* host_;
  Options options_;
  const uint32_t read_ = host_->op(host_, "posix", "read"),
                 write_ = host_->op(host_, "posix", "write"),
                 pread_ = host_->op(host_, "posix", "pread64"),
                 pwrite_ = host_->op(host_, "posix", "pwrite64");
  size_t seen_ = 0;                // of the window, from its beginning
  uint64_t looked_ = 0, due_ = 0;  // places in the trace: next to be looked at, next to be due
  std::vector<uint32_t> plan_;     // by place, a ring: the run that it belongs to, 0: none
  std::vector<Run> runs_;          // [0] is none
  std::vector<uint32_t> free_;
  feign::Table<File> files_;
  size_t empty_ = 0;
  std::unordered_set<uint32_t> synced_;  // handles whose every write is durable
  uint64_t of_all_ = 0;                  // grows when all runs end
  std::vector<uint64_t> of_stream_;      // … when those of a stream do
  std::vector<Call> calls_;              // by op
  feign::Globs fits_{host_, options_.path};
};

constexpr feign_modifier kApi = feign::modifier<Coalesce, Options>();
constexpr feign_component kComponent = feign::component<Options>(
    kApi, "coalesce",
    "Merges reads, or writes, that go on where the last one of the handle ended: a buffer.",
    kOptions);
constexpr const feign_component* kComponents[] = {&kComponent, nullptr};

}  // namespace

FEIGN_ROLES(FEIGN_MODIFIER);
extern "C" const feign_plugin feign_plugin_v1 = {
    sizeof(feign_plugin), FEIGN_ABI_MINOR, "coalesce", FEIGN_VERSION, "MIT", kComponents};
