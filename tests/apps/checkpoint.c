/* SPDX-License-Identifier: MIT */
/* A checkpoint by all ranks with a barrier after every write, the pattern of the //TRACE paper's
 * PseudoSync. checkpoint FILE ROUNDS BYTES [US]: with a pause of up to US before each round. */
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char** argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  if (argc < 4) MPI_Abort(MPI_COMM_WORLD, 2);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int rounds = atoi(argv[2]), bytes = atoi(argv[3]), us = argc > 4 ? atoi(argv[4]) : 0;
  char* data = calloc(1, (size_t)bytes);
  MPI_File file;
  MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  for (int i = 0; i < rounds; ++i) {
    if (us > 0) usleep((unsigned)(us / size * (1 + (rank + i) % size)));
    MPI_File_write_at(file, ((MPI_Offset)i * size + rank) * bytes, data, bytes, MPI_BYTE,
                      MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_File_close(&file);
  free(data);
  MPI_Finalize();
  return 0;
}
