#include "writers/lateness/true_times.h"

#include <gtest/gtest.h>

#include "writers/lateness/lateness.h"

namespace aon::writers {
namespace {

constexpr uint32_t kWorld = 1;
constexpr uint32_t kAllreduce = 7;

TEST(TrueTimes, tell_what_is_usual_and_how_much_slow_ones_lost) {
  TrueTimeTable table;
  for (int i = 0; i < 9; ++i) EXPECT_TRUE(table.add(kWorld, kAllreduce, 4096, 1000));
  EXPECT_TRUE(table.add(kWorld, kAllreduce, 4096, 5000));
  EXPECT_TRUE(table.add(kWorld, kAllreduce, 64, 10));
  const std::vector<TrueTimes> rows = table.take();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].bytes, 64u);
  EXPECT_EQ(rows[1].count, 10u);
  EXPECT_EQ(rows[1].least_ns, 1000u);
  EXPECT_EQ(rows[1].usual_ns, 1000u);
  EXPECT_EQ(rows[1].longest_ns, 5000u);
  EXPECT_EQ(rows[1].slow_count, 1u);
  EXPECT_EQ(rows[1].slow_ns, 4000u);
  ASSERT_NE(find_slowest(rows), nullptr);
  EXPECT_EQ(find_slowest(rows)->bytes, 4096u);
  EXPECT_TRUE(table.take().empty());
}

TEST(TrueTimes, nothing_is_slow_when_all_take_the_same) {
  TrueTimeTable table;
  for (uint64_t i = 0; i < 100; ++i) table.add(kWorld, kAllreduce, 4096, 1000 + i);
  const std::vector<TrueTimes> rows = table.take();
  EXPECT_EQ(find_slowest(rows), nullptr);
}

TEST(TrueTimes, need_no_more_memory_than_they_may) {
  TrueTimeTable table;
  for (uint64_t bytes = 0; bytes < kMaxSizes; ++bytes)
    ASSERT_TRUE(table.add(kWorld, kAllreduce, bytes, 1));
  EXPECT_FALSE(table.add(kWorld, kAllreduce, kMaxSizes, 1));
  EXPECT_TRUE(table.add(kWorld, kAllreduce, 0, UINT64_MAX));
  EXPECT_EQ(table.take().size(), kMaxSizes);
}

/// Members leave an operation some us apart, always in the same order: nobody is late.
TEST(Latecomer, who_is_first_to_leave_by_a_few_us_is_not_late) {
  LatenessTable fair;
  LatenessTable late;
  for (int i = 0; i < 1000; ++i) {
    fair.add(kWorld, kAllreduce, std::vector<Attendance>{{0, 23'000}, {1, 22'000}, {2, 18'000}});
    late.add(kWorld, kAllreduce, std::vector<Attendance>{{0, 43'000}, {1, 42'000}, {2, 18'000}});
  }
  const Latecomer first = find_latecomer(fair.rows());
  EXPECT_EQ(first.late_count, 0u);
  EXPECT_GT(first.all_ns, 0u);
  EXPECT_FALSE(is_late(first));
  EXPECT_TRUE(is_late(find_latecomer(late.rows())));
  EXPECT_FALSE(is_late(Latecomer()));
}

TEST(Latecomer, who_stalls_once_is_late_among_any_number_of_operations) {
  LatenessTable table;
  for (int i = 0; i < 1'000'000; ++i)  // more waiting than the stall costs
    table.add(kWorld, kAllreduce, std::vector<Attendance>{{0, 9'000}, {1, 1'000}, {2, 9'000}});
  for (int i = 0; i < 1000; ++i)
    table.add(kWorld, kAllreduce, std::vector<Attendance>{{0, 2'000}, {1, 2'000}, {2, 1'000}});
  table.add(kWorld, kAllreduce,
            std::vector<Attendance>{{0, 5'000'001'000}, {1, 5'000'001'000}, {2, 1'000}});
  const Latecomer late = find_latecomer(table.rows());
  EXPECT_TRUE(is_late(late));
  EXPECT_EQ(late.group, 2u);
  EXPECT_EQ(late.late_count, 1u);
  EXPECT_EQ(late.caused_ns, 10'000'000'000u);
  EXPECT_EQ(late.region_ns, late.caused_ns);
  EXPECT_EQ(late.all_ns, 1'000'000 * 16'000ull + 1000 * 2'000 + late.caused_ns);
}

}  // namespace
}  // namespace aon::writers
