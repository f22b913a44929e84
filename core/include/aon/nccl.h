/// Words of a kNcclCall record (record.h): one operation of one communicator of NCCL, committed by
/// the thread that learned its end. Three slots, so an operation is 96 bytes.
///
///     start                 a64 bytes, a32 communicator, id region (ncclAllReduce, ...)
///       |---- API call ----|-- launch --|........... GPU start ======= GPU stop
///       start + duration = the end of the last event of it that the host saw
///
/// | word | content                                                                             |
/// |------|-------------------------------------------------------------------------------------|
/// | 0    | NCCL's sequence number of (communicator, function); of Send and Recv, which have     |
/// |      | none, our own of (communicator, direction, peer)                                     |
/// | 1    | low half: that of the own count of calls on the communicator; bytes 4 to 7:          |
/// |      | channels, NcclAlgorithm, NcclProtocol, NcclType                                      |
/// | 2    | ticks of the launch, 0 unknown                                                       |
/// | 3    | ticks at which the GPU began, 0 unknown                                              |
/// | 4    | ticks that the GPU took                                                              |
/// | 5    | low half: root or peer (kNoPeer: none); NcclCallFlags; bytes 6, 7: count of calls    |
/// | 6    | ticks between the first and the last channel's begin                                 |
/// | 7    | wide duration                                                                        |
///
/// Where the GPU's times are asked for, an operation has a record more, of kNcclInFlightSlots, when
/// it has been enqueued and not yet ended: words 0 to 2, then word 5. Whoever reads it looks for
/// the whole one with the same communicator and count of calls; without one it never ended.
///
/// At levels net and step there are records of kNcclProxySlots, too, of what NCCL's proxy did for
/// an operation on one channel: one when that is over, at level step one after kNcclStepsPerRecord
/// steps, one before a send's first data where the GPU's took long, each with what is new. Their id
/// is kNcclProxySite or, with steps, kNcclStepSite; a64 the bytes moved, times those of that part.
///
/// | word | content                                                                             |
/// |------|-------------------------------------------------------------------------------------|
/// | 0    | low half, bytes 6, 7: count of calls as above (low half kNoNcclCall: not known);     |
/// |      | byte 4: channel; 5: NcclProxyFlags                                                   |
/// | 1    | low half: peer; high half: steps that NCCL plans                                     |
/// | 2    | low half: steps that are told here; high half: events of the network plugin          |
/// | 3    | bytes of a chunk                                                                     |
/// | 4..7 | ticks that the steps waited for the GPU, the peer, the network, the flush            |
/// | 8    | ticks of the longest step; where none has ended, of the longest so far               |
/// | 11   | wide duration                                                                        |
///
/// NCCL keeps the GPU's times of a channel's last 64 operations; what its proxy reads later is told
/// with those of an operation 64 later. Where that shows in times that cannot be, a record of
/// kNcclOverwrittenSlots (no words) says of whom: a32 communicator, a64 the first and the last of
/// the calls, low halves of their counts; of these, what is timed in records before it is not.
///
/// They come in no order of time: an operation may end long after others that were called later.
/// `bytes` are count times the size of a type as the call has them: what a rank sends, of
/// ReduceScatter what it receives.
/// Depends on record.h only.
#pragma once

#include <aon/record.h>

#include <cstdint>

namespace aon {

constexpr uint8_t kNcclSlots = 3;
constexpr uint8_t kNcclInFlightSlots = 2;
constexpr uint8_t kNcclProxySlots = 4;
constexpr uint8_t kNcclOverwrittenSlots = 1;
constexpr uint32_t kNcclStepsPerRecord = 16;
constexpr uint32_t kNoNcclCall = UINT32_MAX;
constexpr uint32_t kNcclHighCallShift = 48;  ///< bits 32 to 47 of a count of calls: words 5 and 0

/// Call site whose mode word is the level that NCCL is asked for, which the budget may lower: at
/// kModeSample + 0 step, + 1 net, + 3 gpu (one in 1, 2, 4), kModeCount api. Of an NCCL that must
/// keep its channels it is kNcclFixedSite: + 1 step, + 3 net, kModeCount gpu.
constexpr uint32_t kNcclProxySite = 1000;
constexpr uint32_t kNcclStepSite = 1001;  ///< of records of steps; its mode says nothing
constexpr uint32_t kNcclFixedSite = 1002;
constexpr uint32_t kNcclLowestPeriod = 4;  ///< behind it comes kModeCount

enum NcclProxyFlags : uint32_t {
  kNcclProxySend = 1 << 0,
  kNcclProxyLast = 1 << 1,  ///< the work on this channel is over
};

enum class NcclAlgorithm : uint8_t {
  kUnknown = 0,
  kTree,
  kRing,
  kCollnetDirect,
  kCollnetChain,
  kNvls,
  kNvlsTree,
  kPat,
};
constexpr uint32_t kNcclAlgorithmCount = 8;

enum class NcclProtocol : uint8_t { kUnknown = 0, kLl, kLl128, kSimple };
constexpr uint32_t kNcclProtocolCount = 4;

enum class NcclType : uint8_t {
  kUnknown = 0,
  kInt8,
  kUint8,
  kInt32,
  kUint32,
  kInt64,
  kUint64,
  kFloat16,
  kFloat32,
  kFloat64,
  kBfloat16,
  kFloat8e4m3,
  kFloat8e5m2,
};
constexpr uint32_t kNcclTypeCount = 13;

/// The definition of a communicator has a second text: its commId, as NCCL's log has it.
/// Byte of CommunicatorDefinition::reserved: ordinal of the device in its process + 1, 0 unknown.
constexpr uint32_t kNcclDevice = 0;
/// And from this one on, u32: nodes that NCCL says it spans, 0 unknown.
constexpr uint32_t kNcclNodes = 1;

enum NcclCallFlags : uint32_t {
  kNcclGraphCaptured = 1 << 0,
  kNcclGpuTimed = 1 << 1,        ///< words 3, 4 and 6 are from the channels' timers
  kNcclMissedChannels = 1 << 2,  ///< fewer channels told their times than work on it
  kNcclNoWork = 1 << 3,          ///< only the call was seen: one rank, captured, or not told of
  kNcclReplayed = 1 << 4,        ///< without a call: a graph was launched again
  kNcclCopyEngines = 1 << 5,     ///< by copy engines, no kernel
  kNcclInFlight = 1 << 6,        ///< enqueued; its end is another record, or never came
  kNcclAbandoned = 1 << 7,    ///< in flight when its communicator or program ended; that is its end
  kNcclKernelTimed = 1 << 8,  ///< in no record: assembly has its times from its kernel's, by CUPTI
  kNcclOverwritten = 1 << 9,  ///< the GPU's times were those of a later operation, and are not told
  /// In a graph that was captured without channels: NCCL counts none of its launches, and tells
  /// them only to ranks whose part has work for the proxy. The sequence is the next operation's.
  kNcclUncounted = 1 << 10,
};

}  // namespace aon
