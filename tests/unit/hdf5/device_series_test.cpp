#include "writers/hdf5/device_series.h"

#include <gtest/gtest.h>

#include "core/spool/home_node.h"
#include "writers/devices/device_names.h"
#include "writers/hdf5/gpu_use.h"

namespace aon::writers::hdf5 {
namespace {

constexpr uint8_t kUuid[16] = {0x5d, 0x2c, 0xff, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
constexpr const char* kFolder = "gpu_GPU-5d2cff00-0102-0304-0506-0708090a0b0c/nvml";
constexpr const char* kMachine = R"(<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
  <object type="Machine" os_index="0" cpuset="0x3" complete_cpuset="0x3" allowed_cpuset="0x3"
          nodeset="0x1" complete_nodeset="0x1" allowed_nodeset="0x1" gp_index="1">
    <object type="NUMANode" os_index="0" cpuset="0x3" complete_cpuset="0x3" nodeset="0x1"
            complete_nodeset="0x1" gp_index="9" local_memory="1024"/>
    <object type="PU" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1"
            complete_nodeset="0x1" gp_index="3"/>
    <object type="PU" os_index="1" cpuset="0x2" complete_cpuset="0x2" nodeset="0x1"
            complete_nodeset="0x1" gp_index="4"/>
    <object type="Bridge" gp_index="10" bridge_type="0-1" depth="0" bridge_pci="0000:[00-20]">
      <object type="PCIDev" gp_index="11" pci_busid="0000:17:00.0"
              pci_type="0302 [10de:2330] [10de:16c1] a1" pci_link_speed="0.0"/>
    </object>
  </object>
</topology>
)";

spool::Device device(const uint8_t (&uuid)[16]) {
  spool::Device made{};
  std::copy(std::begin(uuid), std::end(uuid), made.definition.uuid);
  made.name = "Fake H100";
  made.address = "0000:17:00.0";
  return made;
}

TEST(Hdf5DeviceSeries, knows_the_folder_of_a_device_from_a_name) {
  EXPECT_EQ(devices::folder_of("gpu_GPU-1/nvml/power"), "gpu_GPU-1/nvml");
  for (const char* other : {"power", "nvml/power", "gpu_GPU-1/power", "gpu_GPU-1//power",
                            "gpu_GPU-1/nvml/", "gpu_GPU-1/../../power", "x/gpu_1/power"}) {
    EXPECT_EQ(devices::folder_of(other), "") << other;
  }
}

TEST(Hdf5DeviceSeries, are_called_as_the_devices_of_processes) {
  spool::Device used = device(kUuid);
  EXPECT_EQ(devices::uuid_text(used), devices::uuid_of(kFolder));
  used.name = "NVIDIA A100-SXM4-40GB MIG 1g.5gb";
  EXPECT_EQ(devices::uuid_text(used), "MIG-5d2cff00-0102-0304-0506-0708090a0b0c");
  EXPECT_EQ(devices::uuid_text(spool::Device{}), "");
}

TEST(Hdf5GpuUse, says_whose_launches_had_no_room) {
  DeviceSummary devices;
  EXPECT_EQ(left_out_text(devices), "");
  devices.left_out_call_count = 12;
  EXPECT_EQ(left_out_text(devices).rfind("which of 12 CUDA calls launched which work", 0), 0u);
}

TEST(Hdf5DeviceSeries, says_where_a_device_is_and_who_uses_it) {
  spool::Job job;
  job.nodes.resize(1);
  job.nodes[0].devices[0] = device(kUuid);
  job.nodes[0].topology_xml = kMachine;
  spool::Process user{};
  user.devices[0] = device(kUuid);
  spool::Process other{};
  const uint8_t another[16] = {1};
  other.devices[0] = device(another);
  other.devices[0].address = "0000:18:00.0";
  Model model{};
  model.job = &job;
  for (uint32_t rank = 0; rank < 3; ++rank) {
    model.groups.push_back({.id = rank,
                            .rank = rank,
                            .node = 0,
                            .process = rank == 1 ? &other : &user,
                            .name = {},
                            .region_map = {},
                            .communicator_map = {},
                            .window_map = {},
                            .rank_group_map = {},
                            .metric_map = {},
                            .file_map = {},
                            .file_name_map = {},
                            .call_path_map = {}});
  }
  DeviceFinder finder(model);
  const DeviceFacts facts = finder.find(0, kFolder);
  EXPECT_EQ(facts.uuid, "GPU-5d2cff00-0102-0304-0506-0708090a0b0c");
  EXPECT_EQ(facts.name, "Fake H100");
  EXPECT_EQ(facts.address, "0000:17:00.0");
  EXPECT_EQ(facts.numa_nodes, "0");
  EXPECT_EQ(facts.cpus, "0-1");
  EXPECT_EQ(facts.ranks, "0,2");
}

/// A rank has a part of a divided GPU; the board has series as well.
TEST(Hdf5DeviceSeries, ranks_on_a_part_of_a_gpu_ran_on_its_board) {
  const uint8_t part_uuid[16] = {0x77};
  const uint8_t other_uuid[16] = {0x88};
  spool::Job job;
  job.nodes.resize(1);
  job.nodes[0].devices[0] = device(kUuid);
  job.nodes[0].devices[0].address = "0000:c1:00.0";
  job.nodes[0].devices[1] = device(part_uuid);
  job.nodes[0].devices[1].address = "0000:c1:00.0";
  job.nodes[0].devices[2] = device(other_uuid);
  job.nodes[0].devices[2].address = "";
  spool::Process processes[3];
  processes[0].devices[0] = device(part_uuid);
  processes[0].devices[0].address = "0000:C1:00.0";
  const uint8_t another[16] = {1};
  processes[1].devices[0] = device(another);
  processes[1].devices[0].address = "0000:C2:00.0";
  processes[2].devices[0] = device(another);
  processes[2].devices[0].address = "";
  Model model{};
  model.job = &job;
  for (uint32_t rank = 0; rank < 3; ++rank) {
    Group& group = model.groups.emplace_back();
    group.id = rank;
    group.rank = rank;
    group.process = &processes[rank];
  }
  DeviceFinder finder(model);
  EXPECT_EQ(finder.find(0, kFolder).ranks, "0");
  EXPECT_EQ(finder.find(0, "gpu_MIG-77000000-0000-0000-0000-000000000000/gpm").ranks, "0");
  processes[1].devices[0].address = "0000:C1:00.0";  // on another part
  EXPECT_EQ(finder.find(0, kFolder).ranks, "0-1");
  EXPECT_EQ(finder.find(0, "gpu_MIG-77000000-0000-0000-0000-000000000000/gpm").ranks, "0");
  EXPECT_EQ(finder.find(0, "gpu_GPU-88000000-0000-0000-0000-000000000000/nvml").ranks, "")
      << "nobody told an address";
}

/// Such a file is a node of the job, beside that of the agent on its machine.
TEST(Hdf5DeviceSeries, ranks_with_a_file_of_their_own_ran_on_their_machine) {
  spool::Job job;
  job.nodes.resize(4);
  const char* hosts[] = {"n2", "n1", "n2", "n3"};
  for (size_t i = 0; i < 4; ++i) job.nodes[i].host = hosts[i];
  for (const size_t own : {0, 3}) job.nodes[own].processes[0].start.fallback = 1;
  const spool::HomeNodes homes(job);
  EXPECT_EQ(homes.of(0), 2u);
  EXPECT_EQ(homes.of(1), 1u);
  EXPECT_EQ(homes.of(2), 2u);
  EXPECT_EQ(homes.of(3), 3u) << "no agent was there";
  EXPECT_EQ(homes.of(7), 7u);
  Model model{};
  model.job = &job;
  for (uint32_t rank = 0; rank < 4; ++rank) {
    Group& group = model.groups.emplace_back();
    group.id = rank;
    group.rank = rank;
    group.node = rank;
  }
  const DeviceFinder finder(model);
  EXPECT_TRUE(finder.ranks_of(0).empty());
  ASSERT_EQ(finder.ranks_of(2).size(), 2u);
  EXPECT_EQ(*finder.ranks_of(2)[0]->rank, 0u);
  EXPECT_EQ(finder.ranks_of(3).size(), 1u);
}

TEST(Hdf5DeviceSeries, an_unknown_device_has_its_uuid_alone) {
  spool::Job job;
  job.nodes.resize(1);
  Model model{};
  model.job = &job;
  DeviceFinder finder(model);
  const DeviceFacts facts = finder.find(0, kFolder);
  EXPECT_EQ(facts.uuid, "GPU-5d2cff00-0102-0304-0506-0708090a0b0c");
  EXPECT_EQ(facts.name + facts.address + facts.numa_nodes + facts.cpus + facts.ranks, "");
}

}  // namespace
}  // namespace aon::writers::hdf5
