/// The hot path: how a shim or an in-process provider writes records. C++20, header-only, no
/// libstdc++ needed.
///
/// Every thread has one Writer, owned by libaon.so and found through the one thread_local pointer
/// of the runtime. A Writer lives in memory that the kernel wipes in a fork()ed child
/// (MADV_WIPEONFORK): all zero means "not attached", and every pointer here is null then, so a
/// child never touches its parent's ring. Thread: each writes its own stream.   Signal: safe. Cost:
/// two TSC reads and about 2 ns per span.
///
/// Pattern of a wrapper around a leaf call (plugins/mpi is generated like this):
///
///     Writer* w = writer();
///     uint32_t mode = site_mode(w, site);            // one load; slow path defines the site at
///     its first call if (mode != kModeFull) ...                     // count, or forward SpanScope
///     span(w, site, comm, peer_tag, bytes);  // open-span slot, start ticks int result =
///     real(...); span.finish(...)                                 // end ticks, record, commit,
///     slot cleared
#pragma once

#include <aon/record.h>
#include <aon/ring.h>
#include <time.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#define AON_LIKELY(x) __builtin_expect(!!(x), 1)
#define AON_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define AON_EXPORT __attribute__((visibility("default")))

namespace aon {

/// One writer context: the place in the chain where the next record goes. Plain fields, owner
/// thread only; a signal handler of the same thread uses the next context (see Writer::depth).
struct WriterContext {
  char* cursor;  ///< next free byte; null before the first chunk
  char* end;     ///< end of the chunk's capacity
  ChunkHeader* chunk;
  const char* frame;   ///< frame address of the emit that runs in this context (longjmp recovery)
  uint64_t committed;  ///< value last stored to chunk->committed
  uint64_t refused;    ///< since the last kLost record
  uint64_t first_refused_ticks;
  uint64_t last_refused_ticks;
};

/// Per-thread writer. `modes` null: not attached (first event, or a fork()ed child).
struct Writer {
  const std::atomic<uint32_t>* modes;  ///< kMaxSites mode words in the ring
  uint64_t* counters;  ///< kMaxCounters counters of this slot, or null before the first count
  ThreadSlot* slot;
  uint32_t depth;       ///< writer contexts in use: 0 outside emit
  uint32_t span_depth;  ///< open spans of this thread
  uint32_t clock_is_tsc;
  uint32_t sample_countdown;
  const char* stack_low;
  const char* stack_high;
  WriterContext context[kContexts];
  uint64_t reserved[4];
};

extern "C" {
/// The calling thread's writer; never null (it points at an all-zero writer before the first
/// event). Compiled with -ftls-model=initial-exec in every object that uses it.
extern AON_EXPORT __thread Writer* aon_thread_writer;

/// Attaches the process and the thread if needed. Returns the thread's writer, or null when nothing
/// is recorded. Thread: any.   Signal: safe once the thread is attached; before that the event is
/// refused. Cost: first event of a process at most 20 ms, first event of a thread a few us; never
/// waits otherwise.
AON_EXPORT Writer* aon_attach() noexcept;

/// Gives `context` room for `bytes` (links a new chunk). False: pool full; the refusal is counted.
/// Cost: at most 1 us, no syscall.
AON_EXPORT bool aon_writer_extend(Writer* w, WriterContext* context, uint32_t bytes,
                                  uint64_t ticks) noexcept;

/// Depth after frames that were left by longjmp or an exception are taken off.
AON_EXPORT uint32_t aon_writer_unwind(Writer* w, const char* frame) noexcept;

/// Defines region `site` (its id is the site) at its first call, stores `default_mode` unless the
/// agent has chosen one, and returns the mode. Sites 0 to 503 belong to plugins/mpi, 504 to 1023 to
/// other shims.
AON_EXPORT uint32_t aon_site_first_call(uint32_t site, const char* name, uint8_t role,
                                        uint8_t paradigm, uint32_t default_mode) noexcept;

/// Gives the slot of `w` a counter page. False: pool full (the call is then recorded as refused).
AON_EXPORT bool aon_writer_add_counters(Writer* w) noexcept;

/// Writes a definition (definition.h): `payload` then `text`, the NUL-terminated strings. Takes the
/// process's definition lock; never in a signal handler. False: no room, counted; the id stays
/// undefined in the output.
AON_EXPORT bool aon_define(uint32_t type, const void* payload, uint32_t payload_bytes,
                           const char* text, uint32_t text_bytes) noexcept;

/// Id of the region `name` (>= kFirstDynamicRegion), defined once per process. May lock; never in a
/// signal handler.
AON_EXPORT uint32_t aon_intern_region(const char* name, uint8_t role, uint8_t paradigm) noexcept;
}

[[gnu::always_inline]] inline Writer* writer() { return aon_thread_writer; }

/// Ticks of the process's clock.
[[gnu::always_inline]] inline uint64_t ticks(const Writer* w) {
#if defined(__x86_64__)
  if (AON_LIKELY(w->clock_is_tsc != 0)) return __rdtsc();
#endif
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

[[gnu::always_inline]] inline void compiler_barrier() { asm volatile("" ::: "memory"); }

/// Writes one record of `slots` slots: `fill` stores its bytes. Returns false when it was refused
/// (and counted). `fill` must not touch anything but the record.
template <class Fill>
[[gnu::always_inline]] inline bool emit(Writer* w, uint32_t slots, bool counted, uint64_t now,
                                        Fill fill) {
  const char* frame = static_cast<const char*>(__builtin_frame_address(0));
  uint32_t depth = w->depth;
  if (AON_UNLIKELY(depth != 0)) {
    depth = aon_writer_unwind(w, frame);
    if (depth >= kContexts) {
      std::atomic<uint64_t>& refused = w->slot->stream[kContexts - 1].refused;
      refused.store(refused.load(std::memory_order_relaxed) + (counted ? 1 : 0),
                    std::memory_order_relaxed);
      return false;
    }
  }
  WriterContext& context = w->context[depth];
  context.frame = frame;
  compiler_barrier();
  w->depth = depth + 1;
  compiler_barrier();
  const uint32_t bytes = slots * kSlotBytes;
  bool ok = true;
  if (AON_UNLIKELY(static_cast<uint64_t>(context.end - context.cursor) < bytes)) {
    ok = aon_writer_extend(w, &context, bytes, now);
  }
  if (AON_LIKELY(ok)) {
    fill(context.cursor);
    context.cursor += bytes;
    context.committed += bytes + (counted ? uint64_t{1} << 32 : 0);
    context.chunk->committed.store(context.committed,
                                   std::memory_order_release);  // pairs with ring:commit
  }
  compiler_barrier();
  w->depth = depth;
  return ok;
}

}  // namespace aon
