/* SPDX-License-Identifier: MIT */
/* Calls of MPI that go wrong, and how often the program's own error handlers, which call MPI, are
 * told so. */
#include <mpi.h>
#include <stdio.h>

static int told;
static void count(void) {
  char text[MPI_MAX_PROCESSOR_NAME];
  int size;
  MPI_Comm copy;
  MPI_Get_processor_name(text, &size);
  MPI_Comm_dup(MPI_COMM_SELF, &copy);
  MPI_Comm_free(&copy);
  ++told;
}
static void of_comm(MPI_Comm* comm, int* error, ...) { (void)comm, (void)error, count(); }
static void of_file(MPI_File* file, int* error, ...) { (void)file, (void)error, count(); }

#define SAY(call)                   \
  do {                              \
    told = 0;                       \
    (void)(call);                   \
    printf("%d " #call "\n", told); \
    fflush(stdout);                 \
  } while (0)

int main(void) {
  int a[9] = {0}, b[9] = {0}, counts[] = {1}, places[] = {0};
  MPI_Errhandler comms, files;
  MPI_File file;
  MPI_Request request;
  MPI_Init(NULL, NULL);
  MPI_Comm_create_errhandler(of_comm, &comms);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, comms);
  MPI_File_create_errhandler(of_file, &files);
  MPI_File_set_errhandler(MPI_FILE_NULL, files); /* of those that are opened, too */
  SAY(MPI_Send(a, 1, MPI_INT, 0, 0, MPI_COMM_NULL));
  SAY(MPI_Bcast(a, 1, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD));
  SAY(MPI_Gather(a, 1, MPI_INT, b, 1, MPI_INT, 0, MPI_COMM_NULL));
  SAY(MPI_Gatherv(a, 1, MPI_INT, b, counts, places, MPI_INT, 0, MPI_COMM_NULL));
  SAY(MPI_Reduce_scatter(a, b, counts, MPI_INT, MPI_SUM, MPI_COMM_NULL));
  SAY(MPI_Reduce_scatter_block(a, b, 1, MPI_INT, MPI_SUM, MPI_COMM_NULL));
  MPI_File_open(MPI_COMM_WORLD, "file", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  SAY(MPI_File_read_at(file, -5, a, 1, MPI_INT, MPI_STATUS_IGNORE));
  SAY(MPI_File_iread_at(file, -5, a, 0, MPI_INT, &request));
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  SAY(MPI_File_write(file, a, -1, MPI_INT, MPI_STATUS_IGNORE));
  MPI_File_close(&file);
  SAY(MPI_File_read(file, a, 1, MPI_INT, MPI_STATUS_IGNORE));
  SAY(MPI_File_read_at(file, 0, a, 1, MPI_INT, MPI_STATUS_IGNORE));
  SAY(MPI_File_seek(file, 0, MPI_SEEK_END));
  MPI_Finalize();
  return 0;
}
