/// Ids that the archive itself adds: attributes, and local ids of regions that no process defines.
/// Layout only.
#pragma once

#include <aon/external_id.h>
#include <aon/record.h>

#include <cstdint>

namespace aon::writers::otf2 {

/// Attributes of events; their ids are dense and this is their order in the definitions.
enum AttributeId : uint32_t {
  kLostCount = 0,    ///< on Enter of a "[lost: ...]" region: records lost in this interval
  kWeight = 1,       ///< on Enter: calls this one stands for
  kOpen = 2,         ///< on Leave: the call had not returned, its end is that of the thread
  kErrored = 3,      ///< on Leave: the call returned an error
  kValue = 4,        ///< on Enter of a mark or region: its value
  kOffset = 5,       ///< on IoOperationBegin: where in the file, in bytes; not there: unknown
  kSignedValue = 6,  ///< the same, signed
  kRealValue = 7,    ///< the same, a double
  kStepNumber = 8,   ///< on Enter of a step
  kRange = 9,        ///< on Enter of the marks that begin and end a range: its number
  kDuration = 10,    ///< on Enter of the mark that ends a range: its duration in ns
  // On Enter of an operation on a timeline of NCCL, beside kValue, its bytes.
  kNcclSequence = 11,
  kNcclCallCount = 12,
  kNcclAlgorithmName = 13,
  kNcclProtocolName = 14,
  kNcclTypeName = 15,
  kNcclChannels = 16,
  kNcclIsTimed = 17,       ///< its times are the GPU's, else the host's
  kNcclBusBandwidth = 18,  ///< not there: not known
  kCutByLoss = 19,         ///< on Leave: the region's end was lost; it took longer than this
  kCorrelation = 20,       ///< on Enter of work of a device and of the call that started it
  // On Enter of a call of CUDA: its external correlation id of each ExternalKind.
  kFirstExternalId = 21,
  kAttributeCount = kFirstExternalId + kExternalKindCount - 1,
};
constexpr uint32_t external_id_attribute(ExternalKind kind) {
  return kFirstExternalId - 1 + static_cast<uint32_t>(kind);
}

/// The one paradigm of I/O, MPI's.
constexpr uint32_t kIoParadigm = 0;

/// Local ids of the regions "[lost: REASON]" and "[no records]"; above every id of a process, below
/// kUnknownRegion. The global ids follow those of the model in the same order.
constexpr uint32_t kFirstOwnRegion = 0xffffff00u;
constexpr uint32_t lost_region(uint32_t reason) { return kFirstOwnRegion + reason; }
constexpr uint32_t kNoRecordsRegion = kFirstOwnRegion + kLossReasonCount;
constexpr uint32_t kOwnRegionCount = kLossReasonCount + 1;

/// Local id of the group of all members of a window. Ids of other groups lie below.
constexpr uint32_t members_of_window(uint32_t window) { return 0x80000000u | window; }

/// Local id of the window of the process's copies between host and device. Ids of other windows lie
/// below.
constexpr uint32_t kDeviceWindow = 0xfffffffeu;

/// In the id of the METRIC location that has the waiting time of a thread's calls; the rest is the
/// thread's.
constexpr uint64_t kWaitingLocation = uint64_t{1} << 62;
/// The same for the values of the counters that a thread sets.
constexpr uint64_t kCounterLocation = uint64_t{1} << 61;
/// The same for the series of one device of a node; its number stands from kDeviceShift on.
constexpr uint64_t kDeviceSeriesLocation = uint64_t{1} << 60;
constexpr uint32_t kDeviceShift = 48;
constexpr uint32_t kMaxDeviceSeries = 1u << 12;

}  // namespace aon::writers::otf2
