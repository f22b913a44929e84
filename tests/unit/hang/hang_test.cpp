// Collectives that do not end: synthetic ranks of which some are in a call for long.

#include "writers/hang/hang.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/hang/job.h"

namespace aon::writers {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

using test::Job;
using test::kAllreduce;
using test::kBarrier;
using test::kControl;
using test::kFileOpen;
using test::kRecv;
using test::kSecond;

std::vector<uint32_t> calls_of(const Hang& hang) {
  std::vector<uint32_t> calls;
  for (const Arrival& arrival : hang.arrived) calls.push_back(arrival.call);
  return calls;
}

TEST(Hang, rank_that_does_not_come_is_named) {
  Job job(4);
  for (uint32_t rank = 0; rank < 4; ++rank) job.finish(rank, 20 * kSecond);
  for (const uint32_t rank : {0u, 1u, 3u}) job.open(rank, 30 * kSecond, kAllreduce);
  EXPECT_THAT(
      job.lines(),
      ElementsAre("collective 2 of MPI_COMM_WORLD (4 members) does not end, for 70 s",
                  "  in MPI_Allreduce: 0-1, 3",
                  "  rank 2 on n1 (pid 102) did not arrive: its last call was over 80 s ago"));
  EXPECT_EQ(
      job.finding(),
      "MPI_Allreduce of MPI_COMM_WORLD never ended: rank 0-1, 3 waited, rank 2 on n1 (pid 102) "
      "did not arrive");
}

TEST(Hang, of_polls_in_vain_few_are_recorded) {
  for (const char* name : {"MPI_Comm_rank", "MPI_Test", "MPI_Parrived"}) {
    Job job(2);
    for (uint32_t rank = 0; rank < 2; ++rank) job.finish(rank, 20 * kSecond);
    job.name(kRecv, name).count(1, kRecv, 640).open(0, 30 * kSecond, kAllreduce);
    const bool is_poll = std::string_view(name) != "MPI_Comm_rank";
    EXPECT_EQ(job.lines().back(),
              "  rank 1 on n1 (pid 101) did not arrive: its last call was over 80 s ago" +
                  std::string(is_poll ? ", polls in vain apart" : ""));
  }
}

TEST(Hang, two_shares_say_what_one_process_says) {
  Job job(5);
  for (uint32_t rank = 0; rank < 5; ++rank) job.finish(rank, 20 * kSecond);
  job.finish(3, 21 * kSecond);
  for (const uint32_t rank : {0u, 1u, 3u}) job.open(rank, 30 * kSecond, kAllreduce);
  job.finish(1, 40 * kSecond, kAllreduce);  // has returned
  job.add(4, test::event(EventKind::kLostBegin, 50 * kSecond, 0));
  std::vector<std::string> whole = job.lines();
  whole.push_back(job.finding());
  EXPECT_GT(whole.size(), 4u);
  EXPECT_EQ(job.combined_lines(), whole);
}

TEST(Hang, of_damaged_definitions_whose_end_they_lack_is_unknown) {
  Job job(3);
  for (uint32_t rank = 0; rank < 3; ++rank) job.finish(rank, 20 * kSecond);
  job.open(0, 30 * kSecond, kBarrier).damage_definitions().end(0).end(1);
  const std::vector<std::string> lines = job.lines();
  EXPECT_THAT(lines, Contains(HasSubstr("rank 1 on n1 (pid 101) did not arrive")));
  EXPECT_THAT(lines, Not(Contains(HasSubstr("rank 2"))));
}

TEST(Hang, of_damaged_definitions_without_any_end_nobody_is_accused) {
  Job job(3);
  for (uint32_t rank = 0; rank < 3; ++rank) job.finish(rank, 20 * kSecond);
  job.open(0, 30 * kSecond, kBarrier).damage_definitions();
  EXPECT_THAT(job.lines(),
              ElementsAre("collective 2 of MPI_COMM_WORLD (3 members) does not end, for 70 s",
                          "  in MPI_Barrier: 0", HasSubstr("of 2 members it is not known")));
  EXPECT_THAT(job.finding(), Not(HasSubstr("rank 1")));
}

TEST(Hang, damage_of_what_a_share_tells_is_harmless) {
  Job job(2);
  job.finish(0, 20 * kSecond).finish(1, 20 * kSecond).open(0, 30 * kSecond, kBarrier);
  const auto make = [] { return std::make_unique<HangFinder>(); };
  test::expect_damage_is_harmless(make, job.model(), job.states()[0]);
}

TEST(Hang, call_that_returned_is_none) {
  Job job(2);
  job.open(0, 30 * kSecond, kBarrier).open(1, 31 * kSecond, kBarrier);
  job.finish(0, 30 * kSecond).finish(1, 31 * kSecond);
  EXPECT_THAT(job.lines(), IsEmpty());
  EXPECT_EQ(job.finding(), "");
}

/// The record of a call that its process died in looks like one that returned, but for a marker.
TEST(Hang, call_that_was_open_at_the_end_has_not_returned) {
  Job job(2);
  job.open(0, 30 * kSecond, kBarrier);
  job.add(0, test::enter(30 * kSecond, kBarrier));
  job.add(0, test::event(EventKind::kOpenAtEnd, 90 * kSecond, kBarrier));
  job.add(0, test::leave(90 * kSecond, kBarrier));
  job.end(0, -1, 9).end(1, -1, 11);
  EXPECT_THAT(
      job.lines(),
      ElementsAre(HasSubstr("collective 1 of MPI_COMM_WORLD"), "  in MPI_Barrier: 0",
                  "  rank 1 on n1 (pid 101) did not arrive: it has recorded nothing; it was "
                  "ended by signal 11"));
}

TEST(Hang, different_calls_at_one_place_are_a_mismatch) {
  Job job(3);
  job.open(0, 30 * kSecond, kBarrier).open(1, 30 * kSecond, kAllreduce);
  job.open(2, 31 * kSecond, kBarrier);
  EXPECT_THAT(job.lines(), ElementsAre(HasSubstr("does not end"), "  in MPI_Allreduce: 1",
                                       "  in MPI_Barrier: 0, 2",
                                       "  they are in different calls: one of them is wrong"));
}

/// One skipped a collective, so it waits in the next one while the others wait in this.
TEST(Hang, rank_that_skipped_one_is_seen_by_its_number) {
  Job job(3);
  job.finish(0, 10 * kSecond).finish(1, 10 * kSecond).finish(2, 10 * kSecond);
  job.finish(0, 20 * kSecond).finish(1, 20 * kSecond);
  for (uint32_t rank = 0; rank < 3; ++rank) job.open(rank, 30 * kSecond, kAllreduce);
  const HangReport& report = job.report();
  ASSERT_EQ(report.hangs.size(), 2u);
  EXPECT_EQ(report.hangs[0].number, 1u);
  EXPECT_THAT(calls_of(report.hangs[0]), ElementsAre(2u));
  EXPECT_THAT(report.hangs[0].passed, ElementsAre(0u, 1u));
  EXPECT_THAT(report.hangs[0].absent, IsEmpty());
  EXPECT_EQ(report.hangs[1].number, 2u);
  EXPECT_THAT(calls_of(report.hangs[1]), ElementsAre(0u, 1u));
  EXPECT_THAT(report.hangs[1].absent, ElementsAre(2u));
}

/// They are started in any order, so they have no number: rank 1 has not come later than rank 0.
TEST(Hang, persistent_collectives_are_not_counted) {
  Job job(2);
  job.name(kRecv, "MPI_Startall: one request");
  Event start = test::event(EventKind::kCollectiveRequest, 10 * kSecond, kRecv);
  start.communicator = 7;
  start.operation = CollectiveOperation::kAllreduce;
  job.add(0, start);
  for (uint32_t rank = 0; rank < 2; ++rank) job.open(rank, 30 * kSecond, kBarrier);
  const HangReport& report = job.report();
  ASSERT_EQ(report.hangs.size(), 1u);
  EXPECT_THAT(calls_of(report.hangs[0]), ElementsAre(0u, 1u));
}

TEST(Hang, what_the_missing_one_does_instead_is_told) {
  Job job(2);
  job.open(0, 30 * kSecond, kBarrier).open(1, 25 * kSecond, kRecv, 0);
  EXPECT_THAT(
      job.lines(),
      ElementsAre(HasSubstr("does not end, for 70 s"), "  in MPI_Barrier: 0",
                  "  rank 1 on n1 (pid 101) did not arrive: it is in MPI_Recv with rank 0 of "
                  "MPI_COMM_WORLD for 75 s",
                  "rank 1 on n1 (pid 101) is in MPI_Recv with rank 0 of MPI_COMM_WORLD for "
                  "75 s"));
  EXPECT_EQ(job.finding(),
            "MPI_Barrier of MPI_COMM_WORLD never ended: rank 0 waited, rank 1 on n1 (pid 101) did "
            "not arrive but was in MPI_Recv with rank 0 of MPI_COMM_WORLD");
}

TEST(Hang, without_collectives_the_calls_are_listed) {
  Job job(2);
  job.open(1, 25 * kSecond, kRecv, kAnyPeer);
  EXPECT_THAT(job.lines(), ElementsAre("rank 1 on n1 (pid 101) is in MPI_Recv from any rank of "
                                       "MPI_COMM_WORLD for 75 s"));
}

/// It says whom it receives from nowhere: that may be whom it waits for.
TEST(Hang, exchange_says_whom_it_sends_to) {
  Job job(3);
  job.call(kFileOpen, "MPI_Sendrecv_replace", RegionRole::kPointToPoint);
  job.open(1, 25 * kSecond, kFileOpen, 2);
  EXPECT_THAT(job.lines(),
              ElementsAre("rank 1 on n1 (pid 101) is in MPI_Sendrecv_replace sending to rank 2 of "
                          "MPI_COMM_WORLD for 75 s"));
  EXPECT_EQ(job.finding(),
            "MPI_Sendrecv_replace never ended: rank 1 waited for 75 s, sending to rank 2 of "
            "MPI_COMM_WORLD");
  Job several(3);
  several.call(kFileOpen, "MPI_Sendrecv", RegionRole::kPointToPoint);
  several.open(0, 25 * kSecond, kFileOpen, 1).open(1, 25 * kSecond, kFileOpen, 2);
  EXPECT_EQ(several.finding(), "MPI_Sendrecv never ended: rank 0-1 waited for 75 s");
  Job to_nobody(2);
  to_nobody.call(kFileOpen, "MPI_Sendrecv", RegionRole::kPointToPoint);
  to_nobody.open(0, 25 * kSecond, kFileOpen, kNoPeer);
  EXPECT_EQ(to_nobody.finding(), "MPI_Sendrecv never ended: rank 0 waited for 75 s");
}

TEST(Hang, why_there_is_no_stack_is_said) {
  Job job(3);
  for (uint32_t rank = 0; rank < 3; ++rank) job.open(rank, 25 * kSecond, kRecv, kAnyPeer);
  job.look(0, {"poll", "main"}, "waits in the kernel").look(1, {"poll", "main"}, "");
  job.look(2, {}, "it has ended, or is in another PID namespace");
  EXPECT_THAT(job.lines(),
              ElementsAre(HasSubstr("rank 0"), "    0 stands in poll < main (waits in the kernel)",
                          HasSubstr("rank 1"), "    1 stands in poll < main", HasSubstr("rank 2"),
                          "    2: it has ended, or is in another PID namespace"));
}

/// A communicator of each node, say, of a thousand.
TEST(Hang, of_hangs_in_many_communicators_the_first_are_told_and_how_many_more_there_are) {
  constexpr uint32_t kCount = 200;
  Job job(kCount);
  for (uint32_t rank = 0; rank < kCount; ++rank) {
    if (rank != 0) job.add_communicator("of a node");
    job.open_in(rank, 30 * kSecond, kBarrier, rank);
  }
  const std::vector<std::string> lines = job.lines();
  EXPECT_LT(lines.size(), 64u * 20u);
  EXPECT_THAT(lines, Contains("and 136 more collectives do not end"));
  EXPECT_THAT(lines, Not(Contains(HasSubstr("more calls"))));
}

TEST(Hang, stack_of_a_call_stays_while_another_thread_goes_on) {
  for (const uint64_t since_ns : {25 * kSecond, 99 * kSecond + 1}) {
    Job job(2);
    job.open(0, since_ns, kRecv, 1).look(0, {"poll", "main"}, "").add_thread(0);
    job.add(2, test::enter(99 * kSecond + 2, kControl));
    job.add(2, test::leave(99 * kSecond + 3, kControl));
    const bool is_of_call = since_ns < 99 * kSecond;
    EXPECT_EQ(job.lines().size(), is_of_call ? 2u : 1u);
    EXPECT_EQ(job.lines().back() == "    0 stands in poll < main", is_of_call);
  }
}

TEST(Hang, ring_of_messages_is_a_finding) {
  Job job(4);
  job.call(kFileOpen, "MPI_Ssend", RegionRole::kPointToPoint);
  job.open(1, 40 * kSecond, kFileOpen, 2).open(2, 30 * kSecond, kRecv, 3);
  job.open(3, 35 * kSecond, kFileOpen, 1).open(0, 20 * kSecond, kRecv, 2);
  EXPECT_EQ(job.finding(),
            "3 ranks waited for each other in a ring for 60 s: rank 1 for rank 2 in MPI_Ssend, "
            "rank 2 for rank 3 in MPI_Recv, rank 3 for rank 1 in MPI_Ssend");
  Job pair(2);
  pair.open(0, 40 * kSecond, kRecv, 1).open(1, 40 * kSecond, kRecv, 0);
  EXPECT_EQ(pair.finding(),
            "2 ranks waited for each other for 60 s: rank 0 for rank 1 in MPI_Recv, rank 1 for "
            "rank 0 in MPI_Recv");
  Job alone(2);
  alone.open(1, 40 * kSecond, kRecv, 1);
  EXPECT_EQ(alone.finding(), "a rank waited for itself for 60 s: rank 1 for rank 1 in MPI_Recv");
}

TEST(Hang, long_ring_is_cut) {
  Job job(9);
  for (int rank = 0; rank < 9; ++rank)
    job.open(static_cast<uint32_t>(rank), 40 * kSecond, kRecv, (rank + 1) % 9);
  EXPECT_EQ(job.finding(),
            "9 ranks waited for each other in a ring for 60 s: rank 0 for rank 1 in MPI_Recv, rank "
            "1 for rank 2 in MPI_Recv, rank 2 for rank 3 in MPI_Recv, ..., rank 8 for rank 0 in "
            "MPI_Recv");
}

TEST(Hang, rank_that_others_wait_for_is_a_finding) {
  Job job(5);
  job.finish(3, 20 * kSecond);
  job.open(0, 40 * kSecond, kRecv, 3)
      .open(1, 30 * kSecond, kRecv, 3)
      .open(2, 30 * kSecond, kRecv, 0);
  EXPECT_EQ(job.finding(),
            "MPI_Recv never ended: rank 0-1 waited for rank 3 on n1 (pid 103) for 70 s, whose last "
            "call was over 80 s before the end");
  Job unknown(2);
  unknown.open(0, 40 * kSecond, kRecv, 1).forget(1);
  EXPECT_EQ(unknown.finding(),
            "MPI_Recv never ended: rank 0 waited for rank 1 for 60 s, of which nothing was "
            "recorded");
  Job busy(2);
  busy.call(kFileOpen, "MPI_Wait", RegionRole::kFunction);
  busy.open(0, 40 * kSecond, kRecv, 1).open(1, 40 * kSecond, kFileOpen);
  EXPECT_EQ(busy.finding(),
            "MPI_Recv never ended: rank 0 waited for rank 1 on n1 (pid 101) for 60 s, which was in "
            "MPI_Wait");
}

TEST(Hang, rank_that_does_not_come_to_the_init_is_a_finding) {
  Job job(4);
  job.call(kFileOpen, "MPI_Init", RegionRole::kFunction).forget(2);
  for (const uint32_t rank : {0u, 1u, 3u}) job.open(rank, (30 + rank) * kSecond, kFileOpen);
  EXPECT_EQ(job.finding(),
            "MPI_Init never ended: rank 0-1, 3 waited for 70 s, rank 2 did not come to it, or is "
            "not recorded");
}

TEST(Hang, rank_that_does_not_come_to_the_end_is_a_finding) {
  Job job(3);
  job.call(kFileOpen, "MPI_Finalize", RegionRole::kFunction);
  job.open(0, 30 * kSecond, kFileOpen).open(2, 31 * kSecond, kFileOpen).finish(1, 20 * kSecond);
  EXPECT_EQ(job.finding(),
            "MPI_Finalize never ended: rank 0, 2 waited for 70 s, rank 1 on n1 (pid 101) did not "
            "come to it, whose last call was over 80 s before the end");
}

TEST(Hang, who_has_come_to_the_end_is_not_missed_there) {
  Job job(3);
  job.call(kFileOpen, "MPI_Finalize", RegionRole::kFunction);
  job.open(0, 30 * kSecond, kFileOpen).open(2, 31 * kSecond, kFileOpen);
  job.add(1, test::enter(99 * kSecond, kFileOpen));
  job.add(1, test::event(EventKind::kOpenAtEnd, 99 * kSecond, kFileOpen));
  job.add(1, test::leave(99 * kSecond, kFileOpen));
  EXPECT_EQ(job.finding(), "MPI_Finalize never ended: rank 0, 2 waited for 70 s");
}

TEST(Hang, process_whose_other_thread_went_on_is_not_stuck) {
  Job stuck(2);
  stuck.open(0, 10 * kSecond, kRecv, 1).add_thread(0);
  EXPECT_THAT(stuck.finding(), HasSubstr("MPI_Recv never ended"));
  Job job(2);
  job.open(0, 10 * kSecond, kRecv, 1).add_thread(0).finish_in(2, 0, 50 * kSecond);
  EXPECT_EQ(job.finding(), "");
}

TEST(Hang, calls_that_name_nobody_are_a_finding) {
  Job job(3);
  job.open(1, 25 * kSecond, kRecv, kAnyPeer);
  EXPECT_EQ(job.finding(), "MPI_Recv from any rank never ended: rank 1 waited for 75 s");
}

TEST(Hang, program_that_ended_well_within_a_call_did_not_hang) {
  Job job(2);
  job.open(0, 40 * kSecond, kRecv, 1).open(1, 40 * kSecond, kRecv, 0).end(0, 0, 0);
  EXPECT_THAT(job.finding(), HasSubstr("rank 1 waited for rank 0"));
  job.end(1, 0, 0);
  EXPECT_EQ(job.finding(), "");
}

/// Its record, which is there when the process has ended, is shorter than --hang.
TEST(Hang, short_call_that_a_kill_ended_is_no_finding) {
  Job job(2);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    job.add(rank, test::enter(99 * kSecond, kRecv));
    job.add(rank, test::event(EventKind::kOpenAtEnd, 100 * kSecond, kRecv));
    job.add(rank, test::leave(100 * kSecond, kRecv)).end(rank, -1, 15);
  }
  EXPECT_EQ(job.finding(), "");
}

/// Numbers after a hole are wrong, so they are not told, and nobody is accused by them.
TEST(Hang, holes_hide_the_number_and_not_the_hang) {
  const Event lost = test::event(EventKind::kLostBegin, 11 * kSecond, 0);
  Event failed = test::enter(11 * kSecond, kBarrier);
  failed.flags = kFailed;
  for (const Event& hole : {lost, failed}) {
    Job job(3);
    job.finish(0, 10 * kSecond).open(0, 30 * kSecond, kBarrier).open(1, 30 * kSecond, kAllreduce);
    for (uint32_t rank = 0; rank < 2; ++rank) job.add(rank, hole);
    EXPECT_THAT(job.lines(), ElementsAre(HasSubstr("a collective of MPI_COMM_WORLD"),
                                         "  in MPI_Allreduce: 1", "  in MPI_Barrier: 0",
                                         HasSubstr("rank 2 on n1 (pid 102) is not in it")));
  }
}

TEST(Hang, what_failed_without_an_exchange_and_other_levels_are_no_holes) {
  Event failed = test::enter(11 * kSecond, kFileOpen);
  failed.flags = kFailed;
  Event control = test::enter(11 * kSecond, kControl);
  for (const int level : {1, 0}) {
    control.set_value(static_cast<uint32_t>(ValueType::kSigned), static_cast<uint64_t>(level));
    Job job(3);
    job.call(kFileOpen, "MPI_File_open", RegionRole::kFileIo);
    job.call(kControl, "MPI_Pcontrol", RegionRole::kFunction);
    job.finish(0, 10 * kSecond).finish(1, 10 * kSecond);
    for (uint32_t rank = 0; rank < 2; ++rank) {
      job.open(rank, 30 * kSecond, kBarrier).add(rank, failed).add(rank, control);
    }
    const char* expected = level == 1 ? "collective 2 of MPI_COMM_WORLD" : "a collective of";
    EXPECT_THAT(job.lines().at(0), HasSubstr(expected)) << level;
  }
}

TEST(Hang, member_with_a_hole_may_have_passed) {
  Job job(3);
  job.open(0, 30 * kSecond, kBarrier).open(1, 30 * kSecond, kBarrier);
  job.add(2, test::event(EventKind::kLostBegin, 11 * kSecond, 0));
  const HangReport& report = job.report();
  ASSERT_EQ(report.hangs.size(), 1u);
  EXPECT_THAT(report.hangs[0].absent, IsEmpty());
  EXPECT_EQ(report.hangs[0].unknown_count, 1u);
}

TEST(Hang, nobody_is_accused_of_whom_nothing_is_known) {
  for (const bool is_followed : {false, true}) {
    Job job(2);
    job.open(0, 30 * kSecond, kBarrier);
    is_followed ? job.follow(1) : job.forget(1);
    const HangReport& report = job.report();
    ASSERT_EQ(report.hangs.size(), 1u);
    EXPECT_THAT(report.hangs[0].absent, IsEmpty());
    EXPECT_EQ(report.hangs[0].unknown_count, 1u);
  }
}

TEST(Hang, whoever_is_only_followed_may_have_come_to_the_end) {
  Job in_init(2);
  in_init.name(kRecv, "MPI_Init").open(0, 30 * kSecond, kRecv).follow(1);
  EXPECT_THAT(stuck_finding(in_init.model(), in_init.report(), false),
              HasSubstr(", rank 1 did not come to it, or is not recorded"));
  Job at_end(2);
  at_end.name(kRecv, "MPI_Finalize").open(0, 30 * kSecond, kRecv).follow(1);
  ASSERT_THAT(stuck_finding(at_end.model(), at_end.report(), false), HasSubstr("never ended"));
  EXPECT_THAT(stuck_finding(at_end.model(), at_end.report(), false),
              Not(HasSubstr("did not come to it")));
}

/// Neighbours need not be all members, so nobody is missing there.
TEST(Hang, neighbourhood_collectives_are_calls_and_no_hangs) {
  Job job(2);
  job.name(kAllreduce, "MPI_Neighbor_allgather").open(0, 30 * kSecond, kAllreduce);
  EXPECT_THAT(job.lines(), ElementsAre("rank 0 on n1 (pid 100) is in MPI_Neighbor_allgather of "
                                       "MPI_COMM_WORLD for 70 s"));
}

/// A call that took long and returned, and another one at whose end the process was killed.
TEST(Hang, later_call_that_is_open_at_the_end_is_not_the_one_that_was_told) {
  for (const uint32_t later : {kRecv, kBarrier}) {
    Job job(2);
    for (uint32_t rank = 0; rank < 2; ++rank) {
      job.open(rank, 30 * kSecond, kBarrier).finish(rank, 30 * kSecond);
      job.add(rank, test::enter(50 * kSecond, later));
      job.add(rank, test::event(EventKind::kOpenAtEnd, 51 * kSecond, later));
      job.add(rank, test::leave(51 * kSecond, later));
    }
    EXPECT_THAT(job.report().open_calls, IsEmpty());
    EXPECT_THAT(job.report().hangs, IsEmpty());
  }
}

/// What the program annotates within the call is no sign that it returned.
TEST(Hang, annotation_inside_the_call_does_not_end_it) {
  Job job(1);
  job.open(0, 30 * kSecond, kBarrier);
  job.add(0, test::enter(40 * kSecond, 4)).add(0, test::leave(41 * kSecond, 4));
  EXPECT_EQ(job.report().open_calls.size(), 1u);
}

TEST(Hang, two_threads_on_one_communicator_have_no_numbers) {
  Job job(2);
  job.open(0, 30 * kSecond, kBarrier).finish(1, 10 * kSecond).add_thread(1);
  job.finish_in(2, 1, 11 * kSecond);
  const HangReport& report = job.report();
  ASSERT_EQ(report.hangs.size(), 1u);
  EXPECT_THAT(report.hangs[0].absent, IsEmpty());
  EXPECT_THAT(report.hangs[0].passed, IsEmpty());
  EXPECT_EQ(report.hangs[0].unknown_count, 1u);
}

TEST(Hang, caller_that_is_no_member_is_of_another_world) {
  Job job(3);
  job.leave_world(2).open(2, 30 * kSecond, kBarrier);
  EXPECT_THAT(job.report().hangs, IsEmpty());
  EXPECT_EQ(job.report().open_calls.size(), 1u);
}

}  // namespace
}  // namespace aon::writers
