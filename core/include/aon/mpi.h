/// What the definitions and records of MPI have beyond what all kinds share (aon/definition.h,
/// aon/record.h).
///
/// A kCompletion of a collective has the id kCollective (of files: kIo), the bytes sent in a64, and
/// the words root and operation, request, bytes received: another thread may have begun it.
/// Owner: nobody; this header is layout. Thread, cost: none. Depends on nothing but records.
#pragma once

#include <aon/record.h>

#include <cstdint>

namespace aon {

/// Byte of CommunicatorDefinition::reserved: 1 where processes of several worlds are in it
/// (spawned, connected), or it was made from one that has such. Members of another world are in
/// another job, or in none: nobody here tells their places. Who does not know the byte ignores it.
constexpr uint32_t kOfWorldsByte = 0;

/// Another one: 0 where the identity is sure. It was made where nobody looked (by PMPI names), or
/// from one that was, and its identity is made of its members (and its parent's identity): how many
/// such ones this process has seen so far, itself included, at most 255. Where any member has seen
/// two, which of them is which nobody can say.
constexpr uint32_t kUnseenByte = 1;

/// Four bytes of CommunicatorDefinition::reserved from this one on, of an inter-communicator: how
/// many of its ranks, the lowest ones, are its first group (u32); the others are its second. 0: not
/// told.
constexpr uint32_t kFirstGroupByte = 3;

/// The last word of a kCollective says which persistent collective of the communicator is started:
/// the how manieth that was made on it (MPI_Barrier_init and its like; all members make them in one
/// order), and the how manieth start of that one. Both count from 1.
constexpr uint64_t pack_instance(uint32_t preparation, uint32_t start) {
  return uint64_t{preparation} << 32 | start;
}

/// A flag of kMessage and kCompletion beside RecordFlags: a message in parts, which meets only one
/// that is, too, though peer, tag and communicator may be an ordinary message's. The word behind
/// the request says which: the how manieth send, or receive, of these three that was made in parts
/// (MPI_Psend_init, MPI_Precv_init), from 1. What its starts send, the starts of the other side's
/// with that number receive. 0: not told.
constexpr uint16_t kPartitioned = 1 << 9;
constexpr uint32_t partitioned_channel(const Record& record) {
  const bool has_word = (record.head.flags & kPartitioned) != 0 && record.head.slot_count > 1;
  return has_word ? static_cast<uint32_t>(record.words[2]) : 0;
}

/// That word; 0: no persistent one, or recorded before there was such a word. Where the third slot
/// is missing, the place may have the duration.
constexpr uint64_t collective_instance(const Record& record) {
  const bool has_word = record.head.slot_count > 2 || (record.head.flags & kWideDuration) == 0;
  return has_word ? record.words[3] : 0;
}

/// A flag of kCollective beside RecordFlags: an MPI_Alltoallv or MPI_Alltoallw in which the process
/// gets something from every other one, so that it cannot be over before all have come.
constexpr uint16_t kFromAll = 1 << 10;

}  // namespace aon
