#include "nccl/proxy.h"

#include <algorithm>

#include "nccl/facts.h"
#include "nccl/slots.h"

namespace aon::nccl {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr uint32_t kAttempts = 16;             ///< slots that are looked at for a free one
constexpr uint64_t kLongWaitTicks = 1u << 21;  ///< 1 ms at 2 GHz, 2 ms where ticks are ns

/// NCCL tells of proxies for a chained plugin, too, and of some events after the level was lowered.
bool has_level(const State* state, Level level) {
  return state != nullptr && state->level.load(kRelaxed) >= level;
}

/// The live piece that a handle of this process names, or null.
Proxy* proxy_at(const Handle& handle) {
  State* state = g_state;
  if (state == nullptr || handle.process == 0 || handle.process != state->process.load(kRelaxed) ||
      handle.slot >= kMaxProxies) {
    return nullptr;
  }
  Proxy& proxy = state->proxies[handle.slot];
  const uint64_t control = proxy.control.load(std::memory_order_acquire);  // pairs with nccl:proxy
  return is_of(control, handle.generation) ? &proxy : nullptr;
}

void clear_sums(Proxy& proxy, uint64_t now) {
  proxy.start_ticks = now;
  proxy.network_events.store(0, kRelaxed);
  proxy.step_count = 0;
  proxy.bytes = 0;
  proxy.gpu_ticks = 0;
  proxy.peer_ticks = 0;
  proxy.network_ticks = 0;
  proxy.flush_ticks = 0;
  proxy.longest_ticks = 0;
}

/// 0 where it was on a core whose clock is ahead.
uint64_t ticks_since(uint64_t start, uint64_t now) { return now > start ? now - start : 0; }

/// `site` is kNcclStepSite where it tells of steps: the budget takes each such record for some.
void put_proxy(const Proxy& proxy, uint64_t now, bool is_last, uint32_t site) {
  Writer* w = writer();
  if (w->slot == nullptr) return;
  if ((w->modes[kNcclStepSite].load(kRelaxed) & kModePaused) != 0) return;
  const uint64_t flags =
      (proxy.is_send ? uint32_t{kNcclProxySend} : 0) | (is_last ? uint32_t{kNcclProxyLast} : 0);
  const uint64_t duration = ticks_since(proxy.start_ticks, now);
  const bool is_wide = duration >> 32 != 0;
  const uint64_t number = (proxy.call & UINT32_MAX) | proxy.call >> 32 << kNcclHighCallShift;
  const uint64_t words[12] = {number | uint64_t{proxy.channel} << 32 | flags << 40,
                              pack_pair(proxy.peer, static_cast<int32_t>(proxy.planned_step_count)),
                              pack_pair(static_cast<int32_t>(proxy.step_count),
                                        static_cast<int32_t>(proxy.network_events.load(kRelaxed))),
                              proxy.chunk_bytes,
                              proxy.gpu_ticks,
                              proxy.peer_ticks,
                              proxy.network_ticks,
                              proxy.flush_ticks,
                              proxy.longest_ticks,
                              0,
                              0,
                              is_wide ? duration : 0};
  emit(w, kNcclProxySlots, true, now, [&](char* at) {
    auto* head = reinterpret_cast<RecordHead*>(at);
    *head = RecordHead{proxy.start_ticks,
                       static_cast<uint32_t>(duration),
                       RecordKind::kNcclCall,
                       kNcclProxySlots,
                       static_cast<uint16_t>(is_wide ? kWideDuration : 0),
                       site,
                       proxy.communicator_id,
                       proxy.bytes};
    uint64_t* out = reinterpret_cast<uint64_t*>(head + 1);
    for (uint32_t i = 0; i < 12; ++i) out[i] = words[i];
  });
}

/// A free slot, claimed, with its generation; null: there is none near.
Proxy* claim_proxy(State& state, uint32_t* slot, uint64_t* generation) {
  for (uint32_t attempt = 0; attempt < kAttempts; ++attempt) {
    *slot = state.next_proxy.fetch_add(1, kRelaxed) % kMaxProxies;
    Proxy& proxy = state.proxies[*slot];
    uint64_t control = proxy.control.load(kRelaxed);
    if ((control & (kLive | kClaimed)) != 0) continue;
    *generation = control;
    if (proxy.control.compare_exchange_strong(control, control | kClaimed,
                                              std::memory_order_acq_rel,  // pairs with nccl:proxy
                                              kRelaxed))
      return &proxy;
  }
  state.proxies_left_out.fetch_add(1, kRelaxed);
  return nullptr;
}

/// The count of the call whose work `parent` is.
uint64_t call_of(const void* parent) {
  const Handle handle = Handle::of(parent);
  const Operation* operation = handle.role == Role::kWork ? operation_at(handle) : nullptr;
  if (operation == nullptr) return kNoNcclCall;
  const uint64_t call = call_of(*operation);
  return is_of(operation->control.load(std::memory_order_acquire),  // pairs with nccl:control
               handle.generation)
             ? call
             : kNoNcclCall;
}

/// What a step has waited for in its state so far.
void add_wait(Proxy& proxy, Proxy::Step& step, uint64_t now) {
  const uint64_t waited = ticks_since(step.state_ticks, now);
  switch (step.state) {
    case kStateSendGpuWait:
    case kStateRecvGpuWait:
      proxy.gpu_ticks += waited;
      break;
    case kStateSendPeerWait:
      proxy.peer_ticks += waited;
      break;
    case kStateSendWait:
    case kStateRecvWait:
      proxy.network_ticks += waited;
      break;
    case kStateRecvFlushWait:
      proxy.flush_ticks += waited;
      break;
    default:
      break;
  }
  step.state_ticks = now;
}

void stop_step(Proxy& proxy, Proxy::Step& step, uint64_t now) {
  if (step.start_ticks == 0) return;
  add_wait(proxy, step, now);
  proxy.longest_ticks = std::max(proxy.longest_ticks, ticks_since(step.start_ticks, now));
  step.start_ticks = 0;
  if (++proxy.step_count < kNcclStepsPerRecord) return;
  put_proxy(proxy, now, false, kNcclStepSite);
  clear_sums(proxy, now);
}

/// A step of a send goes on from waiting for the GPU. What all waited for the piece's first data is
/// a record of its own where it was long: the kernel may have been queued meanwhile.
void note_data(Proxy& proxy, const Proxy::Step& first, uint64_t now) {
  if (proxy.has_data) return;
  proxy.has_data = true;
  if (ticks_since(first.start_ticks, now) < kLongWaitTicks) return;
  for (Proxy::Step& step : proxy.steps) {
    if (step.start_ticks == 0) continue;
    add_wait(proxy, step, now);
    proxy.longest_ticks = std::max(proxy.longest_ticks, ticks_since(step.start_ticks, now));
  }
  put_proxy(proxy, now, false, kNcclProxySite);
  clear_sums(proxy, now);
}

/// Ends a live piece and writes its record; the second one to do so does nothing.
void finish(Proxy& proxy, uint32_t generation, uint64_t now, bool is_last) {
  uint64_t control = proxy.control.load(std::memory_order_acquire);  // pairs with nccl:proxy
  do {
    if (!is_of(control, generation)) return;
  } while (!proxy.control.compare_exchange_weak(control, (control & 0xffffffffu) | kClaimed,
                                                std::memory_order_acq_rel,  // pairs with nccl:proxy
                                                std::memory_order_acquire));
  put_proxy(proxy, now, is_last, proxy.has_steps ? kNcclStepSite : kNcclProxySite);
  proxy.control.store((control + 1) & 0xffffffffu,
                      std::memory_order_release);  // pairs with nccl:proxy
}

}  // namespace

void* start_proxy(const void* context, const Descriptor* descriptor) {
  State* state = g_state;
  // Or nobody follows the communicator.
  if (!has_level(state, Level::kNet) || context == nullptr) return nullptr;
  const ProxyOpEvent& event = as<ProxyOpEvent>(descriptor);
  const Communicator* communicator = communicator_of(context);
  if (communicator == nullptr || event.process != state->pid) {
    state->foreign.fetch_add(1, kRelaxed);
    return nullptr;
  }
  const Writer* w = attached_writer();
  if (w == nullptr) return nullptr;
  uint32_t slot = 0;
  uint64_t generation = 0;
  Proxy* proxy = claim_proxy(*state, &slot, &generation);
  if (proxy == nullptr) return nullptr;
  proxy->place = static_cast<uint32_t>(communicator - state->communicators);
  proxy->communicator_id = communicator->id;
  proxy->call = call_of(descriptor->parent);
  proxy->peer = event.peer;
  proxy->planned_step_count = event.step_count > 0 ? static_cast<uint32_t>(event.step_count) : 0;
  proxy->chunk_bytes = event.chunk_bytes > 0 ? static_cast<uint32_t>(event.chunk_bytes) : 0;
  proxy->channel = event.channel;
  proxy->is_send = event.is_send != 0;
  proxy->has_steps = false;
  proxy->has_data = false;
  clear_sums(*proxy, ticks(w));
  for (Proxy::Step& step : proxy->steps) step.start_ticks = 0;
  proxy->control.store((generation & 0xffffffffu) | kLive,
                       std::memory_order_release);  // pairs with nccl:proxy
  return Handle{state->process.load(kRelaxed),
                Role::kProxy,
                proxy->place,
                slot,
                0,
                static_cast<uint32_t>(generation & kGenerationMask)}
      .pointer();
}

void* start_step(const Descriptor* descriptor) {
  if (!has_level(g_state, Level::kStep)) return nullptr;
  Handle handle = Handle::of(descriptor->parent);
  Proxy* proxy = handle.role == Role::kProxy ? proxy_at(handle) : nullptr;
  const Writer* w = attached_writer();
  if (proxy == nullptr || w == nullptr) return nullptr;
  const uint64_t now = ticks(w);
  const auto number = static_cast<uint32_t>(as<ProxyStepEvent>(descriptor).step);
  Proxy::Step& step = proxy->steps[number % kStepsInFlight];
  proxy->has_steps = true;
  step = {now, now, 0, number};
  handle.role = Role::kStep;
  handle.channel = number % kStepsInFlight;
  return handle.pointer();
}

void* note_network_event(const Descriptor* descriptor) {
  if (!has_level(g_state, Level::kStep)) return nullptr;
  const Handle handle = Handle::of(descriptor->parent);
  Proxy* proxy = handle.role == Role::kStep ? proxy_at(handle) : nullptr;
  if (proxy != nullptr) proxy->network_events.fetch_add(1, kRelaxed);
  return nullptr;
}

void change_step(const Handle& handle, int state, const StateArguments* arguments) {
  Proxy* proxy = proxy_at(handle);
  const Writer* w = attached_writer();
  if (proxy == nullptr || w == nullptr) return;
  Proxy::Step& step = proxy->steps[handle.channel % kStepsInFlight];
  if (step.start_ticks == 0) return;
  const uint64_t now = ticks(w);
  add_wait(*proxy, step, now);
  if (step.state == kStateSendGpuWait && state != step.state) note_data(*proxy, step, now);
  const bool tells_bytes = state == kStateSendWait || state == kStateRecvFlushWait;
  if (tells_bytes && arguments != nullptr && g_state->version >= 4 && step.state != state)
    proxy->bytes += arguments->transferred_bytes;
  step.state = state;
}

void stop_proxy(const Handle& handle) {
  Proxy* proxy = proxy_at(handle);
  const Writer* w = attached_writer();
  if (proxy == nullptr || w == nullptr) return;
  const uint64_t now = ticks(w);
  if (handle.role == Role::kStep) {
    stop_step(*proxy, proxy->steps[handle.channel % kStepsInFlight], now);
  } else {
    finish(*proxy, handle.generation, now, true);
  }
}

void end_proxies(uint32_t place) {
  State& state = *g_state;
  const Writer* w = attached_writer();
  if (w == nullptr || state.next_proxy.load(kRelaxed) == 0) return;
  for (Proxy& proxy : state.proxies) {
    const uint64_t control =
        proxy.control.load(std::memory_order_acquire);  // pairs with nccl:proxy
    if ((control & kLive) == 0 || proxy.place != place) continue;
    finish(proxy, control & kGenerationMask, ticks(w), false);
  }
}

}  // namespace aon::nccl
