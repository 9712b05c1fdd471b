// SPDX-License-Identifier: MIT
// Layer mpi: windows. Their memory is made anew, as long as it was; what is put and got is as many
// bytes as were, and only what lies in the target's window (of a dynamic one: anywhere).
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>

#include "layers/mpi_ops.h"
#include "replayers/mpi/state.h"

namespace feign::mpi {
namespace {

// Open MPI 4.1 gives the memory of windows one name that communicators without common ranks make at
// the same time on a host. So the first rank of each keeps the others out meanwhile, by the lock
// of a directory that a host has for this mpirun; where all of the communicator have come, since
// else they might wait for each other. So they would where a process makes several at a time.
class OneAtATime {
 public:
  OneAtATime(const Replayer& r, MPI_Comm comm) {
    const char* const here = getenv("PMIX_SERVER_TMPDIR");
    int me = 0;
    MPI_Comm_rank(comm, &me);
    if (me != 0 || r.callers || here == nullptr) return;
    lock_ = open(here, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (lock_ >= 0 && flock(lock_, LOCK_EX) != 0 && errno == EINTR) continue;
  }
  ~OneAtATime() {
    if (lock_ >= 0) close(lock_);
  }
  OneAtATime(const OneAtATime&) = delete;
  OneAtATime& operator=(const OneAtATime&) = delete;

 private:
  int lock_ = -1;
};

void allocate(Stream& s, Window& w) {
  const MPI_Comm comm = w.group->comm;
  uint64_t size = std::min<uint64_t>(s.known(s.args->other, 0), uint64_t{1} << 32);
  w.unit = std::clamp<uint64_t>(s.known(s.args->other2, 1), 1, 1 << 20);
  FEIGN_MUST(MPI_Allgather(&size, 1, MPI_UINT64_T, w.sizes.data(), 1, MPI_UINT64_T, comm));
  FEIGN_MUST(MPI_Allgather(&w.unit, 1, MPI_UINT64_T, w.units.data(), 1, MPI_UINT64_T, comm));
  void* base = nullptr;
  const OneAtATime lock(*s.r, comm);
  s.answer(MPI_Win_allocate(static_cast<MPI_Aint>(size), 1, MPI_INFO_NULL, comm, &base, &w.win));
}

// Programs tell each other addresses of what they attach, which are others here: one piece of
// memory stands for all of it.
void make_dynamic(Stream& s, Window& w) {
  const MPI_Comm comm = w.group->comm;
  const bool mapped = w.memory.map(static_cast<size_t>(s.r->half), kMessages);
  MPI_Aint base = 0;
  MPI_Get_address(w.memory.get(), &base);
  w.bases.resize(w.sizes.size());
  // Before the call: all have come when Open MPI makes a communicator for it (make_communicator()).
  FEIGN_MUST(MPI_Allgather(&base, 1, MPI_AINT, w.bases.data(), 1, MPI_AINT, comm));
  const OneAtATime lock(*s.r, comm);
  s.answer(MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &w.win));
  if (w.win == MPI_WIN_NULL) return;
  uint64_t size = 0;
  if (mapped && MPI_Win_attach(w.win, w.memory.get(), s.r->half) == MPI_SUCCESS)
    size = static_cast<uint64_t>(s.r->half);
  std::fill(w.units.begin(), w.units.end(), uint64_t{1});
  FEIGN_MUST(MPI_Allgather(&size, 1, MPI_UINT64_T, w.sizes.data(), 1, MPI_UINT64_T, comm));
}

void make_window(Stream& s, uint32_t op, uint32_t name) {
  const Group* g = collective(s);
  if (g == nullptr) return;
  auto made = std::make_shared<Window>();
  Window& w = *made;
  w.group = g;
  w.sizes.resize(g->ranks.size());
  w.units.resize(g->ranks.size());
  if (op == FEIGN_MPI_WIN_CREATE_DYNAMIC)
    make_dynamic(s, w);
  else
    allocate(s, w);
  if (w.win == MPI_WIN_NULL) return;
  MPI_Win_set_errhandler(w.win, MPI_ERRORS_RETURN);
  const std::lock_guard lock(s.owner->mutex);
  s.owner->windows[name] = std::move(made);
}

// MPI_Win_post and MPI_Win_start: with those that the call names.
void expose(Stream& s, uint32_t op, const Window& w) {
  std::vector<uint32_t> recorded;
  std::vector<int> ranks;
  size_t first = 0;
  const char* text = s.r->text(s.known(s.args->group, 0));
  if (!parse_ranks(text, recorded, first) && std::string_view(text) != "{}")
    return s.skip("its group is not known");
  for (const uint32_t r : recorded) {
    const int place = w.group->rank_of(r);
    if (place < 0) return s.skip("its group is not in its window");
    ranks.push_back(place);
  }
  MPI_Group all = MPI_GROUP_NULL, some = MPI_GROUP_NULL;
  MPI_Comm_group(w.group->comm, &all);
  MPI_Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &some);
  s.answer(op == FEIGN_MPI_WIN_POST ? MPI_Win_post(some, 0, w.win) : MPI_Win_start(some, 0, w.win));
  if (some != MPI_GROUP_EMPTY) MPI_Group_free(&some);
  MPI_Group_free(&all);
}

constexpr uint64_t kAligned = 4096;

void access(Stream& s, uint32_t op, const Window& w, int target) {
  const Args& x = *s.args;
  const uint64_t there = w.sizes[static_cast<size_t>(target)];
  const uint64_t unit = w.units[static_cast<size_t>(target)];
  uint64_t bytes =
      s.r->options.comm == kOrder ? 1 : std::min(s.a->length, static_cast<uint64_t>(s.r->half - 1));
  if (s.a->length == FEIGN_UNKNOWN) bytes = 0;
  const Type& t = x.type != kAbsent ? s.type(x.type) : s.type(kAbsent);
  const bool one = op == FEIGN_MPI_FETCH_AND_OP || op == FEIGN_MPI_COMPARE_AND_SWAP;
  if (one) {
    if (!t.whole && !(t.real && op == FEIGN_MPI_FETCH_AND_OP)) return s.emulate();
    bytes = static_cast<uint64_t>(t.size);
  }
  uint64_t at = s.known(x.offset, 0);
  // An address: as far behind one that is aligned as any type asks for.
  if (!w.bases.empty() && bytes <= there)
    at = std::min(at % kAligned, (there - bytes) & ~uint64_t{63});
  if (at > there / unit || bytes > there - at * unit) {
    remember(s, MPI_REQUEST_NULL);
    return s.skip("outside of its target's window");
  }
  const auto [from, n, type] = bytes_at(s, s.space.get(), bytes);
  MPI_Aint place = static_cast<MPI_Aint>(at * unit);
  if (!w.bases.empty()) place = MPI_Aint_add(w.bases[static_cast<size_t>(target)], place);
  char *out = static_cast<char*>(from), *in = out + s.r->half, *result = in + s.r->half / 2;
  MPI_Request q = MPI_REQUEST_NULL;
  int status = MPI_SUCCESS;
  const MPI_Win win = w.win;
  const auto sum = [&] {
    Sum d = sum_of(s, bytes);
    // A count of more than the bytes that the window was found to have.
    if (int size = 0; MPI_Type_size(d.type, &size) == MPI_SUCCESS &&
                      static_cast<uint64_t>(d.count) * static_cast<uint64_t>(size) > bytes)
      d = bits_of(bytes);
    const std::string_view name = s.r->text(s.known(x.reduction, 0));
    if (name == "MPI_REPLACE") d.op = MPI_REPLACE;
    if (name == "MPI_NO_OP" && op != FEIGN_MPI_ACCUMULATE && op != FEIGN_MPI_RACCUMULATE)
      d.op = MPI_NO_OP;
    return d;
  };
  switch (op) {
    case FEIGN_MPI_PUT:
      return s.answer(MPI_Put(out, n, type, target, place, n, type, win));
    case FEIGN_MPI_GET:
      return s.answer(MPI_Get(in, n, type, target, place, n, type, win));
    case FEIGN_MPI_RPUT:
      status = MPI_Rput(out, n, type, target, place, n, type, win, &q);
      return begun(s, status, q);
    case FEIGN_MPI_RGET:
      status = MPI_Rget(in, n, type, target, place, n, type, win, &q);
      return begun(s, status, q);
    case FEIGN_MPI_ACCUMULATE: {
      const Sum d = sum();
      return s.answer(
          MPI_Accumulate(out, d.count, d.type, target, place, d.count, d.type, d.op, win));
    }
    case FEIGN_MPI_RACCUMULATE: {
      const Sum d = sum();
      status = MPI_Raccumulate(out, d.count, d.type, target, place, d.count, d.type, d.op, win, &q);
      return begun(s, status, q);
    }
    case FEIGN_MPI_GET_ACCUMULATE: {
      const Sum d = sum();
      return s.answer(MPI_Get_accumulate(out, d.count, d.type, in, d.count, d.type, target, place,
                                         d.count, d.type, d.op, win));
    }
    case FEIGN_MPI_RGET_ACCUMULATE: {
      const Sum d = sum();
      status = MPI_Rget_accumulate(out, d.count, d.type, in, d.count, d.type, target, place,
                                   d.count, d.type, d.op, win, &q);
      return begun(s, status, q);
    }
    case FEIGN_MPI_FETCH_AND_OP: {
      const Sum d = sum();
      return s.answer(MPI_Fetch_and_op(out, result, t.type, target, place,
                                       d.type == t.type ? d.op : MPI_REPLACE, win));
    }
    default:
      return s.answer(MPI_Compare_and_swap(out, in, result, t.type, target, place, win));
  }
}

bool ends_epoch(uint32_t op) {
  return op == FEIGN_MPI_WIN_FENCE || op == FEIGN_MPI_WIN_COMPLETE || op == FEIGN_MPI_WIN_UNLOCK ||
         op == FEIGN_MPI_WIN_UNLOCK_ALL;
}
bool waits_for_others(uint32_t op) {
  return op == FEIGN_MPI_WIN_WAIT || op == FEIGN_MPI_WIN_TEST || op == FEIGN_MPI_WIN_LOCK ||
         op == FEIGN_MPI_WIN_LOCK_ALL || op == FEIGN_MPI_WIN_POST || op == FEIGN_MPI_WIN_START;
}

}  // namespace

void window(Stream& s, uint32_t op, Does does) {
  Owner& o = *s.owner;
  const Args& x = *s.args;
  const auto name = static_cast<uint32_t>(s.known(x.win, 0));
  if (does == Does::kMakeWindow) return make_window(s, op, name);
  std::shared_ptr<Window> w;
  {
    const std::lock_guard lock(o.mutex);
    const auto at = o.windows.find(name);
    if (at != o.windows.end()) w = at->second;
  }
  if (!w) return s.skip("its window is not known");
  std::shared_lock alive(w->alive, std::defer_lock), within(w->epoch, std::defer_lock);
  std::unique_lock last(w->alive, std::defer_lock), end(w->epoch, std::defer_lock);
  if (op == FEIGN_MPI_WIN_FREE)
    last.lock();
  else
    alive.lock();
  if (w->win == MPI_WIN_NULL) return s.skip("its window is not known");
  if (ends_epoch(op))
    end.lock();
  else if (!waits_for_others(op))
    within.lock();
  const bool nobody = x.rank != kAbsent && number(s.value(x.rank)) == -1;
  const int target = x.rank != kAbsent ? w->group->rank_of(s.known(x.rank, UINT32_MAX)) : 0;
  if (nobody) return s.emulate();
  if (target < 0) return s.skip("its target is not in its window");
  switch (op) {
    case FEIGN_MPI_WIN_FREE: {
      s.answer(MPI_Win_free(&w->win));
      w->win = MPI_WIN_NULL;
      const std::lock_guard lock(o.mutex);
      o.windows.erase(name);
      return;
    }
    case FEIGN_MPI_WIN_FENCE:
      return s.answer(MPI_Win_fence(0, w->win));
    case FEIGN_MPI_WIN_POST:
    case FEIGN_MPI_WIN_START:
      return expose(s, op, *w);
    case FEIGN_MPI_WIN_COMPLETE:
      return s.answer(MPI_Win_complete(w->win));
    case FEIGN_MPI_WIN_WAIT:
      return s.answer(MPI_Win_wait(w->win));
    case FEIGN_MPI_WIN_TEST: {
      // Not over is over at once; what was over then is waited for.
      if (s.known(x.flag, 0) == 0) return s.emulate();
      return s.answer(MPI_Win_wait(w->win));
    }
    case FEIGN_MPI_WIN_LOCK: {
      // MPI_LOCK_EXCLUSIVE is 1 in Open MPI and 234 in MPICH.
      const uint64_t type = s.known(x.other, 1);
      return s.answer(MPI_Win_lock(type == 1 || type == 234 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED,
                                   target, 0, w->win));
    }
    case FEIGN_MPI_WIN_UNLOCK:
      return s.answer(MPI_Win_unlock(target, w->win));
    case FEIGN_MPI_WIN_LOCK_ALL:
      return s.answer(MPI_Win_lock_all(0, w->win));
    case FEIGN_MPI_WIN_UNLOCK_ALL:
      return s.answer(MPI_Win_unlock_all(w->win));
    case FEIGN_MPI_WIN_FLUSH:
      return s.answer(MPI_Win_flush(target, w->win));
    case FEIGN_MPI_WIN_FLUSH_LOCAL:
      return s.answer(MPI_Win_flush_local(target, w->win));
    case FEIGN_MPI_WIN_FLUSH_ALL:
      return s.answer(MPI_Win_flush_all(w->win));
    case FEIGN_MPI_WIN_FLUSH_LOCAL_ALL:
      return s.answer(MPI_Win_flush_local_all(w->win));
    case FEIGN_MPI_WIN_SYNC:
      return s.answer(MPI_Win_sync(w->win));
    case FEIGN_MPI_PUT:
    case FEIGN_MPI_GET:
    case FEIGN_MPI_RPUT:
    case FEIGN_MPI_RGET:
    case FEIGN_MPI_ACCUMULATE:
    case FEIGN_MPI_RACCUMULATE:
    case FEIGN_MPI_GET_ACCUMULATE:
    case FEIGN_MPI_RGET_ACCUMULATE:
    case FEIGN_MPI_FETCH_AND_OP:
    case FEIGN_MPI_COMPARE_AND_SWAP:
      return access(s, op, *w, target);
    default:
      return s.emulate();
  }
}

}  // namespace feign::mpi
