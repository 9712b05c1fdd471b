/* SPDX-License-Identifier: MIT */
/* Functions of a program that MPI calls, and that write to a file: of attributes (that of
 * MPI_COMM_SELF as MPI ends, where libraries put away what they have open), of operations, of
 * generalized requests, and for errors. */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int file;
static MPI_File shared;
static void say(const char* what) {
  if (write(file, what, strlen(what)) < 0) perror("write");
}
static int copy(MPI_Comm comm, int key, void* extra, void* in, void* out, int* flag) {
  (void)comm, (void)key;
  say(extra);
  *(void**)out = in;
  *flag = 1;
  return MPI_SUCCESS;
}
static int drop(MPI_Comm comm, int key, void* value, void* extra) {
  (void)comm, (void)key, (void)value;
  say(extra);
  return MPI_SUCCESS;
}
static int finish(MPI_Comm comm, int key, void* value, void* extra) {
  (void)comm, (void)key, (void)value, (void)extra;
  MPI_File_write_at(shared, 0, "the end", 7, MPI_BYTE, MPI_STATUS_IGNORE);
  MPI_File_close(&shared);
  say("finished\n");
  close(file);
  return MPI_SUCCESS;
}
static void wrong(MPI_Comm* comm, int* error, ...) {
  (void)comm, (void)error;
  say("an error\n");
}
static void add(void* in, void* out, int* count, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *count; ++i) ((int*)out)[i] += ((int*)in)[i];
  say("added\n");
}
static int query(void* extra, MPI_Status* status) {
  (void)extra;
  memset(status, 0, sizeof *status);
  say("asked\n");
  return MPI_SUCCESS;
}
static int released(void* extra) {
  (void)extra;
  say("released\n");
  return MPI_SUCCESS;
}
static int cancelled(void* extra, int complete) {
  (void)extra, (void)complete;
  return MPI_SUCCESS;
}

int main(int argc, char** argv) {
  int rank, key, last, one = 1, all[2];
  char name[4096];
  MPI_Comm comm;
  MPI_Errhandler handler;
  MPI_Op op;
  MPI_Request request;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  snprintf(name, sizeof name, "%s.log.%d", argv[1], rank);
  file = open(name, O_CREAT | O_WRONLY | O_TRUNC, 0644);
  snprintf(name, sizeof name, "%s.end.%d", argv[1], rank);
  MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &shared);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, finish, &last, NULL);
  MPI_Comm_set_attr(MPI_COMM_SELF, last, NULL);

  MPI_Comm_create_keyval(copy, drop, &key, (void*)"copied or dropped\n");
  MPI_Comm_set_attr(MPI_COMM_WORLD, key, &key);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_free(&comm);
  MPI_Comm_delete_attr(MPI_COMM_WORLD, key);

  MPI_Comm_create_errhandler(wrong, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  MPI_Send(&one, -1, MPI_INT, 0, 0, MPI_COMM_WORLD);

  MPI_Op_create(add, 1, &op);
  MPI_Reduce_local(&one, &one, 1, MPI_INT, op);
  MPI_Allreduce(&one, all, 1, MPI_INT, op, MPI_COMM_WORLD);
  MPI_Op_free(&op);

  MPI_Grequest_start(query, released, cancelled, NULL, &request);
  MPI_Grequest_complete(request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Finalize();
  return 0;
}
