// The reader against rings that a test forges: what is right is taken once, what is wrong cuts one
// stream and no other.
#include "core/ring/reader.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <random>

#include "core/ring/memory.h"

namespace aon::ring {
namespace {

constexpr uint32_t kSlots = 4;
constexpr uint32_t kChunks = 16;

RingMemory make_ring(uint32_t offered = kChunks) {
  auto memory = RingMemory::create(7, kSlots, kChunks, offered, true);
  EXPECT_TRUE(memory) << (memory ? "" : memory.error().message);
  return std::move(*memory);
}

/// Writes a ring by hand, right or wrong.
class Forger {
 public:
  explicit Forger(RingMemory& memory)
      : base_(static_cast<char*>(memory.base())), g_(memory.geometry()) {
    header().slots_used.store(kSlots);
  }
  RingHeader& header() { return *reinterpret_cast<RingHeader*>(base_); }
  ThreadSlot& slot(uint32_t i) { return reinterpret_cast<ThreadSlot*>(base_ + g_.slots_offset)[i]; }
  ChunkHeader& chunk(uint32_t i) {
    return *reinterpret_cast<ChunkHeader*>(base_ + g_.chunks_offset + uint64_t{i} * kChunkBytes);
  }
  uint64_t free_word() {
    return reinterpret_cast<std::atomic<uint64_t>*>(base_ + g_.free_map_offset)->load();
  }
  void take_all() {
    reinterpret_cast<std::atomic<uint64_t>*>(base_ + g_.free_map_offset)->store(0);
  }
  /// A chunk of `slot` with `count` one-slot marks.
  void fill(uint32_t index, uint32_t owner_slot, uint64_t sequence, uint64_t first,
            uint32_t count) {
    ChunkHeader& c = chunk(index);
    c.owner = stream_owner(owner_slot, 0);
    c.next = kNoChunk;
    c.chunk_sequence = sequence;
    c.first_sequence = first;
    for (uint32_t i = 0; i < count; ++i) {
      const RecordHead head = {100 + first + i, 0, RecordKind::kMark, 1, 0, 9, 0, first + i};
      std::memcpy(reinterpret_cast<char*>(&c + 1) + i * kSlotBytes, &head, sizeof head);
    }
    c.committed = uint64_t{count} << 32 | count * kSlotBytes;
  }

 private:
  char* base_;
  RingGeometry g_;
};

class Collector : public Sink {
 public:
  bool take(const Piece& piece) override {
    if (room < piece.bytes.size()) return false;
    room -= piece.bytes.size();
    EXPECT_EQ(piece.first_sequence, counted[piece.slot]);
    counted[piece.slot] += piece.counted;
    bytes[piece.slot] += piece.bytes.size();
    position[piece.slot] = piece.after;
    return true;
  }
  void moved(uint32_t slot, uint32_t, const StreamPosition& p) override { position[slot] = p; }

  uint64_t room = UINT64_MAX;
  std::map<uint32_t, uint64_t> counted;
  std::map<uint32_t, uint64_t> bytes;
  std::map<uint32_t, StreamPosition> position;
};

TEST(Reader, takes_a_chain_once_and_frees_what_it_left) {
  RingMemory memory = make_ring();
  Forger forger(memory);
  forger.take_all();
  forger.fill(3, 1, 0, 0, 126);
  forger.fill(5, 1, 1, 126, 10);
  forger.chunk(3).next = 5;
  forger.slot(1).stream[0].first_chunk = 3;
  RingReader reader(memory.base(), memory.geometry());
  Collector sink;
  const DrainResult result = reader.drain(sink);
  EXPECT_EQ(result.counted, 136u);
  EXPECT_EQ(result.chunks_freed, 1u);
  EXPECT_EQ(forger.free_word(), uint64_t{1} << 3);
  EXPECT_EQ(reader.drain(sink).counted, 0u);
  EXPECT_EQ(sink.counted[1], 136u);
}

TEST(Reader, continues_from_a_restored_position_and_never_frees_twice) {
  RingMemory memory = make_ring();
  Forger forger(memory);
  forger.take_all();
  forger.fill(3, 1, 0, 0, 126);
  forger.fill(5, 1, 1, 126, 10);
  forger.chunk(3).next = 5;
  forger.slot(1).stream[0].first_chunk = 3;
  StreamPosition position = {};
  {
    RingReader first(memory.base(), memory.geometry());
    Collector sink;
    first.drain(sink);
    position = sink.position[1];
  }
  position.to_free = 3 + 1;  // as if killed between the free bit and its note
  forger.take_all();         // and a writer has taken chunk 3 again
  forger.fill(5, 1, 1, 126, 12);
  RingReader second(memory.base(), memory.geometry());
  second.restore(1, 0, position);
  Collector sink;
  sink.counted[1] = 136;
  EXPECT_EQ(second.drain(sink).counted, 2u);
  EXPECT_EQ(forger.free_word(), 0u);
}

TEST(Reader, stops_where_the_sink_is_full_and_goes_on_later) {
  RingMemory memory = make_ring();
  Forger forger(memory);
  for (uint32_t slot = 1; slot < 3; ++slot) {
    forger.fill(slot, slot, 0, 0, 50);
    forger.slot(slot).stream[0].first_chunk = slot;
  }
  RingReader reader(memory.base(), memory.geometry());
  Collector sink;
  sink.room = 60 * kSlotBytes;
  EXPECT_FALSE(reader.drain(sink).is_complete);
  sink.room = UINT64_MAX;
  EXPECT_TRUE(reader.drain(sink).is_complete);
  EXPECT_EQ(sink.counted[1] + sink.counted[2], 100u);
}

struct Damage {
  const char* name;
  Cut cut;
  void (*make)(Forger&);
};

class Damaged : public testing::TestWithParam<Damage> {};

TEST_P(Damaged, stream_is_cut_and_the_other_goes_on) {
  RingMemory memory = make_ring();
  Forger forger(memory);
  forger.take_all();
  for (uint32_t slot = 1; slot < 3; ++slot) {
    forger.fill(slot, slot, 0, 0, 126);
    forger.fill(slot + 4, slot, 1, 126, 10);
    forger.chunk(slot).next = slot + 4;
    forger.slot(slot).stream[0].first_chunk = slot;
  }
  GetParam().make(forger);
  RingReader reader(memory.base(), memory.geometry());
  Collector sink;
  reader.drain(sink);
  EXPECT_EQ(reader.position(1, 0).cut, GetParam().cut);
  EXPECT_EQ(reader.position(2, 0).cut, Cut::kNone);
  EXPECT_EQ(sink.counted[2], 136u);
  EXPECT_LE(sink.counted[1] + reader.cut_count(1, 0), 136u + 126u);
  EXPECT_EQ(reader.drain(sink).counted, 0u);
}

INSTANTIATE_TEST_SUITE_P(
    Reader, Damaged,
    testing::Values(
        Damage{"first", Cut::kBadFirstChunk,
               [](Forger& f) { f.slot(1).stream[0].first_chunk = 99; }},
        Damage{"next", Cut::kBadNextChunk, [](Forger& f) { f.chunk(1).next = kChunks; }},
        Damage{"loop", Cut::kBadNextChunk, [](Forger& f) { f.chunk(1).next = 1; }},
        Damage{"owner", Cut::kBadOwner, [](Forger& f) { f.chunk(1).next = 6; }},
        Damage{"sequence", Cut::kBadSequence, [](Forger& f) { f.chunk(5).chunk_sequence = 3; }},
        Damage{"number", Cut::kBadSequence, [](Forger& f) { f.chunk(5).first_sequence = 3; }},
        Damage{"too_long", Cut::kBadCommitted, [](Forger& f) { f.chunk(1).committed = 8192; }},
        Damage{"uneven", Cut::kBadCommitted, [](Forger& f) { f.chunk(1).committed = 33; }},
        Damage{"count", Cut::kBadCommitted,
               [](Forger& f) { f.chunk(1).committed = uint64_t{2} << 32 | 32; }}),
    [](const auto& one) { return std::string(one.param.name); });

TEST(Reader, counts_what_it_knows_to_lie_behind_a_cut) {
  RingMemory memory = make_ring();
  Forger forger(memory);
  forger.fill(1, 1, 0, 0, 126);
  forger.fill(2, 1, 1, 126, 126);
  forger.fill(3, 1, 2, 252, 7);
  forger.chunk(1).next = 99;  // one damaged word; the chunks behind it are whole
  forger.slot(1).stream[0].first_chunk = 1;
  RingReader reader(memory.base(), memory.geometry());
  Collector sink;
  reader.drain(sink);
  EXPECT_EQ(sink.counted[1], 126u);
  EXPECT_EQ(reader.cut_count(1, 0), 133u);
}

TEST(Reader, survives_a_ring_of_random_words) {
  std::mt19937_64 random(1);
  for (int run = 0; run < 200; ++run) {
    RingMemory memory = make_ring();
    uint64_t* words = static_cast<uint64_t*>(memory.base());
    const uint64_t count = memory.geometry().total_bytes / 8;
    for (int i = 0; i < 4000; ++i)
      words[random() % count] = random() % 3 ? random() % 64 : random();
    RingReader reader(memory.base(), memory.geometry());
    Collector sink;
    for (int i = 0; i < 3; ++i) reader.drain(sink);
    for (uint32_t slot = 0; slot < reader.slots_used(); ++slot) {
      EXPECT_LT(reader.refused(slot, 0), uint64_t{1} << 48);
      reader.cut_count(slot, 0);
      reader.open_calls(slot, random());
      reader.open_call(slot);
      std::array<uint64_t, kMaxCounters> counts;
      reader.counters(slot, counts);
    }
  }
}

TEST(Memory, cannot_be_resized_and_offers_chunks_as_told) {
  RingMemory memory = make_ring(4);
  EXPECT_NE(ftruncate(memory.fd(), 0), 0);
  EXPECT_NE(ftruncate(memory.fd(), 1 << 30), 0);
  EXPECT_EQ(memory.free_chunk_count(), 4u);
  EXPECT_TRUE(memory.offer(5));
  EXPECT_EQ(memory.free_chunk_count(), 9u);
  EXPECT_TRUE(memory.offer(100));
  EXPECT_EQ(memory.offered_chunk_count(), kChunks);
}

TEST(Memory, of_another_agent_is_mapped_again) {
  RingMemory memory = make_ring(4);
  auto again = RingMemory::attach(UniqueFd(dup(memory.fd())), kSlots, kChunks, 4);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->free_chunk_count(), 4u);
  EXPECT_FALSE(RingMemory::attach(UniqueFd(dup(memory.fd())), kSlots, kChunks * 2, 4));
}

TEST(RingFile, that_is_none_or_cut_off_is_refused) {
  char path[] = "/tmp/aon-ring-XXXXXX";
  const int fd = mkstemp(path);
  EXPECT_FALSE(read_ring_file(path));
  RingMemory memory = make_ring();
  const uint64_t bytes = memory.geometry().total_bytes;
  ASSERT_EQ(write(fd, memory.base(), bytes), static_cast<ssize_t>(bytes));
  EXPECT_TRUE(read_ring_file(path));
  EXPECT_FALSE(read_ring_file(path, bytes - 1));
  ASSERT_EQ(ftruncate(fd, static_cast<off_t>(bytes - 1)), 0);
  EXPECT_FALSE(read_ring_file(path));
  EXPECT_FALSE(read_ring_file("/nonexistent"));
  close(fd);
  unlink(path);
}

TEST(RingReader, live_threads_show_the_call_they_are_in) {
  RingMemory memory = make_ring();
  Forger forger(memory);
  RingReader reader(memory.base(), memory.geometry());
  ThreadSlot& slot = forger.slot(2);
  slot.state = static_cast<uint32_t>(SlotState::kActive);
  slot.tid = 4711;
  EXPECT_FALSE(reader.open_call(2));
  slot.open[0].region = 5;
  slot.open[0].communicator = 6;
  slot.open[0].peer_tag = 7;
  slot.open[0].bytes = 8;
  slot.open[0].start_ticks = 9;
  const std::optional<OpenCall> call = reader.open_call(2);
  ASSERT_TRUE(call);
  EXPECT_EQ(call->start_ticks, 9u);
  EXPECT_EQ(call->tid, 4711);
  EXPECT_EQ(call->region, 5u);
  EXPECT_EQ(call->communicator, 6u);
  EXPECT_EQ(call->peer_tag, 7u);
  EXPECT_EQ(call->bytes, 8u);
  EXPECT_FALSE(reader.open_call(1));
  // A slot that nobody uses shows what its last thread left there.
  slot.state = static_cast<uint32_t>(SlotState::kIdle);
  EXPECT_FALSE(reader.open_call(2));
}

}  // namespace
}  // namespace aon::ring
