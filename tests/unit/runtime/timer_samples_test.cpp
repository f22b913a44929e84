// What a timer's handler may read, on made-up stacks.
#include "core/runtime/timer_samples.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace aon::runtime {
namespace {

class FrameWalk : public testing::Test {
 protected:
  uintptr_t at(size_t index) const { return reinterpret_cast<uintptr_t>(&stack_[index]); }
  StackBounds bounds() const { return {at(0), at(stack_.size() - 1) + sizeof(uint64_t)}; }
  /// The frames behind the first one.
  std::vector<uint64_t> follow(uintptr_t stack, uintptr_t frame, uint32_t capacity = 8) {
    std::vector<uint64_t> frames(capacity, 0);
    const uint32_t count = follow_frames(stack, frame, bounds(), frames.data(), 1, capacity);
    return {frames.begin() + 1, frames.begin() + count};
  }
  void link(size_t frame, uintptr_t next, uint64_t caller) {
    stack_[frame] = next;
    stack_[frame + 1] = caller;
  }

  std::vector<uint64_t> stack_ = std::vector<uint64_t>(32);
};

TEST_F(FrameWalk, goes_up_to_the_outermost_frame) {
  link(4, at(10), 0x100);
  link(10, at(20), 0x200);
  link(20, 0, 0x300);
  EXPECT_EQ(follow(at(2), at(4)), (std::vector<uint64_t>{0x100, 0x200, 0x300}));
}

TEST_F(FrameWalk, ends_at_a_word_that_is_no_frame) {
  link(4, at(10) + 1, 0x100);  // not aligned
  EXPECT_EQ(follow(at(2), at(4)), std::vector<uint64_t>{0x100});
  link(4, at(4), 0x100);  // a circle
  EXPECT_EQ(follow(at(2), at(4)), std::vector<uint64_t>{0x100});
  link(4, at(2), 0x100);  // down again
  EXPECT_EQ(follow(at(2), at(4)), std::vector<uint64_t>{0x100});
  link(4, 0x10, 0x100);  // nowhere
  EXPECT_EQ(follow(at(2), at(4)), std::vector<uint64_t>{0x100});
  link(4, at(10), 0);
  EXPECT_TRUE(follow(at(2), at(4)).empty());
}

TEST_F(FrameWalk, reads_nothing_beyond_the_stack) {
  EXPECT_TRUE(follow(at(2), at(31)).empty());  // half a pair
  EXPECT_TRUE(follow(at(2), ~uintptr_t{0} - 7).empty());
  EXPECT_TRUE(follow(at(8), at(4)).empty());  // below the stack pointer
  link(4, at(10), 0x100);
  EXPECT_TRUE(follow(0x1000, at(4)).empty());  // on another stack
  EXPECT_TRUE(follow(bounds().high, at(4)).empty());
}

TEST_F(FrameWalk, ends_where_there_is_no_more_room) {
  for (size_t i = 4; i < 28; i += 2) link(i, at(i + 2), i);
  EXPECT_EQ(follow(at(2), at(4), 4).size(), 3u);
}

TEST(StackOfThread, is_the_mapping_up_to_its_descriptor) {
  const std::string maps =
      "7f0000000000-7f0000001000 ---p 00000000 00:00 0 \n"
      "7f0000001000-7f0000801000 rw-p 00000000 00:00 0 \n"
      "7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0                          [stack]\n";
  const StackBounds own = find_stack(maps.c_str(), 0x7f0000700000, 0x7f0000800640);
  EXPECT_EQ(own.low, 0x7f0000001000u);
  EXPECT_EQ(own.high, 0x7f0000800640u);
  // On a stack that is not the thread's own, or below what is mapped.
  EXPECT_EQ(find_stack(maps.c_str(), 0x7ffd00010000, 0x7f0000800640).high, 0u);
  EXPECT_EQ(find_stack(maps.c_str(), 0x7f0000800700, 0x7f0000800640).high, 0u);
  EXPECT_EQ(find_stack(maps.c_str(), 0x7f0000000800, 0x7f0000800640).high, 0u);
  EXPECT_EQ(find_stack("", 0x7f0000700000, 0x7f0000800640).high, 0u);
}

TEST(TimerOfKernel, is_harmless_from_5_10_on) {
  EXPECT_FALSE(is_timer_harmless("4.18.0-553.el8.x86_64"));
  EXPECT_FALSE(is_timer_harmless("5.9.16"));
  EXPECT_TRUE(is_timer_harmless("5.10.0-28-amd64"));
  EXPECT_TRUE(is_timer_harmless("6.1.0"));
  EXPECT_FALSE(is_timer_harmless("nonsense"));
}

}  // namespace
}  // namespace aon::runtime
