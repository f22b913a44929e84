#include "writers/profile/io.h"

#include <gtest/gtest.h>

#include "tests/unit/profile/one_rank.h"

namespace aon::writers::profile {
namespace {

Event io(EventKind kind, uint64_t time_ns, uint32_t file, IoOperation operation, uint64_t bytes,
         uint32_t flags = 0) {
  Event e = test::event(kind, time_ns, 0);
  e.communicator = file;
  e.peer = static_cast<int32_t>(operation);
  e.tag = static_cast<int32_t>(flags);
  e.bytes = bytes;
  return e;
}

/// One blocking transfer.
void add_transfer(IoTable* table, uint64_t start_ns, uint64_t end_ns, uint32_t file,
                  IoOperation operation, uint64_t bytes, uint32_t flags = 0) {
  table->add(test::enter(start_ns, 0));
  table->add(io(EventKind::kIoBegin, start_ns, file, operation, bytes, flags));
  table->add(io(EventKind::kIoComplete, end_ns, file, operation, bytes, flags));
  table->add(test::leave(end_ns, 0));
}

Model model_with_files(uint32_t ranks, uint32_t files) {
  Model model = test::make_model(ranks);
  for (Group& group : model.groups) {
    for (uint32_t file = 0; file < files; ++file) group.file_map[file + 1] = file;
  }
  return model;
}

TEST(IoTable, sums_by_process_and_file) {
  const Model model = model_with_files(2, 2);
  IoTable table(model);
  table.begin(model.groups[1]);
  add_transfer(&table, 10, 30, 1, IoOperation::kRead, 100);
  add_transfer(&table, 40, 45, 1, IoOperation::kWrite, 7, kIoCollective);
  add_transfer(&table, 50, 51, 2, IoOperation::kWrite, 8);
  add_transfer(&table, 60, 64, 1, IoOperation::kSync, 0, kIoCollective);
  table.add(test::enter(70, 0));
  table.add(io(EventKind::kIoChange, 72, 1, IoOperation::kSetView, 0, kIoCollective));
  table.add(test::leave(72, 0));
  const auto rows = table.rows();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].group, 1u);
  EXPECT_EQ(rows[0].file, 0);
  EXPECT_EQ(rows[0].reads, 1u);
  EXPECT_EQ(rows[0].writes, 1u);
  EXPECT_EQ(rows[0].bytes_read, 100u);
  EXPECT_EQ(rows[0].bytes_written, 7u);
  EXPECT_EQ(rows[0].read_ns, 20u);
  EXPECT_EQ(rows[0].write_ns, 5u);
  EXPECT_EQ(rows[0].other_ns, 6u);
  EXPECT_EQ(rows[0].collective_count, 1u);
  EXPECT_EQ(rows[0].collective_bytes, 7u);
  EXPECT_EQ(rows[1].file, 1);
  EXPECT_EQ(rows[1].bytes_written, 8u);
}

TEST(IoTable, waiting_for_a_request_is_no_time_of_the_file) {
  const Model model = model_with_files(1, 1);
  IoTable table(model);
  table.begin(model.groups[0]);
  table.add(test::enter(10, 0));
  table.add(io(EventKind::kIoBegin, 10, 1, IoOperation::kRead, 64, kIoNonblocking));
  table.add(io(EventKind::kIoIssued, 12, 1, IoOperation::kRead, 0, kIoNonblocking));
  table.add(test::leave(12, 0));
  table.add(test::enter(20, 0));
  table.add(io(EventKind::kIoComplete, 90, 1, IoOperation::kRead, 60, kIoNonblocking));
  table.add(test::leave(90, 0));
  const auto rows = table.rows();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].read_ns, 2u);
  EXPECT_EQ(rows[0].bytes_read, 60u);
}

TEST(IoTable, sums_up_files_beyond_64_as_other) {
  const Model model = model_with_files(1, 100);
  IoTable table(model);
  table.begin(model.groups[0]);
  for (uint32_t file = 1; file <= 100; ++file) {
    add_transfer(&table, file * 10, file * 10 + 1, file, IoOperation::kRead, 2);
  }
  const auto rows = table.rows();
  ASSERT_EQ(rows.size(), kMaxFiles + 1);
  EXPECT_EQ(rows[0].file, kOtherFile);
  EXPECT_EQ(rows[0].reads, 36u);
  EXPECT_EQ(rows[0].bytes_read, 72u);
}

}  // namespace
}  // namespace aon::writers::profile
