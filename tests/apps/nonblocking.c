/* SPDX-License-Identifier: MIT */
/* Each rank writes 20 blocks of a shared file, each by a request that Open MPI serves by threads of its own.
 * nonblocking FILE */
#include <mpi.h>
#include <stdlib.h>

enum { kBlocks = 20, kBytes = 1000 };

int main(int argc, char** argv) {
  int rank;
  MPI_File file;
  static char block[kBytes];
  MPI_Init(&argc, &argv);
  if (argc != 2) MPI_Abort(MPI_COMM_WORLD, 2);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  for (int i = 0; i < kBlocks; ++i) {
    MPI_Request request;
    MPI_File_iwrite_at(file, (MPI_Offset)(rank * kBlocks + i) * kBytes, block, kBytes, MPI_CHAR, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  MPI_File_close(&file);
  MPI_Finalize();
  return 0;
}
