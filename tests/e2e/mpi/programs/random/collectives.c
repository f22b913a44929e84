/// Steps of one collective, blocking or not, within a group or between two. Bytes as Score-P counts
/// them: plugins/mpi/collectives.h.
#include "tests/e2e/mpi/programs/random/random.h"

#if MPI_VERSION < 4  // Open MPI 4 calls them MPIX_Bcast_init and so on
#include <mpi-ext.h>
#define DRAFT_MPI(name) MPIX_##name
#else
#define DRAFT_MPI(name) MPI_##name
#endif

/// What the plan says of one collective, from this process's side.
typedef struct {
  const Comm* c;
  MPI_Comm comm;
  int side, other_side;  ///< this process's group, and that of its peers
  int n, own_n, r;       ///< peers, size of the own group, own rank
  bool is_inter, is_begun, is_persistent;
  bool is_in_place;  ///< everywhere; of rooted ones: at the root
  int root_side, root_rank, root;
  bool is_root, is_leaf;  ///< neither: beside the root of the other group
  MPI_Datatype type;
  int64_t b;  ///< bytes of one
  int count;
  int each[2][kMaxProcesses];                 ///< counts of processes
  int pair[2][kMaxProcesses][kMaxProcesses];  ///< from one of group [0] to the other group
  int* counts;                                ///< arrays that live while it runs
  int* more_counts;
  int* places;
  int* more_places;
  char *out, *in;
  MPI_Request* request;
  char told[128];  ///< what each start of a persistent one tells
} Plan;

enum { kBufferBytes = 600000, kMostCount = 40, kExtent = 24 };

#define EITHER(name, begun, ...)                                                       \
  do {                                                                                 \
    if (p->is_persistent) {                                                            \
      const int made = DRAFT_MPI(name##_init)(__VA_ARGS__, MPI_INFO_NULL, p->request); \
      tell("call MPI_%s_init", #name);                                                 \
      check_result(made, #name "_init", __FILE__, __LINE__);                           \
    } else if (p->is_begun) {                                                          \
      DO(begun, __VA_ARGS__, p->request);                                              \
    } else {                                                                           \
      DO(name, __VA_ARGS__);                                                           \
    }                                                                                  \
  } while (0)

static void tell_bytes(Plan* p, const char* operation, int64_t sent, int64_t received) {
  const bool is_rooted = p->root_rank >= 0;
  snprintf(p->told, sizeof p->told, "collective %d %s %d %lld %lld", p->c->id, operation,
           is_rooted && !p->is_inter ? p->root_rank : -1, (long long)sent, (long long)received);
  if (!p->is_persistent) tell("%s", p->told);
}

static int64_t sum(const int* counts, int n) {
  int64_t total = 0;
  for (int i = 0; i < n; ++i) total += counts[i];
  return total;
}

static void fill_places(int* places, const int* counts, int n, int unit) {
  for (int i = 0, at = 0; i < n; at += counts[i++]) places[i] = at * unit;
}

static void barrier(Plan* p) {
  EITHER(Barrier, Ibarrier, p->comm);
  p->root_rank = -1;
  tell_bytes(p, "BARRIER", 0, 0);
}

static void broadcast(Plan* p) {
  EITHER(Bcast, Ibcast, p->out, p->count, p->type, p->root, p->comm);
  const int64_t bytes = p->count * p->b;
  tell_bytes(p, "BCAST", p->is_root ? p->n * bytes : 0,
             p->is_leaf || (p->is_root && !p->is_inter) ? bytes : 0);
}

static bool gives(const Plan* p) {
  return p->is_inter ? p->is_leaf : !(p->is_root && p->is_in_place);
}
static int peers_but_self(const Plan* p) { return p->n - (p->is_in_place ? 1 : 0); }

static void gather(Plan* p) {
  const void* out = p->is_root && p->is_in_place ? MPI_IN_PLACE : p->out;
  EITHER(Gather, Igather, out, p->count, p->type, p->in, p->count, p->type, p->root, p->comm);
  const int64_t bytes = p->count * p->b;
  tell_bytes(p, "GATHER", gives(p) ? bytes : 0, p->is_root ? peers_but_self(p) * bytes : 0);
}

static void scatter(Plan* p) {
  void* in = p->is_root && p->is_in_place ? MPI_IN_PLACE : p->in;
  EITHER(Scatter, Iscatter, p->out, p->count, p->type, in, p->count, p->type, p->root, p->comm);
  const int64_t bytes = p->count * p->b;
  tell_bytes(p, "SCATTER", p->is_root ? peers_but_self(p) * bytes : 0, gives(p) ? bytes : 0);
}

/// Bytes of the peers' parts, without the own one where it stays in place.
static int64_t parts_of_peers(const Plan* p) {
  return p->b * (sum(p->counts, p->n) - (p->is_in_place ? p->counts[p->r] : 0));
}

static void prepare_each(Plan* p) {
  memcpy(p->counts, p->each[p->other_side], sizeof p->each[0]);
  fill_places(p->places, p->counts, p->n, 1);
}

static void gatherv(Plan* p) {
  const void* out = p->is_root && p->is_in_place ? MPI_IN_PLACE : p->out;
  const int own = p->each[p->side][p->r];
  prepare_each(p);
  EITHER(Gatherv, Igatherv, out, own, p->type, p->in, p->counts, p->places, p->type, p->root,
         p->comm);
  tell_bytes(p, "GATHERV", gives(p) ? own * p->b : 0, p->is_root ? parts_of_peers(p) : 0);
}

static void scatterv(Plan* p) {
  void* in = p->is_root && p->is_in_place ? MPI_IN_PLACE : p->in;
  const int own = p->each[p->side][p->r];
  prepare_each(p);
  EITHER(Scatterv, Iscatterv, p->out, p->counts, p->places, p->type, in, own, p->type, p->root,
         p->comm);
  tell_bytes(p, "SCATTERV", p->is_root ? parts_of_peers(p) : 0, gives(p) ? own * p->b : 0);
}

static void allgather(Plan* p) {
  const void* out = p->is_in_place ? MPI_IN_PLACE : p->out;
  EITHER(Allgather, Iallgather, out, p->count, p->type, p->in, p->count, p->type, p->comm);
  const int64_t bytes = peers_but_self(p) * p->count * p->b;
  tell_bytes(p, "ALLGATHER", bytes, bytes);
}

static void allgatherv(Plan* p) {
  const void* out = p->is_in_place ? MPI_IN_PLACE : p->out;
  const int own = p->each[p->side][p->r];
  prepare_each(p);
  EITHER(Allgatherv, Iallgatherv, out, own, p->type, p->in, p->counts, p->places, p->type, p->comm);
  tell_bytes(p, "ALLGATHERV", peers_but_self(p) * own * p->b, parts_of_peers(p));
}

static void alltoall(Plan* p) {
  const void* out = p->is_in_place ? MPI_IN_PLACE : p->out;
  EITHER(Alltoall, Ialltoall, out, p->count, p->type, p->in, p->count, p->type, p->comm);
  const int64_t bytes = peers_but_self(p) * p->count * p->b;
  tell_bytes(p, "ALLTOALL", bytes, bytes);
}

/// Counts to and from each peer; in place both are the same.
static void prepare_pairs(Plan* p, int unit) {
  for (int i = 0; i < p->n; ++i) {
    p->more_counts[i] = p->pair[p->side][p->r][i];
    p->counts[i] = p->pair[p->other_side][i][p->r];
    if (p->is_in_place)
      p->counts[i] = p->more_counts[i] = p->pair[0][i < p->r ? i : p->r][i < p->r ? p->r : i];
  }
  fill_places(p->places, p->counts, p->n, unit);
  fill_places(p->more_places, p->more_counts, p->n, unit);
}

static void alltoallv(Plan* p) {
  const void* out = p->is_in_place ? MPI_IN_PLACE : p->out;
  prepare_pairs(p, 1);
  EITHER(Alltoallv, Ialltoallv, out, p->more_counts, p->more_places, p->type, p->in, p->counts,
         p->places, p->type, p->comm);
  const int64_t received = parts_of_peers(p);
  tell_bytes(p, "ALLTOALLV", p->is_in_place ? received : p->b * sum(p->more_counts, p->n),
             received);
}

static void alltoallw(Plan* p) {
  static _Thread_local MPI_Datatype types[64][kMaxProcesses];
  static _Thread_local int turn;
  const void* out = p->is_in_place ? MPI_IN_PLACE : p->out;
  MPI_Datatype* of_peers = types[turn++ % 64];
  for (int i = 0; i < kMaxProcesses; ++i) of_peers[i] = p->type;
  prepare_pairs(p, kExtent);
  EITHER(Alltoallw, Ialltoallw, out, p->more_counts, p->more_places, of_peers, p->in, p->counts,
         p->places, of_peers, p->comm);
  const int64_t received = parts_of_peers(p);
  tell_bytes(p, "ALLTOALLW", p->is_in_place ? received : p->b * sum(p->more_counts, p->n),
             received);
}

static void reduce(Plan* p) {
  const bool is_here = p->is_root && p->is_in_place;
  EITHER(Reduce, Ireduce, is_here ? MPI_IN_PLACE : p->out, p->in, p->count, MPI_INT, MPI_SUM,
         p->root, p->comm);
  const int64_t bytes = p->count * 4;
  tell_bytes(p, "REDUCE", gives(p) ? bytes : 0, p->is_root ? peers_but_self(p) * bytes : 0);
}

static void allreduce(Plan* p) {
  EITHER(Allreduce, Iallreduce, p->is_in_place ? MPI_IN_PLACE : p->out, p->in, p->count, MPI_INT,
         MPI_MAX, p->comm);
  const int64_t bytes = peers_but_self(p) * p->count * 4;
  tell_bytes(p, "ALLREDUCE", bytes, bytes);
}

/// Both groups have the same sum.
static int scattered_count(const Plan* p, int i) {
  return p->is_inter ? p->count * p->n : p->each[0][i];
}

static void reduce_scatter(Plan* p) {
  for (int i = 0; i < p->own_n; ++i) p->counts[i] = scattered_count(p, i);
  EITHER(Reduce_scatter, Ireduce_scatter, p->is_in_place ? MPI_IN_PLACE : p->out, p->in, p->counts,
         MPI_INT, MPI_SUM, p->comm);
  const int own = p->counts[p->r];
  tell_bytes(p, "REDUCE_SCATTER", 4 * (sum(p->counts, p->own_n) - (p->is_in_place ? own : 0)),
             peers_but_self(p) * own * 4);
}

static void reduce_scatter_block(Plan* p) {
  const int count = p->is_inter ? p->count * p->n : p->count;
  EITHER(Reduce_scatter_block, Ireduce_scatter_block, p->is_in_place ? MPI_IN_PLACE : p->out, p->in,
         count, MPI_INT, MPI_SUM, p->comm);
  const int64_t bytes = count * 4;
  tell_bytes(p, "REDUCE_SCATTER_BLOCK", (p->own_n - (p->is_in_place ? 1 : 0)) * bytes,
             peers_but_self(p) * bytes);
}

static void scan(Plan* p) {
  EITHER(Scan, Iscan, p->is_in_place ? MPI_IN_PLACE : p->out, p->in, p->count, MPI_INT, MPI_SUM,
         p->comm);
  const int self = p->is_in_place ? 0 : 1;
  const int64_t bytes = p->count * 4;
  tell_bytes(p, "SCAN", (p->n - p->r - 1 + self) * bytes, (p->r + self) * bytes);
}

static void exscan(Plan* p) {
  EITHER(Exscan, Iexscan, p->is_in_place ? MPI_IN_PLACE : p->out, p->in, p->count, MPI_INT, MPI_SUM,
         p->comm);
  const int64_t bytes = p->count * 4;
  tell_bytes(p, "EXSCAN", (p->n - p->r - 1) * bytes, p->r * bytes);
}

typedef struct {
  void (*run)(Plan*);
  bool is_rooted, is_of_groups;
} Operation;

static const Operation operations[] = {
    {barrier, false, true},   {broadcast, true, true},       {gather, true, true},
    {scatter, true, true},    {gatherv, true, true},         {scatterv, true, true},
    {allgather, false, true}, {allgatherv, false, true},     {alltoall, false, true},
    {alltoallv, false, true}, {alltoallw, false, true},      {reduce, true, true},
    {allreduce, false, true}, {reduce_scatter, false, true}, {reduce_scatter_block, false, true},
    {scan, false, false},     {exscan, false, false},
};

static void draw_counts(State* s, Plan* p) {
  p->count = below(&s->plan, kMostCount) * (chance(&s->plan, 10) ? 20 : 1);
  for (int i = 0; i < 2 * kMaxProcesses; ++i)
    p->each[i / kMaxProcesses][i % kMaxProcesses] = below(&s->plan, kMostCount);
  for (int g = 0; g < 2; ++g) {
    for (int i = 0; i < kMaxProcesses * kMaxProcesses; ++i)
      p->pair[g][i / kMaxProcesses][i % kMaxProcesses] = below(&s->plan, kMostCount);
  }
}

static void take_part(State* s, Plan* p, const Operation* operation) {
  const Comm* c = p->c;
  p->comm = c->handle;
  p->side = c->side;
  p->r = c->rank;
  p->is_inter = c->kind == kInter;
  p->other_side = p->is_inter ? 1 - p->side : 0;
  p->n = c->size[p->other_side];
  p->own_n = c->size[p->side];
  p->is_in_place = p->is_in_place && !p->is_inter;
  p->is_root = operation->is_rooted && p->side == p->root_side && p->r == p->root_rank;
  p->is_leaf = operation->is_rooted && (p->is_inter ? p->side != p->root_side : !p->is_root);
  p->root = p->root_rank;
  if (p->is_inter && !p->is_leaf) p->root = p->is_root ? MPI_ROOT : MPI_PROC_NULL;
  if (!operation->is_rooted) p->root_rank = -1;
  p->counts = buffer(s, 4 * kMaxProcesses * sizeof(int));
  p->more_counts = p->counts + kMaxProcesses;
  p->places = p->counts + 2 * kMaxProcesses;
  p->more_places = p->counts + 3 * kMaxProcesses;
  p->out = buffer(s, kBufferBytes);
  p->in = buffer(s, kBufferBytes);
  if (p->is_begun && !p->is_persistent) p->request = new_request(s, false);
}

/// Each process starts them in an order of its own.
static void start_persistent(State* s, const Plan* plans, int count) {
  const int first = below(&s->own, count);
  for (int i = 0; i < count; ++i) {
    const Plan* p = &plans[(first + i) % count];
    if (chance(&s->own, 50)) {
      DO(Start, p->request);
    } else {
      DO(Startall, 1, p->request);
    }
    tell("%s", p->told);
  }
}

static void draw_plan(State* s, Plan* p) {
  const Comm* c = p->c;
  p->is_in_place = chance(&s->plan, 30);
  p->root_side = c->kind == kInter ? below(&s->plan, 2) : 0;
  p->root_rank = below(&s->plan, c->size[p->root_side]);
  draw_counts(s, p);
}

static void make_type(Plan* p) {
  MPI_Datatype vector;
  DO(Type_vector, 2, 1, 3, MPI_INT, &vector);
  DO(Type_create_resized, vector, 0, kExtent, &p->type);
  DO(Type_free, &vector);
  DO(Type_commit, &p->type);
  p->b = 8;
}

static const Operation* draw_operation(State* s) {
  return &operations[below(&s->plan, sizeof operations / sizeof *operations)];
}

void step_collective(State* s) {
  const Operation* operation = draw_operation(s);
  Comm* c = random_comm(s, operation->is_of_groups ? NULL : is_within_one_group);
  Plan plan = {.c = c};
  Plan* p = &plan;
  p->is_begun = chance(&s->plan, 40);
  const bool is_derived = chance(&s->plan, 30);
  draw_plan(s, p);
  if (!is_member(c)) return;
  take_part(s, p, operation);
  p->type = MPI_INT;
  p->b = 4;
  if (is_derived) make_type(p);
  operation->run(p);
  if (is_derived) DO(Type_free, &p->type);
}

void step_persistent_collectives(State* s) {
  enum { kMost = 2 };
  Comm* c = random_comm(s, is_within_one_group);
  const int count = 1 + below(&s->plan, kMost);
  int rounds = below(&s->plan, 4);
  Plan plans[kMost];
  const Operation* drawn[kMost];
  for (int i = 0; i < count; ++i) {
    plans[i] = (Plan){.c = c, .is_begun = true, .is_persistent = true, .type = MPI_INT, .b = 4};
    drawn[i] = draw_operation(s);
    draw_plan(s, &plans[i]);
    // MPICH 4.0 refuses the second start: "Invalid communicator".
    if (drawn[i]->run == scatter && rounds > 1) rounds = 1;
  }
  if (!is_member(c)) return;
  MPI_Request requests[kMost];
  for (int i = 0; i < count; ++i) {
    take_part(s, &plans[i], drawn[i]);
    plans[i].request = &requests[i];
    drawn[i]->run(&plans[i]);
  }
  for (int round = 0; round < rounds; ++round) {
    start_persistent(s, plans, count);
    complete_active(s, requests, count);
  }
  free_all(requests, count);
}
