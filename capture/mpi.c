/* SPDX-License-Identifier: MIT */
/* Wrappers of MPI's calls, for `feign record --mpi`. Each is made from layers/mpi.h or
 * layers/mpiio.h (mpi_capture.inc); here is what stands for MPI's objects in a trace: texts and
 * numbers. Whatever is asked of MPI for that is not recorded. The library does not link MPI: it is
 * also loaded into programs that have none (the launcher, shells), where none of it is ever called.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
/* With what MPI 3.0 removed: old programs call it, and Open MPI has it still. */
#define OMPI_OMIT_MPI1_COMPAT_DECLS 0
#include <mpi.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture.h"
#include "mpi_errno.h"

/* What Open MPI's constants stand for: addresses in its library, looked up when that is there. */
#define KNOWN(X)                                                                      \
  X(ompi_mpi_comm_world)                                                              \
  X(ompi_mpi_comm_self)                                                               \
  X(ompi_mpi_comm_null)                                                               \
  X(ompi_mpi_datatype_null) X(ompi_mpi_info_null) X(ompi_mpi_byte) X(ompi_mpi_int)    \
      X(ompi_request_null) X(ompi_mpi_op_max) X(ompi_mpi_op_min) X(ompi_message_null) \
          X(ompi_message_no_proc) X(ompi_mpi_group_null) X(ompi_mpi_group_empty)      \
              X(ompi_request_empty) X(ompi_mpi_file_null)
#define X(name) static void* g_##name;
KNOWN(X)
#undef X
#undef OMPI_PREDEFINED_GLOBAL
#define OMPI_PREDEFINED_GLOBAL(type, name) ((type)g_##name)
static void know(void) {
#define X(name) g_##name = dlsym(RTLD_DEFAULT, #name);
  KNOWN(X)
#undef X
}

void feign_mpi_past(void); /* mpi_past.c */

/* Interpreters load MPI late and for themselves, where neither the wrappers nor they would find it
 * (mpi4py asks which MPI is there before it loads one, and finds wrappers). So a process that a
 * launcher started as a rank has it from the beginning, and any other that calls it from then on;
 * and its Fortran library, which an extension may need, before anybody calls that. */
static void load(void) {
  know();
  if (g_ompi_mpi_comm_world != NULL) return;
  feign_capture_quiet(1);
  if (dlopen("libmpi.so.40", RTLD_NOW | RTLD_GLOBAL) != NULL) {
    know();
    (void)dlopen("libmpi_mpifh.so.40", RTLD_NOW | RTLD_LOCAL);
    feign_mpi_past();
  }
  feign_capture_quiet(0);
}
__attribute__((constructor)) static void start(void) {
  know();
  if (g_ompi_mpi_comm_world != NULL)
    feign_mpi_past();
  else if (getenv("OMPI_COMM_WORLD_RANK") != NULL)
    load();
}
/* Before each call of MPI. */
static inline void loaded(void) {
  if (__builtin_expect(g_ompi_mpi_comm_world == NULL, 0)) load();
}

#define UNKNOWN ((uint64_t)1 << 63)
#define EXPORT __attribute__((visibility("default")))
#define MOST 4000          /* bytes of a text */
#define MOST_OF_TYPE 14000 /* … of a datatype's: a record has room for three */

/* What stands for an object, by its handle. Handles come again when what they were is freed. */
struct entry {
  const void* key;
  char* text;
  int* ranks; /* of a communicator or window, in MPI_COMM_WORLD: those that a rank means */
  int size;
  uint64_t number;
  int keeps;      /* a persistent request */
  int wild;       /* a receive by wildcard, or one that was to be cancelled … */
  MPI_Comm comm;  /* … and where from */
  uint64_t asked; /* of a file: for how many bytes a split call that has begun … */
  int empty;      /* … and whether its view has no bytes in it */
  uint64_t ready; /* of a communicator: its persistent collective calls so far */
  /* Of a persistent collective call: what is recorded of each start. */
  struct kept* kept;
};
struct table {
  struct entry* entries;
  size_t room, used;
};
static struct table g_comms, g_types, g_requests, g_files, g_windows, g_messages;
static uint64_t g_next_request, g_next_file, g_next_window, g_next_comm, g_next_message;
/* Recursive: what is asked of ROMIO it asks MPI, by way of the wrappers. */
static pthread_mutex_t g_mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static unsigned g_freed; /* texts of entries, so far: another one may lie where they did */

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
      if (e->text != NULL) __atomic_fetch_add(&g_freed, 1, __ATOMIC_RELAXED);
      free(e->text);
      free(e->ranks);
      free(e->kept);
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

#include "mpi_clocks.c"
#include "mpi_texts.c"

/* ---- ranks and members ------------------------------------------------------------------------
 */

static uint64_t rank_in(const struct entry* e, int rank) {
  if (rank == MPI_PROC_NULL) return (uint64_t)-1;
  if (rank == MPI_ANY_SOURCE) return (uint64_t)-2;
  return e != NULL && rank >= 0 && rank < e->size ? (uint64_t)e->ranks[rank] : UNKNOWN;
}
static uint64_t world_rank(MPI_Comm comm, int rank) {
  const int asks = rank >= 0 && comm != NULL && comm != MPI_COMM_NULL;
  return rank_in(asks ? comm_entry(comm, NULL) : NULL, rank);
}
/* Of two groups, MPI_ROOT is this rank itself. */
static uint64_t root_rank(MPI_Comm comm, int root) {
  int rank = 0;
  if (root != MPI_ROOT) return world_rank(comm, root);
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return (uint64_t)rank;
}
/* What follows is not asked of no communicator: the program's error handler would be called for it,
 * which calls MPI. */
static int at_root(int root, MPI_Comm comm) {
  int rank = 0, inter = 0;
  if (comm == MPI_COMM_NULL) return 0;
  PMPI_Comm_test_inter(comm, &inter);
  if (inter || root < 0) return root == MPI_ROOT;
  PMPI_Comm_rank(comm, &rank);
  return rank == root;
}
/* How many counts a collective call is given. */
static int members(MPI_Comm comm) {
  int size = 0, inter = 0;
  if (comm == MPI_COMM_NULL) return 0;
  PMPI_Comm_test_inter(comm, &inter);
  if (inter)
    PMPI_Comm_remote_size(comm, &size);
  else
    PMPI_Comm_size(comm, &size);
  return size;
}
static int own_members(MPI_Comm comm) {
  int size = 0;
  if (comm != MPI_COMM_NULL) PMPI_Comm_size(comm, &size);
  return size;
}
/* What this rank gives of that which each member gets a count for. */
static int own_count(const int* counts, MPI_Comm comm) {
  int rank = 0;
  if (comm == MPI_COMM_NULL || counts == NULL) return 0;
  PMPI_Comm_rank(comm, &rank);
  return counts[rank];
}
static int degree(MPI_Comm comm, int outgoing) {
  int kind = MPI_UNDEFINED, in = 0, out = 0, weighted = 0, rank = 0;
  if (comm == MPI_COMM_NULL) return 0;
  PMPI_Topo_test(comm, &kind);
  if (kind == MPI_CART) {
    PMPI_Cartdim_get(comm, &in);
    in *= 2;
  } else if (kind == MPI_GRAPH) {
    PMPI_Comm_rank(comm, &rank);
    PMPI_Graph_neighbors_count(comm, rank, &in);
  } else if (kind == MPI_DIST_GRAPH) {
    PMPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted);
    if (outgoing) in = out;
  }
  return in;
}
static int in_degree(MPI_Comm comm) { return degree(comm, 0); }
static int out_degree(MPI_Comm comm) { return degree(comm, 1); }
static uint64_t tag_of(int tag) { return tag == MPI_ANY_TAG ? (uint64_t)-1 : (uint64_t)tag; }

/* ---- numbers ----------------------------------------------------------------------------------
 */

/* Requests that were over as they began (a short send, often) have one handle, all of them. Their
 * numbers, oldest first: of several in a list the oldest ones are meant. */
static struct {
  uint64_t* numbers;
  size_t first, count, room;
} g_over;

static void add_over(uint64_t number) {
  if (g_over.count == g_over.room) {
    const size_t left = g_over.count - g_over.first;
    if (left > g_over.room / 2 || g_over.room == 0) {
      uint64_t* const more = realloc(g_over.numbers, (g_over.room * 2 + 64) * sizeof *more);
      if (more == NULL) return;
      g_over.numbers = more;
      g_over.room = g_over.room * 2 + 64;
    }
    memmove(g_over.numbers, g_over.numbers + g_over.first, left * sizeof *g_over.numbers);
    g_over.first = 0;
    g_over.count = left;
  }
  g_over.numbers[g_over.count++] = number;
}
static void take_over(uint64_t number) {
  for (size_t i = g_over.first; i < g_over.count; ++i)
    if (g_over.numbers[i] == number) {
      memmove(&g_over.numbers[g_over.first + 1], &g_over.numbers[g_over.first],
              (i - g_over.first) * sizeof *g_over.numbers);
      ++g_over.first;
      return;
    }
}

static uint64_t new_request(MPI_Request request, int keeps) {
  if (request == MPI_REQUEST_NULL) return UNKNOWN;
  if (request == (MPI_Request)g_ompi_request_empty) {
    add_over(++g_next_request);
    return g_next_request;
  }
  struct entry* e = enter(&g_requests, request, 1);
  if (e == NULL) return UNKNOWN;
  e->keeps = keeps;
  return e->number = ++g_next_request;
}
static uint64_t request_number(MPI_Request request) {
  if (request == MPI_REQUEST_NULL) return UNKNOWN;
  if (request == (MPI_Request)g_ompi_request_empty)
    return g_over.first != g_over.count ? g_over.numbers[g_over.first] : UNKNOWN;
  const struct entry* e = find(&g_requests, request);
  return e != NULL ? e->number : UNKNOWN;
}

/* A receive that the status of whatever completes it says more of. */
static void receives_from(MPI_Request request, int source, int tag, MPI_Comm comm) {
  struct entry* e = find(&g_requests, request);
  if (e == NULL) return;
  e->wild = source == MPI_ANY_SOURCE || tag == MPI_ANY_TAG;
  e->comm = comm;
}

/* What it got tells whether that was too late. */
static void cancels(MPI_Request request) {
  struct entry* e = request != MPI_REQUEST_NULL ? find(&g_requests, request) : NULL;
  if (e != NULL && e->comm != MPI_COMM_NULL) e->wild = 1;
}

/* "window 3": what of an object only a number is told. */
static const char* numbered(const char* what, struct table* table, const void* key, int fresh,
                            uint64_t* next, struct text* t) {
  struct entry* e = enter(table, key, fresh);
  if (e == NULL) return "";
  if (e->number == 0) e->number = ++*next;
  add(t, what);
  add_number(t, (long long)e->number);
  return t->at;
}
static const char* message_text(MPI_Message message, int fresh, struct text* t) {
  if (message == MPI_MESSAGE_NULL || message == MPI_MESSAGE_NO_PROC) return "";
  return numbered("message ", &g_messages, message, fresh, &g_next_message, t);
}
static const char* window_text(MPI_Win win, int fresh, struct text* t) {
  return numbered("window ", &g_windows, win, fresh, &g_next_window, t);
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
static const char* place_of_name(const char* name, struct text* t) {
  t->at[t->length = 0] = '\0';
  if (name[0] != '/' && name[0] != '\0' && getcwd(t->at, t->room) != NULL) {
    t->length = strlen(t->at);
    add(t, "/");
  }
  add(t, name);
  return t->at;
}
/* The path that a name stands for. What stands before a colon names the file system to ROMIO, and is
 * part of the name to Open MPI's own: which of both it was shows in what is there. */
static const char* absolute(const char* name, struct text* t) {
  struct stat st;
  const char* colon = strchr(name, ':');
  const int named = colon != NULL && colon - name > 1 &&
                    memchr(name, '/', (size_t)(colon - name)) == NULL &&
                    lstat(place_of_name(name, t), &st) != 0;
  if (named && lstat(place_of_name(colon + 1, t), &st) == 0) return t->at;
  return place_of_name(name, t);
}
/* Whether that is another one now: a file that was made meanwhile. */
static int made_there(const char* name, struct text* t) {
  const size_t length = t->length;
  if (strchr(name, ':') != NULL) (void)absolute(name, t);
  return t->length != length;
}
static void asks(MPI_File file, uint64_t bytes) {
  struct entry* e = find(&g_files, file);
  if (e != NULL) e->asked = bytes;
}
static uint64_t asked_of(MPI_File file) {
  const struct entry* e = find(&g_files, file);
  return e != NULL ? e->asked : UNKNOWN;
}
static void views(MPI_File file, MPI_Datatype filetype) {
  struct entry* e = find(&g_files, file);
  int bytes = 0;
  if (e != NULL) e->empty = PMPI_Type_size(filetype, &bytes) == MPI_SUCCESS && bytes == 0;
}
/* Where in the file: at an offset in etypes, or at the file pointer. What would be an error is not
 * asked, since the program's error handler would be called; nor is a view without bytes, by whose
 * size ROMIO divides. */
static uint64_t file_place(MPI_File file, int has_offset, MPI_Offset offset) {
  const struct entry* e = find(&g_files, file);
  MPI_Offset place = 0;
  if (file == MPI_FILE_NULL || (has_offset && offset < 0) || (e != NULL && e->empty))
    return UINT64_MAX;
  if (!has_offset && PMPI_File_get_position(file, &offset) != MPI_SUCCESS) return UINT64_MAX;
  return PMPI_File_get_byte_offset(file, offset, &place) == MPI_SUCCESS ? (uint64_t)place
                                                                        : UINT64_MAX;
}
/* What a file holds that is about to be opened: later, another rank may have written. */
static uint64_t size_before(const char* path) {
  struct stat st;
  return stat(path, &st) == 0 && S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
}
/* Where a seek came to. A shared pointer may have been moved by others since. */
static int64_t sought(MPI_File file, MPI_Offset offset, int whence, int shared) {
  MPI_Offset place = 0;
  if (whence == MPI_SEEK_SET) return offset;
  if (!shared) PMPI_File_get_position(file, &place);
  return place;
}
static uint32_t whence_of(int whence) {
  return whence == MPI_SEEK_SET ? 600 : whence == MPI_SEEK_CUR ? 602 : 604;
}
static int64_t failed(int result) {
  int kind = MPI_ERR_OTHER;
  /* Others are none of MPI's: asking it for them would end the program. */
  if (result > 0) PMPI_Error_class(result, &kind);
  return kind == MPI_SUCCESS ? -EIO : -feign_errno_of_mpi(kind);
}
/* Of a message that is too long for its receiver it is told whose it was, too. */
static int took(int result) { return result == MPI_SUCCESS || failed(result) == -EMSGSIZE; }
/* ROMIO says nothing in the status of who asks for nothing. */
static int64_t moved(int result, MPI_Status* status, uint64_t asked) {
  int bytes = 0;
  if (result != MPI_SUCCESS) return failed(result);
  if (status == NULL || asked == 0) return (int64_t)asked;
  PMPI_Get_count(status, MPI_BYTE, &bytes);
  if (bytes != MPI_UNDEFINED) return bytes;
  return asked != UNKNOWN ? (int64_t)asked : 0;
}
/* Its communicator may be freed before it, and another one lie where that did. */
static void new_window(MPI_Win win, MPI_Comm comm) {
  const struct entry* of = comm_entry(comm, NULL);
  struct entry* e = find(&g_windows, win);
  if (e == NULL || of == NULL) return;
  e->ranks = malloc(sizeof(int) * (size_t)(of->size + 1));
  if (e->ranks == NULL) return;
  memcpy(e->ranks, of->ranks, sizeof(int) * (size_t)of->size);
  e->size = of->size;
}
static uint64_t window_rank(MPI_Win win, int rank) { return rank_in(find(&g_windows, win), rank); }

/* Texts that a wrapper writes itself have room here. */
#define ROOM(name)        \
  char name##_room[MOST]; \
  name##_room[0] = '\0';  \
  struct text name = {name##_room, 0, sizeof name##_room, 0}
#define ASK(what)                   \
  do {                              \
    feign_capture_quiet(1);         \
    pthread_mutex_lock(&g_mutex);   \
    what;                           \
    pthread_mutex_unlock(&g_mutex); \
    feign_capture_quiet(0);         \
  } while (0)

/* ---- the program's own functions, that MPI calls ----------------------------------------------
 * What they do is none of the calls' business that they are called in. MPI gets one of sixteen of
 * ours instead, that calls it; those that find none left are called as they are. */
#define SIXTEEN(X, ...)                                                                           \
  X(0, __VA_ARGS__)                                                                               \
  X(1, __VA_ARGS__)                                                                               \
  X(2, __VA_ARGS__) X(3, __VA_ARGS__) X(4, __VA_ARGS__) X(5, __VA_ARGS__) X(6, __VA_ARGS__)       \
      X(7, __VA_ARGS__) X(8, __VA_ARGS__) X(9, __VA_ARGS__) X(10, __VA_ARGS__) X(11, __VA_ARGS__) \
          X(12, __VA_ARGS__) X(13, __VA_ARGS__) X(14, __VA_ARGS__) X(15, __VA_ARGS__)
#define ONE(number, result, type, parameters, before, keep, arguments, give) \
  static result type##_##number parameters {                                 \
    struct feign_call call;                                                  \
    before;                                                                  \
    feign_call_back_begin(&call);                                            \
    keep g_##type[number] arguments;                                         \
    feign_call_back_end(&call);                                              \
    give;                                                                    \
  }
#define NAME(number, type) type##_##number,
#define CALLED(type, ...)                                                           \
  static type* g_##type[16];                                                        \
  SIXTEEN(ONE, __VA_ARGS__)                                                         \
  static type* own_##type(type* f) {                                                \
    static type* const all[] = {SIXTEEN(NAME, type)};                               \
    for (int i = 0; i < 16 && f != NULL; ++i) {                                     \
      type* there = NULL;                                                           \
      if (__atomic_compare_exchange_n(&g_##type[i], &there, f, 0, __ATOMIC_ACQ_REL, \
                                      __ATOMIC_ACQUIRE) ||                          \
          there == f)                                                               \
        return all[i];                                                              \
    }                                                                               \
    return f;                                                                       \
  }
#define CALLED_INT(type, parameters, arguments) \
  CALLED(type, int, type, parameters, , const int result =, arguments, return result)
#define CALLED_VOID(type, parameters, before, arguments) \
  CALLED(type, void, type, parameters, before, , arguments, )
/* Open MPI hands over a text and a null pointer. */
#define HANDLER(type, object)                                                            \
  CALLED_VOID(type, (object * of, int* error, ...), va_list rest; va_start(rest, error); \
              void* first = va_arg(rest, void*); void* second = va_arg(rest, void*);     \
              va_end(rest), (of, error, first, second))
#define ATTRIBUTE(name, object)                                                                 \
  CALLED_INT(MPI_##name##_copy_attr_function,                                                   \
             (object of, int key, void* extra, void* in, void* out, int* flag),                 \
             (of, key, extra, in, out, flag))                                                   \
  CALLED_INT(MPI_##name##_delete_attr_function, (object of, int key, void* value, void* extra), \
             (of, key, value, extra))
ATTRIBUTE(Comm, MPI_Comm)
ATTRIBUTE(Type, MPI_Datatype)
ATTRIBUTE(Win, MPI_Win)
HANDLER(MPI_Comm_errhandler_function, MPI_Comm)
HANDLER(MPI_Win_errhandler_function, MPI_Win)
HANDLER(ompi_file_errhandler_fn, MPI_File)
/* Those of a Fortran program come the same way, and are called with an argument more. */
#define WORDS(type)                                                                          \
  typedef int words_##type(void*, void*, void*);                                             \
  CALLED_INT(words_##type, (void* first, void* second, void* third), (first, second, third)) \
  static type* own_##type(type* f) {                                                         \
    return (type*)(void (*)(void))own_words_##type((words_##type*)(void (*)(void))f);        \
  }
WORDS(MPI_Grequest_query_function)
WORDS(MPI_Grequest_free_function)
WORDS(MPI_Grequest_cancel_function)
CALLED_VOID(MPI_User_function, (void* in, void* out, int* count, MPI_Datatype* type), ,
            (in, out, count, type))
#define OWN_OF(type) type* : own_##type
#define OWN(f)                                                                              \
  _Generic((f), OWN_OF(MPI_Comm_copy_attr_function), OWN_OF(MPI_Comm_delete_attr_function), \
           OWN_OF(MPI_Type_copy_attr_function), OWN_OF(MPI_Type_delete_attr_function),      \
           OWN_OF(MPI_Win_copy_attr_function), OWN_OF(MPI_Win_delete_attr_function),        \
           OWN_OF(MPI_Comm_errhandler_function), OWN_OF(MPI_Win_errhandler_function),       \
           OWN_OF(ompi_file_errhandler_fn), OWN_OF(MPI_Grequest_query_function),            \
           OWN_OF(MPI_Grequest_free_function), OWN_OF(MPI_Grequest_cancel_function),        \
           OWN_OF(MPI_User_function))(f)

static void put_of_length(struct feign_record* r, const char* text, size_t length) {
  if (length > MOST_OF_TYPE) length = MOST; /* no type's text is: one of the program's, and cut */
  if (r->values++ < FEIGN_MOST_VALUES)
    feign_put_whole_text(r, FEIGN_FIELD_TEXT_VALUE, text, length);
}
static void put_text(struct feign_record* r, const char* text) {
  put_of_length(r, text, strlen(text));
}

/* Texts of entries, and constants, come again and again: this thread's last ones, and where they
 * were put. */
static __thread struct known {
  const char* text;
  unsigned freed; /* g_freed as it was */
  uint32_t length, at;
  uint64_t chunk; /* 0: not put yet */
} g_known[64] __attribute__((tls_model("initial-exec")));

static struct known* known(const char* text) {
  struct known* k = &g_known[((uintptr_t)text * 0x9E3779B97F4A7C15u) >> 58];
  const unsigned freed = __atomic_load_n(&g_freed, __ATOMIC_RELAXED);
  if (k->text != text || k->freed != freed)
    *k = (struct known){text, freed, (uint32_t)strlen(text), 0, 0};
  return k;
}
static uint32_t length_of(const char* text) { return known(text)->length; }
static void put_known(struct feign_record* r, const char* text) {
  struct known* k = known(text);
  const uint8_t* begin = NULL;
  const uint64_t chunk = feign_record_chunk(r, &begin);
  if (k->length == 0) {
    feign_put_value(r, 0);
  } else if (k->chunk == chunk && r->values < FEIGN_MOST_VALUES) {
    ++r->values;
    feign_put_number(r, FEIGN_FIELD_TEXT_VALUE, k->at);
  } else {
    const uint8_t* const at = r->at;
    put_of_length(r, text, k->length);
    if (r->at == at) return;
    k->chunk = chunk;
    k->at = (uint32_t)(at - begin);
  }
}
static void put_requests(struct feign_record* r, int count, const uint64_t* numbers) {
  for (int i = 0; i < count; ++i) feign_put_value(r, numbers[i]);
}
static void put_counts(struct feign_record* r, int count, const int* numbers) {
  for (int i = 0; i < count && numbers != NULL; ++i)
    feign_put_value(r, (uint64_t)(int64_t)numbers[i]);
}
#define COMPLETED ((uint64_t)1 << 62)

/* ---- what ends requests -----------------------------------------------------------------------
 * Beside the requests themselves their statuses are of interest: who it was that a wildcard got. */

enum { kFew = 64, kMany = 512 };
struct ended_request {
  uint64_t number, matched; /* 0: no wildcard, or it has got nothing */
  MPI_Comm comm;            /* of a receive by wildcard, else null */
  MPI_Request handle;
  const struct kept* kept; /* of a persistent collective call */
};
struct ending {
  struct ended_request* of;
  MPI_Status* statuses; /* where the program wants none; null: it has its own */
  int count, wild, kept;
  struct ended_request few[kFew];
  MPI_Status few_statuses[kFew];
};
/* Their statuses, if they are to be looked at: always, or if a wildcard is among them. */
static void before_end(struct ending* e, int count, const MPI_Request* requests,
                       MPI_Status** statuses, int always) {
  e->of = e->few;
  e->statuses = NULL;
  e->count = count > 0 && requests != NULL ? count : 0;
  e->wild = e->kept = 0;
  if (count > kFew && (e->of = malloc((size_t)count * sizeof *e->of)) == NULL) e->count = 0;
  size_t over = g_over.first;
  for (int i = 0; i < e->count; ++i) {
    struct ended_request* const q = &e->of[i];
    *q = (struct ended_request){UNKNOWN, 0, MPI_COMM_NULL, requests[i], NULL};
    if (requests[i] == (MPI_Request)g_ompi_request_empty) {
      if (over < g_over.count) q->number = g_over.numbers[over++];
      continue;
    }
    const struct entry* r = requests[i] != MPI_REQUEST_NULL ? find(&g_requests, requests[i]) : NULL;
    if (r == NULL) continue;
    q->number = r->number;
    q->kept = r->kept;
    e->kept |= r->kept != NULL;
    if (!r->wild) continue;
    q->comm = r->comm;
    e->wild = 1;
  }
  if (statuses == NULL || *statuses != MPI_STATUSES_IGNORE || !(always || e->wild)) return;
  e->statuses = count <= kFew ? e->few_statuses : malloc((size_t)count * sizeof *e->statuses);
  if (e->statuses != NULL) *statuses = e->statuses;
}
static void ended(struct ending* e, int i, const MPI_Status* status) {
  if (i < 0 || i >= e->count) return;
  struct ended_request* const q = &e->of[i];
  int cancelled = 0;
  if (q->comm != MPI_COMM_NULL && status != MPI_STATUS_IGNORE)
    PMPI_Test_cancelled(status, &cancelled);
  if (q->comm != MPI_COMM_NULL && status != MPI_STATUS_IGNORE && !cancelled &&
      status->MPI_SOURCE >= 0)
    q->matched = (uint64_t)1 << 60 | (world_rank(q->comm, status->MPI_SOURCE) & 0xFFFFFFF) << 32 |
                 (uint32_t)status->MPI_TAG;
  take_over(q->number);
  q->number |= COMPLETED;
}
/* All of them. */
static void all_ended(struct ending* e, const MPI_Status* statuses) {
  for (int i = 0; i < e->count && g_over.first != g_over.count; ++i) take_over(e->of[i].number);
  for (int i = 0; i < e->count && e->wild; ++i)
    if (e->of[i].comm != MPI_COMM_NULL) {
      ended(e, i, statuses != MPI_STATUSES_IGNORE ? &statuses[i] : MPI_STATUS_IGNORE);
      e->of[i].number &= ~COMPLETED;
    }
}
/* Of a call that failed: those that are gone have ended, too. Whether any of these has. */
static int gone(struct ending* e, const MPI_Request* requests, int i, const MPI_Status* status) {
  if (i < 0 || i >= e->count || (e->of[i].number & UNKNOWN) || requests[i] != MPI_REQUEST_NULL)
    return 0;
  ended(e, i, status);
  return 1;
}
static int all_gone(struct ending* e, const MPI_Request* requests, const MPI_Status* statuses) {
  int any = 0;
  for (int i = 0; i < e->count; ++i)
    any |= gone(e, requests, i, statuses != MPI_STATUSES_IGNORE ? &statuses[i] : MPI_STATUS_IGNORE);
  return any;
}
/* Where the last message of a persistent send is still under way, Open MPI starts another request in
 * its place (MPI_Bsend_init): to the program it is the same one. */
static void started(const struct ending* e, const MPI_Request* requests) {
  for (int i = 0; i < e->count; ++i) {
    if (requests[i] == e->of[i].handle || requests[i] == MPI_REQUEST_NULL) continue;
    struct entry* now = NULL;
    ASK(if ((now = enter(&g_requests, requests[i], 1)) != NULL) now->number = e->of[i].number);
  }
}
/* Of many requests only those matter that are any; and where they are looked at again and again
 * (`most`), those that are over, and as many as that. */
static void needed(struct ending* e, int most) {
  int n = 0;
  if (e->count <= kMany) return;
  for (uint64_t over = COMPLETED;; over = 0) {
    for (int i = n; i < e->count && (over != 0 || n < most); ++i)
      if ((e->of[i].number & (UNKNOWN | COMPLETED)) == over) {
        const struct ended_request q = e->of[i];
        e->of[i] = e->of[n];
        e->of[n++] = q;
      }
    if (over == 0) break;
  }
  e->count = n;
}
/* As many as fit into a record, and what is left over in more of them. `count` and `flag` less than
 * 0: there is none. */
static void put_ending(struct feign_call* call, int op, int result, int count, int flag,
                       const struct ending* e) {
  enum { kMost = (FEIGN_MOST_VALUES - 3) / 3 };
  int first = 0;
  do {
    const int left = e->count - first, n = left < kMost ? left : kMost;
    uint32_t matches = 0;
    for (int i = first; i < first + n; ++i) matches += e->of[i].matched != 0;
    struct feign_record r;
    if (first != 0) feign_call_begin(call);
    if (feign_call_end(call, &r, (uint16_t)FEIGN_CAPTURE_OP(FEIGN_CAPTURE_MPI, op),
                       result == MPI_SUCCESS ? 0 : failed(result),
                       10 * (3 + (count >= 0 ? (uint32_t)n : 0) + 2 * matches))) {
      if (count < 0)
        feign_put_value(&r, n != 0 ? e->of[0].number & ~COMPLETED : UNKNOWN);
      else
        feign_put_value(&r, (uint64_t)(n == e->count ? count : n));
      if (flag >= 0) feign_put_value(&r, (uint64_t)(flag != 0));
      feign_put_value(&r, 0); /* no text */
      for (int i = first; i < first + n && count >= 0; ++i) feign_put_value(&r, e->of[i].number);
      for (int i = first; i < first + n && matches != 0; ++i)
        if (e->of[i].matched != 0) {
          feign_put_value(&r, (uint64_t)1 << 61 | (e->of[i].number & ~COMPLETED));
          feign_put_value(&r, e->of[i].matched);
        }
      feign_record_end(&r);
    }
    first += n;
  } while (first < e->count);
  if (e->of != e->few) free(e->of);
  if (e->statuses != e->few_statuses) free(e->statuses);
}

/* ---- persistent collective calls --------------------------------------------------------------
 * Each start is recorded as the call that waits for nobody (MPI_Iallreduce), and begins a request
 * of its own. */

struct kept {
  uint16_t op;
  uint32_t length, values, number_at; /* the request's number comes there */
  uint8_t bytes[];
};
/* Where what a call says is put, which stays with its request. */
static struct kept* keep_call(MPI_Request request, int op, struct feign_record* r, size_t room) {
  struct entry* e =
      request != (MPI_Request)g_ompi_request_empty ? enter(&g_requests, request, 1) : NULL;
  if (e == NULL) return NULL;
  e->keeps = 1;
  e->number = UNKNOWN;
  e->kept = malloc(sizeof *e->kept + room + sizeof(uint64_t));
  if (e->kept == NULL) return NULL;
  *e->kept = (struct kept){(uint16_t)FEIGN_CAPTURE_OP(FEIGN_CAPTURE_MPI, op), 0, 0, 0};
  *r = (struct feign_record){.at = e->kept->bytes, .end = e->kept->bytes + room};
  return e->kept;
}
static void keep_number(struct feign_record* r, struct kept* kept) {
  kept->number_at = (uint32_t)(r->at - kept->bytes);
  ++r->values;
}
static void kept_end(const struct feign_record* r, struct kept* kept) {
  kept->length = (uint32_t)(r->at - kept->bytes);
  kept->values = r->values;
}
static void put_kept(struct feign_record* r, const struct kept* kept, uint64_t number) {
  for (uint32_t i = 0; i <= kept->length; ++i) {
    if (i == kept->number_at) feign_put_number(r, FEIGN_FIELD_VALUE, number);
    if (i < kept->length && r->at < r->end) *r->at++ = kept->bytes[i];
  }
  r->values += kept->values;
}
/* Of what was started; those that are persistent messages are left for put_ending(). */
static void put_started(struct feign_call* call, int op, int result, int count, struct ending* e) {
  int put = 0, left = 0;
  if (!e->kept) {
    put_ending(call, op, result, count, -1, e);
    return;
  }
  for (int i = 0; i < e->count; ++i) {
    const struct kept* const kept = e->of[i].kept;
    if (kept == NULL) {
      e->of[left++] = e->of[i];
      continue;
    }
    uint64_t number = 0;
    ASK(struct entry* q = find(&g_requests, e->of[i].handle);
        if (q != NULL) number = q->number = ++g_next_request);
    if (put++ != 0) feign_call_begin(call);
    struct feign_record r;
    if (!feign_call_end(call, &r, kept->op, result == MPI_SUCCESS ? 0 : failed(result),
                        kept->length + 10))
      continue;
    put_kept(&r, kept, number);
    feign_record_end(&r);
  }
  e->count = left;
  if (left != 0) {
    if (put != 0) feign_call_begin(call);
    put_ending(call, op, result, left, -1, e);
    return;
  }
  if (e->of != e->few) free(e->of);
  if (e->statuses != e->few_statuses) free(e->statuses);
}

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#include "layers/mpi_capture.inc"
#include "layers/mpiio_capture.inc"

EXPORT int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  struct ending e;
  struct feign_call call;
  ASK(before_end(&e, 1, request, &status, 1));
  feign_call_begin(&call);
  feign_call_waits(&call, "MPI_Wait");
  const int result = PMPI_Wait(request, status);
  ASK(if (result == MPI_SUCCESS) ended(&e, 0, status); else gone(&e, request, 0, status));
  put_ending(&call, OP_MPI_Wait, result, -1, -1, &e);
  return result;
}
EXPORT int MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  struct ending e;
  struct feign_call call;
  ASK(before_end(&e, 1, request, &status, 1));
  feign_call_begin(&call);
  feign_call_waits(&call, "MPI_Test");
  const int result = PMPI_Test(request, flag, status);
  int over = result == MPI_SUCCESS && *flag;
  if (over) ASK(ended(&e, 0, status));
  if (result != MPI_SUCCESS) ASK(over = gone(&e, request, 0, status));
  put_ending(&call, OP_MPI_Test, result, -1, over, &e);
  return result;
}
EXPORT int MPI_Start(MPI_Request* request) {
  struct ending e;
  struct feign_call call;
  ASK(before_end(&e, 1, request, NULL, 0));
  feign_call_begin(&call);
  feign_call_waits(&call, "MPI_Start");
  const int result = PMPI_Start(request);
  started(&e, request);
  put_started(&call, OP_MPI_Start, result, -1, &e);
  return result;
}
EXPORT int MPI_Startall(int count, MPI_Request requests[]) {
  struct ending e;
  struct feign_call call;
  ASK(before_end(&e, count, requests, NULL, 0));
  feign_call_begin(&call);
  feign_call_waits(&call, "MPI_Startall");
  const int result = PMPI_Startall(count, requests);
  started(&e, requests);
  needed(&e, INT_MAX);
  put_started(&call, OP_MPI_Startall, result, count, &e);
  return result;
}
EXPORT int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
  struct ending e;
  struct feign_call call;
  ASK(before_end(&e, count, requests, &statuses, 0));
  feign_call_begin(&call);
  feign_call_waits(&call, "MPI_Waitall");
  const int result = PMPI_Waitall(count, requests, statuses);
  ASK(if (result == MPI_SUCCESS) all_ended(&e, statuses); else all_gone(&e, requests, statuses));
  needed(&e, INT_MAX);
  put_ending(&call, OP_MPI_Waitall, result, count, -1, &e);
  return result;
}
EXPORT int MPI_Testall(int count, MPI_Request requests[], int* flag, MPI_Status statuses[]) {
  struct ending e;
  struct feign_call call;
  ASK(before_end(&e, count, requests, &statuses, 0));
  feign_call_begin(&call);
  feign_call_waits(&call, "MPI_Testall");
  const int result = PMPI_Testall(count, requests, flag, statuses);
  int all = result == MPI_SUCCESS && *flag;
  if (all) ASK(all_ended(&e, statuses));
  if (result != MPI_SUCCESS) ASK(all = all_gone(&e, requests, statuses));
  needed(&e, INT_MAX);
  put_ending(&call, OP_MPI_Testall, result, count, all, &e);
  return result;
}
EXPORT int MPI_Waitany(int count, MPI_Request requests[], int* index, MPI_Status* status) {
  MPI_Status own;
  struct ending e;
  struct feign_call call;
  if (status == MPI_STATUS_IGNORE) status = &own;
  ASK(before_end(&e, count, requests, NULL, 0));
  feign_call_begin(&call);
  feign_call_waits(&call, "MPI_Waitany");
  const int result = PMPI_Waitany(count, requests, index, status);
  ASK(if (result == MPI_SUCCESS) ended(&e, *index, status);
      else gone(&e, requests, *index, status));
  needed(&e, kMany);
  put_ending(&call, OP_MPI_Waitany, result, count, -1, &e);
  return result;
}
EXPORT int MPI_Testany(int count, MPI_Request requests[], int* index, int* flag,
                       MPI_Status* status) {
  MPI_Status own;
  struct ending e;
  struct feign_call call;
  if (status == MPI_STATUS_IGNORE) status = &own;
  ASK(before_end(&e, count, requests, NULL, 0));
  feign_call_begin(&call);
  feign_call_waits(&call, "MPI_Testany");
  const int result = PMPI_Testany(count, requests, index, flag, status);
  int any = result == MPI_SUCCESS && *flag;
  if (any) ASK(ended(&e, *index, status));
  if (result != MPI_SUCCESS) ASK(any = gone(&e, requests, *index, status));
  needed(&e, kMany);
  put_ending(&call, OP_MPI_Testany, result, count, any, &e);
  return result;
}
#define END_SOME(name)                                                              \
  EXPORT int MPI_##name(int count, MPI_Request requests[], int* out, int indices[], \
                        MPI_Status statuses[]) {                                    \
    struct ending e;                                                                \
    struct feign_call call;                                                         \
    ASK(before_end(&e, count, requests, &statuses, 1));                             \
    feign_call_begin(&call);                                                        \
    feign_call_waits(&call, "MPI_" #name);                                          \
    const int result = PMPI_##name(count, requests, out, indices, statuses);        \
    const int told = statuses != MPI_STATUSES_IGNORE;                               \
    int some = result == MPI_SUCCESS && *out != MPI_UNDEFINED ? *out : 0;           \
    if (some > 0)                                                                   \
      ASK(for (int k = 0; k < some; ++k)                                            \
              ended(&e, indices[k], told ? &statuses[k] : MPI_STATUS_IGNORE));      \
    if (result != MPI_SUCCESS) ASK(some = all_gone(&e, requests, NULL));            \
    needed(&e, kMany);                                                              \
    put_ending(&call, OP_MPI_##name, result, count,                                 \
               OP_MPI_##name == OP_MPI_Testsome ? some > 0 : -1, &e);               \
    return result;                                                                  \
  }
END_SOME(Waitsome)
END_SOME(Testsome)
