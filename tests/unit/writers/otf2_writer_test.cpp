// The archive as otf2-print sees it, from spools that the fixture writes.

#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>
#include <fstream>
#include <string>

#include "core/spool/files.h"
#include "core/topology/topology.h"
#include "tests/unit/writers/checked_archive.h"
#include "tests/unit/writers/spool_fixture.h"
#include "writers/assemble/assemble.h"

namespace aon::writers {
namespace {

using test::checked_archive;
using test::count_of;
using test::NodeSpool;
using test::TemporaryFolder;

const std::vector<std::pair<std::string, RegionRole>> kRegions = {
    {"MPI_Send", RegionRole::kPointToPoint},
    {"MPI_Recv", RegionRole::kPointToPoint},
    {"MPI_Isend", RegionRole::kPointToPoint},
    {"MPI_Irecv", RegionRole::kPointToPoint},
    {"MPI_Waitall", RegionRole::kPointToPoint},
    {"MPI_Allreduce", RegionRole::kAllToAll},
    {"solve", RegionRole::kUser}};
enum Region : uint32_t { kSend = 1, kRecv, kIsend, kIrecv, kWaitall, kAllreduce, kSolve };

/// Two ranks that exchange `messages` blocking and one non-blocking message.
void write_pair(NodeSpool* node, uint32_t rank, int messages) {
  node->add_process(rank, static_cast<int32_t>(rank), 2, kRegions);
  const int32_t peer = rank == 0 ? 1 : 0;
  std::vector<Record> records{test::begin_record(kSolve, 1000)};
  uint64_t now = 2000;
  for (int i = 0; i < messages; ++i, now += 1000) {
    records.push_back(test::message_record(rank == 0 ? kSend : kRecv, now, now + 500,
                                           rank == 0 ? kOutgoing : kIncoming, peer, 7, 64));
  }
  records.push_back(
      test::message_record(kIrecv, now, now + 10, kIncoming | kNonblocking, -1, 8, 128, 500));
  records.push_back(test::message_record(kIsend, now + 20, now + 30, kOutgoing | kNonblocking, peer,
                                         8, 128, 501));
  records.push_back(test::completion_record(now + 90, kIncoming | kInsideSpan, peer, 8, 128, 500));
  records.push_back(test::completion_record(now + 91, kOutgoing | kInsideSpan, peer, 8, 128, 501));
  records.push_back(test::span_record(kWaitall, now + 40, now + 100));
  records.push_back(test::collective_record(kAllreduce, now + 200, now + 300,
                                            CollectiveOperation::kAllreduce, -1, 8));
  records.push_back(test::end_record(kSolve, now + 400));
  node->add_records(rank, 1, records);
  node->add_exit(rank, now + 1000, 0, 0);
}

TEST(Otf2Writer, archive_of_two_ranks_is_clean_for_otf2_print) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  write_pair(&node, 0, 10);
  write_pair(&node, 1, 10);
  node.finish();
  const std::string text = checked_archive(job.path());
  EXPECT_EQ(count_of(text, "MPI_SEND "), 10u);
  EXPECT_EQ(count_of(text, "MPI_RECV "), 10u);
  EXPECT_EQ(count_of(text, "MPI_ISEND "), 2u);
  EXPECT_EQ(count_of(text, "MPI_IRECV "), 2u);
  EXPECT_EQ(count_of(text, "MPI_COLLECTIVE_END"), 2u);
  EXPECT_NE(text.find("Property value                 true"), std::string::npos);
}

TEST(Otf2Writer, rank_without_records_is_there_and_nothing_is_claimed) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  write_pair(&node, 0, 10);
  node.finish();
  const std::string text = checked_archive(job.path());
  EXPECT_EQ(count_of(text, "Region: \"[no records]\""), 2u);
  EXPECT_NE(text.find("\"MPI Rank 1\""), std::string::npos);
  EXPECT_NE(text.find("Property value                 false"), std::string::npos);
}

TEST(Otf2Writer, ids_of_processes_are_local_and_unified) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  node.add_process(0, 0, 2, {{"first", RegionRole::kUser}, {"second", RegionRole::kUser}});
  node.add_process(1, 1, 2, {{"second", RegionRole::kUser}, {"first", RegionRole::kUser}});
  node.add_records(0, 1, {test::span_record(1, 10, 20)});
  node.add_records(1, 1, {test::span_record(1, 10, 20), test::span_record(2, 30, 40)});
  node.finish();
  const std::string text = checked_archive(job.path());
  EXPECT_EQ(count_of(text, "Region: \"first\""), 4u);
  EXPECT_EQ(count_of(text, "Region: \"second\""), 2u);
  EXPECT_EQ(count_of(text, "Name: \"first\""), 1u);
}

TEST(Otf2Writer, losses_and_open_calls_are_visible) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  node.add_process(0, 0, 1, kRegions);
  node.add_records(0, 1,
                   {test::begin_record(1, 5), test::span_record(kSend, 10, 20),
                    test::lost_record(LossReason::kPoolFull, 30, 40, 17, 1),
                    test::message_record(kRecv, 50, 90, kIncoming | kOpenAtEnd, 0, 1, 8)});
  node.finish();
  const std::string text = checked_archive(job.path());
  EXPECT_EQ(count_of(text, "Region: \"[lost: pool full]\""), 2u);
  EXPECT_EQ(count_of(text, "(\"lost\" <0>; UINT64; 17)"), 1u);
  EXPECT_EQ(count_of(text, "(\"open at end\" <2>; UINT8; 1)"), 1u);
  EXPECT_EQ(count_of(text, "(\"cut by a loss\" <19>; UINT8; 1)"), 1u);
  EXPECT_EQ(count_of(text, "MPI_RECV "), 0u);
}

TEST(Otf2Writer, samples_stand_on_a_metric_location) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  node.add_process(0, 0, 1, kRegions);
  node.define(0, DefinitionType::kMetric, MetricDefinition{9, MetricMode::kAbsolute, 0, 0},
              {"perf.page-faults", "1", "Page faults"});
  node.add_records(0, 1, {test::span_record(kSend, 10, 20)});
  node.add_records(0, spool::kSeriesSlot,
                   {test::sample_record(9, 15, 2.5), test::sample_record(9, 25, 3.5)});
  node.finish();
  const std::string text = checked_archive(job.path());
  EXPECT_EQ(count_of(text, "METRIC  "), 2u);
  EXPECT_NE(text.find("Type: METRIC"), std::string::npos);
  EXPECT_NE(text.find("2.5"), std::string::npos);
}

TEST(Otf2Writer, counters_that_a_thread_sets_stand_beside_it) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  node.add_process(0, 0, 1, kRegions);
  node.define(0, DefinitionType::kMetric, MetricDefinition{9, MetricMode::kAbsolute, 0, 0},
              {"user::residual", "K", ""});
  node.add_records(0, 1,
                   {test::begin_record(kSolve, 10), test::sample_record(9, 15, 2.5),
                    test::sample_record(9, 16, 4.5), test::end_record(kSolve, 20)});
  node.finish();
  const std::string text = checked_archive(job.path());
  EXPECT_EQ(count_of(text, "METRIC  "), 2u);
  EXPECT_EQ(count_of(text, "\"Counters: Master thread\""), 2u);
  EXPECT_EQ(count_of(text, "ENTER "), 1u);
}

TEST(Otf2Writer, thread_that_only_sets_counters_has_no_records_of_its_own) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  node.add_process(0, 0, 1, kRegions);
  node.define(0, DefinitionType::kMetric, MetricDefinition{9, MetricMode::kAbsolute, 0, 0},
              {"user::residual", "K", ""});
  node.add_records(0, 1, {test::sample_record(9, 15, 2.5)});
  node.finish();
  const std::string text = checked_archive(job.path());
  EXPECT_EQ(count_of(text, "METRIC  "), 1u);
  EXPECT_EQ(count_of(text, "Region: \"[no records]\""), 2u);
}

TEST(Otf2Writer, steps_marks_and_ranges_carry_their_values) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  node.add_process(0, 0, 1, {{"step", RegionRole::kStep}, {"event", RegionRole::kUser}});
  Record step = test::begin_record(1, 10);
  step.head.a32 = static_cast<uint32_t>(ValueType::kStep);
  step.head.a64 = static_cast<uint64_t>(-7);
  node.add_records(
      0, 1,
      {step, test::mark_record(2, 11, ValueType::kNone, 0),
       test::mark_record(2, 12, ValueType::kUnsigned, 3),
       test::mark_record(2, 13, ValueType::kSigned, static_cast<uint64_t>(-3)),
       test::mark_record(2, 14, ValueType::kReal, std::bit_cast<uint64_t>(0.25)),
       test::mark_record(2, 15, ValueType::kRangeStart, 77, {2, 5}),
       test::mark_record(2, 19, ValueType::kRangeEnd, 77, {15}), test::end_record(1, 20)});
  node.finish();
  const std::string text = checked_archive(job.path());
  EXPECT_EQ(count_of(text, "ENTER "), 7u);
  EXPECT_EQ(count_of(text, "(\"step\" <8>; INT64; -7)"), 1u);
  EXPECT_EQ(count_of(text, "(\"value\" <4>; UINT64; 3)"), 1u);
  EXPECT_EQ(count_of(text, "(\"signed value\" <6>; INT64; -3)"), 1u);
  EXPECT_EQ(count_of(text, "(\"real value\" <7>; DOUBLE; 0.25"), 1u);
  EXPECT_EQ(count_of(text, "(\"range\" <9>; UINT64; 77)"), 2u);
  EXPECT_EQ(count_of(text, "(\"signed value\" <6>; INT64; 5)"), 1u);
  EXPECT_EQ(count_of(text, "(\"duration\" <10>; UINT64; 4)"), 1u);
}

TEST(Otf2Writer, thread_has_the_name_that_the_program_gave_it) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  node.add_process(0, 0, 1, kRegions);
  node.add_records(0, 2, {test::span_record(kSolve, 10, 20)});
  node.define(0, DefinitionType::kThreadName, IdDefinition{1001}, {"loader"});
  node.finish();
  EXPECT_EQ(count_of(checked_archive(job.path()), "\"Thread 1 (loader)\""), 2u);
}

TEST(Otf2Writer, above_the_limit_only_master_threads_are_in_the_archive) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  node.add_process(0, 0, 1, kRegions);
  for (uint16_t slot = 1; slot <= 8; ++slot) {
    node.add_records(0, slot, {test::span_record(kSolve, 10, 20)});
  }
  node.finish();
  AssembleOptions options;
  options.otf2_locations = 4;
  EXPECT_EQ(count_of(checked_archive(job.path(), options), "ENTER "), 1u);
  options.otf2_locations = 8;
  EXPECT_EQ(count_of(checked_archive(job.path(), options), "ENTER "), 8u);
}

TEST(Otf2Writer, hardware_beyond_the_limit_stands_in_hdf5_alone) {
  setenv("HWLOC_SYNTHETIC", "package:8 l3:32 core:33 pu:1", 1);
  const auto machine = topology::Topology::load();
  unsetenv("HWLOC_SYNTHETIC");
  ASSERT_TRUE(machine.has_value());
  const Result<std::string> xml = machine.value().xml();
  ASSERT_TRUE(xml.has_value());
  TemporaryFolder job;
  for (const char* host : {"n1", "n2"}) {
    NodeSpool node(job.path(), host);
    write_pair(&node, host[1] == '1' ? 0 : 1, 1);
    node.finish();
    std::ofstream(node.folder() / spool::kTopologyFile) << spool::topology_file(xml.value());
  }
  const std::string text = checked_archive(job.path());
  EXPECT_EQ(count_of(text, "SYSTEM_TREE_NODE "), 1u + 2 + 8192);
  EXPECT_EQ(count_of(text, "\"all of it in /topology of profile.h5\" <"), 1u);
  EXPECT_EQ(count_of(text, "\"in /topology of profile.h5\" <"), 1u);
}

/// Leaves about 200 KiB for the events of one rank.
constexpr uint64_t kSmallCapBytes = 900'000;

TEST(Otf2Writer, window_of_one_instant_can_be_read) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  node.add_process(0, 0, 1, kRegions);
  std::vector<Record> records;
  for (uint64_t i = 0; i < 1000; ++i)
    records.push_back(test::span_record(kAllreduce, 1000 + i * 1000, 1100 + i * 1000));
  node.add_records(0, 1, records);
  node.add_records(0, 1, {test::span_record(kAllreduce, 2'000'000, 2'000'000)});
  node.finish();
  AssembleOptions options;
  options.disk_cap_bytes = 1;
  const std::string text = checked_archive(job.path(), options);
  EXPECT_EQ(count_of(text, "Region: \"MPI_Allreduce\""), 2u);
}

TEST(Otf2Writer, window_below_the_disk_cap_is_whole_in_itself) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  node.add_process(0, 0, 1, kRegions);
  node.add_records(0, 1, {test::begin_record(kSolve, 1)});
  for (uint64_t block = 0; block < 100; ++block) {
    std::vector<Record> records;
    for (uint64_t i = 0; i < 100; ++i) {
      const uint64_t at = 1000 + block * 100'000 + i * 1000;
      records.push_back(test::span_record(kAllreduce, at, at + 100));
    }
    node.add_records(0, 1, records);
  }
  node.add_records(0, 1, {test::end_record(kSolve, 20'000'000)});
  node.finish();
  AssembleOptions options;
  options.disk_cap_bytes = kSmallCapBytes;
  const std::string text = checked_archive(job.path(), options);
  const size_t count = count_of(text, "Region: \"MPI_Allreduce\"");
  EXPECT_GT(count, 1000u);
  EXPECT_LT(count, 12'000u);
  EXPECT_EQ(count_of(text, "Region: \"solve\""), 2u);
}

/// Four ranks wait, then each has a block of calls within a hundredth of its time. The window
/// begins in the burst; what is there is not the whole block.
TEST(Otf2Writer, window_within_a_burst_stays_below_the_disk_cap) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  for (uint32_t rank = 0; rank < 4; ++rank) {
    node.add_process(rank, static_cast<int32_t>(rank), 4, kRegions);
    std::vector<Record> records = {test::span_record(kAllreduce, 1000, 2'000'000'000)};
    for (uint64_t i = 0; i < 7500; ++i) {
      const uint64_t at = 2'000'000'100 + i * 1000 + rank;
      records.push_back(test::span_record(kAllreduce, at, at + 100));
    }
    node.add_records(rank, 1, records);
  }
  node.finish();
  AssembleOptions options;
  options.disk_cap_bytes = kSmallCapBytes;
  const std::string text = checked_archive(job.path(), options);
  const size_t count = count_of(text, "Region: \"MPI_Allreduce\"");
  EXPECT_GT(count, 1000u);
  uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(job.path()))
    bytes += entry.is_regular_file() ? entry.file_size() : 0;
  EXPECT_LE(bytes, options.disk_cap_bytes);
}

}  // namespace
}  // namespace aon::writers
