// Windows and files of the archive: what is made, used and given back, also where some of it is not
// there.

#include <gtest/gtest.h>

#include <string>

#include "tests/unit/writers/checked_archive.h"
#include "tests/unit/writers/spool_fixture.h"
#include "writers/assemble/assemble.h"

namespace aon::writers {
namespace {

using test::checked_archive;
using test::count_of;
using test::NodeSpool;
using test::TemporaryFolder;

/// Two ranks with one window: every kind of call on rank 0, the collective ones on rank 1 as well.
/// Those before `first_at` were evicted.
void write_one_sided(NodeSpool* node, uint32_t rank, uint64_t first_at = 0) {
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
  std::erase_if(records, [&](const Record& one) { return one.head.start_ticks < first_at; });
  node->add_records(rank, 1, records);
}

TEST(Otf2Handles, one_sided_communication_is_there_as_otf2_has_it) {
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

/// The flight recorder keeps the newest part.
TEST(Otf2Handles, a_window_whose_create_is_not_there_is_created_with_its_first_event) {
  for (const uint64_t first_at : {15u, 55u, 115u, 195u}) {
    TemporaryFolder job;
    NodeSpool node(job.path(), "n1");
    write_one_sided(&node, 0, first_at);
    write_one_sided(&node, 1, first_at);
    node.finish();
    const std::string text = checked_archive(job.path());
    EXPECT_EQ(count_of(text, "RMA_WIN_CREATE "), 2u) << first_at;
    EXPECT_EQ(count_of(text, "RMA_WIN_DESTROY "), 2u) << first_at;
    EXPECT_LT(text.find("RMA_WIN_CREATE "), text.find("RMA_WIN_DESTROY ")) << first_at;
    EXPECT_EQ(count_of(text, "RMA_RELEASE_LOCK "), count_of(text, "RMA_ACQUIRE_LOCK ")) << first_at;
  }
}

const std::vector<std::pair<std::string, RegionRole>> kFileRegions = {
    {"MPI_File_open", RegionRole::kFileIo},
    {"MPI_File_write_at_all", RegionRole::kFileIo},
    {"MPI_File_iread", RegionRole::kFileIo},
    {"MPI_File_close", RegionRole::kFileIo},
    {"MPI_File_set_view", RegionRole::kFileIo}};
enum FileRegion : uint32_t { kOpen = 1, kWriteAtAll, kIread, kClose, kSetView };

/// A rank that writes together with the other, and reads alone. `start`: when. Those before
/// `first_at` were evicted.
void write_files(NodeSpool* node, uint32_t rank, uint64_t start, uint64_t first_at = 0) {
  const auto file = FileDefinition{1234, rank + 3, 0, kFileReads | kFileWrites | kFileCreates, 0};
  node->define(rank, DefinitionType::kFile, file, {"/scratch/data"});
  const uint32_t id = file.id;
  std::vector<Record> records = {
      test::io_record(kOpen, start, start + 10, IoOperation::kOpen, kIoCollective, file.mode, 0, 1,
                      id),
      test::io_record(kSetView, start + 12, start + 18, IoOperation::kSetView, kIoCollective, 0, 0,
                      5, id, 4096),
      test::io_record(kWriteAtAll, start + 20, start + 30, IoOperation::kWrite, kIoCollective, 64,
                      64, 2, id, 4096 + rank * 64),
      test::io_record(kIread, start + 40, start + 50, IoOperation::kRead, kIoNonblocking, 32, 0, 3,
                      id),
      test::io_completion_record(start + 60, 0, IoOperation::kRead, 16, 3, id),
      test::io_record(kClose, start + 70, start + 80, IoOperation::kClose, kIoCollective, 0, 0, 4,
                      id)};
  std::erase_if(records, [&](const Record& one) { return one.head.start_ticks < first_at; });
  node->add_records(rank, 1, records);
}

TEST(Otf2Handles, files_have_one_handle_for_all_members) {
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

TEST(Otf2Handles, a_file_whose_open_is_not_there_is_opened_with_its_first_event) {
  for (const uint64_t first_at : {1015u, 1035u, 1065u}) {
    TemporaryFolder job;
    NodeSpool node(job.path(), "n1");
    node.add_process(0, 0, 1, kFileRegions);
    write_files(&node, 0, 1000, first_at);
    node.finish();
    const std::string text = checked_archive(job.path());
    EXPECT_EQ(count_of(text, "IO_CREATE_HANDLE "), 1u) << first_at;
    EXPECT_EQ(count_of(text, "IO_DESTROY_HANDLE "), 1u) << first_at;
    EXPECT_LT(text.find("IO_CREATE_HANDLE "), text.find("IO_DESTROY_HANDLE ")) << first_at;
  }
}

/// MPI_THREAD_MULTIPLE: one thread opens it, and one whose events are written first reads it.
TEST(Otf2Handles, a_file_that_another_thread_opened_is_opened_once) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  node.add_process(0, 0, 1, kFileRegions);
  const FileDefinition file{1234, 3, 0, kFileReads, 0};
  node.define(0, DefinitionType::kFile, file, {"/scratch/data"});
  node.add_records(
      0, 1,
      {test::io_record(kIread, 1040, 1050, IoOperation::kRead, 0, 32, 32, 1, file.id),
       test::io_record(kClose, 1070, 1080, IoOperation::kClose, kIoCollective, 0, 0, 2, file.id)});
  node.add_records(0, 2,
                   {test::io_record(kOpen, 1000, 1010, IoOperation::kOpen, kIoCollective, file.mode,
                                    0, 1, file.id)});
  node.finish();
  const std::string text = checked_archive(job.path());
  EXPECT_EQ(count_of(text, "IO_CREATE_HANDLE "), 1u);
  EXPECT_EQ(count_of(text, "IO_DESTROY_HANDLE "), 1u);
}

TEST(Otf2Handles, files_that_were_opened_before_the_window_are_open_in_it) {
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
  options.disk_cap_bytes = 900'000;
  const std::string text = checked_archive(job.path(), options);
  const size_t count = count_of(text, "IO_OPERATION_BEGIN ");
  EXPECT_GT(count, 500u);
  EXPECT_LT(count, 9'000u);
  EXPECT_EQ(count_of(text, "IO_CREATE_HANDLE "), 1u);
  EXPECT_EQ(count_of(text, "IO_OPERATION_COMPLETE "), count);
}

}  // namespace
}  // namespace aon::writers
