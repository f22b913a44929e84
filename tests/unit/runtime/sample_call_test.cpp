// Which calls of a sampled site are timed.
#include <aon/writer.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace aon {
namespace {

constexpr uint32_t kPeriod = 64;
constexpr uint32_t kMode = kModeSample + kPeriod - 1;

struct Sampled {
  uint64_t timed = 0;
  uint64_t stands_for = 0;
  uint64_t longest_gap = 0;
  bool has_one_weight = true;
};

Sampled sample(uint64_t from, uint64_t to, uint32_t weight) {
  Sampled out;
  uint64_t last = from;
  for (uint64_t count = from; count < to; ++count) {
    const uint32_t got = sample_call(count, kMode);
    if (got == kForward) continue;
    out.timed += 1;
    out.stands_for += got;
    out.longest_gap = std::max(out.longest_gap, count - last);
    out.has_one_weight = out.has_one_weight && got == weight;
    last = count;
  }
  return out;
}

TEST(SampledCalls, stand_for_all_of_them) {
  const Sampled out = sample(1, kManyCalls, kPeriod);
  EXPECT_TRUE(out.has_one_weight);
  EXPECT_NEAR(static_cast<double>(out.stands_for), kManyCalls, 4 * kPeriod);
  EXPECT_LE(out.longest_gap, 3 * kPeriod);
}

TEST(SampledCalls, are_fewer_beyond_the_first_many) {
  constexpr uint64_t kEnd = kManyCalls + (1u << 24);
  constexpr uint32_t kWeight = kPeriod * kThinning;
  const Sampled out = sample(kManyCalls, kEnd, kWeight);
  EXPECT_TRUE(out.has_one_weight);
  EXPECT_NEAR(static_cast<double>(out.stands_for), kEnd - kManyCalls, 4 * kWeight);
  EXPECT_LE(out.longest_gap, 3 * kWeight);
}

}  // namespace
}  // namespace aon
