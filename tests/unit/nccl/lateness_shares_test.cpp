// What is kept of members' waits for the archive, and what shares hand over of all.

#include "tests/unit/nccl/lateness_case.h"

namespace aon::writers::nccl {
namespace {

TEST_F(NcclLateness, waits_are_kept_for_timelines_with_the_times_of_their_operations) {
  add_timelines();
  model_.locations[5].in_archive = false;
  analysis_.keep_waits();
  for (uint32_t rank = 0; rank < 4; ++rank)
    tell(rank, 0, {.gpu_ns = rank == 2 ? 100u : 3100u, .queued_ns = rank});
  for (uint32_t rank = 0; rank < 4; ++rank)
    tell(rank, 1, {.gpu_ns = rank == 2 ? 100u : 1099u, .queued_ns = rank});
  run();
  const std::vector<TimelineWait> waits = waits_of(&analysis_);
  ASSERT_EQ(waits.size(), 4u)
      << "rank 1 is not in the archive, rank 2 has not waited, and the second "
         "operation was waited for less than 1 us";
  for (size_t i = 0; i < 2; ++i) {
    const uint64_t rank = i == 0 ? 0 : 3;
    EXPECT_EQ(waits[2 * i].location, 4 + rank);
    EXPECT_EQ(waits[2 * i].time_ns, 1000 + rank);
    EXPECT_EQ(waits[2 * i].wait_ns, 0u);
    EXPECT_EQ(waits[2 * i + 1].location, 4 + rank);
    EXPECT_EQ(waits[2 * i + 1].time_ns, 4100 + rank);
    EXPECT_EQ(waits[2 * i + 1].wait_ns, 3000u);
  }
}

/// Rank 3's node had been lowered to level api when the graph was captured: NCCL counts its
/// launches on the others alone, so that operation 2 of rank 3 is operation 3 of theirs.
TEST_F(NcclLateness, members_that_do_not_count_alike_are_not_compared) {
  for (const uint32_t uncounted : {uint32_t{kNcclUncounted}, uint32_t{0}}) {
    LatenessAnalysis analysis("/tmp");
    for (uint32_t rank = 0; rank < 4; ++rank) {
      told_[rank].clear();
      const bool is_last = rank == 3 && uncounted != 0;
      const uint32_t captured = kNcclGraphCaptured | kNcclNoWork;
      tell(rank, 0, {.flags = captured | (is_last ? uncounted : 0)});
      if (!is_last) tell(rank, 0, {.gpu_ns = 9000, .flags = kNcclGpuTimed | kNcclReplayed});
      for (uint64_t i = 1; i < 3; ++i)
        tell(rank, is_last ? i - 1 : i, {.gpu_ns = is_last ? 3000u : 8000u});
    }
    test::combine({&analysis}, model_, states());
    ASSERT_NE(analysis.summary(), nullptr);
    EXPECT_EQ(analysis.summary()->table.rows().empty(), uncounted != 0);
    EXPECT_EQ(analysis.summary()->unmatched_count, uncounted != 0 ? 11u : 0u);
  }
}

TEST_F(NcclLateness, two_shares_find_what_one_process_finds) {
  // More than are handed over in one piece, and what cannot be matched.
  for (uint64_t sequence = 0; sequence < 20'000; ++sequence) {
    for (uint32_t rank = 0; rank < 4; ++rank)
      tell(rank, sequence, {.gpu_ns = (sequence % 4 == rank ? 100u : 3100u) + sequence % 7});
  }
  for (uint32_t rank = 0; rank < 4; ++rank) {
    const auto next = static_cast<int32_t>((rank + 1) % 4);
    const auto previous = static_cast<int32_t>((rank + 3) % 4);
    tell(rank, 1, {.gpu_ns = 1000 + rank, .region = kSend, .peer = next});
    tell(rank, 1, {.gpu_ns = 5000, .region = kReceive, .peer = previous});
    tell(rank, 20'000, {.flags = 0});
  }
  tell(3, 20'001, {.gpu_ns = 5, .queued_ns = 8});
  add_timelines();
  analysis_.keep_waits();
  const LatenessSummary& whole = run();
  LatenessAnalysis combiner("/tmp");
  combiner.keep_waits();
  test::combine({&combiner}, model_, states());
  EXPECT_EQ(bytes_of(waits_of(&combiner)), bytes_of(waits_of(&analysis_)));
  const LatenessSummary& combined = *combiner.summary();
  EXPECT_EQ(combined.untimed_count, 4u);
  EXPECT_EQ(combined.untimed_count, whole.untimed_count);
  EXPECT_EQ(combined.timed_count, 4 * 20'000u + 8 + 1);
  EXPECT_EQ(combined.timed_count, whole.timed_count);
  EXPECT_EQ(combined.told_count, whole.told_count);
  EXPECT_EQ(combined.unmatched_count, whole.unmatched_count);
  EXPECT_EQ(bytes_of(combined.members), bytes_of(whole.members));
  EXPECT_EQ(bytes_of(combined.table.rows()), bytes_of(whole.table.rows()));
  EXPECT_EQ(combined.table.operation_count(), 20'004u);
  ASSERT_EQ(combined.causes.size(), whole.causes.size());
  for (const auto& [key, causes] : whole.causes) {
    EXPECT_EQ(combined.causes.at(key).host_ns, causes.host_ns);
    EXPECT_EQ(combined.causes.at(key).gpu_ns, causes.gpu_ns);
    EXPECT_EQ(combined.causes.at(key).untold_ns, causes.untold_ns);
  }
  ASSERT_EQ(combined.times.size(), whole.times.size());
  for (size_t i = 0; i < whole.times.size(); ++i) {
    EXPECT_EQ(combined.times[i].usual_ns, whole.times[i].usual_ns);
    EXPECT_EQ(combined.times[i].slow_count, whole.times[i].slow_count);
  }
  ASSERT_EQ(combined.links.size(), whole.links.size());
  for (size_t i = 0; i < whole.links.size(); ++i) {
    EXPECT_EQ(combined.links[i].source, whole.links[i].source);
    EXPECT_EQ(combined.links[i].time_ns, whole.links[i].time_ns);
    EXPECT_EQ(combined.links[i].ratio, whole.links[i].ratio);
  }
}

TEST_F(NcclLateness, damage_of_what_a_share_tells_is_harmless) {
  for (uint32_t rank = 0; rank < 4; ++rank) {
    tell(rank, 0, {.gpu_ns = 100});
    tell(rank, 1, {.gpu_ns = 100, .region = kSend, .peer = 1});
  }
  const auto make = [] { return std::make_unique<LatenessAnalysis>("/tmp"); };
  test::expect_damage_is_harmless(make, model_, states()[2]);
}

}  // namespace
}  // namespace aon::writers::nccl
