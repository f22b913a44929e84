/// Slots of operations: taken, changed by whoever gets an event, committed once.
///
///     free --claim, fields, publish--> live --set_bits()...--> commit() --> free, next generation
///
/// A claimed slot is its claimer's alone: while its fields are filled, and while its record is
/// written from them.
/// Thread: any; a slot's control decides every race.   Signal: no.   Cost: one locked instruction
/// per change, no lock.
#pragma once

#include "nccl/facts.h"
#include "nccl/state.h"

namespace aon::nccl {

constexpr uint32_t kChannelShift = 32;  ///< in word 1 of the record
constexpr uint32_t kTypeShift = 56;

inline bool is_of(uint64_t control, uint32_t generation) {
  return (control & kLive) != 0 && (control & kGenerationMask) == generation;
}

/// Sets bits of a live operation. False: it is not that one any more, or has one of them already.
bool set_bits(Operation& operation, uint32_t generation, uint64_t bits, uint64_t* control);

/// Word 1 of the record.
uint64_t shape_of(const Facts& facts, uint64_t call);

/// Its own count of calls: the low half of word 1, and above it the highest bits of word 5.
inline uint64_t call_of(const Operation& operation) {
  const uint64_t high = operation.peer_flags.load(std::memory_order_relaxed) >> kNcclHighCallShift;
  return (operation.shape.load(std::memory_order_relaxed) & UINT32_MAX) | high << 32;
}

/// Ends a live operation and writes its record. False: somebody else did.
bool commit(Communicator& communicator, Operation& operation, uint32_t generation);

/// Number of the group that called it, of 24 bits; the same for what no group tells of.
inline uint32_t group_of(const Operation& operation) {
  return operation.function_group.load(std::memory_order_relaxed) >> 8;
}

/// Writes what Communicator::overwritten says, and `operation` has shown. False: no room.
bool put_overwritten(const Communicator& communicator, const Operation& operation);

/// An operation whose channels are all over; those before it on its communicator are over, too.
void note_done(Communicator& communicator, const Operation& operation);

/// Whether a live operation is under way for all that is known: none of its channels is over, and
/// nothing that came after it. That is told where channels are told at all.
bool is_abandoned(const Communicator& communicator, const Operation& operation, uint64_t control);

/// Writes that a live operation is in flight. False: nothing was written, for there is no room or
/// it has just ended.
bool put_in_flight(Communicator& communicator, const Operation& operation, uint32_t generation);

/// A new operation that began at `now`, with `bits`; `role` is that of the handle returned.
/// `lives_as`: the generation that the context has. Null and counted where the communicator has
/// gone meanwhile, by another thread's ncclCommAbort: the place may be another one's.
Handle open_operation(Communicator& communicator, uint32_t lives_as, const Facts& facts,
                      uint64_t now, uint64_t bits, Role role);

/// Waits until no slot of a communicator that is gone is being filled: what is in one by then is
/// live. Not for ever: the one that does so may not run, or be the caller, in a signal handler.
/// Returns the slots in use.
uint32_t wait_for_claims(const Communicator& communicator);

/// The place that a handle of this process names, live or not; null where it is none.
Operation* operation_at(const Handle& handle);

}  // namespace aon::nccl
