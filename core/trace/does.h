// SPDX-License-Identifier: MIT
// What a call of a layer that sends messages does about other ranks: its description says it
// (`does=` in layers/mpi.h, which explains the words), and the generator makes a table of it.
#pragma once

#include <cstdint>

namespace feign {

enum class Does : uint8_t {
  kNothing,
  kBegin,
  kSend,
  kReceive,
  kSendReceive,
  kKeepSend,
  kKeepReceive,
  kProbe,
  kStart,
  kEnd,
  kEndSome,
  kRequest,
  kMeet,
  kFromRoot,
  kToRoot,
  kUpwards,
  kNeighbours,
  kMakeComm,
  kMakeWindow,
  kMeetWindow,
  kWindow,
  kMakeType,
  kInit,
  kFinalize,
};

}  // namespace feign
