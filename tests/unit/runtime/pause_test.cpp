#include "core/runtime/pause.h"

#include <gtest/gtest.h>

namespace aon::runtime {
namespace {

TEST(PauseLog, knows_no_pause_before_the_first) {
  PauseLog log;
  EXPECT_FALSE(log.was_paused(5));
  log.note(10);
  EXPECT_FALSE(log.was_paused(9));
  EXPECT_TRUE(log.was_paused(10));
  EXPECT_TRUE(log.was_paused(1000));
}

TEST(PauseLog, tells_each_pause_from_what_lies_between) {
  PauseLog log;
  for (const uint64_t border : {10, 20, 30, 40}) log.note(border);
  EXPECT_TRUE(log.was_paused(19));
  EXPECT_FALSE(log.was_paused(20));
  EXPECT_FALSE(log.was_paused(29));
  EXPECT_TRUE(log.was_paused(30));
  EXPECT_FALSE(log.was_paused(40));
}

TEST(PauseLog, forgets_the_oldest_borders_only) {
  PauseLog log;
  constexpr uint64_t kBorders = PauseLog::kBorders + 100;
  for (uint64_t i = 0; i < kBorders; ++i) log.note(10 * (i + 1));
  EXPECT_FALSE(log.was_paused(15));  // it was, but that is not known any more
  const uint64_t last = 10 * kBorders;
  EXPECT_FALSE(log.was_paused(last));
  EXPECT_TRUE(log.was_paused(last - 5));
  EXPECT_FALSE(log.was_paused(last - 15));
  EXPECT_TRUE(log.was_paused(last - 10 * 1000 + 5 - 10));
}

}  // namespace
}  // namespace aon::runtime
