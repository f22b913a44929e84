// Thread slots: taken at a thread's first event, handed on at its end.
#include <aon/writer.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/runtime/counters.h"
#include "core/runtime/process.h"
#include "core/runtime/provider_state.h"
#include "core/runtime/timer_samples.h"

// aon/old_libc.h
#pragma weak pthread_key_create
#pragma weak pthread_setspecific

namespace aon::runtime {
namespace {

/// Shared by a process and its children, which inherit the key itself.
pthread_key_t g_thread_key;
std::atomic<uint32_t> g_thread_key_made{0};

/// Writer of a thread that has ended as far as we are concerned; its slot is null.
Writer g_ended_writer;

/// Of threads for which there was no slot: they look for one now and then, not at each event.
Writer g_slotless_writer;
constexpr uint32_t kEventsPerLook = 1024;
__thread uint32_t g_slotless_events;

bool claim(ThreadSlot& slot) {
  uint32_t idle = static_cast<uint32_t>(SlotState::kIdle);
  return slot.state.load(std::memory_order_relaxed) == idle &&
         slot.state.compare_exchange_strong(idle, static_cast<uint32_t>(SlotState::kActive),
                                            std::memory_order_acquire);  // pairs with ring:slot
}

/// The main thread's slot for the main thread, else the lowest idle one. 0: none is left.
uint32_t claim_slot(Process& p, bool is_main) {
  if (is_main && claim(p.slots[kMainThreadSlot])) return kMainThreadSlot;
  for (uint32_t i = kMainThreadSlot + 1; i < p.geometry.slot_count; ++i) {
    if (claim(p.slots[i])) return i;
  }
  return 0;
}

/// False in a program that began without libpthread (before glibc 2.34): should it load that later,
/// nobody tells the ends of its threads, so they get no slots.
bool can_see_ends() { return pthread_key_create != nullptr && pthread_setspecific != nullptr; }

/// Once per process: such a loss is no matter of memory.
void tell_of_slots(Process& p) {
  if (p.slots_ran_out.exchange(1, std::memory_order_relaxed) != 0) return;
  if (!can_see_ends()) {
    tell_degraded(
        "threads\0the program loads its threads' library after its start (glibc before 2.34): "
        "threads beside the first are not recorded\0link it with -pthread");
    return;
  }
  tell_degraded(
      "threads\0more than 511 threads (1023 without an agent, 63 in a small file) recorded at a "
      "time: the others' records are lost\0fewer threads that record at a time");
}

void raise_slots_used(RingHeader& ring, uint32_t count) {
  uint32_t used = ring.slots_used.load(std::memory_order_relaxed);
  while (used < count &&
         !ring.slots_used.compare_exchange_weak(used, count,
                                                std::memory_order_release,  // pairs with ring:slots
                                                std::memory_order_relaxed)) {
  }
}

bool put_thread(Writer* w, uint32_t tid, bool starts) {
  Record record = {};
  record.head.start_ticks = ticks(w);
  record.head.kind = RecordKind::kThread;
  record.head.slot_count = 1;
  record.head.id = tid;
  record.head.a32 = starts ? 1 : 0;
  return aon_writer_put(w, &record);
}

/// A thread that ends inside a call (pthread_exit, cancellation) leaves it open for ever.
void close_open_spans(Writer* w) {
  const uint32_t open_depth = w->span_depth & kSpanDepthMask;
  for (uint32_t depth = open_depth < kOpenSpans ? open_depth : kOpenSpans; depth-- > 0;) {
    OpenSpan& open = w->slot->open[depth];
    const uint64_t start = open.start_ticks.load(std::memory_order_relaxed);
    if (start == 0) continue;
    w->span_depth = depth;
    finish_span(OpenCall{w, start, depth, open.region}, kOpenAtEnd);
  }
  w->span_depth = 0;
}

/// Gives the thread's slot, chain and half-filled chunk to whoever starts next.
void release_slot(Process& p, Writer* w) {
  for (uint32_t depth = w->depth < kContexts ? w->depth : kContexts; depth-- > 0;) {
    repair_context(p, w, depth);
  }
  w->depth = 0;
  close_open_spans(w);
  close_counters(p, w);
  close_timer(p, w);
  ThreadSlot* slot = w->slot;
  // Regions of this thread are not the next one's.
  const bool is_told = put_thread(w, slot->tid.load(std::memory_order_relaxed), false);
  if (!is_told) w->hole[0] = {kAllRegions, 0};
  slot->state.store(static_cast<uint32_t>(SlotState::kIdle),
                    std::memory_order_release);  // pairs with ring:slot
}

/// Other destructors of the same thread may still make calls, so the slot is given back in the last
/// round of them.
void end_thread(void* round) {
  const uintptr_t next = reinterpret_cast<uintptr_t>(round) + 1;
  if (next < PTHREAD_DESTRUCTOR_ITERATIONS) {
    pthread_setspecific(g_thread_key, reinterpret_cast<void*>(next));
    return;
  }
  SignalBlock block;
  Writer* w = aon_thread_writer;
  aon_thread_writer = &g_ended_writer;
  Process* p = process();
  if (p != nullptr && w->slot != nullptr) release_slot(*p, w);
}

}  // namespace

bool prepare_thread_exit() {
  if (g_thread_key_made.load(std::memory_order_relaxed) != 0) return true;
  if (!can_see_ends()) return true;
  if (pthread_key_create(&g_thread_key, end_thread) != 0) return false;
  g_thread_key_made.store(1, std::memory_order_relaxed);
  return true;
}

bool refuse_without_slot() {
  if (aon_thread_writer != &g_slotless_writer) return false;
  Process* p = process();
  if (p == nullptr) return false;
  const uint32_t state = p->state.load(std::memory_order_acquire);  // pairs with runtime:state
  const bool is_ready = state == static_cast<uint32_t>(AttachState::kReady);
  if (!is_ready || ++g_slotless_events % kEventsPerLook == 0) return false;
  p->ring->refused_no_slot.fetch_add(1, std::memory_order_relaxed);
  return true;
}

Writer* attach_thread(Process& p) {
  const uint32_t tid = static_cast<uint32_t>(syscall(SYS_gettid));
  const bool has_ended = aon_thread_writer == &g_ended_writer;
  const bool is_main = tid == static_cast<uint32_t>(getpid());
  const bool has_none = has_ended || (!is_main && !can_see_ends());
  const uint32_t index = has_none ? 0 : claim_slot(p, is_main);
  if (index == 0) {
    p.ring->refused_no_slot.fetch_add(1, std::memory_order_relaxed);
    p.has_refused.store(1, std::memory_order_relaxed);
    if (has_ended) return nullptr;
    aon_thread_writer = &g_slotless_writer;
    tell_of_slots(p);
    return nullptr;
  }
  Writer* w = &p.writers[index];
  w->slot = &p.slots[index];
  w->slot->tid.store(tid, std::memory_order_relaxed);
  w->clock_is_tsc = p.ring->clock_is_tsc;
  w->defined = p.defined;
  w->slot_index = index;
  w->tracked_regions = 0;
  w->modes = p.modes;
  raise_slots_used(*p.ring, index + 1);
  aon_thread_writer = w;
  if (can_see_ends()) pthread_setspecific(g_thread_key, reinterpret_cast<void*>(uintptr_t{1}));
  put_thread(w, tid, true);
  open_counters(p, w);
  open_timer(p, w);
  return w;
}

}  // namespace aon::runtime
