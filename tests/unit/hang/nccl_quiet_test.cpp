// Processes that record nothing, without times on the GPU, where all have enqueued as much: it is
// said behind what they are quiet, and nobody is accused.

#include "tests/unit/hang/nccl_hang_fixture.h"

namespace aon::writers {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class NcclQuiet : public NcclHangs {
 protected:
  NcclQuiet() {
    for (uint32_t rank = 0; rank < 3; ++rank) {
      enqueued(rank, {.time_ns = kEnd - 30 * kSecond});
      enqueued(rank, {.sequence = 1, .call = 1, .time_ns = kEnd - 20 * kSecond});
    }
  }
  void all_are_quiet() {
    for (uint32_t rank = 0; rank < 3; ++rank) quiet(rank, {"synchronize", "main"});
  }
  void end(uint32_t rank, int32_t exit_code, int32_t signal, uint64_t time_ns) {
    ProcessExitDefinition& exit = processes_[rank].exit.emplace();
    exit.exit_code = exit_code;
    exit.signal = signal;
    exit.end_ticks = time_ns;
  }
};

TEST_F(NcclQuiet, is_told_with_where_they_stand_and_is_no_hang) {
  all_are_quiet();
  EXPECT_THAT(run(), IsEmpty());
  EXPECT_THAT(lines(),
              ElementsAre("ranks 0-2 are quiet behind ncclAllReduce 2 of world, for 20 s; all have "
                          "enqueued it; at level api NCCL does not tell whether it has ended "
                          "(AON_NCCL_LEVEL=gpu does)",
                          "    0-2 stand in synchronize < main (runs)"));
  EXPECT_EQ(finding(), "") << "nothing has ended badly";
  expect_same_of_shares();
}

TEST_F(NcclQuiet, is_a_finding_of_a_job_that_did_not_end_well_alone) {
  all_are_quiet();
  for (uint32_t rank = 0; rank < 3; ++rank) end(rank, -1, 15, kEnd);
  run();
  EXPECT_EQ(finding(),
            "ranks 0-2 are quiet behind ncclAllReduce 2 of world, for 20 s; all have enqueued it");
  for (uint32_t rank = 0; rank < 3; ++rank) end(rank, 0, 0, kEnd);
  finder_ = HangFinder();
  run();
  EXPECT_EQ(finding(), "");
  EXPECT_THAT(lines(), IsEmpty());
}

TEST_F(NcclQuiet, is_told_with_who_was_killed_behind_it) {
  end(2, -1, 9, kEnd - 19 * kSecond);
  for (const uint32_t rank : {0u, 1u}) quiet(rank);
  run();
  EXPECT_THAT(
      lines(),
      Contains(HasSubstr("rank 2 on n1 (pid 102) had enqueued ncclAllReduce 2 of world; it was "
                         "ended by signal 9; ranks 0-1 are quiet behind it, for 20 s; all have")));
}

/// What graphs launch again is not told at level api.
TEST_F(NcclQuiet, is_not_told_where_the_newest_call_was_captured_by_a_graph) {
  for (uint32_t rank = 0; rank < 3; ++rank) {
    for (uint32_t i = 2; i < 50; ++i)
      add(rank, kNcclGraphCaptured | kNcclNoWork, {.call = i, .time_ns = kEnd - 15 * kSecond});
    end(rank, -1, 15, kEnd);
  }
  all_are_quiet();
  run();
  EXPECT_THAT(lines(), IsEmpty());
  EXPECT_EQ(finding(), "");
  HangFinder combiner;
  test::combine({&combiner}, model_, states());
  EXPECT_THAT(combiner.report().nccl_quiet, IsEmpty());
  for (uint32_t rank = 0; rank < 3; ++rank)
    enqueued(rank, {.sequence = 2, .call = 50, .time_ns = kEnd - 10 * kSecond});
  finder_ = HangFinder();
  EXPECT_THAT(run(), IsEmpty());
  EXPECT_THAT(lines(), Contains(HasSubstr("ranks 0-2 are quiet behind ncclAllReduce 3 of world")));
  expect_same_of_shares();
}

TEST_F(NcclQuiet, is_not_told_where_the_newest_launch_was_of_a_graph) {
  for (uint32_t rank = 0; rank < 3; ++rank)
    add(rank, kNcclReplayed | kNcclUncounted,
        {.sequence = 2, .call = 2, .time_ns = kEnd - 15 * kSecond});
  all_are_quiet();
  run();
  EXPECT_THAT(lines(), IsEmpty());
}

/// Of several communicators the newest call is that of the process.
TEST_F(NcclQuiet, is_not_told_where_the_newest_call_on_another_communicator_was_captured) {
  model_.communicators.push_back(model_.communicators[0]);
  for (uint32_t rank = 0; rank < 3; ++rank) {
    model_.groups[rank].communicator_map[8] = 1;
    processes_[rank].communicators[8] = processes_[rank].communicators[7];
    add(rank, kNcclGraphCaptured | kNcclNoWork,
        {.time_ns = kEnd - (rank == 2 ? 25 : 15) * kSecond});
    operations_.back().communicator = 8;
  }
  all_are_quiet();
  run();
  EXPECT_THAT(lines(), Contains(HasSubstr("rank 2 is quiet behind ncclAllReduce 2 of world")));
}

/// Rank 2 is not quiet and was ended with the others; a thread of its own had enqueued it.
TEST_F(NcclQuiet, is_told_with_the_stack_of_the_thread_that_enqueued_it) {
  model_.locations[2].slot = 3;
  processes_[2].streams[{uint16_t{3}, uint16_t{0}}].tid = 502;
  for (const uint32_t rank : {0u, 1u}) quiet(rank, {"main"});
  for (const int32_t tid : {102, 502})
    model_.stacks.push_back({2, tid, kEnd, 0, {tid == 502 ? "backward" : "main"}, "runs"});
  for (uint32_t rank = 0; rank < 3; ++rank) end(rank, -1, 15, kEnd);
  run();
  EXPECT_THAT(lines(), Contains("    2 stands in backward (runs)"));
}

TEST_F(NcclQuiet, is_told_of_those_that_are) {
  quiet(1);
  run();
  EXPECT_THAT(lines(), Contains(HasSubstr("rank 1 is quiet behind ncclAllReduce 2 of world")));
}

TEST_F(NcclQuiet, is_not_said_of_members_with_holes_that_they_have_enqueued_it) {
  events_[2].clear();
  lose(2, kEnd - 25 * kSecond);
  all_are_quiet();
  run();
  EXPECT_THAT(lines(), Contains(HasSubstr("ranks 0-1 are quiet behind ncclAllReduce 2 of world, "
                                          "for 20 s; of 1 members it is not known")));
}

TEST_F(NcclQuiet, is_not_told_where_times_tell_that_all_has_ended) {
  for (uint32_t rank = 0; rank < 3; ++rank)
    finished(rank, {.sequence = 2, .call = 2, .time_ns = kEnd - 15 * kSecond});
  all_are_quiet();
  run();
  EXPECT_THAT(lines(), IsEmpty());
}

TEST_F(NcclQuiet, is_not_told_of_who_is_in_a_hang) {
  for (const uint32_t rank : {0u, 1u})
    enqueued(rank, {.sequence = 2, .call = 2, .time_ns = kEnd - 15 * kSecond});
  all_are_quiet();
  EXPECT_EQ(run().size(), 1u);
  EXPECT_THAT(finder_.report().nccl_quiet, IsEmpty());
}

TEST_F(NcclQuiet, is_not_told_of_who_is_in_a_call_that_does_not_return) {
  model_.open_calls.push_back({.group = 1,
                               .slot = 1,
                               .tid = 101,
                               .region = 0,
                               .communicator = {},
                               .peer = kNoPeer,
                               .start_ns = kEnd});
  all_are_quiet();
  run();
  EXPECT_THAT(lines(), Contains(HasSubstr("ranks 0, 2 are quiet behind ncclAllReduce 2")));
}

TEST_F(NcclQuiet, names_the_pair_of_a_transfer) {
  enqueued(0, {.region = kReceive, .call = 2, .peer = 1, .time_ns = kEnd - 15 * kSecond});
  enqueued(1, {.region = kSend, .call = 2, .peer = 0, .time_ns = kEnd - 15 * kSecond});
  quiet(0);
  run();
  EXPECT_THAT(lines(), Contains(HasSubstr("rank 0 is quiet behind ncclRecv 1 of world from rank 1 "
                                          "of it, for 15 s; the other end is enqueued")));
}

}  // namespace
}  // namespace aon::writers
