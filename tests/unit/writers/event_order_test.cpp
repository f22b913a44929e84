// Order, nesting and completion of events, record by record.

#include "tests/unit/writers/event_order_fixture.h"

namespace aon::writers {
namespace {

using test::begin_record;
using test::completion_record;
using test::end_record;
using test::io_record;
using test::message_record;
using test::rma_record;
using test::span_record;

TEST_F(EventOrderTest, span_becomes_enter_and_leave) {
  EXPECT_EQ(run({span_record(1, 10, 20)}), "10:enter1 20:leave1");
  EXPECT_EQ(tally_.decoded, 1u);
}

TEST_F(EventOrderTest, wide_duration_is_kept) {
  EXPECT_EQ(run({span_record(1, 10, 10'000'000'010)}), "10:enter1 10000000010:leave1");
}

TEST_F(EventOrderTest, records_inside_a_span_stand_between_its_ends) {
  const std::string text = run({
      message_record(1, 1, 2, kIncoming | kNonblocking, 1, 5, 8, 70),
      completion_record(15, kIncoming | kInsideSpan, 1, 5, 8, 70),
      span_record(2, 10, 20),
  });
  EXPECT_EQ(text, "1:enter1 2:irecv 2:leave1 10:enter2 15:received 20:leave2");
}

/// One that was too long has been taken, with another error perhaps none.
TEST_F(EventOrderTest, a_receive_that_failed_when_it_was_waited_for_got_nobody_knows_what) {
  const Record end = completion_record(15, kIncoming | kInsideSpan | kFailed, 1, 5, 0, 70);
  EXPECT_EQ(run({message_record(1, 1, 2, kIncoming | kNonblocking, 1, 5, 8, 70), end,
                 span_record(2, 10, 20)}),
            "1:enter1 2:irecv 2:leave1 10:enter2 15:cancelled 20:leave2");
  EXPECT_EQ(events_[4].peer, kAnyPeer);
  EXPECT_EQ(events_[4].flags & (kFailed | kCancelled), kFailed);
  EXPECT_EQ(outcome_.unmatched_count, 1u);
  EXPECT_EQ(run({end, span_record(2, 10, 20)}), "10:enter2 20:leave2") << "of another thread";
  EXPECT_EQ(outcome_.unmatched_count, 2u);
}

/// MPICH does not tell some programs that a persistent one is complete.
TEST_F(EventOrderTest, a_receive_from_nobody_has_no_events_and_needs_no_end) {
  const Record start = message_record(1, 1, 2, kIncoming | kNonblocking, kNoPeer, 5, 8, 70);
  EXPECT_EQ(run({start, completion_record(15, kIncoming | kInsideSpan, kNoPeer, 5, 0, 70),
                 span_record(2, 10, 20)}),
            "1:enter1 2:leave1 10:enter2 20:leave2");
  EXPECT_EQ(run({start}), "1:enter1 2:leave1");
  EXPECT_EQ(outcome_.unmatched_count, 0u);
}

/// The others have met somebody, or wait for ever; who fails in making a communicator has none.
TEST_F(EventOrderTest, a_collective_that_failed_may_have_been_one) {
  const auto collective = [](CollectiveOperation operation, uint16_t flags) {
    return test::collective_record(1, 10, 20, operation, -1, 8, flags, 70, 1);
  };
  communicators_[1] = 0;
  EXPECT_EQ(run({collective(CollectiveOperation::kSetInfo, kFailed)}), "10:enter1 20:leave1");
  events_.clear();
  EXPECT_EQ(run({collective(CollectiveOperation::kCreateHandle, kFailed)}), "10:enter1 20:leave1");
  EXPECT_EQ(outcome_.unmatched_count, 0u);
  EXPECT_EQ(events_[0].communicator, 1u);
  EXPECT_EQ(events_[0].operation, CollectiveOperation::kCreateHandle);
  events_.clear();
  EXPECT_EQ(run({collective(CollectiveOperation::kBroadcast, kFailed)}), "10:enter1 20:leave1");
  EXPECT_EQ(outcome_.unmatched_count, 1u);
  EXPECT_EQ(events_[0].communicator, 1u);
  EXPECT_EQ(events_[0].operation, CollectiveOperation::kBroadcast);
  const Record start = collective(CollectiveOperation::kBroadcast, kNonblocking);
  Record end = completion_record(35, kInsideSpan | kFailed, -1, 1, 0, 70);
  end.head.id = static_cast<uint32_t>(RecordKind::kCollective);
  EXPECT_EQ(run({start, end, span_record(2, 30, 40)}),
            "10:enter1 20:icollective 20:leave1 30:enter2 35:cancelled 40:leave2");
  EXPECT_EQ(outcome_.unmatched_count, 2u);
  EXPECT_EQ(run({end, span_record(2, 30, 40)}), "30:enter2 40:leave2") << "of another thread";
  EXPECT_EQ(outcome_.unmatched_count, 3u);
}

TEST_F(EventOrderTest, a_fence_that_failed_may_have_been_one) {
  run({rma_record(1, 10, 20, RmaOperation::kFence, -1, 0, 0, 0, kFailed)});
  EXPECT_EQ(outcome_.unmatched_count, 1u);
  EXPECT_EQ(events_[0].communicator, 5u);
  EXPECT_EQ(run({rma_record(1, 25, 26, RmaOperation::kSetInfo, -1, 0, 0, 0, 0)}),
            "25:enter1 25:rma{ 26:}rma 26:leave1");
  run({rma_record(1, 30, 40, RmaOperation::kFence, -1, 0, 0, 0, kFailed, 77)});
  EXPECT_EQ(outcome_.unmatched_count, 1u) << "of no window";
  EXPECT_EQ(events_.end()[-2].flags & kFailed, 0);
}

TEST_F(EventOrderTest, a_fence_that_failed_on_a_window_of_one_concerns_nobody_else) {
  global_communicators_.push_back({"self", CommunicatorKind::kSelf, {}, {}});
  global_windows_[0].communicator = 1;
  run({rma_record(1, 10, 20, RmaOperation::kFence, -1, 0, 0, 0, kFailed)});
  EXPECT_EQ(outcome_.unmatched_count, 0u);
  EXPECT_EQ(events_[0].flags & kFailed, 0);
}

TEST_F(EventOrderTest, a_collective_on_a_file_that_failed_may_have_been_one) {
  const auto run_failed = [&](IoOperation operation, uint32_t io_flags, uint32_t file = 1) {
    outcome_ = {};
    events_.clear();
    run({io_record(1, 10, 20, operation, io_flags, 8, 0, 0, file, kUnknownOffset, kFailed)});
    return outcome_.unmatched_count;
  };
  EXPECT_EQ(run_failed(IoOperation::kWrite, kIoCollective), 1u);
  EXPECT_EQ(events_[0].communicator, 1u);
  EXPECT_EQ(run_failed(IoOperation::kRead, kIoCollective | kIoSplitBegin), 1u);
  EXPECT_EQ(run_failed(IoOperation::kSeek, kIoShared), 1u);
  EXPECT_EQ(run_failed(IoOperation::kSetView, kIoCollective), 1u);
  EXPECT_EQ(run_failed(IoOperation::kWrite, 0), 0u) << "of one process";
  EXPECT_EQ(run_failed(IoOperation::kWrite, kIoCollective, 77), 0u) << "of no file";
  EXPECT_EQ(events_[0].flags & kFailed, 0);
  EXPECT_EQ(run_failed(IoOperation::kOpen, kIoCollective), 0u) << "who has none has no event";
  global_communicators_.push_back({"self", CommunicatorKind::kSelf, {}, {}});
  global_files_[0].communicator = 1;
  EXPECT_EQ(run_failed(IoOperation::kWrite, kIoCollective), 0u) << "that nobody else has open";
  EXPECT_EQ(events_[0].flags & kFailed, 0);
}

/// Of no communicator, or of one whose only member has called it.
TEST_F(EventOrderTest, a_collective_that_failed_without_others_is_no_concern_of_theirs) {
  communicators_ = {{0, 0}, {1, 1}, {2, 2}};
  global_communicators_.push_back({"self", CommunicatorKind::kSelf, {}, {}});
  global_communicators_.push_back({"one", CommunicatorKind::kIntra, {}, {0}, 1});
  constexpr uint32_t kUnknown = 3;
  for (const uint32_t communicator : {0u, 1u, 2u, kUnknown}) {
    Record record =
        test::collective_record(1, 10, 20, CollectiveOperation::kBroadcast, 0, 8, kFailed, 70);
    record.head.a32 = communicator;
    outcome_ = {};
    events_.clear();
    run({record});
    const bool is_of_others = communicator == 0;
    EXPECT_EQ(outcome_.unmatched_count, is_of_others ? 1u : 0u) << communicator;
    EXPECT_EQ((events_[0].flags & kFailed) != 0, is_of_others) << communicator;
    EXPECT_NE(events_[1].flags & kFailed, 0) << communicator;
  }
}

TEST_F(EventOrderTest, spans_nest_at_any_depth) {
  const std::string text = run({
      span_record(3, 12, 13, kInsideSpan),
      span_record(2, 11, 14, kInsideSpan),
      span_record(4, 15, 16, kInsideSpan),
      span_record(1, 10, 20),
  });
  EXPECT_EQ(text,
            "10:enter1 11:enter2 12:enter3 13:leave3 14:leave2 15:enter4 16:leave4 20:leave1");
}

TEST_F(EventOrderTest, record_inside_a_span_that_was_lost_stands_alone) {
  EXPECT_EQ(run({span_record(2, 11, 14, kInsideSpan), span_record(1, 20, 30)}),
            "11:enter2 14:leave2 20:enter1 30:leave1");
}

TEST_F(EventOrderTest, loss_ends_where_the_next_record_starts) {
  EXPECT_EQ(run({test::lost_record(LossReason::kPoolFull, 10, 30, 5), span_record(1, 20, 40)}),
            "10:lost{ 20:}lost 20:enter1 40:leave1");
  EXPECT_EQ(tally_.lost[0].count, 5u);
  EXPECT_TRUE(last_loss_.request == 10 && last_loss_.bytes_received == 30) << "as it was told";
}

TEST_F(EventOrderTest, loss_inside_a_span_is_nested) {
  EXPECT_EQ(run({test::lost_record(LossReason::kPoolFull, 12, 15, 5), span_record(1, 10, 40)}),
            "10:enter1 12:lost{ 15:}lost 40:leave1");
}

TEST_F(EventOrderTest, calls_open_at_the_end_nest_in_either_order) {
  const Record outer = span_record(1, 10, 100, kOpenAtEnd);
  const Record inner = span_record(2, 20, 100, kOpenAtEnd);
  const std::string expected =
      "10:enter1 20:enter2 100:open-at-end 100:leave2 100:open-at-end 100:leave1";
  EXPECT_EQ(run({outer, inner}), expected);
  EXPECT_EQ(run({inner, outer}), expected);
  EXPECT_EQ(outcome_.open_call_count, 4u);
}

TEST_F(EventOrderTest, open_receive_moves_no_message) {
  EXPECT_EQ(run({message_record(1, 10, 100, kIncoming | kOpenAtEnd, 1, 5, 8)}),
            "10:enter1 100:open-at-end 100:leave1");
}

/// Its record has the communicator where that of MPI_Pcontrol says that there is a level.
TEST_F(EventOrderTest, open_call_on_the_second_communicator_is_no_pause) {
  Record open = span_record(1, 10, 100, kOpenAtEnd);
  open.head.a32 = static_cast<uint32_t>(ValueType::kSigned);
  EXPECT_EQ(run({open}), "10:enter1 100:open-at-end 100:leave1");
  EXPECT_EQ(events_[0].value_type(), ValueType::kNone);
  EXPECT_EQ(outcome_.pause_count, 0u);
  EXPECT_EQ(outcome_.open_call_count, 1u);
}

TEST_F(EventOrderTest, regions_left_open_are_closed_and_marked) {
  EXPECT_EQ(run({begin_record(1, 10), begin_record(2, 20)}, 50),
            "10:enter1 20:enter2 50:open-at-end 50:leave2 50:open-at-end 50:leave1");
  EXPECT_EQ(outcome_.open_region_count, 2u);
  EXPECT_EQ(outcome_.open_call_count, 0u);
}

TEST_F(EventOrderTest, end_closes_what_was_left_open_inside) {
  EXPECT_EQ(run({begin_record(1, 10), begin_record(2, 20), end_record(1, 30)}),
            "10:enter1 20:enter2 30:leave2 30:leave1");
}

/// As of a program that leaves a region by a path that does not end it, in a loop.
TEST_F(EventOrderTest, regions_that_are_never_ended_are_bounded) {
  constexpr uint64_t kLeft = 70'000;
  std::vector<Record> records{begin_record(1, 10)};
  for (uint64_t i = 0; i < kLeft; ++i) records.push_back(begin_record(2, 20 + i));
  for (const Record& record : {begin_record(3, 80'000), begin_record(2, 80'001),
                               end_record(2, 80'002), end_record(3, 80'003)})
    records.push_back(record);
  records.push_back(end_record(1, 90'000));
  records.push_back(span_record(4, 90'001, 90'002));
  run(records);
  ASSERT_EQ(events_.size(), 2 * kMaxOpen + 2);
  EXPECT_EQ(events_[2 * kMaxOpen - 1].time_ns, 90'000u);
  EXPECT_EQ(events_[2 * kMaxOpen - 1].region, 1u) << "it ends where it ended";
  EXPECT_EQ(outcome_.open_region_count, 0u);
  EXPECT_EQ(outcome_.unbalanced_region_count, kLeft + 2);
}

/// Of a recursion that is deeper than what is shown, a hole takes some of the innermost.
TEST_F(EventOrderTest, regions_that_are_not_shown_end_in_a_hole_one_by_one) {
  constexpr uint64_t kDeeper = 10;
  constexpr uint64_t kEndedInHole = 3;
  std::vector<Record> records;
  uint64_t now = 10;
  for (uint64_t i = 0; i < kMaxOpen + kDeeper; ++i) records.push_back(begin_record(2, now++));
  records.push_back(test::lost_record(LossReason::kPoolFull, now, now, 5, kEndedInHole));
  for (uint64_t i = kEndedInHole; i < kMaxOpen + kDeeper; ++i)
    records.push_back(end_record(2, ++now));
  run(records);
  EXPECT_EQ(events_.size(), 2 * kMaxOpen + 2) << "with the loss";
  EXPECT_EQ(events_.back().time_ns, now);
  EXPECT_EQ(outcome_.unbalanced_region_count, kDeeper);
  EXPECT_EQ(outcome_.cut_region_count, 0u);
}

TEST_F(EventOrderTest, end_without_begin_is_dropped_and_counted) {
  EXPECT_EQ(run({end_record(1, 10)}), "");
  EXPECT_EQ(outcome_.unbalanced_region_count, 1u);
  EXPECT_EQ(outcome_.unmatched_count, 0u);  // no message is missing for that
}

TEST_F(EventOrderTest, begin_without_end_is_closed_with_the_region_around_it_and_counted) {
  EXPECT_EQ(run({begin_record(1, 10), begin_record(2, 20), begin_record(3, 30), end_record(1, 40)}),
            "10:enter1 20:enter2 30:enter3 40:leave3 40:leave2 40:leave1");
  EXPECT_EQ(outcome_.unbalanced_region_count, 2u);
  EXPECT_EQ(outcome_.open_region_count, 0u);
}

TEST_F(EventOrderTest, step_carries_its_number) {
  Record step = begin_record(1, 10);
  step.head.a32 = static_cast<uint32_t>(ValueType::kStep);
  step.head.a64 = 41;
  run({step, end_record(1, 20)});
  EXPECT_EQ(events_[0].value_type(), ValueType::kStep);
  EXPECT_EQ(events_[0].bytes, 41u);
  EXPECT_EQ(events_[1].value_type(), ValueType::kNone);
}

TEST_F(EventOrderTest, step_that_was_open_before_the_window_has_no_number) {
  const std::vector<Record> records{end_record(1, 70)};
  run_batches({{records, true, std::vector<spool::OpenRegion>{{1, 10}}}});
  EXPECT_EQ(events_[0].kind, EventKind::kEnter);
  EXPECT_EQ(events_[0].value_type(), ValueType::kNone);
}

TEST_F(EventOrderTest, end_of_a_range_knows_its_duration) {
  const Record start = test::mark_record(1, 10, ValueType::kRangeStart, 77, {2, 5});
  const Record end = test::mark_record(1, 40, ValueType::kRangeEnd, 77, {10});
  EXPECT_EQ(run({start, end}), "10:mark 40:mark");
  EXPECT_EQ(events_[0].request, 77u);
  EXPECT_EQ(events_[0].range_value_type(), ValueType::kSigned);
  EXPECT_EQ(events_[0].bytes, 5u);
  EXPECT_EQ(events_[1].request, 77u);
  EXPECT_EQ(events_[1].bytes, 30u);
}

TEST_F(EventOrderTest, value_of_a_newer_format_is_none) {
  run({test::mark_record(1, 10, static_cast<ValueType>(99), 77, {})});
  EXPECT_EQ(last_.value_type(), ValueType::kNone);
}

TEST_F(EventOrderTest, thread_end_closes_its_regions) {
  EXPECT_EQ(run({begin_record(1, 10), test::thread_record(20, 7, false),
                 test::thread_record(30, 8, true), begin_record(2, 40), end_record(2, 50)}),
            "10:enter1 20:open-at-end 20:leave1 40:enter2 50:leave2");
}

TEST_F(EventOrderTest, times_never_decrease) {
  EXPECT_EQ(run({span_record(1, 10, 30), span_record(2, 20, 40)}),
            "10:enter1 30:leave1 30:enter2 40:leave2");
  EXPECT_EQ(outcome_.clamped_count, 1u);
}

TEST_F(EventOrderTest, regions_open_before_the_first_record_are_entered) {
  const std::vector<Record> records{test::lost_record(LossReason::kEvictedByCap, 20, 50, 9),
                                    end_record(2, 60), end_record(1, 70)};
  const std::vector<spool::OpenRegion> open{{1, 10}, {2, 30}};
  EXPECT_EQ(run_batches({{records, true, open}}),
            "10:enter1 20:lost{ 50:}lost 50:enter2 60:leave2 70:leave1");
}

TEST_F(EventOrderTest, gap_replaces_the_open_regions) {
  const std::vector<Record> first{begin_record(1, 10), begin_record(2, 20)};
  const std::vector<Record> second{end_record(3, 60), end_record(1, 70)};
  const std::vector<spool::OpenRegion> open{{1, 10}, {3, 40}};
  EXPECT_EQ(run_batches({{first, true, {}}, {second, true, open}}),
            "10:enter1 20:enter2 20:cut 20:leave2 40:enter3 60:leave3 70:leave1");
}

TEST_F(EventOrderTest, region_without_definition_is_the_unknown_one) {
  EXPECT_EQ(run({span_record(77, 10, 20)}), "10:enter? 20:leave?");
}

TEST_F(EventOrderTest, held_back_records_are_bounded) {
  constexpr size_t kCount = kMaxPending + 1000;
  std::vector<Record> records;
  for (uint64_t i = 0; i < kCount; ++i) {
    records.push_back(span_record(1, 10 + 2 * i, 11 + 2 * i, kInsideSpan));
  }
  records.push_back(span_record(2, 9, 12 + 2 * kCount));
  run(records);
  EXPECT_EQ(outcome_.event_count, 2 * kCount + 2);
  EXPECT_EQ(events_[0].region, 1u) << "sent out before the span that encloses all came";
  EXPECT_EQ(events_[2 * kMaxPending].region, 2u);
  EXPECT_EQ(outcome_.clamped_count, 1u);
}

TEST_F(EventOrderTest, call_that_completes_all_requests_of_a_process_keeps_its_time) {
  constexpr uint64_t kEnds = 2 * 131072;
  std::vector<Record> records(kEnds, completion_record(100, kIncoming | kInsideSpan, 1, 5, 8, 0));
  for (uint64_t i = 0; i < kEnds; ++i) records[i].words[1] = i;
  records.push_back(span_record(1, 20, 100, kInsideSpan));
  records.push_back(span_record(2, 10, 110));
  run(records);
  ASSERT_EQ(events_.size(), kEnds + 4);
  EXPECT_EQ(events_[0].time_ns, 10u);
  EXPECT_EQ(events_[1].time_ns, 20u);
  EXPECT_EQ(outcome_.clamped_count, 0u);
}

TEST_F(EventOrderTest, deep_nesting_is_bounded) {
  std::vector<Record> records;
  for (uint64_t i = 0; i < 1000; ++i) {
    records.push_back(span_record(1, 5000 - i, 5000 + i, kInsideSpan));
  }
  run(records);
  EXPECT_EQ(outcome_.event_count, 2000u);
  size_t depth = 0;
  size_t deepest = 0;
  for (const Event& event : events_) {
    if (event.kind == EventKind::kLeave) --depth;
    if (event.kind == EventKind::kEnter) deepest = std::max(deepest, ++depth);
  }
  EXPECT_EQ(deepest, kMaxNesting);
}

TEST_F(EventOrderTest, transfers_share_an_id_up_to_the_call_that_completes_them) {
  const std::string text = run({
      rma_record(1, 10, 11, RmaOperation::kPut, 1, 8),
      rma_record(1, 20, 21, RmaOperation::kGet, 1, 0, 16),
      rma_record(1, 30, 31, RmaOperation::kPut, 2, 8),
      rma_record(2, 40, 41, RmaOperation::kFlush, 1),
      rma_record(1, 50, 51, RmaOperation::kPut, 1, 8),
      rma_record(2, 60, 61, RmaOperation::kFlushAll, kAnyPeer),
  });
  EXPECT_EQ(text,
            "10:enter1 10:transfer 11:leave1 20:enter1 20:transfer 21:leave1 "
            "30:enter1 30:transfer 31:leave1 40:enter2 41:remote 41:leave2 "
            "50:enter1 50:transfer 51:leave1 60:enter2 61:remote 61:remote 61:leave2");
  std::vector<uint64_t> ids;
  for (const Event& event : events_) {
    if (event.kind == EventKind::kRmaTransfer || event.kind == EventKind::kRmaRemoteComplete) {
      ids.push_back(event.request);
    }
  }
  EXPECT_EQ(ids, (std::vector<uint64_t>{0, 0, 1, 0, 2, 2, 1}));
  EXPECT_EQ(outcome_.unmatched_count, 0u);
}

TEST_F(EventOrderTest, transfer_with_a_request_has_an_id_of_its_own) {
  const std::string text = run({
      rma_record(1, 10, 11, RmaOperation::kPut, 1, 8, 0, 70, kNonblocking),
      rma_record(1, 20, 21, RmaOperation::kGet, 1, 0, 8, 71, kNonblocking),
      completion_record(32, kInsideSpan, 1, static_cast<int32_t>(RmaOperation::kPut), 8, 70, 5),
      completion_record(33, kInsideSpan, 1, static_cast<int32_t>(RmaOperation::kGet), 0, 71, 5),
      span_record(3, 30, 40),
      rma_record(2, 50, 51, RmaOperation::kUnlock, 1),
  });
  EXPECT_EQ(
      text,
      "10:enter1 10:transfer 11:leave1 20:enter1 20:transfer 21:leave1 "
      "30:enter3 32:requested 33:requested 40:leave3 50:enter2 51:remote 51:unlock 51:leave2");
  EXPECT_EQ(outcome_.unmatched_count, 0u);
}

TEST_F(EventOrderTest, flush_local_completes_at_the_origin_once) {
  EXPECT_EQ(run({rma_record(1, 10, 11, RmaOperation::kAccumulate, 1, 8),
                 rma_record(2, 20, 21, RmaOperation::kFlushLocal, 1),
                 rma_record(2, 30, 31, RmaOperation::kFlushLocalAll, kAnyPeer),
                 rma_record(2, 40, 41, RmaOperation::kUnlockAll, kAnyPeer)}),
            "10:enter1 10:transfer 11:leave1 20:enter2 21:local 21:leave2 30:enter2 31:leave2 "
            "40:enter2 41:remote 41:unlock 41:leave2");
}

TEST_F(EventOrderTest, life_of_a_window_and_its_epochs) {
  EXPECT_EQ(run({rma_record(1, 10, 11, RmaOperation::kCreateAllocated, kAnyPeer),
                 rma_record(1, 20, 21, RmaOperation::kFence, kAnyPeer),
                 rma_record(1, 30, 31, RmaOperation::kLockShared, 1),
                 rma_record(1, 40, 41, RmaOperation::kSync, kAnyPeer),
                 rma_record(1, 50, 51, RmaOperation::kFreeAllocated, kAnyPeer)}),
            "10:enter1 10:rma{ 11:window 11:}rma 11:leave1 20:enter1 20:rma{ 21:}rma 21:leave1 "
            "30:enter1 31:lock 31:leave1 40:enter1 41:sync 41:leave1 "
            "50:enter1 50:rma{ 51:}window 51:}rma 51:leave1");
}

TEST_F(EventOrderTest, group_of_an_epoch_that_is_not_defined_is_all_members) {
  EXPECT_EQ(run({rma_record(1, 10, 11, RmaOperation::kStart, kAnyPeer, 0, 0, 2),
                 rma_record(1, 20, 21, RmaOperation::kPost, kAnyPeer, 0, 0, 9)}),
            "10:enter1 11:group 11:leave1 20:enter1 21:group 21:leave1");
  EXPECT_EQ(events_[1].request, 2u);
  EXPECT_EQ(events_[4].request, 0u);
}

TEST_F(EventOrderTest, calls_of_an_unknown_window_are_regions_and_counted) {
  const std::vector<Record> records = {
      rma_record(1, 10, 11, RmaOperation::kPut, 1, 8, 0, 0, 0, 6),
      rma_record(1, 20, 21, RmaOperation::kFence, kAnyPeer, 0, 0, 0, 0, 6),
      rma_record(1, 30, 31, RmaOperation::kPut, 1, 8, 0, 70, kNonblocking, 6),
      completion_record(42, kInsideSpan, 1, 0, 8, 70, 6),
      span_record(3, 40, 50),
  };
  EXPECT_EQ(run(records),
            "10:enter1 11:leave1 20:enter1 21:leave1 30:enter1 31:leave1 40:enter3 50:leave3");
  EXPECT_EQ(outcome_.unmatched_count, 3u);
}

TEST_F(EventOrderTest, rma_records_that_make_no_sense_do_no_harm) {
  run({rma_record(1, 10, 11, static_cast<RmaOperation>(200), 1),
       rma_record(1, 20, 21, RmaOperation::kFence, kAnyPeer, 0, 0, 70, kNonblocking),
       rma_record(1, 30, 31, RmaOperation::kFlush, INT32_MIN),
       rma_record(1, 40, 41, RmaOperation::kPut, INT32_MAX, 8),
       rma_record(1, 50, 51, RmaOperation::kFree, kAnyPeer)});
  EXPECT_EQ(text_,
            "10:enter1 11:leave1 20:enter1 21:leave1 30:enter1 31:leave1 40:enter1 40:transfer "
            "41:leave1 50:enter1 50:rma{ 51:remote 51:}window 51:}rma 51:leave1");
}

TEST_F(EventOrderTest, nothing_moves_to_no_process) {
  EXPECT_EQ(run({rma_record(1, 10, 11, RmaOperation::kPut, kNoPeer),
                 rma_record(1, 20, 21, RmaOperation::kGet, kNoPeer, 0, 0, 70, kNonblocking),
                 completion_record(32, kInsideSpan, kNoPeer, 1, 0, 70, 5), span_record(3, 30, 40)}),
            "10:enter1 11:leave1 20:enter1 21:leave1 30:enter3 40:leave3");
  EXPECT_EQ(outcome_.unmatched_count, 0u);
}

}  // namespace
}  // namespace aon::writers
