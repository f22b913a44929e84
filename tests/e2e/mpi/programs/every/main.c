// `every FOLDER [abort]`, on two ranks; `every child CALLER`, spawned by it. Says nothing but "ok".
#include "tests/e2e/mpi/programs/every/every.h"

int me;
int other;

static void before_init(void) {
  int flag = 1;
  OK(MPI_Initialized(&flag));
  CHECK(!flag);
  OK(MPI_Finalized(&flag));
  CHECK(!flag);
}

static void know_oneself(void) {
  int version = 0, subversion = 0, length = 0, level = -1, flag = 0, size = 0;
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  OK(MPI_Comm_rank(W, &me));
  OK(MPI_Comm_size(W, &size));
  CHECK(size == 2);
  other = 1 - me;
  OK(MPI_Initialized(&flag));
  CHECK(flag);
  OK(MPI_Get_version(&version, &subversion));
  CHECK(version == MPI_VERSION && subversion == MPI_SUBVERSION);
  OK(MPI_Get_library_version(text, &length));
  CHECK(length >= (int)strlen(text) && length > 0);
  OK(MPI_Get_processor_name(text, &length));
  CHECK(length >= (int)strlen(text) && length > 0);
  OK(MPI_Query_thread(&level));
  CHECK(level >= MPI_THREAD_SINGLE && level <= MPI_THREAD_MULTIPLE);
  flag = 0;
  OK(MPI_Is_thread_main(&flag));
  CHECK(flag);
  const double start_s = MPI_Wtime();
  CHECK(MPI_Wtick() > 0 && MPI_Wtime() >= start_s);
  OK(MPI_Pcontrol(1));
}

/// What rank 0 spawned; `caller` is how many parents it has.
static int be_child(int argc, char** argv) {
  MPI_Comm parents;
  int provided, value = 0;
  OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_SINGLE, &provided));
  OK(MPI_Comm_get_parent(&parents));
  CHECK(parents != MPI_COMM_NULL);
  OK(MPI_Bcast(&value, 1, MPI_INT, 0, parents));
  CHECK(value == 17);
  OK(MPI_Comm_disconnect(&parents));
  OK(MPI_Finalize());
  return 0;
}

static int abort_early(int argc, char** argv) {
  int provided = -1;
  OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided));
  CHECK(provided >= MPI_THREAD_SINGLE);
  OK(MPI_Comm_rank(W, &me));
  OK(MPI_Barrier(W));
  if (me == 1) MPI_Abort(W, 7);
  OK(MPI_Barrier(MPI_COMM_SELF));
  for (;;) OK(MPI_Probe(1, 0, W, MPI_STATUS_IGNORE));
}

int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "child") == 0) return be_child(argc, argv);
  if (argc > 2 && strcmp(argv[2], "abort") == 0) return abort_early(argc, argv);
  before_init();
  OK(MPI_Init(&argc, &argv));
  know_oneself();
  point_to_point();
  completion();
  collectives();
  neighbours();
  communicators();
  topologies();
  groups();
  datatypes();
  packing();
  attributes();
  error_handlers();
  operations();
  infos();
  one_sided();
  files(argv[1]);
  removed();
  tools();
  handles();
  sessions();
  processes(argv[0]);
  OK(MPI_Finalize());
  int flag = 0;
  OK(MPI_Finalized(&flag));
  CHECK(flag);
  puts("ok");
  return 0;
}
