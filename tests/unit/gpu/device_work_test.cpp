#include "writers/profile/device_work.h"

#include <gtest/gtest.h>

#include <utility>

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

/// One process of `processes`, whose kernel i takes i ns, each once on two devices.
class ManyKernels {
 public:
  explicit ManyKernels(uint32_t names, size_t processes = 1) : names_(names) {
    process_.device_streams[1];
    model_ = test::make_model(1);
    model_.groups[0].process = &process_;
    model_.regions.resize(names, {"kernel", RegionRole::kFunction, Paradigm::kCuda});
    for (uint32_t i = 0; i < names; ++i) model_.groups[0].region_map[i] = i;
    const Group group = model_.groups[0];
    model_.groups.assign(processes, group);
    for (uint32_t id = 0; id < processes; ++id) model_.groups[id].id = id;
  }
  const Model& model() const { return model_; }
  void run(DeviceWorkTable* table) const {
    for (const uint32_t device : {0u, 1u}) {
      const Location stream = stream_of(0, device);
      table->begin(model_.groups[0], stream);
      for (uint32_t i = 0; i < names_; ++i) table->add(work(i, DeviceOperation::kKernel, i));
      table->add(work(0, DeviceOperation::kCopy, 1, 8));
    }
  }

 private:
  uint32_t names_;
  spool::Process process_;
  Model model_;
};

TEST(DeviceWork, names_beyond_the_room_are_one_and_no_work_is_left_out) {
  constexpr uint32_t kNames = DeviceWorkTable::kMaxRows / 2 + 100;
  const ManyKernels kernels(kNames);
  DeviceWorkTable table(kernels.model());
  kernels.run(&table);
  table.finish();
  EXPECT_EQ(table.joined_count(), 200u);
  const auto rows = table.rows(DeviceOperation::kKernel);
  ASSERT_EQ(rows.size(), DeviceWorkTable::kMaxRows + 2) << "and one of each device";
  EXPECT_EQ(rows[0].region, 100u) << "those of least time have none";
  const DeviceRow& more = rows[DeviceWorkTable::kMaxRows / 2];
  EXPECT_EQ(more.region, DeviceWorkTable::kMoreKernels);
  EXPECT_EQ(more.device, 0u);
  EXPECT_EQ(more.count, 100u);
  EXPECT_EQ(more.total_ns, 4950u);
  EXPECT_EQ(more.min_ns, 0u);
  EXPECT_EQ(more.max_ns, 99u);
  EXPECT_EQ(more.histogram[6], 36u);  // 64 to 99 ns
  uint64_t count = 0;
  for (const DeviceRow& row : rows) count += row.count;
  EXPECT_EQ(count, 2u * kNames);
  EXPECT_EQ(table.rows(DeviceOperation::kCopy).size(), 2u);
}

TEST(DeviceWork, names_beyond_the_room_are_the_same_from_a_share) {
  const ManyKernels kernels(DeviceWorkTable::kMaxRows);
  DeviceWorkTable whole(kernels.model());
  kernels.run(&whole);
  whole.finish();
  DeviceWorkTable share(kernels.model());
  kernels.run(&share);
  StateOut out;
  share.save(&out);
  DeviceWorkTable combined(kernels.model());
  StateIn in(out.bytes());
  ASSERT_TRUE(combined.load(&in));
  combined.finish();
  EXPECT_EQ(combined.joined_count(), whole.joined_count());
  const auto expected = whole.rows(DeviceOperation::kKernel);
  const auto found = combined.rows(DeviceOperation::kKernel);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].region, expected[i].region);
    EXPECT_EQ(found[i].total_ns, expected[i].total_ns);
  }
}

TEST(DeviceWork, processes_share_the_room_for_names) {
  const size_t some = DeviceWorkTable::kMaxRowsOfAll / 64;
  const size_t many = 2 * DeviceWorkTable::kMaxRowsOfAll / DeviceWorkTable::kLeastRows;
  for (const auto& [processes, room] :
       {std::pair(some, size_t{64}), std::pair(many, DeviceWorkTable::kLeastRows)}) {
    const ManyKernels kernels(100, processes);
    DeviceWorkTable table(kernels.model());
    kernels.run(&table);
    table.finish();
    EXPECT_EQ(table.rows(DeviceOperation::kKernel).size(), room + 2) << processes;
  }
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
