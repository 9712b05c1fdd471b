// SPDX-License-Identifier: MIT
// Replayer mpi: makes the calls of layers mpi and mpiio. Before the first call it looks through
// what is to come, and all processes together make the communicators that the trace names: a
// process that made one when it first needs it would wait for others that do not need it yet.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <set>

#include "layers/mpi_ops.h"
#include "layers/mpiio_ops.h"
#include "replayers/mpi/state.h"

namespace feign::mpi {

bool Space::map(size_t size, size_t unit) {
  constexpr int kProtection = PROT_READ | PROT_WRITE;
  void* memory =
      mmap(nullptr, size, kProtection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  memory_ = static_cast<char*>(memory);
  size_ = size;
  if (size <= unit) return true;
  const int fd = memfd_create("feign-buffer", MFD_CLOEXEC);
  bool good = fd >= 0 && ftruncate(fd, static_cast<off_t>(unit)) == 0;
  for (size_t at = 0; good && at < size; at += unit)
    good = mmap(memory_ + at, std::min(unit, size - at), kProtection, MAP_SHARED | MAP_FIXED, fd,
                0) != MAP_FAILED;
  if (fd >= 0) close(fd);
  return good;
}

Replayer::~Replayer() {
  if (!world) return;
  close_files(*this);
  for (auto& [id, t] : types)
    if (t->made) MPI_Type_free(&t->type);
  for (auto& [rank, o] : owners)
    for (auto& [number, pending] : o->requests)
      if (pending.request != MPI_REQUEST_NULL) MPI_Request_free(&pending.request);
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
  t.basic = !t.made;
  int size = 0;
  MPI_Type_size(t.type, &size);
  t.size = size;
  MPI_Type_get_extent(t.type, &t.low, &t.extent);
  MPI_Type_get_true_extent(t.type, &t.true_low, &t.true_extent);
  return t;
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
            "them apart, or --replayer mpi,comm=none";
}

namespace {

// Which arguments an op has, by the names that layers/mpi.h gives them.
Args args_of_op(const feign_op_info& info) {
  Args x;
  bool comm = false, info_seen = false;
  for (uint32_t i = 0; i < info.arg_count; ++i) {
    const feign_arg_info& arg = info.args[i];
    if (arg.slot != FEIGN_SLOT_VALUE || arg.index >= kAbsent) continue;
    const auto at = static_cast<uint8_t>(arg.index);
    const std::string_view name = arg.name;
    const auto is = [&](std::initializer_list<std::string_view> names) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    const auto first = [&](uint8_t& one, uint8_t& two) { (one == kAbsent ? one : two) = at; };
    if (arg.type == FEIGN_ARG_LIST) {
      x.list = at;
    } else if (is({"count", "sendcount", "recvcount", "incount", "origin_count", "target_count"})) {
      first(x.count, x.count2);
    } else if (is({"datatype", "type", "sendtype", "recvtype", "origin_datatype", "target_datatype",
                   "etype", "filetype"})) {
      first(x.type, x.type2);
    } else if (is({"recv_size"})) {
      x.size2 = at;
    } else if (is({"dest", "source", "root", "target_rank", "rank"})) {
      first(x.rank, x.rank2);
    } else if (is({"tag", "sendtag", "recvtag"})) {
      first(x.tag, x.tag2);
    } else if (is({"comm", "old_comm", "comm_old"})) {
      x.comm = at;
      comm = true;
    } else if (is({"newcomm", "comm_cart", "new_comm", "comm_graph", "comm_dist_graph"})) {
      x.new_comm = at;
    } else if (is({"request"})) {
      x.request = at;
    } else if (is({"op"})) {
      x.reduction = at;
    } else if (is({"win"})) {
      x.win = at;
    } else if (is({"info"}) && !info_seen) {
      x.info = at;
      info_seen = true;
    } else if (is({"offset", "target_disp"})) {
      x.offset = at;
    } else if (is({"flag"})) {
      x.flag = at;
    } else if (is({"site"})) {
      continue;
    } else {
      first(x.other, x.other2);
    }
  }
  (void)comm;
  return x;
}

// What create() learns from the plan.
struct Look {
  Replayer* r;
  std::set<uint32_t> groups;
  uint64_t longest = 0;
  static feign_status each(void* ctx, const feign_activity* a) noexcept {
    auto& look = *static_cast<Look*>(ctx);
    try {
      const Args& args = look.r->args_of(a->op);
      for (const uint8_t index : {args.comm, args.new_comm})
        if (index < a->value_count && a->values[index] != 0 && a->values[index] != FEIGN_UNKNOWN)
          look.groups.insert(static_cast<uint32_t>(a->values[index]));
      look.longest = std::max(look.longest, a->length);
      if (args.size2 < a->value_count && a->values[args.size2] != FEIGN_UNKNOWN)
        look.longest = std::max(look.longest, a->values[args.size2]);
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
  MPI_Allgather(&size, 1, MPI_INT, sizes.data(), 1, MPI_INT, world.world);
  int sum = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    at[i] = sum;
    sum += sizes[i];
  }
  std::string all(static_cast<size_t>(sum), ' ');
  MPI_Allgatherv(bytes.data(), size, MPI_CHAR, all.data(), sizes.data(), at.data(), MPI_CHAR,
                 world.world);
  std::set<std::string> set;
  for (size_t p = 0; p < all.size();) {
    const size_t end = all.find('\n', p);
    set.insert(all.substr(p, end - p));
    p = end + 1;
  }
  return {set.begin(), set.end()};
}

// Makes every communicator that the trace names, in one order on all processes.
std::string make_groups(Replayer& r, const std::set<uint32_t>& ids) {
  std::vector<std::string> mine;
  for (const uint32_t id : ids) {
    std::string text = r.text(id);
    if (text.find('\n') == std::string::npos) mine.push_back(std::move(text));
  }
  const bool together = r.ranks > 1;
  std::vector<std::string> texts = together ? all_texts(*r.world, mine) : mine;
  std::sort(texts.begin(), texts.end());
  if (texts.size() > 10'000)
    return std::to_string(texts.size()) + " communicators: want at most 10,000";
  MPI_Group everybody = MPI_GROUP_NULL;
  MPI_Comm_group(r.world->world, &everybody);
  uint32_t number = 0;
  std::string failure;
  for (const std::string& text : texts) {
    auto g = std::make_unique<Group>();
    g->text = text;
    g->number = ++number;
    if (!parse_ranks(text, g->ranks)) continue;
    std::vector<int> processes;
    std::set<uint32_t> seen;
    bool in_it = false;
    for (const uint32_t recorded : g->ranks) {
      const bool known = recorded < r.rank_of.size();
      const uint32_t process = known ? r.rank_of[recorded] : together ? recorded : 0;
      g->place[recorded] = static_cast<int>(processes.size());
      // A rank that nobody replays: what is done with it cannot be.
      if (process >= r.ranks) {
        g->apart = false;
        continue;
      }
      g->apart &= seen.insert(process).second;
      in_it |= process == r.rank;
      processes.push_back(static_cast<int>(process));
    }
    if (g->apart && in_it) {
      MPI_Group group = MPI_GROUP_NULL;
      MPI_Group_incl(everybody, static_cast<int>(processes.size()), processes.data(), &group);
      const int tag = static_cast<int>(number % 32000);
      if (MPI_Comm_create_group(r.world->world, group, tag, &g->comm) != MPI_SUCCESS)
        failure = "communicator " + text + " cannot be made";
      else
        MPI_Comm_set_errhandler(g->comm, MPI_ERRORS_RETURN);
      MPI_Group_free(&group);
    }
    const uint32_t id = r.host->intern(r.host, text.data(), text.size());
    r.groups[id] = std::move(g);
  }
  MPI_Group_free(&everybody);
  return failure;
}

feign_status create(const feign_host* host, const void* options, void** self) noexcept {
  try {
    const auto* run = static_cast<const feign_run*>(host->extension(host, "feign.run/1"));
    auto r = std::make_unique<Replayer>();
    r->host = host;
    r->options = *static_cast<const Options*>(options);
    if (run == nullptr || run->root_fd < 0)
      return host->fail(host, FEIGN_ERR_ARGUMENT,
                        "there is no root to replay below: want --root DIR");
    r->root = run->root_fd;
    r->max_bytes = run->max_bytes != 0 ? run->max_bytes : UINT64_MAX;
    if (FEIGN_HAS(run, recorded_ranks)) {
      r->rank = run->rank;
      r->ranks = run->ranks;
      r->rank_of.assign(run->rank_of, run->rank_of + run->recorded_ranks);
    }
    r->mpi_first = host->op(host, "mpi", "MPI_Abort");
    r->mpiio_first = host->op(host, "mpiio", "MPI_File_call_errhandler");
    r->args.resize(512 + 256);
    for (uint32_t i = 0; i < r->args.size(); ++i) {
      const uint32_t op = i < 512 ? r->mpi_first + i : r->mpiio_first + i - 512;
      const feign_op_info* info = host->op_info(host, op);
      const std::string_view layer = info != nullptr ? info->layer : "";
      if (layer == (i < 512 ? "mpi" : "mpiio")) r->args[i] = args_of_op(*info);
    }
    Look look{r.get(), {}, 0};
    if (const auto* plan = static_cast<const feign_plan*>(host->extension(host, "feign.plan/1")))
      if (const feign_status status = plan->each(plan, Look::each, &look); status < 0)
        return status;
    const char* why = nullptr;
    r->world = join(why);
    if (!r->world) return host->fail(host, FEIGN_ERR_UNSUPPORTED, why);
    void* value = nullptr;
    int has = 0;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &has);
    if (has) r->most_tag = *static_cast<int*>(value);
    r->pairs = r->world->world;
    if (const std::string failure = make_groups(*r, look.groups); !failure.empty())
      return host->fail(host, FEIGN_ERR_UNSUPPORTED, failure.c_str());
    // One message, or one read or write, is at most this long.
    r->room = static_cast<size_t>(std::clamp<uint64_t>(look.longest, 1 << 16, INT32_MAX));
    auto content = feign::Content::parse(run->content != nullptr ? run->content : "random");
    if (content && content->kind == feign::Content::kSparse)
      content->kind = feign::Content::kRandom;
    constexpr size_t kMemory = size_t{1} << 22;
    if (!r->data.map(r->room, kMemory)) return host->fail(host, FEIGN_ERR_NOMEM, "out of memory");
    if (content && content->kind == feign::Content::kRandom)
      content->fill(r->data.get(), std::min(r->room, kMemory), 1);
    *self = r.release();
    return FEIGN_OK;
  } catch (const std::bad_alloc&) {
    return host->fail(host, FEIGN_ERR_NOMEM, "out of memory");
  }
}

feign_status open_stream(void* self, const feign_stream_info* info, void** stream) noexcept {
  auto& r = *static_cast<Replayer*>(self);
  auto s = std::unique_ptr<Stream>(new (std::nothrow) Stream);
  if (!s) return r.host->fail(r.host, FEIGN_ERR_NOMEM, "out of memory");
  try {
    s->r = &r;
    s->rank = info != nullptr ? info->rank : -1;
    // Where the trace tells no ranks, each process is on its own.
    s->owner = &r.owner(s->rank >= 0 || info == nullptr ? s->rank : -2 - info->process);
  } catch (const std::bad_alloc&) {
    return r.host->fail(r.host, FEIGN_ERR_NOMEM, "out of memory");
  }
  *stream = s.release();
  return FEIGN_OK;
}

feign_status execute(void* self, void* stream, const feign_activity* a,
                     feign_outcome* outcome) noexcept {
  auto& r = *static_cast<Replayer*>(self);
  auto& s = *static_cast<Stream*>(stream);
  s.a = a;
  s.outcome = outcome;
  s.args = &r.args_of(a->op);
  if (s.space.get() == nullptr) {
    // Sent from the first half, received into the second; a receive may not know how long it is.
    constexpr size_t kMemory = size_t{1} << 24, kLongest = size_t{1} << 31;
    if (!s.space.map(kLongest, kMemory) || !s.received.map(r.room, kMemory))
      return r.host->fail(r.host, FEIGN_ERR_NOMEM, "out of memory");
  }
  try {
    if (a->op >= r.mpiio_first)
      do_mpiio(s, a->op);
    else
      do_mpi(s, a->op);
    if (s.failure.empty()) return FEIGN_OK;
    return r.host->fail(r.host, FEIGN_ERR_UNSUPPORTED, s.failure.c_str());
  } catch (const std::bad_alloc&) {
    return r.host->fail(r.host, FEIGN_ERR_NOMEM, "out of memory");
  }
}

void close_stream(void*, void* stream) noexcept { delete static_cast<Stream*>(stream); }
void destroy(void* self) noexcept { delete static_cast<Replayer*>(self); }

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
constexpr feign_replayer kApi = {sizeof kApi, 1,       kLayers,      create,
                                 open_stream, execute, close_stream, destroy};

}  // namespace

constexpr feign_component kReplayerComponent = {
    sizeof kReplayerComponent,
    FEIGN_REPLAYER,
    "mpi",
    "Makes the recorded calls of MPI and MPI-IO, files below the root.",
    &kApi,
    kOptions,
    std::size(kOptions),
    sizeof(feign_option),
    sizeof(Options),
    0};

}  // namespace feign::mpi

namespace {
constexpr const feign_component* kComponents[] = {&feign::mpi::kRanksComponent,
                                                  &feign::mpi::kReplayerComponent, nullptr};
}  // namespace

FEIGN_ROLES(FEIGN_REPLAYER | FEIGN_RANKS);
extern "C" const feign_plugin feign_plugin_v1 = {
    sizeof(feign_plugin), FEIGN_ABI_MINOR, "mpi", FEIGN_VERSION, "MIT", kComponents};
