// SPDX-License-Identifier: MIT
// Joining the processes of one replay by MPI: feign_ranks is a barrier and messages.
#include "replayers/mpi/world.h"

#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <list>
#include <mutex>
#include <new>
#include <vector>

namespace feign::mpi {
namespace {

std::mutex g_mutex;
std::weak_ptr<World> g_world;
constexpr int kEnded = 2;  // the status of a replay that could not go on

// Outside of it, it is asked nothing.
bool within() {
  int begun = 0, over = 0;
  MPI_Initialized(&begun);
  MPI_Finalized(&over);
  return begun != 0 && over == 0;
}

}  // namespace

void end_all(const char* why, const char* more) noexcept {
  int rank = 0;
  if (within()) MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (within())
    (void)std::fprintf(stderr, "feign: mpi: rank %d: %s%s\n", rank, why, more);
  else
    (void)std::fprintf(stderr, "feign: mpi: %s%s\n", why, more);
  if (within()) MPI_Abort(MPI_COMM_WORLD, kEnded);
  _exit(kEnded);  // the launcher ends the others
}

void failed(int status, const char* call) noexcept {
  std::array<char, MPI_MAX_ERROR_STRING + 1> text{"it failed"};
  int length = 0;
  if (within()) MPI_Error_string(status, text.data(), &length);
  std::array<char, 128> which{};
  (void)std::snprintf(which.data(), which.size(),
                      "%.*s(), which the replay needs: ", static_cast<int>(std::strcspn(call, "(")),
                      call);
  end_all(which.data(), text.data());
}

World::World() {
  int provided = MPI_THREAD_SINGLE;
  FEIGN_MUST(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided));
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  ok = provided == MPI_THREAD_MULTIPLE;
  if (!ok) return;
  FEIGN_MUST(MPI_Comm_dup(MPI_COMM_WORLD, &messages));
  FEIGN_MUST(MPI_Comm_dup(MPI_COMM_WORLD, &world));
}

World::~World() {
  if (messages != MPI_COMM_NULL) FEIGN_MUST(MPI_Comm_free(&messages));
  if (world != MPI_COMM_NULL) FEIGN_MUST(MPI_Comm_free(&world));
  FEIGN_MUST(MPI_Finalize());
}

std::shared_ptr<World> join(const char*& why) {
  const std::lock_guard lock(g_mutex);
  if (auto there = g_world.lock()) return there;
  int before = 0;
  MPI_Initialized(&before);
  if (before) {
    why = "MPI was joined and left before in this process, and can be joined once only";
    return nullptr;
  }
  auto world = std::make_shared<World>();
  if (!world->ok) {
    why = "MPI cannot be joined with MPI_THREAD_MULTIPLE";
    return nullptr;
  }
  g_world = world;
  return world;
}

namespace {

// What is on its way and too long to be handed over at once.
struct Sending {
  std::vector<char> data;
  MPI_Request request = MPI_REQUEST_NULL;
};

struct Ranks {
  const feign_host* host = nullptr;
  std::shared_ptr<World> world;
  std::mutex mutex;
  std::list<Sending> sending;
  MPI_Win shared = MPI_WIN_NULL;

  ~Ranks() {
    if (shared != MPI_WIN_NULL) FEIGN_MUST(MPI_Win_free(&shared));
    for (Sending& s : sending) FEIGN_MUST(MPI_Wait(&s.request, MPI_STATUS_IGNORE));
  }
};

feign_status create_ranks(const feign_host* host, const void*, void** self) noexcept {
  auto ranks = std::unique_ptr<Ranks>(new (std::nothrow) Ranks);
  if (!ranks) return host->fail(host, FEIGN_ERR_NOMEM, "out of memory");
  const char* why = nullptr;
  ranks->host = host;
  ranks->world = join(why);
  if (!ranks->world) return host->fail(host, FEIGN_ERR_UNSUPPORTED, why);
  *self = ranks.release();
  return FEIGN_OK;
}

void who(void* self, uint32_t* rank, uint32_t* ranks) noexcept {
  const auto& world = *static_cast<Ranks*>(self)->world;
  *rank = static_cast<uint32_t>(world.rank);
  *ranks = static_cast<uint32_t>(world.size);
}

feign_status barrier(void* self) noexcept {
  FEIGN_MUST(MPI_Barrier(static_cast<Ranks*>(self)->world->messages));
  return FEIGN_OK;
}

feign_status send(void* self, uint32_t rank, uint32_t channel, const void* data,
                  size_t size) noexcept {
  // Messages up to this are handed over at once by every transport of Open MPI's.
  constexpr size_t kAtOnce = 1024;
  auto& r = *static_cast<Ranks*>(self);
  const int to = static_cast<int>(rank), tag = static_cast<int>(channel);
  if (size <= kAtOnce) {
    FEIGN_MUST(MPI_Send(data, static_cast<int>(size), MPI_BYTE, to, tag, r.world->messages));
    return FEIGN_OK;
  }
  if (size > INT32_MAX) end_all("a message of more than 2 GiB to another rank");
  try {
    const std::lock_guard lock(r.mutex);
    r.sending.remove_if([](Sending& s) {
      int done = 0;
      FEIGN_MUST(MPI_Test(&s.request, &done, MPI_STATUS_IGNORE));
      return done != 0;
    });
    Sending& s = r.sending.emplace_back();
    s.data.assign(static_cast<const char*>(data), static_cast<const char*>(data) + size);
    FEIGN_MUST(MPI_Isend(s.data.data(), static_cast<int>(size), MPI_BYTE, to, tag,
                         r.world->messages, &s.request));
    return FEIGN_OK;
  } catch (const std::bad_alloc&) {
    end_all("out of memory for a message to another rank");
  }
}

feign_status receive(void* self, uint32_t channel, feign_take take, void* ctx) noexcept {
  auto& r = *static_cast<Ranks*>(self);
  int flag = 0, size = 0;
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status;
  FEIGN_MUST(MPI_Improbe(MPI_ANY_SOURCE, static_cast<int>(channel), r.world->messages, &flag,
                         &message, &status));
  if (!flag) return FEIGN_END;
  MPI_Get_count(&status, MPI_BYTE, &size);
  char few[1024];
  std::unique_ptr<char[]> many;
  char* data = few;
  if (size > static_cast<int>(sizeof few)) {
    many.reset(new (std::nothrow) char[static_cast<size_t>(size)]);
    if (!many) end_all("out of memory for a message of another rank");
    data = many.get();
  }
  FEIGN_MUST(MPI_Mrecv(data, size, MPI_BYTE, &message, &status));
  take(ctx, static_cast<uint32_t>(status.MPI_SOURCE), data, static_cast<size_t>(size));
  return FEIGN_OK;
}

void end(void* self, int status) noexcept {
  MPI_Abort(static_cast<Ranks*>(self)->world->messages, status);
}

void destroy_ranks(void* self) noexcept { delete static_cast<Ranks*>(self); }

// Null: no rank of this host has any, as Open MPI is set up.
void* share(void* self, size_t size) noexcept {
  constexpr auto kPatience = std::chrono::seconds(10);
  auto& r = *static_cast<Ranks*>(self);
  MPI_Comm host = MPI_COMM_NULL;
  if (r.shared != MPI_WIN_NULL) return nullptr;
  FEIGN_MUST(MPI_Comm_split_type(r.world->messages, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host));
  int rank = 0, unit = 1;
  MPI_Comm_rank(host, &rank);
  MPI_Aint mine = rank == 0 ? static_cast<MPI_Aint>(size) : 0, theirs = 0;
  void* base = nullptr;
  MPI_Comm_set_errhandler(host, MPI_ERRORS_RETURN);
  const int made = MPI_Win_allocate_shared(mine, 1, MPI_INFO_NULL, host, &base, &r.shared);
  // All have it, or none. Where it failed for one, others may still wait in it.
  int some = made == MPI_SUCCESS, all = 0;
  MPI_Request told = MPI_REQUEST_NULL;
  FEIGN_MUST(MPI_Iallreduce(MPI_IN_PLACE, &some, 1, MPI_INT, MPI_MAX, host, &told));
  const auto last = std::chrono::steady_clock::now() + kPatience;
  do {
    FEIGN_MUST(MPI_Test(&told, &all, MPI_STATUS_IGNORE));
    if (made != MPI_SUCCESS && all == 0 && std::chrono::steady_clock::now() > last)
      must(made, "MPI_Win_allocate_shared");
  } while (all == 0);
  if (some == 0) {
    r.shared = MPI_WIN_NULL;
    FEIGN_MUST(MPI_Comm_free(&host));
    return nullptr;
  }
  must(made, "MPI_Win_allocate_shared");
  FEIGN_MUST(MPI_Win_shared_query(r.shared, 0, &theirs, &unit, &base));
  if (base != nullptr && rank == 0) memset(base, 0, size);
  FEIGN_MUST(MPI_Barrier(host));
  FEIGN_MUST(MPI_Comm_free(&host));
  return base;
}

// Initialised for several threads, Open MPI takes its locks whether they are needed or not, which
// doubles the time of a short message, and writes the pieces of a collective call one by one
// instead of reading and writing them with what lies between. It asks these variables each time.
void tell(const char* variable, bool value) {
  auto* const there = static_cast<volatile bool*>(dlsym(RTLD_DEFAULT, variable));
  if (there != nullptr) *there = value;
}

std::atomic<bool> g_several{true};

void threads(void*, int several) noexcept {
  g_several = several != 0;
  tell("opal_uses_threads", g_several);
  tell("ompi_mpi_thread_multiple", g_several);
}

constexpr feign_ranks kRanksApi = {sizeof kRanksApi, 0,   create_ranks,  who,   barrier, send,
                                   receive,          end, destroy_ranks, share, threads};

}  // namespace

void initialised_for(bool several) {
  if (!g_several) tell("ompi_mpi_thread_multiple", several);
}

constexpr feign_component kRanksComponent = {
    sizeof kRanksComponent,
    FEIGN_RANKS,
    "mpi",
    "Joins the processes that mpirun started to run one replay together.",
    &kRanksApi,
    nullptr,
    0,
    sizeof(feign_option),
    0,
    0};

}  // namespace feign::mpi
