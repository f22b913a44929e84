// Which files of the spool are open, and what goes when there is no room.
#include "core/agent/segments.h"

#include <gtest/gtest.h>

#include "tests/unit/agent/encoder_bench.h"

namespace aon::agent {
namespace {

class SegmentsTest : public test::EncoderBench {
 protected:
  /// One flush in which the processes from `first` on have a mark each. Files opened in it.
  int flush(uint32_t first, uint32_t count) {
    for (uint32_t i = first; i < first + count; ++i) EXPECT_TRUE(push_marks(i, 1, 1));
    const int before = sink_->open_count;
    encoder_->flush();
    return sink_->open_count - before;
  }
  void start(uint32_t process_count) {
    restart();
    for (uint32_t i = 0; i < process_count; ++i) add_process(i);
  }
};

TEST_F(SegmentsTest, owners_beyond_the_limit_leave_the_files_of_the_others_open) {
  constexpr int kLimit = 256;
  constexpr int kOwners = 300;
  start(kOwners);
  EXPECT_EQ(flush(0, kOwners), kOwners);
  for (int i = 0; i < 3; ++i) EXPECT_LE(flush(0, kOwners), kOwners - kLimit + 1);
}

TEST_F(SegmentsTest, files_that_nobody_writes_make_room) {
  settings_.limits.open_files = 4;
  start(8);
  flush(0, 4);
  int opened = 0;
  for (int i = 0; i < 40; ++i) opened = flush(4, 4);
  EXPECT_EQ(opened, 0);
  EXPECT_EQ(flush(0, 1), 1);
}

}  // namespace
}  // namespace aon::agent
