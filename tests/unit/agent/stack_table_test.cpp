#include "core/agent/stack_table.h"

#include <gtest/gtest.h>

#include <cstring>

#include "core/ring/memory.h"
#include "core/ring/stack_ring.h"

namespace aon::agent {
namespace {

constexpr uint32_t kProcess = 4;
constexpr uint32_t kSlots = 8;

class Stacks : public testing::Test {
 protected:
  Stacks()
      : made_(ring::RingMemory::create(kProcess, kSlots, 64, 64, true)),
        memory_(*made_),
        header_(*static_cast<RingHeader*>(memory_.base())) {
    header_.slots_used.store(kSlots);
    table_.add(kProcess, memory_.base(), memory_.geometry());
  }
  char* base() { return static_cast<char*>(memory_.base()); }
  ThreadSlot& slot(uint32_t index) {
    return reinterpret_cast<ThreadSlot*>(base() + memory_.geometry().slots_offset)[index];
  }
  /// Chunks 3 i to 3 i + 2 as the ring of slot i.
  ring::StackRing give_ring(uint32_t index) {
    ring::StackRing ring;
    for (uint32_t i = 0; i < kStackChunks; ++i) {
      const uint32_t number = index * kStackChunks + i;
      auto* chunk = reinterpret_cast<ChunkHeader*>(base() + memory_.geometry().chunks_offset +
                                                   uint64_t{number} * kChunkBytes);
      chunk->owner.store(stream_owner(index, kStackContext));
      ring.chunk[i] = reinterpret_cast<std::atomic<uint64_t>*>(chunk + 1);
      slot(index).stack_chunk[i].store(number);
    }
    return ring;
  }
  static ring::NotedStack stack_of(uint32_t tid, uint64_t frame) {
    return {tid * 100u, tid, 1, {frame}};
  }

  Result<ring::RingMemory> made_;
  ring::RingMemory& memory_;
  RingHeader& header_;
  StackTable table_;
  aon_noted_stack stack_ = {};
};

TEST_F(Stacks, gives_those_of_all_threads) {
  put_stack(give_ring(1), stack_of(11, 0x1000));
  put_stack(give_ring(5), stack_of(15, 0x5000));
  ASSERT_TRUE(table_.take(kProcess, &stack_));
  EXPECT_EQ(stack_.tid, 11);
  EXPECT_EQ(stack_.raw_ns, 1100u);
  ASSERT_EQ(stack_.frame_count, 1u);
  EXPECT_EQ(stack_.frames[0], 0x1000u);
  ASSERT_TRUE(table_.take(kProcess, &stack_));
  EXPECT_EQ(stack_.tid, 15);
  EXPECT_FALSE(table_.take(kProcess, &stack_));
  EXPECT_FALSE(table_.take(kProcess + 1, &stack_));
}

TEST_F(Stacks, outlive_their_ring_until_they_are_forgotten) {
  put_stack(give_ring(1), stack_of(11, 0x1000));
  table_.remove(kProcess);
  std::memset(base() + memory_.geometry().slots_offset, 0xff, kPageBytes);
  ASSERT_TRUE(table_.take(kProcess, &stack_));
  EXPECT_EQ(stack_.tid, 11);
  table_.forget(kProcess);
  EXPECT_FALSE(table_.take(kProcess, &stack_));
}

TEST_F(Stacks, of_a_process_that_is_forgotten_first_are_not_kept) {
  put_stack(give_ring(1), stack_of(11, 0x1000));
  table_.forget(kProcess);
  table_.remove(kProcess);
  EXPECT_FALSE(table_.take(kProcess, &stack_));
}

TEST_F(Stacks, that_found_no_room_are_told_once) {
  const ring::StackRing ring = give_ring(1);
  ring.lost().store(3);
  ASSERT_TRUE(table_.take(kProcess, &stack_));
  EXPECT_EQ(stack_.lost_count, 3u);
  EXPECT_EQ(stack_.frame_count, 0u);
  EXPECT_FALSE(table_.take(kProcess, &stack_));
  ring.lost().store(1);  // it lies
  EXPECT_FALSE(table_.take(kProcess, &stack_));
  ring.lost().store(uint64_t{1} << 63);
  EXPECT_FALSE(table_.take(kProcess, &stack_));
  ring.lost().store(5);
  ASSERT_TRUE(table_.take(kProcess, &stack_));
  EXPECT_EQ(stack_.lost_count, 2u);
}

TEST_F(Stacks, that_an_earlier_worker_lost_are_not_told_again) {
  give_ring(1).lost().store(3);
  table_.add(kProcess, memory_.base(), memory_.geometry());
  EXPECT_FALSE(table_.take(kProcess, &stack_));
}

TEST_F(Stacks, are_not_read_from_chunks_that_cannot_be) {
  put_stack(give_ring(1), stack_of(11, 0x1000));
  slot(1).stack_chunk[2].store(64);
  EXPECT_FALSE(table_.take(kProcess, &stack_));
  slot(1).stack_chunk[2].store(20);  // another's
  EXPECT_FALSE(table_.take(kProcess, &stack_));
}

TEST_F(Stacks, come_at_the_rate_that_is_wanted) {
  table_.set_rate(kProcess, 48);
  EXPECT_EQ(header_.stack_rate.load(), 49u);
  table_.set_rate(kProcess, 0);
  EXPECT_EQ(header_.stack_rate.load(), 1u);
  table_.remove(kProcess);
  table_.set_rate(kProcess, 7);
  EXPECT_EQ(header_.stack_rate.load(), 1u);
}

}  // namespace
}  // namespace aon::agent
