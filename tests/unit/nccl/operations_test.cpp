// Rows and histograms of NCCL's operations.

#include "writers/nccl/operations.h"

#include <gtest/gtest.h>

#include "tests/unit/profile/one_rank.h"

namespace aon::writers::nccl {
namespace {

NcclOperation operation(uint64_t bytes, uint64_t gpu_ns = 0) {
  NcclOperation made;
  made.start_ns = 100;
  made.end_ns = 130;
  made.bytes = bytes;
  made.communicator = 7;  // the world of the model
  made.region = 2;        // global region 8
  made.flags = gpu_ns != 0 ? uint32_t{kNcclGpuTimed} : 0;
  made.gpu_ns = gpu_ns;
  return made;
}

TEST(NcclOperations, are_rows_with_global_ids) {
  const Model model = test::make_model(2);
  OperationTable table;
  EXPECT_TRUE(table.is_empty());
  table.begin(model.groups[1]);
  table.add(operation(64));
  ASSERT_EQ(table.rows().size(), 1u);
  EXPECT_EQ(table.rows()[0].group, 1u);
  EXPECT_EQ(table.rows()[0].operation.communicator, 0u);
  EXPECT_EQ(table.rows()[0].operation.region, 8u);
  NcclOperation unknown = operation(64);
  unknown.communicator = 99;
  table.add(unknown);
  EXPECT_EQ(table.rows()[1].operation.communicator, profile::LocalIds::kNone);
}

TEST(NcclOperations, are_summed_up_over_ranks_by_size) {
  const Model model = test::make_model(2);
  OperationTable table;
  for (const Group& group : model.groups) {
    table.begin(group);
    table.add(operation(64, 1000));
    table.add(operation(127, 4000));
    table.add(operation(128));
  }
  ASSERT_EQ(table.histograms().size(), 2u);
  const Histogram& small = table.histograms().at({0, 8, 6});
  EXPECT_EQ(small.count, 4u);
  EXPECT_EQ(small.bytes, 2u * (64 + 127));
  EXPECT_EQ(small.timed_count, 4u);
  EXPECT_EQ(small.gpu_ns, 10'000u);
  EXPECT_EQ(small.min_ns, 1000u);
  EXPECT_EQ(small.max_ns, 4000u);
  EXPECT_EQ(small.host_ns, 120u);
  EXPECT_EQ(small.by_duration[profile::histogram_bucket(1000)], 2u);
  EXPECT_EQ(small.by_duration[profile::histogram_bucket(4000)], 2u);
  const Histogram& large = table.histograms().at({0, 8, 7});
  EXPECT_EQ(large.count, 2u);
  EXPECT_EQ(large.timed_count + large.timed_bytes + large.gpu_ns, 0u);
}

TEST(NcclOperations, beyond_the_limit_are_counted_and_in_the_histograms) {
  const Model model = test::make_model(1);
  OperationTable table;
  table.begin(model.groups[0]);
  for (size_t i = 0; i < kMaxOperationRows + 5; ++i) table.add(operation(8));
  EXPECT_EQ(table.rows().size(), kMaxOperationRows);
  EXPECT_EQ(table.left_out_count(), 5u);
  EXPECT_EQ(table.histograms().at({0, 8, 3}).count, kMaxOperationRows + 5);
}

TEST(NcclOperations, sizes_are_powers_of_two) {
  EXPECT_EQ(log2_of(0), 0u);
  EXPECT_EQ(log2_of(1), 0u);
  EXPECT_EQ(log2_of(2), 1u);
  EXPECT_EQ(log2_of(1023), 9u);
  EXPECT_EQ(log2_of(1024), 10u);
  EXPECT_EQ(log2_of(UINT64_MAX), 63u);
}

}  // namespace
}  // namespace aon::writers::nccl
