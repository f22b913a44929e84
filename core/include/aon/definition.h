/// Definitions: what the ids in records mean. They travel apart from the events (slot 0 of a ring,
/// the definition file of the spool), are small, and are never evicted.
///
/// A definition is a type and a payload: one of the structs below, then zero or more NUL-terminated
/// UTF-8 strings in the order given. Every payload read from a ring or a file is untrusted and
/// decoded by core/spool/definitions.h. Ids are local to the process (regions, communicators,
/// metrics); the writers unify them. Depends on nothing.
#pragma once

#include <cstdint>

namespace aon {

constexpr uint32_t kMaxDefinitionBytes =
    4096;  ///< of one payload from a ring; longer names are cut there

enum class DefinitionType : uint32_t {
  kNone = 0,
  // written by the process
  kRegion = 1,            ///< RegionDefinition, name
  kCommunicator = 2,      ///< CommunicatorDefinition, name (may be empty)
  kCommunicatorName = 3,  ///< IdDefinition, name
  kCommunicatorFree = 4,  ///< IdDefinition
  kIdentity = 5,          ///< IdentityDefinition: rank and world as MPI says after MPI_Init
  kProvider = 6,          ///< ProviderDefinition, name, reason, remedy
  kMetric = 7,            ///< MetricDefinition, name, unit, description
  kWindow = 8,            ///< WindowDefinition, name (may be empty)
  kWindowName = 9,        ///< IdDefinition, name
  kWindowFree = 10,       ///< IdDefinition
  kGroup = 11,            ///< GroupDefinition, then its members: world ranks, u32 each
  kFile = 12,             ///< FileDefinition, name of the file
  kFileClose = 13,        ///< IdDefinition
  kThreadName = 14,       ///< IdDefinition with a thread id of the system, name
  kDevice = 15,           ///< DeviceDefinition, name, address on its bus ("" unknown)
  kDeviceStream = 16,     ///< DeviceStreamDefinition, name (may be empty)
  kCartesian = 17,        ///< CartesianDefinition, then its extents: u32 for each dimension
  kNeighbors = 18,        ///< NeighborsDefinition, then the sources: ranks in it, u32 each
  kNcclSums = 19,         ///< NcclSumsDefinition, then counts: u64 each; the latest one counts
  // written by the agent
  kNode = 32,          ///< NodeDefinition, host name, launch id
  kProcessStart = 33,  ///< ProcessStartDefinition, program, host name
  kProcessExit = 34,   ///< ProcessExitDefinition
  kClock = 35,         ///< ClockDefinition: one pairing of the clocks
  kStream = 36,        ///< StreamDefinition: state of one stream; the latest one counts
  kCounts = 37,    ///< CountsDefinition: exact number of calls of one region; the latest one counts
  kEviction = 38,  ///< LossDefinition, reason kEvictedByCap and all other losses the agent knows
  kTopology = 39,  ///< hwloc XML of the node
  kBinding = 40,   ///< cpuset list of the process, as in /proc/PID/status Cpus_allowed_list
  kBudget = 41,    ///< BudgetDefinition: a change of one mode word
  kUsage = 42,     ///< UsageDefinition: measured cost; the latest one counts
  kMapping = 43,   ///< MappingDefinition, path: what lies behind addresses of call paths
  kCallPaths = 44,  ///< CallPathsDefinition, then CallPathNode[count]
  kTaskName = 45,   ///< TaskNameDefinition, name that the kernel has; the latest one counts
  kSampling = 46,   ///< SamplingDefinition, name of the event; from its time on
  kJitSymbol = 47,  ///< JitSymbolDefinition, name: code made at run time
  kClockPing = 48,  ///< ClockPingDefinition, name of the peer's spool folder
  kOpenCall = 49,   ///< OpenCallDefinition: a call that does not return; a thread's latest counts
  kStack = 50,      ///< StackDefinition, frames, remark: where a thread stands; its latest counts
};

enum class RegionRole : uint8_t {
  kFunction = 0,
  kPointToPoint,
  kBarrier,
  kOneToAll,
  kAllToOne,
  kAllToAll,
  kCollectiveOther,
  kRma,
  kFileIo,
  kUser,
  kStep,  ///< one iteration of the program; kBegin has its number
};
enum class Paradigm : uint8_t { kUser = 0, kMpi, kCuda, kNccl, kAon, kNvtx };

struct RegionDefinition {
  uint32_t id;
  RegionRole role;
  Paradigm paradigm;
  uint16_t flags;
};
enum class CommunicatorKind : uint8_t { kWorld = 0, kSelf, kIntra, kInter, kNccl };

/// Communicators of NCCL have ids from here on; a process has one space of them.
constexpr uint32_t kFirstNcclCommunicator = 0x40000000u;

/// One communicator as one member sees it. No member writes the list of members: each gives its own
/// place, and the reader joins them by `identity`, which all members compute alike without
/// communicating: hash(identity of the parent, number of creations on the parent so far, world rank
/// of the new rank 0).
struct CommunicatorDefinition {
  uint64_t identity;
  uint32_t id;
  uint32_t parent_id;
  uint32_t size;
  uint32_t rank;  ///< of this process in it
  CommunicatorKind kind;
  uint8_t reserved[7];
};

/// Cartesian topology of a communicator. Ranks lie in it in row-major order, the last dimension
/// fastest (MPI-4.1, 8.2), so a rank's coordinates follow from the extents.
struct CartesianDefinition {
  uint32_t communicator_id;
  uint32_t dimension_count;
  uint32_t periodic;  ///< bit i: dimension i is a ring
};
constexpr uint32_t kMaxCartesianDimensions = 32;

/// Whose data this process gets in neighbourhood collectives of a communicator (MPI-4.1, 8.6), told
/// with the first of them; without processes that are none (MPI_PROC_NULL). One with more
/// neighbours than have room tells nothing.
struct NeighborsDefinition {
  uint32_t communicator_id;
  uint32_t source_count;
};
constexpr uint32_t kMaxNeighbors =
    (kMaxDefinitionBytes - sizeof(NeighborsDefinition)) / sizeof(uint32_t);

/// Operations of NCCL whose records were refused so far, of one communicator, function and size.
/// Behind it the numbers of those whose time on the GPU is known and lies in bucket `first_bucket`
/// (of 2^b ns) and those that follow.
struct NcclSumsDefinition {
  uint32_t communicator_id;
  uint32_t region_id;
  uint8_t log2_bytes;
  uint8_t first_bucket;
  uint8_t bucket_count;
  uint8_t reserved;
  uint32_t
      in_flight_count;  ///< of `count`: whose kNcclInFlight record was taken; UINT32_MAX: or more
  uint64_t count;
  uint64_t bytes;
  uint64_t host_ns;      ///< from the calls to the last events
  uint64_t timed_count;  ///< whose time on the GPU is known; below, of these
  uint64_t timed_bytes;
  uint64_t gpu_ns;
  uint64_t min_ns;
  uint64_t max_ns;
};
static_assert(sizeof(NcclSumsDefinition) == 80);
constexpr uint32_t kNcclDurationBuckets = 40;  ///< the last one has all that are longer

enum class WindowFlavour : uint8_t { kCreate = 0, kAllocate, kShared, kDynamic };

/// One window of one-sided communication as one member sees it. Its members are those of the
/// communicator it was made on. `identity` joins the members' definitions and is computed alike by
/// all of them: hash(identity of the communicator, number of windows made on it so far).
struct WindowDefinition {
  uint64_t identity;
  uint32_t id;
  uint32_t communicator_id;
  WindowFlavour flavour;
  uint8_t reserved[7];
};

/// The processes a window is opened to or for (MPI_Win_start, MPI_Win_post), in the order of the
/// MPI group. Defined once per process and list. A group that is too large for one definition, or
/// has members of another world, gets none: id 0, which stands for all members of the window.
struct GroupDefinition {
  uint32_t id;
  uint32_t member_count;
};
constexpr uint32_t kMaxGroupMembers =
    (kMaxDefinitionBytes - sizeof(GroupDefinition)) / sizeof(uint32_t);

struct IdDefinition {
  uint32_t id;
};

/// An accelerator as one process sees it.
struct DeviceDefinition {
  uint32_t id;  ///< ordinal in the process
  uint32_t reserved;
  uint8_t uuid[16];  ///< all zero: unknown
};

/// A stream (CUDA) of an accelerator: its work is one location. Without a device it is work of the
/// host that has to do with accelerators, such as the calls of one thread; the name says what.
struct DeviceStreamDefinition {
  uint32_t id;  ///< in records; never used again
  uint32_t device;
  uint32_t context;  ///< the driver's numbers
  uint32_t stream;   ///< without a device: the thread's id, or 0
};
constexpr uint32_t kNoDevice = 0xffffffffu;

/// How a file was opened; the values are ours, every MPI library has its own. Neither kFileReads
/// nor kFileWrites: it was not opened, only named (a deletion).
enum FileMode : uint32_t {
  kFileReads = 1 << 0,
  kFileWrites = 1 << 1,
  kFileCreates = 1 << 2,
  kFileIsNew = 1 << 3,  ///< must not exist before
  kFileDeletedOnClose = 1 << 4,
  kFileIsUnique = 1 << 5,  ///< nobody else has it open
  kFileIsSequential = 1 << 6,
  kFileAppends = 1 << 7,
  kFileOpenedUnseen = 1 << 8,  ///< while nothing was recorded: no record says that it was opened
};

/// One open file as one process sees it. All members of the communicator compute the same
/// `identity`: hash(identity of the communicator, number of files opened on it so far, access mode)
/// that the reader joins them by. Each may spell the name in its own way; the lowest rank's counts.
struct FileDefinition {
  uint64_t identity;
  uint32_t id;  ///< in records; never used again
  uint32_t communicator_id;
  uint32_t mode;  ///< FileMode
  uint32_t reserved;
};
struct IdentityDefinition {
  int32_t rank;
  uint32_t world_size;
  uint32_t complete;      ///< 1: MPI_Finalize was reached
  uint32_t thread_level;  ///< MPI_THREAD_* as provided, 0 to 3
};
enum class ProviderState : uint8_t { kOff = 0, kOn = 1, kDegraded = 2 };
struct ProviderDefinition {
  ProviderState state;
  uint8_t reserved[7];
};
enum class MetricMode : uint8_t { kAccumulated = 0, kAbsolute = 1 };
struct MetricDefinition {
  uint32_t id;
  MetricMode mode;
  uint8_t node_wide;  ///< 1: covers the node, not only this process
  uint16_t
      provider;  ///< index in order of the kProvider definitions of the same writer, informative
};
struct NodeDefinition {
  uint32_t format;        ///< spool format version
  uint32_t clock_is_tsc;  ///< 1: ticks are TSC; 0: ticks are ns of CLOCK_MONOTONIC_RAW
  uint64_t budget_millipercent;
  uint64_t disk_cap_bytes;
};
struct ProcessStartDefinition {
  uint32_t process;  ///< number of the process on its node; all other agent definitions use it
  int32_t pid;
  uint64_t start_time_ticks;  ///< field 22 of /proc/PID/stat: with pid and node the identity of a
                              ///< process
  uint64_t attach_ticks;      ///< clock ticks when it attached
  int32_t rank;               ///< from the environment; -1 none
  uint32_t world_size;        ///< 0 unknown
  uint32_t fallback;          ///< 1: recovered from a file that was written without an agent
  uint32_t reserved;
};
struct ProcessExitDefinition {
  uint32_t process;
  int32_t exit_code;  ///< -1 unknown
  int32_t signal;
  uint32_t reserved;
  uint64_t end_ticks;
  uint64_t memory_bytes;  ///< largest committed size of its ring
  uint64_t cpu_time_ns;   ///< of the process, user and system, when last read
};
struct ClockDefinition {
  uint64_t ticks;
  uint64_t monotonic_raw_ns;
  uint64_t realtime_ns;
  uint64_t
      bracket_ticks;  ///< width of the bracket around the pairing: the error is at most half of it
};
/// One exchange with the agent of another node, as measured: no estimate.
///
///     this node:  sent ----------------------------> received     in ticks of this node
///     the peer:            received -----> sent                   in ticks of the peer
struct ClockPingDefinition {
  uint64_t sent_ticks;
  uint64_t peer_received_ticks;
  uint64_t peer_sent_ticks;
  uint64_t received_ticks;
};
struct StreamDefinition {
  uint32_t process;
  uint16_t slot;     ///< of the ring; k = slot - 1. 0: definitions; no room on disk: `stream_cut`
  uint16_t context;  ///< 0 normal, 1 nested (signal handlers inside an emit)
  int32_t tid;       ///< of the thread that used it last
  uint32_t thread_count;
  uint64_t committed;   ///< counted records the agent has taken so far
  uint64_t refused;     ///< by the writer: pool full
  uint64_t stream_cut;  ///< records known to exist behind a place that did not validate
  uint64_t first_refused_ticks;
  uint64_t last_refused_ticks;
};
struct CountsDefinition {
  uint32_t process;
  uint32_t slot;
  uint32_t region;
  uint32_t reserved;
  uint64_t call_count;  ///< all calls through counted sites of this region, timed or not
};
struct LossDefinition {
  uint32_t process;
  uint16_t slot;
  uint16_t context;
  uint32_t reason;  ///< LossReason
  uint32_t reserved;
  uint64_t first_sequence;
  uint64_t count;
  uint64_t start_ticks;
  uint64_t end_ticks;
};
struct BudgetDefinition {
  uint32_t process;
  uint32_t site;
  uint32_t old_mode;
  uint32_t new_mode;
  uint64_t ticks;
};
/// Executable memory of a process: a mapped file, or "[vdso]" and the like without a build-id.
/// Defined when the first call path goes through it.
struct MappingDefinition {
  uint32_t process;
  uint32_t id;
  uint64_t start;  ///< addresses, as mapped when it was defined
  uint64_t end;
  uint64_t file_offset;  ///< of `start`
  uint8_t build_id_bytes;
  uint8_t build_id[20];
  uint8_t reserved[3];
};
constexpr uint32_t kNoMapping = 0xffffffffu;  ///< a CallPathNode there has an address as offset

/// New nodes of the tree of call paths of a process: node i has the id `first_id` + i.
struct CallPathsDefinition {
  uint32_t process;
  uint32_t first_id;
  uint32_t count;
  uint32_t reserved;
};
/// A frame below its caller. The offset is that of the instruction in the file of the mapping; of a
/// caller it lies inside the call instruction (return address - 1).
struct CallPathNode {
  uint32_t parent;  ///< kNoCallPath: outermost
  uint32_t mapping;
  uint64_t offset;
};
constexpr uint32_t kNoCallPath = 0xffffffffu;

/// Of addresses that lie in no file, from the compiler's /tmp/perf-PID.map.
struct JitSymbolDefinition {
  uint32_t process;
  uint32_t reserved;
  uint64_t start;
  uint64_t end;
};
struct TaskNameDefinition {
  uint32_t process;
  int32_t tid;
};
enum class SamplingSource : uint32_t { kCycles = 0, kCpuClock, kTimer };
/// How a process is sampled from `ticks` on. Periods are in ns but for kCycles.
struct SamplingDefinition {
  uint32_t process;
  SamplingSource source;
  uint32_t rate_hz;  ///< per thread and second of CPU time; 0 none
  uint32_t reserved;
  uint64_t ticks;
};
/// The outermost call of a thread, once it has been open for as long as --hang says. It may have
/// returned since: then its record follows.
struct OpenCallDefinition {
  uint32_t process;
  uint16_t slot;
  uint16_t reserved;
  int32_t tid;
  uint32_t region;
  uint32_t communicator;
  uint32_t reserved2;
  uint64_t peer_tag;  ///< as in the record that the call will make
  uint64_t bytes;
  uint64_t start_ticks;
};
/// Where a thread of the host stands that has been in one call, or whose process has recorded
/// nothing, for as long as --hang says. Frames are lines "path+0xoffset" (in its file), innermost
/// first; where there are none, the remark says why.
struct StackDefinition {
  uint32_t process;
  int32_t tid;
  uint64_t ticks;        ///< when it was taken
  uint64_t quiet_ticks;  ///< the process has recorded nothing since then; 0: it has
};
struct UsageDefinition {
  uint64_t agent_cpu_ns;
  uint64_t ranks_cpu_ns;
  uint64_t application_cost_ns;  ///< records of each kind, and counted calls, times their cost
  uint64_t segment_bytes;        ///< rings now
  uint64_t staging_bytes;
  uint64_t agent_resident_bytes;
  uint64_t disk_used_bytes;
  uint64_t ticks;
};

}  // namespace aon
