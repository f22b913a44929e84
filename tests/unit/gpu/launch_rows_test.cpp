#include "writers/devices/launch_rows.h"

#include <gtest/gtest.h>

namespace aon::writers::devices {
namespace {

constexpr uint32_t kDevice = 1;
constexpr uint32_t kKernel = 40;

std::vector<LaunchRow> rows_of(const LaunchRows& launches) {
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
