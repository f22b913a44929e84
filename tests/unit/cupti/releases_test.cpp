#include "plugins/cupti/releases.h"

#include <gtest/gtest.h>

namespace aon::cupti {
namespace {

using Flush = Releases::Flush;
constexpr uint64_t kSecond = 1'000'000'000;

TEST(Releases, the_first_is_flushed_and_waits) {
  Releases releases;
  EXPECT_EQ(releases.begin(kSecond, 0), Flush::kWaiting);
  EXPECT_EQ(releases.begin(kSecond + kRareReleaseNs, 0), Flush::kWaiting);
  EXPECT_EQ(releases.take_skipped(), 0u);
}

TEST(Releases, of_many_one_in_half_a_second_is_flushed_and_none_waits) {
  Releases releases;
  releases.begin(kSecond, 0);
  int flushed = 0;
  for (uint64_t ms = 1; ms <= 2000; ++ms) {
    const Flush flush = releases.begin(kSecond + ms * 1'000'000, 3);
    ASSERT_NE(flush, Flush::kWaiting);
    flushed += flush == Flush::kIfFree ? 1 : 0;
  }
  EXPECT_EQ(flushed, 4);
}

TEST(Releases, those_that_were_not_are_known_by_their_device) {
  Releases releases;
  releases.begin(kSecond, 2);
  releases.begin(kSecond + 1, 2);
  releases.skip(63);
  releases.skip(64);
  releases.skip(-1);
  EXPECT_EQ(releases.take_skipped(), uint64_t{1} << 63 | 1u << 2);
  EXPECT_EQ(releases.take_skipped(), 0u);
}

}  // namespace
}  // namespace aon::cupti
