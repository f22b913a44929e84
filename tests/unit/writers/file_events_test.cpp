// Events of files: which operation makes which, and where a transfer is complete.

#include "tests/unit/writers/event_order_fixture.h"

namespace aon::writers {
namespace {

using test::io_completion_record;
using test::io_record;
using test::span_record;

TEST_F(EventOrderTest, a_read_begins_at_entry_and_is_complete_at_exit) {
  EXPECT_EQ(run({io_record(1, 10, 20, IoOperation::kRead, kIoCollective, 64, 48, 7, 1, 4096)}),
            "10:enter1 10:io{ 20:}io 20:leave1");
  EXPECT_EQ(events_[1].bytes, 64u);
  EXPECT_EQ(events_[1].offset(), 4096u);
  EXPECT_EQ(events_[1].io_flags(), kIoCollective);
  EXPECT_EQ(events_[2].bytes, 48u);
  EXPECT_EQ(events_[2].request, events_[1].request);
  open_io_.settle(&outcome_);
  EXPECT_EQ(outcome_.open_io_count + outcome_.unmatched_io_count, 0u);
}

TEST_F(EventOrderTest, a_transfer_with_a_request_is_complete_where_it_is_waited_for) {
  const std::string text = run({
      io_record(1, 1, 2, IoOperation::kWrite, kIoNonblocking, 64, 0, 7, 1, 0, kNonblocking),
      io_completion_record(15, kInsideSpan, IoOperation::kWrite, 64, 7),
      span_record(2, 10, 20),
  });
  EXPECT_EQ(text, "1:enter1 1:io{ 2:issued 2:leave1 10:enter2 15:}io 20:leave2");
  EXPECT_EQ(outcome_.unmatched_count, 0u);
  open_io_.settle(&outcome_);
  EXPECT_EQ(outcome_.open_io_count + outcome_.unmatched_io_count, 0u);
}

TEST_F(EventOrderTest, a_split_transfer_is_complete_at_its_second_half) {
  const uint32_t begin = kIoCollective | kIoSplitBegin;
  const uint32_t end = kIoCollective | kIoSplitEnd;
  EXPECT_EQ(run({io_record(1, 1, 2, IoOperation::kRead, begin, 64, 0, 7),
                 io_record(2, 10, 20, IoOperation::kRead, end, 0, 64, 7)}),
            "1:enter1 1:io{ 2:issued 2:leave1 10:enter2 20:}io 20:leave2");
  EXPECT_EQ(run({io_record(1, 31, 32, IoOperation::kRead, begin, 64, 0, 8),
                 io_record(2, 40, 50, IoOperation::kRead, end, 0, 0, 8, 1, 0, kFailed)}),
            "31:enter1 31:io{ 32:issued 32:leave1 40:enter2 50:}io-cancelled 50:leave2");
  open_io_.settle(&outcome_);
  EXPECT_EQ(outcome_.open_io_count + outcome_.unmatched_io_count, 0u);
}

TEST_F(EventOrderTest, a_failed_or_cancelled_transfer_moves_nothing) {
  EXPECT_EQ(run({io_record(1, 1, 2, IoOperation::kRead, 0, 64, 0, 7, 1, 0, kFailed)}),
            "1:enter1 2:leave1");
  EXPECT_EQ(run({io_record(1, 11, 12, IoOperation::kRead, kIoNonblocking, 64, 0, 8),
                 io_completion_record(15, kCancelled, IoOperation::kRead, 99, 8)}),
            "11:enter1 11:io{ 12:issued 12:leave1 15:}io-cancelled");
  EXPECT_EQ(last_.bytes, 0u);
}

TEST_F(EventOrderTest, transfers_of_two_threads_meet_and_the_rest_is_counted) {
  const Record start = io_record(1, 1, 2, IoOperation::kRead, kIoNonblocking, 64, 0, 7);
  const Record end = io_completion_record(15, 0, IoOperation::kRead, 64, 7);
  EXPECT_EQ(run({end}), "15:}io");
  run({start});
  run({io_record(1, 21, 22, IoOperation::kRead, kIoNonblocking, 64, 0, 8),
       io_record(1, 31, 32, IoOperation::kRead, kIoNonblocking, 64, 0, 9),
       io_completion_record(40, 0, IoOperation::kRead, 64, 10)});
  open_io_.settle(&outcome_);
  EXPECT_EQ(outcome_.open_io_count, 2u);
  EXPECT_EQ(outcome_.unmatched_io_count, 1u);
  EXPECT_EQ(outcome_.unmatched_count, 0u) << "of messages";
}

TEST_F(EventOrderTest, files_are_opened_sought_closed_and_deleted) {
  EXPECT_EQ(run({io_record(1, 1, 2, IoOperation::kOpen, kIoCollective, kFileReads, 0, 1),
                 io_record(2, 3, 4, IoOperation::kSeek, kIoFromEnd, static_cast<uint64_t>(-8), 0, 2,
                           1, 4088),
                 io_record(3, 5, 6, IoOperation::kSync, kIoCollective, 0, 0, 3),
                 io_record(3, 7, 8, IoOperation::kSetSize, kIoCollective, 512, 0, 4),
                 io_record(4, 9, 10, IoOperation::kClose, kIoDeletes, 0, 0, 5)}),
            "1:enter1 2:opened 2:leave1 3:enter2 4:sought 4:leave2 5:enter3 5:io{ 6:}io 6:leave3 "
            "7:enter3 8:changed 8:leave3 9:enter4 10:deleted 10:closed 10:leave4");
  EXPECT_EQ(events_[1].bytes, kFileReads);
  EXPECT_EQ(static_cast<int64_t>(events_[4].bytes), -8);
  EXPECT_EQ(events_[4].offset(), 4088u);
}

TEST_F(EventOrderTest, what_changes_a_file_has_an_event_unless_it_failed) {
  for (const IoOperation operation :
       {IoOperation::kSetSize, IoOperation::kPreallocate, IoOperation::kSetView,
        IoOperation::kSetAtomicity, IoOperation::kSetInfo}) {
    EXPECT_EQ(run({io_record(1, 1, 2, operation, kIoCollective, 0, 0, 1)}),
              "1:enter1 2:changed 2:leave1");
    const Event& change = events_[events_.size() - 2];
    EXPECT_EQ(change.io_operation(), operation);
    EXPECT_EQ(change.io_flags(), kIoCollective);
    EXPECT_EQ(change.file(), 1u);
    EXPECT_EQ(run({io_record(1, 1, 2, operation, kIoCollective, 0, 0, 1, 1, 0, kFailed)}),
              "1:enter1 2:leave1");
  }
}

TEST_F(EventOrderTest, a_file_without_definition_has_no_events_and_its_transfers_are_counted) {
  EXPECT_EQ(run({io_record(1, 1, 2, IoOperation::kRead, 0, 64, 64, 7, 99),
                 io_completion_record(15, 0, IoOperation::kRead, 64, 7, 99),
                 io_record(1, 21, 22, IoOperation::kRead, 0, 64, 64, 8, 2),
                 io_record(1, 31, 32, IoOperation::kDelete, 0, 0, 0, 9, 2),
                 io_record(1, 41, 42, static_cast<IoOperation>(200), 0, 0, 0, 10)}),
            "1:enter1 2:leave1 21:enter1 22:leave1 31:enter1 32:deleted 32:leave1 41:enter1 "
            "42:leave1");
  EXPECT_EQ(outcome_.unmatched_io_count, 3u);
  run({io_record(1, 51, 52, IoOperation::kRead, 0, 64, 64, 11, 0),  // no file of MPI's
       io_record(1, 61, 62, IoOperation::kSeek, 0, 64, 64, 12, 99),
       io_record(1, 71, 72, IoOperation::kWrite, kIoNonblocking, 64, 0, 13, 99)});
  EXPECT_EQ(outcome_.unmatched_io_count, 3u);
}

}  // namespace
}  // namespace aon::writers
