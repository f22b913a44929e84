/// Steps that make communicators of every kind, from others, and free them; what is pending on
/// them may end later. And the collectives of neighbourhoods.
#include "tests/e2e/mpi/programs/random/random.h"

static void tell_handle(const Comm* c, const char* what) {
  tell("collective %d %s_HANDLE -1 0 0", c->id, what);
}

/// A communicator in the place of `made`, with members of `world`, of which one may be this.
static void set_group(Comm* made, int side, const int* world, int size) {
  made->size[side] = size;
  for (int i = 0; i < size; ++i) {
    made->world[side][i] = world[i];
    if (world[i] != me) continue;
    made->side = side;
    made->rank = i;
  }
}

/// Used, so that all have the same places in use, but by nobody.
static void set_nobody(Comm* made, int side) {
  const int nobody = -1;
  set_group(made, side, &nobody, 1);
}

static void like(Comm* made, const Comm* parent) {
  for (int side = 0; side < 2; ++side)
    set_group(made, side, parent->world[side], parent->size[side]);
  made->kind = parent->kind;
}

static void take_neighbors_over(Comm* made, const Comm* parent) {
  made->in_count = parent->in_count, made->out_count = parent->out_count;
  made->in_places = parent->in_places, made->out_places = parent->out_places;
  memcpy(made->in, parent->in, sizeof made->in);
  memcpy(made->out, parent->out, sizeof made->out);
}

static void duplicate(State* s, const Comm* parent, Comm* made) {
  const int way = below(&s->plan, 3);
  like(made, parent);
  take_neighbors_over(made, parent);
  if (!is_member(parent)) return;
  if (way == 0) DO(Comm_dup, parent->handle, &made->handle);
  if (way == 1) DO(Comm_dup_with_info, parent->handle, MPI_INFO_NULL, &made->handle);
  if (way == 2) {
    MPI_Request request;
    DO(Comm_idup, parent->handle, &made->handle, &request);
    DO(Wait, &request, MPI_STATUS_IGNORE);
  }
  tell_handle(parent, "CREATE");
}

/// Some stay outside; the order may be another one. Of each colour the plan knows the members: the
/// part of `made` that this process is in, or the first.
static void split(State* s, const Comm* parent, Comm* made) {
  const int color_count = 1 + below(&s->plan, 3);
  const bool is_reversed = chance(&s->plan, 30);
  int colors[kMaxProcesses], own = 0;
  for (int i = 0; i < parent->size[0]; ++i) {
    colors[i] = below(&s->plan, color_count + 1) - 1;
    if (i == parent->rank && is_member(parent)) own = colors[i];
  }
  int members[kMaxProcesses] = {-1}, count = 0;
  const int shown = own < 0 ? 0 : own;
  for (int k = 0; k < parent->size[0]; ++k) {
    const int i = is_reversed ? parent->size[0] - 1 - k : k;
    if (colors[i] == shown) members[count++] = parent->world[0][i];
  }
  set_group(made, 0, members, count != 0 ? count : 1);
  made->id += shown;
  if (!is_member(parent)) return;
  const int key = is_reversed ? -parent->rank : parent->rank;
  DO(Comm_split, parent->handle, own < 0 ? MPI_UNDEFINED : own, key, &made->handle);
  tell_handle(parent, "CREATE");
  if (own < 0) made->side = -1;
}

static void split_by_node(State* s, const Comm* parent, Comm* made) {
  (void)s;
  like(made, parent);
  made->kind = kIntra;
  if (!is_member(parent)) return;
  DO(Comm_split_type, parent->handle, MPI_COMM_TYPE_SHARED, parent->rank, MPI_INFO_NULL,
     &made->handle);
  tell_handle(parent, "CREATE");
}

static void create_of_group(State* s, const Comm* parent, Comm* made) {
  const bool is_by_group = chance(&s->plan, 50);
  int ranks[kMaxProcesses], members[kMaxProcesses], count = 0;
  for (int i = 0; i < parent->size[0]; ++i) {
    if (!chance(&s->plan, 60)) continue;
    ranks[count] = i;
    members[count++] = parent->world[0][i];
  }
  if (count == 0) ranks[count] = 0, members[count++] = parent->world[0][0];
  set_group(made, 0, members, count);
  if (!is_member(parent) || (is_by_group && !is_member(made))) return;
  MPI_Group all, some;
  DO(Comm_group, parent->handle, &all);
  DO(Group_incl, all, count, ranks, &some);
  if (is_by_group) {
    DO(Comm_create_group, parent->handle, some, below(&s->plan, 3), &made->handle);
  } else {
    DO(Comm_create, parent->handle, some, &made->handle);
  }
  tell_handle(is_by_group ? made : parent, "CREATE");
  DO(Group_free, &all);
  DO(Group_free, &some);
}

/// Between two parts of one communicator, which are freed at once.
static void join_parts(State* s, const Comm* parent, Comm* made) {
  const int n = parent->size[0], border = n > 1 ? 1 + below(&s->plan, n - 1) : 0;
  const int tag = below(&s->plan, 4);
  made->kind = kInter;
  if (n < 2) {
    set_nobody(made, 0);
    set_nobody(made, 1);
    return;
  }
  set_group(made, 0, parent->world[0], border);
  set_group(made, 1, parent->world[0] + border, n - border);
  if (!is_member(parent)) return;
  Comm part = {.id = made->id + 1 + made->side, .side = 0};
  DO(Comm_split, parent->handle, made->side, 0, &part.handle);
  tell_handle(parent, "CREATE");
  DO(Intercomm_create, part.handle, 0, parent->handle, made->side == 0 ? border : 0, tag,
     &made->handle);
  tell_handle(&part, "CREATE");
  DO(Comm_free, &part.handle);
  tell_handle(&part, "DESTROY");
}

static void merge(State* s, const Comm* parent, Comm* made) {
  const int high_side = below(&s->plan, 2);
  int members[2 * kMaxProcesses], count = 0;
  for (int k = 0; k < 2; ++k) {
    const int side = k == 0 ? 1 - high_side : high_side;
    for (int i = 0; i < parent->size[side]; ++i) members[count++] = parent->world[side][i];
  }
  set_group(made, 0, members, count);
  if (!is_member(parent)) return;
  DO(Intercomm_merge, parent->handle, parent->side == high_side, &made->handle);
  tell_handle(parent, "CREATE");
}

static int there(const int* ranks, int places) {
  int count = 0;
  for (int i = 0; i < places; ++i) count += ranks[i] != MPI_PROC_NULL;
  return count;
}

static void make_grid(State* s, const Comm* parent, Comm* made) {
  const int n = parent->size[0], rows = n >= 4 && chance(&s->plan, 60) ? 2 : 1;
  const int dims[] = {rows, n / rows};
  const int rings[] = {chance(&s->plan, 50), chance(&s->plan, 50)};
  made->kind = kCart;
  set_group(made, 0, parent->world[0], dims[0] * dims[1]);
  if (!is_member(parent)) return;
  DO(Cart_create, parent->handle, 2, dims, rings, 0, &made->handle);
  tell_handle(parent, "CREATE");
  if (!is_member(made)) return;
  for (int d = 0; d < 2; ++d)
    DO(Cart_shift, made->handle, d, 1, &made->in[2 * d], &made->in[2 * d + 1]);
  memcpy(made->out, made->in, sizeof made->in);
  made->in_places = made->out_places = 4;
  made->in_count = made->out_count = there(made->in, 4);
}

static void make_graph(const Comm* parent, Comm* made, bool edges[kMaxProcesses][kMaxProcesses]) {
  const int n = parent->size[0];
  int index[kMaxProcesses], targets[kMaxProcesses * kMaxProcesses], count = 0;
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      if (edges[i][j] || edges[j][i]) targets[count++] = j;
    }
    index[i] = count;
  }
  DO(Graph_create, parent->handle, n, index, targets, 0, &made->handle);
  PMPI_Graph_neighbors_count(made->handle, made->rank, &made->in_places);
  PMPI_Graph_neighbors(made->handle, made->rank, kMaxNeighbors, made->in);
  made->out_places = made->in_places;
  memcpy(made->out, made->in, sizeof made->in);
}

static void make_any_graph(State* s, const Comm* parent, Comm* made) {
  const int n = parent->size[0], way = below(&s->plan, 3), r = parent->rank;
  bool edges[kMaxProcesses][kMaxProcesses];
  for (int i = 0; i < n * n; ++i) edges[i / n][i % n] = chance(&s->plan, 40);
  made->kind = kGraph;
  like(made, parent);
  made->kind = kGraph;
  if (!is_member(parent)) return;
  int from[kMaxProcesses], to[kMaxProcesses], from_count = 0, to_count = 0;
  for (int i = 0; i < n; ++i) {
    if (edges[i][r]) from[from_count++] = i;
    if (edges[r][i]) to[to_count++] = i;
  }
  if (way == 0) make_graph(parent, made, edges);
  if (way == 1)
    DO(Dist_graph_create_adjacent, parent->handle, from_count, from, MPI_UNWEIGHTED, to_count, to,
       MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made->handle);
  if (way == 2)
    DO(Dist_graph_create, parent->handle, 1, &r, &to_count, to, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
       &made->handle);
  tell_handle(parent, "CREATE");
  if (way != 0) {
    int is_weighted, in_weights[kMaxNeighbors], out_weights[kMaxNeighbors];
    PMPI_Dist_graph_neighbors_count(made->handle, &made->in_places, &made->out_places,
                                    &is_weighted);
    PMPI_Dist_graph_neighbors(made->handle, made->in_places, made->in, in_weights, made->out_places,
                              made->out, out_weights);
  }
  made->in_count = made->in_places;
  made->out_count = made->out_places;
}

static void free_comm(State* s, Comm* c, bool is_early) {
  c->is_used = false;
  if (!is_member(c)) return;
  if (!is_early) drain(s, 0);
  if (chance(&s->own, 30)) DO(Comm_set_name, c->handle, "of the past");
  DO(Comm_free, &c->handle);
  tell_handle(c, "DESTROY");
}

/// Of several that one step makes from parts of a communicator, each has its own, and room behind.
static int id_of(const Comm* parent, int number) {
  Random random = {(uint64_t)parent->id << 32 | (uint32_t)number};
  return (int)(next_random(&random) % (1 << 27)) * 8;
}

static bool is_inter(const Comm* c) { return c->kind == kInter; }

typedef struct {
  void (*make)(State*, const Comm*, Comm*);
  bool (*is_of)(const Comm*);
} Maker;

static const Maker makers[] = {
    {duplicate, NULL},
    {split, is_within_one_group},
    {split_by_node, is_within_one_group},
    {create_of_group, is_within_one_group},
    {join_parts, is_within_one_group},
    {make_grid, is_within_one_group},
    {make_any_graph, is_within_one_group},
    {merge, is_inter},
};

void step_make_comm(State* s) {
  const Maker* maker = &makers[below(&s->plan, sizeof makers / sizeof *makers)];
  Comm* place = &s->comms[1 + below(&s->plan, kMaxComms - 1)];
  const bool is_early = chance(&s->plan, 30);
  if (place->is_used) free_comm(s, place, is_early);
  const Comm* parent = random_comm(s, maker->is_of);
  s->last_id += 8;
  if (parent == NULL) return;
  *place = (Comm){.handle = MPI_COMM_NULL, .is_used = true, .side = -1};
  place->id = id_of(parent, s->last_id);
  maker->make(s, parent, place);
  if (place->is_used && is_member(place)) DO(Comm_set_errhandler, place->handle, MPI_ERRORS_RETURN);
}

void step_free_comm(State* s) {
  Comm* c = &s->comms[1 + below(&s->plan, kMaxComms - 1)];
  const bool is_early = chance(&s->plan, 30);
  if (c->is_used) free_comm(s, c, is_early);
}

/// Counts to or from each neighbour: those of sender and receiver agree.
static void fill_counts(const Comm* c, int count, int* from, int* to) {
  for (int i = 0; i < c->in_places; ++i) from[i] = c->kind == kCart ? count : count + c->in[i] % 3;
  for (int i = 0; i < c->out_places; ++i) to[i] = c->kind == kCart ? count : count + c->rank % 3;
}

static int64_t bytes_of(const int* counts, const int* ranks, int places) {
  int64_t total = 0;
  for (int i = 0; i < places; ++i) total += ranks[i] == MPI_PROC_NULL ? 0 : counts[i] * 4;
  return total;
}

#define EITHER(name, begun, ...)                     \
  do {                                               \
    if (is_begun) {                                  \
      DO(begun, __VA_ARGS__, new_request(s, false)); \
    } else {                                         \
      DO(name, __VA_ARGS__);                         \
    }                                                \
  } while (0)

void step_neighbors(State* s) {
  Comm* c = random_comm(s, has_neighbors);
  const int way = below(&s->plan, 5), count = below(&s->plan, 50);
  const bool is_begun = chance(&s->plan, 40);
  if (c == NULL || !is_member(c)) return;
  enum { kN = kMaxNeighbors };
  int *from = buffer(s, kN * sizeof(int)), *to = buffer(s, kN * sizeof(int));
  int *in_places = buffer(s, kN * sizeof(int)), *out_places = buffer(s, kN * sizeof(int));
  MPI_Aint *in_bytes = buffer(s, kN * sizeof(MPI_Aint)),
           *out_bytes = buffer(s, kN * sizeof(MPI_Aint));
  MPI_Datatype* types = buffer(s, kN * sizeof(MPI_Datatype));
  int *out = buffer(s, 60 * 4 * kN), *in = buffer(s, 60 * 4 * kN);
  fill_counts(c, count, from, to);
  for (int i = 0; i < kN; ++i) {
    in_places[i] = out_places[i] = 60 * i;
    in_bytes[i] = out_bytes[i] = 240 * i;
    types[i] = MPI_INT;
  }
  int64_t sent = (int64_t)c->out_count * count * 4, received = (int64_t)c->in_count * count * 4;
  if (way >= 2) received = bytes_of(from, c->in, c->in_places);
  if (way >= 3) sent = bytes_of(to, c->out, c->out_places);
  const int own = c->kind == kCart ? count : count + c->rank % 3;
  if (way == 2) sent = (int64_t)c->out_count * own * 4;
  MPI_Comm h = c->handle;
  if (way == 0)
    EITHER(Neighbor_allgather, Ineighbor_allgather, out, count, MPI_INT, in, count, MPI_INT, h);
  if (way == 1)
    EITHER(Neighbor_alltoall, Ineighbor_alltoall, out, count, MPI_INT, in, count, MPI_INT, h);
  if (way == 2)
    EITHER(Neighbor_allgatherv, Ineighbor_allgatherv, out, own, MPI_INT, in, from, in_places,
           MPI_INT, h);
  if (way == 3)
    EITHER(Neighbor_alltoallv, Ineighbor_alltoallv, out, to, out_places, MPI_INT, in, from,
           in_places, MPI_INT, h);
  if (way == 4)
    EITHER(Neighbor_alltoallw, Ineighbor_alltoallw, out, to, out_bytes, types, in, from, in_bytes,
           types, h);
  // OTF2 has no word of its own for them.
  tell("collective %d ALLTOALL -1 %lld %lld", c->id, (long long)sent, (long long)received);
}
