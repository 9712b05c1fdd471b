// SPDX-License-Identifier: MIT
// Layer mpi: messages, collectives, requests, windows. What a call only asks of the library, or of
// objects that stand here under other names, is bookkeeping: it comes to what was recorded.
#include <algorithm>
#include <climits>
#include <span>
#include <thread>

#include "layers/mpi_ops.h"
#include "replayers/mpi/state.h"

namespace feign::mpi {
namespace {

struct Peer {
  MPI_Comm comm;
  int rank, tag;
};

// The other end of a message. Recorded: rank -1 is nobody, -2 anybody; tag -1 any.
bool peer(Stream& s, bool receives, uint64_t recorded, uint64_t tag_recorded, Peer& p) {
  const Group* g = s.group(s.args->comm);
  if (g == nullptr) {
    s.skip("its communicator is not known");
    return false;
  }
  const int rank = recorded == FEIGN_UNKNOWN ? -2 : number(recorded);
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
    p.rank = rank >= 0    ? g->rank_of(static_cast<uint64_t>(rank))
             : rank == -1 ? MPI_PROC_NULL
                          : MPI_ANY_SOURCE;
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

// A request whose call is not made. One that is persistent is there until it is freed.
void stand_in(Stream& s) {
  const Does does = mpi_does(s.a->op);
  s.emulate();
  remember(s, MPI_REQUEST_NULL, does == Does::kKeepSend || does == Does::kKeepReceive);
}

// A buffered send is over at once, whether its message is received or not. What it would copy is
// of no interest, so there is no buffer: only nobody waits for it.
void leave_buffered(Owner& o, MPI_Request q) {
  if (q == MPI_REQUEST_NULL) return;
  constexpr size_t kMany = 64;
  const std::lock_guard lock(o.mutex);
  o.buffered.push_back(q);
  if (o.buffered.size() % kMany != 0) return;
  std::vector<int> over(o.buffered.size());
  int count = 0;
  MPI_Testsome(static_cast<int>(o.buffered.size()), o.buffered.data(), &count, over.data(),
               MPI_STATUSES_IGNORE);
  std::erase(o.buffered, MPI_REQUEST_NULL);
}

void buffered(Stream& s, const Peer& p, const Piece& d) {
  MPI_Request q = MPI_REQUEST_NULL;
  s.answer(MPI_Isend(d.at, d.count, d.type, p.rank, p.tag, p.comm, &q));
  remember(s, MPI_REQUEST_NULL);
  leave_buffered(*s.owner, q);
}

// The buffer is wanted back: what is in it must be received first.
void wait_for_buffered(Stream& s) {
  Owner& o = *s.owner;
  std::vector<MPI_Request> list;
  {
    const std::lock_guard lock(o.mutex);
    list.swap(o.buffered);
  }
  s.answer(MPI_Waitall(static_cast<int>(list.size()), list.data(), MPI_STATUSES_IGNORE));
}

void send(Stream& s, uint32_t op) {
  Peer p{};
  if (!peer(s, false, s.value(s.args->rank), s.value(s.args->tag), p)) return;
  const Piece d = piece(s, true, s.a->length, s.args->count, s.args->type);
  MPI_Request q = MPI_REQUEST_NULL;
  switch (op) {
    case FEIGN_MPI_BSEND:
    case FEIGN_MPI_IBSEND:
      return buffered(s, p, d);
    case FEIGN_MPI_SEND:
      return s.make([=] { return MPI_Send(d.at, d.count, d.type, p.rank, p.tag, p.comm); });
    case FEIGN_MPI_SSEND:
      return s.make([=] { return MPI_Ssend(d.at, d.count, d.type, p.rank, p.tag, p.comm); });
    case FEIGN_MPI_RSEND:  // that its receive is there cannot be known here
      return s.make([=] { return MPI_Send(d.at, d.count, d.type, p.rank, p.tag, p.comm); });
    case FEIGN_MPI_ISSEND:
      return s.begin([=](MPI_Request* begun) {
        return MPI_Issend(d.at, d.count, d.type, p.rank, p.tag, p.comm, begun);
      });
    case FEIGN_MPI_BSEND_INIT: {
      // It may be started again while its last message is under way.
      s.outcome->result = 0;
      const std::lock_guard lock(s.owner->mutex);
      Owner::Pending& pending = s.owner->add(s.value(s.args->request));
      pending.persistent = true;
      pending.buffered = [=](MPI_Request* begun) {
        return MPI_Isend(d.at, d.count, d.type, p.rank, p.tag, p.comm, begun);
      };
      return;
    }
    case FEIGN_MPI_SEND_INIT:
    case FEIGN_MPI_RSEND_INIT:
      s.answer(MPI_Send_init(d.at, d.count, d.type, p.rank, p.tag, p.comm, &q));
      if (q != MPI_REQUEST_NULL) remember(s, q, true);
      return;
    case FEIGN_MPI_SSEND_INIT:
      s.answer(MPI_Ssend_init(d.at, d.count, d.type, p.rank, p.tag, p.comm, &q));
      if (q != MPI_REQUEST_NULL) remember(s, q, true);
      return;
    default:
      return s.begin([=](MPI_Request* begun) {
        return MPI_Isend(d.at, d.count, d.type, p.rank, p.tag, p.comm, begun);
      });
  }
}

void receive(Stream& s, uint32_t op) {
  Peer p{};
  uint64_t from = s.value(s.args->rank), tag = s.value(s.args->tag);
  const bool wildcard = number(from) == -2 || number(tag) == -1;
  // Begun, it might get what a later one got.
  if (op == FEIGN_MPI_IRECV && !s.r->cancelled.empty() &&
      s.r->cancelled.contains({s.rank, s.value(s.args->request)}))
    return stand_in(s);
  if (op == FEIGN_MPI_IRECV && wildcard && !s.r->matched.empty()) {
    // Whom it got, says the call that ended it.
    const auto at = s.r->matched.find({s.rank, s.value(s.args->request)});
    if (at != s.r->matched.end()) {
      from = static_cast<uint64_t>(at->second.first);
      tag = static_cast<uint64_t>(at->second.second);
    }
  }
  if (!peer(s, true, from, tag, p)) return;
  const Piece d = s.r->options.comm == kOrder
                      ? Piece{s.space.get() + s.r->half, 16, MPI_BYTE}
                      : piece(s, false, s.a->length, s.args->count, s.args->type);
  MPI_Request q = MPI_REQUEST_NULL;
  if (op == FEIGN_MPI_RECV)
    return s.make(
        [=] { return MPI_Recv(d.at, d.count, d.type, p.rank, p.tag, p.comm, MPI_STATUS_IGNORE); });
  if (op == FEIGN_MPI_RECV_INIT) {
    s.answer(MPI_Recv_init(d.at, d.count, d.type, p.rank, p.tag, p.comm, &q));
    if (q != MPI_REQUEST_NULL) remember(s, q, true);
    return;
  }
  const auto begin = [=](MPI_Request* begun) {
    return MPI_Irecv(d.at, d.count, d.type, p.rank, p.tag, p.comm, begun);
  };
  if (!wildcard && s.r->cancelled.empty()) return s.begin(begin);
  const int status = begin(&q);
  begun(s, status, q);
}

void send_receive(Stream& s) {
  Peer to{}, from{};
  if (!peer(s, false, s.value(s.args->rank), s.value(s.args->tag), to) ||
      !peer(s, true, s.value(s.args->rank2), s.value(s.args->tag2), from))
    return;
  if (s.lacks != nullptr) (s.lacks->send ? to : from).rank = MPI_PROC_NULL;
  const Piece out = piece(s, true, s.a->length, s.args->count, s.args->type);
  const Piece in = piece(s, false, s.known(s.args->size2, FEIGN_UNKNOWN), s.args->count2,
                         s.args->count2 == kAbsent ? kAbsent : s.args->type2);
  if (to.comm == from.comm)
    return s.make([=] {
      return MPI_Sendrecv(out.at, out.count, out.type, to.rank, to.tag, in.at, in.count, in.type,
                          from.rank, from.tag, to.comm, MPI_STATUS_IGNORE);
    });
}

void probe(Stream& s, uint32_t op) {
  // One that found nothing is over at once; one that found something waits until it is there. What
  // is received afterwards says itself from whom.
  const bool waits = op == FEIGN_MPI_PROBE || op == FEIGN_MPI_MPROBE;
  if (!waits && s.known(s.args->flag, 0) == 0) return s.emulate();
  Peer p{};
  if (!peer(s, true, s.value(s.args->rank), s.value(s.args->tag), p)) return;
  const uint64_t name = s.args->message != kAbsent ? s.known(s.args->message, 0) : 0;
  if (name == 0) return s.answer(MPI_Probe(p.rank, p.tag, p.comm, MPI_STATUS_IGNORE));
  MPI_Message message = MPI_MESSAGE_NULL;
  s.answer(MPI_Mprobe(p.rank, p.tag, p.comm, &message, MPI_STATUS_IGNORE));
  const std::lock_guard lock(s.owner->mutex);
  s.owner->messages[static_cast<uint32_t>(name)] = message;
}

// The message that a probe has taken out.
void receive_probed(Stream& s, uint32_t op) {
  MPI_Message message = MPI_MESSAGE_NULL;
  {
    const std::lock_guard lock(s.owner->mutex);
    auto& messages = s.owner->messages;
    const auto at = messages.find(static_cast<uint32_t>(s.known(s.args->message, 0)));
    if (at != messages.end()) {
      message = at->second;
      messages.erase(at);
    }
  }
  if (message == MPI_MESSAGE_NULL) return stand_in(s);  // from nobody, for one
  const Piece d = s.r->options.comm == kOrder
                      ? Piece{s.space.get() + s.r->half, 16, MPI_BYTE}
                      : piece(s, false, s.a->length, s.args->count, s.args->type);
  if (op == FEIGN_MPI_MRECV)
    return s.answer(MPI_Mrecv(d.at, d.count, d.type, &message, MPI_STATUS_IGNORE));
  MPI_Request q = MPI_REQUEST_NULL;
  const int status = MPI_Imrecv(d.at, d.count, d.type, &message, &q);
  begun(s, status, q);
}

// ---- requests -----------------------------------------------------------------------------------

// Waits for requests by their numbers; those that nobody knows were not begun here.
void wait_for(Stream& s, std::span<const uint64_t> numbers) {
  Owner& o = *s.owner;
  std::vector<MPI_Request>& list = s.list;
  std::vector<std::unique_ptr<int[]>> kept;
  std::vector<Owner::Together> together;
  list.clear();
  {
    const std::lock_guard lock(o.mutex);
    for (const uint64_t n : numbers) {
      if (!o.together.empty())
        if (auto one = o.together.extract(n); !one.empty()) {
          together.push_back(std::move(one.mapped()));
          continue;
        }
      const auto at = o.requests.find(n);
      if (at == o.requests.end() || at->second.buffered) continue;
      if (at->second.request != MPI_REQUEST_NULL) list.push_back(at->second.request);
      if (at->second.kept) kept.push_back(std::move(at->second.kept));
      if (!at->second.persistent) o.remove(at);
    }
  }
  if (!together.empty()) {
    int code = MPI_SUCCESS;
    if (!list.empty())
      code = MPI_Waitall(static_cast<int>(list.size()), list.data(), MPI_STATUSES_IGNORE);
    for (const Owner::Together& t : together)
      if (const int one = wait_together(t); one != MPI_SUCCESS) code = one;
    return s.answer(code);
  }
  if (list.empty()) return s.emulate();
  if (s.a->result < 0) {
    // Open MPI's MPI_Waitall may wait for ever where one of them fails while other threads wait.
    int code = MPI_SUCCESS;
    for (MPI_Request& q : list)
      if (const int one = MPI_Wait(&q, MPI_STATUS_IGNORE); one != MPI_SUCCESS) code = one;
    return s.answer(code);
  }
  s.answer(list.size() == 1
               ? MPI_Wait(list.data(), MPI_STATUS_IGNORE)
               : MPI_Waitall(static_cast<int>(list.size()), list.data(), MPI_STATUSES_IGNORE));
}

// Those in the list of a call; there until the next is asked for.
const std::vector<uint64_t>& listed(Stream& s, bool completed_only) {
  std::vector<uint64_t>& numbers = s.numbers;
  numbers.clear();
  if (s.args->list == kAbsent) return numbers;
  for (uint32_t i = s.args->list; i < s.a->value_count; ++i) {
    const uint64_t n = s.a->values[i];
    if ((n & (kWildcard | FEIGN_UNKNOWN)) == kWildcard) break;
    if (n & FEIGN_UNKNOWN || (completed_only && !(n & kCompleted))) continue;
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

// Waits until one is over, which stays what another call ends.
void wait_beside(Stream& s, uint64_t number) {
  Owner& o = *s.owner;
  Owner::Together together;
  int status = MPI_SUCCESS, over = 0;
  while (over == 0 && status == MPI_SUCCESS) {
    {
      const std::lock_guard lock(o.mutex);
      if (const auto at = o.together.find(number); at != o.together.end()) {
        together = at->second;
        break;
      }
      const auto at = o.requests.find(number);
      if (at == o.requests.end() || at->second.request == MPI_REQUEST_NULL) return s.emulate();
      status = MPI_Request_get_status(at->second.request, &over, MPI_STATUS_IGNORE);
    }
    std::this_thread::yield();
  }
  s.answer(together.call ? wait_together(together) : status);
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
  if (at != o.requests.end() && !at->second.persistent) o.remove(at);
}

void start(Stream& s, const std::vector<uint64_t>& numbers) {
  Owner& o = *s.owner;
  std::vector<MPI_Request> list;
  std::vector<std::function<int(MPI_Request*)>> sends;  // by place in the list: what stands there
  bool known = false;
  {
    const std::lock_guard lock(o.mutex);
    for (const uint64_t n : numbers) {
      const auto at = o.requests.find(n);
      known |= at != o.requests.end();
      if (at == o.requests.end() || !at->second.persistent) continue;
      if (at->second.request == MPI_REQUEST_NULL && !at->second.buffered) continue;
      if (s.lacks != nullptr && std::ranges::count(s.lacks->started, n) != 0) continue;
      list.push_back(at->second.request);
      if (!at->second.buffered) continue;
      sends.resize(list.size());
      sends.back() = at->second.buffered;
    }
  }
  if (!known && !numbers.empty()) return s.skip("its requests were not made");
  if (list.empty()) return s.emulate();
  if (sends.empty()) return s.answer(MPI_Startall(static_cast<int>(list.size()), list.data()));
  int code = MPI_SUCCESS;
  sends.resize(list.size());
  for (size_t i = 0; i < list.size() && code == MPI_SUCCESS; ++i) {
    code = sends[i] ? sends[i](&list[i]) : MPI_Start(&list[i]);
    if (sends[i]) leave_buffered(o, list[i]);
  }
  s.answer(code);
}

void request(Stream& s, uint32_t op) {
  const uint64_t one = s.value(s.args->request);
  const uint64_t flag = s.value(s.args->flag);
  if (s.a->result < 0 && s.args->request == kAbsent) return wait_for(s, listed(s, true));
  switch (op) {
    case FEIGN_MPI_WAIT:
      return wait_for(s, {&one, 1});
    case FEIGN_MPI_WAITALL:
      return wait_for(s, listed(s, false));
    case FEIGN_MPI_WAITANY:
    case FEIGN_MPI_WAITSOME:
      return wait_any(s);
    case FEIGN_MPI_TEST:
      if (flag != FEIGN_UNKNOWN && flag != 0) return wait_for(s, {&one, 1});
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
      if (at != o.requests.end() && at->second.buffered) {
        o.remove(at);
        s.outcome->result = 0;
        return;
      }
      if (at == o.requests.end()) return s.emulate();
      if (at->second.request == MPI_REQUEST_NULL) {
        o.remove(at);
        return s.emulate();
      }
      o.freed = true;
      s.answer(MPI_Request_free(&at->second.request));
      o.remove(at);
      return;
    }
    case FEIGN_MPI_REQUEST_GET_STATUS:
      if (flag != FEIGN_UNKNOWN && flag != 0) return wait_beside(s, one);
      return look_at(s, {one});
    case FEIGN_MPI_CANCEL: {
      Owner& o = *s.owner;
      const std::lock_guard lock(o.mutex);
      const auto at = o.requests.find(one);
      // What was cancelled in time was not begun here, and all else came to its end.
      if (at == o.requests.end() || at->second.request == MPI_REQUEST_NULL ||
          !at->second.persistent)
        return s.emulate();
      return s.answer(MPI_Cancel(&at->second.request));
    }
    default:
      return s.emulate();
  }
}

}  // namespace

Piece piece(Stream& s, bool from, uint64_t bytes, uint8_t count_at, uint8_t type_at) {
  const int64_t half = s.r->half;
  char* const base = s.space.get() + (from ? 0 : half);
  if (s.r->options.comm == kOrder) return {base, 0, MPI_BYTE};
  const uint64_t count = s.value(count_at);
  if (type_at != kAbsent && count <= INT_MAX) {
    const Type& t = s.type(type_at);
    if (t.type != MPI_DATATYPE_NULL && count == 0) return {base, 0, t.type};
    if (t.type != MPI_DATATYPE_NULL && t.extent >= 0 && t.true_extent >= 0 && t.true_low > -half &&
        t.true_low < half && t.true_extent <= half && t.extent <= half) {
      const int64_t room = half - t.true_extent - std::max<MPI_Aint>(t.true_low, 0);
      if (t.have_room(count, room))
        return {base + (t.true_low < 0 ? -t.true_low : 0), static_cast<int>(count), t.type};
    }
    if (t.size > 0 && (bytes == 0 || bytes == FEIGN_UNKNOWN) &&
        t.size * static_cast<int64_t>(count) < half)
      bytes = static_cast<uint64_t>(t.size) * count;
  }
  const bool known = bytes != FEIGN_UNKNOWN && (from || bytes != 0 || count == 0);
  const auto most = static_cast<uint64_t>(half - 1);
  return bytes_at(s, base, known ? std::min(bytes, most) : most);
}

Piece bytes_at(const Stream& s, void* at, uint64_t bytes) {
  if (bytes <= INT_MAX) return {at, static_cast<int>(bytes), MPI_BYTE};
  return {at, 1, s.r->many_bytes(bytes)};
}

uint64_t fitting(const Stream& s, uint64_t bytes, uint64_t most) {
  if (s.r->options.comm == kOrder) return 1;
  if (bytes == FEIGN_UNKNOWN) return 0;
  const uint64_t fits = std::min(most, static_cast<uint64_t>(s.r->half - 1));
  if (bytes > fits && !s.r->said_cut.exchange(true))
    s.r->host->log(s.r->host, FEIGN_LOG_INFO,
                   "collective calls of more than 16 GiB a rank are made with fewer bytes");
  return std::min(bytes, fits);
}

Sum bits_of(uint64_t bytes) {
  if (bytes <= INT_MAX) return {static_cast<int>(bytes), MPI_BYTE, MPI_BOR};
  return {static_cast<int>(std::min<uint64_t>(bytes / 8, INT_MAX)), MPI_UINT64_T, MPI_BOR};
}

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
  if (g->comm == MPI_COMM_NULL || g->rank_of(static_cast<uint64_t>(s.rank)) < 0) {
    s.skip("its communicator does not have this rank");
    return nullptr;
  }
  return g;
}

Sum sum_of(Stream& s, uint64_t bytes) {
  if (s.r->options.comm == kOrder) return {1, MPI_BYTE, MPI_BOR};
  const Type& t = s.type(s.args->type);
  const uint64_t count = s.args->count == kAbsent ? 1 : s.value(s.args->count);  // MPI_Fetch_and_op
  if ((!t.whole && !t.real) || count > INT_MAX || t.size * static_cast<int64_t>(count) > s.r->half)
    return bits_of(fitting(s, bytes));
  const auto id = static_cast<uint32_t>(s.known(s.args->reduction, 0));
  if (id != s.reduction_id || s.reduction == MPI_OP_NULL) {
    static const std::pair<std::string_view, MPI_Op> kOps[] = {
        {"MPI_MAX", MPI_MAX},   {"MPI_MIN", MPI_MIN},   {"MPI_PROD", MPI_PROD},
        {"MPI_LAND", MPI_LAND}, {"MPI_LOR", MPI_LOR},   {"MPI_BAND", MPI_BAND},
        {"MPI_BOR", MPI_BOR},   {"MPI_LXOR", MPI_LXOR}, {"MPI_BXOR", MPI_BXOR}};
    const std::string_view name = s.r->text(id);
    s.reduction_id = id;
    s.reduction = MPI_SUM;
    for (const auto& [text, op] : kOps)
      if (text == name) s.reduction = op;
  }
  const bool real = s.reduction == MPI_SUM || s.reduction == MPI_MAX || s.reduction == MPI_MIN ||
                    s.reduction == MPI_PROD;
  return {static_cast<int>(count), t.type, t.whole || real ? s.reduction : MPI_SUM};
}

void begun(Stream& s, int status, MPI_Request request, std::unique_ptr<int[]> kept) {
  s.answer(status);
  if (status == MPI_SUCCESS) remember(s, request, false, std::move(kept));
}

void remember(Stream& s, MPI_Request request, bool persistent, std::unique_ptr<int[]> kept) {
  if (s.args->request == kAbsent) return;
  const uint64_t n = s.value(s.args->request);
  Owner& o = *s.owner;
  const std::lock_guard lock(o.mutex);
  o.add(n) = {request, persistent, std::move(kept), {}, s.a->handle};
}

namespace {
void make(Stream& s, uint32_t op, Does does) {
  const bool none = s.r->options.comm == kNone;
  if (none && does != Does::kStart && does != Does::kEnd && does != Does::kEndSome &&
      does != Does::kRequest && does != Does::kMakeType && does != Does::kInit &&
      does != Does::kFinalize)
    return stand_in(s);
  switch (does) {
    case Does::kSend:
    case Does::kKeepSend:
      return send(s, op);
    case Does::kReceive:
    case Does::kKeepReceive:
      return s.args->message != kAbsent ? receive_probed(s, op) : receive(s, op);
    case Does::kSendReceive:
      return send_receive(s);
    case Does::kProbe:
      return probe(s, op);
    case Does::kStart:
    case Does::kEnd:
    case Does::kEndSome:
    case Does::kRequest:
      return request(s, op);
    case Does::kMakeType: {
      bool made = false;
      MPI_Datatype type = build_type(s.r->text(s.known(s.args->type, 0)), made);
      if (!made) return s.emulate();
      MPI_Type_free(&type);
      s.outcome->result = 0;
      return;
    }
    case Does::kMeet:
    case Does::kFromRoot:
    case Does::kToRoot:
    case Does::kUpwards:
    case Does::kNeighbours:
    case Does::kMakeComm:
      return collect(s, op, does);
    case Does::kMakeWindow:
    case Does::kMeetWindow:
    case Does::kWindow:
      return window(s, op, does);
    case Does::kInit:
      initialised_for(op == FEIGN_MPI_INIT_THREAD && s.known(0, 0) == MPI_THREAD_MULTIPLE);
      [[fallthrough]];
    case Does::kFinalize:  // what lies in it is made
      return s.skip("the replay's own MPI begins before it and ends after it");
    case Does::kNothing:
    case Does::kBegin:
      break;
  }
  if (op == FEIGN_MPI_BUFFER_DETACH) return wait_for_buffered(s);
  s.emulate();
}
}  // namespace

void do_mpi(Stream& s, uint32_t op) {
  const Does does = mpi_does(op);
  const int64_t recorded = s.a->result;
  if (recorded >= 0) return make(s, op, does);
  // What failed then was not done; and whoever waited for it then does not wait for it now.
  if (!done_in_part(does, recorded)) return s.emulate();
  make(s, op, does);
  // One request says what is wrong, several say that something is; and what is empty always fits.
  if (s.outcome->result < 0 || s.r->options.comm == kOrder) s.outcome->result = recorded;
}

}  // namespace feign::mpi
