#include "nccl/operations.h"

#include <aon/annotation.h>

#include "nccl/gpu_clock.h"

namespace aon::nccl {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr uint32_t kChannelShift = 32;  ///< in word 1
constexpr uint32_t kAlgorithmShift = 40;
constexpr uint32_t kProtocolShift = 48;
constexpr uint32_t kTypeShift = 56;

/// What an event tells of an operation.
struct Facts {
  Function function = Function::kOther;
  NcclType type = NcclType::kUnknown;
  NcclAlgorithm algorithm = NcclAlgorithm::kUnknown;
  NcclProtocol protocol = NcclProtocol::kUnknown;
  uint8_t channels = 0;
  bool is_p2p = false;
  uint32_t flags = 0;
  int32_t peer = kNoPeer;
  uint64_t sequence = 0;
  uint64_t count = 0;
};

bool has_root(Function function) {
  return function == Function::kBroadcast || function == Function::kReduce ||
         function == Function::kGather || function == Function::kScatter;
}
int32_t root_of(Function function, int32_t root) { return has_root(function) ? root : kNoPeer; }

// ---- Events -> facts. ----

uint32_t captured_flag(bool is_captured) {
  return is_captured ? static_cast<uint32_t>(kNcclGraphCaptured) : 0;
}

Facts of_coll_api(WordCache& words, const CollApiEvent& event) {
  Facts facts;
  facts.function = look_up<function_of>(words.function, event.function);
  facts.type = look_up<type_of>(words.type, event.type);
  facts.count = event.count;
  facts.peer = root_of(facts.function, event.root);
  facts.flags = captured_flag(event.graph_captured);
  return facts;
}

Facts of_p2p_api(WordCache& words, const P2pApiEvent& event) {
  Facts facts;
  facts.function = look_up<function_of>(words.function, event.function);
  facts.type = look_up<type_of>(words.type, event.type);
  facts.count = event.count;
  facts.is_p2p = true;
  facts.flags = captured_flag(event.graph_captured);
  return facts;
}

/// Versions 2 to 7, whose collectives differ in nothing but the places.
template <class Coll>
Facts of_named_coll(WordCache& words, const Coll& event, uint64_t sequence) {
  Facts facts;
  facts.function = look_up<function_of>(words.function, event.function);
  facts.type = look_up<type_of>(words.type, event.type);
  facts.count = event.count;
  facts.peer = root_of(facts.function, event.root);
  facts.sequence = sequence;
  facts.channels = event.channel_count;
  facts.algorithm = look_up<algorithm_of>(words.algorithm, event.algorithm);
  facts.protocol = look_up<protocol_of>(words.protocol, event.protocol);
  return facts;
}

Facts of_first_coll(const CollEventV1& event) {
  Facts facts;
  facts.function = function_at(event.function);
  facts.type = type_at(event.type);
  facts.count = event.count;
  facts.peer = root_of(facts.function, event.root);
  facts.sequence = event.old.sequence;
  facts.channels = event.channel_count;
  facts.algorithm = algorithm_at(event.algorithm);
  facts.protocol = protocol_at(event.protocol);
  return facts;
}

template <class Text>
const Text& as(const Descriptor* descriptor) {
  return *reinterpret_cast<const Text*>(descriptor);
}

Facts of_coll(int version, WordCache& words, const Descriptor* descriptor) {
  if (version >= 4) {
    const CollEvent& event = as<CollEvent>(descriptor);
    return of_named_coll(words, event, event.sequence);
  }
  if (version == 1) return of_first_coll(as<CollEventV1>(descriptor));
  const uint64_t sequence = as<OldColl>(descriptor).sequence;
  return version == 3 ? of_named_coll(words, as<CollEventV3>(descriptor), sequence)
                      : of_named_coll(words, as<CollEventV2>(descriptor), sequence);
}

/// A collective by copy engines: a CollEvent without channels, algorithm and protocol.
Facts of_copy_engines(WordCache& words, const Descriptor* descriptor) {
  const CollEvent& event = as<CollEvent>(descriptor);
  Facts facts;
  facts.function = look_up<function_of>(words.function, event.function);
  facts.type = look_up<type_of>(words.type, event.type);
  facts.count = event.count;
  facts.peer = root_of(facts.function, event.root);
  facts.sequence = event.sequence;
  facts.flags = kNcclCopyEngines;
  return facts;
}

template <class P2p>
Facts of_named_p2p(WordCache& words, const P2p& event) {
  Facts facts;
  facts.is_p2p = true;
  facts.function = look_up<function_of>(words.function, event.function);
  facts.type = look_up<type_of>(words.type, event.type);
  facts.count = event.count;
  facts.peer = event.peer;
  return facts;
}

Facts of_p2p(int version, WordCache& words, const Descriptor* descriptor) {
  if (version >= 4) {
    const P2pEvent& event = as<P2pEvent>(descriptor);
    Facts facts = of_named_p2p(words, event);
    if (version > 4) facts.channels = event.channel_count;  // version 4 may not set it
    return facts;
  }
  if (version != 1) return of_named_p2p(words, as<P2pEventV2>(descriptor));
  const P2pEventV1& event = as<P2pEventV1>(descriptor);
  Facts facts;
  facts.is_p2p = true;
  facts.function = function_at(event.function);
  facts.type = type_at(event.type);
  facts.count = event.count;
  facts.peer = event.peer;
  return facts;
}

// ---- Regions of the calling thread. ----

ThreadState& state_of(const Writer* w) {
  ThreadState& thread = g_state->threads[w->slot_index];
  const uint32_t tid = w->slot->tid.load(kRelaxed);
  if (AON_UNLIKELY(thread.tid != tid)) thread = {tid, nullptr, nullptr};
  return thread;
}

void put_begin(Writer* w, const Annotation* region, uint64_t now) {
  put_event<0>(w, RecordKind::kBegin, now, 0, region->id, 0, 0, nullptr);
}
void put_end(Writer* w, const Annotation* region, uint64_t now) {
  if (AON_UNLIKELY(w->tracked_regions != 0) && !aon_annotation_ends(w)) return;
  put_event<0>(w, RecordKind::kEnd, now, 0, region->id, 0, 0, nullptr);
}

/// Ends the region of a call on this thread, if there is one.
void end_call(Writer* w, uint64_t now) {
  if (w->slot == nullptr) return;
  ThreadState& thread = state_of(w);
  if (thread.call == nullptr) return;
  put_end(w, thread.call, now);
  thread.call = nullptr;
}

void begin_call_region(Writer* w, const Annotation* region, uint64_t now) {
  end_call(w, now);  // one whose stop never came
  w = annotation_writer(region, RecordKind::kBegin);
  if (w == nullptr) return;
  put_begin(w, region, now);
  state_of(w).call = region;
}

void begin_group_end(void* group) {
  Writer* w = annotation_writer(group_region(), RecordKind::kBegin);
  if (w == nullptr) return;
  const uint64_t now = ticks(w);
  ThreadState& thread = state_of(w);
  if (thread.group != nullptr) put_end(w, group_region(), now);
  put_begin(w, group_region(), now);
  thread.group = group;
}

void finish_group(const void* group) {
  Writer* w = writer();
  if (w->slot == nullptr) return;
  ThreadState& thread = state_of(w);
  if (thread.group != group) return;
  thread.group = nullptr;
  put_end(w, group_region(), ticks(w));
}

// ---- Operations. ----

bool is_of(uint64_t control, uint32_t generation) {
  return (control & kLive) != 0 && (control & kGenerationMask) == generation;
}

/// Sets bits of a live operation. False: it is not that one any more, or has one of them already.
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

uint64_t initial_shape(const Facts& facts, uint32_t call) {
  return uint64_t{facts.channels} << kChannelShift |
         uint64_t{static_cast<uint8_t>(facts.algorithm)} << kAlgorithmShift |
         uint64_t{static_cast<uint8_t>(facts.protocol)} << kProtocolShift |
         uint64_t{static_cast<uint8_t>(facts.type)} << kTypeShift | call;
}

void store_gpu_words(Communicator& communicator, const Operation& from, uint64_t control,
                     uint64_t (&words)[7]) {
  if ((control & kWaitsForGpu) == 0) return;
  const uint64_t first_ns = from.gpu_first_ns.load(kRelaxed);
  const uint64_t end_ns = from.gpu_end_ns.load(kRelaxed);
  uint32_t flags = 0;
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
  emit(w, kNcclSlots, true, end, [&](char* at) {
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
}

/// Ends a live operation and writes its record. False: somebody else did.
bool commit(Communicator& communicator, Operation& operation, uint32_t generation) {
  uint64_t control = operation.control.load(std::memory_order_acquire);  // pairs with nccl:control
  do {
    if (!is_of(control, generation)) return false;
  } while (!operation.control.compare_exchange_weak(
      control, (control + 1) & 0xffffffffu, std::memory_order_acq_rel,  // pairs with nccl:control
      std::memory_order_acquire));
  put_record(communicator, operation, control);
  return true;
}

constexpr uint32_t kGroupShift = 8;  ///< in function_group
constexpr uint32_t kGroupMask = (1u << 24) - 1;
constexpr uint32_t kPatienceGroups = 64;  ///< then no work comes any more for a call

/// A call of a group that is long over, or anything else when there is no room for more.
bool is_overdue(const Communicator& communicator, const Operation& operation, uint64_t control) {
  if (communicator.slot_count.load(kRelaxed) >= kMaxOperations) return true;
  if ((control & kHasWork) != 0) return false;
  const uint32_t group = operation.function_group.load(kRelaxed) >> kGroupShift;
  const uint32_t age = (communicator.group_count.load(kRelaxed) - group) & kGroupMask;
  return age > kPatienceGroups;
}

/// Takes a free slot as live, with its generation; another thread may have been faster.
bool claim(Operation& operation, uint64_t* generation) {
  uint64_t control = operation.control.load(kRelaxed);
  if ((control & kLive) != 0) return false;
  *generation = control;
  return operation.control.compare_exchange_strong(
      control, control | kLive,
      std::memory_order_acq_rel,  // pairs with nccl:control
      kRelaxed);
}

/// Doubles the slots in use; the next one taken is the first new one.
void grow(Communicator& communicator) {
  uint32_t count = communicator.slot_count.load(kRelaxed);
  if (count >= kMaxOperations) return;
  if (communicator.slot_count.compare_exchange_strong(count, count * 2, kRelaxed)) {
    communicator.next_slot.store(count, kRelaxed);
  }
}

/// The next slot, claimed: a call that never had work is committed first.
Operation& take_slot(Communicator& communicator, uint32_t* slot, uint64_t* generation) {
  for (;;) {
    const uint32_t mask = communicator.slot_count.load(kRelaxed) - 1;
    *slot = communicator.next_slot.fetch_add(1, kRelaxed) & mask;
    Operation& operation = communicator.operations[*slot];
    if (AON_LIKELY(claim(operation, generation))) return operation;
    const uint64_t control = operation.control.load(kRelaxed);
    if (!is_overdue(communicator, operation, control)) {
      grow(communicator);
    } else if (commit(communicator, operation, control & kGenerationMask)) {
      g_state->evicted.fetch_add(1, kRelaxed);
      if (claim(operation, generation)) return operation;
    }
  }
}

Handle open_operation(Communicator& communicator, const Facts& facts, uint64_t now, uint64_t bits,
                      Role role) {
  uint32_t slot;
  uint64_t generation;
  Operation& operation = take_slot(communicator, &slot, &generation);
  const uint32_t call = communicator.call_count.fetch_add(1, kRelaxed);
  const uint32_t group = communicator.group_count.load(kRelaxed) & kGroupMask;
  operation.start_ticks.store(now, kRelaxed);
  operation.end_ticks.store(now, kRelaxed);
  operation.bytes.store(facts.count * type_bytes(facts.type), kRelaxed);
  operation.function_group.store(static_cast<uint8_t>(facts.function) | group << kGroupShift,
                                 kRelaxed);
  operation.sequence.store(facts.sequence, kRelaxed);
  operation.shape.store(initial_shape(facts, call), kRelaxed);
  operation.launch_ticks.store(0, kRelaxed);
  operation.peer_flags.store(pack_pair(facts.peer, static_cast<int32_t>(facts.flags)), kRelaxed);
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

/// A handle of an operation of this process, with its place; null where it is none.
Operation* operation_at(const Handle& handle) {
  State* state = g_state;
  if (state == nullptr || handle.process == 0 || handle.process != state->process.load(kRelaxed)) {
    return nullptr;
  }
  Operation* operations = state->communicators[handle.communicator].operations;
  return operations == nullptr ? nullptr : operations + handle.slot;
}

void* start_api(Communicator& communicator, const Facts& facts) {
  Writer* w = attached_writer();
  if (w == nullptr) return nullptr;
  const uint64_t now = ticks(w);
  begin_call_region(w, region_of(facts.function), now);
  return open_operation(communicator, facts, now, kApiOpen, Role::kApi).pointer();
}

void stop_api(const Handle& handle, Operation& operation) {
  Writer* w = writer();
  if (w->slot == nullptr) return;
  uint64_t control = operation.control.load(std::memory_order_acquire);  // pairs with nccl:control
  do {
    if (!is_of(control, handle.generation) || (control & kApiOpen) == 0) return;
  } while (!operation.control.compare_exchange_weak(
      control, control & ~kApiOpen,
      std::memory_order_acq_rel,  // pairs with nccl:control
      std::memory_order_acquire));
  const uint64_t now = ticks(w);
  operation.end_ticks.store(now, kRelaxed);
  end_call(w, now);
  Communicator& communicator = g_state->communicators[handle.communicator];
  const uint32_t flags = static_cast<uint32_t>(operation.peer_flags.load(kRelaxed) >> 32);
  // Nothing more is told of these.
  if (communicator.size == 1 || (flags & kNcclGraphCaptured) != 0) {
    commit(communicator, operation, handle.generation);
  }
}

/// NCCL has no sequence numbers of P2P: both sides count the transfers of a pair.
uint64_t transfer_number(Communicator& communicator, const Facts& facts) {
  std::atomic<uint32_t>* counts =
      facts.function == Function::kSend ? communicator.sends : communicator.receives;
  const uint32_t peer = static_cast<uint32_t>(facts.peer);
  if (counts == nullptr || peer >= communicator.size) return 0;
  return counts[peer].fetch_add(1, kRelaxed);
}

/// Adds what is known at the launch to the operation that its call opened. False: that is over, as
/// it is with a graph that is launched again.
bool join_call(Communicator& communicator, const Handle& call, const Facts& facts, uint64_t bits) {
  if (call.role != Role::kApi) return false;
  Operation* operation = operation_at(call);
  uint64_t control;
  if (operation == nullptr || &g_state->communicators[call.communicator] != &communicator ||
      !set_bits(*operation, call.generation, bits, &control)) {
    return false;
  }
  const uint64_t shape = operation->shape.load(kRelaxed);
  const uint64_t kept = shape & (uint64_t{0xff} << kTypeShift | 0xffffffffu);
  Facts added = facts;
  added.type = NcclType::kUnknown;  // the call's: here AllGather and Broadcast are in bytes
  operation->shape.store(initial_shape(added, 0) | kept, kRelaxed);
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

void* start_work(Communicator& communicator, const void* parent, Facts facts) {
  Writer* w = attached_writer();
  if (w == nullptr) return nullptr;
  if (facts.is_p2p) facts.sequence = transfer_number(communicator, facts);
  const bool waits = communicator.waits_for_gpu && facts.channels != 0;
  const uint64_t bits = kHasWork | (waits ? kWaitsForGpu : 0);
  Handle handle = Handle::of(parent);
  if (join_call(communicator, handle, facts, bits)) {
    handle.role = Role::kWork;
    return handle.pointer();
  }
  if (communicator.version >= 5) facts.flags |= kNcclReplayed;
  return open_operation(communicator, facts, ticks(w), bits, Role::kWork).pointer();
}

void stop_work(const Handle& handle, Operation& operation) {
  uint64_t control;
  if (!set_bits(operation, handle.generation, kWorkDone, &control)) return;
  const Writer* w = writer();
  if (w->slot != nullptr) operation.end_ticks.store(ticks(w), kRelaxed);
  if ((control & kWaitsForGpu) == 0 || (control & kChannelsDone) != 0) {
    commit(g_state->communicators[handle.communicator], operation, handle.generation);
  }
}

// ---- Channels of kernels. ----

void note_gpu_time(Communicator& communicator, const Writer* w, uint64_t gpu_ns) {
  adjust(communicator, *g_state, w, gpu_ns);
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
  handle.role = Role::kChannel;
  handle.channel = event.channel & (kMaxChannels - 1);
  if (event.timer_ns == 0) return handle.pointer();
  note_begin(*operation, event.timer_ns);
  note_gpu_time(g_state->communicators[handle.communicator], w, event.timer_ns);
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
  if (!set_bits(operation, handle.generation, kChannelsDone, &control)) return;
  if ((control & kWorkDone) != 0) {
    commit(g_state->communicators[handle.communicator], operation, handle.generation);
  }
}

void* start_group(Communicator& communicator) {
  const uint32_t number = communicator.group_count.fetch_add(1, kRelaxed);
  const State& state = *g_state;
  const uint32_t place = static_cast<uint32_t>(&communicator - state.communicators);
  return Handle{state.process.load(kRelaxed), Role::kGroup, place, 0, 0, number}.pointer();
}

/// The one event that every operation has.
bool is_operation(int version, uint64_t type) {
  return (type & (version >= 5 ? kCollApi | kP2pApi : kColl | kP2p)) != 0;
}

}  // namespace

void* start_event(int version, void* context, const Descriptor* descriptor, uint64_t type) {
  if (type == kKernelChannel) return start_channel(version, descriptor);
  Communicator* communicator = communicator_of(context);
  if (AON_UNLIKELY(communicator == nullptr)) {
    if (g_state != nullptr && is_operation(version, type)) g_state->unplaced.fetch_add(1, kRelaxed);
    return nullptr;
  }
  WordCache& words = communicator->words;
  switch (type) {
    case kGroupApi:
      return start_group(*communicator);
    case kCollApi:
      return start_api(*communicator, of_coll_api(words, as<CollApiEvent>(descriptor)));
    case kP2pApi:
      return start_api(*communicator, of_p2p_api(words, as<P2pApiEvent>(descriptor)));
    case kKernelLaunch:
      if (Writer* w = attached_writer(); w != nullptr) {
        communicator->launch_ticks.store(ticks(w), kRelaxed);
      }
      return nullptr;
    case kColl:
      return start_work(*communicator, descriptor->parent, of_coll(version, words, descriptor));
    case kP2p:
      return start_work(*communicator, descriptor->parent, of_p2p(version, words, descriptor));
    case kCopyEngineColl:
      return start_work(*communicator, descriptor->parent, of_copy_engines(words, descriptor));
    default:
      return nullptr;
  }
}

void stop_event(void* pointer) {
  const Handle handle = Handle::of(pointer);
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
  const uint32_t next = communicator.next_slot.load(kRelaxed);
  const uint32_t count = communicator.slot_count.load(kRelaxed);
  for (uint32_t i = 0; i < count; ++i) {
    Operation& operation = communicator.operations[(next + i) & (count - 1)];
    const uint64_t control = operation.control.load(kRelaxed);
    if ((control & kLive) != 0) commit(communicator, operation, control & kGenerationMask);
  }
}

}  // namespace aon::nccl
