/// Cartesian communicators: each rank writes into FOLDER/WORLD_RANK what MPI says of it, a line per
/// communicator:
///     NAME WORLD_RANK RANK: COORDINATE ... of EXTENT ... periodic 0|1 ...
#include "tests/e2e/mpi/programs/check.h"

enum { kMost = 4 };

static FILE* out;

static void say(MPI_Comm comm, const char* name) {
  int count;
  int rank;
  int extents[kMost];
  int are_periodic[kMost];
  int coordinates[kMost];
  MPI_Comm_set_name(comm, name);
  MPI_Comm_rank(comm, &rank);
  MPI_Cartdim_get(comm, &count);
  MPI_Cart_get(comm, count, extents, are_periodic, coordinates);
  fprintf(out, "%s %d %d:", name, world_rank(), rank);
  const int* const parts[] = {coordinates, extents, are_periodic};
  const char* const names[] = {"", " of", " periodic"};
  for (int part = 0; part < 3; ++part) {
    fputs(names[part], out);
    for (int i = 0; i < count; ++i) fprintf(out, " %d", parts[part][i]);
  }
  fputs("\n", out);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  CHECK(world_count() == 6 && argc == 2);
  char path[4096];
  snprintf(path, sizeof path, "%s/%d", argv[1], world_rank());
  out = fopen(path, "w");
  CHECK(out != NULL);
  MPI_Comm reversed;
  MPI_Comm grid;
  MPI_Comm line;
  MPI_Comm box;
  MPI_Comm copy;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank(), &reversed);
  MPI_Cart_create(reversed, 2, (int[]){3, 2}, (int[]){1, 0}, 0, &grid);
  say(grid, "grid");
  MPI_Cart_sub(grid, (int[]){1, 0}, &line);
  say(line, world_rank() % 2 == 0 ? "even line" : "odd line");
  MPI_Comm_dup(grid, &copy);
  say(copy, "copy");
  MPI_Cart_create(MPI_COMM_WORLD, 3, (int[]){1, 2, 2}, (int[]){0, 1, 1}, 1, &box);
  if (box != MPI_COMM_NULL) {  // two of the six are in none
    say(box, "box");
    MPI_Comm_free(&box);
  }
  MPI_Comm_free(&copy);
  MPI_Comm_free(&line);
  MPI_Comm_free(&grid);
  MPI_Comm_free(&reversed);
  CHECK(fclose(out) == 0);
  MPI_Finalize();
  return 0;
}
