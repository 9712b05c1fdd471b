// SPDX-License-Identifier: MIT
// What a call does to processes, descriptors and names: the vocabulary of `effect=` in
// layers/posix.h, and what resolve acts on.
#pragma once

#include <cstdint>

namespace feign {

enum class Effect : uint8_t {
  kUse,      // works on a descriptor, no more
  kNone,     // on nothing that is kept track of
  kOpen,     // a path becomes a descriptor, by flags
  kCreat,    // the same, flags understood
  kFopen,    // the same, mode understood
  kFreopen,  // the same, in place of a second descriptor
  kTmpfile,  // the same, without a name
  kFdopen,   // of an open descriptor: it appends from now on, if the mode says so
  kClose,
  kCloseRange,
  kDup,
  kDup2,
  kFcntl,  // F_DUPFD duplicates, F_SETFD sets close-on-exec
  kRead,   // at the current offset, which it moves
  kWrite,
  kPread,  // at a given offset
  kPwrite,
  kPread2,  // at a given offset, or the current one if it is -1
  kPwrite2,
  kCopy,    // from one descriptor to a second, at given offsets or at their own
  kSeek,    // the result is where it is then
  kFseek,   // the arguments say where
  kFtell,   // the result is where it is
  kUngetc,  // `length` bytes back, or one
  kList,    // directory entries
  kStat,
  kFstat,
  kStatat,  // by AT_ flags; with AT_EMPTY_PATH or no path: the descriptor's file
  kAccess,
  kReadlink,
  kUnlink,
  kUnlinkat,  // rmdir by flag
  kRmdir,
  kRename,
  kMkdir,
  kLink,
  kSymlink,
  // Of a path's file, by AT_ flags, or of a descriptor's if there is no path:
  kChmod,
  kAttr,  // attributes that decide no later result
  kGetXattr,
  kSetXattr,
  kRemoveXattr,
  kMknod,
  kBind,  // a socket becomes a name; without a path it is not about files
  // FICLONE and FICLONERANGE make one file's bytes another's; FIOCLEX and FIONCLEX are as F_SETFD
  kIoctl,
  kUmask,
  kTruncate,
  kFtruncate,
  kFallocate,
  kFork,
  kClone,    // what is shared: by flags
  kUnshare,  // … no longer
  kSetns,    // … what another process has
  kExec,
  kExit,       // of one thread
  kExitGroup,  // of the process
  kChdir,
  kFchdir,
  kChroot,
  kGetcwd,    // tells the working directory
  kPipe,      // two descriptors that are no files
  kChannel,   // one
  kPidfd,     // … that is a process
  kRuleset,   // … unless its flags ask for a number
  kGetfd,     // a descriptor of such a process becomes one here, too
  kByHandle,  // one of a file that the call does not name is opened
  kConnect,   // a socket gets another end
  kAccept,    // … and here is that end: one descriptor
  kMap,       // a file's bytes become memory
  kUnmap,
  kRemap,
  kMapped,      // uses such memory
  kAioContext,  // what such requests are made by, values[0], begins or ends
  kAio,         // a request that is done later
  kAioWait,     // until such requests are done
  kFlush,       // works on a descriptor: what was written becomes durable
  kFlock,       // … it is locked
  // Between processes: kept for what they say about order and time.
  kVfork,       // a fork that the parent waits for
  kSocketpair,  // a pipe with two ways
  kEventfd,     // one descriptor, which is a counter
  kSend,        // on a socket
  kReceive,
  kWait,  // for a child
  kFutex,
  kSemaphore,
};

// A path becomes a descriptor, by what flags and mode are once the call is resolved.
inline bool opens(Effect e) {
  return e == Effect::kOpen || e == Effect::kCreat || e == Effect::kFopen ||
         e == Effect::kFreopen || e == Effect::kTmpfile;
}

// A call on names alone makes one, takes one away or gives a file another.
inline bool changes_names(Effect e) {
  switch (e) {
    case Effect::kMkdir:
    case Effect::kMknod:
    case Effect::kSymlink:
    case Effect::kUnlink:
    case Effect::kUnlinkat:
    case Effect::kRmdir:
    case Effect::kRename:
    case Effect::kLink:
      return true;
    default:
      return false;
  }
}

// Whether a provider may say in `mode` what is known of handle2 (feign.h).
inline bool says_second(Effect e) {
  return e == Effect::kLink || e == Effect::kRename || e == Effect::kCopy;
}

// Whether the time of such a call is waiting for others.
inline bool waits(Effect effect) {
  return effect == Effect::kWait || effect == Effect::kFutex || effect == Effect::kSemaphore ||
         effect == Effect::kReceive || effect == Effect::kConnect || effect == Effect::kAccept;
}

// Of preadv2(2) and pwritev2(2); the second is not in glibc's headers before 2.39.
constexpr uint32_t kRwfAppend = 0x10, kRwfNoAppend = 0x20;

// What processes are taken to begin with where nothing tells it.
constexpr uint32_t kUsualUmask = 022;

}  // namespace feign
