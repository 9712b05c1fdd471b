// SPDX-License-Identifier: MIT
// What modifier depend remembers of the activities so far, and how an activity gets its edges.
// depend.cc says what it is about; the rules are in processes.cc, handles.cc, names.cc, bytes.cc,
// channels.cc, messages.cc and threads.cc.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "feign.h"
#include "modifiers/depend/clocks.h"
#include "modifiers/depend/points.h"
#include "modifiers/depend/ranges.h"
#include "modifiers/table.h"
#include "trace/mpi_args.h"
#include "trace/mpi_programs.h"
#include "trace/tables.h"

namespace depend {

using feign::Effect;
using feign::Table;

struct Options {
  const char* rules;
  uint64_t window;
  const char* edges;
  uint32_t reduce;
  uint32_t ranks;  // kTogether, kApart
  uint32_t io;     // kIoAsMessages, kIoReal, kIoOrder
};
enum { kTogether, kApart };
enum { kIoAsMessages, kIoReal, kIoOrder };
enum Rule : uint32_t {
  kHandle,
  kPath,
  kFile,
  kProcess,
  kChannel,
  kMpi,
  kThreads,
  kRecorded,
  kWindow,
  kExplicit,
  kTrace,
  kRules
};
inline constexpr const char* kRuleNames[kRules] = {"handle",  "path",     "file",    "process",
                                                   "channel", "mpi",      "threads", "recorded",
                                                   "window",  "explicit", "trace"};

// What one access at a time may change, and many may use.
struct Shared {
  Point change;
  Points uses;
};
// What two kinds of access contend for, each of which does no harm to its own kind.
struct TwoSided {
  Points sides[2];
};

// A name, by its absolute path.
struct Name {
  uint32_t parent = 0;                         // 0: that of "/"
  uint32_t first_child = 0, next_sibling = 0;  // of those in use
  uint32_t above = 0;                          // the nearest one up that is a barrier, 0 if none
  uint32_t above_valid = 0;                    // as long as this is barriers_
  uint32_t file = 0;                           // the one that was found by it last; 0: not known
  uint32_t target = 0;                         // of a symbolic link, as far as it was told
  bool in_use = false;
  bool barrier = false;  // a directory or link that the trace made, moved or removed
  Shared access;
  std::unique_ptr<TwoSided> entries;  // changes and listings of what is in the directory
};

// Ranges of a file's locks: where some are put together, who of them had it alone is not known.
inline constexpr size_t kMostLocked = 4096;

struct File {
  Shared identity;  // under whatever name: made, removed, its rights changed; found
  // Its bytes: exact once several streams were at them.
  uint32_t only = 0;  // the stream that is alone at it
  bool several = false;
  Ranges bytes;
  // Its size: calls that set it, that extend the file, and those that saw where it ends.
  Point set;
  Points extends, ends;
  uint64_t ends_at = UINT64_MAX;  // the least of the ends that these saw
  bool size_known = false, size_changed = false;
  uint64_t size = 0;
  uint64_t there = 0;  // so many bytes were there before any call changed the size
  uint32_t open = 0;   // handles
  bool made = false;   // by the trace: then all of its names are known
  uint32_t names = 0;
  bool ended() const { return made && names == 0 && open == 0; }
  std::unique_ptr<Ranges> locks, records;  // flock's, fcntl's; whole: somebody's alone
  uint32_t alone = 0;                      // the handle that has locked it, for nobody else
};

// A process's record locks of a file, or an open file's: the calls that changed them, and, whole,
// what is for nobody else. They are as the last call left them, of whichever thread or process.
struct Records {
  Ranges calls{kMostLocked};
  bool some = false;  // since it gave up all
};

struct Handle {
  Shared access;
  uint32_t file = 0;
  bool lockless = false;  // nothing is given up with it: O_PATH, a mapping
  Point flock;            // the last such call that changed its lock
  std::unique_ptr<Records> own;
  uint64_t buffered = UINT64_MAX, buffered_end = 0;  // bytes that may not have left the process
};

// Bytes on their way from one process to another.
struct Queue {
  uint32_t writer = 0;  // handle; 0: any
  uint64_t written = 0, read = 0;
  std::deque<std::pair<uint64_t, Point>> writes;  // up to which byte
};
struct Channel {
  bool both_ways = false;  // a socket and its other end
  bool counter = false;    // an eventfd: a read takes all
  Point connect;           // that was, or will be, accepted
  uint32_t closed = 0;     // ends
  std::vector<Queue> queues;
  Points closes;
  // Who read what no write was seen to bring: the write ends later than the read.
  struct Wanted {
    uint32_t stream;
    uint32_t queue;
    uint64_t up_to;
  };
  std::vector<Wanted> wanted;
};

struct Futex {
  Point wake;
  uint64_t wake_end = 0;
  struct Waiter {
    uint32_t stream;
    uint64_t until;
  };
  std::vector<Waiter> early;  // woken by a wake that is seen later
};

// Memory for what never ends is bounded by these; what is over is forgotten, oldest first.
inline constexpr size_t kMostQueued = 4096, kMostWanted = 64, kMostFutexes = size_t{1} << 16,
                        kMostChannels = size_t{1} << 16, kMostWays = size_t{1} << 12;
inline constexpr size_t kMostCalls = 1024;  // of a stream, for rule window
inline constexpr size_t kMostInside = 64;   // calls of MPI of a stream
inline constexpr int kMostUp = 64;          // streams above one
inline constexpr int32_t kSeveral = -2;

struct Edge {
  uint64_t number, after;
};

class Depend {
 public:
  Depend(const feign_host* host, const Options& options) : host_(host), options_(options) {
    names_.emplace_back();
  }
  feign_status start();
  feign_status process(const feign_window& in, feign_sink* out);

 private:
  struct Inside {  // calls of a stream, from an id on
    uint64_t id;
    uint64_t end;        // when the call of MPI that they lie in ended, ns; 0: in none that is made
    uint64_t last = 0;   // id of the last one that does
    uint64_t until = 0;  // when a call of MPI ended, ns
    uint32_t comm = 0;   // 0, or all of its ranks come to that call before what lies in it is made
    uint64_t number = 0;  // which of theirs it is
    bool file = false;    // it is of MPI-IO, and not made
    uint64_t start = 0;   // of that
  };
  struct Stream {
    bool begun = false;
    uint64_t may_begin = 0;   // id of the fork that it waits for in a replay
    uint64_t vfork = 0;       // id of its last one
    uint32_t vforked_by = 0;  // who goes on when this one has memory of its own
    uint64_t group = 0;       // its process
    int64_t thread = 0;
    uint64_t last_end = 0;  // of its activities, ns
    uint64_t extra = 0;     // ns, to the next pause
    int32_t rank = -1;
    int32_t below = -1;         // the rank that it started; kSeveral
    uint32_t parent = 0;        // stream
    uint32_t mpi = UINT32_MAX;  // depth of the call of MPI that what comes now may lie in
    uint64_t mpi_end = 0;
    std::vector<Inside> inside;
    uint32_t helps = 0;                        // the stream whose call of MPI-IO made this one
    std::vector<uint32_t> helpers;             // streams that do
    bool helped = false;                       // its last call of MPI waited for what they do
    std::vector<std::pair<Point, Rule>> owed;  // what its next activity must come after
    std::vector<std::pair<uint32_t, std::vector<uint64_t>>> aio;  // file, ranges under way
    std::vector<std::pair<uint64_t, uint64_t>> calls;             // end and id, for rule window
  };
  struct Process {
    std::vector<uint32_t> streams;
  };
  struct Rank {
    bool in_mpi = false;          // between MPI_Init and MPI_Finalize, or its end
    uint64_t group = 0;           // its process
    uint64_t meets = UINT64_MAX;  // id of its first call that waits for others, or others for it
  };
  struct Wanted {
    Point p;
    const char* rule;
  };

  // ---- rule mpi
  struct Message {  // what an op does to order
    bool known = false;
    bool sends = false, receives = false, keeps = false, starts = false, ends = false;
    bool tells = false;  // that a request is over, which it does not end
    bool begins = false, file = false, opens = false;
    feign::Does does = feign::Does::kNothing;
    feign::Does meets = feign::Does::kNothing;  // who waits for whom in a collective call
    feign::mpi::Args args;
  };
  struct Meeting {  // one collective call
    struct Waiter {
      uint32_t stream;
      int32_t rank;
      bool root;
      uint64_t request;
    };
    uint32_t came = 0;
    std::vector<Point> arrived;
    std::vector<Waiter> waiters;
  };
  struct Comm {
    bool known = false;
    uint32_t members = 0;
    std::unordered_map<int32_t, uint64_t> next;  // by rank
    std::map<uint64_t, Meeting> meetings;        // not all have come
    // Of its calls on files, those begun too: which comes next for each rank, and who came to those
    // that not all have come to, by ids.
    std::unordered_map<int32_t, uint64_t> comes;
    std::map<uint64_t, std::vector<std::pair<int32_t, uint64_t>>> some_came;
  };
  struct Request {
    std::vector<Point> after;  // what it ends after
    uint32_t comm = 0;
    int peer = -1, tag = -1;
    bool sends = false, keeps = false, wild = false;
    // What it waits for: the message or the meeting of this number, from 1, as the waiter of that
    // index.
    uint64_t message = 0, meeting = 0;
    size_t waiter = 0;
  };
  struct Passage {  // messages of one kind between two ranks
    uint64_t sent = 0, taken = 0;
    std::map<uint64_t, Point> on_its_way;
    std::map<uint64_t, std::pair<uint32_t, uint64_t>> waiting;  // stream, request
    // Whether nothing of it is left: who comes next may count from 0.
    bool over() const { return sent == taken && on_its_way.empty() && waiting.empty(); }
  };
  const Message& message_of(uint32_t op);
  Comm& comm_of(uint32_t text);
  uint32_t comm_of_file(const feign_activity& a, const Message& m);
  void leave(uint32_t stream, Point p);
  void come(uint32_t comm, const Message& m, const feign_activity& a, int root, Point here,
            uint64_t request);
  Request& request_of(uint32_t stream, uint64_t request);
  Passage& passage(uint32_t comm, int from, int to, int tag);
  void post(uint32_t comm, int to, int tag, Point here);
  void take(uint32_t comm, int from, int tag, uint64_t request);
  void still_waits(Request& q, uint32_t stream);
  void at_once(uint32_t stream, feign::Does does);
  void mpi(const feign_activity& a, Point here);

  // ---- rule threads
  enum ThingKind : uint8_t {
    kCommOf,
    kFilesOn,
    kFileOf,
    kWindowOf,
    kRequestOf,
    kMessageOf,
    kSent,
    kReceived
  };
  struct Thing {  // that threads may be at
    Shared access;
    uint64_t start_ns = 0;  // of the last to ask for a message
    uint64_t end_ns = 0;    // of the last collective call
    bool keeps = false;     // a request that is not over when it ends
    uint32_t file = 0;      // the handle that a request is for
  };
  Thing& thing(ThingKind kind, uint64_t which, uint64_t part = 0);
  void next_message(const feign_activity& a, bool sends, uint32_t comm, int peer, int tag);
  void in_window(const feign_activity& a, const Message& m, uint32_t window);
  void in_file(const feign_activity& a, const Message& m);
  void in_order(ThingKind kind, uint64_t which);
  void meets_on(const feign_activity& a, uint32_t comm, bool file);
  void ends(uint64_t request);
  void threads(const feign_activity& a);

  bool on(Rule rule) const { return (rules_ >> rule & 1) != 0; }
  feign_status fail(const std::string& text, feign_status code = FEIGN_ERR_ARGUMENT) {
    return host_->fail(host_, code, text.c_str());
  }
  feign_status read_edges();

  // ---- edges of the activity at hand
  void after(Point p, Rule rule) {
    if (apart_ && rule <= kThreads && unit_of(p.stream) != unit_of(me_.stream) &&
        !waits_for_no_message(p))
      p = met(p);
    after(p, kRuleNames[rule]);
  }
  void after(Point p, const char* rule);
  void want(Point p, const char* rule);
  void after(const Points& points, Rule rule) {
    points.for_each([&](Point p) { after(p, rule); });
    if (points.anybody() != 0) [[unlikely]]
      for (const uint32_t s : clocks_.live()) after({s, clocks_.covers(s, points.anybody())}, rule);
  }
  void use(Shared& s, Rule rule) {
    after(s.change, rule);
    s.uses.add(me_);
  }
  void change(Shared& s, Rule rule) {
    after(s.change, rule);
    after(s.uses, rule);
    s.change = me_;
    s.uses.clear();
  }
  void take_side(TwoSided& t, int side, Rule rule) {
    after(t.sides[1 - side], rule);
    t.sides[side].add(me_);
  }
  feign_status emit_edges(feign_activity& a);

  // ---- rules
  Effect effect_of(uint32_t op);
  void library_call(const feign_activity& a);
  Stream& stream_of(uint32_t number);
  void activity(feign_activity& a);
  void in_mpi(const feign_activity& a);
  void ranks(const feign_activity& a);
  void left_mpi(uint64_t group);
  void next_job(Rank& rank);
  bool waits_for_no_message(Point p) const;
  bool meets_without_messages(const feign_activity& a);
  void file_meets(const feign_activity& a, Inside& in);
  void comes(Comm& comm, uint64_t id);
  bool waits_for_some(Point p) const;
  Point come_before(Point p) const;
  void begins_to_help(uint32_t stream, Point fork);
  void helpers(const feign_activity& a);
  Point met(Point p) const;
  bool still_in_mpi(Point p) const;
  int32_t unit_of(uint32_t stream) const;
  void processes(const feign_activity& a, Effect effect);
  void handles(const feign_activity& a, Effect effect);
  void names(const feign_activity& a, Effect effect);
  void finds(const feign_activity& a);
  void bytes(const feign_activity& a, Effect effect);
  struct End {
    uint32_t file;
    bool fifo;
  };
  using Ends = std::unordered_map<uint64_t, End>;  // of channels, by handle
  void closed(Ends::iterator end);
  void channels(const feign_activity& a, Effect effect);
  void futex(const feign_activity& a);
  void locks(const feign_activity& a, Effect effect);
  void refused(Ranges& locks, uint64_t begin, uint64_t end);
  void share(Ranges& locks, uint64_t begin, uint64_t end, Records& own);
  void unlocked(uint32_t file);
  void unlock(File& f, uint32_t handle);
  void window(const feign_activity& a);

  uint32_t name_of(uint32_t path);
  uint32_t barrier_above(uint32_t name);
  void in_use(uint32_t name);
  void use_name(uint32_t path);
  uint32_t led_to(uint32_t path, bool follow);
  void link_told(const feign_activity& a);
  void is_link(uint32_t path, uint32_t target);
  void names_led_to(const feign_activity& a, Effect effect);
  void identity(const feign_activity& a, bool changes);
  void named(const feign_activity& a);
  bool changed_names(const feign_activity& a, Effect effect);
  void renamed(const feign_activity& a, bool directory);
  void used_names(const feign_activity& a, Effect effect, bool ok);
  void missed(const feign_activity& a, uint32_t path);
  // `gone`: what was below it is there no more.
  void change_name(uint32_t path, bool directory, bool gone = true);
  void below(uint32_t name, bool gone);
  TwoSided& entries(uint32_t name) {
    auto& e = names_[name].entries;
    if (!e) e = std::make_unique<TwoSided>();
    return *e;
  }
  void unlocked_by(uint64_t handle, uint32_t file = 0);
  void gone(uint64_t number);
  void made(uint32_t handle, uint32_t file, bool lockless);
  bool moves(const feign_activity& a, Effect effect);
  void used(const feign_activity& a, Effect effect);
  void ended(const feign_activity& a, Effect effect);
  void by_context(const feign_activity& a, Effect effect);
  void all_of(uint64_t group, bool ended);
  bool reads(File& f, uint64_t begin, uint64_t length);
  void read(File& f, uint64_t begin, uint64_t asked, uint64_t got);
  void extend(File& f, uint64_t end);
  void write(File& f, uint64_t begin, uint64_t length, bool appends);
  void set_size(File& f, uint64_t size, uint64_t from);
  void sizes(File& f);
  void flushed(Handle& h);
  void sees_end(File& f, uint64_t end);
  void buffers(const feign_activity& a, Effect effect);
  void opens(File& f, const feign_activity& a);
  void copies(const feign_activity& a);
  void clones(const feign_activity& a);
  void allocates(File& f, const feign_activity& a);
  void told_size(File& f, uint64_t size);
  void queues(File& f, const feign_activity& a);
  bool alone(File& f);
  void sent(Channel& c, uint32_t writer, uint64_t bytes);
  void received(Channel& c, uint32_t reader, uint64_t bytes);

  const feign_host* host_;
  Options options_;
  uint32_t rules_ = 0;
  bool apart_ = false;
  std::unordered_map<int32_t, Rank> ranks_;  // that have called MPI
  uint32_t in_mpi_ = 0;                      // of those
  uint64_t first_meets_ = UINT64_MAX;        // the least of theirs
  // By rank: collective calls on files that it has come to, and not all others, each with the last
  // activity of its stream before it.
  std::unordered_map<int32_t, std::map<uint64_t, Point>> some_came_;
  // What calls do, of every layer, and the sign that records are the host's own: then the trace's
  // dependencies can be seen.
  const feign::Tables* tables_ = nullptr;

  Point me_;
  uint64_t me_start_ = 0;   // ns
  uint64_t me_after_ = 0;   // id of its stream's activity before it
  uint64_t group_end_ = 0;  // when the last activity of the process that is waited for ended, ns
  uint64_t after_end_ = 0;  // how much later the wait did
  uint64_t number_ = 0;
  std::vector<Wanted> wanted_;
  Clocks clocks_;
  struct Kind {
    bool known = false;
    Effect effect = Effect::kNone;
    bool buffered = false;  // what it writes leaves the process later
    bool mpi = false;
    bool library = false;  // of a third party's layer
  };
  std::vector<Kind> effects_;                           // by op
  std::unordered_map<uint32_t, Shared> library_paths_;  // that calls of such a layer are on
  std::vector<Stream> streams_;
  std::unordered_map<uint64_t, Process> processes_;
  std::map<std::tuple<uint32_t, int32_t, int64_t>, uint64_t> groups_;
  // Of another rank than who made them (a launcher has none): by who did, and process id.
  std::map<std::pair<uint64_t, int64_t>, uint64_t> became_ranks_;
  std::map<std::pair<uint64_t, int64_t>, uint32_t> threads_;  // by process and thread id
  std::vector<uint32_t> name_of_path_;                        // by string id
  std::vector<Name> names_;                                   // [0] is none
  uint32_t barriers_ = 1;  // grows whenever a name becomes a barrier, or is none any more
  bool links_ = false;     // whose target is known
  // So many times a link may still be looked at that stays below a directory which is changed.
  uint64_t links_kept_ = uint64_t{1} << 22;
  Table<File> files_;
  Table<Handle> handles_;
  std::unordered_map<uint64_t, Channel> channels_;
  Ends ends_;
  std::map<std::pair<uint64_t, uint32_t>, Records> records_;  // by process and file
  std::map<std::pair<uint64_t, uint64_t>, Futex> futexes_;
  std::map<std::pair<uint64_t, uint64_t>, Shared> contexts_;  // by process and address
  std::unordered_map<uint64_t, Point> semaphores_;
  std::vector<Message> messages_;  // by op
  std::unordered_map<uint32_t, Comm> comms_;
  feign::mpi::Programs programs_;
  bool said_at_once_ = false;
  std::map<std::pair<int32_t, uint64_t>, Request> requests_;  // by rank and number
  std::map<std::tuple<uint32_t, int, int, int>, Passage> ways_;
  size_t ways_kept_ = kMostWays;  // so many before those that are over are forgotten
  std::unordered_map<uint32_t, uint32_t> opened_;             // by handle: its communicator
  std::map<std::pair<int32_t, uint32_t>, uint32_t> windows_;  // by rank and name
  std::map<std::tuple<int32_t, ThingKind, uint64_t, uint64_t>, Thing> things_;  // by rank
  Point before_;  // the activity before this one, for rule trace
  std::vector<Edge> edges_;
  size_t next_edge_ = 0;
  std::unordered_map<uint64_t, Point> edge_ends_;
};

}  // namespace depend
