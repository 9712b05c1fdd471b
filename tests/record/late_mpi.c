/* SPDX-License-Identifier: MIT */
/* As interpreters use MPI: the program knows nothing of it, asks which MPI the process has before
 * it loads one, and then loads an extension that needs it, and its Fortran library, for itself
 * alone. late_mpi EXTENSION FILE [unasked]; with -DEXTENSION: the extension. */
#include <stdio.h>

#ifdef EXTENSION
#include <mpi.h>

void mpi_barrier_(int* comm, int* error);

int work(const char* name) {
  int rank = 0, sum = 0, world, error = 1;
  MPI_File file;
  if (MPI_Init(NULL, NULL) != MPI_SUCCESS) return 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  MPI_File_write_at_all(file, rank * (MPI_Offset)sizeof sum, &sum, 1, MPI_INT, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
  world = MPI_Comm_c2f(MPI_COMM_WORLD);
  mpi_barrier_(&world, &error);
  if (error != MPI_SUCCESS) return 2;
  return MPI_Finalize();
}
#else
#include <dlfcn.h>

int main(int argc, char** argv) {
  void* const whole = dlopen(NULL, RTLD_LAZY);
  if (argc < 4 && dlsym(whole, "MPI_Get_version") != NULL && dlsym(whole, "ompi_mpi_comm_self") == NULL) {
    fprintf(stderr, "an MPI that is not Open MPI\n");
    return 3;
  }
  void* const extension = argc > 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  if (extension == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 4;
  }
  int (*work)(const char*);
  *(void**)&work = dlsym(extension, "work");
  return work(argv[2]);
}
#endif
