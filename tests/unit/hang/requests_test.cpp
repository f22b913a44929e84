// Collectives that are started and waited for by MPI_Wait, of which somebody starts one too few.

#include <aon/mpi.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/hang/job.h"

namespace aon::writers {
namespace {

using test::kFileOpen;
using test::kRecv;
using test::kSecond;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr uint32_t kIbarrier = test::kBarrier;
constexpr uint32_t kStart = test::kControl;
constexpr uint32_t kWait = kFileOpen;

/// Three ranks that call MPI_Ibarrier or start a persistent collective, and wait.
class RequestHangs : public testing::Test {
 protected:
  RequestHangs() : job_(3) {
    job_.call(kIbarrier, "MPI_Ibarrier", RegionRole::kBarrier);
    job_.call(kStart, "MPI_Start", RegionRole::kFunction);
    job_.call(kWait, "MPI_Wait", RegionRole::kFunction);
  }
  void start(uint32_t rank, uint64_t request, uint32_t region = kIbarrier, uint64_t instance = 0,
             uint32_t communicator = 7) {
    Event event = test::event(EventKind::kCollectiveRequest, 10 * kSecond, region);
    event.communicator = communicator;
    event.operation = CollectiveOperation::kBarrier;
    event.request = request;
    event.bytes = instance;
    job_.add(rank, event);
  }
  void complete(uint32_t rank, uint64_t request) {
    Event event = test::event(EventKind::kCollectiveComplete, 11 * kSecond, kWait);
    event.communicator = 7;
    event.operation = CollectiveOperation::kBarrier;
    event.request = request;
    job_.add(rank, event);
  }
  void send(uint32_t rank, uint64_t request) {
    Event event = test::event(EventKind::kSendRequest, 12 * kSecond, kRecv);
    event.request = request;
    job_.add(rank, event);
  }
  void wait(uint32_t rank) { job_.open(rank, 30 * kSecond, kWait); }
  /// Ranks 0 and 1 wait for their second barrier; rank 2 has come to the first.
  void let_rank_2_stay_away() {
    for (uint32_t rank = 0; rank < 3; ++rank) {
      start(rank, 1);
      complete(rank, 1);
      if (rank == 2) continue;
      start(rank, 2);
      wait(rank);
    }
  }

  test::Job job_;
};

TEST_F(RequestHangs, rank_that_does_not_start_one_is_named) {
  let_rank_2_stay_away();
  const auto lines = job_.lines();
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0], "collective 2 of MPI_COMM_WORLD (3 members) does not end, for 70 s");
  EXPECT_EQ(lines[1], "  in MPI_Wait of MPI_Ibarrier: 0-1");
  EXPECT_THAT(lines[2], HasSubstr("  rank 2 on n1 (pid 102) did not arrive"));
  EXPECT_EQ(job_.finding(),
            "MPI_Ibarrier of MPI_COMM_WORLD never ended: rank 0-1 waited, rank 2 on n1 (pid 102) "
            "did not arrive");
}

TEST_F(RequestHangs, shares_say_the_same) {
  let_rank_2_stay_away();
  auto expected = job_.lines();
  expected.push_back(job_.finding());
  EXPECT_EQ(job_.combined_lines(), expected);
}

/// As a program may write it, or an old one wrote it.
TEST_F(RequestHangs, start_that_does_not_say_of_what_is_harmless) {
  start(0, 1, kStart, 0);
  wait(0);
  EXPECT_THAT(job_.report().hangs, IsEmpty());
  EXPECT_EQ(job_.lines().size(), 1u);
}

TEST_F(RequestHangs, of_two_communicators_nobody_knows_which_is_waited_for) {
  job_.add_communicator("other");
  start(0, 1);
  start(0, 2, kIbarrier, 0, 8);
  wait(0);
  EXPECT_THAT(job_.report().hangs, IsEmpty());
}

TEST_F(RequestHangs, who_started_it_and_computes_is_not_missed) {
  let_rank_2_stay_away();
  start(2, 2);
  EXPECT_THAT(job_.report().hangs, IsEmpty()) << "all have come: it is only slow";
}

TEST_F(RequestHangs, who_started_it_and_does_not_wait_has_not_left_it) {
  start(0, 1);
  start(1, 1);
  wait(0);
  const HangReport& report = job_.report();
  ASSERT_EQ(report.hangs.size(), 1u);
  EXPECT_THAT(report.hangs[0].started, ElementsAre(1u));
  EXPECT_THAT(report.hangs[0].absent, ElementsAre(2u));
  EXPECT_THAT(report.hangs[0].passed, IsEmpty());
}

TEST_F(RequestHangs, wait_that_may_be_for_a_message_accuses_nobody) {
  let_rank_2_stay_away();
  send(0, 9);
  send(1, 9);
  EXPECT_THAT(job_.report().hangs, IsEmpty());
}

TEST_F(RequestHangs, of_several_the_first_is_told) {
  let_rank_2_stay_away();
  start(0, 3);
  start(1, 3);
  const HangReport& report = job_.report();
  ASSERT_EQ(report.hangs.size(), 1u);
  EXPECT_EQ(report.hangs[0].number, 1u);
}

TEST_F(RequestHangs, different_ones_at_one_number_are_a_mismatch) {
  job_.call(kRecv, "MPI_Ibcast", RegionRole::kOneToAll);
  for (uint32_t rank = 0; rank < 3; ++rank) {
    start(rank, 1, rank == 1 ? kRecv : kIbarrier);
    wait(rank);
  }
  EXPECT_THAT(job_.finding(), HasSubstr("in different calls"));
}

TEST_F(RequestHangs, persistent_ones_are_numbered_by_their_starts) {
  for (uint32_t rank = 0; rank < 3; ++rank) {
    start(rank, 1, kStart, pack_instance(1, 1));  // of another one, by all
    complete(rank, 1);
    start(rank, 2, kStart, pack_instance(2, 1));
    complete(rank, 2);
    if (rank == 2) continue;
    start(rank, 3, kStart, pack_instance(2, 2));
    wait(rank);
  }
  const auto lines = job_.lines();
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0],
            "start 2 of persistent collective 2 of MPI_COMM_WORLD (3 members) does not end, for "
            "70 s");
  EXPECT_EQ(lines[1], "  in MPI_Wait: 0-1");
  EXPECT_EQ(job_.finding(),
            "a persistent collective of MPI_COMM_WORLD never ended: rank 0-1 waited, rank 2 on n1 "
            "(pid 102) did not arrive");
}

/// Three ranks that exchange messages by requests and wait for all of them.
class MessageHangs : public RequestHangs {
 protected:
  MessageHangs() { job_.call(kWait, "MPI_Waitall", RegionRole::kFunction); }
  void message(EventKind kind, uint32_t rank, int32_t peer, uint64_t request) {
    Event event = test::event(kind, 10 * kSecond, kRecv);
    event.communicator = 7;
    event.peer = peer;
    event.request = request;
    job_.add(rank, event);
  }
  /// Each to and from both others.
  void start_round(uint32_t rank, uint64_t first_request) {
    for (const uint32_t other : {(rank + 1) % 3, (rank + 2) % 3}) {
      const auto peer = static_cast<int32_t>(other);
      message(EventKind::kReceiveRequest, rank, peer, first_request++);
      message(EventKind::kSendRequest, rank, peer, first_request++);
    }
  }
  void end_round(uint32_t rank, uint64_t first_request) {
    for (const uint32_t other : {(rank + 1) % 3, (rank + 2) % 3}) {
      message(EventKind::kReceiveComplete, rank, static_cast<int32_t>(other), first_request++);
      message(EventKind::kSendComplete, rank, static_cast<int32_t>(other), first_request++);
    }
  }
};

TEST_F(MessageHangs, rank_that_does_not_send_is_named) {
  for (uint32_t rank = 0; rank < 3; ++rank) {
    start_round(rank, 1);
    end_round(rank, 1);
    if (rank != 1) start_round(rank, 10);
    if (rank != 1) wait(rank);
  }
  EXPECT_THAT(
      job_.lines(),
      ElementsAre(
          "rank 0 on n1 (pid 100) is in MPI_Waitall of MPI_COMM_WORLD for 70 s, rank 1 has not "
          "sent to it",
          "rank 2 on n1 (pid 102) is in MPI_Waitall of MPI_COMM_WORLD for 70 s, rank 1 has not "
          "sent to it"));
  EXPECT_EQ(job_.finding(),
            "MPI_Waitall never ended: rank 0, 2 waited for rank 1 on n1 (pid 101) for 70 s, whose "
            "last call was over 90 s before the end");
  auto expected = job_.lines();
  expected.push_back(job_.finding());
  EXPECT_EQ(job_.combined_lines(), expected);
}

TEST_F(MessageHangs, rank_that_is_still_in_a_collective_that_the_others_left_is_named) {
  job_.call(kIbarrier, "MPI_Barrier", RegionRole::kBarrier);
  for (const uint32_t rank : {0u, 1u, 2u}) {
    if (rank == 1) {
      job_.open(1, 29 * kSecond, kIbarrier);
      continue;
    }
    job_.finish(rank, 5 * kSecond);
    message(EventKind::kReceiveRequest, rank, 1, 1);
    wait(rank);
  }
  EXPECT_EQ(job_.finding(),
            "MPI_Waitall never ended: rank 0, 2 waited for rank 1 on n1 (pid 101) for 70 s, which "
            "was in MPI_Barrier");
}

TEST_F(MessageHangs, who_waits_for_each_other_is_a_ring) {
  for (uint32_t rank = 0; rank < 3; ++rank) {
    message(EventKind::kReceiveRequest, rank, static_cast<int32_t>((rank + 1) % 3), 1);
    wait(rank);
  }
  EXPECT_EQ(job_.finding(),
            "3 ranks waited for each other in a ring for 70 s: rank 0 for rank 1 in MPI_Waitall, "
            "rank 1 for rank 2 in MPI_Waitall, rank 2 for rank 0 in MPI_Waitall");
}

TEST_F(MessageHangs, ring_of_which_an_outsider_may_be_the_cause_is_none) {
  message(EventKind::kReceiveRequest, 0, 1, 1);
  message(EventKind::kReceiveRequest, 0, 2, 2);
  wait(0);
  message(EventKind::kReceiveRequest, 1, 0, 1);
  wait(1);
  EXPECT_THAT(job_.lines().at(0),
              testing::EndsWith(", one or more of rank 1-2 have not sent to it"));
  EXPECT_THAT(job_.finding(), testing::Not(HasSubstr("each other")));
}

/// A listener: it was in flight while others were waited for.
TEST_F(MessageHangs, request_that_others_were_completed_without_is_not_judged) {
  message(EventKind::kReceiveRequest, 0, 2, 1);
  start_round(0, 10);
  end_round(0, 10);
  message(EventKind::kReceiveRequest, 0, 1, 20);
  wait(0);
  EXPECT_THAT(job_.report().awaited.at(0), ElementsAre(1u));
}

TEST_F(MessageHangs, who_is_in_a_send_may_be_sending_it) {
  job_.call(kIbarrier, "MPI_Sendrecv", RegionRole::kPointToPoint);
  message(EventKind::kReceiveRequest, 0, 1, 1);
  wait(0);
  job_.open(1, 40 * kSecond, kIbarrier, 0);
  EXPECT_THAT(job_.report().awaited, IsEmpty());
  EXPECT_THAT(job_.finding(), testing::Not(HasSubstr("each other")));
}

TEST_F(MessageHangs, where_two_threads_call_mpi_no_request_is_judged) {
  message(EventKind::kReceiveRequest, 0, 1, 1);
  wait(0);
  job_.add_thread(0).finish_in(3, 0, 9 * kSecond);
  job_.add(0, test::enter(9 * kSecond, kRecv)).add(0, test::leave(9 * kSecond, kRecv));
  EXPECT_THAT(job_.report().awaited, IsEmpty());
}

TEST_F(MessageHangs, of_several_requests_one_is_waited_for_and_nobody_knows_which) {
  job_.call(kWait, "MPI_Wait", RegionRole::kFunction);
  message(EventKind::kReceiveRequest, 0, 1, 1);
  message(EventKind::kReceiveRequest, 0, 2, 2);
  wait(0);
  EXPECT_THAT(job_.report().awaited, IsEmpty());
}

/// Of who may tell it to stop, say, while it sends to somebody who does not receive.
TEST_F(MessageHangs, listener_is_not_waited_for_while_something_else_may_be) {
  job_.call(kWait, "MPI_Wait", RegionRole::kFunction);
  for (const uint32_t rank : {0u, 1u}) {
    message(EventKind::kReceiveRequest, rank, 2, 1);
    message(EventKind::kSendRequest, rank, 2, 2);
    message(EventKind::kSendComplete, rank, 2, 2);
  }
  message(EventKind::kSendRequest, 0, 1, 3);
  message(EventKind::kReceiveRequest, 1, 0, 3);
  message(EventKind::kReceiveRequest, 1, 0, 4);
  wait(0);
  wait(1);
  EXPECT_EQ(job_.report().awaited.count(0), 0u) << "it may wait for its send";
  EXPECT_THAT(job_.report().awaited.at(1), ElementsAre(0u)) << "who has sent one of two";
}

/// As in an exchange of borders: both receives, the send, and an MPI_Wait for each.
TEST_F(MessageHangs, second_receive_is_waited_for_when_the_first_one_has_come) {
  job_.call(kWait, "MPI_Wait", RegionRole::kFunction);
  message(EventKind::kReceiveRequest, 0, 2, 1);
  message(EventKind::kReceiveRequest, 0, 1, 2);
  message(EventKind::kSendRequest, 0, 2, 3);
  message(EventKind::kReceiveComplete, 0, 2, 1);
  wait(0);
  EXPECT_THAT(job_.report().awaited.at(0), ElementsAre(1u));
}

/// Nothing tells which of the two an MPI_Wait behind them is for.
TEST_F(MessageHangs, receive_is_not_waited_for_while_a_send_beside_it_may_be) {
  job_.call(kWait, "MPI_Wait", RegionRole::kFunction);
  message(EventKind::kReceiveRequest, 0, 1, 1);
  message(EventKind::kSendRequest, 0, 2, 2);
  wait(0);
  message(EventKind::kSendRequest, 2, 1, 1);
  message(EventKind::kSendRequest, 2, 1, 2);
  message(EventKind::kSendComplete, 2, 1, 1);
  message(EventKind::kReceiveRequest, 2, 1, 3);
  wait(2);
  EXPECT_THAT(job_.report().awaited, IsEmpty());
}

/// As of a program that sends its borders behind the receives, and has one of them.
TEST_F(MessageHangs, send_that_was_started_after_a_receive_had_come_may_be_waited_for) {
  job_.call(kWait, "MPI_Wait", RegionRole::kFunction);
  message(EventKind::kReceiveRequest, 0, 2, 1);
  message(EventKind::kReceiveRequest, 0, 1, 2);
  message(EventKind::kReceiveComplete, 0, 2, 1);
  message(EventKind::kSendRequest, 0, 2, 3);
  wait(0);
  EXPECT_THAT(job_.report().awaited, IsEmpty());
}

/// One that is complete says nothing of which of two receives beside it an MPI_Wait is for.
TEST_F(MessageHangs, of_receives_that_were_started_together_nobody_knows_which_is_waited_for) {
  job_.call(kWait, "MPI_Wait", RegionRole::kFunction);
  message(EventKind::kReceiveRequest, 0, 1, 1);
  message(EventKind::kSendRequest, 0, 1, 2);
  message(EventKind::kReceiveRequest, 0, 2, 3);
  message(EventKind::kSendRequest, 0, 2, 4);
  message(EventKind::kSendComplete, 0, 1, 2);
  wait(0);
  EXPECT_THAT(job_.report().awaited, IsEmpty());
}

TEST_F(MessageHangs, nobody_is_named_behind_a_hole) {
  message(EventKind::kReceiveRequest, 0, 1, 1);
  job_.add(1, test::event(EventKind::kLostBegin, 11 * kSecond, 0));
  wait(0);
  EXPECT_THAT(job_.report().awaited, IsEmpty());
}

/// Of thousands of ranks that exchange messages with all others each.
TEST(MessagePartners, are_counted_up_to_a_limit_and_nobody_is_named_beyond) {
  test::Job job(2);
  job.call(kWait, "MPI_Wait", RegionRole::kFunction).open(0, 30 * kSecond, kWait);
  Event event = test::event(EventKind::kReceiveRequest, 10 * kSecond, kRecv);
  event.communicator = 7;
  event.peer = 1;
  for (const bool is_share : {true, false}) {
    HangFinder finder;
    ASSERT_TRUE(finder.begin(job.model()));
    ASSERT_TRUE(finder.begin_location(job.model().locations[0]));
    ASSERT_TRUE(finder.events({&event, 1}));
    Event send = event;
    send.kind = EventKind::kSend;
    for (send.peer = 2; send.peer < static_cast<int32_t>(HangFinder::kMaxPartners) + 1000;
         ++send.peer)
      ASSERT_TRUE(finder.events({&send, 1}));
    ASSERT_TRUE(finder.end_location());
    if (is_share) {
      StateOut out;
      ASSERT_TRUE(finder.save(&out));
      EXPECT_LT(out.bytes().size(), (HangFinder::kMaxPartners + 100) * 3 * sizeof(uint64_t));
      continue;
    }
    ASSERT_TRUE(finder.begin_location(job.model().locations[1]));
    send.peer = 0;
    ASSERT_TRUE(finder.events({&send, 1}));
    ASSERT_TRUE(finder.end_location());
    ASSERT_TRUE(finder.finish({}));
    EXPECT_THAT(finder.report().awaited, IsEmpty()) << "rank 1 has sent";
  }
}

/// Of a thread whose requests another one completes: no event says which have ended.
TEST(RequestsInFlight, that_nobody_can_judge_take_no_memory) {
  test::Job job(1);
  job.add_thread(0).call(kWait, "MPI_Wait", RegionRole::kFunction);
  Event send = test::event(EventKind::kSendRequest, 10 * kSecond, kRecv);
  send.communicator = 7;
  send.peer = 0;
  const Event wait = test::enter(11 * kSecond, kWait);
  for (const uint64_t count : {uint64_t{1000}, HangFinder::kMaxInFlight + 1000}) {
    HangFinder finder;
    ASSERT_TRUE(finder.begin(job.model()));
    ASSERT_TRUE(finder.begin_location(job.model().locations[0]));
    ASSERT_TRUE(finder.events({&wait, 1}));
    for (send.request = 0; send.request < count; ++send.request)
      ASSERT_TRUE(finder.events({&send, 1}));
    ASSERT_TRUE(finder.end_location());
    if (count <= HangFinder::kMaxInFlight) {
      ASSERT_TRUE(finder.begin_location(job.model().locations[1]));
      ASSERT_TRUE(finder.events({&wait, 1}));
      ASSERT_TRUE(finder.end_location());
    }
    StateOut out;
    ASSERT_TRUE(finder.save(&out));
    EXPECT_LT(out.bytes().size(), 1000u) << count;
  }
}

/// Thousands of ranks of which each has many.
TEST(RequestsInFlight, of_all_processes_have_a_limit_beyond_which_nobody_is_named) {
  constexpr uint32_t kRanks = 3;
  test::Job job(kRanks);
  job.call(kWait, "MPI_Waitall", RegionRole::kFunction);
  for (uint32_t rank = 0; rank < kRanks; ++rank) job.open(rank, 30 * kSecond, kWait);
  HangFinder finder;
  ASSERT_TRUE(finder.begin(job.model()));
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    Event event = test::event(EventKind::kReceiveRequest, 10 * kSecond, kRecv);
    event.communicator = 7;
    event.peer = static_cast<int32_t>((rank + 1) % kRanks);
    ASSERT_TRUE(finder.begin_location(job.model().locations[rank]));
    ASSERT_TRUE(finder.events({&event, 1}));
    event.kind = EventKind::kSendRequest;
    for (event.request = 1; event.request < HangFinder::kMaxInFlight; ++event.request)
      ASSERT_TRUE(finder.events({&event, 1}));
    ASSERT_TRUE(finder.end_location());
  }
  ASSERT_TRUE(finder.finish({}));
  EXPECT_THAT(finder.report().awaited, testing::UnorderedElementsAre(testing::Key(0u)))
      << "0 waits for 1; 1 for 2, and 2 for 0, of which it is not known";
}

TEST(RequestsInFlight, behind_a_hole_take_no_memory) {
  test::Job job(1);
  HangFinder finder;
  ASSERT_TRUE(finder.begin(job.model()));
  ASSERT_TRUE(finder.begin_location(job.model().locations[0]));
  Event send = test::event(EventKind::kSendRequest, 10 * kSecond, kRecv);
  send.communicator = 7;
  for (send.request = 0; send.request < 2000; ++send.request) {
    const Event lost = test::event(EventKind::kLostBegin, 10 * kSecond, 0);
    if (send.request == 1000) {
      ASSERT_TRUE(finder.events({&lost, 1}));
    }
    send.peer = static_cast<int32_t>(send.request);
    ASSERT_TRUE(finder.events({&send, 1}));
  }
  ASSERT_TRUE(finder.end_location());
  StateOut out;
  ASSERT_TRUE(finder.save(&out));
  EXPECT_LT(out.bytes().size(), 1000u);
}

TEST(PendingRequests, standing_are_those_that_others_were_completed_without) {
  PendingRequests requests;
  requests.start(1, PendingMessage{});
  EXPECT_FALSE(requests.is_standing(requests.messages().at(0)));
  requests.start_send(2);
  requests.complete(2);
  EXPECT_TRUE(requests.is_standing(requests.messages().at(0)));
  requests.complete(1);
  EXPECT_FALSE(requests.has_messages());
  requests.start_io(5);
  EXPECT_TRUE(requests.has_io());
  requests.complete_io(5);
  EXPECT_FALSE(requests.has_io());
}

}  // namespace
}  // namespace aon::writers
