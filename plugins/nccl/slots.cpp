#include "nccl/slots.h"

#include <aon/annotation.h>
#include <time.h>

#include "nccl/gpu_clock.h"

namespace aon::nccl {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr uint32_t kAlgorithmShift = 40;
constexpr uint32_t kProtocolShift = 48;

void store_gpu_words(Communicator& communicator, const Operation& from, uint64_t control,
                     uint64_t (&words)[7]) {
  if ((control & kWaitsForGpu) == 0) return;
  const uint64_t first_ns = from.gpu_first_ns.load(kRelaxed);
  const uint64_t end_ns = from.gpu_end_ns.load(kRelaxed);
  uint32_t flags = 0;
  if ((control & kAbandoned) != 0) {
    words[5] |= uint64_t{kNcclInFlight | kNcclAbandoned} << 32;
    return;
  }
  if ((control & kTimesOverwritten) != 0) {
    words[5] |= uint64_t{kNcclOverwritten} << 32;
    return;
  }
  if ((control & kChannelsDone) == 0) flags |= kNcclMissedChannels;
  if (first_ns != 0 && end_ns >= first_ns) {
    flags |= kNcclGpuTimed;
    const GpuClock clock = read_clock(communicator.gpu_shared);
    words[3] = gpu_ticks(clock, first_ns);
    words[4] = gpu_ticks(clock, end_ns) - words[3];
    words[6] = gpu_ticks(clock, first_ns + from.gpu_skew_ns.load(kRelaxed)) - words[3];
  } else {
    flags |= kNcclMissedChannels;
  }
  words[5] |= uint64_t{flags} << 32;
}

void put_record(Communicator& communicator, const Operation& from, uint64_t control) {
  const Function function = static_cast<Function>(from.function_group.load(kRelaxed) & 0xff);
  const Annotation* region = region_of(function);
  Writer* w = annotation_writer(region, RecordKind::kNcclCall);
  if (AON_UNLIKELY(w == nullptr)) return;
  const uint64_t start = from.start_ticks.load(kRelaxed);
  const uint64_t end = from.end_ticks.load(kRelaxed);
  const uint64_t duration = end > start ? end - start : 0;
  uint64_t words[7] = {from.sequence.load(kRelaxed),
                       from.shape.load(kRelaxed),
                       from.launch_ticks.load(kRelaxed),
                       0,
                       0,
                       from.peer_flags.load(kRelaxed),
                       0};
  if ((control & kHasWork) == 0) words[5] |= uint64_t{kNcclNoWork} << 32;
  store_gpu_words(communicator, from, control, words);
  const bool is_wide = duration >> 32 != 0;
  const bool is_told = emit(w, kNcclSlots, true, end, [&](char* at) {
    auto* head = reinterpret_cast<RecordHead*>(at);
    *head = RecordHead{start,
                       static_cast<uint32_t>(duration),
                       RecordKind::kNcclCall,
                       kNcclSlots,
                       static_cast<uint16_t>(is_wide ? kWideDuration : 0),
                       region->id,
                       communicator.id,
                       from.bytes.load(kRelaxed)};
    uint64_t* out = reinterpret_cast<uint64_t*>(head + 1);
    for (uint32_t i = 0; i < 7; ++i) out[i] = words[i];
    out[7] = is_wide ? duration : 0;
  });
  if (AON_LIKELY(is_told)) return;
  const bool is_told_in_flight = (control & kToldInFlight) != 0;
  if (is_told_in_flight && (control & kAbandoned) != 0) return;  // in flight it was to its end
  const bool is_timed = (words[5] >> 32 & kNcclGpuTimed) != 0;
  const uint64_t gpu_ns = from.gpu_end_ns.load(kRelaxed) - from.gpu_first_ns.load(kRelaxed);
  add_refused(*g_state, {communicator.id, function, from.bytes.load(kRelaxed), duration,
                         is_timed ? gpu_ns : kNoGpuTime, is_told_in_flight});
}

constexpr uint32_t kGroupShift = 8;  ///< in function_group
constexpr uint32_t kGroupMask = GpuOrder::kGroupMask;
constexpr uint32_t kPatienceGroups = 64;       ///< then no work comes any more for a call
constexpr uint32_t kGpuPatienceGroups = 4096;  ///< then no time of a channel comes any more

/// A call of a group that is long over.
bool is_overdue(const Communicator& communicator, const Operation& operation, uint64_t control) {
  const bool has_work = (control & kHasWork) != 0;
  if (has_work && (control & kWorkDone) == 0) return false;
  const uint32_t age = (communicator.group_count.load(kRelaxed) - group_of(operation)) & kGroupMask;
  return age > (has_work ? kGpuPatienceGroups : kPatienceGroups);
}

/// Takes a free slot, with its generation; another thread may have been faster. Until it is live
/// nobody else touches it. seq_cst: who removes the communicator sees the slot as taken, or whoever
/// took it that the communicator is gone.
bool claim(Operation& operation, uint64_t* generation) {
  uint64_t control = operation.control.load(kRelaxed);
  if ((control & (kLive | kClaimed)) != 0) return false;
  *generation = control;
  return operation.control.compare_exchange_strong(control, control | kClaimed,
                                                   std::memory_order_seq_cst,  // seq_cst: above
                                                   kRelaxed);
}

/// Doubles the slots in use; the next one taken is the first new one.
void grow(Communicator& communicator) {
  uint32_t count = communicator.slot_count.load(kRelaxed);
  if (count >= kMaxOperations) return;
  // seq_cst: before a claim of what is new
  if (communicator.slot_count.compare_exchange_strong(count, count * 2, std::memory_order_seq_cst,
                                                      kRelaxed)) {
    communicator.next_slot.store(count, kRelaxed);
  }
}

/// The next slot, claimed: a call that never had work is committed first, and anything else when
/// there is no room for more.
Operation& take_slot(Communicator& communicator, uint32_t* slot, uint64_t* generation) {
  for (;;) {
    const uint32_t mask = communicator.slot_count.load(kRelaxed) - 1;
    *slot = communicator.next_slot.fetch_add(1, kRelaxed) & mask;
    Operation& operation = communicator.operations[*slot];
    if (AON_LIKELY(claim(operation, generation))) return operation;
    const uint64_t control = operation.control.load(kRelaxed);
    if ((control & kLive) == 0) continue;  // somebody else is taking it, or writing its record
    const bool is_early = !is_overdue(communicator, operation, control);
    if (is_early && communicator.slot_count.load(kRelaxed) < kMaxOperations) {
      grow(communicator);
    } else if (commit(communicator, operation, control & kGenerationMask)) {
      if (is_early) g_state->crowded_out.fetch_add(1, kRelaxed);
      if (claim(operation, generation)) return operation;
    }
  }
}

}  // namespace

bool set_bits(Operation& operation, uint32_t generation, uint64_t bits, uint64_t* control) {
  uint64_t now = operation.control.load(std::memory_order_acquire);  // pairs with nccl:control
  do {
    if (!is_of(now, generation) || (now & bits) != 0) return false;
  } while (!operation.control.compare_exchange_weak(
      now, now | bits,
      std::memory_order_acq_rel,  // pairs with nccl:control
      std::memory_order_acquire));
  *control = now | bits;
  return true;
}

uint64_t shape_of(const Facts& facts, uint64_t call) {
  return uint64_t{facts.channels} << kChannelShift |
         uint64_t{static_cast<uint8_t>(facts.algorithm)} << kAlgorithmShift |
         uint64_t{static_cast<uint8_t>(facts.protocol)} << kProtocolShift |
         uint64_t{static_cast<uint8_t>(facts.type)} << kTypeShift | (call & UINT32_MAX);
}

void note_done(Communicator& communicator, const Operation& operation) {
  const uint64_t done = call_of(operation) + 1;
  uint64_t known = communicator.done_count.load(kRelaxed);
  while (known < done && !communicator.done_count.compare_exchange_weak(known, done, kRelaxed)) {
  }
}

bool is_abandoned(const Communicator& communicator, const Operation& operation, uint64_t control) {
  constexpr uint64_t kUnderWay = kHasWork | kWaitsForGpu;
  if ((control & (kUnderWay | kChannelsDone)) != kUnderWay) return false;
  return communicator.tells_channels.load(kRelaxed) && operation.channels.load(kRelaxed) == 0 &&
         call_of(operation) >= communicator.done_count.load(kRelaxed);
}

bool commit(Communicator& communicator, Operation& operation, uint32_t generation) {
  uint64_t control = operation.control.load(std::memory_order_acquire);  // pairs with nccl:control
  do {
    if (!is_of(control, generation)) return false;
  } while (!operation.control.compare_exchange_weak(
      control, (control & 0xffffffffu) | kClaimed,
      std::memory_order_acq_rel,  // pairs with nccl:control
      std::memory_order_acquire));
  put_record(communicator, operation, control);
  operation.control.store((control + 1) & 0xffffffffu,
                          std::memory_order_release);  // pairs with nccl:control
  return true;
}

bool put_in_flight(Communicator& communicator, const Operation& operation, uint32_t generation) {
  const Function function = static_cast<Function>(operation.function_group.load(kRelaxed) & 0xff);
  const Annotation* region = region_of(function);
  Writer* w = annotation_writer(region, RecordKind::kNcclCall);
  if (AON_UNLIKELY(w == nullptr)) return false;
  const uint64_t start = operation.start_ticks.load(kRelaxed);
  const uint64_t end = operation.end_ticks.load(kRelaxed);
  const uint64_t bytes = operation.bytes.load(kRelaxed);
  const uint64_t words[4] = {operation.sequence.load(kRelaxed), operation.shape.load(kRelaxed),
                             operation.launch_ticks.load(kRelaxed),
                             operation.peer_flags.load(kRelaxed) | uint64_t{kNcclInFlight} << 32};
  // What was read is of this operation if it is still there.
  const uint64_t control =
      operation.control.load(std::memory_order_acquire);  // pairs with nccl:control
  if (!is_of(control, generation) || (control & kChannelsDone) != 0) return false;
  const uint64_t duration = end > start ? end - start : 0;
  return emit(w, kNcclInFlightSlots, true, end, [&](char* at) {
    auto* head = reinterpret_cast<RecordHead*>(at);
    const bool is_wide = duration >> 32 != 0;
    *head = RecordHead{start,
                       is_wide ? UINT32_MAX : static_cast<uint32_t>(duration),
                       RecordKind::kNcclCall,
                       kNcclInFlightSlots,
                       0,
                       region->id,
                       communicator.id,
                       bytes};
    uint64_t* out = reinterpret_cast<uint64_t*>(head + 1);
    for (uint32_t i = 0; i < 4; ++i) out[i] = words[i];
  });
}

bool put_overwritten(const Communicator& communicator, const Operation& operation) {
  const Function function = static_cast<Function>(operation.function_group.load(kRelaxed) & 0xff);
  const Annotation* region = region_of(function);
  Writer* w = annotation_writer(region, RecordKind::kNcclCall);
  if (AON_UNLIKELY(w == nullptr)) return false;
  const CallRange& calls = communicator.overwritten;
  const uint64_t now = ticks(w);
  return emit(w, kNcclOverwrittenSlots, true, now, [&](char* at) {
    *reinterpret_cast<RecordHead*>(at) = RecordHead{
        now, 0,          RecordKind::kNcclCall, kNcclOverwrittenSlots,
        0,   region->id, communicator.id,       calls.last << 32 | (calls.first & UINT32_MAX)};
  });
}

Handle open_operation(Communicator& communicator, uint32_t lives_as, const Facts& facts,
                      uint64_t now, uint64_t bits, Role role) {
  uint32_t slot;
  uint64_t generation;
  Operation& operation = take_slot(communicator, &slot, &generation);
  // seq_cst: with the claim of the slot, as there
  const uint32_t lives = communicator.generation.load(std::memory_order_seq_cst);
  if (AON_UNLIKELY((lives & kGenerationMask) != lives_as)) {
    operation.control.store(generation, std::memory_order_release);  // pairs with nccl:control
    g_state->unplaced.fetch_add(1, kRelaxed);
    return {};
  }
  const uint64_t call = communicator.call_count.fetch_add(1, kRelaxed);
  const uint32_t group = communicator.group_count.load(kRelaxed) & kGroupMask;
  operation.start_ticks.store(now, kRelaxed);
  operation.end_ticks.store(now, kRelaxed);
  operation.bytes.store(facts.count * type_bytes(facts.type), kRelaxed);
  operation.function_group.store(static_cast<uint8_t>(facts.function) | group << kGroupShift,
                                 kRelaxed);
  operation.sequence.store(facts.sequence, kRelaxed);
  operation.shape.store(shape_of(facts, call), kRelaxed);
  operation.launch_ticks.store(0, kRelaxed);
  operation.peer_flags.store(
      pack_pair(facts.peer, static_cast<int32_t>(facts.flags)) | call >> 32 << kNcclHighCallShift,
      kRelaxed);
  operation.channels.store(0, kRelaxed);
  operation.gpu_first_ns.store(0, kRelaxed);
  operation.gpu_skew_ns.store(0, kRelaxed);
  operation.gpu_end_ns.store(0, kRelaxed);
  operation.control.store(generation | kLive | bits,
                          std::memory_order_release);  // pairs with nccl:control
  const State& state = *g_state;
  return {state.process.load(kRelaxed),
          role,
          static_cast<uint32_t>(&communicator - state.communicators),
          slot,
          0,
          static_cast<uint32_t>(generation & kGenerationMask)};
}

uint32_t wait_for_claims(const Communicator& communicator) {
  constexpr timespec kPause = {0, 100'000};
  uint32_t pauses_left = 100;
  // seq_cst: after the communicator's generation, as the claims
  const uint32_t count = communicator.slot_count.load(std::memory_order_seq_cst);
  for (uint32_t i = 0; i < count; ++i) {
    const std::atomic<uint64_t>& control = communicator.operations[i].control;
    // seq_cst: as above
    while ((control.load(std::memory_order_seq_cst) & kClaimed) != 0 && pauses_left != 0) {
      nanosleep(&kPause, nullptr);
      --pauses_left;
    }
  }
  return count;
}

Operation* operation_at(const Handle& handle) {
  State* state = g_state;
  if (state == nullptr || handle.process == 0 || handle.process != state->process.load(kRelaxed)) {
    return nullptr;
  }
  Operation* operations = state->communicators[handle.communicator].operations;
  return operations == nullptr ? nullptr : operations + handle.slot;
}

}  // namespace aon::nccl
