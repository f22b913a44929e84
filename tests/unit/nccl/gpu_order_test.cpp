// Which operations have the GPU's times of later ones.

#include "plugins/nccl/gpu_order.h"

#include <gtest/gtest.h>

#include <vector>

namespace aon::nccl {
namespace {

constexpr uint64_t kUs = 1000;
constexpr uint64_t kStepNs = 10 * kUs;  ///< from one operation to the next
constexpr uint32_t kKept = 64;          ///< times that NCCL keeps of a channel

class NcclGpuOrder : public testing::Test {
 protected:
  /// Operation `call`, the only one of its group, with the times of operation `told`.
  void tell(uint32_t call, uint32_t told) {
    begin(call, kStepNs * (told + 1));
    if (order_.end(call, call, kStepNs * (told + 1) + 8 * kUs)) own_.push_back(call);
  }
  void begin(uint32_t group, uint64_t begin_ns) {
    const CallRange found = order_.begin(group, begin_ns);
    if (found.count != 0) found_.push_back(found);
  }
  uint64_t found_count() const {
    uint64_t sum = 0;
    for (const CallRange& range : found_) sum += range.count;
    return sum;
  }

  GpuOrder order_ = {};
  std::vector<CallRange> found_;
  std::vector<uint32_t> own_;
};

TEST_F(NcclGpuOrder, operations_one_after_the_other_are_right) {
  for (uint32_t call = 0; call < 1000; ++call) tell(call, call);
  EXPECT_TRUE(found_.empty());
  EXPECT_TRUE(own_.empty());
}

TEST_F(NcclGpuOrder, an_end_behind_the_next_begin_is_another_ones) {
  tell(0, 0);
  begin(1, kStepNs * 2);
  order_.end(1, 1, kStepNs * (2 + kKept));
  tell(2, 2);
  tell(3, 3);
  ASSERT_EQ(found_.size(), 1u);
  EXPECT_EQ(found_[0].first, 1u);
  EXPECT_EQ(found_[0].last, 1u);
}

TEST_F(NcclGpuOrder, an_end_that_is_told_behind_the_next_begin_is_seen_too) {
  begin(0, kStepNs);
  begin(1, kStepNs * 2);
  EXPECT_TRUE(order_.end(0, 0, kStepNs * (1 + kKept)));
  EXPECT_FALSE(order_.end(1, 1, kStepNs * 2 + 1));
}

/// Its proxy slept while 500 operations ran: what it reads are the last 64, again and again.
TEST_F(NcclGpuOrder, all_are_found_when_their_reader_was_very_late) {
  constexpr uint32_t kCount = 500;
  for (uint32_t call = 0; call < kCount; ++call)
    tell(call, call + (kCount - 1 - call) / kKept * kKept);
  EXPECT_EQ(found_count(), kCount - kKept);
  EXPECT_EQ(found_.front().first, 0u);
  EXPECT_EQ(found_.back().last, kCount - kKept - 1);
  EXPECT_TRUE(own_.empty());
}

TEST_F(NcclGpuOrder, operations_of_a_group_run_side_by_side) {
  for (uint32_t call = 0; call < 10; ++call) {
    begin(7, kStepNs);
    EXPECT_FALSE(order_.end(7, call, kStepNs * 100));
  }
  begin(8, kStepNs * 50);
  ASSERT_EQ(found_.size(), 1u);
  EXPECT_EQ(found_[0].count, 10u);
  EXPECT_EQ(found_[0].last, 9u);
}

TEST_F(NcclGpuOrder, kernels_may_overlap_a_little) {
  tell(0, 0);
  begin(1, kStepNs + 8 * kUs - kMostOverlapNs);
  EXPECT_TRUE(found_.empty());
}

TEST_F(NcclGpuOrder, numbers_of_groups_wrap) {
  const uint32_t last = GpuOrder::kGroupMask;
  begin(last, kStepNs);
  EXPECT_FALSE(order_.end(last, 1, kStepNs * 100));
  begin(0, kStepNs * 2);
  EXPECT_EQ(found_count(), 1u);
}

}  // namespace
}  // namespace aon::nccl
