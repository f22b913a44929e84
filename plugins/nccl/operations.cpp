#include "nccl/operations.h"

#include <aon/annotation.h>

#include "nccl/facts.h"
#include "nccl/gpu_clock.h"
#include "nccl/proxy.h"
#include "nccl/regions.h"
#include "nccl/slots.h"

namespace aon::nccl {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

/// kGroup... bits as they are now: whether NCCL's mask has channels, for whomever (a chained
/// plugin, RAS from NCCL 2.31 on), and whether our level has them as well.
uint32_t asked_for(const Communicator& communicator) {
  const State& state = *g_state;
  const int* mask = communicator.mask.load(kRelaxed);
  if (mask == nullptr) return 0;
  const auto events = static_cast<uint64_t>(__atomic_load_n(mask, __ATOMIC_RELAXED));
  if ((events & kKernelChannel) == 0) return 0;
  const bool is_ours = communicator.waits_for_gpu && state.level.load(kRelaxed) >= Level::kGpu;
  return is_ours ? kGroupCounts | kGroupAsksGpu : kGroupCounts;
}

/// What of it was so when the group began, too, which is when NCCL reads its mask: of one that
/// raised the level no channel is told.
uint32_t asked_for_in(const void* group, const Communicator& communicator) {
  const Handle handle = Handle::of(group);
  return handle.role != Role::kGroup ? asked_for(communicator)
                                     : asked_for(communicator) & handle.slot;
}

/// NCCL begins a group with the communicator of its first call alone.
void join_group(Communicator& communicator, const void* group) {
  if (group == nullptr || communicator.group.load(kRelaxed) == group) return;
  communicator.group.store(group, kRelaxed);
  communicator.group_count.fetch_add(1, kRelaxed);
}

void* start_api(Communicator& communicator, uint32_t lives_as, const void* group, Facts facts) {
  join_group(communicator, group);
  Writer* w = attached_writer();
  if (w == nullptr) return nullptr;
  const uint32_t asked = asked_for_in(group, communicator);
  if ((asked & kGroupCounts) == 0 && (facts.flags & kNcclGraphCaptured) != 0) {
    facts.flags |= kNcclUncounted;
    note_uncounted(*g_state);
  }
  const uint64_t now = ticks(w);
  Handle handle = open_operation(communicator, lives_as, facts, now, kApiOpen, Role::kApi);
  if (AON_UNLIKELY(handle.process == 0)) return nullptr;
  handle.channel = (asked & kGroupAsksGpu) != 0          ? kCallAsksGpu
                   : (facts.flags & kNcclUncounted) != 0 ? kCallUncounted
                                                         : 0;
  begin_call_region(w, region_of(facts.function), handle.pointer(), now);
  return handle.pointer();
}

void stop_api(const Handle& handle, Operation& operation) {
  Writer* w = writer();
  if (w->slot == nullptr) return;
  uint64_t control = operation.control.load(std::memory_order_acquire);  // pairs with nccl:control
  do {
    if (!is_of(control, handle.generation) || (control & kApiOpen) == 0)
      return end_call_of(handle.pointer(), w);
  } while (!operation.control.compare_exchange_weak(
      control, control & ~kApiOpen,
      std::memory_order_acq_rel,  // pairs with nccl:control
      std::memory_order_acquire));
  const uint64_t now = ticks(w);
  operation.end_ticks.store(now, kRelaxed);
  end_call(w, now);
  Communicator& communicator = g_state->communicators[handle.communicator];
  const uint32_t flags = static_cast<uint32_t>(operation.peer_flags.load(kRelaxed) >> 32);
  const auto function = static_cast<Function>(operation.function_group.load(kRelaxed) & 0xff);
  const bool is_transfer = function == Function::kSend || function == Function::kRecv;
  // Nothing more is told of these. What one rank sends to itself has work like any other.
  if ((communicator.rank_count == 1 && !is_transfer) || (flags & kNcclGraphCaptured) != 0) {
    commit(communicator, operation, handle.generation);
  }
}

/// NCCL has no sequence numbers of P2P: both sides count the transfers of a pair, but for what only
/// one of them may be told of.
uint64_t transfer_number(Communicator& communicator, const Facts& facts) {
  std::atomic<uint64_t>* counts =
      facts.function == Function::kSend ? communicator.sends : communicator.receives;
  const uint32_t peer = static_cast<uint32_t>(facts.peer);
  if (counts == nullptr || peer >= communicator.rank_count) return 0;
  if ((facts.flags & kNcclUncounted) != 0) return counts[peer].load(kRelaxed);
  return counts[peer].fetch_add(1, kRelaxed);
}

/// NCCL's number of these counts what its copy engines synchronize, of all functions.
uint64_t copy_number(Communicator& communicator, const Facts& facts) {
  return communicator.copied[static_cast<uint8_t>(facts.function)].fetch_add(1, kRelaxed);
}

/// Also of one that is over. What another process has made is none.
bool is_call(const Handle& handle) {
  return handle.role == Role::kApi && handle.process == g_state->process.load(kRelaxed);
}

bool is_over(const Handle& call) {
  const Operation* operation = operation_at(call);
  return operation == nullptr ||
         !is_of(operation->control.load(std::memory_order_acquire),  // pairs with nccl:control
                call.generation);
}

/// Adds what is known at the launch to the operation that its call opened. False: that is over, as
/// it is with a graph that is launched again.
bool join_call(Communicator& communicator, const Handle& call, const Facts& facts, bool waits) {
  Operation* operation = operation_at(call);
  if (operation == nullptr || &g_state->communicators[call.communicator] != &communicator)
    return false;
  const uint64_t bits = kHasWork | (waits ? kWaitsForGpu : 0);
  uint64_t control;
  if (!set_bits(*operation, call.generation, bits, &control)) return false;
  const uint64_t shape = operation->shape.load(kRelaxed);
  const uint64_t kept = shape & (uint64_t{0xff} << kTypeShift | 0xffffffffu);
  Facts added = facts;
  added.type = NcclType::kUnknown;  // the call's: here AllGather and Broadcast are in bytes
  operation->shape.store(shape_of(added, 0) | kept, kRelaxed);
  operation->sequence.store(facts.sequence, kRelaxed);
  const uint64_t told = operation->peer_flags.load(kRelaxed);
  if (facts.peer != kNoPeer || facts.flags != 0) {
    operation->peer_flags.store(
        pack_pair(facts.peer,
                  static_cast<int32_t>(facts.flags | static_cast<uint32_t>(told >> 32))),
        kRelaxed);
  }
  const uint64_t launch = communicator.launch_ticks.load(kRelaxed);
  if (launch >= operation->start_ticks.load(kRelaxed)) {
    operation->launch_ticks.store(launch, kRelaxed);
  }
  return true;
}

/// Whether NCCL tells of channels. It reads its mask when the program calls: that counts for all
/// of the operation, and, of a call that a graph has captured, each time the graph is launched.
/// Before 2.31 (version 7) it announces those of what a rank sends to itself, and tells none.
bool has_channels(const Communicator& communicator, const Handle& call, const Facts& facts) {
  if (facts.channels == 0) return false;
  if (facts.is_p2p && facts.peer == communicator.rank && communicator.version < 7) return false;
  return is_call(call) ? call.channel == kCallAsksGpu
                       : (asked_for(communicator) & kGroupAsksGpu) != 0;
}

/// Whether NCCL before 2.31 numbers the work on the host other than on the GPU, or may: what a rank
/// sends to itself, works of no data, and Broadcasts that it makes one AllGatherV of (2.29 on;
/// issues 2368 and 2369).
bool may_be_uncounted(const Communicator& communicator, const Facts& facts) {
  if (facts.is_p2p && facts.peer == communicator.rank) return true;
  const bool may_be_joined = communicator.version >= 6 && facts.function == Function::kBroadcast;
  return facts.channels != 0 && (facts.count == 0 || may_be_joined);
}

void* start_work(Communicator& communicator, uint32_t lives_as, const void* parent, Facts facts) {
  Handle handle = Handle::of(parent);
  if ((facts.flags & kNcclCopyEngines) != 0) {
    if (is_call(handle) && is_over(handle)) return nullptr;  // a graph has captured it
    facts.sequence = copy_number(communicator, facts);
  }
  if (is_call(handle) && handle.channel == kCallUncounted) facts.flags |= kNcclUncounted;
  if (facts.is_p2p) facts.sequence = transfer_number(communicator, facts);
  if (may_be_uncounted(communicator, facts)) note_uncounted(*g_state);
  Writer* w = attached_writer();
  if (w == nullptr) {  // the other members count it all the same
    if (!is_call(handle) || is_over(handle)) communicator.call_count.fetch_add(1, kRelaxed);
    return nullptr;
  }
  const bool waits = has_channels(communicator, handle, facts);
  if (is_call(handle) && join_call(communicator, handle, facts, waits)) {
    handle.role = Role::kWork;
    handle.channel = 0;
    return handle.pointer();
  }
  // What a graph launches of symmetric kernels has the number of its channels, and none is told.
  const uint64_t bits = kHasWork | (waits && !facts.is_symmetric ? kWaitsForGpu : 0);
  if (communicator.version >= 5) {
    facts.flags |= kNcclReplayed;
  } else {
    heed_level(*g_state, w);
  }
  return open_operation(communicator, lives_as, facts, ticks(w), bits, Role::kWork).pointer();
}

void stop_work(const Handle& handle, Operation& operation) {
  uint64_t control;
  uint64_t bits = kWorkDone;
  const Writer* w = writer();
  // Before its bit: with that another thread may end the operation, and the slot be another's.
  if (w->slot != nullptr &&
      is_of(operation.control.load(std::memory_order_acquire),  // pairs with nccl:control
            handle.generation)) {
    operation.end_ticks.store(ticks(w), kRelaxed);
    // Before its bit, too. A program that is killed with it in flight leaves this much.
    if ((operation.control.load(kRelaxed) & kWaitsForGpu) != 0 &&
        put_in_flight(g_state->communicators[handle.communicator], operation, handle.generation))
      bits |= kToldInFlight;
  }
  if (!set_bits(operation, handle.generation, bits, &control)) return;
  if ((control & kWaitsForGpu) == 0 || (control & kChannelsDone) != 0) {
    commit(g_state->communicators[handle.communicator], operation, handle.generation);
  }
}

// ---- Channels of kernels. ----

void note_gpu_time(Communicator& communicator, const Writer* w, uint64_t gpu_ns) {
  adjust(communicator, *g_state, w, gpu_ns);
}

/// Tells whose times were overwritten, where this begin shows it.
void note_order(Communicator& communicator, const Operation& operation, uint64_t begin_ns) {
  const CallRange found = communicator.gpu_order.begin(group_of(operation), begin_ns);
  CallRange& all = communicator.overwritten;
  if (AON_LIKELY(found.count == 0 && all.count == 0)) return;
  g_state->overwritten.fetch_add(found.count, kRelaxed);
  all.add(found);
  if (put_overwritten(communicator, operation)) all = {};
}

/// One thread tells the channels of an operation.
void note_begin(Operation& operation, uint64_t begin_ns) {
  const uint64_t first_ns = operation.gpu_first_ns.load(kRelaxed);
  if (first_ns == 0) {
    operation.gpu_first_ns.store(begin_ns, kRelaxed);
    return;
  }
  const uint64_t last_ns = first_ns + operation.gpu_skew_ns.load(kRelaxed);
  const uint64_t new_first_ns = begin_ns < first_ns ? begin_ns : first_ns;
  const uint64_t skew_ns = (begin_ns > last_ns ? begin_ns : last_ns) - new_first_ns;
  operation.gpu_first_ns.store(new_first_ns, kRelaxed);
  operation.gpu_skew_ns.store(skew_ns >> 32 == 0 ? static_cast<uint32_t>(skew_ns) : UINT32_MAX,
                              kRelaxed);
}

void* start_channel(int version, const Descriptor* descriptor) {
  Handle handle = Handle::of(descriptor->parent);
  Operation* operation = handle.role == Role::kWork ? operation_at(handle) : nullptr;
  Writer* w = attached_writer();
  if (operation == nullptr || w == nullptr || version < 4) return nullptr;
  if (!is_of(operation->control.load(std::memory_order_acquire), handle.generation))
    return nullptr;  // pairs with nccl:control
  const KernelChannelEvent& event = as<KernelChannelEvent>(descriptor);
  Communicator& communicator = g_state->communicators[handle.communicator];
  if (!communicator.tells_channels.load(kRelaxed))
    communicator.tells_channels.store(true, kRelaxed);
  handle.role = Role::kChannel;
  handle.channel = event.channel & (kMaxChannels - 1);
  if (event.timer_ns == 0) return handle.pointer();
  note_begin(*operation, event.timer_ns);
  note_order(communicator, *operation, event.timer_ns);
  note_gpu_time(communicator, w, event.timer_ns);
  return handle.pointer();
}

void end_channel_time(const Handle& handle, Operation& operation, const StateArguments* arguments) {
  Writer* w = attached_writer();
  if (arguments == nullptr || arguments->timer_ns == 0 || w == nullptr) return;
  if (!is_of(operation.control.load(std::memory_order_acquire), handle.generation))
    return;  // pairs with nccl:control
  if (arguments->timer_ns > operation.gpu_end_ns.load(kRelaxed)) {
    operation.gpu_end_ns.store(arguments->timer_ns, kRelaxed);
  }
  note_gpu_time(g_state->communicators[handle.communicator], w, arguments->timer_ns);
}

void stop_channel(const Handle& handle, Operation& operation) {
  if (!is_of(operation.control.load(std::memory_order_acquire), handle.generation))
    return;  // pairs with nccl:control
  const uint64_t bit = uint64_t{1} << handle.channel;
  const uint64_t done = operation.channels.fetch_or(bit, kRelaxed) | bit;
  const Writer* w = writer();
  if (w->slot != nullptr) operation.end_ticks.store(ticks(w), kRelaxed);
  const uint32_t wanted = static_cast<uint8_t>(operation.shape.load(kRelaxed) >> kChannelShift);
  if (static_cast<uint32_t>(__builtin_popcountll(done)) < wanted) return;
  uint64_t control;
  uint64_t bits = kChannelsDone;
  Communicator& communicator = g_state->communicators[handle.communicator];
  note_done(communicator, operation);
  const uint64_t call = call_of(operation);
  const uint64_t end_ns = operation.gpu_end_ns.load(kRelaxed);
  if (end_ns != 0 && communicator.gpu_order.end(group_of(operation), call, end_ns))
    bits |= kTimesOverwritten;
  if (!set_bits(operation, handle.generation, bits, &control)) return;
  if ((bits & kTimesOverwritten) != 0) g_state->overwritten.fetch_add(1, kRelaxed);
  if ((control & kWorkDone) != 0) commit(communicator, operation, handle.generation);
}

void* start_group(Communicator& communicator) {
  const uint32_t number = communicator.group_count.fetch_add(1, kRelaxed);
  State& state = *g_state;
  const uint32_t asks = asked_for(communicator);  // as it was until now
  if (const Writer* w = attached_writer(); w != nullptr) heed_level(state, w);
  const uint32_t place = static_cast<uint32_t>(&communicator - state.communicators);
  void* group =
      Handle{state.process.load(kRelaxed), Role::kGroup, place, asks, 0, number}.pointer();
  communicator.group.store(group, kRelaxed);
  return group;
}

/// The one event that every operation has.
bool is_operation(int version, uint64_t type) {
  return (type & (version >= 5 ? kCollApi | kP2pApi : kColl | kP2p)) != 0;
}

/// Nothing is to be recorded: events are a chained plugin's.
bool is_off(const State& state) {
  return state.process.load(kRelaxed) != 0 && state.level.load(kRelaxed) == Level::kOff;
}

/// A handle that nothing comes of: before 2.28 NCCL tells nothing of what is in a group that was
/// declined.
void* start_old_group() {
  const State* state = g_state;
  if (state == nullptr || is_off(*state)) return nullptr;
  return Handle{state->process.load(kRelaxed), Role::kCommunicator, 0, 0, 0, 0}.pointer();
}

/// What no event will come for any more. An operation that is under way does not end with that: in
/// a program that gives up (ncclCommAbort, exit) it is what it waited for.
void commit_last(Communicator& communicator, Operation& operation, const Writer* w) {
  uint64_t control = operation.control.load(std::memory_order_acquire);  // pairs with nccl:control
  if ((control & kLive) == 0) return;
  const uint32_t generation = control & kGenerationMask;
  if (w != nullptr && is_abandoned(communicator, operation, control)) {
    operation.end_ticks.store(ticks(w), kRelaxed);
    set_bits(operation, generation, kAbandoned, &control);
  }
  commit(communicator, operation, generation);
}

}  // namespace

void* start_event(int version, void* context, const Descriptor* descriptor, uint64_t type) {
  if (type == kKernelChannel) return start_channel(version, descriptor);
  if (type == kProxyOp) return start_proxy(context, descriptor);
  if (type == kProxyStep) return start_step(descriptor);
  if (type == kNetPlugin) return note_network_event(descriptor);
  if (type == kGroup) return version < 5 ? start_old_group() : nullptr;
  Communicator* communicator = communicator_of(context);
  if (AON_UNLIKELY(communicator == nullptr)) {
    if (g_state != nullptr && is_operation(version, type) && !is_off(*g_state))
      g_state->unplaced.fetch_add(1, kRelaxed);
    return nullptr;
  }
  WordCache& words = communicator->words;
  const uint32_t lives_as = Handle::of(context).generation;
  switch (type) {
    case kGroupApi:
      return start_group(*communicator);
    case kCollApi:
      return start_api(*communicator, lives_as, descriptor->parent, of_coll_api(words, descriptor));
    case kP2pApi:
      return start_api(*communicator, lives_as, descriptor->parent, of_p2p_api(words, descriptor));
    case kKernelLaunch:
      if (Writer* w = attached_writer(); w != nullptr) {
        communicator->launch_ticks.store(ticks(w), kRelaxed);
      }
      return nullptr;
    case kColl:
      return start_work(*communicator, lives_as, descriptor->parent,
                        of_coll(version, words, descriptor));
    case kP2p:
      return start_work(*communicator, lives_as, descriptor->parent,
                        of_p2p(version, words, descriptor));
    case kCopyEngineColl:
      return start_work(*communicator, lives_as, descriptor->parent,
                        of_copy_engines(words, descriptor));
    default:
      return nullptr;
  }
}

void stop_event(void* pointer) {
  const Handle handle = Handle::of(pointer);
  if (handle.role == Role::kProxy || handle.role == Role::kStep) {
    stop_proxy(handle);
    return;
  }
  Operation* operation = operation_at(handle);
  if (operation == nullptr) return;
  switch (handle.role) {
    case Role::kApi:
      stop_api(handle, *operation);
      break;
    case Role::kWork:
      stop_work(handle, *operation);
      break;
    case Role::kChannel:
      stop_channel(handle, *operation);
      break;
    case Role::kGroup:
      finish_group(pointer);
      break;
    default:
      break;
  }
}

void record_state(void* pointer, int state, const StateArguments* arguments) {
  const Handle handle = Handle::of(pointer);
  if (handle.role == Role::kStep) {
    change_step(handle, state, arguments);
    return;
  }
  Operation* operation = operation_at(handle);
  if (operation == nullptr) return;
  if (handle.role == Role::kGroup && state == kStateGroupEndStart) begin_group_end(pointer);
  if (handle.role == Role::kChannel && state == kStateChannelStop) {
    end_channel_time(handle, *operation, arguments);
  }
}

void commit_all(uint32_t place) {
  Communicator& communicator = g_state->communicators[place];
  if (communicator.operations == nullptr) return;
  const Writer* w = attached_writer();
  const uint32_t count = wait_for_claims(communicator);
  const uint32_t next = communicator.next_slot.load(kRelaxed);
  for (uint32_t i = 0; i < count; ++i) {
    commit_last(communicator, communicator.operations[(next + i) & (count - 1)], w);
  }
  end_proxies(place);
}

}  // namespace aon::nccl
