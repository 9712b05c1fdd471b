// SPDX-License-Identifier: MIT
// Rule mpi: what messages and collective calls of MPI order, where they are not made themselves.
// Who receives goes on when the sender has come to its send: the receiver's next activity (after
// the receive, or after the call that ended its request) comes after the sender's last one before
// it. Of a collective call nobody goes on before all have come to it: the last to come is a hub,
// which comes after all others, and which all wait for; so n ranks need 2 n edges, not n times n.
//
// Calls of a communicator's members belong together by their number on it, messages by theirs
// between two ranks under one tag: MPI keeps these in order.
#include <string>

#include "modifiers/depend/depend.h"

namespace depend {

using feign::Does;
using feign::mpi::kAbsent;
using feign::mpi::kCompleted;
using feign::mpi::kWildcard;
using feign::mpi::number;

const Depend::Message& Depend::message_of(uint32_t op) {
  if (op >= messages_.size()) messages_.resize(op + size_t{1});
  Message& m = messages_[op];
  if (m.known) return m;
  m.known = true;
  const feign_op_info* info = host_->op_info(host_, op);
  const std::string_view layer = info != nullptr ? info->layer : "";
  if (layer != "mpi" && layer != "mpiio") return m;
  m.args = feign::mpi::args_of_op(*info);
  m.does = feign::mpi::does_of(op);
  m.begins = m.args.request != kAbsent;
  m.file = layer == "mpiio";
  m.opens = m.file && info->kind == FEIGN_KIND_OPEN;
  switch (m.does) {
    case Does::kMakeComm:
    case Does::kMakeWindow:
    case Does::kMeetWindow:
      m.meets = Does::kMeet;
      break;
    case Does::kMeet:
    case Does::kFromRoot:
    case Does::kToRoot:
    case Does::kUpwards:
      m.meets = m.does;
      break;
    default:
      break;
  }
  m.keeps = m.does == Does::kKeepSend || m.does == Does::kKeepReceive;
  m.sends = m.does == Does::kSend || m.does == Does::kSendReceive || m.does == Does::kKeepSend;
  m.receives =
      m.does == Does::kReceive || m.does == Does::kSendReceive || m.does == Does::kKeepReceive;
  m.starts = m.does == Does::kStart;
  m.ends = m.does == Does::kEnd || m.does == Does::kEndSome;
  m.tells = m.does == Does::kRequest && m.args.flag != kAbsent;
  return m;
}

// The ranks of a communicator, and which of its calls comes next for each.
Depend::Comm& Depend::comm_of(uint32_t text) {
  Comm& c = comms_[text];
  if (c.known) return c;
  c.known = true;
  // "#1.2{0-2,5}"; two groups are one here.
  std::string_view t = host_->text(host_, text, nullptr);
  const size_t open = t.rfind('{');
  if (open == t.npos) return c;
  uint64_t first = 0, n = 0;
  bool range = false, digits = false;
  for (const char ch : t.substr(open + 1)) {
    if (ch >= '0' && ch <= '9') {
      n = n * 10 + static_cast<uint64_t>(ch - '0');
      digits = true;
      if (n >> 20 != 0) return c;
      continue;
    }
    if (digits && ch == '-') {
      first = n;
      range = true;
    } else if (digits) {
      c.members += static_cast<uint32_t>(range ? n - std::min(first, n) + 1 : 1);
      range = false;
    }
    n = 0;
    digits = false;
  }
  return c;
}

// That of the file a call of MPI-IO is on; 0: not known, or it did not come to the others.
uint32_t Depend::comm_of_file(const feign_activity& a, const Message& m) {
  if (feign::mpi::refused(a)) return 0;
  if (m.opens && m.args.comm < a.value_count && a.values[m.args.comm] != FEIGN_UNKNOWN)
    return opened_[a.handle] = static_cast<uint32_t>(a.values[m.args.comm]);
  const auto at = opened_.find(a.handle);
  return at != opened_.end() ? at->second : 0;
}

void Depend::leave(uint32_t stream, Point p) {
  if (p.id != 0 && p.stream != stream) streams_[stream].owed.push_back({p, kMpi});
}

// This rank has come to its next call of a communicator, and goes on when `request` is over, or
// next.
void Depend::come(uint32_t comm, const Message& m, const feign_activity& a, int root, Point here,
                  uint64_t request) {
  Comm& c = comm_of(comm);
  const int32_t rank = streams_[a.stream].rank;
  if (c.members < 2 || rank < 0) return;
  const uint64_t number = c.next[rank]++;
  Meeting& meeting = c.meetings[number];
  const bool is_root = root == rank;
  // Its own arrival.
  const auto tell = [&](const Meeting::Waiter& w) {
    if (w.request == 0)
      leave(w.stream, here);
    else
      request_of(w.stream, w.request).after.push_back(here);
  };
  const Meeting::Waiter me{a.stream, rank, is_root, request};
  const auto wait = [&] {
    if (request != 0) {
      Request& q = request_of(a.stream, request);
      q.comm = comm;
      q.meeting = number + 1;
      q.waiter = meeting.waiters.size();
    }
    meeting.waiters.push_back(me);
  };
  ++meeting.came;
  switch (m.meets) {
    case Does::kMeet: {
      wait();
      if (meeting.came < c.members) {
        meeting.arrived.push_back(here);
        break;
      }
      // The last one is the hub.
      for (const Point& p : meeting.arrived) after(p, kRuleNames[kMpi]);
      here = me_;
      for (const Meeting::Waiter& w : meeting.waiters)
        if (w.stream != a.stream) tell(w);
      break;
    }
    case Does::kFromRoot:
      if (is_root)
        for (const Meeting::Waiter& w : meeting.waiters) tell(w);
      if (is_root) meeting.arrived.push_back(here);
      if (!is_root && meeting.arrived.empty()) wait();
      if (!is_root && !meeting.arrived.empty()) {
        here = meeting.arrived.front();
        tell(me);
      }
      break;
    case Does::kToRoot:
      if (is_root) {
        for (const Point& p : meeting.arrived) {
          here = p;
          tell(me);
        }
        wait();
      } else {
        meeting.arrived.push_back(here);
        for (const Meeting::Waiter& w : meeting.waiters) tell(w);
      }
      break;
    default:  // each waits for those before it, as far as they have come
      for (const Meeting::Waiter& w : meeting.waiters)
        if (w.rank > rank) tell(w);
      for (size_t i = 0; i < meeting.arrived.size(); ++i)
        if (meeting.waiters[i].rank < rank) {
          const Point mine = here;
          here = meeting.arrived[i];
          tell(me);
          here = mine;
        }
      wait();
      meeting.arrived.push_back(here);
  }
  if (meeting.came >= c.members) c.meetings.erase(number);
  // Not all of its ranks may be in the trace.
  if (c.meetings.size() > kMostQueued) c.meetings.erase(c.meetings.begin());
}

Depend::Request& Depend::request_of(uint32_t stream, uint64_t request) {
  return requests_[{streams_[stream].rank, request}];
}

// Programs may have a tag for each message. The last that was asked for may be gone after this.
Depend::Passage& Depend::passage(uint32_t comm, int from, int to, int tag) {
  if (ways_.size() >= ways_kept_) {
    std::erase_if(ways_, [](const auto& one) { return one.second.over(); });
    ways_kept_ = std::max(kMostWays, 2 * ways_.size());
  }
  return ways_[{comm, from, to, tag}];
}

// A message leaves; who has been waiting for it goes on.
void Depend::post(uint32_t comm, int to, int tag, Point here) {
  Passage& w = passage(comm, streams_[me_.stream].rank, to, tag);
  const uint64_t number = w.sent++;
  if (const auto at = w.waiting.find(number); at != w.waiting.end()) {
    const auto [stream, request] = at->second;
    w.waiting.erase(at);
    if (request == 0) {
      leave(stream, here);
    } else {
      Request& q = request_of(stream, request);
      q.after.push_back(here);
      q.message = 0;
    }
    return;
  }
  w.on_its_way[number] = here;
  if (w.on_its_way.size() > kMostQueued) w.on_its_way.erase(w.on_its_way.begin());
}

// A receive takes the next message of a kind; it goes on, or its request ends, after that.
void Depend::take(uint32_t comm, int from, int tag, uint64_t request) {
  Passage& w = passage(comm, from, streams_[me_.stream].rank, tag);
  const uint64_t number = w.taken++;
  if (const auto at = w.on_its_way.find(number); at != w.on_its_way.end()) {
    if (request == 0)
      leave(me_.stream, at->second);
    else
      request_of(me_.stream, request).after.push_back(at->second);
    w.on_its_way.erase(at);
    return;
  }
  if (number >= w.sent) {
    w.waiting[number] = {me_.stream, request};
    if (request != 0) {
      Request& q = request_of(me_.stream, request);
      q.comm = comm;
      q.peer = from;
      q.tag = tag;
      q.message = number + 1;
    }
  }
  if (w.waiting.size() > kMostQueued) w.waiting.erase(w.waiting.begin());
}

// The call that ends a request began before what it waits for has come: its stream waits for that.
void Depend::still_waits(Request& q, uint32_t stream) {
  if (q.message != 0) {
    auto& waiting = passage(q.comm, q.peer, streams_[stream].rank, q.tag).waiting;
    if (const auto at = waiting.find(q.message - 1); at != waiting.end()) at->second = {stream, 0};
  }
  if (q.meeting != 0) {
    auto& meetings = comm_of(q.comm).meetings;
    if (const auto at = meetings.find(q.meeting - 1); at != meetings.end()) {
      at->second.waiters[q.waiter].stream = stream;
      at->second.waiters[q.waiter].request = 0;
    }
  }
  q.message = q.meeting = 0;
}

// Rank 0 may be alone in its program, and sends nothing then.
void Depend::at_once(uint32_t stream, Does does) {
  feign_stream_info info{};
  info.struct_size = sizeof info;
  if (host_->stream_info(host_, stream, &info) < 0 || info.rank == 0) return;
  if (!programs_.at_once(info, does)) return;
  said_at_once_ = true;
  const std::string text = std::string(feign::mpi::kAtOnce) +
                           ": who waits for whose messages is a guess; of one alone "
                           "(filter,process=" +
                           feign::mpi::one_program(host_) + ") it is known";
  host_->log(host_, FEIGN_LOG_WARN, text.c_str());
}

// `here`: the stream's last activity before this one.
void Depend::mpi(const feign_activity& a, Point here) {
  const Message& m = message_of(a.op);
  const auto value = [&](uint8_t at) { return feign::mpi::value_of(a, at); };
  const auto text = [&](uint8_t at) { return feign::mpi::text_of(a, at); };
  if (!said_at_once_ && m.does != Does::kNothing) at_once(a.stream, m.does);
  if (a.result < 0 && !feign::mpi::done_in_part(m.does, a.result)) return;
  const feign::mpi::Args& x = m.args;
  const int32_t rank = streams_[a.stream].rank;
  const uint64_t named = value(x.request);
  const uint64_t request = m.begins && named != FEIGN_UNKNOWN ? named : 0;
  if (m.does == Does::kMeetWindow) {
    if (const auto at = windows_.find({rank, text(x.win)}); at != windows_.end())
      come(at->second, m, a, 0, here, 0);
    return;
  }
  if (m.meets != Does::kNothing) {
    const uint32_t comm = m.file ? comm_of_file(a, m) : text(x.comm);
    if (comm == 0) return;
    if (m.does == Does::kMakeWindow) windows_[{rank, text(x.win)}] = comm;
    const uint64_t root = value(x.rank);
    return come(comm, m, a, root == FEIGN_UNKNOWN ? 0 : number(root), here, request);
  }
  const uint32_t comm = text(x.comm);
  if (m.keeps) {
    const uint64_t peer = value(x.rank), tag = value(x.tag);
    request_of(a.stream, request) = {{}, comm, number(peer), number(tag), m.sends, true, false};
    return;
  }
  if (m.sends && value(x.rank) != FEIGN_UNKNOWN && number(value(x.rank)) >= 0)
    post(comm, number(value(x.rank)), number(value(x.tag)), here);
  if (m.receives) {
    const bool both = m.sends;
    const uint64_t peer = value(both ? x.rank2 : x.rank), tag = value(both ? x.tag2 : x.tag);
    if (peer == FEIGN_UNKNOWN || tag == FEIGN_UNKNOWN) return;
    const int from = number(peer), with = number(tag);
    if (from >= 0 && with >= 0)
      take(comm, from, with, request);
    else if (from != -1 && request != 0)  // whom it got, says the call that ends it
      request_of(a.stream, request) = {{}, comm, from, with, false, false, true};
    return;
  }
  if (!m.starts && !m.ends && !m.tells) return;
  const bool several = x.request == kAbsent;
  const bool flag_off = x.flag != kAbsent && value(x.flag) == 0;
  if (!m.starts && flag_off) return;
  const auto each = [&](uint64_t n, uint64_t matched) {
    const auto at = requests_.find({rank, n});
    if (at == requests_.end()) return;
    Request& q = at->second;
    if (m.starts) {
      if (q.sends && q.peer >= 0) post(q.comm, q.peer, q.tag, here);
      if (!q.sends && q.peer >= 0 && q.tag >= 0) take(q.comm, q.peer, q.tag, n);
      return;
    }
    if (q.wild && matched != 0)
      take(q.comm, feign::mpi::source_of(matched), feign::mpi::tag_of(matched), 0);
    for (const Point& p : q.after) leave(a.stream, p);
    q.after.clear();
    still_waits(q, a.stream);
    if (m.ends && !q.keeps) requests_.erase(at);
  };
  std::map<uint64_t, uint64_t> matched;
  std::vector<uint64_t> numbers;
  if (!several) numbers.push_back(named);
  for (uint32_t i = x.list; x.list != kAbsent && i < a.value_count; ++i) {
    const uint64_t n = a.values[i];
    if ((n & (kWildcard | FEIGN_UNKNOWN)) == kWildcard) {
      if (++i < a.value_count) matched[n & ~(kWildcard | kCompleted)] = a.values[i];
    } else if (!(n & FEIGN_UNKNOWN) &&
               (!feign::mpi::ends_some(m.does, a.result) || n & kCompleted)) {
      numbers.push_back(n & ~kCompleted);
    }
  }
  for (const uint64_t n : numbers) {
    const auto at = matched.find(n);
    each(n, at != matched.end() ? at->second : 0);
  }
}

}  // namespace depend
