/// How the devices of each process were used: busy and idle, with what, and why not; the same in
/// each step; and who launched which kernel. docs/gpu-use.md has the formulas.
///
/// Counters of a device's units (writers/devices/unit_use.h) say what records of work cannot.
///
/// Two things are joined for it when all events of a process have passed: a piece of work with the
/// call that launched it, by correlation id, and that call with the annotation around it, by thread
/// and time.
/// Thread: one.   Cost: that of LaunchedWork, about 500 ns per piece of work; kMaxBorders borders
/// of annotations of one process, kMaxSteps rows of steps of all.
#pragma once

#include <aon/device_gaps.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "writers/devices/nccl_kernels.h"
#include "writers/devices/unit_use.h"
#include "writers/external_id.h"
#include "writers/steps/steps.h"
#include "writers/writer.h"

namespace aon::writers {

enum class WorkClass : uint8_t { kCompute = 0, kCopy, kCommunication };
constexpr size_t kWorkClassCount = 3;

/// Why a device had nothing to do before a piece of work: the time until its launch was called,
/// that of the launch itself and its way to the device, and the rest, in which it waited for other
/// work.
/// kUnrecorded: nothing was recorded for a part of that time (the budget, a pause, records that
/// were lost or left out), so it may have been busy.
enum class IdleReason : uint8_t { kHostWait = 0, kLaunch, kStarved, kUnknown, kUnrecorded };
constexpr size_t kIdleReasonCount = 5;
const char* idle_reason_name(IdleReason reason);

/// What keeps a device from going faster: the first ones as far as records tell, those behind
/// kDevice by counters of its units.
enum class Bound : uint8_t {
  kLaunch = 0,
  kCommunication,
  kCopy,
  kStarved,
  kUnused,      ///< no work: in a step of a process that uses the device in others
  kUnrecorded,  ///< too little is recorded of it to say
  kDevice,      ///< none of these; counters are not there
  kCompute,
  kMemory,
  kBalanced,
  kLatency,
  kSmallGrids,
};
constexpr size_t kBoundCount = 12;
const char* bound_name(Bound bound);

struct DeviceTimes {
  uint64_t span_ns = 0;  ///< from the first to the last work; of a step, its duration
  uint64_t busy_ns = 0;  ///< with at least one piece of work; by class the same
  uint64_t class_ns[kWorkClassCount] = {};
  uint64_t overlap_ns = 0;       ///< communication while something is computed
  uint64_t exposed_ns = 0;       ///< communication while nothing is
  uint64_t only_copying_ns = 0;  ///< copies while nothing else runs
  uint64_t idle_ns[kIdleReasonCount] = {};
};

struct IdleFigures {
  uint64_t count = 0;
  uint64_t max_ns = 0;
};

struct DeviceUse {
  uint32_t group = 0;
  uint32_t device = 0;
  DeviceTimes times;
  IdleFigures idle[kIdleReasonCount];
  uint64_t kernel_count = 0;
  uint64_t median_kernel_ns = 0;  ///< within 10 %
  uint64_t median_launch_ns = 0;  ///< of the calls that launched one each; 0 unknown
  uint64_t unknown_launch_count = 0;
  uint64_t missing_launch_count = 0;  ///< as of a step
  uint64_t begin_ns = 0;              ///< of the first work
  UnitUse units;
  Bound bound = Bound::kDevice;
};

/// One step in the time of its process, for one device.
struct DeviceStep {
  uint32_t group = 0;
  uint32_t device = 0;
  uint32_t loop = 0;
  int64_t number = 0;
  uint64_t begin_ns = 0;
  DeviceTimes times;
  uint64_t missing_launch_count = 0;  ///< of the process, for any device: there is no kernel
  UnitUse units;
  Bound bound = Bound::kDevice;
};

/// Times in which work of a process may be missing, for one cause.
struct UnrecordedTime {
  uint32_t group = 0;
  GapCause cause = GapCause::kUnknown;
  uint64_t count = 0;
  uint64_t total_ns = 0;
  uint64_t process_ns = 0;  ///< of all its causes together, which may be at the same time
};

/// Work of one name that was launched from the same annotation.
struct LaunchRow {
  uint32_t group = 0;
  uint32_t device = 0;
  static constexpr uint32_t kNoLaunchRegion = 0xffffffffu;
  static constexpr uint32_t kMoreLaunchRegions = 0xfffffffeu;  ///< of those without a row
  static constexpr uint32_t kMoreWork = 0xfffffffeu;           ///< as a region: the same
  uint32_t region = 0;                                         ///< global
  uint32_t from = kNoLaunchRegion;                             ///< global region of the annotation
  uint64_t count = 0;
  uint64_t total_ns = 0;
  uint64_t known_count = 0;  ///< whose launch is known
  uint64_t delay_ns = 0;     ///< of those, from the end of the launch to the begin of the work
};

/// Calls of CUDA that the program gave one external correlation id, and the work they launched.
struct ExternalIdRow {
  uint32_t group = 0;
  ExternalKind kind = ExternalKind::kUnknown;
  uint64_t id = 0;
  uint64_t call_count = 0;
  uint64_t count = 0;  ///< pieces of work
  uint64_t total_ns = 0;
};

/// An operation of NCCL whose kernel is known by the call that launched it (nccl_kernels.h).
struct NcclTime {
  uint32_t group = 0;
  uint32_t device = 0;
  uint32_t communicator = kNoNcclId;  ///< global
  uint32_t region = kNoNcclId;        ///< global
  static constexpr uint32_t kNoNcclId = 0xffffffffu;
  uint64_t call = 0;
  uint32_t shared_by = 1;  ///< operations of the same kernel
  uint64_t sequence = 0;
  uint64_t bytes = 0;
  uint64_t start_ns = 0;
  uint64_t gpu_ns = 0;
};

struct DeviceSummary {
  std::vector<DeviceUse> uses;
  std::vector<DeviceStep> steps;
  std::vector<LaunchRow> launches;
  std::vector<NcclTime> nccl;
  std::vector<UnrecordedTime> unrecorded;
  std::vector<ExternalIdRow> external_ids;
  uint64_t left_out_external_count = 0;  ///< calls with an external id that has no row
  uint64_t unmatched_nccl_count = 0;     ///< operations that NCCL launched, and no kernel fits
  uint64_t left_out_nccl_count = 0;      ///< operations beyond DeviceAnalysis::kMaxNcclRows
  uint64_t left_out_count = 0;           ///< processes for whose work there was no room to sort it
  uint64_t left_out_step_count = 0;      ///< rows beyond DeviceAnalysis::kMaxSteps
  uint64_t left_out_call_count = 0;      ///< calls that there was no room to sort
  uint64_t joined_launch_count = 0;      ///< rows of `launches` that are those of kMoreWork
};

class DeviceAnalysis : public Writer {
 public:
  /// Of temporary files, per piece of work or call at most.
  static constexpr size_t kItemBytes = 88;
  static constexpr size_t kStoreBytes = 8u << 20;
  static constexpr size_t kMaxBorders = 1u << 20;
  static constexpr size_t kMaxNcclRows = 1u << 19;
  static constexpr size_t kMaxSteps = 1u << 18;  ///< of all devices
  static constexpr size_t kMaxExternalIds = 1u << 18;

  /// Told of each operation of NCCL whose kernel is known, with the local ids of its process: when
  /// that is over, before the next one begins, and within save() and finish().
  using NcclListener = std::function<Status(const devices::TimedOperation&)>;
  virtual void add_nccl_listener(NcclListener listener) = 0;

  /// Valid after finish().
  virtual const DeviceSummary& summary() const = 0;
};

/// `steps` (null: none) gets the same calls first, save() and load() among them, and outlives it.
/// Temporary files are made in `folder` and have at most `max_file_bytes` together.
std::unique_ptr<DeviceAnalysis> make_device_analysis(const std::filesystem::path& folder,
                                                     const StepMeter* steps,
                                                     uint64_t max_file_bytes = UINT64_MAX);

/// What must be recorded of a time for a verdict by records. Of all of a process's, windows of the
/// budget (one half second of eight) are as good as any; of a step, a part may be unlike the rest.
constexpr double kLeastRecordedOfUse = 0.1;
constexpr double kLeastRecordedOfStep = 0.5;
/// Of the launches of a time, so many without a kernel leave none.
constexpr double kMostMissingLaunches = 0.1;

/// The rules of docs/gpu-bounds.md. By records alone; the medians are those of calls that launch
/// one kernel and of their kernels, 0 where there are none:
Bound bound_of(const DeviceTimes& times, uint64_t median_kernel_ns, uint64_t median_launch_ns,
               double least_recorded = kLeastRecordedOfUse);
/// `by_records`, or where that is kDevice or kUnrecorded what its units did for most of the time
/// that they worked.
Bound bound_of(Bound by_records, const UnitUse& units);

}  // namespace aon::writers
