// What is said of each member of a communicator of NCCL: in the operation, behind it, beyond it,
// dead in it; of which process's members, and by the stacks of which threads.

#include "tests/unit/hang/nccl_hang_fixture.h"

namespace aon::writers {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class NcclMembers : public NcclHangs {
 protected:
  explicit NcclMembers(uint32_t ranks = 3) : NcclHangs(ranks) {}

  void all_finished(const Told& told) {
    for (uint32_t rank = 0; rank < 3; ++rank) finished(rank, told);
  }
  void all_are_quiet() {
    for (uint32_t rank = 0; rank < 3; ++rank) quiet(rank);
  }
  /// `region` ends on ranks 0 and 1 and not on 2; the others are in an AllReduce behind it.
  void hold_rank_2(uint32_t region, uint64_t sequence, uint64_t next) {
    all_finished({.time_ns = kEnd - 30 * kSecond});
    const Told held{
        .region = region, .sequence = sequence, .call = 1, .time_ns = kEnd - 20 * kSecond};
    for (const uint32_t rank : {0u, 1u}) {
      finished(rank, held);
      in_flight(rank, {.sequence = next, .call = 2, .time_ns = kEnd - 15 * kSecond});
    }
    in_flight(2, held);
    all_are_quiet();
  }
  void end(uint32_t rank, int32_t signal, uint64_t time_ns) {
    ProcessExitDefinition& exit = processes_[rank].exit.emplace();
    exit.signal = signal;
    exit.exit_code = -1;
    exit.end_ticks = time_ns;  // without clocks these are nanoseconds
  }
  /// Rank 0's process is rank 1 of the communicator, too, on its second GPU.
  void two_members_in_one_process() {
    model_.communicators[0].rank_count = 2;
    CommunicatorDefinition definition{};
    definition.kind = CommunicatorKind::kNccl;
    definition.rank = 1;
    definition.reserved[kNcclDevice] = 2;
    processes_[0].communicators[8].definition = definition;
    model_.groups[0].communicator_map[8] = 0;
    for (const uint32_t rank : {1u, 2u}) processes_[rank].communicators.clear();
  }
};

TEST_F(NcclMembers, who_is_behind_in_the_same_function_is_not_in_a_wrong_one) {
  hold_rank_2(kAllReduce, 1, 2);
  run();
  EXPECT_THAT(lines(), Contains("  rank 2 on n1 (pid 102) is still in ncclAllReduce 2 of 64 "
                                "bytes: its last call was over 20 s ago"));
  EXPECT_THAT(lines(), Not(Contains(HasSubstr("wrong"))));
  EXPECT_EQ(finding(),
            "ncclAllReduce 2 of world never ended: rank 2 is in it, ranks 0-1 are beyond it");
  expect_same_of_shares();
}

TEST_F(NcclMembers, who_is_behind_in_another_function_is_not_in_a_wrong_one) {
  hold_rank_2(kAllGather, 0, 1);
  run();
  EXPECT_THAT(lines(), Contains(HasSubstr("rank 2 on n1 (pid 102) is still in ncclAllGather 1")));
  EXPECT_THAT(lines(), Not(Contains(HasSubstr("wrong"))));
  EXPECT_EQ(finding(),
            "ncclAllGather 1 of world never ended: rank 2 is in it, ranks 0-1 are beyond it");
}

TEST_F(NcclMembers, who_may_have_done_it_in_a_hole_makes_nobody_wrong) {
  all_finished({});
  for (const uint32_t rank : {0u, 1u}) {
    lose(rank, kEnd - 10 * kSecond);
    in_flight(rank, {.sequence = 1, .call = 5});
  }
  in_flight(2, {.region = kAllGather, .call = 1});
  quiet(0);
  ASSERT_EQ(run().size(), 1u);
  EXPECT_THAT(finder_.report().nccl[0].wrong, IsEmpty());
  EXPECT_THAT(finding(), HasSubstr("rank 2 on n1 (pid 102) is still in ncclAllGather 1"));
}

TEST_F(NcclMembers, of_those_that_wait_for_each_other_both_are_told) {
  in_flight(0, {.region = kReceive, .peer = 1, .time_ns = kEnd - 6 * kSecond});
  for (const uint32_t rank : {1u, 2u}) in_flight(rank, {});
  all_are_quiet();
  EXPECT_EQ(run().size(), 2u);
  EXPECT_EQ(finding(),
            "ncclRecv 1 of world never ended: rank 0 is in it, rank 1 on n1 (pid 101) is still in "
            "ncclAllReduce 1");
  EXPECT_THAT(lines(), Contains(HasSubstr("rank 0 on n1 (pid 100) is still in ncclRecv 1 of 64 "
                                          "bytes from rank 1 of it: ")));
}

TEST_F(NcclMembers, the_other_end_of_a_transfer_that_is_in_it_is_not_beyond_it) {
  in_flight(0, {.region = kSend, .peer = 1});
  in_flight(1, {.region = kReceive, .peer = 0});
  for (const uint32_t rank : {0u, 1u}) quiet(rank);
  ASSERT_EQ(run().size(), 2u);
  EXPECT_THAT(lines(), Contains("  in the other end: 1"));
  EXPECT_THAT(lines(), Contains("  in the other end: 0"));
  EXPECT_THAT(lines(), Not(Contains(HasSubstr("beyond"))));
}

TEST_F(NcclMembers, who_has_called_it_and_is_in_an_earlier_one_is_not_beyond_it) {
  hold_rank_2(kAllGather, 0, 1);
  in_flight(2, {.sequence = 1, .call = 2, .time_ns = kEnd - 15 * kSecond});
  ASSERT_EQ(run().size(), 2u);
  EXPECT_THAT(finder_.report().nccl[1].passed, IsEmpty());
  EXPECT_THAT(lines(),
              Contains("  have called it, and are still in ncclAllGather 1 of 64 bytes: 2"));
  EXPECT_THAT(lines(), Contains("  are beyond it: 0-1"))
      << "of the AllGather, which has ended there";
  EXPECT_EQ(finding(),
            "ncclAllGather 1 of world never ended: rank 2 is in it, ranks 0-1 are beyond it");
  expect_same_of_shares();
}

TEST_F(NcclMembers, who_was_killed_in_it_is_told_first) {
  for (uint32_t rank = 0; rank < 3; ++rank) in_flight(rank, {.time_ns = kEnd - 20 * kSecond});
  end(2, 9, kEnd - 19 * kSecond);
  for (const uint32_t rank : {0u, 1u}) quiet(rank);
  ASSERT_EQ(run().size(), 1u);
  EXPECT_THAT(lines(), Contains("  in it: 0-1"));
  EXPECT_THAT(lines(), Contains("  rank 2 on n1 (pid 102) was in it; it was ended by signal 9"));
  EXPECT_EQ(finding(),
            "ncclAllReduce 1 of world never ended: rank 2 on n1 (pid 102) was in it; it was ended "
            "by signal 9; ranks 0-1 are in it");
  // All others were ended later.
  for (const uint32_t rank : {0u, 1u}) end(rank, 15, kEnd);
  EXPECT_THAT(lines(), Contains("  rank 2 on n1 (pid 102) was in it; it was ended by signal 9"));
}

TEST_F(NcclMembers, those_that_were_ended_together_are_not_told_apart) {
  for (uint32_t rank = 0; rank < 3; ++rank) {
    in_flight(rank, {.time_ns = kEnd - 20 * kSecond});
    end(rank, 15, kEnd - rank * kSecond);
  }
  all_are_quiet();
  ASSERT_EQ(run().size(), 1u);
  EXPECT_THAT(lines(), Contains("  in it: 0-2"));
  EXPECT_THAT(finding(), Not(HasSubstr("signal")));
}

/// Its node was lost, and with that who would have told its end: that is no sign of life.
TEST_F(NcclMembers, who_has_no_end_did_not_outlive_those_that_have_one) {
  for (uint32_t rank = 0; rank < 3; ++rank) in_flight(rank, {.time_ns = kEnd - 120 * kSecond});
  for (const uint32_t rank : {0u, 1u}) {
    end(rank, 15, kEnd);
    quiet(rank);
  }
  ASSERT_EQ(run().size(), 1u);
  EXPECT_THAT(lines(), Contains("  in it: 0-2"));
  EXPECT_THAT(lines(), Not(Contains(HasSubstr("was in it"))));
  EXPECT_EQ(finding(), "ncclAllReduce 1 of world never ended: ranks 0-2 are in it");
  EXPECT_THAT(hang_lines(model_, finder_.report(), kEnd + kSecond),
              Contains(HasSubstr("rank 0 on n1 (pid 100) was in it")))
      << "where the job goes on so does who has no end";
}

TEST_F(NcclMembers, of_one_process_are_told_apart) {
  two_members_in_one_process();
  for (const uint32_t communicator : {7u, 8u}) {
    finished(0, {.time_ns = kEnd - 30 * kSecond});
    operations_.back().communicator = communicator;
  }
  in_flight(0, {.sequence = 1, .call = 1, .time_ns = kEnd - 20 * kSecond});
  quiet(0);
  ASSERT_EQ(run().size(), 1u);
  EXPECT_THAT(lines(), Contains("  in it: 0 (rank 0 of it)"));
  EXPECT_THAT(lines(), Contains(HasSubstr("  rank 0 on n1 (pid 100; rank 1 of it, GPU 1) did not "
                                          "arrive: ")));
  EXPECT_EQ(finding(),
            "ncclAllReduce 2 of world never ended: rank 0 (rank 0 of it) is in it, rank 0 on n1 "
            "(pid 100; rank 1 of it, GPU 1) did not arrive");
}

TEST_F(NcclMembers, of_one_process_that_are_in_it_are_listed) {
  two_members_in_one_process();
  for (const uint32_t communicator : {7u, 8u}) {
    in_flight(0, {.time_ns = kEnd - 20 * kSecond});
    operations_.back().communicator = communicator;
  }
  quiet(0);
  ASSERT_EQ(run().size(), 1u);
  EXPECT_THAT(lines(), Contains("  in it: 0 (ranks 0-1 of it)"));
}

class NcclThreads : public NcclMembers {
 protected:
  /// Ranks 0 and 2 are called by threads of their own, of which that of 2 has no stack.
  NcclThreads() {
    for (const uint32_t rank : {0u, 2u}) {
      model_.locations[rank].slot = 3;
      processes_[rank].streams[{uint16_t{3}, uint16_t{0}}].tid = static_cast<int32_t>(500 + rank);
    }
    for (uint32_t rank = 0; rank < 3; ++rank) quiet(rank, {"main"});
    model_.stacks.push_back({0, 500, kEnd - kSecond, kEnd - 4 * kSecond, {"backward"}, "runs"});
  }
};

TEST_F(NcclThreads, the_one_that_called_it_is_shown) {
  for (uint32_t rank = 0; rank < 3; ++rank) in_flight(rank, {});
  ASSERT_EQ(run().size(), 1u);
  EXPECT_THAT(lines(), testing::IsSupersetOf(
                           {"    0 stands in backward (runs)", "    1-2 stand in main (runs)"}));
  expect_same_of_shares();
}

TEST_F(NcclThreads, of_who_did_not_arrive_the_one_that_calls_its_operations_is_shown) {
  for (uint32_t rank = 0; rank < 3; ++rank) finished(rank, {});
  in_flight(0, {});  // told by that thread; the end was told by another one
  for (const uint32_t rank : {1u, 2u}) in_flight(rank, {.sequence = 1, .call = 1});
  ASSERT_EQ(run().size(), 1u);
  EXPECT_THAT(lines(), Contains("    0 stands in backward (runs)"));
}

TEST_F(NcclThreads, at_level_api_the_one_that_called_it_is_shown) {
  for (uint32_t rank = 0; rank < 3; ++rank) enqueued(rank, {});
  for (const uint32_t rank : {0u, 1u}) enqueued(rank, {.sequence = 1, .call = 1});
  ASSERT_EQ(run().size(), 1u);
  EXPECT_THAT(lines(), Contains("    0 stands in backward (runs)"));
}

}  // namespace
}  // namespace aon::writers
