// Staging that begins anew, between the drain thread and the encoder.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "core/agent/drainer.h"
#include "core/agent/encoder.h"
#include "tests/unit/agent/encoder_bench.h"

namespace aon::agent {
namespace {

using test::StreamCount;
using StagingBeginning = test::EncoderBench;

TEST_F(StagingBeginning, goes_on_where_staging_begins_anew_when_killed_at_any_file_operation) {
  restart();
  add_process(0);
  ModeTable modes;
  int kills = 0;
  int beginnings = 0;
  for (int steps = 0; steps < 120; ++steps) {
    Drainer drainer({}, &state_, &staging_, &encoder_->tail(), &inbox_, &modes);
    drainer.restore();
    const uint64_t base = state_.header().staging_base.load();
    drainer.drain(0);
    if (state_.header().staging_base.load() != base) ++beginnings;
    ASSERT_TRUE(push_marks(0, 1, 50));
    drainer.drain(0);
    ASSERT_TRUE(push_marks(0, 2, 20));
    if (flush_and_restart(steps % 12)) ++kills;
  }
  encoder_->flush();
  EXPECT_GT(kills, 20);
  EXPECT_GT(beginnings, 10);
  const spool::Job job = read_job();
  EXPECT_EQ(job.damaged_blocks, 0u);
  for (const uint16_t slot : {1, 2}) {
    const StreamCount marks = count(job, 0, slot);
    EXPECT_EQ(marks.decoded, numbers_.at({0, slot}));
    EXPECT_TRUE(marks.is_ordered);
  }
}

TEST_F(StagingBeginning, few_records_between_two_commits_stay_in_few_pages_of_staging) {
  constexpr int64_t kBlockBytes = 512;
  restart();
  add_process(0);
  ModeTable modes;
  Drainer drainer({}, &state_, &staging_, &encoder_->tail(), &inbox_, &modes);
  for (int round = 0; round < 400; ++round) {  // more than staging holds
    drainer.drain(0);
    ASSERT_TRUE(push_marks(0, 1, 100));
    encoder_->consume();
    EXPECT_FALSE(encoder_->wants_flush()) << "what was skipped is not full";
    encoder_->flush();
  }
  struct stat status {};
  ASSERT_EQ(::fstat(staging_fd_.get(), &status), 0);
  EXPECT_LE(status.st_blocks * kBlockBytes, 4 * 4096);
  EXPECT_EQ(count(read_job(), 0, 1).decoded, 400u * 100u);
}

}  // namespace
}  // namespace aon::agent
