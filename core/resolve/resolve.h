// SPDX-License-Identifier: MIT
// Plays the operating system's bookkeeping over the activities as they come in: processes and
// threads, working directories, descriptor tables, offsets and names; and writes the answers into
// each. The only place that does.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/error.h"
#include "resolve/namespace.h"
#include "trace/effects.h"
#include "trace/record.h"
#include "trace/tables.h"

namespace feign {

class Resolve {
 public:
  explicit Resolve(Tables& tables);

  // Turns a provider's activity (FEIGN_RESOLVED not set) into what feign.h promises. Activities
  // come in the order in which they took effect, with their ids. If it turns out that it is none,
  // says why, for the account of what was left out, or nothing ("") if there is nothing to say;
  // null otherwise. [stream]
  const char* apply(Record& record);
  // What goes before the activity that apply() was told last: what processes did that are not in
  // the trace, as far as it tells. Resolved but for ids.
  const std::vector<feign_activity>& by_others() const { return by_others_; }
  // Time that a stream spent waiting or asleep in a call that is no activity.
  void passed(uint32_t stream, uint64_t ns, feign_passed how);

 private:
  // An open file description.
  struct Description {
    uint32_t handle = 0;
    uint32_t file = 0;
    uint32_t path = 0;  // string id of the absolute path it was opened by
    uint32_t flags = 0;
    uint32_t refs = 0;   // descriptors, over all tables
    uint32_t marks = 0;  // FEIGN_NOT_A_FILE, FEIGN_INHERITED, FEIGN_DIRECTORY, FEIGN_BOTH_WAYS
    uint64_t offset = 0;
    uint64_t listed = 0;   // bytes of a directory's entries, so far
    bool unlisted = true;  // at its beginning
    uint64_t below = 0;  // the system's own, where a call above it (stdio's) reads ahead of its own
    uint64_t held = 0;   // bytes that a stream on it has, and has not written …
    bool parts = false;  // … as the system calls in its calls tell, which are in the trace
    bool at_end = false;    // the offset is the end of the file, wherever that is
    bool met_end = false;   // the last call that moved the offset would have, but for the end
    bool cut = false;       // the last read got less than it asked for
    uint32_t said = 0;      // what the tracer said it is when it was opened
    int32_t fd = -1;        // that it was found open as, in a call on it
    bool anew = false;      // opened without a name, and nothing has told what it is
    bool gone = false;      // a directory that was removed, or what was found without a name
    int32_t given_up = -1;  // number by which somebody closed it, perhaps a thread of who has it
    int32_t stream = -1;    // as that stdio's calls write to it
    bool streamed = false;  // a stream is on it
    bool several = false;   // … in a process and its child, each with a buffer
    int64_t process = 0;    // that a pidfd is
  };
  // What a file's next description begins with that is found open in spite of an open that was
  // seen, or of another process: a dup or a fork is missing.
  struct Left {
    Description* found = nullptr;  // one that is in use
    uint64_t offset = 0;
    bool appends = false;
    int32_t fd = -1;  // that it was found at
  };
  struct Sent {         // descriptors that are on their way to another process
    uint32_t file = 0;  // of the socket, if both ends are known to be of one
    uint32_t by = 0;    // the end that they were given to
    std::vector<Description*> descriptions;
  };
  struct Got {  // the stream whose call got it, and when that began
    uint32_t by = 0;
    uint64_t since = 0;
  };
  struct Descriptor {
    Description* description = nullptr;
    bool close_on_exec = false;
    // It may not be there: an exec may have closed it, which nobody was seen to open, or a thread
    // before the fork came to copy it.
    bool unsure = false;
    Got got;  // … by an open, or in a message
  };
  struct GaveUp {         // a descriptor that the stream closed and had not opened
    uint32_t stream = 0;  // 0: several did
    uint32_t handle = 0;  // 0: nothing tells what it was
  };
  struct End {  // of a connection
    uint32_t identity = 0;
    bool taken = false;  // by a description
  };
  struct Table;
  struct Copy {  // of a table
    std::weak_ptr<Table> table;
    uint64_t until = 0;  // the fork that made it was over, ns
  };
  struct Table {  // a process's descriptors; shared with CLONE_FILES
    std::unordered_map<int32_t, Descriptor> map;
    std::vector<Copy> copies;        // that may be still in the making
    std::vector<uint32_t> unclosed;  // handles that ended by a close that was not seen
    // Of a process with threads, by number: how many closes are missing, less those that found
    // nothing to close or use. What its threads did side by side may be known in another order.
    std::unordered_map<int32_t, int32_t> lacks;
    // … that were closed under a stream, which goes on with what has the number next.
    std::unordered_map<int32_t, uint32_t> streams;
  };
  struct Place {  // working and root directory; shared with CLONE_FS
    uint32_t path = 0;
    bool gone = false;     // it was removed
    bool told = false;     // by calls
    bool guessed = false;  // from where another process is
    bool mounts = false;   // of its own (CLONE_NEWNS): they hide what others see
    uint32_t root = 0;     // 0: "/"
    uint32_t umask = kUsualUmask;
  };
  struct Mapping {  // what one mmap() made
    uint32_t handle = 0;
    uint32_t file = 0;
    uint32_t path = 0;
    uint32_t pieces = 0;  // that are left of it, over all address spaces
  };
  struct Piece {  // of a mapping, in an address space, by its first address
    uint64_t end = 0;
    uint64_t offset = 0;  // of the first byte in the mapping
    Mapping* mapping = nullptr;
  };
  struct Memory {  // an address space, as far as files are in it; shared with CLONE_VM
    std::map<uint64_t, Piece> pieces;
    std::vector<uint64_t> ended;  // mappings of which nothing is left, not yet told to a replayer
  };
  struct Process {
    std::vector<uint32_t> threads;
    std::unordered_set<uint32_t> locked;  // files of which it may have record locks
  };
  struct Kin {  // who may be threads of one process
    std::vector<uint32_t> streams;
    bool has_threads = false;
    bool lacks_some = false;  // they have descriptors that nothing tells (sockets, mostly)
  };
  struct Last {
    uint32_t stream;
    uint64_t id;
  };
  static constexpr uint32_t kWhat = FEIGN_NOT_A_FILE | FEIGN_NO_STORAGE;
  struct Closed {  // what the last close gave up, or what was opened last in a call for itself
    uint32_t handle = 0, file = 0, path = 0;
    uint32_t marks = 0;  // of kWhat
    uint64_t below = 0;  // where the system was in it
  };
  struct Thread {
    bool known = false, ended = false;
    bool called = false;        // the trace has calls of it
    bool starts = false;        // … of which the last one started another program
    bool untold = false;        // who made it was guessed by what it did to memory alone
    bool stranger = false;      // one of strangers_, or a thread that one made
    uint32_t first_handle = 0;  // … what was opened before it was seen
    uint32_t now = 0;           // the stream's number: another one when the recorded id came back
    uint64_t last_end = 0, begun = 0, waited = 0, slept = 0;
    std::vector<uint64_t> inside;  // by depth less 1: from when a pause of an activity counts
    // By depth: when the last activity there is over, if what it does is kept account of.
    std::vector<uint64_t> tracked;
    Closed closed;
    uint32_t made = 0, made_depth = 0;  // a file, by a call of another layer that it is in
    uint64_t made_end = 0;              // of that call, ns
    std::shared_ptr<Table> table;
    std::shared_ptr<Place> place;
    std::shared_ptr<Memory> memory;
    std::shared_ptr<Process> process;
    std::shared_ptr<Kin> kin;
  };

  // Streams, and which of what follows a call is (resolve.cc).
  Thread& thread_of(uint32_t stream);
  Thread& begin(uint32_t stream);
  bool joins(uint32_t stream);
  void pause(feign_activity& a, Thread& t);
  void closes(feign_activity& a, const Thread& t);
  void pause_inside(feign_activity& a, Thread& t, uint32_t depth);
  bool part_of_tracked(Record& r, Thread& t, Effect effect);
  bool ends_unseen(feign_activity& a);
  void comes(const feign_activity& a, uint32_t stream, Effect effect);
  const char* no_activity(Record& r, Thread& t, Effect effect);
  void other_layer(feign_activity& a, Thread& t);
  void appends_below(feign_activity& a, Description& d, uint64_t done);
  void called(Record& r, Thread& t, const Call& call, uint32_t stream);
  static bool succeeded(const feign_activity& a) {
    return a.result >= 0 && !(a.marks & FEIGN_NO_RESULT);
  }

  // Calls that make and end threads and processes, and on what they share (processes.cc).
  void child(Record& r, const Thread& parent, uint64_t shared);
  void exec_call(Record& r, Thread& t, uint32_t stream);
  void exit_call(Record& r, const Thread& t, Effect effect, uint32_t stream);
  void ends(uint32_t stream, std::vector<uint64_t>& ended);
  void unshare_call(feign_activity& a, Thread& t);
  void setns_call(feign_activity& a, Thread& t);
  void getcwd_call(feign_activity& a, Thread& t);
  void chdir_call(Record& r, Thread& t);
  void fchdir_call(feign_activity& a, Thread& t);
  void chroot_call(Record& r, Thread& t);

  // Calls on descriptors (descriptor_calls.cc).
  Description* on(feign_activity& a, Thread& t);
  void freopen_call(Record& r, Thread& t);
  void replaces(feign_activity& a, Description* gone);
  void close_call(feign_activity& a, Thread& t, uint32_t stream);
  void dup_call(feign_activity& a, Thread& t, Effect effect);
  void fcntl_call(feign_activity& a, Thread& t);
  void close_range_call(Record& r, Thread& t);
  void pipe_call(feign_activity& a, Thread& t, Effect effect);
  void channel_call(feign_activity& a, Thread& t, const Call& call);
  void getfd_call(feign_activity& a, Thread& t);
  void by_handle_call(feign_activity& a, Thread& t);
  void fseek_call(feign_activity& a, Thread& t);
  void seek_call(feign_activity& a, Thread& t, Effect effect);
  void aio_call(feign_activity& a, Thread& t);
  void fstat_call(Record& r, Thread& t);
  static void is_pipe(feign_activity& a, Description* d);
  void ftruncate_call(feign_activity& a, Thread& t);
  void fallocate_call(feign_activity& a, Thread& t);
  void clone_range_call(Record& r, Thread& t);

  // Calls that open, name or copy files (calls.cc).
  struct Way {
    uint32_t path;      // where it ends; 0: nowhere that is known
    bool found;         // what lies there was opened, by a name that tells where
    Description* open;  // or the file of that, which has no name
  };
  void open(Record& r, Thread& t, Effect effect);
  void as_asked(feign_activity& a, const Thread& t, Effect effect);
  Way way_of(feign_activity& a, Thread& t, uint32_t hint, uint32_t said);
  uint32_t met_by_open(feign_activity& a, const Thread& t, const Way& way, uint32_t said);
  void gets_descriptor(feign_activity& a, Thread& t, Effect effect, Description* d);
  void open_again(feign_activity& a, Thread& t, const Description& what);
  void stream_appends(Description& d, uint32_t flags);
  void path_call(Record& r, Thread& t, Effect effect);
  void at_descriptor(Record& r, Thread& t, Effect effect, uint32_t hint, uint32_t hint2);
  void by_descriptor(Record& r, Effect effect, Description* open);
  void moves_below(const feign_activity& a, Effect effect, const Namespace::Touched& touched,
                   uint32_t from, uint32_t to);
  void identified(Record& r, Description* d);
  void data(feign_activity& a, Description* d, Effect effect);
  void copy(Record& r, Thread& t);

  // What descriptors stand for (descriptors.cc).
  Description* describe(uint32_t marks, uint32_t path, uint32_t file, uint32_t flags);
  void release(Description* d, std::vector<uint64_t>* ended);
  void gives_up(uint32_t stream, int32_t fd, Description& d);
  void gives_up_locks(const feign_activity& call, Thread& t, const Description& d);
  void given_up(Thread& t, int32_t fd);
  uint32_t stream_before(Thread& t, int32_t fd);
  void says_no_close();
  static bool is_untold(const Description& d);
  void says_untold(const Description& d, int32_t fd);
  Descriptor& install(Thread& t, int32_t fd, Description* d, bool close_on_exec);
  void duplicated(feign_activity& a, Thread& t, int32_t fd, Description* d, bool close_on_exec);
  void send(const feign_activity& a, Thread& t);
  void receive(const feign_activity& a, Thread& t);
  Description* find(Thread& t, uint32_t handle, uint32_t hint);
  Description* found_open(Thread& t, int32_t fd, uint32_t hint);
  Description* found_elsewhere(Thread& t, int32_t fd, uint32_t told, uint32_t hint, uint32_t had);
  void share(std::shared_ptr<Table> table, std::shared_ptr<Table> its);
  bool is_told(Description& d, uint32_t hint);
  uint32_t had_name(uint32_t& hint);
  bool is_another(const Description& d, uint32_t hint);
  bool read_to_end(const Description& d);
  void connected(Description& d, std::string_view what);
  void fill(feign_activity& a, const Description* d);
  static std::shared_ptr<Table> copy_of(const Table& table);
  static void forked(const feign_activity& fork, Table& table, const std::shared_ptr<Table>& copy);
  static void closed_meanwhile(const feign_activity& a, const Table& table, int32_t fd,
                               const Description* d);
  void close_all(Table& table, bool only_on_exec, std::vector<uint64_t>* ended);

  // Who made whom, where no call tells it (makers.cc).
  void looks_for_makers(const feign_activity& a, Effect effect);
  enum class Has { kNothing, kSomething, kPipe };
  Has has_as(const Table& table, int32_t fd, const Thread& t) const;
  void is_last(uint32_t stream);
  void made_by_somebody(uint32_t stream, const feign_activity& first, bool on_memory);
  void begins_where_the_last_is(uint32_t stream);
  void says_makers();
  void leaves_kin(Thread& t, uint32_t stream);
  bool may_be(const Description& d, const Thread& t) const;
  bool opened_for_it(const Description& d) const;
  bool has_flags(const Description& d) const;
  Description* threads_have(Thread& t, int32_t fd);
  void threads_closed(Thread& t, int32_t fd);

  // Names (paths.cc).
  uint32_t absolute(Thread& t, uint32_t base_handle, uint32_t hint, uint32_t path);
  std::string physical(const Thread& t, std::string base, std::string_view text,
                       std::string_view root);
  uint32_t behind_proc(const Thread& t, std::string_view text, Description** open);
  uint32_t behind_proc(const Thread& t, std::string_view text, bool follow, Description** open);
  const Thread* running(const Thread& t, int64_t id) const;
  static void moves(const Thread& t, uint32_t directory, bool gone);
  void works_in(Thread& t, uint32_t hint);
  void tells_link(feign_activity& getcwd, const Place& place);
  bool ups_from_nothing(Thread& t, uint32_t base_handle, uint32_t hint, std::string_view text);
  bool no_directory(Thread& t, uint32_t handle, uint32_t hint);
  bool has_no_name(const Description& d);
  bool has_lost_name(const Description& d);
  bool no_storage(feign_activity& a, uint32_t path);
  bool names_storage(feign_activity& a, uint32_t said);
  void renamed(uint32_t from, uint32_t to);
  void removed(uint32_t directory);
  uint32_t named(uint32_t directory, bool gone);

  // What processes did that are not in the trace (others.cc).
  bool is_given(uint32_t op, Role role) const;
  void calls_by_name(const feign_activity& a, Effect effect);
  void lacks_names(const feign_activity& a, Effect effect);
  void lacks_binds(const feign_activity& a, Effect effect);
  void waited_for(const Thread& t, int64_t process, uint32_t flags);
  bool tells_of_others() const { return others_ && !own_mounts_; }
  void by_others(const feign_activity& a, Effect effect);
  enum class Told : uint8_t { kNotSaid, kNothing, kAny, kFile, kDirectory, kLink, kSpecial };
  static Told told(const feign_activity& a, Effect effect);
  static bool makes_nowhere(const feign_activity& a, Effect effect, Told is);
  static bool is_another(const feign_activity& a, const Namespace::File& f, Told is, bool follow);
  void there_is(const feign_activity& a, Told is, uint32_t path, bool follow);
  bool emptied_by_others(const feign_activity& a, uint32_t path);
  void removed_by_others(const feign_activity& a, uint32_t path);
  void resized(const feign_activity& a, const Description& d, uint64_t size);
  void listed(const feign_activity& a, Description& d);
  void shows_others(const feign_activity& a, const Description& d);
  uint32_t another_in(const feign_activity& a, uint32_t directory, int64_t bytes);
  void less_unnamed(const feign_activity& a, uint32_t directory, int64_t bytes);
  uint32_t in(uint32_t directory, uint32_t name);
  int64_t entries(uint32_t directory);
  feign_activity& other(const feign_activity& before, uint32_t op, uint32_t path);
  void does(feign_activity& other);

  // Files in memory (memory.cc).
  const char* memory_call(Record& r, Thread& t, Effect effect);
  void map(Memory& m, uint64_t address, uint64_t length, Mapping* mapping, uint64_t offset);
  void unmap(Memory& m, uint64_t address, uint64_t length);
  void drop_piece(Memory& m, Mapping* mapping);
  void forget(Memory& m, std::vector<uint64_t>& ended);

  Tables& tables_;
  Namespace names_;
  std::vector<Thread> threads_;    // by the provider's stream number
  std::vector<uint32_t> running_;  // those that have begun and not ended
  // A thread of each process.
  using ProcessKey = std::tuple<uint32_t, int32_t, int64_t, uint32_t>;
  static ProcessKey process_of(const feign_stream_info& info) {
    return {info.host, info.rank, info.process, info.again};
  }
  std::map<ProcessKey, uint32_t> in_process_;
  std::vector<uint32_t> strangers_;                // whom nobody was seen to make
  std::unordered_map<uint64_t, uint32_t> joined_;  // (base, relative path) -> absolute
  std::unordered_map<uint32_t, uint32_t> pipes_;   // as the tracer names them -> identity
  std::unordered_map<std::string, End> ends_;      // of sockets, as the tracer names them
  std::deque<Sent> sent_;                          // not received yet
  std::unordered_map<int32_t, GaveUp> gave_up_;    // by number, which nobody has had since
  std::vector<uint32_t> cleaned_;                  // absolute path as recorded -> clean
  std::vector<std::unique_ptr<Description>> pool_;
  std::vector<Description*> free_;
  std::vector<std::unique_ptr<Mapping>> mappings_;
  std::vector<Mapping*> free_mappings_;
  std::unordered_map<uint32_t, Left> left_;      // by file
  std::vector<Last> last_;                       // activities, each of another stream
  static constexpr size_t kMostOthers = 50'000;  // ids have no room for more
  std::vector<feign_activity> by_others_;
  struct Named {
    uint32_t stream;
    bool there;
  };
  std::unordered_map<uint64_t, Named> named_;      // who named it last: path * 2, + 1 for no links
  std::unordered_map<uint32_t, uint32_t> lacked_;  // paths: who found nothing, or took it away
  std::unordered_map<uint32_t, std::vector<uint32_t>> unnamed_;  // by directory: names of our own
  uint32_t last_handle_ = 0;
  enum Tells : uint32_t { kCloses = 1, kDuplicates = 2 };
  uint32_t tells_descriptors_ = 0;  // such calls are in the trace
  bool first_ = true;               // the first activity is to come
  bool guesses_makers_ = false, said_makers_ = false;
  bool lacks_makers_ = false;                 // it begins with the program, and shows no fork yet
  bool binds_ = false, binds_said_ = false;   // some call binds a socket; that none does
  bool network_ = false;                      // some call is on a socket as such
  bool untold_sockets_ = false;               // a descriptor above 2 is a socket that no call made
  bool others_ = false;                       // there are processes that are not in the trace
  uint32_t recorded_ = 0;                     // whose call this is: the stream's number in threads_
  bool own_mounts_ = false;                   // … which sees what these hide or show
  bool other_pids_ = false;                   // some may be of a namespace of their own
  bool other_mounts_ = false;                 // … that hides names which others have
  uint64_t others_work_ = uint64_t{1} << 26;  // names to look at for what they did
  bool reads_ = false, writes_ = false;       // the call at hand, with success
  int64_t got_flags_ = -1;                    // … what F_GETFL told, if it is that
  bool on_file_ = false;                      // the call at hand cannot have been on anything else
  bool on_pipe_ = false;                      // … or on no file
  bool opens_seen_ = false;                   // of any process
  bool tells_names_ = false;                  // calls that make, move or remove any, but opens
  bool tells_names_at_ = false;               // the same, in a directory that is given
  bool calls_by_name_ = false;                // calls on names that are in none, but opens
  bool tells_seeks_ = false;                  // they are in the trace, if there were any
  bool reads_on_ = false;                     // the call at hand moves an offset by reading
  bool moves_seen_ = false;                   // chdir or fchdir, of any process
  bool said_guess_ = false;                   // that descriptors are guessed is in the notes
  bool said_untold_ = false;                  // that files are not told is in the notes
  bool said_seeks_ = false;                   // that seeks are not told is in the notes
  bool found_open_ = true;                    // the call at hand did not fail with EBADF
  bool told_ = false;                         // its hint is what the tracer said
  bool tells_ = false;                        // … or that of a call before
  bool opened_ = false;                       // it is an open, and the tracer says what it found
};

}  // namespace feign
