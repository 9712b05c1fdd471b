/* SPDX-License-Identifier: MIT */
/* MPI-IO that fails by limits of the process, which a replay does not have: files that cannot be
 * opened, by all ranks and by one, and bytes past the longest file of one rank's. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static void limit(int which, rlim_t to) {
  struct rlimit now;
  getrlimit(which, &now);
  now.rlim_cur = to < now.rlim_max ? to : now.rlim_max;
  setrlimit(which, &now);
}

int main(int argc, char** argv) {
  int rank;
  char name[4096];
  MPI_File file, own, none;
  enum { kBlock = 100000 };
  char* block = calloc(1, kBlock);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  signal(SIGXFSZ, SIG_IGN);
  MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  snprintf(name, sizeof name, "%s.%d", argv[1], rank);
  MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &own);

  struct rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  snprintf(name, sizeof name, "%s.never.%d", argv[1], rank);
  limit(RLIMIT_NOFILE, 4);
  const int alone =
      MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &none);
  snprintf(name, sizeof name, "%s.never", argv[1]);
  const int all =
      MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &none);
  limit(RLIMIT_NOFILE, files.rlim_cur);

  if (rank == 1) limit(RLIMIT_FSIZE, 2 * kBlock);
  const int past = MPI_File_write_at(own, 3 * kBlock, block, kBlock, MPI_BYTE, MPI_STATUS_IGNORE);
  const int together = MPI_File_write_at_all(file, (rank == 1 ? 5 : rank) * kBlock, block, kBlock,
                                             MPI_BYTE, MPI_STATUS_IGNORE);
  limit(RLIMIT_FSIZE, RLIM_INFINITY);
  printf("%d %d %d %d\n", alone != MPI_SUCCESS, all != MPI_SUCCESS, past != MPI_SUCCESS,
         together != MPI_SUCCESS);
  MPI_File_close(&own);
  MPI_File_close(&file);
  MPI_Finalize();
  free(block);
  return 0;
}
