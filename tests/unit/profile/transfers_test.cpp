#include "writers/profile/transfers.h"

#include <gtest/gtest.h>

#include "tests/unit/profile/one_rank.h"

namespace aon::writers::profile {
namespace {

/// `rank_count` ranks with two windows, on the world and on odd ranks: local ids 5 and 6.
Model make_windows(uint32_t rank_count) {
  Model model = test::make_model(rank_count);
  model.communicators.push_back({"odd", CommunicatorKind::kIntra, 0u, {1, 3}});
  model.windows.push_back({"all", 0, WindowFlavour::kCreate});
  model.windows.push_back({"some", 1, WindowFlavour::kAllocate});
  for (Group& group : model.groups) group.window_map = {{5, 0}, {6, 1}};
  return model;
}

Event transfer(RmaOperation operation, uint32_t window, int32_t target, uint64_t bytes,
               uint64_t bytes_back) {
  Event event{};
  event.kind = EventKind::kRmaTransfer;
  event.communicator = window;
  event.peer = target;
  event.tag = static_cast<int32_t>(operation);
  event.bytes = bytes;
  event.bytes_received = bytes_back;
  return event;
}

TEST(Transfers, sums_by_window_and_target_in_world_ranks) {
  const Model model = make_windows(4);
  TransferTable table(model);
  table.begin(model.groups[1]);
  table.add(transfer(RmaOperation::kPut, 5, 3, 10, 0));
  table.add(transfer(RmaOperation::kPut, 6, 1, 20, 0));
  table.add(transfer(RmaOperation::kGet, 6, 1, 0, 30));
  table.add(transfer(RmaOperation::kFetchAndOp, 6, 1, 8, 8));
  table.add(transfer(RmaOperation::kPut, 7, 1, 20, 0));  // of no window
  table.add(test::enter(3, 0));
  const auto rows = table.rows();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].origin, 1u);
  EXPECT_EQ(rows[0].window, 0u);
  EXPECT_EQ(rows[0].target, 3);
  EXPECT_EQ(rows[0].sum.bytes_sent, 10u);
  EXPECT_EQ(rows[1].window, 1u);
  EXPECT_EQ(rows[1].target, 3);
  EXPECT_EQ(rows[1].sum.put_count, 1u);
  EXPECT_EQ(rows[1].sum.get_count, 1u);
  EXPECT_EQ(rows[1].sum.atomic_count, 1u);
  EXPECT_EQ(rows[1].sum.bytes_sent, 28u);
  EXPECT_EQ(rows[1].sum.bytes_received, 38u);
}

TEST(Transfers, sums_up_targets_beyond_64_as_other) {
  const Model model = make_windows(100);
  TransferTable table(model);
  table.begin(model.groups[5]);
  for (int32_t target = 0; target < 100; ++target) {
    table.add(transfer(RmaOperation::kPut, 5, target, 2, 0));
  }
  table.add(transfer(RmaOperation::kPut, 5, 99, 3, 0));
  table.add(transfer(RmaOperation::kPut, 5, 500, 1, 0));  // no member
  const auto rows = table.rows();
  ASSERT_EQ(rows.size(), kMaxPartners + 1);
  EXPECT_EQ(rows[0].target, kOtherDestination);
  EXPECT_EQ(rows[0].sum.put_count, 38u);
  EXPECT_EQ(rows[0].sum.bytes_sent, 76u);
}

}  // namespace
}  // namespace aon::writers::profile
