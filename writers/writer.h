/// What a writer (OTF2, HDF5, ...) is given: the job as one model with global ids, then the events
/// of one location after the other, in time order, already converted to nanoseconds, closed and
/// matched as far as one location allows.
///
/// The assembler (writers/assemble) owns the model and calls every writer from one thread:
///
///     begin(model) -> for each location: begin_location, events ..., end_location ->
///     finish(outcome)
///
/// Cost: events come in batches; a writer keeps bounded memory per location and nothing per event.
/// Errors: the first failed Status ends this writer; the others go on.
#pragma once

#include <aon/definition.h>
#include <aon/device.h>
#include <aon/nccl.h>
#include <aon/record.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/result.h"
#include "core/clock/cluster_clock.h"
#include "core/spool/job.h"
#include "writers/state.h"

namespace aon::writers {

/// Of a node whose clock was not compared with the reference's.
constexpr uint64_t kUnknownClockError = UINT64_MAX;

/// Local id of a region whose definition was lost; every `Group::region_map` has it.
constexpr uint32_t kUnknownRegion = 0xffffffffu;

struct GlobalRegion {
  std::string name;
  RegionRole role;
  Paradigm paradigm;
};

/// `members[r]` is the world rank (location group id) of communicator rank r, or -1 where no member
/// told. Of a communicator of several worlds (spawned, connected), or that nobody can tell from
/// another (kUnseenByte: each member has its own), only members that are known are there, one after
/// the other: `members[i]` has the rank `ranks[i]`, and ranks in events are indices of these.
struct GlobalCommunicator {
  std::string name;
  CommunicatorKind kind;
  std::optional<uint32_t> parent;
  std::vector<int64_t> members;
  uint32_t rank_count = 0;  ///< as its members told; 0 unknown
  /// Of an inter-communicator: the ranks below are one of its groups, the others the other; 0: not
  /// told.
  uint32_t first_group_count = 0;
  bool is_of_worlds = false;
  std::vector<uint32_t> ranks = {};  ///< ascending; empty where `is_of_worlds` is false
  /// Its extents give as many places as there are members.
  std::optional<spool::Cartesian> cartesian = std::nullopt;
  /// By rank: whose data it gets in neighbourhood collectives, ranks below members.size(), which
  /// the spool's job owns; null where it did not tell. Ends with the last rank that told.
  std::vector<const std::vector<uint32_t>*> sources = {};

  /// Some of its processes are in no place of `members`, and never will be.
  bool is_partial() const { return is_of_worlds && members.size() < rank_count; }
};

/// A window of one-sided communication; its members are its communicator's.
struct GlobalWindow {
  std::string name;
  uint32_t communicator;
  WindowFlavour flavour;
};

/// The processes of an epoch (MPI_Win_start, MPI_Win_post), by location group id.
struct RankGroup {
  std::vector<uint32_t> members;
};

/// A file that was opened, once for all members of its communicator.
struct GlobalFile {
  uint32_t name;  ///< in Model::file_names
  std::optional<uint32_t> communicator;
  uint32_t mode;  ///< FileMode
};

struct GlobalMetric {
  std::string name;
  std::string unit;
  std::string description;
  std::string provider;
  MetricMode mode;
  bool node_wide;
};

/// A function that samples hit, or what is known instead: a module and an offset.
struct GlobalFunction {
  std::string name;
  std::string file;    ///< of its source; "" unknown
  std::string module;  ///< path of the program or library; "[jit]" and the like without a file
};

/// A node of the tree of call paths. A parent stands before its children.
struct GlobalCallPath {
  std::optional<uint32_t> parent;
  uint32_t function;  ///< in Model::functions
  uint32_t line;      ///< in the function's file; 0 unknown
  uint32_t depth;     ///< 0 outermost
};

/// What was found of one program or library that samples hit.
struct SymbolReport {
  std::string module;
  uint64_t named_count = 0;
  uint64_t unnamed_count = 0;
  uint64_t line_count = 0;  ///< of the named ones, have a source line
  std::string remark;       ///< what is missing and how to get it; empty: nothing
};

/// kAcceleratorStream: its work comes from the records of another thread; without a device it is
/// work of the host that has to do with accelerators. kSamples: call samples of all threads of a
/// process; not of the main archive.
enum class LocationType { kThread, kMetric, kAcceleratorStream, kSamples };

/// One timeline. `id` = (k << 32) | group, k = 0 the master thread.
struct Location {
  uint64_t id;
  uint32_t group;
  LocationType type;
  std::string name;
  uint32_t process;  ///< its number on the node; spool::kNodeProcess: samples of the whole node
  uint16_t slot;     ///< of the ring, or of the agent's streams (core/spool/format.h)
  bool in_archive;   ///< false: kSamples; above --otf2-locations: HDF5 and spool only
  uint32_t device_stream = 0;   ///< of kAcceleratorStream: its number in the process
  uint32_t device = kNoDevice;  ///< its device's
};

/// One process. Groups 0 .. world-1 are the ranks; processes without a rank, or a second one with
/// it, follow.
struct Group {
  uint32_t id;
  std::optional<uint32_t> rank;
  uint32_t node;                  ///< index in Model::job.nodes
  const spool::Process* process;  ///< null: a rank of the world of which nothing is known
  std::string name;
  std::unordered_map<uint32_t, uint32_t> region_map;  ///< local -> global
  std::unordered_map<uint32_t, uint32_t> communicator_map;
  std::unordered_map<uint32_t, uint32_t> window_map;
  std::unordered_map<uint32_t, uint32_t> rank_group_map;
  std::unordered_map<uint32_t, uint32_t> metric_map;
  std::unordered_map<uint32_t, uint32_t> file_map;  ///< opened ones
  std::unordered_map<uint32_t, uint32_t> file_name_map;
  std::unordered_map<uint32_t, uint32_t> call_path_map;
};

/// A call that its agent saw open for a long time (--hang). It may have returned since.
struct OpenCall {
  uint32_t group;
  uint16_t slot;
  int32_t tid;
  uint32_t region;                       ///< global; kUnknownRegion
  std::optional<uint32_t> communicator;  ///< global
  int32_t peer;                          ///< of a message, else kNoPeer
  uint64_t start_ns;
};

/// Where a thread stood when its agent saw it hang, or its process record nothing (--hang).
struct HostStack {
  uint32_t group;
  int32_t tid;
  uint64_t taken_ns;
  uint64_t quiet_ns;                ///< the process had recorded nothing since then; 0: it had
  std::vector<std::string> frames;  ///< innermost first: functions, or "library+0x12"
  std::string remark;               ///< of the kernel, and why there are no frames
};

struct Model {
  const spool::Job* job;
  std::vector<Group> groups;
  std::vector<Location> locations;
  std::vector<GlobalRegion> regions;
  std::vector<GlobalCommunicator> communicators;
  std::vector<GlobalWindow> windows;
  std::vector<RankGroup> rank_groups;
  std::vector<GlobalMetric> metrics;
  uint32_t counter_count = 0;           ///< the first metrics are of kCounters
  std::vector<std::string> file_names;  ///< each once
  std::vector<GlobalFile> files;
  std::vector<GlobalFunction> functions;
  std::vector<GlobalCallPath> call_paths;
  std::vector<SymbolReport> symbol_reports;
  std::vector<OpenCall> open_calls;  ///< by group and slot
  std::vector<HostStack> stacks;     ///< by group and thread id
  /// Bound of each node's clock against the reference node's, by index in Job::nodes.
  std::vector<uint64_t> clock_error_ns;
  clock::ClusterClocks cluster;  ///< how the bounds came about
  uint32_t reference_node = 0;   ///< whose time all times are
  uint64_t start_ns;             ///< CLOCK_REALTIME, about when the first process began
  uint64_t end_ns;
  uint64_t archive_start_ns = 0;  ///< earlier events are not in the OTF2 archive (--disk)
};

/// Region, communicator, window, rank group and file ids in events are local to the group, `Group`
/// has the tables to global ids; metric ids are global. Events of one-sided communication (kRma...)
/// have the window in `communicator`, the target (-1: all members) in `peer` and the RmaOperation
/// in `tag`. Transfers of a location to one target of a window share one id in `request` up to the
/// call that completes them there; those with an MPI request have an id of their own.
enum class EventKind : uint8_t {
  kEnter,  ///< of an annotation: a value, such as the step's number; kFailed: a call that failed,
           ///< and may have exchanged something with others; of a collective with communicator
           ///< and operation, of a fence with its window, on a file with that (else 0)
  kLeave,
  kSend,  ///< blocking: peer, tag, communicator, bytes
  kReceive,
  kSendRequest,       ///< + request
  kSendComplete,      ///< request; kFailed: nobody knows whether it was sent
  kReceiveRequest,    ///< request; peer (kAnyPeer), tag, communicator that were asked for
  kReceiveComplete,   ///< peer, tag, communicator, bytes, request
  kRequestCancelled,  ///< also a collective or receive that failed; peer of a receive: kAnyPeer
                      ///< without kCancelled: a message of unknown origin
  kCollectiveBegin,
  kCollectiveEnd,       ///< communicator, operation, root, bytes sent, bytes received
  kCollectiveRequest,   ///< of a non-blocking collective: communicator, operation, request; of a
                        ///< persistent one, which it is (pack_instance) in `bytes`
  kCollectiveComplete,  ///< as kCollectiveEnd, + request
  kSample,              ///< region = global metric, value, enabled_ns, running_ns
  kLostBegin,           ///< count, reason in region; as it was told, before it was fitted between
                        ///< its neighbours: from `request` to `bytes_received`
  kLostEnd,             ///< the same; an interval encloses no other event
  kOpenAtEnd,  ///< marker: the next kLeave closes a region that was open when its thread ended
  kCut,        ///< marker: the next kLeave closes a region whose end was lost, at the begin of that
               ///< loss; how long it took is not known
  kMark,       ///< region, a value; of a range: its number in request, and the start's value or the
               ///< end's duration in bytes
  kRmaCollectiveBegin,
  kRmaCollectiveEnd,  ///< of kFence, kCreate... and kFree...
  kRmaWindowCreate,   ///< inside the collective
  kRmaWindowDestroy,
  kRmaTransfer,         ///< kPut to kCompareAndSwap: bytes, bytes received, request
  kRmaLocalComplete,    ///< request: the buffers are the program's again
  kRmaRequestComplete,  ///< the same, by a Wait or Test
  kRmaRemoteComplete,   ///< request: done at the target, too
  kRmaGroupSync,        ///< kStart to kTest; request: the local id of the rank group, 0 all members
  kRmaLock,             ///< kLockExclusive, kLockShared, kLockAll
  kRmaUnlock,
  kRmaSync,
  // Of files; the fields are named below.
  kIoOpen,    ///< file, mode in bytes
  kIoClose,   ///< file
  kIoDelete,  ///< file: its name
  kIoSeek,    ///< file, flags, offset; bytes: the distance it was asked for, signed
  kIoChange,  ///< file, operation, flags: kSetSize, kPreallocate, kSetView, kSetAtomicity, kSetInfo
  kIoBegin,   ///< file, operation, flags, bytes asked for, offset, request
  kIoIssued,  ///< file, request: the call that started it is over
  kIoComplete,   ///< file, operation, flags, bytes moved, request
  kIoCancelled,  ///< file, operation, flags, request
  kCallSample,   ///< call path in region (kNoCallPath: unknown), tid in peer, period in bytes
  kCounters,     ///< before the kEnter or kLeave it belongs to: number of values, counter(i)
  kDeviceWork,  ///< before the kEnter of work of a device: what the device told, fields named below
  kDeviceGap,   ///< work of devices was left out (--disk): bytes: how many pieces of this stream, 0
                ///< not shown; bytes_received: for how long it is shown; request: when it ended
  kNcclCall,    ///< nccl(); its time is where it stands in the location, and means nothing
  kNcclBegin,   ///< nccl() on the timeline of its communicator; before its kEnter, if it has one
  kNcclEnd,     ///< the same; before its kLeave. Time of its kNcclBegin in bytes
  kNcclProxy,   ///< nccl_proxy(); its time means as much as that of kNcclCall
  kForeignMessage,  ///< its other end is in no trace of this job: bytes; of a send: kOutgoing
};

/// An operation of NCCL. Its ids are local to the group; times are CLOCK_REALTIME nanoseconds.
struct NcclOperation {
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;        ///< of what the host saw
  uint64_t launch_ns = 0;     ///< 0 unknown
  uint64_t gpu_begin_ns = 0;  ///< 0 unknown
  uint64_t gpu_ns = 0;        ///< with kNcclGpuTimed
  uint64_t skew_ns = 0;       ///< between the first and the last channel's begin
  uint64_t bytes = 0;
  uint64_t sequence = 0;
  uint64_t call = 0;  ///< own count of the communicator
  uint32_t communicator = 0;
  uint32_t region = 0;
  uint32_t flags = 0;  ///< NcclCallFlags
  int32_t peer = kNoPeer;
  uint8_t channels = 0;
  NcclAlgorithm algorithm = NcclAlgorithm::kUnknown;
  NcclProtocol protocol = NcclProtocol::kUnknown;
  NcclType type = NcclType::kUnknown;
};

/// What NCCL's proxy did for an operation on one channel, or for kNcclStepsPerRecord steps of it
/// (aon/nccl.h). Its ids are local to the group.
struct NcclProxyWork {
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  uint64_t bytes = 0;
  uint64_t gpu_ns = 0;      ///< waiting for the GPU
  uint64_t peer_ns = 0;     ///< waiting for the peer to be ready
  uint64_t network_ns = 0;  ///< waiting for the network
  uint64_t flush_ns = 0;
  uint64_t longest_ns = 0;  ///< of a step
  uint64_t call = 0;        ///< of NcclOperation; kNoNcclCall unknown
  uint32_t communicator = 0;
  int32_t peer = kNoPeer;
  uint32_t step_count = 0;  ///< told one by one; 0: only the whole
  uint32_t planned_step_count = 0;
  uint32_t network_event_count = 0;
  uint8_t channel = 0;
  bool is_send = false;
  bool is_last = false;  ///< the work is over with this
};

struct Event {
  uint64_t time_ns;  ///< CLOCK_REALTIME nanoseconds, never decreasing within a location
  EventKind kind;
  CollectiveOperation operation;
  uint16_t flags;  ///< RecordFlags of the record
  uint32_t region;
  uint32_t communicator;
  int32_t peer;  ///< rank in the communicator; root for collectives, -1 none
  int32_t tag;
  uint32_t weight;          ///< calls this one stands for (sampled call sites), else 1
  uint64_t bytes;           ///< sent; value bits of a sample; count of a loss
  uint64_t bytes_received;  ///< running_ns of a sample
  uint64_t request;         ///< unique in its group; enabled_ns of a sample

  // Of annotations: what `bytes` is.
  ValueType value_type() const { return static_cast<ValueType>(tag); }
  ValueType range_value_type() const { return static_cast<ValueType>(peer); }  ///< at its start
  void set_value(uint32_t type, uint64_t value) {
    tag = type < kValueTypeCount ? static_cast<int32_t>(type) : 0;
    bytes = value;
  }

  // Of counters: value i of the metric kFirstCounterMetric + i, counted from the start of the
  // location.
  uint64_t counter(uint32_t i) const {
    const uint64_t values[] = {bytes, bytes_received, request, pack_pair(peer, tag)};
    static_assert(std::size(values) == kMaxRegionCounters);
    return values[i];
  }
  void set_counters(const uint64_t (&values)[kMaxRegionCounters], uint32_t count, bool is_exact) {
    region = count;
    communicator = is_exact ? 0 : kInexact;
    bytes = values[0];
    bytes_received = values[1];
    request = values[2];
    peer = pair_low(values[3]);
    tag = pair_high(values[3]);
  }
  bool counters_are_exact() const { return communicator == 0; }

  // Of kNcclCall, kNcclBegin, kNcclEnd, kNcclProxy: lives as long as the batch of events.
  const NcclOperation& nccl() const { return *reinterpret_cast<const NcclOperation*>(request); }
  const NcclProxyWork& nccl_proxy() const {
    return *reinterpret_cast<const NcclProxyWork*>(request);
  }

  // The same fields in events of files. Their requests are numbers of their own.
  uint32_t file() const { return communicator; }
  IoOperation io_operation() const { return static_cast<IoOperation>(peer); }
  uint32_t io_flags() const { return static_cast<uint32_t>(tag); }
  uint64_t offset() const { return bytes_received; }

  // Of kDeviceWork: `bytes` it moved, between what, when and for how long, which its kEnter and
  // kLeave may show later and shorter where work of one stream overlaps.
  DeviceOperation device_operation() const { return static_cast<DeviceOperation>(peer); }
  uint64_t device_duration_ns() const { return bytes_received; }
  DeviceMemory device_from() const { return static_cast<DeviceMemory>(tag & 0xff); }
  DeviceMemory device_to() const { return static_cast<DeviceMemory>(tag >> 8 & 0xff); }
  void set_device_memory(DeviceMemory from, DeviceMemory to) {
    tag = static_cast<int32_t>(from) | static_cast<int32_t>(to) << 8;
  }
  // Of a kernel instead of memory and bytes, where the process told it.
  std::optional<KernelShape> kernel_shape() const {
    if (communicator == 0 || device_operation() != DeviceOperation::kKernel) return std::nullopt;
    return unpack_shape(bytes, communicator, flags, static_cast<uint32_t>(tag));
  }
  void set_kernel_shape(uint64_t grid, uint32_t block, uint8_t registers, uint32_t shared_bytes) {
    bytes = grid;
    communicator = block;
    flags = registers;
    tag = static_cast<int32_t>(shared_bytes);
  }
  uint32_t device_correlation() const { return static_cast<uint32_t>(request); }
  uint64_t device_start_ns() const { return time_ns - (request >> 32); }
  void set_device_correlation(uint32_t correlation, uint64_t delay_ns) {
    request = correlation | std::min<uint64_t>(delay_ns, UINT32_MAX) << 32;
  }
};

/// Whether a timeline is that of a communicator of NCCL in a process.
inline bool is_nccl_timeline(const Model& model, const Location& location) {
  const spool::Process* process = model.groups[location.group].process;
  if (location.type != LocationType::kAcceleratorStream || process == nullptr) return false;
  const auto found = process->communicators.find(location.device_stream);
  return found != process->communicators.end() && location.device == kNoDevice &&
         found->second.definition.kind == CommunicatorKind::kNccl;
}

/// What the assembler learned while it went through the events.
struct Outcome {
  uint64_t event_count = 0;
  uint64_t clamped_count = 0;      ///< times moved forward to keep a location in order
  uint64_t open_region_count = 0;  ///< closed by us, at the end of their thread
  uint64_t open_call_count = 0;    ///< calls among them
  uint64_t unmatched_count = 0;    ///< ends of messages and collectives without their start, with
                                   ///< unknown partners, or that failed and may have been made
  uint64_t unbalanced_region_count = 0;  ///< annotations: ends without begin, and begins without
                                         ///< end that were closed with the region around them
  uint64_t cut_region_count = 0;         ///< annotations of which a loss took begin or end
  uint64_t open_transfer_count = 0;      ///< one-sided ones that no call of their thread completed
  uint64_t open_io_count = 0;            ///< reads and writes that were begun and not completed
  uint64_t unmatched_io_count = 0;       ///< without a start, or a file
  uint64_t device_overlap_count = 0;     ///< work that began before other work of its stream ended,
                                         ///< and is shown behind it
  uint64_t unplaced_device_count = 0;    ///< work of a stream whose definition is lost
  uint64_t uncounted_launch_count = 0;  ///< operations that graphs launched, and of which NCCL does
                                        ///< not tell all ranks: in no timeline
  uint64_t pause_count = 0;             ///< by the program, on its threads: MPI_Pcontrol(0)
  /// Every message of every location is here: nothing was lost or still open, no pause.
  bool communication_complete = false;
};

/// What two parts of a job have learned, together.
inline Outcome operator+(const Outcome& a, const Outcome& b) {
  Outcome sum;
  sum.event_count = a.event_count + b.event_count;
  sum.clamped_count = a.clamped_count + b.clamped_count;
  sum.open_region_count = a.open_region_count + b.open_region_count;
  sum.open_call_count = a.open_call_count + b.open_call_count;
  sum.unmatched_count = a.unmatched_count + b.unmatched_count;
  sum.unbalanced_region_count = a.unbalanced_region_count + b.unbalanced_region_count;
  sum.cut_region_count = a.cut_region_count + b.cut_region_count;
  sum.open_transfer_count = a.open_transfer_count + b.open_transfer_count;
  sum.open_io_count = a.open_io_count + b.open_io_count;
  sum.unmatched_io_count = a.unmatched_io_count + b.unmatched_io_count;
  sum.device_overlap_count = a.device_overlap_count + b.device_overlap_count;
  sum.unplaced_device_count = a.unplaced_device_count + b.unplaced_device_count;
  sum.uncounted_launch_count = a.uncounted_launch_count + b.uncounted_launch_count;
  sum.pause_count = a.pause_count + b.pause_count;
  sum.communication_complete = a.communication_complete && b.communication_complete;
  return sum;
}

class Writer {
 public:
  virtual ~Writer() = default;
  virtual Status begin(const Model& model) = 0;
  virtual Status begin_location(const Location& location) = 0;
  virtual Status events(std::span<const Event> events) = 0;
  virtual Status end_location() = 0;
  virtual Status finish(const Outcome& outcome) = 0;

  // An assembly in shares (writers/assemble/shares.h): one process goes through the events of some
  // groups, another one writes the result.

  /// Hands over all that is known of the locations since begin() or the last save(), and forgets
  /// it: called behind the last location of each group.
  virtual Status save(StateOut* out);
  /// Instead of a group's locations: takes what save() of the other process gave of them. Groups
  /// come in order.
  virtual Status load(StateIn* in);
};

inline Status Writer::save(StateOut*) {
  return Error{Code::kInvalid, "a writer works on whole jobs only"};
}
inline Status Writer::load(StateIn*) {
  return Error{Code::kInvalid, "a writer works on whole jobs only"};
}

}  // namespace aon::writers
