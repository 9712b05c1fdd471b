// SPDX-License-Identifier: MIT
// Layer mpi: messages, collectives, requests, windows. What a call only asks of the library, or of
// objects that stand here under other names, is bookkeeping: it comes to what was recorded.
#include <algorithm>
#include <climits>
#include <cstring>

#include "layers/mpi_ops.h"
#include "replayers/mpi/state.h"

namespace feign::mpi {
namespace {

// Half of a stream's address space is sent from, half received into.
constexpr int64_t kHalf = int64_t{1} << 30;

struct Piece {
  void* at;
  int count;
  MPI_Datatype type;
};

// The memory that a call moves, by count and datatype where these are known and their layout fits;
// else as bytes. What the trace does not tell is as much as may come.
Piece piece(Stream& s, bool from, uint64_t bytes, uint8_t count_at, uint8_t type_at) {
  char* const base = s.space.get() + (from ? 0 : kHalf);
  if (s.r->options.comm == kOrder) return {base, 0, MPI_BYTE};
  const uint64_t count = s.value(count_at);
  if (type_at != kAbsent && count <= INT_MAX) {
    const Type& t = s.type(type_at);
    if (t.type != MPI_DATATYPE_NULL && count == 0) return {base, 0, t.type};
    if (t.type != MPI_DATATYPE_NULL && t.extent >= 0 && t.true_extent >= 0 && t.true_low > -kHalf &&
        t.true_low < kHalf && t.true_extent <= kHalf && t.extent <= kHalf) {
      const int64_t last = t.extent * static_cast<int64_t>(count - 1);
      if (last + t.true_extent + std::max<MPI_Aint>(t.true_low, 0) <= kHalf)
        return {base + (t.true_low < 0 ? -t.true_low : 0), static_cast<int>(count), t.type};
    }
    if (t.size > 0 && (bytes == 0 || bytes == FEIGN_UNKNOWN) &&
        t.size * static_cast<int64_t>(count) < kHalf)
      bytes = static_cast<uint64_t>(t.size) * count;
  }
  const bool known = bytes != FEIGN_UNKNOWN && (from || bytes != 0 || count == 0);
  const uint64_t most = kHalf - 1;
  return {base, static_cast<int>(known ? std::min(bytes, most) : most), MPI_BYTE};
}

// As bytes, where both ends must agree on the length without the datatype.
int length_of(Stream& s, uint64_t bytes) {
  if (s.r->options.comm == kOrder) return 1;
  return bytes == FEIGN_UNKNOWN ? 0 : static_cast<int>(std::min<uint64_t>(bytes, kHalf - 1));
}

struct Peer {
  MPI_Comm comm;
  int rank, tag;
};

int number(uint64_t value) {
  return static_cast<int>(static_cast<int64_t>(value) > INT_MAX
                              ? static_cast<int32_t>(static_cast<uint32_t>(value))
                              : static_cast<int64_t>(value));
}

// The other end of a message. Recorded: rank -1 is nobody, -2 anybody; tag -1 any.
bool peer(Stream& s, bool receives, uint8_t rank_at, uint8_t tag_at, Peer& p) {
  const Group* g = s.group(s.args->comm);
  if (g == nullptr) {
    s.skip("its communicator is not known");
    return false;
  }
  const uint64_t recorded = s.value(rank_at);
  const int rank = recorded == FEIGN_UNKNOWN ? -2 : number(recorded);
  const uint64_t tag_recorded = s.value(tag_at);
  int tag = tag_recorded == FEIGN_UNKNOWN ? -1 : number(tag_recorded);
  if (tag > s.r->most_tag) tag %= s.r->most_tag;
  if (rank == -2 && !receives) {
    s.skip("the trace does not tell to whom");
    return false;
  }
  if (tag < 0 && !receives) tag = 0;
  if (g->apart) {
    if (g->comm == MPI_COMM_NULL) {
      s.skip("its communicator does not have this rank");
      return false;
    }
    p.comm = g->comm;
    p.rank = rank == -2   ? MPI_ANY_SOURCE
             : rank == -1 ? MPI_PROC_NULL
                          : g->rank_of(static_cast<uint64_t>(rank));
    p.tag = tag < 0 ? MPI_ANY_TAG : tag;
    if (rank >= 0 && p.rank == MPI_PROC_NULL) {
      s.skip("with a rank that its communicator does not have");
      return false;
    }
    return true;
  }
  // Ranks that share processes: who, whom and the tag are told by the tag.
  if (rank < -1 || tag < 0 || (rank >= 0 && static_cast<size_t>(rank) >= s.r->rank_of.size())) {
    s.refuse(*g);
    return false;
  }
  const uint64_t from = receives ? static_cast<uint64_t>(rank) : static_cast<uint64_t>(s.rank);
  const uint64_t to = receives ? static_cast<uint64_t>(s.rank) : static_cast<uint64_t>(rank);
  uint64_t mixed = g->number;
  for (const uint64_t v : {from, to, static_cast<uint64_t>(tag)})
    mixed = (mixed ^ v) * 0x9E3779B97F4A7C15u ^ mixed >> 29;
  p.comm = s.r->pairs;
  p.rank = rank == -1 ? MPI_PROC_NULL : static_cast<int>(s.r->rank_of[static_cast<size_t>(rank)]);
  p.tag = static_cast<int>((mixed >> 20) % static_cast<uint64_t>(s.r->most_tag));
  return true;
}

// The communicator of a collective call; null if there is none to call it on.
const Group* collective(Stream& s) {
  const Group* g = s.group(s.args->comm);
  if (g == nullptr) {
    s.skip("its communicator is not known");
    return nullptr;
  }
  if (!g->apart) {
    s.refuse(*g);
    return nullptr;
  }
  if (g->comm == MPI_COMM_NULL) {
    s.skip("its communicator does not have this rank");
    return nullptr;
  }
  return g;
}

struct Sum {
  int count;
  MPI_Datatype type;
  MPI_Op op;
};

// Numbers are combined as they were; all else as bits.
Sum sum_of(Stream& s, uint64_t bytes) {
  const Type& t = s.type(s.args->type);
  const uint64_t count = s.value(s.args->count);
  static const MPI_Datatype kWhole[] = {
      MPI_INT,     MPI_LONG,    MPI_LONG_LONG, MPI_UNSIGNED, MPI_UNSIGNED_LONG,     MPI_SHORT,
      MPI_INT32_T, MPI_INT64_T, MPI_UINT32_T,  MPI_UINT64_T, MPI_UNSIGNED_LONG_LONG};
  const bool whole = std::find(std::begin(kWhole), std::end(kWhole), t.type) != std::end(kWhole);
  const bool real = t.type == MPI_DOUBLE || t.type == MPI_FLOAT;
  if (s.r->options.comm == kOrder) return {1, MPI_BYTE, MPI_BOR};
  if ((!whole && !real) || count > INT_MAX || t.size * static_cast<int64_t>(count) > kHalf)
    return {length_of(s, bytes), MPI_BYTE, MPI_BOR};
  const std::string_view name = s.r->text(s.known(s.args->reduction, 0));
  MPI_Op op = MPI_SUM;
  if (name == "MPI_MAX") op = MPI_MAX;
  if (name == "MPI_MIN") op = MPI_MIN;
  if (name == "MPI_PROD") op = MPI_PROD;
  if (whole && name == "MPI_LAND") op = MPI_LAND;
  if (whole && name == "MPI_LOR") op = MPI_LOR;
  if (whole && name == "MPI_BAND") op = MPI_BAND;
  if (whole && name == "MPI_BOR") op = MPI_BOR;
  return {static_cast<int>(count), t.type, op};
}

void begun(Stream& s, int status, MPI_Request request) {
  s.answer(status);
  if (status == MPI_SUCCESS) remember(s, request);
}

// A request whose call is not made.
void stand_in(Stream& s) {
  s.emulate();
  if (s.args->request != kAbsent) remember(s, MPI_REQUEST_NULL, false, true);
}

void send(Stream& s, uint32_t op) {
  Peer p{};
  if (!peer(s, false, s.args->rank, s.args->tag, p)) return;
  const Piece d = piece(s, true, s.a->length, s.args->count, s.args->type);
  MPI_Request q = MPI_REQUEST_NULL;
  switch (op) {
    case FEIGN_MPI_SEND:
    case FEIGN_MPI_BSEND:  // buffered or not, it must not wait for more than it did
      return s.answer(MPI_Send(d.at, d.count, d.type, p.rank, p.tag, p.comm));
    case FEIGN_MPI_SSEND:
      return s.answer(MPI_Ssend(d.at, d.count, d.type, p.rank, p.tag, p.comm));
    case FEIGN_MPI_RSEND:  // that its receive is there cannot be known here
      return s.answer(MPI_Send(d.at, d.count, d.type, p.rank, p.tag, p.comm));
    case FEIGN_MPI_ISSEND:
      return begun(s, MPI_Issend(d.at, d.count, d.type, p.rank, p.tag, p.comm, &q), q);
    case FEIGN_MPI_SEND_INIT:
    case FEIGN_MPI_BSEND_INIT:
    case FEIGN_MPI_RSEND_INIT:
      s.answer(MPI_Send_init(d.at, d.count, d.type, p.rank, p.tag, p.comm, &q));
      if (q != MPI_REQUEST_NULL) remember(s, q, true);
      return;
    case FEIGN_MPI_SSEND_INIT:
      s.answer(MPI_Ssend_init(d.at, d.count, d.type, p.rank, p.tag, p.comm, &q));
      if (q != MPI_REQUEST_NULL) remember(s, q, true);
      return;
    default:
      return begun(s, MPI_Isend(d.at, d.count, d.type, p.rank, p.tag, p.comm, &q), q);
  }
}

void receive(Stream& s, uint32_t op) {
  Peer p{};
  if (!peer(s, true, s.args->rank, s.args->tag, p)) return;
  const Piece d = s.r->options.comm == kOrder
                      ? Piece{s.space.get() + kHalf, 16, MPI_BYTE}
                      : piece(s, false, s.a->length, s.args->count, s.args->type);
  MPI_Request q = MPI_REQUEST_NULL;
  if (op == FEIGN_MPI_RECV)
    return s.answer(MPI_Recv(d.at, d.count, d.type, p.rank, p.tag, p.comm, MPI_STATUS_IGNORE));
  if (op == FEIGN_MPI_RECV_INIT) {
    s.answer(MPI_Recv_init(d.at, d.count, d.type, p.rank, p.tag, p.comm, &q));
    if (q != MPI_REQUEST_NULL) remember(s, q, true);
    return;
  }
  begun(s, MPI_Irecv(d.at, d.count, d.type, p.rank, p.tag, p.comm, &q), q);
}

void send_receive(Stream& s) {
  Peer to{}, from{};
  if (!peer(s, false, s.args->rank, s.args->tag, to) ||
      !peer(s, true, s.args->rank2, s.args->tag2, from))
    return;
  const Piece out = piece(s, true, s.a->length, s.args->count, s.args->type);
  const Piece in = piece(s, false, s.known(s.args->size2, FEIGN_UNKNOWN), s.args->count2,
                         s.args->count2 == kAbsent ? kAbsent : s.args->type2);
  if (to.comm == from.comm)
    return s.answer(MPI_Sendrecv(out.at, out.count, out.type, to.rank, to.tag, in.at, in.count,
                                 in.type, from.rank, from.tag, to.comm, MPI_STATUS_IGNORE));
}

void probe(Stream& s, uint32_t op) {
  // One that found nothing is over at once; one that found something waits until it is there. What
  // is received afterwards says itself from whom.
  const bool waits = op == FEIGN_MPI_PROBE || op == FEIGN_MPI_MPROBE;
  if (!waits && s.known(s.args->flag, 0) == 0) return s.emulate();
  Peer p{};
  if (!peer(s, true, s.args->rank, s.args->tag, p)) return;
  s.answer(MPI_Probe(p.rank, p.tag, p.comm, MPI_STATUS_IGNORE));
}

// The lengths that the others send, or want, where the trace does not tell each rank.
std::vector<int> lengths(const Group& g, int mine, std::vector<int>& at) {
  std::vector<int> all(g.ranks.size());
  at.assign(all.size(), 0);
  MPI_Allgather(&mine, 1, MPI_INT, all.data(), 1, MPI_INT, g.comm);
  // All of them in the space for one rank's messages, one over the other if need be.
  int64_t sum = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    if (sum + all[i] > kHalf) sum = 0;
    at[i] = static_cast<int>(sum);
    sum += all[i];
  }
  return all;
}

void collect(Stream& s, uint32_t op) {
  const Group* g = collective(s);
  if (g == nullptr) return;
  char *out = s.space.get(), *in = out + kHalf;
  const MPI_Comm comm = g->comm;
  const Args& x = *s.args;
  const int bytes = length_of(s, s.a->length);
  const int got = length_of(s, s.known(x.size2, s.a->length));
  const int size = static_cast<int>(g->ranks.size());
  int root = 0;
  if (x.rank != kAbsent) {
    const uint64_t recorded = s.value(x.rank);
    root = recorded == FEIGN_UNKNOWN ? 0 : g->rank_of(recorded);
    if (root < 0) return s.skip("its root is not in its communicator");
  }
  const bool is_root = g->rank_of(static_cast<uint64_t>(s.rank)) == root;
  MPI_Request q = MPI_REQUEST_NULL;
  std::vector<int> at;
  // Each rank's part must lie in the space.
  const auto each = [&](int n) { return std::min<int>(n, static_cast<int>((kHalf - 1) / size)); };
  switch (op) {
    case FEIGN_MPI_BARRIER:
      return s.answer(MPI_Barrier(comm));
    case FEIGN_MPI_IBARRIER:
      return begun(s, MPI_Ibarrier(comm, &q), q);
    case FEIGN_MPI_BCAST:
    case FEIGN_MPI_IBCAST: {
      Piece d = piece(s, true, s.a->length, x.count, x.type);
      if (s.r->options.comm == kOrder) d = {out, 1, MPI_BYTE};
      if (op == FEIGN_MPI_BCAST) return s.answer(MPI_Bcast(d.at, d.count, d.type, root, comm));
      return begun(s, MPI_Ibcast(d.at, d.count, d.type, root, comm, &q), q);
    }
    case FEIGN_MPI_REDUCE: {
      const Sum d = sum_of(s, s.a->length);
      return s.answer(MPI_Reduce(out, in, d.count, d.type, d.op, root, comm));
    }
    case FEIGN_MPI_IREDUCE: {
      const Sum d = sum_of(s, s.a->length);
      return begun(s, MPI_Ireduce(out, in, d.count, d.type, d.op, root, comm, &q), q);
    }
    case FEIGN_MPI_ALLREDUCE: {
      const Sum d = sum_of(s, s.a->length);
      return s.answer(MPI_Allreduce(out, in, d.count, d.type, d.op, comm));
    }
    case FEIGN_MPI_IALLREDUCE: {
      const Sum d = sum_of(s, s.a->length);
      return begun(s, MPI_Iallreduce(out, in, d.count, d.type, d.op, comm, &q), q);
    }
    case FEIGN_MPI_SCAN: {
      const Sum d = sum_of(s, s.a->length);
      return s.answer(MPI_Scan(out, in, d.count, d.type, d.op, comm));
    }
    case FEIGN_MPI_EXSCAN: {
      const Sum d = sum_of(s, s.a->length);
      return s.answer(MPI_Exscan(out, in, d.count, d.type, d.op, comm));
    }
    case FEIGN_MPI_ISCAN: {
      const Sum d = sum_of(s, s.a->length);
      return begun(s, MPI_Iscan(out, in, d.count, d.type, d.op, comm, &q), q);
    }
    case FEIGN_MPI_IEXSCAN: {
      const Sum d = sum_of(s, s.a->length);
      return begun(s, MPI_Iexscan(out, in, d.count, d.type, d.op, comm, &q), q);
    }
    case FEIGN_MPI_REDUCE_SCATTER_BLOCK: {
      const int n = each(got);
      return s.answer(MPI_Reduce_scatter_block(out, in, n, MPI_BYTE, MPI_BOR, comm));
    }
    case FEIGN_MPI_REDUCE_SCATTER: {
      const std::vector<int> n = lengths(*g, each(got), at);
      return s.answer(MPI_Reduce_scatter(out, in, n.data(), MPI_BYTE, MPI_BOR, comm));
    }
    case FEIGN_MPI_ALLGATHER: {
      const int n = each(bytes);
      return s.answer(MPI_Allgather(out, n, MPI_BYTE, in, n, MPI_BYTE, comm));
    }
    case FEIGN_MPI_IALLGATHER: {
      const int n = each(bytes);
      return begun(s, MPI_Iallgather(out, n, MPI_BYTE, in, n, MPI_BYTE, comm, &q), q);
    }
    case FEIGN_MPI_ALLGATHERV: {
      const int n = each(bytes);
      const std::vector<int> all = lengths(*g, n, at);
      return s.answer(MPI_Allgatherv(out, n, MPI_BYTE, in, all.data(), at.data(), MPI_BYTE, comm));
    }
    case FEIGN_MPI_ALLTOALL: {
      const int n = each(bytes);
      return s.answer(MPI_Alltoall(out, n, MPI_BYTE, in, n, MPI_BYTE, comm));
    }
    case FEIGN_MPI_IALLTOALL: {
      const int n = each(bytes);
      return begun(s, MPI_Ialltoall(out, n, MPI_BYTE, in, n, MPI_BYTE, comm, &q), q);
    }
    case FEIGN_MPI_ALLTOALLV:
    case FEIGN_MPI_ALLTOALLW: {
      // Of all that a rank sends, each gets the same share; the recorded list of counts says more.
      std::vector<int> outs(g->ranks.size(), each(bytes) / size), ins(outs.size()), out_at(outs);
      const Type& t = s.type(x.type);
      for (uint32_t i = 0; x.list != kAbsent && i < outs.size() && x.list + i < s.a->value_count;
           ++i) {
        const uint64_t n = s.a->values[x.list + i];
        if (n <= INT_MAX && t.size > 0)
          outs[i] = each(length_of(s, n * static_cast<uint64_t>(t.size)));
      }
      MPI_Alltoall(outs.data(), 1, MPI_INT, ins.data(), 1, MPI_INT, comm);
      int sum = 0, sum_in = 0;
      at.assign(outs.size(), 0);
      for (size_t i = 0; i < outs.size(); ++i) {
        out_at[i] = sum;
        at[i] = sum_in;
        sum += outs[i];
        sum_in += ins[i];
      }
      return s.answer(MPI_Alltoallv(out, outs.data(), out_at.data(), MPI_BYTE, in, ins.data(),
                                    at.data(), MPI_BYTE, comm));
    }
    case FEIGN_MPI_GATHER: {
      const int n = each(bytes), m = each(is_root ? got : 0);
      return s.answer(
          MPI_Gather(out, n, MPI_BYTE, in, is_root ? std::max(m, n) : 0, MPI_BYTE, root, comm));
    }
    case FEIGN_MPI_IGATHER: {
      const int n = each(bytes);
      return begun(s, MPI_Igather(out, n, MPI_BYTE, in, n, MPI_BYTE, root, comm, &q), q);
    }
    case FEIGN_MPI_GATHERV: {
      const int n = each(bytes);
      const std::vector<int> all = lengths(*g, n, at);
      return s.answer(
          MPI_Gatherv(out, n, MPI_BYTE, in, all.data(), at.data(), MPI_BYTE, root, comm));
    }
    case FEIGN_MPI_SCATTER: {
      const int n = each(is_root ? bytes : got);
      return s.answer(MPI_Scatter(out, n, MPI_BYTE, in, n, MPI_BYTE, root, comm));
    }
    case FEIGN_MPI_ISCATTER: {
      const int n = each(is_root ? bytes : got);
      return begun(s, MPI_Iscatter(out, n, MPI_BYTE, in, n, MPI_BYTE, root, comm, &q), q);
    }
    case FEIGN_MPI_SCATTERV: {
      const int n = each(got);
      const std::vector<int> all = lengths(*g, n, at);
      return s.answer(
          MPI_Scatterv(out, all.data(), at.data(), MPI_BYTE, in, n, MPI_BYTE, root, comm));
    }
    case FEIGN_MPI_COMM_DUP:
    case FEIGN_MPI_COMM_DUP_WITH_INFO:
    case FEIGN_MPI_COMM_IDUP:
    case FEIGN_MPI_COMM_CREATE:
    case FEIGN_MPI_COMM_SPLIT:
    case FEIGN_MPI_COMM_SPLIT_TYPE:
    case FEIGN_MPI_CART_CREATE:
    case FEIGN_MPI_CART_SUB:
    case FEIGN_MPI_GRAPH_CREATE:
    case FEIGN_MPI_DIST_GRAPH_CREATE:
    case FEIGN_MPI_DIST_GRAPH_CREATE_ADJACENT: {
      // What they made is there since before the start; to make another costs what it cost.
      MPI_Comm made = MPI_COMM_NULL;
      s.answer(MPI_Comm_dup(comm, &made));
      if (made != MPI_COMM_NULL) MPI_Comm_free(&made);
      if (x.request != kAbsent) remember(s, MPI_REQUEST_NULL, false, true);
      return;
    }
    default:
      // Of other collectives only the waiting for all is left.
      if (x.request != kAbsent) return begun(s, MPI_Ibarrier(comm, &q), q);
      return s.answer(MPI_Barrier(comm));
  }
}

// ---- requests -----------------------------------------------------------------------------------

// Waits for requests by their numbers; those that nobody knows were not begun here.
void wait_for(Stream& s, const std::vector<uint64_t>& numbers) {
  Owner& o = *s.owner;
  std::vector<MPI_Request> list;
  {
    const std::lock_guard lock(o.mutex);
    for (const uint64_t n : numbers) {
      const auto at = o.requests.find(n);
      if (at == o.requests.end()) continue;
      if (at->second.request != MPI_REQUEST_NULL) list.push_back(at->second.request);
      if (!at->second.persistent) o.requests.erase(at);
    }
  }
  if (list.empty()) return s.emulate();
  s.answer(list.size() == 1
               ? MPI_Wait(list.data(), MPI_STATUS_IGNORE)
               : MPI_Waitall(static_cast<int>(list.size()), list.data(), MPI_STATUSES_IGNORE));
}

std::vector<uint64_t> listed(const Stream& s, bool completed_only) {
  std::vector<uint64_t> numbers;
  if (s.args->list == kAbsent) return numbers;
  for (uint32_t i = s.args->list; i < s.a->value_count; ++i) {
    const uint64_t n = s.a->values[i];
    if (n == FEIGN_UNKNOWN || (completed_only && !(n & kCompleted))) continue;
    numbers.push_back(n & ~kCompleted);
  }
  return numbers;
}

// Whether these are over is looked at, and nothing is made of the answer.
void look_at(Stream& s, const std::vector<uint64_t>& numbers) {
  Owner& o = *s.owner;
  const std::lock_guard lock(o.mutex);
  for (const uint64_t n : numbers) {
    const auto at = o.requests.find(n);
    int flag = 0;
    if (at != o.requests.end() && at->second.request != MPI_REQUEST_NULL)
      MPI_Request_get_status(at->second.request, &flag, MPI_STATUS_IGNORE);
  }
  s.outcome->result = s.a->result;
}

void wait_any(Stream& s) {
  const std::vector<uint64_t> done = listed(s, true);
  if (!done.empty()) return wait_for(s, done);
  Owner& o = *s.owner;
  std::vector<uint64_t> numbers;
  std::vector<MPI_Request> list;
  {
    const std::lock_guard lock(o.mutex);
    for (const uint64_t n : listed(s, false)) {
      const auto at = o.requests.find(n);
      if (at == o.requests.end() || at->second.request == MPI_REQUEST_NULL) continue;
      numbers.push_back(n);
      list.push_back(at->second.request);
    }
  }
  if (list.empty()) return s.emulate();
  int index = MPI_UNDEFINED;
  s.answer(MPI_Waitany(static_cast<int>(list.size()), list.data(), &index, MPI_STATUS_IGNORE));
  if (index == MPI_UNDEFINED) return;
  const std::lock_guard lock(o.mutex);
  const auto at = o.requests.find(numbers[static_cast<size_t>(index)]);
  if (at != o.requests.end() && !at->second.persistent) o.requests.erase(at);
}

void start(Stream& s, const std::vector<uint64_t>& numbers) {
  Owner& o = *s.owner;
  std::vector<MPI_Request> list;
  {
    const std::lock_guard lock(o.mutex);
    for (const uint64_t n : numbers) {
      const auto at = o.requests.find(n);
      if (at != o.requests.end() && at->second.persistent) list.push_back(at->second.request);
    }
  }
  if (list.empty()) return s.emulate();
  s.answer(MPI_Startall(static_cast<int>(list.size()), list.data()));
}

void request(Stream& s, uint32_t op) {
  const uint64_t one = s.value(s.args->request);
  const uint64_t flag = s.value(s.args->flag);
  switch (op) {
    case FEIGN_MPI_WAIT:
      return wait_for(s, {one});
    case FEIGN_MPI_WAITALL:
      return wait_for(s, listed(s, false));
    case FEIGN_MPI_WAITANY:
    case FEIGN_MPI_WAITSOME:
      return wait_any(s);
    case FEIGN_MPI_TEST:
      if (flag != FEIGN_UNKNOWN && flag != 0) return wait_for(s, {one});
      return look_at(s, {one});
    case FEIGN_MPI_TESTALL:
      if (flag != FEIGN_UNKNOWN && flag != 0) return wait_for(s, listed(s, false));
      return look_at(s, listed(s, false));
    case FEIGN_MPI_TESTANY:
    case FEIGN_MPI_TESTSOME: {
      const std::vector<uint64_t> done = listed(s, true);
      if (!done.empty()) return wait_for(s, done);
      return look_at(s, listed(s, false));
    }
    case FEIGN_MPI_START:
      return start(s, {one});
    case FEIGN_MPI_STARTALL:
      return start(s, listed(s, false));
    case FEIGN_MPI_REQUEST_FREE: {
      Owner& o = *s.owner;
      const std::lock_guard lock(o.mutex);
      const auto at = o.requests.find(one);
      if (at == o.requests.end() || at->second.request == MPI_REQUEST_NULL) return s.emulate();
      s.answer(MPI_Request_free(&at->second.request));
      o.requests.erase(at);
      return;
    }
    case FEIGN_MPI_CANCEL: {
      Owner& o = *s.owner;
      const std::lock_guard lock(o.mutex);
      const auto at = o.requests.find(one);
      if (at == o.requests.end() || at->second.request == MPI_REQUEST_NULL) return s.emulate();
      return s.answer(MPI_Cancel(&at->second.request));
    }
    default:
      return look_at(s, {one});
  }
}

// ---- windows ------------------------------------------------------------------------------------

void window(Stream& s, uint32_t op) {
  Owner& o = *s.owner;
  const Args& x = *s.args;
  const bool makes = op == FEIGN_MPI_WIN_CREATE || op == FEIGN_MPI_WIN_ALLOCATE ||
                     op == FEIGN_MPI_WIN_ALLOCATE_SHARED || op == FEIGN_MPI_WIN_CREATE_DYNAMIC;
  const auto name = static_cast<uint32_t>(s.known(x.win, 0));
  if (makes) {
    const Group* g = collective(s);
    if (g == nullptr) return;
    Window w;
    w.group = g;
    uint64_t size = std::min<uint64_t>(s.known(x.other, 0), uint64_t{1} << 32);
    w.unit = std::clamp<uint64_t>(s.known(x.other2, 1), 1, 1 << 20);
    w.sizes.resize(g->ranks.size());
    MPI_Allgather(&size, 1, MPI_UINT64_T, w.sizes.data(), 1, MPI_UINT64_T, g->comm);
    void* base = nullptr;
    s.answer(
        MPI_Win_allocate(static_cast<MPI_Aint>(size), 1, MPI_INFO_NULL, g->comm, &base, &w.win));
    if (w.win == MPI_WIN_NULL) return;
    MPI_Win_set_errhandler(w.win, MPI_ERRORS_RETURN);
    const std::lock_guard lock(o.mutex);
    o.windows[name] = std::move(w);
    return;
  }
  Window* w = nullptr;
  {
    const std::lock_guard lock(o.mutex);
    const auto at = o.windows.find(name);
    if (at != o.windows.end()) w = &at->second;
  }
  if (w == nullptr) return s.skip("its window is not known");
  const int target = x.rank != kAbsent ? w->group->rank_of(s.known(x.rank, UINT32_MAX)) : 0;
  if (target < 0) return s.skip("its target is not in its window");
  switch (op) {
    case FEIGN_MPI_WIN_FREE: {
      s.answer(MPI_Win_free(&w->win));
      const std::lock_guard lock(o.mutex);
      o.windows.erase(name);
      return;
    }
    case FEIGN_MPI_WIN_FENCE:
      return s.answer(MPI_Win_fence(0, w->win));
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
    case FEIGN_MPI_ACCUMULATE:
    case FEIGN_MPI_RPUT:
    case FEIGN_MPI_RGET:
    case FEIGN_MPI_RACCUMULATE: {
      // Only what lies in the target's window.
      const uint64_t there = w->sizes[static_cast<size_t>(target)];
      const uint64_t bytes = static_cast<uint64_t>(length_of(s, s.a->length));
      const uint64_t at = s.known(x.offset, 0);
      if (at > there / w->unit || bytes > there - at * w->unit)
        return s.skip("outside of its target's window");
      const int n = static_cast<int>(bytes);
      const auto place = static_cast<MPI_Aint>(at * w->unit);
      char *out = s.space.get(), *in = out + kHalf;
      if (x.request != kAbsent) remember(s, MPI_REQUEST_NULL, false, true);
      if (op == FEIGN_MPI_PUT || op == FEIGN_MPI_RPUT)
        return s.answer(MPI_Put(out, n, MPI_BYTE, target, place, n, MPI_BYTE, w->win));
      if (op == FEIGN_MPI_GET || op == FEIGN_MPI_RGET)
        return s.answer(MPI_Get(in, n, MPI_BYTE, target, place, n, MPI_BYTE, w->win));
      return s.answer(
          MPI_Accumulate(out, n, MPI_BYTE, target, place, n, MPI_BYTE, MPI_BOR, w->win));
    }
    default:
      return s.emulate();
  }
}

}  // namespace

void remember(Stream& s, MPI_Request request, bool persistent, bool stand_in) {
  if (s.args->request == kAbsent) return;
  const uint64_t n = s.value(s.args->request);
  Owner& o = *s.owner;
  const std::lock_guard lock(o.mutex);
  o.requests[n] = {request, persistent, stand_in};
}

void do_mpi(Stream& s, uint32_t op) {
  // What failed then was not done; and whoever waited for it then does not wait for it now.
  if (s.a->result < 0) return s.emulate();
  const Args& x = *s.args;
  const bool none = s.r->options.comm == kNone;
  switch (op) {
    case FEIGN_MPI_SEND:
    case FEIGN_MPI_BSEND:
    case FEIGN_MPI_SSEND:
    case FEIGN_MPI_RSEND:
    case FEIGN_MPI_ISEND:
    case FEIGN_MPI_IBSEND:
    case FEIGN_MPI_ISSEND:
    case FEIGN_MPI_IRSEND:
    case FEIGN_MPI_SEND_INIT:
    case FEIGN_MPI_BSEND_INIT:
    case FEIGN_MPI_SSEND_INIT:
    case FEIGN_MPI_RSEND_INIT:
      return none ? stand_in(s) : send(s, op);
    case FEIGN_MPI_RECV:
    case FEIGN_MPI_IRECV:
    case FEIGN_MPI_RECV_INIT:
      return none ? stand_in(s) : receive(s, op);
    case FEIGN_MPI_SENDRECV:
    case FEIGN_MPI_SENDRECV_REPLACE:
      return none ? stand_in(s) : send_receive(s);
    case FEIGN_MPI_PROBE:
    case FEIGN_MPI_IPROBE:
    case FEIGN_MPI_MPROBE:
    case FEIGN_MPI_IMPROBE:
      return none ? s.emulate() : probe(s, op);
    case FEIGN_MPI_WAIT:
    case FEIGN_MPI_WAITALL:
    case FEIGN_MPI_WAITANY:
    case FEIGN_MPI_WAITSOME:
    case FEIGN_MPI_TEST:
    case FEIGN_MPI_TESTALL:
    case FEIGN_MPI_TESTANY:
    case FEIGN_MPI_TESTSOME:
    case FEIGN_MPI_START:
    case FEIGN_MPI_STARTALL:
    case FEIGN_MPI_REQUEST_FREE:
    case FEIGN_MPI_CANCEL:
    case FEIGN_MPI_REQUEST_GET_STATUS:
      return request(s, op);  // of layer mpiio, too
    case FEIGN_MPI_TYPE_COMMIT: {
      bool made = false;
      MPI_Datatype type = build_type(s.r->text(s.known(x.type, 0)), made);
      if (!made) return s.emulate();
      MPI_Type_free(&type);
      s.outcome->result = 0;
      return;
    }
    default:
      break;
  }
  if (none) return stand_in(s);
  if (x.win != kAbsent) return window(s, op);
  const feign_op_info* info = s.r->host->op_info(s.r->host, op);
  const std::string_view name = info->name;
  // Calls on a communicator that all of it make.
  static constexpr std::string_view kCollective[] = {
      "MPI_Barrier",    "MPI_Ibarrier",  "MPI_Bcast",    "MPI_Ibcast",    "MPI_Gather",
      "MPI_Igather",    "MPI_Scatter",   "MPI_Iscatter", "MPI_Allgather", "MPI_Iallgather",
      "MPI_Alltoall",   "MPI_Ialltoall", "MPI_Reduce",   "MPI_Ireduce",   "MPI_Allreduce",
      "MPI_Iallreduce", "MPI_Scan",      "MPI_Iscan",    "MPI_Exscan",    "MPI_Iexscan",
      "MPI_Neighbor_",  "MPI_Ineighbor_"};
  switch (op) {
    case FEIGN_MPI_COMM_DUP:
    case FEIGN_MPI_COMM_DUP_WITH_INFO:
    case FEIGN_MPI_COMM_IDUP:
    case FEIGN_MPI_COMM_CREATE:
    case FEIGN_MPI_COMM_SPLIT:
    case FEIGN_MPI_COMM_SPLIT_TYPE:
    case FEIGN_MPI_CART_CREATE:
    case FEIGN_MPI_CART_SUB:
    case FEIGN_MPI_GRAPH_CREATE:
    case FEIGN_MPI_DIST_GRAPH_CREATE:
    case FEIGN_MPI_DIST_GRAPH_CREATE_ADJACENT:
      return collect(s, op);
    case FEIGN_MPI_REDUCE_LOCAL:
      return s.emulate();
    default:
      for (const std::string_view prefix : kCollective)
        if (name.starts_with(prefix) && x.comm != kAbsent) return collect(s, op);
      return s.emulate();
  }
}

}  // namespace feign::mpi
