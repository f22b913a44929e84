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
