/* SPDX-License-Identifier: MIT */
/*
 * The memory that `feign discover` shares with the nodes of a run: each says what it is doing and
 * since when, and learns at which of its calls it is to be held. capture/watch.c writes it,
 * core/discover/run.cc watches it. feign_control.watch has its path.
 *
 * A word has one writer: a node its own slot, but for `released`, which is the watcher's. A slot is
 * taken by counting `nodes` up; its key is complete before its state is other than FEIGN_NODE_FREE.
 */
#ifndef FEIGN_CAPTURE_WATCH_H
#define FEIGN_CAPTURE_WATCH_H

#include <stdint.h>

#define FEIGN_WATCH_MAGIC 0x3148435457474e46ull /* "FNGWTCH1" */
enum {
  FEIGN_WATCH_NODES = 1024,
  FEIGN_WATCH_CALLS = 1 << 20, /* no call past this one is held */
  FEIGN_WATCH_KEY = 112,
  FEIGN_WATCH_PREFIXES = 8,
  FEIGN_WATCH_PREFIX = 1024
};

enum {
  FEIGN_NODE_FREE = 0,
  FEIGN_NODE_STARTING,  /* made by its parent, has not run yet */
  FEIGN_NODE_COMPUTING, /* between calls */
  FEIGN_NODE_CALLING,   /* in an I/O call */
  FEIGN_NODE_WAITING,   /* in a call that can wait for others: waitpid, MPI_Barrier … */
  FEIGN_NODE_HELD,      /* before an I/O call, until it is released */
  FEIGN_NODE_ENDED
};

enum { FEIGN_PER_THREAD = 0, FEIGN_PER_PROCESS = 1 };

struct feign_watch_node {
  char key[FEIGN_WATCH_KEY]; /* the same in every run: "main", "main/1", "rank:3", "rank:3#2" */
  uint32_t state;
  int32_t pid, thread; /* of a thread that has not begun: -1 */
  int32_t rank;        /* -1: none */
  uint32_t children;   /* processes, to name the next one */
  uint32_t threads;
  uint32_t waits;    /* calls that can wait, begun */
  uint64_t begun;    /* I/O calls that have begun: the next one's number */
  uint64_t calls;    /* … that have ended */
  uint64_t steps;    /* I/O calls begun and ended, added up */
  uint64_t since;    /* ns, CLOCK_MONOTONIC: when it came to its state */
  uint64_t held;     /* 1 + the number of the call before which it is held; 0: none */
  uint64_t released; /* held before a call of a lower number no longer */
  uint64_t longest_gap, longest_cpu; /* ns between I/O calls, and of the processor's in that time */
  uint64_t longest_call;             /* ns */
  uint64_t longest_make, longest_make_cpu; /* between the processes and threads that it makes */
  char doing[24];                          /* the call's name, in CALLING, WAITING and HELD */
};

struct feign_watch {
  uint64_t magic;
  uint64_t size;
  int32_t owner;  /* pid of the watcher; without it nobody is held */
  uint32_t stop;  /* 1: nobody is held any more */
  uint32_t per;   /* FEIGN_PER_* */
  uint32_t nodes; /* slots taken; more than FEIGN_WATCH_NODES: too many */
  uint32_t ranks; /* that there are, as launchers tell; 0: none */
  uint32_t only_count, exclude_count;
  uint64_t pid_space; /* inode of the watcher's namespace of process ids: others' tell it nothing */
  uint64_t skip_dev[3], skip_ino[3]; /* what the watcher's own descriptors 0 to 2 are */
  char throttled[FEIGN_WATCH_KEY];   /* key of the node that is held; empty: none */
  char only[FEIGN_WATCH_PREFIXES][FEIGN_WATCH_PREFIX],
      exclude[FEIGN_WATCH_PREFIXES][FEIGN_WATCH_PREFIX];
  uint64_t holds[FEIGN_WATCH_CALLS / 64]; /* bits: hold before this call */
  struct feign_watch_node node[FEIGN_WATCH_NODES];
};

#endif
