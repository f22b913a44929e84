#include "core/agent/series.h"

#include <gtest/gtest.h>

#include <bit>
#include <optional>

#include "core/spool/format.h"

namespace aon::agent {
namespace {

constexpr uint32_t kMetric = 8;
constexpr uint32_t kOther = 10;

class SeriesTest : public testing::Test {
 protected:
  void SetUp() override {
    fd_ = State::create().value();
    state_ = State::map(fd_.get()).value();
    series_.emplace(&state_);
  }
  void restart() { series_.emplace(&state_); }
  const SampleCell& last() { return state_.sample(state_.header().sample_head.load() - 1); }
  double last_value() { return std::bit_cast<double>(last().head.a64); }

  UniqueFd fd_;
  State state_;
  std::optional<Series> series_;
};

TEST_F(SeriesTest, puts_a_record_of_two_slots) {
  ASSERT_TRUE(series_->put(3, kMetric, 77, 1.5, 20, 10));
  EXPECT_EQ(last().process, 3u);
  EXPECT_EQ(last().head.kind, RecordKind::kSample);
  EXPECT_EQ(last().head.start_ticks, 77u);
  EXPECT_EQ(last().head.id, kMetric);
  EXPECT_EQ(last_value(), 1.5);
  EXPECT_EQ(last().words[0], 20u);
  EXPECT_EQ(last().words[1], 10u);
}

TEST_F(SeriesTest, goes_on_from_the_last_value_in_the_next_worker) {
  EXPECT_FALSE(series_->add_accumulated(3, kMetric));
  series_->put(3, kMetric, 1, 100, 20, 10);
  for (int worker = 1; worker <= 3; ++worker) {
    restart();
    EXPECT_TRUE(series_->add_accumulated(3, kMetric));
    series_->put(3, kMetric, 2, 0, 0, 0);
    EXPECT_EQ(last_value(), 100.0 * worker);
    series_->put(3, kMetric, 2, 100, 20, 10);
    EXPECT_EQ(last_value(), 100.0 * (worker + 1));
    EXPECT_EQ(last().words[0], 20u * static_cast<unsigned>(worker + 1));
  }
}

TEST_F(SeriesTest, leaves_values_that_do_not_accumulate_as_they_are) {
  series_->put(3, kMetric, 1, 100, 0, 0);
  restart();
  series_->put(3, kMetric, 2, 7, 0, 0);
  EXPECT_EQ(last_value(), 7);
}

TEST_F(SeriesTest, keeps_metrics_and_processes_apart) {
  series_->add_accumulated(3, kMetric);
  series_->add_accumulated(3, kOther);
  series_->add_accumulated(spool::kNodeProcess, kMetric);
  series_->put(3, kMetric, 1, 100, 0, 0);
  series_->put(spool::kNodeProcess, kMetric, 1, 5, 0, 0);
  restart();
  EXPECT_TRUE(series_->add_accumulated(3, kOther));
  EXPECT_TRUE(series_->add_accumulated(spool::kNodeProcess, kMetric));
  EXPECT_FALSE(series_->add_accumulated(4, kMetric));
  series_->put(3, kOther, 2, 1, 0, 0);
  EXPECT_EQ(last_value(), 1);
  series_->put(spool::kNodeProcess, kMetric, 2, 1, 0, 0);
  EXPECT_EQ(last_value(), 6);
}

TEST_F(SeriesTest, begins_anew_where_all_are_written) {
  series_->put(3, kMetric, 1, 1, 0, 0);
  const SampleCell* const first = &last();
  series_->put(3, kMetric, 2, 2, 0, 0);
  EXPECT_EQ(&last(), first + 1);
  state_.header().sample_tail.store(1);
  series_->put(3, kMetric, 3, 3, 0, 0);
  EXPECT_EQ(&last(), first + 2) << "one is not written yet";
  state_.header().sample_tail.store(3);
  restart();
  series_->put(3, kMetric, 4, 4, 0, 0);
  EXPECT_EQ(&last(), first);
  series_->put(3, kMetric, 5, 5, 0, 0);
  EXPECT_EQ(&last(), first + 1);
  EXPECT_EQ(state_.sample(3).head.start_ticks, 4u);
}

TEST_F(SeriesTest, uses_the_cells_of_ended_processes_again) {
  for (uint32_t process = 0; process < 100; ++process) {
    series_->add_accumulated(process, kMetric);
    series_->put(process, kMetric, 1, 100, 0, 0);
    series_->forget(process);
  }
  EXPECT_EQ(state_.header().metric_count, 1u);
  EXPECT_FALSE(series_->add_accumulated(200, kMetric));
  series_->put(200, kMetric, 1, 1, 0, 0);
  EXPECT_EQ(last_value(), 1);
  // One whose end was seen just before the worker was killed.
  state_.process(200).phase.store(static_cast<uint32_t>(ProcessPhase::kDrained));
  restart();
  EXPECT_FALSE(series_->add_accumulated(300, kMetric));
  EXPECT_EQ(state_.header().metric_count, 1u);
}

TEST_F(SeriesTest, a_record_of_losses_that_finds_no_room_is_no_loss_itself) {
  for (uint32_t i = 0; i < kMaxSamples; ++i) ASSERT_TRUE(series_->put(1, kMetric, i, 1, 0, 0));
  Record lost{};
  lost.head.kind = RecordKind::kLost;
  lost.head.slot_count = 1;
  EXPECT_FALSE(series_->put_record(1, spool::kCallSampleSlot, lost));
  EXPECT_EQ(state_.refused_samples(1, spool::kCallSampleSlot).count.load(), 0u);
  lost.head.kind = RecordKind::kCallSample;
  EXPECT_FALSE(series_->put_record(1, spool::kCallSampleSlot, lost));
  EXPECT_EQ(state_.refused_samples(1, spool::kCallSampleSlot).count.load(), 1u);
}

TEST_F(SeriesTest, counts_what_finds_no_room) {
  for (uint32_t i = 0; i < kMaxSamples; ++i) ASSERT_TRUE(series_->put(1, kMetric, i, 1, 0, 0));
  EXPECT_FALSE(series_->put(1, kMetric, 1, 1, 0, 0));
  EXPECT_FALSE(series_->put(spool::kNodeProcess, kMetric, 1, 1, 0, 0));
  EXPECT_EQ(state_.refused_samples(1, spool::kSeriesSlot).count.load(), 1u);
  EXPECT_EQ(state_.refused_samples(spool::kNodeProcess, spool::kSeriesSlot).count.load(), 1u);
  state_.header().sample_tail.store(1);
  EXPECT_TRUE(series_->put(1, kMetric, 1, 1, 0, 0));
}

}  // namespace
}  // namespace aon::agent
