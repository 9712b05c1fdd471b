// SPDX-License-Identifier: MIT
// What processes tell each other, in several files without exact times: who has read something from
// a pipe or a socket came after whoever wrote that. All is kept account of in the order in which
// calls are given out, in which a process has what its maker had.
#pragma once

#include <cerrno>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "feign.h"
#include "providers/overlap/files.h"
#include "providers/strace/source.h"
#include "trace/effects.h"

namespace feign::strace {

class Messages {
 public:
  // One end of a pipe or a connection: the way that is read there, and the one that is written to.
  struct End {
    uint64_t reads = 0, writes = 0;  // 0: none
    uint32_t address = 0;            // it was bound to, if it was
  };
  // By descriptor, of who share them.
  using Ends = std::unordered_map<uint32_t, End>;

  // A call by which a process of the trace is to be bound to an address, or connected to it.
  void will_come(Effect effect, uint32_t address) {
    if (address == 0) return;
    Address& at = addresses_[address];
    ++(effect == Effect::kBind ? at.binds : at.connects);
  }

  void one_will_accept() { ++accepting_; }
  // Where several accept, the nth connect is nobody's nth accept.
  void has_looked_ahead() {
    std::erase_if(addresses_, [&](const auto& a) { return accepting_ > 1 || a.second.binds == 0; });
  }
  bool will_any_come() const { return !addresses_.empty(); }

  // Another process of the trace has these, too.
  void are_shared(const Ends& ends) {
    for (const auto& [handle, end] : ends) {
      if (end.reads != 0) ways_[end.reads].shared = true;
      if (end.writes != 0) ways_[end.writes].shared = true;
    }
  }

  // Whether what the call has had from others is still to be sent.
  bool is_early(const Held& call, const Ends& ends) const {
    const feign_activity& a = call.a;
    switch (posix_calls()[a.op].effect) {
      case Effect::kRead:
      case Effect::kReceive:
      case Effect::kCopy: {
        if (a.result <= 0) return false;
        const auto way = ways_.find(at(ends, a.handle).reads);
        return way != ways_.end() && way->second.shared &&
               way->second.read + static_cast<uint64_t>(a.result) > way->second.written;
      }
      case Effect::kConnect: {
        const auto to = addresses_.find(call.socket.address);
        return connects(a) && to != addresses_.end() && !to->second.bound;
      }
      case Effect::kAccept: {
        const auto to = addresses_.find(at(ends, call.socket.handle).address);
        return a.result >= 0 && to != addresses_.end() && to->second.nobody_pends() &&
               to->second.connects != 0;
      }
      default:
        return false;
    }
  }

  void note(const Held& call, Ends& ends) {
    const feign_activity& a = call.a;
    const Effect effect = posix_calls()[a.op].effect;
    const End own = at(ends, a.handle);
    if (const uint32_t closed = closed_by(effect, a); closed != 0) ends.erase(closed);
    if (const Left left = left_by(effect, a); left.what == Left::kOwn)
      ends[left.handle] = own;
    else
      ends.erase(left.handle);
    if (a.result < 0 && !(effect == Effect::kConnect && connects(a))) return;
    const auto bytes = static_cast<uint64_t>(a.result);
    switch (effect) {
      case Effect::kPipe:
      case Effect::kSocketpair:
        if (call.values.size() < 2) break;
        ends[FEIGN_FD(call.values[0])] = {new_way(), 0};
        ends[FEIGN_FD(call.values[1])] = {0, last_way_};
        if (effect == Effect::kSocketpair) {
          ends[FEIGN_FD(call.values[0])].writes = new_way();
          ends[FEIGN_FD(call.values[1])].reads = last_way_;
        }
        break;
      case Effect::kOpen:  // /dev/fd/3
        if (call.socket.handle != 0) ends[FEIGN_FD(a.result)] = at(ends, call.socket.handle);
        break;
      case Effect::kEventfd:
        ends[FEIGN_FD(a.result)] = {new_way(), last_way_};
        break;
      case Effect::kWrite:
      case Effect::kSend:
        if (own.writes != 0) ways_[own.writes].written += bytes;
        break;
      case Effect::kCopy:
        if (const uint64_t way = at(ends, a.handle2).writes; way != 0) ways_[way].written += bytes;
        [[fallthrough]];
      case Effect::kRead:
      case Effect::kReceive:
        if (own.reads != 0 && !call.socket.peeks) ways_[own.reads].read += bytes;
        break;
      case Effect::kBind:
        ends[call.socket.handle].address = call.socket.address;
        if (const auto to = addresses_.find(call.socket.address); to != addresses_.end())
          to->second.bound = true;
        break;
      case Effect::kConnect: {
        const auto found = addresses_.find(call.socket.address);
        if (found == addresses_.end()) break;  // nobody's here
        Address& to = found->second;
        if (to.connects > 0) --to.connects;
        const End mine = {new_way(), new_way(), 0};
        ends[a.handle] = mine;
        are_shared({{a.handle, mine}});
        to.pending.push_back({mine.writes, mine.reads, 0});
        break;
      }
      case Effect::kAccept: {
        const auto to = addresses_.find(at(ends, call.socket.handle).address);
        if (to == addresses_.end() || to->second.nobody_pends()) break;
        ends[FEIGN_FD(a.result)] = to->second.pending[to->second.accepted++];
        break;
      }
      default:
        break;
    }
  }

 private:
  struct Way {
    uint64_t written = 0, read = 0;  // bytes
    bool shared = false;             // else all that is seen of it is one process's
  };
  struct Address {
    uint32_t binds = 0, connects = 0;  // that are to come
    bool bound = false;
    std::vector<End> pending;  // the other ends of those that are connected to it
    size_t accepted = 0;       // of these
    bool nobody_pends() const { return accepted == pending.size(); }
  };
  static End at(const Ends& ends, uint32_t handle) {
    const auto end = ends.find(handle);
    return end != ends.end() ? end->second : End{};
  }
  static bool connects(const feign_activity& a) {
    return a.result == 0 || a.result == -EINPROGRESS;
  }
  uint64_t new_way() {
    ways_[++last_way_];
    return last_way_;
  }

  std::unordered_map<uint64_t, Way> ways_;
  uint64_t last_way_ = 0;
  uint32_t accepting_ = 0;  // processes
  std::unordered_map<uint32_t, Address> addresses_;
};

}  // namespace feign::strace
