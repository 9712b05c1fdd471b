/* SPDX-License-Identifier: MIT */
/* Part of mpi.c: clocks of several hosts, measured where messages are anyway. */

enum { kRounds = 100 };
static MPI_Comm g_clocks;           /* where ranks are on several hosts; else null */
static int g_reference, *g_leaders; /* the first rank of each other host; ends with -1 */
static char g_reference_host[64];

static uint64_t counter(void) {
  uint32_t low, high;
  __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
  return (uint64_t)high << 32 | low;
}

/* The first rank of each host asks that of the reference for the time, by short messages: the
 * quickest answer tells it best, and by how much it may be wrong. */
static void measure_clocks(int which) {
  int rank = 0;
  PMPI_Comm_rank(g_clocks, &rank);
  for (const int* leader = g_leaders; *leader >= 0; ++leader) {
    uint64_t best[3] = {0, 0, UINT64_MAX}; /* the leader's counter, the reference's, give or take */
    if (rank == g_reference) {
      for (int i = 0; i < kRounds; ++i) {
        uint64_t theirs = 0;
        const uint64_t asked = counter();
        PMPI_Send(NULL, 0, MPI_BYTE, *leader, 1, g_clocks);
        PMPI_Recv(&theirs, 8, MPI_BYTE, *leader, 1, g_clocks, MPI_STATUS_IGNORE);
        const uint64_t half = (counter() - asked + 1) / 2;
        if (half >= best[2]) continue;
        best[0] = theirs;
        best[1] = asked + half;
        best[2] = half;
      }
      PMPI_Send(best, sizeof best, MPI_BYTE, *leader, 2, g_clocks);
    } else if (rank == *leader) {
      for (int i = 0; i < kRounds; ++i) {
        PMPI_Recv(NULL, 0, MPI_BYTE, g_reference, 1, g_clocks, MPI_STATUS_IGNORE);
        const uint64_t now = counter();
        PMPI_Send(&now, 8, MPI_BYTE, g_reference, 1, g_clocks);
      }
      PMPI_Recv(best, sizeof best, MPI_BYTE, g_reference, 2, g_clocks, MPI_STATUS_IGNORE);
      struct feign_control* const c = feign_capture_control();
      if (c == NULL) continue;
      memcpy(c->reference, g_reference_host, sizeof c->reference);
      c->aligned[which].theirs = best[1];
      c->aligned[which].bound = best[2];
      c->aligned[which].tick = best[0];
    }
  }
}

/* After MPI_Init: the rank. */
static int begun(void) {
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

/* The same; all ranks take part. */
static void clocks_begin(void) {
  struct {
    char host[64];
    int first; /* of the host that feign record runs on */
  } mine, *all = NULL;
  memset(&mine, 0, sizeof mine);
  const struct feign_control* const c = feign_capture_control();
  if (c != NULL) memcpy(mine.host, c->host, sizeof mine.host - 1);
  mine.first = c != NULL && c->first != FEIGN_CAPTURE_UNIT;
  int size = 0;
  PMPI_Comm_size(MPI_COMM_WORLD, &size);
  all = calloc((size_t)size, sizeof *all);
  g_leaders = calloc((size_t)size + 1, sizeof *g_leaders);
  if (all == NULL || g_leaders == NULL) abort();
  const int told =
      PMPI_Allgather(&mine, sizeof mine, MPI_BYTE, all, sizeof mine, MPI_BYTE, MPI_COMM_WORLD);
  for (int r = size; r-- > 0;)
    if (all[r].first) g_reference = r;
  int leaders = 0;
  for (int r = 0; r < size; ++r) {
    int known = strcmp(all[r].host, all[g_reference].host) == 0;
    for (int i = 0; i < leaders; ++i) known |= strcmp(all[r].host, all[g_leaders[i]].host) == 0;
    if (!known) g_leaders[leaders++] = r;
  }
  g_leaders[leaders] = -1;
  memcpy(g_reference_host, all[g_reference].host, sizeof g_reference_host);
  free(all);
  /* Otherwise nothing is measured: clocks are as the hosts have them. */
  if (told != MPI_SUCCESS || leaders == 0 ||
      PMPI_Comm_dup(MPI_COMM_WORLD, &g_clocks) != MPI_SUCCESS) {
    g_clocks = NULL;
    return;
  }
  measure_clocks(0);
  /* The others waited: nobody is ahead for that. */
  PMPI_Barrier(g_clocks);
}

static void clocks_end(void) {
  if (g_clocks == NULL) return;
  measure_clocks(1);
  PMPI_Comm_free(&g_clocks);
}
