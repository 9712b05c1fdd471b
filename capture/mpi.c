/* SPDX-License-Identifier: MIT */
/* Wrappers of MPI's calls, for `feign record --mpi`. Each is made from layers/mpi.h or
 * layers/mpiio.h (mpi_capture.inc); here is what stands for MPI's objects in a trace: texts and
 * numbers. Whatever is asked of MPI for that is not recorded. The library does not link MPI: it is
 * also loaded into programs that have none (the launcher, shells), where none of it is ever called.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture.h"

#pragma weak ompi_mpi_comm_world
#pragma weak ompi_mpi_comm_self
#pragma weak ompi_mpi_comm_null
#pragma weak ompi_mpi_datatype_null
#pragma weak ompi_mpi_info_null
#pragma weak ompi_mpi_byte
#pragma weak ompi_mpi_int
#pragma weak ompi_request_null

#define UNKNOWN ((uint64_t)1 << 63)
#define EXPORT __attribute__((visibility("default")))
#define MOST 4000 /* bytes of a text */

/* What stands for an object, by its handle. Handles come again when what they were is freed. */
struct entry {
  const void* key;
  char* text;
  int* ranks; /* of a communicator, in MPI_COMM_WORLD */
  int size;
  uint64_t number;
  int keeps; /* a persistent request */
};
struct table {
  struct entry* entries;
  size_t room, used;
};
static struct table g_comms, g_types, g_requests, g_files, g_windows;
static uint64_t g_next_request, g_next_file, g_next_window, g_next_comm;
static pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER;

static size_t place_of(const struct table* t, const void* key) {
  size_t i = ((uintptr_t)key >> 4) * 0x9E3779B97F4A7C15u >> 20 & (t->room - 1);
  while (t->entries[i].key != NULL && t->entries[i].key != key) i = (i + 1) & (t->room - 1);
  return i;
}
static struct entry* find(struct table* t, const void* key) {
  if (t->room == 0) return NULL;
  struct entry* e = &t->entries[place_of(t, key)];
  return e->key != NULL ? e : NULL;
}
/* The entry of a handle, made anew if `fresh`; NULL without memory. */
static struct entry* enter(struct table* t, const void* key, int fresh) {
  struct entry* e = find(t, key);
  if (e != NULL) {
    if (fresh) {
      free(e->text);
      free(e->ranks);
      *e = (struct entry){.key = key};
    }
    return e;
  }
  if ((t->used + 1) * 2 > t->room) {
    struct table bigger = {calloc(t->room ? t->room * 2 : 256, sizeof *e),
                           t->room ? t->room * 2 : 256, t->used};
    if (bigger.entries == NULL) return NULL;
    for (size_t i = 0; i < t->room; ++i)
      if (t->entries[i].key != NULL)
        bigger.entries[place_of(&bigger, t->entries[i].key)] = t->entries[i];
    free(t->entries);
    *t = bigger;
  }
  e = &t->entries[place_of(t, key)];
  *e = (struct entry){.key = key};
  ++t->used;
  return e;
}

/* ---- texts ------------------------------------------------------------------------------------
 */

struct text {
  char* at;
  size_t length, room;
};
static void add(struct text* t, const char* what) {
  const size_t n = strlen(what);
  if (t->length + n >= t->room) return;
  memcpy(t->at + t->length, what, n + 1);
  t->length += n;
}
static void add_number(struct text* t, long long number) {
  char digits[24];
  snprintf(digits, sizeof digits, "%lld", number);
  add(t, digits);
}

/* The ranks of a communicator, "{0-2,5}"; its name or number comes from whoever made it. */
static struct entry* comm_entry(MPI_Comm comm, const char* name) {
  struct entry* e = find(&g_comms, comm);
  if (e != NULL && name == NULL) return e;
  MPI_Group group, world;
  int size = 0, inter = 0;
  PMPI_Comm_test_inter(comm, &inter);
  if (inter) return NULL;
  PMPI_Comm_size(comm, &size);
  int* local = malloc(sizeof(int) * (size_t)size);
  int* ranks = malloc(sizeof(int) * (size_t)size);
  char* text = malloc(MOST);
  e = enter(&g_comms, comm, 1);
  if (local == NULL || ranks == NULL || text == NULL || e == NULL) {
    free(local);
    free(ranks);
    free(text);
    return NULL;
  }
  for (int i = 0; i < size; ++i) local[i] = i;
  PMPI_Comm_group(comm, &group);
  PMPI_Comm_group(MPI_COMM_WORLD, &world);
  PMPI_Group_translate_ranks(group, size, local, world, ranks);
  PMPI_Group_free(&group);
  PMPI_Group_free(&world);
  free(local);
  struct text t = {text, 0, MOST};
  add(&t, comm == MPI_COMM_WORLD  ? "WORLD"
          : comm == MPI_COMM_SELF ? "SELF"
          : name != NULL          ? name
                                  : "#");
  add(&t, "{");
  for (int i = 0; i < size;) {
    int last = i;
    while (last + 1 < size && ranks[last + 1] == ranks[last] + 1) ++last;
    if (i != 0) add(&t, ",");
    add_number(&t, ranks[i]);
    if (last != i) {
      add(&t, "-");
      add_number(&t, ranks[last]);
    }
    i = last + 1;
  }
  add(&t, "}");
  e->text = text;
  e->ranks = ranks;
  e->size = size;
  return e;
}

static const char* comm_text(MPI_Comm comm) {
  if (comm == MPI_COMM_NULL) return "";
  const struct entry* e = comm_entry(comm, NULL);
  return e != NULL ? e->text : "";
}

/* A communicator that all of its members have just made: the first of them names it. */
static const char* new_comm_text(MPI_Comm comm) {
  if (comm == MPI_COMM_NULL) return "";
  int inter = 0;
  PMPI_Comm_test_inter(comm, &inter);
  if (inter) return "";
  int named[2] = {0, (int)++g_next_comm};
  PMPI_Comm_rank(MPI_COMM_WORLD, &named[0]);
  PMPI_Bcast(named, 2, MPI_INT, 0, comm);
  char name[40];
  snprintf(name, sizeof name, "#%d.%d", named[0], named[1]);
  const struct entry* e = comm_entry(comm, name);
  return e != NULL ? e->text : "";
}

static uint64_t world_rank(MPI_Comm comm, int rank) {
  if (rank == MPI_PROC_NULL) return (uint64_t)-1;
  if (rank == MPI_ANY_SOURCE) return (uint64_t)-2;
  if (comm == MPI_COMM_NULL) return UNKNOWN;
  const struct entry* e = comm_entry(comm, NULL);
  return e != NULL && rank >= 0 && rank < e->size ? (uint64_t)e->ranks[rank] : UNKNOWN;
}
static uint64_t tag_of(int tag) { return tag == MPI_ANY_TAG ? (uint64_t)-1 : (uint64_t)tag; }

static void write_type(struct text* t, MPI_Datatype type, int depth) {
  int integers = 0, addresses = 0, types = 0, combiner = 0, length = 0;
  if (type == MPI_DATATYPE_NULL || depth > 16) return;
  PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
  if (combiner == MPI_COMBINER_NAMED) {
    char name[MPI_MAX_OBJECT_NAME] = "";
    PMPI_Type_get_name(type, name, &length);
    add(t, name);
    return;
  }
  static const struct {
    int combiner;
    const char* name;
  } kNames[] = {{MPI_COMBINER_DUP, "dup"},
                {MPI_COMBINER_CONTIGUOUS, "contiguous"},
                {MPI_COMBINER_VECTOR, "vector"},
                {MPI_COMBINER_HVECTOR, "hvector"},
                {MPI_COMBINER_INDEXED, "indexed"},
                {MPI_COMBINER_HINDEXED, "hindexed"},
                {MPI_COMBINER_INDEXED_BLOCK, "indexed_block"},
                {MPI_COMBINER_HINDEXED_BLOCK, "hindexed_block"},
                {MPI_COMBINER_STRUCT, "struct"},
                {MPI_COMBINER_SUBARRAY, "subarray"},
                {MPI_COMBINER_DARRAY, "darray"},
                {MPI_COMBINER_RESIZED, "resized"}};
  const char* name = "unknown";
  for (size_t i = 0; i < sizeof kNames / sizeof *kNames; ++i)
    if (kNames[i].combiner == combiner) name = kNames[i].name;
  int* i = malloc(sizeof(int) * (size_t)(integers + 1));
  MPI_Aint* a = malloc(sizeof(MPI_Aint) * (size_t)(addresses + 1));
  MPI_Datatype* d = malloc(sizeof(MPI_Datatype) * (size_t)(types + 1));
  if (i != NULL && a != NULL && d != NULL) {
    PMPI_Type_get_contents(type, integers, addresses, types, i, a, d);
    add(t, name);
    add(t, "(");
    for (int k = 0; k < integers; ++k) {
      if (k != 0) add(t, ",");
      add_number(t, i[k]);
    }
    add(t, ";");
    for (int k = 0; k < addresses; ++k) {
      if (k != 0) add(t, ",");
      add_number(t, (long long)a[k]);
    }
    add(t, ";");
    for (int k = 0; k < types; ++k) {
      if (k != 0) add(t, ",");
      write_type(t, d[k], depth + 1);
      int ni = 0, na = 0, nt = 0, inner = MPI_COMBINER_NAMED;
      PMPI_Type_get_envelope(d[k], &ni, &na, &nt, &inner);
      if (inner != MPI_COMBINER_NAMED) PMPI_Type_free(&d[k]);
    }
    add(t, ")");
  }
  free(i);
  free(a);
  free(d);
}

static const char* type_text(MPI_Datatype type) {
  if (type == MPI_DATATYPE_NULL) return "";
  struct entry* e = find(&g_types, type);
  if (e == NULL || e->text == NULL) {
    e = enter(&g_types, type, 1);
    if (e == NULL || (e->text = malloc(MOST)) == NULL) return "";
    e->text[0] = '\0';
    struct text t = {e->text, 0, MOST};
    write_type(&t, type, 0);
  }
  return e->text;
}
static const char* new_type_text(MPI_Datatype type) {
  enter(&g_types, type, 1);
  return type_text(type);
}
static uint64_t bytes_of(long long count, MPI_Datatype type) {
  int size = 0;
  if (type == MPI_DATATYPE_NULL || count < 0) return 0;
  PMPI_Type_size(type, &size);
  return (uint64_t)count * (uint64_t)(size > 0 ? size : 0);
}

static const char* info_text(MPI_Info info, struct text* t) {
  int keys = 0;
  if (info == MPI_INFO_NULL) return "";
  PMPI_Info_get_nkeys(info, &keys);
  for (int k = 0; k < keys; ++k) {
    char key[MPI_MAX_INFO_KEY + 1] = "", value[MPI_MAX_INFO_VAL + 1] = "";
    int there = 0;
    PMPI_Info_get_nthkey(info, k, key);
    PMPI_Info_get(info, key, MPI_MAX_INFO_VAL, value, &there);
    if (t->length != 0) add(t, ";");
    for (int part = 0; part < 2; ++part) {
      if (part) add(t, "=");
      for (const char* c = part ? value : key; *c != '\0'; ++c) {
        const char one[2] = {*c, '\0'};
        add(t, *c == '%' ? "%25" : *c == '=' ? "%3D" : *c == ';' ? "%3B" : one);
      }
    }
  }
  return t->at;
}

static const char* op_text(MPI_Op op) {
  static const char* const kNames[] = {"MPI_OP_NULL", "MPI_MAX",     "MPI_MIN",  "MPI_SUM",
                                       "MPI_PROD",    "MPI_LAND",    "MPI_BAND", "MPI_LOR",
                                       "MPI_BOR",     "MPI_LXOR",    "MPI_BXOR", "MPI_MAXLOC",
                                       "MPI_MINLOC",  "MPI_REPLACE", "MPI_NO_OP"};
  const int number = PMPI_Op_c2f(op);
  return number >= 0 && number < (int)(sizeof kNames / sizeof *kNames) ? kNames[number] : "user";
}

/* ---- numbers ----------------------------------------------------------------------------------
 */

static uint64_t new_request(MPI_Request request, int keeps) {
  if (request == MPI_REQUEST_NULL) return UNKNOWN;
  struct entry* e = enter(&g_requests, request, 1);
  if (e == NULL) return UNKNOWN;
  e->keeps = keeps;
  return e->number = ++g_next_request;
}
static uint64_t request_number(MPI_Request request) {
  if (request == MPI_REQUEST_NULL) return UNKNOWN;
  const struct entry* e = find(&g_requests, request);
  return e != NULL ? e->number : UNKNOWN;
}

static uint32_t file_handle(MPI_File file) {
  const struct entry* e = find(&g_files, file);
  return e != NULL ? (uint32_t)e->number : 0;
}
static const char* file_path(MPI_File file) {
  const struct entry* e = find(&g_files, file);
  return e != NULL && e->text != NULL ? e->text : "";
}
/* Numbers of different ranks must differ. */
static uint32_t new_file(MPI_File file, const char* path) {
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  struct entry* e = enter(&g_files, file, 1);
  if (e == NULL) return 0;
  e->text = strdup(path);
  e->number = (uint64_t)(rank + 1) << 14 | (++g_next_file & 0x3FFF);
  return (uint32_t)e->number;
}
static const char* absolute(const char* name, struct text* t) {
  /* What stands before the path names the file system. */
  const char* colon = strchr(name, ':');
  if (colon != NULL && colon - name > 1 && memchr(name, '/', (size_t)(colon - name)) == NULL)
    name = colon + 1;
  if (name[0] != '/' && getcwd(t->at, t->room) != NULL) {
    t->length = strlen(t->at);
    add(t, "/");
  }
  add(t, name);
  return t->at;
}
/* Where in the file: at an offset in etypes, or at the file pointer. */
static uint64_t file_place(MPI_File file, int has_offset, MPI_Offset offset) {
  MPI_Offset place = 0;
  if (!has_offset && PMPI_File_get_position(file, &offset) != MPI_SUCCESS) return UINT64_MAX;
  return PMPI_File_get_byte_offset(file, offset, &place) == MPI_SUCCESS ? (uint64_t)place
                                                                        : UINT64_MAX;
}
static uint64_t file_size(MPI_File file) {
  MPI_Offset size = 0;
  PMPI_File_get_size(file, &size);
  return (uint64_t)size;
}
static uint32_t whence_of(int whence) {
  return whence == MPI_SEEK_SET ? 600 : whence == MPI_SEEK_CUR ? 602 : 604;
}
static int64_t moved(int result, MPI_Status* status, uint64_t asked) {
  int bytes = 0;
  if (result != MPI_SUCCESS) return -EIO;
  if (status == NULL) return (int64_t)asked;
  PMPI_Get_count(status, MPI_BYTE, &bytes);
  return bytes == MPI_UNDEFINED ? (int64_t)asked : bytes;
}
static const char* window_text(MPI_Win win, int fresh, struct text* t) {
  struct entry* e = enter(&g_windows, win, fresh);
  if (e == NULL) return "";
  if (e->number == 0) e->number = ++g_next_window;
  add(t, "window ");
  add_number(t, (long long)e->number);
  return t->at;
}

/* Texts that a wrapper writes itself have room here. */
#define ROOM(name)        \
  char name##_room[MOST]; \
  name##_room[0] = '\0';  \
  struct text name = {name##_room, 0, sizeof name##_room}
#define ASK(what)                   \
  do {                              \
    feign_capture_quiet(1);         \
    pthread_mutex_lock(&g_mutex);   \
    what;                           \
    pthread_mutex_unlock(&g_mutex); \
    feign_capture_quiet(0);         \
  } while (0)

static void put_text(struct feign_record* r, const char* text) {
  feign_put_text_value(r, text, strlen(text));
}
static void put_requests(struct feign_record* r, int count, const uint64_t* numbers) {
  for (int i = 0; i < count; ++i) feign_put_value(r, numbers[i]);
}
#define MOST_REQUESTS 512

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#include "layers/mpi_capture.inc"
#include "layers/mpiio_capture.inc"
