/* SPDX-License-Identifier: MIT */
/* How long an MPI program runs by itself: the time from the end of MPI_Init, brought together by a
 * barrier, to the beginning of MPI_Finalize, of the rank that took longest, in the file
 * $MPI_CLOCK. Preloaded; C and Fortran. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static double begun;

static void begin(void) {
  PMPI_Barrier(MPI_COMM_WORLD);
  begun = PMPI_Wtime();
}

static void end(void) {
  double mine = PMPI_Wtime() - begun, most = 0;
  int rank = 0;
  const char* path = getenv("MPI_CLOCK");
  PMPI_Reduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  FILE* f = rank == 0 && path != NULL ? fopen(path, "w") : NULL;
  if (f == NULL) return;
  fprintf(f, "%.6f\n", most);
  fclose(f);
}

int MPI_Init(int* argc, char*** argv) {
  const int result = PMPI_Init(argc, argv);
  begin();
  return result;
}
int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  const int result = PMPI_Init_thread(argc, argv, required, provided);
  begin();
  return result;
}
int MPI_Finalize(void) {
  end();
  return PMPI_Finalize();
}
void mpi_init_(MPI_Fint* error) {
  *error = PMPI_Init(NULL, NULL);
  begin();
}
void mpi_finalize_(MPI_Fint* error) {
  end();
  *error = PMPI_Finalize();
}
