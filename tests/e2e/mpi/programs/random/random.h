/// A random but correct MPI program. Every process computes the same plan from the seed: step
/// `number` of thread `thread` has a generator of its own (`plan`), from which all members of its
/// communicator draw the same numbers; `own` is drawn from by this process alone. What the program
/// does it tells, a line each, into a file that outlives a SIGKILL: the calls, the messages it
/// sends, the bytes of its collectives, one-sided calls and files.
///
/// Thread: a State belongs to one thread; tell() may be called by any.
#pragma once

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "tests/e2e/mpi/programs/check.h"

enum {
  kMaxProcesses = 8,
  kMaxComms = 10,
  kMaxPending = 400,
  kMaxNeighbors = 16,
  kMaxBuffers = 4096,
  kTagCount = 5,
};

typedef struct {
  uint64_t state;
} Random;

uint64_t next_random(Random* random);
/// 0 to `limit` - 1.
int below(Random* random, int limit);
/// True in `percent` of 100 cases.
bool chance(Random* random, int percent);

typedef enum { kIntra, kInter, kCart, kGraph } Kind;

/// A communicator of the plan; processes that are no members know its members, too.
typedef struct {
  MPI_Comm handle;  ///< MPI_COMM_NULL where this process is no member
  bool is_used;
  Kind kind;
  int id;                       ///< the same in all members, of no other
  int size[2];                  ///< of both groups; [1] is 0 within one group
  int world[2][kMaxProcesses];  ///< ranks of the world
  int side, rank;               ///< of this process: its group, -1 for none, and rank there
  int in_count, out_count;      ///< neighbours that are there ...
  int in_places, out_places;    ///< ... and places for them in the arrays of a call
  int in[kMaxNeighbors], out[kMaxNeighbors];  ///< ranks, or MPI_PROC_NULL
} Comm;

typedef struct {
  int thread, step;
  uint64_t seed;
  Random plan, own;
  Comm comms[kMaxComms];
  int last_id;
  MPI_Request requests[kMaxPending];  ///< null and inactive ones among them
  bool is_active[kMaxPending];
  bool is_persistent[kMaxPending];
  int pending_count;
  void* buffers[kMaxBuffers];  ///< until nothing is pending
  int buffer_count;
} State;

/// Where files may lie.
const char* work_folder(void);

extern int me, process_count;  ///< of the world
extern bool is_pausing;        ///< steps may be unrecorded

/// Whether what is done now is recorded.
extern bool is_recorded;

__attribute__((format(printf, 1, 2))) void tell(const char* format, ...);

/// Calls MPI_`name`, tells it, and fails with it.
#define DO(name, ...)                                        \
  do {                                                       \
    const int result_of_call = MPI_##name(__VA_ARGS__);      \
    tell("call MPI_%s", #name);                              \
    check_result(result_of_call, #name, __FILE__, __LINE__); \
  } while (0)
/// The same of a call that must fail.
#define REFUSED(name, ...)                              \
  do {                                                  \
    const int result_of_call = MPI_##name(__VA_ARGS__); \
    tell("call MPI_%s", #name);                         \
    CHECK(result_of_call != MPI_SUCCESS);               \
  } while (0)
void check_result(int result, const char* name, const char* file, int line);

/// Zeroed memory that lives while anything is pending.
void* buffer(State* s, size_t bytes);
/// A place for a request.
MPI_Request* new_request(State* s, bool is_persistent);
/// Of a persistent request: started.
void activate(State* s, int index);
int index_of(const State* s, const MPI_Request* request);
/// Waits, in random ways, until at most `most` requests are active.
void drain(State* s, int most);
/// Waits for active requests that are not among those: MPICH 4.0 refuses to be asked for inactive
/// ones of persistent collectives, and in parts.
void complete_active(State* s, MPI_Request* requests, int count);
void free_all(MPI_Request* requests, int count);
/// Drains all, frees what is inactive and the buffers.
void quiesce(State* s);

/// A datatype of random shape; `*bytes` is its size, `*extent` the memory it takes.
MPI_Datatype random_type(Random* random, int* bytes, int* extent, bool* is_own);
/// A count for it: 0 to about 100 KB, mostly small.
int random_count(Random* random, int type_bytes);

/// A communicator of the plan that is used; of those with `is_wanted`, all if null.
Comm* random_comm(State* s, bool (*is_wanted)(const Comm*));
bool is_within_one_group(const Comm* c);
bool has_neighbors(const Comm* c);
static inline bool is_member(const Comm* c) { return c->side >= 0; }

void step_messages(State* s);
void step_ordered_messages(State* s);
void step_odd_requests(State* s);
void step_collective(State* s);
void step_persistent_collectives(State* s);
void step_partitioned(State* s);
void step_neighbors(State* s);
void step_make_comm(State* s);
void step_free_comm(State* s);
void step_window(State* s);
void step_file(State* s);
void step_refused(State* s);
