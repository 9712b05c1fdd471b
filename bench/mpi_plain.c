/* SPDX-License-Identifier: MIT */
/* What bench/mpi compares with: the same messages, made by a program of its own.
 * mpi_plain pingpong|alone|allreduce|halo COUNT BYTES prints nanoseconds a step. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc != 4) MPI_Abort(MPI_COMM_WORLD, 2);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int count = atoi(argv[2]), bytes = atoi(argv[3]);
  char *out = malloc((size_t)bytes + 8), *in = malloc((size_t)bytes + 8);
  /* Memory that nobody wrote is one page of zeros, many times over: it stays in the cache. */
  for (int i = 0; i < bytes / 8 + 1; ++i) ((double*)out)[i] = ((double*)in)[i] = i;
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int i = 0; i < count; ++i) {
    if (strcmp(argv[1], "allreduce") == 0) {
      MPI_Allreduce(out, in, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    } else if (strcmp(argv[1], "alone") == 0) { /* returns at once */
      MPI_Allreduce(out, in, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF);
    } else if (strcmp(argv[1], "halo") == 0) {
      const int up = (rank + 1) % size, down = (rank + size - 1) % size;
      MPI_Sendrecv(out, bytes, MPI_BYTE, up, 1, in, bytes, MPI_BYTE, down, 1, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE);
    } else if (i % 2 == rank) {
      MPI_Send(out, bytes, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD);
    } else {
      MPI_Recv(in, bytes, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  }
  const double end = MPI_Wtime();
  if (rank == 0) printf("%.1f\n", (end - begin) * 1e9 / count);
  free(out);
  free(in);
  MPI_Finalize();
  return 0;
}
