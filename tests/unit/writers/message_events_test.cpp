// Messages and collectives: which events a record makes, and what is counted as unmatched.

#include <aon/mpi.h>

#include <map>

#include "tests/unit/writers/event_order_fixture.h"

namespace aon::writers {
namespace {

using test::completion_record;
using test::message_record;
using test::span_record;

class MessageEvents : public EventOrderTest {};

TEST_F(MessageEvents, a_receive_that_failed_may_have_taken_a_message) {
  EXPECT_EQ(run({message_record(1, 10, 20, kIncoming | kFailed, 1, 5, 0)}), "10:enter1 20:leave1");
  EXPECT_EQ(outcome_.unmatched_count, 1u);
  run({message_record(1, 10, 20, kOutgoing | kFailed, 1, 5, 0), span_record(2, 30, 40, kFailed)});
  EXPECT_EQ(outcome_.unmatched_count, 1u);
}

TEST_F(MessageEvents, a_send_of_which_nobody_knows_whether_it_was_sent) {
  run({message_record(1, 10, 11, kOutgoing | kNonblocking, 1, 5, 8, 70),
       completion_record(15, kOutgoing | kFailed | kInsideSpan, 1, 5, 8, 70),
       span_record(2, 12, 20)});
  EXPECT_EQ(text_, "10:enter1 10:isend 11:leave1 12:enter2 15:sent 20:leave2");
  EXPECT_EQ(outcome_.unmatched_count, 1u);
}

/// Of five processes the second and the fourth are of this job.
TEST_F(MessageEvents, members_of_another_world_are_left_out_and_counted) {
  global_communicators_[0].is_of_worlds = true;
  global_communicators_[0].rank_count = 5;
  global_communicators_[0].members = {0, 1};
  global_communicators_[0].ranks = {1, 3};
  run({message_record(1, 10, 20, kOutgoing, 3, 5, 8)});
  EXPECT_EQ(text_, "10:enter1 10:send 20:leave1");
  EXPECT_EQ(events_[1].peer, 1);
  EXPECT_EQ(outcome_.unmatched_count, 0u);
  for (const int32_t peer : {0, 2, 4, 1'000'000}) {
    EXPECT_EQ(run({message_record(1, 10, 20, kOutgoing, peer, 5, 8)}),
              "10:enter1 10:foreign 20:leave1");
    const Event& foreign = events_[events_.size() - 2];
    EXPECT_EQ(foreign.bytes, 8u);
    EXPECT_EQ(foreign.flags, kOutgoing);
  }
  EXPECT_EQ(outcome_.unmatched_count, 4u);
  events_.clear();
  EXPECT_EQ(
      run({message_record(1, 10, 11, kIncoming | kNonblocking, 0, 5, 8, 70),
           completion_record(15, kIncoming | kInsideSpan, 0, 5, 8, 70),
           message_record(1, 16, 17, kOutgoing | kNonblocking | kInsideSpan, 0, 5, 8, 71),
           completion_record(18, kOutgoing | kInsideSpan, 0, 5, 8, 71), span_record(2, 12, 20)}),
      "10:enter1 11:irecv 11:leave1 12:enter2 15:foreign 15:cancelled 16:enter1 16:foreign "
      "17:leave1 20:leave2");
  EXPECT_EQ(events_[4].bytes, 8u);
  EXPECT_EQ(events_[4].flags, kIncoming);
  EXPECT_EQ(outcome_.unmatched_count, 6u);
  events_.clear();
  run({test::collective_record(1, 30, 31, CollectiveOperation::kBroadcast, 3, 64),
       test::collective_record(1, 32, 33, CollectiveOperation::kBroadcast, 0, 64)});
  std::vector<int32_t> roots;
  for (const Event& event : events_) {
    if (event.kind == EventKind::kCollectiveEnd) roots.push_back(event.peer);
  }
  EXPECT_EQ(roots, (std::vector<int32_t>{1, -1}));
  EXPECT_EQ(outcome_.unmatched_count, 8u);
}

TEST_F(MessageEvents, send_stands_at_entry_and_receive_at_exit) {
  EXPECT_EQ(run({message_record(1, 10, 20, kOutgoing, 1, 5, 8),
                 message_record(2, 30, 40, kIncoming, 1, 5, 8)}),
            "10:enter1 10:send 20:leave1 30:enter2 40:receive 40:leave2");
}

TEST_F(MessageEvents, message_in_parts_says_so_at_both_ends) {
  const uint16_t parts = kPartitioned | kNonblocking;
  std::vector<Record> records = {message_record(1, 10, 20, kOutgoing | parts, 1, 5, 8, 70),
                                 message_record(2, 30, 40, kIncoming | parts, 1, 5, 0, 71),
                                 completion_record(45, kIncoming | kPartitioned, 1, 5, 8, 71),
                                 message_record(1, 50, 60, kOutgoing, 1, 5, 8)};
  records[0].words[2] = 3;
  records[2].words[2] = 4;
  run(records);
  std::map<EventKind, uint16_t> flags;
  std::map<EventKind, uint64_t> channels;
  for (const Event& event : events_) {
    if (event.kind == EventKind::kEnter || event.kind == EventKind::kLeave) continue;
    flags[event.kind] = event.flags;
    channels[event.kind] = event.bytes_received;
  }
  EXPECT_EQ(channels[EventKind::kSendRequest], 3u);
  EXPECT_EQ(channels[EventKind::kReceiveComplete], 4u);
  EXPECT_EQ(channels[EventKind::kSend], 0u);
  EXPECT_EQ(flags[EventKind::kSendRequest], kPartitioned);
  EXPECT_EQ(flags[EventKind::kReceiveComplete], kPartitioned);
  EXPECT_EQ(flags[EventKind::kSend], 0);
}

TEST_F(MessageEvents, collective_that_gets_something_from_all_says_so) {
  constexpr auto kOperation = CollectiveOperation::kAlltoallv;
  for (const uint16_t from_all : {kFromAll, uint16_t{0}}) {
    const auto nonblocking = static_cast<uint16_t>(kNonblocking | from_all);
    events_.clear();
    run({test::collective_record(1, 10, 20, kOperation, -1, 64, from_all),
         test::collective_record(1, 30, 40, kOperation, -1, 64, nonblocking, 7)});
    uint32_t count = 0;
    for (const Event& event : events_) {
      const bool is_told =
          event.kind == EventKind::kCollectiveEnd || event.kind == EventKind::kCollectiveRequest;
      if (!is_told) continue;
      EXPECT_EQ(event.flags, from_all);
      ++count;
    }
    EXPECT_EQ(count, 2u);
  }
}

TEST_F(MessageEvents, message_to_no_process_has_no_event) {
  EXPECT_EQ(run({message_record(1, 10, 20, kOutgoing, -2, 5, 8)}), "10:enter1 20:leave1");
}

TEST_F(MessageEvents, reused_request_handles_get_ids_of_their_own) {
  std::vector<Record> records;
  for (uint64_t at = 0; at < 3; ++at) {
    records.push_back(
        message_record(1, at * 100, at * 100 + 1, kOutgoing | kNonblocking, 1, 5, 8, 0xabc));
    records.push_back(completion_record(at * 100 + 50, kOutgoing, 1, 5, 8, 0xabc));
  }
  run(records);
  std::vector<uint64_t> ids;
  for (const Event& event : events_) {
    if (event.kind == EventKind::kSendComplete) ids.push_back(event.request);
  }
  EXPECT_EQ(ids, (std::vector<uint64_t>{0, 1, 2}));
}

TEST_F(MessageEvents, completion_of_a_send_says_whether_it_is_sure) {
  for (const uint16_t flags : {0, 0 + kFailed}) {
    run({message_record(1, 10, 20, kOutgoing | kNonblocking, 1, 5, 8, 70),
         completion_record(50, kOutgoing | flags, 1, 5, 8, 70)});
    EXPECT_EQ(events_.back().kind, EventKind::kSendComplete);
    EXPECT_EQ(events_.back().flags, flags);
  }
}

TEST_F(MessageEvents, completed_receive_without_its_start_is_a_plain_receive) {
  EXPECT_EQ(
      run({completion_record(15, kIncoming | kInsideSpan, 1, 5, 8, 70), span_record(2, 10, 20)}),
      "10:enter2 15:receive 20:leave2");
  requests_.settle(&outcome_);
  EXPECT_EQ(outcome_.unmatched_count, 1u);
}

/// A thread that waits for what another one has begun.
class OtherThread : public EventOrderTest {
 protected:
  static constexpr uint64_t kRequest = 9;
  static constexpr uint64_t kMessage = 10;

  std::string begin() {
    return run({test::collective_record(1, 10, 11, CollectiveOperation::kBroadcast, 2, 64,
                                        kNonblocking, kRequest),
                message_record(2, 12, 13, kOutgoing | kNonblocking, 1, 5, 8, kMessage)});
  }
  std::string complete() {
    Record end = completion_record(15, kInsideSpan, 2, 0, 64, kRequest);
    end.head.id = static_cast<uint32_t>(RecordKind::kCollective);
    end.words[0] = pack_pair(2, static_cast<int32_t>(CollectiveOperation::kBroadcast));
    end.words[2] = 32;
    return run({end, completion_record(16, kOutgoing | kInsideSpan, 1, 5, 8, kMessage),
                span_record(3, 14, 20)});
  }
  void expect_one_collective() {
    std::vector<uint64_t> ids;
    for (const Event& event : events_) {
      const bool is_end = event.kind == EventKind::kCollectiveComplete;
      if (!is_end && event.kind != EventKind::kCollectiveRequest) continue;
      ids.push_back(event.request);
      if (!is_end) continue;
      EXPECT_EQ(event.operation, CollectiveOperation::kBroadcast);
      EXPECT_EQ(event.peer, 2);
      EXPECT_EQ(event.bytes, 64u);
    }
    ASSERT_EQ(ids.size(), 2u);
    EXPECT_EQ(ids[0], ids[1]);
    requests_.settle(&outcome_);
    EXPECT_EQ(outcome_.unmatched_count, 0u);
  }
};

TEST_F(OtherThread, ends_what_one_before_it_has_begun) {
  EXPECT_EQ(begin(), "10:enter1 11:icollective 11:leave1 12:enter2 12:isend 13:leave2");
  EXPECT_EQ(complete(), "14:enter3 15:}icollective 20:leave3");
  expect_one_collective();
}

TEST_F(OtherThread, ends_what_one_behind_it_has_begun) {
  EXPECT_EQ(complete(), "14:enter3 15:}icollective 20:leave3");
  EXPECT_EQ(begin(), "10:enter1 11:icollective 11:leave1 12:enter2 12:isend 13:leave2");
  expect_one_collective();
}

TEST_F(OtherThread, that_ends_what_nobody_has_begun_is_counted) {
  complete();
  EXPECT_EQ(outcome_.unmatched_count, 0u) << "its start may come";
  requests_.settle(&outcome_);
  EXPECT_EQ(outcome_.unmatched_count, 2u);
}

/// A receive that was cancelled, and a collective that failed.
std::vector<Record> ends_of_nothing(uint64_t receive, uint64_t collective) {
  Record failed = completion_record(16, kFailed, -1, 0, 0, collective);
  failed.head.id = static_cast<uint32_t>(RecordKind::kCollective);
  failed.words[0] = pack_pair(-1, static_cast<int32_t>(CollectiveOperation::kBarrier));
  return {completion_record(15, kIncoming | kCancelled, 1, 5, 0, receive), failed};
}

TEST_F(OtherThread, that_ends_without_a_message_what_nobody_has_begun_counts_once) {
  run(ends_of_nothing(kMessage, kRequest));
  requests_.settle(&outcome_);
  EXPECT_EQ(outcome_.unmatched_count, 2u);
}

TEST_F(OtherThread, that_ends_without_a_message_what_one_behind_it_has_begun_counts_once) {
  run(ends_of_nothing(kMessage, kRequest));
  begin();
  requests_.settle(&outcome_);
  EXPECT_EQ(outcome_.unmatched_count, 2u);
}

TEST_F(OtherThread, that_ends_with_another_world_what_nobody_has_begun_counts_once) {
  global_communicators_[0].is_of_worlds = true;
  global_communicators_[0].rank_count = 5;
  global_communicators_[0].members = {0, 1};
  global_communicators_[0].ranks = {1, 3};
  Record collective = completion_record(16, 0, 0, 0, 8, kRequest);
  collective.head.id = static_cast<uint32_t>(RecordKind::kCollective);
  collective.words[0] = pack_pair(-1, static_cast<int32_t>(CollectiveOperation::kAllreduce));
  EXPECT_EQ(run({completion_record(15, kIncoming, 0, 5, 8, kMessage), collective}),
            "15:foreign 16:}icollective");
  EXPECT_EQ(outcome_.unmatched_count, 2u);
  requests_.settle(&outcome_);
  EXPECT_EQ(outcome_.unmatched_count, 2u);
}

/// The other members have theirs in the archive.
TEST_F(MessageEvents, collective_of_a_communicator_without_a_definition_is_unmatched) {
  constexpr uint32_t kLost = 77;
  constexpr auto kOperation = CollectiveOperation::kAllreduce;
  const auto collective = [](uint16_t flags, uint32_t communicator) {
    return test::collective_record(1, 10, 20, kOperation, -1, 64, flags, 9, communicator);
  };
  EXPECT_EQ(run({collective(0, kLost)}), "10:enter1 20:leave1");
  EXPECT_EQ(outcome_.unmatched_count, 1u);
  Record end = completion_record(30, 0, -1, 0, 0, 9);
  end.head.id = static_cast<uint32_t>(RecordKind::kCollective);
  end.head.a32 = kLost;
  EXPECT_EQ(run({collective(kNonblocking, kLost), end}), "10:enter1 20:leave1");
  requests_.settle(&outcome_);
  EXPECT_EQ(outcome_.unmatched_count, 2u);
  communicators_.clear();
  run({collective(0, 0)});
  EXPECT_EQ(outcome_.unmatched_count, 2u) << "of no communicator: MPI_Comm_create_group, say";
}

TEST_F(MessageEvents, non_blocking_collective_keeps_its_operation) {
  const std::string text = run({
      test::collective_record(1, 10, 11, CollectiveOperation::kAllreduce, -1, 64, kNonblocking, 9),
      completion_record(15, kInsideSpan, -1, 0, 0, 9),
      span_record(2, 12, 20),
  });
  EXPECT_EQ(text, "10:enter1 11:icollective 11:leave1 12:enter2 15:}icollective 20:leave2");
  for (const Event& event : events_) {
    if (event.kind != EventKind::kCollectiveComplete) continue;
    EXPECT_EQ(event.operation, CollectiveOperation::kAllreduce);
    EXPECT_EQ(event.bytes, 64u);
  }
}

/// The instance of the one collective that a record starts.
uint64_t instance_of(const std::vector<Event>& events) {
  for (const Event& event : events) {
    if (event.kind == EventKind::kCollectiveRequest) return event.bytes;
  }
  return UINT64_MAX;
}

TEST_F(MessageEvents, persistent_collective_says_which_it_is) {
  Record start =
      test::collective_record(1, 10, 11, CollectiveOperation::kAllreduce, -1, 64, kNonblocking, 9);
  start.words[3] = pack_instance(3, 2);
  run({start});
  EXPECT_EQ(instance_of(events_), pack_instance(3, 2));
}

TEST_F(MessageEvents, a_long_duration_is_no_instance) {
  Record start =
      test::collective_record(1, 10, 11, CollectiveOperation::kAllreduce, -1, 64, kNonblocking, 9);
  start.head.flags |= kWideDuration;
  start.words[3] = 5'000'000'000;  // two slots: as recorded before there were instances
  run({start});
  EXPECT_EQ(instance_of(events_), 0u);
}

}  // namespace
}  // namespace aon::writers
