/* SPDX-License-Identifier: MIT */
/* Corners of MPI, one part a run, on 4 ranks: breadth FILE PART. Each part checks what it gets, so
 * that a recording that changed the program would show. */
#include <fcntl.h>
/* With what MPI 3.0 removed. */
#define OMPI_OMIT_MPI1_COMPAT_DECLS 0
#include <mpi.h>
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int rank, size;
static const char* file_name;

#define CHECK(what)                                                                   \
  do {                                                                                \
    if (!(what)) {                                                                    \
      fprintf(stderr, "rank %d, line %d: %s does not hold\n", rank, __LINE__, #what); \
      MPI_Abort(MPI_COMM_WORLD, 4);                                                   \
    }                                                                                 \
  } while (0)

static void one_sided(void) {
  MPI_Win win;
  long* base;
  long mine[8] = {rank, rank, rank, rank}, got[8];
  MPI_Win_allocate(64 * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
  for (int i = 0; i < 64; ++i) base[i] = -1;
  MPI_Win_fence(0, win);
  MPI_Put(mine, 4, MPI_LONG, (rank + 1) % size, 4, 4, MPI_LONG, win);
  MPI_Win_fence(0, win);
  CHECK(base[4] == (rank + size - 1) % size);
  MPI_Get(got, 4, MPI_LONG, (rank + 2) % size, 4, 4, MPI_LONG, win);
  MPI_Win_fence(0, win);
  CHECK(got[0] == (rank + 1) % size);
  /* Locks: all count on rank 0. */
  base[0] = 0;
  MPI_Win_fence(0, win);
  for (int i = 0; i < 3; ++i) {
    const long one = 1;
    long before;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Accumulate(&one, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, win);
    MPI_Win_unlock(0, win);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    MPI_Fetch_and_op(&one, &before, MPI_LONG, 0, 1, MPI_SUM, win);
    MPI_Win_flush(0, win);
    MPI_Get_accumulate(&one, 1, MPI_LONG, &before, 1, MPI_LONG, 0, 2, 1, MPI_LONG, MPI_SUM, win);
    MPI_Win_unlock(0, win);
  }
  MPI_Request request;
  MPI_Win_lock_all(0, win);
  MPI_Rput(mine, 4, MPI_LONG, (rank + 1) % size, 32, 4, MPI_LONG, win, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Rget(got, 4, MPI_LONG, (rank + 1) % size, 40, 4, MPI_LONG, win, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Win_flush_all(win);
  MPI_Win_unlock_all(win);
  MPI_Win_fence(0, win);
  CHECK(rank != 0 || base[0] == 3 * size);
  /* Post, start, complete, wait: even ranks give to odd ones. */
  MPI_Group all, partner;
  const int other = rank ^ 1;
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_incl(all, 1, &other, &partner);
  if (rank % 2) {
    MPI_Win_post(partner, 0, win);
    MPI_Win_wait(win);
    CHECK(base[20] == other);
  } else {
    MPI_Win_start(partner, 0, win);
    MPI_Put(mine, 1, MPI_LONG, other, 20, 1, MPI_LONG, win);
    MPI_Win_complete(win);
  }
  MPI_Group_free(&partner);
  MPI_Group_free(&all);
  MPI_Win_free(&win);
}

static void wildcards(void) {
  enum { kEach = 10 };
  int got = 0, seen = 0;
  MPI_Status status;
  if (rank == 0) {
    /* Whoever comes first, by each way to wait. */
    for (int i = 0; i < kEach * (size - 1); ++i) {
      MPI_Request one[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
      MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &one[1]);
      int index = 0, out = 0, indices[2], flag = 0;
      switch (i % 7) {
        case 0:
          MPI_Wait(&one[1], MPI_STATUS_IGNORE);
          break;
        case 1:
          MPI_Waitall(2, one, MPI_STATUSES_IGNORE);
          break;
        case 2:
          MPI_Waitany(2, one, &index, &status);
          CHECK(index == 1 && status.MPI_SOURCE == got);
          break;
        case 3:
          MPI_Waitsome(2, one, &out, indices, MPI_STATUSES_IGNORE);
          CHECK(out == 1 && indices[0] == 1);
          break;
        case 4:
          while (!flag) MPI_Test(&one[1], &flag, &status);
          CHECK(status.MPI_SOURCE == got);
          break;
        case 5:
          while (!flag) MPI_Testany(2, one, &index, &flag, MPI_STATUS_IGNORE);
          break;
        default:
          while (!out) MPI_Testsome(2, one, &out, indices, MPI_STATUSES_IGNORE);
      }
      ++seen;
    }
    CHECK(seen == kEach * (size - 1));
  } else {
    for (int i = 0; i < kEach; ++i) {
      usleep((unsigned)((rank * 7919 + i * 104729) % 900));
      MPI_Send(&rank, 1, MPI_INT, 0, 10 * rank + i, MPI_COMM_WORLD);
    }
  }
  /* Probes, and messages that they take out. */
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    char data[512];
    for (int i = 0; i < 3 * (size - 1); ++i) {
      int flag = 0, bytes = 0;
      MPI_Message message;
      MPI_Request request;
      if (i % 3 == 0) {
        MPI_Mprobe(MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &message, &status);
        MPI_Get_count(&status, MPI_BYTE, &bytes);
        CHECK(bytes == 100 * status.MPI_SOURCE);
        MPI_Mrecv(data, bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE);
      } else if (i % 3 == 1) {
        while (!flag) MPI_Improbe(MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &flag, &message, &status);
        MPI_Get_count(&status, MPI_BYTE, &bytes);
        MPI_Imrecv(data, bytes, MPI_BYTE, &message, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
      } else {
        while (!flag) MPI_Iprobe(MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &flag, &status);
        MPI_Recv(data, 512, MPI_BYTE, status.MPI_SOURCE, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      }
    }
  } else {
    char data[512] = "";
    for (int i = 0; i < 3; ++i) {
      usleep((unsigned)(rank * 300));
      MPI_Send(data, 100 * rank, MPI_BYTE, 0, 5, MPI_COMM_WORLD);
    }
  }
  /* Persistent requests, and a request that is given up. */
  MPI_Request kept[2];
  int out = rank, in = -1;
  MPI_Send_init(&out, 1, MPI_INT, (rank + 1) % size, 8, MPI_COMM_WORLD, &kept[0]);
  MPI_Recv_init(&in, 1, MPI_INT, MPI_ANY_SOURCE, 8, MPI_COMM_WORLD, &kept[1]);
  for (int i = 0; i < 5; ++i) {
    MPI_Startall(2, kept);
    MPI_Waitall(2, kept, MPI_STATUSES_IGNORE);
    CHECK(in == (rank + size - 1) % size);
  }
  MPI_Request_free(&kept[0]);
  MPI_Request_free(&kept[1]);
}

static void collectives(void) {
  int counts[4], places[4], counts2[4], places2[4], many[64], back[64], one = rank;
  MPI_Request request[3];
  for (int i = 0; i < 64; ++i) many[i] = rank * 100 + i;
  int sum = 0;
  for (int i = 0; i < size; ++i) {
    counts[i] = i + 1;
    places[i] = sum;
    sum += i + 1;
  }
  MPI_Allgatherv(many, rank + 1, MPI_INT, back, counts, places, MPI_INT, MPI_COMM_WORLD);
  CHECK(back[places[2]] == 200);
  MPI_Iallgatherv(many, rank + 1, MPI_INT, back, counts, places, MPI_INT, MPI_COMM_WORLD,
                  &request[0]);
  MPI_Wait(&request[0], MPI_STATUS_IGNORE);
  MPI_Gatherv(many, rank + 1, MPI_INT, back, counts, places, MPI_INT, 2, MPI_COMM_WORLD);
  MPI_Igatherv(many, rank + 1, MPI_INT, back, counts, places, MPI_INT, 1, MPI_COMM_WORLD,
               &request[0]);
  MPI_Iscatterv(many, counts, places, MPI_INT, back + 32, rank + 1, MPI_INT, 0, MPI_COMM_WORLD,
                &request[1]);
  MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request[2]);
  MPI_Waitall(3, request, MPI_STATUSES_IGNORE);
  CHECK(sum == size * (size - 1) / 2);
  MPI_Scatterv(many, counts, places, MPI_INT, back, rank + 1, MPI_INT, 3, MPI_COMM_WORLD);
  for (int i = 0; i < size; ++i) {
    counts[i] = rank + 1;
    counts2[i] = i + 1;
    places[i] = i * 4;
    places2[i] = i * 4;
  }
  MPI_Alltoallv(many, counts, places, MPI_INT, back, counts2, places2, MPI_INT, MPI_COMM_WORLD);
  CHECK(back[4] == 100 + 4 * rank);
  MPI_Ialltoallv(many, counts, places, MPI_INT, back, counts2, places2, MPI_INT, MPI_COMM_WORLD,
                 &request[0]);
  /* A message meanwhile: nobody may wait for the others when the call begins. */
  if (rank == 0) MPI_Send(&one, 1, MPI_INT, 1, 3, MPI_COMM_WORLD);
  MPI_Wait(&request[0], MPI_STATUS_IGNORE);
  if (rank == 1) MPI_Recv(&one, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Datatype types[4] = {MPI_INT, MPI_INT, MPI_INT, MPI_INT};
  for (int i = 0; i < size; ++i) places[i] = places2[i] = i * 16;
  MPI_Alltoallw(many, counts, places, types, back, counts2, places2, types, MPI_COMM_WORLD);
  MPI_Ialltoallw(many, counts, places, types, back, counts2, places2, types, MPI_COMM_WORLD,
                 &request[0]);
  MPI_Wait(&request[0], MPI_STATUS_IGNORE);
  for (int i = 0; i < size; ++i) counts[i] = i + 1;
  MPI_Reduce_scatter(many, back, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Reduce_scatter_block(many, back, 3, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Ireduce_scatter(many, back, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request[0]);
  MPI_Ireduce_scatter_block(many, back + 32, 3, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &request[1]);
  MPI_Ibcast(&one, 1, MPI_INT, 2, MPI_COMM_WORLD, &request[2]);
  MPI_Waitall(3, request, MPI_STATUSES_IGNORE);
  MPI_Gather(rank == 0 ? MPI_IN_PLACE : many, 2, MPI_INT, back, 2, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Scatter(many, 2, MPI_INT, rank == 0 ? MPI_IN_PLACE : back, 2, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, back, 2, MPI_INT, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, &one, 1, MPI_INT, MPI_BOR, MPI_COMM_WORLD);
  MPI_Scan(&rank, &one, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Exscan(&rank, &one, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

static void communicators(void) {
  MPI_Comm half, dup, cart, row, graph, near, few, inter, merged, later, some;
  MPI_Request request;
  int one = rank, got = 0, in[4], out[4], n[4] = {1, 1, 1, 1}, at[4] = {0, 1, 2, 3};
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
  MPI_Allreduce(&one, &got, 1, MPI_INT, MPI_SUM, half);
  CHECK(got == (rank % 2 ? 4 : 2));
  MPI_Comm_dup(half, &dup);
  MPI_Bcast(&got, 1, MPI_INT, 1, dup);
  MPI_Comm_idup(MPI_COMM_WORLD, &later, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Barrier(later);
  const int dims[2] = {2, 2}, periods[2] = {1, 0}, keep[2] = {0, 1};
  MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &cart);
  MPI_Cart_sub(cart, keep, &row);
  MPI_Allreduce(&one, &got, 1, MPI_INT, MPI_MAX, row);
  for (int i = 0; i < 4; ++i) out[i] = rank;
  MPI_Neighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, cart);
  CHECK(in[0] == (rank + 2) % 4);
  MPI_Neighbor_allgather(out, 1, MPI_INT, in, 1, MPI_INT, cart);
  MPI_Ineighbor_alltoallv(out, n, at, MPI_INT, in, n, at, MPI_INT, cart, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  const int index[4] = {1, 3, 5, 6}, edges[6] = {1, 0, 2, 1, 3, 2};
  MPI_Graph_create(MPI_COMM_WORLD, 4, index, edges, 0, &graph);
  MPI_Neighbor_allgatherv(out, 1, MPI_INT, in, n, at, MPI_INT, graph);
  MPI_Ineighbor_allgather(out, 1, MPI_INT, in, 1, MPI_INT, graph, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  /* A ring in one direction, each giving more than the one before. */
  const int from = (rank + size - 1) % size, to = (rank + 1) % size;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &from, MPI_UNWEIGHTED, 1, &to, MPI_UNWEIGHTED,
                                 MPI_INFO_NULL, 0, &near);
  const int gives = rank + 1, takes = from + 1;
  int mine[8] = {0}, theirs[8];
  MPI_Neighbor_alltoallv(mine, &gives, at, MPI_INT, theirs, &takes, at, MPI_INT, near);
  MPI_Ineighbor_allgatherv(mine, gives, MPI_INT, theirs, &takes, at, MPI_INT, near, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  /* The first two are each other's neighbours, the others have none. */
  const int other = rank ^ 1, has = rank < 2;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, has, &other, MPI_UNWEIGHTED, has, &other,
                                 MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &few);
  MPI_Neighbor_allgather(&rank, 1, MPI_INT, in, 1, MPI_INT, few);
  CHECK(!has || in[0] == other);
  MPI_Neighbor_alltoallv(out, n, at, MPI_INT, in, n, at, MPI_INT, few);
  MPI_Ineighbor_allgatherv(&rank, 1, MPI_INT, in, n, at, MPI_INT, few, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  /* Two groups. */
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank % 2 ? 2 : 3, 9, &inter);
  int place;
  MPI_Comm_rank(half, &place);
  MPI_Sendrecv(&rank, 1, MPI_INT, place, 4, &got, 1, MPI_INT, place, 4, inter, MPI_STATUS_IGNORE);
  CHECK(got == (rank ^ 1));
  MPI_Bcast(&got, 1, MPI_INT, rank % 2 ? 0 : place == 0 ? MPI_ROOT : MPI_PROC_NULL, inter);
  MPI_Barrier(inter);
  MPI_Allreduce(&one, &got, 1, MPI_INT, MPI_SUM, inter);
  MPI_Intercomm_merge(inter, rank % 2, &merged);
  MPI_Allreduce(&one, &got, 1, MPI_INT, MPI_SUM, merged);
  CHECK(got == 6);
  MPI_Group all, three;
  const int who[3] = {3, 1, 0};
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_incl(all, 3, who, &three);
  if (rank != 2) {
    MPI_Comm_create_group(MPI_COMM_WORLD, three, 1, &some);
    MPI_Bcast(&got, 1, MPI_INT, 0, some);
    MPI_Comm_free(&some);
  }
  MPI_Group_free(&three);
  MPI_Group_free(&all);
  MPI_Comm* const every[] = {&half, &dup, &later, &cart, &row, &graph, &near, &inter, &merged};
  for (int i = 0; i < 9; ++i) MPI_Comm_free(every[i]);
}

/* Two groups of unequal size, each sending what it likes; and what is received in place of what is
 * sent, where the arguments for sending are nobody's business. */
static void two_groups(void) {
  MPI_Comm own, both, later;
  MPI_Request request;
  const int left = rank == 0;
  char *out = calloc(1, 60000), *in = calloc(1, 60000);
  MPI_Comm_split(MPI_COMM_WORLD, left, rank, &own);
  MPI_Intercomm_create(own, 0, MPI_COMM_WORLD, left ? 1 : 0, 7, &both);
  MPI_Allgather(out, left ? 0 : 100, MPI_BYTE, in, left ? 100 : 0, MPI_BYTE, both);
  MPI_Iallgather(out, left ? 300 : 100, MPI_BYTE, in, left ? 100 : 300, MPI_BYTE, both, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Alltoall(out, left ? 0 : 100, MPI_BYTE, in, left ? 100 : 0, MPI_BYTE, both);
  MPI_Ialltoall(out, left ? 5000 : 9000, MPI_BYTE, in, left ? 9000 : 5000, MPI_BYTE, both,
                &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  const int six = 6, one_to_three[3] = {1, 2, 3};
  MPI_Reduce_scatter(out, in, left ? &six : one_to_three, MPI_INT, MPI_SUM, both);
  MPI_Reduce_scatter_block(out, in, left ? 6 : 2, MPI_INT, MPI_SUM, both);
  /* Nobody waits for rank 0 when this begins. */
  if (left)
    for (int i = 1; i < size; ++i)
      MPI_Recv(in, 1, MPI_BYTE, i, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Comm_idup(MPI_COMM_WORLD, &later, &request);
  if (!left) MPI_Ssend(out, 1, MPI_BYTE, 0, 5, MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  int counts[4], places[4];
  MPI_Datatype types[4];
  for (int i = 0; i < size; ++i) {
    counts[i] = (i + rank) % 5;
    places[i] = i * 40;
    types[i] = (i + rank) % 2 ? MPI_INT : MPI_DOUBLE;
  }
  int* const nowhere = (int*)8;
  MPI_Alltoallv(MPI_IN_PLACE, nowhere, nowhere, MPI_DATATYPE_NULL, in, counts, places, MPI_INT,
                later);
  MPI_Alltoallw(MPI_IN_PLACE, nowhere, nowhere, (MPI_Datatype*)8, in, counts, places, types, later);
  MPI_Ialltoallw(MPI_IN_PLACE, nowhere, nowhere, (MPI_Datatype*)8, in, counts, places, types, later,
                 &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  const int parts[4] = {1, 2, 3, 4}, begin[4] = {0, 1, 3, 6};
  MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, parts, begin, MPI_INT, later);
  MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, parts, begin, MPI_INT, later, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Comm_free(&later);
  MPI_Comm_free(&both);
  MPI_Comm_free(&own);
  free(out);
  free(in);
}

/* Sends that are over before anybody receives, requests that are over as they begin, and messages
 * from nobody. */
static void buffered(void) {
  enum { kLarge = 100000 };
  const int to = (rank + 1) % size, from = (rank + size - 1) % size;
  char *out = calloc(1, kLarge), *in = malloc(kLarge), *buffer;
  int room = 12 * (kLarge + MPI_BSEND_OVERHEAD);
  MPI_Request request[3];
  MPI_Buffer_attach(malloc(room), room);
  MPI_Bsend_init(out, kLarge, MPI_BYTE, to, 3, MPI_COMM_WORLD, &request[0]);
  for (int i = 0; i < 2; ++i) {
    MPI_Bsend(out, kLarge, MPI_BYTE, to, 1, MPI_COMM_WORLD);
    MPI_Ibsend(out, kLarge, MPI_BYTE, to, 2, MPI_COMM_WORLD, &request[1]);
    MPI_Wait(&request[1], MPI_STATUS_IGNORE);
    MPI_Start(&request[0]);
    MPI_Wait(&request[0], MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int tag = 3; tag > 0; --tag)
      MPI_Recv(in, kLarge, MPI_BYTE, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  /* It starts again while its last message is under way. */
  for (int i = 0; i < 2; ++i) {
    MPI_Startall(1, &request[0]);
    MPI_Wait(&request[0], MPI_STATUS_IGNORE);
    MPI_Start(&request[0]);
    MPI_Wait(&request[0], MPI_STATUS_IGNORE);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < 4; ++i)
    MPI_Recv(in, kLarge, MPI_BYTE, from, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Request_free(&request[0]);
  MPI_Buffer_detach(&buffer, &room);
  free(buffer);
  for (int i = 0; i < 3; ++i) MPI_Isend(out, 4, MPI_BYTE, to, 4 + i, MPI_COMM_WORLD, &request[i]);
  MPI_Waitall(3, request, MPI_STATUSES_IGNORE);
  for (int i = 2; i >= 0; --i)
    MPI_Recv(in, 4, MPI_BYTE, from, 4 + i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Message message;
  MPI_Mprobe(MPI_PROC_NULL, 1, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
  MPI_Mrecv(in, 4, MPI_BYTE, &message, MPI_STATUS_IGNORE);
  MPI_Mprobe(MPI_PROC_NULL, 1, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
  MPI_Imrecv(in, 4, MPI_BYTE, &message, &request[0]);
  MPI_Wait(&request[0], MPI_STATUS_IGNORE);
  free(out);
  free(in);
}

static void datatypes(void) {
  enum { kTypes = 11 };
  MPI_Datatype t[kTypes], f90;
  const int lengths[3] = {1, 2, 1}, places[3] = {0, 3, 9};
  const MPI_Aint bytes[3] = {0, 16, 40};
  const MPI_Datatype mixed[3] = {MPI_INT, MPI_DOUBLE, MPI_CHAR};
  const int sizes[2] = {8, 8}, part[2] = {4, 4}, start[2] = {2, 2};
  int many[600], far[600];
  MPI_Type_vector(4, 2, 5, MPI_INT, &t[0]);
  MPI_Type_create_hvector(3, 1, 24, MPI_DOUBLE, &t[1]);
  MPI_Type_indexed(3, lengths, places, MPI_INT, &t[2]);
  MPI_Type_create_hindexed(3, lengths, bytes, MPI_INT, &t[3]);
  MPI_Type_create_indexed_block(3, 2, places, MPI_INT, &t[4]);
  MPI_Type_create_struct(3, lengths, bytes, mixed, &t[5]);
  MPI_Type_create_subarray(2, sizes, part, start, MPI_ORDER_C, MPI_INT, &t[6]);
  MPI_Type_contiguous(3, t[2], &t[7]);
  MPI_Type_create_resized(t[0], 0, 128, &t[8]);
  /* More blocks than a text has room for, one by one. */
  for (int i = 0; i < 600; ++i) {
    many[i] = 1;
    far[i] = 2 * i;
  }
  MPI_Type_indexed(600, many, far, MPI_INT, &t[9]);
  MPI_Type_create_f90_real(12, MPI_UNDEFINED, &f90);
  MPI_Type_vector(3, 1, 2, f90, &t[10]);
  char *out = calloc(1, 1 << 16), *in = calloc(1, 1 << 16);
  for (int i = 0; i < kTypes; ++i) {
    MPI_Type_commit(&t[i]);
    MPI_Sendrecv(out, 2, t[i], (rank + 1) % size, i, in, 2, t[i], (rank + size - 1) % size, i,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Bcast(out, 1, t[i], i % size, MPI_COMM_WORLD);
  }
  /* A view of every other block of the file. */
  MPI_File file;
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "cb_buffer_size", "65536");
  MPI_File_open(MPI_COMM_WORLD, file_name, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file);
  MPI_File_set_view(file, rank * (MPI_Offset)sizeof(int), MPI_INT, t[9], "native", info);
  MPI_File_write_all(file, out, 600, MPI_INT, MPI_STATUS_IGNORE);
  MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", info);
  MPI_File_write_at(file, 5000 + 512 * rank, out, 1, t[6], MPI_STATUS_IGNORE);
  MPI_File_read_at_all(file, 100, in, 100, MPI_BYTE, MPI_STATUS_IGNORE);
  /* Only one has something to write, in the status of the others stands what stood there. */
  MPI_Status status;
  memset(&status, 1, sizeof status);
  MPI_File_write_at_all(file, 0, out, rank == 1 ? 10 : 0, MPI_BYTE, &status);
  MPI_File_write_at_all(file, 0, out, rank == 1 ? 10 : 0, MPI_BYTE, MPI_STATUS_IGNORE);
  memset(&status, 1, sizeof status);
  MPI_File_write_at_all_begin(file, 0, out, rank == 1 ? 10 : 0, MPI_BYTE);
  MPI_File_write_at_all_end(file, out, &status);
  MPI_File_set_view(file, 0, f90, f90, "native", info);
  MPI_File_read_at(file, 10, in, 2, f90, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
  MPI_Info_free(&info);
  for (int i = 0; i < kTypes; ++i) MPI_Type_free(&t[i]);
  free(out);
  free(in);
}

static void of_file(MPI_File* file, int* error, ...) {
  (void)file;
  (void)error;
}

/* Shared and ordered pointers, split calls, requests, deletion, error handlers. */
static void files(void) {
  enum { kBytes = 3000 };
  char out[kBytes], in[kBytes];
  memset(out, 'a' + rank, sizeof out);
  MPI_File file;
  MPI_Errhandler handler, before;
  MPI_Request request[2];
  MPI_Status status;
  MPI_Offset place = 0, length = 0;
  int moved = 0;
  /* Those of no file are for all that are opened. */
  MPI_File_create_errhandler(of_file, &handler);
  MPI_File_get_errhandler(MPI_FILE_NULL, &before);
  MPI_File_set_errhandler(MPI_FILE_NULL, handler);
  MPI_File_set_errhandler(MPI_FILE_NULL, before);
  MPI_Errhandler_free(&handler);
  /* What MPI makes is not there before. */
  CHECK(access(file_name, F_OK) != 0);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File_open(MPI_COMM_WORLD, file_name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  MPI_File_set_size(file, 0);
  /* Shared and ordered pointers. */
  for (int i = 0; i < 3; ++i) MPI_File_write_shared(file, out, 100 + rank, MPI_BYTE, &status);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File_write_ordered(file, out, 200, MPI_BYTE, &status);
  MPI_File_write_ordered_begin(file, out, 300 - rank, MPI_BYTE);
  MPI_File_write_ordered_end(file, out, &status);
  MPI_File_iwrite_shared(file, out, 50, MPI_BYTE, &request[0]);
  MPI_Wait(&request[0], &status);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File_get_position_shared(file, &place);
  CHECK(place == 3 * (4 * 100 + 6) + 800 + 1194 + 200);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
  MPI_File_read_ordered(file, in, 150, MPI_BYTE, &status);
  MPI_File_read_shared(file, in, 10, MPI_BYTE, &status);
  MPI_Get_count(&status, MPI_BYTE, &moved);
  CHECK(moved == 10);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File_read_ordered_begin(file, in, 20, MPI_BYTE);
  MPI_File_read_ordered_end(file, in, &status);
  /* Split collective calls, and non-blocking ones. */
  MPI_File_write_at_all_begin(file, 10000 + rank * kBytes, out, kBytes, MPI_BYTE);
  MPI_File_write_at_all_end(file, out, &status);
  MPI_File_read_at_all_begin(file, 10000 + rank * kBytes, in, kBytes, MPI_BYTE);
  MPI_File_read_at_all_end(file, in, &status);
  CHECK(in[7] == 'a' + rank);
  MPI_File_seek(file, 30000 + rank * 500, MPI_SEEK_SET);
  MPI_File_write_all_begin(file, out, 500, MPI_BYTE);
  MPI_File_write_all_end(file, out, &status);
  MPI_File_seek(file, -500, MPI_SEEK_CUR);
  MPI_File_read_all_begin(file, in, 500, MPI_BYTE);
  MPI_File_read_all_end(file, in, &status);
  MPI_File_iwrite_at(file, 40000 + rank * 100, out, 100, MPI_BYTE, &request[0]);
  MPI_File_iwrite_at_all(file, 50000 + rank * 100, out, 100, MPI_BYTE, &request[1]);
  MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
  MPI_File_iread_at(file, 40000 + rank * 100, in, 100, MPI_BYTE, &request[0]);
  MPI_File_iread_at_all(file, 50000 + rank * 100, in + 100, 100, MPI_BYTE, &request[1]);
  MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
  MPI_File_seek(file, 60000 + 100 * rank, MPI_SEEK_SET);
  MPI_File_iwrite(file, out, 100, MPI_BYTE, &request[0]);
  MPI_Wait(&request[0], MPI_STATUS_IGNORE);
  MPI_File_iwrite_all(file, out, 10, MPI_BYTE, &request[0]);
  MPI_Wait(&request[0], MPI_STATUS_IGNORE);
  MPI_File_sync(file);
  MPI_File_seek(file, 60000 + 100 * rank, MPI_SEEK_SET);
  MPI_File_iread(file, in, 60, MPI_BYTE, &request[0]);
  MPI_Wait(&request[0], MPI_STATUS_IGNORE);
  MPI_File_iread_all(file, in, 40, MPI_BYTE, &request[0]);
  MPI_Wait(&request[0], MPI_STATUS_IGNORE);
  MPI_File_iread_shared(file, in, 30, MPI_BYTE, &request[0]);
  MPI_Wait(&request[0], MPI_STATUS_IGNORE);
  /* And the plain ones. */
  MPI_File_write_at(file, 61000 + 100 * rank, out, 100, MPI_BYTE, &status);
  MPI_File_write_at_all(file, 62000 + 100 * rank, out, 100, MPI_BYTE, &status);
  MPI_File_seek(file, 63000 + 100 * rank, MPI_SEEK_SET);
  MPI_File_write_all(file, out, 50, MPI_BYTE, &status);
  MPI_File_write(file, out, 50, MPI_BYTE, &status);
  MPI_File_seek(file, -100, MPI_SEEK_CUR);
  MPI_File_read_all(file, in, 50, MPI_BYTE, &status);
  MPI_File_read(file, in, 50, MPI_BYTE, &status);
  MPI_File_read_at(file, 61000 + 100 * rank, in, 100, MPI_BYTE, &status);
  MPI_File_read_at_all(file, 62000 + 100 * rank, in, 100, MPI_BYTE, &status);
  CHECK(in[99] == 'a' + rank);
  MPI_File_get_size(file, &length);
  MPI_File_preallocate(file, 65536);
  MPI_File_close(&file);
  /* One for each, gone when it is closed. */
  char own[4096];
  snprintf(own, sizeof own, "%s.%d", file_name, rank);
  MPI_File_open(MPI_COMM_SELF, own, MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_DELETE_ON_CLOSE,
                MPI_INFO_NULL, &file);
  MPI_File_write(file, out, 100, MPI_BYTE, &status);
  MPI_File_close(&file);
  CHECK(MPI_File_open(MPI_COMM_SELF, "/nowhere/to/be/found", MPI_MODE_RDONLY, MPI_INFO_NULL,
                      &file) != MPI_SUCCESS);
}

/* Communicators that nobody says anything on. */
static void unused(void) {
  for (int i = 0; i < 10100; ++i) {
    MPI_Comm made;
    MPI_Comm_dup(MPI_COMM_WORLD, &made);
    MPI_Comm_free(&made);
  }
}

/* Communicators made by two threads at a time, of which the members' orders differ: who waits for
 * the one thread's partners must not keep the other one. */
static void* dup_often(void* of) {
  for (int i = 0; i < 200; ++i) {
    MPI_Comm made;
    MPI_Comm_dup(*(MPI_Comm*)of, &made);
    MPI_Comm_free(&made);
  }
  return NULL;
}
static void threads(void) {
  MPI_Comm upwards, downwards;
  MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &upwards);
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &downwards);
  pthread_t other;
  CHECK(pthread_create(&other, NULL, dup_often, &downwards) == 0);
  dup_often(&upwards);
  pthread_join(other, NULL);
  MPI_Comm_free(&upwards);
  MPI_Comm_free(&downwards);
}

/* A communicator of one rank is made whatever others wait for. */
static MPI_Comm early[2];
static void* dup_self(void* of) {
  const int me = (int)((MPI_Comm*)of - early);
  MPI_Comm made;
  if (me == rank) usleep(300000);
  MPI_Comm_dup(MPI_COMM_SELF, &made);
  MPI_Comm_free(&made);
  MPI_Comm_dup(early[me], &made);
  MPI_Comm_free(&made);
  return NULL;
}
static void threads_and_self(void) {
  pthread_t other;
  for (int i = 0; i < 2; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &early[i]);
  CHECK(pthread_create(&other, NULL, dup_self, &early[1]) == 0);
  dup_self(&early[0]);
  pthread_join(other, NULL);
}

/* A thread of each rank makes communicators, or windows, which have one, and another one after it,
 * which no call shows: the first one of some ranks from a communicator that is younger than the
 * other one's, too. */
static atomic_int first_is_done;
static MPI_Comm younger;
static void (*make_and_free)(MPI_Comm comm);
static void dup_and_free(MPI_Comm comm) {
  MPI_Comm made;
  MPI_Comm_dup(comm, &made);
  MPI_Comm_free(&made);
}
static void window_and_free(MPI_Comm comm) {
  MPI_Win made;
  MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &made);
  MPI_Win_free(&made);
}
static void* makes_first(void* unused) {
  (void)unused;
  for (int i = 0; i < 100; ++i) {
    if (rank >= size / 2) make_and_free(younger);
    make_and_free(early[0]);
  }
  atomic_store(&first_is_done, 1);
  return NULL;
}
static void side_by_side(void (*make)(MPI_Comm comm)) {
  pthread_t other;
  make_and_free = make;
  for (int i = 0; i < 2; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &early[i]);
  MPI_Comm_split(MPI_COMM_WORLD, rank >= size / 2, 0, &younger);
  CHECK(pthread_create(&other, NULL, makes_first, NULL) == 0);
  while (!atomic_load(&first_is_done)) sched_yield();
  for (int i = 0; i < 100; ++i) make_and_free(early[1]);
  pthread_join(other, NULL);
}
static void threads_and_halves(void) { side_by_side(dup_and_free); }
static void threads_and_windows(void) { side_by_side(window_and_free); }

/* Two threads that come in turn by a flag, which no call shows: in a window, at a request, and
 * waiting for messages of one kind, which differ in length, at the same time. */
static atomic_int turn;
static MPI_Win shared_window;
static MPI_Request shared_request;
enum { kRounds = 20, kMuch = 1000 };
static void wait_for_turn(int n) {
  while (atomic_load(&turn) < n) sched_yield();
}
static void receive_in_turn(int me) {
  for (int i = 0; rank % 2 == 1 && i < kRounds; ++i) {
    long got[kMuch];
    const int first = i % 2 == me, at = 3 + 2 * i;
    wait_for_turn(first ? at : at + 1);
    if (first) atomic_store(&turn, at + 1);
    if (!first) usleep(2000);
    MPI_Recv(got, first ? 1 : kMuch, MPI_LONG, rank - 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (!first) {
      MPI_Send(NULL, 0, MPI_BYTE, rank - 1, 6, MPI_COMM_WORLD);
      atomic_store(&turn, at + 2);
    }
  }
}
static void* second_thread(void* unused) {
  long mine = rank;
  (void)unused;
  for (int i = 0; i < 5000; ++i) {
    MPI_Put(&mine, 1, MPI_LONG, (rank + 1) % size, i % 8, 1, MPI_LONG, shared_window);
    MPI_Win_flush((rank + 1) % size, shared_window);
  }
  MPI_Irecv(NULL, 0, MPI_BYTE, (rank + 1) % size, 4, MPI_COMM_WORLD, &shared_request);
  atomic_store(&turn, 2);
  receive_in_turn(1);
  return NULL;
}
static void threads_in_turn(void) {
  pthread_t other;
  void* base;
  long many[kMuch] = {0};
  MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &shared_window);
  MPI_Win_lock_all(0, shared_window);
  CHECK(pthread_create(&other, NULL, second_thread, NULL) == 0);
  wait_for_turn(2);
  MPI_Win_unlock_all(shared_window);
  MPI_Win_free(&shared_window);
  MPI_Send(NULL, 0, MPI_BYTE, (rank + size - 1) % size, 4, MPI_COMM_WORLD);
  MPI_Wait(&shared_request, MPI_STATUS_IGNORE);
  atomic_store(&turn, 3);
  receive_in_turn(0);
  for (int i = 0; rank % 2 == 0 && i < kRounds; ++i) {
    usleep(5000);
    MPI_Send(many, 1, MPI_LONG, rank + 1, 5, MPI_COMM_WORLD);
    MPI_Send(many, kMuch, MPI_LONG, rank + 1, 5, MPI_COMM_WORLD);
    MPI_Recv(NULL, 0, MPI_BYTE, rank + 1, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  pthread_join(other, NULL);
}

/* A file that another thread writes, by its pointer, too: what tells that it is open, and when it
 * is to be closed, is a flag in memory. */
static MPI_File shared_file;
static void* second_writer(void* unused) {
  MPI_Request request;
  (void)unused;
  wait_for_turn(1);
  for (int i = 0; i < 500; ++i)
    MPI_File_write_at(shared_file, i, "x", 1, MPI_CHAR, MPI_STATUS_IGNORE);
  MPI_File_write(shared_file, "0123456789", 10, MPI_CHAR, MPI_STATUS_IGNORE);
  atomic_store(&turn, 2);
  wait_for_turn(3);
  for (int i = 0; i < 500; ++i) {
    MPI_File_iwrite_at(shared_file, i, "x", 1, MPI_CHAR, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  atomic_store(&turn, 4);
  return NULL;
}
static void threads_in_files(void) {
  char name[4200];
  pthread_t other;
  snprintf(name, sizeof name, "%s.%d", file_name, rank);
  CHECK(pthread_create(&other, NULL, second_writer, NULL) == 0);
  MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &shared_file);
  atomic_store(&turn, 1);
  wait_for_turn(2);
  MPI_File_seek(shared_file, 5, MPI_SEEK_CUR);
  atomic_store(&turn, 3);
  wait_for_turn(4);
  MPI_File_close(&shared_file);
  pthread_join(other, NULL);
}

/* Nothing but short messages. */
static void short_ones(void) {
  for (int i = 0; i < 20000; ++i) {
    const long one = 1;
    long sum = 0;
    MPI_Allreduce(&one, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == size);
  }
}

/* Calls that MPI refuses: what they would have made is what was in the variable before. */
static void refused(void) {
  char byte = 0, name[MPI_MAX_OBJECT_NAME];
  int length, flag;
  MPI_Aint lower, extent;
  MPI_Datatype type, of_type;
  MPI_Comm comm;
  MPI_Group group, world;
  MPI_Request request;
  MPI_Message message;
  MPI_Status status;
  MPI_Win win;
  MPI_File file;
  MPI_Info info;
  MPI_Op op;
  memset(&type, 0x5A, sizeof type);
  memset(&comm, 0x5A, sizeof comm);
  memset(&group, 0x5A, sizeof group);
  memset(&request, 0x5A, sizeof request);
  memset(&message, 0x5A, sizeof message);
  memset(&win, 0x5A, sizeof win);
  memset(&file, 0x5A, sizeof file);
  memset(&info, 0x5A, sizeof info);
  memset(&op, 0x5A, sizeof op);
  of_type = MPI_DATATYPE_NULL;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  CHECK(MPI_Type_match_size(MPI_TYPECLASS_REAL, 3, &type) != MPI_SUCCESS);
  CHECK(MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, &type) == MPI_SUCCESS);
  CHECK(MPI_Type_size(type, &length) == MPI_SUCCESS && length == 8);
  memset(&type, 0x5A, sizeof type);
  CHECK(MPI_Type_contiguous(-1, MPI_INT, &type) != MPI_SUCCESS);
  CHECK(MPI_Type_vector(2, 1, 2, MPI_DATATYPE_NULL, &type) != MPI_SUCCESS);
  CHECK(MPI_Type_commit(&of_type) != MPI_SUCCESS);
  CHECK(MPI_Type_free(&of_type) != MPI_SUCCESS);
  CHECK(MPI_Type_get_extent(MPI_DATATYPE_NULL, &lower, &extent) != MPI_SUCCESS);
  CHECK(MPI_Type_get_name(MPI_DATATYPE_NULL, name, &length) != MPI_SUCCESS);
  CHECK(MPI_Comm_dup(MPI_COMM_NULL, &comm) != MPI_SUCCESS);
  CHECK(MPI_Comm_split(MPI_COMM_WORLD, -7, 0, &comm) != MPI_SUCCESS);
  CHECK(MPI_Cart_create(MPI_COMM_WORLD, -1, NULL, NULL, 0, &comm) != MPI_SUCCESS);
  CHECK(MPI_Group_incl(world, size + 1, &length, &group) != MPI_SUCCESS);
  CHECK(MPI_Send(&byte, 1, MPI_BYTE, size, 0, MPI_COMM_WORLD) != MPI_SUCCESS);
  CHECK(MPI_Send(&byte, -1, MPI_BYTE, 0, 0, MPI_COMM_WORLD) != MPI_SUCCESS);
  CHECK(MPI_Isend(&byte, 1, MPI_BYTE, size, 0, MPI_COMM_WORLD, &request) != MPI_SUCCESS);
  CHECK(MPI_Irecv(&byte, 1, MPI_BYTE, size, MPI_ANY_TAG, MPI_COMM_WORLD, &request) != MPI_SUCCESS);
  CHECK(MPI_Send_init(&byte, 1, MPI_BYTE, 0, -5, MPI_COMM_WORLD, &request) != MPI_SUCCESS);
  CHECK(MPI_Ibcast(&byte, 1, MPI_BYTE, size, MPI_COMM_WORLD, &request) != MPI_SUCCESS);
  CHECK(MPI_Recv(&byte, 1, MPI_BYTE, size, 0, MPI_COMM_WORLD, &status) != MPI_SUCCESS);
  CHECK(MPI_Improbe(size, 0, MPI_COMM_WORLD, &flag, &message, &status) != MPI_SUCCESS);
  CHECK(MPI_Bcast(&byte, 1, MPI_BYTE, size, MPI_COMM_WORLD) != MPI_SUCCESS);
  CHECK(MPI_Win_create(&byte, -1, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win) != MPI_SUCCESS);
  CHECK(MPI_Info_dup(MPI_INFO_NULL, &info) != MPI_SUCCESS);
  CHECK(MPI_Info_set(MPI_INFO_NULL, "a", "b") != MPI_SUCCESS);
  CHECK(MPI_File_open(MPI_COMM_SELF, "/nowhere/to/be/found", MPI_MODE_RDONLY, MPI_INFO_NULL,
                      &file) != MPI_SUCCESS);
  CHECK(MPI_File_open(MPI_COMM_WORLD, file_name, MPI_MODE_CREATE | MPI_MODE_RDONLY, MPI_INFO_NULL,
                      &file) != MPI_SUCCESS);
  (void)op;
  MPI_Group_free(&world);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* Operations that name no count. */
static void fetch(void) {
  MPI_Win win;
  float* base;
  const float one = 1;
  float before = -1;
  MPI_Win_allocate(16 * sizeof(float), sizeof(float), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
  for (int i = 0; i < 16; ++i) base[i] = 0;
  MPI_Win_fence(0, win);
  MPI_Fetch_and_op(&one, &before, MPI_FLOAT, 0, 1, MPI_SUM, win);
  MPI_Win_fence(0, win);
  CHECK(rank != 0 || base[1] == (float)size);
  MPI_Fetch_and_op(&one, &before, MPI_FLOAT, 0, 2, MPI_MAX, win);
  MPI_Fetch_and_op(&one, &before, MPI_FLOAT, 0, 3, MPI_REPLACE, win);
  MPI_Fetch_and_op(&one, &before, MPI_FLOAT, 0, 1, MPI_NO_OP, win);
  MPI_Win_fence(0, win);
  CHECK(before == (float)size);
  MPI_Win_free(&win);
}

/* Receives that nobody waits for: given up before the message comes, or for a message that never
 * does; and one whose end is an error. */
static void unfinished(void) {
  static char never[1 << 16], late[1 << 16], out[1 << 16], little[4];
  MPI_Request request, left;
  const int right = (rank + 1) % size, before = (rank + size - 1) % size;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Irecv(never, sizeof never, MPI_BYTE, before, 1, MPI_COMM_WORLD, &left);
  MPI_Irecv(late, sizeof late, MPI_BYTE, before, 2, MPI_COMM_WORLD, &request);
  MPI_Request_free(&request);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Send(out, sizeof out, MPI_BYTE, right, 2, MPI_COMM_WORLD);
  MPI_Irecv(little, sizeof little, MPI_BYTE, before, 3, MPI_COMM_WORLD, &request);
  MPI_Send(out, 64, MPI_BYTE, right, 3, MPI_COMM_WORLD);
  CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) != MPI_SUCCESS);
  MPI_Irecv(late, sizeof late, MPI_BYTE, before, 4, MPI_COMM_WORLD, &request);
  MPI_Request_free(&request);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Isend(out, sizeof out, MPI_BYTE, right, 4, MPI_COMM_WORLD, &request);
  MPI_Request_free(&request);
}

/* Some come to what all call together while others are still at the file. */
static void sizes(void) {
  MPI_File file;
  char data[4096] = "";
  MPI_File_open(MPI_COMM_WORLD, file_name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  const int fd = open(file_name, O_RDWR);
  for (int i = 0; i < 10; ++i) {
    if (rank == i % size) usleep(3000);
    CHECK(pwrite(fd, data, sizeof data, (off_t)sizeof data * rank) == (ssize_t)sizeof data);
    MPI_File_set_size(file, 4096 * (size + i));
    if (rank == (i + 1) % size) usleep(2000);
    CHECK(pwrite(fd, data, sizeof data, (off_t)sizeof data * (rank + 1)) == (ssize_t)sizeof data);
    MPI_File_set_size(file, 4096 * (size + i + 1));
  }
  close(fd);
  MPI_File_close(&file);
}

/* What all read is where the file ends; then each makes it longer, by its own pointer or by one
 * that they share. */
static void ends(int shared) {
  static char data[1000];
  MPI_File f;
  MPI_Status status;
  const int part = 100;
  MPI_File_open(MPI_COMM_WORLD, file_name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &f);
  for (int i = 0; i < 40; ++i) {
    MPI_File_read_at_all(f, (MPI_Offset)part * size * i, data, sizeof data, MPI_BYTE, &status);
    if (shared) {
      MPI_File_seek_shared(f, 0, MPI_SEEK_END);
      MPI_File_write_shared(f, data, part, MPI_BYTE, &status);
    } else {
      MPI_File_write_at(f, (MPI_Offset)part * (size * i + rank), data, part, MPI_BYTE, &status);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_File_close(&f);
}
static void own_ends(void) { ends(0); }
static void shared_ends(void) { ends(1); }

/* By pointers that all share alone: two files at a time, and one of each rank's own. */
static void pointers(void) {
  static char data[1000];
  char name[4096];
  MPI_File f[3];
  MPI_Status status;
  MPI_Offset place = 0;
  for (int i = 0; i < 3; ++i) {
    snprintf(name, sizeof name, "%s.%d", file_name, i < 2 ? i : 2 + rank);
    MPI_File_open(i < 2 ? MPI_COMM_WORLD : MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_RDWR,
                  MPI_INFO_NULL, &f[i]);
  }
  for (int i = 0; i < 3; ++i) {
    MPI_File_write_shared(f[i], data, 100, MPI_BYTE, &status);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_write_ordered(f[i], data, 50, MPI_BYTE, &status);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_get_position_shared(f[i], &place);
    CHECK(place == 150 * (i < 2 ? size : 1));
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_seek_shared(f[i], 0, MPI_SEEK_SET);
    MPI_File_read_ordered(f[i], data, 50, MPI_BYTE, &status);
    MPI_File_read_shared(f[i], data, 10, MPI_BYTE, &status);
  }
  for (int i = 0; i < 3; ++i) MPI_File_close(&f[i]);
}

/* Who ends a split call has waited for who begins it late, and finds what that one made before. */
static void split(void) {
  static char data[1000];
  char name[4096];
  MPI_File f;
  MPI_Status status;
  snprintf(name, sizeof name, "%s.late", file_name);
  MPI_File_open(MPI_COMM_WORLD, file_name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &f);
  for (int i = 0; i < 3; ++i) {
    if (rank == size - 1) {
      usleep(200000);
      close(open(name, O_WRONLY | O_CREAT | O_EXCL, 0644));
    }
    MPI_File_write_ordered_begin(f, data, sizeof data, MPI_BYTE);
    MPI_File_write_ordered_end(f, data, &status);
    if (rank == 0) CHECK(unlink(name) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_File_close(&f);
}

/* Calls on a file by whoever has a window's lock. */
static void window_locks(void) {
  MPI_Win win;
  long* base;
  MPI_Win_allocate(sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
  for (int i = 0; i < 3; ++i) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    const int fd = open(file_name, O_WRONLY | O_CREAT | O_APPEND, 0644);
    CHECK(write(fd, "line\n", 5) == 5);
    close(fd);
    MPI_Win_unlock(0, win);
  }
  MPI_Win_free(&win);
}

/* No bytes for some. */
static void nothing(void) {
  int counts[64] = {0}, places[64] = {0}, received[64] = {0};
  char out[64] = "", in[64 * 64] = "";
  for (int i = 0; i < size; ++i) {
    counts[i] = i % 2;
    places[i] = i;
  }
  MPI_Gatherv(out, counts[rank], MPI_BYTE, in, counts, places, MPI_BYTE, 1, MPI_COMM_WORLD);
  MPI_Scatterv(in, counts, places, MPI_BYTE, out, counts[rank], MPI_BYTE, 1, MPI_COMM_WORLD);
  MPI_Allgatherv(out, counts[rank], MPI_BYTE, in, counts, places, MPI_BYTE, MPI_COMM_WORLD);
  for (int i = 0; i < size; ++i) received[i] = rank % 2;
  MPI_Alltoallv(out, counts, places, MPI_BYTE, in, received, places, MPI_BYTE, MPI_COMM_WORLD);
  MPI_Reduce_scatter(in, out, counts, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* Ranks that join later, and count from 0 again. */
static const char* program;
static void spawn(void) {
  MPI_Comm parent, kids;
  char* arguments[] = {(char*)file_name, "spawn", NULL};
  int value = 5;
  MPI_Comm_get_parent(&parent);
  if (parent == MPI_COMM_NULL) {
    MPI_Comm_spawn(program, arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &kids,
                   MPI_ERRCODES_IGNORE);
    MPI_Bcast(&value, 1, MPI_INT, rank == 0 ? MPI_ROOT : MPI_PROC_NULL, kids);
    MPI_Comm_disconnect(&kids);
    return;
  }
  MPI_Bcast(&value, 1, MPI_INT, 0, parent);
  if (rank == 1) {
    FILE* file = fopen(file_name, "w");
    fprintf(file, "%d", value);
    fclose(file);
  }
  MPI_Comm_disconnect(&parent);
}

/* Windows to which memory is attached: all that is put and got has an address. */
static void dynamic(void) {
  enum { kLong = 40 << 20 };
  int *first = calloc(1000, sizeof(int)), *long_one = calloc(1, kLong), *from = calloc(1, kLong);
  MPI_Aint mine[2], all[2 * 64];
  MPI_Win win;
  MPI_Request request;
  const int next = (rank + 1) % size, one = 1;
  int before = -1;
  MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  MPI_Win_attach(win, first, 1000 * sizeof(int));
  MPI_Win_attach(win, long_one, kLong);
  MPI_Get_address(first, &mine[0]);
  MPI_Get_address(long_one, &mine[1]);
  MPI_Allgather(mine, 2, MPI_AINT, all, 2, MPI_AINT, MPI_COMM_WORLD);
  MPI_Win_fence(0, win);
  MPI_Put(&rank, 1, MPI_INT, next, MPI_Aint_add(all[2 * next], 40), 1, MPI_INT, win);
  MPI_Put(from, kLong, MPI_BYTE, next, all[2 * next + 1], kLong, MPI_BYTE, win);
  MPI_Win_fence(0, win);
  CHECK(first[10] == (rank + size - 1) % size);
  MPI_Win_lock_all(0, win);
  MPI_Fetch_and_op(&one, &before, MPI_INT, 0, all[0], MPI_SUM, win);
  MPI_Accumulate(&one, 1, MPI_INT, next, MPI_Aint_add(all[2 * next], 4), 1, MPI_INT, MPI_SUM, win);
  MPI_Win_flush_all(win);
  MPI_Rget(from, 1000, MPI_INT, next, all[2 * next], 1000, MPI_INT, win, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Win_unlock_all(win);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(first[0] == (rank == 0 ? size : 0) && first[1] == 1);
  MPI_Win_detach(win, long_one);
  MPI_Win_detach(win, first);
  MPI_Win_free(&win);
  free(first);
  free(long_one);
  free(from);
}

/* Two halves of one program meet as if they were two. */
static void halves(void) {
  MPI_Comm half, both;
  char port[MPI_MAX_PORT_NAME] = "";
  int value = rank, sum = 0;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  if (rank == 0) MPI_Open_port(MPI_INFO_NULL, port);
  MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, MPI_COMM_WORLD);
  if (rank % 2 == 0)
    MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &both);
  else
    MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &both);
  MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, both);
  CHECK(sum == (rank % 2 == 0 ? 4 : 2));
  MPI_Comm_disconnect(&both);
  if (rank == 0) MPI_Close_port(port);
  MPI_Comm_free(&half);
}

/* Two halves make windows, each when the other makes none, which only memory tells. */
static void windows_of_halves(void) {
  MPI_Comm half;
  MPI_Win all;
  MPI_Aint bytes;
  int memory[8], unit, *taken;
  MPI_Win_allocate_shared(rank == 0 ? sizeof *taken : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &taken,
                          &all);
  if (rank == 0) *taken = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_shared_query(all, 0, &bytes, &unit, &taken);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  for (int i = 0; i < 200; ++i) {
    MPI_Win win;
    if (rank < 2)
      while (__atomic_exchange_n(taken, 1, __ATOMIC_ACQUIRE)) sched_yield();
    MPI_Win_create(memory, sizeof memory, 1, MPI_INFO_NULL, half, &win);
    if (rank < 2) __atomic_store_n(taken, 0, __ATOMIC_RELEASE);
    MPI_Win_free(&win);
  }
  MPI_Comm_free(&half);
  MPI_Win_free(&all);
}

/* More requests than one record has room for, by wildcard, too; and far more that are none. */
static void many_requests(void) {
  enum { kMany = 3000, kNone = 500000 };
  static MPI_Request all[2 * kMany], none[kNone];
  static int got[kMany], indices[kNone], sent;
  const int next = (rank + 1) % size;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < kMany; ++i)
      MPI_Irecv(&got[i], 1, MPI_INT, MPI_ANY_SOURCE, i, MPI_COMM_WORLD, &all[i]);
    for (int i = 0; i < kMany; ++i)
      MPI_Isend(&sent, 1, MPI_INT, next, i, MPI_COMM_WORLD, &all[kMany + i]);
    int left = 2 * kMany, some = 0;
    if (round == 0) MPI_Waitall(left, all, MPI_STATUSES_IGNORE);
    for (; round == 1 && left > 0; left -= some)
      MPI_Waitsome(2 * kMany, all, &some, indices, MPI_STATUSES_IGNORE);
    for (; round == 2 && left > 0; --left) MPI_Waitany(2 * kMany, all, &some, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  for (int i = 0; i < kNone; ++i) none[i] = MPI_REQUEST_NULL;
  for (int round = 0; round < 2; ++round) {
    int some = 1;
    MPI_Irecv(got, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_SELF, &none[kNone / 2]);
    MPI_Send(&sent, 1, MPI_INT, 0, 1, MPI_COMM_SELF);
    if (round == 0) MPI_Waitall(kNone, none, MPI_STATUSES_IGNORE);
    if (round == 1) MPI_Waitsome(kNone, none, &some, indices, MPI_STATUSES_IGNORE);
    CHECK(some == 1);
  }
}

/* What a rank has written, a program reads that it starts. */
static void programs(void) {
  char command[9000], name[4200];
  snprintf(name, sizeof name, "%s.%d", file_name, rank);
  for (int i = 0; i < 3; ++i) {
    FILE* file = fopen(name, "a");
    fprintf(file, "%d", i);
    fclose(file);
    snprintf(command, sizeof command, "cat %s >> %s.all", name, name);
    CHECK(system(command) == 0);
  }
}

// What ranks do in collective calls has an order: one makes or cuts a file, others look at it.
static void in_turn(void) {
  char name[4200];
  for (int i = 0; i < 50; ++i) {
    MPI_File f;
    MPI_Offset length;
    snprintf(name, sizeof name, "%s.%d", file_name, i);
    CHECK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR,
                        MPI_INFO_NULL, &f) == MPI_SUCCESS);
    MPI_File_preallocate(f, 10000);
    MPI_File_set_size(f, 5000);
    MPI_File_get_size(f, &length);
    CHECK(length == 5000);
    MPI_File_close(&f);
    MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &f);
    CHECK(i != 0 || MPI_File_set_size(f, 3) != MPI_SUCCESS);
    MPI_File_close(&f);
  }
}

// Some sync a file while others have a request under way.
static void syncs(void) {
  static char data[100000];
  MPI_Comm half;
  MPI_File f, read;
  char name[4200];
  const int odd = rank % 2;
  snprintf(name, sizeof name, "%s.%d", file_name, odd);
  MPI_Comm_split(MPI_COMM_WORLD, odd, rank, &half);
  MPI_File_open(half, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &f);
  MPI_File_open(half, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &read);
  for (int i = 0; i < 20; ++i) {
    MPI_Request request = MPI_REQUEST_NULL;
    const MPI_Offset at = (MPI_Offset)sizeof data * (i * size + rank);
    if (odd) MPI_File_iwrite_at(f, at, data, sizeof data, MPI_BYTE, &request);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(odd || MPI_File_sync(f) == MPI_SUCCESS);
    CHECK(odd || MPI_File_sync(read) != MPI_SUCCESS);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  MPI_File_close(&read);
  MPI_File_close(&f);
  MPI_Comm_free(&half);
}

/* Of one such number each to and from each, in a scatter and an exchange: calls in which a rank
 * that takes the length for another one leaves the others waiting. */
static void exchange(MPI_Datatype type, int bytes) {
  char out[4 * 64] = {0}, in[4 * 64] = {0};
  int counts[4] = {1, 1, 1, 1}, at[4] = {0, 1, 2, 3};
  CHECK(bytes <= 64);
  memset(out, rank + 1, sizeof out);
  for (int root = 0; root < size; ++root) {
    MPI_Request request;
    MPI_Scatterv(rank == root ? out : NULL, counts, at, type, in, 1, type, root, MPI_COMM_WORLD);
    CHECK(bytes == 0 || in[0] == root + 1);
    MPI_Iscatterv(rank == root ? out : NULL, counts, at, type, in, 1, type, root, MPI_COMM_WORLD,
                  &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  MPI_Alltoallv(out, counts, at, type, in, counts, at, type, MPI_COMM_WORLD);
  CHECK(bytes == 0 || in[bytes] == 2);
}

/* Types that have names; one without bytes; one whose layout is longer than a trace tells. */
static void named(void) {
  const MPI_Datatype types[] = {MPI_C_LONG_DOUBLE_COMPLEX,
                                MPI_LONG_DOUBLE,
                                MPI_C_BOOL,
                                MPI_WCHAR,
                                MPI_LONG_DOUBLE_INT,
                                MPI_INTEGER2,
                                MPI_LOGICAL,
                                MPI_COMPLEX,
                                MPI_DOUBLE_COMPLEX,
                                MPI_2REAL,
                                MPI_2DOUBLE_PRECISION,
                                MPI_2INTEGER,
                                MPI_REAL8,
                                MPI_COUNT};
  for (size_t i = 0; i < sizeof types / sizeof *types; ++i) {
    int bytes = 0;
    MPI_Aint low, extent;
    MPI_Type_size(types[i], &bytes);
    MPI_Type_get_extent(types[i], &low, &extent);
    exchange(types[i], (int)extent);
  }
  MPI_Datatype none;
  MPI_Type_contiguous(0, MPI_INT, &none);
  MPI_Type_commit(&none);
  exchange(none, 0);
  MPI_Type_free(&none);
}

static void untold(void) {
  enum { kBlocks = 3000 };
  static int lengths[kBlocks], at[kBlocks];
  static int out[4 * 3 * kBlocks], in[4 * 3 * kBlocks];
  for (int i = 0; i < kBlocks; ++i) lengths[i] = 1, at[i] = 2 * i + (i * i * 7 + i / 3) % 2;
  MPI_Datatype type, whole;
  MPI_Type_indexed(kBlocks, lengths, at, MPI_INT, &type);
  MPI_Type_create_resized(type, 0, 2 * kBlocks * sizeof(int), &whole);
  MPI_Type_commit(&whole);
  int counts[4] = {1, 1, 1, 1}, places[4] = {0, 1, 2, 3};
  for (int root = 0; root < size; ++root)
    MPI_Scatterv(out, counts, places, whole, in, 1, whole, root, MPI_COMM_WORLD);
  MPI_Alltoallv(out, counts, places, whole, in, counts, places, whole, MPI_COMM_WORLD);
  MPI_Type_free(&whole);
  MPI_Type_free(&type);
}

/* A receive that was cancelled too late got its message, one that was cancelled in time got none,
 * which memory alone orders: rank 1 sends when it has written, or when rank 0 has cancelled. */
static void cancelled(void) {
  static char bytes[1 << 20];
  enum { kBytes = sizeof bytes };
  const int fd = open(file_name, O_RDWR | O_CREAT, 0600);
  CHECK(fd >= 0 && ftruncate(fd, kBytes) == 0);
  atomic_int* done = mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(done != MAP_FAILED);
  done += kBytes / sizeof *done - 1; /* what is written ends before it */
  for (int late = 1; late >= 0 && rank < 2; --late) {
    int flag = 0;
    MPI_Request request;
    MPI_Status status;
    if (rank == 0) {
      MPI_Irecv(bytes, kBytes, MPI_BYTE, 1, late, MPI_COMM_WORLD, &request);
      while (late && !flag) {
        usleep(100);
        MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
      }
    }
    for (int i = 0; i < 100 && rank == late; ++i) CHECK(pwrite(fd, bytes, kBytes - 4096, 0) > 0);
    if (rank == 0) {
      MPI_Cancel(&request);
      MPI_Wait(&request, &status);
      MPI_Test_cancelled(&status, &flag);
      CHECK(flag == !late);
      atomic_store(done, 1);
      if (!late) MPI_Recv(bytes, kBytes, MPI_BYTE, 1, late, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      while (!late && !atomic_load(done)) usleep(100);
      MPI_Send(bytes, kBytes, MPI_BYTE, 0, late, MPI_COMM_WORLD);
    }
    if (late) {
      atomic_store(done, 0);
      MPI_Barrier(MPI_COMM_WORLD);
    }
  }
  if (rank >= 2) MPI_Barrier(MPI_COMM_WORLD);
}

/* A file that goes when it is closed is gone then, and its name another's. */
static void temporary(void) {
  char bytes[100] = {0};
  for (int i = 0; i < 20; ++i) {
    MPI_File file;
    MPI_File_open(MPI_COMM_WORLD, file_name,
                  MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
    MPI_File_write_at_all(file, 100 * rank, bytes, 100, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    if (rank == 0) {
      const int fd = open(file_name, O_WRONLY | O_CREAT | O_EXCL, 0600);
      CHECK(fd >= 0 && write(fd, bytes, 7) == 7 && close(fd) == 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(access(file_name, F_OK) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == size - 1 && i != 19) unlink(file_name);
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

/* What each rank begins at files of its own. */
static void begun(void) {
  char name[4096], bytes[8] = {0};
  snprintf(name, sizeof name, "%s.%d", file_name, rank);
  for (int i = 0; i < 40; ++i) {
    MPI_File file;
    MPI_Request requests[8];
    MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_set_size(file, 0);
    for (int k = 0; k < 8; ++k) MPI_File_iwrite(file, bytes, 8, MPI_BYTE, &requests[k]);
    MPI_Waitall(8, requests, MPI_STATUSES_IGNORE);
    MPI_File_iread_at(file, 8, bytes, 8, MPI_BYTE, requests);
    MPI_Wait(requests, MPI_STATUS_IGNORE);
    MPI_File_write_all_begin(file, bytes, 8, MPI_BYTE);
    MPI_File_write_all_end(file, bytes, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
  }
}

/* Files that must not have been there. */
static void exclusive(void) {
  char name[4096];
  MPI_File file, none;
  for (int i = 0; i < 5; ++i) {
    const int mode = MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR;
    snprintf(name, sizeof name, "%s.%d", file_name, i);
    CHECK(MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &file) == MPI_SUCCESS);
    CHECK(MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &none) != MPI_SUCCESS);
    MPI_File_close(&file);
  }
}

/* Directories that one rank makes, renames and removes, and all work in. */
static void in_directories(void) {
  char name[4096], old[4096], file[8192];
  snprintf(name, sizeof name, "%s.directory", file_name);
  snprintf(old, sizeof old, "%s.old", file_name);
  for (int i = 0; i < 6; ++i) {
    snprintf(file, sizeof file, "%s/%d", name, rank);
    CHECK(open(file, O_WRONLY | O_CREAT | O_EXCL, 0600) < 0); /* there is none yet */
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == i % size) CHECK(mkdir(name, 0700) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    int fd = open(file, O_WRONLY | O_CREAT | O_EXCL, 0600);
    CHECK(fd >= 0 && close(fd) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == (i + 1) % size) CHECK(rename(name, old) == 0 && mkdir(name, 0700) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    fd = open(file, O_WRONLY | O_CREAT | O_EXCL, 0600);
    CHECK(fd >= 0 && close(fd) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    if (i == 5) break;
    CHECK(unlink(file) == 0);
    snprintf(file, sizeof file, "%s/%d", old, rank);
    CHECK(unlink(file) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == (i + 2) % size) CHECK(rmdir(name) == 0 && rmdir(old) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

/* Messages that are too long for who receives them, and too long to be sent before that. */
static void too_long(void) {
  enum { kLong = 1 << 20 };
  char* bytes = malloc(kLong);
  const int with = rank ^ 1;
  MPI_Request requests[3];
  MPI_Status statuses[3];
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (int i = 0; i < 3; ++i) {
    if (rank % 2 == 0) {
      for (int tag = 0; tag < 3; ++tag) MPI_Send(bytes, kLong, MPI_BYTE, with, tag, MPI_COMM_WORLD);
    } else {
      CHECK(MPI_Recv(bytes, 9, MPI_BYTE, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, statuses) !=
            MPI_SUCCESS);
      MPI_Irecv(bytes, 9, MPI_BYTE, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, requests);
      CHECK(MPI_Wait(requests, statuses) != MPI_SUCCESS);
      MPI_Irecv(bytes, 9, MPI_BYTE, with, 2, MPI_COMM_WORLD, requests);
      int error = MPI_SUCCESS;
      for (int over = 0; !over && error == MPI_SUCCESS;)
        error = MPI_Test(requests, &over, statuses);
      CHECK(error != MPI_SUCCESS);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Irecv(bytes, 9, MPI_BYTE, with, 3, MPI_COMM_WORLD, requests);
    MPI_Irecv(bytes + 9, 9, MPI_BYTE, with, 4, MPI_COMM_WORLD, requests + 1);
    MPI_Isend(bytes, 9, MPI_BYTE, with, 4, MPI_COMM_WORLD, requests + 2);
    MPI_Send(bytes, 99, MPI_BYTE, with, 3, MPI_COMM_WORLD);
    CHECK(MPI_Waitall(3, requests, statuses) != MPI_SUCCESS);
    for (int k = 0; k < 3; ++k)
      if (requests[k] != MPI_REQUEST_NULL) MPI_Wait(requests + k, statuses);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  free(bytes);
}

/* Files that all ranks remove: one does, and which one no message tells. */
static void removed(void) {
  for (int i = 0; i < 40; ++i) {
    MPI_File file;
    MPI_File_open(MPI_COMM_WORLD, file_name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_close(&file);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank != i % size) usleep(500);
    MPI_File_delete(file_name, MPI_INFO_NULL);
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

/* Types made by what MPI 3.0 removed, of which Open MPI has the same handles as of those before. */
static void old_types(void) {
  char bytes[400] = {0};
  int lengths[2] = {1, 2};
  MPI_Aint places[2] = {0, 16};
  MPI_Datatype mixed[2] = {MPI_INT, MPI_DOUBLE}, type;
  for (int i = 0; i < 4; ++i) {
    MPI_Type_vector(3, 2, 5, MPI_INT, &type);
    for (int how = 0; how < 4; ++how) {
      if (how == 1) MPI_Type_struct(2, lengths, places, mixed, &type);
      if (how == 2) MPI_Type_hvector(2, 1, 24, MPI_INT, &type);
      if (how == 3) MPI_Type_hindexed(2, lengths, places, MPI_INT, &type);
      MPI_Type_commit(&type);
      MPI_Bcast(bytes, 1, type, 0, MPI_COMM_WORLD);
      MPI_Type_free(&type);
    }
  }
}

/* What files refuse: representations, places, a directory's removal. */
static void forbidden(void) {
  char bytes[80] = {0};
  MPI_File file;
  MPI_File_open(MPI_COMM_WORLD, file_name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  CHECK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "none of MPI's", MPI_INFO_NULL) !=
        MPI_SUCCESS);
  MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "internal", MPI_INFO_NULL);
  MPI_File_set_view(file, 80 * rank, MPI_DOUBLE, MPI_DOUBLE, "external32", MPI_INFO_NULL);
  MPI_File_write_all(file, bytes, 10, MPI_DOUBLE, MPI_STATUS_IGNORE);
  CHECK(MPI_File_seek(file, -3, MPI_SEEK_SET) != MPI_SUCCESS);
  CHECK(MPI_File_seek(file, 1, 12345) != MPI_SUCCESS);
  MPI_File_close(&file);
  if (rank != 0) return;
  char name[4096];
  snprintf(name, sizeof name, "%s.directory", file_name);
  mkdir(name, 0700);
  CHECK(MPI_File_delete(name, MPI_INFO_NULL) != MPI_SUCCESS);
}

/* One rank makes a file longer, from where it is in it, while others look how long that is. */
static void preallocated(void) {
  char own[4096];
  snprintf(own, sizeof own, "%s.%d", file_name, rank);
  MPI_File alone;
  MPI_File_open(MPI_COMM_SELF, own, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                MPI_INFO_NULL, &alone);
  MPI_File_preallocate(alone, 1000);
  MPI_File_sync(alone);
  MPI_File_close(&alone);
  for (int i = 1; i <= 20; ++i) {
    MPI_File file;
    MPI_Offset length = 0;
    MPI_File_open(MPI_COMM_WORLD, file_name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_seek(file, 1 << 16, MPI_SEEK_SET);
    MPI_File_preallocate(file, (MPI_Offset)i << 18);
    MPI_File_get_size(file, &length);
    CHECK(length == (MPI_Offset)i << 18);
    MPI_File_close(&file);
  }
}

/* Open MPI writes from where the first rank is in its view, and cuts off what is too much. */
static void preallocated_behind(void) {
  MPI_File file;
  MPI_Datatype pairs;
  MPI_Offset place = 0;
  char name[4096];
  MPI_Type_vector(64, 1 << 14, 2 << 14, MPI_DOUBLE, &pairs);
  MPI_Type_commit(&pairs);
  for (int i = 0; i < 2; ++i) {
    snprintf(name, sizeof name, "%s.%d", file_name, i);
    MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    if (i == 1) MPI_File_set_view(file, 1 << 20, MPI_DOUBLE, pairs, "native", MPI_INFO_NULL);
    MPI_File_seek(file, rank == 0 ? 1 << 17 : 7, MPI_SEEK_SET);
    MPI_File_preallocate(file, 4 << 20);
    MPI_File_get_position(file, &place);
    CHECK(place == (rank == 0 ? 1 << 17 : 7));
    MPI_File_close(&file);
  }
  MPI_Type_free(&pairs);
}

/* Open MPI says that it cannot where it may not read, and has; of less than nothing it says that it
 * has. */
static void preallocated_unread(void) {
  MPI_File file;
  MPI_Offset length = 0;
  MPI_File_open(MPI_COMM_WORLD, file_name, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
  MPI_File_set_size(file, 1000);
  (void)MPI_File_preallocate(file, 3000);
  (void)MPI_File_preallocate(file, -1);
  MPI_File_get_size(file, &length);
  MPI_File_seek(file, 0, MPI_SEEK_END);
  MPI_File_close(&file);
  MPI_File_open(MPI_COMM_WORLD, file_name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
  (void)MPI_File_preallocate(file, 4000);
  MPI_File_close(&file);
}

/* Reads that are begun at a file's end, and one together, which tell how much there was. */
static void past_end(void) {
  char data[100] = {0};
  MPI_File file;
  MPI_Request request;
  MPI_Status status;
  int count = 0;
  MPI_File_open(MPI_COMM_WORLD, file_name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  MPI_File_write_at_all(file, 100 * rank, data, 100, MPI_BYTE, &status);
  MPI_File_read_at_all(file, 100 * rank + 90, data, 20, MPI_BYTE, &status);
  MPI_Get_count(&status, MPI_BYTE, &count);
  CHECK(count == (rank < size - 1 ? 20 : 10));
  MPI_File_set_view(file, 4 * rank, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
  MPI_File_iread_at(file, 95, data, 10, MPI_INT, &request);
  MPI_Wait(&request, &status);
  MPI_File_seek(file, 200, MPI_SEEK_SET);
  MPI_File_iread(file, data, 10, MPI_INT, &request);
  MPI_Wait(&request, &status);
  MPI_File_seek(file, 95, MPI_SEEK_SET);
  MPI_File_read_all_begin(file, data, 10, MPI_INT);
  MPI_File_read_all_end(file, data, &status);
  MPI_File_read_at_all_begin(file, 92 + rank, data, 8, MPI_INT);
  MPI_File_read_at_all_end(file, data, &status);
  MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
  MPI_File_seek_shared(file, 350, MPI_SEEK_SET);
  MPI_File_read_ordered_begin(file, data, 30, MPI_BYTE);
  MPI_File_read_ordered_end(file, data, &status);
  for (int i = 0; i < 10; ++i) { /* there is enough left for some of them, until others begin */
    MPI_File_seek_shared(file, 340, MPI_SEEK_SET);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_iread_shared(file, data, 30, MPI_BYTE, &request);
    MPI_Wait(&request, &status);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_File_close(&file);
}

static void appended(void) {
  MPI_File file;
  const int mode = MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_APPEND;
  MPI_File_open(MPI_COMM_WORLD, file_name, mode, MPI_INFO_NULL, &file);
  MPI_File_write_at(file, rank, "x", 1, MPI_BYTE, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
}

/* Files that only who writes for the others opens at once, the others when they ask for them. */
static void opened_late(void) {
  MPI_File files[2];
  MPI_Offset size = 0;
  MPI_Info info;
  char name[4096];
  MPI_Info_create(&info);
  MPI_Info_set(info, "romio_no_indep_rw", "true");
  MPI_Info_set(info, "cb_nodes", "1");
  for (int i = 0; i < 2; ++i) {
    snprintf(name, sizeof name, "%s.%d", file_name, i);
    MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &files[i]);
    MPI_File_write_at_all(files[i], 10 * (1 + i) * rank, "0123456789", 10, MPI_BYTE,
                          MPI_STATUS_IGNORE);
  }
  for (int i = 0; i < 2; ++i) {
    MPI_File_get_size(files[i], &size);
    CHECK(size == 40 + 30 * i);
    CHECK(MPI_File_seek(files[i], 0, MPI_SEEK_END) == MPI_SUCCESS);
    MPI_File_close(&files[i]);
  }
  snprintf(name, sizeof name, "%s.none", file_name);
  CHECK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, info, &files[0]) != MPI_SUCCESS);
  MPI_Info_free(&info);
}

/* What is read has less before it in memory than its type says; ROMIO puts it that far back. */
static void below_zero(void) {
  char memory[400] = {0}, *data = memory + 100;
  const int lengths[] = {1, 1}, at[] = {1, 3};
  MPI_Datatype apart, read, view;
  MPI_File file;
  MPI_Type_indexed(2, lengths, at, MPI_CHAR, &apart);
  MPI_Type_create_resized(apart, -8, 27, &read);
  MPI_Type_create_resized(MPI_CHAR, 0, 3, &view);
  MPI_Type_commit(&read);
  MPI_Type_commit(&view);
  MPI_File_open(MPI_COMM_WORLD, file_name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  MPI_File_write_at_all(file, 50 * rank, data, 50, MPI_CHAR, MPI_STATUS_IGNORE);
  MPI_File_set_view(file, rank, MPI_CHAR, view, "native", MPI_INFO_NULL);
  MPI_File_read_at(file, 3, data, 5, read, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
  MPI_Type_free(&apart);
  MPI_Type_free(&read);
  MPI_Type_free(&view);
}

/* Ranks that have no part in what all write and read together say so by a view without bytes. */
static void empty_view(void) {
  const int count = rank % 2 == 0 ? 5 : 0, length = 1, at = rank;
  char data[5] = {0};
  MPI_Datatype part, view;
  MPI_File file;
  MPI_Type_indexed(count > 0, &length, &at, MPI_CHAR, &part);
  MPI_Type_create_resized(part, 0, 4, &view);
  MPI_Type_commit(&view);
  MPI_File_open(MPI_COMM_WORLD, file_name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  MPI_File_set_view(file, 0, MPI_CHAR, view, "native", MPI_INFO_NULL);
  MPI_File_write_all(file, data, count, MPI_CHAR, MPI_STATUS_IGNORE);
  MPI_File_read_at_all(file, 0, data, count, MPI_CHAR, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
  MPI_Type_free(&part);
  MPI_Type_free(&view);
}

/* Collective calls that are made ready once, and started again and again. */
#ifdef OMPI_HAVE_MPI_EXT_PCOLLREQ
static void made_ready(void) {
  enum { kCalls = 22, kMost = 8 };
  static int in[1000], out[kCalls][1000];
  int counts[kMost], at[kMost], bytes_at[kMost], n = 0, period = 1;
  MPI_Aint far_at[kMost];
  MPI_Datatype types[kMost];
  MPI_Request all[kCalls + 2];
  MPI_Comm ring;
  const MPI_Comm comm = MPI_COMM_WORLD;
  const MPI_Info none = MPI_INFO_NULL;
  for (int i = 0; i < kMost; ++i) {
    counts[i] = 10;
    at[i] = 10 * i;
    bytes_at[i] = 40 * i;
    far_at[i] = 40 * i;
    types[i] = MPI_INT;
  }
  for (int i = 0; i < 1000; ++i) in[i] = rank + 1;
  MPI_Cart_create(comm, 1, &size, &period, 0, &ring);
#define ADD(name, ...)                                                  \
  CHECK(MPIX_##name##_init(__VA_ARGS__, none, &all[n]) == MPI_SUCCESS); \
  ++n
  ADD(Allreduce, in, out[n], 100, MPI_INT, MPI_SUM, comm);
  ADD(Allgather, in, 10, MPI_INT, out[n], 10, MPI_INT, comm);
  ADD(Allgatherv, in, 10, MPI_INT, out[n], counts, at, MPI_INT, comm);
  ADD(Alltoall, in, 10, MPI_INT, out[n], 10, MPI_INT, comm);
  ADD(Alltoallv, in, counts, at, MPI_INT, out[n], counts, at, MPI_INT, comm);
  ADD(Alltoallw, in, counts, bytes_at, types, out[n], counts, bytes_at, types, comm);
  ADD(Barrier, comm);
  ADD(Bcast, out[n], 100, MPI_INT, 1, comm);
  ADD(Exscan, in, out[n], 10, MPI_INT, MPI_SUM, comm);
  ADD(Gather, in, 10, MPI_INT, out[n], 10, MPI_INT, 2, comm);
  ADD(Gatherv, in, 10, MPI_INT, out[n], counts, at, MPI_INT, 0, comm);
  ADD(Reduce, in, out[n], 10, MPI_INT, MPI_MAX, 0, comm);
  ADD(Reduce_scatter, in, out[n], counts, MPI_INT, MPI_SUM, comm);
  ADD(Reduce_scatter_block, in, out[n], 10, MPI_INT, MPI_SUM, comm);
  ADD(Scan, in, out[n], 10, MPI_INT, MPI_SUM, comm);
  ADD(Scatter, in, 10, MPI_INT, out[n], 10, MPI_INT, 0, comm);
  ADD(Scatterv, in, counts, at, MPI_INT, out[n], 10, MPI_INT, 0, comm);
  ADD(Neighbor_allgather, in, 10, MPI_INT, out[n], 10, MPI_INT, ring);
  ADD(Neighbor_allgatherv, in, 10, MPI_INT, out[n], counts, at, MPI_INT, ring);
  ADD(Neighbor_alltoall, in, 10, MPI_INT, out[n], 10, MPI_INT, ring);
  ADD(Neighbor_alltoallv, in, counts, at, MPI_INT, out[n], counts, at, MPI_INT, ring);
  ADD(Neighbor_alltoallw, in, counts, far_at, types, out[n], counts, far_at, types, ring);
#undef ADD
  CHECK(n == kCalls);
  for (int i = 0; i < n; ++i) {
    CHECK(MPI_Start(&all[i]) == MPI_SUCCESS);
    MPI_Wait(&all[i], MPI_STATUS_IGNORE);
  }
  CHECK(out[0][99] == size * (size + 1) / 2);
  MPI_Send_init(in, 10, MPI_INT, (rank + 1) % size, 5, comm, &all[n++]);
  MPI_Recv_init(out[0] + 500, 10, MPI_INT, (rank + size - 1) % size, 5, comm, &all[n++]);
  for (int i = 0; i < 2; ++i) {
    MPI_Startall(n, all);
    MPI_Waitall(n, all, MPI_STATUSES_IGNORE);
  }
  for (int i = 0; i < n; ++i) MPI_Request_free(&all[i]);
  MPI_Comm_free(&ring);
}

/* Each rank starts them in an order of its own. */
static void started_in_any_order(void) {
  enum { kCalls = 6 };
  static int in[600], out[kCalls][600];
  int turn = 1;
  MPI_Request all[2 * kCalls];
  MPI_Comm comms[2];
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &comms[1]);
  MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &turn, 0, &comms[0]);
  for (int c = 0; c < 2; ++c)
    for (int i = 0; i < kCalls; ++i) {
      MPI_Request* const q = &all[c * kCalls + i];
      const int ok = i % 2 ? MPIX_Allreduce_init(in, out[i], 100 * i, MPI_INT, MPI_SUM, comms[c],
                                                 MPI_INFO_NULL, q)
                           : MPIX_Barrier_init(comms[c], MPI_INFO_NULL, q);
      CHECK(ok == MPI_SUCCESS);
    }
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 2 * kCalls; ++i) MPI_Start(&all[(i * 5 + rank * 7 + round) % (2 * kCalls)]);
    for (int i = 0; i < 2 * kCalls; ++i)
      MPI_Wait(&all[(i * 7 + rank * 5) % (2 * kCalls)], MPI_STATUS_IGNORE);
  }
  for (int i = 0; i < 2 * kCalls; ++i) MPI_Request_free(&all[i]);
  /* One after the other, more than there are communicators for. */
  for (int i = 0; i < 100; ++i) {
    MPIX_Bcast_init(in, i, MPI_INT, i % size, MPI_COMM_WORLD, MPI_INFO_NULL, all);
    MPI_Start(all);
    MPI_Wait(all, MPI_STATUS_IGNORE);
    MPI_Request_free(all);
  }
  MPI_Comm_free(&comms[1]);
  MPI_Comm_free(&comms[0]);
}
#else
static void made_ready(void) {}
static void started_in_any_order(void) {}
#endif

int main(int argc, char** argv) {
  int provided = MPI_THREAD_MULTIPLE;
  if (argc == 3 && strncmp(argv[2], "threads", 7) == 0)
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  else
    MPI_Init(&argc, &argv);
  if (argc != 3 || provided != MPI_THREAD_MULTIPLE) MPI_Abort(MPI_COMM_WORLD, 2);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  file_name = argv[1];
  program = argv[0];
  static const struct {
    const char* name;
    void (*make)(void);
  } kParts[] = {{"one-sided", one_sided},
                {"wildcards", wildcards},
                {"collectives", collectives},
                {"communicators", communicators},
                {"two-groups", two_groups},
                {"buffered", buffered},
                {"datatypes", datatypes},
                {"files", files},
                {"unused", unused},
                {"refused", refused},
                {"short", short_ones},
                {"threads", threads},
                {"threads-in-turn", threads_in_turn},
                {"threads-in-files", threads_in_files},
                {"threads-and-self", threads_and_self},
                {"threads-and-halves", threads_and_halves},
                {"threads-and-windows", threads_and_windows},
                {"made-ready", made_ready},
                {"started-in-any-order", started_in_any_order},
                {"fetch", fetch},
                {"unfinished", unfinished},
                {"sizes", sizes},
                {"nothing", nothing},
                {"spawn", spawn},
                {"dynamic", dynamic},
                {"halves", halves},
                {"windows-of-halves", windows_of_halves},
                {"programs", programs},
                {"many-requests", many_requests},
                {"window-locks", window_locks},
                {"in-turn", in_turn},
                {"ends", own_ends},
                {"shared-ends", shared_ends},
                {"pointers", pointers},
                {"split", split},
                {"named", named},
                {"untold", untold},
                {"syncs", syncs},
                {"cancelled", cancelled},
                {"temporary", temporary},
                {"begun", begun},
                {"exclusive", exclusive},
                {"removed", removed},
                {"old-types", old_types},
                {"forbidden", forbidden},
                {"too-long", too_long},
                {"preallocated", preallocated},
                {"preallocated-unread", preallocated_unread},
                {"preallocated-behind", preallocated_behind},
                {"past-end", past_end},
                {"appended", appended},
                {"opened-late", opened_late},
                {"below-zero", below_zero},
                {"empty-view", empty_view},
                {"in-directories", in_directories}};
  for (size_t i = 0; i < sizeof kParts / sizeof *kParts; ++i)
    if (strcmp(argv[2], kParts[i].name) == 0) kParts[i].make();
  MPI_Finalize();
  return 0;
}
