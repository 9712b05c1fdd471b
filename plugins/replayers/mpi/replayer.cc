// SPDX-License-Identifier: MIT
// Replayer mpi: makes the calls of layers mpi and mpiio. Before the first call it looks through
// what is to come, and all processes together make the communicators that the trace names: a
// process that made one when it first needs it would wait for others that do not need it yet.
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <new>
#include <set>

#include "feign.hpp"
#include "layers/mpi_ops.h"
#include "layers/mpiio_ops.h"
#include "replayers/mpi/state.h"
#include "replayers/root.h"
#include "trace/mpi_programs.h"

namespace feign::mpi {

Group::Group() = default;
Group::~Group() = default;

// Receives that nobody completed, and buffered sends to who receives late, go on until MPI ends,
// which is later.
Replayer::~Replayer() {
  for (const auto& [rank, o] : owners)
    if (o->needs_memory()) {
      for (Space& space : o->spaces) space.leave();
      for (auto& [number, t] : o->together) (void)t.call->kept.release();
      for (auto& [number, pending] : o->requests) (void)pending.kept.release();
    }
  if (!world) return;
  close_files(*this);
  remove_beside(*this);
  for (auto& [id, t] : types)
    if (t->made) MPI_Type_free(&t->type);
  for (auto& [count, type] : bytes) MPI_Type_free(&type);
  for (auto& [rank, o] : owners) {
    for (auto& [number, pending] : o->requests)
      if (pending.request != MPI_REQUEST_NULL) MPI_Request_free(&pending.request);
    for (MPI_Request& request : o->buffered) MPI_Request_free(&request);
  }
}

const Args& Replayer::args_of(uint32_t op) const {
  static const Args kNone;
  const uint32_t at = op >= mpiio_first ? op - mpiio_first + 512 : op - mpi_first;
  return at < args.size() ? args[at] : kNone;
}

const Type& Replayer::type(uint32_t id) {
  const std::lock_guard lock(types_mutex);
  auto& slot = types[id];
  if (slot) return *slot;
  slot = std::make_unique<Type>();
  Type& t = *slot;
  if (id == 0) return t;
  t.type = build_type(text(id), t.made);
  if (t.type == MPI_DATATYPE_NULL) return t;
  static const MPI_Datatype kWhole[] = {
      MPI_INT,     MPI_LONG,    MPI_LONG_LONG, MPI_UNSIGNED, MPI_UNSIGNED_LONG,     MPI_SHORT,
      MPI_INT32_T, MPI_INT64_T, MPI_UINT32_T,  MPI_UINT64_T, MPI_UNSIGNED_LONG_LONG};
  t.whole = std::find(std::begin(kWhole), std::end(kWhole), t.type) != std::end(kWhole);
  t.real = t.type == MPI_DOUBLE || t.type == MPI_FLOAT;
  int size = 0;
  MPI_Type_size(t.type, &size);
  t.size = size;
  MPI_Type_get_extent(t.type, &t.low, &t.extent);
  MPI_Type_get_true_extent(t.type, &t.true_low, &t.true_extent);
  return t;
}

MPI_Datatype Replayer::many_bytes(uint64_t count) {
  const std::lock_guard lock(types_mutex);
  const auto [at, first] = bytes.try_emplace(count, MPI_DATATYPE_NULL);
  if (!first) return at->second;
  constexpr uint64_t kBlock = uint64_t{1} << 20;
  MPI_Datatype block = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(static_cast<int>(kBlock), MPI_BYTE, &block);
  const int lengths[] = {static_cast<int>(count / kBlock), static_cast<int>(count % kBlock)};
  const MPI_Aint places[] = {0, static_cast<MPI_Aint>(count - count % kBlock)};
  const MPI_Datatype types_of[] = {block, MPI_BYTE};
  MPI_Type_create_struct(2, lengths, places, types_of, &at->second);
  MPI_Type_commit(&at->second);
  MPI_Type_free(&block);
  return at->second;
}

Owner& Replayer::owner(int64_t rank_recorded) {
  const std::lock_guard lock(owners_mutex);
  auto& slot = owners[rank_recorded];
  if (!slot) slot = std::make_unique<Owner>();
  return *slot;
}

void Stream::refuse(const Group& g) {
  const feign_op_info* info = r->host->op_info(r->host, a->op);
  failure = std::string(info != nullptr ? info->name : "a call") + " on " + g.text +
            ": its ranks would need a process each: want mpirun with as many, a --map that keeps "
            "them apart, or --replayer posix --replayer mpi,comm=none";
}

namespace {

// What create() learns from the plan.
struct Look {
  Replayer* r;
  std::set<uint32_t> groups;
  std::map<uint32_t, uint64_t> near;  // the longest to or from each neighbour, by communicator
  uint64_t longest = 0, message = 0;
  uint32_t stream = 0;
  feign_stream_info of{};  // the stream
  feign::mpi::Programs programs;
  bool at_once = false;   // several of them
  bool joins = false;     // processes meet that mpirun did not start together
  uint32_t maker = 0;     // a stream that makes communicators
  bool makers = false;    // several do
  uint32_t caller = 0;    // a stream that calls MPI
  bool callers = false;   // several do
  bool pointers = false;  // files have shared ones
  std::set<std::pair<int64_t, int64_t>> inside;  // ranks and processes that have not ended MPI

  void whose(const feign_activity& a) {
    if (a.stream == stream) return;
    stream = a.stream;
    of.struct_size = sizeof of;
    if (r->host->stream_info(r->host, stream, &of) < 0) of.rank = -1;
  }
  // Of calls that end requests: what wildcards got. Of others: whether they tell all counts.
  void counts(const feign_activity& a, const Args& args) {
    whose(a);
    const Does does = mpi_does(a.op);
    if (does == Does::kStart || does == Does::kEnd || does == Does::kEndSome) {
      for (uint32_t i = args.list; i + 1 < a.value_count; ++i) {
        if (!(a.values[i] & kWildcard) || a.values[i] & (kCompleted | FEIGN_UNKNOWN)) continue;
        r->matched[{of.rank, a.values[i] & ~kWildcard}] = {source_of(a.values[i + 1]),
                                                           tag_of(a.values[i + 1])};
        ++i;
      }
      return;
    }
    // Where one rank has a root's counts only, the root must have them.
    const bool rooted = args.rank != kAbsent;
    if (rooted &&
        (args.rank >= a.value_count || static_cast<int64_t>(a.values[args.rank]) != of.rank))
      return;
    bool known = a.value_count > args.list;
    for (uint32_t i = args.list; i < a.value_count; ++i) known &= a.values[i] <= INT32_MAX;
    const Units units = units_of(a.op, args);
    known &= sized(a, units.out) && sized(a, units.in);
    r->lists &= known;
  }
  // Whether it is known how long one of the type is.
  bool sized(const feign_activity& a, uint8_t type) const {
    return type == kAbsent ||
           (type < a.value_count && r->type(static_cast<uint32_t>(a.values[type])).size >= 0);
  }
  uint64_t members() const { return std::max<uint64_t>(r->rank_of.size(), 1); }
  // What a call may need to send from or to receive into.
  void room(const feign_activity& a, const Args& args) {
    const bool gets = args.size2 < a.value_count && a.values[args.size2] != FEIGN_UNKNOWN;
    const uint64_t got = gets ? a.values[args.size2] : a.length;
    uint64_t most = std::max(a.length, got);
    const Does does = mpi_does(a.op);
    const bool of_all = does == Does::kMeet || does == Does::kToRoot || does == Does::kFromRoot ||
                        does == Does::kNeighbours;
    // Where each member has a length of its own, those recorded are of all of them.
    const bool told = args.list != kAbsent && a.value_count > args.list &&
                      a.length != FEIGN_UNKNOWN && (gets || args.size2 == kAbsent);
    if (of_all && !told) {
      // What is combined is as long as one of them, but where each gets a part of that.
      uint64_t each = args.reduction == kAbsent ? most : args.size2 != kAbsent ? got : 0;
      if (__builtin_mul_overflow(each, members(), &each)) each = UINT64_MAX;
      most = std::max(most, each);
    }
    if (does == Does::kNeighbours && !told && args.comm < a.value_count) {
      uint64_t& each = near[static_cast<uint32_t>(a.values[args.comm])];
      each = std::max({each, a.length, got});
    }
    message = std::max(message, most);
  }
  // Ranks that mpirun did not start together have none that MPI_COMM_WORLD could tell.
  bool with_others(const feign_activity& a, const Args& args) const {
    switch (a.op) {
      case FEIGN_MPI_COMM_SPAWN:
      case FEIGN_MPI_COMM_SPAWN_MULTIPLE:
        return true;
      case FEIGN_MPI_COMM_ACCEPT:
      case FEIGN_MPI_COMM_CONNECT:
      case FEIGN_MPI_COMM_JOIN: {
        std::vector<uint32_t> ranks;
        size_t first_group = 0;
        return args.other2 >= a.value_count ||
               !parse_ranks(r->text(static_cast<uint32_t>(a.values[args.other2])), ranks,
                            first_group);
      }
      default:
        return false;
    }
  }
  // There may be more neighbours than members: one can be it several times.
  void neighbours() {
    for (const auto& [id, each] : near)
      if (const auto g = r->groups.find(id); g != r->groups.end()) {
        uint64_t all = static_cast<uint64_t>(std::max(g->second->in, g->second->out));
        if (__builtin_mul_overflow(each, all, &all)) all = UINT64_MAX;
        message = std::max(message, all);
      }
  }
  static feign_status each(void* ctx, const feign_activity* a) noexcept {
    auto& look = *static_cast<Look*>(ctx);
    try {
      const Args& args = look.r->args_of(a->op);
      const uint32_t op = a->op;
      look.callers |= look.caller != 0 && look.caller != a->stream;
      look.caller = a->stream;
      const bool used = op >= look.r->mpiio_first || mpi_does(op) != Does::kNothing;
      if (used && args.comm < a->value_count && a->values[args.comm] != 0 &&
          a->values[args.comm] != FEIGN_UNKNOWN)
        look.groups.insert(static_cast<uint32_t>(a->values[args.comm]));
      if (used) {
        look.whose(*a);
        const std::pair<int64_t, int64_t> me(look.of.rank, look.of.process);
        if (mpi_does(op) == Does::kInit && a->result >= 0) look.inside.insert(me);
        if (mpi_does(op) == Does::kFinalize) look.inside.erase(me);
        look.at_once |= look.programs.at_once(look.of, feign::mpi::does_of(op));
      }
      if (op < look.r->mpiio_first && mpi_does(op) == Does::kMakeComm) {
        look.makers |= look.maker != 0 && look.maker != a->stream;
        look.maker = a->stream;
      }
      if (args.list != kAbsent && op < look.r->mpiio_first) look.counts(*a, args);
      if (op == FEIGN_MPI_CANCEL && a->result >= 0 && args.request < a->value_count) {
        look.whose(*a);
        look.r->cancelled.emplace(look.of.rank, a->values[args.request]);
      }
      look.longest = std::max(look.longest, a->length);
      if (args.size2 < a->value_count && a->values[args.size2] != FEIGN_UNKNOWN)
        look.longest = std::max(look.longest, a->values[args.size2]);
      if (op < look.r->mpiio_first)
        look.room(*a, args);
      else if (!look.pointers)
        // ROMIO also moves it to the end where a file is opened to append.
        look.pointers = of_shared_pointer(look.r->host->op_info(look.r->host, op)->name) ||
                        (op == FEIGN_MPIIO_FILE_OPEN && (a->flags & 128) != 0);
      look.joins |= a->result >= 0 && look.with_others(*a, args);
      return FEIGN_OK;
    } catch (const std::bad_alloc&) {
      return FEIGN_ERR_NOMEM;
    }
  }
};

// The texts of all processes' communicators, sorted, each once.
std::vector<std::string> all_texts(const World& world, const std::vector<std::string>& mine) {
  std::string bytes;
  for (const std::string& t : mine) bytes += t + "\n";
  const int size = static_cast<int>(bytes.size());
  std::vector<int> sizes(static_cast<size_t>(world.size)), at(sizes.size());
  FEIGN_MUST(MPI_Allgather(&size, 1, MPI_INT, sizes.data(), 1, MPI_INT, world.world));
  int sum = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    at[i] = sum;
    sum += sizes[i];
  }
  std::string all(static_cast<size_t>(sum), ' ');
  FEIGN_MUST(MPI_Allgatherv(bytes.data(), size, MPI_CHAR, all.data(), sizes.data(), at.data(),
                            MPI_CHAR, world.world));
  std::set<std::string> set;
  for (size_t p = 0; p < all.size();) {
    const size_t end = all.find('\n', p);
    set.insert(all.substr(p, end - p));
    p = end + 1;
  }
  return {set.begin(), set.end()};
}

// One communicator, by all of its processes: this one's group, and where there are two, the other.
void make_group(const Replayer& r, Group& g, MPI_Group everybody, const std::vector<int>& processes,
                const std::vector<int>& others) {
  MPI_Group group = MPI_GROUP_NULL;
  MPI_Group_incl(everybody, static_cast<int>(processes.size()), processes.data(), &group);
  const int tag = static_cast<int>(g.number % 32000);
  FEIGN_MUST(MPI_Comm_create_group(r.world->world, group, tag, &g.comm));
  MPI_Group_free(&group);
  MPI_Comm_set_errhandler(g.comm, MPI_ERRORS_RETURN);
  if (g.first != 0) {
    MPI_Comm both = MPI_COMM_NULL;
    FEIGN_MUST(MPI_Intercomm_create(g.comm, 0, r.world->world, others[0], tag, &both));
    FEIGN_MUST(MPI_Comm_free(&g.comm));
    g.comm = both;
    MPI_Comm_set_errhandler(g.comm, MPI_ERRORS_RETURN);
    MPI_Comm_remote_size(g.comm, &g.size);
    return;
  }
  g.comm = with_neighbours(g.text, g.comm);
  MPI_Comm_set_errhandler(g.comm, MPI_ERRORS_RETURN);
  MPI_Comm_size(g.comm, &g.size);
  int kind = MPI_UNDEFINED, rank = 0, weighted = 0;
  MPI_Topo_test(g.comm, &kind);
  g.near = kind != MPI_UNDEFINED;
  MPI_Comm_rank(g.comm, &rank);
  if (kind == MPI_CART) {
    MPI_Cartdim_get(g.comm, &g.in);
    g.in = g.out = 2 * g.in;
  } else if (kind == MPI_GRAPH) {
    MPI_Graph_neighbors_count(g.comm, rank, &g.in);
    g.out = g.in;
  } else if (kind == MPI_DIST_GRAPH) {
    MPI_Dist_graph_neighbors_count(g.comm, &g.in, &g.out, &weighted);
  }
}

// Where ranks share processes: a communicator of these, and where each rank is in it.
void make_meeting(const Replayer& r, Group& g, MPI_Group everybody,
                  const std::vector<int>& processes, size_t here) {
  g.meeting = std::make_unique<Meeting>();
  g.meeting->here = here;
  Group& m = g.meeting->processes;
  m.text = "";
  m.number = g.number;
  m.places.assign(g.places.size(), MPI_PROC_NULL);
  for (const uint32_t recorded : g.ranks)
    m.places[recorded] = static_cast<int>(
        std::find(processes.begin(), processes.end(), static_cast<int>(r.process_of(recorded))) -
        processes.begin());
  make_group(r, m, everybody, processes, {});
}

// Which of two the program made first: WORLD and SELF are there, others ("#RANK.NUMBER{…") have a
// number. Where several threads make communicators at a time, Open MPI lets the one go first whose
// communicator it made first, and others wait for it.
bool made_before(const std::string& a, const std::string& b) {
  const auto age = [](const std::string& text) {
    uint64_t number = 0;
    if (text.starts_with("WORLD")) return number;
    ++number;
    const size_t dot = text.find('.');
    if (!text.starts_with('#') || dot == std::string::npos) return number;
    std::from_chars(text.data() + dot + 1, text.data() + text.size(), number);
    return number + 1;
  };
  const uint64_t age_a = age(a), age_b = age(b);
  return age_a != age_b ? age_a < age_b : a < b;
}

// Makes every communicator that the trace uses, in one order on all processes. False: they are too
// many.
bool make_groups(Replayer& r, const std::set<uint32_t>& ids) {
  std::vector<std::string> mine;
  for (const uint32_t id : ids) {
    std::string text = r.text(id);
    if (text.find('\n') == std::string::npos) mine.push_back(std::move(text));
  }
  const bool together = r.ranks > 1;
  std::vector<std::string> texts = together ? all_texts(*r.world, mine) : mine;
  std::sort(texts.begin(), texts.end(), made_before);
  if (texts.size() > 10'000) return false;
  MPI_Group everybody = MPI_GROUP_NULL;
  MPI_Comm_group(r.world->world, &everybody);
  uint32_t number = 0;
  for (const std::string& text : texts) {
    auto g = std::make_unique<Group>();
    g->text = text;
    g->number = ++number;
    if (!parse_ranks(text, g->ranks, g->first)) continue;
    std::vector<int> processes, others;  // of its own group, or both
    std::set<uint32_t> seen;
    std::vector<int> distinct;  // processes
    size_t here = 0;
    bool in_it = false, all_there = true;
    g->places.assign(*std::max_element(g->ranks.begin(), g->ranks.end()) + size_t{1},
                     MPI_PROC_NULL);
    for (size_t i = 0; i < g->ranks.size(); ++i) {
      const uint32_t recorded = g->ranks[i];
      if (g->first != 0 && i == g->first) processes.swap(others);
      const uint32_t process = r.process_of(recorded);
      g->places[recorded] = static_cast<int>(i < g->first ? i : i - g->first);
      // A rank that nobody replays: what is done with it cannot be.
      if (process >= r.ranks) {
        g->apart = all_there = false;
        continue;
      }
      if (seen.insert(process).second)
        distinct.push_back(static_cast<int>(process));
      else
        g->apart = false;
      here += process == r.rank;
      in_it |= process == r.rank;
      processes.push_back(static_cast<int>(process));
    }
    if (g->apart && in_it) {
      if (std::find(processes.begin(), processes.end(), static_cast<int>(r.rank)) ==
          processes.end())
        processes.swap(others);
      make_group(r, *g, everybody, processes, others);
    }
    // A process that is alone has nobody who would end a wait that does not end.
    if (together && !g->apart && all_there && in_it && g->first == 0)
      make_meeting(r, *g, everybody, distinct, here);
    const uint32_t id = r.host->intern(r.host, text.data(), text.size());
    r.groups[id] = std::move(g);
  }
  MPI_Group_free(&everybody);
  return true;
}

// How it runs, and who replays what.
void take(Replayer& r, const feign_run& run) {
  r.root = run.root_fd;
  r.room.limit(run);
  if (!FEIGN_HAS(&run, recorded_ranks)) return;
  r.rank = run.rank;
  r.ranks = run.ranks;
  r.rank_of.assign(run.rank_of, run.rank_of + run.recorded_ranks);
  r.shares = std::set(r.rank_of.begin(), r.rank_of.end()).size() < r.rank_of.size();
}

// Which fields the arguments of all calls are in.
void describe_calls(Replayer& r) {
  const feign_host* const host = r.host;
  r.mpi_first = host->op(host, "mpi", "MPI_Abort");
  r.mpiio_first = host->op(host, "mpiio", "MPI_File_call_errhandler");
  r.args.resize(512 + 256);
  for (uint32_t i = 0; i < r.args.size(); ++i) {
    const uint32_t op = i < 512 ? r.mpi_first + i : r.mpiio_first + i - 512;
    const feign_op_info* info = host->op_info(host, op);
    const std::string_view layer = info != nullptr ? info->layer : "";
    if (layer == (i < 512 ? "mpi" : "mpiio")) r.args[i] = args_of_op(*info);
  }
}

// Over all ranks; alone, what is there already.
template <typename T>
void over_all(const Replayer& r, T* values, int count, MPI_Datatype type, MPI_Op op) {
  if (r.ranks > 1) FEIGN_MUST(MPI_Allreduce(MPI_IN_PLACE, values, count, type, op, r.world->world));
}

// What all ranks have to know of what each has looked at. False in all of them, with the status of
// each, if that cannot be replayed. `status`: what came of looking.
bool agree(Replayer& r, const Look& look, bool& left, feign_status& status) {
  const feign_host* const host = r.host;
  int any[] = {look.joins, look.at_once,        look.makers, r.shares || look.callers,
               status < 0, !look.inside.empty()};
  over_all(r, any, 6, MPI_INT, MPI_MAX);
  if (any[4] != 0) return false;  // who looked in vain says why, and all end
  r.makers = any[2] != 0;
  r.callers = any[3] != 0;
  left = any[5] != 0;
  if (any[0] != 0)
    status = host->fail(host, FEIGN_ERR_UNSUPPORTED,
                        "the program starts ranks while it runs, or joins another one "
                        "(MPI_Comm_spawn, MPI_Comm_connect …), and two are called alike: their "
                        "messages cannot be made, want --replayer posix");
  else if (any[1] != 0)
    status =
        host->fail(host, FEIGN_ERR_UNSUPPORTED,
                   (std::string(kAtOnce) + ": their messages cannot be made, want one of " +
                    "them (--with filter,process=" + one_program(host) + ") or --replayer posix")
                       .c_str());
  return status >= 0;
}

// Some rank never came to its MPI_Finalize. False in all ranks if one could not look for them.
bool leave_out_halves(Replayer& r, const feign_plan* plan, feign_status& status) {
  uint64_t count = 0;
  if (!Halves(r).find(plan, r.lacks, count, status)) return false;
  if (count != 0 && r.rank == 0)
    r.host->log(r.host, FEIGN_LOG_WARN,
                ("not all ranks came to MPI_Finalize: " + std::to_string(count) +
                 (count == 1 ? " call whose other half the trace lacks is left out"
                             : " calls whose other halves the trace lacks are left out"))
                    .c_str());
  return true;
}

// Where messages are sent from and received, and what is read and written.
feign_status make_memory(Replayer& r, const Look& look, const char* content_text) {
  // Half is no multiple of the memory, or both were the same: then the cache that one rank writes
  // to is the one that the other reads from.
  constexpr uint64_t kLeast = uint64_t{1} << 30, kMost = uint64_t{1} << 34;
  static_assert(kLeast % kMessages >= kMessages / 2);
  uint64_t part = kLeast;
  if (look.message >= kLeast && r.options.comm != kNone && r.options.comm != kOrder)
    part = (std::min(look.message, kMost) / kMessages + 1) * kMessages + kMessages / 2;
  over_all(r, &part, 1, MPI_UINT64_T, MPI_MAX);
  r.half = static_cast<int64_t>(part);
  int all[] = {r.lists, look.message <= kMost};
  over_all(r, all, 2, MPI_INT, MPI_MIN);
  r.lists = all[0] != 0;
  r.fits = all[1] != 0;
  // One read or write is at most this long.
  r.longest = std::clamp<uint64_t>(look.longest, uint64_t{1} << 16, uint64_t{1} << 34);
  auto content = feign::Content::parse(content_text != nullptr ? content_text : "random");
  if (content && content->kind == feign::Content::kSparse) content->kind = feign::Content::kRandom;
  constexpr size_t kMemory = size_t{1} << 22;
  if (!r.data.map(r.longest, kMemory))
    return r.host->fail(r.host, FEIGN_ERR_NOMEM, "out of memory");
  if (content && content->kind == feign::Content::kRandom)
    content->fill(r.data.get(), std::min(r.longest, kMemory), 1);
  return FEIGN_OK;
}

}  // namespace

feign_status Replayer::start() {
  feign_status status = FEIGN_OK;
  const feign_run* const run = run_below_root(host, status);
  if (run == nullptr) return status;
  take(*this, *run);
  describe_calls(*this);
  // Before the plan is looked at: that asks MPI how long datatypes are.
  const char* why = nullptr;
  world = join(why);
  if (!world) return host->fail(host, FEIGN_ERR_UNSUPPORTED, why);
  pairs = world->world;
  void* value = nullptr;
  int has = 0;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &has);
  if (has) most_tag = *static_cast<int*>(value);
  // Alone, nobody waits for others here: that is up to modifier depend.
  if (ranks == 1 && options.comm == kOrder) options.comm = kNone;
  Look look{.r = this};
  const auto* plan = static_cast<const feign_plan*>(host->extension(host, "feign.plan/1"));
  if (plan != nullptr) status = plan->each(plan, Look::each, &look);
  std::erase_if(cancelled, [&](const auto& at) { return matched.contains(at); });
  bool left = false;
  if (!agree(*this, look, left, status)) return status;
  if (left && ranks > 1 && plan != nullptr && options.comm != kNone &&
      !leave_out_halves(*this, plan, status))
    return status;
  if (!make_groups(*this, look.groups))
    return host->fail(host, FEIGN_ERR_UNSUPPORTED, "more communicators than 10,000");
  int pointers = look.pointers && options.io == kIoReal;
  over_all(*this, &pointers, 1, MPI_INT, MPI_MAX);
  if (pointers != 0) make_beside(*this);
  look.neighbours();
  return make_memory(*this, look, run->content);
}

Stream::Stream(Replayer& of, const feign_stream_info& info)
    : r(&of),
      rank(info.rank),
      // Where the trace tells no ranks, each process is on its own.
      owner(&of.owner(info.rank >= 0 ? info.rank : -2 - info.process)) {}

// A request, or what was put into a window, may be over later than the thread that began it.
Stream::~Stream() {
  if (space.get() == nullptr) return;
  const std::lock_guard lock(owner->mutex);
  if (!owner->needs_memory()) return;
  owner->spaces.push_back(std::move(space));
  owner->spaces.push_back(std::move(received));
}

namespace {

// A call of which nothing stands ready.
feign_status make(Replayer& r, Stream& s) {
  const uint32_t op = s.a->op;
  s.args = &r.args_of(op);
  if (s.space.get() == nullptr) {
    // Sent from the first half, received into the second; a receive may not know how long it is.
    if (!s.space.map(2 * static_cast<size_t>(r.half), kMessages) ||
        !s.received.map(r.longest, kMessages))
      throw std::bad_alloc();
  }
  if (s.lacks != nullptr && s.lacks->all(does_of(op))) {
    s.skip("the trace lacks its other half");
    remember(s, MPI_REQUEST_NULL);
    if (op >= r.mpiio_first) leave_out_mpiio(s, op);
  } else if (op >= r.mpiio_first) {
    do_mpiio(s, op);
  } else {
    do_mpi(s, op);
  }
  if (s.failure.empty()) return FEIGN_OK;
  return r.host->fail(r.host, FEIGN_ERR_UNSUPPORTED, s.failure.c_str());
}

}  // namespace

feign_status Replayer::execute(Stream& s, const feign_activity& a, feign_outcome& outcome) {
  s.a = &a;
  s.outcome = &outcome;
  const auto lacking = lacks.empty() ? lacks.end() : lacks.find(a.id);
  s.lacks = lacking != lacks.end() ? &lacking->second : nullptr;
  const Ready* const ready = a.result >= 0 && s.lacks == nullptr ? s.find_ready(a) : nullptr;
  if (ready == nullptr) return make(*this, s);
  MPI_Request request = MPI_REQUEST_NULL;
  const int status = ready->call(&request);
  s.args = ready->begins();
  if (s.args != nullptr)
    begun(s, status, request);
  else
    s.answer(status);
  return FEIGN_OK;
}

namespace {

constexpr const char* kComms[] = {"real", "order", "none", nullptr};
constexpr const char* kIos[] = {"real", "order", "none", nullptr};
constexpr feign_option kOptions[] = {
    {"comm", FEIGN_OPT_ENUM, offsetof(Options, comm), "real", kComms, 0, 0,
     "Messages and collectives: made with their recorded sizes, made with nothing in them (who "
     "waits "
     "for whom), or not made."},
    {"io", FEIGN_OPT_ENUM, offsetof(Options, io), "real", kIos, 0, 0,
     "MPI-IO: made, or left to the calls of layer posix in it, where collective calls order the "
     "ranks, or do not."},
};
constexpr const char* kLayers[] = {"mpi", "mpiio", nullptr};
constexpr feign_replayer kApi = replayer<Replayer, Options>(kLayers, true);

}  // namespace

constexpr feign_component kReplayerComponent = component<Options>(
    kApi, "mpi", "Makes the recorded calls of MPI and MPI-IO, files below the root.", kOptions);

}  // namespace feign::mpi

namespace {
constexpr const feign_component* kComponents[] = {&feign::mpi::kRanksComponent,
                                                  &feign::mpi::kReplayerComponent, nullptr};
}  // namespace

FEIGN_ROLES(FEIGN_REPLAYER | FEIGN_RANKS);
extern "C" const feign_plugin feign_plugin_v1 = {
    sizeof(feign_plugin), FEIGN_ABI_MINOR, "mpi", FEIGN_VERSION, "MIT", kComponents};
