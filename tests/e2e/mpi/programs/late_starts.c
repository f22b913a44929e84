/// Four ranks, of which rank 2 comes late to collectives whose starts tell who is late: those that
/// are started by one call and completed by another, and those of uneven parts.
/// late_starts SCENE_MS: a scene's length (scenes.h).
#include "tests/e2e/mpi/programs/persistent.h"
#include "tests/e2e/mpi/programs/scenes.h"

enum { kLate = 2 };

static const int g_places[4] = {0, 4, 8, 12};
static int g_out[16];
static int g_in[16];
static int g_out_counts[4];
static int g_in_counts[4];

/// Rank i sends i + 1 numbers to each, itself as well; in a ring to its neighbours alone.
static void count(int rank, int is_ring) {
  for (int other = 0; other < 4; ++other) {
    const int is_met = !is_ring || (rank + other) % 2 != 0;
    g_out_counts[other] = is_met ? rank + 1 : 0;
    g_in_counts[other] = is_met ? other + 1 : 0;
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int rank = world_rank();
  int sum = 0;
  MPI_Request request;
  MPI_Comm other;
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  start_scenes(argc > 1 ? atol(argv[1]) : 400);

  begin(rank == kLate);
  MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(sum == 6);

  count(rank, 0);
  begin(rank == kLate);
  MPI_Alltoallv(g_out, g_out_counts, g_places, MPI_INT, g_in, g_in_counts, g_places, MPI_INT,
                MPI_COMM_WORLD);

  PREPARE(Alltoallv)
  (g_out, g_out_counts, g_places, MPI_INT, g_in, g_in_counts, g_places, MPI_INT, MPI_COMM_WORLD,
   MPI_INFO_NULL, &request);
  begin(0);
  if (rank == kLate) be_late();
  MPI_Start(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Request_free(&request);

  begin(rank == kLate);  // everybody works until long after its start
  MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, other, &request);
  begin_at(g_scene + 0.8);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(sum == 6);

  count(rank, 1);
  begin(rank == kLate);  // two of three others need it
  MPI_Alltoallv(g_out, g_out_counts, g_places, MPI_INT, g_in, g_in_counts, g_places, MPI_INT,
                other);
  MPI_Comm_free(&other);
  end_scenes();
  MPI_Finalize();
  return 0;
}
