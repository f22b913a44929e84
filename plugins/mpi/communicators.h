/// The communicators of this process: what every record needs (id, own rank, size) behind one
/// look-up by handle, and their identity, which all members compute alike without communicating:
///
///     identity = hash(identity of the parent, creations on the parent so far,
///                     world rank of the new rank 0)
///
/// Communicators that only a part of the parent makes (create_group, intercomm_create) cannot count
/// on the parent: their hash has the world ranks of all members and the tag, and counts creations
/// with the same ones.
///
/// A communicator that was made where we do not look (by PMPI names, or by the library itself) is
/// learned at its first use that MPI takes. Its identity is that of its members. Which of several
/// such ones with the same members it is nobody can say, for members may meet them in different
/// orders: `unseen_count` tells the reader how many there are, who then joins none of them. What is
/// made from one of them has a count as well, since its identity is made of the parent's.
///
/// An inter-communicator is described as the union of its two groups, the group whose rank 0 has
/// the lower world rank first: `rank` and all peers are indices in that union, so a message has
/// the same two ends on both sides.
///
/// Owner: a freed handle leaves the table; its entry is used again when no request has it any more
/// and many others have been freed.
/// Thread: look-ups take no lock; changes take one.   Signal: no.
/// Cost: MPI_COMM_WORLD about 1 ns, others about 3 ns; a creation some us.
#pragma once

#include <aon/definition.h>
#include <aon/record.h>
#include <aon/writer.h>

#include <atomic>

#include "mpi/handles.h"

namespace aon::mpi {

struct Communicator {
  Handle handle;
  uint64_t identity;
  uint32_t id;    ///< in records; 0 is no communicator
  uint32_t rank;  ///< of this process (in the union)
  uint32_t local_size;
  uint32_t peer_count;  ///< processes a rooted or all-to-all call talks to: local, or remote group
  int32_t peer_offset;  ///< of the peers' ranks in the union; 0 within one group
  int32_t own_offset;   ///< of the own group's ranks in the union
  int32_t first_world_rank;  ///< world rank of rank 0 of the union, -1 when it is of another world
  uint32_t in_degree;        ///< of a topology; kUnknownDegree before it was asked for
  uint32_t out_degree;
  uint64_t absent_neighbors;  ///< bit i: place i of the degree is MPI_PROC_NULL, at a grid's edge
  CommunicatorKind kind;
  bool is_made_of_worlds;  ///< spawned, connected: its processes have no common world
  uint8_t unseen_count;    ///< 0: its identity is sure; else how many had it so far, at most 255
  std::atomic<uint32_t> creation_count;     ///< on this one as parent
  std::atomic<uint32_t> window_count;       ///< windows made on it
  std::atomic<uint32_t> opening_count;      ///< files opened by its members
  std::atomic<uint32_t> preparation_count;  ///< persistent collectives made on it
  bool is_in_use;      ///< some request has it; only read while entries are sought
  Communicator* next;  ///< in a list of freed ones
};
constexpr uint32_t kUnknownDegree = 0xffffffffu;

[[gnu::visibility("hidden")]] extern Communicator world;
extern Communicator self;

/// The communicator of `handle`; an entry with id 0 where nothing is known of it (yet).
Communicator* find_communicator_slow(Handle handle) noexcept;

/// The same, asked of MPI where it is not known; MPI has just taken a call with it. Before that a
/// handle that is none would be an error of ours. For MPI_COMM_NULL the entry with id 0.
Communicator* learn_communicator(Handle handle) noexcept;

[[gnu::always_inline]] inline Communicator* find_communicator(Handle handle) {
  const Handle wanted = canonical(handle);
  if (__builtin_expect(wanted == world.handle, 1)) return &world;
  return find_communicator_slow(wanted);
}

/// After a call: `before`, or what MPI says now that it took it.
[[gnu::always_inline]] inline Communicator* settled(Communicator* before, Handle handle,
                                                    int result) {
  return __builtin_expect(before->id != 0, 1) || result != kSuccess ? before
                                                                    : learn_communicator(handle);
}

/// The handles of communicators by Fortran's numbers, which the library gives densely; 0: to be
/// asked for. All go whenever a communicator is made or freed: a number may have become another's.
constexpr uint32_t kFortranCommunicators = 512;
extern std::atomic<Handle> fortran_communicators[kFortranCommunicators];

/// `rank` of a peer as the records have it: in the union, or negative for no peer.
[[gnu::always_inline]] inline int32_t peer_in(const Communicator& c, int32_t rank) {
  if (AON_LIKELY(rank >= 0)) return rank + c.peer_offset;
  return rank == abi.any_source ? kAnyPeer : kNoPeer;
}

/// Defines MPI_COMM_WORLD and MPI_COMM_SELF. Once, when MPI is initialised.
void define_world(uint32_t rank, uint32_t process_count);

/// Defines what a collective creation on `parent` has made, and counts it: the second input of the
/// identity. To be called after each one that MPI took, also where this process gets MPI_COMM_NULL;
/// one that MPI refused on this rank, whose arguments were wrong, the others have not begun.
void add_communicator(Communicator* parent, Handle handle);

/// The same of the copy that MPI_Comm_idup has begun to make. It is told before it is complete, for
/// nobody may see that: it has its parent's members and topology, so MPI need not be asked.
void add_copy(Communicator* parent, Handle handle);

/// Communicators so far that cannot be told from others with the same members.
uint64_t ambiguous_communicators() noexcept;
/// Whether some of them were seen made, by calls that had too many lists of members and tags for
/// all to be counted (kMaxMemberLists).
bool has_uncounted_communicators() noexcept;

/// Defines a communicator that is known by its members alone (create_group, intercomm_create) or
/// by nothing (`is_made_of_worlds`: spawn, accept, connect, join).
/// Threads that make one of the same members at once tell theirs apart by `tag`. Null: this process
/// is none of them.
const Communicator* add_communicator_of_members(Communicator* parent, Handle handle, uint64_t tag,
                                                bool is_made_of_worlds);
inline uint64_t integer_tag(int tag) { return static_cast<uint32_t>(tag); }

void name_communicator(const Communicator& communicator, const char* name);

/// Takes a handle that is about to be freed out of the table: another thread may get it before we
/// are back. Null: it is not there.
Communicator* take_communicator(Handle handle);

/// The communicator is freed, which the trace is told, or, when MPI refused, still there.
void end_communicator(Communicator* taken, int result);

/// Neighbours of this process in the topology of `communicator`, which MPI has just used. The trace
/// is told whose data they bring.
void learn_degrees(Communicator* communicator);

}  // namespace aon::mpi
