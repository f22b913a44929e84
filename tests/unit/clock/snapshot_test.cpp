#include "core/clock/snapshot.h"

#include <gtest/gtest.h>
#include <time.h>

namespace aon::clock {
namespace {

constexpr const char* kGoodFlags = "flags : fpu tsc constant_tsc nonstop_tsc avx2";

TEST(TscSuitability, needs_flags_and_the_kernels_trust) {
  EXPECT_TRUE(judge_tsc(kGoodFlags, "tsc\n", "tsc hpet acpi_pm\n").is_suitable);
  EXPECT_TRUE(judge_tsc(kGoodFlags, "kvm-clock\n", "kvm-clock tsc acpi_pm\n").is_suitable);
  EXPECT_FALSE(judge_tsc(kGoodFlags, "kvm-clock\n", "kvm-clock acpi_pm\n").is_suitable);
  const TscSuitability unstable = judge_tsc(kGoodFlags, "hpet\n", "hpet acpi_pm\n");
  EXPECT_FALSE(unstable.is_suitable);
  EXPECT_EQ(unstable.reason, "the kernel's clock source is hpet");
  const TscSuitability varying = judge_tsc("flags : tsc constant_tsc", "tsc\n", "tsc\n");
  EXPECT_FALSE(varying.is_suitable);
  EXPECT_EQ(varying.reason, "the CPU has no nonstop_tsc");
}

class Snapshot : public testing::TestWithParam<TickSource> {};

TEST_P(Snapshot, pairs_clocks_of_the_same_moment) {
  if (GetParam() == TickSource::kTsc && !probe_tsc().is_suitable) {
    GTEST_SKIP() << probe_tsc().reason;
  }
  timespec real;
  const uint64_t before = now_ticks(GetParam());
  clock_gettime(CLOCK_REALTIME, &real);
  const ClockDefinition snapshot = take_snapshot(GetParam());
  const uint64_t after = now_ticks(GetParam());
  EXPECT_GE(snapshot.ticks, before);
  EXPECT_LE(snapshot.ticks, after);
  EXPECT_LE(snapshot.bracket_ticks, after - before);
  const uint64_t real_ns =
      static_cast<uint64_t>(real.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(real.tv_nsec);
  EXPECT_GE(snapshot.realtime_ns + 1000, real_ns);
  EXPECT_LE(snapshot.realtime_ns, real_ns + 1'000'000'000u);
}
INSTANTIATE_TEST_SUITE_P(Sources, Snapshot,
                         testing::Values(TickSource::kTsc, TickSource::kMonotonicRaw));

}  // namespace
}  // namespace aon::clock
