// The slow path of emit(): a new chunk, refusals and LOST records, frames left by longjmp.
#include <aon/writer.h>
#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "core/runtime/counters.h"
#include "core/runtime/process.h"

namespace aon::runtime {
namespace {

constexpr uint64_t kRefusalsPerClock = 64;

void set_position(WriterContext* context, ChunkHeader* chunk, uint64_t committed) {
  char* base = reinterpret_cast<char*>(chunk + 1);
  context->committed = committed;
  context->cursor = base + committed_bytes(committed);
  context->end = base + kChunkCapacityBytes;
  context->chunk = chunk;
}

/// The owner is stored first: repair_context() tells by it a chunk that was handed on.
void initialise_chunk(ChunkHeader* chunk, uint32_t owner, const ChunkHeader* previous) {
  chunk->owner.store(owner, std::memory_order_relaxed);
  chunk->next.store(kNoChunk, std::memory_order_release);  // pairs with runtime:repair
  chunk->committed.store(0, std::memory_order_relaxed);
  chunk->first_sequence = 0;
  chunk->chunk_sequence = 0;
  if (previous != nullptr) {
    const uint64_t committed = previous->committed.load(std::memory_order_relaxed);
    chunk->first_sequence = previous->first_sequence + committed_count(committed);
    chunk->chunk_sequence = previous->chunk_sequence + 1;
  }
}

void link_chunk(StreamState& stream, ChunkHeader* previous, uint32_t index) {
  if (previous != nullptr) {
    previous->next.store(index, std::memory_order_release);  // pairs with ring:next
  } else {
    stream.first_chunk.store(index, std::memory_order_release);  // pairs with ring:first
  }
}

/// Whether the chunk `pending` was linked before the emit that took it was left. The reader may
/// have freed the chunk before it already, and another thread may have taken that one.
bool is_linked(StreamState& stream, const ChunkHeader* previous, uint32_t owner, uint32_t pending) {
  if (previous == nullptr) {
    return stream.first_chunk.load(std::memory_order_relaxed) == pending;
  }
  const uint32_t next =
      previous->next.load(std::memory_order_acquire);  // pairs with runtime:repair
  return next == pending || previous->owner.load(std::memory_order_relaxed) != owner;
}

void refuse(Writer* w, WriterContext* context, uint64_t ticks) {
  StreamState& stream = w->slot->stream[context - w->context];
  // Records of devices and of NCCL come in no order of time.
  const bool is_first = context->refused == 0;
  if (is_first || ticks < context->first_refused_ticks) context->first_refused_ticks = ticks;
  if (is_first || ticks > context->last_refused_ticks) context->last_refused_ticks = ticks;
  context->refused += 1;
  stream.refused.fetch_add(1, std::memory_order_relaxed);
}

/// First record of a chunk after refusals: how many, from when to when.
void put_lost(WriterContext* context, const HoleRegions& hole) {
  const uint64_t duration = context->last_refused_ticks - context->first_refused_ticks;
  const bool is_wide = duration >> 32 != 0;
  Record record = {};
  record.head.start_ticks = context->first_refused_ticks;
  record.head.duration_ticks = static_cast<uint32_t>(duration);
  record.head.kind = RecordKind::kLost;
  record.head.slot_count = is_wide ? 2 : 1;
  record.head.flags = is_wide ? kWideDuration : 0;
  record.head.id = static_cast<uint32_t>(LossReason::kPoolFull);
  record.head.a32 = pack_lost_regions(hole.ended, hole.begun);
  record.head.a64 = context->refused;
  record.words[3] = is_wide ? duration : 0;
  const uint32_t bytes = record.head.slot_count * kSlotBytes;
  memcpy(context->cursor, &record, bytes);
  context->cursor += bytes;
  context->committed += bytes;
  context->chunk->committed.store(context->committed,
                                  std::memory_order_release);  // pairs with ring:commit
  context->refused = 0;
}

/// A call that came from the frame of one that was left may have pushed so much more arguments. A
/// call within another lies deeper: the outer one's wrapper has saved more than that.
constexpr ptrdiff_t kMostPushedBytes = 64;

/// True when frames `a` and `b` lie on the same stack of this thread, as far as one can know: both
/// on its signal stack or both off it.
bool on_same_stack(const stack_t& signal_stack, const char* a, const char* b) {
  const char* low = static_cast<const char*>(signal_stack.ss_sp);
  const char* high = low + signal_stack.ss_size;
  if ((signal_stack.ss_flags & SS_DISABLE) != 0) return true;
  return (a >= low && a < high) == (b >= low && b < high);
}

/// True when the frame `dead` was left without returning, seen from `now` on the same thread: a
/// stack grows down, so a frame at or above it has replaced it; and a frame on the signal stack
/// is gone once nobody runs there.
bool was_left(const char* dead, const char* now) {
  stack_t signal_stack = {};
  if (sigaltstack(nullptr, &signal_stack) != 0) return false;
  if (on_same_stack(signal_stack, dead, now)) return now >= dead;
  return (signal_stack.ss_flags & SS_ONSTACK) == 0;
}

const char* frame_of(uint64_t mark) { return reinterpret_cast<const char*>(mark & kFrameMask); }

/// Asks the kernel, which reads the set before it finds that there is no such change.
bool is_readable(const char* word) {
  constexpr long kNoChange = -1;
  return syscall(SYS_rt_sigprocmask, kNoChange, word, nullptr, sizeof(uint64_t)) == 0 ||
         errno != EFAULT;
}

/// The word below the frame of `mark` is the return address that was there. It must be readable.
[[gnu::no_sanitize_address]] bool is_return_address(uint64_t mark) {
#if defined(__x86_64__)
  const char* frame = frame_of(mark);
  const uint64_t there = *reinterpret_cast<const volatile uint64_t*>(frame - sizeof(uint64_t));
  return (there << kFrameBits ^ reinterpret_cast<uint64_t>(frame)) == mark;
#else
  return mark != 0;
#endif
}

/// The same of any frame; where it cannot be told it is.
bool has_return_address(uint64_t mark) {
  const int own_errno = errno;
  const bool can_read = is_readable(frame_of(mark) - sizeof(uint64_t));
  errno = own_errno;
  return !can_read || is_return_address(mark);
}

/// Above `now` within its page: on the same stack, and there to be read, without asking the kernel.
bool is_just_above(const char* frame, const char* now) {
  constexpr uint64_t kPageMask = ~uint64_t{4095};
  const auto word = reinterpret_cast<uint64_t>(frame - sizeof(uint64_t));
  return frame - now > kMostPushedBytes &&
         ((word ^ reinterpret_cast<uint64_t>(now)) & kPageMask) == 0;
}

/// Whether the call of `mark` was left, seen from `now`: by its place, or because a call from the
/// frame to which it was left has written over its return address.
bool was_call_left(uint64_t mark, const char* now) {
  const char* frame = frame_of(mark);
  if (is_just_above(frame, now)) return !is_return_address(mark);
  return was_left(frame, now + kMostPushedBytes) || !has_return_address(mark);
}

/// Of a call that was left by its place: false where it may still run on a stack of its own, lower
/// than that of `now`, as user-level threads have them.
bool is_surely_left(uint64_t mark, const char* now) {
  return now - frame_of(mark) <= kMostPushedBytes || !has_return_address(mark);
}

/// A call that was left has no end that anybody saw: it is told by a record of no length.
void put_left_call(Writer* w, uint32_t depth) {
  OpenSpan& open = w->slot->open[depth];
  if (open.start_ticks.load(std::memory_order_relaxed) == 0) return;
  Record record = {};
  record.head.start_ticks = ticks(w);
  record.head.kind = RecordKind::kSpan;
  record.head.slot_count = 1;
  record.head.flags = static_cast<uint16_t>(kFailed | (depth != 0 ? kInsideSpan : 0));
  record.head.id = open.region;
  aon_writer_put(w, &record);
}

/// Depth after frames that were left are taken off; what they left half-done is repaired.
uint32_t unwind(Writer* w, const char* frame) {
  uint32_t depth = w->depth;
  while (depth > 0 && was_left(w->context[depth - 1].frame, frame)) {
    repair_context(*process(), w, --depth);
  }
  return depth;
}

}  // namespace

ChunkHeader* chunk_at(Process& p, uint32_t index) {
  return reinterpret_cast<ChunkHeader*>(p.chunks + uint64_t{index} * kChunkBytes);
}

uint32_t chunk_index(Process& p, const ChunkHeader* chunk) {
  return static_cast<uint32_t>((reinterpret_cast<const char*>(chunk) - p.chunks) / kChunkBytes);
}

uint32_t take_chunk(Process& p) {
  const uint32_t words = (p.geometry.chunk_count + 63) / 64;
  for (uint32_t i = 0; i < words; ++i) {
    uint64_t free = p.free_map[i].load(std::memory_order_relaxed);
    while (free != 0) {
      const uint64_t bit = free & -free;
      const uint32_t index = i * 64 + static_cast<uint32_t>(__builtin_ctzll(bit));
      if (index >= p.geometry.chunk_count) return kNoChunk;  // nobody of ours offers that
      if (p.free_map[i].compare_exchange_weak(free, free & ~bit, std::memory_order_acquire,
                                              std::memory_order_relaxed)) {  // pairs with ring:free
        return index;
      }
    }
  }
  return kNoChunk;
}

void ring_bell(Process& p) {
  Bell* bell = p.bell;
  if (bell == nullptr || bell->armed.load(std::memory_order_relaxed) == 0 ||
      bell->armed.exchange(0, std::memory_order_relaxed) == 0) {
    return;
  }
  const int own_errno = errno;
  bell->rings.fetch_add(1, std::memory_order_release);  // pairs with agent:bell
  syscall(SYS_futex, &bell->rings, FUTEX_WAKE, 1, nullptr, nullptr, 0);
  errno = own_errno;
}

void repair_context(Process& p, Writer* w, uint32_t depth) {
  WriterContext* context = &w->context[depth];
  if (context->pending != nullptr) {
    StreamState& stream = w->slot->stream[depth];
    const uint32_t owner = stream_owner(static_cast<uint32_t>(w->slot - p.slots), depth);
    const uint32_t index = chunk_index(p, context->pending);
    if (!is_linked(stream, context->chunk, owner, index)) {
      link_chunk(stream, context->chunk, index);
    }
    context->chunk = context->pending;
    context->pending = nullptr;
  }
  if (context->chunk == nullptr) return;
  set_position(context, context->chunk, context->chunk->committed.load(std::memory_order_relaxed));
}

}  // namespace aon::runtime

// Inside the namespace, or the declarations' visibility is lost.
namespace aon {
extern "C" {

bool aon_writer_extend(Writer* w, WriterContext* context, uint32_t bytes, bool counted,
                       uint64_t ticks) noexcept {
  using namespace runtime;
  if (w->slot == nullptr || bytes > kMaxSlots * kSlotBytes) return false;
  Process& p = *process();
  const uint32_t index = take_chunk(p);
  const uint32_t wake_chunk = p.ring->wake_chunk.load(std::memory_order_relaxed);
  if (index >= wake_chunk && wake_chunk != 0) ring_bell(p);  // also when there was none
  if (index == kNoChunk) {
    if (counted) refuse(w, context, ticks);
    // No agent will tell until when.
    if (!p.has_agent && context->refused % kRefusalsPerClock == 1) note_clock(p);
    return false;
  }
  const uint32_t depth = static_cast<uint32_t>(context - w->context);
  ChunkHeader* chunk = chunk_at(p, index);
  initialise_chunk(chunk, stream_owner(static_cast<uint32_t>(w->slot - p.slots), depth),
                   context->chunk);
  compiler_barrier();
  context->pending = chunk;
  compiler_barrier();
  link_chunk(w->slot->stream[depth], context->chunk, index);
  compiler_barrier();
  set_position(context, chunk, 0);
  compiler_barrier();
  context->pending = nullptr;
  if (context->refused != 0) put_lost(context, w->hole[depth]);
  w->hole[depth] = {};
  if (!p.has_agent) note_clock(p);
  return true;
}

bool aon_writer_put_slow(Writer* w, const char* frame, const Record* record,
                         uint64_t now) noexcept {
  if (w->slot == nullptr) return false;
  const bool counted = is_counted(record->head.kind);
  const uint32_t depth = runtime::unwind(w, frame);
  if (depth >= kContexts) {
    w->slot->stream[kContexts - 1].refused.fetch_add(counted ? 1 : 0, std::memory_order_relaxed);
    return false;
  }
  WriterContext& context = w->context[depth];
  context.frame = frame;
  compiler_barrier();
  w->depth = depth + 1;
  compiler_barrier();
  const uint32_t bytes = record->head.slot_count * kSlotBytes;
  bool ok = true;
  if (context.end - context.cursor < int64_t{bytes}) {
    ok = aon_writer_extend(w, &context, bytes, counted, now);
  }
  if (ok) {
    memcpy(context.cursor, record, bytes);
    context.cursor += bytes;
    context.committed += bytes + (counted ? uint64_t{1} << 32 : 0);
    context.chunk->committed.store(context.committed,
                                   std::memory_order_release);  // pairs with ring:commit
  }
  compiler_barrier();
  w->depth = depth;
  return ok;
}

void aon_writer_unwind_spans(Writer* w, const char* frame) noexcept {
  const uint32_t counters = w->span_depth & kReadsCounters;
  uint32_t depth = std::min(w->span_depth & kSpanDepthMask, kOpenSpans);
  uint32_t running = depth;
  uint32_t told = depth;  // and those within it
  while (running > 0 && runtime::was_call_left(w->span_frame[running - 1], frame)) {
    --running;
    if (runtime::is_surely_left(w->span_frame[running], frame)) told = running;
  }
  while (depth > running) {
    --depth;
    if (depth >= told) runtime::put_left_call(w, depth);
    w->slot->open[depth].start_ticks.store(0, std::memory_order_release);  // pairs with ring:open
    w->span_depth = depth | counters;
  }
}

uint64_t aon_writer_begin_nested(Writer* w, uint64_t mark, const OpenSpan* span) noexcept {
  aon_writer_unwind_spans(w, runtime::frame_of(mark));
  const uint32_t depth = w->span_depth & kSpanDepthMask;
  w->span_depth += 1;
  if (depth >= kOpenSpans) return ticks(w);
  if ((w->span_depth & kReadsCounters) != 0) runtime::read_counters_at_entry(w, depth);
  w->span_frame[depth] = mark;
  OpenSpan& open = w->slot->open[depth];
  open.region = span->region;
  open.communicator = span->communicator;
  open.peer_tag = span->peer_tag;
  open.bytes = span->bytes;
  const uint64_t start = ticks(w);
  open.start_ticks.store(start, std::memory_order_release);  // pairs with ring:open
  return start;
}

void aon_writer_finish_slow(Writer* w, const char* frame, uint32_t depth, Record* record,
                            uint32_t words, uint64_t duration) noexcept {
  if (w->slot == nullptr) return;
  const uint32_t span_depth = depth;
  depth &= kSpanDepthMask;
  if (depth != 0) record->head.flags |= kInsideSpan;
  if (duration >> 32 != 0) {
    const uint8_t slots = static_cast<uint8_t>(1 + (words + 4) / 4);
    if (slots != record->head.slot_count) memset(&record->words[words], 0, 4 * sizeof(uint64_t));
    record->head.slot_count = slots;
    record->head.flags |= kWideDuration;
    record->words[(slots - 1u) * 4 - 1] = duration;
  }
  const bool has_counters = (span_depth & kReadsCounters) != 0 && depth < kOpenSpans;
  if (has_counters) runtime::put_counters(w, depth, record->head, duration);
  aon_writer_put_slow(w, frame, record, end_ticks(*record));
  if (depth < kOpenSpans) {
    w->slot->open[depth].start_ticks.store(0, std::memory_order_release);  // pairs with ring:open
  }
  w->span_depth = span_depth;
}

bool aon_writer_put(Writer* w, const Record* record) noexcept {
  if (w == nullptr || w->slot == nullptr || !is_valid(record->head)) return false;
  const uint32_t slots = record->head.slot_count;
  return emit(w, slots, is_counted(record->head.kind), end_ticks(*record),
              [&](char* at) { memcpy(at, record, slots * kSlotBytes); });
}

bool aon_writer_add_counters(Writer* w) noexcept {
  using namespace runtime;
  if (w->slot == nullptr) return false;
  Process& p = *process();
  const uint32_t index = take_chunk(p);
  if (index == kNoChunk) {
    w->slot->stream[0].refused.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  ChunkHeader* chunk = chunk_at(p, index);
  initialise_chunk(chunk, stream_owner(static_cast<uint32_t>(w->slot - p.slots), kCounterContext),
                   nullptr);
  memset(static_cast<void*>(chunk + 1), 0, kChunkCapacityBytes);
  w->slot->counter_chunk.store(index, std::memory_order_release);  // pairs with ring:counters
  w->counters = reinterpret_cast<std::atomic<uint64_t>*>(chunk + 1);
  return true;
}

}  // extern "C"
}  // namespace aon
