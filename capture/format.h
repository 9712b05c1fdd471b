/* SPDX-License-Identifier: MIT */
/*
 * What the capture library leaves behind: the raw folder, written by the processes that are
 * recorded and read by the provider `capture`.
 *
 *   records   one large sparse file, which all processes map: a page that all share, feign_control,
 *             behind it what is in hooks (one file to open as a program starts), and chunks that
 *             they fill: feign_chunk_head, and records
 *   hooks     libraries' texts with their system calls made jumps (capture/hook_format.h)
 *   records.HOST   the same of another host, made by the first process there (as
 *             making.HOST.…, until it is whole): control page, chunks
 *   layers    descriptions of third parties' layers, if there are any (core/trace/own_layer.h)
 *
 * A chunk is of one lane, and a lane belongs to one
 * thread and is written by nobody else. (A thread has more than one where a signal handler came in
 * the middle of a record, and while a vfork's child runs on its stack.) Within a lane records are
 * in the order in which their calls ended. A record counts once its length is there, which is
 * written last: a process that is killed loses the record at hand and no more.
 *
 * A record: feign_record_head, then the pause before the call and its duration, in ticks (as many
 * bytes as the head says), then fields: a byte (field << 4 | number of bytes) and that many bytes,
 * least significant first; texts have two bytes of length in place of a number. Values and texts
 * among the values are in order, from values[0]. A text among the values that stands in this chunk
 * already may be a number: how far from the chunk's beginning that field begins.
 */
#ifndef FEIGN_CAPTURE_FORMAT_H
#define FEIGN_CAPTURE_FORMAT_H

#include <stdint.h>

#define FEIGN_CAPTURE_MAGIC 0x3152544350464531ull /* "1EFPCTR1" */
#define FEIGN_CAPTURE_VERSION 11u                 /* of what is described here */
#define FEIGN_CAPTURE_CHUNK_MAGIC 0x4b4e4843u     /* "CHNK" */
/* Chunks begin at multiples of this, or where one before it ends. */
#define FEIGN_CAPTURE_UNIT 4096u
#define FEIGN_CAPTURE_MOST 60000u /* bytes of a record */
#define FEIGN_CAPTURE_EXECS 512u

/* In ASAN_OPTIONS of programs that are recorded. */
#define FEIGN_CAPTURE_ASAN "verify_asan_link_order=0"

/* Numbers of calls: layer << 12 | the op's number in its description. Layers of third parties are
 * named in feign_control, and described in the file layers. Calls that are left out have the place
 * of their name in the layer's list. */
enum {
  FEIGN_CAPTURE_POSIX = 0,
  FEIGN_CAPTURE_STDIO = 1,
  FEIGN_CAPTURE_MPI = 2,
  FEIGN_CAPTURE_MPIIO = 3,
  FEIGN_CAPTURE_THIRD = 4, /* the first of third parties */
  FEIGN_CAPTURE_LEFT_OUT = 15
};
/* Of FEIGN_CAPTURE_LEFT_OUT: no call, but not computing either. */
#define FEIGN_CAPTURE_IDLE 0xFFFu
#define FEIGN_CAPTURE_OP(layer, number) ((uint16_t)((layer) << 12 | (number)))

struct feign_control {
  uint64_t magic;
  uint32_t version;
  uint32_t paused;       /* 1: no more than what later calls need is recorded */
  uint64_t tick_0, ns_0; /* the same moment by both clocks, when the recording began */
  uint64_t tick_1, ns_1; /* … and later */
  uint64_t real_ns;      /* CLOCK_REALTIME at tick_0 */
  uint64_t max_bytes;    /* of records; 0: no limit */
  uint64_t size;         /* of the file */
  uint64_t bytes;        /* given out so far, with all before the first chunk */
  uint64_t dropped;      /* records that found no room */
  uint32_t processes;    /* that were recorded */
  uint32_t unhooked;     /* … of which the system calls could not be */
  uint32_t sample;       /* record one data call in so many; 0 and 1: all */
  uint32_t ended;        /* 1: tick_1 is the end */
  uint32_t layers;       /* bits: layers to be recorded */
  uint32_t unwatched;    /* processes that cannot reach that memory */
  char watch[64];        /* memory that `feign discover` shares (watch.h); empty: none */
  char host[64];
  char third[FEIGN_CAPTURE_LEFT_OUT - FEIGN_CAPTURE_THIRD][32]; /* names of third parties' layers */
  uint64_t ready; /* up to here the file's pages are there: touching them cannot fail */
  /* Processes that call exec, by their number's last bits, and what they start: that program is no
   * stranger (feign_exec_mark). */
  int32_t execs[FEIGN_CAPTURE_EXECS];
  uint64_t first; /* where the first chunk is */
  /* Of another host than the one that `feign record` runs on: the same moments by its counter and
   * by that of `reference`, a host; measured by messages as MPI begins, and as it ends. */
  char reference[64];
  struct {
    uint64_t tick, theirs, bound; /* theirs: give or take `bound`; all 0: not measured */
  } aligned[2];
  /* Of pauses longer than so many ticks, how long the thread was not computing; 0: not asked for.
   */
  uint64_t long_pause;
  uint64_t rate; /* ticks a nanosecond << 20 */
  /* Whose the file is, and 1; 0 if every user may write to it. Programs that others start cannot
   * be recorded. */
  uint32_t owner;
  uint32_t strangers;
  uint32_t silent; /* threads that could not be recorded from some call on */
  uint64_t start;  /* ticks that a program's start takes longer with the library; 0: not known */
  uint64_t overlooked; /* io_uring's requests that were over before anybody looked at them */
  uint64_t unended;    /* … that were not when their ring went */
  /* Whoever takes the byte at wake_at wakes who makes pages, by the futex `woken`, a count. 0:
   * nobody makes any. */
  uint64_t wake_at;
  uint32_t woken;
  char preload[1024]; /* the recording's own libraries, as in LD_PRELOAD */
  uint32_t umask;     /* the command's, and 1; 0: not known */
  uint32_t pauses;    /* how often it was paused; --paused is the first */
};

struct feign_chunk_head {
  uint32_t magic;
  uint32_t size; /* with this head */
  uint32_t lane;
  int32_t pid, thread; /* of a vfork's child, those of the lane's last chunk count */
  uint32_t number;     /* within the lane */
  uint64_t tick;       /* the first pause counts from here */
  /* Of the process: */
  uint64_t began;          /* when it, or its exec, began … */
  uint64_t began_ns;       /* … by the other clock; 0: that could not be read (seccomp) */
  int32_t own_pid, parent; /* own_pid: pid, unless this is a vfork's child in it */
  uint32_t rank;           /* and 1; 0: none */
  uint32_t forked;         /* 1: the program before it in this process was recorded, too */
};

struct feign_record_head {
  uint16_t length; /* of all, written last */
  uint16_t op;
  uint8_t kind;  /* a kind below << 4 | depth, at most 15 */
  uint8_t times; /* bytes of the pause << 4 | bytes of the duration */
};

enum {
  FEIGN_RECORD_CALL = 0,
  FEIGN_RECORD_BEGIN = 1, /* the call at this depth has begun; its record follows what is in it */
  FEIGN_RECORD_BEGUN = 2, /* that record */
  FEIGN_RECORD_CWD = 3,   /* of a process that was not followed to here: a path */
  FEIGN_RECORD_FD = 4,    /* … a descriptor that it has: a handle, a path */
  /* The call has begun and may not return: exec, exit. Its result: what it will be if it does. */
  FEIGN_RECORD_STARTED = 6
};

/* Slots are those of feign_slot. */
enum {
  FEIGN_FIELD_TRACER = 0, /* ticks of the pause that were the library's own */
  FEIGN_FIELD_HANDLE = 1,
  FEIGN_FIELD_HANDLE2 = 2,
  FEIGN_FIELD_PATH = 3,  /* text */
  FEIGN_FIELD_PATH2 = 4, /* text */
  FEIGN_FIELD_OFFSET = 5,
  FEIGN_FIELD_LENGTH = 6,
  FEIGN_FIELD_FLAGS = 7,
  FEIGN_FIELD_MODE = 8,
  FEIGN_FIELD_VALUE = 9,
  FEIGN_FIELD_TEXT_VALUE = 10, /* text */
  FEIGN_FIELD_NOTHING = 11,    /* a value that is not known: 0 stands for it */
  FEIGN_FIELD_HINT = 12,       /* text: what the handle is */
  FEIGN_FIELD_NODE = 13,   /* `feign discover`: node << 32 | number of its call on files, and 1 */
  FEIGN_FIELD_RESULT = 14, /* left out: 0 */
  FEIGN_FIELD_ERROR = 15   /* the result is this, negative */
};

#endif
