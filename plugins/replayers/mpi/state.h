// SPDX-License-Identifier: MIT
// What the replay of MPI calls holds: communicators, datatypes, requests, windows, files.
#pragma once

#include <mpi.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/buffer.h"
#include "base/content.h"
#include "base/room.h"
#include "feign.h"
#include "replayers/mpi/halves.h"
#include "replayers/mpi/objects.h"
#include "replayers/mpi/world.h"
#include "trace/mpi_args.h"

namespace feign::mpi {

enum Comm : uint32_t { kReal, kOrder, kNone };
enum Io : uint32_t { kIoReal, kIoOrder, kIoNone };

struct Options {
  uint32_t comm, io;
};

// Recorded ranks that share a process, where they call something together: all of them come, and
// one makes the call for them.
struct Meeting;

// A communicator of the trace.
struct Group {
  std::string text;
  std::vector<uint32_t> ranks;       // recorded, in order; of two groups, one after the other
  size_t first = 0;                  // of two groups, how many are in the first; 0: it is one
  std::vector<int> places;           // by recorded rank: in its group
  MPI_Comm comm = MPI_COMM_NULL;     // null where this process is not in it, or it cannot be made
  bool apart = true;                 // every recorded rank has a process of its own
  uint32_t number = 0;               // the same on all processes
  int size = 0;                      // of the group that takes part in a collective call
  bool near = false;                 // its members have neighbours, who may be none of this one's
  int in = 0, out = 0;               // neighbours
  std::unique_ptr<Meeting> meeting;  // where they are not apart, and can meet
  Group();
  ~Group();
  int rank_of(uint64_t recorded) const {
    return recorded < places.size() ? places[recorded] : MPI_PROC_NULL;
  }
};

struct Meeting {
  Group processes;  // each of their processes once
  size_t here = 0;  // ranks in this process
  std::mutex mutex;
  std::condition_variable changed;
  size_t come = 0;
  uint64_t round = 0;
  int64_t result = 0;  // of the last round
  // A call that waits for nobody.
  struct Begun {
    size_t come = 0;
    bool made = false, waited_for = false, over = false;
    MPI_Request request = MPI_REQUEST_NULL;
    std::unique_ptr<int[]> kept;
    int status = MPI_SUCCESS;
  };
  std::unordered_map<int64_t, uint64_t> next;        // of such calls, by recorded rank
  std::map<uint64_t, std::shared_ptr<Begun>> begun;  // by number: to which not all have come
};

struct Type {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  bool made = false;
  bool whole = false, real = false;  // numbers that can be combined
  MPI_Aint low = 0, extent = 0, true_low = 0, true_extent = 0;
  int64_t size = -1;  // -1: not known
  // Whether so many may begin in so many bytes.
  bool have_room(uint64_t count, int64_t room) const {
    int64_t last = 0;
    return !__builtin_mul_overflow(extent, static_cast<int64_t>(count) - 1, &last) && last <= room;
  }
};

// What a stream's messages take, over and over.
constexpr size_t kMessages = size_t{24} << 20;

// Address space for messages and data of any length; memory only for the first of it, over and
// over.
class Space {
 public:
  Space() = default;
  Space(Space&& other) noexcept
      : memory_(std::exchange(other.memory_, nullptr)), size_(other.size_) {}
  ~Space() {
    if (memory_ != nullptr) munmap(memory_, size_);
  }
  bool map(size_t size, size_t unit) {
    memory_ = map_buffer(size, unit);
    size_ = size;
    return memory_ != nullptr;
  }
  char* get() const { return memory_; }
  void leave() { memory_ = nullptr; }  // stays as it is until the process ends
  size_t size() const { return size_; }

 private:
  char* memory_ = nullptr;
  size_t size_ = 0;
};

struct Window {
  MPI_Win win = MPI_WIN_NULL;  // null once it is freed
  // Threads that nothing orders: one must not free what another uses, nor end the epoch of a call
  // under way. Nobody holds the second who waits in the call for what others do here.
  std::shared_mutex alive, epoch;
  const Group* group = nullptr;
  std::vector<uint64_t> sizes;  // by place, bytes
  std::vector<uint64_t> units;  // by place
  uint64_t unit = 1;
  // Of a dynamic one: the memory that stands for all that was attached to it, and where others
  // have theirs, by place.
  Space memory;
  std::vector<MPI_Aint> bases;
  // Others may be at it until MPI ends.
  ~Window() {
    if (win != MPI_WIN_NULL) memory.leave();
  }
};

// What the threads of one recorded rank share.
struct Owner {
  std::mutex mutex;
  struct Pending {
    MPI_Request request = MPI_REQUEST_NULL;
    bool persistent = false;
    std::unique_ptr<int[]> kept;  // what the call reads until it is over
    // Of a buffered send that is persistent: each of its starts is a send that nobody waits for who
    // does not want the buffer.
    std::function<int(MPI_Request*)> buffered;
    uint32_t file = 0;  // the handle of what it reads or writes
  };
  using Requests = std::unordered_map<uint64_t, Pending>;
  Requests requests;  // by the trace's numbers
  // What is in them comes and goes with every message: kept for the next.
  std::vector<Requests::node_type> spare;
  Pending& add(uint64_t number) {
    if (spare.empty()) return requests[number];
    spare.back().key() = number;
    auto put = requests.insert(std::move(spare.back()));
    spare.back() = std::move(put.node);  // that number was there already
    if (put.inserted) spare.pop_back();
    return put.position->second;
  }
  void remove(Requests::iterator at) {
    spare.push_back(requests.extract(at));
    spare.back().mapped() = {};
  }
  // Collective calls that ranks of this process have begun together, by the trace's numbers.
  struct Together {
    Meeting* meeting = nullptr;
    std::shared_ptr<Meeting::Begun> call;
  };
  std::unordered_map<uint64_t, Together> together;
  std::vector<MPI_Request> buffered;  // sends under way that nobody waits for
  std::vector<Space> spaces;          // of streams that ended before their requests did
  bool freed = false;                 // a request that may have been under way
  std::map<uint32_t, std::shared_ptr<Window>> windows;  // by string id
  std::map<uint32_t, MPI_Message> messages;             // by string id
  // Whether messages may still be sent from its memory, or received into it.
  bool needs_memory() const {
    return freed || !requests.empty() || !together.empty() || !buffered.empty() || !windows.empty();
  }
};

class Name;

struct File {
  MPI_File file = MPI_FILE_NULL;
  const Group* group = nullptr;
  uint64_t opened = 0;                   // its number among those that this process opened
  std::string remove;                    // when it is closed
  std::string link;                      // the name that MPI was given, if this process made it
  MPI_Request begun = MPI_REQUEST_NULL;  // io=order: of the split call under way
  bool over = false;                     // the split call under way was made at once, or left out
  bool lost = false;                     // its open was left out
  uint64_t unit = 1;                     // bytes of its view's etype
  std::shared_ptr<Name> name;            // what it is beside MPI, where several ranks have it
};

struct Stream;

// What feign.hpp makes a component of.
struct Replayer {
  using Stream = mpi::Stream;
  Replayer(const feign_host* h, const Options& o) : host(h), options(o) {}
  feign_status start();
  feign_status execute(Stream& s, const feign_activity& a, feign_outcome& outcome);

  const feign_host* host;
  Options options;
  std::shared_ptr<World> world;
  int root = -1;
  uint32_t mpi_first = 0, mpiio_first = 0;
  Room room;
  uint32_t rank = 0, ranks = 1;
  std::vector<uint32_t> rank_of;
  bool shares = false;     // some process has several recorded ranks
  std::vector<Args> args;  // by op, mpi's then mpiio's
  // What receives by wildcard got, by recorded rank and request.
  std::map<std::pair<int64_t, uint64_t>, std::pair<int, int>> matched;
  // Receives that were cancelled in time, in the same way.
  std::set<std::pair<int64_t, uint64_t>> cancelled;
  // Calls whose other half the trace does not have, by id.
  std::map<uint64_t, Lack> lacks;
  bool lists = true;     // every call that has counts for each member tells them
  bool makers = false;   // some process has several threads that make communicators
  bool callers = false;  // … that call MPI
  std::unordered_map<uint32_t, std::unique_ptr<Group>> groups;  // by string id
  MPI_Comm pairs = MPI_COMM_NULL;  // messages of ranks that share a process
  int most_tag = 32767;
  Space data;  // what is written
  size_t longest = 0;
  // Half of a stream's address space is sent from, half received into: the same on all processes.
  int64_t half = 0;
  bool fits = true;  // every call's data, into that
  std::atomic<bool> said_cut{false};

  std::mutex types_mutex;
  std::unordered_map<uint32_t, std::unique_ptr<Type>> types;
  std::map<uint64_t, MPI_Datatype> bytes;  // by their number, which no int has
  std::mutex owners_mutex;
  std::map<int64_t, std::unique_ptr<Owner>> owners;
  std::mutex self_mutex;  // of MPI_COMM_SELF
  std::mutex files_mutex;
  std::unordered_map<uint32_t, File> files;
  uint64_t opens = 0;
  // MPI keeps a shared pointer in a file beside the one that has it, where a name below /proc has
  // nothing beside it. So there is a directory for names and such files, if any call needs it.
  std::shared_ptr<Name> beside;
  std::string beside_name;  // below the root, where this process made it
  std::atomic<int> opened{0};

  ~Replayer();
  const char* text(uint64_t id) const {
    return host->text(host, static_cast<uint32_t>(id), nullptr);
  }
  // Which process replays a recorded rank.
  uint32_t process_of(uint32_t recorded) const {
    if (recorded < rank_of.size()) return rank_of[recorded];
    return ranks > 1 ? recorded : 0;
  }
  const Args& args_of(uint32_t op) const;
  const Type& type(uint32_t id);
  MPI_Datatype many_bytes(uint64_t bytes);
  Owner& owner(int64_t rank);
};

// A call that depends on nothing but what its activity says (how much, whereto, with whom), made
// ready. Programs make few different ones, over and over; of those that begin a request, only its
// number is another one each time.
class Ready {
 public:
  static constexpr uint32_t kMost = 12;  // values of its activity
  bool is_of(const feign_activity& a) const {
    if (a.op != op_ || a.length != length_ || a.value_count != count_ || a.result < 0) return false;
    const uint64_t* const values = a.values;
    uint64_t other = 0;  // few values: a call of memcmp costs more
    for (uint32_t i = 0; i < count_; ++i) other |= (values[i] ^ values_[i]) & compared_[i];
    return other == 0;
  }
  int call(MPI_Request* request) const { return call_(with_.data(), request); }
  const Args* begins() const { return begins_; }  // a request, as these say; null: none
  // `call` gets a pointer to a request, which it may begin.
  template <typename Call>
  void set(const feign_activity& a, const Args* begins, const Call& call) {
    static_assert(std::is_trivially_copyable_v<Call> && sizeof(Call) <= sizeof with_);
    op_ = a.op;
    length_ = a.length;
    count_ = a.value_count;
    begins_ = begins;
    std::copy_n(a.values, a.value_count, values_.begin());
    compared_.fill(UINT64_MAX);
    if (begins != nullptr && begins->request < kMost) compared_[begins->request] = 0;
    std::memcpy(with_.data(), &call, sizeof call);
    call_ = [](const void* with, MPI_Request* request) {
      return (*static_cast<const Call*>(with))(request);
    };
  }

  Ready* next = this;  // that was made after it the last time

 private:
  uint32_t op_ = UINT32_MAX, count_ = 0;  // UINT32_MAX: nothing is ready
  uint64_t length_ = 0;
  std::array<uint64_t, kMost> values_, compared_;  // bits; none of its request's number
  const Args* begins_ = nullptr;
  int (*call_)(const void* with, MPI_Request* request) = nullptr;
  alignas(std::max_align_t) std::array<std::byte, 96> with_;
};

struct Stream {
  Stream(Replayer& of, const feign_stream_info& info);
  ~Stream();

  Replayer* r;
  int64_t rank;  // recorded
  Owner* owner;
  const feign_activity* a = nullptr;
  feign_outcome* outcome = nullptr;
  std::string failure;  // what ends the replay
  const Args* args = nullptr;
  const Lack* lacks = nullptr;  // null: nothing
  Space space;                  // messages: sent from its first part, received into its second
  Space received;               // data that is read
  std::unordered_map<uint32_t, const Type*> types;

  uint64_t value(uint8_t index) const { return value_of(*a, index); }
  uint64_t known(uint8_t index, uint64_t otherwise) const {
    const uint64_t v = value(index);
    return v == FEIGN_UNKNOWN ? otherwise : v;
  }
  // Programs use one for many calls.
  uint32_t type_id = 0, group_id = 0, reduction_id = 0;
  MPI_Op reduction = MPI_OP_NULL;
  std::vector<MPI_Request> list;
  std::vector<uint64_t> numbers;
  const Type* type_at = nullptr;
  const Group* group_at = nullptr;
  const Type& type(uint8_t index) {
    const auto id = static_cast<uint32_t>(known(index, 0));
    if (type_at != nullptr && id == type_id) return *type_at;
    const Type*& at = types[id];
    if (at == nullptr) at = &r->type(id);
    type_id = id;
    type_at = at;
    return *at;
  }
  const Group* group(uint8_t index) {
    const auto id = static_cast<uint32_t>(known(index, 0));
    if (group_at != nullptr && id == group_id) return group_at;
    const auto at = r->groups.find(id);
    if (at == r->groups.end()) return nullptr;
    group_id = id;
    return group_at = at->second.get();
  }
  std::array<Ready, 32> ready;
  Ready* last = ready.data();
  // The call of an activity that says what an earlier one said; null if there is none.
  const Ready* find_ready(const feign_activity& activity) {
    if (!last->next->is_of(activity)) {
      if (activity.value_count > Ready::kMost) return nullptr;
      Ready& there = place_for(activity);
      if (!there.is_of(activity)) return nullptr;
      last->next = &there;
    }
    return last = last->next;
  }
  // Makes a call, and has it ready for the next activity that says the same. What it is made with
  // must stay.
  template <typename Call>
  void make(const Call& call) {
    answer(call());
    keep_ready(nullptr, [call](MPI_Request*) { return call(); });
  }
  // The same of one that begins a request.
  template <typename Call>
  void begin(const Call& call);
  // What a call of MPI's answered.
  void answer(int status) {
    outcome->result = status == MPI_SUCCESS ? 0 : -int64_t{errno_of(status)};
  }
  void skip(const char* why) {
    outcome->doing = FEIGN_SKIPPED;
    outcome->why = why;
  }
  // It came to what was recorded, without the call.
  void emulate() {
    outcome->doing = FEIGN_EMULATED;
    outcome->result = a->result;
  }
  // No such call can be made here at all.
  void refuse(const Group& g);

 private:
  Ready& place_for(const feign_activity& activity) {
    const uint8_t request = r->args_of(activity.op).request;
    uint64_t sum = activity.op + activity.length;
    for (uint32_t i = 0; i < activity.value_count; ++i)
      sum = 31 * sum + (i != request ? activity.values[i] : 0);
    return ready[sum * 0x9E3779B97F4A7C15u >> 59];
  }
  template <typename Call>
  void keep_ready(const Args* begins, const Call& call) {
    if (r->shares || lacks != nullptr || a->value_count > Ready::kMost) return;
    last->next = &place_for(*a);
    last = last->next;
    last->set(*a, begins, call);
  }
};

// Of a length, where both ends must agree on it without the datatype: as much as there is room for,
// and no more than `most`. What is cut is told.
uint64_t fitting(const Stream& s, uint64_t bytes, uint64_t most = UINT64_MAX);
struct Piece {
  void* at;
  int count;
  MPI_Datatype type;
};
// So many bytes there, which may be more than an int counts.
Piece bytes_at(const Stream& s, void* at, uint64_t bytes);
// The memory that a call moves, by count and datatype where these are known and their layout fits;
// else as bytes. What the trace does not tell is as much as may come.
Piece piece(Stream& s, bool from, uint64_t bytes, uint8_t count_at, uint8_t type_at);
struct Sum {
  int count;
  MPI_Datatype type;
  MPI_Op op;
};
// As bits; of more than an int of bytes in words, whose last bytes may be left out.
Sum bits_of(uint64_t bytes);
// Numbers are combined as they were; all else as bits.
Sum sum_of(Stream& s, uint64_t bytes);
// The communicator of a collective call; null if there is none to call it on.
const Group* collective(Stream& s);

// Waits until all ranks of a group that are in this process have come; then one of them makes the
// call, the root if it is here, and all have its result.
void meet(Stream& s, const Group& g, const std::function<void()>& call);
// They wait for each other, and for those in other processes; false where they cannot.
bool meet(Stream& s, const Group& g);
// They have, by the time that who ends the call's request goes on.
void meet_later(Stream& s, const Group& g);
// Waits until all of them have begun such a call, and for its end.
int wait_together(const Owner::Together& t);

// What a call does here. [the stream]
void do_mpi(Stream& s, uint32_t op);
void collect(Stream& s, uint32_t op, Does does);
// The arguments with the types in units of which a call's list has a count for each member: of what
// goes out, of what comes in. Absent: bytes.
struct Units {
  uint8_t out, in;
};
Units units_of(uint32_t op, const Args& args);
void window(Stream& s, uint32_t op, Does does);
void do_mpiio(Stream& s, uint32_t op);
// Of one that lacks its other half: what ends it lacks it, too, and what is done with a file whose
// open it was.
void leave_out_mpiio(Stream& s, uint32_t op);
void close_files(Replayer& r);
// The pointer of a file that each has by itself is nobody else's.
bool of_shared_pointer(std::string_view name);
// The directory for files that have one. Called by all processes.
void make_beside(Replayer& r);
void remove_beside(Replayer& r);
// A request that a call made, under the number that the trace has for it.
void remember(Stream& s, MPI_Request request, bool persistent = false,
              std::unique_ptr<int[]> kept = {});
void begun(Stream& s, int status, MPI_Request request, std::unique_ptr<int[]> kept = {});

template <typename Call>
void Stream::begin(const Call& call) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int status = call(&request);
  begun(*this, status, request);
  keep_ready(args, call);
}

}  // namespace feign::mpi
