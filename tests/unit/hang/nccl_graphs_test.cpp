// Graphs that launch operations of NCCL again: nobody is accused by operations that NCCL does not
// count, and of which it does not tell all members.

#include "tests/unit/hang/nccl_hang_fixture.h"

namespace aon::writers {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr uint32_t kUncountedCall = kNcclGraphCaptured | kNcclNoWork | kNcclUncounted;
constexpr uint32_t kUncountedLaunch = kNcclReplayed | kNcclUncounted;

class NcclGraphs : public NcclHangs {
 protected:
  /// All have enqueued five AllReduces, then captured one.
  void begin(uint32_t capture_flags = kUncountedCall) {
    for (uint32_t rank = 0; rank < 3; ++rank) {
      for (uint32_t i = 0; i < 5; ++i)
        enqueued(rank, {.sequence = i, .call = i, .time_ns = kEnd - (20 - i) * kSecond});
      add(rank, capture_flags, {.call = 5, .bytes = 4096, .time_ns = kEnd - 12 * kSecond});
    }
  }
  void all_are_quiet() {
    for (uint32_t rank = 0; rank < 3; ++rank) quiet(rank);
  }
  void launch(uint32_t rank, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      add(rank, kUncountedLaunch,
          {.sequence = 5, .call = 6 + i, .bytes = 4096, .time_ns = kEnd - (10 - i) * kSecond});
    }
  }
};

TEST_F(NcclGraphs, what_one_member_alone_is_told_of_accuses_nobody) {
  begin();
  launch(0, 3);
  all_are_quiet();
  EXPECT_THAT(run(), IsEmpty());
  EXPECT_THAT(finder_.report().nccl_disagreements, IsEmpty());
  EXPECT_EQ(finding(), "");
}

TEST_F(NcclGraphs, who_has_launched_one_more_accuses_nobody) {
  begin();
  launch(0, 2);
  launch(1, 1);
  launch(2, 2);
  all_are_quiet();
  EXPECT_THAT(run(), IsEmpty());
  EXPECT_THAT(finder_.report().nccl_disagreements, IsEmpty());
}

TEST_F(NcclGraphs, who_has_not_come_to_what_was_called_behind_them_is_told) {
  begin();
  launch(0, 3);
  for (const uint32_t rank : {0u, 2u}) enqueued(rank, {.sequence = 5, .call = rank == 0 ? 9u : 6u});
  all_are_quiet();
  ASSERT_EQ(run().size(), 1u);
  EXPECT_EQ(finder_.report().nccl[0].sequence, 5u);
  EXPECT_THAT(finder_.report().nccl[0].absent, testing::ElementsAre(member(1)));
}

/// NCCL 2.27 does not say that it is a graph's.
TEST_F(NcclGraphs, whose_launches_have_the_number_of_the_next_call_accuse_nobody) {
  for (uint32_t rank = 0; rank < 3; ++rank) {
    for (uint32_t i = 0; i < 5; ++i)
      enqueued(rank, {.sequence = i, .call = i, .time_ns = kEnd - (20 - i) * kSecond});
  }
  for (uint32_t i = 0; i < 2; ++i) enqueued(0, {.sequence = 5, .call = 5 + i, .bytes = 4096});
  all_are_quiet();
  EXPECT_THAT(run(), IsEmpty());
  EXPECT_THAT(finder_.report().nccl_disagreements, IsEmpty());
  expect_same_of_shares();
}

TEST_F(NcclGraphs, transfers_that_they_launch_again_are_not_counted) {
  for (uint32_t rank = 0; rank < 2; ++rank) {
    const uint32_t region = rank == 0 ? kSend : kReceive;
    const auto peer = static_cast<int32_t>(1 - rank);
    enqueued(rank, {.region = region, .peer = peer, .time_ns = kEnd - 20 * kSecond});
    add(rank, kUncountedCall, {.region = region, .call = 1, .peer = peer});
  }
  for (uint32_t i = 0; i < 3; ++i)
    add(0, kUncountedLaunch, {.region = kSend, .sequence = 1, .call = 2 + i, .peer = 1});
  all_are_quiet();
  EXPECT_THAT(run(), IsEmpty());
}

/// Rank 2's node had been lowered to level api: what graphs launch is not counted there.
TEST_F(NcclGraphs, members_that_captured_at_different_levels_are_not_compared) {
  for (uint32_t rank = 0; rank < 3; ++rank) {
    finished(rank, {.time_ns = kEnd - 30 * kSecond});
    const uint32_t uncounted = rank == 2 ? uint32_t{kNcclUncounted} : 0;
    add(rank, kNcclGraphCaptured | kNcclNoWork | uncounted,
        {.call = 1, .time_ns = kEnd - 25 * kSecond});
  }
  for (const uint32_t rank : {0u, 1u}) {
    for (uint32_t i = 0; i < 4; ++i)
      add(rank, kNcclReplayed | kNcclGpuTimed,
          {.sequence = 1 + i, .call = 2 + i, .time_ns = kEnd - (20 - i) * kSecond});
    in_flight(rank, {.sequence = 5, .call = 6});
  }
  in_flight(2, {.sequence = 1, .call = 2});
  all_are_quiet();
  run();
  for (const NcclHang& hang : finder_.report().nccl) {
    EXPECT_THAT(hang.absent, IsEmpty());
    EXPECT_THAT(hang.passed, IsEmpty());
  }
  EXPECT_THAT(lines(), Contains(HasSubstr("of 1 members it is not known: NCCL may count")));
}

/// All alike, so the numbers are those of all: rank 2 did not launch the graph a second time.
TEST_F(NcclGraphs, who_does_not_launch_a_counted_one_is_told) {
  for (uint32_t rank = 0; rank < 3; ++rank) {
    finished(rank, {.time_ns = kEnd - 30 * kSecond});
    add(rank, kNcclGraphCaptured | kNcclNoWork, {.call = 1, .time_ns = kEnd - 25 * kSecond});
    add(rank, kNcclReplayed | kNcclGpuTimed,
        {.sequence = 1, .call = 2, .time_ns = kEnd - 20 * kSecond});
  }
  for (const uint32_t rank : {0u, 1u})
    add(rank, kNcclReplayed | kNcclInFlight, {.sequence = 2, .call = 3});
  all_are_quiet();
  ASSERT_EQ(run().size(), 1u);
  EXPECT_THAT(finder_.report().nccl[0].absent, testing::ElementsAre(member(2)));
  expect_same_of_shares();
}

TEST_F(NcclGraphs, two_shares_find_what_one_process_finds) {
  for (uint32_t rank = 0; rank < 3; ++rank) {
    const uint32_t uncounted = rank == 2 ? uint32_t{kNcclUncounted} : 0;
    add(rank, kNcclGraphCaptured | kNcclNoWork | uncounted, {.time_ns = kEnd - 25 * kSecond});
  }
  for (const uint32_t rank : {0u, 1u})
    add(rank, kNcclReplayed | kNcclInFlight, {.sequence = 1, .call = 1});
  all_are_quiet();
  ASSERT_EQ(run().size(), 1u);
  EXPECT_THAT(finder_.report().nccl[0].absent, IsEmpty()) << "it never ended, and counts there";
  EXPECT_THAT(lines(), Contains(HasSubstr("captured at another level")));
  expect_same_of_shares();
}

}  // namespace
}  // namespace aon::writers
