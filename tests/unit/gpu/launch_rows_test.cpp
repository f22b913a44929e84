#include "writers/devices/launch_rows.h"

#include <gtest/gtest.h>

#include "writers/devices/summary.h"

namespace aon::writers::devices {
namespace {

constexpr uint32_t kDevice = 1;
constexpr uint32_t kKernel = 40;

std::vector<LaunchRow> rows_of(LaunchRows& launches) {
  std::vector<LaunchRow> rows;
  launches.add_rows(3, &rows);
  return rows;
}

TEST(LaunchRowsTest, work_of_one_name_and_annotation_is_one_row) {
  LaunchRows launches;
  for (int i = 0; i < 3; ++i) ++launches.row_of(kDevice, kKernel, 7).count;
  ++launches.row_of(kDevice, kKernel, LaunchRow::kNoLaunchRegion).count;
  const std::vector<LaunchRow> rows = rows_of(launches);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].group, 3u);
  EXPECT_EQ(rows[0].device, kDevice);
  EXPECT_EQ(rows[0].region, kKernel);
  EXPECT_EQ(rows[0].from, 7u);
  EXPECT_EQ(rows[0].count, 3u);
  EXPECT_EQ(rows[1].from, LaunchRow::kNoLaunchRegion);
}

/// "iteration 1", "iteration 2", ...: each launches the same kernels.
TEST(LaunchRowsTest, annotations_without_a_row_are_one) {
  constexpr uint64_t kKernels = 16;
  constexpr uint64_t kIterations = 2 * LaunchRows::kMaxRows / kKernels;
  LaunchRows launches;
  for (uint32_t iteration = 0; iteration < kIterations; ++iteration) {
    for (uint32_t kernel = 0; kernel < kKernels; ++kernel)
      ++launches.row_of(kDevice, kernel, 1000 + iteration).count;
  }
  ++launches.row_of(kDevice, 0, 1000).count;  // it has its row
  ++launches.row_of(kDevice, kKernel, LaunchRow::kNoLaunchRegion).count;
  const std::vector<LaunchRow> rows = rows_of(launches);
  EXPECT_EQ(rows.size(), LaunchRows::kMaxRows + kKernels + 1);
  uint64_t sum = 0;
  uint64_t others = 0;
  for (const LaunchRow& row : rows) {
    sum += row.count;
    if (row.from == LaunchRow::kMoreLaunchRegions) others += row.count;
  }
  EXPECT_EQ(sum, kIterations * kKernels + 2) << "no work is left out";
  EXPECT_EQ(others, LaunchRows::kMaxRows);
}

TEST(LaunchRowsTest, many_processes_share_the_room) {
  spool::Process process;
  process.device_streams[1];
  Group group{};
  group.process = &process;
  for (const size_t count : {size_t{1}, 4 * LaunchRows::kMaxRowsOfAll / LaunchRows::kMaxRows,
                             2 * LaunchRows::kMaxRowsOfAll / LaunchRows::kLeastRows}) {
    Model model{};
    model.groups.assign(count, group);
    LaunchRows launches;
    launches.begin(model);
    for (uint32_t from = 0; from < 2 * LaunchRows::kMaxRows; ++from)
      ++launches.row_of(kDevice, kKernel, from).count;
    const size_t wanted = count == 1      ? LaunchRows::kMaxRows
                          : count <= 1024 ? LaunchRows::kMaxRows / 4
                                          : LaunchRows::kLeastRows;
    EXPECT_EQ(rows_of(launches).size(), wanted + 1) << count;
  }
}

/// Kernel i takes i ns on both devices, each time from nowhere and from annotations without a row.
TEST(LaunchRowsTest, names_beyond_the_room_are_one_and_no_work_is_left_out) {
  constexpr uint32_t kNames = LaunchRows::kMaxNames / 4 + 100;
  LaunchRows launches;
  for (uint32_t from = 0; from < LaunchRows::kMaxRows; ++from)
    ++launches.row_of(kDevice, 0, from).count;
  for (const uint32_t device : {kDevice, kDevice + 1}) {
    for (const uint32_t from : {LaunchRow::kNoLaunchRegion, LaunchRow::kMoreLaunchRegions}) {
      for (uint32_t name = 0; name < kNames; ++name) {
        LaunchRow& row = launches.row_of(device, name, from);
        ++row.count;
        row.total_ns += name;
        row.known_count += 2;
        row.delay_ns += 3;
      }
    }
  }
  std::vector<LaunchRow> rows;
  EXPECT_EQ(launches.add_rows(3, &rows), 400u);
  EXPECT_EQ(rows.size(), LaunchRows::kMaxRows + LaunchRows::kMaxNames + 4);
  uint64_t count = 0;
  uint64_t total_ns = 0;
  for (const LaunchRow& row : rows) {
    count += row.count;
    total_ns += row.total_ns;
    if (row.from < LaunchRow::kMoreLaunchRegions) continue;
    EXPECT_GE(row.region, 100u) << "those of least time have none";
    if (row.region != LaunchRow::kMoreWork) continue;
    EXPECT_EQ(row.count, 100u);
    EXPECT_EQ(row.total_ns, 4950u);
    EXPECT_EQ(row.known_count, 200u);
    EXPECT_EQ(row.delay_ns, 300u);
  }
  EXPECT_EQ(count, LaunchRows::kMaxRows + 4u * kNames);
  EXPECT_EQ(total_ns, 4u * kNames * (kNames - 1) / 2);
}

TEST(LaunchRowsTest, how_many_are_one_is_added_up) {
  DeviceSummary share;
  share.joined_launch_count = 5;
  StateOut out;
  save_summary(&out, share);
  DeviceSummary all;
  all.joined_launch_count = 2;
  StateIn in(out.bytes());
  ASSERT_TRUE(add_saved(&in, Model{}, &all));
  EXPECT_EQ(all.joined_launch_count, 7u);
}

TEST(LaunchRowsTest, many_processes_share_the_room_for_names) {
  spool::Process process;
  process.device_streams[1];
  Group group{};
  group.process = &process;
  const size_t some = LaunchRows::kMaxNamesOfAll / 256;
  const size_t many = 2 * LaunchRows::kMaxNamesOfAll / LaunchRows::kLeastNames;
  for (const auto& [count, room] :
       {std::pair(some, size_t{256}), std::pair(many, LaunchRows::kLeastNames)}) {
    Model model{};
    model.groups.assign(count, group);
    LaunchRows launches;
    launches.begin(model);
    for (uint32_t name = 0; name < 300; ++name)
      ++launches.row_of(kDevice, name, LaunchRow::kNoLaunchRegion).count;
    EXPECT_EQ(rows_of(launches).size(), room + 1) << count;
  }
}

TEST(LaunchRowsTest, devices_of_a_process_share_its_room) {
  constexpr uint32_t kDevices = 8;
  spool::Process process;
  for (uint32_t stream = 0; stream < 2 * kDevices; ++stream)
    process.device_streams[stream].definition.device = stream / 2;
  process.device_streams[2 * kDevices].definition.device = kNoDevice;
  LaunchRows launches;
  launches.begin_process(process);
  for (uint32_t device = 0; device < kDevices; ++device) {
    for (uint32_t from = 0; from < LaunchRows::kMaxRows; ++from)
      ++launches.row_of(device, kKernel, from).count;
  }
  std::map<uint32_t, size_t> counts;
  for (const LaunchRow& row : rows_of(launches)) ++counts[row.device];
  ASSERT_EQ(counts.size(), kDevices);
  for (const auto& [device, count] : counts)
    EXPECT_EQ(count, LaunchRows::kMaxRows / kDevices + 1) << device;
}

}  // namespace
}  // namespace aon::writers::devices
