/// The hot path: how a shim or an in-process provider writes records. C++20, header-only, no
/// libstdc++ needed.
///
/// Every thread has one Writer, owned by libaon.so and found through the one thread_local pointer
/// of the runtime. Writers live in memory that the kernel wipes in a fork()ed child
/// (MADV_WIPEONFORK): all zero means "not attached", every pointer is null then, so a child never
/// touches its parent's ring.
/// Thread: each writes its own stream.   Signal: safe.
/// Cost: two TSC reads and about 2 ns per call; counted or paused calls at most 1 ns, no clock.
///
/// Pattern of a wrapper around a leaf call (tests/bench/hotpath/wrappers.cpp is compiled, timed and
/// its machine code checked):
///
///     int MPI_Send(...) {
///       const uint32_t plan = plan_call(kSite);       // one load; counts, if calls are counted
///       if (plan == 1) return record_full(...);       // same parameters: a jump
///       if (plan == kForward) return real(...);       // paused, or counted only: a jump
///       return record_other(..., plan);               // first call, or one of those sampled
///     }
///     [[gnu::noinline]] int record_full(...) {        // apart, or every call pays for its frame
///       if (is_inside_call(writer())) return real(...);
///       OpenCall call = begin_call(writer(), kSite.id, comm, peer_tag, bytes);
///       const int result = real(...);
///       finish_message(call, flags, comm, bytes, peer_tag, request);
///       return result;
///     }
///     [[gnu::noinline]] int record_other(..., uint32_t plan) {
///       Writer* w = writer();
///       const uint32_t weight = start_plan(w, kSite, plan);  // the first call defines the site
///       if (weight == kForward) return real(...);
///       ...                                           // as record_full; finish_span takes weight
///     }
#pragma once

#include <aon/frame.h>
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
  ChunkHeader* pending;  ///< taken, not yet known to be linked (extend is under way, or was left)
  const char* frame;     ///< frame address of the emit that runs in this context (longjmp recovery)
  uint64_t committed;    ///< value last stored to chunk->committed
  uint64_t refused;      ///< since the last kLost record
  uint64_t first_refused_ticks;
  uint64_t last_refused_ticks;
};

/// Regions (kBegin, kEnd) of a thread since a context's first refusal: how many that were open then
/// have ended, and how many have begun since and are open. For kLost.
struct HoleRegions {
  uint32_t ended;
  uint32_t begun;
};

/// Set in Writer::span_depth of a thread that reads hardware counters at the borders of its calls:
/// every call then leaves the fast path where a nested one does, and the others pay nothing.
constexpr uint32_t kReadsCounters = 1u << 31;
constexpr uint32_t kSpanDepthMask = kReadsCounters - 1;

/// Per-thread writer. `modes` null: not attached (first event, or a fork()ed child). `slot` null:
/// nothing is recorded in this process.
struct Writer {
  const std::atomic<uint32_t>* modes;  ///< kMaxSites mode words in the ring
  std::atomic<uint64_t>* counters;  ///< kMaxCounters of this slot, or null before the first count
  ThreadSlot* slot;
  uint32_t depth;       ///< writer contexts in use: 0 outside emit
  uint32_t span_depth;  ///< open calls of this thread; kReadsCounters
  uint32_t clock_is_tsc;
  uint32_t tracked_regions;  ///< open ones from the first that a pause skipped (annotation.h)
  uint64_t span_frame[kOpenSpans];  ///< frame_mark() of each open call (longjmp recovery)
  WriterContext context[kContexts];
  const uint8_t* defined;       ///< by Annotation::index: 1 when the process has defined it
  uint64_t slot_index;          ///< of `slot`
  uint64_t recorded_bits;       ///< of the tracked regions: bit i is set when the i-th was recorded
  HoleRegions hole[kContexts];  ///< by context; all zero where it has refused nothing
};
static_assert(sizeof(Writer) == 4 * 64);

/// A call site: a function that has a wrapper. Constants of the wrapper's object file.
struct Site {
  uint32_t id;  ///< also the id of its region; 0 to 503 plugins/mpi, 504 to 1023 other shims
  const char* name;
  uint8_t role;           ///< RegionRole
  uint8_t paradigm;       ///< Paradigm
  uint32_t default_mode;  ///< SiteMode until the agent says otherwise
};

/// A call that has been entered: what its wrapper keeps across the real call, in registers where
/// the variable is not const (g++ 12 lets one that is and was returned stay in memory).
struct OpenCall {
  Writer* w;
  uint64_t start_ticks;
  uint32_t depth;  ///< of calls around it; kReadsCounters
  uint32_t region;
};

extern "C" {
/// The calling thread's writer; never null (it points at an all-zero writer before the first
/// event). Compiled with -ftls-model=initial-exec in every object that uses it.
extern AON_EXPORT __thread Writer* aon_thread_writer;

/// Attaches the process and the thread if needed. Returns the thread's writer, or null when nothing
/// is recorded.
/// Thread: any.   Signal: safe; an event within an attach of its own thread is refused.
/// Cost: first event of a process at most --attach-ms (20, up to 60000), of another thread then
/// twice that; later ones of a thread a few us; never waits otherwise.
AON_EXPORT Writer* aon_attach() noexcept;

/// First half of attaching, for a caller about to enter the slow `call` (MPI_Init): asks the agent,
/// waits at most 10 ms, and leaves the answer to the first event after it when the agent is busy,
/// which then shows the call as open since now.
/// False: not attached yet.
/// Thread: any.   Signal: never.   Cost: at most 10 ms, once.
AON_EXPORT bool aon_attach_begin(const Site* call) noexcept;

/// Gives `context` room for `bytes` (links a new chunk). False: pool full; a counted record is
/// counted as refused.
/// Thread: owner.   Signal: safe.   Cost: at most 1 us; no syscall, but one
/// where it wakes the agent (aon/bell.h).
AON_EXPORT bool aon_writer_extend(Writer* w, WriterContext* context, uint32_t bytes, bool counted,
                                  uint64_t ticks) noexcept;

/// Takes off the calls that longjmp or an exception left, seen from `frame`. Each gets a record of
/// no length, now, with kFailed, unless it may go on on another stack; span_depth counts the rest.
/// Thread: owner.   Signal: safe.
AON_EXPORT void aon_writer_unwind_spans(Writer* w, const char* frame) noexcept;

/// begin_call() inside another call, or after one that was left by longjmp, or with counters, which
/// it reads. Returns the start; the
/// depth of the call is then span_depth - 1. `mark` is its frame_mark().
/// Thread: owner.   Signal: safe.   Cost: two syscalls (sigaltstack, sigprocmask).
AON_EXPORT uint64_t aon_writer_begin_nested(Writer* w, uint64_t mark,
                                            const OpenSpan* span) noexcept;

/// emit() of a built record at any cost: from a signal handler inside another one, after one that
/// was left by longjmp, or into a new chunk. `frame` is that of the emit, `now` its time.
/// Thread: owner.   Signal: safe.   Cost: as aon_writer_extend; inside another one a sigaltstack.
AON_EXPORT bool aon_writer_put_slow(Writer* w, const char* frame, const Record* record,
                                    uint64_t now) noexcept;

/// finish_call() of a nested (kInsideSpan) or very long call, with a record of counters before, or
/// as aon_writer_put_slow(). In a child that was fork()ed inside the call it does nothing.
/// Thread: owner.   Signal: safe.
AON_EXPORT void aon_writer_finish_slow(Writer* w, const char* frame, uint32_t depth, Record* record,
                                       uint32_t words, uint64_t duration) noexcept;

/// Writes a record that was built elsewhere; what is not on the fast path.
/// Thread: owner.   Signal: safe.
AON_EXPORT bool aon_writer_put(Writer* w, const Record* record) noexcept;

/// Attaches, defines the region of `site`, gives its mode (kModeOff: none). Load writer() again.
/// Thread: any; takes the process's definition lock.   Signal: no.
AON_EXPORT uint32_t aon_site_first_call(const Site* site) noexcept;

/// Gives `w` a chunk of counters. False: none left, counted.   Thread: owner.   Signal: no.
AON_EXPORT bool aon_writer_add_counters(Writer* w) noexcept;

/// Writes a definition (definition.h): `payload` then `text`, the NUL-terminated strings.
/// Thread: any; takes the process's definition lock.   Signal: no.
/// Errors: without room it is tried again with the next one; false when too many wait, counted.
AON_EXPORT bool aon_define(uint32_t type, const void* payload, uint32_t payload_bytes,
                           const char* text, uint32_t text_bytes) noexcept;

/// Id of the region `name` (>= kFirstDynamicRegion), defined once per process; 0 when nothing is
/// recorded.
/// Thread: any; may lock.   Signal: no.
AON_EXPORT uint32_t aon_intern_region(const char* name, uint8_t role, uint8_t paradigm) noexcept;

/// Pauses or resumes all call sites (kModePaused), and annotations (RingHeader::paused).
/// Thread: any; may lock.   Signal: no.
AON_EXPORT void aon_set_paused(bool paused) noexcept;
}

[[gnu::always_inline]] inline Writer* writer() { return aon_thread_writer; }

/// The calling thread's writer, attached, or null when nothing is recorded. For records that have
/// no call site: annotations, identity.
[[gnu::always_inline]] inline Writer* attached_writer() {
  Writer* w = aon_thread_writer;
  return AON_LIKELY(w->slot != nullptr) ? w : aon_attach();
}

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

/// Mode of `site`: a SiteMode, kModePaused possibly set. The first call of a thread attaches it,
/// the first call of a site defines it.
[[gnu::always_inline]] inline uint32_t site_mode(Writer*& w, const Site& site) {
  uint32_t mode = kModeUndefined;
  if (AON_LIKELY(w->modes != nullptr)) mode = w->modes[site.id].load(std::memory_order_relaxed);
  if (AON_UNLIKELY(mode == kModeUndefined)) {
    mode = aon_site_first_call(&site);
    w = writer();
  }
  return mode;
}

/// What a wrapper does with one call: forward it, or record it with this weight (the number of
/// calls it stands for), or ask start_plan(). A polling call that is not timed is kUntimed instead
/// of forwarded: when it finds something, that is recorded all the same.
constexpr uint32_t kForward = 0;
constexpr uint32_t kUntimed = 0xfffffffeu;
constexpr uint32_t kFirstPlan = 0xffffffffu;

/// The count of a call site, one more; only the owner thread writes it.
[[gnu::always_inline]] inline uint64_t count_one(std::atomic<uint64_t>* counters, uint32_t site) {
  const uint64_t count = counters[site].load(std::memory_order_relaxed) + 1;
  counters[site].store(count, std::memory_order_relaxed);
  return count;
}

/// Of a thread's calls of a sampled site beyond so many, one in kThinning of those is timed that
/// would be: by then a thousand have been at the usual period.
constexpr uint64_t kManyCalls = 65536;
constexpr uint32_t kThinning = 8;

/// Whether call number `count` of a sampled site is timed: returns its weight or kForward. Spread
/// evenly by the golden ratio (Weyl's sequence), so that no period of the program hides from it.
[[gnu::always_inline]] inline uint32_t sample_call(uint64_t count, uint32_t mode) {
  const uint32_t period = mode - kModeSample + 1;
  const uint32_t point = static_cast<uint32_t>(count) * 0x9e3779b1u;
  if (AON_LIKELY((uint64_t{point} * period) >> 32 != 0)) return kForward;
  if (count < kManyCalls) return period;
  const uint32_t thinned = period * kThinning;
  return (uint64_t{point} * thinned) >> 32 == 0 ? thinned : kForward;
}

/// Decides about a call whose writer has counters, and counts it. `untimed` is the plan of one that
/// is only counted.
[[gnu::always_inline]] inline uint32_t count_call(const Writer* w, const Site& site, uint32_t mode,
                                                  uint32_t untimed) {
  if (AON_LIKELY(mode == kModeCount)) {
    count_one(w->counters, site.id);
    return untimed;
  }
  if (AON_UNLIKELY(mode <= kModeSample)) return 1;
  const uint32_t weight = sample_call(count_one(w->counters, site.id), mode);
  return weight == kForward ? untimed : weight;
}

/// Whether `mode` has calls counted and one in some timed.
[[gnu::always_inline]] inline bool is_sampled(uint32_t mode) {
  return mode - (kModeSample + 1) < kModeOff - (kModeSample + 1);
}

/// Decides about a call without leaving the fast path; kFirstPlan where that cannot be: the first
/// call, or one inside another one. The order of the tests is by what each mode may cost.
[[gnu::always_inline]] inline uint32_t plan_call(const Site& site, uint32_t untimed = kForward) {
  const Writer* w = writer();
  if (AON_UNLIKELY(w->modes == nullptr)) return kFirstPlan;
  const uint32_t mode = w->modes[site.id].load(std::memory_order_relaxed);
  // A poll is: it is asked for first, by one comparison.
  if (untimed != kForward && AON_LIKELY(is_sampled(mode) && w->counters != nullptr &&
                                        w->span_depth == 0 && site.id < kMaxCounters)) {
    const uint32_t weight = sample_call(count_one(w->counters, site.id), mode);
    return weight == kForward ? untimed : weight;
  }
  if (AON_UNLIKELY(mode == kModeFull)) return 1;
  if (mode >= kModeOff) return kForward;
  if (AON_UNLIKELY(w->counters == nullptr || w->span_depth != 0 || mode == kModeUndefined ||
                   site.id >= kMaxCounters)) {
    return kFirstPlan;
  }
  return count_call(w, site, mode, untimed);
}

/// Whether the calling thread is inside another recorded call. Forgets calls left by longjmp.
[[gnu::always_inline]] inline bool is_inside_call(Writer* w) {
  if (AON_LIKELY(w->span_depth == 0)) return false;
  aon_writer_unwind_spans(w, current_frame());
  return (w->span_depth & kSpanDepthMask) != 0;
}

/// Turns kFirstPlan into a decision: attaches the thread, defines the site, makes its counters. A
/// call inside another one is only forwarded: a library that calls itself is one call.
[[gnu::always_inline]] inline uint32_t start_plan(Writer*& w, const Site& site, uint32_t plan,
                                                  uint32_t untimed = kForward) {
  if (AON_LIKELY(plan != kFirstPlan)) return plan;
  const uint32_t mode = site_mode(w, site);
  if (mode >= kModeOff || is_inside_call(w)) return kForward;
  if (mode == kModeFull) return 1;
  if (site.id >= kMaxCounters) return kForward;
  if (w->counters == nullptr && !aon_writer_add_counters(w)) return untimed;
  return count_call(w, site, mode, untimed);
}

/// Begins a record of `bytes` bytes at the cursor of context 0. False where that takes more than a
/// look: within the emit that a signal interrupted, in a new chunk, or in a fork()ed child. Then
/// nothing is begun.
[[gnu::always_inline]] inline bool begin_record(Writer* w, uint32_t bytes) {
  if (AON_UNLIKELY(w->depth != 0)) return false;
  WriterContext& context = w->context[0];
  context.frame = current_frame();
  compiler_barrier();
  w->depth = 1;
  compiler_barrier();
  if (AON_LIKELY(context.end - context.cursor >= int64_t{bytes})) return true;
  compiler_barrier();
  w->depth = 0;
  return false;
}

/// Publishes the `bytes` that were stored at the cursor, `counted` records.
[[gnu::always_inline]] inline void end_record(Writer* w, uint32_t bytes, uint64_t counted) {
  WriterContext& context = w->context[0];
  context.cursor += bytes;
  context.committed += bytes + (counted << 32);
  context.chunk->committed.store(context.committed,
                                 std::memory_order_release);  // pairs with ring:commit
  compiler_barrier();
  w->depth = 0;
}

/// Writes one record of `slots` slots: `fill` stores its bytes. Returns false when it was refused
/// (and counted). `fill` must not touch anything but the record. `w` is attached. What is not on
/// the fast path is a call with nothing behind it, or the fast path would save registers for it.
template <class Fill>
[[gnu::always_inline]] inline bool emit(Writer* w, uint32_t slots, bool counted, uint64_t now,
                                        Fill fill) {
  if (AON_UNLIKELY(!begin_record(w, slots * kSlotBytes))) {
    Record record;
    fill(reinterpret_cast<char*>(&record));
    return aon_writer_put_slow(w, current_frame(), &record, now);
  }
  fill(w->context[0].cursor);
  end_record(w, slots * kSlotBytes, counted ? 1 : 0);
  return true;
}

/// Enters a call: reads the clock and, up to kOpenSpans deep, shows it in the thread's open-span
/// slot. Each begin_call is followed by one finish_...().
[[gnu::always_inline]] inline OpenCall begin_call(Writer* w, uint32_t region,
                                                  uint32_t communicator = 0, uint64_t peer_tag = 0,
                                                  uint64_t bytes = 0) {
  const uint64_t mark = frame_mark();
  if (AON_UNLIKELY(w->span_depth != 0)) {
    const OpenSpan span = {0, region, communicator, peer_tag, bytes};
    const uint64_t nested_start = aon_writer_begin_nested(w, mark, &span);
    return OpenCall{w, nested_start, w->span_depth - 1, region};
  }
  w->span_frame[0] = mark;
  w->span_depth = 1;
  OpenSpan& open = w->slot->open[0];
  open.region = region;
  open.communicator = communicator;
  open.peer_tag = peer_tag;
  open.bytes = bytes;
  const uint64_t start = ticks(w);
  open.start_ticks.store(start, std::memory_order_release);  // pairs with ring:open
  return OpenCall{w, start, 0, region};
}

/// Slots of a record with `words` words behind the first one.
constexpr uint32_t slots_of(uint32_t words) { return 1 + (words + 3) / 4; }

template <uint32_t kWords>
[[gnu::always_inline]] inline void store_record(char* at, const RecordHead& head,
                                                const uint64_t* words) {
  *reinterpret_cast<RecordHead*>(at) = head;
  uint64_t* out = reinterpret_cast<uint64_t*>(at + kSlotBytes);
  for (uint32_t i = 0; i < (slots_of(kWords) - 1) * 4; ++i) out[i] = i < kWords ? words[i] : 0;
}

/// begin_record() of a call's; false also of one that is nested or very long.
[[gnu::always_inline]] inline bool begin_end(const OpenCall& call, uint64_t duration,
                                             uint32_t bytes) {
  return AON_LIKELY((duration >> 32 | call.depth) == 0) && begin_record(call.w, bytes);
}

/// The thread is in no call any more.
[[gnu::always_inline]] inline void leave_call(Writer* w) {
  w->slot->open[0].start_ticks.store(0, std::memory_order_release);  // pairs with ring:open
  w->span_depth = 0;
}

/// Leaves a call that was over at `end`: writes its record with `kWords` words behind the first
/// slot. No record of this thread that is later than `end` may stand before it.
template <uint32_t kWords>
[[gnu::always_inline]] inline void finish_call_at(const OpenCall& call, uint64_t end,
                                                  RecordKind kind, uint16_t flags, uint32_t a32,
                                                  uint64_t a64, const uint64_t* words) {
  static_assert(kWords < kMaxWords, "one word stays free for a wide duration");
  constexpr uint32_t kSlots = slots_of(kWords);
  const uint64_t duration = end - call.start_ticks;
  const RecordHead head = {call.start_ticks,
                           static_cast<uint32_t>(duration),
                           kind,
                           kSlots,
                           flags,
                           call.region,
                           a32,
                           a64};
  if (AON_UNLIKELY(!begin_end(call, duration, kSlots * kSlotBytes))) {
    Record record;
    store_record<kWords>(reinterpret_cast<char*>(&record), head, words);
    aon_writer_finish_slow(call.w, current_frame(), call.depth, &record, kWords, duration);
    return;
  }
  store_record<kWords>(call.w->context[0].cursor, head, words);
  end_record(call.w, kSlots * kSlotBytes, is_counted(kind) ? 1 : 0);
  leave_call(call.w);
}

/// The same for a call that is over now.
template <uint32_t kWords>
[[gnu::always_inline]] inline void finish_call(const OpenCall& call, RecordKind kind,
                                               uint16_t flags, uint32_t a32, uint64_t a64,
                                               const uint64_t* words) {
  finish_call_at<kWords>(call, ticks(call.w), kind, flags, a32, a64, words);
}

/// For a call whose completions carry its end: the clock is read once for all.
[[gnu::always_inline]] inline void finish_span_at(const OpenCall& call, uint64_t end,
                                                  uint16_t flags, uint32_t weight = 1) {
  if (weight > 1) flags |= kSampledCall;
  finish_call_at<0>(call, end, RecordKind::kSpan, flags, 0, weight > 1 ? weight : 0, nullptr);
}

/// `weight` is what start_plan() returned; 1 for a call recorded in full.
[[gnu::always_inline]] inline void finish_span(const OpenCall& call, uint16_t flags = 0,
                                               uint32_t weight = 1) {
  if (weight > 1) flags |= kSampledCall;
  finish_call<0>(call, RecordKind::kSpan, flags, 0, weight > 1 ? weight : 0, nullptr);
}

[[gnu::always_inline]] inline void finish_message(const OpenCall& call, uint16_t flags,
                                                  uint32_t communicator, uint64_t bytes,
                                                  uint64_t peer_tag, uint64_t request) {
  const uint64_t words[] = {peer_tag, request};
  finish_call<2>(call, RecordKind::kMessage, flags, communicator, bytes, words);
}

/// A record without a duration (kCompletion, kBegin, kEnd, kMark, kSample) at time `now`.
template <uint32_t kWords>
[[gnu::always_inline]] inline bool put_event(Writer* w, RecordKind kind, uint64_t now,
                                             uint16_t flags, uint32_t id, uint32_t a32,
                                             uint64_t a64, const uint64_t* words) {
  constexpr uint32_t kSlots = slots_of(kWords);
  const uint16_t all_flags =
      static_cast<uint16_t>(flags | ((w->span_depth & kSpanDepthMask) != 0 ? kInsideSpan : 0));
  return emit(w, kSlots, is_counted(kind), now, [&](char* at) {
    store_record<kWords>(at, {now, 0, kind, kSlots, all_flags, id, a32, a64}, words);
  });
}

[[gnu::always_inline]] inline bool put_completion(Writer* w, uint64_t now, uint16_t flags,
                                                  uint32_t communicator, uint64_t bytes,
                                                  uint64_t peer_tag, uint64_t request) {
  const uint64_t words[] = {peer_tag, request};
  return put_event<2>(w, RecordKind::kCompletion, now, flags, 0, communicator, bytes, words);
}

}  // namespace aon
