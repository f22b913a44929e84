/// A random but correct MPI program (random.h).
///
///     random FOLDER SEED STEPS [threads N] [pause] [burst N] [STEP]... [-STEP]...
///
/// With burst half of the steps come before N exchanges, and half behind them.
/// Prints "ok" per process, and writes FOLDER/told-RANK.
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/e2e/mpi/programs/random/random.h"

int me, process_count;
bool is_pausing, is_recorded = true;

static const uint64_t kToldBytes = 64 << 20;
static char* told;
static uint64_t told_size;
static uint64_t seed;
static int step_count, thread_count = 1, burst_count;
static const char* folder;

const char* work_folder(void) { return folder; }

uint64_t next_random(Random* random) {
  uint64_t z = random->state += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

int below(Random* random, int limit) { return (int)(next_random(random) % (uint64_t)limit); }

bool chance(Random* random, int percent) { return below(random, 100) < percent; }

void tell(const char* format, ...) {
  if (!is_recorded || told == NULL) return;
  char line[256];
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf(line, sizeof line - 1, format, arguments);
  va_end(arguments);
  line[length] = '\n';
  const uint64_t at = __atomic_fetch_add(&told_size, (uint64_t)length + 1, __ATOMIC_RELAXED);
  CHECK(at + sizeof line < kToldBytes);
  memcpy(told + at, line, (size_t)length + 1);
}

static void open_told(void) {
  char name[4096];
  snprintf(name, sizeof name, "%s/told-%d", folder, me);
  const int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
  CHECK(fd >= 0 && ftruncate(fd, (off_t)kToldBytes) == 0);
  told = mmap(NULL, kToldBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(told != MAP_FAILED);
  close(fd);
}

void check_result(int result, const char* name, const char* file, int line) {
  if (result == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length;
  PMPI_Error_string(result, text, &length);
  fprintf(stderr, "%s:%d: MPI_%s: %s\n", file, line, name, text);
  _Exit(98);
}

/// In all threads at the same step, with nothing begun: what follows is (not) recorded.
static void step_pause(State* s) {
  if (!is_pausing || thread_count > 1) return;
  quiesce(s);
  if (is_recorded) {
    DO(Pcontrol, 0);
    is_recorded = false;
  } else {
    is_recorded = true;
    DO(Pcontrol, 1);
  }
}

typedef struct {
  const char* name;
  void (*run)(State*);
  int weight;
} Step;

static const Step steps[] = {
    {"messages", step_messages, 24},
    {"ordered", step_ordered_messages, 12},
    {"odd", step_odd_requests, 8},
    {"collective", step_collective, 30},
    {"neighbors", step_neighbors, 8},
    {"make", step_make_comm, 14},
    {"free", step_free_comm, 8},
    {"window", step_window, 10},
    {"file", step_file, 5},
    {"refused", step_refused, 6},
    {"persistent", step_persistent_collectives, 10},
    {"partitioned", step_partitioned, 10},
    {"pause", step_pause, 3},
};
enum { kStepKinds = sizeof steps / sizeof *steps, kPause = kStepKinds - 1 };
/// Without "persistent" and "partitioned", which are to be named: beside other steps they make
/// MPICH 4.0 hang in some programs, with and without us.
static uint32_t allowed = ~(3u << (kPause - 2));

static void run_step(State* s) {
  s->plan.state = seed * 0x10001 + (uint64_t)s->thread * 0x1000003 + (uint64_t)s->step * 0x9e3779b1;
  next_random(&s->plan);
  s->own.state = next_random(&s->plan) + (uint64_t)me * 0x2545f4914f6cdd1d;
  next_random(&s->own);
  const bool is_drained = chance(&s->plan, 70);
  const bool is_quiet = chance(&s->plan, 20) || s->step % 7 == 6;
  int total = 0;
  for (int i = 0; i < kStepKinds; ++i) total += allowed >> i & 1 ? steps[i].weight : 0;
  int at = below(&s->plan, total);
  for (int i = 0; i < kStepKinds; ++i) {
    if (!(allowed >> i & 1)) continue;
    at -= steps[i].weight;
    if (at >= 0) continue;
    steps[i].run(s);
    break;
  }
  drain(s, is_drained ? 0 : s->pending_count / 2);
  if (is_quiet) quiesce(s);
}

/// With all sizes and tags, so that it does not compress well; to itself, for ranks that wait for
/// each other 100 000 times take minutes where others have the cores.
static void burst(State* s) {
  static char out[4096], in[4096];
  const Comm* c = &s->comms[0];
  for (int i = 0; i < burst_count; ++i) {
    const int bytes = below(&s->own, sizeof out), tag = below(&s->own, 1 << 14);
    tell("send %d %d %d %d %d", c->id, me, me, tag, bytes);
    DO(Sendrecv, out, bytes, MPI_BYTE, me, tag, in, sizeof in, MPI_BYTE, me, MPI_ANY_TAG, c->handle,
       MPI_STATUS_IGNORE);
  }
}

static void start_comms(State* s) {
  Comm* c = &s->comms[0];
  DO(Comm_dup, MPI_COMM_WORLD, &c->handle);
  tell("collective -1 CREATE_HANDLE -1 0 0");
  DO(Comm_set_errhandler, c->handle, MPI_ERRORS_RETURN);
  *c = (Comm){.handle = c->handle, .is_used = true, .id = s->thread * 100000, .rank = me};
  s->last_id = c->id;
  c->size[0] = process_count;
  for (int i = 0; i < process_count; ++i) c->world[0][i] = i;
}

static void* run_thread(void* argument) {
  State* s = argument;
  for (s->step = 0; s->step < step_count; ++s->step) {
    if (s->step == step_count / 2 && burst_count > 0) {
      quiesce(s);
      burst(s);
    }
    run_step(s);
  }
  quiesce(s);
  return NULL;
}

static void parse(int argc, char** argv) {
  CHECK(argc >= 4);
  folder = argv[1];
  seed = strtoull(argv[2], NULL, 10);
  step_count = atoi(argv[3]);
  uint32_t only = 0;
  for (int i = 4; i < argc; ++i) {
    if (strcmp(argv[i], "threads") == 0) {
      thread_count = atoi(argv[++i]);
    } else if (strcmp(argv[i], "burst") == 0) {
      burst_count = atoi(argv[++i]);
    } else if (strcmp(argv[i], "pause") == 0) {
      is_pausing = true;
    } else {
      const bool is_without = argv[i][0] == '-';
      for (int k = 0; k < kStepKinds; ++k) {
        if (strcmp(argv[i] + is_without, steps[k].name) != 0) continue;
        if (is_without) allowed &= ~(1u << k);
        if (!is_without) only |= 1u << k;
      }
    }
  }
  if (only != 0) allowed = only;
  if (!is_pausing) allowed &= ~(1u << kPause);
}

int main(int argc, char** argv) {
  parse(argc, argv);
  int provided;
  if (thread_count > 1) {
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    CHECK(provided == MPI_THREAD_MULTIPLE);
  } else {
    MPI_Init(&argc, &argv);
  }
  PMPI_Comm_rank(MPI_COMM_WORLD, &me);
  PMPI_Comm_size(MPI_COMM_WORLD, &process_count);
  CHECK(process_count <= kMaxProcesses);
  open_told();
  tell("call MPI_%s", thread_count > 1 ? "Init_thread" : "Init");
  State* states = calloc((size_t)thread_count, sizeof *states);
  pthread_t threads[8];
  const size_t attached_bytes = 64 << 20;
  DO(Buffer_attach, malloc(attached_bytes), (int)attached_bytes);
  for (int i = 0; i < thread_count; ++i) states[i].thread = i;
  for (int i = 0; i < thread_count; ++i) start_comms(&states[i]);
  for (int i = 1; i < thread_count; ++i)
    CHECK(pthread_create(&threads[i], NULL, run_thread, &states[i]) == 0);
  run_thread(&states[0]);
  for (int i = 1; i < thread_count; ++i) pthread_join(threads[i], NULL);
  if (!is_recorded) {
    is_recorded = true;
    DO(Pcontrol, 1);
  }
  void* attached;
  int detached_bytes;
  DO(Buffer_detach, &attached, &detached_bytes);
  DO(Barrier, MPI_COMM_WORLD);
  tell("collective -1 BARRIER -1 0 0");
  tell("call MPI_Finalize");
  printf("ok\n");
  fflush(stdout);
  MPI_Finalize();
  return 0;
}
