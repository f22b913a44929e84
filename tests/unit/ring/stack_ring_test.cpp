#include "core/ring/stack_ring.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace aon::ring {
namespace {

class RingOfStacks : public testing::Test {
 protected:
  RingOfStacks() : words_(kStackChunks * kChunkWords) {
    for (uint32_t i = 0; i < kStackChunks; ++i) ring_.chunk[i] = &words_[i * kChunkWords];
  }
  static NotedStack stack_of(uint64_t first, uint32_t count) {
    NotedStack stack = {first * 10, 7, count, {}};
    for (uint32_t i = 0; i < count; ++i) stack.frames[i] = first + i;
    return stack;
  }
  void expect_next(uint64_t first, uint32_t count) {
    NotedStack stack;
    ASSERT_TRUE(take_stack(ring_, &stack));
    EXPECT_EQ(stack.raw_ns, first * 10);
    EXPECT_EQ(stack.tid, 7u);
    ASSERT_EQ(stack.frame_count, count);
    for (uint32_t i = 0; i < count; ++i) EXPECT_EQ(stack.frames[i], first + i);
  }

  std::vector<std::atomic<uint64_t>> words_;
  StackRing ring_;
};

TEST_F(RingOfStacks, gives_stacks_in_order_across_its_end) {
  for (uint64_t i = 0; i < 200; ++i) {
    const auto count = static_cast<uint32_t>(i % (kStackFrames + 1));
    ASSERT_TRUE(put_stack(ring_, stack_of(1000 + i, count)));
    expect_next(1000 + i, count);
  }
  NotedStack stack;
  EXPECT_FALSE(take_stack(ring_, &stack));
}

TEST_F(RingOfStacks, holds_what_it_can_and_counts_the_rest) {
  uint64_t put_count = 0;
  while (put_stack(ring_, stack_of(put_count, 20))) ++put_count;
  EXPECT_EQ(put_count, kStackRingWords / 22);
  EXPECT_FALSE(put_stack(ring_, stack_of(0, 20)));
  EXPECT_EQ(ring_.lost().load(), 2u);
  for (uint64_t i = 0; i < put_count; ++i) expect_next(i, 20);
  EXPECT_TRUE(put_stack(ring_, stack_of(5, 20)));
  expect_next(5, 20);
}

TEST_F(RingOfStacks, is_emptied_where_it_contradicts_itself) {
  NotedStack stack;
  ASSERT_TRUE(put_stack(ring_, stack_of(1, 3)));
  ring_.word(0).store(63);  // more frames than there are in any stack
  EXPECT_FALSE(take_stack(ring_, &stack));
  EXPECT_EQ(ring_.tail().load(), ring_.head().load());
  ring_.head().store(ring_.tail().load() + kStackRingWords + 1);
  EXPECT_FALSE(take_stack(ring_, &stack));
  ASSERT_TRUE(put_stack(ring_, stack_of(1, 3)));
  ring_.head().store(ring_.head().load() - 1);  // cut off
  EXPECT_FALSE(take_stack(ring_, &stack));
  ASSERT_TRUE(put_stack(ring_, stack_of(9, 3)));
  expect_next(9, 3);
}

}  // namespace
}  // namespace aon::ring
