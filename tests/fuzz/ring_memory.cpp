/// A ring that a hostile process wrote: the reader hands out only bytes of the mapping, ends, and
/// what it hands out goes through the encoder.
///
///     input:  {u16 place (in words of 8 bytes), u64 value}... stored into a ring that was valid,
///             drained after every sixteenth
#include <aon/ring.h>

#include <cstring>
#include <new>

#include "core/ring/reader.h"
#include "core/spool/block_codec.h"
#include "tests/fuzz/target.h"

namespace aon::fuzz {
namespace {

constexpr uint32_t kSlots = 3;
constexpr uint32_t kChunks = 6;
constexpr RingGeometry kGeometry = ring_geometry(kSlots, kChunks);
constexpr uint32_t kPatchesPerDrain = 16;

struct alignas(kPageBytes) RingBytes {
  uint8_t bytes[kGeometry.total_bytes];

  template <class T>
  T* at(uint64_t offset) {
    return std::launder(reinterpret_cast<T*>(bytes + offset));
  }
  ChunkHeader* chunk(uint32_t index) {
    return at<ChunkHeader>(kGeometry.chunks_offset + uint64_t{index} * kChunkBytes);
  }
};

void fill_chunk(RingBytes* ring, uint32_t index, uint16_t slot, uint64_t sequence, uint32_t next) {
  ChunkHeader* chunk = ring->chunk(index);
  const uint32_t records = next == kNoChunk ? 5 : kChunkCapacityBytes / kSlotBytes;
  chunk->next = next;
  chunk->owner = stream_owner(slot, 0);
  chunk->chunk_sequence = sequence;
  chunk->first_sequence = sequence * (kChunkCapacityBytes / kSlotBytes);
  auto* record = reinterpret_cast<RecordHead*>(chunk + 1);
  for (uint32_t i = 0; i < records; ++i) {
    record[i] = {1000 + i, 10, RecordKind::kSpan, 1, 0, i, 0, 0};
  }
  chunk->committed = uint64_t{records} << 32 | records * kSlotBytes;
}

/// Slot 1 with three chunks, slot 2 with one, two chunks free.
void make_ring(RingBytes* ring) {
  std::memset(ring, 0, sizeof(*ring));
  auto* header = ring->at<RingHeader>(0);
  header->magic = kRingMagic;
  header->slots_used = kSlots;
  for (uint32_t slot = 0; slot < kSlots; ++slot) {
    auto* state = ring->at<ThreadSlot>(kGeometry.slots_offset + slot * sizeof(ThreadSlot));
    state->counter_chunk = kNoChunk;
    for (StreamState& stream : state->stream) stream.first_chunk = kNoChunk;
    state->state = static_cast<uint32_t>(SlotState::kActive);
    if (slot != 0) state->stream[0].first_chunk = slot == 1 ? 0 : 3;
  }
  fill_chunk(ring, 0, 1, 0, 1);
  fill_chunk(ring, 1, 1, 1, 2);
  fill_chunk(ring, 2, 1, 2, kNoChunk);
  fill_chunk(ring, 3, 2, 0, kNoChunk);
}

/// Checks every piece and sends a copy of it through the encoder.
class CheckingSink : public ring::Sink {
 public:
  explicit CheckingSink(const RingBytes& ring) : ring_(ring) {}
  bool take(const ring::Piece& piece) override {
    check(piece.slot < kSlots && piece.context < kContexts);
    check(piece.bytes.data() >= ring_.bytes + kGeometry.chunks_offset);
    check(piece.bytes.data() + piece.bytes.size() <= ring_.bytes + kGeometry.total_bytes);
    const Bytes copy(piece.bytes.begin(), piece.bytes.end());
    bool refused = false;
    encoder_.begin(nullptr);
    check(encoder_.add(copy, &refused) <= copy.size());
    payload_.clear();
    const spool::RunSummary summary = encoder_.finish(&payload_);
    check(spool::BlockDecoder().begin(payload_, summary.record_count).has_value());
    return true;
  }
  void moved(uint32_t slot, uint32_t context, const ring::StreamPosition&) override {
    check(slot < kSlots && context < kContexts);
  }

 private:
  const RingBytes& ring_;
  spool::BlockEncoder encoder_;
  Bytes payload_;
};

void put_patch(Bytes* input, uint64_t offset, uint64_t value) {
  const uint64_t place = offset / 8;
  input->insert(input->end(), {static_cast<uint8_t>(place), static_cast<uint8_t>(place >> 8)});
  for (int i = 0; i < 8; ++i) input->push_back(static_cast<uint8_t>(value >> (8 * i)));
}

}  // namespace

/// The places that steer the reader: chunk headers, slots, and the first record's head.
std::vector<Bytes> seeds() {
  std::vector<Bytes> inputs;
  for (uint64_t value : {uint64_t{0}, uint64_t{1}, uint64_t{kNoChunk}, ~uint64_t{0}}) {
    Bytes input;
    for (uint32_t chunk = 0; chunk < kChunks; ++chunk) {
      for (uint64_t word = 0; word < 10; ++word) {
        put_patch(&input, kGeometry.chunks_offset + chunk * kChunkBytes + word * 8, value);
      }
    }
    inputs.push_back(input);
    input.clear();
    for (uint64_t word = 0; word < kSlots * sizeof(ThreadSlot) / 8; ++word) {
      put_patch(&input, kGeometry.slots_offset + word * 8, value);
    }
    inputs.push_back(input);
  }
  return inputs;
}

}  // namespace aon::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  using namespace aon;
  static auto* ring = new fuzz::RingBytes;
  static fuzz::CheckingSink sink(*ring);
  fuzz::make_ring(ring);
  ring::RingReader reader(ring, fuzz::kGeometry);
  fuzz::Input input(data, bytes);
  for (uint32_t patches = 1; !input.is_empty(); ++patches) {
    const uint64_t place = input.take<uint16_t>() % (fuzz::kGeometry.total_bytes / 8);
    const auto value = input.take<uint64_t>();
    std::memcpy(ring->bytes + place * 8, &value, sizeof(value));
    if (patches % fuzz::kPatchesPerDrain == 0) reader.drain(sink);
  }
  reader.drain(sink);
  uint64_t counters[kMaxCounters];
  for (uint32_t slot = 0; slot < fuzz::kSlots; ++slot) {
    for (const Record& call : reader.open_calls(slot, 5000)) fuzz::check(is_valid(call.head));
    reader.counters(slot, counters);
    for (uint32_t context = 0; context < kContexts; ++context) {
      reader.refused(slot, context);
      reader.cut_count(slot, context);
    }
  }
  return 0;
}
