#include "writers/profile/device_work.h"

#include <gtest/gtest.h>

#include "tests/unit/profile/one_rank.h"

namespace aon::writers::profile {
namespace {

Location stream_of(uint32_t group, uint32_t device) {
  Location location{};
  location.group = group;
  location.type = LocationType::kAcceleratorStream;
  location.device = device;
  return location;
}

Event work(uint32_t region, DeviceOperation operation, uint64_t duration_ns, uint64_t bytes = 0) {
  Event e = test::event(EventKind::kDeviceWork, 1000, region);
  e.peer = static_cast<int32_t>(operation);
  e.bytes = bytes;
  e.bytes_received = duration_ns;
  return e;
}

TEST(DeviceWork, sums_kernels_by_process_device_and_name) {
  const Model model = test::make_model(2);
  DeviceWorkTable table(model);
  const Location first = stream_of(0, 0);
  const Location second = stream_of(0, 0);
  const Location other = stream_of(1, 3);
  table.begin(model.groups[0], first);
  table.add(work(1, DeviceOperation::kKernel, 10));
  table.add(work(2, DeviceOperation::kKernel, 5));
  table.add(work(1, DeviceOperation::kKernel, 30));
  table.begin(model.groups[0], second);
  table.add(work(1, DeviceOperation::kKernel, 20));
  table.begin(model.groups[1], other);
  table.add(work(1, DeviceOperation::kKernel, 7));
  const auto rows = table.rows(DeviceOperation::kKernel);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].region, 8u);  // local 2
  EXPECT_EQ(rows[1].region, 9u);
  EXPECT_EQ(rows[1].count, 3u);
  EXPECT_EQ(rows[1].total_ns, 60u);
  EXPECT_EQ(rows[1].min_ns, 10u);
  EXPECT_EQ(rows[1].max_ns, 30u);
  EXPECT_EQ(rows[2].group, 1u);
  EXPECT_EQ(rows[2].device, 3u);
}

Event launched(uint32_t grid_x, uint32_t registers = 32) {
  Event e = work(1, DeviceOperation::kKernel, 10);
  e.set_kernel_shape(pack_grid(grid_x, 2, 1), pack_block(128, 1, 1),
                     static_cast<uint8_t>(registers), 256);
  return e;
}

TEST(DeviceWork, kernels_of_one_name_have_a_histogram_and_their_most_frequent_shape) {
  const Model model = test::make_model(1);
  DeviceWorkTable table(model);
  const Location stream = stream_of(0, 0);
  table.begin(model.groups[0], stream);
  for (uint32_t i = 0; i < 100; ++i) table.add(launched(1000 + i));  // more than are counted
  for (uint32_t i = 0; i < 60; ++i) table.add(launched(8, 40));
  table.add(launched(1));
  table.add(work(1, DeviceOperation::kKernel, 70'000));  // of an older spool: no shape
  const auto rows = table.rows(DeviceOperation::kKernel);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].bytes, 0u);
  EXPECT_EQ(rows[0].histogram[3], 161u);
  EXPECT_EQ(rows[0].histogram[16], 1u);
  const auto* most = rows[0].shapes.most_frequent();
  ASSERT_NE(most, nullptr);
  EXPECT_EQ(most->shape, (KernelShape{{8, 2, 1}, {128, 1, 1}, 40, 256}));
  EXPECT_GE(most->count, 60u);
  EXPECT_EQ(rows[0].shapes.min_blocks(), 2u);
  EXPECT_EQ(rows[0].shapes.max_blocks(), 2198u);
}

TEST(DeviceWork, shapes_of_two_parts_of_a_job_are_added) {
  profile::LaunchShapes a;
  profile::LaunchShapes b;
  const KernelShape small = {{1, 1, 1}, {32, 1, 1}, 16, 0};
  const KernelShape large = {{64, 1, 1}, {32, 1, 1}, 16, 0};
  a.add(small, 3);
  b.add(large, 2);
  b.add(small, 1);
  b.add(large, 3);
  profile::LaunchShapes none;
  a.add(none);
  EXPECT_EQ(a.min_blocks(), 1u);
  a.add(b);
  EXPECT_EQ(a.most_frequent()->shape, large);
  EXPECT_EQ(a.most_frequent()->count, 5u);
  EXPECT_EQ(a.max_blocks(), 64u);
  EXPECT_EQ(none.most_frequent(), nullptr);
}

TEST(DeviceWork, copies_are_no_kernels) {
  const Model model = test::make_model(1);
  DeviceWorkTable table(model);
  const Location stream = stream_of(0, 0);
  table.begin(model.groups[0], stream);
  table.add(work(1, DeviceOperation::kCopy, 10, 100));
  table.add(work(1, DeviceOperation::kCopy, 10, 28));
  EXPECT_TRUE(table.rows(DeviceOperation::kKernel).empty());
  const auto copies = table.rows(DeviceOperation::kCopy);
  ASSERT_EQ(copies.size(), 1u);
  EXPECT_EQ(copies[0].bytes, 128u);
}

TEST(DeviceWork, what_no_device_did_is_left_out) {
  const Model model = test::make_model(1);
  DeviceWorkTable table(model);
  const Location calls = stream_of(0, kNoDevice);
  table.begin(model.groups[0], calls);
  table.add(work(1, DeviceOperation::kOther, 10));
  table.begin(model.groups[0], model.locations[0]);
  table.add(work(1, DeviceOperation::kKernel, 10));
  EXPECT_TRUE(table.rows(DeviceOperation::kOther).empty());
  EXPECT_TRUE(table.rows(DeviceOperation::kKernel).empty());
}

}  // namespace
}  // namespace aon::writers::profile
