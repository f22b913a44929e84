#include "mpi/communicators.h"

#include <aon/mpi.h>
#include <aon/writer.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <new>

#include "mpi/completion.h"
#include "mpi/groups.h"
#include "mpi/handle_map.h"
#include "mpi/library.h"
#include "mpi/lock.h"
#include "mpi/memory.h"
#include "mpi/requests.h"
#include "mpi/state.h"

namespace aon::mpi {

constinit Communicator world{};
constinit Communicator self{};
std::atomic<bool> has_concurrent_threads;
std::atomic<Handle> fortran_communicators[kFortranCommunicators];

namespace {

constexpr uint32_t kWorldId = 1;
constexpr uint32_t kSelfId = 2;
constexpr uint32_t kArenaCount = 64;
constexpr uint32_t kRest = 1024;  ///< entries are freed before unused ones among them are sought
constexpr uint64_t kUnseenMark = 0x756e7365656e;  ///< in identities of what was not seen made

SpinLock g_lock;          // around every creation
SharedHandleMap g_table;  // handle -> Communicator*; read without the lock
uint32_t g_next_id AON_GUARDED_BY(g_lock) = kSelfId + 1;
Communicator* g_arena AON_GUARDED_BY(g_lock);
uint32_t g_arena_left AON_GUARDED_BY(g_lock);
constinit Communicator g_none{};  // id 0

/// Entries in the order in which they came.
struct Queue {
  Communicator* first;
  Communicator* last;
  uint32_t count;

  void push(Communicator* c) {
    c->next = nullptr;
    (first != nullptr ? last->next : first) = c;
    last = c;
    ++count;
  }
  Communicator* pop() {
    Communicator* c = first;
    first = c->next;
    --count;
    return c;
  }
};
/// Whose data this process gets from its neighbours.
struct Sources {
  int ranks[kMaxNeighbors];
  int count;

  void add(int rank) {
    if (rank != abi.proc_null) ranks[count++] = rank;
  }
};
Sources g_sources AON_GUARDED_BY(g_lock);  // too much for a thread's stack

Queue g_freed AON_GUARDED_BY(g_lock);   // a request may still have them
Queue g_unused AON_GUARDED_BY(g_lock);  // nobody has them
uint32_t g_seek_at AON_GUARDED_BY(g_lock) = kRest;
std::atomic<uint64_t> g_ambiguous_count;
std::atomic<bool> g_has_uncounted;

/// Requests outlive the communicator they were made on. One that is told of just now has left the
/// requests and may still be read, so the entries rest in a queue.
void seek_unused() AON_REQUIRES(g_lock) {
  mark_communicators_in_use();
  for (uint32_t left = g_freed.count; left != 0; --left) {
    Communicator* c = g_freed.pop();
    (c->is_in_use ? g_freed : g_unused).push(c);
    c->is_in_use = false;
  }
  g_seek_at = g_freed.count * 2 + kRest;
}

Communicator* new_communicator() AON_REQUIRES(g_lock) {
  if (g_unused.count > kRest / 2) return new (g_unused.pop()) Communicator{};
  if (g_arena_left == 0) {
    g_arena = static_cast<Communicator*>(map_bytes(sizeof(Communicator) * kArenaCount));
    if (g_arena == nullptr) return nullptr;
    g_arena_left = kArenaCount;
  }
  --g_arena_left;
  return g_arena++;
}

void define(const Communicator& c, uint32_t parent_id, const char* name) {
  CommunicatorDefinition definition = {};
  definition.identity = c.identity;
  definition.id = c.id;
  definition.parent_id = parent_id;
  definition.size = c.local_size + (c.kind == CommunicatorKind::kInter ? c.peer_count : 0);
  definition.rank = c.rank;
  definition.kind = c.kind;
  definition.reserved[kOfWorldsByte] = c.is_made_of_worlds ? 1 : 0;
  definition.reserved[kUnseenByte] = c.unseen_count;
  if (c.kind == CommunicatorKind::kInter && !c.is_made_of_worlds) {
    const uint32_t first_group_count = c.own_offset == 0 ? c.local_size : c.peer_count;
    memcpy(&definition.reserved[kFirstGroupByte], &first_group_count, sizeof first_group_count);
  }
  aon_define(static_cast<uint32_t>(DefinitionType::kCommunicator), &definition, sizeof definition,
             name, static_cast<uint32_t>(strlen(name)) + 1);
}

/// The Cartesian topology of `c`, where it has one; `asked` has the same.
void define_cartesian(const Communicator& c, Handle asked) {
  int kind = 0;
  int count = 0;
  if (c.kind != CommunicatorKind::kIntra || queries.topo_test == nullptr ||
      queries.cartdim_get == nullptr || queries.cart_get == nullptr)
    return;
  if (queries.topo_test(asked, &kind) != kSuccess || kind != abi.topology_cartesian) return;
  constexpr auto kMost = static_cast<int>(kMaxCartesianDimensions);
  if (queries.cartdim_get(asked, &count) != kSuccess || count <= 0 || count > kMost) return;
  int extents[kMost];
  int are_periodic[kMost];
  int coordinates[kMost];
  if (queries.cart_get(asked, count, extents, are_periodic, coordinates) != kSuccess) return;
  CartesianDefinition definition = {c.id, static_cast<uint32_t>(count), 0};
  for (int i = 0; i < count; ++i) definition.periodic |= (are_periodic[i] != 0 ? 1u : 0u) << i;
  aon_define(static_cast<uint32_t>(DefinitionType::kCartesian), &definition, sizeof definition,
             reinterpret_cast<const char*>(extents), definition.dimension_count * sizeof(uint32_t));
}

/// Of an intercommunicator of several worlds. Where each side has processes of ours, both are to
/// agree; else nobody of our world is on the other one.
bool is_own_side_first(Handle handle) {
  const SideMembers remote = hash_members(handle, Side::kRemote);
  return !remote.are_of_world || hash_members(handle, Side::kOwn).hash <= remote.hash;
}

/// Reads what MPI says of `handle` into a new entry. Null: no memory, or MPI refuses.
Communicator* describe(Handle handle) AON_REQUIRES(g_lock) {
  int is_inter = 0;
  int rank = 0;
  int local_size = 0;
  int remote_size = 0;
  if (queries.comm_rank(handle, &rank) != kSuccess) return nullptr;
  if (queries.comm_size(handle, &local_size) != kSuccess) return nullptr;
  if (queries.comm_test_inter != nullptr) queries.comm_test_inter(handle, &is_inter);
  if (is_inter) queries.comm_remote_size(handle, &remote_size);
  Communicator* c = new_communicator();
  if (c == nullptr) return nullptr;
  c->handle = handle;
  c->rank = static_cast<uint32_t>(rank);
  c->local_size = static_cast<uint32_t>(local_size);
  c->peer_count = static_cast<uint32_t>(is_inter ? remote_size : local_size);
  c->kind = is_inter ? CommunicatorKind::kInter : CommunicatorKind::kIntra;
  c->in_degree = c->out_degree = kUnknownDegree;
  c->first_world_rank = first_world_rank(handle, Side::kOwn);
  if (!is_inter) return c;
  const int32_t remote_first = first_world_rank(handle, Side::kRemote);
  c->is_made_of_worlds = remote_first < 0 || c->first_world_rank < 0;
  const bool own_is_first =
      c->is_made_of_worlds ? is_own_side_first(handle) : c->first_world_rank < remote_first;
  c->own_offset = own_is_first ? 0 : remote_size;
  c->peer_offset = own_is_first ? local_size : 0;
  c->rank += static_cast<uint32_t>(c->own_offset);
  if (!own_is_first) c->first_world_rank = remote_first;
  return c;
}

void forget_fortran_communicators() {
  for (auto& handle : fortran_communicators) handle.store(0, std::memory_order_relaxed);
}

/// Gives `c` its id, makes it known, and puts it into the table. MPI is asked about `asked`.
void publish(Communicator* c, uint32_t parent_id, Handle asked) AON_REQUIRES(g_lock) {
  c->id = g_next_id++;
  forget_fortran_communicators();
  define(*c, parent_id, "");
  define_cartesian(*c, asked);
  g_table.put(c->handle, c);
}

/// `c` is the `count`th with its identity that was not seen to be made, or whose parent was not. Of
/// one that there was no room to count (0) nobody knows that it is the only one.
void mark_unseen(Communicator* c, uint32_t count) {
  constexpr uint32_t kMost = 255;
  c->unseen_count = static_cast<uint8_t>(count == 0 ? 2 : std::min(count, kMost));
  if (c->unseen_count == 1) return;
  if (g_ambiguous_count.fetch_add(1, std::memory_order_relaxed) == 0) communicator_is_ambiguous();
}

/// How often a communicator was made on `parent`, the one that MPI has just made included.
uint32_t count_creation(Communicator* parent) {
  return parent->creation_count.fetch_add(1, std::memory_order_relaxed) + 1;
}

/// Whether some are of elsewhere is told as well.
uint64_t identity_of_members(Handle handle, bool is_inter, bool* is_made_of_worlds) {
  const SideMembers own = hash_members(handle, Side::kOwn);
  *is_made_of_worlds |= own.are_of_elsewhere;
  if (!is_inter) return own.hash;
  const SideMembers remote = hash_members(handle, Side::kRemote);
  *is_made_of_worlds |= remote.are_of_elsewhere;
  return own.hash < remote.hash ? mix(own.hash, remote.hash) : mix(remote.hash, own.hash);
}

/// The identity of the `creation`th that was made on `parent`, whose members MPI tells of `asked`.
/// In a world its parts are told apart by their first ranks, which of several worlds may all be of
/// elsewhere.
void identify(Communicator* c, const Communicator& parent, uint32_t creation, Handle asked) {
  c->is_made_of_worlds |= parent.is_made_of_worlds;
  const bool is_inter = c->kind == CommunicatorKind::kInter;
  const uint64_t part = AON_UNLIKELY(c->is_made_of_worlds)
                            ? identity_of_members(asked, is_inter, &c->is_made_of_worlds)
                            : static_cast<uint32_t>(c->first_world_rank);
  c->identity = mix(mix(parent.identity, creation), part);
  // Assembly asks the parents, too: a child needs no count of its own.
  if (AON_UNLIKELY(parent.unseen_count != 0)) mark_unseen(c, parent.unseen_count);
}

/// Defines `handle`, of which only its members are known.
Communicator* add_unseen(Handle handle) AON_REQUIRES(g_lock) {
  Communicator* c = describe(handle);
  if (c == nullptr) return nullptr;
  const bool is_inter = c->kind == CommunicatorKind::kInter;
  c->identity = mix(identity_of_members(handle, is_inter, &c->is_made_of_worlds), kUnseenMark);
  mark_unseen(c, count_members(c->identity));
  publish(c, 0, handle);
  return c;
}

void define_predefined(Communicator* c, uint32_t id, uint64_t identity, uint32_t rank,
                       uint32_t process_count, CommunicatorKind kind, const char* name) {
  c->id = id;
  c->identity = identity;
  c->rank = rank;
  c->local_size = c->peer_count = process_count;
  c->kind = kind;
  c->in_degree = c->out_degree = kUnknownDegree;
  define(*c, 0, name);
}

/// Several programs may run under one aon-run, each with a world of its own. One of a single
/// process is nobody else's.
uint64_t identity_of_world(uint32_t process_count) {
  const uint64_t launch = launch_identity();
  if (launch != 0 || process_count != 1) return mix(kWorldId, launch);
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const auto time_ns =
      static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
  return mix(mix(kWorldId, static_cast<uint64_t>(getpid())), time_ns);
}

/// Both neighbours of each dimension have their place, whether or not they are there. Beyond 32
/// dimensions they all count, and who they are is not asked. Returns whether all are known.
bool learn_grid(Communicator* c, int dimension_count, Sources* sources) {
  constexpr auto kMost = static_cast<int>(kMaxCartesianDimensions);
  uint64_t absent = 0;
  bool are_known = dimension_count <= kMost && queries.cart_shift != nullptr;
  for (int i = 0; i < dimension_count && i < kMost && queries.cart_shift != nullptr; ++i) {
    int before = 0;
    int behind = 0;
    if (queries.cart_shift(c->handle, i, 1, &before, &behind) != kSuccess) {
      are_known = false;
      continue;
    }
    if (before == abi.proc_null) absent |= uint64_t{1} << (2 * i);
    if (behind == abi.proc_null) absent |= uint64_t{2} << (2 * i);
    sources->add(before);
    sources->add(behind);
  }
  c->absent_neighbors = absent;
  return are_known;
}

/// The sources of a graph's node. False: unknown, or too many for a definition.
bool learn_graph(const Communicator& c, int degree, Sources* sources) {
  const bool is_small = degree <= static_cast<int>(kMaxNeighbors);
  if (!is_small || queries.graph_neighbors == nullptr) return false;
  sources->count = degree;
  return queries.graph_neighbors(c.handle, static_cast<int>(c.rank), degree, sources->ranks) ==
         kSuccess;
}

/// The same of a distributed graph. All of it is asked for: MPICH ends a program that has no room
/// for the destinations, and a null is no MPI_UNWEIGHTED.
bool learn_dist_graph(const Communicator& c, int in_degree, int out_degree, Sources* sources) {
  static int g_destinations[kMaxNeighbors];  // under the lock, as the next two
  static int g_in_weights[kMaxNeighbors];
  static int g_out_weights[kMaxNeighbors];
  const bool is_small = std::max(in_degree, out_degree) <= static_cast<int>(kMaxNeighbors);
  if (!is_small || queries.dist_graph_neighbors == nullptr) return false;
  sources->count = in_degree;
  return queries.dist_graph_neighbors(c.handle, in_degree, sources->ranks, g_in_weights, out_degree,
                                      g_destinations, g_out_weights) == kSuccess;
}

void define_sources(const Communicator& c, const Sources& sources) {
  const NeighborsDefinition definition = {c.id, static_cast<uint32_t>(sources.count)};
  aon_define(static_cast<uint32_t>(DefinitionType::kNeighbors), &definition, sizeof definition,
             reinterpret_cast<const char*>(sources.ranks), definition.source_count * sizeof(int));
}

}  // namespace

Communicator* find_communicator_slow(Handle handle) noexcept {
  if (void* found = g_table.find(handle)) return static_cast<Communicator*>(found);
  if (!mpi_is_usable()) return &g_none;
  if (handle == world.handle) return &world;
  void* found = g_table.find(handle);  // the first call of all may have defined it
  return found != nullptr ? static_cast<Communicator*>(found) : &g_none;
}

Communicator* learn_communicator(Handle given) noexcept {
  const Handle handle = canonical(given);
  Communicator* known = find_communicator(handle);
  if (known->id != 0 || handle == abi.comm_null || !mpi_is_usable()) return known;
  Guard guard(&g_lock);
  if (void* found = g_table.find(handle)) return static_cast<Communicator*>(found);
  Communicator* learned = add_unseen(handle);
  return learned != nullptr ? learned : &g_none;
}

void define_world(uint32_t rank, uint32_t process_count) {
  define_predefined(&world, kWorldId, identity_of_world(process_count), rank, process_count,
                    CommunicatorKind::kWorld, "MPI_COMM_WORLD");
  define_predefined(&self, kSelfId, mix(mix(kSelfId, world.identity), rank), 0, 1,
                    CommunicatorKind::kSelf, "MPI_COMM_SELF");
  self.first_world_rank = static_cast<int32_t>(rank);
  self.handle = abi.comm_self;
  g_table.put(self.handle, &self);
  world.handle = abi.comm_world;
}

void add_communicator(Communicator* parent, Handle handle) {
  const uint32_t creation = count_creation(parent);
  if (handle == abi.comm_null || !mpi_is_usable()) return;
  Guard guard(&g_lock);
  Communicator* c = describe(handle);
  if (c == nullptr) return;
  identify(c, *parent, creation, handle);
  publish(c, parent->id, handle);
}

void add_copy(Communicator* parent, Handle handle) {
  const uint32_t creation = count_creation(parent);
  if (handle == abi.comm_null || parent->id == 0 || !mpi_is_usable()) return;
  Guard guard(&g_lock);
  Communicator* c = new_communicator();
  if (c == nullptr) return;
  c->handle = handle;
  c->rank = parent->rank;
  c->local_size = parent->local_size;
  c->peer_count = parent->peer_count;
  c->peer_offset = parent->peer_offset;
  c->own_offset = parent->own_offset;
  c->first_world_rank = parent->first_world_rank;
  c->in_degree = c->out_degree = kUnknownDegree;
  const bool is_inter = parent->kind == CommunicatorKind::kInter;
  c->kind = is_inter ? CommunicatorKind::kInter : CommunicatorKind::kIntra;
  identify(c, *parent, creation, parent->handle);
  publish(c, parent->id, parent->handle);
}

uint64_t ambiguous_communicators() noexcept {
  return g_ambiguous_count.load(std::memory_order_relaxed);
}

bool has_uncounted_communicators() noexcept {
  return g_has_uncounted.load(std::memory_order_relaxed);
}

const Communicator* add_communicator_of_members(Communicator* parent, Handle handle, uint64_t tag,
                                                bool is_made_of_worlds) {
  if (handle == abi.comm_null || !mpi_is_usable()) return nullptr;
  learn_shared_requests(handle);
  learn_exchange_status(handle);
  Guard guard(&g_lock);
  Communicator* c = describe(handle);
  if (c == nullptr) return nullptr;
  c->is_made_of_worlds |= is_made_of_worlds;
  const bool is_inter = c->kind == CommunicatorKind::kInter;
  const uint64_t members = mix(identity_of_members(handle, is_inter, &c->is_made_of_worlds), tag);
  const uint32_t count = count_members(members);
  c->identity = mix(members, count);
  if (count == 0) {
    g_has_uncounted.store(true, std::memory_order_relaxed);
    mark_unseen(c, 0);
  }
  publish(c, parent->id, handle);
  return c;
}

void name_communicator(const Communicator& communicator, const char* name) {
  if (communicator.id == 0 || name == nullptr) return;
  const IdDefinition definition = {communicator.id};
  aon_define(static_cast<uint32_t>(DefinitionType::kCommunicatorName), &definition,
             sizeof definition, name, static_cast<uint32_t>(strlen(name)) + 1);
}

Communicator* take_communicator(Handle handle) {
  Guard guard(&g_lock);
  forget_fortran_communicators();
  return static_cast<Communicator*>(g_table.take(canonical(handle)));
}

void end_communicator(Communicator* taken, int result) {
  if (taken == nullptr) return;
  Guard guard(&g_lock);
  if (result != kSuccess) {
    g_table.put(taken->handle, taken);
    return;
  }
  const IdDefinition definition = {taken->id};
  aon_define(static_cast<uint32_t>(DefinitionType::kCommunicatorFree), &definition,
             sizeof definition, nullptr, 0);
  g_freed.push(taken);
  if (g_freed.count >= g_seek_at) seek_unused();
}

void learn_degrees(Communicator* c) {
  int in = 0;
  int out = 0;
  int is_weighted = 0;
  int status = 0;
  bool has_sources = false;
  Guard guard(&g_lock);
  g_sources.count = 0;
  if (queries.topo_test != nullptr && queries.topo_test(c->handle, &status) == kSuccess) {
    if (status == abi.topology_cartesian && queries.cartdim_get != nullptr) {
      queries.cartdim_get(c->handle, &in);
      has_sources = learn_grid(c, in, &g_sources);
      in = out = 2 * in;
    } else if (status == abi.topology_graph && queries.graph_neighbors_count != nullptr) {
      queries.graph_neighbors_count(c->handle, static_cast<int>(c->rank), &in);
      has_sources = learn_graph(*c, in, &g_sources);
      out = in;
    } else if (status == abi.topology_dist_graph && queries.dist_graph_neighbors_count != nullptr) {
      queries.dist_graph_neighbors_count(c->handle, &in, &out, &is_weighted);
      has_sources = learn_dist_graph(*c, in, out, &g_sources);
    }
  }
  if (has_sources && c->id != 0) define_sources(*c, g_sources);
  c->in_degree = static_cast<uint32_t>(in);
  c->out_degree = static_cast<uint32_t>(out);
}

}  // namespace aon::mpi
