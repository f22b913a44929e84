/// World ranks of a communicator's members, from local questions to MPI, and the hashes that the
/// identity of a communicator is made of.
/// Thread: any; count_members() needs the caller's lock.
/// Cost: one group translation; hash_members() and its count are linear in the members.
#pragma once

#include "mpi/handles.h"

namespace aon::mpi {

enum class Side { kOwn, kRemote };

/// Of a program without MPI_COMM_WORLD: takes the world's group from `session` and says who we are
/// in it, then gives the one before back, before its session ends. Null: only the latter. False:
/// the library does not tell, or null.
bool change_session_world(Handle session, int* rank, int* process_count);

/// World rank of rank 0 of one side; -1 when it is not in our world.
int32_t first_world_rank(Handle communicator, Side side);

struct SideMembers {
  uint64_t hash;      ///< of their world ranks, in order; what is not of our world is all the same
  bool are_of_world;  ///< some
  bool are_of_elsewhere;  ///< some
};

/// All members of one side.
SideMembers hash_members(Handle communicator, Side side);

/// The same in all processes that one PMIx launcher has started together, and in no others; 0: no
/// such launcher started this one.   Cost: the environment is read once.
uint64_t launch_identity();

/// Lists of members that count_members() can tell apart, at most.
constexpr uint32_t kMaxMemberLists = 1u << 16;

/// How often count_members() was called with this hash, this call included. 0: there is no room to
/// count it, for so many others were.
uint32_t count_members(uint64_t members);

/// World ranks of a group's members, in their order. `visit` is called for parts of the list.
/// False: MPI refuses, or a member is of another world.
bool visit_world_ranks(Handle group, void (*visit)(void* data, const int* ranks, int count),
                       void* data);

/// Hash of a text (FNV-1a).
inline uint64_t hash_text(const char* text) {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (; *text != '\0'; ++text) hash = (hash ^ static_cast<uint8_t>(*text)) * 0x100000001b3ull;
  return hash;
}

/// Mixes a value into a hash (the finalizer of splitmix64, Steele, Lea, Flood 2014).
inline uint64_t mix(uint64_t hash, uint64_t value) {
  uint64_t x = hash + 0x9e3779b97f4a7c15ull + value * 0xd1342543de82ef95ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

}  // namespace aon::mpi
