/// Communicators, windows and files are made, used by all and freed, with somebody late each time.
/// late_objects SCENE_MS FOLDER
#include "tests/e2e/mpi/programs/scenes.h"

static MPI_Info g_hints;

/// By two ranks alone: it has a number on no other's list.
static void meet_in_a_part(int rank) {
  MPI_Group all;
  MPI_Group few;
  MPI_Comm part;
  if (rank > 1) return;
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_incl(all, 2, (int[]){0, 1}, &few);
  MPI_Comm_create_group(MPI_COMM_WORLD, few, 5, &part);
  MPI_Comm_free(&part);
  MPI_Group_free(&few);
  MPI_Group_free(&all);
}

static void meet_at_window(int rank, MPI_Comm comm) {
  int memory = 0;
  MPI_Win window;
  begin(rank == 0);
  MPI_Win_create(&memory, sizeof memory, sizeof memory, MPI_INFO_NULL, comm, &window);
  MPI_Win_fence(0, window);
  begin(rank == 3);
  MPI_Win_fence(0, window);
  begin(rank == 1);
  MPI_Win_set_info(window, g_hints);
  begin(rank == 0);
  MPI_Win_free(&window);
}

static void change(int rank, MPI_File file) {
  begin(rank == 0);
  MPI_File_set_info(file, g_hints);
  begin(rank == 1);
  MPI_File_set_atomicity(file, 1);
  MPI_File_set_atomicity(file, 0);
  begin(rank == 2);
  MPI_File_set_size(file, 4096);
  begin(rank == 3);
  MPI_File_preallocate(file, 8192);
}

/// What all write is interleaved, so the library has reason to do it together.
static void meet_at_file(int rank, MPI_Comm comm, const char* folder) {
  enum { kBlocks = 64 };
  int values[kBlocks];
  char path[4096];
  MPI_File file;
  MPI_Datatype every_fourth;
  MPI_Status status;
  for (int i = 0; i < kBlocks; ++i) values[i] = rank;
  snprintf(path, sizeof path, "%s/together", folder);
  begin(rank == 1);
  CHECK(MPI_File_open(comm, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file) ==
        MPI_SUCCESS);
  MPI_Type_vector(kBlocks, 1, 4, MPI_INT, &every_fourth);
  MPI_Type_commit(&every_fourth);
  begin(rank == 3);
  MPI_File_set_view(file, rank * (MPI_Offset)sizeof(int), MPI_INT, every_fourth, "native",
                    MPI_INFO_NULL);
  change(rank, file);
  begin(rank == 2);
  MPI_File_write_at_all(file, 0, values, kBlocks, MPI_INT, &status);
  begin(0);
  MPI_File_close(&file);
  MPI_Type_free(&every_fourth);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  CHECK(argc == 3);
  const int rank = world_rank();
  MPI_Comm copy;
  MPI_Comm other;
  MPI_Request request;
  MPI_Info_create(&g_hints);
  start_scenes(atol(argv[1]));
  meet_in_a_part(rank);
  begin(rank == 2);
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  begin(rank == 1);
  MPI_Comm_idup(copy, &other, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  begin(rank == 3);
  MPI_Comm_set_info(copy, g_hints);
  meet_at_window(rank, copy);
  meet_at_file(rank, other, argv[2]);
  MPI_Comm_free(&other);
  MPI_Comm_free(&copy);
  MPI_Info_free(&g_hints);
  end_scenes();
  MPI_Finalize();
  return 0;
}
