#include "core/ring/reader.h"

#include <algorithm>
#include <cstring>

namespace aon::ring {
namespace {

/// No honest writer counts further; a larger value is a broken one and would ruin every sum.
constexpr uint64_t kMostRefused = uint64_t{1} << 48;

constexpr uint64_t kMostRecords = kChunkCapacityBytes / kSlotBytes;  ///< in one chunk

/// What a chunk shows at one moment.
struct ChunkView {
  uint32_t next;
  uint64_t committed;
};

/// `next` before `committed`: when `next` is set, `committed` is final.
ChunkView load_chunk(const ChunkHeader& chunk) {
  const uint32_t next = chunk.next.load(std::memory_order_acquire);  // pairs with ring:next
  const uint64_t committed =
      chunk.committed.load(std::memory_order_acquire);  // pairs with ring:commit
  return {next, committed};
}

bool is_plausible(uint64_t committed, uint64_t before) {
  const uint32_t bytes = committed_bytes(committed);
  const uint32_t count = committed_count(committed);
  const uint32_t old_bytes = committed_bytes(before);
  const uint32_t old_count = committed_count(before);
  return bytes <= kChunkCapacityBytes && bytes % kSlotBytes == 0 && bytes >= old_bytes &&
         count >= old_count && count - old_count <= (bytes - old_bytes) / kSlotBytes;
}

}  // namespace

const char* cut_name(Cut cut) {
  switch (cut) {
    case Cut::kNone:
      return "whole";
    case Cut::kBadFirstChunk:
      return "first chunk out of range";
    case Cut::kBadNextChunk:
      return "next chunk out of range";
    case Cut::kBadOwner:
      return "chunk of another stream";
    case Cut::kBadSequence:
      return "chunk out of sequence";
    case Cut::kBadCommitted:
      return "committed bytes not plausible";
  }
  return "unknown";
}

RingReader::RingReader(void* base, const RingGeometry& geometry, bool frees_chunks)
    : base_(static_cast<char*>(base)),
      geometry_(geometry),
      frees_chunks_(frees_chunks),
      positions_(size_t{geometry.slot_count} * kContexts),
      refused_(size_t{geometry.slot_count} * kContexts) {}

void RingReader::restore(uint32_t slot, uint32_t context, const StreamPosition& position) {
  if (slot >= geometry_.slot_count || context >= kContexts) return;
  if (position.has_chunk != 0 && position.chunk >= geometry_.chunk_count) return;
  StreamPosition& restored = at(slot, context);
  restored = position;
  restored.to_free = 0;
}

DrainResult RingReader::drain(Sink& sink, const DrainLimits& limits) {
  DrainResult total;
  const uint32_t used = slots_used();
  for (uint32_t i = 0; i < used; ++i) {
    const uint32_t slot = (first_slot_ + i) % used;
    for (uint32_t context = 0; context < kContexts; ++context) {
      DrainLimits left = limits;
      left.max_bytes -= std::min(limits.max_bytes, total.bytes);
      const DrainResult one = drain_stream(slot, context, sink, left);
      total.bytes += one.bytes;
      total.counted += one.counted;
      total.chunks_freed += one.chunks_freed;
      if (!one.is_complete) {
        total.is_complete = false;
        first_slot_ = slot;
        return total;
      }
    }
  }
  first_slot_ = used != 0 ? (first_slot_ + 1) % used : 0;
  return total;
}

DrainResult RingReader::drain_stream(uint32_t slot, uint32_t context, Sink& sink,
                                     const DrainLimits& limits) {
  DrainResult result;
  // A chain that never ends cannot hold us: one call visits every chunk once.
  for (uint32_t steps = 0; steps <= geometry_.chunk_count; ++steps) {
    if (result.bytes >= limits.max_bytes) break;
    switch (step(slot, context, sink, &result)) {
      case Step::kIdle:
      case Step::kCut:
        return result;
      case Step::kFull:
        result.is_complete = false;
        return result;
      case Step::kMoved:
        break;
    }
  }
  result.is_complete = false;
  return result;
}

RingReader::Step RingReader::step(uint32_t slot, uint32_t context, Sink& sink,
                                  DrainResult* result) {
  StreamPosition& position = at(slot, context);
  if (position.cut != Cut::kNone) return Step::kIdle;
  if (position.has_chunk == 0) return begin_stream(slot, context, sink);

  const ChunkHeader& chunk = chunk_at(position.chunk);
  const ChunkView view = load_chunk(chunk);
  if (!is_plausible(view.committed, position.committed)) {
    return cut(slot, context, Cut::kBadCommitted, sink);
  }
  const uint32_t begin = committed_bytes(position.committed);
  const uint32_t bytes = committed_bytes(view.committed) - begin;
  if (bytes != 0) {
    Piece piece;
    piece.slot = slot;
    piece.context = context;
    piece.first_sequence = position.taken;
    piece.counted = committed_count(view.committed) - committed_count(position.committed);
    piece.bytes = {reinterpret_cast<const uint8_t*>(&chunk + 1) + begin, bytes};
    piece.after = position;
    piece.after.committed = view.committed;
    piece.after.taken += piece.counted;
    if (!sink.take(piece)) return Step::kFull;
    position = piece.after;
    result->bytes += bytes;
    result->counted += piece.counted;
  }
  if (view.next == kNoChunk) return Step::kIdle;
  return move_on(slot, context, view.next, sink, result);
}

RingReader::Step RingReader::begin_stream(uint32_t slot, uint32_t context, Sink& sink) {
  const uint32_t first = slot_at(slot).stream[context].first_chunk.load(
      std::memory_order_acquire);  // pairs with ring:first
  if (first == kNoChunk) return Step::kIdle;
  if (first >= geometry_.chunk_count) return cut(slot, context, Cut::kBadFirstChunk, sink);
  const Cut reason = check_chunk(slot, context, first, 0, 0);
  if (reason != Cut::kNone) return cut(slot, context, reason, sink);
  StreamPosition& position = at(slot, context);
  position = StreamPosition{};
  position.chunk = first;
  position.has_chunk = 1;
  sink.moved(slot, context, position);
  return Step::kMoved;
}

RingReader::Step RingReader::move_on(uint32_t slot, uint32_t context, uint32_t next, Sink& sink,
                                     DrainResult* result) {
  StreamPosition& position = at(slot, context);
  if (next >= geometry_.chunk_count || next == position.chunk) {
    return cut(slot, context, Cut::kBadNextChunk, sink);
  }
  const uint64_t sequence = position.chunk_sequence + 1;
  const uint64_t first = position.first_sequence + committed_count(position.committed);
  const Cut reason = check_chunk(slot, context, next, sequence, first);
  if (reason != Cut::kNone) return cut(slot, context, reason, sink);

  const uint32_t old = position.chunk;
  position.chunk = next;
  position.committed = 0;
  position.chunk_sequence = sequence;
  position.first_sequence = first;
  if (!frees_chunks_) {
    sink.moved(slot, context, position);
    return Step::kMoved;
  }
  position.to_free = old + 1;
  sink.moved(slot, context, position);
  set_free(old);
  position.to_free = 0;
  sink.moved(slot, context, position);
  result->chunks_freed += 1;
  return Step::kMoved;
}

/// Nothing behind the cut is read again; cut_count() estimates what was there.
RingReader::Step RingReader::cut(uint32_t slot, uint32_t context, Cut reason, Sink& sink) {
  StreamPosition& position = at(slot, context);
  position.cut = reason;
  sink.moved(slot, context, position);
  return Step::kCut;
}

Cut RingReader::check_chunk(uint32_t slot, uint32_t context, uint32_t index,
                            uint64_t chunk_sequence, uint64_t first_sequence) const {
  const ChunkHeader& chunk = chunk_at(index);
  if (chunk.owner.load(std::memory_order_relaxed) != stream_owner(slot, context)) {
    return Cut::kBadOwner;
  }
  const volatile ChunkHeader& once = chunk;
  if (once.chunk_sequence != chunk_sequence || once.first_sequence != first_sequence) {
    return Cut::kBadSequence;
  }
  return Cut::kNone;
}

uint32_t RingReader::slots_used() const {
  const RingHeader* header = reinterpret_cast<const RingHeader*>(base_);
  const uint32_t used =
      header->slots_used.load(std::memory_order_acquire);  // pairs with ring:slots
  return std::clamp(used, kMainThreadSlot, geometry_.slot_count);
}

bool RingReader::is_active(uint32_t slot) const {
  return slot_at(slot).state.load(std::memory_order_relaxed) ==
         static_cast<uint32_t>(SlotState::kActive);
}

int32_t RingReader::tid(uint32_t slot) const {
  return static_cast<int32_t>(slot_at(slot).tid.load(std::memory_order_relaxed));
}

uint64_t RingReader::refused(uint32_t slot, uint32_t context) {
  const uint64_t now = slot_at(slot).stream[context].refused.load(std::memory_order_relaxed);
  uint64_t& known = refused_[slot * kContexts + context];
  // Refused definitions are tried again, and no longer counted where that succeeds.
  const bool is_later = now > known || slot == kDefinitionSlot;
  if (is_later && now < kMostRefused) known = now;
  return known;
}

uint64_t RingReader::cut_count(uint32_t slot, uint32_t context, uint32_t chunk_count) const {
  const StreamPosition& position = positions_[slot * kContexts + context];
  if (position.cut == Cut::kNone) return 0;
  uint64_t most = 0;
  for (uint32_t i = 0; i < std::min(chunk_count, geometry_.chunk_count); ++i) {
    const volatile ChunkHeader& chunk = chunk_at(i);
    if (chunk_at(i).owner.load(std::memory_order_relaxed) != stream_owner(slot, context)) continue;
    const uint64_t ahead = chunk.chunk_sequence - position.chunk_sequence;
    const uint64_t count = committed_count(chunk_at(i).committed.load(std::memory_order_relaxed));
    const uint64_t lost = chunk.first_sequence + count - position.taken;
    // Believed only as far as that many chunks can hold that many records.
    if (ahead > geometry_.chunk_count || lost > (ahead + 1) * kMostRecords) continue;
    most = std::max(most, lost);
  }
  return most;
}

uint64_t RingReader::refused_no_slot() {
  const RingHeader* header = reinterpret_cast<const RingHeader*>(base_);
  const uint64_t now = header->refused_no_slot.load(std::memory_order_relaxed);
  if (now > refused_no_slot_ && now < kMostRefused) refused_no_slot_ = now;
  return refused_no_slot_;
}

bool RingReader::counters(uint32_t slot, std::span<uint64_t, kMaxCounters> out) const {
  const uint32_t index =
      slot_at(slot).counter_chunk.load(std::memory_order_acquire);  // pairs with ring:counters
  if (index >= geometry_.chunk_count) return false;
  const ChunkHeader& chunk = chunk_at(index);
  if (chunk.owner.load(std::memory_order_relaxed) != stream_owner(slot, kCounterContext)) {
    return false;
  }
  const auto* counts = reinterpret_cast<const std::atomic<uint64_t>*>(&chunk + 1);
  for (uint32_t i = 0; i < kMaxCounters; ++i) out[i] = counts[i].load(std::memory_order_relaxed);
  return true;
}

std::vector<Record> RingReader::open_calls(uint32_t slot, uint64_t end_ticks) const {
  std::vector<Record> calls;
  for (const OpenSpan& open : slot_at(slot).open) {
    const uint64_t start =
        open.start_ticks.load(std::memory_order_acquire);  // pairs with ring:open
    if (start == 0 || start > end_ticks || was_recorded(slot, start)) continue;
    Record record = {};
    const uint64_t duration = end_ticks - start;
    record.head.start_ticks = start;
    record.head.duration_ticks = static_cast<uint32_t>(duration);
    record.head.kind = RecordKind::kSpan;
    record.head.slot_count = 2;
    record.head.flags = kOpenAtEnd;
    record.head.id = open.region;
    record.head.a32 = open.communicator;
    record.head.a64 = open.bytes;
    record.words[0] = open.peer_tag;
    if (duration >> 32 != 0) {
      record.head.flags |= kWideDuration;
      record.words[3] = duration;
    }
    if (!calls.empty()) record.head.flags |= kInsideSpan;
    calls.push_back(record);
  }
  return calls;
}

std::optional<OpenCall> RingReader::open_call(uint32_t slot) const {
  const OpenSpan& open = slot_at(slot).open[0];
  if (!is_active(slot)) return std::nullopt;
  const uint64_t start = open.start_ticks.load(std::memory_order_acquire);  // pairs with ring:open
  if (start == 0) return std::nullopt;
  return OpenCall{start, tid(slot), open.region, open.communicator, open.peer_tag, open.bytes};
}

/// A call is recorded before its open-span slot is cleared; then its record is the stream's last
/// span, and that lies in the current chunk.
bool RingReader::was_recorded(uint32_t slot, uint64_t start_ticks) const {
  const StreamPosition& position = positions_[slot * kContexts];
  if (position.has_chunk == 0) return false;
  const char* base = reinterpret_cast<const char*>(&chunk_at(position.chunk) + 1);
  const uint32_t bytes = committed_bytes(position.committed);
  for (uint32_t offset = 0; offset < bytes;) {
    RecordHead head;
    std::memcpy(&head, base + offset, sizeof head);
    if (!is_valid(head)) return false;
    if (is_call(head.kind) && head.start_ticks == start_ticks) return true;
    offset += head.slot_count * kSlotBytes;
  }
  return false;
}

ThreadSlot& RingReader::slot_at(uint32_t slot) const {
  return reinterpret_cast<ThreadSlot*>(base_ + geometry_.slots_offset)[slot];
}

ChunkHeader& RingReader::chunk_at(uint32_t index) const {
  return *reinterpret_cast<ChunkHeader*>(base_ + geometry_.chunks_offset +
                                         uint64_t{index} * kChunkBytes);
}

void RingReader::set_free(uint32_t index) {
  auto* map = reinterpret_cast<std::atomic<uint64_t>*>(base_ + geometry_.free_map_offset);
  map[index / 64].fetch_or(uint64_t{1} << (index % 64),
                           std::memory_order_release);  // pairs with ring:free
}

}  // namespace aon::ring
