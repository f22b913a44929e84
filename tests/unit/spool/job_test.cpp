#include "core/spool/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "core/spool/definitions.h"
#include "core/spool/files.h"
#include "core/spool/text.h"
#include "tests/unit/spool/sample_records.h"
#include "tests/unit/temporary_folder.h"

namespace aon::spool {
namespace {

using test::Bytes;

class JobFolder : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(node_); }

  /// Seals what was added as one block of `process`.
  void seal(uint32_t process) {
    ASSERT_TRUE(writer_.seal(&sealer_, process, blocks_++, 1, &file_).has_value());
  }
  Job read() {
    test::write_file(node_ / kDefinitionsFile, file_);
    Result<Job> job = read_job(folder_.path());
    EXPECT_TRUE(job.has_value());
    return job ? std::move(*job) : Job{};
  }

  aon::test::TemporaryFolder folder_;
  std::filesystem::path node_ = folder_.path() / "spool" / "n1";
  DefinitionBlockWriter writer_;
  BlockSealer sealer_;
  Bytes file_;
  uint64_t blocks_ = 0;
};

ProcessStartDefinition start_of(uint32_t process, int32_t rank) {
  return {process, 100 + static_cast<int32_t>(process), 5, 6, rank, 2, 0, 0};
}

TEST_F(JobFolder, devices_of_the_node_belong_to_no_process) {
  DeviceDefinition device{};
  device.id = 2;
  device.uuid[0] = 7;
  writer_.add(DefinitionType::kDevice, device, {"Fake H100", "0000:17:00.0"});
  seal(kNodeProcess);
  const Job job = read();
  ASSERT_EQ(job.nodes.size(), 1u);
  EXPECT_TRUE(job.nodes[0].processes.empty());
  const Device& found = job.nodes[0].devices.at(2);
  EXPECT_EQ(found.name, "Fake H100");
  EXPECT_EQ(found.address, "0000:17:00.0");
  EXPECT_EQ(found.definition.uuid[0], 7);
}

TEST_F(JobFolder, gives_back_what_a_process_defined) {
  writer_.add(DefinitionType::kRegion,
              RegionDefinition{11, RegionRole::kPointToPoint, Paradigm::kMpi, 0}, {"MPI_Send"});
  CommunicatorDefinition world{};
  world.identity = 99;
  world.id = 1;
  world.size = 2;
  writer_.add(DefinitionType::kCommunicator, world, {""});
  writer_.add(DefinitionType::kCommunicatorName, IdDefinition{1}, {"MPI_COMM_WORLD"});
  writer_.add(DefinitionType::kIdentity, IdentityDefinition{1, 2, 1, 0});
  writer_.add(DefinitionType::kProvider, ProviderDefinition{ProviderState::kDegraded, {}},
              {"perf", "no PMU", "run on bare metal"});
  writer_.add(DefinitionType::kMetric, MetricDefinition{4, MetricMode::kAccumulated, 0, 0},
              {"task-clock", "ns", "CPU time"});
  writer_.add(DefinitionType::kFile, FileDefinition{77, 5, 1, kFileReads | kFileCreates, 0},
              {"/scratch/data"});
  writer_.add(DefinitionType::kFileClose, IdDefinition{5});
  seal(3);
  const Job job = read();
  ASSERT_EQ(job.nodes.size(), 1u);
  const Process& process = job.nodes[0].processes.at(3);
  EXPECT_EQ(process.regions.at(11).name, "MPI_Send");
  EXPECT_EQ(process.regions.at(11).role, RegionRole::kPointToPoint);
  EXPECT_EQ(process.communicators.at(1).name, "MPI_COMM_WORLD");
  EXPECT_EQ(process.communicators.at(1).definition.identity, 99u);
  EXPECT_EQ(process.identity->rank, 1);
  EXPECT_EQ(process.providers.at("perf").remedy, "run on bare metal");
  EXPECT_EQ(process.metrics.at(4).unit, "ns");
  EXPECT_EQ(process.files.at(5).name, "/scratch/data");
  EXPECT_EQ(process.files.at(5).definition.identity, 77u);
  EXPECT_EQ(process.files.at(5).definition.mode, kFileReads | kFileCreates);
  EXPECT_EQ(job.damaged_blocks, 0u);
}

TEST_F(JobFolder, gives_back_cartesian_topologies) {
  CommunicatorDefinition plate{};
  plate.id = 5;
  writer_.add(DefinitionType::kCommunicator, plate, {"plate"});
  struct {
    CartesianDefinition cartesian;
    uint32_t extents[2];
  } grid = {{5, 2, 0b10}, {3, 4}};
  writer_.add(DefinitionType::kCartesian, grid);
  grid.cartesian.communicator_id = 6;
  writer_.add(DefinitionType::kCartesian, grid);  // of no communicator
  seal(3);
  const Job job = read();
  const Process& process = job.nodes.at(0).processes.at(3);
  ASSERT_EQ(process.communicators.size(), 1u);
  const std::optional<Cartesian>& found = process.communicators.at(5).cartesian;
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->extents, (std::vector<uint32_t>{3, 4}));
  EXPECT_EQ(found->periodic, 0b10u);
}

TEST_F(JobFolder, takes_of_a_topology_what_is_there) {
  writer_.add(DefinitionType::kCommunicator, CommunicatorDefinition{}, {""});
  struct {
    CartesianDefinition cartesian;
    uint32_t extent;
  } claims = {{0, 0xffffffff, 0}, 3};
  writer_.add(DefinitionType::kCartesian, claims);
  seal(3);
  const Job job = read();
  const Process& process = job.nodes.at(0).processes.at(3);
  EXPECT_EQ(process.communicators.at(0).cartesian->extents, std::vector<uint32_t>{3});
}

TEST_F(JobFolder, gives_back_the_latest_sums_of_nccl) {
  struct {
    NcclSumsDefinition sums;
    uint64_t counts[2];
  } told = {};
  told.sums.communicator_id = 5;
  told.sums.region_id = 1000;
  told.sums.log2_bytes = 20;
  told.sums.bucket_count = 2;
  for (const uint64_t count : {uint64_t{3}, uint64_t{7}}) {
    told.sums.count = count;
    told.counts[1] = count;
    writer_.add(DefinitionType::kNcclSums, told);
  }
  told.sums.log2_bytes = 21;
  told.sums.bucket_count = 255;  // more than are there
  writer_.add(DefinitionType::kNcclSums, told);
  seal(3);
  const Job job = read();
  const Process& process = job.nodes.at(0).processes.at(3);
  ASSERT_EQ(process.nccl_sums.size(), 2u);
  EXPECT_EQ(process.nccl_sums.at({5, 1000, 20}).sums.count, 7u);
  EXPECT_EQ(process.nccl_sums.at({5, 1000, 20}).by_duration, (std::vector<uint64_t>{0, 7}));
  EXPECT_EQ(process.nccl_sums.at({5, 1000, 21}).by_duration, (std::vector<uint64_t>{0, 7}));
}

TEST_F(JobFolder, gives_back_neighbours) {
  CommunicatorDefinition ring{};
  ring.id = 5;
  writer_.add(DefinitionType::kCommunicator, ring, {"ring"});
  ring.id = 6;
  writer_.add(DefinitionType::kCommunicator, ring, {"another"});
  struct {
    NeighborsDefinition neighbors;
    uint32_t sources[2];
  } told = {{5, 2}, {7, 1}};
  writer_.add(DefinitionType::kNeighbors, told);
  told.neighbors = {6, 3};  // more than are there
  writer_.add(DefinitionType::kNeighbors, told);
  told.neighbors = {7, 2};  // of no communicator
  writer_.add(DefinitionType::kNeighbors, told);
  seal(3);
  const Job job = read();
  const Process& process = job.nodes.at(0).processes.at(3);
  ASSERT_EQ(process.communicators.size(), 2u);
  EXPECT_EQ(process.communicators.at(5).sources, (std::vector<uint32_t>{7, 1}));
  EXPECT_FALSE(process.communicators.at(6).sources.has_value());
}

TEST_F(JobFolder, gives_back_windows_and_groups) {
  writer_.add(DefinitionType::kWindow, WindowDefinition{77, 5, 1, WindowFlavour::kShared, {}},
              {""});
  writer_.add(DefinitionType::kWindowName, IdDefinition{5}, {"halo"});
  writer_.add(DefinitionType::kWindowName, IdDefinition{6}, {"of no window"});
  writer_.add(DefinitionType::kWindowFree, IdDefinition{5});
  writer_.add(static_cast<uint32_t>(DefinitionType::kGroup),
              Bytes{3, 0, 0, 0, 2, 0, 0, 0, 9, 0, 0, 0, 4, 0, 0, 0});
  seal(3);
  const Job job = read();
  const Process& process = job.nodes.at(0).processes.at(3);
  ASSERT_EQ(process.windows.size(), 1u);
  EXPECT_EQ(process.windows.at(5).name, "halo");
  EXPECT_EQ(process.windows.at(5).definition.identity, 77u);
  EXPECT_EQ(process.windows.at(5).definition.flavour, WindowFlavour::kShared);
  EXPECT_EQ(process.rank_groups.at(3), (std::vector<uint32_t>{9, 4}));
}

TEST_F(JobFolder, gives_back_what_the_agent_wrote) {
  writer_.add(DefinitionType::kNode, NodeDefinition{1, 1, 1000, 0}, {"host-a", "launch-7"});
  writer_.add(DefinitionType::kProcessStart, start_of(0, 0), {"/bin/app", "host-a"});
  writer_.add(DefinitionType::kProcessExit, ProcessExitDefinition{0, 3, 0, 0, 777, 1, 2});
  writer_.add(DefinitionType::kClock, ClockDefinition{200, 20, 2000, 1});
  writer_.add(DefinitionType::kClock, ClockDefinition{100, 10, 1000, 1});
  writer_.add(DefinitionType::kClockPing, ClockPingDefinition{300, 5, 6, 340}, {"n0"});
  writer_.add(DefinitionType::kClockPing, ClockPingDefinition{150, 1, 2, 190}, {"n0"});
  seal(kNodeProcess);
  StreamDefinition stream{};
  stream.slot = 1;
  for (uint64_t committed : {10u, 25u}) {
    stream.committed = committed;
    writer_.add(DefinitionType::kStream, stream);
    writer_.add(DefinitionType::kCounts, CountsDefinition{0, 1, 50, 0, committed * 2});
  }
  writer_.add(DefinitionType::kEviction, LossDefinition{0, 1, 0, 1, 0, 5, 6, 7, 8});
  writer_.add(DefinitionType::kUsage, UsageDefinition{1, 2, 3, 4, 5, 6, 7, 8});
  for (const uint64_t start : {40u, 60u})
    writer_.add(DefinitionType::kOpenCall, OpenCallDefinition{0, 1, 0, 9, 50, 1, 0, 2, 3, start});
  for (const uint64_t ticks : {70u, 80u}) {
    writer_.add(DefinitionType::kStack, StackDefinition{0, 9, ticks, 65},
                {"/lib/a.so+0x1f\n\n/bin/\x1b[2Japp+0x20", "runs"});
  }
  seal(kNodeProcess);
  writer_.add_text(DefinitionType::kBinding, "0-3,8");
  seal(0);
  const Node node = read().nodes.at(0);
  EXPECT_EQ(node.host, "host-a");
  EXPECT_EQ(node.launch_id, "launch-7");
  ASSERT_EQ(node.clock.size(), 2u);
  EXPECT_EQ(node.clock[0].ticks, 100u);
  ASSERT_EQ(node.clock_pings.size(), 2u);
  EXPECT_EQ(node.clock_pings[0].peer, "n0");
  EXPECT_EQ(node.clock_pings[0].definition.peer_sent_ticks, 2u);
  EXPECT_EQ(node.clock_pings[1].definition.received_ticks, 340u);
  const Process& process = node.processes.at(0);
  EXPECT_EQ(process.program, "/bin/app");
  EXPECT_EQ(process.start.pid, 100);
  EXPECT_EQ(process.exit->exit_code, 3);
  const Stack& stack = process.stacks.at(9);
  EXPECT_EQ(stack.definition.ticks, 80u);
  ASSERT_EQ(stack.frames.size(), 2u);
  EXPECT_EQ(stack.frames[0], "/lib/a.so+0x1f");
  EXPECT_EQ(stack.frames[1].find('\x1b'), std::string::npos);
  EXPECT_EQ(stack.remark, "runs");
  EXPECT_EQ(process.streams.at({1, 0}).committed, 25u);
  EXPECT_EQ(process.counts.at({1, 50}), 50u);
  ASSERT_EQ(process.losses.size(), 1u);
  EXPECT_EQ(process.losses[0].count, 6u);
  EXPECT_EQ(process.binding, "0-3,8");
  ASSERT_EQ(process.open_calls.size(), 1u);
  EXPECT_EQ(process.open_calls.at(1).start_ticks, 60u);
  EXPECT_EQ(node.usage->disk_used_bytes, 7u);
}

TEST_F(JobFolder, series_of_the_node_are_no_process) {
  StreamDefinition stream{};
  stream.process = kNodeProcess;
  stream.slot = kSeriesSlot;
  writer_.add(DefinitionType::kStream, stream);
  seal(kNodeProcess);
  EXPECT_TRUE(read().nodes.at(0).processes.empty());
}

TEST_F(JobFolder, damaged_block_costs_its_definitions_only) {
  for (uint32_t id = 0; id < 3; ++id) {
    writer_.add(DefinitionType::kRegion,
                RegionDefinition{id, RegionRole::kUser, Paradigm::kUser, 0},
                {"region " + std::to_string(id)});
    seal(0);
  }
  const size_t block_bytes = file_.size() / 3;
  file_[block_bytes + block_bytes / 2] ^= 0x40;
  const Job job = read();
  EXPECT_EQ(job.damaged_blocks, 1u);
  const auto& regions = job.nodes.at(0).processes.at(0).regions;
  EXPECT_EQ(regions.size(), 2u);
  EXPECT_EQ(regions.at(2).name, "region 2");
}

TEST_F(JobFolder, values_out_of_range_and_short_payloads_do_no_harm) {
  writer_.add(DefinitionType::kRegion,
              RegionDefinition{1, static_cast<RegionRole>(200), static_cast<Paradigm>(99), 0},
              {"a\x01\xff"});
  writer_.add(static_cast<uint32_t>(DefinitionType::kRegion), Bytes{1, 2, 3});
  writer_.add(4711, Bytes(100, 7));
  writer_.add(DefinitionType::kWindow,
              WindowDefinition{1, 2, 3, static_cast<WindowFlavour>(9), {}});
  writer_.add(static_cast<uint32_t>(DefinitionType::kGroup),
              Bytes{3, 0, 0, 0, 255, 255, 255, 255, 9, 0, 0, 0, 4, 0});
  writer_.add(DefinitionType::kEviction, LossDefinition{0, 1, 0, 77, 0, 0, 1, 0, 0});
  seal(0);
  const Process process = read().nodes.at(0).processes.at(0);
  ASSERT_EQ(process.regions.size(), 1u);
  EXPECT_EQ(process.regions.at(1).role, RegionRole::kFunction);
  EXPECT_EQ(process.regions.at(1).name, "a??");
  EXPECT_EQ(process.windows.at(2).definition.flavour, WindowFlavour::kCreate);
  EXPECT_EQ(process.rank_groups.at(3), (std::vector<uint32_t>{9}));
  EXPECT_EQ(process.losses.at(0).reason, static_cast<uint32_t>(LossReason::kDamaged));
}

TEST_F(JobFolder, processes_without_definitions_are_seen_by_their_segments) {
  test::write_file(node_ / "p6.0.aon", {});
  const Job job = read();
  EXPECT_EQ(job.nodes.at(0).processes.at(6).start.rank, -1);
}

/// hwloc may crash on XML that is damaged: it never gets to see it.
TEST_F(JobFolder, takes_topologies_as_they_were_written_or_says_so) {
  const std::string text = topology_file("<topology>\n</topology>\n");
  EXPECT_TRUE(text.starts_with("<topology>\n</topology>\n<!-- crc32c "));
  std::ofstream(node_ / "topology.xml") << text;
  EXPECT_EQ(read().nodes.at(0).topology_xml, "<topology>\n</topology>\n");
  EXPECT_EQ(read().nodes.at(0).providers.count("topology"), 0u);
  for (size_t at = 0; at < text.size(); ++at) {
    std::string damaged = text;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    EXPECT_FALSE(topology_xml(damaged).has_value()) << damaged;
    EXPECT_FALSE(topology_xml(text.substr(0, at)).has_value()) << at;
  }
  std::ofstream(node_ / "topology.xml") << text.substr(3);
  const Node node = read().nodes.at(0);
  EXPECT_EQ(node.topology_xml, "");
  EXPECT_EQ(node.providers.at("topology").reason, "topology.xml of the spool is damaged");
}

TEST_F(JobFolder, nodes_are_read_in_order_and_none_is_an_error) {
  std::filesystem::create_directories(folder_.path() / "spool" / "n0");
  const Job job = read();
  ASSERT_EQ(job.nodes.size(), 2u);
  EXPECT_EQ(job.nodes[0].host, "n0");
  EXPECT_EQ(job.nodes[1].host, "n1");
  for (const char* name : {"a", "n9"})  // that node's own disk, seen from another
    std::filesystem::create_directory_symlink("/none/at/all", folder_.path() / "spool" / name);
  EXPECT_EQ(read().nodes.size(), 2u);
  const auto missing = read_job(folder_.path() / "none");
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().code, Code::kNotFound);
}

TEST(Definitions, strings_are_found_by_number) {
  const std::string bytes = std::string("1234") + "one" + '\0' + '\0' + "three";
  const std::span<const uint8_t> payload(reinterpret_cast<const uint8_t*>(bytes.data()),
                                         bytes.size());
  EXPECT_EQ(definition_string(payload, 4, 0), "one");
  EXPECT_EQ(definition_string(payload, 4, 1), "");
  EXPECT_EQ(definition_string(payload, 4, 2), "three");
  EXPECT_EQ(definition_string(payload, 4, 3), "");
  EXPECT_EQ(definition_string(payload, 400, 0), "");
}

TEST(Definitions, cursor_stops_at_a_length_that_does_not_fit) {
  const uint32_t words[] = {1, 4, 0, 2, 100};
  Bytes block(sizeof(words));
  std::memcpy(block.data(), words, sizeof(words));
  DefinitionCursor cursor(block);
  EXPECT_TRUE(cursor.next().has_value());
  EXPECT_FALSE(cursor.next().has_value());
  EXPECT_TRUE(cursor.is_damaged());
}

TEST(CleanText, keeps_characters_and_replaces_bad_bytes) {
  EXPECT_EQ(clean_text("Gr\xc3\xb6\xc3\x9f"
                       "e \xe2\x82\xac \xf0\x9f\x98\x80"),
            "Gr\xc3\xb6\xc3\x9f"
            "e \xe2\x82\xac \xf0\x9f\x98\x80");
  EXPECT_EQ(clean_text("a\nb\x7f"), "a?b?");
  EXPECT_EQ(clean_text("\xc0\xaf \xed\xa0\x80 \xf5 \xe2\x82"), "?? ??? ? ??");
  EXPECT_EQ(clean_text(std::string(9000, 'x')).size(), kMaxTextBytes);
}

}  // namespace
}  // namespace aon::spool
