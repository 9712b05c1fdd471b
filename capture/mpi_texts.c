/* SPDX-License-Identifier: MIT */
/* Part of mpi.c: communicators, datatypes, infos and operations as texts, by which a replay makes
 * them again. */

/* ---- communicators ------------------------------------------------------------------------------
 */

struct text {
  char* at;
  size_t length, room;
  int cut; /* there was more */
};
static void add(struct text* t, const char* what) {
  const size_t n = strlen(what);
  t->cut |= t->length + n >= t->room;
  if (t->cut) return;
  memcpy(t->at + t->length, what, n + 1);
  t->length += n;
}
static void add_number(struct text* t, long long number) {
  char digits[24];
  snprintf(digits, sizeof digits, "%lld", number);
  add(t, digits);
}

static void add_ranks(struct text* t, const int* ranks, int size) {
  for (int i = 0; i < size;) {
    int last = i;
    while (last + 1 < size && ranks[last + 1] == ranks[last] + 1) ++last;
    if (i != 0) add(t, ",");
    add_number(t, ranks[i]);
    if (last != i) {
      add(t, "-");
      add_number(t, ranks[last]);
    }
    i = last + 1;
  }
}
static void add_list(struct text* t, const int* list, int size) {
  for (int i = 0; i < size; ++i) {
    if (i != 0) add(t, ",");
    add_number(t, list[i]);
  }
}

/* Calls of MPI's that are made for a text may fail, which ends the program only if its error
 * handler does: what they would have told is left out, and of a communicator whose name or ranks
 * are not known a replay says that it is not known. */

/* Ranks of a group in MPI_COMM_WORLD; to be freed. Null where they are not known. */
static int* world_ranks(MPI_Group group, int size) {
  MPI_Group world;
  int known = 0;
  int* local = malloc(sizeof(int) * (size_t)(size + 1));
  int* ranks = malloc(sizeof(int) * (size_t)(size + 1));
  if (local != NULL && ranks != NULL) {
    for (int i = 0; i < size; ++i) local[i] = i;
    if (PMPI_Comm_group(MPI_COMM_WORLD, &world) == MPI_SUCCESS) {
      known = PMPI_Group_translate_ranks(group, size, local, world, ranks) == MPI_SUCCESS;
      PMPI_Group_free(&world);
    }
  }
  free(local);
  if (known) return ranks;
  free(ranks);
  return NULL;
}

/* Who is whose neighbour, as a name can tell it. Of a distributed graph each member knows its own
 * part only: they tell each other, if all of them are here (`made`). */
static void add_neighbours(struct text* t, MPI_Comm comm, int size, int made) {
  enum { kMostNumbers = 512 };
  int kind = MPI_UNDEFINED, all[kMostNumbers], more[kMostNumbers];
  PMPI_Topo_test(comm, &kind);
  if (kind == MPI_CART) {
    int dimensions = 0;
    PMPI_Cartdim_get(comm, &dimensions);
    if (dimensions > 32) return;
    if (PMPI_Cart_get(comm, dimensions, all, more, all + 64) != MPI_SUCCESS) return;
    add(t, ":cart(");
    add_list(t, all, dimensions);
    add(t, ";");
    add_list(t, more, dimensions);
    add(t, ")");
  } else if (kind == MPI_GRAPH) {
    int nodes = 0, edges = 0;
    PMPI_Graphdims_get(comm, &nodes, &edges);
    if (nodes > kMostNumbers || edges > kMostNumbers) return;
    if (PMPI_Graph_get(comm, nodes, edges, all, more) != MPI_SUCCESS) return;
    add(t, ":graph(");
    add_list(t, all, nodes);
    add(t, ";");
    add_list(t, more, edges);
    add(t, ")");
  } else if (kind == MPI_DIST_GRAPH && made) {
    int in = 0, out = 0, weighted = 0, mine[2], most = 0;
    PMPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted);
    mine[0] = in + out;
    if (PMPI_Allreduce(mine, &most, 1, MPI_INT, MPI_MAX, comm) != MPI_SUCCESS) return;
    if ((most + 2) > kMostNumbers / (size > 0 ? size : 1)) return;
    int weights[kMostNumbers], part[kMostNumbers] = {in, out};
    const int known =
        PMPI_Dist_graph_neighbors(comm, in, part + 2, weights, out, part + 2 + in, weights);
    /* Others wait for this one's part, whatever it is. */
    if (PMPI_Allgather(part, most + 2, MPI_INT, all, most + 2, MPI_INT, comm) != MPI_SUCCESS ||
        known != MPI_SUCCESS)
      return;
    add(t, ":dist(");
    for (int r = 0; r < size; ++r) {
      const int* one = all + r * (most + 2);
      if (r != 0) add(t, ",");
      add_list(t, one, 2 + one[0] + one[1]);
    }
    add(t, ")");
  }
}

/* A communicator's text, "#2.1{0-2,5}"; its name comes from whoever made it. Its ranks, to be
 * freed, and how many; null without memory. What its members tell each other keeps this thread
 * waiting for theirs, and needs none of what g_mutex guards. */
static int* describe_comm(MPI_Comm comm, const char* name, struct text* t, int* count) {
  MPI_Group group;
  int size = 0, inter = 0;
  PMPI_Comm_test_inter(comm, &inter);
  PMPI_Comm_size(comm, &size);
  if (PMPI_Comm_group(comm, &group) != MPI_SUCCESS) return NULL;
  int* ranks = world_ranks(group, size);
  PMPI_Group_free(&group);
  if (ranks == NULL) return NULL;
  add(t, comm == MPI_COMM_WORLD  ? "WORLD"
         : comm == MPI_COMM_SELF ? "SELF"
         : name != NULL          ? name
                                 : "#");
  if (!inter) add_neighbours(t, comm, size, name != NULL);
  add(t, "{");
  if (inter) {
    /* Both sides write the same: the one with the lower first rank before the other. */
    int others = 0;
    int* theirs = NULL;
    if (PMPI_Comm_remote_size(comm, &others) == MPI_SUCCESS && others > 0 &&
        PMPI_Comm_remote_group(comm, &group) == MPI_SUCCESS) {
      theirs = world_ranks(group, others);
      PMPI_Group_free(&group);
    }
    if (theirs == NULL) {
      free(ranks);
      return NULL;
    }
    const int mine_first = ranks[0] < theirs[0];
    add_ranks(t, mine_first ? ranks : theirs, mine_first ? size : others);
    add(t, "|");
    add_ranks(t, mine_first ? theirs : ranks, mine_first ? others : size);
    free(ranks);
    ranks = theirs;
    size = others;
  } else {
    add_ranks(t, ranks, size);
  }
  add(t, "}");
  *count = size;
  return ranks;
}

static struct entry* comm_entry(MPI_Comm comm, const char* name) {
  struct entry* e = find(&g_comms, comm);
  if (e != NULL && name == NULL) return e;
  struct text t = {malloc(MOST), 0, MOST, 0};
  int size = 0;
  pthread_mutex_unlock(&g_mutex);
  int* ranks = t.at != NULL ? describe_comm(comm, name, &t, &size) : NULL;
  pthread_mutex_lock(&g_mutex);
  if (name == NULL) e = find(&g_comms, comm); /* another thread was faster */
  if (ranks != NULL && (name != NULL || e == NULL) && (e = enter(&g_comms, comm, 1)) != NULL) {
    e->text = t.at;
    e->ranks = ranks;
    e->size = size;
    return e;
  }
  free(ranks);
  free(t.at);
  return name == NULL ? e : NULL;
}

static const char* group_text(MPI_Group group, struct text* t) {
  int size = 0;
  if (group == MPI_GROUP_NULL || group == MPI_GROUP_EMPTY) return "{}";
  PMPI_Group_size(group, &size);
  int* ranks = world_ranks(group, size);
  add(t, "{");
  if (ranks != NULL) add_ranks(t, ranks, size);
  add(t, "}");
  free(ranks);
  return t->at;
}

static const char* comm_text(MPI_Comm comm) {
  if (comm == MPI_COMM_NULL) return "";
  const struct entry* e = comm_entry(comm, NULL);
  return e != NULL ? e->text : "";
}

/* A communicator that all of its members have just made: the first of them names it. */
static const char* new_comm_text(MPI_Comm comm) {
  if (comm == MPI_COMM_NULL) return "";
  int inter = 0, failed = 0, named[2] = {0, (int)++g_next_comm};
  pthread_mutex_unlock(&g_mutex); /* this waits for the others' threads */
  PMPI_Comm_test_inter(comm, &inter);
  PMPI_Comm_rank(MPI_COMM_WORLD, &named[0]);
  if (inter) {
    int mine = 0;
    PMPI_Comm_rank(comm, &mine);
    MPI_Comm local = MPI_COMM_NULL;
    failed = PMPI_Intercomm_merge(comm, 0, &local);
    if (local != MPI_COMM_NULL) {
      /* The lowest name of all wins, on both sides. */
      int low = mine == 0 ? named[0] : INT_MAX, who = 0;
      failed |= PMPI_Allreduce(&low, &who, 1, MPI_INT, MPI_MIN, local);
      int number = mine == 0 && named[0] == who ? named[1] : 0;
      failed |= PMPI_Allreduce(&number, &named[1], 1, MPI_INT, MPI_MAX, local);
      named[0] = who;
      PMPI_Comm_free(&local);
    }
  } else {
    failed = PMPI_Bcast(named, 2, MPI_INT, 0, comm);
  }
  pthread_mutex_lock(&g_mutex);
  if (failed != MPI_SUCCESS) return "";
  char name[40];
  snprintf(name, sizeof name, "#%d.%d", named[0], named[1]);
  const struct entry* e = comm_entry(comm, name);
  return e != NULL ? e->text : "";
}
/* One that is there only later: its members have made as many of its parent so far. */
static const char* later_comm_text(MPI_Comm parent, MPI_Comm comm) {
  char name[MOST];
  struct entry* e = comm_entry(parent, NULL);
  if (e == NULL || comm == MPI_COMM_NULL) return "";
  const size_t length = strcspn(e->text, ":{");
  snprintf(name, sizeof name, "%s%.*s.%llu", e->text[0] == '#' ? "" : "#", (int)length, e->text,
           (unsigned long long)++e->number);
  /* Its group may not be known yet either: that of its parent, as are its neighbours. */
  const char* rest = e->text + length;
  struct entry* made = enter(&g_comms, comm, 1);
  e = find(&g_comms, parent);
  if (made == NULL || strlen(name) + strlen(rest) >= MOST) return "";
  strcat(name, rest);
  made->text = strdup(name);
  made->ranks = malloc(sizeof(int) * (size_t)(e->size + 1));
  if (made->text == NULL || made->ranks == NULL) return "";
  memcpy(made->ranks, e->ranks, sizeof(int) * (size_t)e->size);
  made->size = e->size;
  return made->text;
}

/* What stands for the communicator of a persistent collective call, "WORLD/3{0-2}". Members make
 * such calls ready in one order, but may start them in any: so each has a communicator of its own.
 * Few have as many as that at a time; and who makes them ready again and again does not use up all.
 */
static const char* ready_comm_text(MPI_Comm comm, struct text* t) {
  enum { kMostReady = 64 };
  if (comm == MPI_COMM_NULL) return "";
  struct entry* e = comm_entry(comm, NULL);
  if (e == NULL) return "";
  const size_t name = strcspn(e->text, ":{");
  snprintf(t->at, t->room, "%.*s/%llu", (int)name, e->text,
           (unsigned long long)(e->ready++ % kMostReady + 1));
  t->length = strlen(t->at);
  add(t, e->text + name);
  return t->cut ? e->text : t->at;
}

/* ---- datatypes, infos and operations
 * ---------------------------------------------------------------
 */

/* Regular blocks have regular places: FIRST:STEP:COUNT stands for four numbers and more. */
static void add_runs(struct text* t, const long long* list, int size) {
  for (int i = 0; i < size;) {
    int last = i;
    while (last + 2 < size && list[last + 2] - list[last + 1] == list[last + 1] - list[last])
      ++last;
    const int count = last == i ? 1 : last + 2 - i;
    if (i != 0) add(t, ",");
    add_number(t, list[i]);
    if (count < 4) {
      ++i;
      continue;
    }
    add(t, ":");
    add_number(t, list[i + 1] - list[i]);
    add(t, ":");
    add_number(t, count);
    i += count;
  }
}

static int is_mpis_own(int combiner) {
  return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL ||
         combiner == MPI_COMBINER_F90_COMPLEX || combiner == MPI_COMBINER_F90_INTEGER;
}

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
                {MPI_COMBINER_RESIZED, "resized"},
                {MPI_COMBINER_F90_REAL, "f90_real"},
                {MPI_COMBINER_F90_COMPLEX, "f90_complex"},
                {MPI_COMBINER_F90_INTEGER, "f90_integer"}};
  const char* name = "unknown";
  for (size_t i = 0; i < sizeof kNames / sizeof *kNames; ++i)
    if (kNames[i].combiner == combiner) name = kNames[i].name;
  long long* wide =
      malloc(sizeof *wide * (size_t)((integers > addresses ? integers : addresses) + 1));
  int* i = malloc(sizeof(int) * (size_t)(integers + 1));
  MPI_Aint* a = malloc(sizeof(MPI_Aint) * (size_t)(addresses + 1));
  MPI_Datatype* d = malloc(sizeof(MPI_Datatype) * (size_t)(types + 1));
  if (wide != NULL && i != NULL && a != NULL && d != NULL) {
    PMPI_Type_get_contents(type, integers, addresses, types, i, a, d);
    add(t, name);
    add(t, "(");
    for (int k = 0; k < integers; ++k) wide[k] = i[k];
    add_runs(t, wide, integers);
    add(t, ";");
    for (int k = 0; k < addresses; ++k) wide[k] = (long long)a[k];
    add_runs(t, wide, addresses);
    add(t, ";");
    for (int k = 0; k < types; ++k) {
      if (k != 0) add(t, ",");
      write_type(t, d[k], depth + 1);
      int ni = 0, na = 0, nt = 0, inner = MPI_COMBINER_NAMED;
      PMPI_Type_get_envelope(d[k], &ni, &na, &nt, &inner);
      if (!is_mpis_own(inner)) PMPI_Type_free(&d[k]);
    }
    add(t, ")");
  }
  free(wide);
  free(i);
  free(a);
  free(d);
}

static const char* type_text(MPI_Datatype type) {
  if (type == NULL || type == MPI_DATATYPE_NULL) return "";
  struct entry* e = find(&g_types, type);
  if (e == NULL || e->text == NULL) {
    e = enter(&g_types, type, 1);
    if (e == NULL || (e->text = malloc(MOST_OF_TYPE)) == NULL) return "";
    e->text[0] = '\0';
    struct text t = {e->text, 0, MOST_OF_TYPE, 0};
    write_type(&t, type, 0);
    if (t.cut) e->text[0] = '\0'; /* half of it would be another type */
    char* const fits = realloc(e->text, strlen(e->text) + 1);
    if (fits != NULL) e->text = fits;
  }
  return e->text;
}
static const char* new_type_text(MPI_Datatype type) {
  enter(&g_types, type, 1);
  return type_text(type);
}
static uint64_t bytes_of(long long count, MPI_Datatype type) {
  MPI_Count size = 0;
  if (type == NULL || type == MPI_DATATYPE_NULL || count < 0) return 0;
  PMPI_Type_size_x(type, &size);
  return (uint64_t)count * (uint64_t)(size > 0 ? size : 0);
}
static uint64_t bytes_of_all(const int* counts, int n, const MPI_Datatype* types,
                             MPI_Datatype type) {
  uint64_t sum = 0;
  for (int i = 0; i < n && counts != NULL; ++i)
    sum += bytes_of(counts[i], types != NULL ? types[i] : type);
  return sum;
}
#define MOST_MEMBERS 500
static void bytes_of_each(uint64_t* to, const int* counts, int n, const MPI_Datatype* types) {
  for (int i = 0; i < n && n < MOST_MEMBERS; ++i)
    to[i] = counts != NULL ? bytes_of(counts[i], types[i]) : 0;
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

__asm__(".weak PMPI_Op_c2f"); /* as all calls of the layers are (mpi_capture.inc) */
static const char* op_text(MPI_Op op) {
  static const char* const kNames[] = {"MPI_OP_NULL", "MPI_MAX",     "MPI_MIN",  "MPI_SUM",
                                       "MPI_PROD",    "MPI_LAND",    "MPI_BAND", "MPI_LOR",
                                       "MPI_BOR",     "MPI_LXOR",    "MPI_BXOR", "MPI_MAXLOC",
                                       "MPI_MINLOC",  "MPI_REPLACE", "MPI_NO_OP"};
  const int number = PMPI_Op_c2f(op);
  return number >= 0 && number < (int)(sizeof kNames / sizeof *kNames) ? kNames[number] : "user";
}
