// SPDX-License-Identifier: MIT
// What the generator makes of a call's description, beyond what feign.h shows of it: for reading
// the call from text and for resolve.
#pragma once

#include <cstdint>
#include <span>

#include "feign.h"
#include "trace/effects.h"

namespace feign {

// Role of a parameter: layers/posix.h explains them.
enum class Role : uint8_t {
  kSkip,
  kFd,
  kFd2,
  kDir,
  kDir2,
  kPath,
  kPath2,
  kText2,
  kBuffer,
  kReadback2,
  kNames,
  kLength,
  kOffset,
  kFlags,
  kMode,
  kValue,
  kIov,
  kStat,
  kStatx,
  kAcl,
  kFds,
  kRights,
  kAt,
  kTimes,
  kResult,
  kIocbs,
};

enum class Form : uint8_t {
  kPlain,   // the argument itself
  kStruct,  // a member of a struct argument, the first that is kept
  kMember,  // a further one of the same argument
};

struct CallArg {
  const char* name;
  Role role;
  Form form;
  uint8_t index;  // of a value
  uint16_t name_count;
  const feign_name* names;
  const char* member;  // of a struct; "" is the argument itself where it is no struct
  bool wide = false;   // a position: two words of the kernel's in a program of 32 bits
};

struct Call {
  const char* name;
  uint16_t op;  // 0: no such call
  uint8_t arg_count;
  Effect effect;
  bool nofollow;            // a link at the end of the path is used itself
  bool zero;                // every success returns 0
  const char* in_a_replay;  // what becomes of it there
  const CallArg* args;
  uint32_t cloexec = 02000000;  // O_CLOEXEC, or its own flag for that; kAlways: an exec closes it
  static constexpr uint32_t kAlways = UINT32_MAX;
};

// A call that is known to be no activity.
struct LeftOutCall {
  const char* name;
  const char* why;
  feign_passed passed;  // how its time did
  bool asks = false;    // for what no trace of calls shows
};

// Another name of a call.
struct CallAlias {
  const char* name;
  uint16_t op;
};

}  // namespace feign
