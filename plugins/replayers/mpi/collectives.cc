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

// The same on all ranks, or what one sends would not be what another gets. Where each member has a
// length of its own there is room for what these come to.
uint64_t most_each(const Stream& s, int n) {
  const auto room = static_cast<uint64_t>(s.r->half - 1);
  const uint64_t share = room / static_cast<uint64_t>(std::max(n, 1));
  if (s.args->list == kAbsent) return share;
  return s.r->fits ? room : std::min<uint64_t>(share, INT_MAX);
}
// What goes to or comes from each of n.
Piece each_of(const Stream& s, void* at, uint64_t bytes, int n) {
  return bytes_at(s, at, fitting(s, bytes, most_each(s, n)));
}

// The same, where others are told how many bytes it is.
Piece told(const Stream& s, void* at, uint64_t bytes, int n) {
  const uint64_t most = std::min<uint64_t>(most_each(s, n), INT_MAX);
  return {at, static_cast<int>(fitting(s, bytes, most)), MPI_BYTE};
}

// A length for each member, in units of a type of so many bytes.
struct Lengths {
  std::vector<int> of;
  MPI_Datatype type = MPI_BYTE;
  uint64_t width = 1;
};

// Lengths and places of parts, one after the other, of what is sent and what is received: kept
// until the call is over.
struct Parts {
  std::unique_ptr<int[]> all;
  int *out = nullptr, *out_at = nullptr, *in = nullptr, *in_at = nullptr;
  MPI_Datatype out_type, in_type;
  Parts(const Stream& s, const Lengths& outs, const Lengths& ins)
      : all(new int[2 * (outs.of.size() + ins.of.size()) + 1]),
        out_type(outs.type),
        in_type(ins.type) {
    out = all.get();
    out_at = out + outs.of.size();
    in = out_at + outs.of.size();
    in_at = in + ins.of.size();
    place(s, outs, out, out_at);
    place(s, ins, in, in_at);
  }

 private:
  // Beyond what an int can tell, over the first ones: nobody looks at what is received. A list that
  // the trace contradicts elsewhere may come to more than there is room for.
  static void place(const Stream& s, const Lengths& l, int* to, int* at) {
    const auto room = static_cast<uint64_t>(s.r->half - 1) / l.width;
    uint64_t all = 0, sum = 0;
    for (const int n : l.of) all += static_cast<uint64_t>(n);
    const uint64_t most = all > room ? room / l.of.size() : room;
    for (size_t i = 0; i < l.of.size(); ++i) {
      if (sum > INT_MAX) sum = 0;
      to[i] = static_cast<int>(std::min(static_cast<uint64_t>(l.of[i]), most));
      at[i] = static_cast<int>(sum);
      sum += static_cast<uint64_t>(to[i]);
    }
  }
};

// The widest word that goes into so many bytes, which become its own.
MPI_Datatype word_of(uint64_t& width) {
  const uint64_t bytes = width;
  for (width = 8; bytes % width != 0;) width /= 2;
  return width == 8   ? MPI_UINT64_T
         : width == 4 ? MPI_UINT32_T
         : width == 2 ? MPI_UINT16_T
                      : MPI_BYTE;
}

// Entries of the recorded list, in units of the type that this argument tells; empty if it has not
// as many. As bytes, but of more than an int of them in units of the program's (or, to be combined,
// in words).
Lengths listed(Stream& s, int from, int n, uint8_t type, bool combined = false) {
  const int64_t unit = type == kAbsent ? 1 : s.type(type).size;
  const uint32_t first = s.args->list + static_cast<uint32_t>(from);
  Lengths l;
  if (s.args->list == kAbsent || unit < 0 || s.a->value_count < first + static_cast<uint32_t>(n))
    return l;
  const std::span<const uint64_t> counts(s.a->values + first, static_cast<size_t>(n));
  uint64_t width = static_cast<uint64_t>(unit), sum = 0;
  for (const uint64_t count : counts) {
    if (count > INT_MAX) return l;
    sum += count * width;
  }
  const bool bytes = sum <= INT_MAX || width == 1 || !s.r->fits || s.r->options.comm == kOrder;
  if (!bytes) {
    l.type = combined ? word_of(width) : s.r->many_bytes(width);
    l.width = width;
  }
  for (const uint64_t count : counts) {
    const uint64_t length = count * static_cast<uint64_t>(unit);
    l.of.push_back(static_cast<int>(
        bytes ? fitting(s, length, std::min<uint64_t>(most_each(s, n), INT_MAX)) : length / width));
  }
  return l;
}

// One length for each member, where the trace does not tell each rank.
Lengths asked(const Group& g, int mine) {
  Lengths all{std::vector<int>(static_cast<size_t>(g.size))};
  FEIGN_MUST(MPI_Allgather(&mine, 1, MPI_INT, all.of.data(), 1, MPI_INT, g.comm));
  return all;
}

// What each sends to each: known, or asked for from `outs`.
struct Both {
  Lengths outs, ins;
};
Both both(Stream& s, uint32_t op, const Group& g, int outs, int ins, bool neighbours) {
  const Units units = units_of(op, *s.args);
  Both b{listed(s, 0, outs, units.out), listed(s, outs, ins, units.in)};
  const bool all_outs = static_cast<int>(b.outs.of.size()) == outs;
  if (s.r->lists && all_outs && static_cast<int>(b.ins.of.size()) == ins) return b;
  // Of all that a rank sends, each gets the same share.
  if (!all_outs || b.outs.type != MPI_BYTE) {
    const uint64_t share = fitting(s, s.a->length) / static_cast<uint64_t>(std::max(outs, 1));
    const auto one = static_cast<int>(std::min({share, most_each(s, outs), uint64_t{INT_MAX}}));
    b.outs = {std::vector<int>(static_cast<size_t>(outs), one)};
  }
  b.ins = {std::vector<int>(static_cast<size_t>(ins))};
  if (neighbours)
    FEIGN_MUST(
        MPI_Neighbor_alltoall(b.outs.of.data(), 1, MPI_INT, b.ins.of.data(), 1, MPI_INT, g.comm));
  else
    FEIGN_MUST(MPI_Alltoall(b.outs.of.data(), 1, MPI_INT, b.ins.of.data(), 1, MPI_INT, g.comm));
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
  const MPI_Comm comm = g.comm;
  switch (op) {
    case FEIGN_MPI_ALLREDUCE:
      return s.make([=] { return MPI_Allreduce(out, in, d.count, d.type, d.op, comm); });
    case FEIGN_MPI_REDUCE:
      return s.make([=] { return MPI_Reduce(out, in, d.count, d.type, d.op, root, comm); });
    case FEIGN_MPI_SCAN:
      return s.make([=] { return MPI_Scan(out, in, d.count, d.type, d.op, comm); });
    case FEIGN_MPI_EXSCAN:
      return s.make([=] { return MPI_Exscan(out, in, d.count, d.type, d.op, comm); });
    case FEIGN_MPI_IALLREDUCE:
      return s.begin([=](MPI_Request* begun) {
        return MPI_Iallreduce(out, in, d.count, d.type, d.op, comm, begun);
      });
    case FEIGN_MPI_IREDUCE:
      return s.begin([=](MPI_Request* begun) {
        return MPI_Ireduce(out, in, d.count, d.type, d.op, root, comm, begun);
      });
    case FEIGN_MPI_ISCAN:
      return s.begin([=](MPI_Request* begun) {
        return MPI_Iscan(out, in, d.count, d.type, d.op, comm, begun);
      });
    default:
      return s.begin([=](MPI_Request* begun) {
        return MPI_Iexscan(out, in, d.count, d.type, d.op, comm, begun);
      });
  }
}

void broadcast(Stream& s, uint32_t op, const Group& g, int root) {
  Piece d = piece(s, true, s.a->length, s.args->count, s.args->type);
  if (s.r->options.comm == kOrder) d = {s.space.get(), 1, MPI_BYTE};
  const MPI_Comm comm = g.comm;
  if (op == FEIGN_MPI_BCAST)
    return s.make([=] { return MPI_Bcast(d.at, d.count, d.type, root, comm); });
  s.begin([=](MPI_Request* begun) { return MPI_Ibcast(d.at, d.count, d.type, root, comm, begun); });
}

// With those that are next to it: the communicator knows who they are.
void neighbours(Stream& s, uint32_t op, const Group& g) {
  char *out = s.space.get(), *in = out + s.r->half;
  const Piece d = each_of(s, out, s.a->length, std::max(g.in, g.out));
  const MPI_Comm comm = g.comm;
  MPI_Request q = MPI_REQUEST_NULL;
  switch (op) {
    case FEIGN_MPI_NEIGHBOR_ALLGATHER:
      return s.make(
          [=] { return MPI_Neighbor_allgather(out, d.count, d.type, in, d.count, d.type, comm); });
    case FEIGN_MPI_INEIGHBOR_ALLGATHER: {
      const int status =
          MPI_Ineighbor_allgather(out, d.count, d.type, in, d.count, d.type, comm, &q);
      return begun(s, status, q);
    }
    case FEIGN_MPI_NEIGHBOR_ALLTOALL:
    case FEIGN_MPI_INEIGHBOR_ALLTOALL: {
      // The length recorded is that of one.
      if (op == FEIGN_MPI_NEIGHBOR_ALLTOALL)
        return s.make(
            [=] { return MPI_Neighbor_alltoall(out, d.count, d.type, in, d.count, d.type, comm); });
      const int status =
          MPI_Ineighbor_alltoall(out, d.count, d.type, in, d.count, d.type, comm, &q);
      return begun(s, status, q);
    }
    case FEIGN_MPI_NEIGHBOR_ALLGATHERV:
    case FEIGN_MPI_INEIGHBOR_ALLGATHERV: {
      Piece mine = d;
      Lengths ins = listed(s, 0, g.in, units_of(op, *s.args).in);
      if (!s.r->lists || static_cast<int>(ins.of.size()) != g.in) {
        mine = told(s, out, s.a->length, g.in);
        ins = {std::vector<int>(static_cast<size_t>(g.in))};
        FEIGN_MUST(
            MPI_Neighbor_allgather(&mine.count, 1, MPI_INT, ins.of.data(), 1, MPI_INT, comm));
      }
      Parts p(s, {}, ins);
      if (op == FEIGN_MPI_NEIGHBOR_ALLGATHERV)
        return s.answer(MPI_Neighbor_allgatherv(out, mine.count, mine.type, in, p.in, p.in_at,
                                                p.in_type, comm));
      const int status = MPI_Ineighbor_allgatherv(out, mine.count, mine.type, in, p.in, p.in_at,
                                                  p.in_type, comm, &q);
      return begun(s, status, q, std::move(p.all));
    }
    default: {
      const Both b = both(s, op, g, g.out, g.in, true);
      Parts p(s, b.outs, b.ins);
      if (op == FEIGN_MPI_NEIGHBOR_ALLTOALLV || op == FEIGN_MPI_NEIGHBOR_ALLTOALLW)
        return s.answer(MPI_Neighbor_alltoallv(out, p.out, p.out_at, p.out_type, in, p.in, p.in_at,
                                               p.in_type, comm));
      const int status = MPI_Ineighbor_alltoallv(out, p.out, p.out_at, p.out_type, in, p.in,
                                                 p.in_at, p.in_type, comm, &q);
      return begun(s, status, q, std::move(p.all));
    }
  }
}

// What they made is there since before the start; to make another costs what it cost.
void make_communicator(Stream& s, MPI_Comm comm) {
  // Where they do not wait for each other in the call, they do in the one that ends its request.
  if (s.args->request != kAbsent) {
    MPI_Request all_there = MPI_REQUEST_NULL;
    const int status = MPI_Ibarrier(comm, &all_there);
    return begun(s, status, all_there);
  }
  // Of several threads of a process Open MPI lets one look for a number, that of the communicator
  // with the lowest one itself. Which these are was otherwise in the program, and who waits there
  // for other ranks may be waited for by them. So there it is what is sent for a number.
  if (s.r->makers) {
    constexpr int kAsks = 3;
    int status = MPI_SUCCESS, mine = 0, highest = 0;
    for (int i = 0; i < kAsks && status == MPI_SUCCESS; ++i)
      status = MPI_Allreduce(&mine, &highest, 1, MPI_INT, MPI_MAX, comm);
    return s.answer(status);
  }
  MPI_Comm made = MPI_COMM_NULL;
  s.answer(MPI_Comm_dup(comm, &made));
  if (made != MPI_COMM_NULL) FEIGN_MUST(MPI_Comm_free(&made));
}

// A call in which each rank sends something of its own, or gets it.
struct Exchange {
  Stream& s;
  const Group& g;
  uint32_t op;
  int root;
  bool is_root;

  char* out = s.space.get();
  char* in = out + s.r->half;
  MPI_Comm comm = g.comm;
  int size = g.size;  // of two groups: of the other one
  int most = std::max(size, static_cast<int>(g.ranks.size()));
  uint64_t in_bytes = s.known(s.args->size2, s.a->length);
  // To or from each.
  Piece sent = each_of(s, out, s.a->length, most), got = each_of(s, in, in_bytes, most);
  // Within one group as much comes from each as goes to each; of two groups each sends its own.
  Piece each = g.first != 0 ? got : sent;
};

void reduce_scatter(const Exchange& x) {
  Stream& s = x.s;
  char *const out = x.out, *const in = x.in;
  const MPI_Comm comm = x.comm;
  MPI_Request q = MPI_REQUEST_NULL;
  const bool order = s.r->options.comm == kOrder;
  // Of two groups both combine as much in all: each member gets a byte for each of the other.
  const bool two = x.g.first != 0;
  const int few = two ? x.g.size : 1;
  if (x.op == FEIGN_MPI_REDUCE_SCATTER_BLOCK || x.op == FEIGN_MPI_IREDUCE_SCATTER_BLOCK) {
    const Sum d =
        bits_of(order ? static_cast<uint64_t>(few) : fitting(s, x.in_bytes, most_each(s, x.most)));
    if (x.op == FEIGN_MPI_REDUCE_SCATTER_BLOCK)
      return s.make([=] { return MPI_Reduce_scatter_block(out, in, d.count, d.type, d.op, comm); });
    const int status = MPI_Ireduce_scatter_block(out, in, d.count, d.type, d.op, comm, &q);
    return begun(s, status, q);
  }
  int own = 0;
  MPI_Comm_size(comm, &own);
  Lengths all;
  if (!order && s.r->lists) all = listed(s, 0, own, units_of(x.op, *s.args).out, true);
  if (!order && !two && all.of.empty()) all = asked(x.g, told(s, in, x.in_bytes, x.most).count);
  // A group could ask the other only what that one's members get.
  if (all.of.empty()) all = {std::vector<int>(static_cast<size_t>(own), few)};
  Parts p(s, all, {});
  if (x.op == FEIGN_MPI_REDUCE_SCATTER)
    return s.answer(MPI_Reduce_scatter(out, in, p.out, p.out_type, MPI_BOR, comm));
  const int status = MPI_Ireduce_scatter(out, in, p.out, p.out_type, MPI_BOR, comm, &q);
  begun(s, status, q, std::move(p.all));
}

void all_gather(const Exchange& x) {
  Stream& s = x.s;
  char *const out = x.out, *const in = x.in;
  const MPI_Comm comm = x.comm;
  const Piece sent = x.sent, each = x.each;
  MPI_Request q = MPI_REQUEST_NULL;
  if (x.op == FEIGN_MPI_ALLGATHER)
    return s.make(
        [=] { return MPI_Allgather(out, sent.count, sent.type, in, each.count, each.type, comm); });
  if (x.op == FEIGN_MPI_IALLGATHER) {
    const int status =
        MPI_Iallgather(out, sent.count, sent.type, in, each.count, each.type, comm, &q);
    return begun(s, status, q);
  }
  Lengths all = listed(s, 0, x.size, units_of(x.op, *s.args).in);
  Piece mine = sent;
  const bool listed_all = s.r->lists && !all.of.empty();
  if (!listed_all) {
    mine = told(s, out, s.a->length, x.most);
    all = asked(x.g, mine.count);
  }
  Parts p(s, {}, all);
  if (listed_all && x.g.first == 0)
    mine = {out, p.in[x.g.rank_of(static_cast<uint64_t>(s.rank))], p.in_type};
  if (x.op == FEIGN_MPI_ALLGATHERV)
    return s.answer(MPI_Allgatherv(out, mine.count, mine.type, in, p.in, p.in_at, p.in_type, comm));
  const int status =
      MPI_Iallgatherv(out, mine.count, mine.type, in, p.in, p.in_at, p.in_type, comm, &q);
  begun(s, status, q, std::move(p.all));
}

void all_to_all(const Exchange& x) {
  Stream& s = x.s;
  char *const out = x.out, *const in = x.in;
  const MPI_Comm comm = x.comm;
  const Piece sent = x.sent, each = x.each;
  MPI_Request q = MPI_REQUEST_NULL;
  if (x.op == FEIGN_MPI_ALLTOALL)
    return s.make(
        [=] { return MPI_Alltoall(out, sent.count, sent.type, in, each.count, each.type, comm); });
  if (x.op == FEIGN_MPI_IALLTOALL) {
    const int status =
        MPI_Ialltoall(out, sent.count, sent.type, in, each.count, each.type, comm, &q);
    return begun(s, status, q);
  }
  const Both b = both(s, x.op, x.g, x.size, x.size, false);
  Parts p(s, b.outs, b.ins);
  if (s.args->request == kAbsent)
    return s.answer(
        MPI_Alltoallv(out, p.out, p.out_at, p.out_type, in, p.in, p.in_at, p.in_type, comm));
  const int status =
      MPI_Ialltoallv(out, p.out, p.out_at, p.out_type, in, p.in, p.in_at, p.in_type, comm, &q);
  begun(s, status, q, std::move(p.all));
}

void gather_or_scatter(const Exchange& x) {
  Stream& s = x.s;
  char *const out = x.out, *const in = x.in;
  const MPI_Comm comm = x.comm;
  const int root = x.root;
  MPI_Request q = MPI_REQUEST_NULL;
  if (x.op == FEIGN_MPI_GATHER || x.op == FEIGN_MPI_IGATHER) {
    // With MPI_IN_PLACE the root sends nothing, and gets from the others what it would have sent.
    const bool in_place = x.is_root && x.in_bytes != FEIGN_UNKNOWN &&
                          x.in_bytes > (s.a->length == FEIGN_UNKNOWN ? 0 : s.a->length);
    const Piece d = in_place ? x.got : x.sent;
    if (x.op == FEIGN_MPI_GATHER)
      return s.make(
          [=] { return MPI_Gather(out, d.count, d.type, in, d.count, d.type, root, comm); });
    const int status = MPI_Igather(out, d.count, d.type, in, d.count, d.type, root, comm, &q);
    return begun(s, status, q);
  }
  const Piece d = x.is_root ? x.sent : x.got;
  if (x.op == FEIGN_MPI_SCATTER)
    return s.make(
        [=] { return MPI_Scatter(out, d.count, d.type, in, d.count, d.type, root, comm); });
  const int status = MPI_Iscatter(out, d.count, d.type, in, d.count, d.type, root, comm, &q);
  begun(s, status, q);
}

// Of each member as much as its own length says. False where nobody can be asked for that.
bool gather_or_scatter_parts(const Exchange& x) {
  Stream& s = x.s;
  const bool gathers = x.op == FEIGN_MPI_GATHERV || x.op == FEIGN_MPI_IGATHERV;
  Piece mine = gathers ? x.sent : x.got;
  Lengths all;
  if (!s.r->lists) {
    if (s.args->request != kAbsent) return false;
    mine = told(s, mine.at, gathers ? s.a->length : x.in_bytes, x.most);
    all = asked(x.g, mine.count);
  } else if (x.is_root) {
    const Units units = units_of(x.op, *s.args);
    all = listed(s, 0, x.size, gathers ? units.in : units.out);
    all.of.resize(static_cast<size_t>(x.size));
  }
  Parts p(s, all, {});
  if (s.r->lists && x.is_root && x.g.first == 0) mine = {mine.at, p.out[x.root], p.out_type};
  const auto [at, count, type] = mine;
  MPI_Request q = MPI_REQUEST_NULL;
  int status = MPI_SUCCESS;
  switch (x.op) {
    case FEIGN_MPI_GATHERV:
      s.answer(MPI_Gatherv(at, count, type, x.in, p.out, p.out_at, p.out_type, x.root, x.comm));
      return true;
    case FEIGN_MPI_SCATTERV:
      s.answer(MPI_Scatterv(x.out, p.out, p.out_at, p.out_type, at, count, type, x.root, x.comm));
      return true;
    case FEIGN_MPI_IGATHERV:
      status = MPI_Igatherv(at, count, type, x.in, p.out, p.out_at, p.out_type, x.root, x.comm, &q);
      break;
    default:
      status =
          MPI_Iscatterv(x.out, p.out, p.out_at, p.out_type, at, count, type, x.root, x.comm, &q);
      break;
  }
  begun(s, status, q, std::move(p.all));
  return true;
}

// A call that its communicator can make.
void collect_on(Stream& s, const Group* g, uint32_t op, Does does) {
  const MPI_Comm comm = g->comm;
  if (does == Does::kMakeComm) return make_communicator(s, comm);
  if (does == Does::kNeighbours && g->near) return neighbours(s, op, *g);
  int root = 0;
  bool is_root = false;
  if (s.args->rank != kAbsent && !root_of(s, *g, root, is_root))
    return s.skip("its root is not in its communicator");
  switch (op) {
    case FEIGN_MPI_BARRIER:
      return s.make([=] { return MPI_Barrier(comm); });
    case FEIGN_MPI_IBARRIER:
      return s.begin([=](MPI_Request* begun) { return MPI_Ibarrier(comm, begun); });
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
    case FEIGN_MPI_REDUCE_SCATTER_BLOCK:
    case FEIGN_MPI_IREDUCE_SCATTER_BLOCK:
    case FEIGN_MPI_REDUCE_SCATTER:
    case FEIGN_MPI_IREDUCE_SCATTER:
      return reduce_scatter({s, *g, op, root, is_root});
    case FEIGN_MPI_ALLGATHER:
    case FEIGN_MPI_IALLGATHER:
    case FEIGN_MPI_ALLGATHERV:
    case FEIGN_MPI_IALLGATHERV:
      return all_gather({s, *g, op, root, is_root});
    case FEIGN_MPI_ALLTOALL:
    case FEIGN_MPI_IALLTOALL:
    case FEIGN_MPI_ALLTOALLV:
    case FEIGN_MPI_ALLTOALLW:
    case FEIGN_MPI_IALLTOALLV:
    case FEIGN_MPI_IALLTOALLW:
      return all_to_all({s, *g, op, root, is_root});
    case FEIGN_MPI_GATHER:
    case FEIGN_MPI_IGATHER:
    case FEIGN_MPI_SCATTER:
    case FEIGN_MPI_ISCATTER:
      return gather_or_scatter({s, *g, op, root, is_root});
    case FEIGN_MPI_GATHERV:
    case FEIGN_MPI_IGATHERV:
    case FEIGN_MPI_SCATTERV:
    case FEIGN_MPI_ISCATTERV:
      if (gather_or_scatter_parts({s, *g, op, root, is_root})) return;
      break;
    default:
      break;
  }
  // Of others only the waiting for all is left.
  if (s.args->request == kAbsent) return s.make([=] { return MPI_Barrier(comm); });
  MPI_Request q = MPI_REQUEST_NULL;
  const int status = MPI_Ibarrier(comm, &q);
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

int wait_together(const Owner::Together& t) {
  Meeting& m = *t.meeting;
  Meeting::Begun& b = *t.call;
  std::unique_lock lock(m.mutex);
  m.changed.wait(lock, [&] { return b.made; });
  if (std::exchange(b.waited_for, true)) {
    m.changed.wait(lock, [&] { return b.over; });
    return b.status;
  }
  lock.unlock();
  const int status =
      b.request == MPI_REQUEST_NULL ? MPI_SUCCESS : MPI_Wait(&b.request, MPI_STATUS_IGNORE);
  lock.lock();
  b.status = status;
  b.over = true;
  m.changed.notify_all();
  return status;
}

Units units_of(uint32_t op, const Args& args) {
  const uint8_t in = args.type2 != kAbsent ? args.type2 : args.type;
  switch (op) {
    case FEIGN_MPI_GATHERV:
    case FEIGN_MPI_IGATHERV:
    case FEIGN_MPI_ALLGATHERV:
    case FEIGN_MPI_IALLGATHERV:
    case FEIGN_MPI_NEIGHBOR_ALLGATHERV:
    case FEIGN_MPI_INEIGHBOR_ALLGATHERV:
      return {in, in};
    case FEIGN_MPI_SCATTERV:
    case FEIGN_MPI_ISCATTERV:
      return {args.type, args.type};
    default:
      return {args.type, in};
  }
}

// Nobody waits for the others here: the last to come begins the call for all, and who waits first
// for its end does so for all.
static void begin_together(Stream& s, const Group& g, const std::function<void()>& call) {
  Meeting& m = *g.meeting;
  Owner& o = *s.owner;
  const uint64_t request = s.value(s.args->request);
  s.outcome->result = 0;
  const std::lock_guard lock(m.mutex);  // all processes begin them in one order
  const uint64_t number = m.next[s.rank]++;
  std::shared_ptr<Meeting::Begun>& there = m.begun[number];
  if (!there) there = std::make_shared<Meeting::Begun>();
  const std::shared_ptr<Meeting::Begun> b = there;
  const bool last = ++b->come == m.here;
  if (last) {
    m.begun.erase(number);
    b->made = true;
    m.changed.notify_all();
    call();
  }
  const std::lock_guard own(o.mutex);
  if (const auto at = o.requests.find(request); last && at != o.requests.end()) {
    b->request = at->second.request;
    b->kept = std::move(at->second.kept);
    o.remove(at);
  }
  o.together[request] = {&m, b};
}

void meet_later(Stream& s, const Group& g) {
  begin_together(s, g, [&] {
    MPI_Request q = MPI_REQUEST_NULL;
    const int status = MPI_Ibarrier(g.meeting->processes.comm, &q);
    begun(s, status, q);
  });
}

void collect(Stream& s, uint32_t op, Does does) {
  const Group* g = s.group(s.args->comm);
  if (g != nullptr && g->meeting && s.args->request != kAbsent) {
    // Nor is what a root alone knows known to who comes last.
    const bool unlike = s.args->list != kAbsent || does == Does::kNeighbours ||
                        (s.args->rank != kAbsent && s.args->size2 != kAbsent);
    if (unlike) return meet_later(s, *g);
    return begin_together(s, *g, [&] { collect_on(s, &g->meeting->processes, op, does); });
  }
  if (g != nullptr && g->meeting) {
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
