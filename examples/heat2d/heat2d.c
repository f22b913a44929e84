/* heat2d: the heat equation on a square plate, solved by many MPI ranks. Small, but a real program:
 * the shape of its communication is that of most stencil codes.
 *
 * The plate is cut into px x py tiles (MPI_Dims_create), each rank owns one tile with a halo of one
 * cell. Each step exchanges the four halos (Irecv, Isend, Waitall; rows are contiguous, columns an
 * MPI_Type_vector), then computes a 5-point Jacobi step. Every `--check` steps an Allreduce adds up
 * the residual and all ranks decide together whether to stop.
 *
 *     | rank 0 | rank 1 |        top edge held at 100 degrees, the other three at 0
 *     |--------|--------|        halo exchange with up, down, left, right;
 *     | rank 2 | rank 3 |        a rank at the plate's edge has MPI_PROC_NULL there
 *
 * Build:  cmake --preset release && cmake --build --preset release --target heat2d
 * Run:    mpirun -n 4 aon-run build/release/bin/heat2d --slow-rank 2 --slow-factor 3
 *
 *   --size N          cells per side of the plate (default 512)
 *   --steps N         at most so many steps (default 200)
 *   --check N         residual every N steps (default 10)
 *   --tolerance X     stop when the residual is below X (default 1e-6)
 *   --slow-rank R     this rank computes each step --slow-factor times: in the timeline all others
 *   --slow-factor F   wait for it in MPI_Waitall and MPI_Allreduce (default: none, 1)
 *   --slow-from N     from step N on, the first one being 0, and
 *   --slow-until N    up to step N (default: in all steps)
 *
 * Annotated with aon/annotate.h: each step, and in it halo, compute and residual; the residual is a
 * counter. Without aon-run that does nothing.
 *
 * Output: one line on rank 0 with steps, residual and mean temperature. It holds no times, so two
 * runs print the same line whether a profiler watches or not.
 */
#include <aon/annotate.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kUp, kDown, kLeft, kRight, kNeighbours };

typedef struct Options {
  int size_cells;
  int step_count;
  int check_steps;
  double tolerance;
  int slow_rank;
  int slow_factor;
  int slow_from;
  int slow_until;
} Options;

/* One rank's tile: rows x columns cells and a halo around them, row after row. */
typedef struct Tile {
  MPI_Comm comm;
  int rank;
  int neighbour[kNeighbours];
  int row_count;
  int column_count;
  int stride_cells;         /* column_count + 2 */
  MPI_Datatype column_type; /* row_count cells, stride_cells apart */
  double* now;
  double* next;
} Tile;

static double* cell(const Tile* tile, double* field, int row, int column) {
  return field + (size_t)row * (size_t)tile->stride_cells + (size_t)column;
}

/* Cells of part `index` when `total` cells are cut into `parts` parts as evenly as possible. */
static int part_cells(int total, int parts, int index) {
  return total / parts + (index < total % parts ? 1 : 0);
}

static void stop(const char* what, const char* which) {
  fprintf(stderr, "heat2d: %s: %s\n", what, which);
  MPI_Abort(MPI_COMM_WORLD, 2);
}

static double number(const char* name, const char* text, double smallest) {
  char* end = NULL;
  errno = 0;
  const double value = text == NULL ? NAN : strtod(text, &end);
  if (text == NULL || *end != '\0' || errno != 0 || !(value >= smallest)) {
    stop("missing or wrong value", name);
  }
  return value;
}

static Options parse(int argc, char** argv) {
  Options options = {512, 200, 10, 1e-6, -1, 1, 0, INT_MAX};
  for (int i = 1; i < argc; i += 2) {
    const char* name = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : NULL;
    if (strcmp(name, "--size") == 0) {
      options.size_cells = (int)number(name, value, 1);
    } else if (strcmp(name, "--steps") == 0) {
      options.step_count = (int)number(name, value, 1);
    } else if (strcmp(name, "--check") == 0) {
      options.check_steps = (int)number(name, value, 1);
    } else if (strcmp(name, "--tolerance") == 0) {
      options.tolerance = number(name, value, 0);
    } else if (strcmp(name, "--slow-rank") == 0) {
      options.slow_rank = (int)number(name, value, 0);
    } else if (strcmp(name, "--slow-factor") == 0) {
      options.slow_factor = (int)number(name, value, 1);
    } else if (strcmp(name, "--slow-from") == 0) {
      options.slow_from = (int)number(name, value, 0);
    } else if (strcmp(name, "--slow-until") == 0) {
      options.slow_until = (int)number(name, value, 0);
    } else {
      stop("unknown option", name);
    }
  }
  return options;
}

/* Lays the ranks out as a grid and makes this rank's tile, cold but for the plate's hot edge. */
static Tile make_tile(const Options* options) {
  Tile tile;
  memset(&tile, 0, sizeof tile);
  int rank_count = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &rank_count);
  int dims[2] = {0, 0};
  MPI_Dims_create(rank_count, 2, dims);
  const int periods[2] = {0, 0};
  MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &tile.comm);
  MPI_Comm_set_name(tile.comm, "plate");
  MPI_Comm_rank(tile.comm, &tile.rank);
  int position[2] = {0, 0};
  MPI_Cart_coords(tile.comm, tile.rank, 2, position);
  MPI_Cart_shift(tile.comm, 0, 1, &tile.neighbour[kUp], &tile.neighbour[kDown]);
  MPI_Cart_shift(tile.comm, 1, 1, &tile.neighbour[kLeft], &tile.neighbour[kRight]);

  tile.row_count = part_cells(options->size_cells, dims[0], position[0]);
  tile.column_count = part_cells(options->size_cells, dims[1], position[1]);
  if (tile.row_count == 0 || tile.column_count == 0) {
    stop("plate too small", "--size needs at least one cell a rank");
  }
  tile.stride_cells = tile.column_count + 2;
  MPI_Type_vector(tile.row_count, 1, tile.stride_cells, MPI_DOUBLE, &tile.column_type);
  MPI_Type_commit(&tile.column_type);

  const size_t cell_count = (size_t)(tile.row_count + 2) * (size_t)tile.stride_cells;
  tile.now = calloc(cell_count, sizeof(double));
  tile.next = calloc(cell_count, sizeof(double));
  if (tile.now == NULL || tile.next == NULL) stop("out of memory", "tile");
  if (tile.neighbour[kUp] == MPI_PROC_NULL) {
    for (int column = 0; column < tile.stride_cells; ++column) {
      *cell(&tile, tile.now, 0, column) = 100.0;
      *cell(&tile, tile.next, 0, column) = 100.0;
    }
  }
  return tile;
}

static void free_tile(Tile* tile) {
  MPI_Type_free(&tile->column_type);
  MPI_Comm_free(&tile->comm);
  free(tile->now);
  free(tile->next);
}

/* Fills the halo with the neighbours' edges. The tag names the side that the message arrives on. */
static void exchange_halos(Tile* tile) {
  AON_REGION_BEGIN("halo");
  const int rows = tile->row_count;
  const int columns = tile->column_count;
  MPI_Request requests[2 * kNeighbours];
  int i = 0;
  double* now = tile->now;
  MPI_Irecv(cell(tile, now, 0, 1), columns, MPI_DOUBLE, tile->neighbour[kUp], kUp, tile->comm,
            &requests[i++]);
  MPI_Irecv(cell(tile, now, rows + 1, 1), columns, MPI_DOUBLE, tile->neighbour[kDown], kDown,
            tile->comm, &requests[i++]);
  MPI_Irecv(cell(tile, now, 1, 0), 1, tile->column_type, tile->neighbour[kLeft], kLeft, tile->comm,
            &requests[i++]);
  MPI_Irecv(cell(tile, now, 1, columns + 1), 1, tile->column_type, tile->neighbour[kRight], kRight,
            tile->comm, &requests[i++]);
  MPI_Isend(cell(tile, now, 1, 1), columns, MPI_DOUBLE, tile->neighbour[kUp], kDown, tile->comm,
            &requests[i++]);
  MPI_Isend(cell(tile, now, rows, 1), columns, MPI_DOUBLE, tile->neighbour[kDown], kUp, tile->comm,
            &requests[i++]);
  MPI_Isend(cell(tile, now, 1, 1), 1, tile->column_type, tile->neighbour[kLeft], kRight, tile->comm,
            &requests[i++]);
  MPI_Isend(cell(tile, now, 1, columns), 1, tile->column_type, tile->neighbour[kRight], kLeft,
            tile->comm, &requests[i++]);
  MPI_Waitall(i, requests, MPI_STATUSES_IGNORE);
  AON_REGION_END("halo");
}

/* One Jacobi step from `now` into `next`; returns the sum of squared changes of this tile. */
static double compute_step(Tile* tile) {
  double change = 0.0;
  for (int row = 1; row <= tile->row_count; ++row) {
    const double* up = cell(tile, tile->now, row - 1, 0);
    const double* here = cell(tile, tile->now, row, 0);
    const double* down = cell(tile, tile->now, row + 1, 0);
    double* out = cell(tile, tile->next, row, 0);
    for (int column = 1; column <= tile->column_count; ++column) {
      out[column] = 0.25 * (up[column] + down[column] + here[column - 1] + here[column + 1]);
      change += (out[column] - here[column]) * (out[column] - here[column]);
    }
  }
  return change;
}

/* The residual of the whole plate, from each tile's sum of squared changes. */
static double add_up(const Tile* tile, double change, int size_cells) {
  AON_REGION_BEGIN("residual");
  MPI_Allreduce(MPI_IN_PLACE, &change, 1, MPI_DOUBLE, MPI_SUM, tile->comm);
  const double residual = sqrt(change) / size_cells;
  aon_counter_set(aon_counter("residual", "K"), residual);
  AON_REGION_END("residual");
  return residual;
}

static double mean_temperature(const Tile* tile, int size_cells) {
  double sum = 0.0;
  for (int row = 1; row <= tile->row_count; ++row) {
    for (int column = 1; column <= tile->column_count; ++column) {
      sum += *cell(tile, tile->now, row, column);
    }
  }
  double total = 0.0;
  MPI_Reduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, 0, tile->comm);
  return total / ((double)size_cells * size_cells);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const Options options = parse(argc, argv);
  Tile tile = make_tile(&options);

  int step = 0;
  double residual = INFINITY;
  while (step < options.step_count && residual > options.tolerance) {
    aon_step_begin(step);
    exchange_halos(&tile);
    AON_REGION_BEGIN("compute");
    const int is_slow =
        tile.rank == options.slow_rank && step >= options.slow_from && step <= options.slow_until;
    const int repeat_count = is_slow ? options.slow_factor : 1;
    double change = 0.0;
    for (int i = 0; i < repeat_count; ++i) change = compute_step(&tile);
    AON_REGION_END("compute");
    double* swap = tile.now;
    tile.now = tile.next;
    tile.next = swap;
    if (++step % options.check_steps == 0) {
      residual = add_up(&tile, change, options.size_cells);
    }
    aon_step_end();
  }

  const double mean = mean_temperature(&tile, options.size_cells);
  if (tile.rank == 0) {
    printf("heat2d: %d steps, residual %.6e, mean temperature %.6f\n", step, residual, mean);
  }
  free_tile(&tile);
  MPI_Finalize();
  return 0;
}
