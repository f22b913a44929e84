// Operations of NCCL that do not end: synthetic ranks, of which some have one in flight.

#include "tests/unit/hang/nccl_hang_fixture.h"

namespace aon::writers {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(NcclHangs, who_did_not_arrive_is_named_with_where_it_stands) {
  for (uint32_t rank : {0, 1, 2}) finished(rank, {});
  for (uint32_t rank : {0, 2}) in_flight(rank, {.sequence = 1, .call = 1});
  quiet(0, {"cudaStreamSynchronize", "main"});
  quiet(1, {"compute", "main"});
  ASSERT_EQ(run().size(), 1u);
  EXPECT_THAT(lines(),
              ElementsAre("ncclAllReduce 2 of world (3 members, 64 bytes) does not end, for 5 s",
                          "  in it: 0, 2", "    0 stands in cudaStreamSynchronize < main (runs)",
                          "  rank 1 on n1 (pid 101) did not arrive: its last call was over 5 s ago",
                          "    1 stands in compute < main (runs)"));
  EXPECT_EQ(
      finding(),
      "ncclAllReduce 2 of world never ended: ranks 0, 2 are in it, rank 1 on n1 (pid 101) did "
      "not arrive");
}

TEST_F(NcclHangs, two_shares_say_what_one_process_says) {
  for (uint32_t rank : {0, 1, 2}) finished(rank, {});
  for (uint32_t rank : {0, 2}) in_flight(rank, {.sequence = 1, .call = 1});
  in_flight(1, {.region = kAllGather, .sequence = 1, .call = 1});
  lose(2, kEnd - 100 * kSecond);
  quiet(0);
  quiet(1);
  expect_same_of_shares();
}

TEST_F(NcclHangs, shares_know_of_holes_and_levels) {
  for (uint32_t rank : {0, 1, 2}) enqueued(rank, {});
  for (uint32_t rank : {0, 2}) {
    enqueued(rank, {.sequence = 1, .call = 1});
    enqueued(rank, {.sequence = 2, .call = 2});
  }
  lose(1, kEnd - kSecond);
  quiet(2);
  EXPECT_THAT(run(), IsEmpty()) << "rank 1 may have come in its hole";
  HangFinder combiner;
  test::combine({&combiner}, model_, states());
  EXPECT_THAT(combiner.report().nccl, IsEmpty());
  finder_ = HangFinder();
  enqueued(1, {.sequence = 1, .call = 1, .time_ns = kEnd});
  expect_same_of_shares();
}

TEST_F(NcclHangs, of_damaged_definitions_whose_end_they_lack_is_unknown) {
  for (uint32_t rank : {0, 1, 2}) finished(rank, {});
  in_flight(0, {.sequence = 1, .call = 1});
  quiet(0);
  job_.has_damaged_definitions = true;
  for (uint32_t rank : {0, 1}) processes_[rank].exit.emplace().signal = 15;
  const auto& hangs = run();
  ASSERT_EQ(hangs.size(), 1u);
  EXPECT_THAT(hangs[0].absent, ElementsAre(member(1)));
  EXPECT_EQ(hangs[0].unknown_count, 1u);
}

TEST_F(NcclHangs, damage_of_what_a_share_tells_is_harmless) {
  finished(0, {});
  in_flight(0, {.sequence = 1, .call = 1, .time_ns = kEnd - 61 * kSecond});
  in_flight(0, {.region = kSend, .sequence = 1, .call = 2, .peer = 1});
  const auto make = [] { return std::make_unique<HangFinder>(); };
  test::expect_damage_is_harmless(make, model_, states()[0]);
}

TEST_F(NcclHangs, what_is_in_flight_for_a_moment_does_not_hang) {
  for (uint32_t rank : {0, 2}) in_flight(rank, {});
  EXPECT_THAT(run(), IsEmpty());
  EXPECT_THAT(lines(), IsEmpty());
}

TEST_F(NcclHangs, what_is_old_hangs_though_its_process_is_not_quiet) {
  in_flight(0, {.time_ns = kEnd - 61 * kSecond});
  const auto& hangs = run();
  ASSERT_EQ(hangs.size(), 1u);
  EXPECT_THAT(hangs[0].absent, ElementsAre(member(1), member(2)));
}

TEST_F(NcclHangs, a_process_that_went_on_is_not_quiet) {
  in_flight(0, {});
  quiet(0);
  events_[0].push_back(test::enter(kEnd - kSecond / 2, 0));
  EXPECT_THAT(run(), IsEmpty());
}

TEST_F(NcclHangs, a_wrong_operation_is_told_from_none) {
  for (uint32_t rank : {0, 1, 2}) finished(rank, {});
  for (uint32_t rank : {0, 1}) in_flight(rank, {.sequence = 1, .call = 1});
  in_flight(2, {.region = kAllGather, .call = 1, .bytes = 4096});
  quiet(0);
  const auto& hangs = run();
  ASSERT_EQ(hangs.size(), 1u);  // nobody that is in the other one is quiet
  EXPECT_THAT(lines(), testing::Contains(HasSubstr(
                           "rank 2 on n1 (pid 102) is in ncclAllGather 1 of 4 096 bytes instead")));
  EXPECT_THAT(finding(), HasSubstr("is in ncclAllGather instead"));
}

TEST_F(NcclHangs, bytes_that_differ_are_told) {
  for (uint32_t rank : {0, 1}) in_flight(rank, {});
  in_flight(2, {.bytes = 128});
  quiet(1);
  ASSERT_EQ(run().size(), 1u);
  EXPECT_TRUE(finder_.report().nccl[0].differs);
  EXPECT_THAT(lines(), testing::Contains(HasSubstr("128 bytes: 2")));
}

TEST_F(NcclHangs, operations_behind_the_first_are_not_hangs_of_their_own) {
  for (uint32_t call : {0, 1, 2}) in_flight(0, {.sequence = call, .call = call});
  quiet(0);
  const auto& hangs = run();
  ASSERT_EQ(hangs.size(), 1u);
  EXPECT_EQ(hangs[0].sequence, 0u);
}

TEST_F(NcclHangs, members_that_are_beyond_and_unknown_ones_are_not_accused) {
  in_flight(0, {.sequence = 1});
  finished(1, {.sequence = 1});
  lose(2, 1);
  quiet(0);
  const auto& hangs = run();
  ASSERT_EQ(hangs.size(), 1u);
  EXPECT_THAT(hangs[0].passed, ElementsAre(member(1)));
  EXPECT_EQ(hangs[0].unknown_count, 1u);
  EXPECT_THAT(hangs[0].absent, IsEmpty());
}

TEST_F(NcclHangs, who_went_on_after_a_hole_is_known_again) {
  in_flight(0, {.sequence = 1, .call = 1});
  finished(1, {.time_ns = kEnd - 30 * kSecond});
  lose(1, kEnd - 20 * kSecond);  // the operation may have been in there
  finished(2, {.time_ns = kEnd - 10 * kSecond});
  lose(2, kEnd - 20 * kSecond);  // not here: the one before it came later
  quiet(0);
  const auto& hangs = run();
  ASSERT_EQ(hangs.size(), 1u);
  EXPECT_EQ(hangs[0].unknown_count, 1u);
  EXPECT_THAT(hangs[0].absent, ElementsAre(member(2)));
}

TEST_F(NcclHangs, a_pause_is_a_hole) {
  in_flight(0, {.sequence = 1, .call = 1});
  finished(2, {});
  finished(1, {.time_ns = kEnd - 30 * kSecond});
  model_.regions[kPause] = {"MPI_Pcontrol", RegionRole::kFunction, Paradigm::kMpi};
  events_[1].push_back(test::enter(kEnd - 20 * kSecond, 10 - kPause));
  events_[1].push_back(test::leave(kEnd - 20 * kSecond + 1, 10 - kPause));
  quiet(0);
  const auto& hangs = run();
  ASSERT_EQ(hangs.size(), 1u);
  EXPECT_EQ(hangs[0].unknown_count, 1u);
  EXPECT_THAT(hangs[0].absent, ElementsAre(member(2)));
}

TEST_F(NcclHangs, calls_that_are_missing_among_others_are_a_hole) {
  in_flight(0, {.sequence = 1, .call = 1});
  finished(1, {.sequence = 0, .call = 0});
  finished(1, {.region = kAllGather, .sequence = 7, .call = 9});
  finished(2, {.sequence = 0, .call = 0});
  finished(2, {.region = kAllGather, .sequence = 0, .call = 1});
  quiet(0);
  const auto& hangs = run();
  ASSERT_EQ(hangs.size(), 1u);
  EXPECT_EQ(hangs[0].unknown_count, 1u);
  EXPECT_THAT(hangs[0].absent, ElementsAre(member(2)));
}

TEST_F(NcclHangs, first_calls_that_are_missing_may_have_been_anything) {
  for (uint32_t rank : {0, 2}) enqueued(rank, {.region = kAllGather});
  for (uint32_t rank : {0, 1, 2}) enqueued(rank, {.call = 1});
  quiet(0);
  run();
  for (const NcclHang& hang : finder_.report().nccl) EXPECT_THAT(hang.absent, IsEmpty());
}

TEST_F(NcclHangs, what_was_in_flight_before_a_hole_may_be_over) {
  in_flight(0, {.time_ns = kEnd - 90 * kSecond});
  lose(0, kEnd - 80 * kSecond);
  quiet(0);
  EXPECT_THAT(run(), IsEmpty());
}

/// Processes that end by _exit() give nothing up.
TEST_F(NcclHangs, what_is_in_flight_at_the_end_of_its_process_does_not_get_older) {
  for (const bool is_killed : {false, true}) {
    finder_ = HangFinder();
    for (auto& events : events_) events.clear();
    for (uint32_t rank : {0, 1}) finished(rank, {.time_ns = kEnd - 101 * kSecond});
    in_flight(2, {.time_ns = kEnd - 101 * kSecond});
    ProcessExitDefinition& exit = processes_[2].exit.emplace();
    exit.signal = is_killed ? 15 : 0;
    exit.end_ticks = kEnd - 100 * kSecond;  // without clocks these are nanoseconds
    EXPECT_THAT(run(), IsEmpty());
    finder_ = HangFinder();
    exit.end_ticks = kEnd - 41 * kSecond;
    EXPECT_EQ(run().size(), is_killed ? 1u : 0u) << "in flight for a minute";
  }
}

/// Its clock is 200 s behind that of the reference.
TEST_F(NcclHangs, the_end_of_a_process_is_by_the_clock_of_the_reference) {
  model_.cluster.nodes.resize(1);
  model_.cluster.nodes[0].offset_ns = 200 * int64_t{kSecond};
  in_flight(2, {.time_ns = kEnd - 101 * kSecond});
  ProcessExitDefinition& exit = processes_[2].exit.emplace();
  exit.signal = 15;
  exit.end_ticks = kEnd - 200 * kSecond;
  EXPECT_EQ(run().size(), 1u);
}

/// ncclCommAbort of a watchdog: nobody is quiet, and nothing is a minute old.
TEST_F(NcclHangs, what_is_given_up_in_flight_hangs) {
  for (uint32_t rank : {0, 2}) {
    in_flight(rank, {});
    add(rank, kNcclInFlight | kNcclAbandoned, {});
    operations_.back().end_ns += 2 * kSecond;
  }
  const auto& hangs = run();
  ASSERT_EQ(hangs.size(), 1u);
  EXPECT_THAT(hangs[0].absent, ElementsAre(member(1)));
}

TEST_F(NcclHangs, what_is_given_up_at_once_does_not) {
  add(0, kNcclInFlight | kNcclAbandoned, {});
  operations_.back().end_ns += kSecond / 2;
  EXPECT_THAT(run(), IsEmpty());
}

/// The CPU of a healthy program is seconds ahead of its GPU when it exits.
TEST_F(NcclHangs, what_is_given_up_while_others_end_does_not) {
  finished(0, {});
  operations_.back().end_ns += kSecond;
  in_flight(0, {.sequence = 1, .call = 1});
  add(0, kNcclInFlight | kNcclAbandoned, {.sequence = 1, .call = 1});
  operations_.back().end_ns += 3 * kSecond / 2;
  EXPECT_THAT(run(), IsEmpty());
}

/// Its end was not told, as where the level changed with it.
TEST_F(NcclHangs, what_was_launched_before_what_has_ended_is_over) {
  for (uint32_t call : {0, 1, 2}) {
    in_flight(0, {.sequence = call, .call = call});
    operations_.back().launch_ns = kEnd - (10 - call / 2) * kSecond;  // 0 and 1 together
  }
  finished(0, {.sequence = 2, .call = 2});
  operations_.back().launch_ns = kEnd - 9 * kSecond;
  quiet(0);
  EXPECT_THAT(run(), IsEmpty());
}

TEST_F(NcclHangs, what_was_launched_with_what_has_ended_may_hang) {
  for (uint32_t call : {0, 1}) {
    in_flight(0, {.sequence = call, .call = call});
    operations_.back().launch_ns = kEnd - 10 * kSecond;
  }
  finished(0, {.sequence = 1, .call = 1});
  operations_.back().launch_ns = kEnd - 10 * kSecond;
  quiet(0);
  EXPECT_EQ(run().size(), 1u);
}

/// Of what graphs launch again no launch is told.
TEST_F(NcclHangs, what_was_enqueued_before_what_a_graph_has_ended_is_over) {
  for (uint32_t rank : {0, 1, 2}) {
    in_flight(rank, {.time_ns = kEnd - 300 * kSecond});
    operations_.back().launch_ns = kEnd - 300 * kSecond;
    for (uint32_t i = 1; i < 100; ++i)
      add(rank, kNcclGpuTimed | kNcclReplayed,
          {.sequence = i, .call = i, .time_ns = kEnd - (300 - i) * kSecond});
  }
  EXPECT_THAT(run(), IsEmpty());
  for (uint32_t rank : {0, 1}) {
    in_flight(rank, {.sequence = 100, .call = 100, .time_ns = kEnd - 100 * kSecond});
    operations_.back().launch_ns = kEnd - 100 * kSecond;
  }
  finder_ = HangFinder();
  ASSERT_EQ(run().size(), 1u) << "and hides no hang";
  EXPECT_EQ(finder_.report().nccl[0].sequence, 100u);
}

/// Of interface v4, and of what graphs launch again, no launch is known.
TEST_F(NcclHangs, without_launches_what_was_enqueued_before_what_has_ended_is_over) {
  for (const uint32_t more : {uint32_t{0}, uint32_t{kNcclReplayed}}) {
    finder_ = HangFinder();
    for (auto& events : events_) events.clear();
    for (uint32_t rank : {0, 1, 2}) {
      add(rank, kNcclInFlight | more, {.time_ns = kEnd - 300 * kSecond});
      for (uint32_t i = 1; i < 100; ++i)
        add(rank, kNcclGpuTimed | more,
            {.sequence = i, .call = i, .time_ns = kEnd - (300 - i) * kSecond});
    }
    EXPECT_THAT(run(), IsEmpty());
    for (uint32_t rank : {0, 1})
      add(rank, kNcclInFlight | more,
          {.sequence = 100, .call = 100, .time_ns = kEnd - 100 * kSecond});
    finder_ = HangFinder();
    ASSERT_EQ(run().size(), 1u) << "and hides no hang";
    EXPECT_EQ(finder_.report().nccl[0].sequence, 100u);
    EXPECT_THAT(finder_.report().nccl[0].absent, ElementsAre(member(2)));
  }
}

/// NCCL begins all operations of a kernel before it says of the first one that it is enqueued.
TEST_F(NcclHangs, without_launches_what_is_of_one_kernel_with_what_has_ended_may_hang) {
  for (uint32_t i = 0; i < 200; ++i) {
    in_flight(0, {.sequence = i, .call = i, .time_ns = kEnd - 80 * kSecond + i});
    operations_.back().end_ns = kEnd - 80 * kSecond + 200 + i;
  }
  for (uint32_t i = 1; i < 200; ++i)
    finished(0, {.sequence = i, .call = i, .time_ns = kEnd - 80 * kSecond + i});
  ASSERT_EQ(run().size(), 1u);
  EXPECT_EQ(finder_.report().nccl[0].sequence, 0u);
}

TEST_F(NcclHangs, where_the_level_was_lowered_who_is_behind_is_told) {
  for (uint32_t rank : {0, 1, 2}) finished(rank, {});
  for (uint32_t rank : {0, 1, 2}) enqueued(rank, {.sequence = 1, .call = 1});
  for (uint32_t rank : {0, 2}) enqueued(rank, {.sequence = 2, .call = 2});
  quiet(2);
  const auto& hangs = run();
  ASSERT_EQ(hangs.size(), 1u);
  EXPECT_TRUE(hangs[0].is_enqueued_only);
  EXPECT_THAT(hangs[0].absent, ElementsAre(member(1)));
}

TEST_F(NcclHangs, where_the_level_was_raised_times_tell) {
  for (uint32_t rank : {0, 1, 2}) enqueued(rank, {});
  for (uint32_t rank : {0, 2}) {
    finished(rank, {.sequence = 1, .call = 1});
    in_flight(rank, {.sequence = 1, .call = 1});
  }
  finished(1, {.sequence = 0, .call = 1});
  quiet(2);
  EXPECT_THAT(run(), IsEmpty());
}

TEST_F(NcclHangs, of_a_transfer_the_other_end_is_missed) {
  in_flight(1, {.region = kReceive, .sequence = 2, .peer = 2});
  finished(2, {.region = kSend, .sequence = 1, .peer = 1});
  quiet(1);
  const auto& hangs = run();
  ASSERT_EQ(hangs.size(), 1u);
  EXPECT_THAT(hangs[0].absent, ElementsAre(member(2)));
  EXPECT_THAT(lines()[0], HasSubstr("ncclRecv 3 of world (between ranks 1 and 2 of it"));
}

TEST_F(NcclHangs, of_a_transfer_that_the_other_end_has_called_nobody_is_missed) {
  in_flight(1, {.region = kReceive, .sequence = 2, .peer = 2});
  finished(2, {.region = kSend, .sequence = 2, .peer = 1});
  quiet(1);
  const auto& hangs = run();
  ASSERT_EQ(hangs.size(), 1u);
  EXPECT_THAT(hangs[0].absent, IsEmpty());
  EXPECT_THAT(hangs[0].passed, ElementsAre(member(2)));
}

TEST_F(NcclHangs, without_times_on_the_gpu_only_who_is_behind_is_told) {
  for (uint32_t rank : {0, 1, 2}) enqueued(rank, {});
  for (uint32_t rank : {0, 2}) enqueued(rank, {.sequence = 1, .call = 1});
  quiet(2);
  const auto& hangs = run();
  ASSERT_EQ(hangs.size(), 1u);
  EXPECT_TRUE(hangs[0].is_enqueued_only);
  EXPECT_THAT(hangs[0].absent, ElementsAre(member(1)));
  EXPECT_THAT(lines()[0], HasSubstr("at level api NCCL does not tell what has ended"));
}

TEST_F(NcclHangs, without_times_a_wrong_operation_is_told_and_those_that_came_are_not_accused) {
  for (uint32_t rank : {0, 1, 2}) enqueued(rank, {});
  for (uint32_t rank : {0, 1}) enqueued(rank, {.sequence = 1, .call = 1});
  enqueued(2, {.region = kAllGather, .call = 1, .bytes = 4096, .time_ns = kEnd - 4 * kSecond});
  for (uint32_t rank : {0, 1, 2}) quiet(rank);
  const auto& hangs = run();
  ASSERT_EQ(hangs.size(), 1u);
  EXPECT_EQ(hangs[0].region, kAllReduce);
  EXPECT_THAT(hangs[0].absent, ElementsAre(member(2)));
  EXPECT_THAT(lines(), testing::Contains(HasSubstr(
                           "rank 2 on n1 (pid 102) has enqueued ncclAllGather 1 of 4 096 bytes "
                           "instead: one of them is wrong")));
  EXPECT_EQ(finding(),
            "ranks 0-1 are quiet behind ncclAllReduce 2 of world, rank 2 on n1 (pid 102) "
            "has enqueued ncclAllGather instead");
  expect_same_of_shares();
}

TEST_F(NcclHangs, without_times_the_wrong_operation_is_named_though_all_went_on_behind_it) {
  for (uint32_t rank : {0, 1, 2}) enqueued(rank, {});
  for (uint32_t rank : {0, 1}) {
    enqueued(rank, {.sequence = 1, .call = 1});
    enqueued(rank, {.sequence = 2, .call = 2});
  }
  enqueued(2, {.region = kAllGather, .call = 1});
  enqueued(2, {.sequence = 1, .call = 2, .time_ns = kEnd - 4 * kSecond});
  for (uint32_t rank : {0, 1, 2}) quiet(rank);
  const auto& hangs = run();
  ASSERT_EQ(hangs.size(), 1u);
  EXPECT_EQ(hangs[0].region, kAllReduce);
  ASSERT_EQ(hangs[0].wrong.size(), 1u);
  EXPECT_EQ(hangs[0].wrong[0].region, kAllGather);
}

TEST_F(NcclHangs, without_times_one_operation_too_many_accuses_nobody_else) {
  for (uint32_t rank : {0, 1, 2}) enqueued(rank, {});
  enqueued(2, {.region = kAllGather, .call = 1});
  for (uint32_t rank : {0, 1, 2}) enqueued(rank, {.sequence = 1, .call = rank == 2 ? 2u : 1u});
  for (uint32_t rank : {0, 1, 2}) quiet(rank);
  ASSERT_EQ(run().size(), 1u);
  EXPECT_THAT(lines()[0],
              HasSubstr("ncclAllGather 1 of world: some have not come to it and went on "
                        "without it"));
  EXPECT_EQ(finding(),
            "rank 2 is quiet behind ncclAllGather 1 of world, 2 others went on without it");
}

class NcclHangsOfFour : public NcclHangs {
 protected:
  NcclHangsOfFour() : NcclHangs(4) {}
};

TEST_F(NcclHangsOfFour, without_times_one_that_is_late_hides_no_wrong_one) {
  for (uint32_t rank : {0, 1, 2, 3}) enqueued(rank, {});
  for (uint32_t rank : {0, 1}) enqueued(rank, {.sequence = 1, .call = 1});
  enqueued(2, {.region = kAllGather, .call = 1});
  for (uint32_t rank : {0, 1, 2, 3}) quiet(rank);
  const auto& hangs = run();
  ASSERT_EQ(hangs.size(), 1u);
  EXPECT_EQ(hangs[0].region, kAllReduce);
  EXPECT_THAT(hangs[0].absent, ElementsAre(member(2), member(3)));
  EXPECT_THAT(finding(),
              HasSubstr("has enqueued ncclAllGather instead, and 1 more did not arrive"));
}

TEST_F(NcclHangs, without_times_nobody_is_wrong_where_those_that_came_have_holes) {
  for (uint32_t rank : {0, 1, 2}) enqueued(rank, {});
  for (uint32_t rank : {0, 1}) enqueued(rank, {.sequence = 1, .call = 5});
  lose(0, kEnd - 50 * kSecond);
  enqueued(2, {.region = kAllGather, .call = 1});
  for (uint32_t rank : {0, 1}) quiet(rank);
  const auto& hangs = run();
  ASSERT_EQ(hangs.size(), 1u);
  EXPECT_THAT(hangs[0].absent, ElementsAre(member(2)));
  EXPECT_TRUE(hangs[0].wrong.empty()) << "the AllGather may lie in the hole";
}

TEST_F(NcclHangs, without_times_who_is_behind_in_two_functions_did_not_come_to_either) {
  for (uint32_t rank : {0, 1, 2}) enqueued(rank, {});
  for (uint32_t rank : {0, 1}) {
    enqueued(rank, {.sequence = 1, .call = 1});
    enqueued(rank, {.region = kAllGather, .call = 2});
  }
  for (uint32_t rank : {0, 1, 2}) quiet(rank);
  const auto& hangs = run();
  ASSERT_EQ(hangs.size(), 2u);
  for (const NcclHang& hang : hangs) {
    EXPECT_THAT(hang.absent, ElementsAre(member(2)));
    EXPECT_TRUE(hang.wrong.empty());
  }
}

TEST_F(NcclHangs, without_times_nobody_is_behind_where_nobody_is_quiet) {
  for (uint32_t rank : {0, 1, 2}) enqueued(rank, {});
  for (uint32_t rank : {0, 2}) enqueued(rank, {.sequence = 1, .call = 1});
  EXPECT_THAT(run(), IsEmpty());
}

TEST_F(NcclHangs, a_stack_of_before_the_last_call_is_not_shown) {
  in_flight(0, {.time_ns = kEnd - 61 * kSecond});
  events_[0].push_back(test::enter(kEnd - kSecond / 2, 0));
  quiet(0, {"old"});
  run();
  for (const std::string& line : lines()) EXPECT_THAT(line, testing::Not(HasSubstr("old")));
}

}  // namespace
}  // namespace aon::writers
