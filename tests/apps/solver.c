/* SPDX-License-Identifier: MIT */
/* A solver in two phases: halo exchange with neighbours, then a collective checkpoint through a
 * view of the file. It uses what such programs use: a communicator of its own, a derived datatype,
 * requests, persistent requests, hints, collectives.
 * solver FILE STEPS COLUMNS [US]: with a pause of up to US before each step. */
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char** argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  if (argc < 4) MPI_Abort(MPI_COMM_WORLD, 2);
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  const int steps = atoi(argv[2]), columns = atoi(argv[3]), us = argc > 4 ? atoi(argv[4]) : 0;
  double* rows = calloc((size_t)columns * 4, sizeof *rows);
  const int up = rank + 1 < size ? rank + 1 : MPI_PROC_NULL;
  const int down = rank > 0 ? rank - 1 : MPI_PROC_NULL;

  MPI_Datatype every;
  MPI_Type_vector(columns / 2, 1, 2, MPI_DOUBLE, &every);
  MPI_Type_commit(&every);
  MPI_Request kept[2];
  MPI_Send_init(rows, 1, every, up, 5, comm, &kept[0]);
  MPI_Recv_init(rows + columns, columns / 2, MPI_DOUBLE, down, 5, comm, &kept[1]);

  const int sizes[2] = {4 * size, columns}, mine[2] = {4, columns}, start[2] = {4 * rank, 0};
  MPI_Datatype part;
  MPI_Type_create_subarray(2, sizes, mine, start, MPI_ORDER_C, MPI_DOUBLE, &part);
  MPI_Type_commit(&part);
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "cb_nodes", "2");
  MPI_File file;
  MPI_File_open(comm, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file);
  MPI_File_set_view(file, 0, MPI_DOUBLE, part, "native", info);
  MPI_Info_free(&info);
  for (int i = 0; i < steps; ++i) {
    if (us > 0) usleep((unsigned)(us / size * (1 + (rank + i) % size)));
    MPI_Request requests[4];
    MPI_Irecv(rows, columns, MPI_DOUBLE, down, 1, comm, &requests[0]);
    MPI_Irecv(rows + columns, columns, MPI_DOUBLE, up, 2, comm, &requests[1]);
    MPI_Isend(rows + 2 * columns, columns, MPI_DOUBLE, up, 1, comm, &requests[2]);
    MPI_Isend(rows + 3 * columns, columns, MPI_DOUBLE, down, 2, comm, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    MPI_Startall(2, kept);
    MPI_Waitall(2, kept, MPI_STATUSES_IGNORE);
    double change = 1, all = 0;
    MPI_Allreduce(&change, &all, 1, MPI_DOUBLE, MPI_MAX, comm);
    if (i % 4 == 3) {
      MPI_File_seek(file, 0, MPI_SEEK_SET);
      MPI_File_write_all(file, rows, 4 * columns, MPI_DOUBLE, MPI_STATUS_IGNORE);
    }
  }
  MPI_File_seek(file, 0, MPI_SEEK_SET);
  MPI_File_read_all(file, rows, 4 * columns, MPI_DOUBLE, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
  MPI_Request_free(&kept[0]);
  MPI_Request_free(&kept[1]);
  MPI_Type_free(&every);
  MPI_Type_free(&part);
  MPI_Comm_free(&comm);
  free(rows);
  MPI_Finalize();
  return 0;
}
