#include "core/agent/record_cost.h"

#include <aon/record.h>
#include <aon/ring.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "core/base/time.h"

namespace aon::agent {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;  // nobody else looks
constexpr int kRecords = 1000;
constexpr int kRounds = 5;
constexpr uint32_t kRecordBytes = 2 * kSlotBytes;  ///< a message's
constexpr size_t kChunks = 2;
constexpr uint64_t kHead = uint64_t{2} << 40;  ///< kind, slots and flags, behind the duration

/// As a thread's Writer, its slot, and its chunk (aon/writer.h): the same loads, branches and
/// stores, in an order that the compiler may not change.
struct Stand {
  const std::atomic<uint32_t>* modes = nullptr;
  OpenSpan* open = nullptr;
  std::atomic<uint32_t> depth{0};
  std::atomic<uint32_t> span_depth{0};
  std::atomic<char*> cursor{nullptr};
  char* end = nullptr;
  std::atomic<uint64_t> committed{0};
  std::atomic<uint64_t>* published = nullptr;
};

struct Memory {
  alignas(64) std::array<char, kChunks * kChunkBytes> chunks;
  alignas(64) std::array<std::atomic<uint32_t>, 16> modes;
  alignas(64) OpenSpan open;
  alignas(64) std::atomic<uint64_t> published;
  alignas(64) Stand stand;
};

void put(Stand* stand, uint64_t start, uint64_t duration, uint64_t peer_tag, uint64_t request) {
  if (stand->depth.load(kRelaxed) != 0) return;
  stand->depth.store(1, kRelaxed);
  char* at = stand->cursor.load(kRelaxed);
  if (stand->end - at < int64_t{kRecordBytes}) at -= kChunks * kChunkBytes;
  auto* words = reinterpret_cast<volatile uint64_t*>(at);  // each by a store of its own
  words[0] = start;
  words[1] = kHead | (duration & 0xffffffffu);
  words[2] = uint64_t{2} << 32 | 1;
  words[3] = 8;
  words[4] = peer_tag;
  words[5] = request;
  words[6] = 0;
  words[7] = 0;
  stand->cursor.store(at + kRecordBytes, kRelaxed);
  const uint64_t committed = stand->committed.load(kRelaxed) + kRecordBytes + (uint64_t{1} << 32);
  stand->committed.store(committed, kRelaxed);
  stand->published->store(committed, kRelaxed);
  stand->depth.store(0, kRelaxed);
}

[[gnu::noinline]] void record_call(Stand* const volatile* place, clock::TickSource source,
                                   uint64_t peer_tag, uint64_t request) {
  Stand* stand = *place;
  if (stand->modes[1].load(kRelaxed) != kModeFull) return;
  if (stand->span_depth.load(kRelaxed) != 0) return;
  stand->span_depth.store(1, kRelaxed);
  OpenSpan& open = *stand->open;
  open.region = 1;
  open.communicator = 2;
  open.peer_tag = peer_tag;
  open.bytes = 8;
  const uint64_t start = clock::now_ticks(source);
  open.start_ticks.store(start, kRelaxed);
  const uint64_t duration = clock::now_ticks(source) - start;
  put(stand, start, duration, peer_tag, request);
  open.start_ticks.store(0, kRelaxed);
  stand->span_depth.store(0, kRelaxed);
}

[[gnu::noinline]] void record_event(Stand* const volatile* place, clock::TickSource source,
                                    uint64_t peer_tag, uint64_t request) {
  put(*place, clock::now_ticks(source), 0, peer_tag, request);
}

template <class Record>
double least_ns(const Record& record) {
  double least = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t begin = monotonic_ns();
    for (int i = 0; i < kRecords; ++i) record(static_cast<uint64_t>(i));
    least = std::min(least, static_cast<double>(monotonic_ns() - begin) / kRecords);
  }
  return least;
}

}  // namespace

RecordCosts measure_record_costs(clock::TickSource source) noexcept {
  Memory memory{};
  memory.modes[1].store(kModeFull, kRelaxed);
  memory.stand.modes = memory.modes.data();
  memory.stand.open = &memory.open;
  memory.stand.cursor.store(memory.chunks.data(), kRelaxed);
  memory.stand.end = memory.chunks.data() + memory.chunks.size();
  memory.stand.published = &memory.published;
  Stand* stand = &memory.stand;
  const auto call = [&](uint64_t i) { record_call(&stand, source, i, ~i); };
  const auto event = [&](uint64_t i) { record_event(&stand, source, i, ~i); };
  return {least_ns(call), least_ns(event)};
}

}  // namespace aon::agent
