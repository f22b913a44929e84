// The archive as otf2-print sees it, from spools that the fixture writes.

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "core/spool/files.h"
#include "core/topology/topology.h"
#include "tests/unit/writers/spool_fixture.h"
#include "writers/assemble/assemble.h"

extern const char* const kSourceFolder;  // the build writes it

namespace aon::writers {
namespace {

using test::NodeSpool;
using test::TemporaryFolder;

struct CommandResult {
  int status;
  std::string output;
};

CommandResult run(const std::string& command) {
  CommandResult result{-1, {}};
  FILE* pipe = popen(("ulimit -f 200000; " + command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return result;
  std::array<char, 4096> buffer;
  size_t got = 0;
  while ((got = fread(buffer.data(), 1, buffer.size(), pipe)) > 0) {
    result.output.append(buffer.data(), got);
  }
  result.status = pclose(pipe);
  return result;
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

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

/// Assembles and lets all checkers look at the archive; returns what otf2-print prints.
std::string checked_archive(const std::filesystem::path& job, const AssembleOptions& options = {}) {
  const Result<AssembleReport> report = assemble(job, options);
  EXPECT_TRUE(report.has_value()) << report.error().message;
  const std::string anchor = (job / "traces.otf2").string();
  const CommandResult silent = run(std::string(test::kOtf2Print) + ("--silent -Werror " + anchor));
  EXPECT_EQ(silent.status, 0) << silent.output;
  const CommandResult checked = run(std::string("timeout 60 /usr/bin/python3 ") + kSourceFolder +
                                    "/tests/e2e/check_otf2.py " + anchor);
  EXPECT_EQ(checked.status, 0) << checked.output;
  const CommandResult printed = run(std::string(test::kOtf2Print) + ("-A " + anchor));
  EXPECT_EQ(printed.output.find("INVALID"), std::string::npos);
  return printed.output;
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

/// Two ranks with one window: every kind of call on rank 0, the collective ones on rank 1 as well.
void write_one_sided(NodeSpool* node, uint32_t rank) {
  enum : uint32_t { kCall = 1 };
  node->add_process(rank, static_cast<int32_t>(rank), 2, {{"MPI_Put", RegionRole::kRma}});
  node->define(rank, DefinitionType::kWindow,
               WindowDefinition{4711, 5 + rank, 0, WindowFlavour::kAllocate, {}}, {""});
  node->define(rank, DefinitionType::kWindowName, IdDefinition{5 + rank}, {"halo"});
  struct {
    GroupDefinition head;
    uint32_t members[1];
  } const group = {{2, 1}, {1 - rank}};
  node->define(rank, DefinitionType::kGroup, group);
  const auto call = [&](uint64_t at, RmaOperation operation, int32_t target, uint64_t bytes = 0,
                        uint64_t back = 0, uint64_t word = 0, uint16_t flags = 0) {
    return test::rma_record(kCall, at, at + 5, operation, target, bytes, back, word, flags,
                            5 + rank);
  };
  std::vector<Record> records = {call(10, RmaOperation::kCreateAllocated, kAnyPeer),
                                 call(20, RmaOperation::kFence, kAnyPeer)};
  if (rank == 0) {
    const std::vector<Record> more = {call(30, RmaOperation::kPut, 1, 80),
                                      call(40, RmaOperation::kGet, 1, 0, 24),
                                      call(50, RmaOperation::kCompareAndSwap, 1, 8, 8),
                                      call(60, RmaOperation::kFlushLocal, 1),
                                      call(70, RmaOperation::kPut, 1, 40, 0, 99, kNonblocking),
                                      test::completion_record(77, kInsideSpan, 1, 0, 40, 99, 5),
                                      test::span_record(kCall, 76, 79),
                                      call(80, RmaOperation::kFlushAll, -1),
                                      call(90, RmaOperation::kStart, kAnyPeer, 0, 0, 2),
                                      call(100, RmaOperation::kComplete, kAnyPeer, 0, 0, 77),
                                      call(110, RmaOperation::kLockExclusive, 1),
                                      call(120, RmaOperation::kUnlock, 1),
                                      call(130, RmaOperation::kLockAll, kAnyPeer),
                                      call(140, RmaOperation::kSync, kAnyPeer),
                                      call(150, RmaOperation::kUnlockAll, kAnyPeer)};
    records.insert(records.end(), more.begin(), more.end());
  }
  records.push_back(call(200, RmaOperation::kFreeAllocated, kAnyPeer));
  node->add_records(rank, 1, records);
}

TEST(Otf2Writer, one_sided_communication_is_there_as_otf2_has_it) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  write_one_sided(&node, 0);
  write_one_sided(&node, 1);
  node.finish();
  const std::string text = checked_archive(job.path());
  EXPECT_EQ(count_of(text, "RMA_WIN "), 1u);
  const std::pair<const char*, size_t> expected[] = {
      {"RMA_WIN_CREATE ", 2},
      {"RMA_WIN_DESTROY ", 2},
      {"RMA_COLLECTIVE_BEGIN ", 6},
      {"RMA_COLLECTIVE_END ", 6},
      {"RMA_PUT ", 2},
      {"RMA_GET ", 1},
      {"RMA_ATOMIC ", 1},
      {"RMA_OP_COMPLETE_BLOCKING ", 1},
      {"RMA_OP_COMPLETE_NON_BLOCKING ", 1},
      {"RMA_OP_COMPLETE_REMOTE ", 2},
      {"RMA_GROUP_SYNC ", 2},
      {"RMA_ACQUIRE_LOCK ", 2},
      {"RMA_RELEASE_LOCK ", 2},
      {"RMA_SYNC ", 1},
  };
  for (const auto& [name, count] : expected) EXPECT_EQ(count_of(text, name), count) << name;
}

const std::vector<std::pair<std::string, RegionRole>> kFileRegions = {
    {"MPI_File_open", RegionRole::kFileIo},
    {"MPI_File_write_at_all", RegionRole::kFileIo},
    {"MPI_File_iread", RegionRole::kFileIo},
    {"MPI_File_close", RegionRole::kFileIo},
    {"MPI_File_set_view", RegionRole::kFileIo}};
enum FileRegion : uint32_t { kOpen = 1, kWriteAtAll, kIread, kClose, kSetView };

/// A rank that writes together with the other, and reads alone. `start`: when.
void write_files(NodeSpool* node, uint32_t rank, uint64_t start) {
  const auto file = FileDefinition{1234, rank + 3, 0, kFileReads | kFileWrites | kFileCreates, 0};
  node->define(rank, DefinitionType::kFile, file, {"/scratch/data"});
  const uint32_t id = file.id;
  node->add_records(rank, 1,
                    {test::io_record(kOpen, start, start + 10, IoOperation::kOpen, kIoCollective,
                                     file.mode, 0, 1, id),
                     test::io_record(kSetView, start + 12, start + 18, IoOperation::kSetView,
                                     kIoCollective, 0, 0, 5, id, 4096),
                     test::io_record(kWriteAtAll, start + 20, start + 30, IoOperation::kWrite,
                                     kIoCollective, 64, 64, 2, id, 4096 + rank * 64),
                     test::io_record(kIread, start + 40, start + 50, IoOperation::kRead,
                                     kIoNonblocking, 32, 0, 3, id),
                     test::io_completion_record(start + 60, 0, IoOperation::kRead, 16, 3, id),
                     test::io_record(kClose, start + 70, start + 80, IoOperation::kClose,
                                     kIoCollective, 0, 0, 4, id)});
}

TEST(Otf2Writer, files_have_one_handle_for_all_members) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  for (uint32_t rank : {0u, 1u}) {
    node.add_process(rank, static_cast<int32_t>(rank), 2, kFileRegions);
    write_files(&node, rank, 1000);
  }
  node.define(0, DefinitionType::kFile, FileDefinition{0, 50, 0, 0, 0}, {"/scratch/old"});
  node.add_records(0, 1,
                   {test::io_record(kClose, 2000, 2010, IoOperation::kDelete, 0, 0, 0, 9, 50)});
  node.finish();
  const std::string text = checked_archive(job.path());
  EXPECT_EQ(count_of(text, "IO_PARADIGM "), 1u);
  EXPECT_EQ(count_of(text, "IO_REGULAR_FILE "), 2u);
  EXPECT_EQ(count_of(text, "IO_HANDLE "), 1u);
  EXPECT_EQ(count_of(text, "IO_CREATE_HANDLE "), 2u);
  EXPECT_EQ(count_of(text, "IO_DESTROY_HANDLE "), 2u);
  EXPECT_EQ(count_of(text, "IO_OPERATION_BEGIN "), 4u);
  EXPECT_EQ(count_of(text, "IO_OPERATION_ISSUED "), 2u);
  EXPECT_EQ(count_of(text, "IO_OPERATION_COMPLETE "), 4u);
  EXPECT_EQ(count_of(text, "IO_DELETE_FILE "), 1u);
  EXPECT_EQ(count_of(text, "UINT64; 4096)"), 1u);
  EXPECT_EQ(count_of(text, "UINT64; 4160)"), 1u);
  EXPECT_EQ(count_of(text, "(\"Offset\""), 2u) << "no attribute where the offset is unknown";
}

TEST(Otf2Writer, files_that_were_opened_before_the_window_are_open_in_it) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  node.add_process(0, 0, 1, kFileRegions);
  const FileDefinition file{1234, 3, 0, kFileReads, 0};
  node.define(0, DefinitionType::kFile, file, {"/scratch/data"});
  node.add_records(
      0, 1,
      {test::io_record(kOpen, 1, 5, IoOperation::kOpen, kIoCollective, file.mode, 0, 1, file.id),
       test::io_record(kIread, 10, 20, IoOperation::kRead, kIoNonblocking, 32, 0, 2, file.id)});
  uint64_t request = 2;
  for (uint64_t block = 0; block < 100; ++block) {
    std::vector<Record> records;
    for (uint64_t i = 0; i < 100; ++i) {
      const uint64_t at = 1000 + block * 100'000 + i * 1000;
      records.push_back(test::io_record(kWriteAtAll, at, at + 100, IoOperation::kRead, 0, 32, 32,
                                        ++request, file.id, i));
    }
    node.add_records(0, 1, records);
  }
  node.add_records(0, 1,
                   {test::io_completion_record(20'000'000, 0, IoOperation::kRead, 32, 2, file.id)});
  node.finish();
  AssembleOptions options;
  options.disk_cap_bytes = kSmallCapBytes;
  const std::string text = checked_archive(job.path(), options);
  const size_t count = count_of(text, "IO_OPERATION_BEGIN ");
  EXPECT_GT(count, 500u);
  EXPECT_LT(count, 9'000u);
  EXPECT_EQ(count_of(text, "IO_CREATE_HANDLE "), 1u);
  EXPECT_EQ(count_of(text, "IO_OPERATION_COMPLETE "), count);
}

}  // namespace
}  // namespace aon::writers
