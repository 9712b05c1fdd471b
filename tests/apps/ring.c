/* SPDX-License-Identifier: MIT */
/* Ranks read their parts of a file one after the other, a token going round: the pattern of the
 * Fitness benchmark in the //TRACE paper. Rank 0 makes the file.
 * ring FILE ROUNDS BYTES [US]: who has the token thinks for US. */
#include <fcntl.h>
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char** argv) {
  int rank, size, token = 0;
  MPI_Init(&argc, &argv);
  if (argc < 4) MPI_Abort(MPI_COMM_WORLD, 2);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int rounds = atoi(argv[2]), bytes = atoi(argv[3]), us = argc > 4 ? atoi(argv[4]) : 0;
  char* data = calloc(1, (size_t)bytes);
  if (rank == 0) {
    const int fd = open(argv[1], O_CREAT | O_TRUNC | O_WRONLY, 0644);
    for (int i = 0; i < rounds * size; ++i)
      if (write(fd, data, (size_t)bytes) != bytes) MPI_Abort(MPI_COMM_WORLD, 3);
    close(fd);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const int fd = open(argv[1], O_RDONLY);
  for (int i = 0; i < rounds; ++i) {
    if (rank != 0 || i != 0)
      MPI_Recv(&token, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (pread(fd, data, (size_t)bytes, ((off_t)i * size + rank) * bytes) != bytes)
      MPI_Abort(MPI_COMM_WORLD, 3);
    if (us > 0) usleep((unsigned)us);
    if (rank != size - 1 || i != rounds - 1)
      MPI_Send(&token, 1, MPI_INT, (rank + 1) % size, i % 7, MPI_COMM_WORLD);
  }
  close(fd);
  free(data);
  MPI_Finalize();
  return 0;
}
