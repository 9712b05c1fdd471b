/* SPDX-License-Identifier: MIT */
/*
 * Programs with known dependencies that no tracer can see: processes (or threads) that wait for
 * each other by looking at a flag in shared memory only. Compiled with -DWITH_MPI they are ranks
 * that send each other messages instead.
 *
 *   silent MODE FOLDER [nodes=4] [rounds=3] [compute=US] [wait=spin|nap] [as=processes|threads]
 *
 *   pseudosync     a write, a barrier, and so on                       (the //TRACE paper's)
 *   pseudosyncdat  the same with computation on the data, and reading it back
 *   pseudo         all writes, with one barrier in the middle
 *   fitness        each reads its part of a file after the one before it did, in a ring
 *   pipeline       node i writes a file per item when node i-1 wrote its own, and reads that one
 *   masterworker   node 0 writes tasks, the others in turn read them and write results that it
 * reads halo           two-level solver: neighbours swap halves every round, pairs synchronise with
 * their leader, leaders with each other
 *
 * FOLDER/truth gets who truly waited for whom: a line "NODE CALL ON_NODE ON_CALL" says that call
 * number CALL of NODE, from 0, was made after ON_NODE had ended its call ON_CALL. FOLDER/broken is
 * made if what a program reads shows that the order was broken.
 */
#define _GNU_SOURCE
#ifdef WITH_MPI
#include <mpi.h>
#endif
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kNodes = 16, kFlags = 2048, kEdges = 1 << 14, kBlock = 4096 };

struct shared {
  _Atomic uint64_t ended[kNodes];                /* calls that each has ended */
  _Atomic uint64_t flag[kNodes][kNodes];         /* counts: first to second */
  _Atomic uint64_t told[kNodes][kNodes][kFlags]; /* calls that first had ended when it raised it */
  _Atomic uint32_t edges;
  struct {
    uint32_t node, on;
    uint64_t call, on_call;
  } edge[kEdges];
};

static struct shared* s; /* with MPI: each rank's own */
static const char *mode, *folder;
static int nodes = 4, rounds = 3, compute_us = 300, nap, threads;
static __thread int me;

static void compute(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  const int64_t end = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec + (int64_t)compute_us * 1000;
  do clock_gettime(CLOCK_MONOTONIC, &t);
  while ((int64_t)t.tv_sec * 1000000000 + t.tv_nsec < end);
}

static void waited(int from, uint64_t calls) {
  if (calls == 0) return;
  const uint32_t i = atomic_fetch_add(&s->edges, 1);
  if (i >= kEdges) abort();
  s->edge[i].node = (uint32_t)me;
  s->edge[i].call = atomic_load(&s->ended[me]); /* the next one */
  s->edge[i].on = (uint32_t)from;
  s->edge[i].on_call = calls - 1;
}

#ifdef WITH_MPI
static void raise_flag(int to) {
  const uint64_t calls = atomic_load(&s->ended[me]);
  MPI_Send(&calls, 1, MPI_UINT64_T, to, 0, MPI_COMM_WORLD);
}
static void wait_for(int from) {
  uint64_t calls = 0;
  MPI_Recv(&calls, 1, MPI_UINT64_T, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  waited(from, calls);
}
static void barrier(void) {
  uint64_t mine = atomic_load(&s->ended[me]), all[kNodes];
  MPI_Allgather(&mine, 1, MPI_UINT64_T, all, 1, MPI_UINT64_T, MPI_COMM_WORLD);
  for (int i = 0; i < nodes; ++i)
    if (i != me) waited(i, all[i]);
}
#else
static __thread uint64_t seen[kNodes]; /* flags of others that this node has passed */

/* "What I have done is done": to one other. */
static void raise_flag(int to) {
  const uint64_t count = atomic_load(&s->flag[me][to]);
  if (count >= kFlags) abort();
  atomic_store(&s->told[me][to][count], atomic_load(&s->ended[me]));
  atomic_store(&s->flag[me][to], count + 1);
}

static void wait_for(int from) {
  const uint64_t want = ++seen[from];
  for (unsigned n = 0; atomic_load(&s->flag[from][me]) < want; ++n) {
    if (nap)
      usleep(50);
    else if (n % 256 == 255)
      sched_yield();
  }
  waited(from, atomic_load(&s->told[from][me][want - 1]));
}

/* Every other's flag is raised for me before I go on; nobody raises it a second time before. */
static void barrier(void) {
  for (int i = 0; i < nodes; ++i)
    if (i != me) raise_flag(i);
  for (int i = 0; i < nodes; ++i)
    if (i != me) wait_for(i);
}
#endif

static void broken(const char* what) {
  char path[4200];
  snprintf(path, sizeof path, "%s/broken", folder);
  FILE* f = fopen(path, "a");
  if (f != 0) {
    fprintf(f, "node %d, call %d: %s\n", me, (int)s->ended[me], what);
    fclose(f);
  }
}

static void ended(long result, const char* what) {
  if (result < 0) {
    fprintf(stderr, "silent: node %d: %s: %s\n", me, what, strerror(errno));
    exit(1);
  }
  atomic_fetch_add(&s->ended[me], 1);
}
static int open_file(const char* name, int number, int flags) {
  char path[4200];
  snprintf(path, sizeof path, "%s/%s.%d", folder, name, number);
  const int fd = open(path, flags, 0644);
  ended(fd, path);
  return fd;
}
static void write_block(int fd, int64_t at, int value) {
  char block[kBlock];
  memset(block, value, sizeof block);
  ended(pwrite(fd, block, sizeof block, at), "pwrite");
}
static void read_block(int fd, int64_t at, int value) {
  char block[kBlock];
  const long n = pread(fd, block, sizeof block, at);
  ended(n, "pread");
  if (n != (long)sizeof block || block[0] != (char)value || block[n - 1] != (char)value)
    broken("read something else than was to be written before");
}
static void close_file(int fd) { ended(close(fd), "close"); }

static void pseudosync(int data) {
  const int fd = open_file("out", me, O_RDWR | O_CREAT | O_TRUNC);
  for (int r = 0; r < rounds; ++r) {
    compute();
    write_block(fd, (int64_t)r * kBlock, r);
    barrier();
    if (data) {
      read_block(fd, (int64_t)r * kBlock, r);
      compute();
    }
  }
  close_file(fd);
}

static void pseudo(void) {
  const int fd = open_file("out", me, O_RDWR | O_CREAT | O_TRUNC);
  for (int r = 0; r < rounds; ++r) {
    if (r == rounds / 2) barrier();
    compute();
    write_block(fd, (int64_t)r * kBlock, r);
  }
  close_file(fd);
}

static void fitness(void) {
  const int fd = open_file("data", 0, O_RDONLY);
  if (me != 0) wait_for(me - 1);
  for (int r = 0; r < rounds; ++r) {
    compute();
    read_block(fd, ((int64_t)me * rounds + r) * kBlock, 7);
  }
  if (me + 1 < nodes) raise_flag(me + 1);
  close_file(fd);
}

static void pipeline(void) {
  for (int r = 0; r < rounds; ++r) {
    if (me > 0) {
      wait_for(me - 1);
      const int in = open_file("item", (me - 1) * 1000 + r, O_RDONLY);
      read_block(in, 0, r);
      close_file(in);
    }
    compute();
    const int out = open_file("item", me * 1000 + r, O_WRONLY | O_CREAT | O_TRUNC);
    write_block(out, 0, r);
    close_file(out);
    if (me + 1 < nodes) raise_flag(me + 1);
  }
}

static void masterworker(void) {
  if (me == 0) {
    const int fd = open_file("tasks", 0, O_RDWR | O_CREAT | O_TRUNC);
    for (int r = 0; r < rounds; ++r)
      for (int w = 1; w < nodes; ++w) {
        write_block(fd, ((int64_t)r * kNodes + w) * kBlock, r + w);
        raise_flag(w);
      }
    for (int w = 1; w < nodes; ++w) {
      wait_for(w);
      const int result = open_file("result", w, O_RDONLY);
      for (int r = 0; r < rounds; ++r) read_block(result, (int64_t)r * kBlock, r);
      close_file(result);
    }
    close_file(fd);
    return;
  }
  int tasks = -1;
  int fd = -1;
  for (int r = 0; r < rounds; ++r) {
    wait_for(0);
    if (tasks < 0) {
      tasks = open_file("tasks", 0, O_RDONLY);
      fd = open_file("result", me, O_WRONLY | O_CREAT | O_TRUNC);
    }
    read_block(tasks, ((int64_t)r * kNodes + me) * kBlock, r + me);
    compute();
    write_block(fd, (int64_t)r * kBlock, r);
  }
  close_file(tasks);
  close_file(fd);
  raise_flag(0);
}

static void halo(void) {
  const int fd = open_file("grid", me, O_RDWR | O_CREAT | O_TRUNC);
  const int left = me - 1, right = me + 1 < nodes ? me + 1 : -1, leader = me & ~1;
  for (int r = 0; r < rounds; ++r) {
    compute();
    write_block(fd, (int64_t)r * kBlock, r);
    if (left >= 0) raise_flag(left);
    if (right >= 0) raise_flag(right);
    if (left >= 0) wait_for(left);
    if (right >= 0) wait_for(right);
    read_block(fd, (int64_t)r * kBlock, r);
  }
  /* The second level: pairs to their leader, leaders in a row, and back. */
  if (me != leader) {
    raise_flag(leader);
    wait_for(leader);
  } else {
    if (me + 1 < nodes) wait_for(me + 1);
    if (me >= 2) wait_for(me - 2);
    write_block(fd, (int64_t)rounds * kBlock, 1);
    if (me + 2 < nodes) raise_flag(me + 2);
    if (me + 1 < nodes) raise_flag(me + 1);
  }
  close_file(fd);
}

static void* node_main(void* number) {
  me = (int)(intptr_t)number;
  if (strcmp(mode, "pseudosync") == 0)
    pseudosync(0);
  else if (strcmp(mode, "pseudosyncdat") == 0)
    pseudosync(1);
  else if (strcmp(mode, "pseudo") == 0)
    pseudo();
  else if (strcmp(mode, "fitness") == 0)
    fitness();
  else if (strcmp(mode, "pipeline") == 0)
    pipeline();
  else if (strcmp(mode, "masterworker") == 0)
    masterworker();
  else
    halo();
  return 0;
}

static int option(const char* text, const char* name, int* value) {
  const size_t n = strlen(name);
  if (strncmp(text, name, n) != 0 || text[n] != '=') return 0;
  *value = atoi(text + n + 1);
  return 1;
}

int main(int argc, char** argv) {
  static const char* const modes[] = {"pseudosync", "pseudosyncdat", "pseudo", "fitness",
                                      "pipeline",   "masterworker",  "halo"};
  int good = argc >= 3, known = 0;
  for (unsigned i = 0; good && i < sizeof modes / sizeof *modes; ++i)
    known |= strcmp(argv[1], modes[i]) == 0;
  for (int i = 3; good && i < argc; ++i) {
    if (strcmp(argv[i], "wait=nap") == 0)
      nap = 1;
    else if (strcmp(argv[i], "as=threads") == 0)
      threads = 1;
    else if (strcmp(argv[i], "wait=spin") != 0 && strcmp(argv[i], "as=processes") != 0)
      good = option(argv[i], "nodes", &nodes) || option(argv[i], "rounds", &rounds) ||
             option(argv[i], "compute", &compute_us);
  }
  if (!good || !known || nodes < 1 || nodes > kNodes || rounds < 1) {
    fprintf(stderr,
            "usage: silent MODE FOLDER [nodes=N] [rounds=N] [compute=US] [wait=spin|nap] "
            "[as=processes|threads]\n");
    return 2;
  }
  mode = argv[1];
  folder = argv[2];
  s = mmap(0, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (s == MAP_FAILED) return 1;
  int status = 0;
#ifdef WITH_MPI
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &nodes);
  if (nodes > kNodes) return 2;
  node_main((void*)(intptr_t)me);
  /* Rank 0 writes what all have to say. */
  int bytes = (int)(s->edges * sizeof *s->edge), sizes[kNodes], places[kNodes], sum = 0;
  MPI_Gather(&bytes, 1, MPI_INT, sizes, 1, MPI_INT, 0, MPI_COMM_WORLD);
  for (int i = 0; me == 0 && i < nodes; ++i) {
    places[i] = sum;
    sum += sizes[i];
  }
  struct shared* all = calloc(1, sizeof *all);
  if (all == 0 || sum > (int)sizeof all->edge) return 1;
  MPI_Gatherv(s->edge, bytes, MPI_BYTE, all->edge, sizes, places, MPI_BYTE, 0, MPI_COMM_WORLD);
  MPI_Finalize();
  if (me != 0) return 0;
  all->edges = (uint32_t)((size_t)sum / sizeof *all->edge);
  s = all;
#else
  if (threads) {
    pthread_t thread[kNodes];
    for (int i = 0; i < nodes; ++i) pthread_create(&thread[i], 0, node_main, (void*)(intptr_t)i);
    for (int i = 0; i < nodes; ++i) pthread_join(thread[i], 0);
  } else {
    for (int i = 0; i < nodes; ++i)
      if (fork() == 0) {
        node_main((void*)(intptr_t)i);
        exit(0);
      }
    int ended_with;
    while (wait(&ended_with) > 0) status |= ended_with;
  }
#endif
  /* No part of the program, and to be left out of what is looked at. */
  char path[4200];
  snprintf(path, sizeof path, "%s/truth", folder);
  FILE* f = fopen(path, "w");
  if (f == 0) return 1;
  for (uint32_t i = 0; i < s->edges; ++i)
    fprintf(f, "%u %lu %u %lu\n", s->edge[i].node, (unsigned long)s->edge[i].call, s->edge[i].on,
            (unsigned long)s->edge[i].on_call);
  fclose(f);
  return status != 0;
}
