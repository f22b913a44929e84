#include "writers/lateness/lateness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace aon::writers {
namespace {

constexpr uint32_t kWorld = 1;
constexpr uint32_t kRow = 2;
constexpr uint32_t kAllreduce = 7;
constexpr uint32_t kBarrier = 8;
constexpr uint64_t kUs = 1000;

TEST(Lateness, shortest_member_came_last_and_cost_the_others_their_waits) {
  LatenessTable table;
  table.add(kWorld, kAllreduce, std::vector<Attendance>{{0, 150}, {1, 100}, {2, 130}});
  table.add(kWorld, kAllreduce, std::vector<Attendance>{{2, 500}, {1, 200}, {0, 400}});
  const std::vector<LatenessRow> rows = table.rows();
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(table.operation_count(), 2u);
  EXPECT_EQ(rows[0].wait_ns, 50u + 200u);
  EXPECT_EQ(rows[1].wait_ns, 0u);
  EXPECT_EQ(rows[2].wait_ns, 30u + 300u);
  EXPECT_EQ(rows[1].last_count, 2u);
  EXPECT_EQ(rows[1].caused_ns, 80u + 500u);
  EXPECT_EQ(rows[1].max_caused_ns, 500u);
  EXPECT_EQ(rows[0].caused_ns + rows[2].caused_ns, 0u);
  for (const LatenessRow& row : rows) {
    EXPECT_EQ(row.count, 2u);
    EXPECT_EQ(row.least_ns, 300u);
    EXPECT_EQ(row.communicator, kWorld);
    EXPECT_EQ(row.region, kAllreduce);
  }
}

/// Two of four 50 ms late, one of them by 1 us more; in the second one of them is half as late.
TEST(Lateness, who_is_late_with_the_last_one_shares_the_blame) {
  constexpr uint64_t kMs = 1000 * kUs;
  LatenessTable table;
  table.add(
      kWorld, kBarrier,
      std::vector<Attendance>{{0, 60 * kMs}, {1, 10 * kMs + kUs}, {2, 60 * kMs}, {3, 10 * kMs}});
  table.add(kWorld, kBarrier,
            std::vector<Attendance>{{0, 60 * kMs}, {1, 36 * kMs}, {2, 60 * kMs}, {3, 10 * kMs}});
  const std::vector<LatenessRow> rows = table.rows();
  ASSERT_EQ(rows.size(), 4u);
  const uint64_t both_ns = 100 * kMs + kUs;
  EXPECT_EQ(rows[1].caused_ns, both_ns / 2);
  EXPECT_EQ(rows[3].caused_ns, both_ns - both_ns / 2 + 126 * kMs);
  EXPECT_EQ(rows[0].caused_ns + rows[2].caused_ns, 0u);
  EXPECT_EQ(rows[1].last_count, 0u);
  EXPECT_EQ(rows[3].last_count, 2u);
  EXPECT_EQ(rows[1].late_count, 1u);
  EXPECT_EQ(rows[3].late_count, 2u);
  EXPECT_EQ(rows[1].shared_count, 1u);
  EXPECT_EQ(rows[3].shared_count, 1u);
  EXPECT_EQ(rows[1].late_caused_ns, rows[1].caused_ns);
  EXPECT_EQ(rows[1].max_caused_ns, rows[1].caused_ns);
}

/// The first did something else until the last one came, the second for half of the time, and the
/// third came a bit before the last one and did something else as well.
TEST(Lateness, who_does_something_else_has_not_waited_and_is_not_late) {
  LatenessTable table;
  const std::vector<Attendance> members{
      {0, 900 * kUs, 900 * kUs}, {1, 800 * kUs, 400 * kUs}, {2, 40 * kUs, 40 * kUs}, {3, 0}};
  table.add(kWorld, kBarrier, members);
  const std::vector<LatenessRow> rows = table.rows();
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[1].wait_ns, 400 * kUs);
  EXPECT_EQ(rows[0].wait_ns + rows[2].wait_ns + rows[3].wait_ns, 0u);
  EXPECT_EQ(rows[0].late_count + rows[1].late_count, 0u);
  EXPECT_EQ(rows[2].caused_ns, 200 * kUs) << "a tenth of the longest wait is no matter";
  EXPECT_EQ(rows[3].caused_ns, 200 * kUs);
  const std::vector<Attendance> hidden{{0, 900 * kUs, 900 * kUs}, {1, 0}};
  LatenessTable other;
  other.add(kWorld, kBarrier, hidden);
  EXPECT_EQ(find_latecomer(other.rows()).caused_ns, 0u);
  EXPECT_FALSE(is_late(find_latecomer(other.rows())));
}

/// What is waited is what is caused, whoever came last.
TEST(Lateness, waits_and_costs_are_the_same_time) {
  LatenessTable table;
  uint64_t waited_ns = 0;
  uint64_t caused_ns = 0;
  for (uint32_t i = 0; i < 100; ++i) {
    std::vector<Attendance> members;
    for (uint32_t group = 0; group < 5; ++group)
      members.push_back({group, 1000 + (i * 37 + group * group * 91) % 613});
    table.add(i % 2 == 0 ? kWorld : kRow, kBarrier, members);
  }
  for (const LatenessRow& row : table.rows()) {
    waited_ns += row.wait_ns;
    caused_ns += row.caused_ns;
  }
  EXPECT_EQ(waited_ns, caused_ns);
  EXPECT_GT(waited_ns, 0u);
}

TEST(Lateness, communicators_and_operations_are_told_apart) {
  LatenessTable table;
  const std::vector<Attendance> members{{0, 20}, {1, 10}};
  table.add(kWorld, kAllreduce, members);
  table.add(kWorld, kBarrier, members);
  table.add(kRow, kBarrier, members);
  std::vector<std::pair<uint32_t, uint32_t>> keys;
  for (const LatenessRow& row : table.rows()) keys.emplace_back(row.communicator, row.region);
  EXPECT_THAT(keys,
              testing::ElementsAre(std::pair(kWorld, kAllreduce), std::pair(kWorld, kAllreduce),
                                   std::pair(kWorld, kBarrier), std::pair(kWorld, kBarrier),
                                   std::pair(kRow, kBarrier), std::pair(kRow, kBarrier)));
}

TEST(Lateness, nobody_is_late_alone) {
  LatenessTable table;
  table.add(kWorld, kBarrier, std::vector<Attendance>{{0, 20}});
  table.add(kWorld, kBarrier, {});
  EXPECT_EQ(table.operation_count(), 0u);
  EXPECT_TRUE(table.rows().empty());
  EXPECT_EQ(find_latecomer(table.rows()).caused_ns, 0u);
}

TEST(Lateness, others_that_cost_about_as_much_are_told) {
  LatenessTable table;
  for (const uint32_t late : {2u, 0u, 3u}) {
    std::vector<Attendance> members;
    for (uint32_t group = 0; group < 4; ++group)
      members.push_back({group, group == late ? 1'000 : 1'000'000 + uint64_t{late} * 1'000});
    table.add(kWorld, kBarrier, members);
  }
  std::vector<Attendance> members;
  for (uint32_t group = 0; group < 4; ++group)
    members.push_back({group, group == 1 ? 1'000u : 800'000u});
  table.add(kWorld, kBarrier, members);
  const Latecomer worst = find_latecomer(table.rows());
  EXPECT_EQ(worst.group, 3u);
  EXPECT_THAT(worst.alike, testing::ElementsAre(0u, 2u)) << "rank 1 cost four fifths as much";
}

TEST(Lateness, those_that_come_late_together_cost_what_they_cost_together) {
  LatenessTable table;
  std::vector<Attendance> members;
  for (uint32_t group = 0; group < 16; ++group)
    members.push_back({group, group == 3 || group == 9 ? 10 * kUs : 50'010 * kUs});
  for (int i = 0; i < 10; ++i) table.add(kWorld, kBarrier, members);
  const Latecomer worst = find_latecomer(table.rows());
  EXPECT_EQ(worst.group, 3u);
  EXPECT_THAT(worst.alike, testing::ElementsAre(9u));
  EXPECT_EQ(worst.late_count, 10u);
  EXPECT_EQ(worst.shared_count, 10u);
  EXPECT_EQ(worst.caused_ns, 10u * 7 * 50'000 * kUs);
  EXPECT_EQ(worst.together_ns, worst.all_ns);
}

TEST(Lateness, latecomer_is_who_cost_most_in_everything_together) {
  LatenessTable table;
  for (int i = 0; i < 10; ++i)
    table.add(kWorld, kAllreduce,
              std::vector<Attendance>{{0, 130 * kUs}, {1, 100 * kUs}, {2, 105 * kUs}});
  table.add(kRow, kBarrier, std::vector<Attendance>{{1, 700 * kUs}, {2, 100 * kUs}});
  const Latecomer worst = find_latecomer(table.rows());
  EXPECT_EQ(worst.group, 2u);
  EXPECT_EQ(worst.caused_ns, 600 * kUs);
  EXPECT_EQ(worst.all_ns, 950 * kUs);
  EXPECT_EQ(worst.late_count, 1u);
  EXPECT_EQ(worst.count, 11u);
  EXPECT_EQ(worst.region, kBarrier);
  EXPECT_EQ(worst.region_ns, 600 * kUs);
}

TEST(Lateness, rows_are_bounded_and_what_finds_none_is_counted) {
  LatenessTable table;
  for (uint32_t i = 0; i <= kMaxLatenessRows / 2; ++i)
    table.add(i, kBarrier, std::vector<Attendance>{{0, 2}, {1, 1}});
  EXPECT_EQ(table.rows().size(), kMaxLatenessRows);
  EXPECT_GT(table.left_out_count(), 0u);
}

}  // namespace
}  // namespace aon::writers
