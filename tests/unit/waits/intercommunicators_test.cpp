// Who waits in collectives of inter-communicators: each group for the other.

#include "tests/unit/waits/ranks.h"

namespace aon::writers {
namespace {

/// Ranks 0 and 1 are one group, 2 and 3 the other.
Model two_groups() {
  Model model = make_model(4);
  model.communicators[0].kind = CommunicatorKind::kInter;
  model.communicators[0].first_group_count = 2;
  return model;
}

struct Stay {
  uint64_t enter_ns;
  uint64_t leave_ns;
};

/// Rank i is in it as the i-th of `stays`; `roots` as MPI tells them: nobody knows its own group's.
std::vector<Rank> in_one(CollectiveOperation operation, const std::vector<Stay>& stays,
                         const std::vector<int32_t>& roots = {-1, -1, -1, -1}) {
  std::vector<Rank> ranks;
  for (size_t i = 0; i < stays.size(); ++i) {
    Event end = collective(operation, roots[i]);
    end.bytes = end.bytes_received = 8;
    ranks.push_back(Rank().call(kCollective, stays[i].enter_ns, stays[i].leave_ns, {end}));
  }
  return ranks;
}

TEST(InterCommunicators, wait_at_a_barrier_for_the_last_of_the_other_group) {
  const std::vector<Rank> ranks =
      in_one(CollectiveOperation::kBarrier, {{10, 60}, {20, 61}, {15, 62}, {50, 63}});
  const WaitSummary summary = analyse(two_groups(), ranks);
  EXPECT_THAT(rows(summary),
              testing::ElementsAre(Row{0, kCollective, WaitKind::kBarrier, 1, 40, 40},
                                   Row{1, kCollective, WaitKind::kBarrier, 1, 30, 30},
                                   Row{2, kCollective, WaitKind::kBarrier, 1, 5, 5}));
  EXPECT_EQ(summary.collective_count, 1u);
  EXPECT_EQ(summary.incomplete_count, 0u);
  // Who comes last of its group may find the other one waiting, and still wait: no lateness.
  EXPECT_TRUE(summary.lateness.rows().empty());
}

TEST(InterCommunicators, wait_in_an_all_to_all_only_where_they_get_something) {
  std::vector<Rank> ranks;
  for (const uint64_t enter_ns : {10, 50, 15, 60}) {
    Event end = collective(CollectiveOperation::kAllgather);
    const bool is_first = ranks.size() < 2;
    (is_first ? end.bytes : end.bytes_received) = 8;
    ranks.push_back(Rank().call(kCollective, enter_ns, is_first ? 55 : 70, {end}));
  }
  EXPECT_THAT(rows(analyse(two_groups(), ranks)),
              testing::ElementsAre(Row{2, kCollective, WaitKind::kNxN, 1, 35, 35}));
}

TEST(InterCommunicators, wait_for_a_root_of_the_other_group) {
  const std::vector<Rank> ranks = in_one(CollectiveOperation::kBroadcast,
                                         {{50, 61}, {10, 12}, {20, 62}, {40, 63}}, {0, -1, 0, 0});
  EXPECT_THAT(rows(analyse(two_groups(), ranks)),
              testing::ElementsAre(Row{2, kCollective, WaitKind::kLateBroadcast, 1, 30, 30},
                                   Row{3, kCollective, WaitKind::kLateBroadcast, 1, 10, 10}));
}

TEST(InterCommunicators, let_a_root_wait_for_the_first_of_the_other_group) {
  const std::vector<Rank> ranks =
      in_one(CollectiveOperation::kGather, {{40, 41}, {70, 71}, {20, 72}, {10, 11}}, {2, 2, 2, -1});
  EXPECT_THAT(rows(analyse(two_groups(), ranks)),
              testing::ElementsAre(Row{2, kCollective, WaitKind::kEarlyReduce, 1, 20, 20}));
}

TEST(InterCommunicators, of_which_the_groups_are_not_told_are_left_out) {
  Model model = two_groups();
  model.communicators[0].first_group_count = 0;
  const WaitSummary summary = analyse(
      model, in_one(CollectiveOperation::kBarrier, {{10, 60}, {20, 61}, {15, 62}, {5, 63}}));
  EXPECT_TRUE(summary.rows.empty());
  EXPECT_EQ(summary.incomplete_count, 1u);
}

TEST(InterCommunicators, have_no_scans) {
  const WaitSummary summary = analyse(
      two_groups(), in_one(CollectiveOperation::kScan, {{10, 60}, {20, 61}, {15, 62}, {5, 63}}));
  EXPECT_TRUE(summary.rows.empty());
  EXPECT_EQ(summary.incomplete_count, 1u);
}

TEST(InterCommunicators, that_one_of_their_own_group_leaves_early_are_right_clocks) {
  Model model = two_groups();
  for (uint32_t rank = 0; rank < 4; ++rank) model.groups[rank].node = rank;
  model.clock_error_ns = {0, 10, 10, 10};
  // Rank 0 leaves before its neighbour enters: it needs the others alone.
  const ClockViolations none = analyse(model, in_one(CollectiveOperation::kBarrier,
                                                     {{10, 30}, {40, 61}, {15, 62}, {20, 63}}))
                                   .clock_violations;
  EXPECT_EQ(none.collective_count, 0u);
  const ClockViolations found = analyse(model, in_one(CollectiveOperation::kBarrier,
                                                      {{10, 30}, {40, 61}, {15, 35}, {33, 63}}))
                                    .clock_violations;
  EXPECT_EQ(found.collective_count, 1u);  // ranks 0 and 2 alike
  EXPECT_EQ(found.max_ns, 5u);
}

}  // namespace
}  // namespace aon::writers
