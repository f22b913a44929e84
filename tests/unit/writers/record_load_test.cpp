#include <gtest/gtest.h>

#include <cstdint>

#include "writers/assemble/model.h"

namespace aon::writers {
namespace {

TEST(RecordLoad, whole_when_there_is_room) {
  RecordLoad load;
  EXPECT_EQ(load.window_start_ns(0), 0u);
  load.add(1000, 2000, 10);
  EXPECT_EQ(load.record_count(), 10u);
  EXPECT_EQ(load.window_start_ns(10), 0u);
}

TEST(RecordLoad, begins_within_a_block) {
  RecordLoad load;
  load.add(1000, 2000, 100);
  load.add(2000, 3000, 100);
  EXPECT_NEAR(static_cast<double>(load.window_start_ns(150)), 1500, 1);
  EXPECT_NEAR(static_cast<double>(load.window_start_ns(100)), 2000, 1);
  EXPECT_NEAR(static_cast<double>(load.window_start_ns(10)), 2900, 1);
  EXPECT_EQ(load.window_start_ns(0), 3000u);
}

/// Each of the newest blocks alone has more than there is room for: each is in it in part.
TEST(RecordLoad, blocks_of_many_streams_share_the_room) {
  RecordLoad load;
  for (int stream = 0; stream < 64; ++stream) load.add(1'000'000, 2'000'000, 8192);
  EXPECT_NEAR(static_cast<double>(load.window_start_ns(64 * 4096)), 1'500'000, 1);
  EXPECT_NEAR(static_cast<double>(load.window_start_ns(8192)), 2'000'000 - 1'000'000 / 64., 1);
}

TEST(RecordLoad, pauses_and_single_instants_count) {
  RecordLoad load;
  load.add(1000, 1000, 5);
  load.add(9000, 9000, 5);
  load.add(0, 0, 5);
  EXPECT_EQ(load.window_start_ns(7), 1000u);
  EXPECT_EQ(load.window_start_ns(4), 9000u);
}

}  // namespace
}  // namespace aon::writers
