/// Record formats: the bytes that every provider writes and every reader decodes.
///
/// A record is one to four slots of 32 bytes. The first slot has the same layout for every kind, so
/// the drain, the block encoder and the fuzzers know one shape only; a kind gives names to the
/// fields (table below).
/// Thread: a record is written by one thread, in place, before it is committed (writer.h).
/// Cost: none; this header is layout. Depends on nothing.
///
/// Bytes of a record (little endian), words from the second slot on:
///
///     0       8          12     13     14      16    20    24    32          64    96     128
///     | start | duration | kind | slots| flags | id  | a32 | a64 | words 0-3 | 4-7 | 8-11 |
///     | ticks | ticks u32| u8   | u8   | u16   | u32 | u32 | u64 | u64 each  |     |      |
///
/// Time is in ticks of the process's clock (TSC, or ns of CLOCK_MONOTONIC_RAW where the TSC is not
/// constant). A duration that does not fit 32 bits sets kWideDuration: the field holds its low half
/// and the last word of the record holds the whole 64-bit duration (a slot is added where no word
/// is free). Words that a kind does not use are zero.
///
/// Order in a stream is the order of commit: a span is committed when it ends, so records that
/// belong to a span (completions of a Waitall, calls made by a callback inside it) stand before it.
/// They carry kInsideSpan. Hence the end times (start + duration) of one stream never decrease.
///
/// | kind        | start | duration | id         | a32       | a64        | words               |
/// |-------------|-------|----------|------------|-----------|------------|---------------------|
/// | kSpan       | entry | yes      | region     | ValueType | value or   | of MPI_Pcontrol     |
/// | kMessage    | entry | yes      | region     | comm      | bytes      | peer+tag, request   |
/// | kExchange   | entry | yes      | region     | comm      | bytes sent | dest+tag,           |
/// |             |       |          |            |           |            | bytes received,     |
/// |             |       |          |            |           |            | source+tag          |
/// | kCollective | entry | yes      | region     | comm      | bytes sent | bytes received,     |
/// |             |       |          |            |           |            | root+operation,     |
/// |             |       |          |            |           |            | request, instance   |
/// | kIo         | entry | yes      | region     | file      | bytes      | operation+flags,    |
/// |             |       |          |            |           | moved      | offset, request,    |
/// |             |       |          |            |           |            | bytes asked for     |
/// | kCompletion | time  |          | 0          | comm      | bytes      | peer+tag, request   |
/// |             | time  |          | kIo        | file      | bytes      | operation+flags,    |
/// |             |       |          |            |           | moved      | request             |
/// | kBegin      | time  |          | region     | ValueType | value      |                     |
/// | kEnd        | time  |          | region     |           |            |                     |
/// | kMark       | time  |          | region     | ValueType | value      | see ValueType       |
/// | kSample     | time  |          | metric     |           | f64 bits   | enabled_ns,         |
/// |             |       |          |            |           |            | running_ns          |
/// | kLost       | first | to last  | LossReason | regions   | count      |                     |
/// | kThread     | time  |          | tid        | 1 starts, |            |                     |
/// |             |       |          |            | 0 ends    |            |                     |
/// | kRma        | entry | yes      | region     | window    | bytes to   | target+operation,   |
/// |             |       |          |            |           | the target | bytes back,         |
/// |             |       |          |            |           |            | request or group    |
/// | kCallSample | time  |          | call path  | tid       | period     |                     |
/// | kCounters   | entry | yes      | region     | count,    |            | values at entry,    |
/// |             |       |          |            | inexact   |            | then what was added |
/// |             |       |          |            |           |            | up to the exit      |
/// | kDeviceSpan | begin | yes      | region     | stream of | bytes      | correlation+        |
/// |             |       |          |            | a device  |            | operation, graph,   |
/// |             |       |          |            |           |            | launch shape,       |
/// |             |       |          |            |           |            | memory kinds        |
/// | kNcclCall   | begin | yes      | region     | comm      | bytes      | see aon/nccl.h      |
/// | kDefinition | time  |          | Definition-| bytes of  | offset of  | the bytes, from     |
/// |             |       |          | Type       | the whole | these bytes| byte 32 on          |
///
/// "peer+tag" packs two i32 into a word, the first in the low half (pack_pair). A peer is a rank in
/// the communicator, or kAnyPeer or kNoPeer. A span may have no word at all: slot_count says it.
/// "target+operation" is the same with a rank of the window and an RmaOperation; the completion of
/// an RMA request has them, and the window, in the places of peer, tag and communicator.
/// "operation+flags" packs an IoOperation and IoFlags. The request of a kIo is a number that no
/// other has in its process, whether or not a request of MPI belongs to it. "instance": aon/mpi.h.
/// A kCallSample is written by the agent, into a stream of its own per process; its period is in
/// units of the event that was sampled (SamplingDefinition). Behind a request: channel (aon/mpi.h).
/// A kCounters stands before the record of its call, with its start, duration and region, or, as
/// kNextBorder (aon/annotation.h), before a kBegin or kEnd. Counter i is the metric
/// kFirstCounterMetric + i; its values count from the thread's first event (docs/counters.md).
/// A kDeviceSpan is work of an accelerator, told later by a thread that has nothing to do with it:
/// such records come in no order of time, and belong to the location of their stream, not to that
/// of the thread (aon/device.h).
#pragma once

#include <cstddef>
#include <cstdint>

namespace aon {

constexpr uint32_t kSlotBytes = 32;
constexpr uint32_t kMaxSlots = 4;
constexpr uint32_t kMaxWords = 12;  ///< u64 words behind the first slot of a four-slot record

enum class RecordKind : uint8_t {
  kNone = 0,
  kSpan = 1,
  kMessage = 2,
  kExchange = 3,
  kCollective = 4,
  kCompletion = 5,
  kBegin = 6,
  kEnd = 7,
  kMark = 8,
  kSample = 9,
  kLost = 10,
  kThread = 11,
  kDefinition = 12,
  kRma = 13,
  kIo = 14,
  kCallSample = 15,
  kCounters = 16,
  kDeviceSpan = 17,
  kNcclCall = 18,
};
constexpr uint8_t kRecordKindCount = 19;

/// kLost, kThread and kDefinition are the core's own: they do not count as emitted events.
constexpr bool is_counted(RecordKind kind) {
  return (kind < RecordKind::kLost && kind != RecordKind::kNone) || kind > RecordKind::kDefinition;
}

/// Kinds that are a call from its entry to its exit.
constexpr bool is_call(RecordKind kind) {
  return (kind >= RecordKind::kSpan && kind <= RecordKind::kCollective) ||
         kind == RecordKind::kRma || kind == RecordKind::kIo;
}

enum RecordFlags : uint16_t {
  kWideDuration = 1 << 0,  ///< the last word is the duration
  kInsideSpan = 1 << 1,    ///< committed while a span of this thread was open
  kOutgoing = 1 << 2,      ///< kMessage, kCompletion: this rank sends
  kIncoming = 1 << 3,  ///< the same: it receives; kSpan: a matched probe that took a message out
  kNonblocking =
      1
      << 4,  ///< the call starts a request (word: request); the transfer ends with its kCompletion
  kCancelled = 1 << 5,    ///< kCompletion: the request was cancelled, nothing moved
  kSampledCall = 1 << 6,  ///< one of N calls that was timed; a64 of kSpan is N, the weight
  kOpenAtEnd = 1 << 7,    ///< written by the agent: the call had not returned when its thread ended
  kFailed = 1 << 8,  ///< the call returned an error; or it was left by longjmp (kSpan, no length)
};

/// Why records are missing. The ledger uses exactly these words (loss_reason_name).
enum class LossReason : uint32_t {
  kPoolFull = 0,
  kEvictedByCap = 1,
  kWriteFailed = 2,
  kDamaged = 3,
  kStreamCut = 4,
};
constexpr uint32_t kLossReasonCount = 5;

/// Regions (kBegin, kEnd) over a hole: a32 of kLost. First so many of those that were open before
/// it, the innermost, have ended in it; then so many have begun in it and are open behind it. Each
/// number has 16 bits, and stays at its largest value.
constexpr uint32_t kAllRegions = 0xffff;  ///< ended: none is known to be open any more
constexpr uint32_t pack_lost_regions(uint32_t ended, uint32_t begun) {
  const uint32_t low = ended < kAllRegions ? ended : kAllRegions;
  const uint32_t high = begun < kAllRegions ? begun : kAllRegions;
  return high << 16 | low;
}
constexpr uint32_t ended_in_hole(uint32_t regions) { return regions & kAllRegions; }
constexpr uint32_t begun_in_hole(uint32_t regions) { return regions >> 16; }

constexpr const char* loss_reason_name(LossReason reason) {
  switch (reason) {
    case LossReason::kPoolFull:
      return "pool full";
    case LossReason::kEvictedByCap:
      return "evicted by cap";
    case LossReason::kWriteFailed:
      return "write failed";
    case LossReason::kDamaged:
      return "damaged";
    case LossReason::kStreamCut:
      return "stream cut";
  }
  return "damaged";
}

/// What a collective does; the values are ours, the writers map them to OTF2's.
enum class CollectiveOperation : uint8_t {
  kBarrier = 0,
  kBroadcast,
  kGather,
  kGatherv,
  kScatter,
  kScatterv,
  kAllgather,
  kAllgatherv,
  kAlltoall,
  kAlltoallv,
  kAlltoallw,
  kAllreduce,
  kReduce,
  kReduceScatter,
  kReduceScatterBlock,
  kScan,
  kExscan,
  kCreateHandle,
  kDestroyHandle,
  kOther,
  kSetInfo,  ///< hints of a communicator
};

/// What a call of one-sided communication does.
///
/// | operations              | target    | bytes                  | request or group             |
/// |-------------------------|-----------|------------------------|------------------------------|
/// | kPut to kCompareAndSwap | rank      | to the target and back | request of the R... forms    |
/// | kLock... to kUnlock,    | rank      |                        |                              |
/// | kFlush, kFlushLocal     |           |                        |                              |
/// | kStart to kTest         | kAnyPeer  |                        | group of the epoch; 0: all   |
/// |                         |           |                        | members of the window        |
/// | others                  | kAnyPeer: |                        |                              |
/// |                         | all       |                        |                              |
///
/// A target kNoPeer is MPI_PROC_NULL: nothing moves. kTest is an MPI_Win_test that succeeded.
enum class RmaOperation : uint8_t {
  kPut = 0,
  kGet,
  kAccumulate,
  kGetAccumulate,
  kFetchAndOp,
  kCompareAndSwap,
  kCreate,           ///< also of dynamic windows: the memory is the program's
  kCreateAllocated,  ///< MPI_Win_allocate, MPI_Win_allocate_shared
  kFree,
  kFreeAllocated,  ///< kFree of what kCreateAllocated made
  kFence,
  kStart,
  kComplete,
  kPost,
  kWait,
  kTest,
  kLockExclusive,
  kLockShared,
  kUnlock,
  kLockAll,
  kUnlockAll,
  kFlush,
  kFlushAll,
  kFlushLocal,
  kFlushLocalAll,
  kSync,
  kSetInfo,
};
constexpr int32_t kRmaOperationCount = 27;
/// What a call does with a file; the values are ours, the writers map them to OTF2's.
enum class IoOperation : uint8_t {
  kOpen = 0,  ///< bytes asked for: the FileMode
  kClose,
  kRead,
  kWrite,
  kSeek,  ///< offset: the new place; bytes asked for: the distance it was asked for, signed
  kSync,
  kSetSize,      ///< bytes asked for: the new size
  kPreallocate,  ///< the same
  kDelete,
  kSetView,  ///< offset: where the view begins
  kSetAtomicity,
  kSetInfo,
};
constexpr uint32_t kIoOperationCount = 12;

enum IoFlags : uint32_t {
  kIoCollective = 1 << 0,
  kIoNonblocking = 1 << 1,  ///< ends with a kCompletion, or with the other half
  kIoSplitBegin = 1 << 2,   ///< first half of a split collective
  kIoSplitEnd = 1 << 3,     ///< second half: the transfer is complete
  kIoShared = 1 << 4,       ///< at the pointer that all processes share
  kIoFromCurrent = 1 << 5,  ///< kSeek: from the pointer; neither this nor the next: from the start
  kIoFromEnd = 1 << 6,      ///< kSeek: from the end of the file
  kIoDeletes = 1 << 7,      ///< kClose: the file goes with it
};

/// Where in the file, in bytes from its start: nobody can say without asking other processes.
constexpr uint64_t kUnknownOffset = ~uint64_t{0};

/// What the value of an annotation is: a32 of kBegin and kMark; the value itself is a64.
/// A range may overlap others and end on another thread: it is two marks of its region with one
/// number. The start has two words, the ValueType of its value and the value; the end has one, the
/// ticks of the start.
enum class ValueType : uint32_t {
  kNone = 0,
  kUnsigned,
  kSigned,
  kReal,        ///< bits of a double
  kStep,        ///< kBegin of a region with RegionRole::kStep: its number, signed
  kRangeStart,  ///< kMark: the number of the range
  kRangeEnd,    ///< kMark: the same
};
constexpr uint32_t kValueTypeCount = 7;

/// Hardware counters at the borders of a call: a32 of kCounters is their number, with kInexact when
/// one of them was off the PMU for a part of the call.
constexpr uint32_t kMaxRegionCounters = 4;
constexpr uint32_t kInexact = 1u << 31;
constexpr uint32_t kFirstCounterMetric = 0x7ffffff0u;

/// The first slot, and the only one that every record has.
struct RecordHead {
  uint64_t start_ticks;
  uint32_t duration_ticks;
  RecordKind kind;
  uint8_t slot_count;
  uint16_t flags;
  uint32_t id;
  uint32_t a32;
  uint64_t a64;
};
static_assert(sizeof(RecordHead) == kSlotBytes);
static_assert(offsetof(RecordHead, duration_ticks) == 8 && offsetof(RecordHead, kind) == 12);
static_assert(offsetof(RecordHead, slot_count) == 13 && offsetof(RecordHead, flags) == 14);
static_assert(offsetof(RecordHead, id) == 16 && offsetof(RecordHead, a32) == 20 &&
              offsetof(RecordHead, a64) == 24);

/// A whole record of the largest size; readers decode into this.
struct Record {
  RecordHead head;
  uint64_t words[kMaxWords];
};
static_assert(sizeof(Record) == kMaxSlots * kSlotBytes);

/// Peers that are no rank. Each MPI library has numbers of its own for them; records do not.
constexpr int32_t kAnyPeer = -1;  ///< MPI_ANY_SOURCE; of a completion: nobody can say who it was
constexpr int32_t kNoPeer = -2;   ///< MPI_PROC_NULL, or a rank that does not exist

constexpr uint64_t pack_pair(int32_t low, int32_t high) {
  return (uint64_t{static_cast<uint32_t>(high)} << 32) | static_cast<uint32_t>(low);
}
constexpr int32_t pair_low(uint64_t word) {
  return static_cast<int32_t>(static_cast<uint32_t>(word));
}
constexpr int32_t pair_high(uint64_t word) {
  return static_cast<int32_t>(static_cast<uint32_t>(word >> 32));
}

/// Duration of `record` in ticks, from its narrow or its wide field. `record` must have passed
/// validation.
constexpr uint64_t duration_ticks(const Record& record) {
  if ((record.head.flags & kWideDuration) == 0) return record.head.duration_ticks;
  return record.words[(record.head.slot_count - 1u) * 4u - 1u];
}
constexpr uint64_t end_ticks(const Record& record) {
  return record.head.start_ticks + duration_ticks(record);
}

/// True when the head may be trusted for decoding: a known kind, one to four slots, a wide duration
/// only where there is a word for it.
constexpr bool is_valid(const RecordHead& head) {
  if (head.kind == RecordKind::kNone || static_cast<uint8_t>(head.kind) >= kRecordKindCount)
    return false;
  if (head.slot_count == 0 || head.slot_count > kMaxSlots) return false;
  return (head.flags & kWideDuration) == 0 || head.slot_count > 1;
}

}  // namespace aon
