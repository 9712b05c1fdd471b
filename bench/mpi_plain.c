/* SPDX-License-Identifier: MIT */
/* What bench/mpi compares with: the same messages, made by a program of its own.
 * mpi_plain pingpong|alone|allreduce|halo COUNT BYTES [notes] prints nanoseconds a step. With notes, each step has a
 * record, as large as a replay's: what it reads of it, and how long the step took, by one reading of the counter. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct note {
  uint64_t reads[16], took, more[7];
};

static uint64_t counter(void) {
#ifdef __x86_64__
  return __builtin_ia32_rdtsc();
#else
  return (uint64_t)(MPI_Wtime() * 1e9);
#endif
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc != 4 && argc != 5) MPI_Abort(MPI_COMM_WORLD, 2);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int count = atoi(argv[2]), bytes = atoi(argv[3]);
  char *out = malloc((size_t)bytes + 8), *in = malloc((size_t)bytes + 8);
  /* Memory that nobody wrote is one page of zeros, many times over: it stays in the cache. */
  for (int i = 0; i < bytes / 8 + 1; ++i) ((double*)out)[i] = ((double*)in)[i] = i;
  struct note* const notes = argc == 5 ? malloc(((size_t)count + 1) * sizeof *notes) : NULL;
  if (notes != NULL) memset(notes, 1, ((size_t)count + 1) * sizeof *notes);
  uint64_t sum = 0, last = counter();
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
    if (notes == NULL) continue;
    struct note* const note = &notes[i];
    __builtin_prefetch(&note[1].reads[0]);
    __builtin_prefetch(&note[1].reads[8]);
    __builtin_prefetch(&note[1].took);
    const uint64_t now = counter();
    sum += note->reads[0] + note->reads[8];
    note->took = now - last;
    last = now;
  }
  const double end = MPI_Wtime();
  if (rank == 0) printf("%.1f\n", (end - begin) * 1e9 / count);
  *(volatile uint64_t*)&last = sum; /* it is used */
  free(notes);
  free(out);
  free(in);
  MPI_Finalize();
  return 0;
}
