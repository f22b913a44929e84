// What the agent's thread of the clock keeps of processes that have ended.
#include "core/agent/housekeeping.h"

#include <gtest/gtest.h>

#include <optional>

#include "tests/unit/agent/encoder_bench.h"

namespace aon::agent {
namespace {

class HousekeepingTest : public test::EncoderBench {
 protected:
  void SetUp() override {
    EncoderBench::SetUp();
    config_.folder = node_folder();
    config_.runtime_folder = folder_.path().string();
    config_.provider_folder = folder_.path().string();
    config_.arguments.options.budget_percent = 1;
    restart();
    drainer_.emplace(DrainSettings{8u << 20, 16u << 20, false}, &state_, &staging_,
                     &encoder_->tail(), &inbox_, &modes_);
    housekeeping_.emplace(config_, &state_, &inbox_, &modes_, &activity_, &*drainer_,
                          encoder_.get());
  }
  void TearDown() override {
    housekeeping_.reset();
    EncoderBench::TearDown();
  }

  Config config_;
  ModeTable modes_;
  std::optional<Drainer> drainer_;
  std::optional<Housekeeping> housekeeping_;
};

/// As of short ones while a provider is at work: they come by the thousand.
TEST_F(HousekeepingTest, keeps_nothing_of_a_process_that_is_written_before_its_start_is_handled) {
  add_process(0);
  state_.process(0).exit_code = 0;
  ASSERT_TRUE(push_marks(0, 1, 10));
  housekeeping_->process_started(0, 0, -1);
  housekeeping_->process_ended(0, {});
  end_process(0);
  encoder_->flush();
  ASSERT_EQ(state_.process(0).phase.load(), static_cast<uint32_t>(ProcessPhase::kFinished));
  housekeeping_->start();
  housekeeping_->settle();
  ASSERT_TRUE(housekeeping_->stop());
  EXPECT_EQ(activity_.of(0).use_count(), 2) << "in the table, and here";
}

}  // namespace
}  // namespace aon::agent
