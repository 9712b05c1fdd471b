// SPDX-License-Identifier: MIT
// Layer mpi: what all ranks of a communicator call. Lengths are bytes, but where numbers are
// combined. Of calls with a length for each member, all ranks must have the same picture: from
// the trace, if it tells all of them (Replayer.lists), else they ask each other first.
#include <algorithm>
#include <climits>
#include <span>

#include "layers/mpi_ops.h"
#include "replayers/mpi/state.h"

namespace feign::mpi {
namespace {

int most_each(const Stream& s, int n) {
  return static_cast<int>(std::min<int64_t>((s.r->half - 1) / std::max(n, 1), INT_MAX));
}
// Where places of parts are told, too: an int has them.
int most_placed(int n) { return INT_MAX / std::max(n, 1); }

// Lengths and places of parts, one after the other, of what is sent and what is received: kept
// until the call is over.
struct Parts {
  std::unique_ptr<int[]> all;
  int *out = nullptr, *out_at = nullptr, *in = nullptr, *in_at = nullptr;
  Parts(std::span<const int> outs, std::span<const int> ins)
      : all(new int[2 * (outs.size() + ins.size()) + 1]) {
    out = all.get();
    out_at = out + outs.size();
    in = out_at + outs.size();
    in_at = in + ins.size();
    place(outs, out, out_at);
    place(ins, in, in_at);
  }

 private:
  static void place(std::span<const int> sizes, int* to, int* at) {
    int sum = 0;
    for (size_t i = 0; i < sizes.size(); ++i) {
      to[i] = sizes[i];
      at[i] = sum;
      sum += sizes[i];
    }
  }
};

// Entries of the recorded list, in units of `unit` bytes; empty if it has not as many.
std::vector<int> listed(const Stream& s, int from, int n, int64_t unit) {
  const uint32_t first = s.args->list + static_cast<uint32_t>(from);
  std::vector<int> sizes;
  if (s.args->list == kAbsent || unit <= 0 || s.a->value_count < first + static_cast<uint32_t>(n))
    return sizes;
  for (int i = 0; i < n; ++i) {
    const uint64_t count = s.a->values[first + static_cast<uint32_t>(i)];
    if (count > INT_MAX) return {};
    sizes.push_back(length_of(s, count * static_cast<uint64_t>(unit),
                              std::min(most_each(s, n), most_placed(n))));
  }
  return sizes;
}

// One length for each member, where the trace does not tell each rank.
std::vector<int> asked(const Group& g, int mine) {
  std::vector<int> all(static_cast<size_t>(g.size));
  MPI_Allgather(&mine, 1, MPI_INT, all.data(), 1, MPI_INT, g.comm);
  return all;
}

// What each sends to each: known, or asked for from `outs`.
struct Both {
  std::vector<int> outs, ins;
};
Both both(Stream& s, const Group& g, int total, int outs, int ins, bool neighbours) {
  // The list of alltoallw has bytes.
  const auto unit = [&](uint8_t at) { return at == kAbsent ? int64_t{1} : s.type(at).size; };
  Both b{listed(s, 0, outs, unit(s.args->type)), {}};
  b.ins = listed(s, outs, ins, unit(s.args->type2 != kAbsent ? s.args->type2 : s.args->type));
  if (s.r->lists && static_cast<int>(b.outs.size()) == outs &&
      static_cast<int>(b.ins.size()) == ins)
    return b;
  // Of all that a rank sends, each gets the same share.
  if (static_cast<int>(b.outs.size()) != outs)
    b.outs.assign(static_cast<size_t>(outs),
                  std::min({total / std::max(outs, 1), most_each(s, outs), most_placed(outs)}));
  b.ins.assign(static_cast<size_t>(ins), 0);
  if (neighbours)
    MPI_Neighbor_alltoall(b.outs.data(), 1, MPI_INT, b.ins.data(), 1, MPI_INT, g.comm);
  else
    MPI_Alltoall(b.outs.data(), 1, MPI_INT, b.ins.data(), 1, MPI_INT, g.comm);
  return b;
}

// The root, as MPI wants it here.
bool root_of(Stream& s, const Group& g, int& root, bool& is_root) {
  const uint64_t recorded = s.value(s.args->rank);
  root = recorded == FEIGN_UNKNOWN ? 0 : number(recorded);
  is_root = root == s.rank;
  if (g.first != 0 && recorded != FEIGN_UNKNOWN) {
    if (is_root)
      root = MPI_ROOT;
    else
      root = root < 0 ? MPI_PROC_NULL : g.rank_of(recorded);
    return true;
  }
  if (recorded != FEIGN_UNKNOWN) root = g.rank_of(recorded);
  is_root = g.rank_of(static_cast<uint64_t>(s.rank)) == root;
  return root >= 0;
}

void reduce(Stream& s, uint32_t op, const Group& g, int root) {
  char *out = s.space.get(), *in = out + s.r->half;
  const Sum d = sum_of(s, s.a->length);
  MPI_Request q = MPI_REQUEST_NULL;
  int status = MPI_SUCCESS;
  switch (op) {
    case FEIGN_MPI_ALLREDUCE:
      return s.answer(MPI_Allreduce(out, in, d.count, d.type, d.op, g.comm));
    case FEIGN_MPI_REDUCE:
      return s.answer(MPI_Reduce(out, in, d.count, d.type, d.op, root, g.comm));
    case FEIGN_MPI_SCAN:
      return s.answer(MPI_Scan(out, in, d.count, d.type, d.op, g.comm));
    case FEIGN_MPI_EXSCAN:
      return s.answer(MPI_Exscan(out, in, d.count, d.type, d.op, g.comm));
    case FEIGN_MPI_IALLREDUCE:
      status = MPI_Iallreduce(out, in, d.count, d.type, d.op, g.comm, &q);
      break;
    case FEIGN_MPI_IREDUCE:
      status = MPI_Ireduce(out, in, d.count, d.type, d.op, root, g.comm, &q);
      break;
    case FEIGN_MPI_ISCAN:
      status = MPI_Iscan(out, in, d.count, d.type, d.op, g.comm, &q);
      break;
    default:
      status = MPI_Iexscan(out, in, d.count, d.type, d.op, g.comm, &q);
  }
  begun(s, status, q);
}

void broadcast(Stream& s, uint32_t op, const Group& g, int root) {
  Piece d = piece(s, true, s.a->length, s.args->count, s.args->type);
  if (s.r->options.comm == kOrder) d = {s.space.get(), 1, MPI_BYTE};
  if (op == FEIGN_MPI_BCAST) return s.answer(MPI_Bcast(d.at, d.count, d.type, root, g.comm));
  MPI_Request q = MPI_REQUEST_NULL;
  const int status = MPI_Ibcast(d.at, d.count, d.type, root, g.comm, &q);
  begun(s, status, q);
}

// With those that are next to it: the communicator knows who they are.
void neighbours(Stream& s, uint32_t op, const Group& g) {
  char *out = s.space.get(), *in = out + s.r->half;
  const int bytes = length_of(s, s.a->length, most_each(s, std::max(g.in, g.out)));
  MPI_Request q = MPI_REQUEST_NULL;
  switch (op) {
    case FEIGN_MPI_NEIGHBOR_ALLGATHER:
      return s.answer(MPI_Neighbor_allgather(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, g.comm));
    case FEIGN_MPI_INEIGHBOR_ALLGATHER: {
      const int status =
          MPI_Ineighbor_allgather(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, g.comm, &q);
      return begun(s, status, q);
    }
    case FEIGN_MPI_NEIGHBOR_ALLTOALL:
    case FEIGN_MPI_INEIGHBOR_ALLTOALL: {
      // The length recorded is that of one.
      if (op == FEIGN_MPI_NEIGHBOR_ALLTOALL)
        return s.answer(MPI_Neighbor_alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, g.comm));
      const int status =
          MPI_Ineighbor_alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, g.comm, &q);
      return begun(s, status, q);
    }
    case FEIGN_MPI_NEIGHBOR_ALLGATHERV:
    case FEIGN_MPI_INEIGHBOR_ALLGATHERV: {
      std::vector<int> ins =
          listed(s, 0, g.in, s.args->type2 != kAbsent ? s.type(s.args->type2).size : 0);
      if (!s.r->lists || static_cast<int>(ins.size()) != g.in) {
        ins.assign(static_cast<size_t>(g.in), 0);
        MPI_Neighbor_allgather(&bytes, 1, MPI_INT, ins.data(), 1, MPI_INT, g.comm);
      }
      Parts p({}, ins);
      if (op == FEIGN_MPI_NEIGHBOR_ALLGATHERV)
        return s.answer(
            MPI_Neighbor_allgatherv(out, bytes, MPI_BYTE, in, p.in, p.in_at, MPI_BYTE, g.comm));
      const int status =
          MPI_Ineighbor_allgatherv(out, bytes, MPI_BYTE, in, p.in, p.in_at, MPI_BYTE, g.comm, &q);
      return begun(s, status, q, std::move(p.all));
    }
    default: {
      const Both b = both(s, g, length_of(s, s.a->length), g.out, g.in, true);
      Parts p(b.outs, b.ins);
      if (op == FEIGN_MPI_NEIGHBOR_ALLTOALLV || op == FEIGN_MPI_NEIGHBOR_ALLTOALLW)
        return s.answer(MPI_Neighbor_alltoallv(out, p.out, p.out_at, MPI_BYTE, in, p.in, p.in_at,
                                               MPI_BYTE, g.comm));
      const int status = MPI_Ineighbor_alltoallv(out, p.out, p.out_at, MPI_BYTE, in, p.in, p.in_at,
                                                 MPI_BYTE, g.comm, &q);
      return begun(s, status, q, std::move(p.all));
    }
  }
}

// A call that its communicator can make.
void collect_on(Stream& s, const Group* g, uint32_t op, Does does) {
  char *out = s.space.get(), *in = out + s.r->half;
  const MPI_Comm comm = g->comm;
  const Args& x = *s.args;
  // Of two groups, those of the other one.
  const int size = g->size;
  // The same on all of them, or what one sends would not be what another gets.
  const int most = most_each(s, std::max(size, static_cast<int>(g->ranks.size())));
  int root = 0;
  bool is_root = false;
  if (does == Does::kMakeComm) {
    // What they made is there since before the start; to make another costs what it cost. Where
    // they do not wait for each other in the call, they do in the one that ends its request.
    if (x.request != kAbsent) {
      MPI_Request all_there = MPI_REQUEST_NULL;
      const int status = MPI_Ibarrier(comm, &all_there);
      return begun(s, status, all_there);
    }
    MPI_Comm made = MPI_COMM_NULL;
    s.answer(MPI_Comm_dup(comm, &made));
    if (made != MPI_COMM_NULL) MPI_Comm_free(&made);
    return;
  }
  if (does == Does::kNeighbours && g->in + g->out != 0) return neighbours(s, op, *g);
  if (x.rank != kAbsent && !root_of(s, *g, root, is_root))
    return s.skip("its root is not in its communicator");
  switch (op) {
    case FEIGN_MPI_BCAST:
    case FEIGN_MPI_IBCAST:
      return broadcast(s, op, *g, root);
    case FEIGN_MPI_REDUCE:
    case FEIGN_MPI_IREDUCE:
    case FEIGN_MPI_ALLREDUCE:
    case FEIGN_MPI_IALLREDUCE:
    case FEIGN_MPI_SCAN:
    case FEIGN_MPI_ISCAN:
    case FEIGN_MPI_EXSCAN:
    case FEIGN_MPI_IEXSCAN:
      return reduce(s, op, *g, root);
    default:
      break;
  }
  // Of what each rank sends, or gets.
  const int bytes = length_of(s, s.a->length, most);
  const int got = length_of(s, s.known(x.size2, s.a->length), most);
  // Within one group as much comes from each as goes to each; of two groups each sends its own.
  const int each = g->first != 0 ? got : bytes;
  MPI_Request q = MPI_REQUEST_NULL;
  int status = MPI_SUCCESS;
  const auto size_of = [&](uint8_t type) { return type != kAbsent ? s.type(type).size : 0; };
  switch (op) {
    case FEIGN_MPI_BARRIER:
      return s.answer(MPI_Barrier(comm));
    case FEIGN_MPI_IBARRIER:
      status = MPI_Ibarrier(comm, &q);
      return begun(s, status, q);
    case FEIGN_MPI_REDUCE_SCATTER_BLOCK:
      return s.answer(MPI_Reduce_scatter_block(out, in, got, MPI_BYTE, MPI_BOR, comm));
    case FEIGN_MPI_IREDUCE_SCATTER_BLOCK:
      status = MPI_Ireduce_scatter_block(out, in, got, MPI_BYTE, MPI_BOR, comm, &q);
      return begun(s, status, q);
    case FEIGN_MPI_REDUCE_SCATTER:
    case FEIGN_MPI_IREDUCE_SCATTER: {
      int own = 0;
      MPI_Comm_size(comm, &own);
      std::vector<int> all = listed(s, 0, own, size_of(x.type));
      if (!s.r->lists || all.empty()) all = asked(*g, got);
      Parts p(all, {});
      if (op == FEIGN_MPI_REDUCE_SCATTER)
        return s.answer(MPI_Reduce_scatter(out, in, p.out, MPI_BYTE, MPI_BOR, comm));
      status = MPI_Ireduce_scatter(out, in, p.out, MPI_BYTE, MPI_BOR, comm, &q);
      return begun(s, status, q, std::move(p.all));
    }
    case FEIGN_MPI_ALLGATHER:
      return s.answer(MPI_Allgather(out, bytes, MPI_BYTE, in, each, MPI_BYTE, comm));
    case FEIGN_MPI_IALLGATHER:
      status = MPI_Iallgather(out, bytes, MPI_BYTE, in, each, MPI_BYTE, comm, &q);
      return begun(s, status, q);
    case FEIGN_MPI_ALLGATHERV:
    case FEIGN_MPI_IALLGATHERV: {
      std::vector<int> all = listed(s, 0, size, size_of(x.type2 != kAbsent ? x.type2 : x.type));
      int mine = bytes;
      if (!s.r->lists || all.empty())
        all = asked(*g, bytes);
      else if (g->first == 0)
        mine = all[static_cast<size_t>(g->rank_of(static_cast<uint64_t>(s.rank)))];
      Parts p({}, all);
      if (op == FEIGN_MPI_ALLGATHERV)
        return s.answer(MPI_Allgatherv(out, mine, MPI_BYTE, in, p.in, p.in_at, MPI_BYTE, comm));
      status = MPI_Iallgatherv(out, mine, MPI_BYTE, in, p.in, p.in_at, MPI_BYTE, comm, &q);
      return begun(s, status, q, std::move(p.all));
    }
    case FEIGN_MPI_ALLTOALL:
      return s.answer(MPI_Alltoall(out, bytes, MPI_BYTE, in, each, MPI_BYTE, comm));
    case FEIGN_MPI_IALLTOALL:
      status = MPI_Ialltoall(out, bytes, MPI_BYTE, in, each, MPI_BYTE, comm, &q);
      return begun(s, status, q);
    case FEIGN_MPI_ALLTOALLV:
    case FEIGN_MPI_ALLTOALLW:
    case FEIGN_MPI_IALLTOALLV:
    case FEIGN_MPI_IALLTOALLW: {
      const Both b = both(s, *g, length_of(s, s.a->length), size, size, false);
      Parts p(b.outs, b.ins);
      if (x.request == kAbsent)
        return s.answer(
            MPI_Alltoallv(out, p.out, p.out_at, MPI_BYTE, in, p.in, p.in_at, MPI_BYTE, comm));
      status =
          MPI_Ialltoallv(out, p.out, p.out_at, MPI_BYTE, in, p.in, p.in_at, MPI_BYTE, comm, &q);
      return begun(s, status, q, std::move(p.all));
    }
    case FEIGN_MPI_GATHER:
    case FEIGN_MPI_IGATHER: {
      // With MPI_IN_PLACE the root sends nothing, and gets from the others what it would have sent.
      const int n = is_root ? std::max(got, bytes) : bytes;
      if (op == FEIGN_MPI_GATHER)
        return s.answer(MPI_Gather(out, n, MPI_BYTE, in, n, MPI_BYTE, root, comm));
      status = MPI_Igather(out, n, MPI_BYTE, in, n, MPI_BYTE, root, comm, &q);
      return begun(s, status, q);
    }
    case FEIGN_MPI_SCATTER:
    case FEIGN_MPI_ISCATTER: {
      const int n = is_root ? bytes : got;
      if (op == FEIGN_MPI_SCATTER)
        return s.answer(MPI_Scatter(out, n, MPI_BYTE, in, n, MPI_BYTE, root, comm));
      status = MPI_Iscatter(out, n, MPI_BYTE, in, n, MPI_BYTE, root, comm, &q);
      return begun(s, status, q);
    }
    case FEIGN_MPI_GATHERV:
    case FEIGN_MPI_IGATHERV:
    case FEIGN_MPI_SCATTERV:
    case FEIGN_MPI_ISCATTERV: {
      const bool gathers = op == FEIGN_MPI_GATHERV || op == FEIGN_MPI_IGATHERV;
      int mine = gathers ? bytes : got;
      std::vector<int> all;
      if (!s.r->lists) {
        if (x.request != kAbsent) break;
        all = asked(*g, mine);
      } else if (is_root) {
        all = listed(s, 0, size, size_of(gathers && x.type2 != kAbsent ? x.type2 : x.type));
        all.resize(static_cast<size_t>(size));
        if (g->first == 0) mine = all[static_cast<size_t>(root)];
      }
      Parts p(all, {});
      if (op == FEIGN_MPI_GATHERV)
        return s.answer(
            MPI_Gatherv(out, mine, MPI_BYTE, in, p.out, p.out_at, MPI_BYTE, root, comm));
      if (op == FEIGN_MPI_SCATTERV)
        return s.answer(
            MPI_Scatterv(out, p.out, p.out_at, MPI_BYTE, in, mine, MPI_BYTE, root, comm));
      status =
          gathers
              ? MPI_Igatherv(out, mine, MPI_BYTE, in, p.out, p.out_at, MPI_BYTE, root, comm, &q)
              : MPI_Iscatterv(out, p.out, p.out_at, MPI_BYTE, in, mine, MPI_BYTE, root, comm, &q);
      return begun(s, status, q, std::move(p.all));
    }
    default:
      break;
  }
  // Of others only the waiting for all is left.
  if (x.request == kAbsent) return s.answer(MPI_Barrier(comm));
  status = MPI_Ibarrier(comm, &q);
  begun(s, status, q);
}

}  // namespace

void meet(Stream& s, const Group& g, const std::function<void()>& call) {
  Meeting& m = *g.meeting;
  // Only the root knows what it sends, or gets.
  const uint64_t root = s.args->rank != kAbsent ? s.value(s.args->rank) : FEIGN_UNKNOWN;
  const bool rooted = root != FEIGN_UNKNOWN && m.processes.rank_of(root) >= 0 &&
                      s.r->process_of(static_cast<uint32_t>(root)) == s.r->rank;
  std::unique_lock lock(m.mutex);
  const uint64_t round = m.round;
  const bool last = ++m.come == m.here;
  if (last) m.changed.notify_all();
  if (rooted ? static_cast<int64_t>(root) != s.rank : !last) {
    m.changed.wait(lock, [&] { return m.round != round; });
    s.outcome->result = m.result;
    return;
  }
  m.changed.wait(lock, [&] { return m.come == m.here; });
  lock.unlock();
  call();
  lock.lock();
  m.result = s.outcome->result;
  m.come = 0;
  ++m.round;
  m.changed.notify_all();
}

bool meet(Stream& s, const Group& g) {
  if (!g.meeting) return false;
  meet(s, g, [&] { s.answer(MPI_Barrier(g.meeting->processes.comm)); });
  return true;
}

void collect(Stream& s, uint32_t op, Does does) {
  const Group* g = s.group(s.args->comm);
  if (g != nullptr && g->meeting && s.args->request == kAbsent) {
    // A length for each member is none for each process: only the waiting is left.
    if (s.args->list != kAbsent || does == Does::kNeighbours)
      (void)meet(s, *g);
    else
      meet(s, *g, [&] { collect_on(s, &g->meeting->processes, op, does); });
    return;
  }
  g = collective(s);
  if (g != nullptr) collect_on(s, g, op, does);
}

}  // namespace feign::mpi
