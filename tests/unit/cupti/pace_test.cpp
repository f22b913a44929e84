#include "plugins/cupti/pace.h"

#include <gtest/gtest.h>

namespace aon::cupti {
namespace {

/// Records until the next rest.
uint32_t burst(Pace* pace) {
  uint32_t count = 1;
  while (!pace->is_due()) ++count;
  return count;
}

TEST(PaceTest, the_rate_is_always_the_same) {
  Pace pace;
  for (int i = 0; i < 500; ++i) {
    const uint32_t records = burst(&pace);
    EXPECT_EQ(pace.rest_us(0) * Pace::kRecords, records * Pace::kRestUs);
  }
}

TEST(PaceTest, rests_become_fewer_where_the_ring_takes_more) {
  Pace pace;
  for (uint32_t i = 0; i < Pace::kCalmRests; ++i) {
    EXPECT_EQ(burst(&pace), Pace::kRecords);
    pace.rest_us(0);
  }
  EXPECT_EQ(burst(&pace), 2 * Pace::kRecords);
  for (int i = 0; i < 500; ++i) {
    pace.rest_us(0);
    EXPECT_LE(burst(&pace), Pace::kMaxRecords);
  }
  EXPECT_EQ(Pace::kMaxRecords, 8 * Pace::kRecords);
}

TEST(PaceTest, a_refused_record_makes_them_short_again) {
  Pace pace;
  for (int i = 0; i < 500; ++i) {
    burst(&pace);
    pace.rest_us(0);
  }
  EXPECT_EQ(burst(&pace), Pace::kMaxRecords);
  pace.rest_us(7);
  EXPECT_EQ(burst(&pace), Pace::kRecords);
  for (int i = 0; i < 500; ++i) {
    pace.rest_us(7);
    EXPECT_LT(burst(&pace), Pace::kMaxRecords) << "never as large again";
  }
  pace.rest_us(7);
  EXPECT_EQ(burst(&pace), Pace::kMaxRecords / 2);
}

}  // namespace
}  // namespace aon::cupti
