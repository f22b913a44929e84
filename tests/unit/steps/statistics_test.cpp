#include "writers/steps/statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "writers/steps/sequence_sample.h"

namespace aon::writers::steps {
namespace {

StepRow row(int64_t number, uint64_t duration_ns) {
  StepRow result{};
  result.number = number;
  result.part_ns[0] = duration_ns;
  return result;
}

TEST(StepStatistics, figures_of_few_steps_are_exact) {
  StepSums sums;
  for (const uint64_t value : {2u, 4u, 4u, 4u, 5u, 5u, 7u, 9u}) sums.add(row(0, value), value != 9);
  const StepStatistics result = sums.result();
  EXPECT_EQ(result.count, 8u);
  EXPECT_EQ(result.matched_count, 7u);
  EXPECT_EQ(result.sum_ns, 40u);
  EXPECT_DOUBLE_EQ(result.parts[0].mean_ns, 5);
  EXPECT_DOUBLE_EQ(result.parts[0].deviation_ns, 2);
  EXPECT_EQ(result.parts[0].min_ns, 2u);
  EXPECT_EQ(result.parts[0].max_ns, 9u);
  EXPECT_EQ(result.parts[0].p95_ns, 9u);
}

TEST(StepStatistics, quantiles_of_many_steps_come_from_evenly_spaced_ones) {
  StepSums sums;
  for (uint64_t i = 0; i < 1'000'000; ++i) sums.add(row(0, i), true);
  const StepStatistics result = sums.result();
  EXPECT_NEAR(static_cast<double>(result.parts[0].median_ns), 500'000, 100);
  EXPECT_NEAR(static_cast<double>(result.parts[0].p95_ns), 950'000, 100);
  EXPECT_EQ(result.parts[0].max_ns, 999'999u);
  EXPECT_NEAR(static_cast<double>(result.first_ns), 50'000, 100);
  EXPECT_NEAR(static_cast<double>(result.last_ns), 950'000, 100);
}

TEST(StepStatistics, all_rows_are_kept_while_there_is_room) {
  RowKeeper keeper(100);
  for (int64_t i = 0; i < 100; ++i) keeper.add(row(i, 1));
  std::vector<StepRow> rows;
  keeper.take(&rows);
  EXPECT_EQ(rows.size(), 100u);
}

TEST(StepStatistics, of_many_rows_the_ends_and_evenly_spaced_ones_are_kept) {
  RowKeeper keeper(100);
  for (int64_t i = 0; i < 12'345; ++i) keeper.add(row(i, 1));
  std::vector<StepRow> rows;
  keeper.take(&rows);
  ASSERT_LE(rows.size(), 100u);
  ASSERT_GT(rows.size(), 70u);
  for (int64_t i = 0; i < 25; ++i) {
    EXPECT_EQ(rows[static_cast<size_t>(i)].number, i);
    EXPECT_EQ(rows[rows.size() - 25 + static_cast<size_t>(i)].number, 12'345 - 25 + i);
  }
  const int64_t stride = rows[27].number - rows[26].number;
  for (size_t i = 27; i + 26 < rows.size(); ++i) {
    EXPECT_EQ(rows[i + 1].number - rows[i].number, stride);
  }
}

TEST(StepStatistics, rows_between_the_ends_are_evenly_spaced_however_many_came) {
  for (int64_t count = 101; count < 3000; count += 7) {
    RowKeeper keeper(100);
    for (int64_t i = 0; i < count; ++i) keeper.add(row(i, 1));
    std::vector<StepRow> rows;
    keeper.take(&rows);
    ASSERT_LE(rows.size(), 100u);
    EXPECT_EQ(rows[rows.size() - 25].number, count - 25);
    const int64_t stride = rows[27].number - rows[26].number;
    for (size_t i = 25; i + 26 < rows.size(); ++i)
      ASSERT_EQ(rows[i + 1].number - rows[i].number, stride) << count << " rows";
  }
}

TEST(StepStatistics, sample_of_a_sequence_is_bounded_and_in_whole_pieces) {
  SequenceSample sample;
  constexpr uint64_t kCalls = 3'000'000;
  for (uint64_t i = 0; i < kCalls; ++i) sample.add(i, i, i, 0);
  EXPECT_FALSE(sample.is_whole());
  EXPECT_LE(sample.calls().size(), SequenceSample::kPieces * SequenceSample::kPiece);
  EXPECT_GE(sample.calls().size(), SequenceSample::kPieces * SequenceSample::kPiece / 3);
  EXPECT_EQ(sample.calls().front().number, 0u);
  EXPECT_GT(sample.calls().back().number, kCalls / 10 * 9);
  size_t holes = 0;
  for (size_t i = 1; i < sample.calls().size(); ++i) {
    const uint64_t step = sample.calls()[i].number - sample.calls()[i - 1].number;
    if (step == 1) continue;
    ++holes;
    EXPECT_EQ(sample.calls()[i].number % SequenceSample::kPiece, 0u);
  }
  EXPECT_LT(holes, SequenceSample::kPieces);
}

}  // namespace
}  // namespace aon::writers::steps
