/// The shared-memory protocol between one process and the agent of its node. Normative;
/// docs/concurrency.md explains it.
///
/// One sealed memfd per process, made, preallocated and sealed by the agent, mapped whole by both:
///
///     | RingHeader | mode words | thread slots | free map | chunk 0 | chunk 1 | ... | chunk n-1 |
///       4096 B       u32 each     192 B each     u64 each   4096 B each, one chain per stream
///
/// A stream is one thread slot and one writer context. Each has one writer and one reader:
///
///     writer                                            reader (agent, or finalize on a file)
///     fill the record behind `committed`
///     committed.store(bytes, release)  ---------------> committed.load(acquire)    ring:commit
///     chunk full: take a free bit (CAS, acquire) <----- free map fetch_or(release)   ring:free
///     init chunk; previous.next.store(c, release) ----> next.load(acquire)           ring:next
///     first chunk: first_chunk.store(c, release) -----> first_chunk.load(acquire)   ring:first
///
/// The reader loads `next` BEFORE `committed`: when `next` is set, `committed` is final. In the
/// other order records between the two loads are lost. After it moved to the next chunk it sets
/// the old chunk's bit in the free map.
///
///     chunk:  free --writer takes bit--> written --writer links next--> full --reader--> free
///     slot:   kIdle --thread's first event (CAS)--> kActive --thread exit--> kIdle
///
/// A thread that ends leaves its slot, chain and half-filled chunk to the next thread that starts:
/// a stream is a location, not a thread, and kThread records say who writes from here on. Slot 0
/// holds the definitions of the process, slot 1 is the main thread's.
///
/// Memory grows without the writer: the file has its full size from the start (a sparse memfd
/// costs nothing), the free map offers only the chunks that the agent has preallocated so far.
/// The reader trusts nothing here: it loads once, validates, copies, and keeps its own copy of the
/// geometry. A process killed at any instruction leaves every committed record readable.
/// Depends on nothing.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace aon {

constexpr uint64_t kRingMagic = 0x31676e6952'4e4f41ull;  ///< "AONRing1"
constexpr uint32_t kRingAbi = 1;
constexpr uint32_t kPageBytes = 4096;
constexpr uint32_t kChunkBytes = 4096;
constexpr uint32_t kNoChunk = 0xffffffffu;
constexpr uint32_t kMaxSites =
    1024;  ///< regions with an id below this are call sites: they have a mode word
constexpr uint32_t kMaxCounters =
    504;  ///< call sites below this can be counted: one chunk of u64 per thread
constexpr uint32_t kFirstDynamicRegion =
    kMaxSites;  ///< interned names (annotations) get ids from here on
constexpr uint32_t kAnnotationSite =
    kMaxSites - 1;  ///< its mode word has only kModePaused, for annotations
constexpr uint32_t kFirstAnnotationRegion = 16384;  ///< regions of annotations: from here on
constexpr uint32_t kMaxAnnotations = 8192;          ///< regions and counters of a process
constexpr uint32_t kMaxThreadSlots = 1024;
constexpr uint32_t kContexts =
    2;  ///< writer contexts per thread: normal, and inside an interrupted emit
constexpr uint32_t kOpenSpans = 4;  ///< nesting depth of calls that are shown as open
constexpr uint32_t kDefinitionSlot = 0;
constexpr uint32_t kMainThreadSlot = 1;

/// Mode word of a call site: 0 is not yet defined, else what its wrapper does.
enum SiteMode : uint32_t {
  kModeUndefined = 0,  ///< the first call defines the region and stores its default mode
  kModeFull = 1,       ///< every call is recorded
  kModeCount = 2,      ///< counted exactly, never timed
  /// And above: counted exactly, one in `mode - kModeSample + 1` calls timed, of very many fewer
  /// (sample_call() in aon/writer.h).
  kModeSample = 16,
  kModeOff = 1 << 30,  ///< and above: forwarded only
};
/// Set beside the mode while the application has paused the recording (MPI_Pcontrol(0)). The
/// process sets and clears it; the agent changes a mode by CAS, keeps this bit, and leaves a site
/// alone whose mode is kModeUndefined.
constexpr uint32_t kModePaused = 1u << 31;

struct alignas(64) ChunkHeader {
  /// Low half: bytes of records behind this header; high half: counted records among them. One
  /// store publishes both.
  std::atomic<uint64_t> committed;
  std::atomic<uint32_t> next;
  /// stream_owner(slot, context) of the writer; the first field stored when a chunk is taken.
  std::atomic<uint32_t> owner;
  uint64_t first_sequence;  ///< counted records committed to this stream before this chunk
  uint64_t chunk_sequence;  ///< number of this chunk in its stream, from 0
  uint64_t reserved[4];
};
static_assert(sizeof(ChunkHeader) == 64);
constexpr uint32_t kChunkCapacityBytes = kChunkBytes - sizeof(ChunkHeader);

constexpr uint32_t stream_owner(uint32_t slot, uint32_t context) {
  return 0x80000000u | slot << 8 | context;
}
constexpr uint32_t kCounterContext = 0xff;  ///< owner of a chunk of counters: no stream
constexpr uint32_t kStackContext = 0xfe;    ///< owner of a chunk of stacks (core/ring/stack_ring.h)
constexpr uint32_t kStackChunks = 3;        ///< of one thread

constexpr uint32_t committed_bytes(uint64_t committed) { return static_cast<uint32_t>(committed); }
constexpr uint32_t committed_count(uint64_t committed) {
  return static_cast<uint32_t>(committed >> 32);
}

/// A call that has been entered and not left. `start_ticks` is stored last on entry (release, tag
/// ring:open) and zeroed on exit after the commit, so a reader may see a call that is both open and
/// recorded: equal start means the same call.
struct OpenSpan {
  std::atomic<uint64_t> start_ticks;  ///< 0: none
  uint32_t region;
  uint32_t communicator;
  uint64_t peer_tag;
  uint64_t bytes;
};
static_assert(sizeof(OpenSpan) == 32);

struct StreamState {
  std::atomic<uint32_t> first_chunk;  ///< kNoChunk until the first record
  uint32_t reserved;
  std::atomic<uint64_t> refused;  ///< counted records for which there was no chunk
};

enum class SlotState : uint32_t { kIdle = 0, kActive = 1 };

struct alignas(64) ThreadSlot {
  std::atomic<uint32_t> state;  ///< SlotState
  std::atomic<uint32_t> tid;
  StreamState stream[kContexts];
  std::atomic<uint32_t>
      counter_chunk;  ///< chunk with kMaxCounters u64 (behind its header), or kNoChunk
  std::atomic<uint32_t> stack_chunk[kStackChunks];  ///< kNoChunk: its timer notes no stacks
  OpenSpan open[kOpenSpans];
};
static_assert(sizeof(ThreadSlot) == 192 && offsetof(ThreadSlot, open) == 56);

/// Why a process has a file of its own.
enum class NoAgent : uint32_t {
  kNoAnswer = 0,       ///< none in time, or none at all
  kOfAnotherUser = 1,  ///< what listens at AON_SOCKET is not this user's
  kUnsealed = 2        ///< its memory could have been cut off under the process
};

/// Who wrote a ring that no agent has seen.
struct ProcessIdentity {
  int32_t pid;
  int32_t rank;         ///< from the environment, -1 none
  uint32_t world_size;  ///< 0 unknown
  NoAgent no_agent;
  uint64_t start_time_ticks;  ///< field 22 of /proc/PID/stat
  char program[256];          ///< /proc/PID/exe, cut
};

/// One pairing of the clocks; the error is at most half of bracket_ticks.
struct ClockPair {
  uint64_t ticks;
  uint64_t monotonic_raw_ns;
  uint64_t realtime_ns;
  uint64_t bracket_ticks;
};

struct alignas(4096) RingHeader {
  uint64_t magic;
  uint32_t abi;
  uint32_t clock_is_tsc;  ///< 1: ticks are rdtsc; 0: ns of CLOCK_MONOTONIC_RAW
  uint32_t slot_count;
  uint32_t chunk_count;
  uint64_t modes_offset;
  uint64_t slots_offset;
  uint64_t free_map_offset;
  uint64_t chunks_offset;
  uint64_t total_bytes;
  uint32_t process;  ///< number of the process on its node
  uint32_t launch_flags;
  ProcessIdentity identity;  ///< only in a file written without an agent
  ClockPair clock_first;     ///< the same: at attach
  ClockPair clock_last;      ///< and when the last chunk was taken
  alignas(
      64) std::atomic<uint32_t> slots_used;  ///< slots below this have been active at least once
  std::atomic<uint64_t> refused_no_slot;     ///< records of threads for which there was no slot
  alignas(64) std::atomic<uint32_t> paused;  ///< MPI_Pcontrol(0): providers record nothing
  /// Stacks per second of CPU time that timers note, plus 1; 0: as many as the process was told.
  std::atomic<uint32_t> stack_rate;
  std::atomic<uint32_t> crash_place;  ///< of a fault in AON's own code (aon/crash.h); 0: none
  /// Who takes this chunk or one behind it rings (aon/bell.h): half of what the agent last saw free
  /// is used. 0: nobody.
  std::atomic<uint32_t> wake_chunk;
  /// Only in a file written without an agent: core/runtime/launch_mark.h; 0: not known.
  uint64_t launch_mark;
};
static_assert(sizeof(RingHeader) == kPageBytes);
static_assert(std::atomic<uint64_t>::is_always_lock_free &&
              std::atomic<uint32_t>::is_always_lock_free);

/// Offsets and sizes of a ring of `chunk_count` chunks. The agent computes it, the header only
/// repeats it.
struct RingGeometry {
  uint32_t slot_count = 0;
  uint32_t chunk_count = 0;
  uint64_t modes_offset = 0;
  uint64_t slots_offset = 0;
  uint64_t free_map_offset = 0;
  uint64_t chunks_offset = 0;
  uint64_t total_bytes = 0;
};

constexpr uint64_t round_up(uint64_t value, uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

constexpr RingGeometry ring_geometry(uint32_t slot_count, uint32_t chunk_count) {
  RingGeometry g;
  g.slot_count = slot_count;
  g.chunk_count = chunk_count;
  g.modes_offset = sizeof(RingHeader);
  g.slots_offset = round_up(g.modes_offset + kMaxSites * sizeof(uint32_t), kPageBytes);
  g.free_map_offset =
      round_up(g.slots_offset + uint64_t{slot_count} * sizeof(ThreadSlot), kPageBytes);
  g.chunks_offset = round_up(g.free_map_offset + round_up(chunk_count, 64) / 8, kPageBytes);
  g.total_bytes = g.chunks_offset + uint64_t{chunk_count} * kChunkBytes;
  return g;
}

}  // namespace aon
