// SPDX-License-Identifier: MIT
// Where an op of layers mpi and mpiio keeps what: for the replayer that makes the calls, and for
// the rule of modifier depend that knows who waits for whom, and discover, which says by which
// call.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "feign.h"
#include "layers/mpi_does.h"
#include "layers/mpiio_does.h"

namespace feign::mpi {

// What a call of either layer does about other ranks.
constexpr Does does_of(uint32_t op) {
  const Does does = mpi_does(op);
  return does != Does::kNothing ? does : mpiio_does(op);
}

constexpr uint8_t kAbsent = 255;

// Numbers of values, by the names of layers/mpi.h and mpiio.h.
struct Args {
  uint8_t count = kAbsent, type = kAbsent, count2 = kAbsent, type2 = kAbsent, size2 = kAbsent;
  uint8_t rank = kAbsent, tag = kAbsent, rank2 = kAbsent, tag2 = kAbsent;
  uint8_t comm = kAbsent, request = kAbsent, list = kAbsent;
  uint8_t reduction = kAbsent, win = kAbsent, info = kAbsent, offset = kAbsent;
  uint8_t flag = kAbsent, message = kAbsent, group = kAbsent, other = kAbsent, other2 = kAbsent;
};

// In the lists of calls that end requests (layers/mpi.h): the call completed the request; the
// number of one that a wildcard began, and in the next entry whom it got.
constexpr uint64_t kCompleted = uint64_t{1} << 62, kWildcard = uint64_t{1} << 61;
constexpr int source_of(uint64_t entry) { return static_cast<int>(entry >> 32 & 0xFFFFFFF); }
constexpr int tag_of(uint64_t entry) { return static_cast<int>(entry & 0xFFFFFFFF); }

// Whether a call that failed did something all the same: what is too long for its receiver is
// taken, and of those that a call waits for some have ended, whatever they came to.
constexpr bool done_in_part(Does does, int64_t result) {
  return does == Does::kEnd || does == Does::kEndSome ||
         ((does == Does::kReceive || does == Does::kSendReceive) && result == -EMSGSIZE);
}
// Whether of the requests in its list those alone have ended of which it says so.
constexpr bool ends_some(Does does, int64_t result) { return does == Does::kEndSome || result < 0; }

// What an activity has as an argument: a value, which may be unknown, or a text's id, which is 0
// then.
inline uint64_t value_of(const feign_activity& a, uint8_t at) {
  return at < a.value_count ? a.values[at] : FEIGN_UNKNOWN;
}
inline uint32_t text_of(const feign_activity& a, uint8_t at) {
  const uint64_t v = value_of(a, at);
  return v == FEIGN_UNKNOWN ? 0u : static_cast<uint32_t>(v);
}

// Whether a call on a file failed since it names none: nobody else is waited for then. (One that a
// rank alone was refused for its count or datatype is made by all: all call it.)
inline bool refused(const feign_activity& a) {
  return a.handle == 0 && a.path == 0 && a.result < 0;
}

// A rank or tag: -1 nobody, -2 anybody, or any tag.
inline int number(uint64_t value) {
  return static_cast<int64_t>(value) > INT32_MAX
             ? static_cast<int32_t>(static_cast<uint32_t>(value))
             : static_cast<int>(static_cast<int64_t>(value));
}

// Which arguments an op has, by the names that layers/mpi.h gives them.
inline Args args_of_op(const feign_op_info& info) {
  Args x;
  bool info_seen = false;
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
    } else if (is({"group"})) {
      x.group = at;
    } else if (is({"message"})) {
      x.message = at;
    } else if (is({"site"})) {
      continue;
    } else {
      first(x.other, x.other2);
    }
  }
  return x;
}

}  // namespace feign::mpi
