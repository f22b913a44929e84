/// What the plugin knows in one process: communicators, their operations in flight, and what each
/// thread has open. All of it lies in memory that the kernel wipes in a fork()ed child, as the
/// runtime's own does: there the process's tag is 0, so that every handle of the parent is foreign,
/// and the child's first init begins anew.
///
///     operation:  free --start of call or work--> live --last event, eviction--> free,
///                                                                           generation + 1
///
/// Slots of a communicator are taken in turn, of few at first. One that is still live when its turn
/// comes holds a call whose work never came, and is committed as it is when its group is long over;
/// otherwise there are more in flight, and twice as many slots are used from there on.
///
/// Thread: init and finalize are serialized by a mutex; callbacks only use atomics.
/// Owner: nobody frees it; a communicator's memory serves the next one at its place.
#pragma once

#include <aon/nccl.h>
#include <aon/ring.h>
#include <aon/writer.h>

#include <atomic>
#include <cstdint>

#include "nccl/gpu_order.h"
#include "nccl/handle.h"
#include "nccl/interface.h"
#include "nccl/level.h"
#include "nccl/refused.h"
#include "nccl/words.h"

namespace aon::nccl {

/// Bits of Operation::control above its generation.
constexpr uint64_t kLive = uint64_t{1} << 32;
constexpr uint64_t kApiOpen = uint64_t{1} << 33;      ///< its call has not returned
constexpr uint64_t kHasWork = uint64_t{1} << 34;      ///< Coll or P2p began
constexpr uint64_t kWorkDone = uint64_t{1} << 35;     ///< and ended
constexpr uint64_t kWaitsForGpu = uint64_t{1} << 36;  ///< channels will tell their times
constexpr uint64_t kChannelsDone = uint64_t{1} << 37;
constexpr uint64_t kClaimed = uint64_t{1} << 38;       ///< one thread's alone (slots.h)
constexpr uint64_t kAbandoned = uint64_t{1} << 40;     ///< is_abandoned() when nothing more is told
constexpr uint64_t kToldInFlight = uint64_t{1} << 41;  ///< its record in flight was taken
constexpr uint64_t kTimesOverwritten = uint64_t{1} << 42;

/// An operation in flight: 96 bytes, the record in the making. Shared: whoever gets the events of
/// its parts; all fields are atomic, `control` publishes the others.
struct Operation {
  std::atomic<uint64_t> control;  ///< bits above, generation in the low 32
  std::atomic<uint64_t> start_ticks;
  std::atomic<uint64_t> end_ticks;  ///< of the last event
  std::atomic<uint64_t> bytes;
  std::atomic<uint64_t> sequence;
  std::atomic<uint64_t> shape;  ///< word 1 of the record
  std::atomic<uint64_t> launch_ticks;
  std::atomic<uint64_t> peer_flags;      ///< word 5
  std::atomic<uint64_t> channels;        ///< bits of those that are done
  std::atomic<uint64_t> gpu_first_ns;    ///< begin of the first channel; 0 none
  std::atomic<uint32_t> gpu_skew_ns;     ///< from there to the begin of the last one
  std::atomic<uint32_t> function_group;  ///< low 8 bits: Function; the others: group_count
  std::atomic<uint64_t> gpu_end_ns;
};
static_assert(sizeof(Operation) == 96);

/// Where the GPU's timer stands against the clock (gpu_clock.h).
struct GpuClock {
  uint64_t base_ns;
  int64_t base_ticks;  ///< that base_ns is at
  double ticks_per_ns;
};

/// What the thread that tells of channels publishes for the others: odd while it writes.
struct SharedGpuClock {
  std::atomic<uint32_t> sequence;
  std::atomic<uint64_t> base_ns;
  std::atomic<int64_t> base_ticks;
  std::atomic<double> ticks_per_ns;
};

struct Communicator {
  // Written by init, constant while the communicator lives.
  std::atomic<uint32_t> generation;  ///< low bits of a kCommunicator handle; odd: lives
  uint32_t id;                       ///< in records
  uint32_t rank_count;               ///< 0: unknown
  int32_t rank;
  int version;
  bool waits_for_gpu;            ///< where the level has channels
  std::atomic<int*> mask;        ///< its NCCL's; null when it is gone
  Operation* operations;         ///< kMaxOperations; stays when the communicator goes
  std::atomic<uint64_t>* sends;  ///< by peer; null: unknown size
  std::atomic<uint64_t>* receives;
  uint32_t peer_capacity;  ///< of both; they stay when the communicator goes
  // Shared.
  alignas(64) std::atomic<uint32_t> next_slot;
  std::atomic<uint32_t> slot_count;  ///< in use; a power of two
  std::atomic<uint64_t> call_count;
  std::atomic<uint32_t> group_count;
  std::atomic<const void*> group;      ///< the last one that it had a call in
  std::atomic<uint64_t> done_count;    ///< one more than the last call whose channels are over
  std::atomic<bool> tells_channels;    ///< any channel ever began
  std::atomic<uint64_t> launch_ticks;  ///< of its last KernelLaunch
  std::atomic<uint64_t> copied[kFunctionCount];  ///< collectives by copy engines
  WordCache words;
  SharedGpuClock gpu_shared;
  // The thread that tells of channels.
  GpuClock gpu;
  uint64_t gpu_window_ticks;  ///< when the window of gpu_lowest began
  int64_t gpu_lowest;
  GpuOrder gpu_order;
  CallRange overwritten;  ///< not yet written
};

/// By slot of the thread's writer. Owner: that thread.
struct ThreadState {
  uint32_t tid;
  void* group;             ///< whose end is open as a region
  const Annotation* call;  ///< that is open
  const void* handle;      ///< of that
};

constexpr uint32_t kMaxProxies = 4096;   ///< pieces of the proxies' work at a time
constexpr uint32_t kStepsInFlight = 16;  ///< of a piece; NCCL has 8

/// A piece of a proxy's work: one operation on one channel. Its own are all fields but `control`
/// and `network_events`: one proxy thread tells it, the slot's control hands it on.
struct Proxy {
  struct Step {
    uint64_t start_ticks;  ///< 0: none
    uint64_t state_ticks;  ///< since when it is in `state`
    int32_t state;
    uint32_t number;
  };
  std::atomic<uint64_t> control;         ///< kLive, kClaimed, the generation in the low 32 bits
  std::atomic<uint32_t> network_events;  ///< since the last record
  uint32_t place;                        ///< of its communicator
  uint32_t communicator_id;              ///< its id, which the place's next one has not
  uint64_t call;
  int32_t peer;
  uint32_t planned_step_count;
  uint32_t chunk_bytes;
  uint8_t channel;
  bool is_send;
  bool has_steps;
  bool has_data;        ///< of a send: the GPU has given the first
  uint32_t step_count;  ///< since the last record, as all below
  uint64_t start_ticks;
  uint64_t bytes;
  uint64_t gpu_ticks;
  uint64_t peer_ticks;
  uint64_t network_ticks;
  uint64_t flush_ticks;
  uint64_t longest_ticks;
  Step steps[kStepsInFlight];
};

constexpr uint32_t kMaxSeen = 16384;  ///< ids that are told from their repetitions

struct State {
  struct Seen {
    uint64_t id;
    int32_t rank;
    uint32_t count;
  };
  std::atomic<uint32_t> process;           ///< tag in handles; 0: not begun in this process
  std::atomic<uint64_t> unplaced;          ///< operations of no communicator that we know
  std::atomic<uint64_t> crowded_out;       ///< committed early, for all slots were taken
  std::atomic<uint64_t> foreign;           ///< pieces of proxies' work for other processes (PXN)
  std::atomic<uint64_t> proxies_left_out;  ///< beyond kMaxProxies
  std::atomic<uint64_t> overwritten;       ///< operations told with times of later ones
  // The level: written under the mutex at init, and by whoever sees that its mode word changed.
  std::atomic<Level> level;           ///< kOff: nothing is recorded
  std::atomic<uint32_t> heeded_mode;  ///< the word that it is of
  std::atomic<bool> has_uncounted;    ///< the host's and the GPU's numbers of works differ
  std::atomic<bool> has_proxy_sites;  ///< regions of records at gpu and above are defined
  NcclLimits limits;                  ///< from the first communicator on
  int version;                        ///< that these are of
  int32_t pid;
  uint64_t base_ticks;  ///< a pair of clocks, from the first init on
  uint64_t base_raw_ns;
  uint32_t communicator_count;        ///< so far
  std::atomic<uint32_t> place_count;  ///< of `communicators`
  std::atomic<uint32_t> live_count;   ///< communicators that are there now
  uint64_t refused;                   ///< communicators without a place
  uint32_t seen_count;
  Seen seen[kMaxSeen];
  ThreadState threads[kMaxThreadSlots];
  std::atomic<uint32_t> next_proxy;
  Proxy proxies[kMaxProxies];
  std::atomic<bool> has_refused;
  std::atomic<uint64_t> refused_unsummed;  ///< of these, for which there was no row
  RefusedSums refused_sums[kMaxRefusedSums];
  Communicator communicators[kMaxCommunicators];
};

/// Memory of its own that a child of fork() finds empty; null without room.
void* map_wiped(size_t bytes);

/// A number other than 0 for this process, of 16 bits: another in each.
uint32_t make_tag(uint64_t now_ns);

/// The state, or null before the first init of the first process.
extern State* g_state;

/// What init was told.
struct CommunicatorFacts {
  uint64_t id;  ///< 0: unknown
  const char* name;
  uint32_t node_count;  ///< 0: unknown
  uint32_t rank_count;
  int32_t rank;
  int version;
};

/// Adds a communicator, tells the ledger, and returns its handle; null with an unchanged mask when
/// nothing is recorded.
/// Thread: any.   Signal: no.   Cost: some us; locks, maps memory.
void* add_communicator(const CommunicatorFacts& facts, int* mask);

/// Heeds what the agent says of the level, for the budget or the user.
/// Thread: any.   Cost: two loads; some ns more when it changed, some us when channels are asked
/// for the first time.
void heed_mode(State& state, uint32_t mode);
inline void heed_level(State& state, const Writer* w) {
  const uint32_t mode = w->modes[state.limits.site()].load(std::memory_order_relaxed);
  if (AON_UNLIKELY(mode != state.heeded_mode.load(std::memory_order_relaxed)))
    heed_mode(state, mode);
}

/// Works of a channel that NCCL numbers on the host other than on the GPU: from here on channels do
/// not begin any more (NcclLimits::counts_differ).
/// Thread: any.   Cost: a load; once some us.
void begin_uncounted(State& state);
inline void note_uncounted(State& state) {
  if (AON_UNLIKELY(!state.has_uncounted.load(std::memory_order_relaxed))) begin_uncounted(state);
}

/// What the level asks the first NCCL for: bits of its mask.
int own_mask();

/// Commits what is in flight and gives the place free. Handles of others do nothing.
void remove_communicator(void* context);

/// The communicator of a context, or null.
inline Communicator* communicator_of(const void* context) {
  State* state = g_state;
  const Handle handle = Handle::of(context);
  if (state == nullptr || handle.process == 0 || handle.role != Role::kCommunicator) return nullptr;
  if (handle.process != state->process.load(std::memory_order_acquire))
    return nullptr;  // pairs with nccl:state
  Communicator& found = state->communicators[handle.communicator];
  const uint32_t generation =
      found.generation.load(std::memory_order_acquire);  // pairs with nccl:communicator
  return (generation & kGenerationMask) == handle.generation ? &found : nullptr;
}

}  // namespace aon::nccl
